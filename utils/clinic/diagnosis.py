"""The diagnosis: is it these wrong steps, and which number says so?"""

from utils import require
from utils.checks import records
from utils.checks.display import NOT_ATTEMPTED, NOT_YET, PASSED, show_block
from utils.checks.examine import Result
from utils.clinic.instruments import measured, usable_instruments
from utils.clinic.patients import RIVALS, SUSPECTS, expect_layer, suspects, twin

HEADINGS = {
    "passed": (PASSED, "right"),
    "half-right": (NOT_YET, "half right"),
    "wrong": (NOT_YET, "wrong"),
    "not-attempted": (NOT_ATTEMPTED, "no diagnosis yet"),
    "no-such-suspect": (NOT_YET, "not understood"),
}
DOTS = "Replace the dots by names in quotes, or by nothing if it's healthy."


def diagnose(patient, *slugs) -> Result:
    """Say whether these are the patient's wrong steps; show why; return the `Result`.

    Without slugs the diagnosis is that it is healthy; `...` says that there is none
    yet. What is right is kept and counts in `progress()`.

    patient: as `patient` returns it
    slugs: names of suspects
    returns: a `Result` as `check` gives it; where not passed, `diagnosis` is wrong,
        half-right, not-attempted or no-such-suspect
    """
    is_patient = expect_layer(patient).is_patient
    require.that(is_patient, "a patient, such as patient(7)", repr(patient))
    state, lines = _judge(patient, slugs)
    name = f"Patient {patient.number}"
    (sign, _, color), words = HEADINGS[state]
    message = show_block(name, (sign, words, color), "\n".join(lines))
    if state == "passed":
        records.add(f"patient {patient.number}")
    return Result(state == "passed", None if state == "passed" else state, message)


def _judge(patient, slugs):
    """Return what to say of a diagnosis: its state, and lines."""
    known, actual = suspects(patient), patient._wrong
    if any(slug is Ellipsis for slug in slugs):
        return "not-attempted", [DOTS]
    for slug in slugs:
        if slug not in [*known]:  # a list has no hash
            expected = f"Expected some of {', '.join(known)}."
            return "no-such-suspect", [f"{slug!r} is no suspect here. {expected}"]
    claimed = frozenset(slugs)
    if claimed == actual:
        return "passed", [*_proofs(patient)]
    lines, right = [_evidence(patient, claimed)], claimed & actual
    if not right:
        return "wrong", lines
    more = "The rest is not." if claimed > actual else "Something else is wrong, too."
    verb = "is" if len(right) == 1 else "are"
    return "half-right", [f"{_joined(right)} {verb} right. {more}", *lines]


def _joined(slugs):
    return " and ".join(sorted(slugs))


def _proofs(patient):
    """Yield each wrong step, what shows it, and what excludes its nearest rival."""
    known = suspects(patient)
    for slug in sorted(patient._wrong):
        others = patient._wrong - {slug}
        yield f"{slug}: {known[slug]}."
        yield "  " + _evidence(patient, others)
        rival = RIVALS.get(slug)
        if rival in known and rival not in patient._wrong:
            yield "  " + _evidence(patient, others | {rival}, f"with {rival} instead")
    if not patient._wrong:
        yield "It is healthy: no instrument finds a difference."


def _evidence(patient, claimed, beside=None):
    """Return a number that tells a patient from a layer with other mistakes.

    Instruments that show a wrong step of only one of the two come first.
    """
    if beside is None:
        beside = f"with {_joined(claimed)} alone" if claimed else "in a healthy layer"
    differing = sorted(claimed ^ patient._wrong, key=lambda s: (s in claimed, s))
    other, known = twin(patient, *sorted(claimed)), usable_instruments(patient)
    for name in [*(SUSPECTS[slug][1] for slug in differing), *known]:
        here, there = measured(patient, name), measured(other, name)
        label = max(here, key=lambda label: abs(here[label] - there[label]))
        if abs(here[label] - there[label]) >= 0.05:
            numbers = f"{here[label]:.2f} here, {there[label]:.2f} {beside}"
            return f"{name}, {label}: {numbers}."
    return f"No instrument tells the patient from {_joined(claimed)}."
