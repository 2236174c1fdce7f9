"""The snapshot pool: totals, holds, and damage that stops staging but never the helper."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from symbi_recover.core.leases import StoreReport
from symbi_recover.read.verify.lease_judge import judge
from symbi_recover.read.verify.lease_store import read_store
from tests.support.writer import lease as made
from tests.support.writer.project import put

SNAPSHOT = "d2a8f6d0-6a34-4c1e-9d0b-7f1c2b3a4d5e"
STAGING = (
    "staging_dangling_ref",
    "staging_uncharged_data",
    "staging_bad_entry",
    "staging_orphan",
    "staging_unavailable",
)


@pytest.fixture
def place() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="sl", dir="/tmp"))
    yield made.make_state(folder / "s", made.record(staging=[SNAPSHOT]))
    shutil.rmtree(folder)


def look(place: Path) -> StoreReport:
    return judge(read_store(str(place), now_ns=0))


def codes(report: StoreReport) -> list[str]:
    return [found.code for found in report.findings if found.code in STAGING]


def test_a_named_snapshot_is_counted(place: Path) -> None:
    made.stage(place, SNAPSHOT, 8192)
    report = look(place)
    staging = report.capacity.staging
    assert staging is not None
    assert codes(report) == []
    assert (staging.initialized, staging.reserved.snapshots, staging.reserved.reserved_bytes) == (
        True,
        1,
        8192,
    )
    assert staging.available.reserved_bytes == 1_073_741_824 - 8192
    assert staging.reservations[0].worker_leases == (made.LEASE,)
    assert staging.reservations[0].active_hold is False


def test_a_store_without_a_pool_has_an_empty_one(place: Path) -> None:
    (place / f"{made.LEASE}.json").unlink()
    staging = look(place).capacity.staging
    assert staging is not None
    assert (staging.initialized, staging.reserved.snapshots) == (False, 0)


def test_a_missing_snapshot_is_a_dangling_reference(place: Path) -> None:
    report = look(place)
    assert codes(report) == ["staging_dangling_ref"]
    assert report.capacity.staging is None
    assert report.capacity.staging_error
    assert report.store_blocked is False


def test_a_live_holder_is_seen_without_a_lock_of_ours(place: Path) -> None:
    folder = made.stage(place, SNAPSHOT)
    orphan = made.stage(place, made.lease_uid(5))
    for held in (folder, orphan):
        with (held / "reservation").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            report = look(place)
            staging = report.capacity.staging
            assert staging is not None
            assert {one.id: one.active_hold for one in staging.reservations}[held.name] is True
            assert codes(report) == ([] if held is orphan else ["staging_orphan"])


def test_a_busy_pool_gives_no_totals(place: Path) -> None:
    made.stage(place, SNAPSHOT)
    with (place / "staging.lock").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        report = look(place)
    assert report.capacity.staging is None
    assert "held" in str(report.capacity.staging_error)


def test_data_without_its_reservation_is_damage(place: Path) -> None:
    (made.stage(place, SNAPSHOT) / "reservation").unlink()
    assert codes(look(place)) == ["staging_uncharged_data", "staging_dangling_ref"]


def test_an_interrupted_start_has_no_data_and_is_fine(place: Path) -> None:
    made.stage(place, SNAPSHOT, data=False)
    assert codes(look(place)) == []


@pytest.mark.parametrize(
    "damage", ["stray", "upper", "open", "beside", "lock", "conf", "id", "link", "nodata"]
)
def test_each_kind_of_damage_is_named_and_never_blocks(place: Path, damage: str) -> None:
    folder = made.stage(place, SNAPSHOT)
    pool = place / "staging"
    if damage == "stray":
        put(pool / "x", b"y")
    elif damage == "upper":
        (pool / made.lease_uid(7).upper()).mkdir(mode=0o700)
    elif damage == "open":
        folder.chmod(0o750)
    elif damage == "beside":
        put(folder / "notes", b"x")
    elif damage == "lock":
        (place / "staging.lock").unlink()
    elif damage == "conf":
        put(place / "staging.conf", b'{"max_snapshots":0,"reserved_bytes":1}')
    elif damage == "id":
        put(folder / "reservation", b'{"id":"%s","reserved_bytes":1}' % made.lease_uid(1).encode())
        shutil.rmtree(folder / "data")
    elif damage == "link":
        (pool / made.lease_uid(8)).symlink_to(folder)
    else:
        (pool / made.lease_uid(9)).mkdir(mode=0o700)
    report = look(place)
    assert "staging_bad_entry" in codes(report)
    assert report.capacity.staging is None
    assert report.store_blocked is False
    assert report.verdict == "attention"


def test_a_full_pool_says_so(place: Path) -> None:
    made.stage(place, SNAPSHOT, 1_073_741_824)
    staging = look(place).capacity.staging
    assert staging is not None
    assert staging.admission_blocked
    assert staging.available.reserved_bytes == 0


def test_a_crowded_pool_is_cut_off(place: Path) -> None:
    made.stage(place, SNAPSHOT)
    for number in range(513):
        (place / "staging" / str(number)).mkdir()
    report = look(place)
    assert report.capacity.staging is None
    assert any("more than 512" in found.message for found in report.findings)


def test_a_managed_host_has_no_staging_view(place: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("not run: only a root helper tolerates mode 0711")
    made.stage(place, SNAPSHOT)
    place.chmod(0o711)
    report = look(place)
    assert codes(report) == ["staging_unavailable"]
    assert report.store_blocked is False
