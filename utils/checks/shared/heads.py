"""What goes wrong when features are split into heads, and when heads are merged."""

from utils.checks.definition import Mistake


def head_width(width, num_heads):
    if width % num_heads:
        raise ValueError  # of any text
    return width // num_heads


SPLIT = [
    Mistake("split-by-view", "You split straight into (B, H, T, d_k), which deals out the numbers as they lie in memory and mixes tokens and heads: split only the last axis, and exchange axes afterwards.", "heads = features.reshape(len(features), num_heads, -1, d_k)"),
    Mistake("features-interleaved", "You gave head 0 the features 0, {num_heads} and so on, in steps of {num_heads}: a head owns features that follow each other, so put the heads before the width when you split.", "heads = features.unflatten(-1, (d_k, num_heads)).permute(0, 3, 1, 2)"),
    Mistake("sizes-exchanged", "You cut each token into (d_k, H): the heads come before their width, view(B, T, H, d_k).", "heads = features.unflatten(-1, (d_k, num_heads)).transpose(1, 2)"),
    Mistake("another-width-checked", "You checked whether num_heads divides another number, such as T or d_in: it should divide the width that you split, D, or d_out in a layer.", "d_k = head_width(features.shape[1], num_heads) and features.shape[-1] // num_heads"),
]  # fmt: skip
IN_LAYER = [
    Mistake("split-by-view", "You split only some of queries, keys and values with view(B, H, T, d_k), which mixes tokens and features: use view(B, T, H, d_k) and transpose(1, 2).", "query, key, value = split[0], key.reshape(split[1].shape), split[2]"),
    Mistake("another-width-checked", "You checked whether num_heads divides d_in: it should divide the width that you split, d_out in a layer.", "x = x if head_width(x.shape[-1], learned.build.num_heads) else x"),
]  # fmt: skip
MERGE = [
    Mistake("merge-without-transpose", "You merged without a transpose, which puts several tokens of one head into a row: transpose(1, 2) to (B, T, H, d_k) first, then reshape.", "joined = output.reshape(len(output), output.shape[2], -1)", "joined = output.flatten(2)"),
    Mistake("merge-interleaved", "You put the first features of all heads first: keep each head together, with the axes (B, T, H, d_k) before the reshape.", "joined = output.permute(0, 2, 3, 1).flatten(2)"),
    Mistake("wrong-axes-transposed", "You swapped other axes than heads and tokens before the reshape: use transpose(1, 2), which gives (B, T, H, d_k).", "joined = output.mT.reshape(len(output), output.shape[2], -1)"),
    Mistake("view-not-contiguous", "You used view after transpose, but the numbers no longer lie in the order that view needs: use reshape or flatten(2).", "joined = output.transpose(1, 2).view(len(output), output.shape[2], -1)"),
]  # fmt: skip
ALONE = [Mistake("heads-under-each-other", "You put the heads one below the other, (B, H*T, d_k): put them side by side, by transpose(1, 2) before the reshape, or torch.cat with dim=-1.", "joined = output.flatten(1, 2)")]  # fmt: skip
OUT = [
    Mistake("heads-summed", "You passed {d_k} features to out_proj, as when heads are summed, averaged or lost: put them side by side, {learned.build.d_out} features.", "joined = output.sum(1)"),
    Mistake("output-projection-unused", "You left out the last step: send the merged heads through self.out_proj.", "projected = joined"),
]  # fmt: skip
