"""Notebook 15: follow a text of letters with digits, which a reset token clears."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils.experiments import answer_loss, is_right
from utils.experiments.pairs import PAIRS
from utils.training import train

LETTERS = 8
RESET, NONE = LETTERS, 10  # the reset token, and the answer "none"


def draw_streams(num_streams: int, num_tokens: int) -> tuple[Tensor, ...]:
    """Draw texts of letters with digits and reset tokens, which end what was before.

    One token of seven is a reset. One of eight letters is asked for: its last digit
    since the last reset, or "none" if it hasn't come since.

    returns: tokens (num_streams, num_tokens), 8 for a reset; their digits, 10 for a
        reset; for each text the letter and its answer, 10 for none, (num_streams,) each
    """
    tokens = torch.randint(LETTERS, (num_streams, num_tokens))
    digits = torch.randint(10, tokens.shape)
    resets = torch.rand(tokens.shape) < 1 / 7
    tokens, digits = tokens.masked_fill(resets, RESET), digits.masked_fill(resets, NONE)
    asked = torch.randint(LETTERS, (num_streams, 1))
    positions = ((tokens == asked) | resets) * torch.arange(1, num_tokens + 1)
    last = positions.argmax(dim=-1, keepdim=True)  # of the letter or a reset, or 0
    occurs = positions.gather(1, last) > 0
    answer = torch.where(occurs, digits.gather(1, last), NONE)
    return tokens, digits, asked[:, 0], answer[:, 0]


class StreamReader(nn.Module):
    """Update a state by a rule at each token, and score the last digit of a letter.

    rule: function (state, key, value, beta, gate) -> the next state, (B, 8, 8), from a
        key and a value (B, 1, 8) and two numbers from 0 to 1, (B, 1, 1) each
    tokens, digits: (B, T);  asked: (B,)
    returns: scores of the ten digits and of "none", (B, 11)

    Queries, keys, values and both numbers are looked up in learned tables; queries and
    keys are normalised to length 1.
    """

    def __init__(self, rule: Callable):
        super().__init__()
        self.query, self.key = nn.Embedding(LETTERS, 8), nn.Embedding(LETTERS + 1, 8)
        self.value, self.output = nn.Embedding(11, 8), nn.Linear(8, 11)
        self.numbers, self.rule = nn.Embedding(LETTERS + 1, 2), rule

    def forward(self, tokens, digits, asked):
        query = F.normalize(self.query(asked)[:, None], dim=-1)  # (B, 1, 8)
        key, value = F.normalize(self.key(tokens), dim=-1), self.value(digits)
        beta, gate = torch.sigmoid(self.numbers(tokens)).split(1, dim=-1)  # (B, T, 1)
        state = key.new_zeros(len(key), 8, 8)
        for step in zip(*(t.split(1, dim=1) for t in (key, value, beta, gate))):
            state = self.rule(state, *step)
        return self.output((query @ state)[:, 0])

    def gates(self) -> Tensor:
        """Return the gates of the eight letters and of the reset token, (9,)."""
        return torch.sigmoid(self.numbers.weight[:, 1]).detach()


def train_stream_reader(
    rule: Callable, seed: int = 0, steps: int = 600
) -> tuple[StreamReader, tuple[Tensor, ...]]:
    """Train a reader on texts of all lengths; return it and 2,000 new long texts."""
    torch.manual_seed(seed)
    batches = [draw_streams(64, PAIRS[i % 4]) for i in range(steps)]
    reader = StreamReader(rule)
    train(reader, batches, answer_loss, steps, lr=1e-2, show_progress=False)
    return reader, draw_streams(2000, PAIRS[-1])


def stream_accuracy(reader: StreamReader, texts: tuple[Tensor, ...]) -> list[float]:
    """Return the fraction of right answers where there is a digit, and where not."""
    hits, is_none = is_right(reader, texts).float(), texts[-1] == NONE
    return [hits[~is_none].mean().item(), hits[is_none].mean().item()]
