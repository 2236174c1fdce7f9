"""What each runbook finds when the operator arrives: a folder with the incident in it, and the values of its words.

A workspace is made fresh for every walk below a temporary folder. `values` gives the placeholders of the runbook their
values; `by_hand` has the acts that a person does without this program, such as completing a review in an editor.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.read.live import child
from tests.support.daemon_double import daemon_double
from tests.support.daemon_world import Container, World
from tests.support.writer import cron, lease
from tests.support.writer.claim import claim_record, open_invocation
from tests.support.writer.cron_store import cron_store, text_of
from tests.support.writer.effects import network_request_started
from tests.support.writer.events import started, terminated
from tests.support.writer.journal import JournalWriter
from tests.support.writer.project import Project, make_project, put
from tests.support.writer.publication import Publication, begin_call, prepare_publication
from tests.support.writer.text import AGENT, RUN, SEED, plain_hash, public_key, uid

OTHER_SEED = bytes(range(1, 33))
HOLDER = """
import fcntl, os, sys
held = os.open(sys.argv[1], os.O_RDWR)
fcntl.flock(held, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


class Workspace:
    """An incident: where commands run, what the placeholders mean, and what is done by hand."""

    def __init__(self, root: Path, cleanup: ExitStack) -> None:
        self.root = root
        self.cleanup = cleanup
        # A lease store needs a short path, because its socket lies in it.
        self.short = Path(cleanup.enter_context(TemporaryDirectory(prefix="runbook-")))
        self.leases = self.short / "leases"
        self.values: dict[str, str] = {"COPY": "copy", "STATE_DIR": str(self.leases)}
        self.by_hand: dict[str, Callable[[], object]] = {}

    def project(self, **options: Any) -> Project:
        """Make the project, whose key the operator has from elsewhere."""
        made = make_project(self.root / "project", **options)
        self.values |= {"PROJECT": str(made.root), "KEY": made.public_key}
        return made

    def hold(self, lock: Path) -> None:
        """Let another process hold a lock until the walk ends or `release` is done by hand."""
        holder = self.cleanup.enter_context(child(HOLDER, str(lock)))
        assert holder.answer() == "held"

        def release() -> None:
            assert holder.process.stdin is not None
            holder.process.stdin.close()
            assert holder.process.wait(timeout=20) == 0

        self.by_hand["stop-the-owner"] = release


def complete_review(path: Path) -> None:
    """Set the attestation, as the operator does in an editor."""
    review = json.loads(path.read_text())
    review["effects_stopped"] = True
    path.write_text(json.dumps(review, indent=2) + "\n")


def interrupted_run(space: Workspace) -> None:
    """A scheduled run whose host died after two effects had begun; the job waits in the dead-letter state."""
    project = space.project()
    due = cron.occurrence()
    run = cron.scheduled_invocation(project, due)
    call = begin_call(run.journal, "call_1", "http_post")
    call.effect(network_request_started())
    run.journal.tail()
    run.write()
    with cron_store(project.state / "cron_jobs.db", owner=project.root) as store:
        store.add_job(due["job"], status='"DeadLetter"', enabled=0, failure_count=1)
        store.add_occurrence(due)
        store.add_history(due, admission_audit_json=text_of(run.reference))
    lease.make_state(space.leases)
    put(space.root / "answer-of-receiver.txt", b"No request arrived between 05:00 and 06:00.\n")
    space.by_hand["complete-the-review"] = lambda: complete_review(space.root / "review.json")


def _publication(space: Workspace, **options: Any) -> Publication:
    run = open_invocation(space.project())
    made = prepare_publication(run, run.project.root / "out", **options)
    run.write()
    return made


def publication_ready(space: Workspace) -> None:
    """The candidate is complete, the final name is free."""
    _publication(space)


def publication_unrecorded(space: Workspace) -> None:
    """The rename was done, the record of it was not."""
    _publication(space, publish=True)


def publication_missing(space: Workspace) -> None:
    """Neither name is there."""
    _publication(space).candidate.unlink()


def publication_conflict(space: Workspace) -> None:
    """Somebody else's file has the final name."""
    put(_publication(space).target, b"another report")


def publication_renumbered(space: Workspace) -> None:
    """After a reboot the file system has another device number; everything else is as it was signed."""
    run = open_invocation(space.project())
    before = prepare_publication(run, run.project.root / "out")
    fields: dict[str, Any] = {
        name: [before.intent[name][0] + 1, before.intent[name][1]]
        for name in ("parent_identity", "candidate_identity")
    }
    again = open_invocation(run.project)
    prepare_publication(again, again.project.root / "out", **fields)
    again.write()


def _journal(seed: bytes = SEED) -> JournalWriter:
    journal = JournalWriter(seed, AGENT, RUN)
    journal.append(started())
    begin_call(journal, "call_1", "http_post").finish()
    journal.append(terminated(), 1)
    return journal


def _suspect(space: Workspace, journal: JournalWriter, data: bytes) -> None:
    """Put a journal as it was found, and the head that an earlier report noted."""
    space.values |= {
        "JOURNAL": put(space.root / journal.name, data).name,
        "KEY": public_key(SEED),
        "HEAD": f"{journal.sequence - 1}:{plain_hash(journal.lines[-1])}",
    }


def journal_altered(space: Workspace) -> None:
    """One word of one record was changed afterwards."""
    journal = _journal()
    _suspect(
        space, journal, journal.data().replace(b'"tool_name":"http_post"', b'"tool_name":"http_get_"', 1)
    )


def journal_cut(space: Workspace) -> None:
    """The last record is gone; what is left verifies."""
    journal = _journal()
    _suspect(space, journal, b"".join(journal.lines[:-1]))


def journal_foreign(space: Workspace) -> None:
    """The whole journal is signed with another key than the project's."""
    journal = _journal(OTHER_SEED)
    _suspect(space, journal, journal.data())


def store_blocked(space: Workspace) -> None:
    """An editor's copy with open mode, a left-over temporary and a torn claim lie among the claims."""
    run = open_invocation(space.project()).write()
    put(run.project.invocations / "notes.txt", b"look into this\n", 0o644)
    put(run.project.invocations / ".tmpA1b2C3", b'{"payload":')
    torn = open_invocation(run.project, invocation_id=uid("invocation", "torn"))
    record = claim_record(torn.scope, torn.id, torn.request_hash, AGENT, RUN)
    put(torn.claim_path, record[:40])


def store_full(space: Workspace) -> None:
    """As many bytes as the store may hold, most of them in a file that a killed writer left; it takes up no room."""
    run = open_invocation(space.project()).write()
    os.truncate(put(run.project.invocations / ".tmpA1b2C3", b""), (64 << 20) - 1000)
    put(space.root / "worker-list.txt", b"no worker\n")
    space.by_hand["complete-the-review"] = lambda: complete_review(space.root / "review.json")


def lease_store_blocked(space: Workspace) -> None:
    """Among good records: one that cannot be read, a stray file, and a record being written."""
    path = lease.make_state(
        space.leases,
        lease.record(lease.lease_uid(1), lease.created()),
        lease.record(lease.lease_uid(2), lease.uncertain()),
    )
    backup = space.root / "backup"
    backup.mkdir(mode=0o700)
    good = lease.write_record(backup, lease.record(lease.lease_uid(3), lease.vm_created()))
    put(path / good.name, good.read_bytes()[:10])
    put(path / "notes.json", b"{}", 0o644)
    lease.write_leftover(path, lease.record(lease.lease_uid(4)))


def live_claim(space: Workspace) -> None:
    """The process that runs the invocation is alive."""
    run = open_invocation(space.project())
    begin_call(run.journal)
    run.write()
    space.hold(run.claim_path)


def live_helper(space: Workspace) -> None:
    """The helper runs and supervises its leases."""
    number, world = lease.lease_uid(1), World()
    labels = {"ai.symbiont.lease": number}
    world.containers.append(Container(id=lease.CONTAINER, name=f"symbi-{number}", labels=labels))
    engine = space.cleanup.enter_context(daemon_double(space.short / "engine", world))
    environment = {"DOCKER_HOST": engine.base_url, "PATH": "/usr/bin:/bin"}
    record = lease.record(number, lease.created(), docker_environment=environment)
    space.hold(lease.make_state(space.leases, record) / "supervisor.lock")
    space.cleanup.callback(engine.assert_only_gets)


MAKERS: dict[str, Callable[[Workspace], None]] = {
    maker.__name__.replace("_", "-"): maker
    for maker in (
        interrupted_run,
        publication_ready,
        publication_unrecorded,
        publication_missing,
        publication_conflict,
        publication_renumbered,
        journal_altered,
        journal_cut,
        journal_foreign,
        store_blocked,
        store_full,
        lease_store_blocked,
        live_claim,
        live_helper,
    )
}


@contextmanager
def workspace(name: str, root: Path) -> Iterator[Workspace]:
    """Make the workspace called `name` below an existing folder, and end what it started."""
    with ExitStack() as cleanup:
        made = Workspace(root, cleanup)
        MAKERS[name](made)
        yield made
