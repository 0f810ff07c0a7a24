"""What the savings cost, after 09: restarted positions and shared heads."""

import torch

from utils.pages import definitions


def main(seed):
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
    _, loss_restarted = map(book["loss_of"], both(model))
    return {
        "untrained, cached with true positions, logits differ": true,
        "untrained, positions restart, logits differ": restarted,
        "positions restart, loss grows by": loss_restarted - loss,
        "1 head - 4 heads with keys, loss": book["trained_gpt"](1, seed)[1] - loss,
    }
