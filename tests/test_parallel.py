"""Each test pins one sentence about attention and training over processes."""

import copy
import re
from inspect import isfunction

import parallel_worker as worker
import pytest
import torch
from parallel_worker import in_processes
from small_layers import random
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from utils import parallel, plots
from utils.attention import MultiHeadAttention
from utils.model import GPT, next_token_loss
from utils.parallel import (
    combine_partial_attention,
    merge_parts,
    num_bytes,
    partial_attention,
)


def pytest_generate_tests(metafunc):
    """Compare 2 processes with one, and in the full run 4, too."""
    if "compared" in metafunc.fixturenames:
        counts = [2, 4] if metafunc.config.getoption("--full") else [2]
        metafunc.parametrize("compared", counts, indirect=True, scope="module")
    if "count" in metafunc.fixturenames:  # what stands in the notebook
        counts = [2, 3, 4] if metafunc.config.getoption("--full") else [3]
        metafunc.parametrize("count", counts)


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


def test_parts_are_merged_one_after_the_other_and_nothing_into_nothing():
    query, key, value = random(3, 4), random(5, 4, seed=1), random(5, 7, seed=2)
    mask = torch.tensor([[True] * 5, [False] * 5, [False, False, True, True, True]])
    pieces = zip(key.split(2), value.split(2), mask.split(2, dim=1))
    first, second, third = (partial_attention(query, *piece) for piece in pieces)
    outputs, maxima, sums = merge_parts(merge_parts(first, second), third)
    assert maxima[1] == -torch.inf and sums[1] == 0 and outputs[1].eq(0).all()
    whole = scaled_dot_product_attention(query, key, value, mask)
    seen = mask.any(dim=1)
    torch.testing.assert_close((outputs / sums[:, None])[seen], whole[seen])


def test_a_part_that_may_not_be_seen_changes_nothing_and_alone_gives_zero():
    query, key, value = random(3, 4), random(5, 4, seed=1), random(5, 7, seed=2)
    seen = partial_attention(query, key, value)
    hidden = partial_attention(query, key, value, torch.zeros(3, 5, dtype=torch.bool))
    both = combine_partial_attention(*map(torch.stack, zip(seen, hidden)))
    torch.testing.assert_close(both, seen[0] / seen[2][:, None])
    nothing = combine_partial_attention(*map(torch.stack, zip(hidden, hidden)))
    assert nothing.equal(torch.zeros(3, 7, dtype=torch.float64))


# ---- several processes --------------------------------------------------------------


@pytest.fixture(scope="module")
def compared(request):
    """Return how many processes there are, and what each says of every split."""
    return request.param, in_processes(request.param, worker.compare)


@pytest.mark.parametrize("what", parallel.SPLITS)
def test_outputs_and_gradients_equal_those_of_one_process(compared, what):
    _, said = compared
    assert all(lines[what] for lines in said)  # else it had raised


def numbers(said, what, name, rank=0):
    """Return the numbers that a process says of itself."""
    found = re.findall(r"[\d,]+", said[rank][what][name])
    return [int(number.replace(",", "")) for number in found]


def test_with_the_batch_split_each_process_sends_a_gradient_for_every_weight(compared):
    count, said = compared
    held, all_weights = numbers(said, "batch", "bytes of weights")
    assert held == all_weights
    sent = 2 * all_weights * (count - 1) // count  # on a ring
    assert numbers(said, "batch", "bytes sent by allreduce") == [sent, 1]


def test_with_the_heads_split_one_sum_of_the_size_of_x_is_sent_forward(compared):
    count, said = compared
    sent = numbers(said, "heads", "forward: bytes sent by all_reduce")
    assert sent == [2 * num_bytes(torch.empty(2, 32, 64)) * (count - 1) // count, 1]


@pytest.mark.parametrize("what", ["tokens", "striped", "bidirectional"])
def test_with_the_tokens_split_keys_and_values_go_round_and_back(compared, what):
    count, said = compared
    own = num_bytes(torch.empty(2, 2, 8, 64 // count, 16))
    places = 0 if what == "bidirectional" else 8 * (64 // count)
    assert numbers(said, what, "bytes of keys and values") == [own]
    sent, _ = numbers(said, what, "bytes sent by send")
    assert sent == (count - 1) * (2 * own + places)


def test_with_stripes_the_processes_have_about_equally_much_to_do(compared):
    count, said = compared
    work = {
        what: [numbers(said, what, "scores that count", r)[0] for r in range(count)]
        for what in ("tokens", "striped")
    }
    assert sum(work["tokens"]) == sum(work["striped"]) == 64 * 65 / 2
    assert max(work["tokens"]) > 2 * min(work["tokens"])
    assert max(work["striped"]) < 1.1 * min(work["striped"])


def test_with_the_weights_split_a_process_holds_its_share_and_one_block(compared):
    count, said = compared
    held, all_weights = numbers(said, "weights", "bytes of weights")
    [computing] = numbers(said, "weights", "bytes of weights while computing")
    assert all_weights / count <= held < 1.01 * all_weights / count
    assert held < computing < all_weights


def test_with_the_weights_split_half_as_much_again_is_sent_at_most(compared):
    _, said = compared
    [batch, _] = numbers(said, "batch", "bytes sent by allreduce")
    [gathered, _] = numbers(said, "weights", "bytes sent by allgather")
    [scattered, _] = numbers(said, "weights", "bytes sent by reduce_scatter")
    assert batch < gathered + scattered < 1.5 * batch
    assert 0.99 * batch < 2 * scattered < 1.01 * batch


@pytest.mark.parametrize("kind", ["side by side", "striped", "both ways"])
def test_each_process_attends_to_the_tokens_of_all(kind):
    *whole, weights = (random(2, 15, 7, seed=i) for i in range(4))
    whole = [x.requires_grad_() for x in whole]
    output = scaled_dot_product_attention(*whole, is_causal=kind != "both ways")
    (output * weights).sum().backward()
    expected = [output, *(x.grad for x in whole)]
    for at, parts in in_processes(3, worker.attend_in_a_ring, kind):
        for part, all_tokens in zip(parts, expected, strict=True):
            torch.testing.assert_close(part, all_tokens[:, at])


def test_tokens_of_a_process_stand_side_by_side_or_every_third_is_its_own():
    side_by_side, striped = zip(*in_processes(3, worker.own_positions, 9))
    assert torch.stack(side_by_side).equal(torch.arange(9).view(3, 3))
    assert torch.stack(striped).equal(torch.arange(9).view(3, 3).T)


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


def test_the_loss_of_a_shared_batch_and_its_gradient_are_those_of_the_whole():
    torch.manual_seed(0)
    model, batch = nn.Linear(5, 1).double(), (random(6, 5), random(6, 1, seed=1))
    loss = worker.squared_error(model, batch)
    loss.backward()
    for found in in_processes(3, worker.train_on_a_share, copy.deepcopy(model), batch):
        torch.testing.assert_close(found, (loss, model.weight.grad))


def test_what_processes_cannot_share_is_refused():
    expected = [
        "expected a number of tokens that 2 processes can share equally, got 7",
        "expected a number of heads that 2 processes can share equally, got 3",
        "expected a layer without ALiBi, got alibi=True",
        "expected a batch that 2 processes can share equally, got 5",
    ]
    assert in_processes(2, worker.refuse) == [expected, expected]


# ---- what stands in notebook 13 ----------------------------------------------------


def test_the_message_of_the_notebook_arrives_and_belongs_to_who_received_it(count):
    said = in_processes(count, worker.run_the_page, "message")
    assert said[:2] == [[1, 2, 3, 4], [10, 20, 30, 40]]
    assert said[2:] == [[0, 0, 0, 0]] * (count - 2)


def test_the_program_of_the_notebook_sends_the_same_message(count):
    said = in_processes(count, worker.run_program, 0)
    assert said == ["", "tensor([10., 20., 30., 40.])\n", *[""] * (count - 2)]


def test_the_batch_of_the_notebook_has_the_gradient_of_the_whole(count):
    weights, x = random(12), random(count, 12, seed=1)
    found = in_processes(count, worker.run_the_page, "share_batch", weights, x)
    for rank, (own, mean) in enumerate(found):
        torch.testing.assert_close((own, mean), (x[rank], x.mean(dim=0)))


def test_the_heads_of_the_notebook_come_to_the_layer_in_both_directions(count):
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(3, count, 6, 0.0, count).double(), random(6, 3)
    outputs = in_processes(count, worker.run_the_page, "layer_output", layer, x)
    gradients = in_processes(count, worker.run_the_page, "input_gradient", layer, x)
    alone = x.clone().requires_grad_()
    output = layer(alone[None])[0]
    output.sum().backward()
    for (write, total), (share, gradient) in zip(outputs, gradients):
        torch.testing.assert_close((total, gradient), (output.detach(), alone.grad))
        assert not write.allclose(total) and not share.allclose(gradient)


def test_the_ring_of_the_notebook_attends_to_all_tokens(count):
    whole = [random(12, 5, seed=i) for i in range(3)]
    chunks = [x.chunk(count) for x in whole]
    found = torch.cat(in_processes(count, worker.run_the_page, "ring", *chunks))
    torch.testing.assert_close(found, scaled_dot_product_attention(*whole))


def test_the_weights_of_the_notebook_get_the_gradient_of_all_sentences(count):
    weights, x = random(12), random(count, 12, seed=1)
    found = in_processes(count, worker.run_the_page, "share_weights", weights, x)
    losses, gradients = zip(*found)
    torch.testing.assert_close(torch.tensor(losses), (x @ weights).float())
    torch.testing.assert_close(torch.cat(gradients), x.mean(dim=0))


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


def test_nothing_else_of_the_notebook_runs_in_several_processes():
    page, fenced = worker.definitions(worker.PAGE), worker.fenced_lines()
    found = {name: f.__code__.co_varnames for name, f in page.items() if isfunction(f)}
    ours = {name for name, variables in found.items() if "rank" in variables}
    tested = {"message", "share_batch", "layer_output", "input_gradient", "ring"}
    tested |= {"share_weights", "write"}  # the last is called by those of the heads
    assert ours == tested
    assert len(fenced) == 3


def test_what_is_drawn_of_an_exchange_is_what_processes_have_afterwards(count, capsys):
    numbers = torch.arange(12.0) + torch.arange(20.0, 20 * count + 1, 20)[:, None]
    found = in_processes(count, worker.collectives, numbers)
    share = 12 // count
    for name in found[0]:
        lines = []
        for rank, results in enumerate(found):
            held = ["·"] * 12
            if results[name] is not None:
                at = rank * share if len(results[name]) == share else 0
                words = [f"{x:.0f}" for x in results[name].tolist()]
                held[at : at + len(words)] = words
            lines.append(" ".join(held))
        plots.exchange([name], numbers, title="t")
        assert f" → {' / '.join(lines)}, " in capsys.readouterr().out, name
