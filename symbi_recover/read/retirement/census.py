"""Whether an engine's queue, handlers and builds are empty: drain and census, F3 (leases.md section 18.4).

1. Drain: a fresh connection of our own is accepted and answered; the queue is first-in first-out, so what stood
   before it has been accepted.
2. Control: while that connection is open, the census must count at least one.
3. With all of our own connections closed, the count must come to 0, and the listener's queue to 0, within a minute.

The caller has closed every other connection of its own. A connection of somebody else keeps the count above 0.
"""

import re
import socket

from symbi_recover.core.retirement import Quiescence
from symbi_recover.core.witness import EngineIdentity, ListenerIdentity
from symbi_recover.core.words import counted, noun_for
from symbi_recover.read.daemon.peer import Census, Peer, count_connections, peer_of
from symbi_recover.read.daemon.sockets import UnixSocket, ask_listener
from symbi_recover.read.evidence.kernel import CannotKnow
from symbi_recover.read.retirement.host import Host

_DRAIN_SECONDS = 10.0
_QUIET_SECONDS = 60.0
_POLL_SECONDS = 0.02
_MOST_ANSWER = 65_536
_ASK = b"GET /_ping HTTP/1.1\r\nHost: localhost\r\nUser-Agent: symbi-recover\r\n\r\n"
_FIRST_LINE = re.compile(rb"HTTP/1\.[01] 200 ")


def take_census(engine: EngineIdentity, listener: ListenerIdentity, host: Host) -> Quiescence:
    """Drain the queue and count the connections.

    Args:
        engine: the process that serves the listener.
        listener: its own socket, or the one it was handed.
        host: gives the time.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        failed = _drain(connection, listener, host)
        if failed is not None:
            return failed
        control = count_connections(engine.pid, engine.start_ticks, listener.inode)
    finally:
        connection.close()
    if isinstance(control, CannotKnow):
        return Quiescence(drained=True, code="census_unreadable", why=control.detail)
    if control.connections < 1:
        why = "our own open connection was not seen"
        return Quiescence(drained=True, control=0, code="census_unreadable", why=why)
    return wait_for_quiet(engine, listener, host, control=control.connections)


def wait_for_quiet(
    engine: EngineIdentity,
    listener: ListenerIdentity,
    host: Host,
    *,
    control: int,
    seconds: float = _QUIET_SECONDS,
) -> Quiescence:
    """Wait until the engine holds no connection and none waits.

    Args:
        engine: as for `take_census`.
        listener: as for `take_census`.
        host: gives the time.
        control: what the census counted while our own connection was open.
        seconds: how long to wait.
    """
    end = host.monotonic() + seconds
    while True:
        count = count_connections(engine.pid, engine.start_ticks, listener.inode)
        queue = ask_listener(listener.path, listener.owner_pid)
        if isinstance(count, CannotKnow):
            return Quiescence(drained=True, control=control, code="census_unreadable", why=count.detail)
        waiting = _waiting(queue, listener)
        if isinstance(waiting, str):
            return Quiescence(
                drained=True,
                control=control,
                connections=count.connections,
                code="census_unreadable",
                why=waiting,
            )
        if not count.connections and not waiting:
            return Quiescence(drained=True, control=control, connections=0, waiting=0)
        if host.monotonic() >= end:
            return _busy(count, waiting, control, seconds)
        host.pause(_POLL_SECONDS)


def _waiting(queue: object, listener: ListenerIdentity) -> int | str:
    """The queue's length, or why it cannot be told."""
    if isinstance(queue, CannotKnow):
        return queue.detail
    if not isinstance(queue, UnixSocket) or queue.inode != listener.inode:
        return "another socket listens at the endpoint now"
    return "the kernel does not tell the length of the queue" if queue.waiting is None else queue.waiting


def _busy(count: Census, waiting: int, control: int, seconds: float) -> Quiescence:
    opened = counted(count.connections, "connection")
    why = (
        f"after {seconds:g} seconds {opened} {noun_for(count.connections, 'is', 'are')} open "
        f"and {waiting} {noun_for(waiting, 'waits', 'wait')}"
    )
    return Quiescence(
        drained=True,
        control=control,
        connections=count.connections,
        waiting=waiting,
        code="census_foreign_connection",
        why=why,
    )


def _drain(connection: socket.socket, listener: ListenerIdentity, host: Host) -> Quiescence | None:
    """Ask over a fresh connection, which stays open; how it failed, or None."""
    end = host.monotonic() + _DRAIN_SECONDS
    answer = b""
    try:
        connection.settimeout(_DRAIN_SECONDS)
        connection.connect(listener.path)
        peer = peer_of(connection)
        if not isinstance(peer, Peer) or peer.pid != listener.owner_pid:
            why = "another process listens at the endpoint now"
            return Quiescence(code="engine_changed", why=why)
        connection.sendall(_ASK)
        while b"\r\n\r\n" not in answer:
            left = end - host.monotonic()
            if left <= 0 or len(answer) > _MOST_ANSWER:
                return _unanswered("no whole answer to a ping")
            connection.settimeout(left)
            part = connection.recv(4096)
            if not part:
                return _unanswered("the connection ended without an answer")
            answer += part
    except OSError as error:
        return _unanswered(f"the drain connection failed: {error.strerror or error}")
    return None if _FIRST_LINE.match(answer) else _unanswered("the engine answers a ping with an error")


def _unanswered(why: str) -> Quiescence:
    return Quiescence(code="engine_unavailable", why=why)
