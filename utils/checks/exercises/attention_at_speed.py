"""Exercises of the notebook on speed: the cached step, online softmax, shared heads."""

import torch

from utils import attention
from utils.checks import shared
from utils.checks.definition import Case, Diagnosis, Exercise, Mistake, draw
from utils.checks.layer_probes import Shapes
from utils.checks.shared import CAUSAL_MASK, HIDDEN_SCORES, JOIN, OF_VALUES, softmax_of


def slices_not_taken(attention):
    """Name an answer that takes other than `slice_size` keys at a time."""
    inputs = torch.ones(17, 2), torch.ones(19, 2), torch.ones(19, 3)
    sets = []
    for slice_size in (2, 5):
        with Shapes() as shapes:
            attention(*inputs, slice_size)
        sets.append(shapes.sizes - {17 * 2, 19 * 2, 19 * 3, 17 * 3})
    if max(sets[0], default=0) >= 17 * 19:
        return Diagnosis("whole-matrix", "You made the whole matrix of scores, (T, S), whatever slice_size is: take slice_size keys at a time.")  # fmt: skip
    if sets[0] and sets[0] == sets[1]:  # else it computes in another way, as in NumPy
        return Diagnosis("slice-size-ignored", "You make tensors of the same sizes whatever slice_size is: take slice_size keys at a time.")  # fmt: skip
    return None


def online_softmax_attention(query, key, value, slice_size):
    products = query @ key.mT
    width = query.shape[-1]
    scores = products / width**0.5
    of_key = torch.arange(key.shape[-2]) // slice_size
    slices = of_key == of_key.unique()[:, None]  # (P, S)
    # The scores of each slice, (P, …, T, S): -inf for the keys of others.
    cut = scores[..., None, :].masked_fill(~slices, -torch.inf).movedim(-2, 0)
    maxima = cut.amax(-1, keepdim=True).cummax(0).values  # of the slices so far
    weights = torch.exp(cut - maxima)
    sums = weights.sum(-1, keepdim=True)
    outputs = weights @ value
    top = maxima[-1:]
    factors = torch.exp(maxima - top)
    total = (factors * sums).sum(0)
    joined = (factors * outputs).sum(0)
    divided = joined / total
    return divided


ONLINE = [
    Mistake("last-block-lost", "You lost the last, shorter slice: begin a slice at each of 0, slice_size, 2 * slice_size … below S, because Python cuts the last one short by itself.", "cut = scores[..., None, :].masked_fill(~slices[slices.sum(1) == slice_size], -torch.inf).movedim(-2, 0)"),
    Mistake("maximum-starts-at-zero", "You started the maximum at 0, so very low scores vanish: start at −∞.", "maxima = cut.amax(-1, keepdim=True).cummax(0).values.clamp(0)"),
]  # fmt: skip
ONLINE += JOIN + shared.SCALE + OF_VALUES

UP_AND_DOWN = torch.tensor([[1.0], [-1.0]]).expand(2, 3)
RISING_KEYS = torch.linspace(-1.5, 1.5, 5)[:, None].expand(5, 3)
# Whole numbers and a width of 4 keep scores exact in float32, however large they are.
LARGE_QUERIES = torch.tensor([[1], [30], [3e3]]) * draw(2, 3, 4, scale=2.0).round()
LARGE_KEYS = draw(2, 7, 4, scale=2.0).round()
LOW_KEYS = draw(5, 4, shift=-900.0).round()
exercise_9_1 = Exercise(
    id="9.1",
    right=online_softmax_attention,
    course=attention.online_softmax_attention,
    returns="the output (…, T, d_v) of scaled dot-product attention, without a mask",
    cases=[
        Case(UP_AND_DOWN, RISING_KEYS, draw(5, 2), 2, note="scores rise, then fall"),
        Case(draw(3, 5, 2), draw(3, 7, 2), draw(3, 7, 11), 2),
        Case(draw(2, 3, 5, 7), draw(2, 3, 11, 7), draw(2, 3, 11, 13), 4),
        Case(draw(3, 5), draw(7, 5), draw(7, 2), 13, note="a slice larger than S"),
        Case(LARGE_QUERIES, LARGE_KEYS, draw(2, 7, 3), 2, note="large scores"),
        Case(torch.ones(3, 4), LOW_KEYS, draw(5, 3), 2, note="very negative scores"),
    ],
    probes=[slices_not_taken],
    mistakes=ONLINE,
    skip_mistakes=("scale-after-softmax",),
)

HEADS, TOKENS = torch.tensor([[[0.0]], [[100]]]), torch.tensor([[0.0], [10], [20]])
LEGIBLE = (HEADS + TOKENS + torch.arange(2))[None]  # (1, H_kv, T, d_k)


def repeat_kv(x, n_rep):
    axis = 1
    place = axis + 1  # of the copies
    copies = x.unsqueeze(place).repeat_interleave(n_rep, place)
    return copies.flatten(axis, axis + 1)


exercise_9_3 = Exercise(
    id="9.3",
    page="deeper/shared_heads",
    right=repeat_kv,
    course=attention.repeat_kv,
    returns="from x (B, H_kv, T, d_k) the heads (B, H_kv * n_rep, T, d_k), head h equal to head h // n_rep of x",
    cases=[
        Case(LEGIBLE, 3, note="entry = 100 × head + 10 × token + feature"),
        Case(draw(2, 3, 7, 5), 2),
        Case(draw(3, 5, 2, 7), 3, note="more heads than tokens"),
        Case(draw(3, 1, 5, 2), 7, note="one head for all"),
    ],
    mistakes=[
        Mistake("tile-for-interleave", "Your heads come in the order 0, 1, …, 0, 1, …: the copies of a head should be next to each other, 0, 0, …, 1, 1, …, as repeat_interleave makes them.", "place = axis"),
        Mistake("wrong-axis", "You repeated axis {axis}: the heads are axis 1.", "axis = 0", "axis = 2"),
        Mistake("axis-missing", "You called repeat_interleave without `dim`, so it repeated each entry: use dim=1, the head axis.", "return x.repeat_interleave(n_rep).reshape(copies.flatten(axis, axis + 1).shape)"),
        Mistake("one-repetition-more", "You repeated each head n_rep + 1 times: n_rep counts the original too.", "n_rep = n_rep + 1"),
    ],
)  # fmt: skip


def join_tokens(first, then, axis):
    """Return keys and values, each from two pairs of those."""
    return tuple(torch.cat(pair, axis) for pair in zip(first, then))


def attend_with_cache(query, key, value, cache):
    new = key, value
    along = -2
    longer = join_tokens(cache, new, along) if cache else new
    key, value = longer
    width = query.shape[-1]
    products = query @ key.mT
    scores = products / width**0.5
    rows, columns = query.shape[-2], key.shape[-2]
    diagonal = columns - rows
    mask = torch.ones(rows, columns).tril(diagonal) > 0
    hidden = scores.masked_fill(~mask, -torch.inf)
    dim = -1
    soft = softmax_of(hidden, dim)
    weights = soft
    output = weights @ value
    return output, longer


RETURN_ALL = "return (output, (keys, values)), with all keys and values so far."
CACHED = [
    Mistake("causal-from-the-top-left", "You started the causal mask at the top left, as with is_causal=True: new token t sees all old tokens and the new ones up to itself.", "diagonal = 0"),
    Mistake("mask-without-a-cache-only", "You mask only without a cache: several new tokens after a cache must not see each other's future either.", "diagonal = columns - rows if cache is None else columns"),
    Mistake("cache-not-seen", "You let new tokens see each other only: their queries should meet the keys of the cache too.", "key, value = new"),
    Mistake("new-in-front", "You put the new tokens first: torch.cat((old, new), dim=-2).", "longer = join_tokens(new, cache, along) if cache else new"),
    Mistake("keys-and-values-swapped", "You swapped the keys and values of the cache, or used one of them twice: the cache is (keys, values).", "longer = join_tokens(cache[::-1], new, along) if cache else new"),
    Mistake("keys-and-values-swapped", f"You returned keys and values in the wrong order: {RETURN_ALL}", "return output, longer[::-1]"),
    Mistake("wrong-axis-joined", "You joined old and new along axis {along}: the tokens are the last axis but one, dim=-2.", "along = 1", "along = 2"),
    Mistake("only-the-new-returned", f"You returned only the new keys and values: {RETURN_ALL}", "return output, new"),
    Mistake("returned-flat", f"You returned three parts side by side: {RETURN_ALL}", "return output, *longer"),
]  # fmt: skip
CACHED += CAUSAL_MASK + HIDDEN_SCORES + shared.SCALE + shared.WEIGHING + OF_VALUES


def case_with_past(past, query, keys, values, **settings):
    """Return a case whose cache holds the first `past` of the keys and values."""
    old, new = zip(*(t.tensor_split([past], -2) for t in (keys, values)))
    return Case(query, *new, old if past else None, **settings)


def drawn(*lead, past, new, d_k, d_v, **settings):
    """Return a random case with `new` tokens after `past` tokens in the cache."""
    sizes = (new, d_k), (past + new, d_k), (past + new, d_v)
    tensors = [draw(*lead, *n, seed=i) for i, n in enumerate(sizes)]
    return case_with_past(past, *tensors, **settings)


STEEP = torch.tensor([1000.0, -1000.0])[:, None, None].expand(2, 3, 4)
RISING = torch.arange(-40.0, 0.0, 5.0)[:, None].expand(2, 8, 4)
VALUES = draw(2, 8, 3)
exercise_9_2 = Exercise(
    id="9.2",
    skip_probes=("no-gradient",),
    right=attend_with_cache,
    course=attention.attend_with_cache,
    returns="(output, (keys, values)): causal attention of the new tokens over all tokens so far, and the longer cache",
    parts=("output", ("keys", "values")),
    cases=[
        drawn(past=3, new=2, d_k=2, d_v=3, note="two new tokens after three"),
        drawn(past=0, new=3, d_k=2, d_v=5, note="the beginning"),
        drawn(past=5, new=1, d_k=3, d_v=2, note="one new token"),
        drawn(2, 3, past=7, new=5, d_k=5, d_v=11),
        drawn(3, past=2, new=7, d_k=5, d_v=5, note="more new tokens than in the cache"),
        case_with_past(5, STEEP, RISING, VALUES, note="large scores"),
    ],
    mistakes=CACHED,
)
