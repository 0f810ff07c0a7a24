"""Exercise 10.3: new tokens attend to the tokens of a cache and to themselves."""

from functools import partial

import torch
from torch.nn.functional import scaled_dot_product_attention as torch_attention

from utils.checks import attention_masks as of_masks
from utils.checks import attention_steps as of_attention
from utils.checks.attention_steps import lower, size, steps, triangle
from utils.checks.draw import draws, past_stays
from utils.checks.engine import Exercise, case
from utils.checks.steps import Forms, texts_of
from utils.checks.values import shape

TEXTS = texts_of(__file__)
draw = draws(103)


class Cache(tuple):
    """Keys and values of earlier tokens, which a message shows by their shapes."""

    def __repr__(self):
        keys, values = map(shape, self)
        return f"(keys {keys}, values {values})"


def right_cached(query, key, value, cache):
    if cache is not None:
        key, value = (torch.cat(pair, -2) for pair in zip(cache, (key, value)))
    new, every = query.shape[-2], key.shape[-2]
    mask = torch.ones(new, every, dtype=torch.bool).tril(every - new)
    output = torch_attention(query.double(), key.double(), value.double(), mask)
    return output.to(value.dtype), (key, value)


def held(past, query, keys, values, **settings):
    """Return the case in which the first `past` of the keys and values are old."""
    old, new = zip(*(t.tensor_split([past], -2) for t in (keys, values)))
    return case(query, *new, Cache(old) if past else None, **settings)


def drawn(*lead, past, new, d_k, d_v, dtype=torch.float32, **settings):
    """Return the case of `new` tokens after `past` in the cache."""
    sizes = (new, d_k), (past + new, d_k), (past + new, d_v)
    made = [draw(*lead, *size, dtype=dtype) for size in sizes]
    return held(past, *made, **settings)


# Whole numbers and a width of 4: the scores are exact.
STEEP = torch.tensor([1000.0, -1000.0])[:, None, None].expand(2, 3, 4)
RISING = torch.arange(-40.0, 0.0, 5.0)[:, None].expand(2, 8, 4)


# --- the steps --------------------------------------------------------------------


def start(query, key, value, cache):
    """Start from what is new and what is old: of no tokens, where there is no cache."""
    old = cache or (key[..., :0, :], value[..., :0, :])
    return {"query": query, "new": (key, value), "old": old}


def glued(s):
    """Return keys and values, each put together where there are others than the new."""
    pairs = zip(s.first, s.then)
    return tuple(torch.cat(pair, s.along) for pair in pairs) if s.past else s.new


STEPS = {
    "T": lambda s: s.query.shape[-2],
    "past": lambda s: s.old[0].shape[-2],
    "allowed": lambda s: lower(s.T, s.past + s.T, s.past),
    "first": lambda s: s.old,
    "then": lambda s: s.new,
    "along": lambda s: -2,
    "longer": glued,
    "seen": lambda s: s.longer,
    "column": lambda s: torch.arange(s.seen[0].shape[-2]),  # the places of the keys
    "row": lambda s: torch.arange(-s.T, 0)[:, None] + len(s.column),  # of the queries
    **steps(
        leaving_out=("merge", "project_out"),
        key=lambda s: s.seen[0],
        value=lambda s: s.seen[1],
        mask=lambda s: s.column <= s.row,
        give=lambda s: (s.output, s.longer),
    ),
}


# --- what goes wrong --------------------------------------------------------------


def of_the_new(s):
    """Make a mask for the new tokens alone, which fails where there are other keys."""
    rows, columns = s.scores.shape[-2:]
    if rows not in (1, columns):
        raise RuntimeError("must match the")
    return lower(rows, rows)


def always_glued(s):
    if not s.past:
        raise TypeError("NoneType")
    return s.longer


AXES = {0: "the first axis", 1: "axis 1", 2: "axis 2", -1: "the features"}
UNMASKED = {"mask": lambda s: None}
FORMS = Forms(TEXTS["FORMS"])
wrong = FORMS.wrong
wrong("causal-from-the-top-left", mask=triangle)
wrong("causal-from-the-top-left", mask=lambda s: triangle(s) | (s.T == 1))
wrong("no-causal-mask", **UNMASKED)
wrong("diagonal-masked", mask=lambda s: s.column < s.row)
wrong("one-step-leaked", mask=lambda s: s.column <= s.row + 1)
wrong("offset-of-the-new", row=lambda s: torch.arange(s.T)[:, None] + s.T)
wrong("mask-inverted", mask=lambda s: s.column > s.row)
wrong("upper-for-lower", mask=lambda s: s.column >= s.row)
wrong("mask-of-the-new", mask=of_the_new)
wrong("new-tokens-apart", mask=lambda s: (s.column < s.past) | (s.column == s.row))
wrong("cache-not-seen", seen=lambda s: s.new)
wrong("cache-ignored", longer=lambda s: s.new)
wrong("new-tokens-not-seen", **UNMASKED, seen=lambda s: s.old if s.past else s.new)
wrong("none-not-expected", seen=always_glued)
wrong("new-in-front", first=lambda s: s.new, then=lambda s: s.old)
wrong("keys-and-values-swapped", first=lambda s: s.old[::-1])
wrong("keys-and-values-swapped 3", first=lambda s: (s.old[1], s.old[1]))
wrong("keys-and-values-swapped 4", first=lambda s: (s.old[0], s.old[0]))
wrong("values-not-kept", first=lambda s: (s.old[0], s.old[1][..., :0, :]))
wrong("values-not-kept 2", then=lambda s: (s.new[0], s.new[1][..., :0, :]))
wrong("only-the-last-appended", then=lambda s: [t[..., -1:, :] for t in s.new])
for axis, name in AXES.items():
    wrong("wrong-axis-joined", {"name": name}, along=lambda s, axis=axis: axis)
wrong("keys-and-values-swapped 2", give=lambda s: (s.output, s.longer[::-1]))
wrong("cache-not-longer", give=lambda s: (s.output, s.old))
wrong("only-the-new-returned", give=lambda s: (s.output, s.new))
wrong("returns-output-alone", give=lambda s: s.output)
wrong("returned-flat", give=lambda s: (s.output, *s.longer))
wrong("weights-returned", give=lambda s: (s.output, s.weights))
wrong("weights-returned 2", give=lambda s: (s.output, s.weights, s.longer))
wrong("parts-swapped", give=lambda s: (s.longer, s.output))
wrong("cache-as-a-list", give=lambda s: (s.output, [*s.longer]))
wrong("last-row-alone", give=lambda s: (s.output[..., -1:, :], s.longer))

SIZES = [
    size("scale-of-values", "d_v", lambda s: s.value.shape[-1]),
    size("root-of-tokens", "S", lambda s: s.key.shape[-2], ", the number of keys"),
]
CASES = [
    drawn(past=3, new=2, d_k=2, d_v=3, note="two new tokens after three"),
    drawn(past=0, new=3, d_k=2, d_v=5, note="the beginning"),
    drawn(past=5, new=1, d_k=3, d_v=2, note="one new token"),
    drawn(2, 3, past=7, new=5, d_k=5, d_v=11),
    drawn(3, past=2, new=7, d_k=5, d_v=5, note="more new tokens than in the cache"),
    drawn(2, 3, past=11, new=1, d_k=7, d_v=5, note="one new token, two axes before"),
    drawn(3, past=0, new=1, d_k=2, d_v=7, note="one token, the very first"),
    held(5, STEEP, RISING, draw(2, 8, 3), note="large scores", special=True),
    drawn(past=3, new=5, d_k=11, d_v=2, dtype=torch.float64, note="float64"),
]
attend_with_cache = Exercise(
    id="10.3",
    **TEXTS["10.3"],
    oracle=right_cached,
    parts=("output", ("keys", "values")),
    properties=[partial(past_stays, of="new tokens")],
    cases=CASES,
    pipeline=of_attention.attention(
        start,
        STEPS,
        *(FORMS, of_attention.SCALE, SIZES, of_attention.AXIS, of_attention.SOFTMAX),
        *(of_masks.HIDE, of_attention.SCORE, of_attention.AVERAGE),
        renamed=TEXTS["RENAMED"],
        harmless=of_masks.HARMLESS,
        words=TEXTS["WORDS"]
        | {"first": lambda s: s.past, "sees": lambda s: s.past + 1},
    ),
)
