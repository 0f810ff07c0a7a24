"""What goes wrong with a mask: which positions it allows, how scores are hidden by it.

In the right answers `mask` is True where a query may attend, `hidden` are the scores
with -inf elsewhere, and `weights` are 0 in rows in which nothing is allowed.
"""

from utils.checks.definition import Diagnosis, Mistake

# Which positions a causal mask allows.
POSITIONS = [
    Mistake("diagonal-masked", "You hid each token from itself: it may see itself too.", "diagonal = columns - rows - 1"),
    Mistake("one-step-leaked", "You let each token see the next one: the last that a token may see is itself.", "diagonal = columns - rows + 1"),
    Mistake("upper-for-lower", "You allowed the upper triangle, each token and those after it: a token should see itself and those before it.", "mask = torch.ones(rows, columns).triu(diagonal) > 0"),
    Mistake("polarity-inverted", "You hid the past and showed the future: swap True and False. (Here True means that a key may be seen.)", "mask = torch.ones(rows, columns).triu(diagonal + 1) > 0"),
]  # fmt: skip
# In a layer, whose mask goes to masked_fill or to a function of the course. What needs other words here is left out by name, and added anew.
CAUSAL = [m for m in POSITIONS if m.name != "polarity-inverted"] + [
    Mistake("mask-not-used", "You let tokens see later ones, because no mask reaches your scores: hide the scores of later keys. (If you call masked_fill, use what it returns, a new tensor.)", "hidden = scores; weights = soft"),
    Mistake("masked-fill-inverted", "You hid the past and showed the future: swap True and False. (Here True means that a key may be seen, but masked_fill hides where it is given True.)", "mask = torch.ones(rows, columns).triu(diagonal + 1) > 0"),
    Mistake("mask-argument-inverted", "You hid the past and showed the future: swap True and False. (The mask of the course's function is True where a key may be seen.)", "mask = torch.ones(rows, columns).triu(diagonal + 1) > 0; weights = soft.masked_fill(~mask, 0.0)"),
]  # fmt: skip
OTHER_AXIS = Diagnosis("mask-of-another-axis", "Your mask has {rows} rows, but there are {x.shape[1]} tokens: take T from the axis before the last, T = q.shape[-2]. (len() and shape[0] count the sentences of the batch.)")  # fmt: skip
WHOLE = Diagnosis("mask-not-sliced", "You used the whole mask on a shorter input: cut it to mask[:T, :T], where T is the number of queries, q.shape[-2].")  # fmt: skip
CUT = [
    Mistake(*WHOLE, "rows, columns = [learned.build.context_length] * 2"),
    Mistake(*OTHER_AXIS, "rows, columns = len(x), len(x)"),
]  # fmt: skip

HIDE = [
    Mistake("zero-times-infinity", "You multiplied the mask by -inf, and 0 times infinity is NaN: put -inf at the hidden positions only, scores.masked_fill(~mask, float('-inf')).", "hidden = scores + ~mask * -torch.inf; weights = soft"),
    Mistake("zero-for-minus-infinity", "You set hidden scores to 0 (or 1e-9), but e⁰ = 1 is a share like any other, so hidden positions get a weight: use -inf, before the softmax.", "hidden = scores.masked_fill(~mask, 0.0); weights = soft"),
    Mistake("mask-added", "You added the mask to the scores as 1 and 0, so hidden positions get a weight: use scores.masked_fill(~mask, float('-inf')).", "hidden = scores + mask.float(); weights = soft"),
    Mistake("mask-after-softmax", "You masked after the softmax: the weights that stay don't sum to 1, and if a hidden score is far above theirs, they are all 0. Fill the scores with -inf before the softmax.", "hidden = scores; weights = soft * mask", "hidden = scores; weights = soft * mask / (soft * mask).sum(-1, keepdim=True).clamp(min=1e-30)"),
]  # fmt: skip
ZEROS = "such a row must be all zeros, so set hidden weights to 0 after the softmax."
EMPTY_ROWS = [
    Mistake("empty-row-nan", f"You get NaN where nothing may be attended to, because all scores are -inf: {ZEROS}", "weights = soft"),
    Mistake("empty-row-uniform", f"Your large negative number makes a row uniform where nothing may be attended to: {ZEROS}", "hidden = scores.masked_fill(~mask, -1e9); weights = soft"),
]  # fmt: skip
