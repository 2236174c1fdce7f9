"""The locks of an invocation store, as the runtime takes them (invocation.md section 6).

The store lock is polled every 10 ms for up to two seconds; a claim's lock is tried once. After each, the locked file
must still be the one behind its name, or two writers could each hold "the" lock. There is no way to go on against a
held lock (field case F-113). Where a lock is not certain, nothing is written: on file systems of other machines, and
where the system refuses to lock or does not answer (F-112).

Order of every operator command: store lock, claim lock, release the store lock; later the store lock again.
"""

import errno
import fcntl
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from symbi_recover.core.errors import RefusedError
from symbi_recover.core.scalars import UUID
from symbi_recover.read.evidence.locate import STORE_LOCK, claim_name, lstat_at
from symbi_recover.read.evidence.locks import ask_lock
from symbi_recover.read.evidence.mounts import Locality, Mount, mount_of_descriptor
from symbi_recover.read.evidence.opener import FileFacts, OpenedFile, examining, system_text
from symbi_recover.read.evidence.store import STILL_OWNED, STORE_BUSY, InvocationStore, holders

PATIENCE = 2.0
POLL = 0.01
ANSWER = 10.0
"""Seconds in which the system must answer one attempt to lock."""
_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_HELD = (errno.EWOULDBLOCK, errno.EAGAIN)


def refuse_network(descriptor: int, path: str) -> None:
    """Refuse a place whose locks may be held on another machine.

    Raises:
        RefusedError: `lock_uncertain`.
    """
    mount = mount_of_descriptor(descriptor)
    if isinstance(mount, Mount) and mount.locality is Locality.NETWORK:
        kind = mount.kind.decode("ascii", "replace")
        raise RefusedError(
            "lock_uncertain",
            f"locks are not certain on a file system of type {kind}",
            path=path,
        )


@contextmanager
def answered(seconds: float = ANSWER) -> Iterator[None]:
    """Bound the time of a system call that might never return; outside the main thread it is not bounded.

    Raises:
        TimeoutError: it took longer.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(*_: object) -> None:
        raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def try_lock(descriptor: int, path: str, lock: Callable[[int, int], Any] = fcntl.flock) -> bool:
    """Try once to take the exclusive lock of an open file; False if somebody holds it.

    Raises:
        RefusedError: `lock_uncertain`.
    """
    try:
        with answered():
            lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD:
            return False
        raise RefusedError("lock_uncertain", system_text(error), path=path) from error
    return True


class HeldLock:
    """A locked file. Release unlocks explicitly, but never from a forked child."""

    def __init__(self, file: OpenedFile) -> None:
        self.file = file
        self._process = os.getpid()

    @property
    def facts(self) -> FileFacts:
        """Of the file, when the lock was taken."""
        return self.file.facts

    def release(self) -> None:
        """Unlock and close."""
        try:
            if os.getpid() == self._process:
                fcntl.flock(self.file.descriptor, fcntl.LOCK_UN)
        except OSError:
            pass  # closing the descriptor gives the lock up as well
        finally:
            os.close(self.file.descriptor)


def is_behind_name(file: OpenedFile, name: str, folder: int) -> bool:
    """Whether an open file still is what its name leads to."""
    named = lstat_at(name, folder)
    return named is not None and (named.st_dev, named.st_ino) == (file.facts.device, file.facts.inode)


def open_locked(
    opened: Callable[[], OpenedFile],
    name: str,
    folder: int,
    *,
    patience: float,
    busy: Callable[[OpenedFile], Exception],
) -> HeldLock:
    """Open a file and lock it, with polling, until the lock is held on the file behind the name.

    The facts of the result are those after the lock was taken.

    Args:
        opened: opens it and holds it to its rule.
        name: of the file, in `folder`.
        folder: open folder.
        patience: seconds; 0 for a single attempt.
        busy: makes the error for a lock that stays held.

    Raises:
        RefusedError: `lock_uncertain`, and what `opened` and `busy` give.
    """
    end = time.monotonic() + patience
    while True:
        file = opened()
        try:
            wait_for_lock(file, end, busy)
            if is_behind_name(file, name, folder):
                return HeldLock(OpenedFile(file.path, file.descriptor))
            _wait_no_longer(file, end + PATIENCE, busy)
        except BaseException:
            os.close(file.descriptor)
            raise
        os.close(file.descriptor)


def wait_for_lock(file: OpenedFile, end: float, busy: Callable[[OpenedFile], Exception]) -> None:
    """Poll for the exclusive lock of an open file or folder.

    Args:
        file: open file or folder.
        end: moment of the monotonic clock, in seconds, after which it is not tried again.
        busy: makes the error for a lock that stays held.

    Raises:
        RefusedError: `lock_uncertain`, and what `busy` gives.
    """
    while not try_lock(file.descriptor, file.path):
        _wait_no_longer(file, end, busy)
        time.sleep(POLL)


def _wait_no_longer(file: OpenedFile, end: float, busy: Callable[[OpenedFile], Exception]) -> None:
    if time.monotonic() >= end:
        raise busy(file)


def busy_error(code: str, message: str) -> Callable[[OpenedFile], Exception]:
    """Makes the error for a lock that stays held, with the holder."""

    def error(file: OpenedFile) -> Exception:
        return RefusedError(code, message, path=file.path, detail=holders(ask_lock(file.descriptor)))

    return error


def _entry(store: InvocationStore, name: str, flags: int) -> OpenedFile:
    path = f"{store.path}/{name}"
    with examining(path):
        file = OpenedFile(path, os.open(name, flags, 0o600, dir_fd=store.folder))
    try:
        store.check_entry(file)
    except BaseException:
        os.close(file.descriptor)
        raise
    return file


@contextmanager
def store_lock(store: InvocationStore) -> Iterator[None]:
    """Hold the store's lock; the lock file is created if it is missing.

    Raises:
        RefusedError: `store_busy`, `lock_uncertain`, or the lock file breaks the file rule.
        UnexaminedError: the lock file cannot be opened.
    """
    refuse_network(store.folder, store.path)
    held = open_locked(
        lambda: _entry(store, STORE_LOCK, _OPEN | os.O_CREAT),
        STORE_LOCK,
        store.folder,
        patience=PATIENCE,
        busy=busy_error("store_busy", STORE_BUSY),
    )
    try:
        yield
    finally:
        held.release()


@contextmanager
def claim_lock(store: InvocationStore, scope: str, invocation_id: UUID) -> Iterator[HeldLock]:
    """Hold the lock of a claim for a whole command; the store's lock is held while it is taken.

    Raises:
        RefusedError: `claim_live`, or as for `store_lock`.
        UnexaminedError: there is no such claim, or it cannot be opened for writing.
    """
    name = claim_name(scope, invocation_id)
    with store_lock(store):
        held = open_locked(
            lambda: _entry(store, name, _OPEN),
            name,
            store.folder,
            patience=0,
            busy=busy_error("claim_live", STILL_OWNED),
        )
    try:
        yield held
    finally:
        held.release()
