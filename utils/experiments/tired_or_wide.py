"""The hour: is the animal too tired, or is the street too wide? One layer finds out."""

from itertools import product

import torch
import torch.nn.functional as F
from torch import nn

CREATURES = "animal cat dog horse fox child".split()
PLACES = "street river bridge tunnel field garden".split()
FOR_CREATURES = "tired hungry scared sleepy ill".split()
FOR_PLACES = "wide narrow dark icy dusty".split()
OTHERS = "the didn't cross because it was too".split()
LEXICON = OTHERS + CREATURES + PLACES + FOR_CREATURES + FOR_PLACES


def encode_sentences(pairs):
    """Return the ids (N, 11) of ten sentences per pair, and of what each is about."""
    ids, nouns = [], []
    for creature, place in pairs:
        for qualities, noun in ((FOR_CREATURES, creature), (FOR_PLACES, place)):
            for quality in qualities:
                text = f"the {creature} didn't cross the {place} because it was too"
                ids.append([LEXICON.index(word) for word in [*text.split(), quality]])
                nouns.append(LEXICON.index(noun))
    return torch.tensor(ids), torch.tensor(nouns)


NEW = ("animal", "street")  # not in the training sentences together
PAIRS = [pair for pair in product(CREATURES, PLACES) if pair != NEW]


def train_to_look_back(layer, steps=200):
    """Train the layer and a table of embeddings; return the table and the losses."""
    table = nn.Embedding(len(LEXICON), 32)
    nn.init.normal_(table.weight, std=0.3)  # random at first, like the layer
    optimizer = torch.optim.Adam([*table.parameters(), *layer.parameters()], lr=0.005)
    ids, nouns = encode_sentences(PAIRS)  # (350, 11), (350,)
    losses = []
    for _ in range(steps):
        some = torch.randint(len(ids), (64,))  # 64 of the sentences
        last = layer(table(ids[some]))[:, -1]  # (64, 32): the row of the last word
        scores = last @ table.weight.T  # (64, V): for each word of the lexicon
        loss = F.cross_entropy(scores, nouns[some])
        optimizer.zero_grad()
        loss.backward()  # how each number of each matrix should change
        optimizer.step()  # change it a little
        losses.append(loss.item())
    return table, losses


def weights_of_last_word(layer, x):
    """Return what the last word takes from each, for a layer with one head: (N, T)."""
    query, keys = layer.W_query(x[:, -1:]), layer.W_key(x)  # (N, 1, D), (N, T, D)
    scores = query @ keys.mT / keys.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1)[:, 0].detach()
