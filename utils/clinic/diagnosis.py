"""The diagnosis: is it these wrong steps, and which number says so?"""

from utils.checks import records
from utils.checks.display import NOT_ATTEMPTED, NOT_YET, PASSED, show_block
from utils.checks.examine import Result
from utils.clinic.instruments import readings, usable_instruments
from utils.clinic.patients import RIVALS, SUSPECTS, check_layer, suspects, twin
from utils.validation import raise_unless

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
    is_patient = check_layer(patient).is_patient
    raise_unless(is_patient, "a patient, such as patient(7)", repr(patient))
    state, lines = _judge(patient, slugs)
    name = f"Patient {patient.number}"
    (sign, _, color), words = HEADINGS[state]
    message = show_block(name, (sign, words, color), "\n".join(lines))
    if state == "passed":
        records.add(f"patient {patient.number}")
    return Result(state == "passed", None if state == "passed" else state, message)


def _judge(patient, slugs):
    """Return what to say of a diagnosis: its state, and lines."""
    suspect_lines, faults = suspects(patient), patient._slugs
    if any(slug is Ellipsis for slug in slugs):
        return "not-attempted", [DOTS]
    for slug in slugs:
        if slug not in [*suspect_lines]:  # a list has no hash
            expected = f"Expected some of {', '.join(suspect_lines)}."
            return "no-such-suspect", [f"{slug!r} is no suspect here. {expected}"]
    claimed = frozenset(slugs)
    if claimed == faults:
        return "passed", [*_explain_faults(patient)]
    lines, hits = [_find_evidence(patient, claimed)], claimed & faults
    if not hits:
        return "wrong", lines
    text = "The rest is not." if claimed > faults else "Something else is wrong, too."
    verb = "is" if len(hits) == 1 else "are"
    return "half-right", [f"{_join(hits)} {verb} right. {text}", *lines]


def _join(slugs):
    return " and ".join(sorted(slugs))


def _explain_faults(patient):
    """Yield each wrong step, what shows it, and what excludes its nearest rival."""
    suspect_lines = suspects(patient)
    for slug in sorted(patient._slugs):
        slugs = patient._slugs - {slug}
        yield f"{slug}: {suspect_lines[slug]}."
        yield "  " + _find_evidence(patient, slugs)
        rival = RIVALS.get(slug)
        if rival in suspect_lines and rival not in patient._slugs:
            yield "  " + _find_evidence(
                patient, slugs | {rival}, f"with {rival} instead"
            )
    if not patient._slugs:
        yield "It is healthy: no instrument finds a difference."


def _find_evidence(patient, claimed, where=None):
    """Return a number that tells a patient from a layer with other mistakes.

    Instruments that show a wrong step of only one of the two come first.
    """
    if where is None:
        where = f"with {_join(claimed)} alone" if claimed else "in a healthy layer"
    decisive = sorted(claimed ^ patient._slugs, key=lambda s: (s in claimed, s))
    peer, instruments = twin(patient, *sorted(claimed)), usable_instruments(patient)
    for name in [*(SUSPECTS[slug][1] for slug in decisive), *instruments]:
        values, peer_values = readings(patient, name), readings(peer, name)
        label = max(values, key=lambda label: abs(values[label] - peer_values[label]))
        if abs(values[label] - peer_values[label]) >= 0.05:
            numbers = f"{values[label]:.2f} here, {peer_values[label]:.2f} {where}"
            return f"{name}, {label}: {numbers}."
    return f"No instrument tells the patient from {_join(claimed)}."
