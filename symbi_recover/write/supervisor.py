"""Holds a lease store against its helper: `supervisor.lock`, exclusively, as leases.md section 13 asks.

1. open the state directory without following a link, and keep it open;
2. open the existing lock file (it is never made here), hold it to the rule of private files;
3. take the exclusive BSD lock, once, without waiting;
4. the path must still lead to the same file.

`HeldStore.check` repeats the last step before anything is changed. There is no way around a held lock.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager

from symbi_recover.core.errors import StaleError, UnexaminedError
from symbi_recover.read.evidence.locate import lstat_at
from symbi_recover.read.evidence.locks import ask_lock
from symbi_recover.read.evidence.mounts import Locality, Mount, mount_of_descriptor
from symbi_recover.read.evidence.opener import FOLDER_FLAGS, FileFacts, OpenedFile, examining, facts_of
from symbi_recover.read.verify.lease_entries import described
from symbi_recover.read.verify.lease_store import LOCK, resolve
from symbi_recover.write.lock import HeldLock, is_behind_name, try_lock


class HeldStore:
    """A state directory whose helper cannot start now."""

    def __init__(self, path: str, folder: int, lock: HeldLock) -> None:
        self.path = path
        self.folder = folder
        self.facts = facts_of(os.fstat(folder))
        self._lock = lock

    def check(self) -> None:
        """Make sure that directory and lock are still those behind their names.

        Raises:
            StaleError: `lock_replaced`.
        """
        status = lstat_at(self.path, -1)
        there = status is not None and (status.st_dev, status.st_ino) == (self.facts.device, self.facts.inode)
        if not there or not is_behind_name(self._lock.file, LOCK, self.folder):
            raise StaleError(
                "lock_replaced", "the lock that is held is not the store's any more", path=self.path
            )


@contextmanager
def supervisor_lock(path: str) -> Iterator[HeldStore]:
    """Hold a store for the length of a block.

    Args:
        path: the state directory, in any spelling.

    Raises:
        StaleError: `supervisor_running`, `lock_missing`, `lock_replaced`, `lock_unsafe`.
        RefusedError: `lock_uncertain`.
        UnexaminedError: the directory cannot be opened; `lock_uncertain` where it is the lock file.
    """
    real = resolve(path)
    with examining(real):
        folder = os.open(real, FOLDER_FLAGS)
    try:
        lock = _take(real, folder)
        try:
            held = HeldStore(real, folder, lock)
            held.check()
            yield held
        finally:
            lock.release()
    finally:
        os.close(folder)


def _take(real: str, folder: int) -> HeldLock:
    path = f"{real}/{LOCK}"
    owner = os.fstat(folder).st_uid
    try:
        with examining(path):
            status = os.stat(LOCK, dir_fd=folder, follow_symlinks=False)
        # What is no file is not opened: a link is not followed, and a socket would only give another error.
        _check_private(facts_of(status), owner, path)
        file = OpenedFile.open(LOCK, folder=folder)
    except UnexaminedError as error:
        if error.code == "file_missing":
            raise StaleError("lock_missing", "there is no supervisor.lock in the store", path=path) from error
        message = f"supervisor.lock cannot be opened: {error.message}"
        raise UnexaminedError("lock_uncertain", message, path=path) from error
    file.path = path
    taken = False
    try:
        _check_private(file.facts, owner, path)
        taken = try_lock(file.descriptor, path)
        pid = None if taken else holder(file.descriptor)
    finally:
        if not taken:
            os.close(file.descriptor)
    if not taken:
        raise running(real, pid)
    return HeldLock(file)


def _check_private(facts: FileFacts, owner: int, path: str) -> None:
    if not facts.private_to(owner):
        message = f"a {described(facts)}, and no private file of the store's owner"
        raise StaleError("lock_unsafe", message, path=path)


def holder(descriptor: int) -> int | None:
    """The process that holds the lock, if the kernel names it."""
    return next((one.pid for one in ask_lock(descriptor).holders if one.pid is not None), None)


def running(real: str, pid: int | None) -> StaleError:
    """The refusal while a helper runs, with the way to stop it."""
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()
    return StaleError(
        "supervisor_running",
        f"a helper holds the store's lock{f' (process {pid})' if pid is not None else ''}",
        path=real,
        hint="stop its service first; a helper that the runtime started is the user unit "
        f"symbi-workers-{digest}.service (systemctl --user stop …); start it again afterwards",
    )


def is_local(folder: int) -> str | None:
    """None if an open directory is on a local file system of a known type, else why not."""
    mount = mount_of_descriptor(folder)
    if not isinstance(mount, Mount):
        return mount.detail
    kind = mount.kind.decode("ascii", "backslashreplace")
    return None if mount.locality is Locality.LOCAL else f"its file system is of type {kind}"
