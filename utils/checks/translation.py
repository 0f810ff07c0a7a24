"""Exercise of notebook 08: cross-attention."""

import torch

from utils.checks.draw import draws, worst_sum
from utils.checks.engine import Exercise, Mistake, case
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

EXERCISES = [cross_attention]
