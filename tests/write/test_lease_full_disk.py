"""Lease commands whose operator's folder is really full (F-088): a tmpfs of 64 KiB without a free block, or without a free inode.

No part of a file ever has a final name, the cause is said, nothing temporary is left, everything that was there is
unchanged, and with room again the same command does its work.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.evidence import fingerprint
from tests.support.mounts import fill, in_private_mounts, mount, unmount
from tests.write.lease_rig import OWNED, Retire, Rig, rig

pytestmark = pytest.mark.root
FULL = {"no free block": "size=64k,mode=700", "no free inode": "size=1m,nr_inodes=40,mode=700"}


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.parent.name != "filler"
    }


def full(tmp_path: Path, what: str, act: Callable[[Rig, Callable[[], None]], None]) -> None:
    """Run `act` with a world whose operator's folder is such a file system, and with the way to make room."""

    def inside() -> None:
        with pytest.MonkeyPatch.context() as patch, rig(Retire(), tmp_path, patch) as world:
            home = world.made.home
            kept = home.with_name("kept")
            home.rename(kept)
            home.mkdir()
            mount("tmpfs", home, FULL[what])
            try:
                shutil.copytree(kept, home, dirs_exist_ok=True)
                act(world, fill(home / "filler"))
            finally:
                unmount(home)

    in_private_mounts(inside)


@pytest.mark.parametrize("what", FULL)
@pytest.mark.parametrize("prepared", [False, True], ids=["first run", "folders are there"])
def test_a_retirement_that_cannot_be_noted_does_not_begin(tmp_path: Path, what: str, prepared: bool) -> None:
    def act(world: Rig, room: Callable[[], None]) -> None:
        if prepared:
            room()
            for name in ("fences", "retirements"):
                (world.made.home / name).mkdir(mode=0o700)
            room_again = fill(world.made.home / "filler")
        else:
            room_again = room
        before = fingerprint(world.made.store), files(world.made.home)
        ran = world.cli("retire", OWNED, "--confirm", world.made.confirm, "--format", "text")
        assert ran.rc in (1, 4), ran
        assert "No space left on device (os error 28)" in ran.text + ran.err.decode(), ran
        assert (fingerprint(world.made.store), files(world.made.home)) == before
        world.double.assert_only_gets()
        room_again()
        assert world.retire(0)["report"]["outcome"] == "retired"

    full(tmp_path, what, act)


@pytest.mark.parametrize("what", FULL)
def test_a_retirement_whose_disk_fills_on_the_way_keeps_record_and_trace(tmp_path: Path, what: str) -> None:
    """Full from the moment when the fence stands: there is room for the note, and none for the intent."""

    def act(world: Rig, room: Callable[[], None]) -> None:
        room()
        rooms: list[Callable[[], None]] = []

        def now_full(_: object) -> object:
            from tests.support.daemon_behaviours import AS_USUAL

            if not rooms:
                rooms.append(fill(world.made.home / "filler"))
            return AS_USUAL

        world.double.on("POST", "/containers/create", now_full)
        ran = world.cli("retire", OWNED, "--confirm", world.made.confirm, "--format", "text")
        assert rooms
        assert ran.rc in (1, 4), ran
        assert "No space left on device (os error 28)" in ran.text + ran.err.decode(), ran
        assert world.record.exists()
        assert not [name for name in files(world.made.home) if ".tmp" in name]
        assert f"symbi-{OWNED}" not in world.left()["containers"], "the fence was taken away"
        rooms[0]()
        world.double._rules.clear()
        assert world.retire(0)["report"]["outcome"] == "retired"
        assert world.left()["images"] == []

    full(tmp_path, what, act)


@pytest.mark.parametrize("what", FULL)
def test_a_witness_that_cannot_be_kept_is_not_left_in_part(tmp_path: Path, what: str) -> None:
    def act(world: Rig, room: Callable[[], None]) -> None:
        before = fingerprint(world.made.store), files(world.made.home)
        ran = world.cli("witness", OWNED, "--format", "text")
        assert ran.rc == 1, ran
        assert b"No space left on device (os error 28)" in ran.err, ran
        assert (fingerprint(world.made.store), files(world.made.home)) == before
        room()
        (witness,) = world.document("witness", OWNED, code=0)["report"]["witnesses"]
        assert witness["record"]["lease"] == OWNED

    full(tmp_path, what, act)
