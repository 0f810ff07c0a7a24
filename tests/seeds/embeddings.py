"""Notebook 02 and *Who sat on whom?*: words that draw together, and their order."""

import torch

from tests.seeds import definitions


def main(seed):
    book = definitions("02_embeddings")
    return next_word(book, seed) | sitters(seed)


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
    _, after = trained(book, marked, seed)
    apart = torch.cdist(after[12:], after[12:])
    widest = max(apart[0, 1], apart[2, 3])  # bread and rice, soup and cake
    return found | {"foods of one mark / of two": widest / apart[:2, 2:].min()}


def trained(book, sentences, seed):
    """Return the words before and after."""
    torch.manual_seed(seed)
    model = book["NextWord"]()
    before = model.embedding.weight.detach()[:16].clone()
    book["fit"](model, sentences)
    return before, model.embedding.weight.detach()[:16]


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
