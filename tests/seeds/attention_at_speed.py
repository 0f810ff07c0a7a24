"""What notebook 10 and its deeper notebooks state, measured with any seed."""

import torch

from tests.seeds import definitions


def memory_share(book, seed):
    """Return the extra memory of blocks at T = 4,096 as a share of the plain form's."""
    torch.manual_seed(seed)
    heads = torch.randn(3, 1, 1, 4096, 64).unbind()
    plain, blocks = book["plain_attention"], book["blockwise_attention"]
    torch.testing.assert_close(blocks(*heads), plain(*heads), atol=1e-4, rtol=1e-4)
    return book["extra_bytes"](blocks, *heads) / book["extra_bytes"](plain, *heads)


def restarted_logits(book, seed):
    """Return how far the logits move if positions restart in an untrained GPT."""
    torch.manual_seed(seed)
    model = book["GPT"](75, 64, 64, 4, num_layers=2).eval()
    with torch.no_grad():
        whole = model(book["HELD_OUT"][0])
    found = [book["logits_one_by_one"](model, restart) for restart in (False, True)]
    return [(logits - whole).abs().max().item() for logits in found]


def main(seed):
    """Measure with a seed; return statement -> (measured, lowest, highest allowed)."""
    share = memory_share(definitions("deeper/counting_memory"), seed)
    found = {"blocks / plain, memory at 4,096": (share, 0, 0.1)}
    book = definitions("deeper/what_the_savings_cost")
    true, restarted = restarted_logits(book, seed)
    found["untrained, cached with true positions, logits differ"] = (true, 0, 0.001)
    found["untrained, positions restart, logits differ"] = (restarted, 0.3, 2)
    model, loss = book["trained_gpt"](4, seed)
    logits = [book["logits_one_by_one"](model, restart) for restart in (False, True)]
    cached, restarted = map(book["loss_of"], logits)
    found["cached against one pass, loss"] = (abs(cached - loss), 0, 0.001)
    found["positions restart, loss grows by"] = (restarted - loss, 0, 0.35)
    losses = [loss] + [book["trained_gpt"](heads, seed)[1] for heads in (2, 1)]
    for heads, loss in zip((4, 2, 1), losses):
        found[f"{heads} heads with keys, loss"] = (loss, 2.1, 2.45)
    found["1 head - 4 heads with keys, loss"] = (losses[-1] - losses[0], -0.3, 0.3)
    return found
