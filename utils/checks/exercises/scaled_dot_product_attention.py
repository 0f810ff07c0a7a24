"""Exercises of the notebook on scaled attention: the function, and a module."""

import torch

from utils import attention
from utils.checks import shared
from utils.checks.definition import Case, Diagnosis, Exercise, Mistake, draw
from utils.checks.layer_probes import changes_in_training, no_gradient
from utils.checks.shared import softmax_of
from utils.checks.submission import QKV

IN_FUNCTION = shared.SCALE + shared.OF_VALUES + shared.NO_MASK
IN_FUNCTION += shared.WEIGHING + [Mistake("scores-returned", "You returned the scores as the weights: return what the softmax makes of them.", "return output, query @ key.mT / width**0.5")]  # fmt: skip
# One token is far shorter than the others: no maximum nor one for all rows will do.
FAR = torch.tensor([[1.0], [60.0], [60.0]])
FAR_QUERIES = 3 * FAR * draw(2, 3, 5)


def scaled_dot_product_attention(query, key, value):
    width = query.shape[-1]
    products = query @ key.mT
    scores = products / width**0.5
    hidden = scores
    dim = -1
    soft = softmax_of(hidden, dim)
    weights = soft
    output = weights @ value
    return output, weights


exercise_4_1 = Exercise(
    id="4.1",
    right=scaled_dot_product_attention,
    course=attention.scaled_dot_product_attention,
    returns="the tuple (output, weights), where output has for each query a row as wide as the values, and weights a row with one weight per key",
    parts=("output", "weights"),
    mistakes=IN_FUNCTION,
    cases=[
        Case(draw(3, 5), draw(7, 5), draw(7, 2)),
        Case(draw(2, 5, 3), draw(2, 7, 3), draw(2, 7, 11)),
        Case(*(draw(5, 3, seed=seed) for seed in range(3)), note="T = S, d_v = d_k"),
        Case(draw(2, 3, 5, 7), draw(2, 3, 11, 7), draw(2, 3, 11, 13)),
        Case(FAR_QUERIES, draw(2, 7, 5), draw(2, 7, 3), note="large scores"),
    ],
)


def created_in_order(module, learned):
    """Name matrices made in another order: the same seed gives them other numbers."""
    names = [name.partition(".")[0] for name, _ in module.named_parameters()]
    names = [name for name in dict.fromkeys(names) if name in QKV]
    diagnosis = Diagnosis("created-in-another-order", f"You made the matrices in the order {', '.join(names)}: make them in the order W_query, W_key, W_value, so that a seed gives everybody the same numbers.")  # fmt: skip
    return diagnosis if names != [*QKV] else None


IN_MODULE = shared.OF_INPUT + shared.PROJECT
IN_MODULE += shared.SCALE + shared.WEIGHING + shared.NO_MASK


def self_attention(learned, x):
    context = x
    query = x @ learned.W_query
    key = context @ learned.W_key
    value = context @ learned.W_value
    width = query.shape[-1]
    products = query @ key.mT
    scores = products / width**0.5
    hidden = scores
    dim = -1
    soft = softmax_of(hidden, dim)
    weights = soft
    output = weights @ value
    return output


exercise_4_2 = Exercise(
    id="4.2",
    right=self_attention,
    course=attention.SelfAttention,
    class_signature="SelfAttention(d_in, d_out)",
    returns="from x (…, T, d_in) the output (…, T, d_out), with the learned matrices W_query, W_key, W_value",
    projections=QKV,
    probes=[no_gradient, changes_in_training, created_in_order],
    mistakes=IN_MODULE,
    cases=[
        Case(draw(7, 3, scale=3.0), build=(3, 5)),
        Case(draw(2, 7, 3, scale=3.0), build=(3, 5)),
        Case(draw(2, 3, 7, 11, scale=2.0), build=(11, 5), note="two leading axes"),
        Case(FAR * draw(5, 3, 3), build=(3, 5), note="large scores"),
    ],
)
