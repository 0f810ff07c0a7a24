"""Notebook 07: read pieces of the story longer than those in training."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils.attention import (
    MultiHeadAttention,
    causal_mask,
    masked_softmax,
    merge_heads,
    split_heads,
)
from utils.data import sliding_windows
from utils.embeddings import rotate_pairs
from utils.experiments import answer_loss
from utils.experiments.story import story_letters
from utils.training import train

SPEEDS = 10000 ** (-torch.arange(0, 8, 2) / 8)  # of the four rotary pairs of a head
HELD_OUT = 6000  # letters at the end of the story


def plain_scores(query: Tensor, key: Tensor) -> Tensor:
    """Return the scaled dot products of queries and keys, without positions.

    query, key: (B, H, T, K)
    returns: (B, H, T, T)
    """
    return query @ key.mT / query.shape[-1] ** 0.5


class ScoredAttention(MultiHeadAttention):
    """The layer of 06 with four heads of width 8 and a scoring function of its own."""

    def __init__(self, score: Callable):
        super().__init__(32, 32, context_length=32, dropout=0.0, num_heads=4)
        self.score = score

    def forward(self, x):
        projections = self.W_query, self.W_key, self.W_value
        query, key, value = (split_heads(W(x), 4) for W in projections)
        weights = masked_softmax(self.score(query, key), causal_mask(x.shape[1]))
        return self.out_proj(merge_heads(weights @ value))


class LetterReader(nn.Module):
    """Score the next letter at all positions: embedding, attention layer, MLP.

    score: function (query, key), (B, H, T, K) each, to scores (B, H, T, T)
    positions: function of the number of letters to vectors (T, 32), which are added
    token_ids: (B, T)
    returns: logits (B, T, V)
    """

    def __init__(
        self, score: Callable = plain_scores, positions: Callable | None = None
    ):
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


def train_reader(
    reader: LetterReader,
    length: int = 32,
    steps: int = 300,
    batch_size: int = 32,
    seed: int = 0,
) -> LetterReader:
    """Train on pieces of `length` letters, the same for every reader of one seed."""
    ids = story_letters()[1][:-HELD_OUT]
    inputs, targets = sliding_windows(ids, length, stride=1)
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(len(inputs), (steps, batch_size), generator=generator)
    batches = [(inputs[row], targets[row]) for row in rows]
    train(reader, batches, answer_loss, steps, lr=1e-2, show_progress=False)
    return reader


@torch.no_grad()
def loss_at(reader: Callable, length: int) -> float:
    """Return the loss on the last 16 of `length` held-out letters, 16 to 300.

    The pieces end at the same letters for every length, so the answers are the same.
    """
    _, ids = story_letters()
    ends = torch.arange(len(ids) - HELD_OUT + 300, len(ids) - 1, 64)
    pieces = ids[ends[:, None] + torch.arange(-length, 1)]  # (N, length + 1)
    logits = reader(pieces[:, :-1])[:, -16:]  # (N, 16, V)
    return F.cross_entropy(logits.flatten(0, 1), pieces[:, -16:].flatten()).item()


def loss_of_guessing() -> float:
    """Return the loss of a model that knows only how often each letter occurs."""
    letters, ids = story_letters()
    counts = torch.bincount(ids[:-HELD_OUT], minlength=len(letters)) + 1
    return loss_at(lambda token_ids: counts.log().expand(*token_ids.shape, -1), 16)


def compare_lengths(readers: dict, lengths: tuple[int, ...]) -> dict[str, list[float]]:
    """Print the loss of each reader at each length, and return it.

    A table of positions that ends before a length gets nan there.

    readers: dict from a name to a reader
    returns: dict from the name to a list of losses
    """
    print(f"{'letters read':20}", *[f"{length:6}" for length in lengths])
    losses = {}
    for name, reader in readers.items():
        losses[name] = []
        for length in lengths:
            try:
                losses[name].append(loss_at(reader, length))
            except IndexError:  # the table of positions ends
                losses[name].append(float("nan"))
        shown = ["error" if x != x else f"{x:.2f}" for x in losses[name]]
        print(f"{name:20}", *[f"{text:>6}" for text in shown])
    return losses


def rotate_by(x: Tensor, angles: Tensor) -> Tensor:
    """Rotate the pairs of x (B, H, T, K) by angles (T, K / 2)."""
    return rotate_pairs(x, angles.cos(), angles.sin())


def rotary_scores(query: Tensor, key: Tensor, speeds: Tensor = SPEEDS) -> Tensor:
    """Rotate queries and keys by their positions, and return their scores.

    query, key: (B, H, T, K)
    speeds: (K / 2,), the angle between two neighbours, for each pair
    returns: (B, H, T, T)
    """
    angles = torch.arange(query.shape[-2])[:, None] * speeds  # (T, K / 2)
    return plain_scores(rotate_by(query, angles), rotate_by(key, angles))


def far_keys(num_letters: int) -> Tensor:
    """Return (T, T), True where a key is 32 or more positions before its query."""
    positions = torch.arange(num_letters)
    return positions[:, None] - positions >= 32


def held_scores(
    query: Tensor, key: Tensor, pairs: list[int], speeds: Tensor = SPEEDS
) -> Tensor:
    """Return rotary scores where some pairs rotate no further than at distance 31.

    In these pairs a far key gets the score of a query at position 31 with a key at 0.

    query, key: (B, H, T, K);  pairs: numbers of the pairs that are held
    returns: (B, H, T, T)
    """
    positions = torch.arange(query.shape[-2])[:, None]  # (T, 1)
    held = torch.isin(torch.arange(len(speeds)), torch.tensor([*pairs]))  # (K / 2,)
    of_query = torch.where(held, 31 * speeds, positions * speeds)  # (T, K / 2)
    of_key = torch.where(held, 0.0, positions * speeds)
    far = plain_scores(rotate_by(query, of_query), rotate_by(key, of_key))
    usual = rotary_scores(query, key, speeds)
    return torch.where(far_keys(len(positions)), far, usual)
