"""What 04 and its deeper notebook state of learning with and without the root."""

import torch

from tests.seeds import definitions


def main(seed):
    """Return statement -> (measured, lowest allowed, highest allowed)."""
    book = definitions("04_scaled_dot_product_attention")
    deeper = definitions("deeper/why_the_root")
    root, plain, c = 1 / 8, 1.0, deeper["C"]
    trained = {
        (n, scale): book["trained"](n, scale, seed)
        for n in (1024, 512, 256)
        for scale in (root, plain)
    }
    right = {key: share for key, (_, share) in trained.items()}
    gap = {n: right[n, root] - right[n, plain] for n in (512, 256)}
    found = {
        "1024 rooms, with the root": (right[1024, root], 0.97, 1),
        "1024 rooms, without": (right[1024, plain], 0.97, 1),
        "512 rooms, with minus without": (gap[512], 0.01, 1),
        "256 rooms, with minus without": (gap[256], 0.03, 1),
    }

    beside = {}
    for name, scale in (("with", root), ("without", plain)):
        M = book["meeting"](trained[512, scale][0])
        diagonal = M[16:32, :16].diagonal()
        rest = M.square().sum() - diagonal.square().sum()
        beside[name] = (rest / (38 * 38 - 16)).sqrt().item() / diagonal.mean().item()
        ratio = 1 / beside[name]
        found[f"the diagonal over what lies beside it, {name}"] = (ratio, 2, 1e3)
    more = beside["without"] / beside["with"]
    found["what lies beside it, without over with"] = (more, 1.5, 1e3)

    torch.manual_seed(seed)
    (x, _), new = book["draw_rooms"](500), book["RoomLayer"](root)
    for name, layer, limits in (
        ("start", new, (0, 0.9)),
        ("trained", trained[1024, root][0], (2, 20)),
    ):
        with torch.no_grad():
            scores = layer.W_query(x) @ layer.W_key(x).mT * root
        found[f"spread of the scores, {name}"] = (scores.std().item(), *limits)

    right_of = deeper["share_right"]
    soft = right_of(plain, c, seed=seed)
    sharp = right_of(root, 1 / c, seed=seed)
    found["small steps alone minus small start alone"] = (sharp - soft, 0.005, 1)
    longer = {
        (n, scale): right_of(scale, num_rooms=n, steps=2400, seed=seed)
        for n in (512, 256)
        for scale in (root, plain)
    }
    found["512 rooms, 2400 steps, without"] = (longer[512, plain], 0.93, 1)
    still = longer[256, root] - longer[256, plain]
    found["256 rooms, 2400 steps, with minus without"] = (still, 0.1, 1)
    return found
