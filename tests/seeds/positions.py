"""What notebook 07 states, measured with any seed: train short, read long."""

import torch
import torch.nn.functional as F

from tests.seeds import definitions
from utils.data import load_text, sliding_windows
from utils.embeddings import alibi_bias, apply_rope, sinusoidal_positions
from utils.model import next_token_loss
from utils.training import train


def main(seed):
    """Train the six models; return name -> (measured, lowest, highest allowed)."""
    torch.manual_seed(seed)
    book, text = definitions("07_positions"), load_text()
    characters = sorted(set(text))
    ids = torch.tensor([characters.index(c) for c in text])
    ends = torch.arange(len(ids) - 5700, len(ids) - 1, 32)

    def batches(length, steps, size):
        inputs, targets = sliding_windows(ids[:-6000], length, 1)
        chosen = torch.randint(len(inputs), (steps, size))
        return [(inputs[rows], targets[rows]) for rows in chosen]

    @torch.no_grad()
    def loss_at(model, length):
        windows = ids[ends[:, None] + torch.arange(-length, 1)]
        logits = model(windows[:, :-1])[:, -16:]
        return F.cross_entropy(logits.flatten(0, 1), windows[:, -16:].flatten()).item()

    ways = {
        "none": {},
        "sinusoidal": {"positions": lambda tokens: sinusoidal_positions(tokens, 64)},
        "rotary": {"rotate": apply_rope},
        "T5": {"bias": book["BucketBias"](4)},
        "ALiBi": {"bias": lambda tokens: alibi_bias(4, tokens)},
        "learned": {"positions": book["LearnedPositions"](32, 64)},
    }
    short, models = batches(32, 300, 32), {}
    for name, way in ways.items():
        torch.manual_seed(seed)
        models[name] = book["Reader"](len(characters), **way)
        train(models[name], short, next_token_loss, steps=300, lr=3e-3)
    at_32 = {name: loss_at(model, 32) for name, model in models.items()}
    none = at_32.pop("none")
    found = {"none at 32 minus the worst other": (none - max(at_32.values()), 0.1, 5)}
    at_32["none"] = none
    limits = {"sinusoidal": (1, 5), "rotary": (1, 5), "T5": (-0.1, 1)}
    limits |= {"none": (-0.1, 1), "ALiBi": (-0.1, 0.1)}
    for name, limit in limits.items():
        length = 256 if name == "ALiBi" else 128
        worse = loss_at(models[name], length) - at_32[name]
        found[f"{name}: {length} minus 32"] = (worse, *limit)
    state, at_128 = models["rotary"].state_dict(), loss_at(models["rotary"], 128)
    halves = book["Reader"](len(characters), rotate=book["rope_in_halves"])
    halves.load_state_dict(state)
    harm = loss_at(halves, 32) - at_32["rotary"]
    found["rotary run in halves: harm at 32"] = (harm, 0.5, 10)
    train(models["rotary"], batches(128, 50, 8), next_token_loss, 50, lr=3e-3)
    after = loss_at(models["rotary"], 128)
    found["rotary: gain at 128 by 50 steps"] = (at_128 - after, 1, 5)
    left = after - loss_at(models["rotary"], 32)
    found["rotary: 128 minus 32 after 50 steps"] = (left, -0.2, 0.2)
    return found
