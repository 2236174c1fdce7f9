"""What an inspection of a run journal says: the runtime's own report, and what we add to it.

`RecoveryReport` is the report of journal.md section 14, members in output order. `JournalReport` is what every
renderer of ours starts from: what was asked, what is proven, what was found, and what was not checked.
"""

from typing import Literal

from msgspec import Raw, Struct

from symbi_recover.core.findings import Finding, NotChecked
from symbi_recover.core.scalars import UUID
from symbi_recover.core.values import (
    Accounting,
    AuditReference,
    BudgetSnapshot,
    PublicationIntent,
    Reason,
    Reservation,
    Usage,
)

Outcome = Literal["result_recorded", "unknown"]


class Identity(Struct, frozen=True, tag_field="kind"):
    """What makes an effect one of its kind; hashable (section 13)."""


class ToolDispatchIdentity(Identity, frozen=True, tag="tool_dispatch"):
    """A tool call."""

    dispatch_id: UUID


class FilePublicationIdentity(Identity, frozen=True, tag="file_publication"):
    """A file publication inside a tool call."""

    run_key: str
    call_fingerprint: str
    publication_id: UUID


class NetworkRequestIdentity(Identity, frozen=True, tag="network_request"):
    """A network request inside a tool call."""

    run_key: str
    call_fingerprint: str
    request_id: str


class DelegationIdentity(Identity, frozen=True, tag="delegation"):
    """A task handed to another agent."""

    run_key: str
    call_id: str


class InferenceIdentity(Identity, frozen=True, tag="inference"):
    """A question to a managed model."""

    request_id: str


class DirectInferenceIdentity(Identity, frozen=True, tag="direct_inference"):
    """A question to a provider."""

    call_id: str


class SharedInferenceIdentity(Identity, frozen=True, tag="shared_inference"):
    """A question charged to a shared budget."""

    reservation_id: UUID


class ResponseDeliveryIdentity(Identity, frozen=True, tag="response_delivery"):
    """A response handed to its receiver."""

    fingerprint: str


class ToolDispatchDetails(Struct, frozen=True):
    """Details of a tool call."""

    run_key: str
    call_id: str
    call_fingerprint: str
    tool_name: str


class NetworkRequestDetails(Struct, frozen=True):
    """Details of a network request; `outbound` is compact JSON in the runtime's form."""

    method: str
    url: str
    request_hash: str
    outbound: Raw


class DelegationDetails(Struct, frozen=True):
    """Details of a delegation."""

    target: str
    call_fingerprint: str
    audit: AuditReference


class InferenceDetails(Struct, frozen=True):
    """Details of a question to a managed model."""

    endpoint: str
    model: str
    request_hash: str


class DirectInferenceDetails(Struct, frozen=True):
    """Details of a question to a provider."""

    operation: str
    provider: str
    model: str
    request_hash: str


class SharedInferenceDetails(Struct, frozen=True):
    """Details of a question charged to a shared budget."""

    root_id: UUID
    scope: int | None
    provider: str
    model: str
    request_hash: str
    input_tokens: int
    output_tokens: int
    agent_id: UUID
    audit: AuditReference | None


class ResponseDeliveryDetails(Struct, frozen=True):
    """Details of a delivery."""

    request_hash: str


Details = (
    PublicationIntent
    | ToolDispatchDetails
    | NetworkRequestDetails
    | DelegationDetails
    | InferenceDetails
    | DirectInferenceDetails
    | SharedInferenceDetails
    | ResponseDeliveryDetails
)


class Effect(Struct, frozen=True):
    """An operation with a signed start, and perhaps a signed finish."""

    identity: Identity
    start_sequence: int
    finish_sequence: int | None
    outcome: Outcome
    details: Details


class SignedPublication(Struct, frozen=True):
    """A file publication that a run began."""

    intent: PublicationIntent
    finished: bool
    """The run itself signed that the file has its name."""


class RecoveredReservation(Struct, frozen=True):
    """A reservation and how it was settled; accounting `unknown` without a finish."""

    reservation: Reservation
    start_sequence: int
    finish_sequence: int | None
    outcome: Accounting
    usage: Usage | None


class RecoveredBudget(Struct, frozen=True):
    """A shared budget as the signed records add up (section 15)."""

    root_id: UUID
    scopes: tuple[BudgetSnapshot, ...]
    reservations: tuple[RecoveredReservation, ...]


class RecoveryReport(Struct, frozen=True):
    """The runtime's report of one run, members in output order (section 14.1)."""

    run_id: UUID
    agent_id: UUID
    verified_records: int
    verified_bytes: int
    unverified_tail_bytes: int
    journal_complete: bool
    terminal_reason: Reason | None
    requires_reconciliation: bool
    untracked_tool_approvals: int
    effects: tuple[Effect, ...]
    warnings: tuple[str, ...]
    recovered_budget: RecoveredBudget | None

    @property
    def unknown_effects(self) -> tuple[Effect, ...]:
        """The effects whose outcome nobody signed."""
        return tuple(effect for effect in self.effects if effect.outcome == "unknown")

    @property
    def publications(self) -> tuple[SignedPublication, ...]:
        """The file publications among the effects, in the order of their start."""
        return tuple(
            SignedPublication(effect.details, effect.outcome == "result_recorded")
            for effect in self.effects
            if isinstance(effect.details, PublicationIntent)
        )


class KeyUsed(Struct, frozen=True):
    """The public key that signatures were checked with, and where it came from."""

    public_key: str
    """64 lower-case hex digits."""
    source: Literal["given", "trust file", "operator.pub", "evidence"]
    """`evidence` means that the key was found beside what it is to prove: self-consistent, not authenticated.
    `operator.pub` is the file beside the operator's own ledger."""


class Proven(Struct, frozen=True):
    """The stretch of a journal whose signatures and links hold."""

    first_sequence: int
    last_sequence: int
    bytes: int
    head_hash: str
    """SHA-256 of the last complete line; the next record would have to name it."""
    depth: Literal["full", "anchored"]
    first_time: str
    last_time: str


class JournalReport(Struct, frozen=True, kw_only=True):
    """One inspected journal, for every renderer."""

    journal: str
    run_id: UUID | None
    key: KeyUsed | None
    proven: Proven | None = None
    sha256: str | None = None
    """Of all bytes read, tail included."""
    recovery: RecoveryReport | None = None
    findings: tuple[Finding, ...] = ()
    not_checked: tuple[NotChecked, ...] = ()
