"""Kills and faults for the lease commands that write, against the daemon double.

At every call the store must be one that the helper accepts, a record may be gone only when its container is (reconcile)
or when a signed intent says why (retire), the container of another lease is there, and the same command ends the work.
A witness is whole or not there, and what is left of a fence is known by its note to the end.
"""

import hashlib
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from symbi_recover.core.fences import FENCE_LABEL, NONCE_LABEL, FenceNote
from symbi_recover.core.ledger import LEDGER_NAME
from symbi_recover.core.report import KeyUsed
from symbi_recover.core.witness import DirectoryIdentity, EngineIdentity, RecordIdentity, Witness
from symbi_recover.read import ledger
from symbi_recover.read.retirement.notes import (
    FENCES,
    RECONCILIATIONS,
    RETIREMENTS,
    SUFFIX,
    WITNESSES,
    decoded,
    read_own,
)
from symbi_recover.read.verify.lease_judge import judge
from symbi_recover.read.verify.lease_store import read_store
from symbi_recover.wire import canonical
from symbi_recover.wire.retirement import encode
from symbi_recover.write.fence import note_name
from tests.crash.drivers.lease import BORN_NS
from tests.crash.harness import Outcome, Scenario, Workspace, file_hashes
from tests.support.daemon_double import DaemonDouble
from tests.support.daemon_world import World as Played
from tests.support.writer import lease as writer
from tests.support.writer.text import SEED, public_key

REPOSITORY = Path(__file__).resolve().parents[3]
LABEL = "ai.symbiont.lease"
OWNED, GONE, OTHER = (writer.lease_uid(number) for number in (1, 2, 3))
NEIGHBOUR = f"symbi-{OWNED}-old"


class Made(msgspec.Struct):
    """What `prepare` made."""

    store: Path
    home: Path
    double: DaemonDouble
    socket_folder: Path
    confirm: str = ""


def made_of(workspace: Workspace) -> Made:
    """The world of a workspace."""
    assert isinstance(workspace.extra, Made)
    return workspace.extra


class LeaseScenario(Scenario):
    """What both commands have in common. The root has a short name of its own, for the sake of socket paths."""

    timeout = 90.0
    kills = 9
    faults = 9
    leases: tuple[str, ...] = ()

    def prepare(self, tmp: Path) -> Workspace:
        root = Path(tempfile.mkdtemp(prefix="cl-"))
        folder = Path(tempfile.mkdtemp(prefix="cd-"))
        played = Played()
        double = DaemonDouble(str(folder / "s"), played)
        store = writer.make_state(root / "s")
        home = root / "operator"
        home.mkdir(mode=0o700)
        for name, data in (("operator.key", SEED), ("operator.pub", public_key(SEED).encode() + b"\n")):
            (home / name).write_bytes(data)
            (home / name).chmod(0o600)
        made = Made(store, home, double, folder)
        played.add(NEIGHBOUR, {LABEL: OTHER})
        for lease in self.leases:
            self.record(made, lease)
        self.furnish(made, played, root)
        cwd = tmp / "cwd"
        cwd.mkdir()
        env = {"SYMBI_RECOVER_HOME": str(home), "HOME": str(tmp / "home"), "PYTHONPATH": str(REPOSITORY)}
        return Workspace(root, cwd=cwd, env=env, extra=made)

    def record(self, made: Made, lease: str) -> None:
        """Write one record."""
        state = writer.created("a" * 64) if lease == GONE else writer.uncertain()
        value = writer.record(lease, state)
        value["docker_environment"] = {"DOCKER_HOST": made.double.base_url, "PATH": "/usr/bin:/bin"}
        writer.write_record(made.store, value)

    def furnish(self, made: Made, played: Played, root: Path) -> None:
        """Whatever else the command needs."""

    def cleanup(self, workspace: Workspace) -> None:
        made = made_of(workspace)
        made.double.close()
        shutil.rmtree(workspace.root)
        shutil.rmtree(made.socket_folder, ignore_errors=True)

    def evidence(self, workspace: Workspace) -> Mapping[str, str]:
        made = made_of(workspace)
        kept = [made.store / "supervisor.lock", made.store / "admission.conf"]
        return file_hashes([*kept, made.home / "operator.key"], workspace.root)

    def leftovers(self, workspace: Workspace) -> Collection[str]:
        return [str(path) for path in made_of(workspace).home.rglob(".tmp*")]

    def records(self, made: Made) -> list[str]:
        """The leases that have a record."""
        return sorted(path.stem for path in made.store.glob("*.json"))

    def sound(self, made: Made) -> None:
        """The helper would start on the store, and nobody else's container was touched."""
        report = judge(read_store(str(made.store), now_ns=time.time_ns()))
        assert report.store_blocked is False, report.findings
        assert NEIGHBOUR in self.containers(made)

    def containers(self, made: Made) -> list[str]:
        """Names of all containers."""
        return sorted(one.name for one in list(made.double.world.containers))

    def ledger(self, made: Made) -> object:
        """Acts that were not given up, without what differs between honest runs."""
        path = made.home / LEDGER_NAME
        if not path.exists():
            return None
        report = ledger.judge(path.read_bytes(), str(path), key=KeyUsed(public_key(SEED), "given"))
        assert not [found for found in report.findings if found.severity == "refused"], report.findings
        reached = {"done": "reached", "already_done": "reached"}
        return sorted(
            (act.command, reached.get(act.outcome or "open", act.outcome or "open"), len(act.receipts))
            for act in report.acts
            if act.outcome not in ("failed", "refused")
        )

    def announces(self, outcome: Outcome) -> bool:
        return b'"ok": true' in outcome.stdout


class Reconcile(LeaseScenario):
    """One owned container, and one record whose container is gone."""

    name = "lease-reconcile"
    leases = (OWNED, GONE)
    publishes = (f"*/{RECONCILIATIONS}/*{SUFFIX}",)
    publishes_before = tuple((f"*/{RECONCILIATIONS}/*{SUFFIX}", f"{lease}.json") for lease in (OWNED, GONE))

    def furnish(self, made: Made, played: Played, root: Path) -> None:
        container = played.add(f"symbi-{OWNED}", {LABEL: OWNED})
        acts = sorted(
            [
                [OWNED, self.digest(made, OWNED), "remove_container", container.id],
                [GONE, self.digest(made, GONE), "retire_record", ""],
            ]
        )
        text = json.dumps(["lease-reconcile-v1", str(made.store), acts], separators=(",", ":"))
        made.confirm = hashlib.sha256(text.encode()).hexdigest()

    def digest(self, made: Made, lease: str) -> str:
        """Of a record."""
        return hashlib.sha256((made.store / f"{lease}.json").read_bytes()).hexdigest()

    def command(self, workspace: Workspace) -> Sequence[str]:
        made = made_of(workspace)
        program = [sys.executable, "-m", "tests.crash.drivers.lease", "lease", "reconcile"]
        return [*program, "--state-dir", str(made.store), "--confirm", made.confirm, "--format", "json"]

    def final_state(self, workspace: Workspace) -> object:
        made = made_of(workspace)
        notes = len(list((made.home / RECONCILIATIONS).glob("*.json")))
        return self.records(made), self.containers(made), notes, self.ledger(made)

    def allowed_between(self, workspace: Workspace) -> None:
        made = made_of(workspace)
        self.sound(made)
        if OWNED not in self.records(made):
            assert f"symbi-{OWNED}" not in self.containers(made), "an orphaned container"


class Retire(LeaseScenario):
    """A tombstone from before a witnessed reboot."""

    name = "lease-retire"
    leases = (OWNED,)
    publishes = tuple(f"{OWNED}.000001.{kind}{SUFFIX}" for kind in ("intent", "receipt"))
    publishes_before = ((f"{OWNED}.000001.intent{SUFFIX}", f"{OWNED}.json"),)

    def furnish(self, made: Made, played: Played, root: Path) -> None:
        folder = root / "data" / "containers"
        folder.mkdir(parents=True)
        played.info["DockerRootDir"] = str(root / "data")
        record, status = made.store / f"{OWNED}.json", (made.store / f"{OWNED}.json").stat()
        made.confirm = hashlib.sha256(record.read_bytes()).hexdigest()
        place = made.store.stat()
        witness = Witness(
            seen_ns=1,
            locked=False,
            boot_id=writer.uid("boot", 1),
            record=RecordIdentity(
                lease=OWNED,
                sha256=made.confirm,
                size=status.st_size,
                inode=status.st_ino,
                mtime_ns=status.st_mtime_ns,
                ctime_ns=status.st_ctime_ns,
            ),
            directory=DirectoryIdentity(path=str(made.store), device=place.st_dev, inode=place.st_ino),
            endpoint=made.double.socket_path,
            engine=EngineIdentity(
                pid=2,
                start_ticks=2,
                executable="/usr/bin/dockerd",
                engine_id=None,
                version="20.10.24",
                data_root=str(root / "data"),
                containers_inode=folder.stat().st_ino,
                containers_born_ns=BORN_NS,
            ),
        )
        (made.home / WITNESSES).mkdir(mode=0o700)
        path = made.home / WITNESSES / f"{OWNED}.1.json"
        path.write_bytes(encode(witness))
        path.chmod(0o600)

    def command(self, workspace: Workspace) -> Sequence[str]:
        made = made_of(workspace)
        program = [sys.executable, "-m", "tests.crash.drivers.lease", "lease", "retire", OWNED]
        return [*program, "--state-dir", str(made.store), "--confirm", made.confirm, "--format", "json"]

    def final_state(self, workspace: Workspace) -> object:
        made = made_of(workspace)
        folder = made.home / RETIREMENTS
        outcomes = [
            json.loads(path.read_bytes())["payload"]["outcome"] for path in folder.glob("*.receipt.json")
        ]
        gone = {"retired": "gone", "absent_after_interruption": "gone"}
        images = sorted(one.tag for one in list(made.double.world.images))
        notes = sorted(path.name for path in (made.home / FENCES).glob("*.json"))
        receipts = [gone.get(outcome, outcome) for outcome in outcomes if outcome in gone]
        return self.records(made), self.containers(made), images, notes, receipts, self.ledger(made)

    def evidence(self, workspace: Workspace) -> Mapping[str, str]:
        made = made_of(workspace)
        kept = file_hashes((made.home / WITNESSES).glob("*.json"), workspace.root)
        return {**super().evidence(workspace), **kept}

    def allowed_between(self, workspace: Workspace) -> None:
        made = made_of(workspace)
        self.sound(made)
        if OWNED not in self.records(made):
            assert list((made.home / RETIREMENTS).glob("*.intent.json")), "gone without an intent"
            left = [one for one in self.containers(made) if one == f"symbi-{OWNED}"]
            assert not left, "gone while a fence or a late container stands"


class Witnessed(LeaseScenario):
    """`lease witness` of a tombstone: each run adds a file of its own, and none of them is broken."""

    name = "lease-witness"
    leases = (OWNED,)
    publishes = (f"*/{WITNESSES}/{OWNED}.*{SUFFIX}",)

    def furnish(self, made: Made, played: Played, root: Path) -> None:
        (root / "data" / "containers").mkdir(parents=True)
        played.info["DockerRootDir"] = str(root / "data")

    def command(self, workspace: Workspace) -> Sequence[str]:
        program = [sys.executable, "-m", "tests.crash.drivers.lease", "lease", "witness"]
        return [*program, OWNED, "--state-dir", str(made_of(workspace).store), "--format", "json"]

    def witnesses(self, workspace: Workspace) -> list[Witness]:
        """Every one; it fails for a file that is none."""
        found = [decoded(own, Witness) for own in read_own(str(made_of(workspace).home), WITNESSES)]
        assert all(isinstance(one, Witness) for one in found), found
        return [one for one in found if isinstance(one, Witness)]

    def final_state(self, workspace: Workspace) -> object:
        made = made_of(workspace)
        return (
            self.records(made),
            self.containers(made),
            {one.record.lease for one in self.witnesses(workspace)},
        )

    def evidence(self, workspace: Workspace) -> Mapping[str, str]:
        made = made_of(workspace)
        return {**super().evidence(workspace), **file_hashes(made.store.glob("*.json"), workspace.root)}

    def allowed_between(self, workspace: Workspace) -> None:
        self.sound(made_of(workspace))
        assert len(self.witnesses(workspace)) <= 1


class Fences(LeaseScenario):
    """`lease fences` where an interrupted retirement left container, image and note; one consent for all runs."""

    name = "lease-fences"
    success = 2
    """One image has a nonce that no note knows, and is left."""
    leases = (OWNED,)

    def furnish(self, made: Made, played: Played, root: Path) -> None:
        note = FenceNote(nonce="0" * 32, lease=OWNED, endpoint=made.double.socket_path, at_ns=1)
        labels = {FENCE_LABEL: OWNED, NONCE_LABEL: note.nonce}
        container = played.add(f"symbi-{OWNED}", labels)
        image = played.add_image("symbi-recover-fence:0", labels)
        acts = [
            [*one, OWNED, note.nonce, note.endpoint]
            for one in (("container", container.id), ("image", image.id))
        ]
        made.confirm = canonical.digest(["lease-fences-v1", acts]).removeprefix("sha256:")
        played.add_image("neighbour:1", {FENCE_LABEL: OWNED, NONCE_LABEL: "1" * 32})
        (made.home / FENCES).mkdir(mode=0o700)
        path = made.home / FENCES / note_name(note)
        path.write_bytes(encode(note))
        path.chmod(0o600)

    def command(self, workspace: Workspace) -> Sequence[str]:
        program = [sys.executable, "-m", "tests.crash.drivers.lease", "lease", "fences"]
        made = made_of(workspace)
        return [*program, "--state-dir", str(made.store), "--format", "json", "--confirm", made.confirm]

    def left(self, made: Made) -> tuple[list[str], list[str], list[str]]:
        """Containers, images and notes."""
        images = sorted(one.tag for one in list(made.double.world.images))
        return self.containers(made), images, [path.name for path in (made.home / FENCES).glob(f"*{SUFFIX}")]

    def final_state(self, workspace: Workspace) -> object:
        made = made_of(workspace)
        return self.records(made), self.left(made), self.ledger(made)

    def evidence(self, workspace: Workspace) -> Mapping[str, str]:
        made = made_of(workspace)
        return {**super().evidence(workspace), **file_hashes(made.store.glob("*.json"), workspace.root)}

    def allowed_between(self, workspace: Workspace) -> None:
        made = made_of(workspace)
        self.sound(made)
        self.ledger(made)
        containers, images, notes = self.left(made)
        assert "neighbour:1" in images, "an image with a nonce that no note knows is gone"
        assert notes or (len(containers), len(images)) == (1, 1), "a fence that no note knows"


SCENARIOS: tuple[Scenario, ...] = (Reconcile(), Retire(), Witnessed(), Fences())
