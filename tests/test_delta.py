"""The delta rule, `utils.delta`."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from tests.small_layers import computed, everywhere, random
from utils.delta import (
    DeltaAttention,
    attend_in_chunks,
    delta_rule,
    gated_delta_rule,
    linear_attention,
)


def drawn(*shape, dtype=torch.float64):
    """Return query, key, value, beta and log_gate for the axes (..., T, d_k, d_v)."""
    *lead, width, d_v = shape
    query, key = random(*lead, width), F.normalize(random(*lead, width, seed=1), dim=-1)
    value, beta = random(*lead, d_v, seed=2), torch.sigmoid(random(*lead, seed=3))
    log_gate = F.logsigmoid(random(*lead, seed=4))
    return [t.to(dtype) for t in (query, key, value, beta, log_gate)]


@everywhere
@given(
    st.sampled_from([(7, 5, 3), (2, 13, 3, 7), (2, 3, 11, 5, 2), (1, 1, 1, 1, 1)]),
    st.sampled_from([1, 2, 3, 5, 64]),
    st.sampled_from(["no gate", "a gate", -1e9, -torch.inf]),
)
def test_any_chunks_give_what_the_recurrence_gives(shape, chunk_size, gate):
    *inputs, log_gate = drawn(*shape)
    if isinstance(gate, float):  # one that closes, and forgets all before it
        log_gate[..., ::4] = log_gate[..., 1::4] = gate
    *inputs, log_gate = [t.requires_grad_() for t in (*inputs, log_gate)]
    if gate != "no gate":
        expected = gated_delta_rule(*inputs, log_gate.exp())
        inputs.append(log_gate)
    else:
        expected = delta_rule(*inputs)
    output, _ = attend_in_chunks(*inputs, chunk_size=chunk_size)
    torch.testing.assert_close(output, expected, atol=1e-10, rtol=1e-10)
    gradients = torch.autograd.grad(expected.square().sum(), inputs)
    actual = torch.autograd.grad(output.square().sum(), inputs)
    torch.testing.assert_close(actual, gradients, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("chunk_size", [1, 5, 64])
def test_the_gated_delta_rule_is_that_of_qwen3_next(chunk_size):
    reference = computed("delta")
    parts = (reference[name] for name in ("query", "key", "value"))
    query, key, value = (part.transpose(1, 2) for part in parts)  # (B, H, T, width)
    query, key = F.normalize(query, dim=-1) / 8**0.5, F.normalize(key, dim=-1)
    beta, log_gate = reference["beta"].mT, reference["log_gate"].mT
    inputs = query, key, value, beta, log_gate
    output, state = attend_in_chunks(*inputs, chunk_size=chunk_size)
    expected = reference["output"].transpose(1, 2)
    torch.testing.assert_close(output, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(state, reference["state"], atol=1e-5, rtol=0)
    by_token = gated_delta_rule(query, key, value, beta, log_gate.exp())
    torch.testing.assert_close(by_token, expected, atol=1e-5, rtol=0)


def test_strong_gates_and_long_texts_stay_finite_with_their_gradients():
    *parts, beta, _ = drawn(2, 200, 5, 3, dtype=torch.float32)
    log_gate = torch.full((2, 200), -30.0, requires_grad=True)
    output, _ = attend_in_chunks(*parts, beta, log_gate)
    output.square().sum().backward()
    assert output.isfinite().all() and log_gate.grad.isfinite().all()


def test_a_gate_begins_open_and_forgets_everything_if_its_bias_closes_it():
    torch.manual_seed(0)
    layer, x = DeltaAttention(5, 8, 7, 0.0, 2, gate=True), torch.randn(2, 7, 5)
    assert (layer.gate_bias.sigmoid() - 0.982).abs().max() < 1e-3
    layer.gate_bias.data.fill_(-1000.0)
    torch.testing.assert_close(layer(x)[:, 6:], layer(x[:, 6:]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_in_16_bits_sums_stay_right_and_a_vector_of_zeros_gives_no_nan(dtype):
    """Float16 ends at 65,504, and bfloat16 has no whole numbers above 256."""
    ones = torch.ones(1000, 1, dtype=dtype)
    assert linear_attention(ones, 10 * ones, 10 * ones)[-1] == 100_000
    output = delta_rule(ones, ones, ones, torch.full((1000,), 0.001, dtype=dtype))
    assert output.dtype == dtype and abs(output[-1] - 0.632) < 0.01
    layer = DeltaAttention(1, 1, 1, 0.0, 1).to(dtype)
    assert layer(0 * ones[None, :1]).isfinite().all()
