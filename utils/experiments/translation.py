"""Notebook 08: translate French with one vector, with attention, and as a transformer.

Shapes: B batch, S French words, T English words, D model width, V English vocabulary.
A recurrent decoder calls `find` for what it takes from the French sentence: (state
(B, D), context (B, S, D), vector (B, D), mask (B, S)) -> found (B, D), weights (B, S).
Masks: True = a word.
"""

import random
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from utils.attention import MultiHeadAttention
from utils.embeddings import TokenAndPositionEmbedding
from utils.model import feed_forward
from utils.training import TrainingConfig, train


def word_list(text: str) -> list[list[str]]:
    """Split a text into entries at commas, and each entry into forms at slashes."""
    return [entry.split("/") for entry in text.split(", ")]


# English/French; determiners and adjectives: English/masculine/feminine; verbs:
# English/the same after "does not"/French
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
PREPOSITIONS = word_list("in/dans, under/sous, behind/derrière, with/avec")
CONJUNCTIONS = word_list("and/et, but/mais, because/parce que, while/pendant que")
PAD, START, END = 0, 1, 2


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
    french, english = draw_noun_phrase(draw)
    has_object = draw.random() < 0.5
    verbs = VERBS_WITH_OBJECT if has_object else VERBS_ALONE
    verb, plain_verb, french_verb = draw.choice(verbs)
    if draw.random() < 0.25:
        verb, french_verb = f"does not {plain_verb}", f"ne {french_verb} pas"
    french, english = f"{french} {french_verb}", f"{english} {verb}"
    if not has_object and draw.random() < 0.5:
        preposition, french_preposition = draw.choice(PREPOSITIONS)
        french, english = f"{french} {french_preposition}", f"{english} {preposition}"
        has_object = True
    if has_object:
        more_french, more_english = draw_noun_phrase(draw)
        french, english = f"{french} {more_french}", f"{english} {more_english}"
    return french, english


def translation_pairs(num_pairs: int, seed: int) -> list[tuple[str, str]]:
    """Draw pairs of a French sentence, 3 to 24 words, and its English translation.

    Determiners and adjectives follow the gender of the noun, colours come after it,
    *ne ... pas* encloses the verb; some words have no counterpart of their own.

    >>> translation_pairs(1, seed=2)
    [('ce cheval rouge', 'this red horse')]
    """
    draw, pairs = random.Random(seed), []
    while len(pairs) < num_pairs:
        num_clauses = draw.choice((0, 1, 1, 2, 2, 3, 3, 3))
        clauses = [draw_clause(draw) for _ in range(num_clauses)]
        french, english = clauses[0] if clauses else draw_noun_phrase(draw)
        for more_french, more_english in clauses[1:]:
            conjunction, french_conjunction = draw.choice(CONJUNCTIONS)
            french = f"{french} {french_conjunction} {more_french}"
            english = f"{english} {conjunction} {more_english}"
        if 3 <= len(french.split()) <= 24:
            pairs.append((french, english))
    return pairs


def french_length(pair: tuple[str, str]) -> int:
    """Count the French words of a pair of sentences."""
    return len(pair[0].split())


def vocabulary(sentences: list[str]) -> list[str]:
    """Return all words of the sentences by id, after <pad>, <start> and <end>."""
    words = {word for sentence in sentences for word in sentence.split()}
    return ["<pad>", "<start>", "<end>", *sorted(words)]


class ParallelCorpus:
    """French sentences with their translations, as words and as ids.

    pairs: 32,000 to train on;  held_out: 600 others, sorted by their French words
    french, english: the words by id
    """

    def __init__(self, seed: int = 0):
        self.pairs = translation_pairs(32_000, seed=2 * seed)
        self.held_out = sorted(translation_pairs(600, 2 * seed + 1), key=french_length)
        self.french, self.english = map(vocabulary, zip(*self.pairs))
        self.seed = seed

    def encode(self, pairs: list[tuple[str, str]]) -> list[Tensor]:
        """Return the ids, French (B, S) and English (B, T), each with <end>, padded."""
        sides = []
        for sentences, words in zip(zip(*pairs), (self.french, self.english)):
            ids = {word: i for i, word in enumerate(words)}
            rows = [torch.tensor([*map(ids.get, s.split()), END]) for s in sentences]
            sides.append(pad_sequence(rows, batch_first=True, padding_value=PAD))
        return sides

    def batches(self) -> list[list[Tensor]]:
        """Return all training pairs in batches of 64 of similar length, shuffled."""
        ordered = sorted(self.pairs, key=french_length)
        starts = list(range(0, len(ordered), 64))
        random.Random(self.seed).shuffle(starts)
        return [self.encode(ordered[i : i + 64]) for i in starts]


def shift_right(target: Tensor) -> Tensor:
    """Put <start> before a target (B, T) and drop its last column."""
    start = torch.full((len(target), 1), START)
    return torch.cat((start, target[:, :-1]), dim=1)


class RecurrentEncoder(nn.Module):
    """Read with a GRU in both directions.

    returns: the words' states (B, S, D), and the two last ones side by side (B, D)
    """

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


class RecurrentDecoder(nn.Module):
    """Write with a GRU, word by word, and use what `find` returns.

    returns: logits (B, T, V) and weights (B, T, S)
    """

    def __init__(self, num_words: int, d_model: int, find: Callable):
        super().__init__()
        self.embedding = nn.Embedding(num_words, d_model)
        self.gru, self.find = nn.GRUCell(2 * d_model, d_model), find
        self.output = nn.Linear(d_model, num_words)

    def forward(self, inputs, context, vector, mask):
        state, states, all_weights = vector, [], []
        for word in self.embedding(inputs).unbind(dim=1):  # (B, D) each
            found, weights = self.find(state, context, vector, mask)
            state = self.gru(torch.cat((word, found), dim=-1), state)
            states.append(state)
            all_weights.append(weights)
        # All states are scored at once: in the loop it would take a third longer.
        return self.output(torch.stack(states, dim=1)), torch.stack(all_weights, dim=1)


class TransformerEncoder(nn.Module):
    """Let every French word attend to every French word, then an MLP: one block.

    returns: the words' vectors (B, S, D), and None instead of a single vector
    """

    def __init__(self, num_words: int, d_model: int, num_heads: int, length: int = 32):
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
    """Attend to the words so far, then to the French words, then an MLP.

    returns: x (B, T, D) and the weights of the cross-attention (B, H, T, S)
    """

    def __init__(self, d_model: int, num_heads: int, length: int):
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
    """Write with one block, all positions at once.

    returns: logits (B, T, V) and weights (B, T, S), their mean over the heads
    """

    def __init__(self, num_words: int, d_model: int, num_heads: int, length: int = 32):
        super().__init__()
        self.embedding = TokenAndPositionEmbedding(num_words, length, d_model)
        self.block = DecoderBlock(d_model, num_heads, length)
        self.norm = nn.LayerNorm(d_model)
        self.output = nn.Linear(d_model, num_words)

    def forward(self, inputs, context, vector, mask):
        x, weights = self.block(self.embedding(inputs), context, mask)
        return self.output(self.norm(x)), weights.mean(dim=1)


class Translator(nn.Module):
    """An encoder and a decoder.

    source: French ids (B, S);  inputs: English ids so far (B, T)
    returns: logits (B, T, V) and weights (B, T, S)
    """

    def __init__(self, encoder: nn.Module, decoder: nn.Module):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(self, source, inputs):
        mask = source != PAD
        return self.decoder(inputs, *self.encoder(source, mask), mask)


def translation_loss(model: nn.Module, batch: list[Tensor]) -> Tensor:
    """Return the mean cross-entropy of the right words, without the padding."""
    source, target = batch
    logits, _ = model(source, shift_right(target))
    return F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD)


def train_translator(
    encoder: nn.Module, decoder: nn.Module, batches: list, steps: int = 500
) -> Translator:
    """Train a translator; its learning rate rises, then falls to zero."""
    model = Translator(encoder, decoder)
    config = TrainingConfig(warmup=25, final_lr=0.0, clip=1.0)
    train(model, batches, translation_loss, steps, lr=6e-3, config=config)
    return model


def greedy_translate(
    next_logits: Callable, start_id: int, end_id: int, max_length: int
) -> list[int]:
    """Append the most probable id until the end, or until there is no more room.

    next_logits: function from the list of ids so far, start_id first, to logits (V,)
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
def translate(model: nn.Module, corpus: ParallelCorpus, source: Tensor) -> list[str]:
    """Translate French ids (B, S) greedily, in at most 30 words."""
    ids = torch.full((len(source), 1), START)
    while ids.shape[1] <= 30 and not (ids == END).any(dim=1).all():
        best = model(source, ids)[0][:, -1:].argmax(dim=-1)  # (B, 1)
        ids = torch.cat((ids, best), dim=1)
    rows = [[*row, END] for row in ids[:, 1:].tolist()]
    return [" ".join(corpus.english[i] for i in r[: r.index(END)]) for r in rows]


def exact_matches(model: nn.Module, corpus: ParallelCorpus, pairs: list) -> Tensor:
    """Return 1 for each pair whose translation is right in every word, else 0."""
    hits = []
    for i in range(0, len(pairs), 100):  # short sentences needn't wait for long ones
        some = pairs[i : i + 100]
        translations = translate(model, corpus, corpus.encode(some)[0])
        hits += [ours == right for ours, (_, right) in zip(translations, some)]
    return torch.tensor(hits).float()


def compare_translators(models: dict, corpus: ParallelCorpus) -> dict[str, Tensor]:
    """Print each model's parameters and its accuracy on each third of `held_out`.

    A column is headed by the mean number of French words of its 200 sentences.

    models: name -> translator
    returns: name -> 1 or 0 for each held-out sentence, as in `exact_matches`
    """
    hits, lengths = {}, [french_length(pair) for pair in corpus.held_out]
    heads = [f"{sum(lengths[i : i + 200]) / 200:.0f} words" for i in (0, 200, 400)]
    print(f"{'':12}{'parameters':>11}", *(f"{head:>9}" for head in heads))
    for name, model in models.items():
        hits[name] = exact_matches(model, corpus, corpus.held_out)
        size = sum(p.numel() for p in model.parameters())
        shares = [third.mean().item() for third in hits[name].chunk(3)]
        print(f"{name:12}{size:11,}", *(f"{share:9.2f}" for share in shares))
    return hits


@torch.no_grad()
def alignment(model: nn.Module, corpus: ParallelCorpus, pair: tuple) -> Tensor:
    """Return the weights (T, S) while the right translation is given."""
    source, target = corpus.encode([pair])
    return model(source, shift_right(target))[1][0]


@torch.no_grad()
def hide_attended_word(
    model: nn.Module, corpus: ParallelCorpus, pair: tuple[str, str], word: str
) -> tuple[str, float, float]:
    """Hide the French word that an English word attends to most.

    It is hidden from the cross-attention only; the encoder has read it.

    word: occurs once in the right translation, which is given so far
    returns: the French word, the English word's probability, and that with it hidden
    """
    source, target = corpus.encode([pair])
    mask, number = source != PAD, corpus.english.index(word)
    context, vector = model.encoder(source, mask)
    _, weights = model.decoder(shift_right(target), context, vector, mask)
    row = (target[0] == number).nonzero().item()
    most, probs = weights[0, row].argmax().item(), []
    for visible in (mask, mask & (torch.arange(mask.shape[1]) != most)):
        logits, _ = model.decoder(shift_right(target), context, vector, visible)
        probs.append(logits[0, row].softmax(dim=-1)[number].item())
    return corpus.french[source[0, most]], *probs
