"""Exercises of notebook 06: splitting and merging heads, multi-head attention."""

import torch

from utils.checks import attention_heads as of_heads
from utils.checks import attention_masks as of_masks
from utils.checks import attention_steps as of_attention
from utils.checks.attention_heads import (
    exchanged_split,
    interleaved_split,
    merge_by_view,
    merged_after,
    num_heads,
    overlapping_split,
    repeated_split,
    right_merge,
    right_split,
    slices,
    split_by_view,
    split_mixing_samples,
    view_not_contiguous,
)
from utils.checks.attention_steps import (
    FACTS,
    GIVES,
    PROJECTED,
    forms_of,
    of_module,
    project,
    size,
    steps,
    triangle,
)
from utils.checks.draw import came_from, draws, past_stays, samples_stay_apart
from utils.checks.engine import Exercise, Mistake, Mistakes, case, mistakes_of
from utils.checks.modules import QKV, ModuleExercise
from utils.checks.steps import Pipeline, form
from utils.checks.training_facts import (
    TRAINING_FACTS,
    fails_in_half,
    future_in_training,
    mask_is_trained,
)

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


def split_after_transpose(x, num_heads):
    return split_by_view(x.mT.contiguous().view(x.shape), num_heads)


def split_of_all_axes_turned(x, num_heads):
    return split_by_view(x.permute(2, 1, 0).reshape(x.shape), num_heads)


def view_after_transpose(x, num_heads):
    batch, num_tokens, width = x.shape
    return x.transpose(1, 2).view(batch, num_heads, num_tokens, width // num_heads)


def shortened_split(x, num_heads):
    return slices(x, num_heads, lambda head, width: head * width, lost=1)


def split_from_one(x, num_heads):
    return slices(x, num_heads, lambda head, width: (head + 1) * width)


def reversed_split(x, num_heads):
    return right_split(x, num_heads).flip(1)


def tokens_by_view(x, num_heads):
    batch, num_tokens, width = x.shape
    return x.view(batch, num_heads, num_tokens // num_heads, width)


def fraction(method):
    """Return the split whose head width is a float."""

    def compute(x, num_heads):
        size = (*x.shape[:-1], num_heads, x.shape[-1] / num_heads)
        return getattr(x, method)(*size).transpose(1, 2)

    return compute


def moved(*order):
    """Return the split whose axes B, T, H, K end in another order."""
    return lambda x, num_heads: x.unflatten(-1, (num_heads, -1)).permute(order)


SPLIT_HEADS_MISTAKES = Mistakes()
SPLIT_HEADS_MISTAKES.add(
    "split-by-view",
    split_by_view,
    "view(B, H, T, K) deals out the numbers in the order in which they lie in memory, "
    "so a row of a head holds what belongs to other tokens or heads. Cut the last "
    "axis alone and leave the others where they are: they change places afterwards.",
)
SPLIT_HEADS_MISTAKES.extend(
    Mistake(
        "split-after-transpose",
        compute,
        "The tokens and the features of x change places first, then a view cuts the "
        "result across both. The other way round: cut the features first, then let "
        "axes change places.",
    )
    for compute in (split_after_transpose, split_of_all_axes_turned)
)
SPLIT_HEADS_MISTAKES.add(
    "split-after-transpose",
    view_after_transpose,
    "After transpose the numbers no longer lie in the order that view needs. The "
    "error advises reshape, which would scramble tokens and features: cut the "
    "features first, then let axes change places.",
)
SPLIT_HEADS_MISTAKES.add(
    "features-interleaved",
    interleaved_split,
    lambda e: (
        f"Head 0 takes the features 0, {e.args[1]}, {2 * e.args[1]} …; a head "
        "owns features that follow each other, h*K … (h+1)*K - 1. In which "
        "order do the two new axes stand in the view?"
    ),
)
SPLIT_HEADS_MISTAKES.add(
    "heads-and-width-exchanged",
    exchanged_split,
    lambda e: (
        f"There are {e.got.shape[1]} heads of {e.got.shape[3]} features: "
        f"num_heads = {e.args[1]} was taken for the width of a head. The width "
        f"is K = {e.args[0].shape[-1]} // {e.args[1]}."
    ),
)
SPLIT_HEADS_MISTAKES.add(
    "axes-not-swapped",
    moved(0, 1, 2, 3),
    "The features are cut rightly, but the axes are (B, T, H, K): each head is to "
    "have a matrix of tokens of its own, so two axes change places.",
)
SPLIT_HEADS_MISTAKES.add(
    "heads-before-batch",
    moved(2, 0, 1, 3),
    "The heads are right, but their axis comes first, (H, B, T, K): it belongs after "
    "the batch; with torch.stack that is dim=1.",
)
SPLIT_HEADS_MISTAKES.add(
    "tokens-before-batch",
    moved(1, 0, 2, 3),
    "The axes are (T, B, H, K): the batch stays first; the tokens change places with "
    "another axis.",
)
SPLIT_HEADS_MISTAKES.add(
    "heads-last",
    moved(0, 1, 3, 2),
    "The heads are right, but their axis comes last, (B, T, K, H): it belongs after "
    "the batch; with torch.stack that is dim=1.",
)
SPLIT_HEADS_MISTAKES.add(
    "tokens-last",
    moved(0, 2, 3, 1),
    "The axes are (B, H, K, T), as the keys need them for the scores alone: return "
    "(B, H, T, K) and transpose where the scores are made.",
)
SPLIT_HEADS_MISTAKES.add(
    "width-before-tokens",
    moved(0, 3, 1, 2),
    "The features are cut rightly, but the axes end as (B, K, T, H): the axis that "
    "moves in front of the tokens is that of the heads.",
)
SPLIT_HEADS_MISTAKES.add(
    "heads-in-batch",
    lambda x, num_heads: right_split(x, num_heads).flatten(0, 1),
    "The heads are right, but batch and heads share one axis, (B*H, T, K): keep them "
    "apart, (B, H, T, K).",
)
SPLIT_HEADS_MISTAKES.add(
    "heads-in-batch",
    lambda x, num_heads: moved(2, 0, 1, 3)(x, num_heads).flatten(0, 1),
    "The heads are right, but heads and batch share one axis, (H*B, T, K): put the "
    "heads on an axis of their own, (B, H, T, K).",
)
SPLIT_HEADS_MISTAKES.add(
    "list-of-heads",
    lambda x, num_heads: list(right_split(x, num_heads).unbind(1)),
    "The pieces are right, but they are a list: put them on a new axis, "
    "torch.stack(heads, dim=1).",
)
SPLIT_HEADS_MISTAKES.add(
    "list-of-heads",
    lambda x, num_heads: right_split(x, num_heads).unbind(1),
    "The pieces are right, but they are a tuple: put them on a new axis, "
    "torch.stack(heads, dim=1).",
)
SPLIT_HEADS_MISTAKES.add(
    "full-width-per-head",
    lambda x, num_heads: x.unsqueeze(1).expand(-1, num_heads, -1, -1),
    lambda e: (
        f"Each head gets all {e.args[0].shape[-1]} features: the heads share "
        f"them, {e.args[0].shape[-1]} // {e.args[1]} for each."
    ),
)
SPLIT_HEADS_MISTAKES.add(
    "heads-overlap",
    overlapping_split,
    "Head h begins at feature h, so neighbouring heads overlap: it begins at h*K, the "
    "slice is h*K : (h+1)*K.",
)
SPLIT_HEADS_MISTAKES.add(
    "heads-from-one",
    split_from_one,
    "The slices begin one head too late and the last one is empty: heads count from "
    "0, range(num_heads).",
)
SPLIT_HEADS_MISTAKES.add(
    "last-feature-lost",
    shortened_split,
    "Each head lacks its last feature: a slice ends before its second number, so it "
    "is h*K : (h+1)*K, without - 1.",
)
SPLIT_HEADS_MISTAKES.add(
    "one-head-repeated",
    repeated_split,
    "All heads hold the features of head 0: the slice must move with h, h*K : (h+1)*K.",
)
SPLIT_HEADS_MISTAKES.add(
    "heads-reversed",
    reversed_split,
    "The heads are right, in reverse order: head 0 owns the first features.",
)
SPLIT_HEADS_MISTAKES.add(
    "samples-mixed",
    split_mixing_samples,
    "view(H, B, T, K) cuts across the samples of the batch: the batch stays the first "
    "axis, and only the last one is cut.",
)
SPLIT_HEADS_MISTAKES.add(
    "tokens-shared-out",
    lambda x, num_heads: torch.stack(x.chunk(num_heads, dim=1), dim=1),
    "The tokens are shared out among the heads: every head sees all tokens, and a "
    "part of the features. Cut the last axis, dim=-1.",
)
SPLIT_HEADS_MISTAKES.add(
    "tokens-shared-out",
    tokens_by_view,
    "The tokens are shared out among the heads, T // H for each: every head sees all "
    "tokens, and D // H of the features.",
)
SPLIT_HEADS_MISTAKES.add(
    "width-is-a-float",
    fraction("view"),
    "In Python / gives a float, even where it comes out even, and a size must be an "
    "integer: K = D // num_heads.",
)
SPLIT_HEADS_MISTAKES.add(
    "width-is-a-float",
    fraction("reshape"),
    "In Python / gives a float, even where it comes out even, and a size must be an "
    "integer: K = D // num_heads.",
)
SPLIT_HEADS_MISTAKES.add(
    "size-one-axes-dropped",
    lambda x, num_heads: right_split(x, num_heads).squeeze(),
    "squeeze() drops every axis of size 1, so one sentence, one head or one token "
    "changes the shape: leave it out.",
)
split_heads = Exercise(
    id="6.1",
    signature="split_heads(x, num_heads)",
    returns="for x (B, T, D) the heads (B, H, T, K), head h with the features "
    "h*K … (h+1)*K - 1, and that raises an error where D is not divisible by H",
    oracle=right_split_or_refusal,
    properties=[came_from("sample", "token", "feature")],
    cases=[
        case(legible(5, 6), 2, note=LEGIBLE),
        case(draw(2, 7, 15), 3),
        case(draw(3, 5, 14), 2),
        case(draw(2, 3, 35), 5, note="more heads than tokens"),
        case(draw(2, 5, 7), 1, note="one head"),
        case(draw(3, 1, 10), 2, note="one token"),
        case(
            draw(2, 5, 8),
            3,
            note="3 heads do not divide 8 features",
            raises=ValueError,
            otherwise=(
                "width-not-divided",
                "8 features cannot be shared out evenly among 3 heads, and rounding "
                "loses some or invents a head: raise a ValueError.",
            ),
        ),
    ],
    mistakes=SPLIT_HEADS_MISTAKES,
)


# --- 6.2 --------------------------------------------------------------------------


def sizes_misread(x):
    batch, num_tokens, num_heads, width = x.shape  # as if x were (B, T, H, K)
    return x.transpose(1, 2).reshape(batch, num_tokens, num_heads * width)


MERGE_HEADS_MISTAKES = Mistakes()
MERGE_HEADS_MISTAKES.add(
    "merge-without-transpose",
    merge_by_view,
    "The shape is right, but a row holds several tokens of one head, because the "
    "numbers lie head by head in memory. First transpose(1, 2), so that the heads of "
    "a token become neighbours, then reshape.",
)
MERGE_HEADS_MISTAKES.add(
    "view-not-contiguous",
    view_not_contiguous,
    "The steps are right, but after transpose the numbers do not lie in the order "
    "that view needs: use reshape, flatten(2), or contiguous() first.",
)
MERGE_HEADS_MISTAKES.add(
    "heads-summed",
    lambda x: x.sum(1),
    "The heads are added up, so a token keeps K features: put them side by side, H*K "
    "features.",
)
MERGE_HEADS_MISTAKES.add(
    "heads-averaged",
    lambda x: x.mean(1),
    "The heads are averaged, so a token keeps K features: put them side by side, H*K "
    "features.",
)
MERGE_HEADS_MISTAKES.add(
    "one-head-kept",
    lambda x: x[:, 0],
    "This is head 0 alone: put all heads side by side, H*K features.",
)
MERGE_HEADS_MISTAKES.add(
    "one-head-kept",
    lambda x: x[:, -1],
    "This is the last head alone: put all heads side by side, H*K features.",
)
MERGE_HEADS_MISTAKES.add(
    "samples-side-by-side",
    lambda x: torch.cat([*x], dim=-1),
    "A loop over x goes over its first axis, the batch, so samples stand side by "
    "side: the heads are x[:, h], or x.unbind(dim=1).",
)
MERGE_HEADS_MISTAKES.add(
    "batch-and-tokens-merged",
    lambda x: right_merge(x).flatten(0, 1),
    "The heads of a token stand side by side rightly, but batch and tokens became one "
    "axis, (B*T, H*K): reshape(B, T, H*K) keeps them apart.",
)
MERGE_HEADS_MISTAKES.add(
    "all-merged",
    lambda x: x.flatten(1),
    "flatten(1) makes one axis of all but the batch: first transpose(1, 2), then "
    "flatten(2), which takes the last two alone.",
)
MERGE_HEADS_MISTAKES.add(
    "axes-not-merged",
    lambda x: x.transpose(1, 2),
    "The axes are in the right order, (B, T, H, K), but still four: make one of the "
    "last two, flatten(2) or reshape(B, T, H*K).",
)
MERGE_HEADS_MISTAKES.add(
    "merge-interleaved",
    merged_after(0, 2, 3, 1),
    "The first features of all heads come first, then the second ones: each head "
    "stays together. The axes before the reshape are (B, T, H, K), or torch.cat(…, "
    "dim=-1) instead of a stack.",
)
MERGE_HEADS_MISTAKES.add(
    "batch-and-heads-merged",
    lambda x: x.flatten(0, 1),
    "Batch and heads became one axis, (B*H, T, K): H and K are the two to merge. "
    "First transpose(1, 2), then flatten(2).",
)
MERGE_HEADS_MISTAKES.add(
    "heads-under-each-other",
    lambda x: x.flatten(1, 2),
    "The heads stand one below the other, (B, H*T, K), as if there were more tokens: "
    "put them side by side, along the features. With torch.cat that is dim=-1; "
    "otherwise transpose(1, 2) before the reshape.",
)
MERGE_HEADS_MISTAKES.add(
    "tokens-merged",
    lambda x: x.flatten(2),
    "T and K became one axis, (B, H, T*K): H and K are the two to merge. First "
    "transpose(1, 2), then flatten(2).",
)
MERGE_HEADS_MISTAKES.add(
    "sizes-misread",
    sizes_misread,
    "The second axis of x is H and the third T, (B, H, T, K); here the sizes are read "
    "as B, T, H, K. Unpack them in the order of x.",
)
MERGE_HEADS_MISTAKES.add(
    "samples-mixed",
    merged_after(2, 0, 1, 3),
    "The axes before the reshape are (T, B, H, K), so a sample gets rows of others: "
    "the batch stays first, transpose(1, 2) moves H and T alone.",
)
MERGE_HEADS_MISTAKES.add(
    "samples-mixed",
    merged_after(1, 2, 0, 3),
    "The axes before the reshape are (H, T, B, K), so samples and heads mix: the "
    "batch stays first, transpose(1, 2) moves H and T alone.",
)
MERGE_HEADS_MISTAKES.add(
    "samples-mixed",
    merged_after(1, 0, 2, 3),
    "The axes before the reshape are (H, B, T, K), so samples and heads mix: the "
    "batch stays first, transpose(1, 2) moves H and T alone.",
)
MERGE_HEADS_MISTAKES.add(
    "wrong-axes-transposed",
    merged_after(0, 1, 3, 2),
    "The last two axes, T and K, change places before the reshape: the heads and the "
    "tokens are to change, transpose(1, 2).",
)
MERGE_HEADS_MISTAKES.add(
    "wrong-axes-transposed",
    merged_after(0, 3, 2, 1),
    "The axes 1 and 3, H and K, change places before the reshape: the heads and the "
    "tokens are to change, transpose(1, 2).",
)
MERGE_HEADS_MISTAKES.add(
    "features-before-tokens",
    lambda x: right_merge(x).mT,
    "The heads are put together rightly, but the axes are (B, H*K, T): the features "
    "come last.",
)
MERGE_HEADS_MISTAKES.add(
    "heads-reversed",
    lambda x: right_merge(x.flip(1)),
    "The heads stand in reverse order: head 0 owns the first features.",
)
MERGE_HEADS_MISTAKES.add(
    "size-one-axes-dropped",
    lambda x: right_merge(x).squeeze(),
    "squeeze() drops every axis of size 1, so one sentence or one token changes the "
    "shape: leave it out.",
)
merge_heads = Exercise(
    id="6.2",
    signature="merge_heads(x)",
    returns="for the heads x (B, H, T, K) the tensor (B, T, H*K) in which the heads of "
    "a token stand side by side, head 0 first: the inverse of split_heads",
    oracle=right_merge,
    properties=[came_from("sample", "head", "token", "feature")],
    cases=[
        case(right_split(legible(5, 6), 2).contiguous(), note=LEGIBLE),
        case(draw(2, 3, 7, 5)),
        case(draw(3, 2, 5, 7)),
        case(draw(2, 5, 3, 7), note="more heads than tokens"),
        case(draw(2, 1, 5, 7), note="one head"),
        case(draw(3, 2, 1, 5), note="one token"),
    ],
    mistakes=MERGE_HEADS_MISTAKES,
)


# --- 6.3 --------------------------------------------------------------------------


def right_layer(weights, x):
    parts = (part.double() for part in project(weights, x))
    query, key, value = (right_split(part, weights.build[4]) for part in parts)
    context = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, is_causal=True
    )
    merged = right_merge(context).to(x.dtype)
    return torch.nn.functional.linear(
        merged, weights.out_proj.mT, weights.out_proj_bias
    )


def batch_for_tokens(weights, x):
    return pipeline.run((weights, x.transpose(0, 1))).transpose(0, 1)


def always_refused(*args):
    raise ValueError


OWN = [
    size("scale-of-all-heads", "d_out", lambda s: s.learned.build[1]),
    size("scale-of-input-width", "d_in", lambda s: s.learned.build[0]),
    size("scale-of-tokens", "T", lambda s: s.x.shape[1]),
    size("scale-of-context-length", "context_length", lambda s: s.learned.build[2]),
    size("scale-of-number-of-heads", "H", num_heads),
    size("scale-of-batch", "B", lambda s: s.x.shape[0]),
]
OTHER_AXES = [
    form(slug, text, axis=lambda s, axis=axis: axis, **more)
    for slug, axis, text in (
        (
            "softmax-over-heads",
            1,
            "The softmax runs over axis 1, the heads (softmax picks that axis, too, "
            "where dim is left out): the weights of one pair of tokens sum to 1 over "
            "the heads. Use dim=-1, the keys.",
        ),
        (
            "softmax-over-batch",
            0,
            "The softmax runs over axis 0, the batch, so the samples mix: use dim=-1, "
            "the keys.",
        ),
    )
    for more in ({}, {"clear": lambda s: s.soft.nan_to_num(0.0)})
]
STEPS = steps(**PROJECTED, **of_heads.HEADS, mask=triangle)
pipeline = Pipeline(
    start=of_module,
    steps=STEPS,
    gives=GIVES,
    forms=forms_of(
        STEPS,
        of_attention.SCALE,
        OWN,
        OTHER_AXES,
        of_masks.CAUSAL,
        of_masks.HIDE,
        of_masks.CUT,
        of_attention.AXIS,
        of_attention.SOFTMAX,
        of_heads.SPLIT,
        of_heads.MERGE,
        of_attention.SCORE,
        of_heads.PROJECT_OUT,
        of_attention.PROJECT,
        of_attention.AVERAGE,
        of_attention.UNIFORM,
        of_attention.RETURN_OUTPUT,
        without=(
            "axis-left-open",
            "fixed-axis",
            "mask-sliced-by-width",
            "global-maximum-subtracted",  # gives what no maximum gives
            "queries-not-projected",  # fails as keys that are not projected do
            of_attention.TWO_LEADING_AXES,  # as there are here
        ),
        renamed={"maximum-not-subtracted": "softmax-overflows"},
    ),
    harmless=of_masks.HARMLESS,
    words={
        "width": "K",
        "root": "√K",
        "source": "x",
        "average_value": "average the values, x @ W_value",
    },
    facts=FACTS | of_masks.OF_BUILD | of_heads.OF_HEADS,
)
BUILD = (11, 15, 13, 0.2, 3)

# Long tokens, nearly alike within a sentence: every score is large, none decides all.
LARGE = draw(2, 5, 11, scale=0.1) + 30 * draw(2, 1, 11).sign()


def where_to_look(evidence):
    """Property: say which steps are right, from the token that sees itself alone."""
    got, expected = (value[:, 0] for value in (evidence.got, evidence.expected))
    if torch.allclose(got.double(), expected.double(), atol=1e-4):
        return (
            "Token 0 is right, and it sees itself alone: values, merge and out_proj "
            "are fine. What differs is how tokens are weighed: the features of a "
            "head, the scale, the mask or the softmax."
        )
    return (
        "Token 0 is wrong already, which sees itself alone, with weight 1: look at "
        "the values, at splitting and merging, at out_proj, and at the mask."
    )


multi_head_attention = ModuleExercise(
    id="6.3",
    signature="MultiHeadAttention(d_in, d_out, context_length, dropout, num_heads)",
    returns="from x (B, T, d_in) the output (B, T, d_out), with the learned matrices "
    "W_query, W_key, W_value (d_in to d_out, the width of all heads together) and "
    "out_proj (d_out to d_out)",
    oracle=right_layer,
    projections=(*QKV, "out_proj"),
    facts=[future_in_training, *TRAINING_FACTS, fails_in_half, mask_is_trained],
    properties=[past_stays, samples_stay_apart, where_to_look],
    cases=[
        case(draw(2, 7, 11), build=BUILD),
        case(draw(2, 5, 11), build=BUILD, note="another length"),
        case(
            draw(2, 13, 11),
            build=BUILD,
            note="as long as context_length",
        ),
        case(draw(3, 11, 5), build=(5, 14, 17, 0.0, 2)),
        case(draw(2, 5, 7, scale=3.0), build=(7, 3, 11, 0.0, 1), note="one head"),
        case(draw(1, 1, 5), build=(5, 14, 1, 0.0, 2), note="one token", special=True),
        case(LARGE, build=BUILD, note="large scores", special=True),
        case(
            draw(13, 2, 5, scale=300.0),
            build=(5, 14, 17, 0.0, 2),
            note="one score far above the others",
            special=True,
        ),
        case(
            draw(2, 5, 3),
            build=(3, 8, 7, 0.0, 3),
            raises=ValueError,
            otherwise=(
                "width-not-divided",
                "8 features cannot be shared out evenly among 3 heads: raise a "
                "ValueError in __init__ where d_out % num_heads is not 0.",
            ),
        ),
    ],
    pipeline=pipeline,
    mistakes=mistakes_of(
        pipeline,
        Mistake(
            "batch-for-tokens",
            batch_for_tokens,
            "The samples of the batch attend to each other, the tokens do not: x is "
            "(B, T, d_in), the batch first.",
        ),
        Mistake(
            "always-refused",
            always_refused,
            "15 features and 3 heads divide evenly, and yet there is a ValueError: "
            "raise it only where d_out % num_heads is not 0. The arguments come as "
            "d_in, d_out, context_length, dropout, num_heads.",
        ),
    ),
)

EXERCISES = [split_heads, merge_heads, multi_head_attention]
