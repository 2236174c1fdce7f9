"""The shipped evidence is put in place exactly, shared, and cleared away."""

import multiprocessing
import os
import stat
from pathlib import Path

import pytest

from tests.support import evidence


def test_an_unpacked_copy_equals_the_archive(evidence_copy: Path) -> None:
    assert evidence.difference(evidence_copy) is None


def test_evidence_lies_where_its_claims_say(evidence_place: Path) -> None:
    assert evidence_place == Path("/var/tmp/symbi-evidence")
    scenario = evidence.scenarios()["clean-run"]
    assert (evidence_place / scenario.journal).read_bytes() == evidence.journal(scenario)


def test_modes_do_not_depend_on_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        root = evidence.unpack(tmp_path / "e")
    finally:
        os.umask(before)
    assert stat.S_IMODE((root / "bin/docker-hang").stat().st_mode) == 0o755
    assert evidence.difference(root) is None


@pytest.mark.parametrize("change", ["bytes", "mode", "extra", "missing", "link"])
def test_a_changed_copy_is_noticed(own_evidence: Path, change: str) -> None:
    target = own_evidence / evidence.scenarios()["clean-run"].journal
    if change == "bytes":
        data = target.read_bytes()
        target.write_bytes(data[:-2] + b" \n")
    elif change == "mode":
        target.chmod(0o640)
    elif change == "extra":
        (own_evidence / "leases" / "extra").touch()
    elif change == "missing":
        target.unlink()
    else:
        os.link(target, own_evidence.parent / "second-name")
    assert evidence.difference(own_evidence) is not None


def test_a_held_place_is_gone_afterwards(tmp_path: Path) -> None:
    place = tmp_path / "place"
    with evidence.hold_place(place):
        assert evidence.difference(place) is None
    assert list(tmp_path.iterdir()) == []


def test_foreign_content_at_the_place_is_refused_and_kept(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "mine").write_text("keep")
    with pytest.raises(evidence.MisplacedEvidenceError, match="move it away"), evidence.hold_place(place):
        pass
    assert (place / "mine").read_text() == "keep"
    assert list(tmp_path.iterdir()) == [place]


def test_a_symlink_at_the_place_is_refused(own_evidence: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.symlink_to(own_evidence)
    with pytest.raises(evidence.MisplacedEvidenceError, match="move it away"), evidence.hold_place(place):
        pass


def test_the_first_to_leave_keeps_the_place_for_the_others(tmp_path: Path) -> None:
    place = tmp_path / "place"
    with evidence.hold_place(place):
        with evidence.hold_place(place):
            pass
        assert evidence.difference(place) is None
    assert not place.exists()


def _come_and_go(place: str, times: int) -> None:
    for _ in range(times):
        with evidence.hold_place(Path(place)):
            if evidence.difference(Path(place)) is not None:
                raise SystemExit(1)


def test_processes_that_come_and_go_never_see_half_a_copy(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_come_and_go, args=(str(tmp_path / "place"), 4)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=120)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert list(tmp_path.iterdir()) == []


def test_a_fingerprint_sees_a_touch(own_evidence: Path) -> None:
    before = evidence.fingerprint(own_evidence)
    assert evidence.fingerprint(own_evidence) == before
    target = own_evidence / evidence.scenarios()["clean-run"].journal
    os.utime(target, ns=(1, 1))
    assert evidence.fingerprint(own_evidence) != before


def test_every_answer_names_evidence_that_is_shipped() -> None:
    answers = evidence.checks()
    assert len(answers) == 125
    assert {check.command for check in answers} == {
        "audit inspect",
        "invocation inspect",
        "invocation file-inspect",
    }
    for check in evidence.checks("audit inspect"):
        assert check.journal in evidence.members()
