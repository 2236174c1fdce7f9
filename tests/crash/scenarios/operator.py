"""Kills and faults for every command that writes for an operator, but for those of leases.

Each world holds a project below `root`, and the operator's own folder beside it, also below `root`, so that the order
of calls is judged for the ledger as well. Final states leave out what differs between two honest runs: times, act ids,
signatures, and temporary files of killed runs, which stay by design (invocation.md section 13).
"""

import json
import sqlite3
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from symbi_recover.core.ledger import LEDGER_NAME
from symbi_recover.core.report import KeyUsed
from symbi_recover.read import ledger
from symbi_recover.read.trust import FILE_NAME, TrustEntry, dump, load
from tests.crash.harness import Outcome, Scenario, Workspace, file_hashes
from tests.support.writer.claim import Invocation, claim_name, open_invocation, review
from tests.support.writer.cron import TRIGGER
from tests.support.writer.cron_store import cron_project
from tests.support.writer.project import Project, make_project, put
from tests.support.writer.publication import Publication, prepare_publication, receipt_name
from tests.support.writer.text import INVOCATION, PUBLICATION, SEED, public_key

PROGRAM = (sys.executable, "-m", "symbi_recover")
REPOSITORY = Path(__file__).resolve().parents[3]

KEYS = (public_key(SEED), public_key(bytes(range(1, 33))))
RESOLUTION = f"{claim_name('cli:orga', INVOCATION)}.resolved.json"
RECOVERY = receipt_name("cli:orga", INVOCATION, PUBLICATION)


class World(NamedTuple):
    """What `prepare` made."""

    project: Project
    invocation: Invocation
    publication: Publication | None
    home: Path


def operator_home(root: Path) -> Path:
    """An operator's folder with the marked test key, as `key init` leaves it."""
    home = root / "operator"
    home.mkdir(mode=0o700)
    put(home / "operator.key", SEED)
    put(home / "operator.pub", public_key(SEED).encode() + b"\n")
    return home


def workspace(tmp: Path, world: World, package: Path) -> Workspace:
    """The workspace of a world whose files lie below `tmp/root`."""
    cwd = tmp / "cwd"
    cwd.mkdir()
    env = {"SYMBI_RECOVER_HOME": str(world.home), "HOME": str(tmp / "home"), "PYTHONPATH": str(package)}
    return Workspace(tmp / "root", cwd=cwd, env=env, extra=world)


def world_of(made: Workspace) -> World:
    """The world of a workspace."""
    assert isinstance(made.extra, World)
    return made.extra


def project_in(tmp: Path) -> Project:
    """A project below `tmp/root`."""
    root = tmp / "root"
    root.mkdir(mode=0o700)
    return make_project(root / "p")


def ledger_state(home: Path) -> object:
    """Acts without what differs between honest runs; the ledger must hold whenever it is there."""
    path = home / LEDGER_NAME
    if not path.exists():
        return None
    report = ledger.judge(path.read_bytes(), str(path), key=KeyUsed(public_key(SEED), "given"))
    refused = [found for found in report.findings if found.severity == "refused"]
    assert not refused, refused
    endings = {"done": "reached", "already_done": "reached"}
    return sorted(
        (act.command, endings.get(act.outcome or "open", act.outcome or "open"), len(act.receipts))
        for act in report.acts
        if act.outcome not in ("failed", "refused")
    )


def receipts(project: Project) -> dict[str, Any]:
    """Every receipt in the store without its time and signature; each must be one whole JSON document."""
    found = {}
    for path in sorted(project.invocations.glob("*.json")):
        receipt = json.loads(path.read_bytes())
        assert receipt["payload"].pop("recorded_at"), path
        assert len(receipt["signature"]) == 128, path
        found[path.name] = plain(receipt["payload"])
    return found


def plain(payload: dict[str, Any]) -> object:
    """A payload without what hangs on the folder and the inodes of a world."""
    reviewed = payload.get("review", {})
    return (
        payload["version"],
        reviewed.get("outcome"),
        reviewed.get("rationale"),
        payload.get("created_files"),
    )


class Writing(Scenario):
    """What the commands have in common."""

    package = REPOSITORY
    """Where the program is imported from."""
    may_be_lost = ("store.lock",)
    may_exist = ("store.lock",)
    timeout = 60.0
    kills = 24
    faults = 32

    def evidence(self, workspace: Workspace) -> Mapping[str, str]:
        world = world_of(workspace)
        kept = [world.invocation.claim_path, world.invocation.journal_path, world.project.key]
        kept += [world.home / "operator.key", world.home / "operator.pub"]
        return file_hashes(kept, workspace.root)

    def leftovers(self, workspace: Workspace) -> Collection[str]:
        world = world_of(workspace)
        places = (world.project.invocations, world.home)
        return [path.name for place in places for path in place.glob(".tmp*")]

    def allowed_between(self, workspace: Workspace) -> None:
        """No receipt, or a whole one; a ledger that holds, with at most one act; at most two temporaries."""
        world = world_of(workspace)
        assert len(receipts(world.project)) <= 1
        ledger_state(world.home)
        assert len(self.leftovers(workspace)) <= 2, self.leftovers(workspace)


class Reconcile(Writing):
    """`invocation reconcile` of an interrupted run."""

    name = "reconcile"
    publishes = (RESOLUTION,)

    def prepare(self, tmp: Path) -> Workspace:
        project = project_in(tmp)
        invocation = open_invocation(project).write()
        return self.finished(tmp, project, invocation)

    def finished(self, tmp: Path, project: Project, invocation: Invocation) -> Workspace:
        (tmp / "root" / "review.json").write_text(json.dumps(review(invocation.snapshot_hash())))
        return workspace(tmp, World(project, invocation, None, operator_home(tmp / "root")), self.package)

    def command(self, workspace: Workspace) -> Sequence[str]:
        world = world_of(workspace)
        return [
            *PROGRAM,
            "invocation",
            "reconcile",
            "--project",
            str(world.project.root),
            "--scope",
            world.invocation.scope,
            "--id",
            world.invocation.id,
            "--review",
            str(workspace.root / "review.json"),
        ]

    def final_state(self, workspace: Workspace) -> object:
        world = world_of(workspace)
        return receipts(world.project), ledger_state(world.home)


class ReconcileSchedule(Reconcile):
    """`invocation reconcile` of a scheduled occurrence, with its history."""

    name = "reconcile-cron"
    publishes = (f"{claim_name('scheduler:v1', TRIGGER)}.resolved.json",)
    may_be_lost = ("store.lock", "cron_jobs.db-wal", "cron_jobs.db-shm", "cron_jobs.db")
    may_exist = ("store.lock", "cron_jobs.db-wal", "cron_jobs.db-shm", "cron_jobs.db")
    """SQLite makes and empties its own files; that a commit is durable is its part."""

    def prepare(self, tmp: Path) -> Workspace:
        project = project_in(tmp)
        return self.finished(tmp, project, cron_project(project))

    def final_state(self, workspace: Workspace) -> object:
        return super().final_state(workspace), self.rows(workspace)

    def may_pass_over(self, outcome: Outcome) -> bool:
        """SQLite passes over a failed sync of the folder of a new log; the command syncs database and folder itself."""
        return outcome.hit.startswith("fdatasync", outcome.hit.find(" ") + 1) and "/.symbiont>" in outcome.hit

    def rows(self, workspace: Workspace) -> object:
        path = world_of(workspace).project.state / "cron_jobs.db"
        with closing(sqlite3.connect(path)) as database:
            return (
                database.execute("SELECT invocation_id, state FROM cron_occurrences").fetchall(),
                database.execute(
                    "SELECT status, error, resolution_json IS NOT NULL FROM job_run_log"
                ).fetchall(),
                database.execute("SELECT status, enabled FROM cron_jobs").fetchall(),
            )

    def allowed_between(self, workspace: Workspace) -> None:
        """All three rows changed, or none."""
        super().allowed_between(workspace)
        occurrence, history, job = self.rows(workspace)  # type: ignore[misc]
        changed = {occurrence[0][1] == "reconciled", history[0][0] == "reconciled", job[0][0] == '"Paused"'}
        assert len(changed) == 1, (occurrence, history, job)


class FileRecover(Writing):
    """`invocation file-recover` of a candidate that waits for its name."""

    name = "file-recover"
    publishes = ("report.txt", RECOVERY)
    published_only = ("report.txt",)
    publish = False

    def prepare(self, tmp: Path) -> Workspace:
        project = project_in(tmp)
        invocation = open_invocation(project)
        publication = prepare_publication(invocation, tmp / "root" / "out", publish=self.publish)
        invocation.write()
        return workspace(
            tmp, World(project, invocation, publication, operator_home(tmp / "root")), self.package
        )

    def command(self, workspace: Workspace) -> Sequence[str]:
        world = world_of(workspace)
        assert world.publication is not None
        return [
            *PROGRAM,
            "invocation",
            "file-recover",
            "--project",
            str(world.project.root),
            "--scope",
            world.invocation.scope,
            "--id",
            world.invocation.id,
            "--publication",
            world.publication.id,
            "--snapshot-hash",
            world.invocation.snapshot_hash(),
        ]

    def final_state(self, workspace: Workspace) -> object:
        world = world_of(workspace)
        return receipts(world.project), self.files(workspace), ledger_state(world.home)

    def files(self, workspace: Workspace) -> object:
        """Every file below the output folder, by name; an empty holding folder is not one."""
        out = workspace.root / "out"
        return {
            str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()
        }

    def allowed_between(self, workspace: Workspace) -> None:
        """The one file has one of three names, and never a second one or other bytes."""
        super().allowed_between(workspace)
        publication = world_of(workspace).publication
        assert publication is not None
        names = (
            publication.candidate.name,
            publication.target.name,
            f".symbi-recover-{publication.id}/candidate",
        )
        assert self.files(workspace) in [{name: b"verified-output"} for name in names], self.files(workspace)
        if receipts(world_of(workspace).project):
            assert publication.target.exists()


class FileAcknowledge(FileRecover):
    """`invocation file-recover` of a file that has its name already."""

    name = "file-acknowledge"
    publishes = (RECOVERY,)
    publish = True


class DraftReview(Writing):
    """`invocation draft-review`, with an effect listed beside it."""

    name = "draft-review"
    publishes = ("review.json", "review.effects.txt")

    def prepare(self, tmp: Path) -> Workspace:
        project = project_in(tmp)
        invocation = open_invocation(project)
        publication = prepare_publication(invocation, tmp / "root" / "out")
        invocation.write()
        (tmp / "root" / "drafts").mkdir()
        put(tmp / "root" / "workers.txt", b"none\n")
        return workspace(
            tmp, World(project, invocation, publication, operator_home(tmp / "root")), self.package
        )

    def command(self, workspace: Workspace) -> Sequence[str]:
        world = world_of(workspace)
        return [
            *PROGRAM,
            "invocation",
            "draft-review",
            "--project",
            str(world.project.root),
            "--scope",
            world.invocation.scope,
            "--id",
            world.invocation.id,
            "--outcome",
            "failed",
            "--evidence",
            str(workspace.root / "workers.txt"),
            "--output",
            str(workspace.root / "drafts" / "review.json"),
        ]

    def final_state(self, workspace: Workspace) -> object:
        drafts = workspace.root / "drafts"
        made = {path.name for path in drafts.iterdir() if not path.name.startswith(".tmp")}
        shape = None
        if "review.json" in made:
            written = json.loads((drafts / "review.json").read_bytes())
            shape = written["outcome"], written["effects_stopped"], len(written["evidence"])
        return made, shape

    def leftovers(self, workspace: Workspace) -> Collection[str]:
        return [path.name for path in (workspace.root / "drafts").glob(".tmp*")]


class KeyInit(Scenario):
    """`key init` in a folder that is made as well."""

    name = "key-init"
    package = REPOSITORY
    publishes = ("operator.key", "operator.pub")

    def prepare(self, tmp: Path) -> Workspace:
        root = tmp / "root"
        root.mkdir(mode=0o700)
        cwd = tmp / "cwd"
        cwd.mkdir()
        env = {"SYMBI_RECOVER_HOME": str(root / "a" / "operator"), "PYTHONPATH": str(self.package)}
        return Workspace(root, cwd=cwd, env=env)

    def command(self, workspace: Workspace) -> Sequence[str]:
        return [*PROGRAM, "key", "init"]

    def final_state(self, workspace: Workspace) -> object:
        """Which files are there, and that they belong together."""
        home = workspace.root / "a" / "operator"
        if not home.exists():
            return None
        made = {path.name: path.read_bytes() for path in home.iterdir() if not path.name.startswith(".tmp")}
        seed, noted = made.get("operator.key"), made.get("operator.pub")
        fits = seed is not None and len(seed) == 32 and noted == public_key(seed).encode() + b"\n"
        return sorted(made), fits, oct(home.stat().st_mode & 0o777)

    def evidence(self, workspace: Workspace) -> Mapping[str, str]:
        return {}

    def allowed_between(self, workspace: Workspace) -> None:
        """A key that is there is whole."""
        key = workspace.root / "a" / "operator" / "operator.key"
        assert not key.exists() or len(key.read_bytes()) == 32

    def leftovers(self, workspace: Workspace) -> Collection[str]:
        return [path.name for path in (workspace.root / "a").rglob(".tmp*")]


class KeyImport(KeyInit):
    """`key import` of a key in PEM form."""

    name = "key-import"

    def prepare(self, tmp: Path) -> Workspace:
        made = super().prepare(tmp)
        key = Ed25519PrivateKey.from_private_bytes(SEED)
        put(made.root / "id.pem", key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return made

    def command(self, workspace: Workspace) -> Sequence[str]:
        return [*PROGRAM, "key", "import", str(workspace.root / "id.pem")]

    def final_state(self, workspace: Workspace) -> object:
        key = workspace.root / "a" / "operator" / "operator.key"
        return super().final_state(workspace), key.exists() and key.read_bytes() == SEED

    def evidence(self, workspace: Workspace) -> Mapping[str, str]:
        return file_hashes([workspace.root / "id.pem"], workspace.root)


class TrustAdd(Scenario):
    """`trust add` to a list that is there. The list is replaced as a whole, under a lock."""

    name = "trust-add"
    publishes = (FILE_NAME,)
    may_exist = (FILE_NAME,)
    kept, asked = KEYS[:1], KEYS[1]
    ends = KEYS

    def prepare(self, tmp: Path) -> Workspace:
        root = tmp / "root"
        home = root / "operator"
        home.mkdir(mode=0o700, parents=True)
        entries = (TrustEntry(public_key=key, added_at="2026-03-04T05:06:07Z") for key in self.kept)
        put(home / FILE_NAME, dump(tuple(entries)))
        cwd = tmp / "cwd"
        cwd.mkdir()
        return Workspace(root, cwd=cwd, env={"SYMBI_RECOVER_HOME": str(home), "PYTHONPATH": str(REPOSITORY)})

    def command(self, workspace: Workspace) -> Sequence[str]:
        return [*PROGRAM, "trust", "add", self.asked]

    def pinned(self, workspace: Workspace) -> tuple[str, ...]:
        """The keys that the list pins; it must be whole."""
        return tuple(
            entry.public_key for entry in load(str(workspace.root / "operator" / FILE_NAME), required=True)
        )

    def final_state(self, workspace: Workspace) -> object:
        return self.pinned(workspace)

    def evidence(self, workspace: Workspace) -> Mapping[str, str]:
        return {}

    def allowed_between(self, workspace: Workspace) -> None:
        """The list as it was, or as it is to be."""
        assert self.pinned(workspace) in (self.kept, self.ends)

    def leftovers(self, workspace: Workspace) -> Collection[str]:
        return [path.name for path in (workspace.root / "operator").glob(".*")]


class TrustRemove(TrustAdd):
    """`trust remove` of one of two; a second run finds no such entry."""

    name = "trust-remove"
    kept, asked = KEYS, KEYS[1]
    ends = KEYS[:1]

    def command(self, workspace: Workspace) -> Sequence[str]:
        return [*PROGRAM, "trust", "remove", self.asked]


SCENARIOS: tuple[Scenario, ...] = (
    Reconcile(),
    ReconcileSchedule(),
    FileRecover(),
    FileAcknowledge(),
    DraftReview(),
    KeyInit(),
    KeyImport(),
    TrustAdd(),
    TrustRemove(),
)
