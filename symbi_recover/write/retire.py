"""`lease retire`: retires one tombstone on proof, or refuses with every reason (leases.md sections 18.4 to 18.6).

Without consent a plan is made: what is known, which rows of the table could hold, what speaks against it. With the
record's digest repeated, the store is locked and `retire_run.py` does the rest. Where the lock cannot be had, nothing is
done, and all other evidence is told all the same.
"""

import os
from contextlib import ExitStack
from typing import Literal, get_args

from symbi_recover.core.errors import RecoverError
from symbi_recover.core.retirement import LockState, RetireReport
from symbi_recover.read.retirement.examine import examine
from symbi_recover.read.retirement.table import decide
from symbi_recover.write import keys
from symbi_recover.write.retire_request import (
    Request,
    judged,
    record_of,
    report_of,
    terms,
    why_not_local,
)
from symbi_recover.write.retire_run import Run
from symbi_recover.write.supervisor import supervisor_lock

_Refusal = Literal["supervisor_running", "lock_missing", "lock_replaced", "lock_uncertain"]
_LOCKS: tuple[_Refusal, ...] = get_args(_Refusal)


def plan(request: Request) -> RetireReport:
    """Say what is known, what would be done, and what speaks against it; nothing is touched.

    Raises:
        UnexaminedError: the store cannot be read, or has no good record of the lease.
    """
    snapshot, report = judged(request, request.path, ours=False)
    view, folder = record_of(request, snapshot, report)
    seen = examine(view, report, folder, request.asker(report.helper_uid))
    lock: LockState = "supervisor_running" if report.helper.supervises else "not_taken"
    local = why_not_local(report.state_dir)
    evidence = seen.evidence(
        lock=lock,
        local=local is None,
        confirmed=False,
        details={} if local is None else {"state_dir_not_local": local},
        **terms(request, view, ready=os.path.lexists(f"{request.home}/{keys.KEY_NAME}")),
    )
    return report_of(
        request, report, "plan", seen=seen.seen, decision=decide(evidence), findings=seen.findings
    )


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
            return _without_lock(request, lock, error)
        return Run(request, held, signer).go()


def _without_lock(request: Request, lock: LockState, error: RecoverError) -> RetireReport:
    """Without the lock nothing is done; all other evidence is still told."""
    snapshot, report = judged(request, request.path, ours=False)
    view, folder = record_of(request, snapshot, report)
    seen = examine(view, report, folder, request.asker(report.helper_uid))
    local = why_not_local(report.state_dir)
    details: dict[str, str] = {lock: f"{error.message}; {error.hint}" if error.hint else error.message}
    if local is not None:
        details["state_dir_not_local"] = local
    evidence = seen.evidence(
        lock=lock,
        local=local is None,
        confirmed=True,
        record_same=view.sha256 == request.confirm,
        details=details,
        **terms(request, view, ready=True),
    )
    return report_of(
        request, report, "refused", seen=seen.seen, decision=decide(evidence), findings=seen.findings
    )


__all__ = ["Request", "plan", "retire"]
