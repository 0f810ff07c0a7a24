"""`utils.training.train` against the bare loop: tokens a second, on the GPT of `gpt`.

The bare loop is the least that trains: AdamW on all parameters, and the loss of each
step read. `train` moves batches, sets rates, splits the parameters and keeps what a
checkpoint needs; *clipped* adds what `python -m utils.training` asks for. A round is
fifty steps of each.
"""

import statistics

import torch

from tests.benchmarks import gpt, race, ratio
from utils.data import load_text
from utils.model import GPT, next_token_loss
from utils.training import train

STEPS, ROUNDS, BARE = 50, 6, "the bare loop"
AS_THE_COMMAND = {"warmup": 2, "final_lr": 1e-4, "clip": 1.0, "weight_decay": 0.1}


def bare(model, batches):
    """Train with nothing but AdamW; return the losses."""
    optimizer, losses = torch.optim.AdamW(model.parameters(), fused=True), []
    model.train()
    for batch in batches:
        loss = next_token_loss(model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    """Print a row for each loop, after a look that they learn the same."""
    text = load_text()
    letters = sorted(set(text))
    batches = gpt.stream(torch.tensor([letters.index(c) for c in text]), 0, STEPS)
    loops = {
        BARE: bare,
        "train": lambda *run: train(*run, next_token_loss, STEPS),
        "train, clipped": lambda *run: train(
            *run, next_token_loss, STEPS, **AS_THE_COMMAND
        ),
    }
    runs, losses = {}, {}
    for name, loop in loops.items():
        torch.manual_seed(0)
        sizes = (gpt.CONTEXT, gpt.WIDTH, gpt.HEADS, gpt.LAYERS)
        model = GPT(len(letters), *sizes)
        losses[name] = loop(model, batches)
        runs[name] = lambda loop=loop, model=model: loop(model, batches)
    torch.testing.assert_close(losses["train"], losses[BARE], rtol=1e-3, atol=0)
    seconds = race(runs, ROUNDS)
    print(f"{'':16}tokens/s  seconds / those of the bare loop")
    for name, taken in seconds.items():
        middle, error = ratio(taken, seconds[BARE])
        tokens = STEPS * gpt.BATCH * gpt.CONTEXT / statistics.median(taken)
        print(f"{name:16}{tokens:8,.0f}  {middle:.3f} ± {error:.3f}")
