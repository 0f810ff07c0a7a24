"""Notebook 11: French sentences and their translations, and how translators learn.

Shapes: B batch, S French words, T English words, D model width, V English vocabulary.
An encoder returns context (B, S, D) and one vector (B, D) or None. A decoder returns
logits (B, T, V) and weights (B, T, S). Masks: True = a word.
"""

import random
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from utils.training import TrainingConfig, train


def word_list(text: str) -> list[list[str]]:
    """Split a text into entries at commas, and each entry into forms at slashes."""
    return [entry.split("/") for entry in text.split(", ")]


# English/French; determiners and adjectives: English/masculine/feminine; verbs:
# English/the same after "does not"/French; others: French/English
NOUNS = word_list(
    "cat/chat, dog/chien, horse/cheval, train/train, boat/bateau, garden/jardin, "
    "book/livre, hat/chapeau, car/voiture, mouse/souris, hen/poule, house/maison, "
    "flower/fleur, table/table, lamp/lampe, moon/lune"
)  # the first eight are masculine
DETERMINERS = word_list("the/le/la, a/un/une, this/ce/cette, my/mon/ma")
ADJECTIVES_BEFORE = word_list(
    "small/petit/petite, big/grand/grande, pretty/joli/jolie, new/nouveau/nouvelle"
)
ADJECTIVES_AFTER = word_list(
    "blue/bleu/bleue, red/rouge/rouge, green/vert/verte, black/noir/noire, "
    "white/blanc/blanche"
)
VERBS_ALONE = word_list(
    "sleeps/sleep/dort, falls/fall/tombe, sings/sing/chante, shines/shine/brille"
)
VERBS_WITH_OBJECT = word_list(
    "looks at/look at/regarde, looks for/look for/cherche, follows/follow/suit, "
    "finds/find/trouve, pushes/push/pousse"
)
PREPOSITIONS = word_list("dans/in, sous/under, derrière/behind, avec/with")
CONJUNCTIONS = word_list("et/and, mais/but, parce que/because, pendant que/while")
PAD, START, END = 0, 1, 2


def join(parts: list[tuple[str, str]]) -> tuple[str, str]:
    """Join parts of a sentence, each in French and English."""
    return tuple(map(" ".join, zip(*parts)))


def draw_noun_phrase(draw: random.Random) -> tuple[str, str]:
    """Draw a determiner, a noun and perhaps adjectives, in French and English."""
    english, french = noun = draw.choice(NOUNS)
    form = 2 if NOUNS.index(noun) >= 8 else 1  # masculine or feminine
    if draw.random() < 0.5:
        adjective = draw.choice(ADJECTIVES_AFTER)
        french, english = f"{french} {adjective[form]}", f"{adjective[0]} {english}"
    if draw.random() < 0.35:
        adjective = draw.choice(ADJECTIVES_BEFORE)
        french, english = f"{adjective[form]} {french}", f"{adjective[0]} {english}"
    determiner = draw.choice(DETERMINERS)
    return f"{determiner[form]} {french}", f"{determiner[0]} {english}"


def draw_clause(draw: random.Random) -> tuple[str, str]:
    """Draw a subject, a verb and perhaps an object or a place."""
    parts, has_object = [draw_noun_phrase(draw)], draw.random() < 0.5
    verbs = VERBS_WITH_OBJECT if has_object else VERBS_ALONE
    verb, plain_verb, french_verb = draw.choice(verbs)
    if draw.random() < 0.25:
        verb, french_verb = f"does not {plain_verb}", f"ne {french_verb} pas"
    parts.append((french_verb, verb))
    if not has_object and draw.random() < 0.5:
        parts.append(draw.choice(PREPOSITIONS))
        has_object = True
    return join([*parts, draw_noun_phrase(draw)] if has_object else parts)


def translation_pairs(num_pairs: int, seed: int) -> list[tuple[str, str]]:
    """Draw pairs of a French sentence, 3 to 24 words, and its English translation.

    >>> translation_pairs(1, seed=2)
    [('ce cheval rouge', 'this red horse')]
    """
    draw, pairs = random.Random(seed), []
    while len(pairs) < num_pairs:
        num_clauses = draw.choice((0, 1, 1, 2, 2, 3, 3, 3))
        clauses = [draw_clause(draw) for _ in range(num_clauses)]
        parts = clauses[:1] or [draw_noun_phrase(draw)]
        for clause in clauses[1:]:
            parts += [draw.choice(CONJUNCTIONS), clause]
        french, english = join(parts)
        french = french.replace("que un", "qu'un")
        if 3 <= len(french.split()) <= 24:
            pairs.append((french, english))
    return pairs


def vocabulary(sentences: list[str]) -> list[str]:
    """Return all words of the sentences by id, after <pad>, <start> and <end>."""
    words = {word for sentence in sentences for word in sentence.split()}
    return ["<pad>", "<start>", "<end>", *sorted(words)]


FRENCH, ENGLISH = map(vocabulary, zip(*translation_pairs(2000, seed=0)))


def encode(pairs: list[tuple[str, str]]) -> list[Tensor]:
    """Return the ids, French (B, S) and English (B, T), each with <end>, padded."""
    sides = []
    for sentences, words in zip(zip(*pairs), (FRENCH, ENGLISH)):
        ids = {word: i for i, word in enumerate(words)}
        rows = [torch.tensor([*map(ids.get, s.split()), END]) for s in sentences]
        sides.append(pad_sequence(rows, batch_first=True, padding_value=PAD))
    return sides


def words_to_write(pair: tuple[str, str]) -> int:
    """Return how many words a translator has to write: the English ones and <end>."""
    return len(pair[1].split()) + 1


def draw_batches(seed: int = 0) -> list[list[Tensor]]:
    """Return 32,000 pairs for training, in 500 batches of similar length, shuffled."""
    ordered = sorted(translation_pairs(32_000, seed=2 * seed), key=words_to_write)
    batches = [encode(ordered[i : i + 64]) for i in range(0, 32_000, 64)]
    random.Random(seed).shuffle(batches)
    return batches


def held_out_pairs(seed: int = 0) -> list[tuple[str, str]]:
    """Return 600 pairs that training hasn't, sorted by the number of words to write."""
    known = set(translation_pairs(32_000, seed=2 * seed))
    drawn = translation_pairs(800, seed=2 * seed + 1)
    new = [pair for pair in drawn if pair not in known]
    return sorted(new[:600], key=words_to_write)


def shift_right(target: Tensor) -> Tensor:
    """Put <start> before a target (B, T) and drop its last column."""
    start = torch.full((len(target), 1), START)
    return torch.cat((start, target[:, :-1]), dim=1)


class RecurrentEncoder(nn.Module):
    """Read with a GRU in both directions; the vector is its two last states."""

    def __init__(self, num_words: int, d_model: int):
        super().__init__()
        self.embedding = nn.Embedding(num_words, d_model)
        self.gru = nn.GRU(d_model, d_model // 2, batch_first=True, bidirectional=True)

    def forward(self, source, mask):
        x, length = self.embedding(source), source.shape[1]
        # The GRU must know where a sentence ends, or it would go on into the padding.
        packed = pack_padded_sequence(x, mask.sum(dim=1), True, enforce_sorted=False)
        states, last = self.gru(packed)
        context, _ = pad_packed_sequence(states, True, total_length=length)
        return context, torch.cat((last[0], last[1]), dim=-1)


class OneCall(nn.Module):
    """Write with a GRU that gets the one vector at each step."""

    def __init__(self, num_words: int, d_model: int):
        super().__init__()
        self.embedding = nn.Embedding(num_words, d_model)
        self.gru = nn.GRU(2 * d_model, d_model, batch_first=True)
        self.output = nn.Linear(d_model, num_words)

    def forward(self, inputs, context, vector, mask):
        words = self.embedding(inputs)  # (B, T, D)
        again = vector[:, None].expand_as(words)  # handed in at each step
        states, _ = self.gru(torch.cat((words, again), dim=-1), vector[None])
        return self.output(states), None  # (B, T, V), and no weights


class Translator(nn.Module):
    """An encoder, which runs once for a sentence, and a decoder."""

    def __init__(self, encoder: nn.Module, decoder: nn.Module):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def encode(self, source):
        mask = source != PAD
        return *self.encoder(source, mask), mask

    def forward(self, source, inputs):
        return self.decoder(inputs, *self.encode(source))


def translation_loss(model: nn.Module, batch: list[Tensor]) -> Tensor:
    """Return the mean cross-entropy of the right words, without the padding."""
    source, target = batch
    logits, _ = model(source, shift_right(target))
    return F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD)


def train_translator(encoder, decoder, batches, steps=500, lr=6e-3) -> Translator:
    """Train a translator; its learning rate rises, then falls to zero."""
    model = Translator(encoder, decoder)
    config = TrainingConfig(warmup=25, final_lr=0.0, clip=1.0)
    train(model, batches, translation_loss, steps, lr, config=config)
    return model


def greedy_translate(
    next_logits: Callable, start_id: int, end_id: int, max_length: int
) -> list[int]:
    """Append the most probable id until the end, or until there is no more room.

    next_logits: function from the ids so far, start_id first, to logits (V,)
    returns: the ids between start_id and end_id

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
def exact_matches(model: nn.Module, pairs: list) -> Tensor:
    """Return 1 for each pair that is translated greedily without a mistake, else 0."""
    source, target = encode(pairs)  # up to a first mistake, it reads the right words
    best = model(source, shift_right(target))[0].argmax(dim=-1)  # (B, T)
    return ((best == target) | (target == PAD)).all(dim=1).float()


def compare_translators(models: dict, pairs: list) -> tuple[list, dict]:
    """Print each model's accuracy on each hundred of the pairs, and return both."""
    parts = [pairs[i : i + 100] for i in range(0, len(pairs), 100)]
    lengths = [round(sum(map(words_to_write, part)) / len(part)) for part in parts]
    print(f"{'words to write':24}", *(f"{length:5.0f}" for length in lengths))
    results = {}
    for name, model in models.items():
        results[name] = [exact_matches(model, part).mean().item() for part in parts]
        print(f"{name:24}", *(f"{share:5.2f}" for share in results[name]))
    return lengths, results
