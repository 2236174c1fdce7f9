"""The rules of a lease record that are no matter of type (leases.md sections 4, 4.1, 6 and 16).

Each broken rule is one `Fault`, and all are given. The spelling of UUIDs that the helper takes (section 19) is here
as well, since rules and reader share it. Pure; `wire/lease.py` reads the bytes.
"""

import re

from msgspec import Struct

from symbi_recover.core.lease_records import (
    CGROUP_ROOT,
    ENVIRONMENT_NAMES,
    MOST_ENVIRONMENT,
    MOST_STAGING_REFERENCES,
    NAME_PREFIX,
    NIL,
    CgroupIdentity,
    ContainerState,
    Created,
    HostCreated,
    HostCreating,
    HostState,
    Jail,
    LeaseRecord,
    Origin,
    State,
    VmCreated,
    VmState,
)
from symbi_recover.core.scalars import ANY_HEX_64, HEX_64, HYPHENATED_UUID

_UUID = re.compile(
    rf"[0-9a-fA-F]{{32}}|(?:[uU][rR][nN]:[uU][uU][iI][dD]:)?({HYPHENATED_UUID})|\{{({HYPHENATED_UUID})\}}"
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SLICE = re.compile(r"symbi[A-Za-z0-9._-]*\.slice")
_FRAMING = re.compile(r"[\x00\r\n]")
_LOWEST_JAIL_UID = 65_536


class Fault(Struct, frozen=True):
    """Why the helper refuses a file."""

    code: str
    message: str
    offset: int | None = None
    """Byte offset, where one place can be named."""


class Deviation(Struct, frozen=True):
    """Something the helper takes but never writes."""

    code: str
    message: str
    offset: int | None = None


def canonical_uuid(text: str) -> str | None:
    """The canonical form of a UUID in any spelling that the helper takes, or None."""
    match = _UUID.fullmatch(text)
    if match is None:
        return None
    digits = (match.group(1) or match.group(2) or text).replace("-", "").lower()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def identity_faults(record: LeaseRecord, stem: str) -> list[Fault]:
    """The record must name the lease that its file is named after."""
    faults = []
    if record.lease != stem:
        faults.append(Fault("record_identity", f"lease is {record.lease}, the file name says {stem}"))
    if record.name != f"{NAME_PREFIX}{record.lease}":
        faults.append(Fault("record_identity", f"name is {record.name!r}, not {NAME_PREFIX}{record.lease}"))
    return faults


def rule_faults(record: LeaseRecord, deviations: list[Deviation]) -> list[Fault]:
    """Every broken rule of sections 4 and 4.1; unusual boot spellings are added to `deviations`."""
    state, broken = record.state, list[str]()
    if not record.docker_binary.startswith("/"):
        broken.append("docker_binary is not an absolute path")
    broken += _environment_faults(record)
    if record.resources and not (record.resources.memory_bytes and record.resources.cpu_nanos):
        broken.append("resources are not positive")
    if isinstance(state, HostState) and record.resources is None:
        broken.append("a delegated worker has no resources")
    if record.jail is not None:
        broken += _jail_faults(record.jail, state)
    if len(record.staging) > MOST_STAGING_REFERENCES or len(set(record.staging)) != len(record.staging):
        broken.append(f"staging names more than {MOST_STAGING_REFERENCES} snapshots, or one twice")
    if record.origin is not None:
        broken += _origin_faults(record.origin)
    broken += _state_faults(record, deviations)
    return [Fault("record_rule", message) for message in broken]


def _environment_faults(record: LeaseRecord) -> list[str]:
    environment = record.docker_environment
    if not isinstance(record.state, ContainerState):
        return ["docker_environment is not empty, as it must be without a container"] if environment else []
    broken = [
        f"environment variable {name!r} is not permitted" for name in environment.keys() - ENVIRONMENT_NAMES
    ]
    broken += [
        f"the value of {name!r} holds NUL, CR or LF"
        for name in environment
        if _FRAMING.search(environment[name])
    ]
    if sum(len(n.encode()) + len(v.encode()) + 2 for n, v in environment.items()) > MOST_ENVIRONMENT:
        broken.append(f"docker_environment is larger than {MOST_ENVIRONMENT} bytes")
    return sorted(broken)


def _jail_faults(jail: Jail, state: State) -> list[str]:
    broken = []
    if not isinstance(state, VmState):
        broken.append("jail stands in a record that is not of a VM")
    if jail.uid < _LOWEST_JAIL_UID:
        broken.append(f"jail.uid is below {_LOWEST_JAIL_UID}")
    if len(jail.cgroup_parent) > 64 or not _SLICE.fullmatch(jail.cgroup_parent):
        broken.append(f"jail.cgroup_parent {jail.cgroup_parent!r} is not a slice of this runtime")
    return broken


def _origin_faults(origin: Origin) -> list[str]:
    broken = [
        f"origin.{n} is the nil UUID"
        for n in ("agent_id", "run_id", "dispatch_id")
        if getattr(origin, n) == NIL
    ]
    if not ANY_HEX_64.fullmatch(origin.public_key):
        broken.append("origin.public_key is not 64 hex digits")
    prefix, _, digits = origin.call_fingerprint.partition(":")
    if prefix != "sha256" or not ANY_HEX_64.fullmatch(digits):
        broken.append("origin.call_fingerprint is not sha256: and 64 hex digits")
    if not 1 <= len(origin.tool_name.encode()) <= 256 or _CONTROL.search(origin.tool_name):
        broken.append("origin.tool_name is empty, too long, or holds control characters")
    return broken


def _state_faults(record: LeaseRecord, deviations: list[Deviation]) -> list[str]:
    state = record.state
    broken: list[str] = []
    if isinstance(state, VmCreated):
        if state.pid < 2 or not state.start_ticks:
            broken.append("pid or start_ticks cannot be those of a VM")
        broken += _boot_faults(state.boot_id, deviations)
    elif isinstance(state, HostCreating):
        broken += _cgroup_faults(state.parent, deviations)
    elif isinstance(state, HostCreated):
        broken += _cgroup_faults(state.parent, deviations) + _cgroup_faults(state.cgroup, deviations)
        leaf = [*folded(state.parent.path), f"worker-{record.lease}"]
        if folded(state.cgroup.path) != leaf or state.cgroup.boot_id != state.parent.boot_id:
            broken.append("cgroup is not the leaf of this lease below parent")
    elif isinstance(state, Created) and not HEX_64.fullmatch(state.container_id):
        broken.append("container_id is not 64 lower-case hex digits")
    return broken


def _boot_faults(text: str, deviations: list[Deviation]) -> list[str]:
    value = canonical_uuid(text)
    if value is None:
        return [f"boot_id {text!r} is not a UUID"]
    if value != text:
        message = f"{text!r} is an unusual spelling of boot {value}; the helper takes it for another boot"
        deviations.append(Deviation("noncanonical_spelling", message))
    return []


def _cgroup_faults(cgroup: CgroupIdentity, deviations: list[Deviation]) -> list[str]:
    broken = _boot_faults(cgroup.boot_id, deviations)
    parts, root = folded(cgroup.path), folded(CGROUP_ROOT)
    if (
        not cgroup.path.startswith("/")
        or parts[: len(root)] != root
        or len(parts) == len(root)
        or ".." in parts
    ):
        broken.append(f"{cgroup.path!r} is not strictly below {CGROUP_ROOT}")
    if not cgroup.inode:
        broken.append("a cgroup has inode 0")
    return broken


def folded(path: str) -> list[str]:
    """The components of an absolute path, repeated slashes and `.` left out."""
    return [part for part in path.split("/") if part not in ("", ".")]
