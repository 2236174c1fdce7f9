"""`lease witness`: keeps what is seen of a tombstone, for a later proof (leases.md section 18.4, "Witness file").

Nothing of the store is changed. A visit under the store's lock, with a clean client scan, can later prove a replaced
engine (T2); one without the lock serves for a reboot alone (T1). The files are new, private and synced; the ledger, if
there is one, names them.
"""

from collections.abc import Callable
from contextlib import ExitStack

from msgspec import Struct

from symbi_recover.core.codes import finding
from symbi_recover.core.errors import RecoverError, UnexaminedError
from symbi_recover.core.findings import Finding
from symbi_recover.core.leases import LeaseView, StoreReport
from symbi_recover.core.retirement import WitnessReport
from symbi_recover.core.witness import Witness
from symbi_recover.read.retirement.examine import Asker, Examination, examine
from symbi_recover.read.retirement.notes import SUFFIX, WITNESSES
from symbi_recover.read.retirement.table import PHASES
from symbi_recover.read.verify.lease_judge import judge
from symbi_recover.read.verify.lease_store import read_store
from symbi_recover.wire import canonical
from symbi_recover.wire.retirement import encode
from symbi_recover.write.ledger import Recorder
from symbi_recover.write.notes import Written, write_own
from symbi_recover.write.supervisor import supervisor_lock

COMMAND = "lease witness"


class Request(Struct, frozen=True, kw_only=True):
    """What is to be witnessed, and with what."""

    path: str
    leases: tuple[str, ...]
    lock: bool
    helper_uid: int | None
    asker: Callable[[int], Asker]
    """For the helper's account."""
    recorder: Recorder
    clock: Callable[[], int]


def witness(request: Request) -> WitnessReport:
    """Leave a witness of each tombstone, or of the leases that were named.

    Raises:
        StaleError: the lock is wanted, and held or unusable.
        UnexaminedError: the store cannot be read, a lease is unknown, or the boot cannot be told.
        RefusedError: a file could not be written.
    """
    with ExitStack() as stack:
        path = request.path
        if request.lock:
            path = stack.enter_context(supervisor_lock(path)).path
        snapshot = read_store(path, now_ns=request.clock(), ours=request.lock)
        report = judge(snapshot, helper_uid=request.helper_uid)
        if snapshot.folder is None:
            raise UnexaminedError("dir_missing", "there is no state directory", path=report.state_dir)
        views, findings = _chosen(report, request.leases)
        asker = request.asker(report.helper_uid)
        seen = [examine(view, report, snapshot.folder, asker) for view in views]
        pairs = _recorded(report.state_dir, seen, asker, request)
    if report.store_blocked is not False:
        findings.append(finding("store_blocked", "run `lease verify` for the reasons", path=report.state_dir))
    if pairs and not request.lock:
        findings.append(finding("witness_unlocked", "no lock was taken", path=report.state_dir))
    return WitnessReport(
        state_dir=report.state_dir,
        helper=report.helper,
        written=tuple(written.path for written, _ in pairs),
        witnesses=tuple(one for _, one in pairs),
        findings=(*findings, *(remark for written, _ in pairs for remark in written.remarks)),
    )


def _chosen(report: StoreReport, leases: tuple[str, ...]) -> tuple[list[LeaseView], list[Finding]]:
    findings: list[Finding] = []
    if not leases:
        return [view for view in report.records if view.phase in PHASES], findings
    views = []
    for lease in leases:
        view = report.lease(lease)
        if view is None:
            raise UnexaminedError("lease_unknown", f"no good record of lease {lease}", path=report.state_dir)
        if view.phase in PHASES:
            views.append(view)
        else:
            where = f"{report.state_dir}/{lease}.json"
            findings.append(finding("phase_not_retirable", f"phase {view.phase}", path=where))
    return views, findings


def _recorded(
    state_dir: str, seen: list[Examination], asker: Asker, request: Request
) -> list[tuple[Written, Witness]]:
    """Write the witnesses, between an intent and an outcome in the ledger."""
    if not seen:
        return []
    subject = {"state_dir": state_dir, "leases": ",".join(one.view.lease for one in seen)}
    evidence = canonical.digest([one.record.sha256 for one in seen]).removeprefix("sha256:")
    request.recorder.begin(COMMAND, subject, evidence, anew=True)
    try:
        pairs = [_one(one, asker, request) for one in seen]
    except RecoverError as error:
        request.recorder.finish("failed", error=error)
        raise
    receipts = {written.path: written.sha256 for written, _ in pairs}
    request.recorder.finish("done", receipts=receipts)
    return pairs


def _one(seen: Examination, asker: Asker, request: Request) -> tuple[Written, Witness]:
    if seen.boot_id is None:
        raise UnexaminedError("worker_unknown", "the boot cannot be told, so a witness would show nothing")
    now = asker.host.now_ns()
    made = Witness(
        seen_ns=now,
        locked=request.lock,
        boot_id=seen.boot_id,
        record=seen.record,
        directory=seen.seen.directory,
        endpoint=seen.endpoint.address if seen.endpoint.kind == "unix" else None,
        scan=seen.seen.scans[-1],
        listener=seen.sight.listener,
        engine=seen.sight.engine,
        remarks=_remarks(seen),
    )
    return write_own(asker.home, WITNESSES, f"{seen.view.lease}.{now}{SUFFIX}", encode(made)), made


def _remarks(seen: Examination) -> tuple[str, ...]:
    codes = [seen.endpoint.code, *seen.sight.codes, seen.absence]
    return tuple(f"{code}: {seen.details.get(code, '')}" for code in dict.fromkeys(codes) if code)
