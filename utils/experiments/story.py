"""Notebook 05: predict the next letter, with a mask, a late mask, and no mask."""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor, nn

from utils import attention as course
from utils.data import load_text, sliding_windows
from utils.embeddings import TokenAndPositionEmbedding
from utils.experiments import answer_loss
from utils.training import train


@cache
def story_letters() -> tuple[list[str], Tensor]:
    """Return the 75 letters that occur in the story, sorted, and the story as ids."""
    text = load_text()
    letters = sorted(set(text))
    return letters, torch.tensor([letters.index(letter) for letter in text])


def story_windows() -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Cut the story into windows of 32 letters.

    returns: inputs and targets (N, 32) to train on, one window at each of the first
        30,000 letters; and the same of unseen text, one window after the other
    """
    _, ids = story_letters()
    return sliding_windows(ids[:30_000], 32, 1), sliding_windows(ids[30_000:], 32, 32)


class StoryModel(nn.Module):
    """Score the next letter: an embedding, one attention layer, an MLP.

    layer: module from (B, T, 32) to (B, T, 32);  token_ids: (B, T)
    returns: logits (B, T, 75)
    """

    def __init__(self, layer: nn.Module):
        super().__init__()
        self.embedding = TokenAndPositionEmbedding(75, 32, d_model=32)
        self.attention = layer
        self.mlp = nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 75))

    def forward(self, token_ids):
        x = self.embedding(token_ids)  # (B, T, D)
        return self.mlp(x + self.attention(x))  # (B, T, V)


class LateMaskAttention(course.CausalAttention):
    """The layer of 05 with its fault: it is masked after the softmax, so it leaks."""

    def forward(self, x):  # without dropout
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = query @ key.transpose(-2, -1) / key.shape[-1] ** 0.5
        weights = torch.softmax(scores, dim=-1)  # (B, T, T)
        mask = self.mask[: x.shape[1], : x.shape[1]]
        return weights.masked_fill(~mask, 0.0) @ value  # too late


def train_on_story(
    build: Callable[[], nn.Module], seed: int = 1, steps: int = 400
) -> tuple[nn.Module, float, float]:
    """Train a new model on the story.

    build: function () -> model from ids (B, T) to logits (B, T, V), called after the
        seed is set
    returns: the model, its loss over the last 50 steps, and its loss on unseen text
    """
    torch.manual_seed(seed)
    model = build()
    (inputs, targets), unseen = story_windows()
    rows = torch.randint(len(inputs), (steps, 32))
    batches = [(inputs[row], targets[row]) for row in rows]
    losses = train(model, batches, answer_loss, steps, lr=1e-2, show_progress=False)
    with torch.no_grad():
        return model, sum(losses[-50:]) / 50, answer_loss(model, unseen).item()


@torch.no_grad()
def prefix_loss(model: nn.Module) -> float:
    """Return the loss on unseen text if no letter is in sight but those before.

    Each letter is predicted from the beginning of its window alone, as in writing.
    """
    _, (unseen, answers) = story_windows()  # (N, 32) each
    losses = [
        answer_loss(lambda ids: model(ids)[:, -1], (unseen[:, :t], answers[:, t - 1]))
        for t in range(1, unseen.shape[1] + 1)
    ]
    return torch.stack(losses).mean().item()
