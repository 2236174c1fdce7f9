"""The helper's own inspection: one question, one line, and silence is unknown, never empty."""

import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from symbi_recover.core.leases import CapacityReport, HelperAnswer, StoreReport
from symbi_recover.read.daemon import helper
from symbi_recover.read.daemon.helper import HelperError, ask_capacity
from symbi_recover.read.verify.lease_capacity import examine_capacity
from symbi_recover.read.verify.lease_judge import judge
from symbi_recover.read.verify.lease_store import read_store
from tests.support.helper_double import OTHER_FINGERPRINT, Manner, capacity_snapshot, helper_double
from tests.support.writer import lease as made

UID = os.geteuid()
SNAPSHOT = made.lease_uid(50)


@pytest.fixture
def place() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="sl", dir="/tmp"))
    yield made.make_state(folder / "s", made.record(origin=made.origin(), staging=[SNAPSHOT]))
    shutil.rmtree(folder)


def answer_for(place: Path, **changed: Any) -> dict[str, Any]:
    """What a helper says of the store above."""
    record = made.record(origin=made.origin())
    charge = record["resources"]
    staging = {
        "initialized": True,
        "limits": made.STAGING,
        "reserved": {"snapshots": 1, "reserved_bytes": 8192},
        "available": {"snapshots": 15, "reserved_bytes": 1_073_741_824 - 8192},
        "admission_blocked": False,
        "reservations": [
            {
                "id": SNAPSHOT,
                "reserved_bytes": 8192,
                "active_hold": False,
                "worker_leases": [made.LEASE],
                "new": 1,
            }
        ],
    }
    worker = {"lease": made.LEASE, "backend": "container", "phase": "creating", "resources": charge}
    return capacity_snapshot(
        str(place),
        reserved={"workers": 1, **charge},
        available={"workers": 15, "memory_bytes": (8 << 30) - 536_870_912, "cpu_nanos": 7_000_000_000},
        workers=[{**worker, "origin": record["origin"], "unknown": True}],
        staging=staging,
        staging_error=None,
        future={"member": 1},
        **changed,
    )


def examine(place: Path, **options: Any) -> CapacityReport:
    def look() -> StoreReport:
        return judge(read_store(str(place), now_ns=time.time_ns()))

    def ask(report: StoreReport) -> HelperAnswer:
        return ask_capacity(str(place), uid=UID, seconds=1.0, **options)

    return examine_capacity(look, ask)


def test_files_and_helper_agree(place: Path) -> None:
    made.stage(place, SNAPSHOT, 8192)
    with helper_double(place, snapshot=answer_for(place)) as double:
        report = examine(place)
        double.assert_only_questions()
        double.wait_for_requests(1)
        assert [one["operation"] for one in double.requests] == ["inspect"]
    assert report.answered is not None
    assert report.differences == ()
    assert report.agree is True
    assert report.verdict == "sound"


def test_each_difference_is_named_and_explained(place: Path) -> None:
    made.stage(place, SNAPSHOT, 8192)
    other = {"max_workers": 4, "memory_bytes": 1 << 30, "cpu_nanos": 10**9}
    with helper_double(place, snapshot=answer_for(place, limits=other, unknown_resource_leases=2)):
        report = examine(place)
    assert report.agree is False
    assert report.verdict == "attention"
    text = "\n".join(report.differences)
    assert "only at its start" in text
    assert "unknown_resource_leases" in text


def test_leases_that_only_one_side_counts_are_named(place: Path) -> None:
    made.stage(place, SNAPSHOT, 8192)
    snapshot = answer_for(place)
    made.write_record(place, made.record(made.lease_uid(3)))
    snapshot["workers"][0]["lease"] = made.lease_uid(4)
    with helper_double(place, snapshot=snapshot):
        text = "\n".join(examine(place).differences)
    for lease in (made.LEASE, made.lease_uid(3), made.lease_uid(4)):
        assert lease in text


def test_without_a_helper_only_the_files_speak(place: Path) -> None:
    made.stage(place, SNAPSHOT)
    report = examine(place)
    assert (report.answered, report.agree, report.verdict) == (None, None, "sound")
    assert report.not_checked


@pytest.mark.parametrize(
    ("manner", "code"),
    [
        (Manner.CLOSE, "helper_silent"),
        (Manner.SILENT, "helper_silent"),
        (Manner.FAILED, "helper_failed"),
        (Manner.PARTIAL_LINE, "helper_silent"),
        (Manner.STALLED_LINE, "helper_silent"),
        (Manner.ENDLESS_LINE, "helper_malformed"),
        (Manner.OVERSIZED_LINE, "helper_malformed"),
        (Manner.NOT_JSON, "helper_malformed"),
        (Manner.TWO_LINES, "helper_malformed"),
    ],
)
def test_a_helper_without_an_answer_is_unknown_never_empty(place: Path, manner: Manner, code: str) -> None:
    begun = time.monotonic()
    with helper_double(place, snapshot=answer_for(place), manner=manner):
        report = examine(place)
    assert time.monotonic() - begun < 5
    assert [found.code for found in report.findings] == [code]
    assert (report.answered, report.agree, report.verdict) == (None, None, "unexamined")
    assert report.computed.reserved.workers == 1


def test_another_build_says_nothing_unless_its_fingerprint_is_given(place: Path) -> None:
    with helper_double(place, snapshot=answer_for(place), fingerprint=OTHER_FINGERPRINT):
        assert [found.code for found in examine(place).findings] == ["helper_silent"]
        assert examine(place, fingerprint=OTHER_FINGERPRINT).answered is not None


def test_a_helper_that_never_bound_its_socket_is_unreachable(place: Path) -> None:
    with helper_double(place, serve=False):
        assert [found.code for found in examine(place).findings] == ["helper_unreachable"]


def test_a_socket_of_another_account_is_not_asked(place: Path) -> None:
    with helper_double(place) as double:
        with pytest.raises(HelperError) as caught:
            ask_capacity(str(place), uid=UID + 1)
        assert double.frames == ()
    assert caught.value.code == "helper_foreign"


def test_answers_beyond_63_bits_are_read(place: Path) -> None:
    huge = {"max_workers": 16, "memory_bytes": 2**64 - 1, "cpu_nanos": 2**64 - 1}
    with helper_double(place, snapshot=answer_for(place, limits=huge)):
        answered = ask_capacity(str(place), uid=UID)
    assert answered.capacity.limits is not None
    assert answered.capacity.limits.memory_bytes == 2**64 - 1


def test_a_store_that_changes_while_asked_is_not_compared(place: Path) -> None:
    made.stage(place, SNAPSHOT, 8192)
    count = iter(range(100))

    def look() -> StoreReport:
        made.write_record(place, made.record(made.lease_uid(1000 + next(count))))
        return judge(read_store(str(place), now_ns=time.time_ns()))

    with helper_double(place, snapshot=answer_for(place)) as double:
        report = examine_capacity(look, lambda _: ask_capacity(str(place), uid=UID))
        assert len(double.frames) == 3
    assert [found.code for found in report.findings] == ["capacity_unsteady"]
    assert report.agree is None


def test_full_admission_is_said(place: Path) -> None:
    (place / "admission.conf").write_bytes(b'{"max_workers":1,"memory_bytes":5,"cpu_nanos":5}')
    report = examine(place)
    assert [found.code for found in report.findings] == ["admission_full"]
    assert report.verdict == "attention"


def test_the_request_is_what_the_protocol_asks_for(place: Path) -> None:
    with helper_double(place, snapshot=answer_for(place)) as double:
        ask_capacity(str(place), uid=UID)
        double.wait_for_requests(1)
        (request,) = double.requests
    assert request == {
        "operation": "inspect",
        "version": 7,
        "implementation": helper.FINGERPRINT,
        "lease": None,
    }


def test_the_connection_is_closed_when_nothing_comes(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place / "supervisor.sock"))
        listener.listen(1)
        with pytest.raises(HelperError) as caught:
            ask_capacity(str(place), uid=UID, seconds=0.2)
    assert caught.value.code == "helper_silent"
