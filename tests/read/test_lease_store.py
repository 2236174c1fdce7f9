"""Lease stores: what blocks, what is a tombstone, what is charged, and that looking changes nothing."""

import errno
import os
import shutil
import socket
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from symbi_recover.core.codes import CODES
from symbi_recover.core.codes.lease import BLOCKING, UNEXAMINED
from symbi_recover.core.errors import UnexaminedError
from symbi_recover.core.leases import Helper, StoreReport
from symbi_recover.read.verify.lease_judge import judge, one_lease
from symbi_recover.read.verify.lease_store import StoreSnapshot, read_store
from tests.support.evidence import fingerprint
from tests.support.helper_double import helper_double
from tests.support.writer import lease as made
from tests.support.writer.project import put
from tests.support.writer.text import compact

SECOND = 1_000_000_000
LEASE = made.LEASE
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="not run: changing owners needs root")


@pytest.fixture
def place() -> Iterator[Path]:
    """A state directory's path, short enough for a socket; nothing is there yet."""
    folder = Path(tempfile.mkdtemp(prefix="sl", dir="/tmp"))
    yield folder / "s"
    shutil.rmtree(folder)


def snapshot_of(place: Path, now_ns: int | None = None) -> StoreSnapshot:
    newest = max(path.lstat().st_mtime_ns for path in [place, *place.iterdir()])
    return read_store(str(place), now_ns=newest if now_ns is None else now_ns)


def look(place: Path, now_ns: int | None = None, **options: Any) -> StoreReport:
    return judge(snapshot_of(place, now_ns), **options)


def codes(report: StoreReport) -> set[str]:
    return {found.code for found in report.findings}


def leases(count: int) -> list[dict[str, Any]]:
    return [made.record(made.lease_uid(number), made.uncertain()) for number in range(count)]


def test_blocking_codes_are_registered_as_refusals() -> None:
    assert all(CODES[code].severity == "refused" for code in BLOCKING | UNEXAMINED)


def test_an_empty_store_is_sound(place: Path) -> None:
    report = look(made.make_state(place))
    assert (report.verdict, report.store_blocked, report.findings) == ("sound", False, ())
    assert report.capacity.reserved.workers == 0


def test_one_of_each_phase(place: Path) -> None:
    records = [
        made.record(made.lease_uid(number), state)
        for number, state in enumerate(made.states(made.lease_uid(6)).values())
    ]
    report = look(made.make_state(place, *records))
    assert sorted(view.phase for view in report.records) == sorted(made.states())
    assert {view.phase for view in report.tombstones} == {"creating", "uncertain"}
    assert report.capacity.reserved.workers == 7
    assert {(w.backend, w.phase) for w in report.capacity.workers} >= {
        ("firecracker", "created"),
        ("landlock", "creating"),
        ("container", "uncertain"),
    }
    assert set(report.unsupervised) == {view.lease for view in report.records}


def test_one_bad_record_hides_no_other(place: Path) -> None:
    """F-080: 20 good ones are shown, and each bad one with its reason."""
    made.make_state(place, *leases(20))
    bad = {made.lease_uid(number): number for number in range(100, 107)}
    ids = list(bad)
    good = compact(made.record())
    put(place / f"{ids[0]}.json", compact(made.record(ids[0])), 0o644)
    put(place / f"{ids[1]}.json", compact(made.record(ids[1])))
    os.link(place / f"{ids[1]}.json", place / "second-name")
    (place / f"{ids[2]}.json").symlink_to("/dev/zero")
    put(place / f"{ids[3].upper()}.json", compact(made.record(ids[3])))
    put(place / f"{ids[4]}.json", b" " * 200_000)
    put(place / f"{ids[5]}.json", good)
    os.mkfifo(place / f"{ids[6]}.json")
    report = look(place)
    assert len(report.records) == 20
    found = {
        entry.lease or entry.name: entry.codes
        for entry in report.entries
        if entry.codes != ("entry_unknown",)
    }
    assert found == {
        ids[0]: ("entry_not_private",),
        ids[1]: ("entry_not_private",),
        ids[2]: ("entry_is_link",),
        f"{ids[3].upper()}.json": ("entry_noncanonical_name",),
        ids[4]: ("record_too_large",),
        ids[5]: ("record_identity", "record_identity")[:1],
        ids[6]: ("entry_hangs_helper",),
    }
    assert report.verdict == "blocked"
    assert report.capacity.reserved.workers is None
    assert report.capacity.reserved.memory_bytes is None
    assert report.capacity.unknown_resource_leases == 7


def test_a_bad_record_is_described_with_its_digest(place: Path) -> None:
    made.make_state(place)
    put(place / "notes.json", b"{}", 0o640)
    (entry,) = look(place).entries
    assert (entry.mode, entry.links, entry.size, entry.kind) == ("0640", 1, 2, "file")
    assert entry.sha256 == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert entry.codes == ("entry_not_uuid", "entry_not_private")


@pytest.mark.parametrize(("count", "blocked"), [(512, False), (513, True)])
def test_the_513th_record_blocks(place: Path, count: int, blocked: bool) -> None:
    report = look(made.make_state(place, *leases(count)))
    assert report.blocked is blocked
    assert ("too_many_records" in codes(report)) is blocked
    assert len(report.records) == count


def test_stray_files_are_remarks_and_stay(place: Path) -> None:
    """F-079."""
    made.make_state(place, made.record())
    for name in ("x.json~", ".x.json.swp", ".nfs0001", ".DS_Store", "x.JSON", "ledger.jsonl"):
        put(place / name, b"x", 0o644)
    (place / "folder").mkdir()
    before = fingerprint(place)
    report = look(place)
    assert fingerprint(place) == before
    assert [entry.codes for entry in report.entries] == [("entry_unknown",)] * 7
    assert report.store_blocked is False
    assert len(report.records) == 1


def test_names_that_are_not_text_are_skipped_and_shown(place: Path) -> None:
    made.make_state(place)
    put(Path(os.fsdecode(os.fsencode(place) + b"/\xff\xfe.json")), b"x")
    report = look(place)
    assert report.store_blocked is False
    assert report.entries[0].name == "\\xff\\xfe.json"


def test_leftovers_are_reported_and_secrets_never_read(place: Path) -> None:
    made.make_state(place, made.record())
    made.write_leftover(place, made.record(state=made.created()))
    secret = made.write_environment(place, b"TOKEN=s3cr3t\n")
    report = look(place)
    assert {"temp_leftover", "environment_leftover"} <= codes(report)
    by_name = {entry.name: entry for entry in report.entries}
    assert by_name[secret.name].sha256 is None
    assert by_name[secret.name].size == 13
    assert "s3cr3t" not in repr(report)
    (left,) = [found for found in report.findings if found.code == "temp_leftover"]
    assert LEASE in left.message
    assert "phase created" in left.message


def test_temporaries_that_end_in_json_are_no_records(place: Path) -> None:
    made.make_state(place)
    put(place / ".environment-x.json", b"A=B")
    assert look(place).store_blocked is False
    (place / ".environment-x.json").chmod(0o640)
    assert codes(look(place)) == {"temp_unsafe"}


def test_a_socket_of_a_dead_helper_is_only_noted(place: Path) -> None:
    made.make_state(place)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place / "supervisor.sock"))
        report = look(place)
    assert codes(report) == {"stale_socket"}
    assert report.verdict == "sound"


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


def test_a_record_replaced_while_read_is_read_anew(place: Path) -> None:
    made.make_state(place, made.record())
    target = place / f"{LEASE}.json"
    real = os.pread
    replaced: list[bool] = []

    def replacing(descriptor: int, count: int, offset: int) -> bytes:
        data = real(descriptor, count, offset)
        if not replaced and os.readlink(f"/proc/self/fd/{descriptor}") == str(target):
            replaced.append(True)
            put(place / ".write-new", compact(made.record(state=made.uncertain())))
            (place / ".write-new").rename(target)
        return data

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "pread", replacing)
        (view,) = look(place).records
    assert replaced
    assert view.phase == "uncertain"


def test_a_record_that_never_stands_still_is_unstable_not_absent(place: Path) -> None:
    made.make_state(place, made.record())
    target = place / f"{LEASE}.json"
    real = os.pread

    def replacing(descriptor: int, count: int, offset: int) -> bytes:
        data = real(descriptor, count, offset)
        if os.readlink(f"/proc/self/fd/{descriptor}") == str(target):
            put(place / ".write-new", compact(made.record()))
            (place / ".write-new").rename(target)
        return data

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "pread", replacing)
        report = look(place)
    assert "record_unstable" in codes(report)
    assert (report.verdict, report.capacity.reserved.workers) == ("unexamined", None)


def test_a_record_removed_while_listed_is_skipped(place: Path) -> None:
    made.make_state(place, made.record())
    real = os.open

    def removing(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if path == f"{LEASE}.json":
            (place / path).unlink(missing_ok=True)
        return real(path, flags, *rest, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", removing)
        report = judge(read_store(str(place), now_ns=0))
    assert (report.records, report.verdict) == ((), "sound")


@pytest.mark.parametrize("kind", ["link", "other", "folder"])
def test_swapping_entries_never_mixes_two_files(place: Path, kind: str) -> None:
    """F-073: whatever the swapper does, each view is about one file that was opened once."""
    made.make_state(place, made.record())
    target, spare = place / f"{LEASE}.json", place.parent / "spare"
    if kind == "link":
        spare.symlink_to("/dev/zero")
    elif kind == "folder":
        spare.mkdir()
    else:
        put(spare, compact(made.record(state=made.uncertain())))
    stop = threading.Event()

    def swap() -> None:
        held = place.parent / "held"
        while not stop.is_set():
            target.rename(held)
            spare.rename(target)
            target.rename(spare)
            held.rename(target)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for _ in range(100):
            for view in judge(read_store(str(place), now_ns=0)).records:
                assert view.phase == ("creating" if view.size == len(compact(made.record())) else "uncertain")
    finally:
        stop.set()
        swapper.join()


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


def test_charges_are_added_up_as_the_helper_does(place: Path) -> None:
    made.make_state(
        place,
        *leases(3),
        admission={"max_workers": 3, "memory_bytes": 10**12, "cpu_nanos": 10**12},
    )
    capacity = look(place).capacity
    assert capacity.reserved.workers == 3
    assert capacity.reserved.memory_bytes == 3 * 536_870_912
    assert capacity.available.workers == 0
    assert capacity.admission_blocked


def test_a_record_without_charge_makes_the_sums_unknown(place: Path) -> None:
    made.make_state(place, *leases(2), made.record(resources=None))
    report = look(place)
    assert "legacy_resources" in codes(report)
    assert report.capacity.reserved.workers == 3
    assert report.capacity.reserved.memory_bytes is None
    assert report.capacity.available.cpu_nanos is None
    assert report.capacity.unknown_resource_leases == 1


def test_sums_beyond_64_bits_are_an_error_not_a_number(place: Path) -> None:
    huge = {"memory_bytes": 2**64 - 1, "cpu_nanos": 1}
    made.make_state(place, *(made.record(made.lease_uid(n), resources=huge) for n in range(2)))
    report = look(place)
    assert "admission_overflow" in codes(report)
    assert report.capacity.reserved.memory_bytes is None


def test_without_limits_the_defaults_hold_and_bad_limits_are_unknown(place: Path) -> None:
    made.make_state(place, admission=None)
    limits = look(place).capacity.limits
    assert limits is not None
    assert limits.max_workers == 16
    put(place / "admission.conf", b"{}")
    report = look(place)
    assert codes(report) == {"admission_invalid"}
    assert report.capacity.limits is None
    assert report.capacity.available.workers is None


def test_two_vms_with_one_account_are_remarked(place: Path) -> None:
    jail = {"uid": 70_000, "cgroup_parent": "symbi.slice"}
    records = [made.record(made.lease_uid(n), made.vm_creating(), jail=jail) for n in range(2)]
    assert "jail_uid_shared" in codes(look(made.make_state(place, *records)))


def test_folders_of_vms_without_a_record_are_litter(place: Path) -> None:
    made.make_state(place)
    (place / f"vm-{LEASE}").mkdir()
    (place / "jails" / "firecracker" / LEASE / "root").mkdir(parents=True)
    report = look(place)
    assert codes(report) == {"litter_vm_dir", "litter_jail"}
    assert report.verdict == "sound"


def test_one_lease_of_a_blocked_store_says_so(place: Path) -> None:
    made.make_state(place, made.record())
    put(place / "x.json", b"")
    report = look(place)
    part = one_lease(report, LEASE)
    assert part is not None
    assert (part.verdict, part.store_blocked) == ("blocked", True)
    assert part.view is not None
    assert one_lease(report, made.lease_uid(9)) is None


def test_a_bad_record_can_be_inspected_by_its_name(place: Path) -> None:
    made.make_state(place)
    put(place / f"{LEASE}.json", b"{}")
    part = one_lease(look(place), LEASE)
    assert part is not None
    assert part.view is None
    assert part.entry is not None
    assert [found.code for found in part.findings] == ["record_schema"]


def test_the_same_snapshot_gives_the_same_report(place: Path) -> None:
    snapshot = snapshot_of(made.make_state(place, *leases(3)))
    assert judge(snapshot) == judge(snapshot)


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


def test_a_huge_sparse_file_is_refused_by_its_size(place: Path) -> None:
    """F-075."""
    made.make_state(place, made.record())
    for name in (f"{made.lease_uid(3)}.json", "admission.conf"):
        with (place / name).open("wb") as file:
            file.truncate(1 << 40)
        (place / name).chmod(0o600)
    report = look(place)
    assert {"record_too_large", "admission_invalid"} <= codes(report)
    assert len(report.records) == 1
