"""Notebook 12 and its deeper ones: four translators, and a wider vector."""

from functools import partial
from itertools import pairwise

import torch

from utils.pages import definitions

translation = definitions("12_translation")


def main(seed):
    stats = the_page(seed) | the_transformer(seed) | a_wider_vector(seed)
    return stats | clauses_stay(seed)


def the_page(seed):
    book, held_out = definitions("12_translation"), translation.held_out_pairs(seed)
    batches, models = translation.draw_batches(seed), {}
    for name, make_decoder, steps, lr in (
        ("one vector", translation.OneVectorDecoder, 500, 0.012),
        ("one vector, 2,000 steps", translation.OneVectorDecoder, 2000, 0.012),
        ("fixed places", book["FixedPlacesDecoder"], 2000, 0.012),
        ("looking back", book["RecurrentDecoder"], 500, 0.006),
        ("looking back, twice the rate", book["RecurrentDecoder"], 500, 0.012),
    ):
        torch.manual_seed(seed)
        decoder = make_decoder(len(translation.ENGLISH), 80)
        encoder = translation.RecurrentEncoder(len(translation.FRENCH), 80)
        models[name] = translation.train_translator(
            encoder, decoder, batches, steps, lr
        )
    stats = fractions_right(models, held_out) | first_try(models["one vector"])
    book["TEST"] = held_out
    stats["same place: aligned"] = book["alignment_score"](book["same_position"])
    stats |= maps(book, "looking back", models["looking back"])
    return stats | hidden_words(book, models["looking back"])


def clauses_stay(seed):
    """Return how fixed places do with the French clauses in the English order."""
    book = definitions("12_translation")
    book["translation_pairs"] = same_order
    torch.manual_seed(seed)
    decoder = book["FixedPlacesDecoder"](len(book["ENGLISH"]), 80)
    encoder = book["RecurrentEncoder"](len(book["FRENCH"]), 80)
    batches, held_out = book["draw_batches"](seed), book["held_out_pairs"](seed)
    model = book["train_translator"](encoder, decoder, batches, 2000, 0.012)
    return fractions_right({"fixed places, clauses stay": model}, held_out)


def same_order(num_pairs, seed):
    pairs = translation.translation_pairs(num_pairs, seed)
    parts = [(french.partition(" , "), english) for french, english in pairs]
    return [(first + comma + last, english) for (last, comma, first), english in parts]


def the_transformer(seed):
    book, held_out = definitions("12_translation"), translation.held_out_pairs(seed)
    batches, models = translation.draw_batches(seed), {}
    parts = definitions("deeper/the_transformer_of_2017")
    for name in ("transformer", "only C"):
        torch.manual_seed(seed)
        encoder = parts["TransformerEncoder"](len(translation.FRENCH), 64, num_heads=4)
        decoder = parts["TransformerDecoder"](len(translation.ENGLISH), 64, num_heads=4)
        if name == "only C":
            encoder.attention = decoder.self_attention = parts["Nothing"]()
        models[name] = translation.train_translator(encoder, decoder, batches, 1500)
    book["TEST"] = held_out
    return fractions_right(models, held_out) | maps(
        book, "transformer", models["transformer"]
    )


def a_wider_vector(seed):
    wider = definitions("deeper/a_wider_vector")
    wider["batches"] = translation.draw_batches(seed)
    models = {
        f"{width} numbers, {steps} steps": wider["train_wide"](width, steps, seed)
        for width, steps in ((80, 500), (160, 500), (160, 700))
    }
    stats = fractions_right(models, translation.held_out_pairs(seed))
    once = stats["80 numbers, 500 steps: hundred 1"]
    wide, widest = (
        [stats[f"160 numbers, {steps} steps: hundred {i}"] for i in (1, 2)]
        for steps in (500, 700)
    )
    stats["gained at hundred 1 with 160 numbers, 500 steps"] = wide[0] - once
    stats["gained at hundreds 1 and 2 with 200 more"] = (sum(widest) - sum(wide)) / 2
    return stats


def fractions_right(models, held_out):
    """Return which fraction each model translates, of all sentences and of parts."""
    stats = {}
    for name, model in models.items():
        hits = translation.exact_matches(model, held_out)
        stats[f"{name}: all"] = hits.mean()
        for third, part in zip(("short", "middle", "long"), hits.chunk(3)):
            stats[f"{name}: {third}"] = part.mean()
        for i, part in enumerate(hits.chunk(6)):
            stats[f"{name}: hundred {i}"] = part.mean()
    return stats


def first_try(model):
    """Return what a translator writes for the first short and long sentence."""
    (short, right), (long, whole) = translation.TEST[0], translation.TEST[300]
    known = {
        pair
        for _, english in translation.translation_pairs(32_000, seed=0)
        for pair in pairwise(english.split())
    }
    written = translation.say(model, long)
    return {
        "one vector: short sentence right": translation.say(model, short) == right,
        "one vector: long sentence right": written == whole,
        "one vector: unknown neighbours in the long one": len(
            {*pairwise(written.split())} - known
        ),
    }


def hidden_words(book, model):
    """Return how many words are right while the decoder can't look at some."""
    stats = {
        f"looking back: right with {name} hidden": book["still_right"](
            model, book["TEST"][::10], book[name]
        )
        for name in (
            "nothing",
            "a_distant_word",
            "its_own",
            "own_and_neighbours",
            "everything",
        )
    }
    stats["looking back: lost with the neighbours"] = (
        stats["looking back: right with its_own hidden"]
        - stats["looking back: right with own_and_neighbours hidden"]
    )
    written = translation.say(model, book["PHRASE"], hidden="noir")
    stats["looking back: without noir"] = "black" in written.split()
    stats["looking back: without noir, black looks at chat"] = looks_at_chat(
        book, model
    )
    return stats


@torch.no_grad()
def looks_at_chat(book, model):
    """Return whether *black* looks most at *chat* when *noir* is hidden."""
    source, target = translation.encode([book["PAIR"]])
    words, written = (side.split() for side in book["PAIR"])
    encoded, vector, mask = model.encode(source)
    mask[0, words.index("noir")] = False
    inputs = translation.shift_right(target)
    weights = model.decoder(inputs, encoded, vector, mask)[1][0]  # (T, S)
    return weights[written.index("black")].argmax() == words.index("chat")


def maps(book, name, model):
    """Return how often the rows of a map look at their own words."""
    look = partial(book["looks"], model)
    stats = {f"{name}: aligned": book["alignment_score"](look)}
    for what, pair in {
        "le chat noir dort": ("le chat noir dort", "the black cat sleeps"),
        "the phrase": book["PAIR"],
    }.items():
        places = look(pair)
        right = [p in own for p, own in zip(places, book["align"](*pair))]
        first = pair[1].split().index("black")
        stats[f"{name}: black, cat in {what}"] = sum(right[first : first + 2])
    comma = pair[0].split().index(",")  # of the phrase
    inside = [(place > comma) == (turn < 4) for turn, place in enumerate(places)]
    stats[f"{name}: rows of the phrase in their clause"] = sum(inside) / len(inside)
    return stats
