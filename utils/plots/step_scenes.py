"""Scenes in steps: the processes of one notebook each, with a slider, in one call.

Each function yields its states, pairs of a picture and a sentence, which `in_steps`
shows below a `title`. A state adds to the one before it or changes it, and whatever
stays keeps its place.
"""

import math

import torch
from torch import Tensor

from utils.attention import causal_mask, masked_softmax
from utils.plots.picture import LINE, Box, Picture, draw_lines
from utils.plots.publishing import (
    format_number,
    short_number,
    to_names,
    visible,
)
from utils.plots.scenes import (
    SHARED,
    SUMMED,
    draw_looks,
    draw_owners,
)
from utils.plots.steps import in_steps
from utils.plots.theme import INK, WIDTH
from utils.tokenizer import decode_bpe, encode_bpe
from utils.validation import raise_unless


def _vector(numbers):
    """Return a vector as a text: (1.00, −0.60)."""
    return f"({', '.join(map(format_number, numbers))})"


def _short_vector(numbers):
    """Return a vector as a text without needless decimals: (1, −0.6)."""
    return f"({', '.join(map(short_number, numbers))})"


def _listed(texts):
    """Return texts as in a sentence: a, b and c."""
    return " and ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))


def _rotated(vector, angle):
    """Return a vector of two numbers, rotated by an angle in radians."""
    cos, sin = math.cos(angle), math.sin(angle)
    return torch.tensor([[cos, -sin], [sin, cos]]) @ vector


# --- 01 ---------------------------------------------------------------------------


@in_steps
def merges(text: str, merges: dict):
    """Show how merges join the bytes of one line of text, one merge a state.

    A merge takes away the borders between two pieces. Each state adds a row, so the
    last one shows all of them.

    text: at most 40 ASCII characters
    merges: 3 to 11 of them, from a pair of ids to its new id, in their order
    """
    merges_so_far, rows = {}, {}
    for number, pair in enumerate([None, *merges]):
        if pair:
            merges_so_far[pair] = merges[pair]
        ids, name = encode_bpe(text, merges_so_far), "bytes"
        sentence = f"Every byte is a piece of its own, which makes {len(ids)} pieces."
        if pair:
            left, right = (visible(decode_bpe([i], merges)) for i in pair)
            name = f"{number}: {left} + {right}"
            sentence = f"Merge {number} joins {left} and {right} wherever they are "
            sentence += f"neighbours: {len(ids)} pieces are left."
        rows[name] = [(decode_bpe([i], merges), i == merges.get(pair)) for i in ids]
        yield _draw_merges(rows), sentence


def _draw_merges(rows):
    """Draw a row of pieces for each merge, as wide as their bytes are many."""
    picture = Picture(dict.fromkeys(rows, 0.38))
    picture.label({name: name for name in rows}, bold=[*rows][-1:])
    for name, pieces in rows.items():
        x, y = 1.2, picture.rows[name]
        cell = min(0.3, (WIDTH - 2.1) / sum(len(piece) for piece, _ in pieces))
        picture.note((WIDTH - 0.1, y), f"{len(pieces)} pieces", align="right")
        for piece, is_new in pieces:
            style = {"owner": [0] if is_new else None, "cell": cell * len(piece)}
            x = picture.grid((x, y - LINE / 2), [[piece]], **style).right[0]
    return picture


# --- 03 and the hour --------------------------------------------------------------


@in_steps
def compare_share_mix(
    words, followed: int, x: Tensor, output: str = "x", features=None
):
    """Show attention of one word: compare with a word, with all, share out, mix.

    words: 2 to 5 of them, T in all; `followed` is the number of the one that looks
    x: (T, d), the query, the key and the value of each word
    output: the role of the context vector
    features: the names of the columns of x, if there are four
    """
    names, scores = to_names(words, len(x), "words"), x @ x[followed]  # (T,)
    weights, (first, *other_names), count = scores.softmax(dim=0), names, len(names)
    shares = [f"{format_number(w)} of {name}" for w, name in zip(weights, names)]
    score, context = format_number(scores[0]), _vector(weights @ x)
    states = {  # how many words have been compared and mixed
        (1, None): f"Compare {names[followed]} with {first}: the score is {score}.",
        (count, None): f"Compare it in the same way with {_listed(other_names)}.",
        (count, 0): "Share out: the softmax turns scores into weights, which sum to 1.",
        (count, 1): f"Mix: take {shares[0]}.",
        (count, count): f"Mix: {_listed(shares)} add up to {context}.",
    }
    key = "{},\n{}, {},\n{}".format(*features) if features else "each word"
    labels = {"word": "word", "query": names[followed], "key": key}
    labels |= {"score": "score", "softmax": "", "weight": "weights"}
    labels |= {"value": "each word", "part": "weight × word"}
    roles, vectors = ("x", "x", "x", output), (x[followed], x, x)
    for state, text in states.items():
        labels["context"] = "sum so far" if state == (count, 1) else "context"
        yield _draw_attention(names, followed, vectors, roles, labels, *state), text


@in_steps
def attention(words, features, x: Tensor, head, meanings):
    """Show attention of the last of three words. What was known before is pale.

    features: the four names of the columns of x, (3, 4)
    head: its query, key and value, (3, 2) each
    meanings: what the numbers of queries and keys mean, and those of values
    """
    (queries, keys, values), (looking, giving) = head, meanings
    query, last, scores = queries[2], words[2], keys @ queries[2]
    best_word, weights = words[scores.argmax()], scores.softmax(dim=0)
    asked, mixed = ", ".join(map(short_number, query)), _vector(weights @ values)
    asks = f"{last} asks with the query ({asked}), and each word shows its key."
    compares = f"Compare: the key of {best_word} fits best, with the score "
    states = {  # how many words have been compared and mixed
        (0, None): asks,
        (3, None): f"{compares}{scores.max():.0f}.",
        (3, 0): f"Share out: {best_word} gets the weight {weights.max():.2f}.",
        (3, 3): f"Mix the values: {last} gets the context vector {mixed}.",
    }
    labels = {"word": "words", "x": "{}, {},\n{}, {}".format(*features), "gap": ""}
    labels |= {"query": f"query\n{looking}", "key": f"keys\n{looking}"}
    labels |= {"score": "score", "softmax": "", "weight": "weights"}
    labels |= {"value": f"values\n{giving}", "part": "weight × value"}
    labels["context"] = f"context\n{giving}"
    roles, vectors = ("query", "key", "value", "output"), (query, keys, values)
    for state, text in states.items():
        picture = _draw_attention(words, 2, vectors, roles, labels, *state)
        top, low = picture.rows["query"] - 0.17, picture.rows["context"]
        picture.shelf(Box(0.1, top, 6.7, low - top + 0.2), "attention", "memory")
        picture.is_pale = True
        for j, row in enumerate(x):
            picture.put("x", j, row, "x", 0.37)
        yield picture, text


def _draw_attention(names, followed, vectors, roles, labels, compared, mixed):
    """Draw attention of one word in a column for each, as far as it has come.

    vectors, roles: of the query (d_k,), the keys (T, d_k), the values (T, d_v), and
        the role of the output
    labels: of the rows, which are those of `HEIGHTS`
    compared, mixed: how many words; None if weights aren't known yet
    """
    (query, keys, values), width = vectors, (WIDTH - 1.15) / len(names)
    heights = {row: HEIGHTS.get(row, 0.5) for row in labels}
    picture = Picture(heights, {"": 0.95} | dict.fromkeys(range(len(names)), width))
    picture.label(labels)

    def put(row, j, numbers, role, **style):
        cell = min(0.5, (width - 0.15) / len(numbers))
        return picture.put(row, j, numbers, role, cell, **style)

    asks, found, gives, output = roles
    start, scores = put("query", followed, query, asks), keys @ query
    weights = scores.softmax(dim=0)
    parts = weights[:, None] * values
    if mixed is not None:
        at = (1.2 + WIDTH - 0.25) / 2, picture.rows["softmax"]
        picture.block(at, "softmax", size=(WIDTH - 1.45, 0.26), centred=True)
    if mixed:
        end = put("context", followed, parts[:mixed].sum(dim=0), output, lit=0)
    for j, name in enumerate(names):
        (x, y), low = picture.at("score", j), picture.rows["softmax"]
        picture.word(picture.at("word", j), name, lit=j == followed)
        key = put("key", j, keys[j], found)
        if j < compared:
            text = format_number(scores[j])
            if compared == 1:
                numbers = zip(map(short_number, query), map(short_number, keys[j]))
                text = f"{' + '.join(map('·'.join, numbers))} = {text}"  # 3·0 + 1·1 = 1
            picture.note((x, y), text, "score", align="center")
            picture.wire(start, key.top, turn=x)
            picture.wire(key.bottom, (x, y - 0.12), "score")
        if mixed is not None:
            weight = picture.put("weight", j, [weights[j]], "weight", 1)
            picture.wire((x, y + 0.12), (x, low - 0.13), "score")
            picture.wire((x, low + 0.13), weight.top, "weight")
        if mixed:
            value = put("value", j, values[j], gives)
            picture.wire(weight.bottom, value.top, "weight", head=False)
            if j < mixed:
                part = put("part", j, [*map(format_number, parts[j])], gives)
                picture.chain(value, part)
                picture.wire(part.bottom, end, gives, turn=x)
    return picture


HEIGHTS = dict.fromkeys(("word", "score", "softmax", "weight"), 0.42)
HEIGHTS |= {"gap": 0.25, "context": 0.58}  # inches of these rows; others have 0.5


@in_steps
def learning(lines, stages):
    """Show how the last words of sentences learn where to look.

    lines: sentences of the same length, as lists of words
    stages: for each state a sentence, and the weights of the last word of each line
    """
    for text, weights in stages:
        picture, last = Picture(), [len(words) - 1 for words in lines]
        draw_looks(picture, lines, last, weights)
        yield picture, text


# --- 04 ---------------------------------------------------------------------------


@in_steps
def rotate_query(query: Tensor, keys: Tensor, values: Tensor, names):
    """Show a query that rotates from 0° to 90°, its weights, and its output.

    The output stays inside the triangle of the values, because weights are shares.

    query: (2,), the first direction; keys, values: (3, 2); names: 3 of them
    """
    names, outputs = to_names(names, len(keys), "names"), []
    columns = {"query and keys": 2.4, "weights": 1.2, "values and output": 2.4}
    for angle in range(0, 105, 15):
        rotated_query = _rotated(query, math.radians(angle))
        weights = (keys @ rotated_query).softmax(dim=0)  # (3,)
        outputs.append(weights @ values)
        picture = Picture({"name": 0.3, "": 2.5}, columns)
        for column in columns:
            picture.head("name", column, column)
        place = picture.plane(picture.at("", "query and keys"), 2.2, [query, *keys])
        picture.put("", "weights", weights[:, None], "weight", 0.6, rows=names)
        inside = picture.plane(picture.at("", "values and output"), 2.2, values)
        _draw_vector(picture, place, rotated_query, "query", "query")
        for i, (name, key, value) in enumerate(zip(names, keys, values)):
            _draw_vector(picture, place, key, name, "key")
            corner, ends = inside(value), (inside(values[i - 1]), inside(outputs[-1]))
            picture.wire(corner, ends[0], "x", head=False, dashed=True)
            picture.wire(
                corner, ends[1], "weight", weight=float(weights[i]), head=False
            )
            picture.dot(corner, "value")
            _name_point(picture, corner, value - values.mean(dim=0), name, "value")
        for output in outputs[:-1]:
            picture.dot(inside(output), "x", 0.03)
        picture.dot(inside(outputs[-1]), "output", 0.09)
        shares = (f"{n} {format_number(w)}" for n, w in zip(names, weights))
        text = f"At {angle}° the query weighs {', '.join(shares)}; the output is "
        yield picture, f"{text}{_vector(outputs[-1])}."


def _draw_vector(picture, place, vector, text, role, **style):
    """Draw a vector as an arrow from the middle of a plane, with a text at its tip."""
    picture.wire(place((0, 0)), place(vector), role, **style)
    _name_point(picture, place(vector), vector, text, role)


def _name_point(picture, point, direction, text, role):
    """Write a text near a point, in a direction of the plane."""
    across, up = (direction / direction.norm().clamp(min=1e-6)).tolist()
    side = "center" if abs(across) < 0.4 else "left" if across > 0 else "right"
    x, y = point[0] + 0.14 * across, point[1] - 0.16 * up
    picture.write(x, y, text, color=INK[role], ha=side)


# --- 05 ---------------------------------------------------------------------------


@in_steps
def causal_rows(scores: Tensor, words):
    """Show a causal mask token by token: a row of scores becomes a row of weights.

    scores: (T, T), T from 4 to 7, the query down, the key across
    words: T of them
    """
    size, names = len(scores), to_names(words, len(scores), "words")
    mask = causal_mask(size)
    weights = masked_softmax(scores, mask)
    for t, name in enumerate(names):
        texts = [short_number(score) for score in scores[t]]
        texts[t + 1 :] = [f"{score} → −∞" for score in texts[t + 1 :]]
        asked = {"values": [texts], "role": "score", "name": f"scores of {name}"}
        share, style = {"role": "weight", "name": "weights"}, {"cell": 0.65}
        share |= {"values": weights[t], "mask": mask[t]}
        so_far = {"values": weights[: t + 1], "role": "weight", "name": "all weights"}
        so_far |= {"rows": names[: t + 1], "mask": mask[: t + 1], "lit": t}
        style["columns"] = names
        first_line = asked | style, "softmax →", share | style
        picture = draw_lines(first_line, [so_far | style])
        hidden, effect = names[t + 1 :], "nothing is hidden."
        if hidden:
            are, their = ("is", "its") if len(hidden) == 1 else ("are", "their")
            effect = f"{', '.join(hidden)} {are} hidden, and the softmax gives "
            effect += f"{their} −∞ the weight 0."
        yield picture, f"{name} sees {', '.join(names[: t + 1])}; {effect}"


# --- 06 ---------------------------------------------------------------------------


@in_steps
def whole_layer(words, x: Tensor, matrices, out_proj: Tensor):
    """Show the six steps of a layer of two heads, with the shapes of all matrices.

    The last word is followed. What a state hasn't reached yet is empty and pale.

    x: (T, d_in)
    matrices: W_query, W_key and W_value, with both heads side by side: (d_in, D)
    out_proj: (D, D)
    """
    word, width, mask = words[-1], len(out_proj) // 2, causal_mask(len(x))
    cut = [(x @ matrix).split(width, dim=-1) for matrix in matrices]
    heads = []
    for q, k, v in zip(*cut):
        weights = masked_softmax(q @ k.mT / width**0.5, mask)
        heads.append((q, k, v, weights, weights @ v))
    joined = torch.cat([context for *_, context in heads], dim=-1)
    asked, found = (x @ matrices[0])[-1], [words[h[3][-1].argmax()] for h in heads]
    texts = (
        f"Multiply x by three matrices, in which both heads stand side by side: {word} "
        f"gets the queries {_short_vector(asked)}.",
        f"Cut each result into a part per head: the queries of {word} are "
        f"{' and '.join(_short_vector(q[-1]) for q, *_ in heads)}.",
        f"Compare in each head, divide, mask, and turn the scores into shares: {word} "
        f"finds {found[0]} in head 0, and {found[1]} in head 1.",
        f"Mix the values of each head: {word} gets "
        f"{' and '.join(_short_vector(context[-1]) for *_, context in heads)}.",
        f"Join what the heads have found: {word} gets {_short_vector(joined[-1])}.",
        f"Multiply by out_proj, which may combine it: {word} gets "
        f"{_short_vector((joined @ out_proj)[-1])}.",
    )
    for reached, text in enumerate(texts, 1):
        picture = _draw_layer(words, x, matrices, heads, joined, out_proj, reached)
        yield picture, text


def _draw_layer(words, x, matrices, heads, joined, out_proj, reached):
    """Draw the layer of `whole_layer` as far as one of its steps."""
    picture, width, lit = Picture(), len(out_proj) // 2, {"lit": len(x) - 1}
    mask = {"mask": causal_mask(len(x)), "shape": "(T, T)"}
    whole, per_head = {"shape": "(T, d_out)"}, {"shape": "(T, d_k)"}

    def grid(step, left, middle, cell, values, role, name, **style):
        picture.is_pale = step > reached
        if picture.is_pale:
            values, style["mask"] = [[""] * len(row) for row in values], None
            style["shape"], name = "", ""
        elif role != "weight":
            values = [[short_number(v, 1) for v in row] for row in values]
        at = left, middle - len(values) * LINE / 2
        return picture.grid(at, values, role, name, cell=cell, **style)

    y = 0.75 + len(x) * LINE / 2
    style = lit | {"rows": words, "shape": "(T, d_in)"}
    grid(1, 0.6, y, 0.22, x, "x", "x", **style)
    picture.sign((1.75, y), "×")
    picture.step((2.12, 0.22), 1)
    for i, name in enumerate(("W_query", "W_key", "W_value")):
        left = 2.2 + 1.6 * i
        picture.note((left + 0.66, 0.22), name, align="center", bold=True)
        for h, half in enumerate(matrices[i].split(width, dim=-1)):
            box = grid(1, left + 0.69 * h, y, 0.63 / width, half, None, "")
            picture.note((box.top[0], box.y - 0.12), f"head {h}", align="center")
    low, ends = box.bottom[1] + 0.14, []
    picture.note((4.46, low), "(d_in, d_out) each", align="center")
    low += 0.2
    picture.wire((2.2, low), (6.72, low), "x", head=False)
    for h, (q, k, v, weights, context) in enumerate(heads):
        left, y = 3.5 * h, low + 1.35
        picture.is_pale = False
        ground = Box(left + 0.1, y - 0.7, 3.15, 2.45)
        ground = picture.shelf(ground, f"head {h}", "memory")
        box = grid(2, left + 0.25, y, 0.28, q, "query", "q", **lit | per_head)
        grid(2, left + 1.05, y, 0.22, k.mT, "key", "k.T")
        grid(2, left + 1.05, y + 1.3, 0.33, v, "value", "v")
        picture.wire((2.7 + 2.5 * h, low), (2.7 + 2.5 * h, ground.y), "x")
        picture.step((box.x - 0.06, box.y + 0.02), 2)
        box = grid(3, left + 2.36, y, 0.31, weights, "weight", "weights", **lit | mask)
        picture.sign((left + 0.93, y), "×")
        picture.note((left + 2.03, y - 0.32), f"÷ √{width}", align="center")
        picture.sign((left + 2.03, y), "mask →")
        picture.note((left + 2.03, y + 0.13), "softmax", align="center")
        picture.step((box.x - 0.06, box.y + 0.02), 3)
        y += 1.3
        box = grid(4, left + 2.36, y, 0.33, context, "output", "context", **lit)
        picture.note((left + 0.18, y), "weights", "weight")
        picture.sign((left + 0.88, y), "×")
        picture.sign((left + 2.03, y), "=")
        picture.step((box.x - 0.06, box.y + 0.02), 4)
        ends.append(box.bottom)
    y += 1.75
    box = grid(5, 1.1, y, 0.33, joined, "output", "joined", **lit | whole)
    for h, end in enumerate(ends):
        goal, turn = box.at(0.25 + 0.5 * h, 0), end[1] + 0.4 + 0.12 * h
        picture.wire(end, goal, "value", via=[(end[0], turn), (goal[0], turn)])
    picture.step((box.x - 0.06, box.y + 0.02), 5)
    square = {"shape": "(d_out, d_out)"}
    grid(6, 2.95, y, 0.25, out_proj, None, "out_proj", **square)
    end = joined @ out_proj
    box = grid(6, 4.85, y, 0.33, end, "output", "output", **lit | whole)
    picture.sign((2.69, y), "×")
    picture.sign((4.4, y), "=")
    picture.step((box.x - 0.06, box.y + 0.02), 6)
    return picture


@in_steps
def split_and_merge():
    """Show how three tokens of four features are split into two heads, and merged.

    Each colour is one token. On top is the row of numbers in memory, which a view cuts
    without moving anything. Each mistake, a view alone, comes before the right way.
    """
    owner = torch.arange(3)[:, None].expand(3, 4)  # whose number it is
    both = torch.stack([torch.arange(12).view(3, 4), owner])  # they move alike
    memory, parts = both.view(2, 1, 12), both.view(2, 3, 2, 2)
    by_head = parts.transpose(1, 2)
    copied = by_head.reshape(2, 1, 12)
    tokens, rows = ([f"{name} {i}" for i in range(3)] for name in ("token", "row"))
    heads = ["head 0", "head 1"]
    as_lines, as_parts = (both[:, None], [" "], tokens), (parts, tokens, heads)
    wrong_split = both.view(2, 2, 3, 2), heads, rows
    wrong_merge = copied.view(2, 1, 3, 4), [" "], rows
    states = [  # in memory, in the picture, and a call with what it does
        (memory, None, "Memory is one row of 12 numbers, here 4 for each of 3 tokens."),
        (memory, as_lines, "view(3, 4) cuts the row after every 4 numbers."),
        (memory, wrong_split, WRONG_SPLIT),
        (memory, as_parts, "view(3, 2, 2) instead cuts each token: a part per head."),
        (memory, (by_head, heads, tokens), GATHERED),
        (copied, wrong_merge, WRONG_MERGE),
        (memory, as_parts, "transpose(0, 1) instead puts a token's parts together."),
        (memory, as_lines, "reshape(3, 4) then lays them side by side, as before."),
    ]
    for (values, owners), drawn, text in states:
        lines = [[{"values": values, "owner": owners, "name": "memory"}]]
        if drawn:
            matrices, titles, labels = drawn
            mark, call = "✗ " * (" alone " in text), text.partition(")")[0]
            lines.append([f"{mark}{call}) →"])
            for (values, owners), name in zip(matrices.transpose(0, 1), titles):
                grid = {"values": values, "owner": owners, "name": name}
                lines[1].append(grid | {"rows": labels})
        yield draw_lines(*lines), text


WRONG_SPLIT = (
    "view(2, 3, 2) alone cuts the row in its order: head 0 gets all of token 0."
)
GATHERED = "transpose(0, 1) puts the parts of one head together."
WRONG_MERGE = (
    "reshape(3, 4) alone copies head after head, so a row mixes several tokens."
)


# --- 08 ---------------------------------------------------------------------------


@in_steps
def draw_token(logits: Tensor, names, drawn: int, *, temperature, top_k, top_p):
    """Show the way from logits to a drawn token: temperature, top-k, top-p.

    logits: (V,), V up to 10, the largest first; names: V of them
    drawn: the number of the token that was drawn
    top_k: how many of the largest logits are kept
    top_p: tokens are kept, the largest first, until their sum is at least this
    """
    names = to_names(names, len(logits), "names")
    plain, cooled = logits.softmax(dim=0), (logits / temperature).softmax(dim=0)
    kept = torch.arange(len(logits)) < top_k
    best = cooled * kept / (cooled * kept).sum()
    nucleus = kept & (best.cumsum(dim=0) - best < top_p)
    raise_unless(nucleus[drawn], "a token that top-k and top-p keep", names[drawn])
    chosen = best * nucleus / (best * nucleus).sum()
    softmax, divided = (f"{names[0]} {format_number(p[0])}" for p in (plain, cooled))
    tau, top_p = map(format_number, (temperature, top_p))
    texts = (
        "The model gives each token a logit.",
        f"The softmax alone would give {softmax}.",
        f"Divided by a temperature τ of {tau}, the logits give {divided}.",
        f"top-k keeps the {top_k} largest, and their probabilities sum to 1 again.",
        f"top-p keeps the {nucleus.sum()} largest, whose sum reaches {top_p}.",
        f"One token is drawn with these probabilities: {names[drawn]}.",
    )

    def grid(name, numbers, role="weight", **style):
        return {"values": numbers, "name": name, "role": role, "cell": 0.7} | style

    columns = [
        grid("logit", logits[:, None], "score", rows=names),
        grid("softmax", plain[:, None]),
        grid("÷ τ", cooled[:, None]),
        grid("top-k", best[:, None], mask=kept[:, None]),
        grid("top-p", chosen[:, None], mask=nucleus[:, None]),
    ]
    for count, text in enumerate(texts[:-1], 1):
        yield draw_lines(columns[:count]), text
    columns[-1]["lit"] = drawn
    yield draw_lines([*columns, "→", grid("drawn", [[names[drawn]]], None)]), texts[-1]


# --- 09 ---------------------------------------------------------------------------


@in_steps
def softmax_in_slices(scores: Tensor, values: Tensor, slice_size: int):
    """Show an online softmax: maximum, sums and output after each slice of keys.

    scores, values: of one query, (S,) each, S up to 8
    slice_size: 2 to 4 slices; the last may be shorter
    """
    slices = [*zip(scores.split(slice_size), values.split(slice_size))]
    largest, sums = -torch.inf, torch.zeros(2).double()  # sums: ℓ and a
    lines = []  # of the table: texts for m, ℓ, a and the output
    for i, (part, part_values) in enumerate(slices):
        before, largest = largest, max(largest, float(part.max()))
        m, factor = format_number(largest), math.exp(before - largest)  # 0 at first
        cells, effect = ["0", "0"], ""
        if i:
            cells = [_change(old, "×", factor, old * factor) for old in sums]
            effect = f", so ℓ and a are × {format_number(factor)}"
        text = f"Fetch slice {i}: the largest score so far is {m}{effect}."
        yield _draw_slices(slices, [*lines, [m, *cells, ""]]), text
        powers = torch.exp(part - largest)
        scaled, added = sums * factor, torch.stack([powers.sum(), powers @ part_values])
        sums = scaled + added
        cells = [_change(*terms) for terms in zip(scaled, "++", added, sums)]
        output = format_number(sums[1] / sums[0])
        text = "Add its exponentials to ℓ, and its values, weighted by them, to a: "
        text += f"a ÷ ℓ is {output}."
        yield _draw_slices(slices, [*lines, [m, *cells, output]]), text
        lines.append([m, *map(format_number, sums), output])
    output = format_number(scores.softmax(dim=0) @ values)
    picture = _draw_slices(slices, [*lines, ["", "", "", output]])
    yield picture, f"A softmax over all scores at once gives {output}, too."


def _change(old, sign, by, new):
    """Return a calculation as a text: 1.50 × 0.50 = 0.75."""
    old, by, new = map(format_number, (old, by, new))
    return f"{old} {sign} {by} = {new}"


def _draw_slices(slices, lines):
    """Draw the slices of keys, and below them a line for each slice, and for all."""
    now, names = len(lines) - 1, [f"slice {i}" for i in range(len(slices))]
    parts = []
    for i, (name, pair) in enumerate(zip(names, slices)):
        owner = [[0 if i == now else 4]] * 2  # blue for the newest
        parts.append({"values": torch.stack(pair), "name": name, "owner": owner})
    parts[0]["rows"] = "scores", "values"
    names.append("all scores at once")
    columns = ["maximum m", "denominator ℓ", "accumulator a", "a ÷ ℓ"]
    blank = [[""] * 4] * (len(names) - len(lines))
    table = {"values": lines + blank, "role": "score", "lit": now}
    return draw_lines(
        parts, [table | {"rows": names, "columns": columns, "cell": 1.37}]
    )


# --- 10 ---------------------------------------------------------------------------


@in_steps
def rotate_together(query: Tensor, key: Tensor):
    """Show two tokens, two positions apart, that move along a text.

    Both vectors rotate, by 1 radian per position, and their angle stays. Dashed, from
    the second state on, are the vectors of the first.

    query, key: (2,), before they are rotated
    """
    vectors = {"key": (key, 0), "query": (query, 2)}
    rows, columns = {"text": 0.5, "": 2.7}, dict.fromkeys(range(10), 0.58)
    for start in range(8):
        picture, turned = Picture(rows, {"": 0.8} | columns), {}
        picture.label({"text": "position"})
        place = picture.plane((3.45, picture.rows[""]), 2.6, [query, key])
        boxes = [picture.word(picture.at("text", i), i) for i in columns]
        for role, (vector, first) in vectors.items():
            box, turned[role] = boxes[start + first], _rotated(vector, start + first)
            size, text = (box.width, box.height), f"{role} at {box.name}"
            picture.block(box.at(0, 0), box.name, role, size=size)
            _draw_vector(picture, place, turned[role], text, role)
            if start:
                unmoved, text = _rotated(vector, first), f"at {first}"
                _draw_vector(picture, place, unmoved, text, role, dashed=True)
        score = turned["key"] @ turned["query"]
        angle = math.degrees(math.acos(score / key.norm() / query.norm()))
        picture.note((5.3, 1.8), f"angle {angle:.0f}°", bold=True)
        picture.note((5.3, 2.1), f"score {format_number(score)}", "score", bold=True)
        text = f"Key at position {start}, query at position {start + 2}: the angle is "
        yield picture, f"{text}{angle:.0f}°, the score is {format_number(score)}."


# --- 11 ---------------------------------------------------------------------------


@in_steps
def read_per_step(names, keys: Tensor, values: Tensor, latent: Tensor):
    """Show what a step reads: own keys and values, shared ones, and latents.

    names: S cached tokens, 2 to 4
    keys, values: (H, S, d_k) and (H, S, d_v), H = 2; the shared ones are head 0's
    latent: (S, d_c)
    """
    names = to_names(names, len(latent), "names")
    own, width = keys.shape[-1] + values.shape[-1], latent.shape[-1]
    shared, narrow = len(latent) * own, len(latent) * width  # numbers of all tokens
    texts = (
        f"Two heads with their own keys and values cache {2 * own} numbers per token.",
        f"Head 0 reads its own: {own} numbers for each of {len(names)} tokens.",
        f"Head 1 reads its own, too, so the step has read {2 * shared} numbers.",
        f"One shared head: both queries read the same {own} numbers per token, "
        f"{shared} in all.",
        f"A latent: both read {width} numbers per token, {narrow} in all, and compute "
        "their own keys and values.",
    )

    def pair(head, column):
        return [("key", column, keys[head]), ("value", column, values[head])]

    apart, one_latent = pair(0, 0) + pair(1, 1), [("latent", "both", latent)]
    # What is cached and where, and how many heads read it.
    states = (apart, 0), (apart, 1), (apart, 2), (pair(0, "both"), 2), (one_latent, 2)
    rows, columns = {"query": 0.8, "key": 1.6, "value": 1.2}, {0: 2, "both": 2, 1: 2}
    for (cached, num_readers), text in zip(states, texts):
        picture, goals = Picture(rows, columns), {}
        for name, column, numbers in cached:
            row, role = ("value", "x") if name == "latent" else (name, name)
            style = {"name": f"cached {name}", "rows": names}
            box = picture.put(row, column, numbers, role, 0.42, **style)
            goals.setdefault(column, (box.top[0], box.y - 0.25))
        for head in (0, 1):
            query = [f"query of head {head}"]
            start = picture.put("query", head, query, "query", 1.5)
            goal = goals.get(head, goals.get("both"))
            if cached is one_latent:
                computed = picture.put(
                    "key", head, [f"key, value of {head}"], "key", 1.5
                )
                picture.wire(start, computed, "query")
                picture.wire(goal, computed.bottom, "key")
            elif head < num_readers:
                picture.wire(start.bottom, goal, "query")
        yield picture, text


# --- 12 ---------------------------------------------------------------------------


@in_steps
def turns(source: str, target: str, weights=None):
    """Show how a recurrent translator writes: a state for each turn of its decoder.

    The actions of the turn are numbered: 1 ask, 2 find, 3 read, 4 write. Without
    weights no turn asks, so 1 is find.

    source, target: a sentence and its translation
    weights: (T, S), how much of each encoded vector a turn finds, both with
        `<end>`; without them each turn finds the encoder's one vector
    """
    words, target_words = (f"{text} <end>".split() for text in (source, target))
    retrievals = ["finds the one vector"] * len(target_words)
    if weights is not None:
        weights = torch.as_tensor(weights)
        size = tuple(weights.shape)
        is_valid = size == (len(target_words), len(words))
        raise_unless(is_valid, "weights (T, S)", size)
        hits = [[w for w, share in zip(words, row) if share >= 0.25] for row in weights]
        retrievals = [
            f"s{DIGITS[t]} finds {' and '.join(names)}" for t, names in enumerate(hits)
        ]
    for t, (read, word) in enumerate(zip(["<start>", *target_words], target_words)):
        picture = _draw_turns(words, target_words[: t + 1], len(target_words), weights)
        yield picture, f"Turn {t + 1}: {retrievals[t]}, reads {read} and writes {word}."


DIGITS = "₀₁₂₃₄₅₆₇₈₉"


def _draw_turns(words, target_words, num_turns, weights):
    """Draw the encoder and the turns so far, with numbers at the last one."""
    picture, first, has_attention = Picture(), 0.42, weights is not None
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
    query, state = (first, 1.69), None
    columns = torch.linspace(1.3, WIDTH - 0.5, num_turns).tolist()
    for t, (x, word) in enumerate(zip(columns, target_words)):
        context = picture.grid((x - 0.15, 1.55), [[""]], "value", cell=0.3)
        place, size = (x - 0.22, 0.85), (0.44, 0.32)
        new = picture.block(place, f"s{DIGITS[t + 1]}", size=size)
        box = picture.word((x, 0.3), word, lit=True)
        if has_attention:
            picture.wire(query, context.left, "query", turn=query[0])
            for source, weight in zip(sources, weights[t]):
                picture.wire(source.top, context.bottom, "value", weight=float(weight))
        else:
            bus = (first, 2.2), (x, 2.2)
            picture.wire(vector.top, context.bottom, "value", via=bus)
        if state is None:
            picture.wire(vector.top, new.left, "value", turn=first)
        else:
            picture.wire(state.right, new.left)
        picture.wire(context.top, new.bottom, "value")
        picture.wire(last.at(0.85, 1), new.at(0.1, 0))
        picture.wire(new.top, box.bottom)
        previous, last, state, query = last, box, new, new.at(0.95, 1)
    middle_x = (previous.at(0.85, 1)[0] + new.x) / 2
    places = [(middle_x, 1.69)] * has_attention + [(x - 0.28, 1.45)]
    for number, place in enumerate([*places, (middle_x, 0.65), (x + 0.2, 0.65)], 1):
        picture.step(place, number)
    return picture


# --- 13 ---------------------------------------------------------------------------


@in_steps
def write_state(names, keys: Tensor, values: Tensor, correction: Tensor):
    """Show a state that is written twice, read, and corrected with a new value.

    names: of the two entries
    keys: (2, 2), of length 1; values: (2, 2): what is written
    correction: (2,), the new value of the first key (the delta rule writes the
        difference to what the key reads)
    """
    names, state = to_names(names, 2, "names"), torch.zeros(2, 2)

    def grid(name, values, role="value"):
        return {"values": values, "role": role, "name": name, "cell": 0.45}

    def add(name, key, value, value_name="value"):
        factors = grid(f"{name}'s key", key[:, None], "key"), grid(value_name, value)
        change = torch.outer(key, value)
        added = grid("added", change), "+", grid("state", state)
        result = grid("new state", state + change)
        return draw_lines([factors[0], "×", factors[1], "=", *added, "=", result])

    for name, key, value in zip(names, keys, values):
        sentence = f"Write: the outer product of {name}'s key and value is added to "
        yield add(name, key, value), f"{sentence}the state."
        state = state + torch.outer(key, value)
    name, key, reading = names[0], keys[0], keys[0] @ state
    read = grid(f"{name}'s key", key, "key"), "×", grid("state", state), "="
    text = f"Read: {name}'s key reads the state and returns {_vector(reading)}."
    yield draw_lines([*read, grid("returned", reading, "output")]), text
    sentence = f"Correct: {name}'s key reads {_vector(reading)}, and the difference to "
    picture = add(name, key, correction - reading, "difference")
    yield picture, f"{sentence}{_vector(correction)} is added."


# --- 16 ---------------------------------------------------------------------------


@in_steps
def ring_all_reduce():
    """Show an all-reduce of four processes in a ring: who sends what to whom.

    Partial results have the colour of the process that has them, and complete sums a
    colour of their own. A process forgets what it sends on before it is complete.
    """
    ranks, takers = torch.arange(4), torch.arange(1, 5) % 4
    partial_sums = 10 ** ranks[:, None] * torch.arange(1, 5)  # a row for each process
    numbers, is_held = partial_sums.clone(), torch.ones_like(partial_sums) > 0
    owner = ranks[:, None].repeat(1, 4)
    first = "Each process has four partial results; follow the last one of process 0."
    yield _draw_ring(numbers, is_held, owner), first
    ends = {2: ": the sum is complete", 5: ", and all have all sums"}
    for turn in range(6):
        is_adding = turn < 3  # then complete sums are passed on
        share = (ranks - 1 - turn) % 4  # that each process sends
        messages = numbers[ranks, share]
        numbers[takers, share] = messages + is_adding * partial_sums[takers, share]
        is_held[takers, share] = True
        is_held[ranks, share] = not is_adding
        owner[takers, share] = takers if turn < 2 else SUMMED
        giver, taker = turn % 4, (turn + 1) % 4
        text = f"Turn {turn + 1}: process {giver} sends {messages[giver]:,} to process "
        extra = f", which adds its own {partial_sums[taker, -1]:,}" if is_adding else ""
        text += f"{taker}{extra}{ends.get(turn, '')}."
        yield _draw_ring(numbers, is_held, owner, messages), text


def _draw_ring(numbers, is_held, owner, messages=None):
    """Draw what four processes have, and what each has just sent to the next."""
    held = {"values": numbers, "owner": owner, "mask": is_held, "cell": 0.7}
    held |= {"rows": [f"process {rank}" for rank in range(4)], "name": "shares"}
    line = [held]
    if messages is not None:
        goals = [f"to process {(rank + 1) % 4}" for rank in range(4)]
        sent = {"values": messages[:, None], "name": "sent", "rows": goals}
        line.append(sent | {"owner": [4] * 4, "cell": 0.7})
    picture = draw_lines(line)
    draw_owners(picture, 0.9, 1.7, [SUMMED])
    return picture


LAYER = "x", "query, key, value", "contexts", "output"
GRADIENTS = "gradient of x", "parameter gradients"
CUTS = {  # an axis: what a process has of each row, and a text
    "": (["whole"] * 6, "One process has all: two texts of two tokens, and two heads."),
    "batch": (
        ["text {}"] * 5 + ["partial sum"],
        "Cut batch: each process has a whole text, but all texts add to the gradients "
        "of the parameters.",
    ),
    "heads": (
        ["whole", "head {}", "head {}", "partial sum", "partial sum", "head {}"],
        "Cut heads: both processes have all tokens, but both heads add to the output, "
        "and to the gradient of x.",
    ),
    "tokens": (
        ["token {}"] * 5 + ["partial sum"],
        "Cut tokens: token 1 needs the key and value of token 0 and sends gradients "
        "back, and both tokens add to the gradients of the parameters.",
    ),
}


@in_steps
def cuts():
    """Show a layer in one process, then cut between two, and the messages they need."""
    rows = {"name": 0.35} | dict.fromkeys(LAYER + GRADIENTS, 0.5)
    for axis, (parts, text) in CUTS.items():
        picture, boxes = Picture(rows, {"": 1.4, 0: 1.2, "cut": 1.9, 1: 1.2}), {}
        picture.label({row: row for row in LAYER + GRADIENTS})
        for rank in range(2 if axis else 1):
            picture.head("name", rank, f"process {rank}")
            for row, part in zip(LAYER + GRADIENTS, parts):
                style = {"owner": [SHARED if part == "whole" else rank], "cell": 1.2}
                boxes[row, rank] = picture.put(row, rank, [part.format(rank)], **style)
            picture.chain(*(boxes[row, rank] for row in LAYER))
        if axis:
            picture.head("name", "cut", f"cut {axis}")
            (x, y), (_, low) = (
                picture.at(row, "cut") for row in ("name", GRADIENTS[1])
            )
            picture.wire((x, y + 0.15), (x, low + 0.2), head=False, dashed=True)
        for row, part in zip(LAYER + GRADIENTS, parts):
            if part == "partial sum":
                start, end = boxes[row, 0], boxes[row, 1]
                picture.wire(end, start, "score")
                picture.wire(start, end, "score", text="all-reduce")
        if axis == "tokens":
            start, end = boxes["query, key, value", 0], boxes["contexts", 1]
            picture.wire(start.right, end.left, "score", text="key and value")
            start, end = boxes["gradient of x", 1], boxes["gradient of x", 0]
            picture.wire(start, end, "score", text="their gradients")
        yield picture, text


@in_steps
def ring_attention(exponentials, values):
    """Show ring attention: keys and values go round, and every process adds them up.

    exponentials: (P, P), `e**score` of each query with each key; P is 2 to 6
    values: P numbers. Process p has query p, and begins with key and value p.
    """
    exponentials, values = map(torch.tensor, (exponentials, values))
    size = len(values)
    ranks, totals = torch.arange(size), torch.zeros(size, 2).double()
    names = [f"key {k} and value {short_number(v)}" for k, v in enumerate(values)]
    for turn in range(size):
        origin = (ranks - turn) % size  # whose key and value each process has
        key = origin[0]
        if turn:
            numbers = {"sum": totals[:, 0], "exp": totals[:, 1]}
            picture = _draw_keys_in_ring(
                values, (origin + 1) % size, numbers, moves=True
            )
            sentence = f"Process 0 passes {names[origin[1]]} on to process 1, and gets "
            yield picture, f"{sentence}{names[key]} from process {size - 1}."
        now = exponentials[ranks, origin]
        exponential, value = short_number(now[0]), short_number(values[key])
        terms = [f"{short_number(total)} + " if turn else "" for total in totals[0]]
        totals = totals + torch.stack((now * values[origin], now), dim=1)
        numbers = {"now": now, "sum": totals[:, 0], "exp": totals[:, 1]}
        products, total = map(short_number, totals[0])
        sentence = f"Process 0 holds {names[key]}, computes the exponential "
        sentence += f"{exponential}, and its sums become {terms[0]}{exponential} × "
        sentence += f"{value} = {products} and {terms[1]}{exponential}"
        sentence += f" = {total}" if turn else ""
        if turn == size - 1:
            numbers["out"] = outputs = totals[:, 0] / totals[:, 1]
            sentence += (
                f": it divides {products} ÷ {total} = {short_number(outputs[0])}"
            )
        yield _draw_keys_in_ring(values, origin, numbers), f"{sentence}."


RING = {"held": "moves: key, value", "query": "stays: query"}
RING |= {"now": "computes: exponential", "sum": "a: sum of products"}
RING |= {"exp": "ℓ: sum of exponentials", "out": "output"}  # rows and their labels


def _draw_keys_in_ring(values, origin, numbers, moves=False):
    """Draw a column for each process: what it holds, computes and has added up.

    origin: whose key and value each process has
    numbers: dict from a row of `RING` to a number for each process
    moves: whether keys and values go on
    """
    rows, size = {"name": 0.3} | dict.fromkeys(RING, 0.52), len(values)
    picture = Picture(rows, {"": 1.5} | dict.fromkeys(range(size), 5.2 / size))
    picture.label(RING)
    pairs = []
    for rank, key in enumerate(origin.tolist()):
        picture.head("name", rank, f"process {rank}")
        pair, style = [f"key {key}", short_number(values[key])], {"owner": [[key] * 2]}
        pairs.append(picture.put("held", rank, pair, None, 0.58, **style))
        picture.put("query", rank, [f"query {rank}"], "query", 0.8)
        for row, by_rank in numbers.items():
            role = "output" if row == "out" else "score"
            picture.put(row, rank, [short_number(by_rank[rank])], role, 0.8)
    if moves:
        picture.chain(*pairs)
        picture.wire(pairs[-1], pairs[0], bend=0.1)
    return picture
