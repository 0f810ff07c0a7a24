"""Answers that a check once judged wrongly, and one for each error that it explains."""

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention as attend

from tests.answers import right, wrong
from utils import attention, data, model, tokenizer

weights = torch.ones(3, 3)  # a tensor of the notebook


@right
def merge(ids, pair, new_id):
    return [*map(np.int64, tokenizer.merge(ids, pair, new_id))]


@wrong("is-for-equal")
def merge(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        is_match = i + 1 < len(ids) and ids[i] is pair[0] and ids[i + 1] is pair[1]
        merged.append(new_id if is_match else ids[i])
        i += 2 if is_match else 1
    return merged


@right
def sliding_windows(ids, context_length, stride):
    return tuple(w.int() for w in data.sliding_windows(ids, context_length, stride))


@wrong("fixed-number-of-blocks")
def gpt_logits(token_ids, embedding, blocks, norm, output):
    return model.gpt_logits(token_ids, embedding, blocks[:3], norm, output)


@wrong("slice-size-ignored")
def online_softmax_attention(query, key, value, slice_size):
    return torch.cat([attend(row, key, value) for row in query.split(1, -2)], dim=-2)


@wrong("softmax-over-queries")
def attention_weights(x):
    exponentials = torch.exp(x @ x.T)
    return exponentials / exponentials.sum(dim=-1)


@wrong("exponential-missing", "softmax-over-queries")
def attention_weights(x):
    scores = x @ x.T
    return scores / scores.sum(dim=-1)


@wrong("not-called")
def attention_weights(x):
    return torch.softmax(x @ x.t, dim=-1)


@wrong("not-called")
def attention_weights(x):
    return x.t.softmax(dim=-1)


@wrong("name-undefined")
def attention_weights(x):
    return torch.softmax(scores, dim=-1)  # noqa: F821


@wrong("name-undefined")
def attention_weights(x):
    if len(x) > 9:
        scores = x @ x.T
    return torch.softmax(scores, dim=-1)


@wrong("dim-missing")
def attention_weights(x):
    return torch.softmax(x @ x.T)


@wrong("not-of-a-tensor")
def masked_softmax(scores, mask):
    return torch.softmax(scores.masked_fill(not mask, -torch.inf), dim=-1)


@wrong("notebook-tensor")
def context_vectors(x):
    return weights @ x


@wrong("returns-nothing")
def context_vectors(x):
    torch.softmax(x @ x.T, dim=-1) @ x


@wrong("pair-not-taken-apart")
def softmax(scores, dim=-1):
    exponentials = (scores - scores.max(dim, keepdim=True)).exp()
    return exponentials / exponentials.sum(dim, keepdim=True)


@wrong("import-missing")
def scaled_dot_product_attention(query, key, value):
    scores = query @ key.mT / math.sqrt(key.shape[-1])  # noqa: F821
    return torch.softmax(scores, -1) @ value


@wrong("self-missing")
class MultiHeadAttention(attention.MultiHeadAttention):
    def forward(self, x):
        return self.out_proj(W_query(x))  # noqa: F821


@wrong("layer-not-called")
class SelfAttention(attention.SelfAttention):
    def forward(self, x):
        return x @ self.W_query


@wrong("other-parameters")
class SelfAttention(attention.SelfAttention):
    def __init__(self, d_in):
        super().__init__(d_in, 5)


@wrong("axis-lost")
class SelfAttention(attention.SelfAttention):
    def forward(self, x):
        return super().forward(x.squeeze())


@wrong("float-for-size")
def split_heads(x, num_heads):
    return x.view(*x.shape[:2], num_heads, x.shape[2] / num_heads).transpose(1, 2)


@wrong("multiplied-by-entry")
def linear_attention(query, key, value):
    return (query * key.T).tril() @ value


@wrong("tokens-cut")
class MultiHeadAttention(attention.MultiHeadAttention):
    def forward(self, x):
        last = self.W_query(x).chunk(self.num_heads)[self.num_heads - 1]
        return super().forward(x) if len(last) else last


@wrong("tokens-cut")
class MultiHeadAttention(attention.MultiHeadAttention):
    def forward(self, x):
        values = self.W_value(x).chunk(self.num_heads, dim=1)
        return self.out_proj(torch.cat(values, dim=-1))


@wrong("one-change")
def attention_weights(x):
    rows = []
    for i in range(len(x) + 1):
        rows.append(torch.softmax(x[i] @ x.T, dim=-1))
    return torch.stack(rows)


@wrong("not-cut")
class MultiHeadAttention(attention.MultiHeadAttention):
    def forward(self, x):
        values = self.W_value(x)
        heads = [values[h] for h in range(self.num_heads)]
        return self.out_proj(torch.cat(heads, dim=-1))


@wrong("several-for-one")
class MultiHeadAttention(attention.MultiHeadAttention):
    def forward(self, x):
        return self.out_proj([self.W_value(x)])


@wrong("no-gradient")
def attention_weights(x):
    return torch.softmax(x @ x.T, dim=-1).detach()


@wrong("other-precision")
def attention_weights(x):
    return torch.softmax(x.double() @ x.double().T, dim=-1)


@wrong("changed-in-place")
def softmax(scores, dim=-1):
    exponentials = (scores - scores.amax(dim, keepdim=True)).exp()
    exponentials /= exponentials.sum(dim, keepdim=True)
    return exponentials


@wrong("no-gradient")
def gpt_logits(token_ids, embedding, blocks, norm, output):
    return model.gpt_logits(token_ids, embedding, blocks, norm, output).detach()
