"""How the kernel is asked through /proc: bounded reads, and the typed answer "cannot know, because ...".

Implements what the lease format's sections 13, 15 and 18.4 share. The steps of a read:

1. open the proc root, then the name below it, read-only and without following a final link;
2. compare devices: a file of another file system has been mounted over the kernel's own;
3. read to the end, or to the limit.

A name that is not there is `Why.MISSING`; whether that means "no" is for the caller to say, since a /proc may
hide processes. Nothing here raises for what the system answers. A read of another process's memory (its command
line or environment) waits while that memory waits, for instance on a dead FUSE server; no time limit covers that.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from msgspec import Struct

PROC = "/proc"
MEBIBYTE = 1 << 20
READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_CHUNK = 1 << 16


class Why(StrEnum):
    """Why a question to the kernel has no answer."""

    MISSING = "missing"
    """The file is not there, and that alone settles nothing."""
    DENIED = "denied"
    """Rights or a capability are lacking."""
    COVERED = "covered"
    """Something is mounted over the kernel's own file."""
    TOO_LARGE = "too_large"
    """More than the bound of this tool."""
    MALFORMED = "malformed"
    """The bytes are not what a kernel writes."""
    UNSTABLE = "unstable"
    """It changed while it was read."""
    UNSUPPORTED = "unsupported"
    """This kernel or C library does not have it."""
    AMBIGUOUS = "ambiguous"
    """More than one answer fits."""
    OTHER_PID_NAMESPACE = "other_pid_namespace"
    """Only a part of the host's processes is visible from here."""
    FILE_SYSTEM = "file_system"
    """The file system may keep this elsewhere than in this kernel."""
    PROCESS_CHANGED = "process_changed"
    """The process is not, or no longer, the one that was meant."""
    FAILED = "failed"
    """Any other error of the system."""


class CannotKnow(Struct, frozen=True):
    """The answer that is neither yes nor no.

    `detail` is one sentence without final stop; it may hold names from the system, so renderers escape it.
    """

    why: Why
    detail: str


class Gone(Struct, frozen=True):
    """The definite answer that there is no such process."""

    pid: int


_BY_ERRNO = {
    errno.ENOENT: Why.MISSING,
    errno.ESRCH: Why.MISSING,
    errno.ENOTDIR: Why.MISSING,
    errno.EACCES: Why.DENIED,
    errno.EPERM: Why.DENIED,
    errno.ENOSYS: Why.UNSUPPORTED,
    errno.EPROTONOSUPPORT: Why.UNSUPPORTED,
    errno.EAFNOSUPPORT: Why.UNSUPPORTED,
}


def from_error(error: OSError, what: str) -> CannotKnow:
    """Turn an error of the system into an answer.

    Args:
        error: as raised by the call.
        what: what was asked, as the start of a sentence.
    """
    number = error.errno or 0
    reason = os.strerror(number) if number else str(error)
    return CannotKnow(_BY_ERRNO.get(number, Why.FAILED), f"{what}: {reason}")


def read_all(descriptor: int, limit: int, what: str) -> bytes | CannotKnow:
    """Read an open descriptor to its end.

    Args:
        descriptor: stays open.
        limit: most bytes to accept; more is `Why.TOO_LARGE`.
        what: named in the answer when it fails.
    """
    chunks: list[bytes] = []
    size = 0
    try:
        while chunk := os.read(descriptor, _CHUNK):
            chunks.append(chunk)
            size += len(chunk)
            if size > limit:
                return CannotKnow(Why.TOO_LARGE, f"{what} holds more than {limit} bytes")
    except OSError as error:
        return from_error(error, f"{what} cannot be read")
    return b"".join(chunks)


@contextmanager
def opened(path: str, flags: int = READ_FLAGS, *, within: int | None = None) -> Iterator[int]:
    """Hold a descriptor for the length of a block.

    Args:
        path: relative to `within`, if given.
        flags: read-only ones.
        within: an open directory.

    Raises:
        OSError: from the open alone.
    """
    descriptor = os.open(path, flags, dir_fd=within)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def opened_directory(path: str, *, within: int | None = None) -> Iterator[int]:
    """As `opened`, for a directory."""
    with opened(path, READ_FLAGS | os.O_DIRECTORY, within=within) as descriptor:
        yield descriptor


def read_below(directory: int, name: str, limit: int) -> bytes | CannotKnow:
    """Read one file below an open directory of /proc.

    Args:
        directory: descriptor of the proc root or of one process in it.
        name: relative path; its last component is not followed if it is a link.
        limit: most bytes to accept.
    """
    try:
        with opened(name, within=directory) as descriptor:
            if os.fstat(descriptor).st_dev != os.fstat(directory).st_dev:
                return CannotKnow(Why.COVERED, f"{name} is covered by another file system")
            return read_all(descriptor, limit, name)
    except OSError as error:
        return from_error(error, f"{name} cannot be opened")


def read_proc(name: str, *, limit: int = MEBIBYTE, proc: str = PROC) -> bytes | CannotKnow:
    """Read one file below the proc root.

    Args:
        name: relative path, for instance `locks`.
        limit: most bytes to accept.
        proc: where proc is mounted.
    """
    try:
        with opened_directory(proc) as root:
            return read_below(root, name, limit)
    except OSError as error:
        return from_error(error, f"{proc} cannot be opened")


def small_number(text: bytes, most: int = (1 << 64) - 1, *, base: int = 10) -> int | None:
    """Return a non-negative number of at most 20 digits, or None; `int` alone takes signs and underscores."""
    digits = b"0123456789abcdefABCDEF" if base == 16 else b"0123456789"
    if not 0 < len(text) <= 20 or text.strip(digits):
        return None
    value = int(text, base)
    return value if value <= most else None
