"""Exercise 8.2: the decoding loop."""

from copy import copy

import torch

from utils.checks.draw import draws
from utils.checks.engine import Exercise, Trial, case
from utils.checks.guard import attempt, quietly, seeded
from utils.checks.steps import Forms, Pipeline, texts_of

TEXTS = texts_of(__file__)
LIMIT = 60  # calls; no case has room for half as many


class TooManyCalls(RuntimeError):
    """Raised by a `Speaker` that is asked far more often than there is room for."""


class Speaker:
    """Stands for `next_logits`: what follows depends on every id given to it.

    It says end_id after `length` ids, or never, and raises `TooManyCalls` where it is
    called over and over, or with far too many ids.
    """

    def __init__(self, vocab_size, end_id, length=None, seed=0, ties=False):
        self.settings = vocab_size, end_id, length, seed, ties
        self.calls = 0

    def __repr__(self):
        length = self.settings[2]
        said = "without end" if length is None else f"of {length} ids"
        return f"a model that writes a sentence {said}"

    def __call__(self, ids):
        vocab_size, end_id, length, key, ties = self.settings
        self.calls += 1
        if not isinstance(ids, (list, tuple)):
            kind = type(ids).__name__
            raise TypeError(f"next_logits takes a list of ids, got {kind}")
        if self.calls > LIMIT or len(ids) > LIMIT:
            raise TooManyCalls(f"next_logits was called more than {LIMIT} times")
        for id in ids:  # in order: another id, or another place, is another key
            key = (31 * key + int(id) + 1) % 1_000_003
        logits = draws(key)(vocab_size) - 5.0
        if ties:  # the two best are equal
            logits[logits.topk(2).indices] = logits.max()
        ended = length is not None and len(ids) == length + 1  # then it starts anew
        logits[end_id] = 9.0 if ended else -99.0
        return logits


# --- the steps of the loop -----------------------------------------------------------


def written(s):
    """Return what the loop writes; its single steps are functions of their own."""
    next_logits, ids = copy(s.next_logits), []
    while len(ids) < s.room:
        id = s.plain(s.pick(next_logits(s.ask([s.start_id, *ids]))))
        if id == s.end:
            return [*ids, id] if s.keep_end else ids
        ids = s.add(ids, id)
    return ids


def each(way):
    """Return the step that gives this function for each round of the loop."""
    return lambda s: way


LOOP = Forms(TEXTS["LOOP"])
LOOP.wrong("end-kept", keep_end=lambda s: True)
LOOP.wrong("start-kept", front=lambda s: [s.start_id])
LOOP.wrong("start-and-end-kept", front=lambda s: [s.start_id], keep_end=lambda s: True)
LOOP.wrong("first-id-lost", result=lambda s: s.written[1:])
LOOP.wrong("last-id-lost", result=lambda s: s.written[:-1])
LOOP.wrong("goes-on-after-end", end=lambda s: None)
LOOP.wrong(
    "goes-on-after-end 2",
    end=lambda s: None,
    result=lambda s: [id for id in s.written if id != s.end_id],
)
LOOP.wrong("one-id-alone", room=lambda s: min(s.max_length, 1))
LOOP.wrong("never-ends", room=lambda s: 10**9)
LOOP.wrong("one-too-few", room=lambda s: s.max_length - 1)
LOOP.wrong("one-too-many", room=lambda s: s.max_length + 1)
LOOP.wrong("limit-checked-late", room=lambda s: max(s.max_length, 1))
LOOP.wrong("ids-do-not-grow", ask=each(lambda ids: ids[:1]))
LOOP.wrong("last-id-only", ask=each(lambda ids: ids[-1:]))
LOOP.wrong("start-missing", ask=each(lambda ids: ids[1:]))
LOOP.wrong("list-needed", ask=each(torch.tensor))
LOOP.wrong("list-needed 2", ask=each(lambda ids: ids[-1]))
LOOP.wrong("tuple-returned", result=lambda s: (*s.written,))
LOOP.wrong("tensor-returned", result=lambda s: torch.tensor(s.written))
LOOP.wrong("tensor-returned", result=lambda s: torch.tensor(s.written).long())
LOOP.wrong("tensors-in-list", plain=each(lambda id: id))
LOOP.wrong("smallest-taken", pick=each(torch.argmin))
LOOP.wrong("value-for-id", pick=each(torch.max))
LOOP.wrong("sampled", pick=each(lambda logits: logits.softmax(-1).multinomial(1)))
LOOP.wrong("last-of-ties", pick=each(lambda logits: logits.argsort(stable=True)[-1]))
LOOP.wrong("position-axis-expected", pick=each(lambda logits: logits[-1].argmax()))
LOOP.wrong("position-axis-expected 2", pick=each(lambda logits: logits[0, -1].argmax()))
LOOP.wrong("start-taken-for-end 2", end=lambda s: s.start_id)
LOOP.wrong(
    "start-taken-for-end",
    written=lambda s: [] if s.start_id == s.end_id else written(s),
)
LOOP.wrong("written-backwards", add=each(lambda ids, id: [id, *ids]))
ARGUMENTS = ("next_logits", "start_id", "end_id", "max_length")
pipeline = Pipeline(
    start=lambda *args: dict(zip(ARGUMENTS, args)),
    steps={
        "room": lambda s: s.max_length,
        "ask": each(lambda ids: ids),
        "pick": each(torch.argmax),
        "plain": each(lambda id: id.item()),
        "end": lambda s: s.end_id,
        "add": each(lambda ids, id: [*ids, id]),
        "front": lambda s: [],
        "keep_end": lambda s: False,
        "written": written,
        "result": lambda s: [*s.front, *s.written],
    },
    forms=LOOP,
    words={
        "start_id": lambda s: s.start_id,
        "end_id": lambda s: s.end_id,
        "max_length": lambda s: s.max_length,
        "room": lambda s: s.room,
        "calls": LIMIT,
    },
)


# --- the exercise --------------------------------------------------------------------


def never_ends(answer):
    """Fact: the loop asks on and on, where the model never says that it has ended."""
    for settings in ((5, 2), (5, 2, 3)):
        outcome = attempt(answer, Speaker(*settings), 1, 2, 4)
        if type(outcome.error) is TooManyCalls:
            return TEXTS["LOOP"].say("never-ends", calls=LIMIT)
    return None


def start_first(evidence):
    """Property: show what the right loop writes, id by id."""
    _, start_id, end_id, max_length = evidence.args
    ids = [*evidence.expected, end_id][:max_length]
    shown = ", then ".join(map(str, ids[:3])) + " …" * (len(ids) > 3)
    text = TEXTS["SHOWN"]["ids"].format(start_id=start_id, shown=shown)
    return text if ids else None


def with_copy(function):
    """Return the function that is given a `next_logits` which nobody has called yet."""
    return lambda next_logits, *rest: function(copy(next_logits), *rest)


class LoopExercise(Exercise):
    """An exercise whose answer calls a function that counts how often it does."""

    def observe(self, answer, case, memory):
        got = seeded(with_copy(answer), case.args)
        expected = quietly(with_copy(self.oracle), case.args)
        return Trial(case, case.args, got, expected, answer, with_copy)


def right_loop(next_logits, start_id, end_id, max_length):
    ids = []
    for _ in range(max_length):
        best = int(next_logits([start_id, *ids]).argmax())
        if best == end_id:
            break
        ids.append(best)
    return ids


greedy_translate = LoopExercise(
    id="8.2",
    **TEXTS["8.2"],
    oracle=right_loop,
    properties=[start_first],
    facts=[never_ends],
    pipeline=pipeline,
    cases=[
        case(Speaker(7, 2, 3), 1, 2, 5),
        case(Speaker(7, 2, 3, seed=5), 1, 2, 3, note="just enough room"),
        case(Speaker(11, 0, seed=3), 1, 0, 4, note="the model never says end_id"),
        case(Speaker(7, 2, 0), 1, 2, 5, note="end_id at once"),
        case(Speaker(7, 2, 3), 1, 2, 0, note="room for no id"),
        case(Speaker(5, 4, 6, seed=7), 3, 4, 13),
        case(Speaker(13, 5, 4, seed=1), 5, 5, 7, note="start_id is end_id"),
        case(Speaker(7, 2, 5, seed=2, ties=True), 1, 2, 9, note="equal logits"),
        case(Speaker(11, 2, seed=11), 1, 2, 1, note="room for one id"),
    ],
)
