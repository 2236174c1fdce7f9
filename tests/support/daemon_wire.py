"""How the daemon double sees the wire: one accepted connection, and one request read from it."""

import json
import socket
import threading
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

_VERSION_PREFIX = "/v"


class Request(msgspec.Struct, frozen=True):
    """One request as it came over the wire.

    ``path`` is without the version prefix and percent-decoded; ``version`` is the prefix without its "v", or
    None; header names are in lower case.
    """

    method: str
    target: str
    path: str
    version: str | None
    query: dict[str, tuple[str, ...]]
    headers: dict[str, str]
    body: bytes

    def value(self, name: str, default: str = "") -> str:
        """Give the first value of a query parameter."""
        return self.query.get(name, (default,))[0]

    def filters(self) -> dict[str, tuple[str, ...]]:
        """Decode the ``filters`` parameter, in its list form or the older map form."""
        return {key: tuple(values) for key, values in json.loads(self.value("filters", "{}")).items()}


class Wire:
    """One accepted connection, as the behaviours see it."""

    def __init__(self, connection: socket.socket, stopping: threading.Event) -> None:
        self.connection = connection
        self.stopping = stopping
        self.sent = 0

    def send(self, data: bytes) -> None:
        """Send all of it; an OSError means that the peer has gone."""
        self.connection.sendall(data)
        self.sent += len(data)

    def stay(self) -> None:
        """Keep the connection open without a byte until the peer closes it or the double ends."""
        while self.connection.recv(65536):
            pass


def read_request(stream: Any) -> Request | None:
    """Read one request; None at the end of the stream, also in mid-request."""
    line = stream.readline(65536).decode("latin-1").split()
    if len(line) != 3:
        return None
    headers: dict[str, str] = {}
    while (header := stream.readline(65536).decode("latin-1").strip()) != "":
        name, _, value = header.partition(":")
        headers[name.lower()] = value.strip()
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int(stream.readline(100).split(b";")[0] or b"0", 16):
            body += stream.read(size)
            stream.readline(100)
        stream.readline(100)
    else:
        length = int(headers.get("content-length", "0"))
        body = stream.read(length)
        if len(body) < length:
            return None
    method, target, _ = line
    split = urlsplit(target if not target.startswith("//") else "/" + target.lstrip("/"))
    path, version = split.path, None
    first, slash, rest = path[len(_VERSION_PREFIX) :].partition("/")
    if path.startswith(_VERSION_PREFIX) and slash and first.replace(".", "", 1).isdigit():
        path, version = f"/{rest}", first
    query = {key: tuple(values) for key, values in parse_qs(split.query, keep_blank_values=True).items()}
    return Request(method, target, unquote(path), version, query, headers, body)
