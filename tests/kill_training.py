"""Kill the training command at random moments, then see that nothing was lost.

    python -m tests.kill_training [--kills N] [--seed N] TEXT [options of the command]

One run is left alone. Another is killed again and again, every third time in the midst
of writing a checkpoint, and goes on each time; in the end both have come to the same
losses and weights, and no checkpoint was ever damaged. Needs a system that can fork.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import torch

from utils.training import read_checkpoint, text

NOWAIT = getattr(os, "WNOWAIT", 0)  # to look at a child without letting it go


def start(arguments, log, writes=None):
    """Start the command in a child, which dies at its n-th write if that is given."""
    child = os.fork()
    if child:
        return child
    sys.stdout, synced, sync = open(log, "w"), [], os.fsync

    def die_in_time(handle):
        synced.append(handle)
        if len(synced) == writes:
            os.truncate(handle, os.fstat(handle).st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        sync(handle)

    os.fsync = die_in_time
    code = text.main(arguments)
    sys.stdout.flush()
    os._exit(code)


def finish(arguments, log):
    """Let the command come to its end; return its last line."""
    _, status = os.waitpid(start(arguments, log), 0)
    lines = Path(log).read_text(encoding="utf-8").splitlines()
    assert status == 0, lines
    return lines[-1]


def equal(one, other):
    """Compare what two checkpoints hold, to the last bit."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[k], other[k]) for k in one)
    return one == other


def kill_later(child, checkpoint, draw):
    """Kill a child somewhere behind one of its first checkpoints."""
    seen, writes = None, draw.randrange(10)
    while writes and not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | NOWAIT):
        now = checkpoint.stat().st_mtime_ns if checkpoint.exists() else None
        writes, seen = writes - (now != seen), now
        time.sleep(0.001)
    time.sleep(draw.uniform(0, 0.03))
    os.kill(child, signal.SIGKILL)


def kill(arguments, folder, kills, draw):
    """Return the last lines, the checkpoints, and the steps at which it was killed."""
    alone, killed, log = (folder / name for name in ("alone.pt", "killed.pt", "log"))
    undisturbed, steps = finish([*arguments, "--checkpoint", str(alone)], log), []
    arguments = [*arguments, "--checkpoint", str(killed)]
    for number in range(kills):
        in_a_write = number % 3 == 2
        child = start(arguments, log, draw.randrange(1, 20, 2) if in_a_write else None)
        if not in_a_write:
            kill_later(child, killed, draw)
        if os.waitpid(child, 0)[1] == 0:
            break  # it came to its end before
        steps.append(read_checkpoint(killed)["step"] if killed.exists() else 0)
    lines = undisturbed, finish(arguments, log)
    left = {path.name for path in folder.iterdir()}
    assert left == {"alone.pt", "killed.pt", "log"}, left
    return lines, (read_checkpoint(alone), read_checkpoint(killed)), steps


def main():
    """Kill as asked, print what came of it, and fail where something was lost."""
    torch.optim.AdamW(torch.nn.Linear(1, 1).parameters())  # imports once what is slow
    parser = argparse.ArgumentParser(prog="python -m tests.kill_training")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=time.time_ns())
    options, arguments = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        draw = random.Random(options.seed)
        lines, states, steps = kill(arguments, Path(folder), options.kills, draw)
    print(f"killed at the steps {steps}, seed {options.seed}")
    print(*lines, sep="\n")
    sys.exit(0 if lines[0] == lines[1] and equal(*states) else "something was lost")


if __name__ == "__main__":
    main()
