"""Notebook 11 and its deeper one: three translators, and a wider vector."""

import random
from functools import partial

import torch

from tests.seeds import definitions
from utils.experiments.translation import (
    ENGLISH,
    FRENCH,
    RecurrentEncoder,
    draw_batches,
    encode,
    exact_matches,
    held_out_pairs,
    shift_right,
    train_translator,
)


def main(seed):
    book, held_out = definitions("11_translation"), held_out_pairs(seed)
    batches, models = draw_batches(seed), {}
    for name, find, steps in (
        ("one vector", lambda: book["same_vector"], 500),
        ("one vector, 750 steps", lambda: book["same_vector"], 750),
        ("additive", partial(book["AdditiveAttention"], 80), 500),
    ):
        torch.manual_seed(seed)
        decoder = book["RecurrentDecoder"](len(ENGLISH), 80, find())
        encoder = RecurrentEncoder(len(FRENCH), 80)
        models[name] = train_translator(encoder, decoder, batches, steps)
    torch.manual_seed(seed)
    encoder = book["TransformerEncoder"](len(FRENCH), 64, num_heads=4)
    decoder = book["TransformerDecoder"](len(ENGLISH), 64, num_heads=4)
    models["transformer"] = train_translator(encoder, decoder, batches)
    wider = definitions("deeper/a_wider_vector")
    wider["batches"] = batches
    for steps in (500, 700):
        models[f"160 numbers, {steps} steps"] = wider["train_wide"](160, steps, seed)
    found = {}
    for name, model in models.items():
        hits = exact_matches(model, held_out)
        for third, part in zip(("short", "middle", "long"), hits.chunk(3)):
            found[f"{name}: {third}"] = part.mean()
        for i, part in enumerate(hits.chunk(6)):
            found[f"{name}: hundred {i}"] = part.mean()
    once, longer = (f"one vector{more}: hundred 1" for more in ("", ", 750 steps"))
    found["gained at hundred 1 with 750 steps"] = found[longer] - found[once]
    wide, widest = (
        [found[f"160 numbers, {steps} steps: hundred {i}"] for i in (1, 2)]
        for steps in (500, 700)
    )
    found["gained at hundred 1 with 160 numbers, 500 steps"] = wide[0] - found[once]
    found["gained at hundreds 1 and 2 with 200 more"] = (sum(widest) - sum(wide)) / 2
    for name in ("additive", "transformer"):
        found |= maps(book, held_out, name, models[name])
    found["additive: my, with another vector"] = my_with_another_vector(
        book["PAIR"], models["additive"]
    )
    return found


@torch.no_grad()
def my_with_another_vector(pair, model):
    """Return the probability of the first word, with all words hidden."""
    (source, target), (other, _) = encode([pair]), encode([("la voiture bleue", "")])
    context, _, mask = model.encode(source)
    _, vector, _ = model.encode(other)
    logits, _ = model.decoder(shift_right(target), context, vector, mask & False)
    return logits[0, 0].softmax(dim=-1)[target[0, 0]]


def maps(book, held_out, name, model):
    """Return where rows have their largest weight, and what hiding words costs."""
    pair, probs_without = book["PAIR"], book["probs_without"]
    (read, written), found = (side.split() + ["<end>"] for side in pair), {}
    usual, weights = probs_without(model, pair)
    columns = {word: read[place] for word, place in zip(written, weights.argmax(-1))}
    crossed = {"black": "noir", "cat": "chat", "blue": "bleue", "car": "voiture"}
    right = sum(columns[word] == theirs for word, theirs in crossed.items())
    found[f"{name}: rows right of black, cat, blue, car"] = right
    found[f"{name}: rows right of black, cat"] = sum(
        columns[word] == crossed[word] for word in ("black", "cat")
    )
    lost = (usual - probs_without(model, pair, range(len(read)))[0])[0]
    found[f"{name}: my, lost with all words hidden"] = lost
    draw = random.Random(0)
    for word, own in {"cat": ["chat"], "not": ["ne", "pas"]}.items():
        rows = []
        for french, english in held_out:
            if english.split().count(word) == 1:
                row, places = (
                    english.split().index(word),
                    range(len(french.split()) + 1),
                )
                its = [i for i, other in enumerate(french.split()) if other in own]
                others = draw.sample([i for i in places if i not in its], len(its))
                looks = probs_without(model, (french, english))[1][row].argmax() in its
                probs = (
                    probs_without(model, (french, english), hidden)[0][row]
                    for hidden in (its, others, places)
                )
                rows.append((looks, *probs))
        means = [sum(column) / len(rows) for column in zip(*rows)]
        for what, mean in zip(("looks at", "hidden", "others", "all"), means):
            found[f"{name}: {word}, {what}"] = mean
    return found
