"""Gathers all evidence about one tombstone that can be had without changing anything (leases.md sections 18.4 and 18.6).

Steps 1 and 2 of the procedure: record, client, client scan, endpoint, engine, absence, witnesses, clock. A plan stops
here; `write/retire_run.py` goes on under the lock, with what needs a fence. Everything is gathered even where one part
already speaks against a retirement, because all codes are reported.
"""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from symbi_recover.core.codes import finding
from symbi_recover.core.findings import Finding
from symbi_recover.core.leases import EndpointView, LeaseView, StoreReport
from symbi_recover.core.retirement import Evidence, Fence, LockState, Quiescence, Seen, Times
from symbi_recover.core.witness import (
    DirectoryIdentity,
    Now,
    RecordIdentity,
    Scan,
    Witness,
    WitnessFacts,
    compare,
)
from symbi_recover.read.daemon.endpoint import Reader, changed_since, read_configuration, resolve
from symbi_recover.read.daemon.questions import DaemonError, Engine, Remembered
from symbi_recover.read.evidence.clock import ClockState, StartTime
from symbi_recover.read.evidence.opener import FileFacts
from symbi_recover.read.retirement.clients import judge_client, scan_clients
from symbi_recover.read.retirement.engine import EngineSight, absence_of, look_at_engine, why_not_asked
from symbi_recover.read.retirement.host import Host
from symbi_recover.read.retirement.notes import WITNESSES, decoded, read_own, sha256


class RememberingDaemon(Engine, Protocol):
    """A daemon whose event log can be asked too; `read/daemon/events.py` is one."""

    def remembered(self, name: str) -> tuple[Remembered, ...]:
        """What the log holds about exactly this name."""


class Asker(Struct, frozen=True, kw_only=True):
    """With what the evidence is gathered."""

    host: Host
    connect: Callable[[str], RememberingDaemon]
    home: str
    """The operator's folder."""
    account_home: str | None
    """Of the helper's account."""
    given_path: str
    """The state directory as the operator spelled it."""
    reviewed: frozenset[str] = frozenset()
    read: Reader = read_configuration


class Examination(Struct, frozen=True, kw_only=True):
    """What was seen of one tombstone."""

    view: LeaseView
    report: StoreReport
    sight: EngineSight
    absence: str | None
    """None if name and label are absent, or nobody was asked."""
    seen: Seen
    """All of it as a receipt keeps it."""
    details: dict[str, str]
    """What is known besides each code's own sentence."""
    findings: tuple[Finding, ...] = ()

    @property
    def record(self) -> RecordIdentity:
        """Which bytes."""
        return self.seen.record

    @property
    def endpoint(self) -> EndpointView:
        """Where the recorded client would connect."""
        return self.seen.endpoint

    @property
    def boot_id(self) -> str | None:
        """Which boot; None if it cannot be told."""
        return self.seen.boot_id

    @property
    def unfenced(self) -> "Fenced":
        """What there is while no fence was made."""
        return Fenced(
            scans=self.seen.scans,
            fence=self.seen.fence,
            quiescence=None,
            same_engine=True,
            same_boot=True,
            absence=self.absence,
            engine_codes=self.sight.codes,
        )

    def evidence(self, terms: "Terms", fenced: "Fenced") -> Evidence:
        """All that the table looks at."""
        engine, listener = self.sight.engine, self.sight.listener
        born = engine.containers_born_ns if engine is not None else None
        older = born is not None and born < self.record.last_write_ns
        return Evidence(
            phase=self.view.phase,
            lock=terms.lock,
            store_blocked=self.report.store_blocked,
            record_same=terms.record_same,
            local=terms.local,
            endpoint_code=self.endpoint.code,
            engine_codes=fenced.engine_codes,
            storage="unknown" if born is None else "older" if older else "newer",
            absence=fenced.absence,
            fence=fenced.fence,
            same_engine=fenced.same_engine,
            same_boot=fenced.same_boot,
            staging_acknowledged=terms.staging_acknowledged,
            receipt_ready=terms.receipt_ready,
            confirmed=terms.confirmed,
            client=self.seen.client,
            scans=fenced.scans,
            witnesses=self.seen.witnesses,
            times=self.seen.times,
            activated=listener is not None and listener.activated,
            quiescence=fenced.quiescence,
            accept_wall_clock=terms.accept_wall_clock,
            events=bool(self.seen.events),
            attested=terms.attested,
            details=self.details | terms.details,
        )


class Terms(Struct, frozen=True, kw_only=True):
    """What the caller knows: the lock, and what the operator agreed to."""

    lock: LockState
    local: bool
    """The state directory is on a file system whose locks are all in this kernel."""
    confirmed: bool
    record_same: bool
    """The record is the one that was reviewed."""
    receipt_ready: bool
    staging_acknowledged: bool
    accept_wall_clock: bool
    attested: bool
    details: dict[str, str]
    """Besides those of the examination."""


class Fenced(Struct, frozen=True, kw_only=True):
    """What a fence and the time behind it added; before that, what the examination saw."""

    scans: tuple[Scan, ...]
    fence: Fence
    quiescence: Quiescence | None
    same_engine: bool
    same_boot: bool
    absence: str | None
    engine_codes: tuple[str, ...]


def identity_of(view: LeaseView) -> RecordIdentity:
    """Which bytes a view was made from."""
    return RecordIdentity(
        lease=view.lease,
        sha256=view.sha256,
        size=view.size,
        inode=view.inode,
        mtime_ns=view.mtime_ns,
        ctime_ns=view.ctime_ns,
    )


def examine(view: LeaseView, report: StoreReport, folder: FileFacts, asker: Asker) -> Examination:
    """Gather the evidence about one record.

    Args:
        view: the record.
        report: its store, judged.
        folder: the state directory.
        asker: with what to gather.
    """
    record = identity_of(view)
    directory = DirectoryIdentity(path=_text(report.state_dir), device=folder.device, inode=folder.inode)
    client = judge_client(view.record.docker_binary, asker.reviewed)
    scan = scan_clients(view.record, (report.state_dir, asker.given_path), asker.host)
    # After the scan: an engine that is noted as a witness must be the one to which the last client could turn.
    endpoint, sight, absence, events, details = _ask_engine(view, report, record, asker)
    boot = asker.host.boot_id()
    boot_id = boot if isinstance(boot, str) else None
    now = Now(
        boot_id=boot_id,
        record=record,
        directory=directory,
        endpoint=endpoint.address if endpoint.kind == "unix" else None,
        listener=sight.listener,
        engine=sight.engine,
    )
    witnesses, unusable = _witnesses(view.lease, now, asker.home)
    seen = Seen(
        record=record,
        directory=directory,
        phase=view.phase,
        boot_id=boot_id,
        endpoint=endpoint,
        engine=sight.engine,
        listener=sight.listener,
        client=client,
        scans=(scan,),
        witnesses=witnesses,
        times=_times(record, sight, asker.host),
        fence=Fence(),
        quiescence=None,
        staging=view.record.staging,
        events=events,
    )
    return Examination(
        view=view,
        report=report,
        sight=sight,
        absence=absence,
        seen=seen,
        details=details | _details(client.why, scan, view),
        findings=unusable,
    )


def _ask_engine(
    view: LeaseView, report: StoreReport, record: RecordIdentity, asker: Asker
) -> tuple[EndpointView, EngineSight, str | None, tuple[str, ...], dict[str, str]]:
    """Endpoint, engine, absence (None if absent), events and what is known besides the codes."""
    found = resolve(view.record.docker_environment, home=asker.account_home, read=asker.read)
    endpoint = changed_since(found, record.last_write_ns)
    where = f"{report.state_dir}/{view.lease}.json"
    if endpoint.socket is None:
        shown = endpoint.view
        code = shown.code or "endpoint_unresolved"
        view_of = replace(shown, code=code)
        return view_of, EngineSight(), None, (), {code: shown.reason or ""}
    asleep = why_not_asked(endpoint.socket, asker.host)
    if asleep is not None:
        sight = EngineSight(codes=("engine_unavailable",), details={"engine_unavailable": asleep})
        return endpoint.view, sight, None, (), dict(sight.details)
    engine = asker.connect(endpoint.socket)
    try:
        sight = look_at_engine(endpoint.socket, engine, asker.host, record.last_write_ns)
        details = dict(sight.details)
        if "engine_unavailable" in sight.codes:
            return endpoint.view, sight, None, (), details
        absence, text = absence_of(engine, view, where)
        if absence is not None:
            details[absence] = text
        events = _events(engine, view.record.name) if absence is None else ()
    finally:
        engine.close()
    return endpoint.view, sight, absence, events, details


def _events(engine: RememberingDaemon, name: str) -> tuple[str, ...]:
    """A daemon that cannot be asked has nothing to add: events are never part of a proof."""
    try:
        remembered = engine.remembered(name)
    except DaemonError:
        return ()
    return tuple(f"{one.action} {one.container_id}" for one in remembered)


def _witnesses(lease: str, now: Now, home: str) -> tuple[tuple[WitnessFacts, ...], tuple[Finding, ...]]:
    facts: list[WitnessFacts] = []
    unusable: list[Finding] = []
    for own in read_own(home, WITNESSES, prefix=lease):
        witness = decoded(own, Witness)
        if isinstance(witness, str):
            unusable.append(finding("operator_file_unusable", witness, path=own.path))
        elif witness.record.lease == lease:
            facts.append(compare(witness, now, name=own.name, sha256=sha256(own)))
    return tuple(facts), tuple(unusable)


def _times(record: RecordIdentity, sight: EngineSight, host: Host) -> Times:
    boot, clock = host.boot_started(), host.clock_state()
    return Times(
        now_ns=host.now_ns(),
        last_write_ns=record.last_write_ns,
        boot_ns=boot.earliest_ns if isinstance(boot, StartTime) else None,
        engine_ns=sight.started_ns,
        synchronised=clock.synchronised if isinstance(clock, ClockState) else None,
    )


def _details(wrapper: str | None, scan: Scan, view: LeaseView) -> dict[str, str]:
    details = scan_details(scan)
    if wrapper is not None:
        details["client_is_wrapper"] = wrapper
    if view.record.staging:
        details["staging_unacknowledged"] = f"snapshots {', '.join(view.record.staging)}"
    details["phase_not_retirable"] = f"phase {view.phase}"
    return details


def scan_details(scan: Scan) -> dict[str, str]:
    """What is known of a client scan's codes besides their own sentences."""
    details: dict[str, str] = {}
    if scan.hits:
        details["client_alive"] = "; ".join(
            f"process {hit.pid} ({hit.program}): {hit.why}" for hit in scan.hits
        )
    if scan.unreliable:
        details["client_scan_unreliable"] = "; ".join(scan.unreliable)
    return details


def _text(path: str) -> str:
    """A path as text that can be written; odd bytes show themselves."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def with_run(examination: Examination, fenced: Fenced) -> Seen:
    """What was seen, with what the fenced part added."""
    return replace(examination.seen, scans=fenced.scans, fence=fenced.fence, quiescence=fenced.quiescence)
