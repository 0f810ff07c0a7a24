"""What notebook 08 builds on: sentences as ids, encoders, decoders, their training.

Shapes: B batch, S French words, T English words, D model width, V English vocabulary.
A decoder gets a function `find` that says what it reads off the French sentence:
(state (B, D), context (B, S, D), vector (B, D), mask (B, S)) -> found (B, D), weights
(B, S). Masks: True = a word.
"""

import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from utils.attention import MultiHeadAttention
from utils.data import translation_pairs
from utils.embeddings import TokenAndPositionEmbedding
from utils.model import feed_forward
from utils.training import TrainingConfig, train

PAD, START, END = 0, 1, 2
LENGTHS = 4, 7, 10, 13, 16, 19, 22  # French words, for `by_length`


def num_words(pair):
    """Count the French words of a pair of sentences.

    >>> num_words(("la voiture bleue", "the blue car"))
    3
    """
    return len(pair[0].split())


class Sentences:
    """French sentences with their translations, as words and as ids.

    pairs: 32,000 for training;  held_out: 600 others, sorted by French words
    french, english: the words by id, first <pad>, <start> and <end>
    """

    def __init__(self, seed=0):
        self.pairs = translation_pairs(32_000, seed=2 * seed)
        self.held_out = sorted(translation_pairs(600, 2 * seed + 1), key=num_words)
        sides = list(zip(*self.pairs))
        self.french, self.english = (_vocabulary(side) for side in sides)
        self.seed = seed

    def batch(self, pairs):
        """Return the ids, French (B, S) and English (B, T), each with <end>, padded."""
        columns = zip(*((f.split(), e.split()) for f, e in pairs))
        found = []
        for column, words in zip(columns, (self.french, self.english)):
            places = {word: i for i, word in enumerate(words)}
            ids = [torch.tensor([*map(places.get, line), END]) for line in column]
            found.append(pad_sequence(ids, batch_first=True, padding_value=PAD))
        return found

    def batches(self):
        """Return all training pairs in batches of 64 of similar length, shuffled."""
        ordered = sorted(self.pairs, key=num_words)
        starts = list(range(0, len(ordered), 64))
        random.Random(self.seed).shuffle(starts)
        return [self.batch(ordered[i : i + 64]) for i in starts]


def _vocabulary(sentences):
    words = {word for sentence in sentences for word in sentence.split()}
    return ["<pad>", "<start>", "<end>", *sorted(words)]


def shifted(target):
    """Put <start> before a target and leave out its last column.

    >>> shifted(torch.tensor([[53, 10, 14, 2]]))
    tensor([[ 1, 53, 10, 14]])
    """
    start = torch.full((len(target), 1), START)
    return torch.cat((start, target[:, :-1]), dim=1)


class RecurrentEncoder(nn.Module):
    """Read with a GRU in both directions.

    returns: the words' states (B, S, D), and the two last ones side by side (B, D)
    """

    def __init__(self, num_words, d_model):
        super().__init__()
        self.embedding = nn.Embedding(num_words, d_model)
        self.gru = nn.GRU(d_model, d_model // 2, batch_first=True, bidirectional=True)

    def forward(self, source, mask):
        x, length = self.embedding(source), source.shape[1]
        # The GRU must know where a sentence ends, or it would read on in the padding.
        packed = pack_padded_sequence(x, mask.sum(dim=1), True, enforce_sorted=False)
        states, last = self.gru(packed)
        context, _ = pad_packed_sequence(states, True, total_length=length)
        return context, torch.cat((last[0], last[1]), dim=-1)


class RecurrentDecoder(nn.Module):
    """Write with a GRU, word by word, and use what `find` returns.

    returns: logits (B, T, V) and weights (B, T, S)
    """

    def __init__(self, num_words, d_model, find):
        super().__init__()
        self.embedding = nn.Embedding(num_words, d_model)
        self.gru, self.find = nn.GRUCell(2 * d_model, d_model), find
        self.output = nn.Linear(d_model, num_words)

    def forward(self, inputs, context, vector, mask):
        state, states, looks = vector, [], []
        for word in self.embedding(inputs).unbind(dim=1):  # (B, D) each
            found, weights = self.find(state, context, vector, mask)
            state = self.gru(torch.cat((word, found), dim=-1), state)
            states.append(state)
            looks.append(weights)
        # All states are scored at once: in the loop it would take a third longer.
        return self.output(torch.stack(states, dim=1)), torch.stack(looks, dim=1)


class TransformerEncoder(nn.Module):
    """Let every French word look at every French word, then an MLP: one block.

    returns: the words' vectors (B, S, D), and None in place of a single vector
    """

    def __init__(self, num_words, d_model, num_heads, length=32):
        super().__init__()
        sizes = d_model, d_model, length, 0.0, num_heads
        self.embedding = TokenAndPositionEmbedding(num_words, length, d_model)
        self.attention = MultiHeadAttention(*sizes, causal=False)
        self.mlp = feed_forward(d_model)
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(3))

    def forward(self, source, mask):
        x = self.embedding(source)
        x = x + self.attention(self.norms[0](x), padding_mask=mask)
        x = x + self.mlp(self.norms[1](x))
        return self.norms[2](x), None


class DecoderBlock(nn.Module):
    """Look at the own past, then at the context, then work on each word alone.

    returns: x (B, T, D) and the weights of the cross-attention (B, H, T, S)
    """

    def __init__(self, d_model, num_heads, length):
        super().__init__()
        sizes = d_model, d_model, length, 0.0, num_heads  # 0.0: no dropout
        self.self_attention = MultiHeadAttention(*sizes)
        self.cross_attention = MultiHeadAttention(*sizes, causal=False)
        self.mlp = feed_forward(d_model)
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(3))

    def forward(self, x, context, mask):
        x = x + self.self_attention(self.norms[0](x))
        found, weights = self.cross_attention(
            self.norms[1](x), context=context, padding_mask=mask, need_weights=True
        )
        x = x + found
        return x + self.mlp(self.norms[2](x)), weights


class TransformerDecoder(nn.Module):
    """Write with one block, all places at once.

    block: what is built as the one block, by default `DecoderBlock`
    returns: logits (B, T, V) and weights (B, T, S), their mean over the heads
    """

    def __init__(self, num_words, d_model, num_heads, length=32, block=DecoderBlock):
        super().__init__()
        self.embedding = TokenAndPositionEmbedding(num_words, length, d_model)
        self.block = block(d_model, num_heads, length)
        self.norm = nn.LayerNorm(d_model)
        self.output = nn.Linear(d_model, num_words)

    def forward(self, inputs, context, vector, mask):
        x, weights = self.block(self.embedding(inputs), context, mask)
        return self.output(self.norm(x)), weights.mean(dim=1)


class Translator(nn.Module):
    """An encoder and a decoder.

    source: French ids (B, S);  inputs: English ids so far (B, T)
    mask: boolean (B, S), True = a word; by default all that is not <pad>
    returns: logits (B, T, V) and weights (B, T, S)
    """

    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(self, source, inputs, mask=None):
        mask = source != PAD if mask is None else mask
        return self.decoder(inputs, *self.encoder(source, mask), mask)


def translation_loss(model, batch):
    """Return the mean loss of the right words, without the padding."""
    source, target = batch
    logits, _ = model(source, shifted(target))
    return F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD)


def trained(encoder, decoder, batches, steps=500):
    """Train a translator; its learning rate rises, then falls to zero."""
    model = Translator(encoder, decoder)
    config = TrainingConfig(warmup=25, final_lr=0.0, clip=1.0)
    train(model, batches, translation_loss, steps, lr=6e-3, config=config)
    return model


def greedy_translate(next_logits, start_id, end_id, max_length) -> list[int]:
    """Append the most probable id until the end, or until there is no more room.

    next_logits: gives (V,) for what follows a list of ids, start_id first
    returns: the ids after start_id, at most max_length, without end_id

    >>> greedy_translate(lambda ids: torch.eye(5)[len(ids) + 1], 0, 4, max_length=9)
    [2, 3]
    """
    written = []
    while len(written) < max_length:
        best = next_logits([start_id, *written]).argmax().item()
        if best == end_id:
            break
        written.append(best)
    return written


@torch.no_grad()
def written(model, source, mask=None, limit=30):
    """Decode greedily: return English ids (B, up to limit), <end> included."""
    ids = torch.full((len(source), 1), START)
    for _ in range(limit):
        best = model(source, ids, mask)[0][:, -1:].argmax(dim=-1)  # (B, 1)
        ids = torch.cat((ids, best), dim=1)
        if (ids == END).any(dim=1).all():
            break
    return ids[:, 1:]


def translate(model, sentences, source, mask=None):
    """Return the English sentences, without <end> and what follows it."""
    rows = [[*row, END] for row in written(model, source, mask).tolist()]
    return [" ".join(sentences.english[i] for i in r[: r.index(END)]) for r in rows]


def right(model, sentences, pairs):
    """Return for each pair 1 where the translation is right in every word, or 0."""
    found = []
    for i in range(0, len(pairs), 100):  # short sentences needn't wait for long ones
        some = pairs[i : i + 100]
        ours = translate(model, sentences, sentences.batch(some)[0])
        found += [a == b for a, (_, b) in zip(ours, some)]
    return torch.tensor(found).float()


def compare(models, sentences):
    """Print for each model its parameters and the right share of each third.

    A column is headed by the mean number of French words of its 200 sentences.

    models: name -> translator
    returns: name -> a number for each held-out sentence, as `right` gives them
    """
    hits, lengths = {}, [num_words(pair) for pair in sentences.held_out]
    heads = [f"{sum(lengths[i : i + 200]) / 200:.0f} words" for i in (0, 200, 400)]
    print(f"{'':12}{'parameters':>11}", *(f"{head:>9}" for head in heads))
    for name, model in models.items():
        hits[name] = right(model, sentences, sentences.held_out)
        size = sum(p.numel() for p in model.parameters())
        shares = [third.mean().item() for third in hits[name].chunk(3)]
        print(f"{name:12}{size:11,}", *(f"{share:9.2f}" for share in shares))
    return hits


def by_length(sentences, hits):
    """Average over all held-out sentences, in groups of about 4, 7, ... 22 words.

    hits: a number for each held-out sentence
    returns: a mean for each of `LENGTHS`, over the sentences to which it is nearest
    """
    lengths = torch.tensor([num_words(pair) for pair in sentences.held_out])
    nearest = (lengths - torch.tensor(LENGTHS)[:, None]).abs().argmin(dim=0)  # (600,)
    return [hits[nearest == i].mean().item() for i in range(len(LENGTHS))]


@torch.no_grad()
def alignment(model, sentences, pair):
    """Return the weights (T, S) with which the right translation is written."""
    source, target = sentences.batch([pair])
    return model(source, shifted(target))[1][0]


def steps(pair):
    """Return the labels of an alignment: its steps, given → written, and French words.

    >>> steps(("un chat", "a cat"))
    (['<start> → a', 'a → cat', 'cat → <end>'], ['un', 'chat', '<end>'])
    """
    read, written = (side.split() + ["<end>"] for side in pair)
    return [f"{a} → {b}" for a, b in zip(["<start>", *written], written)], read


@torch.no_grad()
def without(model, sentences, pair, word):
    """Hide the French word at which an English one looks most, and see what it costs.

    It is hidden from the cross-attention alone; the encoder has read it.

    word: stands once in the right translation, which is given so far
    returns: the French word, the English word's probability, and that with it hidden
    """
    source, target = sentences.batch([pair])
    mask, number = source != PAD, sentences.english.index(word)
    context, vector = model.encoder(source, mask)
    _, weights = model.decoder(shifted(target), context, vector, mask)
    row = (target[0] == number).nonzero().item()
    place, found = weights[0, row].argmax().item(), []
    for visible in (mask, mask & (torch.arange(mask.shape[1]) != place)):
        logits, _ = model.decoder(shifted(target), context, vector, visible)
        found.append(logits[0, row].softmax(dim=-1)[number].item())
    return sentences.french[source[0, place]], *found
