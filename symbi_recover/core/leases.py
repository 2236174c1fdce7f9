"""What is said about leases: one store, one lease, its capacity, and what the daemon answered.

`StoreReport` is behind `lease verify`, `list` and `inspect`; `CheckReport` behind `lease check`; `CapacityReport`
behind `lease capacity`. Structures of the evidence itself are in `core/lease_records.py`. `Capacity` has the
members of the helper's own inspection (leases.md section 12), so that both can be compared. A charge that cannot be
known is None, never a smaller number. Times are nanoseconds since 1970 of this host's clock.
"""

from typing import Any, Literal

from msgspec import Struct

from symbi_recover.core.findings import Finding, NotChecked
from symbi_recover.core.lease_records import (
    AdmissionLimits,
    LeaseRecord,
    Origin,
    Resources,
    StagingLimits,
    StagingReservation,
)

Verdict = Literal["sound", "attention", "blocked", "unexamined", "contradicted"]
"""`blocked`: the helper would not start. `unexamined`: that is not known. `contradicted`: it would start, but
evidence speaks against evidence."""


class Helper(Struct, frozen=True, kw_only=True):
    """Whether a helper runs on the store, as the kernel's list of locks tells."""

    state: Literal["running", "probable", "absent", "ours", "unknown"]
    """`probable`: a lock with this inode is held, the device cannot be compared. `ours`: this process holds it."""
    pid: int | None = None
    since_ns: int | None = None
    """Earliest moment at which it can have started, by the wall clock as it is set now."""
    program: str | None = None
    why: str | None = None
    """What makes the answer unknown."""

    @property
    def supervises(self) -> bool:
        """A helper is at work, as far as can be told."""
        return self.state in ("running", "probable")


class EntryView(Struct, frozen=True, kw_only=True):
    """One entry of the directory that is no good record: bad, left over, or ignored by the helper."""

    name: str
    kind: str
    """`unknown` where the system does not say what lies there; what it says of a file is None then."""
    mode: str | None = None
    """Four octal digits or more."""
    uid: int | None = None
    links: int | None = None
    size: int | None = None
    mtime_ns: int | None = None
    ctime_ns: int | None = None
    sha256: str | None = None
    """Of the whole file; None above 131073 bytes, and always for an environment file."""
    lease: str | None = None
    """The lease that its name or, for a left-over, its content names."""
    codes: tuple[str, ...] = ()


class WorkerView(Struct, frozen=True, kw_only=True):
    """What /proc and the cgroups say of a VM or a delegated worker (section 15)."""

    verdict: str
    """A code."""
    detail: str


class OriginView(Struct, frozen=True, kw_only=True):
    """What the run's signed journal says of the dispatch that a lease names (section 16)."""

    verdict: str
    """A code; `origin_verified` if all fits."""
    detail: str
    journal: str | None = None
    start_sequence: int | None = None
    outcome: Literal["succeeded", "failed", "unfinished"] | None = None
    """Of the dispatch, as signed."""
    terminal_reason: str | None = None
    """How the run ended, as signed; None if it did not."""


class LeaseView(Struct, frozen=True, kw_only=True):
    """One good record and what it means now."""

    lease: str
    phase: str
    backend: str
    record: LeaseRecord
    sha256: str
    """Of the record's bytes; what a write command asks to be repeated."""
    size: int
    inode: int
    mtime_ns: int
    ctime_ns: int
    age_seconds: int | None
    """Since the last transition; None for a time in the future."""
    tombstone: bool | None
    """None while it cannot be told from work in progress."""
    unsupervised: bool | None
    worker: WorkerView | None = None
    origin: OriginView | None = None
    findings: tuple[Finding, ...] = ()


class Amount(Struct, frozen=True, kw_only=True):
    """Workers, memory and CPU; None where they cannot be known."""

    workers: int | None
    memory_bytes: int | None
    cpu_nanos: int | None


class WorkerCharge(Struct, frozen=True, kw_only=True):
    """One worker in a capacity snapshot."""

    lease: str
    backend: str
    phase: str
    resources: Resources | None
    origin: Origin | None


class StagingAmount(Struct, frozen=True, kw_only=True):
    """Snapshots and bytes of the pool."""

    snapshots: int
    reserved_bytes: int


class StagedSnapshot(Struct, frozen=True, kw_only=True):
    """One snapshot of the pool."""

    id: str
    reserved_bytes: int
    active_hold: bool | None
    """A live process holds it; None where that cannot be told."""
    worker_leases: tuple[str, ...]


class StagingCapacity(Struct, frozen=True, kw_only=True):
    """The snapshot pool (section 11)."""

    initialized: bool
    limits: StagingLimits
    reserved: StagingAmount
    available: StagingAmount
    admission_blocked: bool
    reservations: tuple[StagedSnapshot, ...]


class Capacity(Struct, frozen=True, kw_only=True):
    """Admission as the helper counts it (sections 10 and 12)."""

    limits: AdmissionLimits | None
    """None if `admission.conf` cannot be used."""
    reserved: Amount
    available: Amount
    unknown_resource_leases: int
    admission_blocked: bool
    workers: tuple[WorkerCharge, ...]
    staging: StagingCapacity | None = None
    staging_error: str | None = None


class StoreReport(Struct, frozen=True, kw_only=True):
    """One lease store, judged."""

    state_dir: str
    helper_uid: int
    """The account for which the store was judged."""
    verdict: Verdict
    store_blocked: bool | None
    """None when a file that decides it could not be read."""
    helper: Helper
    boot_id: str | None
    records: tuple[LeaseView, ...]
    entries: tuple[EntryView, ...]
    """Bad entries, left-overs and strangers."""
    capacity: Capacity
    unsupervised: tuple[str, ...]
    """Leases whose workers nobody ends now."""
    findings: tuple[Finding, ...]
    not_checked: tuple[NotChecked, ...]

    @property
    def blocked(self) -> bool:
        """The helper would not start, or may not: no write command may touch such a store."""
        return self.store_blocked is not False

    @property
    def tombstones(self) -> tuple[LeaseView, ...]:
        """Records that are tombstones for certain."""
        return tuple(view for view in self.records if view.tombstone)

    def lease(self, lease: str) -> LeaseView | None:
        """The good record of a lease, or None."""
        return next((view for view in self.records if view.lease == lease), None)


class LeaseReport(Struct, frozen=True, kw_only=True):
    """One lease of a store, for `lease inspect`; the store's verdict comes along, since one fault stops all."""

    state_dir: str
    lease: str
    verdict: Verdict
    store_blocked: bool | None
    helper: Helper
    view: LeaseView | None
    """None if its record is bad; `entry` then says how."""
    entry: EntryView | None
    findings: tuple[Finding, ...]
    not_checked: tuple[NotChecked, ...]


class EndpointView(Struct, frozen=True, kw_only=True):
    """Where the recorded client would have connected (section 18.4)."""

    kind: Literal["unix", "remote", "unresolved"]
    address: str | None
    """Socket path, or the address as written."""
    source: str
    """Which setting decided."""
    code: str | None = None
    reason: str | None = None
    files: tuple[str, ...] = ()
    """Configuration files that took part."""


class EngineView(Struct, frozen=True, kw_only=True):
    """Which daemon answered."""

    version: str
    api_version: str
    min_api_version: str | None
    asked_api_version: str
    components: tuple[str, ...]
    engine_id: str | None
    data_root: str | None
    listener_pid: int | None
    """The process that called `listen`, as the kernel names it; its number may be used again."""
    listener_program: str | None
    socket_inode: int | None


class ContainerView(Struct, frozen=True, kw_only=True):
    """One container as the daemon described it."""

    id: str
    names: tuple[str, ...]
    label: str | None
    """Value of `ai.symbiont.lease`."""
    state: str
    """As the daemon says it."""
    pid: int | None = None
    created: str | None = None
    found_by: Literal["id", "name", "label"] = "name"


class LeaseCheck(Struct, frozen=True, kw_only=True):
    """What the recorded daemon answered about one lease."""

    lease: str
    phase: str
    record_sha256: str
    verdict: str
    """A code."""
    endpoint: EndpointView | None
    engine: EngineView | None
    containers: tuple[ContainerView, ...]
    findings: tuple[Finding, ...]
    not_checked: tuple[NotChecked, ...] = ()


class CheckReport(Struct, frozen=True, kw_only=True):
    """`lease check` of one store."""

    state_dir: str
    verdict: Verdict
    store_blocked: bool | None
    helper: Helper
    checks: tuple[LeaseCheck, ...]
    findings: tuple[Finding, ...]
    not_checked: tuple[NotChecked, ...]


class HelperAnswer(Struct, frozen=True, kw_only=True):
    """What the running helper said about capacity."""

    capacity: Capacity
    observed_at_unix_ms: int
    state_dir: str


class CapacityReport(Struct, frozen=True, kw_only=True):
    """`lease capacity`: the computation from the files, and the helper's own answer."""

    state_dir: str
    verdict: Verdict
    store_blocked: bool | None
    helper: Helper
    computed: Capacity
    answered: HelperAnswer | None
    agree: bool | None
    """None without an answer."""
    differences: tuple[str, ...]
    findings: tuple[Finding, ...]
    not_checked: tuple[NotChecked, ...]


class LeaseRow(Struct, frozen=True, kw_only=True):
    """One line of `lease list`."""

    lease: str
    phase: str | None
    """None if the record is bad."""
    backend: str | None
    age_seconds: int | None
    tombstone: bool | None
    unsupervised: bool | None
    memory_bytes: int | None
    cpu_nanos: int | None
    staging: int
    """Snapshots that it names."""
    run_id: str | None
    tool_name: str | None
    codes: tuple[str, ...]


class Document(Struct, frozen=True, kw_only=True):
    """The frame of the JSON of the lease commands; `ok` says that the exit code is 0."""

    ok: bool
    exit: int


class VerifyDocument(Document, frozen=True, kw_only=True):
    """The document of `lease verify`."""

    schema: str = "symbi-recover/lease-verify.v1"
    report: StoreReport


class ListDocument(Document, frozen=True, kw_only=True):
    """The document of `lease list`."""

    schema: str = "symbi-recover/lease-list.v1"
    state_dir: str
    verdict: Verdict
    store_blocked: bool | None
    helper: Helper
    leases: tuple[LeaseRow, ...]


class InspectDocument(Document, frozen=True, kw_only=True):
    """The document of `lease inspect`."""

    schema: str = "symbi-recover/lease-inspect.v1"
    report: LeaseReport


class CheckDocument(Document, frozen=True, kw_only=True):
    """The document of `lease check`."""

    schema: str = "symbi-recover/lease-check.v1"
    report: CheckReport


class CapacityDocument(Document, frozen=True, kw_only=True):
    """The document of `lease capacity`."""

    schema: str = "symbi-recover/lease-capacity.v1"
    report: CapacityReport


SCHEMAS: dict[str, type[Any]] = {
    "lease-record": LeaseRecord,
    "lease-admission": AdmissionLimits,
    "lease-staging-limits": StagingLimits,
    "lease-staging-reservation": StagingReservation,
    "lease-verify": VerifyDocument,
    "lease-list": ListDocument,
    "lease-inspect": InspectDocument,
    "lease-check": CheckDocument,
    "lease-capacity": CapacityDocument,
}
"""Structures with a JSON Schema: the first four are evidence, the others our output."""
