"""Notebook 08: a GPT learns the story, and attention replaces instead of adding."""

from tests.seeds import definitions


def main(seed):
    book = definitions("08_tiny_gpt")
    plain, fast = trained(book, seed), trained(book, seed, lr=0.003)
    found = {
        "plain: lowest": min(plain),
        "plain: step of the lowest": 50 * (plain.index(min(plain)) + 1),
        "plain: last minus lowest": plain[-1] - min(plain),
        "plain minus pairs, lowest": min(plain) - book["table_loss"](2),
        "plain minus triples, lowest": min(plain) - book["table_loss"](3),
        "three times the rate: last minus lowest": fast[-1] - min(fast),
    }
    replaced = trained(book, seed, book["AttentionReplaces"])[-1]
    found["attention replaces: above single tokens"] = replaced - book["table_loss"](1)
    lowest = min(trained(book, seed, book["MLPReplaces"]))
    found["MLP replaces minus plain, lowest"] = lowest - min(plain)
    return found


def trained(book, seed, block=None, lr=0.001):
    """Return the validation losses of a model trained with the notebook's loop."""
    model = book["new_gpt"](seed, block or book["Block"])
    return book["train_plainly"](model, seed, lr)[1]
