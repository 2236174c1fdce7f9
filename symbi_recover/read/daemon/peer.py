"""Who is at the other end of a Unix socket, and how many connections an engine still holds.

Implements `SO_PEERCRED`, the holder of a listener, and "Census for F3" of the lease format's section 18.4.

The census of one process, in order:

1. open a pidfd, then compare the start ticks, so that the number means the process that was meant;
2. list its descriptors; a link that cannot be read is no answer, never a smaller number;
3. duplicate the listener's own descriptor and take its local name: the text of a path would not do;
4. duplicate every other socket, ask for family, accepting flag and local name only, and close the duplicate;
5. compare the start ticks again.

A duplicate shares its status flags with the process it came from: here no timeout, no blocking mode and no
`shutdown` is ever used. A connection that was there throughout is counted; one that comes or goes meanwhile may
be. Whether the count had to be one or more (a connection of the caller's own) is the caller's control.
"""

import errno
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from symbi_recover.read.evidence.kernel import PROC, CannotKnow, Gone, Why, from_error
from symbi_recover.read.evidence.processes import Descriptor, read_descriptors, read_identity

_PIDFD_GETFD = 438
_CREDENTIALS = struct.Struct("=iII")
_NOBODY = 0xFFFFFFFF


class Peer(Struct, frozen=True):
    """The process that made the other end: for a client, the one that called `listen`; it may be dead by now."""

    pid: int
    uid: int
    gid: int


class Census(Struct, frozen=True):
    """The connections that one process holds from its listener."""

    connections: int
    """Distinct sockets that the listener's queue handed out."""
    name: bytes
    """The listener's local name as it was bound; an abstract one begins with NUL."""
    examined: int
    """Sockets that were looked at, the listener's included."""
    closed_meanwhile: int
    """Descriptors that were gone when their turn came."""


class _SocketFacts(Struct, frozen=True):
    accepts: bool
    name: bytes


def peer_of(connection: socket.socket) -> Peer | CannotKnow:
    """Say who is at the other end of a connected Unix socket."""
    try:
        if connection.family != socket.AF_UNIX:
            return CannotKnow(Why.UNSUPPORTED, "only a Unix socket names its peer")
        data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    except OSError as error:
        return from_error(error, "the peer cannot be asked for")
    return parse_credentials(data)


def parse_credentials(data: bytes) -> Peer | CannotKnow:
    """Parse a `struct ucred`. Never raises."""
    if len(data) != _CREDENTIALS.size:
        return CannotKnow(Why.MALFORMED, "the peer's credentials have another size")
    pid, uid, gid = _CREDENTIALS.unpack(data)
    if uid == _NOBODY:
        return CannotKnow(Why.MISSING, "the socket has no peer")
    if pid <= 0:
        return CannotKnow(Why.OTHER_PID_NAMESPACE, "the peer has no number in this PID namespace")
    return Peer(pid, uid, gid)


@contextmanager
def pidfd_of(pid: int) -> Iterator[int | Gone | CannotKnow]:
    """Hold a pidfd for the length of a block, or the reason why there is none.

    Args:
        pid: of a process; a thread's number gives no pidfd.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        yield Gone(pid)
        return
    except (OSError, OverflowError) as error:
        reason = error if isinstance(error, OSError) else OSError(errno.EINVAL, "")
        yield from_error(reason, f"process {pid} cannot be held")
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def duplicate(pidfd: int, number: int) -> int | CannotKnow:
    """Duplicate a descriptor of another process; the caller closes it and leaves its flags alone.

    Args:
        pidfd: of that process.
        number: the descriptor there. One that is not open is `Why.MISSING`.
    """
    import ctypes  # noqa: PLC0415  # late: only the census needs it

    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(
        ctypes.c_long(_PIDFD_GETFD), ctypes.c_int(pidfd), ctypes.c_int(number), ctypes.c_uint(0)
    )
    if result >= 0:
        return int(result)
    code = ctypes.get_errno()
    what = f"descriptor {number} cannot be duplicated"
    if code == errno.EBADF:
        return CannotKnow(Why.MISSING, f"descriptor {number} is not open")
    if code == errno.ESRCH:
        return CannotKnow(Why.PROCESS_CHANGED, f"{what}: the process is ending")
    return from_error(OSError(code, ""), what)


def holds_socket(pid: int, inode: int, proc: str = PROC) -> bool | Gone | CannotKnow:
    """Say whether a process holds a socket among its descriptors.

    Args:
        pid: as /proc counts.
        inode: of the socket, as `UnixSocket.inode`.
        proc: where proc is mounted.
    """
    listed = read_descriptors(pid, proc)
    if not isinstance(listed, tuple):
        return listed
    if any(descriptor.target == b"socket:[%d]" % inode for descriptor in listed):
        return True
    unread = [d.target for d in listed if isinstance(d.target, CannotKnow)]
    return unread[0] if unread else False


def count_connections(pid: int, start_ticks: int, listener: int, proc: str = PROC) -> Census | CannotKnow:
    """Count the connections that a process holds from a listener.

    Args:
        pid: of the engine.
        start_ticks: its start, from an earlier look.
        listener: inode of the listening socket, as `UnixSocket.inode`.
        proc: where proc is mounted.
    """
    if socket.getdefaulttimeout() is not None:
        # A socket object would then switch the engine's own descriptor to non-blocking.
        return CannotKnow(Why.FAILED, "a default socket timeout is set in this process")
    with pidfd_of(pid) as pidfd:
        if isinstance(pidfd, Gone):
            return CannotKnow(Why.PROCESS_CHANGED, f"process {pid} is gone")
        if isinstance(pidfd, CannotKnow):
            return pidfd
        changed = _change(pid, start_ticks, proc)
        if changed is not None:
            return changed
        listed = read_descriptors(pid, proc)
        if isinstance(listed, CannotKnow):
            return listed
        answer = _count(pidfd, listed if isinstance(listed, tuple) else (), listener)
        return _change(pid, start_ticks, proc) or answer


def _change(pid: int, start_ticks: int, proc: str) -> CannotKnow | None:
    """Say why the number no longer means the living process that started at this tick."""
    now = read_identity(pid, proc)
    if isinstance(now, CannotKnow):
        return now
    if isinstance(now, Gone) or now.start_ticks != start_ticks or now.ended:
        return CannotKnow(Why.PROCESS_CHANGED, f"process {pid} is not the one that was meant, or has ended")
    return None


def _count(pidfd: int, listed: tuple[Descriptor, ...], listener: int) -> Census | CannotKnow:
    sockets: dict[bytes, list[int]] = {}
    for descriptor in listed:
        if isinstance(descriptor.target, CannotKnow):
            return descriptor.target
        if descriptor.target.startswith(b"socket:["):
            sockets.setdefault(descriptor.target, []).append(descriptor.number)
    own = sockets.pop(b"socket:[%d]" % listener, None)
    if own is None:
        return CannotKnow(Why.MISSING, "the process holds no descriptor of the listener")
    listening = _examine(pidfd, own[0])
    if isinstance(listening, CannotKnow):
        return listening
    if listening is None or not listening.accepts or not listening.name:
        return CannotKnow(Why.UNSTABLE, "the listener's descriptor is no named listening Unix socket")
    connections = closed = 0
    for numbers in sockets.values():
        # All numbers of one socket are tried: another may stay open when the first is closed.
        found = [_examine(pidfd, number) for number in numbers]
        failed = [facts for facts in found if isinstance(facts, CannotKnow)]
        closed += len(failed)
        connections += any(
            isinstance(facts, _SocketFacts) and not facts.accepts and facts.name == listening.name
            for facts in found
        )
        serious = [facts for facts in failed if facts.why is not Why.MISSING]
        if serious:
            return serious[0]
    return Census(connections, listening.name, len(sockets) + 1, closed)


def _examine(pidfd: int, number: int) -> _SocketFacts | CannotKnow | None:
    """Ask a duplicate for the three facts; None for what is no Unix socket (any more)."""
    descriptor = duplicate(pidfd, number)
    if isinstance(descriptor, CannotKnow):
        return descriptor
    borrowed: socket.socket | None = None
    try:
        # All three are given, so that the object asks the kernel nothing more than its name.
        borrowed = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=descriptor)
        if borrowed.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN) != socket.AF_UNIX:
            return None
        accepts = bool(borrowed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
        name = borrowed.getsockname()
        return _SocketFacts(accepts, name if isinstance(name, bytes) else os.fsencode(name))
    except OSError as error:
        return (
            None if error.errno == errno.ENOTSOCK else from_error(error, f"descriptor {number} has no answer")
        )
    finally:
        if borrowed is None:
            os.close(descriptor)
        else:
            borrowed.close()
