"""Texts and training pairs."""

import itertools
import random

import torch
from torch.nn.functional import one_hot, pad
from torch.utils.data import DataLoader, Dataset

from utils.files import DATA, read_data
from utils.tokenizer import END_OF_TEXT, load_tokenizer

# The first sentence of article 1, as published by the United Nations.
HUMAN_RIGHTS = {
    "English": "All human beings are born free and equal in dignity and rights.",
    "German": "Alle Menschen sind frei und gleich an Würde und Rechten geboren.",
    "Greek": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι "
    "στην αξιοπρέπεια και τα δικαιώματα.",
    "Hindi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।",
    "Telugu": "ప్రతిపత్తిస్వత్వముల విషయమున మానవులెల్లరును జన్మతః స్వతంత్రులును సమానులును నగుదురు.",
}


def load_text(name="story", folder=DATA):
    """Read a text of `data/`; the default is the short story written for the course.

    returns: str

    Raises FileNotFoundError where the file is missing, ValueError where the name is
    unknown or the file is damaged.
    """
    return read_data(f"{name}.txt", folder).decode("utf-8")


def sliding_windows(ids, context_length, stride):
    """Cut a sequence of ids into inputs and targets, shifted by one.

    The windows start at 0, stride, 2 * stride ... as long as their targets exist.

    ids: sequence of integers
    returns: inputs and targets, both integer tensors (N, context_length)

    Raises ValueError where the ids are too few for one window or no sequence, or a size
    is not positive.

    >>> sliding_windows([5, 6, 7, 8, 9], context_length=2, stride=2)
    (tensor([[5, 6],
            [7, 8]]), tensor([[6, 7],
            [8, 9]]))
    """
    if context_length < 1 or stride < 1:
        raise ValueError(
            "expected context_length and stride of 1 or more, "
            f"got {context_length} and {stride}"
        )
    ids = torch.as_tensor(ids)
    if ids.dim() != 1:
        raise ValueError(f"expected one sequence of token ids, got {tuple(ids.shape)}")
    if len(ids) <= context_length:
        raise ValueError(
            f"expected more than context_length = {context_length} token ids, "
            f"got {len(ids)}"
        )
    windows = ids.unfold(0, context_length + 1, stride)  # (N, context_length + 1)
    return windows[:, :-1].clone(), windows[:, 1:].clone()


class SlidingWindowDataset(Dataset):
    """Training pairs for next-token prediction, cut from one sequence of ids.

    An item is a pair (inputs, targets), both integer tensors (context_length,).

    Raises ValueError as `sliding_windows` does.

    >>> len(SlidingWindowDataset(range(10), context_length=4, stride=1))
    6
    """

    def __init__(self, token_ids, context_length, stride):
        self.inputs, self.targets = sliding_windows(token_ids, context_length, stride)

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        return self.inputs[index], self.targets[index]


def create_dataloader(
    text, batch_size=8, context_length=256, stride=256, shuffle=True, drop_last=True
):
    """Tokenize a text with GPT-2's vocabulary and serve it in batches of windows.

    returns: `DataLoader` of pairs (inputs, targets), both (batch_size, context_length)

    Raises ValueError where the text gives too few tokens for one window, or, with
    `drop_last`, too few windows for one batch.

    >>> loader = create_dataloader("one two three four five", 2, 2, 1, shuffle=False)
    >>> next(iter(loader))[0]
    tensor([[ 505,  734],
            [ 734, 1115]])
    """
    token_ids = load_tokenizer().encode(text, allowed_special={END_OF_TEXT})
    dataset = SlidingWindowDataset(token_ids, context_length, stride)
    if drop_last and len(dataset) < batch_size:
        raise ValueError(
            f"expected at least batch_size = {batch_size} windows, got {len(dataset)}"
        )
    return DataLoader(dataset, batch_size, shuffle=shuffle, drop_last=drop_last)


# Sentences in which *it* has to be understood. A vehicle moves, or is in the way.
_CREATURES = ("animal", "cat", "dog", "horse", "fox", "child")
_VEHICLES = ("bus", "truck", "tram", "boat")
_PLACES = ("street", "river", "bridge", "tunnel", "field", "garden")
_CREATURES_ARE = ("tired", "hungry", "scared", "sleepy", "ill")
_OBSTACLES_ARE = ("wide", "narrow", "dark", "icy", "dusty")
_VEHICLES_ARE = ("slow", "heavy", "late", "old", "tall")
_PRONOUN_OPENINGS = ("", "yesterday ", "that night ", "on the way home ")
_PRONOUN_PATTERNS = (
    "the {mover} didn't {verb} the {obstacle} because it was too {quality}",
    "the {mover} stopped in front of the {obstacle} because it was too {quality}",
    "in front of the {obstacle} the {mover} stopped because it was too {quality}",
    "because it was too {quality} the {mover} didn't {verb} the {obstacle}",
    "because it was too {quality} the {mover} stopped in front of the {obstacle}",
)

_PRONOUN_NOUNS = _CREATURES + _VEHICLES + _PLACES
_PRONOUN_QUALITIES = _CREATURES_ARE + _OBSTACLES_ARE + _VEHICLES_ARE
_PRONOUN_VERBS = ("cross", "enter", "pass")
_PRONOUN_REST = " ".join(_PRONOUN_OPENINGS + _PRONOUN_PATTERNS).split()
PRONOUN_WORDS = (  # the padding first; braces in a pattern are no words
    "<pad>",
    *sorted(
        {word for word in _PRONOUN_REST if "{" not in word}.union(
            _PRONOUN_NOUNS, _PRONOUN_QUALITIES, _PRONOUN_VERBS
        )
    ),
)


def pronoun_sentences(num_sentences, held_out=False, seed=0):
    """Generate *the animal didn't cross the street because it was too tired* and kin.

    The last adjective decides which noun *it* stands for: whoever moves is tired or
    late, what is in the way is wide or dark. Vehicles occur in both parts. Every fifth
    combination of the two nouns and the adjective is drawn with `held_out=True` alone,
    *animal, street* with *tired* and with *wide* among them.

    returns: list of (words, pronoun, referent): a list of str, the position of *it*,
        the position of the noun that it stands for

    Raises ValueError for a negative number of sentences.

    >>> words, pronoun, referent = pronoun_sentences(1, seed=2)[0]
    >>> " ".join(words[2:]), words[pronoun], words[referent]
    ("the animal didn't enter the truck because it was too hungry", 'it', 'animal')
    """
    if num_sentences < 0:
        raise ValueError(f"expected num_sentences of 0 or more, got {num_sentences}")
    draw, scenes = random.Random(seed), _pronoun_scenes(held_out)
    return [_pronoun_sentence(draw, *draw.choice(scenes)) for _ in range(num_sentences)]


def encode_pronouns(sentences):
    """Turn sentences of `pronoun_sentences` into ids, padded on the right with 0.

    sentences: list of (words, pronoun, referent)
    returns: token ids (B, T) into `PRONOUN_WORDS`, the positions (B,) of *it*, and the
        ids (B,) of the words that it stands for

    >>> token_ids, pronouns, nouns = encode_pronouns([(["the", "bus", "it"], 2, 1)])
    >>> [PRONOUN_WORDS[i] for i in token_ids[0]], PRONOUN_WORDS[nouns[0]]
    (['the', 'bus', 'it'], 'bus')
    """
    ids = {word: number for number, word in enumerate(PRONOUN_WORDS)}
    rows = [torch.tensor([ids[word] for word in words]) for words, *_ in sentences]
    token_ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    nouns = [ids[words[referent]] for words, _, referent in sentences]
    pronouns = [pronoun for _, pronoun, _ in sentences]
    return token_ids, torch.tensor(pronouns), torch.tensor(nouns)


def _pronoun_scenes(held_out):
    """List who moves, what is in the way, an adjective, and the noun that it fits."""
    movers, obstacles = _CREATURES + _VEHICLES, _PLACES + _VEHICLES
    scenes = []
    for (i, mover), (j, obstacle) in itertools.product(
        enumerate(movers), enumerate(obstacles)
    ):
        of_mover = _CREATURES_ARE if mover in _CREATURES else _VEHICLES_ARE
        fits = [(quality, mover) for quality in of_mover]
        fits += [(quality, obstacle) for quality in _OBSTACLES_ARE]
        for k, (quality, noun) in enumerate(fits):
            if mover != obstacle and ((i + j + k) % 5 == 0) == held_out:
                scenes.append((mover, obstacle, quality, noun))
    return scenes


def _pronoun_sentence(draw, mover, obstacle, quality, noun):
    verbs = ("cross", "enter") if obstacle in _PLACES else ("enter", "pass")
    sentence = draw.choice(_PRONOUN_PATTERNS).format(
        mover=mover, obstacle=obstacle, quality=quality, verb=draw.choice(verbs)
    )
    words = (draw.choice(_PRONOUN_OPENINGS) + sentence).split()
    return words, words.index("it"), words.index(noun)


# A small French-English grammar. Adjectives and determiners: masculine, feminine.
_NOUNS = (  # English, French, feminine
    ("cat", "chat", 0),
    ("dog", "chien", 0),
    ("horse", "cheval", 0),
    ("train", "train", 0),
    ("boat", "bateau", 0),
    ("garden", "jardin", 0),
    ("book", "livre", 0),
    ("hat", "chapeau", 0),
    ("car", "voiture", 1),
    ("mouse", "souris", 1),
    ("hen", "poule", 1),
    ("house", "maison", 1),
    ("flower", "fleur", 1),
    ("table", "table", 1),
    ("lamp", "lampe", 1),
    ("moon", "lune", 1),
)
_DETERMINERS = (
    ("the", "le", "la"),
    ("a", "un", "une"),
    ("this", "ce", "cette"),
    ("my", "mon", "ma"),
)
_ADJECTIVES_BEFORE = (
    ("small", "petit", "petite"),
    ("big", "grand", "grande"),
    ("pretty", "joli", "jolie"),
    ("new", "nouveau", "nouvelle"),
)
_ADJECTIVES_AFTER = (
    ("blue", "bleu", "bleue"),
    ("red", "rouge", "rouge"),
    ("green", "vert", "verte"),
    ("black", "noir", "noire"),
    ("white", "blanc", "blanche"),
)
_VERBS_ALONE = (  # English, the same after "does not", French
    ("sleeps", "sleep", "dort"),
    ("falls", "fall", "tombe"),
    ("sings", "sing", "chante"),
    ("shines", "shine", "brille"),
)
_VERBS_WITH_OBJECT = (
    ("looks at", "look at", "regarde"),
    ("looks for", "look for", "cherche"),
    ("follows", "follow", "suit"),
    ("finds", "find", "trouve"),
    ("pushes", "push", "pousse"),
)
_PREPOSITIONS = (
    ("in", "dans"),
    ("under", "sous"),
    ("behind", "derrière"),
    ("with", "avec"),
)
_CONJUNCTIONS = (
    ("and", "et"),
    ("but", "mais"),
    ("because", "parce que"),
    ("while", "pendant que"),
)


def translation_pairs(num_pairs, seed):
    """Generate French sentences and their English translations, words and spaces only.

    The French sentences have 3 to 24 words. Determiners and adjectives follow the
    gender of the noun, colours stand after it, *ne ... pas* encloses the verb; some
    words have no counterpart of their own (*parce que*: because; *cherche*: looks for).

    returns: list of pairs (French, English) of strings

    Raises ValueError for a negative number of pairs.

    >>> translation_pairs(1, seed=2)
    [('ce cheval rouge', 'this red horse')]
    """
    if num_pairs < 0:
        raise ValueError(f"expected num_pairs of 0 or more, got {num_pairs}")
    draw, pairs = random.Random(seed), []
    while len(pairs) < num_pairs:
        french, english = _sentence(draw)
        if 3 <= len(french.split()) <= 24:
            pairs.append((french, english))
    return pairs


def _sentence(draw):
    """Draw a noun phrase, or up to three clauses."""
    clauses = [_clause(draw) for _ in range(draw.choice((0, 1, 1, 2, 2, 3, 3, 3)))]
    if not clauses:
        return _noun_phrase(draw)
    french, english = clauses[0]
    for more_french, more_english in clauses[1:]:
        english_link, french_link = draw.choice(_CONJUNCTIONS)
        french = f"{french} {french_link} {more_french}"
        english = f"{english} {english_link} {more_english}"
    return french, english


def _clause(draw):
    french, english = _noun_phrase(draw)
    with_object = draw.random() < 0.5
    verbs = _VERBS_WITH_OBJECT if with_object else _VERBS_ALONE
    verb, plain_verb, french_verb = draw.choice(verbs)
    if draw.random() < 0.25:
        verb, french_verb = f"does not {plain_verb}", f"ne {french_verb} pas"
    french, english = f"{french} {french_verb}", f"{english} {verb}"
    if not with_object and draw.random() < 0.5:
        place, french_place = draw.choice(_PREPOSITIONS)
        french, english = f"{french} {french_place}", f"{english} {place}"
        with_object = True
    if with_object:
        more_french, more_english = _noun_phrase(draw)
        french, english = f"{french} {more_french}", f"{english} {more_english}"
    return french, english


def _noun_phrase(draw):
    english, french, feminine = draw.choice(_NOUNS)
    if draw.random() < 0.5:
        adjective, *forms = draw.choice(_ADJECTIVES_AFTER)
        french, english = f"{french} {forms[feminine]}", f"{adjective} {english}"
    if draw.random() < 0.35:
        adjective, *forms = draw.choice(_ADJECTIVES_BEFORE)
        french, english = f"{forms[feminine]} {french}", f"{adjective} {english}"
    determiner, *forms = draw.choice(_DETERMINERS)
    return f"{forms[feminine]} {french}", f"{determiner} {english}"


def draw_rooms(num_rooms, people=8):
    """Draw rooms of people who each want to call one other: the task of notebook 04.

    A person is 38 numbers: a name of 16 random ones, the name of the person wanted,
    and an extension from 0 to 5, one-hot.

    returns: people (num_rooms, people, 38), and for each the extension of the person
        wanted (num_rooms, people)

    >>> rooms, answers = draw_rooms(2)
    >>> rooms.shape, answers.shape
    (torch.Size([2, 8, 38]), torch.Size([2, 8]))
    """
    name = torch.randn(num_rooms, people, 16)
    steps = torch.randint(1, people, (num_rooms, people))
    friend = (torch.arange(people) + steps) % people  # never oneself
    wanted = name[torch.arange(num_rooms)[:, None], friend]
    extension = torch.randint(0, 6, (num_rooms, people))
    persons = torch.cat([name, wanted, one_hot(extension, 6)], dim=-1)
    return persons, extension.gather(1, friend)


def draw_words_back(num_sentences, num_back, num_words=16):
    """Draw sentences of random words that ask for the words before: the task of 06.

    A word is a number from 0 to 5. The first `num_back` words have too few before them:
    their answers are -100, which PyTorch's cross-entropy leaves out.

    returns: words (num_sentences, num_words), and for each of them the words 1, 2 ...
        num_back places back (num_sentences, num_words, num_back)

    Raises ValueError where no word has all its answers.

    >>> words, answers = draw_words_back(2, num_back=4)
    >>> words.shape, answers.shape
    (torch.Size([2, 16]), torch.Size([2, 16, 4]))
    """
    if not 0 < num_back < num_words:
        raise ValueError(f"expected num_back from 1 to {num_words - 1}, got {num_back}")
    words = torch.randint(6, (num_sentences, num_words))
    answers = words[:, :-1].unfold(1, num_back, 1).flip(-1)
    return words, pad(answers, (0, 0, num_back, 0), value=-100)


def draw_pairs(num_lists, num_pairs, num_letters=None):
    """Draw lists of letters with digits, and a letter asked for: a task of notebook 15.

    num_letters: None for letters that all differ; else the letters come from so many,
        again and again with new digits, and the last digit of a letter counts

    returns: letters (num_lists, num_pairs) from 0 to 25, their digits, and for each
        list the letter that is asked for and its digit, (num_lists,) each

    Raises ValueError for more pairs than letters, where these differ.

    >>> letters, digits, asked, answer = draw_pairs(2, 5)
    >>> letters.shape, asked.shape
    (torch.Size([2, 5]), torch.Size([2]))

    Source: after the associative recall of Arora et al. 2023, *Zoology*, section 3.
    """
    if num_letters is None:
        if num_pairs > 26:
            raise ValueError(f"expected at most 26 different letters, got {num_pairs}")
        letters = torch.rand(num_lists, 26).argsort(dim=-1)[:, :num_pairs]
    else:
        letters = torch.randint(num_letters, (num_lists, num_pairs))
    digits = torch.randint(10, letters.shape)
    asked = letters.gather(1, torch.randint(num_pairs, (num_lists, 1)))
    places = (letters == asked) * torch.arange(1, num_pairs + 1)
    last = places.argmax(dim=-1, keepdim=True)  # where the letter stands last
    return letters, digits, asked[:, 0], digits.gather(1, last)[:, 0]
