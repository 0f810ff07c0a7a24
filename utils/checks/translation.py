"""Exercises of notebook 08: cross-attention, and the loop that writes a translation."""

import torch

from utils.checks.draw import draws, worst_sum
from utils.checks.engine import Exercise, Mistake, Trial, case
from utils.checks.guard import attempt, quietly, seeded
from utils.checks.values import number, shape

draw = draws(8)
INF = torch.inf


def lengths(*real, longest):
    """Return the mask (B, S) of sentences with that many words."""
    return torch.arange(longest) < torch.tensor(real)[:, None]


def projected(x, context, W_query, W_key, W_value):
    return x @ W_query, context @ W_key, context @ W_value


def scaled(query, key):
    return query @ key.mT / query.shape[-1] ** 0.5


def spread(context_mask):
    """Give the mask of the words an axis for the queries: (…, 1, S)."""
    return None if context_mask is None else context_mask[..., None, :]


def masked(scores, mask, dim=-1, fill=-INF):
    """Return the softmax over what a mask (…, T, S) allows; NaN where it is nothing."""
    return (scores if mask is None else scores.masked_fill(~mask, fill)).softmax(dim)


def weigh(scores, context_mask):
    mask = spread(context_mask)
    weights = masked(scores, mask)
    return weights if mask is None else weights.masked_fill(~mask, 0.0)


def right_attention(x, context, W_query, W_key, W_value, context_mask=None):
    """Return the oracle's output and weights: exp of the scores over their sum."""
    tensors = (t.double() for t in (x, context, W_query, W_key, W_value))
    query, key, value = projected(*tensors)
    scores = scaled(query, key)
    exps = (scores - scores.amax(-1, keepdim=True)).exp()
    if context_mask is not None:
        allowed = context_mask.unsqueeze(-2).expand_as(scores)
        top = scores.masked_fill(~allowed, -INF).amax(-1, keepdim=True)
        exps = torch.where(allowed, scores - top, -INF).exp()
    weights = (exps / exps.sum(-1, keepdim=True)).nan_to_num(0.0)
    return (weights @ value).float(), weights.float()


def attention(choose=projected, scores=scaled, weights=weigh):
    """Return cross-attention of which one of three steps can be another."""

    def compute(x, context, W_query, W_key, W_value, context_mask=None):
        query, key, value = choose(x, context, W_query, W_key, W_value)
        made = weights(scores(query, key), context_mask)
        return made @ value, made

    return compute


def scaled_by(slug, factor, explain):
    """Return the mistake that multiplies the scores by `factor(args)`."""

    def compute(*args):
        scale = factor(args)
        return attention(scores=lambda query, key: query @ key.mT * scale)(*args)

    return Mistake(slug, compute, explain)


def weighted(slug, weights, explain):
    """Return the mistake that turns scores and mask into weights in another way."""
    return Mistake(slug, attention(weights=weights), explain)


def chosen(slug, choose, explain):
    """Return the mistake that makes queries, keys and values of something else."""
    return Mistake(slug, attention(choose), explain)


def with_mask(made, zeroed=False):
    """Return weights that use `made(context_mask)` for a mask over the scores."""

    def weights(scores, context_mask):
        if context_mask is None:
            return scores.softmax(-1)
        mask = made(context_mask, scores)
        found = masked(scores, mask)
        return found.masked_fill(~mask, 0.0) if zeroed else found

    return weights


def by_fill(fill):
    return lambda scores, mask: masked(scores, spread(mask), fill=fill)


def over_queries(scores, context_mask):
    return masked(scores, spread(context_mask), dim=-2)


def over_queries_zeroed(scores, context_mask):
    found = over_queries(scores, context_mask)
    return (
        found if context_mask is None else found.masked_fill(~spread(context_mask), 0)
    )


def late(scores, context_mask):
    weights = scores.softmax(-1)
    return weights if context_mask is None else weights * spread(context_mask)


def triangle(context_mask, scores):
    return torch.ones(scores.shape[-2:]).tril().bool()


def causal(scores, context_mask):
    return masked(scores, triangle(None, scores))


def causal_as_well(scores, context_mask):
    mask = triangle(None, scores)
    return masked(scores, mask if context_mask is None else mask & spread(context_mask))


def nan_in_output(*args):
    query, key, value = projected(*args[:5])
    weights = masked(scaled(query, key), spread(args[5] if len(args) > 5 else None))
    return weights @ value, weights.nan_to_num(0.0)


def values_masked(x, context, W_query, W_key, W_value, context_mask=None):
    query, key, value = projected(x, context, W_query, W_key, W_value)
    weights = scaled(query, key).softmax(-1)
    if context_mask is not None:
        value = value * context_mask[..., None]
    return weights @ value, weights


def zeroed(x, context, W_query, W_key, W_value, context_mask=None):
    """Attend to a context whose hidden words are zero vectors."""
    if context_mask is not None:
        context = context * context_mask[..., None]
    return right_attention(x, context, W_query, W_key, W_value)


def added(scores, context_mask):
    mask = spread(context_mask)
    return (scores if mask is None else scores + mask.float()).softmax(-1)


def both_axes(mask, scores):
    return mask[..., None, :] & mask[..., :, None]


def joined(x, context, W_query, W_key, W_value):
    both = torch.cat((x, context), dim=-2)
    return x @ W_query, both @ W_key, both @ W_value


def with_residual(*args):
    output, weights = right_attention(*args)
    return args[0] + output, weights


def needs_mask(error):
    """Return the function that is right with a mask and fails without one."""

    def compute(*args):
        if len(args) < 6:
            raise error("")
        return right_attention(*args)

    return compute


def truth_of_mask(*args):
    if len(args) > 5:
        bool(args[5])
    return right_attention(*args)


def turned(first, second):
    """Return the scores that transpose two fixed axes of the keys."""

    def scores(query, key):
        return query @ key.transpose(first, second) / query.shape[-1] ** 0.5

    return scores


def one_sentence(context_mask, scores):
    return context_mask.flatten(0, -2)[:1] if context_mask.dim() > 1 else context_mask


def on_padding(e):
    """Return the largest weight that a query gives to hidden words, as text."""
    hidden = e.got[1].double().nan_to_num(0.0) * ~spread(e.args[5])
    return number(hidden.sum(-1).max().item())


def padding_looked_at(e):
    if len(e.args) < 6 or float(on_padding(e)) < 1e-6:
        return None
    return f"Hidden words get a weight of up to {on_padding(e)} instead of 0."


def sums(e):
    weights = e.got[1].double()
    some = weights.sum(-1) > 0
    if some.any() and ((weights.sum(-1) - 1).abs()[some] > 1e-4).any():
        return f"A row of the weights sums to {worst_sum(weights[some])} instead of 1."
    return None


EMPTY = (
    "a sentence without any word that may be attended to must give zeros, in the "
    "weights and in the output"
)
FIXED_AXES = (
    "counts axes from the left, and with another number of axes in front it means "
    "others: the last two are key.transpose(-2, -1)."
)
NEEDS_MASK = (
    "Without a mask the answer fails: `context_mask` is None then, and every word may "
    "be attended to."
)
FIXED_MASK_AXIS = (
    "The axis for the queries is put in at a fixed place, which fits a mask (B, S) "
    "alone: count from the right, context_mask[..., None, :]."
)

cross_attention = Exercise(
    id="8.1",
    signature="cross_attention(x, context, W_query, W_key, W_value, context_mask=None)",
    returns="the tuple (output, weights) of shapes (…, T, d_v) and (…, T, S)",
    parts=("output", "weights"),
    oracle=right_attention,
    properties=[padding_looked_at, sums],
    cases=[
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
        ),
        case(
            *(draw(1, 5), draw(1, 5), draw(5, 3), draw(5, 3), draw(5, 2)),
            note="one word each",
        ),
    ],
    mistakes=[
        Mistake(
            "weights-missing",
            lambda *args: right_attention(*args)[0],
            "This is the right output, but the weights are missing: return the output "
            "and the weights.",
        ),
        Mistake(
            "output-and-weights-swapped",
            lambda *args: right_attention(*args)[::-1],
            "Both are right, in the wrong order: the output comes first.",
        ),
        Mistake(
            "output-missing",
            lambda *args: right_attention(*args)[1],
            "These are the right weights: multiply them with the values, and return "
            "both.",
        ),
        chosen(
            "roles-swapped",
            lambda x, context, q, k, v: projected(context, x, q, k, v),
            lambda e: (
                f"The output has a row for each of the {e.args[1].shape[-2]} words of "
                "`context`: it asks and x answers. Queries come from x, keys and "
                "values from context."
            ),
        ),
        Mistake(
            "roles-swapped",
            lambda *args: right_attention(args[1], args[0], *args[2:5]),
            lambda e: (
                f"The output has a row for each of the {e.args[1].shape[-2]} words of "
                "`context`: it asks and x answers. Queries come from x, keys and "
                "values from context; the mask belongs to the keys."
            ),
        ),
        chosen(
            "context-not-used",
            lambda x, context, q, k, v: projected(x, x, q, k, v),
            "Queries, keys and values all come from x, which is self-attention: keys "
            "and values come from context.",
        ),
        Mistake(
            "context-not-used",
            lambda *args: right_attention(args[0], args[0], *args[2:5]),
            "Queries, keys and values all come from x, which is self-attention: keys "
            "and values come from context, whose words the mask hides.",
        ),
        chosen(
            "x-not-used",
            lambda x, context, q, k, v: projected(context, context, q, k, v),
            "Queries, keys and values all come from context: the queries come from x.",
        ),
        chosen(
            "x-among-the-keys",
            joined,
            lambda e: (
                f"There are {e.got[1].shape[-1]} keys for {e.args[1].shape[-2]} words "
                "of context: x is among them. Only context is attended to."
            ),
        ),
        Mistake(
            "x-among-the-keys",
            lambda *args: attention(joined)(*args[:5]),
            lambda e: (
                f"There are {e.got[1].shape[-1]} keys for {e.args[1].shape[-2]} words "
                "of context: x is among them. Only context is attended to."
            ),
        ),
        chosen(
            "values-from-x",
            lambda x, context, q, k, v: (x @ q, context @ k, x @ v),
            "The values come from x: what is looked at in `context` is also what is "
            "averaged, so the values are context @ W_value.",
        ),
        chosen(
            "keys-from-x",
            lambda x, context, q, k, v: (x @ q, x @ k, context @ v),
            "The keys come from x, so x looks at itself: the keys are context @ W_key.",
        ),
        Mistake(
            "mask-ignored",
            lambda *args: right_attention(*args[:5]),
            lambda e: (
                f"Hidden words get a weight of up to {on_padding(e)}: the mask has no "
                "effect. masked_fill returns a new tensor: is its result used?"
            ),
        ),
        weighted(
            "mask-inverted",
            with_mask(lambda mask, scores: ~spread(mask), zeroed=True),
            lambda e: (
                f"Hidden words get a weight of up to {on_padding(e)}, real ones none. "
                "True means that the word may be attended to; masked_fill fills where "
                "the mask given to it is True, so give it ~mask."
            ),
        ),
        weighted(
            "mask-inverted",
            with_mask(lambda mask, scores: ~spread(mask)),
            lambda e: (
                f"Hidden words get a weight of up to {on_padding(e)}, real ones none. "
                "True means that the word may be attended to; masked_fill fills where "
                "the mask given to it is True, so give it ~mask."
            ),
        ),
        weighted(
            "mask-causal",
            causal,
            "The weights above the diagonal are 0: there is a causal mask. All of the "
            "context is known before the first query, only `context_mask` hides.",
        ),
        weighted(
            "mask-causal",
            causal_as_well,
            "Beside `context_mask` a causal mask hides words: all of the context is "
            "known before the first query, so nothing in it is the future.",
        ),
        weighted(
            "mask-causal",
            with_mask(triangle),
            "The mask given was replaced by a causal one: all of the context is known "
            "before the first query. Hide what `context_mask` marks False.",
        ),
        weighted(
            "mask-on-queries",
            with_mask(lambda mask, scores: mask[..., :, None], zeroed=True),
            "The mask blanks whole rows, the queries, and leaves the hidden words to "
            "be looked at: its axis is that of the keys, context_mask[..., None, :].",
        ),
        weighted(
            "mask-on-queries",
            with_mask(lambda mask, scores: mask[..., :, None]),
            "The mask blanks whole rows, the queries, and leaves the hidden words to "
            "be looked at: its axis is that of the keys, context_mask[..., None, :].",
        ),
        weighted(
            "mask-on-queries",
            with_mask(both_axes, zeroed=True),
            "The mask is laid over rows and columns: it belongs to the words of "
            "context alone, the columns, context_mask[..., None, :].",
        ),
        weighted(
            "mask-on-queries",
            with_mask(both_axes),
            "The mask is laid over rows and columns: it belongs to the words of "
            "context alone, the columns, context_mask[..., None, :].",
        ),
        weighted(
            "mask-axis-missing",
            with_mask(lambda mask, scores: mask, zeroed=True),
            "A mask (B, S) laid over scores (B, T, S) as it is lines the sentences up "
            "with the queries: give it an axis for them, context_mask[..., None, :].",
        ),
        weighted(
            "mask-axis-missing",
            with_mask(lambda mask, scores: mask),
            "A mask (B, S) laid over scores (B, T, S) as it is lines the sentences up "
            "with the queries: give it an axis for them, context_mask[..., None, :].",
        ),
        weighted(
            "mask-axis-fixed",
            with_mask(lambda mask, scores: mask[:, None, :], zeroed=True),
            FIXED_MASK_AXIS,
        ),
        weighted(
            "mask-axis-fixed",
            with_mask(lambda mask, scores: mask[:, None, :]),
            FIXED_MASK_AXIS,
        ),
        weighted(
            "mask-axis-fixed",
            with_mask(lambda mask, scores: mask.unsqueeze(1), zeroed=True),
            FIXED_MASK_AXIS,
        ),
        weighted(
            "mask-axis-fixed",
            with_mask(lambda mask, scores: mask.unsqueeze(1)),
            FIXED_MASK_AXIS,
        ),
        weighted(
            "one-mask-for-all",
            with_mask(one_sentence, zeroed=True),
            "Every sentence gets the mask of the first one: each has its own row.",
        ),
        weighted(
            "one-mask-for-all",
            with_mask(one_sentence),
            "Every sentence gets the mask of the first one: each has its own row.",
        ),
        weighted(
            "mask-after-softmax",
            late,
            lambda e: (
                f"A row of the weights sums to {worst_sum(e.got[1])}: the mask comes "
                "after the softmax. Hide the scores, before it."
            ),
        ),
        Mistake(
            "values-hidden-alone",
            values_masked,
            "The values of hidden words are zero, but their keys still take part in "
            "the softmax and draw weight: hide the scores.",
        ),
        Mistake(
            "context-zeroed",
            zeroed,
            lambda e: (
                f"Hidden words get a weight of up to {on_padding(e)}: as zero vectors "
                "they still have a score, 0, and the softmax gives them a share. Hide "
                "the scores with -inf."
            ),
        ),
        weighted(
            "mask-added",
            added,
            lambda e: (
                f"Hidden words get a weight of up to {on_padding(e)}: a boolean mask "
                "added to the scores counts as 1 and 0. Use masked_fill with -inf."
            ),
        ),
        weighted(
            "empty-row-nan",
            by_fill(-INF),
            f"Where all scores are -inf the softmax divides 0 by 0: {EMPTY}. "
            "masked_softmax of 05 sees to it.",
        ),
        Mistake(
            "empty-row-nan",
            nan_in_output,
            f"The weights are mended, but the output was made before that: {EMPTY}.",
        ),
        weighted(
            "empty-row-uniform",
            by_fill(-1e9),
            f"A large negative number makes an empty row uniform: {EMPTY}. Use -inf "
            "and set the hidden weights to 0 afterwards.",
        ),
        weighted(
            "zero-for-infinity",
            by_fill(0.0),
            lambda e: (
                f"Hidden words get a weight of up to {on_padding(e)}: a score of 0 is "
                "a score like others, e⁰ = 1. Use float('-inf')."
            ),
        ),
        weighted(
            "softmax-over-queries",
            over_queries,
            lambda e: (
                f"A row of the weights sums to {worst_sum(e.got[1])} while every "
                "column sums to 1: the softmax runs over the queries. Use dim=-1."
            ),
        ),
        weighted(
            "softmax-over-queries",
            over_queries_zeroed,
            lambda e: (
                f"A row of the weights sums to {worst_sum(e.got[1])} while every "
                "column sums to 1: the softmax runs over the queries. Use dim=-1."
            ),
        ),
        weighted(
            "softmax-missing",
            lambda scores, mask: scores,
            "The scores are used as they are: a softmax over the words of context "
            "turns them into weights.",
        ),
        scaled_by(
            "scale-missing",
            lambda args: 1.0,
            lambda e: (
                "The scores were not divided by √d_k = "
                f"√{e.args[2].shape[-1]}: the weights are too peaked."
            ),
        ),
        scaled_by(
            "scale-of-model-width",
            lambda args: args[0].shape[-1] ** -0.5,
            lambda e: (
                f"The scores are divided by √D = √{e.args[0].shape[-1]}, the width of "
                "x: the width that counts is that of the queries, "
                f"K = {e.args[2].shape[-1]}."
            ),
        ),
        scaled_by(
            "scale-of-first-axis",
            lambda args: args[0].shape[0] ** -0.5,
            lambda e: (
                f"The scores are divided by √{e.args[0].shape[0]}, the size of the "
                "first axis of x: the width of the queries counts, "
                f"K = {e.args[2].shape[-1]}."
            ),
        ),
        scaled_by(
            "scale-of-keys",
            lambda args: args[1].shape[-2] ** -0.5,
            lambda e: (
                f"The scores are divided by √S = √{e.args[1].shape[-2]}, the number "
                "of words: the width of the queries counts, "
                f"K = {e.args[2].shape[-1]}."
            ),
        ),
        scaled_by(
            "scale-of-values",
            lambda args: args[4].shape[-1] ** -0.5,
            lambda e: (
                f"The scores are divided by √d_v = √{e.args[4].shape[-1]}: the width "
                f"that counts is that of the queries, K = {e.args[2].shape[-1]}."
            ),
        ),
        scaled_by(
            "divided-by-width",
            lambda args: 1 / args[2].shape[-1],
            lambda e: (
                f"The scores are divided by K = {e.args[2].shape[-1]}, not by its "
                "square root: the weights are too even."
            ),
        ),
        scaled_by(
            "scale-multiplied",
            lambda args: args[2].shape[-1] ** 0.5,
            lambda e: (
                f"The scores are multiplied by √K = √{e.args[2].shape[-1]} where "
                "they should be divided by it: the weights are far too peaked."
            ),
        ),
        chosen(
            "keys-for-values",
            lambda x, context, q, k, v: (x @ q, context @ k, context @ k),
            "The weights are right, but they average the keys: average the values, "
            "context @ W_value.",
        ),
        chosen(
            "values-not-projected",
            lambda x, context, q, k, v: (x @ q, context @ k, context),
            "The weights are right, but they average context itself: average the "
            "values, context @ W_value.",
        ),
        chosen(
            "keys-not-projected",
            lambda x, context, q, k, v: (x @ q, context, context @ v),
            "The queries meet context itself: the keys are context @ W_key.",
        ),
        chosen(
            "queries-not-projected",
            lambda x, context, q, k, v: (x, context @ k, context @ v),
            "x itself meets the keys: the queries are x @ W_query.",
        ),
        chosen(
            "keys-and-values-exchanged",
            lambda x, context, q, k, v: (x @ q, context @ v, context @ k),
            "W_key makes the values and W_value the keys: exchange the two.",
        ),
        chosen(
            "query-and-key-matrices-exchanged",
            lambda x, context, q, k, v: (x @ k, context @ q, context @ v),
            "x is multiplied by W_key and context by W_query: exchange the two.",
        ),
        chosen(
            "matrices-transposed",
            lambda x, context, q, k, v: (x @ q.T, context @ k.T, context @ v.T),
            "The matrices are (D, K), ready for x @ W_query: only the weight of an "
            "nn.Linear is stored turned.",
        ),
        Mistake(
            "scores-for-weights",
            lambda *args: (
                right_attention(*args)[0],
                scaled(*projected(*args[:5])[:2]),
            ),
            "The output is right, but the second value holds the scores: return the "
            "weights, which come out of the softmax.",
        ),
        Mistake(
            "weights-turned",
            lambda *args: (right_attention(*args)[0], right_attention(*args)[1].mT),
            "The output is right, but the weights are transposed: rows are queries, "
            "columns are the words of context.",
        ),
        Mistake(
            "transpose-of-all-axes",
            attention(scores=lambda q, k: q @ k.T / q.shape[-1] ** 0.5),
            "`.T` turns round all axes of a tensor, the batch too: transpose the last "
            "two alone, key.transpose(-2, -1).",
        ),
        Mistake(
            "fixed-axes",
            attention(scores=turned(1, 2)),
            f"transpose(1, 2) {FIXED_AXES}",
        ),
        Mistake(
            "fixed-axes",
            attention(scores=turned(0, 1)),
            f"transpose(0, 1) {FIXED_AXES}",
        ),
        Mistake(
            "x-added",
            with_residual,
            "The output is the right one plus x: the residual belongs to the block "
            "around the attention. Return the weighted sum alone.",
        ),
        Mistake("mask-needed", needs_mask(TypeError), NEEDS_MASK),
        Mistake("mask-needed", needs_mask(AttributeError), NEEDS_MASK),
        Mistake(
            "mask-as-truth-value",
            truth_of_mask,
            lambda e: (
                f"A mask of shape {shape(e.args[5])} is neither true nor false: ask "
                "`if context_mask is not None`."
            ),
        ),
        weighted(
            "uniform-weights",
            lambda scores, mask: weigh(torch.zeros_like(scores), mask),
            "Every word gets the same weight: the scores play no part.",
        ),
    ],
)


# ---- 8.2: the decoding loop -------------------------------------------------------


class TooManyCalls(RuntimeError):
    """Raised by a `Speaker` that is asked far more often than there is room for."""


class Speaker:
    """Stands for `next_logits`: what follows depends on every id given to it.

    It says end_id after `length` ids, or never, and raises `TooManyCalls` where it is
    called over and over, or with far too many ids.
    """

    def __init__(self, vocab_size, end_id, length=None, seed=0, ties=False):
        self.settings = vocab_size, end_id, length, seed, ties
        self.calls = 0

    def fresh(self):
        return Speaker(*self.settings)

    def __repr__(self):
        length = self.settings[2]
        said = "without end" if length is None else f"of {length} ids"
        return f"a model that writes a sentence {said}"

    def __call__(self, ids):
        vocab_size, end_id, length, seed, ties = self.settings
        self.calls += 1
        if not isinstance(ids, (list, tuple)):
            raise TypeError(
                f"next_logits takes a list of ids, got {type(ids).__name__}"
            )
        if self.calls > LIMIT or len(ids) > LIMIT:
            raise TooManyCalls(f"next_logits was called more than {LIMIT} times")
        key = seed
        for id in ids:  # in order: another id, or another place, is another key
            key = (31 * key + int(id) + 1) % 1_000_003
        generator = torch.Generator(device="cpu").manual_seed(key)
        logits = torch.randn(vocab_size, generator=generator, device="cpu") - 5.0
        if ties:  # the two best are equal
            best = logits.topk(2).indices
            logits[best] = logits.max()
        ended = length is not None and len(ids) == length + 1  # then it starts anew
        logits[end_id] = 9.0 if ended else -99.0
        return logits


LIMIT = 60  # calls; no case has room for half as many


def looped(
    ask=lambda next_logits, ids, written: next_logits(ids),
    pick=lambda logits: int(logits.argmax()),
    tidy=lambda start_id, written, end_id: written,
    room=lambda max_length: max_length,
    ends=lambda id, end_id: id == end_id,
    keeps_end=False,
):
    """Return a decoding loop of which single steps can be others."""

    def compute(next_logits, start_id, end_id, max_length):
        written = []
        while len(written) < room(max_length):
            id = pick(ask(next_logits, [start_id, *written], written))
            if ends(id, end_id):
                if keeps_end:
                    written.append(id)
                break
            written.append(id)
        return tidy(start_id, written, end_id)

    return compute


def picking(slug, pick, explain):
    """Return the mistake that takes another id from the logits."""
    return Mistake(slug, looped(pick=pick), explain)


def tidied(slug, tidy, explain, **steps):
    """Return the mistake that returns something else than what was written."""
    return Mistake(slug, looped(tidy=tidy, **steps), explain)


def start_taken_for_end(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    while ids[-1] != end_id and len(ids) <= max_length:
        ids.append(int(next_logits(ids).argmax()))
    return [id for id in ids[1:] if id != end_id]


def limit_checked_late(next_logits, start_id, end_id, max_length):
    return looped(room=lambda n: max(n, 1))(next_logits, start_id, end_id, max_length)


def backwards(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    while len(ids) <= max_length:
        id = int(next_logits(ids).argmax())
        if id == end_id:
            break
        ids.insert(1, id)
    return ids[1:]


def by_chance(logits):
    return int(torch.multinomial(torch.softmax(logits, dim=-1), 1))


def last_of_ties(logits):
    return int((logits == logits.max()).nonzero()[-1])


def as_tensor(next_logits, start_id, end_id, max_length):
    return looped(ask=lambda f, ids, _: f(torch.tensor(ids)))(
        next_logits, start_id, end_id, max_length
    )


def never(id, end_id):
    return False


def never_ends(answer):
    """Fact: the loop asks on and on, where the model never says that it has ended."""
    for settings in ((5, 2), (5, 2, 3)):
        outcome = attempt(answer, Speaker(*settings), 1, 2, 4)
        if type(outcome.error) is TooManyCalls:
            return "never-ends", NEVER_ENDS
    return None


def start_first(evidence):
    """Property: show what the right loop writes, id by id."""
    next_logits, start_id, end_id, max_length = evidence.args
    ids = [start_id, *evidence.expected]
    if len(evidence.expected) < max_length:
        ids.append(end_id)
    shown = ", then ".join(map(str, ids[1:4]))
    return shown and (
        f"After [{start_id}] the largest logit is that of {shown}"
        f"{' …' if len(ids) > 4 else ''}: print what you give to next_logits and what "
        "you take."
    )


NEVER_ENDS = (
    f"next_logits was called more than {LIMIT} times, with room for far fewer ids: the "
    "loop never ends. Stop at end_id, stop after max_length ids as well, and see to it "
    "that every round adds an id."
)


class LoopExercise(Exercise):
    """An exercise whose answer calls a function: each run gets a fresh one."""

    def observe(self, answer, case, memory):
        def through(function):
            def run(next_logits, *rest):
                return function(next_logits.fresh(), *rest)

            return run

        got = seeded(through(answer), case.args)
        expected = quietly(through(self.oracle), case.args)
        return Trial(case, case.args, got, expected, answer, through)


greedy_translate = LoopExercise(
    id="8.2",
    signature="greedy_translate(next_logits, start_id, end_id, max_length)",
    returns="a list of at most max_length ids, without start_id in front and without "
    "end_id",
    oracle=looped(),
    properties=[start_first],
    facts=[never_ends],
    cases=[
        case(Speaker(7, 2, 3), 1, 2, 5),
        case(Speaker(7, 2, 3, seed=5), 1, 2, 3, note="just enough room"),
        case(Speaker(11, 0, seed=3), 1, 0, 4, note="the model never says end_id"),
        case(Speaker(7, 2, 0), 1, 2, 5, note="end_id at once"),
        case(Speaker(7, 2, 3), 1, 2, 0, note="room for no id"),
        case(Speaker(5, 4, 6, seed=7), 3, 4, 13),
        case(Speaker(13, 5, 4, seed=1), 5, 5, 7, note="start_id is end_id"),
        case(Speaker(7, 2, 5, seed=2, ties=True), 1, 2, 9, note="equal logits"),
        case(Speaker(11, 2, seed=11), 1, 2, 1, note="room for one id"),
    ],
    mistakes=[
        Mistake(
            "end-kept",
            looped(keeps_end=True),
            lambda e: (
                f"The result ends with end_id = {e.args[2]}: it says that the sentence "
                "is over and is no part of it. Look at the id before you append it."
            ),
        ),
        tidied(
            "start-kept",
            lambda start, written, end: [start, *written],
            lambda e: (
                f"The result begins with start_id = {e.args[1]}: return what comes "
                "after it."
            ),
        ),
        tidied(
            "start-and-end-kept",
            lambda start, written, end: [start, *written],
            "The result still has start_id in front and end_id behind: return the ids "
            "between them.",
            keeps_end=True,
        ),
        tidied(
            "first-id-lost",
            lambda start, written, end: written[1:],
            "The first id that was written is missing: start_id is not in this list "
            "any more, so nothing has to be cut off in front.",
        ),
        tidied(
            "last-id-lost",
            lambda start, written, end: written[:-1],
            "The last id that was written is missing: end_id is not in this list, so "
            "nothing has to be cut off behind.",
        ),
        Mistake(
            "goes-on-after-end",
            looped(ends=never),
            lambda e: (
                f"The loop goes on after end_id = {e.args[2]} until there are "
                "max_length ids: leave it as soon as end_id is the best."
            ),
        ),
        tidied(
            "goes-on-after-end",
            lambda start, written, end: [id for id in written if id != end],
            "end_id is taken out of the result, but the loop goes on after it and "
            "writes more: leave the loop there.",
            ends=never,
        ),
        Mistake(
            "never-ends",
            looped(room=lambda max_length: 10**9),
            NEVER_ENDS,
        ),
        Mistake(
            "one-too-few",
            looped(room=lambda max_length: max_length - 1),
            lambda e: (
                f"At most {max(0, e.args[3] - 1)} ids come back where max_length = "
                f"{e.args[3]}. Is start_id counted, or is the last id cut off although "
                "it is not end_id? Neither of the two counts."
            ),
        ),
        Mistake(
            "one-too-many",
            looped(room=lambda max_length: max_length + 1),
            lambda e: (
                f"With max_length = {e.args[3]} there may be {e.args[3]} ids after "
                f"start_id, not {e.args[3] + 1}: is it <= where < is meant?"
            ),
        ),
        Mistake(
            "limit-checked-late",
            limit_checked_late,
            "With max_length = 0 nothing may be written: look at the room before "
            "the first id is asked for, not after it.",
        ),
        Mistake(
            "ids-do-not-grow",
            looped(ask=lambda f, ids, _: f(ids[:1])),
            "next_logits is asked about [start_id] every time, so it says the same "
            "every time: give it all ids so far, the new ones included.",
        ),
        Mistake(
            "last-id-only",
            looped(ask=lambda f, ids, _: f(ids[-1:])),
            "next_logits is given the newest id alone: what follows depends on all of "
            "them, start_id first.",
        ),
        Mistake(
            "start-missing",
            looped(ask=lambda f, ids, written: f(list(written))),
            "next_logits is given the written ids without start_id: the first of its "
            "ids is always start_id.",
        ),
        Mistake(
            "list-needed",
            as_tensor,
            "next_logits takes a list of ids and does the rest itself: no tensor, no "
            "batch axis.",
        ),
        Mistake(
            "list-needed",
            looped(ask=lambda f, ids, _: f(ids[-1])),
            "next_logits takes the list of all ids so far, not one id.",
        ),
        tidied(
            "tensor-returned",
            lambda start, written, end: torch.tensor(written),
            "These are the right ids as a tensor: return a list of integers.",
        ),
        tidied(
            "tensor-returned",
            lambda start, written, end: torch.tensor(written, dtype=torch.long),
            "These are the right ids as a tensor: return a list of integers.",
        ),
        Mistake(
            "tensors-in-list",
            looped(pick=lambda logits: logits.argmax()),
            "The list holds tensors: argmax() gives one, and .item() makes a plain "
            "integer of it.",
        ),
        picking(
            "smallest-taken",
            lambda logits: int(logits.argmin()),
            "The id with the smallest logit is taken: take the largest.",
        ),
        picking(
            "value-for-id",
            lambda logits: logits.max().item(),
            "The largest logit itself is taken. Its place is the id: argmax().",
        ),
        picking(
            "sampled",
            by_chance,
            "The next id is drawn at random: greedy decoding takes the one with the "
            "largest logit.",
        ),
        picking(
            "last-of-ties",
            last_of_ties,
            "Of equal logits the last is taken: take the first, as argmax() does.",
        ),
        picking(
            "position-axis-expected",
            lambda logits: int(logits[-1].argmax()),
            "logits[-1] is the logit of one id: next_logits gives (V,), one number for "
            "each id, and no axis for positions.",
        ),
        picking(
            "position-axis-expected",
            lambda logits: int(logits[:, -1].argmax()),
            "next_logits gives (V,), one number for each id: there is no axis for "
            "sentences or positions.",
        ),
        picking(
            "position-axis-expected",
            lambda logits: int(logits[0, -1].argmax()),
            "next_logits gives (V,), one number for each id: there is no axis for "
            "sentences or positions.",
        ),
        Mistake(
            "start-taken-for-end",
            start_taken_for_end,
            "Where start_id and end_id are the same id, nothing is written: look at "
            "the id that next_logits has just given, not at the last of the list.",
        ),
        Mistake(
            "written-backwards",
            backwards,
            "New ids are put in front: they come at the end of the list.",
        ),
    ],
)

EXERCISES = [cross_attention, greedy_translate]
