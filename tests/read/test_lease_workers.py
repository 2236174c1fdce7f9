"""VM and delegated workers, checked through /proc and the cgroups; a number alone never identifies a process."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from symbi_recover.core.lease_records import LeaseRecord
from symbi_recover.core.leases import WorkerView
from symbi_recover.read.evidence.host import boot_id
from symbi_recover.read.evidence.kernel import CannotKnow, Why
from symbi_recover.read.evidence.processes import ProcessStat, read_identity
from symbi_recover.read.verify.lease import HostFacts, look_at_worker
from symbi_recover.wire.lease import read_record
from tests.read.lease_stores import look as look_at_store
from tests.support.writer import lease as made
from tests.support.writer.text import compact

LEASE = made.LEASE
BOOT = str(boot_id())
JAIL = {"uid": 70_000, "cgroup_parent": "symbivmm.slice"}


class Sleeper:
    """A process that does nothing, in a folder of the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, cwd=folder)
        seen = read_identity(self.process.pid)
        assert isinstance(seen, ProcessStat)
        self.pid, self.ticks = self.process.pid, seen.start_ticks
        self.program = str(Path(f"/proc/{self.pid}/exe").readlink())

    def end(self, *, collect: bool = True) -> None:
        self.process.kill()
        if collect:
            self.process.wait()


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[Sleeper]:
    folder = tmp_path / f"vm-{LEASE}"
    folder.mkdir()
    one = Sleeper(folder)
    # exec is over once the program is Python's
    yield one
    one.end()
    assert one.process.stdin
    one.process.stdin.close()


def record(state: dict[str, Any], **fields: Any) -> LeaseRecord:
    reading = read_record(compact(made.record(state=state, **fields)), LEASE)
    assert reading.record is not None, reading.faults
    return reading.record


def look(value: LeaseRecord, directory: Path, **facts: Any) -> WorkerView | None:
    given: dict[str, Any] = {"boot": BOOT, "same_pid_namespace": True, **facts}
    return look_at_worker(value, str(directory), HostFacts(**given))


def verdict(value: LeaseRecord, directory: Path, **facts: Any) -> str | None:
    view = look(value, directory, **facts)
    return None if view is None else view.verdict


def vm(one: Sleeper, **fields: Any) -> LeaseRecord:
    ticks = fields.pop("ticks", one.ticks)
    boot = fields.pop("boot", BOOT)
    fields.setdefault("docker_binary", one.program)
    return record(made.vm_created(one.pid, ticks, boot), **fields)


def test_containers_are_the_daemons_to_answer_about(tmp_path: Path) -> None:
    assert verdict(record(made.created()), tmp_path) is None
    assert verdict(record(made.vm_creating()), tmp_path) is None


def test_a_living_vm_is_recognised(sleeper: Sleeper) -> None:
    assert verdict(vm(sleeper), sleeper.folder.parent) == "vm_alive"


def test_a_process_with_another_program_or_folder_is_doubted(sleeper: Sleeper, tmp_path: Path) -> None:
    assert verdict(vm(sleeper, docker_binary="/usr/bin/firecracker"), tmp_path) == "vm_uncorroborated"
    assert verdict(vm(sleeper), tmp_path / "elsewhere") == "vm_uncorroborated"


def test_a_number_used_again_is_a_stranger(sleeper: Sleeper, tmp_path: Path) -> None:
    """F-108."""
    assert verdict(vm(sleeper, ticks=sleeper.ticks + 1), tmp_path) == "vm_pid_reused"
    assert sleeper.process.poll() is None, "nobody was signalled"


def test_a_threads_number_is_no_vm(tmp_path: Path) -> None:
    """F-108: /proc answers about a thread's number as about a process, with a start time of the thread's own."""
    ends = threading.Event()
    thread = threading.Thread(target=ends.wait)
    thread.start()
    try:
        seen = read_identity(thread.native_id or 0)
        assert isinstance(seen, ProcessStat)
        assert thread.native_id != os.getpid()
        recorded = made.vm_created(thread.native_id or 0, seen.start_ticks, BOOT)
        program = str(Path("/proc/self/exe").readlink())
        view = look(record(recorded, docker_binary=program), tmp_path)
        assert view is not None
        assert view.verdict == "vm_pid_reused", "a VM is a process, and a thread is not the recorded one"
        assert str(os.getpid()) in view.detail
    finally:
        ends.set()
        thread.join()


def test_another_boot_decides_before_the_number(sleeper: Sleeper, tmp_path: Path) -> None:
    """F-108: same number and start, another boot."""
    assert verdict(vm(sleeper, boot=made.BOOT), tmp_path) == "vm_other_boot"


def test_an_unusual_spelling_of_this_boot_is_this_boot(sleeper: Sleeper) -> None:
    assert verdict(vm(sleeper, boot=BOOT.upper()), sleeper.folder.parent) == "vm_alive"


def test_an_ended_vm_is_exited_until_collected_and_then_gone(sleeper: Sleeper, tmp_path: Path) -> None:
    value = vm(sleeper)
    sleeper.end(collect=False)
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert verdict(value, tmp_path) == "vm_exited"
    sleeper.process.wait()
    assert verdict(value, tmp_path) == "vm_gone"


def test_in_another_pid_namespace_nothing_is_said(sleeper: Sleeper, tmp_path: Path) -> None:
    denied = CannotKnow(Why.OTHER_PID_NAMESPACE, "only a part is visible")
    for answer in (False, denied):
        assert verdict(vm(sleeper), tmp_path, same_pid_namespace=answer) == "vm_unknown_namespace"


def test_an_unknown_boot_is_no_verdict(sleeper: Sleeper, tmp_path: Path) -> None:
    assert verdict(vm(sleeper), tmp_path, boot=CannotKnow(Why.DENIED, "hidden")) == "worker_unknown"


def group(root: Path, path: str, populated: int | None) -> Path:
    folder = root / path
    folder.mkdir(parents=True, exist_ok=True)
    if populated is not None:
        (folder / "cgroup.events").write_text(f"populated {populated}\nfrozen 0\n")
    return folder


def test_the_jails_cgroup_decides_over_the_number(sleeper: Sleeper, tmp_path: Path) -> None:
    root = tmp_path / "cg"
    value = vm(sleeper, ticks=sleeper.ticks + 1, jail=JAIL)
    assert verdict(value, tmp_path, cgroup_root=str(root)) == "vm_pid_reused"
    group(root, f"symbivmm.slice/{LEASE}", 0)
    assert verdict(value, tmp_path, cgroup_root=str(root)) == "vm_pid_reused"
    group(root, f"symbivmm.slice/{LEASE}", 1)
    assert verdict(value, tmp_path, cgroup_root=str(root)) == "vm_stray"


@pytest.mark.parametrize(("populated", "expected"), [(1, "cgroup_populated"), (0, None), (None, None)])
@pytest.mark.parametrize("unseen", ["vm_unknown_namespace", "worker_unknown"])
def test_the_jails_cgroup_is_looked_at_where_the_process_cannot_be_seen(
    sleeper: Sleeper,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    unseen: str,
    populated: int | None,
    expected: str | None,
) -> None:
    """A process that merely cannot be seen is never said to be gone."""
    group(tmp_path, "symbivmm.slice", None)
    if populated is not None:
        group(tmp_path, f"symbivmm.slice/{LEASE}", populated)
    hidden = CannotKnow(Why.DENIED, "hidden from here")
    facts: dict[str, Any] = {"cgroup_root": str(tmp_path)}
    if unseen == "worker_unknown":
        monkeypatch.setattr("symbi_recover.read.verify.lease.observe", lambda *_, **__: hidden)
    else:
        facts["same_pid_namespace"] = hidden
    view = look(vm(sleeper, jail=JAIL), tmp_path, **facts)
    assert view is not None
    assert view.verdict == (expected or unseen)
    assert "hidden from here" in view.detail
    assert {1: "has processes", 0: "no processes", None: "No such file"}[populated] in view.detail


def test_a_jailed_process_needs_its_account_and_group(sleeper: Sleeper, tmp_path: Path) -> None:
    group(tmp_path, f"symbivmm.slice/{LEASE}", 1)
    view = look(vm(sleeper, jail=JAIL), tmp_path, cgroup_root=str(tmp_path))
    assert view is not None
    assert view.verdict == "vm_uncorroborated"
    assert "70000" in view.detail


def test_a_jailed_vm_that_was_being_made_may_have_processes(tmp_path: Path) -> None:
    value = record(made.vm_creating(), jail=JAIL)
    assert verdict(value, tmp_path, cgroup_root=str(tmp_path)) == "cgroup_gone"
    group(tmp_path, f"symbivmm.slice/{LEASE}", 1)
    assert verdict(value, tmp_path, cgroup_root=str(tmp_path)) == "cgroup_populated"


def identity(folder: Path, root: Path, **fields: Any) -> dict[str, Any]:
    status = folder.stat()
    below = folder.relative_to(root)
    given = {
        "path": f"/sys/fs/cgroup/{below}",
        "boot_id": BOOT,
        "device": status.st_dev,
        "inode": status.st_ino,
    }
    return {**given, **fields}


def host_record(parent: dict[str, Any], leaf: dict[str, Any] | None = None) -> LeaseRecord:
    if leaf is None:
        return record({"phase": "host_creating", "parent": parent})
    return record({"phase": "host_created", "parent": parent, "cgroup": leaf})


def test_delegated_workers_are_judged_by_their_leaf(tmp_path: Path) -> None:
    parent = group(tmp_path, "user.slice/w", 1)
    known = identity(parent, tmp_path)
    where = {"cgroup_root": str(tmp_path)}
    assert verdict(host_record(known), tmp_path, **where) == "cgroup_gone", "the leaf was never made"
    leaf = group(tmp_path, f"user.slice/w/worker-{LEASE}", 0)
    assert verdict(host_record(known), tmp_path, **where) == "cgroup_empty"
    value = host_record(known, identity(leaf, tmp_path))
    assert verdict(value, tmp_path, **where) == "cgroup_empty"
    group(tmp_path, f"user.slice/w/worker-{LEASE}", 1)
    assert verdict(value, tmp_path, **where) == "cgroup_populated"
    (leaf / "cgroup.events").write_text("nothing\n")
    assert verdict(value, tmp_path, **where) == "worker_unknown"


def test_a_replaced_or_missing_group_holds_nothing_of_ours(tmp_path: Path) -> None:
    parent = group(tmp_path, "user.slice/w", 1)
    leaf = group(tmp_path, f"user.slice/w/worker-{LEASE}", 1)
    known, at_leaf = identity(parent, tmp_path), identity(leaf, tmp_path)
    where = {"cgroup_root": str(tmp_path)}
    assert verdict(host_record({**known, "inode": 1}), tmp_path, **where) == "cgroup_replaced"
    assert verdict(host_record(known, {**at_leaf, "inode": 1}), tmp_path, **where) == "cgroup_replaced"
    other = {**known, "boot_id": made.BOOT}
    assert verdict(host_record(other), tmp_path, **where) == "cgroup_other_boot"
    missing = {**known, "path": "/sys/fs/cgroup/user.slice/other"}
    assert verdict(host_record(missing), tmp_path, **where) == "cgroup_gone"


def test_a_group_that_no_system_can_hold_is_unknown_and_hides_no_other_lease(place: Path) -> None:
    """F-080: a NUL in a path is nothing that the format forbids; the record is good, and so are its neighbours."""
    parent = made.cgroup("/sys/fs/cgroup/a\0b", boot_id=BOOT)
    odd = [made.host_creating(parent), made.host_created(made.lease_uid(1), parent)]
    records = [made.record(made.lease_uid(number), state) for number, state in enumerate(odd)]
    report = look_at_store(made.make_state(place, *records, made.record(made.lease_uid(2))))
    assert len(report.records) == 3
    assert report.store_blocked is False
    views = [view.worker for view in report.records if view.worker is not None]
    assert [view.verdict for view in views] == ["worker_unknown"] * 2
    assert "NUL" in views[0].detail
