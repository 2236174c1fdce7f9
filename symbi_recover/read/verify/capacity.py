"""Admission as the helper counts it, computed from records and limits (leases.md sections 10 and 12). Pure.

Every record counts, whatever its phase. A record that cannot be read is a worker of unknown charge: the totals are
then None, never smaller. `differences` compares the computation with what a running helper answered.
"""

from collections.abc import Iterable

from symbi_recover.core.lease_records import AdmissionLimits, LeaseRecord
from symbi_recover.core.leases import Amount, Capacity, StagingCapacity, WorkerCharge

_MOST = 2**64 - 1


def compute(
    records: Iterable[LeaseRecord],
    limits: AdmissionLimits | None,
    *,
    unknown_workers: int,
    staging: StagingCapacity | None,
    staging_error: str | None,
) -> Capacity:
    """Add up the charges.

    Args:
        records: all good ones.
        limits: None if they cannot be read.
        unknown_workers: bad records.
        staging: the pool, if it could be added up.
        staging_error: why not, otherwise.
    """
    workers = tuple(
        WorkerCharge(
            lease=record.lease,
            backend=record.state.backend,
            phase=record.state.shown,
            resources=record.resources,
            origin=record.origin,
        )
        for record in sorted(records, key=lambda one: one.lease)
    )
    uncharged = sum(worker.resources is None for worker in workers)
    reserved = _reserved(workers, unknown_workers)
    return Capacity(
        limits=limits,
        reserved=reserved,
        available=_available(reserved, limits),
        unknown_resource_leases=uncharged + unknown_workers,
        admission_blocked=_blocked(reserved, limits),
        workers=workers,
        staging=staging,
        staging_error=staging_error,
    )


def overflows(capacity: Capacity) -> bool:
    """All charges are known, but their sum is not a 64-bit number."""
    return capacity.reserved.memory_bytes is None and not capacity.unknown_resource_leases


def _reserved(workers: tuple[WorkerCharge, ...], unknown_workers: int) -> Amount:
    charges = [worker.resources for worker in workers if worker.resources is not None]
    memory, cpu = sum(c.memory_bytes for c in charges), sum(c.cpu_nanos for c in charges)
    count = None if unknown_workers else len(workers)
    if unknown_workers or len(charges) < len(workers) or memory > _MOST or cpu > _MOST:
        return Amount(workers=count, memory_bytes=None, cpu_nanos=None)
    return Amount(workers=count, memory_bytes=memory, cpu_nanos=cpu)


def _available(reserved: Amount, limits: AdmissionLimits | None) -> Amount:
    if limits is None:
        return Amount(workers=None, memory_bytes=None, cpu_nanos=None)
    return Amount(
        workers=_left(limits.max_workers, reserved.workers),
        memory_bytes=_left(limits.memory_bytes, reserved.memory_bytes),
        cpu_nanos=_left(limits.cpu_nanos, reserved.cpu_nanos),
    )


def _left(limit: int, used: int | None) -> int | None:
    return None if used is None else max(0, limit - used)


def _blocked(reserved: Amount, limits: AdmissionLimits | None) -> bool:
    if (
        limits is None
        or reserved.workers is None
        or reserved.memory_bytes is None
        or reserved.cpu_nanos is None
    ):
        return True
    return (
        reserved.workers >= limits.max_workers
        or reserved.memory_bytes >= limits.memory_bytes
        or reserved.cpu_nanos >= limits.cpu_nanos
    )


def differences(computed: Capacity, answered: Capacity) -> tuple[str, ...]:
    """One sentence for each point on which the helper's answer is not the computation from its files."""
    found: list[str] = []
    for name in ("limits", "reserved", "available", "unknown_resource_leases", "admission_blocked"):
        ours, theirs = getattr(computed, name), getattr(answered, name)
        if ours != theirs:
            why = ""
            if name == "limits":
                why = "; the helper reads admission.conf only at its start"
            elif name in ("available", "admission_blocked") and computed.limits != answered.limits:
                why = "; it follows from the limits"
            found.append(f"{name}: the files say {_shown(ours)}, the helper says {_shown(theirs)}{why}")
    ours_by, theirs_by = ({w.lease: w for w in c.workers} for c in (computed, answered))
    for lease in sorted(ours_by.keys() | theirs_by.keys()):
        if lease not in theirs_by:
            found.append(f"lease {lease}: has a record, and the helper does not count it")
        elif lease not in ours_by:
            found.append(f"lease {lease}: the helper counts it, and it has no good record")
        elif ours_by[lease] != theirs_by[lease]:
            found.append(f"lease {lease}: record and helper differ in phase, charge or origin")
    found += _staging_differences(computed, answered)
    return tuple(found)


def _staging_differences(computed: Capacity, answered: Capacity) -> list[str]:
    ours, theirs = computed.staging, answered.staging
    if ours is None or theirs is None:
        if (ours is None) == (theirs is None):
            return []
        reason = computed.staging_error if ours is None else answered.staging_error
        return [f"staging: only {'the helper' if ours is None else 'the files'} can be added up ({reason})"]
    found = [
        f"staging {name}: the files say {_shown(getattr(ours, name))}, the helper says {_shown(getattr(theirs, name))}"
        for name in ("initialized", "limits", "reserved", "available", "admission_blocked")
        if getattr(ours, name) != getattr(theirs, name)
    ]
    our_ids, their_ids = (
        {r.id: (r.reserved_bytes, r.worker_leases) for r in c.reservations} for c in (ours, theirs)
    )
    # Holds come and go by themselves, so they are not compared.
    found += [
        f"staging snapshot {one}: files and helper differ"
        for one in sorted(our_ids.keys() | their_ids.keys())
        if our_ids.get(one) != their_ids.get(one)
    ]
    return found


def _shown(value: object) -> str:
    fields = getattr(value, "__struct_fields__", None)
    if fields is None:
        return "unknown" if value is None else str(value)
    return ", ".join(f"{name} {_shown(getattr(value, name))}" for name in fields)
