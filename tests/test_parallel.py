"""Each test pins one sentence about attention and training over processes."""

import copy
import re

import parallel_worker as worker
import pytest
import torch
from parallel_worker import in_processes
from small_layers import random

from utils import parallel
from utils.attention import MultiHeadAttention
from utils.model import GPT, next_token_loss
from utils.parallel import combine_partial_attention, num_bytes, partial_attention


def pytest_generate_tests(metafunc):
    """Compare 4 processes with one, and in the full run 2, too, as notebook 13 does."""
    if "compared" in metafunc.fixturenames:
        counts = [2, 4] if metafunc.config.getoption("--full") else [4]
        metafunc.parametrize("compared", counts, indirect=True, scope="module")
    if "count" in metafunc.fixturenames:  # what stands in the notebook
        counts = [2, 3, 4] if metafunc.config.getoption("--full") else [3]
        metafunc.parametrize("count", counts)


def test_a_part_that_may_not_be_seen_changes_nothing_and_alone_gives_zero():
    query, key, value = random(3, 4), random(5, 4, seed=1), random(5, 7, seed=2)
    seen = partial_attention(query, key, value)
    hidden = partial_attention(query, key, value, torch.zeros(3, 5, dtype=torch.bool))
    both = combine_partial_attention(*map(torch.stack, zip(seen, hidden)))
    torch.testing.assert_close(both, seen[0] / seen[2][:, None])
    nothing = combine_partial_attention(*map(torch.stack, zip(hidden, hidden)))
    assert nothing.equal(torch.zeros(3, 7, dtype=torch.float64))


@pytest.fixture(scope="module")
def compared(request):
    """Return how many processes there are, and what each says of every split."""
    return request.param, in_processes(request.param, worker.compare)


def test_outputs_and_gradients_equal_those_of_one_process(compared):
    for lines in compared[1]:
        assert all(lines[what] for what in parallel.SPLITS)  # else it had raised


def numbers(lines, name):
    """Return the numbers that a process says of itself."""
    return [
        int(number.replace(",", "")) for number in re.findall(r"[\d,]+", lines[name])
    ]


def test_what_is_sent_is_what_a_ring_needs(compared):
    count, (first, *_) = compared
    weights, all_weights = numbers(first["batch"], "bytes of weights")
    x = num_bytes(torch.empty(2, 32, 64))
    keys_values = num_bytes(torch.empty(2, 2, 8, 64 // count, 16))
    positions = 8 * (64 // count)
    sent = {
        ("batch", "bytes sent by allreduce"): 2 * weights * (count - 1) // count,
        ("heads", "forward: bytes sent by all_reduce"): 2 * x * (count - 1) // count,
        # keys and values go round, and their gradients back
        ("bidirectional", "bytes sent by send"): (count - 1) * 2 * keys_values,
        ("striped", "bytes sent by send"): (count - 1) * (2 * keys_values + positions),
    }
    assert {at: numbers(first[at[0]], at[1])[0] for at in sent} == sent
    assert weights == all_weights
    gathered, scattered = (
        numbers(first["weights"], f"bytes sent by {name}")[0]
        for name in ("allgather", "reduce_scatter")
    )
    batch = sent["batch", "bytes sent by allreduce"]
    assert 0.99 * batch < 2 * scattered < 1.01 * batch
    assert batch < gathered + scattered < 1.5 * batch


def test_with_the_weights_split_a_process_holds_its_share_and_one_block(compared):
    count, (first, *_) = compared
    held, all_weights = numbers(first["weights"], "bytes of weights")
    [computing] = numbers(first["weights"], "bytes of weights while computing")
    assert all_weights / count <= held < 1.01 * all_weights / count
    assert held < computing < all_weights


def test_with_stripes_the_processes_have_about_equally_much_to_do(compared):
    work = {
        what: [numbers(lines[what], "scores that count")[0] for lines in compared[1]]
        for what in ("tokens", "striped")
    }
    assert sum(work["tokens"]) == sum(work["striped"]) == 64 * 65 / 2
    assert max(work["tokens"]) > 2 * min(work["tokens"])
    assert max(work["striped"]) < 1.1 * min(work["striped"])


def test_each_process_has_a_third_of_the_heads_and_they_come_to_the_whole_layer():
    torch.manual_seed(0)
    layer = MultiHeadAttention(5, 42, 11, 0.0, num_heads=6, num_kv_heads=3).double()
    x, alone = random(2, 11, 5), copy.deepcopy(layer)
    output = alone(x)
    output.square().sum().backward()
    expected = [output, *(weight.grad for weight in alone.parameters())]
    for sizes, found in in_processes(3, worker.attend_with_some_heads, layer, x):
        assert sizes == [2, 1, (14, 5), (42, 14)]
        torch.testing.assert_close(found, expected)


def test_what_processes_cannot_share_is_refused():
    expected = [
        "expected a number of tokens that 2 processes can share equally, got 7",
        "expected a number of heads that 2 processes can share equally, got 3",
        "expected a layer without ALiBi, got alibi=True",
    ]
    assert in_processes(2, worker.refuse) == [expected, expected]


def test_the_program_of_the_notebook_sends_the_same_message(count):
    said = in_processes(count, worker.run_program, 0)
    assert said == ["", "tensor([10., 20., 30., 40.])\n", *[""] * (count - 2)]


@pytest.mark.parametrize("number", [1, 2])
def test_lines_in_the_text_of_the_notebook_train_on_the_whole_batch(count, number):
    torch.manual_seed(0)
    model = GPT(11, 7, d_model=8, num_heads=2, num_layers=1).double()
    sentences = torch.randint(11, (12, 8))
    work = worker.run_fenced, number, copy.deepcopy(model), sentences
    found = in_processes(count, *work)
    next_token_loss(model, (sentences[:, :-1], sentences[:, 1:])).backward()
    expected = [weight.grad for weight in model.parameters()]
    for gradients in found:
        torch.testing.assert_close(gradients, expected)
