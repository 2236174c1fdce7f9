"""Admission of one store: computed from its files, and compared with what a running helper answers (leases.md 10, 12).

The files are read before and after the question. If they changed meanwhile the question is asked again, up to three
times; only files that stood still are compared, so that a difference is one.
"""

from collections.abc import Callable

from symbi_recover.core.codes import finding
from symbi_recover.core.findings import Finding, NotChecked, Severity
from symbi_recover.core.leases import CapacityReport, HelperAnswer, StoreReport, Verdict
from symbi_recover.core.words import counted, noun_for
from symbi_recover.read.daemon.helper import HelperError
from symbi_recover.read.verify.capacity import differences
from symbi_recover.read.verify.lease_judge import refusing, verdict_of

Look = Callable[[], StoreReport]
Ask = Callable[[StoreReport], HelperAnswer]
_TRIES = 3


def examine_capacity(look: Look, ask: Ask) -> CapacityReport:
    """Compute, ask if a helper runs, compare.

    Args:
        look: reads and judges the store anew.
        ask: asks its helper; raises HelperError.
    """
    report = look()
    answered: HelperAnswer | None = None
    found: list[Finding] = []
    left: list[NotChecked] = []
    steady = True
    if report.helper.supervises:
        try:
            answered, report, steady = _asked(report, look, ask)
        except HelperError as error:
            found.append(finding(error.code, error.message, path=error.path))
            left.append(NotChecked("the helper's own count", error.message))
    else:
        why = report.helper.why or "no process holds its lock"
        left.append(NotChecked("the helper's own count", f"no helper is known to run: {why}"))
    points: tuple[str, ...] = ()
    if answered is not None and steady:
        points = differences(report.capacity, answered.capacity)
        found += [finding("capacity_differs", point, path=report.state_dir) for point in points]
    elif answered is not None:
        found.append(finding("capacity_unsteady", "files and answer are not compared", path=report.state_dir))
    if report.capacity.admission_blocked:
        found.append(finding("admission_full", _why_full(report), path=report.state_dir))
    return CapacityReport(
        state_dir=report.state_dir,
        verdict=_verdict(report, found),
        store_blocked=report.store_blocked,
        helper=report.helper,
        computed=report.capacity,
        answered=answered,
        agree=not points if answered is not None and steady else None,
        differences=points,
        findings=(*refusing(report), *found),
        not_checked=tuple(left),
    )


def _asked(report: StoreReport, look: Look, ask: Ask) -> tuple[HelperAnswer, StoreReport, bool]:
    for _ in range(_TRIES):
        answered = ask(report)
        after = look()
        steady = after.capacity == report.capacity
        report = after
        if steady:
            break
    return answered, report, steady


def _verdict(report: StoreReport, found: list[Finding]) -> Verdict:
    if report.store_blocked:
        return report.verdict
    unanswered = any(one.severity is Severity.REFUSED for one in found)
    if unanswered or report.store_blocked is None:
        return "unexamined"
    return verdict_of(found)


def _why_full(report: StoreReport) -> str:
    capacity = report.capacity
    if capacity.limits is None:
        return "the limits cannot be read"
    if capacity.unknown_resource_leases:
        return f"{counted(capacity.unknown_resource_leases, 'record')} {noun_for(capacity.unknown_resource_leases, 'has', 'have')} an unknown charge"
    reserved, limits = capacity.reserved, capacity.limits
    pairs = (
        ("workers", reserved.workers, limits.max_workers),
        ("memory", reserved.memory_bytes, limits.memory_bytes),
        ("CPU", reserved.cpu_nanos, limits.cpu_nanos),
    )
    full = [f"{name} {used} of {limit}" for name, used, limit in pairs if used is None or used >= limit]
    return "reached: " + ", ".join(full)
