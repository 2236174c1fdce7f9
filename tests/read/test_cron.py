"""Looking at schedule databases: the rows, what is odd about them, and that no trace is left."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from symbi_recover.core.claims import Snapshot
from symbi_recover.core.errors import RecoverError, UnexaminedError
from symbi_recover.core.scalars import UUID
from symbi_recover.core.schedules import Schedule
from symbi_recover.read.cron import default_path, link, read_schedule, schedule_of
from symbi_recover.read.evidence import database
from symbi_recover.wire.claim import parse
from tests.read.live import child
from tests.support.cli import run
from tests.support.evidence import fingerprint
from tests.support.mounts import without_root
from tests.support.writer import cron
from tests.support.writer.claim import Invocation
from tests.support.writer.cron_store import cron_project, cron_store
from tests.support.writer.project import Project, make_project, put

WRITER = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute(f"PRAGMA journal_mode={sys.argv[2]}")
database.execute("PRAGMA cache_size=2")
if "inside" in sys.argv:
    database.execute("BEGIN IMMEDIATE")
database.execute("UPDATE cron_occurrences SET state = 'succeeded'")
database.execute("CREATE TABLE IF NOT EXISTS filler (a)")
for _ in range(500 if "inside" in sys.argv else 30):
    database.execute("INSERT INTO filler VALUES (?)", ("x" * 500,))
print("ready", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "p")


def look(project: Project) -> Schedule:
    return read_schedule(default_path(str(project.root)), str(project.root))


def codes(schedule: Schedule) -> set[str]:
    return {finding.code for finding in schedule.findings}


def snapshot(invocation: Invocation) -> Snapshot:
    import msgspec

    return msgspec.convert(invocation.snapshot(), Snapshot, str_keys=False)


@pytest.mark.parametrize("options", [{}, {"wal": False}, {"leave_wal": True}, {"added": False}], ids=str)
def test_jobs_occurrences_and_history_are_read_in_every_journal_mode(
    project: Project, options: dict[str, bool]
) -> None:
    invocation = cron_project(project, **options)
    before = fingerprint(project.root)
    schedule = look(project)
    assert fingerprint(project.root) == before
    occurrence = schedule.occurrence(UUID(invocation.id))
    assert occurrence is not None
    assert (occurrence.state, occurrence.fault) == ("unresolved", None)
    assert occurrence.request_hash == invocation.request_hash
    history = schedule.history(UUID(invocation.id))
    assert history is not None
    assert (history.status, history.error) == ("unresolved", "lost effect")
    job = schedule.job(occurrence.job_id)
    assert job is not None
    assert (job.status, job.enabled, job.paused, job.blocked_by) == (
        "DeadLetter",
        False,
        False,
        (invocation.id,),
    )
    assert schedule.owner == str(project.root)
    assert codes(schedule) == {"cron_job_blocked"} | (
        {"cron_log_pending"} if options.get("leave_wal") else set()
    )
    assert link(schedule, snapshot(invocation)) == ()


def test_a_paused_job_is_told_from_a_dead_one(project: Project) -> None:
    frozen = cron.occurrence()
    with cron_store(project.state / "cron_jobs.db", project.root) as store:
        store.add_job(frozen["job"], status='"Paused"', enabled=0)
    (job,) = look(project).jobs
    assert job.paused


@pytest.mark.parametrize("mode", ["WAL", "DELETE", "PERSIST"])
@pytest.mark.parametrize("where", ["inside", "after"])
def test_a_database_beside_a_live_writer_is_read_without_a_trace(
    project: Project, mode: str, where: str
) -> None:
    invocation = cron_project(project)
    path = project.state / "cron_jobs.db"
    with child(WRITER, str(path), mode, where) as writer:
        assert writer.answer() == "ready"
        before = fingerprint(project.state)
        schedule = look(project)
        assert fingerprint(project.state) == before
        occurrence = schedule.occurrence(UUID(invocation.id))
        assert occurrence is not None
        assert occurrence.state == ("unresolved" if where == "inside" else "succeeded")


@pytest.mark.parametrize("mode", ["WAL", "DELETE", "PERSIST"])
def test_a_writer_that_was_killed_inside_a_transaction_left_the_state_before_it(
    project: Project, mode: str
) -> None:
    invocation = cron_project(project)
    path = project.state / "cron_jobs.db"
    with child(WRITER, str(path), mode, "inside") as writer:
        assert writer.answer() == "ready"
        writer.process.kill()
        writer.process.wait()
    before = fingerprint(project.state)
    schedule = look(project)
    assert fingerprint(project.state) == before
    occurrence = schedule.occurrence(UUID(invocation.id))
    assert occurrence is not None
    assert occurrence.state == "unresolved"
    assert ("cron_rollback_pending" in codes(schedule)) is (mode != "WAL")
    # F-138: whoever looks at the invocation is told, in either form.
    words = (
        "invocation",
        "inspect",
        "--project",
        project.root,
        "--scope",
        invocation.scope,
        "--id",
        invocation.id,
    )
    for form, said in (("text", lambda ran: ran.out), ("json", lambda ran: ran.err)):
        told = said(run(*words, "--format", form))
        assert (b"cron_rollback_pending" in told) is (mode != "WAL"), told
    assert fingerprint(project.state) == before


@pytest.mark.parametrize("leave_wal", [True, False])
def test_it_works_in_a_folder_that_nobody_may_write_to(leave_wal: bool) -> None:
    """F-135; not as root, whom no mode keeps from writing. The place is one that every account can reach."""
    with TemporaryDirectory(prefix="cron-", dir="/tmp") as made:
        project = make_project(Path(made) / "p")
        invocation = cron_project(project, leave_wal=leave_wal)
        assert look(project).occurrence(UUID(invocation.id)) is not None
        project.state.chmod(0o500)

        def again() -> bool:
            with pytest.raises(PermissionError):
                (project.state / "new").touch()
            return look(project).occurrence(UUID(invocation.id)) is not None

        assert without_root(Path(made), again)
        project.state.chmod(0o700)


def spoil_text(database: sqlite3.Connection) -> None:
    database.execute("UPDATE cron_occurrences SET request_json = replace(request_json, 'hourly', 'daily')")


def no_json(database: sqlite3.Connection) -> None:
    database.execute("UPDATE cron_occurrences SET request_json = 'nonsense'")


def blob(database: sqlite3.Connection) -> None:
    database.execute("UPDATE cron_occurrences SET request_json = x'ff00'")


def oversized(database: sqlite3.Connection) -> None:
    database.execute("UPDATE cron_occurrences SET request_json = ?", ("x" * 1_048_577,))


def bad_state(database: sqlite3.Connection) -> None:
    database.execute("UPDATE cron_occurrences SET state = 'finished'")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (spoil_text, "occurrence fingerprint mismatch"),
        (no_json, "expected"),
        (blob, "expected"),
        (oversized, "oversized occurrence record"),
        (bad_state, "invalid occurrence state"),
    ],
)
def test_an_occurrence_that_cannot_be_relied_on_is_a_finding(
    project: Project, spoil: Callable[[sqlite3.Connection], None], words: str
) -> None:
    invocation = cron_project(project)
    connection = sqlite3.connect(project.state / "cron_jobs.db")
    spoil(connection)
    connection.commit()
    connection.close()
    schedule = look(project)
    occurrence = schedule.occurrence(UUID(invocation.id))
    assert occurrence is not None
    assert words in (occurrence.fault or "")
    assert "cron_occurrence_invalid" in codes(schedule)


def test_what_the_claim_and_the_occurrence_do_not_agree_on_is_a_finding(project: Project) -> None:
    invocation = cron_project(project)
    connection = sqlite3.connect(project.state / "cron_jobs.db")
    connection.execute("UPDATE cron_occurrences SET request_hash = 'sha256:other'")
    connection.execute("DELETE FROM cron_jobs")
    connection.commit()
    connection.close()
    found = {finding.code for finding in link(look(project), snapshot(invocation))}
    assert found == {"cron_occurrence_differs", "cron_job_missing"}
    other = parse(invocation.claim_path.read_bytes()).claim
    assert other is not None
    connection = sqlite3.connect(project.state / "cron_jobs.db")
    connection.execute("DELETE FROM cron_occurrences")
    connection.commit()
    connection.close()
    assert [f.code for f in link(look(project), snapshot(invocation))] == ["cron_occurrence_missing"]


def test_a_store_of_nobody_and_a_store_of_another_project_are_findings(
    project: Project, tmp_path: Path
) -> None:
    with cron_store(project.state / "cron_jobs.db"):
        pass
    assert "cron_store_unowned" in codes(look(project))
    with cron_store(tmp_path / "other.db", "/srv/elsewhere"):
        pass
    assert "cron_store_foreign" in codes(read_schedule(str(tmp_path / "other.db"), str(project.root)))


def test_a_run_of_an_older_release_is_a_finding(project: Project) -> None:
    frozen = cron.occurrence()
    with cron_store(project.state / "cron_jobs.db", project.root, added=False) as store:
        store.add_job(frozen["job"])
        store.add_history(frozen, "running")
    assert "cron_legacy_run" in codes(look(project))


@pytest.mark.parametrize("suffix", ["", "-wal", "-journal", "-shm"])
def test_loose_rights_are_findings(project: Project, suffix: str) -> None:
    cron_project(project, leave_wal=True)
    path = project.state / f"cron_jobs.db{suffix}"
    if not path.exists():
        put(path, b"")
    path.chmod(0o644)
    assert "cron_store_not_private" in codes(look(project))


@pytest.mark.parametrize(
    "content", [b"", b"no database", b"SQLite format 3\0" + b"\xff" * 4096, b"\0" * 8192]
)
def test_what_is_no_database_is_refused_without_a_traceback(project: Project, content: bytes) -> None:
    put(project.state / "cron_jobs.db", content)
    with pytest.raises(RecoverError) as caught:
        look(project)
    assert caught.value.code == "cron_store_unreadable"


def test_a_database_of_something_else_is_refused(project: Project) -> None:
    connection = sqlite3.connect(project.state / "cron_jobs.db")
    connection.execute("CREATE TABLE t (a)")
    connection.commit()
    connection.close()
    (project.state / "cron_jobs.db").chmod(0o600)
    with pytest.raises(RecoverError, match="lacks the tables"):
        look(project)


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n WHERE x < 0"


def test_work_without_end_is_stopped(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_MOST_STEPS", 50)
    cron_project(project)
    copy = database.read_copy(default_path(str(project.root)))
    with pytest.raises(RecoverError, match="interrupted"), copy.opened() as connection:
        connection.execute(ENDLESS).fetchall()


def test_a_view_in_place_of_a_table_is_not_read(project: Project) -> None:
    cron_project(project)
    connection = sqlite3.connect(project.state / "cron_jobs.db")
    connection.execute("DROP TABLE cron_jobs")
    connection.execute(f"CREATE VIEW cron_jobs AS {ENDLESS}")
    connection.commit()
    connection.close()
    with pytest.raises(RecoverError, match="lacks the tables"):
        look(project)


@pytest.mark.parametrize("kind", ["fifo", "folder", "link", "dangling"])
def test_what_is_no_regular_file_is_refused_at_once(project: Project, kind: str, tmp_path: Path) -> None:
    path = project.state / "cron_jobs.db"
    make = {
        "fifo": lambda: os.mkfifo(path, 0o600),
        "folder": path.mkdir,
        "link": lambda: path.symlink_to(put(tmp_path / "real.db", b"")),
        "dangling": lambda: path.symlink_to("/nowhere"),
    }
    make[kind]()
    with pytest.raises(RecoverError):
        look(project)


def test_no_schedule_is_no_schedule(project: Project) -> None:
    assert schedule_of(str(project.root)) is None
    with pytest.raises(UnexaminedError) as caught:
        look(project)
    assert caught.value.code == "cron_store_missing"


def test_a_database_larger_than_the_bound_is_refused_before_it_is_read(project: Project) -> None:
    path = put(project.state / "cron_jobs.db", b"")
    os.truncate(path, 1 << 40)
    with pytest.raises(RecoverError) as caught:
        look(project)
    assert caught.value.code == "cron_store_too_large"


def test_sqlite_is_only_loaded_when_a_schedule_is_read() -> None:
    code = "import symbi_recover.cli.reading.invocations, sys; sys.exit('sqlite3' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
