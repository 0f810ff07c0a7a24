"""Measure with ten seeds, two at a time, and renew the table of README.md here.

Ends with 1 where a statement holds in fewer seeds than the table asks for, or where the
table doesn't say yet what is allowed.
"""

import argparse
import datetime
import importlib
import os
import pkgutil
import sys
from concurrent.futures import ProcessPoolExecutor

os.environ["OMP_NUM_THREADS"] = "1"  # before torch: two processes share the cores

import tests.seeds
from tests import guide

SEEDS = range(10)
TABLE = "the last seeds"
HEAD = (
    "| name | statement | allowed | in at least | measured | holds in | day |\n"
    "|---|---|---|---|---|---|---|\n"
)


def measure(name, seed):
    """Return statement -> number, as a module measures it with a seed."""
    found = importlib.import_module(f"tests.seeds.{name}").main(seed)
    return {
        statement: float(number.detach() if hasattr(number, "detach") else number)
        for statement, number in found.items()
    }


def row(name, statement, measured, allowed, least):
    """Return the row of a statement, and whether it holds often enough.

    allowed, least: as they stand in the table: "0.5 to 1" and "9", or "?"
    """
    held = "?"
    if allowed != "?":
        lowest, highest = map(float, allowed.split(" to "))
        held = sum(lowest <= number <= highest for number in measured)
    found = f"{min(measured):.3g} to {max(measured):.3g}"
    cells = name, statement, allowed, least, found, f"{held} of {len(measured)}"
    line = f"| {' | '.join(cells)} | {datetime.date.today()} |\n"
    return line, "?" not in (held, least) and held >= int(least)


def main():
    """Read the command line, measure, print and store."""
    names = [module.name for module in pkgutil.iter_modules(tests.seeds.__path__)]
    names.remove("__main__")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(names))
    wanted = parser.parse_args().names or names
    if set(wanted) - set(names):
        parser.error(f"expected names of {', '.join(names)}")
    said = {(name, what): limits for name, what, *limits in guide.rows(TABLE, 4)}
    failed = []
    print(HEAD, end="")
    with ProcessPoolExecutor(2) as pool:
        for name in wanted:
            found = list(pool.map(measure, [name] * len(SEEDS), SEEDS))
            lines = []
            for statement in found[0]:
                measured = [results[statement] for results in found]
                limits = said.get((name, statement), ("?", "9"))
                line, holds = row(name, statement, measured, *limits)
                lines.append(line)
                failed += [] if holds else [line]
            print("".join(lines), end="", flush=True)
            guide.store(TABLE, HEAD, lines, names)
    if failed:
        print("\nfewer seeds than they must, or not said what is allowed:")
        print("".join(failed), end="")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
