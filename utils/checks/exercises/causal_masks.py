"""Exercises of the notebook on masks: two masks, a softmax, a causal layer."""

from functools import partial

import torch
import torch.nn.functional as F

from utils import attention
from utils.checks import shared
from utils.checks.definition import Case, Exercise, Mistake, draw
from utils.checks.layer_probes import TRAINING_PROBES
from utils.checks.shared import softmax_of
from utils.checks.submission import QKV

FORMS = [
    Mistake("only-itself", "You let each token see itself only, because torch.eye has its ones on the diagonal alone: begin with torch.ones.", "mask = torch.eye(rows, columns) > 0"),
    Mistake("additive-mask", "You returned an additive mask, 0 and a very negative number: return True where a token may be attended to.", "return mask.log()"),
]  # fmt: skip


def causal_mask(num_tokens):
    rows, columns = num_tokens, num_tokens
    diagonal = columns - rows
    mask = torch.ones(rows, columns).tril(diagonal) > 0
    return mask


exercise_5_1 = Exercise(
    id="5.1",
    right=causal_mask,
    course=attention.causal_mask,
    returns="a tensor (T, T) of dtype torch.bool, True where the query (row) may attend to the key (column)",
    cases=[*map(Case, (3, 5, 1, 67)), Case(0, note="no token")],
    mistakes=shared.MASK_POSITIONS + FORMS,
)


def padding_mask(lengths, num_tokens):
    ends = torch.as_tensor(lengths)
    row = torch.arange(num_tokens)
    mask = row < ends[:, None]
    return mask


exercise_5_4 = Exercise(
    id="5.4",
    page="deeper/padding_and_empty_rows",
    right=padding_mask,
    course=attention.padding_mask,
    returns="a boolean tensor (B, T), a row for each sentence, True for real tokens",
    cases=[
        Case(torch.tensor([1, 3]), 3),
        Case(torch.tensor([2, 5, 4]), 7, note="no sentence fills the row"),
        Case(torch.tensor([3, 1, 5, 2, 4]), 5, note="B = T"),
        Case(torch.tensor([4, 0, 2]), 5, note="an empty sentence"),
        Case([2, 3], 5, note="a list of lengths"),
    ],
    mistakes=[
        Mistake("polarity-inverted", "You put True at the padding: True means that a token may be attended to, t < length.", "mask = row >= ends[:, None]"),
        Mistake("one-too-many", "You counted the place at `length` as real, but it's padding already: positions start at 0, so real is t < length.", "ends = torch.as_tensor(lengths) + 1"),
        Mistake("one-too-few", "You marked one token too few: positions start at 0, so all below the length are real, t < length.", "ends = torch.as_tensor(lengths) - 1"),
        Mistake("longest-for-num-tokens", "You made rows as long as the longest sentence: make them num_tokens = {num_tokens} long.", "row = torch.arange(ends.max())"),
    ],
)  # fmt: skip

MASKED = [
    Mistake("mask-not-used", "Your mask has no effect: fill the scores with -inf where it is False. (masked_fill returns a new tensor, so use its result.)", "hidden = scores; weights = soft"),
    Mistake("polarity-inverted", "You hid the allowed positions: hide those at which the mask is False, ~mask.", "mask = ~mask"),
    Mistake("zero-for-minus-infinity", "You set hidden scores to 0 (or 1e-9), but e⁰ = 1 is a share like any other, so the others no longer sum to 1. Use -inf.", "hidden = scores.masked_fill(~mask, 0.0)"),
]  # fmt: skip
MASKED += shared.EMPTY_ROWS + shared.HIDDEN_SCORES + shared.AXIS
MASKED += shared.FIXED_AXIS + shared.SOFTMAX + shared.NO_MASK


def booleans(*rows):
    return torch.tensor(rows, dtype=torch.bool)


SMALL = torch.tensor([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]])
LARGE = torch.tensor([[300.0, -900.0, 600.0], [-500.0, 200.0, 800.0]])
LOW = torch.tensor([[-3e4, -30040.0, -30080.0], [-30080.0, -3e4, -30040.0]])
PADDING = torch.arange(7) < torch.tensor([[4], [7]])


def masked_softmax(scores, mask):
    hidden = scores.masked_fill(~mask, -torch.inf)
    dim = -1
    soft = softmax_of(hidden, dim)
    weights = soft.masked_fill(~mask, 0.0)
    return weights


exercise_5_3 = Exercise(
    id="5.3",
    page="deeper/padding_and_empty_rows",
    right=masked_softmax,
    course=attention.masked_softmax,
    returns="the weights (…, T, S): allowed ones sum to 1 in each row, forbidden ones are 0, a row without any allowed position is all zeros",
    mistakes=MASKED,
    cases=[
        Case(SMALL, booleans([1, 1, 0], [1, 1, 1])),
        Case(draw(5, 5), torch.ones(5, 5).tril().bool(), note="a causal mask"),
        Case(SMALL, booleans([1, 0, 1], [0, 0, 0]), note="nothing allowed in row 1"),
        Case(draw(5, 5, 3), draw(5, 3) > -0.5, note="B = T"),
        Case(draw(2, 3, 5, 7), PADDING[:, None, None], note="a padding mask"),
        Case(LARGE, booleans([1, 1, 0], [1, 1, 1]), note="a large hidden score"),
        Case(LOW, booleans([0, 1, 1], [1, 0, 1]), note="scores near -30000"),
    ],
)

IN_LAYER = shared.CAUSAL_MASK + shared.HIDDEN_SCORES + shared.MASK_SIZE
IN_LAYER += shared.OF_INPUT + shared.SCALE + shared.WEIGHING + shared.PROJECT


def causal_attention(learned, x):
    context = x
    query = x @ learned.W_query
    key = context @ learned.W_key
    value = context @ learned.W_value
    width = query.shape[-1]
    products = query @ key.mT
    scores = products / width**0.5
    rows, columns = x.shape[1], x.shape[1]
    diagonal = columns - rows
    mask = torch.ones(rows, columns).tril(diagonal) > 0
    hidden = scores.masked_fill(~mask, -torch.inf)
    dim = -1
    soft = softmax_of(hidden, dim)
    weights = soft
    output = weights @ value
    return output


def masked_attention(query, key, value):
    width = query.shape[-1]
    products = query @ key.mT
    scores = products / width**0.5
    rows, columns = query.shape[-2], query.shape[-2]
    diagonal = columns - rows
    mask = torch.ones(rows, columns).tril(diagonal) > 0
    hidden = scores.masked_fill(~mask, -torch.inf)
    dim = -1
    soft = softmax_of(hidden, dim)
    weights = soft
    output = weights @ value
    return output


LONG, NARROW_BUILD = (5, 11, 13, 0.2), (7, 2, 5, 0.2)
exercise_5_2 = Exercise(
    id="5.2",
    right=causal_attention,
    course=attention.CausalAttention,
    class_signature="CausalAttention(d_in, d_out, context_length, dropout)",
    returns="from x (B, T, d_in), T up to context_length, the output (B, T, d_out), with the learned matrices W_query, W_key, W_value",
    projections=QKV,
    probes=TRAINING_PROBES,
    mistakes=IN_LAYER,
    skip_mistakes=("fixed-axis", "fixed-axes"),
    cases=[
        Case(draw(2, 7, 5, scale=2.0), build=LONG),
        Case(draw(3, 3, 7, scale=2.0), build=NARROW_BUILD, note="d_out < d_in, B = T"),
        Case(draw(2, 5, 7, scale=2.0), build=NARROW_BUILD, note="the full length"),
        Case(draw(13, 2, 7, scale=300.0), build=(7, 2, 13, 0.2), note="large scores"),
    ],
)

IN_FUNCTION = shared.CAUSAL_MASK + shared.HIDDEN_SCORES + shared.SCALE
IN_FUNCTION += shared.OF_VALUES + shared.WEIGHING
IN_FUNCTION += [
    Mistake("queries-for-keys", "You compared the queries with each other: compare each query with every key, query @ key.mT.", "key = query"),
    Mistake("mask-of-another-size", "Your mask doesn't have a row for each word: make it causal_mask(query.shape[-2]). (len() and shape[0] count the sentences of a batch.)", "rows, columns = len(query), len(query)", "rows, columns = query.shape[-1], query.shape[-1]", "rows, columns = 3, 3"),
]  # fmt: skip
exercise_2_in_the_hour = Exercise(
    id="2",
    page="attention_in_an_hour",
    same_as="5.2",
    counts_as="masked_attention in an hour",
    right=masked_attention,
    returns="the context vectors (…, T, d_v), each of which takes from its own word and those before it",
    mistakes=IN_FUNCTION,
    course=partial(F.scaled_dot_product_attention, is_causal=True),
    cases=[
        Case(draw(5, 3), draw(5, 3, seed=1), draw(5, 2)),
        Case(draw(2, 7, 5), draw(2, 7, 5, seed=1), draw(2, 7, 11)),
        Case(*(draw(3, 3, 3, seed=seed) for seed in range(3)), note="B = T = d_k = d_v"),
        Case(draw(2, 3, 5, 7), draw(2, 3, 5, 7, seed=1), draw(2, 3, 5, 13)),
        Case(*(300 * draw(2, 7, 3, seed=s) for s in range(2)), draw(2, 7, 5), note="large scores"),
    ],
)  # fmt: skip
