"""Deeper, after 14: a head that mostly has nothing to look for, and its first token."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils.attention import causal_mask, scaled_dot_product_attention
from utils.embeddings import apply_rope
from utils.training import train

BEGIN, AGAIN = 26, 27  # two tokens beside the letters 0 to 25


def draw_alphabets(num_texts: int, num_tokens: int = 33) -> Tensor:
    """Draw texts (num_texts, num_tokens): BEGIN, then the alphabet from some letter on.

    In 15 of 100 cases AGAIN comes next, and then the letter before it once more.
    """
    ids = torch.full((num_texts, num_tokens), BEGIN)
    ids[:, 1] = torch.randint(26, (num_texts,))
    for t in range(2, num_tokens):
        before, last = ids[:, t - 2], ids[:, t - 1]
        stops = torch.rand(num_texts) < 0.15
        new = torch.where(stops, AGAIN, (last + 1) % 26)
        ids[:, t] = torch.where(last == AGAIN, before, new)
    return ids


class AlphabetReader(nn.Module):
    """Return logits (B, T, 28) and the weights (B, T, T) of one causal rotary head.

    mask: boolean (T, T), True = may attend, on top of the causal mask; None for all
    value_scale: (T, 1), a factor of each token's value; None for 1
    """

    def __init__(self, width: int = 32):
        super().__init__()
        self.tokens = nn.Embedding(28, width)
        self.projections = nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        layers = nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, 28)
        self.mlp = nn.Sequential(*layers)

    def forward(self, token_ids, mask=None, value_scale=None):
        x, positions = self.tokens(token_ids), torch.arange(token_ids.shape[1])
        query, key, value = (project(x) for project in self.projections[:3])
        value = value if value_scale is None else value * value_scale
        query, key = apply_rope(query, positions), apply_rope(key, positions)
        causal = causal_mask(len(positions))
        mask = causal if mask is None else causal & mask
        context, weights = scaled_dot_product_attention(query, key, value, mask)
        return self.mlp(x + self.projections[3](context)), weights


def train_alphabet_reader(
    seed: int = 0, mask: Tensor | None = None
) -> tuple[AlphabetReader, Tensor]:
    """Return a reader, trained with this mask, and 1,000 new texts of 33 tokens."""

    def loss(reader, ids):
        return F.cross_entropy(reader(ids[:, :-1], mask)[0].mT, ids[:, 1:])

    torch.manual_seed(seed)
    batches, reader = [draw_alphabets(32) for _ in range(600)], AlphabetReader()
    train(reader, batches, loss, steps=600, lr=1e-2, show_progress=False)
    return reader, draw_alphabets(1000)


@torch.no_grad()
def alphabet_loss(reader: AlphabetReader, texts: Tensor, *options: Tensor) -> float:
    """Return the loss from token 8 on; options: mask and value_scale of the reader."""
    logits, _ = reader(texts[:, :-1], *options)
    return F.cross_entropy(logits[:, 8:].mT, texts[:, 9:]).item()
