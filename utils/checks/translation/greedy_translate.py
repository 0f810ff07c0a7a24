"""Exercise 8.2: the decoding loop."""

import torch

from utils.checks.engine import Exercise, Mistake, Trial, case
from utils.checks.guard import attempt, quietly, seeded


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

    def fresh(self):
        return Speaker(*self.settings)

    def __repr__(self):
        length = self.settings[2]
        said = "without end" if length is None else f"of {length} ids"
        return f"a model that writes a sentence {said}"

    def __call__(self, ids):
        vocab_size, end_id, length, seed, ties = self.settings
        self.calls += 1
        if not isinstance(ids, (list, tuple)):
            raise TypeError(
                f"next_logits takes a list of ids, got {type(ids).__name__}"
            )
        if self.calls > LIMIT or len(ids) > LIMIT:
            raise TooManyCalls(f"next_logits was called more than {LIMIT} times")
        key = seed
        for id in ids:  # in order: another id, or another place, is another key
            key = (31 * key + int(id) + 1) % 1_000_003
        generator = torch.Generator(device="cpu").manual_seed(key)
        logits = torch.randn(vocab_size, generator=generator, device="cpu") - 5.0
        if ties:  # the two best are equal
            best = logits.topk(2).indices
            logits[best] = logits.max()
        ended = length is not None and len(ids) == length + 1  # then it starts anew
        logits[end_id] = 9.0 if ended else -99.0
        return logits


LIMIT = 60  # calls; no case has room for half as many


def looped(
    ask=lambda next_logits, ids, written: next_logits(ids),
    pick=lambda logits: int(logits.argmax()),
    tidy=lambda start_id, written, end_id: written,
    room=lambda max_length: max_length,
    ends=lambda id, end_id: id == end_id,
    keeps_end=False,
):
    """Return a decoding loop of which single steps can be others."""

    def compute(next_logits, start_id, end_id, max_length):
        written = []
        while len(written) < room(max_length):
            id = pick(ask(next_logits, [start_id, *written], written))
            if ends(id, end_id):
                if keeps_end:
                    written.append(id)
                break
            written.append(id)
        return tidy(start_id, written, end_id)

    return compute


def picking(slug, pick, explain):
    """Return the mistake that takes another id from the logits."""
    return Mistake(slug, looped(pick=pick), explain)


def tidied(slug, tidy, explain, **steps):
    """Return the mistake that returns something else than what was written."""
    return Mistake(slug, looped(tidy=tidy, **steps), explain)


def start_taken_for_end(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    while ids[-1] != end_id and len(ids) <= max_length:
        ids.append(int(next_logits(ids).argmax()))
    return [id for id in ids[1:] if id != end_id]


def limit_checked_late(next_logits, start_id, end_id, max_length):
    return looped(room=lambda n: max(n, 1))(next_logits, start_id, end_id, max_length)


def backwards(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    while len(ids) <= max_length:
        id = int(next_logits(ids).argmax())
        if id == end_id:
            break
        ids.insert(1, id)
    return ids[1:]


def by_chance(logits):
    return int(torch.multinomial(torch.softmax(logits, dim=-1), 1))


def last_of_ties(logits):
    return int((logits == logits.max()).nonzero()[-1])


def as_tensor(next_logits, start_id, end_id, max_length):
    return looped(ask=lambda f, ids, _: f(torch.tensor(ids)))(
        next_logits, start_id, end_id, max_length
    )


def never(id, end_id):
    return False


def never_ends(answer):
    """Fact: the loop asks on and on, where the model never says that it has ended."""
    for settings in ((5, 2), (5, 2, 3)):
        outcome = attempt(answer, Speaker(*settings), 1, 2, 4)
        if type(outcome.error) is TooManyCalls:
            return "never-ends", NEVER_ENDS
    return None


def start_first(evidence):
    """Property: show what the right loop writes, id by id."""
    next_logits, start_id, end_id, max_length = evidence.args
    ids = [start_id, *evidence.expected]
    if len(evidence.expected) < max_length:
        ids.append(end_id)
    shown = ", then ".join(map(str, ids[1:4]))
    return shown and (
        f"After [{start_id}] the largest logit is that of {shown}"
        f"{' …' if len(ids) > 4 else ''}: print what you give to next_logits and what "
        "you take."
    )


NEVER_ENDS = (
    f"next_logits was called more than {LIMIT} times, with room for far fewer ids: the "
    "loop never ends. Stop at end_id, stop after max_length ids as well, and see to it "
    "that every round adds an id."
)


class LoopExercise(Exercise):
    """An exercise whose answer calls a function: each run gets a fresh one."""

    def observe(self, answer, case, memory):
        def through(function):
            def run(next_logits, *rest):
                return function(next_logits.fresh(), *rest)

            return run

        got = seeded(through(answer), case.args)
        expected = quietly(through(self.oracle), case.args)
        return Trial(case, case.args, got, expected, answer, through)


greedy_translate = LoopExercise(
    id="8.2",
    signature="greedy_translate(next_logits, start_id, end_id, max_length)",
    returns="a list of at most max_length ids, without start_id in front and without "
    "end_id",
    oracle=looped(),
    properties=[start_first],
    facts=[never_ends],
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
    mistakes=[
        Mistake(
            "end-kept",
            looped(keeps_end=True),
            lambda e: (
                f"The result ends with end_id = {e.args[2]}: it says that the sentence "
                "is over and is no part of it. Look at the id before you append it."
            ),
        ),
        tidied(
            "start-kept",
            lambda start, written, end: [start, *written],
            lambda e: (
                f"The result begins with start_id = {e.args[1]}: return what comes "
                "after it."
            ),
        ),
        tidied(
            "start-and-end-kept",
            lambda start, written, end: [start, *written],
            "The result still has start_id in front and end_id behind: return the ids "
            "between them.",
            keeps_end=True,
        ),
        tidied(
            "first-id-lost",
            lambda start, written, end: written[1:],
            "The first id that was written is missing: start_id is not in this list "
            "any more, so nothing has to be cut off in front.",
        ),
        tidied(
            "last-id-lost",
            lambda start, written, end: written[:-1],
            "The last id that was written is missing: end_id is not in this list, so "
            "nothing has to be cut off behind.",
        ),
        Mistake(
            "goes-on-after-end",
            looped(ends=never),
            lambda e: (
                f"The loop goes on after end_id = {e.args[2]} until there are "
                "max_length ids: leave it as soon as end_id is the best."
            ),
        ),
        tidied(
            "goes-on-after-end",
            lambda start, written, end: [id for id in written if id != end],
            "end_id is taken out of the result, but the loop goes on after it and "
            "writes more: leave the loop there.",
            ends=never,
        ),
        Mistake(
            "never-ends",
            looped(room=lambda max_length: 10**9),
            NEVER_ENDS,
        ),
        Mistake(
            "one-too-few",
            looped(room=lambda max_length: max_length - 1),
            lambda e: (
                f"At most {max(0, e.args[3] - 1)} ids come back where max_length = "
                f"{e.args[3]}. Is start_id counted, or is the last id cut off although "
                "it is not end_id? Neither of the two counts."
            ),
        ),
        Mistake(
            "one-too-many",
            looped(room=lambda max_length: max_length + 1),
            lambda e: (
                f"With max_length = {e.args[3]} there may be {e.args[3]} ids after "
                f"start_id, not {e.args[3] + 1}: is it <= where < is meant?"
            ),
        ),
        Mistake(
            "limit-checked-late",
            limit_checked_late,
            "With max_length = 0 nothing may be written: look at the room before "
            "the first id is asked for, not after it.",
        ),
        Mistake(
            "ids-do-not-grow",
            looped(ask=lambda f, ids, _: f(ids[:1])),
            "next_logits is asked about [start_id] every time, so it says the same "
            "every time: give it all ids so far, the new ones included.",
        ),
        Mistake(
            "last-id-only",
            looped(ask=lambda f, ids, _: f(ids[-1:])),
            "next_logits is given the newest id alone: what follows depends on all of "
            "them, start_id first.",
        ),
        Mistake(
            "start-missing",
            looped(ask=lambda f, ids, written: f(list(written))),
            "next_logits is given the written ids without start_id: the first of its "
            "ids is always start_id.",
        ),
        Mistake(
            "list-needed",
            as_tensor,
            "next_logits takes a list of ids and does the rest itself: no tensor, no "
            "batch axis.",
        ),
        Mistake(
            "list-needed",
            looped(ask=lambda f, ids, _: f(ids[-1])),
            "next_logits takes the list of all ids so far, not one id.",
        ),
        tidied(
            "tensor-returned",
            lambda start, written, end: torch.tensor(written),
            "These are the right ids as a tensor: return a list of integers.",
        ),
        tidied(
            "tensor-returned",
            lambda start, written, end: torch.tensor(written, dtype=torch.long),
            "These are the right ids as a tensor: return a list of integers.",
        ),
        Mistake(
            "tensors-in-list",
            looped(pick=lambda logits: logits.argmax()),
            "The list holds tensors: argmax() gives one, and .item() makes a plain "
            "integer of it.",
        ),
        picking(
            "smallest-taken",
            lambda logits: int(logits.argmin()),
            "The id with the smallest logit is taken: take the largest.",
        ),
        picking(
            "value-for-id",
            lambda logits: logits.max().item(),
            "The largest logit itself is taken. Its place is the id: argmax().",
        ),
        picking(
            "sampled",
            by_chance,
            "The next id is drawn at random: greedy decoding takes the one with the "
            "largest logit.",
        ),
        picking(
            "last-of-ties",
            last_of_ties,
            "Of equal logits the last is taken: take the first, as argmax() does.",
        ),
        picking(
            "position-axis-expected",
            lambda logits: int(logits[-1].argmax()),
            "logits[-1] is the logit of one id: next_logits gives (V,), one number for "
            "each id, and no axis for positions.",
        ),
        picking(
            "position-axis-expected",
            lambda logits: int(logits[:, -1].argmax()),
            "next_logits gives (V,), one number for each id: there is no axis for "
            "sentences or positions.",
        ),
        picking(
            "position-axis-expected",
            lambda logits: int(logits[0, -1].argmax()),
            "next_logits gives (V,), one number for each id: there is no axis for "
            "sentences or positions.",
        ),
        Mistake(
            "start-taken-for-end",
            start_taken_for_end,
            "Where start_id and end_id are the same id, nothing is written: look at "
            "the id that next_logits has just given, not at the last of the list.",
        ),
        Mistake(
            "written-backwards",
            backwards,
            "New ids are put in front: they come at the end of the list.",
        ),
    ],
)
