"""What notebook 15 states of its trainings, measured with any seed."""

from functools import partial

import torch
import torch.nn.functional as F

from tests.seeds import definitions


def read_gated(query, key, value, gate):
    """Read by a state that fades before each pair; a way for `PairReader`."""
    query, key = F.normalize(query, dim=-1), F.normalize(key, dim=-1)
    state = torch.zeros(len(key), 8, 8)
    for t in range(key.shape[1]):
        state = gate[:, t, None, None] * state + key[:, t, None].mT @ value[:, t, None]
    return query @ state


def main(seed):
    book, found = definitions("15_attention_without_a_softmax"), {}
    recall, ways = book["recall"], book["WAYS"] | {"gated sum": read_gated}
    softmax, delta = book["SOFTMAX"], book["DELTA"]
    stacks = {
        "delta, delta": [delta, delta],
        "softmax, softmax": [softmax, softmax],
        "rotary softmax twice": [partial(softmax, rotary=True)] * 2,
        "softmax, delta": [softmax, delta],
    }

    many = recall.recalled_after_training(book["read_softmax"], seed=seed)[-1]
    found["letters differ: softmax, 24 pairs"] = many
    for task, letters in (("letters differ", None), ("letters return", 8)):
        for name, way in ways.items():
            shares = recall.recalled_after_training(way, letters, seed)
            found[f"{task}: {name}, 24 pairs"] = shares[-1]
        found[f"{task}: delta rule minus sum, 24 pairs"] = (
            found[f"{task}: delta rule, 24 pairs"] - found[f"{task}: sum, 24 pairs"]
        )
        for name, kinds in stacks.items():
            shares = recall.recalled_by_layers(kinds, letters, seed)
            found[f"{task}: layers {name}, 24 pairs"] = shares[-1]
    sum_fast, delta_fast = (
        recall.recalled_after_training(ways[name], seed=seed, lr=3e-2)[-1]
        for name in ("sum", "delta rule")
    )
    gain = delta_fast - sum_fast
    found["letters differ, rate 0.03: delta rule minus sum, 24 pairs"] = gain
    return found
