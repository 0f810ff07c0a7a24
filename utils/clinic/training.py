"""A short training of a patient: what its losses say, and what they don't."""

import copy
import math

import torch
from torch import nn
from torch.nn import functional as F

from utils.clinic.instruments import name_of, show
from utils.clinic.patients import expect_layer, twin

WORDS, BACK, COPIED = 6, 3, 0.8  # a word is often the one three places before it
LENGTH = 16


def _draw_sentences(count, generator):
    """Return (count, LENGTH + 1) words; most repeat the word three places before."""
    words = torch.randint(WORDS, (count, LENGTH + 1), generator=generator)
    for t in range(BACK, LENGTH + 1):
        is_copied = torch.rand(count, generator=generator) < COPIED
        words[:, t] = torch.where(is_copied, words[:, t - BACK], words[:, t])
    return words


def lowest_loss() -> float:
    """Return the loss, in nats, of knowing how sentences are made and nothing more.

    >>> round(lowest_loss(), 3)
    0.719
    """
    other = (1 - COPIED) / WORDS
    right = COPIED + other
    return -right * math.log(right) - (WORDS - 1) * other * math.log(other)


class _NextWord(nn.Module):
    """Embeddings, an attention layer and a readout: score each word as the next."""

    def __init__(self, layer):
        super().__init__()
        width = layer.kind.build[0]
        self.words = nn.Embedding(WORDS, width)
        self.places = nn.Parameter(torch.randn(LENGTH, width))
        self.layer, self.readout = layer, nn.Linear(width, WORDS)

    def forward(self, words):
        x = self.words(words) + self.places
        return self.readout(x + self.layer(x))


def train_on_words(
    layer, steps: int = 200, seed: int = 0, lr: float = 1e-2
) -> list[float]:
    """Train a copy of a layer to predict the next word; return the losses, in nats.

    Four words in five repeat the word three places before them, the others are drawn.

    layer: a patient with weights, or a twin of one
    returns: one loss for each step

    Raises ValueError for a patient that is a function: it has no weights to train.
    """
    if not expect_layer(layer).kind.masked:
        raise ValueError(f"expected a layer with weights; got {layer.kind.name}")
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        model = _NextWord(copy.deepcopy(layer).train())
        generator, losses = torch.Generator().manual_seed(seed), []
        optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        for _ in range(steps):
            words = _draw_sentences(32, generator)
            scores = model(words[:, :-1])[:, BACK - 1 :]  # before, nothing is known
            loss = F.cross_entropy(scores.flatten(0, 1), words[:, BACK:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def training_curve(
    layer, steps: int = 200, title="The loss of the next word, in training"
) -> None:
    """Train a patient and its healthy twin on the same words; draw both losses.

    Raises ValueError as `train_on_words` does.
    """
    from utils import plots  # only here: a training needs no pictures

    here, there = (train_on_words(one, steps) for one in (layer, twin(layer)))
    parts = {"first 20 steps": slice(20), "last 20 steps": slice(-20, None)}
    means = [
        {n: sum(a[p]) / len(a[p]) for n, p in parts.items()} for a in (here, there)
    ]
    show("training_curve: the loss of the next word", layer, *means)
    style = {"xlabel": "step", "ylabel": "loss (nats)", "smooth": 10}
    style["reference"] = {"lowest honest loss": lowest_loss()}
    losses = {"healthy": there, name_of(layer): here}  # the patient, dashed, on top
    plots.chart.lines(losses, title=title, **style)
