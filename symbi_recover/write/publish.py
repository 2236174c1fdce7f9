"""Recovers one file publication of an interrupted invocation (publication.md section 9).

1. the claim is locked, for the whole command, and the evidence verified; 2. the hash that was reviewed is the present
one; 3. the signed intent is found; 4. a receipt that is there is verified, and returned if the file is still as it
says; 5. neither a result nor a resolution settles the invocation; 6. the project's key is the original; 7. the intent
goes to the ledger; 8. under the store's lock the evidence is compared again, the capacity checked, and the room for
the receipt taken; 9. the file gets its name (`write/effect.py`); 10. the receipt is signed, published, read back.

Nothing outside the store is touched before step 9. The tool that made the file is never run again.
"""

import hashlib
import os
from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

from symbi_recover.core.claims import (
    PUBLICATION_PREFIX,
    STORE_FILE_LIMIT,
    FileRecovery,
    PublicationState,
    Status,
)
from symbi_recover.core.errors import RecoverError, RefusedError
from symbi_recover.core.scalars import UUID
from symbi_recover.core.values import PublicationIntent
from symbi_recover.read.evidence.locate import publication_name
from symbi_recover.read.evidence.store import InvocationStore
from symbi_recover.read.invocation import Evidence, read_resolution
from symbi_recover.read.publication import find_intent, read_publication_receipt
from symbi_recover.read.trust import Trusted
from symbi_recover.wire import canonical, timestamp
from symbi_recover.wire.receipt import payload_text, receipt_text
from symbi_recover.write import effect
from symbi_recover.write.assess import ending_of, examine_held, make_durable, refused_receipt, subject_of
from symbi_recover.write.atomic import Temporary, changing, sync_folder
from symbi_recover.write.capacity import check_capacity
from symbi_recover.write.consent import check_hash
from symbi_recover.write.ledger import Recorder
from symbi_recover.write.lock import HeldLock, claim_lock, store_lock
from symbi_recover.write.sign import Signer, audit_signer

COMMAND = "invocation file-recover"
_ROOM = 4096
"""Bytes that a receipt may have besides snapshot, intent and file list."""


class Recovered(Struct, frozen=True, kw_only=True):
    """How it ended."""

    payload: FileRecovery
    how: Literal["renamed", "acknowledged", "repeated"]
    confirmed: bool
    """Whether the file systems could confirm that all of it is durable."""


def recover(
    store: InvocationStore,
    which: tuple[str, UUID, UUID],
    snapshot_hash: str,
    *,
    clock: Callable[[], int],
    record: Recorder,
    trusted: Trusted | None = None,
) -> Recovered:
    """Finish or acknowledge a publication, and publish its receipt.

    Args:
        store: open store of the project.
        which: scope, invocation id, publication id.
        snapshot_hash: the hash that was reviewed, which is the consent.
        clock: nanoseconds since 1970.
        record: where intent and outcome go.
        trusted: keys, one of which the claim must name; None takes the claim's own.

    Raises:
        RecoverError: the first fault, with the runtime's words.
    """
    scope, invocation_id, _ = which
    with claim_lock(store, scope, invocation_id) as held:
        done, receipts = _Work(store, which, clock, record, trusted, held).run(snapshot_hash)
        record.finish("already_done" if done.how == "repeated" else "done", receipts=receipts)
    return done


class _Work:
    """The command, under the claim's lock."""

    def __init__(
        self,
        store: InvocationStore,
        which: tuple[str, UUID, UUID],
        clock: Callable[[], int],
        record: Recorder,
        trusted: Trusted | None,
        held: HeldLock,
    ) -> None:
        self.store = store
        self.scope, self.id, self.publication = which
        self.clock = clock
        self.record = record
        self.trusted = trusted
        self.held = held
        self.name = publication_name(*which)
        self.path = f"{store.path}/{self.name}"

    def run(self, snapshot_hash: str) -> tuple[Recovered, dict[str, str]]:
        """Steps 1 to 10; and the receipt's hash by its path."""
        evidence = self._examine()
        check_hash(snapshot_hash, evidence.snapshot_hash)
        intent = find_intent(evidence.recovery, self.publication)
        self._refuse_repeated(evidence)
        present, _ = read_publication_receipt(self.store, evidence, intent)
        if present is not None:
            return self._repeat(evidence, intent, present)
        self._check_open(evidence)
        signer = audit_signer(
            self.store,
            evidence.facts.reference.public_key,
            absent="original signing key is unavailable",
        )
        self._begin(evidence)
        try:
            return self._recover(evidence, intent, signer)
        except RecoverError as error:
            self.record.finish(_ending(error), error=error)
            raise

    def _examine(self) -> Evidence:
        return examine_held(self.store, self.scope, self.id, self.held, self.trusted)

    def _begin(self, evidence: Evidence) -> None:
        subject = subject_of(self.store, evidence) | {"publication": str(self.publication)}
        self.record.begin(COMMAND, subject, evidence.snapshot_hash)

    def _refuse_repeated(self, evidence: Evidence) -> None:
        """The runtime takes the first of several intents with one id, in silence; which was meant is not certain."""
        recovery = evidence.recovery
        publications = () if recovery is None else recovery.publications
        same = [one for one in publications if one.intent.publication_id == self.publication]
        if len(same) > 1:
            raise RefusedError(
                "publication_repeated",
                f"the journal holds {len(same)} intents with this publication id",
                path=evidence.journal_path,
            )

    def _repeat(
        self, evidence: Evidence, intent: PublicationIntent, present: FileRecovery
    ) -> tuple[Recovered, dict[str, str]]:
        if effect.judged(intent).runtime_state is not PublicationState.PUBLISHED:
            raise RefusedError(
                "publication_output_changed",
                "previously recovered output changed; no file altered",
                path=f"{intent.parent_path}/{intent.target_name}",
            )
        self._begin(evidence)
        try:
            data = make_durable(self.store, self.name)
            with changing(self.store.path):
                confirmed = sync_folder(self.store.folder)
        except RecoverError as error:
            self.record.finish("failed", error=error)
            raise
        effect.tidy(intent)
        done = Recovered(payload=present, how="repeated", confirmed=confirmed)
        return done, {self.path: hashlib.sha256(data).hexdigest()}

    def _check_open(self, evidence: Evidence) -> None:
        if evidence.status is Status.RECORDED:
            raise RefusedError(
                "result_recorded", "invocation already has a recorded result", path=evidence.claim_path
            )
        resolution, _ = read_resolution(self.store, evidence)
        if resolution is not None:
            raise RefusedError(
                "publication_resolved",
                "invocation already has an operator resolution; no new file recovery permitted",
                path=self.store.path,
            )

    def _recover(
        self, evidence: Evidence, intent: PublicationIntent, signer: Signer
    ) -> tuple[Recovered, dict[str, str]]:
        with store_lock(self.store):
            if self._examine().snapshot != evidence.snapshot:
                raise RefusedError(
                    "evidence_moved", "invocation evidence changed during recovery", path=self.store.path
                )
            allowance = _allowance(evidence, intent, self.path)
            check_capacity(self.store, allowance)
            try:
                with Temporary(self.store.folder, self.store.path) as temporary:
                    temporary.reserve(allowance)
                    temporary.prove()
                    done = effect.complete(intent)
                    data = self._receipt(evidence, intent, signer, allowance)
                    temporary.fill(data)
                    confirmed = temporary.publish(self.name)
            except OSError as error:
                raise refused_receipt(error, self.path) from error
            payload, _ = read_publication_receipt(self.store, evidence, intent)
            if payload is None:
                raise RefusedError(
                    "file_receipt_unconfirmed",
                    "file recovered but recovery receipt is unconfirmed",
                    path=self.path,
                )
        recovered = Recovered(payload=payload, how=done.how, confirmed=confirmed and done.confirmed)
        return recovered, {self.path: hashlib.sha256(data).hexdigest()}

    def _receipt(
        self, evidence: Evidence, intent: PublicationIntent, signer: Signer, allowance: int
    ) -> bytes:
        payload = FileRecovery(
            version=1,
            snapshot=evidence.snapshot,
            publication=intent,
            created_files=_created(intent),
            operator_uid=os.geteuid(),
            recorded_at=timestamp.from_nanoseconds(self.clock()),
        )
        data = receipt_text(payload, signer.sign(PUBLICATION_PREFIX + payload_text(payload)))
        if len(data) > allowance:
            raise RefusedError(
                "file_receipt_too_large", "file recovered but receipt exceeds its bound", path=self.path
            )
        return data


def _ending(error: RecoverError) -> Any:
    harmless = {
        "publication_conflicts",
        "publication_candidate_changed",
        "publication_target_taken",
        "publication_parent_changed",
        "publication_parent_unreachable",
    }
    return "refused" if error.code in harmless else ending_of(error)


def _created(intent: PublicationIntent) -> list[dict[str, Any]]:
    """The file list with members sorted, which both kinds of runtime verify (section 8)."""
    return [{"bytes": intent.bytes, "path": intent.path, "sha256": intent.sha256}]


def _allowance(evidence: Evidence, intent: PublicationIntent, path: str) -> int:
    fixed = {"snapshot": evidence.snapshot, "publication": intent, "created_files": _created(intent)}
    allowance = len(canonical.compact(fixed)) + _ROOM
    if allowance > STORE_FILE_LIMIT:
        raise RefusedError(
            "file_receipt_too_large", "file recovery receipt would exceed its bound", path=path
        )
    return allowance
