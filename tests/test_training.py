"""Each test pins one sentence about `utils.training`, the loop."""

import signal
from itertools import pairwise
from types import SimpleNamespace

import ipywidgets
import pytest
import torch
from parallel_worker import in_processes, press_ctrl_c_in_the_second
from torch import nn
from torch.utils.data import DataLoader

from utils.training import (
    decay_groups,
    learning_rate,
    load_checkpoint,
    save_checkpoint,
    threads,
    train,
)


def fit(model, batch):
    inputs, targets = batch
    return (model(inputs) - targets).square().mean()


def line():
    inputs = torch.linspace(-1, 1, 11)[:, None]
    return inputs, 3 * inputs - 1


def test_training_without_a_batch_is_an_error():
    with pytest.raises(ValueError, match="to go through again, got none after 0 step"):
        train(nn.Linear(1, 1), [], fit, steps=1)


def test_the_rate_rises_along_a_line_and_falls_along_a_cosine():
    rates = [learning_rate(step, 104, 1.0, 4, 0.1) for step in range(104)]
    assert rates[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert rates[103] == pytest.approx(0.1)
    middle = learning_rate(5, 11, 1.0, 0, 0.1)
    assert middle == pytest.approx(0.55)
    assert all(high >= low for high, low in pairwise(rates[4:]))


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


def test_clipping_bounds_the_norm_of_the_gradient():
    def slope(model, batch):  # 1 everywhere
        return model.weight.sum()

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


def test_in_a_notebook_a_bar_moves_five_times_a_second(monkeypatch):
    shown, bars, values, clock = [], [], [], SimpleNamespace(now=100.0)

    class Kept(ipywidgets.IntProgress):
        def __init__(self, **options):
            super().__init__(**options)
            self.observe(lambda change: values.append(change.new), names="value")
            bars.append(self)

    def tick(model, batch):
        clock.now += 0.15
        return fit(model, batch)

    notebook = SimpleNamespace(kernel="there")
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr("utils.training.time", clock)
    monkeypatch.setattr("utils.training.get_ipython", lambda: notebook)
    monkeypatch.setattr("utils.training.display", lambda *a, **o: shown.append((a, o)))
    monkeypatch.setattr(ipywidgets, "IntProgress", Kept)
    losses = train(nn.Linear(1, 1), [line()], tick, steps=8)
    assert values == [1, 3, 5, 7, 8] and bars[0].max == 8
    assert bars[0].description == f"{losses[-1]:.3f}"
    [((bundle,), options)] = shown
    view = bundle.pop("application/vnd.jupyter.widget-view+json")
    assert view["model_id"] == bars[0].model_id and options == {"raw": True}
    assert bundle == {"text/plain": "training, 8 steps"}  # the same in every run


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


def saved(other, heads):
    return lambda model, path: save_checkpoint(other, path, about={"heads": heads})


def flipped(model, path):
    save_checkpoint(model, path, about={"heads": 2})
    content = bytearray(path.read_bytes())
    content[content.index(model.weight.detach().numpy().tobytes()) + 1234] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "write, said",
    [
        (lambda model, path: path.write_bytes(b""), "no checkpoint: File is not a zip"),
        (flipped, "a.pt is no checkpoint: .* is damaged"),
        (saved(nn.Linear(3, 2), 2), r"another model: .* got \(2, 3\)"),
        (saved(nn.Linear(100, 100), 4), "another model: heads expected as 2, got 4"),
    ],
)
def test_a_checkpoint_that_will_not_do_is_named_and_changes_nothing(
    tmp_path, write, said
):
    model, path = nn.Linear(100, 100), tmp_path / "a.pt"
    write(model, path)
    before = model.weight.clone()
    with pytest.raises(ValueError, match=said):
        load_checkpoint(model, path, about={"heads": 2})
    assert torch.equal(model.weight, before)


def test_ctrl_c_waits_for_the_end_of_the_step_and_keeps_it(tmp_path, ctrl_c):
    keep, calls = {"checkpoint": tmp_path / "a.pt"}, []
    expected = train(dropping(), [line()], fit, steps=9)

    def press(model, batch):
        calls.append(batch)
        if len(calls) == 5:
            signal.raise_signal(signal.SIGINT)
        return fit(model, batch)

    model = dropping()
    with pytest.raises(KeyboardInterrupt):
        train(model, [line()], press, steps=9, **keep)
    assert torch.load(tmp_path / "a.pt")["step"] == 5 and not model.training
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert train(dropping(), [line()], fit, 9, resume=True, **keep) == expected


def test_ctrl_c_in_one_process_ends_all_after_the_same_step(tmp_path, ctrl_c):
    assert in_processes(2, press_ctrl_c_in_the_second, tmp_path) == [3, 3]
    assert [file.name for file in tmp_path.glob("*.pt")] == ["0.pt"]
    assert torch.load(tmp_path / "0.pt")["step"] == 3


@pytest.mark.parametrize("one, rest", [(2.0, 2), (0.5, 1)])
def test_most_steps_run_with_the_number_of_threads_that_is_faster(
    one, rest, monkeypatch
):
    machine = SimpleNamespace(threads=2, now=0.0, seconds={2: 1.0, 1: one})
    calls = SimpleNamespace(
        set_num_threads=lambda number: setattr(machine, "threads", number),
        get_num_threads=lambda: machine.threads,
    )
    monkeypatch.setattr(threads, "torch", calls)
    monkeypatch.setattr(threads.time, "perf_counter", lambda: machine.now)
    used = []
    for batch in threads.faster_threads(range(200)):
        assert batch == len(used)
        used.append(machine.threads)
        machine.now += machine.seconds[machine.threads]
    assert used == 2 * (3 * [1] + 3 * [2] + 94 * [rest])
    assert machine.threads == 2


def test_a_training_with_a_checkpoint_keeps_its_number_and_any_leaves_it(tmp_path):
    before, seen = torch.get_num_threads(), []

    def watch(model, x):
        seen.append(torch.get_num_threads())
        return model(x).square().mean()

    try:
        torch.set_num_threads(2)
        for checkpoint in (None, tmp_path / "model.pt"):
            train(nn.Linear(1, 1), [torch.ones(3, 1)], watch, 6, checkpoint=checkpoint)
            assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert seen == 3 * [1] + 9 * [2]
