"""Exercise 8.1: attention whose queries and keys come from two sentences."""

from types import SimpleNamespace

import torch

from utils.checks import attention_masks as of_masks
from utils.checks import attention_steps as of_attention
from utils.checks.attention_masks import uncleared, without_zeros
from utils.checks.attention_steps import (
    FACTS,
    GIVES,
    INF,
    PROJECTED,
    fill,
    forms_of,
    leak,
    size,
    steps,
    triangle,
    zeroed,
)
from utils.checks.draw import draws, worst_sum
from utils.checks.engine import Exercise, case, mistakes_of
from utils.checks.steps import Forms, Pipeline, State, form
from utils.checks.values import shape

draw = draws(8)
FAR = 300 * draws(81)(1, 5)  # with its opposite, one of the two fits any query


def lengths(*real, longest):
    """Return the mask (B, S) of sentences with that many words."""
    return torch.arange(longest) < torch.tensor(real)[:, None]


def right_attention(x, context, W_query, W_key, W_value, context_mask=None):
    """Return the oracle's output and weights: exp of the scores over their sum."""
    tensors = (t.double() for t in (x, context, W_query, W_key, W_value))
    x, context, W_query, W_key, W_value = tensors
    query, key, value = x @ W_query, context @ W_key, context @ W_value
    scores = query @ key.mT / query.shape[-1] ** 0.5
    exps = (scores - scores.amax(-1, keepdim=True)).exp()
    if context_mask is not None:
        allowed = context_mask.unsqueeze(-2).expand_as(scores)
        top = scores.masked_fill(~allowed, -INF).amax(-1, keepdim=True)
        exps = torch.where(allowed, scores - top, -INF).exp()
    weights = (exps / exps.sum(-1, keepdim=True)).nan_to_num(0.0)
    return (weights @ value).float(), weights.float()


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


def no_mask(s):
    return None


def with_words(made):
    """Return the step that uses `made(s)` for a mask, where words are hidden."""
    return lambda s: None if s.words is None else made(s)


def joined(s):
    return torch.cat((s.x, s.context), dim=-2)


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


SWAPPED = (
    "The output has a row for each of the {S_of_context} words of `context`: it asks "
    "and x answers. Queries come from x, keys and values from context."
)
NOT_USED = (
    "Queries, keys and values all come from x, which is self-attention: keys and "
    "values come from context, whose words the mask hides."
)
AMONG_KEYS = (
    "There are {S} keys for {S_of_context} words of context: x is among them. Only "
    "context is attended to."
)
OF_X = {
    "key": lambda s: s.x @ s.learned.W_key,
    "value": lambda s: s.x @ s.learned.W_value,
}
OF_BOTH = {
    "key": lambda s: joined(s) @ s.learned.W_key,
    "value": lambda s: joined(s) @ s.learned.W_value,
}
OF_CONTEXT = {"query": lambda s: s.context @ s.learned.W_query}
SOURCES = Forms()
SOURCES.wrong("roles-swapped", SWAPPED, **OF_CONTEXT, **OF_X)
SOURCES.wrong("roles-swapped", SWAPPED, **OF_CONTEXT, **OF_X, mask=no_mask)
SOURCES.wrong("context-not-used", NOT_USED, **OF_X)
SOURCES.wrong("context-not-used", NOT_USED, **OF_X, mask=no_mask)
SOURCES.wrong(
    "x-not-used",
    "Queries, keys and values all come from context: the queries come from x.",
    **OF_CONTEXT,
)
SOURCES.wrong("x-among-the-keys", AMONG_KEYS, **OF_BOTH)
SOURCES.wrong("x-among-the-keys", AMONG_KEYS, **OF_BOTH, mask=no_mask)
SOURCES.wrong(
    "values-from-x",
    "The values come from x: what is looked at in `context` is also what is averaged, "
    "so the values are context @ W_value.",
    value=OF_X["value"],
)
SOURCES.wrong(
    "keys-from-x",
    "The keys come from x, so x looks at itself: the keys are context @ W_key.",
    key=OF_X["key"],
)
SOURCES.wrong(
    "query-and-key-matrices-exchanged",
    "x is multiplied by W_key and context by W_query: exchange the two.",
    query=lambda s: s.x @ s.learned.W_key,
    key=lambda s: s.context @ s.learned.W_query,
)
SOURCES.wrong(
    "matrices-transposed",
    "The matrices are (D, K), ready for x @ W_query: only the weight of an nn.Linear "
    "is stored turned.",
    query=lambda s: s.x @ s.learned.W_query.T,
    key=lambda s: s.context @ s.learned.W_key.T,
    value=lambda s: s.context @ s.learned.W_value.T,
)
SOURCES.wrong(
    "x-added",
    "The output is the right one plus x: the residual belongs to the block around the "
    "attention. Return the weighted sum alone.",
    give=lambda s: (s.x + s.output, s.weights),
)
CAUSAL = (
    "The weights above the diagonal are 0: there is a causal mask. All of the context "
    "is known before the first query, only `context_mask` hides."
)
ON_QUERIES = (
    "The mask blanks whole rows, the queries, and leaves the hidden words to be "
    "looked at: its axis is that of the keys, context_mask[..., None, :]."
)
FIXED_MASK_AXIS = (
    "The axis for the queries is put in at a fixed place, which fits a mask (B, S) "
    "alone: count from the right, context_mask[..., None, :]."
)
INVERTED = (
    "Hidden words get a weight of up to {leak}, real ones none. True means that the "
    "word may be attended to; masked_fill fills where the mask given to it is True, "
    "so give it ~mask."
)
EMPTY = (
    "a sentence without any word that may be attended to must give zeros, in the "
    "weights and in the output"
)
NAN = (
    f"Where all scores are -inf the softmax divides 0 by 0: {EMPTY}. masked_softmax of "
    "05 sees to it."
)
NEEDS_MASK = (
    "Without a mask the answer fails: `context_mask` is None then, and every word may "
    "be attended to."
)
MASK = Forms()
MASK.wrong(
    "mask-ignored",
    "Hidden words get a weight of up to {leak}: the mask has no effect. masked_fill "
    "returns a new tensor: is its result used?",
    mask=no_mask,
)
MASK.wrong("mask-inverted", INVERTED, mask=with_words(lambda s: ~spread(s.words)))
MASK.wrong("mask-causal", CAUSAL, mask=triangle)
MASK.wrong(
    "mask-causal",
    "Beside `context_mask` a causal mask hides words: all of the context is known "
    "before the first query, so nothing in it is the future.",
    mask=causal_too,
)
MASK.wrong(
    "mask-causal",
    "The mask given was replaced by a causal one: all of the context is known before "
    "the first query. Hide what `context_mask` marks False.",
    mask=with_words(triangle),
)
MASK.wrong(
    "mask-on-queries", ON_QUERIES, mask=with_words(lambda s: s.words[..., :, None])
)
MASK.wrong(
    "mask-on-queries",
    "The mask is laid over rows and columns: it belongs to the words of context "
    "alone, the columns, context_mask[..., None, :].",
    mask=with_words(lambda s: spread(s.words) & s.words[..., :, None]),
)
MASK.wrong(
    "mask-axis-missing",
    "A mask (B, S) laid over scores (B, T, S) as it is lines the sentences up with "
    "the queries: give it an axis for them, context_mask[..., None, :].",
    mask=lambda s: s.words,
)
MASK.wrong(
    "mask-axis-fixed",
    FIXED_MASK_AXIS,
    mask=with_words(lambda s: s.words[:, None, :]),
)
MASK.wrong(
    "mask-axis-fixed",
    FIXED_MASK_AXIS,
    mask=with_words(lambda s: s.words.unsqueeze(1)),
)
MASK.wrong(
    "one-mask-for-all",
    "Every sentence gets the mask of the first one: each has its own row.",
    mask=with_words(one_sentence),
)
MASK.wrong("mask-needed", NEEDS_MASK, mask=needs_mask(TypeError()))
MASK.wrong("mask-needed", NEEDS_MASK, mask=needs_mask(AttributeError()))
MASK.wrong(
    "mask-as-truth-value",
    "A mask of shape {mask_shape} is neither true nor false: ask `if context_mask is "
    "not None`.",
    mask=truth_of_mask,
)
MASK.wrong(
    "values-hidden-alone",
    "The values of hidden words are zero, but their keys still take part in the "
    "softmax and draw weight: hide the scores.",
    value=lambda s: hidden_words_zero(s, s.context @ s.learned.W_value),
    mask=no_mask,
)
MASK.wrong(
    "context-zeroed",
    "Hidden words get a weight of up to {leak}: as zero vectors they still have a "
    "score, 0, and the softmax gives them a share. Hide the scores with -inf.",
    key=lambda s: hidden_words_zero(s, s.context) @ s.learned.W_key,
    value=lambda s: hidden_words_zero(s, s.context) @ s.learned.W_value,
    mask=no_mask,
)
MASK.wrong("empty-row-nan", NAN, clear=uncleared)
MASK.wrong(
    "empty-row-nan",
    f"The weights are mended, but the output was made before that: {EMPTY}.",
    clear=uncleared,
    give=lambda s: (s.output, s.weights.nan_to_num(0.0)),
)
MASK.wrong(
    "empty-row-uniform",
    f"A large negative number makes an empty row uniform: {EMPTY}. Use -inf and "
    "set the hidden weights to 0 afterwards.",
    hide=lambda s: fill(s, -1e9),
    clear=uncleared,
)
MASK.wrong(
    "softmax-missing",
    "The scores are used as they are: a softmax over the words of context turns them "
    "into weights.",
    mask=no_mask,
    divide=lambda s: s.hidden,
)
FAILING = ("mask-ignored", "mask-needed")  # alike whether zeros follow or not
HIDE = [one for one in of_masks.HIDE if one not in of_masks.LARGE_FILLS]
SIZES = [
    size("scale-of-model-width", "D", lambda s: s.x.shape[-1], ", the width of x"),
    size("scale-of-first-axis", "len(x)", lambda s: s.x.shape[0]),
    size("scale-of-keys", "S", lambda s: s.context.shape[-2], ", the number of words"),
    size("scale-of-tokens", "T", lambda s: s.x.shape[-2], ", the number of queries"),
    size("scale-of-values", "d_v", lambda s: s.value.shape[-1]),
]
STEPS = steps(
    **PROJECTED,
    mask=lambda s: spread(s.words),
    clear=zeroed,
    give=lambda s: (s.output, s.weights),
)
pipeline = Pipeline(
    start=start,
    steps=STEPS,
    gives=GIVES,
    forms=forms_of(
        STEPS,
        of_attention.RETURN_BOTH,
        SOURCES,
        MASK,
        without_zeros([one for one in MASK if one.slug not in FAILING], "mask"),
        without_zeros(HIDE),
        HIDE,
        of_attention.SCALE,
        SIZES,
        of_attention.AXIS,
        of_attention.SOFTMAX,
        of_attention.PROJECT,
        of_attention.SCORE,
        of_attention.AVERAGE,
        of_attention.UNIFORM,
        without=("parameter-called", "weight-not-transposed", "keys-times-queries"),
        renamed={
            "zero-for-minus-infinity": "zero-for-infinity",
            "renormalised-after": "empty-row-nan",
        },
    ),
    harmless=[
        form(None, clear=lambda s: s.soft.nan_to_num(0.0)),
        form(None, hide=lambda s: fill(s, -1e9)),
        form("empty-row-nan", NAN, clear=uncleared),
    ],
    words={
        "width": "K",
        "root": "√K",
        "source": "context",
        "average_value": "average the values, context @ W_value",
    },
    facts=FACTS
    | {
        "S_of_context": lambda s: s.context.shape[-2],
        "mask_shape": lambda s: shape(s.words),
    },
)


def padding_looked_at(e):
    if len(e.args) < 6:
        return None
    found = leak(State(weights=e.got[1], allowed=spread(e.args[5])))
    if float(found) < 1e-6:
        return None
    return f"Hidden words get a weight of up to {found} instead of 0."


def sums(e):
    weights = e.got[1].double()
    some = weights.sum(-1) > 0
    if some.any() and ((weights.sum(-1) - 1).abs()[some] > 1e-4).any():
        return f"A row of the weights sums to {worst_sum(weights[some])} instead of 1."
    return None


CASES = [
    case(draw(2, 5), draw(3, 5), draw(5, 7), draw(5, 7), draw(5, 11)),
    case(
        *(draw(2, 5), draw(3, 5), draw(5, 7), draw(5, 7), draw(5, 11)),
        torch.tensor([True, True, False]),
        note="the last word hidden",
    ),
    case(
        *(draw(2, 3, 5), draw(2, 7, 5), draw(5, 11), draw(5, 11), draw(5, 2)),
        lengths(7, 4, longest=7),
        note="a batch with padding",
    ),
    case(
        *(draw(3, 3, 5), draw(3, 7, 5), draw(5, 2), draw(5, 2), draw(5, 11)),
        lengths(5, 7, 2, longest=7),
        note="B = T",
    ),
    case(
        *(draw(2, 5, 7), draw(2, 5, 7), draw(7, 3), draw(7, 3), draw(7, 11)),
        lengths(2, 5, longest=5),
        note="T = S",
    ),
]
CASES += [
    case(
        *(draw(2, 5, 7), draw(2, 3, 7), draw(7, 7), draw(7, 7), draw(7, 7)),
        note="all matrices square",
    ),
    case(
        *(draw(2, 5, 7), draw(2, 5, 7), draw(7, 7), draw(7, 7), draw(7, 7)),
        torch.tensor([[True, False, True, True, False], [True] * 5]),
        note="T = S, all matrices square, a word in the middle hidden",
    ),
    case(
        *(draw(2, 3, 5), draw(2, 7, 5), draw(5, 11), draw(5, 11), draw(5, 2)),
        lengths(3, 0, longest=7),
        note="nothing allowed in the second sentence",
    ),
    case(
        *(draw(2, 3, 5, 7), draw(2, 3, 11, 7)),
        *(draw(7, 2), draw(7, 2), draw(7, 5)),
        lengths(11, 4, 7, 1, 2, 5, longest=11).view(2, 3, 11),
        note="two leading axes",
    ),
    case(
        *(draw(2, 5, scale=9.0), draw(7, 5, scale=9.0)),
        *(draw(5, 3), draw(5, 3), draw(5, 2)),
        note="large scores",
        special=True,
    ),
    case(
        *(draw(2, 5), torch.cat([FAR, -FAR, draw(3, 5)])),
        *(draw(5, 3), draw(5, 3), draw(5, 2)),
        torch.tensor([False, False, True, True, True]),
        note="hidden words whose scores are far from the others",
        special=True,
    ),
    case(
        *(draw(1, 5), draw(1, 5), draw(5, 3), draw(5, 3), draw(5, 2)),
        note="one word each",
        special=True,
    ),
]

cross_attention = Exercise(
    id="8.1",
    signature="cross_attention(x, context, W_query, W_key, W_value, context_mask=None)",
    returns="the tuple (output, weights) of shapes (…, T, d_v) and (…, T, S)",
    parts=("output", "weights"),
    oracle=right_attention,
    properties=[padding_looked_at, sums],
    pipeline=pipeline,
    mistakes=mistakes_of(pipeline),
    cases=CASES,
)
