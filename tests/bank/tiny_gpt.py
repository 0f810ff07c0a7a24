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


@wrong("9.1", "sublayer-subtracted")
class BlockSubtracts(Parts):
    def forward(self, x):
        x = x - self.attention(self.norm1(x))
        return x - self.feed_forward(self.norm2(x))


@wrong("9.1", "input-changed")
class BlockInPlaceOnce(Parts):
    def forward(self, x):
        x += self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


@wrong("9.1", "post-norm")
class BlockPostNormOnce(Parts):
    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return x + self.feed_forward(self.norm2(x))


@wrong("9.1", "input-added-twice")
class BlockShortcutTwice(Parts):
    def forward(self, x):
        start = x
        x = x + self.attention(self.norm1(x))
        x = x + self.feed_forward(self.norm2(x))
        return x + start


@wrong("9.1", "mlp-reads-attention-alone")
class BlockAttentionHandedOn(Parts):
    def forward(self, x):
        gathered = self.attention(self.norm1(x))
        return x + gathered + self.feed_forward(self.norm2(gathered))


@wrong("9.1", "attention-missing")
class BlockAttentionForgotten(Parts):
    def forward(self, x):
        return x + self.feed_forward(self.norm2(x))


@wrong("9.1", "rms-norm")
class BlockRootMeanSquare(Parts):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__(attention, feed_forward, d_model)
        self.norm1, self.norm2 = nn.RMSNorm(d_model), nn.RMSNorm(d_model)


@wrong("9.1", "attention-residual-missing")
class BlockTwoSlips(Parts):
    def forward(self, x):
        x = self.attention(self.norm1(x))
        return x + self.feed_forward(x)


@wrong("9.1", named=False)
class BlockTemperate(Parts):
    def forward(self, x):
        x = x + self.attention(self.norm1(x)) / 2
        return x + self.feed_forward(self.norm2(x)) / 2


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


@wrong("9.2", "finite-for-minus-inf")
def probs_minimum_kept(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        smallest = logits.topk(top_k).values[..., -1:]
        logits = logits.masked_fill(logits < smallest, logits.min().item())
    return torch.softmax(logits / temperature, dim=-1)


def cut_logits(logits, top_k):
    """Return the logits with -inf outside the k best."""
    if top_k is None:
        return logits
    return logits.masked_fill(logits < logits.topk(top_k).values[..., -1:], -torch.inf)


def cut_probs(logits, temperature, top_k):
    """Return the probabilities with 0 outside the k best, as they are."""
    probs = torch.softmax(logits / temperature, dim=-1)
    return torch.where(cut_logits(logits, top_k) == -torch.inf, 0.0, probs)


@wrong("9.2", "temperature-in-a-branch")
def probs_tempered_with_k(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        logits = cut_logits(logits, top_k) / temperature
    return torch.softmax(logits, dim=-1)


@wrong("9.2", "temperature-in-a-branch")
def probs_tempered_without_k(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        return torch.softmax(cut_logits(logits, top_k), dim=-1)
    return torch.softmax(logits / temperature, dim=-1)


@wrong("9.2", "temperature-twice")
def probs_tempered_twice(logits, temperature=1.0, top_k=None):
    logits = cut_logits(logits / temperature, top_k)
    return torch.softmax(logits / temperature, dim=-1)


@wrong("9.2", "logits-rounded")
def probs_floored(logits, temperature=1.0, top_k=None):
    return torch.softmax(cut_logits(logits // temperature, top_k), dim=-1)


@wrong("9.2", "logits-rounded")
def probs_floored_late(logits, temperature=1.0, top_k=None):
    return torch.softmax(cut_logits(logits, top_k) // temperature, dim=-1)


@wrong("9.2", "first-k-tokens")
def probs_first_tokens(logits, temperature=1.0, top_k=None):
    logits = logits.clone()
    if top_k is not None:
        logits[..., top_k:] = float("-inf")
    return torch.softmax(logits / temperature, dim=-1)


@wrong("9.2", "topk-over-batch")
def probs_best_rows(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        smallest = logits.topk(top_k, dim=0).values[-1:]
        logits = logits.masked_fill(logits < smallest, float("-inf"))
    return torch.softmax(logits / temperature, dim=-1)


@wrong("9.2", "one-threshold-for-all")
def probs_last_row(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        smallest = logits.topk(top_k).values[-1]
        logits = logits.masked_fill(logits < smallest, float("-inf"))
    return torch.softmax(logits / temperature, dim=-1)


@wrong("9.2", "keepdim-missing")
def probs_border_flat(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        smallest = logits.topk(top_k).values[..., -1]
        logits = torch.where(logits < smallest, float("-inf"), logits)
    return torch.softmax(logits / temperature, dim=-1)


@wrong("9.2", "two-axes-only")
def probs_border_of_matrix(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        smallest = logits.topk(top_k).values[:, -1].unsqueeze(-1)
        logits = torch.where(logits < smallest, float("-inf"), logits)
    return torch.softmax(logits / temperature, dim=-1)


@wrong("9.2", "keepdim-missing")
def probs_sums_flat(logits, temperature=1.0, top_k=None):
    probs = cut_probs(logits, temperature, top_k)
    return probs / probs.sum(-1)


@wrong("9.2", "sum-over-everything")
def probs_one_sum(logits, temperature=1.0, top_k=None):
    probs = cut_probs(logits, temperature, top_k)
    return probs / probs.sum()


@wrong("9.2", "softmax-twice")
def probs_second_softmax(logits, temperature=1.0, top_k=None):
    return torch.softmax(cut_probs(logits, temperature, top_k), dim=-1)


@wrong("9.2", "softmax-twice")
def probs_cut_between(logits, temperature=1.0, top_k=None):
    probs = torch.softmax(logits / temperature, dim=-1)
    hidden = cut_logits(logits, top_k) == float("-inf")
    return torch.softmax(probs.masked_fill(hidden, float("-inf")), dim=-1)


@wrong("9.2", "finite-for-minus-inf")
def probs_minus_ten(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        smallest = logits.topk(top_k).values[..., -1:]
        logits = logits.masked_fill(logits < smallest, -10)
    return torch.softmax(logits / temperature, dim=-1)


@wrong("9.2", "finite-for-minus-inf")
def probs_minus_hundred(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        smallest = logits.topk(top_k).values[..., -1:]
        logits = logits.masked_fill(logits < smallest, -100)
    return torch.softmax(logits / temperature, dim=-1)


@wrong("9.2", "plus-infinity")
def probs_plus_infinity(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        smallest = logits.topk(top_k).values[..., -1:]
        logits = logits.masked_fill(logits < smallest, float("inf"))
    return torch.softmax(logits / temperature, dim=-1)


@wrong("9.2", "zero-times-infinity")
def probs_infinity_added(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        below = logits < logits.topk(top_k).values[..., -1:]
        logits = logits + below * float("-inf")
    return torch.softmax(logits / temperature, dim=-1)


@wrong("9.2", "axis-left-open")
def probs_default_axis(logits, temperature=1.0, top_k=None):
    return F.softmax(cut_logits(logits, top_k) / temperature)


@wrong("9.2", "fixed-axis")
def probs_second_axis(logits, temperature=1.0, top_k=None):
    return F.softmax(cut_logits(logits, top_k) / temperature, dim=1)


@wrong("9.2", "softmax-over-everything")
def probs_all_together(logits, temperature=1.0, top_k=None):
    logits = cut_logits(logits, top_k) / temperature
    return torch.softmax(logits.flatten(), dim=0).view(logits.shape)


@wrong("9.2", "softmax-over-everything")
def probs_exp_over_all(logits, temperature=1.0, top_k=None):
    exps = torch.exp(cut_logits(logits, top_k) / temperature)
    return exps / exps.sum()


@wrong("9.2", "global-maximum-subtracted")
def probs_one_maximum(logits, temperature=1.0, top_k=None):
    logits = cut_logits(logits, top_k) / temperature
    exps = torch.exp(logits - logits.max())
    return exps / exps.sum(dim=-1, keepdim=True)


@wrong("9.2", "not-normalised")
def probs_exps(logits, temperature=1.0, top_k=None):
    return torch.exp(cut_logits(logits, top_k) / temperature)


@wrong("9.2", "sigmoid")
def probs_sigmoid(logits, temperature=1.0, top_k=None):
    return torch.sigmoid(cut_logits(logits, top_k) / temperature)


@wrong("9.2", "exponential-missing")
def probs_shares(logits, temperature=1.0, top_k=None):
    logits = cut_logits(logits, top_k) / temperature
    return logits / logits.sum(dim=-1, keepdim=True)


@wrong("9.2", "mask-for-probabilities")
def probs_mask(logits, temperature=1.0, top_k=None):
    return probs_threshold(logits, temperature, top_k) > 0


@wrong("9.2", "integers-for-probabilities")
def probs_into_integers(logits, temperature=1.0, top_k=None):
    made = torch.zeros(logits.shape, dtype=torch.long)
    made[...] = probs_threshold(logits, temperature, top_k)
    return made


@wrong("9.2", "integers-for-probabilities")
def probs_scattered_to_integers(logits, temperature=1.0, top_k=None):
    best, places = logits.topk(top_k or logits.shape[-1])
    probs = torch.softmax(best / temperature, dim=-1)
    return torch.zeros_like(places).scatter(-1, places, probs)


@wrong("9.2", "temperature-multiplied")
def probs_two_slips(logits, temperature=1.0, top_k=None):
    return cut_logits(logits * temperature, top_k)


@wrong("9.2", named=False)
def probs_powers(logits, temperature=1.0, top_k=None):
    return torch.softmax(cut_logits(logits, top_k), dim=-1) ** (1 / temperature)


@right("9.3")
def nucleus_shifted(logits, p):
    probs, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    better = F.pad(probs.cumsum(dim=-1)[..., :-1], (1, 0))
    kept = probs.masked_fill(better >= p, 0.0) if p < 1 else probs
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(kept).scatter(-1, order, kept)


@right("9.3")
def nucleus_sum_without_itself(logits, p):
    probs = torch.softmax(logits, dim=-1)
    ranked, order = torch.sort(probs, dim=-1, descending=True)
    drop = (ranked.cumsum(-1) - ranked >= p) & (p < 1)
    ranked[drop] = 0.0
    ranked /= ranked.sum(-1, keepdim=True)
    return torch.empty_like(probs).scatter_(-1, order, ranked)


@right("9.3")
def nucleus_on_logits(logits, p):
    values, order = logits.sort(dim=-1, descending=True)
    sums = values.softmax(-1).cumsum(-1)
    remove = sums > p
    remove[..., 1:] = remove[..., :-1].clone()
    remove[..., 0] = False
    remove = torch.zeros_like(remove).scatter(-1, order, remove)
    return torch.softmax(logits.masked_fill(remove, float("-inf")), dim=-1)


@right("9.3")
def nucleus_inverse_order(logits, p):
    probs = logits.softmax(dim=-1)
    order = probs.argsort(dim=-1, descending=True)
    ranked = torch.take_along_dim(probs, order, dim=-1)
    keep = ((ranked.cumsum(dim=-1) - ranked) < p) | (p == 1)
    back = order.argsort(dim=-1)
    kept = probs * torch.take_along_dim(keep, back, dim=-1)
    return kept / kept.sum(dim=-1, keepdim=True)


@right("9.3")
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


@right("9.3")
def nucleus_sum_of_better(logits, p):
    probs = torch.softmax(logits.double(), dim=-1)
    mine, other = probs[..., :, None], probs[..., None, :]
    better = (other * (other > mine)).sum(dim=-1)
    kept = torch.where(better < p, probs, 0.0)
    return (kept / kept.sum(dim=-1, keepdim=True)).to(logits.dtype)


@right("9.3")
def nucleus_threshold(logits, p):
    if p == 1:
        return torch.softmax(logits, dim=-1)
    probs = torch.softmax(logits, dim=-1)
    ranked = probs.sort(dim=-1, descending=True).values
    count = (ranked.cumsum(-1) - ranked < p).sum(-1, keepdim=True)
    smallest = ranked.gather(-1, count - 1)
    return torch.softmax(torch.where(probs < smallest, -torch.inf, logits), dim=-1)


@wrong("9.3", "tail-lost")
def nucleus_one_not_apart(logits, p):
    probs, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    kept = probs * (probs.cumsum(dim=-1) - probs < p)
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(kept).scatter(-1, order, kept)


@wrong("9.3", "crossing-token-cut")
def nucleus_up_to_p(logits, p):
    probs, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    kept = probs.masked_fill(probs.cumsum(dim=-1) > p, 0.0)
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(kept).scatter(-1, order, kept)


@wrong("9.3", "crossing-token-cut")
def nucleus_minus_inf_above_p(logits, p):
    values, order = logits.sort(dim=-1, descending=True)
    remove = values.softmax(-1).cumsum(-1) > p
    remove[..., 0] = False
    values = values.masked_fill(remove, float("-inf"))
    return torch.zeros_like(logits).scatter(-1, order, values.softmax(-1))


@wrong("9.3", "one-too-many")
def nucleus_shifted_twice(logits, p):
    probs, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    remove = probs.cumsum(dim=-1) - probs >= p
    remove[..., 1:] = remove[..., :-1].clone()
    remove[..., 0] = False
    kept = probs.masked_fill(remove, 0.0)
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(kept).scatter(-1, order, kept)


@wrong("9.3", "not-renormalised")
def nucleus_not_renormalised(logits, p):
    probs, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    kept = torch.where(probs.cumsum(dim=-1) - probs < p, probs, 0.0)
    return torch.zeros_like(kept).scatter(-1, order, kept)


@wrong("9.3", "crossing-token-cut")
def nucleus_two_slips(logits, p):
    probs, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    kept = torch.where(probs.cumsum(dim=-1) <= p, probs, 0.0)
    return torch.zeros_like(kept).scatter(-1, order, kept)


@wrong("9.3", "order-lost")
def nucleus_sorted(logits, p):
    probs, _ = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    kept = probs.masked_fill(probs.cumsum(dim=-1) - probs >= p, 0.0)
    return kept / kept.sum(dim=-1, keepdim=True)


@wrong("9.3", "gather-for-scatter")
def nucleus_gathered(logits, p):
    probs, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    kept = probs.masked_fill(probs.cumsum(dim=-1) - probs >= p, 0.0)
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return kept.gather(-1, order)


@wrong("9.3", "gather-for-scatter")
def nucleus_mask_gathered(logits, p):
    probs = torch.softmax(logits, dim=-1)
    order = probs.argsort(dim=-1, descending=True)
    ranked = probs.gather(-1, order)
    ranked = ranked * (ranked.cumsum(dim=-1) - ranked < p)
    ranked = ranked / ranked.sum(dim=-1, keepdim=True)
    return torch.take_along_dim(ranked, order, dim=-1)


@wrong("9.3", "from-the-least-likely")
def nucleus_ascending(logits, p):
    probs, order = torch.softmax(logits, dim=-1).sort(dim=-1)
    kept = probs.masked_fill(probs.cumsum(dim=-1) - probs >= p, 0.0)
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(kept).scatter(-1, order, kept)


@wrong("9.3", "not-sorted")
def nucleus_unsorted(logits, p):
    probs = torch.softmax(logits, dim=-1)
    kept = probs.masked_fill(probs.cumsum(dim=-1) - probs >= p, 0.0)
    return kept / kept.sum(dim=-1, keepdim=True)


@wrong("9.3", "threshold-for-sum")
def nucleus_at_least_p(logits, p):
    probs = torch.softmax(logits, dim=-1)
    kept = probs.masked_fill(probs < p, 0.0)
    return kept / kept.sum(dim=-1, keepdim=True)


@wrong("9.3", "threshold-for-sum")
def nucleus_at_least_the_rest(logits, p):
    probs = torch.softmax(logits, dim=-1)
    kept = torch.where(probs >= 1 - p, probs, 0.0)
    return kept / kept.sum(dim=-1, keepdim=True)


@wrong("9.3", "threshold-for-sum")
def nucleus_min_p(logits, p):
    probs = torch.softmax(logits, dim=-1)
    kept = probs * (probs >= p * probs.amax(dim=-1, keepdim=True))
    return kept / kept.sum(dim=-1, keepdim=True)


@wrong("9.3", "share-cut-for-share-kept")
def nucleus_of_the_rest(logits, p):
    return nucleus_rows(logits, 1 - p)


@wrong("9.3", "best-left-out")
def nucleus_mask_turned(logits, p):
    probs, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    keep = probs.cumsum(dim=-1) - probs < p
    kept = probs.masked_fill(keep, 0.0)
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(kept).scatter(-1, order, kept)


@wrong("9.3", "p-ignored")
def nucleus_mask_lost(logits, p):
    probs, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    probs.masked_fill(probs.cumsum(dim=-1) - probs >= p, 0.0)
    return torch.zeros_like(probs).scatter(-1, order, probs)


@wrong("9.3", "share-of-the-vocabulary")
def nucleus_count(logits, p):
    k = max(1, int(p * logits.shape[-1]))
    smallest = logits.topk(k, dim=-1).values[..., -1:]
    return torch.softmax(logits.masked_fill(logits < smallest, -torch.inf), dim=-1)


@wrong("9.3", "one-count-for-all")
def nucleus_longest_row(logits, p):
    probs, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    count = (probs.cumsum(dim=-1) - probs < p).sum(dim=-1).max()
    kept = probs * (torch.arange(probs.shape[-1]) < count)
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(kept).scatter(-1, order, kept)


@wrong("9.3", "one-count-for-all")
def nucleus_first_row(logits, p):
    probs, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    first = probs.reshape(-1, probs.shape[-1])[0]
    count = int((first.cumsum(0) - first < p).sum())
    kept = probs.clone()
    kept[..., count:] = 0.0
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(kept).scatter(-1, order, kept)


@wrong("9.3", "rows-together")
def nucleus_flat(logits, p):
    probs = torch.softmax(logits, dim=-1)
    flat, order = torch.softmax(logits.flatten(), dim=0).sort(descending=True)
    keep = torch.zeros(flat.shape, dtype=torch.bool)
    keep[order] = flat.cumsum(dim=0) - flat < p
    kept = probs * keep.view(probs.shape)
    return kept / kept.sum(dim=-1, keepdim=True)


@wrong("9.3", "sum-of-logits")
def nucleus_logits_summed(logits, p):
    values, order = logits.sort(dim=-1, descending=True)
    values = values.masked_fill(values.cumsum(dim=-1) - values >= p, float("-inf"))
    return torch.zeros_like(logits).scatter(-1, order, values.softmax(dim=-1))


@wrong("9.3", "zero-for-minus-inf")
def nucleus_zero_logits(logits, p):
    values, order = logits.sort(dim=-1, descending=True)
    probs = values.softmax(dim=-1)
    values = values.masked_fill(probs.cumsum(dim=-1) - probs >= p, 0.0)
    return torch.zeros_like(logits).scatter(-1, order, values.softmax(dim=-1))


@wrong("9.3", "softmax-twice")
def nucleus_second_softmax(logits, p):
    probs, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    remove = probs.cumsum(dim=-1) - probs >= p
    kept = torch.softmax(probs.masked_fill(remove, float("-inf")), dim=-1)
    return torch.zeros_like(kept).scatter(-1, order, kept)


@wrong("9.3", "softmax-twice")
def nucleus_softmax_of_zeros(logits, p):
    probs, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    kept = probs * (probs.cumsum(dim=-1) - probs < p)
    return torch.zeros_like(kept).scatter(-1, order, torch.softmax(kept, dim=-1))


@wrong("9.3", "softmax-missing")
def nucleus_logits(logits, p):
    values, order = logits.sort(dim=-1, descending=True)
    probs = values.softmax(dim=-1)
    values = values.masked_fill(probs.cumsum(dim=-1) - probs >= p, float("-inf"))
    return torch.zeros_like(logits).scatter(-1, order, values)


@wrong("9.3", "logarithm")
def nucleus_log(logits, p):
    return torch.log(nucleus_shifted(logits, p))


@wrong("9.3", "softmax-over-batch")
def nucleus_softmax_first_axis(logits, p):
    probs, order = torch.softmax(logits, dim=0).sort(dim=-1, descending=True)
    kept = probs.masked_fill(probs.cumsum(dim=-1) - probs >= p, 0.0)
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(kept).scatter(-1, order, kept)


@wrong("9.3", "sum-over-batch")
def nucleus_sum_first_axis(logits, p):
    probs, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    kept = probs.masked_fill(probs.cumsum(dim=0) - probs >= p, 0.0)
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(kept).scatter(-1, order, kept)


@wrong("9.3", "only-the-kept-returned")
def nucleus_short(logits, p):
    probs, _ = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    kept = probs.masked_fill(probs.cumsum(dim=-1) - probs >= p, 0.0)
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return kept[..., : (kept > 0).sum(dim=-1).max().item()]


@wrong("9.3", "mask-for-probabilities")
def nucleus_mask(logits, p):
    return nucleus_shifted(logits, p) > 0


@wrong("9.3", "equal-shares")
def nucleus_uniform(logits, p):
    keep = (nucleus_shifted(logits, p) > 0).float()
    return keep / keep.sum(dim=-1, keepdim=True)


@wrong("9.3", "token-for-probabilities")
def nucleus_best(logits, p):
    return nucleus_shifted(logits, p).argmax(dim=-1)


@wrong("9.3", "overflow")
def nucleus_plain_exp(logits, p):
    probs = torch.exp(logits) / torch.exp(logits).sum(dim=-1, keepdim=True)
    probs, order = probs.sort(dim=-1, descending=True)
    kept = probs.masked_fill(probs.cumsum(dim=-1) - probs >= p, 0.0)
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(kept).scatter(-1, order, kept)


@wrong("9.3", "input-changed")
def nucleus_in_place(logits, p):
    probs, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    remove = probs.cumsum(dim=-1) - probs >= p
    logits[torch.zeros_like(remove).scatter(-1, order, remove)] = float("-inf")
    return torch.softmax(logits, dim=-1)


@wrong("9.3", "wrong-signature")
def nucleus_p_forgotten(logits):
    return torch.softmax(logits, dim=-1)


@wrong("9.3", "returns-nothing")
def nucleus_no_return(logits, p):
    probs = nucleus_shifted(logits, p)
    probs / probs.sum()


@wrong("9.3", named=False)
def nucleus_half_kept(logits, p):
    kept = nucleus_shifted(logits, p)
    return 0.5 * kept + 0.5 * torch.softmax(logits, dim=-1)


def ranked(logits, p):
    """Return the probabilities, largest first, the order, and what stays of them."""
    probs, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    return probs, order, probs.cumsum(dim=-1) - probs < p


@wrong("9.3", "best-token-cut")
def nucleus_best_cut(logits, p):
    probs, order, _ = ranked(logits, p)
    remove = probs.cumsum(dim=-1) > p
    remove[..., 1:] = remove[..., :-1].clone()
    kept = probs.masked_fill(remove, 0.0)
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(kept).scatter(-1, order, kept)


@wrong("9.3", "divided-by-p")
def nucleus_divided_by_p(logits, p):
    probs, order, keep = ranked(logits, p)
    return torch.zeros_like(probs).scatter(-1, order, probs * keep / p)


@wrong("9.3", "keepdim-missing")
def nucleus_sums_flat(logits, p):
    probs, order, keep = ranked(logits, p)
    kept = probs * keep
    return torch.zeros_like(probs).scatter(-1, order, kept / kept.sum(-1))


@wrong("9.3", "sum-over-everything")
def nucleus_one_sum(logits, p):
    probs, order, keep = ranked(logits, p)
    kept = probs * keep
    return torch.zeros_like(probs).scatter(-1, order, kept / kept.sum())


@wrong("9.3", "mask-in-order")
def nucleus_mask_in_order(logits, p):
    kept = torch.softmax(logits, dim=-1) * ranked(logits, p)[2]
    return kept / kept.sum(dim=-1, keepdim=True)


@wrong("9.3", "gather-for-scatter")
def nucleus_mask_sorted_again(logits, p):
    _, order, keep = ranked(logits, p)
    kept = torch.softmax(logits, dim=-1) * keep.gather(-1, order)
    return kept / kept.sum(dim=-1, keepdim=True)


@wrong("9.3", "integers-for-probabilities")
def nucleus_scattered_to_integers(logits, p):
    probs, order, keep = ranked(logits, p)
    kept = probs * keep
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(order).scatter(-1, order, kept)


@wrong("9.3", "integers-for-probabilities")
def nucleus_into_integers(logits, p):
    made = torch.zeros(logits.shape, dtype=torch.long)
    made[...] = nucleus_shifted(logits, p)
    return made


@wrong("9.3", "axis-left-open")
def nucleus_default_axis(logits, p):
    probs, order = F.softmax(logits).sort(dim=-1, descending=True)
    kept = probs * (probs.cumsum(dim=-1) - probs < p)
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(kept).scatter(-1, order, kept)


@wrong("9.3", "crossing-token-cut")
def nucleus_crossing_in_order(logits, p):
    probs, _, _ = ranked(logits, p)
    kept = probs * (probs.cumsum(dim=-1) < p)
    return kept / kept.sum(dim=-1, keepdim=True)
