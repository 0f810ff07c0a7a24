"""Splitting features into heads and merging them: the right way and wrong forms."""

import torch
from torch.nn import functional as F

from utils.checks.attention_steps import lower
from utils.checks.steps import Forms, form, texts_of

TEXTS = texts_of(__file__)


def head_width(s):
    return s.learned.build[1] // s.learned.build[4]


def num_heads(s):
    return s.learned.build[4]


# --- the two steps -------------------------------------------------------------------


def tokens_first(x, num_heads):
    """Return (B, T, H, K): the features are cut, the axes not exchanged yet."""
    return x.reshape(*x.shape[:2], num_heads, -1)


def right_split(x, num_heads):
    return tokens_first(x, num_heads).transpose(1, 2)


def split_by_view(x, num_heads):
    batch, num_tokens, width = x.shape
    return x.reshape(batch, num_heads, num_tokens, width // num_heads)


def interleaved_split(x, num_heads):
    return tokens_first(x, x.shape[-1] // num_heads).permute(0, 3, 1, 2)


def exchanged_split(x, num_heads):
    return tokens_first(x, x.shape[-1] // num_heads).transpose(1, 2)


def slices(x, num_heads, start, lost=0):
    """Return heads that begin at `start(head, width)` and lose their last features."""
    width = x.shape[-1] // num_heads
    starts = [start(head, width) for head in range(num_heads)]
    return torch.stack([x[..., s : s + width - lost] for s in starts], dim=1)


def overlapping_split(x, num_heads):
    return slices(x, num_heads, lambda head, width: head)


def repeated_split(x, num_heads):
    return slices(x, num_heads, lambda head, width: 0)


def split_mixing_samples(x, num_heads):
    batch, num_tokens, width = x.shape
    heads = x.reshape(num_heads, batch, num_tokens, width // num_heads)
    return heads.transpose(0, 1)


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


def heads_first_by_view(x):
    batch, num_heads, num_tokens, width = x.shape
    heads = x.transpose(0, 1)  # (H, B, T, K), as torch.cat(heads, dim=0) has it
    return heads.reshape(batch, num_tokens, num_heads * width)


def all_by(split):
    """Return the step that splits queries, keys and values in the same way."""
    return lambda s: tuple(split(x, num_heads(s)) for x in (s.query, s.key, s.value))


def merged_by(merge):
    return lambda s: merge(s.output)


def out(s, merged):
    return F.linear(merged, s.learned.out_proj.mT, s.learned.out_proj_bias)


HEADS = {
    "split": all_by(right_split),
    "merge": merged_by(right_merge),
    "project_out": lambda s: out(s, s.merged),
}


# --- wrong forms ---------------------------------------------------------------------


def one_by_view(wrong):
    """Return the step that splits one of query, key, value by a view."""

    def split(s):
        parts = enumerate((s.query, s.key, s.value))
        ways = (right_split, split_by_view)
        return tuple(ways[i == wrong](x, num_heads(s)) for i, x in parts)

    return split


def one_wide_head(s):
    return tuple(x.unsqueeze(1) for x in (s.query, s.key, s.value))


def values_unsplit(s):
    query, key = (right_split(x, num_heads(s)) for x in (s.query, s.key))
    return query, key, s.value.unsqueeze(1)


def of_tokens(s):
    """Return the mask of the tokens for scores that are (B, T, H, H): it fails."""
    num_tokens, heads = s.scores.shape[1], s.scores.shape[-1]
    if heads != 1 and num_tokens not in (1, heads):
        raise RuntimeError("must match the")
    return lower(num_tokens)


INTERLEAVED = (
    "Head 0 takes the features 0, {H}, {twice_H} …; a head owns features that follow "
    "each other, h*K … (h+1)*K - 1. In the view the heads come before the width, "
    "view(B, T, H, K); merge in the same order."
)
EXCHANGED = (
    "There are {head_width} heads of {H} features: num_heads was taken for the head "
    "width. The shape is view(B, T, num_heads, d_out // num_heads)."
)
OVER_HEADS = (
    "The scores are (B, T, H, H): each token compares its own heads and sees no other "
    "token. Put the heads before the tokens, transpose(1, 2), before the scores."
)
ONE_HEAD = (
    "All {d_out} features go through one softmax, so there is a single wide head: "
    "split query, key and value into {H} heads of {head_width} before the scores."
)
NOT_MERGED = (
    "out_proj waits for {d_out} features and gets the {head_width} of single heads: "
    "put the heads of a token side by side first, transpose(1, 2) and flatten(2); "
    "with torch.cat that is dim=-1."
)
SUMMED = (
    "out_proj waits for {d_out} features and gets {head_width}: the heads are summed "
    "or averaged, or only one is used. Put them side by side."
)
SAMPLES_MIXED = (
    "Samples of the batch and heads are mixed by a view over both axes: the batch "
    "stays the first axis, in splitting and in merging."
)
SPLIT = Forms(TEXTS["SPLIT"])
SPLIT.wrong("split-by-view", split=all_by(split_by_view))
SPLIT.wrong(
    "split-by-view 2", split=all_by(split_by_view), merge=merged_by(merge_by_view)
)
SPLIT.extend(
    form(
        "split-by-view",
        f"The {names} are split by view(B, H, T, K), which scrambles tokens and "
        "features, the others are not: all three need view(B, T, H, K) and "
        "transpose(1, 2).",
        split=one_by_view(i),
    )
    for i, names in enumerate(("queries", "keys", "values"))
)
SPLIT.wrong("features-interleaved", split=all_by(interleaved_split))
SPLIT.wrong(
    "features-interleaved",
    split=all_by(interleaved_split),
    merge=merged_by(merged_after(0, 2, 3, 1)),
)
SPLIT.wrong("heads-and-width-exchanged", split=all_by(exchanged_split))
SPLIT.wrong(
    "heads-and-width-exchanged", split=all_by(exchanged_split), width=head_width
)
SPLIT.wrong(
    "attends-over-heads",
    split=all_by(tokens_first),
    mask=of_tokens,
    merge=merged_by(lambda x: x.flatten(2)),
)
SPLIT.wrong(
    "attends-over-heads",
    split=all_by(tokens_first),
    merge=merged_by(lambda x: x.flatten(2)),
)
SPLIT.wrong(
    "attends-over-heads",
    split=all_by(tokens_first),
    merge=merged_by(lambda x: x.transpose(1, 2).reshape_as(x)),
)
SPLIT.wrong("heads-ignored", split=one_wide_head)
SPLIT.wrong("heads-ignored", split=one_wide_head, width=head_width)
SPLIT.wrong("one-head-repeated", split=all_by(repeated_split))
SPLIT.wrong("heads-overlap", split=all_by(overlapping_split))
SPLIT.wrong(
    "heads-reversed", split=lambda s: tuple(x.flip(1) for x in HEADS["split"](s))
)
SPLIT.wrong(
    "full-width-per-head", split=values_unsplit, merge=merged_by(lambda x: x.sum(1))
)
SPLIT.wrong("samples-mixed", split=all_by(split_mixing_samples))
MERGE = Forms(TEXTS["MERGE"])
MERGE.wrong("merge-without-transpose", merge=merged_by(merge_by_view))
MERGE.wrong("merge-interleaved", merge=merged_by(merged_after(0, 2, 3, 1)))
MERGE.wrong("view-not-contiguous", merge=merged_by(view_not_contiguous))
MERGE.wrong("heads-summed", merge=merged_by(lambda x: x.sum(1)))
MERGE.wrong("heads-not-merged", merge=merged_by(lambda x: x))
MERGE.wrong("heads-not-merged", merge=merged_by(lambda x: x.flatten(1, 2)))
MERGE.wrong("samples-mixed", merge=merged_by(heads_first_by_view))
MERGE.wrong("samples-mixed", merge=merged_by(merged_after(2, 0, 1, 3)))
STORED_TURNED = (
    "nn.Linear stores its weight as (d_out, d_in), ready for x @ weight.T: call the "
    "layer, self.out_proj(x), and it does so by itself."
)
PROJECT_OUT = Forms(TEXTS["PROJECT_OUT"])
PROJECT_OUT.wrong("output-projection-unused", project_out=lambda s: s.merged)
PROJECT_OUT.wrong(
    "output-projection-twice", project_out=lambda s: out(s, out(s, s.merged))
)
PROJECT_OUT.wrong(
    "output-projection-of-values",
    value=lambda s: out(s, s.x @ s.learned.W_value),
    project_out=lambda s: s.merged,
)
PROJECT_OUT.wrong(
    "weight-not-transposed", project_out=lambda s: s.merged @ s.learned.out_proj.mT
)
PROJECT_OUT.wrong(
    "weight-not-transposed",
    project_out=lambda s: (
        s.merged @ s.learned.out_proj.mT
        + (0 if s.learned.out_proj_bias is None else s.learned.out_proj_bias)
    ),
)
PROJECT_OUT.wrong(
    "heads-share-weights", average=lambda s: s.weights.mean(1, keepdim=True) @ s.value
)
OF_HEADS = {
    "H": num_heads,
    "twice_H": lambda s: 2 * num_heads(s),
    "head_width": head_width,
    "d_out": lambda s: s.learned.build[1],
}
