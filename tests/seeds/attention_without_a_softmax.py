"""What notebook 15 and its deeper one state of trainings, measured with any seed."""

from tests.seeds import definitions


def main(seed):
    book, found = definitions("15_attention_without_a_softmax"), {}
    recall, ways = book["recall"], book["WAYS"]
    ways["sum, keys of any length"] = lambda q, k, v, _: q @ (k.mT @ v)
    deeper = definitions("deeper/a_layer_with_the_delta_rule")
    stacks = deeper["STACKS"] | {"rotary softmax": [deeper["ROTARY"]]}

    for name, width in (("softmax", 8), ("sum", 16)):
        way = book[f"read_{name}"]
        many = recall.recalled_after_training(way, seed=seed, width=width)[-1]
        found[f"letters differ: {name}, width {width}, 24 pairs"] = many
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
