"""What notebook 09 and its two deeper ones state, measured with any seed."""

import math
import re

import torch

from tests.seeds import definitions

HELD = {"layer 1: the strongest previous-token head costs most": 6}


def main(seed):
    """Return statement -> (measured, lowest allowed, highest allowed)."""
    book = definitions("09_tiny_gpt")
    copying = definitions("deeper/copying_heads")
    norms = definitions("deeper/norms_and_depth")
    found = first_losses(book, seed) | story(book, seed)
    found |= additions(book, seed)
    return found | copier(copying, seed) | depth(norms, seed)


def first_losses(book, seed):
    """The loss before the first step, with small weights and with large ones."""
    torch.manual_seed(seed)
    small = book["GPT"](512, 64, d_model=64, num_heads=4, num_layers=2)
    batch = torch.randint(512, (2, 8, 64))
    first = book["next_token_loss"](small, batch).item()
    torch.nn.init.normal_(small.embedding.token_embedding.weight, std=1.0)
    large = book["next_token_loss"](small, batch).item()
    repeats = (small(batch[0]).argmax(dim=-1) == batch[0]).float().mean().item()
    return {
        "first loss minus ln V": (first - math.log(512), -0.05, 0.1),
        "first loss with large weights": (large, 55, 70),
        "repeats its token": (repeats, 0.99, 1),
    }


def story(book, seed):
    """Train with the plain loop; measure its losses and what the model writes."""
    training, validation = book["TRAINING"], book["VALIDATION"]
    model, losses, checks = plain(book, seed)
    last = sum(losses[-50:]) / 50
    best = min(checks, key=checks.get)
    counts = torch.bincount(training, minlength=512) + 1
    frequencies = -(counts / counts.sum()).log()[validation].mean().item()
    words = {name: written(book, model, **o) for name, o in SETTINGS.items()}
    large = plain(book, seed, shrink=False)[2]
    return {
        "story: validation loss, lowest": (checks[best], 3.85, 4.15),
        "story: step of the lowest": (best, 300, 600),
        "story: validation loss, last minus lowest": (
            checks[600] - checks[best],
            0,
            0.2,
        ),
        "story: training loss at the end": (last, 2.8, 3.1),
        "story: validation minus training at the end": (checks[600] - last, 0.8, 1.4),
        "story: better than frequencies by": (frequencies - checks[600], 1.0, 1.5),
        "story: perplexity at the end": (math.exp(checks[600]), 45, 65),
        "writes as they are minus divided, lowest": (
            min(large.values()) - checks[best],
            -0.05,
            0.05,
        ),
        "words: temperature 0.5": (words["cold"][0], 0.7, 0.88),
        "words: temperature 1": (words["plain"][0], 0.57, 0.7),
        "words: temperature 2": (words["hot"][0], 0.4, 0.5),
        "words: top-p 0.8": (words["top-p"][0], 0.64, 0.79),
        "words: top-p more than plain": (
            words["top-p"][0] - words["plain"][0],
            0.02,
            0.3,
        ),
        "words: different, plain minus top-p": (
            words["plain"][1] - words["top-p"][1],
            0.01,
            0.3,
        ),
        "greedy: different tokens among 60": (repeats(book, model), 1, 40),
    }


SETTINGS = {
    "cold": {"temperature": 0.5},
    "plain": {},
    "hot": {"temperature": 2.0},
    "top-p": {"top_p": 0.8},
}


def plain(book, seed, shrink=True):
    """Return a model trained with the plain loop, its losses and its checks."""
    torch.manual_seed(seed)
    model = book["GPT"](512, 64, d_model=64, num_heads=4, num_layers=2, dropout=0.2)
    if not shrink:
        book["small_weights"](model, shrink=False)
    losses, checks = [], {}
    for step, loss in enumerate(book["train_plainly"](model, 600, seed=seed), 1):
        losses.append(loss)
        if step % 50 == 0:
            measured = book["held_out_loss"](model, book["VALIDATION"], 64)
            checks[step] = measured.item()
    return model, losses, checks


def additions(book, seed):
    """What each addition changes at three times the rate of the plain loop."""
    found = {n: book["trained_with"](o, seed) for n, o in book["ADDED"].items()}
    training = {name: pair[0] for name, pair in found.items()}
    held = {name: pair[1].item() for name, pair in found.items()}
    said = {"nothing at 0.003: validation": (held["nothing"], 4.1, 4.6)}
    said["nothing at 0.003: training"] = (training["nothing"], 2, 3.5)
    for name, low, high in (
        ("schedule", -0.4, -0.2),
        ("clipping", -0.15, 0.15),
        ("weight decay", -0.15, 0.15),
        ("all three", -0.4, -0.2),
    ):
        change = held[name] - held["nothing"]
        said[f"{name} minus nothing: validation"] = (change, low, high)
        change = training[name] - training["nothing"]
        said[f"{name} minus nothing: training"] = (change, -1, 1)
    change = held["all three"] - held["schedule"]
    return said | {"all three minus schedule: validation": (change, -0.15, 0.15)}


def written(book, model, **options):
    """Return the shares of real words, and of different ones, in 16 texts."""
    torch.manual_seed(0)
    merges = book["MERGES"]
    start = torch.tensor([book["encode_bpe"]("Zoë", merges)] * 16)
    rows = book["write"](model, start, 70, **options).tolist()
    texts = [re.findall(r"\w+", book["decode_bpe"](row, merges)) for row in rows]
    words = [word for text in texts for word in text[1:-1]]  # cut words left out
    known = set(re.findall(r"\w+", book["PARTS"][0]))
    return sum(w in known for w in words) / len(words), len(set(words)) / len(words)


def repeats(book, model):
    """Return how many of the last 60 tokens differ when the best is always taken."""
    start = torch.tensor([book["encode_bpe"]("Zoë", book["MERGES"])])
    return len(set(book["write"](model, start, 70, top_k=1)[0, -60:].tolist()))


def copier(copying, seed):
    """Train on quotes; score the heads and switch them off."""
    model, losses = copying["trained"](seed)
    fresh = copying["quoting"](128)
    heads, run = copying["HEADS"], copying["loss_without"]
    scores = copying["head_scores"](copying["run"](model, fresh)[1], fresh)
    alone = {h: run(model, fresh, [h]) for h in heads}
    mean = {h: run(model, fresh, [h], True) for h in heads}
    none = run(model, fresh, heads[4:])
    best = (0, scores[0, :, 0].argmax().item())
    most = max(alone[head] for head in heads[:4])
    return {
        "copier: loss at step 100": (losses[99], 2.9, 3.3),
        "copier: loss at step 200": (losses[199], 0.1, 3),
        "copier: loss at step 400": (losses[399], 0, 0.1),
        "copier: loss within quotes": (run(model, fresh, []), 0, 0.05),
        "layer 1: strongest previous-token head": (scores[0, :, 0].max(), 0.45, 1),
        "layer 1: strongest at itself": (scores[0, :, 1].max(), 0.7, 1),
        "layer 2: weakest induction head": (scores[1, :, 2].min(), 0.85, 1),
        "layer 2: strongest previous-token head": (scores[1, :, 0].max(), 0, 0.2),
        "layer 1: without its strongest previous-token head": (alone[best], 1, 20),
        "layer 1: the strongest previous-token head costs most": (
            float(alone[best] == most),
            1,
            1,
        ),
        "layer 2: without any one": (max(alone[h] for h in heads[4:]), 0, 0.1),
        "layer 2: without all four": (none, 3.5, 20),
        "mean minus zero ablation, largest": (
            max(abs(mean[h] - alone[h]) for h in heads),
            0,
            0.3,
        ),
    }


def depth(norms, seed):
    """What additions and norms do to a stack, untrained and trained."""
    follow = norms["follow"]
    added = follow(norms["TransformerBlock"], seed=seed)
    replaced = follow(norms["NoAddition"], seed=seed)
    bare = follow(norms["NoNorm"], seed=seed)
    found = {
        "depth 8: cosine with additions": (added[7][0], 0.1, 0.25),
        "depth 4: cosine without": (replaced[3][0], 0.9, 1),
        "depth 8: cosine without": (replaced[7][0], 0.99, 1),
        "depth 32: size without norms": (bare[31][1], 6, 40),
        "depth 32: size with pre-norm": (added[31][1], 1.5, 3),
    }
    base = norms["frequency_loss"]()
    ends = {}
    for name, (block_class, warmup) in norms["RUNS"].items():
        losses = norms["trained"](block_class, warmup, seed)
        ends[name] = sum(losses[-20:]) / 20 - base
    return found | {
        "pre-norm minus frequencies": (ends["pre-norm"], -1.5, -0.15),
        "post-norm minus frequencies": (ends["post-norm"], -0.12, 0.2),
        "post-norm with warm-up minus frequencies": (
            ends["post-norm, warm-up"],
            -1.5,
            -0.15,
        ),
    }
