"""The number of threads of a training: one where another program makes all slower."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from utils.training import threads, train


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
