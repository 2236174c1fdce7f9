"""Schedule databases, row by row (cron-store.md sections 3, 4, 5 and 8).

`cron_store` makes a database and gives it open; the rows follow from the frozen values of `cron`, and any column
may be replaced. Nothing here converts legacy rows or decides transitions: a test writes the rows it wants. The
bytes of a database depend on the SQLite library (and a write-ahead log on its random salts); the rows do not.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.writer.claim import Invocation
from tests.support.writer.cron import fingerprint, occurrence, scheduled_invocation
from tests.support.writer.project import Project, put
from tests.support.writer.text import ABSENT, compact, merge

SCHEMA = (
    "CREATE TABLE schema_version (version INTEGER PRIMARY KEY)",
    """CREATE TABLE cron_jobs (
        job_id TEXT PRIMARY KEY, name TEXT NOT NULL, cron_expr TEXT NOT NULL, timezone TEXT NOT NULL,
        agent_json TEXT NOT NULL, policy_ids TEXT NOT NULL DEFAULT '[]',
        audit_level TEXT NOT NULL DEFAULT 'None', status TEXT NOT NULL DEFAULT 'Active',
        enabled INTEGER NOT NULL DEFAULT 1, one_shot INTEGER NOT NULL DEFAULT 0,
        created_at TEXT NOT NULL, updated_at TEXT NOT NULL, last_run TEXT, next_run TEXT,
        run_count INTEGER NOT NULL DEFAULT 0, failure_count INTEGER NOT NULL DEFAULT 0,
        max_retries INTEGER NOT NULL DEFAULT 3, max_concurrent INTEGER NOT NULL DEFAULT 1,
        delivery_json TEXT, jitter_max_secs INTEGER NOT NULL DEFAULT 0,
        session_mode TEXT NOT NULL DEFAULT '"EphemeralWithSummary"', agentpin_jwt TEXT)""",
    """CREATE TABLE job_run_log (
        run_id TEXT PRIMARY KEY, job_id TEXT NOT NULL, agent_id TEXT NOT NULL, started_at TEXT NOT NULL,
        completed_at TEXT, status TEXT NOT NULL, error TEXT, exec_time_ms INTEGER,
        FOREIGN KEY (job_id) REFERENCES cron_jobs(job_id) ON DELETE CASCADE)""",
    """CREATE TABLE cron_occurrences (
        invocation_id TEXT PRIMARY KEY, job_id TEXT NOT NULL, request_hash TEXT NOT NULL,
        request_json TEXT NOT NULL, state TEXT NOT NULL, created_at TEXT NOT NULL)""",
    "CREATE INDEX idx_cron_occurrences_state ON cron_occurrences(state, created_at)",
    "CREATE INDEX idx_cron_occurrences_job ON cron_occurrences(job_id, state)",
    "CREATE INDEX idx_cron_jobs_next_run ON cron_jobs(next_run)",
    "CREATE INDEX idx_job_run_log_job_id ON job_run_log(job_id)",
    "CREATE INDEX idx_job_run_log_started ON job_run_log(started_at)",
)
ADDED = (
    "ALTER TABLE cron_jobs ADD COLUMN input_json TEXT NOT NULL DEFAULT 'null'",
    "ALTER TABLE job_run_log ADD COLUMN execution_json TEXT",
    "ALTER TABLE job_run_log ADD COLUMN admission_audit_json TEXT",
    "ALTER TABLE job_run_log ADD COLUMN resolution_json TEXT",
)
OWNER = (
    "CREATE TABLE cron_store_owner (singleton INTEGER PRIMARY KEY CHECK(singleton=1), project TEXT NOT NULL)"
)
ADDED_COLUMNS = ("input_json", "execution_json", "admission_audit_json", "resolution_json")


def column_time(text: str | None) -> str | None:
    """Return a JSON time in the spelling of the time columns."""
    return None if text is None else text.removesuffix("Z") + "+00:00"


def text_of(value: Any) -> str:
    """Return compact JSON as a text column holds it."""
    return compact(value).decode()


class CronStore:
    """An open schedule database; see :func:`cron_store`."""

    def __init__(self, path: Path, database: sqlite3.Connection, *, added: bool) -> None:
        self.path = path
        self.database = database
        self.missing = {} if added else dict.fromkeys(ADDED_COLUMNS, ABSENT)

    def insert(self, table: str, row: dict[str, Any]) -> None:
        """Insert any row; names are trusted, they come from tests."""
        marks = ",".join("?" * len(row))
        self.database.execute(f"INSERT INTO {table} ({','.join(row)}) VALUES ({marks})", [*row.values()])  # noqa: S608

    def bind(self, project: Path | str) -> None:
        """Write the owner row, with its table."""
        self.database.execute(OWNER)
        self.insert("cron_store_owner", {"singleton": 1, "project": str(project)})

    def add_job(self, of: dict[str, Any], **columns: Any) -> None:
        """Insert a job; columns replace what follows from the frozen value."""
        self.insert("cron_jobs", merge(job_row(of), columns | self.missing))

    def add_occurrence(self, frozen: dict[str, Any], state: str = "unresolved", **columns: Any) -> None:
        """Insert an occurrence."""
        self.insert("cron_occurrences", merge(occurrence_row(frozen, state), columns))

    def add_history(self, frozen: dict[str, Any], status: str = "unresolved", **columns: Any) -> None:
        """Insert the history row of an occurrence."""
        self.insert("job_run_log", merge(history_row(frozen, status), columns | self.missing))


def job_row(of: dict[str, Any]) -> dict[str, Any]:
    """Return the `cron_jobs` row of a job."""
    same = ("run_count", "failure_count", "max_retries", "max_concurrent", "jitter_max_secs", "agentpin_jwt")
    delivery = of.get("delivery_config")
    return {
        "job_id": of["job_id"],
        "name": of["name"],
        "cron_expr": of["cron_expression"],
        "timezone": of["timezone"],
        "agent_json": text_of(of["agent_config"]),
        **{name: text_of(of[name]) for name in ("policy_ids", "audit_level", "status", "session_mode")},
        **{name: int(of[name]) for name in ("enabled", "one_shot")},
        **{name: column_time(of[name]) for name in ("created_at", "updated_at", "last_run", "next_run")},
        **{name: of[name] for name in same},
        "delivery_json": None if delivery is None else text_of(delivery),
        "input_json": text_of(of.get("input")),
    }


def occurrence_row(frozen: dict[str, Any], state: str = "unresolved") -> dict[str, Any]:
    """Return the `cron_occurrences` row of an occurrence."""
    return {
        "invocation_id": frozen["identity"]["id"],
        "job_id": frozen["job"]["job_id"],
        "request_hash": fingerprint(frozen),
        "request_json": text_of(frozen),
        "state": state,
        "created_at": column_time(frozen["created_at"]),
    }


def history_row(frozen: dict[str, Any], status: str = "unresolved") -> dict[str, Any]:
    """Return the `job_run_log` row of an occurrence: with an end and an error unless it still goes on."""
    open_still = status in ("pending", "running")
    return {
        "run_id": frozen["identity"]["id"],
        "job_id": frozen["job"]["job_id"],
        "agent_id": frozen["job"]["agent_config"]["id"],
        "started_at": column_time(frozen["created_at"]),
        "completed_at": None if open_still else column_time(frozen["created_at"]),
        "status": status,
        "error": "lost effect" if status == "unresolved" else None,
        "exec_time_ms": None if open_still else 1,
        "execution_json": None,
        "admission_audit_json": None,
        "resolution_json": None,
    }


@contextmanager
def cron_store(
    path: Path,
    owner: Path | str | None = None,
    *,
    wal: bool = True,
    leave_wal: bool = False,
    added: bool = True,
    mode: int = 0o600,
) -> Iterator[CronStore]:
    """Make a database and give it open; it is committed and closed at the end of the context.

    Args:
        path: the database file.
        owner: project to bind; None leaves the store unowned, without the owner's table.
        wal: journal mode WAL, as the runtime sets; else a rollback journal.
        leave_wal: keep the rows in `-wal` and leave `-shm`, as after a kill.
        added: whether the added columns exist; without them the store looks like an old one.
        mode: mode of the file, which SQLite gives to its companions as well.
    """
    put(path, b"", mode)
    database = sqlite3.connect(path)
    try:
        database.execute(f"PRAGMA journal_mode={'WAL' if wal else 'DELETE'}")
        database.execute("PRAGMA wal_autocheckpoint=0")
        for statement in SCHEMA + (ADDED if added else ()):
            database.execute(statement)
        database.execute("INSERT INTO schema_version VALUES (1)")
        store = CronStore(path, database, added=added)
        if owner is not None:
            store.bind(owner)
        yield store
        database.commit()
        companions = [Path(f"{path}{suffix}") for suffix in ("", "-wal", "-shm")]
        kept = [(name, name.read_bytes()) for name in companions if leave_wal and name.exists()]
    finally:
        database.close()
    for name, data in kept:
        put(name, data, mode)


def cron_project(project: Project, frozen: dict[str, Any] | None = None, **options: Any) -> Invocation:
    """Lay out the usual incident: an unresolved occurrence, its dead job, its history and its claim.

    The database is at the default path; options go to :func:`cron_store`. The claim's journal is empty.
    Returns the invocation, written.
    """
    frozen = occurrence() if frozen is None else frozen
    invocation = scheduled_invocation(project, frozen, start=False).write()
    dead = {"status": '"DeadLetter"', "enabled": 0, "failure_count": 1}
    audit = text_of(invocation.reference)
    with cron_store(project.state / "cron_jobs.db", **({"owner": project.root} | options)) as store:
        store.add_job(frozen["job"], **dead)
        store.add_occurrence(frozen)
        store.add_history(frozen, admission_audit_json=audit)
    return invocation
