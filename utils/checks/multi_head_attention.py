"""Exercises of notebook 06: splitting and merging heads, multi-head attention."""

import torch
from torch.nn.functional import linear

from utils.checks import attention_heads as of_heads
from utils.checks import attention_masks as of_masks
from utils.checks import attention_steps as of_attention
from utils.checks.attention_heads import num_heads, right_merge, right_split
from utils.checks.attention_steps import PROJECTED, lower, project, size, steps
from utils.checks.draw import came_from, draws, past_stays, samples_stay_apart, special
from utils.checks.engine import Exercise, case
from utils.checks.modules import QKV, ModuleExercise
from utils.checks.steps import Forms, texts_of
from utils.checks.training_facts import TRAINING_FACTS

TEXTS = texts_of(__file__)
draw = draws(6)

LEGIBLE = "entry = 10 × token + feature"


def legible(num_tokens, width):
    """Return `(1, T, D)` in which each entry says where it stands."""
    tokens = 10.0 * torch.arange(num_tokens)[:, None]
    return (tokens + torch.arange(width))[None]


# --- 6.1 --------------------------------------------------------------------------


def right_split_or_refusal(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError
    return right_split(x, num_heads)


REFUSED = TEXTS["REFUSED"]
REFUSAL = {"raises": ValueError, "otherwise": REFUSED.name("width-not-divided")}
split_heads = Exercise(
    id="6.1",
    **TEXTS["6.1"],
    oracle=right_split_or_refusal,
    properties=[came_from("sample", "token", "feature")],
    pipeline=of_heads.SPLITTING,
    cases=[
        case(legible(5, 6), 2, note=LEGIBLE),
        case(draw(2, 7, 15), 3),
        case(draw(3, 5, 14), 2),
        case(draw(2, 3, 35), 5, note="more heads than tokens"),
        case(draw(2, 5, 7), 1, note="one head"),
        case(draw(3, 1, 10), 2, note="one token"),
        case(draw(2, 5, 7), 3, note="3 heads do not divide 7 features", **REFUSAL),
    ],
)


# --- 6.2 --------------------------------------------------------------------------

merge_heads = Exercise(
    id="6.2",
    **TEXTS["6.2"],
    oracle=right_merge,
    properties=[came_from("sample", "head", "token", "feature")],
    pipeline=of_heads.MERGING,
    cases=[
        case(right_split(legible(5, 6), 2).contiguous(), note=LEGIBLE),
        case(draw(2, 3, 7, 5)),
        case(draw(3, 2, 5, 7)),
        case(draw(2, 5, 3, 7), note="more heads than tokens"),
        case(draw(2, 1, 5, 7), note="one head"),
        case(draw(3, 2, 1, 5), note="one token"),
    ],
)


# --- 6.3 --------------------------------------------------------------------------


def right_layer(weights, x):
    parts = (right_split(part, weights.build[4]) for part in project(weights, x))
    merged = right_merge(of_attention.by_torch(*parts, lower(x.shape[1]))[0])
    return linear(merged, weights.out_proj.mT, weights.out_proj_bias)


def samples_as_tokens(s):
    """Return what the right layer gives where batch and tokens change places."""
    return right_layer(s.learned, s.x.transpose(0, 1)).transpose(0, 1)


SIZES = [
    *of_masks.SIZES,
    size("scale-of-all-heads", "d_out", lambda s: s.learned.build[1]),
    size("scale-of-number-of-heads", "H", num_heads),
]
OWN = Forms(TEXTS["OWN"])
for mended in ({}, {"clear": lambda s: s.soft.nan_to_num(0.0)}):
    OWN.wrong("softmax-over-heads", axis=lambda s: 1, **mended)
    OWN.wrong("softmax-over-batch", axis=lambda s: 0, **mended)
OWN.wrong("always-refused", out_weight=of_heads.refused)
OWN.wrong("batch-for-tokens", give=samples_as_tokens)
BUILD, OTHER = (11, 15, 13, 0.2, 3), (5, 14, 17, 0.0, 2)
UNEVEN = (3, 8, 7, 0.0, 3)
IN_INIT = REFUSED.name("width-not-divided 2")
# Long tokens, nearly alike within a sentence: every score is large, none decides all.
LARGE = draw(2, 5, 11, scale=0.1) + 30 * draw(2, 1, 11).sign()


def where_to_look(evidence):
    """Property: say which steps are right, from the token that sees itself alone."""
    got, expected = (value[:, 0] for value in (evidence.got, evidence.expected))
    right = torch.allclose(got.double(), expected.double(), atol=1e-4)
    return TEXTS["TOKEN_0"]["right" if right else "wrong"]


multi_head_attention = ModuleExercise(
    id="6.3",
    **TEXTS["6.3"],
    oracle=right_layer,
    projections=(*QKV, "out_proj"),
    when_right=TRAINING_FACTS,
    properties=[past_stays, samples_stay_apart, where_to_look],
    pipeline=of_attention.attention(
        of_attention.of_module,
        steps(**PROJECTED, **of_heads.HEADS, mask=of_attention.triangle),
        *(of_attention.SCALE, SIZES, OWN, of_masks.CAUSAL, of_masks.HIDE, of_masks.CUT),
        *(of_attention.AXIS, of_attention.SOFTMAX, of_heads.SPLIT, of_heads.MERGE),
        *(of_attention.SCORE, of_heads.OUT, of_attention.PROJECT, of_attention.AVERAGE),
        of_attention.RETURN_OUTPUT,
        without=(
            *("axis-left-open", "fixed-axis", "mask-sliced-by-width"),
            "global-maximum-subtracted",  # gives what no maximum gives
            "queries-not-projected",  # fails as keys that are not projected do
            of_attention.TWO_LEADING_AXES,  # as there are here
        ),
        renamed={"maximum-not-subtracted": "softmax-overflows"},
        harmless=of_masks.HARMLESS,
        words=TEXTS["WORDS"] | of_masks.OF_BUILD | of_heads.OF_HEADS,
    ),
    cases=[
        case(draw(2, 7, 11), build=BUILD),
        case(draw(2, 5, 11), build=BUILD, note="another length"),
        case(draw(2, 13, 11), build=BUILD, note="as long as context_length"),
        case(draw(3, 11, 5), build=OTHER),
        case(draw(2, 5, 7, scale=3.0), build=(7, 3, 11, 0.0, 1), note="one head"),
        special("one token", draw(1, 1, 5), build=(5, 14, 1, 0.0, 2)),
        special("large scores", LARGE, build=BUILD),
        special(
            "one score far above the others", draw(13, 2, 5, scale=300.0), build=OTHER
        ),
        case(draw(2, 5, 3), build=UNEVEN, raises=ValueError, otherwise=IN_INIT),
    ],
)

EXERCISES = [split_heads, merge_heads, multi_head_attention]
