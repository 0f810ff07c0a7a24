"""The checks survive any answer, name mistakes by evidence, and keep quiet."""

import functools
import itertools
import math
import os
import random
import time
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
import torch
from nbformat.v4 import new_code_cell, new_notebook
from torch import nn
from torch.nn import functional as F

from tests.answers import ANSWERS
from tests.every_exercise import EXERCISES, answer_from
from utils.attention import MultiHeadAttention, SelfAttention, merge_heads, split_heads
from utils.checks import check, reader, solution
from utils.checks.definition import Case
from utils.checks.engine import guard, mistakes
from utils.checks.engine.messages import describe_difference, wrap_lines
from utils.checks.submission import QKV

# ---- wrong answers to every exercise -----------------------------------------------


def raises(error):
    def answer(right):
        raise error

    return answer


def recurse(right):
    return recurse(right)


def change_settings(right):
    result = torch.rand(3) + random.random() + np.random.rand()
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    torch.set_num_threads(3)
    torch.set_default_device("meta")
    torch.set_printoptions(precision=1)
    np.seterr(all="raise")
    os.chdir("/")
    torch.manual_seed(1)
    random.seed(1)
    np.random.seed(1)
    return result


def settings():
    """Return the random state and the global settings as one comparable text."""
    now = [torch.get_rng_state().sum(), random.getstate(), np.random.get_state()[1]]
    now += [torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads()]
    now += [torch.get_default_device(), torch.tensor(1 / 3), np.geterr(), os.getcwd()]
    return repr(now)


class Hostile:
    """An object that can neither be shown nor compared."""

    def __repr__(self):
        raise RuntimeError("no repr here")

    def __eq__(self, other):
        raise RuntimeError("no comparison here")

    __hash__ = None


def cyclic(right):
    loop = []
    loop.append(loop)
    return loop


RETURNED = {
    "none": lambda right: None,
    "a nested tuple": lambda right: (((((1,),),),),),
    "a cyclic list": cyclic,
    "a hostile object": lambda right: Hostile(),
    "a list of any objects": lambda right: [Hostile(), 3],
    "an endless generator": lambda right: (1 for _ in itertools.count()),
    "a sparse tensor": lambda right: torch.eye(3).to_sparse(),
    "a meta tensor": lambda right: torch.ones(2, 3, device="meta"),
    "a huge tensor": lambda right: torch.ones(1).expand(10**6, 10**6),
    "a long error": raises(ValueError("x" * 10**6)),
    "an exit": raises(SystemExit(1)),
    "an interrupt": raises(KeyboardInterrupt()),
    "recursion": recurse,
    "other settings": change_settings,
    "NaN": lambda right: torch.full(right.shape, torch.nan),
    "noisy": lambda right: right + 0.01 * torch.rand(right.shape),
}
NO_ANSWERS = [None, 3, lambda: None, lambda a, b, c, d, e, f, g: None, nn.Linear(3, 5)]


def in_each_part(change, right):
    """Change what an exercise expects, in each part where it has several."""
    if isinstance(right, tuple):
        return tuple(in_each_part(change, part) for part in right)
    return change(right)


def refused(exercise, answer):
    before = settings()
    result = check(exercise.id, answer)
    assert not result.passed
    assert exercise.name in result.message
    message = " ".join(result.message.split())
    assert "xpected" in message or "your code raised" in message
    assert len(result.message) < 1500 and "OpaqueValue(" not in message
    assert settings() == before


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", RETURNED)
def test_whatever_is_returned_is_refused(name, monkeypatch, pytestconfig):
    """Every answer goes to a third of the exercises, in the full run to all."""
    # There are no two mistakes to find here, and the search would take long.
    search = [mistakes.find_single_mistake]
    monkeypatch.setattr("utils.checks.examine.EXPLANATIONS", search)
    spoil, exercises = RETURNED[name], [*EXERCISES.values()]
    if not pytestconfig.getoption("--full"):
        exercises = exercises[[*RETURNED].index(name) % 3 :: 3]
    for exercise in exercises:

        def spoilt(*args, right=exercise.right):
            return in_each_part(lambda x: spoil(torch.as_tensor(x)), right(*args))

        refused(exercise, answer_from(exercise, spoilt))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("answer", NO_ANSWERS)
def test_whatever_is_handed_in_is_refused_with_a_message(answer):
    for exercise in EXERCISES.values():
        refused(exercise, answer)


RIGHT = {e.name: e.course for e in EXERCISES.values()}
RIGHT |= {answer.__name__: answer for answer, names in ANSWERS if not names}
FUNCTIONS = [e for e in EXERCISES.values() if e.kind == "function" and RIGHT[e.name]]


@pytest.mark.parametrize("exercise", FUNCTIONS, ids=lambda exercise: exercise.id)
def test_a_result_in_float64_is_named_whatever_the_default_device_is(exercise):
    def answer(*inputs, **named):
        result = RIGHT[exercise.name](*inputs, **named)
        return in_each_part(lambda x: x.double() if is_float(x) else x, result)

    with torch.device("meta"):
        result = check(exercise.id, answer)
    assert result.passed or result.diagnosis == "other-precision", result.message


@pytest.mark.parametrize("axes", [(), (0,)], ids=["squeeze()", "squeeze(0)"])
@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
def test_an_axis_of_length_1_must_not_get_lost(exercise, axes):
    right, is_changed = exercise.right, []

    def cut(value):
        if not isinstance(value, torch.Tensor):
            return value
        is_changed.append(1 in (value.shape[:1] if axes else value.shape))
        return value.squeeze(*axes)

    answer = answer_from(exercise, lambda *x: in_each_part(cut, right(*x)))
    result = check(exercise.id, answer)
    if not is_changed:  # the result has no tensor
        assert result.passed
        return
    assert any(is_changed) and not result.passed
    assert result.diagnosis == "axis-lost"
    is_changed.clear()
    answer = answer_from(exercise, lambda *x: right(*map(cut, x)))
    assert check(exercise.id, answer).passed != any(is_changed)


def is_float(part):
    return isinstance(part, torch.Tensor) and part.is_floating_point()


# ---- the engine's own sentences ---------------------------------------------------


def stub(scores, dim=-1):
    raise NotImplementedError


def on_no_device(scores, dim=-1):  # the error of a stub, but not a stub
    return torch.linalg.inv(scores.to("meta")).cpu()


def unfinished(scores, dim=-1):
    if scores.dim() == 2:
        raise NotImplementedError("batches")
    if scores.dim() > 2:
        raise NotImplementedError("batches")
    return torch.softmax(scores, dim)


def nearly_right(scores, dim=-1):  # the same to four digits
    weights = torch.softmax(scores, dim)
    weights[..., 0] -= 2e-5
    weights[..., 1] -= 2e-5
    return weights


def stub_line_above(scores, dim=-1):
    """Turn scores into weights."""
    raise NotImplementedError
    return torch.softmax(scores, dim)


def without_dim(scores):
    return torch.softmax(scores, -1)


def with_axis(scores, axis=-1):
    return torch.softmax(scores, axis)


@pytest.mark.parametrize(
    ("answer", "slug", "words"),
    [
        (stub, "not-attempted", "3.3 softmax: not attempted yet."),
        (stub_line_above, "stub-line-left", "> raise NotImplementedError\n"),
        (on_no_device, None, "your code raised"),
        (unfinished, None, "NotImplementedError: batches"),
        (nearly_right, None, "expected [0.09003057, 0.24472848, 0.66524094]"),
        (nearly_right, None, "got      [0.09001058, 0.24470848, 0.66524094]"),
        (nearly_right, None, "\nThis check has no name for it, or it is more than two"),
        (without_dim, "other-parameters", "got an unexpected keyword argument 'dim'"),
        (with_axis, "other-parameters", "Your parameters aren't those of the card"),
    ],
)
def test_the_message_says_what_came(answer, slug, words):
    result = check("3.3", answer)
    assert not result.passed and result.diagnosis == slug
    assert words in result.message and "Traceback" not in result.message


def test_an_endless_loop_is_stopped_with_its_line(monkeypatch):
    monkeypatch.setattr(guard, "SECONDS", 0.2)
    calls = []

    def softmax(scores, dim=-1):
        calls.append(dim)
        i = 0
        while i < len(scores):
            scores = scores + 0
        return scores

    result = check("3.3", softmax)
    assert result.diagnosis == "never-ends" and len(calls) == 1, "once is enough"
    assert "scores = [1.0, 2.0, 3.0]" in result.message
    assert "scores = scores + 0" in result.message or "while i <" in result.message
    assert check("3.3", lambda scores, dim=-1: scores.softmax(dim)).passed


def test_a_check_that_takes_long_says_so(monkeypatch, capsys):
    monkeypatch.setattr(guard, "PATIENCE", 0.1)
    check("3.3", lambda scores, dim=-1: time.sleep(0.5))
    assert capsys.readouterr().out.startswith("This check has run for half a minute: ")


def test_a_compiled_answer_is_not_taken_for_an_endless_one(monkeypatch):
    monkeypatch.setattr(guard, "SECONDS", 0.5)
    compiled = torch.compile(lambda scores, dim=-1: torch.softmax(scores, dim))
    assert check("3.3", compiled).passed


@pytest.mark.parametrize(
    ("wrong", "shown"),
    [(3, "[1:] is\n  expected [1.0, 3.0, 4.0"), (9, "[4:] is\n  expected [4.0, 5.0")],
)
def test_the_entry_that_differs_is_among_those_shown(wrong, shown):
    """Entries that may be anything, NaN on both sides, aren't shown, but counted."""
    run = SimpleNamespace(case=Case(3), error=None, expected=torch.arange(12.0))
    run.expected[[0, 2]] = torch.nan
    run.value = run.expected + (torch.arange(12) == wrong)
    text = describe_difference(EXERCISES["5.1"], run)
    assert f"On num_tokens = 3 the result{shown}" in text
    assert f"{wrong + 1}.0" in text.splitlines()[2]


def largest_of_last_axis(scores, dim=-1):
    print("running")
    scores = scores.view(*scores.shape)
    largest = scores.amax(-1, keepdim=True)
    exponentials = torch.exp(scores - largest)
    return exponentials / exponentials.sum(dim, keepdim=True)


def clamped(scores, dim=-1):
    return scores.clamp(-1e4, 1e4).softmax(dim)


AXIS_CHANGED = "write `dim` instead of `-1`, which gives `largest = scores.amax(dim, k"


def without_the_second(ids, table):
    one_hot = torch.nn.functional.one_hot(ids, len(table)).to(table.dtype)
    one_hot[..., 1] = (
        0); return one_hot @ table  # fmt: skip  # noqa: E702


@pytest.mark.parametrize(
    ("id", "answer", "words"),
    [
        ("3.3", largest_of_last_axis, AXIS_CHANGED),
        ("2.1", without_the_second, "leave out `one_hot[..., 1] = 0`."),
        ("3.3", clamped, "write `scores` instead of `scores.clamp(-10000.0, 10000.0)`"),
    ],
)
def test_a_mistake_without_a_name_is_shown_by_its_correction(id, answer, words, capsys):
    message = " ".join(check(id, answer).message.split())
    assert "One change makes all your results right: " + words in message
    assert capsys.readouterr().out.count("running") < 50


def in_chunks_of_words(x, num_heads):
    return torch.stack(x.chunk(num_heads, dim=1), dim=1)


def test_a_correction_of_results_alone_is_one_of_two_things():
    result = check("6.1", in_chunks_of_words)
    assert (result.diagnosis, result.also) == ("one-change", "width-not-divided")


def with_a_shape(scores, dim=-1):  # `scores.shape * n` would be a huge tensor's
    ones = torch.ones((1,) * scores.dim())
    return ones * torch.softmax(scores, -1 - dim)


def with_a_setting(scores, dim=-1):  # not all of PyTorch computes: see torch.save
    torch.set_num_threads(1)
    exponentials = torch.exp(scores - scores.amax(-1, keepdim=True))
    return exponentials / exponentials.sum(dim, keepdim=True)


UNCHANGED = [functools.cache(largest_of_last_axis), with_a_shape, with_a_setting]
OTHER_ERRORS = [  # they look like those that are explained
    lambda scores, dim=-1: [0] * 2.5,  # no size
    lambda scores, dim=-1: scores[1.5],
    lambda scores, dim=-1: nn.Linear(3, 3).wieght,  # no layer is multiplied
    lambda scores, dim=-1: F.gumbel_softmax(),  # not the axis is missing
    lambda scores, dim=-1: scores - scores.sort(dim),  # no maximum
]


@pytest.mark.parametrize("answer", UNCHANGED + OTHER_ERRORS)
def test_what_is_decorated_or_resembles_something_else_gets_no_diagnosis(answer):
    assert check("3.3", answer).diagnosis is None


def test_side_effects_are_not_repeated_while_a_change_is_looked_for():
    dims_used = []

    def softmax(scores, dim=-1):
        dims_used.append(dim)
        exponentials = torch.exp(scores - scores.amax(-1, keepdim=True))
        return exponentials / exponentials.sum(dim, keepdim=True)

    assert check("3.3", softmax).diagnosis is None
    assert len(dims_used) == len(EXERCISES["3.3"].cases)


def test_an_answer_that_is_checked_again_unchanged_is_told_so():
    def softmax(scores, dim=-1):
        return scores

    first, second = (check("3.3", softmax).message.split("\n", 1)[1] for _ in range(2))
    assert second == f"{wrap_lines(reader.CHECKED_BEFORE)}\n{first}"


PAGE = "06_multi_head_attention.ipynb"
CUT = """
def cut(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError(num_heads)
    return x.unflatten(-1, (num_heads, -1))
"""
SPLIT = "def split_heads(x, num_heads):\n    return cut(x, num_heads).transpose(1, 2)"


def save(folder, page, *cells):
    """Write a notebook as a reader leaves it."""
    nbformat.write(new_notebook(cells=[new_code_cell(c) for c in cells]), folder / page)


@pytest.mark.parametrize(
    ("cells", "is_own"),
    [
        (["%%time\nno Python", CUT, SPLIT, 'check("6.1", split_heads)'], True),
        (["print(1 / 0)", CUT, f'{SPLIT}\ncheck("6.1", split_heads)'], True),
        ([CUT, SPLIT.replace("1, 2", "2, 3"), 'check("6.1", x)'], False),
        ([SPLIT, 'check("6.1", split_heads)', CUT], False),
        ([CUT, SPLIT], False),
    ],
)
def test_a_saved_answer_is_read(cells, is_own, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("utils.pages.NOTEBOOKS", tmp_path)
    save(tmp_path, PAGE, *cells)
    assert solution("6.1") is split_heads  # never passed: nothing of the reader's runs
    monkeypatch.setattr("utils.checks.records.load", lambda: {"split_heads"})
    capsys.readouterr()
    answer = solution("6.1")
    sentence = "Using your own" if is_own else "Using the course's"
    assert sentence in capsys.readouterr().out
    assert (answer is split_heads) != is_own
    assert answer(torch.zeros(1, 3, 4), 2).shape == (1, 2, 3, 2)


def test_a_saved_answer_may_use_another_one(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("utils.pages.NOTEBOOKS", tmp_path)
    passed = {"split_heads", "merge_heads"}
    monkeypatch.setattr("utils.checks.records.load", lambda: passed)
    merged = "x.transpose(1, 2).flatten(2)"
    merge = f"def merge_heads(x):\n    return split({merged}, 1)[:, 0]"
    first = [CUT, SPLIT, 'check("6.1", split_heads)']
    names = "from utils.checks import solution\nsplit = solution('6.1')"
    save(tmp_path, PAGE, *first, names, merge, 'check("6.2", merge_heads)')
    assert solution("6.2") is not merge_heads
    assert capsys.readouterr().out.count("Using") == 1


def test_an_answer_that_passed_in_the_hour_is_read_from_there(tmp_path, monkeypatch):
    monkeypatch.setattr("utils.pages.NOTEBOOKS", tmp_path)
    monkeypatch.setattr("utils.checks.records.load", lambda: {"attention_weights"})
    save(tmp_path, "03_context_vectors.ipynb", 'check("3.1", attention_weights)')
    answer = "def attention_weights(x):\n    return (x @ x.mT).softmax(-1)"
    name = "attention_in_an_hour.ipynb"
    save(tmp_path, name, answer, 'check("1", attention_weights)')
    assert solution("3.1") is not EXERCISES["3.1"].course


def test_a_mistake_of_the_checks_is_not_blamed_on_the_answer(monkeypatch):
    monkeypatch.setattr(reader, "examine", math.pow)
    with pytest.raises(TypeError, match="must be real number, not Exercise"):
        check("3.3", F.softmax)


def test_unknown_exercise_lists_the_ids():
    for id in ("99.1", 3.1, None, Hostile()):
        result = check(id, None)
        assert result.diagnosis == "no-such-exercise"
        assert "3.3" in result.message
        is_advised = 'quotes around the id: "3.1".' in result.message
        assert is_advised == (type(id) is float)
    with pytest.raises(ValueError, match="quotes around the id"):
        solution(3.1)


# ---- modules, however they are built, and answers that are not modules --------------


class TransposedParameters(SelfAttention):
    def __init__(self, d_in, d_out):
        super().__init__(d_in, d_out)
        for name in QKV:
            setattr(self, name, nn.Parameter(torch.randn(d_out, d_in)))

    def forward(self, x):
        parts = [x @ getattr(self, name).T for name in QKV]
        return F.scaled_dot_product_attention(*parts)


class InFloat64(SelfAttention):
    def __init__(self, d_in, d_out):
        super().__init__(d_in, d_out)
        self.double()

    def forward(self, x):
        return super().forward(x.double())


@pytest.mark.parametrize("answer", [TransposedParameters, InFloat64])
def test_a_right_module_passes_however_it_is_built(answer):
    assert check("4.2", answer).passed
    assert "pass the class itself, " in check("4.2", answer(3, 4)).message


class CutOff(SelfAttention):
    def forward(self, x):
        return super().forward(x.detach())


def cut_off_attention(query, key, value):
    return EXERCISES["4.1"].right(query, key.detach(), value)


@pytest.mark.parametrize(
    ("id", "answer", "name"), [("4.2", CutOff, "x"), ("4.1", cut_off_attention, "key")]
)
def test_an_answer_lets_gradients_through(id, answer, name):
    result = check(id, answer)
    assert result.diagnosis == "no-gradient"
    assert f"No gradient reaches `{name}`" in result.message


class AssignsAtOnce(nn.Module):
    def __init__(self, *build):
        self.W_query = nn.Linear(3, 5)
        super().__init__()


class AssignsNothing(nn.Module):
    def __init__(self, *build):
        self.build = build


class HidesByLargeNumber(MultiHeadAttention):
    """A right 6.3, and below wrong ones: some drop weights together, along axes."""

    power, together, factor, is_scaled, is_seen = 0.5, (), 1.25, True, False

    def forward(self, x):
        layers = self.W_query, self.W_key, self.W_value
        q, k, v = (split_heads(layer(x), self.num_heads) for layer in layers)
        hidden = torch.full((x.shape[1], x.shape[1]), -1e9).triu(1)
        hidden *= not (self.training and self.is_seen)
        power = self.power * (self.is_scaled or not self.training)
        weights = torch.softmax(q @ k.mT / q.shape[-1] ** power + hidden, dim=-1)
        sizes = [1 if a in self.together else n for a, n in enumerate(weights.shape)]
        if self.training and self.dropout_p:
            weights = weights * (torch.rand(sizes) >= self.dropout_p) * self.factor
        return self.out_proj(merge_heads(weights @ v))


class NeverDrops(HidesByLargeNumber):
    power, dropout_p = 0.3, property(lambda self: 0.0, lambda self, p: None)


class AlwaysDrops(HidesByLargeNumber):
    power = 0.3

    def eval(self):
        return self


def test_what_does_not_explain_the_results_is_not_given_as_their_cause():
    assert check("6.3", HidesByLargeNumber).passed  # its card asks for no -inf
    result = check("6.3", NeverDrops)
    assert (result.diagnosis, result.also) == ("dropout-missing", None)
    assert "say why, but it found this: Your dropout" in result.message
    text = check("6.3", AlwaysDrops).message  # without dropout it is wrong as well
    assert "say why, but it found this: Your dropout is active in eval mode" in text


@pytest.mark.parametrize(
    ("name", "value", "diagnosis"),
    [
        ("is_seen", True, "changes-in-training"),
        ("is_scaled", False, "changes-in-training"),
        ("factor", 1, "dropout-other-share"),
        ("together", [3], "dropout-together"),
        ("together", [2], "dropout-together"),
        ("together", [2, 3], "dropout-together"),
        ("together", [1, 2, 3], "dropout-together"),
    ],
)
def test_what_is_wrong_in_training_mode_only_is_named(name, value, diagnosis):
    answer = type("Answer", (HidesByLargeNumber,), {name: value})
    assert check("6.3", answer).diagnosis == diagnosis


@pytest.mark.parametrize("answer", [AssignsAtOnce, AssignsNothing])
@pytest.mark.parametrize("id", [i for i, e in EXERCISES.items() if e.kind == "class"])
def test_a_module_without_super_init_is_told_which_line_is_missing(id, answer):
    result = check(id, answer)
    assert (result.diagnosis, result.also) == ("super-init-missing", None)
    assert "call super().__init__() first" in result.message


def test_an_attribute_is_no_tensor_of_the_notebook(monkeypatch):
    monkeypatch.setitem(globals(), "values", torch.ones(3))
    assert check("3.3", lambda x, dim=-1: x * x.max(-1)[0].sum()).diagnosis is None
    answer = lambda x, dim=-1: x * x.max(-1).values.sum()  # noqa: E731
    assert check("3.3", answer).diagnosis is None
