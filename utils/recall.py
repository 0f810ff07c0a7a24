"""The task of notebook 15: lists of letters with digits, and a letter asked for."""

import torch
import torch.nn.functional as F
from torch import nn

from utils.data import draw_pairs
from utils.training import train

PAIRS = 4, 8, 16, 24  # the lengths of the lists


class PairReader(nn.Module):
    """Read a list of pairs in one way, and say the digit of the letter asked for.

    way: function (query, key, value, beta, log_gate) -> what is read, (B, 1, K), from
        a query (B, 1, K), keys and values (B, pairs, K) and two numbers for each pair,
        (B, pairs), as `utils.delta.delta_rule` takes them
    letters, digits: (B, pairs);  asked: (B,)
    returns: scores of the ten digits, (B, 10)

    Keys, queries and values are looked up in learned tables, and so are beta and gate.

    >>> reader = PairReader(lambda query, key, value, *rest: query @ key.mT @ value)
    >>> reader(*draw_pairs(2, 5)[:3]).shape
    torch.Size([2, 10])
    """

    def __init__(self, way, width=8):
        super().__init__()
        self.query, self.key = nn.Embedding(26, width), nn.Embedding(26, width)
        self.value, self.output = nn.Embedding(10, width), nn.Linear(width, 10)
        self.beta, self.gate, self.way = nn.Embedding(26, 1), nn.Embedding(26, 1), way

    def forward(self, letters, digits, asked):
        query = self.query(asked)[:, None]  # (B, 1, K)
        beta = torch.sigmoid(self.beta(letters))[..., 0]  # (B, pairs)
        log_gate = F.logsigmoid(self.gate(letters) + 3)[..., 0]  # near 1 at first
        key, value = self.key(letters), self.value(digits)
        return self.output(self.way(query, key, value, beta, log_gate)[:, 0])


def share_right(way, num_letters=None, seed=0, lr=1e-2, steps=600):
    """Train a `PairReader` on lists of all lengths; say how often it is right.

    num_letters: as `draw_pairs` takes it
    returns: for each of `PAIRS` the share of right answers on 2,000 new lists

    >>> len(share_right(lambda query, key, value, *rest: query, steps=4))
    4
    """

    def loss(reader, batch):
        return F.cross_entropy(reader(*batch[:3]), batch[3])

    torch.manual_seed(seed)
    batches = [draw_pairs(64, PAIRS[i % 4], num_letters) for i in range(steps)]
    train(reader := PairReader(way), batches, loss, steps=steps, lr=lr)
    shares = []
    with torch.no_grad():
        for num_pairs in PAIRS:
            *shown, answer = draw_pairs(2000, num_pairs, num_letters)
            right = reader(*shown).argmax(dim=-1) == answer
            shares.append(right.float().mean().item())
    return shares
