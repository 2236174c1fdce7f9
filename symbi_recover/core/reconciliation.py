"""What `lease reconcile` would do and did, and what it notes for its own repeat (leases.md sections 7 and 13)."""

from typing import Any, Literal

from msgspec import Struct

from symbi_recover.core.findings import Finding, NotChecked
from symbi_recover.core.leases import ContainerView, Document, EndpointView, EngineView, Helper
from symbi_recover.core.shapes import Strict

ItemOutcome = Literal["planned", "done", "left", "failed"]
Action = Literal["remove_container", "retire_record", "leave"]


class ReconcileItem(Struct, frozen=True, kw_only=True):
    """One record in a plan, and what became of it."""

    lease: str
    phase: str
    record_sha256: str
    action: Action
    code: str
    """Why: what the daemon showed, or why the record is left."""
    container_id: str | None
    containers: tuple[ContainerView, ...]
    endpoint: EndpointView | None
    engine: EngineView | None
    outcome: ItemOutcome = "planned"
    findings: tuple[Finding, ...] = ()


class ReconcileReport(Struct, frozen=True, kw_only=True):
    """`lease reconcile`: the plan, or what was done."""

    state_dir: str
    helper: Helper
    store_blocked: bool | None
    executed: bool
    plan_hash: str
    items: tuple[ReconcileItem, ...]
    findings: tuple[Finding, ...]
    not_checked: tuple[NotChecked, ...]


class ReconcileAct(Strict, frozen=True, kw_only=True):
    """One act of a confirmed plan."""

    lease: str
    record_sha256: str
    action: Literal["remove_container", "retire_record"]
    container_id: str | None
    engine: str
    """Id and data root of the daemon that was asked; only there is a later absence the end of this act."""


class ReconcileNote(Strict, frozen=True, kw_only=True):
    """Written before the first act, so that a repeat of the same command can end what an interrupted run began."""

    format: Literal["symbi-recover/reconciliation.v1"] = "symbi-recover/reconciliation.v1"
    state_dir: str
    acts: tuple[ReconcileAct, ...]


class ReconcileDocument(Document, frozen=True, kw_only=True):
    """The document of `lease reconcile`."""

    schema: str = "symbi-recover/lease-reconcile.v1"
    report: ReconcileReport
    ledger: str | None = None


SCHEMAS: dict[str, type[Any]] = {"lease-reconcile": ReconcileDocument}
"""Our output, with a JSON Schema."""
