"""Exercises 9.2 and 9.3: how likely each next token is, among the best ones."""

import math

import torch

from utils.checks.draw import draws, rows_sum_to_one, said_sum
from utils.checks.engine import Exercise, case
from utils.checks.steps import Forms, Pipeline, texts_of

TEXTS = texts_of(__file__)
INF = torch.inf


# --- what both have: a softmax over the vocabulary, and what is returned -------------

SOFTMAX_STEPS = {  # from the logits `s.ready` to `s.probs`
    "dim": lambda s: -1,
    "shifted": lambda s: s.ready - s.ready.amax(s.dim, keepdim=True),
    "exps": lambda s: s.shifted.exp(),
    "total": lambda s: s.exps.sum(s.dim, keepdim=True),
    "probs": lambda s: s.exps / s.total,
}
BARE = {"shifted": lambda s: s.ready}

SOFTMAX = Forms(TEXTS["SOFTMAX"])
wrong = SOFTMAX.wrong
wrong("softmax-over-batch", dim=lambda s: 0)
wrong("axis-left-open", dim=lambda s: 0 if s.ready.dim() in (1, 3) else 1)
wrong("fixed-axis", dim=lambda s: 1)
wrong("softmax-over-everything", dim=lambda s: [*range(s.ready.dim())])
wrong("softmax-over-everything 2", total=lambda s: s.exps.sum())
wrong("softmax-over-everything 2", **BARE, total=lambda s: s.exps.sum())
wrong("overflow", **BARE)
wrong("global-maximum-subtracted", shifted=lambda s: s.ready - s.ready.max())
wrong("keepdim-missing", total=lambda s: s.exps.sum(s.dim))
wrong("keepdim-missing 2", shifted=lambda s: s.ready - s.ready.amax(s.dim))
wrong("not-normalised", **BARE, total=lambda s: 1)
wrong("not-normalised", total=lambda s: 1)
wrong("exponential-missing", **BARE, exps=lambda s: s.ready)
wrong("softmax-missing", probs=lambda s: s.ready)
wrong("sigmoid", probs=lambda s: s.ready.sigmoid())
wrong("logarithm", probs=lambda s: s.ready.log_softmax(s.dim))
wrong("softmax-twice", probs=lambda s: s.ready.softmax(s.dim).softmax(s.dim))

RETURN = Forms(TEXTS["RETURN"])
wrong = RETURN.wrong
wrong("logarithm", result=lambda s: s.final.log())
wrong("token-for-probabilities", result=lambda s: s.final.argmax(-1))
wrong("mask-for-probabilities", result=lambda s: s.final > 0)
wrong("integers-for-probabilities", result=lambda s: s.final.long())
wrong(
    "integers-for-probabilities 2",
    result=lambda s: s.final.argsort().scatter(-1, s.final.argsort(), s.final),
)


WORDS = {"sum": lambda s: said_sum(s.probs), "row_sum": lambda s: said_sum(s.result)}
SUMS_TO_ONE = rows_sum_to_one(of="probabilities")
LOW, LOW_ROW = torch.tensor([[300.0], [0.0]]), "a row of low logits"
FIVE = torch.tensor([1.5, -0.5, 0.3, 2.0, -1.0])


# --- 9.2: temperature and the k best -------------------------------------------------


def right_probs(logits, temperature=1.0, top_k=None):
    best = logits.double().topk(top_k or logits.shape[-1], dim=-1)
    probs = torch.softmax(best.values / temperature, dim=-1)
    return torch.zeros(logits.shape).scatter(-1, best.indices, probs.float())


def keep(choose):
    """Return the way that keeps what `choose(logits, k)` marks; without a k, all."""
    return lambda s: choose(s.read, s.k) if s.k else torch.ones_like(s.read).bool()


UNCOOLED = {"divisor": lambda s: 1}
LATE = {"cut": lambda s: s.read, "cleared": lambda s: s.cooled.where(s.kept, 0.0)}
TOP_K = Forms(TEXTS["TOP_K"])
wrong = TOP_K.wrong
wrong("temperature-multiplied", divisor=lambda s: 1 / s.temperature)
wrong("temperature-ignored", **UNCOOLED)
wrong("temperature-after-softmax", **UNCOOLED, cooled=lambda s: s.probs / s.temperature)
wrong("temperature-in-a-branch", divisor=lambda s: s.temperature if s.k else 1)
wrong("temperature-in-a-branch 2", divisor=lambda s: 1 if s.k else s.temperature)
wrong("temperature-twice", divisor=lambda s: s.temperature**2)
wrong("logits-rounded", ready=lambda s: s.cut // s.divisor)
wrong("logits-rounded", **UNCOOLED, read=lambda s: s.logits // s.temperature)
wrong("k-smallest", kept=keep(lambda x, k: x <= x.kthvalue(k, -1, True).values))
wrong("best-left-out", kept=keep(lambda x, k: x < x.topk(k)[0][..., -1:]))
wrong("best-left-out", kept=keep(lambda x, k: x <= x.topk(k)[0][..., -1:]))
wrong("one-too-few", kept=keep(lambda x, k: x > x.topk(k)[0][..., -1:]))
wrong("one-too-many", k=lambda s: s.k and min(s.k + 1, s.logits.shape[-1]))
wrong("top-k-ignored", k=lambda s: None)
wrong("first-k-tokens", kept=keep(lambda x, k: torch.ones_like(x).cumsum(-1) <= k))
wrong("one-threshold-for-all", kept=keep(lambda x, k: x >= x.flatten().topk(k)[0][-1]))
wrong("one-threshold-for-all 2", kept=keep(lambda x, k: x >= x.topk(k)[0].min()))
wrong("one-threshold-for-all 3", kept=keep(lambda x, k: x >= x.topk(k)[0][-1]))
wrong("topk-over-batch", kept=keep(lambda x, k: x >= x.topk(k, 0)[0][-1:]))
wrong("keepdim-missing", kept=keep(lambda x, k: x >= x.topk(k)[0][..., -1]))
wrong("two-axes-only", kept=keep(lambda x, k: x >= x.topk(k)[0][:, -1:]))
wrong("two-axes-only 2", kept=keep(lambda x, k: x >= x.topk(k)[0][:, -1].unsqueeze(-1)))
wrong("zero-for-minus-inf", fill=lambda s: 0.0)
wrong("finite-for-minus-inf", fill=lambda s: -10.0)
wrong("finite-for-minus-inf", fill=lambda s: -100.0)
wrong("finite-for-minus-inf", fill=lambda s: s.read.min())
wrong("plus-infinity", fill=lambda s: INF)
wrong("zero-times-infinity", cut=lambda s: s.read + ~s.kept * -INF if s.k else s.read)
wrong("not-renormalised", **LATE)
wrong("softmax-twice", **LATE, final=lambda s: s.cooled.where(s.kept, -INF).softmax(-1))
wrong("softmax-twice 2", **LATE, final=lambda s: s.cleared.softmax(-1))
wrong("keepdim-missing 2", **LATE, final=lambda s: s.cleared / s.cleared.sum(-1))
wrong("sum-over-everything", **LATE, final=lambda s: s.cleared / s.cleared.sum())
wrong("first-position-for-last", read=lambda s: torch.atleast_2d(s.logits)[..., 0, :])
wrong("last-position-only", read=lambda s: torch.atleast_2d(s.logits)[..., -1, :])
wrong("order-lost", result=lambda s: s.largest)
wrong("order-lost", result=lambda s: s.largest if s.k else s.final)
wrong("only-k-returned", result=lambda s: s.largest[..., : s.k] if s.k else s.final)
CUT_LATE = Forms()
CUT_LATE.also(**LATE, final=lambda s: s.cleared / s.cleared.sum(-1, keepdim=True))


def as_many_as_k(evidence):
    """Property: of each row, k entries are above zero."""
    top_k = evidence.args[2] if len(evidence.args) > 2 else evidence.got.shape[-1]
    found = int((evidence.got != 0).sum(-1).max())
    text = TEXTS["PROPERTIES"]["as-many-as-k"]
    return text.format(found, top_k) if found > top_k else None


draw = draws(92)
next_token_probs = Exercise(
    id="9.2",
    **TEXTS["9.2"],
    oracle=right_probs,
    properties=[SUMS_TO_ONE, as_many_as_k],
    pipeline=Pipeline(
        lambda logits, t=1.0, k=None: {"logits": logits, "temperature": t, "k": k},
        steps={
            "read": lambda s: s.logits,
            "k": lambda s: s.k,
            "kept": keep(lambda x, k: x >= x.topk(k)[0][..., -1:]),
            "fill": lambda s: -INF,
            "cut": lambda s: s.read.where(s.kept, s.fill),
            "divisor": lambda s: s.temperature,
            "ready": lambda s: s.cut / s.divisor,
            **SOFTMAX_STEPS,
            "cooled": lambda s: s.probs,
            "cleared": lambda s: s.cooled,
            "final": lambda s: s.cleared,
            "largest": lambda s: s.final.sort(-1, descending=True).values,
            "result": lambda s: s.final,
        },
        forms=TOP_K + RETURN + SOFTMAX,
        harmless=CUT_LATE,
        words=WORDS,
    ),
    cases=[
        case(FIVE, 0.5),
        case(FIVE, 2.0, 2),
        case(torch.tensor([-1.5, -0.5, -2.3]), 1.0, 1, note="the best alone"),
        case(draw(5, 5, scale=2.0), 0.7, 3),
        case(draw(3, 7)),
        case(draw(2, 3, 11, scale=2.0), 1.6, 5),
        case(draw(2, 7) - LOW, 1.3, 3, note=LOW_ROW, special=True),
        case(draw(2, 7, scale=200.0), 0.5, 5, note="large logits", special=True),
        case(draw(2, 5), 1.0, 5, note="k is the whole vocabulary"),
    ],
)


# --- 9.3: top-p, the fewest best tokens that hold a share p --------------------------


def right_top_p(logits, p):
    probs = torch.softmax(logits.double(), dim=-1)
    kept = probs.where((of_better(probs) < p) | (p == 1), 0.0)
    return (kept / kept.sum(-1, keepdim=True)).float()


def of_better(probs):
    """Return for each token how much those hold together that are likelier."""
    others = probs[..., None, :]
    return (others * (others > probs[..., None])).sum(-1)


def of_all_rows(s):
    """Mark, in the order of each row, the best tokens of all rows together."""
    kept = of_better(torch.softmax(s.ready.flatten(), 0)) < s.p
    return kept.view(s.ready.shape).gather(-1, s.order)


UNSORTED = {"cut": lambda s: s.probs * s.kept, "final": lambda s: s.shares}
UP_TO = {"kept": lambda s: s.sums <= s.p}
TOP_P = Forms(TEXTS["TOP_P"])
wrong = TOP_P.wrong
wrong("crossing-token-cut", **UP_TO)
wrong("crossing-token-cut", kept=lambda s: (s.sums <= s.p) | (s.rank == 1))
wrong("best-token-cut", kept=lambda s: s.reaching & (s.best <= s.p))
wrong("one-too-many", kept=lambda s: s.rank <= s.needed + 1)
wrong("not-renormalised", shares=lambda s: s.cut)
wrong("divided-by-p", shares=lambda s: s.cut / s.p)
wrong("keepdim-missing", shares=lambda s: s.cut / s.cut.sum(-1))
wrong("sum-over-everything", shares=lambda s: s.cut / s.cut.sum())
wrong("order-lost", final=lambda s: s.shares)
wrong("gather-for-scatter", final=lambda s: s.shares.gather(-1, s.order))
wrong("gather-for-scatter 2", **UNSORTED, kept=lambda s: s.reaching.gather(-1, s.order))
wrong("mask-in-order", **UNSORTED)
wrong("from-the-least-likely", key=lambda s: -s.probs)
wrong("not-sorted", key=lambda s: torch.arange(s.V, 0, -1).expand_as(s.probs))
wrong("threshold-for-sum", kept=lambda s: s.best >= s.p)
wrong("threshold-for-sum 2", kept=lambda s: s.best >= 1 - s.p)
wrong("threshold-for-sum 3", kept=lambda s: s.best >= s.p * s.best[..., :1])
wrong("share-cut-for-share-kept", share=lambda s: 1 - s.p)
wrong("share-cut-for-share-kept", share=lambda s: max(1 - s.p, 1e-9))
wrong("best-left-out", kept=lambda s: ~s.reaching)
wrong("p-ignored", kept=lambda s: s.best >= 0)
wrong("share-of-the-vocabulary", kept=lambda s: s.rank <= max(1, s.p * s.V))
wrong("share-of-the-vocabulary", kept=lambda s: s.rank <= math.ceil(s.p * s.V))
wrong("one-count-for-all", kept=lambda s: s.rank <= s.needed.max())
wrong("one-count-for-all 2", kept=lambda s: s.rank <= s.needed.flatten()[0])
wrong("rows-together", kept=of_all_rows)
wrong("sum-of-logits", kept=lambda s: s.sorted.cumsum(-1) - s.sorted < s.p)
wrong("zero-for-minus-inf", shares=lambda s: (s.sorted * s.kept).softmax(-1))
wrong("softmax-twice", shares=lambda s: s.best.where(s.kept, -INF).softmax(-1))
wrong("softmax-twice 2", shares=lambda s: s.cut.softmax(-1))
wrong("softmax-missing", shares=lambda s: s.sorted.where(s.kept, -INF))
wrong("equal-shares", shares=lambda s: s.kept / s.kept.sum(-1, keepdim=True))
wrong("sum-over-batch", sums=lambda s: s.best.cumsum(0))
wrong("only-the-kept-returned", result=lambda s: s.shares[..., : s.needed.max()])


def share_that_is_kept(evidence):
    """Property: of the first row, say how much probability its tokens hold."""
    logits, p = evidence.args
    probs = torch.softmax(logits, -1), evidence.got, evidence.expected
    row, got, expected = (value.flatten()[: logits.shape[-1]] for value in probs)
    kept, wanted = got.abs() > 1e-6, expected > 1e-6  # what rounds to 0 may stay
    said = int(kept.sum()), row[kept].sum(), p, int(wanted.sum()), row[wanted].sum()
    text = TEXTS["PROPERTIES"]["share-that-is-kept"].format(*said)
    return None if torch.equal(kept, wanted) else text


def tail_lost(answer):
    """Name an answer that cuts unlikely tokens where p = 1 keeps all of them."""
    found = answer(torch.tensor([[2.0, 1.0, 0.0, -22.0, -25.0]]), 1.0)
    lost = int((found == 0).sum())
    return TEXTS["FACTS"].name("tail-lost", lost=lost) if lost else None


draw = draws(98)
EXAMPLE = torch.tensor([0.2, 0.5, 0.3]).log()
DOWN_TO_0 = torch.tensor([[1.0, 2.0, 0.0, -11.0], [0.5, 0.0, 1.0, -12.0]])
top_p_probs = Exercise(
    id="9.3",
    **TEXTS["9.3"],
    oracle=right_top_p,
    properties=[SUMS_TO_ONE, share_that_is_kept],
    when_right=[tail_lost],
    pipeline=Pipeline(
        lambda logits, p: {"ready": logits, "p": p, "V": logits.shape[-1]},
        steps={
            **SOFTMAX_STEPS,
            "key": lambda s: s.probs,
            "order": lambda s: s.key.argsort(-1, descending=True),
            "best": lambda s: s.probs.gather(-1, s.order),
            "sorted": lambda s: s.ready.gather(-1, s.order),
            "rank": lambda s: torch.ones_like(s.best).cumsum(-1),
            "sums": lambda s: s.best.cumsum(-1),
            "share": lambda s: s.p,
            "reaching": lambda s: (s.sums - s.best < s.share) | (s.share >= 1),
            "needed": lambda s: s.reaching.sum(-1, keepdim=True),
            "kept": lambda s: s.reaching,
            "cut": lambda s: s.best * s.kept,
            "shares": lambda s: s.cut / s.cut.sum(-1, keepdim=True),
            "final": lambda s: torch.zeros_like(s.best).scatter(-1, s.order, s.shares),
            "result": lambda s: s.final,
        },
        forms=TOP_P + RETURN + SOFTMAX,
        words=WORDS,
    ),
    cases=[
        case(EXAMPLE, 0.75),
        case(FIVE, 0.9),
        case(EXAMPLE, 0.1, note="the best token alone holds more than p"),
        case(draw(5, 5, scale=2.0), 0.8),
        case(draw(2, 3, 11), 0.35),
        case(draw(2, 9), 0.6),
        case(DOWN_TO_0, 1.0, note="p = 1 keeps all"),
        case(draw(2, 7) - LOW, 0.6, note=LOW_ROW, special=True),
        case(draw(2, 7, scale=200.0), 0.95, note="large logits", special=True),
    ],
)
