"""Exercise 8.1: attention whose queries and keys come from two sentences."""

from types import SimpleNamespace

import torch
from torch.nn.functional import scaled_dot_product_attention as torch_attention

from utils.checks import attention_masks as of_masks
from utils.checks import attention_steps as of_attention
from utils.checks.attention_masks import uncleared, without_zeros
from utils.checks.attention_steps import PROJECTED, fill, size, steps, triangle
from utils.checks.draw import draws
from utils.checks.engine import Exercise, case
from utils.checks.steps import Forms, State, texts_of
from utils.checks.values import shape

TEXTS = texts_of(__file__)
draw = draws(8)


def right_attention(x, context, W_query, W_key, W_value, context_mask=None):
    """Return PyTorch's output and weights, 0 where nothing may be attended to."""
    pairs = (x, W_query), (context, W_key), (context, W_value)
    query, key, value = (words.double() @ W.double() for words, W in pairs)
    eye = torch.eye(key.shape[-2]).double().expand(*key.shape[:-1], -1)
    mask = spread(context_mask)
    attended = (torch_attention(query, key, v, attn_mask=mask) for v in (value, eye))
    return tuple(made.nan_to_num(0.0).float() for made in attended)


def spread(words):
    """Give the mask of the words an axis for the queries: (…, 1, S)."""
    return None if words is None else words[..., None, :]


def start(x, context, W_query, W_key, W_value, context_mask=None):
    everything = torch.ones(1, 1, dtype=torch.bool)
    return {
        "given": (x, context),
        "learned": SimpleNamespace(W_query=W_query, W_key=W_key, W_value=W_value),
        "words": context_mask,
        "allowed": everything if context_mask is None else spread(context_mask),
    }


# --- which sentence asks and which answers -------------------------------------------


def no_mask(s):
    return None


STEPS = {
    "x": lambda s: s.given[0],
    "context": lambda s: s.given[1],
    **steps(
        **PROJECTED,
        mask=lambda s: spread(s.words),
        clear=of_attention.zeroed,
        give=lambda s: (s.output, s.weights),
    ),
}
OF_PROJECT = {one.slug: one.ways for one in of_attention.PROJECT}
SOURCES = Forms(TEXTS["SOURCES"])
for mask in ({}, {"mask": no_mask}):
    SOURCES.wrong(
        "roles-swapped", x=lambda s: s.given[1], context=lambda s: s.given[0], **mask
    )
    SOURCES.wrong("context-not-used", context=lambda s: s.given[0], **mask)
    SOURCES.wrong("x-among-the-keys", context=lambda s: torch.cat(s.given, -2), **mask)
SOURCES.wrong("x-not-used", x=lambda s: s.given[1])
SOURCES.wrong("values-from-x", value=lambda s: s.x @ s.learned.W_value)
SOURCES.wrong("keys-from-x", key=lambda s: s.x @ s.learned.W_key)
SOURCES.wrong("query-and-key-matrices-exchanged", **OF_PROJECT["keys-times-queries"])
SOURCES.wrong("matrices-transposed", **OF_PROJECT["weight-not-transposed"])
SOURCES.wrong("x-added", give=lambda s: (s.x + s.output, s.weights))


# --- which words are hidden ----------------------------------------------------------


def with_words(made):
    """Return the step that makes a mask of the words' own, where there is one."""
    return lambda s: None if s.words is None else made(s.words)


def needs_mask(error):
    """Return the step that is right with a mask and fails, somehow, without one."""

    def mask(s):
        if s.words is None:
            raise error
        return spread(s.words)

    return mask


MASK = Forms(TEXTS["MASK"])
MASK.wrong("mask-ignored", mask=no_mask)
MASK.wrong("mask-inverted", mask=with_words(lambda words: ~spread(words)))
MASK.wrong("mask-causal", mask=triangle)
MASK.wrong("mask-causal 2", mask=lambda s: triangle(s) & s.allowed)
MASK.wrong("mask-causal 3", mask=lambda s: None if s.words is None else triangle(s))
MASK.wrong("mask-on-queries", mask=with_words(lambda words: words[..., None]))
MASK.wrong(
    "mask-on-queries 2", mask=with_words(lambda words: spread(words) & words[..., None])
)
MASK.wrong("mask-axis-missing", mask=lambda s: s.words)
MASK.wrong("mask-axis-fixed", mask=with_words(lambda words: words[:, None, :]))
MASK.wrong("mask-axis-fixed", mask=with_words(lambda words: words.unsqueeze(1)))
MASK.wrong(
    "one-mask-for-all", mask=with_words(lambda words: words[(0,) * (words.dim() - 1)])
)
MASK.wrong("mask-needed", mask=needs_mask(TypeError()))
MASK.wrong("mask-needed", mask=needs_mask(AttributeError()))
MASK.wrong("mask-as-truth-value", mask=lambda s: spread(s.words) if s.words else None)
MASK.wrong(
    "values-hidden-alone",
    value=lambda s: s.context @ s.learned.W_value * s.allowed.mT,
    mask=no_mask,
)
MASK.wrong("context-zeroed", context=lambda s: s.given[1] * s.allowed.mT, mask=no_mask)
MASK.wrong("empty-row-nan", clear=uncleared)
NAN = MASK[-1]
MASK.wrong("empty-row-nan 2", average=lambda s: s.soft @ s.value)
MASK.wrong("empty-row-uniform", hide=lambda s: fill(s, -1e9), clear=uncleared)
MASK.wrong("softmax-missing", mask=no_mask, divide=lambda s: s.hidden)
FAILING = ("mask-ignored", "mask-needed")  # alike whether zeros follow or not
HIDE = [one for one in of_masks.HIDE if one not in of_masks.LARGE_FILLS]


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
    STEPS,
    *(of_attention.RETURN_BOTH, SOURCES, MASK),
    without_zeros([one for one in MASK if one.slug not in FAILING], "mask"),
    *(without_zeros(HIDE), HIDE, of_attention.SCALE, SIZES, of_attention.AXIS),
    *(of_attention.SOFTMAX, of_attention.PROJECT, of_attention.SCORE),
    of_attention.AVERAGE,
    without=("parameter-called", "weight-not-transposed", "keys-times-queries"),
    renamed={
        "zero-for-minus-infinity": "zero-for-infinity",
        "renormalised-after": "empty-row-nan",
    },
    harmless=[*of_masks.HARMLESS[:2], NAN],
    words=TEXTS["WORDS"]
    | {
        "S_of_context": lambda s: s.given[1].shape[-2],
        "mask_shape": lambda s: shape(s.words),
    },
)


def seen(evidence):
    """Return what the facts of a text look at, from the answer's own weights."""
    allowed = start(*evidence.args)["allowed"]
    return State(weights=evidence.got[1], mask=allowed, allowed=allowed)


def padding_looked_at(evidence):
    """Property: hidden words get no weight."""
    found = of_attention.leak(seen(evidence))
    return TEXTS["SEEN"]["leak"].format(leak=found) if float(found) > 1e-6 else None


def rows_sum(evidence):
    """Property: the weights of the words that may be attended to sum to 1."""
    found = of_attention.row_sum(seen(evidence))
    if found == "NaN" or abs(float(found) - 1) < 1e-4:
        return None
    return TEXTS["SEEN"]["sum"].format(sum=found)


def tensors(x, context, width, value_width, scale=1.0):
    """Draw x, context and the three matrices for these sizes."""
    sentences = draw(*x, scale=scale), draw(*context, scale=scale)
    widths = width, width, value_width
    return *sentences, *(draw(x[-1], columns) for columns in widths)


def drawn(*sizes, real=None, scale=1.0, **settings):
    """Return the case of tensors in which that many words of context are real."""
    made = tensors(*sizes, scale=scale)
    words = torch.arange(made[1].shape[-2])
    mask = () if real is None else (words < torch.tensor(real)[..., None],)
    return case(*made, *mask, **settings)


def far_apart():
    """Draw words of which the first two have scores far from the others."""
    far = 300 * draws(81)(1, 5)  # with its opposite, one of the two fits any query
    x, words, *matrices = tensors((2, 5), (3, 5), 3, 2)
    return x, torch.cat([far, -far, words]), *matrices


LARGE = {"scale": 9.0, "special": True}
CASES = [
    drawn((2, 5), (3, 5), 7, 11),
    drawn((2, 5), (3, 5), 7, 11, real=2, note="the last word hidden"),
    drawn((2, 3, 5), (2, 7, 5), 11, 2, real=[7, 4], note="a batch with padding"),
    drawn((3, 3, 5), (3, 7, 5), 2, 11, real=[5, 7, 2], note="B = T"),
    drawn((2, 5, 7), (2, 5, 7), 3, 11, real=[2, 5], note="T = S"),
    drawn((2, 5, 7), (2, 3, 7), 7, 7, note="all matrices square"),
    case(
        *tensors((2, 5, 7), (2, 5, 7), 7, 7),
        torch.tensor([[True, False, True, True, False], [True] * 5]),
        note="T = S, all matrices square, a word in the middle hidden",
    ),
    drawn(
        *((2, 3, 5), (2, 7, 5), 11, 2),
        real=[3, 0],
        note="nothing allowed in the second sentence",
    ),
    drawn(
        *((2, 3, 5, 7), (2, 3, 11, 7), 2, 5),
        real=[[11, 4, 7], [1, 2, 5]],
        note="two leading axes",
    ),
    drawn((2, 5), (7, 5), 3, 2, note="large scores", **LARGE),
    drawn((2, 5), (7, 5), 3, 2, real=6, note="large scores and a hidden word", **LARGE),
    case(
        *far_apart(),
        torch.tensor([False, False, True, True, True]),
        note="hidden words whose scores are far from the others",
        special=True,
    ),
    drawn((1, 5), (1, 5), 3, 2, note="one word each", special=True),
]
cross_attention = Exercise(
    id="8.1",
    **TEXTS["8.1"],
    parts=("output", "weights"),
    oracle=right_attention,
    properties=[padding_looked_at, rows_sum],
    pipeline=pipeline,
    cases=CASES,
)
