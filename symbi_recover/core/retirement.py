"""Evidence about one tombstone, what follows from it, and what witnessing or retiring did (leases.md section 18).

`Evidence` is all that the decision table looks at; `Decision` is its answer with every code, not the first alone.
"""

from typing import Any, Literal

from msgspec import Struct

from symbi_recover.core.findings import Finding, NotChecked
from symbi_recover.core.leases import Document, EndpointView, Helper
from symbi_recover.core.shapes import Strict
from symbi_recover.core.witness import (
    DirectoryIdentity,
    EngineIdentity,
    ListenerIdentity,
    RecordIdentity,
    Scan,
    Witness,
    WitnessFacts,
)

MARGIN_NS = 3_600_000_000_000
"""By how much a start must be later than the last write, where only the clock tells."""

LockState = Literal[
    "not_taken",
    "held",
    "supervisor_running",
    "lock_missing",
    "lock_replaced",
    "lock_uncertain",
    "lock_unsafe",
]
FenceState = Literal[
    "not_made", "unbroken", "creation_in_flight", "name_foreign", "fence_failed", "fence_broken"
]
CensusCode = Literal["census_unreadable", "census_foreign_connection", "engine_unavailable", "engine_changed"]


class Client(Strict, frozen=True, kw_only=True):
    """The program that the helper started."""

    kind: Literal["plain", "wrapper", "reviewed"]
    """`reviewed`: a wrapper whose SHA-256 the operator lists as reviewed."""
    path: str
    sha256: str | None = None
    why: str | None = None
    """What makes it a wrapper."""


class Times(Strict, frozen=True, kw_only=True):
    """Starts by the wall clock as it is set now; the earliest moments that are possible."""

    now_ns: int
    last_write_ns: int
    boot_ns: int | None = None
    engine_ns: int | None = None
    synchronised: bool | None = None
    """What the kernel says of its clock; None if it does not tell."""

    @property
    def sound(self) -> bool:
        """The clock may be compared: synchronised, and no time lies in the future."""
        known = [time for time in (self.boot_ns, self.engine_ns) if time is not None]
        return self.synchronised is True and all(time <= self.now_ns for time in (*known, self.last_write_ns))


class Fence(Strict, frozen=True, kw_only=True):
    """The container that was made under the record's name, and whether it stood throughout."""

    state: FenceState = "not_made"
    container_id: str | None = None
    image_id: str | None = None
    nonce: str | None = None
    why: str | None = None


class Quiescence(Strict, frozen=True, kw_only=True):
    """Drain and census (F3)."""

    drained: bool = False
    """A fresh connection was accepted and answered."""
    control: int | None = None
    """Connections that the engine held while ours was open; at least 1 if the census sees anything."""
    connections: int | None = None
    """Afterwards, with all of ours closed."""
    waiting: int | None = None
    """In the listener's queue."""
    code: CensusCode | None = None
    why: str | None = None

    @property
    def quiet(self) -> bool:
        """Queue, handlers and builds are empty."""
        return (
            self.drained
            and self.code is None
            and self.control is not None
            and self.control >= 1
            and self.connections == 0
            and self.waiting == 0
        )


class Evidence(Struct, frozen=True, kw_only=True):
    """All that the decision table looks at."""

    phase: str
    lock: LockState
    store_blocked: bool | None
    record_same: bool
    """The record is what it was at the first read, and at the review."""
    local: bool
    """The state directory is on a file system whose locks are all in this kernel."""
    endpoint_code: str | None
    """Why the endpoint cannot be used, or None."""
    engine_codes: tuple[str, ...]
    """Why the engine behind it does not count."""
    storage: Literal["older", "newer", "unknown"]
    """The data root against the record's last write."""
    absence: str | None
    """None if name and label are absent; else the code that says what is there, or that nobody answered."""
    fence: Fence = Fence()
    same_engine: bool
    same_boot: bool
    """At the end of the run as at its beginning."""
    staging_acknowledged: bool
    receipt_ready: bool
    confirmed: bool
    client: Client
    scans: tuple[Scan, ...]
    """Before the fence, and while it stands."""
    witnesses: tuple[WitnessFacts, ...] = ()
    times: Times
    activated: bool = False
    """The listener belongs to the init process."""
    quiescence: Quiescence | None = None
    accept_wall_clock: bool = False
    events: bool = False
    """The engine's event log shows a creation of the name."""
    attested: bool = False
    """The operator gave a statement."""
    details: dict[str, str] = {}
    """What is known besides each code's own sentence."""


class Row(Struct, frozen=True, kw_only=True):
    """One row of the table that can retire."""

    row: str
    proof: str
    """The code, if it holds."""
    holds: bool
    missing: tuple[str, ...] = ()
    """What it would still need."""


class Decision(Struct, frozen=True, kw_only=True):
    """What follows."""

    retire: bool
    proofs: tuple[str, ...]
    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]
    """Every code that speaks against it, or is worth noting; proofs come last."""

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes alone."""
        return tuple(found.code for found in self.findings)


class Seen(Strict, frozen=True, kw_only=True):
    """What was seen, as the receipt and the plan keep it."""

    record: RecordIdentity
    directory: DirectoryIdentity
    phase: str
    boot_id: str | None
    endpoint: EndpointView
    engine: EngineIdentity | None
    listener: ListenerIdentity | None
    client: Client
    scans: tuple[Scan, ...]
    witnesses: tuple[WitnessFacts, ...]
    times: Times
    fence: Fence
    quiescence: Quiescence | None
    staging: tuple[str, ...]
    """Snapshots that lose their protection with the record."""
    events: tuple[str, ...] = ()


class RetirementIntent(Strict, frozen=True, kw_only=True):
    """Written before the fence is taken away: from here on the record may go."""

    format: Literal["symbi-recover/retirement-intent.v1"] = "symbi-recover/retirement-intent.v1"
    lease: str
    record: str
    """The record's bytes in base64."""
    record_sha256: str
    proofs: tuple[str, ...]
    codes: tuple[str, ...]
    seen: Seen
    statement: str | None
    """The operator's, which proves nothing."""
    not_established: tuple[str, ...]
    host: str
    uid: int
    at_ns: int


class RetirementReceipt(Strict, frozen=True, kw_only=True):
    """Written last."""

    format: Literal["symbi-recover/retirement-receipt.v1"] = "symbi-recover/retirement-receipt.v1"
    lease: str
    record_sha256: str
    intent_sha256: str
    outcome: Literal["retired", "late_container", "refused", "absent_after_interruption"]
    """`absent_after_interruption`: an earlier run stopped after its intent, and the record is not there now."""
    codes: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    at_ns: int


class RetireReport(Struct, frozen=True, kw_only=True):
    """`lease retire`: the plan, or what was done."""

    state_dir: str
    lease: str
    outcome: Literal["plan", "retired", "refused", "already_retired", "completed"]
    record_sha256: str | None
    helper: Helper
    seen: Seen | None
    decision: Decision | None
    findings: tuple[Finding, ...]
    receipt: str | None
    """Path of the signed receipt."""
    not_established: tuple[str, ...]
    not_checked: tuple[NotChecked, ...]
    confirm: str | None
    """What `--confirm` has to repeat; None where a run would be refused as things stand, or is over."""


class WitnessReport(Struct, frozen=True, kw_only=True):
    """`lease witness`: what was written."""

    state_dir: str
    helper: Helper
    written: tuple[str, ...]
    witnesses: tuple[Witness, ...]
    findings: tuple[Finding, ...]


NOT_ESTABLISHED = (
    "whether the run, its budget or any effect is settled; the signed journal alone tells",
    "whether anything ever ran for this lease: the record does not say",
    "whether the request was refused, lost or never sent; only that it can no longer complete",
    "processes revived from a snapshot of this machine, or hidden in a virtual machine",
    "whether a helper in another mount namespace meant another socket by the same path",
)
"""What no row of the table shows."""


class WitnessDocument(Document, frozen=True, kw_only=True):
    """The document of `lease witness`."""

    schema: str = "symbi-recover/lease-witness-report.v1"
    report: WitnessReport
    ledger: str | None = None


class RetireDocument(Document, frozen=True, kw_only=True):
    """The document of `lease retire`."""

    schema: str = "symbi-recover/lease-retire.v1"
    report: RetireReport
    ledger: str | None = None


SCHEMAS: dict[str, type[Any]] = {
    "lease-witness": Witness,
    "lease-retirement-intent": RetirementIntent,
    "lease-retirement-receipt": RetirementReceipt,
    "lease-witness-report": WitnessDocument,
    "lease-retire": RetireDocument,
}
"""Structures with a JSON Schema: the first three are files of the operator's own, the others our output."""
