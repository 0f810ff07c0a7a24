"""The patients: attention layers with wrong steps, put together from the checks'."""

import hashlib
from itertools import product
from types import SimpleNamespace
from typing import NamedTuple

import torch
from torch import nn

from utils.checks.pipeline import Pipeline
from utils.checks.steps import attention, heads, masks
from utils.checks.steps.attention import SELF_PROJECTED, steps

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
RIVALS = [  # a slug, what it is easily taken for, and the number that excludes that
    ("softmax-twice", "divided-by-width", "scale_scores", "scores × 10,000"),
    ("divided-by-width", "softmax-twice", "scale_scores", "scores × 10,000"),
    ("mask-not-used", "softmax-twice", "scale_scores", "scores × 10,000"),
    ("one-step-leaked", "mask-not-used", "leak_test", "a token after"),
    ("split-by-view", "merge-without-transpose", "bisect", "before the cut"),
    ("merge-without-transpose", "split-by-view", "bisect", "before the cut"),
    ("heads-share-weights", "merge-without-transpose", "permute_tokens", "tokens"),
]
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


# --- the kinds -----------------------------------------------------------------------

VARIANTS = {  # of two with one name the last
    variant.name: variant
    for variant in [
        *(*attention.PROJECT, *attention.SCALE, *attention.BATCH_SCORE),
        *(*attention.AXIS, *attention.SOFTMAX, *attention.AVERAGE),
        *(*masks.CAUSAL, *masks.HIDE),
        *(*heads.SPLIT, *heads.MERGE, *heads.OUT),
    ]
}


class Kind(NamedTuple):
    """A kind of layer: its letter, what it is, takes and gives, its sizes, its steps.

    `build` is (d_in, d_out, context_length, dropout, num_heads), as in the course.
    """

    letter: str
    name: str
    takes: str
    gives: str
    build: tuple
    pipeline: Pipeline

    @property
    def masked(self):
        return self.letter != "f"

    @property
    def has_heads(self):
        return self.letter == "h"


def _pipeline(*inputs, **own):
    """Return the right steps of a layer, which give its output and its weights."""
    both = {"result": lambda s: (s.projected, s.weights)}
    return Pipeline(dict.fromkeys(inputs), steps(**own, **both))


BOTH = "with need_weights=True also weights"
CAUSAL = SELF_PROJECTED | {"mask": attention.triangle}
KINDS = (
    Kind(
        "f",
        "a function",
        "query, key, value, each (…, T, 16)",
        "output (…, T, 16), weights (…, T, T)",
        (16, 16, None, 0.0, 1),
        _pipeline("query", "key", "value"),
    ),
    Kind(
        "c",
        "a causal layer",
        "x (B, T, 16), T up to 16",
        f"output (B, T, 16); {BOTH} (B, T, T)",
        (16, 16, 16, 0.0, 1),
        _pipeline("learned", "x", **CAUSAL),
    ),
    Kind(
        "h",
        "a causal layer with 4 heads of width 16",
        "x (B, T, 64), T up to 16",
        f"output (B, T, 64); {BOTH} (B, 4, T, T)",
        (64, 64, 16, 0.0, 4),
        _pipeline("learned", "x", **CAUSAL, **heads.LAYER),
    ),
)


# --- the layers ----------------------------------------------------------------------


class Layer(nn.Module):
    """An attention layer of a kind, with the weights of its number and wrong steps.

    It takes and gives what its printed form says. Its weights, W_query, W_key, W_value
    and with heads out_proj, may be read and trained.

    Raises ValueError for inputs of another number or shape.
    """

    def __init__(self, number, kind, slugs=(), is_patient=False):
        super().__init__()
        self.number, self.kind, self.is_patient = number, kind, is_patient
        self._wrong = frozenset(slugs)
        d_in, d_out = kind.build[:2]
        if kind.masked:
            for name in ("W_query", "W_key", "W_value"):
                layer = nn.utils.skip_init(nn.Linear, d_in, d_out, bias=False)
                setattr(self, name, layer)
        if kind.has_heads:
            self.out_proj = nn.utils.skip_init(nn.Linear, d_out, d_out)
        generator = seeded(number)
        for parameter in self.parameters():  # makes queries, keys, values of variance 1
            parameter.data = even(generator, *parameter.shape) / d_in**0.5
        self.eval()

    def forward(self, *inputs, need_weights=False):
        """Return what this kind of layer gives."""
        self._check(inputs)
        if self.kind.masked:  # the steps take weights as matrices (d_in, d_out)
            learned = {name: layer.weight.mT for name, layer in self.named_children()}
            if self.kind.has_heads:
                learned["out_proj_bias"] = self.out_proj.bias
            inputs = SimpleNamespace(**learned, build=self.kind.build), *inputs
        # Of two variants of one step the later takes the other's place.
        variants = [VARIANTS[name] for name in sorted(self._wrong)]
        output, weights = self.kind.pipeline.run(inputs, *variants)
        both = need_weights or not self.kind.masked
        return (output, weights) if both else output

    def _check(self, inputs):
        shapes = [tuple(getattr(part, "shape", ())) for part in inputs]
        width, longest = self.kind.build[0], self.kind.build[2]
        fits = all(len(s) > 1 and s[-1] == width for s in shapes)
        if self.kind.masked:
            fits = fits and [*map(len, shapes)] == [3] and 1 <= shapes[0][1] <= longest
        else:
            fits = fits and len(shapes) == 3 and shapes[1] == shapes[2]
        if not fits:
            got = ", ".join(map(str, shapes)) or "nothing"
            raise ValueError(f"expected {self.kind.takes}; got {got}")

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

    Raises ValueError for what is no patient.

    >>> suspects(patient(7))["softmax-over-queries"]
    'the softmax runs over the queries'
    """
    letter = expect_layer(layer).kind.letter
    return {s: line for s, (kinds, _, line) in SUSPECTS.items() if letter in kinds}


def expect_layer(layer):
    """Return the layer; raise ValueError where it is none of the clinic."""
    if not isinstance(layer, Layer):
        raise ValueError(f"expected a patient, such as patient(7); got {layer!r}")
    return layer
