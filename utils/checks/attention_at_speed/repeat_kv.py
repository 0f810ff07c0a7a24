"""Exercise 10.2: each key-value head, copied for the query heads that share it."""

import torch

from utils.checks.draw import came_from, draws
from utils.checks.engine import Exercise, case
from utils.checks.steps import Forms, Pipeline, texts_of

TEXTS = texts_of(__file__)
draw = draws(102)


def right_repeat(x, n_rep):
    return x[:, torch.arange(x.shape[1]).repeat_interleave(n_rep)]


def legible(num_heads, num_tokens, width):
    """Return `(1, H, T, K)` in which each entry says where it stands."""
    heads = 100.0 * torch.arange(num_heads)[:, None, None]
    tokens = 10.0 * torch.arange(num_tokens)[:, None]
    return (heads + tokens + torch.arange(width))[None]


def interleaved(s):
    return s.x.repeat_interleave(s.count, s.axis)


def tiled(s):
    return torch.cat([s.x] * s.count, s.axis)


def scrambled(axis):
    """Repeat another axis, then cut the result into heads by reshape alone."""
    return lambda s: s.x.repeat_interleave(s.count, axis).reshape(
        s.x.shape[0], -1, *s.x.shape[2:]
    )


def viewed(s):
    copies = s.x[:, :, None].expand(-1, -1, s.count, -1, -1)
    return copies.view(s.x.shape[0], -1, *s.x.shape[2:])


FORMS = Forms(TEXTS["FORMS"])
FORMS.wrong("tile-for-interleave", repeat=tiled)
FORMS.wrong("tile-of-the-batch", axis=lambda s: 0, repeat=tiled)
for axis, name in ((0, "batch"), (2, "tokens"), (3, "features")):
    FORMS.wrong("wrong-axis", {"name": name}, axis=lambda s, axis=axis: axis)
for axis, name in ((2, "tokens"), (3, "features")):
    FORMS.wrong(
        "wrong-axis", {"name": name}, axis=lambda s, axis=axis: axis, repeat=tiled
    )
FORMS.wrong("axis-missing", repeat=lambda s: s.x.repeat_interleave(s.count))
FORMS.wrong("axes-not-merged", repeat=lambda s: torch.stack([s.x] * s.count, 2))
FORMS.wrong("axes-not-merged 2", repeat=lambda s: torch.stack([s.x] * s.count, 1))
FORMS.wrong("features-cut-up", repeat=scrambled(-1))
FORMS.wrong("tokens-cut-up", repeat=scrambled(2))
FORMS.wrong("first-head-alone", pick=lambda s: s.repeat[:, :1].expand_as(s.repeat))
FORMS.wrong("one-repetition-more", count=lambda s: s.n_rep + 1)
FORMS.wrong("heads-times-n-rep", count=lambda s: s.x.shape[1])
FORMS.wrong("n-rep-as-total", count=lambda s: s.n_rep // s.x.shape[1])
FORMS.wrong("two-heads-only", pick=lambda s: s.repeat[:, : 2 * s.count])
FORMS.wrong("not-repeated", repeat=lambda s: s.x)
FORMS.wrong("reversed", pick=lambda s: s.repeat.flip(1))
FORMS.wrong("view-of-expanded", repeat=viewed)

repeat_kv = Exercise(
    id="10.2",
    signature="repeat_kv(x, n_rep)",
    returns="from x (B, H_kv, T, K) the heads (B, H_kv * n_rep, T, K), head h equal to "
    "head h // n_rep of x",
    oracle=right_repeat,
    properties=[came_from("sample", "head", "token", "feature")],
    cases=[
        case(legible(2, 3, 2), 3, note="entry = 100 × head + 10 × token + feature"),
        case(draw(2, 3, 7, 5), 2),
        case(draw(3, 5, 2, 7), 3, note="more heads than tokens"),
        case(draw(2, 3, 5, 7), 1, note="nothing to repeat"),
        case(draw(3, 1, 5, 2), 7, note="one head for all"),
        case(draw(2, 3, 1, 5), 5, note="one token"),
    ],
    pipeline=Pipeline(
        start=lambda x, n_rep: {"x": x, "n_rep": n_rep},
        steps={
            "axis": lambda s: 1,
            "count": lambda s: s.n_rep,
            "repeat": interleaved,
            "pick": lambda s: s.repeat,
        },
        gives={"pick": "result"},
        forms=FORMS,
    ),
)
