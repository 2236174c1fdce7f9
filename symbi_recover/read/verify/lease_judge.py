"""Judges a lease store from its snapshot: what blocks the helper, tombstones, charges (leases.md 9, 10, 14). Pure.

1. For whom: the account given, else our own; root judges for the owner where that account's helper was there.
2. The directory, then every entry; nothing stops at the first fault.
3. Good records: tombstone or work in progress, what nobody supervises, what /proc said of its worker.
4. The snapshot pool and the admission totals.

The same snapshot gives the same report. Write commands judge one taken under the lock and refuse if `.blocked`.
"""

import os
from collections.abc import Mapping

from symbi_recover.core.codes import finding
from symbi_recover.core.codes.lease import BLOCKING, UNEXAMINED
from symbi_recover.core.findings import Finding, NotChecked, Severity
from symbi_recover.core.lease_records import (
    DEFAULT_ADMISSION,
    MOST_RECORDS,
    SOCKET_PATH_LIMIT,
    AdmissionLimits,
    Created,
    Creating,
    HostCreated,
    LeaseRecord,
    Uncertain,
    VmCreated,
)
from symbi_recover.core.leases import (
    Capacity,
    EntryView,
    Helper,
    LeaseReport,
    LeaseView,
    OriginView,
    StoreReport,
    Verdict,
)
from symbi_recover.read.evidence.locate import readable
from symbi_recover.read.verify import capacity
from symbi_recover.read.verify.lease_entries import YOUNG_NS, is_record, judge_entry, view_of, why_no_digest
from symbi_recover.read.verify.lease_store import ADMISSION, LOCK, SOCKET, STAGING_NAMES, Entry, StoreSnapshot
from symbi_recover.read.verify.staging import PoolVerdict, judge_staging

_SECOND = 1_000_000_000
_LIVING = frozenset(
    [
        "vm_alive",
        "vm_uncorroborated",
        "vm_stray",
        "vm_unknown_namespace",
        "cgroup_populated",
        "worker_unknown",
    ]
)


def judge(
    snapshot: StoreSnapshot,
    *,
    helper_uid: int | None = None,
    origins: Mapping[str, OriginView] | None = None,
) -> StoreReport:
    """Judge a store.

    Args:
        snapshot: from `read_store`.
        helper_uid: the account that the helper runs as; None for the rule in the module's first step.
        origins: by lease, what `origin.py` found; None if no journal was asked for.
    """
    uid = _account(snapshot) if helper_uid is None else helper_uid
    findings = _directory(snapshot, uid, assumed=helper_uid is None)
    views: list[LeaseView] = []
    entries: list[EntryView] = []
    bad = 0
    undigested: list[NotChecked] = []
    for entry in snapshot.entries:
        found = judge_entry(entry, snapshot, uid)
        refused = any(one.code in BLOCKING | UNEXAMINED for one in found)
        record = entry.reading.record if entry.reading and is_record(entry) else None
        if record is not None and not refused:
            view = _lease_view(entry, record, snapshot, found, origins)
            found = list(view.findings)
            views.append(view)
        else:
            bad += is_record(entry)
            if found:
                entries.append(view_of(entry, found))
            why = why_no_digest(entry) if refused else None
            if why is not None:
                undigested.append(NotChecked(f"the SHA-256 of {readable(entry.name)}", why))
        findings += found
    findings += _across(snapshot, views)
    pool = _staging(snapshot, views, uid)
    charges = _capacity(snapshot, views, bad, pool)
    if capacity.overflows(charges):
        findings.append(
            finding("admission_overflow", "the sums exceed 64 bits", path=readable(snapshot.path))
        )
    findings += pool.findings
    absent = snapshot.helper.state == "absent"
    return StoreReport(
        state_dir=readable(snapshot.path),
        helper_uid=uid,
        verdict=verdict_of(findings),
        store_blocked=blocked_by(findings),
        helper=snapshot.helper,
        boot_id=snapshot.boot,
        records=tuple(views),
        entries=tuple(entries),
        capacity=charges,
        unsupervised=tuple(view.lease for view in views) if absent else (),
        findings=tuple(findings),
        not_checked=(*_not_checked(snapshot, views, origins), *undigested),
    )


def one_lease(report: StoreReport, lease: str) -> LeaseReport | None:
    """The part of a store's report that is about one lease; None if nothing in the store names it."""
    view = report.lease(lease)
    entry = next((one for one in report.entries if one.lease == lease and one.name == f"{lease}.json"), None)
    if view is None and entry is None:
        return None
    wanted = f"{report.state_dir}/{lease}.json"
    found = view.findings if view else tuple(one for one in report.findings if one.path == wanted)
    others = [one for one in refusing(report) if one not in found] if report.blocked else []
    return LeaseReport(
        state_dir=report.state_dir,
        lease=lease,
        verdict="blocked" if report.store_blocked else verdict_of([*others, *found]),
        store_blocked=report.store_blocked,
        helper=report.helper,
        view=view,
        entry=entry,
        findings=(*others, *found),
        not_checked=report.not_checked,
    )


def refusing(report: StoreReport) -> tuple[Finding, ...]:
    """What the helper refuses in a store, and what keeps that from being known: the reasons of `report.blocked`."""
    return tuple(one for one in report.findings if one.code in BLOCKING | UNEXAMINED)


def verdict_of(findings: list[Finding]) -> Verdict:
    """The one word for a list of findings. Where there is nothing at all, nothing was examined."""
    codes = {one.code for one in findings}
    if "dir_missing" in codes and not (codes & BLOCKING) - {"dir_missing"}:
        return "unexamined"
    if codes & BLOCKING:
        return "blocked"
    if any(one.code in UNEXAMINED for one in findings):
        return "unexamined"
    severities = {one.severity for one in findings}
    if Severity.REFUSED in severities:
        return "contradicted"
    return "attention" if Severity.ATTENTION in severities else "sound"


def blocked_by(findings: list[Finding]) -> bool | None:
    """Whether the helper would refuse the store; None if that cannot be said."""
    if any(one.code in BLOCKING for one in findings):
        return True
    return None if any(one.code in UNEXAMINED for one in findings) else False


def _account(snapshot: StoreSnapshot) -> int:
    """Root judges for the owner only where a file of a helper of that account shows that it was there."""
    folder, own = snapshot.folder, snapshot.own_uid
    if folder is None or own != 0 or folder.uid == 0:
        return own
    used = any(
        entry.facts.uid == folder.uid and (entry.name in (LOCK, SOCKET, ADMISSION) or is_record(entry))
        for entry in snapshot.entries
    )
    return folder.uid if used else own


def _directory(snapshot: StoreSnapshot, uid: int, *, assumed: bool) -> list[Finding]:
    path, folder = readable(snapshot.path), snapshot.folder
    found: list[Finding] = []
    length = len(os.fsencode(f"{snapshot.path}/{SOCKET}"))
    if length >= SOCKET_PATH_LIMIT:
        message = f"the socket's path has {length} bytes, fewer than {SOCKET_PATH_LIMIT} are allowed"
        found.append(finding("path_too_long", message, path=path))
    if folder is None:
        code, message = snapshot.fault or ("dir_missing", "")
        return [*found, finding(code, message, path=path)]
    tolerated = 0o066 if uid == 0 else 0o077
    if folder.uid != uid or folder.mode & tolerated:
        message = f"it belongs to uid {folder.uid}, mode {folder.mode:04o}; a helper of uid {uid} needs its own, private one"
        found.append(finding("dir_unsafe", message, path=path))
    if assumed and uid != snapshot.own_uid:
        found.append(finding("owner_assumed", f"judged for uid {uid}, which owns the directory", path=path))
    count = sum(is_record(entry) for entry in snapshot.entries)
    if count > MOST_RECORDS:
        found.append(finding("too_many_records", f"{count} records, {MOST_RECORDS} are allowed", path=path))
    if snapshot.truncated:
        found.append(finding("entry_unreadable", "more entries than this tool looks at", path=path))
    return found


def _lease_view(
    entry: Entry,
    record: LeaseRecord,
    snapshot: StoreSnapshot,
    found: list[Finding],
    origins: Mapping[str, OriginView] | None,
) -> LeaseView:
    where = readable(f"{snapshot.path}/{entry.name}")
    helper, facts = snapshot.helper, entry.facts
    age = snapshot.now_ns - facts.mtime_ns
    tombstone = _tombstone(record, helper, facts.mtime_ns, age)
    worker = snapshot.workers.get(record.lease)
    if tombstone:
        shown = f"phase {record.phase}, and no helper owns it"
        found.append(finding("tombstone", shown, path=where))
    elif helper.state == "absent":
        left = isinstance(record.state, Created | VmCreated | HostCreated)
        living = worker is None or worker.verdict in _LIVING
        code = "lifetime_unenforced" if left and living else "recovery_pending"
        found.append(finding(code, f"phase {record.phase}, and no helper runs", path=where))
    if record.resources is None:
        found.append(finding("legacy_resources", "resources is null", path=where))
    if worker is not None:
        found.append(finding(worker.verdict, worker.detail, path=where))
    origin = None
    if record.origin is None:
        found.append(finding("origin_absent", "origin is null", path=where))
    elif origins is not None and record.lease in origins:
        origin = origins[record.lease]
        found.append(finding(origin.verdict, origin.detail, path=where))
    return LeaseView(
        lease=record.lease,
        phase=record.phase,
        backend=record.state.backend,
        record=record,
        sha256=entry.sha256 or "",
        size=facts.size,
        inode=facts.inode,
        mtime_ns=facts.mtime_ns,
        ctime_ns=facts.ctime_ns,
        age_seconds=age // _SECOND if age >= 0 else None,
        tombstone=tombstone,
        unsupervised=None if helper.state == "unknown" else not helper.supervises,
        worker=worker,
        origin=origin,
        findings=tuple(found),
    )


def _tombstone(record: LeaseRecord, helper: Helper, mtime_ns: int, age: int) -> bool | None:
    """Section 9: with the lock free every one; beside a helper only the old ones and those from before it."""
    if not isinstance(record.state, Creating | Uncertain):
        return False
    if helper.state in ("absent", "ours"):
        return True
    if age > YOUNG_NS or (helper.since_ns is not None and mtime_ns < helper.since_ns):
        return True
    return None if helper.state == "unknown" else False


def _across(snapshot: StoreSnapshot, views: list[LeaseView]) -> list[Finding]:
    """What only the whole store shows."""
    found: list[Finding] = []
    path = readable(snapshot.path)
    by_uid: dict[int, list[str]] = {}
    for view in views:
        if view.record.jail is not None:
            by_uid.setdefault(view.record.jail.uid, []).append(view.lease)
    for uid, leases in sorted(by_uid.items()):
        if len(leases) > 1:
            found.append(finding("jail_uid_shared", f"uid {uid}: {', '.join(leases)}", path=path))
    recorded = {entry.stem for entry in snapshot.entries if is_record(entry)}
    found += [
        finding("litter_vm_dir", "no record of this lease", path=f"{path}/vm-{lease}")
        for lease in snapshot.vm_folders
        if lease not in recorded
    ]
    found += [
        finding("litter_jail", "no record of this lease", path=f"{path}/jails/firecracker/{lease}")
        for lease in snapshot.jails
        if lease not in recorded
    ]
    helper = snapshot.helper
    if helper.state == "unknown" and views:
        found.append(finding("supervision_unknown", helper.why or "the kernel does not tell", path=path))
    return found


def _staging(snapshot: StoreSnapshot, views: list[LeaseView], uid: int) -> PoolVerdict:
    if snapshot.folder is None:
        return PoolVerdict(capacity=None, error="there is no directory", findings=())
    if any(entry.unseen is not None and entry.name in STAGING_NAMES for entry in snapshot.entries):
        return PoolVerdict(capacity=None, error="it cannot be examined", findings=())
    named: dict[str, list[str]] = {}
    for view in views:
        for snapshot_id in view.record.staging:
            named.setdefault(snapshot_id, []).append(view.lease)
    leases = {one: tuple(sorted(several)) for one, several in named.items()}
    return judge_staging(
        snapshot.pool, leases, directory=snapshot.folder, uid=uid, path=readable(snapshot.path)
    )


def _capacity(snapshot: StoreSnapshot, views: list[LeaseView], bad: int, pool: PoolVerdict) -> Capacity:
    limits: AdmissionLimits | None = None
    if snapshot.folder is not None and snapshot.entry(ADMISSION) is None:
        limits = DEFAULT_ADMISSION
    elif snapshot.admission is not None and isinstance(snapshot.admission.value, AdmissionLimits):
        limits = snapshot.admission.value
    unknown = bad + (snapshot.folder is None) + snapshot.truncated
    return capacity.compute(
        [view.record for view in views],
        limits,
        unknown_workers=unknown,
        staging=pool.capacity,
        staging_error=pool.error,
    )


def _not_checked(
    snapshot: StoreSnapshot, views: list[LeaseView], origins: Mapping[str, OriginView] | None
) -> tuple[NotChecked, ...]:
    left: list[NotChecked] = []
    if snapshot.helper.state in ("unknown", "probable"):
        why = snapshot.helper.why or "the lock list names the inode, but its device cannot be compared"
        left.append(NotChecked("whether a helper runs", why))
    if any(view.backend == "container" for view in views):
        left.append(NotChecked("containers", "the daemon is not asked here; `lease check` does"))
    if origins is None and any(view.record.origin is not None for view in views):
        left.append(NotChecked("origins", "no project or root was given to search for the runs' journals"))
    if snapshot.folder is not None:
        left.append(NotChecked("environment files", "they hold secrets and are never read"))
    return tuple(left)
