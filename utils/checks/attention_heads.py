"""Splitting features into heads and merging them: the right way and wrong forms.

`SPLITTING` and `MERGING` are these two as pipelines. In a layer each of them is one
step, and a wrong form of theirs is a wrong form of that step (`SPLIT`, `MERGE`).
"""

from dataclasses import replace

import torch
from torch.nn import functional as F

from utils.checks.attention_steps import lower
from utils.checks.axes import named, taken, to, wrong_orders
from utils.checks.steps import Forms, Pipeline, texts_of

TEXTS = texts_of(__file__)
HEADS_FORWARD = (0, 2, 1, 3)  # from (B, T, H, K) to (B, H, T, K), and back
WRONG_ORDERS = wrong_orders(HEADS_FORWARD)


# --- splitting -----------------------------------------------------------------------


def by_view(s):
    return s.source.reshape(s.B, s.H, s.T, s.K)


def width_first(s):
    return s.source.reshape(s.B, s.T, s.K, s.H)


def pieces(s, start, lost=0):
    """Return heads that begin at `start(h)` and lose their last features."""
    starts = [start(h) for h in range(s.H)]
    return torch.stack([s.x[..., at : at + s.K - lost] for at in starts], dim=1)


CUT = Forms(TEXTS["CUT"])
CUT.wrong("split-by-view", cut=by_view, order=to(0, 1, 2, 3))
CUT.wrong(
    "split-after-transpose",
    source=lambda s: s.x.mT,
    cut=by_view,
    order=to(0, 1, 2, 3),
)
CUT.wrong(
    "split-after-transpose",
    source=lambda s: s.x.permute(2, 1, 0),
    cut=by_view,
    order=to(0, 1, 2, 3),
)
CUT.wrong(
    "split-after-transpose 2",
    cut=lambda s: s.x.mT.view(s.B, s.H, s.T, s.K),
    order=to(0, 1, 2, 3),
)
CUT.wrong("features-interleaved", cut=width_first, order=to(0, 3, 1, 2))
CUT.wrong("heads-and-width-exchanged", cut=width_first)
CUT.wrong("heads-overlap", heads=lambda s: pieces(s, lambda h: h))
CUT.wrong("heads-from-one", heads=lambda s: pieces(s, lambda h: (h + 1) * s.K))
CUT.wrong("last-feature-lost", heads=lambda s: pieces(s, lambda h: h * s.K, lost=1))
CUT.wrong("one-head-repeated", heads=lambda s: pieces(s, lambda h: 0))
CUT.wrong("heads-reversed", heads=lambda s: s.cut.permute(s.order).flip(1))
CUT.wrong("two-heads-alone", heads=lambda s: s.cut.permute(s.order)[:, :2])
CUT.wrong("two-heads-alone", heads=lambda s: torch.stack(s.x.chunk(2, -1), 1))
CUT.wrong(
    "samples-mixed",
    cut=lambda s: s.x.reshape(s.H, s.B, s.T, s.K),
    order=to(1, 0, 2, 3),
)
CUT.wrong("tokens-shared-out", heads=lambda s: torch.stack(s.x.chunk(s.H, 1), 1))
CUT.wrong("tokens-shared-out 2", heads=lambda s: s.x.view(s.B, s.H, s.T // s.H, s.D))
CUT.wrong("width-is-a-float", K=lambda s: s.D / s.H)
CUT.wrong(
    "width-is-a-float",
    K=lambda s: s.D / s.H,
    cut=lambda s: s.x.view(s.B, s.T, s.H, s.K),
)
CUT.wrong("sizes-misread", sizes=lambda s: (len(s.x), s.x.shape[2], s.x.shape[1]))


def refused(when):
    """Return the sizes where no ValueError is raised: it is raised too often."""

    def sizes(s):
        if when(s):
            raise ValueError
        return s.x.shape

    return sizes


PLACES = Forms(TEXTS["PLACES"])
PLACES.wrong("always-refused", sizes=refused(lambda s: True))
PLACES.wrong("tokens-counted", sizes=refused(lambda s: s.x.shape[1] % s.H))
PLACES.wrong("axes-not-swapped", order=to(0, 1, 2, 3))
PLACES.wrong("heads-before-batch", order=to(2, 0, 1, 3))
PLACES.wrong("tokens-before-batch", order=to(1, 0, 2, 3))
PLACES.wrong("heads-last", order=to(0, 1, 3, 2))
PLACES.wrong("tokens-last", order=to(0, 2, 3, 1))
PLACES.wrong("width-before-tokens", order=to(0, 3, 1, 2))
for order in WRONG_ORDERS:
    if order not in taken(PLACES):
        PLACES.wrong("axes-misplaced", named("BTHK", order), order=to(*order))
PLACES.wrong("heads-in-batch", result=lambda s: s.heads.flatten(0, 1))
PLACES.wrong(
    "heads-in-batch 2", order=to(2, 0, 1, 3), result=lambda s: s.heads.flatten(0, 1)
)
PLACES.wrong("heads-under-each-other", result=lambda s: s.heads.flatten(1, 2))
PLACES.wrong("list-of-heads", result=lambda s: [*s.heads.unbind(1)])
PLACES.wrong("list-of-heads 2", result=lambda s: s.heads.unbind(1))
PLACES.wrong(
    "full-width-per-head", result=lambda s: s.x[:, None].expand(-1, s.H, -1, -1)
)
PLACES.wrong("size-one-axes-dropped", result=lambda s: s.heads.squeeze())

SPLITTING = Pipeline(
    start=lambda x, num_heads: {"x": x, "H": num_heads},
    steps={
        "sizes": lambda s: s.x.shape,
        "K": lambda s: s.D // s.H,
        "source": lambda s: s.x,
        "cut": lambda s: s.source.reshape(s.B, s.T, s.H, s.K),
        "order": to(*HEADS_FORWARD),
        "heads": lambda s: s.cut.permute(s.order),
        "result": lambda s: s.heads,
    },
    gives={"sizes": ("B", "T", "D")},
    forms=[*CUT, *PLACES],
    words={
        "H": lambda s: s.H,
        "twice_H": lambda s: 2 * s.H,
        "K": lambda s: s.x.shape[-1] // s.H,
        "D": lambda s: s.x.shape[-1],
        "T": lambda s: s.x.shape[1],
    },
)


# --- merging -------------------------------------------------------------------------

JOIN = Forms(TEXTS["JOIN"])
JOIN.wrong("merge-without-transpose", order=to(0, 1, 2, 3))
JOIN.wrong("merge-interleaved", order=to(0, 2, 3, 1))
JOIN.wrong("view-not-contiguous", merged=lambda s: s.tokens.view(s.B, s.T, s.H * s.K))
JOIN.wrong("heads-summed", merged=lambda s: s.x.sum(1))
JOIN.wrong("heads-averaged", merged=lambda s: s.x.mean(1))
JOIN.wrong("one-head-kept", merged=lambda s: s.x[:, 0])
JOIN.wrong("one-head-kept 2", merged=lambda s: s.x[:, -1])
JOIN.wrong("samples-side-by-side", merged=lambda s: torch.cat([*s.x], dim=-1))
JOIN.wrong("batch-and-tokens-merged", result=lambda s: s.merged.flatten(0, 1))
JOIN.wrong("all-merged", merged=lambda s: s.x.flatten(1))
JOIN.wrong("axes-not-merged", merged=lambda s: s.tokens)
JOIN.wrong("batch-and-heads-merged", merged=lambda s: s.x.flatten(0, 1))
JOIN.wrong("heads-under-each-other", merged=lambda s: s.x.flatten(1, 2))
JOIN.wrong("tokens-merged", merged=lambda s: s.x.flatten(2))
JOIN.wrong("batch-and-heads-merged 2", merged=lambda s: torch.cat([*s.x.unbind(1)]))
JOIN.wrong("two-heads-alone", merged=lambda s: torch.cat((s.x[:, 0], s.x[:, 1]), -1))
SECOND, LAST = {"read": "B, T, H, K"}, {"read": "B, H, K, T"}
JOIN.wrong("sizes-misread", SECOND, sizes=lambda s: s.x.transpose(1, 2).shape)
JOIN.wrong("sizes-misread", LAST, sizes=lambda s: s.x.mT.shape)
for order in WRONG_ORDERS:
    if order not in taken(JOIN):
        key = "samples-mixed" if order[0] else "wrong-axes-transposed"
        JOIN.wrong(key, named("BHTK", order), order=to(*order))
JOIN.wrong("features-before-tokens", result=lambda s: s.merged.mT)
JOIN.wrong("heads-reversed", tokens=lambda s: s.x.flip(1).permute(s.order))
JOIN.wrong("size-one-axes-dropped", result=lambda s: s.merged.squeeze())

MERGING = Pipeline(
    start=lambda x: {"x": x},
    steps={
        "sizes": lambda s: s.x.shape,
        "order": to(*HEADS_FORWARD),
        "tokens": lambda s: s.x.permute(s.order),
        "merged": lambda s: s.tokens.reshape(s.B, s.T, s.H * s.K),
        "result": lambda s: s.merged,
    },
    gives={"sizes": ("B", "H", "T", "K")},
    forms=JOIN,
)


# --- both in a layer -----------------------------------------------------------------


def num_heads(s):
    return s.learned.build[4]


def head_width(s):
    return s.learned.build[1] // s.learned.build[4]


def split_by(*forms):
    """Return the step that splits queries, keys and values with these wrong forms."""

    def split(s):
        parts = s.query, s.key, s.value
        return tuple(SPLITTING.run((x, num_heads(s)), *forms) for x in parts)

    return split


def merge_by(*forms):
    return lambda s: MERGING.run((s.output,), *forms)


def right_split(x, num_heads):
    return x.reshape(*x.shape[:2], num_heads, -1).transpose(1, 2)


def right_merge(x):
    return x.transpose(1, 2).flatten(2)


def out(s, merged):
    return F.linear(merged, s.learned.out_proj.mT, s.learned.out_proj_bias)


HEADS = {
    "split": lambda s: tuple(
        right_split(x, num_heads(s)).contiguous() for x in (s.query, s.key, s.value)
    ),
    "merge": lambda s: right_merge(s.output),
    "project_out": lambda s: out(s, s.merged),
}


def tokens_first(s):
    """Return queries, keys and values (B, T, H, K): two axes not exchanged."""
    return tuple(x.transpose(1, 2) for x in HEADS["split"](s))


def of_tokens(s):
    """Return the mask of the tokens for scores that are (B, T, H, H): it fails."""
    num_tokens, heads = s.scores.shape[1], s.scores.shape[-1]
    if heads != 1 and num_tokens not in (1, heads):
        raise RuntimeError("must match the")
    return lower(num_tokens)


def one_by_view(wrong):
    """Return the step that splits one of query, key, value by a view."""

    def split(s):
        ways = HEADS["split"](s), split_by(CUT[0])(s)
        return tuple(ways[i == wrong][i] for i in range(3))

    return split


def one_wide_head(s):
    return tuple(x.unsqueeze(1) for x in (s.query, s.key, s.value))


def values_unsplit(s):
    query, key, _ = HEADS["split"](s)
    return query, key, s.value.unsqueeze(1)


def widths_misread(s):
    """Return the merge that reads H for T and knows the width of the result."""
    batch, num_heads = s.output.shape[:2]
    return s.output.transpose(1, 2).reshape(batch, num_heads, s.learned.build[1])


MOVED = ("width-before-tokens", "tokens-last", "heads-last", "heads-before-batch")
MERGED_ALIKE = (  # fail, or give something, of their own in a layer
    "merge-without-transpose",
    "merge-interleaved",
    "view-not-contiguous",
    "batch-and-tokens-merged",
    "all-merged",
    "tokens-merged",
    "sizes-misread",
    "samples-mixed",
    "wrong-axes-transposed",
    "heads-reversed",
)
SPLIT = Forms(TEXTS["SPLIT"])
SPLIT.wrong(
    "split-by-view",
    split=split_by(CUT[0]),
    merge=merge_by(JOIN[0]),
)
for i, names in enumerate(("queries", "keys", "values")):
    SPLIT.wrong("split-by-view 2", {"names": names}, split=one_by_view(i))
for one in SPLITTING.forms:
    if one in CUT or one.slug in MOVED:
        SPLIT.append(replace(one, ways={"split": split_by(one)}))
    if one.slug == "features-interleaved":
        merge = merge_by(JOIN[1])
        SPLIT.append(replace(one, ways={"split": split_by(one), "merge": merge}))
    if one.slug in ("heads-and-width-exchanged", "width-before-tokens"):
        SPLIT.append(replace(one, ways={"split": split_by(one), "width": head_width}))
SPLIT.wrong(
    "attends-over-heads",
    split=tokens_first,
    mask=of_tokens,
    merge=lambda s: s.output.flatten(2),
)
SPLIT.wrong(
    "attends-over-heads", split=tokens_first, merge=lambda s: s.output.flatten(2)
)
SPLIT.wrong(
    "attends-over-heads",
    split=tokens_first,
    merge=lambda s: s.output.transpose(1, 2).reshape_as(s.output),
)
SPLIT.wrong("heads-ignored", split=one_wide_head)
SPLIT.wrong("heads-ignored", split=one_wide_head, width=head_width)
SPLIT.wrong(
    "full-width-per-head", split=values_unsplit, merge=lambda s: s.output.sum(1)
)
MERGE = Forms(TEXTS["MERGE"])
for one in JOIN:
    if one.slug in MERGED_ALIKE:
        MERGE.append(replace(one, ways={"merge": merge_by(one)}))
    if one.words == SECOND:
        MERGE.append(replace(one, ways={"merge": widths_misread}))
MERGE.wrong("heads-summed", merge=lambda s: s.output.sum(1))
MERGE.wrong("heads-not-merged", merge=lambda s: s.output)
MERGE.wrong("heads-not-merged", merge=lambda s: s.output.flatten(1, 2))


# --- the output projection -----------------------------------------------------------


def out_turned(s):
    bias = s.learned.out_proj_bias
    return s.merged @ s.learned.out_proj.mT + (0 if bias is None else bias)


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
PROJECT_OUT.wrong("weight-not-transposed", project_out=out_turned)
PROJECT_OUT.wrong(
    "output-projection-without-bias",
    project_out=lambda s: s.merged @ s.learned.out_proj,
)
PROJECT_OUT.wrong(
    "heads-share-weights", average=lambda s: s.weights.mean(1, keepdim=True) @ s.value
)
OF_HEADS = {
    "H": num_heads,
    "twice_H": lambda s: 2 * num_heads(s),
    "K": head_width,
    "D": lambda s: s.learned.build[1],
}
