"""The patients: attention layers with wrong steps."""

import hashlib
from functools import cache
from itertools import product
from types import SimpleNamespace
from typing import NamedTuple

import torch
from torch import nn

from utils.checks import shared
from utils.checks.catalogue import exercises
from utils.checks.engine.mistakes import Mistake, apply_variants, read_variants
from utils.checks.submission import QKV
from utils.validation import PositiveInt, check_inputs, check_shapes, raise_unless

LENGTH = 16  # of the longest input of a layer
SUSPECTS = {  # slug: in which kinds of layer (f, c, h), what shows it, a line
    "scale-missing": ("fch", "scale_scores", "the scores are not divided by √d_k"),
    "divided-by-width": ("f", "scale_scores", "the scores are divided by d_k"),
    "keys-times-queries": ("f", "permute_tokens", "the scores are K Qᵀ, not Q Kᵀ"),
    "softmax-over-queries": ("f", "row_sums", "the softmax runs over the queries"),
    "softmax-twice": ("fch", "scale_scores", "the softmax is taken twice"),
    "mask-not-used": ("ch", "replace_tokens", "no mask reaches the scores"),
    "one-step-leaked": ("ch", "replace_tokens", "each token also sees the next one"),
    "mask-after-softmax": ("ch", "row_sums", "the mask comes after the softmax"),
    "keys-for-values": ("fch", "one_token", "the weights average the keys"),
    "values-not-projected": ("ch", "one_token", "the weights average x itself"),
    "split-by-view": ("h", "bisect", "view alone splits the heads"),
    "merge-without-transpose": (
        "h",
        "replace_tokens",
        "reshape alone merges the heads",
    ),
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


RIGHT = {"f": "4.1", "c": "5.2", "h": "6.3"}  # the exercise that asks for the kind
MISTAKES = shared.SCALE + shared.BATCH_SCORE + shared.AXIS + shared.HIDDEN_SCORES
MISTAKES += shared.CAUSAL_MASK + shared.PROJECT + shared.AVERAGE
MISTAKES += shared.SPLIT + shared.MERGE + shared.OUT_PROJECTION
MISTAKES += [
    Mistake("softmax-twice", "", "soft = softmax_of(softmax_of(hidden, dim), dim)"),
    Mistake("heads-share-weights", "", "output = weights.mean(1, True) @ value"),
]


@cache
def build_faulty(letter, slugs):
    """Return the right answer to a kind's exercise with mistakes, and its variables."""
    right = exercises()[RIGHT[letter]].right
    variants = {}  # of several ways to make a mistake the first
    for variant in read_variants(right, [m for m in MISTAKES if m.name in slugs]):
        variants.setdefault(variant.name, variant)
    return apply_variants(right, *variants.values())


class Kind(NamedTuple):
    """A kind of layer: a function, a causal layer, or one with several heads."""

    letter: str  # f, c or h, as in `SUSPECTS`
    name: str
    width: int
    num_heads: int

    @property
    def is_masked(self):
        return self.letter != "f"

    @property
    def inputs(self):
        if self.is_masked:
            return f"x (B, T, {self.width}), T up to {LENGTH}"
        return f"query, key, value, each (…, T, {self.width})"

    @property
    def outputs(self):
        if not self.is_masked:
            return f"output (…, T, {self.width}), weights (…, T, T)"
        shape = f"(B, {self.num_heads}, T, T)" if self.num_heads > 1 else "(B, T, T)"
        weights_text = f"with need_weights=True also weights {shape}"
        return f"output (B, T, {self.width}); {weights_text}"


KINDS = (
    Kind("f", "a function", 16, 1),
    Kind("c", "a causal layer", 16, 1),
    Kind("h", "a causal layer with 4 heads of width 16", 64, 4),
)


class Layer(nn.Module):
    """An attention layer of a kind, with the weights of its number and wrong steps.

    It takes and gives what its printed form says. Its weights, W_query, W_key, W_value
    and with heads out_proj, may be read and trained.
    """

    def __init__(self, number, kind, slugs=(), is_patient=False):
        super().__init__()
        self.number, self.kind, self.is_patient = number, kind, is_patient
        self._slugs = frozenset(slugs)
        width = kind.width
        if kind.is_masked:
            for name in QKV:
                layer = nn.utils.skip_init(nn.Linear, width, width, bias=False)
                setattr(self, name, layer)
        if kind.num_heads > 1:
            self.out_proj = nn.utils.skip_init(nn.Linear, width, width)
        generator = torch.Generator().manual_seed(number % 2**32)
        for parameter in self.parameters():  # makes queries, keys, values of variance 1
            parameter.data = uniform(generator, *parameter.shape) / width**0.5
        self.eval()

    def forward(self, *inputs, need_weights=False):
        """Return what this kind of layer gives."""
        self._check(inputs)
        if self.kind.is_masked:
            inputs = (self._matrices(), *inputs)
        answer, variables = build_faulty(self.kind.letter, self._slugs)
        output = answer(*inputs)
        if need_weights and self.kind.is_masked:
            return output, variables["weights"]
        return output

    def _check(self, inputs):
        usage, expected = self.kind.inputs, "x (B, T, D)"
        if not self.kind.is_masked:
            expected = "query (..., T, D); key (..., T, D); value (..., T, D)"
        is_complete = len(inputs) == len(expected.split("; "))
        raise_unless(is_complete, usage, f"{len(inputs)} inputs")
        T = check_shapes(expected, *inputs, D=self.kind.width)["T"]
        is_long = self.kind.is_masked and T > LENGTH
        raise_unless(T > 0 and not is_long, usage, *(x.shape for x in inputs))

    def _matrices(self):
        """Return the matrices in the form that the steps know, x @ W."""
        width, heads = self.kind.width, self.kind.num_heads
        names = (*QKV, "out_proj") if heads > 1 else QKV
        matrices = {name: getattr(self, name).weight.mT for name in names}
        if heads > 1:
            matrices["out_proj_bias"] = self.out_proj.bias
        sizes = {"d_in": width, "d_out": width, "context_length": LENGTH}
        build = SimpleNamespace(**sizes, num_heads=heads)
        return SimpleNamespace(build=build, **matrices)

    def __repr__(self):
        title = "A layer to compare with"
        if self.is_patient:
            how = "two wrong steps" if self.number >= 300 else "one wrong step, or none"
            title = f"Patient {self.number}, with {how}"
        kind = self.kind
        return f"{title}: {kind.name}\n  takes  {kind.inputs}\n  gives  {kind.outputs}"


def uniform(generator, *shape):
    """Return numbers of mean 0 and variance 1, the same on every machine."""
    options = {"dtype": torch.float32, "device": "cpu"}  # whatever is the default
    return (torch.rand(*shape, generator=generator, **options) - 0.5) * 12**0.5


@check_inputs()
def patient(number: PositiveInt) -> Layer:
    """Return an attention layer whose steps may be wrong, the same for each number.

    Up to 99 it is a function as in exercise 4.1, up to 199 a causal layer as in 5.2,
    up to 299 one with several heads as in 6.3, each with one wrong step or none. From
    300 on there are two wrong steps, and the hundreds take turns at the three kinds.

    returns: an nn.Module in eval mode; printed, it says what it takes and gives

    >>> patient(7)
    Patient 7, with one wrong step, or none: a function
      takes  query, key, value, each (…, T, 16)
      gives  output (…, T, 16), weights (…, T, T)
    """
    kind = KINDS[number // 100 % 3]
    choices = possible_faults(kind, are_two=number >= 300)
    turn, index = divmod(number, len(choices))  # in each turn every cause comes once

    def shuffle_key(slugs):  # looks random, and is the same on every machine
        return hashlib.sha256(repr((turn, kind.letter, *slugs)).encode()).digest()

    return Layer(number, kind, sorted(choices, key=shuffle_key)[index], is_patient=True)


def possible_faults(kind, are_two):
    """Return what may be wrong with a kind of layer, as tuples of slugs."""
    if are_two:
        return [pair for sides in PAIRS[kind.letter] for pair in product(*sides)]
    return [(), *((s,) for s, (kinds, *_) in SUSPECTS.items() if kind.letter in kinds)]


def twin(layer: Layer, *slugs: str) -> Layer:
    """Return a layer with the weights of another: healthy, or with these wrong steps.

    layer: a patient, or another twin
    slugs: suspects of this kind of layer

    >>> twin(patient(107))
    A layer to compare with: a causal layer
      takes  x (B, T, 16), T up to 16
      gives  output (B, T, 16); with need_weights=True also weights (B, T, T)
    """
    known = suspects(layer)
    unknown = [slug for slug in slugs if slug not in [*known]]  # a list has no hash
    expected = f"suspects among {', '.join(known)}"
    raise_unless(not unknown, expected, *map(repr, unknown[:1]))
    new_layer = Layer(layer.number, layer.kind, slugs)
    new_layer.load_state_dict(layer.state_dict())
    return new_layer.train(layer.training)


def suspects(layer: Layer) -> dict[str, str]:
    """Return what can be wrong with this kind of layer, slug -> a line.

    >>> suspects(patient(7))["softmax-over-queries"]
    'the softmax runs over the queries'
    """
    letter = check_layer(layer).kind.letter
    return {s: line for s, (kinds, _, line) in SUSPECTS.items() if letter in kinds}


def check_layer(layer):
    """Return the layer; raise ValueError unless it is a layer of the clinic."""
    is_layer = isinstance(layer, Layer)
    raise_unless(is_layer, "a patient, such as patient(7)", repr(layer))
    return layer
