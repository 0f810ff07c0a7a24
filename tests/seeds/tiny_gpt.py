"""Notebook 08 and *Heads that copy*: a GPT that learns the story."""

from utils.pages import definitions
from utils.training.text import load_tales_model


def main(seed):
    book = definitions("08_tiny_gpt")
    model = book["new_gpt"](seed)
    losses, plain = book["train_plainly"](model, seed)
    copying = definitions("deeper/copying_heads")
    bits = copying["bits_per_byte"](model, book["encode_story"], 32)
    real, encode, _ = load_tales_model()
    chapter = book["bits_per_byte"]
    model_books, books = chapter(model, book["encode_story"]), chapter(real, encode)
    best = copying["bits_per_byte"](real, encode, 128)
    return {
        "plain: lowest": min(plain),
        "plain: step of the lowest": 50 * (plain.index(min(plain)) + 1),
        "plain: last minus lowest": plain[-1] - min(plain),
        "plain: last training loss": sum(losses[-50:]) / 50,
        "chapter 7: plain minus books, bits per byte": model_books - books,
        "bits per byte: plain minus triples": bits - copying["counted_bits"](3),
        "bits per byte: plain minus books": bits - best,
    }
