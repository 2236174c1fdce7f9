"""What a retirement is asked for, and how its report is made; shared by the plan and the run of `lease retire`."""

import os
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from symbi_recover.core.errors import UnexaminedError
from symbi_recover.core.findings import Finding, NotChecked
from symbi_recover.core.leases import LeaseView, StoreReport
from symbi_recover.core.retirement import NOT_ESTABLISHED, Decision, LockState, RetireReport, Seen
from symbi_recover.read.evidence.opener import FOLDER_FLAGS, FileFacts, is_there
from symbi_recover.read.retirement.examine import Asker, Terms
from symbi_recover.read.verify.lease_judge import judge
from symbi_recover.read.verify.lease_store import StoreSnapshot, read_store
from symbi_recover.write import keys
from symbi_recover.write.fence import Hands
from symbi_recover.write.ledger import Recorder
from symbi_recover.write.supervisor import is_local

Outcome = Literal["plan", "retired", "refused", "already_retired", "completed"]


class Request(Struct, frozen=True, kw_only=True):
    """What is to be retired, on what terms, and with what."""

    path: str
    lease: str
    confirm: str | None
    """SHA-256 of the record; None makes a plan."""
    accept_wall_clock: bool = False
    acknowledge_staging: bool = False
    statement: str | None = None
    helper_uid: int | None = None
    home: str
    asker: Callable[[int], Asker]
    hands: Hands
    recorder: Recorder
    clock: Callable[[], int]


def judged(request: Request, path: str, *, ours: bool) -> tuple[StoreSnapshot, StoreReport]:
    """Read and judge the store."""
    snapshot = read_store(path, now_ns=request.clock(), ours=ours)
    return snapshot, judge(snapshot, helper_uid=request.helper_uid)


def record_of(request: Request, snapshot: StoreSnapshot, report: StoreReport) -> tuple[LeaseView, FileFacts]:
    """The good record that is meant, and its directory.

    Raises:
        UnexaminedError: `lease_unknown`, `dir_missing`.
    """
    if snapshot.folder is None:
        raise UnexaminedError("dir_missing", "there is no state directory", path=report.state_dir)
    view = report.lease(request.lease)
    if view is None:
        message = f"no good record of lease {request.lease}"
        raise UnexaminedError("lease_unknown", message, path=report.state_dir)
    return view, snapshot.folder


def terms(
    request: Request,
    view: LeaseView,
    *,
    lock: LockState,
    not_local: str | None,
    no_receipt: str | None,
    details: dict[str, str],
) -> Terms:
    """What the operator agreed to, and what stands against it on our side.

    Args:
        request: what was asked.
        view: the record.
        lock: how the lock stands.
        not_local: from `why_not_local`.
        no_receipt: why no receipt can be written, or None.
        details: further words for codes.
    """
    said = {"state_dir_not_local": not_local, "receipt_unavailable": no_receipt}
    return Terms(
        lock=lock,
        local=not_local is None,
        confirmed=request.confirm is not None,
        record_same=request.confirm in (None, view.sha256),
        receipt_ready=no_receipt is None,
        staging_acknowledged=request.acknowledge_staging or not view.record.staging,
        accept_wall_clock=request.accept_wall_clock,
        attested=request.statement is not None,
        details=details | {code: why for code, why in said.items() if why is not None},
    )


def no_key(home: str) -> str | None:
    """Why a receipt could not be signed; None if there is a key."""
    try:
        there = is_there(f"{home}/{keys.KEY_NAME}")
    except UnexaminedError as error:
        return f"the operator's key cannot be seen: {error.message}"
    return None if there else "the operator has no key; see `symbi-recover key init`"


def why_not_local(path: str) -> str | None:
    """None if a directory is on a local file system of a known type, else why not."""
    try:
        folder = os.open(path, FOLDER_FLAGS)
    except OSError:
        return "it cannot be opened"
    try:
        return is_local(folder)
    finally:
        os.close(folder)


def not_established(seen: Seen) -> tuple[str, ...]:
    """What the evidence does not show, in words."""
    more = []
    if seen.quiescence is None:
        more.append("that the engine is quiet now; the census was not taken")
    if not seen.scans or not all(scan.clean for scan in seen.scans):
        more.append("that no client is alive now; the proof rests on the reboot")
    if seen.endpoint.kind == "unix" and seen.endpoint.reason is not None:
        more.append(f"that the record's client meant this daemon: {seen.endpoint.reason}")
    unread = max((scan.unreadable for scan in seen.scans), default=0)
    if unread:
        more.append(f"descriptors, programs or environments of other processes: {unread} could not be read")
    return (*NOT_ESTABLISHED, *more)


def report_of(
    request: Request,
    report: StoreReport,
    outcome: Outcome,
    *,
    seen: Seen | None = None,
    decision: Decision | None = None,
    findings: tuple[Finding, ...] = (),
    receipt: str | None = None,
) -> RetireReport:
    """The report of one command."""
    left = []
    if outcome == "plan":
        left = [
            NotChecked("fence and census", "a plan touches nothing, so neither was tried"),
            NotChecked("the lock", "a plan takes none"),
        ]
    return RetireReport(
        state_dir=report.state_dir,
        lease=request.lease,
        outcome=outcome,
        record_sha256=seen.record.sha256 if seen is not None else request.confirm,
        helper=report.helper,
        seen=seen,
        decision=decision,
        findings=findings,
        receipt=receipt,
        not_established=not_established(seen) if seen is not None else NOT_ESTABLISHED,
        not_checked=tuple(left),
        confirm=None,
    )
