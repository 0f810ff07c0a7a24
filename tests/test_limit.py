"""An answer that never ends is stopped, and nothing of it is left."""

from nbformat.v4 import new_code_cell, new_notebook

from tests.repository import ROOT, tool
from utils.attention import softmax as right
from utils.checks import check, limit
from utils.checks.guard import attempt


def test_endless_loop_is_stopped_with_its_line(monkeypatch):
    monkeypatch.setattr(limit, "SECONDS", 0.2)

    def softmax(scores, dim=-1):
        i = 0
        while i < len(scores):
            scores = scores + 0
        return scores

    result = check("3.3", softmax)
    assert result.diagnosis == "never-ends"
    assert "On scores = [1.0, 2.0, 3.0] your code did not end" in result.message
    assert "scores = scores + 0" in result.message or "while i <" in result.message
    assert check("3.3", lambda scores, dim=-1: right(scores, dim)).passed


def test_nothing_is_raised_after_the_call(monkeypatch):
    """Not even where an answer ends in the very moment in which it is stopped."""
    monkeypatch.setattr(limit, "SECONDS", 0.0)

    def count(n):
        return sum(range(n))

    stopped = 0
    with limit.WATCH:
        for n in range(400):  # longer and longer, so also on a fast machine
            stopped += attempt(count, 50_000 * n).is_endless
            assert limit.WATCH.since is None
            if stopped == 4:
                break
    assert stopped == 4
    assert sum(count(1000) for _ in range(1000)) > 0


def test_an_endless_answer_leaves_a_kernel_usable_and_its_memory_free():
    cells = [
        "from utils.checks import check\nimport weakref\nclass Block(bytearray): pass",
        "blocks = []\ndef merge(ids, pair, new_id):\n    merged = []\n"
        "    while len(merged) < 100_000:\n"
        "        merged.append(Block(b'x' * 8_000_000))\n"
        "        blocks.append(weakref.ref(merged[-1]))\n"
        "    return merged",
        "print(check('1.1', merge).diagnosis)\n"
        "print(len(blocks) > 9, any(block() for block in blocks))",
        "print(check('3.3', lambda s, dim=-1: s.softmax(dim)).passed)",
    ]
    notebook = new_notebook(cells=list(map(new_code_cell, cells)))
    tool.run_cells(notebook, ROOT)
    texts = ["".join(o.get("text", "") for o in c.outputs) for c in notebook.cells]
    assert "never-ends\nTrue False" in texts[2] and "True" in texts[3]
