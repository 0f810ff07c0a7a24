"""Notebook 09: a GPT learns the story, attention replaces, and texts are drawn."""

from tests.seeds import definitions


def main(seed):
    book = definitions("09_tiny_gpt")
    model, plain = trained(book, seed)
    _, fast = trained(book, seed, lr=0.003)
    found = {
        "plain: lowest": min(plain),
        "plain: step of the lowest": 50 * (plain.index(min(plain)) + 1),
        "plain: last minus lowest": plain[-1] - min(plain),
        "plain minus pairs, lowest": min(plain) - book["table_loss"](2),
        "plain minus triples, lowest": min(plain) - book["table_loss"](3),
        "three times the rate: last minus lowest": fast[-1] - min(fast),
    }
    replaced = trained(book, seed, book["AttentionReplaces"])[1][-1]
    found["attention replaces: above single tokens"] = replaced - book["table_loss"](1)
    lowest = min(trained(book, seed, book["MLPReplaces"])[1])
    found["MLP replaces minus plain, lowest"] = lowest - min(plain)
    return found | texts(book, model)


def trained(book, seed, block=None, lr=0.001):
    """Return a model trained with the notebook's loop, and its validation losses."""
    model = book["new_gpt"](seed, block or book["Block"])
    return model, book["train_plainly"](model, seed, lr)[1]


def texts(book, model):
    """Compare greedy with the other choices, by known and by different words."""
    judged = {
        name: book["known_and_different"](model, choose)
        for name, choose in book["CHOICES"].items()
    }
    known, different = zip(*(judged.pop("greedy"), *judged.values()))
    return {
        "greedy minus the next, known words": known[0] - max(known[1:]),
        "greedy minus the next, different words": different[0] - min(different[1:]),
    }
