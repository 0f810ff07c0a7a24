"""The one training loop of the course."""

import time

import torch
from IPython import get_ipython
from IPython.display import display


def train(model, batches, compute_loss, steps, lr=1e-3):
    """Minimise a loss with AdamW, showing the progress in a notebook.

    model: the module to train; left in evaluation mode, also when interrupted
    batches: an iterable of batches, gone through again and again
    compute_loss: function (model, batch) -> scalar tensor
    returns: the losses, one float per step

    Raises ValueError where there is no batch to learn from.

    >>> layer = torch.nn.Linear(1, 1)
    >>> losses = train(layer, [torch.ones(5, 1)], lambda m, x: m(x).square().mean(), 9)
    >>> len(losses), losses[-1] < losses[0]
    (9, True)

    Source: AdamW, Loshchilov and Hutter 2019, algorithm 2.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    losses = []
    show = _progress_bar(steps)
    model.train()
    try:
        for batch in _repeat(batches, steps):
            loss = compute_loss(model, batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            show(losses)
    finally:
        model.eval()
    return losses


def _repeat(batches, steps):
    step = 0
    while step < steps:
        before = step
        for batch in batches:
            if step == steps:
                return
            step += 1
            yield batch
        if step == before:
            raise ValueError("expected at least one batch, got none")


def _progress_bar(steps):
    # The stored text stays the same on every machine: what moves is the widget.
    if not hasattr(get_ipython(), "kernel"):
        return lambda losses: None
    from ipywidgets import IntProgress

    bar = IntProgress(max=steps, layout={"width": "100%"})
    view = {"version_major": 2, "version_minor": 0, "model_id": bar.model_id}
    bundle = {
        "application/vnd.jupyter.widget-view+json": view,
        "text/plain": f"training, {steps} steps",
    }
    display(bundle, raw=True)
    shown = 0.0

    def show(losses):
        nonlocal shown
        if time.monotonic() - shown > 0.2 or len(losses) == steps:
            shown = time.monotonic()
            bar.value = len(losses)
            bar.description = f"{losses[-1]:.3f}"

    return show
