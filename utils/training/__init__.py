"""The training loop of the course, and its checkpoints.

`python -m utils.training TEXT` trains a GPT on a text, see `utils.training.text`.
"""

import contextlib
import io
import json
import math
import signal
import sys
import threading
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from utils.checkpoints import check_equal, check_weight_shapes
from utils.files import write_atomically
from utils.validation import (
    NonNegativeFloat,
    NonNegativeInt,
    Proportion,
    check_inputs,
    check_int,
    check_number,
    check_type,
    raise_unless,
    raise_value_error,
)


@check_inputs()
def learning_rate(
    step: NonNegativeInt,
    steps: NonNegativeInt,
    lr: NonNegativeFloat,
    warmup: NonNegativeInt = 0,
    final_lr: float | None = None,
    decline: Proportion = 1.0,
) -> float:
    """Return the learning rate of a step: a linear rise, then half a cosine.

    The cosine ends at final_lr, at most lr, where the rate stays; without it at lr.
    With decline below 1 the rate stays at lr until the last such fraction of the steps.
    Stop before the decline begins, and you can resume with a larger `steps` as if you
    had planned it.

    >>> [learning_rate(step, 7, 4.0, 2, final_lr=0.0) for step in (0, 1, 2, 4, 6)]
    [2.0, 4.0, 4.0, 2.0, 0.0]
    >>> [learning_rate(step, 5, 4.0, 0, 0.0, decline=0.5) for step in (0, 1, 2, 3, 4)]
    [4.0, 4.0, 4.0, 2.0, 0.0]

    Source: Loshchilov and Hutter 2017, section 3; the warm-up: Goyal et al. 2017; the
    late decline: Hu et al. 2024, section 4.
    """
    if step < warmup:
        return lr * (step + 1) / warmup
    if final_lr is None:
        return lr
    check_number("final_lr", final_lr, maximum=lr)
    start = max(warmup, (steps - 1) * (1 - decline))
    t = min(1.0, max(0.0, step - start) / max(1e-9, steps - 1 - start))
    return final_lr + (lr - final_lr) * (1 + math.cos(math.pi * t)) / 2


@check_inputs()
def decay_groups(model: nn.Module, weight_decay: NonNegativeFloat) -> list[dict]:
    """Split the parameters into two groups: AdamW shrinks only the first.

    Biases, norms and embeddings are in the second, and so is a matrix that is also an
    embedding, like the output head of `GPT`.

    returns: list of two dicts, as `torch.optim` takes them

    >>> layers = nn.Sequential(nn.Embedding(7, 5), nn.LayerNorm(5), nn.Linear(5, 3))
    >>> [[tuple(p.shape) for p in g["params"]] for g in decay_groups(layers, 0.1)]
    [[(3, 5)], [(7, 5), (5,), (5,), (3,)]]
    """
    embeddings = {m.weight for m in model.modules() if isinstance(m, nn.Embedding)}
    decay, no_decay = [], []
    for parameter in model.parameters():
        is_matrix = parameter.dim() >= 2 and parameter not in embeddings
        (decay if is_matrix else no_decay).append(parameter)
    return [
        {"params": decay, "weight_decay": weight_decay},
        {"params": no_decay, "weight_decay": 0.0},
    ]


@dataclass(frozen=True)
class TrainingConfig:
    """Settings of a training run that most runs leave as they are.

    warmup, final_lr, decline: as in `learning_rate`
    weight_decay: as in `decay_groups`
    clip: the largest norm of the gradient, above 0; None for no limit
    checkpoint: a file from which training continues, if it exists. It is written before
        the first step, every `save_every` steps, at the end, and after Ctrl-C, which
        waits until the current step is done.
    metadata: dict that describes the training run, stored in the checkpoint. Training
        continues only if the dict in the checkpoint equals this one, so it may contain
        strings, numbers (no NaN), lists and dicts, but not, for example, a Path.
    """

    warmup: int = 0
    final_lr: float | None = None
    decline: float = 1.0
    weight_decay: float = 0.01
    clip: float | None = None
    checkpoint: str | Path | None = None
    save_every: int = 100
    metadata: dict | None = None

    def __post_init__(self):
        check_int("save_every", self.save_every)
        if self.clip is not None:
            check_number("clip", self.clip, above_zero=True)
        check_type("metadata", {} if self.metadata is None else self.metadata, dict)
        json.dumps(self.metadata, allow_nan=False)  # raises for what can't be stored


@check_inputs()
def train(
    model: nn.Module,
    batches: Sequence | Callable[[int], Any],
    compute_loss: Callable[[nn.Module, Any], Tensor],
    steps: NonNegativeInt,
    lr: float = 1e-3,
    *,
    show_progress: bool = True,
    on_step: Callable[[Tensor], Any] | None = None,
    config: TrainingConfig = TrainingConfig(),  # noqa: B008 (it is frozen)
) -> list[float]:
    """Minimise a loss with AdamW.

    model: the module to train; afterwards it is in evaluation mode, also after Ctrl-C
    batches: a list, used again from its start when all batches are used up, or a
        function from a number (0, 1, 2 ...) to a batch, which is moved to the device
    compute_loss: function (model, batch) -> scalar tensor
    on_step: function called after each step with the losses so far, a tensor
    returns: the losses, one float per step, with those of the checkpoint

    On a CUDA device the loss is computed under autocast, in bfloat16 if the GPU has it,
    else in float16 with a gradient scaler.

    In a group of processes (`torch.distributed`) every process calls this function. The
    first one writes the checkpoint, and Ctrl-C in one of them stops all of them after
    the same step.

    A resumed run ends with the losses of an uninterrupted one, if the batches are the
    same. A loss compiled for a GPU needs `torch.use_deterministic_algorithms`, too.

    Raises ValueError for a checkpoint that is damaged or of another model; the model
    then stays as it was. A loss of infinity or NaN raises it, too (on a GPU up to 50
    steps late), and isn't saved.

    >>> layer = torch.nn.Linear(1, 1)
    >>> losses = train(layer, [torch.ones(5, 1)], lambda m, x: m(x).square().mean(), 9)
    >>> len(losses), losses[-1] < losses[0]
    (9, True)

    Source: AdamW, Loshchilov and Hutter 2019, algorithm 2; warm-up, decay groups and
    clipping as in nanoGPT.
    """
    expected = "a list of batches, or a function from a number to a batch"
    received = f"{type(batches).__name__}: pass [batch], or list(…) of a DataLoader"
    is_usable = callable(batches) or isinstance(batches, Sequence)
    raise_unless(is_usable, expected, received)
    raise_unless(callable(batches) or len(batches), "one batch or more", "none")
    state = _TrainingState(model, steps, lr, config)
    if config.checkpoint is not None and Path(config.checkpoint).exists():
        state.load()
    get_batch = batches if callable(batches) else lambda i: batches[i % len(batches)]
    callbacks = [on_step] if on_step else []
    if show_progress and _is_in_notebook():
        callbacks.append(_show_progress(steps))
    is_first_process = not _is_distributed() or dist.get_rank() == 0
    writes_checkpoint = config.checkpoint is not None and is_first_process
    model.train()
    try:
        with _defer_interrupt() as interrupts:
            interrupted = False
            while state.step < steps and not interrupted:
                if writes_checkpoint and state.step % config.save_every == 0:
                    state.save()
                state.train_step(get_batch, compute_loss)
                for callback in callbacks:
                    callback(state.losses[: state.step])
                interrupted = _interrupted_on_any_rank(interrupts, state.device)
            state.check_finite_losses()
            state.check_finite_weights()
            if writes_checkpoint:
                state.save()
            if interrupted:
                raise KeyboardInterrupt
    finally:
        model.eval()
    return state.losses[: state.step].tolist()


class _TrainingState:
    """Everything that decides how a training run continues."""

    def __init__(self, model, steps, lr, config):
        self.model, self.steps, self.config = model, steps, config
        weight = next((w for w in model.parameters() if w.requires_grad), None)
        raise_unless(weight is not None, "a model with weights to train", "none")
        self.device = weight.device
        groups = decay_groups(model, config.weight_decay)
        self.optimizer = torch.optim.AdamW(groups, lr=lr, fused=True)
        self.autocast_dtype = _autocast_dtype(self.device)
        is_scaled = self.autocast_dtype == torch.float16
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=is_scaled)
        self.schedule = lr, config.warmup, config.final_lr, config.decline
        learning_rate(0, steps, *self.schedule)  # checks them
        self.step = 0
        # The losses stay on the device, because reading one would wait for the GPU.
        dtype = torch.promote_types(weight.dtype, torch.float32)
        self.losses = torch.zeros(steps, dtype=dtype, device=self.device)

    def train_step(self, get_batch, compute_loss):
        rate = learning_rate(self.step, self.steps, *self.schedule)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad()
        batch = to_device(get_batch(self.step), self.device)
        with torch.autocast(
            self.device.type, self.autocast_dtype, self.autocast_dtype is not None
        ):
            loss = compute_loss(self.model, batch)
        check_type("the loss", loss)
        is_valid = loss.dim() == 0 and loss.requires_grad
        received = loss.shape if loss.dim() else "a loss without a gradient"
        raise_unless(is_valid, "the loss as a scalar with a gradient", received)
        self.losses[self.step] = loss.detach()
        if self.device.type == "cpu":  # a GPU would have to wait for the loss
            self.check_finite_losses()
        self.scaler.scale(loss).backward()
        if self.config.clip is not None:
            self.scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.step += 1
        # In a group of processes this raises after the same step in all of them.
        if 0 in (self.step % 50, self.step % self.config.save_every):
            self.check_finite_losses()

    def check_finite_losses(self):
        losses = self.losses[: self.step + 1]  # the last of them may still be 0
        bad_steps = (~losses.isfinite()).nonzero().flatten().tolist()
        if bad_steps:
            received = f"{losses[bad_steps[0]].item()} in step {bad_steps[0]}"
            raise_value_error("a finite loss in each step", received)

    def check_finite_weights(self):
        is_finite = all(w.isfinite().all() for w in self.model.parameters())
        raise_unless(is_finite, "finite weights", "infinity or NaN")

    def save(self):
        self.check_finite_weights()
        random = {"cpu": torch.get_rng_state()}
        if self.device.type == "cuda":
            random["cuda"] = torch.cuda.get_rng_state(self.device)
        state = {
            "model": _strip_compiled_prefix(self.model.state_dict()),
            "metadata": self.config.metadata,
            "step": self.step,
            "losses": self.losses[: self.step].clone(),  # a slice would save all
            "optimizer": self.optimizer.state_dict()["state"],
            "scaler": self.scaler.state_dict(),
            "random": random,
        }
        buffer = io.BytesIO()
        torch.save(state, buffer)
        write_atomically(self.config.checkpoint, buffer.getvalue())

    def load(self):
        path = self.config.checkpoint
        saved = read_checkpoint(path)
        check_equal(self.config.metadata or {}, saved["metadata"], path)
        names = _strip_compiled_prefix({name: name for name in self.model.state_dict()})
        weights = _strip_compiled_prefix(saved["model"])
        weights = {names.get(name, name): weight for name, weight in weights.items()}
        check_weight_shapes(self.model, weights, path)
        step, expected = saved["step"], f"{self.steps} steps or fewer"
        raise_unless(step <= self.steps, expected, step, where=path)
        groups = self.optimizer.state_dict()["param_groups"]
        state = {"state": saved["optimizer"], "param_groups": groups}
        self.optimizer.load_state_dict(state)
        if saved["scaler"]:
            self.scaler.load_state_dict(saved["scaler"])
        self.step = saved["step"]
        self.losses[: self.step] = saved["losses"]
        self.model.load_state_dict(weights)
        torch.set_rng_state(saved["random"]["cpu"])
        if "cuda" in saved["random"] and self.device.type == "cuda":
            torch.cuda.set_rng_state(saved["random"]["cuda"], self.device)


def _strip_compiled_prefix(weights):
    """Return a dict whose names are the same for a compiled module and for another."""
    return {name.replace("_orig_mod.", ""): w for name, w in weights.items()}


def _autocast_dtype(device):
    """Return the type in which a device multiplies fastest, None for no autocast."""
    if device.type != "cuda":
        return None
    has_bfloat16 = torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.bfloat16 if has_bfloat16 else torch.float16


def to_device(batch: Any, device: torch.device) -> Any:
    """Move the tensors of a batch, also those in lists, tuples and dicts."""
    return tree_map_only(Tensor, lambda t: t.to(device, non_blocking=True), batch)


@contextlib.contextmanager
def _defer_interrupt():
    """Let a first Ctrl-C wait, and yield a list that it is added to."""
    interrupts = []

    def on_sigint(number, frame):
        interrupts.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    in_main_thread = threading.current_thread() is threading.main_thread()
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not (in_main_thread and is_default):
        yield interrupts
        return
    signal.signal(signal.SIGINT, on_sigint)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_distributed():
    return dist.is_available() and dist.is_initialized()


def _interrupted_on_any_rank(interrupts, device):
    """Return whether Ctrl-C was pressed in this process or another of its group."""
    if not _is_distributed():
        return bool(interrupts)
    count = torch.tensor(len(interrupts), device=device)
    dist.all_reduce(count)
    return bool(count)


SAVED = {"step", "losses", "model", "optimizer", "scaler", "random", "metadata"}


def read_checkpoint(path: str | Path) -> dict:
    """Read a file that `train` has written, without running any code in it.

    returns: dict, with the weights as "model" and with the "metadata"

    Raises FileNotFoundError if the file is missing, and ValueError if it is damaged.
    """
    content = io.BytesIO(Path(path).read_bytes())
    try:
        if name := zipfile.ZipFile(content).testzip():  # torch.load doesn't check this
            raise ValueError(f"{name} is damaged")
        content.seek(0)
        state = torch.load(content, map_location="cpu", weights_only=True)
        if missing := SAVED - state.keys():
            raise ValueError(f"it has no {', '.join(sorted(missing))}")
        state["metadata"] = state["metadata"] or {}
    except Exception as error:
        reason = str(error).partition("\n")[0]  # without the advice
        raise ValueError(f"{path} is no checkpoint: {reason}") from error
    return state


def _is_in_notebook():
    ipython = sys.modules.get("IPython")  # not imported: it may not be installed
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _show_progress(steps):
    """Show the step and the loss in a notebook; return the function that updates them.

    At the end only the number of steps stays, the same for every run and machine.
    """
    from IPython.display import display

    text = f"training, {steps} steps"
    line = display({"text/plain": text}, raw=True, display_id=True)

    def update(losses):
        if len(losses) == steps:
            line.update({"text/plain": text}, raw=True)
        elif len(losses) % (steps // 100 + 1) == 0:
            now = f"{text}: {len(losses)} done, loss {losses[-1]:.3f}"
            line.update({"text/plain": now}, raw=True)

    return update
