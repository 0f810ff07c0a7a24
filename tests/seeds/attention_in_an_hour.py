"""Attention in an hour: what its layer learns, and without dividing the scores."""

from tests.seeds import definitions


def main(seed):
    book = definitions("attention_in_an_hour")
    ids, answers, is_new = book["IDS"], book["ANSWERS"], book["IS_NEW"]

    def undivided(d_in, d_out, num_heads):  # of one head, so d_k is d_out
        layer = divided(d_in, d_out, num_heads)
        layer.W_query.register_forward_hook(lambda module, x, q: q * d_out**0.5)
        return layer

    def train(layer):
        book["train_from"].__globals__["MyMultiHeadAttention"] = layer
        model = book["train_from"](seed)
        return model, book["fraction_right"](model, ids[is_new], answers[is_new])

    divided = book["MyMultiHeadAttention"]
    model, right = train(divided)
    without = train(undivided)[1]
    weights = book["last_word_weights"](model, ids)
    return {
        "right of the twenty new sentences": right,
        "weight on the right creature": weights[ids == answers[:, None]].mean(),
        "not divided: right of the twenty": without,
        "not divided: wrong of the twenty": 1 - without,
    }
