"""The runtime's locks: who waits, who is refused, and that the locked file is the one behind its name."""

import errno
import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from symbi_recover.core.errors import RefusedError
from symbi_recover.read.evidence.mounts import Mount
from symbi_recover.read.evidence.store import InvocationStore
from symbi_recover.write import lock
from tests.support.evidence import fingerprint
from tests.write.worlds import assess, interrupted, reviewed


@contextmanager
def held(path: Path, how: int = fcntl.LOCK_EX) -> Iterator[int]:
    """Hold a lock on a file through a descriptor of our own, which another one of this process cannot share."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, how)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("how", [fcntl.LOCK_EX, fcntl.LOCK_SH])
def test_a_store_lock_that_stays_held_is_refused_in_the_runtimes_words(how: int, tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    with (
        InvocationStore(str(invocation.project.root)) as store,
        held(invocation.project.store_lock, how),
        pytest.raises(RefusedError, match="invocation store busy; retry with the same ID"),
        lock.store_lock(store),
    ):
        pass


def test_a_store_lock_that_is_given_up_meanwhile_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    invocation = interrupted(tmp_path)
    descriptor = os.open(invocation.project.store_lock, os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            os.close(descriptor)

    monkeypatch.setattr(time, "sleep", nap)
    with InvocationStore(str(invocation.project.root)) as store, lock.store_lock(store):
        assert naps == [0.01] * 3


def test_a_live_claim_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    invocation = interrupted(tmp_path)
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("a claim's lock is tried once"))
    with (
        InvocationStore(str(invocation.project.root)) as store,
        held(invocation.claim_path),
        pytest.raises(RefusedError) as raised,
        lock.claim_lock(store, invocation.scope, UUID(invocation.id)),
    ):
        pass
    assert raised.value.code == "claim_live"
    assert str(os.getpid()) in str(raised.value.detail)


def test_the_store_is_free_for_others_while_a_claim_is_held(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    with (
        InvocationStore(str(invocation.project.root)) as store,
        lock.claim_lock(store, invocation.scope, UUID(invocation.id)),
        held(invocation.project.store_lock, fcntl.LOCK_EX | fcntl.LOCK_NB),
    ):
        pass


def test_a_lock_file_that_is_missing_is_made_private_and_kept(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    path = invocation.project.store_lock
    path.unlink()
    with InvocationStore(str(invocation.project.root)) as store, lock.store_lock(store):
        assert path.stat().st_mode & 0o777 == 0o600
    assert path.exists()


def test_a_lock_on_a_file_that_lost_its_name_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process replaces the lock file between our open and our lock: two could hold "the" lock."""
    invocation = interrupted(tmp_path)
    path = invocation.project.store_lock
    real, swapped = lock.try_lock, []

    def swap(descriptor: int, name: str) -> bool:
        taken = real(descriptor, name)
        if not swapped:
            path.unlink()
            path.write_bytes(b"")
            path.chmod(0o600)
            swapped.append(path.stat().st_ino)
        return taken

    monkeypatch.setattr(lock, "try_lock", swap)
    with InvocationStore(str(invocation.project.root)) as store, lock.store_lock(store):
        with pytest.raises(BlockingIOError), held(path, fcntl.LOCK_EX | fcntl.LOCK_NB):
            pass
        assert path.stat().st_ino == swapped[0]


def test_f106_old_marks_in_a_lock_file_mean_nothing(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    invocation.project.store_lock.write_bytes(b"1\n")
    with InvocationStore(str(invocation.project.root)) as store, lock.store_lock(store):
        pass
    assert invocation.project.store_lock.read_bytes() == b"1\n"


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOTSUP, errno.EBADF, errno.EINTR])
def test_f112_a_system_that_does_not_lock_for_certain_stops_every_write(number: int, tmp_path: Path) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    with pytest.raises(RefusedError) as raised:
        lock.try_lock(0, "a", refuse)
    assert raised.value.code == "lock_uncertain"
    assert raised.value.message.endswith(f"(os error {number})")


def test_f112_a_system_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    """A read of a FIFO that nobody writes to stands for a call that never returns."""
    os.mkfifo(tmp_path / "fifo")
    descriptor = os.open(tmp_path / "fifo", os.O_RDWR)
    try:
        with pytest.raises(TimeoutError), lock.answered(0.05):
            os.read(descriptor, 1)
    finally:
        os.close(descriptor)


def test_f112_a_lock_that_blocks_for_ever_is_given_up_as_uncertain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A system that waits in spite of LOCK_NB, against a lock that somebody holds and keeps."""
    monkeypatch.setattr(lock, "answered", partial(lock.answered, 0.05))
    path = tmp_path / "lock"
    with held(path), path.open("rb") as second:
        with pytest.raises(RefusedError) as raised:
            lock.try_lock(second.fileno(), str(path), lambda number, _: fcntl.flock(number, fcntl.LOCK_EX))
        assert (raised.value.code, raised.value.path) == ("lock_uncertain", str(path))
        assert raised.value.message.endswith(f"(os error {errno.ETIMEDOUT})")
        assert not lock.try_lock(second.fileno(), str(path)), "and nothing was taken"
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_f112_a_whole_command_ends_when_a_lock_blocks_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    invocation = interrupted(tmp_path)
    before = fingerprint(tmp_path)
    monkeypatch.setattr(lock, "answered", partial(lock.answered, 0.05))
    real = fcntl.flock

    def blocking(number: int, how: int) -> None:
        real(number, how & ~fcntl.LOCK_NB)

    monkeypatch.setattr(lock.try_lock, "__defaults__", (blocking,))
    with held(invocation.project.store_lock), pytest.raises(RefusedError) as raised:
        assess(invocation, reviewed(invocation))
    assert raised.value.code == "lock_uncertain"
    assert fingerprint(tmp_path) == before


def test_f112_a_store_on_another_machine_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    invocation = interrupted(tmp_path)
    mount = Mount(1, 0, 0, b"/", b"/", (), b"nfs4", b"host:/x", ())
    monkeypatch.setattr(lock, "mount_of_descriptor", lambda *_: mount)
    with (
        InvocationStore(str(invocation.project.root)) as store,
        pytest.raises(RefusedError, match="nfs4") as raised,
        lock.store_lock(store),
    ):
        pass
    assert raised.value.code == "lock_uncertain"


def test_a_forked_child_does_not_unlock_for_its_parent(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    with (
        InvocationStore(str(invocation.project.root)) as store,
        lock.claim_lock(store, invocation.scope, UUID(invocation.id)) as ours,
    ):
        child = os.fork()
        if child == 0:
            ours.release()
            os._exit(0)
        os.waitpid(child, 0)
        with pytest.raises(BlockingIOError), held(invocation.claim_path, fcntl.LOCK_EX | fcntl.LOCK_NB):
            pass


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.chmod(0o644),
        lambda path: os.link(path, path.with_suffix(".second")),
        lambda path: (path.unlink(), path.symlink_to("elsewhere")),
        lambda path: (path.unlink(), path.mkdir(0o700)),
        lambda path: (path.unlink(), os.mkfifo(path, 0o600)),
    ],
    ids=["loose", "two names", "link", "folder", "FIFO"],
)
def test_a_lock_file_that_breaks_the_file_rule_stops_every_write(
    spoil: Callable[[Path], Any], tmp_path: Path
) -> None:
    from symbi_recover.core.errors import RecoverError

    invocation = interrupted(tmp_path)
    spoil(invocation.project.store_lock)
    with (
        InvocationStore(str(invocation.project.root)) as store,
        pytest.raises(RecoverError),
        lock.store_lock(store),
    ):
        pass
