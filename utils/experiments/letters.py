"""Notebook 10: read windows of the story of 05 longer than those in training."""

from collections.abc import Callable
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils import attention as course
from utils.data import load_text, sliding_windows
from utils.embeddings import rotate_pairs
from utils.experiments import answer_loss
from utils.training import train

SPEEDS = 10000 ** (-torch.arange(0, 8, 2) / 8)  # of the four rotary pairs of a head
HELD_OUT = 6000  # letters at the end of the story


@cache
def story_letters() -> tuple[list[str], Tensor]:
    """Return the 75 letters that occur in the story, sorted, and the story as ids."""
    text = load_text()
    letters = sorted(set(text))
    return letters, torch.tensor([letters.index(letter) for letter in text])


def plain_scores(query: Tensor, key: Tensor) -> Tensor:
    """Return the scores (B, H, T, T) of queries and keys (B, H, T, K), unrotated."""
    return query @ key.mT / query.shape[-1] ** 0.5


class ScoredAttention(course.MultiHeadAttention):
    """The layer of 06 with four heads of width 8 and a scoring function of its own."""

    def __init__(self, score: Callable):
        super().__init__(32, 32, context_length=32, dropout=0.0, num_heads=4)
        self.score = score

    def forward(self, x):
        projections = self.W_query, self.W_key, self.W_value
        query, key, value = (course.split_heads(W(x), 4) for W in projections)
        scores, mask = self.score(query, key), course.causal_mask(x.shape[1])
        weights = course.masked_softmax(scores, mask)
        return self.out_proj(course.merge_heads(weights @ value))


class LetterReader(nn.Module):
    """Score the next letter at all positions: (B, T) to (B, T, V).

    score: function of queries and keys, (B, H, T, K) each, to scores (B, H, T, T)
    positions: function of the number of letters to vectors (T, 32), which are added
    """

    def __init__(self, score: Callable = plain_scores, positions=None):
        super().__init__()
        num_letters = len(story_letters()[0])
        self.tokens, self.positions = nn.Embedding(num_letters, 32), positions
        self.attention = ScoredAttention(score)
        layers = nn.Linear(32, 128), nn.GELU(), nn.Linear(128, num_letters)
        self.mlp = nn.Sequential(*layers)

    def forward(self, token_ids):
        x = self.tokens(token_ids)  # (B, T, D)
        if self.positions is not None:
            x = x + self.positions(token_ids.shape[1])  # (T, D)
        return self.mlp(x + self.attention(x))  # (B, T, V)

    def with_score(self, score: Callable) -> "LetterReader":
        """Return a reader with the same weights and another score."""
        other = LetterReader(score, self.positions)
        other.load_state_dict(self.state_dict())
        return other


def train_reader(reader, length=32, steps=300, batch_size=32, seed=0, lr=1e-2):
    """Train on windows of `length` letters, the same for every reader of one seed."""
    ids = story_letters()[1][:-HELD_OUT]
    inputs, targets = sliding_windows(ids, length, stride=1)
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(len(inputs), (steps, batch_size), generator=generator)
    batches = [(inputs[row], targets[row]) for row in rows]
    train(reader, batches, answer_loss, steps, lr, show_progress=False)
    return reader


@torch.no_grad()
def loss_at(reader: Callable, length: int) -> float:
    """Return the loss on the last 16 of `length` held-out letters, 16 to 300."""
    _, ids = story_letters()
    ends = torch.arange(len(ids) - HELD_OUT + 300, len(ids) - 1, 64)
    windows = ids[ends[:, None] + torch.arange(-length, 1)]  # (N, length + 1)
    logits = reader(windows[:, :-1])[:, -16:]  # (N, 16, V)
    return F.cross_entropy(logits.flatten(0, 1), windows[:, -16:].flatten()).item()


def compare_lengths(readers: dict, lengths: tuple[int, ...]) -> dict[str, list]:
    """Print the loss of each reader at each length, and return it: name -> losses."""
    print(f"{'letters read':20}", *[f"{length:6}" for length in lengths])
    losses = {}
    for name, reader in readers.items():
        losses[name] = [loss_at(reader, length) for length in lengths]
        print(f"{name:20}", *[f"{loss:6.2f}" for loss in losses[name]])
    return losses


def rotate_by(x: Tensor, angles: Tensor) -> Tensor:
    """Rotate the pairs of x (B, H, T, K) by angles (T, K / 2)."""
    return rotate_pairs(x, angles.cos(), angles.sin())


def rotary_scores(query: Tensor, key: Tensor, speeds: Tensor = SPEEDS) -> Tensor:
    """Return the scores of queries and keys, rotated at speeds (K / 2,)."""
    angles = torch.arange(query.shape[-2])[:, None] * speeds  # (T, K / 2)
    return plain_scores(rotate_by(query, angles), rotate_by(key, angles))


def far_keys(num_letters: int) -> Tensor:
    """Return (T, T), True where a key is 32 or more positions before its query."""
    positions = torch.arange(num_letters)
    return positions[:, None] - positions >= 32


def held_scores(query, key, pairs: list[int], speeds=SPEEDS, distance=31) -> Tensor:
    """Return rotary scores in which some pairs show all far keys at one distance."""
    positions = torch.arange(query.shape[-2])[:, None]  # (T, 1)
    query_angles, key_angles = positions * speeds, positions * speeds  # (T, K / 2)
    query_angles[:, pairs] = distance * speeds[pairs]  # the same for every query
    key_angles[:, pairs] = 0.0  # and for every key
    held = plain_scores(rotate_by(query, query_angles), rotate_by(key, key_angles))
    usual = rotary_scores(query, key, speeds)
    return torch.where(far_keys(len(positions)), held, usual)  # (B, H, T, T)


def queries_and_keys(reader: LetterReader, length: int) -> list[Tensor]:
    """Return queries and keys (N, H, T, K) of N held-out windows, not rotated."""
    _, ids = story_letters()
    ends = torch.arange(len(ids) - HELD_OUT + 300, len(ids) - 1, 64)
    x = reader.tokens(ids[ends[:, None] + torch.arange(-length, 0)])  # (N, T, D)
    projections = reader.attention.W_query, reader.attention.W_key
    return [course.split_heads(W(x), 4) for W in projections]  # (N, H, T, K) each


@torch.no_grad()
def weight_of_far_keys(reader, length: int, combine=torch.sum) -> Tensor:
    """Return (H,), the weight of all far keys, or with `torch.amax` the largest one.

    It is the mean over the last 16 queries of all held-out windows.
    """
    query, key = queries_and_keys(reader, length)
    scores, mask = reader.attention.score(query, key), course.causal_mask(length)
    weights = course.masked_softmax(scores, mask)
    far = (weights * far_keys(length))[:, :, -16:]  # (N, H, 16, T)
    return combine(far, dim=-1).mean((0, 2))  # (H,)
