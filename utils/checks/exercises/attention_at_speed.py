"""Exercises of the notebook on speed: online softmax, shared heads, the cached step."""

import math
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import torch
from torch.nn.functional import scaled_dot_product_attention as torch_attention

from utils.checks.engine import Exercise, case
from utils.checks.inputs import draw, special
from utils.checks.pipeline import Diagnosis, Pipeline, variants
from utils.checks.properties import Shapes, past_stays
from utils.checks.steps import attention as of_attention
from utils.checks.steps import joining as of_joining
from utils.checks.steps.attention import INF, lower, size, steps, triangle
from utils.checks.steps.masks import HIDE, LARGE_FILLS
from utils.checks.values import shape

# --- attention block by block, with an online softmax ------------------------------


def right_online(query, key, value, block_size):
    """Weigh the attention within each block by the sum of its exponentials."""
    query, key, value = query.double(), key.double(), value.double()
    outputs, logs = [], []
    for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
        outputs.append(torch_attention(query, k, v))
        scores = query @ k.mT / query.shape[-1] ** 0.5
        logs.append(torch.logsumexp(scores, -1, keepdim=True))
    shares = torch.softmax(torch.stack(logs), 0)
    return (shares * torch.stack(outputs)).sum(0).float()


def whole_matrix(attention):
    """Name an answer that computes the scores of all keys at once."""
    query, key, value = torch.ones(17, 2), torch.ones(19, 2), torch.ones(19, 1)
    with Shapes() as shapes:
        attention(query, key, value, 2)
    if max(map(math.prod, shapes.sizes)) < len(query) * len(key):
        return None
    text = "You made the whole matrix of scores, (T, S), whatever block_size is: take "
    return Diagnosis("whole-matrix", f"{text}block_size keys at a time.")


BLOCKS = {
    "first": lambda s: None,  # what fails, fails with the first block
    **{name: of_attention.RIGHT[name] for name in ("products", "width", "scores")},
    "places": lambda s: torch.arange(s.key.shape[-2]),
    "count": lambda s: len(s.places),  # the blocks start before this key
    "of_key": lambda s: s.places // s.size,
    "blocks": lambda s: s.of_key == s.of_key[: s.count].unique()[:, None],  # (P, S)
    "met": lambda s: s.blocks,  # what the loop meets of them
    "shares": lambda s: s.met.sum(1) / s.met.sum(),  # of the keys
    "hidden": lambda s: s.scores,
    # The scores of each block, (P, …, T, S): -inf for the keys of others.
    "cut": lambda s: s.hidden[..., None, :].masked_fill(~s.met, -INF).movedim(-2, 0),
    "axes": lambda s: -1,
    "own": lambda s: s.cut.amax(s.axes, keepdim=True),  # the maximum of each block
    "maxima": lambda s: s.own.cummax(0).values,  # so far
    "weights": lambda s: torch.exp(s.cut - s.maxima),
    "values": lambda s: s.value,
    "sums": lambda s: s.weights.sum(-1, keepdim=True),
    "outputs": lambda s: s.weights @ s.values,
    **of_joining.RIGHT,
    "each": lambda s: torch.softmax(s.cut, -1) @ s.values,
    "top": lambda s: s.maxima[-1:],
}


def divided_each_time(s):
    """Divide the accumulator in every block, and go on with the quotient."""
    bottom = top = 0.0
    before = torch.cat((s.maxima[:1], s.maxima[:-1]))
    for factor, sums, output in zip(torch.exp(before - s.maxima), s.sums, s.outputs):
        bottom = bottom * factor + sums
        top = (top * factor + output) / bottom
    return top


def own_block(s):
    """Return for each query the output of the block that has its own number."""
    queries = torch.arange(s.query.shape[-2])
    return s.each[queries // s.size, ..., queries, :].movedim(0, -2)


def with_first_block(step):
    """Return the step that goes this way with the first block only."""
    return lambda s: step(SimpleNamespace(query=s.query, key=s.key[..., : s.size, :]))


RESCALE = "multiply it by exp(old − new) when the running maximum changes."
ONLINE = variants(
    "weights-returned: You returned the weights as well: return only the output.",
    dict(result=lambda s: (s.filled, s.hidden.softmax(-1))),
    f"accumulator-not-rescaled: You didn't rescale the accumulator: {RESCALE}",
    dict(joined=lambda s: s.terms.sum(0)),
    f"denominator-not-rescaled: You didn't rescale the denominator: {RESCALE}",
    dict(total=lambda s: s.sums.sum(0)),
    "nothing-rescaled: You didn't rescale the past, or replaced the old maximum before that: multiply denominator and accumulator by exp(old − new).",
    dict(factors=of_joining.ones),
    "rescaled-inversely: You multiplied the past by exp(new − old), so it grows, or is NaN from the start at −∞: the factor is exp(old − new).",
    dict(factors=lambda s: torch.exp(s.top - s.maxima)),
    dict(factors=lambda s: s.maxima * torch.nan),
    "divided-in-every-block: You divided the accumulator in every block: divide once, at the end.",
    dict(divided=divided_each_time),
    "last-block-lost: You lost the last, shorter block: let blocks start at range(0, S, block_size), because a slice is cut short at the end by itself.",
    dict(met=lambda s: s.blocks[s.blocks.sum(1) == s.size]),
    dict(met=lambda s: s.blocks[:-1]),
    "first-block-lost: You left out the first block: the blocks start at 0.",
    dict(met=lambda s: s.blocks[len(s.blocks) > 1 :]),
    "blocks-averaged: You averaged the outputs of the blocks by their number of keys: weigh each block by its sum of exponentials.",
    dict(divided=lambda s: torch.tensordot(s.shares, s.each, 1)),
    "maximum-starts-at-zero: You started the maximum at 0, so very low scores vanish: start at −∞.",
    dict(maxima=lambda s: s.own.cummax(0).values.clamp(0)),
    "maximum-missing: You subtracted no maximum, or clipped the scores, so exp overflows or vanishes: subtract the running maximum.",
    dict(maxima=lambda s: torch.zeros_like(s.own)),
    dict(maxima=lambda s: torch.zeros_like(s.own), cut=lambda s: clipped(s)),
    "max-is-a-pair: You used max() with a dim, which returns values and positions: use amax(), or max(…).values.",
    dict(maxima=lambda s: torch.maximum(s.cut, s.cut.max(-1))),
    "maximum-not-subtracted: You didn't subtract the maximum in the new block: its weights are exp(scores − new).",
    dict(weights=lambda s: torch.exp(s.cut)),
    "maximum-of-the-block: You subtracted each block's own maximum and rescaled nothing: take the larger of the old maximum and the block's.",
    dict(maxima=lambda s: s.own, factors=of_joining.ones),
    "one-maximum-for-all: You used one maximum for all queries: each has its own, amax(dim=-1, keepdim=True).",
    dict(axes=lambda s: (-2, -1)),
    dict(axes=lambda s: (*range(1, s.cut.dim()),)),
    dict(axes=lambda s: -2),
    "attention-within-blocks: You cut the queries into blocks too: every query meets every block of keys.",
    dict(divided=own_block),
    "values-of-the-first-block: You moved on with the keys only: slice the values at the same positions.",
    dict(values=lambda s: s.value[..., s.places % s.size, :]),
    "causal: You applied a causal mask: every query may attend to every key.",
    dict(hidden=lambda s: s.scores.masked_fill(~triangle(s), -INF)),
    "keys-miscounted: You ended the loop at another number than that of the keys: range(0, key.shape[-2], block_size).",
    dict(met=lambda s: s.blocks & (s.places < s.query.shape[-2])),
    dict(count=lambda s: len(s.key)),
    dict(count=lambda s: s.key.shape[1]),
)


def clipped(s):
    return (
        s.hidden[..., None, :].clamp(-80, 80).masked_fill(~s.met, -INF).movedim(-2, 0)
    )


SCORE = [
    replace(
        one,
        overrides={"first": with_first_block(one.overrides["products"])}
        | one.overrides,
    )
    for one in of_attention.SCORE
]
SIZES = [
    size("scale-of-values", "d_v", lambda s: s.value.shape[-1]),
    size("scale-of-keys", "S", lambda s: s.key.shape[-2]),
]
UP_AND_DOWN = torch.tensor([[1.0], [-1.0]]).expand(2, 3)
RISING_KEYS = torch.linspace(-1.5, 1.5, 5)[:, None].expand(5, 3)
# Whole numbers and a width of 4 keep scores exact in float32, however large they are.
FAR_APART = torch.tensor([[1.0], [30.0], [3000.0]])
online_softmax_attention = Exercise(
    id="10.1",
    signature="online_softmax_attention(query, key, value, block_size)",
    returns="the output (…, T, d_v) of scaled dot-product attention, without a mask",
    oracle=right_online,
    cases=[
        case(
            *(UP_AND_DOWN, RISING_KEYS, draw(5, 2), 2),
            note="the scores of query 0 rise, those of query 1 fall",
        ),
        case(draw(3, 5, 2), draw(3, 7, 2), draw(3, 7, 11), 2),
        case(draw(5, 3), draw(6, 3), draw(6, 7), 2, note="full blocks"),
        case(draw(2, 3, 5, 7), draw(2, 3, 11, 7), draw(2, 3, 11, 13), 4),
        special("a block larger than S", draw(3, 5), draw(7, 5), draw(7, 2), 13),
        case(draw(3, 5), draw(7, 5), draw(7, 2), 1, note="one key at a time"),
        special(
            "large scores",
            FAR_APART * draw(2, 3, 4, scale=2.0).round(),
            *(draw(2, 7, 4, scale=2.0).round(), draw(2, 7, 3), 2),
        ),
        special(
            "all scores very negative",
            *(torch.ones(3, 4), draw(5, 4, shift=-900.0).round(), draw(5, 3), 2),
        ),
        case(draw(1, 5), draw(1, 5, seed=1), draw(1, 3), 2, note="one token"),
    ],
    facts=[whole_matrix],
    pipeline=of_attention.attention(
        lambda *args: dict(zip(("query", "key", "value", "size"), args)),
        BLOCKS,
        *(ONLINE, of_joining.JOIN, of_attention.SCALE, SIZES, SCORE),
        # What fails for keys times queries depends on the block.
        without=("keys-times-queries", "scale-after-softmax"),
        renamed={
            "not-divided": "no-final-division",
            "averaged": "blocks-averaged",
            "parts-added": "blocks-summed",
            "first-part-alone": "first-block-alone",
            "last-part-alone": "last-block-alone",
            "best-part-alone": "best-block-alone",
        },
        part="block",
    ),
)


# --- each key-value head, copied for the query heads that share it -----------------


def right_repeat(x, n_rep):
    return x[:, torch.arange(x.shape[1]).repeat_interleave(n_rep)]


LEGIBLE = torch.tensor(
    [[[[0.0, 1], [10, 11], [20, 21]], [[100, 101], [110, 111], [120, 121]]]]
)
IN_FRONT = {"place": lambda s: s.axis}
CUT = {"merged": lambda s: s.copies.reshape(s.x.shape[0], -1, *s.x.shape[2:])}
REPEAT = variants(
    "tile-for-interleave: You ordered the heads 0, 1, …, 0, 1, …, as tile does: neighbours share, 0, 0, …, 1, 1, …, so use repeat_interleave.",
    IN_FRONT,
    "wrong-axis: You repeated axis {axis}: the heads are axis 1.",
    IN_FRONT | dict(axis=lambda s: 0),
    dict(axis=lambda s: 0),
    dict(axis=lambda s: 2),
    dict(axis=lambda s: 3),
    "axis-missing: You left out dim, so repeat_interleave flattens everything: dim=1.",
    dict(merged=lambda s: s.x.repeat_interleave(s.count)),
    "axes-not-merged: You left the copies on an axis of their own: flatten(1, 2).",
    dict(merged=lambda s: s.copies),
    IN_FRONT | dict(merged=lambda s: s.copies),
    "tokens-cut-up: You repeated features or tokens and cut them into heads: repeat axis 1.",
    CUT | dict(axis=lambda s: 3),
    CUT | dict(axis=lambda s: 2),
    "first-head-alone: You copied head 0 everywhere: each head serves n_rep neighbours.",
    dict(result=lambda s: s.merged[:, :1].expand_as(s.merged)),
    "one-repetition-more: You repeated each head n_rep + 1 times: n_rep counts the original too.",
    dict(count=lambda s: s.n_rep + 1),
    "n-rep-as-total: You repeated each head another number of times: n_rep times gives H_kv * n_rep heads.",
    dict(count=lambda s: s.n_rep // s.x.shape[1]),
    dict(count=lambda s: s.x.shape[1]),
    "two-heads-only: You repeated only two heads: x has x.shape[1] of them.",
    dict(result=lambda s: s.merged[:, : 2 * s.count]),
    "not-repeated: You returned x unchanged: repeat axis 1.",
    dict(merged=lambda s: s.x),
    "view-of-expanded: You used view after expand, which makes no copies: use reshape.",
    dict(result=lambda s: s.source.expand_as(s.copies).view_as(s.merged)),
)
repeat_kv = Exercise(
    id="10.3",
    signature="repeat_kv(x, n_rep)",
    returns="from x (B, H_kv, T, K) the heads (B, H_kv * n_rep, T, K), head h equal to head h // n_rep of x",
    oracle=right_repeat,
    cases=[
        case(LEGIBLE, 3, note="entry = 100 × head + 10 × token + feature"),
        case(draw(2, 3, 7, 5), 2),
        case(draw(3, 5, 2, 7), 3, note="more heads than tokens"),
        case(draw(2, 3, 5, 7), 1, note="nothing to repeat"),
        case(draw(3, 1, 5, 2), 7, note="one head for all"),
        case(draw(2, 3, 1, 5), 5, note="one token"),
    ],
    pipeline=Pipeline(
        lambda x, n_rep: {"x": x, "n_rep": n_rep},
        steps={
            "axis": lambda s: 1,
            "count": lambda s: s.n_rep,
            "place": lambda s: s.axis + 1,  # of the copies
            "source": lambda s: s.x.unsqueeze(s.place),
            "copies": lambda s: s.source.repeat_interleave(s.count, s.place),
            "merged": lambda s: s.copies.flatten(s.axis, s.axis + 1),
            "result": lambda s: s.merged,
        },
        variants=REPEAT,
    ),
)


# --- new tokens attend to the tokens of a cache and to themselves -------------------


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


def start(query, key, value, cache):
    """Start from what is new and what is old: of no tokens, where there is no cache."""
    old = cache or (key[..., :0, :], value[..., :0, :])
    return {"query": query, "new": (key, value), "old": old}


def glued(s):
    """Return keys and values, each put together where there are others than the new."""
    pairs = zip(s.first, s.then)
    return tuple(torch.cat(pair, s.along) for pair in pairs) if s.past else s.new


def of_the_new(s):
    """Make a mask for the new tokens only, which fails where there are other keys."""
    rows, columns = s.scores.shape[-2:]
    if rows not in (1, columns):
        raise RuntimeError("must match the")
    return lower(rows, rows)


def always_glued(s):
    if not s.past:
        raise TypeError("NoneType")
    return s.longer


UNMASKED = {"mask": lambda s: None}
RETURN_ALL = "return (output, (keys, values)), with all keys and values so far."
CACHED = variants(
    "causal-from-the-top-left: You started the causal mask at the top left, as with is_causal=True: new token t sees all old tokens and the new ones up to itself.",
    dict(mask=triangle),
    dict(mask=lambda s: triangle(s) | (s.T == 1)),
    "no-causal-mask: You applied no mask: of several new tokens, the first may not see those after it.",
    UNMASKED,
    "diagonal-masked: You hid each new token from itself: it sees itself too.",
    dict(mask=lambda s: s.column < s.row),
    "one-step-leaked: You let each new token see the one after it: it sees no further than itself.",
    dict(mask=lambda s: s.column <= s.row + 1),
    "offset-of-the-new: You moved the mask by T, the number of new tokens: move it by S − T, the number of tokens in the cache.",
    dict(row=lambda s: torch.arange(s.T)[:, None] + s.T),
    "mask-inverted: You hid what may be seen and showed the future: swap the two.",
    dict(mask=lambda s: s.column > s.row),
    "upper-for-lower: You let each new token see itself and those after it: it sees itself and all before it.",
    dict(mask=lambda s: s.column >= s.row),
    "mask-of-the-new: You made the mask (T, T), for the new tokens only: it needs a column for every key, (T, S), those of the cache first.",
    dict(mask=of_the_new),
    "new-tokens-apart: You hid earlier new tokens: a new token sees them too.",
    dict(mask=lambda s: (s.column < s.past) | (s.column == s.row)),
    "cache-not-seen: You let new tokens see each other only: their queries meet the keys of the cache too.",
    dict(seen=lambda s: s.new),
    "cache-ignored: You didn't use the cache: put its keys and values before the new ones, along the tokens.",
    dict(longer=lambda s: s.new),
    "new-tokens-not-seen: You let new tokens see the cache only: they also see themselves.",
    UNMASKED | dict(seen=lambda s: s.old if s.past else s.new),
    "none-not-expected: Your code fails at the beginning, where `cache` is None.",
    dict(seen=always_glued),
    "new-in-front: You put the new tokens first: torch.cat((old, new), dim=-2).",
    dict(first=lambda s: s.new, then=lambda s: s.old),
    "keys-and-values-swapped: You swapped the keys and values of the cache, or used one of them twice: the cache is (keys, values).",
    dict(first=lambda s: s.old[::-1]),
    dict(first=lambda s: (s.old[0], s.old[0])),
    f"keys-and-values-swapped: You returned keys and values in the wrong order: {RETURN_ALL}",
    dict(result=lambda s: (s.output, s.longer[::-1])),
    "values-not-kept: You have more keys than values: put the cache's values before the new values.",
    dict(first=lambda s: (s.old[0], s.old[1][..., :0, :])),
    "only-the-last-appended: You appended only the last of the new tokens: append all.",
    dict(then=lambda s: [t[..., -1:, :] for t in s.new]),
    "wrong-axis-joined: You joined old and new along axis {along}: the tokens are the last axis but one, dim=-2.",
    dict(along=lambda s: 0),
    dict(along=lambda s: 1),
    dict(along=lambda s: 2),
    dict(along=lambda s: -1),
    f"cache-not-longer: You returned the cache without the new tokens: {RETURN_ALL}",
    dict(result=lambda s: (s.output, s.old)),
    f"only-the-new-returned: You returned only the new keys and values: {RETURN_ALL}",
    dict(result=lambda s: (s.output, s.new)),
    f"returned-flat: You returned three parts side by side: {RETURN_ALL}",
    dict(result=lambda s: (s.output, *s.longer)),
    f"weights-returned: You returned the weights: {RETURN_ALL}",
    dict(result=lambda s: (s.output, s.weights)),
    f"cache-as-a-list: You returned keys and values as a list: {RETURN_ALL}",
    dict(result=lambda s: (s.output, [*s.longer])),
    "last-row-alone: You returned the output of the newest token only: return all.",
    dict(result=lambda s: (s.output[..., -1:, :], s.longer)),
)


def held(past, query, keys, values, **settings):
    """Return the case in which the first `past` of the keys and values are old."""
    old, new = zip(*(t.tensor_split([past], -2) for t in (keys, values)))
    return case(query, *new, Cache(old) if past else None, **settings)


def drawn(*lead, past, new, d_k, d_v, dtype=torch.float32, **settings):
    """Return the case of `new` tokens after `past` in the cache."""
    sizes = (new, d_k), (past + new, d_k), (past + new, d_v)
    made = [draw(*lead, *n, dtype=dtype, seed=i) for i, n in enumerate(sizes)]
    return held(past, *made, **settings)


# Whole numbers and a width of 4: the scores are exact.
STEEP = torch.tensor([1000.0, -1000.0])[:, None, None].expand(2, 3, 4)
RISING = torch.arange(-40.0, 0.0, 5.0)[:, None].expand(2, 8, 4)
attend_with_cache = Exercise(
    id="10.2",
    signature="attend_with_cache(query, key, value, cache)",
    returns="(output, (keys, values)): causal attention of the new tokens over all tokens so far, and the longer cache",
    oracle=right_cached,
    parts=("output", ("keys", "values")),
    properties=[partial(past_stays, of="new tokens")],
    cases=[
        drawn(past=3, new=2, d_k=2, d_v=3, note="two new tokens after three"),
        drawn(past=0, new=3, d_k=2, d_v=5, note="the beginning"),
        drawn(past=5, new=1, d_k=3, d_v=2, note="one new token"),
        drawn(2, 3, past=7, new=5, d_k=5, d_v=11),
        drawn(3, past=2, new=7, d_k=5, d_v=5, note="more new tokens than in the cache"),
        drawn(
            2, 3, past=11, new=1, d_k=7, d_v=5, note="one new token, two axes before"
        ),
        drawn(3, past=0, new=1, d_k=2, d_v=7, note="one token, the very first"),
        held(5, STEEP, RISING, draw(2, 8, 3), note="large scores", special=True),
        drawn(past=3, new=5, d_k=11, d_v=2, dtype=torch.float64, note="float64"),
    ],
    pipeline=of_attention.attention(
        start,
        {
            "T": lambda s: s.query.shape[-2],
            "past": lambda s: s.old[0].shape[-2],
            "allowed": lambda s: lower(s.T, s.past + s.T, s.past),
            "first": lambda s: s.old,
            "then": lambda s: s.new,
            "along": lambda s: -2,
            "longer": glued,
            "seen": lambda s: s.longer,
            "column": lambda s: torch.arange(s.seen[0].shape[-2]),  # of the keys
            "row": lambda s: torch.arange(-s.T, 0)[:, None] + len(s.column),
            **steps(
                leaving_out=("merged", "projected"),
                key=lambda s: s.seen[0],
                value=lambda s: s.seen[1],
                mask=lambda s: s.column <= s.row,
                result=lambda s: (s.output, s.longer),
            ),
        },
        *(CACHED, of_attention.SCALE, SIZES, of_attention.AXIS, of_attention.SOFTMAX),
        *(HIDE, LARGE_FILLS, of_attention.SCORE, of_attention.AVERAGE),
        renamed={
            "keys-for-values": "keys-as-values",
            "maximum-not-subtracted": "maximum-missing",
            "scale-of-keys": "root-of-tokens",
        },
    ),
)

EXERCISES = [online_softmax_attention, attend_with_cache, repeat_kv]
