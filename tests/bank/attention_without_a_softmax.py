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


# --- 15.3 -------------------------------------------------------------------------


@right("15.3")
def gated_loop(query, key, value, beta, gate):
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for q, k, v, b, g in zip(query, key, value, beta, gate):
        state = g * state
        state = state + torch.outer(k, b * (v - k @ state))
        outputs.append(q @ state)
    return torch.stack(outputs)


@right("15.3")
def gated_as_in_the_paper(query, key, value, beta, gate):
    """S (g (I - beta k k^T)) + beta v k^T, with the matrix (V, K)."""
    state, outputs = torch.zeros(value.shape[1], key.shape[1]), []
    for t in range(len(key)):
        k, v = key[t][:, None], value[t][:, None]
        turn = gate[t] * (torch.eye(len(k)) - beta[t] * k @ k.T)
        state = state @ turn + beta[t] * v @ k.T
        outputs.append((state @ query[t][:, None])[:, 0])
    return torch.stack(outputs)


@right("15.3")
def gated_in_place(query, key, value, beta, gate):
    state, outputs = key.new_zeros(key.size(1), value.size(1)), torch.empty_like(value)
    for t in range(query.size(0)):
        state *= gate[t]
        known = (state * key[t].unsqueeze(1)).sum(0)
        state += (beta[t] * key[t]).unsqueeze(1) * (value[t] - known)
        outputs[t] = torch.einsum("k,kv->v", query[t], state)
    return outputs


@right("15.3")
def gated_by_what_was_written(query, key, value, beta, gate):
    """Keep what was written in place of the matrix, and let it fade row by row."""
    written, shares, outputs = torch.zeros_like(value), torch.ones(len(key)), []
    for t in range(len(value)):
        shares[:t] = shares[:t] * gate[t]
        known = (shares[:t] * (key[:t] @ key[t])) @ written[:t]
        written[t] = beta[t] * (value[t] - known)
        outputs.append((shares[: t + 1] * (key[: t + 1] @ query[t])) @ written[: t + 1])
    return torch.stack(outputs)


@right("15.3")
def gated_with_the_known_faded_by_hand(query, key, value, beta, gate):
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for q, k, v, b, g in zip(query, key, value, beta, gate):
        known = g * (k @ state)
        state = g * state + b * torch.outer(k, v - known)
        outputs.append(q @ state)
    return torch.stack(outputs)


@wrong("15.3", "gate-ignored")
def gated_without_gate(query, key, value, beta, gate):
    return delta_loop(query, key, value, beta)


@wrong("15.3", "fades-after-writing")
def gated_fades_all(query, key, value, beta, gate):
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for q, k, v, b, g in zip(query, key, value, beta, gate):
        state = g * (state + torch.outer(k, b * (v - k @ state)))
        outputs.append(q @ state)
    return torch.stack(outputs)


@wrong("15.3", "fades-after-asking")
def gated_fades_last(query, key, value, beta, gate):
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for q, k, v, b, g in zip(query, key, value, beta, gate):
        state = state + torch.outer(k, b * (v - k @ state))
        outputs.append(q @ state)
        state = g * state
    return torch.stack(outputs)


@wrong("15.3", "known-before-fading")
def gated_reads_too_early(query, key, value, beta, gate):
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for q, k, v, b, g in zip(query, key, value, beta, gate):
        state = g * state + b * torch.outer(k, v - k @ state)
        outputs.append(q @ state)
    return torch.stack(outputs)


@wrong("15.3", "known-alone-fades")
def gated_known_alone(query, key, value, beta, gate):
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for q, k, v, b, g in zip(query, key, value, beta, gate):
        known = k @ (g * state)
        state = state + torch.outer(k, b * (v - known))
        outputs.append(q @ state)
    return torch.stack(outputs)


@wrong("15.3", "fades-twice")
def gated_known_fades_again(query, key, value, beta, gate):
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for q, k, v, b, g in zip(query, key, value, beta, gate):
        state = g * state
        state = state + b * torch.outer(k, v - g * (k @ state))
        outputs.append(q @ state)
    return torch.stack(outputs)


@wrong("15.3", "fades-twice")
def gated_state_fades_again(query, key, value, beta, gate):
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for t in range(len(key)):
        state = gate[t] * state
        known = key[t] @ state
        state = gate[t] * (state + beta[t] * torch.outer(key[t], value[t] - known))
        outputs.append(query[t] @ state)
    return torch.stack(outputs)


@wrong("15.3", "inverted-gate")
def gated_forgets_by_the_gate(query, key, value, beta, gate):
    return gated_loop(query, key, value, beta, 1 - gate)


@wrong("15.3", "first-gate-for-all")
def gated_one_gate(query, key, value, beta, gate):
    return gated_loop(query, key, value, beta, gate[0].expand(len(gate)))


@wrong("15.3", "gate-through-sigmoid")
def gated_sigmoid(query, key, value, beta, gate):
    return gated_loop(query, key, value, beta, torch.sigmoid(gate))


@wrong("15.3", "gate-through-exp")
def gated_exp(query, key, value, beta, gate):
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for q, k, v, b, g in zip(query, key, value, beta, gate):
        state = torch.exp(g) * state
        state = state + torch.outer(k, b * (v - k @ state))
        outputs.append(q @ state)
    return torch.stack(outputs)


@wrong("15.3", "gates-multiplied-up")
def gated_cumulative(query, key, value, beta, gate):
    return gated_loop(query, key, value, beta, torch.cumprod(gate, dim=0))


@wrong("15.3", "gate-on-the-difference")
def gated_difference_too(query, key, value, beta, gate):
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for q, k, v, b, g in zip(query, key, value, beta, gate):
        state = g * state
        state = state + g * b * torch.outer(k, v - k @ state)
        outputs.append(q @ state)
    return torch.stack(outputs)


@wrong("15.3", "gate-on-the-difference")
def gated_like_an_input_gate(query, key, value, beta, gate):
    return delta_loop(query, key, value, beta * gate)


@wrong("15.3", "rest-on-the-difference")
def gated_moving_average(query, key, value, beta, gate):
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for q, k, v, b, g in zip(query, key, value, beta, gate):
        known = k @ (g * state)
        state = g * state + (1 - g) * torch.outer(k, b * (v - known))
        outputs.append(q @ state)
    return torch.stack(outputs)


@wrong("15.3", "gate-on-the-output")
def gated_output(query, key, value, beta, gate):
    return gate[:, None] * delta_loop(query, key, value, beta)


@wrong("15.3", "beta-and-gate-swapped")
def gated_exchanged(query, key, value, beta, gate):
    return gated_loop(query, key, value, gate, beta)


@wrong("15.3", "beta-for-gate")
def gated_by_the_rest_of_beta(query, key, value, beta, gate):
    return gated_loop(query, key, value, beta, 1 - beta)


@wrong("15.3", "gate-for-beta")
def gated_as_in_a_gru(query, key, value, beta, gate):
    return gated_loop(query, key, value, 1 - gate, gate)


@wrong("15.3", "no-correction")
def gated_plain_sum(query, key, value, beta, gate):
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for q, k, v, b, g in zip(query, key, value, beta, gate):
        state = g * state + b * torch.outer(k, v)
        outputs.append(q @ state)
    return torch.stack(outputs)


@wrong("15.3", "read-before-write")
def gated_asks_first(query, key, value, beta, gate):
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for q, k, v, b, g in zip(query, key, value, beta, gate):
        outputs.append(q @ state)
        state = g * state
        state = state + torch.outer(k, b * (v - k @ state))
    return torch.stack(outputs)


@wrong("15.3", "beta-ignored")
def gated_without_beta(query, key, value, beta, gate):
    return gated_loop(query, key, value, torch.ones_like(beta), gate)


@wrong("15.3", "past-thrown-away")
def gated_overwritten(query, key, value, beta, gate):
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for q, k, v, b, g in zip(query, key, value, beta, gate):
        state = g * state
        known = k @ state
        state = torch.outer(k, b * (v - known))
        outputs.append(q @ state)
    return torch.stack(outputs)


@wrong("15.3", "last-state-for-all")
def gated_states_in_place(query, key, value, beta, gate):
    state, states = torch.zeros(key.shape[1], value.shape[1]), []
    for k, v, b, g in zip(key, value, beta, gate):
        state *= g
        state += torch.outer(k, b * (v - k @ state))
        states.append(state)
    return torch.stack([q @ s for q, s in zip(query, states)])
