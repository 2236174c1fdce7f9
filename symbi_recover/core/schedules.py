"""The schedule database as typed values (cron-store.md sections 3, 5, 7 and 8).

First the frozen occurrence, fields in the order in which it is written; then the rows of the tables, as far as they
matter for a decision; then what a look at a whole store gives.
"""

from enum import StrEnum
from typing import Literal

from msgspec import UNSET, Struct, UnsetType, field

from symbi_recover.core.findings import Finding
from symbi_recover.core.scalars import U32, U64, UUID, Json, OptionalJson, Timestamp
from symbi_recover.core.shapes import Lenient, Strict, Variant
from symbi_recover.core.values import Duration

FROZEN_LIMIT = 1_048_576
"""Bytes of one frozen occurrence."""


class Interval(Lenient, frozen=True, kw_only=True):
    """Mode: at an interval."""

    interval: Duration


class CronExpression(Lenient, frozen=True, kw_only=True):
    """Mode: by a cron expression."""

    cron_expression: str
    timezone: str


class External(Lenient, frozen=True, kw_only=True):
    """Mode: an agent elsewhere."""

    endpoint: str | None
    agentpin_domain: str | None
    heartbeat_interval_secs: U64


class ModeWithFields(Variant, frozen=True, kw_only=True):
    """Execution modes that have fields."""

    scheduled: Interval | UnsetType = field(default=UNSET, name="Scheduled")
    cron: CronExpression | UnsetType = field(default=UNSET, name="CronScheduled")
    external: External | UnsetType = field(default=UNSET, name="External")


class CustomCapability(Variant, frozen=True, kw_only=True):
    """A capability by its name."""

    custom: str | UnsetType = field(default=UNSET, name="Custom")


Mode = Literal["Persistent", "Ephemeral", "EventDriven"] | ModeWithFields
Capability = Literal["FileSystem", "Network", "Database", "Computation", "Communication"] | CustomCapability
SessionMode = Literal["EphemeralWithSummary", "SharedPersistent", "FullyEphemeral"]


class ResourceLimits(Lenient, frozen=True, kw_only=True):
    """What an agent may use; `cpu_cores` is a 32-bit number in the runtime."""

    memory_mb: U64
    cpu_cores: float
    disk_io_mbps: U64
    network_io_mbps: U64
    execution_timeout: Duration
    idle_timeout: Duration


class AgentConfig(Lenient, frozen=True, kw_only=True):
    """The agent that a job starts."""

    id: UUID
    name: str
    dsl_source: str
    execution_mode: Mode
    security_tier: Literal["None", "Hosted", "Landlock", "Tier1", "Tier2", "Tier3"]
    resource_limits: ResourceLimits
    capabilities: tuple[Capability, ...]
    policies: tuple[UUID, ...]
    metadata: dict[str, str]
    priority: Literal["Low", "Normal", "High", "Critical"]


class FrozenJob(Lenient, frozen=True, kw_only=True):
    """A job as it was when an occurrence of it was frozen."""

    job_id: UUID
    name: str
    cron_expression: str
    timezone: str
    agent_config: AgentConfig
    input: OptionalJson
    policy_ids: tuple[str, ...]
    audit_level: Literal["None", "ErrorsOnly", "AllOperations"]
    status: Literal["Active", "Paused", "Completed", "Failed", "DeadLetter"]
    enabled: bool
    one_shot: bool
    created_at: Timestamp
    updated_at: Timestamp
    last_run: Timestamp | None
    next_run: Timestamp | None
    run_count: U64
    failure_count: U64
    max_retries: U32
    max_concurrent: U32
    delivery_config: OptionalJson
    """Read as free JSON; `wire/cron.py` gives it its written form."""
    jitter_max_secs: U32 = 0
    session_mode: SessionMode = "EphemeralWithSummary"
    agentpin_jwt: str | None


class OccurrenceIdentity(Strict, frozen=True, kw_only=True):
    """The identity of an occurrence, and who called for it."""

    id: UUID
    context: Json


class FrozenOccurrence(Strict, frozen=True, kw_only=True):
    """The text of `request_json`."""

    job: FrozenJob
    identity: OccurrenceIdentity
    scheduled_for: Timestamp | None
    created_at: Timestamp


class OccurrenceState(StrEnum):
    """The states of an occurrence."""

    PREPARED = "prepared"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    UNRESOLVED = "unresolved"
    RECONCILED = "reconciled"


class JobRow(Struct, frozen=True, kw_only=True):
    """One row of `cron_jobs`; words without the quotes that they have in the column."""

    job_id: str
    name: str
    status: str
    enabled: bool
    next_run: str | None
    last_run: str | None
    run_count: int
    failure_count: int
    blocked_by: tuple[str, ...] = ()
    """Ids of unresolved occurrences and history rows, which keep it from running."""

    @property
    def paused(self) -> bool:
        """Whether an operator or a reconciliation paused it."""
        return self.status == "Paused" and not self.enabled


class HistoryRow(Struct, frozen=True, kw_only=True):
    """One row of `job_run_log`."""

    run_id: str
    job_id: str
    status: str
    started_at: str
    completed_at: str | None
    error: str | None
    resolution_json: str | None = None


class OccurrenceRow(Struct, frozen=True, kw_only=True):
    """One row of `cron_occurrences`, and what was found out about its frozen text."""

    invocation_id: str
    job_id: str
    request_hash: str
    state: str
    created_at: str
    agent_id: UUID | None = None
    scheduled_for: str | None = None
    fault: str | None = None
    """Why the frozen text cannot be relied on, in the runtime's words."""


class Schedule(Struct, frozen=True, kw_only=True):
    """A schedule database, looked at once."""

    path: str
    owner: str | None
    """The project that it is bound to; None for none."""
    jobs: tuple[JobRow, ...]
    occurrences: tuple[OccurrenceRow, ...]
    histories: tuple[HistoryRow, ...]
    """Only rows that are not settled, or belong to an occurrence."""
    findings: tuple[Finding, ...] = ()

    def occurrence(self, invocation_id: UUID) -> OccurrenceRow | None:
        """The occurrence of an invocation."""
        wanted = str(invocation_id)
        return next((row for row in self.occurrences if row.invocation_id == wanted), None)

    def history(self, invocation_id: UUID) -> HistoryRow | None:
        """The history row of an invocation."""
        wanted = str(invocation_id)
        return next((row for row in self.histories if row.run_id == wanted), None)

    def job(self, job_id: str) -> JobRow | None:
        """A job by its id."""
        return next((row for row in self.jobs if row.job_id == job_id), None)
