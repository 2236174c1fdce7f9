"""Whether a helper owns a lease store, and what is left over without one."""

import os
import socket
from pathlib import Path

from msgspec.structs import replace

from symbi_recover.core.leases import Helper
from symbi_recover.read.verify.lease_judge import judge
from tests.read.lease_stores import LEASE, SECOND, codes, look, snapshot_of
from tests.support.helper_double import helper_double
from tests.support.writer import lease as made
from tests.support.writer.project import put


def test_a_socket_of_a_dead_helper_is_only_noted(place: Path) -> None:
    made.make_state(place)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place / "supervisor.sock"))
        report = look(place)
    assert codes(report) == {"stale_socket"}
    assert report.verdict == "sound"


def test_a_running_helper_is_recognised_and_its_fresh_work_is_no_tombstone(place: Path) -> None:
    made.make_state(place, made.record(), made.record(made.lease_uid(2), made.created()))
    with helper_double(place) as helper:
        before = (place / "supervisor.lock").stat()
        started = helper.pid
        for name in (LEASE, made.lease_uid(2)):
            os.utime(place / f"{name}.json")
        report = look(place)
        assert report.helper.state == "running"
        assert report.helper.pid == started
        assert (place / "supervisor.lock").stat() == before
        assert not report.tombstones
        assert report.unsupervised == ()
        assert report.verdict == "sound"
        assert look(place, now_ns=snapshot_of(place).now_ns + 61 * SECOND).tombstones
    assert look(place).helper.state == "absent"


def test_a_record_older_than_the_helper_is_a_tombstone_beside_it(place: Path) -> None:
    made.make_state(place, made.record())
    snapshot = snapshot_of(place)
    (view,) = judge(snapshot).records
    running = Helper(state="running", pid=9, since_ns=view.mtime_ns + 1)
    assert judge(replace(snapshot, helper=running)).tombstones
    younger = Helper(state="running", pid=9, since_ns=view.mtime_ns - 1)
    assert not judge(replace(snapshot, helper=younger)).tombstones


def test_without_an_answer_about_the_lock_only_old_records_are_tombstones(place: Path) -> None:
    snapshot = snapshot_of(
        made.make_state(place, made.record(), made.record(made.lease_uid(2), made.created()))
    )
    unknown = replace(snapshot, helper=Helper(state="unknown", why="no rights"))
    report = judge(unknown)
    assert [view.tombstone for view in report.records if view.phase == "creating"] == [None]
    assert "supervision_unknown" in codes(report)
    assert report.verdict == "attention"
    assert len(judge(replace(unknown, now_ns=snapshot.now_ns + 61 * SECOND)).tombstones) == 1


def test_a_missing_lock_beside_a_socket_settles_nothing(place: Path) -> None:
    made.make_state(place, made.record(state=made.created()))
    (place / "supervisor.lock").unlink()
    assert look(place).helper.state == "absent"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place / "supervisor.sock"))
        report = look(place)
    assert report.helper.state == "unknown"
    assert report.unsupervised == ()
    assert "supervision_unknown" in codes(report)


def test_a_process_number_in_the_lock_file_means_nothing(place: Path) -> None:
    """F-106: only the kernel's lock counts."""
    made.make_state(place)
    for content in (b"", str(os.getpid()).encode(), b"999999999"):
        put(place / "supervisor.lock", content)
        assert look(place).helper.state == "absent"
