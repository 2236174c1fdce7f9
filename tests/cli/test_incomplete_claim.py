"""A claim that lacks a record: never taken for a sign that nothing ran, and the journal that shows otherwise is named."""

import json
from pathlib import Path

import pytest

from symbi_recover.core.codes import CODES
from tests.support.cli import run
from tests.support.writer.claim import Invocation, open_invocation
from tests.support.writer.events import tool_dispatch_started
from tests.support.writer.project import make_project, put
from tests.support.writer.text import uid
from tests.write.worlds import command

SENTENCE = (
    "Invocation inspection/reconciliation failed: "
    "reconciliation requires a complete claim identity and audit reference"
)


def damaged(folder: Path, *, length: int, start: bool = True) -> Invocation:
    invocation = open_invocation(make_project(folder / "p"), start=start)
    if start:
        invocation.journal.append(tool_dispatch_started())
    invocation.write()
    put(invocation.claim_path, invocation.records()[:length])
    return invocation


def first_record(invocation: Invocation) -> int:
    return invocation.records().index(b"\n") + 1


@pytest.mark.parametrize("verb", ["inspect", "draft-review"])
@pytest.mark.parametrize("length", [0, 200, 400])
def test_a_damaged_claim_beside_a_journal_names_the_journal_and_calls_nothing_safe(
    verb: str, length: int, tmp_path: Path
) -> None:
    invocation = damaged(tmp_path, length=length)
    more = ("--outcome", "failed", "--output", tmp_path / "r") if verb == "draft-review" else ()
    ran = command(verb, invocation, *more)
    said = ran.err.decode()
    assert ran.rc == 1
    assert "the run began" in said
    assert str(invocation.journal_path) in said
    assert "start the work" not in said
    if verb == "inspect":
        assert said.splitlines()[0] == SENTENCE


def test_a_claim_that_names_its_run_points_at_the_journal_even_without_a_record(tmp_path: Path) -> None:
    invocation = damaged(tmp_path, length=0, start=False)
    put(invocation.claim_path, invocation.records()[: first_record(invocation)])
    said = command("inspect", invocation).err.decode()
    assert f"its journal {invocation.journal_path} holds 0 bytes" in said
    assert "the run began" not in said


def test_without_a_journal_it_is_said_that_this_shows_nothing(tmp_path: Path) -> None:
    invocation = damaged(tmp_path, length=0)
    invocation.journal_path.unlink()
    put(invocation.journal_path.with_name(f"{uid('a', 1)}.{uid('r', 1)}.jsonl"), b"no record\n")
    assert "does not show that nothing ran" in command("inspect", invocation).err.decode()


def test_a_journal_of_another_invocation_is_not_taken_for_its_own(tmp_path: Path) -> None:
    invocation = damaged(tmp_path, length=0)
    invocation.journal_path.unlink()
    other = open_invocation(invocation.project, invocation_id=uid("id", 2), run_id=uid("run", 2)).write()
    said = command("inspect", invocation).err.decode()
    assert str(other.journal_path) not in said
    assert "does not show that nothing ran" in said


def test_the_list_names_the_journal_of_every_damaged_claim(tmp_path: Path) -> None:
    invocation = damaged(tmp_path, length=0)
    put(invocation.project.invocations / f"{'a' * 64}.jsonl", b"")
    found = json.loads(run("invocation", "list", "--project", invocation.project.root).out)["projects"][0][
        "invocations"
    ]
    messages = {row["file"]: row["findings"][0]["message"] for row in found}
    assert str(invocation.journal_path) in messages[invocation.claim_path.name]
    assert "does not show that nothing ran" in messages[f"{'a' * 64}.jsonl"]


def test_no_text_about_an_incomplete_claim_says_that_nothing_ran_or_that_work_may_be_repeated() -> None:
    code = CODES["claim_incomplete"]
    text = f"{code.meaning} {code.why} {code.next}".lower()
    for word in ("nothing was executed", "start the work", "new id"):
        assert word not in text
