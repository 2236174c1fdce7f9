"""`lease retire` killed before each of its acts at a real, quiet engine, and run again (leases.md section 18.6).

The crash scenarios of tests/crash end a retirement that a witnessed reboot proves; here it is the engine's quiescence,
with a fence at the engine itself.
"""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.engine.world import LABEL, Store, name_of, neighbour
from tests.support.unix_http import ask

pytestmark = [pytest.mark.engine, pytest.mark.root]
REPOSITORY = Path(__file__).resolve().parents[2]
FENCE = "symbi-recover.fence"
SAMPLE = 5
YOUNG = ("note", "fence_note_stale", "left")


class World:
    """One tombstone at a time, at one engine."""

    def __init__(self, engine, root: Path) -> None:
        self.engine = engine
        self.root = root
        self.number = 0

    def fresh(self) -> None:
        """Make another store with one tombstone, and a neighbour that looks alike."""
        self.number += 1
        folder = self.root / str(self.number)
        folder.mkdir()
        self.store = Store(folder, self.engine.socket_path)
        self.lease = self.store.add()
        self.digest = self.store.digest(self.lease)
        self.other = neighbour(self.engine, self.lease)
        self.engine.need_image("rig-empty:t")

    def retire(self, last: int) -> tuple[int, dict[str, Any]]:
        """Retire the tombstone, ended before the given act; gives exit code and document."""
        count = self.root / "count"
        program = [sys.executable, "-m", "tests.engine.killed", str(count), str(last), str(self.engine.pid)]
        words = ["lease", "retire", self.lease, "--state-dir", str(self.store.path)]
        ran = subprocess.run(
            [*program, *words, "--confirm", self.digest, "--format", "json"],
            cwd=REPOSITORY,
            env={**self.store.environment, "SYMBI_RECOVER_HOME": str(self.store.home)},
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert not ran.stderr, ran.stderr
        self.acts = int(count.read_text()) if ran.returncode >= 0 else None
        return ran.returncode, json.loads(ran.stdout) if ran.returncode >= 0 else {}

    def create_late(self) -> bool:
        """Carry out the tombstone's creation now; whether the engine did."""
        request = self.engine.create_request(name_of(self.lease), {LABEL: self.lease})
        return ask(self.engine.socket_path, *request).status == 201

    def notes(self) -> list[Path]:
        """The notes of fences."""
        return list((self.store.home / "fences").glob("*.json"))

    @property
    def there(self) -> bool:
        """Whether the record is."""
        return self.lease in self.store.records()

    def assert_sound(self) -> None:
        """The helper would start; a record that is gone has an intent, and no container of its name or label."""
        assert self.store.cli("verify").rc in (0, 2)
        assert self.engine.inspect(self.other) is not None
        if not self.there:
            assert list((self.store.home / "retirements").glob("*.intent.json"))
            assert self.engine.inspect(name_of(self.lease)) is None

    def assert_ended(self) -> None:
        """The record is gone, one receipt says so, and nothing of ours is left at the engine or in the folder."""
        assert not self.there
        payloads = [
            json.loads(path.read_bytes())["payload"]
            for path in (self.store.home / "retirements").glob("*.receipt.json")
        ]
        assert [one["outcome"] for one in payloads if one["outcome"] in GONE] in [[one] for one in GONE]
        self.assert_nothing_left()

    def assert_nothing_left(self) -> None:
        """No fence, no image of one, no note; the neighbour lives. A killed write's temporary file may stay."""
        assert self.engine.names() == [f"{name_of(self.lease)}-old"]
        assert not any("fence" in tag for tag in self.engine.inventory()["images"])
        assert not self.notes()

    def clear(self) -> None:
        """Remove the neighbour."""
        self.engine.demand(204, "DELETE", f"/containers/{self.other}")


def told(document: dict[str, Any]) -> list[str]:
    """Why a retirement was refused."""
    report = document["report"]
    found = [*(report["decision"]["findings"] if report["decision"] else []), *report["findings"]]
    return [f"{one['code']}: {one['message']}" for one in found]


GONE = ("retired", "absent_after_interruption")


@pytest.fixture
def world(engine, tmp_path):
    return World(engine, tmp_path)


def points(world: World, most: int | None) -> list[int]:
    """Every act of an undisturbed run, or a sample of them from first to last."""
    world.fresh()
    code, document = world.retire(0)
    assert (code, document["report"]["decision"]["proofs"]) == (0, ["proof_engine_quiescent"])
    world.assert_ended()
    world.clear()
    every = list(range(1, world.acts + 1))
    assert len(every) > 50
    return every if most is None else every[:: max(1, len(every) // most)]


def ended_by_the_same_command(world: World, most: int | None) -> None:
    for point in points(world, most):
        world.fresh()
        assert world.retire(point)[0] == -signal.SIGKILL, point
        world.assert_sound()
        code, document = world.retire(0)
        assert code == 0, (point, told(document))
        assert document["report"]["outcome"] in ("retired", "completed", "already_retired"), point
        world.assert_ended()
        world.clear()


def a_late_container_keeps_its_record(world: World, most: int | None) -> None:
    came = 0
    for point in points(world, most):
        world.fresh()
        assert world.retire(point)[0] == -signal.SIGKILL, point
        # Once the record is gone it is proven that nothing can come.
        late = world.there and world.create_late()
        code, document = world.retire(0)
        if late:
            came += 1
            assert (code, world.there) == (4, True), point
            assert "container_present" in str(document["report"]["decision"]), point
            assert world.store.cli("reconcile", "--confirm", world.digest).rc == 0
            assert not world.there
            # Whether the killed run's request for a fence is still under way is not known by a refused one.
            left = json.loads(world.store.cli("fences", "--format", "json").out)["report"]["fences"]
            assert {(one["kind"], one["code"], one["outcome"]) for one in left} <= {YOUNG}, point
            for note in world.notes():
                note.unlink()
        else:
            assert code == 0, (point, told(document))
        world.assert_nothing_left()
        world.clear()
    assert came


def test_a_retirement_killed_at_a_real_engine_is_ended_by_the_same_command(world):
    ended_by_the_same_command(world, SAMPLE)


def test_a_container_that_comes_between_a_kill_and_the_repeat_is_never_orphaned(world):
    a_late_container_keeps_its_record(world, SAMPLE)


@pytest.mark.slow
def test_a_retirement_killed_before_each_act_at_a_real_engine_is_ended_by_the_same_command(world):
    ended_by_the_same_command(world, None)


@pytest.mark.slow
def test_a_container_that_comes_after_a_kill_before_any_act_is_never_orphaned(world):
    a_late_container_keeps_its_record(world, None)
