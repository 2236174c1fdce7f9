"""With which rights this tool looks at the host, whether it sees all of it, and which boot this is.

Implements the needs that the lease format's section 18.4 names for a client scan, and the boot identity of its
section 15. Each answer is yes, no, or `CannotKnow`; lacking a right is an answer, never an error. Whether the
mounts below /proc can be believed is judged in `mounts.py`.
"""

import os

from msgspec import Struct

from symbi_recover.read.evidence.kernel import (
    MEBIBYTE,
    PROC,
    CannotKnow,
    Why,
    from_error,
    opened_directory,
    read_proc,
    small_number,
)
from symbi_recover.read.evidence.mounts import judge_proc, read_mounts
from symbi_recover.read.evidence.processes import namespace_below, parse_status

INITIAL_PID_NAMESPACE = 4026531836
INITIAL_USER_NAMESPACE = 4026531837
_CAP_SYS_PTRACE = 19
_CAP_SYS_ADMIN = 21
_MOST_STAT = 16 * MEBIBYTE


class OwnView(Struct, frozen=True):
    """With which rights, and from where, this tool looks."""

    uid: int
    """The effective one."""
    initial_pid_namespace: bool | CannotKnow
    initial_user_namespace: bool | CannotKnow
    own_proc: bool | CannotKnow
    """The mounted /proc is that of the tool's own PID namespace."""
    sys_ptrace: bool | CannotKnow
    """Needed to read links of other processes, and to duplicate descriptors."""
    sys_admin: bool | CannotKnow
    """Needed to enter another network namespace."""


def own_view(proc: str = PROC) -> OwnView:
    """Say with which rights, and from where, this tool looks."""
    data = read_proc("self/status", proc=proc)
    status = data if isinstance(data, CannotKnow) else parse_status(data)
    own: bool | CannotKnow
    ptrace: bool | CannotKnow
    admin: bool | CannotKnow
    if isinstance(status, CannotKnow):
        own, ptrace, admin = status, status, status
    else:
        own = status.thread_group == os.getpid() and len(status.namespace_pids) == 1
        ptrace = bool(status.capabilities >> _CAP_SYS_PTRACE & 1)
        admin = bool(status.capabilities >> _CAP_SYS_ADMIN & 1)
    return OwnView(
        os.geteuid(),
        _is_namespace("pid", INITIAL_PID_NAMESPACE, proc),
        _is_namespace("user", INITIAL_USER_NAMESPACE, proc),
        own,
        ptrace,
        admin,
    )


def own_namespace(kind: str, proc: str = PROC) -> int | CannotKnow:
    """Return the number of the tool's own namespace.

    Args:
        kind: `pid`, `user`, `net` or `mnt`.
        proc: where proc is mounted.
    """
    try:
        # The final dot follows the link, which the flags would otherwise refuse.
        with opened_directory(f"{proc}/self/.") as directory:
            return namespace_below(directory, kind)
    except OSError as error:
        return from_error(error, "the tool's own namespaces cannot be read")


def _is_namespace(kind: str, number: int, proc: str) -> bool | CannotKnow:
    found = own_namespace(kind, proc)
    return found if isinstance(found, CannotKnow) else found == number


def sees_whole_host(proc: str = PROC) -> bool | CannotKnow:
    """Say whether the mounted /proc is that of the initial PID namespace, the tool's own, and hides no process from it."""
    view = own_view(proc)
    for answer in (view.initial_pid_namespace, view.own_proc):
        if answer is not True:
            return answer
    if view.sys_ptrace is True and view.initial_user_namespace is True:
        return True  # nothing is hidden from this right
    mounts = read_mounts(proc)
    if isinstance(mounts, CannotKnow):
        return mounts
    faults = judge_proc(mounts, os.fsencode(os.path.realpath(proc))).faults
    return CannotKnow(Why.DENIED, faults[0]) if faults else True


def boot_id(proc: str = PROC) -> str | CannotKnow:
    """Return the boot's UUID as the kernel spells it."""
    data = read_proc("sys/kernel/random/boot_id", proc=proc)
    if isinstance(data, CannotKnow):
        return data
    text = data.removesuffix(b"\n")
    if len(text) != 36 or text.strip(b"0123456789abcdef-"):
        return CannotKnow(Why.MALFORMED, "boot_id is not a UUID")
    return text.decode("ascii")


def boot_seconds(proc: str = PROC) -> int | CannotKnow:
    """Return `btime`: the boot in whole Unix seconds, by the wall clock as it is set now."""
    data = read_proc("stat", limit=_MOST_STAT, proc=proc)
    if isinstance(data, CannotKnow):
        return data
    for line in data.split(b"\n"):
        name, _, value = line.partition(b" ")
        if name == b"btime":
            seconds = small_number(value, 1 << 40)
            return CannotKnow(Why.MALFORMED, "btime is not a number") if seconds is None else seconds
    return CannotKnow(Why.MISSING, "stat holds no btime line")
