"""After notebook 06: name the last words of a sentence, with one or several heads."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils import attention as course
from utils.embeddings import TokenAndPositionEmbedding
from utils.experiments import answer_loss, is_right
from utils.training import train


def draw_words_back(
    num_sentences: int,
    num_back: int,
    num_words: int = 16,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    """Draw words from 0 to 5, (B, T), and for each those before it, (B, T, num_back).

    Where there are too few, the answer is -100, which the cross-entropy leaves out.
    """
    words = torch.randint(6, (num_sentences, num_words), generator=generator)
    answers = words[:, :-1].unfold(1, num_back, 1).flip(-1)
    return words, F.pad(answers, (0, 0, num_back, 0), value=-100)


class LastWords(nn.Module):
    """Score the six words as each of the n words before: (B, T) to (B, T, n, 6)."""

    def __init__(self, num_heads: int, n: int):
        super().__init__()
        self.embedding = TokenAndPositionEmbedding(6, 16, 32)
        self.attention = course.MultiHeadAttention(32, 32, 16, 0.0, num_heads)
        self.mlp = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 6 * n))

    def forward(self, words):
        x = self.embedding(words)  # (B, T, 32), words and positions
        scores = self.mlp(x + self.attention(x))  # (B, T, 6n)
        return scores.unflatten(-1, (-1, 6))  # (B, T, n, 6)


def train_last_words(
    num_heads: int, n: int, seed: int = 1, lr: float = 1e-2
) -> LastWords:
    """Train a new model for 400 steps to name the last n words; return it."""
    torch.manual_seed(seed)
    model = LastWords(num_heads, n)

    def draw(number):
        return draw_words_back(32, n)

    train(model, draw, answer_loss, steps=400, lr=lr, show_progress=False)
    return model


def new_sentences(n: int) -> tuple[Tensor, Tensor]:
    """Draw the same 500 sentences for every model to be tested with."""
    return draw_words_back(500, n, generator=torch.Generator().manual_seed(0))


def words_back_accuracy(model: nn.Module, n: int) -> Tensor:
    """Return the fraction of right answers for each distance, (n,), nearest first."""
    return is_right(model, new_sentences(n))[:, n:].float().mean(dim=(0, 1))


@torch.no_grad()
def mean_attention(model: LastWords, n: int) -> Tensor:
    """Average the attention weights over the new sentences, (H, 16, 16)."""
    x = model.embedding(new_sentences(n)[0])
    _, weights = model.attention(x, need_weights=True)  # (500, H, 16, 16)
    return weights.mean(dim=0)
