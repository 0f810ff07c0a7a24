"""Exercises of the notebook on several machines: an MLP cut, parts joined."""

import torch
from torch.nn import functional as F

from utils import parallel
from utils.checks.definition import Case, Exercise, Mistake, draw
from utils.checks.shared import JOIN


def mlp(rank, count, size, width, *shape, **settings):
    """Return a case with `size` hidden units per process and inputs (*shape, width)."""
    hidden = size * count
    first = draw(hidden, width, seed=1), draw(hidden, seed=2)
    second = draw(width, hidden, seed=3), draw(width, seed=4)
    return Case(draw(*shape, width), *first, *second, rank, count, **settings)


def mlp_part(x, W_1, b_1, W_2, b_2, rank, count):
    size = len(W_1) // count
    own = slice(rank * size, (rank + 1) * size)
    first_bias = b_1[own]
    hidden = x @ W_1[own].mT + first_bias
    active = F.gelu(hidden)
    part = active @ W_2[:, own].mT
    second_bias = b_2 if rank == 0 else 0.0
    return part + second_bias


exercise_16_1 = Exercise(
    id="16.1",
    right=mlp_part,
    course=parallel.mlp_part,
    smallest_inputs={"rank": 0, "count": 1},
    returns="what this process adds to the output (..., T, D)",
    cases=[
        mlp(0, 2, 5, 3, 7),
        mlp(1, 2, 5, 3, 7),
        mlp(2, 3, 7, 2, 5, note="the last of three processes"),
        mlp(1, 3, 2, 5, 2, 3, note="two sentences"),
        mlp(0, 1, 7, 2, 3, note="one process does it all"),
    ],
    mistakes=[
        Mistake("rows-of-W_2", "You took rows of W_2: it is (D, U), so this process has some of its columns, W_2.chunk(count, dim=1)[rank].", "part = active @ W_2[own].mT", "part = active @ W_2.chunk(count)[rank].mT"),
        Mistake("bias-in-each-part", "You added b_2 in every process, so the sum would hold it {count} times: add it in process 0 only.", "second_bias = b_2"),
        Mistake("second-bias-missing", "b_2 is missing: process 0 should add it to its part.", "second_bias = 0.0"),
        Mistake("first-bias-missing", "b_1 is missing: each hidden unit of this process needs its own entry of b_1.", "first_bias = 0.0"),
        Mistake("activation-missing", "You left out the activation function: apply F.gelu between the two matrices.", "active = hidden"),
    ],
)  # fmt: skip


def finite(top):
    """Replace a maximum of -inf by 0, so that nothing is subtracted from -inf."""
    return top.masked_fill(top == -torch.inf, 0.0)


def parts(scores, values, cuts, *hidden, **settings):
    """Return a case whose keys are split into parts of these sizes.

    `hidden` are keys that a token may not see: (token, slice of the keys).
    """
    scores, case_parts = scores.double(), []
    for place in hidden:
        scores[place] = -torch.inf
    for s, v in zip(scores.split(cuts, 1), values.double().split(cuts)):
        maxima = s.amax(1)
        weights = torch.exp(s - finite(maxima)[:, None])
        case_parts.append((weights @ v, maxima, weights.sum(1)))
    return Case(*(torch.stack(part).float() for part in zip(*case_parts)), **settings)


def draw_case(num_tokens, width, cuts, *hidden, scale=1.0, shift=0.0, **settings):
    """Return such a case with random scores and values."""
    scores = draw(num_tokens, sum(cuts), scale=scale, shift=shift)
    return parts(scores, draw(sum(cuts), width, seed=1), cuts, *hidden, **settings)


FORMS = [
    Mistake("mean-for-sum", "You took a mean over the parts, of the accumulators or of the denominators: add them up over the first axis.", "joined = (factors * outputs).mean(0)", "total = (factors * sums).mean(0)", "joined = (factors * outputs).mean(0); total = (factors * sums).mean(0)"),
    Mistake("divided", "You divided the accumulator by the denominator: return it undivided, so that more parts can follow.", "joined = (factors * outputs).sum(0) / total", "joined = ((factors * outputs).sum(0) / total).nan_to_num()"),
    Mistake("maximum-not-subtracted", "You used exp(maximum), which overflows or vanishes for scores far from 0: subtract the largest maximum first.", "base = 0.0", "base = 0.0; maximum = torch.zeros_like(top[..., 0])"),
    Mistake("empty-row-nan", "You get NaN for a token with nothing to attend to in any part, from −∞ − (−∞): subtract 0 there.", "base = top"),
    Mistake("maximum-made-finite", "You returned the maximum 0 for a token with nothing to attend to in any part: return −∞, from which only the factors need 0.", "maximum = base[..., 0]"),
    Mistake("maximum-of-each-part", "You took the maximum over the tokens of each part: take it over the parts, for each token, maxima.amax(dim=0).", "top = maxima.amax(1, keepdim=True)"),
]  # fmt: skip

THREE_KEYS = torch.tensor([[1.0, 2, 4]]).log(), torch.tensor([[6.0], [12], [3]])
FIRST, BOTH = (0, slice(2)), [(0, slice(2, 6)), (1, slice(4, 6))]


def combine_partial_attention(accumulators, maxima, denominators):
    outputs, sums = accumulators, denominators[..., None]
    maxima = maxima[..., None]
    top = maxima.amax(0)
    base = finite(top)  # from which all exponentials count in the end
    factors = torch.exp(maxima - base)
    total = (factors * sums).sum(0)
    joined = (factors * outputs).sum(0)
    maximum = top.squeeze(-1)
    return joined, maximum, total.squeeze(-1)


exercise_16_2 = Exercise(
    id="16.2",
    right=combine_partial_attention,
    course=parallel.combine_partial_attention,
    returns="the accumulators (T, d_v), maxima (T,) and denominators (T,) over the keys of all parts together",
    parts=("accumulators", "maxima", "denominators"),
    cases=[
        parts(*THREE_KEYS, [2, 1], note="the three keys of the notebook on speed"),
        draw_case(5, 2, [2, 4, 1], scale=2.0),
        draw_case(3, 3, [2, 1, 2], scale=2.0, note="P, T and d_v are equal"),
        draw_case(2, 5, [3], note="one part"),
        draw_case(3, 2, [2, 2, 2], *BOTH, note="parts without a key for token 0 or 1"),
        draw_case(2, 3, [2, 3], (0, slice(5)), note="token 0 may see nothing at all"),
        draw_case(3, 2, [2, 2, 1], scale=300.0, note="large scores"),
        draw_case(3, 2, [2, 2], FIRST, shift=-900.0, note="very low scores"),
    ],
    mistakes=FORMS + JOIN,
)
