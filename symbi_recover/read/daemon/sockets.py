"""Which socket listens on a file, by the kernel's socket dump.

Implements "Listener and engine" of the lease format's section 18.4.

1. `dump_request` and `parse_dump` are the two directions of `NETLINK_SOCK_DIAG` for `AF_UNIX`, as pure bytes.
2. `read_unix_sockets` asks this network namespace's kernel; an interrupted dump is asked for again.
3. `find_listener` compares files, not names: an older listener whose file was replaced keeps its name only.
4. `ask_listener` does all of it for a path, following links as a client would.

`/proc/<pid>/net/unix` is not read: a socket's name may hold a line break, and so forge a row of that text. Asking
may make the kernel load its own `unix_diag` module; nothing else changes. A dump shows one network namespace only;
for another process's it is asked for through a socket made there (`network.py`).
"""

import errno
import os
import socket
import stat
import struct
from collections.abc import Iterator

from msgspec import Struct

from symbi_recover.core.words import counted
from symbi_recover.read.daemon.network import inside_network
from symbi_recover.read.evidence.host import own_namespace
from symbi_recover.read.evidence.kernel import (
    MEBIBYTE,
    PROC,
    CannotKnow,
    Gone,
    Why,
    from_error,
    opened,
)
from symbi_recover.read.evidence.mounts import FileKey, file_key
from symbi_recover.read.evidence.processes import namespace_of

LISTENING = 10
_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_SHOW = 0x01 | 0x02 | 0x10  # name, VFS, queue
_NLMSG_ERROR = 2
_NLMSG_DONE = 3
_INTERRUPTED = 0x10
_NAME, _VFS, _QUEUE = 0, 1, 4
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBHIIIII")
_MESSAGE = struct.Struct("=BBBxIII")
_ATTRIBUTE = struct.Struct("=HH")
_PAIR = struct.Struct("=II")
_NUMBER = struct.Struct("=i")
_MOST_BYTES = 64 * MEBIBYTE
_DATAGRAM = 1 << 18
_MOST_DATAGRAMS = 1 << 16
_SECONDS = 5.0
_PASSES = 4
_LOOKS = 2


class UnixSocket(Struct, frozen=True):
    """One socket of the dump."""

    inode: int
    """The number that `/proc/<pid>/fd` shows; not that of the file."""
    type: int
    state: int
    """10 listens."""
    name: bytes | None
    """As it was bound, an abstract one with its first NUL; None for an unnamed socket."""
    file_inode: int | None
    """Low 32 bits of the file's inode."""
    file_device: int | None
    """`major << 20 | minor` of the file's super block."""
    waiting: int | None
    """First word of the queue: on a listener, connections that wait to be accepted, whoever made them."""


class Dump(Struct, frozen=True):
    """A part or the whole of a dump."""

    sockets: tuple[UnixSocket, ...]
    done: bool
    """The kernel said that this is the end."""
    interrupted: bool
    """The kernel said that its list changed meanwhile."""
    error: int
    """Error number that the kernel answered with, or 0."""
    malformed: int


class NoListener(Struct, frozen=True):
    """The definite answer that no socket of this network namespace listens on the file."""


def dump_request(states: int = 0xFFFFFFFF) -> bytes:
    """Build the request for a dump of Unix sockets.

    Args:
        states: a bit for each state wanted, `1 << LISTENING` for listeners.
    """
    body = _REQUEST.pack(socket.AF_UNIX, 0, 0, states, 0, _SHOW, 0xFFFFFFFF, 0xFFFFFFFF)
    return _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _DUMP, 1, 0) + body


def parse_dump(data: bytes) -> Dump:
    """Parse one datagram of a dump. Never raises; messages that do not fit are counted."""
    sockets: list[UnixSocket] = []
    done = interrupted = False
    error = malformed = offset = 0
    while offset + _HEADER.size <= len(data):
        length, kind, flags, _, _ = _HEADER.unpack_from(data, offset)
        if length < _HEADER.size or offset + length > len(data):
            return Dump(tuple(sockets), done, interrupted, error, malformed + 1)
        body = data[offset + _HEADER.size : offset + length]
        interrupted = interrupted or bool(flags & _INTERRUPTED)
        if kind in (_NLMSG_DONE, _NLMSG_ERROR):
            done = done or kind == _NLMSG_DONE
            error = error or _error_number(body)
        elif kind == _SOCK_DIAG_BY_FAMILY:
            found = _parse_socket(body)
            if found is None:
                malformed += 1
            else:
                sockets.append(found)
        offset += (length + 3) & ~3
    malformed += offset < len(data)
    return Dump(tuple(sockets), done, interrupted, error, malformed)


def _error_number(body: bytes) -> int:
    return max(0, -_NUMBER.unpack_from(body)[0]) if len(body) >= _NUMBER.size else 0


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while offset + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, offset)
        if length < _ATTRIBUTE.size or offset + length > len(data):
            return
        yield kind, data[offset + _ATTRIBUTE.size : offset + length]
        offset += (length + 3) & ~3


def _parse_socket(body: bytes) -> UnixSocket | None:
    if len(body) < _MESSAGE.size:
        return None
    family, kind, state, inode, _, _ = _MESSAGE.unpack_from(body)
    if family != socket.AF_UNIX:
        return None
    parts = dict(_attributes(body[_MESSAGE.size :]))
    name, file, queue = parts.get(_NAME), parts.get(_VFS, b""), parts.get(_QUEUE, b"")
    if name is not None and not name.startswith(b"\0"):
        name = name.partition(b"\0")[0]
    file_inode, file_device = _PAIR.unpack_from(file) if len(file) >= _PAIR.size else (None, None)
    waiting = _PAIR.unpack_from(queue)[0] if len(queue) >= _PAIR.size else None
    return UnixSocket(inode, kind, state, name or None, file_inode, file_device, waiting)


def read_unix_sockets(
    states: int = 1 << LISTENING, *, beside: int | None = None, proc: str = PROC
) -> tuple[UnixSocket, ...] | CannotKnow:
    """Dump the Unix sockets of one network namespace.

    The kernel may leave a socket out when others close meanwhile: what is listed is true, what is missing is
    better asked for twice.

    Args:
        states: a bit for each state wanted.
        beside: a process whose network namespace is meant; None means our own.
        proc: where proc is mounted.
    """
    where = "" if beside is None else f" in the network namespace of process {beside}"
    for _ in range(_PASSES):
        try:
            dump = _dump_once(states, beside, proc)
        except OSError as error:
            return from_error(error, f"the sockets{where} cannot be listed")
        if isinstance(dump, CannotKnow):
            return dump
        if dump.error == errno.ENOENT:
            return CannotKnow(Why.UNSUPPORTED, "this kernel cannot list Unix sockets")
        if dump.error:
            return from_error(OSError(dump.error, ""), f"the sockets{where} cannot be listed")
        if dump.malformed:
            return CannotKnow(
                Why.MALFORMED, f"{counted(dump.malformed, 'part')} of the socket list cannot be read"
            )
        if not dump.interrupted:
            return dump.sockets
    return CannotKnow(Why.UNSTABLE, "the sockets changed while they were listed")


def _netlink() -> socket.socket:
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG)


def _dump_once(states: int, beside: int | None, proc: str) -> Dump | CannotKnow:
    found: dict[int, UnixSocket] = {}
    interrupted, malformed, size = False, 0, 0
    with _netlink() if beside is None else inside_network(beside, _netlink, proc) as asking:
        asking.settimeout(_SECONDS)
        asking.send(dump_request(states))
        for _ in range(_MOST_DATAGRAMS):
            data, _, flags, sender = asking.recvmsg(_DATAGRAM)
            size += len(data)
            if size > _MOST_BYTES:
                return CannotKnow(Why.TOO_LARGE, f"the socket list holds more than {_MOST_BYTES} bytes")
            if sender[0] != 0:
                # Any process may write to this address; only number 0 is the kernel.
                continue
            part = parse_dump(data)
            interrupted = interrupted or part.interrupted
            malformed += part.malformed + bool(flags & socket.MSG_TRUNC)
            found.update((one.inode, one) for one in part.sockets)
            if part.done or part.error or malformed:
                return Dump(tuple(found.values()), part.done, interrupted, part.error, malformed)
    return CannotKnow(Why.TOO_LARGE, f"the socket list comes in more than {_MOST_DATAGRAMS} parts")


def find_listener(sockets: tuple[UnixSocket, ...], key: FileKey) -> UnixSocket | NoListener | CannotKnow:
    """Return the one socket that listens on a file. Pure.

    Args:
        sockets: from `read_unix_sockets`.
        key: of the socket file.
    """
    pairs = {(key.inode & 0xFFFFFFFF, _encode(key.device))}
    if key.kernel_inode is not None and key.kernel_device is not None:
        pairs.add((key.kernel_inode & 0xFFFFFFFF, _encode(key.kernel_device)))
    fitting = [
        one for one in sockets if one.state == LISTENING and (one.file_inode, one.file_device) in pairs
    ]
    if len(fitting) > 1:
        return CannotKnow(Why.AMBIGUOUS, f"{len(fitting)} sockets listen on the file")
    return fitting[0] if fitting else NoListener()


def _encode(device: int) -> int:
    return os.major(device) << 20 | os.minor(device)


def ask_listener(
    path: str, beside: int | None = None, proc: str = PROC
) -> UnixSocket | NoListener | CannotKnow:
    """Say which socket listens on a path, in our own network namespace or else in that of a given process.

    Args:
        path: links are followed, as a client would.
        beside: a process whose network namespace is looked in too, if it is another one.
        proc: where proc is mounted.
    """
    try:
        with opened(path, os.O_PATH | os.O_CLOEXEC) as descriptor:
            if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                return NoListener()
            key = file_key(descriptor, proc)
    except OSError as error:
        return from_error(error, "the socket file cannot be examined")
    if isinstance(key, CannotKnow):
        return key
    answer = _look(key, None, proc)
    if not isinstance(answer, NoListener) or beside is None:
        return answer
    same = shares_network(beside, proc)
    if isinstance(same, CannotKnow):
        return same
    # No file has listeners in two namespaces: a name is bound once.
    return answer if same else _look(key, beside, proc)


def _look(key: FileKey, beside: int | None, proc: str) -> UnixSocket | NoListener | CannotKnow:
    answer: UnixSocket | NoListener | CannotKnow = NoListener()
    for _ in range(_LOOKS):
        sockets = read_unix_sockets(beside=beside, proc=proc)
        answer = sockets if isinstance(sockets, CannotKnow) else find_listener(sockets, key)
        if not isinstance(answer, NoListener):
            break
    return answer


def shares_network(pid: int, proc: str = PROC) -> bool | CannotKnow:
    """Say whether a process is in the tool's own network namespace; a process that is gone is in none."""
    ours, theirs = own_namespace("net", proc), namespace_of(pid, "net", proc)
    if isinstance(ours, CannotKnow):
        return ours
    if isinstance(theirs, Gone):
        return False
    return theirs if isinstance(theirs, CannotKnow) else ours == theirs
