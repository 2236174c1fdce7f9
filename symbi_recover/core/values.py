"""Structures that several journal events share (journal.md section 10), fields in declaration order."""

from typing import Literal

from msgspec import UNSET, UnsetType, field

from symbi_recover.core.scalars import U32, U64, UUID, Json, Pair
from symbi_recover.core.shapes import Lenient, Strict, Variant


class Duration(Strict, frozen=True, kw_only=True):
    """A span of time; 10^9 or more nanoseconds carry into the seconds (section 6.3)."""

    secs: U64
    nanos: U32

    def __post_init__(self) -> None:
        if self.secs + self.nanos // 10**9 > 2**64 - 1:
            raise ValueError("duration overflows")


class Usage(Lenient, frozen=True, kw_only=True):
    """Token counts."""

    prompt_tokens: U32
    completion_tokens: U32
    total_tokens: U32


class AuditReference(Lenient, frozen=True, kw_only=True):
    """Where another run's journal lies, and the key it claims."""

    run_id: UUID
    path: str
    public_key: str


class ScopeId(Strict, frozen=True, kw_only=True):
    """One budget scope in an ancestry."""

    scope: U64
    parent: U64 | None
    limit: U32


class Reservation(Strict, frozen=True, kw_only=True):
    """A promise of tokens, charged to a scope and all its ancestors."""

    id: UUID
    root_id: UUID
    ancestors: tuple[ScopeId, ...]
    input_tokens: U32
    output_tokens: U32
    agent_id: UUID
    audit: AuditReference | None
    iteration: U32
    provider: str
    model: str
    request_hash: str
    request_bytes: U64


class BudgetSnapshot(Lenient, frozen=True, kw_only=True):
    """The state of one budget scope."""

    root_id: UUID
    scope: U64
    limit: U32
    usage: Usage
    reserved_tokens: U32
    uncertain_tokens: U32
    available_tokens: U32
    exceeded: bool


class PublicationIntent(Strict, frozen=True, kw_only=True):
    """What a file publication promises (sections 10 and 12)."""

    publication_id: UUID
    path: str
    parent_path: str
    parent_identity: Pair
    candidate_name: str
    candidate_identity: Pair
    target_name: str
    bytes: U64
    sha256: str


class Observation(Lenient, frozen=True, kw_only=True):
    """What one tool call gave back."""

    source: str
    content: str
    is_error: bool
    call_id: str | UnsetType | None = UNSET
    metadata: dict[str, str] = field(default_factory=dict)


class ToolDefinition(Lenient, frozen=True, kw_only=True):
    """A tool as offered to the model."""

    name: str
    description: str
    parameters: Json


class Retry(Lenient, frozen=True, kw_only=True):
    """Recovery: try again."""

    max_attempts: U32
    base_delay: Duration


class Fallback(Lenient, frozen=True, kw_only=True):
    """Recovery: use another tool."""

    alternatives: tuple[str, ...]


class CachedResult(Lenient, frozen=True, kw_only=True):
    """Recovery: use an earlier result."""

    max_staleness: Duration


class LlmRecovery(Lenient, frozen=True, kw_only=True):
    """Recovery: ask the model."""

    max_recovery_attempts: U32


class Escalate(Lenient, frozen=True, kw_only=True):
    """Recovery: hand over to a queue."""

    queue: str
    context_snapshot: bool


class StrategyWithFields(Variant, frozen=True, kw_only=True):
    """Recovery strategies that have fields."""

    retry: Retry | UnsetType = field(default=UNSET, name="Retry")
    fallback: Fallback | UnsetType = field(default=UNSET, name="Fallback")
    cached_result: CachedResult | UnsetType = field(default=UNSET, name="CachedResult")
    llm_recovery: LlmRecovery | UnsetType = field(default=UNSET, name="LlmRecovery")
    escalate: Escalate | UnsetType = field(default=UNSET, name="Escalate")


Strategy = Literal["DeadLetter"] | StrategyWithFields


class PolicyDenial(Lenient, frozen=True, kw_only=True):
    """End: the policy denied."""

    reason: str


class ErrorReason(Lenient, frozen=True, kw_only=True):
    """End: an error."""

    message: str


class ReasonWithFields(Variant, frozen=True, kw_only=True):
    """Reasons of an end that have fields."""

    policy_denial: PolicyDenial | UnsetType = field(default=UNSET, name="PolicyDenial")
    error: ErrorReason | UnsetType = field(default=UNSET, name="Error")


Reason = (
    Literal["Completed", "MaxIterations", "MaxTokens", "Timeout", "UnconfirmedEffects"] | ReasonWithFields
)


class ToolCall(Lenient, frozen=True, kw_only=True):
    """Action: call a tool."""

    call_id: str
    name: str
    arguments: str


class Delegate(Lenient, frozen=True, kw_only=True):
    """Action: hand a task to another agent."""

    call_id: str
    target: str
    message: str


class Respond(Lenient, frozen=True, kw_only=True):
    """Action: answer."""

    content: str


class Terminate(Lenient, frozen=True, kw_only=True):
    """Action: end the run."""

    reason: str
    output: str


class Action(Variant, frozen=True, kw_only=True):
    """What the model decided."""

    tool_call: ToolCall | UnsetType = field(default=UNSET, name="ToolCall")
    delegate: Delegate | UnsetType = field(default=UNSET, name="Delegate")
    respond: Respond | UnsetType = field(default=UNSET, name="Respond")
    terminate: Terminate | UnsetType = field(default=UNSET, name="Terminate")


Accounting = Literal["confirmed", "unknown", "exceeded"]
FinishReason = Literal["stop", "tool_calls", "max_tokens", "content_filter", "refusal"]


class ToolChoice(Lenient, frozen=True, kw_only=True):
    """Which tools the model may choose; the one internally tagged type (section 5.4)."""

    type: Literal["auto", "any", "tool"]
    name: str | UnsetType = UNSET

    def __post_init__(self) -> None:
        if (self.type == "tool") != (self.name is not UNSET):
            raise ValueError("a tool choice names a tool exactly if its type is `tool`")


class Config(Lenient, frozen=True, kw_only=True):
    """The limits a run was started with."""

    max_iterations: U32
    max_total_tokens: U32
    timeout: Duration
    default_recovery: Strategy
    tool_timeout: Duration
    max_concurrent_tools: U64
    context_token_budget: U64
    temperature: float = 0.3
    max_output_tokens: U32 = 16384
    max_delegation_depth: U32 = 3
    delegation_depth: U32 = 0
    delegation_chain: tuple[str, ...] = ()
    tool_definitions: tuple[ToolDefinition, ...] | UnsetType = UNSET
    tool_choice: ToolChoice | UnsetType | None = UNSET
