"""Attention without a softmax: the past as a matrix of fixed size.

Shapes: B batch, T tokens, H heads, d_k width of keys and queries, d_v width of
values. A state M is (..., d_k, d_v): for a key k it returns M^T k.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils.attention import merge_heads, split_heads
from utils.validation import (
    NonNegativeInt,
    PositiveInt,
    Proportion,
    check_context_length,
    check_divisible,
    check_finite,
    check_inputs,
    check_range,
    check_shapes,
    check_tokens,
    raise_unless,
)


@check_inputs(
    "query (..., T, d_k); key (..., T, d_k); value (..., T, d_v)", same_leading=True
)
def linear_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Add each key and value to a matrix, and read outputs only from the matrix.

    M_t = M_(t-1) + k_t v_t^T;  o_t = M_t^T q_t: the rows of tril(Q K^T) V

    query, key: (..., T, d_k)
    value: (..., T, d_v)
    returns: (..., T, d_v), of 16-bit inputs in float32, because the sums have no limit

    >>> linear_attention(torch.ones(2, 1), torch.ones(2, 1), torch.tensor([[3.0], [4]]))
    tensor([[3.],
            [7.]])

    Source: Katharopoulos et al. 2020, section 3.3, without feature map and division.
    """
    state, outputs = _empty_state(key, value), []
    query, key, value = (t.to(state.dtype) for t in (query, key, value))
    for t in range(key.shape[-2]):
        state = state + key[..., t, :, None] * value[..., t, None, :]  # (..., d_k, d_v)
        outputs.append(_read_state(state, query[..., t, :]))
    return torch.stack(outputs, dim=-2)


@check_inputs()
def delta_rule(query: Tensor, key: Tensor, value: Tensor, beta: Tensor) -> Tensor:
    """Write into a matrix the difference to what it already returns for each key.

    M_t = M + beta_t k_t (v_t - M^T k_t)^T with M = M_(t-1);  o_t = M_t^T q_t

    query, key: (..., T, d_k); keys of length 1, because longer ones let the matrix grow
    value: (..., T, d_v)
    beta: (..., T), from 0 (write nothing) to 1 (the key then returns its value)
    returns: (..., T, d_v)

    >>> key, value = torch.ones(2, 1), torch.tensor([[3.0], [4]])
    >>> delta_rule(key, key, value, beta=torch.ones(2))
    tensor([[3.],
            [4.]])

    Source: Schlag et al. 2021, section 4.2.
    """
    return gated_delta_rule(query, key, value, beta, torch.ones_like(beta))


@check_inputs(
    "query (..., T, d_k); key (..., T, d_k); value (..., T, d_v); beta (..., T); "
    "gate (..., T)",
    same_leading=True,
)
def gated_delta_rule(
    query: Tensor, key: Tensor, value: Tensor, beta: Tensor, gate: Tensor
) -> Tensor:
    """Let the matrix of `delta_rule` fade before each token reads and writes.

    M_t = M + beta_t k_t (v_t - M^T k_t)^T with M = g_t M_(t-1);  o_t = M_t^T q_t

    query, key, value, beta: as `delta_rule` takes them
    gate: (..., T), g: the fraction of the state that remains, from 0 to 1
    returns: (..., T, d_v)

    >>> key, value = torch.ones(2, 1), torch.tensor([[8.0], [8]])
    >>> half = torch.tensor([0.5, 0.5])
    >>> gated_delta_rule(key, key, value, beta=half, gate=half)
    tensor([[4.],
            [5.]])

    Source: Yang et al. 2025, *Gated Delta Networks*, equation 10.
    """
    check_range("beta", beta, 0, 1)
    check_range("gate", gate, 0, 1)
    state, outputs, dtype = _empty_state(key, value), [], value.dtype
    inputs = (t.to(state.dtype) for t in (query, key, value, beta, gate))
    query, key, value, beta, gate = inputs
    for t in range(key.shape[-2]):
        state = gate[..., t, None, None] * state
        old_value = _read_state(state, key[..., t, :])  # (..., d_v)
        update = beta[..., t, None] * (value[..., t, :] - old_value)
        state = state + key[..., t, :, None] * update[..., None, :]  # (..., d_k, d_v)
        outputs.append(_read_state(state, query[..., t, :]))
    return torch.stack(outputs, dim=-2).to(dtype)


@check_inputs(
    "query (..., T, d_k); key (..., T, d_k); value (..., T, d_v); beta (..., T); "
    "log_gate (..., T)",
    same_leading=True,
)
def attend_in_chunks(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    beta: Tensor,
    log_gate: Tensor | None = None,
    state: Tensor | None = None,
    chunk_size: PositiveInt = 64,
) -> tuple[Tensor, Tensor]:
    """Compute `gated_delta_rule` by chunks: inside a chunk all tokens at once.

    query, key, value, beta: as `gated_delta_rule` takes them
    log_gate: (..., T), the logarithm of its `gate`, so 0 or less, -inf for a gate of 0;
        None for gates of 1
    state: (..., d_k, d_v), after the tokens before; None if there are none
    returns: output (..., T, d_v) and the state (..., d_k, d_v) after the last token, in
        float32 or wider

    >>> key, value = torch.ones(2, 1), torch.tensor([[3.0], [4]])
    >>> attend_in_chunks(key, key, value, beta=torch.ones(2))
    (tensor([[3.],
            [4.]]), tensor([[4.]]))

    Source: Yang et al. 2024, *Parallelizing Linear Transformers with the Delta Rule*,
    section 3.2.
    """
    log_gate = torch.zeros_like(beta) if log_gate is None else log_gate
    check_range("beta", beta, 0, 1)
    check_range("log_gate", log_gate, -math.inf, 0)
    empty, outputs = _empty_state(key, value), []
    state = empty if state is None else state
    sizes = check_shapes("a new state (..., d_k, d_v)", empty, same_leading=True)
    check_shapes("state (..., d_k, d_v)", state, same_leading=True, **sizes)
    check_finite("a finite state", state)
    gates = beta[..., None], log_gate[..., None]
    inputs = [t.to(empty.dtype) for t in (query, key, value, *gates)]
    for chunk in zip(*(t.split(chunk_size, dim=-2) for t in inputs)):
        output, state = _chunk(state, *chunk)
        outputs.append(output)
    return torch.cat(outputs, dim=-2).to(value.dtype), state


def _chunk(state, query, key, value, beta, log_gate):
    # What token j wrote has this factor when token i reads it: the product of the gates
    # after j, up to i. Column j sums their logarithms by itself, because a difference
    # of two sums would lose all digits to a large one, and -inf - (-inf) is NaN.
    later_gates = log_gate.expand(*log_gate.shape[:-1], log_gate.shape[-2]).tril(-1)
    decay = later_gates.cumsum(dim=-2).exp().tril()  # (..., chunk, chunk)
    # The factor of the state before the chunk, and of what is written until its end.
    state_decay = log_gate.cumsum(dim=-2).exp()  # (..., chunk, 1)
    until_end = decay[..., -1:, :].mT  # (..., chunk, 1)
    # Token i writes beta_i (v_i - what its key reads in the state and from the
    # tokens before it): a triangular system in what all of them write.
    overlap = (beta * (key @ key.mT) * decay).tril(-1)  # (..., chunk, chunk)
    target = beta * (value - state_decay * (key @ state))  # (..., chunk, d_v)
    updates = torch.linalg.solve_triangular(
        overlap, target, upper=False, unitriangular=True
    )
    output = state_decay * (query @ state) + ((query @ key.mT) * decay) @ updates
    state = state_decay[..., -1:, :] * state + (until_end * key).mT @ updates
    return output, state


class DeltaState:
    """What `DeltaAttention` stores of the tokens so far: one matrix per head.

    matrix: (B, H, d_k, d_v), whatever the number of tokens; None before the first ones
    """

    def __init__(self):
        self.matrix, self.num_tokens = None, 0

    def __len__(self):
        return self.num_tokens

    @property
    def nbytes(self) -> int:
        """The number of bytes of the matrix; 0 before the first tokens."""
        return 0 if self.matrix is None else self.matrix.nbytes


class DeltaAttention(nn.Module):
    """Attend with several heads by the delta rule: one matrix per head stores the past.

    x: (B, T, d_in) with T up to `context_length`, with those before x
    padding_mask: boolean (B, S), True = a real token; other tokens write nothing. S
        includes the tokens before x
    cache: `DeltaState` of the tokens before x, which is updated
    returns: (B, T, d_out)

    It replaces a causal `MultiHeadAttention` and needs no positions, because the order
    of the tokens matters to it. Queries and keys are normalised to length 1, and each
    head's output to one size. With `gate=True` each token and head has a gate besides
    its beta, which starts close to 1. Dropout acts on the outputs of the heads.

    >>> layer = DeltaAttention(3, 8, context_length=6, dropout=0.0, num_heads=2)
    >>> layer(torch.zeros(2, 5, 3)).shape
    torch.Size([2, 5, 8])

    Source: Yang et al. 2024 and 2025, whose layers also have short convolutions,
    weights in the norm, and a gate on the output.
    """

    @check_inputs()
    def __init__(
        self,
        d_in: PositiveInt,
        d_out: PositiveInt,
        context_length: NonNegativeInt,
        dropout: Proportion,
        num_heads: PositiveInt,
        *,
        gate: bool = False,
    ):
        super().__init__()
        check_divisible(d_out, num_heads)
        self.d_in = d_in
        self.context_length = context_length
        self.num_heads = num_heads
        self.dropout_p = dropout
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.W_beta = nn.Linear(d_in, num_heads)
        self.W_gate = nn.Linear(d_in, num_heads, bias=False) if gate else None
        # With x = 0 the gate is sigmoid(4) = 0.98. A bias of W_gate would not stay 4,
        # because GPT sets those to zero.
        self.gate_bias = nn.Parameter(torch.full((num_heads,), 4.0)) if gate else None
        self.out_proj = nn.Linear(d_out, d_out)

    @check_inputs()
    def forward(
        self,
        x: Tensor,
        padding_mask: Tensor | None = None,
        cache: DeltaState | None = None,
    ) -> Tensor:
        num_cached = 0 if cache is None else len(cache)
        num_tokens = check_tokens("x", x, self, padding_mask, num_cached)
        check_context_length(num_tokens, self.context_length)
        if x.shape[1] == 0:
            return self.W_value(x)  # (B, 0, d_out)
        projected = self.W_query(x), self.W_key(x), self.W_value(x)
        query, key, value = (split_heads(t, self.num_heads) for t in projected)
        beta = torch.sigmoid(self.W_beta(x))  # (B, T, H)
        log_gate = torch.zeros_like(beta)
        if self.W_gate is not None:
            log_gate = F.logsigmoid(self.W_gate(x) + self.gate_bias)
        if padding_mask is not None:
            is_padding = ~padding_mask[:, -x.shape[1] :, None]
            beta, log_gate = (t.masked_fill(is_padding, 0.0) for t in (beta, log_gate))
        state = None if cache is None else cache.matrix
        wide = torch.promote_types(x.dtype, torch.float32)  # float16 makes eps 0
        inputs = (t.to(wide) for t in (query, key, value, beta.mT, log_gate.mT))
        query, key, value, *gates = inputs  # gates are (B, H, T)
        query, key = F.normalize(query, dim=-1), F.normalize(key, dim=-1)
        output, state = attend_in_chunks(query, key, value, *gates, state)
        output = F.rms_norm(output, output.shape[-1:])  # (B, H, T, d_v)
        output = F.dropout(output, self.dropout_p, self.training)
        output = self.out_proj(merge_heads(output).to(x.dtype))  # (B, T, d_out)
        if cache is not None:  # now that nothing can fail any more
            cache.matrix = state
            cache.num_tokens += x.shape[1]
        return output

    def new_cache(self, num_tokens: int) -> DeltaState:
        """Return the state before the first token; its size is always the same."""
        return DeltaState()


def _empty_state(key, value):
    """Return zeros (..., d_k, d_v), in float32 or wider: 16 bits are few for sums."""
    raise_unless(key.shape[-2] > 0, "one token or more", key.shape)
    product = key[..., 0, :, None] * value[..., 0, None, :]
    dtype = torch.promote_types(value.dtype, torch.float32)
    return torch.zeros_like(product, dtype=dtype)


def _read_state(state, vector):
    return (vector[..., None, :] @ state).squeeze(-2)  # M^T vector, (..., d_v)
