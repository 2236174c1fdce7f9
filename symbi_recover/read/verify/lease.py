"""Whether the worker of a lease lives: VM and delegated phases checked through /proc and the cgroups (leases.md 15).

For `vm_created`, in order: the boot, the PID namespace, the process by number and start time, and on a managed host
the cgroup, which decides over the number, also where that cannot be looked up. For the delegated phases: the boot, the cgroup's identity, and whether it
has processes. Containers are the daemon's to answer about; `vm_creating` without a jail names nothing to look for.

No signal is sent, nothing is written, and what cannot be seen is `worker_unknown`, never "gone".
"""

import os

from msgspec import Struct

from symbi_recover.core.lease_records import (
    CGROUP_ROOT,
    CgroupIdentity,
    HostCreated,
    HostCreating,
    LeaseRecord,
    VmCreated,
    VmCreating,
)
from symbi_recover.core.leases import WorkerView
from symbi_recover.read.evidence.kernel import (
    PROC,
    CannotKnow,
    Gone,
    Why,
    from_error,
    opened_directory,
    read_below,
)
from symbi_recover.read.evidence.processes import ENDED_STATES, Observation, observe, thread_states
from symbi_recover.wire.lease_rules import canonical_uuid, folded

_MOST_EVENTS = 4096
_NUL = CannotKnow(Why.FAILED, "the recorded path holds a NUL, so no cgroup can have it")
"""The helper takes such a record, and every attempt of its own to use the path fails."""


class HostFacts(Struct, frozen=True, kw_only=True):
    """What is known of the host before any worker is looked at."""

    boot: str | CannotKnow
    same_pid_namespace: bool | CannotKnow
    """Numbers in records mean processes as seen from here."""
    proc: str = PROC
    cgroup_root: str = CGROUP_ROOT


def look_at_worker(record: LeaseRecord, directory: str, host: HostFacts) -> WorkerView | None:
    """Say whether a record's worker lives; None for containers and where there is nothing to look for.

    Args:
        record: a good record.
        directory: the state directory's real path.
        host: gathered once for a store.
    """
    state = record.state
    if isinstance(state, VmCreated):
        return _vm(record, state, directory, host)
    if isinstance(state, VmCreating) and record.jail is not None:
        populated = _populated(_jail_path(record, host))
        if isinstance(populated, CannotKnow):
            return _unknown_unless_missing(populated, "cgroup_gone", "no cgroup of this lease")
        return _populated_view(populated)
    if isinstance(state, HostCreating | HostCreated):
        parent = _identity(state.parent, host, "the parent")
        if parent is not None:
            return parent
        if isinstance(state, HostCreated):
            return _identity(state.cgroup, host, "the worker's cgroup") or _processes(state.cgroup.path, host)
        return _processes(f"{state.parent.path}/worker-{record.lease}", host)
    return None


def _vm(record: LeaseRecord, state: VmCreated, directory: str, host: HostFacts) -> WorkerView:
    if isinstance(host.boot, CannotKnow):
        return _unknown(host.boot)
    if canonical_uuid(state.boot_id) != host.boot:
        return WorkerView(
            verdict="vm_other_boot", detail=f"recorded on boot {state.boot_id}, this is {host.boot}"
        )
    if host.same_pid_namespace is not True:
        why = host.same_pid_namespace
        detail = (
            why.detail
            if isinstance(why, CannotKnow)
            else "the helper counts processes in another PID namespace"
        )
        view = WorkerView(verdict="vm_unknown_namespace", detail=detail)
    else:
        view = _process(record, state, directory, host)
    return view if record.jail is None else _by_cgroup(view, _populated(_jail_path(record, host)))


def _by_cgroup(view: WorkerView, populated: bool | CannotKnow) -> WorkerView:
    """On a managed host the cgroup decides; a process that could not be seen is not one that is gone."""
    unseen = view.verdict in ("vm_unknown_namespace", "worker_unknown")
    if populated is True:
        if unseen:
            return WorkerView(verdict="cgroup_populated", detail=f"it has processes; {view.detail}")
        if view.verdict not in ("vm_alive", "vm_uncorroborated"):
            return WorkerView(verdict="vm_stray", detail=f"{view.detail}; its cgroup has processes")
        return view
    if unseen:
        # From another namespace the cgroup may be hidden as well, so that not even a missing one shows anything.
        cgroup = populated.detail if isinstance(populated, CannotKnow) else "its cgroup has no processes"
        return WorkerView(verdict=view.verdict, detail=f"{view.detail}; {cgroup}")
    if isinstance(populated, CannotKnow) and populated.why is not Why.MISSING:
        return _unknown(populated)
    if view.verdict == "vm_alive":
        return WorkerView(
            verdict="vm_uncorroborated", detail=f"{view.detail}, but its cgroup is empty or gone"
        )
    return view


def _process(record: LeaseRecord, state: VmCreated, directory: str, host: HostFacts) -> WorkerView:
    seen = observe(state.pid, proc=host.proc)
    number = f"process {state.pid}"
    if isinstance(seen, Gone):
        return WorkerView(verdict="vm_gone", detail=f"there is no {number}")
    if isinstance(seen, CannotKnow):
        return _unknown(seen)
    if seen.stat.start_ticks != state.start_ticks:
        detail = f"{number} started at tick {seen.stat.start_ticks}, not {state.start_ticks}"
        return WorkerView(verdict="vm_pid_reused", detail=detail)
    if not isinstance(seen.status, CannotKnow) and seen.status.thread_group != state.pid:
        return WorkerView(
            verdict="vm_pid_reused", detail=f"{number} is a thread of {seen.status.thread_group}"
        )
    if seen.stat.ended:
        threads = thread_states(state.pid, host.proc)
        if not isinstance(threads, tuple) or all(letter in ENDED_STATES for letter in threads):
            return WorkerView(verdict="vm_exited", detail=f"{number} is in state {seen.stat.state}")
    doubts = _jail_doubts(record, seen) if record.jail else _plain_doubts(record, seen, directory)
    if doubts:
        return WorkerView(verdict="vm_uncorroborated", detail=f"{number}: {'; '.join(doubts)}")
    return WorkerView(verdict="vm_alive", detail=f"{number} has the recorded start time")


def _plain_doubts(record: LeaseRecord, seen: Observation, directory: str) -> list[str]:
    """Program and working directory, where they can be read."""
    doubts = []
    folder = f"{directory}/vm-{record.lease}"
    if not isinstance(seen.executable, CannotKnow) and seen.executable.path != record.docker_binary.encode():
        doubts.append(f"its program is {os.fsdecode(seen.executable.path)!r}")
    if not isinstance(seen.directory, CannotKnow) and seen.directory != os.fsencode(folder):
        doubts.append(f"its working directory is {os.fsdecode(seen.directory)!r}")
    return doubts


def _jail_doubts(record: LeaseRecord, seen: Observation) -> list[str]:
    """Cgroup and account, which a managed host sets."""
    doubts: list[str] = []
    jail = record.jail
    if jail is None:
        return doubts
    expected = f"0::/{jail.cgroup_parent}/{record.lease}\n".encode()
    if not isinstance(seen.cgroup, CannotKnow) and seen.cgroup != expected:
        doubts.append(f"its cgroup is {os.fsdecode(seen.cgroup.strip())!r}")
    if not isinstance(seen.status, CannotKnow) and set(seen.status.uids) != {jail.uid}:
        doubts.append(f"its accounts are {seen.status.uids}, not {jail.uid}")
    return doubts


def _jail_path(record: LeaseRecord, host: HostFacts) -> str:
    parent = record.jail.cgroup_parent if record.jail else ""
    return f"{host.cgroup_root}/{parent}/{record.lease}"


def _identity(cgroup: CgroupIdentity, host: HostFacts, what: str) -> WorkerView | None:
    """None if the recorded cgroup is there."""
    if isinstance(host.boot, CannotKnow):
        return _unknown(host.boot)
    if canonical_uuid(cgroup.boot_id) != host.boot:
        return WorkerView(verdict="cgroup_other_boot", detail=f"{what} was on boot {cgroup.boot_id}")
    if "\0" in cgroup.path:
        return _unknown(_NUL)
    try:
        status = os.stat(_seen_path(cgroup.path, host), follow_symlinks=False)
    except OSError as error:
        answer = from_error(error, f"{what} cannot be examined")
        return _unknown_unless_missing(answer, "cgroup_gone", f"{what} is gone")
    if (status.st_dev, status.st_ino) == (cgroup.device, cgroup.inode):
        return None
    detail = (
        f"{what} has device {status.st_dev} and inode {status.st_ino}, not {cgroup.device} and {cgroup.inode}"
    )
    return WorkerView(verdict="cgroup_replaced", detail=detail)


def _processes(path: str, host: HostFacts) -> WorkerView:
    populated = _populated(_seen_path(path, host))
    if isinstance(populated, CannotKnow):
        return _unknown_unless_missing(
            populated, "cgroup_gone", "the worker's cgroup was never made, or is gone"
        )
    return _populated_view(populated)


def _seen_path(path: str, host: HostFacts) -> str:
    return "/".join([host.cgroup_root, *folded(path)[len(folded(CGROUP_ROOT)) :]])


def _populated(path: str) -> bool | CannotKnow:
    try:
        with opened_directory(path) as folder:
            data = read_below(folder, "cgroup.events", _MOST_EVENTS)
    except OSError as error:
        return from_error(error, "the cgroup cannot be opened")
    if isinstance(data, CannotKnow):
        return data
    lines = data.split(b"\n")
    if b"populated 1" in lines:
        return True
    return (
        False
        if b"populated 0" in lines
        else CannotKnow(Why.MALFORMED, "cgroup.events says nothing of processes")
    )


def _populated_view(populated: bool) -> WorkerView:
    if populated:
        return WorkerView(verdict="cgroup_populated", detail="it has processes")
    return WorkerView(verdict="cgroup_empty", detail="it has no processes")


def _unknown(answer: CannotKnow) -> WorkerView:
    return WorkerView(verdict="worker_unknown", detail=answer.detail)


def _unknown_unless_missing(answer: CannotKnow, verdict: str, detail: str) -> WorkerView:
    return WorkerView(verdict=verdict, detail=detail) if answer.why is Why.MISSING else _unknown(answer)
