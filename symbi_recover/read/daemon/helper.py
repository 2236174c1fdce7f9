"""Asks a running sandbox helper for its capacity, over its own socket (leases.md section 12).

One connection, one request, one line back: `inspect` without a lease, which touches no disk and starts nothing. The
helper must be of the expected account, the answer at most 1 MiB and within six seconds in all. A refusal, an end of
the stream or a busy helper is "unknown", never "empty".
"""

import os
import socket
import time
from typing import Any

import msgspec

from symbi_recover.core.errors import UnexaminedError
from symbi_recover.core.lease_records import AdmissionLimits, Origin, Resources, StagingLimits
from symbi_recover.core.leases import (
    Amount,
    Capacity,
    HelperAnswer,
    StagedSnapshot,
    StagingAmount,
    StagingCapacity,
    WorkerCharge,
)
from symbi_recover.core.scalars import U64
from symbi_recover.core.shapes import Lenient
from symbi_recover.read.daemon.peer import Peer, peer_of
from symbi_recover.wire import exact
from symbi_recover.wire.strictjson import JsonError

VERSION = 7
FINGERPRINT = "f40bd693cee55cd94e745a7601178a65ed6b9d7f5d595abe1cc559c875cb6bf1"
"""Build fingerprint of the packaged release 2.0.1."""
_MOST_BYTES = 1 << 20
_SECONDS = 6.0
_CHUNK = 1 << 16


class _Limits(Lenient, frozen=True, kw_only=True):
    max_workers: U64
    memory_bytes: U64
    cpu_nanos: U64


class _Amount(Lenient, frozen=True, kw_only=True):
    workers: U64
    memory_bytes: U64 | None = None
    cpu_nanos: U64 | None = None


class _Resources(Lenient, frozen=True, kw_only=True):
    memory_bytes: U64
    cpu_nanos: U64


class _Origin(Lenient, frozen=True, kw_only=True):
    agent_id: str
    run_id: str
    public_key: str
    dispatch_id: str
    call_fingerprint: str
    tool_name: str
    iteration: U64


class _Worker(Lenient, frozen=True, kw_only=True):
    lease: str
    backend: str
    phase: str
    resources: _Resources | None = None
    origin: _Origin | None = None


class _StagingLimits(Lenient, frozen=True, kw_only=True):
    max_snapshots: U64
    reserved_bytes: U64


class _StagingAmount(Lenient, frozen=True, kw_only=True):
    snapshots: U64
    reserved_bytes: U64


class _Snapshot(Lenient, frozen=True, kw_only=True):
    id: str
    reserved_bytes: U64
    active_hold: bool
    worker_leases: tuple[str, ...]


class _Staging(Lenient, frozen=True, kw_only=True):
    initialized: bool
    limits: _StagingLimits
    reserved: _StagingAmount
    available: _StagingAmount
    admission_blocked: bool
    reservations: tuple[_Snapshot, ...]


class _Capacity(Lenient, frozen=True, kw_only=True):
    observed_at_unix_ms: U64
    state_dir: str
    limits: _Limits
    reserved: _Amount
    available: _Amount
    unknown_resource_leases: U64
    admission_blocked: bool
    workers: tuple[_Worker, ...]
    staging: _Staging | None = None
    staging_error: str | None = None


class _Reply(Lenient, frozen=True, kw_only=True):
    status: str
    message: str | None = None
    snapshot: _Capacity | None = None


class HelperError(UnexaminedError):
    """The helper gave no usable answer: unknown, never empty."""


def ask_capacity(
    directory: str, *, uid: int, fingerprint: str = FINGERPRINT, seconds: float = _SECONDS
) -> HelperAnswer:
    """Ask the helper of a state directory.

    Args:
        directory: real path of the state directory.
        uid: the account that the helper must run as.
        fingerprint: the build that is expected; another one closes the connection without a word.
        seconds: for the whole conversation.

    Raises:
        HelperError: `helper_unreachable`, `helper_foreign`, `helper_silent`, `helper_failed` or `helper_malformed`.
    """
    path = f"{directory}/supervisor.sock"
    deadline = time.monotonic() + seconds
    request = {"operation": "inspect", "version": VERSION, "implementation": fingerprint, "lease": None}
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.settimeout(seconds)
            connection.connect(path)
        except (OSError, ValueError) as error:
            raise HelperError("helper_unreachable", _words(error), path=path) from error
        peer = peer_of(connection)
        if not isinstance(peer, Peer) or peer.uid != uid:
            who = f"uid {peer.uid}" if isinstance(peer, Peer) else peer.detail
            raise HelperError("helper_foreign", f"the socket is served by {who}, not by uid {uid}", path=path)
        try:
            connection.sendall(msgspec.json.encode(request) + b"\n")
            line = _line(connection, deadline, path)
        except OSError as error:
            raise HelperError("helper_silent", _words(error), path=path) from error
    return _answer(line, path)


def _line(connection: socket.socket, deadline: float, path: str) -> bytes:
    received = bytearray()
    while b"\n" not in received:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise HelperError("helper_silent", "no whole answer in time", path=path)
        connection.settimeout(remaining)
        part = connection.recv(_CHUNK)
        if not part:
            why = "the helper closed the connection" + (" in the middle of a line" if received else "")
            raise HelperError("helper_silent", why, path=path)
        received += part
        if len(received) > _MOST_BYTES:
            raise HelperError("helper_malformed", f"more than {_MOST_BYTES} bytes in one line", path=path)
    line, _, rest = bytes(received).partition(b"\n")
    if rest:
        raise HelperError("helper_malformed", "more than one line for one request", path=path)
    return line


def _answer(line: bytes, path: str) -> HelperAnswer:
    try:
        reply = exact.read(line, _Reply)
    except JsonError as error:
        raise HelperError("helper_malformed", error.message, path=path) from error
    if reply.status == "failed":
        raise HelperError("helper_failed", reply.message or "no reason given", path=path)
    if reply.status != "capacity" or reply.snapshot is None:
        raise HelperError("helper_malformed", f"status {reply.status!r} without a snapshot", path=path)
    said = reply.snapshot
    return HelperAnswer(
        capacity=_capacity(said), observed_at_unix_ms=said.observed_at_unix_ms, state_dir=said.state_dir
    )


def _capacity(said: _Capacity) -> Capacity:
    return Capacity(
        limits=_as(AdmissionLimits, said.limits),
        reserved=_as(Amount, said.reserved),
        available=_as(Amount, said.available),
        unknown_resource_leases=said.unknown_resource_leases,
        admission_blocked=said.admission_blocked,
        workers=tuple(
            WorkerCharge(
                lease=one.lease,
                backend=one.backend,
                phase=one.phase,
                resources=_as(Resources, one.resources) if one.resources else None,
                origin=_as(Origin, one.origin) if one.origin else None,
            )
            for one in said.workers
        ),
        staging=_staging(said.staging) if said.staging else None,
        staging_error=said.staging_error,
    )


def _staging(said: _Staging) -> StagingCapacity:
    return StagingCapacity(
        initialized=said.initialized,
        limits=_as(StagingLimits, said.limits),
        reserved=_as(StagingAmount, said.reserved),
        available=_as(StagingAmount, said.available),
        admission_blocked=said.admission_blocked,
        reservations=tuple(_as(StagedSnapshot, one) for one in said.reservations),
    )


def _as(kind: Any, said: msgspec.Struct) -> Any:
    """The same members in the structure that the computation uses, which refuses what it does not know."""
    return kind(**{name: getattr(said, name) for name in kind.__struct_fields__})


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
