"""What the records of a lease store are charged with, and what is left."""

from pathlib import Path

from tests.read.lease_stores import codes, leases, look
from tests.support.writer import lease as made
from tests.support.writer.project import put


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
