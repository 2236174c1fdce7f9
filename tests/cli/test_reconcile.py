"""`invocation reconcile` from the outside: what is printed, what is said, and times from the given clock."""

import errno
import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from freezegun import freeze_time

from symbi_recover.core.acts import ReconciledInvocation
from symbi_recover.write import cron
from tests.support.cli import Ran, run_terminal
from tests.support.writer.claim import Invocation, review
from tests.support.writer.cron_store import cron_project
from tests.support.writer.project import make_project
from tests.write.worlds import command, interrupted, nothing_changes, operator_home, publishing

PREFIX = "Invocation inspection/reconciliation failed: "


def review_file(folder: Path, invocation: Invocation, **fields: Any) -> Path:
    path = folder / "review.json"
    path.write_text(json.dumps(review(invocation.snapshot_hash(), **fields)))
    return path


def reconcile(
    folder: Path, invocation: Invocation, *more: str | Path, home: Path | None = None, **fields: Any
) -> Ran:
    env = {} if home is None else {"SYMBI_RECOVER_HOME": str(home)}
    path = review_file(folder, invocation, **fields)
    return command("reconcile", invocation, "--review", path, *more, env=env)


def test_stdout_is_the_runtimes_document(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    ran = reconcile(tmp_path, invocation)
    payload = json.loads(invocation.receipt_path.read_bytes())["payload"]
    expected = {"status": "reconciled", "resolution": payload, "work_repeated": False}
    assert ran.rc == 0
    assert ran.out.decode() == json.dumps(expected, ensure_ascii=False, indent=2) + "\n"
    jsonschema.validate(json.loads(ran.out), msgspec.json.schema(ReconciledInvocation))


def test_the_time_is_that_of_the_clock_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from symbi_recover.cli.env import Environment
    from tests.write.worlds import NOW, clock

    real = Environment.of_process

    def told(cls: type[Environment]) -> Environment:
        del cls
        made = real()
        made.clock = clock()
        return made

    monkeypatch.setattr(Environment, "of_process", classmethod(told))
    ran = reconcile(tmp_path, interrupted(tmp_path))
    assert json.loads(ran.out)["resolution"]["recorded_at"] == NOW


def test_no_other_clock_is_read(tmp_path: Path) -> None:
    """With Python's clocks frozen far away, the receipt still has the time of the environment's own clock."""
    invocation = interrupted(tmp_path)
    with freeze_time("1999-01-01"):
        ran = reconcile(tmp_path, invocation)
    assert not json.loads(ran.out)["resolution"]["recorded_at"].startswith("1999")


def test_an_act_that_is_not_recorded_is_said_aloud(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    ran = reconcile(tmp_path, invocation, home=tmp_path / "nobody")
    assert ran.err.decode().splitlines()[0] == (
        "the receipt was published; not recorded in a ledger: the operator has no key; see `symbi-recover key init`"
    )
    assert not (tmp_path / "nobody").exists()


def test_leaving_the_ledger_out_is_said_aloud_even_when_quiet(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    ran = reconcile(tmp_path, interrupted(tmp_path), "--no-ledger", "--quiet", home=home)
    assert ran.rc == 0
    assert "not recorded in a ledger: --no-ledger was given" in ran.err.decode()
    assert not (home / "ledger.jsonl").exists()


def test_with_a_key_the_act_is_recorded_and_named(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    ran = reconcile(tmp_path, interrupted(tmp_path), home=home)
    (act,) = [
        json.loads(line)["payload"]["entry"]["event"]["Intended"]["act"]
        for line in (home / "ledger.jsonl").read_bytes().splitlines()
        if b"Intended" in line
    ]
    assert f"recorded in {home}/ledger.jsonl as act {act}" in ran.err.decode()


def test_an_unsafe_key_stops_the_command_before_anything_is_written(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    (home / "operator.key").chmod(0o644)
    invocation = interrupted(tmp_path)
    with nothing_changes(invocation.project.root):
        ran = reconcile(tmp_path, invocation, home=home)
    assert ran.rc == 1
    assert reconcile(tmp_path, invocation, "--no-ledger", home=home).rc == 0


def test_an_incomplete_review_gets_the_runtimes_line_and_then_the_plan(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    with nothing_changes(publication.invocation.project.root, publication.parent):
        ran = reconcile(tmp_path, publication.invocation, effects_stopped=False)
    lines = ran.err.decode().splitlines()
    assert ran.rc == 1
    assert ran.out == b""
    assert lines[0].startswith(PREFIX + "resolution requires stopped/settled effects")
    assert any("set effects_stopped to true by hand" in line for line in lines)
    assert any(publication.id in line for line in lines), "what the resolution makes impossible"
    assert lines[-1].split(":", 1)[0].strip() == "next"


def test_the_plan_names_effects_stopped_once_and_what_else_the_review_lacks(tmp_path: Path) -> None:
    ran = reconcile(tmp_path, interrupted(tmp_path), effects_stopped=False, rationale=" ")
    missing = [" ".join(line.split()) for line in ran.err.decode().splitlines() if "missing:" in line]
    assert len([line for line in missing if "effects_stopped" in line]) == 1
    assert "missing: in the review: the rationale is blank" in missing


def test_a_plan_without_evidence_says_what_stands_against_it(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    path = review_file(tmp_path, invocation, effects_stopped=False)
    invocation.claim_path.unlink()
    ran = command("reconcile", invocation, "--review", path)
    assert ran.rc == 1
    assert "No such file or directory" in ran.err.decode()


def test_what_a_resolution_made_impossible_is_said(tmp_path: Path) -> None:
    ran = reconcile(tmp_path, publishing(tmp_path).invocation)
    assert ran.rc == 0
    assert "publication_would_be_lost" in ran.err.decode()


def test_left_over_temporaries_are_named(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    (invocation.project.invocations / ".tmpAbCdEf").touch(0o600)
    assert ".tmpAbCdEf" in reconcile(tmp_path, invocation).err.decode()


ORDER = (
    (("--project", "/nowhere"), "No such file or directory (os error 2)"),
    (("--id", "x"), "invocation ID must be a UUID"),
    (("--cron-store", "/nowhere"), "--cron-store requires scheduler:v1 scope"),
)


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_early_faults_are_reported_in_the_runtimes_order(first: int, tmp_path: Path) -> None:
    from tests.support.cli import run

    invocation = interrupted(tmp_path)
    given = {
        "--project": str(invocation.project.root),
        "--scope": invocation.scope,
        "--id": invocation.id,
        "--review": str(tmp_path / "missing.json"),
    }
    for option, _ in ORDER[first:]:
        given[option[0]] = option[1]
    ran = run("invocation", "reconcile", *(word for pair in given.items() for word in pair))
    assert (ran.rc, ran.first_error_line) == (1, PREFIX + ORDER[first][1])


def test_a_named_schedule_must_exist_before_the_review_is_read(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path, scope="scheduler:v1")
    ran = command(
        "reconcile", invocation, "--review", tmp_path / "none", "--cron-store", tmp_path / "none.db"
    )
    assert ran.first_error_line == PREFIX + "explicit cron store does not exist"


def test_usage_errors_end_with_the_runtimes_code(tmp_path: Path) -> None:
    assert command("reconcile", interrupted(tmp_path)).rc == 2


def rows(path: Path) -> list[Any]:
    with closing(sqlite3.connect(path)) as database:
        return [
            database.execute("SELECT state FROM cron_occurrences").fetchone()[0],
            database.execute("SELECT status FROM job_run_log").fetchone()[0],
            database.execute("SELECT status FROM cron_jobs").fetchone()[0],
        ]


def test_a_failed_update_leaves_the_receipt_and_the_same_review_repairs_it(tmp_path: Path) -> None:
    project = make_project(tmp_path / "p")
    invocation = cron_project(project)
    database = project.state / "cron_jobs.db"
    database.chmod(0o644)
    ran = reconcile(tmp_path, invocation)
    assert ran.rc == 1
    assert ran.first_error_line.startswith(PREFIX + "Resolution saved; failed to open cron history: ")
    assert "same review again" in ran.err.decode()
    assert invocation.receipt_path.exists()
    receipt = invocation.receipt_path.read_bytes()
    database.chmod(0o600)
    ran = reconcile(tmp_path, invocation)
    assert ran.rc == 0
    assert json.loads(ran.out)["cron_history_updated"] is True
    assert invocation.receipt_path.read_bytes() == receipt
    assert rows(database) == ["reconciled", "reconciled", '"Paused"']


class Unsteady(sqlite3.Connection):
    """A connection whose device fails at the checkpoint."""

    def execute(self, *words: Any) -> sqlite3.Cursor:
        if "wal_checkpoint" in words[0]:
            raise sqlite3.OperationalError("disk I/O error")
        return super().execute(*words)


def no_checkpoint(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Unsteady))


def no_folder_sync(patch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> bool:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    patch.setattr(cron, "sync_folder", fail)


@pytest.mark.parametrize(
    ("broken", "words"),
    [(no_checkpoint, "disk I/O error"), (no_folder_sync, "Input/output error (os error 5)")],
)
def test_an_update_that_is_not_confirmed_durable_is_told_apart_from_a_failed_one(
    broken: Callable[[pytest.MonkeyPatch], None], words: str, tmp_path: Path
) -> None:
    project = make_project(tmp_path / "p")
    invocation, home = cron_project(project), operator_home(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        broken(patch)
        ran = reconcile(tmp_path, invocation, home=home)
    assert ran.rc == 1
    assert ran.out == b""
    assert ran.first_error_line == f"{PREFIX}{cron.CONFIRMING}SQLite error: {words}"
    assert "update failed" not in ran.err.decode()
    assert "cron_update_unconfirmed" in ran.err.decode()
    assert rows(project.state / "cron_jobs.db") == ["reconciled", "reconciled", '"Paused"']
    again = reconcile(tmp_path, invocation, home=home)
    assert again.rc == 0
    assert json.loads(again.out)["cron_history_updated"] is False


def test_why_a_schedule_was_left_as_it_is_is_said(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path, scope="scheduler:v1")
    ran = reconcile(tmp_path, invocation)
    assert json.loads(ran.out)["cron_history_updated"] is False
    assert "there is no schedule database" in ran.err.decode()


def test_a_schedule_that_is_locked_is_waited_for_and_then_refused(tmp_path: Path) -> None:
    project = make_project(tmp_path / "p")
    invocation = cron_project(project)
    with closing(sqlite3.connect(project.state / "cron_jobs.db", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        ran = reconcile(tmp_path, invocation)
        writer.execute("ROLLBACK")
    assert ran.rc == 1
    assert "SQLite error: database is locked" in ran.first_error_line
    assert reconcile(tmp_path, invocation).rc == 0


def test_old_tables_get_their_columns_and_old_runs_their_mark(tmp_path: Path) -> None:
    from tests.support.writer.cron import job, occurrence, scheduled_invocation
    from tests.support.writer.cron_store import cron_store

    project = make_project(tmp_path / "p")
    frozen = occurrence()
    invocation = scheduled_invocation(project, frozen, start=False).write()
    with cron_store(project.state / "cron_jobs.db", project.root, added=False) as store:
        store.add_job(frozen["job"])
        store.add_occurrence(frozen)
        store.add_history(frozen)
        old = occurrence(job(), invocation_id="99999999-0000-4000-8000-000000000000")
        store.add_history(old, "running")
    ran = reconcile(tmp_path, invocation)
    assert ran.rc == 0, ran.err.decode()
    with closing(sqlite3.connect(project.state / "cron_jobs.db")) as database:
        found = dict(database.execute("SELECT run_id, status FROM job_run_log").fetchall())
    assert found == {invocation.id: "reconciled", old["identity"]["id"]: "unresolved"}


def test_on_a_terminal_the_verdict_is_last(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    path = review_file(tmp_path, invocation)
    arguments = ["--project", invocation.project.root, "--scope", invocation.scope, "--id", invocation.id]
    ran = run_terminal(
        "invocation", "reconcile", *map(str, arguments), "--review", str(path), env={"NO_COLOR": "1"}
    )
    assert ran.rc == 0
    assert ran.text.splitlines()[-1] == "Verdict: reconciled"


def test_f084_an_output_that_cannot_be_written_is_no_success(tmp_path: Path) -> None:
    """The receipt stands, the command says that nobody was told, and a repeat tells it."""
    import subprocess
    import sys

    invocation = interrupted(tmp_path)
    path = review_file(tmp_path, invocation)
    arguments = ["--project", invocation.project.root, "--scope", invocation.scope, "--id", invocation.id]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "symbi_recover",
                "invocation",
                "reconcile",
                *map(str, arguments),
                "--review",
                path,
            ],
            stdout=full,
            stderr=subprocess.PIPE,
            env=os.environ | {"SYMBI_RECOVER_HOME": str(tmp_path / "nobody")},
            check=False,
        )
    assert done.returncode == 1
    assert invocation.receipt_path.exists()
    assert command("reconcile", invocation, "--review", path).rc == 0
