"""A place with everything that commands read, for tests that show that reading changes nothing.

`make_world` lays out below one folder, whose path claims and lease records then name:

| folder | what |
|---|---|
| `evidence` | the runtime's own evidence, as packed |
| `publishing` | a project with one run for each state of a publication |
| `settled` | a project with a recorded run, and with acts of an operator in receipts |
| `cron`, `cron-killed` | a schedule whose user closed it, and one whose user was killed: `-wal` and `-shm` are left |
| `odd` | a project with a torn claim, a stray file and an open mode |
| `leases` | a lease store: each phase, an origin, staging; its engine answers at `engine.sock` |
| `blocked` | a lease store with a tombstone and a name that no record has |
| `spoilt` | a lease store with a good record among bad ones: loose, linked, huge, a link, a FIFO, another's, none |
| `helped` | a lease store that a helper is to supervise |
| `home` | the operator's folder: key, pinned key, ledger, made by this program |

`served` plays engine and helper. Whoever uses a world must not change it.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.cli import run
from tests.support.daemon_double import DaemonDouble, daemon_double
from tests.support.daemon_world import Container, World
from tests.support.evidence import unpack
from tests.support.helper_double import helper_double
from tests.support.writer import cron, lease
from tests.support.writer.claim import Invocation, open_invocation, review
from tests.support.writer.cron_store import cron_project
from tests.support.writer.events import terminated
from tests.support.writer.project import Project, make_project, put
from tests.support.writer.publication import begin_call, prepare_publication
from tests.support.writer.text import SEED, compact, public_key, uid

KEY = public_key(SEED)
SCOPE = "cli:orga"
STATES = ("ready", "unrecorded", "finished", "missing", "conflict", "recovered")
"""The publications of `publishing`, one a run."""
RECORDED, RECONCILED, UNRESOLVED = (uid("id", name) for name in ("recorded", "reconciled", "unresolved"))
"""The invocations of `settled`."""
SCHEDULED = cron.TRIGGER
CREATED, TOMBSTONE = lease.lease_uid(1), lease.lease_uid(2)
ENGINE, HELPER = "engine.sock", "helped/supervisor.sock"
"""Sockets that are served, relative to the world."""


def environment(root: Path) -> dict[str, str]:
    """What a command needs to find the operator's folder of a world."""
    return {"SYMBI_RECOVER_HOME": str(root / "home")}


def publication(state: str) -> tuple[str, str]:
    """The ids of invocation and publication that are in a state."""
    return uid("id", state), uid("publication", state)


def make_world(root: Path) -> Path:
    """Lay everything out below an existing folder; give it back, resolved."""
    root = root.resolve()
    unpack(root / "evidence")
    projects = {name: make_project(root / name) for name in ("publishing", "settled", "odd")}
    _act(root, "key", "init")
    _act(root, "trust", "add", KEY, "--comment", "from ticket 17")
    _publish(projects["publishing"], root)
    _settle(projects["settled"], root)
    _spoil(projects["odd"])
    for name, kept in (("cron", False), ("cron-killed", True)):
        cron_project(make_project(root / name), leave_wal=kept)
    _lease(projects["settled"], root)
    return root


@contextmanager
def served(root: Path, owner: int | None = None) -> Iterator[DaemonDouble]:
    """Play the engine and the helper of a world for the block; give everything in it to `owner` if there is one."""
    world = World()
    labels = {"ai.symbiont.lease": CREATED}
    world.containers.append(Container(id=lease.CONTAINER, name=f"symbi-{CREATED}", labels=labels))
    with daemon_double(root / ENGINE, world) as engine:
        if owner is not None:
            for path in [root, *root.rglob("*")]:
                os.chown(path, owner, owner, follow_symlinks=False)
        with helper_double(root / "helped", run_as=owner):
            yield engine


def _act(root: Path, *arguments: str | Path) -> None:
    """Let the program write, as an operator does."""
    ran = run(*arguments, env=environment(root))
    assert ran.rc == 0, ran.err


def _invocation(project: Project, name: str) -> Invocation:
    return open_invocation(project, SCOPE, uid("id", name), run_id=uid("run", name))


def _publish(project: Project, root: Path) -> None:
    for state in STATES:
        run = _invocation(project, state)
        made = prepare_publication(
            run,
            project.root / "out",
            f"{state}.txt",
            publication_id=publication(state)[1],
            publish=state in ("unrecorded", "finished"),
            finished=True if state == "finished" else None,
            dispatch_finished=state == "finished",
        )
        run.write()
        if state == "missing":
            made.candidate.unlink()
        elif state == "conflict":
            put(made.target, b"another report")
        elif state == "recovered":
            who = ["--project", str(project.root), "--scope", run.scope, "--id", run.id]
            consent = ["--publication", made.id, "--snapshot-hash", run.snapshot_hash()]
            _act(root, "invocation", "file-recover", *who, *consent)


def _settle(project: Project, root: Path) -> None:
    recorded = _invocation(project, "recorded")
    recorded.journal.append(terminated())
    recorded.write(result={"output": "done"})
    waiting = _invocation(project, "unresolved").write()
    put(root / "draft.json", compact(review(waiting.snapshot_hash(), effects_stopped=False)))
    run = _invocation(project, "reconciled").write()
    completed = put(root / "review.json", compact(review(run.snapshot_hash())))
    who = ["--project", str(project.root), "--scope", run.scope, "--id", run.id]
    _act(root, "invocation", "reconcile", *who, "--review", completed)


def _spoil(project: Project) -> None:
    torn = _invocation(project, "torn")
    put(torn.claim_path, torn.records()[:40])
    _invocation(project, "loose").write().claim_path.chmod(0o644)
    put(project.invocations / "notes.txt", b"look into this\n")


def _lease(project: Project, root: Path) -> None:
    run = _invocation(project, "leased")
    call = begin_call(run.journal)
    run.write()
    origin = lease.origin(
        run_id=str(run.journal.run_id),
        dispatch_id=call.dispatch_id,
        call_fingerprint=call.fingerprint,
    )
    engine = {"docker_environment": {"DOCKER_HOST": f"unix://{root / ENGINE}", "PATH": "/usr/bin:/bin"}}
    numbers = [lease.lease_uid(number) for number in range(8)]
    store = lease.make_state(
        root / "leases",
        lease.record(CREATED, lease.created(), origin=origin, **engine),
        lease.record(TOMBSTONE, lease.uncertain(), origin=lease.origin(), **engine),
        lease.record(numbers[3], lease.creating(), **engine),
        lease.record(numbers[4], lease.vm_created()),
        lease.record(numbers[5], lease.vm_creating()),
        lease.record(numbers[6], lease.host_created(numbers[6])),
        lease.record(numbers[7], lease.host_creating()),
    )
    lease.stage(store, uid("snapshot"))
    lease.write_leftover(store, lease.record(lease.lease_uid(9)))
    lease.make_state(root / "helped")
    blocked = lease.make_state(root / "blocked", lease.record(TOMBSTONE, lease.uncertain(), **engine))
    put(blocked / "notes.json", b"{}")
    _spoil_store(lease.make_state(root / "spoilt", lease.record(TOMBSTONE, lease.uncertain(), **engine)))


def _spoil_store(store: Path) -> None:
    bad = [store / f"{lease.lease_uid(number)}.json" for number in range(20, 27)]
    put(bad[0], compact(lease.record(bad[0].stem)), 0o644)
    os.link(put(bad[1], compact(lease.record(bad[1].stem))), store / "second-name")
    put(bad[2], b" " * 200_000)
    bad[3].symlink_to("/dev/zero")
    os.mkfifo(bad[4], 0o600)
    put(bad[5], compact(lease.record()))
    put(bad[6], b"")
