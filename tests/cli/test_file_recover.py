"""`invocation file-recover` from the outside: the plan, the runtime's document, and what is said besides."""

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest

from symbi_recover.core.acts import RecoveredPublication
from symbi_recover.core.plan import Plan
from tests.support.cli import Ran, run_process
from tests.support.mounts import fill, in_private_mounts, mount
from tests.support.writer.project import put
from tests.support.writer.publication import Publication
from tests.write.worlds import assess, command, finish, nothing_changes, operator_home, publishing

PREFIX = "Invocation inspection/reconciliation failed: "


def recover(
    publication: Publication, *more: str | Path, home: Path | None = None, consent: bool = True
) -> Ran:
    env = {} if home is None else {"SYMBI_RECOVER_HOME": str(home)}
    words = ["--publication", publication.id, *more]
    if consent:
        words += ["--snapshot-hash", publication.invocation.snapshot_hash()]
    return command("file-recover", publication.invocation, *words, env=env)


def test_stdout_is_the_runtimes_document(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    ran = recover(publication)
    payload = json.loads(publication.receipt_path.read_bytes())["payload"]
    expected = {
        "status": "file_publication_recovered",
        "recovery": payload,
        "tool_repeated": False,
        "invocation_completed": False,
    }
    assert ran.rc == 0
    assert ran.out.decode() == json.dumps(expected, ensure_ascii=False, indent=2) + "\n"
    jsonschema.validate(json.loads(ran.out), msgspec.json.schema(RecoveredPublication))


def test_what_happened_is_said_and_is_not_the_same_each_time(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    assert recover(publication).first_error_line.startswith("the file was given its final name")
    assert recover(publication).first_error_line.startswith("the receipt was there already")
    other = tmp_path / "other"
    other.mkdir()
    acknowledged = recover(publishing(other, publish=True))
    assert acknowledged.first_error_line.startswith("the file was in place already")


def test_without_the_hash_the_plan_is_printed_and_nothing_touched(tmp_path: Path) -> None:
    publication, home = publishing(tmp_path), operator_home(tmp_path)
    with nothing_changes(tmp_path):
        ran = recover(publication, home=home, consent=False)
    plan = json.loads(ran.out)
    assert ran.rc == 2
    assert plan["evidence"] == publication.invocation.snapshot_hash()
    assert plan["missing"] == []
    assert plan["consent"].endswith(f"--snapshot-hash {publication.invocation.snapshot_hash()}")
    jsonschema.validate(plan, msgspec.json.schema(Plan))


def test_a_plan_calls_the_hash_as_its_option_does_and_lines_its_labels_up(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    first, *rows = recover(publication, "--format", "text", consent=False).text.splitlines()
    assert first.startswith("Plan for ")
    (row,) = [row for row in rows if row.strip().startswith("snapshot hash:")]
    start = row.index(publication.invocation.snapshot_hash())
    assert all(row[start - 1] == " " and row[start] != " " for row in rows), rows


def test_a_hash_that_is_none_has_the_runtimes_words_and_is_told_from_a_stale_one(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    for given, said in (
        ("5657", "'5657' is not the hash of any evidence"),
        ("sha256:" + "0" * 64, "reviewed was"),
    ):
        ran = recover(publication, "--snapshot-hash", given, consent=False)
        assert ran.rc == 1
        assert ran.first_error_line == PREFIX + "invocation evidence changed since review"
        assert said in ran.err.decode()


def test_a_plan_makes_no_lock_file(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    publication.invocation.project.store_lock.unlink()
    recover(publication, consent=False)
    assert not publication.invocation.project.store_lock.exists()


def test_the_command_of_the_plan_carries_it_out(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    plan = json.loads(recover(publication, consent=False).out)
    import shlex

    words = shlex.split(plan["consent"])
    assert words[0] == "symbi-recover"
    ran = run_process(*words[1:], env={"SYMBI_RECOVER_HOME": str(tmp_path / "nobody")})
    assert ran.rc == 0
    assert publication.target.exists()


@pytest.mark.parametrize("kind", ["conflict", "missing", "resolved"])
def test_a_plan_says_what_stands_against_it(kind: str, tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    if kind == "conflict":
        put(publication.target, b"theirs")
    elif kind == "missing":
        publication.candidate.unlink()
    else:
        assess(publication.invocation)
    ran = recover(publication, consent=False)
    plan = json.loads(ran.out)
    assert ran.rc == 2
    assert any(kind in text for text in plan["missing"]), plan
    assert plan["consent"] is None


def test_a_plan_for_what_was_recovered_before_says_so(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    finish(publication)
    plan = json.loads(recover(publication, consent=False).out)
    assert plan["steps"] == ["nothing: there is a receipt, which would be shown again"]


def test_a_candidate_left_aside_is_named_by_plan_and_inspection(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    aside = publication.parent / f".symbi-recover-{publication.id}"
    aside.mkdir(mode=0o700)
    publication.candidate.rename(aside / "candidate")
    plan = recover(publication, "--format", "text", consent=False)
    assert str(aside) in plan.text
    inspected = command("file-inspect", publication.invocation, "--publication", publication.id)
    assert "publication_held" in inspected.err.decode()
    assert recover(publication).rc == 0


def test_refusals_have_the_runtimes_words_and_a_next_step(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    put(publication.target, b"theirs")
    ran = recover(publication)
    assert ran.rc == 1
    assert ran.out == b""
    assert ran.first_error_line == PREFIX + "publication candidate is missing or conflicts; no file changed"
    assert "next:" in ran.err.decode()


def test_the_ledger_is_written_or_its_absence_said(tmp_path: Path) -> None:
    publication, home = publishing(tmp_path), operator_home(tmp_path)
    assert "--no-ledger was given" in recover(publication, "--no-ledger", home=home).err.decode()
    assert not (home / "ledger.jsonl").exists()
    assert "as act" in recover(publication, home=home).err.decode()


def test_bad_ids_are_refused_before_the_store_is_opened(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    ran = command("file-recover", publication.invocation, "--publication", "x")
    assert (ran.rc, ran.first_error_line) == (1, PREFIX + "publication ID must be a UUID")


@pytest.mark.root
@pytest.mark.parametrize("options", ["size=64k,mode=700", "size=1m,nr_inodes=40,mode=700"])
def test_f088_a_really_full_disk_leaves_the_candidate_where_it_is(tmp_path: Path, options: str) -> None:
    """Under the whole project a tmpfs of 64 KiB, filled to the last byte; and one with room, but no free inode."""

    def act() -> None:
        place = tmp_path / "small"
        place.mkdir()
        mount("tmpfs", place, options)
        publication = publishing(place)
        room = fill(place / "filler")
        with nothing_changes(publication.parent):
            ran = recover(publication)
        assert ran.rc == 1
        assert ran.first_error_line == PREFIX + "No space left on device (os error 28)"
        assert not list(publication.invocation.project.invocations.glob(".tmp*"))
        room()
        assert recover(publication).rc == 0

    in_private_mounts(act)
