"""Attention in an hour: what its layer learns, and where it looks in a new order."""

import torch

from tests.seeds import definitions


def main(seed):
    book = definitions("attention_in_an_hour")
    ids, answers, right = book["IDS"], book["ANSWERS"], book["fraction_right"]
    weights, moved = book["last_word_weights"], book["MOVED"]
    moved_ids = book["encode"](words for words, _ in book["make_sentences"](moved))
    both = torch.cat([ids[10:], moved_ids[10:]]), answers[10:].repeat(2)
    one_order, both_orders = book["train_from"](seed), book["train_from"](seed, *both)
    is_right = ids == answers[:, None]
    return {
        "right of the ten new sentences": right(one_order, ids[:10], answers[:10]),
        "weight on the right creature": weights(one_order, ids)[is_right].mean(),
        "moved: right of all": right(one_order, moved_ids, answers),
        "both orders, new": right(both_orders, ids[:10], answers[:10]),
        "both orders, new, moved": right(both_orders, moved_ids[:10], answers[:10]),
        "both orders, moved: weight on the right creature": weights(
            both_orders, moved_ids
        )[moved_ids == answers[:, None]].mean(),
    }
