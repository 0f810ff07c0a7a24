"""The engine of the checks: it survives any answer, names by evidence, keeps quiet."""

import os
import random
import re
import sys

import numpy as np
import pytest
import torch
from exercises import EXERCISES, answer_from
from repository import ROOT
from torch import nn

from utils.checks import check, progress, records, steps
from utils.checks.course import CASES, notebooks

# ---- nonsense: through every exercise, whatever it is ----------------------------


def returns(make):
    """Return a function and a module class that give `make()` for any arguments."""

    def function(*args):
        return make()

    class Module(nn.Module):
        def __init__(self, *args):
            super().__init__()
            self.W_query = nn.Linear(*args[:2], bias=False)
            self.W_key = nn.Linear(*args[:2], bias=False)
            self.W_value = nn.Linear(*args[:2], bias=False)
            self.out_proj = nn.Linear(args[1], args[1])

        def forward(self, x):
            return make()

    return function, Module


def raises(error):
    def make():
        raise error

    return make


def recurse():
    return recurse()


def change_settings():
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    torch.set_printoptions(precision=1)
    random.seed(1)
    np.random.seed(1)
    sys.setrecursionlimit(5000)
    sys.stdout = None
    return torch.rand(3) + random.random() + np.random.rand()


class Hostile:
    """An object none of whose usual services work."""

    def __getattribute__(self, name):
        raise RuntimeError("no attributes here")

    def __repr__(self):
        raise RuntimeError("no repr here")

    def __eq__(self, other):
        raise RuntimeError("no comparison here")

    def __bool__(self):
        raise RuntimeError("no truth here")

    def __len__(self):
        raise RuntimeError("no length here")

    __hash__ = None


class HostileTensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise RuntimeError("no operation here")


def endless():
    while True:
        yield 1


async def later(*args):
    return 1


def cyclic():
    loop = []
    loop.append(loop)
    return loop


VALUES = {
    "none": lambda: None,
    "nan": lambda: torch.full((2, 3), torch.nan),
    "empty tuple": lambda: (),
    "cyclic list": cyclic,
    "long list": lambda: list(range(100_000)),
    "hostile object": Hostile,
    "hostile tensor": lambda: torch.ones(2, 3).as_subclass(HostileTensor),
    "endless generator": endless,
    "meta tensor": lambda: torch.ones(2, 3, device="meta"),
    "bool tensor": lambda: torch.ones(2, 3, dtype=torch.bool),
    "huge tensor": lambda: torch.ones(1).expand(10**6, 10**6),
    "tensor with gradient": lambda: torch.ones(2, 3, requires_grad=True) * 2,
    "raises": raises(RuntimeError("went wrong")),
    "raises a long text": raises(ValueError("x" * 10**6)),
    "exits": raises(SystemExit(1)),
    "interrupts": raises(KeyboardInterrupt()),
    "recurses": recurse,
    "changes settings": change_settings,
}
OBJECTS = {
    "none": None,
    "number": 3,
    "tensor": torch.ones(2, 3),
    "lambda without arguments": lambda: None,
    "lambda of too many": lambda a, b, c, d, e, f, g: None,
    "class of its own": object,
    "module instance": nn.Linear(3, 5),
    "hostile object": Hostile(),
    "generator function": endless,
    "coroutine function": later,
}


def nonsense():
    for name, make in VALUES.items():
        yield pytest.param(returns(make), id=f"returns {name}")
    for name, answer in OBJECTS.items():
        yield pytest.param((answer, answer), id=f"is {name}")


@pytest.fixture
def short_search(monkeypatch):
    """Do not look long for two mistakes where there are none to be found."""
    monkeypatch.setattr(steps, "LIMIT", 0.02)


@pytest.mark.usefixtures("short_search")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("answers", [*nonsense()])
def test_any_answer_gets_a_message(answers):
    for id, exercise in EXERCISES.items():
        answer = answers[exercise.noun == "class"]
        before = settings()
        result = check(id, answer)
        assert not result.passed
        assert exercise.name in result.message
        assert "xpected" in result.message or "raised" in result.message
        assert len(result.message) < 1500
        assert settings() == before


NEARLY = {
    "a NumPy array": lambda right: right.numpy(),
    "a nested list": lambda right: [right.tolist()],
    "one axis more": lambda right: right[None],
    "one axis less": lambda right: right[0],
    "sparse": lambda right: right.to_sparse(),
    "NaN": lambda right: torch.full(right.shape, torch.nan),
    "twice": lambda right: right * 2 + 1,
    "noisy": lambda right: right + 0.01 * torch.rand(right.shape),
    "in bytes": lambda right: right.to(torch.uint8) + 7,
}


@pytest.mark.usefixtures("short_search")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("spoil", NEARLY.values(), ids=NEARLY)
def test_a_spoilt_right_answer_is_refused(spoil):
    def spoilt(right):
        if isinstance(right, tuple):
            return tuple(map(spoilt, right))
        return spoil(right if isinstance(right, torch.Tensor) else torch.tensor(right))

    for id, exercise in EXERCISES.items():
        answer = answer_from(
            exercise, lambda *args, e=exercise: spoilt(e.oracle(*args))
        )
        result = check(id, answer)
        assert not result.passed
        assert "xpected" in result.message or "raised" in result.message


def settings():
    """Return the random state and the global settings as one comparable text."""
    return repr(
        [
            torch.get_rng_state().sum(),
            random.getstate(),
            np.random.get_state()[1].sum(),
            torch.get_default_dtype(),
            torch.is_grad_enabled(),
            torch.are_deterministic_algorithms_enabled(),
            vars(torch._tensor_str.PRINT_OPTS),
            sys.getrecursionlimit(),
            sys.stdout,
            os.getcwd(),
        ]
    )


# ---- the engine's own sentences ---------------------------------------------------


MISTAKES = [(e, mistake) for e in EXERCISES.values() for mistake in e.pipeline.mistakes]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("exercise", "mistake"), MISTAKES, ids=[f"{e.id}-{m.slugs[0]}" for e, m in MISTAKES]
)
def test_every_mistake_is_told_apart_and_explained(exercise, mistake):
    """Its own function gets its own slug, so no mistake hides behind another."""
    result = check(exercise.id, answer_from(exercise, mistake.compute))
    assert result.diagnosis == mistake.slugs[0], result.message
    assert not result.message.endswith(f"\n{mistake.slugs[0]}.")  # its text failed
    assert 2 < len(result.message.splitlines()) < 10


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
def test_oracle_is_a_right_answer(exercise):
    if exercise.noun == "function":
        assert check(exercise.id, exercise.oracle).passed


def test_stub_is_not_attempted():
    def softmax(scores, dim=-1):
        raise NotImplementedError

    result = check("3.1", softmax)
    assert result.diagnosis == "not-attempted"
    assert "3.1 softmax: not attempted yet." in result.message


def test_error_is_shown_with_the_readers_line():
    def softmax(scores, dim=-1):
        return scores.no_such_method()

    message = check("3.1", softmax).message
    assert "AttributeError" in message
    assert "return scores.no_such_method()" in message
    assert "Traceback" not in message


CHANGES = {
    "threads": (torch.get_num_threads, lambda: torch.set_num_threads(3)),
    "device": (torch.get_default_device, lambda: torch.set_default_device("meta")),
    "folder": (os.getcwd, lambda: os.chdir("/")),
}


@pytest.mark.parametrize("read, change", CHANGES.values(), ids=CHANGES)
def test_what_an_answer_sets_for_all_of_python_is_put_back(read, change):
    before = read()

    def softmax(scores, dim=-1):
        change()
        return torch.softmax(scores, dim)

    assert check("3.1", softmax).passed
    assert read() == before


def test_changed_input_is_named():
    def softmax(scores, dim=-1):
        scores -= scores.amax(dim, keepdim=True)
        return scores.exp() / scores.exp().sum(dim, keepdim=True)

    result = check("3.1", softmax)
    assert result.diagnosis == "input-changed"
    assert "`scores`" in result.message


def test_unknown_exercise_lists_the_ids():
    for id in ("99.1", 3.1, None, Hostile()):
        result = check(id, None)
        assert result.diagnosis == "no-such-exercise"
        assert "3.1" in result.message


# ---- progress ---------------------------------------------------------------------


def right(scores, dim=-1):
    return torch.softmax(scores, dim)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"passed": 3}',
        '{"passed": [1]}',
        "\x00\xff",
        '{"passed": "3.1"}',
    ],
)
def test_a_damaged_file_is_said_once_and_kept(own_progress, capsys, text):
    for number in (1, 2):
        own_progress.write_bytes(text.encode("latin-1"))
        assert records.load() == records.load() == set()
        check("3.1", right)
        assert records.load() == {"3.1"}
        kept = own_progress.with_name(f"progress.damaged{number}")
        assert kept.read_bytes() == text.encode("latin-1")
    said = " ".join(capsys.readouterr().out.split())
    assert said.count("progress.json is damaged, so nothing counts as passed.") == 1


def test_progress_draws_the_map_of_what_is_passed(own_progress, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "utils.plots.course_map", lambda status, title: drawn.append((status, title))
    )
    check("3.1", right)
    assert progress() == ["3.1"]
    status, title = drawn[0]
    assert title == f"1 of {len(EXERCISES) + len(CASES)} exercises passed"
    row = next(row for row in status if row[0] == 3)
    assert (row[1], row[3], row[4], row[5]) == ("Context vectors", 1, 3, [2])
    assert sum(row[4] for row in status) == len(EXERCISES) + len(CASES)


def test_each_notebook_says_its_name_minutes_and_needs():
    for number, name, minutes, needs in notebooks():
        assert name and minutes > 0, f"{number:02d}"
        assert all(needed < number for needed in needs)
        assert needs or number == 0, f"{number:02d}"


def test_the_exercises_with_a_check_are_those_with_a_card():
    paths = sorted((ROOT / "notebooks").rglob("*.ipynb"))
    text = "".join(p.read_text(encoding="utf-8") for p in paths if "/sol" not in str(p))
    cards = set(re.findall(r"### Exercise (\d+\.\d+):", text))
    assert sorted(cards) == sorted(EXERCISES)
