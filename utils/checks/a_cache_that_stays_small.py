"""Exercises of notebook 14: keys and values from a latent, and attention without."""

from operator import attrgetter

import torch
from torch.nn.functional import scaled_dot_product_attention as torch_attention

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


def without_an_axis(s, kept):
    """Return what is kept, so that samples meet heads: it broadcasts where B is H."""
    B, H = len(kept), len(s.W_uk)
    if B != H and 1 not in (B, H):
        raise RuntimeError("must match the size of tensor")
    return kept


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
wrong("heads-meet-samples", c=lambda s: without_an_axis(s, s.latent))
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


def made_in_full(key, width, *sizes):
    """Return a fact: it names an answer that makes what is so wide for all tokens."""
    B, H, S, W = 2, 3, 7, width
    full = (B, H, S, W), (B, S, H * W), (B * H, S, W), (H, B * S, W), (B * S, H * W)
    full = {tuple(sorted(shape)) for shape in full}

    def look(answer):
        with Shapes() as shapes:
            answer(*map(torch.zeros, sizes))
        return TEXTS["FACTS"].name(key) if full & shapes.seen else None

    return look


keys_made = made_in_full("keys-made", 13, (2, 3, 5, 13), (2, 7, 11), (3, 11, 13))


ABSORBED = Forms(TEXTS["ABSORBED"])
wrong = ABSORBED.wrong
wrong("scaled", result=lambda s: s.scores / s.query.shape[-1] ** 0.5)
wrong("scaled 2", result=lambda s: s.scores / s.latent.shape[-1] ** 0.5)
wrong("softmax-taken", result=lambda s: s.scores.softmax(-1))
wrong("transposed", result=lambda s: s.scores.mT)
wrong("not-transposed", narrow=lambda s: s.query @ s.W_uk)
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
wrong("heads-meet-samples", c=lambda s: without_an_axis(s, s.latent))


def reshaped(W):
    """Change the places of R and K by a reshape, which moves nothing."""
    return W.reshape(len(W), W.shape[2], W.shape[1])


def lower(s):
    rows, columns = s.scores.shape[-2:]
    return torch.ones(rows, columns).tril(columns - rows).bool()


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


# --- 14.3 -------------------------------------------------------------------------


def right_attention(query, turned_query, latent, turned_key, W_uk, W_uv):
    """Make keys and values after all, head by head, in double precision."""
    latent, turned_key = latent.double(), turned_key.double()
    queries, heads = torch.cat((query, turned_query), dim=-1).double(), []
    for query, W, U in zip(queries.unbind(1), W_uk.double(), W_uv.double()):
        key = torch.cat((latent @ W, turned_key), dim=-1)
        heads.append(torch_attention(query, key, latent @ U))
    return torch.stack(heads, dim=1).float()


def of_a_step(query, turned_query, latent, turned_key, W_uk, W_uv):
    """Return what the first step needs: the inputs by name, and their widths."""
    K, P, R = query.shape[-1], turned_query.shape[-1], latent.shape[-1]
    return locals()


def hidden(s, seen):
    return s.scaled.masked_fill(~seen, -torch.inf).softmax(-1)


def all_but_last(scores):
    return torch.arange(scores.shape[-1]) < scores.shape[-1] - 1


def weighed_apart(s, *roots):
    parts = zip((s.content, s.places), roots)
    return sum((part / root).softmax(-1) for part, root in parts)


STEP = Forms(TEXTS["STEP"])
wrong = STEP.wrong
wrong("root-of-content", width=lambda s: s.K)
wrong("root-of-latents-and-turned", width=lambda s: s.R + s.P)
wrong("root-of-latents", width=lambda s: s.R)
wrong("root-of-turned", width=lambda s: s.P)
wrong("not-scaled", scale=lambda s: 1.0)
wrong("divided-by-width", scale=lambda s: s.width)
wrong("one-part-scaled", scaled=lambda s: s.content / s.scale + s.places)
wrong("one-part-scaled 2", scaled=lambda s: s.content + s.places / s.scale)
wrong("root-for-each", scaled=lambda s: s.content / s.K**0.5 + s.places / s.P**0.5)
wrong("scale-after-softmax", weights=lambda s: s.scores.softmax(-1) / s.scale)
for root in ({}, {"width": lambda s: s.K}):
    wrong("turned-left-out", scores=lambda s: s.content, **root)
for root in ({}, {"width": lambda s: s.P}):
    wrong("content-left-out", scores=lambda s: s.places, **root)
wrong("parts-multiplied", scores=lambda s: s.content * s.places)
wrong("two-softmaxes", weights=lambda s: weighed_apart(s, s.scale, s.scale))
wrong("two-softmaxes", weights=lambda s: weighed_apart(s, s.scale, s.scale) / 2)
wrong("two-softmaxes", weights=lambda s: weighed_apart(s, s.K**0.5, s.P**0.5))
wrong("two-softmaxes", weights=lambda s: weighed_apart(s, s.K**0.5, s.P**0.5) / 2)
wrong("softmax-over-queries", weights=lambda s: s.scaled.softmax(-2))
wrong("softmax-over-heads", weights=lambda s: s.scaled.softmax(1))
wrong("softmax-missing", weights=lambda s: s.scaled)
wrong("causal", weights=lambda s: hidden(s, lower(s)))
wrong("causal", weights=lambda s: hidden(s, torch.ones_like(s.scores).tril().bool()))
wrong("last-token-lost", weights=lambda s: hidden(s, all_but_last(s.scores)))
wrong("not-transposed", narrow=lambda s: s.query @ s.W_uk)
wrong("reshaped-for-moved", narrow=lambda s: s.query @ reshaped(s.W_uk))
wrong("heads-meet-samples", c=lambda s: without_an_axis(s, s.latent))
wrong("heads-meet-samples 2", k=lambda s: without_an_axis(s, s.turned_key))
wrong("samples-mixed", c=lambda s: s.latent[:1, None])
wrong("samples-mixed 2", k=lambda s: s.turned_key[:1, None])
wrong("first-head-alone", narrow=lambda s: s.query @ s.W_uk[0].mT)
wrong("first-head-alone 2", heads=lambda s: s.mixed @ s.W_uv[0])
wrong("matrix-for-keys", heads=lambda s: s.mixed @ s.W_uk)
wrong("mixture-returned", result=lambda s: s.mixed)
wrong("weights-returned", result=lambda s: s.weights)
wrong("scores-returned", result=lambda s: s.scores)
wrong("scores-returned 2", result=lambda s: s.scaled)
wrong("pair-returned", result=lambda s: (s.heads, s.weights))
wrong("heads-merged", result=lambda s: merged(s.heads))
wrong("tokens-first", result=lambda s: s.heads.transpose(1, 2))
wrong("transposed", result=lambda s: s.heads.mT)
wrong("heads-added", result=lambda s: s.heads.sum(1))
wrong("heads-averaged", result=lambda s: s.heads.mean(1))


def stepped(B, H, T, S, R, K, P, V):
    """Return both parts of the queries, what is kept of each token, the matrices."""
    kept = draw(B, S, R), draw(B, S, P)
    return draw(B, H, T, K), draw(B, H, T, P), *kept, draw(H, R, K), draw(H, R, V)


SIZES = [given.shape for given in stepped(2, 3, 5, 7, 11, 13, 17, 19)]
FULL = ("keys-made", 13), ("values-made", 19)
absorbed_attention = Exercise(
    id="14.3",
    **TEXTS["14.3"],
    oracle=right_attention,
    when_right=[made_in_full(*made, *SIZES) for made in FULL],
    cases=[
        case(
            torch.tensor([[[[1.0, 1.0]]]]),
            torch.tensor([[[[2.0]]]]),
            torch.tensor([[[1.0, 0.0, 2.0], [0, 1, 0]]]),
            torch.tensor([[[-0.5], [0.5]]]),
            torch.tensor([[[0.0, 1.0], [2, 1], [1, 0]]]),
            torch.tensor([[[1.0], [10.0], [100.0]]]),
            note="one sample, one query, one head, two tokens",
        ),
        case(*stepped(2, 3, 5, 7, 11, 13, 17, 19)),
        case(*stepped(3, 3, 2, 5, 7, 2, 11, 13), note="as many samples as heads"),
        case(*stepped(2, 5, 3, 7, 3, 3, 2, 3), note="R, K and V are equal"),
        case(*stepped(2, 3, 1, 11, 5, 7, 7, 2), note="one query; K and P are equal"),
        case(*stepped(1, 2, 7, 7, 3, 5, 2, 11), note="one sample, T and S are equal"),
        case(*stepped(2, 7, 3, 2, 5, 3, 7, 11), note="more queries than tokens"),
    ],
    pipeline=Pipeline(
        start=of_a_step,
        steps={
            "narrow": lambda s: s.query @ s.W_uk.mT,
            "c": lambda s: s.latent[:, None],
            "k": lambda s: s.turned_key[:, None],
            "content": lambda s: s.narrow @ s.c.mT,
            "places": lambda s: s.turned_query @ s.k.mT,
            "scores": lambda s: s.content + s.places,
            "width": lambda s: s.K + s.P,
            "scale": lambda s: s.width**0.5,
            "scaled": lambda s: s.scores / s.scale,
            "weights": lambda s: s.scaled.softmax(-1),
            "mixed": lambda s: s.weights @ s.c,
            "heads": lambda s: s.mixed @ s.W_uv,
            "result": lambda s: s.heads,
        },
        forms=STEP,
        words={name: attrgetter(name) for name in "KPR"},
    ),
)

EXERCISES = [latent_keys_values, absorbed_scores, absorbed_attention]
