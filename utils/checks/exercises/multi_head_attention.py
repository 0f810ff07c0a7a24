"""Exercises of the notebook on heads: splitting, merging, multi-head attention."""

from dataclasses import replace
from functools import partial

import torch
from torch.nn import functional as F

from utils import attention
from utils.checks import shared
from utils.checks.definition import Case, Diagnosis, Exercise, Mistake, draw
from utils.checks.engine.guard import attempt
from utils.checks.layer_probes import TRAINING_PROBES, changes_in_training, no_gradient
from utils.checks.shared import head_width, softmax_of
from utils.checks.submission import QKV

LEGIBLE = 10.0 * torch.arange(5)[None, :, None] + torch.arange(6)  # (1, T, D)
NOTE = "entry = 10 × token + feature"


def not_divided(runs, fails, where):
    """Name an answer that raises no ValueError if the heads don't divide the width."""
    runs()
    if isinstance(attempt(fails).error, ValueError):
        return None
    return Diagnosis("width-not-divided", f"You don't raise a ValueError{where}, although 3 heads don't divide 8 features. Test that yourself with `%` and `raise ValueError(...)`: an assert and PyTorch's own error are other errors, and rounding loses features.")  # fmt: skip


def split_not_divided(answer):
    """Name an answer that splits 8 features into 3 heads."""
    x = draw(2, 5, 8)
    return not_divided(lambda: answer(x, 2), lambda: answer(x, 3), "")


def split_heads(x, num_heads):
    features = x
    d_k = head_width(features.shape[-1], num_heads)
    heads = features.unflatten(-1, (num_heads, d_k)).transpose(1, 2)
    return heads


exercise_6_1 = Exercise(
    id="6.1",
    right=split_heads,
    course=attention.split_heads,
    returns="the heads (B, H, T, d_k) of x (B, T, D), head h with the features h*d_k … (h+1)*d_k - 1",
    probes=[split_not_divided],
    smallest_inputs={"num_heads": 1},
    mistakes=shared.SPLIT + [Mistake("heads-overlap", "Your heads overlap, because head h begins at feature h: it begins at h*d_k, after the features of the heads before it.", "heads = torch.stack([features[..., h : h + d_k] for h in range(num_heads)], 1)")],
    cases=[
        Case(LEGIBLE, 2, note=NOTE),
        Case(draw(2, 7, 15), 3),
        Case(draw(2, 3, 35), 5, note="more heads than tokens"),
        Case(draw(2, 5, 7), 1, note="one head"),
    ],
)  # fmt: skip


def merge_heads(x):
    output = x
    joined = output.transpose(1, 2).flatten(2)
    return joined


exercise_6_2 = Exercise(
    id="6.2",
    right=merge_heads,
    course=attention.merge_heads,
    returns="for the heads x (B, H, T, d_k) the tensor (B, T, H*d_k) in which the heads of a token are side by side, head 0 first: the inverse of split_heads",
    mistakes=shared.MERGE + shared.MERGE_ALONE,
    cases=[
        Case(split_heads(LEGIBLE, 2).contiguous(), note=NOTE),
        Case(draw(2, 3, 7, 5)),
        Case(draw(2, 5, 3, 7), note="more heads than tokens"),
        Case(draw(2, 1, 5, 7), note="one head"),
    ],
)

HEADS = [
    Mistake("scale-of-all-heads", "You divided the scores by √{width}, the root of d_out, all heads together: divide by √d_k, the root of one head's width.", "width = learned.build.d_out"),
    Mistake("scale-of-heads", "You divided the scores by √{num_heads}, the root of the number of heads: divide by √d_k, the root of one head's width.", "width = num_heads"),
    Mistake(*shared.OTHER_AXIS, "rows, columns = num_heads, num_heads", "rows, columns = d_k, d_k"),
    Mistake("softmax-over-heads", "You used dim=1, which is the head axis: use dim=-1, so that the weights sum to 1 over the keys.", "dim = 1", "dim = 1; hidden = scores.masked_fill(~mask, -1e9)"),
    Mistake("heads-and-words-exchanged", "You exchanged heads and words of `k`: exchange its last two axes, `k.mT`.", "products = query @ key.transpose(1, 2)"),
    Mistake("heads-not-split", "You didn't cut all of queries, keys and values into heads: cut each into num_heads parts of width d_k.", "query, key, value = split[0], split[1], value", "query, key, value = split[0], key, split[2]", "query, key, value = split[0], key, value", "heads = features[:, None]"),
    Mistake("head-repeated", "You used the same head each time: head h takes q[h], k[h] and v[h].", "query, key, value = (part[:, :1].expand_as(part) for part in split)"),
    Mistake("heads-not-side-by-side", "You didn't put the heads side by side: join them along the features, with merge_heads or torch.cat(heads, dim=-1).", "joined = output", "joined = torch.cat(output.unbind(1))", "joined = torch.stack(output.unbind(1), -1)", "projected = list(output.unbind(1))"),
]  # fmt: skip
IN_LAYER = shared.SCALE + shared.OF_INPUT + HEADS
IN_LAYER += shared.CAUSAL_MASK + shared.HIDDEN_SCORES + shared.MASK_SIZE
IN_LAYER += shared.SPLIT_IN_LAYER + shared.SPLIT + shared.MERGE + shared.OUT_PROJECTION
IN_LAYER += shared.WEIGHING + shared.PROJECT


def multi_head_attention(learned, x):
    num_heads = learned.build.num_heads
    context = x
    query = x @ learned.W_query
    key = context @ learned.W_key
    value = context @ learned.W_value
    split = []
    for features in (query, key, value):
        d_k = head_width(features.shape[-1], num_heads)
        heads = features.unflatten(-1, (num_heads, d_k)).transpose(1, 2)
        split.append(heads)
    query, key, value = split
    width = query.shape[-1]
    products = query @ key.mT
    scores = products / width**0.5
    rows, columns = x.shape[1], x.shape[1]
    diagonal = columns - rows
    mask = torch.ones(rows, columns).tril(diagonal) > 0
    hidden = scores.masked_fill(~mask, -torch.inf)
    dim = -1
    soft = softmax_of(hidden, dim)
    weights = soft
    output = weights @ value
    joined = output.transpose(1, 2).flatten(2)
    projected = F.linear(joined, learned.out_proj.mT, learned.out_proj_bias)
    return projected


BUILD, OTHER = (11, 15, 13, 0.2, 3), (5, 14, 17, 0.0, 2)
# Long tokens, nearly alike within a sentence: every score is large, none decides all.
LARGE = draw(2, 5, 11, scale=0.1) + 30 * draw(2, 1, 11).sign()


def width_not_divided(module, learned):
    """Name a layer that divides a width of 8 among 3 heads."""
    builds = (learned.build._replace(d_out=8, num_heads=heads) for heads in (2, 3))
    return not_divided(*(lambda b=b: type(module)(*b) for b in builds), " in __init__")


exercise_6_3 = Exercise(
    id="6.3",
    right=multi_head_attention,
    course=attention.MultiHeadAttention,
    class_signature="MultiHeadAttention(d_in, d_out, context_length, dropout, num_heads)",
    returns="from x (B, T, d_in) the output (B, T, d_out), with the learned matrices W_query, W_key, W_value (d_in to d_out, the width of all heads together) and out_proj (d_out to d_out)",
    projections=(*QKV, "out_proj"),
    probes=[width_not_divided, *TRAINING_PROBES],
    mistakes=IN_LAYER,
    # Where one maximum for all rows fails, none fails as well.
    skip_mistakes=("fixed-axis", "global-maximum-subtracted"),
    cases=[
        Case(draw(2, 7, 11), build=BUILD),
        Case(draw(2, 13, 11), build=BUILD, note="many tokens"),
        Case(draw(3, 11, 5), build=OTHER),
        Case(draw(2, 5, 7, scale=3.0), build=(7, 3, 11, 0.0, 1), note="one head"),
        Case(LARGE, build=BUILD, note="large scores"),
        Case(draw(13, 2, 5, scale=300.0), build=OTHER, note="one score far above all"),
    ],
)
# In the hour, whose card writes all but `forward`: without context_length and dropout.
exercise_3_in_the_hour = replace(
    exercise_6_3,
    id="3",
    page="attention_in_an_hour",
    same_as="6.3",
    counts_as="MultiHeadAttention in an hour",
    class_signature="MultiHeadAttention(d_in, d_out, num_heads)",
    probes=[width_not_divided, no_gradient, changes_in_training],
    skip_mistakes=(*exercise_6_3.skip_mistakes, "mask-not-sliced"),
    course=partial(attention.MultiHeadAttention, context_length=1024, dropout=0.0),
    cases=[
        Case(*case.args, note=case.note, build=case.build[:2] + case.build[-1:])
        for case in exercise_6_3.cases
    ],
)
