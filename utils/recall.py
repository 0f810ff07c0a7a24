"""The tasks of notebooks 14 and 15: lists of letters with digits, and a question."""

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


def recalled_after_training(way, num_letters=None, seed=0, lr=1e-2, steps=600):
    """Train a `PairReader` on lists of all lengths; say how often it is right.

    num_letters: as `draw_pairs` takes it
    returns: for each of `PAIRS` the share of right answers on 2,000 new lists

    >>> len(recalled_after_training(lambda query, key, value, *rest: query, steps=4))
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


class ListReader(nn.Module):
    """Read a list of pairs with an attention layer, and say the digits of four letters.

    attention: module from (B, T, 32) to (B, T, 32), causal; the question stands last
    letters, digits: (B, pairs);  asked: (B, 4)
    returns: scores of the ten digits for each letter asked for, (B, 4, 10)

    >>> letters, digits, *_ = draw_pairs(2, 5)
    >>> ListReader(nn.Identity())(letters, digits, letters[:, :4]).shape
    torch.Size([2, 4, 10])
    """

    def __init__(self, attention):
        super().__init__()
        self.letter, self.digit = nn.Embedding(26, 32), nn.Embedding(10, 32)
        self.asked = nn.ModuleList(nn.Embedding(26, 32) for _ in range(4))
        self.attention, self.output = attention, nn.Linear(32, 40)

    def forward(self, letters, digits, asked):
        pairs = self.letter(letters) + self.digit(digits)
        question = sum(table(asked[:, i]) for i, table in enumerate(self.asked))
        x = torch.cat((pairs, question[:, None]), dim=1)  # (B, pairs + 1, 32)
        return self.output(self.attention(x)[:, -1]).unflatten(-1, (4, 10))


def draw_four(num_lists, num_pairs=23):
    """Draw lists of different letters with digits, and four letters asked for.

    returns: letters and digits (num_lists, num_pairs), the letters asked for, their
        digits and their places, (num_lists, 4) each

    >>> [tuple(t.shape) for t in draw_four(2)]
    [(2, 23), (2, 23), (2, 4), (2, 4), (2, 4)]
    """
    letters, digits, *_ = draw_pairs(num_lists, num_pairs)
    places = torch.rand(num_lists, num_pairs).argsort(dim=-1)[:, :4]
    asked, answers = (t.gather(1, places) for t in (letters, digits))
    return letters, digits, asked, answers, places


def share_found(build, seed=0, lr=1e-2, steps=900, near=5):
    """Train a `ListReader`; say how often it finds what is near, and what is far.

    build: function () -> the attention layer, drawn after the seed is set
    near: how many pairs at the end of the list count as near
    returns: the shares of right answers about far and about near pairs, 2,000 new lists

    >>> len(share_found(nn.Identity, steps=2))
    2
    """

    def loss(reader, batch):
        letters, digits, asked, answers, _ = batch
        return F.cross_entropy(reader(letters, digits, asked).mT, answers)

    torch.manual_seed(seed)
    reader = ListReader(build())
    batches = [draw_four(64) for _ in range(steps)]
    train(reader, batches, loss, steps=steps, lr=lr)
    letters, digits, asked, answers, places = draw_four(2000)
    with torch.no_grad():
        right = reader(letters, digits, asked).argmax(dim=-1) == answers
    is_near = places >= letters.shape[1] - near
    return [right[chosen].float().mean().item() for chosen in (~is_near, is_near)]
