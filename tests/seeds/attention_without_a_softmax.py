"""What notebook 15 states of its trainings, measured with any seed."""

from tests.seeds import definitions

ALLOWED = {  # with 24 pairs: all letters differ, letters return
    "softmax, gated": ((0.98, 1), (0.97, 1)),
    "sum": ((0.69, 0.76), (0.4, 0.48)),
    "sum, gated": ((0.69, 0.76), (0.9, 0.97)),
    "delta rule": ((0.6, 0.69), (0.99, 1)),
    "delta, gated": ((0.6, 0.69), (0.99, 1)),
}
LAYERS = {  # the same of two layers
    "softmax, softmax": ((0.98, 1), (0.7, 0.9)),
    "delta, delta": ((0.55, 0.75), (0.97, 1)),
    "delta, softmax": ((0.98, 1), (0.95, 1)),
    "softmax, delta": ((0.98, 1), (0.95, 1)),
    "softmax, rotary": ((0.98, 1), (0.94, 1)),
}


def main(seed):
    """Return statement -> (measured, lowest allowed, highest allowed)."""
    book, found = definitions("15_attention_without_a_softmax"), {}

    def recalled(way, letters=None, **options):
        train = book["recall"].recalled_after_training
        return train(book["WAYS"][way], letters, seed, **options)

    many = book["recall"].recalled_after_training(book["read_softmax"], seed=seed)[-1]
    found["letters differ: softmax, 24 pairs"] = (many, 0.98, 1)
    for task, letters in (("letters differ", None), ("letters return", 8)):
        shares = {way: recalled(way, letters) for way in ALLOWED}
        for way, limits in ALLOWED.items():
            few, many = shares[way][0], shares[way][-1]
            found[f"{task}: {way}, 24 pairs"] = (many, *limits[letters is not None])
            if letters is None:
                found[f"{task}: {way}, 4 pairs"] = (few, 0.97, 1)
        gain = shares["delta rule"][-1] - shares["sum"][-1]
        limit = (-0.12, -0.03) if letters is None else (0.5, 0.6)
        found[f"{task}: delta rule minus sum, 24 pairs"] = (gain, *limit)
        for stack, limits in LAYERS.items():
            kinds = book["STACKS"][stack]
            share = book["recall"].recalled_by_layers(kinds, letters, seed)[-1]
            name = f"{task}: layers {stack}, 24 pairs"
            found[name] = (share, *limits[letters is not None])
    for way, early, late in (
        ("sum", (0.69, 0.76), (0.69, 0.76)),
        ("delta rule", (0.35, 0.45), (0.88, 0.96)),
    ):
        shares = book["recall"].recalled_by_place(book["WAYS"][way], seed)
        found[f"letters differ: {way}, pairs 1-6"] = (shares[0], *early)
        found[f"letters differ: {way}, pairs 19-24"] = (shares[-1], *late)
    fast = [recalled(way, lr=3e-2)[-1] for way in ("sum", "delta rule")]
    name = "letters differ, rate 0.03: delta rule minus sum, 24 pairs"
    found[name] = (fast[1] - fast[0], -0.08, 0)
    return found
