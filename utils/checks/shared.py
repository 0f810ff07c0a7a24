"""Mistakes that several exercises share, in groups such as `SCALE`.

An exercise takes the groups whose variables its right answer assigns, one a line:

- `x` and `context` (PROJECT): what makes the queries, and what makes keys and values
- `query`, `key` and `value`: (..., T, d_k), (..., S, d_k) and (..., S, d_v)
- `width` (OF_INPUT, OF_VALUES): d_k, from `query.shape[-1]`
- `products` (SCORE, BATCH_SCORE): `query @ key.mT`
- `scores` (SCALE): `products / width**0.5`
- `hidden` (NO_MASK): the scores, -inf where a mask forbids
- `dim` (AXIS, FIXED_AXIS): the axis of the softmax, -1
- `soft` (SOFTMAX): `softmax_of(hidden, dim)`, so this function is imported, too
- `weights`: `soft`, perhaps with zeros in rows in which nothing is allowed
- `output` (AVERAGE): `weights @ value`
- `mask` (CAUSAL_MASK, HIDDEN_SCORES, EMPTY_ROWS): True where a query may attend
- `features` and `heads` (SPLIT): (B, T, D) before the split, (B, H, T, d_k) after it
- `joined` (MERGE) and `projected` (OUT_PROJECTION): the heads merged, and then projected
- `maxima`, `sums` and `outputs` (JOIN): those of the parts of a softmax
"""

from utils.checks.definition import Diagnosis, Mistake


def softmax_of(hidden, dim):
    exps = (hidden - hidden.amax(dim, keepdim=True)).exp()
    return exps / exps.sum(dim, keepdim=True)


BY_ROOT = "divide by √d_k, the root of a query's width."
SCALE = [
    Mistake("scale-missing", "You didn't divide the scores by √d_k = √{width}, so the weights are too peaked.", "scores = products"),
    Mistake("divided-by-width", "You divided the scores by d_k = {width}, or twice by its root, so the weights are too even: divide once, by the root.", "scores = products / width"),
    Mistake("scale-multiplied", "You multiplied the scores by √{width}, so the weights are far too peaked: divide by it.", "scores = products * width**0.5"),
    Mistake("scale-halves", "You divided by {width} and by 2, because Python takes the power first in `{width} ** 1 / 2`: write ** 0.5.", "scores = products / width / 2"),
    Mistake("scale-after-softmax", "You divided by √{width} after the softmax, so the weights no longer sum to 1: divide the scores, before it.", "scores = products; soft = softmax_of(hidden, dim) / width**0.5"),
    Mistake("scale-of-tokens", f"You divided the scores by √{{width}}, the root of the number of keys: {BY_ROOT}", "width = key.shape[-2]"),
]  # fmt: skip
OF_INPUT = [Mistake("scale-of-input-width", f"You divided the scores by √{{width}}, the root of x's width: {BY_ROOT}", "width = x.shape[-1]")]  # fmt: skip
OF_VALUES = [
    Mistake("scale-of-values", f"You divided the scores by √{{width}}, the root of the values' width: {BY_ROOT}", "width = value.shape[-1]"),
    Mistake("scale-fixed", "You always divided the scores by √2, which is right for two numbers only: divide by the root of query.shape[-1].", "width = 2"),
]  # fmt: skip
BY_ENTRY = Diagnosis("multiplied-by-entry", "You multiplied entry by entry, with `*`: compare each query with every key, which is a matrix product, Q Kᵀ.")  # fmt: skip
SCORE = [
    Mistake("reshape-for-transpose", "You used a reshape or view as a transpose: the shape fits, but the numbers keep their order, so features of several keys get mixed. Use transpose(-2, -1).", "products = query @ key.reshape(key.mT.shape)"),
    Mistake(*BY_ENTRY, "products = query * key.mT"),
]  # fmt: skip
KEYS_FIRST = Diagnosis("keys-times-queries", "You computed the scores as K Qᵀ, or swapped queries and keys before: row i belongs to query i, so write Q Kᵀ.")  # fmt: skip
BATCH_SCORE = [
    Mistake("key-not-transposed", "You multiplied queries and keys as they are: compare each query with every key, which is a matrix product with the keys transposed, Q Kᵀ.", "products = query @ key", "products = query * key"),
    Mistake(*KEYS_FIRST, "products = key @ query.mT"),
    Mistake("fixed-axes", "You counted the axes that you transpose from the front, which fits one number of axes only: count from the end, key.transpose(-2, -1).", "products = query @ key.transpose(0, 1)"),
    Mistake("transpose-of-all-axes", "You reversed all axes with `.T`, the batch too: swap only the last two, `.mT` or transpose(-2, -1).", "products = query @ key.T"),
]  # fmt: skip
AXIS = [
    Mistake("softmax-over-queries", "The weights that you use sum to 1 over the queries instead of the keys: take the softmax along the last axis, dim=-1.", "dim = -2"),
    Mistake("softmax-over-everything", "Your weights sum to 1 over all scores at once: each row should sum to 1, so use dim=-1.", "dim = (*range(hidden.dim()),)"),
]  # fmt: skip
FIXED_AXIS = [
    Mistake("fixed-axis", "You used dim={dim}, which is the axis of the keys only if there is no batch: count from the end, dim=-1.", "dim = 1"),
    Mistake("softmax-over-first-axis", "Your softmax runs along dim=0, which is not the axis of the keys: use dim=-1, so that each row sums to 1.", "dim = 0"),
]  # fmt: skip
NO_MAXIMUM = Diagnosis("maximum-not-subtracted", "In float32 exp() of a score above 88 is infinite, and below -104 it is 0: subtract each row's own maximum first, amax(dim, keepdim=True).")  # fmt: skip
ONE_MAXIMUM = Diagnosis("global-maximum-subtracted", "You subtracted one maximum from all rows, so a row far below it becomes 0/0, NaN: subtract each row's own, amax(dim, keepdim=True).")  # fmt: skip
NO_KEEPDIM = Diagnosis("keepdim-missing", "You summed without keepdim=True: sum() removes its axis, so the sums line up with the wrong entries. keepdim=True keeps the axis, with length 1.")  # fmt: skip
NOT_DIVIDED = Diagnosis("not-normalised", "You didn't divide the exponentials by their sum: divide, so that each row sums to 1.")  # fmt: skip
NO_EXPONENTIAL = Diagnosis("exponential-missing", "You divided the scores by their sum without the exponential: take exp first, or negative scores give negative weights.")  # fmt: skip
SOFTMAX = [
    Mistake(*NO_MAXIMUM, "soft = (exps := hidden.exp()) / exps.sum(dim, True)"),
    Mistake(*ONE_MAXIMUM, "soft = (exps := (hidden - hidden.max()).exp()) / exps.sum(dim, True)"),
    Mistake(*NO_KEEPDIM, "soft = (exps := (hidden - hidden.amax(dim, True)).exp()) / exps.sum(dim)"),
    Mistake(*NOT_DIVIDED, "soft = (hidden - hidden.amax(dim, True)).exp()", "soft = hidden.exp()"),
    Mistake(*NO_EXPONENTIAL, "soft = hidden / hidden.sum(dim, True)"),
    Mistake("softmax-missing", "You used the scores as they are: turn them into weights with a softmax.", "soft = hidden"),
]  # fmt: skip
NO_MASK = [Mistake("future-hidden", "You applied a causal mask, or a loop ends too early: here every query may attend to every key.", "hidden = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1) > 0, -torch.inf); weights = soft")]  # fmt: skip
PROJECT = [
    Mistake("queries-for-keys", "You made the keys with W_query: make them with W_key.", "key = context @ learned.W_query"),
    Mistake(*KEYS_FIRST, "query = x @ learned.W_key; key = context @ learned.W_query"),
    Mistake("values-not-projected", "You averaged the inputs themselves: average the values, which W_value makes of them.", "value = context"),
]  # fmt: skip
AVERAGE = [
    Mistake("weights-returned", "You left out the last product: multiply the weights by the values, which gives the context vectors.", "output = weights"),
    Mistake("weights-times-values", "You multiplied weights and values entry by entry, with `*`: take the matrix product, weights @ values.", "output = weights * value"),
    Mistake("keys-for-values", "You averaged the keys: average the values.", "output = weights @ key"),
    Mistake("divided-by-tokens", "You divided the sum by the number of keys: leave that out, because the weights sum to 1 already.", "output = weights @ value / key.shape[-2]"),
]  # fmt: skip
WEIGHING = AXIS + FIXED_AXIS + SOFTMAX + SCORE + BATCH_SCORE + AVERAGE
WEIGHING += [Mistake(*NO_KEEPDIM, "soft = (exps := hidden.exp()) / exps.sum(dim)")]  # fmt: skip


# ---- heads: split, merged and projected ------------------------------------------


def head_width(width, num_heads):
    if width % num_heads:
        raise ValueError  # of any text
    return width // num_heads


SPLIT = [
    Mistake("split-by-view", "You split straight into (B, H, T, d_k), which deals out the numbers as they lie in memory and mixes tokens and heads: split only the last axis, and exchange axes afterwards.", "heads = features.reshape(len(features), num_heads, -1, d_k)"),
    Mistake("features-interleaved", "You gave head 0 the features 0, {num_heads} and so on, in steps of {num_heads}: a head owns features that follow each other, so put the heads before the width when you split.", "heads = features.unflatten(-1, (d_k, num_heads)).permute(0, 3, 1, 2)"),
    Mistake("sizes-exchanged", "You cut each token into (d_k, H): the heads come before their width, view(B, T, H, d_k).", "heads = features.unflatten(-1, (d_k, num_heads)).transpose(1, 2)"),
    Mistake("another-width-checked", "You checked whether num_heads divides another number, such as T or d_in: it should divide the width that you split, D, or d_out in a layer.", "d_k = head_width(features.shape[1], num_heads) and features.shape[-1] // num_heads"),
]  # fmt: skip
SPLIT_IN_LAYER = [
    Mistake("split-by-view", "You split only some of queries, keys and values with view(B, H, T, d_k), which mixes tokens and features: use view(B, T, H, d_k) and transpose(1, 2).", "query, key, value = split[0], key.reshape(split[1].shape), split[2]"),
    Mistake("another-width-checked", "You checked whether num_heads divides d_in: it should divide the width that you split, d_out in a layer.", "x = x if head_width(x.shape[-1], learned.build.num_heads) else x"),
]  # fmt: skip
MERGE = [
    Mistake("merge-without-transpose", "You merged without a transpose, which puts several tokens of one head into a row: transpose(1, 2) to (B, T, H, d_k) first, then reshape.", "joined = output.reshape(len(output), output.shape[2], -1)", "joined = output.flatten(2)"),
    Mistake("merge-interleaved", "You put the first features of all heads first: keep each head together, with the axes (B, T, H, d_k) before the reshape.", "joined = output.permute(0, 2, 3, 1).flatten(2)"),
    Mistake("wrong-axes-transposed", "You swapped other axes than heads and tokens before the reshape: use transpose(1, 2), which gives (B, T, H, d_k).", "joined = output.mT.reshape(len(output), output.shape[2], -1)"),
    Mistake("view-not-contiguous", "You used view after transpose, but the numbers no longer lie in the order that view needs: use reshape or flatten(2).", "joined = output.transpose(1, 2).view(len(output), output.shape[2], -1)"),
]  # fmt: skip
MERGE_ALONE = [Mistake("heads-under-each-other", "You put the heads one below the other, (B, H*T, d_k): put them side by side, by transpose(1, 2) before the reshape, or torch.cat with dim=-1.", "joined = output.flatten(1, 2)")]  # fmt: skip
OUT_PROJECTION = [
    Mistake("heads-summed", "You passed {d_k} features to out_proj, as when heads are summed, averaged or lost: put them side by side, {learned.build.d_out} features.", "joined = output.sum(1)"),
    Mistake("output-projection-unused", "You left out the last step: send the merged heads through self.out_proj.", "projected = joined"),
]  # fmt: skip


# ---- masks: which positions they allow, and how scores are hidden ---------------

MASK_POSITIONS = [
    Mistake("diagonal-masked", "You hid each token from itself: it may see itself too.", "diagonal = columns - rows - 1"),
    Mistake("one-step-leaked", "You let each token see the next one: the last that a token may see is itself.", "diagonal = columns - rows + 1"),
    Mistake("upper-for-lower", "You allowed the upper triangle, each token and those after it: a token should see itself and those before it.", "mask = torch.ones(rows, columns).triu(diagonal) > 0"),
    Mistake("polarity-inverted", "You hid the past and showed the future: swap True and False. (Here True means that a key may be seen.)", "mask = torch.ones(rows, columns).triu(diagonal + 1) > 0"),
]  # fmt: skip
# In a layer, whose mask goes to masked_fill or to a function of the course. What needs other words here is left out by name, and added anew.
CAUSAL_MASK = [m for m in MASK_POSITIONS if m.name != "polarity-inverted"] + [
    Mistake("mask-not-used", "You let tokens see later ones, because no mask reaches your scores: hide the scores of later keys. (If you call masked_fill, use what it returns, a new tensor.)", "hidden = scores; weights = soft"),
    Mistake("masked-fill-inverted", "You hid the past and showed the future: swap True and False. (Here True means that a key may be seen, but masked_fill hides where it is given True.)", "mask = torch.ones(rows, columns).triu(diagonal + 1) > 0"),
    Mistake("mask-argument-inverted", "You hid the past and showed the future: swap True and False. (The mask of the course's function is True where a key may be seen.)", "mask = torch.ones(rows, columns).triu(diagonal + 1) > 0; weights = soft.masked_fill(~mask, 0.0)"),
]  # fmt: skip
OTHER_AXIS = Diagnosis("mask-of-another-axis", "Your mask has {rows} rows, but there are {x.shape[1]} tokens: take T from the axis before the last, T = q.shape[-2]. (len() and shape[0] count the sentences of the batch.)")  # fmt: skip
MASK_SIZE = [
    Mistake("mask-not-sliced", "You used the whole mask on a shorter input: cut it to mask[:T, :T], where T is the number of queries, q.shape[-2].", "rows, columns = [learned.build.context_length] * 2"),
    Mistake(*OTHER_AXIS, "rows, columns = len(x), len(x)"),
]  # fmt: skip
HIDDEN_SCORES = [
    Mistake("zero-times-infinity", "You multiplied the mask by -inf, and 0 times infinity is NaN: put -inf at the hidden positions only, scores.masked_fill(~mask, float('-inf')).", "hidden = scores + ~mask * -torch.inf; weights = soft"),
    Mistake("zero-for-minus-infinity", "You set hidden scores to 0 (or 1e-9), but e⁰ = 1 is a share like any other, so hidden positions get a weight: use -inf, before the softmax.", "hidden = scores.masked_fill(~mask, 0.0); weights = soft"),
    Mistake("mask-added", "You added the mask to the scores as 1 and 0, so hidden positions get a weight: use scores.masked_fill(~mask, float('-inf')).", "hidden = scores + mask.float(); weights = soft"),
    Mistake("mask-after-softmax", "You masked after the softmax: the weights that stay don't sum to 1, and if a hidden score is far above theirs, they are all 0. Fill the scores with -inf before the softmax.", "hidden = scores; weights = soft * mask", "hidden = scores; weights = soft * mask / (soft * mask).sum(-1, keepdim=True).clamp(min=1e-30)"),
]  # fmt: skip
ZEROS = "such a row must be all zeros, so set hidden weights to 0 after the softmax."
EMPTY_ROWS = [
    Mistake("empty-row-nan", f"You get NaN where nothing may be attended to, because all scores are -inf: {ZEROS}", "weights = soft"),
    Mistake("empty-row-uniform", f"Your large negative number makes a row uniform where nothing may be attended to: {ZEROS}", "hidden = scores.masked_fill(~mask, -1e9); weights = soft"),
]  # fmt: skip


# ---- parts of a softmax: slices of keys, or of machines ----------------------------

# A part knows, for each query, the maximum that its exponentials are counted from, their
# sum, and its output, the values weighted with them and not divided yet: `maxima` and
# `sums` are (P, …, T, 1), `outputs` (P, …, T, d_v).
JOIN = [
    Mistake("outputs-not-rescaled", "You rescaled the denominators but not the accumulators: multiply both by the same factors.", "joined = outputs.sum(0)"),
    Mistake("sums-not-rescaled", "You rescaled the accumulators but not the denominators, by which they are divided: multiply both by the same factors.", "total = sums.sum(0)"),
    Mistake("rescaled-inversely", "You multiplied by exp(new − old), so what came before grows, or is NaN from the start at −∞: the factor is exp(old − new).", "factors = torch.exp(top - maxima)", "factors = torch.exp(top - maxima).masked_fill(sums == 0, 0.0)"),
    Mistake("nothing-rescaled", "You added accumulators and denominators that count from different maxima: multiply both by exp(their maximum − the largest).", "factors = torch.ones_like(maxima)"),
]  # fmt: skip
