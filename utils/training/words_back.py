"""The task of notebook 06: models that name the words before, with one head or more."""

import torch
import torch.nn.functional as F
from torch import nn

from utils.attention import MultiHeadAttention
from utils.data import draw_words_back
from utils.embeddings import TokenAndPositionEmbedding
from utils.training import train


class LastWords(nn.Module):
    """Score the six words as each of the n words before a token, nearest first.

    Embeddings of width 32, one causal layer whose heads share that width, and an MLP.

    words: (B, T) with T up to 16
    returns: scores (B, T, n, 6)

    >>> LastWords(num_heads=2, n=3)(torch.zeros(5, 16).long()).shape
    torch.Size([5, 16, 3, 6])
    """

    def __init__(self, num_heads, n):
        super().__init__()
        self.embedding = TokenAndPositionEmbedding(6, 16, 32)
        self.attention = MultiHeadAttention(32, 32, 16, 0.0, num_heads)
        self.mlp = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 6 * n))

    def forward(self, words):
        x = self.embedding(words)  # (B, T, 32), words and positions
        scores = self.mlp(x + self.attention(x))  # (B, T, 6n)
        return scores.unflatten(-1, (-1, 6))  # (B, T, n, 6)


def word_loss(model, batch):
    """Return the mean cross-entropy of the words that are asked for.

    batch: words and answers, as `draw_words_back` gives them

    >>> word_loss(LastWords(1, 2), draw_words_back(5, 2)) > 0
    tensor(True)
    """
    words, answers = batch
    return F.cross_entropy(model(words).flatten(0, 2), answers.flatten())


def trained(num_heads, n, seed=1, steps=400, lr=1e-2):
    """Train a new model to name the last n words, without a progress bar.

    >>> trained(2, 2, steps=1).training
    False
    """
    torch.manual_seed(seed)
    model, batches = LastWords(num_heads, n), lambda _: draw_words_back(32, n)
    train(model, batches, word_loss, steps, lr, show_progress=False)
    return model


@torch.no_grad()
def right(model, n):
    """Return how many answers are right in 500 new sentences, for each distance.

    returns: (n,), the nearest word first

    >>> right(LastWords(1, 3), 3).shape
    torch.Size([3])
    """
    words, answers = _new_sentences(n)
    return (model(words).argmax(dim=-1) == answers)[:, n:].float().mean(dim=(0, 1))


@torch.no_grad()
def mean_weights(model, n):
    """Average the attention weights over the sentences that `right` asks.

    returns: (H, 16, 16)

    >>> mean_weights(LastWords(4, 2), 2).shape
    torch.Size([4, 16, 16])
    """
    x = model.embedding(_new_sentences(n)[0])
    _, weights = model.attention(x, need_weights=True)  # (500, H, 16, 16)
    return weights.mean(dim=0)


def weights_back(model, n):
    """Return the mean weight that the first head gives to each distance.

    returns: (n,), the nearest word first; the tokens that aren't asked don't count

    >>> weights_back(LastWords(1, 3), 3).shape
    torch.Size([3])
    """
    weights = mean_weights(model, n)[0, n:]  # (16 - n, 16)
    return torch.stack([weights.diagonal(n - k).mean() for k in range(1, n + 1)])


def _new_sentences(n):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return draw_words_back(500, n)
