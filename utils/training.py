"""The training loop of the course, and the command that trains its GPT on any text.

    python -m utils.training TEXT [--steps N] [--checkpoint FILE] ...

The command reads a text as notebook 09 does, in bytes and in byte pairs learned on it:
no alphabet has to be chosen, no character is unknown, frequent words are one token.
After equally many seconds this writes better than single characters do.
"""

import argparse
import contextlib
import functools
import hashlib
import io
import itertools
import math
import random
import signal
import sys
import threading
import time
import zipfile
from pathlib import Path

import torch
from IPython import get_ipython
from IPython.display import display
from torch import nn

from utils.data import sliding_windows
from utils.files import remove_parts, write_atomically
from utils.model import GPT, generate, next_token_loss
from utils.tokenizer import WORD, decode_bpe, encode_bpe, train_bpe


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
    checkpoint: a file for all that `resume=True` needs, written at the start, every
        `save_every` steps, at the end, and on Ctrl-C, which waits for the step's end
    warmup, final_lr: as in `learning_rate`;  weight_decay: as in `decay_groups`
    clip: the largest norm of the gradient;  accumulate: batches in a step
    about: dict that says what is trained, kept in the checkpoint and compared
    show: function (losses so far, a tensor) called after each step, for a progress bar
    returns: the losses, one float per step, those before a resumption included

    A resumed training comes to the losses of one that was never interrupted, if the
    batches do not change, or are shuffled by PyTorch's own random numbers.

    Raises ValueError where there is no batch to learn from, be it after a generator
    has run dry, and as `load_checkpoint` does.

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
    groups = decay_groups(model, weight_decay)
    run = _Run(model, torch.optim.AdamW(groups, lr=lr, fused=True), steps)
    if checkpoint:
        remove_parts(checkpoint)
    if resume:
        run.load(checkpoint, about)
    stream = run.repeat(batches)
    show = show or _progress_bar(steps)
    model.train()
    try:
        with _between_steps(checkpoint) as stopped:
            while run.step < steps and not stopped:
                if checkpoint and run.step % save_every == 0:
                    run.save(checkpoint, about)
                run.set_rate(learning_rate(run.step, steps, lr, warmup, final_lr))
                several = itertools.islice(stream, accumulate)
                run.learn(several, compute_loss, accumulate, clip)
                show(run.losses[: run.step])
            if checkpoint:
                run.save(checkpoint, about)
            if stopped:
                raise KeyboardInterrupt
    finally:
        model.eval()
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
            loss = compute_loss(self.model, _to_device(batch, self.device)) / count
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


def _random_state(device):
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def _to_device(batch, device):
    if hasattr(batch, "to"):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, dict):
        return {name: _to_device(part, device) for name, part in batch.items()}
    if isinstance(batch, tuple | list):
        parts = [_to_device(part, device) for part in batch]
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
    state = _read_checkpoint(path)
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


def _read_checkpoint(path):
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


# The command


def main(arguments=None):
    """Train the course's GPT on a text: `python -m utils.training --help`.

    returns: the exit code: 0, 2 after an error, 130 after Ctrl-C
    """
    options = _options(arguments)
    try:
        _train_on_text(options)
    except KeyboardInterrupt:
        file = options.checkpoint
        kept = f"the same command goes on from {file}" if file else "nothing is kept"
        print(f"\nstopped: {kept}", file=sys.stderr)
        return 130
    except (OSError, ValueError) as error:
        name = getattr(error, "filename", None)
        said = f"{name}: {error.strerror}" if name else error
        print(f"error: {said}", file=sys.stderr)
        return 2
    return 0


def _options(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m utils.training",
        description="Train the course's GPT on a text, then let it write.",
        epilog="The last tenth of the text is held out. The training loss is the mean "
        "of the last 50 steps. Losses are in nats per token.",
    )
    add = parser.add_argument
    add("text", metavar="TEXT", type=Path, help="a file of text, in UTF-8")
    file = "a file to keep the training in: after a crash or Ctrl-C the same command "
    file += "goes on from it, to the same losses"
    add("--checkpoint", metavar="FILE", type=Path, help=file)
    for name, default, help in (
        ("steps", 1000, "steps in all"),
        ("save-every", 100, "steps from one checkpoint and report to the next"),
        ("batch", 8, "windows in a batch"),
        ("accumulate", 1, "batches in a step"),
        ("context", 64, "tokens in a window"),
        ("width", 96, "features of a token"),
        ("heads", 4, "heads in a block, a divisor of the width"),
        ("layers", 2, "blocks"),
        ("merges", 256, "byte pairs to learn on the text"),
    ):
        help = f"{help} ({default})"
        add(f"--{name}", metavar="N", type=_positive, default=default, help=help)
    add("--lr", metavar="X", type=float, default=1.5e-3, help="learning rate (0.0015)")
    add("--dropout", metavar="X", type=float, default=0.1, help="share dropped (0.1)")
    add("--seed", metavar="N", type=int, default=0, help="of weights and batches (0)")
    return parser.parse_args(arguments)


def _positive(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, got {text}")
    return int(text)


def _train_on_text(options):
    ids, held_ids, about = _prepare(options)
    torch.manual_seed(options.seed)
    model = _gpt(about, options.dropout)
    size = sum(parameter.numel() for parameter in model.parameters())
    counts = f"{len(ids):,} tokens, {len(held_ids):,} held out"
    print(f"{counts}, {size:,} parameters", flush=True)
    report = functools.partial(_report, model, held_ids, options)
    numbers = (options.context, options.batch, options.seed)
    losses = train(
        model,
        lambda number: draw_windows(ids, *numbers, number),
        next_token_loss,
        options.steps,
        options.lr,
        options.checkpoint,
        warmup=min(50, options.steps // 10),
        final_lr=options.lr / 10,
        weight_decay=0.1,
        clip=1.0,
        accumulate=options.accumulate,
        save_every=options.save_every,
        resume=bool(options.checkpoint and options.checkpoint.exists()),
        about=about,
        show=_reporter(options, report),
    )
    torch.manual_seed(options.seed)
    print(f"\n{_sample(model, held_ids, about)}\n\n{report(torch.tensor(losses))}")


def _prepare(options):
    """Return the tokens to train on, those held out, and what is to be trained."""
    text = _read_text(options.text)
    border = len(text) * 9 // 10
    merges = train_bpe(text[: min(border, 1_000_000)], options.merges)
    parts = [_encode(part, merges) for part in (text[:border], text[border:])]
    fewest = min(map(len, parts))
    if fewest <= options.context:
        raise ValueError(
            f"{options.text} is too short: a part of it has {fewest} tokens, expected "
            f"more than --context {options.context} to train on and in the last tenth"
        )
    about = {name: getattr(options, name) for name in ("context", "width", "heads")}
    about |= {"layers": options.layers, "vocabulary": 256 + len(merges)}
    about["text"] = f"SHA-256 {hashlib.sha256(text.encode()).hexdigest()}"
    about["merges"] = [list(pair) for pair in merges]  # to read the tokens with
    return *parts, about


def _read_text(path):
    try:
        text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ValueError(f"{path} is no text: expected UTF-8, got other bytes")
    if not text.strip():
        raise ValueError(f"{path} is empty: expected a text")
    return text


def _encode(text, merges):
    words = WORD.findall(text)
    pieces = {word: encode_bpe(word, merges) for word in set(words)}
    return torch.tensor([i for word in words for i in pieces[word]])


def _gpt(about, dropout):
    names = ("vocabulary", "context", "width", "heads", "layers")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return GPT(*(about[name] for name in names), dropout).to(device)


def draw_windows(ids, context_length, batch_size, seed, number):
    """Draw the batch with this number: the same in every process and after a crash.

    ids: (N,)
    returns: inputs and targets, both (batch_size, context_length)

    >>> draw_windows(torch.arange(90), 4, batch_size=2, seed=0, number=7)[0]
    tensor([[13, 14, 15, 16],
            [72, 73, 74, 75]])
    """
    draw = random.Random(f"{seed}, {number}")
    starts = [draw.randrange(len(ids) - context_length) for _ in range(batch_size)]
    windows = ids[torch.tensor(starts)[:, None] + torch.arange(context_length + 1)]
    return windows[:, :-1], windows[:, 1:]  # (B, T) each


@torch.no_grad()
def _held_out_loss(model, ids, options):
    stride = max(options.context, len(ids) // 128)  # of a long text, 128 windows
    windows = sliding_windows(ids, options.context, stride)
    device = next(model.parameters()).device
    was_training, total = model.training, 0.0
    model.eval()
    for batch in zip(*(part.split(options.batch) for part in windows)):
        loss = next_token_loss(model, _to_device(batch, device))
        total += loss * len(batch[0])
    model.train(was_training)
    return total / len(windows[0])


def _report(model, held_ids, options, losses):
    held = _held_out_loss(model, held_ids, options)
    step, mean = len(losses), losses[-50:].mean()
    return f"step {step}  training loss {mean:.4f}  held-out loss {held:.4f}"


def _sample(model, held_ids, about):
    start = held_ids[None, :4].to(next(model.parameters()).device)
    ids = generate(model, start, 150, temperature=0.8)[0].tolist()
    merges = {tuple(pair): 256 + i for i, pair in enumerate(about["merges"])}
    return decode_bpe(ids, merges)


def _reporter(options, report):
    """Return what shows the losses: a bar in a terminal, and now and then a line."""
    terminal, drawn = sys.stderr.isatty(), 0.0

    def show(losses):
        nonlocal drawn
        step, steps = len(losses), options.steps
        if terminal and (time.monotonic() - drawn > 0.2 or step == steps):
            drawn = time.monotonic()
            bar = f"{'#' * (30 * step // steps):.<30}"
            text = f"\r{bar} {step} of {steps}  loss {losses[-1]:.3f} "
            print(text, end="", file=sys.stderr, flush=True)
        if step % options.save_every == 0 and step < steps:
            line = report(losses)
            print(f"\r{line:79}" if terminal else line, flush=True)

    return show


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="replace")  # a sample may not fit into the terminal
    sys.exit(main())
