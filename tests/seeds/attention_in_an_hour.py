"""Attention in an hour: what its layer learns, with and without dividing the scores."""

from utils.pages import definitions


def main(seed):
    book = definitions("attention_in_an_hour")
    ids, answers, is_new = book["IDS"], book["ANSWERS"], book["IS_NEW"]
    model = book["train_from"](seed)
    undivided = book["train_from"](seed, make_layer=book["without_division"])
    right, without = (
        book["fraction_right"](m, ids[is_new], answers[is_new])
        for m in (model, undivided)
    )
    weights = book["last_word_weights"](model, ids)
    return {
        "right of the twenty new sentences": right,
        "weight on the right creature": weights[ids == answers[:, None]].mean(),
        "not divided: right of the twenty": without,
        "not divided: wrong of the twenty": 1 - without,
    }
