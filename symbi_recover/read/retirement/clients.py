"""Whether anybody is left who could send the request: the client scan, and what a plain client is (leases.md 18.4).

One pass, for every process but this one:

1. its command line must be readable; an empty one counts only for a kernel thread or where every thread has ended;
2. `symbi-<lease>` in it is a hit: a plain client shows name and label there in clear;
3. an argument or an open descriptor that names `DIR/.environment-*` is a hit;
4. the recorded client with exactly the recorded environment is a hit; environments of no other process are read,
   and nothing of any is kept.

Two clean passes in a row, at least a second apart, are what counts (K2). A process that vanishes while it is read is
no fault; descriptors, programs and environments that cannot be read are only counted.
"""

import hashlib
import os
from collections.abc import Mapping

from msgspec import Struct

from symbi_recover.core.errors import UnexaminedError
from symbi_recover.core.lease_records import LeaseRecord
from symbi_recover.core.retirement import Client
from symbi_recover.core.witness import Hit, Scan
from symbi_recover.read.evidence.kernel import CannotKnow, Gone, Why
from symbi_recover.read.evidence.opener import OpenedFile, examining
from symbi_recover.read.evidence.processes import (
    ENDED_STATES,
    Executable,
    Observation,
    observe,
    read_identity,
    split_arguments,
    thread_states,
)
from symbi_recover.read.retirement.host import Host

PASSES = 2
GAP_SECONDS = 1.0
_READS = 25
_SHORT_SECONDS = 0.02
_PLAIN_NAME = "docker"
_ELF = b"\x7fELF"
_MOST_CLIENT = 1 << 28
_ENVIRONMENT = b"/.environment-"


class _Wanted(Struct, frozen=True):
    """What a client of one lease looks like."""

    name: bytes
    folders: tuple[bytes, ...]
    binary: bytes
    file: tuple[int, int] | None
    environment: frozenset[bytes]


class _Pass:
    """The findings of one pass."""

    def __init__(self) -> None:
        self.processes = 0
        self.unreadable = 0
        self.hits: list[Hit] = []
        self.unreliable: list[str] = []


def scan_clients(record: LeaseRecord, directories: tuple[str, ...], host: Host) -> Scan:
    """Look for clients of a lease.

    Args:
        record: whose client is looked for.
        directories: spellings of the state directory's path.
        host: whose processes are looked at.
    """
    faults = host.scan_faults()
    wanted = _wanted(record, directories)
    one = _Pass()
    for number in range(PASSES):
        if number:
            host.pause(GAP_SECONDS)
        one = _pass(wanted, host)
        if one.hits or one.unreliable:
            return _scan(number + 1, one, faults)
    return _scan(PASSES, one, faults)


def _scan(passes: int, one: _Pass, faults: tuple[str, ...]) -> Scan:
    return Scan(
        passes=passes,
        processes=one.processes,
        hits=tuple(one.hits),
        unreliable=(*faults, *one.unreliable),
        unreadable=one.unreadable,
    )


def _wanted(record: LeaseRecord, directories: tuple[str, ...]) -> _Wanted:
    try:
        status = os.stat(record.docker_binary)
        file = (status.st_dev, status.st_ino)
    except (OSError, ValueError):
        file = None
    return _Wanted(
        name=record.name.encode(),
        folders=tuple(os.fsencode(folder) + _ENVIRONMENT for folder in dict.fromkeys(directories)),
        binary=record.docker_binary.encode(),
        file=file,
        environment=_pairs(record.docker_environment),
    )


def _pairs(environment: Mapping[str, str]) -> frozenset[bytes]:
    return frozenset(
        f"{name}={value}".encode("utf-8", "surrogateescape") for name, value in environment.items()
    )


def _pass(wanted: _Wanted, host: Host) -> _Pass:
    one = _Pass()
    pids = host.pids()
    if isinstance(pids, CannotKnow):
        one.unreliable.append(pids.detail)
        return one
    if os.getpid() not in pids:
        one.unreliable.append("the list of processes does not hold this one")
    for pid in pids:
        if pid != os.getpid():
            _look(pid, wanted, host, one)
    return one


def _look(pid: int, wanted: _Wanted, host: Host, one: _Pass) -> None:
    seen = _steady(pid, host)
    if seen is None:
        return
    one.processes += 1
    if isinstance(seen, str):
        one.unreliable.append(f"process {pid}: {seen}")
        return
    reason = _reason(seen, wanted, one)
    if reason is not None:
        one.hits.append(Hit(pid=pid, program=_program(seen), why=reason))


def _steady(pid: int, host: Host) -> Observation | str | None:
    """A process with a readable command line; why there is none; or None for one that has gone."""
    why = "its command line is empty"
    for number in range(_READS):
        if number:
            host.pause(_SHORT_SECONDS)
        seen = observe(pid, descriptors=True)
        if isinstance(seen, Gone):
            return None
        if isinstance(seen, CannotKnow):
            why = seen.detail
        elif isinstance(seen.arguments, CannotKnow):
            why = seen.arguments.detail
        elif seen.arguments or seen.stat.kernel_thread or _ended(pid):
            return seen
        if isinstance(read_identity(pid), Gone):
            return None
    return why


def _ended(pid: int) -> bool:
    """Every thread has ended: a first thread that has leaves the command line empty while others run on."""
    states = thread_states(pid)
    return isinstance(states, tuple) and all(state in ENDED_STATES for state in states)


def _program(seen: Observation) -> str:
    path = seen.executable.path if isinstance(seen.executable, Executable) else seen.stat.command
    return path.decode("utf-8", "backslashreplace")


def _reason(seen: Observation, wanted: _Wanted, one: _Pass) -> str | None:
    arguments = seen.arguments if isinstance(seen.arguments, bytes) else b""
    if wanted.name in arguments:
        return "its command line names the lease's container"
    if any(folder in arguments for folder in wanted.folders):
        return "its command line names an environment file of the store"
    if isinstance(seen.descriptors, CannotKnow):
        one.unreadable += 1
    for descriptor in seen.descriptors if isinstance(seen.descriptors, tuple) else ():
        if isinstance(descriptor.target, CannotKnow):
            one.unreadable += 1
        elif descriptor.target.startswith(wanted.folders):
            return "it holds an environment file of the store open"
    if isinstance(seen.executable, CannotKnow):
        one.unreadable += not seen.stat.kernel_thread and seen.executable.why is not Why.MISSING
        return None
    same = seen.executable.path == wanted.binary or (
        wanted.file is not None and (seen.executable.device, seen.executable.inode) == wanted.file
    )
    return _same_environment(seen.stat.pid, wanted, one) if same else None


def _same_environment(pid: int, wanted: _Wanted, one: _Pass) -> str | None:
    seen = observe(pid, environment=True)
    if not isinstance(seen, Observation) or not isinstance(seen.environment, bytes):
        one.unreadable += not isinstance(seen, Gone)
        return None
    if frozenset(split_arguments(seen.environment)) == wanted.environment:
        return "it is the recorded client with the recorded environment"
    return None


def judge_client(path: str, reviewed: frozenset[str] = frozenset()) -> Client:
    """Say whether the recorded program is a plain Docker client.

    Args:
        path: `docker_binary` of the record.
        reviewed: SHA-256 of wrappers that the operator has read.
    """
    try:
        with examining(path):
            real = os.path.realpath(path)
        with OpenedFile.open(real) as file:
            facts = file.facts
            if facts.kind != "file":
                return _wrapper(path, f"it is a {facts.kind}")
            why = None
            if facts.uid != 0 or facts.mode & 0o022:
                why = (
                    f"it belongs to uid {facts.uid}, mode {facts.mode:04o}: others than root could change it"
                )
            elif os.path.basename(real) != _PLAIN_NAME:
                why = f"it is named {os.path.basename(real)!r}"
            elif b"".join(file.blocks(0, len(_ELF))) != _ELF:
                why = "it is no program file, but perhaps a script"
            if why is None:
                return Client(kind="plain", path=real)
            if facts.size > _MOST_CLIENT:
                return _wrapper(path, why)
            digest = hashlib.sha256()
            for block in file.blocks(0, facts.size):
                digest.update(block)
    except UnexaminedError as error:
        return _wrapper(path, f"it cannot be examined: {error.message}")
    known = digest.hexdigest()
    return Client(kind="reviewed" if known in reviewed else "wrapper", path=real, sha256=known, why=why)


def _wrapper(path: str, why: str) -> Client:
    return Client(kind="wrapper", path=path, why=why)
