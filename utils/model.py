"""A small GPT made of the attention of this course, and how it writes."""

import torch
import torch.nn.functional as F
from torch import nn

from utils.attention import MultiHeadAttention
from utils.cache import KeyValueCache
from utils.embeddings import TokenAndPositionEmbedding


class TransformerBlock(nn.Module):
    """Let tokens exchange information, then let each think on its own (pre-norm).

    x = x + attention(norm1(x));  x = x + feed_forward(norm2(x))

    attention, feed_forward: modules from (B, T, D) to (B, T, D)
    x: (B, T, D)
    returns: (B, T, D); further keyword arguments go to `attention`

    >>> TransformerBlock(nn.Identity(), nn.Identity(), 4)(torch.zeros(2, 3, 4)).shape
    torch.Size([2, 3, 4])

    Source: Vaswani et al. 2017, section 3.1; the norm in front: Xiong et al. 2020.
    """

    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attention = attention
        self.norm2 = nn.LayerNorm(d_model)
        self.feed_forward = feed_forward

    def forward(self, x, **kwargs):
        x = x + self.attention(self.norm1(x), **kwargs)
        return x + self.feed_forward(self.norm2(x))


def feed_forward(d_model):
    """Build the two layers that every token passes alone, four times as wide inside.

    >>> feed_forward(4)(torch.zeros(2, 3, 4)).shape
    torch.Size([2, 3, 4])

    Source: Vaswani et al. 2017, section 3.3; GELU as in Radford et al. 2018.
    """
    return nn.Sequential(
        nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model)
    )


class GPT(nn.Module):
    """Predict the next token at every position.

    token_ids: (B, T) with T up to `context_length`
    caches: a `KeyValueCache` for each block; token_ids then follow what they hold
    returns: logits (B, T, V)

    Further keyword arguments go to `MultiHeadAttention`; with `rotary=True` the learned
    positions stay beside the turned ones. The output layer shares its weights with the
    token embedding. Raises ValueError as the layers do.

    >>> GPT(11, context_length=5, d_model=8, num_heads=2, num_layers=1)(
    ...     torch.zeros(2, 5, dtype=torch.long)
    ... ).shape
    torch.Size([2, 5, 11])

    Source: Radford et al. 2019, section 2.3, also for the smaller beginning of what is
    added to the stream. No dropout on embeddings and residuals.
    """

    def __init__(
        self,
        vocab_size,
        context_length,
        d_model,
        num_heads,
        num_layers,
        dropout=0.0,
        **attention,
    ):
        super().__init__()
        self.embedding = TokenAndPositionEmbedding(vocab_size, context_length, d_model)
        self.blocks = nn.ModuleList(
            TransformerBlock(
                MultiHeadAttention(
                    d_model, d_model, context_length, dropout, num_heads, **attention
                ),
                feed_forward(d_model),
                d_model,
            )
            for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(d_model)
        self.output = nn.Linear(d_model, vocab_size, bias=False)
        self.output.weight = self.embedding.token_embedding.weight
        self.apply(_small_weights)
        for block in self.blocks:  # all that is added to the stream, together
            for layer in (block.attention.out_proj, block.feed_forward[-1]):
                nn.init.normal_(layer.weight, std=0.02 / (2 * num_layers) ** 0.5)

    @property
    def context_length(self):
        return self.embedding.position_embedding.num_embeddings

    def forward(self, token_ids, caches=None):
        past = len(caches[0]) if caches else 0
        x = self.embedding(token_ids, start=past)  # (B, T, D)
        for i, block in enumerate(self.blocks):
            x = block(x, cache=caches[i] if caches else None)
        return self.output(self.norm(x))  # (B, T, V)


def _small_weights(module):
    # With logits near zero the first loss is ln V: every token is equally likely.
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)


def next_token_loss(model, batch):
    """Return the mean cross-entropy of the targets, in nats per token.

    batch: inputs and targets, both (B, T)
    returns: scalar tensor
    """
    inputs, targets = batch
    return F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())


def next_token_probs(logits, temperature=1.0, top_k=None):
    """Turn logits into probabilities, sharpened and cut to the `top_k` best.

    logits: (..., V)
    returns: (..., V), sums to one; of equal logits at the border all are kept

    Raises ValueError for a temperature that is not positive or top_k outside 1 ... V.

    >>> next_token_probs(torch.tensor([0.0, 0.0, -1.0]), top_k=2)
    tensor([0.5000, 0.5000, 0.0000])

    Source: top-k as in Fan et al. 2018, section 5.
    """
    if temperature <= 0:
        raise ValueError(f"expected a temperature above 0, got {temperature}")
    if top_k is not None:
        if not 1 <= top_k <= logits.shape[-1]:
            raise ValueError(
                f"expected top_k from 1 to {logits.shape[-1]}, got {top_k}"
            )
        smallest = logits.topk(top_k, dim=-1).values[..., -1:]
        logits = logits.masked_fill(logits < smallest, float("-inf"))
    return torch.softmax(logits / temperature, dim=-1)


@torch.no_grad()
def generate(model, token_ids, num_tokens, temperature=1.0, top_k=None, use_cache=True):
    """Write on: draw one token after the other from the model's probabilities.

    token_ids: (B, T), the beginning
    returns: (B, T + num_tokens)

    With `use_cache` the keys and values of earlier tokens are kept rather than
    computed again; what is drawn is the same. Raises ValueError where the whole would
    not fit into the model's context.

    >>> model = GPT(11, context_length=5, d_model=8, num_heads=2, num_layers=1)
    >>> generate(model, torch.tensor([[1, 2]]), num_tokens=3).shape
    torch.Size([1, 5])
    """
    total = token_ids.shape[-1] + num_tokens
    if total > model.context_length:
        raise ValueError(
            f"expected at most context_length = {model.context_length} tokens, "
            f"got {token_ids.shape[-1]} + {num_tokens}"
        )
    caches = [KeyValueCache(total) for _ in model.blocks] if use_cache else None
    new = token_ids
    for _ in range(num_tokens):
        logits = model(new if use_cache else token_ids, caches)[:, -1]  # (B, V)
        probs = next_token_probs(logits, temperature, top_k)
        new = torch.multinomial(probs, num_samples=1)  # (B, 1)
        token_ids = torch.cat((token_ids, new), dim=-1)
    return token_ids
