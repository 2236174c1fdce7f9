"""What /proc says about one process, and about all of them.

Implements the lease format's section 15 (process identity) and the reads of section 18.4 (client scan).

1. `parse_stat`, `parse_status` and `split_arguments` are pure.
2. `read_identity` tells which process a number names; `observe` reads more of it between two such looks, through
   one held directory, so that all of it is of one process.
3. `list_pids`, `thread_states`, `read_descriptors` and `namespace_of` answer the questions around it.

A process is `Gone` only when the kernel says so itself; a /proc that hides processes gives `CannotKnow`. Nothing
is signalled. Environments are read only when asked for, and kept nowhere.
"""

import os
from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from symbi_recover.read.evidence.kernel import (
    MEBIBYTE,
    PROC,
    CannotKnow,
    Gone,
    Why,
    from_error,
    opened_directory,
    read_below,
    small_number,
)

KERNEL_THREAD = 0x200000
ENDED_STATES = frozenset("ZXx")
_MOST_PID = 1 << 22
_MOST_ARGUMENTS = 8 * MEBIBYTE
_MOST_DESCRIPTORS = 1 << 17
_MOST_THREADS = 1 << 17
_PASSES = 3

Read = TypeVar("Read")


class ProcessStat(Struct, frozen=True):
    """What `stat` says that the lease format uses."""

    pid: int
    command: bytes
    """At most 15 bytes, chosen by the process."""
    state: str
    """One letter."""
    parent: int
    flags: int
    threads: int
    start_ticks: int
    """Start in clock ticks since boot."""

    @property
    def ended(self) -> bool:
        """The first thread has ended; others may still run, see `thread_states`."""
        return self.state in ENDED_STATES

    @property
    def kernel_thread(self) -> bool:
        """It runs no program and has no command line."""
        return bool(self.flags & KERNEL_THREAD)


class ProcessStatus(Struct, frozen=True):
    """What `status` says that the lease format uses."""

    thread_group: int
    """Differs from the number asked for when that is a thread's."""
    uids: tuple[int, ...]
    """Real, effective, saved, file system."""
    namespace_pids: tuple[int, ...]
    """From the namespace of the mounted /proc inwards; empty on old kernels."""
    capabilities: int
    """The effective set."""


class Descriptor(Struct, frozen=True):
    """One open descriptor of a process."""

    number: int
    target: bytes | CannotKnow
    """A path, or for instance `socket:[123]`."""


class Executable(Struct, frozen=True):
    """What `exe` names."""

    path: bytes
    """Without the final ` (deleted)`."""
    deleted: bool
    """The kernel says so, or the name ends that way."""
    device: int | None
    """Of the running file, None when it cannot be examined."""
    inode: int | None


class Observation(Struct, frozen=True):
    """One process, all parts read between two equal looks at its identity."""

    stat: ProcessStat
    status: ProcessStatus | CannotKnow
    arguments: bytes | CannotKnow
    """The raw command line; empty for kernel threads, ended processes and for an instant during exec."""
    executable: Executable | CannotKnow
    directory: bytes | CannotKnow
    """Working directory."""
    cgroup: bytes | CannotKnow
    environment: bytes | CannotKnow | None = None
    """None when it was not asked for."""
    descriptors: tuple[Descriptor, ...] | CannotKnow | None = None
    """None when they were not asked for."""


def parse_stat(data: bytes) -> ProcessStat | CannotKnow:
    """Parse `stat`, split after the last `") "` because a command name may hold anything. Never raises."""
    head, bracket, tail = data.rpartition(b") ")
    number, opening, command = head.partition(b" (")
    items = tail.split()
    if bracket and opening and len(items) > 19 and len(items[0]) == 1 and items[0].isalpha():
        pid = small_number(number, _MOST_PID)
        values = [small_number(items[index]) for index in (1, 6, 17, 19)]
        parent, flags, threads, start = values
        if None not in (pid, parent, flags, threads, start):
            return ProcessStat(
                pid or 0, command, items[0].decode(), parent or 0, flags or 0, threads or 0, start or 0
            )
    return CannotKnow(Why.MALFORMED, "stat is not what a kernel writes")


def parse_status(data: bytes) -> ProcessStatus | CannotKnow:
    """Parse `status`; the first line of a name counts. Never raises."""
    fields: dict[bytes, bytes] = {}
    for line in data.split(b"\n"):
        name, colon, value = line.partition(b":")
        if colon:
            fields.setdefault(name, value.strip())
    group = small_number(fields.get(b"Tgid", b""), _MOST_PID)
    uids = [small_number(text, 0xFFFFFFFF) for text in fields.get(b"Uid", b"").split()]
    inner = [small_number(text, _MOST_PID) for text in fields.get(b"NSpid", b"").split()]
    capabilities = small_number(fields.get(b"CapEff", b""), base=16)
    if group is None or capabilities is None or len(uids) != 4 or None in uids or None in inner:
        return CannotKnow(Why.MALFORMED, "status is not what a kernel writes")
    present = tuple(uid for uid in uids if uid is not None)
    return ProcessStatus(group, present, tuple(pid for pid in inner if pid is not None), capabilities)


def split_arguments(data: bytes) -> tuple[bytes, ...]:
    """Split a command line or an environment; a missing final NUL is tolerated."""
    return tuple(data.removesuffix(b"\0").split(b"\0")) if data else ()


def list_pids(proc: str = PROC) -> tuple[int, ...] | CannotKnow:
    """Return the numbers of all visible processes, ascending."""
    try:
        names = os.listdir(proc)
    except OSError as error:
        return from_error(error, "the processes cannot be listed")
    numbers = (small_number(name.encode("ascii", "replace"), _MOST_PID) for name in names)
    return tuple(sorted(number for number in numbers if number))


def read_identity(pid: int, proc: str = PROC) -> ProcessStat | Gone | CannotKnow:
    """Read `stat` once.

    Args:
        pid: as /proc counts; a thread's number is answered too, compare `ProcessStatus.thread_group`.
        proc: where proc is mounted.
    """
    return _within(pid, proc, _identity)


def _identity(directory: int) -> ProcessStat | CannotKnow:
    data = read_below(directory, "stat", MEBIBYTE)
    return data if isinstance(data, CannotKnow) else parse_stat(data)


def _within(pid: int, proc: str, read: Callable[[int], Read | CannotKnow]) -> Read | Gone | CannotKnow:
    """Call a reader with the process's directory held open, so that a number used again cannot mix two."""
    if not 0 < pid <= _MOST_PID:
        return Gone(pid)
    shown = False
    try:
        with opened_directory(proc) as root, opened_directory(str(pid), within=root) as directory:
            shown = True
            if os.fstat(directory).st_dev != os.fstat(root).st_dev:
                return CannotKnow(Why.COVERED, f"process {pid} is covered by a mount")
            answer = read(directory)
    except OSError as error:
        answer = from_error(error, f"process {pid} cannot be examined")
    if not isinstance(answer, CannotKnow) or answer.why is not Why.MISSING:
        return answer
    exists = _exists(pid)
    if exists is False:
        return Gone(pid)
    if shown or exists is None:
        return answer
    return CannotKnow(Why.DENIED, f"process {pid} exists, but proc does not show it")


def _exists(pid: int) -> bool | None:
    """Ask the kernel past /proc whether the number is in use; None when it does not tell."""
    try:
        os.close(os.pidfd_open(pid))
    except ProcessLookupError:
        return False
    except OSError:
        return None
    return True


def observe(
    pid: int, *, environment: bool = False, descriptors: bool = False, proc: str = PROC
) -> Observation | Gone | CannotKnow:
    """Read a process between two equal looks at its identity.

    Equal means: start, kernel-thread flag and whether it has ended. The letters of a living process change all
    the time and say nothing about who it is.

    Args:
        pid: as /proc counts.
        environment: read it as well; the caller keeps nothing of it.
        descriptors: list them as well.
        proc: where proc is mounted.
    """

    def read(directory: int) -> Observation | CannotKnow:
        for _ in range(_PASSES):
            before = _identity(directory)
            if isinstance(before, CannotKnow):
                return before
            seen = _observe_once(before, directory, environment=environment, descriptors=descriptors)
            after = _identity(directory)
            if isinstance(after, CannotKnow):
                return after
            if _essence(before) == _essence(after):
                return seen
        return CannotKnow(Why.UNSTABLE, f"process {pid} changed while it was read")

    return _within(pid, proc, read)


def _essence(stat: ProcessStat) -> tuple[int, bool, bool]:
    return stat.start_ticks, stat.ended, stat.kernel_thread


def _observe_once(stat: ProcessStat, directory: int, *, environment: bool, descriptors: bool) -> Observation:
    status = read_below(directory, "status", MEBIBYTE)
    return Observation(
        stat=stat,
        status=status if isinstance(status, CannotKnow) else parse_status(status),
        arguments=read_below(directory, "cmdline", _MOST_ARGUMENTS),
        executable=_executable(directory),
        directory=_link(directory, "cwd"),
        cgroup=read_below(directory, "cgroup", MEBIBYTE),
        environment=read_below(directory, "environ", _MOST_ARGUMENTS) if environment else None,
        descriptors=_descriptors(directory) if descriptors else None,
    )


def _link(directory: int, name: str) -> bytes | CannotKnow:
    try:
        return os.readlink(name.encode(), dir_fd=directory)
    except OSError as error:
        return from_error(error, f"{name} cannot be read")


def _executable(directory: int) -> Executable | CannotKnow:
    path = _link(directory, "exe")
    if isinstance(path, CannotKnow):
        return path
    try:
        status = os.stat("exe", dir_fd=directory)
    except OSError:
        status = None
    return Executable(
        path.removesuffix(b" (deleted)"),
        path.endswith(b" (deleted)"),
        status.st_dev if status else None,
        status.st_ino if status else None,
    )


def _descriptors(directory: int) -> tuple[Descriptor, ...] | CannotKnow:
    """List descriptors; one that closes meanwhile is left out, one that cannot be read is kept as such."""
    found: list[Descriptor] = []
    try:
        with opened_directory("fd", within=directory) as listing:
            names = os.listdir(listing)
            if len(names) > _MOST_DESCRIPTORS:
                return CannotKnow(Why.TOO_LARGE, f"more than {_MOST_DESCRIPTORS} open descriptors")
            for name in names:
                number = small_number(name.encode("ascii", "replace"), 0x7FFFFFFF)
                target = _link(listing, name)
                if number is None or (isinstance(target, CannotKnow) and target.why is Why.MISSING):
                    continue
                found.append(Descriptor(number, target))
    except OSError as error:
        return from_error(error, "the open descriptors cannot be listed")
    return tuple(sorted(found, key=lambda descriptor: descriptor.number))


def read_descriptors(pid: int, proc: str = PROC) -> tuple[Descriptor, ...] | Gone | CannotKnow:
    """List the open descriptors of a process, ascending."""
    return _within(pid, proc, _descriptors)


def thread_states(pid: int, proc: str = PROC) -> tuple[str, ...] | Gone | CannotKnow:
    """Return the state letter of every thread; a process has ended when all are in `ENDED_STATES`."""

    def read(directory: int) -> tuple[str, ...] | CannotKnow:
        states: list[str] = []
        with opened_directory("task", within=directory) as listing:
            names = os.listdir(listing)
            if len(names) > _MOST_THREADS:
                return CannotKnow(Why.TOO_LARGE, f"more than {_MOST_THREADS} threads")
            for name in names:
                data = read_below(listing, f"{name}/stat", MEBIBYTE)
                stat = data if isinstance(data, CannotKnow) else parse_stat(data)
                if isinstance(stat, ProcessStat):
                    states.append(stat.state)
                elif stat.why is not Why.MISSING:
                    return stat
        return tuple(states)

    return _within(pid, proc, read)


def namespace_of(pid: int, kind: str, proc: str = PROC) -> int | Gone | CannotKnow:
    """Return the number of a process's namespace.

    Args:
        pid: as /proc counts.
        kind: `pid`, `user`, `net` or `mnt`.
        proc: where proc is mounted.
    """
    return _within(pid, proc, lambda directory: namespace_below(directory, kind))


def namespace_below(directory: int, kind: str) -> int | CannotKnow:
    """As `namespace_of`, for the open directory of a process."""
    target = _link(directory, f"ns/{kind}")
    if isinstance(target, CannotKnow):
        return target
    number = small_number(target.removeprefix(f"{kind}:[".encode()).removesuffix(b"]"), 0xFFFFFFFF)
    return CannotKnow(Why.MALFORMED, f"ns/{kind} names no namespace") if number is None else number
