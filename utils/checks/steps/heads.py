"""Splitting features into heads and merging them: the right way and wrong variants.

The steps `split` and `merge` are functions of x, so the exercises that only split or
merge have them as well as a layer, in which three things are split.
"""

from torch.nn import functional as F

from utils.checks.pipeline import variants


def head_width(width, num_heads):
    if width % num_heads:
        raise ValueError  # of any text
    return width // num_heads


def right_split(x, num_heads):
    width = head_width(x.shape[-1], num_heads)
    return x.unflatten(-1, (num_heads, width)).transpose(1, 2)


def right_merge(x):
    return x.transpose(1, 2).flatten(2)


WIDTHS = {
    "H": lambda s: s.num_heads,
    "D": lambda s: s.x.shape[-1],
    "K": lambda s: head_width(s.D, s.H),
    "split": lambda s: lambda x: right_split(x, s.H),
}
SPLIT_STEPS = {  # of a layer
    **WIDTHS,
    "H": lambda s: s.learned.build[4],
    "D": lambda s: s.learned.build[1],
    "split_key": lambda s: s.split,
    "split_value": lambda s: s.split,
    "query, key, value": lambda s: (
        s.split(s.query),
        s.split_key(s.key),
        s.split_value(s.value),
    ),
    "merge": lambda s: right_merge,
}
MERGE_STEPS = {
    "merged": lambda s: s.merge(s.output),
    "projected": lambda s: F.linear(
        s.merged, s.learned.out_proj.mT, s.learned.out_proj_bias
    ),
}


def split_by_view(s):
    return lambda x: x.reshape(len(x), s.H, -1, s.K)


SPLIT = variants(
    "split-by-view: You split straight into (B, H, T, K), which deals out the numbers as they lie in memory and mixes tokens and heads: use view(B, T, H, K), then transpose(1, 2).",
    dict(split=split_by_view),
    "features-interleaved: You gave head 0 the features 0, {H} and so on, in steps of {H}: a head owns features that follow each other, so put the heads before the width, view(B, T, H, K), then transpose(1, 2).",
    dict(split=lambda s: lambda x: x.unflatten(-1, (s.K, s.H)).permute(0, 3, 1, 2)),
    "another-width-checked: You checked whether num_heads divides another number, such as T or d_in: it should divide the width that you split, D, or d_out in a layer.",
    dict(K=lambda s: head_width(s.x.shape[1], s.H) and s.D // s.H),
)
IN_LAYER = variants(
    "split-by-view: You split only some of queries, keys and values with view(B, H, T, K), which mixes tokens and features: use view(B, T, H, K) and transpose(1, 2).",
    dict(split_key=split_by_view),
    dict(split_value=split_by_view),
    "another-width-checked: You checked whether num_heads divides another number, such as T or d_in: it should divide the width that you split, D, or d_out in a layer.",
    dict(K=lambda s: head_width(s.x.shape[-1], s.H) and s.D // s.H),
)
MERGE = variants(
    "merge-without-transpose: You merged without a transpose, which puts several tokens of one head into a row: transpose(1, 2) to (B, T, H, K) first, then reshape.",
    dict(merge=lambda s: lambda x: x.reshape(len(x), x.shape[2], -1)),
    "merge-interleaved: You put the first features of all heads first: keep each head together, with the axes (B, T, H, K) before the reshape.",
    dict(merge=lambda s: lambda x: x.permute(0, 2, 3, 1).flatten(2)),
    "wrong-axes-transposed: You swapped other axes than heads and tokens before the reshape: use transpose(1, 2), which gives (B, T, H, K).",
    dict(merge=lambda s: lambda x: x.mT.reshape(len(x), x.shape[2], -1)),
    dict(merge=lambda s: lambda x: x.transpose(1, 3).reshape(len(x), x.shape[2], -1)),
    "view-not-contiguous: You used view after transpose, but the numbers no longer lie in the order that view needs: use reshape or flatten(2).",
    dict(merge=lambda s: lambda x: x.transpose(1, 2).view(len(x), x.shape[2], -1)),
)
ALONE = variants(  # in no layer
    "heads-under-each-other: You put the heads one below the other, (B, H*T, K): put them side by side, by transpose(1, 2) before the reshape, or torch.cat with dim=-1.",
    dict(merge=lambda s: lambda x: x.flatten(1, 2)),
)
OUT = variants(
    "heads-summed: You passed {K} features to out_proj, as when heads are summed, averaged or lost: put them side by side, {D} features.",
    dict(merged=lambda s: s.output.sum(1)),
    "output-projection-unused: You left out the last step: send the merged heads through self.out_proj.",
    dict(projected=lambda s: s.merged),
)
