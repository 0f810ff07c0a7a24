"""What 04 and its deeper notebook state of learning with and without the root."""

import torch

from tests.seeds import definitions


def main(seed):
    book = definitions("04_scaled_dot_product_attention")
    deeper = definitions("deeper/why_the_root")
    found = {}
    for rate in (3e-3, 1e-2):
        sharp, _, right = book["trained"](1 / 8, rate, seed)
        _, own, without = book["trained"](1.0, rate, seed)
        if rate == 3e-3:  # it learns its rooms by heart
            found["own rooms"] = own
            found["own minus new rooms"] = own - without
        found[f"rate {rate}, with"] = right
        found[f"rate {rate}, without"] = without
        found[f"rate {rate}, with minus without"] = right - without

    M = (sharp.W_query.weight.T @ sharp.W_key.weight).detach()
    rule = M[16:32, :16].diagonal()
    rest = (M.square().sum() - rule.square().sum()) / (38 * 38 - 16)
    found["the diagonal over what lies beside it"] = rule.mean() / rest.sqrt()

    torch.manual_seed(seed)
    x, _ = deeper["draw_rooms"](500)
    for name, layer in (("start", deeper["RoomLayer"](1 / 8)), ("trained", sharp)):
        scores = layer.W_query(x) @ layer.W_key(x).mT / 8
        found[f"spread of the scores, {name}"] = scores.std().detach()
    return found
