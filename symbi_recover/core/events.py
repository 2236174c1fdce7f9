"""The events of a run journal (journal.md section 11), fields in declaration order; all ignore unknown members.

`StepLimitReached` and `PreHydrationComplete` of adaptive-loop builds are left out on purpose: the shipped
command refuses a journal that holds them.
"""

from msgspec import UNSET, Struct, UnsetType, field

from symbi_recover.core.scalars import U16, U32, U64, UUID, Json, OptionalJson, Timestamp
from symbi_recover.core.shapes import Lenient, Strict, Variant
from symbi_recover.core.values import (
    Accounting,
    Action,
    AuditReference,
    BudgetSnapshot,
    Config,
    Duration,
    FinishReason,
    Observation,
    PublicationIntent,
    Reason,
    Reservation,
    Strategy,
    Usage,
)


class Event(Lenient, frozen=True, kw_only=True):
    """Base of all events."""


class ImprovementOutput(Event, frozen=True, kw_only=True):
    """Output of an improvement run."""

    output: str


class ToolDispatchStarted(Event, frozen=True, kw_only=True):
    """A tool is about to run."""

    dispatch_id: UUID
    run_key: str
    call_id: str
    call_fingerprint: str
    tool_name: str


class ToolDispatchFinished(Event, frozen=True, kw_only=True):
    """A tool came back."""

    dispatch_id: UUID
    observation_hash: str
    is_error: bool


class ResponseDeliveryStarted(Event, frozen=True, kw_only=True):
    """A response is about to be delivered."""

    fingerprint: str
    request_hash: str
    request_bytes: U64


class ResponseDeliveryFinished(Event, frozen=True, kw_only=True):
    """A delivery came back."""

    fingerprint: str
    receipt: OptionalJson
    confirmed: bool
    error: str | None


class DelegationStarted(Event, frozen=True, kw_only=True):
    """Another agent is about to be started."""

    run_key: str
    call_id: str
    call_fingerprint: str
    target: str
    child_agent_id: UUID
    audit: AuditReference
    system_prompt_hash: str
    message_hash: str


class DelegationFinished(Event, frozen=True, kw_only=True):
    """Another agent came back."""

    run_key: str
    call_id: str
    audit: AuditReference
    reason: Reason
    output_hash: str


class FilePublicationPrepared(Lenient, frozen=True, kw_only=True):
    """A candidate file is about to be renamed."""

    intent: PublicationIntent


class FilePublicationFinished(Lenient, frozen=True, kw_only=True):
    """The rename came back."""

    publication_id: UUID
    confirmed: bool
    error: str | None


class NetworkRequestStarted(Lenient, frozen=True, kw_only=True):
    """A network request is about to be sent."""

    outbound: Json = UNSET
    request_id: str
    method: str
    url: str
    request_hash: str
    request_bytes: U64


class NetworkRequestFinished(Lenient, frozen=True, kw_only=True):
    """A network request came back."""

    request_id: str
    status: U16 | None
    response_hash: str | None
    response_headers_hash: str | None
    response_bytes: U64
    error: str | None


class NestedEffect(Variant, frozen=True, kw_only=True):
    """An effect inside a tool call."""

    publication_prepared: FilePublicationPrepared | UnsetType = field(
        default=UNSET, name="FilePublicationPrepared"
    )
    publication_finished: FilePublicationFinished | UnsetType = field(
        default=UNSET, name="FilePublicationFinished"
    )
    request_started: NetworkRequestStarted | UnsetType = field(default=UNSET, name="NetworkRequestStarted")
    request_finished: NetworkRequestFinished | UnsetType = field(default=UNSET, name="NetworkRequestFinished")


class ToolEffect(Event, frozen=True, kw_only=True):
    """A nested effect, and the call it belongs to."""

    run_key: str
    call_fingerprint: str
    effect: NestedEffect


class Started(Event, frozen=True, kw_only=True):
    """The run begins."""

    agent_id: UUID
    config: Config
    execution_context: dict[str, Json] | UnsetType = UNSET


class InferenceRequested(Event, frozen=True, kw_only=True):
    """A model is about to be asked."""

    request_id: str
    endpoint: str
    model: str
    request_hash: str
    reserved_output_tokens: U64


class InferenceCompleted(Event, frozen=True, kw_only=True):
    """The model answered."""

    request_id: str
    status: U16
    response_hash: str
    response_bytes: U64


class DirectInferenceRequested(Event, frozen=True, kw_only=True):
    """A provider is about to be asked directly."""

    call_id: str
    operation: str
    provider: str
    model: str
    request_hash: str
    request_bytes: U64
    recipient: UUID | None
    recipient_definition_hash: str | None
    communication: OptionalJson


class DirectInferenceFinished(Event, frozen=True, kw_only=True):
    """A direct question came back."""

    call_id: str
    reason: Reason
    response_hash: str | None
    response_bytes: U64
    finish_reason: FinishReason | None
    usage: Usage


class DirectInferenceResponseReceived(Event, frozen=True, kw_only=True):
    """The bytes of a direct answer are there; finishes nothing."""

    call_id: str
    response_hash: str
    response_bytes: U64


class ReasoningComplete(Event, frozen=True, kw_only=True):
    """The model's decision."""

    iteration: U32
    actions: tuple[Action, ...]
    usage: Usage


class PolicyEvaluated(Event, frozen=True, kw_only=True):
    """The policy's decision on the proposed actions."""

    iteration: U32
    action_count: U64
    denied_count: U64
    approved_calls: tuple[Json, ...] = ()
    denied_calls: tuple[Json, ...] = ()


class ToolsDispatched(Event, frozen=True, kw_only=True):
    """Tools were started."""

    iteration: U32
    tool_count: U64
    duration: Duration


class ToolBatchCompleted(Event, frozen=True, kw_only=True):
    """All tools of a batch came back."""

    iteration: U32
    observations: tuple[Observation, ...]
    duration: Duration


class ObservationsCollected(Event, frozen=True, kw_only=True):
    """Observations were handed to the model."""

    iteration: U32
    observation_count: U64


class BudgetUpdated(Event, frozen=True, kw_only=True):
    """A snapshot of the budget; reconstructed independently, so not relied on."""

    budget: BudgetSnapshot


class BudgetOpened(Event, frozen=True, kw_only=True):
    """A shared budget begins."""

    root_id: UUID
    limit: U32


class BudgetScopeLinked(Event, frozen=True, kw_only=True):
    """This run draws on another run's budget."""

    root_id: UUID
    scope: U64
    root_audit: AuditReference | None


class BudgetReservationStarted(Event, frozen=True, kw_only=True):
    """Tokens are reserved."""

    reservation: Reservation


class BudgetReservationFinished(Event, frozen=True, kw_only=True):
    """A reservation is settled."""

    root_id: UUID
    reservation_id: UUID
    usage: Usage
    outcome: Accounting


class Terminated(Event, frozen=True, kw_only=True):
    """The run ends."""

    reason: Reason
    iterations: U32
    total_usage: Usage
    duration: Duration


class RecoveryTriggered(Event, frozen=True, kw_only=True):
    """A tool failed and a strategy was chosen."""

    iteration: U32
    tool_name: str
    strategy: Strategy
    error: str


EVENTS: dict[str, type[Event]] = {event.__name__: event for event in Event.__subclasses__()}
"""Every event by the name the runtime gives it."""


class Entry(Lenient, frozen=True, kw_only=True):
    """What one record says (section 9)."""

    sequence: U64
    timestamp: Timestamp
    agent_id: UUID
    iteration: U32
    event: Event


class Payload(Strict, frozen=True, kw_only=True):
    """The signed part of one record (section 9)."""

    version: U32
    run_id: UUID | UnsetType | None = UNSET
    previous_hash: str
    entry: Entry


class Record(Struct, frozen=True, gc=False):
    """The facts of one record, as the readers hand them on."""

    version: int
    run_id: str | None
    """As writers spell it, like `agent_id`: text, since each record's is compared with the one before."""
    previous_hash: str
    sequence: int
    timestamp: str
    agent_id: str
    iteration: int
    event: Event
    canonical: bool
    """Whether the payload is written as the runtime's own writer would."""
