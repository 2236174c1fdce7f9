"""Looks at a schedule database without touching it (cron-store.md).

The database is copied into memory in its last committed state (`read/evidence/database.py`); the rows of the copy
are read and typed here, and what is odd about them becomes findings. Nothing is opened by SQLite but the copy.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from symbi_recover.core.claims import Snapshot
from symbi_recover.core.codes import finding
from symbi_recover.core.errors import RefusedError
from symbi_recover.core.findings import Finding
from symbi_recover.core.schedules import (
    HistoryRow,
    JobRow,
    OccurrenceRow,
    OccurrenceState,
    Schedule,
)
from symbi_recover.read.evidence.database import read_copy
from symbi_recover.read.evidence.locate import CRON_DATABASE, SYMBIONT
from symbi_recover.read.evidence.opener import is_there
from symbi_recover.wire.cron import fingerprint, parse_occurrence
from symbi_recover.wire.strictjson import JsonError

if TYPE_CHECKING:
    from sqlite3 import Connection

_MOST_ROWS = 100_000


def default_path(project: str) -> str:
    """Where a project keeps its schedule unless configured otherwise."""
    return f"{project}/{SYMBIONT}/{CRON_DATABASE}"


def read_schedule(path: str, project: str) -> Schedule:
    """The schedule in a database.

    Args:
        path: of the database; it must exist.
        project: real path of the project that it should belong to.

    Raises:
        UnexaminedError: `cron_store_missing`, `cron_store_changing`, or a file cannot be read.
        RefusedError: `cron_store_unreadable`, `cron_store_too_large`.
    """
    copy = read_copy(path)
    with copy.opened() as connection:
        schedule = _Tables(connection, copy.path, project).read()
    return replace(schedule, findings=(*copy.findings, *schedule.findings))


class _Tables:
    """Reads the tables of one open copy."""

    def __init__(self, connection: "Connection", path: str, project: str) -> None:
        self.connection = connection
        self.path = path
        self.project = project
        self.findings: list[Finding] = []

    def read(self) -> Schedule:
        tables = {name for (name,) in self._rows("SELECT name FROM sqlite_master WHERE type='table'")}
        if not {"cron_jobs", "job_run_log"} <= tables:
            raise RefusedError("cron_store_unreadable", "it lacks the tables of a schedule", path=self.path)
        owner = self._owner() if "cron_store_owner" in tables else None
        self._note_owner(owner)
        occurrences = tuple(self._occurrences()) if "cron_occurrences" in tables else ()
        histories = tuple(self._histories({row.invocation_id for row in occurrences}))
        jobs = tuple(self._jobs(occurrences, histories))
        return Schedule(
            path=self.path,
            owner=owner,
            jobs=jobs,
            occurrences=occurrences,
            histories=histories,
            findings=tuple(self.findings),
        )

    def _rows(self, statement: str) -> Iterator[tuple[Any, ...]]:
        yield from self.connection.execute(f"{statement} LIMIT {_MOST_ROWS}")

    def _columns(self, table: str) -> set[str]:
        return {str(row[1]) for row in self.connection.execute(f"PRAGMA table_info({table})")}

    def _owner(self) -> str | None:
        return next((str(owner) for (owner,) in self._rows("SELECT project FROM cron_store_owner")), None)

    def _note_owner(self, owner: str | None) -> None:
        if owner is None:
            self.findings.append(finding("cron_store_unowned", "no project is named", path=self.path))
        elif owner != self.project:
            self.findings.append(
                finding(
                    "cron_store_foreign",
                    "another project",
                    path=self.path,
                    expected=self.project,
                    actual=owner,
                )
            )

    def _occurrences(self) -> Iterator[OccurrenceRow]:
        statement = "SELECT invocation_id, job_id, request_hash, request_json, state, created_at FROM cron_occurrences"
        for invocation, job, request_hash, text, state, created in self._rows(statement):
            row = _occurrence(invocation, job, request_hash, text, state, created)
            if row.fault is not None:
                self.findings.append(
                    finding("cron_occurrence_invalid", f"{row.invocation_id}: {row.fault}", path=self.path)
                )
            yield row

    def _histories(self, known: set[str]) -> Iterator[HistoryRow]:
        resolution = "resolution_json" if "resolution_json" in self._columns("job_run_log") else "NULL"
        statement = (
            f"SELECT run_id, job_id, status, started_at, completed_at, error, {resolution} "  # noqa: S608 -- one of two constants
            "FROM job_run_log ORDER BY started_at DESC"
        )
        for values in self._rows(statement):
            row = HistoryRow(
                run_id=str(values[0]),
                job_id=str(values[1]),
                status=str(values[2]),
                started_at=str(values[3]),
                completed_at=_text(values[4]),
                error=_text(values[5]),
                resolution_json=_text(values[6]),
            )
            open_ended = row.status in ("pending", "running", "unresolved")
            if row.run_id in known or open_ended:
                yield row
            if row.run_id not in known and open_ended:
                self.findings.append(
                    finding("cron_legacy_run", f"{row.run_id} of job {row.job_id}", path=self.path)
                )

    def _jobs(
        self, occurrences: tuple[OccurrenceRow, ...], histories: tuple[HistoryRow, ...]
    ) -> Iterator[JobRow]:
        blocked: dict[str, list[str]] = {}
        for occurrence in occurrences:
            if occurrence.state == OccurrenceState.UNRESOLVED:
                blocked.setdefault(occurrence.job_id, []).append(occurrence.invocation_id)
        for history in histories:
            if history.status == "unresolved" and history.run_id not in blocked.get(history.job_id, ()):
                blocked.setdefault(history.job_id, []).append(history.run_id)
        statement = "SELECT job_id, name, status, enabled, next_run, last_run, run_count, failure_count FROM cron_jobs"
        known = set()
        for job, name, status, enabled, next_run, last_run, runs, failures in self._rows(statement):
            known.add(str(job))
            by = tuple(blocked.get(str(job), ()))
            if by:
                self.findings.append(
                    finding("cron_job_blocked", f"job {job} ({name}) by {', '.join(by[:5])}", path=self.path)
                )
            yield JobRow(
                job_id=str(job),
                name=str(name),
                status=str(status).strip('"'),
                enabled=bool(enabled),
                next_run=_text(next_run),
                last_run=_text(last_run),
                run_count=_count(runs),
                failure_count=_count(failures),
                blocked_by=by,
            )
        for job_id in sorted(blocked.keys() - known):
            self.findings.append(
                finding(
                    "cron_job_missing", f"job {job_id} of {', '.join(blocked[job_id][:5])}", path=self.path
                )
            )


def _occurrence(
    invocation: object, job: object, request_hash: object, text: object, state: object, created: object
) -> OccurrenceRow:
    """One row; the first thing that is wrong with it, in the runtime's order and words."""
    fault = agent = due = None
    try:
        raw = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else b""
        frozen = parse_occurrence(raw)
        agent, due = frozen.job.agent_config.id, frozen.scheduled_for
        if fingerprint(frozen) != request_hash:
            fault = "occurrence fingerprint mismatch"
    except JsonError as error:
        fault = error.message
    if fault is None and state not in frozenset(OccurrenceState):
        fault = "invalid occurrence state"
    return OccurrenceRow(
        invocation_id=str(invocation),
        job_id=str(job),
        request_hash=str(request_hash),
        state=str(state),
        created_at=str(created),
        agent_id=agent,
        scheduled_for=due,
        fault=fault,
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def schedule_of(project: str) -> Schedule | None:
    """The schedule of a project at its default place; None if there is none.

    Raises:
        RecoverError: as `read_schedule`.
    """
    path = default_path(project)
    return read_schedule(path, project) if is_there(path) else None


def link(schedule: Schedule, snapshot: Snapshot) -> tuple[Finding, ...]:
    """What the schedule says against, or cannot say about, an invocation of its scope."""
    occurrence = schedule.occurrence(snapshot.id)
    if occurrence is None:
        return (finding("cron_occurrence_missing", str(snapshot.id), path=schedule.path),)
    found = []
    if occurrence.request_hash != snapshot.request_hash or occurrence.agent_id not in (
        None,
        snapshot.agent_id,
    ):
        found.append(
            finding(
                "cron_occurrence_differs",
                "request or agent",
                path=schedule.path,
                expected=f"{snapshot.request_hash}, agent {snapshot.agent_id}",
                actual=f"{occurrence.request_hash}, agent {occurrence.agent_id}",
            )
        )
    if schedule.job(occurrence.job_id) is None:
        found.append(finding("cron_job_missing", f"job {occurrence.job_id}", path=schedule.path))
    return tuple(found)
