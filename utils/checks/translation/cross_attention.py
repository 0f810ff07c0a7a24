"""Exercise 8.1: attention whose queries and keys come from two sentences."""

from types import SimpleNamespace

import torch
from torch.nn.functional import scaled_dot_product_attention as torch_attention

from utils.checks import attention_masks as of_masks
from utils.checks import attention_steps as of_attention
from utils.checks.attention_masks import uncleared, without_zeros
from utils.checks.attention_steps import (
    PROJECTED,
    fill,
    leak,
    row_sum,
    size,
    steps,
    triangle,
    zeroed,
)
from utils.checks.draw import draws
from utils.checks.engine import Exercise, case
from utils.checks.steps import Forms, State, texts_of
from utils.checks.values import shape

TEXTS = texts_of(__file__)
draw = draws(8)


def right_attention(x, context, W_query, W_key, W_value, context_mask=None):
    """Return PyTorch's output and weights, 0 where nothing may be attended to."""
    tensors = (t.double() for t in (x, context, W_query, W_key, W_value))
    x, context, W_query, W_key, W_value = tensors
    query, key, value = x @ W_query, context @ W_key, context @ W_value
    eye = torch.eye(key.shape[-2]).double().expand(*key.shape[:-1], -1)
    mask = spread(context_mask)
    attended = (torch_attention(query, key, v, attn_mask=mask) for v in (value, eye))
    return tuple(made.nan_to_num(0.0).float() for made in attended)


def spread(words):
    """Give the mask of the words an axis for the queries: (…, 1, S)."""
    return None if words is None else words[..., None, :]


def start(x, context, W_query, W_key, W_value, context_mask=None):
    allowed = torch.ones((), dtype=torch.bool)
    return {
        "x": x,
        "context": context,
        "learned": SimpleNamespace(W_query=W_query, W_key=W_key, W_value=W_value),
        "words": context_mask,
        "allowed": allowed if context_mask is None else spread(context_mask),
    }


# --- which sentence asks and which answers -------------------------------------------


def joined(s):
    return torch.cat((s.x, s.context), dim=-2)


def no_mask(s):
    return None


OF_CONTEXT = {"query": lambda s: s.context @ s.learned.W_query}
OF_X = {
    "key": lambda s: s.x @ s.learned.W_key,
    "value": lambda s: s.x @ s.learned.W_value,
}
OF_BOTH = {
    "key": lambda s: joined(s) @ s.learned.W_key,
    "value": lambda s: joined(s) @ s.learned.W_value,
}
SOURCES = Forms(TEXTS["SOURCES"])
for mask in ({}, {"mask": no_mask}):
    SOURCES.wrong("roles-swapped", **OF_CONTEXT, **OF_X, **mask)
    SOURCES.wrong("context-not-used", **OF_X, **mask)
    SOURCES.wrong("x-among-the-keys", **OF_BOTH, **mask)
SOURCES.wrong("x-not-used", **OF_CONTEXT)
SOURCES.wrong("values-from-x", value=OF_X["value"])
SOURCES.wrong("keys-from-x", key=OF_X["key"])
SOURCES.wrong(
    "query-and-key-matrices-exchanged",
    query=lambda s: s.x @ s.learned.W_key,
    key=lambda s: s.context @ s.learned.W_query,
)
SOURCES.wrong(
    "matrices-transposed",
    query=lambda s: s.x @ s.learned.W_query.T,
    key=lambda s: s.context @ s.learned.W_key.T,
    value=lambda s: s.context @ s.learned.W_value.T,
)
SOURCES.wrong("x-added", give=lambda s: (s.x + s.output, s.weights))


# --- which words are hidden ----------------------------------------------------------


def with_words(made):
    """Return the step that uses `made(s)` for a mask, where words are hidden."""
    return lambda s: None if s.words is None else made(s)


def hidden_words_zero(s, x):
    return x if s.words is None else x * s.words[..., None]


def one_sentence(s):
    return s.words.flatten(0, -2)[:1] if s.words.dim() > 1 else s.words


def causal_too(s):
    return triangle(s) if s.words is None else triangle(s) & spread(s.words)


def needs_mask(error):
    """Return the step that is right with a mask and fails, somehow, without one."""

    def mask(s):
        if s.words is None:
            raise error
        return spread(s.words)

    return mask


def truth_of_mask(s):
    if s.words is not None:
        bool(s.words)
    return spread(s.words)


MASK = Forms(TEXTS["MASK"])
MASK.wrong("mask-ignored", mask=no_mask)
MASK.wrong("mask-inverted", mask=with_words(lambda s: ~spread(s.words)))
MASK.wrong("mask-causal", mask=triangle)
MASK.wrong("mask-causal 2", mask=causal_too)
MASK.wrong("mask-causal 3", mask=with_words(triangle))
MASK.wrong("mask-on-queries", mask=with_words(lambda s: s.words[..., :, None]))
MASK.wrong(
    "mask-on-queries 2",
    mask=with_words(lambda s: spread(s.words) & s.words[..., :, None]),
)
MASK.wrong("mask-axis-missing", mask=lambda s: s.words)
MASK.wrong("mask-axis-fixed", mask=with_words(lambda s: s.words[:, None, :]))
MASK.wrong("mask-axis-fixed", mask=with_words(lambda s: s.words.unsqueeze(1)))
MASK.wrong("one-mask-for-all", mask=with_words(one_sentence))
MASK.wrong("mask-needed", mask=needs_mask(TypeError()))
MASK.wrong("mask-needed", mask=needs_mask(AttributeError()))
MASK.wrong("mask-as-truth-value", mask=truth_of_mask)
MASK.wrong(
    "values-hidden-alone",
    value=lambda s: hidden_words_zero(s, s.context @ s.learned.W_value),
    mask=no_mask,
)
MASK.wrong(
    "context-zeroed",
    key=lambda s: hidden_words_zero(s, s.context) @ s.learned.W_key,
    value=lambda s: hidden_words_zero(s, s.context) @ s.learned.W_value,
    mask=no_mask,
)
MASK.wrong("empty-row-nan", clear=uncleared)
NAN = MASK[-1]
MASK.wrong(
    "empty-row-nan 2",
    clear=uncleared,
    give=lambda s: (s.output, s.weights.nan_to_num(0.0)),
)
MASK.wrong("empty-row-uniform", hide=lambda s: fill(s, -1e9), clear=uncleared)
MASK.wrong("softmax-missing", mask=no_mask, divide=lambda s: s.hidden)
FAILING = ("mask-ignored", "mask-needed")  # alike whether zeros follow or not
HIDE = [one for one in of_masks.HIDE if one not in of_masks.LARGE_FILLS]
HARMLESS = Forms()
HARMLESS.also(clear=lambda s: s.soft.nan_to_num(0.0))
HARMLESS.also(hide=lambda s: fill(s, -1e9))


# --- the exercise --------------------------------------------------------------------

SIZES = [
    size("scale-of-model-width", "D", lambda s: s.x.shape[-1], ", the width of x"),
    size("scale-of-first-axis", "len(x)", lambda s: s.x.shape[0]),
    size("scale-of-keys", "S", lambda s: s.context.shape[-2], ", the number of words"),
    size("scale-of-tokens", "T", lambda s: s.x.shape[-2], ", the number of queries"),
    size("scale-of-values", "d_v", lambda s: s.value.shape[-1]),
]
pipeline = of_attention.attention(
    start,
    steps(
        **PROJECTED,
        mask=lambda s: spread(s.words),
        clear=zeroed,
        give=lambda s: (s.output, s.weights),
    ),
    *(of_attention.RETURN_BOTH, SOURCES, MASK),
    without_zeros([one for one in MASK if one.slug not in FAILING], "mask"),
    *(without_zeros(HIDE), HIDE, of_attention.SCALE, SIZES, of_attention.AXIS),
    *(of_attention.SOFTMAX, of_attention.PROJECT, of_attention.SCORE),
    *(of_attention.AVERAGE, of_attention.UNIFORM),
    without=("parameter-called", "weight-not-transposed", "keys-times-queries"),
    renamed={
        "zero-for-minus-infinity": "zero-for-infinity",
        "renormalised-after": "empty-row-nan",
    },
    harmless=[*HARMLESS, NAN],
    words={
        "width": "K",
        "root": "√K",
        "source": "context",
        "average_value": "average the values, context @ W_value",
        "S_of_context": lambda s: s.context.shape[-2],
        "mask_shape": lambda s: shape(s.words),
    },
)


def seen(evidence):
    """Return what the facts of a text look at, from the answer's own weights."""
    allowed = spread(evidence.args[5] if len(evidence.args) > 5 else None)
    if allowed is None:
        allowed = torch.ones((), dtype=torch.bool)
    return State(weights=evidence.got[1], mask=allowed, allowed=allowed)


def padding_looked_at(evidence):
    """Property: hidden words get no weight."""
    found = leak(seen(evidence))
    return TEXTS["SEEN"]["leak"].format(leak=found) if float(found) > 1e-6 else None


def rows_sum(evidence):
    """Property: the weights of the words that may be attended to sum to 1."""
    found = row_sum(seen(evidence))
    if found == "NaN" or abs(float(found) - 1) < 1e-4:
        return None
    return TEXTS["SEEN"]["sum"].format(sum=found)


def tensors(x, context, width, value_width, scale=1.0):
    """Draw x, context and the three matrices for these sizes."""
    return (
        *(draw(*x, scale=scale), draw(*context, scale=scale)),
        *(draw(x[-1], width), draw(x[-1], width), draw(x[-1], value_width)),
    )


def lengths(*real, longest):
    """Return the mask (B, S) of sentences with that many words."""
    return torch.arange(longest) < torch.tensor(real)[:, None]


def far_apart():
    """Draw words of which the first two have scores far from the others."""
    far = 300 * draws(81)(1, 5)  # with its opposite, one of the two fits any query
    x, words, *matrices = tensors((2, 5), (3, 5), 3, 2)
    return x, torch.cat([far, -far, words]), *matrices


CASES = [
    case(*tensors((2, 5), (3, 5), 7, 11)),
    case(
        *tensors((2, 5), (3, 5), 7, 11),
        torch.tensor([True, True, False]),
        note="the last word hidden",
    ),
    case(
        *tensors((2, 3, 5), (2, 7, 5), 11, 2),
        lengths(7, 4, longest=7),
        note="a batch with padding",
    ),
    case(
        *tensors((3, 3, 5), (3, 7, 5), 2, 11),
        lengths(5, 7, 2, longest=7),
        note="B = T",
    ),
    case(
        *tensors((2, 5, 7), (2, 5, 7), 3, 11),
        lengths(2, 5, longest=5),
        note="T = S",
    ),
    case(*tensors((2, 5, 7), (2, 3, 7), 7, 7), note="all matrices square"),
    case(
        *tensors((2, 5, 7), (2, 5, 7), 7, 7),
        torch.tensor([[True, False, True, True, False], [True] * 5]),
        note="T = S, all matrices square, a word in the middle hidden",
    ),
    case(
        *tensors((2, 3, 5), (2, 7, 5), 11, 2),
        lengths(3, 0, longest=7),
        note="nothing allowed in the second sentence",
    ),
    case(
        *tensors((2, 3, 5, 7), (2, 3, 11, 7), 2, 5),
        lengths(11, 4, 7, 1, 2, 5, longest=11).view(2, 3, 11),
        note="two leading axes",
    ),
    case(
        *tensors((2, 5), (7, 5), 3, 2, scale=9.0),
        note="large scores",
        special=True,
    ),
    case(
        *tensors((2, 5), (7, 5), 3, 2, scale=9.0),
        torch.tensor([True] * 6 + [False]),
        note="large scores and a hidden word",
        special=True,
    ),
    case(
        *far_apart(),
        torch.tensor([False, False, True, True, True]),
        note="hidden words whose scores are far from the others",
        special=True,
    ),
    case(*tensors((1, 5), (1, 5), 3, 2), note="one word each", special=True),
]
cross_attention = Exercise(
    id="8.1",
    signature="cross_attention(x, context, W_query, W_key, W_value, context_mask=None)",
    returns="the tuple (output, weights) of shapes (…, T, d_v) and (…, T, S)",
    parts=("output", "weights"),
    oracle=right_attention,
    properties=[padding_looked_at, rows_sum],
    pipeline=pipeline,
    cases=CASES,
)
