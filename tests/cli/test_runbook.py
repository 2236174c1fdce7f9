"""`runbook list` and `runbook show`: everything that is shipped, as people read it, without a network."""

import json
import os
from pathlib import Path

import pytest

from symbi_recover.read import library
from tests.support.cli import run, run_terminal

FOLDER = Path(library.folder("runbooks"))
NAMES = sorted(path.stem for path in FOLDER.glob("*.md") if path.stem != "README")


def test_the_list_names_every_runbook_and_says_when_to_use_it() -> None:
    ran = run("runbook", "list")
    listed = json.loads(ran.out)
    assert (ran.rc, ran.err, listed["schema"]) == (0, b"", "symbi-recover/runbook-list.v1")
    assert [entry["name"] for entry in listed["runbooks"]] == NAMES
    for entry in listed["runbooks"]:
        assert entry["title"]
        assert "#" not in entry["title"]
        assert entry["about"].endswith(".")
        assert "\n" not in entry["about"]


def test_the_list_for_people_has_a_line_for_each_incident_and_the_next_step() -> None:
    ran = run_terminal("runbook", "list", env={"NO_COLOR": "1"})
    assert (ran.rc, ran.err) == (0, b"")
    assert "interrupted-run  A host died in the middle of a run\n" in ran.text
    assert ran.text.splitlines()[-1].endswith("`symbi-recover runbook show NAME` for one of them.")


@pytest.mark.parametrize("name", NAMES)
def test_show_prints_the_runbook_without_the_marks_of_its_tests(name: str) -> None:
    ran = run("runbook", "show", name)
    assert (ran.rc, ran.err) == (0, b"")
    assert "<!--" not in ran.text
    assert "\n\n\n" not in ran.text
    shipped = (FOLDER / f"{name}.md").read_text().splitlines()
    kept = [line for line in shipped if line and not line.startswith("<!--")]
    assert [line for line in ran.text.splitlines() if line] == kept


@pytest.mark.parametrize(
    "name", ["interupted-run", "README", "../README", "", "x" * 10_000, "\x1b[2J", "a\nb"]
)
def test_an_unknown_runbook_is_misuse_and_names_the_list(name: str) -> None:
    ran = run("runbook", "show", name)
    assert ran.rc == 64
    assert b"unknown_runbook" in ran.err
    assert b"symbi-recover runbook list" in ran.err
    assert b"\x1b" not in ran.err
    assert ran.err.count(b"\n") == 3


def test_a_slip_of_the_pen_is_answered_with_the_name_that_was_meant() -> None:
    assert b"Did you mean interrupted-run" in run("runbook", "show", "interupted-run").err


def test_runbooks_that_are_not_installed_are_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "_PACKAGE", str(tmp_path / "site" / "symbi_recover"))
    ran = run("runbook", "list")
    assert ran.rc == 3
    assert b"the runbooks that belong to this program are not installed" in ran.err


def test_a_wheel_brings_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "symbi_recover"
    shipped = package / "_shipped" / "runbooks"
    shipped.mkdir(parents=True)
    (shipped / "one.md").write_text("# One\n\nFor one\nthing.\n\n<!-- workspace: x -->\n\n## What you see\n")
    (shipped / "README.md").write_text("# Runbooks\n")
    (shipped / "notes.txt").write_text("no runbook")
    monkeypatch.setattr(library, "_PACKAGE", os.fspath(package))
    (entry,) = json.loads(run("runbook", "list").out)["runbooks"]
    assert entry == {"name": "one", "title": "One", "about": "For one thing."}
    assert run("runbook", "show", "one").text == "# One\n\nFor one\nthing.\n\n## What you see\n"
