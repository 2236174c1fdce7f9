"""Times that the host can vouch for: births of files, starts of boot and processes, and whether the clock is set.

Implements the "clock comparison" of the lease format's section 18.4 and the birth time of its section 18.5.

`statx` and `adjtimex` have no binding in the standard library, so they are called through ctypes, loaded late.
`adjtimex` is called with no mode set, which only reads. Every start time is an interval, because the kernel
rounds it: `earliest_ns <= true start < latest_ns`, provided that nobody stepped the clock since.
"""

import errno
import os
import sys
from typing import Any

from msgspec import Struct

from symbi_recover.read.evidence.host import boot_seconds
from symbi_recover.read.evidence.kernel import PROC, CannotKnow, Why, from_error

SECOND = 1_000_000_000
_STATX_SIZE = 256
_STATX_BTIME = 0x800
_STATX_BTIME_OFFSET = 80
_AT_EMPTY_PATH = 0x1000
_TIMEX_SIZE = 512
_TIME_ERROR = 5


class BirthTime(Struct, frozen=True):
    """When a file came into being on its file system."""

    unix_ns: int


class StartTime(Struct, frozen=True):
    """An interval of Unix nanoseconds that holds a start."""

    earliest_ns: int
    latest_ns: int


class ClockState(Struct, frozen=True):
    """What the kernel says about its clock."""

    synchronised: bool
    state: int
    """The value that `adjtimex` returned; 5 means not synchronised."""


def _libc() -> tuple[Any, Any]:
    import ctypes  # noqa: PLC0415  # late: few commands ask the C library

    return ctypes, ctypes.CDLL(None, use_errno=True)


def parse_birth(data: bytes) -> BirthTime | CannotKnow:
    """Find the birth time in the bytes of a `struct statx`. Never raises.

    Args:
        data: in this machine's byte order.
    """
    if len(data) < _STATX_BTIME_OFFSET + 12:
        return CannotKnow(Why.MALFORMED, "statx gave too few bytes")
    order = sys.byteorder
    mask = int.from_bytes(data[:4], order)
    seconds = int.from_bytes(data[_STATX_BTIME_OFFSET : _STATX_BTIME_OFFSET + 8], order, signed=True)
    nanoseconds = int.from_bytes(data[_STATX_BTIME_OFFSET + 8 : _STATX_BTIME_OFFSET + 12], order)
    if not mask & _STATX_BTIME or seconds <= 0 or nanoseconds >= SECOND:
        return CannotKnow(Why.FILE_SYSTEM, "the file system keeps no birth time")
    return BirthTime(seconds * SECOND + nanoseconds)


def birth_time(descriptor: int) -> BirthTime | CannotKnow:
    """Return when an open file was born.

    Args:
        descriptor: open in this process; one opened with `O_PATH` will do.
    """
    ctypes, libc = _libc()
    if not hasattr(libc, "statx"):
        return CannotKnow(Why.UNSUPPORTED, "this C library has no statx")
    buffer = ctypes.create_string_buffer(_STATX_SIZE)
    if libc.statx(descriptor, b"", _AT_EMPTY_PATH, _STATX_BTIME, buffer) != 0:
        number = ctypes.get_errno()
        return from_error(OSError(number, os.strerror(number)), "the birth time cannot be read")
    return parse_birth(buffer.raw)


def clock_state() -> ClockState | CannotKnow:
    """Say whether the kernel holds its clock for synchronised; its word depends on a time service's."""
    ctypes, libc = _libc()
    if not hasattr(libc, "adjtimex"):
        return CannotKnow(Why.UNSUPPORTED, "this C library has no adjtimex")
    state = libc.adjtimex(ctypes.create_string_buffer(_TIMEX_SIZE))
    if state < 0:
        number = ctypes.get_errno() or errno.EIO
        return from_error(OSError(number, os.strerror(number)), "the clock's state cannot be read")
    return ClockState(state != _TIME_ERROR, state)


def ticks_per_second() -> int | CannotKnow:
    """Return `CLK_TCK`, the unit of start times in /proc."""
    try:
        value = os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        value = -1
    return value if value > 0 else CannotKnow(Why.UNSUPPORTED, "the system names no clock tick")


def started_at(boot: int, start_ticks: int, per_second: int) -> StartTime:
    """Turn a start in ticks into Unix time. Pure.

    Args:
        boot: `btime`, whole Unix seconds, rounded down by the kernel.
        start_ticks: from `ProcessStat`, rounded down as well; 0 for the boot itself.
        per_second: positive.
    """
    earliest = boot * SECOND + start_ticks * SECOND // per_second
    # Up to one second was cut off the boot, and up to one tick off the start.
    return StartTime(earliest, earliest + SECOND + -(-SECOND // per_second) + 1)


def boot_time(proc: str = PROC) -> StartTime | CannotKnow:
    """Return when the host booted, by the wall clock as it is set now."""
    return process_time(0, proc)


def process_time(start_ticks: int, proc: str = PROC) -> StartTime | CannotKnow:
    """Return when a process started, by the wall clock as it is set now.

    Args:
        start_ticks: from `ProcessStat`.
        proc: where proc is mounted.
    """
    boot = boot_seconds(proc)
    if isinstance(boot, CannotKnow):
        return boot
    per_second = ticks_per_second()
    return per_second if isinstance(per_second, CannotKnow) else started_at(boot, start_ticks, per_second)
