"""How long byte-pair training takes on a megabyte of text.

The text is the source of Python's standard library, its modules in alphabetical order.
That `train_bpe` learns what counting all pairs anew learns is tested.
"""

import sysconfig
import time
from pathlib import Path

from utils.tokenizer import train_bpe


def main():
    modules = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    text = b"".join(module.read_bytes() for module in modules)[:1_000_000]
    start = time.perf_counter()
    merges = train_bpe(text.decode("utf-8", errors="ignore"), 1000)
    print(f"{len(merges):,} merges: {time.perf_counter() - start:.1f} s")
