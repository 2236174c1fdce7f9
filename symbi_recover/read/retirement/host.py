"""The host as the retirement's evidence sees it: processes, boot, clock, and the rights to look.

`Host` is a Protocol, so that tests can give a host that sees one private engine and its relatives alone. The program
always uses `RealHost`, and no option changes that.
"""

import socket
import time
from typing import Protocol

from symbi_recover.read.daemon.listener import INIT
from symbi_recover.read.evidence import clock, host
from symbi_recover.read.evidence.clock import BirthTime, ClockState, StartTime
from symbi_recover.read.evidence.host import own_view
from symbi_recover.read.evidence.kernel import PROC, CannotKnow
from symbi_recover.read.evidence.mounts import judge_proc, read_mounts
from symbi_recover.read.evidence.processes import list_pids


class Host(Protocol):
    """What is asked about the host."""

    @property
    def init(self) -> int:
        """The process that owns the listeners of socket activation."""

    def pids(self) -> tuple[int, ...] | CannotKnow:
        """Every process."""

    def scan_faults(self) -> tuple[str, ...]:
        """Why a scan of all processes would not count, one sentence each."""

    def boot_id(self) -> str | CannotKnow:
        """Which boot this is."""

    def boot_started(self) -> StartTime | CannotKnow:
        """When it began, by the clock as it is set now."""

    def process_started(self, start_ticks: int) -> StartTime | CannotKnow:
        """When a process started, likewise."""

    def clock_state(self) -> ClockState | CannotKnow:
        """Whether the clock is synchronised."""

    def born(self, descriptor: int) -> BirthTime | CannotKnow:
        """When an open file was made."""

    def now_ns(self) -> int:
        """Nanoseconds since 1970."""

    def monotonic(self) -> float:
        """Seconds of a clock that nobody can step."""

    def pause(self, seconds: float) -> None:
        """Wait."""

    def name(self) -> str:
        """Of the host."""


class RealHost:
    """This host, through /proc."""

    init = INIT

    def pids(self) -> tuple[int, ...] | CannotKnow:
        """See `Host`."""
        return list_pids()

    def scan_faults(self) -> tuple[str, ...]:
        """Section 18.4, "Client scan": rights, namespaces and an honest /proc."""
        view = own_view()
        wanted = (
            (view.uid == 0, "not run as root"),
            (view.sys_ptrace, "CAP_SYS_PTRACE is missing"),
            (view.initial_pid_namespace, "not in the initial PID namespace"),
            (view.initial_user_namespace, "not in the initial user namespace"),
            (view.own_proc, "/proc is not that of this process's PID namespace"),
        )
        faults = [
            f"{text}: {answer.detail}" if isinstance(answer, CannotKnow) else text
            for answer, text in wanted
            if answer is not True
        ]
        mounts = read_mounts(PROC)
        faults += [mounts.detail] if isinstance(mounts, CannotKnow) else judge_proc(mounts).faults
        return tuple(faults)

    def boot_id(self) -> str | CannotKnow:
        """See `Host`."""
        return host.boot_id()

    def boot_started(self) -> StartTime | CannotKnow:
        """See `Host`."""
        return clock.boot_time()

    def process_started(self, start_ticks: int) -> StartTime | CannotKnow:
        """See `Host`."""
        return clock.process_time(start_ticks)

    def clock_state(self) -> ClockState | CannotKnow:
        """See `Host`."""
        return clock.clock_state()

    def born(self, descriptor: int) -> BirthTime | CannotKnow:
        """See `Host`."""
        return clock.birth_time(descriptor)

    def now_ns(self) -> int:
        """See `Host`."""
        return time.time_ns()

    def monotonic(self) -> float:
        """See `Host`."""
        return time.monotonic()

    def pause(self, seconds: float) -> None:
        """See `Host`."""
        time.sleep(seconds)

    def name(self) -> str:
        """See `Host`."""
        return socket.gethostname()
