"""The snapshot pool of a lease store: `staging.lock`, `staging.conf` and `staging/` (leases.md section 11).

`read_staging` gathers what lies there, bounded and without a lock; who holds one is read from the kernel's list.
`judge_staging` turns that, and the snapshots that records name, into totals and findings. Payload data is never
opened. Damage here never stops the helper; it stops staging work, so the totals then give way to a reason.
"""

import os
from collections.abc import Mapping
from itertools import islice

from msgspec import Struct

from symbi_recover.core.codes import finding
from symbi_recover.core.errors import UnexaminedError
from symbi_recover.core.findings import Finding
from symbi_recover.core.lease_records import (
    DEFAULT_STAGING,
    MOST_RESERVATIONS,
    SMALL_LIMIT,
    StagingLimits,
    StagingReservation,
)
from symbi_recover.core.leases import StagedSnapshot, StagingAmount, StagingCapacity
from symbi_recover.core.scalars import is_canonical_uuid
from symbi_recover.core.words import counted
from symbi_recover.read.evidence.kernel import PROC
from symbi_recover.read.evidence.locate import lstat_at, readable
from symbi_recover.read.evidence.locks import LockState, ask_lock
from symbi_recover.read.evidence.opener import FileFacts, OpenedFile, facts_of, open_folder
from symbi_recover.wire.lease import SmallReading, read_reservation, read_staging_limits

_MOST_INSIDE = 64
_U64 = 2**64


class PoolEntry(Struct, frozen=True, kw_only=True):
    """One entry of `staging/`."""

    name: str
    facts: FileFacts | None
    reservation_facts: FileFacts | None = None
    reservation: SmallReading | None = None
    data_facts: FileFacts | None = None
    strangers: tuple[str, ...] = ()
    """Other names inside; any of them keeps the folder from being removed."""
    held: bool | None = None
    """A process holds the reservation; None where that cannot be told."""
    unreadable: str | None = None


class Pool(Struct, frozen=True, kw_only=True):
    """What lies in a state directory for staging; None for what is not there."""

    lock: FileFacts | None = None
    lock_busy: bool = False
    configuration: FileFacts | None = None
    limits: SmallReading | None = None
    folder: FileFacts | None = None
    entries: tuple[PoolEntry, ...] = ()
    truncated: bool = False
    """There are more entries than the format allows; the rest was not read."""
    unreadable: str | None = None


class PoolVerdict(Struct, frozen=True, kw_only=True):
    """Totals, or the reason why there are none; and what was found."""

    capacity: StagingCapacity | None
    error: str | None
    findings: tuple[Finding, ...]


def read_staging(folder: int, proc: str = PROC) -> Pool:
    """Gather what lies in an open state directory for staging. Nothing here raises for what is found."""
    lock, configuration, staging = (
        _facts(name, folder) for name in ("staging.lock", "staging.conf", "staging")
    )
    limits = None
    if configuration is not None and configuration.kind == "file":
        configuration, data = _opened("staging.conf", folder, configuration)
        limits = read_staging_limits(data) if data is not None else None
    entries: list[PoolEntry] = []
    truncated, unreadable = False, None
    if staging is not None and staging.kind == "folder":
        try:
            with open_folder("staging", parent=folder) as pool:
                names, truncated = list_names(pool, MOST_RESERVATIONS)
                entries = [_entry(name, pool, proc) for name in names]
        except (UnexaminedError, OSError) as error:
            unreadable = str(error)
    return Pool(
        lock=lock,
        lock_busy=lock is not None and lock.kind == "file" and bool(_held("staging.lock", folder, proc)),
        configuration=configuration,
        limits=limits,
        folder=staging,
        entries=tuple(entries),
        truncated=truncated,
        unreadable=unreadable,
    )


def _entry(name: str, pool: int, proc: str) -> PoolEntry:
    facts = _facts(name, pool)
    if facts is None or facts.kind != "folder":
        return PoolEntry(name=name, facts=facts)
    try:
        with open_folder(name, parent=pool) as inside:
            names, _ = list_names(inside, _MOST_INSIDE)
            reservation_facts = _facts("reservation", inside)
            reservation = held = None
            if reservation_facts is not None and reservation_facts.kind == "file":
                reservation_facts, data = _opened("reservation", inside, reservation_facts)
                reservation = None if data is None else read_reservation(data, name)
                held = _held("reservation", inside, proc)
            return PoolEntry(
                name=name,
                facts=facts,
                reservation_facts=reservation_facts,
                reservation=reservation,
                data_facts=_facts("data", inside),
                strangers=tuple(name for name in names if name not in ("reservation", "data")),
                held=held,
            )
    except (UnexaminedError, OSError) as error:
        return PoolEntry(name=name, facts=facts, unreadable=str(error))


def list_names(folder: int, most: int) -> tuple[list[str], bool]:
    """At most `most` names in an open folder, sorted, and whether there are more.

    Raises:
        OSError: the folder cannot be listed.
    """
    with os.scandir(folder) as entries:
        names = [entry.name for entry in islice(entries, most + 1)]
    return sorted(names[:most]), len(names) > most


def _facts(name: str, folder: int) -> FileFacts | None:
    status = lstat_at(name, folder)
    return None if status is None else facts_of(status)


def _opened(name: str, folder: int, seen: FileFacts) -> tuple[FileFacts, bytes | None]:
    """The facts and the bytes of one opened file: what was seen before may have been another."""
    try:
        with OpenedFile.open(name, folder=folder) as file:
            return file.facts, file.read(SMALL_LIMIT) if file.facts.kind == "file" else None
    except UnexaminedError:
        return seen, None


def _held(name: str, folder: int, proc: str) -> bool | None:
    try:
        with OpenedFile.open(name, folder=folder) as file:
            answer = ask_lock(file.descriptor, proc)
    except UnexaminedError:
        return None
    return None if answer.state is LockState.UNKNOWN else answer.state is not LockState.FREE


def judge_staging(
    pool: Pool, named: Mapping[str, tuple[str, ...]], *, directory: FileFacts, uid: int, path: str
) -> PoolVerdict:
    """Judge a pool. Pure.

    Args:
        pool: from `read_staging`.
        named: for each snapshot that records name, the leases of those records, sorted.
        directory: the state directory itself.
        uid: the helper's account.
        path: of the state directory, for messages.
    """
    if directory.mode & 0o077:
        found = (
            (finding("staging_unavailable", f"mode {directory.mode:04o}", path=path),) if pool.folder else ()
        )
        return PoolVerdict(capacity=None, error="the state directory is not private", findings=found)
    findings: list[Finding] = []
    snapshots: list[StagedSnapshot] = []
    _judge_frame(pool, uid, path, findings)
    for entry in pool.entries:
        where = readable(f"{path}/staging/{entry.name}")
        sound = _judge_entry(entry, uid, where, findings)
        if sound is not None:
            leases = named.get(entry.name, ())
            snapshots.append(
                StagedSnapshot(
                    id=sound.id,
                    reserved_bytes=sound.reserved_bytes,
                    active_hold=entry.held,
                    worker_leases=leases,
                )
            )
            if not leases and entry.held is False:
                findings.append(
                    finding("staging_orphan", f"{counted(sound.reserved_bytes, 'byte')} reserved", path=where)
                )
    there = {snapshot.id for snapshot in snapshots}
    for snapshot, leases in sorted(named.items()):
        if snapshot not in there:
            message = f"snapshot {snapshot} is named by {', '.join(leases)} and has no usable reservation"
            findings.append(finding("staging_dangling_ref", message, path=f"{path}/staging/{snapshot}"))
    return _total(pool, snapshots, findings)


def _judge_frame(pool: Pool, uid: int, path: str, findings: list[Finding]) -> None:
    """The lock, the limits, and the folder itself."""
    for name, facts in (("staging.lock", pool.lock), ("staging.conf", pool.configuration)):
        if facts is not None and not facts.private_to(uid):
            findings.append(finding("staging_bad_entry", "not a private file", path=f"{path}/{name}"))
    if pool.configuration is not None:
        faults = pool.limits.faults if pool.limits else ()
        if pool.limits is None and pool.configuration.kind == "file":
            findings.append(finding("staging_bad_entry", "cannot be read", path=f"{path}/staging.conf"))
        findings.extend(
            finding(f.code, f.message, path=f"{path}/staging.conf", start=f.offset) for f in faults
        )
    if pool.folder is None:
        return
    where = f"{path}/staging"
    if pool.lock is None:
        findings.append(finding("staging_bad_entry", "staging/ is there without staging.lock", path=where))
    if not _private_folder(pool.folder, uid):
        findings.append(finding("staging_bad_entry", "not a private folder", path=where))
    if pool.unreadable is not None:
        findings.append(finding("staging_bad_entry", f"cannot be listed: {pool.unreadable}", path=where))
    if pool.truncated:
        message = f"more than {MOST_RESERVATIONS} entries; the rest was not read"
        findings.append(finding("staging_bad_entry", message, path=where))


def _judge_entry(
    entry: PoolEntry, uid: int, where: str, findings: list[Finding]
) -> StagingReservation | None:
    """Say what is wrong with one entry; give its reservation if that is sound."""

    def bad(message: str) -> None:
        findings.append(finding("staging_bad_entry", message, path=where))

    problem = None
    if not is_canonical_uuid(entry.name):
        problem = "the name is not a UUID in canonical form"
    elif entry.facts is None or not _private_folder(entry.facts, uid):
        problem = "not a private folder"
    elif entry.unreadable is not None:
        problem = f"cannot be listed: {entry.unreadable}"
    if problem is not None:
        bad(problem)
        return None
    if entry.strangers:
        shown = ", ".join(map(repr, entry.strangers[:3]))
        bad(f"{shown} beside the reservation keep it from being removed")
    if entry.data_facts is not None and not _private_folder(entry.data_facts, uid):
        bad("data is not a private folder")
    value = entry.reservation.value if entry.reservation else None
    facts = entry.reservation_facts
    if isinstance(value, StagingReservation) and facts is not None and facts.private_to(uid):
        return value
    if entry.data_facts is not None:
        findings.append(finding("staging_uncharged_data", "data without a usable reservation", path=where))
    elif facts is None:
        bad("there is no reservation")
    else:
        faults = entry.reservation.faults if entry.reservation else ()
        bad(f"reservation: {faults[0].message if faults else 'not a private, readable file'}")
    return None


def _private_folder(facts: FileFacts, uid: int) -> bool:
    return facts.kind == "folder" and facts.uid == uid and not facts.mode & 0o077


def _total(pool: Pool, snapshots: list[StagedSnapshot], findings: list[Finding]) -> PoolVerdict:
    worse = [found for found in findings if found.code != "staging_orphan"]
    used = sum(snapshot.reserved_bytes for snapshot in snapshots)
    error = None
    if worse:
        error = f"{worse[0].code}: {worse[0].message}"
    elif pool.lock_busy:
        error = "staging.lock is held by another process"
    elif used >= _U64:
        error = "the reservations do not add up within 64 bits"
    if error is not None:
        return PoolVerdict(capacity=None, error=error, findings=tuple(findings))
    value = pool.limits.value if pool.limits else None
    limits = value if isinstance(value, StagingLimits) else DEFAULT_STAGING
    count = len(snapshots)
    capacity = StagingCapacity(
        initialized=pool.lock is not None,
        limits=limits,
        reserved=StagingAmount(snapshots=count, reserved_bytes=used),
        available=StagingAmount(
            snapshots=max(0, limits.max_snapshots - count),
            reserved_bytes=max(0, limits.reserved_bytes - used),
        ),
        admission_blocked=count >= limits.max_snapshots or used >= limits.reserved_bytes,
        reservations=tuple(snapshots),
    )
    return PoolVerdict(capacity=capacity, error=None, findings=tuple(findings))
