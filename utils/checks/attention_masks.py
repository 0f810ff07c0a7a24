"""What goes wrong with a mask: which places it allows, how scores are hidden by it.

The right way: `mask` is True where a query may attend, `hide` fills the other scores
with -inf, and `clear` sees to rows in which nothing is allowed, where there are any.
"""

from dataclasses import replace

from utils.checks.attention_steps import INF, allowed, fill, lower, triangle, zeroed
from utils.checks.steps import Forms, texts_of

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


CAUSAL = Forms(TEXTS["CAUSAL"])
CAUSAL.wrong("mask-not-used", hide=left_alone)
CAUSAL.wrong("diagonal-masked", mask=lambda s: lower(*s.scores.shape[-2:], diagonal=-1))
CAUSAL.wrong("one-step-leaked", mask=lambda s: lower(*s.scores.shape[-2:], diagonal=1))
CAUSAL.wrong("upper-for-lower", mask=lambda s: triangle(s).mT)
CAUSAL.wrong("polarity-inverted", mask=lambda s: ~triangle(s))
CAUSAL.wrong("first-row-alone", mask=lambda s: triangle(s)[:1])
CAUSAL.wrong("window-alone", mask=lambda s: triangle(s).triu(-1))
CAUSAL.wrong("window-alone 2", mask=lambda s: triangle(s).triu(-2))


def cut(pick):
    """Return the mask cut to another number of tokens.

    Where the sizes do not fit, it fails in the words of any way to apply a mask.
    """

    def mask(s):
        made = lower(s.learned.build[2])[: pick(s), : pick(s)]
        num_tokens = s.scores.shape[-1]
        if made.shape[-1] not in (1, num_tokens):
            raise RuntimeError("must match the" if num_tokens > 1 else "")
        return made

    return mask


def failing(fails):
    """Return the mask that fails for these numbers of tokens."""

    def mask(s):
        if fails(s.scores.shape[-1], s.learned.build):
            raise RuntimeError("must match the")
        return triangle(s)

    return mask


CUT = Forms(TEXTS["CUT"])
CUT.wrong("mask-not-sliced", mask=cut(lambda s: s.learned.build[2]))
CUT.wrong("mask-sliced-by-batch", mask=cut(lambda s: s.x.shape[0]))
CUT.wrong("mask-sliced-by-width", mask=cut(lambda s: s.x.shape[2]))
CUT.wrong("mask-sliced-by-heads", mask=cut(lambda s: s.learned.build[-1]))
D_IN, D_OUT = {"side": "d_in"}, {"side": "d_out"}
CUT.wrong("mask-too-small", D_IN, mask=failing(lambda n, build: n > build[0]))
CUT.wrong("mask-too-small", D_OUT, mask=failing(lambda n, build: n > build[1]))
CUT.wrong("mask-too-small 2", mask=failing(lambda n, build: n == build[2]))
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


HIDE = Forms(TEXTS["HIDE"])
HIDE.wrong("zero-times-infinity", hide=where_masked(infinity_times))
HIDE.wrong("zero-for-minus-infinity", hide=lambda s: fill(s, 0.0))
for value in (-1e4, -1e3, -100.0, -10.0, -1.0):
    HIDE.wrong("fill-not-small-enough", hide=lambda s, value=value: fill(s, value))
LARGE_FILLS = HIDE[-5:-2]
for added in (
    lambda s: s.scores + s.mask.float(),
    lambda s: s.scores + s.mask,
    lambda s: s.scores + ~s.mask,
):
    HIDE.wrong("mask-added", hide=where_masked(added))
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
