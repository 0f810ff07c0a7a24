"""Exercises of the notebook on translation: cross-attention and the decoding loop."""

from types import SimpleNamespace

import torch

from utils import attention, experiments
from utils.checks import shared
from utils.checks.definition import Case, Exercise, Mistake, draw
from utils.checks.shared import EMPTY_ROWS, HIDDEN_SCORES, softmax_of


def cross_attention(x, encoded, W_query, W_key, W_value, source_mask=None):
    context = encoded  # its name in the shared mistakes
    learned = SimpleNamespace(W_query=W_query, W_key=W_key, W_value=W_value)
    real = torch.tensor([True]) if source_mask is None else source_mask
    query = x @ learned.W_query
    key = context @ learned.W_key
    value = context @ learned.W_value
    width = query.shape[-1]
    products = query @ key.mT
    scores = products / width**0.5
    mask = real[..., None, :]
    hidden = scores.masked_fill(~mask, -torch.inf)
    dim = -1
    soft = softmax_of(hidden, dim)
    weights = soft.masked_fill(~mask, 0.0)
    output = weights @ value
    return output, weights


MASK = [
    Mistake("roles-swapped", "You swapped the roles: queries come from x, keys and values from encoded.", "query = context @ learned.W_query; key = x @ learned.W_key; value = x @ learned.W_value; mask = torch.tensor(True)"),
    Mistake("mask-ignored", "Your mask has no effect: give it to masked_softmax, with an axis for the queries, source_mask[..., None, :].", "mask = torch.tensor(True)"),
    Mistake("mask-inverted", "You hid the real words, at which the mask is True: masked_fill takes the opposite, ~mask, and masked_softmax takes the mask as it is.", "mask = ~real[..., None, :] | (source_mask is None)"),
    Mistake("mask-causal", "You applied a causal mask: all of the source is known before the first query, so hide what `source_mask` marks False.", "mask = torch.ones(x.shape[-2], context.shape[-2]).tril().bool() & real[..., None, :]"),
]  # fmt: skip


def draw_case(note, x, encoded, width, value_width, real=None, scale=1.0, **settings):
    """Return a random case of these sizes; `real` is the number of unpadded words."""
    sentences = draw(*x, scale=scale), draw(*encoded, scale=scale, seed=1)
    widths = enumerate((width, width, value_width))
    matrices = [draw(x[-1], n, seed=2 + i) for i, n in widths]
    words = torch.arange(encoded[-2])
    mask = () if real is None else (words < torch.tensor(real)[..., None],)
    return Case(*sentences, *matrices, *mask, note=note, **settings)


MISTAKES = MASK + EMPTY_ROWS + HIDDEN_SCORES
MISTAKES += shared.OF_INPUT + shared.SCALE + shared.OF_VALUES
MISTAKES += shared.PROJECT + shared.WEIGHING
LENGTHS = [[11, 4, 7], [1, 2, 5]]
exercise_12_1 = Exercise(
    id="12.1",
    right=cross_attention,
    course=attention.cross_attention,
    returns="the tuple (output, weights) of shapes (…, T, d_v) and (…, T, S)",
    parts=("output", "weights"),
    mistakes=MISTAKES,
    cases=[
        draw_case("", (2, 5), (3, 5), 7, 11),
        draw_case("a batch with padding", (2, 3, 5), (2, 7, 5), 11, 2, real=[7, 4]),
        draw_case("B = T", (3, 3, 5), (3, 7, 5), 2, 11, real=[5, 7, 2]),
        draw_case("T = S, all square", (2, 5, 7), (2, 5, 7), 7, 7, real=[3, 5]),
        draw_case("an empty sentence", (2, 3, 5), (2, 7, 5), 11, 2, real=[3, 0]),
        draw_case("two leading axes", (2, 3, 5, 7), (2, 3, 11, 7), 2, 5, real=LENGTHS),
        draw_case("large scores", (13, 5), (7, 5), 3, 2, real=6, scale=30.0),
    ],
)

LIMIT = 60  # calls; no case has room for half as many


class Speaker:
    """A stand-in for `next_logits`, whose logits depend on every id so far.

    It gives end_id after `length` ids, then starts again, and raises an error if it is
    called too often or with too many ids.
    """

    def __init__(self, vocab_size, end_id, length=torch.inf, seed=0):
        self.vocab_size, self.end_id, self.seed = vocab_size, end_id, seed
        self.length, self.calls = length, 0

    def __repr__(self):
        what = "without end" if self.length == torch.inf else f"of {self.length} ids"
        return f"a model that writes a sentence {what}"

    def __call__(self, ids):
        self.calls += 1
        if self.calls > LIMIT or len(ids) > LIMIT:
            raise RuntimeError(f"next_logits was called more than {LIMIT} times: stop at end_id, and after max_length ids")  # fmt: skip
        key = self.seed
        for id in ids:  # in order: another id, or another position, is another key
            key = (31 * key + int(id) + 1) % 1_000_003
        logits = draw(self.vocab_size, seed=key) - 5.0
        logits[self.end_id] = 9.0 if len(ids) == self.length + 1 else -99.0
        return logits


def greedy_translate(next_logits, start_id, end_id, max_length):
    ids, is_done = [], False
    room = max_length
    while len(ids) < room and not is_done:
        so_far = [start_id, *ids]
        id = next_logits(so_far).argmax().item()
        is_done = id == end_id
        new = [] if is_done else [id]
        ids = ids + new
    return ids


exercise_12_2 = Exercise(
    id="12.2",
    right=greedy_translate,
    course=experiments.greedy_translate,
    returns="a list of at most max_length ids, without start_id in front and without end_id",
    mistakes=[
        Mistake("end-kept", "You return end_id = {end_id} too: look at each id before you append it.", "new = [id]"),
        Mistake("start-kept", "You returned start_id = {start_id} too: return what comes after it.", "return [start_id, *ids]"),
        Mistake("goes-on-after-end", "Your loop goes on after end_id = {end_id}: stop there.", "is_done = False", "is_done = False; return [i for i in ids if i != end_id]"),
        Mistake("one-too-few", "You return at most {room} ids where max_length = {max_length}: count neither start_id nor end_id, and don't cut off the last id without looking at it.", "room = max_length - 1"),
        Mistake("one-too-many", "You return up to {room} ids where max_length = {max_length}: stop one round earlier.", "room = max_length + 1"),
        Mistake("last-id-only", "You gave next_logits the newest id only: give it all ids so far, start_id first.", "so_far = [start_id, *ids][-1:]"),
        Mistake("start-missing", "You gave next_logits the ids without start_id: it is always first.", "so_far = ids"),
    ],
    cases=[
        Case(Speaker(7, 2, 3), 1, 2, 5),
        Case(Speaker(7, 2, 3, seed=5), 1, 2, 3, note="just enough room"),
        Case(Speaker(11, 0, seed=3), 1, 0, 4, note="the model never gives end_id"),
        Case(Speaker(7, 2, 0), 1, 2, 5, note="end_id at once"),
        Case(Speaker(7, 2, 3), 1, 2, 0, note="room for no id"),
        Case(Speaker(13, 5, 4, seed=1), 5, 5, 7, note="start_id is end_id"),
    ],
)  # fmt: skip
