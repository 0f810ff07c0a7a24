"""Each test pins one sentence about `utils.delta`."""

import pytest
import torch
import torch.nn.functional as F
from small_layers import computed, random

from utils.cache import KeyValueCache
from utils.delta import (
    DeltaAttention,
    DeltaState,
    attend_in_chunks,
    delta_rule,
    gated_delta_rule,
    linear_attention,
)

SHAPES = [(7, 5, 3), (2, 13, 3, 7), (2, 3, 11, 5, 2), (1, 1, 1, 1, 1)]


def drawn(*shape, dtype=torch.float64):
    """Return query, key, value, beta and log_gate for the axes (..., T, K, V)."""
    *lead, width, d_v = shape
    query, key = random(*lead, width), F.normalize(random(*lead, width, seed=1), dim=-1)
    value, beta = random(*lead, d_v, seed=2), torch.sigmoid(random(*lead, seed=3))
    log_gate = F.logsigmoid(random(*lead, seed=4))
    return [t.to(dtype) for t in (query, key, value, beta, log_gate)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("chunk_size", [1, 2, 3, 5, 64])
@pytest.mark.parametrize("gate", [True, False])
def test_any_chunks_give_the_recurrent_numbers(shape, chunk_size, gate):
    for dtype, near in ((torch.float64, 1e-10), (torch.float32, 1e-5)):
        *parts, beta, log_gate = drawn(*shape, dtype=dtype)
        expected = gated_delta_rule(*parts, beta, log_gate.exp())
        if not gate:
            log_gate, expected = None, delta_rule(*parts, beta)
        output, _ = attend_in_chunks(*parts, beta, log_gate, chunk_size=chunk_size)
        torch.testing.assert_close(output, expected, atol=near, rtol=0)
        if not gate:
            output, _ = attend_in_chunks(*parts, chunk_size=chunk_size)
            expected = linear_attention(*parts)
            torch.testing.assert_close(output, expected, atol=2 * near, rtol=1e-5)


@pytest.mark.parametrize("chunk_size", [1, 5, 64])
def test_the_gated_delta_rule_is_that_of_qwen3_next(chunk_size):
    given = computed("delta")
    parts = (given[name] for name in ("query", "key", "value"))
    query, key, value = (part.transpose(1, 2) for part in parts)  # (B, H, T, width)
    query, key = F.normalize(query, dim=-1) / 8**0.5, F.normalize(key, dim=-1)
    beta, log_gate = given["beta"].mT, given["log_gate"].mT
    inputs = query, key, value, beta, log_gate
    output, state = attend_in_chunks(*inputs, chunk_size=chunk_size)
    expected = given["output"].transpose(1, 2)
    torch.testing.assert_close(output, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(state, given["state"], atol=1e-5, rtol=0)
    by_token = gated_delta_rule(query, key, value, beta, log_gate.exp())
    torch.testing.assert_close(by_token, expected, atol=1e-5, rtol=0)


def test_strong_gates_and_long_texts_stay_finite_with_their_gradients():
    *parts, beta, _ = drawn(2, 200, 5, 3, dtype=torch.float32)
    log_gate = torch.full((2, 200), -30.0, requires_grad=True)
    output, _ = attend_in_chunks(*parts, beta, log_gate)
    output.square().sum().backward()
    assert output.isfinite().all() and log_gate.grad.isfinite().all()


def test_gradients_of_chunks_are_those_of_the_recurrent_form():
    found = []
    for run in (
        lambda *t: gated_delta_rule(*t[:-1], t[-1].exp()),
        lambda *t: attend_in_chunks(*t, chunk_size=4)[0],
    ):
        parts = [t.requires_grad_() for t in drawn(2, 11, 3, 5)]
        run(*parts).square().sum().backward()
        found.append([t.grad for t in parts])
    torch.testing.assert_close(*found, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_in_16_bits_the_state_has_32(dtype):
    output, state = attend_in_chunks(*drawn(2, 7, 5, 3, dtype=dtype))
    assert output.dtype == dtype and state.dtype == torch.float32


@pytest.mark.parametrize(
    "sizes, said",
    [
        (((7, 3), (7, 5), (7, 2)), "one width d_k"),
        (((7, 3), (7, 3), (5, 2)), "a value for each key"),
        (((5, 3), (7, 3), (7, 2)), "of the same tokens"),
        (((2, 7, 3), (7, 3), (7, 2)), "of the same tokens"),
        (((0, 3), (0, 3), (0, 2)), "one or more"),
        (((3,), (3,), (2,)), "tokens, width"),
    ],
)
def test_shapes_that_do_not_fit_are_named(sizes, said):
    parts = [torch.zeros(size) for size in sizes]
    for run in (linear_attention, attend_in_chunks):
        with pytest.raises(ValueError, match=said):
            run(*parts)


def test_a_beta_a_gate_a_state_and_a_chunk_size_that_do_not_fit_are_named():
    parts = torch.zeros(3, 2, 7, 5).unbind()
    for run in (delta_rule, attend_in_chunks):
        with pytest.raises(ValueError, match=r"beta \(2, 7\), .* got \(2, 7, 1\)"):
            run(*parts, torch.zeros(2, 7, 1))
    for run, name in ((gated_delta_rule, "gate"), (attend_in_chunks, "log_gate")):
        with pytest.raises(ValueError, match=rf"expected {name} \(2, 7\), .* \(2,\)"):
            run(*parts, torch.zeros(2, 7), torch.zeros(2))
    with pytest.raises(ValueError, match=r"\(2, 5, 5\), got \(5, 5\)"):
        attend_in_chunks(*parts, state=torch.zeros(5, 5))
    with pytest.raises(ValueError, match="chunk_size of 1 or more, got 0"):
        attend_in_chunks(*parts, chunk_size=0)


def test_a_state_stays_as_large_as_it_is_and_no_other_cache_fits():
    layer, state = DeltaAttention(6, 10, 13, 0.0, 2), DeltaState()
    assert (len(state), state.nbytes) == (0, 0)
    for seen in (1, 7):
        layer(torch.zeros(3, seen - len(state), 6), cache=state)
        assert (len(state), state.nbytes) == (seen, 3 * 2 * 5 * 5 * 4)
    with pytest.raises(ValueError, match="expected a DeltaState"):
        layer(torch.zeros(2, 5, 6), cache=KeyValueCache(5))
