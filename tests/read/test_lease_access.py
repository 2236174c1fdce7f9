"""Where a lease store lies, whose it is, and what may not be looked at."""

import errno
import os
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

from symbi_recover.core.errors import UnexaminedError
from symbi_recover.core.leases import StoreReport
from symbi_recover.read.verify.lease_judge import judge
from symbi_recover.read.verify.lease_store import read_store
from tests.read.lease_stores import LEASE, as_root, codes, look
from tests.support.cli import Ran, run
from tests.support.mounts import NotHereError, in_private_mounts, mount
from tests.support.writer import lease as made


@pytest.mark.parametrize("kind", ["fifo", "socket", "folder", "link", "loop"])
def test_what_lies_at_the_directorys_path_is_named(place: Path, kind: str) -> None:
    """F-071, for the directory."""
    with socket.socket(socket.AF_UNIX) as listener:
        if kind == "fifo":
            os.mkfifo(place)
        elif kind == "socket":
            listener.bind(str(place))
        elif kind == "folder":
            made.make_state(place, mode=0o750)
        elif kind == "link":
            place.symlink_to(made.make_state(place.with_name("real")))
        else:
            place.symlink_to(place)
        report = judge(read_store(str(place), now_ns=0))
    assert "dir_unsafe" in codes(report)
    assert report.store_blocked


def test_folders_above_may_be_links(place: Path) -> None:
    made.make_state(place)
    alias = place.parent / "alias"
    alias.symlink_to(place.parent)
    report = judge(read_store(f"{alias}/s/", now_ns=0))
    assert report.state_dir == str(place)
    assert report.store_blocked is False


def test_a_missing_directory_is_not_an_empty_one(place: Path) -> None:
    report = judge(read_store(str(place), now_ns=0))
    assert codes(report) == {"dir_missing"}
    assert report.helper.why
    assert report.capacity.reserved.workers is None


def test_a_path_too_long_for_the_socket_blocks(place: Path) -> None:
    long = place.parent / ("d" * (103 - len(str(place.parent)) - 1 - len("/supervisor.sock")))
    made.make_state(long)
    assert len(f"{long}/supervisor.sock") == 103
    assert look(long).store_blocked is False
    assert "path_too_long" in codes(look(long.rename(f"{long}d")))


def test_a_directory_that_may_not_be_listed_was_not_examined(place: Path) -> None:
    made.make_state(place)
    real = os.open

    def denied(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if path == str(place):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, flags, *rest, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", denied)
        with pytest.raises(UnexaminedError) as caught:
            read_store(str(place), now_ns=0)
    assert caught.value.code == "file_unreadable"


def test_a_directory_that_may_not_be_searched_was_not_examined(place: Path) -> None:
    made.make_state(place, made.record())
    real = os.stat

    def denied(path: Any, *rest: Any, **more: Any) -> os.stat_result:
        if more.get("dir_fd") is not None:
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, *rest, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "stat", denied)
        with pytest.raises(UnexaminedError):
            read_store(str(place), now_ns=0)


def test_a_record_that_cannot_be_read_leaves_the_question_open(place: Path) -> None:
    made.make_state(place, made.record())
    real = os.open

    def denied(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if path == f"{LEASE}.json":
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, flags, *rest, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", denied)
        report = look(place)
    assert (report.verdict, report.store_blocked) == ("unexamined", None)
    assert report.blocked, "no write command may touch such a store"
    assert report.capacity.reserved.workers is None


@as_root
def test_root_judges_for_the_owner_and_says_so(place: Path) -> None:
    made.make_state(place, made.record())
    for path in (place, *place.iterdir()):
        os.chown(path, 4242, 4242)
    report = look(place)
    assert report.helper_uid == 4242
    assert report.store_blocked is False
    assert "owner_assumed" in codes(report)
    assert "dir_unsafe" in codes(look(place, helper_uid=0))


@as_root
def test_a_file_of_root_in_anothers_store_blocks(place: Path) -> None:
    """F-081: no relaxing for root, and the owner is shown."""
    made.make_state(place, made.record())
    os.chown(place, 4242, 4242)
    os.chown(place / "supervisor.lock", 4242, 4242)
    os.chown(place / "admission.conf", 4242, 4242)
    report = look(place)
    (found,) = [one for one in report.findings if one.code == "entry_not_private"]
    assert "uid 0" in found.message
    assert "4242" in found.message


@as_root
def test_the_mode_of_the_directory_is_judged_by_account(place: Path) -> None:
    made.make_state(place, mode=0o711)
    assert look(place).store_blocked is False
    for path in (place, *place.iterdir()):
        os.chown(path, 4242, 4242)
    assert "dir_unsafe" in codes(look(place))


def test_an_access_list_shows_as_a_group_bit(place: Path) -> None:
    """F-081: a list that grants a user raises the mask, which the mode shows."""
    made.make_state(place, made.record())
    entries = b"".join(
        tag.to_bytes(2, "little") + perm.to_bytes(2, "little") + who.to_bytes(4, "little")
        for tag, perm, who in (
            (1, 6, 2**32 - 1),
            (2, 4, 4242),
            (4, 0, 2**32 - 1),
            (16, 4, 2**32 - 1),
            (32, 0, 2**32 - 1),
        )
    )
    record = place / f"{LEASE}.json"
    try:
        os.setxattr(record, "system.posix_acl_access", (2).to_bytes(4, "little") + entries)
    except OSError as error:
        pytest.skip(f"not run: this file system keeps no access lists ({error})")
    assert stat.S_IMODE(record.stat().st_mode) == 0o640
    assert "entry_not_private" in codes(look(place))


def dead(point: Path) -> None:
    """Mount a file system whose server is gone: whatever is asked about it has no answer."""
    try:
        server = os.open("/dev/fuse", os.O_RDWR)
    except OSError as error:
        raise NotHereError(f"/dev/fuse: {error}") from error
    mount("fuse", point, f"fd={server},rootmode=40000,user_id=0,group_id=0", "none")
    os.close(server)
    with pytest.raises(OSError, match="not connected"):
        point.stat()


@pytest.mark.root
def test_a_dead_mount_under_a_foreign_name_hides_nothing(place: Path) -> None:
    """Section 3: anything else is ignored, whatever its type or mode."""
    (made.make_state(place, made.record()) / "mnt").mkdir()

    def act() -> StoreReport:
        dead(place / "mnt")
        return look_without_times(place)

    report = in_private_mounts(act)
    assert [view.lease for view in report.records] == [LEASE]
    assert report.store_blocked is False
    (entry,) = report.entries
    assert (entry.name, entry.kind, entry.mode, entry.size) == ("mnt", "unknown", None, None)
    assert entry.codes == ("entry_unknown",)


@pytest.mark.root
@pytest.mark.parametrize(
    "name", [f"{made.lease_uid(3)}.json", ".write-x", "supervisor.sock", "supervisor.lock"]
)
def test_a_dead_mount_under_a_name_that_the_helper_opens_is_a_finding_of_its_own(
    place: Path, name: str
) -> None:
    made.make_state(place, made.record())
    (place / name).unlink(missing_ok=True)
    (place / name).mkdir()

    def act() -> tuple[StoreReport, Ran]:
        dead(place / name)
        return look_without_times(place), run("lease", "inspect", LEASE, "--state-dir", place)

    report, inspected = in_private_mounts(act)
    assert [view.lease for view in report.records] == [LEASE]
    assert report.blocked
    found = [one for one in report.findings if one.code == "entry_unreadable"]
    assert [one.path for one in found] == [f"{place}/{name}"]
    assert "not connected" in found[0].message
    assert report.capacity.reserved.workers == (None if name.endswith(".json") else 1)
    assert inspected.rc == 3


@pytest.mark.root
def test_a_snapshot_pool_that_cannot_be_examined_has_no_totals(place: Path) -> None:
    (made.make_state(place, made.record()) / "staging").mkdir()

    def act() -> StoreReport:
        dead(place / "staging")
        return look_without_times(place)

    report = in_private_mounts(act)
    assert report.store_blocked is False
    assert codes(report) == {"staging_bad_entry", "tombstone", "origin_absent"}
    assert report.capacity.staging is None


def look_without_times(place: Path) -> StoreReport:
    return judge(read_store(str(place), now_ns=place.stat().st_mtime_ns))
