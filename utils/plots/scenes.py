"""Scenes: the diagrams of one notebook each, in one call."""

from torch import Tensor

from utils.plots.picture import LINE, Picture, row
from utils.plots.publishing import WIDTH, format_number

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
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    scaled = scores / (divisor[1] if divisor else 1)
    weights = scaled.softmax(dim=0)
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
    for j, word in enumerate(words):
        picture.word((middles[j], 0.3), word, lit=j == followed)
        key = draw(j, "keys", keys[j], roles[1])
        shown = None if mask is None else mask[None, j : j + 1]
        weight = draw(j, "weight", weights[j : j + 1], "weight", 2 * cell, mask=shown)
        value = draw(j, "values", values[j], roles[2])
        numbers = (scores, scaled) if divisor else (scores,)
        text = " → ".join(format_number(float(s[j]), digits) for s in numbers)
        x, y, share = middles[j], LANES["score"], float(weights[j])
        picture.note((x, y), text, "score", align="center")
        _wire_between(picture, start, key, x, roles[0])
        picture.wire(key.bottom, (x, y - 0.1), "score")
        picture.wire((x, y + 0.1), weight.top, "weight")
        picture.wire(weight.bottom, value.top, "weight", weight=share, head=False)
        _wire_between(picture, value, context, x, roles[2], share)


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


def word_arrows(weights: Tensor, words, queries, *, title: str) -> None:
    """Draw a sentence with arrows from some words to those that they take from.

    Args:
        weights: (T, T); arrows below 0.05 are left out.
        queries: the positions whose arrows are drawn, one line each.
    """
    picture = Picture(0.25 + 1.15 * len(queries))
    for line, i in enumerate(queries):
        y = 0.8 + 1.15 * line
        boxes = picture.sentence((0.15, y), words, roles={i: "weight"})
        for j, box in enumerate(boxes):
            if j == i and weights[i, j] >= 0.05:
                text = format_number(float(weights[i, j]), 2)
                picture.note((box.middle[0], y + 0.22), text, "weight", align="center")
            elif weights[i, j] >= 0.05:
                text = format_number(float(weights[i, j]), 2)
                bend = -0.12 - 0.06 * abs(i - j)
                share = float(weights[i, j])
                picture.wire(boxes[i], box, "weight", weight=share, bend=bend)
                picture.note((box.middle[0], y + 0.22), text, "weight", align="center")
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


def attention_shapes(T: int, S: int, d_k: int, d_v: int, *, title: str) -> None:
    """Draw the sizes of scaled dot-product attention as grids without numbers."""
    picture, bottom = Picture(0.95 + (S + T) * LINE), 0.7 + S * LINE

    def blank(at, n, m, role, name, shape=""):
        return picture.grid(at, [[""] * m] * n, role, name, shape=shape, cell=0.2)

    query = blank((0.5, bottom), T, d_k, "query", "Q", f"({T}, {d_k})")
    at = query.right[0] + 0.7, bottom - 0.45 - d_k * LINE
    key = blank(at, d_k, S, "key", f"Kᵀ ({d_k}, {S})")
    weight = blank((key.x, bottom), T, S, "weight", "", f"weights ({T}, {S})")
    at = weight.right[0] + 0.9, bottom - 0.45 - S * LINE
    value = blank(at, S, d_v, "value", f"V ({S}, {d_v})")
    output = blank((value.x, bottom), T, d_v, "output", "", f"output ({T}, {d_v})")
    picture.wire(query, weight, "query")
    picture.wire(key, weight, "key", text="÷ √d_k, softmax")
    picture.wire(weight, output, "weight")
    picture.wire(value, output, "value")
    picture.publish(title)


def room(people: Tensor, answers: Tensor, names, *, title: str) -> None:
    """Draw a room of notebook 04: wanted, name, extension, and the answer.

    Args:
        people: (T, 38), of which the first two numbers of each name are drawn.
        answers: (T,)
    """
    extension = people[:, 32:].argmax(dim=-1, keepdim=True)
    row(
        {"values": people[:, 16:18], "role": "query", "name": "wants", "rows": names},
        {"values": people[:, :2], "role": "key", "name": "name"},
        {"values": extension, "role": "value", "name": "extension", "cell": 0.6},
        "→",
        {"values": answers[:, None], "role": "output", "name": "answer", "cell": 0.6},
        title=title,
    )


def name_match(wanted: Tensor, names: dict, *, title: str, shown: int = 10) -> None:
    """Draw the products of a wanted name with the names of others, number by number.

    Args:
        wanted: (16,), the wanted name; names: dict from a person to a name (16,).
        shown: how many of the numbers are drawn; the sum is over all.
    """
    picture, cell = Picture(0.6 + 0.85 * len(names)), 0.47
    left = 1.05

    def line(y, label, numbers, role):
        picture.grid((left, y), numbers[:shown], role, rows=[label], cell=cell)

    line(0.1, "Ann wants", wanted, "query")
    for i, (person, name) in enumerate(names.items()):
        y = 0.6 + 0.85 * i
        line(y, f"{person} is", name, "key")
        line(y + LINE, "product", wanted * name, "score")
        total = format_number(float(wanted @ name), 1)
        place = left + shown * cell + 0.1, y + 1.5 * LINE
        picture.note(place, f"… sum {total}", "score", bold=True)
    picture.publish(title)
