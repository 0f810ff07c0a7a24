"""Scenes in steps: the processes of one notebook each, with a slider, in one call.

Each function computes its states from the arrays of the page. A state adds to the one
before it or changes it, and whatever stays keeps its place.
"""

import math

import numpy as np
import torch
from torch import Tensor

from utils.attention import causal_mask, masked_softmax
from utils.plots.picture import LINE, Box, Picture, places
from utils.plots.publishing import (
    expect,
    format_number,
    num_digits,
    text_width,
    to_names,
    visible,
)
from utils.plots.steps import in_steps
from utils.plots.theme import GREY, INK, PALE, TITLE, WIDTH
from utils.tokenizer import decode_bpe, encode_bpe


def _vector(numbers):
    """Return a vector as a text: (1.00, −0.60)."""
    return f"({', '.join(format_number(number) for number in numbers)})"


def _short(number):
    """Return a number with at most two decimals, and none if it is whole."""
    return format_number(number, num_digits([float(number)]))


def _product(left, right, result):
    """Return a dot product as a text: 3·1 + 0·1 = 3."""
    terms = [f"{_short(a)}·{_short(b)}" for a, b in zip(left, right)]
    return f"{' + '.join(terms)} = {result}"


def _cell(picture, at, content, role, width, **style):
    """Draw one number or text in a cell, its middle at a place."""
    style |= {"cell": width, "centred": True}
    return picture.grid(at, [[content]], role, " ", **style)


def _label(picture, at, row, text, bold=False):
    """Write the name of a row at its left."""
    picture.note((0.1, at(row, "name")[1]), text, bold=bold)


def _softmax(picture, at, columns, width):
    """Draw a softmax over columns of this width."""
    (left, y), right = at("softmax", columns[0]), at("softmax", columns[-1])[0]
    place = left - width / 2, y - 0.13
    picture.block(place, "softmax", size=(right - left + width, 0.26))


# --- 01 ---------------------------------------------------------------------------


@in_steps
def merges(text: str, merges: dict):
    """Show how merges join the bytes of one line of text, one merge a state.

    The letters keep their places: a merge takes away the borders between two pieces.
    Each state adds a row, so the last one shows all of them.

    Args:
        text: at most 40 ASCII characters.
        merges: 3 to 11 of them, from a pair of ids to its new id, in their order.

    >>> merges("low low", {(108, 111): 256, (256, 119): 257, (32, 257): 258}, title="T")
    Picture in 4 states: T.
    1. Every byte is a piece of its own, which makes 7 pieces.
    2. Merge 1 joins l and o wherever they are neighbours: 5 pieces are left.
    3. Merge 2 joins lo and w wherever they are neighbours: 3 pieces are left.
    4. Merge 3 joins · and low wherever they are neighbours: 2 pieces are left.
    """
    lines = [("bytes", encode_bpe(text, {}), None)]
    count = len(lines[0][1])
    sentences = [f"Every byte is a piece of its own, which makes {count} pieces."]
    for number, (pair, new_id) in enumerate(merges.items(), 1):
        ids = encode_bpe(text, dict([*merges.items()][:number]))
        left, right = (visible(decode_bpe([i], merges)) for i in pair)
        lines.append((f"{number}: {left} + {right}", ids, new_id))
        sentences.append(
            f"Merge {number} joins {left} and {right} wherever they are neighbours: "
            f"{len(ids)} pieces are left."
        )
    for number, sentence in enumerate(sentences):
        picture = Picture()
        for k, (name, ids, new_id) in enumerate(lines[: number + 1]):
            y = 0.1 + 0.38 * k
            picture.note((0.1, y + LINE / 2), name, bold=k == number)
            pieces = [decode_bpe([i], merges) for i in ids]
            _draw_line(picture, y, pieces, [i == new_id for i in ids])
            style = {"align": "right", "bold": k == number}
            picture.note((WIDTH - 0.1, y + LINE / 2), f"{len(ids)} pieces", **style)
        yield picture, sentence


def _draw_line(picture, y, pieces, is_new):
    """Draw pieces as boxes without gaps, as wide as their bytes are many."""
    x, cell = 1.2, min(0.3, (WIDTH - 2.1) / sum(map(len, pieces)))
    for piece, new in zip(pieces, is_new):
        size = cell * len(piece), LINE
        kind = "learned" if len(piece) > 1 else "op"
        box = picture.block((x, y), "", kind, size=size)
        if new:
            picture.grid((x, y), [[""]], owner=[0], lit=0, cell=size[0])
        for j, letter in enumerate(piece):
            picture.write(x + (j + 0.5) * cell, box.middle[1], visible(letter))
        x += size[0]


# --- 03 ---------------------------------------------------------------------------

ATTENTION = {"word": 0.42, "query": 0.5, "key": 0.5, "score": 0.42, "softmax": 0.42}
ATTENTION |= {"weight": 0.42, "value": 0.48, "part": 0.5, "context": 0.58}


@in_steps
def compare_share_mix(
    words,
    followed: int,
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    plain: bool = False,
    output: str | None = None,
):
    """Show attention of one word: compare with each, share out, mix word by word.

    Args:
        words: 2 to 5 of them, T in all; `followed` is the number of the one that looks.
        query: (d_k,)
        keys, values: (T, d_k) and (T, d_v)
        plain: the three roles are one vector, so they have no colour (notebook 03).
        output: the role of the context vector, if not "x" or "output".

    >>> x = torch.eye(2)
    >>> compare_share_mix(["a", "b"], 1, x[1], x, x, plain=True, title="b looks")
    Picture in 5 states: b looks.
    1. Compare b with a: the score is 0.00.
    2. Compare b with b: the score is 1.00.
    3. Share out: the softmax turns the scores into weights that sum to 1.
    4. Mix: 0.27 of a has been added, and the sum is (0.27, 0.00).
    5. Mix: 0.73 of b has been added, and the sum is (0.27, 0.73).
    """
    names = to_names(words, len(keys), "words")
    roles = [*(["x"] * 3 if plain else ["query", "key", "value"])]
    roles.append(output or ("x" if plain else "output"))
    scores = keys @ query  # (T,)
    weights = scores.softmax(dim=0)
    parts = weights[:, None] * values  # (T, d_v)
    sums = parts.cumsum(dim=0)  # (T, d_v)
    size = len(names)
    for state in range(2 * size + 1):
        mixed, j = max(0, state - size), (state - 1 if state > size else state) % size
        frame = _AttentionFrame(names, followed, roles)
        frame.compare(query, keys, scores, state)
        sentence = f"Compare {names[followed]} with {names[j]}: "
        sentence += f"the score is {format_number(scores[j])}."
        if state >= size:
            frame.share_out(weights, mixed)
            sentence = (
                "Share out: the softmax turns the scores into weights that sum to 1."
            )
        if mixed:
            frame.mix(values, parts, sums[j], mixed)
            sentence = (
                f"Mix: {format_number(weights[j])} of {names[j]} has been added, "
            )
            sentence += f"and the sum is {_vector(sums[j])}."
        yield frame.picture, sentence


class _AttentionFrame:
    """One state of attention of one word, a column for each word."""

    def __init__(self, names, followed, roles):
        self.picture, self.names, self.followed = Picture(), names, followed
        self.query, self.key, self.value, self.output = roles
        self.width = (WIDTH - 1.15) / len(names)
        columns = {"name": 0.95} | dict.fromkeys(range(len(names)), self.width)
        self.at = places(ATTENTION, columns)
        self._name("word", "word")
        for j, name in enumerate(names):
            self.picture.word(self.at("word", j), name, lit=j == followed)

    def _name(self, row, text):
        self.picture.note((0.05, self.at(row, "name")[1]), text)

    def _grid(self, row, j, numbers, role, **style):
        style |= {"cell": min(0.5, (self.width - 0.15) / len(numbers)), "centred": True}
        return self.picture.grid(self.at(row, j), numbers, role, " ", **style)

    def _mark(self, j, row):
        """Lay a ground below a column, down to a row."""
        (x, top), low = self.at("word", j), self.at(row, j)[1]
        ground = Box(x - self.width / 2 + 0.13, top, self.width - 0.26, low - top)
        self.picture.shelf(ground, "", "process")

    def compare(self, query, keys, scores, now):
        """Draw the query, all keys, and the scores up to that of the word `now`."""
        is_plain = self.query == "x"
        self._name("query", self.names[self.followed] if is_plain else "query")
        self._name("key", "each word" if is_plain else "keys")
        self._name("score", "score")
        start = self._grid("query", self.followed, query, self.query)
        for j, vector in enumerate(keys):
            key, text = self._grid("key", j, vector, self.key), format_number(scores[j])
            x, y = self.at("score", j)
            if j == now:
                self._mark(j, "score")
                self.picture.wire(start, key.top, turn=x)
                self.picture.wire(key.bottom, (x, y - 0.12), "score")
                long = _product(query, vector, text)
                text = long if text_width(long) < self.width - 0.1 else text
            if j <= now:
                self.picture.note((x, y), text, "score", align="center")

    def share_out(self, weights, mixed):
        """Draw the softmax and the weights."""
        self._name("weight", "weights")
        _softmax(self.picture, self.at, range(len(weights)), self.width - 0.3)
        for j, share in enumerate(weights):
            at, width = self.at("weight", j), min(1, self.width - 0.15)
            weight = _cell(self.picture, at, share, "weight", width)
            if not mixed:
                (x, y), score = self.at("softmax", j), self.at("score", j)
                self.picture.wire((x, score[1] + 0.12), (x, y - 0.13), "score")
                self.picture.wire((x, y + 0.13), weight.top, "weight")

    def mix(self, values, parts, total, mixed):
        """Draw the values, those of them that are mixed, and the sum so far."""
        self._name("value", "values" if self.value == "value" else "each word")
        what = "value" if self.value == "value" else "word"
        self._name("part", f"weight × {what}")
        self._name("context", "context" if mixed == len(values) else "sum so far")
        self._mark(mixed - 1, "part")
        end = self._grid("context", self.followed, total, self.output, lit=0)
        for j, vector in enumerate(values):
            value = self._grid("value", j, vector, self.value)
            if j < mixed:
                x, y = self.at("weight", j)
                part = self._grid("part", j, parts[j], self.value)
                self.picture.wire((x, y + LINE / 2), value.top, "weight", head=False)
                self.picture.wire(value, part, self.value)
                self.picture.wire(part.bottom, end, self.value, turn=x)


# --- 04 ---------------------------------------------------------------------------


@in_steps
def rotate_query(query: Tensor, keys: Tensor, values: Tensor, names):
    """Show a query that rotates from 0° to 90°, its weights, and its output.

    The output stays inside the triangle of the values, because weights are shares.

    Args:
        query: (2,), the first direction; keys, values: (3, 2); names: 3 of them.

    >>> triangle = torch.tensor([[2.0, 0], [0, 2], [-2, 0]])
    >>> rotate_query(triangle[0], triangle, triangle, "abc", title="T")
    ... # doctest: +ELLIPSIS
    Picture in 7 states: T.
    1. At 0° the query weighs a 0.98, b 0.02, c 0.00; the output is (1.96, 0.04).
    2. ...
    """
    names, angles = to_names(names, len(keys), "names"), range(0, 105, 15)
    turns = torch.tensor([math.radians(angle) for angle in angles])
    (x, y), cos, sin = query, turns.cos(), turns.sin()
    queries = torch.stack([cos * x - sin * y, sin * x + cos * y], dim=-1)  # (7, 2)
    weights = (queries @ keys.mT).softmax(dim=-1)  # (7, 3)
    outputs = weights @ values
    for i, angle in enumerate(angles):
        picture = Picture()
        _draw_keys(picture, queries[i], keys, names, float(query.norm()))
        _draw_values(picture, weights[i], values, names, outputs[: i + 1])
        picture.note((3.6, 0.12), "weights", align="center", bold=True)
        style = {"rows": names, "centred": True, "cell": 0.6}
        picture.grid((3.6, 1.55), weights[i][:, None], "weight", " ", **style)
        shares = zip(names, map(format_number, weights[i]))
        shares = ", ".join(" ".join(pair) for pair in shares)
        sentence = f"At {angle}° the query weighs {shares}; "
        yield picture, f"{sentence}the output is {_vector(outputs[i])}."


def _draw_keys(picture, query, keys, names, length):
    """Draw the plane of the keys and the query, as arrows from its middle."""
    middle, reach = (1.3, 1.55), 1.5 * max(length, float(keys.norm(dim=-1).max()))
    picture.note((middle[0], 0.12), "query and keys", align="center", bold=True)
    place = picture.plane(middle, 2.4, reach)
    for name, vector, role in [*zip(names, keys, "kkk"), ("query", query, "q")]:
        role = {"k": "key", "q": "query"}[role]
        picture.wire(middle, place(vector), role)
        beyond = vector * (1 + 0.22 * reach / vector.norm())
        picture.write(*place(beyond), name, color=INK[role])


def _draw_values(picture, weights, values, names, outputs):
    """Draw the triangle of the values and the way of the output inside it."""
    middle, reach = (5.55, 1.55), 1.4 * float(values.norm(dim=-1).max())
    picture.note((middle[0], 0.12), "values and output", align="center", bold=True)
    place = picture.plane(middle, 2.4, reach)
    corners = [place(value) for value in values]
    for start, end in zip(corners, [*corners[1:], corners[0]]):
        picture.wire(start, end, "x", head=False, dashed=True)
    for output in outputs[:-1]:
        picture.dot(place(output), "x", 0.03)
    end = place(outputs[-1])
    for weight, corner, name, value in zip(weights, corners, names, values):
        picture.wire(corner, end, "weight", weight=float(weight), head=False)
        picture.dot(corner, "value")
        away = value - values.mean(dim=0)
        beyond = value + 0.25 * reach * away / away.norm().clamp(min=1e-6)
        picture.write(*place(beyond), name, color=INK["value"])
    picture.dot(end, "output", 0.09)


# --- 05 ---------------------------------------------------------------------------


@in_steps
def causal_rows(scores: Tensor, words):
    """Show a causal mask token by token: a row of scores becomes a row of weights.

    Args:
        scores: (T, T), T from 4 to 7, the query down, the key across.
        words: T of them.

    >>> causal_rows(torch.zeros(4, 4), "abcd", title="T")
    Picture in 4 states: T.
    1. a sees a; b, c, d are hidden, and the softmax gives their −∞ the weight 0.
    2. b sees a, b; c, d are hidden, and the softmax gives their −∞ the weight 0.
    3. c sees a, b, c; d is hidden, and the softmax gives its −∞ the weight 0.
    4. d sees a, b, c, d; nothing is hidden.
    """
    size, names = len(scores), to_names(words, len(scores), "words")
    mask = causal_mask(size)
    weights = masked_softmax(scores, mask)
    rows = {"word": 0.6, "score": 0.5, "softmax": 0.55, "weight": 0.5, "gap": 0.45}
    rows |= dict.fromkeys(range(size), LINE)
    at = places(rows, {"name": 1.1} | dict.fromkeys(range(size), 0.8))

    def draw_weight(row, i, j):
        style = {"mask": mask[i, j].view(1, 1)}
        return _cell(picture, at(row, j), weights[i, j], "weight", 0.7, **style)

    for t, name in enumerate(names):
        picture = Picture()
        for lane in ("word", "score", "weight"):
            picture.note((0.05, at(lane, "name")[1]), f"{lane}s")
        picture.note((0.05, at(0, "name")[1] - 0.3), "all weights")
        for j, other in enumerate(names):
            is_seen = mask[t, j]
            if is_seen:
                picture.word(at("word", j), other, lit=j == t)
            else:
                picture.write(*at("word", j), other, color=GREY)
            text = _short(scores[t, j]) + ("" if is_seen else " → −∞")
            role = "score" if is_seen else "x"
            score = _cell(picture, at("score", j), text, role, 0.7)
            weight = draw_weight("weight", t, j)
            x, y = at("softmax", j)
            picture.wire(score.bottom, (x, y - 0.13), "score")
            if is_seen:
                picture.wire((x, y + 0.13), weight.top, "weight")
            for i in range(t + 1):
                draw_weight(i, i, j)
        _softmax(picture, at, range(size), 0.7)
        for i in range(t + 1):
            x, y = at(i, 0)
            picture.note((x - 0.42, y), names[i], align="right", bold=i == t)
        hidden, effect = names[t + 1 :], "nothing is hidden."
        if hidden:
            are, their = ("is", "its") if len(hidden) == 1 else ("are", "their")
            effect = f"{', '.join(hidden)} {are} hidden, and the softmax gives "
            effect += f"{their} −∞ the weight 0."
        yield picture, f"{name} sees {', '.join(names[: t + 1])}; {effect}"


# --- 06 ---------------------------------------------------------------------------


@in_steps
def split_and_merge(x: Tensor, num_heads: int):
    """Show how features are split into heads and merged, and how views alone fail.

    Each colour is one token. On top is the row of numbers in memory, which a view cuts
    without moving anything. Each mistake comes before the right way.

    Args:
        x: (T, D), at most 16 entries, T from `num_heads` to 4.
        num_heads: divides D.

    >>> split_and_merge(torch.arange(8).view(2, 4), 2, title="T")
    Picture in 8 states: T.
    1. Memory is one row of 8 numbers, here 4 for each of 2 tokens.
    2. view(2, 4) cuts the row after every 4 numbers.
    3. view(2, 2, 2) alone cuts the row in its order: head 0 gets all of token 0.
    4. view(2, 2, 2) instead cuts each token: a part per head.
    5. transpose(0, 1) puts the parts of one head together.
    6. reshape(2, 4) alone copies head after head, so a row mixes several tokens.
    7. transpose(0, 1) instead puts a token's parts together.
    8. reshape(2, 4) then lays them side by side, as before.
    """
    size, width = x.shape
    shape = size, num_heads, width // num_heads
    swapped, flat = (num_heads, size, shape[2]), (size, width)
    owner = torch.arange(size)[:, None].expand(size, width)  # whose number it is
    both = torch.stack([x, owner])  # every call moves a number and its owner alike
    memory, cut = both.reshape(2, 1, -1), both.view(2, *shape)
    heads = cut.transpose(1, 2)
    copied = heads.reshape(2, 1, -1)
    tokens, rows = ([f"{name} {i}" for i in range(size)] for name in ("token", "row"))
    names = [f"head {h}" for h in range(num_heads)]
    lines = both[:, None], [" "], tokens
    parts, by_head = (cut, tokens, names), (heads, names, tokens)
    wrong_split = both.reshape(2, *swapped), names, rows
    wrong_merge = copied.view(2, 1, *flat), [" "], rows
    numbers = f"{x.numel()} numbers, here {width} for each of {size} tokens."
    states = [  # in memory, in the picture, the call, and what it does
        (memory, None, "", f"Memory is one row of {numbers}"),
        (memory, lines, f"view{flat}", f"cuts the row after every {width} numbers."),
        (memory, wrong_split, f"view{swapped} alone", WRONG_SPLIT),
        (memory, parts, f"view{shape}", "instead cuts each token: a part per head."),
        (memory, by_head, "transpose(0, 1)", "puts the parts of one head together."),
        (copied, wrong_merge, f"reshape{flat} alone", WRONG_MERGE),
        (memory, parts, "transpose(0, 1)", "instead puts a token's parts together."),
        (memory, lines, f"reshape{flat}", "then lays them side by side, as before."),
    ]
    for in_memory, drawn, call, sentence in states:
        picture = Picture()
        picture.note((0.1, 0.12), "memory", bold=True)
        values, owners = in_memory
        cell = min(0.4, (WIDTH - 0.2) / x.numel())
        picture.grid((0.1, 0.27), values, None, " ", owner=owners, cell=cell)
        if drawn:
            mark = "✗ " if call.endswith("alone") else ""
            picture.note((0.1, 0.95), f"{mark}{call}", bold=True)
            _draw_parts(picture, *drawn)
        yield picture, f"{call} {sentence}".strip()


WRONG_SPLIT = "cuts the row in its order: head 0 gets all of token 0."
WRONG_MERGE = "copies head after head, so a row mixes several tokens."


def _draw_parts(picture, parts, names, rows):
    """Draw matrices (2, N, rows, columns) side by side, a colour for each token."""
    x = 0.85
    for (values, owner), name in zip(parts.transpose(0, 1), names):
        style = {"owner": owner, "cell": 0.4, "rows": rows}
        x += picture.grid((x, 1.45), values, None, name, **style).width + 0.95


# --- 09 ---------------------------------------------------------------------------


@in_steps
def softmax_in_slices(scores: Tensor, values: Tensor, slice_size: int):
    """Show an online softmax: maximum, sums and output after each slice of keys.

    Args:
        scores, values: of one query, (S,) each, S up to 8.
        slice_size: 2 to 4 slices; the last may be shorter.

    >>> scores, values = torch.tensor([1.0, 2, 4]).log(), torch.tensor([6.0, 12, 3])
    >>> softmax_in_slices(scores, values, 2, title="T")
    Picture in 5 states: T.
    1. Fetch slice 0: the largest score so far is 0.69.
    2. Add its exponentials to ℓ, and its values, weighted by them, to a: a ÷ ℓ is \
10.00.
    3. Fetch slice 1: the largest score so far is 1.39, so ℓ and a are × 0.50.
    4. Add its exponentials to ℓ, and its values, weighted by them, to a: a ÷ ℓ is 6.00.
    5. A softmax over all scores at once gives 6.00, too.
    """
    slices = [*zip(scores.split(slice_size), values.split(slice_size))]
    largest, total, a = float("-inf"), 0.0, 0.0  # total: ℓ
    lines = []  # of the table: texts for m, ℓ, a and the output
    for i, (part, part_values) in enumerate(slices):
        new = max(largest, float(part.max()))
        m, factor = format_number(new), math.exp(largest - new)  # 0 at first
        largest, cells, sentence = new, ["0", "0"], f"the largest score so far is {m}."
        if i:
            scaled = total * factor, a * factor
            cells = [_change(old, "×", factor, s) for old, s in zip((total, a), scaled)]
            total, a = scaled
            sentence = f"{sentence[:-1]}, so ℓ and a are × {format_number(factor)}."
        picture = _draw_slices(slices, [*lines, [m, *cells]], lit=[0])
        yield picture, f"Fetch slice {i}: {sentence}"
        powers = torch.exp(part - largest)
        added = float(powers.sum()), float(powers @ part_values)
        sums = total + added[0], a + added[1]
        cells = [_change(*c) for c in zip((total, a), "++", added, sums)]
        total, a = sums
        output = format_number(a / total)
        picture = _draw_slices(slices, [*lines, [m, *cells, output]], lit=[1, 2])
        lines.append([m, format_number(total), format_number(a), output])
        sentence = "Add its exponentials to ℓ, and its values, weighted by them, to a: "
        yield picture, f"{sentence}a ÷ ℓ is {output}."
    picture = _draw_slices(slices, lines, lit=[])
    output = format_number(scores.softmax(dim=0) @ values)
    at = places(*SLICES)
    _label(picture, at, len(slices), "all scores at once", bold=True)
    _cell(picture, at(len(slices), "a ÷ ℓ"), output, "output", 0.8)
    yield picture, f"A softmax over all scores at once gives {output}, too."


SLICES = (
    {"slice": 0.3, "scores": 0.36, "values": 0.36, "gap": 0.45, "names": 0.3}
    | dict.fromkeys(range(5), 0.42),
    {"name": 0.9, "maximum m": 0.95, "denominator ℓ": 1.6, "accumulator a": 1.7}
    | {"a ÷ ℓ": 1},
)


def _change(old, sign, by, new):
    """Return a calculation as a text: 1.50 × 0.50 = 0.75."""
    old, by, new = map(format_number, (old, by, new))
    return f"{old} {sign} {by} = {new}"


def _draw_slices(slices, lines, lit):
    """Draw the keys in slices, the newest on a ground, and a line for each slice."""
    picture, at, now, x = Picture(), places(*SLICES), len(lines) - 1, 1.1
    for name in ("scores", "values"):
        _label(picture, at, name, name)
    for i, parts in enumerate(slices):
        size = 0.6 * len(parts[0])
        if i == now and lit:
            ground = Box(x, 0.36, size, 0.72)
            picture.shelf(ground, "", "cached")
        place = x + size / 2, at("slice", "name")[1]
        picture.note(place, f"slice {i}", align="center", bold=i == now)
        for name, part in zip(("scores", "values"), parts):
            place, role = (x + size / 2, at(name, "name")[1]), name[:-1]
            box = picture.grid(place, part, role, " ", cell=0.6, centred=True)
        if i == now and lit:
            down = box.bottom[0], at("gap", "name")[1]
            for j in lit:
                end = at("names", [*SLICES[1]][j + 1])
                corners = [down, (end[0], down[1])]
                picture.wire(box.bottom, (end[0], end[1] - 0.12), via=corners)
        x += size + 0.25
    for name in [*SLICES[1]][1:]:
        picture.note(at("names", name), name, align="center", bold=True)
    for i, cells in enumerate(lines):
        _label(picture, at, i, f"slice {i}", i == now)
        for j, (name, text) in enumerate(zip([*SLICES[1]][1:], cells)):
            role, width = "output" if j == 3 else "score", text_width(text) + 0.15
            frame = {"lit": 0 if i == now and j in lit else None}
            _cell(picture, at(i, name), text, role, max(0.8, width), **frame)
    return picture


# --- 10 ---------------------------------------------------------------------------


def write_at_tip(picture, place, vector, text, color, gap=0.5):
    """Write a text beyond the tip of an arrow, away from the arrow."""
    x, y = place(vector * (1 + gap / vector.norm()))
    across = float(vector[0] / vector.norm())  # from -1, to the left, to 1
    side = "center" if abs(across) < 0.2 else "left" if across > 0 else "right"
    picture.write(x, y, text, color=color, ha=side)


@in_steps
def rotate_together(query: Tensor, key: Tensor, frequency: float, distance: int):
    """Show two tokens that move along a text: both vectors rotate, their angle stays.

    Dashed, from the second state on, are the vectors of the first.

    Args:
        query, key: (2,), before they are rotated.
        frequency: of the rotation, in radians per position.
        distance: how many positions the query is after the key.

    >>> x = torch.tensor([1.0, 0])
    >>> rotate_together(x, x, 0.5, 2, title="T")  # doctest: +ELLIPSIS
    Picture in 8 states: T.
    1. Key at position 0, query at position 2: the angle is 57°, the score is 0.54.
    2. Key at position 1, query at position 3: the angle is 57°, the score is 0.54.
    3. ...
    """
    last = 7 + distance
    columns = {"name": 0.8} | dict.fromkeys(range(last + 1), 5.8 / (last + 1))
    at = places({"text": 0.5}, columns)
    reach = 1.4 * float(max(query.norm(), key.norm()))
    for start in range(8):
        picture, middle = Picture(), (3.45, 1.95)
        picture.note((0.1, 0.25), "position")
        place, vectors = picture.plane(middle, 2.6, reach), []
        boxes = [picture.word(at("text", i), i) for i in range(last + 1)]
        for name, x, i in (("key", key, start), ("query", query, start + distance)):
            cos, sin = math.cos(i * frequency), math.sin(i * frequency)
            vector = torch.tensor([[cos, -sin], [sin, cos]]) @ x
            vectors.append(vector)
            box = boxes[i]
            picture.block((box.x, box.y), str(i), name, size=(box.width, 0.3))
            picture.wire(middle, place(vector), name)
            write_at_tip(picture, place, vector, f"{name} at {i}", INK[name])
        if start == 0:
            first = vectors
        for name, vector, i in zip(("key", "query"), first, (0, distance)):
            if start:
                picture.wire(middle, place(vector), name, dashed=True)
                write_at_tip(picture, place, vector, f"at {i}", INK[name], gap=0.8)
        score = vectors[0] @ vectors[1]
        angle = math.degrees(math.acos(score / vectors[0].norm() / vectors[1].norm()))
        picture.note((5.3, 1.8), f"angle {angle:.0f}°", bold=True)
        picture.note((5.3, 2.1), f"score {format_number(score)}", "score", bold=True)
        sentence = f"Key at position {start}, query at position {start + distance}: "
        sentence += f"the angle is {angle:.0f}°, the score is {format_number(score)}."
        yield picture, sentence


# --- 08 ---------------------------------------------------------------------------


@in_steps
def draw_token(logits: Tensor, names, drawn: int, *, temperature, top_k, top_p):
    """Show the way from logits to a drawn token: temperature, top-k, top-p.

    Args:
        logits: (V,), V up to 10; names: V of them.
        drawn: the number of the token that was drawn.
        top_k: how many of the largest logits are kept.
        top_p: tokens are kept, the largest first, until their sum is at least this.

    Raises:
        ValueError: if top-k or top-p hides the drawn token.

    >>> draw_token(torch.tensor([2.0, 1, 0]), "abc", 1, title="T", temperature=0.5,
    ...            top_k=2, top_p=0.9)
    Picture in 6 states: T.
    1. The model gives each token a logit.
    2. The softmax alone would give a 0.67.
    3. Divided by a temperature τ of 0.50, the logits give a 0.87.
    4. top-k keeps the 2 largest, and their probabilities sum to 1 again.
    5. top-p keeps the 2 largest, whose sum reaches 0.90.
    6. One token is drawn with these probabilities: b.
    """
    names = to_names(names, len(logits), "names")
    order = logits.argsort(descending=True)
    names, logits = [names[i] for i in order], logits[order]
    chosen = order.tolist().index(drawn)
    plain, cooled = logits.softmax(dim=0), (logits / temperature).softmax(dim=0)
    kept = torch.arange(len(logits)) < top_k
    best = cooled * kept / (cooled * kept).sum()
    nucleus = kept & (best.cumsum(dim=0) - best < top_p)
    final, best_name = best * nucleus / (best * nucleus).sum(), names[0]
    what = f"drawn, {names[chosen]!r}"
    expect(nucleus[chosen], what, "a token that top-k and top-p keep", "another")
    everything = torch.ones_like(kept)
    softmax, divided = (f"{best_name} {format_number(p[0])}" for p in (plain, cooled))
    states = [  # a column, its numbers, which tokens are kept
        ("logit", logits, everything),
        ("softmax", plain, everything),
        ("÷ τ", cooled, everything),
        ("top-k", best, kept),
        ("top-p", final, nucleus),
        ("drawn", None, nucleus),
    ]
    sentences = (
        "The model gives each token a logit.",
        f"The softmax alone would give {softmax}.",
        f"Divided by a temperature τ of {format_number(temperature)}, the logits give "
        f"{divided}.",
        f"top-k keeps the {top_k} largest, and their probabilities sum to 1 again.",
        f"top-p keeps the {int(nucleus.sum())} largest, whose sum reaches "
        f"{format_number(top_p)}.",
        f"One token is drawn with these probabilities: {names[chosen]}.",
    )
    columns = {"name": 1.1} | dict.fromkeys((state[0] for state in states), 0.85)
    at = places({"head": 0.4} | dict.fromkeys(range(len(logits)), 0.34), columns)
    for number, sentence in enumerate(sentences, 1):
        picture = Picture()
        for i, name in enumerate(names):
            _label(picture, at, i, name, number == len(states) and i == chosen)
        for column, numbers, mask in states[:number]:
            picture.note(at("head", column), column, align="center", bold=True)
            for i in range(len(names)) if numbers is not None else ():
                role = "score" if column == "logit" else "weight"
                style = {"mask": mask[i].view(1, 1)}
                _cell(picture, at(i, column), numbers[i], role, 0.7, **style)
        if number == len(states):
            x, y = at(chosen, "drawn")
            picture.word((x, y), names[chosen], lit=True)
            before = at(chosen, "top-p")
            picture.wire((before[0] + 0.35, y), (x - 0.3, y), "weight")
        yield picture, sentence


# --- 12 ---------------------------------------------------------------------------


@in_steps
def turns(source: str, target: str, weights=None):
    """Show how a recurrent translator writes: a state for each turn of its decoder.

    The actions of the turn are numbered: 1 ask, 2 find, 3 read, 4 write. Without
    weights no turn asks, so 1 is find.

    Args:
        source, target: a sentence and its translation.
        weights: `(T, S)`, how much of each encoded vector a turn finds, both with
            `<end>`; without them each turn finds the encoder's one vector.

    >>> weights = [[0.9, 0.1, 0], [0.4, 0.6, 0], [0.3, 0.7, 0], [0, 0, 1]]
    >>> turns("le chat", "the cat sleeps", weights, title="T")
    Picture in 4 states: T.
    1. Turn 1: s₀ finds le, reads <start> and writes the.
    2. Turn 2: s₁ finds le and chat, reads the and writes cat.
    3. Turn 3: s₂ finds le and chat, reads cat and writes sleeps.
    4. Turn 4: s₃ finds <end>, reads sleeps and writes <end>.
    """
    words, written = (f"{text} <end>".split() for text in (source, target))
    if weights is None:
        found = ["finds the one vector"] * len(written)
    else:
        weights = torch.as_tensor(weights)
        size = tuple(weights.shape)
        expect(size == (len(written), len(words)), "weights", "(T, S)", size)
        found = [
            f"s{DIGITS[t]} finds "
            + " and ".join(word for word, w in zip(words, line) if w >= 0.25)
            for t, line in enumerate(weights)
        ]
    for t, (read, word) in enumerate(zip(["<start>", *written], written)):
        picture = _draw_turns(words, written[: t + 1], len(written), weights)
        text = f"Turn {t + 1}: {found[t]}, reads {read} and writes {word}."
        yield picture, text


DIGITS = "₀₁₂₃₄₅₆₇₈₉"


def _draw_turns(words, written, num_turns, weights):
    """Draw the encoder and the turns so far, with numbers at the last one."""
    picture, first, asks = Picture(), 0.42, weights is not None
    vector = picture.grid((first - 0.15, 2.55), [["s₀"]], "value", cell=0.3)
    sources, columns = [], torch.linspace(1.3, WIDTH - 0.5, len(words)).tolist()
    for x, word in zip(columns, words):
        picture.wire(picture.word((x, 3.8), word).top, (x, 3.4))
        sources.append(picture.grid((x - 0.15, 2.55), [[""]], "key", cell=0.3))
        picture.wire((x, 3.05), sources[-1].bottom, "key")
    picture.note((sources[0].right[0] + 0.08, 2.7), "encoded", "key")
    size = columns[-1] - 0.5, 0.35
    encoder = picture.block((0.9, 3.05), "encoder: a GRU, both ways", size=size)
    picture.wire(encoder.left, vector.bottom, turn=first)
    last = picture.word((first, 0.3), "<start>")
    ask, state = (first, 1.69), None
    columns = torch.linspace(1.3, WIDTH - 0.5, num_turns).tolist()
    for t, (x, word) in enumerate(zip(columns, written)):
        found = picture.grid((x - 0.15, 1.55), [[""]], "value", cell=0.3)
        place, size = (x - 0.22, 0.85), (0.44, 0.32)
        new = picture.block(place, f"s{DIGITS[t + 1]}", size=size)
        box = picture.word((x, 0.3), word, lit=True)
        if asks:
            picture.wire(ask, found.left, "query", turn=ask[0])
            for source, weight in zip(sources, weights[t]):
                picture.wire(source.top, found.bottom, "value", weight=float(weight))
        else:
            bus = (first, 2.2), (x, 2.2)
            picture.wire(vector.top, found.bottom, "value", via=bus)
        if state is None:
            picture.wire(vector.top, new.left, "value", turn=first)
        else:
            picture.wire(state.right, new.left)
        picture.wire(found.top, new.bottom, "value")
        picture.wire(last.at(0.85, 1), new.at(0.1, 0))
        picture.wire(new.top, box.bottom)
        if t + 1 == len(written):
            between = (last.at(0.85, 1)[0] + new.x) / 2
            numbered = [(between, 1.69)] * asks + [(x - 0.28, 1.45)]
            numbered += [(between, 0.65), (x + 0.2, 0.65)]
            for number, place in enumerate(numbered, 1):
                picture.step(place, number)
        last, state, ask = box, new, new.at(0.95, 1)
    return picture


# --- 11 ---------------------------------------------------------------------------


@in_steps
def read_per_step(names, keys: Tensor, values: Tensor, latent: Tensor):
    """Show what a step reads: own keys and values, shared ones, and latents.

    Args:
        names: S cached tokens, 2 to 4.
        keys, values: (H, S, d_k) and (H, S, d_v), H = 2; the shared ones are head 0's.
        latent: (S, d_c)

    >>> keys, latent = torch.ones(2, 3, 2), torch.zeros(3, 4)
    >>> read_per_step("abc", keys, keys, latent, title="T")
    Picture in 5 states: T.
    1. Two heads with their own keys and values cache 8 numbers per token.
    2. Head 0 reads its own: 4 numbers for each of 3 tokens.
    3. Head 1 reads its own, too, so the step has read 24 numbers.
    4. One shared head: both queries read the same 4 numbers per token, 12 in all.
    5. A latent: both read 4 numbers per token, 12 in all, and compute their own keys \
and values.
    """
    names = to_names(names, len(latent), "names")
    own, width = keys.shape[-1] + values.shape[-1], latent.shape[-1]
    shared, narrow = len(latent) * own, len(latent) * width  # numbers of all tokens
    heads = [[("key", k), ("value", v)] for k, v in zip(keys, values)]
    apart, between = [*zip(READERS, heads)], sum(READERS) / 2
    states = [  # what is cached and where, which heads read it, the text
        (
            apart,
            (),
            f"Two heads with their own keys and values cache {2 * own} numbers",
        ),
        (apart, (0,), f"Head 0 reads its own: {own} numbers for each of {len(names)}"),
        (apart, (0, 1), "Head 1 reads its own, too, so the step has read "),
        ([(between, heads[0])], (0, 1), "One shared head: both queries read the same "),
        ([(between, [("latent", latent)])], (0, 1), "A latent: both read "),
    ]
    ends = (
        " per token.",
        " tokens.",
        f"{2 * shared} numbers.",
        f"{own} numbers per token, {shared} in all.",
        f"{width} numbers per token, {narrow} in all, and compute their own keys and "
        "values.",
    )
    for (cached, readers, sentence), end in zip(states, ends):
        picture = Picture()
        tops = [_draw_cached(picture, x, parts, names) for x, parts in cached]
        for head, x in enumerate(READERS):
            at, size = (x - 0.75, 0.15), (1.5, 0.32)
            start = picture.block(at, f"query of head {head}", "query", size=size)
            goal = tops[min(head, len(tops) - 1)]
            if cached[0][1][0][0] == "latent":
                at, text = (x - 0.75, 0.85), f"key, value of {head}"
                computed = picture.block(at, text, "key", size=size)
                picture.wire(start, computed, "query")
                picture.wire(goal, computed.bottom, "key")
            elif head in readers:
                picture.wire(start.bottom, goal, "query")
        yield picture, sentence + end


READERS = 1.95, 5.15  # where the two queries are, in inches


def _draw_cached(picture, middle, parts, names):
    """Draw what is cached, a row per token, on its ground; return its upper middle."""
    count = sum(numbers.shape[-1] for _, numbers in parts)
    x, y, boxes = middle - 0.21 * count - 0.06 * (len(parts) - 1), 2.05, []
    for name, numbers in parts:
        style = {"cell": 0.42, "rows": None if boxes else names}
        role = "x" if name == "latent" else name
        boxes.append(picture.grid((x, y), numbers, role, name, **style))
        x += boxes[-1].width + 0.12
    first, width = boxes[0], boxes[-1].right[0] - boxes[0].x
    ground = Box(first.x, y - 0.2, width, first.height + 0.2)
    return middle, picture.shelf(ground, "cached", "cached").y


# --- 13 ---------------------------------------------------------------------------


@in_steps
def write_state(names, keys: Tensor, values: Tensor, correction: Tensor):
    """Show a state that is written twice, read, and corrected with a new value.

    Args:
        names: of the two entries.
        keys: (2, 2), of length 1; values: (2, 2): what is written.
        correction: (2,), the new value of the first key (the delta rule writes the
            difference to what the key reads).

    >>> I = torch.eye(2)
    >>> write_state(["A", "B"], I, 2 * I, torch.tensor([0.0, 1]), title="T")
    Picture in 4 states: T.
    1. Write: the outer product of A's key and value is added to the state.
    2. Write: the outer product of B's key and value is added to the state.
    3. Read: A's key reads the state and returns (2.00, 0.00).
    4. Correct: A's key reads (2.00, 0.00), and the difference to (0.00, 1.00) is added.
    """
    names, state = to_names(names, 2, "names"), torch.zeros(2, 2)
    columns = {"key": 0.8, "×": 0.2, "value": 1.1, "=": 0.2, "change": 1.1, "→": 0.4}
    at = places({"top": 0.7, "gap": 0.3, "middle": 0.9}, columns | {"state": 1.3})

    def draw(state, label):
        picture = Picture()
        style = {"centred": True, "cell": 0.6}
        box = picture.grid(at("middle", "state"), state, "value", label, **style)
        picture.shelf(box, "", "memory")
        return picture, style, box

    def add(name, key, value_name, value, before):
        change = torch.outer(key, value)
        picture, style, box = draw(before + change, "new state")
        picture.grid(at("middle", "key"), key[:, None], "key", f"{name}'s key", **style)
        picture.sign(at("middle", "×"), "×")
        picture.grid(at("middle", "value"), value[None], "value", value_name, **style)
        picture.sign(at("middle", "="), "=")
        part = picture.grid(at("middle", "change"), change, "value", "added", **style)
        picture.sign(at("middle", "→"), "+", "value")
        picture.wire(part.right, box.left, "value")
        return picture, before + change

    for name, key, value in zip(names, keys, values):
        picture, state = add(name, key, "value", value, state)
        sentence = f"Write: the outer product of {name}'s key and value is added to "
        yield picture, f"{sentence}the state."
    name, key, known = names[0], keys[0], keys[0] @ state
    picture, style, box = draw(state, "state")
    place = at("top", "state")
    start = picture.grid(place, key[None], "key", f"{name}'s key", **style)
    picture.wire(start.bottom, (place[0], box.y - 0.3), "key")
    place = at("middle", "change")
    end = picture.grid(place, known[None], "output", "returned", **style)
    picture.wire(box.left, end.right, "value")
    sentence = f"Read: {name}'s key reads the state and returns {_vector(known)}."
    yield picture, sentence
    picture, state = add(name, key, "difference", correction - known, state)
    sentence = f"Correct: {name}'s key reads {_vector(known)}, and the difference to "
    yield picture, f"{sentence}{_vector(correction)} is added."


# --- several machines -------------------------------------------------------------


@in_steps
def ring_all_reduce(vectors):
    """Show an all-reduce of four processes in a ring: who sends what to whom.

    Own numbers have the colour of their process, sums that lack a number are grey, and
    complete sums have a colour of their own. A process forgets what it sends on before
    it is complete.

    Args:
        vectors: integers (4, 4), a row for each process.

    >>> vectors = [[1, 2, 3, 4], [10, 20, 30, 40], [100, 200, 300, 400], [0] * 4]
    >>> ring_all_reduce(vectors, title="T")  # doctest: +ELLIPSIS
    Picture in 7 states: T.
    1. Each process has four numbers; follow the last one of process 0.
    2. Turn 1: process 0 sends 4 to process 1, which adds its own 40.
    3. Turn 2: process 1 sends 44 to process 2, which adds its own 400.
    4. Turn 3: process 2 sends 444 to process 3, which adds its own 0: the sum is \
complete.
    5. Turn 4: process 3 sends 444 to process 0.
    6. ...
    """
    own = torch.as_tensor(vectors)  # (P, P)
    size, held = len(own), own.clone()
    ranks, takers = torch.arange(size), torch.arange(1, size + 1) % size
    is_held, owner = torch.ones_like(own) > 0, ranks[:, None].repeat(1, size)
    first = "Each process has four numbers; follow the last one of process 0."
    yield _draw_ring(held, is_held, owner), first
    for turn in range(2 * size - 2):
        is_adding = turn < size - 1  # then complete sums are passed on
        share = (ranks - 1 - turn) % size  # that each process sends
        sent = held[ranks, share]
        held[takers, share] = sent + is_adding * own[takers, share]
        is_held[takers, share] = True
        is_held[ranks, share] = not is_adding
        owner[takers, share] = COMPLETE if turn >= size - 2 else PARTIAL
        giver, taker = turn % size, (turn + 1) % size
        sentence = f"Turn {turn + 1}: process {giver} sends {sent[giver]:,} "
        sentence += f"to process {taker}"
        if is_adding:
            sentence += f", which adds its own {own[taker, -1]:,}"
        ends = {
            size - 2: ": the sum is complete",
            2 * size - 3: ", and all have all sums",
        }
        sentence += ends.get(turn, "")
        yield _draw_ring(held, is_held, owner, sent), f"{sentence}."


@in_steps
def needs(words, lines: dict):
    """Show, line by line, from which words, heads and sentences a result takes numbers.

    Args:
        words: of two sentences, three each; both are drawn in two heads.
        lines: dict from a line of code to a text and to places (sentence, head, word),
            first that of a result, in head 0, then those of what it needs. Parameters,
            which aren't at a word, have their name instead of a place.
    """
    blue = INK["score"]
    for number, (line, (text, *needed)) in enumerate(lines.items(), 1):
        picture, boxes = Picture(), {}
        picture.step((0.15, 0.16), number)
        style = {"family": "DejaVu Sans Mono", "ha": "left", "color": INK[None]}
        picture.write(0.34, 0.16, line, TITLE, **style)
        for i, head, j in np.ndindex(2, 2, 3):
            at = 0.85 + 3.1 * i + 0.97 * j, 1.15 + 0.8 * head
            boxes[i, head, j] = box = Box(*at, 0.85, 0.38)
            is_result = (i, head, j) in needed[:1]
            style = {"facecolor": blue if is_result else "white", "linewidth": 1.4}
            style["edgecolor"] = blue if (i, head, j) in needed else PALE
            picture._add_box(box, 0.07, **style)
            color = "white" if is_result else "black"
            picture.write(*box.middle, words[i][j], TITLE, color=color)
            if i + j == 0:
                picture.write(0.05, box.left[1], f"head {head}", TITLE, ha="left")
        if isinstance(needed[0], str):
            boxes[needed[0]] = box = Box(0.35, 0.5, 1.25, 0.38)
            picture._add_box(box, 0.07, facecolor=blue, edgecolor=blue)
            picture.write(*box.middle, needed[0], TITLE, color="white")
        for place in needed[1:]:
            start, end = boxes[place], boxes[needed[0]]
            if isinstance(needed[0], str):
                is_below = start.x < end.right[0]
                stop = (start.top[0], end.bottom[1]) if is_below else end.right
                picture.wire(start.top, stop, "score")
                continue
            bend = 0 if place[1] else -0.08 * (1 + abs(start.x - end.x))
            ends = (start, end) if bend else (start.top, end.bottom)
            picture.wire(*ends, "score", bend=bend)
        style = {"head": False, "dashed": True}
        for name, x in {"cut words": 1.76, "cut sentences": 3.83}.items():
            picture.wire((x, 0.5), (x, 2.45), **style)
            picture.note((x, 2.6), name, align="center", bold=True)
        picture.wire((0.85, 1.74), (5.9, 1.74), **style)
        picture.note((5.95, 1.74), "cut heads", bold=True)
        yield picture, text


PARTIAL, COMPLETE = 4, 5  # colours of sums
RING = ("top", "left"), ("top", "right"), ("bottom", "right"), ("bottom", "left")


def _draw_ring(held, is_held, owner, sent=()):
    """Draw four processes, and what each has just sent to the next."""
    rows = {"name": 0.35, "top": 0.35, "gap": 0.9, "bottom": 0.35, "": 0.4}
    at = places(rows, {"left": 2.4, "right": 2.4})
    picture, boxes = Picture(), []
    for rank, corner in enumerate(RING):
        style = {"owner": [owner[rank].tolist()], "mask": is_held[rank : rank + 1]}
        style |= {"cell": 0.58, "centred": True}
        box = picture.grid(at(*corner), held[rank : rank + 1], None, " ", **style)
        y = box.y - 0.15 if corner[0] == "top" else box.bottom[1] + 0.17
        picture.note((box.top[0], y), f"process {rank}", align="center", bold=True)
        boxes.append(box)
    for number, start, end in zip(sent, boxes, [*boxes[1:], boxes[0]]):
        picture.wire(start, end, text=f"{number:,}")
    return picture


@in_steps
def ring_attention(exponentials, values):
    """Show ring attention: keys and values go round, and every process adds them up.

    Args:
        exponentials: (P, P), `e**score` of each query with each key; P is 2 to 6.
        values: P numbers. Process p has query p, and begins with key and value p.

    >>> exponentials = [[1, 2, 4], [1, 3, 1], [1, 1, 4]]
    >>> ring_attention(exponentials, [6, 12, 3], title="T")
    Picture in 5 states: T.
    1. Process 0 holds key 0 and value 6, computes the exponential 1, and its sums \
become 1 × 6 = 6 and 1.
    2. Process 0 passes key 0 and value 6 on to process 1, and gets key 2 and value 3 \
from process 2.
    3. Process 0 holds key 2 and value 3, computes the exponential 4, and its sums \
become 6 + 4 × 3 = 18 and 1 + 4 = 5.
    4. Process 0 passes key 2 and value 3 on to process 1, and gets key 1 and value 12 \
from process 2.
    5. Process 0 holds key 1 and value 12, computes the exponential 2, and its sums \
become 18 + 2 × 12 = 42 and 5 + 2 = 7: it divides 42 ÷ 7 = 6.
    """
    exponentials, values = map(torch.tensor, (exponentials, values))
    size = len(values)
    ranks, totals = torch.arange(size), torch.zeros(size, 2).double()
    names = [f"key {k} and value {_short(v)}" for k, v in enumerate(values)]
    for turn in range(size):
        origin = (ranks - turn) % size  # whose key and value each process has
        key = origin[0]
        if turn:
            before = (origin + 1) % size
            picture = _draw_keys_in_ring(values, before, totals)
            sentence = f"Process 0 passes {names[before[0]]} on to process 1, and gets "
            yield picture, f"{sentence}{names[key]} from process {size - 1}."
        now = exponentials[ranks, origin]
        exponential, value = _short(now[0]), _short(values[key])
        products, total = map(_short, totals[0])
        start = (f"{products} + ", f"{total} + ") if turn else ("", "")
        totals = totals + torch.stack((now * values[origin], now), dim=1)
        products, total = map(_short, totals[0])
        sentence = f"Process 0 holds {names[key]}, computes the exponential "
        sentence += f"{exponential}, and its sums become {start[0]}{exponential} × "
        sentence += f"{value} = {products} and {start[1]}{exponential}"
        sentence += f" = {total}" if turn else ""
        outputs = None
        if turn == size - 1:
            outputs = totals[:, 0] / totals[:, 1]
            sentence += f": it divides {products} ÷ {total} = {_short(outputs[0])}"
        picture = _draw_keys_in_ring(values, origin, totals, now, outputs)
        yield picture, f"{sentence}."


def _draw_keys_in_ring(values, origin, totals, now=None, outputs=None):
    """Draw a column for each process: what it holds, computes and has added up.

    now: the exponentials that are computed; without them the arrows of a pass are drawn
    """
    rows = {"name": 0.3, "held": 0.45, "gap": 0.3, "query": 0.5}
    rows |= {"now": 0.5, "sum": 0.5, "exp": 0.5, "out": 0.5}
    columns = {"name": 1.5} | dict.fromkeys(range(len(values)), 5.2 / len(values))
    picture, at, held = Picture(), places(rows, columns), []
    for row, text in (
        ("held", "moves: key, value"),
        ("query", "stays: query"),
        ("now", "computes: exponential"),
        ("sum", "stays: sum of products"),
        ("exp", "stays: sum of exponentials"),
        ("out", "output"),
    ):
        _label(picture, at, row, text)
    for rank, chunk in enumerate(origin.tolist()):
        style = {"owner": [[chunk] * 2], "cell": 0.58, "centred": True}
        picture.note(at("name", rank), f"process {rank}", align="center", bold=True)
        pair = [[f"key {chunk}", _short(values[chunk])]]
        held.append(picture.grid(at("held", rank), pair, None, " ", **style))
        _cell(picture, at("query", rank), f"query {rank}", "query", 0.8)
        if now is not None:
            _cell(picture, at("now", rank), _short(now[rank]), "score", 0.8)
        for row, number in zip(("sum", "exp"), totals[rank]):
            _cell(picture, at(row, rank), _short(number), "weight", 0.8)
        if outputs is not None:
            _cell(picture, at("out", rank), _short(outputs[rank]), "output", 0.8)
    if now is None:
        for start, end in zip(held, held[1:]):
            picture.wire(start, end)
        (x, y), low = held[-1].bottom, held[-1].bottom[1] + 0.22
        picture.wire((x, y), held[0].bottom, via=[(x, low), (held[0].bottom[0], low)])
    return picture
