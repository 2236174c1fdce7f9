"""One run of `lease retire` under the lock: evidence, fence, proof, and the record last (leases.md section 18.6).

1. The store is locked; read and judge it; examine the record: endpoint, engine, absence, client, witnesses.
2. Client scan, two passes.
3. If nothing speaks against it and some row could hold: note, ledger intent, empty image, fence.
4. Scan again; unless a reboot or a replaced engine is witnessed: drain and census.
5. The fence still stands; same engine, same boot.
6. The table decides. To retire: a signed intent, durable.
7. Remove the fence, without force; then its image.
8. Absence again, and for a quiet engine the census again; else `late_container`, and the record stays.
9. The record still is the same file: unlink it, sync the directory.
10. Signed receipt; ledger outcome; release the lock.

The record goes last. A run that stops anywhere leaves a store that the helper can handle; the same command, given again,
removes left-over fences of its own, gathers all evidence anew, or completes the receipt if the record has gone.
"""

import base64
import os

from msgspec.structs import replace

from symbi_recover.core.codes import finding
from symbi_recover.core.errors import RecoverError, RefusedError, UnexaminedError
from symbi_recover.core.findings import Finding
from symbi_recover.core.lease_records import LABEL
from symbi_recover.core.leases import LeaseView
from symbi_recover.core.retirement import (
    Decision,
    Evidence,
    Quiescence,
    RetirementIntent,
    RetirementReceipt,
    RetireReport,
    Seen,
)
from symbi_recover.read.evidence.opener import FileFacts
from symbi_recover.read.retirement.census import take_census, wait_for_quiet
from symbi_recover.read.retirement.clients import scan_clients
from symbi_recover.read.retirement.engine import absence_of, look_at_engine
from symbi_recover.read.retirement.examine import Examination, Fenced, examine, scan_details, with_run
from symbi_recover.read.retirement.notes import RETIREMENTS
from symbi_recover.read.retirement.table import decide, might_retire
from symbi_recover.write.atomic import changing, sync_folder
from symbi_recover.write.fence import FenceWork
from symbi_recover.write.fences import clear_own, has_own
from symbi_recover.write.notes import usable
from symbi_recover.write.receipts import Earlier, Receipts
from symbi_recover.write.records import is_gone, need_writable, read_same, unlink_record
from symbi_recover.write.retire_request import (
    Outcome,
    Request,
    judged,
    not_established,
    record_of,
    report_of,
    terms,
)
from symbi_recover.write.sign import Signer
from symbi_recover.write.supervisor import HeldStore, is_local

COMMAND = "lease retire"


class Run:
    """One run under the lock."""

    def __init__(self, request: Request, held: HeldStore, signer: Signer | None) -> None:
        self.request = request
        self.held = held
        self.signer = signer
        self.receipts = Receipts(request.home, request.lease, signer) if signer is not None else None
        self.snapshot, self.report = judged(request, held.path, ours=True)
        self.asker = request.asker(self.report.helper_uid)
        self.extra: list[Finding] = self.receipts.findings if self.receipts is not None else []
        """What goes into every report; the receipts add to it."""
        self.details: dict[str, str] = {}
        self._begun = False
        self._receipt_sha256 = ""

    def go(self) -> RetireReport:
        """All steps."""
        self.held.check()
        if is_gone(self.held, self.request.lease):
            before = self._before()
            if before is not None:
                return before
        view, folder = self._record()
        if self.receipts is not None and self.receipts.interrupted(view.sha256) is not None:
            self.extra.append(finding("retirement_unfinished", "an earlier intent has no receipt"))
        try:
            report = self._act(view, folder)
        except RecoverError as error:
            self.request.recorder.finish("failed", error=error)
            raise
        done = report.outcome == "retired"
        receipts = {report.receipt: self._receipt_sha256} if report.receipt is not None else {}
        self.request.recorder.finish("done" if done else "refused", receipts=receipts)
        return report

    def _act(self, view: LeaseView, folder: FileFacts) -> RetireReport:
        """Clear own left-overs, examine, and go on if that can lead to something; the ledger knows before each change."""
        if view.sha256 == self.request.confirm and has_own(self.request.home, view.lease):
            self._begin(view)
            left = clear_own(self.request.home, view.lease, self.request.hands, certain=False)
            self.extra += [finding("fence_left", why) for why in left]
        seen = examine(view, self.report, folder, self.asker)
        evidence = self._evidence(seen, seen.unfenced)
        if not might_retire(evidence):
            return self._refused(seen, decide(evidence), seen.unfenced)
        need_writable(self.held)
        self._begin(view)
        return self._fenced(seen)

    def _begin(self, view: LeaseView) -> None:
        if not self._begun:
            subject = {"state_dir": self.held.path, "lease": view.lease}
            self.request.recorder.begin(COMMAND, subject, view.sha256, anew=True)
            self._begun = True

    def _record(self) -> tuple[LeaseView, FileFacts]:
        try:
            return record_of(self.request, self.snapshot, self.report)
        except UnexaminedError as error:
            # A file that counts for nothing may be why the end of an earlier run is not known.
            error.detail = "; ".join(f"{found.path}: {found.message}" for found in self.extra) or error.detail
            raise

    def _before(self) -> RetireReport | None:
        """The record is not there: perhaps an earlier run removed it."""
        if self.receipts is None or self.request.confirm is None:
            return None
        finished = self.receipts.finished(self.request.confirm)
        subject = {"state_dir": self.held.path, "lease": self.request.lease}
        if finished is not None:
            self.request.recorder.begin(COMMAND, subject, self.request.confirm)
            path, sha256 = finished.receipt_path or "", finished.receipt_sha256 or ""
            self.request.recorder.finish("already_done", receipts={path: sha256})
            note = finding("already_retired", f"receipt {finished.receipt_path}")
            return self._done("already_retired", note, finished.receipt_path)
        interrupted = self.receipts.interrupted(self.request.confirm)
        if interrupted is None:
            return None
        spoiled = self.receipts.spoiled.get(interrupted.number)
        if spoiled is not None:
            message = "the receipt of the run that removed the record is there and counts for nothing; it is kept as it is"
            raise RefusedError("operator_file_unusable", message, path=spoiled)
        with changing(self.held.path):
            sync_folder(self.held.folder)
        left = clear_own(self.request.home, self.request.lease, self.request.hands, certain=True)
        self.extra += [finding("fence_left", why) for why in left]
        self.request.recorder.begin(COMMAND, subject, self.request.confirm)
        path = self._write_receipt(interrupted, "absent_after_interruption", ("retirement_completed",), ())
        self.request.recorder.finish("done", receipts={path: self._receipt_sha256})
        note = finding("retirement_completed", f"run {interrupted.number} left an intent without a receipt")
        return self._done("completed", note, path)

    def _done(self, outcome: Outcome, note: Finding, receipt: str | None) -> RetireReport:
        return report_of(
            self.request,
            self.report,
            outcome,
            findings=(*self.extra, note),
            receipt=receipt,
        )

    def _evidence(self, seen: Examination, fenced: Fenced) -> Evidence:
        agreed = terms(
            self.request,
            seen.view,
            lock="held",
            not_local=is_local(self.held.folder),
            no_receipt=self._why_no_receipt(),
            details=self.details,
        )
        return seen.evidence(agreed, fenced)

    def _why_no_receipt(self) -> str | None:
        if self.signer is None:
            return "the operator has no key; see `symbi-recover key init`"
        return usable(self.request.home, RETIREMENTS)

    def _fenced(self, seen: Examination) -> RetireReport:
        """Steps 3 to 10."""
        endpoint = seen.endpoint.address or ""
        work = FenceWork(
            self.request.hands, self.request.home, seen.view.lease, endpoint, self.request.clock()
        )
        try:
            self.extra += work.make()
            fenced = self._behind(seen, work)
            decision = decide(self._evidence(seen, fenced))
            if not decision.retire:
                return self._refused(seen, decision, fenced, work)
            return self._proven(seen, decision, fenced, work)
        except RecoverError as error:
            why = work.remove()
            if why is not None:
                left = f"a fence is left ({why}); see `symbi-recover lease fences`"
                error.detail = f"{error.detail}; {left}" if error.detail else left
            raise
        finally:
            work.remove()

    def _behind(self, seen: Examination, work: FenceWork) -> Fenced:
        """Steps 4 and 5: scan again, drain and census, then fence, engine and boot as they were."""
        fenced = replace(seen.unfenced, fence=work.fence)
        if work.fence.state != "unbroken":
            self.details[work.fence.state] = work.fence.why or ""
            return fenced
        folders = (self.held.path, self.asker.given_path)
        scan = scan_clients(seen.view.record, folders, self.asker.host)
        self.details |= scan_details(scan)
        fenced = replace(fenced, scans=(*fenced.scans, scan))
        sight = seen.sight
        rows = {row.row for row in decide(self._evidence(seen, fenced)).rows if row.holds}
        clean = all(one.clean for one in fenced.scans)
        if not rows & {"T1", "T2"} and clean and sight.engine is not None and sight.listener is not None:
            census = take_census(sight.engine, sight.listener, self.asker.host)
            if census.code is not None:
                self.details[census.code] = census.why or ""
            fenced = replace(fenced, quiescence=census)
        return self._same(seen, fenced, work)

    def _same(self, seen: Examination, fenced: Fenced, work: FenceWork) -> Fenced:
        """Step 5."""
        endpoint = seen.endpoint.address or ""
        hand = self.request.hands(endpoint)
        try:
            fence = work.check(hand)
            late = hand.labelled(LABEL, seen.view.lease)
            now = look_at_engine(endpoint, hand, self.asker.host, seen.record.last_write_ns)
        except UnexaminedError as error:
            self.details["engine_unavailable"] = f"{error.code}: {error.message}"
            return replace(fenced, engine_codes=("engine_unavailable",))
        finally:
            hand.close()
        if fence.state != "unbroken":
            self.details[fence.state] = fence.why or ""
        self.details |= now.details
        if late:
            self.details["container_renamed"] = f"container {late[0].id} carries the lease's label"
        return replace(
            fenced,
            fence=fence,
            same_engine=(now.engine, now.listener) == (seen.sight.engine, seen.sight.listener),
            same_boot=self.asker.host.boot_id() == seen.boot_id,
            engine_codes=tuple(dict.fromkeys((*seen.sight.codes, *now.codes))),
            absence="container_renamed" if late else fenced.absence,
        )

    def _proven(self, seen: Examination, decision: Decision, fenced: Fenced, work: FenceWork) -> RetireReport:
        """Steps 6 to 10."""
        if self.receipts is None:
            raise RefusedError("receipt_unavailable", "the operator has no key")
        told = with_run(seen, fenced)
        data = read_same(self.held, seen.record)
        run = self.receipts.write_intent(self._intent(seen, decision, told, data))
        why = work.remove()
        against = finding("fence_left", why) if why is not None else None
        if against is None and work.fence.state != "unbroken":
            against = finding(work.fence.state, work.fence.why or "")
        if against is not None:
            receipt = self._write_receipt(run, "refused", (against.code,), (against.message,))
            behind = replace(fenced, fence=work.fence)
            return replace(self._refused(seen, decision, behind, None, against), receipt=receipt)
        late = self._late(seen, fenced.quiescence)
        if late is not None:
            receipt = self._write_receipt(run, "late_container", (late.code,), (late.message,))
            return replace(self._refused(seen, decision, fenced, None, late), receipt=receipt)
        synced = unlink_record(self.held, seen.record)
        notes = [finding("retired", f"{', '.join(decision.proofs)}")]
        if not synced:
            notes.append(finding("sync_unconfirmed", "the removal of the record"))
        left_over = clear_own(self.request.home, seen.view.lease, self.request.hands, certain=True)
        notes += [finding("fence_left", text) for text in left_over]
        codes = (*decision.codes, *(note.code for note in notes))
        receipt = self._write_receipt(run, "retired", codes, tuple(note.message for note in notes[1:]))
        return report_of(
            self.request,
            self.report,
            "retired",
            seen=told,
            decision=decision,
            findings=(*seen.findings, *self.extra, *notes),
            receipt=receipt,
        )

    def _intent(self, seen: Examination, decision: Decision, told: Seen, data: bytes) -> RetirementIntent:
        return RetirementIntent(
            lease=seen.view.lease,
            record=base64.b64encode(data).decode(),
            record_sha256=seen.record.sha256,
            proofs=decision.proofs,
            codes=decision.codes,
            seen=told,
            statement=self.request.statement,
            not_established=not_established(told),
            host=self.asker.host.name(),
            uid=os.geteuid(),
            at_ns=self.request.clock(),
        )

    def _late(self, seen: Examination, census: Quiescence | None) -> Finding | None:
        """Step 8: what speaks against it after the fence has gone, or None."""
        endpoint = seen.endpoint.address or ""
        hand = self.request.hands(endpoint)
        try:
            absence, text = absence_of(hand, seen.view, f"{self.held.path}/{seen.view.lease}.json")
            now = look_at_engine(endpoint, hand, self.asker.host, seen.record.last_write_ns)
        finally:
            hand.close()
        if absence is not None:
            code = absence if absence == "engine_unavailable" else "late_container"
            return finding(code, text)
        if (now.engine, now.listener) != (seen.sight.engine, seen.sight.listener):
            why = [f"{code}: {now.details.get(code, '')}" for code in now.codes]
            return finding("engine_changed", "; ".join(["after the fence was removed", *why]))
        if self.asker.host.boot_id() != seen.boot_id:
            return finding("boot_changed", "after the fence was removed")
        engine, listener = seen.sight.engine, seen.sight.listener
        if census is None or not census.quiet or engine is None or listener is None:
            return None
        again = wait_for_quiet(engine, listener, self.asker.host, control=census.control or 0)
        if again.quiet:
            return None
        return finding(again.code or "census_unreadable", f"after the fence was removed: {again.why}")

    def _write_receipt(
        self, run: Earlier, outcome: str, codes: tuple[str, ...], remarks: tuple[str, ...]
    ) -> str:
        if self.receipts is None:
            raise RefusedError("receipt_unavailable", "the operator has no key")
        receipt = RetirementReceipt(
            lease=self.request.lease,
            record_sha256=run.intent.record_sha256,
            intent_sha256=run.intent_sha256,
            outcome=outcome,  # type: ignore[arg-type]  # one of the literals
            codes=codes,
            remarks=remarks,
            at_ns=self.request.clock(),
        )
        path, self._receipt_sha256 = self.receipts.write_receipt(run, receipt)
        return path

    def _refused(
        self,
        seen: Examination,
        decision: Decision,
        fenced: Fenced,
        work: FenceWork | None = None,
        *more: Finding,
    ) -> RetireReport:
        """The record is kept; a fence that stands is taken away."""
        extra = [*self.extra, *more]
        if work is not None:
            why = work.remove()
            if why is not None:
                extra.append(finding("fence_left", why))
        return report_of(
            self.request,
            self.report,
            "refused",
            seen=with_run(seen, fenced),
            decision=replace(decision, retire=False),
            findings=(*seen.findings, *extra),
        )
