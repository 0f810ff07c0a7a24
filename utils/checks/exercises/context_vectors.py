"""Exercises of the notebook on context vectors: softmax, weights, context vectors."""

import torch

from utils.checks.engine import Case, Exercise, draw
from utils.checks.pipeline import variants
from utils.checks.steps import attention as of_attention
from utils.checks.steps.attention import steps

SOFT = variants(
    "softmax-over-everything: You took the maximum and the sum of all entries: both should run along `dim`, with `keepdim=True`.",
    dict(dim=lambda s: (*range(s.scores.dim()),)),
    "softmax-over-everything: You summed over all entries: sum along `dim` only, with `keepdim=True`.",
    dict(total=lambda s: s.exps.sum()),
    "dim-ignored: You used the last axis although `dim` asks for another one: maximum and sum should run along `dim`.",
    dict(dim=lambda s: -1),
    dict(total=lambda s: s.exps.sum(-1, True)),
    "wrong-axis: You used axis 0 where no `dim` is given: the default should be -1.",
    dict(dim=lambda s: 0 if s.dim == -1 else s.dim),
    "mean-subtracted: You subtracted the mean, so a score far above it still overflows: subtract the maximum.",
    dict(maximum=lambda s: s.hidden.mean(s.dim, True)),
)

softmax = Exercise(
    id="3.3",
    signature="softmax(scores, dim=-1)",
    returns="a tensor of the shape of `scores` whose entries along `dim` sum to 1",
    cases=[
        Case(torch.tensor([1.0, 2.0, 3.0])),
        Case(draw(3, 5)),
        Case(draw(3, 5, seed=1), 0),
        Case(draw(2, 3, 5), 1),
        Case(draw(5, 5)),
        Case(draw(3, 5, scale=400.0), note="large scores"),
        Case(draw(3, 5, shift=-300.0), note="very negative scores"),
    ],
    steps={
        "hidden": lambda s: s.scores,
        **of_attention.SOFTMAX_STEPS,
        "dim": lambda s: s.dim,
        "result": lambda s: s.weights,
    },
    variants=SOFT + of_attention.SOFTMAX,
)


# What may be wrong with the weights, as the answer itself or on the way to it.
WEIGHTS = variants(
    "scaled: You divided the scores by √D: leave that out. Here they are the plain dot products.",
    dict(scores=lambda s: s.products / s.x.shape[-1] ** 0.5),
    "multiplied-by-entry: You multiplied entry by entry, with `*`: compare each token with every token, x @ x.T.",
    dict(scores=lambda s: s.x * s.x),
    "diagonal-masked: You hid each token from itself: it may take from itself too.",
    dict(mask=lambda s: ~torch.eye(len(s.x), dtype=torch.bool)),
)
WEIGHING = of_attention.AXIS + of_attention.SOFTMAX + of_attention.SCORE
WEIGHING += WEIGHTS + of_attention.NO_MASK
CONTEXT = variants(
    "tokens-added: You added the token itself to its context vector: its own share is in the weighted sum already.",
    dict(result=lambda s: s.x + s.output),
)


TOKENS_MEET = dict.fromkeys(("query", "key", "value"), lambda s: s.x)


def of_tokens(variants, **own):
    """Return steps and variants of an exercise that compares the tokens themselves."""
    return {
        "steps": steps(TOKENS_MEET, scores=lambda s: s.products, **own),
        "variants": WEIGHING + variants,
        # All three are the tokens, and what compares them is symmetric.
        "without": ("keys-for-values",),
    }


TOKENS = [
    Case(draw(3, 2)),
    Case(draw(2, 7)),
    Case(draw(5, 5), note="as many tokens as features"),
    Case(draw(7, 3, scale=20.0).round(), note="large scores"),
]

weights = Exercise(
    id="3.1",
    signature="attention_weights(x)",
    returns="the weights (T, T): a row for each query, which sums to 1",
    cases=TOKENS,
    **of_tokens([], output=lambda s: s.weights),
)
context = Exercise(
    id="3.2",
    signature="context_vectors(x)",
    returns="the context vectors (T, D), one for each token",
    cases=TOKENS,
    **of_tokens(of_attention.AVERAGE + CONTEXT),
)

EXERCISES = [weights, context, softmax]
