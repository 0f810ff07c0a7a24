"""Notebooks 14 and 15: recall what was paired with a letter in a list of pairs."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from utils.experiments import answer_loss, is_right
from utils.training import train

PAIRS = 4, 8, 16, 24  # the lengths of the lists


def draw_pairs(
    num_lists: int, num_pairs: int, num_letters: int | None = None
) -> tuple[Tensor, ...]:
    """Draw lists of letters with digits, and for each list a letter asked for.

    num_letters: None for letters that all differ; else the letters come from so many,
        again and again with new digits, and the last digit of a letter counts
    returns: letters (num_lists, num_pairs) from 0 to 25, their digits, and for each
        list the letter that is asked for and its digit, (num_lists,) each

    Raises ValueError for more pairs than letters if these must differ.

    Source: after the associative recall of Arora et al. 2023, *Zoology*, section 3.
    """
    if num_letters is None:
        if num_pairs > 26:
            raise ValueError(f"expected at most 26 different letters, got {num_pairs}")
        letters = torch.rand(num_lists, 26).argsort(dim=-1)[:, :num_pairs]
    else:
        letters = torch.randint(num_letters, (num_lists, num_pairs))
    digits = torch.randint(10, letters.shape)
    asked = letters.gather(1, torch.randint(num_pairs, (num_lists, 1)))
    positions = (letters == asked) * torch.arange(1, num_pairs + 1)
    last = positions.argmax(dim=-1, keepdim=True)  # where the letter occurs last
    return letters, digits, asked[:, 0], digits.gather(1, last)[:, 0]


class PairReader(nn.Module):
    """Score the ten digits for the letter asked for, (B, 10), by one way of reading.

    read: function (query, key, value) -> (B, 1, K), from a query (B, 1, K) and keys and
        values (B, pairs, K), which are looked up in learned tables
    letters, digits: (B, pairs);  asked: (B,)
    """

    def __init__(self, read: Callable, width: int = 8):
        super().__init__()
        self.query, self.key = nn.Embedding(26, width), nn.Embedding(26, width)
        self.value, self.output = nn.Embedding(10, width), nn.Linear(width, 10)
        self.read = read

    def forward(self, letters, digits, asked):
        query = self.query(asked)[:, None]  # (B, 1, K)
        x = self.read(query, self.key(letters), self.value(digits))
        return self.output(x[:, 0])


class StackReader(nn.Module):
    """Score the ten digits for the letter asked for, (B, 10), with attention layers.

    kinds: functions () -> a causal layer from (B, T, 16) to (B, T, 16); each layer adds
        to the stream, and the question is the last token
    letters, digits: (B, pairs);  asked: (B,)
    """

    def __init__(self, kinds: list[Callable]):
        super().__init__()
        self.letter, self.asked = nn.Embedding(26, 16), nn.Embedding(26, 16)
        self.digit, self.output = nn.Embedding(10, 16), nn.Linear(16, 10)
        self.layers = nn.ModuleList(kind() for kind in kinds)

    def forward(self, letters, digits, asked):
        pairs = self.letter(letters) + self.digit(digits)
        x = torch.cat((pairs, self.asked(asked)[:, None]), dim=1)  # (B, pairs + 1, 16)
        for layer in self.layers:
            x = x + layer(x)
        return self.output(x[:, -1])


def recall_accuracy(
    build: Callable[[], nn.Module],
    num_letters: int | None = None,
    seed: int = 0,
    steps: int = 600,
) -> list[float]:
    """Train a new reader on lists of all lengths, and test it on 2,000 new lists each.

    build: function () -> `PairReader` or `StackReader`, called after the seed is set
    num_letters: as in `draw_pairs`
    returns: the fraction of right answers for each length in `PAIRS`
    """
    torch.manual_seed(seed)
    batches = [draw_pairs(64, PAIRS[i % 4], num_letters) for i in range(steps)]
    reader = build()
    train(reader, batches, answer_loss, steps, lr=1e-2, show_progress=False)
    shares = []
    for num_pairs in PAIRS:
        hits = is_right(reader, draw_pairs(2000, num_pairs, num_letters))
        shares.append(hits.float().mean().item())
    return shares


def draw_two_way(num_lists: int, num_pairs: int = 16) -> tuple[Tensor, Tensor, Tensor]:
    """Draw lists of pairs, a letter and a number each, and two questions about each.

    No letter and no number occurs in a list twice.

    returns: pairs (num_lists, num_pairs, 2); a letter and a number asked for; the
        number and the letter they are paired with, (num_lists, 2) each
    """
    pairs = torch.rand(num_lists, 26, 2).argsort(dim=1)[:, :num_pairs]
    positions = torch.randint(num_pairs, (num_lists, 2, 1)).expand(-1, -1, 2)
    first, second = pairs.gather(1, positions).unbind(dim=1)  # a pair for each question
    asked = torch.stack((first[:, 0], second[:, 1]), dim=1)
    return pairs, asked, torch.stack((first[:, 1], second[:, 0]), dim=1)


class TwoWayReader(nn.Module):
    """Answer two questions about a list of pairs with an attention layer.

    attention: causal module from (B, T, 32) to (B, T, 16)
    pairs: (B, num_pairs, 2), letters and numbers, 26 of each
    asked: (B, 2), a letter and a number, each a token after the list
    returns: scores of the number for the letter, and of the letter for the number,
        (B, 2, 26)
    """

    def __init__(self, attention: nn.Module):
        super().__init__()
        self.listed = nn.ModuleList(nn.Embedding(26, 32) for _ in range(2))
        self.questions = nn.ModuleList(nn.Embedding(26, 32) for _ in range(2))
        self.outputs = nn.ModuleList(nn.Linear(16, 26) for _ in range(2))
        self.attention = attention

    def forward(self, pairs, asked):
        x = sum(table(pairs[..., i]) for i, table in enumerate(self.listed))
        asks = [table(asked[:, i, None]) for i, table in enumerate(self.questions)]
        x = self.attention(torch.cat((x, *asks), dim=1))[:, -2:]  # (B, 2, 16)
        answers = [output(x[:, i]) for i, output in enumerate(self.outputs)]
        return torch.stack(answers, dim=1)


def two_way_accuracy(
    build: Callable[[], nn.Module], seed: int = 0, lr: float = 1e-2, steps: int = 900
) -> list[float]:
    """Train a `TwoWayReader`, and test it on 2,000 new lists.

    build: function () -> the attention layer, called after the seed is set
    returns: the fraction of right answers to each of the two questions
    """
    torch.manual_seed(seed)
    reader, batches = TwoWayReader(build()), [draw_two_way(64) for _ in range(steps)]
    train(reader, batches, answer_loss, steps, lr, show_progress=False)
    return is_right(reader, draw_two_way(2000)).float().mean(dim=0).tolist()
