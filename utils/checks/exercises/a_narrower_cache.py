"""Exercises of the notebook on a small cache: keys and values from a latent."""

import torch

from utils import latent
from utils.checks import shared
from utils.checks.definition import Case, Diagnosis, Exercise, Mistake, draw
from utils.checks.layer_probes import Shapes
from utils.checks.shared import softmax_of

NO_HEADS = Diagnosis("no-head-axis", "Your latents have no axis for the heads: insert it, latent[:, None], which is (B, 1, S, d_c), so that the matrix of every head gets them.")  # fmt: skip
FIRST_HEAD = Diagnosis("first-head-alone", "You used head 0's matrix for all heads: each has one.")  # fmt: skip


def draw_inputs(B, S, d_c, H, d_k, d_v):
    """Return random latents (B, S, d_c), and a key and a value matrix for each head."""
    return draw(B, S, d_c), draw(H, d_c, d_k), draw(H, d_c, d_v, seed=1)


LATENTS = torch.tensor([[[1.0, 0.0, 2.0], [0, 1, 0]]])


def latent_keys_values(latent, W_uk, W_uv):
    c, pair = latent[:, None], []
    for W in (W_uk, W_uv):
        made = c @ W
        pair.append(made)
    return tuple(pair)


exercise_11_1 = Exercise(
    id="11.1",
    right=latent_keys_values,
    course=latent.latent_keys_values,
    returns="the pair (keys, values) of shapes (B, H, S, d_k) and (B, H, S, d_v)",
    parts=("keys", "values"),
    cases=[
        Case(LATENTS, draw(1, 3, 2).round(), draw(1, 3, 1).round(), note="one head"),
        Case(*draw_inputs(2, 7, 5, 3, 11, 13)),
        Case(*draw_inputs(3, 5, 2, 3, 7, 11), note="as many samples as heads"),
        Case(*draw_inputs(2, 3, 5, 7, 5, 5), note="d_c, d_k and d_v are equal"),
        Case(*draw_inputs(5, 1, 3, 2, 7, 2), note="one token"),
    ],
    mistakes=[
        Mistake("reshaped-for-moved", "You reshaped (H, d_c, d_k) to (d_c, H*d_k), which mixes the heads: move the axis, W.transpose(0, 1).reshape(d_c, H*d_k), or multiply latent[:, None] @ W.", "made = c @ W.reshape(W.shape[1], len(W), -1).transpose(0, 1)"),
        Mistake("split-by-view", "You read (B, S, H*d_k) straight as (B, H, S, d_k), which mixes tokens and heads: use view(B, S, H, d_k), then transpose(1, 2).", "made = (c @ W).transpose(1, 2).reshape((c @ W).shape)"),
        Mistake(*NO_HEADS, "c, pair = latent, []"),
        Mistake(*FIRST_HEAD, "made = c @ W[:1].expand_as(W)"),
    ],
)  # fmt: skip


def never_makes(mistake, width, *args):
    """Return a probe that rejects building a tensor of this width for every token."""

    def probe(answer):
        with Shapes() as shapes:
            answer(*args)
        B, H, S = 2, 3, 7
        return mistake if B * H * S * width in shapes.sizes else None

    return probe


KEYS_MADE = Diagnosis("keys-made", "You made a key for each head and token: multiply the queries with W_uk transposed, (B, H, T, d_k) to (B, H, T, d_c), and compare them with the latents themselves.")  # fmt: skip
VALUES_MADE = Diagnosis("values-made", "You made a value for each head and token: average the latents first, weights @ latents, (B, H, T, d_c), and multiply the result by W_uv.")  # fmt: skip

NARROW = [
    Mistake(*NO_HEADS, "key = latent"),
    Mistake(*FIRST_HEAD, "narrow = query @ W_uk[0].mT"),
    Mistake("reshaped-for-moved", "You reshaped (H, d_c, d_k) to (H, d_k, d_c), which leaves the numbers in their order: swap the last two axes, W_uk.mT.", "narrow = query @ W_uk.reshape(W_uk.mT.shape)"),
    Mistake("latents-reshaped", "You reshaped the latents to (d_c, S), which mixes their numbers: swap the axes, latent[:, None].mT.", "key = latent.reshape(latent.mT.shape)[:, None].mT"),
]  # fmt: skip
ABSORBED = NARROW + [Mistake("scaled", "You divided the scores by a square root: leave them as they are.", "return scores / query.shape[-1] ** 0.5")]  # fmt: skip


def queried(B, H, T, S, d_c, d_k):
    """Return queries (B, H, T, d_k), latents (B, S, d_c) and a matrix for each head."""
    return draw(B, H, T, d_k), draw(B, S, d_c), draw(H, d_c, d_k)


def absorbed_scores(query, latent, W_uk):
    narrow = query @ W_uk.mT
    key = latent[:, None]
    scores = narrow @ key.mT
    return scores


exercise_11_2 = Exercise(
    id="11.2",
    right=absorbed_scores,
    course=latent.absorbed_scores,
    returns="the scores (B, H, T, S), not scaled, without making any keys",
    probes=[never_makes(KEYS_MADE, 13, *queried(2, 3, 5, 7, 11, 13))],
    cases=[
        Case(torch.ones(1, 1, 1, 2), LATENTS, draw(1, 3, 2).round(), note="one head"),
        Case(*queried(2, 3, 5, 7, 11, 13)),
        Case(*queried(3, 3, 2, 5, 7, 2), note="as many samples as heads"),
        Case(*queried(2, 5, 3, 7, 3, 3), note="d_c and d_k are equal"),
    ],
    mistakes=ABSORBED,
)

STEP = NARROW + [
    Mistake("wrong-root", "You divided by √{width}: a score stands for d_k + d_rot products, however it is computed, so divide by √(d_k + d_rot) = √({d_k} + {d_rot}).", "width = d_k", "width = latent.shape[-1] + d_rot"),
    Mistake("rotated-left-out", "You used the content only: add the rotated part, rotated_query · rotated_key.", "products = content"),
    Mistake("one-part-divided", "You divided only one part by √(d_k + d_rot): put parentheses around the sum of both.", "scores = content + places / width**0.5", "scores = content / width**0.5 + places"),
]  # fmt: skip


def stepped(B, H, T, S, d_c, d_k, d_rot, d_v):
    """Return both parts of the queries, what is cached of each token, the matrices."""
    queries = draw(B, H, T, d_k), draw(B, H, T, d_rot, seed=1)
    cached = draw(B, S, d_c), draw(B, S, d_rot, seed=1)
    return *queries, *cached, draw(H, d_c, d_k), draw(H, d_c, d_v, seed=1)


GIVEN = stepped(2, 3, 5, 7, 11, 13, 17, 19)


def absorbed_attention(query, rotated_query, latent, rotated_key, W_uk, W_uv):
    d_k, d_rot = query.shape[-1], rotated_query.shape[-1]
    narrow = query @ W_uk.mT
    key = latent[:, None]
    content = narrow @ key.mT
    places = rotated_query @ rotated_key[:, None].mT
    products = content + places
    width = d_k + d_rot
    scores = products / width**0.5
    hidden = scores
    dim = -1
    soft = softmax_of(hidden, dim)
    weights = soft
    return weights @ key @ W_uv


exercise_11_3 = Exercise(
    id="11.3",
    page="deeper/latents_and_positions",
    right=absorbed_attention,
    course=latent.absorbed_attention,
    returns="the heads' outputs (B, H, T, d_v), without making any keys or values",
    probes=[never_makes(KEYS_MADE, 13, *GIVEN), never_makes(VALUES_MADE, 19, *GIVEN)],
    cases=[
        Case(*stepped(1, 1, 1, 2, 3, 2, 1, 1), note="one query, one head, two tokens"),
        Case(*GIVEN),
        Case(*stepped(3, 3, 2, 5, 7, 2, 11, 13), note="as many samples as heads"),
        Case(*stepped(2, 5, 3, 7, 3, 3, 2, 3), note="d_c, d_k and d_v are equal"),
    ],
    mistakes=STEP + shared.SCALE + shared.AXIS + shared.NO_MASK,
)
