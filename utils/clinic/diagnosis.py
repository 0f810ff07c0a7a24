"""The diagnosis: is it these wrong steps, and which number says so?"""

import difflib

from utils.checks import records
from utils.checks.examine import Result
from utils.checks.messages import wrapped
from utils.clinic.instruments import INSTRUMENTS, measured
from utils.clinic.patients import RIVALS, SUSPECTS, expect_layer, suspects, twin

HEADINGS = {
    "passed": "right",
    "not-attempted": "no diagnosis yet",
    "no-such-suspect": "not understood",
}
DOTS = "Replace the dots by names in quotes, or by nothing if it's healthy."


def diagnose(patient, *slugs):
    """Say whether these are the patient's wrong steps; print why; return the `Result`.

    Without slugs the diagnosis is that it is healthy; `...` says that there is none
    yet. What is right is kept and counts in `progress()`.

    patient: as `patient` returns it
    slugs: names of suspects
    returns: a `Result` as `check` gives it; where not passed, `diagnosis` is wrong,
        half-right, not-attempted or no-such-suspect

    Raises ValueError for what is no patient.
    """
    if not expect_layer(patient).is_patient:
        raise ValueError(f"expected a patient, such as patient(7); got {patient!r}")
    state, lines = _judged(patient, slugs)
    heading = HEADINGS.get(state, state.replace("-", " "))
    message = wrapped("\n".join([f"Patient {patient.number}: {heading}.", *lines]))
    print(message)
    if state == "passed":
        records.add(f"patient {patient.number}")
    return Result(state == "passed", None if state == "passed" else state, message)


def _judged(patient, slugs):
    """Return what to say of a diagnosis: its state, and lines."""
    known, actual = suspects(patient), patient._wrong
    if any(slug is Ellipsis for slug in slugs):
        return "not-attempted", [DOTS]
    for slug in slugs:
        if type(slug) is not str or slug not in known:
            return "no-such-suspect", [_unknown(slug, known)]
    claimed = frozenset(slugs)
    if claimed == actual:
        return "passed", [*_proofs(patient)]
    lines = [_evidence(patient, claimed, _beside(claimed))]
    right = claimed & actual
    if not right:
        return "wrong", lines
    more = "The rest is not." if claimed > actual else "Something else is wrong, too."
    verb = "is" if len(right) == 1 else "are"
    return "half-right", [f"{_joined(right)} {verb} right. {more}", *lines]


def _unknown(slug, known):
    near = difflib.get_close_matches(str(slug), known)
    meant = f" Did you mean {near[0]}?" if near else ""
    return f"{slug!r} is no suspect here.{meant} Expected some of {', '.join(known)}."


def _joined(slugs):
    return " and ".join(sorted(slugs))


def _beside(slugs):
    """Return in words what a patient is compared with."""
    return f"with {_joined(slugs)} alone" if slugs else "in a healthy layer"


def _proofs(patient):
    """Yield each wrong step, what shows it, and what excludes its nearest rival."""
    fitting = {*suspects(patient)} - patient._wrong
    for slug in sorted(patient._wrong):
        others = patient._wrong - {slug}
        yield f"{slug}: {SUSPECTS[slug].line}."
        yield "  " + _evidence(patient, others, _beside(others))
        rivals = [rival for one, rival, *_ in RIVALS if one == slug]
        for rival in [rival for rival in rivals if rival in fitting][:1]:
            yield "  " + _evidence(patient, others | {rival}, f"with {rival} instead")
    if not patient._wrong:
        yield "It is healthy: no instrument finds a difference."


def _evidence(patient, claimed, beside):
    """Return the number that best tells a patient from a layer with other mistakes.

    What excludes a rival comes first, then the instruments that show a wrong step which
    only one of the two has.
    """
    differing = sorted(claimed ^ patient._wrong, key=lambda s: (s in claimed, s))
    decides = {name: label for *two, name, label in RIVALS if two == differing}
    names = [*decides, *(SUSPECTS[slug].shown_by for slug in differing), *INSTRUMENTS]
    other = twin(patient, *sorted(claimed))
    for name in dict.fromkeys(names):
        if INSTRUMENTS[name].masked and not patient.kind.masked:
            continue
        here, there = measured(patient, name), measured(other, name)
        start = decides.get(name, "")
        far = {n: abs(here[n] - there[n]) for n in here if n.startswith(start)}
        largest = max(far.values())
        if largest >= 0.05:  # the first that tells about as much as any
            label = next(label for label in far if far[label] >= 0.4 * largest)
            here, there = here[label], there[label]
            return f"{name}, {label}: {here:.2f} here, {there:.2f} {beside}."
    return f"No instrument tells the patient from {_joined(claimed)}."
