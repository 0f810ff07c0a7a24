"""Splitting features into heads and merging them: the right way and wrong variants.

`SPLITTING` and `MERGING` are these two as pipelines. In a layer each of them is one
step, and a wrong variant of theirs is a wrong variant of that step (`SPLIT`, `MERGE`).
"""

from dataclasses import replace

from torch.nn import functional as F

from utils.checks.pipeline import Pipeline, variants


def right_split(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError(f"expected a multiple of {num_heads}, got {x.shape[-1]}")
    return x.reshape(*x.shape[:2], num_heads, -1).transpose(1, 2)


def right_merge(x):
    return x.transpose(1, 2).flatten(2)


# --- splitting -----------------------------------------------------------------------


def to(*order):
    """Return the step that says in which order the axes go on."""
    return lambda s: order


HEADS_FORWARD = {"order": to(0, 2, 1, 3)}  # from (B, T, H, K) to (B, H, T, K), and back
IN_PLACE = {"order": to(0, 1, 2, 3)}


def shaped(names):
    """Return the step that lays out the source in these sizes, as it is in memory."""
    return lambda s: s.source.reshape(*(getattr(s, name) for name in names))


def refuse(s):
    raise ValueError


CUT = variants(  # in a layer, too
    "split-by-view: You split with view(B, H, T, K), which deals out the numbers as they lie in memory and mixes tokens and heads: use view(B, T, H, K), then transpose(1, 2).",
    dict(cut=shaped("BHTK"), **IN_PLACE),
    "features-interleaved: You gave head 0 the features 0, {H}, {twice_H} …: a head owns features that follow each other, so put the heads before the width, view(B, T, H, K).",
    dict(cut=shaped("BTKH"), order=to(0, 3, 1, 2)),
    "heads-and-width-exchanged: You took num_heads = {H} for the width of a head: the width is K = {D} // {H}, so write view(B, T, H, K).",
    dict(cut=shaped("BTKH")),
)
ONLY_SPLIT = variants(  # in no layer
    "heads-reversed: You put the heads in reverse order: head 0 owns the first features.",
    dict(result=lambda s: s.cut.permute(s.order).flip(1)),
    "always-refused: You raised a ValueError although {H} heads divide {D} features evenly: raise it only if D % num_heads isn't 0.",
    {"B, T, D": refuse},
)
SPLITTING = Pipeline(
    dict.fromkeys(("x", "num_heads")),
    steps={
        "B, T, D": lambda s: s.x.shape,
        "H": lambda s: s.num_heads,
        "K": lambda s: refuse(s) if s.D % s.H else s.D // s.H,
        "source": lambda s: s.x,
        "cut": shaped("BTHK"),
        **HEADS_FORWARD,
        "result": lambda s: s.cut.permute(s.order),
    },
    words={
        "H": lambda s: s.num_heads,
        "twice_H": lambda s: 2 * s.num_heads,
        "D": lambda s: s.x.shape[-1],
    },
    variants=[*CUT, *ONLY_SPLIT],
)


# --- merging -------------------------------------------------------------------------

JOIN = variants(  # in a layer, too
    "merge-without-transpose: You merged without a transpose, which puts several tokens of one head into a row: transpose(1, 2) to (B, T, H, K) first, then reshape.",
    IN_PLACE,
    "merge-interleaved: You put the first features of all heads first: keep each head together, with the axes (B, T, H, K) before the reshape.",
    dict(order=to(0, 2, 3, 1)),
    "wrong-axes-transposed: You swapped other axes than heads and tokens before the reshape: use transpose(1, 2), which gives (B, T, H, K).",
    dict(order=to(0, 1, 3, 2)),
    "view-not-contiguous: You used view after transpose, but the numbers no longer lie in the order that view needs: use reshape or flatten(2).",
    dict(result=lambda s: s.tokens.view(s.B, s.T, s.H * s.K)),
    "all-merged: You merged all axes but the batch with flatten(1): transpose(1, 2), then flatten(2).",
    dict(result=lambda s: s.x.flatten(1)),
)
ALONE = variants(
    "heads-under-each-other: You put the heads one below the other, (B, H*T, K): put them side by side, by transpose(1, 2) before the reshape, or torch.cat with dim=-1.",
    dict(result=lambda s: s.x.flatten(1, 2)),
)
MERGING = Pipeline(
    {"x": None},
    steps={
        "B, H, T, K": lambda s: s.x.shape,
        **HEADS_FORWARD,
        "tokens": lambda s: s.x.permute(s.order),
        "result": lambda s: s.tokens.reshape(s.B, s.T, s.H * s.K),
    },
    variants=[*JOIN, *ALONE],
)


# --- both in a layer -----------------------------------------------------------------


def num_heads(s):
    return s.learned.build[4]


def head_width(s):
    return s.learned.build[1] // s.learned.build[4]


def split_each(split, **others):
    """Return the step that splits queries, keys and values this way, some otherwise."""
    splits = {"query": split, "key": split, "value": split} | others
    return lambda s: tuple(splits[name](s, getattr(s, name)) for name in splits)


def split_by(*variants):
    """Return the function that splits x with these variants."""
    return lambda s, x: SPLITTING.run((x, num_heads(s)), *variants)


def merge_by(*variants):
    """Return the step that merges the heads with these variants."""
    return lambda s: MERGING.run((s.output,), *variants)


HEADS = {
    "query, key, value": split_each(
        lambda s, x: right_split(x, num_heads(s)).contiguous()
    ),
    "merged": lambda s: right_merge(s.output),
    "projected": lambda s: F.linear(
        s.merged, s.learned.out_proj.mT, s.learned.out_proj_bias
    ),
}

OVER_HEADS = {  # two axes are not exchanged, after the split and before the merge
    "query, key, value": split_each(lambda s, x: split_by()(s, x).transpose(1, 2)),
    "merged": lambda s: s.output.flatten(2),
}
SPLIT = variants(
    "split-by-view: You split and merged the heads with view alone, which mixes tokens and features: use transpose(1, 2) after the split and before the merge.",
    {"query, key, value": split_each(split_by(CUT[0])), "merged": merge_by(JOIN[0])},
    "split-by-view: You split only some of queries, keys and values with view(B, H, T, K), which mixes tokens and features: use view(B, T, H, K) and transpose(1, 2).",
    {"query, key, value": split_each(split_by(), key=split_by(CUT[0]))},
    {"query, key, value": split_each(split_by(), value=split_by(CUT[0]))},
    "attends-over-heads: You made scores (B, T, H, H), so each token compares its own heads: put the heads before the tokens, transpose(1, 2), before the scores.",
    OVER_HEADS,
    "heads-ignored: You used a single wide head: split query, key and value into {H} heads of {K} features before the scores.",
    {"query, key, value": split_each(lambda s, x: x.unsqueeze(1))},
)
SPLIT += [
    replace(one, overrides={"query, key, value": split_each(split_by(one))})
    for one in CUT
]
MERGE = [replace(one, overrides={"merged": merge_by(one)}) for one in JOIN]
MERGE += variants(
    "heads-summed: You passed {K} features to out_proj, as when heads are summed, averaged or lost: put them side by side, {D} features.",
    dict(merged=lambda s: s.output.sum(1)),
)
OUT = variants(
    "output-projection-unused: You left out the last step: send the merged heads through self.out_proj.",
    dict(projected=lambda s: s.merged),
    "heads-share-weights: You averaged the weights over the heads: each head should keep its own weights, for its own slice of the values.",
    dict(output=lambda s: s.weights.mean(1, True) @ s.value),
)
OF_HEADS = {  # words of a layer
    "width_name": "K",
    "H": num_heads,
    "twice_H": lambda s: 2 * num_heads(s),
    "K": head_width,
    "D": lambda s: s.learned.build[1],
}
