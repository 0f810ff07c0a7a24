"""The hour: who is tired and what is wide, in sentences about a new pair of nouns."""

import torch

from utils.attention import MultiHeadAttention
from utils.experiments.tired_or_wide import NEW, encode_sentences, train_to_look_back


def main(seed):
    torch.manual_seed(seed)
    layer = MultiHeadAttention(32, 32, 11, 0.0, 1)
    table, _ = train_to_look_back(layer)
    ids, nouns = encode_sentences([NEW])
    named = (layer(table(ids))[:, -1] @ table.weight.T).argmax(dim=-1)
    return {"right in new sentences": (named == nouns).float().mean()}
