"""Splitting features into heads and merging them: the right way and wrong forms.

`SPLITTING` and `MERGING` are these two as pipelines. In a layer each of them is one
step, and a wrong form of theirs is a wrong form of that step (`SPLIT`, `MERGE`).
"""

from dataclasses import replace

import torch
from torch.nn import functional as F

from utils.checks.attention_steps import lower
from utils.checks.axes import named, to, wrong_orders
from utils.checks.steps import Forms, Pipeline, texts_of

TEXTS = texts_of(__file__)
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


BY_VIEW = {"cut": shaped("BHTK"), **IN_PLACE}
TURNED = {"source": lambda s: s.x.mT}
CUT = Forms(TEXTS["CUT"])
CUT.wrong("split-by-view", **BY_VIEW)
CUT.wrong("split-after-transpose", **TURNED, **BY_VIEW)
CUT.wrong("split-after-transpose", source=lambda s: s.x.permute(2, 1, 0), **BY_VIEW)
CUT.wrong("split-after-transpose 2", **TURNED, cut=shaped("BHTK", "view"), **IN_PLACE)
CUT.wrong("features-interleaved", cut=shaped("BTKH"), order=to(0, 3, 1, 2))
CUT.wrong("heads-and-width-exchanged", cut=shaped("BTKH"))
CUT.wrong("heads-overlap", heads=lambda s: pieces(s, lambda h: h))
CUT.wrong("heads-from-one", heads=lambda s: pieces(s, lambda h: (h + 1) * s.K))
CUT.wrong("last-feature-lost", heads=lambda s: pieces(s, lambda h: h * s.K, lost=1))
CUT.wrong("one-head-repeated", heads=lambda s: pieces(s, lambda h: 0))
CUT.wrong("heads-reversed", heads=lambda s: s.cut.permute(s.order).flip(1))
CUT.wrong("two-heads-alone", heads=lambda s: s.cut.permute(s.order)[:, :2])
CUT.wrong("two-heads-alone", heads=lambda s: torch.stack(s.x.chunk(2, -1), 1))
CUT.wrong("samples-mixed", cut=shaped("HBTK"), order=to(1, 0, 2, 3))
CUT.wrong("tokens-shared-out", heads=lambda s: torch.stack(s.x.chunk(s.H, 1), 1))
CUT.wrong("tokens-shared-out 2", heads=lambda s: s.x.view(s.B, s.H, s.T // s.H, s.D))
CUT.wrong("width-is-a-float", K=lambda s: s.D / s.H)
CUT.wrong("width-is-a-float", K=lambda s: s.D / s.H, cut=shaped("BTHK", "view"))
CUT.wrong("sizes-misread", sizes=lambda s: (len(s.x), s.x.shape[2], s.x.shape[1]))


def refused(s):
    raise ValueError


MOVED = Forms(TEXTS["MOVED"])  # wrong forms of the split in a layer, too
MOVED.wrong("heads-before-batch", order=to(2, 0, 1, 3))
MOVED.wrong("heads-last", order=to(0, 1, 3, 2))
MOVED.wrong("tokens-last", order=to(0, 2, 3, 1))
MOVED.wrong("width-before-tokens", order=to(0, 3, 1, 2))
PLACES = Forms(TEXTS["PLACES"])
PLACES.wrong("always-refused", sizes=refused)
PLACES.wrong("tokens-counted", K=lambda s: refused(s) if s.T % s.H else s.D // s.H)
PLACES.wrong("axes-not-swapped", **IN_PLACE)
PLACES.wrong("tokens-before-batch", order=to(1, 0, 2, 3))
for order in wrong_orders(HEADS_FORWARD, [*MOVED, *PLACES]):
    PLACES.wrong("axes-misplaced", named("BTHK", order), order=to(*order))
PLACES.wrong("heads-in-batch", result=lambda s: s.heads.flatten(0, 1))
PLACES.wrong("heads-in-batch 2", result=lambda s: torch.cat(s.heads.unbind(1)))
PLACES.wrong("heads-under-each-other", result=lambda s: s.heads.flatten(1, 2))
PLACES.wrong("list-of-heads", result=lambda s: [*s.heads.unbind(1)])
PLACES.wrong("list-of-heads 2", result=lambda s: s.heads.unbind(1))
PLACES.wrong("full-width-per-head", result=lambda s: torch.stack([s.x] * s.H, 1))
PLACES.wrong("size-one-axes-dropped", result=lambda s: s.heads.squeeze())

SPLITTING = Pipeline(
    start=lambda x, num_heads: {"x": x, "H": num_heads},
    steps={
        "sizes": lambda s: s.x.shape,
        "K": lambda s: s.D // s.H,
        "source": lambda s: s.x,
        "cut": shaped("BTHK"),
        "order": to(*HEADS_FORWARD),
        "heads": lambda s: s.cut.permute(s.order),
        "result": lambda s: s.heads,
    },
    gives={"sizes": ("B", "T", "D")},
    forms=[*CUT, *MOVED, *PLACES],
    words={
        "H": lambda s: s.H,
        "twice_H": lambda s: 2 * s.H,
        "K": lambda s: s.x.shape[-1] // s.H,
        "D": lambda s: s.x.shape[-1],
        "T": lambda s: s.x.shape[1],
    },
)


# --- merging -------------------------------------------------------------------------

SECOND, LAST = {"read": "B, T, H, K"}, {"read": "B, H, K, T"}
JOIN = Forms(TEXTS["JOIN"])  # wrong forms of the merge in a layer, too
JOIN.wrong("merge-without-transpose", **IN_PLACE)
JOIN.wrong("merge-interleaved", order=to(0, 2, 3, 1))
JOIN.wrong("view-not-contiguous", merged=lambda s: s.tokens.view(s.B, s.T, s.H * s.K))
JOIN.wrong("batch-and-tokens-merged", result=lambda s: s.merged.flatten(0, 1))
JOIN.wrong("all-merged", merged=lambda s: s.x.flatten(1))
JOIN.wrong("tokens-merged", merged=lambda s: s.x.flatten(2))
JOIN.wrong("sizes-misread", SECOND, sizes=lambda s: s.x.transpose(1, 2).shape)
JOIN.wrong("sizes-misread", LAST, sizes=lambda s: s.x.mT.shape)
for order in wrong_orders(HEADS_FORWARD, JOIN):
    key = "samples-mixed" if order[0] else "wrong-axes-transposed"
    JOIN.wrong(key, named("BHTK", order), order=to(*order))
JOIN.wrong("heads-reversed", tokens=lambda s: s.x.flip(1).permute(s.order))
ALONE = Forms(TEXTS["ALONE"])
ALONE.wrong("heads-summed", merged=lambda s: s.x.sum(1))
ALONE.wrong("heads-averaged", merged=lambda s: s.x.mean(1))
ALONE.wrong("one-head-kept", merged=lambda s: s.x[:, 0])
ALONE.wrong("one-head-kept 2", merged=lambda s: s.x[:, -1])
ALONE.wrong("samples-side-by-side", merged=lambda s: torch.cat([*s.x], dim=-1))
ALONE.wrong("axes-not-merged", merged=lambda s: s.tokens)
ALONE.wrong("batch-and-heads-merged", merged=lambda s: s.x.flatten(0, 1))
ALONE.wrong("heads-under-each-other", merged=lambda s: s.x.flatten(1, 2))
ALONE.wrong("batch-and-heads-merged 2", merged=lambda s: torch.cat([*s.x.unbind(1)]))
ALONE.wrong("two-heads-alone", merged=lambda s: torch.cat((s.x[:, 0], s.x[:, 1]), -1))
ALONE.wrong("features-before-tokens", result=lambda s: s.merged.mT)
ALONE.wrong("size-one-axes-dropped", result=lambda s: s.merged.squeeze())

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
    forms=[*JOIN, *ALONE],
)


# --- both in a layer -----------------------------------------------------------------


def num_heads(s):
    return s.learned.build[4]


def head_width(s):
    return s.learned.build[1] // s.learned.build[4]


def each(way, **others):
    """Return the step that splits queries, keys and values this way, some otherwise."""
    ways = {"query": way, "key": way, "value": way} | others
    return lambda s: tuple(ways[name](s, getattr(s, name)) for name in ways)


def cut_by(*forms):
    return lambda s, x: SPLITTING.run((x, num_heads(s)), *forms)


def split_by(*forms):
    """Return the step that splits all three with these wrong forms."""
    return each(cut_by(*forms))


def merge_by(*forms):
    return lambda s: MERGING.run((s.output,), *forms)


def right_split(x, num_heads):
    return x.reshape(*x.shape[:2], num_heads, -1).transpose(1, 2)


def right_merge(x):
    return x.transpose(1, 2).flatten(2)


def out(s, x):
    return F.linear(x, s.out_weight, s.out_bias)


HEADS = {
    "out_weight": lambda s: s.learned.out_proj.mT,
    "out_bias": lambda s: s.learned.out_proj_bias,
    "split": each(lambda s, x: right_split(x, num_heads(s)).contiguous()),
    "merge": lambda s: right_merge(s.output),
    "project_out": lambda s: out(s, s.merged),
}


def mask_of_tokens(s):
    """Return the mask of the tokens for scores that are (B, T, H, H): it fails."""
    num_tokens, heads = s.scores.shape[1], s.scores.shape[-1]
    if heads != 1 and num_tokens not in (1, heads):
        raise RuntimeError("must match the")
    return lower(num_tokens)


def widths_misread(s):
    """Return the merge that reads H for T and knows the width of the result."""
    sizes = *s.output.shape[:2], s.learned.build[1]
    return s.output.transpose(1, 2).reshape(sizes)


OVER_HEADS = {  # two axes are not exchanged, after the split and before the merge
    "split": each(lambda s, x: cut_by()(s, x).transpose(1, 2)),
    "merge": lambda s: s.output.flatten(2),
}
ONE_WIDE_HEAD = {"split": each(lambda s, x: x.unsqueeze(1))}
WIDE_VALUES = {"split": each(cut_by(), value=lambda s, x: x.unsqueeze(1))}
SPLIT = Forms(TEXTS["SPLIT"])
SPLIT.wrong("split-by-view", split=split_by(CUT[0]), merge=merge_by(JOIN[0]))
for name, names in (("query", "queries"), ("key", "keys"), ("value", "values")):
    one_by_view = each(cut_by(), **{name: cut_by(CUT[0])})
    SPLIT.wrong("split-by-view 2", {"names": names}, split=one_by_view)
for one in (*CUT, *MOVED):
    wrongly = {"split": split_by(one)}
    SPLIT.append(replace(one, ways=wrongly))
    if one.slug == "features-interleaved":
        SPLIT.append(replace(one, ways=wrongly | {"merge": merge_by(JOIN[1])}))
    if one.slug in ("heads-and-width-exchanged", "width-before-tokens"):
        SPLIT.append(replace(one, ways=wrongly | {"width": head_width}))
SPLIT.wrong("attends-over-heads", **OVER_HEADS, mask=mask_of_tokens)
SPLIT.wrong("attends-over-heads", **OVER_HEADS)
SPLIT.wrong("heads-ignored", **ONE_WIDE_HEAD)
SPLIT.wrong("heads-ignored", **ONE_WIDE_HEAD, width=head_width)
SPLIT.wrong("full-width-per-head", **WIDE_VALUES, merge=lambda s: s.output.sum(1))
MERGE = Forms(TEXTS["MERGE"])
for one in JOIN:
    MERGE.append(replace(one, ways={"merge": merge_by(one)}))
    if one.words == SECOND:
        MERGE.append(replace(one, ways={"merge": widths_misread}))
MERGE.wrong("heads-summed", merge=lambda s: s.output.sum(1))
MERGE.wrong("heads-not-merged", merge=lambda s: s.output)
MERGE.wrong("heads-not-merged", merge=lambda s: s.output.flatten(1, 2))


# --- the output projection -----------------------------------------------------------

UNUSED = {"project_out": lambda s: s.merged}
OF_VALUES = {"value": lambda s: out(s, s.x @ s.learned.W_value)}
NO_BIAS = {"out_bias": lambda s: None}
STORED = {"out_weight": lambda s: s.learned.out_proj}
OUT = Forms(TEXTS["OUT"])
OUT.wrong("output-projection-unused", **UNUSED)
OUT.wrong("output-projection-twice", project_out=lambda s: out(s, out(s, s.merged)))
OUT.wrong("output-projection-without-bias", **NO_BIAS)
OUT.wrong("weight-not-transposed", **STORED)
OUT.wrong("weight-not-transposed", **STORED, **NO_BIAS)
OUT.wrong("output-projection-of-values", **OF_VALUES, **UNUSED)
OUT.wrong("heads-share-weights", average=lambda s: s.weights.mean(1, True) @ s.value)
OF_HEADS = {"H": num_heads, "K": head_width, "D": lambda s: s.learned.build[1]}
OF_HEADS["twice_H"] = lambda s: 2 * num_heads(s)
