"""Each test pins one sentence about attention and training over processes."""

import os
import re
import signal
import subprocess
import sys
import time
from ast import literal_eval

import pytest
import torch
from repository import ROOT

from utils import parallel
from utils.data import load_text
from utils.parallel import combine_partial_attention, num_bytes, partial_attention

SPLITS = [*parallel.SPLITS]


def pytest_generate_tests(metafunc):
    """Compare 2 processes with one, and in the full run 4, too."""
    if "compared" in metafunc.fixturenames:
        counts = [2, 4] if metafunc.config.getoption("--full") else [2]
        metafunc.parametrize("compared", counts, indirect=True, scope="module")


def start(count, *words):
    """Start a module or a file in so many processes, as a reader does in a shell."""
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    command = [sys.executable, *torchrun, str(count), *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=ROOT, env=env, start_new_session=True, **pipes)


def run(count, *words):
    """Run it, and return what it said."""
    process = start(count, *words)
    out, err = process.communicate()
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def random(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


# ---- the parts of one attention -----------------------------------------------------


@pytest.mark.parametrize("cuts", [[5], [1, 4], [2, 0, 3], [1, 1, 1, 2]])
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_parts_over_different_keys_join_into_the_whole(cuts, scale):
    query, key = random(2, 3, 4), random(2, 5, 4, seed=1)
    value = random(2, 5, 7, seed=2)
    whole = torch.softmax(scale * query @ key.mT / 2, dim=-1) @ value
    pieces = zip((scale * key).split(cuts, dim=1), value.split(cuts, dim=1))
    parts = [partial_attention(query, k, v) for k, v in pieces if k.shape[1]]
    joined = combine_partial_attention(*(torch.stack(p) for p in zip(*parts)))
    torch.testing.assert_close(joined, whole)


def test_parts_join_for_rows_whose_scores_are_far_apart():
    query, key, value = random(2, 4), random(6, 4, seed=1), random(6, 7, seed=2)
    query[1] *= 5000
    parts = [
        partial_attention(query, key[at], value[at]) for at in ([0, 1, 2], [3, 4, 5])
    ]
    joined = combine_partial_attention(*map(torch.stack, zip(*parts)))
    torch.testing.assert_close(
        joined, torch.softmax(query @ key.mT / 2, dim=-1) @ value
    )


def test_a_part_that_may_not_be_seen_changes_nothing_and_alone_gives_zero():
    query, key, value = random(3, 4), random(5, 4, seed=1), random(5, 7, seed=2)
    seen = partial_attention(query, key, value)
    hidden = partial_attention(query, key, value, torch.zeros(3, 5, dtype=torch.bool))
    both = combine_partial_attention(*map(torch.stack, zip(seen, hidden)))
    torch.testing.assert_close(both, seen[0] / seen[2][:, None])
    nothing = combine_partial_attention(*map(torch.stack, zip(hidden, hidden)))
    assert nothing.equal(torch.zeros(3, 7, dtype=torch.float64))


def test_gradients_pass_through_a_part_that_may_not_be_seen():
    inputs = [random(3, 4, seed=i).requires_grad_() for i in range(3)]
    hidden = partial_attention(*inputs, torch.zeros(3, 3, dtype=torch.bool))
    combine_partial_attention(*(part[None] for part in hidden)).sum().backward()
    assert all(x.grad.equal(torch.zeros(3, 4, dtype=torch.float64)) for x in inputs)


@pytest.mark.parametrize("gpus, count", [(0, 1), (1, 1), (1, 2), (2, 2)])
def test_a_process_computes_on_a_gpu_where_each_has_one(gpus, count, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(count))
    assert parallel.has_own_gpu() == ((gpus, count) in [(1, 1), (2, 2)])


# ---- several processes --------------------------------------------------------------


@pytest.fixture(scope="module")
def compared(request):
    """Return how many processes there were, and what they said of each split."""
    done = run(request.param, "tests/parallel_worker.py", "compare")
    assert done.returncode == 0, done.stderr
    said = re.findall(r"^(torch\.\w+) (\w+) (\d) (\{.*\})$", done.stdout, re.MULTILINE)
    lines = {(kind, what, int(rank)): literal_eval(d) for kind, what, rank, d in said}
    return request.param, lines


@pytest.mark.parametrize("what", SPLITS)
@pytest.mark.parametrize("dtype", ["torch.float64", "torch.float32"])
def test_outputs_and_gradients_equal_those_of_one_process(compared, what, dtype):
    count, lines = compared
    for rank in range(count):
        assert (dtype, what, rank) in lines  # else it had raised


def numbers(lines, what, name, rank=0):
    """Return the numbers that a process says of itself."""
    found = re.findall(r"[\d,]+", lines["torch.float32", what, rank][name])
    return [int(number.replace(",", "")) for number in found]


def test_with_the_batch_split_each_process_sends_a_gradient_for_every_weight(compared):
    _, lines = compared
    held, all_weights = numbers(lines, "batch", "bytes of weights")
    assert held == all_weights
    assert numbers(lines, "batch", "bytes sent by allreduce") == [all_weights, 1]


def test_with_the_heads_split_one_sum_of_the_size_of_x_is_sent_forward(compared):
    _, lines = compared
    sent = numbers(lines, "heads", "forward: bytes sent by all_reduce")
    assert sent == [num_bytes(torch.empty(2, 32, 64)), 1]


@pytest.mark.parametrize("what", ["tokens", "striped", "bidirectional"])
def test_with_the_tokens_split_keys_and_values_go_round_and_back(compared, what):
    count, lines = compared
    own = num_bytes(torch.empty(2, 2, 8, 64 // count, 16))
    places = 0 if what == "bidirectional" else 8 * (64 // count)
    assert numbers(lines, what, "bytes of keys and values") == [own]
    sent, _ = numbers(lines, what, "bytes sent by send")
    assert sent == (count - 1) * (2 * own + places)


def test_with_stripes_the_processes_have_about_equally_much_to_do(compared):
    count, lines = compared
    work = {
        what: [numbers(lines, what, "scores that count", r)[0] for r in range(count)]
        for what in ("tokens", "striped")
    }
    assert sum(work["tokens"]) == sum(work["striped"]) == 64 * 65 / 2
    assert max(work["tokens"]) > 2 * min(work["tokens"])
    assert max(work["striped"]) < 1.1 * min(work["striped"])


def test_with_the_weights_split_a_process_holds_its_share_and_one_block(compared):
    count, lines = compared
    held, all_weights = numbers(lines, "weights", "bytes of weights")
    [computing] = numbers(lines, "weights", "bytes of weights while computing")
    assert all_weights / count <= held < 1.01 * all_weights / count
    assert held < computing < all_weights


def test_what_processes_cannot_share_equally_is_refused():
    done = run(2, "tests/parallel_worker.py", "refuse")
    for what, number in (("tokens", 7), ("heads", 3)):
        words = f"a number of {what} that 2 processes can share equally, got {number}"
        assert done.stdout.count(words) == 2


def test_a_process_that_dies_ends_the_run_within_30_seconds_with_its_error():
    done = run(2, "tests/parallel_worker.py", "die")
    assert done.returncode != 0
    died = re.search(r"the second process ended at ([\d.]+)", done.stderr)
    assert time.time() - float(died[1]) < 30


def test_without_torchrun_the_command_says_how_to_start_it():
    command = [sys.executable, "-m", "utils.parallel", "batch"]
    alone = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert alone.returncode == 2
    assert "torchrun --nproc-per-node 2" in alone.stderr


# ---- training -----------------------------------------------------------------------

SMALL = "--width 16 --heads 2 --layers 1 --context 16 --merges 9 --dropout 0".split()
SMALL += "--steps 30 --save-every 10".split()


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Return a short text."""
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(load_text()[:9000])
    return str(path)


def train(count, text, *words):
    """Train in so many processes; return the lines that are printed."""
    done = run(count, "-m", "utils.training", text, *SMALL, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def undisturbed(text):
    """Return the lines of a training in one process."""
    command = [sys.executable, "-m", "utils.training", text, *SMALL]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def kill_after_the_first_report(count, text, file):
    """Start a training and kill it, all processes at once, when it says `step 10`."""
    words = ["-m", "utils.training", text, *SMALL, "--checkpoint", file]
    with start(count, *words) as training:
        next(line for line in training.stdout if line.startswith("step 10 "))
        os.killpg(training.pid, signal.SIGKILL)


def test_two_processes_print_what_one_prints_and_the_first_alone_does(
    text, undisturbed
):
    assert train(2, text) == undisturbed


@pytest.mark.parametrize("first, then", [(2, 1), (1, 2)])
def test_what_one_number_of_processes_began_another_ends(
    first, then, text, undisturbed, tmp_path
):
    file = str(tmp_path / "training.pt")
    kill_after_the_first_report(first, text, file)
    assert train(then, text, "--checkpoint", file)[-1] == undisturbed[-1]


def test_a_batch_that_the_processes_cannot_share_is_refused_once(text):
    done = run(2, "-m", "utils.training", text, *SMALL, "--batch", "7")
    said = "error: expected a batch that 2 processes can share equally, got 7"
    assert done.stderr.count(said) == 1
