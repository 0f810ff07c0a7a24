"""Notebook 11: strands of DNA whose first bases pair with their last ones."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils.embeddings import TokenAndPositionEmbedding
from utils.experiments.digits import open_block
from utils.training import TrainingConfig, train

STEM, LOOP, LENGTH, HIDDEN = 8, 4, 20, 4  # 4: a fifth token, for a hidden base


def hairpins(num_strands: int) -> Tensor:
    """Draw strands (B, 20): eight bases, a loop of four, and the eight partners."""
    left = torch.randint(4, (num_strands, STEM))
    loop = torch.randint(4, (num_strands, LOOP))
    return torch.cat([left, loop, 3 - left.flip(1)], dim=1)  # (B, T)


def strand_reader() -> nn.Sequential:
    """Return an untrained model from strands (B, T) to logits (B, T, 4)."""
    embedding = TokenAndPositionEmbedding(5, LENGTH, d_model=32)
    return nn.Sequential(embedding, open_block(32, 1, LENGTH), nn.Linear(32, 4))


def strand_loss(model: nn.Module, strands: Tensor) -> Tensor:
    """Hide 15 % of the bases; return the mean cross-entropy of those, a scalar."""
    hidden = torch.rand(strands.shape) < 0.15
    logits = model(strands.masked_fill(hidden, HIDDEN))
    return F.cross_entropy(logits[hidden], strands[hidden])


def train_on_strands(model: nn.Module, strands: Tensor, steps: int = 200) -> nn.Module:
    """Train a model on random batches of 64 strands; return it."""

    def draw(number):
        return strands[torch.randint(len(strands), (64,))]

    config = TrainingConfig(weight_decay=0.0)
    train(model, draw, strand_loss, steps, 3e-3, show_progress=False, config=config)
    return model


@torch.no_grad()
def strand_accuracy(model: nn.Module, strands: Tensor) -> Tensor:
    """Return how often each position's base is named when it's hidden, (T,)."""
    shares = []
    for position in range(LENGTH):
        hidden = strands.index_fill(1, torch.tensor(position), HIDDEN)
        guesses = model(hidden)[:, position].argmax(dim=-1)  # (B,)
        shares.append((guesses == strands[:, position]).float().mean())
    return torch.stack(shares)


@torch.no_grad()
def partner_weights(model: nn.Sequential, strand: Tensor) -> Tensor:
    """Return the weights (T, T); in row i position i is hidden, and is the query."""
    embedding, block, _ = model
    hidden = strand.repeat(LENGTH, 1).fill_diagonal_(HIDDEN)  # row i hides position i
    x = block.norm1(embedding(hidden))  # (T, T, D)
    _, weights = block.attention(x, need_weights=True)  # (T, 1, T, T)
    return weights[range(LENGTH), 0, range(LENGTH)]  # (query, key)
