"""What notebook 02 and *Who sat on whom?* state, measured with any seed."""

import torch

from tests.seeds import definitions

KINDS = torch.arange(16) // 4  # animals, vehicles, verbs, foods


def main(seed):
    """Return statement -> number."""
    return next_word(definitions("02_embeddings"), seed) | sitters(seed)


def next_word(book, seed):
    """Measure which words training moves together."""
    plain = book["SENTENCES"]
    before, after, loss, unseen = trained(book, plain, seed)
    kinds = zip(before[:12].split(4), after[:12].split(4))
    shares = [torch.pdist(b).mean() / torch.pdist(a).mean() for a, b in kinds]
    found = {
        "loss": loss,
        "foods moved": (after - before)[12:].abs().max(),
        "how far a word moves that never occurs": unseen.max(),
        "the kind that shrinks least, after / before": max(shares),
        "words with a nearest neighbour of their kind": mates(after[:12]),
        "same kind / different kinds": share(after[:12]),
    }
    marks = {"bread": ".", "rice": ".", "soup": "!", "cake": "!"}
    marked = [(*s, marks[s[-1]]) for s in plain]
    before, after, loss, _ = trained(book, marked, seed)
    near, far = foods(before), foods(after)
    same = [b / a for a, b in zip(near[:2], far[:2])]
    return found | {
        "with marks: loss": loss,
        "with marks: foods of one mark, after / before": max(same),
        "with marks: foods of two, after / before": far[2] / near[2],
        "with marks: foods of one mark / of two": max(far[:2]) / far[3],
    }


def trained(book, sentences, seed):
    """Return the words before and after, the loss, and how far the marks moved."""
    torch.manual_seed(seed)
    model = book["NextWord"]()
    before = model.embedding.weight.detach().clone()
    loss = book["fit"](model, sentences)
    after = model.embedding.weight.detach()
    unseen = (after - before)[16:].norm(dim=1)
    return before[:16], after[:16], loss, unseen


def foods(vectors):
    """Return how far bread is from rice, soup from cake, and the pairs from each other.

    The last two numbers are the mean over the four ways across, and the smallest.
    """
    apart = torch.cdist(vectors[12:], vectors[12:])
    across = apart[:2, 2:]
    return [d.item() for d in (apart[0, 1], apart[2, 3], across.mean(), across.min())]


def mates(vectors):
    """Count the words whose nearest neighbour is of the same kind."""
    distances = torch.cdist(vectors, vectors).fill_diagonal_(torch.inf)
    kinds = KINDS[: len(vectors)]
    return (kinds[distances.argmin(dim=1)] == kinds).sum()


def share(vectors):
    """Divide the widest kind's mean distance by the mean between kinds."""
    kinds = KINDS[: len(vectors)]
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
        found[f"mask, last output, layers {layers}: right in new"] = right
    return found
