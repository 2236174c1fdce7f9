"""`lease retire`: retires one tombstone on proof, or refuses with every reason (leases.md sections 18.4 to 18.6).

Without consent a plan is made: what is known, which rows of the table could hold, what speaks against it. With the
record's digest repeated, the store is locked and `retire_run.py` does the rest. Where the lock cannot be had, nothing is
done, and all other evidence is told all the same.
"""

from contextlib import ExitStack
from typing import Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from symbi_recover.core.errors import RecoverError, UnexaminedError
from symbi_recover.core.retirement import LockState, RetireReport
from symbi_recover.read.retirement.examine import examine
from symbi_recover.read.retirement.table import decide, might_retire
from symbi_recover.read.verify.lease_judge import refusing
from symbi_recover.write import keys
from symbi_recover.write.retire_request import (
    Outcome,
    Request,
    judged,
    no_key,
    record_of,
    report_of,
    terms,
    why_not_local,
)
from symbi_recover.write.retire_run import Run
from symbi_recover.write.supervisor import supervisor_lock

_Refusal = Literal["supervisor_running", "lock_missing", "lock_replaced", "lock_uncertain", "lock_unsafe"]
_LOCKS: tuple[_Refusal, ...] = get_args(_Refusal)


class _Refused(Struct, frozen=True):
    """Why the lock could not be had."""

    lock: _Refusal
    why: str


def plan(request: Request) -> RetireReport:
    """Say what is known, what would be done, and what speaks against it; nothing is touched.

    Raises:
        UnexaminedError: the store cannot be read, or has no good record of the lease.
    """
    return _without_lock(request)


def retire(request: Request) -> RetireReport:
    """Retire the tombstone if it is proven, else refuse.

    Raises:
        UnexaminedError: the store cannot be read, or has no good record of the lease.
        RefusedError: something could not be written; the message says what.
    """
    signer = keys.find(request.home)
    with ExitStack() as stack:
        try:
            held = stack.enter_context(supervisor_lock(request.path))
        except RecoverError as error:
            lock = next((code for code in _LOCKS if code == error.code), None)
            if lock is None:
                raise
            said = f"{error.path}: {error.message}"
            refusal = _Refused(lock, f"{said}; {error.hint}" if error.hint else said)
            try:
                return _without_lock(request, refusal)
            except UnexaminedError as unexamined:
                unexamined.detail = unexamined.detail or f"{lock}: {refusal.why}"
                raise
        return Run(request, held, signer).go()


def _without_lock(request: Request, refusal: _Refused | None = None) -> RetireReport:
    """Tell all evidence, of a plan or beside a lock that was refused; nothing is touched."""
    snapshot, report = judged(request, request.path, ours=False)
    view, folder = record_of(request, snapshot, report)
    seen = examine(view, report, folder, request.asker(report.helper_uid))
    blocking = "; ".join(f"{one.path}: {one.code}" for one in refusing(report))
    details = {"store_blocked": blocking} if blocking else {}
    if refusal is not None:
        lock: LockState = refusal.lock
        details[lock] = refusal.why
    else:
        lock = "supervisor_running" if report.helper.supervises else "not_taken"
    agreed = terms(
        request,
        view,
        lock=lock,
        not_local=why_not_local(report.state_dir),
        no_receipt=no_key(request.home),
        details=details,
    )
    evidence = seen.evidence(agreed, seen.unfenced)
    outcome: Outcome = "plan" if refusal is None else "refused"
    told = report_of(
        request, report, outcome, seen=seen.seen, decision=decide(evidence), findings=seen.findings
    )
    promising = outcome == "plan" and might_retire(evidence)
    return replace(told, confirm=view.sha256) if promising else told


__all__ = ["Request", "plan", "retire"]
