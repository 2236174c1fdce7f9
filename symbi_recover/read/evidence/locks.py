"""Who holds a lock on a file, as the kernel's own list tells: no lock is ever taken to find out.

Implements the lease format's section 13. The runtime's locks are BSD ones (`FLOCK`); record locks (`POSIX`,
`OFDLCK`) on the same file exclude nobody and are only counted.

1. `parse_locks` turns the bytes of /proc/locks into rows.
2. `judge_locks` compares them with a file's identities: `held` when device and inode are those of `stat`,
   `probable` when only the inode and the super block's device fit, or the device cannot be compared.
3. `ask_lock` reads twice (the kernel hands out a long list in pieces) and says `free` only where the list is
   known to be whole: initial PID namespace, own /proc, local file system, every row understood.

A holder's number is that of the process that took the lock; a child that inherited the descriptor holds on when
that process is dead. An answer describes the moment of the question.
"""

import os
from enum import StrEnum

from msgspec import Struct

from symbi_recover.core.words import counted
from symbi_recover.read.evidence.host import sees_whole_host
from symbi_recover.read.evidence.kernel import (
    MEBIBYTE,
    PROC,
    CannotKnow,
    Why,
    read_proc,
    small_number,
)
from symbi_recover.read.evidence.mounts import FileKey, Locality, file_key

_MOST_LOCKS = 16 * MEBIBYTE
_PASSES = 2
_EXCLUDING = "FLOCK"


class LockState(StrEnum):
    """Whether anybody holds the lock."""

    HELD = "held"
    PROBABLE = "probable"
    """A row with this inode number, but the device cannot be shown to be the same."""
    FREE = "free"
    UNKNOWN = "unknown"


class LockMode(StrEnum):
    """What a holder excludes."""

    WRITE = "WRITE"
    """Everybody."""
    READ = "READ"
    """Those who want it exclusively."""


class LockRow(Struct, frozen=True):
    """One line of /proc/locks."""

    kind: str
    """`FLOCK`, `POSIX`, `OFDLCK`, `LEASE`, `DELEG` or what the kernel says."""
    mode: str
    """`READ` or `WRITE`, rarely another word."""
    pid: int
    """0 or below when the kernel cannot name it here."""
    device: int | None
    """Of the super block, in `os.makedev` form; None for a lock without a file."""
    inode: int
    waiting: bool
    """It waits behind another row and holds nothing."""


class LockTable(Struct, frozen=True):
    """All rows, and the number of lines that could not be read."""

    rows: tuple[LockRow, ...]
    malformed: int


class LockHolder(Struct, frozen=True):
    """One process that holds the lock."""

    pid: int | None
    """None when it cannot be named from here."""
    mode: LockMode
    exact: bool
    """Device and inode are those of `stat`."""


class LockAnswer(Struct, frozen=True):
    """The state of one file's lock."""

    state: LockState
    holders: tuple[LockHolder, ...] = ()
    waiting: int = 0
    """Requests that wait behind the holders."""
    record_locks: int = 0
    """Locks of other kinds on the same file, which exclude nobody here."""
    because: CannotKnow | None = None
    """Set exactly when the state is `unknown`."""

    @property
    def exclusive(self) -> bool:
        """A holder excludes everybody else."""
        return any(holder.mode is LockMode.WRITE for holder in self.holders)


def parse_locks(data: bytes) -> LockTable:
    """Parse /proc/locks. Never raises; lines that do not fit are counted."""
    rows: list[LockRow] = []
    malformed = 0
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        row = _parse_line(line)
        if row is None:
            malformed += 1
        else:
            rows.append(row)
    return LockTable(tuple(rows), malformed)


def _parse_line(line: bytes) -> LockRow | None:
    words = line.split()
    waiting = len(words) > 1 and words[1] == b"->"
    words = words[2:] if waiting else words[1:]
    if len(words) != 7 or not line.isascii() or small_number(line.split(b":")[0]) is None:
        return None
    kind, _, mode, pid, place = (word.decode("ascii") for word in words[:5])
    number = small_number(words[3].removeprefix(b"-"), 0x7FFFFFFF)
    if number is None:
        return None
    number = -number if pid.startswith("-") else number
    if place == "<none>:0":
        return LockRow(kind, mode, number, None, 0, waiting)
    high, first, rest = words[4].partition(b":")
    low, second, tail = rest.partition(b":")
    major, minor = small_number(high, 0xFFF, base=16), small_number(low, 0xFFFFF, base=16)
    inode = small_number(tail)
    if major is None or minor is None or inode is None or not first or not second:
        return None
    return LockRow(kind, mode, number, os.makedev(major, minor), inode, waiting)


def judge_locks(table: LockTable, key: FileKey) -> LockAnswer:
    """Say who holds the lock of one file, taking the table as whole. Pure.

    Args:
        table: from `parse_locks`.
        key: from `file_key`, or made from `stat` alone with the rest None.
    """
    holders: list[LockHolder] = []
    waiting = records = 0
    for row in table.rows:
        exact = (row.device, row.inode) == (key.device, key.inode)
        if not exact and not _may_be(row, key):
            continue
        if row.kind != _EXCLUDING:
            records += not row.waiting
        elif row.waiting:
            waiting += 1
        elif row.mode != "UNLCK":
            mode = LockMode.READ if row.mode == "READ" else LockMode.WRITE
            holders.append(LockHolder(row.pid if row.pid > 0 else None, mode, exact))
    if not holders:
        return LockAnswer(LockState.FREE, (), waiting, records)
    state = LockState.HELD if any(holder.exact for holder in holders) else LockState.PROBABLE
    return LockAnswer(state, tuple(holders), waiting, records)


def _may_be(row: LockRow, key: FileKey) -> bool:
    """Compare with what the kernel prints; without its device, the inode alone has to do."""
    inodes = {key.inode} if key.kernel_inode is None else {key.inode, key.kernel_inode}
    return row.inode in inodes and key.kernel_device in (None, row.device) and row.device is not None


def ask_lock(descriptor: int, proc: str = PROC) -> LockAnswer:
    """Say who holds the `flock` of an open file, without touching the lock.

    Args:
        descriptor: open in this process, read-only or with `O_PATH`.
        proc: where proc is mounted.
    """
    key = file_key(descriptor, proc)
    if isinstance(key, CannotKnow):
        return LockAnswer(LockState.UNKNOWN, because=key)
    answer = LockAnswer(LockState.FREE)
    malformed = 0
    for _ in range(_PASSES):
        data = read_proc("locks", limit=_MOST_LOCKS, proc=proc)
        if isinstance(data, CannotKnow):
            return LockAnswer(LockState.UNKNOWN, because=data)
        table = parse_locks(data)
        malformed += table.malformed
        answer = judge_locks(table, key)
        if answer.holders:
            return answer
    because = _doubt(key, malformed, proc)
    if because is None:
        return answer
    return LockAnswer(LockState.UNKNOWN, (), answer.waiting, answer.record_locks, because)


def _doubt(key: FileKey, malformed: int, proc: str) -> CannotKnow | None:
    """Say why the absence of a row does not show that the lock is free."""
    if malformed:
        return CannotKnow(Why.MALFORMED, f"{counted(malformed, 'line')} of the lock list cannot be read")
    if key.locality is not Locality.LOCAL:
        kind = "unknown" if key.kind is None else key.kind.decode("ascii", "backslashreplace")
        return CannotKnow(Why.FILE_SYSTEM, f"locks on a file system of type {kind} may be kept elsewhere")
    whole = sees_whole_host(proc)
    if whole is True:
        return None
    if isinstance(whole, CannotKnow):
        return whole
    return CannotKnow(Why.OTHER_PID_NAMESPACE, "locks of processes outside this PID namespace are not listed")
