"""Opens evidence without changing it, and says what was opened.

Every file is opened read-only, without following a link in the last component, without blocking on a FIFO and
without becoming a controlling terminal, then examined through its descriptor, so that type, size, hash and
content are those of one file. Nothing is locked and nothing is created. A missing or unreadable file is an
`UnexaminedError` with the system's own words.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from msgspec import Struct

from symbi_recover.core.errors import UnexaminedError

FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
FOLDER_FLAGS = FILE_FLAGS | os.O_DIRECTORY
_BLOCK = 1 << 20

_KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "symbolic link",
    stat.S_IFIFO: "FIFO",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
}


class FileFacts(Struct, frozen=True):
    """What `fstat` says of a file; times in nanoseconds since 1970."""

    kind: str
    mode: int
    """Permission bits."""
    uid: int
    gid: int
    links: int
    size: int
    device: int
    inode: int
    mtime_ns: int
    ctime_ns: int

    @property
    def private(self) -> bool:
        """A regular file of the effective user, without group or other bits, with one link."""
        return self.private_to(os.geteuid())

    def private_to(self, uid: int) -> bool:
        """A regular file of the account `uid`, without group or other bits, with one link."""
        return self.kind == "file" and self.uid == uid and not self.mode & 0o077 and self.links == 1

    @property
    def version(self) -> tuple[int, int, int]:
        """What changes when the content does: size, mtime, ctime."""
        return self.size, self.mtime_ns, self.ctime_ns


def facts_of(status: os.stat_result) -> FileFacts:
    """The facts in a `stat` result."""
    return FileFacts(
        kind=_KINDS.get(stat.S_IFMT(status.st_mode), "unknown"),
        mode=stat.S_IMODE(status.st_mode),
        uid=status.st_uid,
        gid=status.st_gid,
        links=status.st_nlink,
        size=status.st_size,
        device=status.st_dev,
        inode=status.st_ino,
        mtime_ns=status.st_mtime_ns,
        ctime_ns=status.st_ctime_ns,
    )


def system_text(error: OSError) -> str:
    """The system's words as the runtime prints them, for example `No such file or directory (os error 2)`."""
    return f"{os.strerror(error.errno or 0)} (os error {error.errno or 0})"


@contextmanager
def examining(path: str) -> Iterator[None]:
    """Turn an OSError from looking at `path` into an UnexaminedError.

    Raises:
        UnexaminedError: `file_missing`, `file_link`, or `file_unreadable`.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise UnexaminedError("file_missing", system_text(error), path=path) from error
    except OSError as error:
        code = "file_link" if error.errno == errno.ELOOP else "file_unreadable"
        raise UnexaminedError(code, system_text(error), path=path) from error
    except ValueError as error:
        raise UnexaminedError("file_unreadable", "the name holds a NUL byte", path=path) from error


def is_there(name: str, *, folder: int | None = None, path: str | None = None) -> bool:
    """Whether anything lies under a name, links not followed; only "no such file" is absence.

    Args:
        name: relative to the open `folder`, if given.
        folder: descriptor.
        path: for messages; the name itself by default.

    Raises:
        UnexaminedError: that cannot be told.
    """
    try:
        with examining(path or name):
            os.stat(name, dir_fd=folder, follow_symlinks=False)
    except UnexaminedError as error:
        if error.code != "file_missing":
            raise
        return False
    return True


class OpenedFile:
    """One opened evidence file: its descriptor, and its facts at open."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor
        self.facts = facts_of(os.fstat(descriptor))

    @classmethod
    def open(cls, path: str, *, folder: int | None = None) -> Self:
        """Open `path`, relative to the open `folder` if given.

        Raises:
            UnexaminedError: see `examining`; a link in the last component is `file_link`.
        """
        with examining(path):
            return cls(path, os.open(path, FILE_FLAGS, dir_fd=folder))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)

    def read(self, limit: int) -> bytes:
        """All bytes up to the size at open, read once; at most `limit` + 1, so that a longer file shows itself."""
        return b"".join(self.blocks(0, min(self.facts.size, limit + 1)))

    def blocks(self, start: int, end: int) -> Iterator[bytes]:
        """The bytes from `start` to `end`, fewer if the file has become shorter, in blocks of at most 1 MiB."""
        with examining(self.path):
            while start < end:
                part = os.pread(self.descriptor, min(_BLOCK, end - start), start)
                if not part:
                    return
                start += len(part)
                yield part

    def unchanged(self) -> bool:
        """Whether size, modification time and change time are still those at open."""
        return facts_of(os.fstat(self.descriptor)).version == self.facts.version


@contextmanager
def open_folder(path: str, *, parent: int | None = None) -> Iterator[int]:
    """Open a folder, whose last component may not be a link, and give its descriptor."""
    with examining(path):
        descriptor = os.open(path, FOLDER_FLAGS, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
