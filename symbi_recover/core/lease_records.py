"""What the sandbox helper writes into its state directory (leases.md sections 4, 6, 10, 11 and 16).

Members are in the order of the file. Ids are text in canonical form (lower case, dashes): a reader folds the other
spellings that the helper takes and reports them. `boot_id` alone stays as written, because the helper compares
its text. Bounds that are no matter of type are rules, checked in `wire/lease.py`.
"""

from typing import Annotated, ClassVar

from msgspec import Meta

from symbi_recover.core.scalars import CANONICAL_UUID, U32, U64
from symbi_recover.core.shapes import Strict

RECORD_LIMIT = 131_072
"""Most bytes of a record."""
MOST_RECORDS = 512
SMALL_LIMIT = 4096
"""Most bytes of `admission.conf`, `staging.conf` and a reservation."""
MOST_STAGING_REFERENCES = 32
MOST_RESERVATIONS = 512
MOST_WORKERS = 512
MOST_ENVIRONMENT = 65_536
SOCKET_PATH_LIMIT = 104
"""The path of `supervisor.sock` must be shorter, in bytes."""
LABEL = "ai.symbiont.lease"
NAME_PREFIX = "symbi-"
CGROUP_ROOT = "/sys/fs/cgroup"
NIL = "00000000-0000-0000-0000-000000000000"
ENVIRONMENT_NAMES = frozenset(
    [
        "DOCKER_API_VERSION",
        "DOCKER_CERT_PATH",
        "DOCKER_CONFIG",
        "DOCKER_CONTEXT",
        "DOCKER_HOST",
        "DOCKER_TLS_VERIFY",
        "HOME",
        "LANG",
        "PATH",
    ]
)

UuidText = Annotated[
    str,
    Meta(
        extra={"kind": "lease_uuid"},
        extra_json_schema={"pattern": f"^{CANONICAL_UUID}$"},
    ),
]
"""A UUID in canonical form."""

BootText = Annotated[
    str, Meta(description="A UUID, as the kernel spells it", extra_json_schema={"format": "uuid"})
]
"""A boot's UUID as written."""

Environment = Annotated[dict[str, str], Meta(extra={"kind": "lease_environment"})]
"""The complete environment of the client that the helper starts (section 4.1)."""


class Resources(Strict, frozen=True, kw_only=True):
    """What a worker is charged."""

    memory_bytes: U64
    cpu_nanos: U64
    """One CPU is 1000000000."""


class Jail(Strict, frozen=True, kw_only=True):
    """The identity of a VM on a managed host."""

    uid: U32
    cgroup_parent: str


class CgroupIdentity(Strict, frozen=True, kw_only=True):
    """Which cgroup, on which boot."""

    path: str
    boot_id: BootText
    device: U64
    inode: U64


class Origin(Strict, frozen=True, kw_only=True):
    """The dispatch in a signed run journal that caused the lease: the runtime's own statement (section 16)."""

    agent_id: UuidText
    run_id: UuidText
    public_key: str
    dispatch_id: UuidText
    call_fingerprint: str
    tool_name: str
    iteration: U32


class State(Strict, frozen=True, kw_only=True, tag_field="phase"):
    """How far a worker has come; nothing ever moves backwards (section 6)."""

    backend: ClassVar[str] = "container"
    shown: ClassVar[str] = "creating"
    """The phase as the helper's own inspection names it."""


class Creating(State, frozen=True, kw_only=True, tag="creating"):
    """Identity and charge are durable; the request may be unsent, running, refused or done."""


class Created(State, frozen=True, kw_only=True, tag="created"):
    """The client reported this container."""

    shown: ClassVar[str] = "created"
    container_id: str


class Uncertain(State, frozen=True, kw_only=True, tag="uncertain"):
    """The client ended without a usable id; the engine may still act on the request."""

    shown: ClassVar[str] = "uncertain"


class VmCreating(State, frozen=True, kw_only=True, tag="vm_creating"):
    """The charge is durable, the VMM not yet known to run."""

    backend: ClassVar[str] = "firecracker"


class VmCreated(State, frozen=True, kw_only=True, tag="vm_created"):
    """The VMM's identity is durable."""

    backend: ClassVar[str] = "firecracker"
    shown: ClassVar[str] = "created"
    pid: U32
    start_ticks: U64
    boot_id: BootText


class HostCreating(State, frozen=True, kw_only=True, tag="host_creating"):
    """The charge is durable, the leaf cgroup perhaps not made."""

    backend: ClassVar[str] = "landlock"
    parent: CgroupIdentity


class HostCreated(State, frozen=True, kw_only=True, tag="host_created"):
    """The leaf exists with its limits applied."""

    backend: ClassVar[str] = "landlock"
    shown: ClassVar[str] = "created"
    parent: CgroupIdentity
    cgroup: CgroupIdentity


ContainerState = Creating | Created | Uncertain
VmState = VmCreating | VmCreated
HostState = HostCreating | HostCreated
AnyState = Creating | Created | Uncertain | VmCreating | VmCreated | HostCreating | HostCreated

STATES: dict[str, type[State]] = {
    "creating": Creating,
    "created": Created,
    "uncertain": Uncertain,
    "vm_creating": VmCreating,
    "vm_created": VmCreated,
    "host_creating": HostCreating,
    "host_created": HostCreated,
}


def phase_of(state: State) -> str:
    """The phase as the record names it."""
    return str(state.__struct_config__.tag)


class LeaseRecord(Strict, frozen=True, kw_only=True):
    """One worker's record (section 4)."""

    lease: UuidText
    name: str
    docker_binary: str
    """Docker client, Firecracker binary, or the helper's own executable, by phase."""
    docker_environment: Environment
    state: Annotated[AnyState, Meta(extra={"kind": "lease_state"})]
    resources: Resources | None = None
    jail: Jail | None = None
    staging: Annotated[tuple[UuidText, ...], Meta(extra={"kind": "lease_staging"})] = ()
    origin: Origin | None = None

    @property
    def phase(self) -> str:
        """`state.phase` of the record."""
        return phase_of(self.state)


class AdmissionLimits(Strict, frozen=True, kw_only=True):
    """`admission.conf` (section 10)."""

    max_workers: U64
    memory_bytes: U64
    cpu_nanos: U64


class StagingLimits(Strict, frozen=True, kw_only=True):
    """`staging.conf` (section 11)."""

    max_snapshots: U64
    reserved_bytes: U64


class StagingReservation(Strict, frozen=True, kw_only=True):
    """`staging/<uuid>/reservation` (section 11)."""

    id: UuidText
    reserved_bytes: U64


DEFAULT_ADMISSION = AdmissionLimits(max_workers=16, memory_bytes=8 << 30, cpu_nanos=8_000_000_000)
DEFAULT_STAGING = StagingLimits(max_snapshots=16, reserved_bytes=1 << 30)
