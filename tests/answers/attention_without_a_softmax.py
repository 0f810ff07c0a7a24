"""15 Attention without a softmax: 15.1 linear_attention, 15.2 delta_rule."""

import torch

from tests.answers import right, wrong

# ---------------------------------------------------------------- 15.1 linear_attention


@right("linear_attention")
def linear_attention(query, key, value):
    state = torch.zeros(key.shape[1], value.shape[1])
    outputs = []
    for q, k, v in zip(query, key, value):
        state = state + torch.outer(k, v)
        outputs.append(q @ state)
    return torch.stack(outputs)


@right("linear_attention")
def linear_attention(query, key, value):
    T = query.shape[0]
    weights = torch.matmul(query, key.transpose(0, 1))
    later = torch.arange(T)[None, :] > torch.arange(T)[:, None]
    return weights.masked_fill(later, 0.0) @ value


@right("linear_attention")
def linear_attention(query, key, value):
    states = (key[:, :, None] * value[:, None, :]).cumsum(dim=0)
    return torch.einsum("tk,tkv->tv", query, states)


@right("linear_attention")
def linear_attention(query, key, value):
    def inside(q, k, v):
        return torch.tril(q @ k.T) @ v

    out, past = [], key.T[:, :0] @ value[:0]
    for start in range(0, len(key), 3):
        here = slice(start, start + 3)
        out += [query[here] @ past + inside(query[here], key[here], value[here])]
        past = past + key[here].T @ value[here]
    return torch.cat(out, dim=0)


@right("linear_attention")
def linear_attention(query, key, value):
    q, k, v = query.double(), key.double(), value.double()
    outputs = torch.empty_like(v)
    for t in range(v.shape[0]):
        outputs[t] = (k[: t + 1] @ q[t]) @ v[: t + 1]
    return outputs.to(value.dtype)


@right("linear_attention")
def linear_attention(query, key, value):
    turned = value.new_zeros(value.shape[1], key.shape[1])
    columns = torch.zeros(value.shape[1], value.shape[0])
    for t in range(value.shape[0]):
        turned.addr_(value[t], key[t])
        columns[:, t] = turned.mv(query[t])
    return columns.T


@wrong("linear_attention", "The query asks before its own token is added.")
def linear_attention(query, key, value):
    state = torch.zeros(key.shape[1], value.shape[1])
    outputs = []
    for q, k, v in zip(query, key, value):
        outputs.append(q @ state)
        state = state + torch.outer(k, v)
    return torch.stack(outputs)


@wrong(
    "linear_attention",
    "Each query asks the sum of all tokens, the later ones too: the causal part is missing.",
)
def linear_attention(query, key, value):
    return query @ (key.T @ value)


@wrong("linear_attention", "The weights are divided by the root of the key's width.")
def linear_attention(query, key, value):
    weights = (query @ key.T).tril() / key.shape[1] ** 0.5
    return weights @ value


@wrong("linear_attention", "A softmax is taken of the products.")
def linear_attention(query, key, value):
    T = len(query)
    later = torch.ones(T, T).triu(diagonal=1).bool()
    scores = (query @ key.T).masked_fill(later, -torch.inf)
    return torch.softmax(scores, dim=-1) @ value


@wrong(
    "linear_attention",
    "Each output is divided by the number of tokens so far: a mean, not a sum.",
)
def linear_attention(query, key, value):
    states = torch.einsum("tk,tv->tkv", key, value).cumsum(0)
    outputs = torch.einsum("tk,tkv->tv", query, states)
    return outputs / torch.arange(1, len(key) + 1)[:, None]


@wrong(
    "linear_attention",
    "The state begins anew with each token, so a token asks only itself.",
)
def linear_attention(query, key, value):
    outputs = []
    for t in range(len(query)):
        state = torch.zeros(key.shape[1], value.shape[1])
        state = state + torch.outer(key[t], value[t])
        outputs.append(query[t] @ state)
    return torch.stack(outputs)


@wrong("linear_attention", "The last state is returned, not the outputs.")
def linear_attention(query, key, value):
    state = torch.zeros(key.shape[1], value.shape[1])
    outputs = []
    for q, k, v in zip(query, key, value):
        state += k[:, None] * v[None, :]
        outputs.append(q @ state)
    return state


@wrong(
    "linear_attention",
    "Query and key are exchanged: the query is written, the key asks.",
)
def linear_attention(query, key, value):
    state = torch.zeros(key.shape[1], value.shape[1])
    outputs = torch.zeros(len(query), value.shape[1])
    for t in range(len(query)):
        state += torch.outer(query[t], value[t])
        outputs[t] = key[t] @ state
    return outputs


@wrong(
    "linear_attention",
    "The wrong half of the products is kept (triu): a token asks itself and the later ones.",
)
def linear_attention(query, key, value):
    return torch.triu(query @ key.T) @ value


@wrong(
    "linear_attention",
    "The first token is added twice: the state begins with it, and the loop adds it again.",
)
def linear_attention(query, key, value):
    state = torch.outer(key[0], value[0])
    outputs = []
    for t in range(len(key)):
        state = state + torch.outer(key[t], value[t])
        outputs.append(query[t] @ state)
    return torch.stack(outputs)


@wrong(
    "linear_attention",
    "The same tensor is written over and appended each time, without a copy: every row is the last token's output.",
)
def linear_attention(query, key, value):
    state = torch.zeros(key.shape[1], value.shape[1])
    answer = torch.zeros(value.shape[1])
    outputs = []
    for q, k, v in zip(query, key, value):
        state = state + torch.outer(k, v)
        answer[:] = q @ state
        outputs.append(answer)
    return torch.stack(outputs)


@wrong(
    "linear_attention",
    "The query asks before its own token is added.",
    "The outputs are divided by the root of the key's width.",
)
def linear_attention(query, key, value):
    state = torch.zeros(key.shape[1], value.shape[1])
    outputs = []
    for q, k, v in zip(query, key, value):
        outputs.append(q @ state / k.shape[0] ** 0.5)
        state = state + torch.outer(k, v)
    return torch.stack(outputs)


@wrong(
    "linear_attention",
    "A softmax is taken of the products.",
    "The causal part is missing.",
)
def linear_attention(query, key, value):
    return torch.softmax(query @ key.T, dim=-1) @ value


@wrong(
    "linear_attention",
    "Query and key are exchanged.",
    "The outputs are stacked as columns, (V, T).",
)
def linear_attention(query, key, value):
    state, outputs = torch.zeros(key.shape[1], value.shape[1]), []
    for q, k, v in zip(query, key, value):
        state = state + torch.outer(q, v)
        outputs.append(k @ state)
    return torch.stack(outputs, dim=1)


@wrong(
    "linear_attention",
    "The wrong half of the products is kept (triu).",
    "The weights are divided by their sum.",
)
def linear_attention(query, key, value):
    weights = (query @ key.T).triu()
    return weights / weights.sum(dim=-1, keepdim=True) @ value


@wrong(
    "linear_attention",
    "The keys are brought to length 1.",
    "Each output is divided by the number of tokens so far.",
)
def linear_attention(query, key, value):
    key = key / key.norm(dim=-1, keepdim=True)
    states = (key[:, :, None] * value[:, None, :]).cumsum(0)
    count = torch.arange(1, len(key) + 1).view(-1, 1)
    return (query[:, None] @ states)[:, 0] / count


# ---------------------------------------------------------------------- 15.2 delta_rule


@right("delta_rule")
def delta_rule(query, key, value, beta):
    state = torch.zeros(key.shape[1], value.shape[1])
    outputs = []
    for q, k, v, b in zip(query, key, value, beta):
        delta = v - k @ state
        state = state + b * torch.outer(k, delta)
        outputs.append(q @ state)
    return torch.stack(outputs)


@right("delta_rule")
def delta_rule(query, key, value, beta):
    T, K = key.shape
    eye = torch.eye(K)
    state = value.new_zeros(K, value.shape[1])
    outputs = torch.zeros_like(value)
    for t in range(T):
        column = key[t][:, None]
        forget = eye - beta[t] * (column @ column.T)
        state = forget @ state + beta[t] * column * value[t]
        outputs[t] = (query[t][None] @ state)[0]
    return outputs


@right("delta_rule")
def delta_rule(query, key, value, beta):
    turned = torch.zeros(value.size(1), key.size(1))
    rows = []
    for t in range(key.size(0)):
        read = turned.mv(key[t])
        turned.addr_(value[t] - read, key[t], alpha=beta[t].item())
        rows.append(turned.mv(query[t]))
    return torch.stack(rows, dim=0)


@right("delta_rule")
def delta_rule(query, key, value, beta):
    def step(state, k, v, b):
        read = torch.einsum("k,kv->v", k, state)
        return state + torch.einsum("k,v->kv", k * b, v - read)

    q, k, v, b = (a.double() for a in (query, key, value, beta))
    states = [torch.zeros(k.shape[1], v.shape[1], dtype=torch.float64)]
    for t in range(len(k)):
        states.append(step(states[-1], k[t], v[t], b[t]))
    return torch.einsum("tk,tkv->tv", q, torch.stack(states[1:])).to(value.dtype)


@right("delta_rule")
def delta_rule(query, key, value, beta):
    T = key.shape[0]
    before = (key @ key.T).tril(-1) * beta[:, None]
    written = torch.linalg.solve_triangular(
        torch.eye(T) + before, beta[:, None] * value, upper=False
    )
    return (query @ key.T).tril() @ written


@right("delta_rule")
def delta_rule(query, key, value, beta):
    written = []
    outputs = []
    for t in range(len(value)):
        known = torch.zeros(value.shape[1])
        for j, w in enumerate(written):
            known = known + key[t].dot(key[j]) * w
        written.append(beta[t] * (value[t] - known))
        asked = torch.zeros(value.shape[1])
        for j, w in enumerate(written):
            asked = asked + query[t].dot(key[j]) * w
        outputs.append(asked[None])
    return torch.cat(outputs)


@wrong("delta_rule", "beta is forgotten: the whole difference is written.")
def delta_rule(query, key, value, beta):
    state = torch.zeros(key.shape[1], value.shape[1])
    outputs = []
    for q, k, v in zip(query, key, value):
        state = state + torch.outer(k, v - k @ state)
        outputs.append(q @ state)
    return torch.stack(outputs)


@wrong("delta_rule", "The query asks before its own token is written.")
def delta_rule(query, key, value, beta):
    state = torch.zeros(key.shape[1], value.shape[1])
    outputs = torch.zeros_like(value)
    for t in range(len(key)):
        outputs[t] = query[t] @ state
        difference = value[t] - key[t] @ state
        state += beta[t] * torch.outer(key[t], difference)
    return outputs


@wrong(
    "delta_rule",
    "Nothing is read before writing: the value is added, not the difference.",
)
def delta_rule(query, key, value, beta):
    written = beta[:, None] * value
    states = torch.einsum("tk,tv->tkv", key, written).cumsum(dim=0)
    return torch.einsum("tk,tkv->tv", query, states)


@wrong("delta_rule", "The difference has the wrong sign: what is read minus the value.")
def delta_rule(query, key, value, beta):
    state = torch.zeros(key.shape[1], value.shape[1])
    outputs = []
    for q, k, v, b in zip(query, key, value, beta):
        difference = k @ state - v
        state = state + b * torch.outer(k, difference)
        outputs.append(q @ state)
    return torch.stack(outputs)


@wrong(
    "delta_rule", "What is read is added to the value, where it should be taken off."
)
def delta_rule(query, key, value, beta):
    state = torch.zeros(key.shape[1], value.shape[1])
    outputs = []
    for q, k, v, b in zip(query, key, value, beta):
        read = k @ state
        state = state + b * k[:, None] * (v + read)[None, :]
        outputs.append(q @ state)
    return torch.stack(outputs)


@wrong("delta_rule", "beta stands at the value only, not at the whole difference.")
def delta_rule(query, key, value, beta):
    state = torch.zeros(key.shape[1], value.shape[1])
    outputs = []
    for t in range(len(key)):
        read = key[t] @ state
        state = state + torch.outer(key[t], beta[t] * value[t] - read)
        outputs.append(query[t] @ state)
    return torch.stack(outputs)


@wrong("delta_rule", "The state is replaced by what is written, not added to.")
def delta_rule(query, key, value, beta):
    state = torch.zeros(key.shape[1], value.shape[1])
    outputs = []
    for q, k, v, b in zip(query, key, value, beta):
        state = b * torch.outer(k, v - k @ state)
        outputs.append(q @ state)
    return torch.stack(outputs)


@wrong("delta_rule", "The query reads before writing, where the key should.")
def delta_rule(query, key, value, beta):
    state = value.new_zeros(key.shape[1], value.shape[1])
    outputs = []
    for q, k, v, b in zip(query, key, value, beta):
        delta = v - q @ state
        state = state + torch.outer(b * k, delta)
        outputs.append(q @ state)
    return torch.stack(outputs)


@wrong(
    "delta_rule",
    "The key asks at the end, where the query should; the query is never used.",
)
def delta_rule(query, key, value, beta):
    state = torch.zeros(key.shape[1], value.shape[1])
    outputs = []
    for k, v, b in zip(key, value, beta):
        state = state + b * torch.outer(k, v - k @ state)
        outputs.append(k @ state)
    return torch.stack(outputs)


@wrong("delta_rule", "1 - beta is used in place of beta.")
def delta_rule(query, key, value, beta):
    state = torch.zeros(key.shape[1], value.shape[1])
    outputs = torch.empty(len(value), value.shape[1])
    for t, (q, k, v) in enumerate(zip(query, key, value)):
        delta = (1 - beta[t]) * (v - k @ state)
        state = state + torch.outer(k, delta)
        outputs[t] = q @ state
    return outputs


@wrong("delta_rule", "The last state is returned, not the outputs.")
def delta_rule(query, key, value, beta):
    state = torch.zeros(key.shape[1], value.shape[1])
    outputs = []
    for q, k, v, b in zip(query, key, value, beta):
        state = state + b * torch.outer(k, v - k @ state)
        outputs.append(q @ state)
    return state


@wrong(
    "delta_rule",
    "beta is forgotten.",
    "The query asks before its own token is written.",
)
def delta_rule(query, key, value, beta):
    state = torch.zeros(key.shape[1], value.shape[1])
    outputs = []
    for q, k, v, b in zip(query, key, value, beta):
        outputs.append(q @ state)
        state = state + torch.outer(k, v - k @ state)
    return torch.stack(outputs)


@wrong(
    "delta_rule",
    "Nothing is read before writing.",
    "The outputs are divided by the root of the key's width.",
)
def delta_rule(query, key, value, beta):
    weights = (query @ key.T).tril() / key.shape[1] ** 0.5
    return weights @ (beta[:, None] * value)


@wrong(
    "delta_rule",
    "beta stands at the value only.",
    "The outputs are stacked as columns, (V, T).",
)
def delta_rule(query, key, value, beta):
    state = torch.zeros(key.shape[1], value.shape[1])
    outputs = []
    for q, k, v, b in zip(query, key, value, beta):
        state = state + torch.outer(k, b * v - k @ state)
        outputs.append(q @ state)
    return torch.stack(outputs, dim=-1)


@wrong(
    "delta_rule",
    "The query reads before writing, where the key should.",
    "What is read is added to the value.",
)
def delta_rule(query, key, value, beta):
    state = torch.zeros(key.shape[1], value.shape[1])
    outputs = []
    for q, k, v, b in zip(query, key, value, beta):
        read = q @ state
        state = state + b * torch.outer(k, v + read)
        outputs.append(q @ state)
    return torch.stack(outputs)


@wrong(
    "delta_rule",
    "1 - beta is used in place of beta.",
    "The outputs are divided by the root of the key's width.",
)
def delta_rule(query, key, value, beta):
    state = torch.zeros(key.shape[1], value.shape[1])
    outputs = []
    for q, k, v, b in zip(query, key, value, beta):
        state = state + (1 - b) * torch.outer(k, v - k @ state)
        outputs.append(q @ state / len(k) ** 0.5)
    return torch.stack(outputs)
