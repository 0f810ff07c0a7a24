"""Exercises of notebook 06: splitting and merging heads, multi-head attention."""

import math

import torch
from torch.nn import functional as F

from utils.checks.attention_steps import project
from utils.checks.draw import draws, past_stays, samples_stay_apart, worst_sum
from utils.checks.engine import Exercise, Mistake, case
from utils.checks.modules import ModuleExercise
from utils.checks.training_facts import (
    TRAINING_FACTS,
    fails_in_half,
    mask_is_trained,
    sentences,
)
from utils.checks.values import number

draw = draws(6)

LEGIBLE = "entry = 10 × token + feature"


def legible(num_tokens, width):
    """Return `(1, T, D)` in which each entry says where it stands."""
    tokens = 10.0 * torch.arange(num_tokens)[:, None]
    return (tokens + torch.arange(width))[None]


def came_from(*axes):
    """Return a property: say where in the input the first wrong entry was taken."""

    def named(x, entry):
        found = (x.double() == entry.double()).nonzero()
        if not len(found):
            return None
        return ", ".join(f"{a} {i}" for a, i in zip(axes, found[0].tolist()))

    def look(evidence):
        x, got, expected = evidence.args[0], evidence.got, evidence.expected
        place = (got.double() != expected.double()).nonzero()[0].tolist()
        came, wanted = (named(x, value[(*place,)]) for value in (got, expected))
        if came is None:
            return f"The entry at {place} is none of x: the entries move, unchanged."
        return f"At {place} stands {came} of x. There belongs {wanted}."

    return look


# --- 6.1 --------------------------------------------------------------------------


def right_split(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def split_by_view(x, num_heads):
    batch, num_tokens, width = x.shape
    return x.reshape(batch, num_heads, num_tokens, width // num_heads)


def split_after_transpose(x, num_heads):
    return split_by_view(x.mT.contiguous().view(x.shape), num_heads)


def split_of_all_axes_turned(x, num_heads):
    return split_by_view(x.permute(2, 1, 0).reshape(x.shape), num_heads)


def view_after_transpose(x, num_heads):
    batch, num_tokens, width = x.shape
    return x.transpose(1, 2).view(batch, num_heads, num_tokens, width // num_heads)


def interleaved_split(x, num_heads):
    return x.unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2)


def exchanged_split(x, num_heads):
    return x.unflatten(-1, (-1, num_heads)).transpose(1, 2)


def slices(x, num_heads, start, lost=0):
    """Return heads that begin at `start(head, width)` and lose their last features."""
    width = x.shape[-1] // num_heads
    starts = [start(head, width) for head in range(num_heads)]
    return torch.stack([x[..., s : s + width - lost] for s in starts], dim=1)


def overlapping_split(x, num_heads):
    return slices(x, num_heads, lambda head, width: head)


def repeated_split(x, num_heads):
    return slices(x, num_heads, lambda head, width: 0)


def shortened_split(x, num_heads):
    return slices(x, num_heads, lambda head, width: head * width, lost=1)


def split_from_one(x, num_heads):
    return slices(x, num_heads, lambda head, width: (head + 1) * width)


def reversed_split(x, num_heads):
    return right_split(x, num_heads).flip(1)


def split_mixing_samples(x, num_heads):
    batch, num_tokens, width = x.shape
    heads = x.reshape(num_heads, batch, num_tokens, width // num_heads)
    return heads.transpose(0, 1)


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


split_heads = Exercise(
    id="6.1",
    signature="split_heads(x, num_heads)",
    returns="for x (B, T, D) the heads (B, H, T, K), head h with the features "
    "h*K … (h+1)*K - 1, and that raises an error where D is not divisible by H",
    oracle=right_split,
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
            raises=Exception,
            otherwise=(
                "width-not-divided",
                "8 features cannot be shared out evenly among 3 heads, and rounding "
                "loses some or invents a head: raise a ValueError.",
            ),
        ),
    ],
    mistakes=[
        Mistake(
            "split-by-view",
            split_by_view,
            "view(B, H, T, K) deals out the numbers in the order in which they lie in "
            "memory, so a row of a head holds what belongs to other tokens or heads. "
            "Cut the last axis alone, view(B, T, H, K), then transpose(1, 2).",
        ),
        *(
            Mistake(
                "split-after-transpose",
                compute,
                "The tokens and the features of x change places first, then a view "
                "cuts the result across both. Cut the features first, "
                "view(B, T, H, K), then transpose(1, 2).",
            )
            for compute in (split_after_transpose, split_of_all_axes_turned)
        ),
        Mistake(
            "split-after-transpose",
            view_after_transpose,
            "After transpose the numbers no longer lie in the order that view needs. "
            "The error advises reshape, which would scramble tokens and features: cut "
            "first, view(B, T, H, K), then transpose(1, 2).",
        ),
        Mistake(
            "features-interleaved",
            interleaved_split,
            lambda e: (
                f"Head 0 takes the features 0, {e.args[1]}, {2 * e.args[1]} …; a head "
                "owns features that follow each other, h*K … (h+1)*K - 1. In the view "
                "the heads come before the width, view(B, T, H, K)."
            ),
        ),
        Mistake(
            "heads-and-width-exchanged",
            exchanged_split,
            lambda e: (
                f"There are {e.got.shape[1]} heads of {e.got.shape[3]} features: "
                f"num_heads = {e.args[1]} was taken for the width of a head. The width "
                f"is K = {e.args[0].shape[-1]} // {e.args[1]}."
            ),
        ),
        Mistake(
            "axes-not-swapped",
            moved(0, 1, 2, 3),
            "The features are cut rightly, but the axes are (B, T, H, K): add "
            "transpose(1, 2), so that each head has its own matrix of tokens.",
        ),
        Mistake(
            "heads-before-batch",
            moved(2, 0, 1, 3),
            "The heads are right, but their axis comes first, (H, B, T, K): it belongs "
            "after the batch; with torch.stack that is dim=1.",
        ),
        Mistake(
            "tokens-before-batch",
            moved(1, 0, 2, 3),
            "The axes are (T, B, H, K): the batch stays first and the tokens change "
            "places with the heads, transpose(1, 2).",
        ),
        Mistake(
            "heads-last",
            moved(0, 1, 3, 2),
            "The heads are right, but their axis comes last, (B, T, K, H): it belongs "
            "after the batch; with torch.stack that is dim=1.",
        ),
        Mistake(
            "tokens-last",
            moved(0, 2, 3, 1),
            "The axes are (B, H, K, T), as the keys need them for the scores alone: "
            "return (B, H, T, K) and transpose where the scores are made.",
        ),
        Mistake(
            "width-before-tokens",
            moved(0, 3, 1, 2),
            "The features are cut rightly, but the axes end as (B, K, T, H): the axis "
            "that moves in front of the tokens is H, transpose(1, 2).",
        ),
        Mistake(
            "heads-in-batch",
            lambda x, num_heads: right_split(x, num_heads).flatten(0, 1),
            "The heads are right, but batch and heads share one axis, (B*H, T, K): "
            "keep them apart, (B, H, T, K).",
        ),
        Mistake(
            "heads-in-batch",
            lambda x, num_heads: moved(2, 0, 1, 3)(x, num_heads).flatten(0, 1),
            "The heads are right, but heads and batch share one axis, (H*B, T, K): "
            "put the heads on an axis of their own, (B, H, T, K).",
        ),
        Mistake(
            "list-of-heads",
            lambda x, num_heads: list(right_split(x, num_heads).unbind(1)),
            "The pieces are right, but they are a list: put them on a new axis, "
            "torch.stack(heads, dim=1).",
        ),
        Mistake(
            "list-of-heads",
            lambda x, num_heads: right_split(x, num_heads).unbind(1),
            "The pieces are right, but they are a tuple: put them on a new axis, "
            "torch.stack(heads, dim=1).",
        ),
        Mistake(
            "full-width-per-head",
            lambda x, num_heads: x.unsqueeze(1).expand(-1, num_heads, -1, -1),
            lambda e: (
                f"Each head gets all {e.args[0].shape[-1]} features: the heads share "
                f"them, {e.args[0].shape[-1]} // {e.args[1]} for each."
            ),
        ),
        Mistake(
            "heads-overlap",
            overlapping_split,
            "Head h begins at feature h, so neighbouring heads overlap: it begins at "
            "h*K, the slice is h*K : (h+1)*K.",
        ),
        Mistake(
            "heads-from-one",
            split_from_one,
            "The slices begin one head too late and the last one is empty: heads count "
            "from 0, range(num_heads).",
        ),
        Mistake(
            "last-feature-lost",
            shortened_split,
            "Each head lacks its last feature: a slice ends before its second number, "
            "so it is h*K : (h+1)*K, without - 1.",
        ),
        Mistake(
            "one-head-repeated",
            repeated_split,
            "All heads hold the features of head 0: the slice must move with h, "
            "h*K : (h+1)*K.",
        ),
        Mistake(
            "heads-reversed",
            reversed_split,
            "The heads are right, in reverse order: head 0 owns the first features.",
        ),
        Mistake(
            "samples-mixed",
            split_mixing_samples,
            "view(H, B, T, K) cuts across the samples of the batch: the batch stays "
            "the first axis. Cut the last one, view(B, T, H, K), then transpose(1, 2).",
        ),
        Mistake(
            "tokens-shared-out",
            lambda x, num_heads: torch.stack(x.chunk(num_heads, dim=1), dim=1),
            "The tokens are shared out among the heads: every head sees all tokens, "
            "and a part of the features. Cut the last axis, dim=-1.",
        ),
        Mistake(
            "tokens-shared-out",
            tokens_by_view,
            "The tokens are shared out among the heads, T // H for each: every head "
            "sees all tokens, and D // H of the features.",
        ),
        Mistake(
            "width-is-a-float",
            fraction("view"),
            "In Python / gives a float, even where it comes out even, and a size must "
            "be an integer: K = D // num_heads.",
        ),
        Mistake(
            "width-is-a-float",
            fraction("reshape"),
            "In Python / gives a float, even where it comes out even, and a size must "
            "be an integer: K = D // num_heads.",
        ),
        Mistake(
            "size-one-axes-dropped",
            lambda x, num_heads: right_split(x, num_heads).squeeze(),
            "squeeze() drops every axis of size 1, so one sentence, one head or one "
            "token changes the shape: leave it out.",
        ),
    ],
)


# --- 6.2 --------------------------------------------------------------------------


def right_merge(x):
    return x.transpose(1, 2).flatten(2)


def merge_by_view(x):
    batch, num_heads, num_tokens, width = x.shape
    return x.reshape(batch, num_tokens, num_heads * width)


def merged_after(*order):
    """Return the merge that reads the entries with the axes in another order."""

    def compute(x):
        batch, num_heads, num_tokens, width = x.shape
        return x.permute(order).reshape(batch, num_tokens, num_heads * width)

    return compute


def view_not_contiguous(x):
    batch, num_heads, num_tokens, width = x.shape
    return x.transpose(1, 2).view(batch, num_tokens, num_heads * width)


def sizes_misread(x):
    batch, num_tokens, num_heads, width = x.shape  # as if x were (B, T, H, K)
    return x.transpose(1, 2).reshape(batch, num_tokens, num_heads * width)


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
    mistakes=[
        Mistake(
            "merge-without-transpose",
            merge_by_view,
            "The shape is right, but a row holds several tokens of one head, because "
            "the numbers lie head by head in memory. First transpose(1, 2), so that "
            "the heads of a token become neighbours, then reshape.",
        ),
        Mistake(
            "view-not-contiguous",
            view_not_contiguous,
            "The steps are right, but after transpose the numbers do not lie in the "
            "order that view needs: use reshape, flatten(2), or contiguous() first.",
        ),
        Mistake(
            "heads-summed",
            lambda x: x.sum(1),
            "The heads are added up, so a token keeps K features: put them side by "
            "side, H*K features.",
        ),
        Mistake(
            "heads-averaged",
            lambda x: x.mean(1),
            "The heads are averaged, so a token keeps K features: put them side by "
            "side, H*K features.",
        ),
        Mistake(
            "one-head-kept",
            lambda x: x[:, 0],
            "This is head 0 alone: put all heads side by side, H*K features.",
        ),
        Mistake(
            "one-head-kept",
            lambda x: x[:, -1],
            "This is the last head alone: put all heads side by side, H*K features.",
        ),
        Mistake(
            "samples-side-by-side",
            lambda x: torch.cat([*x], dim=-1),
            "A loop over x goes over its first axis, the batch, so samples stand side "
            "by side: the heads are x[:, h], or x.unbind(dim=1).",
        ),
        Mistake(
            "batch-and-tokens-merged",
            lambda x: right_merge(x).flatten(0, 1),
            "The heads of a token stand side by side rightly, but batch and tokens "
            "became one axis, (B*T, H*K): reshape(B, T, H*K) keeps them apart.",
        ),
        Mistake(
            "all-merged",
            lambda x: x.flatten(1),
            "flatten(1) makes one axis of all but the batch: first transpose(1, 2), "
            "then flatten(2), which takes the last two alone.",
        ),
        Mistake(
            "axes-not-merged",
            lambda x: x.transpose(1, 2),
            "The axes are in the right order, (B, T, H, K), but still four: make one "
            "of the last two, flatten(2) or reshape(B, T, H*K).",
        ),
        Mistake(
            "merge-interleaved",
            merged_after(0, 2, 3, 1),
            "The first features of all heads come first, then the second ones: each "
            "head stays together. The axes before the reshape are (B, T, H, K), or "
            "torch.cat(…, dim=-1) instead of a stack.",
        ),
        Mistake(
            "batch-and-heads-merged",
            lambda x: x.flatten(0, 1),
            "Batch and heads became one axis, (B*H, T, K): H and K are the two to "
            "merge. First transpose(1, 2), then flatten(2).",
        ),
        Mistake(
            "heads-under-each-other",
            lambda x: x.flatten(1, 2),
            "The heads stand one below the other, (B, H*T, K), as if there were more "
            "tokens: put them side by side, along the features. With torch.cat that is "
            "dim=-1; otherwise transpose(1, 2) before the reshape.",
        ),
        Mistake(
            "tokens-merged",
            lambda x: x.flatten(2),
            "T and K became one axis, (B, H, T*K): H and K are the two to merge. First "
            "transpose(1, 2), then flatten(2).",
        ),
        Mistake(
            "sizes-misread",
            sizes_misread,
            "The second axis of x is H and the third T, (B, H, T, K); here the sizes "
            "are read as B, T, H, K. Unpack them in the order of x.",
        ),
        Mistake(
            "samples-mixed",
            merged_after(2, 0, 1, 3),
            "The axes before the reshape are (T, B, H, K), so a sample gets rows of "
            "others: the batch stays first, transpose(1, 2) moves H and T alone.",
        ),
        Mistake(
            "samples-mixed",
            merged_after(1, 2, 0, 3),
            "The axes before the reshape are (H, T, B, K), so samples and heads mix: "
            "the batch stays first, transpose(1, 2) moves H and T alone.",
        ),
        Mistake(
            "samples-mixed",
            merged_after(1, 0, 2, 3),
            "The axes before the reshape are (H, B, T, K), so samples and heads mix: "
            "the batch stays first, transpose(1, 2) moves H and T alone.",
        ),
        Mistake(
            "wrong-axes-transposed",
            merged_after(0, 1, 3, 2),
            "The last two axes, T and K, change places before the reshape: the heads "
            "and the tokens are to change, transpose(1, 2).",
        ),
        Mistake(
            "wrong-axes-transposed",
            merged_after(0, 3, 2, 1),
            "The axes 1 and 3, H and K, change places before the reshape: the heads "
            "and the tokens are to change, transpose(1, 2).",
        ),
        Mistake(
            "features-before-tokens",
            lambda x: right_merge(x).mT,
            "The heads are put together rightly, but the axes are (B, H*K, T): the "
            "features come last.",
        ),
        Mistake(
            "heads-reversed",
            lambda x: right_merge(x.flip(1)),
            "The heads stand in reverse order: head 0 owns the first features.",
        ),
        Mistake(
            "size-one-axes-dropped",
            lambda x: right_merge(x).squeeze(),
            "squeeze() drops every axis of size 1, so one sentence or one token "
            "changes the shape: leave it out.",
        ),
    ],
)


# --- 6.3 --------------------------------------------------------------------------


def right_layer(weights, x):
    parts = (part.double() for part in project(weights, x))
    query, key, value = (right_split(part, weights.build[4]) for part in parts)
    context = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    return projected(weights, right_merge(context).to(x.dtype))


def projected(weights, merged):
    return F.linear(merged, weights.out_proj.mT, weights.out_proj_bias)


def ones(num_tokens):
    return torch.ones(num_tokens, num_tokens, dtype=torch.bool)


def weigh(
    query, key, scale=None, blocked=lambda n: ones(n).triu(1), fill=-torch.inf, dim=-1
):
    """Return weights `(B, H, T, S)` with anything that may go wrong in them."""
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query @ key.mT * scale
    if blocked is not None:
        scores = scores.masked_fill(blocked(scores.shape[-1]), fill)
    return torch.softmax(scores, dim)


def layer(split=right_split, attend=None, merge=right_merge, **how):
    """Return a forward pass in which one step may be another one."""
    attend = attend or (lambda query, key, value: weigh(query, key, **how) @ value)

    def compute(weights, x):
        parts = (split(part, weights.build[4]) for part in project(weights, x))
        return projected(weights, merge(attend(*parts)))

    return compute


def seen(evidence, **how):
    """Return the weights `(B, H, T, S)` that a wrong answer has used."""
    weights, x = evidence.args
    query, key, _ = (right_split(p, weights.build[4]) for p in project(weights, x))
    return weigh(query, key, **how)


def future(weights):
    """Return how much of the weight of the first token goes to later ones, as text."""
    return number(weights[0, 0, 0, 1:].sum().item())


def head_width(build):
    return build[1] // build[4]


def scaled(slug, factor, explain):
    """Return the mistake with another factor, `factor(build, x)`, for 1 / √K."""
    return Mistake(
        slug,
        lambda weights, x: layer(scale=factor(weights.build, x))(weights, x),
        lambda e: explain(e.args[0].build, e.args[1]),
    )


def masked(slug, blocked, explain, fills=(-torch.inf, -1e9, "zero")):
    """Return the mistake with another mask: rows of NaN, of equal weights, of zeros."""

    def attend_or_zero(query, key, value):
        return weigh(query, key, blocked=blocked).nan_to_num(0.0) @ value

    return [
        Mistake(
            slug,
            layer(attend=attend_or_zero if fill == "zero" else None, blocked=blocked)
            if fill in ("zero", -torch.inf)
            else layer(blocked=blocked, fill=fill),
            explain,
        )
        for fill in fills
    ]


def over(slug, dim, explain):
    """Return the mistake of a softmax over another axis: the future is -inf or -1e9."""
    return [Mistake(slug, layer(dim=dim, fill=f), explain) for f in (-torch.inf, -1e9)]


def mask_after(fill):
    """Return the attention whose mask comes after the softmax."""

    def attend(query, key, value):
        weights = weigh(query, key, blocked=None)
        return weights.masked_fill(ones(weights.shape[-1]).triu(1), fill) @ value

    return attend


def zero_times_infinity(query, key, value):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    mask = torch.triu(torch.ones(scores.shape[-2:]), 1) * -torch.inf
    return torch.softmax(scores + mask, -1) @ value


def mask_added(side):
    """Return the attention that adds a triangle of ones to the scores."""

    def attend(query, key, value):
        scores = query @ key.mT / query.shape[-1] ** 0.5
        scores = scores + side(ones(scores.shape[-1]), 1 if side is torch.triu else 0)
        return torch.softmax(scores, -1) @ value

    return attend


def softmax_twice(query, key, value):
    return torch.softmax(weigh(query, key), -1) @ value


def raw_scores(fill):
    def attend(query, key, value):
        scores = query @ key.mT / query.shape[-1] ** 0.5
        return scores.masked_fill(ones(scores.shape[-1]).triu(1), fill) @ value

    return attend


def own_softmax(query, key, value):
    """Softmax without subtracting the maximum: exp overflows for large scores."""
    scores = query @ key.mT / query.shape[-1] ** 0.5
    exps = scores.exp().masked_fill(ones(scores.shape[-1]).triu(1), 0.0)
    return exps / exps.sum(-1, keepdim=True) @ value


def scale_after(query, key, value):
    return weigh(query, key, scale=1.0) / query.shape[-1] ** 0.5 @ value


def by_angle(scale):
    def attend(query, key, value):
        query, key = (F.normalize(part, dim=-1) for part in (query, key))
        return weigh(query, key, scale=scale) @ value

    return attend


def mean_weights(query, key, value):
    return weigh(query, key).mean(1, keepdim=True) @ value


def split_one_by_view(wrong):
    """Return the forward pass that splits one of query, key, value by a view."""

    def compute(weights, x):
        query, key, value = (
            (split_by_view if i == wrong else right_split)(part, weights.build[4])
            for i, part in enumerate(project(weights, x))
        )
        return projected(weights, right_merge(weigh(query, key) @ value))

    return compute


def keys_turned(*axes):
    """Return the attention whose keys are turned round along other axes."""

    def attend(query, key, value):
        turned = key.transpose(*axes) if axes else key
        scores = query @ turned / query.shape[-1] ** 0.5
        return torch.softmax(scores, -1) @ value

    return attend


def keys_dot_t(query, key, value):
    return torch.softmax(query @ key.T / query.shape[-1] ** 0.5, -1) @ value


def mask_of_other_size(pick, apply):
    """Return the forward pass whose mask is cut to `pick(build, x)` tokens."""

    def compute(weights, x):
        parts = project(weights, x)
        query, key, value = (right_split(part, weights.build[4]) for part in parts)
        scores = query @ key.mT / query.shape[-1] ** 0.5
        blocked = ones(weights.build[2]).triu(1)
        size = pick(weights.build, x)
        scores = apply(scores, blocked[:size, :size])
        return projected(weights, right_merge(torch.softmax(scores, -1) @ value))

    return compute


APPLIED = (  # ways to put a mask on scores: their errors read differently
    lambda scores, blocked: scores.masked_fill(blocked, -torch.inf),
    lambda scores, blocked: scores.masked_fill_(blocked, -torch.inf),
)


def mask_cut(slug, pick, explain):
    """Return the mistake of a mask that is not cut to the number of tokens."""
    return [Mistake(slug, mask_of_other_size(pick, a), explain) for a in APPLIED]


def tokens_first(x, num_heads):
    return x.unflatten(-1, (num_heads, -1))  # (B, T, H, K), the transpose is missing


def over_heads(apply):
    """Return the attention on (B, T, H, K) with the mask of the tokens."""

    def attend(query, key, value):
        scores = query @ key.mT / query.shape[-1] ** 0.5  # (B, T, H, H)
        scores = apply(scores, ones(scores.shape[1]).triu(1))
        return torch.softmax(scores, -1) @ value

    return attend


def one_wide_head(scale_of):
    """Return the forward pass of a single head as wide as all of them together."""

    def compute(weights, x):
        parts = (part.unsqueeze(1) for part in project(weights, x))
        query, key, value = parts
        output = weigh(query, key, scale=scale_of(weights.build) ** -0.5) @ value
        return projected(weights, output.squeeze(1))

    return compute


def full_values(weights, x):
    """Let each head average all features of the values, and add the heads up."""
    query, key, value = project(weights, x)
    query, key = (right_split(part, weights.build[4]) for part in (query, key))
    return projected(weights, (weigh(query, key) @ value.unsqueeze(1)).sum(1))


def exchanged_scaled(weights, x):
    """Take H for the width of a head, but scale with the right width."""
    scale = head_width(weights.build) ** -0.5
    return layer(split=exchanged_split, scale=scale)(weights, x)


def batch_for_tokens(weights, x):
    return layer()(weights, x.transpose(0, 1)).transpose(0, 1)


def heads_first_by_view(context):
    batch, num_heads, num_tokens, width = context.shape
    heads = context.transpose(0, 1)  # (H, B, T, K), as torch.cat(heads, dim=0) has it
    return heads.reshape(batch, num_tokens, num_heads * width)


def using(*order):
    """Return the forward pass with other projections for query, key and value."""

    def compute(weights, x):
        parts = [x @ getattr(weights, name) for name in order]
        query, key, value = (right_split(part, weights.build[4]) for part in parts)
        return projected(weights, right_merge(weigh(query, key) @ value))

    return compute


def without_out_proj(weights, x):
    parts = project(weights, x)
    query, key, value = (right_split(part, weights.build[4]) for part in parts)
    return right_merge(weigh(query, key) @ value)


def values_projected_first(weights, x):
    query, key, value = project(weights, x)
    parts = query, key, projected(weights, value)
    query, key, value = (right_split(part, weights.build[4]) for part in parts)
    return right_merge(weigh(query, key) @ value)


def out_proj_turned(weights, x):
    return without_out_proj(weights, x) @ weights.out_proj.mT


def out_proj_turned_with_bias(weights, x):
    bias = weights.out_proj_bias
    return out_proj_turned(weights, x) + (0 if bias is None else bias)


def layers_turned(weights, x):
    return x @ weights.W_query.mT


def weights_returned(weights, x):
    query, key, _ = (right_split(p, weights.build[4]) for p in project(weights, x))
    return weigh(query, key)


def raises(error):
    def compute(*args):
        raise error

    return compute


def future_in_training(module, weights):
    """Name a mask that is not applied in training mode."""
    x = sentences(weights.build[0])
    outputs = []
    module.train()
    for later in (0.0, 1.0):
        torch.default_generator.manual_seed(789)  # the same dropout both times
        outputs.append(module(torch.cat((x[:, :-1], x[:, -1:] + later), dim=1)))
    module.eval()
    moved = (outputs[0] - outputs[1])[:, :-1].abs().max().item()
    if moved < 1e-4:
        return None
    return (
        "mask-off-in-training",
        "The outputs of eval mode are right, but in training mode the last token moves "
        f"those before it by up to {number(moved)}: hide the future in both modes.",
    )


def where_to_look(evidence):
    """Property: say which steps are right, from the token that sees itself alone."""
    got, expected = (value[:, 0] for value in (evidence.got, evidence.expected))
    if torch.allclose(got.double(), expected.double(), atol=1e-4):
        return (
            "Token 0 is right, and it sees itself alone: values, merge and out_proj "
            "are fine. What differs is how tokens are weighed: the features of a head, "
            "the scale, the mask or the softmax."
        )
    return (
        "Token 0 is wrong already, which sees itself alone, with weight 1: look at the "
        "values, at splitting and merging, at out_proj, and at the mask."
    )


# Long tokens, nearly alike within a sentence: every score is large, none decides all.
LARGE = draw(2, 5, 11, scale=0.1) + 30 * draw(2, 1, 11).sign()

multi_head_attention = ModuleExercise(
    id="6.3",
    signature="MultiHeadAttention(d_in, d_out, context_length, dropout, num_heads)",
    returns="from x (B, T, d_in) the output (B, T, d_out), with the learned matrices "
    "W_query, W_key, W_value (d_in to d_out, the width of all heads together) and "
    "out_proj (d_out to d_out)",
    oracle=right_layer,
    projections=("W_query", "W_key", "W_value", "out_proj"),
    facts=[future_in_training, *TRAINING_FACTS, fails_in_half, mask_is_trained],
    properties=[past_stays, samples_stay_apart, where_to_look],
    cases=[
        case(draw(2, 7, 11), build=(11, 15, 13, 0.2, 3)),
        case(draw(2, 5, 11), build=(11, 15, 13, 0.2, 3), note="another length"),
        case(
            draw(2, 13, 11),
            build=(11, 15, 13, 0.2, 3),
            note="as long as context_length",
        ),
        case(draw(3, 11, 5), build=(5, 14, 17, 0.0, 2)),
        case(draw(2, 5, 7, scale=3.0), build=(7, 3, 11, 0.0, 1), note="one head"),
        case(draw(1, 1, 5), build=(5, 14, 1, 0.0, 2), note="one token"),
        case(LARGE, build=(11, 15, 13, 0.2, 3), note="large scores"),
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
    mistakes=[
        # the scale
        scaled(
            "scale-missing",
            lambda build, x: 1.0,
            lambda build, x: (
                f"The scores were not divided by √{head_width(build)}, the root of the "
                "head width: the weights are too peaked."
            ),
        ),
        scaled(
            "scale-of-all-heads",
            lambda build, x: build[1] ** -0.5,
            lambda build, x: (
                f"The scores are divided by √d_out = √{build[1]}, the width of all "
                "heads together. A score is a sum over the features of one head: "
                f"divide by √{head_width(build)}."
            ),
        ),
        scaled(
            "scale-of-input-width",
            lambda build, x: build[0] ** -0.5,
            lambda build, x: (
                f"The scores are divided by √d_in = √{build[0]}. A score is a sum over "
                f"the features of one head: divide by √{head_width(build)}."
            ),
        ),
        scaled(
            "scale-of-tokens",
            lambda build, x: x.shape[1] ** -0.5,
            lambda build, x: (
                f"The scores are divided by √T = √{x.shape[1]}, the number of tokens. "
                "A score is a sum over the features of one head: divide by "
                f"√{head_width(build)}; of the keys (B, H, T, K) that is shape[-1]."
            ),
        ),
        scaled(
            "scale-of-context-length",
            lambda build, x: build[2] ** -0.5,
            lambda build, x: (
                f"The scores are divided by √context_length = √{build[2]}. A score is "
                "a sum over the features of one head: divide by "
                f"√{head_width(build)}."
            ),
        ),
        scaled(
            "scale-of-number-of-heads",
            lambda build, x: build[4] ** -0.5,
            lambda build, x: (
                f"The scores are divided by √H = √{build[4]}, the number of heads. A "
                "score is a sum over the features of one head: divide by "
                f"√{head_width(build)}."
            ),
        ),
        scaled(
            "scale-of-batch",
            lambda build, x: x.shape[0] ** -0.5,
            lambda build, x: (
                f"The scores are divided by √B = √{x.shape[0]}, the size of the batch: "
                f"divide by the root of the head width, √{head_width(build)}, the size "
                "of the last axis."
            ),
        ),
        scaled(
            "divided-by-width",
            lambda build, x: 1 / head_width(build),
            lambda build, x: (
                f"The scores are divided by the head width {head_width(build)} itself, "
                "or twice by its root: the weights are too even. Divide by "
                f"√{head_width(build)}, once."
            ),
        ),
        scaled(
            "divided-by-width",
            lambda build, x: 1 / build[1],
            lambda build, x: (
                f"The scores are divided by d_out = {build[1]}: the weights are far "
                "too even. Divide by the root of the head width, "
                f"√{head_width(build)}."
            ),
        ),
        scaled(
            "scale-multiplied",
            lambda build, x: head_width(build) ** 0.5,
            lambda build, x: (
                f"The scores are multiplied by √{head_width(build)} where they should "
                "be divided by it: the weights are far too peaked."
            ),
        ),
        scaled(
            "scale-halves",
            lambda build, x: 2 / head_width(build),
            lambda build, x: (
                f"The scores are divided by {head_width(build)} / 2: in Python "
                f"{head_width(build)} ** 1 / 2 takes the power first and then the "
                "half. Write ** 0.5."
            ),
        ),
        scaled(
            "root-rounded",
            lambda build, x: 1 / math.isqrt(head_width(build)),
            lambda build, x: (
                f"The scores are divided by {math.isqrt(head_width(build))}, which is "
                f"√{head_width(build)} rounded down: leave the root as it is."
            ),
        ),
        *(
            Mistake(
                "compares-angles",
                layer(attend=by_angle(scale)),
                "Queries and keys are brought to length 1 first, which compares "
                "angles. The dot product keeps the lengths; divide by the root of the "
                "head width alone.",
            )
            for scale in (None, 1.0)
        ),
        Mistake(
            "scale-after-softmax",
            layer(attend=scale_after),
            lambda e: (
                "A row of weights sums to "
                f"{number(head_width(e.args[0].build) ** -0.5)} instead of 1: the "
                "division comes after the softmax. Divide the scores, before it."
            ),
        ),
        # the mask
        Mistake(
            "mask-not-used",
            layer(blocked=None),
            lambda e: (
                f"Token 0 gives {future(seen(e, blocked=None))} of its weight to later "
                "tokens: no mask reaches the scores. masked_fill returns a new tensor, "
                "so keep its result: scores = scores.masked_fill(…)."
            ),
        ),
        *masked(
            "polarity-inverted",
            lambda n: ones(n).tril(),
            "The mask works the wrong way round: the past is hidden, the future seen, "
            "and the last token may attend to nothing. masked_fill hides where it is "
            "given True; attn_mask of PyTorch's function shows where it is True.",
        ),
        *masked(
            "upper-for-lower",
            lambda n: ones(n).tril(-1),
            "Each token sees itself and what comes after it: the mask is the upper "
            "triangle where the lower is meant. Row i may attend to the columns 0 … i.",
            fills=(-torch.inf,),
        ),
        *masked(
            "diagonal-masked",
            lambda n: ones(n).triu(),
            "A token is hidden from itself, so token 0 may attend to nothing. The "
            "diagonal stays: hide torch.triu(…, diagonal=1).",
        ),
        *masked(
            "one-step-leaked",
            lambda n: ones(n).triu(2),
            lambda e: (
                "Each token also sees the next one: token 0 gives "
                f"{future(seen(e, blocked=lambda n: ones(n).triu(2)))} of its weight "
                "to token 1. Hide from the first diagonal on, "
                "torch.triu(…, diagonal=1)."
            ),
            fills=(-torch.inf,),
        ),
        Mistake(
            "zero-times-infinity",
            layer(attend=zero_times_infinity),
            "Everything is NaN, because 0 × -inf is NaN where the mask is 0. Fill "
            "instead of multiplying: scores.masked_fill(mask, float('-inf')).",
        ),
        Mistake(
            "zero-for-minus-infinity",
            layer(fill=0.0),
            lambda e: (
                "A hidden score becomes 0, and exp(0) = 1 is a weight like others: "
                f"token 0 gives {future(seen(e, fill=0.0))} of its weight to later "
                "tokens. Fill with float('-inf'), before the softmax."
            ),
        ),
        *(
            Mistake(
                "fill-not-small-enough",
                layer(fill=fill),
                f"A hidden score becomes {fill:.0f}, which may well be larger than "
                "others: fill with float('-inf').",
            )
            for fill in (-1.0, -10.0, -100.0)
        ),
        *(
            Mistake(
                "mask-added",
                layer(attend=mask_added(side)),
                "The mask is added to the scores as zeros and ones, which hides "
                "nothing: use scores.masked_fill(mask, float('-inf')).",
            )
            for side in (torch.triu, torch.tril)
        ),
        Mistake(
            "mask-filled-with-plus",
            layer(fill=1e9),
            "Hidden scores become hugely positive, so they win the softmax: fill with "
            "float('-inf').",
        ),
        Mistake(
            "mask-after-softmax",
            layer(attend=mask_after(0.0)),
            lambda e: (
                "A row of weights sums to "
                f"{worst_sum(seen(e, blocked=None).tril())}, not 1: the mask comes "
                "after the softmax. Fill the scores with float('-inf'), before it."
            ),
        ),
        *(
            Mistake(
                "infinite-weights",
                compute,
                "Every row that hides anything is NaN, because an infinity is among "
                "its weights: the mask comes after the softmax, or it fills with +inf. "
                "Fill the scores with float('-inf'), before the softmax.",
            )
            for compute in (
                layer(attend=mask_after(-torch.inf)),
                layer(fill=torch.inf),
            )
        ),
        *mask_cut(
            "mask-not-sliced",
            lambda build, x: build[2],
            lambda e: (
                f"The mask is made for context_length = {e.args[0].build[2]} tokens "
                f"and x has {e.args[1].shape[1]}: cut both axes of it in forward, "
                "mask[:T, :T]."
            ),
        ),
        *mask_cut(
            "mask-sliced-by-heads",
            lambda build, x: build[4],
            lambda e: (
                f"The mask is cut to {e.args[0].build[4]} tokens, which is the number "
                f"of heads; x has {e.args[1].shape[1]} tokens. Scores are "
                "(B, H, T, T): cut mask[:T, :T]."
            ),
        ),
        *mask_cut(
            "mask-sliced-by-batch",
            lambda build, x: x.shape[0],
            lambda e: (
                f"The mask is cut to {e.args[1].shape[0]} tokens, which is the size of "
                f"the batch; x (B, T, d_in) has T = {e.args[1].shape[1]} tokens, "
                "x.shape[1]."
            ),
        ),
        # the softmax
        *over(
            "softmax-over-queries",
            -2,
            lambda e: (
                "A row of weights sums to "
                f"{worst_sum(seen(e, dim=-2, fill=-1e9))}, while every column sums to "
                "1: the softmax runs over the queries. Use dim=-1."
            ),
        ),
        *over(
            "softmax-over-heads",
            1,
            "The softmax runs over axis 1, the heads (softmax picks that axis, too, "
            "where dim is left out): the weights of one pair of tokens sum to 1 "
            "over the heads. Use dim=-1, the keys.",
        ),
        *over(
            "softmax-over-batch",
            0,
            "The softmax runs over axis 0, the batch, so the samples mix: use dim=-1, "
            "the keys.",
        ),
        *(
            Mistake(
                "softmax-missing",
                layer(attend=raw_scores(fill)),
                "The scores are used as they are: a softmax over the keys turns them "
                "into weights.",
            )
            for fill in (0.0, -torch.inf)
        ),
        Mistake(
            "softmax-twice",
            layer(attend=softmax_twice),
            "The softmax is taken twice, which makes the weights nearly equal and "
            "gives the future a share again: once is enough.",
        ),
        Mistake(
            "softmax-overflows",
            layer(attend=own_softmax),
            "exp() of a score above 88 is infinite in float32 and inf / inf is NaN; "
            "far below zero all are 0, and 0 / 0 is NaN. Use torch.softmax, which "
            "subtracts the maximum first.",
        ),
        # splitting into heads
        Mistake(
            "split-by-view",
            layer(split=split_by_view),
            "view(B, H, T, K) deals out the numbers in the order in which they lie in "
            "memory, so a head gets features that belong to others, and tokens that "
            "come later. Cut the features alone, view(B, T, H, K), then "
            "transpose(1, 2).",
        ),
        Mistake(
            "split-by-view",
            layer(split=split_by_view, merge=merge_by_view),
            "view splits the heads and view merges them, which fits the shapes and "
            "scrambles tokens and features twice. Split with view(B, T, H, K) and "
            "transpose(1, 2); merge with transpose(1, 2) and reshape(B, T, d_out).",
        ),
        *(
            Mistake(
                "split-by-view",
                split_one_by_view(i),
                f"The {names} are split by view(B, H, T, K), which scrambles tokens "
                "and features, the others are not: all three need view(B, T, H, K) "
                "and transpose(1, 2).",
            )
            for i, names in enumerate(("queries", "keys", "values"))
        ),
        *(
            Mistake(
                "features-interleaved",
                layer(split=split, merge=merge),
                lambda e: (
                    f"Head 0 takes the features 0, {e.args[0].build[4]}, "
                    f"{2 * e.args[0].build[4]} …; a head owns features that follow "
                    "each other, h*K … (h+1)*K - 1. In the view the heads come before "
                    "the width, view(B, T, H, K); merge in the same order."
                ),
            )
            for split, merge in (
                (interleaved_split, right_merge),
                (interleaved_split, merged_after(0, 2, 3, 1)),
            )
        ),
        *(
            Mistake(
                "heads-and-width-exchanged",
                compute,
                lambda e: (
                    f"There are {head_width(e.args[0].build)} heads of "
                    f"{e.args[0].build[4]} features: num_heads was taken for the head "
                    "width. The shape is view(B, T, num_heads, d_out // num_heads)."
                ),
            )
            for compute in (layer(split=exchanged_split), exchanged_scaled)
        ),
        *(
            Mistake(
                "attends-over-heads",
                layer(split=tokens_first, attend=attend, merge=merge),
                "The scores are (B, T, H, H): each token compares its own heads and "
                "sees no other token. Put the heads before the tokens, "
                "transpose(1, 2), before the scores.",
            )
            for attend, merge in (
                (over_heads(APPLIED[0]), lambda context: context.flatten(2)),
                (over_heads(APPLIED[1]), lambda context: context.flatten(2)),
                (None, lambda context: context.flatten(2)),
                (None, lambda context: context.transpose(1, 2).reshape_as(context)),
            )
        ),
        *(
            Mistake(
                "heads-ignored",
                one_wide_head(scale_of),
                lambda e: (
                    f"All {e.args[0].build[1]} features go through one softmax, so "
                    "there is a single wide head: split query, key and value into "
                    f"{e.args[0].build[4]} heads of {head_width(e.args[0].build)} "
                    "before the scores."
                ),
            )
            for scale_of in (lambda build: build[1], head_width)
        ),
        Mistake(
            "one-head-repeated",
            layer(split=repeated_split),
            "All heads use the features of head 0: the slice must move with the head, "
            "h*K : (h+1)*K.",
        ),
        Mistake(
            "heads-overlap",
            layer(split=overlapping_split),
            "Head h begins at feature h, so neighbouring heads overlap: it begins at "
            "h*K, the slice is h*K : (h+1)*K.",
        ),
        # merging them again
        Mistake(
            "merge-without-transpose",
            layer(merge=merge_by_view),
            "The heads are right, but the merge puts several tokens of one head into a "
            "row. First transpose(1, 2), which gives (B, T, H, K), then "
            "reshape(B, T, d_out).",
        ),
        Mistake(
            "merge-interleaved",
            layer(merge=merged_after(0, 2, 3, 1)),
            "The heads are right, but the merge mixes their features, first all first "
            "ones: each head stays together. Merge from (B, T, H, K), or with "
            "torch.cat(…, dim=-1).",
        ),
        Mistake(
            "view-not-contiguous",
            layer(merge=view_not_contiguous),
            "The steps are right, but after transpose the numbers do not lie in the "
            "order that view needs: use reshape, flatten(2), or contiguous() first.",
        ),
        Mistake(
            "heads-summed",
            layer(merge=lambda context: context.sum(1)),
            lambda e: (
                f"out_proj waits for {e.args[0].build[1]} features and gets "
                f"{head_width(e.args[0].build)}: the heads are summed or averaged, or "
                "only one is used. Put them side by side."
            ),
        ),
        Mistake(
            "full-width-per-head",
            full_values,
            lambda e: (
                f"Each head averages all {e.args[0].build[1]} features of the values "
                "and the heads are added up: give each the "
                f"{head_width(e.args[0].build)} features of its own slice and put the "
                "heads side by side."
            ),
        ),
        *(
            Mistake(
                "heads-not-merged",
                layer(merge=merge),
                lambda e: (
                    f"out_proj waits for {e.args[0].build[1]} features and gets the "
                    f"{head_width(e.args[0].build)} of single heads: put the heads of "
                    "a token side by side first, transpose(1, 2) and flatten(2); with "
                    "torch.cat that is dim=-1."
                ),
            )
            for merge in (
                lambda context: context,
                lambda context: context.flatten(1, 2),
            )
        ),
        *(
            Mistake(
                "samples-mixed",
                layer(split=split, merge=merge),
                "Samples of the batch and heads are mixed by a view over both axes: "
                "the batch stays the first axis, in splitting and in merging.",
            )
            for split, merge in (
                (split_mixing_samples, right_merge),
                (right_split, heads_first_by_view),
                (right_split, merged_after(2, 0, 1, 3)),
            )
        ),
        Mistake(
            "batch-for-tokens",
            batch_for_tokens,
            "The samples of the batch attend to each other, the tokens do not: x is "
            "(B, T, d_in), the batch first.",
        ),
        *(
            Mistake(
                "fixed-axes",
                layer(attend=attend),
                "For the scores the last two axes of the keys (B, H, T, K) change "
                "places: key.transpose(-2, -1).",
            )
            for attend in (keys_turned(1, 2), keys_turned(0, 1), keys_turned())
        ),
        Mistake(
            "transpose-of-all-axes",
            layer(attend=keys_dot_t),
            "`.T` turns round all axes of a tensor, batch and heads too: transpose the "
            "last two alone, key.transpose(-2, -1).",
        ),
        # the projections
        Mistake(
            "output-projection-unused",
            without_out_proj,
            "This is right up to the last step: send the merged heads through "
            "self.out_proj.",
        ),
        Mistake(
            "output-projection-twice",
            lambda weights, x: projected(weights, right_layer(weights, x)),
            "out_proj is applied twice: once, to the merged heads, is enough.",
        ),
        Mistake(
            "output-projection-of-values",
            values_projected_first,
            "out_proj is applied to the values, before the heads: it comes last, where "
            "it mixes what the heads have found.",
        ),
        *(
            Mistake(
                "weight-not-transposed",
                compute,
                "nn.Linear stores its weight as (d_out, d_in), ready for "
                "x @ weight.T: call the layer, self.W_query(x), and it does so by "
                "itself.",
            )
            for compute in (out_proj_turned, out_proj_turned_with_bias, layers_turned)
        ),
        Mistake(
            "parameter-called",
            raises(TypeError("'Parameter' object is not callable")),
            "An nn.Parameter is a matrix and no function: multiply, x @ self.W_query.",
        ),
        Mistake(
            "queries-for-keys",
            using("W_query", "W_query", "W_value"),
            "The keys are x @ W_query: W_key is not used.",
        ),
        Mistake(
            "keys-for-queries",
            using("W_key", "W_key", "W_value"),
            "The queries are x @ W_key: W_query is not used.",
        ),
        Mistake(
            "keys-for-values",
            using("W_query", "W_key", "W_key"),
            "The weights are right, but they average the keys: average the values, "
            "x @ W_value.",
        ),
        Mistake(
            "keys-times-queries",
            using("W_key", "W_query", "W_value"),
            "Queries and keys have changed places, K Qᵀ for Q Kᵀ: row i of the scores "
            "belongs to the query of token i.",
        ),
        Mistake(
            "keys-and-values-exchanged",
            using("W_query", "W_value", "W_key"),
            "W_key makes the values and W_value the keys: exchange the two.",
        ),
        Mistake(
            "uniform-weights",
            layer(scale=0.0),
            "Every token that may be seen gets the same weight: the scores play no "
            "part.",
        ),
        Mistake(
            "value-added",
            lambda weights, x: right_layer(weights, x) + x @ weights.W_value,
            "The output is the right one plus each token's own value: return what "
            "out_proj gives, alone.",
        ),
        Mistake(
            "size-one-axes-dropped",
            lambda weights, x: right_layer(weights, x).squeeze(),
            "squeeze() drops every axis of size 1, so one sentence or one token "
            "changes the shape: leave it out.",
        ),
        Mistake(
            "no-attention",
            lambda weights, x: projected(weights, x @ weights.W_value),
            "The values go straight to out_proj: the weights are not used.",
        ),
        Mistake(
            "heads-share-weights",
            layer(attend=mean_weights),
            "Every feature gets the mean of all heads' weights: each head keeps "
            "weights of its own, for its own slice of the values.",
        ),
        Mistake(
            "last-token-only",
            lambda weights, x: right_layer(weights, x)[:, -1],
            "This is the output of the last token alone: every token has one, "
            "(B, T, d_out).",
        ),
        Mistake(
            "weights-returned",
            weights_returned,
            "These are the weights (B, H, T, T): multiply them with the values, merge "
            "the heads and project.",
        ),
        Mistake(
            "always-refused",
            raises(ValueError("")),
            "15 features and 3 heads divide evenly, and yet there is a ValueError: "
            "raise it only where d_out % num_heads is not 0. The arguments come as "
            "d_in, d_out, context_length, dropout, num_heads.",
        ),
    ],
)

EXERCISES = [split_heads, merge_heads, multi_head_attention]
