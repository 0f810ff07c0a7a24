"""A patient that writes: the model of `data/tales` with one wrong step in a block."""

import torch

from utils.data import load_text, sliding_windows
from utils.model import GPT, next_token_loss
from utils.training.text import load_tales_model

BLOCK, WINDOWS = 2, 8  # the broken block, and how much of the story is read


def broken_model() -> GPT:
    """Load the model of `data/tales` with one wrong step in one of its blocks.

    >>> len(broken_model().blocks)
    4
    """
    model, *_ = load_tales_model()
    attention = model.blocks[BLOCK].attention
    with torch.no_grad():  # as if its scores were not divided by the root
        attention.W_query.weight *= attention.head_dim**0.5
    return model


def examine_model(model: GPT) -> None:
    """Print its loss on the course's story, and how evenly each block shares weights.

    Each number is beside that of the healthy model. The entropy of a row of weights w
    is -Σ w ln w, in nats: 0 if one token has all, ln n if n tokens have equally much.
    It is the mean over windows, heads and rows.

    model: `broken_model()`, or the model of `data/tales` with other weights
    """
    healthy, encode, _ = load_tales_model()
    size = healthy.context_length
    ids = encode(load_text()[:9_000])[: WINDOWS * size + 1]
    batch = sliding_windows(ids, size, size)
    here, there = _measure(model, batch), _measure(healthy, batch)
    print(f"{'':36}{'this model':>12}{'healthy':>10}")
    for label, value in here.items():
        print(f"{label:36}{value:12.2f}{there[label]:10.2f}")


@torch.no_grad()
def _measure(model, batch):
    """Return the loss and the entropy of each block: what -> number."""
    found = {"loss on the story, nats per token": next_token_loss(model, batch)}
    x = model.embedding(batch[0])
    for number, block in enumerate(model.blocks):
        _, weights = block.attention(block.norm1(x), need_weights=True)
        rows = torch.special.entr(weights).sum(dim=-1)  # (B, H, T)
        found[f"entropy of the weights, block {number}"] = rows.mean()
        x = block(x)
    return {label: number.item() for label, number in found.items()}
