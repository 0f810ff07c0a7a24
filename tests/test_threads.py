"""The number of threads of a training: one where another program makes all slower."""

import itertools
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from utils.training import threads, train
from utils.training.threads import FasterThreads


@pytest.fixture
def machine(monkeypatch):
    """Return a machine with two threads whose `seconds` say how long a step takes."""
    machine = SimpleNamespace(threads=2, now=0.0, seconds={2: 1.0, 1: 2.0}, used=[])
    calls = SimpleNamespace(
        set_num_threads=lambda number: setattr(machine, "threads", number),
        get_num_threads=lambda: machine.threads,
    )
    monkeypatch.setattr(threads, "_left", None)
    monkeypatch.setattr(threads, "_next_trial", 0.0)
    monkeypatch.setattr(threads, "torch", calls)
    monkeypatch.setattr(threads.time, "perf_counter", lambda: machine.now)
    return machine


def steps(machine, number, choice=None):
    """Take steps, as a training does; return the choice."""
    choice = choice or FasterThreads()
    for _ in range(number):
        with choice:
            machine.used.append(machine.threads)
            machine.now += machine.seconds[machine.threads]
    return choice


@pytest.mark.parametrize("one", [2.0, 1.0])
def test_three_steps_in_a_hundred_are_tried_with_one_thread_if_it_is_no_faster(
    machine, one
):
    machine.seconds = {2: 1.0, 1: one}
    steps(machine, 300)
    assert machine.used == 3 * (3 * [1] + 97 * [2])


@pytest.mark.parametrize("seconds", [{2: 5.0, 1: 1.4}, {2: 2.5, 1: 1.0}])
def test_beside_a_busy_program_one_thread_is_taken_after_one_slow_step(
    machine, seconds
):
    machine.seconds = seconds
    steps(machine, 100)
    assert machine.used == 3 * [1] + [2] + 96 * [1]


@pytest.mark.parametrize("seconds", [{2: 1.5, 1: 1.4}, {2: 2.0, 1: 1.0}])
def test_what_takes_at_most_twice_as_long_is_tried_three_times(machine, seconds):
    machine.seconds = seconds
    steps(machine, 100)
    assert machine.used == 3 * [1] + 3 * [2] + 94 * [1]


def test_trials_in_vain_take_a_tenth_of_the_time(machine):
    machine.seconds = {2: 1001.0, 1: 1.0}
    steps(machine, 20_300)
    slow = [place for place, used in enumerate(machine.used) if used == 2]
    assert slow == [3, 10_007, 20_011]  # 10,000 later, and three with one


def test_the_next_training_waits_with_its_trial_too(machine):
    machine.seconds = {2: 1.0, 1: 0.5}  # three trials lose 1.5 seconds
    steps(machine, 6).settle()
    steps(machine, 40).settle()
    assert machine.used == 3 * [1] + 3 * [2] + 33 * [1] + 3 * [2] + 4 * [1]


def test_it_takes_all_again_when_the_other_program_has_ended(machine):
    machine.seconds = {2: 5.0, 1: 1.0}
    choice = steps(machine, 100)
    machine.seconds, machine.used = {2: 1.0, 1: 1.4}, []
    steps(machine, 200, choice)
    assert machine.used == 3 * [1] + 97 * [2] + 3 * [1] + 97 * [2]


def test_what_was_faster_last_stands_until_the_next_trial_is_over(machine):
    machine.seconds = {2: 5.0, 1: 1.4}
    choice = steps(machine, 102)
    choice.settle()
    assert machine.threads == 1


@pytest.mark.parametrize("taken, left", [(2, 2), (3, 2), (4, 1), (50, 1)])
def test_what_was_faster_is_left_once_it_is_known(machine, taken, left):
    machine.seconds = {2: 5.0, 1: 1.4}
    steps(machine, taken).settle()
    assert machine.threads == left


@pytest.mark.parametrize("seconds, left", [(1.25, 2), (1.5, 1)])
def test_one_thread_is_left_where_it_was_clearly_faster(machine, seconds, left):
    machine.seconds = {2: seconds, 1: 1.0}
    steps(machine, 50).settle()
    assert machine.used == 3 * [1] + 3 * [2] + 44 * [1]
    assert machine.threads == left


def test_the_next_training_begins_with_the_readers_own_number(machine):
    machine.seconds = {2: 5.0, 1: 1.4}
    steps(machine, 9).settle()
    assert machine.threads == 1
    assert FasterThreads().all == 2


def test_a_number_that_the_reader_sets_is_theirs(machine):
    machine.seconds[4] = 0.5
    machine.threads = 4
    steps(machine, 9).settle()
    assert machine.used == 3 * [1] + 6 * [4]
    assert machine.threads == 4


def test_the_steps_of_any_loop_run_so(machine):
    machine.seconds = {2: 5.0, 1: 1.4}
    for _, batch in zip(range(9), threads.faster_threads(itertools.count())):
        machine.used.append((machine.threads, batch))
        machine.now += machine.seconds[machine.threads]
    assert machine.used == [(2 if place == 3 else 1, place) for place in range(9)]
    assert machine.threads == 1


@pytest.mark.parametrize("keeps", [True, False])
def test_a_training_with_a_checkpoint_keeps_its_number(keeps, monkeypatch, tmp_path):
    before, seen = torch.get_num_threads(), set()
    monkeypatch.setattr(threads, "_left", (before + 1, before))
    monkeypatch.setattr(threads, "_next_trial", 0.0)  # whatever was trained before

    def watch(model, x):
        seen.add(torch.get_num_threads())
        return model(x).square().mean()

    checkpoint = tmp_path / "model.pt" if keeps else None
    try:
        train(nn.Linear(1, 1), [torch.ones(3, 1)], watch, 4, checkpoint=checkpoint)
    finally:
        torch.set_num_threads(before)
    assert seen == ({before + 1} if keeps else {before + 1, 1})
