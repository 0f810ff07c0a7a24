"""Tests of attention and training over several processes, `utils.parallel`."""

import copy
import re

import parallel_worker as worker
import pytest
import torch
import torch.distributed as dist
from parallel_worker import in_processes
from small_layers import random

from utils import parallel
from utils.attention import MultiHeadAttention
from utils.model import GPT, next_token_loss
from utils.parallel import combine_partial_attention, num_bytes, partial_attention


def pytest_generate_tests(metafunc):
    """Compare 4 processes with one, and in the full run also 2, like notebook 13."""
    if "compared" in metafunc.fixturenames:
        counts = [2, 4] if metafunc.config.getoption("--full") else [4]
        metafunc.parametrize("compared", counts, indirect=True, scope="module")
    if "count" in metafunc.fixturenames:  # for the code of the notebook
        counts = [2, 3, 4] if metafunc.config.getoption("--full") else [3]
        metafunc.parametrize("count", counts)


@pytest.mark.parametrize(
    "num_gpus, num_processes, backend",
    [(0, 1, "gloo"), (0, 2, "gloo"), (1, 1, "nccl"), (1, 2, "gloo"), (2, 2, "nccl")],
)
def test_backend_is_nccl_only_if_each_process_has_a_gpu(
    num_gpus, num_processes, backend, monkeypatch
):
    backends = []
    monkeypatch.setenv("LOCAL_RANK", "0")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(num_processes))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: num_gpus)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr(
        dist, "init_process_group", lambda name=None, **_: backends.append(name)
    )
    for name, value in (("get_rank", 0), ("get_world_size", num_processes)):
        monkeypatch.setattr(dist, name, lambda value=value: value)
    monkeypatch.setattr(dist, "destroy_process_group", lambda: None)
    with parallel.processes() as group:
        assert group == (0, num_processes)
    assert backends == [backend]


def test_a_part_without_allowed_keys_changes_nothing_and_alone_gives_zero():
    query, key, value = random(3, 4), random(5, 4, seed=1), random(5, 7, seed=2)
    visible = partial_attention(query, key, value)
    no_keys = torch.zeros(3, 5, dtype=torch.bool)
    hidden = partial_attention(query, key, value, no_keys)
    both = combine_partial_attention(*map(torch.stack, zip(visible, hidden)))
    torch.testing.assert_close(both, visible[0] / visible[2][:, None])
    nothing = combine_partial_attention(*map(torch.stack, zip(hidden, hidden)))
    assert nothing.equal(torch.zeros(3, 7, dtype=torch.float64))


@pytest.fixture(scope="module")
def compared(request):
    """Return the number of processes, and the lines of every comparison."""
    return request.param, in_processes(request.param, worker.run_comparisons)


def test_outputs_and_gradients_equal_those_of_one_process(compared):
    for lines in compared[1]:  # a difference would have raised
        assert all(lines[name] for name in parallel.COMPARISONS)


def numbers(lines, name):
    """Return the numbers in a line of a comparison."""
    found = re.findall(r"[\d,]+", lines[name])
    return [int(number.replace(",", "")) for number in found]


def test_bytes_sent_are_those_that_a_ring_needs(compared):
    count, (first, *_) = compared
    weights, all_weights = numbers(first["batch"], "bytes of weights")
    x = num_bytes(torch.empty(2, 32, 64))
    keys_values = num_bytes(torch.empty(2, 2, 8, 64 // count, 16))
    positions = 8 * (64 // count)
    expected = {
        ("batch", "bytes sent by allreduce"): 2 * weights * (count - 1) // count,
        ("heads", "forward: bytes sent by all_reduce"): 2 * x * (count - 1) // count,
        # keys and values go round, and their gradients come back
        ("bidirectional", "bytes sent by send"): (count - 1) * 2 * keys_values,
        ("striped", "bytes sent by send"): (count - 1) * (2 * keys_values + positions),
    }
    for (name, line), sent in expected.items():
        assert numbers(first[name], line)[0] == sent
    assert weights == all_weights
    gathered, scattered = (
        numbers(first["weights"], f"bytes sent by {name}")[0]
        for name in ("allgather", "reduce_scatter")
    )
    batch = expected["batch", "bytes sent by allreduce"]
    assert 0.99 * batch < 2 * scattered < 1.01 * batch
    assert batch < gathered + scattered < 1.5 * batch


def test_with_split_weights_a_process_holds_its_shard_and_one_block(compared):
    count, (first, *_) = compared
    shard, all_weights = numbers(first["weights"], "bytes of weights")
    [computing] = numbers(first["weights"], "bytes of weights while computing")
    assert all_weights / count <= shard < 1.01 * all_weights / count
    assert shard < computing < all_weights


def test_stripes_give_the_processes_about_the_same_work(compared):
    work = {
        name: [numbers(lines[name], "scores that count")[0] for lines in compared[1]]
        for name in ("tokens", "striped")
    }
    assert sum(work["tokens"]) == sum(work["striped"]) == 64 * 65 / 2
    assert max(work["tokens"]) > 2 * min(work["tokens"])
    assert max(work["striped"]) < 1.1 * min(work["striped"])


def test_a_third_of_the_heads_in_each_process_equals_the_whole_layer():
    torch.manual_seed(0)
    layer = MultiHeadAttention(5, 42, 11, 0.0, num_heads=6, num_kv_heads=3).double()
    x, whole = random(2, 11, 5), copy.deepcopy(layer)
    output = whole(x)
    output.square().sum().backward()
    expected = [output, *(weight.grad for weight in whole.parameters())]
    for sizes, received in in_processes(3, worker.attend_with_some_heads, layer, x):
        assert sizes == [2, 1, (14, 5), (42, 14)]
        torch.testing.assert_close(received, expected)


def test_what_processes_cannot_share_raises():
    expected = [
        "expected a number of tokens that 2 processes can share equally, got 7",
        "expected a number of heads that 2 processes can share equally, got 3",
        "expected a layer without ALiBi, got alibi=True",
    ]
    assert in_processes(2, worker.errors) == [expected, expected]


def test_program_in_the_notebook_sends_its_message(count):
    outputs = in_processes(count, worker.run_program, 0)
    assert outputs == ["", "tensor([10., 20., 30., 40.])\n", *[""] * (count - 2)]


@pytest.mark.parametrize("index", [1, 2])
def test_code_in_the_notebook_trains_on_the_whole_batch(count, index):
    torch.manual_seed(0)
    model = GPT(11, 7, d_model=8, num_heads=2, num_layers=1).double()
    sentences = torch.randint(11, (12, 8))
    inputs = index, copy.deepcopy(model), sentences
    next_token_loss(model, (sentences[:, :-1], sentences[:, 1:])).backward()
    expected = [weight.grad for weight in model.parameters()]
    for gradients in in_processes(count, worker.run_fenced_code, *inputs):
        torch.testing.assert_close(gradients, expected)
