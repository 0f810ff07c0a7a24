"""The clinic: the same patients everywhere, told apart by the instruments alone."""

import itertools
import json
import re

import nbformat
import pytest
import torch

from tests.markdown_text import folded_solution
from tests.repository import ROOT
from utils import attention
from utils.checks import records, solution
from utils.checks.catalogue import tasks
from utils.clinic import broken_model, diagnose, examine_model, patient, suspects, twin
from utils.clinic.instruments import readings

NOTEBOOK = ROOT / "notebooks/07_the_clinic.ipynb"
HEADS = ROOT / "notebooks/06_multi_head_attention.ipynb"
TWO_MISTAKES = ROOT / "notebooks/deeper/two_mistakes_at_once.ipynb"
ONE_OF_EACH = 7, 107, 207  # a function, one head, four heads
PATIENTS = [int(t.name.split()[1]) for t in tasks() if t.name.startswith("patient")]


def inputs_of(layer):
    count = 1 if layer.kind.is_masked else 3
    generator = torch.Generator().manual_seed(0)
    return torch.randn(count, 2, 5, layer.kind.width, generator=generator)


OURS = {
    107: attention.CausalAttention(16, 16, 16, 0.0),
    207: attention.MultiHeadAttention(64, 64, 16, 0.0, 4),
}


@pytest.mark.parametrize("number", OURS)
def test_a_healthy_layer_is_that_of_the_course(number):
    healthy, ours = twin(patient(number)), OURS[number]
    ours.load_state_dict(healthy.state_dict())
    (x,) = inputs_of(healthy)
    expected = ours(x, need_weights=True)
    torch.testing.assert_close(healthy(x, need_weights=True), expected)
    torch.testing.assert_close(healthy(x), expected[0])


def test_the_right_slugs_pass_and_are_kept():
    for number in (*ONE_OF_EACH, *PATIENTS, 307, 407, 507):
        layer = patient(number)
        result = diagnose(layer, *layer._slugs)
        assert result.passed and result.diagnosis is None
        assert f"patient {number}" in records.load()


@pytest.mark.parametrize("number", [2, 203, 413])
def test_every_other_set_of_slugs_is_refused(number):
    layer = patient(number)
    known = [*suspects(layer)]
    sets = [(), *((s,) for s in known), *itertools.combinations(known[:6], 2)]
    for slugs in sets:
        if {*slugs} != layer._slugs:
            result = diagnose(layer, *slugs)
            assert result.diagnosis in ("wrong", "half-right"), slugs
    assert diagnose(layer, "scale-mising").diagnosis == "no-such-suspect"
    assert records.load() == set()


def test_what_the_folded_answers_diagnose_is_right():
    answered, notebooks = [], (NOTEBOOK, TWO_MISTAKES)
    cells = [c for path in notebooks for c in nbformat.read(path, as_version=4).cells]
    call = re.compile(r'`diagnose\(patient[_(](\d+)\)?((?:, "[\w-]+")*)\)`')
    for number, slugs in call.findall("\n".join(cell.source for cell in cells)):
        slugs = json.loads(f"[{slugs[2:]}]")
        assert diagnose(patient(int(number)), *slugs).passed, number
        answered.append(int(number))
    to_practise = 203, 413, 506, 536
    assert sorted(answered) == sorted([*PATIENTS, 108, 200, 509, *to_practise])


# ---- the instruments


def doctor(layer):
    """Return the slugs in the first row of the notebook's last hints that fits.

    A number counts as 0 or 1 if it is printed as 0.00 or 1.00.
    """
    order, *_ = readings(layer, "permute_tokens").values()
    smallest, _, *columns = readings(layer, "row_sums").values()
    before, after = readings(layer, "bisect").values()
    if smallest < 0.995 and columns == pytest.approx([1, 1], abs=0.005):
        return {"softmax-over-queries"}
    if smallest < 0.995:
        return {"mask-after-softmax"}
    if leak_slugs := scales(layer):
        return leak_slugs
    if order > 0.005:
        heads = "split-by-view" if before > 0.005 else "merge-without-transpose"
        return {heads if layer.kind.is_masked else "keys-times-queries"}
    if layer.kind.is_masked and (leak_slugs := leaks(layer)):
        return leak_slugs
    if after > 0.005:
        return after_the_cut(readings(layer, "one_token"))
    return set()


def scales(layer):
    """Return whose numbers are shifted in `scale_scores`, or have a ceiling."""
    here = [*readings(layer, "scale_scores").values()]
    healthy = [*readings(twin(layer), "scale_scores").values()]
    if here[:5] == pytest.approx(healthy[2:7], abs=0.02):
        return {"scale-missing"}
    if here[2:7] == pytest.approx(healthy[:5], abs=0.02):
        return {"divided-by-width"}
    return {"softmax-twice"} if here[-1] < 0.29 else set()


def leaks(layer):
    """Return whether only the next token moves an output, or all later ones."""
    soon, late = readings(layer, "replace_tokens").values()
    if max(soon, late) < 0.005:
        return set()
    return {"one-step-leaked" if late < 0.005 else "mask-not-used"}


def after_the_cut(parts):
    """Return what explains a wrong output, from what one token alone gives."""
    nearest = min(parts, key=parts.get)
    if parts[nearest] > 0.005 or nearest == "out_proj(value)":
        return {"heads-share-weights"}
    if "value" in nearest:
        return {"output-projection-unused"}
    return {"keys-for-values" if "key" in nearest else "values-not-projected"}


def test_a_doctor_who_follows_the_table_is_right_about_the_first_299():
    wrong = [n for n in range(1, 300) if doctor(one := patient(n)) != one._slugs]
    assert wrong == []


def test_the_folded_tests_find_the_two_broken_layers(capsys):
    """The solution takes the place of the stub, and the next cell runs it."""
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    stub = next(i for i, source in enumerate(code) if "def replace_last" in source)
    solution = next(filter(None, map(folded_solution, cells)))
    names = {"torch": torch, "MultiHeadAttention": attention.MultiHeadAttention}
    exec("\n".join([code[stub], solution, code[stub + 1]]), names)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert rows == [["A", "0.00", "0.00"], ["B", "0.00", "0.71"], ["C", "0.24", "0.00"]]


# ---- the reader's own layer


@pytest.fixture
def examine_own(tmp_path, monkeypatch, capsys):
    """Save the reader's cell in a copy of 06, run the cell of 07, return its lines."""
    heads = nbformat.read(HEADS, as_version=4)
    reader_cell = next(
        c for c in heads.cells if c.source.startswith("class MultiHeadAttention(")
    )
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    codes = [cell.source for cell in cells if cell.cell_type == "code"]
    imports = next(code for code in codes if code.startswith("import torch"))
    code = next(code for code in codes if "passed=False" in code)
    monkeypatch.setattr("utils.pages.NOTEBOOKS", tmp_path)

    def run(change=lambda stub, solved: stub):
        solved = next(s for s in map(folded_solution, heads.cells) if s and "mT" in s)
        reader_cell.source = change(reader_cell.source, solved)
        nbformat.write(heads, tmp_path / HEADS.name)
        exec(f"{imports}\n{code}", {})
        return capsys.readouterr().out.splitlines()

    return run


MASK = "~self.mask[:T, :T]", "self.mask[:T, :T] & False", "leak test: 0.9"
OUT = "self.out_proj(course", "(course", "leak test: 0.0000"
WRONG = [  # right, wrong, the beginning of the leak test's line, the mistake's name
    (" / q.shape[-1] ** 0.5", "", "leak test: 0.0000", "scale-missing"),
    (*MASK, "mask-not-used"),
    (*OUT, "output-projection-unused"),
]


@pytest.mark.parametrize(("right", "wrong", "leak", "name"), WRONG)
def test_a_wrong_layer_not_passed_is_admitted(right, wrong, leak, name, examine_own):
    whose, *numbers = examine_own(lambda _, solved: solved.replace(right, wrong))
    title = "06 Multi-head attention (it doesn't pass 6.3 yet)"
    assert whose == f"Using your own MultiHeadAttention, as saved in {title}."
    assert numbers[0].startswith(leak)
    assert float(numbers[1].split()[-1]) > 0.1
    assert numbers[2] == f"away from the nearest broken twin, {name}: 0.00"
    assert solution("6.3") is attention.MultiHeadAttention  # elsewhere it must pass


def test_a_right_layer_is_admitted_before_its_check(examine_own):
    whose, *numbers = examine_own(lambda _, solved: solved)
    assert whose.startswith("Using your own") and "doesn't pass" not in whose
    assert [line.split()[-1] for line in numbers[:2]] == ["0.0000", "0.0000"]


@pytest.mark.parametrize(
    "change",
    [
        lambda stub, solved: stub,
        lambda stub, solved: solved.partition("T = ")[0] + "raise NotImplementedError",
        lambda stub, solved: solved.replace("def forward(", "def forward(("),
        lambda stub, solved: "from utils.attention import MultiHeadAttention",
        lambda stub, solved: "",
    ],
)
def test_without_an_attempt_the_first_line_says_the_courses(change, examine_own):
    whose, *numbers = examine_own(change)
    assert whose.startswith("Using the course's MultiHeadAttention until you have")
    assert numbers[1] == "away from the healthy twin: 0.0000"


def test_an_attempt_that_raises_shows_its_error(examine_own):
    with pytest.raises(RuntimeError, match="Expected size"):
        examine_own(lambda _, solved: solved.replace("q @ k.mT", "q @ k"))


# ---- a patient that writes


def printed_numbers(model, capsys):
    """Return what `examine_model` prints: rows of (this model, healthy)."""
    examine_model(model)
    lines = capsys.readouterr().out.splitlines()[1:]
    return [tuple(map(float, line.split()[-2:])) for line in lines]


def test_entropies_show_the_broken_block_of_a_model_and_a_division_cures_it(capsys):
    model = broken_model()
    loss, *blocks = printed_numbers(model, capsys)
    assert 0 < loss[0] - loss[1] < 0.5
    assert blocks[0][0] == blocks[0][1] and blocks[1][0] == blocks[1][1]
    assert blocks[2][0] < blocks[2][1] / 2
    with torch.no_grad():
        model.blocks[2].attention.W_query.weight /= 32**0.5
    assert all(here == healthy for here, healthy in printed_numbers(model, capsys))
