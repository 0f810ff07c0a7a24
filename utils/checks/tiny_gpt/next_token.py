"""Exercise 9.2: next-token probabilities, by temperature and the k best."""

import torch

from utils.checks.draw import draws, rows_sum_to_one
from utils.checks.engine import Exercise, case
from utils.checks.steps import Forms, Pipeline, texts_of
from utils.checks.tiny_gpt import softmax

TEXTS = texts_of(__file__)
INF = torch.inf
draw = draws(92)


def right_probs(logits, temperature=1.0, top_k=None):
    best = logits.double().topk(top_k or logits.shape[-1], dim=-1)
    probs = torch.softmax(best.values / temperature, dim=-1)
    return torch.zeros(logits.shape).scatter(-1, best.indices, probs.float())


def start(logits, temperature=1.0, top_k=None):
    return {"logits": logits, "temperature": temperature, "top_k": top_k}


def everything(s):
    return torch.ones_like(s.taken, dtype=torch.bool)


def keep(choose):
    """Return the way that keeps what `choose(logits, k)` marks; without a k, all."""
    return lambda s: choose(s.taken, s.top_k) if s.top_k else everything(s)


def border(pick):
    """Return the way that keeps what is not below `pick(k largest of each row)`."""
    return keep(lambda x, k: x >= pick(x.topk(k).values))


def hide(fill):
    """Return the way that gives this logit to what is not kept."""
    return lambda s: s.taken.masked_fill(~s.kept, fill)


def late(change, fill=0.0):
    """Return the steps that cut probabilities, and then change what there is."""
    cut = {"cut": lambda s: s.taken}
    return cut | {"cleared": lambda s: change(s.cooled.masked_fill(~s.kept, fill))}


def largest_first(s):
    return s.cleared.sort(-1, descending=True).values


STEPS = {
    "taken": lambda s: s.logits,
    "kept": border(lambda best: best[..., -1:]),
    "cut": hide(-INF),
    "divisor": lambda s: s.temperature,
    "ready": lambda s: s.cut / s.divisor,
    **softmax.STEPS,
    "cooled": lambda s: s.probs,
    "cleared": lambda s: s.cooled,
    "result": lambda s: s.cleared,
}
UNDIVIDED = {"divisor": lambda s: 1}
FORMS = Forms(TEXTS["FORMS"])
wrong = FORMS.wrong
wrong("temperature-multiplied", divisor=lambda s: 1 / s.temperature)
wrong("temperature-ignored", **UNDIVIDED)
wrong(
    "temperature-after-softmax", **UNDIVIDED, cooled=lambda s: s.probs / s.temperature
)
wrong("temperature-in-a-branch", divisor=lambda s: s.temperature if s.top_k else 1)
wrong("temperature-in-a-branch 2", divisor=lambda s: 1 if s.top_k else s.temperature)
wrong("temperature-twice", divisor=lambda s: s.temperature**2)
wrong("logits-rounded", ready=lambda s: s.cut // s.divisor)
wrong("logits-rounded", **UNDIVIDED, taken=lambda s: s.logits // s.temperature)
wrong("k-smallest", kept=keep(lambda x, k: x <= x.kthvalue(k, -1, True).values))
wrong("best-left-out", kept=keep(lambda x, k: x < x.topk(k).values[..., -1:]))
wrong("best-left-out", kept=keep(lambda x, k: x <= x.topk(k).values[..., -1:]))
wrong("one-too-few", kept=keep(lambda x, k: x > x.topk(k).values[..., -1:]))
wrong(
    "one-too-many",
    kept=keep(lambda x, k: x >= x.topk(min(k + 1, x.shape[-1])).values[..., -1:]),
)
wrong("top-k-ignored", kept=everything)
wrong("first-k-tokens", kept=keep(lambda x, k: torch.ones_like(x).cumsum(-1) <= k))
wrong("one-threshold-for-all", kept=keep(lambda x, k: x >= x.flatten().topk(k)[0][-1]))
wrong("one-threshold-for-all 2", kept=border(lambda best: best.min()))
wrong("one-threshold-for-all 3", kept=border(lambda best: best[-1]))
wrong("topk-over-batch", kept=keep(lambda x, k: x >= x.topk(k, 0).values[-1:]))
wrong("keepdim-missing", kept=border(lambda best: best[..., -1]))
wrong("two-axes-only", kept=border(lambda best: best[:, -1:]))
wrong("two-axes-only 2", kept=border(lambda best: best[:, -1].unsqueeze(-1)))
wrong("zero-for-minus-inf", cut=hide(0.0))
wrong("finite-for-minus-inf", cut=hide(-10.0))
wrong("finite-for-minus-inf", cut=hide(-100.0))
wrong("finite-for-minus-inf", cut=lambda s: hide(s.taken.min())(s))
wrong("plus-infinity", cut=hide(INF))
wrong(
    "zero-times-infinity",
    cut=lambda s: s.taken + ~s.kept * -INF if s.top_k else s.taken,
)
wrong("not-renormalised", **late(lambda x: x))
wrong("softmax-twice", **late(lambda x: x.softmax(-1), fill=-INF))
wrong("softmax-twice 2", **late(lambda x: x.softmax(-1)))
wrong("keepdim-missing 2", **late(lambda x: x / x.sum(-1)))
wrong("sum-over-everything", **late(lambda x: x / x.sum()))
wrong("first-position-for-last", taken=lambda s: torch.atleast_2d(s.logits)[..., 0, :])
wrong("last-position-only", taken=lambda s: torch.atleast_2d(s.logits)[..., -1, :])
wrong("order-lost", result=largest_first)
wrong("order-lost", result=lambda s: largest_first(s) if s.top_k else s.cleared)
wrong(
    "only-k-returned",
    result=lambda s: largest_first(s)[..., : s.top_k] if s.top_k else s.cleared,
)
wrong("token-for-probabilities", result=lambda s: s.cleared.argmax(-1))
wrong("mask-for-probabilities", result=lambda s: s.cleared > 0)
wrong("integers-for-probabilities", result=lambda s: s.cleared.long())
wrong(
    "integers-for-probabilities 2",
    result=lambda s: s.cleared.argsort().scatter(-1, s.cleared.argsort(), s.cleared),
)
CUT_LATE = Forms()
CUT_LATE.also(**late(lambda x: x / x.sum(-1, keepdim=True)))


def as_many_as_k(evidence):
    """Property: of each row, k entries are above zero."""
    top_k = evidence.args[2] if len(evidence.args) > 2 else evidence.got.shape[-1]
    found = int((evidence.got != 0).sum(-1).max())
    text = TEXTS["PROPERTIES"]["as-many-as-k"]
    return text.format(found, top_k) if found > top_k else None


FIVE = torch.tensor([1.5, -0.5, 0.3, 2.0, -1.0])
next_token_probs = Exercise(
    id="9.2",
    signature="next_token_probs(logits, temperature=1.0, top_k=None)",
    returns="probabilities of the shape of the logits (…, V), zero outside the top k",
    oracle=right_probs,
    properties=[rows_sum_to_one(of="probabilities"), as_many_as_k],
    pipeline=Pipeline(
        start,
        STEPS,
        FORMS + softmax.SOFTMAX,
        harmless=CUT_LATE,
        words=softmax.WORDS,
    ),
    cases=[
        case(FIVE, 0.5),
        case(FIVE, 2.0, 2),
        case(torch.tensor([-1.5, -0.5, -2.3]), 1.0, 1, note="the best alone"),
        case(draw(5, 5, scale=2.0), 0.7, 3),
        case(draw(3, 7)),
        case(draw(2, 3, 11, scale=2.0), 1.6, 5),
        case(draw(2, 7) - softmax.LOW, 1.3, 3, note=softmax.LOW_ROW, special=True),
        case(draw(2, 7, scale=200.0), 0.5, 5, note="large logits", special=True),
        case(draw(2, 5), 1.0, 5, note="k is the whole vocabulary"),
    ],
)
