"""Exercise 9.3: top-p, the fewest best tokens that hold a share p."""

import math

import torch

from utils.checks.draw import draws, rows_sum_to_one
from utils.checks.engine import Exercise, case
from utils.checks.steps import Forms, Pipeline, texts_of
from utils.checks.tiny_gpt import softmax

TEXTS = texts_of(__file__)
INF = torch.inf
draw = draws(98)


def right_top_p(logits, p):
    if logits.dim() > 1:
        return torch.stack([right_top_p(row, p) for row in logits])
    probs, total = torch.softmax(logits.double(), dim=0), 0.0
    kept = torch.zeros_like(probs)
    for place in probs.argsort(descending=True).tolist():
        if total < p or p == 1:
            kept[place] = probs[place]
            total += probs[place].item()
    return (kept / kept.sum()).float()


def start(logits, p):
    return {"logits": logits, "ready": logits, "p": p, "size": logits.shape[-1]}


def ranked(s, key):
    """Return probabilities, tokens and logits in the order of a key, largest first."""
    order = key.argsort(-1, descending=True)
    return s.probs.gather(-1, order), order, s.logits.gather(-1, order)


def reaching(s, p):
    """Mark the fewest best tokens whose sum reaches p; 1 stands for all."""
    return (s.sums - s.best < p) | (p >= 1)


def first(s, count):
    """Mark this many of the best tokens of each row."""
    return torch.ones_like(s.best).cumsum(-1) <= count


def needed(s):
    """Return how many tokens each row needs."""
    return reaching(s, s.p).sum(-1)


def of_all_rows(s):
    """Mark, in the order of each row, the best tokens of all rows together."""
    probs, order = torch.softmax(s.logits.flatten(), 0).sort(descending=True)
    kept = probs.cumsum(0) - probs < s.p
    kept = torch.zeros_like(kept).scatter(0, order, kept)
    return kept.view(s.logits.shape).gather(-1, s.order)


def unsorted(mask):
    """Return the steps that cut the tokens as they stand in the vocabulary."""
    return {"cut": lambda s: s.probs * mask(s), "back": lambda s: s.shares}


STEPS = {
    **softmax.STEPS,
    "ranked": lambda s: ranked(s, s.probs),
    "sums": lambda s: s.best.cumsum(-1),
    "kept": lambda s: reaching(s, s.p),
    "cut": lambda s: s.best * s.kept,
    "shares": lambda s: s.cut / s.cut.sum(-1, keepdim=True),
    "back": lambda s: torch.zeros_like(s.shares).scatter(-1, s.order, s.shares),
    "result": lambda s: s.back,
}
UP_TO = {"kept": lambda s: s.sums <= s.p}
UNDIVIDED = {"shares": lambda s: s.cut}
FORMS = Forms(TEXTS["FORMS"])
wrong = FORMS.wrong
wrong("crossing-token-cut", **UP_TO)
wrong("crossing-token-cut", kept=lambda s: s.sums < s.p)
wrong("crossing-token-cut", kept=lambda s: (s.sums <= s.p) | first(s, 1))
wrong("best-token-cut", kept=lambda s: reaching(s, s.p) & (s.best <= s.p))
wrong("one-too-many", kept=lambda s: first(s, needed(s)[..., None] + 1))
wrong("not-renormalised", **UNDIVIDED)
wrong("crossing-cut-not-renormalised", **UP_TO, **UNDIVIDED)
wrong("divided-by-p", shares=lambda s: s.cut / s.p)
wrong("keepdim-missing", shares=lambda s: s.cut / s.cut.sum(-1))
wrong("sum-over-everything", shares=lambda s: s.cut / s.cut.sum())
wrong("order-lost", back=lambda s: s.shares)
wrong("gather-for-scatter", back=lambda s: s.shares.gather(-1, s.order))
wrong("gather-for-scatter 2", **unsorted(lambda s: s.kept.gather(-1, s.order)))
wrong("mask-in-order", **unsorted(lambda s: s.kept))
wrong("from-the-least-likely", ranked=lambda s: ranked(s, -s.probs))
wrong("not-sorted", ranked=lambda s: ranked(s, -torch.ones_like(s.probs).cumsum(-1)))
wrong("threshold-for-sum", kept=lambda s: s.best >= s.p)
wrong("threshold-for-sum 2", kept=lambda s: s.best >= 1 - s.p)
wrong("threshold-for-sum 3", kept=lambda s: s.best >= s.p * s.best[..., :1])
wrong("share-cut-for-share-kept", kept=lambda s: reaching(s, 1 - s.p))
wrong("share-cut-for-share-kept", kept=lambda s: reaching(s, 1 - s.p) | first(s, 1))
wrong("best-left-out", kept=lambda s: ~reaching(s, s.p))
wrong("p-ignored", kept=lambda s: s.best >= 0)
wrong("share-of-the-vocabulary", kept=lambda s: first(s, max(1, s.p * s.size)))
wrong("share-of-the-vocabulary", kept=lambda s: first(s, math.ceil(s.p * s.size)))
wrong("one-count-for-all", kept=lambda s: first(s, needed(s).max()))
wrong("one-count-for-all 2", kept=lambda s: first(s, needed(s).flatten()[0]))
wrong("rows-together", kept=of_all_rows)
wrong("sum-of-logits", kept=lambda s: s.sorted.cumsum(-1) - s.sorted < s.p)
wrong("zero-for-minus-inf", shares=lambda s: (s.sorted * s.kept).softmax(-1))
wrong("softmax-twice", shares=lambda s: s.best.where(s.kept, -INF).softmax(-1))
wrong("softmax-twice 2", shares=lambda s: s.cut.softmax(-1))
wrong("softmax-missing", shares=lambda s: s.sorted.where(s.kept, -INF))
wrong("equal-shares", shares=lambda s: s.kept / s.kept.sum(-1, keepdim=True))
wrong("sum-over-batch", sums=lambda s: s.best.cumsum(0))
wrong("only-the-kept-returned", result=lambda s: s.shares[..., : needed(s).max()])
wrong("mask-for-probabilities", result=lambda s: s.back > 0)
wrong("logarithm", result=lambda s: s.back.log())
wrong("token-for-probabilities", result=lambda s: s.back.argmax(-1))
wrong("integers-for-probabilities", result=lambda s: s.back.long())
wrong(
    "integers-for-probabilities 2",
    back=lambda s: torch.zeros_like(s.order).scatter(-1, s.order, s.shares),
)


def share_that_is_kept(evidence):
    """Property: of the first row, say how much probability its tokens hold."""
    logits, p = evidence.args
    probs = torch.softmax(logits, -1), evidence.got, evidence.expected
    row, got, expected = (value.flatten()[: logits.shape[-1]] for value in probs)
    kept, wanted = got.abs() > 1e-6, expected > 1e-6  # what rounds to 0 may stay
    said = int(kept.sum()), row[kept].sum(), p, int(wanted.sum()), row[wanted].sum()
    text = TEXTS["PROPERTIES"]["share-that-is-kept"].format(*said)
    return None if torch.equal(kept, wanted) else text


EXAMPLE = torch.tensor([0.2, 0.5, 0.3]).log()
DOWN_TO_0 = torch.tensor([[1.0, 2.0, 0.0, -11.0], [0.5, 0.0, 1.0, -12.0]])
top_p_probs = Exercise(
    id="9.3",
    signature="top_p_probs(logits, p)",
    returns="probabilities of the shape of the logits (…, V), zero outside the "
    "smallest set of best tokens that hold p",
    oracle=right_top_p,
    properties=[rows_sum_to_one(of="probabilities"), share_that_is_kept],
    pipeline=Pipeline(
        start,
        STEPS,
        FORMS + softmax.SOFTMAX,
        gives={"ranked": ("best", "order", "sorted")},
        words=softmax.WORDS,
    ),
    cases=[
        case(EXAMPLE, 0.75),
        case(torch.tensor([1.5, -0.5, 0.3, 2.0, -1.0]), 0.9),
        case(EXAMPLE, 0.1, note="the best token alone holds more than p"),
        case(draw(5, 5, scale=2.0), 0.8),
        case(draw(2, 3, 11), 0.35),
        case(DOWN_TO_0, 1.0, note="p = 1 keeps all"),
        case(draw(2, 7) - softmax.LOW, 0.6, note=softmax.LOW_ROW, special=True),
        case(draw(2, 7, scale=200.0), 0.95, note="large logits", special=True),
    ],
)
