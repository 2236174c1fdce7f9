"""Asks a Docker daemon over its Unix socket: GET only, bounded in time and size.

The SDK's client and transport are used, with a socket of our own below them: each question has one deadline and one
budget of bytes for everything it receives, headers included, so that silence, dripping and endless bodies end. Nothing
of this process's own environment decides where a question goes: the socket's path is an argument, redirects and
compressed bodies are refused, each question has its own connection.

Importing this module loads the SDK; commands import it when they need it.
"""

import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import requests
import urllib3
from docker import APIClient
from docker.errors import DockerException
from docker.transport.unixconn import UnixHTTPAdapter, UnixHTTPConnection, UnixHTTPConnectionPool
from msgspec import Struct, field

from symbi_recover.core.shapes import Lenient
from symbi_recover.core.words import counted
from symbi_recover.read.daemon.peer import Peer, peer_of
from symbi_recover.read.daemon.questions import Container, DaemonError, EngineFacts, Listed, Stage
from symbi_recover.wire import exact
from symbi_recover.wire.strictjson import JsonError

OLDEST, NEWEST = (1, 24), (1, 44)
"""API versions that this tool asks in."""
_SECONDS = 10.0
_MOST_BYTES = 8 << 20
_VERSION = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}")
_ABSENT = re.compile(r"no such container|no container with (?:name or id|id or name)", re.IGNORECASE)


class _Budget:
    """What one question may still cost."""

    def __init__(self, seconds: float, most: int) -> None:
        self.deadline = time.monotonic() + seconds
        self.left = most
        self.stage: Stage = "connect"
        self.oversized = False

    def remaining(self) -> float:
        """Seconds left; raises TimeoutError when there are none."""
        seconds = self.deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("the time for this question is over")
        return seconds


class _BoundedSocket(socket.socket):
    """A socket whose every receive is charged to a budget."""

    budget: _Budget

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        """Receive within the budget; it is here that all bytes of an answer pass."""
        self.settimeout(self.budget.remaining())
        count = super().recv_into(buffer, nbytes, flags)
        self.budget.left -= count
        if self.budget.left < 0:
            self.budget.oversized = True
            raise TimeoutError("the answer is too large")
        return count


class _Connection(UnixHTTPConnection):
    """A connection of the SDK over our socket."""

    adapter: "_Adapter"

    def connect(self) -> None:
        """Connect, and remember who listens."""
        budget = self.adapter.budget
        connection = _BoundedSocket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.budget = budget
        try:
            connection.settimeout(budget.remaining())
            connection.connect(self.unix_socket)
        except BaseException:
            connection.close()
            raise
        budget.stage = "headers"
        self.adapter.peer = peer_of(connection)
        self.sock = connection


class _Pool(UnixHTTPConnectionPool):
    """A pool of such connections."""

    adapter: "_Adapter"

    def _new_conn(self) -> _Connection:  # type: ignore[override]  # the SDK does the same
        connection = _Connection(self.base_url, self.socket_path, _SECONDS)  # type: ignore[arg-type]
        connection.adapter = self.adapter
        return connection


class _Adapter(UnixHTTPAdapter):
    """The SDK's adapter with one pool of ours, for one socket path."""

    budget: _Budget
    peer: object = None

    def get_connection(self, url: Any, proxies: Any = None) -> _Pool:  # noqa: ARG002 -- the SDK's signature
        """The pool; the SDK's own, by URL, is not used."""
        pool = self.pools.get("ours")
        if pool is None:
            pool = _Pool(url, self.socket_path, _SECONDS)  # type: ignore[arg-type]
            pool.adapter = self
            self.pools["ours"] = pool
        return pool


class _Component(Lenient, frozen=True, kw_only=True):
    name: str | None = field(default=None, name="Name")
    version: str | None = field(default=None, name="Version")


class _Version(Lenient, frozen=True, kw_only=True):
    version: str = field(name="Version")
    api: str = field(name="ApiVersion")
    minimum: str | None = field(default=None, name="MinAPIVersion")
    components: tuple[_Component, ...] | None = field(default=None, name="Components")


class _Info(Lenient, frozen=True, kw_only=True):
    id: str | None = field(default=None, name="ID")
    root: str | None = field(default=None, name="DockerRootDir")


class _Config(Lenient, frozen=True, kw_only=True):
    labels: dict[str, str] | None = field(default=None, name="Labels")


class _State(Lenient, frozen=True, kw_only=True):
    status: str = field(name="Status")
    pid: int | None = field(default=None, name="Pid")


class _Inspected(Lenient, frozen=True, kw_only=True):
    id: str = field(name="Id")
    name: str = field(name="Name")
    created: str | None = field(default=None, name="Created")
    config: _Config = field(name="Config")
    state: _State = field(name="State")


class _Listed(Lenient, frozen=True, kw_only=True):
    id: str = field(name="Id")
    names: tuple[str, ...] | None = field(default=None, name="Names")
    labels: dict[str, str] | None = field(default=None, name="Labels")
    state: str | None = field(default=None, name="State")


class _Answer(Struct, frozen=True):
    status: int
    body: bytes


class DockerEngine:
    """One daemon, reached by one Unix socket; a `questions.Engine`."""

    def __init__(self, path: str, *, seconds: float = _SECONDS, most_bytes: int = _MOST_BYTES) -> None:
        """Prepare to ask; nothing is sent yet.

        Args:
            path: of the socket, absolute.
            seconds: for each question as a whole.
            most_bytes: for each answer, headers included.

        Raises:
            DaemonError: the SDK cannot be used with this configuration.
        """
        self.path = path
        self.seconds = seconds
        self.most_bytes = most_bytes
        self._version: str | None = None
        self._facts: EngineFacts | None = None
        self._adapter = _Adapter(f"http+unix://{path}", timeout=int(seconds) + 1)
        try:
            self._client = self._new_client(".".join(map(str, OLDEST)))
        except (DockerException, OSError, ValueError, TypeError) as error:
            raise DaemonError(
                "daemon_away", f"the client cannot be set up: {error}", stage="connect", path=path
            ) from error

    def facts(self) -> EngineFacts:
        """See `questions.Engine`; asked once."""
        if self._facts is None:
            said = self._read(self._ask("/version", versioned=False), _Version)
            asked = self._choose(said.api, said.minimum)
            self._version = asked
            info = self._read(self._ask("/info"), _Info)
            self._facts = EngineFacts(
                version=said.version,
                api_version=said.api,
                min_api_version=said.minimum,
                asked_api_version=asked,
                components=tuple(f"{part.name} {part.version}" for part in said.components or ()),
                engine_id=info.id,
                data_root=info.root,
            )
        return self._facts

    def inspect(self, reference: str) -> Container | None:
        """See `questions.Engine`."""
        self.facts()
        answer = self._ask(f"/containers/{quote(reference, safe='')}/json", absent=True)
        if answer is None:
            return None
        said = self._read(answer, _Inspected)
        return Container(
            id=said.id,
            name=said.name.removeprefix("/"),
            labels=said.config.labels or {},
            state=said.state.status,
            pid=said.state.pid or 0,
            created=said.created,
        )

    def labelled(self, label: str, value: str) -> tuple[Listed, ...]:
        """See `questions.Engine`; the daemon's filter is not relied on."""
        return tuple(one for one in self._listed(f"{label}={value}") if one.labels.get(label) == value)

    def _listed(self, label: str) -> tuple[Listed, ...]:
        """What the daemon lists under a label filter, ended containers included; the caller compares."""
        self.facts()
        filters = json.dumps({"label": [label]}, separators=(",", ":"))
        answer = self._ask("/containers/json", all="1", filters=filters)
        said = self._read(answer, tuple[_Listed, ...])
        return tuple(
            Listed(
                id=one.id,
                names=tuple(
                    name[1:] for name in one.names or () if name.startswith("/") and "/" not in name[1:]
                ),
                labels=one.labels or {},
                state=one.state or "",
            )
            for one in said
        )

    def listener_pid(self) -> int | None:
        """See `questions.Engine`."""
        return self._adapter.peer.pid if isinstance(self._adapter.peer, Peer) else None

    def close(self) -> None:
        """See `questions.Engine`."""
        self._client.close()

    def _new_client(self, version: str) -> APIClient:
        """A client of the SDK that uses our bounded connections and nothing of the operator's configuration."""
        client = APIClient(base_url=f"unix://{self.path}", version=version, timeout=int(self.seconds) + 1)
        client.trust_env = False
        client.mount("http+docker://", self._adapter)
        return client

    @contextmanager
    def _question(self) -> Iterator[_Budget]:
        """One question: one deadline, one budget of bytes, and a connection of its own that leaves none behind.

        Raises:
            DaemonError: for whatever the SDK or the system raises within.
        """
        budget = self._adapter.budget = _Budget(self.seconds, self.most_bytes)
        try:
            yield budget
        except (
            requests.RequestException,
            urllib3.exceptions.HTTPError,
            DockerException,
            OSError,
            ValueError,
            TypeError,
        ) as error:
            raise self._failure(error, budget) from error
        finally:
            self._adapter.close()

    def _choose(self, api: str, minimum: str | None) -> str:
        highest = _number(api)
        lowest = _number(minimum) if minimum else OLDEST
        if highest is None or lowest is None:
            raise DaemonError(
                "daemon_malformed", "the daemon names no API version", stage="answer", path=self.path
            )
        asked = min(highest, NEWEST)
        if asked < max(lowest, OLDEST):
            message = f"the daemon speaks API {minimum or '?'} to {api}, this tool 1.24 to 1.44"
            raise DaemonError("daemon_version", message, stage="answer", path=self.path)
        return f"{asked[0]}.{asked[1]}"

    def _ask(self, target: str, *, versioned: bool = True, absent: bool = False, **query: str) -> Any:
        prefix = f"/v{self._version}" if versioned else ""
        with self._question() as budget:
            answer = self._get(f"{self._client.base_url}{prefix}{target}", query, budget)
        if answer.status == 200:
            return answer
        message = _message(answer.body)
        if absent and answer.status == 404 and _ABSENT.search(message):
            return None
        code = "daemon_version" if answer.status == 400 and "API version" in message else "daemon_failed"
        raise DaemonError(code, f"status {answer.status}: {message}", stage="answer", path=self.path)

    def _get(self, url: str, query: dict[str, str], budget: _Budget) -> _Answer:
        headers = {"Accept-Encoding": "identity", "Connection": "close"}
        with self._client.get(
            url, params=query, headers=headers, stream=True, allow_redirects=False, timeout=self.seconds
        ) as response:
            budget.stage = "body"
            if response.headers.get("Content-Encoding", "identity") != "identity":
                raise ValueError("the body is compressed, which was not asked for")
            body = response.raw.read(self.most_bytes + 1, decode_content=False)
            length = response.headers.get("Content-Length")
            if length is not None and length != str(len(body)):
                raise ValueError(f"{counted(len(body), 'byte')} instead of {length}")
            return _Answer(response.status_code, body)

    def _failure(self, error: Exception, budget: _Budget) -> DaemonError:
        """Say at which stage the question ended, and why."""
        if budget.oversized:
            code, message = "daemon_oversized", f"more than {self.most_bytes} bytes"
        elif budget.deadline <= time.monotonic() or isinstance(error, requests.Timeout | TimeoutError):
            code, message = "daemon_slow", f"no whole answer within {self.seconds:g} seconds"
        elif budget.stage == "connect":
            code, message = "daemon_away", str(_root(error))
        else:
            code, message = "daemon_malformed", str(_root(error))
        return DaemonError(code, f"{message} (at stage: {budget.stage})", stage=budget.stage, path=self.path)

    def _read(self, answer: _Answer, kind: Any) -> Any:
        try:
            return exact.read(answer.body, kind)
        except JsonError as error:
            raise DaemonError("daemon_malformed", error.message, stage="answer", path=self.path) from error


def _number(text: str) -> tuple[int, int] | None:
    if not _VERSION.fullmatch(text):
        return None
    major, _, minor = text.partition(".")
    return int(major), int(minor)


class _Error(Lenient, frozen=True, kw_only=True):
    message: str


def _message(body: bytes) -> str:
    """The daemon's own words; only its JSON form counts, so that a strange page never reads as absence."""
    try:
        return exact.read(body, _Error).message[:500]
    except JsonError:
        return "an answer that is no error of a daemon"


def _root(error: BaseException) -> BaseException:
    """The system's own error below the SDK's layers."""
    while True:
        below = error.__cause__ or error.__context__
        if below is None:
            return error
        error = below
