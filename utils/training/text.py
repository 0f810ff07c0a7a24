"""Train a GPT on any text, and load it again.

    python -m utils.training TEXT [--steps N] [--checkpoint FILE] ...
    torchrun --nproc-per-node 2 -m utils.training TEXT ...

Tokens are bytes and byte pairs learned on the text, as in notebook 08, so every
character has an encoding, and frequent words are single tokens.
"""

import argparse
import hashlib
import os
import random
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from utils.data import sliding_windows
from utils.model import GPT, generate, next_token_loss
from utils.parallel import has_own_gpu, processes, split_batch_over_processes
from utils.tokenizer import decode_bpe, encode_bpe, train_bpe
from utils.training import TrainingConfig, read_checkpoint, to_device, train

SIZES = "vocabulary", "context", "width", "heads", "layers"  # in the order of `GPT`


def load_text_model(
    path: str | Path,
) -> tuple[GPT, Callable[[str], list[int]], Callable[[list[int]], str]]:
    """Load a model that `python -m utils.training` trained.

    path: the file given as `--checkpoint`
    returns: the model, on the CPU and in evaluation mode; a function that encodes a
        text as a list of token ids; and a function that decodes such a list

    Raises ValueError if the file is damaged or was not written by this command.
    """
    saved = read_checkpoint(path)
    metadata = saved["metadata"]
    if "merges" not in metadata:
        raise ValueError(f"{path} was not written by `python -m utils.training`")
    model, merges = _build_gpt(metadata), _merges(metadata)
    model.load_state_dict(saved["model"])
    encode, decode = (partial(f, merges=merges) for f in (encode_bpe, decode_bpe))
    return model.eval(), encode, decode


def main(arguments: list[str] | None = None) -> int:
    """Train a GPT on a text, see `python -m utils.training --help`.

    returns: the exit code: 0, 2 after an error, 130 after Ctrl-C
    """
    options = _parse(arguments)
    with processes() as (rank, num_processes):
        write = print if rank == 0 else lambda *words, **options: None
        try:
            _train_on_text(options, num_processes, write)
        except KeyboardInterrupt:
            outcome = "nothing is saved"
            if options.checkpoint and options.checkpoint.exists():
                outcome = f"the same command continues from {options.checkpoint}"
            write(f"\nstopped: {outcome}", file=sys.stderr)
            return 130
        except (OSError, ValueError) as error:
            write(f"error: {error}", file=sys.stderr)
            return 2
    return 0


def _parse(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m utils.training",
        description="Train a GPT on a text, and print a sample of what it generates.",
        epilog="The last tenth of the text is held out. The training loss is the mean "
        "of the last 50 steps. Losses are in nats per token.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    count = {"metavar": "N", "type": _positive}
    add("text", metavar="TEXT", type=Path, help="a text file in UTF-8")
    checkpoint_help = "a file to save the training run in: after a crash or Ctrl-C the "
    checkpoint_help += "same command continues from it and ends with the same losses"
    add("--checkpoint", metavar="FILE", type=Path, help=checkpoint_help)
    add("--steps", default=1000, help="number of steps", **count)
    saving_help = "steps between checkpoints, and between reports"
    add("--save-every", default=100, help=saving_help, **count)
    add("--batch", default=8, help="windows per batch", **count)
    add("--context", default=64, help="tokens per window", **count)
    add("--width", default=96, help="features per token", **count)
    add("--heads", default=4, help="heads per block, a divisor of the width", **count)
    add("--layers", default=2, help="number of blocks", **count)
    add("--merges", default=256, help="byte pairs to learn on the text", **count)
    add("--lr", metavar="X", type=float, default=1.5e-3, help="learning rate")
    add("--dropout", metavar="X", type=_fraction, default=0.1, help="fraction dropped")
    add("--seed", metavar="N", type=int, default=0, help="of weights and batches")
    add("--compile", action="store_true", help="compile the model with torch.compile")
    return parser.parse_args(arguments)


def _positive(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, got {text}")
    return int(text)


def _fraction(text):
    try:
        if 0 <= float(text) < 1:
            return float(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"expected a number from 0 to below 1, got {text}")


def _train_on_text(options, num_processes, write):
    ids, held_out_ids, metadata = _prepare(options)
    torch.manual_seed(options.seed)  # the same weights and dropout in all processes
    device = "cuda" if has_own_gpu() else "cpu"
    if device == "cuda":
        _configure_gpu(is_exact=options.compile and options.checkpoint is not None)
    model = _build_gpt(metadata, options.dropout).to(device)
    num_parameters = sum(parameter.numel() for parameter in model.parameters())
    counts = f"{len(ids):,} tokens, {len(held_out_ids):,} held out"
    write(f"{counts}, {num_parameters:,} parameters", flush=True)
    config = TrainingConfig(
        warmup=min(50, options.steps // 10),
        final_lr=options.lr / 10,
        weight_decay=0.1,
        clip=1.0,
        checkpoint=options.checkpoint,
        save_every=options.save_every,
        metadata=metadata,
    )
    compute_loss = (
        torch.compile(next_token_loss) if options.compile else next_token_loss
    )
    if num_processes > 1:
        compute_loss = split_batch_over_processes(model, compute_loss)

    def report(losses):
        loss = held_out_loss(model, held_out_ids, options.context, options.batch)
        training = f"training loss {losses[-50:].mean():.4f}"
        return f"step {len(losses)}  {training}  held-out loss {loss:.4f}"

    def on_step(losses):
        if len(losses) % options.save_every == 0 and len(losses) < options.steps:
            write(report(losses), flush=True)

    losses = train(
        model,
        partial(draw_windows, ids, options.context, options.batch, options.seed),
        compute_loss,
        options.steps,
        options.lr,
        show_progress=False,
        on_step=on_step,
        config=config,
    )
    torch.manual_seed(options.seed)
    prompt = held_out_ids[None, :4].to(device)
    generated = generate(model, prompt, 150, temperature=0.8)[0].tolist()
    sample = decode_bpe(generated, _merges(metadata))
    write(f"\n{sample}\n\n{report(torch.tensor(losses))}")


def _configure_gpu(is_exact):
    """Choose TensorFloat32, and for a compiled model kernels that repeat their sums."""
    torch.set_float32_matmul_precision("high")  # for losses outside of autocast
    if is_exact:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True, warn_only=True)
        warnings.filterwarnings("ignore", ".* non-deterministic algorithm")


def _prepare(options):
    """Return the token ids to train on, the held-out ones, and the metadata."""
    text = _read_text(options.text)
    border = len(text) * 9 // 10
    merges = train_bpe(text[: min(border, 1_000_000)], options.merges)
    parts = text[:border], text[border:]
    parts = [torch.tensor(encode_bpe(part, merges)) for part in parts]
    if min(map(len, parts)) <= options.context:
        raise ValueError(
            f"{options.text} is too short: expected more than --context "
            f"{options.context} tokens to train on, and as many in the last tenth, "
            f"got {len(parts[0])} and {len(parts[1])}"
        )
    return *parts, {
        "context": options.context,
        "width": options.width,
        "heads": options.heads,
        "layers": options.layers,
        "vocabulary": 256 + len(merges),
        "text": f"SHA-256 {hashlib.sha256(text.encode()).hexdigest()}",
        "merges": [list(pair) for pair in merges],  # they decode the tokens
    }


def _read_text(path):
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{path} is not a text in UTF-8: save it as UTF-8 in an editor"
        raise ValueError(message) from error


def _build_gpt(metadata, dropout=0.0):
    return GPT(*(metadata[size] for size in SIZES), dropout)


def _merges(metadata):
    return {tuple(pair): 256 + i for i, pair in enumerate(metadata["merges"])}


def draw_windows(
    ids: Tensor, context_length: int, batch_size: int, seed: int, number: int
) -> tuple[Tensor, Tensor]:
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
def held_out_loss(
    model: GPT, ids: Tensor, context_length: int, batch_size: int = 8
) -> Tensor:
    """Return the mean loss per token of a text, a scalar tensor, in evaluation mode.

    ids: (N,); of a long text, about 128 evenly spaced windows are used

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
        total += next_token_loss(model, to_device(batch, device)) * len(batch[0])
    model.train(was_training)
    return total / len(windows[0])
