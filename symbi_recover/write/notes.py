"""Writes the operator's own files about leases: new private files, durable, never replacing one."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from symbi_recover.core.codes import finding
from symbi_recover.core.errors import RefusedError, UnexaminedError
from symbi_recover.core.findings import Finding
from symbi_recover.read.evidence.opener import FOLDER_FLAGS, examining
from symbi_recover.wire.retirement import digest
from symbi_recover.write.atomic import changing, publish, sync_folder
from symbi_recover.write.keys import open_home


@contextmanager
def own_folder(home: str, kind: str) -> Iterator[int]:
    """Open a folder below the operator's folder, making both if they are missing.

    Raises:
        RefusedError: `operator_home_unsafe`, `write_failed`.
        UnexaminedError: it cannot be opened.
    """
    path = f"{home}/{kind}"
    with open_home(home, create=True) as above:
        with changing(path), suppress(FileExistsError):
            os.mkdir(kind, 0o700, dir_fd=above)
            sync_folder(above)
        with examining(path):
            descriptor = os.open(kind, FOLDER_FLAGS, dir_fd=above)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise RefusedError(
                "operator_home_unsafe",
                "a folder of the operator's own must be private",
                path=path,
                detail=f"its owner is {status.st_uid}, its mode {stat.S_IMODE(status.st_mode):04o}",
            )
        yield descriptor
    finally:
        os.close(descriptor)


class Written(NamedTuple):
    """A new file of the operator's own."""

    path: str
    sha256: str
    remarks: tuple[Finding, ...]
    """`sync_unconfirmed`, where the file system cannot make names durable."""


def write_own(home: str, kind: str, name: str, data: bytes) -> Written:
    """Write a new file, durable before it has its name.

    Raises:
        RefusedError: `write_failed`, also for a name that is taken; `rename_unsupported`, `operator_home_unsafe`.
    """
    path = f"{home}/{kind}/{name}"
    with own_folder(home, kind) as folder, changing(path):
        synced = publish(folder, f"{home}/{kind}", name, data)
    remark = finding("sync_unconfirmed", "the name of the new file", path=path)
    return Written(path, digest(data), () if synced else (remark,))


def remove_own(home: str, kind: str, name: str) -> None:
    """Remove a file of our own; one that is gone already is no fault.

    Raises:
        RefusedError: `write_failed`.
    """
    with own_folder(home, kind) as folder, changing(f"{home}/{kind}/{name}"):
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        sync_folder(folder)


def usable(home: str, kind: str) -> str | None:
    """None if files of a kind can be written as far as that can be known before, else why not."""
    try:
        with own_folder(home, kind) as folder:
            room = os.fstatvfs(folder)
            if room.f_flag & os.ST_RDONLY:
                return f"{home} is on a read-only file system"
            if not room.f_bavail and os.geteuid() != 0:
                return f"the file system of {home} is full"
    except (RefusedError, UnexaminedError) as error:
        return f"{error.message} ({error.path})"
    return None
