"""Exercise 10.3: new tokens attend to the tokens of a cache and to themselves."""

from functools import partial

import torch
from torch.nn.functional import scaled_dot_product_attention as torch_attention

from utils.checks import attention_masks as of_masks
from utils.checks import attention_steps as of_attention
from utils.checks.attention_steps import lower, size, steps, triangle
from utils.checks.draw import draws
from utils.checks.engine import Exercise, case
from utils.checks.steps import Forms, texts_of
from utils.checks.values import number, shape

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


def past_stays_as_it_was(evidence):
    """Property: what a new token gets does not depend on the new tokens after it."""
    *new, cache = evidence.inputs
    for place in range(1, new[0].shape[-2]):
        later = torch.arange(new[0].shape[-2])[:, None] >= place
        moved = evidence.call(*(t + later for t in new), cache)[0] - evidence.got[0]
        moved = moved[..., :place, :].abs().max().item()
        if moved > 1e-4:
            return str(TEXTS["FACTS"].say("future", place=place, moved=number(moved)))
    return None


# --- the steps --------------------------------------------------------------------


def start(query, key, value, cache):
    """Start from what is new and what is old: of no tokens, where there is no cache."""
    old = cache or (key[..., :0, :], value[..., :0, :])
    past, num_new = old[0].shape[-2], query.shape[-2]
    return {
        "query": query,
        "new": (key, value),
        "old": old,
        "past": past,
        "T": num_new,
        "allowed": lower(num_new, past + num_new, past),
    }


def glued(old, new, dim=-2):
    """Return keys and values, each put together."""
    return tuple(torch.cat(pair, dim) for pair in zip(old, new))


def with_cache(way):
    """Return the step that keeps the new keys and values where there are no others."""
    return lambda s: way(s.old, s.new) if s.past else s.new


STEPS = {
    "longer": with_cache(glued),
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


MASK = Forms(TEXTS["MASK"])
MASK.wrong("causal-from-the-top-left", mask=triangle)
MASK.wrong("causal-from-the-top-left", mask=lambda s: triangle(s) | (s.T == 1))
MASK.wrong("no-causal-mask", mask=lambda s: None)
MASK.wrong("diagonal-masked", mask=lambda s: s.column < s.row)
MASK.wrong("one-step-leaked", mask=lambda s: s.column <= s.row + 1)
MASK.wrong("offset-of-the-new", row=lambda s: torch.arange(s.T)[:, None] + s.T)
MASK.wrong("mask-inverted", mask=lambda s: s.column > s.row)
MASK.wrong("upper-for-lower", mask=lambda s: s.column >= s.row)
MASK.wrong("mask-of-the-new", mask=of_the_new)
MASK.wrong("new-tokens-apart", mask=lambda s: (s.column < s.past) | (s.column == s.row))
MASK.wrong("cache-not-seen", seen=lambda s: s.new)

JOIN = Forms(TEXTS["JOIN"])


def joined(key, way, words=None):
    """Add a form in which a cache and what is new are put together another way."""
    JOIN.wrong(key, words, longer=with_cache(way))


JOIN.wrong("cache-ignored", longer=lambda s: s.new)
JOIN.wrong(
    "new-tokens-not-seen",
    seen=lambda s: s.old if s.past else s.new,
    mask=lambda s: None,
)
JOIN.wrong("none-not-expected", seen=always_glued)
joined("new-in-front", lambda old, new: glued(new, old))
joined("keys-and-values-swapped", lambda old, new: glued(old[::-1], new))
joined("values-not-kept", lambda old, new: (glued(old, new)[0], new[1]))
joined("values-not-kept 2", lambda old, new: (glued(old, new)[0], old[1]))
joined(
    "only-the-last-appended", lambda old, new: glued(old, [t[..., -1:, :] for t in new])
)
for axis, name in ((0, "the first axis"), (1, "axis 1"), (2, "axis 2")):
    joined("wrong-axis-joined", partial(glued, dim=axis), {"name": name})
joined("wrong-axis-joined", partial(glued, dim=-1), {"name": "the features"})

SIZES = [
    size("scale-of-values", "d_v", lambda s: s.value.shape[-1]),
    size("root-of-tokens", "S", lambda s: s.key.shape[-2], ", the number of keys"),
]

GIVE = Forms(TEXTS["GIVE"])
GIVE.wrong("keys-and-values-swapped", give=lambda s: (s.output, s.longer[::-1]))
GIVE.wrong("cache-not-longer", give=lambda s: (s.output, s.old))
GIVE.wrong("only-the-new-returned", give=lambda s: (s.output, s.new))
GIVE.wrong("returns-output-alone", give=lambda s: s.output)
GIVE.wrong("returned-flat", give=lambda s: (s.output, *s.longer))
GIVE.wrong("weights-returned", give=lambda s: (s.output, s.weights))
GIVE.wrong("weights-returned 2", give=lambda s: (s.output, s.weights, s.longer))
GIVE.wrong("parts-swapped", give=lambda s: (s.longer, s.output))
GIVE.wrong("cache-as-a-list", give=lambda s: (s.output, [*s.longer]))
GIVE.wrong("last-row-alone", give=lambda s: (s.output[..., -1:, :], s.longer))

CASES = [
    drawn(past=3, new=2, d_k=2, d_v=3, note="two new tokens after three"),
    drawn(past=0, new=3, d_k=2, d_v=5, note="the beginning"),
    drawn(past=5, new=1, d_k=3, d_v=2, note="one new token"),
    drawn(2, 3, past=7, new=5, d_k=5, d_v=11),
    drawn(3, past=2, new=7, d_k=5, d_v=3, note="more new tokens than in the cache"),
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
    properties=[past_stays_as_it_was],
    cases=CASES,
    pipeline=of_attention.attention(
        start,
        STEPS,
        *(MASK, JOIN, GIVE, of_attention.SCALE, SIZES, of_attention.AXIS),
        *(
            of_attention.SOFTMAX,
            of_masks.HIDE,
            of_attention.SCORE,
            of_attention.AVERAGE,
        ),
        renamed={
            "keys-for-values": "keys-as-values",
            "maximum-not-subtracted": "maximum-missing",
        },
        harmless=of_masks.HARMLESS,
        words=TEXTS["WORDS"]
        | {"first": lambda s: s.past, "sees": lambda s: s.past + 1},
    ),
)
