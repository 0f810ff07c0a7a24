"""Scenes: whole diagrams of the course, each in one call."""

import math

import torch

from utils.plots.picture import Box, Picture, frames
from utils.plots.publishing import expect, format_number, text_width

LEFT = 1.15  # inches of a role frame for the names of its lanes

# --- attention --------------------------------------------------------------------


def frame(
    words, position: int, query, key=None, value=None, *, title: str, mask=None
) -> None:
    """Draw what one word takes from all words: scores, weights, context vector.

    Args:
        words: T of them, a column each.
        position: of the word that is followed.
        query: `(T, D)`; without key and value, these are the words' own vectors, which
            are query, key and value at once, and the scores aren't divided.
        key, value: `(T, D)` each.
        mask: boolean `(T, T)`, True = may attend.

    >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> frame(["a", "b"], 1, x, title="b takes most from itself")  # doctest: +ELLIPSIS
    Picture: b takes most from itself. ... weight: 0.27 / 0.73. ...
    """
    picture = Picture(3.85 if key is None else 3.7)
    _draw_frame(picture, 0.25, words, position, (query, key, value), mask)
    picture.publish(title)


def heads(words, position: int, roles, *, title: str, mask=None) -> None:
    """Draw the role frames of several heads below each other, and how they join.

    Args:
        roles: for each head its query, key and value, `(T, K)` each.

    The other arguments are those of `frame`.
    """
    picture = Picture(3.75 * len(roles) + 0.9)
    for i, head in enumerate(roles):
        y = 3.75 * i + 0.25
        picture.note((0.05, y), f"head {i}", bold=True)
        _draw_frame(picture, y, words, position, head, mask)
    y = 3.75 * len(roles) + 0.2
    contexts = [_attend(*head, position, mask)[2] for head in roles]
    picture.note((0.05, y + 0.14), "side by side")
    joined = picture.grid((2.4, y), torch.cat(contexts), "output")
    out_proj = picture.block((5.3, y - 0.05), "out_proj", "learned")
    picture.wire(joined, out_proj, "output")
    picture.publish(title)


def _attend(query, key, value, position, mask):
    """Return scores, weights and context of one query; without keys x is all three."""
    scale = 1.0 if key is None else query.shape[-1] ** 0.5
    key, value = (query if other is None else other for other in (key, value))
    scores = key @ query[position]
    scaled = scores / scale
    if mask is not None:
        scaled = scaled.masked_fill(~torch.as_tensor(mask)[position], -math.inf)
    weights = torch.softmax(scaled, dim=0)
    return scores, weights, weights @ value


def _draw_frame(picture, top, words, position, roles, mask):
    """Draw one role frame with its words at `top`; return the box of the context."""
    query, key, value = roles
    scores, weights, context = _attend(*roles, position, mask)
    if is_plain := key is None:
        key = value = query
    allowed = [mask is None or bool(mask[position][i]) for i in range(len(words))]
    width = (6.75 - LEFT) / len(words)
    columns = [LEFT + (i + 0.5) * width for i in range(len(words))]
    cell = min(0.5, 0.94 * width / query.shape[-1])
    kinds = ("x", "x", "x") if is_plain else ("query", "key", "value")
    root = "" if is_plain else f" ÷ √{query.shape[-1]}"
    scaled = scores / (1 if is_plain else query.shape[-1] ** 0.5)

    def start_lane(y, name, step=None):
        picture.note((0.05, top + y), name)
        if step:
            picture.step((0.97, top + y), step)
        return top + y

    def draw_vector(i, y, values, role):
        left = columns[i] - cell * len(values) / 2
        return picture.grid((left, y - 0.14), values, role, cell=cell)

    for i, word in enumerate(words):
        picture.word((columns[i], top), word, lit=i == position)
    name = "x" if is_plain else "query"
    query_y = start_lane(0.5, f"{words[position]}’s {name}")
    start = draw_vector(position, query_y, query[position], kinds[0])
    picture.step((start.x - 0.16, query_y), 1)
    y, keys = start_lane(1.05, "every x" if is_plain else "keys"), []
    for i, column in enumerate(columns):
        keys.append(draw_vector(i, y, key[i], kinds[1]))
        corner = () if i == position else [(column, query_y)]
        picture.wire(start, keys[i].top, kinds[0], via=corner)
    y = start_lane(1.55, f"score{root}", 2)
    for i, column in enumerate(columns):
        text = format_number(scaled[i])
        both = f"{format_number(scores[i])} → {text}"
        if not allowed[i]:
            text = f"{text} → −∞"
        elif not is_plain and text_width(both) < width:
            text = both
        picture.wire(keys[i].bottom, (column, y - 0.1), "weight")
        picture.note((column, y), text, "score", align="center")
    y = start_lane(2.0, "weight", 3)
    for i, column in enumerate(columns):
        picture.wire((column, y - 0.35), (column, y - 0.14), "weight")
        style = {"cell": 2 * cell, "mask": [[allowed[i]]]}
        at = column - cell, y - 0.14
        picture.grid(at, [[weights[i].item()]], "weight", **style)
    y = start_lane(2.5, "every x" if is_plain else "values")
    values = [draw_vector(i, y, value[i], kinds[2]) for i in range(len(words))]
    y = start_lane(3.1, "context")
    end = draw_vector(position, y, context, "output")
    picture.step((end.x + end.width + 0.16, y + 0.2), 4)
    for i, box in enumerate(values):
        corner = () if i == position else [(columns[i], y)]
        weight = weights[i].item()
        picture.wire(box.bottom, end, kinds[2], weight=weight, via=corner)
    return end


HELLO = ["Hello", "shiny", "sun"]
VECTORS = [[0.34, 0.22, 0.54], [0.53, 0.34, 0.98], [0.29, 0.54, 0.93]]
MATRICES = {  # of notebook 04
    "query": [[-2.0, 2.0], [2.0, -2.0], [2.0, 2.0]],
    "key": [[3.0, 2.0], [1.0, -1.0], [0.0, -2.0]],
    "value": [[1.0, 0.0], [0.0, 2.0], [1.0, -1.0]],
}
WAY = {  # from a text to the next token: a name, and the notebooks that explain it
    "tokens": ("01",),
    "embeddings": ("02",),
    "positions": ("02", "07"),
    "blocks × N": ("09",),
    "logits": ("09",),
    "next token": ("09",),
}


def machine(*, title: str, notebook: str = "") -> None:
    """Draw the way of a text to its next token, and one head of attention opened.

    Args:
        notebook: its number, "01" to "09"; what it explains is drawn bold.
    """
    picture, x, before = Picture(4.9), 0.05, None
    for name, numbers in WAY.items():
        lit = notebook in numbers
        box = picture.block((x, 0.25), name, lit=lit)
        picture.note((box.middle[0], 0.12), ", ".join(numbers), align="center")
        if before:
            picture.wire(before, box, "x")
        if name == "blocks × N":
            opened = box
        x, before = x + box.width + 0.22, box
    text = "in each block: attention, one of several heads (06)"
    ground = picture.shelf([Box(0.15, 1.2, 6.6, 3.5)], text, "memory")
    picture.wire(opened.bottom, (opened.middle[0], ground.y), head=False, dashed=True)
    vectors = torch.tensor(VECTORS)
    inputs = picture.grid((0.58, 2.45), vectors, "x", "x", rows=HELLO, cell=0.42)
    boxes, roles = [], []
    for i, (role, matrix) in enumerate(MATRICES.items()):
        y = 1.6 + 1.15 * i
        size = 0.8, 0.37
        block = picture.block((2.1, y + 0.23), f"W_{role}", "learned", size=size)
        corner = [(1.97, inputs.right[1]), (1.97, block.left[1])]
        picture.wire(inputs.right, block.left, "x", via=corner)
        roles.append(vectors @ torch.tensor(matrix))
        boxes.append(picture.grid((3.1, y), roles[-1], role, role, cell=0.45))
        picture.wire(block.right, boxes[-1].left, role)
    mask = torch.ones(3, 3, dtype=torch.bool).tril()
    score = picture.sign((4.4, 2.6), "×")
    for box, end in zip(boxes[:2], (score.top, score.bottom)):
        picture.wire(box.right, end, box.name, via=[(4.4, box.right[1])])
    softmax = picture.sign((5.02, 2.6), "softmax", "weight")
    weights = [_attend(*roles, i, mask)[1].tolist() for i in range(3)]
    share = picture.grid(
        (5.5, 2.18), weights, "weight", "weights", mask=mask, cell=0.41
    )
    picture.wire(score, softmax, "score")
    picture.wire(softmax, share, "weight")
    mix = picture.sign((6.1, 3.4), "×")
    picture.wire(share.bottom, mix.top, "weight")
    corner = [(4.6, boxes[2].right[1]), (4.6, 3.4)]
    picture.wire(boxes[2].right, mix.left, "value", via=corner)
    context = torch.tensor(weights) @ roles[2]
    end = picture.grid((5.65, 3.8), context, "output", "", cell=0.45)
    picture.wire(mix.bottom, end.top, "value")
    for x, y, number in ((2.5, 1.72, "04"), (4.62, 2.4, "03"), (5.95, 1.72, "05")):
        picture.note((x, y), number, align="center")
    picture.publish(title)


def looks(lines, position: int, weights, *, title: str) -> None:
    """Draw sentences with blue arrows from one word to those it looks at.

    Args:
        lines: sentences, as lists of words; words that differ between them are bold.
        position: of the word that looks, the same in every line.
        weights: a row for each line, one number a word; arrows from 0.05 on.

    >>> looks([["Hello", "sun"]], 1, [[0.9, 0.1]], title="sun looks at Hello")
    Picture: sun looks at Hello. Words: Hello sun. sun → Hello. sun → sun.
    """
    expect(len(lines) == len(weights), "weights", f"{len(lines)} rows", len(weights))
    height = 0.75 + 0.03 * max(map(len, lines))
    picture = Picture(height * len(lines) + 0.1)
    for i, (words, row) in enumerate(zip(lines, weights)):
        best = max(range(len(words)), key=lambda j: row[j])
        differ = [j for j, word in enumerate(words) if any(
            j < len(other) and other[j] != word for other in lines)]  # fmt: skip
        roles = {best: "key", position: "query"}
        at = 0.1, 0.25 + i * height
        boxes = picture.sentence(at, words, roles=roles, lit=differ)
        for j, box in enumerate(boxes):
            start, bend = boxes[position], 0.12 + 0.035 * abs(j - position)
            if j == position:
                x, y = box.bottom
                start = Box(x - 0.1, box.y, 0, box.height, box.name)
                box = Box(x + 0.1, box.y, 0, box.height, box.name)
            style = {"weight": float(row[j]), "bend": bend}
            picture.wire(start, box, "weight", text=format_number(row[j]), **style)
    picture.publish(title)


def cache(*, title: str) -> None:
    """Draw three steps with a cache: only the new token's query, key and value come."""

    def draw(picture, left, tokens):
        num_cached, num_new = tokens
        left += 0.45
        for i in range(num_cached + num_new):
            at = left + 0.1 + 0.4 * i
            for y, role in ((0.75, "key"), (1.1, "value")):
                picture.grid((at, y), [i], role, cell=0.34)
            if i >= num_cached:
                query = picture.grid((at, 1.75), [i], "query", cell=0.34)
                picture.wire(query.top, (query.top[0], 1.5), "query")
        ground = Box(left + 0.1, 0.75, 1.54, 0.63)
        picture.shelf([ground], kind="cached")
        if not num_cached:
            for y, role in ((0.89, "key"), (1.24, "value"), (1.89, "query")):
                picture.note((0.02, y), role, role)

    states = {"prefill: 0, 1": (0, 2), "decode: 2": (2, 1), "decode: 3": (3, 1)}
    frames(draw, states, height=2.15, title=title)


def gpt(words, predictions, *, title: str, num_blocks: int = 2) -> None:
    """Draw tokens as columns that go upwards through the blocks of a GPT to logits.

    Args:
        words: the input, a column each.
        predictions: the word that each column predicts.
    """
    height, width = 1.5, 5.7 / len(words)
    bottom = 1.6 + height * num_blocks
    picture = Picture(bottom + 0.25)
    columns = [1.0 + (i + 0.5) * width for i in range(len(words))]
    streams = [picture.word((x, bottom), word) for x, word in zip(columns, words)]
    for number in range(num_blocks):
        top = bottom - 0.35 - height * (number + 1)
        ground = [Box(1.05, top + 0.35, 5.65, height - 0.5)]
        picture.shelf(ground, f"block {number + 1}", kind="memory")
        for i, x in enumerate(columns):
            first = picture.sign((x, top + 0.95), "+")
            picture.wire(streams[i].top, first.bottom, "x")
            for j in range(i):  # attention reaches left only
                start = columns[j], top + 1.2
                end = first.left[0] + 0.02, first.left[1] + 0.06
                picture.wire(start, end, "value", bend=0.06 * (i - j), weight=0.1)
            second = picture.sign((x, top + 0.3), "+")
            picture.wire(first.top, second.bottom, "x")
            mlp = picture.block((x + 0.2, top + 0.43), "MLP")
            picture.wire((x, mlp.left[1]), mlp.left, "x")
            picture.wire(
                mlp.top, second.right, "x", via=[(mlp.top[0], second.right[1])]
            )
            streams[i] = second
    for i, (x, word) in enumerate(zip(columns, predictions)):
        logits = picture.grid((x - 0.45, 0.45), [["", "", ""]], "score", cell=0.3)
        picture.wire(streams[i].top, logits.bottom, "x")
        picture.word((x, 0.15), word, lit=i == len(words) - 1)
    for y, name in ((0.15, "next"), (0.59, "logits"), (bottom, "embedding")):
        picture.note((0.05, y), name)
    picture.wire((0.35, bottom - 0.15), (0.35, 0.75), dashed=True, text="one table")
    picture.publish(title)
