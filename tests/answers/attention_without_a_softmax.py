"""Answers to the exercises of notebook 15."""

import torch

from tests.answers import right


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
