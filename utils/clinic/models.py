"""A patient that writes: the model of `data/tales` with one wrong step in a block."""

import torch

from utils.checkpoints import check_weight_shapes
from utils.data import load_text, sliding_windows
from utils.model import GPT, mean_loss
from utils.training.text import load_tales_model
from utils.validation import check_inputs

BLOCK = 2  # the broken block
NUM_TOKENS = 5200  # of the course's story are read, as in notebooks 06 and 09


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


@check_inputs()
def examine_model(model: GPT) -> None:
    """Print its loss on the course's story, and how evenly each block shares weights.

    Each number is beside that of the healthy model. The loss is the mean over the
    second half of each window. The entropy of a row of weights w is -Σ w ln w, in nats:
    0 if one token has all, ln n if n tokens have equally much. It is the mean over
    windows, heads and rows.

    model: `broken_model()`, or the model of `data/tales` with other weights
    """
    healthy, encode, _ = load_tales_model()
    check_weight_shapes(healthy, model.state_dict(), "the model")
    size = healthy.context_length
    batch = sliding_windows(encode(load_text())[:NUM_TOKENS], size, size)
    values, healthy_values = _measure(model, batch), _measure(healthy, batch)
    print(f"{'':36}{'this model':>12}{'healthy':>10}")
    for label, value in values.items():
        print(f"{label:36}{value:12.2f}{healthy_values[label]:10.2f}")


@torch.no_grad()
def _measure(model, batch):
    """Return the loss and the entropy of each block: what -> number."""
    inputs, targets = batch
    half = inputs.shape[1] // 2
    loss = mean_loss(model(inputs)[:, half:], targets[:, half:])
    measures = {"loss on the story, nats per token": loss}
    x = model.embedding(inputs)
    for number, block in enumerate(model.blocks):
        _, weights = block.attention(block.norm1(x), need_weights=True)
        rows = torch.special.entr(weights).sum(dim=-1)  # (B, H, T)
        measures[f"entropy of the weights, block {number}"] = rows.mean()
        x = block(x)
    return {label: number.item() for label, number in measures.items()}
