"""Each test pins one sentence about `utils.training`, the loop and the command."""

import io
import math
import os
import random
import re
import signal
import subprocess
import sys
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import ipywidgets
import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader

from utils.data import load_text, sliding_windows
from utils.model import GPT, generate, next_token_loss
from utils.training import (
    decay_groups,
    learning_rate,
    load_checkpoint,
    save_checkpoint,
    train,
)
from utils.training import (
    text as command,
)
from utils.training.text import draw_windows, load_text_model, main

ROOT = Path(__file__).resolve().parent.parent


def fit(model, batch):
    inputs, targets = batch
    return (model(inputs) - targets).square().mean()


def line():
    inputs = torch.linspace(-1, 1, 11)[:, None]
    return inputs, 3 * inputs - 1


def test_training_finds_a_line():
    torch.manual_seed(0)
    model = nn.Linear(1, 1)
    losses = train(model, [line()], fit, steps=400, lr=0.05)
    assert losses[-1] < 1e-3 < losses[0]


def test_training_returns_a_loss_for_each_step():
    assert len(train(nn.Linear(1, 1), [line(), line()], fit, steps=7)) == 7


def test_training_goes_through_the_batches_again():
    seen = []

    def watch(model, batch):
        seen.append(batch)
        return model.weight.sum()

    train(nn.Linear(1, 1), [0, 1, 2], watch, steps=7)
    assert seen == [0, 1, 2, 0, 1, 2, 0]


def test_training_leaves_the_model_in_evaluation_mode():
    model = nn.Sequential(nn.Linear(1, 1), nn.Dropout(0.5))
    train(model, [line()], fit, steps=1)
    assert not model.training and not model[1].training


def test_an_interrupted_training_leaves_the_model_in_evaluation_mode():
    def stop(model, batch):
        raise KeyboardInterrupt

    model = nn.Linear(1, 1)
    with pytest.raises(KeyboardInterrupt):
        train(model, [line()], stop, steps=1)
    assert not model.training


def test_training_without_a_batch_is_an_error():
    with pytest.raises(
        ValueError, match="^expected batches to go .*, got none after 0 steps$"
    ):
        train(nn.Linear(1, 1), [], fit, steps=1)


def test_a_checkpoint_gives_the_weights_back(tmp_path):
    torch.manual_seed(0)
    model, other = nn.Linear(3, 2), nn.Linear(3, 2)
    save_checkpoint(model, tmp_path / "model.pt")
    load_checkpoint(other, tmp_path / "model.pt")
    assert torch.equal(model.weight, other.weight)
    assert [path.name for path in tmp_path.iterdir()] == ["model.pt"]


def test_of_a_long_reason_the_first_line_is_told(tmp_path, monkeypatch):
    def fail(*args, **options):
        raise RuntimeError("the first line\nand the second")

    save_checkpoint(nn.Linear(1, 1), tmp_path / "a.pt")
    monkeypatch.setattr(torch, "load", fail)
    with pytest.raises(ValueError, match="a.pt is no checkpoint: the first line$"):
        load_checkpoint(nn.Linear(1, 1), tmp_path / "a.pt")


def test_training_writes_a_checkpoint_at_the_end(tmp_path):
    model, other = nn.Linear(1, 1), nn.Linear(1, 1)
    train(model, [line()], fit, steps=7, checkpoint=tmp_path / "model.pt")
    load_checkpoint(other, tmp_path / "model.pt")
    assert torch.equal(model.weight, other.weight)


def test_an_interrupted_training_keeps_the_last_checkpoint_whole(tmp_path):
    model, other, steps = nn.Linear(1, 1), nn.Linear(1, 1), []

    def stop_later(model, batch):
        steps.append(model.weight.item())
        if len(steps) == 151:
            raise KeyboardInterrupt
        return fit(model, batch)

    with pytest.raises(KeyboardInterrupt):
        train(model, [line()], stop_later, steps=300, checkpoint=tmp_path / "model.pt")
    load_checkpoint(other, tmp_path / "model.pt")
    assert other.weight.item() == steps[100]


@pytest.mark.parametrize("content", [b"", b"half a file"])
def test_a_damaged_checkpoint_is_named_and_changes_nothing(tmp_path, content):
    model, path = nn.Linear(1, 1), tmp_path / "model.pt"
    before = model.weight.clone()
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is no checkpoint: File is not a zip file$"):
        load_checkpoint(model, path)
    assert torch.equal(model.weight, before)


def test_the_checkpoint_of_another_model_is_named(tmp_path):
    save_checkpoint(nn.Linear(3, 2), tmp_path / "model.pt")
    with pytest.raises(ValueError, match=r"another model: .* got \(2, 3\)"):
        load_checkpoint(nn.Linear(5, 2), tmp_path / "model.pt")


def test_a_checkpoint_that_would_run_code_is_refused(tmp_path):
    torch.save({"weight": print}, tmp_path / "model.pt")
    with pytest.raises(ValueError) as error:
        load_checkpoint(nn.Linear(3, 2), tmp_path / "model.pt")
    said = "model.pt is no checkpoint: Weights only load failed"  # without the advice
    assert str(error.value).endswith(said)


def slope(model, batch):
    """A loss whose gradient is 1 everywhere: AdamW then moves by its rate."""
    return sum(parameter.sum() for parameter in model.parameters())


def nothing(model, batch):
    return 0 * slope(model, batch)


def test_only_the_matrices_of_a_gpt_decay():
    model = GPT(11, 5, 8, 2, 1)
    decayed, kept = decay_groups(model, 0.1)
    names = {parameter: name for name, parameter in model.named_parameters()}
    assert (decayed["weight_decay"], kept["weight_decay"]) == (0.1, 0.0)
    layers = ("W_query", "W_key", "W_value", "out_proj")
    expected = {f"blocks.0.attention.{layer}.weight" for layer in layers}
    expected |= {f"blocks.0.feed_forward.{i}.weight" for i in (0, 2)}
    assert {names[parameter] for parameter in decayed["params"]} == expected
    assert len(decayed["params"]) + len(kept["params"]) == len(names)


def test_training_shrinks_matrices_and_leaves_biases_norms_and_embeddings():
    model = nn.Sequential(nn.Embedding(7, 5), nn.LayerNorm(5), nn.Linear(5, 3))
    before = [parameter.clone() for parameter in model.parameters()]
    train(model, [0], nothing, steps=1, lr=0.1, weight_decay=0.5)
    *others, matrix, bias = zip(before, model.parameters())
    for old, new in (*others, bias):
        assert torch.equal(old, new)
    torch.testing.assert_close(matrix[1], matrix[0] * (1 - 0.1 * 0.5))


def test_the_rate_rises_along_a_line_and_falls_along_a_cosine():
    rates = [learning_rate(step, 104, 1.0, 4, 0.1) for step in range(104)]
    assert rates[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert rates[103] == pytest.approx(0.1)
    middle = learning_rate(5, 11, 1.0, 0, 0.1)
    assert middle == pytest.approx(0.55)
    assert all(high >= low for high, low in pairwise(rates[4:]))


def test_the_rate_stays_where_nothing_is_said():
    assert {learning_rate(step, 9, 0.3) for step in range(9)} == {0.3}
    assert learning_rate(0, 1, 0.3, final_lr=0.1) == 0.3


def test_the_rate_of_the_last_step_is_the_final_one_in_the_shortest_trainings():
    assert [learning_rate(step, 2, 1.0, 0, 0.0) for step in (0, 1)] == [1.0, 0.0]
    assert [learning_rate(step, 3, 1.0, 1, 0.0) for step in (1, 2)] == [1.0, 0.0]
    falling = [learning_rate(step, 3, 1.0, final_lr=0.0) for step in range(3)]
    assert falling == pytest.approx([1.0, 0.5, 0.0])  # without a warm-up


@pytest.mark.parametrize("warmup", [{}, {"warmup": 2}])
def test_training_moves_by_the_rate_of_each_step(warmup):
    model, sums = nn.Linear(1, 1, bias=False), []

    def watch(model, batch):
        sums.append(model.weight.item())
        return slope(model, batch)

    options = {**warmup, "final_lr": 0.01, "weight_decay": 0.0}
    train(model, [0], watch, steps=6, lr=0.1, **options)
    moved = [old - new for old, new in pairwise([*sums, model.weight.item()])]
    rates = [learning_rate(step, 6, 0.1, final_lr=0.01, **warmup) for step in range(6)]
    assert moved == pytest.approx(rates, rel=1e-3)


def test_training_takes_the_steps_of_adamw():
    ours, twin = nn.Linear(1, 1), nn.Linear(1, 1)
    twin.load_state_dict(ours.state_dict())
    optimizer = torch.optim.AdamW(decay_groups(twin, 0.1), lr=0.05)
    for _ in range(5):
        optimizer.zero_grad()
        fit(twin, line()).backward()
        optimizer.step()
    train(ours, [line()], fit, steps=5, lr=0.05, weight_decay=0.1)
    torch.testing.assert_close([*ours.parameters()], [*twin.parameters()])


def test_training_has_the_rate_and_the_decay_of_adamw_by_default():
    model = nn.Sequential(nn.Linear(5, 3, bias=False))
    before = model[0].weight.clone()
    train(model, [0], slope, steps=1)
    moved = before * (1 - 1e-3 * 0.01) - 1e-3
    torch.testing.assert_close(model[0].weight, moved, rtol=0, atol=1e-7)


def test_clipping_bounds_the_norm_of_the_gradient():
    model = nn.Linear(3, 3, bias=False)
    train(model, [0], slope, steps=1, clip=0.5)
    assert model.weight.grad.norm() == pytest.approx(0.5)
    train(model, [0], slope, steps=1)
    assert model.weight.grad.norm() == pytest.approx(3.0)


def test_accumulated_batches_are_one_large_batch():
    torch.manual_seed(0)
    inputs, targets = torch.randn(12, 3), torch.randn(12, 2)
    small, large = nn.Linear(3, 2), nn.Linear(3, 2)
    small.load_state_dict(large.state_dict())
    parts = list(zip(inputs.split(4), targets.split(4)))
    losses = train(small, parts, fit, steps=5, accumulate=3)
    expected = train(large, [(inputs, targets)], fit, steps=5)
    torch.testing.assert_close(torch.tensor(losses), torch.tensor(expected))
    torch.testing.assert_close(small.weight, large.weight)


@pytest.mark.parametrize("options", [{"accumulate": 0}, {"save_every": 0}])
def test_less_than_one_batch_or_step_is_an_error(options):
    with pytest.raises(
        ValueError, match="^expected accumulate and save_every of 1 or more, got .*0"
    ):
        train(nn.Linear(1, 1), [line()], fit, steps=1, **options)


def test_a_function_gives_the_batch_of_each_number():
    seen = []

    def watch(model, batch):
        seen.append(batch)
        return slope(model, batch)

    train(nn.Linear(1, 1), lambda number: -number, watch, steps=3, accumulate=2)
    assert seen == [0, -1, -2, -3, -4, -5]


def test_batches_are_moved_to_the_device_of_the_model():
    class Moved:
        def to(self, device, non_blocking):
            assert non_blocking is True  # the CPU goes on meanwhile
            return device

    def watch(model, batch):
        seen.append(batch)
        return slope(model, batch)

    seen, cpu, pair = [], torch.device("cpu"), namedtuple("Pair", "x y")
    train(nn.Linear(1, 1), [(Moved(), [Moved(), 7])], watch, steps=1)
    train(nn.Linear(1, 1), [{"x": pair(Moved(), "y")}], watch, steps=1)
    assert seen == [(cpu, [cpu, 7]), {"x": pair(cpu, "y")}]


def test_nothing_is_read_from_the_device_every_step():
    class Reads(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), options=None):
            names.append(str(function))
            return function(*arguments, **(options or {}))

    names, model = [], nn.Linear(1, 1)
    with Reads():
        train(model, [line()], fit, steps=9, clip=1.0, accumulate=2, final_lr=0.0)
        assert "aten._fused_adamw_.default" in names
        assert "aten._local_scalar_dense.default" not in names
        model.bias.item()
        assert names[-1] == "aten._local_scalar_dense.default"


@pytest.fixture
def clock(monkeypatch):
    """Stop the time; `clock.now` is what it is."""
    clock = SimpleNamespace(now=100.0, monotonic=lambda: clock.now)
    monkeypatch.setattr("utils.training.time", clock)
    monkeypatch.setattr(command, "time", clock)
    return clock


def test_in_a_notebook_a_bar_moves_five_times_a_second(monkeypatch, clock):
    shown, bars, values = [], [], []

    class Kept(ipywidgets.IntProgress):
        def __init__(self, **options):
            super().__init__(**options)
            self.observe(lambda change: values.append(change.new), names="value")
            bars.append(self)

    def tick(model, batch):
        clock.now += 0.15
        return fit(model, batch)

    notebook = SimpleNamespace(kernel="there")
    monkeypatch.setattr("utils.training.get_ipython", lambda: notebook)
    monkeypatch.setattr("utils.training.display", lambda *a, **o: shown.append((a, o)))
    monkeypatch.setattr(ipywidgets, "IntProgress", Kept)
    losses = train(nn.Linear(1, 1), [line()], tick, steps=8)
    assert values == [1, 3, 5, 7, 8] and bars[0].max == 8
    assert bars[0].description == f"{losses[-1]:.3f}"
    assert bars[0].layout.width == "auto"
    view = {"version_major": 2, "version_minor": 0, "model_id": bars[0].model_id}
    bundle = {
        "application/vnd.jupyter.widget-view+json": view,
        "text/plain": "training, 8 steps",  # the same in every run
    }
    assert shown == [((bundle,), {"raw": True})]


def dropping():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(1, 8), nn.Dropout(0.3), nn.Linear(8, 1))


def shuffled():
    return DataLoader(list(zip(*line())), batch_size=3, shuffle=True)


def as_function():
    inputs, targets = line()
    return lambda number: (inputs[number % 11 :], targets[number % 11 :])


SCHEDULE = {"warmup": 3, "final_lr": 1e-4, "clip": 1.0, "accumulate": 2, "lr": 0.01}


@pytest.mark.parametrize("batches", [lambda: [line()] * 3, shuffled, as_function])
@pytest.mark.parametrize("steps_done", [1, 6, 8, 13])
def test_a_resumed_training_comes_to_the_same_losses(tmp_path, batches, steps_done):
    undisturbed = dropping()
    expected = train(undisturbed, batches(), fit, 20, **SCHEDULE)

    def stop(losses):
        if len(losses) == steps_done + 1:  # the last checkpoint is a step old
            raise KeyboardInterrupt

    keep = {"checkpoint": tmp_path / "run.pt", "save_every": 1, **SCHEDULE}
    with pytest.raises(KeyboardInterrupt):
        train(dropping(), batches(), fit, 20, show=stop, **keep)
    torch.manual_seed(99)
    model = nn.Sequential(nn.Linear(1, 8), nn.Dropout(0.3), nn.Linear(8, 1))
    assert train(model, batches(), fit, 20, resume=True, **keep) == expected
    for one, other in zip(model.parameters(), undisturbed.parameters()):
        assert torch.equal(one, other)


def test_a_finished_training_resumed_learns_nothing_more(tmp_path):
    keep = {"checkpoint": tmp_path / "run.pt"}
    losses = train(nn.Linear(1, 1), [line()], fit, 5, **keep)
    assert train(nn.Linear(1, 1), [line()], fit, 3, resume=True, **keep) == losses


def test_a_checkpoint_holds_all_of_the_training_and_runs_no_code(tmp_path):
    about = {"width": 1}
    losses = train(
        nn.Linear(1, 1), [line()], fit, 3, 0.1, tmp_path / "a.pt", about=about
    )
    state = torch.load(tmp_path / "a.pt", weights_only=True)
    assert set(state["model"]) == {"weight", "bias"}
    assert len(state["optimizer"]) == 2
    assert (state["step"], state["about"]) == (3, about)
    assert state["losses"].tolist() == losses
    assert torch.equal(state["random"]["cpu"], torch.get_rng_state())


def test_a_training_begun_on_a_gpu_goes_on_without_one(tmp_path):
    path = tmp_path / "a.pt"
    losses = train(nn.Linear(1, 1), [line()], fit, 3, checkpoint=path)
    state = torch.load(path)
    state["random"]["cuda"] = torch.zeros(16, dtype=torch.uint8)
    torch.save(state, path)
    resumed = train(nn.Linear(1, 1), [line()], fit, 5, checkpoint=path, resume=True)
    assert resumed[:3] == losses


@pytest.mark.parametrize(
    "dtype, kept", [(torch.float64, torch.float64), (torch.bfloat16, torch.float32)]
)
def test_losses_are_kept_in_the_precision_of_the_model_or_in_float32(dtype, kept):
    shown, model = [], nn.Linear(1, 1).to(dtype)
    train(model, [0], slope, steps=2, show=shown.append)
    assert {losses.dtype for losses in shown} == {kept}


def test_a_round_with_fewer_batches_than_were_taken_is_over(tmp_path):
    path = tmp_path / "a.pt"
    train(nn.Linear(1, 1), [line()] * 5, fit, 3, checkpoint=path)
    resumed = train(nn.Linear(1, 1), [line()], fit, 5, checkpoint=path, resume=True)
    assert len(resumed) == 5


def test_weights_alone_cannot_be_trained_on_from(tmp_path):
    save_checkpoint(nn.Linear(1, 1), tmp_path / "a.pt")
    with pytest.raises(ValueError, match="a.pt holds weights alone"):
        keep = {"checkpoint": tmp_path / "a.pt", "resume": True}
        train(nn.Linear(1, 1), [line()], fit, 5, **keep)


def test_a_checkpoint_that_says_something_else_of_itself_is_named(tmp_path):
    save_checkpoint(nn.Linear(1, 1), tmp_path / "a.pt", about={"heads": 4})
    model = nn.Linear(1, 1)
    before = model.weight.clone()
    with pytest.raises(ValueError, match="another model: heads expected as 2, got 4"):
        load_checkpoint(model, tmp_path / "a.pt", about={"heads": 2})
    assert torch.equal(model.weight, before)


def test_a_single_flipped_bit_is_found(tmp_path):
    path, model = tmp_path / "a.pt", nn.Linear(100, 100)
    save_checkpoint(model, path)
    content = bytearray(path.read_bytes())
    content[content.index(model.weight.detach().numpy().tobytes()) + 1234] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="a.pt is no checkpoint: .* is damaged"):
        load_checkpoint(model, path)


@pytest.fixture
def ctrl_c():
    """Give Ctrl-C its usual meaning, which a run in the background may lack."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(step, times=1):
    calls = []

    def compute_loss(model, batch):
        calls.append(batch)
        if len(calls) == step:
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
        return fit(model, batch)

    return compute_loss


def test_ctrl_c_waits_for_the_end_of_the_step_and_keeps_it(tmp_path, ctrl_c):
    keep = {"checkpoint": tmp_path / "a.pt"}
    expected = train(dropping(), [line()], fit, steps=9)
    with pytest.raises(KeyboardInterrupt):
        train(dropping(), [line()], interrupted(5), steps=9, **keep)
    assert torch.load(tmp_path / "a.pt")["step"] == 5
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert train(dropping(), [line()], fit, 9, resume=True, **keep) == expected


def test_a_second_ctrl_c_does_not_wait(tmp_path, ctrl_c):
    with pytest.raises(KeyboardInterrupt):
        train(nn.Linear(1, 1), [line()], interrupted(5, 2), 9, 0.1, tmp_path / "a.pt")
    assert torch.load(tmp_path / "a.pt")["step"] == 0


def test_a_ctrl_c_of_somebody_elses_keeps_its_meaning(tmp_path, ctrl_c):
    def own(number, frame):
        pressed.append(number)

    pressed, keep = [], {"checkpoint": tmp_path / "a.pt"}
    signal.signal(signal.SIGINT, own)
    assert len(train(nn.Linear(1, 1), [line()], interrupted(5), 9, **keep)) == 9
    assert len(pressed) == 1 and signal.getsignal(signal.SIGINT) is own


def test_a_thread_trains_without_ctrl_c(tmp_path, ctrl_c):
    keep = {"checkpoint": tmp_path / "a.pt"}
    with ThreadPoolExecutor() as pool:
        losses = pool.submit(train, nn.Linear(1, 1), [line()], fit, 9, **keep).result()
    assert len(losses) == 9


def test_without_a_checkpoint_ctrl_c_does_not_wait(ctrl_c):
    shown = []
    with pytest.raises(KeyboardInterrupt):
        train(nn.Linear(1, 1), [line()], interrupted(5), 9, show=shown.append)
    assert len(shown) == 4


TINY = "--width 8 --heads 2 --layers 1 --context 8 --batch 2 --merges 9".split()
LAST = r"step 12  training loss \d\.\d{4}  held-out loss \d\.\d{4}"


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(load_text()[:3000], encoding="utf-8")
    return str(path)


def test_the_command_ends_with_a_sample_and_the_losses(text, capsys):
    assert main([text, "--steps", "12", "--save-every", "5", *TINY]) == 0
    out, err = capsys.readouterr()
    first, *lines = out.splitlines()
    assert re.fullmatch(r"[\d,]+ tokens, [\d,]+ held out, [\d,]+ parameters", first)
    assert [line.split("  ")[0] for line in lines[:2]] == ["step 5", "step 10"]
    assert re.fullmatch(LAST, lines[-1])
    held_out = load_text()[:3000][2700:]
    assert lines[3][:1] == held_out[:1]
    assert err == ""


def test_the_mark_and_the_line_ends_of_windows_are_no_part_of_the_text(tmp_path):
    (tmp_path / "text.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\n")
    assert command._read_text(tmp_path / "text.txt") == "one\ntwo\n"


@pytest.mark.parametrize("steps, warmup", [(12, 1), (1000, 50)])
def test_the_rate_warms_up_for_a_tenth_of_the_steps_or_50_and_falls_to_a_tenth(
    text, monkeypatch, steps, warmup
):
    asked = {}

    def watch(model, batches, compute_loss, steps, lr, checkpoint, **options):
        asked.update(options, lr=lr, dropout=model.blocks[0].attention.dropout_p)
        return [0.0] * steps

    monkeypatch.setattr(command, "train", watch)
    options = ["--steps", str(steps), "--lr", "0.5", "--dropout", "0.25"]
    assert main([text, *options, *TINY]) == 0
    assert (asked["warmup"], asked["lr"], asked["final_lr"]) == (warmup, 0.5, 0.05)
    others = asked["weight_decay"], asked["clip"], asked["dropout"]
    assert others == (0.1, 1.0, 0.25)


@pytest.mark.parametrize("length, stride", [(43, 8), (128 * 20, 20)])
def test_the_held_out_loss_is_the_mean_over_all_windows_or_over_128(length, stride):
    torch.manual_seed(0)
    model = GPT(11, 8, 8, 2, 1, dropout=0.5).train()
    ids, options = torch.randint(11, (length,)), SimpleNamespace(context=8, batch=3)
    loss = command._held_out_loss(model, ids, options)
    assert model.training
    windows = sliding_windows(ids, 8, stride)
    torch.testing.assert_close(loss, next_token_loss(model.eval(), windows))
    said = command._report(model, ids, options, torch.arange(100.0))
    expected = f"step 100  training loss 74.5000  held-out loss {loss:.4f}"
    assert said == expected  # the mean of the last 50


def test_the_command_comes_to_the_same_end_every_time(text, capsys):
    outs = []
    for _ in range(2):
        main([text, "--steps", "12", *TINY])
        outs.append(capsys.readouterr().out)
    assert outs[0] == outs[1]


def test_the_command_learns(text, capsys):
    main([text, "--steps", "150", "--save-every", "50", "--lr", "0.01", *TINY])
    out = capsys.readouterr().out
    first, _, last = [float(loss) for loss in re.findall(r"held-out loss (.*)", out)]
    assert last < first < math.log(256)


def test_in_a_terminal_the_command_draws_a_bar(text, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    main([text, "--steps", "12", *TINY])
    out, err = capsys.readouterr()
    assert re.search(r"\r#{30} 12 of 12  loss \d\.\d{3} ", err)
    assert re.fullmatch(LAST, out.splitlines()[-1])


def test_all_processes_but_the_first_are_silent(text, capsys, tmp_path):
    keep = ["--checkpoint", str(tmp_path / "a.pt")]
    options = command._options(
        [text, "--steps", "6", "--save-every", "2", *TINY, *keep]
    )
    options.rank, options.processes = 1, 1
    command._train_on_text(options, command._say_nothing)
    assert capsys.readouterr() == ("", "") and [*tmp_path.iterdir()] == []


class Stream(io.StringIO):
    """Text that is seen once it has been flushed."""

    seen = ""

    def flush(self):
        self.seen = self.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_the_bar_is_drawn_five_times_a_second_and_lines_stay(
    terminal, clock, monkeypatch
):
    out, err = Stream(), Stream()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setattr(err, "isatty", lambda: terminal)
    options = SimpleNamespace(steps=8, save_every=4)
    show = command._reporter(options, lambda losses: f"line {len(losses)}")
    for step in range(1, 9):
        clock.now += 0.15
        show(torch.arange(step) / 4)
    out, err = out.seen, err.seen
    bars = {1: 3, 3: 11, 5: 18, 7: 26, 8: 30} if terminal else {}
    drawn = [
        f"\r{'#' * size}{'.' * (30 - size)} {step} of 8  loss {(step - 1) / 4:.3f} "
        for step, size in bars.items()
    ]
    assert err == "".join(drawn)
    assert out == (f"\rline 4{' ' * 73}\n" if terminal else "line 4\n")


def test_ctrl_c_ends_the_command_politely(text, tmp_path, capsys, monkeypatch, ctrl_c):
    arguments = [text, "--steps", "12", *TINY, "--checkpoint", str(tmp_path / "a.pt")]
    main([text, "--steps", "12", *TINY])
    expected = capsys.readouterr().out.splitlines()[-1]

    def press(model, batch, calls=[]):  # noqa: B006
        calls.append(batch)
        if len(calls) == 7:
            signal.raise_signal(signal.SIGINT)
        return loss(model, batch)

    loss = command.next_token_loss
    monkeypatch.setattr(command, "next_token_loss", press)
    assert main(arguments) == 130
    said = f"\nstopped: the same command goes on from {tmp_path / 'a.pt'}\n"
    assert capsys.readouterr().err == said
    assert main(arguments) == 0
    assert capsys.readouterr().out.splitlines()[-1] == expected


@pytest.mark.parametrize(
    "content, said",
    [
        (None, "text.txt: No such file or directory"),
        (b"", "text.txt is empty: expected a text"),
        (b" \n", "text.txt is empty: expected a text"),
        (b"GIF89a\xff\xfe", "text.txt is no text: expected UTF-8, got other bytes"),
        (b"a\0b", "text.txt is no text: expected UTF-8, got other bytes"),
        (b"too short", "text.txt is too short: a part of it has 1 tokens, expected"),
    ],
)
def test_a_text_that_will_not_do_is_an_error_of_one_line(
    tmp_path, capsys, content, said
):
    if content is not None:
        (tmp_path / "text.txt").write_bytes(content)
    assert main([str(tmp_path / "text.txt")]) == 2
    out, err = capsys.readouterr()
    assert err.startswith(f"error: {tmp_path}") and said in err
    assert (out, err.count("\n")) == ("", 1)


def test_a_checkpoint_of_the_command_becomes_a_model_again(text, tmp_path, capsys):
    path = tmp_path / "a.pt"
    main([text, "--steps", "12", *TINY, "--checkpoint", str(path)])
    *_, sample, _, last = capsys.readouterr().out.splitlines()
    model, encode, decode = load_text_model(path)
    told = Path(text).read_text(encoding="utf-8")
    assert decode(encode(told)) == told and len(encode(told)) < len(told)
    assert not model.training and model.context_length == 8
    held_out = torch.tensor([encode(told[2700:])])
    torch.manual_seed(0)
    written = decode(generate(model, held_out[:, :4], 150, 0.8)[0].tolist())
    assert written.splitlines()[-1] == sample


def test_a_checkpoint_of_another_training_does_not_become_one(tmp_path):
    for about in ({}, {"about": {"width": 8}}, {"about": [8]}):
        save_checkpoint(nn.Linear(1, 1), tmp_path / "a.pt", **about)
        with pytest.raises(ValueError) as error:
            load_text_model(tmp_path / "a.pt")
        assert str(error.value) == (
            "expected a checkpoint of `python -m utils.training`, got "
            f"{tmp_path / 'a.pt'}, which does not say what it was trained on"
        )
    (tmp_path / "a.pt").write_bytes(b"half a file")
    with pytest.raises(ValueError, match="a.pt is no checkpoint"):
        load_text_model(tmp_path / "a.pt")


def test_the_command_is_that_of_the_module(text):
    command = [sys.executable, "-m", "utils.training", text, "--steps", "2", *TINY]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("step 2  training loss ")


def other_text(path):
    other = path.with_name("other.txt")
    other.write_text(load_text()[3000:6000], encoding="utf-8")
    return [str(other)]


def half_a_file(path):
    path.write_bytes(path.read_bytes()[:-500])
    return []


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda path: ["--heads", "4"], "another model: heads expected as 4, got 2"),
        (lambda path: ["--width", "16"], "another model: width expected as 16, got 8"),
        (lambda path: ["--merges", "8"], "another model: vocabulary expected as 264"),
        (other_text, "another model: text expected as SHA-256"),
        (half_a_file, "is no checkpoint: "),
        (lambda path: path.write_bytes(b"") and [], "is no checkpoint: "),
        (lambda path: path.write_bytes(b"x" * 99) and [], "is no checkpoint: "),
        (lambda path: save_checkpoint(nn.Linear(1, 1), path) or [], "another model: "),
        (lambda path: torch.save([1, 2], path) or [], "is no checkpoint: "),
        (lambda path: ["--checkpoint", str(path.parent)], "Is a directory"),
        (lambda path: ["--checkpoint", "/no/such/a.pt"], "/no/such: No such file"),
    ],
)
def test_a_checkpoint_that_will_not_do_is_an_error_of_one_line(
    text, tmp_path, capsys, change, said
):
    path = tmp_path / "a.pt"
    arguments = ["--steps", "2", *TINY, "--checkpoint", str(path)]
    assert main([text, *arguments]) == 0
    more = change(path) or []
    before, texts = path.read_bytes(), [a for a in more if a.endswith(".txt")]
    capsys.readouterr()
    options = [argument for argument in more if argument not in texts]
    assert main([*(texts or [text]), *arguments, *options]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ") and said in err and err.count("\n") == 1
    assert path.read_bytes() == before


@pytest.mark.parametrize("wrong", ["0", "-1", "1.5", "many"])
def test_a_number_of_steps_that_will_not_do_is_an_error(text, capsys, wrong):
    with pytest.raises(SystemExit) as error:
        main([text, f"--steps={wrong}"])
    assert error.value.code == 2
    assert f"expected a whole number from 1, got {wrong}" in capsys.readouterr().err


def test_help_fits_on_a_screen_and_gives_the_defaults(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40 and max(map(len, lines)) <= 80
    assert any(re.match(r" +--steps N +steps in all \(1000\)", line) for line in lines)


DEFAULTS = {
    "steps": 1000, "save_every": 100, "batch": 8, "accumulate": 1, "context": 64,
    "width": 96, "heads": 4, "layers": 2, "merges": 256, "lr": 0.0015, "dropout": 0.1,
    "seed": 0, "checkpoint": None,
}  # fmt: skip


def test_the_help_says_what_each_option_is_and_what_it_is_by_default(
    capsys, monkeypatch
):
    assert vars(command._options(["a.txt"])) == {"text": Path("a.txt"), **DEFAULTS}
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main(["--help"])
    usage, about, *options, notes = capsys.readouterr().out.split("\n\n")
    assert usage.startswith("usage: python -m utils.training [-h] [--checkpoint FILE]")
    assert usage.endswith("TEXT")
    assert about == "Train the course's GPT on a text, then let it write."
    assert notes == (
        "The last tenth of the text is held out. The training loss is the mean of the "
        "last 50 steps. Losses are in nats per token.\n"
    )
    lines = "\n".join(options).splitlines()
    for said in (
        " a file of text, in UTF-8",
        " a file to keep the training in: after a crash or Ctrl-C the same command "
        "goes on from it, to the same losses",
    ):
        assert [line for line in lines if line.endswith(said)], said
    for name, default in DEFAULTS.items():
        option = rf" +--{name.replace('_', '-')} [NX] +[a-z][a-z ,]* \({default}\)"
        if default is not None:
            assert [line for line in lines if re.fullmatch(option, line)], name


def test_a_batch_depends_on_its_seed_and_number_alone():
    ids = torch.arange(1000)
    torch.manual_seed(0)
    random.seed(0)
    first = draw_windows(ids, 5, 4, seed=1, number=7)
    torch.rand(3), random.random()
    again = draw_windows(ids, 5, 4, seed=1, number=7)
    assert torch.equal(first[0], again[0]) and torch.equal(first[1], again[1])
    assert torch.equal(first[1], first[0] + 1)
    for seed, number in ((1, 8), (2, 7)):
        assert not torch.equal(first[0], draw_windows(ids, 5, 4, seed, number)[0])


def test_windows_are_drawn_from_the_whole_text():
    inputs, targets = draw_windows(torch.arange(9), 4, 500, seed=0, number=0)
    assert set(inputs[:, 0].tolist()) == {0, 1, 2, 3, 4}
    assert targets.max() == 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that can fork")
def test_killed_again_and_again_the_command_comes_to_the_same_losses(text):
    """Run in a process that has computed nothing yet, since it starts the others."""
    arguments = [text, "--steps", "200", "--save-every", "4", *TINY]
    command = [sys.executable, "-m", "tests.kill_training", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    steps, undisturbed, resumed = done.stdout.splitlines()
    assert undisturbed == resumed
    assert len(re.findall(r"\d+(?=[,\]])", steps)) >= 5, steps


def test_nothing_to_resume_from_is_said():
    with pytest.raises(ValueError, match="expected a checkpoint to resume from"):
        train(nn.Linear(1, 1), [line()], fit, 3, resume=True)


@pytest.mark.parametrize("share", ["1", "-0.5", "much"])
def test_the_command_takes_a_share_below_1_as_dropout(share, text, capsys):
    with pytest.raises(SystemExit):
        main([text, "--dropout", share, *TINY])
    assert "--dropout" in capsys.readouterr().err
