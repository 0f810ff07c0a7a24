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

    num_letters: None for 26 letters, none of them twice in a list (so num_pairs is at
        most 26); else that many, which return with new digits, and the last one counts
    returns: letters and digits (num_lists, num_pairs); a letter and its digit
        (num_lists,). After Arora et al. 2023, *Zoology*, section 3.
    """
    if num_letters is None:
        letters = torch.rand(num_lists, 26).argsort(dim=-1)[:, :num_pairs]
    else:
        letters = torch.randint(num_letters, (num_lists, num_pairs))
    digits = torch.randint(10, letters.shape)
    asked = letters.gather(1, torch.randint(num_pairs, (num_lists, 1)))
    positions = (letters == asked) * torch.arange(1, num_pairs + 1)
    last = positions.argmax(dim=-1, keepdim=True)  # where the letter occurs last
    return letters, digits, asked[:, 0], digits.gather(1, last)[:, 0]


class PairReader(nn.Module):
    """Score the ten digits for the letter asked for, (B, 10), by one way to retrieve.

    read: function (query (B, 1, K), key (B, pairs, K), value (B, pairs, V)) ->
        (B, 1, V), of vectors from learned tables
    """

    def __init__(self, read: Callable, key_width: int = 8, value_width: int = 8):
        super().__init__()
        self.query, self.key = nn.Embedding(26, key_width), nn.Embedding(26, key_width)
        self.value = nn.Embedding(10, value_width)
        self.output, self.read = nn.Linear(value_width, 10), read

    def retrieve(self, letters, digits, asked):
        query = self.query(asked)[:, None]  # (B, 1, K)
        return self.read(query, self.key(letters), self.value(digits))[:, 0]  # (B, V)

    def forward(self, letters, digits, asked):
        return self.output(self.retrieve(letters, digits, asked))


@torch.no_grad()
def retrieval_errors(reader: PairReader, lists: tuple[Tensor, ...]) -> list[float]:
    """Return the relative squared errors as retrieved, and after the best factor."""
    retrieved, values = reader.retrieve(*lists[:-1]), reader.value(lists[-1])
    factor = (retrieved * values).sum() / retrieved.square().sum()
    errors = [(f * retrieved - values).square().sum() for f in (1, factor)]
    return [(error / values.square().sum()).item() for error in errors]


def train_recall(
    build: Callable[[], nn.Module], draw: Callable, seed: int = 0, steps: int = 600
) -> nn.Module:
    """Return `build()`, trained on batches `draw(64, length)` of lengths in `PAIRS`."""
    torch.manual_seed(seed)
    batches = [draw(64, PAIRS[i % 4]) for i in range(steps)]
    reader = build()
    train(reader, batches, answer_loss, steps, lr=1e-2, show_progress=False)
    return reader


def recall_accuracy(reader: nn.Module, draw: Callable) -> list[float]:
    """Return the fraction of right answers for each length in `PAIRS`."""
    hits = [is_right(reader, draw(2000, num_pairs)) for num_pairs in PAIRS]
    return [hit.float().mean().item() for hit in hits]


def draw_two_way(num_lists: int, num_pairs: int = 16) -> tuple[Tensor, Tensor, Tensor]:
    """Draw lists of pairs of a letter and a number, all different, and two questions.

    returns: pairs (num_lists, num_pairs, 2); questions and answers (num_lists, 2)
    """
    pairs = torch.rand(num_lists, 26, 2).argsort(dim=1)[:, :num_pairs]
    positions = torch.randint(num_pairs, (num_lists, 2, 1)).expand(-1, -1, 2)
    first, second = pairs.gather(1, positions).unbind(dim=1)  # a pair for each question
    asked = torch.stack((first[:, 0], second[:, 1]), dim=1)
    return pairs, asked, torch.stack((first[:, 1], second[:, 0]), dim=1)


class TwoWayReader(nn.Module):
    """Score 26 numbers for a letter and 26 letters for a number, (B, 2, 26).

    attention: causal module from (B, T, 32) to (B, T, 16); questions are the last two
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
    """Train a `TwoWayReader` of the layer `build()`; return how often each is right."""
    torch.manual_seed(seed)
    reader, batches = TwoWayReader(build()), [draw_two_way(64) for _ in range(steps)]
    train(reader, batches, answer_loss, steps, lr, show_progress=False)
    return is_right(reader, draw_two_way(2000)).float().mean(dim=0).tolist()
