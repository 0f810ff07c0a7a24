"""A GPT of any text: the command that trains it, and how it is read back.

    python -m utils.training TEXT [--steps N] [--checkpoint FILE] ...
    torchrun --nproc-per-node 2 -m utils.training TEXT ...

The command reads a text as notebook 09 does, in bytes and in byte pairs learned on it:
no alphabet has to be chosen, no character is unknown, frequent words are one token.
"""

import argparse
import functools
import hashlib
import random
import sys
from pathlib import Path

import torch

from utils.data import sliding_windows
from utils.model import GPT, generate, next_token_loss
from utils.parallel import has_own_gpu, processes, split_batch_over_processes
from utils.tokenizer import WORD, decode_bpe, encode_bpe, train_bpe
from utils.training import (
    TrainingConfig,
    load_checkpoint,
    read_checkpoint,
    to_device,
    train,
)

SIZES = "vocabulary", "context", "width", "heads", "layers"  # as `GPT` takes them
COUNTS = {  # the options that are whole numbers: default and meaning
    "steps": (1000, "steps in all"),
    "save-every": (100, "steps from one checkpoint and report to the next"),
    "batch": (8, "windows in a batch"),
    "accumulate": (1, "batches in a step"),
    "context": (64, "tokens in a window"),
    "width": (96, "features of a token"),
    "heads": (4, "heads in a block, a divisor of the width"),
    "layers": (2, "blocks"),
    "merges": (256, "byte pairs to learn on the text"),
}


def load_text_model(path):
    """Make a model that writes of what `python -m utils.training` has kept.

    path: the FILE behind `--checkpoint`
    returns: the model, on the CPU and in evaluation mode; encode, a function from a
        text to its list of token ids; and decode, from such a list to the text

    Raises FileNotFoundError where the file is missing, and ValueError where it is
    damaged or was not written by this command.
    """
    about = read_checkpoint(path)["metadata"]
    if not isinstance(about, dict) or not {*SIZES, "merges"} <= about.keys():
        raise ValueError(
            f"expected a checkpoint of `python -m utils.training`, got {path}, "
            "which does not say what it was trained on"
        )
    model, merges = _gpt(about), _merges(about)
    load_checkpoint(model, path)
    encode = functools.partial(encode_bpe, merges=merges)
    return model.eval(), encode, functools.partial(decode_bpe, merges=merges)


def main(arguments=None):
    """Train the course's GPT on a text: `python -m utils.training --help`.

    returns: the exit code: 0, 2 after an error, 130 after Ctrl-C
    """
    options = _options(arguments)
    with processes() as (rank, world_size):
        complain = functools.partial(print, file=sys.stderr) if rank == 0 else _silent
        try:
            _train_on_text(options, world_size, print if rank == 0 else _silent)
        except KeyboardInterrupt:
            file = options.checkpoint
            kept = file and file.exists()
            goes_on = f"the same command goes on from {file}"
            complain(f"\nstopped: {goes_on if kept else 'nothing is kept'}")
            return 130
        except (OSError, ValueError) as error:
            name = getattr(error, "filename", None)
            complain(f"error: {f'{name}: {error.strerror}' if name else error}")
            return 2
    return 0


def _silent(*words, **options):
    """Print nothing: all processes but the first do so."""


def _options(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m utils.training",
        description="Train the course's GPT on a text, then let it write.",
        epilog="The last tenth of the text is held out. The training loss is the mean "
        "of the last 50 steps. Losses are in nats per token.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("text", metavar="TEXT", type=Path, help="a file of text, in UTF-8")
    file = "a file to keep the training in: after a crash or Ctrl-C the same command "
    file += "goes on from it, to the same losses"
    add("--checkpoint", metavar="FILE", type=Path, help=file)
    for name, (default, meaning) in COUNTS.items():
        add(f"--{name}", metavar="N", type=_positive, default=default, help=meaning)
    add("--lr", metavar="X", type=float, default=1.5e-3, help="learning rate")
    add("--dropout", metavar="X", type=float, default=0.1, help="share dropped")
    add("--seed", metavar="N", type=int, default=0, help="of weights and batches")
    options = parser.parse_args(arguments)
    if not 0 <= options.dropout < 1:
        parser.error(f"expected --dropout from 0 to below 1, got {options.dropout}")
    return options


def _positive(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, got {text}")
    return int(text)


def _train_on_text(options, world_size, say):
    ids, held_ids, about = _prepare(options)
    torch.manual_seed(options.seed)  # of all processes, which so drop the same, too
    device = "cuda" if has_own_gpu() else "cpu"
    model = _gpt(about, options.dropout).to(device)
    size = sum(parameter.numel() for parameter in model.parameters())
    counts = f"{len(ids):,} tokens, {len(held_ids):,} held out"
    say(f"{counts}, {size:,} parameters", flush=True)
    numbers = (options.context, options.batch, options.seed)
    resume = bool(options.checkpoint and options.checkpoint.exists())
    compute_loss = next_token_loss
    if world_size > 1:  # none goes on before all have looked for the file
        compute_loss = split_batch_over_processes(model, next_token_loss)

    def report(losses):
        step, mean = len(losses), losses[-50:].mean()
        held = held_out_loss(model, held_ids, options.context, options.batch)
        return f"step {step}  training loss {mean:.4f}  held-out loss {held:.4f}"

    def show(losses):
        if len(losses) % options.save_every == 0 and len(losses) < options.steps:
            say(report(losses), flush=True)

    config = TrainingConfig(
        warmup=min(50, options.steps // 10),
        final_lr=options.lr / 10,
        weight_decay=0.1,
        clip=1.0,
        accumulate=options.accumulate,
        checkpoint=options.checkpoint,
        save_every=options.save_every,
        resume=resume,
        metadata=about,
    )
    losses = train(
        model,
        lambda number: draw_windows(ids, *numbers, number),
        compute_loss,
        options.steps,
        options.lr,
        show_progress=False,
        on_step=show,
        config=config,
    )
    torch.manual_seed(options.seed)
    start = held_ids[None, :4].to(device)
    written = generate(model, start, 150, temperature=0.8)[0].tolist()
    sample = decode_bpe(written, _merges(about))
    say(f"\n{sample}\n\n{report(torch.tensor(losses))}")


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


def _gpt(about, dropout=0.0):
    return GPT(*(about[size] for size in SIZES), dropout)


def _merges(about):
    return {tuple(pair): 256 + i for i, pair in enumerate(about["merges"])}


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
def held_out_loss(model, ids, context_length, batch_size=8):
    """Return the mean loss of a text that the model doesn't learn from, per token.

    It's measured without dropout; afterwards the model is in its mode as before. Of a
    long text, windows from 128 places are read.

    ids: (N,)
    returns: scalar tensor

    >>> model = GPT(11, context_length=5, d_model=8, num_heads=2, num_layers=1)
    >>> held_out_loss(model, torch.arange(11), context_length=5).shape
    torch.Size([])
    """
    stride = max(context_length, len(ids) // 128)
    windows = sliding_windows(ids, context_length, stride)
    device = next(model.parameters()).device
    was_training, total = model.training, 0.0
    model.eval()
    for batch in zip(*(part.split(batch_size) for part in windows)):
        loss = next_token_loss(model, to_device(batch, device))
        total += loss * len(batch[0])
    model.train(was_training)
    return total / len(windows[0])
