"""Measure every target of the design as a ratio in one run on one machine.

L is one plain loop of libsodium verifications over the records of a 64 MiB journal, the work that nothing can avoid.
All times are processor time of the process and its children, except where two cores share the work; each is the
best of several rounds, and the rounds of all measurements are interleaved, so that a busy machine disturbs them
alike. Memory is the sum over all processes of what each has for itself plus its share of what is common (PSS).

    python benchmarks/measure.py [--bytes N] [--rounds N] [--json]
"""

import argparse
import gc
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

if not __package__:  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from nacl.bindings import crypto_sign_open

from benchmarks.generate import generate
from symbi_recover.read.evidence.opener import OpenedFile
from symbi_recover.read.verify.journal import verify
from symbi_recover.wire.exact import parse_uuid
from symbi_recover.wire.journal import envelope

PROGRAM = [sys.executable, "-m", "symbi_recover"]


class Target(NamedTuple):
    """One line of the result."""

    what: str
    unit: str
    limit: float
    measured: float

    @property
    def met(self) -> bool:
        """Whether the target is met."""
        return self.measured <= self.limit


def processor_time() -> float:
    """Seconds of this process and its ended children."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def cost(work: Callable[[], object], clock: Callable[[], float] = processor_time) -> float:
    """What one run of `work` costs by `clock`."""
    before = clock()
    work()
    return clock() - before


def journal_ratios(path: Path, run: str, key: str, rounds: int) -> list[Target]:
    """The ratios to L."""
    public_key = bytes.fromhex(key)
    run_id = parse_uuid(run)
    signed = [signature + payload for payload, signature, _ in map(envelope, io.BytesIO(path.read_bytes()))]

    def plain() -> None:
        for message in signed:
            crypto_sign_open(message, public_key)

    def inspect(**how: object) -> Callable[[], object]:
        def once() -> None:
            with OpenedFile.open(str(path)) as file:
                verify(file, public_key, run_id=run_id, **how)  # type: ignore[arg-type]

        return once

    best = dict.fromkeys(("L", "one", "anchored", "L wall", "two wall"), float("inf"))
    gc.disable()
    for _ in range(rounds):
        best["L"] = min(best["L"], cost(plain))
        best["one"] = min(best["one"], cost(inspect()))
        best["anchored"] = min(best["anchored"], cost(inspect(depth="anchored")))
        best["L wall"] = min(best["L wall"], cost(plain, time.perf_counter))
        best["two wall"] = min(best["two wall"], cost(inspect(workers=2), time.perf_counter))
    gc.enable()
    return [
        Target("full inspection, 1 core", "L", 1.25, best["one"] / best["L"]),
        Target("full inspection, 2 cores (elapsed)", "L", 0.65, best["two wall"] / best["L wall"]),
        Target("anchored, 1 core", "L", 0.12, best["anchored"] / best["L"]),
    ]


def start_ratios(small: Path, run: str, key: str, rounds: int) -> list[Target]:
    """The ratios to a bare interpreter start, in processor time."""
    commands = {
        "bare": [sys.executable, "-c", "pass"],
        "version": [*PROGRAM, "--version"],
        "small": [*PROGRAM, "audit", "inspect", str(small), "--run-id", run, "--public-key", key],
    }
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(rounds * 10):
        for name, command in commands.items():
            best[name] = min(best[name], cost(lambda command=command: _quietly(command)))  # type: ignore[misc]
    return [
        Target("--version", "bare start", 2.0, best["version"] / best["bare"]),
        Target("audit inspect of a small journal", "bare start", 4.0, best["small"] / best["bare"]),
    ]


def _quietly(command: list[str]) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def peak_memory(path: Path, run: str, key: str) -> Target:
    """The peak of all processes of one `audit inspect` on two cores, in MiB."""
    command = [*PROGRAM, "audit", "inspect", str(path), "--run-id", run, "--public-key", key, "--jobs", "2"]
    peak = 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            peak = max(peak, sum(_share(pid) for pid in [process.pid, *_children(process.pid)]))
            time.sleep(0.02)
    return Target("peak memory, all processes", "MiB", 200, peak / 1024)


def _share(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")), 0)


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]
    except OSError:
        return []


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bytes", type=int, default=64 << 20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        large, small = Path(folder) / "large.jsonl", Path(folder) / "small.jsonl"
        made = generate(large, options.bytes)
        little = generate(small, 64 << 10)
        run, key = str(made.run_id), str(made.public_key)
        targets = [
            *journal_ratios(large, run, key, options.rounds),
            *start_ratios(small, str(little.run_id), str(little.public_key), options.rounds),
            peak_memory(large, run, key),
        ]
    if options.json:
        json.dump([target._asdict() | {"met": target.met} for target in targets], sys.stdout, indent=2)
        print()
        return
    print(
        f"{made.records:,} records, {made.size:,} bytes, {os.cpu_count()} cores; load {os.getloadavg()[0]:.1f}"
    )
    for target in targets:
        word = "met" if target.met else "MISSED"
        print(f"{target.what:38} {target.measured:8.2f} {target.unit:11} target {target.limit:6.2f}  {word}")


if __name__ == "__main__":
    main()
