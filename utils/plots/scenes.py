"""Scenes: the diagrams of one notebook each, in one call."""

import math
from dataclasses import replace
from itertools import pairwise

import torch
from torch import Tensor

from utils.attention import masked_softmax
from utils.plots.picture import LINE, THINNEST, Box, Picture, column, frames, row
from utils.plots.publishing import expect, format_number, to_array
from utils.plots.theme import WIDTH

# --- the way from a text to its next token ------------------------------------------

MATRICES = {  # of notebook 04
    "query": [[4.0, 0], [0, 0], [0, 0], [0, 4]],
    "key": [[0.0, 0], [1, 0], [0, 0], [0, 1]],
    "value": [[0.0, 0], [1, 0], [0, 1], [0, 0]],
}
WAY = {  # from a text to the next token: a name, and the notebooks that explain it
    **{"tokens": "01", "embeddings": "02", "positions": "02, 07", "blocks × N": "09"},
    **{"logits": "09", "next token": "09"},
}


def machine(*, title: str) -> None:
    """Draw the way of a text to its next token, and one head of attention opened.

    Its numbers are those of notebook 04, for the last two words of its sentence.
    """
    picture, x, boxes = Picture(4.6), 0.05, {}
    for name, numbers in WAY.items():
        boxes[name] = box = picture.block((x, 0.25), name)
        picture.note((box.middle[0], 0.12), numbers, align="center")
        x += box.width + 0.22
    for before, after in pairwise(boxes.values()):
        picture.wire(before, after, "x")
    text = "in each block: attention, one of several heads (06)"
    ground = picture.shelf([Box(0.15, 1.2, 6.6, 3.2)], text, "memory")
    start = boxes["blocks × N"].bottom
    picture.wire(start, (start[0], ground.y), head=False, dashed=True)
    x = torch.tensor([[1.0, 0, 0, 0.6], [0, 1, -2, 1]])
    inputs = picture.grid((0.58, 2.5), x, "x", "x", rows=["one", "step"], cell=0.42)
    vectors, ends = {}, {}
    for i, (role, matrix) in enumerate(MATRICES.items()):
        y, vectors[role] = 1.6 + 1.05 * i, x @ torch.tensor(matrix)
        block = picture.block(
            (2.45, y + 0.095), f"W_{role}", "learned", size=(0.8, 0.37)
        )
        via = [(2.37, inputs.right[1]), (2.37, block.left[1])]
        picture.wire(inputs.right, block.left, "x", via=via)
        ends[role] = picture.grid((3.4, y), vectors[role], role, role, cell=0.4)
        picture.wire(block.right, ends[role].left, role)
    mask = torch.ones(2, 2, dtype=torch.bool).tril()
    weights = masked_softmax(vectors["query"] @ vectors["key"].mT / 2**0.5, mask)
    score = picture.sign((4.55, 2.4), "×")
    for role, end in (("query", score.top), ("key", score.bottom)):
        picture.wire(ends[role].right, end, role, via=[(4.55, ends[role].right[1])])
    softmax = picture.sign((5.12, 2.4), "softmax", "weight")
    style = {"mask": mask, "cell": 0.45}
    share = picture.grid((5.7, 2.12), weights, "weight", "weights", **style)
    mix = picture.sign((6.15, 3.2), "×")
    picture.wire(score, softmax, "score")
    picture.wire(softmax, share, "weight")
    picture.wire(share.bottom, mix.top, "weight")
    corner = [(4.75, ends["value"].right[1]), (4.75, 3.2)]
    picture.wire(ends["value"].right, mix.left, "value", via=corner)
    context = weights @ vectors["value"]
    end = picture.grid((5.65, 3.65), context, "output", cell=0.5)
    picture.wire(mix.bottom, end.top, "value")
    for x, y, number in ((2.8, 1.55, "04"), (4.75, 2.2, "03"), (6.15, 1.72, "05")):
        picture.note((x, y), number, align="center")
    picture.publish(title)


# --- who looks at whom ------------------------------------------------------------


def looks(lines, position: int, weights, *, title: str) -> None:
    """Draw sentences with blue arrows from one word to those it looks at.

    Args:
        lines: sentences, as lists of words; words that differ between them are bold.
        position: of the word that looks, the same in every line.
        weights: a row for each line, one number a word; arrows from 0.05 on.

    >>> looks([["Hello", "sun"]], 1, [[0.9, 0.1]], title="sun looks at Hello")
    Picture: sun looks at Hello. Words: Hello sun. sun → Hello. sun → sun. 0.10.
    """
    expect(len(lines) == len(weights), "weights", f"{len(lines)} rows", len(weights))
    changed = [j for j, words in enumerate(zip(*lines)) if len(set(words)) > 1]
    shares = to_array(weights, "weights", 2)
    above = 0.25 * bool((shares[:, position] >= THINNEST).any())  # for the loops
    sides = shares[:, :position], shares[:, position + 1 :]
    most = max((side >= THINNEST).sum(axis=1).max() for side in sides)
    height = 0.75 + above + 0.2 * max(0, most - 2) + 0.03 * max(map(len, lines))
    picture = Picture(height * len(lines) + 0.1)
    for i, (words, given) in enumerate(zip(lines, shares)):
        best = max(range(len(words)), key=lambda j: given[j])
        style = {"roles": {best: "key", position: "query"}, "lit": changed, "gap": 0.9}
        place = 0.1, above + 0.25 + i * height
        boxes = picture.sentence(place, words, **style)
        start = boxes[position]
        for j, bend in _bends(boxes, position, given).items():
            style = {"weight": given[j], "bend": bend, "text": format_number(given[j])}
            picture.wire(start, boxes[j], "weight", **style)
        if given[position] >= THINNEST:  # a loop above the word
            x, y = start.top
            ends = [replace(start, x=x + side, width=0) for side in (-0.17, 0.17)]
            picture.wire(*ends, "weight", weight=given[position], bend=-0.2)
            text = format_number(given[position])
            picture.note((x, y - 0.3), text, "weight", align="center")
    picture.publish(title)


def _bends(boxes, position, given):
    """Return how far each arrow hangs: those of one side below each other's numbers."""
    bends = {}
    for side in (range(position - 1, -1, -1), range(position + 1, len(given))):
        seen = [j for j in side if given[j] >= THINNEST]
        spans = [abs(boxes[j].middle[0] - boxes[position].middle[0]) for j in seen]
        for i, (j, span) in enumerate(zip(seen, spans)):
            bends[j] = 0.15 + 0.035 * abs(j - position)
            if i > 0:  # so far below the middle of the arrow before it
                at = spans[i - 1] / span / 2
                least = (bends[seen[i - 1]] + 0.15) / (4 * at * (1 - at))
                bends[j] = max(bends[j], least)
            elif len(seen) > 1:
                bends[j] = 0.1
    return bends


def both_ways(words, vectors, W_q: Tensor, W_k: Tensor, *, title: str) -> None:
    """Draw the score of two words, and below it the one with the words exchanged.

    Args:
        words, vectors: two of each; a vector has three numbers.
        W_q, W_k: `(3, 1)`, so that a query and a key are one number.
    """
    picture, cell, size = Picture(2.15), 0.45, (0.48, 0.38)
    for y, (i, j) in ((0.4, (0, 1)), (1.5, (1, 0))):
        query, key = vectors[i] @ W_q, vectors[j] @ W_k
        dot = picture.sign((3.45, y + 0.14), "·", "score")
        sides = (  # the places of the word, its matrix and its query or key
            ("query", query, i, "W_q", (0.25, 1.83, 2.6)),
            ("key", key, j, "W_k", (5.3, 4.59, 3.85)),
        )
        for role, vector, word, name, (x, middle, near) in sides:
            start = picture.grid((x, y), vectors[word], "x", words[word], cell=cell)
            block = picture.block((middle, y - 0.05), name, "learned", size=size)
            end = picture.grid((near, y), vector, role, role, cell=cell)
            picture.wire(start, block, "x")
            picture.wire(block, end, role)
            picture.wire(end, dot, role)
        at, style = (3.45, y + 0.47), {"align": "center", "bold": True}
        picture.note(at, f"score {query @ key:.0f}", "score", **style)
    picture.publish(title)


# --- angles -------------------------------------------------------------------------


def dials(angles, names, *, title: str, labels=None, shaded=None, roles=None) -> None:
    """Draw clocks, four to a line: a hand for each angle, from twelve o'clock on.

    Args:
        angles: `(N, T)` in radians, T hands for each of N clocks.
        names: one for each clock.
        labels: one for each hand.
        shaded: for each clock an angle in radians up to which it is shaded.
        roles: one for each hand, which gives its colour.
    """
    picture = Picture(1.95 * -(-len(angles) // 4))
    for i, (hands, name) in enumerate(zip(angles, names)):
        at = 0.86 + 1.72 * (i % 4), 1.1 + 1.95 * (i // 4)
        end = 0 if shaded is None else shaded[i]
        picture.dial(at, hands, name, labels=labels, shaded=end, roles=roles)
    picture.publish(title)


# --- 09 and 10 --------------------------------------------------------------------


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
        num_blocks: the first is drawn with all its parts, the others are closed.

    Each column has one logit for each different word in the picture.
    """
    vocabulary = {*words, *predictions}
    bottom = 4.25 + 0.5 * num_blocks
    picture, pitch = Picture(bottom + 0.25), 5 / len(words)
    columns = [1.75 + i * pitch for i in range(len(words))]
    streams = [picture.word((x, bottom), word) for x, word in zip(columns, words)]
    top = bottom - 3.25
    picture.shelf([Box(1.05, top + 0.2, 5.65, 2.7)], "block 1", kind="memory")
    for number in range(2, num_blocks + 1):
        ground = Box(1.05, top + 0.22 - 0.5 * (number - 1), 5.65, 0.0)
        picture.shelf([ground], f"block {number}", kind="memory")
    first, second = top + 1.7, top + 0.3  # the two additions
    norms = [
        _draw_sublayer(picture, x, y, part)
        for y, part in ((first, "attention"), (second, "MLP"))
        for x in columns
    ]
    for i, x in enumerate(columns):
        for j in range(i):  # attention reaches left only
            start, end = (norms[j].right[0] - 0.1, norms[j].y), (x + 0.13, first + 0.4)
            picture.wire(start, end, "value", weight=0.1)
        for y in (first, second):
            plus = picture.sign((x, y), "+")
            picture.wire(streams[i].top, plus.bottom, "x")
            streams[i] = plus
        norm = picture.block((x - 0.31, 0.97), "norm", size=(0.62, 0.27))
        picture.wire(streams[i].top, norm.bottom, "x")
        at = x - 0.13 * len(vocabulary), 0.45
        logits = picture.grid(at, [[""] * len(vocabulary)], "score", cell=0.26)
        picture.wire(norm.top, logits.bottom, "x")
        picture.word((x, 0.15), predictions[i], lit=i == len(words) - 1)
    for y, name in ((0.15, "next"), (0.58, "logits"), (bottom, "embedding")):
        picture.note((0.05, y), name)
    picture.wire((0.35, bottom - 0.15), (0.35, 0.75), dashed=True, text="one table")
    picture.publish(title)


def _draw_sublayer(picture, x, y, part):
    """Draw norm and sublayer to the right of a stream, up to its + at (x, y)."""
    norm = picture.block((x + 0.13, y + 0.85), "norm", size=(0.62, 0.27))
    work = picture.block((x + 0.13, y + 0.2), part, size=(0.8, 0.27))
    picture.wire((x, norm.left[1]), norm.left, "x")
    role = "value" if part == "attention" else "x"
    picture.wire(norm.top, (norm.top[0], work.bottom[1]), role)
    corner = work.middle[0], y
    picture.wire(work.top, (x + 0.12, y), role, via=[corner])
    return norm


def stream(states, reads, *, title: str) -> None:
    """Draw the streams of two tokens through a block: read, normalise, work, add.

    Args:
        states: `(2, D)` each: the tokens before attention, between, and after the MLP.
        reads: their normalised vectors, as attention reads them, and as the MLP does.
    """
    picture, boxes = Picture(2.6), []
    for i, state in enumerate(states):
        name = ("x", "+ attention", "+ MLP")[i]
        boxes.append(_draw_stream(picture, (0.53 + 2.42 * i, 0.35), state, name))
    for i, (read, part) in enumerate(zip(reads, ("attention", "MLP"))):
        plus = picture.sign((boxes[i].right[0] + 0.47, boxes[i].middle[1]), "+")
        picture.wire(boxes[i].right, plus.left, "x")
        picture.wire(plus.right, boxes[i + 1].left, "x")
        box = _draw_stream(picture, (boxes[i].x, 1.75), read, "norm")
        picture.wire(boxes[i].bottom, (box.middle[0], box.y - 0.24), "x")
        at = plus.middle[0] - 0.36, box.middle[1] - 0.19
        work = picture.block(at, part, size=(0.72, 0.38))
        picture.wire(box.right, work.left, "x")
        picture.wire(work.top, plus.bottom, "x")
    for text, row_ in (("first", 0), ("second", 1)):
        picture.note((0.03, boxes[0].row(row_).middle[1]), text)
    picture.publish(title)


def _draw_stream(picture, at, vectors, name):
    texts = [
        [format_number(v, 1).removesuffix(".0") for v in vector] for vector in vectors
    ]
    return picture.grid(at, texts, "x", name, cell=0.38)


def true_scale(shapes: dict, *, title: str) -> None:
    """Draw matrices of 4 bytes a number true to scale, so that their areas compare.

    Args:
        shapes: dict from the name of a role to `(rows, columns)`.
    """
    picture, unit = Picture(2.95), 2.2 / max(map(max, shapes.values()))
    free = WIDTH - 0.9 - sum(unit * columns for _, columns in shapes.values())
    x = 0.45
    for name, (rows, columns) in shapes.items():
        size = unit * columns, unit * rows
        kind = name.removesuffix("s")
        middle, *_ = picture.block((x, 0.3), "", kind, size=size).middle
        picture.note((middle, 0.12), name, align="center", bold=True)
        text = f"({rows:,}, {columns:,})\n{4 * rows * columns / 2**20:g} MiB"
        picture.note((middle, 0.52 + size[1]), text, "x", align="center")
        x += size[0] + free / (len(shapes) - 1)
    picture.publish(title)


def blockwise(scores, values, *, split: int, title: str) -> None:
    """Draw two blocks on their way from slow to fast memory, and what they leave.

    Args:
        scores, values: of one query, one number a key; a score is also the key.
        split: how many keys the first block has.
    """
    picture, parts = Picture(3.3), (slice(None, split), slice(split, None))
    slow, fast = Box(0.55, 0.35, 1.9, 2.85), Box(3.5, 0.35, 3.2, 2.85)
    picture.shelf([slow], "slow memory", "memory")
    picture.shelf([fast], "fast memory", "process")
    largest, total, sums, end = -torch.inf, 0.0, 0.0, None
    for i, part in enumerate(parts):
        y, before = 0.75 + 1.15 * i, end
        name = {"rows": ["key"], "name": f"block {i + 1}"}
        key = picture.grid((1.15, y), scores[part][None], "key", **name)
        row_ = {"rows": ["value"]}
        value = picture.grid((1.15, y + 0.42), values[part][None], "value", **row_)
        old, largest = largest, max(largest, float(scores[part].max()))
        factor, exps = math.exp(old - largest), torch.exp(scores[part] - largest)
        total = total * factor + float(exps.sum())
        sums = sums * factor + float(exps @ values[part])
        state = [[format_number(n) for n in (largest, total, sums)]]
        columns = ["max m", "sum ℓ", "sum a"]
        end = picture.grid((4.2, y + 0.2), state, "score", columns=columns, cell=0.6)
        picture.grid((6.15, y + 0.2), [[1]], "query", columns=["query"], cell=0.4)
        corner = 2.3, end.left[1]
        gap = 3.65, corner[1]  # the text is between the two memories
        picture.wire(corner, gap, text="fetched", head=False)
        picture.wire(gap, end.left)
        for box, role in ((key, "key"), (value, "value")):
            via = [(corner[0], box.right[1])]
            picture.wire(box.right, corner, role, via=via, head=False)
        for j in (1, 2) if before else ():  # both sums, not the maximum
            start, text = before.cell(0, j).bottom, f"× {format_number(factor)}"
            picture.wire(start, (start[0], end.y - 0.22), "score")
            picture.note((start[0] + 0.07, start[1] + 0.3), text, "score")
    result = picture.grid((1.5, 2.95), [sums / total], "output", rows=["output"])
    y = result.right[1]
    for start in (end.cell(0, j).bottom for j in (1, 2)):
        picture.wire(start, (4.05, y), "value", via=[(start[0], y)], head=False)
    picture.wire((4.05, y), result.right, "value", text="a ÷ ℓ")
    picture.publish(title)


# --- 08 and 13 ----------------------------------------------------------------------

FRENCH = "la", "voiture", "bleue", "<end>"
WAYS = {  # how it reads, how it writes, what `find` does, what goes in
    "one vector": ("a GRU, both ways", "a GRU", "the same\nvector", "old state s₁"),
    "additive": ("a GRU, both ways", "a GRU", "additive\nattention", "old state s₁"),
    "transformer": ("self-attention, MLP", "self-attention, MLP",
                    "cross-\nattention", "<start>"),
}  # fmt: skip


def translator(*ways: str, title: str) -> None:
    """Draw one or two translators from bottom to top, while they write "blue".

    The steps are 1 ask, 2 find, 3 read, 4 write; what is written is read next.

    Args:
        ways: one or two of "one vector", "additive" and "transformer".
    """
    picture = Picture(4.3)
    for i, way in enumerate(ways):
        expect(way in WAYS, "way", f"one of {', '.join(WAYS)}", repr(way))
        _draw_translator(picture, i * WIDTH / 2, way)
    picture.publish(title)


def _draw_translator(picture, left, way):
    reads, writes, find, first = WAYS[way]
    has_vector, has_state = way == "one vector", way != "transformer"
    picture.note((left + 0.1, 0.12), way, bold=True)
    encoder = picture.block((left + 0.1, 3.2), f"encoder: {reads}", size=(2.85, 0.37))
    states = []
    for x, word in zip((0.28, 0.96, 1.82, 2.67), FRENCH):
        x += left
        box = picture.word((x, 4.0), word)
        picture.wire(box.top, (x, 3.57))
        state = picture.grid((x - 0.15, 2.6), [[""]], "key", cell=0.3)
        picture.wire((x, 3.2), state.bottom, "key")
        states.append(state)
    finder = picture.block(
        (left + 0.1, 1.75), f"find:\n{find}", size=(1.0, 0.55), lit=True
    )
    decoder = picture.block((left + 0.1, 0.95), f"decoder: {writes}", size=(3.2, 0.37))
    if has_state:
        vector = picture.grid((left + 3.0, 2.6), [[""]], "value", cell=0.3)
        picture.wire(
            encoder.right, vector.bottom, via=[(vector.bottom[0], encoder.right[1])]
        )
    for state in [vector] if has_vector else states:
        corner = [(state.top[0], 2.45), (finder.bottom[0], 2.45)]
        role = "value" if has_vector else "key"
        picture.wire(state.top, finder.bottom, role, via=corner)
    up = finder.top[0], decoder.bottom[1]
    picture.wire(finder.top, up, "value", text="found")
    picture.step((left + 0.2, 1.53), 2)
    for x, word in ((1.75, first), (2.85, "the")):
        box = picture.word((left + x, 1.95), word)
        picture.wire(box.top, (left + x, decoder.bottom[1]))
        if word == "old state s₁":  # which began as the vector
            (x0, y0), (x1, y1) = vector.right, box.right
            corners = [(x0 + 0.1, y0), (x0 + 0.1, 2.25), (x1 + 0.15, 2.25)]
            style = {"via": [*corners, (x1 + 0.15, y1)], "dashed": True}
            picture.wire(vector.right, box.right, "value", text="first state", **style)
        asking = not has_vector and word == ("the" if first == "<start>" else first)
        if asking:
            corner, end = (left + x, 2.25), (finder.right[0], 2.25)
            picture.wire(box.bottom, end, "query", via=[corner], text="asks")
            picture.step(corner, 1)
    picture.step((left + 3.03, 1.53), 3)
    blue = picture.word((left + 1.7, 0.5), "blue", lit=True)
    picture.wire((left + 1.7, 0.95), blue.bottom)
    picture.step((left + 1.88, 0.8), 4)
    back = [(left + 3.36, blue.right[1]), (left + 3.36, box.right[1])]
    picture.wire(blue.right, box.right, via=back, dashed=True)
    picture.note((left + 2.3, 0.37), "read next")


def exchange(operations, numbers, *, title: str) -> None:
    """Draw what two processes hold before and after an operation, and what they send.

    Args:
        operations: of "send", "all-reduce", "all-gather" and "reduce-scatter".
        numbers: `(2, n)`, n even: what each process holds at first.
    """
    first, second = ([(n, rank) for n in line] for rank, line in enumerate(numbers))
    sums, half = [(a + b, 4) for a, b in zip(*numbers)], len(first) // 2

    def shares(a, b):  # each process has its half alone
        return [a[:half] + [("", -1)] * half, [("", -1)] * half + b[half:]]

    states = {  # pairs (number, owner) of both processes, before and after
        "send": ([first, second], [first, first]),
        "all-reduce": ([first, second], [sums, sums]),
        "all-gather": (shares(first, second), [first[:half] + second[half:]] * 2),
        "reduce-scatter": ([first, second], shares(sums, sums)),
    }
    lines = []
    for name in operations:
        grids = []
        for state in states[name]:
            texts = [
                [n if n == "" else format_number(n, 0) for n, _ in s] for s in state
            ]
            owner = [[rank for _, rank in s] for s in state]
            labels = {"rows": ["process 0", "process 1"], "cell": 0.42}
            grids.append({"values": texts, "owner": owner, **labels})
        sent = 4 * (2 * half if name in ("send", "all-reduce") else half)
        text = f"{sent} bytes" + (" each" if name != "send" else "") + " →"
        lines.append([grids[0] | {"name": name}, text, grids[1]])
    column(*lines, title=title)


# --- 03 to 06 ---------------------------------------------------------------------

LANES = {"query": 0.77, "keys": 1.35, "score": 1.92, "weight": 2.21, "values": 2.75}
LANES |= {"context": 3.4}  # inches below the title


def attention_frame(
    words,
    followed: int,
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    title: str,
    lanes: dict | None = None,
    **options,
) -> None:
    """Draw what one word takes from all: query, keys, scores, weights, values, sum.

    Args:
        words, followed, query, keys, values, options: as `draw_attention` takes them.
        lanes: other names for the lanes, such as {"keys": "labels"}.
    """
    names = {lane: lane for lane in LANES}
    if options.get("divisor"):
        names["score"] = f"score, ÷ {options['divisor'][0]}"
    picture, left = Picture(LANES["context"] + 0.4), 1.05
    for lane, name in (names | (lanes or {})).items():
        middle = LANES[lane] + (0 if lane == "score" else LINE / 2)
        picture.note((0.05, middle), name)
    vectors = query, keys, values
    start, context = draw_attention(
        picture, left, WIDTH - left, words, followed, *vectors, **options
    )
    picture.step((start.x - 0.16, start.middle[1]), 1)
    picture.step((left - 0.1, LANES["score"]), 2)
    picture.step((left - 0.1, LANES["weight"] + LINE / 2), 3)
    picture.step((context.x, context.y - 0.16), 4)
    picture.publish(title)


def draw_attention(
    picture: Picture,
    left: float,
    width: float,
    words,
    followed: int,
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    divisor: tuple[str, float] | None = None,
    mask=None,
    plain: bool = False,
) -> tuple[Box, Box]:
    """Draw what one word takes from all, a column for each word.

    Args:
        left, width: in inches, where the columns are.
        words: one column each; `followed` is the number of the one with the query.
        query: (K,)
        keys, values: (T, K) and (T, V)
        divisor: what the scores are divided by, as text and number: ("√2", 2**0.5).
        mask: boolean (T,), True = may attend.
        plain: the three roles are one vector, so they have no colour (notebook 03).

    Returns the boxes of the query and of the context vector.
    """
    scores, step = keys @ query, width / len(words)
    scaled = scores / (divisor[1] if divisor else 1)
    allowed = torch.ones(len(words), dtype=torch.bool) if mask is None else mask
    weights = masked_softmax(scaled, allowed)
    cell = min(0.5, (step - 0.1) / max(keys.shape[1], values.shape[1]))
    roles = ["x"] * 4 if plain else [*MATRICES, "output"]
    digits = 2 if step > 1.2 else 1

    def draw(j, lane, numbers, role, cell=cell, **style):
        x = left + (j + 0.5) * step - cell * len(numbers) / 2
        if lane in ("query", "keys", "values") and torch.allclose(
            numbers, numbers.round(decimals=1)
        ):  # 1 and −0.6 take less room than 1.00 and −0.60
            numbers = [[format_number(n, 1).removesuffix(".0") for n in numbers]]
        return picture.grid((x, LANES[lane]), numbers, role, cell=cell, **style)

    start = draw(followed, "query", query, roles[0])
    frame = {"lit": 0} if plain else {}
    context = draw(followed, "context", weights @ values, roles[3], **frame)
    for j, word in enumerate(words):
        x, share = left + (j + 0.5) * step, float(weights[j])
        picture.word((x, 0.45), word, lit=j == followed)
        key = draw(j, "keys", keys[j], roles[1])
        shown = {"cell": 2 * cell, "mask": allowed[None, j : j + 1]}
        weight = draw(j, "weight", weights[j : j + 1], "weight", **shown)
        value = draw(j, "values", values[j], roles[2])
        numbers = (scores, scaled) if divisor and allowed[j] else (scaled,)
        texts = [format_number(float(s[j]), digits) for s in numbers]
        text = " → ".join(texts if allowed[j] else [*texts, "−∞"])
        picture.note((x, LANES["score"]), text, "score", align="center")
        side = start.left if j < followed else start.right
        corner = [(x, side[1])] if j != followed else []
        picture.wire(side if corner else start.bottom, key.top, roles[0], via=corner)
        picture.wire(key.bottom, (x, LANES["score"] - 0.1), "score")
        picture.wire((x, LANES["score"] + 0.1), weight.top, "weight")
        picture.wire(weight.bottom, value.top, "weight", weight=share, head=False)
        side = context.left if j < followed else context.right
        corner = [(x, side[1])] if j != followed else []
        style = {"weight": share, "via": corner}
        picture.wire(value.bottom, side if corner else context.top, roles[2], **style)
    return start, context


# --- 14 ---------------------------------------------------------------------------


def latent_layer(words, widths: tuple[int, int, int], *, title: str) -> None:
    """Draw a layer with two heads whose keys and values come from cached latents.

    Args:
        words: T of them.
        widths: of x, of a latent, and of both heads together.
    """
    T, (d_in, R, D) = len(words), widths
    K, high = D // 2, len(words) * LINE
    mask = torch.ones(T, T, dtype=torch.bool).tril()
    picture, tops = Picture(2.25 + 2 * high), (0.5, 1.75 + high)
    middle = (tops[0] + tops[1] + high) / 2

    def blank(x, y, width, role, name, **style):
        cells = [[""] * width] * T
        return picture.grid((x, y), cells, role, name, cell=0.12, **style)

    def learned(x, y, text, width=0.8, height=0.34):
        at = x, y - height / 2
        return picture.block(at, text, "learned", size=(width, height))

    style = {"rows": words, "shape": f"({T}, {d_in})"}
    x = blank(0.62, middle - high / 2, d_in, "x", "x", **style)
    down = learned(1.35, middle, "W_latent")
    picture.wire(x.right, down.left, "x")
    at = 2.53, middle - high / 2
    latent = blank(*at, R, "x", "latents", shape=f"({T}, {R})")
    ground = Box(latent.x - 0.1, latent.y - 0.25, latent.width + 0.2, high + 0.5)
    picture.shelf([ground], "cached")
    picture.wire(down.right, latent.left, "x")
    joined = blank(6.2, tops[0] + 0.2, D, "output", "joined", shape=f"({T}, {D})")
    out = learned(6.08, middle + 0.12, "out_proj", 0.72)
    output = blank(6.2, tops[1] + 0.2, D, "output", "output", shape=f"({T}, {D})")
    for head, top in enumerate(tops):
        ground = [Box(4.22, top, 1.6, high + 0.35)]
        shelf = picture.shelf(ground, f"head {head}", "memory")
        boxes = [
            blank(4.22 + 0.29 * i, top + 0.2, K, role, role[0])
            for i, role in enumerate(MATRICES)
        ]
        y = boxes[0].middle[1]
        above = y - 0.45, y, y + 0.5  # of query, key and value: no wire crosses another
        places = above if head == 0 else (y + 0.55, y - 0.4, y + 0.1)
        query = learned(1.35, places[0], f"W_query,\nhead {head}", height=0.46)
        corner = [(1.22, middle), (1.22, places[0])]
        picture.wire(x.right, query.left, "x", via=corner)
        picture.wire(query.right, (shelf.x, places[0]), "query")
        kinds = ("key", "W_uk", places[1]), ("value", "W_uv", places[2])
        for role, text, place in kinds:
            block = learned(3.3, place, f"{text}[{head}]", 0.7)
            corner = [(3.15, middle), (3.15, place)]
            picture.wire(latent.right, block.left, "x", via=corner)
            picture.wire(block.right, (shelf.x, place), role)
        share = blank(5.1, top + 0.2, T, "weight", "weights", mask=mask)
        goal = joined.left[0], joined.row((T - 1) * head).middle[1]
        via = [(5.98, share.right[1]), (5.98, goal[1])]
        picture.wire(share.right, goal, "value", via=via)
    picture.wire((out.middle[0], joined.bottom[1] + 0.22), out.top, "value")
    picture.wire(out.bottom, (out.middle[0], output.y - 0.24), "value")
    picture.publish(title)


def latent_scores(
    latent: Tensor, W_uk: Tensor, query: Tensor, *, title: str, rotated=None
) -> None:
    """Draw the score of a query and a cached latent: by its key, and absorbed.

    Args:
        latent: (R,); W_uk: (R, K); query: (K,)
        rotated: a rotated query and key, (P,) each. Their product is added to the
            absorbed score, and the way by the key is left out.
    """
    picture, boxes, y = Picture(2.45), [], 0.65
    if rotated is None:
        boxes.append(picture.grid((0.2, y), latent, "x", "latent", cell=0.48))
        block = picture.block((1.95, y - 0.04), "W_uk", "learned", size=(0.75, 0.36))
        key = picture.grid((3.2, y), latent @ W_uk, "key", "key", cell=0.45)
        picture.wire(boxes[0], block, "x")
        picture.wire(block, key, "key")
        query_row = picture.grid((5.8, y), query, "query", "query", cell=0.45)
        _draw_product(picture, 4.95, key, query_row, "key", latent @ W_uk @ query)
        y = 1.75
    absorbed = query @ W_uk.mT
    boxes.append(picture.grid((0.2, y), latent, "x", "latent", cell=0.48))
    block = picture.block((4.55, y - 0.04), "W_ukᵀ", "learned", size=(0.75, 0.36))
    query_row = picture.grid((5.8, y), query, "query", "query", cell=0.45)
    end = picture.grid((2.8, y), absorbed, "query", "absorbed query", cell=0.45)
    picture.wire(query_row, block, "query")
    picture.wire(block, end, "query")
    dot = _draw_product(picture, 2.15, boxes[-1], end, "x", absorbed @ latent)
    if rotated is not None:
        turned, key = rotated
        boxes.append(picture.grid((0.2, 1.75), key, "key", "rotated key", cell=0.5))
        end = picture.grid((2.8, 1.75), turned, "query", "rotated query", cell=0.5)
        second = _draw_product(picture, 2.15, boxes[-1], end, "key", turned @ key)
        score = absorbed @ latent + turned @ key
        plus, y = picture.sign((4.6, 1.58), "+", "score"), 1.58
        for start in (dot, second):
            at = start.bottom[1] + 0.12
            picture.wire((2.45, at), plus, "score", via=[(4.6, at)])
        divided = picture.sign((5.3, y), f"÷ √{len(query) + len(key)}", "score")
        picture.wire(plus, divided, "score")
        scaled = score / (len(query) + len(key)) ** 0.5
        end = picture.grid((6.0, y - 0.14), [scaled], "score", "score", cell=0.5)
        picture.wire(divided, end, "score")
    first = replace(boxes[0], y=boxes[0].y - 0.22, height=LINE + 0.22)
    picture.shelf([first, boxes[1]])
    picture.publish(title)


def _draw_product(picture, x, left, right, role, score):
    """Draw the dot product of two grids between them, and the score below it."""
    dot = picture.sign((x, left.middle[1]), "·", "score")
    picture.wire(left, dot, role)
    picture.wire(right, dot, "query")
    place = x, left.middle[1] + 0.27
    text = format_number(float(score), 2)
    picture.note(place, text, "score", align="center", bold=True)
    return dot


# --- 15 ---------------------------------------------------------------------------


def state_and_cache(
    names, keys: Tensor, values: Tensor, query: Tensor, columns, *, title: str
) -> None:
    """Draw tokens written into one matrix, a query of it, and a cache that grows.

    Args:
        names: T of them; keys: (T, K); values: (T, V); query: (K,)
        columns: V names.
    """
    picture, state = Picture(0.75 + 1.2 * len(names)), torch.outer(query, values[0]) * 0
    plus_y = 0.6 + 0.6 * len(names)
    plus = picture.sign((3.85, plus_y - 0.28), "+", "value")
    for i, (name, key, value) in enumerate(zip(names, keys, values)):
        y, state = 0.55 + 1.2 * i, state + torch.outer(key, value)
        left = picture.grid((0.65, y), key[:, None], "key", "key", cell=0.42)
        picture.note((0.05, left.middle[1]), name, bold=True)
        picture.sign((1.3, left.middle[1]), "×")
        at, style = (1.55, left.middle[1] - LINE / 2), {"columns": columns}
        picture.grid(at, value, "value", "value", cell=0.42, **style)
        picture.sign((2.55, left.middle[1]), "=")
        part = picture.grid((2.7, y), torch.outer(key, value), "value", cell=0.42)
        picture.wire(part, plus, "value", via=[(3.85, part.middle[1])])
    at = 4.3, plus_y - 0.28 - len(state) * LINE / 2
    box = picture.grid(at, state, "value", cell=0.42)
    ground = picture.shelf([replace(box, y=box.y - 0.02)], "state S", "memory")
    picture.wire(plus, box, "value")
    query_row = picture.grid((at[0], 0.25), query, "query", "query", cell=0.42)
    picture.wire(query_row.bottom, (box.top[0], ground.y), "query")
    low = ground.y + ground.height
    end = picture.grid(
        (at[0], low + 0.55), query @ state, "output", "query S", cell=0.42
    )
    picture.wire((box.top[0], low), (end.top[0], end.y - 0.24), "value")
    boxes = [
        picture.grid((x, 0.75 + 0.4 * i), row, role, cell=0.3)
        for i, pair in enumerate(zip(keys, values))
        for x, role, row in zip((5.55, 6.2), ("key", "value"), pair)
    ]
    picture.shelf([replace(boxes[0], y=0.6), boxes[-1]], "a cache")
    at = 6.17, boxes[-1].bottom[1] + 0.3
    picture.note(at, "two more rows\nper token", align="center")
    picture.publish(title)


def two_writes(before, value, axes, *, title: str) -> None:
    """Draw how adding a value, and the delta rule, move what a key retrieves.

    Args:
        before: what the key retrieves, two numbers; value: what it should retrieve.
        axes: the names of the two numbers.
    """
    picture, unit, origin = Picture(3.3), 0.62, (1.5, 3.0)

    def place(point):
        return origin[0] + unit * point[0], origin[1] - unit * point[1]

    for i, (end, name) in enumerate((((4.8, 0), axes[0]), ((0, 4.6), axes[1]))):
        picture.wire(origin, place(end), "x")
        x, y = place(end)
        picture.note((x + 0.1, y + 0.05 * i), name)
    added = [a + b for a, b in zip(before, value)]
    half = [(a + b) / 2 for a, b in zip(before, value)]
    for end in (added, value, half):
        picture.wire(place(before), place(end), "value")
    labels = {  # a point, where its label is, and on which side it ends
        "before": (before, 0.12, "left"), "the value added": (added, 0.12, "left"),
        "β = 1": (value, 0.12, "left"), "β = ½": (half, -0.12, "right"),
    }  # fmt: skip
    for text, (point, shift, align) in labels.items():
        numbers = ", ".join(f"{float(n):g}" for n in point)
        x, y = place(point)
        picture.note((x + shift, y - 0.05), f"{text}: ({numbers})", align=align)
    picture.publish(title)


# --- 11 and 13 --------------------------------------------------------------------


def vision_transformer(image: Tensor, *, title: str) -> None:
    """Draw the way of an 8 × 8 image through a vision transformer, patches of 2 × 2."""
    picture, rows = Picture(5.2), [0, 1, 2, "…", 15]
    squares = image.view(4, 2, 4, 2).transpose(1, 2).reshape(16, 4).tolist()
    owner = torch.tensor([0, 1, 2] + [4] * 12 + [3]).view(4, 4)
    owner = owner.repeat_interleave(2, 0).repeat_interleave(2, 1)
    style = {"owner": owner, "shape": "(H, W) = (8, 8)", "cell": LINE}
    start = picture.grid((0.1, 0.3), image, name="image", **style)
    values, owner = [*squares[:3], ["…"] * 4, squares[15]], [0, 1, 2, -1, 3]
    style = {"owner": owner, "rows": rows, "shape": "(N, P²) = (16, 4)"}
    patches = picture.grid((3.0, 0.72), values, name="patches", **style)
    linear = picture.block((4.5, 1.235), "Linear", "learned")
    blank, style = [[""] * 7] * 5, {"cell": 0.14, "rows": rows}
    style |= {"shape": "(N, D) = (16, 32)"}
    vectors = picture.grid((5.65, 0.72), blank, "x", "vectors", **style)
    style |= {"rows": ["class", *rows], "shape": "(N + 1, D) = (17, 32)"}
    tokens = picture.grid((0.75, 3.2), [*blank, blank[0]], "x", "tokens", **style)
    block_1 = picture.block((2.55, 3.855), "block")
    block_2 = picture.block((3.4, 3.855), "block")
    style = {"rows": ["class"], "cell": 0.14, "shape": "(D,) = (32,)"}
    last = picture.grid((4.8, 3.2), blank[:1], "x", **style)
    head = picture.block((6.05, 3.155), "Linear", "learned")
    style = {"columns": range(10), "cell": 0.23, "shape": "(digits,) = (10,)"}
    end = picture.grid((3.8, 4.6), [[""] * 10], "x", "scores", **style)
    picture.wire(start.right, (2.7, start.right[1]))
    picture.wire(patches, linear)
    picture.wire(linear.right, (5.4, linear.right[1]))
    turn, below = 2.82, tokens.top[0] + 0.55
    via = [(vectors.bottom[0], turn), (below, turn)]
    picture.wire((vectors.bottom[0], 2.45), (below, tokens.y - 0.03), via=via)
    text = "a class token in front, and a position added to each"
    picture.note((4.0, turn - 0.13), text, align="center")
    picture.wire((tokens.right[0], block_1.left[1]), block_1)
    picture.wire(block_1, block_2)
    corners = [(4.12, block_2.right[1]), (4.12, last.left[1])]
    picture.wire(block_2.right, (4.38, last.left[1]), via=corners)
    picture.wire(last, head)
    picture.wire(head.bottom, end.right, via=[(head.bottom[0], end.right[1])])
    steps = (2.55, 1.2), (4.35, 1.2), (2.1, turn - 0.15), (2.3, 3.9), (5.91, 3.15)
    for number, at in enumerate(steps, start=1):
        picture.step(at, number)
    picture.publish(title)


def hairpin(strand: str, stem: int, *, title: str) -> None:
    """Draw a folded strand of DNA; the first `stem` bases pair with the last ones."""
    picture, half = Picture(2.05), len(strand) // 2
    owner = ["ACGT".index(base) for base in strand]
    owner[stem:-stem] = [-1] * (len(strand) - 2 * stem)
    boxes = []
    for y, ids in (0.45, range(half)), (1.35, range(len(strand) - 1, half - 1, -1)):
        bases = [[strand[i] for i in ids]]
        style = {"owner": [[owner[i] for i in ids]], "cell": 0.55}
        boxes.append(picture.grid((0.5, y), bases, **style))
        for j, i in enumerate(ids):
            at = boxes[-1].cell(0, j).middle[0], y + (-0.14 if y < 1 else 0.42)
            picture.note(at, str(i), align="center")
    for j in range(stem):
        picture.wire(*[box.cell(0, j) for box in boxes], "weight", head=False)
    turn = [(6.3, box.middle[1]) for box in boxes]
    picture.wire(boxes[0].right, boxes[1].right, via=turn, text="loop")
    picture.publish(title)


def cuts(image: Tensor, ways, *, title: str) -> None:
    """Draw an 8 × 8 image for each way to cut it, with five tokens in a colour each.

    Args:
        ways: functions (images, patch_size) -> tokens (B, N, P²), for patches of 2 × 2.
    """
    pixels, colours = torch.arange(64).view(1, 1, 8, 8), torch.tensor([0, 1, 2, 3, 5])
    grids = []
    for cut in ways:
        owner = torch.full((64,), 4)  # grey
        owner[cut(pixels, 2)[0, :5]] = colours[:, None]
        name = cut.__name__
        grids.append({"values": image, "owner": owner.view(8, 8), "name": name})
    row(*grids, title=title)


# --- 10: what blocks, caches and shared heads save ------------------------------------


def causal_blocks(num_blocks: int, *, title: str) -> None:
    """Draw the blocks of a causal score matrix: computed, masked, or hidden."""
    texts = [
        ["with a mask" if i == j else "computed" for j in range(num_blocks)]
        for i in range(num_blocks)
    ]
    names = {
        "rows": [f"queries {i + 1}" for i in range(num_blocks)],
        "columns": [f"keys {j + 1}" for j in range(num_blocks)],
        "mask": torch.ones(num_blocks, num_blocks, dtype=torch.bool).tril(),
    }
    row({"values": texts, "role": "score", "cell": 0.95, **names}, title=title)


def new_row(before, after, words, *, title: str) -> None:
    """Draw causal weights before and after the last word, whose row alone is new.

    Args:
        before, after: `(T - 1, T - 1)` and `(T, T)`, the weights.
        words: T of them.
    """
    parts = []
    for weights in (before, after):
        n = len(weights)
        mask = torch.ones(n, n, dtype=torch.bool).tril()
        names = {"rows": words[:n], "columns": words[:n], "name": f"{n} tokens"}
        parts.append({"values": weights, "mask": mask, "role": "weight", **names})
    row(parts[0], "→", parts[1] | {"lit": len(words) - 1}, title=title)


def shared_heads(counts, *, title: str) -> None:
    """Draw eight query heads above the key-value heads that they share.

    Args:
        counts: numbers of key-value heads, a line each, each a divisor of eight.
    """
    picture, left, step = Picture(1.75 * len(counts)), 1.35, 0.6
    for i, count in enumerate(counts):
        y, size = 0.15 + 1.75 * i, 8 // count
        for head in range(count):
            at = left + step * (size * head + (size - 1) / 2)
            key = picture.grid((at, y + 0.75), [[head]], "key", cell=0.34)
            picture.grid((at, y + 1.08), [[head]], "value", cell=0.34)
            for member in range(size * head, size * (head + 1)):
                where = left + step * member, y
                query = picture.grid(where, [[member]], "query", cell=0.34)
                picture.wire(query.bottom, key.top, "query")
        picture.note((0.05, y + 0.16), "query heads", "query")
        picture.note((0.05, y + 0.91), f"key heads: {count}", "key")
        picture.note((0.05, y + 1.24), f"value heads: {count}", "value")
    picture.publish(title)


# --- 13 ---------------------------------------------------------------------------

RING = {  # three processes with three shares of two numbers; "-" was sent on
    "before": ["1 2 3 4 5 6", "10 20 30 40 50 60", "100 200 300 400 500 600"],
    "after turn 1": ["1 2 303 404 - -", "- - 30 40 55 66", "110 220 - - 500 600"],
    "after turn 2": ["111 222 - - - -", "- - 333 444 - -", "- - - - 555 666"],
}
SPLITS = {  # colours of weights and tokens in process 0 and 1, and what is sent
    "the batch": ("4444", "4444", "0000 ----", "---- 1111", "gradients:\nall-reduce"),
    "the weights": (
        *("00--", "--11", "0000 ----", "---- 1111"),
        "weights: all-gather\ngradients:\nreduce-scatter",
    ),
    "the heads": (
        *("00--", "--11", "4444 4444", "4444 4444"),
        "outputs and\ngradients of inputs:\nall-reduce",
    ),
    "the tokens": (
        *("4444", "4444", "00-- 00--", "--11 --11"),
        "keys, values: a ring\ngradients:\nall-reduce",
    ),
}


def _colours(text):
    return [[-1 if c == "-" else int(c) for c in line] for line in text.split()]


def reduce_scatter(*, title: str) -> None:
    """Draw how three processes in a ring add up six numbers, in two turns."""
    picture, boxes = Picture(2.65), []
    for turn, (name, lines) in enumerate(RING.items()):
        left = 0.1 + 2.27 * turn
        picture.note((left + 1.08, 0.1), name, align="center", bold=True)
        boxes.append([])
        for rank, line in enumerate(lines):
            texts, first = line.split(), RING["before"][rank].split()
            owner = [-1 if t == "-" else rank if t in first else 4 for t in texts]
            cells = [["" if t == "-" else t for t in texts]]
            y, style = 0.5 + 0.8 * rank, {"owner": [owner], "cell": 0.36}
            if turn == 0:
                picture.note((left, y - 0.12), f"process {rank}")
            boxes[-1].append(picture.grid((left, y), cells, **style))
    for turn in range(2):
        for rank in range(3):
            share, to = (rank - turn - 1) % 3, (rank + 1) % 3
            start = boxes[turn][rank].cell(0, 2 * share)
            end = boxes[turn + 1][to].cell(0, 2 * share)
            x = start.x + start.width, end.x + end.width
            if to:
                picture.wire((x[0], start.y + LINE), (x[1], end.y))
                continue
            gap = 2.315 + 2.27 * turn  # up between two columns, past the row between
            via = [(x[0], 1.85), (gap, 1.85), (gap, 1.05), (x[1], 1.05)]
            picture.wire((x[0], start.y), (x[1], end.y + LINE), via=via)
    picture.publish(title)


def splits(*, title: str) -> None:
    """Draw what two processes hold, compute and send in four ways to share the work."""

    def draw(picture, left, state):
        left += 0.12
        for rank, y in enumerate((0.45, 2.95)):
            picture.note((left, y), f"process {rank}", bold=True)
            names = "holds weights", "computes tokens"
            for i, name in enumerate(names):
                owner = torch.tensor(_colours(state[2 * i + rank]))
                picture.note((left, y + 0.25 + 0.62 * i), name)
                at, cells = (left, y + 0.38 + 0.62 * i), [[""] * 4] * len(owner)
                style = {} if (owner == 4).any() else {"owner": owner}  # white: both
                picture.grid(at, cells, mask=owner >= 0, cell=0.26, **style)
        for end in (2.05, 2.75):
            picture.wire((left + 0.06, 2.38), (left + 0.06, end))
        picture.note((left + 0.16, 2.38), state[-1])

    frames(draw, SPLITS, height=4.6, title=title)


def sharded_weights(block: int, rest: int, *, title: str) -> None:
    """Draw the bytes of weights that one of two processes holds during a step.

    Args:
        block, rest: the bytes of each of two blocks, and of all other weights.
    """
    whole = {"block 1": (1, 4), "block 2": (2, 3), "the rest": (1, 2, 3, 4)}
    sizes = {"block 1": block, "block 2": block, "the rest": rest}
    moments = "stored", "forward\nblock 1", "forward\nblock 2"
    moments += "backward\nblock 2", "backward\nblock 1", "Adam's step"
    held = [
        [sizes[name] // (1 if i in at else 2) for i in range(6)]
        for name, at in whole.items()
    ]
    owner = [[3 if i in at else 0 for i in range(6)] for at in whole.values()]
    held.append([sum(numbers) for numbers in zip(*held)])
    texts = [[f"{n:,}" for n in line] for line in held]
    picture = Picture(2.9)
    style = {"rows": [*whole, "together"], "owner": [*owner, [-1] * 6], "cell": 0.98}
    box = picture.grid((0.85, 0.5), texts, **style)
    for i, name in enumerate(moments):
        picture.note((box.cell(0, i).middle[0], 0.22), name, align="center")
    gathers = "block 1, rest", "block 2", "block 2", "block 1"
    for i, name in enumerate(gathers, start=1):
        x = box.cell(0, i).x
        picture.wire((x, 2.0), (x, box.bottom[1]))
        picture.note((x, 2.2), f"all-gather\n{name}", align="center")
    for i, name in (3, "block 2"), (4, "block 1, rest"):
        x, y = box.cell(3, i).bottom
        picture.wire((x, y), (x, 2.55))
        at = x + 0.2 * (i - 3.5), 2.72
        picture.note(at, f"reduce-scatter\n{name}", align="center")
    picture.publish(title)
