"""Exercises of notebook 03: softmax, attention weights, context vectors."""

import torch
from torch.nn import functional as F

from utils.checks import attention_steps as of_attention
from utils.checks.attention_steps import steps
from utils.checks.draw import draws, rows_sum_to_one, special, worst_sum
from utils.checks.engine import Exercise, case
from utils.checks.steps import Forms, texts_of

TEXTS = texts_of(__file__)
draw = draws(3)


# --- 3.3 --------------------------------------------------------------------------


def right_softmax(scores, dim=-1):
    return torch.softmax(scores.double(), dim).to(scores.dtype)


SOFT = Forms(TEXTS["SOFT"])
SOFT.wrong("softmax-over-everything", axis=lambda s: tuple(range(s.scores.dim())))
SOFT.wrong("dim-ignored", axis=lambda s: -1)
for axis, words in ((-1, {"axis": "the last axis"}), (0, {"axis": "axis 0"})):
    SOFT.wrong("dim-ignored 2", words, total=lambda s, i=axis: s.exps.sum(i, True))
    SOFT.wrong("dim-ignored 3", words, maximum=lambda s, i=axis: s.hidden.amax(i, True))
SOFT.wrong("max-is-a-pair", maximum=lambda s: s.hidden.max(s.dim, True))
SOFT.wrong("wrong-axis", axis=lambda s: 0)
SOFT.wrong("wrong-axis 2", axis=lambda s: s.asked or 0)
SOFT.wrong("softmax-over-everything 2", total=lambda s: s.exps.sum())
SOFT.wrong("minimum-subtracted", maximum=lambda s: s.hidden.amin(s.dim, True))
SOFT.wrong("mean-subtracted", maximum=lambda s: s.hidden.mean(s.dim, True))
SOFT.wrong("not-normalised 2", total=lambda s: s.exps.mean(s.dim, True))
SOFT.wrong("not-normalised 3", total=lambda s: s.exps.shape[s.dim])
SOFT.wrong("exponential-missing 2", exp=lambda s: s.hidden.abs())
SOFT.wrong("hardmax", divide=lambda s: (s.hidden == s.maximum).float())
SOFT.wrong("sign-flipped", shift=lambda s: s.hidden.amin(s.dim, True) - s.hidden)
SOFT.wrong("sign-flipped 2", shift=lambda s: s.maximum - s.hidden)
SOFT.wrong("base-two", exp=lambda s: s.shifted.exp2())


def sums_along_dim(evidence):
    """Say in words that the weights along `dim` do not sum to 1, or order is lost."""
    scores, dim = (*evidence.args, -1)[:2]
    if ((evidence.got.double().sum(dim) - 1).abs() > 1e-4).any():
        return f"The entries along `dim` sum to {worst_sum(evidence.got, dim)}, not 1."
    if not torch.equal(evidence.got.argmax(dim), scores.argmax(dim)):
        return "The largest score along `dim` does not get the largest weight."
    return None


softmax = Exercise(
    id="3.3",
    **TEXTS["3.3"],
    oracle=right_softmax,
    cases=[
        case(torch.tensor([1.0, 2.0, 3.0])),
        case(draw(3, 5)),
        case(draw(3, 5), 0),
        case(draw(2, 3, 5)),
        case(draw(2, 3, 5), 1),
        case(draw(5, 5)),
        special("large scores", draw(3, 5, scale=400.0)),
        special("very negative scores", draw(3, 5, shift=-300.0)),
        special("one score", torch.tensor([[0.7]])),
    ],
    properties=[sums_along_dim],
    pipeline=of_attention.attention(
        lambda scores, dim=None: {"products": scores, "asked": dim},
        steps(
            scale=lambda s: s.products,
            axis=lambda s: -1 if s.asked is None else s.asked,
            give=lambda s: s.weights,
            leaving_out=("score", "width", "average", "merge", "project_out"),
        ),
        *(SOFT, of_attention.SOFTMAX),
        words={"count": lambda s: s.hidden.numel(), "along": "along `dim`"},
    ),
)


# --- 3.1 and 3.2 ------------------------------------------------------------------


def attend(x):
    """Return the context vectors and the weights, without PyTorch's scale."""
    return of_attention.by_torch(x.double() * x.shape[-1] ** 0.5, x, x)


# What may be wrong with the weights, as the answer itself or on the way to it.
WEIGHTS = Forms(TEXTS["WEIGHTS"])
WEIGHTS.wrong("scaled", scale=lambda s: s.products / s.x.shape[-1] ** 0.5)
WEIGHTS.wrong("divided-by-width", scale=lambda s: s.products / s.x.shape[-1])
WEIGHTS.wrong("divided-by-width 2", scale=lambda s: s.products / s.x.shape[-1] / 2)
WEIGHTS.wrong("scale-of-tokens", scale=lambda s: s.products / len(s.x) ** 0.5)
WEIGHTS.wrong("softmax-over-queries", axis=lambda s: 0)
WEIGHTS.wrong("softmax-over-everything", axis=lambda s: (0, 1))
WEIGHTS.wrong("sign-flipped", score=lambda s: -(s.query @ s.key.mT))
WEIGHTS.wrong("cosine", score=of_attention.angles)
WEIGHTS.wrong("distance", score=lambda s: -torch.cdist(s.query, s.key))
WEIGHTS.wrong("future-hidden", mask=of_attention.triangle)
WEIGHTS.wrong("itself-excluded", mask=lambda s: ~torch.eye(len(s.x)).bool())
WEIGHTS.wrong("future-hidden 2", clear=lambda s: s.soft.tril())
WEIGHTS.wrong("itself-excluded 2", clear=lambda s: s.soft * (1 - torch.eye(len(s.x))))
WEIGHTS.append(of_attention.SCORE[0])  # reshape for transpose
WEIGHTS.wrong("transpose-missing", score=lambda s: s.x @ s.x)
FEATURES = {"score": lambda s: s.x.mT @ s.x}
RETURN_WEIGHTS = Forms(TEXTS["RETURN_WEIGHTS"])
RETURN_WEIGHTS.wrong("features-for-tokens", **FEATURES)
RETURN_WEIGHTS.wrong("elementwise-product", score=lambda s: s.x * s.x)
RETURN_WEIGHTS.wrong("one-row-only", give=lambda s: s.weights[0])
RETURN_WEIGHTS.wrong("one-row-only 2", give=lambda s: s.weights[-1])
RETURN_WEIGHTS.wrong("context-returned", give=lambda s: s.weights @ s.x)


def written_while_reading(s):
    """Replace tokens which later queries still need."""
    contexts = s.x.clone()
    for i in range(len(contexts)):
        contexts[i] = attend(contexts)[1][i] @ contexts
    return contexts


CONTEXT = Forms(TEXTS["CONTEXT"])
CONTEXT.wrong("weights-returned", give=lambda s: s.weights)
CONTEXT.wrong("scores-for-values", average=lambda s: s.weights @ s.scores)
CONTEXT.wrong("weights-for-values", average=lambda s: s.weights @ s.weights)
CONTEXT.wrong("one-row-only", give=lambda s: s.output[0])
CONTEXT.wrong("one-row-only 2", give=lambda s: s.output[-1])
CONTEXT.wrong("one-vector-for-all", give=lambda s: s.x.mean(0))
CONTEXT.wrong("one-vector-for-all 2", give=lambda s: s.output.sum(0))
CONTEXT.wrong("transposed", give=lambda s: s.output.mT)
CONTEXT.wrong("not-summed", average=lambda s: s.weights[..., None] * s.x)
CONTEXT.wrong("summed-over-queries", give=lambda s: s.weights.sum(0)[:, None] * s.x)
CONTEXT.wrong("last-token-missing", average=lambda s: s.weights[:, :-1] @ s.x[:-1])
CONTEXT.wrong("divided-by-width", give=lambda s: s.output / s.x.shape[-1])
CONTEXT.wrong("tokens-added", give=lambda s: s.x + s.output)
CONTEXT.wrong("values-of-length-one", value=lambda s: F.normalize(s.x, dim=-1))
CONTEXT.wrong("weights-returned-too", give=lambda s: (s.output, s.weights))
CONTEXT.wrong("no-attention", average=lambda s: s.x)
CONTEXT.wrong("features-for-tokens", **FEATURES, average=lambda s: s.x @ s.weights)
CONTEXT.wrong("written-while-reading", give=written_while_reading)


def of_tokens(*groups, **own):
    """Return the pipeline of unscaled self-attention, with nothing to learn."""
    return of_attention.attention(
        lambda x: {"x": x, "query": x, "key": x},
        steps(value=lambda s: s.x, scale=lambda s: s.products, **own),
        *(of_attention.SOFTMAX, WEIGHTS, *groups),
        # All three are the tokens, and what compares them is symmetric.
        without=("keys-for-values", "queries-for-values", "weights-transposed"),
        words=TEXTS["WORDS"] | {"D": lambda s: s.x.shape[-1]},
    )


TOKENS = [
    case(draw(3, 2)),
    case(draw(5, 3)),
    case(draw(2, 7)),
    case(draw(5, 5), note="as many tokens as features"),
    special("large scores", draw(7, 3, scale=20.0).round()),
    special("two tokens are zero", torch.cat([draw(3, 5), torch.zeros(2, 5)])),
    special("one token", draw(1, 3)),
]

weights = Exercise(
    id="3.1",
    **TEXTS["3.1"],
    oracle=lambda x: attend(x)[1],
    cases=TOKENS,
    properties=[rows_sum_to_one()],
    pipeline=of_tokens(
        RETURN_WEIGHTS,
        give=lambda s: s.weights,
        leaving_out=("value", "average", "merge", "project_out"),
    ),
)


def stays_among_the_tokens(evidence):
    """Say that an average left the range of what it averages."""
    x, got = evidence.args[0].double(), evidence.got.double()
    low, high = x.amin(0), x.amax(0)
    outside = ((got < low - 1e-4) | (got > high + 1e-4)).nonzero()
    if not len(outside):
        return None
    row, i = outside[0].tolist()
    seen = {"got": got[row, i], "low": low[i], "high": high[i]}
    return TEXTS["SEEN"]["range"].format(row=row, feature=i, **seen)


context = Exercise(
    id="3.2",
    **TEXTS["3.2"],
    oracle=lambda x: attend(x)[0],
    cases=TOKENS,
    properties=[stays_among_the_tokens],
    pipeline=of_tokens(of_attention.AVERAGE, CONTEXT),
)

EXERCISES = [softmax, weights, context]
