"""Lease commands where the store's lock is not certain (F-112): nothing is asked for but by GET, and nothing is written."""

import errno
import fcntl
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from symbi_recover.write import lock
from tests.support.evidence import fingerprint
from tests.write.lease_rig import OWNED, Retire, Rig, rig

NUMBERS = [errno.ENOLCK, errno.ENOTSUP, errno.EBADF, errno.EINTR]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    with rig(Retire(), tmp_path, monkeypatch) as made:
        yield made


def commands(world: Rig) -> dict[str, tuple[str, ...]]:
    return {
        "retire": ("retire", OWNED, "--confirm", world.made.confirm),
        "witness": ("witness", OWNED, "--lock"),
        "reconcile": ("reconcile", "--confirm", world.made.confirm),
    }


def refused(world: Rig, name: str, said: str) -> None:
    """The command is refused for want of a certain lock, and what lies there stays as it was."""
    before = fingerprint(world.made.store), fingerprint(world.made.home)
    ran = world.cli(*commands(world)[name], "--format", "text")
    told = ran.text + ran.err.decode()
    assert ran.rc in (1, 4), ran
    assert "lock_uncertain" in told, told
    assert said in told, told
    assert (fingerprint(world.made.store), fingerprint(world.made.home)) == before
    world.double.assert_only_gets()


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("name", ["retire", "witness", "reconcile"])
def test_a_system_that_does_not_lock_for_certain_stops_every_command(
    world: Rig, name: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(lock.try_lock, "__defaults__", (refuse,))
    refused(world, name, f"(os error {number})")


@pytest.mark.parametrize("name", ["retire", "witness", "reconcile"])
def test_a_lock_that_blocks_for_ever_ends_in_bounded_time(
    world: Rig, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def blocking(number: int, how: int) -> None:
        fcntl.flock(number, how & ~fcntl.LOCK_NB)

    monkeypatch.setattr(lock, "answered", partial(lock.answered, 0.05))
    monkeypatch.setattr(lock.try_lock, "__defaults__", (blocking,))
    with (world.made.store / "supervisor.lock").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        refused(world, name, f"(os error {errno.ETIMEDOUT})")


def test_without_the_lock_a_witness_is_still_left(world: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says that no lock was held, and serves for a reboot alone."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("symbi_recover.write.supervisor.try_lock", partial(lock.try_lock, lock=refuse))
    (witness,) = world.document("witness", OWNED, code=0)["report"]["witnesses"]
    assert witness["locked"] is False
