"""09 A tiny GPT: 9.1 TransformerBlock, 9.2 next_token_probs, 9.3 top_p_probs."""

import torch
import torch.nn.functional as F
from torch import nn

from tests.answers import right, wrong

# ----------------------------------------------------- 9.1 TransformerBlock


@right("TransformerBlock")
class TransformerBlock(nn.Module):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.layers = nn.ModuleList([attention, feed_forward])
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x):
        for norm, layer in zip((self.norm1, self.norm2), self.layers):
            x = layer(norm(x)) + x
        return x


@right("TransformerBlock")
class TransformerBlock(nn.Module):
    # the stream is kept as a sum of its parts
    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.norm2, self.norm1 = nn.LayerNorm(d_model), nn.LayerNorm([d_model])
        self.mix, self.think = attention, feed_forward

    def forward(self, x):
        parts = [x]
        parts.append(self.mix(self.norm1(sum(parts))))
        parts.append(self.think(self.norm2(parts[0] + parts[1])))
        return torch.stack(parts).sum(dim=0)


@right("TransformerBlock")
class TransformerBlock(nn.Module):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.add_module("norm1", nn.LayerNorm(d_model))
        self.add_module("norm2", nn.LayerNorm(d_model))
        self.sublayers = nn.ModuleDict({"attention": attention, "mlp": feed_forward})

    def forward(self, x):
        h = self.norm1(x)
        h = self.sublayers["attention"](h).add(x)
        y = self.norm2(h)
        return h.add(self.sublayers["mlp"](y))


@wrong("TransformerBlock", "post-norm: the sum is normed")
class TransformerBlock(nn.Module):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.attention = attention
        self.feed_forward = feed_forward
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        x = self.norm2(x + self.feed_forward(x))
        return x


@wrong(
    "TransformerBlock",
    "norms x on a line of its own: the normed x is what gets added to",
)
class TransformerBlock(nn.Module):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.attention = attention
        self.feed_forward = feed_forward
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x):
        x = self.norm1(x)
        x = x + self.attention(x)
        x = x + self.feed_forward(self.norm2(x))
        return x


@wrong("TransformerBlock", "the second addition adds the x from before the attention")
class TransformerBlock(nn.Module):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.attention = attention
        self.feed_forward = feed_forward

    def forward(self, x):
        h = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(h))


@wrong("TransformerBlock", "norm1 is used for both")
class TransformerBlock(nn.Module):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.attn = attention
        self.ff = feed_forward
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        x = x + self.ff(self.norm1(x))
        return x


@wrong("TransformerBlock", "no residual around the MLP")
class TransformerBlock(nn.Module):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.attention, self.feed_forward = attention, feed_forward
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        x = self.feed_forward(self.norm2(x))
        return x


@wrong("TransformerBlock", "the MLP comes first", "the attention isn't normed")
class TransformerBlock(nn.Module):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.attention = attention
        self.ff = feed_forward

    def forward(self, x):
        x = x + self.ff(self.norm2(x))
        x = x + self.attention(x)
        return x


@wrong(
    "TransformerBlock",
    "dropout of 0.1 that wasn't wanted",
    "attention and MLP side by side: both read the same x",
)
class TransformerBlock(nn.Module):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.attention = attention
        self.feed_forward = feed_forward
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        a = self.drop(self.attention(self.norm1(x)))
        return x + a + self.drop(self.feed_forward(self.norm2(x)))


@wrong(
    "TransformerBlock",
    "the residual of the first half is forgotten",
    "a third norm at the end",
)
class TransformerBlock(nn.Module):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.attention = attention
        self.feed_forward = feed_forward
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)

    def forward(self, x):
        x = self.attention(self.norm1(x))
        x = x + self.feed_forward(self.norm2(x))
        return self.norm3(x)


@wrong(
    "TransformerBlock",
    "both additions are of the normed x",
    "one norm for both, under two names",
)
class TransformerBlock(nn.Module):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.attention = attention
        self.feed_forward = feed_forward
        self.norm1 = self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x):
        n = self.norm1(x)
        x = n + self.attention(n)
        n = self.norm2(x)
        return n + self.feed_forward(n)


@wrong(
    "TransformerBlock",
    "sublayers kept in a plain list, so their weights aren't found by the optimiser",
    "minus in front of the MLP",
)
class TransformerBlock(nn.Module):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.parts = [attention, feed_forward]
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x):
        x = x + self.parts[0](self.norm1(x))
        return x - self.parts[1](self.norm2(x))


# ----------------------------------------------------- 9.2 next_token_probs


@right("next_token_probs")
def next_token_probs(logits, temperature=1.0, top_k=None):
    # by rank: how many logits of the row are larger?
    scaled = logits / temperature
    e = torch.exp(scaled - scaled.logsumexp(-1, keepdim=True))
    if top_k is not None:
        rank = (logits[..., None, :] > logits[..., :, None]).sum(-1)
        e = e * (rank < top_k)
    return e / e.sum(-1, keepdim=True)


@right("next_token_probs")
def next_token_probs(logits, temperature=1.0, top_k=None):
    V = logits.shape[-1]
    rows = logits.reshape(-1, V)
    out = torch.zeros_like(rows)
    for n, row in enumerate(rows):
        keep = torch.argsort(row, descending=True)[: V if top_k is None else top_k]
        out[n, keep] = F.softmax(row[keep] / temperature, dim=0)
    return out.reshape(logits.shape)


@right("next_token_probs")
def next_token_probs(logits, temperature=1.0, top_k=None):
    out = logits.div(temperature)
    if top_k:
        border = out.sort(dim=-1).values[..., -top_k].unsqueeze(-1)
        out = torch.where(out < border, torch.full_like(out, -torch.inf), out)
    return out.log_softmax(-1).exp()


@wrong("next_token_probs", "multiplies by the temperature")
def next_token_probs(logits, temperature=1.0, top_k=None):
    logits = logits * temperature
    if top_k is not None:
        border = torch.topk(logits, top_k, dim=-1).values[..., -1:]
        logits = logits.masked_fill(logits < border, float("-inf"))
    return torch.softmax(logits, dim=-1)


@wrong("next_token_probs", "cuts with <=: the k-th best goes as well")
def next_token_probs(logits, temperature=1.0, top_k=None):
    logits = logits / temperature
    if top_k is not None:
        border = logits.topk(top_k).values[..., -1:]
        logits = logits.masked_fill(logits <= border, -torch.inf)
    return logits.softmax(dim=-1)


@wrong("next_token_probs", "writes minus infinity into the caller's logits")
def next_token_probs(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        border = logits.topk(top_k, dim=-1).values[..., -1:]
        logits[logits < border] = float("-inf")
    return torch.softmax(logits / temperature, dim=-1)


@wrong("next_token_probs", "after the cut the probabilities don't sum to 1 any more")
def next_token_probs(logits, temperature=1.0, top_k=None):
    probs = torch.softmax(logits / temperature, dim=-1)
    if top_k is not None:
        border = probs.topk(top_k, dim=-1).values[..., -1:]
        probs = probs.masked_fill(probs < border, 0.0)
    return probs


@wrong("next_token_probs", "one border for all rows")
def next_token_probs(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        border = logits.flatten().topk(top_k).values[-1]
        logits = torch.where(logits < border, -1e30, logits)
    return torch.softmax(logits / temperature, dim=-1)


@wrong("next_token_probs", "keeps the k smallest", "the temperature is forgotten")
def next_token_probs(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        border = torch.topk(logits, top_k, dim=-1, largest=False).values[..., -1:]
        logits = logits.masked_fill(logits > border, float("-inf"))
    return torch.softmax(logits, dim=-1)


@wrong(
    "next_token_probs",
    "softmax over the first axis",
    "the border is the best logit: only one is left",
)
def next_token_probs(logits, temperature=1.0, top_k=None):
    logits = logits / temperature
    if top_k is not None:
        border = logits.topk(top_k, dim=-1).values[..., :1]
        logits = logits.masked_fill(logits < border, -1e30)
    return torch.softmax(logits, dim=0)


@wrong(
    "next_token_probs",
    "cut logits become 0 instead of minus infinity",
    "divides the probabilities by the temperature, after the softmax",
)
def next_token_probs(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        border = logits.topk(top_k, dim=-1).values[..., -1:]
        logits = logits.masked_fill(logits < border, 0.0)
    return torch.softmax(logits, dim=-1) / temperature


@wrong(
    "next_token_probs",
    "returns the k best probabilities alone, not V of them",
    "squares the temperature: divided twice",
)
def next_token_probs(logits, temperature=1.0, top_k=None):
    logits = logits / temperature
    best, places = logits.topk(top_k or logits.shape[-1], dim=-1)
    probs = torch.softmax(best / temperature, dim=-1)
    return probs


@wrong(
    "next_token_probs",
    "in-place division of the caller's logits",
    "one logit too many is kept",
)
def next_token_probs(logits, temperature=1.0, top_k=None):
    logits /= temperature
    if top_k is not None and top_k < logits.shape[-1]:
        border = logits.topk(top_k + 1, dim=-1).values[..., -1:]
        logits = logits.masked_fill(logits < border, float("-inf"))
    return F.softmax(logits, dim=-1)


# ---------------------------------------------------------- 9.3 top_p_probs


@right("top_p_probs")
def top_p_probs(logits, p):
    # from the small end, in float64
    probs = torch.softmax(logits.double(), dim=-1)
    small, order = probs.sort(dim=-1)
    better = 1 - small.cumsum(-1)  # what all the better ones hold
    kept = torch.where((better < p) | (p == 1), small, 0.0)
    out = torch.zeros_like(probs).scatter(-1, order, kept)
    return (out / out.sum(-1, keepdim=True)).to(logits.dtype)


@right("top_p_probs")
def top_p_probs(logits, p):
    V = logits.shape[-1]
    out = torch.zeros_like(logits).reshape(-1, V)
    for n, row in enumerate(logits.reshape(-1, V).softmax(-1)):
        total, kept = 0.0, []
        for i in row.argsort(descending=True).tolist():
            kept.append(i)
            total += row[i].item()
            if total >= p < 1:
                break
        out[n, kept] = row[kept] / row[kept].sum()
    return out.view_as(logits)


@right("top_p_probs")
def top_p_probs(logits, p):
    # what is better than token v: the sum over all larger logits, or earlier equal ones
    probs = logits.softmax(dim=-1)
    place = torch.arange(logits.shape[-1])
    larger = logits[..., None, :] > logits[..., :, None]
    equal = (logits[..., None, :] == logits[..., :, None]) & (place < place[:, None])
    better = ((larger | equal) * probs[..., None, :]).sum(-1)
    hidden = (better >= p) & (p < 1)
    return torch.softmax(logits.masked_fill(hidden, -torch.inf), dim=-1)


@wrong("top_p_probs", "drops the token that crosses p: the sum stays below p")
def top_p_probs(logits, p):
    probs = torch.softmax(logits, dim=-1)
    ordered, places = probs.sort(dim=-1, descending=True)
    cumulative = ordered.cumsum(dim=-1)
    remove = cumulative > p
    remove[..., 0] = False
    kept = ordered.masked_fill(remove, 0.0)
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(probs).scatter(-1, places, kept)


@wrong("top_p_probs", "the kept ones aren't renormalised")
def top_p_probs(logits, p):
    probs = logits.softmax(-1)
    best, order = torch.sort(probs, dim=-1, descending=True)
    before = best.cumsum(-1) - best
    best = best.masked_fill(before >= p, 0)
    return torch.zeros_like(probs).scatter(-1, order, best)


@wrong("top_p_probs", "returned in sorted order, not at the tokens' places")
def top_p_probs(logits, p):
    probs, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    earlier = F.pad(probs.cumsum(dim=-1), (1, -1))
    kept = probs * (earlier < p)
    return kept / kept.sum(dim=-1, keepdim=True)


@wrong("top_p_probs", "sorts from small to large: the worst tokens are kept")
def top_p_probs(logits, p):
    probs = torch.softmax(logits, dim=-1)
    ordered, order = probs.sort(dim=-1)
    before = ordered.cumsum(dim=-1) - ordered
    ordered = torch.where(before < p, ordered, 0.0)
    out = torch.zeros_like(probs).scatter(-1, order, ordered)
    return out / out.sum(dim=-1, keepdim=True)


@wrong(
    "top_p_probs", "keeps all tokens of probability at least p (or the best), not a sum"
)
def top_p_probs(logits, p):
    rows = []
    for row in logits.softmax(-1).reshape(-1, logits.shape[-1]):
        probs = row
        keep = probs >= min(p, float(row.max()))
        rows.append(probs * keep / (probs * keep).sum())
    return torch.stack(rows).view_as(logits)


def _smallest_sum(probs, p):
    order = probs.argsort(descending=True)
    n = int((probs[order].cumsum(0) < p).sum()) + 1
    keep = torch.zeros_like(probs, dtype=torch.bool)
    keep[order[:n]] = True
    return keep


@wrong(
    "top_p_probs",
    "gathers where it should scatter: the order isn't undone",
    "one token too many stays",
)
def top_p_probs(logits, p):
    probs, order = logits.softmax(-1).sort(-1, descending=True)
    before = F.pad(probs.cumsum(-1), (2, -2))
    kept = probs.masked_fill(before >= p, 0.0)
    kept = kept / kept.sum(-1, keepdim=True)
    return kept.gather(-1, order)


@wrong(
    "top_p_probs",
    "sums the logits instead of the probabilities when looking for p",
    "no renormalisation",
)
def top_p_probs(logits, p):
    values, order = logits.sort(dim=-1, descending=True)
    before = values.cumsum(-1) - values
    remove = before >= p
    remove[..., 0] = False
    kept = values.softmax(-1).masked_fill(remove, 0.0)
    out = torch.zeros_like(logits).scatter(-1, order, kept)
    return out


@wrong(
    "top_p_probs",
    "one set for all rows, that of the first",
    "the token that crosses p is dropped",
)
def top_p_probs(logits, p):
    probs = torch.softmax(logits, dim=-1)
    rows = probs.reshape(-1, probs.shape[-1])[:1].expand(
        probs.numel() // probs.shape[-1], -1
    )
    ordered, order = rows.sort(-1, descending=True)
    total = ordered.cumsum(-1)
    keep = torch.zeros_like(rows, dtype=torch.bool).scatter(
        -1, order, (total <= p) | (total == ordered)
    )
    kept = probs * keep.view_as(probs)
    return kept / kept.sum(-1, keepdim=True)


@wrong(
    "top_p_probs",
    "sorts and sums along the first axis",
    "the kept probabilities are all made equal",
)
def top_p_probs(logits, p):
    probs = torch.softmax(logits, dim=-1)
    ordered, order = probs.sort(dim=0, descending=True)
    kept = ordered.masked_fill(ordered.cumsum(dim=0) - ordered >= p, 0.0)
    kept = (kept > 0).to(kept)
    kept = torch.zeros_like(probs).scatter(0, order, kept)
    return kept / kept.sum(dim=-1, keepdim=True)


@wrong(
    "top_p_probs",
    "1 - p is kept instead of p",
    "the best token can be cut: nothing is left, NaN",
)
def top_p_probs(logits, p):
    ordered, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    kept = ordered.masked_fill(ordered.cumsum(-1) >= 1 - p, 0.0)
    kept = kept / kept.sum(-1, keepdim=True)
    return torch.zeros_like(kept).scatter(-1, order, kept)
