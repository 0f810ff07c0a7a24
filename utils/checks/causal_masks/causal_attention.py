"""Exercise 5.5: a causal layer of attention with dropout."""

import torch

from utils.checks import attention_masks as of_masks
from utils.checks import attention_steps as of_attention
from utils.checks.attention_steps import PROJECTED, by_torch, lower, project, steps
from utils.checks.draw import draws, past_stays, samples_stay_apart, special
from utils.checks.engine import case
from utils.checks.modules import ModuleExercise
from utils.checks.steps import Forms, texts_of
from utils.checks.training_facts import TRAINING_FACTS, sentences

TEXTS = texts_of(__file__)
draw = draws(55)


def right_layer(weights, x):
    return by_torch(*project(weights, x), lower(x.shape[-2]))[0]


def batch_joined(s):
    """Let the sentences of a batch follow each other as one long text."""
    return right_layer(s.learned, s.x.flatten(0, 1)).unflatten(0, s.x.shape[:2])


def projected_again(module, weights):
    """Name a layer through which the right output goes."""
    x = sentences(weights)
    attended = right_layer(weights, x)
    for name, layer in module.named_children():
        if not hasattr(weights, name) and any(True for _ in layer.parameters()):
            if torch.allclose(layer(attended), module(x), atol=1e-4):
                return TEXTS["FACTS"].name("unasked-projection", name=name)
    return None


OWN = Forms(TEXTS["OWN"])
OWN.wrong("softmax-over-batch", axis=lambda s: 0)
OWN.wrong("batch-joined", give=batch_joined)
LONG, NARROW = (3, 5, 11, 0.2), (7, 2, 5, 0.2)

causal_attention = ModuleExercise(
    id="5.5",
    **TEXTS["5.5"],
    oracle=right_layer,
    properties=[past_stays, samples_stay_apart],
    facts=[projected_again],
    when_right=TRAINING_FACTS,
    pipeline=of_attention.attention(
        of_attention.of_module,
        steps(**PROJECTED, mask=of_attention.triangle),
        *(of_masks.CAUSAL, of_masks.HIDE, of_masks.CUT, OWN, of_attention.AXIS),
        *(of_attention.SCALE, of_masks.SIZES, of_attention.SCORE, of_attention.PROJECT),
        *(of_attention.RETURN_OUTPUT, of_attention.SOFTMAX, of_attention.AVERAGE),
        without=(
            *("axis-left-open", "fixed-axis", "mask-sliced-by-heads"),
            "queries-not-projected",  # fails as keys that are not projected do
            of_attention.ONE_LEADING_AXIS,  # as there is here
        ),
        harmless=of_masks.HARMLESS,
        words=TEXTS["WORDS"] | of_masks.OF_BUILD,
    ),
    cases=[
        case(draw(2, 7, 3, scale=2.0), build=LONG),
        case(draw(2, 11, 3, scale=2.0), build=LONG, note="the full length"),
        case(draw(5, 3, 3, scale=2.0), build=LONG, note="a shorter length"),
        case(draw(3, 3, 7, scale=2.0), build=NARROW, note="d_out below d_in, B = T"),
        case(draw(2, 5, 7, scale=2.0), build=NARROW, note="the full length"),
        special("large scores", draw(13, 2, 7, scale=300.0), build=NARROW),
        special("one token", draw(2, 1, 3), build=LONG),
    ],
)
