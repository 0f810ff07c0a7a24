"""What notebook 15 states of its trainings, measured with any seed."""

from tests.seeds import definitions


def main(seed):
    """Return statement -> number."""
    book, found = definitions("15_attention_without_a_softmax"), {}
    recall, ways = book["recall"], book["WAYS"]

    many = recall.recalled_after_training(book["read_softmax"], seed=seed)[-1]
    found["letters differ: softmax, 24 pairs"] = many
    mixture = [book["SOFTMAX"], book["DELTA"]]
    for task, letters in (("letters differ", None), ("letters return", 8)):
        for name, way in ways.items():
            shares = recall.recalled_after_training(way, letters, seed)
            found[f"{task}: {name}, 24 pairs"] = shares[-1]
        found[f"{task}: delta rule minus sum, 24 pairs"] = (
            found[f"{task}: delta rule, 24 pairs"] - found[f"{task}: sum, 24 pairs"]
        )
        layers = f"{task}: layers "
        shares = recall.recalled_by_layers([book["DELTA"]] * 2, letters, seed)
        found[f"{layers}delta, delta, 24 pairs"] = shares[-1]
        for gone, name in ((None, ""), (0, " without softmax"), (1, " without delta")):
            shares = recall.recalled_by_layers(mixture, letters, seed, without=gone)
            found[f"{layers}softmax, delta{name}, 24 pairs"] = shares[-1]
        shares = recall.recalled_by_layers(mixture[::-1], letters, seed)
        found[f"{layers}delta, softmax, 24 pairs"] = shares[-1]
    for name, at_once in (("sum", False), ("delta rule", False), ("delta rule", True)):
        shares = recall.recalled_by_place(ways[name], seed, at_once=at_once)
        when = ", at once" if at_once else ""
        found[f"letters differ: {name}, pairs 1-6{when}"] = shares[0]
        found[f"letters differ: {name}, pairs 19-24{when}"] = shares[-1]
    sum_fast, delta_fast = (
        recall.recalled_after_training(ways[name], seed=seed, lr=3e-2)[-1]
        for name in ("sum", "delta rule")
    )
    gain = delta_fast - sum_fast
    found["letters differ, rate 0.03: delta rule minus sum, 24 pairs"] = gain
    return found
