"""Lists the invocations of a project, and what is odd in its store.

1. list the store and the journals by name (`read/entries.py`);
2. examine each claim, one after the other, keeping only its row: torn, foreign and unreadable ones have one as well;
3. what no claim accounts for is an orphan: journals, receipts, candidates beside publications.

One claim that cannot be read never hides the others. Memory grows with the number of names, not with the evidence.
"""

import stat
from collections import Counter
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from symbi_recover.core.claims import (
    STORE_FILE_LIMIT,
    ClaimRecord,
    ClaimState,
    ListedInvocation,
    ListedPublication,
    PublicationState,
    Status,
    StoreSummary,
)
from symbi_recover.core.codes import as_finding, finding
from symbi_recover.core.errors import RecoverError, UnexaminedError
from symbi_recover.core.findings import Finding, Severity
from symbi_recover.read.beginnings import Beginnings
from symbi_recover.read.entries import Entries, read_entries
from symbi_recover.read.evidence.locate import journal_name, lstat_at, publication_name, resolution_name
from symbi_recover.read.evidence.opener import OpenedFile
from symbi_recover.read.evidence.store import InvocationStore
from symbi_recover.read.invocation import Evidence, conclude, examine_claim
from symbi_recover.read.orphans import Orphans
from symbi_recover.read.trust import Trusted
from symbi_recover.read.verify.publication import judge_publication
from symbi_recover.wire.claim import read_record
from symbi_recover.wire.strictjson import JsonError

_STATES = {
    Status.RECORDED: ClaimState.RECORDED,
    Status.UNRESOLVED: ClaimState.UNRESOLVED,
    Status.RECONCILED: ClaimState.RECONCILED,
}
_QUIET = frozenset({"claim_key_from_evidence", "claim_owner_unknown"})
_UNREAD = frozenset(
    {"claim_changing", "claim_incomplete", "claim_malformed", "claim_too_large", "store_file_not_private"}
)
"""Refusals of claims whose content is not known for certain; after any other, the claim itself was read."""
_STATE_CODES = {
    PublicationState.READY: "publication_ready",
    PublicationState.MISSING: "publication_missing",
    PublicationState.CONFLICT: "publication_conflict",
    PublicationState.IDENTITY_UNCONFIRMED: "publication_identity_unconfirmed",
}


class StoreListing:
    """The listing of one open store: iterate over `rows`, then ask for the `summary`."""

    def __init__(self, store: InvocationStore, *, now_ns: int, trusted: Trusted | None = None) -> None:
        """Look at the names.

        Args:
            store: open store.
            now_ns: the time, for ages.
            trusted: keys that claims must name; None takes each claim's own.
        """
        self.store = store
        self.now_ns = now_ns
        self.trusted = trusted
        self.watch = store.watch_locks()
        self.entries: Entries = read_entries(store)
        self._counts: Counter[str] = Counter()
        self._orphans = Orphans(store, self.entries)
        self._beginnings = Beginnings(store)

    def rows(self, advance: Callable[[int], None] = lambda _: None) -> Iterator[ListedInvocation]:
        """One row for each claim, in the order of file names; `advance` is told of each that is done."""
        for name in self.entries.claims:
            row = self._row(name)
            self._counts[row.state] += 1
            advance(1)
            yield row

    def summary(self) -> StoreSummary:
        """What concerns no single claim; complete only after all rows."""
        findings = [*self.entries.findings, *self._orphans.findings()]
        if self.watch.doubt is not None:
            findings.append(finding("claim_owner_unknown", self.watch.doubt.detail, path=self.store.path))
        return StoreSummary(
            project=self.store.project,
            counts={state.value: self._counts[state.value] for state in ClaimState},
            entries=self.entries.count,
            bytes=self.entries.bytes,
            findings=tuple(findings),
        )

    def _row(self, name: str) -> ListedInvocation:
        try:
            evidence = examine_claim(self.store, name, self._beginnings, trusted=self.trusted)
        except RecoverError as error:
            return self._failed(name, error)
        return self._examined(name, evidence)

    def _examined(self, name: str, evidence: Evidence) -> ListedInvocation:
        self._orphans.account_for(evidence)
        judged = list(self._publications(evidence))
        publications = tuple(publication for publication, _ in judged)
        findings = [*evidence.findings]
        try:
            inspection = conclude(self.store, evidence)
            state = _STATES[inspection.status]
            findings += inspection.findings[len(evidence.findings) :]
        except RecoverError as error:
            state = _state_of(error)
            findings.append(as_finding(error))
        if state not in (ClaimState.RECORDED, ClaimState.RECONCILED):  # otherwise nothing is left to decide
            for publication, failure in judged:
                findings += _decision(publication, failure)
        snapshot = evidence.snapshot
        return ListedInvocation(
            project=self.store.project,
            file=name,
            state=state,
            scope=snapshot.scope,
            id=snapshot.id,
            agent_id=snapshot.agent_id,
            run_id=evidence.facts.claim.run_id,
            snapshot_hash=evidence.snapshot_hash,
            unknown_effects=None if evidence.recovery is None else len(evidence.recovery.unknown_effects),
            publications=publications,
            receipts=self._receipts(evidence.facts.claim, publications),
            changed_ns=evidence.claim_file.mtime_ns,
            age_seconds=self._age(evidence.claim_file.mtime_ns),
            findings=tuple(item for item in findings if item.code not in _QUIET),
        )

    def _publications(self, evidence: Evidence) -> Iterator[tuple[ListedPublication, Finding | None]]:
        """Each signed publication, and what ends the runtime's command for it, if anything does."""
        recovery = evidence.recovery
        for publication in () if recovery is None else recovery.publications:
            intent = publication.intent
            judged = judge_publication(intent)
            snapshot = evidence.snapshot
            receipt = publication_name(snapshot.scope, snapshot.id, intent.publication_id)
            failure = judged.failure if judged.state is None else None
            listed = ListedPublication(
                publication_id=intent.publication_id,
                target=f"{intent.parent_path}/{intent.target_name}",
                state=judged.state,
                receipt=receipt in self.entries.publications,
                finished=publication.finished,
                problem=None if failure is None else failure.message,
            )
            yield listed, failure

    def _receipts(self, claim: ClaimRecord, publications: tuple[ListedPublication, ...]) -> tuple[str, ...]:
        kinds = []
        if resolution_name(claim.scope, claim.id) in self.entries.resolutions:
            kinds.append("resolution")
        if any(publication.receipt for publication in publications):
            kinds.append("publication")
        return tuple(kinds)

    def _failed(self, name: str, error: RecoverError) -> ListedInvocation:
        """The row of a claim that has no verdict; who it is for, where that can still be read."""
        claim, mtime_ns = self._glimpse(name)
        live = error.code == "claim_live"
        # a run that is under way is a fault only for a command that was asked about it
        found = replace(as_finding(error), severity=Severity.INFO) if live else as_finding(error)
        if claim is not None:
            journal = journal_name(claim.agent_id, claim.run_id)
            self._orphans.know_journal(journal)
            if error.code == "file_missing" and (error.path or "").endswith(journal):
                found = finding("claim_without_journal", error.message, path=error.path)
        return ListedInvocation(
            project=self.store.project,
            file=name,
            state=_state_of(error),
            scope=None if claim is None else claim.scope,
            id=None if claim is None else claim.id,
            agent_id=None if claim is None else claim.agent_id,
            run_id=None if claim is None else claim.run_id,
            receipts=() if claim is None else self._receipts(claim, ()),
            changed_ns=mtime_ns,
            age_seconds=None if mtime_ns is None else self._age(mtime_ns),
            findings=(found,),
        )

    def _glimpse(self, name: str) -> tuple[ClaimRecord | None, int | None]:
        """The first record of a claim that was refused, without any verdict on it."""
        status = lstat_at(name, self.store.folder)
        mtime_ns = None if status is None else status.st_mtime_ns
        if status is None or not stat.S_ISREG(status.st_mode):
            return None, mtime_ns
        try:
            with OpenedFile.open(name, folder=self.store.folder) as file:
                record = read_record(file.read(STORE_FILE_LIMIT).split(b"\n", 1)[0])
        except (JsonError, RecoverError):
            return None, mtime_ns
        return record if isinstance(record, ClaimRecord) else None, mtime_ns

    def _age(self, mtime_ns: int) -> int:
        return max(0, (self.now_ns - mtime_ns) // 10**9)


def _state_of(error: RecoverError) -> ClaimState:
    """The state of a claim that has no verdict."""
    if error.code == "claim_live":
        return ClaimState.LIVE
    unread = isinstance(error, UnexaminedError) or error.code in _UNREAD
    return ClaimState.UNREADABLE if unread else ClaimState.REFUSED


def _decision(publication: ListedPublication, failure: Finding | None) -> Iterator[Finding]:
    """What the state of a publication asks for; nothing once the run itself signed that it was published."""
    if publication.finished:
        return
    code = None if failure is None else failure.code
    if publication.state is PublicationState.PUBLISHED and not publication.receipt:
        code = "publication_unacknowledged"
    elif publication.state is not None:
        code = _STATE_CODES.get(publication.state)
    if code is not None:
        problem = "" if publication.problem is None else f": {publication.problem}"
        yield finding(code, f"publication {publication.publication_id}{problem}", path=publication.target)
