"""A short training of a patient: what its losses say, and what they don't."""

import copy
import math

import torch
from torch import nn

from utils.clinic.patients import LENGTH, check_layer
from utils.model import mean_loss
from utils.training import train
from utils.validation import NonNegativeInt, check_inputs, raise_unless

NUM_WORDS = 6
DISTANCE, P_COPY = 3, 0.8  # a word is often the one three places before it


def _draw_sentences(count, generator):
    """Return (count, LENGTH + 1) words; most repeat the word three places before."""
    words = torch.randint(NUM_WORDS, (count, LENGTH + 1), generator=generator)
    for t in range(DISTANCE, LENGTH + 1):
        is_copied = torch.rand(count, generator=generator) < P_COPY
        words[:, t] = torch.where(is_copied, words[:, t - DISTANCE], words[:, t])
    return words


def lowest_loss() -> float:
    """Return the loss, in nats, of knowing how sentences are made and nothing more.

    >>> round(lowest_loss(), 3)
    0.719
    """
    p_other = (1 - P_COPY) / NUM_WORDS
    p_copied = P_COPY + p_other
    probs = [p_copied] + [p_other] * (NUM_WORDS - 1)
    return -sum(p * math.log(p) for p in probs)


class _NextWordModel(nn.Module):
    """Embeddings, an attention layer and a readout: score each word as the next."""

    def __init__(self, layer):
        super().__init__()
        width = layer.kind.width
        self.words = nn.Embedding(NUM_WORDS, width)
        self.positions = nn.Parameter(torch.randn(LENGTH, width))
        self.layer, self.readout = layer, nn.Linear(width, NUM_WORDS)

    def forward(self, words):
        x = self.words(words) + self.positions
        return self.readout(x + self.layer(x))


def _next_word_loss(model, words):
    scores = model(words[:, :-1])[:, DISTANCE - 1 :]  # before, nothing is known
    return mean_loss(scores, words[:, DISTANCE:])


@check_inputs()
def train_on_words(
    layer, steps: int = 200, seed: NonNegativeInt = 0, lr: float = 1e-2
) -> list[float]:
    """Train a copy of a layer to predict the next word; return the losses, in nats.

    Four words in five repeat the word three places before them, the others are drawn.

    layer: a patient with weights, so not a function, or a twin of one
    returns: one loss for each step
    """
    kind = check_layer(layer).kind
    raise_unless(kind.is_masked, "a layer with weights", kind.name)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        model = _NextWordModel(copy.deepcopy(layer))
        generator = torch.Generator().manual_seed(seed)

        def draw(number):
            return _draw_sentences(32, generator)

        return train(model, draw, _next_word_loss, steps, lr, show_progress=False)
