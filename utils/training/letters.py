"""The test benches of 05 and 07: small readers of letters, trained on short pieces."""

from functools import cache

import torch
import torch.nn.functional as F
from torch import nn

from utils.attention import (
    MultiHeadAttention,
    causal_mask,
    masked_softmax,
    merge_heads,
    split_heads,
)
from utils.data import load_text, sliding_windows
from utils.embeddings import rotate_pairs
from utils.model import next_token_loss
from utils.training import train

WIDTH, HEADS, HELD_OUT = 32, 4, 6000
SPEEDS = 10000 ** (-torch.arange(0, 8, 2) / 8)  # of the four rotary pairs of a head


def plain_scores(query, key):
    """Compare queries and keys by scaled dot products, without positions.

    query, key: (B, H, T, K)
    returns: (B, H, T, T)

    >>> plain_scores(torch.ones(1, 1, 1, 4), torch.ones(1, 1, 1, 4))
    tensor([[[[2.]]]])
    """
    return query @ key.mT / query.shape[-1] ** 0.5


def far_keys(num_letters, seen=31):
    """Return True where a key stands more than `seen` places before its query.

    returns: boolean (T, T)

    >>> far_keys(3, seen=1)
    tensor([[False, False, False],
            [False, False, False],
            [ True, False, False]])
    """
    places = torch.arange(num_letters)
    return places[:, None] - places > seen


def rotary_scores(query, key, speeds=SPEEDS):
    """Turn queries and keys by their places, pair by pair, and compare them.

    query, key: (B, H, T, K)
    speeds: (K / 2,), by how much each pair turns from one place to the next
    returns: (B, H, T, T)

    >>> query = key = torch.ones(1, 1, 2, 2)
    >>> rotary_scores(query, key, torch.tensor([torch.pi / 2])).abs().round()
    tensor([[[[1., 0.],
              [0., 1.]]]])
    """
    angles = torch.arange(query.shape[-2])[:, None] * speeds  # (T, K / 2)
    return plain_scores(_turned(query, angles), _turned(key, angles))


def held_scores(query, key, pairs, speeds=SPEEDS, seen=31):
    """Compare as `rotary_scores` does, but let some pairs turn no further than seen.

    In the pairs that are held, a key more than `seen` places back is compared as if the
    query stood at place `seen` and the key at 0.

    query, key: (B, H, T, K)
    pairs: the numbers of the pairs that are held
    returns: (B, H, T, T)

    >>> query = key = torch.ones(1, 1, 6, 2)
    >>> scores = held_scores(query, key, [0], torch.tensor([torch.pi / 4]), seen=2)
    >>> scores[0, 0, -1].abs().round(decimals=4)
    tensor([0.0000, 0.0000, 0.0000, 0.0000, 1.0000, 1.4142])
    """
    places = torch.arange(query.shape[-2])[:, None]  # (T, 1)
    held = torch.isin(torch.arange(len(speeds)), torch.tensor([*pairs]))  # (K / 2,)
    ahead = torch.where(held, seen * speeds, places * speeds)  # (T, K / 2)
    behind = torch.where(held, 0.0, places * speeds)
    far = plain_scores(_turned(query, ahead), _turned(key, behind))
    usual = rotary_scores(query, key, speeds)
    return torch.where(far_keys(len(places), seen), far, usual)


def _turned(x, angles):
    return rotate_pairs(x, angles.cos(), angles.sin())


class LetterReader(nn.Module):
    """Score every letter of the course's story as the next one, at all positions.

    An embedding of width 32, one causal layer of four heads, and an MLP.

    score: function of queries and keys, (B, H, T, K) each, to scores (B, H, T, T)
    added: function of the number of tokens to vectors (T, D), added to the embeddings
    token_ids: (B, T)
    returns: scores (B, T, V), one for each letter

    >>> LetterReader()(torch.zeros(2, 5).long()).shape[:2]
    torch.Size([2, 5])
    """

    def __init__(self, score=plain_scores, added=None):
        super().__init__()
        letters = len(story()[0])
        self.tokens, self.added = nn.Embedding(letters, WIDTH), added
        self.attention = _ScoredAttention(score)
        layers = nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, letters)
        self.mlp = nn.Sequential(*layers)

    def forward(self, token_ids):
        x = self.tokens(token_ids)  # (B, T, D)
        if self.added is not None:
            x = x + self.added(token_ids.shape[1])  # (T, D)
        return self.mlp(x + self.attention(x))  # (B, T, V)

    def with_score(self, score):
        """Return a reader with the same weights and another score.

        >>> reader = LetterReader()
        >>> other = reader.with_score(lambda query, key: 0 * plain_scores(query, key))
        >>> torch.equal(other.tokens.weight, reader.tokens.weight)
        True
        """
        other = LetterReader(score, self.added)
        other.load_state_dict(self.state_dict())
        return other


class _ScoredAttention(MultiHeadAttention):
    """The layer of 06: four heads of width 8, with scores of one's own."""

    def __init__(self, score):
        super().__init__(WIDTH, WIDTH, context_length=32, dropout=0.0, num_heads=HEADS)
        self.score = score

    def forward(self, x):
        projections = self.W_query, self.W_key, self.W_value
        query, key, value = (split_heads(W(x), HEADS) for W in projections)
        weights = masked_softmax(self.score(query, key), causal_mask(x.shape[1]))
        return self.out_proj(merge_heads(weights @ value))


@cache
def story():
    """Return the letters that occur in the story, sorted, and the story as ids."""
    text = load_text()
    letters = sorted(set(text))
    return letters, torch.tensor([letters.index(letter) for letter in text])


def story_windows():
    """Cut the story into windows of 32 letters: what 05 trains on, and what it hides.

    returns: inputs and targets (N, 32) from the first 30,000 letters, a window at each
        letter; and inputs and targets from the rest, windows one after the other

    >>> (inputs, _), (unseen, _) = story_windows()
    >>> inputs.shape, unseen.shape[1]
    (torch.Size([29968, 32]), 32)
    """
    _, ids = story()
    return sliding_windows(ids[:30_000], 32, 1), sliding_windows(ids[30_000:], 32, 32)


def train_on_story(build, seed=1, steps=400):
    """Train a new model on `story_windows`, without a progress bar.

    build: function () -> a model from ids (B, T) to logits (B, T, V); it is called
        after the seed is set
    returns: the model, its loss over the last 50 steps, and its loss on unseen text

    >>> model, training, unseen = train_on_story(LetterReader, steps=50)
    >>> training < 4.3, unseen < 4.3
    (True, True)
    """
    torch.manual_seed(seed)
    model = build()
    (inputs, targets), unseen = story_windows()
    rows = torch.randint(len(inputs), (steps, 32))
    batches = [(inputs[row], targets[row]) for row in rows]
    losses = train(model, batches, next_token_loss, steps, lr=1e-2, show_progress=False)
    with torch.no_grad():
        return model, sum(losses[-50:]) / 50, next_token_loss(model, unseen).item()


def train_reader(reader, length=32, steps=300, batch_size=32, lr=1e-2, seed=0):
    """Train on pieces of the story, the same ones for every reader of one seed.

    The last 6,000 letters are held out. It takes seconds, so no progress is shown.

    length: letters in a piece
    returns: the reader, in evaluation mode
    """
    inputs, targets = sliding_windows(story()[1][:-HELD_OUT], length, stride=1)
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(len(inputs), (steps, batch_size), generator=generator)
    batches = [(inputs[row], targets[row]) for row in rows]
    train(reader, batches, next_token_loss, steps, lr, show_progress=False)
    return reader


@torch.no_grad()
def loss_at(reader, length):
    """Return the loss on the last 16 of `length` held-out letters.

    The pieces end at the same places for every length, so it is always the same letters
    that are asked for. `length` is from 16 to 300.
    """
    _, ids = story()
    ends = torch.arange(len(ids) - HELD_OUT + 300, len(ids) - 1, 64)
    pieces = ids[ends[:, None] + torch.arange(-length, 1)]  # (N, length + 1)
    logits = reader(pieces[:, :-1])[:, -16:]  # (N, 16, V)
    return F.cross_entropy(logits.flatten(0, 1), pieces[:, -16:].flatten()).item()


def loss_of_guessing():
    """Return the loss of one who knows only how often each letter occurs."""
    letters, ids = story()
    counts = torch.bincount(ids[:-HELD_OUT], minlength=len(letters)) + 1
    return loss_at(lambda token_ids: counts.log().expand(*token_ids.shape, -1), 16)


def compare_lengths(readers, lengths):
    """Print the loss of each reader at each length, and return it.

    readers: dict from a name to a reader; one that cannot read a length gets nan
    returns: dict from the name to a list of losses
    """
    print(f"{'letters read':20}", *[f"{length:6}" for length in lengths])
    losses = {}
    for name, reader in readers.items():
        losses[name] = [_loss_or_nan(reader, length) for length in lengths]
        shown = ["error" if x != x else f"{x:.2f}" for x in losses[name]]
        print(f"{name:20}", *[f"{text:>6}" for text in shown])
    return losses


def _loss_or_nan(reader, length):
    try:
        return loss_at(reader, length)
    except IndexError:  # a table of positions that ends
        return float("nan")
