"""What notebook 07 and its deeper ones state, measured with any seed."""

from functools import partial

import torch

from tests.seeds import definitions
from utils.training.letters import (
    SPEEDS,
    LetterReader,
    held_scores,
    loss_at,
    loss_of_guessing,
    rotary_scores,
    train_reader,
)

HELD = {"at 256: T5 minus ALiBi": 4}


def main(seed):
    """Return statement -> (measured, lowest allowed, highest allowed)."""
    book = definitions("07_positions")
    deeper = definitions("deeper/why_does_rotary_fail")

    def trained(readers):
        """Train one after the other from one seed, as a cell of the notebook does."""
        torch.manual_seed(seed)
        return {name: train_reader(build(), seed=seed) for name, build in readers}

    def added(positions):
        return LetterReader(added=positions)

    sinusoids = partial(book["sinusoidal_positions"], d_model=32)
    models = trained(
        [
            ("none", LetterReader),
            ("table", lambda: added(book["LearnedPositions"](32, 32))),
            ("sinusoids", lambda: added(sinusoids)),
        ]
    )
    models |= trained([("rotary", lambda: LetterReader(book["rotary"]))])
    models |= trained([("ALiBi", lambda: LetterReader(book["alibi"]))])
    models |= trained([("T5", lambda: LetterReader(book["BucketScore"](8, 4)))])
    fast = partial(rotary_scores, speeds=deeper["FAST"])
    models |= trained([("base 5", lambda: LetterReader(fast))])
    lengths = {"table": (32,)}
    loss = {
        (name, n): loss_at(model, n)
        for name, model in models.items()
        for n in lengths.get(name, (32, 40, 64, 128, 256))
    }
    return (
        compared(loss)
        | pairs(deeper, models["rotary"], loss)
        | no_slow_pairs(deeper, models["base 5"], loss)
        | cures(deeper, models["rotary"], loss["rotary", 32], seed)
        | layouts(seed)
    )


def compared(loss):
    """What each model does at 32, and how much worse it is beyond."""
    guessing = loss_of_guessing()

    def worse(name, length):
        return loss[name, length] - loss[name, 32]

    added = max(loss["table", 32], loss["sinusoids", 32])
    scores = max(loss["rotary", 32], loss["T5", 32])
    late = worse("sinusoids", 40) - worse("rotary", 40)
    return {
        "at 32: no positions minus the worse of those added": (
            loss["none", 32] - added,
            0.2,
            0.6,
        ),
        "at 32: ALiBi minus the worse of rotary and T5": (
            loss["ALiBi", 32] - scores,
            0.02,
            0.3,
        ),
        "at 32: ALiBi minus rotary": (
            loss["ALiBi", 32] - loss["rotary", 32],
            0.02,
            0.3,
        ),
        "at 32: ALiBi minus the worse of those added": (
            loss["ALiBi", 32] - added,
            0,
            0.2,
        ),
        "at 256: T5 minus ALiBi": (loss["T5", 256] - loss["ALiBi", 256], 0, 1),
        "at 32: T5 minus rotary": (loss["T5", 32] - loss["rotary", 32], -0.15, 0.1),
        "at 32: the better of those added minus T5": (
            min(loss["table", 32], loss["sinusoids", 32]) - loss["T5", 32],
            0.05,
            0.3,
        ),
        "at 40: sinusoids minus no positions": (
            loss["sinusoids", 40] - loss["none", 40],
            0.02,
            0.5,
        ),
        "at 40: sinusoids have risen more than rotary": (late, 0.2, 3),
        "no positions: 256 minus 32": (worse("none", 256), 0.05, 0.3),
        "sinusoids: 64 minus guessing": (loss["sinusoids", 64] - guessing, -0.3, 1),
        "sinusoids: 128 minus guessing": (loss["sinusoids", 128] - guessing, 0, 2),
        "rotary: 64 minus guessing": (loss["rotary", 64] - guessing, 0, 2),
        "rotary: 128 minus guessing": (loss["rotary", 128] - guessing, 0, 2),
        "T5: 64 minus 32": (worse("T5", 64), -0.02, 0.1),
        "T5: 256 minus 32": (worse("T5", 256), 0.02, 0.6),
        "ALiBi: 256 minus 32": (worse("ALiBi", 256), -0.05, 0.05),
    }


def pairs(book, model, loss):
    """How much of the rise is gone when far keys are hidden, or one pair is held."""
    found = {}
    changes = {"far keys hidden": (book["windowed"], (0.95, 1.02))}
    allowed = {0: (-0.3, 0.3), 1: (0.75, 1.02), 2: (-0.1, 0.1), 3: (-0.1, 0.1)}
    for i, limits in allowed.items():
        held = partial(held_scores, pairs=[i])
        changes[f"pair {i} held"] = held, limits
    for name, (score, limits) in changes.items():
        changed = model.with_score(score)
        for length in (64, 128):
            rise = loss["rotary", length] - loss["rotary", 32]
            gone = (loss["rotary", length] - loss_at(changed, length)) / rise
            found[f"rotary, {name}: share of the rise gone at {length}"] = (
                gone,
                *limits,
            )
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
        "base 5: 128 minus 32": (rise, 0.2, 1.5),
        "base 5: rise at 128 as a share of that with base 10000": (share, 0, 0.5),
        "base 5, all held: share of the rise gone at 128": (
            1 - left[0] / rise,
            0.5,
            0.98,
        ),
        "base 5, all held: 128 minus 32": (left[0], 0, 0.4),
        "base 5, far hidden: 128 minus 32": (left[1], -0.05, 0.05),
    }


def cures(book, model, at_32, seed):
    """The loss with other speeds, before and after 50 steps at 128."""
    speeds = {"unchanged": SPEEDS} | book["CURES"]
    short, before, after = {}, {}, {}
    for name in speeds:
        changed = model.with_score(partial(rotary_scores, speeds=speeds[name]))
        short[name], before[name] = loss_at(changed, 32), loss_at(changed, 128)
        train_reader(changed, 128, steps=50, batch_size=8, seed=seed)
        after[name] = loss_at(changed, 128)
    found = {}
    for name in ("interpolation", "YaRN-like", "pair 1 alone"):
        found |= {
            f"{name}: at 128 minus at 32": (before[name] - short[name], -0.1, 0.1),
            f"{name}: at 32 minus before": (short[name] - at_32, 0.2, 2),
            f"{name}: after 50 steps minus at 32 before": (
                after[name] - at_32,
                -0.05,
                0.15,
            ),
        }
    return found | {
        "at 32: interpolation minus YaRN-like": (
            short["interpolation"] - short["YaRN-like"],
            0.2,
            3,
        ),
        "at once: pair 1 alone minus YaRN-like": (
            before["pair 1 alone"] - before["YaRN-like"],
            -0.05,
            0.05,
        ),
        "50 steps: pair 1 alone minus YaRN-like": (
            after["pair 1 alone"] - after["YaRN-like"],
            -0.03,
            0.03,
        ),
        "50 steps: interpolation minus YaRN-like": (
            after["interpolation"] - after["YaRN-like"],
            0,
            0.2,
        ),
        "50 steps: unchanged minus interpolation": (
            after["unchanged"] - after["interpolation"],
            0.02,
            2,
        ),
        "at once: NTK-aware minus unchanged": (
            before["NTK-aware"] - before["unchanged"],
            -0.3,
            0.3,
        ),
        "50 steps: NTK-aware minus unchanged": (
            after["NTK-aware"] - after["unchanged"],
            -0.1,
            0.5,
        ),
    }


@torch.no_grad()
def layouts(seed):
    """What weights for neighbours lose in halves, and what forgotten biases cost."""
    book = definitions("deeper/two_rotary_layouts")
    with torch.enable_grad():
        torch.manual_seed(seed)
        model = train_reader(book["reader"](book["apply_rope"]), seed=seed)
    weights = model.state_dict()

    def loss(model):
        return book["next_token_loss"](model, book["HELD_OUT"]).item()

    rise = loss(book["loaded"](weights)) - loss(model)
    alone = book["loaded"](book["converted"](weights, kinds=["weight"]))
    whole = book["loaded"](book["converted"](weights))
    return {
        "layouts: harm without conversion": (rise, 0.5, 4),
        "layouts: harm with biases forgotten": (loss(alone) - loss(model), 0.02, 1),
        "layouts: harm with both permuted": (loss(whole) - loss(model), -1e-3, 1e-3),
    }
