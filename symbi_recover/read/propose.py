"""What `lease reconcile` would do, from what the store and the daemons show: a plan, still without effect.

For each good record:

1. a container phase, its container there with the right label and identity: remove the container by its id, with its
   anonymous volumes, then retire the record;
2. phase `created`, and its container gone from the recorded daemon: retire the record, as the helper would;
3. everything else is left, with the code that says why.

Identity is the recorded id in `created`, and the exact name in `creating` and `uncertain`. A label alone, a name alone,
a contradiction between engine and processes, or an unknown state removes nothing.
"""

from symbi_recover.core.codes import finding
from symbi_recover.core.findings import Finding, NotChecked, Severity
from symbi_recover.core.lease_records import ContainerState, Created
from symbi_recover.core.leases import LeaseCheck, LeaseView, StoreReport
from symbi_recover.core.reconciliation import Action, ReconcileAct, ReconcileItem, ReconcileReport
from symbi_recover.read.verify.lease_check import Checker
from symbi_recover.wire import canonical

_OWNED = frozenset({"container_present", "container_supervised"})
_DOUBTS = frozenset({"container_state_unknown"})
"""Findings that keep a record although they are no refusal of a report."""
ABSENCE_DOUBTS = _DOUBTS | {"endpoint_link", "endpoint_proxied"}
"""The same for a record whose container is gone: another daemon's 404, or a proxy's, shows nothing."""


def propose_reconciliation(
    report: StoreReport, checker: Checker, leases: tuple[str, ...] = ()
) -> ReconcileReport:
    """Make the plan.

    Args:
        report: from `judge`.
        checker: not yet used; stays open.
        leases: only these; all by default.
    """
    supervised = report.helper.supervises
    checks = [
        (view, checker.check(view, f"{report.state_dir}/{view.lease}.json", supervised=supervised))
        for view in report.records
        if not leases or view.lease in leases
    ]
    items = tuple(_item(view, report, check) for view, check in checks)
    findings: list[Finding] = []
    if report.store_blocked is not False:
        findings.append(finding("store_blocked", "run `lease verify` for the reasons", path=report.state_dir))
    elif report.helper.supervises:
        who = f"process {report.helper.pid}" if report.helper.pid is not None else "a process"
        findings.append(finding("supervisor_running", f"{who} holds the lock", path=report.state_dir))
    return ReconcileReport(
        state_dir=report.state_dir,
        helper=report.helper,
        store_blocked=report.store_blocked,
        executed=False,
        plan_hash=plan_hash(report.state_dir, items),
        items=items,
        findings=tuple(findings),
        not_checked=(
            NotChecked(
                "creations on their way",
                "a record that names no container (`creating`, `uncertain`) is never retired on absence here",
            ),
            *((NotChecked("bad records", "they name no container"),) if report.entries else ()),
            *checker.not_checked(),
            *dict.fromkeys(left for _, check in checks for left in check.not_checked),
        ),
    )


def plan_hash(state_dir: str, items: tuple[ReconcileItem, ...]) -> str:
    """64 hex digits over what would be done."""
    return _hash(
        state_dir,
        [
            (item.lease, item.record_sha256, item.action, item.container_id)
            for item in items
            if item.action != "leave"
        ],
    )


def acts_hash(state_dir: str, acts: tuple[ReconcileAct, ...]) -> str:
    """The hash of the plan that consists of these acts."""
    return _hash(state_dir, [(act.lease, act.record_sha256, act.action, act.container_id) for act in acts])


def _hash(state_dir: str, acts: list[tuple[str, str, str, str | None]]) -> str:
    """Over store, records, containers and actions."""
    listed = [[part or "" for part in act] for act in acts]
    return canonical.digest(["lease-reconcile-v1", state_dir, listed]).removeprefix("sha256:")


def _item(view: LeaseView, report: StoreReport, check: LeaseCheck) -> ReconcileItem:
    action, code, container_id = _action(view, check)
    if report.store_blocked is not False and action != "leave":
        action, code, container_id = "leave", "store_blocked", None
    return ReconcileItem(
        lease=view.lease,
        phase=view.phase,
        record_sha256=view.sha256,
        action=action,
        code=code,
        container_id=container_id,
        containers=check.containers,
        endpoint=check.endpoint,
        engine=check.engine,
        outcome="left" if action == "leave" else "planned",
        findings=check.findings,
    )


def _action(view: LeaseView, check: LeaseCheck) -> tuple[Action, str, str | None]:
    state = view.record.state
    if not isinstance(state, ContainerState):
        return "leave", check.verdict, None
    created = isinstance(state, Created)
    if check.verdict == "container_gone" and created:
        against = _against(check, ABSENCE_DOUBTS)
        return ("leave", against[0], None) if against else ("retire_record", "container_gone", None)
    owned = check.verdict in _OWNED or (check.verdict == "container_renamed" and created)
    against = _against(check, _DOUBTS)
    if not owned or against:
        return "leave", against[0] if against else check.verdict, None
    container_id = state.container_id if isinstance(state, Created) else _only(check)
    if container_id is None:
        return "leave", check.verdict, None
    return "remove_container", check.verdict, container_id


def _against(check: LeaseCheck, doubts: frozenset[str]) -> list[str]:
    return [one.code for one in check.findings if one.severity is Severity.REFUSED or one.code in doubts]


def _only(check: LeaseCheck) -> str | None:
    """The one container that was seen; its name and label fit."""
    return check.containers[0].id if len(check.containers) == 1 else None
