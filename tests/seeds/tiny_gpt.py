"""What notebook 09 states about its two trained models, for any seed."""

import itertools
import math
import re
import tempfile
from pathlib import Path

import torch

from tests.seeds import definitions


def story(known, seed, checkpoint):
    """Train on the story; return the held-out losses, the last ones, real words."""
    text = known["load_text"]()
    border = text.index("Chapter 8")
    merges = known["train_bpe"](text[:border], num_merges=256)
    ids, held = (known["encode_bpe"](t, merges) for t in (text[:border], text[border:]))
    windows = known["SlidingWindowDataset"](ids, context_length=64, stride=1)
    known["held_out"] = known["sliding_windows"](held, 64, 64)
    known["steps"], known["held_losses"] = itertools.count(), []
    known["checkpoint"], known["merges"] = checkpoint, merges
    known["known"] = set(re.findall(r"\w+", text[:border]))
    torch.manual_seed(seed)
    model = known["course"].GPT(512, 64, d_model=96, num_heads=4, num_layers=2)
    batches = known["DataLoader"](windows, batch_size=8, shuffle=True, drop_last=True)
    losses = known["train"](model, batches, known["watched_loss"], 1000, lr=1.5e-3)
    known["load_checkpoint"](model, checkpoint)
    known["model"] = model
    known["start"] = torch.tensor([known["encode_bpe"]("Zoë", merges)] * 32)
    shares = [known["real_words"](temperature) for temperature in (0.5, 1.0, 2.0)]
    return known["held_losses"], sum(losses[-50:]) / 50, shares


def copier(known, seed):
    """Train on quotes; return the loss, the scores and the losses without heads."""
    model = known["attention_only"](seed)
    batches = [known["quoting"](32) for _ in range(500)]
    known["train"](model, batches, known["quote_loss"], steps=500, lr=3e-3)
    fresh = known["quoting"](128)
    scores = known["head_scores"](known["attention_maps"](model, fresh), fresh)
    heads = list(itertools.product(range(2), range(4)))
    alone = [known["loss_without"](model, [head], fresh) for head in heads]
    base, none = (known["loss_without"](model, h, fresh) for h in ([], heads[4:]))
    return base, *scores, alone, none


def main(seed):
    """Return for each statement what was measured, and its lowest and highest value."""
    known = definitions("09_tiny_gpt")
    with tempfile.TemporaryDirectory() as folder:
        held, last, shares = story(known, seed, Path(folder) / "tiny_gpt.pt")
    base, previous, induction, alone, none = copier(known, seed)
    best, inf = min(held), math.inf
    return {
        "first held-out loss, minus ln V": (
            held[0] - math.log(512),
            0,
            0.1,
        ),
        "best held-out loss, as a perplexity": (math.exp(best), 40, 50),
        "rise of the held-out loss after its best": (held[-1] - best, 0.2, inf),
        "training loss at the end, below the best": (best - last, 1, inf),
        "real words at 0.5 more than at 1": (shares[0] - shares[1], 0.02, 1),
        "real words at 1 more than at 2": (shares[1] - shares[2], 0.02, 1),
        "loss within quotes": (base, 0, 0.1),
        "strongest previous-token head, in layer 1": (previous[0].max().item(), 0.4, 1),
        "strongest of layer 2": (previous[1].max().item(), 0, 0.3),
        "weakest induction head of layer 2": (induction[1].min().item(), 0.7, 1),
        "loss without the strongest": (alone[previous[0].argmax()], 1.5, inf),
        "loss without one induction head": (max(alone[4:]), 0, 0.5),
        "loss without all of them": (none, 2, inf),
    }
