"""The training loop of the course, and its checkpoints.

`python -m utils.training` is the command of `utils.training.text`.
"""

import contextlib
import io
import itertools
import math
import signal
import threading
import time
import zipfile
from pathlib import Path

import torch
import torch.distributed as dist
from IPython import get_ipython
from IPython.display import display
from torch import nn

from utils.files import remove_parts, write_atomically
from utils.training.threads import faster_threads


def train(
    model,
    batches,
    compute_loss,
    steps,
    lr=1e-3,
    checkpoint=None,
    *,
    warmup=0,
    final_lr=None,
    weight_decay=0.01,
    clip=None,
    accumulate=1,
    save_every=100,
    resume=False,
    about=None,
    show=None,
):
    """Minimise a loss with AdamW, showing the progress in a notebook.

    model: the module to train; left in evaluation mode, also when interrupted
    batches: a list, DataLoader or the like, gone through again and again, or a function
        from a number (0, 1, 2 ...) to its batch; moved to the device of the model
    compute_loss: function (model, batch) -> scalar tensor
    checkpoint: a file for all that `resume=True` needs, written at step 0 and every
        `save_every` steps, at the end, and on Ctrl-C, which waits for the step's end
    warmup, final_lr: as in `learning_rate`;  weight_decay: as in `decay_groups`
    clip: the largest norm of the gradient;  accumulate: batches in a step
    about: dict that says what is trained, kept in the checkpoint and compared
    show: function (losses so far, a tensor) called after each step, for a progress bar
    returns: the losses, one float per step, those before a resumption included

    In a group of processes (`torch.distributed`) all of them call it. The first writes
    the checkpoint, and Ctrl-C in any of them ends all after the same step.

    A resumed training comes to the losses of one that was never interrupted, if the
    batches do not change, or are shuffled by PyTorch's own random numbers, and the
    number of threads is the same. Without a checkpoint that number is the one that is
    faster, as in `faster_threads`, and the last digits may differ.

    Raises ValueError where there is no batch to learn from, be it after a generator
    has run dry, nothing to resume from, and as `load_checkpoint` does.

    >>> layer = torch.nn.Linear(1, 1)
    >>> losses = train(layer, [torch.ones(5, 1)], lambda m, x: m(x).square().mean(), 9)
    >>> len(losses), losses[-1] < losses[0]
    (9, True)

    Source: AdamW, Loshchilov and Hutter 2019, algorithm 2; warm-up, decay groups,
    clipping and accumulation as in nanoGPT.
    """
    if min(accumulate, save_every) < 1:
        raise ValueError(
            "expected accumulate and save_every of 1 or more, "
            f"got {accumulate} and {save_every}"
        )
    if resume and checkpoint is None:
        raise ValueError("expected a checkpoint to resume from, got None")
    groups = decay_groups(model, weight_decay)
    run = _Run(model, torch.optim.AdamW(groups, lr=lr, fused=True), steps)
    if resume:
        run.load(checkpoint, about)
    stream = _several(run.repeat(batches), accumulate)
    if checkpoint is None and run.device.type == "cpu":
        stream = faster_threads(stream)
    if _together() and dist.get_rank() != 0:
        checkpoint = None
    if checkpoint:
        remove_parts(checkpoint)
    show = show or _progress_bar(steps)
    model.train()
    try:
        with _between_steps(checkpoint or _together()) as pressed:
            while not (stopped := _anywhere(pressed, run)) and run.step < steps:
                if checkpoint and run.step % save_every == 0:
                    run.save(checkpoint, about)
                run.set_rate(learning_rate(run.step, steps, lr, warmup, final_lr))
                run.learn(next(stream), compute_loss, accumulate, clip)
                show(run.losses[: run.step])
            if checkpoint:
                run.save(checkpoint, about)
            if stopped:
                raise KeyboardInterrupt
    finally:
        model.eval()
        stream.close()
    return run.losses[: run.step].tolist()


def learning_rate(step, steps, lr, warmup=0, final_lr=None):
    """Return the learning rate of a step: up a line, then down half a cosine.

    lr * (step + 1) / warmup  in the first `warmup` steps, then, with t from 0 to 1,
    final_lr + (lr - final_lr) * (1 + cos(pi * t)) / 2;  without final_lr it stays lr

    >>> [learning_rate(step, 7, 4.0, 2, final_lr=0.0) for step in (0, 1, 2, 4, 6)]
    [2.0, 4.0, 4.0, 2.0, 0.0]

    Source: Loshchilov and Hutter 2017, section 3; the warm-up: Goyal et al. 2017.
    """
    if step < warmup:
        return lr * (step + 1) / warmup
    if final_lr is None:
        return lr
    t = (step - warmup) / max(1, steps - 1 - warmup)
    return final_lr + (lr - final_lr) * (1 + math.cos(math.pi * t)) / 2


def decay_groups(model, weight_decay):
    """Split the parameters for AdamW: only matrices that multiply shrink.

    Biases, norms and embeddings do not, nor does a matrix that is an embedding too, as
    in the output layer of `GPT`.

    returns: list of two dicts, as `torch.optim` takes them

    >>> layers = nn.Sequential(nn.Embedding(7, 5), nn.LayerNorm(5), nn.Linear(5, 3))
    >>> [[tuple(p.shape) for p in g["params"]] for g in decay_groups(layers, 0.1)]
    [[(3, 5)], [(7, 5), (5,), (5,), (3,)]]
    """
    tables = {m.weight for m in model.modules() if isinstance(m, nn.Embedding)}
    decayed, kept = [], []
    for parameter in model.parameters():
        matrix = parameter.dim() >= 2 and parameter not in tables
        (decayed if matrix else kept).append(parameter)
    return [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": kept, "weight_decay": 0.0},
    ]


class _Run:
    """Where a training stands: all that decides how it goes on."""

    def __init__(self, model, optimizer, steps):
        self.model, self.optimizer, self.step = model, optimizer, 0
        weight = next(model.parameters())
        self.device = weight.device
        # The losses stay on the device: reading one would wait for the GPU.
        dtype = torch.promote_types(weight.dtype, torch.float32)
        self.losses = torch.zeros(steps, dtype=dtype, device=self.device)
        self.round = {"taken": 0, "random": torch.get_rng_state()}

    def set_rate(self, rate):
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def learn(self, batches, compute_loss, count, clip):
        """Take one step along the mean gradient of `count` batches."""
        self.optimizer.zero_grad()
        for batch in batches:
            loss = compute_loss(self.model, to_device(batch, self.device)) / count
            loss.backward()
            self.losses[self.step].add_(loss.detach())
        if clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), clip)
        self.optimizer.step()
        self.step += 1

    def repeat(self, batches):
        """Yield batches for ever, after those that were taken before a resumption."""
        while callable(batches):
            self.round["taken"] += 1
            yield batches(self.round["taken"] - 1)
        while True:
            for batch in self._rest_of_the_round(batches):
                self.round["taken"] += 1
                yield batch
            if not self.round["taken"]:
                raise ValueError(
                    "expected batches to go through again, "
                    f"got none after {self.step} steps"
                )
            self.round["taken"] = 0

    def _rest_of_the_round(self, batches):
        now, taken = torch.get_rng_state(), self.round["taken"]
        if not taken:
            self.round["random"] = now
            return batches
        torch.set_rng_state(self.round["random"])  # it shuffles as it did before
        rest = iter(batches)
        for _ in range(taken):
            next(rest, None)
        torch.set_rng_state(now)
        return rest

    def save(self, path, about):
        save_checkpoint(
            self.model,
            path,
            about=about,
            step=self.step,
            losses=self.losses[: self.step].clone(),  # else all the rest goes along
            optimizer=self.optimizer.state_dict()["state"],
            random=_random_state(self.device),
            round=self.round,
        )

    def load(self, path, about):
        state = load_checkpoint(self.model, path, about)
        if "optimizer" not in state:
            raise ValueError(f"{path} holds weights alone, nothing to train on from")
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict(
            {"state": state["optimizer"], "param_groups": groups}
        )
        self.step, self.round = state["step"], state["round"]
        before = state["losses"].to(self.losses)
        self.losses = torch.cat((before, self.losses[self.step :]))
        torch.set_rng_state(state["random"]["cpu"])
        if "cuda" in state["random"] and self.device.type == "cuda":
            torch.cuda.set_rng_state(state["random"]["cuda"], self.device)


def _several(stream, count):
    while True:
        yield itertools.islice(stream, count)


def _random_state(device):
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def to_device(batch, device):
    """Move the tensors of a batch, in whatever lists, tuples and dicts they lie."""
    if hasattr(batch, "to"):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, dict):
        return {name: to_device(part, device) for name, part in batch.items()}
    if isinstance(batch, tuple | list):
        parts = [to_device(part, device) for part in batch]
        named = hasattr(batch, "_fields")
        return type(batch)(*parts) if named else type(batch)(parts)
    return batch


@contextlib.contextmanager
def _between_steps(wanted):
    """Let a first Ctrl-C wait until a step is done; yield a list, filled by it."""
    pressed = []

    def press(number, frame):
        pressed.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    in_main_thread = threading.current_thread() is threading.main_thread()
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not (wanted and in_main_thread and usual):
        yield pressed
        return
    signal.signal(signal.SIGINT, press)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _together():
    return dist.is_available() and dist.is_initialized()


def _anywhere(pressed, run):
    """Return whether Ctrl-C was pressed, in whichever process of a group."""
    if not _together():
        return bool(pressed)
    presses = torch.tensor(len(pressed), device=run.device)
    dist.all_reduce(presses)
    return bool(presses)


def save_checkpoint(model, path, **state):
    """Write the weights of a model and more to a file, which is never half-written.

    state: what `torch.load` reads with `weights_only=True`: numbers, tensors, dicts ...

    Raises OSError where the folder cannot be written to; an old file is kept.
    """
    buffer = io.BytesIO()
    torch.save({"model": model.state_dict(), **state}, buffer)
    write_atomically(path, buffer.getvalue())


def load_checkpoint(model, path, about=None):
    """Read the weights of a model from a file, without running any code in it.

    about: dict that the checkpoint must say of itself, as in `train`
    returns: dict, what else is in the file

    Raises FileNotFoundError where the file is missing and ValueError where it is
    damaged or holds the weights of another model; the model is then unchanged.
    """
    state = read_checkpoint(path)
    weights = state.pop("model")
    expected = _description(model.state_dict(), about)
    received = _description(weights, about and state.get("about"))
    for name in [*expected, *received]:
        if expected.get(name) != received.get(name):
            raise ValueError(
                f"{path} holds the weights of another model: {name} expected as "
                f"{expected.get(name)}, got {received.get(name)}"
            )
    model.load_state_dict(weights)
    return state


def read_checkpoint(path):
    """Read what is in a file of `save_checkpoint`, without running any code in it.

    returns: dict, with the weights as "model"

    Raises FileNotFoundError where the file is missing and ValueError where it is
    damaged.
    """
    content = io.BytesIO(Path(path).read_bytes())
    try:
        if damaged := zipfile.ZipFile(content).testzip():  # torch.load would not look
            raise ValueError(f"{damaged} is damaged")
        content.seek(0)
        state = torch.load(content, map_location="cpu", weights_only=True)
        [p.shape for p in state["model"].values()]
    except Exception as error:
        why = str(error).partition("\n")[0].partition(". ")[0]  # the rest advises
        raise ValueError(f"{path} is no checkpoint: {why}") from error
    return state


def _description(weights, about):
    return {**(about or {}), **{name: tuple(p.shape) for name, p in weights.items()}}


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
