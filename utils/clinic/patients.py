"""The patients: attention layers with wrong steps."""

import hashlib
from itertools import product
from typing import NamedTuple

import torch
from torch import nn

from utils.attention import merge_heads, split_heads

SUSPECTS = {  # slug: in which kinds of layer (f, c, h), what shows it, a line
    "scale-missing": ("fch", "scale_scores", "the scores are not divided by √d_k"),
    "divided-by-width": ("f", "scale_scores", "the scores are divided by d_k"),
    "keys-times-queries": ("f", "permute_tokens", "the scores are K Qᵀ, not Q Kᵀ"),
    "softmax-over-queries": ("f", "row_sums", "the softmax runs over the queries"),
    "softmax-twice": ("fch", "scale_scores", "the softmax is taken twice"),
    "mask-not-used": ("ch", "leak_test", "no mask reaches the scores"),
    "one-step-leaked": ("ch", "leak_test", "each token also sees the next one"),
    "mask-after-softmax": ("ch", "row_sums", "the mask comes after the softmax"),
    "keys-for-values": ("fch", "one_token", "the weights average the keys"),
    "values-not-projected": ("ch", "one_token", "the weights average x itself"),
    "split-by-view": ("h", "bisect", "view alone splits the heads"),
    "merge-without-transpose": ("h", "leak_test", "reshape alone merges the heads"),
    "heads-share-weights": ("h", "bisect", "heads use the mean of their weights"),
    "output-projection-unused": ("h", "one_token", "out_proj is left out"),
}
RIVALS = {  # what a suspect is easily taken for
    "softmax-twice": "divided-by-width",
    "divided-by-width": "softmax-twice",
    "mask-not-used": "softmax-twice",
    "one-step-leaked": "mask-not-used",
    "split-by-view": "merge-without-transpose",
    "merge-without-transpose": "split-by-view",
    "heads-share-weights": "merge-without-transpose",
}
VALUES = "keys-for-values", "values-not-projected"
LEAKS = "mask-not-used", "one-step-leaked", "mask-after-softmax"
PAIRS = {  # what may go wrong together: neither hides the other
    "f": [
        (("scale-missing", "divided-by-width"), VALUES[:1]),
        (("keys-times-queries",), ("softmax-twice",)),
        (("keys-times-queries", "softmax-over-queries", "softmax-twice"), VALUES[:1]),
    ],
    "c": [(("scale-missing",), (*VALUES, *LEAKS)), ((*LEAKS, "softmax-twice"), VALUES)],
    "h": [
        (("split-by-view",), ("merge-without-transpose",)),
        (("split-by-view", "merge-without-transpose", "softmax-twice"), VALUES),
        (("output-projection-unused", "heads-share-weights", *VALUES), LEAKS),
        (("output-projection-unused",), (*VALUES, "split-by-view", "softmax-twice")),
        (("scale-missing",), (*VALUES, "output-projection-unused")),
    ],
}


class Kind(NamedTuple):
    """A kind of layer: a function, a causal layer, or one with several heads."""

    letter: str  # f, c or h, as in `SUSPECTS`
    name: str
    width: int
    num_heads: int

    @property
    def masked(self):
        return self.letter != "f"

    @property
    def takes(self):
        if self.masked:
            return f"x (B, T, {self.width}), T up to 16"
        return f"query, key, value, each (…, T, {self.width})"

    @property
    def gives(self):
        if not self.masked:
            return f"output (…, T, {self.width}), weights (…, T, T)"
        shape = f"(B, {self.num_heads}, T, T)" if self.num_heads > 1 else "(B, T, T)"
        also = f"with need_weights=True also weights {shape}"
        return f"output (B, T, {self.width}); {also}"


KINDS = (
    Kind("f", "a function", 16, 1),
    Kind("c", "a causal layer", 16, 1),
    Kind("h", "a causal layer with 4 heads of width 16", 64, 4),
)


class Layer(nn.Module):
    """An attention layer of a kind, with the weights of its number and wrong steps.

    It takes and gives what its printed form says. Its weights, W_query, W_key, W_value
    and with heads out_proj, may be read and trained.

    Raises ValueError for another number of inputs.
    """

    def __init__(self, number, kind, slugs=(), is_patient=False):
        super().__init__()
        self.number, self.kind, self.is_patient = number, kind, is_patient
        self._wrong = frozenset(slugs)
        width = kind.width
        if kind.masked:
            for name in ("W_query", "W_key", "W_value"):
                layer = nn.utils.skip_init(nn.Linear, width, width, bias=False)
                setattr(self, name, layer)
        if kind.num_heads > 1:
            self.out_proj = nn.utils.skip_init(nn.Linear, width, width)
        generator = seeded(number)
        for parameter in self.parameters():  # makes queries, keys, values of variance 1
            parameter.data = even(generator, *parameter.shape) / width**0.5
        self.eval()

    def forward(self, *inputs, need_weights=False):
        """Return what this kind of layer gives."""
        if len(inputs) != (1 if self.kind.masked else 3):
            raise ValueError(f"expected {self.kind.takes}; got {len(inputs)} inputs")
        query, key, value = self._project(*inputs)
        weights = self._weigh(query, key)
        output = self._average(weights, value)
        both = need_weights or not self.kind.masked
        return (output, weights) if both else output

    def _project(self, *inputs):
        """Return queries, keys and values, split into heads."""
        wrong, heads = self._wrong, self.kind.num_heads
        if self.kind.masked:
            [x] = inputs
            value = x if "values-not-projected" in wrong else self.W_value(x)
            inputs = self.W_query(x), self.W_key(x), value
        if "keys-for-values" in wrong:
            inputs = inputs[0], inputs[1], inputs[1]
        if heads == 1:
            return inputs
        if "split-by-view" in wrong:
            return [x.reshape(len(x), heads, x.shape[1], -1) for x in inputs]
        return [split_heads(x, heads) for x in inputs]

    def _weigh(self, query, key):
        wrong, width = self._wrong, query.shape[-1]
        scores = key @ query.mT if "keys-times-queries" in wrong else query @ key.mT
        if "divided-by-width" in wrong:
            scores = scores / width
        elif "scale-missing" not in wrong:
            scores = scores / width**0.5
        mask = torch.ones_like(scores, dtype=torch.bool)
        if self.kind.masked and "mask-not-used" not in wrong:
            mask = mask.tril(1 if "one-step-leaked" in wrong else 0)
        if "mask-after-softmax" not in wrong:
            scores = scores.masked_fill(~mask, float("-inf"))
        dim = -2 if "softmax-over-queries" in wrong else -1
        weights = scores.softmax(dim) * mask
        return weights.softmax(dim) if "softmax-twice" in wrong else weights

    def _average(self, weights, value):
        """Return the output: the average of the values, with heads merged."""
        wrong = self._wrong
        if "heads-share-weights" in wrong:
            weights = weights.mean(1, keepdim=True)
        output = weights @ value
        if self.kind.num_heads == 1:
            return output
        if "merge-without-transpose" in wrong:
            output = output.reshape(len(output), output.shape[2], -1)
        else:
            output = merge_heads(output)
        return output if "output-projection-unused" in wrong else self.out_proj(output)

    def __repr__(self):
        who = "A layer to compare with"
        if self.is_patient:
            how = "two wrong steps" if self.number >= 300 else "one wrong step, or none"
            who = f"Patient {self.number}, with {how}"
        kind = self.kind
        return f"{who}: {kind.name}\n  takes  {kind.takes}\n  gives  {kind.gives}"


def seeded(number):
    """Return a generator for a number, however large."""
    return torch.Generator().manual_seed(number % 2**32)


def even(generator, *shape):
    """Return numbers of mean 0 and variance 1, the same on every machine."""
    kind = {"dtype": torch.float32, "device": "cpu"}  # whatever is the default
    return (torch.rand(*shape, generator=generator, **kind) - 0.5) * 12**0.5


def patient(number: int) -> Layer:
    """Return an attention layer whose steps may be wrong, the same for each number.

    Up to 99 it is a function as in exercise 4.1, up to 199 a causal layer as in 5.2,
    up to 299 one with several heads as in 6.3, each with one wrong step or none. From
    300 on there are two wrong steps, and the hundreds take turns at the three kinds.

    returns: an nn.Module in eval mode; printed, it says what it takes and gives

    Raises ValueError for a number that isn't an integer from 1 on.

    >>> patient(7)
    Patient 7, with one wrong step, or none: a function
      takes  query, key, value, each (…, T, 16)
      gives  output (…, T, 16), weights (…, T, T)
    """
    if type(number) is not int or number < 1:
        raise ValueError(f"expected a number of 1 or more, got {number!r}")
    kind = KINDS[number // 100 % 3]
    choices = causes(kind, two=number >= 300)
    turn, place = divmod(number, len(choices))  # in each turn every cause comes once

    def dice(slugs):  # looks random, and is the same on every machine
        return hashlib.sha256(repr((turn, kind.letter, *slugs)).encode()).digest()

    return Layer(number, kind, sorted(choices, key=dice)[place], is_patient=True)


def causes(kind, two):
    """Return what may be wrong with a kind of layer, as tuples of slugs."""
    if two:
        return [pair for both in PAIRS[kind.letter] for pair in product(*both)]
    return [(), *((s,) for s, (kinds, *_) in SUSPECTS.items() if kind.letter in kinds)]


def twin(layer: Layer, *slugs: str) -> Layer:
    """Return a layer with the weights of another: healthy, or with these wrong steps.

    layer: a patient, or another twin
    slugs: suspects of this kind of layer

    Raises ValueError for other slugs.

    >>> twin(patient(107))
    A layer to compare with: a causal layer
      takes  x (B, T, 16), T up to 16
      gives  output (B, T, 16); with need_weights=True also weights (B, T, T)
    """
    known = suspects(layer)
    for slug in slugs:
        if slug not in known:
            raise ValueError(f"expected suspects among {', '.join(known)}; got {slug}")
    other = Layer(layer.number, layer.kind, slugs)
    other.load_state_dict(layer.state_dict())
    return other.train(layer.training)


def suspects(layer: Layer) -> dict[str, str]:
    """Return what can be wrong with this kind of layer, slug -> a line.

    Raises ValueError if it is not a patient.

    >>> suspects(patient(7))["softmax-over-queries"]
    'the softmax runs over the queries'
    """
    letter = expect_layer(layer).kind.letter
    return {s: line for s, (kinds, _, line) in SUSPECTS.items() if letter in kinds}


def expect_layer(layer):
    """Return the layer; raise ValueError unless it is a layer of the clinic."""
    if not isinstance(layer, Layer):
        raise ValueError(f"expected a patient, such as patient(7); got {layer!r}")
    return layer
