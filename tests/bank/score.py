"""Print the bank's score at the end of a test run: `conftest.py` imports the hook."""


def pytest_terminal_summary(terminalreporter):
    """Count what the tests of the bank recorded, in one process or several."""
    seen = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "call":
                for name, value in report.user_properties:
                    if name == "bank":
                        seen.setdefault(value, set()).add(report.nodeid)
    if seen:
        terminalreporter.write_line(
            score({name: len(ids) for name, ids in seen.items()})
        )


def score(seen):
    """Return the score line from the number of tests that recorded each outcome."""
    accepted, refused = seen.get("right passed", 0), seen.get("wrong refused", 0)
    named = seen.get("wrong named", 0)
    wrong = refused + seen.get("wrong passed", 0)
    line = f"bank: {accepted} right answers accepted, {refused} wrong answers refused"
    line += f", {named} named ({100 * named / max(wrong, 1):.0f} %)"
    slips = seen.get("right refused", 0), seen.get("wrong passed", 0)
    return line + (
        f"; {slips[0]} right refused, {slips[1]} wrong passed" if any(slips) else ""
    )
