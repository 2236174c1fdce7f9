"""Evidence on mounts that show one owner for all files (F-081): what cannot be told apart is not taken for sound.

The world is made by root as a runtime of root leaves it, and then shown at its own path through the mount. The owner
that is shown is the only one there is: no rule is relaxed because of it, not for root either.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.cli import Ran, run
from tests.support.mounts import in_private_mounts, mount
from tests.support.one_owner import OVERFLOW, mapped, served
from tests.support.sample_journals import KEY, NAME, small
from tests.support.writer import lease
from tests.support.writer.publication import Publication
from tests.support.writer.text import RUN
from tests.write.worlds import command, operator_home, publishing

pytestmark = pytest.mark.root
MS_BIND = 4096
STRANGER = 4242


class World(NamedTuple):
    """One of each kind of evidence, in a folder."""

    folder: Path
    publication: Publication

    @property
    def home(self) -> dict[str, str]:
        """The operator's folder, as a command is told it."""
        return {"SYMBI_RECOVER_HOME": str(self.folder / "operator")}

    def lease(self, name: str, *more: str) -> Ran:
        return run("lease", name, "--state-dir", self.folder / "s", "--format", "json", *more)

    def claim(self, name: str, *more: str) -> Ran:
        return command(name, self.publication.invocation, "--public-key", KEY, *more)

    def publication_(self, name: str, *more: str) -> Ran:
        return self.claim(name, "--publication", self.publication.id, *more)

    def recover(self) -> Ran:
        return self.publication_(
            "file-recover", "--snapshot-hash", self.publication.invocation.snapshot_hash()
        )


@pytest.fixture
def world(tmp_path: Path) -> World:
    folder = tmp_path / "w"
    folder.mkdir()
    lease.make_state(folder / "s", lease.record())
    publication = publishing(folder)
    operator_home(folder)
    small().write(folder / NAME)
    made = World(folder, publication)
    pinned = run("trust", "add", KEY, "--project", publication.invocation.project.root, env=made.home)
    assert pinned.rc == 0
    return made


def through(world: World, look: Callable[[], None], *, uid: int, mode: int | None = None) -> None:
    """Look at the world through a mount that shows one owner, and if asked one mode, for all of it."""

    def act() -> None:
        behind = world.folder.with_name("behind")
        behind.mkdir()
        mount("none", behind, source=str(world.folder), flags=MS_BIND)
        with served(behind, world.folder, uid=uid, mode=mode):
            assert {path.lstat().st_uid for path in world.folder.rglob("*")} == {uid}
            look()

    in_private_mounts(act)


def found(ran: Ran) -> dict[str, str]:
    """Each finding's message by its code: of the store, its records, and its other entries."""
    report = json.loads(ran.out)["report"]
    every = [report, *report["records"], *report["entries"]]
    return {one["code"]: one["message"] for part in every for one in part.get("findings", ())}


def test_a_lease_store_of_a_shown_stranger_is_refused_with_owner_mode_and_links(world: World) -> None:
    def look() -> None:
        for name in ("verify", "list"):
            ran = world.lease(name, "--helper-uid", "0")
            assert ran.rc == 1, ran
        ran = world.lease("verify", "--helper-uid", "0")
        assert f"uid {STRANGER}, mode 0700" in found(ran)["dir_unsafe"]
        for code in ("entry_not_private", "lock_unsafe", "admission_invalid"):
            assert f"file of uid {STRANGER}, mode 0600, links 1" in found(ran)[code], found(ran)
        capacity = json.loads(ran.out)["report"]["capacity"]
        assert capacity["reserved"]["workers"] is None, "what cannot be trusted is not added up"

    through(world, look, uid=STRANGER)


def test_root_says_for_whom_it_judged_such_a_store_and_does_not_call_it_sound(world: World) -> None:
    def look() -> None:
        ran = world.lease("verify")
        assert ran.rc == 2
        assert f"uid {STRANGER}" in found(ran)["owner_assumed"]
        assert "of type fuse" in found(ran)["supervision_unknown"]

    through(world, look, uid=STRANGER)


@pytest.mark.parametrize("mode", [0o755, 0o777])
def test_a_mount_that_gives_all_to_root_does_not_make_loose_modes_good(world: World, mode: int) -> None:
    def look() -> None:
        ran = world.lease("verify")
        assert ran.rc == 1
        assert f"uid 0, mode {mode:04o}" in found(ran)["dir_unsafe"]
        assert f"file of uid 0, mode {mode:04o}, links 1" in found(ran)["entry_not_private"]
        for refused in (world.claim("inspect"), world.publication_("file-inspect"), world.recover()):
            assert (refused.rc, refused.out) == (1, b"")
            assert f"of user 0, mode {mode:04o}, with".encode() in refused.err, refused.err
        shown = run("key", "show", env=world.home)
        assert shown.rc == 1
        assert f"its owner is 0, its mode {mode:04o}".encode() in shown.err
        trusted = run("trust", "list", env=world.home)
        if mode & 0o022:
            assert trusted.rc == 64
            assert f"owner 0, mode {mode:04o}, links 1".encode() in trusted.err

    through(world, look, uid=0, mode=mode)


def test_claims_keys_and_trust_of_a_shown_stranger_are_refused(world: World) -> None:
    def look() -> None:
        for refused in (world.claim("inspect"), world.publication_("file-inspect"), world.recover()):
            assert (refused.rc, refused.out) == (1, b"")
            assert f"of user {STRANGER}, mode 0700, with".encode() in refused.err, refused.err
        listed = run("invocation", "list", "--project", world.folder / "p", "--public-key", KEY)
        assert listed.rc == 1
        trusted = run("trust", "list", env=world.home)
        assert trusted.rc == 64
        assert f"owner {STRANGER}, mode 0600, links 1".encode() in trusted.err
        shown = run("key", "show", env=world.home)
        assert shown.rc == 1
        assert f"its owner is {STRANGER}, its mode 0700".encode() in shown.err

    through(world, look, uid=STRANGER)


def test_a_journal_counts_by_its_signatures_whoever_it_is_shown_to_belong_to(world: World) -> None:
    def look() -> None:
        assert run("audit", "verify", world.folder / NAME, "--public-key", KEY, "--run-id", RUN).rc == 0

    through(world, look, uid=STRANGER)


def test_a_mount_that_shows_the_true_owner_and_modes_is_read_as_if_it_were_not_there(world: World) -> None:
    before = world.claim("inspect"), world.publication_("file-inspect").rc

    def look() -> None:
        assert world.lease("verify").rc == 2, "its locks cannot be asked for"
        after = world.claim("inspect")
        assert (after.rc, after.out) == (before[0].rc, before[0].out)
        assert run("key", "show", env=world.home).rc == 0

    through(world, look, uid=0)


def test_reading_goes_on_with_a_remark_where_locks_cannot_be_asked_for(world: World) -> None:
    """F-112: whether a process owns an invocation is not known there, which is said and not guessed."""
    said = b"claim_owner_unknown"
    inspect = (world.claim, "inspect"), (world.publication_, "file-inspect")
    listed = ("invocation", "list", "--project", str(world.folder / "p"), "--public-key", KEY)
    before = [act(name) for act, name in inspect]
    assert not any(said in ran.err for ran in before)
    assert said not in run(*listed, "--format", "text").out

    def look() -> None:
        for (act, name), plain in zip(inspect, before, strict=True):
            ran = act(name)
            assert ran.rc == plain.rc
            assert said in ran.err, ran
            text = act(name, "--format", "text").text
            assert said.decode() in text, text
        assert said in run(*listed, "--format", "text").out
        assert said in run(*listed, "--format", "json").out

    through(world, look, uid=0)


def test_where_root_has_no_rights_nothing_is_concluded(world: World) -> None:
    """Every account is shown as the overflow account, and the kernel gives root no way around the modes."""

    def act() -> None:
        mapped(world.folder, world.folder)
        assert {path.lstat().st_uid for path in world.folder.iterdir()} == {OVERFLOW}
        assert not os.access(world.folder / NAME, os.R_OK)
        for name in ("verify", "list"):
            assert world.lease(name).rc == 3
        ran = run("audit", "verify", world.folder / NAME, "--public-key", KEY)
        assert (ran.rc, b"Permission denied" in ran.out) == (3, True)
        ran = run("audit", "inspect", world.folder / NAME, "--run-id", RUN, "--public-key", KEY)
        assert (ran.rc, ran.out, b"Permission denied" in ran.err) == (1, b"", True)
        for name in ("inspect", "list"):
            more = () if name == "list" else ("--scope", "cli:orga", "--id", world.publication.invocation.id)
            ran = run("invocation", name, "--project", world.folder / "p", *more, "--public-key", KEY)
            assert (ran.rc, b"Permission denied" in ran.err) == (3 if name == "list" else 1, True), ran
        trusted = run("trust", "list", env=world.home)
        assert (trusted.rc, b"Permission denied" in trusted.err) == (3, True)
        assert f"its owner is {OVERFLOW}".encode() in run("key", "show", env=world.home).err

    in_private_mounts(act)
