"""Exercise 10.2: each key-value head, copied for the query heads that share it."""

import torch

from utils.checks.draw import came_from, draws
from utils.checks.engine import Exercise, case
from utils.checks.steps import Forms, Pipeline, texts_of

TEXTS = texts_of(__file__)
draw = draws(102)


def right_repeat(x, n_rep):
    return x[:, torch.arange(x.shape[1]).repeat_interleave(n_rep)]


LEGIBLE = torch.tensor(
    [[[[0.0, 1], [10, 11], [20, 21]], [[100, 101], [110, 111], [120, 121]]]]
)
STEPS = {
    "axis": lambda s: 1,
    "count": lambda s: s.n_rep,
    "place": lambda s: s.axis + 1,  # where the copies stand
    "source": lambda s: s.x.unsqueeze(s.place),
    "copies": lambda s: s.source.repeat_interleave(s.count, s.place),
    "merged": lambda s: s.copies.flatten(s.axis, s.axis + 1),
    "result": lambda s: s.merged,
}
IN_FRONT = {"place": lambda s: s.axis}
CUT = {"merged": lambda s: s.copies.reshape(s.x.shape[0], -1, *s.x.shape[2:])}
FORMS = Forms(TEXTS["FORMS"])
wrong = FORMS.wrong
wrong("tile-for-interleave", **IN_FRONT)
wrong("tile-of-the-batch", axis=lambda s: 0, **IN_FRONT)
for axis, name in ((0, "batch"), (2, "tokens"), (3, "features")):
    wrong("wrong-axis", {"name": name}, axis=lambda s, axis=axis: axis)
wrong("axis-missing", merged=lambda s: s.x.repeat_interleave(s.count))
wrong("axes-not-merged", merged=lambda s: s.copies)
wrong("axes-not-merged 2", **IN_FRONT, merged=lambda s: s.copies)
wrong("features-cut-up", axis=lambda s: 3, **CUT)
wrong("tokens-cut-up", axis=lambda s: 2, **CUT)
wrong("first-head-alone", result=lambda s: s.merged[:, :1].expand_as(s.merged))
wrong("one-repetition-more", count=lambda s: s.n_rep + 1)
wrong("heads-times-n-rep", count=lambda s: s.x.shape[1])
wrong("n-rep-as-total", count=lambda s: s.n_rep // s.x.shape[1])
wrong("two-heads-only", result=lambda s: s.merged[:, : 2 * s.count])
wrong("not-repeated", merged=lambda s: s.x)
wrong("reversed", result=lambda s: s.merged.flip(1))
wrong(
    "view-of-expanded", result=lambda s: s.source.expand_as(s.copies).view_as(s.merged)
)

repeat_kv = Exercise(
    id="10.2",
    **TEXTS["10.2"],
    oracle=right_repeat,
    properties=[came_from("sample", "head", "token", "feature")],
    cases=[
        case(LEGIBLE, 3, note="entry = 100 × head + 10 × token + feature"),
        case(draw(2, 3, 7, 5), 2),
        case(draw(3, 5, 2, 7), 3, note="more heads than tokens"),
        case(draw(2, 3, 5, 7), 1, note="nothing to repeat"),
        case(draw(3, 1, 5, 2), 7, note="one head for all"),
        case(draw(2, 3, 1, 5), 5, note="one token"),
    ],
    pipeline=Pipeline(lambda x, n_rep: {"x": x, "n_rep": n_rep}, STEPS, FORMS),
)
