"""Answers to the exercises of notebook 15."""

import torch

from answers import right

# --- 15.1 -------------------------------------------------------------------------


@right("linear_attention")
def linear_loop(query, key, value):
    state = torch.zeros(key.shape[1], value.shape[1], dtype=value.dtype)
    outputs = []
    for q, k, v in zip(query, key, value):
        state = state + torch.outer(k, v)
        outputs.append(q @ state)
    return torch.stack(outputs)


@right("linear_attention")
def linear_parallel(query, key, value):
    return torch.tril(query @ key.T) @ value


@right("linear_attention")
def linear_cumulative(query, key, value):
    states = torch.cumsum(key[:, :, None] * value[:, None, :], dim=0)
    return torch.einsum("tk,tkv->tv", query, states)


# --- 15.2 -------------------------------------------------------------------------


@right("delta_rule")
def delta_loop(query, key, value, beta):
    state = torch.zeros(key.shape[1], value.shape[1])
    outputs = []
    for q, k, v, b in zip(query, key, value, beta):
        state = state + b * torch.outer(k, v - k @ state)
        outputs.append(q @ state)
    return torch.stack(outputs)


@right("delta_rule")
def delta_as_in_the_paper(query, key, value, beta):
    """S (I - beta k k^T) + beta v k^T, with the matrix (V, K)."""
    state, outputs = torch.zeros(value.shape[1], key.shape[1]), []
    for t in range(len(key)):
        k, v = key[t][:, None], value[t][:, None]
        state = state @ (torch.eye(len(k)) - beta[t] * k @ k.T) + beta[t] * v @ k.T
        outputs.append((state @ query[t][:, None])[:, 0])
    return torch.stack(outputs)


@right("delta_rule")
def delta_two_values(query, key, value, beta):
    """Replace what the key answers by a mixture of old and new."""
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for t in range(query.size(0)):
        old = state.T @ key[t]
        new = (1 - beta[t]) * old + beta[t] * value[t]
        state = state - torch.outer(key[t], old) + torch.outer(key[t], new)
        outputs.append(state.T @ query[t])
    return torch.stack(outputs)


# --- 15.3 -------------------------------------------------------------------------


@right("gated_delta_rule")
def gated_loop(query, key, value, beta, gate):
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for q, k, v, b, g in zip(query, key, value, beta, gate):
        state = g * state
        state = state + torch.outer(k, b * (v - k @ state))
        outputs.append(q @ state)
    return torch.stack(outputs)


@right("gated_delta_rule")
def gated_as_in_the_paper(query, key, value, beta, gate):
    """S (g (I - beta k k^T)) + beta v k^T, with the matrix (V, K)."""
    state, outputs = torch.zeros(value.shape[1], key.shape[1]), []
    for t in range(len(key)):
        k, v = key[t][:, None], value[t][:, None]
        turn = gate[t] * (torch.eye(len(k)) - beta[t] * k @ k.T)
        state = state @ turn + beta[t] * v @ k.T
        outputs.append((state @ query[t][:, None])[:, 0])
    return torch.stack(outputs)


@right("gated_delta_rule")
def gated_in_place(query, key, value, beta, gate):
    state, outputs = key.new_zeros(key.size(1), value.size(1)), torch.empty_like(value)
    for t in range(query.size(0)):
        state *= gate[t]
        known = (state * key[t].unsqueeze(1)).sum(0)
        state += (beta[t] * key[t]).unsqueeze(1) * (value[t] - known)
        outputs[t] = torch.einsum("k,kv->v", query[t], state)
    return outputs
