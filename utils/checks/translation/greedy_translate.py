"""Exercise 8.2: the decoding loop."""

from copy import copy
from operator import attrgetter

import torch

from utils.checks.draw import draws
from utils.checks.engine import Exercise, case
from utils.checks.guard import attempt
from utils.checks.steps import Forms, Pipeline, texts_of

TEXTS = texts_of(__file__)
LIMIT = 60  # calls; no case has room for half as many


class TooManyCalls(RuntimeError):
    """Raised by a `Speaker` that is asked far more often than there is room for."""


class Speaker:
    """Stands for `next_logits`: what follows depends on every id given to it.

    It says end_id after `length` ids, then starts anew, and raises `TooManyCalls` where
    it is called over and over, or with far too many ids.
    """

    def __init__(self, vocab_size, end_id, length=torch.inf, seed=0, ties=False):
        self.settings = vocab_size, end_id, seed, ties
        self.length, self.calls = length, 0

    def __repr__(self):
        said = "without end" if self.length == torch.inf else f"of {self.length} ids"
        return f"a model that writes a sentence {said}"

    def __call__(self, ids):
        vocab_size, end_id, key, ties = self.settings
        self.calls += 1
        if not isinstance(ids, (list, tuple)):
            raise TypeError(
                f"next_logits takes a list of ids, got {type(ids).__name__}"
            )
        if self.calls > LIMIT or len(ids) > LIMIT:
            raise TooManyCalls(f"next_logits was called more than {LIMIT} times")
        for id in ids:  # in order: another id, or another place, is another key
            key = (31 * key + int(id) + 1) % 1_000_003
        logits = draws(key)(vocab_size) - 5.0
        if ties:  # the two best are equal
            logits[logits.topk(2).indices] = logits.max()
        logits[end_id] = 9.0 if len(ids) == self.length + 1 else -99.0
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
wrong = LOOP.wrong
wrong("end-kept", keep_end=lambda s: True)
wrong("start-kept", front=lambda s: [s.start_id])
wrong("first-id-lost", result=lambda s: s.written[1:])
wrong("last-id-lost", result=lambda s: s.written[:-1])
wrong("goes-on-after-end", end=lambda s: None)
wrong("goes-on-after-end 2", end=lambda s: None, unwanted=lambda s: [s.end_id])
wrong("one-id-alone", room=lambda s: min(s.max_length, 1))
wrong("never-ends", room=lambda s: 10**9)
wrong("one-too-few", room=lambda s: s.max_length - 1)
wrong("one-too-many", room=lambda s: s.max_length + 1)
wrong("limit-checked-late", room=lambda s: max(s.max_length, 1))
wrong("ids-do-not-grow", ask=each(lambda ids: ids[:1]))
wrong("last-id-only", ask=each(lambda ids: ids[-1:]))
wrong("start-missing", ask=each(lambda ids: ids[1:]))
wrong("list-needed", ask=each(torch.tensor))
wrong("list-needed 2", ask=each(lambda ids: ids[-1]))
wrong("tuple-returned", result=lambda s: (*s.written,))
wrong("tensor-returned", result=lambda s: torch.tensor(s.written))
wrong("tensor-returned", result=lambda s: torch.tensor(s.written).long())
wrong("tensors-in-list", plain=each(lambda id: id))
wrong("smallest-taken", pick=each(torch.argmin))
wrong("value-for-id", pick=each(torch.max))
wrong("sampled", pick=each(lambda logits: logits.softmax(-1).multinomial(1)))
wrong("last-of-ties", pick=each(lambda logits: logits.argsort(stable=True)[-1]))
wrong("position-axis-expected", pick=each(lambda logits: logits[-1].argmax()))
wrong("position-axis-expected 2", pick=each(lambda logits: logits[0, -1].argmax()))
wrong("start-taken-for-end 2", end=lambda s: s.start_id)
wrong("start-taken-for-end", room=lambda s: s.max_length * (s.start_id != s.end_id))
wrong("written-backwards", add=each(lambda ids, id: [id, *ids]))
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
        "unwanted": lambda s: [],
        "result": lambda s: s.front + [i for i in s.written if i not in s.unwanted],
    },
    forms=LOOP,
    words={name: attrgetter(name) for name in (*ARGUMENTS, "room")} | {"calls": LIMIT},
)


# --- the exercise --------------------------------------------------------------------


def never_ends(answer):
    """Fact: the loop asks on and on, where the model never says that it has ended."""
    for speaker in (Speaker(5, 2), Speaker(5, 2, 3)):
        if type(attempt(answer, speaker, 1, 2, 4).error) is TooManyCalls:
            return TEXTS["LOOP"].name("never-ends", calls=LIMIT)
    return None


def start_first(evidence):
    """Property: show what the right loop writes, id by id."""
    _, start_id, end_id, max_length = evidence.args
    ids = [*evidence.expected, end_id][:max_length]
    shown = ", then ".join(map(str, ids[:3])) + " …" * (len(ids) > 3)
    text = TEXTS["SHOWN"]["ids"].format(start_id=start_id, shown=shown)
    return text if ids else None


class LoopExercise(Exercise):
    """An exercise whose answer gets a `next_logits` that nobody has called yet."""

    def observe(self, answer, case, memory):
        return super().observe(
            lambda ask, *rest: answer(copy(ask), *rest), case, memory
        )


def right_loop(next_logits, start_id, end_id, max_length):
    next_logits, ids = copy(next_logits), []
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
