"""Scenes: the diagrams of one notebook each, in one call, in the order of notebooks.

Each function draws on a picture, which `scene` makes and publishes below a `title`.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import torch
from matplotlib.collections import QuadMesh
from torch import Tensor

from utils.attention import causal_mask, masked_softmax
from utils.plots.picture import LINE, THINNEST, Box, scene
from utils.plots.publishing import (
    format_number,
    in_course_style,
    new_figure,
    publish,
    short_number,
    text_width,
    to_array,
    visible,
)
from utils.plots.theme import GREY, INK, NAME, PALE, SERIES, WIDTH
from utils.tokenizer import decode_bpe


def _tenths(rows):
    """Return rows of numbers as texts with at most one decimal: 1 and −0.6."""
    return [[short_number(number, 1) for number in numbers] for numbers in rows]


# --- 00 and the glossary: the way from a text to its next token -------------------

MATRICES = {
    "query": [[4.0, 0], [0, 0], [0, 2], [0, 0]],
    "key": [[0.0, 1], [0, 0], [1, 0], [0, 0]],
    "value": [[2.0, 1], [0, 0], [0, 3], [0, 0]],
}
PIPELINE = {  # from a text to the next token: a name, and the notebooks that explain it
    **{"tokens": "01", "embeddings": "02", "positions": "02, 10", "blocks × L": "08"},
    **{"logits": "08", "next token": "08"},
}


@scene
def machine(picture):
    """Draw the way of a text to its next token, and below it a head of attention."""
    start = _draw_pipeline(picture).bottom
    ground = _draw_head(picture, 1.2)
    picture.wire(start, (start[0], ground.y), head=False, dashed=True)


@scene
def way(picture):
    """Draw the way of a text to its next token, without what is inside the blocks."""
    blocks = _draw_pipeline(picture)
    text = "in each: attention, 03 to 06"
    picture.note((blocks.middle[0], blocks.bottom[1] + 0.15), text, align="center")


@scene
def opened_head(picture):
    """Draw a head of attention for two words, where *bites* is left to compute."""
    _draw_head(picture, 0.35, finished=False)


def _draw_pipeline(picture):
    """Draw the boxes of `PIPELINE` in a row, and return that of the blocks."""
    x, boxes = 0.05, []
    for name, numbers in PIPELINE.items():
        boxes.append(picture.block((x, 0.25), name))
        picture.note((boxes[-1].middle[0], 0.12), numbers, align="center")
        x += boxes[-1].width + 0.22
    picture.chain(*boxes)
    return boxes[3]


def _draw_head(picture, top, finished=True):
    """Draw one head of attention from `top` on, and return the ground below it.

    The words have the features of 04: creature, animal, action and place. The values
    are such that each number of the output is a mixture of two.
    """
    text = "in each block: attention, one of several heads (06)"
    ground = picture.shelf(Box(0.15, top, 6.6, 3.2), text, "memory")
    x = torch.tensor([[1.0, 1, 0, 0], [0, 0, 1, 1]])
    words = ["dog", "bites"]
    inputs = picture.grid((0.58, top + 1.3), x, "x", "x", rows=words, cell=0.42)
    vectors, ends = {}, {}
    for (role, matrix), y in zip(MATRICES.items(), (0.4, 1.45, 2.5)):
        place, size = (2.45, top + y + 0.095), (0.8, 0.37)
        block = picture.block(place, f"W_{role}", "learned", size=size)
        picture.wire(inputs, block, turn=2.37)
        vectors[role] = x @ torch.tensor(matrix)
        ends[role] = picture.grid((3.4, top + y), vectors[role], role, role, cell=0.4)
        picture.wire(block, ends[role])
    mask = causal_mask(2)
    weights = masked_softmax(vectors["query"] @ vectors["key"].mT / 2**0.5, mask)
    context = weights @ vectors["value"]
    if not finished:
        weights, context = (
            [[format_number(v, 2) for v in matrix_rows[0]], ["?", "?"]]
            for matrix_rows in (weights, context)
        )
    score = picture.sign((4.5, top + 1.2), "×")
    for role in ("query", "key"):
        picture.wire(ends[role], score, turn=4.5)
    steps = [picture.sign((5.0, top + 1.2), "÷ √2", "score")]
    steps.append(picture.sign((5.64, top + 1.2), "mask", "score"))
    steps.append(picture.sign((6.4, top + 1.2), "softmax", "weight"))
    style = {"mask": mask, "cell": 0.45}
    share = picture.grid((4.6, top + 1.78), weights, "weight", "weights", **style)
    mix = picture.sign((5.05, top + 2.78), "×")
    end = picture.grid((5.6, top + 2.5), context, "output", "output", cell=0.5)
    picture.chain(score, *steps)
    corner = 6.4, share.right[1]
    picture.wire(steps[-1].bottom, share.right, "weight", via=[corner])
    picture.chain(share, mix)
    picture.wire(ends["value"], mix)
    picture.chain(mix, end)
    notes = {(2.85, 0.35): "04", (4.67, 1.0): "03", (5.0, 0.97): "04"}
    notes |= {(5.64, 0.97): "05", (6.4, 0.97): "03", (5.25, 2.62): "03"}
    for (x, y), number in notes.items():
        picture.note((x, top + y), number, align="center")
    return ground


# --- 01 ---------------------------------------------------------------------------


@scene
def text_to_ids(picture, words, ids, merges: dict):
    """Draw the way of a text to its ids, with each merged piece below its two parts.

    words: together the text, at most 20 bytes
    ids: of the text, encoded with `merges`
    """
    parts = {new_id: pair for pair, new_id in merges.items()}
    leaves, x, text = [], 0.85, "".join(words)
    cell = min(0.5, (WIDTH - 0.85 - 0.1 * len(words)) / len(text.encode()))
    for word in words:
        box = picture.grid((x, 1.0), [[*word.encode()]], cell=cell)
        picture.grid((x, 0.56), [[""]], cell=box.width)
        leaves += [box.cell(0, j) for j in range(box.columns)]
        for letter in word:
            size = cell * len(letter.encode())
            picture.write(x + size / 2, 0.7, visible(letter))
            x += size
        x += 0.1
    left_to_right = iter(leaves)

    def draw(token):
        if token not in parts:
            return next(left_to_right)
        left, right = map(draw, parts[token])
        y = max(left.y, right.y) + 0.4
        for box in (left, right):
            picture.wire(box.bottom, (box.bottom[0], y), head=False)
        name = f"{visible(decode_bpe([token], merges))} {token}"
        size = right.at(1, 0)[0] - left.x, LINE
        return picture.block((left.x, y), name, "learned", size=size)

    boxes = [draw(token) for token in ids]
    low = max(box.y for box in boxes) + 0.68
    rows = {"text": 0.2, "words": 0.7, "bytes": 1.14, "pieces": 1.54, "ids": low}
    for name, y in (rows | {"vectors\n(02)": low + 0.52}).items():
        picture.note((0.1, y), name, bold=True)
    picture.note((0.85, 0.2), text)
    for token, box in zip(ids, boxes):
        picture.wire(box.bottom, (box.bottom[0], low - 0.14))
        picture.grid((box.bottom[0], low), [[token]], cell=cell, centred=True)
    picture.is_pale = True
    for x in [box.bottom[0] for box in boxes]:
        picture.grid((x, low + 0.52), [[""]] * 2, cell=cell, centred=True)


# --- 03 and on: who looks at whom -------------------------------------------------


def draw_looks(picture, lines, positions, weights):
    """Draw sentences with blue arrows from one word to those it looks at.

    lines: sentences, as lists of words; those that differ are bold, if they are few
    positions: of the word that looks, one for each line
    weights: a row for each line, one number a word; arrows from 0.05 on, and the word
        with the largest is green if that is above 0.3
    """
    changed = [j for j, words in enumerate(zip(*lines)) if len(set(words)) > 1]
    changed = changed if 2 * len(changed) < len(lines[0]) else []
    y, height = 0.4, 0.68 + 0.03 * max(map(len, lines))
    rows = zip(lines, positions, to_array(weights, "weights", 2), strict=True)
    for words, position, row_ in rows:
        roles = {row_.argmax(): "key"} if row_.max() > 0.3 else {}
        roles[position] = "query"
        boxes = _draw_sentence(picture, y, words, roles, changed)
        start = boxes[position]
        for j in sorted(range(len(words)), key=lambda j: abs(j - position)):
            weight, text = row_[j], format_number(row_[j])
            if j != position:
                nearer = row_[min(j, position) + 1 : max(j, position)] >= THINNEST
                bend = 0.08 + 0.02 * abs(j - position) + 0.16 * min(2, nearer.sum())
                style = {"weight": weight, "bend": bend, "text": text}
                picture.wire(start, boxes[j], "weight", **style)
            elif weight >= THINNEST:  # a loop above the word
                x, top = start.top
                ends = [replace(start, x=x + side, width=0) for side in (-0.17, 0.17)]
                picture.wire(*ends, "weight", weight=weight, bend=-0.2)
                picture.note((x, top - 0.3), text, "weight", align="center")
        y += height


looks = scene(draw_looks)


def _draw_sentence(picture, y, words, roles, bold):
    """Write words in a line, spread out as far as they fit; return their boxes."""
    texts, x, boxes = [visible(word) for word in words], 0.1, []
    widths = [text_width(text, NAME, "bold") for text in texts]
    gap = min(0.9, (WIDTH - 0.2 - sum(widths)) / max(1, len(texts) - 1))
    for i, (text, width) in enumerate(zip(texts, widths)):
        boxes.append(Box(x, y - 0.1, width, 0.2, text))
        color = INK[roles[i]] if i in roles else "black"
        weight = "bold" if i in bold or i in roles else "normal"
        picture.write(*boxes[i].middle, text, NAME, color=color, weight=weight)
        x += width + gap
    picture._add_sentence(f"Words: {' '.join(texts)}")
    return boxes


@scene
def both_ways(picture, words, vectors, W_query: Tensor, W_key: Tensor):
    """Draw the score of two words, and below it the one with the words exchanged.

    words, vectors: two of each; a vector has three numbers
    W_query, W_key: (3, 1), so that a query and a key are one number
    """
    columns = {0: 1.26, "W_query": 0.8, "query": 0.42, "·": 0.3, "key": 0.42}
    picture.lay_out({0: 1.1, 1: 1.1}, columns | {"W_key": 0.8, 1: 1.26})
    for row_, pair in enumerate(((0, 1), (1, 0))):
        dot, product = picture.sign(picture.at(row_, "·"), "·", "score"), 1
        parts = zip(pair, (W_query, W_key), ("query", "key"))
        for side, (word, W, role) in enumerate(parts):
            vector, name = vectors[word], f"W_{role}"
            start = picture.put(row_, side, vector, "x", 0.42, words[word])
            block = picture.block(picture.at(row_, name), name, "learned", centred=True)
            end = picture.put(row_, role, vector @ W, role, 0.42, role)
            picture.chain(start, block, end, dot)
            product = product * (vector @ W)
        at, style = (
            (dot.middle[0], dot.bottom[1] + 0.2),
            {"align": "center", "bold": True},
        )
        picture.note(at, f"score {product.item():.0f}", "score", **style)


# --- 03 to 06 ---------------------------------------------------------------------

LANES = {"word": 0.45, "query": 0.91, "key": 1.49, "score": 1.92, "weight": 2.35}
LANES |= {"value": 2.89, "context": 3.54}  # their middles, in inches below the title


def draw_attention(picture, left, width, words, followed, vectors):
    """Draw what one word takes from all, a column for each word.

    left, width: in inches, where the columns are
    words: one column each; `followed` is the number of the one with the query
    vectors: the query (d,), the keys (T, d) and the values (T, d)
    """
    query, keys, values = vectors
    scores, step = keys @ query, width / len(words)
    weights, cell = scores.softmax(dim=0), min(0.5, (step - 0.1) / len(query))

    def draw(j, lane, values, role="x", **style):
        at = left + (j + 0.5) * step, LANES[lane]
        return picture.grid(at, values, role, centred=True, **{"cell": cell} | style)

    start = draw(followed, "query", _tenths([query]))
    context = draw(followed, "context", weights @ values, lit=0)
    for j, word in enumerate(words):
        x, share = left + (j + 0.5) * step, float(weights[j])
        picture.word((x, LANES["word"]), word, lit=j == followed)
        key = draw(j, "key", _tenths([keys[j]]))
        picture.wire(start, key.top, turn=x)
        y, score = LANES["score"], format_number(scores[j], 1)
        picture.note((x, y), score, "score", align="center")
        picture.wire(key.bottom, (x, y - 0.1), "score")
        weight = draw(j, "weight", [share], "weight", cell=2 * cell)
        picture.wire((x, y + 0.1), weight.top, "weight")
        value = draw(j, "value", _tenths([values[j]]))
        style = {"weight": share, "head": False}
        picture.wire(weight.bottom, value.top, "weight", **style)
        picture.wire(value.bottom, context, "x", weight=share, turn=x)


@scene
def attention_and_mlps(picture, words, *, with_sums=False):
    """Draw a GPT of twelve blocks, and beside it the first of them, opened.

    words: three, each of which is followed by the next one, and the last by a stop
    with_sums: whether to draw that attention and MLP are added to what a word had
    """
    ends, side = [*words[1:], "."], 0.5 if with_sums else 0  # of what is added
    base = 3.2 if with_sums else 2.4  # of the opened block
    low = base + 0.72
    picture.note((0.6, 0.2), "words", align="center")
    picture.note((0.6, low), "next words", align="center")
    height = (low - 0.9) / 12
    places = [(0.25, 0.5 + j * height) for j in range(12)]
    size = 0.7, height - 0.04
    first, *_, last = [
        picture.block(at, str(j), "learned" if j > 1 else "op", size=size)
        for j, at in enumerate(places, 1)
    ]
    picture.wire((0.6, 0.3), first, "x")
    picture.wire(last, (0.6, low - 0.1), "x")
    corners = [(1.55, 0.55), (6.8, 0.55), (6.8, base), (1.55, base)]
    picture.wire(corners[0], corners[0], via=corners[1:], head=False, dashed=True)
    for start, end in ((first.at(1, 0), corners[0]), (first.at(1, 1), corners[3])):
        picture.wire(start, end, head=False, dashed=True)
    picture.note((1.65, 0.71), "block 1", bold=True)
    picture.shelf(Box(1.75, 1.1, 4.85, 0.55), "attention", "memory")
    middles = [2.5 + 1.7 * j for j in range(3)]
    for j, x in enumerate(middles):
        start, end = picture.word((x, 0.2), words[j]), picture.word((x, low), ends[j])
        at = x + side - 0.3, 1.87 + 0.87 * side
        alone = picture.block(at, "MLP", size=(0.6, 0.3))
        picture.wire(start.bottom, (x, 1.1), "x")
        picture.wire((x, base), end.top, "x", dashed=True, text="blocks 2 to 12")
        if with_sums:
            sums = [picture.sign((x, y), "+") for y in (1.9, 2.85)]
            picture.chain(Box(x, 1.1, 0, 0), *sums, Box(x, base, 0, 0))
            picture.wire((x + side, 1.65), sums[0], "value", via=[(x + side, 1.9)])
            picture.wire((x, 2.15), alone.top, "x", via=[(x + side, 2.15)])
            picture.wire(alone.bottom, sums[1], "x", via=[(x + side, 2.85)])
        else:
            picture.wire((x, 1.65), alone.top, "x")
            picture.wire(alone.bottom, (x, base), "x")
        for goal in middles[j:]:
            picture.wire((x, 1.1), (goal + side, 1.65), "value")


@scene
def formula(picture, words, query, key, value, followed: int, *, is_causal=True):
    """Draw the formula of attention with its numbers, its softmax opened.

    query, key, value: (T, d_k) each
    followed: the number of the word with a frame
    is_causal: whether each word sees only itself and those before it
    """
    T, d_k = query.shape
    products, mask = query @ key.mT, causal_mask(T) if is_causal else None
    weights, lit = masked_softmax(products / d_k**0.5, mask), {"lit": followed}
    named = lit | {"rows": words}
    grids = [(1.75, 0.28, query, "query", "Q", named)]
    grids += [(2.6, 0.28, key.mT, "key", "Kᵀ", {})]
    draw_product(picture, 0.75, "×", *grids)
    bar = 1.27
    picture.note((0.55, bar), "softmax", align="center", bold=True)
    for x, bracket in ((1.08, "("), (3.72, ")")):
        picture.write(x, bar - 0.1, bracket, 90, color=PALE)
    picture.wire((1.25, bar), (3.55, bar), head=False)
    picture.note((2.4, bar + 0.2), f"√{d_k}", align="center", bold=True)
    grids = [(4.5, 0.28, value, "value", "V", {})]
    grids += [(5.6, 0.35, weights @ value, "output", "context", lit)]
    draw_product(picture, bar, "=", *grids)
    picture.sign((4.17, bar), "×")
    top, low = 2.1, 3.5
    for x, corner in ((0.25, 0.1), (3.9, 6.8)):
        picture.wire((x, bar + 0.6), (corner, top), head=False, dashed=True)
    corners = [(0.1, top), (6.8, top), (6.8, low), (0.1, low)]
    picture.wire(corners[0], corners[0], via=corners[1:], head=False, dashed=True)
    masked, divided = lit | {"mask": mask}, _tenths(products / d_k**0.5)
    grids = [(0.75, 0.4, _tenths(products), "score", "scores", named)]
    name = "masked scores" if is_causal else "divided scores"
    grids += [(3.1, 0.4, divided, "score", name, masked)]
    grids += [(5.4, 0.4, weights, "weight", "weights", masked)]
    divide = f"÷ √{d_k}, mask →" if is_causal else f"÷ √{d_k} →"
    draw_product(picture, 2.93, [divide, "softmax →"], *grids)


def draw_product(picture, middle, signs, *grids):
    """Draw grids around one height, with signs between them; return their boxes."""
    boxes = []
    for left, cell, values, role, name, style in grids:
        at = left, middle - len(values) * LINE / 2
        boxes.append(picture.grid(at, values, role, name, cell=cell, **style))
    for sign, box, following in zip(signs, boxes, boxes[1:]):
        picture.sign(((box.right[0] + following.x) / 2, middle), sign)
    return boxes


@scene
def cache(picture):
    """Draw three steps with a cache: each new query looks at all keys so far."""
    lanes = {"key": 0.75, "value": 1.1, "query": 2.1}
    states = {"prefill: 0, 1": (0, 2), "decode: 2": (2, 1), "decode: 3": (3, 1)}
    for role, y in lanes.items():
        picture.note((0.02, y + LINE / 2), role, role)
    for i, (name, (num_cached, num_new)) in enumerate(states.items()):
        left = 0.55 + 2.3 * i
        picture.note((left + 0.6, 0.12), name, align="center", bold=True)
        picture.shelf(Box(left, 0.75, 1.54, 0.63), "cached", "cached")
        for j in range(num_cached + num_new):
            x = left + 0.4 * j
            roles = list(lanes)[: 2 if j < num_cached else 3]
            boxes = [picture.grid((x, lanes[r]), [j], r, cell=0.34) for r in roles]
            for k in range(j + 1 if j >= num_cached else 0):
                picture.wire(boxes[-1].top, (left + 0.4 * k + 0.17, 1.5), "query")


@scene
def shared_heads(picture, *counts: int):
    """Draw eight query heads above their key and value heads, once for each count.

    counts: of key heads, each a divisor of 8
    """
    for i, count in enumerate(counts):
        y = 0.15 + 1.75 * i
        picture.note((0.05, y + 0.16), "query heads", "query")
        picture.note((0.05, y + 0.91), f"key heads: {count}", "key")
        picture.note((0.05, y + 1.24), f"value heads: {count}", "value")
        for j in range(count):
            x = 1.4 + 4.8 / count * (j + 0.5)
            shared = picture.grid((x, y + 0.75), [[j]], "key", cell=0.34)
            picture.grid((x, y + 1.08), [[j]], "value", cell=0.34)
            for head in range(8 // count * j, 8 // count * (j + 1)):
                place = 1.7 + 0.6 * head, y
                querying = picture.grid(place, [[head]], "query", cell=0.34)
                picture.wire(querying.bottom, shared.top, "query")


@scene
def gpt(picture, words, predictions):
    """Draw tokens as columns that go through two blocks of a GPT to logits.

    The first block is drawn with all its parts, the second is closed.

    words: the input, a column each
    predictions: the word that each column predicts
    """
    num_logits, cell, low = len({*words, *predictions}), 0.26, 5.25
    columns = [1.75 + i * 5 / len(words) for i in range(len(words))]
    streams = [picture.word((x, low), word) for x, word in zip(columns, words)]
    for y, height, name in ((2.2, 2.7, "block 0"), (1.72, 0.0, "block 1")):
        picture.shelf(Box(1.05, y, 5.65, height), name, "memory")
    norms = [_draw_sublayer(picture, x, 3.7, "attention") for x in columns]
    for x in columns:
        _draw_sublayer(picture, x, 2.3, "MLP")
    for i, (x, stream) in enumerate(zip(columns, streams)):
        for norm in norms[:i]:  # attention reaches left only
            start = norm.right[0] - 0.1, norm.y
            picture.wire(start, (x + 0.13, 4.1), "value", weight=0.1)
        for y in (3.7, 2.3):
            below, stream = stream, picture.sign((x, y), "+")
            picture.wire(below.top, stream.bottom, "x")
        norm = picture.block((x - 0.31, 0.97), "norm", size=(0.62, 0.27))
        picture.wire(stream.top, norm.bottom, "x")
        place = x - num_logits * cell / 2, 0.45
        logits = picture.grid(place, [[""] * num_logits], "score", cell=cell)
        picture.wire(norm.top, logits.bottom, "x")
        picture.word((x, 0.15), predictions[i], lit=i == len(words) - 1)
    for y, name in ((0.15, "next"), (0.58, "logits"), (low, "embedding")):
        picture.note((0.05, y), name)
    picture.wire((0.35, low - 0.15), (0.35, 0.75), dashed=True, text="one table")


def _draw_sublayer(picture, x, y, part):
    """Draw norm and sublayer to the right of a stream, up to its + at (x, y)."""
    norm = picture.block((x + 0.13, y + 0.85), "norm", size=(0.62, 0.27))
    work = picture.block((x + 0.13, y + 0.2), part, size=(0.8, 0.27))
    role = "value" if part == "attention" else "x"
    picture.wire((x, norm.left[1]), norm.left, "x")
    picture.wire(norm.top, (norm.top[0], work.bottom[1]), role)
    picture.wire(work.top, (x + 0.12, y), role, turn=work.top[0])
    return norm


@scene
def stream(picture, states, reads):
    """Draw the streams of two tokens through a block: read, normalise, work, add.

    states: (2, D) each: the tokens before attention, between, and after the MLP
    reads: their normalised vectors, as attention reads them, and as the MLP does
    """
    names = "x", "+ attention", "+ MLP"
    columns = {"": 0.35, "x": 1.36, 0: 0, "+ attention": 1.36, 1: 0, "+ MLP": 1.36}
    picture.lay_out({"state": 1.0, "change": 1.0, "norm": 0.9}, columns)

    def draw(row_, column, numbers, name=""):
        return picture.put(row_, column, _tenths(numbers), "x", 0.34, name)

    boxes = [draw("state", name, state, name) for name, state in zip(names, states)]
    for i, part in enumerate(("attention", "MLP")):
        before, after = boxes[i : i + 2]
        plus = picture.sign(picture.at("state", i), "+")
        picture.chain(before, plus, after)
        norm, at = draw("norm", names[i], reads[i], "norm"), picture.at("norm", i)
        picture.wire(before.bottom, (norm.top[0], norm.y - 0.24), "x")
        work = picture.block(at, part, size=(0.72, 0.38), centred=True)
        change = draw("change", i, states[i + 1] - states[i])
        picture.chain(norm, work, change, plus)
    for i, text in enumerate(("first", "second")):
        picture.note((0.03, boxes[0].row(i).middle[1]), text)


# --- 11 ---------------------------------------------------------------------------


@scene
def latent_scores(picture, latent: Tensor, W_uk: Tensor, query: Tensor):
    """Draw the score of a query and a cached latent: by its key, and absorbed.

    The shapes are (d_c,), (d_c, d_k) and (d_k,).
    """
    key, absorbed = latent @ W_uk, query @ W_uk.mT
    cell, size = min(0.48, 1.55 / len(latent)), (0.75, 0.36)
    widths = cell * len(latent), size[0], cell * len(latent), size[0], cell * len(query)
    picture.lay_out({0: 1.1, 1: 1.1}, dict(enumerate(widths)))
    x, y = picture.at(0, 0)
    ground = Box(x - widths[0] / 2, y - 0.35, widths[0], 1.45 + LINE / 2)
    picture.shelf(ground, "cached", "cached")
    ways = ("W_uk", "key", "key", key), ("W_ukᵀ", "absorbed query", "query", absorbed)
    for i, (matrix, name, role, product) in enumerate(ways):
        cached = picture.put(i, 0, latent, "x", cell, "latent")
        asks = picture.put(i, 4, query, "query", cell, "query")
        start, other = (asks, cached) if i else (cached, asks)
        dot = picture.sign(picture.at(i, 1 if i else 3), "·", "score")
        at = picture.at(i, 3 if i else 1)
        block = picture.block(at, matrix, "learned", size=size, centred=True)
        between = picture.put(i, 2, product, role, cell, name)
        picture.chain(start, block, between, dot)
        picture.wire(other, dot)
        score = format_number(product @ (latent if i else query))
        at, style = (dot.middle[0], at[1] + 0.27), {"align": "center", "bold": True}
        picture.note(at, score, "score", **style)


# --- 12 ---------------------------------------------------------------------------


@scene
def pattern(picture, french: str, english: str):
    """Draw which word looks at which in a transformer that translates, as one grid.

    A row looks, a column is looked at: A is the encoder's self-attention, B the
    decoder's, and C its cross-attention.

    french: with `<end>`
    english: what the decoder reads, with `<start>`
    """
    source, words = len(french.split()), f"{french} {english}".split()
    looking, i = torch.arange(len(words))[:, None], torch.arange(len(words))
    cross, own = 3 * (i < source), 2 * (i >= source) * (i <= looking)
    kinds = torch.where(looking < source, 1 * (i < source), cross + own)
    texts = [[" ABC"[kind] for kind in row] for row in kinds.tolist()]
    cell = 5.9 / max(8, len(words))
    style = {"mask": kinds > 0, "owner": kinds - 1, "cell": cell}
    grid = picture.grid((0.85, 0.35), texts, rows=words, columns=words, **style)
    x, y = grid.cell(source, source).at(0, 0)
    for ends in ((x, grid.y), (x, grid.bottom[1])), ((grid.x, y), (grid.right[0], y)):
        picture.wire(*ends, head=False)


# --- 13 ---------------------------------------------------------------------------


@scene
def state_and_cache(
    picture, names, keys: Tensor, values: Tensor, query: Tensor, columns
):
    """Draw tokens written into one matrix, a query of it, and a cache that grows.

    names: two of them; keys: (2, d_k); values: (2, d_v); query: (d_k,)
    columns: d_v names
    """
    state = keys.mT @ values
    widths = {"": 0.35, "key": 0.42, "×": 0.24, "value": 0.84, "=": 0.24, "part": 0.84}
    widths |= {"+": 0.24, "state": 0.84, "gap": 0, "keys": 0.6, "values": 0.6}
    rows = {"query": 0.6, 0: 0.75, "state": 0.4, 1: 0.75, "output": 0.6}
    picture.lay_out(rows, widths)
    plus = picture.sign(picture.at("state", "+"), "+", "value")
    for i, (name, key, value) in enumerate(zip(names, keys, values)):
        picture.put(i, "key", key[:, None], "key", 0.42, "key")
        picture.label({i: name}, bold=[i])
        picture.sign(picture.at(i, "×"), "×")
        picture.put(i, "value", value, "value", 0.42, "value", columns=columns)
        picture.sign(picture.at(i, "="), "=")
        part = picture.put(i, "part", torch.outer(key, value), "value", 0.42)
        picture.wire(part, plus, turn=plus.middle[0])
    box = picture.put("state", "state", state, "value", 0.42)
    ground = picture.shelf(box, "state M", "memory")
    picture.wire(plus, box)
    start = picture.put("query", "state", query, "query", 0.42, "query")
    picture.wire(start.bottom, ground.top, "query")
    end = picture.put("output", "state", query @ state, "output", 0.42, "query M")
    picture.wire(ground.bottom, (end.top[0], end.y - 0.24), "value")
    for i, (key, value) in enumerate(zip(keys, values)):
        first = picture.put(i, "keys", key, "key", 0.3)
        last = picture.put(i, "values", value, "value", 0.3)
    top, width = picture.rows[0] - LINE / 2, last.right[0] - first.x
    ground = Box(first.x, top, width, last.bottom[1] - top)
    x, low = picture.shelf(ground, "a cache", "cached").bottom
    text = "one more key and\none more value\nper token"
    picture.note((x, low + 0.3), text, align="center")


@in_course_style
def capacity(counts, errors: dict, *, title: str) -> None:
    """Draw measured errors of a state that sums up pairs, and (n − 1) / d_k as lines.

    counts: numbers n of pairs
    errors: dict from a key width d_k to squared errors, one for each n, relative to
        the squared length of a value; at most three
    """
    fig = new_figure(3.3, "constrained")
    ax = fig.subplots()
    styles = zip(SERIES, "os^")
    for (width, measured), (color, marker) in zip(errors.items(), styles):
        expected = [(n - 1) / width for n in counts]
        ax.plot(counts, expected, color=color, label=f"(n − 1) / {width}")
        ax.plot(counts, measured, marker, color=color, label=f"d_k = {width}, measured")
    ax.set(xlabel="n, pairs in the state", ylabel="relative squared error")
    ax.set_xticks(counts)
    ax.grid(axis="y")
    fig.legend(loc="outside lower center", ncols=len(errors))
    widths = [*map(str, errors)]
    parts = {"Across": "pairs", "Up": "relative squared error", "Widths": widths}
    publish(fig, "Points on lines", title, parts)


# --- 15 ---------------------------------------------------------------------------


@scene
def images(picture, panels, names, notes, *, weights=None):
    """Draw images of 4 × 4 patches, four in a row, with a name above and a note below.

    panels: (n, 3, height, width), from 0 to 1
    weights: (n, 16): a patch is as bright as its weight, the brightest framed
    """
    lights = [None] * len(panels) if weights is None else weights
    parts = enumerate(zip(panels, lights, names, notes, strict=True))
    for i, (image, light, name, note) in parts:
        box = Box(0.15 + 1.7 * (i % 4), 0.3 + 2.15 * (i // 4), 1.5, 1.5)
        _draw_patches(picture, box, image, light)
        picture.write(box.top[0], box.y - 0.15, name, NAME, weight="bold")
        picture.write(box.bottom[0], box.bottom[1] + 0.16, note)
        framed = "" if light is None else f", patch {int(np.argmax(light))} framed"
        picture._add_sentence(f"Image: {name}, {note}{framed}")


def _draw_patches(picture, box, image, weights=None, num_patches=4):
    """Draw the pixels (3, height, width) of an image in a box, and lines between."""
    picture.num_colors = 200  # so that the shades of an image stay what they are
    image = to_array(image, "image", 3)
    height, width = image.shape[1:]
    image = 0.18 + 0.82 * image  # so that an empty patch shows how much light it gets
    if weights is not None:
        light = to_array(weights, "weights", 1).reshape(num_patches, num_patches)
        light = np.kron(0.35 + 0.65 * light, np.ones((height // num_patches,) * 2))
        image = image * light
    x = np.linspace(box.x, box.x + box.width, width + 1)
    y = np.linspace(box.y, box.y + box.height, height + 1)
    corners = np.stack(np.meshgrid(x, y), axis=-1)
    colors = image.transpose(1, 2, 0).clip(0, 1).reshape(-1, 3)
    style = {"facecolors": colors, "antialiased": False, "zorder": 2}
    picture.marks.append(partial(QuadMesh, corners, **style))
    places = replace(box, rows=num_patches, columns=num_patches)
    for i, j in np.ndindex(num_patches, num_patches):
        style = {"fill": False, "edgecolor": "#777777", "linewidth": 0.6, "zorder": 3}
        picture._add_box(places.cell(i, j), **style)
    if weights is not None:
        brightest = np.unravel_index(np.argmax(weights), (num_patches, num_patches))
        style = {"fill": False, "edgecolor": "white", "linewidth": 2, "zorder": 4}
        patch = places.cell(*brightest)
        size = patch.width - 0.04, patch.height - 0.04
        picture._add_box(Box(patch.x + 0.02, patch.y + 0.02, *size), **style)


@scene
def image_reader(picture, image: Tensor, question: str, answer: int):
    """Draw the way of an image of 16 patches, and of a word, through one block."""
    rows = [0, 1, 2, "…", 15]
    start = Box(0.1, 0.35, 2.0, 2.0, "image")
    _draw_patches(picture, start, image)
    name = {"weight": "bold", "color": INK[None], "size": NAME}
    mono = {"color": GREY, "family": "DejaVu Sans Mono"}
    picture.write(start.top[0], 0.2, "image", **name)
    picture.write(start.bottom[0], 2.49, "(3, 32, 32)", **mono)
    side = image.shape[-1] // 4
    tiles = image.unfold(1, side, side).unfold(2, side, side).flatten(1, 2)
    picture.write(3.1, 0.2, "patches", **name)
    for i, row_ in enumerate(rows):
        y = 0.35 + 0.4 * i
        picture.write(2.82, y + 0.18, str(row_), ha="right")
        if row_ != "…":
            _draw_patches(picture, Box(2.92, y, 0.36, 0.36), tiles[:, row_], None, 1)
    picture.write(3.1, 2.49, "(N, C·p²) = (16, 192)", **mono)
    picture._add_sentence("image: 16 patches of 192 numbers")
    linear = picture.block((3.85, 1.145), "Linear", "learned")

    def blank(at, name, rows, shape):
        cells, style = [[""] * 7] * len(rows), {"rows": rows, "cell": 0.14}
        return picture.grid(at, cells, "x", name, shape=shape, **style)

    vectors = blank((5.4, 0.63), "vectors", rows, "(N, D) = (16, 32)")
    tokens = blank((2.55, 3.4), "tokens", [question, *rows], "(N + 1, D) = (17, 32)")
    first = tokens.row(0).left[1]
    word = picture.word((0.45, first), question, lit=True)
    table = picture.block((1.0, first - 0.185), "table", "learned")
    block = picture.block((3.75, 4.06), "block")
    last = blank((5.08, 3.4), "", [question], "(D,) = (32,)")
    head = picture.block((6.22, 3.355), "Linear", "learned")
    logits = [["" if digit != answer else "✓" for digit in range(10)]]
    style = {"columns": range(10), "cell": 0.23, "shape": "(digits,) = (10,)"}
    end = picture.grid((3.95, 4.85), logits, "x", "logits", **style)
    picture.wire(start.right, (2.6, start.right[1]))
    picture.wire((3.4, linear.left[1]), linear)
    picture.wire(linear.right, (4.85, linear.right[1]))
    picture.wire(word, table)
    width = text_width(question) + 0.14
    picture.wire(table.right, (tokens.x - width, first))
    x, y, below = vectors.bottom[0], 2.95, tokens.at(0.5, 0)[0]
    picture.wire((x, 2.35), (below, tokens.y - 0.24), via=[(x, y), (below, y)])
    text = "one row, and a position added to each"
    picture.note((4.3, y - 0.13), text, align="center")
    picture.wire((tokens.right[0], block.left[1]), block)
    goal = last.x - width, last.left[1]
    picture.wire(block.right, goal, turn=block.right[0] + 0.08)
    picture.wire(last, head)
    picture.wire(head.bottom, end.right, turn=head.bottom[0])
    steps = (2.42, 1.15), (3.62, 1.12), (1.8, first - 0.2), (3.62, 4.02), (6.15, 3.25)
    for number, at in enumerate(steps, start=1):
        picture.step(at, number)


# --- 16 ---------------------------------------------------------------------------

SHARED, SUMMED = 4, 5  # colours of what both processes have, and of complete sums
OWNER_NAMES = {SHARED: "the same in both", SUMMED: "complete", -1: "not here"}


@scene
def who_holds(picture, *stages):
    """Draw a pass through two processes: what each holds, and when a message travels.

    stages: from left to right tuples of a name, an array and its owners, and texts
        between them: a message, or with → what each process does by itself. An
        array is (n, m), or (2, n, m) if the processes differ, NaN for what one
        lacks. Owners are 0 or 1 for a process, 4 for both, 5 for what is complete,
        and broadcast to the array.
    """
    grids, widths, sentences = {}, {"": 0.0}, [*stages]
    for i, stage in enumerate(stages):
        if isinstance(stage, str):
            widths[i] = text_width(stage) * stage.endswith("→")
        else:
            texts, owners = _grid_texts(*stage[1:])
            cell = max(0.33, 0.14 + max(map(text_width, texts.flat)))
            grids[i], widths[i] = (texts, owners, cell), cell * texts.shape[2]
    height = 0.6 + LINE * max(texts.shape[1] for texts, _, _ in grids.values())
    rows = {"name": 0.3, 0: height, "link": 0.6, 1: height, "": 0.2, "legend": LINE}
    picture.lay_out(rows, widths)
    for rank in (0, 1):
        ground = Box(0.1, picture.rows[rank] - height / 2 + 0.3, 6.7, height - 0.4)
        picture.shelf(ground, f"process {rank}", "process")
    boxes = {}
    for i, (texts, owners, cell) in grids.items():
        picture.head("name", i, stages[i][0])
        for rank, (text, owner) in enumerate(zip(texts, owners)):
            style = {"owner": owner, "mask": owner >= 0, "cell": cell}
            boxes[rank, i] = picture.put(rank, i, text.tolist(), **style)
        first, second = picture.sentences[-2:]
        sentences[i] = f"{stages[i][0]}: process 0 {first}; process 1 {second}"
    for i, stage in enumerate(stages):
        if isinstance(stage, str):
            _draw_link(picture, i, stage, boxes)
    owners = {owner for _, owners, _ in grids.values() for owner in owners.flat}
    draw_owners(picture, 0.1, picture.rows["legend"], owners)
    picture.sentences = sentences


def _draw_link(picture, i, text, boxes):
    """Draw what leads from one stage to the next: a message, or alone, with →."""
    if text.endswith("→"):
        for rank in (0, 1):
            picture.sign(picture.at(rank, i), text)
        return
    message = picture.sign(picture.at("link", i), text, "score")
    for rank in (0, 1):
        start, end = boxes[rank, i - 1], boxes[rank, i + 1]
        picture.wire(start, message, "score", turn=start.middle[0])
        picture.wire(message, end, "score", turn=end.middle[0])


def _grid_texts(values, owners):
    """Return the numbers of two processes as texts, and whose they are, (2, n, m)."""
    values = np.asarray(values, dtype=float)
    values = np.broadcast_to(values, (2, *values.shape[-2:]))
    owners = np.broadcast_to(np.asarray(owners), values.shape)
    is_held = ~np.isnan(values)
    texts = np.vectorize(short_number)(values)
    return np.where(is_held, texts, ""), np.where(is_held, owners, -1)


def draw_owners(picture, x, y, owners):
    """Draw what grey, pale yellow and hatched cells mean, if a picture has them."""
    for owner, name in OWNER_NAMES.items():
        if owner in owners:
            style = {"owner": [owner], "mask": [owner >= 0], "centred": True}
            picture.grid((x + 0.15, y), [[""]], **style)
            picture.note((x + 0.4, y), name)
            x += 0.4 + text_width(name) + 0.35
