"""The decision table T1 to T16, as a pure function over typed evidence (leases.md section 18.5).

1. Preconditions, each with its code; all are looked at.
2. The rows that can retire: T1 (reboot, witnessed), T2 (engine replaced, witnessed), T3 (engine quiescent), and by
   the wall clock, only if the operator accepts it, T4 and T5. One of them suffices.
3. A client that lives speaks against every row.
4. Without a row: why what there is does not suffice (T4 to T15).

What is not here: gathering. A fence is asked for by the preconditions, so a plan, which makes none, never retires.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from symbi_recover.core.codes import CODES, finding
from symbi_recover.core.findings import Finding, Severity
from symbi_recover.core.retirement import MARGIN_NS, Decision, Evidence, Row

PHASES = ("creating", "uncertain")
_THIRTY_SECONDS = 30_000_000_000


def decide(evidence: Evidence) -> Decision:
    """Apply the table."""
    obstacles = list(dict.fromkeys(_obstacles(evidence)))
    table = rows(evidence)
    proofs = [row.proof for row in table if row.holds]
    alive = any(scan.hits for scan in evidence.scans)
    codes = [*obstacles, *(["client_alive"] if alive else [])]
    if not proofs:
        codes += _insufficient(evidence)
    if not codes and evidence.fence.state != "unbroken":
        codes.append("fence_failed")
    retire = bool(proofs) and not codes
    if retire:
        codes += proofs
    if evidence.events and proofs:
        codes.append("events_seen")
    return Decision(
        retire=retire,
        proofs=tuple(proofs),
        rows=table,
        findings=tuple(_finding(code, evidence) for code in dict.fromkeys(codes)),
    )


def might_retire(evidence: Evidence) -> bool:
    """Whether a confirmed run could still retire as things stand; if not, the engine need not be touched."""
    if any(scan.hits for scan in evidence.scans) or set(_obstacles(evidence, fence=False)) - {
        "not_confirmed"
    }:
        return False
    by_census = _plain(evidence) and _scanned(evidence)
    return by_census or any(row.holds for row in rows(evidence))


def _obstacles(e: Evidence, *, fence: bool = True) -> Iterator[str]:
    """The preconditions of section 18.5 that do not hold, in its order."""
    yield from _store_obstacles(e)
    if e.endpoint_code is not None:
        yield e.endpoint_code
    yield from e.engine_codes
    if e.storage != "older" and e.endpoint_code is None and not e.engine_codes:
        yield "engine_storage_new"
    if e.absence is not None:
        yield e.absence
    if fence and e.fence.state not in ("unbroken", "not_made"):
        yield e.fence.state
    held = (
        (e.same_engine, "engine_changed"),
        (e.same_boot, "boot_changed"),
        (e.staging_acknowledged, "staging_unacknowledged"),
        (e.receipt_ready, "receipt_unavailable"),
        (e.confirmed and e.lock != "not_taken", "not_confirmed"),
    )
    yield from (code for holds, code in held if not holds)


def _store_obstacles(e: Evidence) -> Iterator[str]:
    if e.lock not in ("held", "not_taken"):
        yield e.lock
    held = (
        (e.store_blocked is False, "store_blocked"),
        (e.phase in PHASES, "phase_not_retirable"),
        (e.record_same, "record_changed"),
        (e.local, "state_dir_not_local"),
    )
    yield from (code for holds, code in held if not holds)


def rows(e: Evidence) -> tuple[Row, ...]:
    """The rows that can retire, with what each would still need."""
    return (
        _row("T1", "proof_reboot_witnessed", _t1(e)),
        _row("T2", "proof_engine_replaced", _t2(e)),
        _row("T3", "proof_engine_quiescent", _t3(e)),
        _row("T4", "proof_reboot_by_clock", _by_clock(e, e.times.boot_ns, "the boot")),
        _row("T5", "proof_engine_replaced_by_clock", _t5(e)),
    )


def _row(name: str, proof: str, missing: Iterator[str]) -> Row:
    lacking = tuple(missing)
    return Row(row=name, proof=proof, holds=not lacking, missing=lacking)


def _t1(e: Evidence) -> Iterator[str]:
    seen = [witness for witness in e.witnesses if witness.unchanged and witness.rebooted]
    if not seen:
        yield "a witness of this very record from before the last reboot"
    elif not any(witness.same_storage for witness in seen):
        yield "an engine with the data root that was witnessed"
    if not _plain(e) and e.client.kind != "reviewed":
        yield "a plain Docker client, or a wrapper that is listed as reviewed"


def _t2(e: Evidence) -> Iterator[str]:
    seen = [witness for witness in e.witnesses if witness.unchanged and witness.replaced]
    if not seen:
        yield "a witness of this very record, and another engine and listener since"
    else:
        if not any(witness.anchored for witness in seen):
            yield "a witness made under the lock, with a clean client scan"
        if not any(witness.anchored and witness.same_storage for witness in seen):
            yield "an engine with the data root that was witnessed"
        if not any(witness.anchored and witness.same_storage and witness.own_listener for witness in seen):
            yield "a witness of an engine that owned its listener"
    if e.activated:
        yield "a listener of the engine's own"
    yield from _anchor(e)


def _t3(e: Evidence) -> Iterator[str]:
    yield from _anchor(e)
    if e.fence.state != "unbroken":
        yield "a fence that stands"
    if e.quiescence is None or not e.quiescence.quiet:
        yield "an engine without any open connection"


def _t5(e: Evidence) -> Iterator[str]:
    yield from _by_clock(e, e.times.engine_ns, "the engine's start")
    if e.activated:
        yield "a listener of the engine's own"
    if not _scanned(e):
        yield "a clean client scan"


def _by_clock(e: Evidence, start_ns: int | None, what: str) -> Iterator[str]:
    """K3 and a start that is later by the clock."""
    if e.phase != "uncertain":
        yield "phase uncertain"
    if not _plain(e):
        yield "a plain Docker client"
    if not _later(e, start_ns):
        yield f"{what} at least an hour after the record's last write"
    elif not e.times.sound:
        yield "a synchronised clock, and no time in the future"
    if not e.accept_wall_clock:
        yield "--accept-wall-clock"


def _anchor(e: Evidence) -> Iterator[str]:
    if not _scanned(e):
        yield "a clean client scan"
    if not _plain(e):
        yield "a plain Docker client"


def _plain(e: Evidence) -> bool:
    return e.client.kind == "plain"


def _scanned(e: Evidence) -> bool:
    """K2, each time it was looked for."""
    return bool(e.scans) and all(scan.clean for scan in e.scans)


def _later(e: Evidence, start_ns: int | None) -> bool:
    return start_ns is not None and start_ns - e.times.last_write_ns >= MARGIN_NS


def _insufficient(e: Evidence) -> Iterator[str]:
    """Without a row that retires: every row that refuses (T4 to T15)."""
    quiet = e.quiescence is not None and e.quiescence.quiet
    seen = [witness for witness in e.witnesses if witness.unchanged]
    replaced = any(witness.replaced for witness in seen)
    queued = replaced and not any(witness.replaced and witness.own_listener for witness in seen)
    engine_later = _later(e, e.times.engine_ns)
    if (engine_later or _later(e, e.times.boot_ns)) and not _accepted(e):
        yield "wall_clock_only"
    if (replaced or engine_later) and (e.activated or queued) and not quiet:
        yield "engine_socket_activated"
    if e.quiescence is not None and e.quiescence.code is not None:
        yield e.quiescence.code
    if any(scan.unreliable or (scan.passes < 2 and not scan.hits) for scan in e.scans):
        yield "client_scan_unreliable"
    if not _plain(e):
        yield "client_is_wrapper"
    anchor = _scanned(e) or any(witness.rebooted for witness in seen)
    # Under another data root nothing is flushed: a container may sit in the old one. A replacement flushes only what was
    # sent before a client scan that was clean then, to a listener that ended with its engine.
    replaced_since = not e.activated and any(
        one.replaced and one.anchored and one.own_listener for one in seen if one.same_storage
    )
    flush = quiet or replaced_since or any(one.rebooted and one.same_storage for one in seen)
    yield from _short(e, anchor=anchor, flush=flush)
    noted = ((e.events, "events_only"), (e.attested, "attestation_only"))
    yield from (code for there, code in noted if there)


def _short(e: Evidence, *, anchor: bool, flush: bool) -> Iterator[str]:
    """Anchor without flush (T10), flush without anchor (T11), or neither (T7 to T9)."""
    if anchor and not flush:
        yield "flush_missing"
    if flush and not e.scans:
        yield "client_scan_unreliable"
    if anchor or flush:
        return
    if e.fence.state == "unbroken":
        yield "fence_only"
    if e.absence is None and _asked(e):
        yield "absence_only"
    if e.times.now_ns - e.times.last_write_ns > _THIRTY_SECONDS:
        yield "elapsed_only"


def _asked(e: Evidence) -> bool:
    """The engine was asked about name and label: only then is no word of a container its absence."""
    return e.endpoint_code is None and "engine_unavailable" not in e.engine_codes


def _accepted(e: Evidence) -> bool:
    return e.accept_wall_clock and e.phase == "uncertain" and e.times.sound and _plain(e)


def _finding(code: str, e: Evidence) -> Finding:
    found = finding(code, e.details.get(code, CODES[code].meaning))
    # Not to see the engine is no harm elsewhere; here it refuses.
    return replace(found, severity=Severity.ATTENTION) if code == "engine_unseen" else found
