"""Lease records of every phase, and the state directory around them (leases.md sections 2 to 6, 10 and 11).

`record` gives a record value in the order of the format, `states` one state for each phase, and `make_state`
lays out a directory as the helper leaves it. Sockets and locks are left to the tests that need live ones.
"""

from pathlib import Path
from typing import Any

from tests.support.writer.project import put
from tests.support.writer.text import AGENT, RUN, SEED, compact, digest, merge, plain_hash, public_key, uid

LEASE = "6b1f0c64-0f0e-4a53-8f52-3d1f2a7c9b10"
BOOT = "5a3d1c7e-9b24-4f60-8e1d-6c0b2a4f7d93"
CONTAINER = plain_hash(b"container")
WORKERS = "/sys/fs/cgroup/user.slice/symbi-workers.service"
DOCKER = "/usr/bin/docker"
FIRECRACKER = "/usr/local/bin/firecracker"
EXECUTABLE = "/usr/local/bin/symbi"
ADMISSION = {"max_workers": 16, "memory_bytes": 8_589_934_592, "cpu_nanos": 8_000_000_000}
STAGING = {"max_snapshots": 16, "reserved_bytes": 1_073_741_824}


def lease_uid(number: int) -> str:
    """Return a lease id that depends only on its number."""
    return uid("lease", number)


def cgroup(path: str = WORKERS, inode: int = 7741, **fields: Any) -> dict[str, Any]:
    """Return a cgroup identity."""
    return merge({"path": path, "boot_id": BOOT, "device": 30, "inode": inode}, fields)


def creating() -> dict[str, Any]:
    """Return the state of a container whose client was started."""
    return {"phase": "creating"}


def created(container_id: str = CONTAINER) -> dict[str, Any]:
    """Return the state of a container whose id is known."""
    return {"phase": "created", "container_id": container_id}


def uncertain() -> dict[str, Any]:
    """Return the state of a container whose client ended without an id."""
    return {"phase": "uncertain"}


def vm_creating() -> dict[str, Any]:
    """Return the state of a VM not yet known to run."""
    return {"phase": "vm_creating"}


def vm_created(pid: int = 48_213, start_ticks: int = 9_128_374, boot_id: str = BOOT) -> dict[str, Any]:
    """Return the state of a VM whose process is known."""
    return {"phase": "vm_created", "pid": pid, "start_ticks": start_ticks, "boot_id": boot_id}


def host_creating(parent: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the state of a delegated worker whose group may not exist yet."""
    return {"phase": "host_creating", "parent": parent or cgroup()}


def host_created(
    lease: str = LEASE, parent: dict[str, Any] | None = None, inode: int = 7805
) -> dict[str, Any]:
    """Return the state of a delegated worker whose group exists."""
    above = parent or cgroup()
    return {
        "phase": "host_created",
        "parent": above,
        "cgroup": {**above, "path": f"{above['path']}/worker-{lease}", "inode": inode},
    }


def states(lease: str = LEASE) -> dict[str, dict[str, Any]]:
    """Return one state for each of the seven phases, by phase."""
    every = (
        creating(),
        created(),
        uncertain(),
        vm_creating(),
        vm_created(),
        host_creating(),
        host_created(lease),
    )
    return {state["phase"]: state for state in every}


def origin(**fields: Any) -> dict[str, Any]:
    """Return the origin that ties a lease to a dispatch in a signed journal."""
    defaults = {
        "agent_id": AGENT,
        "run_id": RUN,
        "public_key": public_key(SEED),
        "dispatch_id": "33333333-3333-4333-8333-333333333333",
        "call_fingerprint": digest({"call": "call_1", "tool": "write_report"}),
        "tool_name": "write_report",
        "iteration": 1,
    }
    return merge(defaults, fields)


def record(lease: str = LEASE, state: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """Return a record value; binary and environment follow from the phase."""
    held = creating() if state is None else state
    backend = str(held.get("phase", "")).partition("_")[0]
    container = backend not in ("vm", "host")
    binary = DOCKER if container else FIRECRACKER if backend == "vm" else EXECUTABLE
    defaults: dict[str, Any] = {
        "lease": lease,
        "name": f"symbi-{lease}",
        "docker_binary": binary,
        "docker_environment": {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"} if container else {},
        "state": held,
        "resources": {"memory_bytes": 536_870_912, "cpu_nanos": 1_000_000_000},
        "jail": None,
        "staging": [],
        "origin": None,
    }
    return merge(defaults, fields)


def make_state(path: Path, *records: dict[str, Any], mode: int = 0o700, admission: Any = ADMISSION) -> Path:
    """Lay out a state directory with its lock, its limits and some records. Returns the path.

    Args:
        path: the directory, which must not exist.
        records: record values; each goes to the file that its lease names.
        mode: mode of the directory.
        admission: content of `admission.conf`; None leaves it out.
    """
    path.mkdir()
    put(path / "supervisor.lock", b"")
    if admission is not None:
        put(path / "admission.conf", compact(admission))
    for value in records:
        write_record(path, value)
    path.chmod(mode)
    return path


def write_record(path: Path, value: dict[str, Any], *, name: str | None = None, mode: int = 0o600) -> Path:
    """Write a record into a state directory. Returns its path."""
    return put(path / (name or f"{value['lease']}.json"), compact(value), mode)


def write_leftover(path: Path, value: dict[str, Any], number: int = 1) -> Path:
    """Write a record that was never renamed into place. Returns its path."""
    return write_record(path, value, name=f".write-{uid('write', number)}")


def write_environment(path: Path, content: bytes = b"TOKEN=example\n", suffix: str = "x0kw9W") -> Path:
    """Write a left-over environment file. Returns its path."""
    return put(path / f".environment-{suffix}", content)


def stage(path: Path, snapshot_id: str, reserved_bytes: int = 1_048_576, *, data: bool = True) -> Path:
    """Reserve a staging snapshot below a state directory. Returns its folder."""
    put(path / "staging.lock", b"")
    put(path / "staging.conf", compact(STAGING))
    pool = path / "staging"
    folder = pool / snapshot_id
    for made in (pool, folder, *((folder / "data",) if data else ())):
        made.mkdir(exist_ok=True)
        made.chmod(0o700)
    put(folder / "reservation", compact({"id": snapshot_id, "reserved_bytes": reserved_bytes}))
    return folder
