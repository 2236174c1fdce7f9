"""The writer re-creates frozen occurrences, fingerprints and rows of the format text and the cases."""

import base64
import gzip
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.support import evidence
from tests.support.writer import cron
from tests.support.writer.cron_store import cron_project, cron_store, history_row, job_row, occurrence_row
from tests.support.writer.project import make_project
from tests.support.writer.text import canonical, compact

CASES = evidence.FIXTURES / "cases" / "cron.jsonl.gz"
EXAMPLE_AGENT = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"
EXAMPLE_TIMES = {
    "created_at": "2026-10-28T08:00:00Z",
    "updated_at": "2026-10-28T08:00:00Z",
    "next_run": "2026-10-28T09:00:00Z",
}
SPOILED = {"request-not-json": "its frozen text was replaced by an empty object"}


def cases() -> dict[str, dict[str, Any]]:
    return {case["id"]: case for case in map(json.loads, gzip.open(CASES))}


def example_job() -> dict[str, Any]:
    return cron.job(agent=cron.agent_config(EXAMPLE_AGENT), **EXAMPLE_TIMES)


def test_the_timer_occurrence_of_the_format_text_is_recreated():
    frozen = cron.occurrence(
        example_job(), scheduled_for="2026-10-28T09:00:00Z", created_at="2026-10-28T09:00:00.125Z"
    )
    assert frozen["identity"]["id"] == "3fcbbb63-736b-5ac3-a8f6-f1dd20e68d40"
    assert len(compact(frozen)) == 1090
    assert len(canonical(cron.request(frozen))) == 964
    assert cron.fingerprint(frozen) == (
        "sha256:8f53b22534fea33b1b4fca799b85a7f17f9776647e83185d7c90e9bea27fe38e"
    )


def test_the_manual_occurrence_of_the_format_text_has_its_fingerprint():
    assert cron.fingerprint(cron.occurrence(example_job())) == (
        "sha256:7bf3617687fc3e36e54ce78fa7b2db462e5555bf208b31148bcc3d8dae7e8419"
    )


@pytest.mark.parametrize(
    ("given", "hashed"), [(0.1, 0.10000000149011612), (1, 1.0), (2.5, 2.5), (0.3, 0.30000001192092896)]
)
def test_processor_shares_are_widened_before_hashing(given, hashed):
    agent = cron.agent_config()
    agent["resource_limits"]["cpu_cores"] = given
    target = cron.request(cron.occurrence(cron.job(agent=agent)))["target"]
    assert repr(target["resource_limits"]["cpu_cores"]) == repr(hashed)


def test_an_external_agent_keeps_its_execution_mode_in_the_request():
    mode = {"External": {"endpoint": None, "agentpin_domain": None, "heartbeat_interval_secs": 30}}
    frozen = cron.occurrence(cron.job(agent=cron.agent_config(execution_mode=mode)))
    assert cron.request(frozen)["target"]["execution_mode"] == mode


def case_rows() -> list[tuple[str, dict[str, Any]]]:
    return [
        (name, case["db_before"]) for name, case in cases().items() if isinstance(case["db_before"], dict)
    ]


def test_the_frozen_texts_and_fingerprints_of_the_runtime_are_recreated():
    seen = 0
    for name, tables in case_rows():
        for row in tables["cron_occurrences"]:
            frozen = json.loads(row["request_json"])
            if name in SPOILED:
                assert frozen == {}
                continue
            assert compact(_rebuilt(frozen)).decode() == row["request_json"]
            assert occurrence_row(frozen, row["state"]) == row
            seen += 1
    assert seen == 25


def _rebuilt(frozen: dict[str, Any]) -> dict[str, Any]:
    """Return the occurrence made by the writer from its facts, members in the writer's order."""
    of = dict(frozen["job"])
    agent = dict(of.pop("agent_config"))
    made = cron.job(of.pop("job_id"), cron.agent_config(agent.pop("id"), **agent), **of)
    identity = frozen["identity"]
    return cron.occurrence(
        made,
        invocation_id=identity["id"],
        created_at=frozen["created_at"],
        identity=identity,
        scheduled_for=frozen["scheduled_for"],
    )


def test_the_job_and_history_rows_of_the_runtime_are_recreated():
    tables = cases()["plain"]["db_before"]
    (row,), (log,) = tables["cron_jobs"], tables["job_run_log"]
    frozen = json.loads(tables["cron_occurrences"][0]["request_json"])
    changed = ("status", "enabled", "updated_at", "failure_count")
    assert {**job_row(frozen["job"]), **{name: row[name] for name in changed}} == row
    loose = ("completed_at", "admission_audit_json")
    assert {**history_row(frozen), **{name: log[name] for name in loose}} == log


def shape(database: sqlite3.Connection) -> dict[str, Any]:
    """Return columns, keys and indexes of every table, whatever the spelling of the statements."""
    names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    facts = ("table_info", "index_list", "foreign_key_list")
    return {
        name: [sorted(database.execute(f"SELECT * FROM pragma_{fact}(?)", [name])) for fact in facts]  # noqa: S608 - fixed names
        for name in names
    }


def test_the_tables_have_the_shape_of_the_runtimes(tmp_path):
    tree = cases()["plain"]["tree"]
    for suffix in ("", "-wal", "-shm"):
        data = base64.b64decode(tree[f"p/.symbiont/cron_jobs.db{suffix}"]["data"])
        (tmp_path / f"real.db{suffix}").write_bytes(data)
    with cron_store(tmp_path / "made.db", "/srv/project"):
        pass
    found = []
    for name in ("real.db", "made.db"):
        database = sqlite3.connect(tmp_path / name)
        found.append({table: _loose(facts) for table, facts in shape(database).items()})
        found.append(database.execute("PRAGMA journal_mode").fetchall())
        database.close()
    assert found[:2] == found[2:]


def _loose(facts: list[Any]) -> list[Any]:
    """Drop the order in which indexes were made."""
    columns, indexes, keys = facts
    return [columns, sorted(index[1:] for index in indexes), keys]


def rows(path: Path, table: str) -> int:
    database = sqlite3.connect(path)
    (count,) = database.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 - fixed names
    database.close()
    return int(count)


@pytest.mark.parametrize(
    "options", [{}, {"wal": False}, {"leave_wal": True}, {"added": False}, {"owner": None}]
)
def test_an_incident_can_be_laid_out_in_every_kind_of_store(tmp_path, options):
    project = make_project(tmp_path / "p")
    invocation = cron_project(project, **options)
    path = project.state / "cron_jobs.db"
    companions = {file.name for file in project.state.iterdir() if file.name.startswith("cron_jobs.db-")}
    assert companions == ({"cron_jobs.db-wal", "cron_jobs.db-shm"} if "leave_wal" in options else set())
    assert path.stat().st_mode & 0o777 == 0o600
    assert [rows(path, name) for name in ("cron_jobs", "cron_occurrences", "job_run_log")] == [1, 1, 1]
    assert json.loads(invocation.claim_path.read_bytes().split(b"\n")[0])["scope"] == cron.SCOPE
