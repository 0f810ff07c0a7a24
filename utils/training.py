"""The one training loop of the course."""

import io
import time

import torch
from IPython import get_ipython
from IPython.display import display

from utils.files import write_atomically


def train(model, batches, compute_loss, steps, lr=1e-3, checkpoint=None):
    """Minimise a loss with AdamW, showing the progress in a notebook.

    model: the module to train; left in evaluation mode, also when interrupted
    batches: a list, DataLoader or the like, gone through again and again
    compute_loss: function (model, batch) -> scalar tensor
    checkpoint: a file for the weights, written every 100 steps and at the end
    returns: the losses, one float per step

    Raises ValueError where there is no batch to learn from, be it after a generator
    has run dry.

    >>> layer = torch.nn.Linear(1, 1)
    >>> losses = train(layer, [torch.ones(5, 1)], lambda m, x: m(x).square().mean(), 9)
    >>> len(losses), losses[-1] < losses[0]
    (9, True)

    Source: AdamW, Loshchilov and Hutter 2019, algorithm 2.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, fused=True)
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
            if checkpoint and (len(losses) % 100 == 0 or len(losses) == steps):
                save_checkpoint(model, checkpoint)
    finally:
        model.eval()
    return losses


def save_checkpoint(model, path):
    """Write the weights of a model to a file, which is never half-written.

    Raises OSError where the folder cannot be written to; an old file is kept.
    """
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    write_atomically(path, buffer.getvalue())


def load_checkpoint(model, path):
    """Read the weights of a model from a file, without running any code in it.

    Raises FileNotFoundError where the file is missing and ValueError where it is
    damaged or holds the weights of another model; the model is then unchanged.
    """
    with open(path, "rb") as file:
        content = io.BytesIO(file.read())
    try:
        weights = torch.load(content, map_location="cpu", weights_only=True)
        expected = {name: tuple(p.shape) for name, p in model.state_dict().items()}
        received = {name: tuple(p.shape) for name, p in weights.items()}
    except Exception as error:
        raise ValueError(f"{path} is no checkpoint: {error}") from error
    if expected != received:
        differs = sorted(dict(expected.items() ^ received.items()))
        raise ValueError(
            f"{path} holds the weights of another model: {differs[0]} expected as "
            f"{expected.get(differs[0])}, got {received.get(differs[0])}"
        )
    model.load_state_dict(weights)


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
            raise ValueError(
                f"expected batches to go through again, got none after {step} steps"
            )


def _progress_bar(steps):
    # The stored text stays the same on every machine: what moves is the widget.
    if not hasattr(get_ipython(), "kernel"):
        return lambda losses: None
    from ipywidgets import IntProgress

    bar = IntProgress(max=steps, layout={"width": "auto"})
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
