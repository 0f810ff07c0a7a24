"""What notebook 07 and its deeper one state, measured with any seed."""

from functools import partial

import torch

from tests.seeds import definitions

HELD = {"base 5, all pairs held: share of the rise gone at 128": 8}


def main(seed):
    """Return statement -> (measured, lowest allowed, highest allowed)."""
    book = definitions("07_positions")
    torch.manual_seed(seed)
    reader, plain = book["Reader"], book["plain"]
    sinusoids = partial(book["sinusoidal_positions"], d_model=32)
    readers = {
        "no positions": lambda: reader(plain),
        "learned": lambda: reader(plain, book["LearnedPositions"]()),
        "sinusoids": lambda: reader(plain, sinusoids),
        "rotary": lambda: reader(book["rotary"]),
        "T5": lambda: reader(book["BucketScore"]()),
        "ALiBi": lambda: reader(book["alibi"]),
        "base 5": lambda: reader(partial(book["rotary"], speeds=book["FAST"])),
    }
    lengths_of = {
        "no positions": (32, 256),
        "learned": (32,),
        "sinusoids": (32, 40, 128),
        "rotary": (32, 40, 128),
        "T5": (32, 64, 256),
        "ALiBi": (32, 256),
        "base 5": (32, 128),
    }
    models, loss = {}, {}
    for name, build in readers.items():
        models[name] = book["trained"](build(), seed=seed)
        for n in lengths_of[name]:
            loss[name, n] = book["loss_at"](models[name], n)
    return (
        lengths(loss)
        | steeper(book, loss["ALiBi", 32], seed)
        | tests(book, models["rotary"], loss["rotary", 32], loss["rotary", 128])
        | no_slow_pairs(book, models["base 5"], loss)
        | cures(book, models["rotary"], loss["rotary", 32], seed)
        | layouts(seed)
    )


def lengths(loss):
    """What each model does at 32, and how much worse it is beyond."""
    named = ("learned", "sinusoids", "rotary", "T5", "ALiBi")
    best, worst = (f(loss[name, 32] for name in named) for f in (min, max))

    def worse(name, length):
        return loss[name, length] - loss[name, 32]

    none, late = loss["no positions", 32], worse("sinusoids", 40) - worse("rotary", 40)
    second = max(loss[name, 32] for name in named[:-1])
    guessing = 3.12
    return {
        "at 32: guessing minus no positions": (guessing - none, 0.7, 1.2),
        "at 32: no positions minus the worst other": (none - worst, 0.2, 0.5),
        "at 32: ALiBi minus the second worst": (loss["ALiBi", 32] - second, 0, 0.3),
        "at 32: ALiBi minus the best": (loss["ALiBi", 32] - best, 0.1, 0.3),
        "no positions: 256 minus 32": (worse("no positions", 256), 0.05, 0.5),
        "at 40: sinusoids have risen more than rotary": (late, 0.2, 3),
        "sinusoids: 128 minus guessing": (loss["sinusoids", 128] - guessing, 0, 2),
        "rotary: 128 minus guessing": (loss["rotary", 128] - guessing, 0, 2),
        "T5: 64 minus 32": (worse("T5", 64), -0.02, 0.1),
        "T5: 256 minus 32": (worse("T5", 256), 0.05, 0.6),
        "ALiBi: 256 minus 32": (worse("ALiBi", 256), -0.05, 0.05),
    }


def steeper(book, at_32, seed):
    """ALiBi with slopes four times as steep: better at 32, and it still holds."""

    def score(query, key):
        bias = book["alibi_bias"](4, query.shape[-2])
        return book["plain"](query, key) + 4 * bias

    model = book["trained"](book["Reader"](score), seed=seed)
    loss = {length: book["loss_at"](model, length) for length in (32, 256)}
    return {
        "ALiBi, slopes four times as steep: at 32": (loss[32], 1.72, 1.88),
        "ALiBi, slopes four times as steep: gain": (at_32 - loss[32], 0.05, 0.3),
        "ALiBi, slopes four times as steep: 256 minus 32": (
            loss[256] - loss[32],
            -0.05,
            0.05,
        ),
    }


def tests(book, model, at_32, at_128):
    """How much of the rise at 128 is gone when far keys are hidden, pairs held."""
    found = {}
    changes = {
        "far keys hidden": ("windowed", {}, (0.95, 1.05)),
        "slow pairs held": ("held", {"pairs": book["SLOW"]}, (0.85, 1)),
        "fast pair held": ("held", {"pairs": ~book["SLOW"]}, (-0.3, 0.3)),
    }
    for name, (score, settings, limit) in changes.items():
        changed = book["with_score"](model, book[score], **settings)
        gone = (at_128 - book["loss_at"](changed, 128)) / (at_128 - at_32)
        found[f"rotary, {name}: share of the rise gone at 128"] = (gone, *limit)
        if score == "windowed":
            rise = book["loss_at"](changed, 256) - at_32
            found[f"rotary, {name}: 256 minus 32"] = (rise, -0.05, 0.05)
    return found


def no_slow_pairs(book, model, loss):
    """With base 5 every pair turns round, and the loss still rises."""
    speeds, rise = book["FAST"], loss["base 5", 128] - loss["base 5", 32]
    settings = {"pairs": speeds > 0, "speeds": speeds}
    held = book["with_score"](model, book["held"], **settings)
    hidden = book["with_score"](model, book["windowed"], speeds=speeds)
    at_32 = loss["base 5", 32]
    left = [book["loss_at"](model, 128) - at_32 for model in (held, hidden)]
    rotary = loss["rotary", 128] - loss["rotary", 32]
    return {
        "base 5: 128 minus 32": (rise, 0.2, 1.5),
        "base 5: rise at 128 as a share of rotary's": (rise / rotary, 0, 0.5),
        "base 5, all pairs held: share of the rise gone at 128": (
            1 - left[0] / rise,
            0.5,
            0.98,
        ),
        "base 5, far keys hidden: 128 minus 32": (left[1], -0.05, 0.05),
        "base 5: held minus hidden at 128": (left[0] - left[1], 0.02, 0.4),
    }


def cures(book, model, at_32, seed):
    """The loss at 128 with other speeds, before and after 50 steps at that length."""
    before, after = {}, {}
    for name, speeds in book["CURES"].items():
        changed = book["with_score"](model, book["rotary"], speeds=speeds)
        before[name] = book["loss_at"](changed, 128) - at_32
        book["trained"](changed, *book["LONG"], 50, 8, seed)
        after[name] = book["loss_at"](changed, 128) - at_32
    best = before.pop("YaRN's speeds")
    ntk = after["NTK-aware"] - after["unchanged"]
    return {
        "at once: the next best minus YaRN's speeds": (
            min(before.values()) - best,
            0.1,
            3,
        ),
        "at once: NTK-aware minus unchanged": (
            before["NTK-aware"] - before["unchanged"],
            -0.2,
            0.3,
        ),
        "50 steps: YaRN's speeds minus loss at 32": (
            after["YaRN's speeds"],
            -0.05,
            0.1,
        ),
        "50 steps: interpolation minus YaRN's speeds": (
            after["interpolation"] - after["YaRN's speeds"],
            0,
            0.2,
        ),
        "50 steps: unchanged minus interpolation": (
            after["unchanged"] - after["interpolation"],
            0,
            2,
        ),
        "50 steps: NTK-aware minus unchanged": (ntk, -0.05, 0.5),
    }


@torch.no_grad()
def layouts(seed):
    """What weights for neighbours lose in halves, and what forgotten biases cost."""
    book = definitions("deeper/two_rotary_layouts")
    with torch.enable_grad():
        model = book["trained"](seed)
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
