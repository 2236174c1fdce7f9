"""Publications on real overlay mounts: the same layers in another container have other numbers (F-098).

Folder and candidate lie in the lower layer. Another overlay over the same layers, with an upper layer of its own, is
what another container sees. It is mounted over the first, so that the path of the folder is the same.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.cli import Ran
from tests.support.mounts import in_private_mounts, mount
from tests.support.writer.claim import open_invocation
from tests.support.writer.effects import file_publication_prepared
from tests.support.writer.project import make_project, put
from tests.support.writer.publication import Publication, begin_call, candidate_name, identity, intent
from tests.support.writer.text import PUBLICATION
from tests.write.worlds import command, finish, picture

pytestmark = pytest.mark.root
CONTENT = b"verified-output"
TARGET = "report.txt"
OPTIONS = ("index=off,xino=off", "index=on,xino=off", "index=off,xino=on", "index=on,xino=on")
every_overlay = [
    pytest.mark.parametrize("options", OPTIONS),
    pytest.mark.parametrize("apart", [False, True], ids=["one file system", "a file system for each layer"]),
]


def on_every_overlay(test: Callable[..., None]) -> Callable[..., None]:
    """With and without index and xino, layers on one file system and on two."""
    for mark in every_overlay:
        test = mark(test)
    return test


class Layers(NamedTuple):
    """A lower layer that containers share, and where they see it."""

    base: Path
    options: str

    @property
    def seen(self) -> Path:
        """The folder of the publication, in the container that was started last."""
        return self.base / "merged" / "out"

    def start(self, container: str) -> Path:
        """Mount the layers as another container sees them; gives its upper layer, still empty."""
        upper, work = self.base / f"{container}-upper", self.base / f"{container}-work"
        upper.mkdir()
        work.mkdir()
        given = f"lowerdir={self.base}/lower,upperdir={upper},workdir={work},{self.options}"
        mount("overlay", self.base / "merged", given)
        return upper


def layers(base: Path, options: str, *, apart: bool, name: str) -> Layers:
    """A lower layer with a folder and the file under `name`, on the file system of the upper ones or `apart`."""
    mount("tmpfs", base)
    for folder in ("lower", "merged"):
        (base / folder).mkdir()
    if apart:
        mount("tmpfs", base / "lower")
    for folder in ("a", "b", "out"):
        (base / "lower" / folder).mkdir(mode=0o755)
    put(base / "lower" / "out" / name, CONTENT)
    return Layers(base, options)


def recorded(world: Path, parent: Path, name: str) -> Publication:
    """A publication whose signed intent has the numbers that the running container sees."""
    invocation = open_invocation(make_project(world / "p"))
    call = begin_call(invocation.journal)
    folder, file = identity(parent), identity(parent / name)
    made = intent(PUBLICATION, str(parent), folder, file, path=TARGET, content=CONTENT)
    call.effect(file_publication_prepared(made))
    invocation.write()
    return Publication(invocation, made, parent, call)


def inspected(publication: Publication, *more: str) -> Ran:
    return command("file-inspect", publication.invocation, "--publication", publication.id, *more)


def recovered(publication: Publication) -> Ran:
    told = ("--publication", publication.id, "--snapshot-hash", publication.invocation.snapshot_hash())
    return command("file-recover", publication.invocation, *told)


def pair(numbers: list[int]) -> bytes:
    return f"device {numbers[0]}, inode {numbers[1]}".encode()


@pytest.mark.parametrize("name", [candidate_name(PUBLICATION), TARGET], ids=["candidate", "target"])
@on_every_overlay
def test_f098_another_container_over_the_same_layers_cannot_confirm_the_identity(
    name: str, apart: bool, options: str, tmp_path: Path
) -> None:
    def act() -> None:
        shared = layers(tmp_path, options, apart=apart, name=name)
        shared.start("one")
        publication = recorded(tmp_path, shared.seen, name)
        upper = shared.start("other")
        for other in ("a", "b"):  # an overlay that numbers folders itself gives these the first numbers
            (shared.base / "merged" / other).stat()
        folder, file = identity(shared.seen), identity(shared.seen / name)
        assert folder != publication.intent["parent_identity"], (
            "this overlay keeps its numbers: nothing is tried"
        )
        before = picture(tmp_path / "p"), picture(shared.seen)

        ran = inspected(publication)
        assert (ran.rc, b'"state": "identity_unconfirmed"' in ran.out) == (2, True), ran
        for numbers in (
            publication.intent["parent_identity"],
            publication.intent["candidate_identity"],
            folder,
            file,
        ):
            assert pair(numbers) in ran.err, ran.err
        shown = inspected(publication, "--format", "text")
        assert (shown.rc, "IDENTITY CANNOT BE CONFIRMED" in shown.text) == (2, True)
        plan = command("file-recover", publication.invocation, "--publication", publication.id)
        assert b"the state is identity_unconfirmed" in plan.out + plan.err
        refused = recovered(publication)
        assert refused.rc == 1
        assert refused.out == b""
        told = ran.out + ran.err + shown.out + shown.err + refused.err
        assert b"content changed" not in told
        assert b"onflict" not in ran.err + shown.out
        assert not publication.receipt_path.exists()
        assert (picture(tmp_path / "p"), picture(shared.seen)) == before
        assert os.listdir(upper) == [], "nothing was copied into the container's own layer"

    in_private_mounts(act)


@on_every_overlay
def test_other_content_in_another_container_is_never_only_an_identity(
    apart: bool, options: str, tmp_path: Path
) -> None:
    def act() -> None:
        name = candidate_name(PUBLICATION)
        shared = layers(tmp_path, options, apart=apart, name=name)
        shared.start("one")
        publication = recorded(tmp_path, shared.seen, name)
        shared.start("other")
        put(shared.seen / name, b"verified-0utput")
        ran = inspected(publication)
        assert ran.rc == 1
        assert b"identity_unconfirmed" not in ran.out + ran.err

    in_private_mounts(act)


@on_every_overlay
def test_the_same_container_publishes_what_lies_in_its_lower_layer(
    apart: bool, options: str, tmp_path: Path
) -> None:
    """The rename copies the file up; its numbers stay."""

    def act() -> None:
        name = candidate_name(PUBLICATION)
        shared = layers(tmp_path, options, apart=apart, name=name)
        shared.start("one")
        publication = recorded(tmp_path, shared.seen, name)
        assert finish(publication).how == "renamed"
        assert publication.target.read_bytes() == CONTENT
        assert os.listdir(shared.seen) == [TARGET]
        assert os.listdir(shared.base / "lower" / "out") == [name], "the layer itself is untouched"

    in_private_mounts(act)
