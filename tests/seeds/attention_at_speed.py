"""What notebook 10 states, measured with any seed: memory, generation, shared heads."""

import math
import time

import torch

from tests.seeds import definitions
from utils.data import load_text, sliding_windows
from utils.model import GPT, generate, next_token_loss
from utils.training import train


def memory_share(seed):
    """Return the extra memory of blocks at T = 8,192 as a share of the plain form's."""
    book = definitions("10_attention_at_speed")
    torch.manual_seed(seed)
    heads = torch.randn(3, 1, 1, 8192, 64).unbind()
    plain, blocks = book["plain_attention"], book["blockwise_attention"]
    torch.testing.assert_close(blocks(*heads), plain(*heads), atol=1e-4, rtol=1e-4)
    return book["extra_bytes"](blocks, *heads) / book["extra_bytes"](plain, *heads)


def speed_of_cache(seed):
    """Return how many times as fast 256 tokens are written with a cache."""
    torch.manual_seed(seed)
    model = GPT(75, context_length=512, d_model=128, num_heads=4, num_layers=4).eval()
    prompt = torch.randint(75, (1, 8))
    written, taken = {}, {True: [], False: []}
    for use_cache in (True, False) * 2:  # twice, as anything else can only slow it
        torch.manual_seed(seed)
        start = time.perf_counter()
        written[use_cache] = generate(model, prompt, 256, use_cache=use_cache)
        taken[use_cache].append(time.perf_counter() - start)
    assert torch.equal(written[True], written[False])
    return min(taken[False]) / min(taken[True])


def trained(seed, num_kv_heads):
    """Return a small GPT trained as in the notebook, and the held-out letters."""
    text = load_text()
    letters = sorted(set(text))
    ids = torch.tensor([letters.index(letter) for letter in text])
    inputs, targets = sliding_windows(ids[:-4000], 64, 7)
    torch.manual_seed(seed)
    model = GPT(len(letters), 64, 64, 4, num_layers=2, num_kv_heads=num_kv_heads)
    rows = torch.randint(len(inputs), (250, 16))
    batches = [(inputs[r], targets[r]) for r in rows]
    train(model, batches, next_token_loss, steps=250, lr=3e-3)
    return model, sliding_windows(ids[-4000:], 64, 64)


@torch.no_grad()
def harm_of_restarting(model, held_out):
    """Return how much worse the held-out loss is when every position is 0."""
    read, (tokens, targets) = (
        definitions("10_attention_at_speed")["read_one_by_one"],
        held_out,
    )
    logits = [read(model, tokens, restart=restart) for restart in (True, False)]
    torch.testing.assert_close(logits[1], model(tokens), atol=1e-3, rtol=1e-3)
    loss = torch.nn.functional.cross_entropy
    return (loss(logits[0].mT, targets) - loss(logits[1].mT, targets)).item()


def main(seed):
    """Measure with a seed; return name -> (measured, lowest, highest allowed)."""
    found = {"blocks / plain, memory at 8,192": (memory_share(seed), 0, 0.1)}
    found["256 tokens with a cache, times as fast"] = (speed_of_cache(seed), 3, 1000)
    losses = []
    for num_kv_heads in (4, 2, 1):
        model, held_out = trained(seed, num_kv_heads)
        with torch.no_grad():
            losses.append(next_token_loss(model, held_out).item())
        if num_kv_heads == 4:
            harm = harm_of_restarting(model, held_out)
            found["harm of positions that restart"] = (harm, 0.01, 5)
    spread = max(losses) - min(losses)
    found["spread of 4, 2, 1 heads with keys"] = (spread, 0, 0.5)
    found["worst of them"] = (max(losses), 0, math.log(75) - 1)
    return found
