"""A small server on a Unix socket that plays the Docker Engine, faults included.

It is for what a real engine cannot be made to show: half answers, malformed JSON, silence, endless bodies,
wrong lengths, other API versions. Steps for one request:

1. read it whole (HTTP/1.1, keep-alive, bodies by length or in chunks) and record it;
2. refuse a version prefix outside the range played, as the engine does;
3. the newest rule that fits method and path gives the behaviour; each use takes the rule's next behaviour and
   the last one stays;
4. without a rule the ``World`` answers.

What it does not do: authenticate, upgrade connections, attach, run anything. It serves in threads of the test's
process, so ``SO_PEERCRED`` names that process. Behaviours are in ``daemon_behaviours.py``.
"""

import contextlib
import fnmatch
import os
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tests.support.daemon_behaviours import AS_USUAL, Answer, Behaviour, Held
from tests.support.daemon_wire import Request, Wire, read_request
from tests.support.daemon_world import JsonError, World

PATIENCE_SECONDS = 20.0


Rule = tuple[str, str, list[Behaviour | Callable[[Request], Behaviour]]]


class DaemonDouble:
    """The running double: its socket, its world, its rules, and what it was asked."""

    def __init__(self, socket_path: str, world: World) -> None:
        self.socket_path = socket_path
        self.base_url = f"unix://{socket_path}"
        self.world = world
        self._rules: list[Rule] = []
        self._requests: list[Request] = []
        self._sent: dict[int, Wire] = {}
        self._accepted = 0
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(socket_path)
        self._listener.listen(64)
        self._start(self._accept)

    def on(self, method: str, path: str, *behaviours: Behaviour | Callable[[Request], Behaviour]) -> None:
        """Add a rule: ``path`` is a pattern as of fnmatch, without version; "*" as method fits all.

        The behaviours are used one by one, and the last for ever; a function is given the request.
        """
        with self._changed:
            self._rules.insert(0, (method, path, list(behaviours)))

    @property
    def requests(self) -> tuple[Request, ...]:
        """Every request read so far, in order of arrival."""
        with self._changed:
            return tuple(self._requests)

    @property
    def connections(self) -> int:
        """Connections accepted so far."""
        with self._changed:
            return self._accepted

    @property
    def bytes_sent(self) -> int:
        """Bytes of answers handed to the kernel so far."""
        with self._changed:
            return sum(wire.sent for wire in self._sent.values())

    def wait_for_requests(self, count: int) -> tuple[Request, ...]:
        """Return once ``count`` requests were read; AssertionError after a bounded wait."""
        with self._changed:
            reached = self._changed.wait_for(lambda: len(self._requests) >= count, PATIENCE_SECONDS)
            assert reached, f"only {len(self._requests)} of {count} requests came"
            return tuple(self._requests)

    def wait_until_idle(self) -> None:
        """Return once no connection is open any more; AssertionError after a bounded wait."""
        with self._changed:
            idle = self._changed.wait_for(lambda: not any(self._live()), PATIENCE_SECONDS)
            assert idle, "a client keeps a connection open"

    def asked(self, method: str = "*", path: str = "*") -> tuple[Request, ...]:
        """Give the requests that fit method and path pattern."""
        return tuple(one for one in self.requests if _fits(one, method, path))

    def assert_only_gets(self) -> None:
        """Fail if anything but GET (or HEAD, which asks no more) was asked, or anything carried a body."""
        for one in self.requests:
            assert one.method in {"GET", "HEAD"}, f"{one.method} {one.target}"
            assert not one.body, f"{one.method} {one.target} carried {len(one.body)} bytes"

    def close(self) -> None:
        """End every connection and thread and remove the socket."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the accepting thread
        with self._changed:
            wires = list(self._sent.values())
        for wire in wires:
            with contextlib.suppress(OSError):
                wire.connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive(), "a thread of the daemon double does not end"
        self._listener.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.socket_path)

    def _start(self, work: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _live(self) -> Iterator[bool]:
        return (wire.connection.fileno() >= 0 for wire in self._sent.values())

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            wire = Wire(connection, self._stopping)
            with self._changed:
                self._accepted += 1
                self._sent[self._accepted] = wire
                if self._stopping.is_set():
                    connection.close()
                    return
            self._start(self._serve, wire)

    def _serve(self, wire: Wire) -> None:
        try:
            with contextlib.suppress(OSError), wire.connection.makefile("rb") as stream:
                while (request := read_request(stream)) is not None:
                    with self._changed:
                        self._requests.append(request)
                        self._changed.notify_all()
                    if not self._respond(request, wire):
                        break
        finally:
            with self._changed:
                wire.connection.close()
                self._changed.notify_all()

    def _respond(self, request: Request, wire: Wire) -> bool:
        try:
            self.world.check_version(request)
        except JsonError as error:
            return self._error(request, error).play(request, wire)
        behaviour = self._choose(request)
        if isinstance(behaviour, Held):
            behaviour.wait(self._stopping)
            behaviour = behaviour.then or AS_USUAL
        if behaviour is AS_USUAL:
            behaviour = self._usual(request)
        return behaviour.play(request, wire) and request.headers.get("connection") != "close"

    def _choose(self, request: Request) -> Behaviour:
        with self._changed:
            for method, path, behaviours in self._rules:
                if _fits(request, method, path):
                    chosen = behaviours.pop(0) if len(behaviours) > 1 else behaviours[0]
                    break
            else:
                return AS_USUAL
        return chosen if hasattr(chosen, "play") else chosen(request)

    def _usual(self, request: Request) -> Answer:
        about = {"Api-Version": self.world.api, "Docker-Experimental": "false"}
        try:
            with self._changed:
                status, value = self.world.answer(request)
        except JsonError as error:
            return self._error(request, error)
        except ValueError as error:
            return self._error(request, JsonError(500, str(error)))
        if request.path == "/_ping":
            return Answer(b"OK", status, headers={**about, "Content-Type": "text/plain; charset=utf-8"})
        return Answer(value, status, headers=about)

    def _error(self, request: Request, error: JsonError) -> Answer:
        about = {} if error.message == "page not found" else {"Api-Version": self.world.api}
        if request.version is not None and [int(n) for n in request.version.split(".")] < [1, 23]:
            plain = {
                **about,
                "Content-Type": "text/plain; charset=utf-8",
            }  # before 1.23 errors were bare text
            return Answer(error.message.encode() + b"\n", error.status, headers=plain)
        return Answer({"message": error.message}, error.status, headers=about)


@contextlib.contextmanager
def daemon_double(socket_path: str | os.PathLike[str], world: World | None = None) -> Iterator[DaemonDouble]:
    """Serve at ``socket_path`` (below 104 bytes, not there yet) until the block ends."""
    double = DaemonDouble(os.fspath(socket_path), world or World())
    try:
        yield double
    finally:
        double.close()


def _fits(request: Request, method: str, path: str) -> bool:
    return method in {"*", request.method} and fnmatch.fnmatchcase(request.path, path)
