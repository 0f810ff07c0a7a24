"""What goes wrong when parts of a softmax are joined: slices of keys, or of machines.

A part knows, for each query, the maximum that its exponentials are counted from, their
sum, and its output, the values weighted with them and not divided yet. The parts come
first: `maxima` and `sums` are (P, …, T, 1), `outputs` (P, …, T, d_v).
"""

from utils.checks.definition import Mistake

JOIN = [
    Mistake("outputs-not-rescaled", "You rescaled the denominators but not the accumulators: multiply both by the same factors.", "joined = outputs.sum(0)"),
    Mistake("sums-not-rescaled", "You rescaled the accumulators but not the denominators, by which they are divided: multiply both by the same factors.", "total = sums.sum(0)"),
    Mistake("rescaled-inversely", "You multiplied by exp(new − old), so what came before grows, or is NaN from the start at −∞: the factor is exp(old − new).", "factors = torch.exp(top - maxima)", "factors = torch.exp(top - maxima).masked_fill(sums == 0, 0.0)"),
    Mistake("nothing-rescaled", "You added accumulators and denominators that count from different maxima: multiply both by exp(their maximum − the largest).", "factors = torch.ones_like(maxima)"),
]  # fmt: skip
