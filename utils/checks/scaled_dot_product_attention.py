"""Exercises of notebook 04: scaled dot-product attention and self-attention."""

import torch

from utils.checks import attention_steps as of_attention
from utils.checks.attention_steps import PROJECTED, by_torch, project, size, steps
from utils.checks.draw import draws, rows_sum_to_one, samples_stay_apart, special
from utils.checks.engine import Exercise, case
from utils.checks.modules import QKV, ModuleExercise
from utils.checks.steps import Forms, texts_of
from utils.checks.training_facts import changes_in_training, no_gradient

TEXTS = texts_of(__file__)
draw = draws(4)

# One token is far shorter than the others, whose scores make exp() overflow: neither
# no maximum nor one for all rows will do.
FAR = torch.tensor([[1.0], [60.0], [60.0]])


# --- 4.1 --------------------------------------------------------------------------

OF_WEIGHTS = (
    *(of_attention.AXIS, of_attention.SOFTMAX, of_attention.SCORE),
    *(of_attention.AVERAGE, of_attention.NO_MASK),
)
SIZES = [
    *of_attention.SIZES,
    size("scale-of-first-axis", "len(query)", lambda s: s.query.shape[0]),
    size("scale-of-first-axis", "len(key)", lambda s: s.key.shape[0]),
    size("scale-of-second-axis", "query.shape[1]", lambda s: s.query.shape[1]),
]


def not_the_same_twice(attention):
    """Name a result that depends on chance."""
    inputs = draws(41)(3, 7, 5).unbind()
    torch.default_generator.manual_seed(789)
    first, again = (attention(*map(torch.clone, inputs))[1] for _ in range(2))
    same = torch.allclose(first, again, equal_nan=True)
    return None if same else TEXTS["FACTS"].name("random-result")


attention = Exercise(
    id="4.1",
    **TEXTS["4.1"],
    parts=("output", "weights"),
    oracle=by_torch,
    properties=[rows_sum_to_one(lambda value: value[1]), samples_stay_apart],
    facts=[not_the_same_twice],
    pipeline=of_attention.attention(
        lambda query, key, value: {"query": query, "key": key, "value": value},
        steps(give=lambda s: (s.output, s.weights)),
        *(of_attention.RETURN_BOTH, of_attention.SCALE, SIZES, *OF_WEIGHTS),
        words=TEXTS["WORDS"]["of_function"],
    ),
    cases=[
        case(draw(3, 5), draw(7, 5), draw(7, 2)),
        case(draw(2, 5, 3), draw(2, 7, 3), draw(2, 7, 11)),
        case(draw(5, 3), draw(5, 3), draw(5, 3), note="T = S and d_v = d_k"),
        case(draw(2, 3, 5, 7), draw(2, 3, 11, 7), draw(2, 3, 11, 13)),
        special("large scores", 3 * FAR * draw(2, 3, 5), draw(2, 7, 5), draw(2, 7, 3)),
        special("one token", draw(1, 5), draw(1, 5), draw(1, 3)),
    ],
)


# --- 4.2 --------------------------------------------------------------------------


def three_axes(s):
    batch, num_tokens, d_in = s.x.shape
    return s.x @ s.learned.W_query


def created_in_order(module, weights):
    """Name matrices made in another order: the same seed gives them other numbers."""
    made = [name.partition(".")[0] for name, _ in module.named_parameters()]
    made = [name for name in dict.fromkeys(made) if name in QKV]
    if made == [*QKV]:
        return None
    return TEXTS["FACTS"].name("created-in-another-order", made=", ".join(made))


OWN = Forms(TEXTS["OWN"])
OWN.append(size("scale-of-input-width", "d_in", lambda s: s.x.shape[-1]))
OWN.wrong("three-axes-only", query=three_axes)
self_attention = ModuleExercise(
    id="4.2",
    **TEXTS["4.2"],
    oracle=lambda weights, x: by_torch(*project(weights, x))[0],
    when_right=[no_gradient, changes_in_training, created_in_order],
    pipeline=of_attention.attention(
        of_attention.of_module,
        steps(**PROJECTED),
        *(OWN, of_attention.RETURN_OUTPUT, of_attention.PROJECT),
        *(of_attention.SCALE, SIZES, *OF_WEIGHTS),
        without=("scale-of-values", "scale-of-keys"),  # d_v = d_k and S = T here
        renamed={"last-token-only": "last-query-alone"},
        words=TEXTS["WORDS"]["of_module"],
    ),
    cases=[
        case(draw(7, 3, scale=3.0), build=(3, 5)),
        case(draw(2, 7, 3, scale=3.0), build=(3, 5)),
        case(draw(2, 11, 3, scale=3.0), build=(3, 5), note="another length"),
        case(draw(2, 3, 7, 11, scale=2.0), build=(11, 5), note="two leading axes"),
        case(draw(7, 5, scale=2.0), build=(5, 2), note="d_out below d_in"),
        special("large scores", FAR * draw(5, 3, 3), build=(3, 5)),
        special("one token", draw(1, 3), build=(3, 5)),
    ],
)

EXERCISES = [attention, self_attention]
