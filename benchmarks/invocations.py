"""Measure `invocation list`: time for stores of growing size, and memory, in one run on one machine.

    python benchmarks/invocations.py [--most N]

Time should grow with the number of claims, and memory hardly at all. Nothing here is asserted; a store holds at most
4096 entries.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

if not __package__:  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.writer.claim import open_invocation
from tests.support.writer.events import terminated
from tests.support.writer.project import make_project
from tests.support.writer.publication import begin_call
from tests.support.writer.text import uid

PROGRAM = [sys.executable, "-m", "symbi_recover", "invocation", "list", "--format", "jsonl", "--project"]


def fill(root: Path, claims: int) -> None:
    """Make a project with that many claims, each with a journal of four records; every other one has a result."""
    project = make_project(root)
    for number in range(claims):
        made = open_invocation(project, invocation_id=uid("id", number), run_id=uid("run", number))
        begin_call(made.journal).finish()
        if number % 2:
            made.journal.append(terminated())
            made.write(result={"output": "done"})
        else:
            made.write()


def measure(root: Path) -> tuple[float, int]:
    """Processor time in seconds and the largest resident memory in KiB of one run."""
    process = subprocess.Popen([*PROGRAM, str(root)], stdout=subprocess.DEVNULL)
    _, _, used = os.wait4(process.pid, 0)
    return used.ru_utime + used.ru_stime, used.ru_maxrss


def main() -> None:
    """Print one line for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=4096)
    most = parser.parse_args().most
    with tempfile.TemporaryDirectory() as folder:
        for claims in (most // 16, most // 4, most):
            root = Path(folder) / str(claims)
            begun = time.perf_counter()
            fill(root, claims)
            filled = time.perf_counter() - begun
            seconds, memory = min(measure(root) for _ in range(3))
            print(
                f"{claims:>5} claims: {seconds:6.2f} s, {seconds / claims * 1e3:5.2f} ms each, "
                f"{memory / 1024:5.1f} MiB (made in {filled:.1f} s)"
            )


if __name__ == "__main__":
    main()
