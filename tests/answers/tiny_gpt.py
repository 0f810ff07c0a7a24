"""Answers to the exercises of notebook 09."""

import torch
from torch import nn
from torch.nn import functional as F

from answers import right


class Parts(nn.Module):
    """Keep the sublayers and two norms; the answers below add their forward pass."""

    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attention = attention
        self.norm2 = nn.LayerNorm(d_model)
        self.feed_forward = feed_forward

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


@right("TransformerBlock")
class BlockTwoLines(Parts):
    pass


@right("TransformerBlock")
class BlockShortcuts(Parts):
    def forward(self, x, **kwargs):
        shortcut = x
        x = self.norm1(x)
        x = self.attention(x, **kwargs)
        x = x + shortcut
        shortcut = x
        x = self.norm2(x)
        x = self.feed_forward(x)
        return x + shortcut


@right("TransformerBlock")
class BlockLoop(nn.Module):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(d_model) for _ in range(2))
        self.parts = nn.ModuleList([attention, feed_forward])

    def forward(self, x):
        for norm, part in zip((self.norm1, self.norm2), self.parts):
            x = torch.add(x, part(norm(x)))
        return x


@right("next_token_probs")
def probs_threshold(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        smallest = torch.topk(logits, top_k).values[..., -1:]
        logits = logits.masked_fill(logits < smallest, float("-inf"))
    return torch.softmax(logits / temperature, dim=-1)


@right("next_token_probs")
def probs_scatter(logits, temperature=1.0, top_k=None):
    k = logits.shape[-1] if top_k is None else top_k
    values, indices = logits.topk(k, dim=-1)
    probs = F.softmax(values / temperature, dim=-1)
    return torch.zeros_like(logits).scatter(-1, indices, probs)


@right("next_token_probs")
def probs_renormalised(logits, temperature=1.0, top_k=None):
    probs = (logits.double() / temperature).softmax(-1)
    if top_k is not None:
        order = logits.argsort(-1, descending=True)
        rank = order.argsort(-1)
        probs = probs * (rank < top_k)
    return probs / probs.sum(-1, keepdim=True)


@right("next_token_probs")
def probs_rows(logits, temperature=1.0, top_k=None):
    if logits.dim() > 1:
        return torch.stack([probs_rows(row, temperature, top_k) for row in logits])
    scaled = logits / temperature
    ranked = sorted(scaled.tolist(), reverse=True)
    border = ranked[-1] if top_k is None else ranked[top_k - 1]
    allowed = scaled >= border
    exps = torch.exp(scaled - scaled.max()) * allowed
    return exps / exps.sum()


@right("top_p_probs")
def nucleus_shifted(logits, p):
    probs, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    better = F.pad(probs.cumsum(dim=-1)[..., :-1], (1, 0))
    kept = probs.masked_fill(better >= p, 0.0) if p < 1 else probs
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(kept).scatter(-1, order, kept)


@right("top_p_probs")
def nucleus_sum_without_itself(logits, p):
    probs = torch.softmax(logits, dim=-1)
    ranked, order = torch.sort(probs, dim=-1, descending=True)
    drop = (ranked.cumsum(-1) - ranked >= p) & (p < 1)
    ranked[drop] = 0.0
    ranked /= ranked.sum(-1, keepdim=True)
    return torch.empty_like(probs).scatter_(-1, order, ranked)


@right("top_p_probs")
def nucleus_on_logits(logits, p):
    values, order = logits.sort(dim=-1, descending=True)
    sums = values.softmax(-1).cumsum(-1)
    remove = sums > p
    remove[..., 1:] = remove[..., :-1].clone()
    remove[..., 0] = False
    remove = torch.zeros_like(remove).scatter(-1, order, remove)
    return torch.softmax(logits.masked_fill(remove, float("-inf")), dim=-1)


@right("top_p_probs")
def nucleus_rows(logits, p):
    if logits.dim() > 1:
        return torch.stack([nucleus_rows(row, p) for row in logits])
    probs = torch.softmax(logits, dim=0)
    kept, total = torch.zeros_like(probs), 0.0
    for i in probs.argsort(descending=True):
        kept[i] = probs[i]
        total += probs[i].item()
        if total >= p:
            break
    return kept / kept.sum()


def ranked(logits, p):
    """Return the probabilities, largest first, the order, and what stays of them."""
    probs, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    return probs, order, probs.cumsum(dim=-1) - probs < p
