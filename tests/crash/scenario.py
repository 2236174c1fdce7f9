"""What a scenario is, what a check reports, and the fresh worlds in which a scenario's command is run.

Nothing is judged here; that is `harness.py`, which is also the module to import from.
"""

import hashlib
import shutil
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path

from msgspec import Struct

from tests.crash.run import (
    TIMEOUT,
    Outcome,
    Point,
    Trace,
    Workspace,
    environment,
    record,
    run_plain,
    run_with,
)


class Scenario(ABC):
    """One command, the world it needs, and how the outcome is judged.

    Everything here is called from worker threads, each time with another world; keep no state in the object.
    `success` is the exit code of the undisturbed command. `workers` is how many worlds may be in use at a time: 1 when they share a place, such as a fixed absolute path.
    `publishes` names the files whose order of publication is checked; `published_only` are those of them whose bytes
    were written and synced by someone else before. `publishes_before` pairs such a file with one, by base name, that may
    be removed only once it is durable. `may_be_lost` and `may_exist` are base names that the checks of
    order leave out: files whose loss at a power cut is harmless, and files that are opened whether they exist or not.
    """

    name: str
    success: int = 0
    workers: int = 2
    publishes: tuple[str, ...] = ()
    published_only: tuple[str, ...] = ()
    publishes_before: tuple[tuple[str, str], ...] = ()
    may_be_lost: tuple[str, ...] = ()
    may_exist: tuple[str, ...] = ()
    stdin: bytes = b""
    timeout: float = TIMEOUT
    kills: int = 40
    """Points that the ordinary run tries; fewer for a command that takes long to start."""
    faults: int = 60

    @abstractmethod
    def prepare(self, tmp: Path) -> Workspace:
        """Make a fresh world below the empty folder `tmp`. Inodes are new each time, so record them here."""

    @abstractmethod
    def command(self, workspace: Workspace) -> Sequence[str]:
        """The command line. It must be the same, and of the same length, for every world but for the folder."""

    @abstractmethod
    def final_state(self, workspace: Workspace) -> object:
        """What must be equal at the end, as a value with `==`: names and contents without times, inodes or folder."""

    @abstractmethod
    def evidence(self, workspace: Workspace) -> Mapping[str, str]:
        """Name -> hash of everything that must never change (see `file_hashes`)."""

    def allowed_between(self, workspace: Workspace) -> None:  # noqa: B027 - optional
        """Raise AssertionError when the state that a kill left is not one of the named, permitted ones."""

    def allowed_after_fault(self, workspace: Workspace) -> None:
        """The same for the state after a failed call; unless overridden, the rule is that for kills."""
        self.allowed_between(workspace)

    def leftovers(self, workspace: Workspace) -> Collection[str]:
        """Temporary files that a command which could still clean up must not leave behind (field case F-088)."""
        return ()

    def judge(self, workspace: Workspace, point: Point, outcome: Outcome) -> None:  # noqa: B027 - optional
        """Any further demand on a disturbed run; raise AssertionError when it is not met."""

    def may_pass_over(self, outcome: Outcome) -> bool:
        """Whether the sync that failed is one that a library passes over, and that the command does again itself."""
        return False

    def announces(self, outcome: Outcome) -> bool:
        """Whether a run that was killed had already told the world of its success: by default, by any output."""
        return bool(outcome.stdout)

    def cleanup(self, workspace: Workspace) -> None:  # noqa: B027 - optional
        """End whatever `prepare` started."""


class Failure(Struct, frozen=True):
    """One thing that went wrong. `check` names the rule; `point` is None when no disturbance was involved."""

    check: str
    message: str
    point: Point | None = None
    hit: str = ""
    output: str = ""

    def __str__(self) -> str:
        where = f"{self.point.id} ({self.point.about})" if self.point else "no disturbance"
        lines = [f"[{self.check}] {where}: {self.message}"]
        lines += [f"    disturbed call: {self.hit}"] if self.hit else []
        lines += [f"    {line}" for line in self.output.splitlines()[-12:]]
        return "\n".join(lines)


class Result(Struct, frozen=True):
    """What a check found. `possible` is the size of the full matrix, `points` how much of it was run."""

    scenario: str
    points: int
    possible: int
    seconds: float
    failures: tuple[Failure, ...]

    def __str__(self) -> str:
        rate = self.points / self.seconds if self.seconds else 0.0
        head = f"{self.scenario}: {self.points} of {self.possible} points, {len(self.failures)} failures, "
        lines = [f"{head}{self.seconds:.1f} s, {rate:.1f} points a second"]
        for failure in self.failures:
            lines.append(str(failure))
            if failure.point:
                again = f"python -m tests.crash.matrix {self.scenario} --only {failure.point.id}"
                lines.append(f"    again: {again}")
        return "\n".join(lines)

    def raise_if_failed(self) -> None:
        """Raise AssertionError with every failure."""
        if self.failures:
            raise AssertionError(str(self))


def file_hashes(paths: Iterable[Path], base: Path) -> dict[str, str]:
    """SHA-256, mode and size of files, by their path below `base`; "absent" for one that is not there."""
    found = {}
    for path in paths:
        name = str(path.relative_to(base))
        if path.is_symlink() or not path.is_file():
            found[name] = "not a file" if path.is_symlink() or path.exists() else "absent"
            continue
        status = path.stat()
        found[name] = f"{hashlib.sha256(path.read_bytes()).hexdigest()} {status.st_mode:o} {status.st_size}"
    return found


class World:
    """One workspace and its folder, taken away at the end."""

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        self._scenario, self._folder = scenario, folder

    def __enter__(self) -> Workspace:
        self._folder.mkdir(parents=True)
        self._workspace = self._scenario.prepare(self._folder)
        return self._workspace

    def __exit__(self, *_: object) -> None:
        self._scenario.cleanup(self._workspace)
        shutil.rmtree(self._folder)


class Worlds:
    """Makes worlds with names of equal length, and runs the scenario's command in them."""

    def __init__(self, scenario: Scenario, tmp: Path) -> None:
        self.scenario = scenario
        self._tmp, self._numbers = tmp, count()
        self._cache = tmp / "byte-code"

    def fresh(self) -> World:
        return World(self.scenario, self._tmp / f"world-{next(self._numbers):06}")

    def _env(self, world: Workspace) -> dict[str, str]:
        return environment(world.env, self._cache)

    def plain(self, world: Workspace) -> Outcome:
        env = self._env(world)
        if not self._cache.exists():
            del env["PYTHONDONTWRITEBYTECODE"]
        return run_plain(self.scenario.command(world), world.cwd, env, self.scenario.stdin)

    def record(self, world: Workspace) -> Trace:
        argv = self.scenario.command(world)
        return record(
            argv,
            world.cwd,
            self._env(world),
            world.root,
            stdin=self.scenario.stdin,
            timeout=self.scenario.timeout,
        )

    def disturbed(self, world: Workspace, point: Point) -> Outcome:
        argv = self.scenario.command(world)
        return run_with(
            point, argv, world.cwd, self._env(world), stdin=self.scenario.stdin, timeout=self.scenario.timeout
        )
