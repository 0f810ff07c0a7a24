"""What goes wrong with a mask: which places it allows, how scores are hidden by it.

The right way: `mask` is True where a query may attend, `hide` fills the other scores
with -inf, and `clear` sees to rows in which nothing is allowed, where there are any.
"""

from dataclasses import replace

from utils.checks import attention_steps as of_attention
from utils.checks.attention_steps import INF, allowed, fill, lower, size, triangle
from utils.checks.steps import Forms, texts_of

TEXTS = texts_of(__file__)


def left_alone(s):
    return s.scores


def uncleared(s):
    return s.soft


# --- which places a causal mask allows -----------------------------------------------


def without_zeros(forms):
    """Return the same of answers that do not look after rows of nothing either."""
    return [
        replace(one, ways=one.ways | {"clear": uncleared})
        for one in forms
        if "hide" in one.ways and "clear" not in one.ways
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


def cut(count=lambda s: s.x.shape[1], side=lambda build: build[2]):
    """Return the mask made with a side, then cut to a number of tokens.

    Where the sizes do not fit, it fails in the words of any way to apply a mask.
    """

    def mask(s):
        made = lower(side(s.learned.build))[: count(s), : count(s)]
        num_tokens = s.scores.shape[-1]
        if made.shape[-1] not in (1, num_tokens):
            raise RuntimeError("must match the" if num_tokens > 1 else "")
        return made

    return mask


CUT = Forms(TEXTS["CUT"])
CUT.wrong("mask-not-sliced", mask=cut(lambda s: s.learned.build[2]))
CUT.wrong("mask-sliced-by-batch", mask=cut(lambda s: s.x.shape[0]))
CUT.wrong("mask-sliced-by-width", mask=cut(lambda s: s.x.shape[2]))
CUT.wrong("mask-sliced-by-heads", mask=cut(lambda s: s.learned.build[-1]))
CUT.wrong("mask-too-small", {"side": "d_in"}, mask=cut(side=lambda build: build[0]))
CUT.wrong("mask-too-small", {"side": "d_out"}, mask=cut(side=lambda build: build[1]))
CUT.wrong("mask-too-small 2", mask=cut(side=lambda build: build[2] - 1))
OF_BUILD = {"context_length": lambda s: s.learned.build[2], "B": lambda s: len(s.x)}
SIZES = [
    size("scale-of-input-width", "d_in", lambda s: s.learned.build[0]),
    size("scale-of-tokens", "T", lambda s: s.x.shape[1]),
    size("scale-of-context-length", "context_length", OF_BUILD["context_length"]),
    size("scale-of-batch", "B", OF_BUILD["B"]),
]


# --- how the scores are hidden -------------------------------------------------------


def after(clear):
    """Return the steps that hide no score and see to the weights instead."""
    return {"hide": left_alone, "clear": clear}


def masked_late(s):
    return s.soft * allowed(s)


def renormalised(s, at_least=0.0):
    return masked_late(s) / masked_late(s).sum(-1, keepdim=True).clamp(at_least)


HIDE = Forms(TEXTS["HIDE"])
HIDE.wrong(
    "zero-times-infinity",
    hide=lambda s: s.scores if s.mask is None else s.scores + ~s.mask * -INF,
)
HIDE.wrong("zero-for-minus-infinity", hide=lambda s: fill(s, 0.0))
for value in (-1e4, -1e3, -100.0, -10.0, -1.0):
    HIDE.wrong("fill-not-small-enough", hide=lambda s, value=value: fill(s, value))
LARGE_FILLS = HIDE[-5:-2]
HIDE.wrong("mask-added", hide=lambda s: s.scores + allowed(s))
HIDE.wrong("mask-added", hide=lambda s: s.scores - allowed(s))
HIDE.wrong("mask-filled-with-plus", hide=lambda s: fill(s, 1e9))
HIDE.wrong("infinite-weights", hide=lambda s: fill(s, INF))
HIDE.wrong("infinite-weights 2", **after(lambda s: fill(s, -INF, of=s.soft)))
HIDE.wrong("mask-after-softmax", **after(masked_late))
HIDE.wrong("renormalised-after", **after(renormalised))
HIDE.wrong("renormalised-after", **after(lambda s: renormalised(s).nan_to_num(0.0)))
HIDE.wrong("renormalised-after", **after(lambda s: renormalised(s, at_least=1e-8)))
HIDE.wrong("softmax-missing", hide=lambda s: fill(s, 0.0), divide=lambda s: s.hidden)
RAW = of_attention.UNSHIFTED | {"hide": left_alone}
HIDE.wrong("maximum-not-subtracted", **RAW, exp=lambda s: s.hidden.exp() * allowed(s))
HIDE.wrong("maximum-not-subtracted", **RAW, exp=lambda s: fill(s, 0, of=s.hidden.exp()))
# Right as well, but a mistake beside them gives something else.
HARMLESS = Forms()
HARMLESS.also(hide=lambda s: fill(s, -1e9))
HARMLESS.also(clear=lambda s: s.soft.nan_to_num(0.0))
HARMLESS.also(clear=lambda s: fill(s, 0.0, of=s.soft))
