"""A host that sees one private engine and its relatives, for evidence that must not meet other engines of the machine.

Everything else is the real host's: processes, rights, boot, clock. What a test cannot bring about (another boot, a clock
that is synchronised) it sets here.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator

from symbi_recover.read.evidence.clock import BirthTime, ClockState, StartTime
from symbi_recover.read.evidence.kernel import CannotKnow
from symbi_recover.read.evidence.processes import list_pids
from symbi_recover.read.retirement.host import RealHost


class EngineHost(RealHost):
    """The real host without other engines; times and boot may be set."""

    def __init__(self, own: Callable[[], int]) -> None:
        """Make it; `own` gives the process number of the private engine as it is now."""
        self._own = own
        self.init = 1
        self.boot: str | None = None
        self.clock = ClockState(synchronised=True, state=0)
        self.boot_start: StartTime | None = None
        self.engine_start: StartTime | None = None
        self.birth: BirthTime | CannotKnow | None = None
        self.faults: tuple[str, ...] | None = None
        self.now: int | None = None
        self.passed = 0.0

    def pids(self) -> tuple[int, ...] | CannotKnow:
        """All processes but those of other engines."""
        found = list_pids()
        if isinstance(found, CannotKnow):
            return found
        made = _Without(found)
        made.own = self._own()
        return made

    def scan_faults(self) -> tuple[str, ...]:
        """The real ones unless set."""
        return super().scan_faults() if self.faults is None else self.faults

    def boot_id(self) -> str | CannotKnow:
        """The real one unless set."""
        return self.boot or super().boot_id()

    def boot_started(self) -> StartTime | CannotKnow:
        """The real one unless set."""
        return self.boot_start or super().boot_started()

    def process_started(self, start_ticks: int) -> StartTime | CannotKnow:
        """The real one unless set."""
        return self.engine_start or super().process_started(start_ticks)

    def clock_state(self) -> ClockState | CannotKnow:
        """As set."""
        return self.clock

    def born(self, descriptor: int) -> BirthTime | CannotKnow:
        """The real one unless set."""
        return self.birth or super().born(descriptor)

    def now_ns(self) -> int:
        """The real one unless set."""
        return self.now or super().now_ns()

    def monotonic(self) -> float:
        """Time that `pause` makes pass at once, so that a minute of polling is short."""
        return time.monotonic() + self.passed

    def pause(self, seconds: float) -> None:
        """Give others a moment, and let the clock go on as if it had been as long as asked."""
        self.passed += max(1.0, seconds)
        time.sleep(min(seconds, 0.02))


class _Without(tuple[int, ...]):  # noqa: SLOT001 -- a tuple cannot have slots of its own
    """Process numbers, each looked at when its turn comes: a test beside this one may start an engine at any moment."""

    own: int

    def __iter__(self) -> Iterator[int]:
        return (pid for pid in super().__iter__() if pid == self.own or not _is_engine(pid))


def _is_engine(pid: int) -> bool:
    """Whether a process is an engine or a helper of one, about to be one (a launcher names it), or was one (by its name)."""
    words = [word for name in ("cmdline", "comm") for word in _words(f"/proc/{pid}/{name}")]
    with contextlib.suppress(OSError):
        words.append(os.readlink(os.fsencode(f"/proc/{pid}/exe")))
    return any(os.path.basename(word) == b"dockerd" for word in words)


def _words(path: str) -> list[bytes]:
    try:
        with open(path, "rb") as file:
            return file.read(65_536).replace(b"\n", b"\0").split(b"\0")
    except OSError:
        return []
