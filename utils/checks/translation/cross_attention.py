"""Exercise 8.1: attention whose queries and keys come from two sentences."""

from types import SimpleNamespace

import torch

from utils.checks import attention_masks as of_masks
from utils.checks import attention_steps as of_attention
from utils.checks.attention_masks import uncleared, without_zeros
from utils.checks.attention_steps import PROJECTED, by_torch, fill, size, triangle
from utils.checks.draw import draws, special
from utils.checks.engine import Exercise, case
from utils.checks.steps import Forms, texts_of
from utils.checks.values import shape

TEXTS = texts_of(__file__)
draw = draws(8)


def right_attention(x, context, W_query, W_key, W_value, context_mask=None):
    x, context = x.double(), context.double()
    query = x @ W_query.double()
    key, value = context @ W_key.double(), context @ W_value.double()
    return by_torch(query, key, value, spread(context_mask))


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


NO_MASK = {"mask": lambda s: None}
GIVEN = {"x": lambda s: s.given[0], "context": lambda s: s.given[1]}
STEPS = GIVEN | of_attention.steps(
    **PROJECTED,
    mask=lambda s: spread(s.words),
    clear=of_attention.zeroed,
    give=lambda s: (s.output, s.weights),
)
SOURCES = Forms(TEXTS["SOURCES"])
for mask in ({}, NO_MASK):
    SOURCES.wrong("roles-swapped", x=GIVEN["context"], context=GIVEN["x"], **mask)
    SOURCES.wrong("context-not-used", context=GIVEN["x"], **mask)
    SOURCES.wrong("x-among-the-keys", context=lambda s: torch.cat(s.given, -2), **mask)
SOURCES.wrong("x-not-used", x=GIVEN["context"])
SOURCES.wrong("values-from-x", value=lambda s: s.x @ s.learned.W_value)
SOURCES.wrong("keys-from-x", key=lambda s: s.x @ s.learned.W_key)
EXCHANGED = of_attention.projected(query="key", key="query")
SOURCES.wrong("query-and-key-matrices-exchanged", **EXCHANGED)
SOURCES.wrong("matrices-transposed", **of_attention.TURNED)
SOURCES.wrong("x-added", give=lambda s: (s.x + s.output, s.weights))


# --- which words are hidden ----------------------------------------------------------


def of_words(made):
    """Return the step that makes a mask of the words' own, where there is one."""
    return lambda s: None if s.words is None else made(s.words)


def needs_mask(error):
    """Return the step that is right with a mask and fails, somehow, without one."""

    def mask(s):
        if s.words is None:
            raise error
        return spread(s.words)

    return mask


HIDDEN_VALUES = {"average": lambda s: s.weights @ (s.value * s.allowed.mT)}
MASK = Forms(TEXTS["MASK"])
wrong = MASK.wrong
wrong("mask-ignored", **NO_MASK)
wrong("mask-inverted", mask=of_words(lambda real: ~spread(real)))
wrong("mask-causal", mask=triangle)
wrong("mask-causal 2", mask=lambda s: triangle(s) & s.allowed)
wrong("mask-causal 3", mask=lambda s: None if s.words is None else triangle(s))
wrong("mask-on-queries", mask=of_words(lambda real: real[..., None]))
wrong("mask-on-queries 2", mask=of_words(lambda real: spread(real) & real[..., None]))
wrong("mask-axis-missing", mask=lambda s: s.words)
wrong("mask-axis-fixed", mask=of_words(lambda real: real[:, None, :]))
wrong("mask-axis-fixed", mask=of_words(lambda real: real.unsqueeze(1)))
wrong("one-mask-for-all", mask=of_words(lambda real: real[(0,) * (real.dim() - 1)]))
wrong("mask-needed", mask=needs_mask(TypeError()))
wrong("mask-needed", mask=needs_mask(AttributeError()))
wrong("mask-as-truth-value", mask=lambda s: spread(s.words) if s.words else None)
wrong("values-hidden-alone", **HIDDEN_VALUES, **NO_MASK)
wrong("context-zeroed", context=lambda s: s.given[1] * s.allowed.mT, **NO_MASK)
wrong("empty-row-nan", clear=uncleared)
NAN = MASK[-1]
wrong("empty-row-nan 2", average=lambda s: s.soft @ s.value)
wrong("empty-row-uniform", hide=lambda s: fill(s, -1e9), clear=uncleared)
wrong("softmax-missing", divide=lambda s: s.hidden, **NO_MASK)
HIDE = [one for one in of_masks.HIDE if one not in of_masks.LARGE_FILLS]


# --- the exercise --------------------------------------------------------------------

SIZES = [
    size("scale-of-model-width", "D", lambda s: s.x.shape[-1], ", the width of x"),
    size("scale-of-first-axis", "len(x)", lambda s: s.x.shape[0]),
    *of_attention.SIZES,
]
pipeline = of_attention.attention(
    start,
    STEPS,
    *(of_attention.RETURN_BOTH, SOURCES, MASK),
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


def weights_seen(evidence):
    """Property: hidden words get no weight, and the others of a row sum to 1."""
    return of_attention.hidden_and_allowed(
        evidence.got[1], start(*evidence.args)["allowed"]
    )


def tensors(x, context, width, value_width, scale=1.0):
    """Draw x, context and the three matrices for these sizes."""
    sentences = (draw(*size, scale=scale) for size in (x, context))
    return *sentences, *(draw(x[-1], n) for n in (width, width, value_width))


def drawn(note, *sizes, real=None, scale=1.0, **settings):
    """Return the case of tensors in which that many words of context are real."""
    made = tensors(*sizes, scale=scale)
    words = torch.arange(made[1].shape[-2])
    mask = () if real is None else (words < torch.tensor(real)[..., None],)
    return case(*made, *mask, note=note, **settings)


def far_apart():
    """Draw words of which the first two, hidden, have scores far from the others."""
    far = 300 * draws(81)(1, 5)  # with its opposite, one of the two fits any query
    x, words, *matrices = tensors((2, 5), (3, 5), 3, 2)
    return x, torch.cat([far, -far, words]), *matrices, torch.arange(5) > 1


SQUARE = "T = S, all matrices square, a word in the middle hidden"
MIDDLE = torch.tensor([[True, False, True, True, False], [True] * 5])
NOTHING = "nothing allowed in the second sentence"
LENGTHS = [[11, 4, 7], [1, 2, 5]]
LARGE = {"scale": 9.0, "special": True}
cross_attention = Exercise(
    id="8.1",
    **TEXTS["8.1"],
    parts=("output", "weights"),
    oracle=right_attention,
    properties=[weights_seen],
    pipeline=pipeline,
    cases=[
        drawn("", (2, 5), (3, 5), 7, 11),
        drawn("the last word hidden", (2, 5), (3, 5), 7, 11, real=2),
        drawn("a batch with padding", (2, 3, 5), (2, 7, 5), 11, 2, real=[7, 4]),
        drawn("B = T", (3, 3, 5), (3, 7, 5), 2, 11, real=[5, 7, 2]),
        drawn("T = S", (2, 5, 7), (2, 5, 7), 3, 11, real=[2, 5]),
        drawn("all matrices square", (2, 5, 7), (2, 3, 7), 7, 7),
        case(*tensors((2, 5, 7), (2, 5, 7), 7, 7), MIDDLE, note=SQUARE),
        drawn(NOTHING, (2, 3, 5), (2, 7, 5), 11, 2, real=[3, 0]),
        drawn("two leading axes", (2, 3, 5, 7), (2, 3, 11, 7), 2, 5, real=LENGTHS),
        drawn("large scores", (2, 5), (7, 5), 3, 2, **LARGE),
        drawn("large scores and a hidden word", (2, 5), (7, 5), 3, 2, real=6, **LARGE),
        special("hidden words whose scores are far from the others", *far_apart()),
        drawn("one word each", (1, 5), (1, 5), 3, 2, special=True),
    ],
)
