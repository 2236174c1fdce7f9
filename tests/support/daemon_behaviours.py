"""What the daemon double can do with a request it has read: answers, and every kind of fault.

A behaviour has one method, ``play``, which sends what it likes and tells whether the connection may go on.
Nothing here waits for a fixed time except ``Dripping``; the others wait for the peer, the test or the end.
"""

import json
import threading
from typing import Any, Protocol

from tests.support.daemon_wire import Request, Wire

MEBIBYTE = 1024 * 1024


class Behaviour(Protocol):
    """What the double does after it has read a request."""

    def play(self, request: Request, wire: Wire) -> bool:
        """Answer; True keeps the connection for the next request."""


class Answer:
    """A whole, well-formed answer. ``value`` is bytes, or a JSON value, or None for no body."""

    def __init__(self, value: Any, status: int = 200, *, headers: dict[str, str] | None = None) -> None:
        self.status = status
        self.body = b"" if value is None else value if isinstance(value, bytes) else _json(value)
        kind = {} if status == 204 else {"Content-Type": "application/json"}
        self.headers = {**kind, "Ostype": "linux", **(headers or {})}

    def head(self, length: int | None = None) -> bytes:
        """Give status line and headers, with another length if wanted."""
        lines = dict(self.headers)
        if self.status != 204:
            lines["Content-Length"] = str(len(self.body) if length is None else length)
        text = f"HTTP/1.1 {self.status} Played\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items())
        return text.encode() + b"\r\n"

    def play(self, request: Request, wire: Wire) -> bool:
        """Send it."""
        wire.send(self.head() + (b"" if request.method == "HEAD" else self.body))
        return True


def failure(status: int, message: str = "played failure") -> Answer:
    """Give an engine's error: 500, 503 during start, 409, or any other."""
    return Answer({"message": message}, status)


class Silent:
    """Accepts and reads the request, then says nothing."""

    def play(self, request: Request, wire: Wire) -> bool:
        wire.stay()
        return False


class HeadersOnly:
    """Sends status and headers that promise ``length`` bytes, then nothing."""

    def __init__(self, length: int = 1000) -> None:
        self.length = length

    def play(self, request: Request, wire: Wire) -> bool:
        wire.send(Answer(None).head(self.length))
        wire.stay()
        return False


class Dripping:
    """Sends an answer one byte every ``interval`` seconds; 1.0 is the slow peer, tests may drip faster."""

    def __init__(self, answer: Answer, interval: float = 1.0) -> None:
        self.answer = answer
        self.interval = interval

    def play(self, request: Request, wire: Wire) -> bool:
        for byte in self.answer.head() + self.answer.body:
            wire.send(bytes([byte]))
            if wire.stopping.wait(self.interval):
                return False
        return True


class HalfThenClose:
    """Sends the headers of an answer and half of its body, then closes."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    def play(self, request: Request, wire: Wire) -> bool:
        wire.send(self.answer.head() + self.answer.body[: len(self.answer.body) // 2])
        return False


class WrongLength:
    """Sends an answer whose Content-Length is off by ``by`` bytes, then closes."""

    def __init__(self, answer: Answer, by: int) -> None:
        self.answer = answer
        self.by = by

    def play(self, request: Request, wire: Wire) -> bool:
        wire.send(self.answer.head(len(self.answer.body) + self.by) + self.answer.body)
        return False


class Huge:
    """Sends a JSON string of ``size`` bytes (None: without end, in chunks) in pieces of 64 KiB."""

    def __init__(self, size: int | None = 100 * MEBIBYTE) -> None:
        self.size = size

    def play(self, request: Request, wire: Wire) -> bool:
        piece = b"a" * 65536
        if self.size is None:
            wire.send(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            wire.send(b'1\r\n"\r\n')
            while True:  # ends with the peer, or with the double
                wire.send(b"10000\r\n" + piece + b"\r\n")
        wire.send(Answer(None).head(self.size))
        left = self.size
        for part in (b'"', *([piece] * (self.size // len(piece))), piece):
            wire.send(part[: max(0, left - 1)])
            left -= len(part[: max(0, left - 1)])
        wire.send(b'"')
        return True


class Bytes:
    """Sends exactly these bytes (none at all: the connection just ends), then closes."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = data

    def play(self, request: Request, wire: Wire) -> bool:
        wire.send(self.data)
        return False


class Held:
    """Answers as another behaviour would, but only after the test calls `release`."""

    def __init__(self, then: "Behaviour | None" = None) -> None:
        self.then = then
        self.reached = threading.Event()
        self._released = threading.Event()

    def release(self) -> None:
        """Let the answer go."""
        self._released.set()

    def play(self, request: Request, wire: Wire) -> bool:
        raise NotImplementedError  # the double resolves it, because "as usual" needs the world

    def wait(self, stopping: threading.Event) -> None:
        """Wait for `release` or the end of the double."""
        self.reached.set()
        while not (self._released.wait(0.02) or stopping.is_set()):
            pass


class _AsUsual:
    def play(self, request: Request, wire: Wire) -> bool:
        raise NotImplementedError


AS_USUAL: Behaviour = _AsUsual()
"""In a rule: let the world answer this time."""


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
