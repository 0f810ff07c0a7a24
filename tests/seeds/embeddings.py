"""Notebook 02 and *Who sat on whom?*: words that draw together, and their order."""

import torch

from tests.seeds import definitions


def main(seed):
    book = definitions("02_embeddings")
    measured = next_word(book, seed) | widths(book, seed) | who_sat(book, seed)
    return measured | sitters(seed)


def next_word(book, seed):
    """Measure which words training moves together."""
    plain = book["SENTENCES"]
    before, after = trained(book, plain, seed)
    kinds = zip(before[:12].split(4), after[:12].split(4))
    shares = [torch.pdist(b).mean() / torch.pdist(a).mean() for a, b in kinds]
    found = {
        "the kind that shrinks least, after / before": max(shares),
        "same kind / different kinds": share(after[:12]),
    }
    marks = {"bread": ".", "rice": ".", "soup": "!", "cake": "!"}
    marked = [(*s, marks[s[-1]]) for s in plain]
    before, after = trained(book, marked, seed)
    near, far = foods(before), foods(after)
    same = [b / a for a, b in zip(near[:2], far[:2])]
    return found | {
        "foods of one mark, after / before": max(same),
        "foods of two, after / before": far[2] / near[2],
        "foods of one mark / of two": max(far[:2]) / far[3],
    }


def trained(book, sentences, seed):
    """Return the words before and after."""
    torch.manual_seed(seed)
    model = book["NextWord"]()
    before = model.embedding.weight.detach()[:16].clone()
    book["fit"](model, sentences)
    return before, model.embedding.weight.detach()[:16]


def widths(book, seed):
    """Measure how close words of one kind are in narrow and in wide tables."""
    tables = {"2": (2, 1.0), "64": (64, 1.0), "64, small start": (64, 0.02)}
    return {
        f"rows, width {name}: same kind / different kinds": book["ratio_after"](
            width, seed, start
        )
        for name, (width, start) in tables.items()
    }


def who_sat(book, seed):
    """Measure the model of the page that names who sat, on sentences kept aside."""
    losses, without = book["train_who_sat"](False, seed)
    return {
        "without positions: loss": losses[-1],
        "without positions: right in new sentences": without,
        "with positions: right in new sentences": book["train_who_sat"](True, seed)[1],
    }


def foods(vectors):
    """Return how far bread is from rice, soup from cake, and the pairs from each other.

    The last two numbers are the mean over the four ways across, and the smallest.
    """
    apart = torch.cdist(vectors[12:], vectors[12:])
    across = apart[:2, 2:]
    return [d.item() for d in (apart[0, 1], apart[2, 3], across.mean(), across.min())]


def share(vectors):
    """Divide the widest kind's mean distance by the mean between kinds."""
    kinds = torch.arange(12) // 4  # animals, vehicles, verbs
    between = torch.cdist(vectors, vectors)[kinds[:, None] != kinds].mean()
    return max(torch.pdist(four).mean() for four in vectors.split(4)) / between


def sitters(seed):
    """Measure who finds out who sat on whom, on sentences kept aside."""
    book, found = definitions("deeper/who_sat_on_whom"), {}
    for way in ("nothing", "learned", "sinusoids", "mask"):
        torch.manual_seed(seed)
        train_part, new_part = book["split"](seed)
        model = book["build"](way)
        loss = book["fit"](model, train_part)
        if way == "nothing":
            found["nothing: loss"] = loss
            found["nothing: right in training"] = book["share_right"](model, train_part)
        found[f"{way}: right in new sentences"] = book["share_right"](model, new_part)
    for layers in (1, 2):
        right = book["last_right_in_new"](layers, seed)
        found[f"mask, last output, {layers} layers: right in new"] = right
    return found
