"""Exercises of the notebook on a small cache: keys and values from a latent."""

import torch

from utils.checks.engine import Case, Exercise, draw
from utils.checks.facts import Shapes
from utils.checks.pipeline import Diagnosis, variants
from utils.checks.steps import attention as of_attention


def scrambled(made):
    """Return (B, H, S, K) as it looks if (B, S, H, K) is only reshaped."""
    return made.transpose(1, 2).reshape(made.shape)


NO_HEADS = "no-head-axis: Your latents have no axis for the heads: insert it, latent[:, None], which is (B, 1, S, d_c), so that the matrix of every head gets them."
FIRST_HEAD = "first-head-alone: You used head 0's matrix for all heads: each has one."


def drawn(B, S, d_c, H, K, d_v):
    """Return random latents (B, S, d_c), and a key and a value matrix for each head."""
    return draw(B, S, d_c), draw(H, d_c, K), draw(H, d_c, d_v, seed=1)


LATENTS = torch.tensor([[[1.0, 0.0, 2.0], [0, 1, 0]]])
latent_keys_values = Exercise(
    id="11.1",
    is_trained=True,
    signature="latent_keys_values(latent, W_uk, W_uv)",
    returns="the pair (keys, values) of shapes (B, H, S, K) and (B, H, S, d_v)",
    parts=("keys", "values"),
    cases=[
        Case(LATENTS, draw(1, 3, 2).round(), draw(1, 3, 1).round(), note="one head"),
        Case(*drawn(2, 7, 5, 3, 11, 13)),
        Case(*drawn(3, 5, 2, 3, 7, 11), note="as many samples as heads"),
        Case(*drawn(2, 3, 5, 7, 5, 5), note="d_c, K and d_v are equal"),
        Case(*drawn(5, 1, 3, 2, 7, 2), note="one token"),
    ],
    steps={
        "c": lambda s: s.latent[:, None],
        "expand": lambda s: lambda W: s.c @ W,
        "keys": lambda s: s.expand(s.W_uk),
        "values": lambda s: s.expand(s.W_uv),
        "result": lambda s: (s.keys, s.values),
    },
    variants=variants(
        "reshaped-for-moved: You reshaped (H, d_c, K) to (d_c, H*K), which mixes the heads: move the axis, W.transpose(0, 1).reshape(d_c, H*K), or multiply latent[:, None] @ W.",
        dict(
            expand=lambda s: (
                lambda W: s.c @ W.reshape(W.shape[1], len(W), -1).transpose(0, 1)
            )
        ),
        "split-by-view: You read (B, S, H*K) straight as (B, H, S, K), which mixes tokens and heads: use view(B, S, H, K), then transpose(1, 2).",
        dict(expand=lambda s: lambda W: scrambled(s.c @ W)),
        NO_HEADS,
        dict(c=lambda s: s.latent),
        FIRST_HEAD,
        dict(expand=lambda s: lambda W: s.c @ W[:1].expand_as(W)),
    ),
)


def must_not_make(mistake, width, *given):
    """Return a fact that rejects building a tensor of this width for every token."""

    def fact(answer):
        with Shapes() as shapes:
            answer(*given)
        B, H, S = 2, 3, 7
        is_made = B * H * S * width in shapes.sizes
        return Diagnosis(*mistake.split(": ", 1)) if is_made else None

    return fact


KEYS_MADE = "keys-made: You made a key for each head and token: multiply the queries with W_uk transposed, (B, H, T, K) to (B, H, T, d_c), and compare them with the latents themselves."
VALUES_MADE = "values-made: You made a value for each head and token: average the latents first, weights @ latents, (B, H, T, d_c), and multiply the result by W_uv."

NARROW = variants(
    NO_HEADS,
    dict(c=lambda s: s.latent),
    FIRST_HEAD,
    dict(narrow=lambda s: s.query @ s.W_uk[0].mT),
    "reshaped-for-moved: You reshaped (H, d_c, K) to (H, K, d_c), which leaves the numbers in their order: swap the last two axes, W_uk.mT.",
    dict(narrow=lambda s: s.query @ s.W_uk.reshape(s.W_uk.mT.shape)),
    "latents-reshaped: You reshaped the latents to (d_c, S), which mixes their numbers: swap the axes, latent[:, None].mT.",
    dict(c=lambda s: s.latent.reshape(s.latent.mT.shape)[:, None].mT),
    "heads-added: You added up the matrices of all heads, as einsum does if their index has a letter of its own: each head has its own matrix.",
    dict(narrow=lambda s: s.query @ s.W_uk.sum(0).mT),
)
ABSORBED = NARROW + variants(
    "scaled: You divided the scores by a square root: leave them as they are.",
    dict(result=lambda s: s.scores / s.query.shape[-1] ** 0.5),
    dict(result=lambda s: s.scores / s.latent.shape[-1] ** 0.5),
)


def queried(B, H, T, S, d_c, K):
    """Return queries (B, H, T, K), latents (B, S, d_c) and a matrix for each head."""
    return draw(B, H, T, K), draw(B, S, d_c), draw(H, d_c, K)


absorbed_scores = Exercise(
    id="11.2",
    signature="absorbed_scores(query, latent, W_uk)",
    returns="the scores (B, H, T, S), not scaled, without making any keys",
    facts=[must_not_make(KEYS_MADE, 13, *queried(2, 3, 5, 7, 11, 13))],
    cases=[
        Case(torch.ones(1, 1, 1, 2), LATENTS, draw(1, 3, 2).round(), note="one head"),
        Case(*queried(2, 3, 5, 7, 11, 13)),
        Case(*queried(3, 3, 2, 5, 7, 2), note="as many samples as heads"),
        Case(*queried(2, 5, 3, 7, 3, 3), note="d_c and K are equal"),
        Case(*queried(1, 2, 7, 7, 3, 5), note="one sample, T and S are equal"),
    ],
    steps={
        "narrow": lambda s: s.query @ s.W_uk.mT,
        "c": lambda s: s.latent[:, None],
        "scores": lambda s: s.narrow @ s.c.mT,
        "result": lambda s: s.scores,
    },
    variants=ABSORBED,
)


STEP = NARROW + variants(
    "wrong-root: You divided by √{width}: a score stands for K + K_rot products, however it is computed, so divide by √(K + K_rot) = √({K} + {K_rot}).",
    dict(width=lambda s: s.K),
    dict(width=lambda s: s.latent.shape[-1] + s.K_rot),
    "rotated-left-out: You used the content only: add the rotated part, rotated_query · rotated_key.",
    dict(products=lambda s: s.content),
    "one-part-divided: You divided only one part by √(K + K_rot): put parentheses around the sum of both.",
    dict(scores=lambda s: s.content + s.places / s.width**0.5),
    dict(scores=lambda s: s.content / s.width**0.5 + s.places),
)


def stepped(B, H, T, S, d_c, K, K_rot, d_v):
    """Return both parts of the queries, what is cached of each token, the matrices."""
    queries = draw(B, H, T, K), draw(B, H, T, K_rot, seed=1)
    cached = draw(B, S, d_c), draw(B, S, K_rot, seed=1)
    return *queries, *cached, draw(H, d_c, K), draw(H, d_c, d_v, seed=1)


GIVEN = stepped(2, 3, 5, 7, 11, 13, 17, 19)
absorbed_attention = Exercise(
    id="11.3",
    is_trained=True,
    signature="absorbed_attention(query, rotated_query, latent, rotated_key, W_uk, W_uv)",
    returns="the heads' outputs (B, H, T, d_v), without making any keys or values",
    facts=[
        must_not_make(KEYS_MADE, 13, *GIVEN),
        must_not_make(VALUES_MADE, 19, *GIVEN),
    ],
    cases=[
        Case(*stepped(1, 1, 1, 2, 3, 2, 1, 1), note="one query, one head, two tokens"),
        Case(*GIVEN),
        Case(*stepped(3, 3, 2, 5, 7, 2, 11, 13), note="as many samples as heads"),
        Case(*stepped(2, 5, 3, 7, 3, 3, 2, 3), note="d_c, K and d_v are equal"),
        Case(*stepped(1, 2, 7, 7, 3, 5, 2, 11), note="one sample, T and S are equal"),
    ],
    steps=of_attention.steps(
        {
            "K": lambda s: s.query.shape[-1],
            "K_rot": lambda s: s.rotated_query.shape[-1],
            "narrow": lambda s: s.query @ s.W_uk.mT,
            "c": lambda s: s.latent[:, None],
            "content": lambda s: s.narrow @ s.c.mT,
            "places": lambda s: s.rotated_query @ s.rotated_key[:, None].mT,
            "value": lambda s: s.c,
        },
        products=lambda s: s.content + s.places,
        width=lambda s: s.K + s.K_rot,
        merged=lambda s: s.output @ s.W_uv,
    ),
    variants=STEP + of_attention.SCALE + of_attention.AXIS + of_attention.NO_MASK,
)

EXERCISES = [latent_keys_values, absorbed_scores, absorbed_attention]
