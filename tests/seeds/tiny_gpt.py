"""What notebook 09 and its two deeper ones state, measured with any seed."""

import functools
import math
import re

import torch

import utils.model
from tests.seeds import definitions
from utils.training import decay_groups, learning_rate

ENDS = (  # what each addition changes in the validation loss after 600 steps
    ("half", -0.35, 0.02),
    ("schedule", -0.45, -0.12),
    ("clipping", -0.1, 0.3),
    ("weight decay", -0.12, 0.1),
    ("all three", -0.42, -0.1),
)
LOWEST = (  # and in the lowest one
    ("half", -0.15, -0.02),
    ("schedule", -0.13, -0.03),
    ("clipping", -0.08, 0.06),
    ("weight decay", -0.05, 0.05),
    ("all three", -0.15, -0.01),
)
SCHEDULE = {"warmup": 50, "final_lr": 0.0}
MORE = {  # the runs that the notebook tells of and doesn't show
    "clipping": {"clip": 1.0},
    "weight decay": {"weight_decay": 0.1},
    "all three": SCHEDULE | {"clip": 1.0, "weight_decay": 0.1},
}
SCHEDULE_MINUS_HALF = (-0.2, -0.04), (-0.05, 0.05), (-0.15, 0.45)
HELD = {"layer 1: the strongest previous-token head costs most": 6}


def main(seed):
    """Return statement -> (measured, lowest allowed, highest allowed)."""
    book = definitions("09_tiny_gpt")
    copying = definitions("deeper/copying_heads")
    norms = definitions("deeper/norms_and_depth")
    found = gradients(book, seed) | first_losses(book, seed) | story(book, seed)
    found |= additions(book, seed)
    return found | copier(copying, seed) | depth(norms, seed)


def gradients(book, seed):
    """How large a gradient arrives before twelve MLPs, replacing and adding."""
    arrives = book["first_gradient"]
    return {
        "twelve MLPs: gradient, replacing": (arrives(0, seed), 0, 1e-8),
        "twelve MLPs: gradient, adding": (arrives(1, seed), 8, 20),
    }


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
    model, seen = plain(book, seed)
    last, checks = seen[0][-1], dict(zip(range(50, 601, 50), seen[1]))
    best = min(checks, key=checks.get)
    counts = torch.bincount(training, minlength=512) + 1
    frequencies = -(counts / counts.sum()).log()[validation].mean().item()
    words = {name: written(book, model, **o) for name, o in SETTINGS.items()}
    divided = plain(book, seed, utils.model.GPT)[1]
    lowest = min(divided[1])
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
            checks[best] - lowest,
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


def plain(book, seed, build=None, rates=(0.001,) * 600):
    """Return a model trained with the notebook's loop, and both lists of `watch`."""
    model = begun(build or book["GPT"], seed)
    training = book["train_plainly"](model, rates, seed=seed)
    return model, book["watch"](training, model, book["VALIDATION"])


def begun(build, seed):
    torch.manual_seed(seed)
    return build(512, 64, d_model=64, num_heads=4, num_layers=2, dropout=0.2)


def train(book, model, seed, weight_decay=0.0, clip=1e9, **rate):
    """Yield the losses of the notebook's loop with further additions."""
    optimizer = torch.optim.AdamW(decay_groups(model, weight_decay), lr=3e-3)
    for step in range(600):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, 600, 3e-3, **rate)
        batch = book["draw_windows"](book["TRAINING"], 64, 8, seed, step)
        optimizer.zero_grad()
        loss = book["next_token_loss"](model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        yield loss.item()


def additions(book, seed):
    """What each addition changes at three times the rate of the plain loop."""
    names = {"0.003": "full", "half of it": "half", "schedule": "schedule"}
    runs = {names[n]: plain(book, seed, rates=r)[1] for n, r in book["RUNS"].items()}
    runs["plain"] = plain(book, seed)[1]
    for name, options in MORE.items():
        model = begun(book["GPT"], seed)
        losses = train(book, model, seed, **options)
        runs[name] = book["watch"](losses, model, book["VALIDATION"])
    end = {name: held[-1] for name, (_, held) in runs.items()}
    best = {name: min(held) for name, (_, held) in runs.items()}
    said = {}
    for name, low, high in ENDS:
        said[f"{name} minus full: at the end"] = (
            end[name] - end["full"],
            low,
            high,
        )
    for name, low, high in LOWEST:
        said[f"{name} minus full: lowest"] = (
            best[name] - best["full"],
            low,
            high,
        )
    return said | {
        "full: at the end": (end["full"], 4.1, 4.6),
        "full: training": (runs["full"][0][-1], 2, 3.5),
        "plain minus schedule: at the end": (end["plain"] - end["schedule"], -0.1, 0.1),
        "schedule minus half: at the end": (
            end["schedule"] - end["half"],
            *SCHEDULE_MINUS_HALF[0],
        ),
        "schedule minus half: lowest": (
            best["schedule"] - best["half"],
            *SCHEDULE_MINUS_HALF[1],
        ),
        "schedule minus half: training": (
            runs["schedule"][0][-1] - runs["half"][0][-1],
            *SCHEDULE_MINUS_HALF[2],
        ),
    }


def written(book, model, **options):
    """Return the shares of real words, and of different ones, in 16 texts."""
    torch.manual_seed(0)
    merges = book["MERGES"]
    start = torch.tensor([book["encode_bpe"]("Zoë", merges)] * 16)
    choose = functools.partial(book["course"].next_token_probs, **options)
    rows = book["write"](model, start, 70, choose).tolist()
    texts = [re.findall(r"\w+", book["decode_bpe"](row, merges)) for row in rows]
    words = [word for text in texts for word in text[1:-1]]  # cut words left out
    known = set(re.findall(r"\w+", book["PARTS"][0]))
    return sum(w in known for w in words) / len(words), len(set(words)) / len(words)


def repeats(book, model):
    """Return how many of the last 60 tokens differ when the best is always taken."""
    start = torch.tensor([book["encode_bpe"]("Zoë", book["MERGES"])])
    best = functools.partial(book["course"].next_token_probs, top_k=1)
    return len(set(book["write"](model, start, 70, best)[0, -60:].tolist()))


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
