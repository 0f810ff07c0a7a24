"""What 04 and its deeper notebook state of learning with and without the root."""

import torch

from tests.seeds import definitions

HELD = {  # what the notebooks say of all ten seeds
    "512 rooms, with minus without": 10,
    "256 rooms, with minus without": 10,
    "small steps alone minus small start alone": 10,
    "256 rooms, 2400 steps, with minus without": 10,
}


def with_fast_values(book, num_rooms, seed, steps=600):
    """Train without the root, W_value at ten times the rate; return what is right."""
    torch.manual_seed(seed)
    (x, answer), layer = book["draw_rooms"](500), book["RoomLayer"](1.0)
    rooms = [book["draw_rooms"](32) for _ in range(num_rooms // 32)]
    slow = [layer.W_query.weight, layer.W_key.weight]
    groups = [{"params": slow}, {"params": [layer.W_value.weight], "lr": 1e-2}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3)
    for step in range(steps):
        loss = book["room_loss"](layer, rooms[step % len(rooms)])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        return (layer(x).argmax(dim=-1) == answer).float().mean().item()


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
    fast = with_fast_values(book, 256, seed)
    found["256 rooms, without, values ten times as fast"] = (fast, 0.9, 1)

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
    longer = [
        right_of(scale, num_rooms=n, steps=2400, seed=seed)
        for n, scale in ((512, plain), (256, root), (256, plain))
    ]
    found["512 rooms, 2400 steps, without"] = (longer[0], 0.93, 1)
    still = longer[1] - longer[2]
    found["256 rooms, 2400 steps, with minus without"] = (still, 0.1, 1)
    return found
