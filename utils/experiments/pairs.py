"""Notebook 13: look up the last digit of a letter in a list of letters with digits."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils.experiments import answer_loss, is_right
from utils.training import train

PAIRS = 4, 8, 16, 24  # the lengths of the lists
RESET, NONE = 26, 10  # the reset token, and the digit "none"


def last_positions(mask: Tensor) -> Tensor:
    """Return where the last True of each row is, (B, 1) of (B, T)."""
    numbered = mask * torch.arange(1, mask.shape[-1] + 1)  # 1 to T, or 0 for False
    return numbered.argmax(dim=-1, keepdim=True)  # (B, 1), and 0 without a True


def draw_pairs(
    num_lists: int, num_pairs: int, num_letters: int | None = None
) -> tuple[Tensor, ...]:
    """Draw letters and digits (B, pairs), and a letter asked for with its digit (B,).

    num_letters: None for 26, none of them twice in a list; else that many, which return
        with new digits, and the last one counts

    Source: Arora et al. 2023, *Zoology*, section 3.
    """
    if num_letters is None:
        letters = torch.rand(num_lists, 26).argsort(dim=-1)[:, :num_pairs]
    else:
        letters = torch.randint(num_letters, (num_lists, num_pairs))
    digits = torch.randint(10, letters.shape)
    asked = letters.gather(1, torch.randint(num_pairs, (num_lists, 1)))
    last = last_positions(letters == asked)
    return letters, digits, asked[:, 0], digits.gather(1, last)[:, 0]


class PairReader(nn.Module):
    """Write a list into a state by a rule, and look up a letter's digit.

    rule: takes query, key (B, T, K), value (B, T, d_v), beta and gate (B, T), and
        returns (B, T, d_v), as `utils.delta.gated_delta_rule` does
    letters, digits: (B, T), asked: (B,), as `draw_pairs` returns them
    returns: logits (B, 11) of the digits and of `NONE`

    Queries and keys have length 1. A token has its beta and gate from its letter.
    """

    def __init__(self, rule: Callable, key_width: int = 8, value_width: int = 8):
        super().__init__()
        self.query, self.key = nn.Embedding(26, key_width), nn.Embedding(27, key_width)
        self.value = nn.Embedding(11, value_width)
        self.beta, self.gate = nn.Embedding(27, 1), nn.Embedding(27, 1)
        self.output, self.rule = nn.Linear(value_width, 11), rule

    def forward(self, letters: Tensor, digits: Tensor, asked: Tensor) -> Tensor:
        query = F.normalize(self.query(asked)[:, None], dim=-1)  # (B, 1, K)
        key = F.normalize(self.key(letters), dim=-1)  # (B, T, K)
        beta = torch.sigmoid(self.beta(letters)[..., 0])  # (B, T)
        gate = torch.sigmoid(self.gate(letters)[..., 0])
        query, value = query.expand_as(key), self.value(digits)
        outputs = self.rule(query, key, value, beta, gate)  # (B, T, d_v)
        return self.output(outputs[:, -1])  # read after the last token


class StackReader(nn.Module):
    """Read a list and a question with a stack of layers, each added to its input.

    kinds: functions that build a layer from (B, T, 16) to the same
    letters, digits: (B, T), asked: (B,), as `draw_pairs` returns them
    returns: logits (B, 10) of the digits
    """

    def __init__(self, kinds: list[Callable[[], nn.Module]]):
        super().__init__()
        self.letter, self.asked = nn.Embedding(26, 16), nn.Embedding(26, 16)
        self.digit, self.output = nn.Embedding(10, 16), nn.Linear(16, 10)
        self.layers = nn.ModuleList(kind() for kind in kinds)

    def forward(self, letters: Tensor, digits: Tensor, asked: Tensor) -> Tensor:
        pairs = self.letter(letters) + self.digit(digits)
        x = torch.cat((pairs, self.asked(asked)[:, None]), dim=1)  # (B, T + 1, 16)
        for layer in self.layers:
            x = x + layer(x)
        return self.output(x[:, -1])


def train_recall(
    build: Callable[[], nn.Module], draw: Callable, seed: int = 0, steps: int = 600
) -> nn.Module:
    """Return `build()`, trained on batches `draw(64, length)` of lengths in `PAIRS`."""
    torch.manual_seed(seed)
    batches = [draw(64, PAIRS[i % 4]) for i in range(steps)]
    reader = build()
    train(reader, batches, answer_loss, steps, lr=1e-2, show_progress=False)
    return reader


def trained_accuracy(
    build: Callable[[], nn.Module], draw: Callable, seed: int = 0, steps: int = 600
) -> float:
    """Return the fraction of right answers about 2,000 lists of 24 pairs, trained."""
    reader = train_recall(build, draw, seed, steps)
    return is_right(reader, draw(2000, 24)).float().mean().item()
