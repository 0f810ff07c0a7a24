"""Scenes in steps: the processes of one notebook each, with a slider, in one call.

Each function computes its states from the arrays of the page. A state adds to the one
before it or changes it, and whatever stays keeps its place.
"""

import math

import torch
from torch import Tensor

from utils.attention import causal_mask, masked_softmax
from utils.plots.picture import LINE, Box, Picture, places
from utils.plots.publishing import (
    format_number,
    num_digits,
    text_width,
    to_names,
    visible,
)
from utils.plots.steps import steps
from utils.plots.theme import GREY, INK, WIDTH
from utils.tokenizer import encode_bpe

NAME_COLUMN = 0.95  # inches, for the names of the rows


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


# --- 01 ---------------------------------------------------------------------------


def merges(text: str, merges: dict, *, title: str) -> None:
    """Show how merges join the bytes of one line of text, one merge a state.

    The letters keep their places: a merge takes away the borders between two pieces.

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
    pieces, frames = {i: bytes([i]) for i in range(256)}, []
    for number in range(len(merges) + 1):
        learned = dict([*merges.items()][:number])
        for (left, right), new_id in learned.items():
            pieces[new_id] = pieces[left] + pieces[right]
        newest = learned[[*learned][-1]] if learned else None
        ids = encode_bpe(text, learned)
        picture = Picture()
        _draw_line(picture, [pieces[i] for i in ids], [i == newest for i in ids])
        picture.note((0.1, 0.75), f"{len(ids)} pieces", bold=True)
        for k, ((left, right), new_id) in enumerate(learned.items()):
            names = [visible(pieces[i]) for i in (left, right, new_id)]
            _draw_merge(picture, k, names, new_id == newest)
        sentence = f"Every byte is a piece of its own, which makes {len(ids)} pieces."
        if learned:
            sentence = (
                f"Merge {number} joins {names[0]} and {names[1]} wherever they are "
                f"neighbours: {len(ids)} pieces are left."
            )
        frames.append((picture, sentence))
    steps(frames, title=title)


def _draw_line(picture, pieces, is_new):
    """Draw pieces as boxes without gaps, as wide as their bytes are many."""
    x, cell = 0.1, min(0.3, (WIDTH - 0.2) / sum(map(len, pieces)))
    for piece, new in zip(pieces, is_new):
        size = cell * len(piece), LINE
        kind = "learned" if len(piece) > 1 else "op"
        box = picture.block((x, 0.2), "", kind, size=size)
        if new:
            picture.grid((x, 0.2), [[""]], owner=[0], lit=0, cell=size[0])
        for j, byte in enumerate(piece):
            letter = visible(bytes([byte]))
            picture.write(x + (j + 0.5) * cell, box.middle[1], letter)
        x += size[0]


def _draw_merge(picture, number, names, is_new):
    """Draw a line of the table of merges: left + right → new piece."""
    at = places(
        {"pieces": 0.95} | dict.fromkeys(range(12), 0.34),
        {"name": 0.8, "left": 0.8, "+": 0.2, "right": 0.8, "→": 0.3, "new": 0.9, "": 2},
    )
    picture.note((0.1, at(number, "name")[1]), f"merge {number + 1}", bold=is_new)
    for column, name in zip(("left", "right", "new"), names):
        style = {"owner": [0], "lit": 0} if is_new and column == "new" else {}
        picture.grid(at(number, column), [[name]], centred=True, **style)
    picture.note(at(number, "+"), "+", align="center")
    (x, y) = at(number, "→")
    picture.wire((x - 0.15, y), (x + 0.15, y))


# --- 03 ---------------------------------------------------------------------------

ATTENTION = {"word": 0.5, "query": 0.62, "key": 0.62, "score": 0.5, "softmax": 0.5}
ATTENTION |= {"weight": 0.5, "value": 0.62, "part": 0.62, "context": 0.8}


def compare_share_mix(
    words,
    followed: int,
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    title: str,
    divisor: tuple[str, float] | None = None,
    plain: bool = False,
) -> None:
    """Show attention of one word: compare with each, share out, mix word by word.

    Args:
        words: 2 to 5 of them, T in all; `followed` is the number of the one that looks.
        query: (K,)
        keys, values: (T, K) and (T, V)
        divisor: what the scores are divided by, as text and number: ("√2", 2**0.5).
        plain: the three roles are one vector, so they have no colour (notebook 03).

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
    text, number = divisor or ("", 1)
    scores = keys @ query / number  # (T,)
    weights = scores.softmax(dim=0)
    sums = (weights[:, None] * values).cumsum(dim=0)  # (T, V)
    arrays = query, keys, values, scores, weights, sums
    states = [(j + 1, 0) for j in range(len(words))]
    states += [(len(words), mixed) for mixed in range(len(words) + 1)]
    frames = []
    for compared, mixed in states:
        is_shared = len(frames) >= len(words)
        picture = _draw_attention_state(
            names, followed, arrays, compared, is_shared, mixed, text, plain
        )
        if not is_shared:
            score = format_number(scores[compared - 1])
            other = names[compared - 1]
            by = f", divided by {text}," if text else ""
            sentence = f"Compare {names[followed]} with {other}: the score{by} is {score}."
        elif not mixed:
            sentence = "Share out: the softmax turns the scores into weights that sum to 1."
        else:
            share, word = format_number(weights[mixed - 1]), names[mixed - 1]
            sentence = f"Mix: {share} of {word} has been added, and the sum is "
            sentence += f"{_vector(sums[mixed - 1])}."
        frames.append((picture, sentence))
    steps(frames, title=title)


def _draw_attention_state(
    names, followed, arrays, compared, is_shared, mixed, divisor, plain
):
    """Draw one state: so many words compared, weights or not, so many words mixed."""
    query, keys, values, scores, weights, sums = arrays
    roles = {"query": "query", "key": "key", "value": "value", "output": "output"}
    roles = dict.fromkeys(roles, "x") if plain else roles
    size = len(names)
    width = (WIDTH - 0.2 - NAME_COLUMN) / size
    at = places(ATTENTION, {"name": NAME_COLUMN} | dict.fromkeys(range(size), width))
    cell = min(0.5, (width - 0.15) / max(keys.shape[1], values.shape[1]))
    picture, number = Picture(), mixed if is_shared else compared
    now = number - 1 if number else None  # the column that changes
    shown = ["word", "query", "key", "score"]
    shown += ["softmax", "weight"] * is_shared + ["value", "part", "context"] * bool(mixed)
    titles = {"score": f"score, ÷ {divisor}" if divisor else "score", "softmax": ""}
    titles |= {"part": "weight × value", "context": "sum so far"}
    titles |= {"context": "context"} if mixed == size else {}
    titles |= {"query": "query", "key": "keys", "value": "values", "weight": "weights"}
    if plain:
        titles |= {"query": f"{names[followed]}", "key": "each word", "value": "each word"}
    for name in shown:
        picture.note((0.05, at(name, "name")[1]), titles.get(name, name))

    def draw(row, j, numbers, role, **style):
        return picture.grid(at(row, j), numbers, role, " ", cell=cell, centred=True, **style)

    start = draw("query", followed, query, roles["query"])
    for j, name in enumerate(names):
        if j == now:
            x, y = at("word", j)
            high = at("part" if is_shared else "score", j)[1] - y
            picture.shelf(Box(x - width / 2 + 0.13, y, width - 0.26, high), "", "process")
        picture.word(at("word", j), name, lit=j == followed)
        key = draw("key", j, keys[j], roles["key"])
        if j < compared:
            x, y = at("score", j)
            score = format_number(scores[j])
            if j == now and not is_shared:
                raw = format_number(keys[j] @ query)
                text = _product(query, keys[j], score)
                text = f"{raw} ÷ {divisor} = {score}" if divisor else text
                score = text if text_width(text) < width - 0.1 else score
            picture.note((x, y), score, "score", align="center")
            if j == now and not is_shared:
                picture.wire(start, key.top, turn=key.top[0])
                picture.wire(key.bottom, (x, y - 0.12), "score")
        if is_shared:
            share = float(weights[j])
            x, y = at("weight", j)
            weight = picture.grid((x, y), [[share]], "weight", " ", cell=2 * cell, centred=True)
            if not mixed:
                picture.wire((x, at("score", j)[1] + 0.12), (x, at("softmax", j)[1] - 0.13), "score")
                picture.wire((x, at("softmax", j)[1] + 0.13), weight.top, "weight")
        if mixed:
            value = draw("value", j, values[j], roles["value"])
        if is_shared and j < mixed:
            part = draw("part", j, weights[j] * values[j], roles["value"])
            picture.wire(weight, value, "weight", head=False)
            picture.wire(value, part, roles["value"])
    if is_shared:
        left, right = at("softmax", 0), at("softmax", size - 1)
        box = picture.block((left[0] - cell, left[1] - 0.13), "softmax", "op", size=(right[0] - left[0] + 2 * cell, 0.26))
    if mixed:
        context = draw("context", followed, sums[now], roles["output"], lit=0)
        for j in range(mixed):
            x, y = at("part", j)
            picture.wire((x, y + LINE / 2), context, roles["value"], turn=x)
    return picture


# --- 04 ---------------------------------------------------------------------------


def rotate_query(
    query: Tensor, keys: Tensor, values: Tensor, names, *, title: str
) -> None:
    """Show a query that rotates by 15° per state, its weights, and its output.

    The output stays inside the triangle of the values, because weights are shares.

    Args:
        query: (2,), the first direction; keys, values: (3, 2); names: 3 of them.

    >>> triangle = torch.tensor([[2.0, 0], [0, 2], [-2, 0]])
    >>> rotate_query(triangle[0], triangle, triangle, "abc", title="T")
    ... # doctest: +ELLIPSIS
    Picture in 12 states: T.
    1. At 0° the query weighs a 0.94, b 0.06, c 0.00; the output is (1.88, 0.11).
    2. ...
    """
    names, angles = to_names(names, len(keys), "names"), range(0, 180, 15)
    turns = torch.tensor([math.radians(angle) for angle in angles])
    (x, y), cos, sin = query, turns.cos(), turns.sin()
    queries = torch.stack([cos * x - sin * y, sin * x + cos * y], dim=-1)  # (12, 2)
    weights = (queries @ keys.mT / keys.shape[1] ** 0.5).softmax(dim=-1)  # (12, 3)
    outputs, frames = weights @ values, []
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
        frames.append((picture, f"{sentence}the output is {_vector(outputs[i])}."))
    steps(frames, title=title)


def _draw_keys(picture, query, keys, names, length):
    """Draw the plane of the keys and the query, as arrows from its middle."""
    middle, reach = (1.3, 1.55), 1.4 * max(length, float(keys.norm(dim=-1).max()))
    picture.note((middle[0], 0.12), "query and keys", align="center", bold=True)
    place = picture.plane(middle, 2.4, reach)
    for name, vector, role in [*zip(names, keys, "kkk"), ("query", query, "q")]:
        role = {"k": "key", "q": "query"}[role]
        picture.wire(middle, place(vector), role)
        beyond = vector * (1 + 0.15 * reach / vector.norm())
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
        beyond = value * (1 + 0.22 * reach / value.norm().clamp(min=1e-6))
        picture.write(*place(beyond), name, color=INK["value"])
    picture.dot(end, "output", 0.09)


# --- 05 ---------------------------------------------------------------------------


def causal_rows(scores: Tensor, words, *, title: str) -> None:
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
    weights, frames = masked_softmax(scores, mask), []
    rows = {"word": 0.6, "score": 0.5, "softmax": 0.55, "weight": 0.5, "gap": 0.45}
    rows |= dict.fromkeys(range(size), LINE)
    cell = 0.8
    at = places(rows, {"name": 1.1} | dict.fromkeys(range(size), cell))
    for t, name in enumerate(names):
        picture = Picture()
        for lane in ("word", "score", "weight"):
            picture.note((0.05, at(lane, "name")[1]), f"{lane}s")
        picture.note((0.05, at(0, "name")[1] - 0.3), "all weights")
        for j, other in enumerate(names):
            is_seen = mask[t, j].view(1, 1)
            if is_seen:
                picture.word(at("word", j), other, lit=j == t)
            else:
                picture.write(*at("word", j), other, color=GREY)
            style = {"centred": True, "cell": cell - 0.1}
            text = _short(scores[t, j]) + ("" if is_seen else " → −∞")
            role = "score" if is_seen else "x"
            score = picture.grid(at("score", j), [[text]], role, " ", **style)
            weight = picture.grid(
                at("weight", j), weights[t, j].view(1, 1), "weight", " ", mask=is_seen, **style
            )
            x, y = at("softmax", j)
            picture.wire(score.bottom, (x, y - 0.13), "score")
            if is_seen:
                picture.wire((x, y + 0.13), weight.top, "weight")
            for i in range(t + 1):
                style = {"mask": mask[i, j].view(1, 1), "centred": True, "cell": cell - 0.1}
                picture.grid(at(i, j), weights[i, j].view(1, 1), "weight", " ", **style)
        left, right = at("softmax", 0)[0] - cell / 2, at("softmax", size - 1)[0] + cell / 2
        place = left + 0.05, at("softmax", 0)[1] - 0.13
        picture.block(place, "softmax", size=(right - left - 0.1, 0.26))
        for i in range(t + 1):
            x, y = at(i, "name")
            picture.note((at(i, 0)[0] - cell / 2 - 0.02, y), names[i], align="right", bold=i == t)
        sentence = f"{name} sees {', '.join(names[: t + 1])}; "
        hidden = names[t + 1 :]
        are, their = ("is", "its") if len(hidden) == 1 else ("are", "their")
        sentence += (
            f"{', '.join(hidden)} {are} hidden, and the softmax gives {their} −∞ "
            "the weight 0."
            if hidden
            else "nothing is hidden."
        )
        frames.append((picture, sentence))
    steps(frames, title=title)


# --- 06 ---------------------------------------------------------------------------


def split_and_merge(x: Tensor, num_heads: int, *, title: str) -> None:
    """Show how features are split into heads and merged, and how views alone fail.

    Each colour is one token. Below is the row of numbers in memory, which a view cuts
    without moving anything.

    Args:
        x: (T, D), T up to 4, with at most 16 entries.
        num_heads: divides D.

    >>> split_and_merge(torch.arange(8).view(2, 4), 2, title="T")
    Picture in 8 states: T.
    1. Memory is one row of 8 numbers, here 4 for each of 2 tokens.
    2. view(2, 4) cuts the row after every 4 numbers: a line per token.
    3. view(2, 2, 2) cuts each token again: a part per head.
    4. transpose(0, 1) puts the parts of one head below each other.
    5. transpose(0, 1) again brings the parts of one token back together.
    6. view(2, 4) lays the parts of a token beside each other, and all is as before.
    7. view(2, 2, 2) alone cuts the row in its order: head 0 gets all features of token 0.
    8. reshape(2, 4) alone lays out the heads in their order: a line mixes several tokens.
    """
    size, width = x.shape
    shape = size, num_heads, width // num_heads
    owner = torch.arange(size)[:, None].expand(size, width)  # whose number it is
    cut, owners = x.view(shape), owner.reshape(shape)
    heads, head_owners = cut.transpose(0, 1), owners.transpose(0, 1)
    swapped = num_heads, size, width // num_heads
    def name(kind, count):
        return [f"{kind} {i}" for i in range(count)]

    token, head, flat = name("token", size), name("head", num_heads), (size, width)
    wrong, wrong_owners = x.reshape(swapped), owner.reshape(swapped)
    mixed, mixed_owners = heads.reshape(flat), head_owners.reshape(flat)
    whole = x[None], owner[None], [""], token
    apart = cut, owners, token, head
    states = [  # numbers and owners (N, rows, columns), names of the N, of the rows
        (x.view(1, 1, -1), owner.reshape(1, 1, -1), [""], [""], "memory", f"Memory is one row of {x.numel()} numbers, here {width} for each of {size} tokens."),
        (*whole, f"view{flat}", f"view{flat} cuts the row after every {width} numbers: a line per token."),
        (*apart, f"view{shape}", f"view{shape} cuts each token again: a part per head."),
        (heads, head_owners, head, token, "transpose(0, 1)", "transpose(0, 1) puts the parts of one head below each other."),
        (*apart, "transpose(0, 1)", "transpose(0, 1) again puts the parts of one token together."),
        (*whole, f"reshape{flat}", f"reshape{flat} lays the parts of a token beside each other, and all is as before."),
        (wrong, wrong_owners, head, name("row", size), f"view{swapped} alone", f"view{swapped} alone cuts the row in its order: head 0 gets all features of token 0."),
        (mixed[None], mixed_owners[None], [""], name("row", size), f"reshape{flat} alone", f"reshape{flat} alone lays out the heads in their order: a line mixes several tokens."),
    ]
    frames = []
    for values, owners, names, rows, call, sentence in states:
        picture = Picture()
        is_wrong = call.endswith("alone")
        source = heads.reshape(-1) if call == f"reshape{flat} alone" else x.reshape(-1)
        picture.note((0.1, 0.12), "memory", bold=True)
        cell = min(0.4, (WIDTH - 0.2) / x.numel())
        order = head_owners if call == f"reshape{flat} alone" else owner
        strip = picture.grid((0.1, 0.27), source[None], None, " ", owner=order.reshape(1, -1), cell=cell)
        if call != "memory":
            picture.note((0.1, 0.95), f"✗ {call}" if is_wrong else call, bold=True)
            _draw_parts(picture, values, owners, names, rows)
        frames.append((picture, sentence))
    steps(frames, title=title)


def _draw_parts(picture, values, owners, names, rows):
    """Draw matrices side by side, a colour for each token."""
    x, cell = 0.85, 0.4
    for i, (part, owner, name) in enumerate(zip(values, owners, names)):
        style = {"owner": owner, "cell": cell, "rows": rows}
        box = picture.grid((x, 1.55), part, None, name or " ", **style)
        x += box.width + 0.95
