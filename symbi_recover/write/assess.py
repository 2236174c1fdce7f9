"""Records an operator's signed assessment of an interrupted invocation (invocation.md section 13).

1. the review keeps its rules; 2. the claim is locked, for the whole command, and the evidence verified; 3. a receipt
that is there is returned for the same review, and ends the command for another; 4. the review is for this evidence,
which is not settled already; 5. the project's key is the original; 6. the intent goes to the ledger; 7. under the
store's lock the evidence is taken again and compared, and the capacity checked; 8. the receipt is published and read
back; 9. (schedules) the history is updated, with both locks released.

Claim and journal are never modified, and no receipt is ever replaced.
"""

import errno
import hashlib
import os
from collections.abc import Callable

from msgspec import Struct

from symbi_recover.core.claims import (
    RESOLUTION_PREFIX,
    SCHEDULER_SCOPE,
    STORE_FILE_LIMIT,
    Resolution,
    Review,
    Status,
)
from symbi_recover.core.errors import RecoverError, RefusedError
from symbi_recover.core.ledger import Ending
from symbi_recover.core.scalars import UUID
from symbi_recover.read.cron import default_path
from symbi_recover.read.evidence.locate import resolution_name
from symbi_recover.read.evidence.opener import system_text
from symbi_recover.read.evidence.store import InvocationStore
from symbi_recover.read.invocation import JOURNAL_PREFIX, Evidence, examine, read_resolution
from symbi_recover.read.proposal import publication_warnings
from symbi_recover.read.trust import Trusted
from symbi_recover.read.verify.receipt import check_review
from symbi_recover.wire import timestamp
from symbi_recover.wire.receipt import payload_text, receipt_text
from symbi_recover.write.atomic import changing, publish, sync_folder
from symbi_recover.write.capacity import check_capacity
from symbi_recover.write.consent import check_hash
from symbi_recover.write.cron import CronUpdate, update
from symbi_recover.write.ledger import Recorder
from symbi_recover.write.lock import HeldLock, claim_lock, store_lock
from symbi_recover.write.sign import audit_signer

COMMAND = "invocation reconcile"
_HARMLESS = frozenset(
    {
        "evidence_moved",
        "receipt_taken",
        "rename_unsupported",
        "store_busy",
        "store_capacity",
        "store_entry_stray",
    }
)


class Assessment(Struct, frozen=True, kw_only=True):
    """What the operator asks to be recorded, and where."""

    scope: str
    id: UUID
    review: Review
    cron_store: str | None
    """The database that was named; None for the default one."""


class Reconciled(Struct, frozen=True, kw_only=True):
    """How it ended."""

    resolution: Resolution
    repeated: bool
    """Whether the receipt was there already."""
    confirmed: bool
    """Whether the file system could confirm that the receipt is durable."""
    cron: CronUpdate | None
    """None for invocations that no schedule opened."""
    given_up: tuple[str, ...]
    """What the resolution makes impossible, in words."""


def reconcile(
    store: InvocationStore,
    asked: Assessment,
    *,
    clock: Callable[[], int],
    record: Recorder,
    trusted: Trusted | None = None,
) -> Reconciled:
    """Publish the resolution receipt, and update the schedule's history.

    Args:
        store: open store of the project.
        asked: the review and what it is for.
        clock: nanoseconds since 1970.
        record: where intent and outcome go.
        trusted: keys, one of which the claim must name; None takes the claim's own.

    Raises:
        RecoverError: the first fault, with the runtime's words.
    """
    check_review(asked.review)
    with claim_lock(store, asked.scope, asked.id) as held:
        work = _Work(store, asked, clock, record, trusted, held)
        resolution, repeated = work.resolve()
    cron = None
    try:
        if asked.scope == SCHEDULER_SCOPE:
            path = asked.cron_store or default_path(store.project)
            cron = update(path, store, asked.scope, asked.id, clock=clock)
    except RecoverError as error:
        record.finish("failed", error=error, receipts=work.receipts)
        raise
    record.finish("already_done" if repeated else "done", receipts=work.receipts)
    return Reconciled(
        resolution=resolution,
        repeated=repeated,
        confirmed=work.confirmed,
        cron=cron,
        given_up=work.given_up,
    )


class _Work:
    """The part under the claim's lock."""

    def __init__(
        self,
        store: InvocationStore,
        asked: Assessment,
        clock: Callable[[], int],
        record: Recorder,
        trusted: Trusted | None,
        held: HeldLock,
    ) -> None:
        self.store = store
        self.asked = asked
        self.clock = clock
        self.record = record
        self.trusted = trusted
        self.held = held
        self.name = resolution_name(asked.scope, asked.id)
        self.path = f"{store.path}/{self.name}"
        self.confirmed = True
        self.receipts: dict[str, str] = {}
        self.given_up: tuple[str, ...] = ()

    def resolve(self) -> tuple[Resolution, bool]:
        """Steps 2 to 8; the receipt's payload, and whether it was there already."""
        evidence = examine_held(self.store, self.asked.scope, self.asked.id, self.held, self.trusted)
        present, _ = read_resolution(self.store, evidence)
        if present is not None:
            return self._repeat(evidence, present), True
        check_hash(
            self.asked.review.snapshot_hash,
            evidence.snapshot_hash,
            "invocation evidence changed since review; inspect it again",
        )
        check_unsettled(evidence)
        self.given_up = publication_warnings(self.store, evidence.snapshot, evidence.recovery)
        signer = audit_signer(
            self.store,
            evidence.facts.reference.public_key,
            absent="original audit signing key is unavailable",
        )
        payload = Resolution(
            version=1,
            snapshot=evidence.snapshot,
            review=self.asked.review,
            operator_uid=os.geteuid(),
            recorded_at=timestamp.from_nanoseconds(self.clock()),
        )
        data = receipt_text(payload, signer.sign(RESOLUTION_PREFIX + payload_text(payload)))
        self.record.begin(COMMAND, subject_of(self.store, evidence), evidence.snapshot_hash)
        try:
            self._publish(evidence, data)
            resolution, _ = read_resolution(self.store, evidence)
            if resolution is None:
                raise RefusedError(
                    "receipt_unconfirmed", "resolution publication is unconfirmed", path=self.path
                )
        except RecoverError as error:
            self.record.finish(ending_of(error), error=error)
            raise
        self._note_receipt(data)
        return resolution, False

    def _repeat(self, evidence: Evidence, present: Resolution) -> Resolution:
        if present.review != self.asked.review:
            raise RefusedError(
                "resolution_exists", "invocation already has a different resolution", path=self.path
            )
        self.record.begin(COMMAND, subject_of(self.store, evidence), evidence.snapshot_hash)
        try:
            self._note_receipt(make_durable(self.store, self.name))
            with changing(self.store.path):
                self.confirmed = sync_folder(self.store.folder)
        except RecoverError as error:
            self.record.finish("failed", error=error)
            raise
        return present

    def _publish(self, evidence: Evidence, data: bytes) -> None:
        with store_lock(self.store):
            again = examine_held(self.store, self.asked.scope, self.asked.id, self.held, self.trusted)
            if again.snapshot != evidence.snapshot:
                raise RefusedError(
                    "evidence_moved",
                    "invocation evidence changed during reconciliation",
                    path=self.store.path,
                )
            check_capacity(self.store, len(data))
            self.confirmed = publish_receipt(self.store, self.name, data)

    def _note_receipt(self, data: bytes) -> None:
        self.receipts = {self.path: hashlib.sha256(data).hexdigest()}


def examine_held(
    store: InvocationStore, scope: str, invocation_id: UUID, held: HeldLock, trusted: Trusted | None
) -> Evidence:
    """The evidence of a claim whose lock this process holds; the file that was read must be the locked one.

    Raises:
        RecoverError: the first fault, with the runtime's words.
    """
    evidence = examine(store, scope, invocation_id, owner_check=False, trusted=trusted)
    read, locked = evidence.claim_file, held.facts
    if (read.device, read.inode) != (locked.device, locked.inode):
        raise RefusedError(
            "claim_changing",
            f"{JOURNAL_PREFIX}journal changed during verification; inspect a stable snapshot",
            path=evidence.claim_path,
            detail="the claim was exchanged after its lock was taken",
        )
    return evidence


def check_unsettled(evidence: Evidence) -> None:
    """Refuse evidence that a result settles.

    Raises:
        RefusedError: `result_recorded`, or `journal_empty` for a result beside a journal without a record.
    """
    if evidence.status is Status.RECORDED:
        raise RefusedError(
            "result_recorded", "invocation already has a verified recorded result", path=evidence.claim_path
        )
    if evidence.facts.complete and evidence.recovery is None:
        raise RefusedError(
            "journal_empty",
            f"{JOURNAL_PREFIX}signed journal has no records",
            path=evidence.journal_path,
        )


def publish_receipt(store: InvocationStore, name: str, data: bytes) -> bool:
    """Publish a receipt under the store's lock; False where the folder cannot be synced at all.

    Raises:
        RefusedError: `receipt_taken`, `rename_unsupported`, `write_failed`.
    """
    path = f"{store.path}/{name}"
    try:
        return publish(store.folder, store.path, name, data)
    except OSError as error:
        raise refused_receipt(error, path) from error


def ending_of(error: RecoverError) -> Ending:
    """How the ledger calls a failure: refused where nothing can have been written, failed otherwise."""
    return "refused" if error.code in _HARMLESS else "failed"


def refused_receipt(error: OSError, path: str) -> RefusedError:
    """The refusal for a receipt that could not be written."""
    if error.errno == errno.EEXIST:
        return RefusedError(
            "receipt_taken", f"failed to persist temporary file: {system_text(error)}", path=path
        )
    return RefusedError("write_failed", system_text(error), path=path)


def make_durable(store: InvocationStore, name: str) -> bytes:
    """Sync a receipt that was found, for its writer may have been stopped before that; gives its bytes.

    Raises:
        RefusedError: `write_failed`, or the file rule.
        UnexaminedError: it cannot be opened.
    """
    with store.open_entry(name) as file, changing(file.path):
        os.fsync(file.descriptor)
        return file.read(STORE_FILE_LIMIT)


def subject_of(store: InvocationStore, evidence: Evidence) -> dict[str, str]:
    """What the ledger calls an invocation."""
    snapshot = evidence.snapshot
    return {"project": store.project, "scope": snapshot.scope, "id": str(snapshot.id)}
