"""Measure with the seeds 0, 1 and 2, and end with 1 where a statement fails."""

import importlib
import pkgutil
import sys

import tests.seeds

names = sys.argv[1:] or [m.name for m in pkgutil.iter_modules(tests.seeds.__path__)]
failed = 0
for name in names:
    if name == "__main__":
        continue
    module = importlib.import_module(f"tests.seeds.{name}")
    for seed in (0, 1, 2):
        for statement, (measured, lowest, highest) in module.main(seed).items():
            holds = lowest <= measured <= highest
            failed += not holds
            state = "holds" if holds else "FAILS"
            print(
                f"{name}, seed {seed}: {statement}: {measured:.3f} {state}", flush=True
            )
sys.exit(failed > 0)
