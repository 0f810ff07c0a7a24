"""The tasks of notebooks 14 and 15: lists of letters with digits, and a stopwatch."""

import copy
import time
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from utils.attention import causal_mask, scaled_dot_product_attention
from utils.data import draw_pairs
from utils.embeddings import apply_rope
from utils.training import train

PAIRS = 4, 8, 16, 24  # the lengths of the lists
LETTERS = 8  # of a text with signs
START, AGAIN = 26, 27  # the two signs of a text of letters

_train = partial(train, show_progress=False)  # seconds: no progress is shown


class PairReader(nn.Module):
    """Read a list of pairs in one way, and say the digit of the letter asked for.

    way: function (query, key, value) -> what is read, (B, 1, K), from a query
        (B, 1, K) and keys and values (B, pairs, K)
    letters, digits: (B, pairs);  asked: (B,)
    returns: scores of the ten digits, (B, 10)

    Keys, queries and values are looked up in learned tables.

    >>> reader = PairReader(lambda query, key, value: query @ key.mT @ value)
    >>> reader(*draw_pairs(2, 5)[:3]).shape
    torch.Size([2, 10])
    """

    def __init__(self, way, width=8):
        super().__init__()
        self.query, self.key = nn.Embedding(26, width), nn.Embedding(26, width)
        self.value, self.output = nn.Embedding(10, width), nn.Linear(width, 10)
        self.way = way

    def forward(self, letters, digits, asked):
        query = self.query(asked)[:, None]  # (B, 1, K)
        read = self.way(query, self.key(letters), self.value(digits))
        return self.output(read[:, 0])


def recalled_after_training(way, width=8, seed=0, lr=1e-2, steps=600):
    """Train a `PairReader` on lists of all lengths; say how often it is right.

    returns: for each of `PAIRS` the share of right answers on 2,000 new lists, whose
        letters all differ

    >>> len(recalled_after_training(lambda query, key, value: query, steps=4))
    4
    """
    return _recalled(lambda: PairReader(way, width), None, seed, lr, steps)


def _recalled(build, num_letters, seed, lr, steps):
    def loss(reader, batch):
        return F.cross_entropy(reader(*batch[:3]), batch[3])

    torch.manual_seed(seed)
    batches = [draw_pairs(64, PAIRS[i % 4], num_letters) for i in range(steps)]
    _train(reader := build(), batches, loss, steps=steps, lr=lr)
    shares = []
    with torch.no_grad():
        for num_pairs in PAIRS:
            *shown, answer = draw_pairs(2000, num_pairs, num_letters)
            right = reader(*shown).argmax(dim=-1) == answer
            shares.append(right.float().mean().item())
    return shares


class StackReader(nn.Module):
    """Read a list of pairs with attention layers, one after the other.

    layers: modules from (B, T, 16) to (B, T, 16), causal; each adds to the stream, and
        the question stands last
    letters, digits: (B, pairs);  asked: (B,)
    returns: scores of the ten digits, (B, 10)

    >>> StackReader([nn.Identity()])(*draw_pairs(2, 5)[:3]).shape
    torch.Size([2, 10])
    """

    def __init__(self, layers):
        super().__init__()
        self.letter, self.asked = nn.Embedding(26, 16), nn.Embedding(26, 16)
        self.digit, self.output = nn.Embedding(10, 16), nn.Linear(16, 10)
        self.layers = nn.ModuleList(layers)

    def forward(self, letters, digits, asked):
        pairs = self.letter(letters) + self.digit(digits)
        x = torch.cat((pairs, self.asked(asked)[:, None]), dim=1)  # (B, pairs + 1, 16)
        for layer in self.layers:
            x = x + layer(x)
        return self.output(x[:, -1])


def recalled_by_layers(kinds, num_letters=None, seed=0, lr=1e-2, steps=600):
    """Train a `StackReader` as `recalled_after_training` trains a `PairReader`.

    kinds: functions () -> a layer, drawn after the seed is set
    num_letters: as `draw_pairs` takes it

    >>> len(recalled_by_layers([nn.Identity], steps=4))
    4
    """

    def build():
        return StackReader(kind() for kind in kinds)

    return _recalled(build, num_letters, seed, lr, steps)


class StreamReader(nn.Module):
    """Follow a text of `draw_streams` by a rule, and say the last digit of a letter.

    rule: function (state, key, value, beta, gate) -> the next state, (B, 8, 8), from a
        key and a value (B, 1, 8) and two numbers from 0 to 1, (B, 1, 1) each
    tokens, digits: (B, T);  asked: (B,)
    returns: scores of the ten digits and of "none", (B, 11)

    Queries, keys, values and both numbers are looked up in learned tables; queries and
    keys get length 1.

    >>> reader = StreamReader(lambda state, key, value, beta, gate: gate * state)
    >>> reader(*draw_streams(2, 5)[:3]).shape
    torch.Size([2, 11])
    """

    def __init__(self, rule):
        super().__init__()
        self.query, self.key = nn.Embedding(LETTERS, 8), nn.Embedding(LETTERS + 1, 8)
        self.value, self.output = nn.Embedding(11, 8), nn.Linear(8, 11)
        self.numbers, self.rule = nn.Embedding(LETTERS + 1, 2), rule

    def forward(self, tokens, digits, asked):
        query = F.normalize(self.query(asked)[:, None], dim=-1)  # (B, 1, 8)
        key, value = F.normalize(self.key(tokens), dim=-1), self.value(digits)
        numbers = torch.sigmoid(self.numbers(tokens)).split(1, dim=-1)  # beta, gate
        state = key.new_zeros(len(key), 8, 8)
        for written in zip(*(t.split(1, dim=1) for t in (key, value, *numbers))):
            state = self.rule(state, *written)
        return self.output((query @ state)[:, 0])

    def gates(self):
        """Return the gates of the eight letters and of the sign, (9,)."""
        return torch.sigmoid(self.numbers.weight[:, 1]).detach()


def draw_streams(num_streams, num_tokens):
    """Draw texts of letters with digits and a sign, after which nothing old counts.

    One token of seven is the sign. One of eight letters is asked for: its last digit
    since the last sign, or "none", where it hasn't come since.

    returns: tokens (num_streams, num_tokens), 8 for the sign; their digits, 10 for the
        sign; for each text the letter and its answer, 10 for none, (num_streams,) each

    >>> [tuple(t.shape) for t in draw_streams(3, 5)]
    [(3, 5), (3, 5), (3,), (3,)]
    """
    tokens = torch.randint(LETTERS, (num_streams, num_tokens))
    digits = torch.randint(10, tokens.shape)
    sign = torch.rand(tokens.shape) < 1 / 7
    tokens, digits = tokens.masked_fill(sign, LETTERS), digits.masked_fill(sign, 10)
    asked = torch.randint(LETTERS, (num_streams, 1))
    places = ((tokens == asked) | sign) * torch.arange(1, num_tokens + 1)
    last = places.argmax(dim=-1, keepdim=True)  # of the letter or a sign, 0 for neither
    counts = places.gather(1, last) > 0
    answer = torch.where(counts, digits.gather(1, last), 10)
    return tokens, digits, asked[:, 0], answer[:, 0]


def followed_after_training(rule, seed=0, lr=1e-2, steps=600):
    """Train a `StreamReader` on texts of all lengths in `PAIRS`.

    returns: the reader, and its shares of right answers on 2,000 new texts of 24
        tokens: where there is a digit, where there is none, and there once more with
        zeros for the sign's value

    >>> len(followed_after_training(lambda state, *rest: state, steps=2)[1])
    3
    """

    def loss(reader, batch):
        return F.cross_entropy(reader(*batch[:3]), batch[3])

    torch.manual_seed(seed)
    batches = [draw_streams(64, PAIRS[i % 4]) for i in range(steps)]
    _train(reader := StreamReader(rule), batches, loss, steps=steps, lr=lr)
    *shown, answer = draw_streams(2000, PAIRS[-1])
    none, silent = answer == 10, copy.deepcopy(reader)
    with torch.no_grad():
        silent.value.weight[10] = 0
        right, still = (
            (read(*shown).argmax(dim=-1) == answer).float() for read in (reader, silent)
        )
    shares = right[~none], right[none], still[none]
    return reader, [share.mean().item() for share in shares]


class TwoWayReader(nn.Module):
    """Read a list of pairs with an attention layer, and answer two questions about it.

    attention: module from (B, T, 32) to (B, T, 16), causal
    pairs: (B, num_pairs, 2), letters and numbers, 26 of each
    asked: (B, 2), a letter and a number; each stands as a token behind the list
    returns: scores of the number beside the letter, and of the letter beside the
        number, (B, 2, 26)

    >>> pairs, asked, answers = draw_two_way(3, 5)
    >>> TwoWayReader(nn.Linear(32, 16))(pairs, asked).shape
    torch.Size([3, 2, 26])
    """

    def __init__(self, attention):
        super().__init__()
        self.listed = nn.ModuleList(nn.Embedding(26, 32) for _ in range(2))
        self.questions = nn.ModuleList(nn.Embedding(26, 32) for _ in range(2))
        self.outputs = nn.ModuleList(nn.Linear(16, 26) for _ in range(2))
        self.attention = attention

    def forward(self, pairs, asked):
        x = sum(table(pairs[..., i]) for i, table in enumerate(self.listed))
        asks = [table(asked[:, i, None]) for i, table in enumerate(self.questions)]
        x = self.attention(torch.cat((x, *asks), dim=1))[:, -2:]  # (B, 2, 16)
        answers = [output(x[:, i]) for i, output in enumerate(self.outputs)]
        return torch.stack(answers, dim=1)


def draw_two_way(num_lists, num_pairs=16):
    """Draw lists of pairs, a letter and a number each, and two questions about each.

    No letter and no number stands in a list twice.

    returns: pairs (num_lists, num_pairs, 2), a letter and a number asked for, and the
        number and the letter beside them, (num_lists, 2) each

    >>> [tuple(t.shape) for t in draw_two_way(3)]
    [(3, 16, 2), (3, 2), (3, 2)]
    """
    pairs = torch.rand(num_lists, 26, 2).argsort(dim=1)[:, :num_pairs]
    places = torch.randint(num_pairs, (num_lists, 2, 1)).expand(-1, -1, 2)
    first, second = pairs.gather(1, places).unbind(dim=1)  # a pair for each question
    asked = torch.stack((first[:, 0], second[:, 1]), dim=1)
    return pairs, asked, torch.stack((first[:, 1], second[:, 0]), dim=1)


def found_two_ways(build, seed=0, lr=1e-2, steps=900):
    """Train a `TwoWayReader`; say how often it finds what is asked for.

    build: function () -> the attention layer, drawn after the seed is set
    returns: the share of right answers to each question, on 2,000 new lists

    >>> len(found_two_ways(lambda: nn.Linear(32, 16), steps=2))
    2
    """

    def loss(reader, batch):
        pairs, asked, answers = batch
        return F.cross_entropy(reader(pairs, asked).flatten(0, 1), answers.flatten())

    torch.manual_seed(seed)
    reader, batches = TwoWayReader(build()), [draw_two_way(64) for _ in range(steps)]
    _train(reader, batches, loss, steps=steps, lr=lr)
    pairs, asked, answers = draw_two_way(2000)
    with torch.no_grad():
        right = reader(pairs, asked).argmax(dim=-1) == answers
    return right.float().mean(dim=0).tolist()


def draw_alphabets(num_texts, num_tokens=33):
    """Draw texts that say the alphabet with interruptions, for one head.

    The start sign, a letter, then the next of the alphabet, and a after z. In 15 of
    100 cases the sign "again" comes instead, and then the letter before it once more.

    returns: ids (num_texts, num_tokens); 0 to 25 are letters

    >>> draw_alphabets(2).shape
    torch.Size([2, 33])
    """
    ids = torch.full((num_texts, num_tokens), START)
    ids[:, 1] = torch.randint(26, (num_texts,))
    for t in range(2, num_tokens):
        before, last = ids[:, t - 2], ids[:, t - 1]
        stops = torch.rand(num_texts) < 0.15
        new = torch.where(stops, AGAIN, (last + 1) % 26)
        ids[:, t] = torch.where(last == AGAIN, before, new)
    return ids


def as_text(ids):
    """Write a text of `draw_alphabets`, with · for the start and ? for "again".

    >>> as_text(torch.tensor([26, 7, 8, 27, 8]))
    '· h i ? i'
    """
    return " ".join("abcdefghijklmnopqrstuvwxyz·?"[i] for i in ids)


class AlphabetReader(nn.Module):
    """Score each next token of `draw_alphabets`: one causal head with rotary, an MLP.

    token_ids: (B, T)
    seen: boolean (T, T), True = may attend, beside the causal mask; None for all
    heard: (T, 1), a factor of the value of each token; None for 1
    returns: scores (B, T, 28) and the head's weights (B, T, T)

    >>> [tuple(t.shape) for t in AlphabetReader()(draw_alphabets(2, 5))]
    [(2, 5, 28), (2, 5, 5)]
    """

    def __init__(self, width=32):
        super().__init__()
        self.tokens = nn.Embedding(28, width)
        self.roles = nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        layers = nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, 28)
        self.mlp = nn.Sequential(*layers)

    def forward(self, token_ids, seen=None, heard=None):
        x, places = self.tokens(token_ids), torch.arange(token_ids.shape[1])
        query, key, value = (role(x) for role in self.roles[:3])
        value = value if heard is None else value * heard
        query, key = apply_rope(query, places), apply_rope(key, places)
        mask = causal_mask(len(places))
        mask = mask if seen is None else mask & seen
        context, weights = scaled_dot_product_attention(query, key, value, mask)
        return self.mlp(x + self.roles[3](context)), weights


def trained_alphabet_reader(seed=0, lr=1e-2, steps=600, seen=None):
    """Train an `AlphabetReader`, and draw 1,000 new texts of 33 tokens.

    seen: boolean (32, 32), what a token may attend to in training, beside the causal
        mask; None for all
    returns: the reader and the texts

    >>> trained_alphabet_reader(steps=2)[1].shape
    torch.Size([1000, 33])
    """

    def loss(reader, ids):
        return F.cross_entropy(reader(ids[:, :-1], seen)[0].mT, ids[:, 1:])

    torch.manual_seed(seed)
    batches = [draw_alphabets(32) for _ in range(steps)]
    _train(reader := AlphabetReader(), batches, loss, steps=steps, lr=lr)
    return reader, draw_alphabets(1000)


@torch.no_grad()
def alphabet_loss(reader, texts, seen=None, heard=None, first=8):
    """Return the loss of an `AlphabetReader` from token `first` on.

    >>> round(alphabet_loss(lambda ids, *masks: (torch.zeros(*ids.shape, 28), None),
    ...       draw_alphabets(2)), 2)
    3.33
    """
    scores, _ = reader(texts[:, :-1], seen, heard)
    return F.cross_entropy(scores[:, first:].mT, texts[:, first + 1 :]).item()


def seconds(attend, num_tokens, min_run_time=0.3):
    """Return the processor's shortest time for four heads of width 64, one thread.

    attend: function (query, key, value) -> output, of tensors (1, 4, num_tokens, 64);
        it is called again and again for `min_run_time` seconds

    >>> 0 < seconds(lambda query, key, value: query + value, 4, 0.01) < 1
    True
    """
    heads, shortest = torch.randn(3, 1, 4, num_tokens, 64).unbind(), float("inf")
    threads, begin = torch.get_num_threads(), time.monotonic()
    torch.set_num_threads(1)
    try:
        while time.monotonic() - begin < min_run_time:
            start = time.process_time()
            attend(*heads)
            shortest = min(shortest, time.process_time() - start)
    finally:
        torch.set_num_threads(threads)
    return shortest
