"""Exercises of the notebook on translation: cross-attention and the decoding loop."""

from copy import copy

import torch

from utils.checks.engine import Exercise, case, draw, special
from utils.checks.guard import attempt
from utils.checks.pipeline import Diagnosis, variants
from utils.checks.steps import attention as of_attention
from utils.checks.steps.attention import by_torch, hidden_and_allowed, size, triangle
from utils.checks.steps.masks import EMPTY_ROWS, HIDE, without_zeros


def right_attention(x, context, W_query, W_key, W_value, context_mask=None):
    x, context = x.double(), context.double()
    query = x @ W_query.double()
    key, value = context @ W_key.double(), context @ W_value.double()
    return by_torch(query, key, value, spread(context_mask))


def spread(words=None):
    """Give the mask of the words, if there is one, an axis for the queries."""
    return torch.tensor([[True]]) if words is None else words[..., None, :]


def of_words(made):
    """Return the step that makes a mask of the words' own, where there is one."""
    return lambda s: None if s.context_mask is None else made(s.context_mask)


NO_MASK = {"mask": lambda s: None}
FROM_CONTEXT, FROM_X = {"x": lambda s: s.context}, {"context": lambda s: s.x}
SOURCES = variants(
    "roles-swapped: You swapped the roles: queries come from x, keys and values from context.",
    FROM_CONTEXT | FROM_X | NO_MASK,
    "context-not-used: You made queries, keys and values from x: keys and values come from context.",
    FROM_X | NO_MASK,
    "values-from-x: You made the values from x: make them from context, context @ W_value.",
    dict(value=lambda s: s.x @ s.learned.W_value),
    "keys-from-x: You made the keys from x: make them from context, context @ W_key.",
    dict(key=lambda s: s.x @ s.learned.W_key),
    "query-and-key-matrices-exchanged: You multiplied x by W_key and context by W_query: swap the two.",
    of_attention.projected(query="key", key="query"),
)
MASK = variants(
    "mask-ignored: Your mask has no effect: masked_fill returns a new tensor, so use its result.",
    NO_MASK,
    "mask-inverted: You hid the real words, at which the mask is True: masked_fill takes the opposite, ~mask, and masked_softmax takes the mask as it is.",
    dict(mask=of_words(lambda real: ~spread(real))),
    "mask-causal: You applied a causal mask: all of the context is known before the first query, so hide what `context_mask` marks False.",
    dict(mask=lambda s: triangle(s) & spread(s.context_mask)),
    "mask-on-queries: You laid the mask over the queries: its axis is that of the keys, context_mask[..., None, :].",
    dict(mask=of_words(lambda real: real[..., None])),
    "mask-axis-missing: You lined up the mask's sentences with the queries: give it an axis for the queries, context_mask[..., None, :].",
    dict(mask=lambda s: s.context_mask),
    "mask-axis-fixed: You put in the axis for the queries at a fixed position, or one for heads: count from the right, context_mask[..., None, :].",
    dict(mask=of_words(lambda real: real[:, None, :])),
)


def tensors(x, context, width, value_width, scale=1.0):
    """Draw x, context and the three matrices for these sizes."""
    sentences = draw(*x, scale=scale), draw(*context, scale=scale, seed=1)
    widths = enumerate((width, width, value_width))
    return *sentences, *(draw(x[-1], n, seed=2 + i) for i, n in widths)


def drawn(note, *sizes, real=None, scale=1.0, **settings):
    """Return the case of tensors in which that many words of context are real."""
    made = tensors(*sizes, scale=scale)
    words = torch.arange(made[1].shape[-2])
    mask = () if real is None else (words < torch.tensor(real)[..., None],)
    return case(*made, *mask, note=note, **settings)


def far_apart():
    """Draw words of which the first two, hidden, have scores far from the others."""
    far = 300 * draw(1, 5)  # with its opposite, one of the two fits any query
    x, words, *matrices = tensors((2, 5), (3, 5), 3, 2)
    return x, torch.cat([far, -far, words]), *matrices, torch.arange(5) > 1


def very_low():
    """Draw two opposite queries, and words that are all far from one of them."""
    x, words, *matrices = tensors((1, 5), (3, 5), 3, 2)
    far = words + 300 * draw(1, 5)
    return torch.cat([x, -x]), far, *matrices, torch.arange(3) < 2


MIDDLE = torch.tensor([[True, False, True, True, False], [True] * 5])
LENGTHS = [[11, 4, 7], [1, 2, 5]]
LARGE = {"scale": 30.0, "special": True}
cross_attention = Exercise(
    id="8.1",
    signature="cross_attention(x, context, W_query, W_key, W_value, context_mask=None)",
    returns="the tuple (output, weights) of shapes (…, T, d_v) and (…, T, S)",
    parts=("output", "weights"),
    oracle=right_attention,
    properties=[lambda run: hidden_and_allowed(run.got[1], spread(*run.args[5:]))],
    steps=of_attention.steps(
        learned=lambda s: s,  # the matrices are arguments
        **of_attention.PROJECTED,
        mask=lambda s: spread(s.context_mask),
        cleared=of_attention.zeroed,
        result=lambda s: (s.output, s.weights),
    ),
    variants=[
        *(
            *of_attention.RETURN_BOTH,
            *SOURCES,
            *MASK,
            *EMPTY_ROWS,
            *without_zeros(HIDE),
            *HIDE,
        ),
        size("scale-of-model-width", "D", lambda s: s.x.shape[-1]),
        *(*of_attention.SCALE, *of_attention.WRONG_SIZES),
        *(*of_attention.PROJECT, *of_attention.WEIGHING),
    ],
    without=("weight-not-transposed", "keys-times-queries"),
    words=of_attention.WORDS | {"width_name": "K", "source": "context"},
    cases=[
        drawn("", (2, 5), (3, 5), 7, 11),
        drawn("the last word hidden", (2, 5), (3, 5), 7, 11, real=2),
        drawn("a batch with padding", (2, 3, 5), (2, 7, 5), 11, 2, real=[7, 4]),
        drawn("B = T", (3, 3, 5), (3, 7, 5), 2, 11, real=[5, 7, 2]),
        drawn("T = S", (2, 5, 7), (2, 5, 7), 3, 11, real=[2, 5]),
        case(*tensors((2, 5, 7), (2, 5, 7), 7, 7), MIDDLE, note="T = S, all square"),
        drawn("an empty sentence", (2, 3, 5), (2, 7, 5), 11, 2, real=[3, 0]),
        drawn("two leading axes", (2, 3, 5, 7), (2, 3, 11, 7), 2, 5, real=LENGTHS),
        drawn("large scores", (2, 5), (7, 5), 3, 2, **LARGE),
        drawn("large scores and a hidden word", (2, 5), (7, 5), 3, 2, real=6, **LARGE),
        special("hidden words whose scores are far from the others", *far_apart()),
        special("very low scores", *very_low()),
        drawn("one word each", (1, 5), (1, 5), 3, 2, special=True),
    ],
)

LIMIT = 60  # calls; no case has room for half as many


class TooManyCalls(RuntimeError):
    """Raised by a `Speaker` that is called far more often than there is room for."""


class Speaker:
    """Stands for `next_logits`: what follows depends on every id given to it.

    It gives end_id after `length` ids, then starts anew, and raises `TooManyCalls`
    where it is called over and over, or with far too many ids.
    """

    def __init__(self, vocab_size, end_id, length=torch.inf, seed=0, ties=False):
        self.settings = vocab_size, end_id, seed, ties
        self.length, self.calls = length, 0

    def __repr__(self):
        what = "without end" if self.length == torch.inf else f"of {self.length} ids"
        return f"a model that writes a sentence {what}"

    def __call__(self, ids):
        vocab_size, end_id, key, ties = self.settings
        self.calls += 1
        if not isinstance(ids, (list, tuple)):
            raise TypeError(f"expected a list of ids, got {type(ids).__name__}")
        if self.calls > LIMIT or len(ids) > LIMIT:
            raise TooManyCalls(f"next_logits was called more than {LIMIT} times")
        for id in ids:  # in order: another id, or another position, is another key
            key = (31 * key + int(id) + 1) % 1_000_003
        logits = draw(vocab_size, seed=key) - 5.0
        if ties:  # the two best are equal
            logits[logits.topk(2).indices] = logits.max()
        logits[end_id] = 9.0 if len(ids) == self.length + 1 else -99.0
        return logits


def written(s):
    """Return what the loop writes; its single steps are functions of their own."""
    next_logits, ids = copy(s.next_logits), []
    while len(ids) < s.room:
        id = s.plain(s.pick(next_logits(s.ask([s.start_id, *ids]))))
        if id == s.end:
            return [*ids, id] if s.keep_end else ids
        ids = [*ids, id]
    return ids


def always(function):
    """Return the step that gives this function for each round of the loop."""
    return lambda s: function


ENDLESS = f"You called next_logits more than {LIMIT} times: stop at end_id, stop after max_length ids as well, and add an id in every round."
LOOP = variants(
    "end-kept: You returned end_id = {end_id} too: look at the id before you append it.",
    dict(keep_end=lambda s: True),
    "start-kept: You returned start_id = {start_id} too: return what comes after it.",
    dict(front=lambda s: [s.start_id]),
    "goes-on-after-end: Your loop goes on after end_id = {end_id}: leave it there.",
    dict(end=lambda s: None),
    dict(end=lambda s: None, unwanted=lambda s: [s.end_id]),
    f"never-ends: {ENDLESS}",
    dict(room=lambda s: 10**9),
    "one-too-few: You return at most {room} ids where max_length = {max_length}: count neither start_id nor end_id.",
    dict(room=lambda s: s.max_length - 1),
    "one-too-many: You return up to {room} ids where max_length = {max_length}: compare with < rather than <=.",
    dict(room=lambda s: s.max_length + 1),
    "last-id-only: You gave next_logits the newest id only: give it all ids so far, start_id first.",
    dict(ask=always(lambda ids: ids[-1:])),
    "start-missing: You gave next_logits the ids without start_id: it is always first.",
    dict(ask=always(lambda ids: ids[1:])),
    dict(ask=always(lambda ids: ids[1:] or ids)),
    "tensors-in-list: You collected tensors: .item() makes a plain integer.",
    dict(plain=always(lambda id: id)),
    "smallest-taken: You took the id with the smallest logit: take the largest.",
    dict(pick=always(torch.argmin)),
    "value-for-id: You took the largest logit itself: its position is the id, argmax().",
    dict(pick=always(torch.max)),
    "sampled: You drew the next id at random: take the one with the largest logit.",
    dict(pick=always(lambda logits: logits.softmax(-1).multinomial(1))),
    "start-taken-for-end: You compared with start_id, or with the last id of the list: compare the id that next_logits has just given with end_id.",
    dict(end=lambda s: s.start_id),
)


def never_ends(answer):
    """Name a loop that goes on for ever if the model never ends its sentence."""
    for speaker in (Speaker(5, 2), Speaker(5, 2, 3)):
        if type(attempt(answer, speaker, 1, 2, 4).error) is TooManyCalls:
            return Diagnosis("never-ends", ENDLESS)
    return None


def start_first(run):
    """Show what the right loop writes, id by id."""
    _, start_id, end_id, max_length = run.args
    ids = [*run.expected, end_id][:max_length]
    shown = ", then ".join(map(str, ids[:3])) + " …" * (len(ids) > 3)
    text = f"After [{start_id}] the largest logit is that of {shown}: print what you give to next_logits and what you take."
    return text if ids else None


def right_loop(next_logits, start_id, end_id, max_length):
    ids = []
    for _ in range(max_length):
        best = int(next_logits([start_id, *ids]).argmax())
        if best == end_id:
            break
        ids.append(best)
    return ids


greedy_translate = Exercise(
    id="8.2",
    signature="greedy_translate(next_logits, start_id, end_id, max_length)",
    returns="a list of at most max_length ids, without start_id in front and without end_id",
    oracle=right_loop,
    properties=[start_first],
    facts=[never_ends],
    steps={
        "room": lambda s: s.max_length,
        "ask": always(lambda ids: ids),
        "pick": always(torch.argmax),
        "plain": always(lambda id: id.item()),
        "end": lambda s: s.end_id,
        "front": lambda s: [],
        "keep_end": lambda s: False,
        "written": written,
        "unwanted": lambda s: [],
        "result": lambda s: s.front + [i for i in s.written if i not in s.unwanted],
    },
    variants=LOOP,
    cases=[
        case(Speaker(7, 2, 3), 1, 2, 5),
        case(Speaker(7, 2, 3, seed=5), 1, 2, 3, note="just enough room"),
        case(Speaker(11, 0, seed=3), 1, 0, 4, note="the model never gives end_id"),
        case(Speaker(7, 2, 0), 1, 2, 5, note="end_id at once"),
        case(Speaker(7, 2, 3), 1, 2, 0, note="room for no id"),
        case(Speaker(5, 4, 6, seed=7), 3, 4, 13),
        case(Speaker(13, 5, 4, seed=1), 5, 5, 7, note="start_id is end_id"),
        case(Speaker(7, 2, 5, seed=2, ties=True), 1, 2, 9, note="equal logits"),
        case(Speaker(11, 2, seed=11), 1, 2, 1, note="room for one id"),
    ],
)

EXERCISES = [cross_attention, greedy_translate]
