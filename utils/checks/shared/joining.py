"""What goes wrong when parts of a softmax are joined: slices of keys, or of machines.

A part knows, for each query, the maximum that its exponentials are counted from, their
sum, and its output, the values weighted with them and not divided yet. The parts come
first: `maxima` and `sums` are (P, …, T, 1), `outputs` (P, …, T, d_v).
"""

JOIN = {
    "joined = outputs.sum(0)": "outputs-not-rescaled: You rescaled the denominators but not the accumulators: multiply both by the same factors.",
    "total = sums.sum(0)": "sums-not-rescaled: You rescaled the accumulators but not the denominators, by which they are divided: multiply both by the same factors.",
    "factors = torch.exp(top - maxima) OR factors = torch.exp(top - maxima).masked_fill(sums == 0, 0.0)": "rescaled-inversely: You multiplied by exp(new − old), so what came before grows, or is NaN from the start at −∞: the factor is exp(old − new).",
    "factors = torch.ones_like(maxima)": "nothing-rescaled: You added accumulators and denominators that count from different maxima: multiply both by exp(their maximum − the largest).",
}


def join_each(each):
    """Return the mistakes in which each part's own output counts, `each` in code."""
    return {
        f"divided = ({each}).mean(0)": "averaged: You averaged the parts as if all counted alike: weigh each part by its denominator, measured from the maximum of all.",
        f"divided = ({each})[-1]": "last-part-alone: You returned the last part only: add to accumulator and denominator instead of starting anew, and replace the old maximum at the end of each round.",
    }
