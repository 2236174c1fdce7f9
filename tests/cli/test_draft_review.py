"""`invocation draft-review`: exact hashes, nothing attested, nothing replaced."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from symbi_recover.core.acts import ReviewDraft
from symbi_recover.core.claims import Review
from tests.support.cli import Ran
from tests.support.writer.claim import Invocation
from tests.support.writer.project import put
from tests.write.worlds import command, interrupted, nothing_changes, publishing


def draft(invocation: Invocation, folder: Path, *more: str | Path, outcome: str = "no_effects") -> Ran:
    output = () if "--output" in more else ("--output", folder / "review.json")
    return command("draft-review", invocation, "--outcome", outcome, *output, *more)


def written(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "review.json").read_bytes())
    return found


def test_a_draft_holds_the_exact_hashes_and_attests_nothing(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    evidence = put(tmp_path / "workers.txt", b"none\n")
    with nothing_changes(invocation.project.root):
        ran = draft(invocation, tmp_path, "--evidence", evidence, "--rationale", "Looked.")
    assert ran.rc == 0, ran.err.decode()
    assert written(tmp_path) == {
        "snapshot_hash": invocation.snapshot_hash(),
        "outcome": "no_effects",
        "rationale": "Looked.",
        "evidence": [{"reference": str(evidence), "sha256": hashlib.sha256(b"none\n").hexdigest()}],
        "effects_stopped": False,
    }
    assert (tmp_path / "review.json").stat().st_mode & 0o777 == 0o600
    jsonschema.validate(written(tmp_path), msgspec.json.schema(Review))
    jsonschema.validate(json.loads(ran.out), msgspec.json.schema(ReviewDraft))


def test_a_draft_is_refused_until_it_is_completed_by_hand(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    draft(invocation, tmp_path, "--evidence", put(tmp_path / "e", b""), "--rationale", "Looked.")
    path = tmp_path / "review.json"
    ran = command("reconcile", invocation, "--review", path)
    assert ran.rc == 1
    assert "effects_stopped to true by hand" in ran.err.decode()
    path.write_text(path.read_text().replace('"effects_stopped": false', '"effects_stopped": true'))
    assert command("reconcile", invocation, "--review", path).rc == 0


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    ran = draft(invocation, tmp_path, "--format", "text")
    assert [line.split()[0] for line in ran.text.splitlines()].count("missing") == 3


def test_unknown_effects_are_listed_beside_it(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    ran = draft(publication.invocation, tmp_path)
    listed = (tmp_path / "review.effects.txt").read_text()
    assert ran.rc == 0
    assert "tool call write_report" in listed
    assert publication.id in listed
    assert publication.invocation.snapshot_hash() in listed
    assert any(publication.id in text for text in json.loads(ran.out)["warnings"])


def test_the_same_draft_again_changes_nothing(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    draft(publication.invocation, tmp_path)
    with nothing_changes(tmp_path):
        ran = draft(publication.invocation, tmp_path)
    assert ran.rc == 0
    assert json.loads(ran.out)["created"] is False


@pytest.mark.parametrize("name", ["review.json", "review.effects.txt"])
@pytest.mark.parametrize("kind", ["other bytes", "empty", "folder", "dangling link"])
def test_an_existing_file_is_never_replaced(name: str, kind: str, tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    place = tmp_path / name
    if kind == "folder":
        place.mkdir()
    elif kind == "dangling link":
        place.symlink_to("nowhere")
    else:
        place.write_bytes(b"mine" if kind == "other bytes" else b"")
    with nothing_changes(tmp_path):
        ran = draft(publication.invocation, tmp_path)
    assert ran.rc == 1
    assert "review_exists" in ran.err.decode()


def test_a_completed_review_is_never_replaced_by_a_draft(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    draft(invocation, tmp_path)
    path = tmp_path / "review.json"
    path.write_text(path.read_text().replace("false", "true"))
    with nothing_changes(tmp_path):
        assert draft(invocation, tmp_path).rc == 1


@pytest.mark.parametrize("where", ["invocations", "governed"])
def test_a_draft_is_not_written_among_evidence(where: str, tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    with nothing_changes(invocation.project.root):
        ran = draft(invocation, tmp_path, "--output", invocation.project.state / where / "review.json")
    assert ran.rc == 1
    assert "review_among_evidence" in ran.err.decode()


LIMITS: dict[str, tuple[str, ...]] = {
    "rationale": ("--rationale", "x" * 8193),
    "evidence": ("--evidence", "e") * 33,
    "no such file": ("--evidence", "nowhere"),
    "a folder": ("--evidence", "."),
    "a device": ("--evidence", "/dev/zero"),
    "a long path": ("--evidence", "/" + "x" * 2100),
    "an odd outcome": ("--outcome", "fine"),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_every_limit_is_checked_with_a_clear_message(limit: str, tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    put(tmp_path / "e", b"")
    words = [str(tmp_path / "e") if word == "e" else word for word in LIMITS[limit]]
    if limit == "an odd outcome":
        ran = command("draft-review", invocation, *words)
    else:
        ran = draft(invocation, tmp_path, *words)
    assert ran.rc == {"no such file": 3, "a folder": 3, "a device": 3}.get(limit, ran.rc), ran
    assert ran.rc in (1, 3, 64)
    assert not ran.out or json.loads(ran.out)["ok"] is False
    assert "next:" in ran.err.decode()
    assert not (tmp_path / "review.json").exists()


def test_the_limits_themselves_are_allowed(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    file = str(put(tmp_path / "e", b""))
    ran = draft(invocation, tmp_path, "--rationale", "x" * 8192, *("--evidence", file) * 32)
    assert ran.rc == 0
    assert len(written(tmp_path)["evidence"]) == 32


def test_evidence_through_a_link_is_not_taken(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    (tmp_path / "link").symlink_to(put(tmp_path / "e", b""))
    assert draft(invocation, tmp_path, "--evidence", tmp_path / "link").rc == 3


def test_there_is_nothing_to_review_when_it_is_resolved(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    invocation.resolve()
    ran = draft(invocation, tmp_path)
    assert ran.rc == 1
    assert "nothing_to_review" in ran.err.decode()


def test_a_full_disk_leaves_no_part_of_a_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    invocation = interrupted(tmp_path)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with nothing_changes(tmp_path):
        ran = draft(invocation, tmp_path)
    assert ran.rc == 1
    assert "No space left on device" in ran.err.decode()
