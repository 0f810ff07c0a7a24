"""Exercise of notebook 13: parts of an attention, joined into the whole."""

import torch

from utils.checks.draw import draws
from utils.checks.engine import Exercise, Mistake, case

draw = draws(13)


# --- 13.1 -------------------------------------------------------------------------


def right_merge(outputs, maxima, sums):
    outputs, maxima, sums = outputs.double(), maxima.double(), sums.double()
    logs = maxima + sums.log()  # of each part's sum of exponentials, (P, T)
    shares = torch.softmax(logs, dim=0).nan_to_num()[..., None]
    each = (outputs / sums[..., None]).nan_to_num()  # normalised; nothing is zero
    return (shares * each).sum(0).float()


def attended(scores, values, cuts):
    """Return the case of attention that is cut into parts with so many keys each."""
    parts = []
    for s, v in zip(scores.double().split(cuts, 1), values.double().split(cuts)):
        maxima = s.amax(1)
        weights = torch.exp(s - maxima.nan_to_num(neginf=0.0)[:, None])
        parts.append((weights @ v, maxima, weights.sum(1)))
    return tuple(torch.stack(part).float() for part in zip(*parts))


def hidden(scores, *places):
    """Return the scores with some keys (columns) hidden from some queries (rows)."""
    scores = scores.clone()
    for row, columns in places:
        scores[row, columns] = float("-inf")
    return scores


def largest(maxima):
    return maxima.amax(0)


def counted_from_zero(top):
    """Replace a maximum of -inf by 0, so that nothing is subtracted from -inf."""
    return top.masked_fill(top == float("-inf"), 0.0)


def merge(
    *,
    outputs=True,
    sums=True,
    divide=True,
    top=largest,
    factor=lambda maxima, top: torch.exp(maxima - top),
    of_part=lambda outputs, sums: outputs,
    of_sum=lambda sums: sums,
    safe=counted_from_zero,
    filled=True,
):
    """Return a merge with something changed."""

    def compute(outputs_of, maxima, sums_of):
        o, m, s = outputs_of, maxima, sums_of  # in their precision: exp may overflow
        f = factor(m, safe(top(m)))
        total = ((f if sums else 1) * of_sum(s)).sum(0)
        joined = ((f[..., None] if outputs else 1) * of_part(o, s)).sum(0)
        if divide:
            joined = joined / total[..., None]
        if divide and filled:
            joined = joined.masked_fill((s == 0).all(0)[..., None], 0.0)
        return joined

    return compute


def both(**changes):
    """Return a merge with a mistake, where empty rows are zero and where they are not.

    A reader who makes one mistake may well have forgotten the empty rows, too.
    """
    careless = merge(**{"safe": lambda top: top, "filled": False} | changes)
    return merge(**changes), merge(**changes, filled=False), careless


def named(slug, computes, text):
    return [Mistake(slug, compute, text) for compute in computes]


def normalised(outputs, sums):
    return outputs / sums[..., None]


def averaged(outputs, maxima, sums):
    return normalised(outputs, sums).mean(0)


def averaged_without_nothing(outputs, maxima, sums):
    return normalised(outputs, sums).nan_to_num().mean(0)


def added(outputs, maxima, sums):
    return normalised(outputs, sums).sum(0)


def added_without_nothing(outputs, maxima, sums):
    return normalised(outputs, sums).nan_to_num().sum(0)


def mean_of_the_unnormalised(outputs, maxima, sums):
    return outputs.mean(0)


def sum_of_the_unnormalised(outputs, maxima, sums):
    return outputs.sum(0)


def one_part(pick):
    def compute(outputs, maxima, sums):
        return normalised(outputs, sums)[pick]

    def without_nothing(outputs, maxima, sums):
        return normalised(outputs, sums).nan_to_num()[pick]

    return compute, without_nothing


def best_part(outputs, maxima, sums):
    """Take for each token the part with the largest maximum."""
    best = maxima.argmax(0)[None, :, None].expand(1, -1, outputs.shape[-1])
    return normalised(outputs, sums).gather(0, best)[0]


def best_part_without_nothing(outputs, maxima, sums):
    return best_part(outputs, maxima, sums).nan_to_num()


def not_added(outputs, maxima, sums):
    """Divide every part by the whole sum, and keep them apart."""
    factors = torch.exp(maxima - counted_from_zero(largest(maxima)))
    total = (factors * sums).sum(0)
    total = total.masked_fill(total == 0, 1.0)
    return factors[..., None] * outputs / total[..., None]


def leading_axis_left(outputs, maxima, sums):
    return right_merge(outputs, maxima, sums)[None]


def with_the_sums(outputs, maxima, sums):
    top = largest(maxima)
    total = (torch.exp(maxima - counted_from_zero(top)) * sums).sum(0)
    return right_merge(outputs, maxima, sums), top, total


def one_after_the_other(*, past=True, new=True):
    """Return a running merge that forgets to rescale one side."""

    def compute(outputs, maxima, sums):
        top = torch.full_like(maxima[0], float("-inf"))
        bottom, joined = torch.zeros_like(top), torch.zeros_like(outputs[0])
        for o, m, s in zip(outputs, maxima, sums):
            higher = torch.maximum(top, m)
            yardstick = counted_from_zero(higher)
            old = torch.exp(top - yardstick) if past else torch.ones_like(m)
            own = torch.exp(m - yardstick) if new else torch.ones_like(m)
            bottom = bottom * old + s * own
            joined = joined * old[:, None] + o * own[:, None]
            top = higher
        return joined / bottom.masked_fill(bottom == 0, 1.0)[:, None]

    return compute


def factors_of(maxima):
    return torch.exp(maxima - counted_from_zero(largest(maxima)))


def factors_without_axis(outputs, maxima, sums):
    factors = factors_of(maxima)
    total = (factors * sums).sum(0)
    return (factors * outputs).sum(0) / total[..., None]


def outputs_times_factors_without_axis(outputs, maxima, sums):
    factors = factors_of(maxima)
    total = (factors * sums).sum(0)
    return (outputs * factors).sum(0) / total[..., None]


def total_without_axis(fill):
    def compute(outputs, maxima, sums):
        factors = factors_of(maxima)
        total = (factors * sums).sum(0)
        if fill:
            total = total.masked_fill(total == 0, 1.0)
        return (factors[..., None] * outputs).sum(0) / total

    return compute


AXIS = (
    "The outputs have an axis more than the factors, the features: (P, T, d_v) "
    "against (P, T). Give the factors a last axis: factors[..., None]."
)
NOT_ALIKE = (
    "Every part counts alike here. A part counts as much as its sum of exponentials, "
    "measured from the maximum of all parts."
)
EMPTY = (
    "All is right but for a token with nothing to attend to in any part. There the "
    "maximum is −∞, and −∞ − (−∞) is NaN, as is 0 / 0: its output is zero."
)

ORDINARY = attended(draw(5, 7, scale=2.0), draw(7, 2), [2, 4, 1])

combine_partial_attention = Exercise(
    id="13.1",
    signature="combine_partial_attention(outputs, maxima, sums)",
    returns="the attention (T, d_v) over the keys of all parts together",
    oracle=right_merge,
    cases=[
        case(
            *attended(
                torch.tensor([[1.0, 2.0, 4.0]]).log(),
                torch.tensor([[6.0], [12.0], [3.0]]),
                [2, 1],
            ),
            note="the three keys of notebook 10",
        ),
        case(*ORDINARY),
        case(
            *attended(draw(3, 5, scale=2.0), draw(5, 3), [2, 1, 2]),
            note="P, T and d_v are equal",
        ),
        case(*attended(draw(3, 6), draw(6, 3), [1, 5]), note="T and d_v are equal"),
        case(*attended(draw(2, 3), draw(3, 5), [3]), note="one part"),
        case(
            *attended(
                hidden(draw(3, 6), (0, slice(2, 6)), (1, slice(4, 6))),
                draw(6, 2),
                [2, 2, 2],
            ),
            note="parts without a key that token 0 or token 1 may see",
        ),
        case(
            *attended(hidden(draw(2, 5), (0, slice(0, 5))), draw(5, 3), [2, 3]),
            note="token 0 may see nothing at all",
        ),
        case(
            *attended(draw(3, 5, scale=300.0, shift=500.0), draw(5, 2), [2, 2, 1]),
            note="large scores",
        ),
        case(
            *attended(draw(3, 4, shift=-900.0), draw(4, 2), [2, 2]),
            note="all scores very negative",
        ),
    ],
    mistakes=[
        Mistake(
            "sums-returned",
            with_the_sums,
            "The output is right, and more comes with it: return the output alone.",
        ),
        *named("empty-row-nan", [merge(safe=lambda top: top, filled=False)], EMPTY),
        *named("empty-row-nan", [merge(filled=False)], EMPTY),
        *named(
            "maxima-ignored",
            both(outputs=False, sums=False),
            "The outputs and the sums are added as they are. But each part has "
            "subtracted its own maximum: multiply both by exp(its maximum − the "
            "largest) first.",
        ),
        *named(
            "factor-inverted",
            both(factor=lambda m, top: torch.exp(top - m)),
            "The factor is exp(largest − own), so the part with the lowest scores "
            "counts most. It is exp(own − largest), at most 1.",
        ),
        *named(
            "outputs-without-factor",
            both(outputs=False),
            "The sums are rescaled and the outputs are not: both have subtracted the "
            "part's own maximum, so both need the factor.",
        ),
        *named(
            "sums-without-factor",
            both(sums=False),
            "The outputs are rescaled and the sums are not: both have subtracted the "
            "part's own maximum, so both need the factor.",
        ),
        *named("averaged", (averaged, averaged_without_nothing), NOT_ALIKE),
        *named(
            "parts-added",
            (added, added_without_nothing),
            "Each part is divided by its own sum, and the results are added: the "
            "weights of a token then sum to the number of parts. Divide once, at the "
            "end, by the sum of all.",
        ),
        Mistake(
            "unnormalised-averaged",
            mean_of_the_unnormalised,
            "This is the mean of the outputs, which nothing has divided yet. Rescale, "
            "add, and divide by the sum of all.",
        ),
        Mistake(
            "unnormalised-added",
            sum_of_the_unnormalised,
            "This is the sum of the outputs: they are neither rescaled nor divided.",
        ),
        *named(
            "not-divided",
            [merge(divide=False)],
            "The outputs are rescaled and added, and that is right. Divide by the "
            "rescaled sums, added up.",
        ),
        *named(
            "divided-twice",
            both(of_part=normalised),
            "Each part is divided by its own sum first, and then by the sum of all. "
            "Divide once, at the end.",
        ),
        Mistake(
            "divided-twice",
            merge(of_part=lambda o, s: normalised(o, s).nan_to_num()),
            "Each part is divided by its own sum first, and then by the sum of all. "
            "Divide once, at the end.",
        ),
        *named(
            "softmax-of-the-maxima",
            [
                *both(of_part=normalised, of_sum=torch.ones_like),
                merge(
                    of_part=lambda o, s: normalised(o, s).nan_to_num(),
                    of_sum=torch.ones_like,
                ),
            ],
            "The weights of the parts are a softmax of their maxima, so a part with "
            "many keys counts no more than a part with one. The weight of a part is "
            "its factor times its sum.",
        ),
        *named(
            "sums-ignored",
            both(of_sum=torch.ones_like),
            "The outputs are divided by the factors' sum: the sums of the parts are "
            "not used. Divide by factor times sum, added up.",
        ),
        *named(
            "outputs-taken-as-normalised",
            both(of_part=lambda o, s: s[..., None] * o),
            "The outputs are weighted with factor times sum, as if they had been "
            "divided by their sums. They have not: the factor alone is right for them.",
        ),
        *named(
            "weighted-by-the-sums",
            both(outputs=False, sums=False, of_part=lambda o, s: s[..., None] * o),
            "The outputs are weighted with the sums, and the maxima are not used. "
            "Each part's outputs and sums need the factor exp(own − largest maximum).",
        ),
        *named(
            "maximum-over-the-tokens",
            both(top=lambda m: m.amax(-1, keepdim=True)),
            "The maximum is taken over the tokens of each part. It is the largest of "
            "the parts for each token: maxima.amax(dim=0).",
        ),
        *named(
            "one-maximum-for-all",
            both(top=lambda m: m.amax()),
            "One maximum serves all tokens: where another token's scores are far "
            "larger, this token's factors all vanish. Use maxima.amax(dim=0).",
        ),
        *named(
            "maximum-missing",
            both(factor=lambda m, top: torch.exp(m)),
            "exp(maximum) overflows or vanishes for scores far from 0. Subtract the "
            "largest maximum of the parts first.",
        ),
        *named(
            "minimum-for-maximum",
            both(top=lambda m: m.amin(0)),
            "The smallest of the maxima is subtracted: then the factors grow without "
            "limit. Subtract the largest, maxima.amax(dim=0).",
        ),
        *named("first-part-alone", one_part(0), "This is the output of part 0 alone."),
        *named(
            "last-part-alone",
            one_part(-1),
            "This is the output of the last part alone: is the sum missing?",
        ),
        *named(
            "best-part-alone",
            (best_part, best_part_without_nothing),
            "For each token this is the output of the part with the largest maximum. "
            "The others count too, each with its factor.",
        ),
        Mistake(
            "past-not-rescaled",
            one_after_the_other(past=False),
            "Parts are joined one after the other, and what was joined before keeps "
            "its old maximum: multiply it by exp(old − new) when the maximum grows.",
        ),
        Mistake(
            "new-part-not-rescaled",
            one_after_the_other(new=False),
            "Parts are joined one after the other, and the new part counts from its "
            "own maximum: multiply it by exp(its maximum − the largest so far).",
        ),
        Mistake(
            "parts-not-added",
            not_added,
            "The parts are rescaled and divided rightly, and still apart: add them up "
            "over the first axis.",
        ),
        Mistake(
            "axis-left",
            leading_axis_left,
            "The numbers are right, with an axis of length 1 before them: sum over "
            "the parts without keepdim=True.",
        ),
        Mistake("axis-missing", factors_without_axis, AXIS),
        Mistake("axis-missing", outputs_times_factors_without_axis, AXIS),
        *named(
            "axis-missing-in-the-division",
            (total_without_axis(True), total_without_axis(False)),
            "The outputs (T, d_v) are divided by sums (T,): that divides features, "
            "not tokens, or fails. Give the sums a last axis: total[..., None].",
        ),
    ],
)

EXERCISES = [combine_partial_attention]
