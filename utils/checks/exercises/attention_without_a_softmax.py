"""Exercises of the notebook without a softmax: linear attention, delta rule, a gate."""

import torch
from torch.nn import functional as F

from utils.checks.engine import Case, Exercise, draw
from utils.checks.pipeline import variants


def three(num_tokens, width, d_v):
    """Return a random query, key and value."""
    query, key = draw(2, num_tokens, width)
    return query, key, draw(num_tokens, d_v, seed=2)


def softmax(s):
    return s.scaled.masked_fill(~s.mask, -torch.inf).softmax(-1).nan_to_num()


WHOLE = torch.tensor([[1.0, 0], [0, 1], [1, 1]])
linear_attention = Exercise(
    id="13.1",
    signature="linear_attention(query, key, value)",
    returns="the outputs (T, d_v): the query of token t reads the sum of kᵀv over the tokens up to itself, without a softmax and without division",
    cases=[
        Case(WHOLE, WHOLE, torch.tensor([[1.0], [10], [100]]), note="whole numbers"),
        Case(*three(7, 3, 3), note="keys as wide as values"),
        Case(*three(2, 5, 7), note="keys wider than there are tokens"),
        Case(*three(1, 3, 2), note="one token"),
    ],
    steps={
        "factor": lambda s: 1.0,
        "products": lambda s: s.query @ s.key.mT,
        "scaled": lambda s: s.products * s.factor,
        "column": lambda s: torch.arange(len(s.key)),
        "row": lambda s: s.column[:, None],
        "mask": lambda s: s.column <= s.row,
        "masked": lambda s: s.scaled * s.mask,
        "weights": lambda s: s.masked,
        "result": lambda s: s.weights @ s.value,
    },
    variants=variants(
        "softmax-kept: You took a softmax between the products and the values: leave it out, and the scale too.",
        dict(weights=softmax),
        "no-causal-mask: You let every query read the state after all tokens had written: let token t read as soon as it has written itself. (If you collect states in a list: one that is changed in place is the same each time.)",
        dict(mask=lambda s: s.column > -1),
        "one-row-for-all: You collected one tensor again and again, so every row is the last output: make a new one for each token.",
        dict(result=lambda s: (s.weights @ s.value)[-1:].expand(len(s.query), -1)),
        "past-alone: You read the state before adding the token's own key and value: add first, then read.",
        dict(mask=lambda s: s.column < s.row),
        "own-token-alone: You overwrote the state of the earlier tokens: add to it, state = state + …",
        dict(mask=lambda s: s.column == s.row),
        "upper-for-lower: You let each token see itself and those after it: it should see itself and those before it.",
        dict(mask=lambda s: s.column >= s.row),
        "scaled: You divided the scores by √K: leave that out, because there is no softmax.",
        dict(factor=lambda s: s.query.shape[-1] ** -0.5),
        "roles-swapped: You swapped keys and queries: the keys of the past are in the state, and the token's own query should read it.",
        dict(products=lambda s: s.key @ s.query.mT),
        "state-returned: You returned the state after the last token, (K, d_v): return what each query reads from it on the way, (T, d_v).",
        dict(result=lambda s: s.key.mT @ s.value),
    ),
)


def loop(s):
    """Go through the tokens: fade, read what is known, write, read again."""
    state, outputs = torch.zeros(s.key.shape[-1], s.value.shape[-1]), []
    for t in range(len(s.key)):
        b, g = s.beta[t], s.gate[t]
        faded, looked_up = s.fade(g, state)
        known = s.read(looked_up, s.key[t], s.query[t])
        change = s.change(b, s.value[t], known)
        state = s.late(g, s.keep(b, faded) + torch.outer(s.key[t], change))
        outputs.append(s.query[t] @ s.queried(faded, state))
    return torch.stack(outputs), state


DELTA = variants(
    "no-correction: You wrote v as it is: let the key read the state first, k @ S, and write the difference, v − k @ S.",
    dict(read=lambda s: lambda S, k, q: 0 * (k @ S)),
    "beta-ignored: You didn't use beta: multiply the difference by it.",
    dict(beta=lambda s: torch.ones_like(s.beta)),
    "own-token-alone: You overwrote the state of the earlier tokens: add to it, state = state + …",
    dict(keep=lambda s: lambda b, S: 0 * S),
    "whole-matrix-fades: You multiplied the whole state by 1 − beta: keep it as it is, because beta belongs to the difference alone.",
    dict(keep=lambda s: lambda b, S: (1 - b) * S),
    "beta-on-the-value: You multiplied only v by beta: put parentheses around the difference, beta * (v − k @ S).",
    dict(change=lambda s: lambda b, v, known: b * v - known),
    "added-for-subtracted: You added what the key reads: subtract it from v.",
    dict(change=lambda s: lambda b, v, known: b * (v + known)),
    "read-before-write: You let the query read before the token has written: write first, then read.",
    dict(queried=lambda s: lambda faded, new: faded),
    "query-asks-what-is-known: You subtracted what the query reads: subtract what the key reads, k @ S.",
    dict(read=lambda s: lambda S, k, q: q @ S),
    "scaled: You divided by √K: leave that out.",
    dict(query=lambda s: s.query * s.key.shape[-1] ** -0.5),
    "state-returned: You returned the state after the last token, (K, d_v): return what each query reads on the way, (T, d_v).",
    dict(result=lambda s: s.state),
)


BY_TOKENS = {  # of both rules
    "fade": lambda s: lambda g, S: (g * S, g * S),  # the state, what k reads
    "read": lambda s: lambda S, k, q: k @ S,
    "change": lambda s: lambda b, v, known: b * (v - known),
    "keep": lambda s: lambda b, S: S,
    "late": lambda s: lambda g, S: S,
    "queried": lambda s: lambda faded, new: new,
    "outputs, state": loop,
    "result": lambda s: s.outputs,
}


def five(num_tokens, *widths):
    """Return random inputs: keys of length 1, and a beta and a gate for each token."""
    query, key, value = three(num_tokens, *widths)
    beta, gate = torch.sigmoid(draw(2, num_tokens))
    return query, F.normalize(key, dim=-1), value, beta, gate


OVERLAP = torch.tensor([[1.0, 0], [0.6, 0.8], [1.0, 0]])
KNOWN = OVERLAP, OVERLAP, torch.tensor([[10.0], [5], [20]]), torch.ones(3)
delta_rule = Exercise(
    id="13.2",
    signature="delta_rule(query, key, value, beta)",
    returns="the outputs (T, d_v): each token adds beta kᵀ(v − kS) to the state S, and then its query reads S and returns qS",
    cases=[
        Case(*KNOWN, note="beta is 1: each key then returns its value"),
        Case(*five(7, 3, 3)[:4], note="keys as wide as values"),
        Case(*five(3, 5, 7)[:4], note="keys wider than there are tokens"),
        Case(*five(1, 3, 2)[:4], note="one token"),
        Case(*five(11, 2, 5)[:4], note="more tokens than the keys are wide"),
    ],
    steps={"gate": lambda s: torch.ones_like(s.beta)} | BY_TOKENS,
    variants=DELTA,
)

GATED = variants(
    "gate-ignored: You didn't use the gate: before a token reads and writes, the state fades, S = gate * S.",
    dict(gate=lambda s: torch.ones_like(s.gate)),
    "fades-one-token-late: You let the state fade at the end of a token's turn, so each gate acts one token too late: fade first.",
    dict(gate=lambda s: torch.cat((torch.ones(1), s.gate[:-1]))),
    "gate-inverted: You multiplied the state by 1 − gate: the gate itself is the share that stays.",
    dict(gate=lambda s: 1 - s.gate),
    "fades-after-writing: You let the state fade after the token has written, so what is new fades too: let it fade first, before the key reads it.",
    dict(fade=lambda s: lambda g, S: (S, S), late=lambda s: lambda g, S: g * S),
    "known-before-fading: You let the key read the state before it fades: let it fade first, S = gate * S, then take k @ S.",
    dict(fade=lambda s: lambda g, S: (g * S, S)),
)


ONCE_0 = torch.tensor([0.5, 1, 0, 1, 0.5])
gated_delta_rule = Exercise(
    id="13.3",
    signature="gated_delta_rule(query, key, value, beta, gate)",
    returns="the outputs (T, d_v): for each token the state S fades, gate S, then beta kᵀ(v − kS) is added to it, and then its query reads S and returns qS",
    cases=[
        Case(*KNOWN, torch.full((3,), 0.5), note="beta is 1, half of the past is kept"),
        Case(*five(7, 3, 3), note="keys as wide as values"),
        Case(*five(5, 2, 7)[:4], ONCE_0, note="one gate is 0: all is forgotten"),
        Case(*five(1, 3, 2), note="one token"),
    ],
    steps=BY_TOKENS,
    variants=GATED + DELTA,
)

EXERCISES = [linear_attention, delta_rule, gated_delta_rule]
