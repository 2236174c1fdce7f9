"""Updates a schedule's history after a reconciliation, in the runtime's own transaction (cron-store.md section 9).

1. the folder, the database and the files beside it are private; 2. open it as the runtime does: WAL, FULL, missing
tables and columns made, rows of old releases marked; 3. bind an unowned store, refuse a foreign one; 4. read the
occurrence and prove its fingerprint; 5. inspect the invocation again; 6. one IMMEDIATE transaction, all or nothing;
7. bring its log into the database, and sync the folder.

The receipt is in force by then. Whatever fails here is repaired by repeating the same review.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from msgspec import Struct

from symbi_recover.core.claims import Resolution
from symbi_recover.core.errors import RecoverError, RefusedError
from symbi_recover.core.scalars import UUID
from symbi_recover.core.schedules import FROZEN_LIMIT, FrozenOccurrence, OccurrenceState
from symbi_recover.read.evidence.opener import FOLDER_FLAGS, system_text
from symbi_recover.read.evidence.store import FOLDER_RULE, InvocationStore
from symbi_recover.read.invocation import inspect_invocation
from symbi_recover.wire import canonical, cron, timestamp
from symbi_recover.wire.receipt import payload_text
from symbi_recover.wire.strictjson import JsonError
from symbi_recover.write.atomic import sync_folder

if TYPE_CHECKING:
    from sqlite3 import Connection

OPENING = "Resolution saved; failed to open cron history: "
OWNING = "Resolution saved; cron store ownership check failed: "
UPDATING = "Resolution saved; cron history update failed, repeat this same review: "
CONFIRMING = (
    "Resolution saved; cron history is up to date, but not confirmed durable, repeat this same review: "
)
"""Our own: the runtime takes no such step."""
_LEGACY_ERROR = "legacy run has no durable invocation identity; inspect original effects before retry"
_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_OPEN_TIMEOUT = 5.0
_BUSY_MS = 2000

_TABLES = (
    "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY)",
    """CREATE TABLE IF NOT EXISTS cron_jobs (
        job_id TEXT PRIMARY KEY, name TEXT NOT NULL, cron_expr TEXT NOT NULL, timezone TEXT NOT NULL,
        agent_json TEXT NOT NULL, policy_ids TEXT NOT NULL DEFAULT '[]',
        audit_level TEXT NOT NULL DEFAULT 'None', status TEXT NOT NULL DEFAULT 'Active',
        enabled INTEGER NOT NULL DEFAULT 1, one_shot INTEGER NOT NULL DEFAULT 0,
        created_at TEXT NOT NULL, updated_at TEXT NOT NULL, last_run TEXT, next_run TEXT,
        run_count INTEGER NOT NULL DEFAULT 0, failure_count INTEGER NOT NULL DEFAULT 0,
        max_retries INTEGER NOT NULL DEFAULT 3, max_concurrent INTEGER NOT NULL DEFAULT 1,
        delivery_json TEXT, jitter_max_secs INTEGER NOT NULL DEFAULT 0,
        session_mode TEXT NOT NULL DEFAULT '"EphemeralWithSummary"', agentpin_jwt TEXT)""",
    """CREATE TABLE IF NOT EXISTS job_run_log (
        run_id TEXT PRIMARY KEY, job_id TEXT NOT NULL, agent_id TEXT NOT NULL, started_at TEXT NOT NULL,
        completed_at TEXT, status TEXT NOT NULL, error TEXT, exec_time_ms INTEGER,
        FOREIGN KEY (job_id) REFERENCES cron_jobs(job_id) ON DELETE CASCADE)""",
    """CREATE TABLE IF NOT EXISTS cron_occurrences (
        invocation_id TEXT PRIMARY KEY, job_id TEXT NOT NULL, request_hash TEXT NOT NULL,
        request_json TEXT NOT NULL, state TEXT NOT NULL, created_at TEXT NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS idx_cron_jobs_next_run ON cron_jobs(next_run)",
    "CREATE INDEX IF NOT EXISTS idx_job_run_log_job_id ON job_run_log(job_id)",
    "CREATE INDEX IF NOT EXISTS idx_job_run_log_started ON job_run_log(started_at)",
    "CREATE INDEX IF NOT EXISTS idx_cron_occurrences_state ON cron_occurrences(state, created_at)",
    "CREATE INDEX IF NOT EXISTS idx_cron_occurrences_job ON cron_occurrences(job_id, state)",
)
_ADDED = (
    ("cron_jobs", "input_json", "TEXT NOT NULL DEFAULT 'null'"),
    ("job_run_log", "execution_json", "TEXT"),
    ("job_run_log", "admission_audit_json", "TEXT"),
    ("job_run_log", "resolution_json", "TEXT"),
)
_OWNER = (
    "CREATE TABLE IF NOT EXISTS cron_store_owner "
    "(singleton INTEGER PRIMARY KEY CHECK(singleton=1), project TEXT NOT NULL)"
)
_LEGACY = "status IN ('pending','running') AND run_id NOT IN (SELECT invocation_id FROM cron_occurrences)"


class CronUpdate(Struct, frozen=True):
    """What happened to the history of a schedule."""

    updated: bool
    """Whether rows changed now."""
    why: str = ""
    """Why none did."""
    bound: bool = False
    """Whether the store belonged to no project until now."""


class _Occurrence(Struct, frozen=True):
    frozen: FrozenOccurrence
    fingerprint: str


def update(
    path: str, store: InvocationStore, scope: str, invocation_id: UUID, *, clock: Callable[[], int]
) -> CronUpdate:
    """Bring the history of a schedule in line with a published resolution.

    Args:
        path: of the database; nothing happens if nothing is there.
        store: open store of the project.
        scope: of the invocation.
        invocation_id: of the invocation, which is the occurrence's.
        clock: nanoseconds since 1970.

    Raises:
        RefusedError: `cron_update_failed`, with the runtime's words; `cron_update_unconfirmed` if step 7 alone failed.
    """
    if not os.path.exists(path):
        return CronUpdate(False, "there is no schedule database at its place")
    with _failing(OPENING, path):
        _check_protection(path)
        database = _connect(path)
    with closing(database):
        with _failing(OPENING, path):
            _prepare(database)
        with _failing(OWNING, path):
            bound = _bind(database, store.project)
        with _failing(UPDATING, path):
            occurrence = _occurrence(database, invocation_id)
            if occurrence is None:
                return CronUpdate(False, "the schedule database has no such occurrence", bound)
            resolution = _resolution(store, scope, invocation_id, occurrence)
            changed = _reconcile(database, invocation_id, occurrence, resolution, _column_time(clock()))
        with _failing(CONFIRMING, path, "cron_update_unconfirmed"):
            _make_durable(database, path)
    return CronUpdate(changed, "" if changed else "its history was up to date", bound)


class _StoreError(Exception):
    """Trouble with the store, in the runtime's words."""


@contextmanager
def _failing(stage: str, path: str, code: str = "cron_update_failed") -> Iterator[None]:
    import sqlite3  # noqa: PLC0415 -- late: only schedules need it

    try:
        yield
    except _StoreError as error:
        raise RefusedError(code, f"{stage}{error}", path=path) from error
    except sqlite3.Error as error:
        raise RefusedError(code, f"{stage}SQLite error: {error}", path=path) from error
    except OSError as error:
        raise RefusedError(code, f"{stage}SQLite error: {system_text(error)}", path=path) from error


def _check_protection(path: str) -> None:
    """The folder first, then the database and the files beside it; then the database's content is made durable."""
    folder = os.lstat(os.path.dirname(path))
    if not stat.S_ISDIR(folder.st_mode) or folder.st_uid != os.geteuid() or folder.st_mode & 0o077:
        raise _StoreError(f"SQLite error: {FOLDER_RULE}")
    for suffix in ("", "-wal", "-shm", "-journal"):
        try:
            status = os.lstat(path + suffix)
        except FileNotFoundError:
            continue
        if (
            not stat.S_ISREG(status.st_mode)
            or status.st_uid != os.geteuid()
            or status.st_mode & 0o077
            or status.st_nlink != 1
        ):
            raise _StoreError(
                "SQLite error: cron store and sidecars must be private runtime-owned regular files"
            )
    for target, flags in (
        (path, _OPEN),
        (os.path.dirname(path), FOLDER_FLAGS),
    ):
        descriptor = os.open(target, flags)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _connect(path: str) -> "Connection":
    import sqlite3  # noqa: PLC0415 -- late: only schedules need it

    before = os.lstat(path)
    name = quote(os.fsencode(os.path.abspath(path)))
    database = sqlite3.connect(f"file:{name}?mode=rw", uri=True, timeout=_OPEN_TIMEOUT, isolation_level=None)
    after = os.lstat(path)
    if not stat.S_ISREG(after.st_mode) or (before.st_dev, before.st_ino) != (after.st_dev, after.st_ino):
        database.close()
        raise _StoreError("SQLite error: the schedule database was exchanged while it was opened")
    return database


def _prepare(database: "Connection") -> None:
    """Section 2: journal mode, durability, tables, added columns, rows of old releases."""
    database.execute("PRAGMA journal_mode=WAL").fetchone()
    database.execute(f"PRAGMA busy_timeout={_BUSY_MS}").fetchone()
    database.execute("PRAGMA synchronous=FULL")
    database.execute("PRAGMA foreign_keys=ON")
    for statement in _TABLES:
        database.execute(statement)
    if database.execute("SELECT 1 FROM schema_version").fetchone() is None:
        database.execute("INSERT INTO schema_version VALUES (1)")
    for table, column, kind in _ADDED:
        names = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
        if column not in names:
            database.execute(f"ALTER TABLE {table} ADD COLUMN {column} {kind}")
    if database.execute(f"SELECT 1 FROM job_run_log WHERE {_LEGACY}").fetchone() is not None:  # noqa: S608 -- a constant
        _mark_legacy(database)


def _mark_legacy(database: "Connection") -> None:
    with _transaction(database):
        database.execute(
            "UPDATE cron_jobs SET status='\"DeadLetter\"', enabled=0 "  # noqa: S608 -- a constant
            f"WHERE job_id IN (SELECT job_id FROM job_run_log WHERE {_LEGACY})"
        )
        database.execute(
            f"UPDATE job_run_log SET status='unresolved', error=? WHERE {_LEGACY}",  # noqa: S608 -- a constant
            (_LEGACY_ERROR,),
        )


@contextmanager
def _transaction(database: "Connection") -> Iterator[None]:
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


def _bind(database: "Connection", project: str) -> bool:
    """Section 5; True if the store was bound now."""
    try:
        project.encode()
    except UnicodeEncodeError:
        raise _StoreError("Serialization error: cron project path must be UTF-8") from None
    with _transaction(database):
        database.execute(_OWNER)
        row = database.execute("SELECT project FROM cron_store_owner WHERE singleton=1").fetchone()
        if row is None:
            database.execute("INSERT INTO cron_store_owner (singleton, project) VALUES (1, ?)", (project,))
        elif row[0] != project:
            raise _StoreError("Serialization error: cron store belongs to a different execution project")
    return row is None


def _occurrence(database: "Connection", invocation_id: UUID) -> _Occurrence | None:
    row = database.execute(
        "SELECT request_json, request_hash, state FROM cron_occurrences WHERE invocation_id=?",
        (str(invocation_id),),
    ).fetchone()
    if row is None:
        return None
    text, request_hash, state = map(_text, row)
    data = text.encode()
    if len(data) > FROZEN_LIMIT:
        raise _StoreError("Serialization error: oversized occurrence record")
    try:
        frozen = cron.parse_occurrence(data)
    except JsonError as error:
        raise _StoreError(f"Serialization error: {error.message} at byte {error.offset}") from error
    if cron.fingerprint(frozen) != request_hash:
        raise _StoreError("Serialization error: occurrence fingerprint mismatch")
    if state not in set(OccurrenceState):
        raise _StoreError("Serialization error: invalid occurrence state")
    return _Occurrence(frozen, request_hash)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _StoreError("SQLite error: a column of the occurrence is not text")
    return value


def _resolution(
    store: InvocationStore, scope: str, invocation_id: UUID, occurrence: _Occurrence
) -> Resolution:
    """The verified resolution, which must be about this occurrence."""
    try:
        inspection = inspect_invocation(store, scope, invocation_id, owner_check=False)
    except RecoverError as error:
        raise _StoreError(f"Serialization error: {error.message}") from error
    resolution = inspection.resolution
    if resolution is None:
        raise _StoreError("Serialization error: invocation has no verified operator resolution")
    snapshot = resolution.snapshot
    agent = occurrence.frozen.job.agent_config.id
    if (snapshot.request_hash, snapshot.agent_id) != (occurrence.fingerprint, agent):
        raise _StoreError(
            "Serialization error: operator resolution does not match the frozen cron occurrence"
        )
    return resolution


def _reconcile(
    database: "Connection", invocation_id: UUID, occurrence: _Occurrence, resolution: Resolution, now: str
) -> bool:
    """Section 9 step 7; False if the history already holds this resolution."""
    identity, job = str(invocation_id), str(occurrence.frozen.job.job_id)
    receipt = payload_text(resolution).decode()
    audit = canonical.compact(resolution.snapshot.audit).decode()
    with _transaction(database):
        state = database.execute(
            "SELECT state FROM cron_occurrences WHERE invocation_id=?", (identity,)
        ).fetchone()
        if state is not None and state[0] == OccurrenceState.RECONCILED:
            _check_history(database, identity, receipt)
            return False
        changed = database.execute(
            "UPDATE cron_occurrences SET state='reconciled' WHERE invocation_id=? AND request_hash=? "
            "AND state IN ('prepared','running','unresolved')",
            (identity, occurrence.fingerprint),
        ).rowcount
        if changed != 1:
            raise _StoreError(
                "Serialization error: cron occurrence is already terminal or changed during reconciliation"
            )
        changed = database.execute(
            "UPDATE job_run_log SET status='reconciled', completed_at=COALESCE(completed_at, ?), "
            "resolution_json=?, admission_audit_json=? "
            "WHERE run_id=? AND job_id=? AND status IN ('pending','running','unresolved')",
            (now, receipt, audit, identity, job),
        ).rowcount
        if changed != 1:
            raise _StoreError("Serialization error: cron history is missing or inconsistent")
        database.execute(
            "UPDATE cron_jobs SET status='\"Paused\"', enabled=0, updated_at=? WHERE job_id=?", (now, job)
        )
    return True


def _make_durable(database: "Connection", path: str) -> None:
    """Bring the log into the database and sync the folder, whose failure SQLite passes over when it makes a log."""
    database.execute("PRAGMA wal_checkpoint(FULL)").fetchone()
    descriptor = os.open(os.path.dirname(path), FOLDER_FLAGS)
    try:
        sync_folder(descriptor)
    finally:
        os.close(descriptor)


def _check_history(database: "Connection", identity: str, receipt: str) -> None:
    row = database.execute(
        "SELECT resolution_json FROM job_run_log WHERE run_id=? AND status='reconciled'", (identity,)
    ).fetchone()
    if row is None or row[0] != receipt:
        raise _StoreError("Serialization error: reconciled cron history is inconsistent")


def _column_time(nanoseconds: int) -> str:
    return timestamp.from_nanoseconds(nanoseconds).removesuffix("Z") + "+00:00"
