"""Splitting features into heads and merging them, and what goes wrong in it."""

from torch.nn import functional as F


def head_width(width, num_heads):
    if width % num_heads:
        raise ValueError  # of any text
    return width // num_heads


def split(x, num_heads):
    K = head_width(x.shape[-1], num_heads)
    heads = x.unflatten(-1, (num_heads, K)).transpose(1, 2)
    return heads


def split_three(queries, keys, values, num_heads):
    query_heads = split(queries, num_heads)
    key_heads = split(keys, num_heads)
    value_heads = split(values, num_heads)
    return query_heads, key_heads, value_heads


def merge(x):
    joined = x.transpose(1, 2).flatten(2)
    return joined


def project_out(output, learned):
    """Return what a layer returns, from the outputs of its heads."""
    merged = merge(output)
    projected = F.linear(merged, learned.out_proj.mT, learned.out_proj_bias)
    return projected


SPLIT = {
    "heads = x.reshape(len(x), num_heads, -1, K)": "split-by-view: You split straight into (B, H, T, K), which deals out the numbers as they lie in memory and mixes tokens and heads: use view(B, T, H, K), then transpose(1, 2).",
    "heads = x.unflatten(-1, (K, num_heads)).permute(0, 3, 1, 2)": "features-interleaved: You gave head 0 the features 0, {num_heads} and so on, in steps of {num_heads}: a head owns features that follow each other, so put the heads before the width, view(B, T, H, K), then transpose(1, 2).",
    "K = head_width(x.shape[1], num_heads) and x.shape[-1] // num_heads": "another-width-checked: You checked whether num_heads divides another number, such as T or d_in: it should divide the width that you split, D, or d_out in a layer.",
}
IN_LAYER = {
    (
        "key_heads = keys.reshape(len(keys), num_heads, keys.shape[1], -1)",
        "value_heads = values.reshape(len(keys), num_heads, keys.shape[1], -1)",
    ): "split-by-view: You split only some of queries, keys and values with view(B, H, T, K), which mixes tokens and features: use view(B, T, H, K) and transpose(1, 2).",
    "width = query.shape[-1] if of_heads.head_width(x.shape[-1], num_heads) else 0": "another-width-checked: You checked whether num_heads divides d_in: it should divide the width that you split, d_out in a layer.",
}
MERGE = {
    (
        "joined = x.reshape(len(x), x.shape[2], -1)",
        "joined = x.flatten(2)",
    ): "merge-without-transpose: You merged without a transpose, which puts several tokens of one head into a row: transpose(1, 2) to (B, T, H, K) first, then reshape.",
    "joined = x.permute(0, 2, 3, 1).flatten(2)": "merge-interleaved: You put the first features of all heads first: keep each head together, with the axes (B, T, H, K) before the reshape.",
    (
        "joined = x.mT.reshape(len(x), x.shape[2], -1)",
        "joined = x.transpose(1, 3).reshape(len(x), x.shape[2], -1)",
    ): "wrong-axes-transposed: You swapped other axes than heads and tokens before the reshape: use transpose(1, 2), which gives (B, T, H, K).",
    "joined = x.transpose(1, 2).view(len(x), x.shape[2], -1)": "view-not-contiguous: You used view after transpose, but the numbers no longer lie in the order that view needs: use reshape or flatten(2).",
}
ALONE = {
    "joined = x.flatten(1, 2)": "heads-under-each-other: You put the heads one below the other, (B, H*T, K): put them side by side, by transpose(1, 2) before the reshape, or torch.cat with dim=-1.",
}
OUT = {
    "merged = output.sum(1)": "heads-summed: You passed {K} features to out_proj, as when heads are summed, averaged or lost: put them side by side, {D} features.",
    "projected = merged": "output-projection-unused: You left out the last step: send the merged heads through self.out_proj.",
}
