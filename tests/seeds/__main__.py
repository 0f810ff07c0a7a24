"""Measure the claims with ten seeds, two at a time, and renew the table of README.md.

Ends with 1 if a claim holds in fewer seeds than it must.
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
from tests import result_tables

SEEDS = range(10)


def measure(name, seed):
    """Return what a module measures with a seed: a dict of numbers."""
    results = importlib.import_module(f"tests.seeds.{name}").main(seed)
    return {
        what: float(number.detach() if hasattr(number, "detach") else number)
        for what, number in results.items()
    }


def row(claim, numbers):
    """Return the row of a claim, and whether it holds in as many seeds as it must.

    claim: the first six cells of its row
    """
    lowest, highest = map(float, claim[4].split(" to "))
    count = sum(lowest <= number <= highest for number in numbers)
    result = f"{min(numbers):.3g} to {max(numbers):.3g}", f"{count} of {len(numbers)}"
    line = f"| {' | '.join([*claim, *result])} | {datetime.date.today()} |\n"
    return line, count >= int(claim[5])


def main():
    """Read the command line, measure, print and store."""
    names = [module.name for module in pkgutil.iter_modules(tests.seeds.__path__)]
    names.remove("__main__")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(names))
    chosen_names = parser.parse_args().names or names
    if set(chosen_names) - set(names):
        parser.error(f"expected names of {', '.join(names)}")
    claims, failed = result_tables.rows(6), []
    with ProcessPoolExecutor(2) as pool:
        for name in chosen_names:
            results = list(pool.map(measure, [name] * len(SEEDS), SEEDS))
            lines = []
            for claim in [claim for claim in claims if claim[0] == name]:
                line, holds = row(claim, [numbers[claim[3]] for numbers in results])
                lines.append(line)
                failed += [] if holds else [line]
            print("".join(lines), end="", flush=True)
            result_tables.store(lines, names)
    if failed:
        print("\nhold in fewer seeds than they must:")
        print("".join(failed), end="")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
