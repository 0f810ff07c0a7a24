"""Answers to the exercises of notebook 09."""

import torch
from torch import nn
from torch.nn import functional as F

from bank import right, wrong


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


@right("9.1")
class BlockTwoLines(Parts):
    pass


@right("9.1")
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


@right("9.1")
class BlockLoop(nn.Module):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(d_model) for _ in range(2))
        self.parts = nn.ModuleList([attention, feed_forward])

    def forward(self, x):
        for norm, part in zip((self.norm1, self.norm2), self.parts):
            x = torch.add(x, part(norm(x)))
        return x


class OwnNorm(nn.Module):
    """A layer norm from its formula."""

    def __init__(self, d_model):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.square().mean(-1, keepdim=True)
        return self.weight * centred / (variance + 1e-5).sqrt() + self.bias


@right("9.1")
class BlockOwnNorm(Parts):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__(attention, feed_forward, d_model)
        self.norm1, self.norm2 = OwnNorm(d_model), OwnNorm(d_model)


@right("9.1")
class BlockSequential(nn.Module):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.gather = nn.Sequential(self.norm1, attention)
        self.think = nn.Sequential(self.norm2, feed_forward)

    def forward(self, x):
        gathered = x + self.gather(x)
        return gathered + self.think(gathered)


@wrong("9.1", "post-norm")
class BlockPostNorm(Parts):
    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.feed_forward(x))


@wrong("9.1", "norm-after-sublayer")
class BlockNormBehind(Parts):
    def forward(self, x):
        x = x + self.norm1(self.attention(x))
        return x + self.norm2(self.feed_forward(x))


@wrong("9.1", "residual-after-norm")
class BlockNormedStream(Parts):
    def forward(self, x):
        x = self.norm1(x)
        x = x + self.attention(x)
        x = self.norm2(x)
        return x + self.feed_forward(x)


@wrong("9.1", "residual-after-norm")
class BlockNormedFirst(Parts):
    def forward(self, x):
        normed = self.norm1(x)
        x = normed + self.attention(normed)
        return x + self.feed_forward(self.norm2(x))


@wrong("9.1", "residual-after-norm")
class BlockNormedSecond(Parts):
    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        normed = self.norm2(x)
        return normed + self.feed_forward(normed)


@wrong("9.1", "residuals-missing")
class BlockNoResidual(Parts):
    def forward(self, x):
        x = self.attention(self.norm1(x))
        return self.feed_forward(self.norm2(x))


@wrong("9.1", "attention-residual-missing")
class BlockNoFirstResidual(Parts):
    def forward(self, x):
        x = self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


@wrong("9.1", "mlp-residual-missing")
class BlockNoSecondResidual(Parts):
    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return self.feed_forward(self.norm2(x))


@wrong("9.1", "one-residual-for-both")
class BlockOneResidual(Parts):
    def forward(self, x):
        attended = self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(attended))


@wrong("9.1", "first-residual-lost")
class BlockStartAdded(Parts):
    def forward(self, x):
        attended = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(attended))


@wrong("9.1", "sublayers-parallel")
class BlockParallel(Parts):
    def forward(self, x):
        return x + self.attention(self.norm1(x)) + self.feed_forward(self.norm2(x))


@wrong("9.1", "order-swapped")
class BlockThinkFirst(Parts):
    def forward(self, x):
        x = x + self.feed_forward(self.norm1(x))
        return x + self.attention(self.norm2(x))


@wrong("9.1", "norms-unused")
class BlockNoNorm(Parts):
    def forward(self, x):
        x = x + self.attention(x)
        return x + self.feed_forward(x)


@wrong("9.1", "first-norm-unused")
class BlockNoFirstNorm(Parts):
    def forward(self, x):
        x = x + self.attention(x)
        return x + self.feed_forward(self.norm2(x))


@wrong("9.1", "second-norm-unused")
class BlockNoSecondNorm(Parts):
    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(x)


@wrong("9.1", "norm-at-the-end")
class BlockThirdNorm(Parts):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__(attention, feed_forward, d_model)
        self.norm3 = nn.LayerNorm(d_model)

    def forward(self, x):
        return self.norm3(super().forward(x))


@wrong("9.1", "attention-twice")
class BlockAttentionTwice(Parts):
    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.attention(self.norm2(x))


@wrong("9.1", "mlp-twice")
class BlockArgumentsMixed(Parts):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__(feed_forward, feed_forward, d_model)


@wrong("9.1", "order-swapped")
class BlockArgumentsSwapped(Parts):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__(feed_forward, attention, d_model)


@wrong("9.1", "mlp-missing")
class BlockHalf(Parts):
    def forward(self, x):
        return x + self.attention(self.norm1(x))


@wrong("9.1", "one-norm-shared")
class BlockOneNorm(Parts):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__(attention, feed_forward, d_model)
        self.norm1 = self.norm2 = nn.LayerNorm(d_model)


@wrong("9.1", "one-norm-shared")
class BlockFirstNormTwice(Parts):
    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm1(x))


@wrong("9.1", "norms-swapped")
class BlockNormsSwapped(Parts):
    def forward(self, x):
        x = x + self.attention(self.norm2(x))
        return x + self.feed_forward(self.norm1(x))


@wrong("9.1", "norms-missing")
class BlockFunctionalNorm(nn.Module):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.attention, self.feed_forward = attention, feed_forward
        self.d_model = d_model

    def forward(self, x):
        x = x + self.attention(F.layer_norm(x, (self.d_model,)))
        return x + self.feed_forward(F.layer_norm(x, (self.d_model,)))


@wrong("9.1", "norms-missing")
class BlockOtherNames(nn.Module):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn, self.mlp = attention, feed_forward

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


@wrong("9.1", "weights-not-registered")
class BlockList(nn.Module):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.sublayers = [attention, feed_forward]

    def forward(self, x):
        for norm, sublayer in zip((self.norm1, self.norm2), self.sublayers):
            x = x + sublayer(norm(x))
        return x


@wrong("9.1", "no-gradient")
class BlockNoGrad(Parts):
    @torch.no_grad()
    def forward(self, x):
        return super().forward(x)


@wrong("9.1", "changes-in-training")
class BlockDropout(Parts):
    def forward(self, x):
        return F.dropout(super().forward(x), 0.1, self.training)


@wrong("9.1", "super-init-missing")
class BlockNoSuper(Parts):
    def __init__(self, attention, feed_forward, d_model):
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)


@wrong("9.1", "wrong-signature")
class BlockWidthAlone(Parts):
    def __init__(self, d_model):
        super().__init__(nn.Identity(), nn.Identity(), d_model)


@wrong("9.1", "input-changed")
class BlockInPlace(Parts):
    def forward(self, x):
        x += self.attention(self.norm1(x))
        x += self.feed_forward(self.norm2(x))
        return x


@wrong("9.1", "returns-nothing")
class BlockNoReturn(Parts):
    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        x = x + self.feed_forward(self.norm2(x))


@wrong("9.1", named=False)
class BlockSubtracts(Parts):
    def forward(self, x):
        x = x - self.attention(self.norm1(x))
        return x - self.feed_forward(self.norm2(x))


@right("9.2")
def probs_threshold(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        smallest = torch.topk(logits, top_k).values[..., -1:]
        logits = logits.masked_fill(logits < smallest, float("-inf"))
    return torch.softmax(logits / temperature, dim=-1)


@right("9.2")
def probs_scatter(logits, temperature=1.0, top_k=None):
    k = logits.shape[-1] if top_k is None else top_k
    values, indices = logits.topk(k, dim=-1)
    probs = F.softmax(values / temperature, dim=-1)
    return torch.zeros_like(logits).scatter(-1, indices, probs)


@right("9.2")
def probs_renormalised(logits, temperature=1.0, top_k=None):
    probs = (logits.double() / temperature).softmax(-1)
    if top_k is not None:
        order = logits.argsort(-1, descending=True)
        rank = order.argsort(-1)
        probs = probs * (rank < top_k)
    return probs / probs.sum(-1, keepdim=True)


@right("9.2")
def probs_rows(logits, temperature=1.0, top_k=None):
    if logits.dim() > 1:
        return torch.stack([probs_rows(row, temperature, top_k) for row in logits])
    scaled = logits / temperature
    ranked = sorted(scaled.tolist(), reverse=True)
    border = ranked[-1] if top_k is None else ranked[top_k - 1]
    allowed = scaled >= border
    exps = torch.exp(scaled - scaled.max()) * allowed
    return exps / exps.sum()


@wrong("9.2", "temperature-multiplied")
def probs_hotter(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        smallest = logits.topk(top_k).values[..., -1:]
        logits = logits.masked_fill(logits < smallest, float("-inf"))
    return torch.softmax(logits * temperature, dim=-1)


@wrong("9.2", "temperature-after-softmax")
def probs_divided(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        smallest = logits.topk(top_k).values[..., -1:]
        logits = logits.masked_fill(logits < smallest, float("-inf"))
    return torch.softmax(logits, dim=-1) / temperature


@wrong("9.2", "temperature-ignored")
def probs_divided_and_renormalised(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        smallest = logits.topk(top_k).values[..., -1:]
        logits = logits.masked_fill(logits < smallest, float("-inf"))
    probs = torch.softmax(logits, dim=-1) / temperature
    return probs / probs.sum(dim=-1, keepdim=True)


@wrong("9.2", "k-smallest")
def probs_worst(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        largest = logits.sort(dim=-1).values[..., top_k - 1 : top_k]
        logits = logits.masked_fill(logits > largest, float("-inf"))
    return torch.softmax(logits / temperature, dim=-1)


@wrong("9.2", "best-left-out")
def probs_mask_turned(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        smallest = logits.topk(top_k).values[..., -1:]
        logits = logits.masked_fill(logits >= smallest, float("-inf"))
    return torch.softmax(logits / temperature, dim=-1)


@wrong("9.2", "one-too-many")
def probs_index_k(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        ranked = logits.sort(dim=-1, descending=True).values
        smallest = ranked[..., min(top_k, ranked.shape[-1] - 1), None]
        logits = logits.masked_fill(logits < smallest, float("-inf"))
    return torch.softmax(logits / temperature, dim=-1)


@wrong("9.2", "one-too-few")
def probs_at_most(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        smallest = logits.topk(top_k).values[..., -1:]
        logits = logits.masked_fill(logits <= smallest, float("-inf"))
    return torch.softmax(logits / temperature, dim=-1)


@wrong("9.2", "top-k-ignored")
def probs_mask_lost(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        smallest = logits.topk(top_k).values[..., -1:]
        logits.masked_fill(logits < smallest, float("-inf"))
    return torch.softmax(logits / temperature, dim=-1)


@wrong("9.2", "zero-for-minus-inf")
def probs_zero_logits(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        smallest = logits.topk(top_k).values[..., -1:]
        logits = torch.where(logits < smallest, 0.0, logits)
    return torch.softmax(logits / temperature, dim=-1)


@wrong("9.2", "zero-for-minus-inf")
def probs_masked_by_product(logits, temperature=1.0, top_k=None):
    logits = logits / temperature
    if top_k is not None:
        logits = logits * (logits >= logits.topk(top_k).values[..., -1:])
    return torch.softmax(logits, dim=-1)


@wrong("9.2", "not-renormalised")
def probs_cut_late(logits, temperature=1.0, top_k=None):
    probs = torch.softmax(logits / temperature, dim=-1)
    if top_k is not None:
        smallest = logits.topk(top_k).values[..., -1:]
        probs = torch.where(logits < smallest, 0.0, probs)
    return probs


@wrong("9.2", "only-k-returned")
def probs_of_k(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        logits, _ = logits.topk(top_k)
    return torch.softmax(logits / temperature, dim=-1)


@wrong("9.2", "one-threshold-for-all")
def probs_flat(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        smallest = logits.flatten().topk(top_k).values.min()
        logits = logits.masked_fill(logits < smallest, float("-inf"))
    return torch.softmax(logits / temperature, dim=-1)


@wrong("9.2", "one-threshold-for-all")
def probs_lowest(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        smallest = logits.topk(top_k).values.min()
        logits = logits.masked_fill(logits < smallest, float("-inf"))
    return torch.softmax(logits / temperature, dim=-1)


@wrong("9.2", "two-axes-only")
def probs_two_axes(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        values, _ = logits.topk(top_k)
        logits = logits.masked_fill(logits < values[:, -1:], float("-inf"))
    return torch.softmax(logits / temperature, dim=-1)


@wrong("9.2", "two-axes-only")
def probs_two_axes_listed(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        values, _ = logits.topk(top_k)
        logits = logits.masked_fill(logits < values[:, [-1]], float("-inf"))
    return torch.softmax(logits / temperature, dim=-1)


@wrong("9.2", "first-position-for-last")
def probs_first(logits, temperature=1.0, top_k=None):
    if logits.dim() > 1:
        logits = logits[..., 0, :]
    return probs_threshold(logits, temperature, top_k)


@wrong("9.2", "last-position-only")
def probs_last(logits, temperature=1.0, top_k=None):
    if logits.dim() > 1:
        logits = logits[..., -1, :]
    return probs_threshold(logits, temperature, top_k)


@wrong("9.2", "softmax-missing")
def probs_logits(logits, temperature=1.0, top_k=None):
    logits = logits / temperature
    if top_k is not None:
        smallest = logits.topk(top_k).values[..., -1:]
        logits = logits.masked_fill(logits < smallest, float("-inf"))
    return logits


@wrong("9.2", "logarithm")
def probs_log(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        smallest = logits.topk(top_k).values[..., -1:]
        logits = logits.masked_fill(logits < smallest, float("-inf"))
    return F.log_softmax(logits / temperature, dim=-1)


@wrong("9.2", "softmax-over-batch")
def probs_over_batch(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        smallest = logits.topk(top_k).values[..., -1:]
        logits = logits.masked_fill(logits < smallest, float("-inf"))
    return torch.softmax(logits / temperature, dim=0)


@wrong("9.2", "order-lost")
def probs_sorted(logits, temperature=1.0, top_k=None):
    ranked = torch.sort(logits, dim=-1, descending=True).values
    if top_k is not None:
        rank = torch.arange(ranked.shape[-1])
        ranked = ranked.masked_fill(rank >= top_k, float("-inf"))
    return torch.softmax(ranked / temperature, dim=-1)


@wrong("9.2", "token-for-probabilities")
def probs_best(logits, temperature=1.0, top_k=None):
    return logits.argmax(dim=-1)


@wrong("9.2", "overflow")
def probs_plain_exp(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        smallest = logits.topk(top_k).values[..., -1:]
        logits = logits.masked_fill(logits < smallest, float("-inf"))
    exps = torch.exp(logits / temperature)
    return exps / exps.sum(dim=-1, keepdim=True)


@wrong("9.2", "input-changed")
def probs_in_place(logits, temperature=1.0, top_k=None):
    logits /= temperature
    if top_k is not None:
        logits[logits < logits.topk(top_k).values[..., -1:]] = float("-inf")
    return torch.softmax(logits, dim=-1)


@wrong("9.2", "returns-nothing")
def probs_no_return(logits, temperature=1.0, top_k=None):
    probs = probs_threshold(logits, temperature, top_k)
    probs / probs.sum()


@wrong("9.2", "wrong-signature")
def probs_without_options(logits):
    return torch.softmax(logits, dim=-1)


@wrong("9.2", "temperature-ignored")
def probs_no_temperature(logits, temperature=1.0, top_k=None):
    return probs_threshold(logits, 1.0, top_k)


@wrong("9.2", named=False)
def probs_minimum_kept(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        smallest = logits.topk(top_k).values[..., -1:]
        logits = logits.masked_fill(logits < smallest, logits.min().item())
    return torch.softmax(logits / temperature, dim=-1)
