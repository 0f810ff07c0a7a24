"""Tests of `utils.training`, the training loop and its checkpoints."""

import contextlib
import math
import signal

import pytest
import torch
import torch.distributed as dist
from torch import nn

from utils.launch import in_processes
from utils.training import (
    TrainingConfig,
    decay_groups,
    learning_rate,
    read_checkpoint,
    train,
)


def squared_error(model, batch):
    inputs, targets = batch
    return (model(inputs) - targets).square().mean()


def line():
    inputs = torch.linspace(-1, 1, 11)[:, None]
    return inputs, 3 * inputs - 1


def test_learning_rate_rises_linearly_and_falls_along_a_cosine():
    rates = [learning_rate(step, 15, 1.0, 4, 0.1) for step in (0, 3, 4, 9, 14, 99)]
    assert rates == pytest.approx([0.25, 1.0, 1.0, 0.55, 0.1, 0.1])


def test_steps_equal_those_of_adamw_with_clipped_gradients():
    torch.manual_seed(0)
    ours, twin = nn.Linear(1, 1), nn.Linear(1, 1)
    twin.load_state_dict(ours.state_dict())
    optimizer = torch.optim.AdamW(decay_groups(twin, 0.1), lr=0.05)
    for _ in range(5):
        optimizer.zero_grad()
        squared_error(twin, line()).backward()
        norm = nn.utils.clip_grad_norm_(twin.parameters(), 1.5)
        optimizer.step()
    assert norm > 1.5
    config = TrainingConfig(weight_decay=0.1, clip=1.5)
    train(ours, [line()], squared_error, steps=5, lr=0.05, config=config)
    torch.testing.assert_close([*ours.parameters()], [*twin.parameters()])


def dropout_model(seed=3):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(1, 8), nn.Dropout(0.3), nn.Linear(8, 1))


def batch_function():
    inputs, targets = line()
    return lambda number: (inputs[number % 11 :], targets[number % 11 :])


SETTINGS = {"warmup": 3, "final_lr": 1e-4, "clip": 1.0}


def run(batches, model=None, on_step=None, **settings):
    """Train for 20 steps; return the losses and the weights."""
    model = model or dropout_model()
    config = TrainingConfig(**SETTINGS, **settings)
    losses = train(
        model, batches, squared_error, 20, 0.01, on_step=on_step, config=config
    )
    return losses, [weight.tolist() for weight in model.parameters()]


def interrupt_after(steps):
    def on_step(losses):
        if len(losses) == steps:
            raise KeyboardInterrupt

    return on_step


def assert_resumes_exactly(make_batches, path, interruptions, device="cpu"):
    """Interrupt a run again and again, and compare its end with an undisturbed run."""
    expected = run(make_batches(), dropout_model().to(device))
    settings = {"checkpoint": path, "save_every": 1}
    for steps in interruptions:
        with pytest.raises(KeyboardInterrupt):  # the newest checkpoint is a step old
            stop = interrupt_after(steps + 1)
            run(make_batches(), dropout_model().to(device), stop, **settings)
    other_weights = dropout_model(seed=99).to(device)
    assert run(make_batches(), other_weights, **settings) == expected


@pytest.mark.parametrize("make_batches", [lambda: [line()] * 3, batch_function])
def test_interrupted_twice_ends_with_the_same_losses(tmp_path, make_batches):
    assert_resumes_exactly(make_batches, tmp_path / "run.pt", [1, 13])


def test_gradient_scaler_is_resumed_exactly(tmp_path, monkeypatch):
    """`train` computes in float16 on older GPUs, here on the CPU."""
    monkeypatch.setattr("utils.training._autocast_dtype", lambda device: torch.float16)
    assert_resumes_exactly(batch_function, tmp_path / "run.pt", [6, 8])
    assert torch.load(tmp_path / "run.pt")["scaler"]["scale"] < 2**16  # it was lowered


def take_a_step(model, path, metadata, steps=1):
    """Train a model for a step, with a checkpoint."""
    config = TrainingConfig(checkpoint=path, metadata=metadata)
    train(model, [torch.ones(1, 100)], lambda m, x: m(x).mean(), steps, config=config)


def write_damaged(model, path):
    take_a_step(model, path, {"heads": 2})
    content = bytearray(path.read_bytes())
    content[content.index(model.weight.detach().numpy().tobytes()) + 1234] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "write, message",
    [
        (lambda model, path: path.write_bytes(b""), "no checkpoint: File is not a zip"),
        (write_damaged, "a.pt is no checkpoint: .* is damaged"),
        (lambda model, path: torch.save({}, path), "no checkpoint: it has no losses"),
        (
            lambda model, path: take_a_step(model, path, {"heads": 4}),
            "another model: expected heads 2, got 4",
        ),
        (
            lambda model, path: take_a_step(model, path, {"heads": 2}, steps=2),
            "a.pt: expected 1 steps or fewer, got 2",
        ),
        (
            lambda model, path: take_a_step(nn.Linear(100, 7), path, {"heads": 2}),
            r"expected weight of shape \(100, 100\), got \(7, 100\)",
        ),
    ],
)
def test_unusable_checkpoint_raises_and_changes_nothing(tmp_path, write, message):
    model, path = nn.Linear(100, 100), tmp_path / "a.pt"
    write(model, path)
    before = model.weight.clone()
    with pytest.raises(ValueError, match=message):
        take_a_step(model, path, {"heads": 2})
    assert torch.equal(model.weight, before)


def test_metadata_are_there_and_back_again(tmp_path):
    path, model = tmp_path / "a.pt", nn.Linear(100, 1)
    metadata = {"a": [1, 2.5, None], "b": {"c": (True, "d")}, 3: "é"}
    for _ in range(2):
        take_a_step(model, path, metadata)
    assert read_checkpoint(path)["metadata"] == metadata


def test_a_run_of_a_compiled_model_is_continued_with_another(tmp_path):
    expected, settings = run(batch_function()), {"checkpoint": tmp_path / "run.pt"}
    compiled = torch.compile(dropout_model(), backend="eager")
    with pytest.raises(KeyboardInterrupt):
        run(batch_function(), compiled, interrupt_after(6), save_every=1, **settings)
    assert run(batch_function(), **settings) == expected


@pytest.mark.parametrize("factor, message", [(math.nan, "in step 6"), (0.0, "weights")])
def test_neither_a_loss_nor_weights_of_nan_are_saved(tmp_path, factor, message):
    """A factor of 0 gives a loss of 0, whose gradient is infinity times 0."""
    model, batches = nn.Linear(1, 1), [torch.ones(1)] * 6 + [torch.tensor([factor])]
    config = TrainingConfig(checkpoint=tmp_path / "a.pt", save_every=1)
    with pytest.raises(ValueError, match=message):
        train(model, batches, lambda m, x: (m(x) * x).abs().sqrt()[0], 9, config=config)
    saved = read_checkpoint(tmp_path / "a.pt")
    assert saved["step"] == 6 and saved["model"]["weight"].isfinite().all()


def interrupt_second_process(rank, count, folder):
    """Train, with Ctrl-C in step 3 of the second process; return the steps taken."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job may lack it
    model, losses = nn.Linear(1, 1), []

    def compute_loss(model, batch):
        losses.append(model(batch).square().mean())
        if rank == 1 and len(losses) == 3:
            signal.raise_signal(signal.SIGINT)
        dist.all_reduce(torch.ones(1))  # no process can take a step alone
        return losses[-1]

    config = TrainingConfig(checkpoint=folder / f"{rank}.pt")
    with contextlib.suppress(KeyboardInterrupt):
        train(model, [torch.ones(5, 1)], compute_loss, 9, 0.1, config=config)
    return len(losses)


def test_ctrl_c_in_one_process_stops_all_after_the_same_step(tmp_path, on_cpu):
    assert in_processes(2, interrupt_second_process, tmp_path) == [3, 3]
    assert [file.name for file in tmp_path.glob("*.pt")] == ["0.pt"]
    assert torch.load(tmp_path / "0.pt")["step"] == 3
