"""Starts the program with a host that holds still: one process, one boot, and the daemon double as its engine.

A recording and its repetitions must see the same calls, so the scan sees this process alone, and the engine's process
and listener are those of whoever listens, instead of being looked for.
"""

import os
import sys

from symbi_recover.cli import app
from symbi_recover.cli.writing import lease_retire
from symbi_recover.read.daemon.listener import Listener, links_changed_ns
from symbi_recover.read.evidence.clock import BirthTime, ClockState, StartTime
from symbi_recover.read.retirement import engine
from symbi_recover.read.retirement.host import RealHost
from symbi_recover.read.verify import container_processes, lease_check
from symbi_recover.write import fences

BOOT = "5a3d1c7e-9b24-4f60-8e1d-6c0b2a4f7d93"
BORN_NS = 1


class StillHost(RealHost):
    """Nothing but this process."""

    def pids(self) -> tuple[int, ...]:
        return (os.getpid(),)

    def scan_faults(self) -> tuple[str, ...]:
        return ()

    def boot_id(self) -> str:
        return BOOT

    def boot_started(self) -> StartTime:
        return StartTime(1, 2)

    def process_started(self, start_ticks: int) -> StartTime:
        return StartTime(1, 2)

    def clock_state(self) -> ClockState:
        return ClockState(synchronised=True, state=0)

    def born(self, descriptor: int) -> BirthTime:
        return BirthTime(BORN_NS)

    def pause(self, seconds: float) -> None:
        pass


def found(path, owner_pid, *_, **__):
    """The daemon double, wherever it is asked for."""
    return Listener(
        code=None,
        real_path=os.path.realpath(path),
        linked=os.path.islink(path),
        links_changed_ns=links_changed_ns(path),
        socket_inode=1,
        waiting=0,
        owner_pid=owner_pid,
        engine_pid=owner_pid,
        engine_start_ticks=1,
    )


if __name__ == "__main__":
    lease_retire.the_host = StillHost
    engine.find_engine = found
    lease_check.find_engine = found
    lease_check.RealHost = StillHost
    fences.RealHost = StillHost
    container_processes.list_pids = lambda _: (os.getpid(),)
    sys.exit(app.main(sys.argv[1:]))
