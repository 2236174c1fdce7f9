"""A raw HTTP client for Unix sockets: whole requests, halves of requests, requests nobody waits for, events.

It exists beside the Docker package because tests have to do what that package cannot: stall in mid-body, leave
a request in a listener's queue and go, and look at bytes. Every wait is bounded by a socket timeout.
"""

import http.client
import json
import socket
from typing import Any, Self
from urllib.parse import quote, urlencode

import msgspec

TIMEOUT_SECONDS = 30.0


class Reply(msgspec.Struct, frozen=True):
    """Status, headers (names in lower case) and the whole body."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """Decode the body."""
        return json.loads(self.body)

    @property
    def message(self) -> str:
        """Text of an engine's error; empty when there is none."""
        try:
            value = self.json()
        except ValueError:
            return self.body.decode(errors="replace").strip()
        return str(value.get("message", "")) if isinstance(value, dict) else ""


class UnixConnection(http.client.HTTPConnection):
    """An HTTP connection over the Unix socket at ``socket_path``."""

    def __init__(self, socket_path: str, timeout: float = TIMEOUT_SECONDS) -> None:
        super().__init__("localhost", timeout=timeout)
        self.socket_path = socket_path

    def connect(self) -> None:
        """Connect to the path instead of a host."""
        self.sock = connect(self.socket_path, self.timeout)


def connect(socket_path: str, timeout: float | None = TIMEOUT_SECONDS) -> socket.socket:
    """Open a stream connection; the caller closes it."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(timeout)
        connection.connect(socket_path)
    except BaseException:
        connection.close()
        raise
    return connection


def target(path: str, **query: Any) -> str:
    """Build a request target; dicts and lists among the query values become JSON."""
    pairs = {
        key: json.dumps(value) if isinstance(value, dict | list) else str(value)
        for key, value in query.items()
    }
    return quote(path, safe="/:@%") + ("?" + urlencode(pairs) if pairs else "")


def encode(method: str, request_target: str, body: Any = None, **headers: str) -> bytes:
    """Give the bytes of one request; a body that is not bytes is sent as JSON."""
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    kind = "application/x-tar" if isinstance(body, bytes) else "application/json"
    lines = {"Host": "localhost", **headers}
    if body is not None:
        lines |= {"Content-Type": kind, "Content-Length": str(len(data))}
    head = f"{method} {request_target} HTTP/1.1\r\n" + "".join(
        f"{key}: {value}\r\n" for key, value in lines.items()
    )
    return head.encode("ascii") + b"\r\n" + data


def read_reply(connection: socket.socket, method: str = "GET") -> Reply:
    """Read one reply to its end."""
    response = http.client.HTTPResponse(connection, method=method)
    try:
        response.begin()
        body = response.read()
        headers = {key.lower(): value for key, value in response.getheaders()}
        return Reply(response.status, headers, body)
    finally:
        response.close()


def ask(
    socket_path: str, method: str, request_target: str, body: Any = None, timeout: float = TIMEOUT_SECONDS
) -> Reply:
    """Send one request on a connection of its own and read the reply."""
    with connect(socket_path, timeout) as connection:
        connection.sendall(encode(method, request_target, body, Connection="close"))
        return read_reply(connection, method)


def leave_request(socket_path: str, method: str, request_target: str, body: Any = None) -> None:
    """Send one whole request and go, without waiting for an answer.

    At a stopped engine, or at a listener without one, the request stays in the listener's queue.
    """
    with connect(socket_path) as connection:
        connection.sendall(encode(method, request_target, body))


class HalfRequest:
    """A request whose head and half of whose body have been sent; the rest waits for the test."""

    def __init__(self, socket_path: str, method: str, request_target: str, body: Any) -> None:
        whole = encode(method, request_target, body)
        cut = whole.index(b"\r\n\r\n") + 4
        self._method = method
        self._rest = whole[cut + (len(whole) - cut) // 2 :]
        self._connection = connect(socket_path)
        self._connection.sendall(whole[: len(whole) - len(self._rest)])

    def finish(self) -> Reply:
        """Send the rest and read the reply."""
        self._connection.sendall(self._rest)
        return read_reply(self._connection, self._method)

    def close(self) -> None:
        """Close the connection, whatever has been sent."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class EventFollower:
    """Follows ``GET /events`` of an engine over a connection of its own."""

    def __init__(self, socket_path: str, **filters: list[str]) -> None:
        self._connection = UnixConnection(socket_path)
        self._connection.request("GET", target("/events", filters=filters))
        self._response = self._connection.getresponse()

    def next(self, action: str | None = None) -> dict[str, Any]:
        """Give the next event (with that action); a TimeoutError ends a wait without one."""
        while True:
            event = json.loads(self._response.readline())
            if action is None or event.get("Action") == action:
                return dict(event)

    def close(self) -> None:
        """End the connection."""
        self._response.close()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
