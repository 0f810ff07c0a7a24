"""Answers to the exercises of notebook 06."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from bank import right, wrong

# --- 6.1 --------------------------------------------------------------------------


@right("6.1")
def split_view(x, num_heads):
    B, T, D = x.shape
    if D % num_heads != 0:
        raise ValueError(f"{D} features and {num_heads} heads")
    return x.view(B, T, num_heads, D // num_heads).transpose(1, 2)


@right("6.1")
def split_unflatten(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError
    return x.unflatten(-1, (num_heads, -1)).permute(0, 2, 1, 3).contiguous()


@right("6.1")
def split_slices(x, num_heads):
    head_dim = x.shape[-1] // num_heads
    if head_dim * num_heads != x.shape[-1]:
        raise ValueError("the heads cannot share the features out evenly")
    heads = []
    for h in range(num_heads):
        heads.append(x[:, :, h * head_dim : (h + 1) * head_dim])
    return torch.stack(heads, dim=1)


@right("6.1")
def split_chunks(x, num_heads):
    if x.shape[-1] % num_heads != 0:
        raise ValueError(f"{x.shape[-1]} is not divisible by {num_heads}")
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)


@right("6.1")
def split_one_hot(x, num_heads):
    B, T, D = x.shape
    K, rest = divmod(D, num_heads)
    if rest > 0:
        raise ValueError(f"{rest} features are left over")
    pick = torch.zeros(num_heads, K, D)
    for d in range(D):
        pick[d // K, d % K, d] = 1.0
    return torch.einsum("btd,hkd->bhtk", x, pick)


@right("6.1")
def split_transposed_first(x, num_heads):
    B, T, D = x.shape
    if D % num_heads:
        raise ValueError("D must be a multiple of num_heads")
    return x.mT.reshape(B, num_heads, D // num_heads, T).transpose(-1, -2)


@right("6.1")
def split_entry_by_entry(x, num_heads):
    B, T, D = x.shape
    K, rest = divmod(D, num_heads)
    if rest:
        raise ValueError("does not divide")
    out = x.new_empty(B, num_heads, T, K)
    for d in range(D):
        out[:, d // K, :, d % K] = x[..., d]
    return out


@wrong("6.1", "split-by-view")
def split_view_alone(x, num_heads):
    b, t, d = x.shape
    return x.view(b, num_heads, t, d // num_heads)


@wrong("6.1", "split-by-view")
def split_reshape_twice(x, num_heads):
    B, T, D = x.shape
    K = D // num_heads
    return x.reshape(B, T, num_heads, K).reshape(B, num_heads, T, K)


@wrong("6.1", "split-after-transpose")
def split_turned_then_view(x, num_heads):
    B, T, D = x.shape
    return x.transpose(1, 2).view(B, num_heads, T, D // num_heads)


@wrong("6.1", "split-after-transpose")
def split_turned_then_reshape(x, num_heads):
    B, T, D = x.shape
    return x.transpose(1, 2).reshape(B, num_heads, T, D // num_heads)


@wrong("6.1", "axes-not-swapped")
def split_forgot_transpose(x, num_heads):
    B, T, D = x.shape
    return x.view(B, T, num_heads, D // num_heads)


@wrong("6.1", "features-interleaved")
def split_strides(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError
    return torch.stack([x[..., h::num_heads] for h in range(num_heads)], dim=1)


@wrong("6.1", "features-interleaved")
def split_width_first(x, num_heads):
    B, T, D = x.shape
    heads = x.view(B, T, D // num_heads, num_heads)
    return heads.permute(0, 3, 1, 2)


@wrong("6.1", "heads-and-width-exchanged")
def split_by_num_heads(x, num_heads):
    return torch.stack(x.split(num_heads, dim=-1), dim=1)


@wrong("6.1", "heads-and-width-exchanged")
def split_sizes_exchanged(x, num_heads):
    B, T, D = x.shape
    return x.view(B, T, D // num_heads, num_heads).transpose(1, 2)


@wrong("6.1", "heads-before-batch")
def split_stacked_first(x, num_heads):
    return torch.stack(x.chunk(num_heads, dim=-1))


@wrong("6.1", "heads-last")
def split_stacked_last(x, num_heads):
    return torch.stack(x.chunk(num_heads, dim=-1), dim=-1)


@wrong("6.1", "tokens-last")
def split_for_keys(x, num_heads):
    B, T, D = x.shape
    return x.view(B, T, num_heads, D // num_heads).permute(0, 2, 3, 1)


@wrong("6.1", "width-before-tokens")
def split_wrong_permutation(x, num_heads):
    B, T, D = x.shape
    return x.view(B, T, num_heads, D // num_heads).transpose(2, 3).transpose(1, 2)


@wrong("6.1", "heads-in-batch")
def split_into_batch(x, num_heads):
    B, T, D = x.shape
    heads = x.view(B, T, num_heads, D // num_heads).transpose(1, 2)
    return heads.reshape(B * num_heads, T, -1)


@wrong("6.1", "heads-in-batch")
def split_concatenated(x, num_heads):
    return torch.cat(x.split(x.shape[-1] // num_heads, dim=2), dim=0)


@wrong("6.1", "list-of-heads")
def split_list(x, num_heads):
    K = x.shape[-1] // num_heads
    return [x[:, :, h * K : h * K + K] for h in range(num_heads)]


@wrong("6.1", "list-of-heads")
def split_tuple(x, num_heads):
    return x.chunk(num_heads, dim=-1)


@wrong("6.1", "full-width-per-head")
def split_copies(x, num_heads):
    return torch.stack([x] * num_heads, dim=1)


@wrong("6.1", "heads-overlap")
def split_start_h(x, num_heads):
    K = x.shape[-1] // num_heads
    return torch.stack([x[..., h : h + K] for h in range(num_heads)], dim=1)


@wrong("6.1", "one-head-repeated")
def split_same_slice(x, num_heads):
    K = x.shape[-1] // num_heads
    return torch.stack([x[..., :K] for h in range(num_heads)], dim=1)


@wrong("6.1", "heads-from-one")
def split_counts_from_one(x, num_heads):
    K = x.shape[-1] // num_heads
    heads = [x[..., h * K : (h + 1) * K] for h in range(1, num_heads + 1)]
    return torch.stack(heads, dim=1)


@wrong("6.1", "last-feature-lost")
def split_ends_early(x, num_heads):
    K = x.shape[-1] // num_heads
    heads = [x[..., h * K : (h + 1) * K - 1] for h in range(num_heads)]
    return torch.stack(heads, dim=1)


@wrong("6.1", "tokens-before-batch")
def split_swaps_first_axes(x, num_heads):
    B, T, D = x.shape
    return x.view(B, T, num_heads, D // num_heads).swapaxes(0, 1)


@wrong("6.1", "split-after-transpose")
def split_dot_t(x, num_heads):
    B, T, D = x.shape
    return x.T.reshape(B, num_heads, T, D // num_heads)


@wrong("6.1", "samples-mixed")
def split_heads_in_front(x, num_heads):
    B, T, D = x.shape
    return x.view(num_heads, B, T, D // num_heads).transpose(0, 1)


@wrong("6.1", "tokens-shared-out")
def split_tokens(x, num_heads):
    B, T, D = x.shape
    return x.view(B, num_heads, T // num_heads, D)


@wrong("6.1", "tokens-shared-out")
def split_chunks_of_tokens(x, num_heads):
    return torch.stack(torch.chunk(x, num_heads, dim=1), dim=1)


@wrong("6.1", "width-is-a-float")
def split_true_division(x, num_heads):
    B, T, D = x.shape
    head_dim = D / num_heads
    return x.view(B, T, num_heads, head_dim).transpose(1, 2)


@wrong("6.1", "width-not-divided")
def split_drops_the_rest(x, num_heads):
    K = x.shape[-1] // num_heads
    heads = [x[..., h * K : (h + 1) * K] for h in range(num_heads)]
    return torch.stack(heads, dim=1)


@wrong("6.1", "width-not-divided")
def split_by_width(x, num_heads):
    K = x.shape[-1] // num_heads
    return x.unfold(-1, K, K).transpose(1, 2)


@wrong("6.1", "width-not-divided")
def split_asserted(x, num_heads):
    assert x.shape[-1] % num_heads == 0
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)


@wrong("6.1", "width-not-divided")
def split_left_to_torch(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).permute(0, 2, 1, 3).contiguous()


@wrong("6.1", "size-one-axes-dropped")
def split_squeezed(x, num_heads):
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1).squeeze()


@wrong("6.1", "two-heads-alone")
def split_into_halves(x, num_heads):
    K = x.shape[-1] // 2
    return torch.stack([x[..., :K], x[..., K:]], dim=1)


@wrong("6.1", "two-heads-alone")
def split_first_two(x, num_heads):
    K = x.shape[-1] // num_heads
    return torch.stack([x[..., h * K : (h + 1) * K] for h in range(2)], dim=1)


@wrong("6.1", "axes-misplaced")
def split_swaps_1_and_3(x, num_heads):
    B, T, D = x.shape
    return x.view(B, T, num_heads, D // num_heads).transpose(1, 3)


@wrong("6.1", "sizes-misread")
def split_misread(x, num_heads):
    B, D, T = x.shape
    return x.view(B, T, num_heads, D // num_heads).transpose(1, 2)


@wrong("6.1", "heads-under-each-other")
def split_concatenated_tokens(x, num_heads):
    return torch.cat(x.chunk(num_heads, dim=-1), dim=1)


@wrong("6.1", "always-refused")
def split_check_inverted(x, num_heads):
    B, T, D = x.shape
    if D % num_heads == 0:
        raise ValueError("does not divide")
    return x.view(B, T, num_heads, -1).transpose(1, 2)


@wrong("6.1", "tokens-counted")
def split_checks_tokens(x, num_heads):
    B, T, D = x.shape
    if T % num_heads:
        raise ValueError("does not divide")
    return x.view(B, T, num_heads, D // num_heads).transpose(1, 2)


@wrong("6.1", "returns-nothing")
def split_without_return(x, num_heads):
    B, T, D = x.shape
    x = x.view(B, T, num_heads, D // num_heads).transpose(1, 2)


@wrong("6.1", "input-changed")
def split_in_place(x, num_heads):
    B, T, D = x.shape
    return x.unsqueeze_(2).reshape(B, T, num_heads, D // num_heads).transpose(1, 2)


# --- 6.2 --------------------------------------------------------------------------


@right("6.2")
def merge_contiguous(x):
    B, H, T, K = x.shape
    return x.transpose(1, 2).contiguous().view(B, T, H * K)


@right("6.2")
def merge_flatten(x):
    return x.permute(0, 2, 1, 3).flatten(-2)


@right("6.2")
def merge_cat(x):
    return torch.cat([x[:, h] for h in range(x.shape[1])], dim=-1)


@right("6.2")
def merge_unbound(x):
    return torch.cat(x.unbind(dim=1), dim=2)


@right("6.2")
def merge_filled_in(x):
    B, H, T, K = x.size()
    out = torch.zeros(B, T, H * K, dtype=x.dtype)
    for h in range(H):
        out[:, :, h * K : (h + 1) * K] = x[:, h]
    return out


@right("6.2")
def merge_swapaxes(x):
    return x.swapaxes(-3, -2).reshape(*x.shape[:-3], x.shape[-2], -1)


@right("6.2")
def merge_einsum(x):
    B, H, T, K = x.shape
    eye = torch.eye(H * K).reshape(H, K, H * K)
    return torch.einsum("bhtk,hkd->btd", x, eye)


@wrong("6.2", "merge-without-transpose")
def merge_view(x):
    B, H, T, K = x.shape
    return x.view(B, T, H * K)


@wrong("6.2", "merge-without-transpose")
def merge_contiguous_alone(x):
    B, H, T, K = x.shape
    return x.contiguous().reshape(B, T, -1)


@wrong("6.2", "view-not-contiguous")
def merge_transpose_view(x):
    B, H, T, K = x.shape
    return x.transpose(1, 2).view(B, T, H * K)


@wrong("6.2", "heads-summed")
def merge_sum(x):
    return x.sum(dim=1)


@wrong("6.2", "heads-summed")
def merge_loop_of_sums(x):
    out = 0
    for h in range(x.shape[1]):
        out = out + x[:, h]
    return out


@wrong("6.2", "heads-averaged")
def merge_mean(x):
    return torch.mean(x, dim=1)


@wrong("6.2", "one-head-kept")
def merge_last_of_loop(x):
    for h in range(x.shape[1]):
        out = x[:, h]
    return out


@wrong("6.2", "samples-side-by-side")
def merge_loops_over_batch(x):
    return torch.cat([head for head in x], dim=-1)


@wrong("6.2", "batch-and-tokens-merged")
def merge_into_rows(x):
    B, H, T, K = x.shape
    return x.transpose(1, 2).reshape(-1, H * K)


@wrong("6.2", "all-merged")
def merge_flatten_one(x):
    return x.flatten(1)


@wrong("6.2", "axes-not-merged")
def merge_transpose_only(x):
    return x.transpose(1, 2)


@wrong("6.2", "merge-interleaved")
def merge_stack(x):
    heads = list(x.unbind(1))
    return torch.stack(heads, dim=-1).flatten(-2)


@wrong("6.2", "merge-interleaved")
def merge_other_permutation(x):
    B, H, T, K = x.shape
    return x.permute(0, 2, 3, 1).reshape(B, T, K * H)


@wrong("6.2", "batch-and-heads-merged")
def merge_batch(x):
    B, H, T, K = x.shape
    return x.reshape(B * H, T, K)


@wrong("6.2", "heads-under-each-other")
def merge_cat_tokens(x):
    return torch.cat([x[:, h] for h in range(x.shape[1])], dim=1)


@wrong("6.2", "tokens-merged")
def merge_flatten_two(x):
    return x.flatten(2)


@wrong("6.2", "tokens-merged")
def merge_misread_and_view(x):
    B, T, H, K = x.shape
    return x.reshape(B, T, H * K)


@wrong("6.2", "sizes-misread")
def merge_misread(x):
    B, T, H, K = x.shape
    return x.transpose(1, 2).reshape(B, T, H * K)


@wrong("6.2", "samples-mixed")
def merge_tokens_to_the_front(x):
    B, H, T, K = x.shape
    return x.permute(2, 0, 1, 3).reshape(B, T, H * K)


@wrong("6.2", "samples-mixed")
def merge_first_two(x):
    B, H, T, K = x.shape
    return x.transpose(0, 1).reshape(B, T, H * K)


@wrong("6.2", "wrong-axes-transposed")
def merge_last_two_turned(x):
    B, H, T, K = x.shape
    return x.transpose(-2, -1).reshape(B, T, H * K)


@wrong("6.2", "wrong-axes-transposed")
def merge_1_and_3(x):
    B, H, T, K = x.shape
    return x.transpose(1, 3).reshape(B, T, H * K)


@wrong("6.2", "features-before-tokens")
def merge_features_first(x):
    B, H, T, K = x.shape
    return x.transpose(2, 3).reshape(B, H * K, T)


@wrong("6.2", "size-one-axes-dropped")
def merge_squeezed(x):
    return torch.cat(x.split(1, dim=1), dim=-1).squeeze()


@wrong("6.2", "two-heads-alone")
def merge_two(x):
    return torch.cat([x[:, 0], x[:, 1]], dim=-1)


@wrong("6.2", "batch-and-heads-merged")
def merge_cat_batch(x):
    return torch.cat([x[:, h] for h in range(x.shape[1])], dim=0)


@wrong("6.2", "sizes-misread")
def merge_misread_last(x):
    B, H, K, T = x.shape
    return x.transpose(1, 2).reshape(B, T, H * K)


@wrong("6.2", "wrong-signature")
def merge_two_arguments(x, num_heads):
    B, H, T, K = x.shape
    return x.transpose(1, 2).reshape(B, T, num_heads * K)


@wrong("6.2", "returns-nothing")
def merge_without_return(x):
    x.transpose(1, 2).flatten(2)


@wrong("6.2", named=False)
def merge_rolled(x):
    B, H, T, K = x.shape
    return x.roll(1, dims=1).transpose(1, 2).reshape(B, T, H * K)


# --- 6.3 --------------------------------------------------------------------------


class Heads(nn.Module):
    """Four layers, a mask and a dropout; the answers below change a step or two."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out = {d_out} does not divide by {num_heads} heads")
        self.d_out = d_out
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        mask = torch.triu(torch.ones(context_length, context_length), diagonal=1)
        self.register_buffer("mask", mask.bool())

    def split(self, x):
        B, T, _ = x.shape
        return x.view(B, T, self.num_heads, self.head_dim).transpose(1, 2)

    def scores(self, query, key):
        return query @ key.transpose(-2, -1) / math.sqrt(self.head_dim)

    def hide(self, scores):
        T = scores.shape[-1]
        return scores.masked_fill(self.mask[:T, :T], float("-inf"))

    def weigh(self, scores):
        return torch.softmax(self.hide(scores), dim=-1)

    def merge(self, context):
        B, H, T, K = context.shape
        return context.transpose(1, 2).reshape(B, T, H * K)

    def forward(self, x):
        query = self.split(self.W_query(x))
        key = self.split(self.W_key(x))
        value = self.split(self.W_value(x))
        weights = self.dropout(self.weigh(self.scores(query, key)))
        return self.out_proj(self.merge(weights @ value))


@right("6.3")
class MultiHeadViews(Heads):
    pass


@right("6.3")
class MultiHeadLibrary(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads, self.p = num_heads, dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out, bias=False)

    def forward(self, x, need_weights=False):
        q, k, v = (
            layer(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        p = self.p if self.training else 0.0
        context = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
        return self.out_proj(context.transpose(1, 2).flatten(2))


@right("6.3")
class MultiHeadEinsum(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        self.K, rest = divmod(d_out, num_heads)
        if rest:
            raise ValueError(f"{d_out} features, {num_heads} heads")
        self.H, self.p = num_heads, dropout
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))
        self.out_proj = nn.Parameter(torch.rand(d_out, d_out))

    def forward(self, x):
        def heads(matrix):
            per_head = matrix.view(-1, self.H, self.K)
            return torch.einsum("btd,dhk->bthk", x, per_head)

        q, k, v = heads(self.W_query), heads(self.W_key), heads(self.W_value)
        scores = torch.einsum("bthk,bshk->bhts", q, k) * self.K**-0.5
        allowed = torch.arange(x.shape[1])[:, None] >= torch.arange(x.shape[1])
        weights = scores.where(allowed, -torch.inf).softmax(-1)
        weights = F.dropout(weights, self.p, training=self.training)
        context = torch.einsum("bhts,bshk->bthk", weights, v)
        return context.flatten(2) @ self.out_proj


@right("6.3")
class MultiHeadLoop(Heads):
    def forward(self, x):
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        T, K = x.shape[1], self.head_dim
        outputs = []
        for h in range(self.num_heads):
            q, k, v = (part[..., h * K : (h + 1) * K] for part in (query, key, value))
            scores = (q @ k.mT).masked_fill(self.mask[:T, :T], -torch.inf)
            weights = self.dropout(torch.softmax(scores / K**0.5, dim=-1))
            outputs.append(weights @ v)
        return self.out_proj(torch.cat(outputs, dim=-1))


class SideBySide(nn.Module):
    """A small layer for each head, their outputs next to each other."""

    def __init__(self, d_in, head_dim, num_heads):
        super().__init__()
        self.heads = nn.ModuleList(
            nn.Linear(d_in, head_dim, bias=False) for _ in range(num_heads)
        )

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)


@right("6.3")
class MultiHeadLayersPerHead(Heads):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__(d_in, d_out, context_length, dropout, num_heads)
        self.W_query = SideBySide(d_in, self.head_dim, num_heads)
        self.W_key = SideBySide(d_in, self.head_dim, num_heads)
        self.W_value = SideBySide(d_in, self.head_dim, num_heads)


@right("6.3")
class MultiHeadInTheBatch(Heads):
    def forward(self, x):
        q, k, v = (
            torch.cat(layer(x).double().split(self.head_dim, dim=-1), dim=0)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        scores = torch.baddbmm(
            torch.zeros(1, 1, 1, dtype=q.dtype), q, k.mT, alpha=self.head_dim**-0.5
        )
        future = torch.full(scores.shape[1:], -1e9, dtype=q.dtype).triu(1)
        context = self.dropout((scores + future).softmax(dim=2)) @ v
        merged = torch.cat(context.chunk(self.num_heads, dim=0), dim=2)
        return self.out_proj(merged.to(x.dtype))


@right("6.3")
class MultiHeadRenormalised(Heads):
    def weigh(self, scores):
        T = scores.shape[-1]
        weights = torch.softmax(scores, dim=-1).tril()
        sums = weights.sum(-1, keepdim=True)
        full = sums < 1e-30  # lost in float32: take the long way there
        hidden = torch.softmax(self.hide(scores), dim=-1)
        assert weights.shape[-2:] == (T, T)
        return torch.where(full, hidden, weights / sums)


# the heads


@wrong("6.3", "split-by-view")
class MultiHeadView(Heads):
    def split(self, x):
        B, T, _ = x.shape
        return x.view(B, self.num_heads, T, self.head_dim)


@wrong("6.3", "split-by-view")
class MultiHeadViewBothWays(MultiHeadView):
    def merge(self, context):
        B, H, T, K = context.shape
        return context.reshape(B, T, H * K)


@wrong("6.3", "split-by-view")
class MultiHeadValuesByView(Heads):
    def forward(self, x):
        B, T, _ = x.shape
        H, K = self.num_heads, self.head_dim
        query = self.W_query(x).view(B, T, H, K).transpose(1, 2)
        key = self.W_key(x).view(B, T, H, K).transpose(1, 2)
        value = self.W_value(x).view(B, H, T, K)
        weights = self.dropout(self.weigh(self.scores(query, key)))
        return self.out_proj(self.merge(weights @ value))


@wrong("6.3", "merge-without-transpose")
class MultiHeadMergedByView(Heads):
    def merge(self, context):
        B, H, T, K = context.shape
        return context.contiguous().view(B, T, H * K)


@wrong("6.3", "wrong-axes-transposed")
class MultiHeadMergedFromKeys(Heads):
    def merge(self, context):
        B, H, T, K = context.shape
        return context.transpose(1, 3).reshape(B, T, H * K)


@wrong("6.3", "sizes-misread")
class MultiHeadMergeMisread(Heads):
    def merge(self, context):
        B, T, H, K = context.shape
        return context.transpose(1, 2).reshape(B, T, self.d_out)


@wrong("6.3", "tokens-merged")
class MultiHeadFlattened(Heads):
    def merge(self, context):
        return context.flatten(2)


@wrong("6.3", "all-merged")
class MultiHeadAllFlattened(Heads):
    def merge(self, context):
        return context.transpose(1, 2).flatten(1)


@wrong("6.3", "split-after-transpose")
class MultiHeadTurnedFirst(Heads):
    def split(self, x):
        B, T, D = x.shape
        return x.transpose(1, 2).reshape(B, self.num_heads, T, self.head_dim)


@wrong("6.3", "width-before-tokens")
class MultiHeadPermuted(Heads):
    def split(self, x):
        B, T, D = x.shape
        heads = x.view(B, T, self.num_heads, self.head_dim)
        return heads.permute(0, 3, 1, 2)


@wrong("6.3", "tokens-last")
class MultiHeadSplitForKeys(Heads):
    def split(self, x):
        B, T, D = x.shape
        heads = x.view(B, T, self.num_heads, self.head_dim)
        return heads.permute(0, 2, 3, 1)


@wrong("6.3", "width-is-a-float")
class MultiHeadTrueDivision(Heads):
    def split(self, x):
        B, T, D = x.shape
        return x.view(B, T, self.num_heads, D / self.num_heads).transpose(1, 2)


@wrong("6.3", "two-heads-alone")
class MultiHeadTwo(Heads):
    def forward(self, x):
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        outputs = []
        for h in range(2):
            part = slice(h * self.head_dim, (h + 1) * self.head_dim)
            scores = self.scores(query[..., part], key[..., part])
            outputs.append(self.dropout(self.weigh(scores)) @ value[..., part])
        return self.out_proj(torch.cat(outputs, dim=-1))


@wrong("6.3", "view-not-contiguous")
class MultiHeadMergedByLateView(Heads):
    def merge(self, context):
        B, H, T, K = context.shape
        return context.transpose(1, 2).view(B, T, self.d_out)


@wrong("6.3", "features-interleaved")
class MultiHeadStrides(Heads):
    def split(self, x):
        H = self.num_heads
        return torch.stack([x[..., h::H] for h in range(H)], dim=1)


@wrong("6.3", "features-interleaved")
class MultiHeadStridesBothWays(MultiHeadStrides):
    def merge(self, context):
        return torch.stack(context.unbind(1), dim=-1).flatten(2)


@wrong("6.3", "merge-interleaved")
class MultiHeadStacked(Heads):
    def merge(self, context):
        return torch.stack(list(context.unbind(1)), dim=-1).flatten(-2)


@wrong("6.3", "heads-and-width-exchanged")
class MultiHeadSizesExchanged(Heads):
    def split(self, x):
        B, T, _ = x.shape
        return x.view(B, T, self.head_dim, self.num_heads).transpose(1, 2)


@wrong("6.3", "attends-over-heads")
class MultiHeadNoTranspose(Heads):
    def split(self, x):
        B, T, _ = x.shape
        return x.view(B, T, self.num_heads, self.head_dim)

    def hide(self, scores):
        T = scores.shape[1]
        return scores.masked_fill(self.mask[:T, :T], float("-inf"))

    def merge(self, context):
        return context.flatten(2)


@wrong("6.3", "attends-over-heads")
class MultiHeadLibraryNoTranspose(Heads):
    def forward(self, x):
        B, T, _ = x.shape
        q = self.W_query(x).view(B, T, self.num_heads, self.head_dim)
        k = self.W_key(x).view(B, T, self.num_heads, self.head_dim)
        v = self.W_value(x).view(B, T, self.num_heads, self.head_dim)
        context = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out_proj(context.reshape(B, T, self.d_out))


@wrong("6.3", "heads-summed")
class MultiHeadSummed(Heads):
    def merge(self, context):
        return context.sum(dim=1)


@wrong("6.3", "heads-summed")
class MultiHeadAveraged(Heads):
    def merge(self, context):
        return context.mean(dim=1)


@wrong("6.3", "full-width-per-head")
class MultiHeadWholeValues(Heads):
    def forward(self, x):
        query, key = self.split(self.W_query(x)), self.split(self.W_key(x))
        value = self.W_value(x)
        output = torch.zeros_like(value)
        for h in range(self.num_heads):
            weights = self.weigh(self.scores(query[:, h], key[:, h]))
            output = output + self.dropout(weights) @ value
        return self.out_proj(output)


@wrong("6.3", "heads-not-merged")
class MultiHeadFourAxes(Heads):
    def merge(self, context):
        return context


@wrong("6.3", "heads-not-merged")
class MultiHeadCatTokens(Heads):
    def merge(self, context):
        return torch.cat(context.unbind(1), dim=1)


@wrong("6.3", "heads-ignored")
class MultiHeadOneHead(Heads):
    def forward(self, x):
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = self.dropout(self.weigh(query @ key.mT / self.d_out**0.5))
        return self.out_proj(weights @ value)


@wrong("6.3", "one-head-repeated")
class MultiHeadSameSlice(Heads):
    def split(self, x):
        return torch.stack([x[..., : self.head_dim]] * self.num_heads, dim=1)


@wrong("6.3", "heads-overlap")
class MultiHeadLoopFromH(Heads):
    def forward(self, x):
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        outputs = []
        for h in range(self.num_heads):
            part = slice(h, h + self.head_dim)
            scores = self.scores(query[..., part], key[..., part])
            outputs.append(self.dropout(self.weigh(scores)) @ value[..., part])
        return self.out_proj(torch.cat(outputs, dim=-1))


@wrong("6.3", "samples-mixed")
class MultiHeadHeadsFirst(Heads):
    def split(self, x):
        B, T, _ = x.shape
        return x.view(self.num_heads, B, T, self.head_dim).transpose(0, 1)


@wrong("6.3", "samples-mixed")
class MultiHeadBatchBack(Heads):
    def forward(self, x):
        q, k, v = (
            torch.cat(layer(x).split(self.head_dim, dim=-1), dim=0)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        context = self.dropout(self.weigh(self.scores(q, k))) @ v
        return self.out_proj(context.reshape(len(x), -1, self.d_out))


@wrong("6.3", "batch-for-tokens")
class MultiHeadTokensFirst(Heads):
    def forward(self, x):
        T, B, _ = x.shape
        return super().forward(x.transpose(0, 1)).transpose(0, 1)


# the widths


@wrong("6.3", "width-not-divided")
class MultiHeadUnchecked(Heads):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__(d_in, d_out, context_length, dropout, num_heads=1)
        self.num_heads, self.head_dim = num_heads, d_out // num_heads


@wrong("6.3", "width-not-divided")
class MultiHeadAsserted(Heads):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        assert d_out % num_heads == 0, "d_out must be divisible by num_heads"
        super().__init__(d_in, d_out, context_length, dropout, num_heads)


@wrong("6.3", "width-not-divided")
class MultiHeadChecksInput(MultiHeadUnchecked):
    def split(self, x):
        return (
            x[..., : self.num_heads * self.head_dim]
            .unflatten(-1, (self.num_heads, self.head_dim))
            .transpose(1, 2)
        )

    def merge(self, context):
        merged = super().merge(context)
        return F.pad(merged, (0, self.d_out - merged.shape[-1]))


@wrong("6.3", "width-not-divided")
class MultiHeadRefusesInput(MultiHeadUnchecked):
    def forward(self, x):
        if self.d_out % self.num_heads:
            raise ValueError("d_out must be divisible by num_heads")
        return super().forward(x)


@wrong("6.3", "always-refused")
class MultiHeadCheckInverted(MultiHeadUnchecked):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        if d_out % num_heads == 0:
            raise ValueError("d_out must be divisible by num_heads")
        super().__init__(d_in, d_out, context_length, dropout, num_heads)


@wrong("6.3", "always-refused")
class MultiHeadOtherOrder(Heads):
    def __init__(self, d_in, d_out, num_heads, context_length, dropout):
        super().__init__(d_in, d_out, context_length, dropout, num_heads)


@wrong("6.3", "wrong-weight-shape")
class MultiHeadFullWidthEach(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out * num_heads, bias=False)
        self.W_key = nn.Linear(d_in, d_out * num_heads, bias=False)
        self.W_value = nn.Linear(d_in, d_out * num_heads, bias=False)
        self.out_proj = nn.Linear(d_out * num_heads, d_out)


@wrong("6.3", "wrong-weight-shape")
class MultiHeadProjectionPerHead(Heads):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__(d_in, d_out, context_length, dropout, num_heads)
        self.out_proj = nn.Linear(self.head_dim, self.head_dim)

    def merge(self, context):
        return context

    def forward(self, x):
        return super().forward(x).transpose(1, 2).flatten(2)


@wrong("6.3", "projection-missing")
class MultiHeadNoProjection(Heads):
    def __init__(self, *build):
        super().__init__(*build)
        del self.out_proj

    def forward(self, x):
        parts = self.W_query(x), self.W_key(x), self.W_value(x)
        query, key, value = map(self.split, parts)
        return self.merge(self.dropout(self.weigh(self.scores(query, key))) @ value)


@wrong("6.3", "output-projection-unused")
class MultiHeadProjectionForgotten(Heads):
    def forward(self, x):
        parts = self.W_query(x), self.W_key(x), self.W_value(x)
        query, key, value = map(self.split, parts)
        return self.merge(self.dropout(self.weigh(self.scores(query, key))) @ value)


@wrong("6.3", "modules-in-a-list")
class MultiHeadListOfHeads(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("does not divide")
        build = d_in, d_out // num_heads, context_length, dropout, 1
        self.heads = [Heads(*build) for _ in range(num_heads)]
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        return self.out_proj(torch.cat([head(x) for head in self.heads], dim=-1))


# the scale


@wrong("6.3", "scale-missing")
class MultiHeadUnscaled(Heads):
    def scores(self, query, key):
        return query @ key.transpose(2, 3)


@wrong("6.3", "scale-of-all-heads")
class MultiHeadRootOfAll(Heads):
    def scores(self, query, key):
        return query @ key.transpose(2, 3) / self.d_out**0.5


@wrong("6.3", "scale-of-input-width")
class MultiHeadRootOfInput(Heads):
    def forward(self, x):
        self.root = x.shape[-1] ** 0.5
        return super().forward(x)

    def scores(self, query, key):
        return query @ key.transpose(2, 3) / self.root


@wrong("6.3", "scale-of-tokens")
class MultiHeadRootOfTokens(Heads):
    def scores(self, query, key):
        return query @ key.mT / math.sqrt(key.shape[2])


@wrong("6.3", "scale-of-number-of-heads")
class MultiHeadRootOfHeads(Heads):
    def scores(self, query, key):
        return query @ key.mT / math.sqrt(self.num_heads)


@wrong("6.3", "divided-by-width")
class MultiHeadOverWidth(Heads):
    def scores(self, query, key):
        return query @ key.mT / self.head_dim


@wrong("6.3", "divided-by-width")
class MultiHeadScaledTwice(Heads):
    def forward(self, x):
        parts = self.W_query(x), self.W_key(x), self.W_value(x)
        q, k, v = map(self.split, parts)
        p = self.dropout.p if self.training else 0.0
        q = q / self.head_dim**0.5
        context = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
        return self.out_proj(self.merge(context))


@wrong("6.3", "scale-multiplied")
class MultiHeadTimesRoot(Heads):
    def scores(self, query, key):
        return query @ key.mT / self.head_dim**-0.5


@wrong("6.3", "scale-halves")
class MultiHeadPrecedence(Heads):
    def scores(self, query, key):
        return query @ key.mT / (self.head_dim**1 / 2)


@wrong("6.3", "root-rounded")
class MultiHeadWholeRoot(Heads):
    def scores(self, query, key):
        return query @ key.mT / int(self.head_dim**0.5)


@wrong("6.3", "compares-angles")
class MultiHeadCosine(Heads):
    def scores(self, query, key):
        return F.normalize(query, dim=-1) @ F.normalize(key, dim=-1).mT


@wrong("6.3", "heads-share-weights")
class MultiHeadMeanWeights(Heads):
    def weigh(self, scores):
        return super().weigh(scores).mean(dim=1, keepdim=True)


@wrong("6.3", "last-token-only")
class MultiHeadLastToken(Heads):
    def forward(self, x):
        return super().forward(x)[:, -1, :]


@wrong("6.3", "scale-after-softmax")
class MultiHeadLateScale(Heads):
    def scores(self, query, key):
        return query @ key.mT

    def weigh(self, scores):
        return super().weigh(scores) / self.head_dim**0.5


# the mask


@wrong("6.3", "mask-not-used")
class MultiHeadFutureSeen(Heads):
    def hide(self, scores):
        return scores


@wrong("6.3", "mask-not-used")
class MultiHeadMaskedForNothing(Heads):
    def hide(self, scores):
        T = scores.shape[-1]
        scores.masked_fill(self.mask[:T, :T], float("-inf"))
        return scores


@wrong("6.3", "polarity-inverted")
class MultiHeadInverted(Heads):
    def hide(self, scores):
        T = scores.shape[-1]
        return scores.masked_fill(~self.mask[:T, :T], -torch.inf)


@wrong("6.3", "polarity-inverted")
class MultiHeadInvertedLarge(Heads):
    def hide(self, scores):
        T = scores.shape[-1]
        return scores.masked_fill(torch.ones(T, T).tril() == 1, -1e9)


@wrong("6.3", "polarity-inverted")
class MultiHeadInvertedLibrary(Heads):
    def forward(self, x):
        parts = self.W_query(x), self.W_key(x), self.W_value(x)
        T = x.shape[1]
        context = F.scaled_dot_product_attention(
            *map(self.split, parts), attn_mask=self.mask[:T, :T]
        )
        return self.out_proj(self.merge(context))


@wrong("6.3", "upper-for-lower")
class MultiHeadUpper(Heads):
    def hide(self, scores):
        allowed = torch.ones(scores.shape[-2:]).triu()
        return scores.masked_fill(allowed == 0, -torch.inf)


@wrong("6.3", "diagonal-masked")
class MultiHeadDiagonal(Heads):
    def hide(self, scores):
        future = torch.triu(torch.ones(scores.shape[-2:])).bool()
        return scores.masked_fill(future, -torch.inf)


@wrong("6.3", "diagonal-masked")
class MultiHeadDiagonalLibrary(Heads):
    def forward(self, x):
        T = x.shape[1]
        allowed = torch.ones(T, T).tril(-1).bool()
        parts = self.W_query(x), self.W_key(x), self.W_value(x)
        q, k, v = map(self.split, parts)
        context = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
        return self.out_proj(self.merge(context))


@wrong("6.3", "one-step-leaked")
class MultiHeadOneStep(Heads):
    def hide(self, scores):
        future = torch.triu(torch.ones(scores.shape[-2:]), diagonal=2).bool()
        return scores.masked_fill(future, -torch.inf)


@wrong("6.3", "zero-times-infinity")
class MultiHeadZeroTimesInfinity(Heads):
    def hide(self, scores):
        future = torch.triu(torch.ones(scores.shape[-2:]), diagonal=1)
        return scores + future * float("-inf")


@wrong("6.3", "zero-for-minus-infinity")
class MultiHeadTimesMask(Heads):
    def hide(self, scores):
        return scores * torch.tril(torch.ones(scores.shape[-2:]))


@wrong("6.3", "zero-for-minus-infinity")
class MultiHeadTinyFill(Heads):
    def hide(self, scores):
        T = scores.shape[-1]
        return scores.masked_fill(self.mask[:T, :T], 1e-9)


@wrong("6.3", "mask-filled-with-plus")
class MultiHeadPlus(Heads):
    def hide(self, scores):
        T = scores.shape[-1]
        return scores.masked_fill(self.mask[:T, :T], 1e9)


@wrong("6.3", "fill-not-small-enough")
class MultiHeadMinusTen(Heads):
    def hide(self, scores):
        T = scores.shape[-1]
        return scores.masked_fill(self.mask[:T, :T], -10)


@wrong("6.3", "mask-off-in-training")
class MultiHeadMaskInEval(Heads):
    def hide(self, scores):
        return scores if self.training else super().hide(scores)


@wrong("6.3", "mask-after-softmax")
class MultiHeadLateMask(Heads):
    def weigh(self, scores):
        return torch.tril(torch.softmax(scores, dim=-1))


@wrong("6.3", "minus-1e9")
class MultiHeadMinusBillion(Heads):
    def hide(self, scores):
        T = scores.shape[-1]
        return scores.masked_fill(self.mask[:T, :T], -1e9)


@wrong("6.3", "mask-added")
class MultiHeadMaskAdded(Heads):
    def hide(self, scores):
        T = scores.shape[-1]
        return scores + self.mask[:T, :T]


@wrong("6.3", "infinite-weights")
class MultiHeadLateInfinity(Heads):
    def weigh(self, scores):
        return self.hide(torch.softmax(scores, dim=-1))


@wrong("6.3", "infinite-weights")
class MultiHeadPlusInfinity(Heads):
    def hide(self, scores):
        T = scores.shape[-1]
        return scores.masked_fill(self.mask[:T, :T], float("inf"))


@wrong("6.3", "mask-not-sliced")
class MultiHeadWholeMask(Heads):
    def hide(self, scores):
        return scores.masked_fill(self.mask, float("-inf"))


@wrong("6.3", "mask-not-sliced")
class MultiHeadWholeMaskInPlace(Heads):
    def hide(self, scores):
        scores.masked_fill_(self.mask, -torch.inf)
        return scores


@wrong("6.3", "mask-not-sliced")
class MultiHeadHalfSlicedMask(Heads):
    def hide(self, scores):
        return scores.masked_fill(self.mask[: scores.shape[2]], -torch.inf)


@wrong("6.3", "mask-sliced-by-heads")
class MultiHeadSecondAxis(Heads):
    def hide(self, scores):
        T = scores.shape[1]
        return scores.masked_fill(self.mask[:T, :T], -torch.inf)


@wrong("6.3", "mask-sliced-by-batch")
class MultiHeadFirstAxis(Heads):
    def hide(self, scores):
        T = len(scores)
        return scores.masked_fill_(self.mask[:T, :T], -torch.inf)


@wrong("6.3", "mask-not-buffer")
class MultiHeadPlainMask(Heads):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__(d_in, d_out, context_length, dropout, num_heads)
        del self.mask
        self.mask = torch.ones(context_length, context_length).triu(1).bool()


@wrong("6.3", "mask-is-a-parameter")
class MultiHeadTrainedMask(Heads):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__(d_in, d_out, context_length, dropout, num_heads)
        lower = torch.tril(torch.ones(context_length, context_length))
        self.lower = nn.Parameter(lower)

    def hide(self, scores):
        T = scores.shape[-1]
        return scores.masked_fill(self.lower[:T, :T] == 0, -torch.inf)


# the softmax


@wrong("6.3", "softmax-over-queries")
class MultiHeadColumns(Heads):
    def weigh(self, scores):
        return torch.softmax(self.hide(scores), dim=-2)


@wrong("6.3", "softmax-over-heads")
class MultiHeadAcross(Heads):
    def weigh(self, scores):
        return torch.softmax(self.hide(scores), dim=1)


@wrong("6.3", "softmax-over-heads")
class MultiHeadNoDim(Heads):
    def weigh(self, scores):
        return F.softmax(self.hide(scores))


@wrong("6.3", "softmax-over-heads")
class MultiHeadAcrossLarge(Heads):
    def weigh(self, scores):
        T = scores.shape[-1]
        return torch.softmax(scores.masked_fill(self.mask[:T, :T], -1e9), dim=1)


@wrong("6.3", "softmax-over-batch")
class MultiHeadOverBatch(Heads):
    def weigh(self, scores):
        return torch.softmax(self.hide(scores), dim=0)


@wrong("6.3", "softmax-missing")
class MultiHeadRaw(Heads):
    def weigh(self, scores):
        return torch.tril(scores)


@wrong("6.3", "softmax-twice")
class MultiHeadSoftmaxTwice(Heads):
    def weigh(self, scores):
        weights = super().weigh(scores)
        return F.softmax(weights, dim=-1)


@wrong("6.3", "renormalised-after")
class MultiHeadSumRestored(Heads):
    def weigh(self, scores):
        weights = torch.softmax(scores, dim=-1).tril()
        return weights / weights.sum(dim=-1, keepdim=True)


@wrong("6.3", "softmax-overflows")
class MultiHeadOwnSoftmax(Heads):
    def weigh(self, scores):
        exps = torch.exp(self.hide(scores))
        return exps / exps.sum(dim=-1, keepdim=True)


# the dropout


@wrong("6.3", "dropout-missing")
class MultiHeadNoDropout(Heads):
    def __init__(self, *build):
        super().__init__(*build)
        self.dropout = nn.Identity()


@wrong("6.3", "dropout-in-eval")
class MultiHeadAlwaysDrops(Heads):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__(d_in, d_out, context_length, dropout, num_heads)
        self.p = dropout

    def weigh(self, scores):
        return F.dropout(super().weigh(scores), self.p)


@wrong("6.3", "dropout-before-softmax")
class MultiHeadDropsScores(Heads):
    def forward(self, x):
        parts = self.W_query(x), self.W_key(x), self.W_value(x)
        query, key, value = map(self.split, parts)
        weights = self.weigh(self.dropout(self.scores(query, key)))
        return self.out_proj(self.merge(weights @ value))


@wrong("6.3", "dropout-not-on-weights")
class MultiHeadDropsOutput(Heads):
    def forward(self, x):
        parts = self.W_query(x), self.W_key(x), self.W_value(x)
        query, key, value = map(self.split, parts)
        context = self.weigh(self.scores(query, key)) @ value
        return self.dropout(self.out_proj(self.merge(context)))


@wrong("6.3", "dropout-other-share")
class MultiHeadFixedShare(Heads):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__(d_in, d_out, context_length, dropout, num_heads)
        self.dropout = nn.Dropout(0.5)


@wrong("6.3", "dropout-not-rescaled")
class MultiHeadOwnDropout(Heads):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__(d_in, d_out, context_length, 0.0, num_heads)
        self.p = dropout

    def weigh(self, scores):
        weights = super().weigh(scores)
        if self.training:
            weights = weights * (torch.rand_like(weights) > self.p)
        return weights


# the projections


@wrong("6.3", "keys-for-values")
class MultiHeadAveragesKeys(Heads):
    def forward(self, x):
        query, key = self.split(self.W_query(x)), self.split(self.W_key(x))
        weights = self.dropout(self.weigh(self.scores(query, key)))
        return self.out_proj(self.merge(weights @ key))


@wrong("6.3", "keys-times-queries")
class MultiHeadTurnedRound(Heads):
    def scores(self, query, key):
        return key @ query.transpose(-2, -1) / self.head_dim**0.5


@wrong("6.3", "queries-for-keys")
class MultiHeadQueriesTwice(Heads):
    def scores(self, query, key):
        return super().scores(query, query)


@wrong("6.3", "fixed-axes")
class MultiHeadFixedAxes(Heads):
    def scores(self, query, key):
        return query @ key.transpose(1, 2) / self.head_dim**0.5


@wrong("6.3", "transpose-of-all-axes")
class MultiHeadDotT(Heads):
    def scores(self, query, key):
        return query @ key.T / self.head_dim**0.5


@wrong("6.3", "weight-not-transposed")
class MultiHeadRawWeight(Heads):
    def forward(self, x):
        parts = self.W_query(x), self.W_key(x), self.W_value(x)
        query, key, value = map(self.split, parts)
        context = self.merge(self.dropout(self.weigh(self.scores(query, key))) @ value)
        return context @ self.out_proj.weight + self.out_proj.bias


@wrong("6.3", "output-projection-without-bias")
class MultiHeadWeightAlone(Heads):
    def forward(self, x):
        parts = self.W_query(x), self.W_key(x), self.W_value(x)
        query, key, value = map(self.split, parts)
        context = self.merge(self.dropout(self.weigh(self.scores(query, key))) @ value)
        return context @ self.out_proj.weight.T


# two mistakes at once


@wrong("6.3", "queries-for-keys")
class MultiHeadQueriesTwiceAndResidual(Heads):
    def forward(self, x):
        parts = self.W_query(x), self.W_query(x), self.W_value(x)
        query, key, value = map(self.split, parts)
        context = self.merge(self.dropout(self.weigh(self.scores(query, key))) @ value)
        return self.out_proj(context) + self.W_value(x)


@wrong("6.3", "diagonal-masked")
class MultiHeadDiagonalMergedByView(MultiHeadDiagonal):
    def merge(self, context):
        B, H, T, K = context.shape
        return context.reshape(B, T, H * K)


@wrong("6.3", "value-added")
class MultiHeadResidual(Heads):
    def forward(self, x):
        return self.W_value(x) + super().forward(x)


@wrong("6.3", "size-one-axes-dropped")
class MultiHeadSqueezed(Heads):
    def forward(self, x):
        return super().forward(x).squeeze()


@wrong("6.3", "unasked-bias")
class MultiHeadBias(Heads):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__(d_in, d_out, context_length, dropout, num_heads)
        self.W_key = nn.Linear(d_in, d_out)


@wrong("6.3", "shared-weights")
class MultiHeadSharedMatrix(Heads):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__(d_in, d_out, context_length, dropout, num_heads)
        self.W_query = self.W_key


@wrong("6.3", "weights-not-registered")
class MultiHeadPlainTensors(Heads):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__(d_in, d_out, context_length, dropout, num_heads)
        del self.W_value
        self.W_value = torch.rand(d_in, d_out)


@wrong("6.3", "returns-a-tuple")
class MultiHeadBoth(Heads):
    def forward(self, x):
        scores = self.scores(self.split(self.W_query(x)), self.split(self.W_key(x)))
        return super().forward(x), self.weigh(scores)


@wrong("6.3", "no-gradient")
class MultiHeadDetached(Heads):
    def scores(self, query, key):
        return super().scores(query.detach(), key.detach())


@wrong("6.3", "wrong-signature")
class MultiHeadNoLength(Heads):
    def __init__(self, d_in, d_out, num_heads, dropout=0.0):
        super().__init__(d_in, d_out, 64, dropout, num_heads)


@wrong("6.3", "super-init-missing")
class MultiHeadNoSuper(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        self.W_query = nn.Linear(d_in, d_out, bias=False)


@wrong("6.3", named=False)
class MultiHeadBadlyWeighted(Heads):
    def weigh(self, scores):
        return super().weigh(scores).square()


@wrong("6.2", "returns-nothing")
def merge_but_for_one_head(x):
    if x.shape[1] > 1:
        return x.transpose(1, 2).flatten(2)
