"""Carries out a confirmed plan of `lease reconcile`, under the store's lock (leases.md sections 7 and 13).

1. Take `supervisor.lock`; read and judge the store again; make the plan again.
2. The confirmed hash must be that of the plan, or of one record in it. A repeat after an interruption may also name the
   plan that the note of that run holds; what it did already is done.
3. Write the note and the ledger's intent, durable, before the first act.
4. For each act: container removed by its id with its anonymous volumes, its absence confirmed; the record last.
5. Write the ledger's outcome; release the lock.

One record that fails does not stop the others. Nothing is removed whose label and identity were not seen under the lock.
"""

import time
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from symbi_recover.core.codes import finding
from symbi_recover.core.codes.daemon import UNANSWERED
from symbi_recover.core.errors import RecoverError, RefusedError, StaleError, UnexaminedError
from symbi_recover.core.findings import Finding
from symbi_recover.core.lease_records import LABEL
from symbi_recover.core.leases import LeaseView, StoreReport
from symbi_recover.core.reconciliation import ReconcileAct, ReconcileItem, ReconcileNote, ReconcileReport
from symbi_recover.read.propose import ABSENCE_DOUBTS, acts_hash, propose_reconciliation
from symbi_recover.read.retirement.examine import identity_of
from symbi_recover.read.retirement.notes import RECONCILIATIONS, SUFFIX, decoded, read_own
from symbi_recover.read.verify.lease_check import Checker
from symbi_recover.read.verify.lease_judge import judge
from symbi_recover.read.verify.lease_store import read_store
from symbi_recover.wire.retirement import encode
from symbi_recover.write.daemon import EngineHand
from symbi_recover.write.ledger import Recorder
from symbi_recover.write.notes import write_own
from symbi_recover.write.records import need_writable, unlink_record
from symbi_recover.write.supervisor import HeldStore, is_local, supervisor_lock

COMMAND = "lease reconcile"
_GONE_SECONDS = 20.0
_POLL_SECONDS = 0.02
_Noted = tuple[tuple[ReconcileAct, ...], tuple[Finding, ...]]


class Request(Struct, frozen=True, kw_only=True):
    """What is to be done, and with what."""

    path: str
    confirm: str
    leases: tuple[str, ...]
    helper_uid: int | None
    home: str
    """The operator's folder."""
    clock: Callable[[], int]
    checker: Callable[[int], Checker]
    """For the helper's account."""
    hand: Callable[[str], EngineHand]
    recorder: Recorder


def plan(report: StoreReport, request: Request) -> ReconcileReport:
    """Say what would be done; nothing is touched, and `request.confirm` and its recorder play no part.

    Args:
        report: of the store, judged without its lock.
        request: what is asked.
    """
    checker = request.checker(report.helper_uid)
    try:
        return propose_reconciliation(report, checker, request.leases)
    finally:
        checker.close()


def reconcile(request: Request) -> ReconcileReport:
    """Carry out the plan that was confirmed.

    Raises:
        StaleError: the store is held, blocked, not local, or not as it was reviewed.
        RefusedError: note or ledger could not be written; nothing was done then.
        UnexaminedError: the store cannot be read.
    """
    with supervisor_lock(request.path) as held:
        why = is_local(held.folder)
        if why is not None:
            raise StaleError("state_dir_not_local", why, path=held.path)
        report = judged(held, request.clock(), request.helper_uid)
        proposed = plan(report, request)
        acts, remarks = _consented(proposed, request)
        proposed = replace(proposed, findings=(*proposed.findings, *remarks))
        anew = any(report.lease(act.lease) is not None for act in acts)
        if anew:
            need_writable(held)
        subject = {"state_dir": held.path, "confirm": request.confirm}
        request.recorder.begin(COMMAND, subject, request.confirm, anew=anew)
        try:
            done = _carry_out(proposed, report, acts, held, request)
        except RecoverError as error:
            request.recorder.finish("failed", error=error)
            raise
        failed = any(item.outcome == "failed" for item in done.items)
        request.recorder.finish("failed" if failed else "done")
        return done


def judged(held: HeldStore, now_ns: int, helper_uid: int | None) -> StoreReport:
    """Read and judge a store under its lock.

    Raises:
        StaleError: `store_blocked`, `lock_replaced`.
    """
    snapshot = read_store(held.path, now_ns=now_ns, ours=True)
    folder = snapshot.folder
    if folder is None or (folder.device, folder.inode) != (held.facts.device, held.facts.inode):
        raise StaleError(
            "lock_replaced", "the directory at this path is not the one that is held", path=held.path
        )
    report = judge(snapshot, helper_uid=helper_uid)
    if report.blocked:
        raise StaleError("store_blocked", "the store holds something that the helper refuses", path=held.path)
    return report


def _consented(plan: ReconcileReport, request: Request) -> _Noted:
    """The acts that the operator agreed to, noted durably."""
    acts = tuple(_act(item) for item in plan.items if item.action != "leave")
    confirm = request.confirm
    if acts and plan.plan_hash == confirm:
        return _noted(plan.state_dir, acts, request)
    single = tuple(act for act in acts if act.record_sha256 == confirm)
    if len(single) == 1:
        return _noted(plan.state_dir, single, request)
    earlier = _earlier(plan.state_dir, request)
    if earlier is not None:
        return earlier, ()
    silent = next((item for item in plan.items if item.code in UNANSWERED), None)
    if silent is not None:
        said = next((one.message for one in silent.findings if one.code == silent.code), "")
        message = f"what was agreed to cannot be compared, and nothing was done: {said}"
        raise UnexaminedError(silent.code, message, path=f"{plan.state_dir}/{silent.lease}.json")
    raise StaleError(
        "plan_changed",
        "no plan or record in it has this hash now",
        path=plan.state_dir,
        hint=f"review the plan again; its hash is {plan.plan_hash}"
        if acts
        else "there is nothing to do any more",
    )


def _act(item: ReconcileItem) -> ReconcileAct:
    return ReconcileAct(
        lease=item.lease,
        record_sha256=item.record_sha256,
        action="remove_container" if item.action == "remove_container" else "retire_record",
        container_id=item.container_id,
        engine=_engine(item),
    )


def _engine(item: ReconcileItem) -> str:
    """Which daemon answered, as far as it can be told again by another visit."""
    return "" if item.engine is None else f"{item.engine.engine_id} {item.engine.data_root}"


def _noted(state_dir: str, acts: tuple[ReconcileAct, ...], request: Request) -> _Noted:
    if _earlier(state_dir, request) is not None:
        return acts, ()
    note = encode(ReconcileNote(state_dir=state_dir, acts=acts))
    return acts, write_own(request.home, RECONCILIATIONS, request.confirm + SUFFIX, note).remarks


def _earlier(state_dir: str, request: Request) -> tuple[ReconcileAct, ...] | None:
    """The acts of the note that an earlier run left for this very consent."""
    for own in read_own(request.home, RECONCILIATIONS, prefix=request.confirm + SUFFIX):
        note = decoded(own, ReconcileNote)
        if isinstance(note, str) or note.state_dir != state_dir:
            continue
        whole = acts_hash(state_dir, note.acts) == request.confirm
        single = len(note.acts) == 1 and note.acts[0].record_sha256 == request.confirm
        if whole or single:
            return note.acts
    return None


def _carry_out(
    plan: ReconcileReport,
    report: StoreReport,
    acts: tuple[ReconcileAct, ...],
    held: HeldStore,
    request: Request,
) -> ReconcileReport:
    wanted = {act.lease: act for act in acts}
    items = tuple(
        _do(item, wanted[item.lease], report, held, request) if item.lease in wanted else _left(item)
        for item in plan.items
    )
    gone = [act.lease for act in acts if report.lease(act.lease) is None]
    notes = [
        finding("record_retired", f"the record of {lease} was removed before", path=held.path)
        for lease in gone
    ]
    return replace(plan, executed=True, items=items, findings=(*plan.findings, *notes))


def _left(item: ReconcileItem) -> ReconcileItem:
    return replace(item, outcome="left")


def _do(
    item: ReconcileItem, act: ReconcileAct, report: StoreReport, held: HeldStore, request: Request
) -> ReconcileItem:
    view = report.lease(item.lease)
    if view is None or item.record_sha256 != act.record_sha256:
        return _failed(item, "record_changed", "the record is not the one that was reviewed")
    # A container that is gone by now may be the work of an interrupted run; any other difference is not agreed to.
    # Behind a link or a proxy, or from another engine or data root, absence shows nothing.
    doubted = any(found.code in ABSENCE_DOUBTS for found in item.findings)
    absent = item.code in ("container_absent", "container_gone") and not doubted
    begun = act.action == "remove_container" and absent and _engine(item) == act.engine
    if not begun and (item.action, item.container_id) != (act.action, act.container_id):
        return _failed(item, "plan_changed", f"{item.code} now")
    try:
        return _perform(item, act, view, held, request)
    except (RefusedError, StaleError, UnexaminedError) as error:
        code = "removal_failed" if isinstance(error, UnexaminedError) else error.code
        return _failed(item, code, error.message)


def _perform(
    item: ReconcileItem, act: ReconcileAct, view: LeaseView, held: HeldStore, request: Request
) -> ReconcileItem:
    where = f"{held.path}/{view.lease}.json"
    found: list[Finding] = []
    if act.action == "remove_container" and act.container_id is not None:
        endpoint = item.endpoint.address if item.endpoint is not None else None
        if endpoint is None:
            return _failed(item, "endpoint_unresolved", "the endpoint cannot be told any more")
        hand = request.hand(endpoint)
        try:
            if _remove(hand, act.container_id, view.lease):
                found.append(finding("container_removed", f"container {act.container_id}", path=where))
        finally:
            hand.close()
    synced = unlink_record(held, identity_of(view))
    found.append(finding("record_retired", f"phase {view.phase}", path=where))
    if not synced:
        found.append(finding("sync_unconfirmed", "the removal of the record", path=held.path))
    return replace(item, outcome="done", findings=(*item.findings, *found))


def _remove(hand: EngineHand, container_id: str, lease: str) -> bool:
    """Remove a container and see it gone; False if it was gone before.

    Raises:
        DaemonError: the daemon refused, or did not answer.
        RefusedError: `removal_unconfirmed`.
    """
    found = hand.inspect(container_id)
    if found is not None:
        if found.id != container_id or found.labels.get(LABEL) != lease:
            raise _unconfirmed(f"the daemon answers about {found.id} with label {found.labels.get(LABEL)!r}")
        if found.state != "removing":
            hand.remove_container(container_id, force=True, volumes=True)
    end = time.monotonic() + _GONE_SECONDS
    while hand.inspect(container_id) is not None:
        if time.monotonic() >= end:
            raise _unconfirmed(f"container {container_id} is still there")
        time.sleep(_POLL_SECONDS)
    left = hand.labelled(LABEL, lease)
    if left:
        raise _unconfirmed(f"container {left[0].id} carries the lease's label")
    return found is not None


def _unconfirmed(why: str) -> RefusedError:
    return RefusedError("removal_unconfirmed", why)


def _failed(item: ReconcileItem, code: str, message: str) -> ReconcileItem:
    return replace(item, outcome="failed", findings=(*item.findings, finding(code, message)))
