"""Notebook 15: follow a text of letters with digits, which a reset token clears."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils.experiments import is_right

LETTERS = 8
RESET, NONE = LETTERS, 10  # the reset token, and the answer "none"


def draw_streams(
    num_streams: int, num_tokens: int, reset: float = 1 / 7
) -> tuple[Tensor, ...]:
    """Draw texts of letters with digits, where a token is a reset by a chance.

    returns: tokens and digits (num_streams, num_tokens), RESET and NONE for a reset; a
        letter, and its last digit since the last reset or NONE (num_streams,)
    """
    tokens = torch.randint(LETTERS, (num_streams, num_tokens))
    digits = torch.randint(10, tokens.shape)
    resets = torch.rand(tokens.shape) < reset
    tokens, digits = tokens.masked_fill(resets, RESET), digits.masked_fill(resets, NONE)
    asked = torch.randint(LETTERS, (num_streams, 1))
    positions = ((tokens == asked) | resets) * torch.arange(1, num_tokens + 1)
    last = positions.argmax(dim=-1, keepdim=True)  # of the letter or a reset, or 0
    occurs = positions.gather(1, last) > 0
    answer = torch.where(occurs, digits.gather(1, last), NONE)
    return tokens, digits, asked[:, 0], answer[:, 0]


class StreamReader(nn.Module):
    """Score the ten digits and NONE for the letter asked for, (B, 11), from a state.

    rule: function (query, key, value, beta, gate) -> outputs, (B, T) or (B, T, 8) each
    """

    def __init__(self, rule: Callable):
        super().__init__()
        self.query, self.key = nn.Embedding(LETTERS, 8), nn.Embedding(LETTERS + 1, 8)
        self.value, self.output = nn.Embedding(11, 8), nn.Linear(8, 11)
        self.numbers, self.rule = nn.Embedding(LETTERS + 1, 2), rule

    def forward(self, tokens, digits, asked):
        query = F.normalize(self.query(asked)[:, None], dim=-1)  # (B, 1, 8)
        key, value = F.normalize(self.key(tokens), dim=-1), self.value(digits)
        beta, gate = torch.sigmoid(self.numbers(tokens)).unbind(dim=-1)  # (B, T) each
        outputs = self.rule(query.expand_as(key), key, value, beta, gate)
        return self.output(outputs[:, -1])  # the query retrieves after the last token


def stream_accuracy(reader: StreamReader, texts: tuple[Tensor, ...]) -> list[float]:
    """Return the fraction of right answers where there is a digit, and where not."""
    hits, is_none = is_right(reader, texts).float(), texts[-1] == NONE
    return [hits[~is_none].mean().item(), hits[is_none].mean().item()]


def old_digit_fraction(reader: StreamReader, texts: tuple[Tensor, ...]) -> float:
    """Return how often an answer is the digit that a reset should have cleared."""
    tokens, digits, asked, answer = texts
    positions = (tokens == asked[:, None]) * torch.arange(1, tokens.shape[1] + 1)
    last, is_over = positions.argmax(dim=-1, keepdim=True), positions.any(dim=-1)
    is_old = is_right(reader, (tokens, digits, asked, digits.gather(1, last)[:, 0]))
    return is_old[is_over & (answer == NONE)].float().mean().item()
