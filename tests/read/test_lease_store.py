"""Lease stores: what blocks, what is a tombstone, what else lies there, and that looking changes nothing."""

import errno
import hashlib
import os
import tracemalloc
from pathlib import Path

import pytest

from symbi_recover.core.codes import CODES
from symbi_recover.core.codes.lease import BLOCKING, UNEXAMINED
from symbi_recover.core.lease_records import RECORD_LIMIT, SMALL_LIMIT
from symbi_recover.core.leases import StoreReport
from symbi_recover.read.verify.lease_judge import judge, one_lease
from tests.read.lease_stores import LEASE, codes, leases, look, snapshot_of
from tests.support.evidence import fingerprint
from tests.support.writer import lease as made
from tests.support.writer.project import put
from tests.support.writer.text import compact

SNAPSHOT = made.lease_uid(77)


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


def look_without(unreadable: Path) -> StoreReport:
    """The report where one file cannot be opened: root may open all, so the system's answer is put in its place."""
    real = os.open

    def refusing(path: str, flags: int, *rest: int, **more: int | None) -> int:
        if path == unreadable.name:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return real(path, flags, *rest, **more)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", refusing)
        return look(unreadable.parent)


def test_one_bad_record_hides_no_other(place: Path) -> None:
    """F-080: 20 good ones are shown, and each bad one with its reason."""
    made.make_state(place, *leases(20))
    bad = {made.lease_uid(number): number for number in range(100, 108)}
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
    unreadable = put(place / f"{ids[7]}.json", compact(made.record(ids[7])))
    report = look_without(unreadable)
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
        ids[7]: ("entry_unreadable",),
    }
    assert report.verdict == "blocked"
    assert report.capacity.reserved.workers is None
    assert report.capacity.reserved.memory_bytes is None
    assert report.capacity.unknown_resource_leases == 8


def test_a_bad_record_is_described_with_its_digest(place: Path) -> None:
    made.make_state(place)
    put(place / "notes.json", b"{}", 0o640)
    (entry,) = look(place).entries
    assert (entry.mode, entry.links, entry.size, entry.kind) == ("0640", 1, 2, "file")
    assert entry.sha256 == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert entry.codes == ("entry_not_uuid", "entry_not_private")


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("supervisor.sock", 5),
        ("supervisor.lock", 3),
        ("admission.conf", SMALL_LIMIT + 5000),
        ("notes.json", RECORD_LIMIT + 1),
        ("admission.conf", RECORD_LIMIT + 2),
        ("notes.json", RECORD_LIMIT + 2),
        (".write-x", RECORD_LIMIT + 2),
        ("supervisor.lock", RECORD_LIMIT + 2),
    ],
)
def test_a_bad_file_shows_the_digest_of_the_whole_file_or_says_that_it_has_none(
    place: Path, name: str, size: int
) -> None:
    """Section 14 (3); a digest of the first part would be that of no file."""
    made.make_state(place)
    data = bytes(size)
    put(place / name, data, 0o644)
    report = look(place)
    (entry,) = report.entries
    remarks = [one.why for one in report.not_checked if one.what == f"the SHA-256 of {name}"]
    if size <= RECORD_LIMIT + 1:
        assert (entry.sha256, remarks) == (hashlib.sha256(data).hexdigest(), [])
    else:
        assert (entry.sha256, remarks) == (None, ["larger than 131073 bytes"])


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


KIND_LIMITS = {
    f"{made.lease_uid(3)}.json": RECORD_LIMIT,
    ".write-x": RECORD_LIMIT,
    "admission.conf": SMALL_LIMIT,
    "staging.conf": SMALL_LIMIT,
    f"staging/{SNAPSHOT}/reservation": SMALL_LIMIT,
}
"""Every file that the store's reader opens, and what it may be at most."""
TOO_LARGE = {"record_too_large", "admission_invalid", "staging_bad_entry", "staging_uncharged_data"}


@pytest.mark.parametrize("size", ["limit", "limit + 1", "1 TiB"])
@pytest.mark.parametrize("name", KIND_LIMITS)
def test_no_file_of_a_store_is_read_beyond_its_limit(
    place: Path, name: str, size: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F-075: what is read and what is kept are bounded by the limit, whatever size the file says it has."""
    limit = KIND_LIMITS[name]
    made.stage(made.make_state(place, made.record(staging=[SNAPSHOT])), SNAPSHOT)
    huge = put(place / name, b" " * limit)
    with huge.open("r+b") as file:
        file.truncate({"limit": limit, "limit + 1": limit + 1, "1 TiB": 1 << 40}[size])
    asked: list[int] = []
    real = os.pread

    def counting(descriptor: int, count: int, offset: int) -> bytes:
        if Path(os.readlink(f"/proc/self/fd/{descriptor}")) == huge:
            asked.append(count)
        return real(descriptor, count, offset)

    monkeypatch.setattr(os, "pread", counting)
    tracemalloc.start()
    try:
        report = look(place)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(asked) <= limit + 1
    assert most < 4 * RECORD_LIMIT + 2_000_000
    assert len(report.records) == 1
    if size != "limit" and name != ".write-x":
        assert codes(report) & TOO_LARGE, codes(report)


def test_a_store_of_many_huge_files_is_read_up_to_a_bound(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F-075: one byte above the limit of each, and of no more of them than twice what the runtime would take."""
    monkeypatch.setattr("symbi_recover.read.verify.lease_store._MOST_READ", 20)
    made.make_state(place)
    for number in range(50):
        with put(place / f"{made.lease_uid(number)}.json", b"").open("r+b") as file:
            file.truncate(1 << 40)
    asked: list[int] = []
    real = os.pread

    def counting(descriptor: int, count: int, offset: int) -> bytes:
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith(".json"):
            asked.append(count)
        return real(descriptor, count, offset)

    monkeypatch.setattr(os, "pread", counting)
    report = look(place)
    assert (len(asked), sum(asked)) == (20, 20 * (RECORD_LIMIT + 1))
    assert {"record_too_large", "entry_unreadable"} <= codes(report)
