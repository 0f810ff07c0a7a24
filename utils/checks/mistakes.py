"""Known mistakes: lines of a right answer that are written wrong.

A right answer is an ordinary function. A mistake replaces one of its lines, or a few,
so the changed function returns what a reader with this mistake returns. The mistake, or
the pair, that gives an answer's results on all cases is named.
"""

import inspect
import re
import textwrap
from dataclasses import dataclass
from functools import cache
from itertools import combinations

from utils.checks.shared import returned
from utils.checks.values import agrees, first_wrong, safe_text

LAST = "chosen = result", "returned = chosen"  # lines of every right answer


@dataclass(frozen=True)
class Diagnosis:
    """The name of a mistake and the text that explains it to the reader.

    `run` is the run of the answer that shows the mistake, where there is one.
    """

    name: str
    text: str
    run: object = None


@dataclass(frozen=True, eq=False)
class Mistake:
    """Wrong lines for a right answer.

    name: of the mistake
    text: the explanation for the reader; in braces, variables, or {returns}
    lines: what a line assigns (or `return`) -> the line that replaces it
    """

    name: str
    text: str
    lines: dict


def read_mistakes(known: dict) -> list[Mistake]:
    """Return mistakes from wrong line -> "name: explanation".

    A tuple of lines has several ways to make the mistake, and a way that takes more
    than one line has semicolons between them.

    >>> [one] = read_mistakes({"n = 3; m = n": "off-by-one: You counted one too few."})
    >>> one.name, one.text, one.lines
    ('off-by-one', 'You counted one too few.', {'n': 'n = 3', 'm': 'm = n'})
    """
    mistakes = []
    for ways, heading in known.items():
        name, text = heading.split(": ", 1)
        for way in [ways] if type(ways) is str else ways:
            lines = {_assigned(line): line for line in way.split("; ")}
            if "" in lines:
                raise ValueError(f"expected `name = …` or `return …`, got `{way}`")
            mistakes.append(Mistake(name, text, lines))
    return mistakes


def apply_mistakes(right, *mistakes):
    """Return the right answer, a function, with the lines of these mistakes.

    A line replaces each one that assigns the same name; for a parameter, it is put at
    the top. After a call, `variables` of what is returned has all variables.

    Raises ValueError if the right answer has neither such a line nor such a parameter.
    """
    wrong = {name: line for m in mistakes for name, line in m.lines.items()}
    lines, signature = _read_lines(right), _read_signature(right)
    first = wrong.keys() - {name for _, _, name in lines}
    for name in first - signature.parameters.keys():
        raise ValueError(f"expected a name of {right.__name__}, got `{name}`")
    text = [line for name, line in wrong.items() if name in first]
    text += [indent + wrong.get(name, line) for indent, line, name in lines]
    text = re.sub("^return ", "result = ", "\n".join(text), flags=re.MULTILINE)
    code = [_compile(statement) for statement in re.split(r"\n(?=\S)", text)]

    def answer(*args):
        given = signature.bind(*args)
        given.apply_defaults()
        names = answer.variables = right.__globals__ | given.arguments
        for i, statement in enumerate(code):
            if i == len(code) - len(LAST):  # the answer may have used the same names
                names |= vars(returned)
            exec(statement, names)
        return names["returned"]

    return answer


_read_signature = cache(inspect.signature)


@cache
def _compile(statement):
    try:
        return compile(statement, "", "exec")
    except SyntaxError:  # of a right answer whose lines aren't independent
        text = f"expected a whole statement on one line, got:\n{statement}"
        raise ValueError(text) from None


@cache
def _read_lines(right):
    """Return for each line of a right answer indent, text and what it assigns."""
    body = inspect.getsource(right).partition(":\n")[2]
    lines = [*textwrap.dedent(body).splitlines(), *LAST]
    return [
        (line[: -len(line.lstrip()) or None], line.lstrip(), _assigned(line.lstrip()))
        for line in lines
    ]


def _assigned(line):
    """Return what a line assigns: "a", or "a, b"; of a return, that word; or ""."""
    name, equals, _ = line.partition(" = ")
    return "return" if line.startswith("return ") else name if equals else ""


# --- finding the mistakes of an answer ------------------------------------------------


def find_single_mistake(trial):
    """Return the diagnosis of the mistake that gives all results, in a list, or []."""
    exercise, _, runs = trial
    wrong_first = sorted(runs, key=lambda run: run.is_right)  # rule out the most
    for mistake in exercise.known:
        if reproduces(exercise.right, wrong_first, mistake):
            return _diagnoses(trial, mistake)
    return []


def find_mistake_pair(trial):
    """Return the diagnoses of two mistakes that give all results together, or [].

    If several pairs fit that have no name in common, none is named.
    """
    known, runs = trial.exercise.known, trial.runs
    shown = first_wrong([run for run in runs if not run.error]) or first_wrong(runs)
    pairs = [
        (one, other)
        for one, other in combinations(known, 2)
        if one.lines.keys().isdisjoint(other.lines)
        and reproduces(trial.exercise.right, [shown, *runs], one, other)
    ]
    names = [{mistake.name for mistake in pair} for pair in pairs]
    needed = 2 if shown.error else 1  # an error may hide other mistakes
    if not pairs or len(set.intersection(*names)) < needed:
        return []
    return _diagnoses(trial, *min(pairs, key=lambda pair: known.index(pair[1])))


def _diagnoses(trial, *mistakes):
    """Return a `Diagnosis` for each of these mistakes, shown by a run that they fit."""
    exercise, _, runs = trial
    fitting = [run for run in runs if reproduces(exercise.right, [run], *mistakes)]
    run = first_wrong(fitting) or first_wrong(runs)
    mistaken = apply_mistakes(exercise.right, *mistakes)
    run.outcome_of(mistaken)
    values = mistaken.variables | {"returns": exercise.returns}
    return [Diagnosis(m.name, m.text.format(**values), run) for m in mistakes]


def reproduces(right, runs, *mistakes):
    """Return whether mistakes together give what the answer gave in these runs."""
    mistaken = apply_mistakes(right, *mistakes)
    return all(_same_outcome(run, run.outcome_of(mistaken)) for run in runs)


def _same_outcome(run, other):
    if other.error is None or run.error is None:
        return other.error is run.error and agrees(run.value, other.value)
    text, whole_text = (safe_text(error, 300) for error in (other.error, run.error))
    return type(other.error) is type(run.error) and text in whole_text
