"""An answer that never ends is stopped and told so, and nothing of it is left."""

import gc
import time
import weakref

import nbformat
import pytest
import torch
from nbclient import NotebookClient
from torch import nn

from utils.checks import check, limit

COUNTER_FORGOTTEN = """
def merge(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        if i + 1 < len(ids) and (ids[i], ids[i + 1]) == tuple(pair):
            merged.append(new_id)
            i += 2
        else:
            merged.append(ids[i])
    return merged
"""


@pytest.fixture
def soon(monkeypatch):
    monkeypatch.setattr(limit, "SECONDS", 0.2)


def right(scores, dim=-1):
    return torch.softmax(scores, dim)


def test_endless_loop_is_stopped_with_its_line(soon):
    def softmax(scores, dim=-1):
        i = 0
        while i < len(scores):
            scores = scores + 0
        return scores

    result = check("3.1", softmax)
    assert result.diagnosis == "never-ends"
    assert "On scores = [1.0, 2.0, 3.0] your code did not end" in result.message
    assert "scores = scores + 0" in result.message or "while i <" in result.message
    assert check("3.1", right).passed


def test_what_it_heaped_up_is_freed(soon):
    class Heap(list):
        pass

    left = []

    def softmax(scores, dim=-1):
        heap = Heap()
        left.append(weakref.ref(heap))
        while True:
            heap.append(0)

    assert check("3.1", softmax).diagnosis == "never-ends"
    gc.collect()
    assert [heap() for heap in left] == [None]


def test_loop_that_catches_everything_once_is_stopped(soon):
    def softmax(scores, dim=-1):
        caught = 0
        while True:
            try:
                while True:
                    caught += 0
            except BaseException:
                caught += 1
                if caught > 2:
                    raise

    assert check("3.1", softmax).diagnosis == "never-ends"


def test_endless_constructor_is_stopped(soon):
    class Building(nn.Module):
        def __init__(self, d_in, d_out):
            super().__init__()
            while True:
                d_in += 1

    assert check("4.2", Building).diagnosis == "never-ends"


def test_nothing_is_raised_after_the_check(monkeypatch):
    """Not even where an answer ends in the very moment in which it is stopped."""
    monkeypatch.setattr(limit, "SECONDS", 0.0)
    stopped = 0
    for n in range(40):

        def softmax(scores, dim=-1, n=n):
            sum(range(20_000 * n))
            return torch.softmax(scores, dim)

        stopped += check("3.1", softmax).diagnosis == "never-ends"
    assert stopped
    assert sum(sum(range(1000)) for _ in range(1000)) > 0


def test_waiting_is_not_stopped(soon):
    """A debugger that waits for its reader takes no time of the processor."""

    def softmax(scores, dim=-1):
        time.sleep(0.3)
        return torch.softmax(scores, dim)

    assert check("3.1", softmax).passed


def test_too_much_memory_is_stopped(monkeypatch):
    monkeypatch.setattr(limit, "in_use", lambda: 1e9 * time.process_time() * 100)

    def softmax(scores, dim=-1):
        while True:
            scores = scores + 0

    assert check("3.1", softmax).diagnosis == "never-ends"


def test_endless_answer_leaves_a_kernel_usable():
    cells = [
        "from utils.checks import check" + COUNTER_FORGOTTEN,
        "import time; start = time.process_time()\n"
        "print(check('1.1', merge).diagnosis, time.process_time() - start < 10)",
        "import psutil, weakref\nclass Block(bytearray): pass\nblocks = []",
        "def merge(ids, pair, new_id):\n    merged = []\n"
        "    while len(merged) < 100_000:\n"
        "        merged.append(Block(b'x' * 8_000_000))\n"
        "        blocks.append(weakref.ref(merged[-1]))\n"
        "        psutil.Process().memory_info()  # a library stops here\n"
        "    return merged",
        "print(check('1.1', merge).diagnosis)\n"
        "print(len(blocks) > 9, any(block() for block in blocks))",
        "import torch\nprint(check('3.1', lambda s, dim=-1: s.softmax(dim)).passed)",
    ]
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    texts = [
        "".join(o.get("text", "") for o in cell.outputs) for cell in notebook.cells
    ]
    assert "never-ends True" in texts[1]
    assert "never-ends\nTrue False" in texts[4]
    assert "True" in texts[5]
