"""Exercises of the notebook on context vectors: softmax, weights, context vectors."""

import torch

from utils.checks.engine import Exercise, case
from utils.checks.inputs import draw, special
from utils.checks.pipeline import variants
from utils.checks.properties import rows_sum_to_one, worst_sum
from utils.checks.steps import attention as of_attention
from utils.checks.steps.attention import steps
from utils.checks.values import number

# --- softmax ----------------------------------------------------------------------


def right_softmax(scores, dim=-1):
    return torch.softmax(scores.double(), dim).to(scores.dtype)


SOFT = variants(
    "softmax-over-everything: You summed over all entries: sum along `dim` only, with `keepdim=True`.",
    dict(dim=lambda s: tuple(range(s.scores.dim()))),
    "dim-ignored: You used the last axis although `dim` asks for another one: pass `dim` on to the maximum and to the sum.",
    dict(dim=lambda s: -1),
    "dim-ignored: You took the sum along another axis than `dim`: the maximum and the sum both run along `dim`.",
    dict(total=lambda s: s.exps.sum(-1, True)),
    dict(total=lambda s: s.exps.sum(0, True)),
    "dim-ignored: You took the maximum along another axis than `dim`: the maximum and the sum both run along `dim`.",
    dict(maximum=lambda s: s.hidden.amax(-1, True)),
    dict(maximum=lambda s: s.hidden.amax(0, True)),
    "max-is-a-pair: You used max() with a dim, which returns values and positions: use amax(), or max(…).values.",
    dict(maximum=lambda s: s.hidden.max(s.dim, True)),
    "wrong-axis: You used axis 0 whatever `dim` is: pass `dim` on to the maximum and to the sum.",
    dict(dim=lambda s: 0),
    "wrong-axis: You used axis 0 where no `dim` is given: the default is -1.",
    dict(dim=lambda s: s.asked or 0),
    "softmax-over-everything: You summed over all entries: sum along `dim` only, with `keepdim=True`.",
    dict(total=lambda s: s.exps.sum()),
    "mean-subtracted: You subtracted the mean, so a score far above it still overflows: subtract the maximum.",
    dict(maximum=lambda s: s.hidden.mean(s.dim, True)),
    "hardmax: You gave the whole weight to the largest score: a softmax leaves every score a share, exp(score) / sum.",
    dict(soft=lambda s: (s.hidden == s.maximum).float()),
    "sign-flipped: You subtracted the scores from the maximum, so the largest gets the smallest weight: subtract the maximum from the scores.",
    dict(shifted=lambda s: s.maximum - s.hidden),
    "base-two: You used powers of 2: use torch.exp.",
    dict(exps=lambda s: s.shifted.exp2()),
)


def sums_along_dim(run):
    """Say if weights don't sum to 1 or the largest score doesn't get the largest."""
    scores, dim = (*run.args, -1)[:2]
    total = worst_sum(run.got, dim)
    if abs(total - 1) > 1e-4:
        return f"Your entries along `dim` sum to {number(total)} instead of 1."
    if not torch.equal(run.got.argmax(dim), scores.argmax(dim)):
        return "The largest score along `dim` doesn't get your largest weight."
    return None


softmax = Exercise(
    id="3.3",
    signature="softmax(scores, dim=-1)",
    returns="a tensor of the shape of `scores` whose entries along `dim` sum to 1",
    oracle=right_softmax,
    cases=[
        case(torch.tensor([1.0, 2.0, 3.0])),
        case(draw(3, 5)),
        case(draw(3, 5, seed=1), 0),
        case(draw(2, 3, 5)),
        case(draw(2, 3, 5, seed=1), 1),
        case(draw(5, 5)),
        special("large scores", draw(3, 5, scale=400.0)),
        special("very negative scores", draw(3, 5, shift=-300.0)),
        special("one score", torch.tensor([[0.7]])),
    ],
    properties=[sums_along_dim],
    pipeline=of_attention.attention(
        lambda scores, dim=None: {"products": scores, "asked": dim},
        steps(
            scores=lambda s: s.products,
            dim=lambda s: -1 if s.asked is None else s.asked,
            result=lambda s: s.weights,
            leaving_out=("products", "width", "output", "merged", "projected"),
        ),
        *(SOFT, of_attention.SOFTMAX),
        along="along `dim`",
    ),
)


# --- weights and context vectors --------------------------------------------------


def attend(x):
    """Return the context vectors and the weights, without PyTorch's scale."""
    return of_attention.by_torch(x.double() * x.shape[-1] ** 0.5, x, x)


def identity(s):
    return torch.eye(len(s.x)).bool()


# What may be wrong with the weights, as the answer itself or on the way to it.
WEIGHTS = variants(
    "scaled: You divided the scores by √D = √{D}: leave that out. Here they are the plain dot products.",
    dict(scores=lambda s: s.products / s.x.shape[-1] ** 0.5),
    "softmax-over-queries: Your softmax runs over the queries, or the weights are transposed afterwards: a row {row_sum}. Row i belongs to query i, so use dim=-1.",
    dict(dim=lambda s: 0),
    "softmax-over-everything: Your softmax runs over all scores at once, so a row {row_sum}: each query has a softmax of its own, dim=-1.",
    dict(dim=lambda s: (0, 1)),
    "cosine: You normalised the tokens to length 1, so your scores are cosines: use the dot products of the tokens as they are.",
    dict(products=of_attention.angles),
    "future-hidden: You applied a causal mask, or a loop ends too early: here every token attends to all tokens.",
    dict(mask=of_attention.triangle),
    dict(cleared=lambda s: s.soft.tril()),
    "itself-excluded: You let no token attend to itself: keep the diagonal.",
    dict(mask=lambda s: ~identity(s)),
    dict(cleared=lambda s: s.soft * ~identity(s)),
    "reshape-for-transpose: You used a reshape as a transpose: the shape fits, but the numbers keep their order. Use x.T.",
    dict(products=lambda s: s.query @ of_attention.reshaped(s.key)),
    "transpose-missing: You computed x @ x: transpose the second one, x @ x.T.",
    dict(products=lambda s: s.x @ s.x),
)
FEATURES = {"products": lambda s: s.x.mT @ s.x}
RETURN_WEIGHTS = variants(
    "features-for-tokens: You compared the {D} features, XᵀX: compare the tokens, X Xᵀ.",
    FEATURES,
    "elementwise-product: You multiplied entry by entry with `*`: the dot products of all tokens are a matrix product, x @ x.T.",
    dict(products=lambda s: s.x * s.x),
    "context-returned: You returned the context vectors: return the weights.",
    dict(result=lambda s: s.weights @ s.x),
)


def written_while_reading(s):
    """Replace tokens which later queries still need."""
    contexts = s.x.clone()
    for i in range(len(contexts)):
        contexts[i] = attend(contexts)[1][i] @ contexts
    return contexts


CONTEXT = variants(
    "weights-returned: You returned the weights: multiply them with the tokens, weights @ x.",
    dict(result=lambda s: s.weights),
    "scores-for-values: You averaged the scores: average the tokens, weights @ x.",
    dict(output=lambda s: s.weights @ s.scores),
    "one-vector-for-all: You returned one plain average of the sentence: every token gets a vector, with weights of its own.",
    dict(result=lambda s: s.x.mean(0)),
    "last-token-missing: You left the last token out of every sum: range(T - 1) ends one too early.",
    dict(output=lambda s: s.weights[:, :-1] @ s.x[:-1]),
    "tokens-added: You added the token itself to its context vector: its own share is in the weighted sum already.",
    dict(result=lambda s: s.x + s.output),
    "weights-returned-too: You returned the weights as well: return the context vectors.",
    dict(result=lambda s: (s.output, s.weights)),
    "features-for-tokens: You mixed the features by a softmax of XᵀX: the weights are the softmax of X Xᵀ, and come first in the product.",
    FEATURES | dict(output=lambda s: s.x @ s.weights),
    "written-while-reading: You replaced a token before later queries have read it: write into a new tensor.",
    dict(result=written_while_reading),
)


def of_tokens(*groups, leaving_out=(), **own):
    """Return the pipeline of an exercise in which tokens meet as they are."""
    return of_attention.attention(
        lambda x: {"x": x, "query": x, "key": x, "D": x.shape[-1]},
        steps(leaving_out, value=lambda s: s.x, scores=lambda s: s.products, **own),
        *(of_attention.SOFTMAX, WEIGHTS, *groups),
        # All three are the tokens, and what compares them is symmetric.
        without=("keys-for-values", "queries-for-values", "weights-transposed"),
        averaged="tokens",
        value_name="x",
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
    signature="attention_weights(x)",
    returns="the weights (T, T): a row for each query, which sums to 1",
    oracle=lambda x: attend(x)[1],
    cases=TOKENS,
    properties=[rows_sum_to_one()],
    pipeline=of_tokens(
        RETURN_WEIGHTS,
        result=lambda s: s.weights,
        leaving_out=("value", "output", "merged", "projected"),
    ),
)


def stays_among_the_tokens(run):
    """Say if an average leaves the range of what it averages."""
    x, got = run.args[0].double(), run.got.double()
    low, high = x.amin(0), x.amax(0)
    outside = ((got < low - 1e-4) | (got > high + 1e-4)).nonzero()
    if not len(outside):
        return None
    row, i = outside[0].tolist()
    return f"Your feature {i} of row {row} is {got[row, i]:.4g}, outside of what the tokens hold there, {low[i]:.4g} to {high[i]:.4g}: an average stays inside."


context = Exercise(
    id="3.2",
    signature="context_vectors(x)",
    returns="the context vectors (T, D), one for each token",
    oracle=lambda x: attend(x)[0],
    cases=TOKENS,
    properties=[stays_among_the_tokens],
    pipeline=of_tokens(of_attention.AVERAGE, CONTEXT),
)

EXERCISES = [weights, context, softmax]
