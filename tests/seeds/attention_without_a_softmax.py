"""What notebook 15 states of its trainings, measured with any seed."""

from tests.seeds import definitions

WAYS = ("softmax, gated", "sum", "sum, gated", "delta rule", "delta, gated")
STACKS = (
    "softmax, softmax",
    "delta, delta",
    "delta, softmax",
    "softmax, delta",
    "softmax, rotary",
)


def main(seed):
    """Return statement -> number."""
    book, found = definitions("15_attention_without_a_softmax"), {}
    recall, ways = book["recall"], book["WAYS"]

    def recalled(way, letters=None, **options):
        """Return the share recalled with few pairs and with 24."""
        shares = recall.recalled_after_training(ways[way], letters, seed, **options)
        return shares[0], shares[-1]

    many = recall.recalled_after_training(book["read_softmax"], seed=seed)[-1]
    found["letters differ: softmax, 24 pairs"] = many
    for task, letters in (("letters differ", None), ("letters return", 8)):
        for way in WAYS:
            few, many = recalled(way, letters)
            found[f"{task}: {way}, 24 pairs"] = many
            if letters is None:
                found[f"{task}: {way}, 4 pairs"] = few
        found[f"{task}: delta rule minus sum, 24 pairs"] = (
            found[f"{task}: delta rule, 24 pairs"] - found[f"{task}: sum, 24 pairs"]
        )
        for stack in STACKS:
            shares = recall.recalled_by_layers(book["STACKS"][stack], letters, seed)
            found[f"{task}: layers {stack}, 24 pairs"] = shares[-1]
    for way in ("sum", "delta rule"):
        shares = recall.recalled_by_place(ways[way], seed)
        found[f"letters differ: {way}, pairs 1-6"] = shares[0]
        found[f"letters differ: {way}, pairs 19-24"] = shares[-1]
    gain = recalled("delta rule", lr=3e-2)[1] - recalled("sum", lr=3e-2)[1]
    found["letters differ, rate 0.03: delta rule minus sum, 24 pairs"] = gain
    return found
