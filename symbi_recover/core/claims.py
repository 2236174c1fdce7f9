"""Invocation claims, reviews and receipts as typed values (invocation.md sections 7, 9, 11, 12; publication.md 8).

The first part are structures of the evidence, fields in the order in which they are signed. The second part are
results: what an inspection of one invocation says, and what the list of a store says of each of its entries.
`SCHEMAS` names the structures that have a JSON Schema.
"""

from enum import StrEnum
from typing import Literal

from msgspec import UNSET, Struct

from symbi_recover.core.findings import Finding, NotChecked
from symbi_recover.core.report import RecoveryReport
from symbi_recover.core.scalars import U32, UUID, Json, Timestamp
from symbi_recover.core.schedules import Schedule
from symbi_recover.core.shapes import Strict
from symbi_recover.core.values import AuditReference, PublicationIntent

STORE_FILE_LIMIT = 2_097_152
"""Bytes of one claim or receipt."""
STORE_ENTRY_LIMIT = 4096
"""Entries of a store besides its lock file."""
STORE_BYTE_LIMIT = 67_108_864
"""Bytes of all of them together."""
ADMISSION_LIMIT = 65_536
SCOPE_LIMIT = 256
REVIEW_LIMIT = 131_072
RATIONALE_LIMIT = 8192
REFERENCE_LIMIT = 2048
EVIDENCE_LIMIT = 32
SCHEDULER_SCOPE = "scheduler:v1"

RESOLUTION_PREFIX = b"symbi-invocation-resolution:v1\n"
PUBLICATION_PREFIX = b"symbi-file-publication-recovery:v1\n"


class ClaimRecord(Strict, frozen=True, kw_only=True):
    """Record 1: who may run what, once."""

    kind: Literal["claim"]
    version: U32
    scope: str
    id: UUID
    request_hash: str
    agent_id: UUID
    run_id: UUID
    admission: Json = UNSET
    """What admitted the request; UNSET for none, which `null` means as well."""


class AuditRecord(Strict, frozen=True, kw_only=True):
    """Record 2: where the signed journal of the run lies."""

    kind: Literal["audit"]
    reference: AuditReference


class ResultRecord(Strict, frozen=True, kw_only=True):
    """Record 3: the saved result."""

    kind: Literal["result"]
    payload: Json


Record = ClaimRecord | AuditRecord | ResultRecord


class Snapshot(Strict, frozen=True, kw_only=True):
    """What an operator reviews: identity and hashes of claim and journal."""

    scope: str
    id: UUID
    request_hash: str
    agent_id: UUID
    claim_sha256: str
    journal_sha256: str
    audit: AuditReference


Outcome = Literal["completed", "failed", "no_effects"]


class EvidenceItem(Strict, frozen=True, kw_only=True):
    """One thing that the operator looked at; never opened by a program."""

    reference: str
    sha256: str


class Review(Strict, frozen=True, kw_only=True):
    """An operator's statement about what happened."""

    snapshot_hash: str
    outcome: Outcome
    rationale: str
    evidence: tuple[EvidenceItem, ...]
    effects_stopped: bool


class Resolution(Strict, frozen=True, kw_only=True):
    """The signed part of a resolution receipt."""

    version: U32
    snapshot: Snapshot
    review: Review
    operator_uid: U32
    recorded_at: Timestamp


class ResolutionReceipt(Strict, frozen=True, kw_only=True):
    """The file that ends an unresolved invocation."""

    payload: Resolution
    signature: str


class FileRecovery(Strict, frozen=True, kw_only=True):
    """The signed part of a publication receipt."""

    version: U32
    snapshot: Snapshot
    publication: PublicationIntent
    created_files: Json
    operator_uid: U32
    recorded_at: Timestamp


class PublicationReceipt(Strict, frozen=True, kw_only=True):
    """The file that says that a publication was completed or acknowledged."""

    payload: FileRecovery
    signature: str


SCHEMAS: dict[str, type] = {
    "claim": ClaimRecord,
    "audit": AuditRecord,
    "audit-reference": AuditReference,
    "result": ResultRecord,
    "review": Review,
    "resolution-receipt": ResolutionReceipt,
    "publication-receipt": PublicationReceipt,
    "publication-intent": PublicationIntent,
}
"""The structures whose JSON Schemas lie in `schemas/evidence/`, by name."""


class Status(StrEnum):
    """The runtime's verdict on one invocation."""

    RECORDED = "recorded"
    """Its result is saved, and the journal needs no decision."""
    UNRESOLVED = "unresolved"
    """What happened is not certain."""
    RECONCILED = "reconciled"
    """An operator signed what happened."""


class PublicationState(StrEnum):
    """Where a file publication stands (publication.md section 7), and one state of our own."""

    READY = "ready_to_publish"
    PUBLISHED = "published"
    MISSING = "missing"
    CONFLICT = "conflict"
    IDENTITY_UNCONFIRMED = "identity_unconfirmed"
    """Everything fits but the device numbers, which a restart may have given out anew."""


class Verdict(StrEnum):
    """How one of the two names of a publication looks (publication.md section 6)."""

    ABSENT = "absent"
    MATCH = "match"
    OTHER = "other"
    ERROR = "error"
    """The system refused to open it, which fails the runtime's commands."""


class NameEvidence(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What lies under the candidate's or the target's name."""

    name: str
    verdict: Verdict
    kind: str | None = None
    device: int | None = None
    inode: int | None = None
    uid: int | None = None
    mode: int | None = None
    links: int | None = None
    bytes: int | None = None
    sha256: str | None = None
    """Of the content, where it was read: a regular file of the size that was promised."""
    differs: tuple[str, ...] = ()
    """What is not as promised, in words."""
    error: str | None = None

    @property
    def content_equal(self) -> bool:
        """It was read, and its content is what was promised."""
        return self.sha256 is not None and "content" not in self.differs


class PublicationEvidence(Struct, frozen=True, kw_only=True):
    """The judgement on one publication, and all it rests on."""

    intent: PublicationIntent
    state: PublicationState | None
    """None where the runtime's command fails instead; `failure` says how."""
    runtime_state: PublicationState | None
    """The runtime's own word, None where its command fails."""
    parent: NameEvidence | None
    candidate: NameEvidence | None
    target: NameEvidence | None
    failure: Finding | None = None
    findings: tuple[Finding, ...] = ()


class Inspection(Struct, frozen=True, kw_only=True):
    """What claim, journal and receipt of one invocation say together."""

    status: Status
    snapshot_hash: str
    snapshot: Snapshot
    recovery: RecoveryReport | None
    """None for a journal without any byte."""
    resolution: Resolution | None
    claim_complete: bool
    """The claim ends at a record end and holds a result."""
    findings: tuple[Finding, ...] = ()
    not_checked: tuple[NotChecked, ...] = ()

    @property
    def recorded(self) -> bool:
        """Whether the evidence itself, without any receipt, says that the result is saved."""
        return self.claim_complete and self.recovery is not None and not self.recovery.requires_reconciliation


class ClaimState(StrEnum):
    """How a listed invocation stands."""

    RECORDED = "recorded"
    UNRESOLVED = "unresolved"
    RECONCILED = "reconciled"
    LIVE = "live"
    """A process holds it."""
    REFUSED = "refused"
    """It was read, and cannot be accepted; the finding says why."""
    UNREADABLE = "unreadable"
    """It, or the journal that it names, could not be read; the finding says why."""


class ListedPublication(Struct, frozen=True, kw_only=True):
    """One publication of a listed invocation."""

    publication_id: UUID
    target: str
    state: PublicationState | None
    receipt: bool
    """A publication receipt is there, valid or not."""
    finished: bool
    """The run itself signed that the file was published."""
    problem: str | None = None


class ListedInvocation(Struct, frozen=True, kw_only=True):
    """One claim of a store."""

    project: str
    file: str
    state: ClaimState
    scope: str | None = None
    id: UUID | None = None
    agent_id: UUID | None = None
    run_id: UUID | None = None
    snapshot_hash: str | None = None
    unknown_effects: int | None = None
    publications: tuple[ListedPublication, ...] = ()
    receipts: tuple[str, ...] = ()
    """`resolution` and `publication` receipts that are there, valid or not."""
    changed_ns: int | None = None
    """Modification time of the claim, a hint; nanoseconds since 1970."""
    age_seconds: int | None = None
    findings: tuple[Finding, ...] = ()


class StoreSummary(Struct, frozen=True, kw_only=True):
    """One store as a whole."""

    project: str
    counts: dict[str, int]
    """Claims by state."""
    entries: int
    """Entries besides the lock file, of at most 4096."""
    bytes: int
    """Their sizes added up, of at most 67108864."""
    findings: tuple[Finding, ...] = ()
    """What concerns no single claim: orphans, strays, capacity, the folder itself."""


class ListedProject(Struct, frozen=True, kw_only=True):
    """One project of the printed list."""

    store: StoreSummary | None
    """None if the store could not be examined; `findings` then says why."""
    invocations: tuple[ListedInvocation, ...] = ()
    schedule: Schedule | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def found(self) -> tuple[Finding, ...]:
        """What was found of the project, and in its store as a whole."""
        return (*self.findings, *(() if self.store is None else self.store.findings))


class InvocationList(Struct, frozen=True, kw_only=True):
    """What `invocation list --format json` prints."""

    schema: Literal["symbi-recover/invocation-list.v1"] = "symbi-recover/invocation-list.v1"
    root: str
    verdict: int
    projects: tuple[ListedProject, ...]
    not_checked: tuple[NotChecked, ...] = ()
    """Folders that could not be looked into for projects."""
