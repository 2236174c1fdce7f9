"""`schema list`, `show` and `validate`: shipped schemas, every error with its place, hostile files."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from symbi_recover.read import library, validation
from tests.support import evidence
from tests.support.cli import run, run_terminal
from tests.write.worlds import operator_home, recorder

JOURNAL = evidence.journal(evidence.checks("audit inspect")[0])


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    path.write_bytes(JOURNAL)
    return path


def validated(name: str, path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run("schema", "validate", name, path).out)
    return document


def test_the_list_names_every_shipped_schema() -> None:
    listed = json.loads(run("schema", "list").out)
    assert listed["schema"] == "symbi-recover/schema-list.v1"
    names = {entry["name"] for entry in listed["schemas"]}
    assert {"journal-record", "claim-record", "recovery-report", "audit-verify", "failure"} <= names
    files = {
        f"{kind}/{name}"
        for kind in ("evidence", "output")
        for name in os.listdir(Path(library.folder("schemas"), kind))
    }
    assert {entry["file"] for entry in listed["schemas"]} == {
        name for name in files if name.endswith(".json")
    }


def test_the_list_for_people_ends_with_the_next_step() -> None:
    ran = run("schema", "list", "--format", "text", "-v")
    assert ran.rc == 0
    assert "evidence/journal-record.v1.schema.json" in ran.text
    assert ran.text.splitlines()[-1].endswith("`symbi-recover schema show NAME` for one of them.")


@pytest.mark.parametrize("name", ["journal-record", "journal-record.v1", "journal-record.v1.schema.json"])
def test_show_prints_the_file_as_it_is_shipped(name: str) -> None:
    ran = run("schema", "show", name)
    shipped = Path(library.folder("schemas"), "evidence", "journal-record.v1.schema.json").read_bytes()
    assert (ran.rc, ran.out, ran.err) == (0, shipped, b"")


@pytest.mark.parametrize("name", ["jounal-record", "journal-record.v9", "../x", "", "x" * 10_000, "\x1b[2J"])
def test_an_unknown_schema_is_misuse_and_names_what_is_near(name: str) -> None:
    ran = run("schema", "show", name)
    assert (ran.rc, ran.out) == (64, b"")
    assert b"unknown_schema" in ran.err
    assert b"symbi-recover schema list" in ran.err
    assert b"\x1b" not in ran.err
    if name == "jounal-record":
        assert b"Did you mean journal-record" in ran.err


def test_a_real_journal_is_valid_line_by_line(journal: Path) -> None:
    ran = run("schema", "validate", "journal-record", journal)
    document = json.loads(ran.out)
    assert ran.rc == 0
    assert document["ok"] is True
    assert document["documents"] == JOURNAL.count(b"\n")
    assert document["errors"] == []
    assert document["not_checked"][0]["what"].startswith("signatures")


def test_every_error_is_reported_with_record_and_pointer(journal: Path) -> None:
    lines = JOURNAL.split(b"\n")
    lines[0] = (
        lines[0].replace(b'"iteration":0', b'"iteration":-1').replace(b'"sequence":0', b'"sequence":"a"')
    )
    lines[2] = b"not json"
    journal.write_bytes(b"\n".join(lines))
    ran = run("schema", "validate", "journal-record", journal)
    places = [(error["record"], error["pointer"]) for error in json.loads(ran.out)["errors"]]
    assert ran.rc == 1
    assert sorted(places) == [(0, "/payload/entry/iteration"), (0, "/payload/entry/sequence"), (2, "")]


def test_an_error_inside_alternatives_names_the_innermost_place(journal: Path) -> None:
    journal.write_bytes(JOURNAL.replace(b'"secs"', b'"sec"', 1))
    pointers = {error["pointer"] for error in validated("journal-record", journal)["errors"]}
    assert any(pointer.endswith("/Retry/base_delay") for pointer in pointers)


def test_pointers_are_escaped_as_the_standard_says(tmp_path: Path) -> None:
    assert validation.pointer(["a/b", "m~n", 0, ""]) == "/a~1b/m~0n/0/"


def test_bytes_after_the_last_line_feed_are_left_aside_and_said(journal: Path) -> None:
    journal.write_bytes(JOURNAL + b'{"payload":')
    document = validated("journal-record", journal)
    assert document["ok"] is True
    assert any(
        item["what"].startswith("11 bytes after the last line feed") for item in document["not_checked"]
    )


def test_a_file_without_any_line_is_not_valid(journal: Path) -> None:
    for data in (b"", b'{"payload":'):
        journal.write_bytes(data)
        ran = run("schema", "validate", "journal-record", journal)
        assert ran.rc == 1
        assert json.loads(ran.out)["errors"][0]["message"] == "there is no complete line"


def test_a_document_is_one_whole_file(tmp_path: Path) -> None:
    report = run("audit", "verify", tmp_path / "missing")
    path = tmp_path / "report.json"
    path.write_bytes(report.out)
    ran = run("schema", "validate", "audit-verify", path)
    assert (ran.rc, json.loads(ran.out)["errors"]) == (0, [])
    path.write_bytes(report.out + b"{}")
    assert run("schema", "validate", "audit-verify", path).rc == 1


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":1}' + bytes(3),
        b"\xff\xfe{}",
        b"\xef\xbb\xbf{}",
        b"[" * 100_000,
        b'{"a":1e999}',
        b'{"a":"\\ud800"}',
        b"NaN",
    ],
)
def test_what_is_not_strict_json_is_not_valid(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(data)
    ran = run("schema", "validate", "failure", path)
    assert ran.rc == 1
    (error,) = json.loads(ran.out)["errors"]
    assert error["message"].startswith("not JSON as the runtime reads it")


def test_hostile_text_is_escaped_for_people(tmp_path: Path) -> None:
    path = tmp_path / "x\x1b[2J\u202e.json"
    path.write_text(json.dumps({"\x1b]0;x\x07\u202e": 1}), encoding="utf-8")
    ran = run("schema", "validate", "lease-admission", path, "--format", "text")
    assert ran.rc == 1
    for character in ("\x1b", "\x07", "\u202e"):
        assert character not in ran.text


def test_errors_are_bounded_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"x\n" * 1500)
    document = validated("journal-record", path)
    assert len(document["errors"]) == validation.MOST_ERRORS == 1000
    assert document["more_errors"] == 500
    path.write_bytes(b'{"payload":"' + b"y" * 100_000 + b'"}\n')
    assert all(len(error["message"]) <= 401 for error in validated("journal-record", path)["errors"])


@pytest.mark.parametrize("kind", ["missing", "folder", "fifo", "link", "sparse"])
def test_what_cannot_be_examined_is_exit_3_and_says_why(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(tmp_path)
    elif kind == "sparse":
        path.touch()
        os.truncate(path, (64 << 20) + 1)
    ran = run("schema", "validate", "journal-record", path)
    assert ran.rc == 3
    assert json.loads(ran.out)["ok"] is False
    assert b"Traceback" not in ran.err


def test_people_on_a_terminal_see_the_verdict_first_and_the_next_step_last(journal: Path) -> None:
    lines = run_terminal("schema", "validate", "journal-record", journal).text.splitlines()
    assert "VALID" in lines[0]
    assert lines[-1].startswith("Verdict 0, valid. Next: `symbi-recover audit verify`")
    journal.write_bytes(b"x\n")
    ran = run("schema", "validate", "journal-record", journal, "--format", "text")
    assert ran.rc == 1
    assert ran.text.startswith("NOT VALID")
    assert "record 0, the document: not JSON" in ran.text


def test_what_these_commands_print_satisfies_its_schema(journal: Path, tmp_path: Path) -> None:
    printed = {
        "schema-list": run("schema", "list"),
        "schema-validate": run("schema", "validate", "journal-record", journal),
        "explain": run("explain"),
        "failure": run("explain", "nothing_like_it", "--format", "json"),
    }
    for name, ran in printed.items():
        path = tmp_path / f"{name}.json"
        path.write_bytes(ran.out)
        assert validated(name, path)["errors"] == []


def test_a_ledger_is_checked_line_by_line_and_its_torn_fragments_are_left_aside(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    recorder(home).begin("lease reconcile", {}, "sha256:00")
    path = home / "ledger.jsonl"
    assert validated("ledger-record", path)["documents"] == 2
    path.write_bytes(path.read_bytes() + b'{"payl')
    recorder(home).begin("lease reconcile", {}, "sha256:01")
    document = validated("ledger-record", path)
    assert (document["ok"], document["documents"]) == (True, 4)
    assert "1 line marked as torn" in {item["what"] for item in document["not_checked"]}
    path.write_bytes(path.read_bytes().replace(b'"uid":', b'"gid":', 1))
    assert validated("ledger-record", path)["ok"] is False


def test_every_document_that_names_its_schema_has_it_shipped() -> None:
    package = Path(library.__file__).parents[1]
    source = "\n".join(path.read_text() for path in package.rglob("*.py"))
    named = set(re.findall(r'"symbi-recover/([a-z-]+\.v[0-9]+)"', source))
    shipped = {f"{entry.name}.v{entry.version}" for entry in library.schemas()}
    lacking = {name for name in named if not {name, f"lease-{name}"} & shipped}
    assert {"trust-list.v1", "failure.v1"} <= named - lacking
    assert not lacking


def test_the_list_of_pinned_keys_satisfies_its_schema(tmp_path: Path) -> None:
    assert run("trust", "add", "03" * 32, "--file", tmp_path / "trust").rc == 0
    path = tmp_path / "list.json"
    path.write_bytes(run("trust", "list", "--file", tmp_path / "trust", "--format", "json").out)
    assert validated("trust-list", path)["ok"] is True
