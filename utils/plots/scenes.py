"""Scenes: the diagrams of one notebook each, in one call."""

import math
from dataclasses import replace

import torch
from torch import Tensor

from utils.plots.picture import LINE, Box, Picture, column, frames, row
from utils.plots.publishing import WIDTH, expect, format_number

# --- the way from a text to its next token ------------------------------------------

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
    scores = (roles[0] @ roles[1].mT / 2**0.5).masked_fill(~mask, -torch.inf)
    weights = scores.softmax(dim=-1)
    share = picture.grid(
        (5.5, 2.18), weights, "weight", "weights", mask=mask, cell=0.41
    )
    picture.wire(score, softmax, "score")
    picture.wire(softmax, share, "weight")
    mix = picture.sign((6.1, 3.4), "×")
    picture.wire(share.bottom, mix.top, "weight")
    corner = [(4.6, boxes[2].right[1]), (4.6, 3.4)]
    picture.wire(boxes[2].right, mix.left, "value", via=corner)
    context = weights @ roles[2]
    end = picture.grid((5.65, 3.8), context, "output", "", cell=0.45)
    picture.wire(mix.bottom, end.top, "value")
    for x, y, number in ((2.5, 1.72, "04"), (4.62, 2.4, "03"), (5.95, 1.72, "05")):
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
    Picture: sun looks at Hello. Words: Hello sun. sun → Hello. sun → sun.
    """
    expect(len(lines) == len(weights), "weights", f"{len(lines)} rows", len(weights))
    height = 0.75 + 0.03 * max(map(len, lines))
    picture = Picture(height * len(lines) + 0.1)
    for i, (words, shares) in enumerate(zip(lines, weights)):
        best = max(range(len(words)), key=lambda j: shares[j])
        changed = [j for j, both in enumerate(zip(*lines)) if len(set(both)) > 1]
        roles = {best: "key", position: "query"}
        at = 0.1, 0.25 + i * height
        boxes = picture.sentence(at, words, roles=roles, lit=changed, gap=0.9)
        for j, box in enumerate(boxes):
            start, bend = boxes[position], 0.15 + 0.035 * abs(j - position)
            if j == position:  # from its left half to its right half
                start = replace(box, width=box.width / 3)
                box = replace(start, x=box.x + 2 * start.width)
            style = {"weight": float(shares[j]), "bend": bend}
            picture.wire(start, box, "weight", text=format_number(shares[j]), **style)
    picture.publish(title)


# --- sizes and angles ---------------------------------------------------------------


def sizes(*parts, title: str) -> None:
    """Draw the sizes of tensors as blank grids, with signs between them.

    Args:
        parts: texts such as "@", "=" or "softmax", and tuples (name, role, axes, shape)
            whose last two axes are drawn, such as ("Q", "query", "(T, d_k)", (5, 3)).

    >>> sizes(("Q", "query", "(T, d_k)", (5, 3)), "=", title="Five queries")
    Picture: Five queries. Q, shape (T, d_k) = (5, 3). =.
    """
    row(
        *(part if isinstance(part, str) else _blank(*part) for part in parts),
        title=title,
    )


def _blank(name, role, axes, shape):
    down, across = (1, *shape)[-2:]
    cells = [[""] * min(across, 16)] * min(down, 12)
    style = {"name": name, "role": role, "cell": 0.1 if across > 8 else 0.16}
    return {"values": cells, "shape": f"{axes}\n{shape}"} | style


def dials(angles, names, *, title: str, labels=None, seen=None) -> None:
    """Draw clocks, four to a line: a hand for each angle, from twelve o'clock on.

    Args:
        angles: `(N, T)` in radians, T hands for each of N clocks.
        names: one for each clock.
        labels: one for each hand.
        seen: for each clock an angle in radians up to which it is shaded.
    """
    picture = Picture(1.95 * -(-len(angles) // 4))
    for i, (hands, name) in enumerate(zip(angles, names)):
        at = 0.86 + 1.72 * (i % 4), 1.1 + 1.95 * (i // 4)
        shaded = 0 if seen is None else seen[i]
        picture.dial(at, hands, name, labels=labels, seen=shaded)
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

    Each column has one logit for each different word in the picture.
    """
    height, width = 1.5, 5.7 / len(words)
    vocabulary = {*words, *predictions}
    bottom = 1.6 + height * num_blocks
    picture = Picture(bottom + 0.25)
    columns = [1.0 + (i + 0.5) * width for i in range(len(words))]
    streams = [picture.word((x, bottom), word) for x, word in zip(columns, words)]
    for number in range(num_blocks):
        top = bottom - 0.35 - height * (number + 1)
        ground = [Box(1.05, top + 0.35, 5.65, height - 0.5)]
        picture.shelf(ground, f"block {number + 1}", kind="memory")
        at = columns[0] + width / 2, bottom - 0.52 - height * number
        picture.note(at, "attention", "value", align="center")
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
        at = x - 0.15 * len(vocabulary), 0.45
        logits = picture.grid(at, [[""] * len(vocabulary)], "score", cell=0.3)
        picture.wire(streams[i].top, logits.bottom, "x")
        picture.word((x, 0.15), word, lit=i == len(words) - 1)
    for y, name in ((0.15, "next"), (0.59, "logits"), (bottom, "embedding")):
        picture.note((0.05, y), name)
    picture.wire((0.35, bottom - 0.15), (0.35, 0.75), dashed=True, text="one table")
    picture.publish(title)


def stream(states, reads, *, title: str) -> None:
    """Draw one token's stream through a block: read, normalise, work, add.

    Args:
        states: the token's vector before attention, between, and after the MLP.
        reads: its normalised vector, as attention reads it, and as the MLP does.
    """
    picture, boxes = Picture(1.95), []
    for i, state in enumerate(states):
        name = ("x", "x + attention", "x + attention + MLP")[i]
        boxes.append(_draw_stream(picture, (0.1 + 2.55 * i, 0.35), state, name))
    for i, (read, part) in enumerate(zip(reads, ("attention", "MLP"))):
        plus = picture.sign((boxes[i].right[0] + 0.62, boxes[i].middle[1]), "+")
        picture.wire(boxes[i].right, plus.left, "x")
        picture.wire(plus.right, boxes[i + 1].left, "x")
        box = _draw_stream(picture, (boxes[i].x, 1.3), read, "norm")
        picture.wire(boxes[i].bottom, (box.middle[0], box.y - 0.24), "x")
        at = plus.middle[0] - 0.4, box.middle[1] - 0.19
        work = picture.block(at, part, size=(0.8, 0.38))
        picture.wire(box.right, work.left, "x")
        picture.wire(work.top, plus.bottom, "x")
        if part == "attention":
            start = work.bottom[0], work.bottom[1] + 0.2
            picture.wire(start, work.bottom, "x")
            picture.note((start[0] + 0.1, start[1]), "norm of the first token", "x")
    picture.publish(title)


def _draw_stream(picture, at, vector, name):
    texts = [format_number(v, 1).removesuffix(".0") for v in vector]
    return picture.grid(at, texts, "x", name, cell=0.38)


def true_scale(shapes: dict, *, title: str) -> None:
    """Draw matrices of 4 bytes a number true to scale, so that their areas compare.

    Args:
        shapes: dict from a name to `(rows, columns)`.
    """
    picture, unit = Picture(2.95), 2.2 / max(map(max, shapes.values()))
    free = WIDTH - 0.9 - sum(unit * columns for _, columns in shapes.values())
    x = 0.45
    for name, (rows, columns) in shapes.items():
        size = unit * columns, unit * rows
        middle, *_ = picture.block((x, 0.3), "", "learned", size=size).middle
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
    largest, total, sums = -torch.inf, 0.0, 0.0
    for i, part in enumerate(parts):
        y = 0.75 + 1.15 * i
        labels = {"rows": ["key", "value"], "name": f"block {i + 1}"}
        numbers = torch.stack([scores[part], values[part]])
        box = picture.grid((1.15, y), numbers, None, **labels)
        old, largest = largest, max(largest, float(scores[part].max()))
        factor, exps = math.exp(old - largest), torch.exp(scores[part] - largest)
        total = total * factor + float(exps.sum())
        sums = sums * factor + float(exps @ values[part])
        state = [[format_number(n) for n in (largest, total, sums)]]
        columns = ["max m", "sum l", "sum a"]
        end = picture.grid((4.2, y + 0.14), state, "score", columns=columns, cell=0.6)
        picture.wire(box.right, end.left, text="fetched")
    result = picture.grid((1.5, 2.95), [sums / total], "output", rows=["output"])
    corner = [(end.bottom[0], result.right[1])]
    picture.wire(end.bottom, result.right, "value", via=corner, text="a ÷ l")
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
    has_vector = way == "one vector"
    picture.note((left + 0.1, 0.12), way, bold=True)
    encoder = picture.block((left + 0.1, 3.2), f"encoder: {reads}", size=(2.85, 0.37))
    states = []
    for i, word in enumerate(FRENCH):
        x = left + 0.4 + 0.76 * i
        box = picture.word((x, 4.0), word)
        picture.wire(box.top, (x, 3.57))
        state = picture.grid((x - 0.15, 2.6), [[""]], "key", cell=0.3)
        picture.wire((x, 3.2), state.bottom, "key")
        states.append(state)
    found = picture.block(
        (left + 0.1, 1.75), f"find:\n{find}", size=(1.0, 0.55), lit=True
    )
    decoder = picture.block((left + 0.1, 0.95), f"decoder: {writes}", size=(3.2, 0.37))
    if has_vector:
        vector = picture.grid((left + 3.0, 2.6), [[""]], "value", cell=0.3)
        picture.wire(encoder.right, vector.bottom, via=[(vector.bottom[0], 3.38)])
        corner = [(vector.top[0], 2.45), (found.bottom[0], 2.45)]
        picture.wire(vector.top, found.bottom, "value", via=corner)
    else:
        for state in states:
            corner = [(state.top[0], 2.45), (found.bottom[0], 2.45)]
            picture.wire(state.top, found.bottom, "key", via=corner)
    up = found.top[0], decoder.bottom[1]
    picture.wire(found.top, up, "value", text="found")
    picture.step((left + 0.2, 1.53), 2)
    for x, word in ((1.75, first), (2.85, "the")):
        box = picture.word((left + x, 1.95), word)
        picture.wire(box.top, (left + x, decoder.bottom[1]))
        asking = not has_vector and word == ("the" if first == "<start>" else first)
        if asking:
            corner, end = (left + x, 2.25), (found.right[0], 2.25)
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


# --- 03 and 04: the frame of attention ----------------------------------------------

LANES = {"query": 0.62, "keys": 1.2, "score": 1.77, "weight": 2.06, "values": 2.6}
LANES |= {"context": 3.25}  # inches below the title


def attention_frame(
    words,
    followed: int,
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    title: str,
    divisor: tuple[str, float] | None = None,
    mask=None,
    plain: bool = False,
    lanes: dict | None = None,
) -> None:
    """Draw what one word takes from all: query, keys, scores, weights, values, sum.

    Args:
        words: one column each; `followed` is the number of the one with the query.
        query: (K,)
        keys, values: (T, K) and (T, V)
        divisor: what the scores are divided by, as text and number: ("√2", 2**0.5).
        mask: boolean (T,), True = may attend.
        plain: the three roles are one vector, so they have no colour (notebook 03).
        lanes: other names for the lanes, such as {"keys": "labels"}.
    """
    names = {lane: lane for lane in LANES}
    if divisor:
        names["score"] = f"score, ÷ {divisor[0]}"
    picture, left = Picture(LANES["context"] + 0.4), 1.05
    for lane, name in (names | (lanes or {})).items():
        middle = LANES[lane] + (0 if lane == "score" else LINE / 2)
        picture.note((0.05, middle), name)
    vectors = query, keys, values
    options = {"divisor": divisor, "mask": mask, "plain": plain}
    _draw_attention(picture, left, WIDTH - left, words, followed, vectors, **options)
    picture.publish(title)


def attention_in_sentences(sentences, followed: int, *, title: str) -> None:
    """Draw plain attention for the same word in several sentences, side by side.

    Args:
        sentences: pairs of words and their x (T, D).
        followed: the position of that word.
    """
    picture, width = Picture(LANES["context"] + 0.4), WIDTH / len(sentences)
    for i, (words, x) in enumerate(sentences):
        vectors = x[followed], x, x
        _draw_attention(picture, i * width, width, words, followed, vectors, plain=True)
    picture.publish(title)


def _draw_attention(
    picture, left, width, words, followed, vectors, divisor=None, mask=None, plain=False
):
    query, keys, values = vectors
    scores = keys @ query
    scaled = scores / (divisor[1] if divisor else 1)
    allowed = torch.ones(len(words), dtype=torch.bool) if mask is None else mask
    weights = scaled.masked_fill(~allowed, -torch.inf).softmax(dim=0)
    step = width / len(words)
    middles = [left + (j + 0.5) * step for j in range(len(words))]
    cell = min(0.5, (step - 0.1) / max(keys.shape[1], values.shape[1]))
    roles = ["x"] * 4 if plain else ["query", "key", "value", "output"]
    digits = 2 if step > 1.2 else 1

    def draw(j, lane, numbers, role, cell=cell, **style):
        place = middles[j] - cell * len(numbers) / 2, LANES[lane]
        return picture.grid(place, numbers, role, cell=cell, **style)

    start = draw(followed, "query", query, roles[0])
    frame = {"lit": 0} if plain else {}
    context = draw(followed, "context", weights @ values, roles[3], **frame)
    if width > WIDTH / 2:  # there is room, and names of lanes on the left
        picture.step((start.x - 0.16, start.middle[1]), 1)
        picture.step((left - 0.1, LANES["score"]), 2)
        picture.step((left - 0.1, LANES["weight"] + LINE / 2), 3)
        picture.step((context.x, context.y - 0.16), 4)
    for j, word in enumerate(words):
        picture.word((middles[j], 0.3), word, lit=j == followed)
        key = draw(j, "keys", keys[j], roles[1])
        shown = {"cell": 2 * cell, "mask": allowed[None, j : j + 1]}
        weight = draw(j, "weight", weights[j : j + 1], "weight", **shown)
        value = draw(j, "values", values[j], roles[2])
        numbers = (scores, scaled) if divisor else (scores,)
        text = " → ".join(format_number(float(s[j]), digits) for s in numbers)
        if not allowed[j]:
            text = f"{format_number(float(scaled[j]), digits)} → −∞"
        x, y, share = middles[j], LANES["score"], float(weights[j])
        picture.note((x, y), text, "score", align="center")
        _wire_between(picture, start, key, x, roles[0])
        picture.wire(key.bottom, (x, y - 0.1), "score")
        picture.wire((x, y + 0.1), weight.top, "weight")
        picture.wire(weight.bottom, value.top, "weight", weight=share, head=False)
        _wire_between(picture, value, context, x, roles[2], share)
    return context


def _wire_between(picture, start, end, column, role, weight=None):
    """Wire two boxes, straight down in one column, else along the lane of one."""
    if start.middle[0] == end.middle[0]:
        picture.wire(start.bottom, end.top, role, weight=weight)
    elif start.middle[0] == column:  # down first
        side = end.left if column < end.middle[0] else end.right
        via = [(column, side[1])]
        picture.wire(start.bottom, side, role, weight=weight, via=via)
    else:
        side = start.left if column < start.middle[0] else start.right
        picture.wire(side, end.top, role, weight=weight, via=[(column, side[1])])


def attention_products(x: Tensor, words, *, title: str) -> None:
    """Draw softmax(x xᵀ) x as two products: factors left and above, results between."""
    weights = (x @ x.mT).softmax(dim=-1)
    cell, bottom = 0.45, 1.65
    picture = Picture(bottom + len(x) * LINE + 0.3)
    high = len(x) * LINE
    left = picture.grid((0.75, bottom), x, "x", "x", rows=words, cell=cell)
    above_at = left.right[0] + 0.2, bottom - 0.3 - x.shape[1] * LINE
    above = picture.grid(above_at, x.mT, "x", "xᵀ", cell=cell)
    scores = picture.grid((above.x, bottom), x @ x.mT, "score", cell=cell)
    at = scores.right[0] + 0.95, bottom
    shares = picture.grid(at, weights, "weight", "weights", cell=cell)
    picture.wire(scores, shares, "weight", text="softmax")
    at = shares.right[0] + 0.2, bottom - 0.3 - high
    again = picture.grid(at, x, "x", "x", cell=cell)
    picture.grid((again.x, bottom), weights @ x, "x", cell=cell)
    low = bottom + high + 0.15
    picture.note((scores.middle[0], low), "scores", "score", align="center")
    picture.note((again.middle[0], low), "contexts", "x", align="center")
    picture.publish(title)


# --- 04 ---------------------------------------------------------------------------


def both_directions(x: Tensor, words, W_query, W_key, *, title: str) -> None:
    """Draw the score of two words in both directions, with what each goes through.

    Args:
        x: (2, D); words: their names.
        W_query, W_key: (D, K)
    """
    picture, middle = Picture(2.15), WIDTH / 2
    for y, (i, j) in ((0.4, (0, 1)), (1.5, (1, 0))):
        dot = picture.sign((middle, y + LINE / 2), "·", "score")
        query, key = x[i] @ W_query, x[j] @ W_key
        _draw_projection(picture, y, -1, x[i], words[i], "W_q", query, "query", dot)
        _draw_projection(picture, y, 1, x[j], words[j], "W_k", key, "key", dot)
        score = format_number(float(query @ key), 2)
        style = {"align": "center", "bold": True}
        picture.note((middle, y + 0.47), score, "score", **style)
    picture.publish(title)


def _draw_projection(picture, y, side, x, word, matrix, result, role, dot):
    """Draw x → matrix → result → dot, from the left (side -1) or from the right (1)."""
    cell, at = 0.38, 0.05

    def place(width):  # the left edge of the next mark, seen from its side
        nonlocal at
        start, at = at, at + width + 0.16
        return start if side < 0 else WIDTH - start - width

    row_x = picture.grid((place(cell * len(x)), y), x, "x", word, cell=cell)
    size = 0.48, 0.38
    block = picture.block((place(size[0]), y - 0.05), matrix, "learned", size=size)
    at_result = place(cell * len(result)), y
    projected = picture.grid(at_result, result, role, role, cell=cell)
    picture.wire(row_x, block, "x")
    picture.wire(block, projected, role)
    picture.wire(projected, dot, role)


ROOM = "Ann", "Bob", "Cleo", "Dan"


def room(people: Tensor, answers: Tensor, *, title: str) -> None:
    """Draw a room of notebook 04: wanted, name, extension, and the answer.

    Args:
        people: (4, 38), of which the first two numbers of each name are drawn.
        answers: (4,)
    """
    extension = people[:, 32:].argmax(dim=-1, keepdim=True)
    row(
        {"values": people[:, 16:18], "role": "query", "name": "wants", "rows": ROOM},
        {"values": people[:, :2], "role": "key", "name": "name"},
        {"values": extension, "role": "value", "name": "extension", "cell": 0.6},
        "→",
        {"values": answers[:, None], "role": "output", "name": "answer", "cell": 0.6},
        title=title,
    )


def name_match(people: Tensor, *, title: str, shown: int = 10) -> None:
    """Draw the products of the name that Ann wants with Cleo's and with Bob's.

    Args:
        people: (4, 38), a room in which Ann wants Cleo.
        shown: how many of the 16 numbers are drawn; the sums are over all.
    """
    picture, left, cell = Picture(2.3), 1.05, 0.47
    wanted = people[0, 16:32]

    def line(y, label, numbers, role):
        picture.grid((left, y), numbers[:shown], role, rows=[label], cell=cell)

    line(0.1, "Ann wants", wanted, "query")
    for i, y in ((2, 0.6), (1, 1.45)):
        name = people[i, :16]
        line(y, f"{ROOM[i]} is", name, "key")
        line(y + LINE, "product", wanted * name, "score")
        total = format_number(float(wanted @ name), 1)
        place = left + shown * cell + 0.1, y + 1.5 * LINE
        picture.note(place, f"… sum {total}", "score", bold=True)
    picture.publish(title)


# --- the hour ---------------------------------------------------------------------


def projections(x: Tensor, words, features, matrices: dict, *, title: str) -> None:
    """Draw x times each matrix: x on the left, the matrices above, the products below.

    Args:
        x: (T, D); words: T names; features: D names.
        matrices: dict from a role ("query" …) to (D, K).
    """
    high = x.shape[1] * LINE
    picture = Picture(0.9 + high + len(x) * LINE)
    bottom = 0.65 + high
    left = picture.grid((0.6, bottom), x, "x", "x", rows=words, cell=0.38)
    for i, (role, matrix) in enumerate(matrices.items()):
        at, rows = 3.05 + 1.45 * i, features if i == 0 else None
        style = {"cell": 0.42, "rows": rows}
        above = picture.grid((at, 0.3), matrix, role, f"W_{role}", **style)
        below = picture.grid((at, bottom), x @ matrix, role, cell=0.42)
        picture.wire(above, below, role)
        at = below.bottom[0], below.bottom[1] + 0.13
        picture.note(at, role, role, align="center", bold=True)
    y = bottom + len(x) * LINE / 2
    picture.wire(left, (3.0, y), "x")
    picture.publish(title)


def attention_heads(
    words, followed: int, heads: dict, W_out, features, *, title: str
) -> None:
    """Draw what one word takes in each of two heads, joined and sent through out_proj.

    Args:
        heads: dict from a name to queries, keys and values, each (T, K).
        W_out: (2 * K, D); features: the names of the D numbers of the output.
    """
    picture, left, contexts = Picture(4.5), 0.62, []
    width = (WIDTH - left) / 2
    for lane, y in LANES.items():
        picture.note((0.02, y + (0 if lane == "score" else LINE / 2)), lane)
    for i, (name, (query, key, value)) in enumerate(heads.items()):
        start, vectors = left + i * width, (query[followed], key, value)
        picture.note((start + width / 2, 0.02), name, align="center", bold=True)
        options = {"divisor": ("√d_k", key.shape[1] ** 0.5)}
        box = _draw_attention(
            picture, start, width, words, followed, vectors, **options
        )
        weights = (key @ query[followed] / key.shape[1] ** 0.5).softmax(dim=0)
        contexts.append(weights @ value)
        middle, y = 0.75 + 0.5 * (0.5 + i) * value.shape[1], 3.67 + 0.15 * i
        corners = [(box.bottom[0], y), (middle, y)]
        picture.wire(box.bottom, (middle, 4.15), "value", via=corners)
    joined = torch.cat(contexts)
    box = picture.grid((0.75, 4.15), joined, "output", rows=["joined"], cell=0.5)
    block = picture.block((3.1, 4.1), "out_proj", "learned", size=(0.95, 0.38))
    picture.wire(box, block, "value")
    style = {"columns": features, "cell": 0.58}
    end = picture.grid((4.45, 4.15), joined @ W_out, "output", **style)
    picture.wire(block, end, "value")
    picture.publish(title)


def head_split(queries: Tensor, num_heads: int, words, *, title: str) -> None:
    """Draw queries cut into heads by view and transpose, and by view alone.

    Args:
        queries: (T, D), the heads side by side; a word has its own colour.
    """
    owner = torch.arange(len(queries))[:, None].expand(queries.shape).contiguous()
    style = {"rows": words, "name": "queries"}
    grids = [{"values": queries, "owner": owner} | style]
    for name in ("head", "view alone:"):
        for i in range(num_heads):
            if name == "head":
                cut = [m.view(len(m), num_heads, -1)[:, i] for m in (queries, owner)]
            else:
                cut = [m.view(num_heads, len(m), -1)[i] for m in (queries, owner)]
            grids.append({"values": cut[0], "owner": cut[1], "name": f"{name} {i}"})
    row(*grids, title=title)


def softmax_sum(scores: Tensor, words, *, title: str) -> None:
    """Draw the softmax's sum with the last word, which is hidden, inside and outside.

    Args:
        scores: (T,), one score for each word.
    """
    picture, others = Picture(2.85), torch.arange(len(scores)) < len(scores) - 1
    outside = scores.masked_fill(~others, -math.inf)
    for y, name, row_scores in ((0.5, "after", scores), (1.95, "before", outside)):
        exponentials = row_scores.exp()
        weights = (exponentials / exponentials.sum()).masked_fill(~others, 0.0)
        total = format_number(exponentials.sum().item())
        lanes = ("score", row_scores), (None, exponentials), ("weight", weights)
        boxes = []
        for x, (role, numbers) in zip((0.15, 2.6, 5.1), lanes):
            style = {"columns": words, "cell": 0.55}
            if role == "weight":
                style["mask"] = others[None]
            boxes.append(picture.grid((x, y + 0.3), numbers, role, **style))
        picture.wire(boxes[0], boxes[1], "score", text="exp")
        picture.wire(boxes[1], boxes[2], "weight", text=f"÷ {total}")
        picture.note((0.15, y - 0.25), f"hidden {name} the softmax", bold=True)
        summed = replace(boxes[1], y=boxes[1].y - 0.2, height=boxes[1].height + 0.2)
        if name == "before":  # the hidden word, the last one, is outside
            summed = replace(summed, width=0.55 * (len(words) - 1))
        picture.shelf([summed], f"the sum: {total}", "memory")
    picture.publish(title)


# --- 06 ---------------------------------------------------------------------------


def multi_head_layer(words, widths: tuple[int, int], *, title: str) -> None:
    """Draw a layer with two heads by its shapes: project, split, attend, join, project.

    Args:
        words: T of them.
        widths: of x, and of both heads together.
    """
    T, (d_in, D) = len(words), widths
    K, high = D // 2, len(words) * LINE
    mask = torch.ones(T, T, dtype=torch.bool).tril()
    picture, tops = Picture(2.2 + 2 * high), (0.5, 1.75 + high)
    middle = (tops[0] + tops[1] + high) / 2

    def blank(x, y, width, role, name, **style):
        cells = [[""] * width] * T
        return picture.grid((x, y), cells, role, name, cell=0.15, **style)

    style = {"rows": words, "shape": f"({T}, {d_in})"}
    x = blank(0.62, middle - high / 2, d_in, "x", "x", **style)
    style = {"columns": [0] * K + [1] * K, "shape": f"({T}, {D})"}
    joined = blank(5.6, tops[0] + 0.2, D, "output", "joined", **style)
    size = 0.95, 0.37
    out = picture.block((5.43, middle - 0.07), "out_proj", "learned", size=size)
    shape = f"({T}, {D})"
    output = blank(5.6, tops[1] + 0.2, D, "output", "output", shape=shape)
    for head, top in enumerate(tops):
        ground = [Box(2.95, top, 2.05, high + 0.35)]
        shelf = picture.shelf(ground, f"head {head}", "head")
        for i, role in enumerate(MATRICES):
            shape = f"3 × ({T}, {K})" if i == 0 else ""
            box = blank(2.97 + 0.35 * i, top + 0.2, K, role, role[0], shape=shape)
            y = middle + (i - 1) * 0.9
            if head == 0:
                text, start = f"W_{role}", (1.55, y - 0.18)
                block = picture.block(start, text, "learned", size=size)
                corner = [(1.4, middle), (1.4, y)] if i != 1 else []
                picture.wire(x.right, block.left, "x", via=corner)
            start, end = (2.5, y), (shelf.x, box.middle[1] + (i - 1) * 0.4)
            turn = ((2.8, 2.72, 2.64), (2.56, 2.72, 2.8))[head][i]
            picture.wire(start, end, role, via=[(turn, y), (turn, end[1])])
        style = {"mask": mask, "shape": f"({T}, {T})"}
        share = blank(4.07, top + 0.2, T, "weight", "weights", **style)
        goal = joined.left[0], joined.row((T - 1) * head).middle[1]
        via = [(5.25, share.right[1]), (5.25, goal[1])]
        picture.wire(share.right, goal, "value", via=via)
    picture.wire((out.middle[0], joined.bottom[1] + 0.22), out.top, "value")
    picture.wire(out.bottom, (out.middle[0], output.y - 0.24), "value")
    picture.publish(title)
