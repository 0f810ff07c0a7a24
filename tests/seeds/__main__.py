"""Measure with ten seeds, two at a time, and write the table of README.md here.

Ends with 1 where a statement holds in fewer seeds than its notebook says.
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
HEAD = (
    "| name | statement | allowed | measured | holds in | day |\n"
    "|---|---|---|---|---|---|\n"
)


def load(name):
    """Return the module that measures a notebook."""
    return importlib.import_module(f"tests.seeds.{name}")


def measure(name, seed):
    """Return what a module measures with a seed."""
    return load(name).main(seed)


def rows(name, found):
    """Return a row for each statement, and whether all hold often enough."""
    least, lines, all_hold = getattr(load(name), "HELD", {}), [], True
    for statement, (_, lowest, highest) in found[0].items():
        measured = [results[statement][0] for results in found]
        held = sum(lowest <= value <= highest for value in measured)
        all_hold &= held >= least.get(statement, len(found) - 1)
        allowed = f"{lowest:g} to {highest:g}"
        found_in = f"{min(measured):.3g} to {max(measured):.3g}"
        said = (name, statement, allowed, found_in, f"{held} of {len(found)}")
        lines.append(f"| {' | '.join(said)} | {datetime.date.today()} |\n")
    return lines, all_hold


def main():
    """Read the command line, measure, print and store."""
    names = [module.name for module in pkgutil.iter_modules(tests.seeds.__path__)]
    names = [name for name in names if name != "__main__"]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(names))
    wanted = parser.parse_args().names or names
    if set(wanted) - set(names):
        parser.error(f"expected names of {', '.join(names)}")
    all_hold = True
    print(HEAD, end="")
    with ProcessPoolExecutor(2) as pool:
        for name in wanted:
            found = list(pool.map(measure, [name] * len(SEEDS), SEEDS))
            lines, hold = rows(name, found)
            all_hold &= hold
            print("".join(lines), end="", flush=True)
            guide.store("the last seeds", HEAD, lines, names)
    return not all_hold


if __name__ == "__main__":
    sys.exit(main())
