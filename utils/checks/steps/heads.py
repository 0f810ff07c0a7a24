"""Splitting features into heads and merging them: the right way and wrong variants.

`SPLITTING` and `MERGING` are these two as pipelines. In a layer each of them is one
step, and a wrong variant of theirs is a wrong variant of that step (`SPLIT`, `MERGE`).
"""

from dataclasses import replace

import torch
from torch.nn import functional as F

from utils.checks.pipeline import Pipeline, variants
from utils.checks.steps.attention import lower
from utils.checks.steps.axes import misplaced, to

HEADS_FORWARD = (0, 2, 1, 3)  # from (B, T, H, K) to (B, H, T, K), and back
IN_PLACE = {"order": to(0, 1, 2, 3)}


# --- splitting -----------------------------------------------------------------------


def shaped(names, by="reshape"):
    """Return the step that lays out the source in these sizes, as it is in memory."""
    return lambda s: getattr(s.source, by)(*(getattr(s, name) for name in names))


def pieces(s, start, lost=0):
    """Return heads that begin at `start(h)` and lose their last features."""
    starts = [start(h) for h in range(s.H)]
    return torch.stack([s.x[..., at : at + s.K - lost] for at in starts], dim=1)


def refuse(s):
    raise ValueError


BY_VIEW = {"cut": shaped("BHTK"), **IN_PLACE}
CUT = variants(  # in a layer, too
    "split-by-view: You split with view(B, H, T, K), which deals out the numbers as they lie in memory and mixes tokens and heads: use view(B, T, H, K), then transpose(1, 2).",
    BY_VIEW,
    "split-after-transpose: You swapped tokens and features before the view, which cuts across both: cut the features first, view(B, T, H, K), then transpose(1, 2).",
    BY_VIEW | dict(source=lambda s: s.x.mT),
    BY_VIEW | dict(source=lambda s: s.x.permute(2, 1, 0)),
    IN_PLACE | dict(source=lambda s: s.x.mT, cut=shaped("BHTK", "view")),
    "features-interleaved: You gave head 0 the features 0, {H}, {twice_H} …: a head owns features that follow each other, so put the heads before the width, view(B, T, H, K).",
    dict(cut=shaped("BTKH"), order=to(0, 3, 1, 2)),
    "heads-and-width-exchanged: You took num_heads = {H} for the width of a head: the width is K = {D} // {H}, so write view(B, T, H, K).",
    dict(cut=shaped("BTKH")),
    "heads-overlap: You began head h at feature h, so neighbouring heads overlap: slice h*K : (h+1)*K.",
    dict(heads=lambda s: pieces(s, lambda h: h)),
    "one-head-repeated: You gave all heads the features of head 0: move the slice with h, h*K : (h+1)*K.",
    dict(heads=lambda s: pieces(s, lambda h: 0)),
    "two-heads-alone: You made two heads whatever num_heads says: cut {H} heads of {K} features.",
    dict(heads=lambda s: s.cut.permute(s.order)[:, :2]),
    dict(heads=lambda s: torch.stack(s.x.chunk(2, -1), 1)),
    "width-is-a-float: You divided with /, which gives a float, and a size must be an integer: use D // num_heads.",
    dict(K=lambda s: s.D / s.H, cut=shaped("BTHK", "view")),
)
ONLY_SPLIT = variants(  # in no layer
    "tokens-shared-out: You shared out the tokens among the heads: every head sees all tokens and a part of the features, so cut the last axis.",
    dict(heads=lambda s: torch.stack(s.x.chunk(s.H, 1), 1)),
    dict(heads=lambda s: s.x.view(s.B, s.H, s.T // s.H, s.D)),
    "sizes-misread: You read the sizes of x as B, D, T: its axes are (B, T, D).",
    dict(sizes=lambda s: (len(s.x), s.x.shape[2], s.x.shape[1])),
    "heads-reversed: You put the heads in reverse order: head 0 owns the first features.",
    dict(heads=lambda s: s.cut.permute(s.order).flip(1)),
)

MOVED = variants(  # in a layer, too
    "tokens-last: You returned (B, H, K, T), as the scores need the keys: return (B, H, T, K) and transpose where the scores are made.",
    dict(order=to(0, 2, 3, 1)),
    "width-before-tokens: You ended with (B, K, T, H): move the head axis in front of the tokens.",
    dict(order=to(0, 3, 1, 2)),
)
PLACES = variants(
    "always-refused: You raised a ValueError although {H} heads divide {D} features evenly: raise it only if D % num_heads isn't 0.",
    dict(sizes=refuse),
    "tokens-counted: You checked the number of tokens, {T} % {H}: the heads share the features, so check D % num_heads.",
    dict(K=lambda s: refuse(s) if s.T % s.H else s.D // s.H),
)
PLACES += misplaced(
    "axes-misplaced: You ended with the axes ({}): swap only axes 1 and 2 of (B, T, H, K), transpose(1, 2).",
    *("BTHK", HEADS_FORWARD, [*CUT, *MOVED, *PLACES]),
)
PLACES += variants(
    "list-of-heads: You returned the pieces one by one: use torch.stack(heads, dim=1).",
    dict(result=lambda s: [*s.heads.unbind(1)]),
    dict(result=lambda s: s.heads.unbind(1)),
)

SPLITTING = Pipeline(
    start=lambda x, num_heads: {"x": x, "H": num_heads},
    steps={
        "sizes": lambda s: s.x.shape,
        "K": lambda s: refuse(s) if s.D % s.H else s.D // s.H,
        "source": lambda s: s.x,
        "cut": shaped("BTHK"),
        "order": to(*HEADS_FORWARD),
        "heads": lambda s: s.cut.permute(s.order),
        "result": lambda s: s.heads,
    },
    outputs={"sizes": ("B", "T", "D")},
    words={"twice_H": lambda s: 2 * s.H, "D": lambda s: s.x.shape[-1]},
    variants=[*CUT, *ONLY_SPLIT, *MOVED, *PLACES],
)


# --- merging -------------------------------------------------------------------------

SIZES_MISREAD = "You read the sizes in another order: the heads are (B, H, T, K)."
JOIN = variants(  # in a layer, too
    "merge-without-transpose: You merged without a transpose, which puts several tokens of one head into a row: transpose(1, 2) to (B, T, H, K) first, then reshape.",
    IN_PLACE,
    "merge-interleaved: You put the first features of all heads first: keep each head together, with the axes (B, T, H, K) before the reshape.",
    dict(order=to(0, 2, 3, 1)),
    "view-not-contiguous: You used view after transpose, but the numbers no longer lie in the order that view needs: use reshape or flatten(2).",
    dict(merged=lambda s: s.tokens.view(s.B, s.T, s.H * s.K)),
    "all-merged: You merged all axes but the batch with flatten(1): transpose(1, 2), then flatten(2).",
    dict(merged=lambda s: s.x.flatten(1)),
    "tokens-merged: You merged tokens and width, (B, H, T*K): merge heads and width, by transpose(1, 2) and flatten(2).",
    dict(merged=lambda s: s.x.flatten(2)),
    f"sizes-misread: {SIZES_MISREAD}",
    dict(sizes=lambda s: s.x.transpose(1, 2).shape),
    dict(sizes=lambda s: s.x.mT.shape),
)
JOIN += misplaced(
    "wrong-axes-transposed: You reshaped from the axes ({}): swap only heads and tokens, transpose(1, 2), to get (B, T, H, K).",
    *("BTHK", HEADS_FORWARD, JOIN),
)
ALONE = variants(
    "samples-side-by-side: You looped over the batch, x's first axis: the heads are x[:, h], or x.unbind(dim=1).",
    dict(merged=lambda s: torch.cat([*s.x], dim=-1)),
    "batch-and-heads-merged: You merged batch and heads: merge heads and width, by transpose(1, 2) and flatten(2); with torch.cat use dim=-1.",
    dict(merged=lambda s: s.x.flatten(0, 1)),
    dict(merged=lambda s: torch.cat([*s.x.unbind(1)])),
    "heads-under-each-other: You put the heads one below the other, (B, H*T, K): put them side by side, by transpose(1, 2) before the reshape, or torch.cat with dim=-1.",
    dict(merged=lambda s: s.x.flatten(1, 2)),
)

MERGING = Pipeline(
    start=lambda x: {"x": x},
    steps={
        "sizes": lambda s: s.x.shape,
        "order": to(*HEADS_FORWARD),
        "tokens": lambda s: s.x.permute(s.order),
        "merged": lambda s: s.tokens.reshape(s.B, s.T, s.H * s.K),
        "result": lambda s: s.merged,
    },
    outputs={"sizes": ("B", "H", "T", "K")},
    variants=[*JOIN, *ALONE],
)


# --- both in a layer -----------------------------------------------------------------


def num_heads(s):
    return s.learned.build[4]


def head_width(s):
    return s.learned.build[1] // s.learned.build[4]


def each(split, **others):
    """Return the step that splits queries, keys and values this way, some otherwise."""
    splits = {"query": split, "key": split, "value": split} | others
    return lambda s: tuple(splits[name](s, getattr(s, name)) for name in splits)


def split_by(*variants):
    """Return the function that splits x with these variants."""
    return lambda s, x: SPLITTING.run((x, num_heads(s)), *variants)


def merge_by(*variants):
    """Return the step that merges the heads with these variants."""
    return lambda s: MERGING.run((s.output,), *variants)


def right_split(x, num_heads):
    return x.reshape(*x.shape[:2], num_heads, -1).transpose(1, 2)


def right_merge(x):
    return x.transpose(1, 2).flatten(2)


def project_out(s, x):
    return F.linear(x, s.out_weight, s.out_bias)


HEADS = {
    "out_weight": lambda s: s.learned.out_proj.mT,
    "out_bias": lambda s: s.learned.out_proj_bias,
    "split": each(lambda s, x: right_split(x, num_heads(s)).contiguous()),
    "merged": lambda s: right_merge(s.output),
    "projected": lambda s: project_out(s, s.merged),
}


def mask_of_tokens(s):
    """Return the mask of the tokens for scores that are (B, T, H, H): it fails."""
    num_tokens, heads = s.scores.shape[1], s.scores.shape[-1]
    if heads != 1 and num_tokens not in (1, heads):
        raise RuntimeError("must match the")
    return lower(num_tokens)


def sizes_misread(s):
    """Return the merge that reads H for T and knows the width of the result."""
    sizes = *s.output.shape[:2], s.learned.build[1]
    return s.output.transpose(1, 2).reshape(sizes)


OVER_HEADS = {  # two axes are not exchanged, after the split and before the merge
    "split": each(lambda s, x: split_by()(s, x).transpose(1, 2)),
    "merged": lambda s: s.output.flatten(2),
}
ONE_WIDE_HEAD = {"split": each(lambda s, x: x.unsqueeze(1))}
WIDE_VALUES = {"split": each(split_by(), value=lambda s, x: x.unsqueeze(1))}
SPLIT = variants(
    "split-by-view: You split and merged the heads with view alone, which mixes tokens and features: use transpose(1, 2) after the split and before the merge.",
    dict(split=each(split_by(CUT[0])), merged=merge_by(JOIN[0])),
    "split-by-view: You split only some of queries, keys and values with view(B, H, T, K), which mixes tokens and features: use view(B, T, H, K) and transpose(1, 2).",
    dict(split=each(split_by(), query=split_by(CUT[0]))),
    dict(split=each(split_by(), key=split_by(CUT[0]))),
    dict(split=each(split_by(), value=split_by(CUT[0]))),
)
for one in (*CUT, *MOVED):
    split = {"split": each(split_by(one))}
    SPLIT.append(replace(one, overrides=split))
    if one.name == "features-interleaved":
        SPLIT.append(replace(one, overrides=split | {"merged": merge_by(JOIN[1])}))
    if one.name in ("heads-and-width-exchanged", "width-before-tokens"):
        SPLIT.append(replace(one, overrides=split | {"width": head_width}))
SPLIT += variants(
    "attends-over-heads: You made scores (B, T, H, H), so each token compares its own heads: put the heads before the tokens, transpose(1, 2), before the scores.",
    OVER_HEADS | dict(mask=mask_of_tokens),
    OVER_HEADS,
    "heads-ignored: You used a single wide head: split query, key and value into {H} heads of {K} features before the scores.",
    ONE_WIDE_HEAD,
    ONE_WIDE_HEAD | dict(width=head_width),
)
MERGE = [replace(one, overrides={"merged": merge_by(one)}) for one in JOIN]
MERGE += variants(
    f"sizes-misread: {SIZES_MISREAD}",
    dict(merged=sizes_misread),
    "heads-summed: You passed {K} features to out_proj, as when heads are summed, averaged or lost: put them side by side, {D} features.",
    dict(merged=lambda s: s.output.sum(1)),
    "heads-not-merged: You passed single heads to out_proj: put the heads of a token side by side, with transpose(1, 2) and flatten(2), or torch.cat(…, dim=-1).",
    dict(merged=lambda s: s.output),
    dict(merged=lambda s: s.output.flatten(1, 2)),
)


# --- the output projection -----------------------------------------------------------

OUT = variants(
    "output-projection-unused: You left out the last step: send the merged heads through self.out_proj.",
    dict(projected=lambda s: s.merged),
    "output-projection-without-bias: You left out the bias of out_proj: call the layer, self.out_proj(x).",
    dict(out_bias=lambda s: None),
    "weight-not-transposed: You used out_proj.weight without a transpose, but it is stored as (d_out, d_in): call the layer, self.out_proj(x).",
    dict(out_weight=lambda s: s.learned.out_proj),
    dict(out_weight=lambda s: s.learned.out_proj, out_bias=lambda s: None),
    "heads-share-weights: You averaged the weights over the heads: each head keeps its own weights, for its own slice of the values.",
    dict(output=lambda s: s.weights.mean(1, True) @ s.value),
)
OF_HEADS = {  # words of a layer
    "H": num_heads,
    "twice_H": lambda s: 2 * num_heads(s),
    "K": head_width,
    "D": lambda s: s.learned.build[1],
}
