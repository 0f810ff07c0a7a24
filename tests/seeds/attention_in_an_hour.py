"""The hour: who is tired and what is wide, in sentences about a new pair of nouns."""

import torch

from utils import pages
from utils.attention import MultiHeadAttention

hour = pages.definitions("attention_in_an_hour")


def main(seed):
    torch.manual_seed(seed)
    layer = MultiHeadAttention(32, 32, 11, 0.0, 1)
    table, _ = hour.train_to_look_back(layer)
    ids, nouns = hour.encode_sentences([hour.NEW])
    named = (layer(table(ids))[:, -1] @ table.weight.T).argmax(dim=-1)
    shares = hour.weights_of_last_word(layer, table(ids))
    return {
        "right in new sentences": (named == nouns).float().mean(),
        "least share of the noun": torch.cat([shares[:5, 1], shares[5:, 5]]).min(),
        "right without the noun": hour.right_without(layer, table),
        "right without the other noun": hour.right_without(layer, table, other=True),
    }
