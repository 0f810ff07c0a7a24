"""Exercises of notebook 15: linear attention, the delta rule, and a gate."""

import torch
from torch.nn import functional as F

from utils.checks.draw import draws, past_stays
from utils.checks.engine import Exercise, case
from utils.checks.steps import Forms, Pipeline, texts_of

TEXTS = texts_of(__file__)
draw = draws(15)


def three(num_tokens, width, d_v):
    """Return a query, a key and a value that are drawn."""
    sizes = (num_tokens, width), (num_tokens, width), (num_tokens, d_v)
    return [draw(*size) for size in sizes]


def outer(a, b):
    return a[:, None] * b


def entry_by_entry(a, b):
    """Multiply without an axis more, as `a * b` does where the widths are equal."""
    if len(a) != len(b):
        raise RuntimeError("must match the size")
    return torch.diag(a * b)


# --- 15.1 -------------------------------------------------------------------------


def right_linear(query, key, value):
    """Multiply as matrices, all tokens at once."""
    products = (query.double() @ key.double().mT).tril()
    return (products @ value.double()).float()


def read_elementwise(s):
    """Add k * v instead of an outer product, and multiply the query with that."""
    if s.k.shape != s.v.shape:
        raise RuntimeError("must match the size")
    return s.q * (s.k * s.v).cumsum(0)


def featured(t):
    return F.elu(t) + 1


LINEAR = Forms(TEXTS["LINEAR"])
wrong = LINEAR.wrong
wrong("softmax-kept", weights=lambda s: s.hidden.softmax(-1).nan_to_num())
wrong(
    "softmax-kept 2",
    factor=lambda s: s.query.shape[-1] ** -0.5,
    weights=lambda s: s.hidden.softmax(-1).nan_to_num(),
)
wrong("no-causal-mask", mask=lambda s: s.column > -1)
wrong("past-alone", mask=lambda s: s.column < s.row)
wrong("own-token-alone", mask=lambda s: s.column == s.row)
wrong("upper-for-lower", mask=lambda s: s.column >= s.row)
wrong("one-step-leaked", mask=lambda s: s.column <= s.row + 1)
wrong("first-token-lost", mask=lambda s: (s.column <= s.row) & (s.column > 0))
wrong("scaled", factor=lambda s: s.query.shape[-1] ** -0.5)
wrong("scaled 2", factor=lambda s: 1 / s.query.shape[-1])
wrong("divided", weights=lambda s: s.kept / s.kept.sum(-1, keepdim=True))
wrong("averaged", weights=lambda s: s.kept / (s.row + 1))
wrong("roles-swapped", products=lambda s: s.k @ s.q.mT)
wrong("keys-for-values", v=lambda s: s.key)
wrong("queries-for-keys", k=lambda s: s.query)
wrong("keys-for-queries", q=lambda s: s.key)
wrong("entry-by-entry", output=read_elementwise)
wrong("feature-map", q=lambda s: featured(s.query), k=lambda s: featured(s.key))
wrong("feature-map 2", q=lambda s: s.query.relu(), k=lambda s: s.key.relu())
wrong("keys-made-short", k=lambda s: F.normalize(s.key, dim=-1))
wrong(
    "keys-made-short 2",
    k=lambda s: F.normalize(s.key, dim=-1),
    q=lambda s: F.normalize(s.query, dim=-1),
)
wrong("delta-rule", output=lambda s: deltas(s.q, s.k, s.v))
wrong("newest-first", output=lambda s: s.sums.flip(0))
wrong("last-row-alone", result=lambda s: s.output[-1])
wrong("state-returned", result=lambda s: s.k.mT @ s.v)
wrong("state-returned 2", result=lambda s: (s.output, s.k.mT @ s.v))
wrong("transposed", result=lambda s: s.output.mT)
wrong("axis-left", result=lambda s: s.output[:, None])
wrong("not-summed", result=lambda s: s.weights[..., None] * s.v)


def deltas(query, key, value):
    """Write the difference to what is known, which is asked for in 15.2."""
    state, outputs = torch.zeros(key.shape[-1], value.shape[-1]).to(value), []
    for q, k, v in zip(query, key, value):
        state = state + outer(k, v - k @ state)
        outputs.append(q @ state)
    return torch.stack(outputs)


WHOLE = torch.tensor([[1.0, 0], [0, 1], [1, 1]])
linear_attention = Exercise(
    id="15.1",
    **TEXTS["15.1"],
    oracle=right_linear,
    properties=[past_stays],
    cases=[
        case(WHOLE, WHOLE, torch.tensor([[1.0], [10], [100]]), note="whole numbers"),
        case(*three(5, 2, 3)),
        case(*three(7, 3, 3), note="keys as wide as values"),
        case(*three(2, 5, 7), note="keys wider than there are tokens"),
        case(*three(1, 3, 2), note="one token"),
        case(*three(11, 5, 2)),
    ],
    pipeline=Pipeline(
        start=lambda query, key, value: {"query": query, "key": key, "value": value},
        steps={
            "q": lambda s: s.query,
            "k": lambda s: s.key,
            "v": lambda s: s.value,
            "factor": lambda s: 1.0,
            "products": lambda s: s.q @ s.k.mT,
            "scaled": lambda s: s.products * s.factor,
            "column": lambda s: torch.arange(len(s.key)),
            "row": lambda s: s.column[:, None],
            "mask": lambda s: s.column <= s.row,
            "hidden": lambda s: s.scaled.masked_fill(~s.mask, -torch.inf),
            "kept": lambda s: s.scaled * s.mask,
            "weights": lambda s: s.kept,
            "sums": lambda s: s.weights @ s.v,
            "output": lambda s: s.sums,
            "result": lambda s: s.output,
        },
        forms=LINEAR,
        words={"K": lambda s: s.key.shape[-1], "T": lambda s: len(s.key)},
    ),
)


# --- 15.2 -------------------------------------------------------------------------


def shares(gate):
    """Return the share of what token j wrote that token i finds, (T, T)."""
    token = torch.arange(len(gate))
    return torch.where(token[:, None] > token, gate[:, None], 1.0).cumprod(0).tril()


def right_gated(query, key, value, beta, gate):
    """Solve for what all tokens write, and read it as a masked product."""
    inputs = query, key, value, beta, gate
    query, key, value, beta, gate = (t.double() for t in inputs)
    kept = shares(gate)
    seen = (beta[:, None] * (key @ key.mT) * kept).tril(-1)
    system = torch.eye(len(key)).double() + seen
    written = torch.linalg.solve(system, beta[:, None] * value)
    return (((query @ key.mT) * kept) @ written).float()


def right_delta(query, key, value, beta):
    """Do the same where nothing fades."""
    return right_gated(query, key, value, beta, torch.ones_like(beta))


def loop(s):
    """Go through the tokens: fade, read what is known, write, read again."""
    state, outputs, all_known = s.first, [], []
    for t in range(len(s.k)):
        b, g = (numbers[min(t, len(numbers) - 1)] for numbers in (s.b, s.g))
        before, (faded, asked) = state, s.fade(g, state)
        known = s.read(asked, s.k[t], s.q[t], s.v[t])
        change = s.change(b, s.v[t], known)
        state = s.late(g, s.keep(faded, b) + s.write(s.k[t], change))
        outputs.append(s.asked(before, faded, state, s.q[t]))
        all_known.append(known)
    return torch.stack(outputs), state, torch.stack(all_known)


DELTA = Forms(TEXTS["DELTA"])
wrong = DELTA.wrong
wrong("no-correction", read=lambda s: lambda S, k, q, v: 0 * v)
wrong("beta-ignored", b=lambda s: torch.ones_like(s.beta))
wrong("beta-on-the-value", change=lambda s: lambda b, v, known: b * v - known)
wrong("beta-on-the-known", change=lambda s: lambda b, v, known: v - b * known)
wrong("beta-twice", change=lambda s: lambda b, v, known: b * (b * v - b * known))
wrong("beta-twice", change=lambda s: lambda b, v, known: b * (v - b * known))
wrong("beta-twice", change=lambda s: lambda b, v, known: b * (b * v - known))
wrong("added-for-subtracted", change=lambda s: lambda b, v, known: b * (v + known))
wrong("sign-turned", change=lambda s: lambda b, v, known: b * (known - v))
wrong("read-before-write", asked=lambda s: lambda before, faded, new, q: q @ faded)
wrong("query-asks-what-is-known", read=lambda s: lambda S, k, q, v: q @ S)
wrong("past-thrown-away", keep=lambda s: lambda S, b: 0 * S)
wrong(
    "everything-fades",
    keep=lambda s: lambda S, b: (1 - b) * S,
    read=lambda s: lambda S, k, q, v: 0 * v,
)
wrong("everything-fades 2", keep=lambda s: lambda S, b: (1 - b) * S)
wrong("written-entry-by-entry", write=lambda s: entry_by_entry)
wrong("first-beta-for-all", b=lambda s: s.beta[:1])
wrong("sigmoid-again", b=lambda s: s.beta.sigmoid())
wrong("inverted-beta", b=lambda s: 1 - s.beta)
wrong("scaled", q=lambda s: s.query * s.key.shape[-1] ** -0.5)
wrong("queries-made-short", q=lambda s: F.normalize(s.query, dim=-1))
wrong("starts-with-ones", first=lambda s: torch.ones_like(s.zero))
wrong("starts-with-ones 2", first=lambda s: torch.eye(*s.zero.shape))
wrong("queries-for-keys", k=lambda s: s.query)
wrong("keys-for-queries", q=lambda s: s.key)
wrong("keys-for-values", v=lambda s: s.key, zero=lambda s: outer(s.key[0], s.key[0]))
wrong("last-state-for-all", output=lambda s: s.q @ s.state)
wrong("all-at-once", output=lambda s: at_once(s))
wrong("differences-returned", output=lambda s: s.v - s.known)
wrong("known-returned", output=lambda s: s.known)
wrong("last-row-alone", result=lambda s: s.output[-1])
wrong("state-returned", result=lambda s: s.state)
wrong("state-returned 2", result=lambda s: (s.output, s.state))
wrong("transposed", result=lambda s: s.output.mT)
wrong("transposed-state", read=lambda s: turned(lambda S, k, q, v: S @ k))
wrong("transposed-state 2", asked=lambda s: turned(lambda S, _, new, q: new @ q))


def turned(read):
    """Read by the other axis: as it is where K and V are equal, else an error."""

    def reading(S, *rest):
        if S.shape[0] != S.shape[1]:
            raise RuntimeError("size mismatch")
        return read(S, *rest)

    return reading


def at_once(s):
    """Subtract what all tokens together would answer, from no state at all."""
    kept = shares(s.g)
    written = s.b[:, None] * (s.v - ((s.k @ s.k.mT) * kept).tril(-1) @ s.v)
    return ((s.q @ s.k.mT) * kept) @ written


def by_tokens(forms):
    """Return the pipeline of 15.2 and 15.3; where no gate is given nothing fades."""
    names = "query", "key", "value", "beta", "gate"
    return Pipeline(
        start=lambda *args: dict(zip(names, (*args, torch.ones_like(args[3])))),
        steps={
            "q": lambda s: s.query,
            "k": lambda s: s.key,
            "v": lambda s: s.value,
            "b": lambda s: s.beta,
            "g": lambda s: s.gate,
            "zero": lambda s: 0 * outer(s.key[0], s.value[0]),
            "first": lambda s: s.zero,
            "fade": lambda s: lambda g, S: (g * S, g * S),  # the state, and what k asks
            "read": lambda s: lambda S, k, q, v: k @ S,
            "change": lambda s: lambda b, v, known: b * (v - known),
            "keep": lambda s: lambda S, b: S,
            "write": lambda s: outer,
            "late": lambda s: lambda g, S: S,
            "asked": lambda s: lambda before, faded, new, q: q @ new,
            "run": loop,
            "output": lambda s: s.outputs,
            "result": lambda s: s.output,
        },
        forms=forms,
        gives={"run": ("outputs", "state", "known")},
        words={"K": lambda s: s.key.shape[-1]},
    )


def four(num_tokens, width, d_v, beta=None):
    """Return such inputs, the keys of length 1, and a beta for each token."""
    query, key, value = three(num_tokens, width, d_v)
    drawn = torch.sigmoid(draw(num_tokens))
    return (query, F.normalize(key, dim=-1), value, drawn if beta is None else beta)


OVERLAP = torch.tensor([[1.0, 0], [0.6, 0.8], [1.0, 0]])
delta_rule = Exercise(
    id="15.2",
    **TEXTS["15.2"],
    oracle=right_delta,
    cases=[
        case(
            *(OVERLAP, OVERLAP, torch.tensor([[10.0], [5], [20]]), torch.ones(3)),
            note="beta is 1: each key then answers its value",
        ),
        case(*four(5, 2, 3)),
        case(*four(7, 3, 3), note="keys as wide as values"),
        case(*four(3, 5, 7), note="keys wider than there are tokens"),
        case(*four(5, 3, 2, torch.zeros(5)), note="beta is 0: nothing is written"),
        case(*four(1, 3, 2), note="one token"),
        case(*four(11, 2, 5), note="many more tokens than the keys are wide"),
    ],
    pipeline=by_tokens(DELTA),
)

# --- 15.3 -------------------------------------------------------------------------


GATED = Forms(TEXTS["GATED"])
wrong = GATED.wrong
NO_GATE = {"g": lambda s: torch.ones_like(s.gate)}
LATE = {"late": lambda s: lambda g, S: g * S}
wrong("gate-ignored", **NO_GATE)
wrong("fades-after-writing", fade=lambda s: lambda g, S: (S, S), **LATE)
wrong("fades-after-asking", g=lambda s: s.gate.roll(1))  # the first state is empty
wrong("known-before-fading", fade=lambda s: lambda g, S: (g * S, S))
wrong("known-alone-fades", fade=lambda s: lambda g, S: (S, g * S))
wrong("fades-twice", fade=lambda s: lambda g, S: (g * g * S, g * g * S))
wrong("fades-twice", fade=lambda s: lambda g, S: (g * S, g * g * S))
wrong("fades-twice 2", **LATE)
wrong("inverted-gate", g=lambda s: 1 - s.gate)
wrong("first-gate-for-all", g=lambda s: s.gate[:1])
wrong("gates-multiplied-up", g=lambda s: s.gate.cumprod(0))
wrong("gate-through-sigmoid", g=lambda s: s.gate.sigmoid())
wrong("gate-through-exp", g=lambda s: s.gate.exp())
wrong("gate-through-exp", g=lambda s: (-s.gate).exp())
wrong("gate-on-the-difference", b=lambda s: s.gate * s.beta)
wrong("gate-on-the-difference 2", b=lambda s: s.gate * s.beta, **NO_GATE)
wrong("rest-on-the-difference", b=lambda s: (1 - s.gate) * s.beta)
wrong("gate-on-the-output", output=lambda s: s.gate[:, None] * s.outputs, **NO_GATE)
wrong("beta-and-gate-swapped", b=lambda s: s.gate, g=lambda s: s.beta)
wrong("beta-for-gate", g=lambda s: s.beta)
wrong("beta-for-gate 2", g=lambda s: 1 - s.beta)
wrong("gate-for-beta", b=lambda s: s.gate)
wrong("gate-for-beta 2", b=lambda s: 1 - s.gate)
wrong("read-before-write", asked=lambda s: lambda before, faded, new, q: q @ before)


def five(num_tokens, *widths, beta=None, gate=None):
    """Return such inputs with a gate for each token."""
    gate = torch.sigmoid(draw(num_tokens)) if gate is None else gate
    return (*four(num_tokens, *widths, beta), gate)


ONCE_0 = torch.tensor([0.5, 1, 0, 1, 0.5])
ASKING = torch.tensor([[1.0, 0], [1.0, 0], [0.0, 1]])
gated_delta_rule = Exercise(
    id="15.3",
    **TEXTS["15.3"],
    oracle=right_gated,
    cases=[
        case(
            *(ASKING, OVERLAP, torch.tensor([[100.0], [50], [200]]), torch.ones(3)),
            torch.full((3,), 0.5),
            note="whole numbers: beta is 1, half of the past is kept",
        ),
        case(*five(5, 2, 3)),
        case(*five(7, 3, 3), note="keys as wide as values"),
        case(*five(5, 3, 2, gate=torch.ones(5)), note="gate is 1: nothing fades"),
        case(*five(5, 2, 7, gate=ONCE_0), note="one gate is 0: all is forgotten"),
        case(*five(5, 3, 2, beta=torch.zeros(5)), note="beta is 0: nothing is written"),
        case(*five(1, 3, 2), note="one token"),
        case(*five(11, 2, 5), note="many more tokens than the keys are wide"),
    ],
    pipeline=by_tokens([*GATED, *DELTA]),
)

EXERCISES = [linear_attention, delta_rule, gated_delta_rule]
