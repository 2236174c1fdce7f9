"""Copies an SQLite database into memory in its last committed state, without touching it.

SQLite itself, even when it only reads, may create files beside a database, take locks and roll a transaction back.
So it is never given the file:

1. the database, its write-ahead log and its rollback journal are read through held descriptors, twice, until both
   readings are the same: no mixture of two states;
2. the last committed state is made from those bytes (`wire/sqlite.py`);
3. SQLite opens that copy in memory, with a bound on its work.

It works on read-only media, and leaves no trace. What it shows of a database in use may be older than its user's own
view by one transaction. What the runtime would refuse about owner and mode are findings (cron-store.md section 1).
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct

from symbi_recover.core.codes import finding
from symbi_recover.core.errors import RefusedError, UnexaminedError
from symbi_recover.core.findings import Finding
from symbi_recover.core.words import counted
from symbi_recover.read.evidence.locate import lstat_at, walk_searching
from symbi_recover.read.evidence.opener import FILE_FLAGS, OpenedFile, examining, facts_of
from symbi_recover.read.evidence.store import shown
from symbi_recover.wire import sqlite

if TYPE_CHECKING:
    from sqlite3 import Connection

SIZE_LIMIT = 268_435_456
_ATTEMPTS = 5
_STEPS = 1000
_MOST_STEPS = 200_000
"""Times 1000 instructions of SQLite's machine: some seconds."""
_SIDECARS = ("", "-wal", "-journal")


class _Bytes(Struct, frozen=True):
    """The three files as read."""

    database: bytes
    log: bytes
    journal: bytes

    @property
    def digest(self) -> bytes:
        whole = hashlib.sha256()
        for part in (self.database, self.log, self.journal):
            whole.update(len(part).to_bytes(8, "big") + part)
        return whole.digest()


class DatabaseCopy(Struct, frozen=True):
    """A database in memory."""

    path: str
    """Where it came from, absolute."""
    image: bytes
    findings: tuple[Finding, ...]

    @contextmanager
    def opened(self) -> "Iterator[Connection]":
        """A connection to the copy; SQLite's errors inside the block become `cron_store_unreadable`."""
        with _opened(self.image, self.path) as connection:
            yield connection


def read_copy(path: str) -> DatabaseCopy:
    """Copy a database that must exist.

    Raises:
        UnexaminedError: `cron_store_missing`, `cron_store_changing`, or a file cannot be read.
        RefusedError: `cron_store_unreadable`, `cron_store_too_large`.
    """
    absolute = os.path.abspath(path)
    folder_path, name = os.path.split(absolute)
    with examining(folder_path), walk_searching(folder_path) as folder:
        if lstat_at(name, folder) is None:
            raise UnexaminedError("cron_store_missing", "there is no schedule database", path=absolute)
        findings = list(_protection(folder, folder_path, name))
        files = _stable(folder, folder_path, name)
    image, more = _committed(files, absolute)
    return DatabaseCopy(absolute, image, (*findings, *more))


def _protection(folder: int, folder_path: str, name: str) -> Iterator[Finding]:
    """Section 1: what the runtime would refuse about folder and files."""
    status = os.fstat(folder)
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        yield finding(
            "cron_store_not_private",
            f"owner {status.st_uid}, mode {stat.S_IMODE(status.st_mode):04o}",
            path=folder_path,
        )
    for suffix in (*_SIDECARS, "-shm"):
        beside = lstat_at(name + suffix, folder)
        if beside is not None and not facts_of(beside).private:
            yield finding(
                "cron_store_not_private", shown(facts_of(beside)), path=f"{folder_path}/{name}{suffix}"
            )


def _stable(folder: int, folder_path: str, name: str) -> _Bytes:
    """The files' bytes, read until two readings in a row are the same."""
    last: bytes | None = None
    for _ in range(_ATTEMPTS):
        parts = [_content(folder, folder_path, name + suffix, required=not suffix) for suffix in _SIDECARS]
        files = _Bytes(*parts)
        if files.digest == last:
            return files
        last = files.digest
    raise UnexaminedError(
        "cron_store_changing",
        "the schedule database kept changing while it was read",
        path=f"{folder_path}/{name}",
    )


def _content(folder: int, folder_path: str, name: str, *, required: bool) -> bytes:
    path = f"{folder_path}/{name}"
    if lstat_at(name, folder) is None and not required:
        return b""
    with examining(path):
        file = OpenedFile(path, os.open(name, FILE_FLAGS, dir_fd=folder))
    with file:
        if file.facts.kind != "file":
            raise RefusedError("cron_store_unreadable", f"it is a {file.facts.kind}", path=path)
        if file.facts.size > SIZE_LIMIT:
            raise RefusedError("cron_store_too_large", f"it has {file.facts.size} bytes", path=path)
        return file.read(SIZE_LIMIT)


def _committed(files: _Bytes, path: str) -> tuple[bytes, list[Finding]]:
    findings = []
    try:
        image, frames = sqlite.with_log(files.database, files.log)
        if frames:
            findings.append(finding("cron_log_pending", f"{frames} pages", path=f"{path}-wal"))
        image, rolled_back = sqlite.before_transaction(image, files.journal)
        if rolled_back:
            findings.append(
                finding("cron_rollback_pending", counted(len(files.journal), "byte"), path=f"{path}-journal")
            )
        return sqlite.in_memory(image), findings
    except sqlite.ImageError as error:
        raise RefusedError("cron_store_unreadable", str(error), path=path) from error


@contextmanager
def _opened(image: bytes, path: str) -> "Iterator[Connection]":
    """A connection to a copy in memory that cannot work for ever."""
    # late: few commands need SQLite
    import sqlite3  # noqa: PLC0415

    steps = 0

    def tick() -> int:
        nonlocal steps
        steps += 1
        return steps > _MOST_STEPS

    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        connection.deserialize(image)
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA query_only=ON")
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        connection.set_progress_handler(tick, _STEPS)
        yield connection
    except (sqlite3.Error, OverflowError) as error:
        raise RefusedError("cron_store_unreadable", str(error), path=path) from error
    finally:
        connection.close()
