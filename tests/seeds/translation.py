"""What notebook 08 states, measured with any seed: three translators."""

import torch
import torch.nn.functional as F

from tests.seeds import definitions
from utils.data import translation_pairs
from utils.training import train

PHRASE = "la voiture bleue ne tombe pas"


def main(seed):
    """Train the three models; return name -> (measured, lowest, highest allowed)."""
    book = definitions("08_translation")
    pairs = translation_pairs(32_000, seed=2 * seed)
    held_out = translation_pairs(600, seed=2 * seed + 1)
    held_out.sort(key=lambda pair: len(pair[0].split()))
    words = [book["Vocabulary"](side) for side in zip(*pairs)]
    sizes = [len(vocabulary.words) for vocabulary in words]
    batches = book["batches_by_length"](pairs, *words, batch_size=64, seed=seed)

    def trained(make, steps=900):
        torch.manual_seed(seed)
        model = make()
        train(model, batches, book["translation_loss"], steps, lr=2e-3)
        return model

    recurrent, attention = book["RecurrentTranslator"], book["AdditiveAttention"]
    fixed = trained(lambda: recurrent(*sizes, 80))
    additive = trained(lambda: recurrent(*sizes, 80, attention(80)))
    transformer = trained(lambda: book["TransformerTranslator"](*sizes, 64, 4))

    def shares(model):
        right = book["exact"](model, held_out, *words).float()
        return [right.mean().item(), *(t.mean().item() for t in right.chunk(3))]

    scores = {model: shares(model) for model in (fixed, additive, transformer)}
    long_fixed = scores[fixed][3]
    found = {
        "fixed vector, short third": (scores[fixed][1], 0.8, 1.0),
        "fixed vector, long third": (long_fixed, 0.0, 0.1),
        "additive minus fixed, long third": (scores[additive][3] - long_fixed, 0.5, 1),
        "transformer minus fixed, long third": (
            *(scores[transformer][3] - long_fixed, 0.5, 1.0),
        ),
        "additive, all": (scores[additive][0], 0.9, 1.0),
        "transformer, all": (scores[transformer][0], 0.95, 1.0),
    }
    larger = {
        "twice as wide": trained(lambda: recurrent(*sizes, 160)),
        "trained four times as long": trained(lambda: recurrent(*sizes, 80), 3600),
    }
    for name, model in larger.items():
        _, _, middle, long = shares(model)
        gained = middle - scores[fixed][2]
        found[f"fixed vector {name}, middle third, gained"] = (gained, 0.25, 1.0)
        found[f"fixed vector {name}, long third"] = (long, 0.0, 0.1)
    found |= crossing(book, transformer, words)
    seven = [pair for pair in held_out if len(pair[0].split()) == 7]
    source, target = book["make_batch"](seven, *words)
    for name, model in {"fixed": fixed, "additive": additive}.items():
        kept = unmasked(book, model, source, words[1])
        found[f"{name}, translations kept without the mask"] = (kept, 0.0, 0.9)
    found |= on_padding(book, transformer, source, target)
    return found


def crossing(book, transformer, words):
    """Return what the maps of *la voiture bleue* show."""
    short, whole = (
        book["attention_map"](transformer, phrase, *words)
        for phrase in ("la voiture bleue", PHRASE)
    )
    lost = book["probability_lost"](transformer, PHRASE, *words)
    hits = []
    for written, read, values in (short, whole, (*whole[:2], lost)):
        columns = {w: read[row.argmax()] for w, row in zip(written, values)}
        hits += [columns.get("blue") == "bleue", columns.get("car") == "voiture"]
    lost_not = lost[whole[0].index("not")].max().item()
    return {
        "blue and car, columns right in three maps": (sum(hits) / len(hits), 1.0, 1.0),
        "not, probability lost": (lost_not, 0.0, 0.5),
    }


@torch.no_grad()
def on_padding(book, transformer, source, target):
    """Return what 16 padded positions do to the transformer without the mask."""
    inputs, padded = book["shifted"](target), F.pad(source, (0, 16), value=book["PAD"])
    everything = torch.ones_like(padded, dtype=torch.bool)
    memory = transformer.encode(padded, everything)
    logits, weights = transformer.decode(memory, inputs)
    moved = (logits - transformer(source, inputs)).abs().max().item()
    return {
        "transformer, logits moved without the mask": (moved, 0.2, 1e3),
        "transformer, weight on padding without the mask": (
            *(weights[..., -16:].sum(dim=-1).max().item(), 0.1, 1.0),
        ),
    }


def unmasked(book, model, source, english):
    """Return the share of translations that 16 padded positions leave as they are."""
    padded = F.pad(source, (0, 16), value=book["PAD"])
    everything = torch.ones_like(padded, dtype=torch.bool)
    before = book["translate"](model, source).tolist()
    after = book["translate"](model, padded, everything).tolist()
    same = [english.decode(a) == english.decode(b) for a, b in zip(before, after)]
    return sum(same) / len(same)
