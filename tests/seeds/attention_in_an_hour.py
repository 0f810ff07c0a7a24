"""Attention in an hour: what its layer learns, and what is left if a word is hidden."""

from tests.seeds import definitions


def main(seed):
    book = definitions("attention_in_an_hour")
    layers = book["MyMultiHeadAttention"], book["FixedWeights"]
    return book["try_out"](*(book["train_from"](seed, layer) for layer in layers))
