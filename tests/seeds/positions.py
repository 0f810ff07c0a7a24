"""Notebook 10 and its deeper ones: positions, lengths, and why rotary fails."""

from functools import partial

import torch

from utils.data import sliding_windows
from utils.embeddings import sinusoidal_positions
from utils.pages import definitions

letters = definitions("10_positions")
LetterReader, train_reader = letters.LetterReader, letters.train_reader
loss_at, weight_of_far_keys = letters.loss_at, letters.weight_of_far_keys
rotary_scores, held_scores = letters.rotary_scores, letters.held_scores

GUESSING = 3.12  # the loss that 10 prints, which no seed changes
# With pair 1 at a quarter of its speed.
SLOWED = letters.SPEEDS * torch.tensor([1, 1 / 4, 1, 1])


def main(seed):
    book = definitions("10_positions")
    deeper = definitions("deeper/why_does_rotary_fail")
    stats = {}
    for lr in (1e-2, 3e-3, 3e-2):
        models = trained(book, deeper, seed, lr)
        results = compared(models) | loudness(book, models["rotary"])
        results |= far_at_256(models)
        rate = "" if lr == 1e-2 else f", rate {lr:g}"
        stats |= {name + rate: number for name, number in results.items()}
        if not rate:
            rotary = models["rotary"]
    torch.manual_seed(seed)
    fast = LetterReader(partial(rotary_scores, speeds=deeper["FAST"]))
    train_reader(fast, seed=seed)
    return (
        stats
        | pairs(deeper, rotary)
        | no_slow_pairs(deeper, fast, loss_at(rotary, 128) - loss_at(rotary, 32))
        | held_at(deeper, fast)
        | cures(deeper, rotary, loss_at(rotary, 32), seed)
        | tuned(rotary, seed)
        | layouts(seed)
    )


def trained(book, deeper, seed, lr):
    """Return the readers of 10, and T5, trained at a rate."""
    sinusoids, models = partial(sinusoidal_positions, d_model=32), {}
    for name, build in {
        "none": LetterReader,
        "sinusoids": lambda: LetterReader(positions=sinusoids),
        "rotary": lambda: LetterReader(book["rotary"]),
        "ALiBi": lambda: LetterReader(book["alibi"]),
        "T5": lambda: LetterReader(deeper["BucketScore"]()),
    }.items():
        torch.manual_seed(seed)
        models[name] = train_reader(build(), seed=seed, lr=lr)
    return models


def compared(models):
    """Return what each model does at 32, and how much worse it is beyond."""
    at_32, at_256 = ({k: loss_at(m, n) for k, m in models.items()} for n in (32, 256))
    slower = models["rotary"].with_score(partial(rotary_scores, speeds=SLOWED))
    return {
        "rotary, slower: 128 minus 32": loss_at(slower, 128) - loss_at(slower, 32),
        "rotary, slower: 32 minus before": loss_at(slower, 32) - at_32["rotary"],
        "sinusoids: 40 minus none": loss_at(models["sinusoids"], 40)
        - loss_at(models["none"], 40),
        "sinusoids: 128 minus guessing": loss_at(models["sinusoids"], 128) - GUESSING,
        "rotary: 64 minus guessing": loss_at(models["rotary"], 64) - GUESSING,
        "none: 256 minus 32": at_256["none"] - at_32["none"],
        "ALiBi: 256 minus 32": at_256["ALiBi"] - at_32["ALiBi"],
        "at 32: most that one of three ways minus none is": max(
            at_32[name] - at_32["none"] for name in ("sinusoids", "rotary", "ALiBi")
        ),
        "at 256: least that sinusoids or rotary minus none is": min(
            at_256[name] - at_256["none"] for name in ("sinusoids", "rotary")
        ),
        "at 256: ALiBi minus none": at_256["ALiBi"] - at_256["none"],
        "at 32: ALiBi minus rotary": at_32["ALiBi"] - at_32["rotary"],
        "at 32: T5 minus rotary": at_32["T5"] - at_32["rotary"],
        "T5: 256 minus 32": at_256["T5"] - at_32["T5"],
    }


def loudness(book, model):
    """Return what pair 1 does to far keys, and what holding a pair repairs."""
    by_head = book["score_by_distance"](model, 64)  # (H, 64, 4)
    added = by_head.mean(0)  # (64, 4)
    spread = added.amax(0) - added.amin(0)
    others, rise = spread[[0, 2, 3]].max(), by_head[:, 50, 1] - by_head[:, 20, 1]
    stats = {
        "spread of the other pairs over that of pair 1": others / spread[1],
        "pair 1: at distance 50 minus at 0": added[50, 1] - added[0, 1],
        "pair 1, least of four heads: at distance 50 minus at 20": rise.min(),
    }
    usual, harmed = loss_at(model, 32), loss_at(model, 64)
    for distance in (0, 8, 20, 33, 40, 50):
        score = partial(held_scores, pairs=[1], distance=distance)
        held, name = model.with_score(score), f"pair 1 held at {distance}"
        gone = (harmed - loss_at(held, 64)) / (harmed - usual)
        stats[f"{name}: share of the rise gone"] = gone
        stats[f"{name}: weight of far keys"] = weight_of_far_keys(held, 64).mean()
        stats[f"{name}: 256 minus 32"] = loss_at(held, 256) - usual
    for name in ("subtracted", "hidden"):
        changed = model.with_score(book[name])
        gone = (harmed - loss_at(changed, 64)) / (harmed - usual)
        what = {"subtracted": "far scores minus 20", "hidden": "far keys hidden"}[name]
        stats[f"{what}: share of the rise gone"] = gone
        stats[f"{what}: 256 minus 32"] = loss_at(changed, 256) - usual
    return stats


def far_at_256(models):
    """Return the weight of far keys at 256 letters, by head."""
    names = "rotary", "ALiBi", "T5"
    rotary, alibi, t5 = (weight_of_far_keys(models[name], 256) for name in names)
    stats = {f"ALiBi: weight of far keys at 256, head {h}": alibi[h] for h in range(4)}
    stats["rotary: smallest weight of far keys at 256"] = rotary.min()
    stats["T5: smallest weight of far keys at 256"] = t5.min()
    stats["T5: largest weight of far keys at 256"] = t5.max()
    for name in names:
        largest = weight_of_far_keys(models[name], 256, torch.amax)  # by head
        what = f"{name}: largest weight of one far key at 256"
        stats |= {what: largest.max(), f"{what}, smallest head": largest.min()}
    return stats


def pairs(book, model):
    """Return how much of the rise is gone without far keys, or with a pair held."""
    stats, changes = {}, {"far keys hidden": book["windowed"]}
    for i in range(4):
        changes[f"pair {i} held"] = partial(held_scores, pairs=[i])
    for name, score in changes.items():
        changed = model.with_score(score)
        for length in (64, 128):
            rise = loss_at(model, length) - loss_at(model, 32)
            gone = (loss_at(model, length) - loss_at(changed, length)) / rise
            stats[f"{name}: share of the rise gone at {length}"] = gone
    return stats


def no_slow_pairs(book, model, usual_rise):
    """With base 5 every pair goes round, and the loss still rises."""
    speeds, at_32 = book["FAST"], loss_at(model, 32)
    every = {"pairs": list(range(4)), "speeds": speeds}
    held = model.with_score(partial(held_scores, **every))
    hidden = model.with_score(partial(book["windowed"], speeds=speeds))
    rise = loss_at(model, 128) - at_32
    left = [loss_at(changed, 128) - at_32 for changed in (held, hidden)]
    return {
        "base 5: 128 minus 32": rise,
        "base 5: rise at 128 as a share of that with base 10000": rise / usual_rise,
        "base 5, all held: share of the rise gone at 128": 1 - left[0] / rise,
        "base 5, far hidden: 128 minus 32": left[1],
    }


def held_at(deeper, model):
    """Return the weight of far keys with base 5, and what holding them at 0 costs."""
    every, weights = {"pairs": list(range(4)), "speeds": deeper["FAST"]}, {}
    weights["as trained"] = weight_of_far_keys(model, 128).mean()
    for distance in (0, 31):
        score = partial(held_scores, **every, distance=distance)
        held = model.with_score(score)
        weights[f"held at {distance}"] = weight_of_far_keys(held, 128).mean()
        if not distance:
            cost = loss_at(held, 128) - loss_at(model, 128)
    stats = {f"base 5, {name}: weight of far keys": w for name, w in weights.items()}
    return stats | {"base 5, held at 0: 128 minus as trained": cost}


def cures(book, model, at_32, seed):
    """Measure the loss with other speeds, before and after 50 steps at 128."""
    short, before, after = {}, {}, {}
    for name, speeds in ({"unchanged": letters.SPEEDS} | book["CURES"]).items():
        changed = model.with_score(partial(rotary_scores, speeds=speeds))
        short[name], before[name] = loss_at(changed, 32), loss_at(changed, 128)
        train_reader(changed, 128, steps=50, batch_size=8, seed=seed)
        after[name] = loss_at(changed, 128)
    stats = {}
    for name in ("interpolation", "YaRN-like", "pair 1 alone"):
        stats |= {
            f"{name}: at 128 minus at 32": before[name] - short[name],
            f"{name}: at 32 minus before": short[name] - at_32,
            f"{name}: after 50 steps minus at 32 before": after[name] - at_32,
        }
    for one, other in (
        ("pair 1 alone", "YaRN-like"),
        ("unchanged", "interpolation"),
        ("NTK-aware", "unchanged"),
    ):
        stats[f"50 steps: {one} minus {other}"] = after[one] - after[other]
    return stats


def tuned(model, seed):
    """Measure what 100 and 400 steps at 128 do for slowed and for old speeds."""
    losses, at_32 = {}, loss_at(model, 32)
    for name, speeds in {"slowed": SLOWED, "rotary": letters.SPEEDS}.items():
        for steps in (100, 400):
            changed = model.with_score(partial(rotary_scores, speeds=speeds))
            train_reader(changed, 128, steps=steps, batch_size=8, seed=seed)
            losses[name, steps] = {n: loss_at(changed, n) for n in letters.LENGTHS}
    ahead = {}
    for steps in (400, 100):
        slowed, usual = losses["slowed", steps], losses["rotary", steps]
        ahead[steps] = [usual[n] - slowed[n] for n in letters.LENGTHS]
    most = max(ahead[400][:-1])
    return {
        "tuned: least that rotary minus slowed is up to 128": min(ahead[100][:-1]),
        "tuned, 400 steps: most that rotary minus slowed is up to 128": most,
        "tuned, 256: slowed minus rotary": -ahead[100][-1],
        "slowed, tuned: 128 minus 32 before": slowed[128] - at_32,
        "slowed, tuned: 256 minus 128": slowed[256] - slowed[128],
        "rotary, tuned: 256 minus 128": usual[256] - usual[128],
    }


@torch.no_grad()
def layouts(seed):
    """Measure what weights for neighbours lose in halves, and forgotten biases."""
    book = definitions("deeper/two_rotary_layouts")
    with torch.enable_grad():
        torch.manual_seed(seed)
        model = train_reader(book["reader"](book["apply_rope"]), seed=seed)
    weights, end = model.state_dict(), letters.story_letters()[1][-letters.HELD_OUT :]
    held_out = sliding_windows(end, context_length=32, stride=32)

    def harm(weights):
        """Return how much the loss grows when these weights are loaded."""
        loss = book["next_token_loss"]
        return loss(book["loaded"](weights), held_out) - loss(model, held_out)

    alone = book["converted"](weights, kinds=["weight"])
    return {
        "layouts: harm without conversion": harm(weights),
        "layouts: harm with biases forgotten": harm(alone),
        "layouts: harm with both permuted": harm(book["converted"](weights)),
    }
