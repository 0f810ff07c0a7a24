"""Train a GPT on any text, let it write, and load it again.

    python -m utils.training TEXT [--steps N] [--checkpoint FILE] ...
    torchrun --nproc-per-node 2 -m utils.training TEXT ...
    python -m utils.training --write "Once upon a time" [--checkpoint FILE]
    python -m utils.training --checkpoint FILE --export FOLDER

Without a checkpoint it is the course's own model that writes, see `load_tales_model`.

Tokens are bytes and byte pairs learned on the text, as in notebook 08, so every
character has an encoding, and frequent words are single tokens.
"""

import argparse
import hashlib
import json
import os
import random
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from utils.checkpoints import assign_weights, check_config, read_json, read_tensors
from utils.data import sliding_windows
from utils.files import DATA, write_atomically
from utils.model import GPT, eval_mode, generate, next_token_loss
from utils.parallel import has_own_gpu, processes, split_batch_over_processes
from utils.tokenizer import decode_bpe, encode_bpe, token_bytes, train_bpe
from utils.training import TrainingConfig, read_checkpoint, to_device, train
from utils.validation import (
    PositiveInt,
    check_divisible,
    check_inputs,
    check_int,
    check_number,
)

SIZES = "vocabulary", "context", "width", "heads", "layers"  # in the order of `GPT`


TextModel = tuple[GPT, Callable[[str], list[int]], Callable[[list[int]], str]]


def load_tales_model() -> TextModel:
    """Load the model that was trained on children's books, from `data/tales`.

    returns: as `load_text_model` does

    >>> model, encode, decode = load_tales_model()
    >>> decode(encode("Once upon a time"))
    'Once upon a time'
    """
    return load_text_model(DATA / "tales")


def load_text_model(path: str | Path) -> TextModel:
    """Load a model that `python -m utils.training` trained.

    path: the file given as `--checkpoint`, or the folder given as `--export`
    returns: the model, on the CPU, in float32 and in evaluation mode; a function that
        encodes a text as a list of token ids; and a function that decodes such a list

    Raises FileNotFoundError if a file is missing, and ValueError if it is damaged or
    was not written by this command.
    """
    if Path(path).is_dir():
        metadata = read_json(Path(path, "config.json"))
    else:
        saved = read_checkpoint(path)
        metadata = saved["metadata"]
    try:
        check_config(metadata, path, dict.fromkeys(SIZES, int))
        merges = _read_merges(metadata)
        token_bytes(merges)  # checks them
        check_config(metadata, path, {"vocabulary": [256 + len(merges)]})
    except (KeyError, TypeError, ValueError) as error:
        reason = str(error).removeprefix(f"{path}: ")
        message = f"{path} was not written by `python -m utils.training`: {reason}"
        raise ValueError(message) from error
    with torch.random.fork_rng(devices=[]):  # a seed set before still holds
        model = GPT(*(metadata[size] for size in SIZES))
    weights = read_tensors(path) if Path(path).is_dir() else saved["model"]
    assign_weights(model, weights, path, tied=True)
    encode, decode = (partial(f, merges=merges) for f in (encode_bpe, decode_bpe))
    return model.eval(), encode, decode


def export_text_model(path: str | Path, folder: str | Path) -> None:
    """Write the weights of a checkpoint in half precision, a sixth of its size.

    path: the file given as `--checkpoint`
    folder: gets model.safetensors and config.json, which `load_text_model` reads
    """
    from safetensors.torch import save  # needed only here

    load_text_model(path)
    saved = read_checkpoint(path)
    weights = {name: w.half().contiguous() for name, w in saved["model"].items()}
    del weights["output.weight"]  # it is the token embedding
    Path(folder).mkdir(parents=True, exist_ok=True)
    write_atomically(Path(folder, "model.safetensors"), save(weights))
    config = json.dumps(saved["metadata"] | {"steps": saved["step"]})
    write_atomically(Path(folder, "config.json"), config.encode())


def main(arguments: list[str] | None = None) -> int:
    """Train a GPT on a text, or let it write: see `python -m utils.training --help`.

    returns: the exit code: 0, 2 after an error, 130 after Ctrl-C
    """
    options = _parse_options(arguments)
    with processes() as (rank, num_processes):
        write = print if rank == 0 else lambda *words, **options: None
        try:
            if options.export:
                export_text_model(options.checkpoint, options.export)
            elif options.write is not None:
                _write_text(options, write)
            else:
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


def _parse_options(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m utils.training",
        description="Train a GPT on a text, and print a sample of what it writes; or "
        "let a trained one write.",
        epilog="Losses are in nats per token, the training loss is the mean of the "
        "last 50 steps. To try it: --write 'Once upon a time'. To train a model of "
        "your own, keep it and let it write: TEXT --checkpoint my.pt, again with more "
        "--steps as long as it pays, then --write PROMPT --checkpoint my.pt. --export "
        "FOLDER makes it small enough to give away.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_mutually_exclusive_group(required=True).add_argument
    add("text", metavar="TEXT", type=Path, nargs="?", help="a text file in UTF-8")
    write_help = "continue this text with the model of --checkpoint, or without it "
    write_help += "with the one that the course brings"
    add("--write", metavar="PROMPT", help=write_help)
    export_help = "write the model of --checkpoint in half precision, to give it away"
    add("--export", metavar="FOLDER", type=Path, help=export_help)
    add = parser.add_argument
    count, fraction = {"metavar": "N", "type": int}, {"metavar": "X", "type": float}
    held_out_help = "a text to test on, by default the last tenth of TEXT"
    add("--held-out", metavar="FILE", type=Path, help=held_out_help)
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
    add("--lr", default=1.5e-3, help="learning rate", **fraction)
    decline_help = "fraction of the steps, at the end, in which the rate falls to a "
    decline_help += "tenth; stopped before, a run can continue with more --steps"
    add("--decline", default=1.0, help=decline_help, **fraction)
    add("--dropout", default=0.1, help="fraction dropped", **fraction)
    add("--seed", default=0, help="of weights and batches", **count)
    add("--compile", action="store_true", help="compile the model with torch.compile")
    add("--tokens", default=250, help="how many tokens to write", **count)
    add("--temperature", default=0.8, help="of what it writes", **fraction)
    options = parser.parse_args(arguments)
    if options.export and not options.checkpoint:
        parser.error("--export needs --checkpoint FILE")
    values = {f"--{name.replace('_', '-')}": x for name, x in vars(options).items()}
    try:
        _check_numbers(values)
    except ValueError as error:
        parser.error(str(error))
    unused = {"--tokens", "--temperature"}
    if options.text is None:
        unused = values.keys() - {"--write", "--export", "--checkpoint"}
        unused -= set() if options.export else {"--tokens", "--temperature", "--seed"}
    for name, value in values.items():
        if name in unused and value != parser.get_default(name[2:].replace("-", "_")):
            parser.error(f"{name} has no effect here")
    return options


def _check_numbers(values):
    """Raise ValueError for a number that can't be used; names are the command's."""
    counts = "steps save-every batch context layers merges tokens width heads".split()
    for name in counts:
        check_int(f"--{name}", values[f"--{name}"])
    check_divisible(values["--width"], values["--heads"])
    check_int("--seed", values["--seed"], minimum=0)
    for name in ("--lr", "--decline", "--dropout"):
        check_number(name, values[name], maximum=1)
    check_number("--temperature", values["--temperature"], above_zero=True)


def _write_text(options, write):
    model, encode, decode = load_text_model(options.checkpoint or DATA / "tales")
    prompt = encode(options.write)
    if not prompt:
        raise ValueError("expected a prompt of one character or more, got none")
    torch.manual_seed(options.seed)
    ids = torch.tensor([prompt])
    ids = generate(model, ids, options.tokens, options.temperature, top_p=0.95)
    write(decode(ids[0].tolist()))


def _train_on_text(options, num_processes, write):
    ids, held_out_ids, metadata = _load_tokens(options)
    torch.manual_seed(options.seed)  # the same weights and dropout in all processes
    device = "cuda" if has_own_gpu() else "cpu"
    if device == "cuda":
        _configure_gpu(is_exact=options.compile and options.checkpoint is not None)
    model = GPT(*(metadata[size] for size in SIZES), options.dropout).to(device)
    num_parameters = sum(parameter.numel() for parameter in model.parameters())
    counts = f"{len(ids):,} tokens, {len(held_out_ids):,} held out"
    write(f"{counts}, {num_parameters:,} parameters", flush=True)
    compute_loss = next_token_loss
    if options.compile:
        compute_loss = torch.compile(compute_loss)
    if num_processes > 1:
        compute_loss = split_batch_over_processes(model, compute_loss)

    def report(losses):
        loss = held_out_loss(model, held_out_ids, options.context, options.batch)
        training = f"training loss {losses[-50:].mean():.4f}"
        return f"step {len(losses)}  {training}  held-out loss {loss:.4f}"

    start = None  # the time after the first step of this run, and that step's number

    def on_step(losses):
        nonlocal start
        start = start or (time.monotonic(), len(losses))
        num_done, num_left = len(losses) - start[1], options.steps - len(losses)
        minutes = (time.monotonic() - start[0]) / max(1, num_done) * num_left / 60
        is_report = len(losses) % options.save_every == 0
        if num_left and (is_report or num_done == 10 and minutes > 1):
            text = report(losses) if is_report else f"step {len(losses)}"
            write(f"{text}  about {minutes:.0f} minutes left", flush=True)

    config = TrainingConfig(
        warmup=min(50, options.steps // 10),
        final_lr=options.lr / 10,
        decline=options.decline,
        weight_decay=0.1,
        clip=1.0,
        checkpoint=options.checkpoint,
        save_every=options.save_every,
        metadata=metadata,
    )
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
    sample = decode_bpe(generated, _read_merges(metadata))
    write(f"\n{sample}\n\n{report(torch.tensor(losses))}")


def _configure_gpu(is_exact):
    """Choose TensorFloat32, and for a compiled model kernels that repeat their sums."""
    torch.set_float32_matmul_precision("high")  # for losses outside of autocast
    if is_exact:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True, warn_only=True)
        warnings.filterwarnings("ignore", ".* non-deterministic algorithm")


def _load_tokens(options):
    """Return the token ids to train on, the held-out ones, and the metadata."""
    if options.checkpoint:
        options.checkpoint.absolute().parent.stat()  # an error names a missing folder
    texts = [_read_text(options.text)]
    if options.held_out:
        texts.append(_read_text(options.held_out))
    else:
        num_training = len(texts[0]) * 9 // 10
        texts = [texts[0][:num_training], texts[0][num_training:]]
    text_hash = f"SHA-256 {hashlib.sha256(''.join(texts).encode()).hexdigest()}"
    merges = _saved_merges(options, text_hash)
    merges = merges or train_bpe(_spread_sample(texts[0]), options.merges)
    ids = [torch.tensor(encode_bpe(text, merges)) for text in texts]
    if min(map(len, ids)) <= options.context:
        raise ValueError(
            f"{options.text} is too short: expected more than --context "
            f"{options.context} tokens to train on, and as many to test on, "
            f"got {len(ids[0])} and {len(ids[1])}"
        )
    return *ids, {
        "context": options.context,
        "width": options.width,
        "heads": options.heads,
        "layers": options.layers,
        "vocabulary": 256 + len(merges),
        "text": text_hash,
        "merges": [list(pair) for pair in merges],  # they decode the tokens
    }


def _spread_sample(text, num_characters=6_000_000, num_parts=60):
    """Return a text, or parts of a long one that are spread over all of it."""
    if len(text) <= num_characters:
        return text
    size, distance = num_characters // num_parts, len(text) // num_parts
    return "".join(text[i * distance :][:size] for i in range(num_parts))


def _saved_merges(options, text_hash):
    """Return the merges of a run that continues, None if it doesn't."""
    if options.checkpoint is None or not options.checkpoint.exists():
        return None
    metadata = read_checkpoint(options.checkpoint)["metadata"]
    is_same = metadata.get("text") == text_hash
    is_same = is_same and len(metadata["merges"]) == options.merges
    return _read_merges(metadata) if is_same else None


def _read_text(path):
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{path} is not a text in UTF-8: save it as UTF-8 in an editor"
        raise ValueError(message) from error


def _read_merges(metadata):
    return {tuple(pair): 256 + i for i, pair in enumerate(metadata["merges"])}


@check_inputs("ids: any (N)")
def draw_windows(
    ids: Tensor,
    context_length: PositiveInt,
    batch_size: PositiveInt,
    seed: int,
    number: int,
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
@check_inputs("ids: any (N)")
def held_out_loss(
    model: nn.Module,
    ids: Tensor,
    context_length: PositiveInt,
    batch_size: PositiveInt = 8,
) -> Tensor:
    """Return the mean loss per token of a text, a scalar tensor, in evaluation mode.

    model: a GPT or another module from ids (B, T) to logits (B, T, V)
    ids: (N,); of a long text, about 128 evenly spaced windows are used
    """
    stride = max(context_length, len(ids) // 128)
    windows = sliding_windows(ids, context_length, stride)
    device = next((t.device for t in model.parameters()), ids.device)
    total = 0.0
    with eval_mode(model):
        for batch in zip(*(t.split(batch_size) for t in windows)):
            total += next_token_loss(model, to_device(batch, device)) * len(batch[0])
    return total / len(windows[0])
