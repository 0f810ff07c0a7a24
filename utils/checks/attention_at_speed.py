"""Exercises of notebook 10: online softmax, shared key-value heads, the cached step."""

from functools import partial

import torch
from torch.nn.functional import scaled_dot_product_attention as torch_attention

from utils.checks.draw import came_from, draws
from utils.checks.engine import Exercise, Mistake, case
from utils.checks.values import shape

draw = draws(10)

# Whole numbers and a width of 4 keep scores exact in float32, however large they are.
FAR_APART = torch.tensor([[1.0], [30.0], [3000.0]])


# --- 10.1 -------------------------------------------------------------------------


def right_online(query, key, value, block_size):
    return torch_attention(query.double(), key.double(), value.double()).float()


def starts(num_keys, block_size):
    """Return where every block starts, the last, shorter one too."""
    return list(range(0, num_keys, block_size))


def whole(num_keys, block_size):
    """Return where the blocks start that are full."""
    return list(range(0, num_keys - block_size + 1, block_size))


def online(
    *,
    denominator=True,
    accumulator=True,
    divide=True,
    first=float("-inf"),
    scale=lambda query, key: query.shape[-1] ** -0.5,
    begins=starts,
    combine=torch.maximum,
    over_queries=False,
    inverse=False,
):
    """Return an online softmax with something changed."""

    def compute(query, key, value, block_size):
        factor_of_scores = scale(query, key)
        query, key, value = query.double(), key.double(), value.double()
        m = torch.full_like(query[..., :1], first)
        bottom, top = torch.zeros_like(m), torch.zeros(())
        for start in begins(key.shape[-2], block_size):
            block = slice(start, start + block_size)
            scores = query @ key[..., block, :].mT * factor_of_scores
            best = scores.amax(-1, keepdim=True)
            if over_queries:
                best = best.amax(-2, keepdim=True)
            new = combine(m, best)
            old = torch.exp(m - new)
            if inverse and start:
                old = 1 / old
            weights = torch.exp(scores - new)
            added = weights.sum(-1, keepdim=True)
            bottom = bottom * (old if denominator else 1) + added
            top = top * (old if accumulator else 1) + weights @ value[..., block, :]
            m = new
        return (top / bottom if divide else top).float()

    return compute


def latest(m, best):
    return best


def parts(query, key, value, block_size):
    """Return the outputs of the blocks, each normalised alone, and their sizes."""
    blocks = [
        right_online(query, k, v, block_size).double()
        for k, v in zip(key.split(block_size, -2), value.split(block_size, -2))
    ]
    sizes = [k.shape[-2] for k in key.split(block_size, -2)]
    return torch.stack(blocks), torch.tensor(sizes)


def averaged(*args):
    return parts(*args)[0].mean(0).float()


def averaged_by_size(*args):
    blocks, sizes = parts(*args)
    weights = (sizes / sizes.sum()).view(-1, *[1] * (blocks.dim() - 1))
    return (blocks * weights).sum(0).float()


def summed(*args):
    return parts(*args)[0].sum(0).float()


def last_alone(*args):
    return parts(*args)[0][-1].float()


def first_alone(*args):
    return parts(*args)[0][0].float()


def divided_each_time(query, key, value, block_size):
    """Divide the accumulator in every block, and go on with the quotient."""
    m = torch.full_like(query[..., :1], float("-inf")).double()
    bottom, top = torch.zeros_like(m), torch.zeros(())
    query, key, value = query.double(), key.double(), value.double()
    for start in starts(key.shape[-2], block_size):
        block = slice(start, start + block_size)
        scores = query @ key[..., block, :].mT / query.shape[-1] ** 0.5
        new = torch.maximum(m, scores.amax(-1, keepdim=True))
        old, weights = torch.exp(m - new), torch.exp(scores - new)
        bottom = bottom * old + weights.sum(-1, keepdim=True)
        top = (top * old + weights @ value[..., block, :]) / bottom
        m = new
    return top.float()


def without_maximum(query, key, value, block_size):
    weights = torch.exp(query @ key.mT / query.shape[-1] ** 0.5)
    return weights @ value / weights.sum(-1, keepdim=True)


def blocks_of_queries(query, key, value, block_size):
    """Return attention within blocks: queries of a block see its keys alone."""
    outputs = [
        right_online(q, k, v, block_size)
        for q, k, v in zip(*(t.split(block_size, -2) for t in (query, key, value)))
    ]
    return torch.cat(outputs, -2)


def values_of_the_first_block(query, key, value, block_size):
    """Weigh the first values again and again, while the keys move on."""
    weights = torch.softmax(query @ key.mT / query.shape[-1] ** 0.5, -1)
    places = torch.arange(key.shape[-2]) % block_size
    return weights @ value[..., places, :]


def with_weights(query, key, value, block_size):
    weights = torch.softmax(query @ key.mT / query.shape[-1] ** 0.5, -1)
    return weights @ value, weights


def causal(query, key, value, block_size):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    allowed = torch.ones(scores.shape[-2:]).tril().bool()
    return torch.softmax(scores.masked_fill(~allowed, -torch.inf), -1) @ value


def first_axis(query, key, value, block_size):
    """Slice the first axis of keys and values instead of the axis of the keys."""
    m = torch.full_like(query[..., :1], float("-inf"))
    bottom, top = torch.zeros_like(m), torch.zeros(())
    for start in starts(key.shape[0], block_size):
        block = slice(start, start + block_size)
        scores = query @ key[block].mT / query.shape[-1] ** 0.5
        new = torch.maximum(m, scores.amax(-1, keepdim=True))
        old, weights = torch.exp(m - new), torch.exp(scores - new)
        bottom = bottom * old + weights.sum(-1, keepdim=True)
        top = top * old + weights @ value[block]
        m = new
    return top / bottom


def until_queries_end(query, key, value, block_size):
    """Look at no more keys than there are queries."""
    seen = query.shape[-2]
    return right_online(query, key[..., :seen, :], value[..., :seen, :], block_size)


def until_the_block_of_the_last_query(query, key, value, block_size):
    """Let the blocks start at range(0, T, block_size)."""
    seen = len(starts(query.shape[-2], block_size)) * block_size
    return right_online(query, key[..., :seen, :], value[..., :seen, :], block_size)


def rising(num_keys, width):
    """Return keys that fit the query (1, …, 1) better from one to the next."""
    steps = torch.linspace(-1.5, 1.5, num_keys)[:, None]
    return steps.expand(num_keys, width).clone()


RUNS_OVER_KEYS = (
    "The loop ends at T, the number of queries. It runs over the keys: "
    "range(0, key.shape[-2], block_size)."
)


def kept_back(e):
    size, num_keys = e.args[3], e.args[1].shape[-2]
    return (
        f"The last block is lost: with {num_keys} keys and blocks of {size} it holds "
        f"{num_keys % size or size}. Let the blocks start at range(0, S, block_size); "
        "a slice is cut short at the end by itself."
    )


online_softmax_attention = Exercise(
    id="10.1",
    signature="online_softmax_attention(query, key, value, block_size)",
    returns="the output (…, T, d_v) of scaled dot-product attention, without a mask",
    oracle=right_online,
    cases=[
        case(
            torch.ones(2, 3) * torch.tensor([[1.0], [-1.0]]),
            rising(5, 3),
            draw(5, 2),
            2,
            note="the scores of query 0 rise, those of query 1 fall",
        ),
        case(draw(3, 5, 2), draw(3, 7, 2), draw(3, 7, 11), 2),
        case(draw(5, 3), draw(6, 3), draw(6, 7), 2, note="full blocks"),
        case(draw(2, 3, 5, 7), draw(2, 3, 11, 7), draw(2, 3, 11, 13), 4),
        case(draw(3, 5), draw(7, 5), draw(7, 2), 13, note="a block larger than S"),
        case(draw(3, 5), draw(7, 5), draw(7, 2), 1, note="one key at a time"),
        case(
            FAR_APART * draw(2, 3, 4, scale=2.0).round(),
            draw(2, 7, 4, scale=2.0).round(),
            draw(2, 7, 3),
            2,
            note="large scores",
        ),
        case(
            torch.ones(3, 4),
            draw(5, 4, shift=-900.0).round(),
            draw(5, 3),
            2,
            note="all scores very negative",
        ),
        case(draw(1, 5), draw(1, 5), draw(1, 3), 2, note="one token"),
    ],
    mistakes=[
        Mistake(
            "weights-returned",
            with_weights,
            "The output is right, and the weights come with it: return the output "
            "alone. The whole (T, S) matrix is what the blocks are to avoid.",
        ),
        Mistake(
            "accumulator-not-rescaled",
            online(accumulator=False),
            "Right until the running maximum changes: then the accumulator still "
            "counts from the old maximum. Multiply it by exp(old − new) as well.",
        ),
        Mistake(
            "denominator-not-rescaled",
            online(denominator=False),
            "Right until the running maximum changes: then the denominator still "
            "counts from the old maximum. Multiply it by exp(old − new) as well.",
        ),
        Mistake(
            "nothing-rescaled",
            online(denominator=False, accumulator=False),
            "The sums of earlier blocks count from an older maximum than the new "
            "ones. Multiply denominator and accumulator by exp(old − new).",
        ),
        Mistake(
            "rescaled-inversely",
            online(inverse=True),
            "The past is multiplied by exp(new − old), so it grows where it should "
            "shrink: the factor is exp(old − new), at most 1.",
        ),
        Mistake(
            "no-final-division",
            online(divide=False),
            "This is the accumulator. After the loop divide it by the denominator.",
        ),
        Mistake(
            "divided-in-every-block",
            divided_each_time,
            "The accumulator is divided by the denominator in every block, and the "
            "quotient goes on. Keep the sum undivided, and divide once at the end.",
        ),
        Mistake("last-block-lost", online(begins=whole), kept_back),
        Mistake(
            "last-block-lost",
            online(begins=lambda n, size: starts(n, size)[:-1] or [0]),
            kept_back,
        ),
        Mistake(
            "first-block-lost",
            online(begins=lambda n, size: starts(n, size)[1:] or [0]),
            "The first block is left out: the blocks start at 0, block_size, ….",
        ),
        Mistake(
            "blocks-averaged",
            averaged,
            "Each block has a softmax of its own and the outputs are averaged: so "
            "every block counts alike, however good its keys. Keep one denominator.",
        ),
        Mistake(
            "blocks-averaged",
            averaged_by_size,
            "Each block has a softmax of its own and the outputs are averaged by the "
            "number of keys. The weight of a block is its sum of exponentials.",
        ),
        Mistake(
            "blocks-summed",
            summed,
            "Each block has a softmax of its own and the outputs are added: the "
            "weights sum to the number of blocks. Divide once, by one denominator.",
        ),
        Mistake(
            "last-block-alone",
            last_alone,
            "This is the output of the last block alone: the accumulator starts anew "
            "in every block. Set it to zero once, before the loop.",
        ),
        Mistake(
            "first-block-alone",
            first_alone,
            "This is the output of the first block alone: is the return inside the "
            "loop?",
        ),
        Mistake(
            "maximum-starts-at-zero",
            online(first=0.0),
            "The maximum starts at 0, and where all scores are far below it every "
            "exponential is 0: start at −∞.",
        ),
        Mistake(
            "maximum-missing",
            without_maximum,
            "No maximum is subtracted, so that exp overflows or vanishes for scores "
            "that are far from 0.",
        ),
        Mistake(
            "maximum-of-the-block",
            online(combine=latest, accumulator=False, denominator=False),
            "Each block subtracts its own maximum and nothing is rescaled, so sums "
            "with different yardsticks are added.",
        ),
        Mistake(
            "maximum-of-the-block",
            online(combine=latest),
            "The maximum is that of the block alone, and may fall: then exp(old − new) "
            "overflows. Take the larger of the old maximum and the block's.",
        ),
        Mistake(
            "one-maximum-for-all",
            online(over_queries=True, first=float("-inf")),
            "One maximum serves all queries: where another query's scores are far "
            "larger, this query's exponentials vanish. Use dim=-1 with keepdim=True.",
        ),
        Mistake(
            "scale-missing",
            online(scale=lambda query, key: 1.0),
            lambda e: f"The scores are not divided by √d_k = √{e.args[0].shape[-1]}.",
        ),
        Mistake(
            "divided-by-width",
            online(scale=lambda query, key: 1 / query.shape[-1]),
            lambda e: (
                f"The scores are divided by d_k = {e.args[0].shape[-1]}, not by its "
                "square root."
            ),
        ),
        Mistake(
            "scale-multiplied",
            online(scale=lambda query, key: query.shape[-1] ** 0.5),
            lambda e: f"The scores are multiplied by √d_k = √{e.args[0].shape[-1]}.",
        ),
        Mistake(
            "attention-within-blocks",
            blocks_of_queries,
            "The queries are cut into blocks too, and each sees the keys of its own "
            "block alone. Every query meets every block of keys.",
        ),
        Mistake(
            "values-of-the-first-block",
            values_of_the_first_block,
            "The keys move on from block to block and the values do not: slice both "
            "at the same places.",
        ),
        Mistake(
            "causal",
            causal,
            "A causal mask is applied: here every query may attend to every key.",
        ),
        Mistake("number-of-queries", until_queries_end, RUNS_OVER_KEYS),
        Mistake("number-of-queries", until_the_block_of_the_last_query, RUNS_OVER_KEYS),
        Mistake(
            "wrong-axis-sliced",
            first_axis,
            "The blocks are cut from the first axis, which is the batch: the keys lie "
            "on the last but one, key[..., start : start + block_size, :].",
        ),
    ],
)


# --- 10.2 -------------------------------------------------------------------------


def right_repeat(x, n_rep):
    return x[:, torch.arange(x.shape[1]).repeat_interleave(n_rep)]


def legible(num_heads, num_tokens, width):
    """Return `(1, H, T, K)` in which each entry says where it stands."""
    heads = 100.0 * torch.arange(num_heads)[:, None, None]
    tokens = 10.0 * torch.arange(num_tokens)[:, None]
    return (heads + tokens + torch.arange(width))[None]


def along(axis):
    """Return the mistake that repeats another axis."""
    return lambda x, n_rep: x.repeat_interleave(n_rep, dim=axis)


def scrambled(x, n_rep):
    """Repeat the features, then cut them into heads by reshape alone."""
    batch, heads, tokens, width = x.shape
    return x.repeat_interleave(n_rep, -1).reshape(batch, heads * n_rep, tokens, width)


def repeat_kv_axis(name):
    return f"The repeated axis is that of the {name}: the heads are axis 1."


repeat_kv = Exercise(
    id="10.2",
    signature="repeat_kv(x, n_rep)",
    returns="from x (B, H_kv, T, K) the heads (B, H_kv * n_rep, T, K), head h equal to "
    "head h // n_rep of x",
    oracle=right_repeat,
    properties=[came_from("sample", "head", "token", "feature")],
    cases=[
        case(legible(2, 3, 2), 3, note="entry = 100 × head + 10 × token + feature"),
        case(draw(2, 3, 7, 5), 2),
        case(draw(3, 5, 2, 7), 3, note="more heads than tokens"),
        case(draw(2, 3, 5, 7), 1, note="nothing to repeat"),
        case(draw(3, 1, 5, 2), 7, note="one head for all"),
        case(draw(2, 3, 1, 5), 5, note="one token"),
    ],
    mistakes=[
        Mistake(
            "tile-for-interleave",
            lambda x, n_rep: x.repeat(1, n_rep, 1, 1),
            "The heads come in the order 0, 1, …, 0, 1, …: that is tile. Neighbours "
            "share, 0, 0, …, 1, 1, …: use repeat_interleave.",
        ),
        Mistake(
            "tile-of-the-batch",
            lambda x, n_rep: x.repeat(n_rep, 1, 1, 1),
            repeat_kv_axis("batch"),
        ),
        Mistake("wrong-axis", along(0), repeat_kv_axis("batch")),
        Mistake("wrong-axis", along(2), repeat_kv_axis("tokens")),
        Mistake("wrong-axis", along(3), repeat_kv_axis("features")),
        Mistake(
            "wrong-axis",
            lambda x, n_rep: x.repeat(1, 1, n_rep, 1),
            repeat_kv_axis("tokens"),
        ),
        Mistake(
            "wrong-axis",
            lambda x, n_rep: x.repeat(1, 1, 1, n_rep),
            repeat_kv_axis("features"),
        ),
        Mistake(
            "axis-missing",
            lambda x, n_rep: x.repeat_interleave(n_rep),
            "Without dim, repeat_interleave flattens everything first: say dim=1.",
        ),
        Mistake(
            "axes-not-merged",
            lambda x, n_rep: x[:, :, None].expand(-1, -1, n_rep, -1, -1),
            "The copies stand on an axis of their own, (B, H_kv, n_rep, T, K): merge "
            "it with that of the heads, flatten(1, 2).",
        ),
        Mistake(
            "axes-not-merged",
            lambda x, n_rep: x[:, None].expand(-1, n_rep, -1, -1, -1),
            "The copies stand on an axis of their own, in front of the heads: put it "
            "behind them, (B, H_kv, n_rep, T, K), and merge the two.",
        ),
        Mistake(
            "features-cut-up",
            scrambled,
            "The shape is right, but the features were repeated and then cut into "
            "heads: a head now holds several copies of a feature. Repeat axis 1.",
        ),
        Mistake(
            "tokens-cut-up",
            lambda x, n_rep: x.repeat_interleave(n_rep, 2).reshape(
                right_repeat(x, n_rep).shape
            ),
            "The shape is right, but the tokens were repeated and then cut into "
            "heads: a head now holds several copies of a token. Repeat axis 1.",
        ),
        Mistake(
            "first-head-alone",
            lambda x, n_rep: x[:, :1].repeat(1, x.shape[1] * n_rep, 1, 1),
            "Every head is head 0 of x: each of its heads serves n_rep neighbours.",
        ),
        Mistake(
            "one-repetition-more",
            lambda x, n_rep: right_repeat(x, n_rep + 1),
            "Each head stands there n_rep + 1 times: n_rep counts the original too.",
        ),
        Mistake(
            "heads-times-n-rep",
            lambda x, n_rep: x.repeat_interleave(x.shape[1], dim=1),
            "Each head is repeated H_kv times: repeat it n_rep times.",
        ),
        Mistake(
            "not-repeated", lambda x, n_rep: x, "x comes back unchanged: repeat axis 1."
        ),
        Mistake(
            "reversed",
            lambda x, n_rep: right_repeat(x, n_rep).flip(1),
            "The heads come in reverse order: head h is head h // n_rep of x.",
        ),
        Mistake(
            "view-of-expanded",
            lambda x, n_rep: (
                x[:, :, None]
                .expand(-1, -1, n_rep, -1, -1)
                .view(x.shape[0], -1, *x.shape[2:])
            ),
            "The steps are right, but expand makes no copies, and view cannot merge "
            "such an axis: use reshape or flatten.",
        ),
    ],
)


# --- 10.3 -------------------------------------------------------------------------


class Cache(tuple):
    """Keys and values of earlier tokens, which a message shows by their shapes."""

    def __repr__(self):
        keys, values = map(shape, self)
        return f"(keys {keys}, values {values})"


def joined(query, key, value, cache):
    """Return all keys and all values, the new ones last."""
    if cache is None:
        return key, value
    return tuple(torch.cat(pair, -2) for pair in zip(cache, (key, value)))


def lower_right(num_new, num_all):
    """Allow new token i the tokens of the cache and the new ones up to itself."""
    return torch.ones(num_new, num_all, dtype=torch.bool).tril(num_all - num_new)


def soft(scores):
    """Soften as PyTorch's function does: zeros where nothing may be seen."""
    return torch.softmax(scores, -1).nan_to_num(0.0)


def step(
    *,
    mask=lower_right,
    scale=lambda query, keys: query.shape[-1] ** -0.5,
    join=joined,
    sees=lambda query, key, value, cache, keys, values: (keys, values),
    soften=soft,
    gives=lambda output, weights, keys, values, old: (output, (keys, values)),
):
    """Return a cached step with something changed."""

    def compute(query, key, value, cache):
        keys, values = join(query, key, value, cache)
        seen, of_value = sees(query, key, value, cache, keys, values)
        scores = query.double() @ seen.double().mT * scale(query, seen)
        allowed = mask(*scores.shape[-2:])
        if allowed is not None:
            scores = scores.masked_fill(~allowed, -torch.inf)
        weights = soften(scores)
        output = (weights @ of_value.double()).to(value.dtype)
        return gives(output, weights.to(value.dtype), keys, values, (key, value, cache))

    return compute


def shifted(by):
    """Return the mask whose diagonal lies `by` places further to the right."""
    return lambda num_new, num_all: (
        torch.ones(num_new, num_all).tril(num_all - num_new + by).bool()
    )


def top_left(num_new, num_all):
    return torch.ones(num_new, num_all).tril().bool()


def lone_query_sees_all(num_new, num_all):
    """Mask several new tokens from the top left, and one not at all."""
    return None if num_new == 1 else top_left(num_new, num_all)


def offset_of_the_new(num_new, num_all):
    return torch.ones(num_new, num_all).tril(num_new).bool()


def others(parts, old):
    """Return keys and values as they were: those of the cache, or none of them."""
    key, value, cache = old
    empty = key[..., :0, :], value[..., :0, :]
    return parts, (empty if cache is None else tuple(cache))


def new_first(query, key, value, cache):
    if cache is None:
        return key, value
    return tuple(torch.cat(pair, -2) for pair in zip((key, value), cache))


def glued(dim):
    """Return how keys and values are put together along another axis."""

    def join(query, key, value, cache):
        if cache is None:
            return key, value
        return tuple(torch.cat(pair, dim) for pair in zip(cache, (key, value)))

    return join


def swapped_in_the_cache(query, key, value, cache):
    """Read the values of the cache as keys, and its keys as values."""
    if cache is None:
        return key, value
    return torch.cat((cache[1], key), -2), torch.cat((cache[0], value), -2)


def last_appended(query, key, value, cache):
    if cache is None:
        return key, value
    pairs = zip(cache, (key[..., -1:, :], value[..., -1:, :]))
    return tuple(torch.cat(pair, -2) for pair in pairs)


def keys_alone_joined(query, key, value, cache):
    keys, _ = joined(query, key, value, cache)
    return keys, value


def stale_values(query, key, value, cache):
    return joined(query, key, value, cache)[0], value if cache is None else cache[1]


def exponentials_shared(scores):
    """Share out exponentials that overflow as they do in float32."""
    exponentials = scores.exp().masked_fill(scores > 88.72, torch.inf)
    return exponentials / exponentials.sum(-1, keepdim=True)


def past_alone(query, key, value, cache, keys, values):
    return (key, value) if cache is None else cache


def new_alone(query, key, value, cache, keys, values):
    return key, value


def without_new_mask(num_new, num_all):
    """Allow the cache alone, and of the new tokens each itself."""
    past = torch.ones(num_new, num_all - num_new, dtype=torch.bool)
    return torch.cat((past, torch.eye(num_new, dtype=torch.bool)), -1)


def past_hidden(num_new, num_all):
    own = torch.ones(num_new, num_new, dtype=torch.bool).tril()
    return torch.nn.functional.pad(own, (num_all - num_new, 0))


def observed(call, *args):
    """Run a step; return its output, and its keys and values side by side."""
    output, (keys, values) = call(*args)
    return output, torch.cat((keys, values), -1)


def held(*lead, past, new, d_k, d_v, scale=1.0, dtype=torch.float32, note=""):
    """Return the case of `new` tokens after `past` in the cache."""
    query = draw(*lead, new, d_k, dtype=dtype)
    every_key = draw(*lead, past + new, d_k, dtype=dtype)
    every_value = draw(*lead, past + new, d_v, dtype=dtype)
    if scale > 1:  # whole numbers and a width of 4: the scores are exact
        query, every_key = (scale * query).round(), (2 * every_key).round()
    keys, key = every_key.split((past, new), -2)
    values, value = every_value.split((past, new), -2)
    return case(query, key, value, Cache((keys, values)) if past else None, note=note)


def aligned(e):
    new, num_all = e.args[0].shape[-2], e.expected[1].shape[-2]
    return (
        f"The causal mask starts at the top left, as with is_causal=True: of {num_all} "
        f"keys the first new token sees the first alone. It is token "
        f"{num_all - new}, and sees {num_all - new + 1}: align the mask at the bottom "
        "right."
    )


def returned(what):
    return f"{what} Return (output, (keys, values)), with all keys and values so far."


def past_stays_as_it_was(evidence):
    """Property: what a new token gets does not depend on the new tokens after it."""
    query, key, value, cache = evidence.inputs
    for place in range(1, query.shape[-2]):
        later = [t.clone() for t in (query, key, value)]
        for t in later:
            t[..., place:, :] += 1.0
        moved = evidence.call(*later, cache)[0] - evidence.call(*evidence.inputs)[0]
        if moved[..., :place, :].abs().max() > 1e-4:
            return (
                f"Adding 1 to the new tokens from {place} on moves an output before "
                "them: the future is seen."
            )
    return None


attend_with_cache = Exercise(
    id="10.3",
    signature="attend_with_cache(query, key, value, cache)",
    returns="(output, (keys, values)): causal attention of the new tokens over all "
    "tokens so far, and the longer cache",
    oracle=step(),
    parts=("output", "(keys, values)"),
    observe_as=observed,
    properties=[past_stays_as_it_was],
    cases=[
        held(past=3, new=2, d_k=2, d_v=3, note="two new tokens after three"),
        held(past=0, new=3, d_k=2, d_v=5, note="the beginning"),
        held(past=5, new=1, d_k=3, d_v=2, note="one new token"),
        held(2, 3, past=7, new=5, d_k=5, d_v=11),
        held(3, past=2, new=7, d_k=5, d_v=3, note="more new tokens than in the cache"),
        held(2, 3, past=11, new=1, d_k=7, d_v=5, note="one new token, two axes before"),
        held(3, past=0, new=1, d_k=2, d_v=7, note="one token, the very first"),
        held(2, past=5, new=3, d_k=4, d_v=3, scale=90.0, note="large scores"),
        held(past=3, new=5, d_k=11, d_v=2, dtype=torch.float64, note="float64"),
    ],
    mistakes=[
        Mistake("causal-from-the-top-left", step(mask=top_left), aligned),
        Mistake("causal-from-the-top-left", step(mask=lone_query_sees_all), aligned),
        Mistake(
            "no-causal-mask",
            step(mask=lambda *sizes: None),
            "No mask is applied. One new token needs none, but of several the first "
            "may not see those after it.",
        ),
        Mistake(
            "diagonal-masked",
            step(mask=shifted(-1)),
            "Each new token sees the tokens before it and not itself: the diagonal "
            "of the mask lies at S − T.",
        ),
        Mistake(
            "one-step-leaked",
            step(mask=shifted(1)),
            "Each new token sees the one after it, too: the diagonal of the mask lies "
            "at S − T.",
        ),
        Mistake(
            "offset-of-the-new",
            step(mask=offset_of_the_new),
            "The diagonal of the mask is moved by T, the number of new tokens. Move it "
            "by the number of tokens in the cache, S − T.",
        ),
        *(
            Mistake(
                "mask-inverted",
                step(mask=lambda new, total: ~lower_right(new, total), soften=soften),
                "The mask hides what may be seen and shows the future: True = may "
                "attend, and masked_fill fills where its mask is True.",
            )
            for soften in (soft, partial(torch.softmax, dim=-1))
        ),
        Mistake(
            "upper-for-lower",
            step(
                mask=lambda new, total: torch.ones(new, total).triu(total - new).bool()
            ),
            "Each new token sees itself and those after it: tril, not triu.",
        ),
        Mistake(
            "new-tokens-apart",
            step(mask=without_new_mask),
            "A new token sees the cache and itself, and not the new tokens before it.",
        ),
        Mistake(
            "cache-not-seen",
            step(mask=past_hidden),
            "The new tokens see each other alone: their queries meet all keys so far, "
            "those of the cache, too.",
        ),
        Mistake(
            "cache-ignored",
            step(join=lambda query, key, value, cache: (key, value)),
            "The cache is not used: put its keys and values in front of the new ones, "
            "along the tokens.",
        ),
        Mistake(
            "new-tokens-not-seen",
            step(sees=past_alone, mask=lambda *sizes: None),
            "The new tokens see the cache alone: they also see themselves, and each "
            "other as far as they come before.",
        ),
        Mistake(
            "new-in-front",
            step(join=new_first),
            "The new tokens stand in front of the cache: they come last, "
            "torch.cat((old, new), dim=-2).",
        ),
        Mistake(
            "keys-and-values-swapped",
            step(join=swapped_in_the_cache),
            "The cache is (keys, values), and is read the other way round.",
        ),
        Mistake(
            "keys-and-values-swapped",
            step(gives=lambda out, w, keys, values, old: (out, (values, keys))),
            returned("Keys and values are returned in the wrong order."),
        ),
        Mistake(
            "keys-as-values",
            step(sees=lambda query, key, value, cache, keys, values: (keys, keys)),
            "The weights average the keys: they average the values.",
        ),
        Mistake(
            "values-not-kept",
            step(join=keys_alone_joined),
            "There are more keys than values: those of the cache belong in front of "
            "the new values, as in front of the new keys.",
        ),
        Mistake(
            "values-not-kept",
            step(join=stale_values),
            "There are more keys than values: the new values belong behind those of "
            "the cache, as the new keys do.",
        ),
        Mistake(
            "only-the-last-appended",
            step(join=last_appended),
            "Of several new tokens only the last is appended: the cache takes all.",
        ),
        Mistake(
            "cache-not-longer",
            step(gives=lambda out, w, keys, values, old: others(out, old)),
            returned("The cache comes back as it was, without the new tokens."),
        ),
        Mistake(
            "only-the-new-returned",
            step(gives=lambda out, w, keys, values, old: (out, old[:2])),
            returned("Only the new keys and values come back."),
        ),
        Mistake(
            "returns-output-alone",
            step(gives=lambda out, w, keys, values, old: out),
            returned("The output comes alone."),
        ),
        Mistake(
            "returned-flat",
            step(gives=lambda out, w, keys, values, old: (out, keys, values)),
            returned("Three tensors come back side by side: keys and values are one."),
        ),
        Mistake(
            "weights-returned",
            step(gives=lambda out, w, keys, values, old: (out, w)),
            returned("The weights come with the output, in place of the cache."),
        ),
        Mistake(
            "weights-returned",
            step(gives=lambda out, w, keys, values, old: (out, w, (keys, values))),
            returned("The weights are returned, too."),
        ),
        Mistake(
            "parts-swapped",
            step(gives=lambda out, w, keys, values, old: ((keys, values), out)),
            returned("The cache comes first."),
        ),
        Mistake(
            "cache-as-a-list",
            step(gives=lambda out, w, keys, values, old: (out, [keys, values])),
            returned("Keys and values come as a list: make them a tuple."),
        ),
        Mistake(
            "last-row-alone",
            step(
                gives=lambda out, w, keys, values, old: (
                    out[..., -1:, :],
                    (keys, values),
                )
            ),
            "Only the newest token gets an output: each of the new tokens gets one.",
        ),
        Mistake(
            "scale-missing",
            step(scale=lambda query, keys: 1.0),
            lambda e: f"The scores are not divided by √d_k = √{e.args[0].shape[-1]}.",
        ),
        Mistake(
            "divided-by-width",
            step(scale=lambda query, keys: 1 / query.shape[-1]),
            lambda e: (
                f"The scores are divided by d_k = {e.args[0].shape[-1]}, not by its "
                "square root."
            ),
        ),
        Mistake(
            "scale-multiplied",
            step(scale=lambda query, keys: query.shape[-1] ** 0.5),
            lambda e: f"The scores are multiplied by √d_k = √{e.args[0].shape[-1]}.",
        ),
        Mistake(
            "root-of-tokens",
            step(scale=lambda query, keys: keys.shape[-2] ** -0.5),
            "The scores are divided by the root of the number of keys: √d_k, the "
            "width of a key.",
        ),
        Mistake(
            "softmax-over-queries",
            step(soften=lambda scores: torch.softmax(scores, -2)),
            "The softmax runs over the queries: each row sums to 1, dim=-1.",
        ),
        Mistake(
            "maximum-missing",
            step(soften=exponentials_shared),
            "No maximum is subtracted, so that exp overflows for large scores: take "
            "torch.softmax.",
        ),
        Mistake(
            "wrong-axis-joined",
            step(join=glued(0)),
            "Old and new are joined along the first axis: the tokens are the last but "
            "one, dim=-2.",
        ),
        Mistake(
            "wrong-axis-joined",
            step(join=glued(1)),
            "Old and new are joined along axis 1: the tokens are the last but one, "
            "dim=-2, however many axes stand before them.",
        ),
        Mistake(
            "wrong-axis-joined",
            step(join=glued(2)),
            "Old and new are joined along axis 2: the tokens are the last but one, "
            "dim=-2, however many axes stand before them.",
        ),
        Mistake(
            "wrong-axis-joined",
            step(join=glued(-1)),
            "Old and new are joined along the features: the tokens are the last but "
            "one, dim=-2.",
        ),
    ],
)

EXERCISES = [online_softmax_attention, repeat_kv, attend_with_cache]
