"""Deeper, after 06: which noun does *it* stand for? A model of two attention layers."""

import itertools
import random

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils.attention import MultiHeadAttention
from utils.embeddings import TokenAndPositionEmbedding
from utils.training import train

CREATURES = "animal cat dog horse fox child".split()
VEHICLES = "bus truck tram boat".split()
PLACES = "street river bridge tunnel field garden".split()
CREATURES_ARE = "tired hungry scared sleepy ill".split()
VEHICLES_ARE = "slow heavy late old tall".split()
OBSTACLES_ARE = "wide narrow dark icy dusty".split()
OPENINGS = "", "yesterday ", "that night ", "on the way home "
PATTERNS = (
    "the {mover} didn't {verb} the {obstacle} because it was too {quality}",
    "the {mover} stopped in front of the {obstacle} because it was too {quality}",
    "in front of the {obstacle} the {mover} stopped because it was too {quality}",
    "because it was too {quality} the {mover} didn't {verb} the {obstacle}",
    "because it was too {quality} the {mover} stopped in front of the {obstacle}",
)
OTHER_WORDS = "cross enter pass " + " ".join(OPENINGS + PATTERNS)
PRONOUN_WORDS = ["<pad>"] + sorted(
    {*CREATURES, *VEHICLES, *PLACES, *CREATURES_ARE, *VEHICLES_ARE, *OBSTACLES_ARE}
    | {word for word in OTHER_WORDS.split() if "{" not in word}
)


def list_scenes(held_out: bool) -> list[tuple[str, str, str, str]]:
    """List who moves, what is in the way, an adjective, and the noun that it fits.

    Every fifth scene is held out; the rest are to train on.
    """
    movers, obstacles = CREATURES + VEHICLES, PLACES + VEHICLES
    scenes = []
    for (i, mover), (j, obstacle) in itertools.product(
        enumerate(movers), enumerate(obstacles)
    ):
        of_mover = CREATURES_ARE if mover in CREATURES else VEHICLES_ARE
        fits = [(quality, mover) for quality in of_mover]
        fits += [(quality, obstacle) for quality in OBSTACLES_ARE]
        for k, (quality, noun) in enumerate(fits):
            if mover != obstacle and ((i + j + k) % 5 == 0) == held_out:
                scenes.append((mover, obstacle, quality, noun))
    return scenes


def pronoun_sentences(
    num_sentences: int, held_out: bool = False, seed: int = 0
) -> list[tuple[list[str], int, int]]:
    """Draw *the animal didn't cross the street because it was too tired* and the like.

    The adjective decides which noun *it* stands for: whoever moves is tired or late,
    what is in the way is wide or dark. Vehicles occur in both parts. *animal, street*
    with *tired* and with *wide* are among the scenes that are held out.

    returns: list of (words, position of *it*, position of the noun that it stands for)

    >>> words, pronoun, noun = pronoun_sentences(1, seed=2)[0]
    >>> " ".join(words[2:]), words[pronoun], words[noun]
    ("the animal didn't enter the truck because it was too hungry", 'it', 'animal')
    """
    draw, scenes, sentences = random.Random(seed), list_scenes(held_out), []
    for _ in range(num_sentences):
        mover, obstacle, quality, noun = draw.choice(scenes)
        verbs = ("cross", "enter") if obstacle in PLACES else ("enter", "pass")
        sentence = draw.choice(PATTERNS).format(
            mover=mover, obstacle=obstacle, quality=quality, verb=draw.choice(verbs)
        )
        words = (draw.choice(OPENINGS) + sentence).split()
        sentences.append((words, words.index("it"), words.index(noun)))
    return sentences


def encode_pronouns(sentences: list) -> tuple[Tensor, Tensor, Tensor]:
    """Turn sentences of `pronoun_sentences` into ids, padded on the right with 0.

    returns: token ids (B, T) into `PRONOUN_WORDS`, the positions (B,) of *it*, and the
        ids (B,) of the nouns that it stands for
    """
    ids = {word: number for number, word in enumerate(PRONOUN_WORDS)}
    rows = [torch.tensor([ids[word] for word in words]) for words, *_ in sentences]
    token_ids = nn.utils.rnn.pad_sequence(rows, batch_first=True)
    nouns = [ids[words[noun]] for words, _, noun in sentences]
    return token_ids, torch.tensor([at for _, at, _ in sentences]), torch.tensor(nouns)


class PronounModel(nn.Module):
    """Score, at every token, the words that it may stand for.

    ids: (B, T), padded with 0
    returns: scores (B, T, V), and the weights of the second layer (B, H, T, T)
    """

    def __init__(self, num_heads: int = 2):
        super().__init__()
        self.embedding = TokenAndPositionEmbedding(len(PRONOUN_WORDS), 17, 32)
        for table in self.embedding.parameters():
            nn.init.normal_(table, std=0.3)
        sizes = 32, 32, 17, 0.0, num_heads
        self.layer1 = MultiHeadAttention(*sizes, causal=False)
        self.layer2 = MultiHeadAttention(*sizes, causal=False)

    def forward(self, ids):
        x = self.embedding(ids)
        x = x + self.layer1(x, padding_mask=ids > 0)
        y, weights = self.layer2(x, padding_mask=ids > 0, need_weights=True)
        return y @ self.embedding.token_embedding.weight.T, weights  # scores: (B, T, V)


def pronoun_loss(model: nn.Module, batch: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """Return the mean cross-entropy of the nouns at the positions of *it*, a scalar."""
    ids, positions, nouns = batch
    return F.cross_entropy(model(ids)[0][torch.arange(len(ids)), positions], nouns)


def train_pronoun_model(seed: int, num_heads: int = 2) -> PronounModel:
    """Train a new model for 600 steps on 6,000 sentences; return it."""
    data = encode_pronouns(pronoun_sentences(6000, seed=0))
    batches = list(zip(*(tensor.split(64) for tensor in data)))
    torch.manual_seed(seed)
    model = PronounModel(num_heads)
    train(model, batches, pronoun_loss, steps=600, lr=5e-3, show_progress=False)
    return model
