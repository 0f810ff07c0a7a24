"""What the layers and the model of the course are held against."""

import torch
import torch.nn.functional as F
from torch import nn


def attend(query, key, value, num_heads):
    """Attend with every head, causally; (B, T, D) three times, to (B, T, D)."""
    heads = (t.unflatten(-1, (num_heads, -1)) for t in (query, key, value))
    heads = (t.transpose(1, 2) for t in heads)  # (B, H, T, K)
    output = F.scaled_dot_product_attention(*heads, is_causal=True)
    return output.transpose(1, 2).flatten(2)


class Floor(nn.Module):
    """What no layer can leave out: four matrix products and the fused attention."""

    def __init__(self, width, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.weights = nn.ParameterList(torch.empty(width, width) for _ in range(4))

    def forward(self, x):
        query, key, value, out = (weight.T for weight in self.weights)
        return attend(x @ query, x @ key, x @ value, self.num_heads) @ out


class LikeNanoGPTAttention(nn.Module):
    """One layer for queries, keys and values, as Karpathy's nanoGPT has it."""

    def __init__(self, width, num_heads, bias=False):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.out = nn.Linear(width, width, bias=bias)

    def forward(self, x):
        query, key, value = self.qkv(x).chunk(3, dim=-1)
        return self.out(attend(query, key, value, self.num_heads))


class PyTorchAttention(nn.Module):
    """`nn.MultiheadAttention`, told that its mask is the causal one."""

    def __init__(self, width, num_heads, num_tokens):
        super().__init__()
        self.layer = nn.MultiheadAttention(width, num_heads, batch_first=True)
        self.mask = nn.Transformer.generate_square_subsequent_mask(num_tokens)

    def forward(self, x):
        options = {"attn_mask": self.mask, "is_causal": True, "need_weights": False}
        return self.layer(x, x, x, **options)[0]


class LikeNanoGPTBlock(nn.Module):
    """A pre-norm block around the attention above."""

    def __init__(self, width, num_heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = LikeNanoGPTAttention(width, num_heads, bias=True)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class LikeNanoGPT(nn.Module):
    """A model built like Karpathy's nanoGPT (`model.py`), in our own words.

    Products that end in a residual begin smaller, by the root of their number.
    """

    def __init__(self, vocab_size, context_length, width, num_heads, num_layers):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, width)
        self.positions = nn.Embedding(context_length, width)
        self.blocks = nn.Sequential(
            *(LikeNanoGPTBlock(width, num_heads) for _ in range(num_layers))
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab_size, bias=False)
        self.head.weight = self.tokens.weight
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                ends = name.endswith(("out.weight", "down.weight"))
                scale = (2 * num_layers) ** -0.5 if ends else 1
                nn.init.normal_(parameter, std=0.02 * scale)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, token_ids):
        places = torch.arange(token_ids.shape[1])
        x = self.tokens(token_ids) + self.positions(places)
        return self.head(self.norm(self.blocks(x)))
