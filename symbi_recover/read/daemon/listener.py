"""Which process serves a daemon's socket: the listener, its owner and the engine (leases.md section 18.4).

1. the socket file, links followed as a client does, and the one listening socket that it names in the kernel's dump, in
   our own network namespace or in that of the process that called `listen`;
2. the process that called `listen`, by its number: it must be dockerd itself, or pid 1 (socket activation);
3. the one dockerd on the host, which must hold the listener among its descriptors.

Comparing is done by inode, never by path. Nothing is connected to here; the owner comes from a connection of the
caller's.
"""

import os
import stat
import sys
import time
from collections.abc import Callable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from symbi_recover.read.daemon.peer import holds_socket
from symbi_recover.read.daemon.sockets import NoListener, UnixSocket, ask_listener
from symbi_recover.read.evidence.kernel import PROC, CannotKnow, Gone, Why
from symbi_recover.read.evidence.locate import readable
from symbi_recover.read.evidence.processes import (
    Executable,
    Observation,
    ProcessStat,
    list_pids,
    observe,
    read_identity,
)

INIT = 1
"""The process that owns the listeners of socket activation, on a whole host."""
ENGINE = b"dockerd"
"""The name of an engine's program."""
_MOST_NAMED = 8
_LOOKS, _LOOK_SECONDS = 5, 0.05
_MOST_LINKS = 40
"""As the kernel follows."""
_UNLISTED: dict[Why, Literal["engine_ambiguous", "census_unreadable"]] = {
    Why.AMBIGUOUS: "engine_ambiguous",
    Why.UNSUPPORTED: "census_unreadable",  # a kernel without the dump, which the census needs as well
}
"""Codes for why the one listener could not be told from the kernel's list; any other reason hides the engine."""
Pids = Callable[[str], tuple[int, ...] | CannotKnow]


class Listener(Struct, frozen=True, kw_only=True):
    """Who serves a socket; `code` is None if the engine is known for certain."""

    code: Literal["endpoint_proxied", "engine_ambiguous", "engine_unseen", "census_unreadable"] | None
    reason: str | None = None
    real_path: str | None = None
    linked: bool = False
    """The path's last component is a symbolic link."""
    links_changed_ns: int | None = None
    """The latest change of any symbolic link on the way, folders included; None if there is none."""
    socket_inode: int | None = None
    """Of the listening socket, as `/proc/<pid>/fd` shows it."""
    waiting: int | None = None
    """Connections that wait to be accepted."""
    owner_pid: int | None = None
    owner_program: str | None = None
    activated: bool = False
    """The listener is pid 1's, so it outlives the engine."""
    engine_pid: int | None = None
    engine_start_ticks: int | None = None

    def led_elsewhere(self, since_ns: int) -> bool:
        """Whether some link on the way is no older than a moment, so that the path may have led elsewhere then."""
        return self.links_changed_ns is not None and self.links_changed_ns >= since_ns


def find_engine(
    path: str, owner_pid: int | None, proc: str = PROC, *, pids: Pids = list_pids, init: int = INIT
) -> Listener:
    """Find the engine behind a socket. Nothing here raises for what the host shows.

    Args:
        path: of the socket.
        owner_pid: from `SO_PEERCRED` of a connection to it; None if there was none.
        proc: where proc is mounted.
        pids: lists the processes that count as this host's.
        init: the process that owns the listeners of socket activation.
    """
    real = os.path.realpath(path)
    listening = ask_listener(path, owner_pid, proc)
    socket_inode = listening.inode if isinstance(listening, UnixSocket) else None
    waiting = listening.waiting if isinstance(listening, UnixSocket) else None
    program = _program(owner_pid, proc) if owner_pid is not None else None
    activated = owner_pid == init

    seen = Listener(
        code=None,
        real_path=readable(real),
        linked=os.path.islink(path),
        links_changed_ns=links_changed_ns(path),
        socket_inode=socket_inode,
        waiting=waiting,
        owner_pid=owner_pid,
        owner_program=readable(os.fsdecode(program)) if isinstance(program, bytes) else None,
        activated=activated,
    )
    if owner_pid is None:
        return replace(seen, code="engine_unseen", reason="the kernel does not name the process that listens")
    if isinstance(program, CannotKnow):
        return replace(seen, code="engine_unseen", reason=program.detail)
    if not activated and (program is None or not _is_engine(program)):
        return replace(
            seen, code="endpoint_proxied", reason=f"process {owner_pid} listens, which is {_shown(program)}"
        )
    if isinstance(listening, CannotKnow):
        return replace(seen, code=_UNLISTED.get(listening.why, "engine_unseen"), reason=listening.detail)
    if isinstance(listening, NoListener):
        return replace(
            seen, code="engine_ambiguous", reason="no socket listens there, in our network namespace or its"
        )
    return _engine(seen, listening.inode, proc, pids)


def links_changed_ns(path: str) -> int | None:
    """When any symbolic link on the way to a path last changed; None without links, a huge number for endless ones.

    Args:
        path: absolute.
    """
    latest: int | None = None
    done, rest, left = "/", [part for part in path.split("/") if part], _MOST_LINKS
    while rest:
        part = rest.pop(0)
        if part in (".", ".."):
            done = os.path.dirname(done) if part == ".." else done
            continue
        here = os.path.join(done, part)
        try:
            status = os.lstat(here)
            target = os.readlink(here) if stat.S_ISLNK(status.st_mode) else None
        except (OSError, ValueError):
            return latest
        if target is None:
            done = here
            continue
        left -= 1
        if left < 0:
            return sys.maxsize
        latest = max(latest or 0, status.st_mtime_ns, status.st_ctime_ns)
        done = "/" if target.startswith("/") else done
        rest = [part for part in target.split("/") if part] + rest
    return latest


def _engine(seen: Listener, inode: int, proc: str, pids: Pids) -> Listener:
    engines = _engines(proc, pids)
    for _ in range(_LOOKS):
        if isinstance(engines, CannotKnow) or len(engines) < 2:
            break
        # An engine that unpacks a layer or starts a container runs itself again for a moment.
        time.sleep(_LOOK_SECONDS)
        engines = _engines(proc, pids)
    if isinstance(engines, CannotKnow):
        return replace(seen, code="engine_unseen", reason=engines.detail)
    if len(engines) != 1:
        which = ", ".join(str(one.pid) for one in engines[:_MOST_NAMED])
        said = (
            f"{len(engines)} engines run on this host: processes {which}"
            if engines
            else "no engine runs here"
        )
        return replace(seen, code="engine_ambiguous", reason=said)
    engine = engines[0]
    if not seen.activated and engine.pid != seen.owner_pid:
        return replace(
            seen,
            code="engine_ambiguous",
            reason=f"process {seen.owner_pid} listens, process {engine.pid} is the engine",
        )
    holds = holds_socket(engine.pid, inode, proc)
    if isinstance(holds, CannotKnow):
        return replace(seen, code="engine_unseen", reason=holds.detail)
    if holds is not True:
        return replace(
            seen,
            code="engine_ambiguous",
            reason=f"process {engine.pid} is the engine and does not hold the listener",
        )
    return replace(seen, engine_pid=engine.pid, engine_start_ticks=engine.start_ticks)


def _engines(proc: str, pids: Pids) -> list[ProcessStat] | CannotKnow:
    """Every dockerd that is alive."""
    numbers = pids(proc)
    if isinstance(numbers, CannotKnow):
        return numbers
    found = []
    for pid in numbers:
        program = _program(pid, proc)
        if isinstance(program, CannotKnow):
            return program
        if program is not None and _is_engine(program):
            stat = read_identity(pid, proc)
            if isinstance(stat, ProcessStat) and not stat.ended:
                found.append(stat)
    return found


def _program(pid: int, proc: str) -> bytes | CannotKnow | None:
    """The executable's path, or the command's name where that is hidden; None for a process that is gone."""
    seen = observe(pid, proc=proc)
    if isinstance(seen, Gone):
        return None
    if isinstance(seen, CannotKnow):
        return None if seen.why is Why.MISSING else seen
    return _name(seen)


def _name(seen: Observation) -> bytes:
    return seen.executable.path if isinstance(seen.executable, Executable) else seen.stat.command


def _is_engine(program: bytes) -> bool:
    return program.rpartition(b"/")[2] == ENGINE


def _shown(program: bytes | None) -> str:
    return "gone by now" if program is None else repr(os.fsdecode(program))
