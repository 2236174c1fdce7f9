"""Inspects one invocation: claim, journal, receipt, each read once through a held descriptor (invocation.md 10).

1. wait for writers of the store, open the claim, ask the kernel whether a process holds it;
2. read and judge the claim, then its journal, and make the snapshot;
3. verify the resolution receipt, if one lies there;
4. make sure that nothing moved meanwhile; if it did, begin again, a bounded number of times.

`examine` is steps 1, 2 and 4, which every command shares; `inspect_invocation` adds step 3. Both only read. A
caller that holds the claim's lock itself passes `owner_check=False`.
"""

import os
import time
from collections.abc import Callable

from msgspec import Struct

from symbi_recover.core.claims import STORE_FILE_LIMIT, Inspection, Resolution, Snapshot, Status
from symbi_recover.core.codes import finding
from symbi_recover.core.errors import RecoverError, RefusedError
from symbi_recover.core.findings import Finding, NotChecked
from symbi_recover.core.report import KeyUsed, Proven, RecoveryReport
from symbi_recover.core.scalars import UUID
from symbi_recover.core.words import counted
from symbi_recover.read.beginnings import Beginnings, started_exactly
from symbi_recover.read.evidence.locate import claim_name, lstat_at, resolution_name
from symbi_recover.read.evidence.locks import LockState
from symbi_recover.read.evidence.opener import FileFacts, OpenedFile
from symbi_recover.read.evidence.store import STILL_OWNED, InvocationStore, holders, is_held
from symbi_recover.read.trust import Trusted, key_used
from symbi_recover.read.verify.claim import (
    CLAIM_INCOMPLETE,
    EMPTY_SHA256,
    ClaimFacts,
    check_binding,
    check_principal,
    check_scope,
    decode_key,
    judge_claim,
    make_snapshot,
    read_claim,
)
from symbi_recover.read.verify.journal import VerifiedJournal, verify
from symbi_recover.read.verify.receipt import verify_resolution
from symbi_recover.wire import canonical
from symbi_recover.wire.claim import has_float
from symbi_recover.wire.receipt import stored_as_written

JOURNAL_PREFIX = "Journal write failed: "
_ATTEMPTS = 6
_PAUSE = 0.02


class Evidence(Struct, frozen=True, kw_only=True):
    """Claim and journal of one invocation, verified together."""

    facts: ClaimFacts
    claim_path: str
    journal_path: str
    public_key: bytes
    key: KeyUsed
    recovery: RecoveryReport | None
    """None for a journal without any byte."""
    proven: Proven | None
    snapshot: Snapshot
    snapshot_hash: str
    claim_file: FileFacts
    findings: tuple[Finding, ...] = ()
    not_checked: tuple[NotChecked, ...] = ()

    @property
    def status(self) -> Status:
        """The verdict without any receipt."""
        settled = self.recovery is not None and not self.recovery.requires_reconciliation
        return Status.RECORDED if self.facts.complete and settled else Status.UNRESOLVED


class _MovedError(Exception):
    """Something changed while it was read; `cause` is what the mixture looked like."""

    def __init__(self, cause: RecoverError | None) -> None:
        super().__init__()
        self.cause = cause


def inspect_invocation(
    store: InvocationStore,
    scope: str,
    invocation_id: UUID,
    *,
    owner_check: bool = True,
    trusted: Trusted | None = None,
) -> Inspection:
    """Inspect an invocation as the runtime's `invocation inspect` does.

    Args:
        store: open store of the project.
        scope: as given.
        invocation_id: as given.
        owner_check: ask whether a process holds the claim; False for a caller that holds it.
        trusted: keys, one of which the claim must name; None takes the claim's own, as the runtime does.

    Raises:
        RecoverError: the first fault, with the runtime's words.
    """
    evidence = examine(store, scope, invocation_id, owner_check=owner_check, trusted=trusted)
    return conclude(store, evidence)


def conclude(store: InvocationStore, evidence: Evidence) -> Inspection:
    """Step 3, and the answer.

    Raises:
        RecoverError: the resolution receipt does not hold.
    """
    resolution, findings = read_resolution(store, evidence)
    if resolution is not None and evidence.status is Status.RECORDED:
        findings = (*findings, finding("resolution_overrides", "the result is saved and verified"))
    return Inspection(
        status=evidence.status if resolution is None else Status.RECONCILED,
        snapshot_hash=evidence.snapshot_hash,
        snapshot=evidence.snapshot,
        recovery=evidence.recovery,
        resolution=resolution,
        claim_complete=evidence.facts.complete,
        findings=(*evidence.findings, *findings),
        not_checked=evidence.not_checked,
    )


def read_resolution(
    store: InvocationStore, evidence: Evidence
) -> tuple[Resolution | None, tuple[Finding, ...]]:
    """The verified resolution of the evidence, None if there is no receipt; and what is odd about it.

    Raises:
        RecoverError: a receipt is there and does not hold.
    """
    name = resolution_name(evidence.snapshot.scope, evidence.snapshot.id)
    if not store.has(name):
        return None, ()
    with store.open_entry(name) as file:
        data = file.read(STORE_FILE_LIMIT)
        receipt = verify_resolution(data, evidence.public_key, evidence.snapshot_hash, file.path)
    odd: tuple[Finding, ...] = ()
    if not stored_as_written(data, receipt):
        odd = (finding("receipt_respelled", "the file is spelled differently", path=file.path),)
    return receipt.payload, odd


def examine(
    store: InvocationStore,
    scope: str,
    invocation_id: UUID,
    *,
    owner_check: bool = True,
    trusted: Trusted | None = None,
) -> Evidence:
    """Steps 1, 2 and 4; arguments and errors as for `inspect_invocation`."""
    check_scope(scope)

    def attempt() -> Evidence:
        if owner_check:
            store.wait_for_writers()
        with store.open_entry(claim_name(scope, invocation_id)) as file:
            beginnings = Beginnings(store)
            reading = _Reading(store, file, beginnings, owner_check=owner_check, trusted=trusted)
            return reading.examine(scope, invocation_id)

    return _settled(attempt, store.path)


def examine_claim(
    store: InvocationStore, name: str, beginnings: Beginnings, *, trusted: Trusted | None = None
) -> Evidence:
    """As `examine`, for a claim known by its file name: it decides for itself what it is about.

    Args:
        store: open store of the project.
        name: file name of the claim.
        beginnings: of the store's journals, for a claim that lacks a record.
        trusted: as for `inspect_invocation`.

    Raises:
        RecoverError: as `examine`; `claim_misplaced` for a claim that the runtime would look up elsewhere.
    """

    def attempt() -> Evidence:
        with store.open_entry(name) as file:
            reading = _Reading(store, file, beginnings, owner_check=True, trusted=trusted)
            return reading.examine(None, None)

    return _settled(attempt, f"{store.path}/{name}")


def _settled(attempt: Callable[[], Evidence], path: str) -> Evidence:
    """The result of the first attempt during which nothing moved."""
    cause: RecoverError | None = None
    for number in range(_ATTEMPTS):
        if number:
            time.sleep(_PAUSE)
        try:
            return attempt()
        except _MovedError as moved:
            cause = moved.cause
    raise RefusedError(
        "claim_changing",
        f"{JOURNAL_PREFIX}journal changed during verification; inspect a stable snapshot",
        path=path,
        detail=None if cause is None else f"at the last attempt: {cause.message}",
    )


class _Reading:
    """One attempt at one claim."""

    def __init__(
        self,
        store: InvocationStore,
        file: OpenedFile,
        beginnings: Beginnings,
        *,
        owner_check: bool,
        trusted: Trusted | None,
    ) -> None:
        self.store = store
        self.file = file
        self.beginnings = beginnings
        self.owner_check = owner_check
        self.trusted = trusted
        self.findings: list[Finding] = []
        self.not_checked: list[NotChecked] = []

    def examine(self, scope: str | None, invocation_id: UUID | None) -> Evidence:
        """Verify claim and journal; without scope and id, those that the claim names."""
        self._check_owner()
        try:
            evidence = self._read(scope, invocation_id)
        except RecoverError as error:
            if error.code == "journal_changed" or self._moved():
                raise _MovedError(error) from error
            raise
        if self._moved():
            raise _MovedError(None)
        return evidence

    def _check_owner(self) -> None:
        if not self.owner_check:
            return
        answer = self.store.ask_owner(self.file)
        if is_held(answer):
            raise RefusedError(
                "claim_live",
                STILL_OWNED,
                path=self.file.path,
                detail=holders(answer),
            )
        if answer.state is LockState.UNKNOWN and answer.because is not None:
            self.findings.append(finding("claim_owner_unknown", answer.because.detail, path=self.file.path))
            self.not_checked.append(
                NotChecked("whether a process still owns the invocation", answer.because.detail)
            )

    def _moved(self) -> bool:
        """Whether the claim, or its ownership, is not as it was when it was opened."""
        named = lstat_at(os.path.basename(self.file.path), self.store.folder)
        facts = self.file.facts
        if named is None or (named.st_dev, named.st_ino) != (facts.device, facts.inode):
            return True
        if not self.file.unchanged():
            return True
        return self.owner_check and (is_held(self.store.ask_owner(self.file)) or self.store.is_busy())

    def _judge(self, scope: str | None, invocation_id: UUID | None) -> ClaimFacts:
        path = self.file.path
        data = self.file.read(STORE_FILE_LIMIT)
        try:
            if scope is None or invocation_id is None:
                scope, invocation_id = self._own_identity(data)
            return judge_claim(
                data, path, project=self.store.project, scope=scope, invocation_id=invocation_id
            )
        except RefusedError as error:
            if error.code == "claim_incomplete":
                self.beginnings.explain(error, os.path.basename(path), read_claim(data, path).claim)
            raise

    def _read(self, scope: str | None, invocation_id: UUID | None) -> Evidence:
        path = self.file.path
        facts = self._judge(scope, invocation_id)
        key = decode_key(facts.reference, path)
        self._check_key(key)
        if facts.torn:
            self.findings.append(
                finding("claim_torn", f"{counted(facts.torn, 'byte')} after the last record", path=path)
            )
        verified = self._read_journal(facts, key)
        snapshot = make_snapshot(facts, EMPTY_SHA256 if verified is None else str(verified.sha256))
        return Evidence(
            facts=facts,
            claim_path=path,
            journal_path=f"{self.store.governed_path}/{facts.journal}",
            public_key=key,
            key=key_used(key, self.trusted),
            recovery=None if verified is None else verified.recovery,
            proven=None if verified is None else verified.proven,
            snapshot=snapshot,
            snapshot_hash=canonical.digest(snapshot),
            claim_file=self.file.facts,
            findings=tuple(self.findings),
            not_checked=tuple(self.not_checked),
        )

    def _own_identity(self, data: bytes) -> tuple[str, UUID]:
        path = self.file.path
        claim = read_claim(data, path).claim
        if claim is None:
            raise RefusedError("claim_incomplete", CLAIM_INCOMPLETE, path=path)
        expected = claim_name(claim.scope, claim.id)
        if expected != os.path.basename(path):
            raise RefusedError(
                "claim_misplaced", f"a claim for this scope and id belongs into {expected}", path=path
            )
        return claim.scope, claim.id

    def _check_key(self, key: bytes) -> None:
        path = self.file.path
        if self.trusted is None:
            self.findings.append(finding("claim_key_from_evidence", f"the key is {key.hex()}", path=path))
            self.not_checked.append(
                NotChecked("who signed the journal", "no key was given or pinned; the claim's own was used")
            )
        elif key not in self.trusted.keys:
            wanted = ", ".join(sorted(trusted.hex() for trusted in self.trusted.keys))
            raise RefusedError(
                "claim_key_differs",
                f"the claim names the key {key.hex()}, but trusted is {wanted}",
                path=path,
            )

    def _read_journal(self, facts: ClaimFacts, key: bytes) -> VerifiedJournal | None:
        """The verified journal, None for an empty one."""
        with self.store.open_journal(facts.journal) as journal:
            if journal.facts.size == 0:
                if not journal.unchanged():
                    raise _MovedError(None)
                return None
            try:
                verified = verify(journal, key, run_id=facts.claim.run_id, want_digest=True)
            except RefusedError as error:
                error.message = f"{JOURNAL_PREFIX}{error.message}"
                raise
            started = verified.started
            if has_float(facts.claim.admission):
                started = started_exactly(journal)
            check_binding(facts.claim, started, journal.path)
            check_principal(facts.claim, verified.recovery.agent_id, journal.path)
            self.findings.extend(verified.findings)
        return verified
