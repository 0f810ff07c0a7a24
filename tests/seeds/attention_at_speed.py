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


def main(seed):
    share = memory_share(definitions("deeper/counting_memory"), seed)
    book = definitions("deeper/what_the_savings_cost")

    def both(model):
        """Return the logits with a cache, with true positions and restarted ones."""
        return [book["logits_one_by_one"](model, again) for again in (False, True)]

    torch.manual_seed(seed)
    model = book["GPT"](75, 64, 64, 4, num_layers=2).eval()
    with torch.no_grad():
        whole = model(book["HELD_OUT"][0])
    true, restarted = ((logits - whole).abs().max() for logits in both(model))
    model, loss = book["trained_gpt"](4, seed)
    cached, loss_restarted = map(book["loss_of"], both(model))
    losses = {4: loss} | {
        heads: book["trained_gpt"](heads, seed)[1] for heads in (2, 1)
    }
    return {
        "blocks / plain, memory at 4,096": share,
        "untrained, cached with true positions, logits differ": true,
        "untrained, positions restart, logits differ": restarted,
        "cached against one pass, loss": abs(cached - loss),
        "positions restart, loss grows by": loss_restarted - loss,
        **{f"{heads} heads with keys, loss": loss for heads, loss in losses.items()},
        "1 head - 4 heads with keys, loss": losses[1] - losses[4],
    }
