"""Exercises of notebook 05: masks, masked softmax, dropout, causal attention."""

import copy
from dataclasses import dataclass

import torch

from utils.checks.attention_steps import project
from utils.checks.draw import (
    draws,
    past_stays,
    samples_stay_apart,
    worst_sum,
)
from utils.checks.dropout import dropout, several
from utils.checks.engine import Exercise, Mistake, case
from utils.checks.modules import ModuleExercise
from utils.checks.training_facts import TRAINING_FACTS, sentences
from utils.checks.values import number, numbers, shape

draw = draws(5)
INF = torch.inf


# --- 5.1 --------------------------------------------------------------------------


def right_mask(num_tokens):
    positions = torch.arange(num_tokens)
    return positions <= positions[:, None]


def triangle(diagonal):
    """Return the mask whose `True` ends `diagonal` places right of the diagonal."""
    return lambda num_tokens: torch.ones(num_tokens, num_tokens).tril(diagonal).bool()


def in_numbers(mask):
    """Return 1 for `True` and 0 for `False`."""
    return mask.float()


def additive(mask):
    """Return what is added to the scores: 0 for `True`, -inf for `False`."""
    return torch.zeros(mask.shape).masked_fill(~mask, -INF)


def read_sizes_of_a_number(name):
    def compute(num_tokens):
        raise AttributeError(f"'int' object has no attribute '{name}'")

    return compute


def other_kinds(right):
    """Return the mistakes that give the entries of a right mask as something else."""
    return [
        *several(
            "numbers-for-booleans",
            "The entries are 1 and 0 where a boolean mask is asked for: `~` and "
            "masked_fill need True and False. Use dtype=torch.bool or a comparison.",
            lambda *args: right(*args).float(),
            lambda *args: right(*args).long(),
        ),
        *several(
            "numbers-for-booleans",
            "The entries are 1 where a token is hidden and 0 elsewhere: return "
            "booleans, True where it may be attended to.",
            lambda *args: (~right(*args)).float(),
            lambda *args: (~right(*args)).long(),
        ),
        *several(
            "additive-mask",
            "This is an additive mask, 0 and a very negative number: return booleans, "
            "True where a token may be attended to.",
            lambda *args: additive(right(*args)),
            lambda *args: ~right(*args) * -1e9,
        ),
        Mistake(
            "list-for-tensor",
            lambda *args: right(*args).tolist(),
            "The entries are right, as Python lists: torch.tensor makes one tensor.",
        ),
        Mistake(
            "list-for-tensor",
            lambda *args: list(right(*args)),
            "The rows are right, as a list: torch.stack makes one tensor of them.",
        ),
        Mistake(
            "array-for-tensor",
            lambda *args: right(*args).numpy(),
            "This is a NumPy array: use the functions of torch, or torch.from_numpy at "
            "the end.",
        ),
    ]


mask = Exercise(
    id="5.1",
    signature="causal_mask(num_tokens)",
    returns="a boolean tensor (T, T), True where the query (row) may attend to the key "
    "(column)",
    oracle=right_mask,
    cases=[case(3), case(5), case(2), case(11), case(1, note="one token")],
    mistakes=[
        Mistake(
            "upper-for-lower",
            lambda n: right_mask(n).T,
            "The first query sees the whole future and the last one only itself: row i "
            "is True up to column i. Keep the lower triangle, tril.",
        ),
        Mistake(
            "polarity-inverted",
            lambda n: ~right_mask(n),
            "True stands where the query must not look. In this course True means that "
            "it may attend: return ~mask.",
        ),
        Mistake(
            "diagonal-masked",
            triangle(-1),
            "The first token may attend to nothing, not even to itself. The current "
            "token counts as known: key j is allowed where j <= i, not only where "
            "j < i. The diagonal belongs to the mask.",
        ),
        Mistake(
            "one-step-leaked",
            triangle(1),
            "Query 0 sees token 1, which it is to predict, and so on in each row. The "
            "last True of row i is in column i: tril() with diagonal 0.",
        ),
        Mistake(
            "two-steps-leaked",
            triangle(2),
            "Row i is True up to column i + 2: its last True belongs into column i.",
        ),
        Mistake(
            "everything-allowed",
            lambda n: torch.ones(n, n).bool(),
            lambda e: (
                f"All {e.got.numel()} entries are True, so every query sees the whole "
                "future. Keep the lower triangle alone; tril returns a new tensor."
            ),
        ),
        Mistake(
            "nothing-allowed",
            lambda n: torch.zeros(n, n).bool(),
            lambda e: (
                f"All {e.got.numel()} entries are False, so no query sees anything: a "
                "triangle cut out of zeros is zero. Start with torch.ones."
            ),
        ),
        Mistake(
            "diagonal-alone",
            lambda n: torch.eye(n).bool(),
            lambda e: (
                f"Row {e.args[0] - 1} is {numbers(e.got[-1])}: each token sees itself "
                "alone. It may attend to all tokens before it too: j <= i, not j == i."
            ),
        ),
        Mistake(
            "window-alone",
            lambda n: right_mask(n).triu(-1),
            lambda e: (
                f"Row {e.args[0] - 1} is {numbers(e.got[-1])}: each token sees itself "
                "and its neighbour alone. All tokens before it are allowed."
            ),
        ),
        *several(
            "other-diagonal",
            "The triangle leans the other way: row i is True up to column i. Here the "
            "rows, or the columns, are in reverse order.",
            lambda n: right_mask(n).flip(0),
            lambda n: right_mask(n).flip(1),
        ),
        Mistake(
            "first-row-missing",
            lambda n: right_mask(n) & (torch.arange(n) > 0)[:, None],
            "The first row is all False: the first token may attend to itself. A loop "
            "over the rows begins at 0.",
        ),
        Mistake(
            "row-for-a-matrix",
            lambda n: torch.tril(torch.ones(n)),
            "torch.ones(num_tokens) is one row: the mask has two axes, "
            "torch.ones(num_tokens, num_tokens).",
        ),
        Mistake(
            "numbers-for-booleans",
            lambda n: in_numbers(right_mask(n).T),
            "These are numbers, and 1 stands in the upper triangle: return booleans, "
            "True in the lower triangle and on the diagonal.",
        ),
        Mistake(
            "zero-times-infinity",
            lambda n: in_numbers(~right_mask(n)) * -INF,
            lambda e: (
                f"Row 0 is {numbers(e.got[0])}: 0 times infinity is NaN, so every zero "
                "of the triangle became NaN. And a boolean mask is asked for."
            ),
        ),
        Mistake(
            "zero-times-infinity",
            lambda n: in_numbers(right_mask(n)) * -INF,
            lambda e: (
                f"Row 0 is {numbers(e.got[0])}: 0 times infinity is NaN, and -inf "
                "stands on the wrong side. Return a boolean mask: no infinity at all."
            ),
        ),
        Mistake(
            "uniform-weights",
            lambda n: torch.softmax(additive(right_mask(n)), -1),
            "These are weights that sum to 1 in each row, a step too far: return the "
            "mask, True where the query may attend.",
        ),
        *several(
            "leading-axes",
            "The triangle is right, but there are axes in front of it: return (T, T). "
            "Broadcasting adds the batch later.",
            lambda n: right_mask(n)[None],
            lambda n: right_mask(n)[None, None],
        ),
        *several(
            "one-row-only",
            lambda e: (
                f"The result has the shape {shape(e.got)}: each of the {e.args[0]} "
                "queries has a row of its own, (T, T). Compare with a column, "
                "positions[:, None]; in a loop, keep every row."
            ),
            lambda n: right_mask(n)[0],
            lambda n: right_mask(n)[-1],
        ),
        Mistake(
            "one-too-large",
            lambda n: right_mask(n + 1),
            lambda e: (
                f"The side is {len(e.got)} for {e.args[0]} tokens: one row and one "
                "column for each token, num_tokens of both."
            ),
        ),
        *other_kinds(right_mask),
        *several(
            "size-of-a-number",
            "`num_tokens` is a number, not a tensor: it is the side T of the mask.",
            read_sizes_of_a_number("shape"),
            read_sizes_of_a_number("size"),
        ),
    ],
)


# --- 5.2 --------------------------------------------------------------------------


def right_softmax(scores, mask):
    """Return the oracle's weights: exp of the allowed scores over their sum."""
    scores = scores.double()
    mask = mask.expand_as(scores)
    top = scores.masked_fill(~mask, -INF).amax(-1, keepdim=True)
    exps = torch.where(mask, scores - top, -INF).exp()
    return (exps / exps.sum(-1, keepdim=True)).masked_fill(~mask, 0.0).float()


def filled(value, dim=-1):
    """Return the softmax in which hidden scores were replaced by `value`."""

    def compute(scores, mask):
        return torch.softmax(scores.masked_fill(~mask, value), dim)

    return compute


def zeroed(compute):
    """Return the same weights with zeros at the hidden places."""
    return lambda scores, mask: compute(scores, mask).masked_fill(~mask, 0.0)


def without_nan(compute):
    """Return the same weights with zeros for NaN."""
    return lambda scores, mask: compute(scores, mask).nan_to_num(0.0)


def on_inverse(compute):
    return lambda scores, mask: compute(scores, ~mask)


def late(scores, mask):
    return torch.softmax(scores, -1) * mask


def over_their_sum(numerators, care=lambda sums: sums):
    """Return `numerators(scores, mask)` divided by the sums of their rows."""

    def compute(scores, mask):
        made = numerators(scores, mask)
        return made / care(made.sum(-1, keepdim=True))

    return compute


def allowed_exps(scores, mask):
    return scores.exp() * mask


def selected_exps(scores, mask):
    return scores.exp().masked_fill(~mask, 0.0)


renormalised = over_their_sum(late)


def shares(scores, mask):
    """Return exp(score - maximum) of the allowed scores, not divided by their sum."""
    hidden = scores.masked_fill(~mask, -INF)
    top = hidden.amax(-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).min)
    return (hidden - top).exp()


def without_keepdim(scores, mask):
    return shares(scores, mask) / shares(scores, mask).sum(-1)


def zero_times_infinity(scores, mask):
    return torch.softmax(scores + in_numbers(~mask) * -INF, -1)


def added_penalty(scores, mask):
    return torch.softmax(scores + ~mask * -1e9, -1)


def lowest_fill(scores, mask):
    return filled(torch.finfo(scores.dtype).min)(scores, mask)


def over_everything(scores, mask):
    hidden = scores.masked_fill(~mask, -INF)
    return torch.softmax(hidden.flatten(), 0).view_as(scores)


def default_axis(scores, mask):
    """Softmax without `dim`: PyTorch takes axis 0 for one or three axes, else 1."""
    return filled(-INF, 0 if scores.dim() in (1, 3) else 1)(scores, mask)


def by_index(scores, mask):
    hidden = scores.clone()
    hidden[~mask] = -INF
    return torch.softmax(hidden, -1)


def rows_by_index(scores, mask):
    weights = filled(-INF)(scores, mask)
    weights[~mask.any(-1)] = 0.0
    return weights


def axis_added(scores, mask):
    return filled(-INF)(scores, mask.unsqueeze(1))


def empty_rows_seen(scores, mask):
    """Leave a row without any allowed position as it is: unmasked."""
    return filled(-INF)(scores, mask | ~mask.any(-1, keepdim=True))


def rows_dropped(scores, mask):
    return right_softmax(scores, mask) * mask.all(-1, keepdim=True)


def triangle_for_mask(scores, mask):
    return right_softmax(scores, torch.ones(scores.shape[-2:]).tril().bool())


def bool_arithmetic(invert):
    """Return the softmax that inverts the boolean mask in a way that may fail."""
    return lambda scores, mask: scores.masked_fill(invert(mask), -INF).softmax(-1)


def hidden_sum(e):
    """Return the weight on hidden places that is largest in a row, as text."""
    hidden = e.got.double().nan_to_num(0.0) * ~e.args[1]
    return number(hidden.sum(-1).max().item())


def allowed_sum(e):
    """Return the sum of a row with something allowed that is furthest from 1."""
    some = e.args[1].expand_as(e.got).any(-1)
    return worst_sum(e.got[some])


def mask_not_used(e):
    return (
        f"Hidden places get a weight of up to {hidden_sum(e)}: the mask has no effect. "
        "masked_fill returns a new tensor: is its result used?"
    )


def inverted(e):
    return (
        f"Hidden places get a weight of up to {hidden_sum(e)}, allowed ones none. True "
        "means that the query may attend; masked_fill fills where the mask given to it "
        "is True, so give it ~mask."
    )


EMPTY_UNIFORM = (
    "A row without any allowed position must be all zeros: here its weights are "
    "uniform and see everything, as when all its scores become the same number. Set "
    "the hidden weights to 0 once more after the softmax."
)
SMALL_FILL = (
    "The number put in for hidden scores is not small enough: allowed scores below it "
    "lose to the hidden ones. Use float('-inf'), which is below every score."
)
MINUS_1E9 = (
    "-1e9 does not fit into float16, whose smallest number is -65504; float('-inf') "
    "exists in every precision."
)
RENORMALISED = (
    "The mask comes after the softmax and the rows are divided by what is left. With "
    "nothing allowed, or a hidden score far above the others, 0 is left, and 0/0 is no "
    "weight. Hide the scores before the softmax."
)

masked_softmax = Exercise(
    id="5.2",
    signature="masked_softmax(scores, mask)",
    returns="the weights (…, T, S): allowed ones sum to 1 in each row, forbidden ones "
    "are 0, a row without any allowed position is all zeros",
    oracle=right_softmax,
    properties=[
        lambda e: (
            f"Hidden places get a weight of up to {hidden_sum(e)} instead of 0."
            if (e.got.double() * ~e.args[1]).abs().max() > 1e-6
            else None
        ),
        lambda e: (
            f"The allowed weights of a row sum to {allowed_sum(e)} instead of 1."
            if abs(float(allowed_sum(e)) - 1) > 1e-3
            else None
        ),
    ],
    cases=[
        case(
            torch.tensor([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]]),
            torch.tensor([[True, True, False], [True, True, True]]),
        ),
        case(draw(5, 7), draw(5, 7) > 0, note="some places hidden"),
        case(draw(5, 5), right_mask(5), note="a causal mask"),
        case(
            torch.tensor([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]]),
            torch.tensor([[True, False, True], [False, False, False]]),
            note="nothing allowed in row 1",
        ),
        case(draw(2, 3, 5), draw(3, 5) > -0.5, note="one mask for both samples"),
        case(draw(5, 5, 3), draw(5, 3) > -0.5, note="B = T"),
        case(
            draw(2, 3, 5, 7),
            (torch.arange(7) < torch.tensor([[4], [7]]))[:, None, None],
            note="a padding mask",
        ),
        case(
            torch.tensor([[1.0, 2.0, 1000.0], [1000.0, 3.0, 1.0]]),
            torch.tensor([[True, True, False], [False, True, True]]),
            note="hidden scores of 1000",
        ),
        case(
            torch.tensor([[600.0, -900.0, 300.0], [-500.0, 200.0, 800.0]]),
            torch.tensor([[True, True, False], [True, True, True]]),
            note="large scores",
        ),
        case(
            torch.tensor([[-3e4, -30040.0, -30080.0], [-30080.0, -3e4, -30040.0]]),
            torch.tensor([[False, True, True], [True, False, True]]),
            note="scores near -30000",
        ),
        case(
            torch.zeros(3, 2, dtype=torch.float16),
            torch.tensor([[True, False], [False, True], [True, False]]),
            note="float16",
        ),
        case(torch.tensor([[0.7]]), torch.tensor([[True]]), note="one token"),
    ],
    mistakes=[
        Mistake("mask-not-used", lambda s, m: torch.softmax(s, -1), mask_not_used),
        Mistake("polarity-inverted", on_inverse(filled(-INF)), inverted),
        Mistake("polarity-inverted", on_inverse(zeroed(filled(-INF))), inverted),
        Mistake(
            "polarity-inverted",
            lambda s, m: filled(-INF)(s, ~m).masked_fill(~m, 0.0),
            "The weights vanish: the scores are hidden where the mask is True and the "
            "weights where it is False. True means that the query may attend, so both "
            "times fill at ~mask.",
        ),
        Mistake(
            "polarity-inverted",
            lambda s, m: filled(-INF)(s, m).masked_fill(m, 0.0),
            "The right scores are hidden, but then the allowed weights are set to 0 "
            "and the others kept: fill at ~mask both times.",
        ),
        Mistake(
            "empty-row-nan",
            filled(-INF),
            "A row without any allowed position must be all zeros. Its scores are all "
            "-inf, and the softmax of that is 0/0, NaN: set the hidden weights to 0 "
            "once more after the softmax.",
        ),
        Mistake("empty-row-uniform", lowest_fill, EMPTY_UNIFORM),
        Mistake("empty-row-uniform", added_penalty, EMPTY_UNIFORM),
        Mistake(
            "empty-row-unmasked",
            empty_rows_seen,
            "A row without any allowed position keeps its softmax over all scores: it "
            "must be all zeros, because there is nothing it may see.",
        ),
        Mistake("minus-1e9", filled(-1e9), f"{EMPTY_UNIFORM} {MINUS_1E9}"),
        Mistake("minus-1e9", zeroed(filled(-1e9)), MINUS_1E9),
        Mistake("fill-not-small-enough", filled(-1e4), SMALL_FILL),
        Mistake("fill-not-small-enough", zeroed(filled(-1e4)), SMALL_FILL),
        Mistake(
            "zero-for-minus-infinity",
            filled(0.0),
            lambda e: (
                f"Hidden places get a weight of up to {hidden_sum(e)}: a score of 0 "
                "is no score of nothing, e⁰ = 1 (1e-9 is no better). Hide with -inf."
            ),
        ),
        Mistake(
            "zero-for-minus-infinity",
            zeroed(filled(0.0)),
            lambda e: (
                f"The allowed weights of a row sum to {allowed_sum(e)}: hidden scores "
                "of 0 (or 1e-9) take their share first, e⁰ = 1. Hide with -inf."
            ),
        ),
        Mistake(
            "mask-after-softmax",
            late,
            lambda e: (
                f"The allowed weights of a row sum to {allowed_sum(e)}: the softmax "
                "has already divided by the hidden scores too. Set them to -inf "
                "before the softmax; masked_fill returns a new tensor."
            ),
        ),
        *several(
            "renormalised-after",
            RENORMALISED,
            renormalised,
            without_nan(renormalised),
            over_their_sum(late, lambda sums: sums.clamp(1e-8)),
        ),
        *several(
            "maximum-not-subtracted",
            "exp() is infinite for scores above 88 and 0 for scores below -104 in "
            "float32, so large scores give inf/inf and low or hidden ones 0/0. Fill "
            "with -inf and use torch.softmax, which subtracts each row's maximum; then "
            "set hidden weights to 0.",
            over_their_sum(allowed_exps),
            without_nan(over_their_sum(allowed_exps)),
            over_their_sum(allowed_exps, lambda sums: sums + 1e-9),
            over_their_sum(selected_exps),
            without_nan(over_their_sum(selected_exps)),
        ),
        *several(
            "not-normalised",
            lambda e: (
                f"A row sums to {allowed_sum(e)}: divide the exponentials by the sum "
                "of their row."
            ),
            shares,
            selected_exps,
        ),
        Mistake(
            "keepdim-missing",
            without_keepdim,
            "The sums of the rows have lost their axis, so they line up with the "
            "columns: add keepdim=True to the sum (and to the maximum).",
        ),
        *several(
            "zero-times-infinity",
            "0 times infinity is NaN: (~mask) * -inf spoils exactly the allowed "
            "places. Put -inf there alone: scores.masked_fill(~mask, float('-inf')).",
            zero_times_infinity,
            without_nan(zero_times_infinity),
            zeroed(zero_times_infinity),
        ),
        Mistake(
            "mask-added",
            lambda s, m: torch.softmax(s + in_numbers(m), -1),
            lambda e: (
                "True and False are added to the scores as 1 and 0, which hides "
                f"nothing: hidden places get up to {hidden_sum(e)}. Fill with -inf."
            ),
        ),
        *several(
            "softmax-missing",
            "These are the scores, the hidden ones at -inf or 0: hide them with -inf, "
            "then a softmax over the last axis turns scores into weights.",
            lambda s, m: s.masked_fill(~m, -INF),
            lambda s, m: s * m,
        ),
        Mistake(
            "log-softmax",
            lambda s, m: torch.log_softmax(s.masked_fill(~m, -INF), -1),
            "These are the logarithms of the weights, log_softmax for softmax.",
        ),
        *several(
            "softmax-over-queries",
            lambda e: (
                f"A row sums to {allowed_sum(e)} while the columns sum to 1: the "
                "softmax runs over the queries. Use dim=-1, the keys."
            ),
            filled(-INF, -2),
            zeroed(filled(-INF, -2)),
        ),
        *(
            Mistake(
                "fixed-axis",
                wrap(filled(-INF, axis)),
                f"dim={axis} is the axis of the keys for one number of axes only: "
                "count from the end, dim=-1.",
            )
            for axis in (0, 1, 2)
            for wrap in (lambda compute: compute, zeroed)
        ),
        *several(
            "axis-left-open",
            "Without `dim` the softmax picks its axis by the number of axes, and with "
            "a batch that is the batch itself: say dim=-1.",
            default_axis,
            zeroed(default_axis),
        ),
        Mistake(
            "softmax-over-everything",
            over_everything,
            lambda e: (
                "All weights together sum to 1: each row has a softmax of its own, "
                "dim=-1."
            ),
        ),
        *several(
            "mask-not-broadcast",
            "Indexing with a mask, scores[~mask] = …, asks for a mask with all axes of "
            "the scores. masked_fill and torch.where broadcast to them.",
            by_index,
            zeroed(by_index),
            rows_by_index,
        ),
        *several(
            "axis-added-to-mask",
            "An axis is inserted into the mask: it broadcasts to the scores as it is "
            "given, whoever calls the function has seen to that.",
            axis_added,
            without_nan(axis_added),
        ),
        Mistake(
            "softmax-twice",
            lambda s, m: torch.softmax(right_softmax(s, m), -1),
            "The softmax is taken twice, which lets the hidden places in again: once "
            "is enough.",
        ),
        Mistake(
            "selected-scores",
            lambda s, m: torch.softmax(s[m], -1),
            "scores[mask] puts the allowed scores of all rows into one long row: keep "
            "the shape and fill the others with -inf.",
        ),
        Mistake(
            "rows-dropped",
            rows_dropped,
            "Every row in which anything is hidden becomes zero: only the rows without "
            "any allowed position should, mask.any(dim=-1), not all.",
        ),
        Mistake(
            "triangle-for-mask",
            triangle_for_mask,
            "A causal triangle is used whatever the mask says: use the mask given, it "
            "may hide something else.",
        ),
        Mistake(
            "scaled",
            lambda s, m: right_softmax(s.double() / s.shape[-1] ** 0.5, m),
            lambda e: (
                f"The scores are divided by √S = √{e.args[0].shape[-1]}: scaling is "
                "not asked for here. The scores come as they are to be used."
            ),
        ),
        *several(
            "bool-arithmetic",
            "The opposite of a boolean mask is ~mask, entry by entry. PyTorch does not "
            "subtract or negate booleans, and `not` and `if` ask a whole tensor for "
            "one truth value.",
            bool_arithmetic(lambda mask: 1 - mask),
            bool_arithmetic(lambda mask: -mask),
            bool_arithmetic(lambda mask: not mask),
        ),
    ],
)


# --- 5.3 --------------------------------------------------------------------------


def right_padding(lengths, num_tokens):
    return torch.arange(num_tokens) < lengths[:, None]


def shifted(steps):
    """Return the mask with `steps` more True entries in each row."""
    return lambda lengths, num_tokens: right_padding(lengths + steps, num_tokens)


def axis_missing(lengths, num_tokens):
    return torch.arange(num_tokens) < lengths


def both_ways(lengths, num_tokens):
    real = right_padding(lengths, num_tokens)
    return real[:, :, None] & real[:, None, :]


def one_place(step):
    """Return the mask with one True in each row, set by index."""

    def compute(lengths, num_tokens):
        marked = torch.zeros(len(lengths), num_tokens, dtype=torch.bool)
        marked[torch.arange(len(lengths)), lengths + step] = True
        return marked

    return compute


def minus_zero(lengths, num_tokens):
    """Hide `mask[b, -(T - length):]`, which is everything where nothing is padded."""
    return right_padding(lengths, num_tokens) & (lengths < num_tokens)[:, None]


def rows_for_columns(lengths, num_tokens):
    rows = torch.arange(len(lengths)) < lengths.max()
    return rows[:, None].expand(-1, num_tokens)


def right_for_a_list(answer):
    """Name an answer that is right for a Python list of lengths alone."""
    expected = right_padding(torch.tensor([2, 3]), 5)
    try:
        if torch.equal(answer(torch.tensor([2, 3]), 5), expected):
            return None
    except Exception:  # what a list may cure
        pass
    if torch.equal(answer([2, 3], 5), expected):
        return (
            "tensor-not-accepted",
            "With a list of lengths the answer is right, with a tensor it is not: "
            "torch.as_tensor(lengths) takes either.",
        )
    return None


def sliced_by_tensor(lengths, num_tokens):
    real = torch.zeros(len(lengths), num_tokens, dtype=torch.bool)
    real[:, :lengths] = True
    return real


def as_keys(*index):
    """Return the mask indexed so that axes of size 1 are inserted."""
    return lambda lengths, num_tokens: right_padding(lengths, num_tokens)[index]


def rows_shown(e):
    """Say how many real tokens the first wrong row has."""
    row = (e.got != e.expected).any(-1).nonzero()[0].item()
    length, count = e.args[0][row].item(), int(e.got[row].sum())
    return f"The sentence of length {length} gets {count} True"


padding = Exercise(
    id="5.3",
    signature="padding_mask(lengths, num_tokens)",
    returns="a boolean tensor (B, T), a row for each sentence, True for real tokens",
    oracle=right_padding,
    facts=[right_for_a_list],
    cases=[
        case(torch.tensor([1, 3]), 3),
        case(torch.tensor([2, 5, 4]), 7, note="no sentence fills the row"),
        case(torch.tensor([3, 1, 5, 2, 4]), 5, note="B = T"),
        case(torch.tensor([4, 0, 2]), 5, note="an empty sentence"),
        case(torch.tensor([3]), 3, note="one sentence"),
        case(torch.tensor([1, 1, 1, 1, 1]), 1, note="one token each"),
    ],
    mistakes=[
        Mistake(
            "polarity-inverted",
            lambda lengths, n: ~right_padding(lengths, n),
            lambda e: (
                f"{rows_shown(e)}, at the padding. In this course True means that a "
                "token may be attended to: t < length."
            ),
        ),
        Mistake(
            "polarity-inverted",
            lambda lengths, n: torch.arange(n) > lengths[:, None],
            lambda e: (
                f"{rows_shown(e)}, at the padding, whose first place is missed too. "
                "True means a real token: t < length."
            ),
        ),
        Mistake(
            "one-too-many",
            shifted(1),
            lambda e: (
                f"{rows_shown(e)}, one too many: positions start at 0, so the last "
                "real one is length - 1. Use < rather than <=."
            ),
        ),
        Mistake(
            "one-too-few",
            shifted(-1),
            lambda e: (
                f"{rows_shown(e)}, one too few: positions start at 0, so those below "
                "the length are real, t < length. Start arange at 0."
            ),
        ),
        Mistake(
            "left-for-right",
            lambda lengths, n: right_padding(lengths, n).flip(1),
            "The real tokens stand at the right end, so the padding is on the left: "
            "here a sentence begins at position 0 and the padding follows.",
        ),
        Mistake(
            "sentences-reversed",
            lambda lengths, n: right_padding(lengths, n).flip(0),
            "The rows are in reverse order: row b belongs to sentence b.",
        ),
        *several(
            "lengths-sorted",
            "The rows are sorted by length: row b belongs to sentence b.",
            lambda lengths, n: right_padding(lengths.sort().values, n),
            lambda lengths, n: right_padding(lengths.sort(descending=True).values, n),
        ),
        Mistake(
            "axes-swapped",
            lambda lengths, n: right_padding(lengths, n).T,
            lambda e: (
                f"The shape is {shape(e.got)}: the sentences are in the columns. "
                "Positions are the row, (T,), lengths the column, (B, 1)."
            ),
        ),
        Mistake(
            "axis-missing",
            axis_missing,
            "The lengths (B,) meet the positions (T,) entry by entry, which fails or, "
            "where B = T, makes one row. Make the lengths a column: lengths[:, None].",
        ),
        Mistake(
            "longest-for-num-tokens",
            lambda lengths, n: right_padding(lengths, int(lengths.max())),
            lambda e: (
                f"The rows are {e.got.shape[1]} long, as the longest sentence; they "
                f"should have num_tokens = {e.args[1]} places."
            ),
        ),
        *(
            Mistake(
                "one-length-for-all",
                lambda lengths, n, pick=pick: right_padding(
                    pick(lengths)[None], n
                ).expand(len(lengths), -1),
                "Every sentence is given the same length: compare each row with its "
                f"own, here it is {which}.",
            )
            for which, pick in (
                ("the longest", torch.max),
                ("the shortest", torch.min),
                ("that of the first sentence", lambda lengths: lengths[0]),
                ("that of the last sentence", lambda lengths: lengths[-1]),
            )
        ),
        *several(
            "one-row-only",
            "This is the row of one sentence: each gets its own, (B, T). In a loop, "
            "keep every row and return after the last.",
            lambda lengths, n: right_padding(lengths, n)[0],
            lambda lengths, n: right_padding(lengths, n)[-1],
        ),
        Mistake(
            "minus-zero",
            minus_zero,
            "A sentence without padding loses all its tokens: in mask[b, -n:] with "
            "n = 0 the slice is [0:], everything. Count from the front, mask[b, "
            "length:].",
        ),
        Mistake(
            "rows-for-columns",
            rows_for_columns,
            "mask[:length] takes rows, which are sentences: the tokens are the second "
            "axis, mask[b, :length].",
        ),
        Mistake(
            "everything-real",
            lambda lengths, n: torch.ones(len(lengths), n).bool(),
            "All entries are True: the lengths play no part.",
        ),
        Mistake(
            "nothing-real",
            lambda lengths, n: torch.zeros(len(lengths), n).bool(),
            "All entries are False: nothing has been set to True.",
        ),
        *several(
            "last-token-alone",
            "Each row has a single True: all tokens before a sentence's length are "
            "real, t < length, not t == length.",
            lambda lengths, n: torch.arange(n) == lengths[:, None] - 1,
            lambda lengths, n: torch.arange(n) == lengths[:, None],
            one_place(-1),
        ),
        Mistake(
            "last-token-alone",
            one_place(0),
            "`mask[i, length] = True` sets one place, the first one of the padding: "
            "the slice mask[i, :length] is meant.",
        ),
        Mistake(
            "sliced-by-a-tensor",
            sliced_by_tensor,
            "mask[:, :lengths] cuts all rows at one place, so it takes one number: set "
            "each row in a loop, or compare positions with lengths[:, None].",
        ),
        *several(
            "axis-inserted",
            "The entries are right, with axes of size 1 inserted for the scores: "
            "return (B, T) here; mask[:, None, :] inserts one where it meets scores.",
            as_keys(slice(None), None),
            as_keys(slice(None), None, None),
            as_keys(..., None),
        ),
        Mistake(
            "queries-hidden",
            both_ways,
            "The mask is (B, T, T) and hides padded queries too: padding hides keys, "
            "one row (B, T) says which. Padded queries stay; nobody reads them.",
        ),
        Mistake(
            "repeated-for-queries",
            lambda lengths, n: right_padding(lengths, n)[:, None].expand(-1, n, -1),
            "The mask is repeated for every query, (B, T, T): return (B, T), and "
            "broadcasting does the rest.",
        ),
        Mistake(
            "causal-mask-too",
            lambda lengths, n: right_padding(lengths, n)[:, None] & right_mask(n),
            "The causal mask is combined with it already, (B, T, T): return the "
            "padding alone, (B, T).",
        ),
        Mistake(
            "causal-mask-instead",
            lambda lengths, n: right_mask(n),
            "This is the causal mask (T, T): the lengths play no part.",
        ),
        Mistake(
            "lengths-for-ids",
            lambda lengths, n: lengths != 0,
            lambda e: (
                f"The shape is {shape(e.got)}: the lengths are compared with 0 as if "
                "they were token ids. Compare positions with them, t < length."
            ),
        ),
        *other_kinds(right_padding),
    ],
)


# --- 5.5 --------------------------------------------------------------------------


def parts_of(weights, x):
    """Return scaled scores, values and the causal mask, the steps of a forward pass."""
    query, key, value = project(weights, x)
    scores = query @ key.mT / query.shape[-1] ** 0.5
    return scores, value, right_mask(x.shape[-2])


def through(soften):
    """Return the forward pass whose weights are `soften(scores, mask)`."""

    def compute(weights, x):
        scores, value, allowed = parts_of(weights, x)
        return soften(scores, allowed) @ value

    return compute


def scaled_by(slug, scale, explain):
    """Return the mistake that multiplies the scores by `scale(weights, x)`."""

    def compute(weights, x):
        query, key, value = project(weights, x)
        scores = scale(weights, x) * (query @ key.mT)
        return right_softmax(scores, right_mask(x.shape[-2])) @ value

    return Mistake(slug, compute, explain)


def attend_to(query, key, value):
    """Return the causal attention of these three, in float64 inside."""
    attended = torch.nn.functional.scaled_dot_product_attention(
        query.double(), key.double(), value.double(), is_causal=True
    )
    return attended.to(value.dtype)


def from_parts(pick):
    """Return the forward pass on `pick(x, query, key, value)`."""
    return lambda weights, x: attend_to(*pick(x, *project(weights, x)))


def unsliced(weights, x):
    """Fail, in whatever words, where the sentence is shorter than the mask."""
    if x.shape[-2] < weights.build[2]:
        raise RuntimeError
    return attend_to(*project(weights, x))


def sliced_by(axis):
    """Return the forward pass that cuts the mask to the size of another axis of x."""

    def compute(weights, x):
        scores, value, _ = parts_of(weights, x)
        size = x.shape[axis]
        allowed = right_mask(weights.build[2])[:size, :size]
        try:
            return right_softmax_of(scores, allowed) @ value
        except RuntimeError:
            raise RuntimeError from None  # whatever the words

    return compute


def mask_of_size(which):
    """Return the forward pass whose mask has another argument for its side."""

    def compute(weights, x):
        if x.shape[-2] > weights.build[which]:
            raise RuntimeError
        return attend_to(*project(weights, x))

    return compute


def full_length_fails(weights, x):
    if x.shape[-2] == weights.build[2]:
        raise RuntimeError
    return attend_to(*project(weights, x))


def right_softmax_of(scores, allowed):
    return torch.softmax(scores.masked_fill(~allowed, -INF), -1)


def batch_joined(weights, x):
    """Let the sentences of a batch follow each other as one long text."""
    joined = attend_to(*project(weights, x.flatten(0, 1)))
    return joined.unflatten(0, x.shape[:2])


def over_batch(weights, x):
    scores, value, allowed = parts_of(weights, x)
    return torch.softmax(scores.masked_fill(~allowed, -INF), 0) @ value


def keys_first(weights, x):
    scores, value, allowed = parts_of(weights, x)
    return right_softmax(scores.mT, allowed) @ value


def dot_t(weights, x):
    query, key, value = project(weights, x)
    scores = query @ key.T / query.shape[-1] ** 0.5
    return right_softmax_of(scores, right_mask(x.shape[-2])) @ value


def swapped_axes(weights, x):
    query, key, value = project(weights, x)
    scores = query @ key.transpose(0, 1) / query.shape[-1] ** 0.5
    return right_softmax_of(scores, right_mask(x.shape[-2])) @ value


def scale_after(weights, x):
    query, key, value = project(weights, x)
    softened = right_softmax(query @ key.mT, right_mask(x.shape[-2]))
    return softened / query.shape[-1] ** 0.5 @ value


def moved_by_the_future(e):
    """Return how far output 0 moves when all later tokens change, as text."""
    x = e.inputs[0]
    other = torch.cat([x[:, :1], x[:, 1:] + 1], dim=1)
    moved = e.call(x)[:, 0] - e.call(other)[:, 0]
    return number(moved.abs().max().item())


def leaks(text):
    """Return the explanation that begins with how far the future moves the past."""
    return lambda e: (
        f"Adding 1 to the tokens from 1 on moves output 0 by {moved_by_the_future(e)}, "
        f"where it is to stay. {text}"
    )


def fails_in_half(module, weights):
    """Name a fill value that float16 cannot hold."""
    half = copy.deepcopy(module).half().eval()
    try:
        half(sentences(weights.build[0]).half())
    except RuntimeError as error:
        if "without overflow" in str(error):
            return (
                "minus-1e9",
                f"After module.half() the forward pass fails: {MINUS_1E9}",
            )
    return None


def mask_is_trained(module, weights):
    """Name a mask that is a parameter."""
    for name, parameter in module.named_parameters():
        if parameter.shape[-2:] == (weights.build[2],) * 2:
            text = (
                f"The outputs are right, but `{name}` is an nn.Parameter: an optimizer "
                "would train it. A mask is a buffer, register_buffer."
            )
            return "mask-is-a-parameter", text
    return None


def projected_again(module, weights):
    """Name a layer through which the right output goes."""
    x = sentences(weights.build[0])
    attended = attend_to(*project(weights, x))
    for name, layer in module.named_children():
        if not hasattr(weights, name) and any(True for _ in layer.parameters()):
            if torch.allclose(layer(attended), module(x), atol=1e-4):
                return (
                    "unasked-projection",
                    f"The output is right until it goes through `{name}`: none is "
                    "asked for here. It comes with several heads, in 06.",
                )
    return None


@dataclass(frozen=True, eq=False)
class CausalExercise(ModuleExercise):
    """A causal module; where its outputs are wrong, look for one layer too many."""

    def looks(self, right):
        looks = super().looks(right)
        return looks if right else (*looks, projected_again)


SENTENCES = (3, 5, 11, 0.2)
NARROW = (7, 2, 5, 0.2)

causal_attention = CausalExercise(
    id="5.5",
    signature="CausalAttention(d_in, d_out, context_length, dropout)",
    returns="from x (B, T, d_in), T up to context_length, the output (B, T, d_out), "
    "with the learned matrices W_query, W_key, W_value",
    oracle=lambda weights, x: attend_to(*project(weights, x)),
    properties=[past_stays, samples_stay_apart],
    facts=(*TRAINING_FACTS, fails_in_half, mask_is_trained),
    cases=[
        case(draw(2, 7, 3, scale=2.0), build=SENTENCES),
        case(draw(2, 11, 3, scale=2.0), build=SENTENCES, note="the full length"),
        case(draw(5, 3, 3, scale=2.0), build=SENTENCES, note="a shorter length"),
        case(draw(3, 3, 7, scale=2.0), build=NARROW, note="d_out below d_in, B = T"),
        case(draw(2, 5, 7, scale=2.0), build=NARROW, note="the full length"),
        case(draw(13, 2, 7, scale=300.0), build=NARROW, note="large scores"),
        case(draw(2, 1, 3), build=SENTENCES, note="one token"),
    ],
    mistakes=[
        Mistake(
            "mask-not-used",
            through(lambda s, m: torch.softmax(s, -1)),
            leaks(
                "No mask takes effect: it is never applied, or the new tensor that "
                "masked_fill returns is lost."
            ),
        ),
        Mistake(
            "diagonal-masked",
            through(lambda s, m: filled(-INF)(s, m.tril(-1))),
            "Output 0 is NaN: the first token may attend to nothing, not even to "
            "itself. The diagonal is allowed: block what lies above it, triu(…, 1).",
        ),
        Mistake(
            "diagonal-masked",
            through(lambda s, m: right_softmax(s, m.tril(-1))),
            "Output 0 is zero: the first token may attend to nothing, not even to "
            "itself. The diagonal is allowed, the current token counts as known.",
        ),
        Mistake(
            "one-step-leaked",
            through(lambda s, m: right_softmax(s, m | m.roll(1, 1).triu(1).tril(1))),
            leaks(
                "Each query sees the next token: block from the first place above "
                "the diagonal on, triu(…, diagonal=1)."
            ),
        ),
        Mistake(
            "upper-for-lower",
            through(lambda s, m: right_softmax(s, m.T)),
            leaks(
                "The upper triangle is allowed and the lower one blocked: a query "
                "may attend to what came before, tril."
            ),
        ),
        Mistake(
            "polarity-inverted",
            through(lambda s, m: filled(-INF)(s, ~m)),
            "Each query sees the future alone, and the last one nothing, NaN: the "
            "allowed places are hidden. masked_fill fills where its mask is True.",
        ),
        Mistake(
            "polarity-inverted",
            through(lambda s, m: right_softmax(s, ~m)),
            "Each query sees the future alone, and the last output is zero: the "
            "allowed places are hidden. True means that a query may attend.",
        ),
        Mistake(
            "zero-times-infinity",
            through(zero_times_infinity),
            "Every output is NaN: in a triangle times -inf the zeros become NaN too, "
            "0 times infinity. Use scores.masked_fill(~mask, float('-inf')).",
        ),
        Mistake(
            "zero-for-minus-infinity",
            through(filled(0.0)),
            leaks("Hidden scores become 0 (or 1e-9) and e⁰ = 1: hide with -inf."),
        ),
        *(
            Mistake("fill-not-small-enough", through(filled(value)), SMALL_FILL)
            for value in (-1e4, -1e3, -100.0)
        ),
        Mistake(
            "mask-after-softmax",
            through(late),
            leaks(
                "The mask comes after the softmax, which has divided by the future "
                "scores already: hide the scores before it."
            ),
        ),
        Mistake("renormalised-after", through(renormalised), RENORMALISED),
        Mistake("renormalised-after", through(without_nan(renormalised)), RENORMALISED),
        Mistake(
            "mask-added",
            through(lambda s, m: torch.softmax(s + in_numbers(m), -1)),
            leaks(
                "The mask is added as 1 and 0, which blocks nothing: a float mask "
                "is additive, give a boolean one or fill with -inf."
            ),
        ),
        Mistake(
            "mask-not-sliced",
            unsliced,
            lambda e: (
                f"A sentence of {e.args[1].shape[1]} tokens fails, one of the full "
                f"{e.args[0].build[2]} works: slice the mask to the tokens at hand, "
                "mask[:T, :T] with T = x.shape[1]."
            ),
        ),
        *(
            Mistake(
                f"mask-sliced-by-{name}",
                sliced_by(axis),
                f"The mask is cut to the {name} of x: in x (B, T, d_in) the number of "
                "tokens is x.shape[1].",
            )
            for axis, name in ((0, "batch"), (2, "width"))
        ),
        *(
            Mistake(
                "mask-too-small",
                mask_of_size(which),
                f"Sentences of more than {name} tokens fail: the side of the mask is "
                f"context_length, not {name}.",
            )
            for which, name in enumerate(("d_in", "d_out"))
        ),
        Mistake(
            "mask-too-small",
            full_length_fails,
            "Sentences of the full context_length fail: the mask is made one too "
            "small, or forward overwrites self.mask with its slice for the sentence "
            "before. Keep self.mask whole and give the slice a name of its own.",
        ),
        Mistake(
            "batch-joined",
            batch_joined,
            "The sentences of a batch see each other, as one long text: keep the batch "
            "axis, and matmul works on each sentence alone.",
        ),
        Mistake(
            "softmax-over-batch",
            over_batch,
            "The softmax runs over the sentences of the batch (dim=0, or no `dim`): "
            "use dim=-1, the keys.",
        ),
        Mistake(
            "softmax-over-queries",
            through(filled(-INF, -2)),
            "The softmax runs over the queries, so later queries push the weights of "
            "earlier ones: use dim=-1, the keys.",
        ),
        *several(
            "softmax-missing",
            "The scores, hidden or not, meet the values as they are: a softmax over "
            "the keys comes in between.",
            through(lambda s, m: s * m),
            through(lambda s, m: s.masked_fill(~m, -INF)),
        ),
        scaled_by(
            "scale-missing",
            lambda w, x: 1.0,
            lambda e: (
                f"The scores are not divided by √d_out = √{e.args[0].build[1]}: the "
                "weights are too peaked."
            ),
        ),
        scaled_by(
            "divided-by-width",
            lambda w, x: 1 / w.build[1],
            lambda e: (
                f"The scores are divided by d_out = {e.args[0].build[1]}, not by its "
                "square root: the weights are too even."
            ),
        ),
        scaled_by(
            "scale-multiplied",
            lambda w, x: w.build[1] ** 0.5,
            lambda e: (
                f"The scores are multiplied by √d_out = √{e.args[0].build[1]} where "
                "they should be divided by it."
            ),
        ),
        *(
            scaled_by(
                slug,
                lambda w, x, size=size: size(w, x) ** -0.5,
                lambda e, name=name, size=size: (
                    f"The scores are divided by √{name} = √{size(*e.args)}: the width "
                    f"of queries and keys counts, d_out = {e.args[0].build[1]}."
                ),
            )
            for slug, name, size in (
                ("scale-of-input-width", "d_in", lambda w, x: w.build[0]),
                ("scale-of-tokens", "T", lambda w, x: x.shape[1]),
                ("scale-of-context-length", "context_length", lambda w, x: w.build[2]),
                ("scale-of-batch", "B", lambda w, x: x.shape[0]),
            )
        ),
        Mistake(
            "scale-after-softmax",
            scale_after,
            "The division by √d_out comes after the softmax: divide the scores.",
        ),
        Mistake(
            "keys-times-queries",
            keys_first,
            "The scores are K Qᵀ instead of Q Kᵀ: row i belongs to query i, so the "
            "queries come first.",
        ),
        Mistake(
            "transpose-of-all-axes",
            dot_t,
            "`.T` turns round all axes of a tensor, the batch too: transpose the last "
            "two alone, key.transpose(-2, -1).",
        ),
        Mistake(
            "fixed-axes",
            swapped_axes,
            "transpose(0, 1) moves the batch: the last two axes are meant, "
            "key.transpose(-2, -1).",
        ),
        Mistake(
            "values-not-projected",
            from_parts(lambda x, query, key, value: (query, key, x)),
            "The weights are right, but they average x itself: average the values, "
            "W_value(x).",
        ),
        Mistake(
            "keys-for-values",
            from_parts(lambda x, query, key, value: (query, key, key)),
            "The weights are right, but they average the keys: average the values, "
            "W_value(x).",
        ),
        Mistake(
            "queries-for-keys",
            from_parts(lambda x, query, key, value: (query, query, value)),
            "The queries meet themselves: the scores are Q Kᵀ, and W_key is not used.",
        ),
        Mistake(
            "keys-for-queries",
            from_parts(lambda x, query, key, value: (key, key, value)),
            "The keys meet themselves: the scores are Q Kᵀ, and W_query is not used.",
        ),
        Mistake(
            "keys-and-values-exchanged",
            from_parts(lambda x, query, key, value: (query, value, key)),
            "W_key makes the values and W_value the keys: exchange the two.",
        ),
        Mistake(
            "no-attention",
            lambda weights, x: project(weights, x)[2],
            "The output is W_value(x): the weights are not used.",
        ),
        Mistake(
            "weights-returned",
            lambda weights, x: right_softmax(*parts_of(weights, x)[::2]),
            "These are the weights (B, T, T): multiply them with the values.",
        ),
        Mistake(
            "softmax-twice",
            through(lambda s, m: torch.softmax(right_softmax(s, m), -1)),
            leaks("The softmax is taken twice: the second lets hidden tokens in."),
        ),
        Mistake(
            "last-token-only",
            lambda weights, x: attend_to(*project(weights, x))[:, -1],
            "This is the output of the last token alone: every token gets one.",
        ),
        Mistake(
            "uniform-weights",
            through(lambda s, m: m / m.sum(-1, keepdim=True)),
            "Every token averages its past evenly: the scores play no part.",
        ),
    ],
)

EXERCISES = [mask, masked_softmax, padding, dropout, causal_attention]
