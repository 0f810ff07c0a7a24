"""The deeper notebooks of 08: copying heads, norms, additions to the loop."""

import torch

from utils.model import GPT
from utils.pages import definitions


def main(seed):
    book = definitions("08_tiny_gpt")
    copying = definitions("deeper/copying_heads")
    norms = definitions("deeper/norms_and_depth")
    stats = divided(book, seed) | additions(norms, seed)
    return stats | copier(copying, seed) | depth(norms, seed)


def divided(book, seed):
    """Compare the model of 08 with one whose writes are divided at the start."""
    torch.manual_seed(seed)
    model = GPT(512, 64, d_model=64, num_heads=4, num_layers=2, dropout=0.2)
    divided, plain = (
        book["train_plainly"](model, seed)[1]
        for model in (model, book["new_gpt"](seed))
    )
    return {"writes as they are minus divided, lowest": min(plain) - min(divided)}


def additions(norms, seed):
    """Measure what each addition changes at three times the rate of the plain loop."""
    runs = norms["ADDED"] | {"0.001": (0.001, {})}
    held = {n: norms["held_losses"](lr, seed, **more) for n, (lr, more) in runs.items()}
    rises = {name: losses[-1] - min(losses) for name, losses in held.items()}
    end = {name: losses[-1] for name, losses in held.items()}
    best = {name: min(losses) for name, losses in held.items()}
    stats = {
        "schedule minus half: at the end": end["schedule"] - end["half of it"],
        "schedule minus half: lowest": best["schedule"] - best["half of it"],
        "0.001 minus schedule: lowest": best["0.001"] - best["schedule"],
        "0.003: rises again by": rises["0.003"],
        "half minus schedule: rises again by": rises["half of it"] - rises["schedule"],
    }
    for name in ("clipping", "weight decay"):
        stats[f"{name}: moves the lowest by"] = abs(best[name] - best["0.003"])
        stats[f"{name}: rises again by"] = rises[name]
    return stats


def copier(copying, seed):
    """Train on quotes; score the heads and switch them off."""
    model, _ = copying["trained"](seed)
    fresh = copying["quoting"](128)
    heads, run = copying["HEADS"], copying["loss_without"]
    scores = copying["head_scores"](copying["run"](model, fresh)[1], fresh)
    alone = {h: run(model, fresh, [h]) for h in heads}
    mean = {h: run(model, fresh, [h], True) for h in heads}
    best = (0, scores[0, :, 0].argmax().item())
    most = max(alone[head] for head in heads[:4])
    apart = max(abs(mean[h] - alone[h]) for h in heads)
    return {
        "block 0: strongest previous-token head": scores[0, :, 0].max(),
        "block 0: strongest at itself": scores[0, :, 1].max(),
        "block 1: weakest induction head": scores[1, :, 2].min(),
        "block 0: without its strongest previous-token head": alone[best],
        "block 0: the strongest previous-token head costs most": alone[best] == most,
        "block 1: without any one": max(alone[h] for h in heads[4:]),
        "block 1: without all four": run(model, fresh, heads[4:]),
        "mean minus zero ablation, largest": apart,
    }


def depth(norms, seed):
    """Measure what additions do to a gradient, and what norms do to a training."""
    base, kinds = norms["frequency_loss"](), norms["KINDS"]
    runs = {n: norms["trained"](*run, seed=seed) for n, run in norms["RUNS"].items()}
    above = {name: sum(run[0][-20:]) / 20 - base for name, run in runs.items()}
    before, after, size = ({name: runs[name][i] for name in kinds} for i in (1, 2, 3))
    parted = after.pop("pre-norm") - before["pre-norm"]
    return {
        "no additions: alike before": before.pop("no additions"),
        "most alike of the other three before": max(before.values()),
        "pre-norm: alike after minus before": parted,
        "least alike of the other three after": min(after.values()),
        "no norm: size over pre-norm": size["no norm"] / size["pre-norm"],
        "post-norm: size": size["post-norm"],
        "twelve MLPs: gradient, replacing": norms["first_gradient"](0, seed),
        "twelve MLPs: gradient, adding": norms["first_gradient"](1, seed),
        "pre-norm minus frequencies": above["pre-norm"],
        "post-norm minus frequencies": above["post-norm"],
        "post-norm with warm-up minus frequencies": above["post-norm, warm-up"],
        "post-norm at a third of the rate": above["post-norm, lr 0.001"],
        "no norm, warm-up, minus frequencies": above["no norm, warm-up"],
        "no additions, warm-up, minus frequencies": above["no additions, warm-up"],
        "replacing minus frequencies": above["no additions"],
        "adding alone minus frequencies": above["no norm"],
    }
