"""What goes wrong with a mask: which places it allows, how scores are hidden by it.

The right way: `mask` is True where a query may attend, `hide` fills the other scores
with -inf, and `clear` sees to rows in which nothing is allowed, where there are any.
"""

from dataclasses import replace

from utils.checks.attention_steps import INF, allowed, fill, lower, triangle, zeroed
from utils.checks.steps import Forms, form, texts_of

TEXTS = texts_of(__file__)


def left_alone(s):
    return s.scores


def uncleared(s):
    return s.soft


# --- which places a causal mask allows -----------------------------------------------


def without_zeros(forms, step="hide"):
    """Return the same of answers that do not look after rows of nothing either."""
    return [
        replace(one, ways=one.ways | {"clear": uncleared})
        for one in forms
        if [*one.ways] == [step]
    ]


UNUSED = form(
    "mask-not-used",
    "Token 0 gives {future} of its weight to later tokens: no mask reaches the "
    "scores. masked_fill returns a new tensor, so keep its result: scores = "
    "scores.masked_fill(…).",
    hide=left_alone,
)
CAUSAL = Forms(TEXTS["CAUSAL"])
CAUSAL.append(UNUSED)
CAUSAL.wrong("diagonal-masked", mask=lambda s: lower(*s.scores.shape[-2:], diagonal=-1))
CAUSAL.wrong("one-step-leaked", mask=lambda s: lower(*s.scores.shape[-2:], diagonal=1))
CAUSAL.wrong("upper-for-lower", mask=lambda s: triangle(s).mT)
CAUSAL.wrong("polarity-inverted", mask=lambda s: ~triangle(s))
CAUSAL.wrong("first-row-alone", mask=lambda s: triangle(s)[:1])
CAUSAL.wrong("window-alone", mask=lambda s: triangle(s).triu(-1))
CAUSAL.wrong("window-alone 2", mask=lambda s: triangle(s).triu(-2))


def cut(slug, pick, text):
    """Return the form whose mask is cut to another number of tokens.

    Where the sizes do not fit, it fails in the words of any way to apply a mask.
    """

    def mask(s):
        made = lower(s.learned.build[2])[: pick(s), : pick(s)]
        num_tokens = s.scores.shape[-1]
        if made.shape[-1] not in (1, num_tokens):
            raise RuntimeError("must match the" if num_tokens > 1 else "")
        return made

    return form(slug, text, mask=mask)


def too_small(which, name):
    """Return the form whose mask has another argument of the class for its side."""

    def mask(s):
        if s.scores.shape[-1] > s.learned.build[which]:
            raise RuntimeError("must match the")
        return triangle(s)

    return form(
        "mask-too-small",
        f"Sentences of more than {name} tokens fail: the side of the mask is "
        f"context_length, not {name}.",
        mask=mask,
    )


def full_length_fails(s):
    if s.scores.shape[-1] == s.learned.build[2]:
        raise RuntimeError("must match the")
    return triangle(s)


CUT = [
    cut(
        "mask-not-sliced",
        lambda s: s.learned.build[2],
        "The mask is made for context_length = {context_length} tokens and x has {T}: "
        "cut both axes of it in forward, mask[:T, :T] with T = x.shape[1].",
    ),
    cut(
        "mask-sliced-by-batch",
        lambda s: s.x.shape[0],
        "The mask is cut to {B} tokens, which is the size of the batch: in x (B, T, "
        "d_in) the number of tokens is x.shape[1] = {T}.",
    ),
    cut(
        "mask-sliced-by-width",
        lambda s: s.x.shape[2],
        "The mask is cut to the width of x: in x (B, T, d_in) the number of tokens is "
        "x.shape[1] = {T}.",
    ),
    cut(
        "mask-sliced-by-heads",
        lambda s: s.learned.build[-1],
        "The mask is cut to the number of heads; x has {T} tokens. Scores are (B, H, "
        "T, T): cut mask[:T, :T].",
    ),
    too_small(0, "d_in"),
    too_small(1, "d_out"),
    form(
        "mask-too-small",
        "Sentences of the full context_length fail: the mask is made one too small, "
        "or forward overwrites self.mask with its slice for the sentence before. Keep "
        "self.mask whole and give the slice a name of its own.",
        mask=full_length_fails,
    ),
]
OF_BUILD = {
    "context_length": lambda s: s.learned.build[2],
    "B": lambda s: s.x.shape[0],
}


# --- how the scores are hidden -------------------------------------------------------


def where_masked(way):
    """Return the step that leaves the scores alone where there is no mask."""
    return lambda s: s.scores if s.mask is None else way(s)


def infinity_times(s):
    return s.scores + (~s.mask).to(s.scores.dtype) * -INF


def masked_late(s):
    return s.soft * allowed(s)


def renormalised(s, at_least=0.0):
    made = s.soft * allowed(s)
    return made / made.sum(-1, keepdim=True).clamp(at_least)


def selected_exps(s):
    return s.shifted.exp().masked_fill(~s.mask, 0.0)


RENORMALISED = (
    "The mask comes after the softmax and the rows are divided by what is left. With "
    "nothing allowed, or a hidden score far above the others, 0 is left, and 0/0 is "
    "no weight. Hide the scores before the softmax."
)
SMALL_FILL = (
    "The number put in for hidden scores is not small enough: allowed scores below it "
    "lose to the hidden ones. Use float('-inf'), which is below every score."
)
MINUS_1E9 = (
    "-1e9 does not fit into float16, whose smallest number is -65504; float('-inf') "
    "exists in every precision."
)
ZERO_FILL = (
    "A hidden score becomes 0 (or 1e-9), and e⁰ = 1 is a share like others: hidden "
    "places take {leak} of a row. Hide with -inf, before the softmax."
)
LARGE_FILLS, SMALL_FILLS = (
    [
        form(
            "fill-not-small-enough",
            SMALL_FILL,
            hide=lambda s, value=value: fill(s, value),
        )
        for value in values
    ]
    for values in ((-1e4, -1e3, -100.0), (-10.0, -1.0))
)
HIDE = Forms(TEXTS["HIDE"])
HIDE.wrong("zero-times-infinity", hide=where_masked(infinity_times))
HIDE.wrong("zero-for-minus-infinity", hide=lambda s: fill(s, 0.0))
HIDE.extend(LARGE_FILLS)
HIDE.extend(SMALL_FILLS)
HIDE.extend(
    form(
        "mask-added",
        "The mask is added to the scores as 1 and 0, which hides nothing: hidden "
        "places get up to {leak}. Use scores.masked_fill(~mask, float('-inf')).",
        hide=where_masked(added),
    )
    for added in (
        lambda s: s.scores + s.mask.float(),
        lambda s: s.scores + s.mask,
        lambda s: s.scores + ~s.mask,
    )
)
HIDE.wrong("mask-filled-with-plus", hide=lambda s: fill(s, 1e9))
HIDE.wrong("infinite-weights", hide=lambda s: fill(s, INF))
HIDE.wrong(
    "infinite-weights 2",
    hide=left_alone,
    clear=lambda s: s.soft if s.mask is None else s.soft.masked_fill(~s.mask, -INF),
)
HIDE.wrong("mask-after-softmax", hide=left_alone, clear=masked_late)
HIDE.wrong("renormalised-after", hide=left_alone, clear=renormalised)
HIDE.wrong(
    "renormalised-after",
    hide=left_alone,
    clear=lambda s: renormalised(s).nan_to_num(0.0),
)
HIDE.wrong(
    "renormalised-after",
    hide=left_alone,
    clear=lambda s: masked_late(s) / masked_late(s).sum(-1, keepdim=True).clamp(1e-8),
)
HIDE.wrong("softmax-missing", hide=lambda s: fill(s, 0.0), divide=lambda s: s.hidden)
HIDE.wrong(
    "maximum-not-subtracted",
    hide=left_alone,
    shift=lambda s: s.hidden,
    exp=lambda s: s.shifted.exp() * allowed(s),
)
HIDE.wrong(
    "maximum-not-subtracted",
    hide=left_alone,
    shift=lambda s: s.hidden,
    exp=lambda s: s.shifted.exp() if s.mask is None else selected_exps(s),
)
# Right as well, but a mistake beside them gives something else.
HARMLESS = Forms()
HARMLESS.also(hide=lambda s: fill(s, -1e9))
HARMLESS.also(clear=lambda s: s.soft.nan_to_num(0.0))
HARMLESS.also(clear=zeroed)
