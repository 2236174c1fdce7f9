"""Fences of `lease retire`, and what is left of them (leases.md sections 18.3 and 18.6)."""

from typing import Any, Literal

from msgspec import Struct

from symbi_recover.core.findings import Finding
from symbi_recover.core.leases import Document
from symbi_recover.core.reconciliation import ItemOutcome
from symbi_recover.core.shapes import Strict

FENCE_LABEL = "symbi-recover.fence"
"""Carries the lease, on the fence's container and image."""
NONCE_LABEL = "symbi-recover.nonce"
FENCE_REPOSITORY = "symbi-recover-fence"


class FenceNote(Strict, frozen=True, kw_only=True):
    """Written before a fence is made: what makes a fence our own."""

    format: Literal["symbi-recover/fence.v1"] = "symbi-recover/fence.v1"
    nonce: str
    lease: str
    endpoint: str
    at_ns: int


class FenceClearing(Strict, frozen=True, kw_only=True):
    """Written before the first removal of `lease fences`, so that a repeat can end what an interrupted run began."""

    format: Literal["symbi-recover/clearing.v1"] = "symbi-recover/clearing.v1"
    nonces: tuple[str, ...]
    seen: tuple[str, ...]
    """Those whose container was there: no creation of theirs is still to come."""


class FenceView(Struct, frozen=True, kw_only=True):
    """One fence, or what is left of it."""

    kind: Literal["container", "image", "note"]
    id: str
    name: str
    lease: str
    nonce: str
    endpoint: str
    state: str
    ours: bool
    """Its nonce is one that this operator's folder knows."""
    code: str
    outcome: ItemOutcome = "planned"


class FenceReport(Struct, frozen=True, kw_only=True):
    """`lease fences`."""

    endpoints: tuple[str, ...]
    executed: bool
    plan_hash: str
    fences: tuple[FenceView, ...]
    findings: tuple[Finding, ...]


class FenceDocument(Document, frozen=True, kw_only=True):
    """The document of `lease fences`."""

    schema: str = "symbi-recover/lease-fences.v1"
    report: FenceReport
    ledger: str | None = None


SCHEMAS: dict[str, type[Any]] = {"lease-fences": FenceDocument}
"""Our output, with a JSON Schema."""
