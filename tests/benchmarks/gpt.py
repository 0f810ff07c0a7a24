"""`GPT` against a model built like nanoGPT's: tokens a second, and the loss reached.

Four layers, four heads, width 128, context 128, batch 16, on the letters of the story.
All are trained with AdamW on the same batches, and as in `utils.training.train` their
matrices alone decay; the loss is the mean of the last 50 steps, for three seeds. Ours
takes the fused AdamW; nanoGPT asks for that on CUDA alone. The last row gives it to it
all the same.
"""

import statistics

import torch

from tests.benchmarks import race, ratio, rivals
from utils.data import load_text
from utils.model import GPT, next_token_loss
from utils.training import decay_groups

CONTEXT, WIDTH, HEADS, LAYERS, BATCH = 128, 128, 4, 4, 16
STEPS, SEEDS = 250, (0, 1, 2)
OURS, FUSED = "ours", "like nanoGPT, fused AdamW"


def models(vocab_size):
    """Return the models that are compared, freshly initialised."""
    sizes = (vocab_size, CONTEXT, WIDTH, HEADS, LAYERS)
    return {
        OURS: GPT(*sizes),
        "like nanoGPT": rivals.LikeNanoGPT(*sizes),
        FUSED: rivals.LikeNanoGPT(*sizes),
    }


@torch.no_grad()
def assert_equal(ours, theirs, token_ids):
    """Give their model the weights of ours, and assert that both give the same logits.

    Biases and norms begin alike.
    """
    theirs.tokens.weight.copy_(ours.embedding.token_embedding.weight)
    theirs.positions.weight.copy_(ours.embedding.position_embedding.weight)
    for block, twin in zip(ours.blocks, theirs.blocks):
        layer = block.attention
        projections = (layer.W_query, layer.W_key, layer.W_value)
        twin.attention.qkv.weight.copy_(torch.cat([p.weight for p in projections]))
        twin.attention.out.weight.copy_(layer.out_proj.weight)
        twin.up.weight.copy_(block.feed_forward[0].weight)
        twin.down.weight.copy_(block.feed_forward[2].weight)
    torch.testing.assert_close(ours(token_ids), theirs(token_ids))


def stream(ids, seed, steps):
    """Return batches of inputs and targets, drawn from the text."""
    generator = torch.Generator().manual_seed(seed)
    starts = torch.randint(len(ids) - CONTEXT, (steps, BATCH, 1), generator=generator)
    windows = ids[starts + torch.arange(CONTEXT + 1)]  # (steps, B, T + 1)
    return [(window[:, :-1], window[:, 1:]) for window in windows]


def trainer(model, batches, losses, fused):
    """Return a function that takes one training step and notes its loss."""
    groups = decay_groups(model, 0.01)
    optimizer = torch.optim.AdamW(groups, lr=1e-3, fused=fused)

    def step():
        loss = next_token_loss(model, batches[len(losses)])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    return step


def train_all(ids, vocab_size, seed):
    """Train the models side by side; return the seconds and the losses of each."""
    torch.manual_seed(seed)
    known, batches = models(vocab_size), stream(ids, seed, STEPS + 1)
    losses = {name: [] for name in known}
    steps = {
        name: trainer(model, batches, losses[name], fused=name in (OURS, FUSED))
        for name, model in known.items()
    }
    return race(steps, STEPS), losses


def main():
    text = load_text()
    letters = sorted(set(text))
    ids = torch.tensor([letters.index(letter) for letter in text])
    torch.manual_seed(0)
    ours, *others = models(len(letters)).values()
    for theirs in others:
        assert_equal(ours, theirs, stream(ids, 0, 1)[0][0])
    seconds, ends = {}, {}
    for seed in SEEDS:
        taken, losses = train_all(ids, len(letters), seed)
        for name in taken:
            seconds.setdefault(name, []).extend(taken[name])
            ends.setdefault(name, []).append(statistics.mean(losses[name][-50:]))
    print(f"{'':27}parameters  tokens/s  ours / theirs      loss, mean and spread")
    for name, model in models(len(letters)).items():
        count = sum(parameter.numel() for parameter in model.parameters())
        middle, error = ratio(seconds[name], seconds[OURS])
        print(
            f"{name:27}{count:10,} "
            f"{BATCH * CONTEXT / statistics.median(seconds[name]):9,.0f}  "
            f"{middle:.3f} ± {error:.3f} {statistics.mean(ends[name]):14.3f} "
            f"± {max(ends[name]) - min(ends[name]):.3f}"
        )
