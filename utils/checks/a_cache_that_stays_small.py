"""Exercises of notebook 14: keys and values from a latent, and scores without keys."""

import torch

from utils.checks.draw import Shapes, draws
from utils.checks.engine import Exercise, case
from utils.checks.steps import Forms, Pipeline, texts_of

TEXTS = texts_of(__file__)
draw = draws(14)


def drawn(B, S, R, H, K, V):
    """Return latents (B, S, R) and a matrix for keys and one for values, by head."""
    return draw(B, S, R), draw(H, R, K), draw(H, R, V)


# --- 14.1 -------------------------------------------------------------------------


def right_expanded(latent, W_uk, W_uv):
    """Multiply head by head."""
    latent, matrices = latent.double(), (W_uk.double(), W_uv.double())
    parts = [torch.stack([latent @ W for W in Ws], dim=1) for Ws in matrices]
    return tuple(part.float() for part in parts)


def heads_meet_samples(s):
    """Multiply without an axis for the heads, as broadcasting does where it can."""
    B, H = len(s.latent), len(s.W_uk)
    if B != H and 1 not in (B, H):
        raise RuntimeError("must match the size of tensor")
    return s.latent @ s.W_uk, s.latent @ s.W_uv


def as_one_matrix(W):
    """Read the matrices (H, R, K) as one of (R, H*K), without moving an axis."""
    return W.reshape(W.shape[1], -1)


def cut(flat, W):
    B, S, _ = flat.shape
    return flat.view(B, S, len(W), -1).transpose(1, 2)


def both(way):
    """Return the step that goes this way for keys and for values."""
    return lambda s: (way(s, s.for_keys), way(s, s.for_values))


EXPANDED = Forms(TEXTS["EXPANDED"])
wrong = EXPANDED.wrong
wrong("keys-and-values-swapped", give=lambda s: (s.values, s.keys))
wrong("one-matrix-for-both", for_values=lambda s: s.W_uk)
wrong("one-matrix-for-both 2", for_keys=lambda s: s.W_uv)
wrong("heads-first", give=lambda s: (s.keys.transpose(0, 1), s.values.transpose(0, 1)))
wrong("tokens-first", give=lambda s: (s.keys.transpose(1, 2), s.values.transpose(1, 2)))
wrong("transposed", give=lambda s: (s.keys.mT, s.values.mT))
wrong("keys-transposed", give=lambda s: (s.keys.mT, s.values))
wrong("keys-alone", give=lambda s: s.keys)
wrong("values-from-keys", give=lambda s: (s.keys, values_from(s)))
wrong("heads-meet-samples", made=heads_meet_samples)
wrong("reshaped-for-moved", made=both(lambda s, W: cut(s.latent @ as_one_matrix(W), W)))
wrong("split-by-view", made=both(lambda s, W: by_view(s, W)))
wrong("heads-merged", give=lambda s: tuple(merged(t) for t in (s.keys, s.values)))
wrong("first-head-alone", made=both(lambda s, W: repeated(s, W, 0)))
wrong("first-head-alone 2", give=lambda s: (s.keys[:, 0], s.values[:, 0]))
wrong("heads-added", give=lambda s: (s.keys.sum(1), s.values.sum(1)))
wrong("heads-averaged", give=lambda s: (s.keys.mean(1), s.values.mean(1)))
wrong("joined", give=lambda s: torch.cat((s.keys, s.values), dim=-1))
wrong("matrices-transposed", made=both(lambda s, W: other_way(s, W)))
wrong("scaled", give=lambda s: (s.keys / s.keys.shape[-1] ** 0.5, s.values))
wrong(
    "first-sample-alone",
    c=lambda s: s.latent[:1, None].expand(len(s.latent), -1, -1, -1),
)


def values_from(s):
    """Make the values of the keys, which fails where K differs from R."""
    if s.W_uk.shape[-1] != s.W_uv.shape[1]:
        raise RuntimeError("mat1 and mat2 shapes; batch2 tensor to be: size mismatch")
    return s.keys @ s.W_uv


def by_view(s, W):
    flat = s.latent @ W.transpose(0, 1).flatten(1)  # (B, S, H*K), right so far
    return flat.view(len(flat), len(W), -1, W.shape[-1])


def merged(t):
    return t.transpose(1, 2).flatten(2)


def repeated(s, W, head):
    return (s.c @ W[head]).expand(-1, len(W), -1, -1)


def other_way(s, W):
    if W.shape[1] != W.shape[2]:
        raise RuntimeError("batch2 tensor to be: size mismatch")
    return s.c @ W.mT


latent_keys_values = Exercise(
    id="14.1",
    **TEXTS["14.1"],
    oracle=right_expanded,
    parts=("keys", "values"),
    cases=[
        case(
            torch.tensor([[[1.0, 10.0]]]),
            torch.tensor([[[1.0, 2.0, 3.0], [4, 5, 6]]]),
            torch.tensor([[[1.0], [-1.0]]]),
            note="one sample, one token, one head",
        ),
        case(*drawn(2, 7, 5, 3, 11, 13)),
        case(*drawn(3, 5, 2, 3, 7, 11), note="as many samples as heads"),
        case(*drawn(2, 3, 5, 7, 5, 5), note="R, K and V are equal"),
        case(*drawn(5, 1, 3, 2, 7, 2), note="one token"),
        case(*drawn(1, 11, 7, 2, 3, 5), note="one sample"),
        case(*drawn(2, 3, 11, 5, 2, 2), note="K and V are equal"),
    ],
    pipeline=Pipeline(
        start=lambda latent, W_uk, W_uv: dict(latent=latent, W_uk=W_uk, W_uv=W_uv),
        steps={
            "c": lambda s: s.latent[:, None],
            "for_keys": lambda s: s.W_uk,
            "for_values": lambda s: s.W_uv,
            "made": both(lambda s, W: s.c @ W),
            "give": lambda s: (s.keys, s.values),
            "result": lambda s: s.give,
        },
        forms=EXPANDED,
        gives={"made": ("keys", "values")},
    ),
)


# --- 14.2 -------------------------------------------------------------------------


def right_absorbed(query, latent, W_uk):
    """Take the queries to the latents, in double precision."""
    queries = query.double() @ W_uk.double().mT  # (B, H, T, R)
    return (queries @ latent.double()[:, None].mT).float()


def keys_made(answer):
    """Name an answer that makes the keys: then nothing is saved."""
    B, H, T, S, R, K = 2, 3, 5, 7, 11, 13
    with Shapes() as shapes:
        answer(draw(B, H, T, K), draw(B, S, R), draw(H, R, K))
    keys = (B, H, S, K), (B, S, H * K), (B * H, S, K), (H, B * S, K), (B * S, H * K)
    if not {tuple(sorted(shape)) for shape in keys} & shapes.seen:
        return None
    return TEXTS["FACTS"].name("keys-made")


def turned(s):
    if s.W_uk.shape[1] != s.W_uk.shape[2]:
        raise RuntimeError("batch2 tensor to be: size mismatch")
    return s.query @ s.W_uk


ABSORBED = Forms(TEXTS["ABSORBED"])
wrong = ABSORBED.wrong
wrong("scaled", result=lambda s: s.scores / s.query.shape[-1] ** 0.5)
wrong("scaled 2", result=lambda s: s.scores / s.latent.shape[-1] ** 0.5)
wrong("softmax-taken", result=lambda s: s.scores.softmax(-1))
wrong("transposed", result=lambda s: s.scores.mT)
wrong("not-transposed", narrow=turned)
wrong("first-head-alone", narrow=lambda s: s.query @ s.W_uk[0].mT)
wrong("heads-added", result=lambda s: s.scores.sum(1))
wrong("heads-averaged", result=lambda s: s.scores.mean(1))
wrong("narrow-returned", result=lambda s: s.narrow)
wrong("latents-returned", result=lambda s: s.narrow @ s.c)
wrong("samples-mixed", c=lambda s: s.latent[:1, None])
wrong("tokens-first", result=lambda s: s.scores.transpose(1, 2))
wrong("heads-first", result=lambda s: s.scores.transpose(0, 1))
wrong("reshaped-for-moved", narrow=lambda s: s.query @ reshaped(s.W_uk))
wrong("causal", result=lambda s: s.scores.masked_fill(~lower(s), -torch.inf))
wrong("causal 2", result=lambda s: s.scores * lower(s))
wrong("heads-meet-samples", scores=lambda s: without_an_axis(s))


def reshaped(W):
    """Change the places of R and K by a reshape, which moves nothing."""
    return W.reshape(len(W), W.shape[2], W.shape[1])


def lower(s):
    rows, columns = s.scores.shape[-2:]
    return torch.ones(rows, columns).tril(columns - rows).bool()


def without_an_axis(s):
    """Multiply (B, H, T, R) with (B, R, S), which broadcasts where B is H, or is 1."""
    B, H = s.query.shape[:2]
    if B != H and 1 not in (B, H):
        raise RuntimeError("must match the size of tensor")
    return s.narrow @ s.latent.mT


def queried(B, H, T, S, R, K):
    """Return queries (B, H, T, K), latents (B, S, R) and a matrix for each head."""
    return draw(B, H, T, K), draw(B, S, R), draw(H, R, K)


absorbed_scores = Exercise(
    id="14.2",
    **TEXTS["14.2"],
    oracle=right_absorbed,
    when_right=[keys_made],
    cases=[
        case(
            torch.tensor([[[[1.0, 1.0]]]]),
            torch.tensor([[[1.0, 0.0, 2.0], [0, 1, 0]]]),
            torch.tensor([[[1.0, 2.0], [3, 4], [5, 6]]]),
            note="one sample, one query, one head",
        ),
        case(*queried(2, 3, 5, 7, 11, 13)),
        case(*queried(3, 3, 2, 5, 7, 2), note="as many samples as heads"),
        case(*queried(2, 5, 3, 7, 3, 3), note="R and K are equal"),
        case(*queried(2, 3, 1, 11, 2, 5), note="one query"),
        case(*queried(1, 2, 7, 7, 3, 5), note="one sample, T and S are equal"),
        case(*queried(2, 7, 3, 2, 5, 3), note="more queries than latents"),
    ],
    pipeline=Pipeline(
        start=lambda query, latent, W_uk: dict(query=query, latent=latent, W_uk=W_uk),
        steps={
            "narrow": lambda s: s.query @ s.W_uk.mT,
            "c": lambda s: s.latent[:, None],
            "scores": lambda s: s.narrow @ s.c.mT,
            "result": lambda s: s.scores,
        },
        forms=ABSORBED,
        words={"K": lambda s: s.query.shape[-1], "R": lambda s: s.latent.shape[-1]},
    ),
)

EXERCISES = [latent_keys_values, absorbed_scores]
