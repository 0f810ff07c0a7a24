"""What goes wrong in attention.

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
REVERSED = Diagnosis("transpose-of-all-axes", "You reversed all axes with `.T`, the batch too: swap only the last two, `.mT` or transpose(-2, -1).")  # fmt: skip
BATCH_SCORE = [
    Mistake("key-not-transposed", "You multiplied queries and keys as they are: compare each query with every key, which is a matrix product with the keys transposed, Q Kᵀ.", "products = query @ key", "products = query * key"),
    Mistake(*KEYS_FIRST, "products = key @ query.mT"),
    Mistake("fixed-axes", "You counted the axes that you transpose from the front, which fits one number of axes only: count from the end, key.transpose(-2, -1).", "products = query @ key.transpose(0, 1)"),
    Mistake(*REVERSED, "products = query @ key.T"),
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
