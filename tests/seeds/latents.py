"""Notebook 11: a latent of the tales model that is learned, and a shared head."""

from tests.seeds import definitions
from utils.data import load_text, sliding_windows
from utils.training.text import load_tales_model


def main(seed):
    book = definitions("11_a_narrower_cache")
    tales, encode, _ = load_tales_model()
    story = book["torch"].tensor(encode(load_text()))
    pages = sliding_windows(story[:5200], 256, 256)
    other_pages = sliding_windows(story[5200:], 256, 256)
    tales.requires_grad_(False)
    book |= {"tales": tales, "other_pages": other_pages, "bases": []}
    book["loss_with"](book["find_directions"], other_pages)

    def loss(maps):
        return book["loss_with"](book["through"](maps), pages)

    learned = loss(book["learn"](book["strongest"](8), seed))
    shared = loss(book["learn"](book["shared_head"](), seed, is_shared=True))
    return {
        "strongest 8 minus learned 8": loss(book["strongest"](8)) - learned,
        "strongest 16 minus learned 8": loss(book["strongest"](16)) - learned,
        "trained shared head minus strongest 64": shared - loss(book["strongest"](64)),
    }
