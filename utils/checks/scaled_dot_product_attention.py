"""Exercises of notebook 04: scaled dot-product attention and self-attention."""

from types import SimpleNamespace

import torch
from torch.nn.functional import scaled_dot_product_attention as torch_attention

from utils.checks.draw import draws, rows_sum_to_one, samples_stay_apart, worst_sum
from utils.checks.engine import Exercise, Mistake, case
from utils.checks.modules import ModuleExercise
from utils.checks.training_facts import changes_in_training, no_gradient

draw = draws(4)


def attend(query, key, value, scale=None, dim=-1):
    """Return `(output, weights)` with any factor for 1 / √d_k, over any axis."""
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    weights = torch.softmax(scale * query.double() @ key.double().mT, dim)
    return (weights @ value.double()).float(), weights.float()


def right_attention(query, key, value):
    eye = torch.eye(key.shape[-2]).expand(*key.shape[:-1], -1)
    output = torch_attention(query.double(), key.double(), value.double())
    weights = torch_attention(query.double(), key.double(), eye.double())
    return output.float(), weights.float()


def scaled_by(slug, factor, explain):
    """Return the mistake that multiplies the scores by `factor(query, key, value)`."""
    return Mistake(
        slug, lambda q, k, v: attend(q, k, v, scale=factor(q, k, v)), explain
    )


def dot_t(query, key, value):
    weights = torch.softmax(query @ key.T / query.shape[-1] ** 0.5, -1)
    return weights @ value, weights


def raw_scores(query, key, value):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    return scores @ value, scores


def scale_after(query, key, value):
    weights = attend(query, key, value, scale=1.0)[1] / query.shape[-1] ** 0.5
    return weights @ value, weights


def keys_first(query, key, value):
    weights = torch.softmax(key @ query.mT / query.shape[-1] ** 0.5, -1)
    return weights @ value, weights


def uniform(query, key, value):
    weights = torch.full((*query.shape[:-1], key.shape[-2]), 1 / key.shape[-2])
    return weights @ value, weights


def with_axes(first, second):
    """Return the function that transposes two fixed axes of the keys."""

    def compute(query, key, value):
        scores = query @ key.transpose(first, second) / query.shape[-1] ** 0.5
        weights = torch.softmax(scores, -1)
        return weights @ value, weights

    return compute


def default_axis(query, key, value):
    """Softmax without `dim`: PyTorch takes axis 0 for one or three axes, else 1."""
    dim = {1: 0, 3: 0}.get(query.dim(), 1)
    return attend(query, key, value, dim=dim)


def causal(query, key, value):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    allowed = torch.ones(scores.shape[-2:]).tril().bool()
    weights = torch.softmax(scores.masked_fill(~allowed, -torch.inf), -1)
    return weights @ value, weights


def by_angle(query, key, value):
    query, key = (torch.nn.functional.normalize(x, dim=-1) for x in (query, key))
    return attend(query, key, value, scale=1.0)


def by_angle_scaled(query, key, value):
    query, key = (torch.nn.functional.normalize(x, dim=-1) for x in (query, key))
    return attend(query, key, value)


def weigh_keys(query, key, value):
    weights = attend(query, key, value)[1]
    return weights @ key, weights


attention = Exercise(
    id="4.1",
    signature="scaled_dot_product_attention(query, key, value)",
    returns="the tuple (output, weights) of shapes (…, T, d_v) and (…, T, S)",
    parts=("output", "weights"),
    oracle=right_attention,
    properties=[rows_sum_to_one(lambda value: value[1]), samples_stay_apart],
    cases=[
        case(draw(3, 5), draw(7, 5), draw(7, 2)),
        case(draw(2, 5, 3), draw(2, 7, 3), draw(2, 7, 11)),
        case(draw(5, 3), draw(5, 3), draw(5, 3), note="T = S and d_v = d_k"),
        case(draw(2, 3, 5, 7), draw(2, 3, 11, 7), draw(2, 3, 11, 13)),
        case(
            draw(2, 3, 5, scale=30.0), draw(2, 7, 5), draw(2, 7, 3), note="large scores"
        ),
        case(draw(1, 5), draw(1, 5), draw(1, 3), note="one token"),
    ],
    mistakes=[
        Mistake(
            "weights-missing",
            lambda q, k, v: right_attention(q, k, v)[0],
            "This is the right output, but the weights are missing: return the output "
            "and the weights.",
        ),
        Mistake(
            "output-and-weights-swapped",
            lambda q, k, v: right_attention(q, k, v)[::-1],
            "Both are right, in the wrong order: the output comes first.",
        ),
        Mistake(
            "output-missing",
            lambda q, k, v: right_attention(q, k, v)[1],
            "These are the right weights: multiply them with the values; return both.",
        ),
        scaled_by(
            "scale-missing",
            lambda q, k, v: 1.0,
            lambda e: (
                "The scores were not divided by √d_k = "
                f"√{e.args[0].shape[-1]}: the weights are too peaked."
            ),
        ),
        scaled_by(
            "divided-by-width",
            lambda q, k, v: 1 / q.shape[-1],
            lambda e: (
                f"The scores are divided by d_k = {e.args[0].shape[-1]}, not by its "
                "square root: the weights are too even."
            ),
        ),
        scaled_by(
            "scale-multiplied",
            lambda q, k, v: q.shape[-1] ** 0.5,
            lambda e: (
                f"The scores are multiplied by √d_k = √{e.args[0].shape[-1]} where "
                "they should be divided by it: the weights are far too peaked."
            ),
        ),
        scaled_by(
            "scale-of-values",
            lambda q, k, v: v.shape[-1] ** -0.5,
            lambda e: (
                f"The scores are divided by √d_v = √{e.args[2].shape[-1]}: the width "
                f"that counts is that of queries and keys, d_k = {e.args[0].shape[-1]}."
            ),
        ),
        scaled_by(
            "scale-of-keys",
            lambda q, k, v: k.shape[-2] ** -0.5,
            lambda e: (
                f"The scores are divided by √S = √{e.args[1].shape[-2]}, the number "
                f"of keys: the width is the last axis, d_k = {e.args[0].shape[-1]}."
            ),
        ),
        scaled_by(
            "scale-of-tokens",
            lambda q, k, v: q.shape[-2] ** -0.5,
            lambda e: (
                f"The scores are divided by √T = √{e.args[0].shape[-2]}, the number "
                f"of queries: the width is the last axis, d_k = {e.args[0].shape[-1]}."
            ),
        ),
        scaled_by(
            "scale-of-first-axis",
            lambda q, k, v: q.shape[0] ** -0.5,
            lambda e: (
                f"The scores are divided by √{e.args[0].shape[0]}, the size of the "
                f"first axis: d_k is the size of the last one, {e.args[0].shape[-1]}."
            ),
        ),
        scaled_by(
            "scale-of-first-axis",
            lambda q, k, v: k.shape[0] ** -0.5,
            lambda e: (
                f"The scores are divided by √{e.args[1].shape[0]}, the size of the "
                f"first axis: d_k is the size of the last one, {e.args[0].shape[-1]}."
            ),
        ),
        scaled_by(
            "scale-of-second-axis",
            lambda q, k, v: q.shape[1] ** -0.5,
            lambda e: (
                f"The scores are divided by √{e.args[0].shape[1]}, the size of the "
                f"second axis: d_k is the size of the last one, {e.args[0].shape[-1]}."
            ),
        ),
        Mistake(
            "scale-after-softmax",
            scale_after,
            lambda e: (
                f"A row of the weights sums to {worst_sum(e.got[1])}: the division "
                "by √d_k comes after the softmax. Divide the scores, before it."
            ),
        ),
        Mistake(
            "softmax-over-queries",
            lambda q, k, v: attend(q, k, v, dim=-2),
            lambda e: (
                f"A row of the weights sums to {worst_sum(e.got[1])} while every "
                "column sums to 1: the softmax runs over the queries. Use dim=-1."
            ),
        ),
        Mistake(
            "softmax-missing",
            raw_scores,
            "The scores are used as they are: a "
            "softmax over the keys turns them into weights.",
        ),
        Mistake(
            "keys-times-queries",
            keys_first,
            "The scores are K Qᵀ instead of Q Kᵀ: "
            "row i belongs to query i, so the queries come first.",
        ),
        Mistake(
            "scores-for-weights",
            lambda q, k, v: (right_attention(q, k, v)[0], raw_scores(q, k, v)[1]),
            "The output is right, but the second value holds the scores: return the "
            "weights, which come out of the softmax.",
        ),
        Mistake(
            "weights-turned",
            lambda q, k, v: (attend(q, k, v)[0], attend(q, k, v)[1].mT),
            "The output is right, but the weights are transposed: rows are queries, "
            "columns are keys.",
        ),
        Mistake(
            "keys-for-values",
            weigh_keys,
            "The weights are right, but they average the keys: multiply them with the "
            "values.",
        ),
        Mistake(
            "axis-left-open",
            default_axis,
            "Without `dim` the softmax picks its axis by the number of axes, and with "
            "a batch that is the batch itself: say dim=-1.",
        ),
        Mistake(
            "future-hidden",
            causal,
            "The weights above the diagonal are 0: there is a causal mask, and this "
            "exercise asks for none.",
        ),
        Mistake(
            "compares-angles",
            by_angle,
            "Queries and keys are brought to length 1 first, which compares angles. "
            "The dot product keeps the lengths; divide by √d_k alone.",
        ),
        Mistake(
            "compares-angles",
            by_angle_scaled,
            "Queries and keys are brought to length 1 first, which compares angles. "
            "The dot product keeps the lengths.",
        ),
        Mistake(
            "fixed-axes",
            with_axes(0, 1),
            "transpose(0, 1) fits a single matrix: with a batch in front, the last two "
            "axes are meant, key.transpose(-2, -1).",
        ),
        Mistake(
            "fixed-axes",
            with_axes(1, 2),
            "transpose(1, 2) fits exactly one leading axis: count from the end, "
            "key.transpose(-2, -1), and any number of them will do.",
        ),
        Mistake(
            "fixed-axes",
            with_axes(2, 3),
            "transpose(2, 3) fits exactly two leading axes: count from the end, "
            "key.transpose(-2, -1), and any number of them will do.",
        ),
        Mistake(
            "transpose-of-all-axes",
            dot_t,
            "`.T` turns round all axes of a tensor, the batch too: transpose the last "
            "two alone, key.transpose(-2, -1).",
        ),
        Mistake(
            "uniform-weights",
            uniform,
            "Every key gets the same weight: the scores play no part.",
        ),
    ],
)


NOT_IN_A_MODULE = (
    "weights-missing",
    "output-and-weights-swapped",
    "output-missing",
    "scale-of-values",  # d_v = d_k here
    "scale-of-keys",  # S = T here
    "scores-for-weights",  # the output alone is returned
    "weights-turned",
    "keys-times-queries",  # explained in other words below
)


def project(weights, x):
    """Return the queries, keys and values of a module."""
    return x @ weights.W_query, x @ weights.W_key, x @ weights.W_value


def in_module(mistake):
    """Turn a mistake of exercise 4.1 into the same mistake inside a module."""

    def explain(evidence):
        if not callable(mistake.explain):
            return mistake.explain
        args = project(*evidence.args)
        return mistake.explain(SimpleNamespace(args=args, got=mistake.compute(*args)))

    return Mistake(
        mistake.slug, lambda w, x: mistake.compute(*project(w, x))[0], explain
    )


def without(name):
    """Return the forward pass that uses `x` itself in place of one projection."""

    def compute(weights, x):
        used = dict(zip(("query", "key", "value"), project(weights, x)))
        return right_attention(*(used | {name: x}).values())[0]

    return compute


def parameter_called(weights, x):
    raise TypeError("'Parameter' object is not callable")


def three_axes(weights, x):
    batch, num_tokens, d_in = x.shape
    return right_attention(*project(weights, x))[0]


def exchanged(first, second):
    """Return the forward pass in which two projections have changed places."""

    def compute(weights, x):
        used = dict(zip(("query", "key", "value"), project(weights, x)))
        used[first], used[second] = used[second], used[first]
        return right_attention(*used.values())[0]

    return compute


self_attention = ModuleExercise(
    id="4.2",
    signature="SelfAttention(d_in, d_out)",
    returns="from x (…, T, d_in) the output (…, T, d_out), with the learned matrices "
    "W_query, W_key, W_value",
    oracle=lambda weights, x: right_attention(*project(weights, x))[0],
    facts=[no_gradient, changes_in_training],
    cases=[
        case(draw(7, 3, scale=3.0), build=(3, 5)),
        case(draw(2, 7, 3, scale=3.0), build=(3, 5)),
        case(draw(2, 11, 3, scale=3.0), build=(3, 5), note="another length"),
        case(draw(2, 3, 7, 11, scale=2.0), build=(11, 5), note="two leading axes"),
        case(draw(7, 5, scale=2.0), build=(5, 2), note="d_out below d_in"),
        case(draw(1, 3), build=(3, 5), note="one token"),
    ],
    mistakes=[
        *(in_module(m) for m in attention.mistakes if m.slug not in NOT_IN_A_MODULE),
        Mistake(
            "scale-of-input-width",
            lambda w, x: attend(*project(w, x), scale=x.shape[-1] ** -0.5)[0],
            lambda e: (
                f"The scores are divided by √d_in = √{e.args[1].shape[-1]}: the "
                "width that counts is that of queries and keys, "
                f"d_out = {e.args[0].W_query.shape[-1]}."
            ),
        ),
        Mistake(
            "weight-not-transposed",
            lambda w, x: right_attention(
                x @ w.W_query.mT, x @ w.W_key.mT, x @ w.W_value.mT
            )[0],
            "nn.Linear stores its weight as (d_out, d_in), ready for x @ weight.T: "
            "call the layer, self.W_query(x), and it does so by itself.",
        ),
        Mistake(
            "parameter-called",
            parameter_called,
            "An nn.Parameter is a matrix and no function: multiply, x @ self.W_query.",
        ),
        Mistake(
            "three-axes-only",
            three_axes,
            "Here x has no batch or two leading axes: count axes from the end, "
            "x.shape[-1] and transpose(-2, -1), instead of unpacking three of them.",
        ),
        Mistake(
            "value-added",
            lambda w, x: right_attention(*project(w, x))[0] + x @ w.W_value,
            "The output is the right one plus each token's own value: return the "
            "weighted sum alone.",
        ),
        Mistake(
            "last-query-alone",
            lambda w, x: right_attention(*project(w, x))[0][..., -1:, :],
            "This is the output for the last token alone: every token asks a query.",
        ),
        Mistake(
            "values-not-projected",
            without("value"),
            "The weights are right, but they average x itself: average the values, "
            "x @ W_value.",
        ),
        Mistake(
            "queries-for-keys",
            lambda w, x: right_attention(x @ w.W_query, x @ w.W_query, x @ w.W_value)[
                0
            ],
            "The keys are x @ W_query: W_key is not used.",
        ),
        Mistake(
            "keys-for-queries",
            lambda w, x: right_attention(x @ w.W_key, x @ w.W_key, x @ w.W_value)[0],
            "The queries are x @ W_key: W_query is not used.",
        ),
        Mistake(
            "keys-for-values",
            lambda w, x: right_attention(x @ w.W_query, x @ w.W_key, x @ w.W_key)[0],
            "The weights are right, but they average the keys: average the values, "
            "x @ W_value.",
        ),
        Mistake(
            "keys-times-queries",
            exchanged("query", "key"),
            "Queries and keys have changed places, K Qᵀ for Q Kᵀ: row i of the scores "
            "belongs to token i's query, x_i @ W_query.",
        ),
        Mistake(
            "keys-and-values-exchanged",
            exchanged("key", "value"),
            "W_key makes the values and W_value the keys: exchange the two.",
        ),
        Mistake(
            "no-attention",
            lambda w, x: x @ w.W_value,
            "The output is x @ W_value: the weights are not used.",
        ),
        Mistake(
            "weights-returned",
            lambda w, x: right_attention(*project(w, x))[1],
            "These are the weights (…, T, T): multiply them with the values.",
        ),
    ],
)

EXERCISES = [attention, self_attention]
