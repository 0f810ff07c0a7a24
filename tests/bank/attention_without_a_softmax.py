"""Answers to the exercises of notebook 15."""

import torch
from torch.nn import functional as F

from bank import right, wrong

# --- 15.1 -------------------------------------------------------------------------


@right("15.1")
def linear_loop(query, key, value):
    state = torch.zeros(key.shape[1], value.shape[1], dtype=value.dtype)
    outputs = []
    for q, k, v in zip(query, key, value):
        state = state + torch.outer(k, v)
        outputs.append(q @ state)
    return torch.stack(outputs)


@right("15.1")
def linear_parallel(query, key, value):
    return torch.tril(query @ key.T) @ value


@right("15.1")
def linear_cumulative(query, key, value):
    states = torch.cumsum(key[:, :, None] * value[:, None, :], dim=0)
    return torch.einsum("tk,tkv->tv", query, states)


@right("15.1")
def linear_filled(query, key, value):
    out = torch.zeros_like(value)
    state = torch.zeros(query.size(-1), value.size(-1)).to(value)
    for t in range(len(query)):
        state += key[t].unsqueeze(1) @ value[t].unsqueeze(0)
        out[t] = (state * query[t].unsqueeze(1)).sum(dim=0)
    return out


@right("15.1")
def linear_in_place(query, key, value):
    state = torch.zeros(key.shape[1], value.shape[1])
    outputs = []
    for q, k, v in zip(query, key, value):
        state += torch.outer(k, v)
        outputs.append(q @ state)
    return torch.stack(outputs)


@right("15.1")
def linear_in_two_chunks(query, key, value):
    half = len(query) // 2
    first = torch.tril(query[:half] @ key[:half].T) @ value[:half]
    state = key[:half].T @ value[:half]
    rest = torch.tril(query[half:] @ key[half:].T) @ value[half:] + query[half:] @ state
    return torch.cat([first, rest])


@wrong("15.1", "softmax-kept")
def linear_with_softmax(query, key, value):
    mask = torch.ones(len(query), len(key)).tril().bool()
    scores = (query @ key.T).masked_fill(~mask, -torch.inf)
    return scores.softmax(dim=-1) @ value


@wrong("15.1", "softmax-kept")
def linear_is_the_old_attention(query, key, value):
    return F.scaled_dot_product_attention(
        query[None], key[None], value[None], is_causal=True
    )[0]


@wrong("15.1", "no-causal-mask")
def linear_all_tokens(query, key, value):
    return query @ (key.T @ value)


@wrong("15.1", "no-causal-mask")
def linear_states_in_place(query, key, value):
    state, states = torch.zeros(key.shape[1], value.shape[1], dtype=value.dtype), []
    for k, v in zip(key, value):
        state += torch.outer(k, v)
        states.append(state)
    return torch.stack([q @ s for q, s in zip(query, states)])


@wrong("15.1", "past-alone")
def linear_read_first(query, key, value):
    state, outputs = torch.zeros(key.shape[1], value.shape[1], dtype=value.dtype), []
    for q, k, v in zip(query, key, value):
        outputs.append(q @ state)
        state = state + torch.outer(k, v)
    return torch.stack(outputs)


@wrong("15.1", "own-token-alone")
def linear_overwritten(query, key, value):
    outputs = []
    for q, k, v in zip(query, key, value):
        state = torch.outer(k, v)
        outputs.append(q @ state)
    return torch.stack(outputs)


@wrong("15.1", "scaled")
def linear_with_root(query, key, value):
    scores = query @ key.T / key.shape[-1] ** 0.5
    return scores.tril() @ value


@wrong("15.1", "divided")
def linear_divided(query, key, value):
    weights = (query @ key.T).tril()
    return weights / weights.sum(dim=-1, keepdim=True) @ value


@wrong("15.1", "averaged")
def linear_mean(query, key, value):
    state, outputs = torch.zeros(key.shape[1], value.shape[1], dtype=value.dtype), []
    for t, (q, k, v) in enumerate(zip(query, key, value), start=1):
        state = state + torch.outer(k, v)
        outputs.append(q @ state / t)
    return torch.stack(outputs)


@wrong("15.1", "roles-swapped")
def linear_keys_ask(query, key, value):
    return linear_loop(key, query, value)


@wrong("15.1", "entry-by-entry")
def linear_elementwise(query, key, value):
    state, outputs = torch.zeros(key.shape[1], dtype=value.dtype), []
    for q, k, v in zip(query, key, value):
        state = state + k * v
        outputs.append(q * state)
    return torch.stack(outputs)


@wrong("15.1", "feature-map")
def linear_elu(query, key, value):
    return linear_loop(F.elu(query) + 1, F.elu(key) + 1, value)


@wrong("15.1", "last-row-alone")
def linear_last(query, key, value):
    state = torch.zeros(key.shape[1], value.shape[1], dtype=value.dtype)
    for q, k, v in zip(query, key, value):
        state = state + torch.outer(k, v)
        output = q @ state
    return output


@wrong("15.1", "state-returned")
def linear_gives_state(query, key, value):
    state = torch.zeros(key.shape[1], value.shape[1], dtype=value.dtype)
    for k, v in zip(key, value):
        state = state + torch.outer(k, v)
    return state


@wrong("15.1", "upper-for-lower")
def linear_future(query, key, value):
    return torch.triu(query @ key.T) @ value


@wrong("15.1", "delta-rule")
def linear_corrected(query, key, value):
    state, outputs = torch.zeros(key.shape[1], value.shape[1], dtype=value.dtype), []
    for q, k, v in zip(query, key, value):
        state = state + torch.outer(k, v - k @ state)
        outputs.append(q @ state)
    return torch.stack(outputs)


# --- 15.2 -------------------------------------------------------------------------


@right("15.2")
def delta_loop(query, key, value, beta):
    state = torch.zeros(key.shape[1], value.shape[1])
    outputs = []
    for q, k, v, b in zip(query, key, value, beta):
        state = state + b * torch.outer(k, v - k @ state)
        outputs.append(q @ state)
    return torch.stack(outputs)


@right("15.2")
def delta_as_in_the_paper(query, key, value, beta):
    """S (I - beta k k^T) + beta v k^T, with the matrix (V, K)."""
    state, outputs = torch.zeros(value.shape[1], key.shape[1]), []
    for t in range(len(key)):
        k, v = key[t][:, None], value[t][:, None]
        state = state @ (torch.eye(len(k)) - beta[t] * k @ k.T) + beta[t] * v @ k.T
        outputs.append((state @ query[t][:, None])[:, 0])
    return torch.stack(outputs)


@right("15.2")
def delta_two_values(query, key, value, beta):
    """Replace what the key answers by a mixture of old and new."""
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for t in range(query.size(0)):
        old = state.T @ key[t]
        new = (1 - beta[t]) * old + beta[t] * value[t]
        state = state - torch.outer(key[t], old) + torch.outer(key[t], new)
        outputs.append(state.T @ query[t])
    return torch.stack(outputs)


@right("15.2")
def delta_by_what_was_written(query, key, value, beta):
    """Keep what was written in place of the matrix."""
    written = torch.zeros_like(value)
    for t in range(len(value)):
        known = (key[:t] @ key[t]) @ written[:t]
        written[t] = beta[t] * (value[t] - known)
    return (query @ key.T).tril() @ written


def delta_with(change, query, key, value, beta):
    """Run the loop with another difference."""
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for q, k, v, b in zip(query, key, value, beta):
        state = state + torch.outer(k, change(b, v, k @ state))
        outputs.append(q @ state)
    return torch.stack(outputs)


@wrong("15.2", "no-correction")
def delta_plain_sum(query, key, value, beta):
    return (query @ key.T).tril() @ (beta[:, None] * value)


@wrong("15.2", "beta-ignored")
def delta_without_beta(query, key, value, beta):
    return delta_with(lambda b, v, old: v - old, query, key, value, beta)


@wrong("15.2", "beta-on-the-value")
def delta_parentheses_missing(query, key, value, beta):
    return delta_with(lambda b, v, old: b * v - old, query, key, value, beta)


@wrong("15.2", "beta-on-the-known")
def delta_beta_on_old(query, key, value, beta):
    return delta_with(lambda b, v, old: v - b * old, query, key, value, beta)


@wrong("15.2", "added-for-subtracted")
def delta_plus(query, key, value, beta):
    return delta_with(lambda b, v, old: b * (v + old), query, key, value, beta)


@wrong("15.2", "sign-turned")
def delta_old_minus_new(query, key, value, beta):
    return delta_with(lambda b, v, old: b * (old - v), query, key, value, beta)


@wrong("15.2", "read-before-write")
def delta_reads_first(query, key, value, beta):
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for q, k, v, b in zip(query, key, value, beta):
        outputs.append(q @ state)
        state = state + b * torch.outer(k, v - k @ state)
    return torch.stack(outputs)


@wrong("15.2", "query-asks-what-is-known")
def delta_query_reads(query, key, value, beta):
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for q, k, v, b in zip(query, key, value, beta):
        state = state + b * torch.outer(k, v - q @ state)
        outputs.append(q @ state)
    return torch.stack(outputs)


@wrong("15.2", "everything-fades")
def delta_moving_average(query, key, value, beta):
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for q, k, v, b in zip(query, key, value, beta):
        state = (1 - b) * state + b * torch.outer(k, v)
        outputs.append(q @ state)
    return torch.stack(outputs)


@wrong("15.2", "past-thrown-away")
def delta_overwritten(query, key, value, beta):
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for q, k, v, b in zip(query, key, value, beta):
        state = b * torch.outer(k, v - k @ state)
        outputs.append(q @ state)
    return torch.stack(outputs)


@wrong("15.2", "written-entry-by-entry")
def delta_elementwise(query, key, value, beta):
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for q, k, v, b in zip(query, key, value, beta):
        state = state + torch.diag(b * k * (v - k @ state))
        outputs.append(q @ state)
    return torch.stack(outputs)


@wrong("15.2", "last-state-for-all")
def delta_states_in_place(query, key, value, beta):
    state, states = torch.zeros(key.shape[1], value.shape[1]), []
    for k, v, b in zip(key, value, beta):
        state += b * torch.outer(k, v - k @ state)
        states.append(state)
    return torch.stack([q @ s for q, s in zip(query, states)])


@wrong("15.2", "transposed-state")
def delta_wrong_side(query, key, value, beta):
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for q, k, v, b in zip(query, key, value, beta):
        state = state + b * torch.outer(k, v - state @ k)
        outputs.append(q @ state)
    return torch.stack(outputs)


@wrong("15.2", "first-beta-for-all")
def delta_one_beta(query, key, value, beta):
    return delta_loop(query, key, value, beta[0].expand(len(beta)))


@wrong("15.2", "sigmoid-again")
def delta_sigmoid(query, key, value, beta):
    return delta_loop(query, key, value, torch.sigmoid(beta))


@wrong("15.2", "last-row-alone")
def delta_last(query, key, value, beta):
    return delta_loop(query, key, value, beta)[-1]


@wrong("15.2", "state-returned")
def delta_gives_all(query, key, value, beta):
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for q, k, v, b in zip(query, key, value, beta):
        state = state + b * torch.outer(k, v - k @ state)
        outputs.append(q @ state)
    return torch.stack(outputs), state
