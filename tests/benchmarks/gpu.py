"""On a GPU, in bfloat16: the layer against one product for Q, K and V, and training.

The bound is one matrix product for queries, keys and values, PyTorch's fused attention
and one more product. Training is a step of `train` on GPT-2 small (124 million
parameters, 16 texts of 1,024 tokens), as it is and with a compiled loss.
"""

import statistics
import time
from functools import partial

import torch

from tests.benchmarks import ratio
from tests.benchmarks.attention import HEADS, WIDTH, LikeNanoGPTAttention
from utils.attention import MultiHeadAttention
from utils.model import GPT, next_token_loss
from utils.training import TrainingConfig, train

SIZES = ((32, 256), (16, 1024), (4, 4096), (1, 16384))  # B, T
VOCABULARY, LAYERS, BATCH_SIZE, CONTEXT_LENGTH, STEPS = 50304, 12, 16, 1024, 25
ROUNDS, CALLS = 15, 5


def milliseconds(run):
    """Return how long the GPU takes for some calls of a function, divided by them."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    for _ in range(CALLS):
        run()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / CALLS


def step(layer, x):
    """Run forward and backward."""
    with torch.autocast("cuda", torch.bfloat16):
        output = layer(x)
    output.float().sum().backward()
    layer.zero_grad()
    x.grad = None


def compare_layers(batch_size, num_tokens):
    """Print the time of the layer relative to the bound."""
    x = torch.randn(batch_size, num_tokens, WIDTH, device="cuda", requires_grad=True)
    ours = MultiHeadAttention(WIDTH, WIDTH, num_tokens, 0.0, HEADS).cuda()
    bound = LikeNanoGPTAttention(WIDTH, HEADS).cuda()
    runs = [partial(step, layer, x) for layer in (ours, bound)]
    for run in runs:
        milliseconds(run)
    pairs = [[milliseconds(run) for run in runs] for _ in range(ROUNDS)]
    middle, error = ratio(*zip(*pairs))
    print(
        f"B = {batch_size}, T = {num_tokens}: {middle:.3f} ± {error:.3f} of the bound"
    )


def tokens_per_second(compute_loss):
    """Return how many tokens a second `train` takes, after the first steps."""
    torch.manual_seed(0)
    model = GPT(VOCABULARY, CONTEXT_LENGTH, WIDTH, HEADS, LAYERS).cuda()
    size = BATCH_SIZE, CONTEXT_LENGTH + 1
    ids = torch.randint(VOCABULARY, size, device="cuda")
    times = []

    def note_time(losses):
        torch.cuda.synchronize()
        times.append(time.perf_counter())

    batches = [(ids[:, :-1].contiguous(), ids[:, 1:].contiguous())]
    config = TrainingConfig(clip=1.0)
    train(model, batches, compute_loss, STEPS, 1e-4, on_step=note_time, config=config)
    seconds = [after - before for before, after in zip(times[5:], times[6:])]
    return BATCH_SIZE * CONTEXT_LENGTH / statistics.median(seconds)


def main():
    """Print both tables, if there is a GPU."""
    if not torch.cuda.is_available():
        print("needs a GPU")
        return
    print(torch.cuda.get_device_name())
    for batch_size, num_tokens in SIZES:
        compare_layers(batch_size, num_tokens)
    for name, compute_loss in (
        ("as it is", next_token_loss),
        ("compiled", torch.compile(next_token_loss)),
    ):
        print(
            f"training, {name}: {tokens_per_second(compute_loss):,.0f} tokens a second"
        )
