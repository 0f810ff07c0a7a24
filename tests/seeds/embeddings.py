"""Notebook 02 and *Who sat on whom?*: words that draw together, and their order."""

import torch
import torch.nn.functional as F
from torch import nn

from utils.pages import definitions


def main(seed):
    book = definitions("02_embeddings")
    return next_word(book, seed) | tables(book, seed) | sitters(seed)


def next_word(book, seed):
    """Measure which words training moves together."""
    plain = book["SENTENCES"]
    before, after = trained(book, plain, seed)
    kinds = zip(before[:12].split(4), after[:12].split(4))
    shares = [torch.pdist(b).mean() / torch.pdist(a).mean() for a, b in kinds]
    stats = {
        "the kind that shrinks least, after / before": max(shares),
        "same kind / different kinds": share(after[:12]),
    }
    marks = {"bread": ".", "rice": ".", "soup": "!", "cake": "!"}
    marked = [(*s, marks[s[-1]]) for s in plain]
    _, after = trained(book, marked, seed)
    apart = torch.cdist(after[12:], after[12:])
    widest = max(apart[0, 1], apart[2, 3])  # bread and rice, soup and cake
    stats["foods of one mark / of two"] = widest / apart[:2, 2:].min()
    _, after = trained(book, [(*s, "!") for s in plain], seed)
    nearest = torch.cdist(after[12:], after[:12]).min()  # a word of another kind
    apart = torch.pdist(after[12:]).max()
    return stats | {"one mark: foods / food to the nearest other": apart / nearest}


class OneTable(nn.Module):
    """Scores the next word with the embeddings, as the tales model does."""

    def __init__(self, vocab_size, width=2):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, width)
        self.middle = nn.Linear(width, width)

    def forward(self, word_ids):
        return self.middle(self.embedding(word_ids)) @ self.embedding.weight.T


def tables(book, seed):
    """Measure a table that scores the next word, too, and a wide one."""
    plain, stats = book["SENTENCES"], {}
    torch.manual_seed(seed)
    before, after = trained(book, plain, seed, OneTable(len(book["WORDS"])))
    shares = torch.pdist(after[12:]).mean() / torch.pdist(before[12:]).mean()
    stats["one table, no marks: foods, after / before"] = shares
    torch.manual_seed(seed)
    before, after = trained(book, plain, seed, book["NextWord"](128))
    rises = [kinship(after, kind) - kinship(before, kind) for kind in range(3)]
    stats["width 128: cosine within a kind rises at least by"] = min(rises)
    narrow = share(trained(book, plain, seed)[1][:12])
    stats["same kind / different kinds: width 128 - 2"] = share(after[:12]) - narrow
    return stats


def kinship(vectors, kind):
    """Return the mean cosine of the four words of a kind with each other."""
    four = F.normalize(vectors[4 * kind : 4 * kind + 4], dim=1)
    return ((four @ four.T).sum() - 4) / 12


def trained(book, sentences, seed, model=None):
    """Return the words before and after."""
    torch.manual_seed(seed)
    model = model or book["NextWord"]()
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
    book, stats = definitions("deeper/who_sat_on_whom"), {}
    for way in ("nothing", "learned", "sinusoids", "mask"):
        torch.manual_seed(seed)
        train_part, new_part = book["split"](seed)
        model = book["build"](way)
        loss = book["fit"](model, train_part)
        if way == "nothing":
            stats["nothing: loss"] = loss
            stats["nothing: right in training"] = book["share_right"](model, train_part)
        stats[f"{way}: right in new sentences"] = book["share_right"](model, new_part)
    for layers in (1, 2):
        right = book["last_right_in_new"](layers, seed)
        stats[f"mask, last output, {layers} layers: right in new"] = right
    return stats
