"""Notebook 07 and its deeper ones: positions, lengths, and why rotary fails."""

from functools import partial

import torch

from tests.seeds import definitions
from utils.experiments.letters import (
    SPEEDS,
    LetterReader,
    held_scores,
    loss_at,
    loss_of_guessing,
    rotary_scores,
    train_reader,
)


def main(seed):
    book = definitions("07_positions")
    deeper = definitions("deeper/why_does_rotary_fail")
    models = trained(book, deeper, seed)
    loss = {
        (name, n): loss_at(model, n)
        for name, model in models.items()
        for n in (32, 64, 128, 256)
    }
    return (
        compared(loss)
        | pairs(deeper, models["rotary"], loss)
        | no_slow_pairs(deeper, models["base 5"], loss)
        | cures(deeper, models["rotary"], loss["rotary", 32], seed)
        | layouts(seed)
    )


def trained(book, deeper, seed):
    """Return the trained readers."""
    sinusoids = partial(book["sinusoidal_positions"], d_model=32)
    fast = partial(rotary_scores, speeds=deeper["FAST"])
    models = {}
    for name, build in {
        "sinusoids": lambda: LetterReader(positions=sinusoids),
        "rotary": lambda: LetterReader(book["rotary"]),
        "ALiBi": lambda: LetterReader(book["alibi"]),
        "T5": lambda: LetterReader(book["BucketScore"](8, 4)),
        "base 5": lambda: LetterReader(fast),
    }.items():
        torch.manual_seed(seed)
        models[name] = train_reader(build(), seed=seed)
    return models


def compared(loss):
    """Return what each model does at 32, and how much worse it is beyond."""
    above = {key: value - loss_of_guessing() for key, value in loss.items()}
    worse = max(loss["rotary", 32], loss["T5", 32])
    return {
        "sinusoids: 128 minus guessing": above["sinusoids", 128],
        "rotary: 128 minus guessing": above["rotary", 128],
        "at 32: ALiBi minus the worse of rotary and T5": loss["ALiBi", 32] - worse,
        "T5: 256 minus 32": loss["T5", 256] - loss["T5", 32],
        "at 256: T5 minus ALiBi": loss["T5", 256] - loss["ALiBi", 256],
        "ALiBi: 256 minus 32": loss["ALiBi", 256] - loss["ALiBi", 32],
    }


def pairs(book, model, loss):
    """Return how much of the rise is gone without far keys, or with a pair held."""
    found, changes = {}, {"far keys hidden": book["windowed"]}
    for i in range(4):
        changes[f"pair {i} held"] = partial(held_scores, pairs=[i])
    for name, score in changes.items():
        changed = model.with_score(score)
        for length in (64, 128):
            rise = loss["rotary", length] - loss["rotary", 32]
            gone = (loss["rotary", length] - loss_at(changed, length)) / rise
            found[f"{name}: share of the rise gone at {length}"] = gone
    return found


def no_slow_pairs(book, model, loss):
    """With base 5 every pair goes round, and the loss still rises."""
    speeds = book["FAST"]
    held = model.with_score(partial(held_scores, pairs=range(4), speeds=speeds))
    hidden = model.with_score(partial(book["windowed"], speeds=speeds))
    rise = loss["base 5", 128] - loss["base 5", 32]
    left = [loss_at(changed, 128) - loss["base 5", 32] for changed in (held, hidden)]
    share = rise / (loss["rotary", 128] - loss["rotary", 32])
    return {
        "base 5: 128 minus 32": rise,
        "base 5: rise at 128 as a share of that with base 10000": share,
        "base 5, all held: share of the rise gone at 128": 1 - left[0] / rise,
        "base 5, far hidden: 128 minus 32": left[1],
    }


def cures(book, model, at_32, seed):
    """Measure the loss with other speeds, before and after 50 steps at 128."""
    short, before, after = {}, {}, {}
    for name, speeds in ({"unchanged": SPEEDS} | book["CURES"]).items():
        changed = model.with_score(partial(rotary_scores, speeds=speeds))
        short[name], before[name] = loss_at(changed, 32), loss_at(changed, 128)
        train_reader(changed, 128, steps=50, batch_size=8, seed=seed)
        after[name] = loss_at(changed, 128)
    found = {}
    for name in ("interpolation", "YaRN-like", "pair 1 alone"):
        found |= {
            f"{name}: at 128 minus at 32": before[name] - short[name],
            f"{name}: at 32 minus before": short[name] - at_32,
            f"{name}: after 50 steps minus at 32 before": after[name] - at_32,
        }
    for one, other in (
        ("pair 1 alone", "YaRN-like"),
        ("unchanged", "interpolation"),
        ("NTK-aware", "unchanged"),
    ):
        found[f"50 steps: {one} minus {other}"] = after[one] - after[other]
    return found


@torch.no_grad()
def layouts(seed):
    """Measure what weights for neighbours lose in halves, and forgotten biases."""
    book = definitions("deeper/two_rotary_layouts")
    with torch.enable_grad():
        torch.manual_seed(seed)
        model = train_reader(book["reader"](book["apply_rope"]), seed=seed)
    weights = model.state_dict()

    def harm(weights):
        """Return how much the loss grows when these weights are loaded."""
        held_out, loss = book["HELD_OUT"], book["next_token_loss"]
        return loss(book["loaded"](weights), held_out) - loss(model, held_out)

    alone = book["converted"](weights, kinds=["weight"])
    return {
        "layouts: harm without conversion": harm(weights),
        "layouts: harm with biases forgotten": harm(alone),
        "layouts: harm with both permuted": harm(book["converted"](weights)),
    }
