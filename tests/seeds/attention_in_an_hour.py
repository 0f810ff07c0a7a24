"""Attention in an hour: what its layer learns."""

from utils.pages import definitions


def main(seed):
    book = definitions("attention_in_an_hour")
    model = book.train_from(seed)
    is_right = book.IDS == book.ANSWERS[:, None]
    new = book.IDS[book.IS_NEW], book.ANSWERS[book.IS_NEW]
    return {
        "right of the twenty new sentences": book.fraction_right(model, *new),
        "weight on the right creature": book.last_word_weights(model, book.IDS)[
            is_right
        ].mean(),
    }
