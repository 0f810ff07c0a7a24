"""What notebook 02 and *Who sat on whom?* state, measured with any seed."""

import torch

from tests.seeds import definitions

KINDS = torch.arange(16) // 4  # animals, vehicles, verbs, foods


def main(seed):
    """Train the small models; return name -> (measured, lowest, highest allowed)."""
    return next_word(definitions("02_embeddings"), seed) | sitters(seed)


def next_word(book, seed):
    """Measure which words training moves together."""
    plain = book["SENTENCES"]
    ended = [(*s, end) for s in plain for end in ".!"]
    found = {}
    before, after, loss, _ = trained(book, plain, seed)
    found["loss"] = (loss, 1.035, 1.05)
    found["foods moved"] = ((after - before)[12:].abs().max().item(), 0.0, 0.0)
    kinds = zip(before[:12].split(4), after[:12].split(4))
    shares = [(torch.pdist(b).mean() / torch.pdist(a).mean()).item() for a, b in kinds]
    found["the kind that shrinks least, after / before"] = (max(shares), 0.0, 0.95)
    grown = (torch.pdist(after).mean() / torch.pdist(before).mean()).item()
    found["all words, after / before"] = (grown, 1.2, 100.0)
    asked = after[:12]
    found["words with a nearest neighbour of their kind"] = (mates(asked), 12, 12)
    found["same kind / different kinds"] = (share(asked), 0.0, 0.34)
    same, different = cosines(asked)
    found["cosine within a kind"] = (same, 0.8, 1.0)
    found["cosine between kinds"] = (different, -1.0, 0.2)
    before, after, loss, _ = trained(book, ended, seed)
    found["with marks: loss"] = (loss, 0.85, 0.95)
    found["with marks: words with such a neighbour"] = (mates(after), 16, 16)
    found["with marks: same / different kinds"] = (share(after), 0.0, 0.34)
    closer = torch.pdist(after[12:]).mean() / torch.pdist(before[12:]).mean()
    found["with marks: foods, after / before"] = (closer.item(), 0.0, 0.8)
    moved = trained(book, plain, seed, tied=True)[3].min().item()
    found["tied: how far a word moves that never occurs"] = (moved, 0.3, 100.0)
    moved = trained(book, plain, seed)[3].max().item()
    found["not tied: how far a word moves that never occurs"] = (moved, 0.0, 0.0)
    return found


def trained(book, sentences, seed, tied=False):
    """Return the words before and after, the loss, and how far the marks moved."""
    torch.manual_seed(seed)
    model = book["NextWord"]()
    if tied:
        model.output.weight = model.embedding.weight
    before = model.embedding.weight.detach().clone()
    loss = book["fit"](model, sentences)
    after = model.embedding.weight.detach()
    unseen = (after - before)[16:].norm(dim=1)
    return before[:16], after[:16], loss, unseen


def mates(vectors):
    """Count the words whose nearest neighbour is of the same kind."""
    distances = torch.cdist(vectors, vectors).fill_diagonal_(torch.inf)
    kinds = KINDS[: len(vectors)]
    return (kinds[distances.argmin(dim=1)] == kinds).sum().item()


def share(vectors):
    """Divide the widest kind's mean distance by the mean between kinds."""
    kinds = KINDS[: len(vectors)]
    between = torch.cdist(vectors, vectors)[kinds[:, None] != kinds].mean()
    return (max(torch.pdist(four).mean() for four in vectors.split(4)) / between).item()


def cosines(vectors):
    """Return the mean cosine of two words of one kind, and of two kinds."""
    units = vectors / vectors.norm(dim=1, keepdim=True)
    products, kinds = units @ units.T, KINDS[: len(vectors)]
    same = kinds[:, None] == kinds
    others = ~torch.eye(len(vectors), dtype=torch.bool)
    return products[same & others].mean().item(), products[~same].mean().item()


def sitters(seed):
    """Measure who finds out who sat on whom, on sentences kept aside."""
    book, found = definitions("deeper/who_sat_on_whom"), {}
    limits = {"nothing": (0.0, 0.5), "mask": (0.9, 1.0)}
    for way in ("nothing", "learned", "sinusoids", "mask"):
        torch.manual_seed(seed)
        train_part, new_part = book["split"](seed)
        model = book["build"](way)
        loss = book["fit"](model, train_part)
        if way == "nothing":
            found["nothing: loss"] = (loss, 0.69, 0.72)
            right = book["share_right"](model, train_part)
            found["nothing: right in training"] = (right, 0.0, 0.5)
        right = book["share_right"](model, new_part)
        found[f"{way}: right in new sentences"] = (right, *limits.get(way, (0.9, 1.0)))
    for layers, *limits in ((1, 0.3, 0.5), (2, 0.9, 1.0)):
        right = book["last_right_in_new"](layers, seed)
        found[f"mask, last output, layers {layers}: right in new"] = (right, *limits)
    return found
