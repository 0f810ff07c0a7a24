"""Exercises of the notebook without a softmax: linear attention, delta rule, a gate."""

import torch
from torch.nn import functional as F

from utils import delta
from utils.checks.definition import Case, Exercise, Mistake, draw
from utils.checks.shared import BY_ENTRY


def three(num_tokens, width, d_v):
    """Return a random query, key and value."""
    query, key = draw(2, num_tokens, width)
    return query, key, draw(num_tokens, d_v, seed=2)


WHOLE = torch.tensor([[1.0, 0], [0, 1], [1, 1]])


def linear_attention(query, key, value):
    scores = query @ key.mT
    column = torch.arange(len(key))
    row = column[:, None]
    last = row
    mask = column <= last
    weights = scores * mask
    return weights @ value


exercise_13_1 = Exercise(
    id="13.1",
    skip_probes=("changed-in-place",),
    right=linear_attention,
    course=delta.linear_attention,
    returns="the outputs (T, d_v): the query of token t reads the sum of kᵀv over the tokens up to itself, without a softmax and without division",
    cases=[
        Case(WHOLE, WHOLE, torch.tensor([[1.0], [10], [100]]), note="whole numbers"),
        Case(*three(67, 3, 3), note="keys as wide as values"),
        Case(*three(2, 5, 7), note="keys wider than there are tokens"),
        Case(*three(1, 3, 2), note="one token"),
    ],
    mistakes=[
        Mistake("softmax-kept", "You took a softmax between the products and the values: leave it out, and the scale too.", "weights = scores.masked_fill(~mask, -torch.inf).softmax(-1).nan_to_num()"),
        Mistake("no-causal-mask", "You let every query read the state after all tokens had written: let token t read as soon as it has written itself. (If you collect states in a list: one that is changed in place is the same each time.)", "mask = column > -1"),
        Mistake("one-row-for-all", "You collected one tensor again and again, so every row is the last output: make a new one for each token.", "return (weights @ value)[-1:].expand(len(query), -1)"),
        Mistake("past-alone", "You read the state before adding the token's own key and value: add first, then read.", "last = row - 1"),
        Mistake("own-token-alone", "You overwrote the state of the earlier tokens: add to it, state = state + …", "mask = column == last"),
        Mistake("upper-for-lower", "You let each token see itself and those after it: it should see itself and those before it.", "mask = column >= row"),
        Mistake("scaled", "You divided the scores by √d_k: leave that out, because there is no softmax.", "query = query * key.shape[-1] ** -0.5"),
        Mistake(*BY_ENTRY, "scores = query * key.mT"),
        Mistake("roles-swapped", "You swapped keys and queries: the keys of the past are in the state, and the token's own query should read it.", "scores = key @ query.mT"),
        Mistake("state-returned", "You returned the state after the last token, (d_k, d_v): return what each query reads from it on the way, (T, d_v).", "return key.mT @ value"),
    ],
)  # fmt: skip


def delta_rule(query, key, value, beta):
    state, outputs = torch.zeros(key.shape[-1], value.shape[-1]), []
    for t in range(len(key)):
        faded = state
        known = key[t] @ faded
        change = beta[t] * (value[t] - known)
        state = faded + torch.outer(key[t], change)
        read = query[t] @ state
        outputs.append(read)
    return torch.stack(outputs)


def gated_delta_rule(query, key, value, beta, gate):
    state, outputs = torch.zeros(key.shape[-1], value.shape[-1]), []
    for t in range(len(key)):
        faded = gate[t] * state
        known = key[t] @ faded
        change = beta[t] * (value[t] - known)
        state = faded + torch.outer(key[t], change)
        read = query[t] @ state
        outputs.append(read)
    return torch.stack(outputs)


DELTA = [
    Mistake("no-correction", "You wrote v as it is: let the key read the state first, k @ M, and write the difference, v − k @ M.", "known = 0.0"),
    Mistake("beta-ignored", "You didn't use beta: multiply the difference by it.", "beta = torch.ones_like(beta)"),
    Mistake("own-token-alone", "You overwrote the state of the earlier tokens: add to it, state = state + …", "state = torch.outer(key[t], change)"),
    Mistake("whole-matrix-fades", "You multiplied the whole state by 1 − beta: keep it as it is, because beta belongs to the difference alone.", "state = (1 - beta[t]) * faded + torch.outer(key[t], change)"),
    Mistake("beta-on-the-value", "You multiplied only v by beta: put parentheses around the difference, beta * (v − k @ M).", "change = beta[t] * value[t] - known"),
    Mistake("beta-on-what-is-known", "You multiplied only what the key reads by beta: put parentheses around the difference, beta * (v − k @ M).", "change = value[t] - beta[t] * known"),
    Mistake("added-for-subtracted", "You added what the key reads: subtract it from v.", "change = beta[t] * (value[t] + known)"),
    Mistake("read-before-write", "You let the query read before the token has written: write first, then read.", "read = query[t] @ faded"),
    Mistake("scaled", "You divided by √d_k: leave that out.", "query = query * key.shape[-1] ** -0.5"),
    Mistake("state-returned", "You returned the state after the last token, (d_k, d_v): return what each query reads on the way, (T, d_v).", "return state"),
]  # fmt: skip


def five(num_tokens, *widths):
    """Return random inputs: keys of length 1, and a beta and a gate for each token."""
    query, key, value = three(num_tokens, *widths)
    beta, gate = torch.sigmoid(draw(2, num_tokens))
    return query, F.normalize(key, dim=-1), value, beta, gate


OVERLAP = torch.tensor([[1.0, 0], [0.6, 0.8], [1.0, 0]])
KNOWN = OVERLAP, OVERLAP, torch.tensor([[10.0], [5], [20]]), torch.ones(3)
exercise_13_2 = Exercise(
    id="13.2",
    skip_probes=("changed-in-place",),
    right=delta_rule,
    course=delta.delta_rule,
    returns="the outputs (T, d_v): each token adds beta kᵀ(v − kM) to the state M, and then its query reads M and returns qM",
    cases=[
        Case(*KNOWN, note="beta is 1: each key then returns its value"),
        Case(*five(7, 3, 3)[:4], note="keys as wide as values"),
        Case(*five(3, 5, 7)[:4], note="keys wider than there are tokens"),
        Case(*five(1, 3, 2)[:4], note="one token"),
    ],
    mistakes=DELTA,
)

GATED = [
    Mistake("gate-ignored", "You didn't use the gate: before a token reads and writes, the state fades, M = gate * M.", "gate = torch.ones_like(gate)"),
    Mistake("gate-inverted", "You multiplied the state by 1 − gate: the gate itself is the share that stays.", "gate = 1 - gate"),
    Mistake("fades-after-writing", "You let the state fade after the token has written, so what is new fades too: let it fade first, before the key reads it.", "faded = state; state = gate[t] * (faded + torch.outer(key[t], change))"),
    Mistake("known-before-fading", "You let the key read the state before it fades: let it fade first, M = gate * M, then take k @ M.", "known = key[t] @ state"),
]  # fmt: skip

ONCE_0 = torch.tensor([0.5, 1, 0, 1, 0.5])
exercise_13_3 = Exercise(
    id="13.3",
    page="deeper/a_layer_with_the_delta_rule",
    skip_probes=("changed-in-place",),
    right=gated_delta_rule,
    course=delta.gated_delta_rule,
    returns="the outputs (T, d_v): for each token the state M fades, gate M, then beta kᵀ(v − kM) is added to it, and then its query reads M and returns qM",
    cases=[
        Case(*KNOWN, torch.full((3,), 0.5), note="beta is 1, half of the past is kept"),
        Case(*five(7, 3, 3), note="keys as wide as values"),
        Case(*five(5, 2, 7)[:4], ONCE_0, note="one gate is 0: all is forgotten"),
        Case(*five(1, 3, 2), note="one token"),
    ],
    mistakes=GATED + DELTA,
)
