"""Exercises of notebook 09: the block of a GPT, and how its next token is drawn."""

import torch
from torch import nn
from torch.nn import functional as F

from utils.checks.draw import draws, integers, rows_sum_to_one, worst_sum
from utils.checks.engine import Exercise, Mistake, case
from utils.checks.modules import ModuleExercise
from utils.checks.values import numbers

draw = draws(9)


class Part(nn.Module):
    """A stand-in for a sublayer; with `mixes` a token also sees those before it."""

    def __init__(self, name, d_model, mixes):
        super().__init__()
        self.name = name
        self.weight = nn.Parameter(draw(d_model, d_model))
        self.mixes = mixes

    def __repr__(self):
        return self.name

    def forward(self, x):
        if self.mixes:
            seen = torch.arange(1, x.shape[-2] + 1, dtype=x.dtype, device=x.device)
            x = x.cumsum(-2) / seen[:, None]
        return torch.tanh(x @ self.weight)


def parts(d_model):
    """Return what a block is built with."""
    attention = Part("attention", d_model, mixes=True)
    return attention, Part("feed_forward", d_model, mixes=False), d_model


def plain_norm(x):
    return F.layer_norm(x, x.shape[-1:])


def block(forward):
    """Turn `forward(x, attention, feed_forward, norm)` into a function of a module."""

    def compute(weights, x):
        attention, feed_forward, _ = weights.build
        return forward(x, attention, feed_forward, plain_norm)

    return compute


def pre_norm(x, attention, feed_forward, norm, norm2=None):
    x = x + attention(norm(x))
    return x + feed_forward((norm2 or norm)(x))


def post_norm(x, attention, feed_forward, norm):
    x = norm(x + attention(x))
    return norm(x + feed_forward(x))


def norm_on_the_way_back(x, attention, feed_forward, norm):
    x = x + norm(attention(x))
    return x + norm(feed_forward(x))


def residual_of_the_norm(x, attention, feed_forward, norm):
    x = norm(x)
    x = norm(x + attention(x))
    return x + feed_forward(x)


def no_attention_residual(x, attention, feed_forward, norm):
    x = attention(norm(x))
    return x + feed_forward(norm(x))


def around_both(x, attention, feed_forward, norm):
    return x + feed_forward(norm(attention(norm(x))))


def first_norm_kept(x, attention, feed_forward, norm):
    x = norm(x)
    x = x + attention(x)
    return x + feed_forward(norm(x))


def second_norm_kept(x, attention, feed_forward, norm):
    x = norm(x + attention(norm(x)))
    return x + feed_forward(x)


def mistake(slug, forward, explain):
    return Mistake(slug, block(forward), explain)


BLOCK_MISTAKES = [
    mistake(
        "post-norm",
        post_norm,
        "The norms come after the additions: that is post-norm, as in the paper of "
        "2017. Here each norm stands in front: x + attention(norm1(x)).",
    ),
    mistake(
        "norm-after-sublayer",
        norm_on_the_way_back,
        "What a sublayer returns is normed. In pre-norm the norm is applied to what it "
        "reads: x + attention(norm1(x)).",
    ),
    mistake(
        "residual-after-norm",
        residual_of_the_norm,
        "The normed x is kept and added to. Add to x itself: the norm is only for "
        "what the sublayer reads.",
    ),
    mistake(
        "residual-after-norm",
        first_norm_kept,
        "In the first half the normed x takes the place of x. Add to x itself: the "
        "norm is only for what the attention reads.",
    ),
    mistake(
        "residual-after-norm",
        second_norm_kept,
        "In the second half the normed x takes the place of x. Add to x itself: the "
        "norm is only for what the MLP reads.",
    ),
    mistake(
        "residuals-missing",
        lambda x, a, f, norm: f(norm(a(norm(x)))),
        "No x is added: each sublayer replaces what came in. Add its output to x.",
    ),
    mistake(
        "attention-residual-missing",
        no_attention_residual,
        "The attention replaces x. Add its output: x + attention(norm1(x)).",
    ),
    mistake(
        "mlp-residual-missing",
        lambda x, a, f, norm: f(norm(x + a(norm(x)))),
        "The MLP replaces x. Add its output: x + feed_forward(norm2(x)).",
    ),
    mistake(
        "one-residual-for-both",
        around_both,
        "There is one addition around both sublayers. Each sublayer has its own: the "
        "MLP reads x plus what the attention wrote.",
    ),
    mistake(
        "first-residual-lost",
        lambda x, a, f, norm: x + f(norm(x + a(norm(x)))),
        "The MLP's output is added to the x from the start, so what the attention "
        "wrote is lost. Add to the x that already holds it.",
    ),
    mistake(
        "sublayers-parallel",
        lambda x, a, f, norm: x + a(norm(x)) + f(norm(x)),
        "The MLP reads the x from the start, beside the attention. It comes after: it "
        "reads x plus what the attention wrote.",
    ),
    mistake(
        "order-swapped",
        lambda x, a, f, norm: pre_norm(x, f, a, norm),
        "The MLP comes first. The attention gathers, then the MLP works on it.",
    ),
    mistake(
        "norms-unused",
        lambda x, a, f, norm: pre_norm(x, a, f, lambda x: x),
        "Both sublayers read the bare x: put norm1 and norm2 in front of them.",
    ),
    mistake(
        "first-norm-unused",
        lambda x, a, f, norm: pre_norm(x, a, f, lambda x: x, norm),
        "The attention reads the bare x: attention(norm1(x)).",
    ),
    mistake(
        "second-norm-unused",
        lambda x, a, f, norm: pre_norm(x, a, f, norm, lambda x: x),
        "The MLP reads the bare x: feed_forward(norm2(x)).",
    ),
    mistake(
        "norm-at-the-end",
        lambda x, a, f, norm: norm(pre_norm(x, a, f, norm)),
        "There is a third norm, on the result. A GPT has it once, after the last "
        "block, not in each of them.",
    ),
    mistake(
        "attention-twice",
        lambda x, a, f, norm: pre_norm(x, a, a, norm),
        "The attention stands in both halves: the second is for feed_forward.",
    ),
    mistake(
        "mlp-twice",
        lambda x, a, f, norm: pre_norm(x, f, f, norm),
        "feed_forward stands in both halves: the first is for the attention.",
    ),
    mistake(
        "mlp-missing",
        lambda x, a, f, norm: x + a(norm(x)),
        "This is the first half alone: x + feed_forward(norm2(x)) has to follow.",
    ),
]


def norms_missing(module, weights):
    """Name norms that are not there under their names, or have nothing to learn."""
    for name in ("norm1", "norm2"):
        weight = getattr(getattr(module, name, None), "weight", None)
        if not isinstance(weight, nn.Parameter):
            return (
                "norms-missing",
                f"The output is right, but there is no `{name}` with a weight to learn:"
                f" self.{name} = nn.LayerNorm(d_model).",
            )
    return None


def norms_mixed_up(module, weights):
    """Name one norm for both places, or the two exchanged, by giving them weights."""
    fresh = type(module)(*weights.build).eval()
    norms = fresh.norm1, fresh.norm2
    shared = (
        "one-norm-shared",
        "The output is right only while both norms are as new: one norm serves in "
        "both places. norm1 and norm2 learn different weights.",
    )
    if norms[0] is norms[1] or norms[0].weight is norms[1].weight:
        return shared
    attention, feed_forward, d_model = weights.build
    x = integers(-5, 6, (2, 3, d_model), seed=9).float()
    with torch.no_grad():
        for norm, scale in zip(norms, (2.0, -1.0)):
            norm.weight.copy_(torch.linspace(0.5, scale, d_model))
        got = fresh(x)
        for first, second in ((0, 0), (1, 1), (1, 0)):
            tried = pre_norm(x, attention, feed_forward, norms[first], norms[second])
            if torch.allclose(got, tried, atol=1e-4):
                text = "norm1 stands in front of the MLP, norm2 of the attention."
                return shared if first == second else ("norms-swapped", text)
    return None


def sublayers_unregistered(module, weights):
    """Name sublayers whose weights `module.parameters()` does not list."""
    held = [parameter.detach() for parameter in module.parameters()]
    for part in weights.build[:2]:
        if not any(torch.equal(part.weight, parameter) for parameter in held):
            return (
                "weights-not-registered",
                f"The output is right, but module.parameters() lacks those of {part}: "
                f"assign it in __init__, self.{part} = {part}.",
            )
    return None


def training_differs(module, weights):
    """Name a block that no gradient passes, or one that depends on the mode."""
    x = integers(-5, 6, (2, 3, weights.build[2]), seed=9).float()
    right = module.eval()(x)
    trained = module.train()(x)
    module.eval()
    if not right.requires_grad:
        return (
            "no-gradient",
            "The output is right, but no gradient reaches the weights: look for "
            "torch.no_grad() or .detach().",
        )
    if not torch.allclose(right, trained):
        return (
            "changes-in-training",
            "In training mode the output is another one: is there a dropout? This "
            "exercise asks for none.",
        )
    return None


def stages(evidence):
    """Property: say what the stream of the first token is to be on the way."""
    weights, x = evidence.args
    attention, feed_forward, _ = weights.build
    middle = x + attention(plain_norm(x))
    return (
        f"By the formula, the stream of the first token starts as {numbers(x[0, 0])}, "
        f"is {numbers(middle[0, 0])} after the attention and "
        f"{numbers(evidence.expected[0, 0])} after the MLP. Print yours."
    )


FIVE, SEVEN = parts(5), parts(7)

transformer_block = ModuleExercise(
    id="9.1",
    signature="TransformerBlock(attention, feed_forward, d_model)",
    returns="from x (B, T, D) the output (B, T, D), with its own norm1 and norm2",
    oracle=block(pre_norm),
    cases=[
        case(draw(1, 3, 5, scale=2.0, shift=1.0), build=FIVE),
        case(draw(2, 7, 5, scale=2.0, shift=1.0), build=FIVE),
        case(draw(3, 11, 7, scale=3.0), build=SEVEN, note="another width"),
        case(draw(2, 1, 7, scale=30.0), build=SEVEN, note="one large token"),
    ],
    projections=(),
    properties=[stages],
    mistakes=BLOCK_MISTAKES,
    facts=[norms_missing, sublayers_unregistered, norms_mixed_up, training_differs],
)


def right_probs(logits, temperature=1.0, top_k=None):
    logits = logits.double()
    if top_k is not None:
        best = logits.topk(top_k, dim=-1)
        floor = torch.full_like(logits, -torch.inf)
        logits = floor.scatter(-1, best.indices, best.values)
    return torch.softmax(logits / temperature, dim=-1).float()


def kept(logits, k, largest=True):
    """Return a boolean mask of the k largest (or smallest) logits of each row."""
    chosen = logits.topk(min(k, logits.shape[-1]), dim=-1, largest=largest).indices
    return torch.zeros_like(logits, dtype=torch.bool).scatter(-1, chosen, True)


def keeping(choose, fill=-torch.inf):
    """Return the function that keeps the logits chosen by `choose(logits, top_k)`."""

    def compute(logits, temperature=1.0, top_k=None):
        if top_k is not None:
            logits = logits.masked_fill(~choose(logits, top_k), fill)
        return torch.softmax(logits / temperature, dim=-1)

    return compute


def tempering(change):
    """Return the function that sends the cut logits through `change(logits, t)`."""

    def compute(logits, temperature=1.0, top_k=None):
        if top_k is not None:
            logits = logits.masked_fill(~kept(logits, top_k), -torch.inf)
        return change(logits, temperature)

    return compute


def zero_after_tempering(logits, temperature=1.0, top_k=None):
    logits = logits / temperature
    if top_k is not None:
        logits = logits.masked_fill(~kept(logits, top_k), 0.0)
    return torch.softmax(logits, dim=-1)


def tiny_for_minus_inf(logits, temperature=1.0, top_k=None):
    return keeping(kept, fill=1e-9)(logits, temperature, top_k)


def not_renormalised(logits, temperature=1.0, top_k=None):
    probs = torch.softmax(logits / temperature, dim=-1)
    return probs if top_k is None else probs.masked_fill(~kept(probs, top_k), 0.0)


def only_k(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        logits = logits.topk(top_k, dim=-1).values
    return torch.softmax(logits / temperature, dim=-1)


def one_threshold(logits, top_k):
    return logits >= logits.flatten().topk(top_k).values[-1]


def lowest_threshold(logits, top_k):
    return logits >= logits.topk(top_k, dim=-1).values.min()


def two_axes(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        smallest = logits.topk(top_k).values[:, -1:]
        logits = torch.where(logits < smallest, -torch.inf, logits)
    return torch.softmax(logits / temperature, dim=-1)


def two_axes_listed(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        smallest = logits.topk(top_k).values[:, [-1]]
        logits = torch.where(logits < smallest, -torch.inf, logits)
    return torch.softmax(logits / temperature, dim=-1)


def overflowing(logits, temperature=1.0):
    exponentials = torch.exp(logits / temperature)
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


def at_position(position):
    """Return the function that looks at one position of a sequence alone."""

    def compute(logits, temperature=1.0, top_k=None):
        if logits.dim() > 1:
            logits = logits[..., position, :]
        return right_probs(logits, temperature, top_k)

    return compute


def sorted_probs(logits, temperature=1.0, top_k=None):
    return right_probs(logits, temperature, top_k).sort(-1, descending=True).values


def as_many_as_k(evidence):
    """Property: of each row, k entries are above zero."""
    if len(evidence.args) < 3:
        return None
    top_k = evidence.args[2]
    for row in evidence.got.reshape(-1, evidence.got.shape[-1]):
        if (found := int((row != 0).sum())) > top_k:
            return f"A row has {found} entries above zero where top_k = {top_k}."
    return None


def sums(evidence):
    return f"A row sums to {worst_sum(evidence.got)}: "


next_token_probs = Exercise(
    id="9.2",
    signature="next_token_probs(logits, temperature=1.0, top_k=None)",
    returns="probabilities of the shape of the logits (…, V), zero outside the top k",
    oracle=right_probs,
    properties=[rows_sum_to_one(), as_many_as_k],
    cases=[
        case(torch.tensor([1.5, -0.5, 0.3, 2.0, -1.0])),
        case(torch.tensor([1.5, -0.5, 0.3, 2.0, -1.0]), 0.5),
        case(torch.tensor([1.5, -0.5, 0.3, 2.0, -1.0]), 2.0, 2),
        case(torch.tensor([-1.5, -0.5, -2.3]), 1.0, 1, note="the best alone"),
        case(draw(3, 7, scale=2.0), 0.7, 3),
        case(draw(2, 3, 11, scale=2.0), 1.6, 5),
        case(draw(2, 7, shift=-300.0), 1.3, 3, note="very negative logits"),
        case(draw(2, 7, scale=200.0), 0.5, 5, note="large logits"),
        case(draw(2, 5), 1.0, 5, note="k is the whole vocabulary"),
    ],
    mistakes=[
        Mistake(
            "temperature-multiplied",
            tempering(lambda logits, t: torch.softmax(logits * t, dim=-1)),
            "The logits are multiplied by the temperature: divide, so that a low one "
            "sharpens.",
        ),
        Mistake(
            "temperature-after-softmax",
            tempering(lambda logits, t: torch.softmax(logits, dim=-1) / t),
            lambda e: f"{sums(e)}divide the logits by the temperature, before it.",
        ),
        Mistake(
            "temperature-ignored",
            tempering(lambda logits, t: torch.softmax(logits, dim=-1)),
            "The temperature changes nothing. Divide the logits by it, before the "
            "softmax; dividing probabilities and renormalising cancels out.",
        ),
        Mistake(
            "k-smallest",
            keeping(lambda logits, k: kept(logits, k, largest=False)),
            "The k least likely tokens are kept: take the largest logits.",
        ),
        Mistake(
            "best-left-out",
            keeping(lambda logits, k: ~kept(logits, k)),
            "The k best tokens are the ones that are cut off: turn the mask round.",
        ),
        Mistake(
            "one-too-many",
            keeping(lambda logits, k: kept(logits, k + 1)),
            "k + 1 tokens are kept. In a descending order the k-th best has index "
            "k - 1; tokens below it go.",
        ),
        Mistake(
            "one-too-few",
            keeping(lambda logits, k: kept(logits, k - 1)),
            "k - 1 tokens are kept: the k-th best stays too, so cut what is < it, not "
            "what is <= it.",
        ),
        Mistake(
            "top-k-ignored",
            keeping(lambda logits, k: kept(logits, logits.shape[-1])),
            "top_k changes nothing: tokens outside the k best need the logit -inf. "
            "masked_fill returns a new tensor; use its result.",
        ),
        Mistake(
            "zero-for-minus-inf",
            keeping(kept, fill=0.0),
            "Tokens outside the top k get the logit 0, which is a share like any "
            "other: exp(0) = 1. Their logit must be -inf.",
        ),
        Mistake(
            "zero-for-minus-inf",
            zero_after_tempering,
            "Tokens outside the top k get the logit 0, which is a share like any "
            "other: exp(0) = 1. Their logit must be -inf.",
        ),
        Mistake(
            "zero-for-minus-inf",
            tiny_for_minus_inf,
            "Tokens outside the top k get the logit 1e-9, which is as good as 0, and "
            "exp(0) = 1 is a share like any other. Their logit must be -inf.",
        ),
        Mistake(
            "not-renormalised",
            not_renormalised,
            lambda e: (
                f"{sums(e)}what was cut off after the softmax is missing. Set logits "
                "to -inf before it, or divide by the new sum."
            ),
        ),
        Mistake(
            "only-k-returned",
            only_k,
            "These are the k probabilities without their places: return one for "
            "each of the V tokens, zero outside the top k.",
        ),
        Mistake(
            "one-threshold-for-all",
            keeping(one_threshold),
            "The k best are taken from all rows together: each row has its own k best "
            "tokens, topk(top_k, dim=-1).",
        ),
        Mistake(
            "one-threshold-for-all",
            keeping(lowest_threshold),
            "The lowest k-th best of all rows cuts every row, so some keep more than "
            "k tokens: each row has its own, values[..., -1:].",
        ),
        Mistake(
            "two-axes-only",
            two_axes,
            "values[:, -1:] fits logits with two axes: count from the end, "
            "values[..., -1:], and any number of them will do.",
        ),
        Mistake(
            "two-axes-only",
            two_axes_listed,
            "values[:, [-1]] fits logits with two axes: count from the end, "
            "values[..., [-1]], and any number of them will do.",
        ),
        Mistake(
            "first-position-for-last",
            at_position(0),
            "One position of each sequence comes back, the first. Return "
            "probabilities for all; generating then reads those of the last.",
        ),
        Mistake(
            "last-position-only",
            at_position(-1),
            "One position of each sequence comes back, the last. Return probabilities "
            "for all: whoever calls this function picks the position.",
        ),
        Mistake(
            "softmax-missing",
            tempering(lambda logits, t: logits / t),
            "These are logits: a softmax over the vocabulary turns them into "
            "probabilities.",
        ),
        Mistake(
            "logarithm",
            tempering(lambda logits, t: torch.log_softmax(logits / t, dim=-1)),
            "These are logarithms of probabilities: softmax instead of log_softmax.",
        ),
        Mistake(
            "softmax-over-batch",
            tempering(lambda logits, t: torch.softmax(logits / t, dim=0)),
            lambda e: f"{sums(e)}the softmax runs over the first axis. Use dim=-1.",
        ),
        Mistake(
            "order-lost",
            sorted_probs,
            "These are the probabilities from the largest down: each belongs at the "
            "place of its token.",
        ),
        Mistake(
            "token-for-probabilities",
            lambda logits, temperature=1.0, top_k=None: logits.argmax(-1),
            "This is the best token itself. Return the probabilities; drawing is the "
            "next step.",
        ),
        Mistake(
            "overflow",
            tempering(overflowing),
            "exp of a large logit is infinite, and very negative ones leave a sum of "
            "0: torch.softmax subtracts the maximum first.",
        ),
    ],
)


def right_top_p(logits, p):
    rows = logits.double().reshape(-1, logits.shape[-1])
    probs = torch.softmax(rows, dim=-1)
    cut = torch.zeros_like(probs)
    for row, found in zip(probs, cut):
        total = 0.0
        for place in row.argsort(descending=True).tolist():
            if total < p:
                found[place] = row[place]
                total += row[place].item()
    cut = cut / cut.sum(dim=-1, keepdim=True)
    return cut.reshape(logits.shape).float()


def ranked(logits):
    """Return the probabilities, largest first, their tokens, and the running sums."""
    probs = torch.softmax(logits, dim=-1)
    order = probs.argsort(dim=-1, descending=True)
    best = probs.gather(-1, order)
    return best, order, best.cumsum(dim=-1)


def cut_by(choose, renormalise=True):
    """Return the function that keeps what `choose(best, sums, p)` marks, best first."""

    def compute(logits, p):
        best, order, sums = ranked(logits)
        best = best * choose(best, sums, p)
        if renormalise:
            best = best / best.sum(dim=-1, keepdim=True)
        return torch.zeros_like(best).scatter(-1, order, best)

    return compute


def reaching(best, sums, p):
    """Mark the fewest best tokens whose sum reaches p; 1 stands for all."""
    return (sums - best < p) | (p >= 1)


def up_to(best, sums, p):
    return sums <= p


def with_the_best(choose):
    """Return the choice that keeps the best token in any case."""

    def with_it(best, sums, p):
        return choose(best, sums, p).index_fill(-1, torch.tensor(0), True)

    return with_it


def the_rest(best, sums, p):
    return reaching(best, sums, 1 - p)


def one_more(best, sums, p):
    return F.pad(reaching(best, sums, p)[..., :-1], (1, 0), value=True)


def by_count(rounding):
    """Return the choice of a share p of the vocabulary, rounded like this."""

    def choose(best, sums, p):
        count = rounding(torch.tensor(p * best.shape[-1])).clamp(min=1)
        return (torch.arange(best.shape[-1]) < count).expand_as(best)

    return choose


def same_count(pick):
    """Return the choice of one number of tokens for all rows."""

    def choose(best, sums, p):
        count = pick(reaching(best, sums, p).sum(dim=-1))
        return (torch.arange(best.shape[-1]) < count).expand_as(best)

    return choose


def in_vocabulary_order(logits, p):
    probs = torch.softmax(logits, dim=-1)
    kept = probs * (probs.cumsum(dim=-1) - probs < p)
    return kept / kept.sum(dim=-1, keepdim=True)


def from_the_least(logits, p):
    probs, order = torch.softmax(logits, dim=-1).sort(dim=-1)
    kept = probs * (probs.cumsum(dim=-1) - probs < p)
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(kept).scatter(-1, order, kept)


def gathered(logits, p):
    best, order, sums = ranked(logits)
    best = best * reaching(best, sums, p)
    return (best / best.sum(dim=-1, keepdim=True)).gather(-1, order)


def sums_of_logits(logits, p):
    best, order = logits.sort(dim=-1, descending=True)
    kept = best.masked_fill(best.cumsum(dim=-1) - best >= p, -torch.inf)
    return torch.softmax(torch.zeros_like(kept).scatter(-1, order, kept), dim=-1)


def filling(fill, source):
    """Return the function that gives cut tokens this value before a last softmax."""

    def compute(logits, p):
        kept = right_top_p(logits, p) > 0
        return torch.softmax(source(logits).masked_fill(~kept, fill), dim=-1)

    return compute


def over_axis(axis):
    """Return the function that takes the softmax, or the sums, over the first axis."""

    def compute(logits, p):
        probs = torch.softmax(logits, dim=0 if axis == "softmax" else -1)
        best, order = probs.sort(dim=-1, descending=True)
        sums = best.cumsum(dim=0 if axis == "sums" else -1)
        best = best * (sums - best < p)
        best = best / best.sum(dim=-1, keepdim=True)
        return torch.zeros_like(best).scatter(-1, order, best)

    return compute


def all_rows_together(logits, p):
    kept = right_top_p(logits.flatten(), p).view(logits.shape)
    probs = torch.softmax(logits, dim=-1) * (kept > 0)
    return probs / probs.sum(dim=-1, keepdim=True)


def only_the_kept(logits, p):
    best, _, sums = ranked(logits)
    best = best * reaching(best, sums, p)
    best = best / best.sum(dim=-1, keepdim=True)
    return best[..., : int((best > 0).sum(dim=-1).max())]


def plain_exp_top_p(logits, p):
    exponentials = torch.exp(logits)
    probs = exponentials / exponentials.sum(dim=-1, keepdim=True)
    best, order = probs.sort(dim=-1, descending=True)
    best = best * reaching(best, best.cumsum(dim=-1), p)
    best = best / best.sum(dim=-1, keepdim=True)
    return torch.zeros_like(best).scatter(-1, order, best)


def share_that_is_kept(evidence):
    """Property: of the first row, say how much probability its tokens hold."""
    logits, p = evidence.args
    if evidence.got.shape != logits.shape:
        return None
    row = torch.softmax(logits, dim=-1).reshape(-1, logits.shape[-1])[0]
    kept = evidence.got.reshape(-1, logits.shape[-1])[0] != 0
    wanted = evidence.expected.reshape(-1, logits.shape[-1])[0] != 0
    if torch.equal(kept, wanted):
        return None
    return (
        f"In the first row, {int(kept.sum())} tokens are kept, with a sum of "
        f"{row[kept].sum():.3f}; to reach p = {p} it takes the {int(wanted.sum())} "
        f"best, with {row[wanted].sum():.3f}."
    )


CROSSING = (
    "The token with which the sum reaches p is cut. It stays: a token goes if the "
    "better ones *alone* hold p already."
)
EXAMPLE = torch.tensor([0.2, 0.5, 0.3]).log()

top_p_probs = Exercise(
    id="9.3",
    signature="top_p_probs(logits, p)",
    returns="probabilities of the shape of the logits (…, V), zero outside the "
    "smallest set of best tokens that hold p",
    oracle=right_top_p,
    properties=[rows_sum_to_one(), share_that_is_kept],
    cases=[
        case(EXAMPLE, 0.7),
        case(torch.tensor([1.5, -0.5, 0.3, 2.0, -1.0]), 0.9),
        case(EXAMPLE, 0.1, note="the best token alone holds more than p"),
        case(draw(5, 7, scale=2.0), 0.8),
        case(draw(2, 3, 11), 0.35),
        case(draw(3, 5), 1.0, note="p = 1 keeps all"),
        case(draw(2, 7, shift=-300.0), 0.6, note="very negative logits"),
        case(draw(2, 7, scale=200.0), 0.95, note="large logits"),
    ],
    mistakes=[
        Mistake("crossing-token-cut", cut_by(up_to), CROSSING),
        Mistake("crossing-token-cut", cut_by(with_the_best(up_to)), CROSSING),
        Mistake(
            "one-too-many",
            cut_by(one_more),
            "One token too many stays. Stop with the one that makes the sum reach p.",
        ),
        Mistake(
            "not-renormalised",
            cut_by(reaching, renormalise=False),
            lambda e: f"{sums(e)}divide what is kept by its own sum.",
        ),
        Mistake(
            "crossing-cut-not-renormalised",
            cut_by(up_to, renormalise=False),
            lambda e: f"{sums(e)}divide by the new sum. And: {CROSSING}",
        ),
        Mistake(
            "order-lost",
            lambda logits, p: right_top_p(logits, p).sort(-1, descending=True).values,
            "These are the probabilities from the largest down: each belongs at the "
            "place of its token. `scatter` puts them back.",
        ),
        Mistake(
            "gather-for-scatter",
            gathered,
            "The probabilities go back to wrong places. `gather` with the order sorts "
            "once more; `scatter` undoes the sorting.",
        ),
        Mistake(
            "from-the-least-likely",
            from_the_least,
            "The sum begins with the least likely tokens: sort with descending=True.",
        ),
        Mistake(
            "not-sorted",
            in_vocabulary_order,
            "The sum runs through the tokens as they stand in the vocabulary: sort "
            "them first, the most likely in front.",
        ),
        Mistake(
            "threshold-for-sum",
            cut_by(lambda best, sums, p: best >= p),
            "Tokens with a probability of p or more are kept. p is for their *sum*.",
        ),
        Mistake(
            "threshold-for-sum",
            cut_by(lambda best, sums, p: best >= 1 - p),
            "Tokens with a probability of 1 - p or more are kept. p is for their "
            "*sum*.",
        ),
        Mistake(
            "threshold-for-sum",
            cut_by(lambda best, sums, p: best >= p * best[..., :1]),
            "Tokens with at least p times the best probability are kept (that is "
            "min-p sampling). Here p is for their *sum*.",
        ),
        Mistake(
            "share-cut-for-share-kept",
            cut_by(the_rest),
            "The tokens that are kept hold 1 - p. p is the share to keep.",
        ),
        Mistake(
            "share-cut-for-share-kept",
            cut_by(with_the_best(the_rest)),
            "The tokens that are kept hold 1 - p. p is the share to keep.",
        ),
        Mistake(
            "best-left-out",
            cut_by(lambda best, sums, p: ~reaching(best, sums, p)),
            "The best tokens are the ones that are cut off: turn the mask round.",
        ),
        Mistake(
            "p-ignored",
            lambda logits, p: torch.softmax(logits, dim=-1),
            "p changes nothing: every token is kept. masked_fill returns a new "
            "tensor; use its result.",
        ),
        Mistake(
            "share-of-the-vocabulary",
            cut_by(by_count(torch.ceil)),
            "A share p of the *tokens* is kept, whatever their probabilities. How many "
            "stay follows from the sum of their probabilities.",
        ),
        Mistake(
            "share-of-the-vocabulary",
            cut_by(by_count(torch.floor)),
            "A share p of the *tokens* is kept, whatever their probabilities. How many "
            "stay follows from the sum of their probabilities.",
        ),
        Mistake(
            "one-count-for-all",
            cut_by(same_count(lambda counts: counts.max())),
            "Every row keeps as many tokens as the row that needs most. Each row has "
            "its own number.",
        ),
        Mistake(
            "one-count-for-all",
            cut_by(same_count(lambda counts: counts.flatten()[0])),
            "Every row keeps as many tokens as the first. Each row has its own number.",
        ),
        Mistake(
            "rows-together",
            all_rows_together,
            "The best tokens are taken from all rows together: each row is sorted and "
            "summed alone, along dim=-1.",
        ),
        Mistake(
            "sum-of-logits",
            sums_of_logits,
            "The sum is one of logits. p is a share of probability: softmax first.",
        ),
        Mistake(
            "zero-for-minus-inf",
            filling(0.0, lambda logits: logits),
            "Tokens outside the set get the logit 0, which is a share like any other: "
            "exp(0) = 1. Their logit must be -inf.",
        ),
        Mistake(
            "softmax-twice",
            filling(-torch.inf, lambda logits: torch.softmax(logits, dim=-1)),
            "The last softmax gets probabilities. Give it logits, or divide the "
            "probabilities by their sum.",
        ),
        Mistake(
            "softmax-twice",
            filling(0.0, lambda logits: torch.softmax(logits, dim=-1)),
            "The last softmax gets probabilities, and exp(0) = 1 gives those that were "
            "cut a share again. Divide the probabilities by their sum instead.",
        ),
        Mistake(
            "softmax-missing",
            lambda logits, p: logits.masked_fill(
                right_top_p(logits, p) == 0, -torch.inf
            ),
            "These are logits: a softmax over the vocabulary turns them into "
            "probabilities.",
        ),
        Mistake(
            "logarithm",
            lambda logits, p: right_top_p(logits, p).log(),
            "These are logarithms of probabilities: softmax instead of log_softmax.",
        ),
        Mistake(
            "softmax-over-batch",
            over_axis("softmax"),
            "The softmax runs over the first axis: use dim=-1.",
        ),
        Mistake(
            "sum-over-batch",
            over_axis("sums"),
            "The running sum goes along the first axis: cumsum(dim=-1).",
        ),
        Mistake(
            "only-the-kept-returned",
            only_the_kept,
            "These are the kept probabilities without their places: return one for "
            "each of the V tokens, zero outside the set.",
        ),
        Mistake(
            "mask-for-probabilities",
            lambda logits, p: right_top_p(logits, p) > 0,
            "This says which tokens stay. Return their probabilities, renormalised, "
            "and zero for the others.",
        ),
        Mistake(
            "equal-shares",
            lambda logits, p: F.normalize(
                (right_top_p(logits, p) > 0).float(), p=1, dim=-1
            ),
            "All kept tokens have the same probability. They keep their proportions: "
            "divide their probabilities by the sum.",
        ),
        Mistake(
            "token-for-probabilities",
            lambda logits, p: logits.argmax(-1),
            "This is the best token itself. Return the probabilities; drawing is the "
            "next step.",
        ),
        Mistake(
            "overflow",
            plain_exp_top_p,
            "exp of a large logit is infinite, and very negative ones leave a sum of "
            "0: torch.softmax subtracts the maximum first.",
        ),
    ],
)

EXERCISES = [transformer_block, next_token_probs, top_p_probs]
