"""Durable files that replace nothing: write all, sync the file, give the name, sync the folder.

`make_folders` makes the place, `publish` does it for a whole file, `Temporary` in steps, `rename_no_replace` is the one
way to give a name. A name is given with RENAME_NOREPLACE alone; where the file system lacks it there is no fallback
(field cases F-094, F-096).
A failed sync ends the attempt: what the device holds is unknown then, so nothing is synced a second time (F-086).
A folder that cannot be synced because the file system does not support it is a remark, not a failure (F-087).
"""

import ctypes
import errno
import os
import platform
import secrets
import string
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Self

from symbi_recover.core.errors import RefusedError
from symbi_recover.read.evidence.mounts import Mount, mount_of_descriptor
from symbi_recover.read.evidence.opener import system_text

_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_LETTERS = string.ascii_letters + string.digits
_NO_REPLACE = 1
_UNSUPPORTED = frozenset(
    {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM, errno.EXDEV}
)
_FOLDER_SYNC_UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})
_CALL_NUMBERS = {
    "x86_64": 316,
    "aarch64": 276,
    "riscv64": 276,
    "i686": 353,
    "armv7l": 382,
    "ppc64le": 357,
    "s390x": 347,
}


@contextmanager
def changing(path: str) -> Iterator[None]:
    """Turn an OSError from changing something at `path` into a `write_failed`.

    Raises:
        RefusedError: `write_failed`, with the system's words.
    """
    try:
        yield
    except OSError as error:
        raise RefusedError("write_failed", system_text(error), path=path) from error


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything at the descriptor's position.

    Raises:
        OSError: as the system answers, or ENOSPC for a write that writes nothing.
    """
    rest = memoryview(data)
    while rest:
        written = os.write(descriptor, rest)
        if written == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        rest = rest[written:]


def sync_folder(descriptor: int) -> bool:
    """Make the names in an open folder durable; False where the file system cannot do that at all.

    Raises:
        OSError: any other failure.
    """
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno in _FOLDER_SYNC_UNSUPPORTED:
            return False
        raise
    return True


def make_folders(path: str) -> None:
    """Make a folder and what is missing above it, private and durable; what is there already is left as it is.

    Raises:
        OSError: as the system answers.
    """
    missing = []
    folder = os.path.abspath(path)
    while not os.path.lexists(folder) and folder != os.path.dirname(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for folder in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        parent = os.open(os.path.dirname(folder), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            sync_folder(parent)
        finally:
            os.close(parent)


def rename_no_replace(folder: int, name: str, to_folder: int, to_name: str) -> None:
    """Give a file another name, unless that name is taken.

    Raises:
        OSError: as the system answers; EEXIST for a taken name.
    """
    while _renameat2()(folder, os.fsencode(name), to_folder, os.fsencode(to_name), _NO_REPLACE):
        number = ctypes.get_errno()
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number), to_name)


@cache
def _renameat2() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    arguments: list[Any] = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    call = getattr(library, "renameat2", None)
    if call is not None:
        call.argtypes, call.restype = arguments, ctypes.c_int
        return call
    number = _CALL_NUMBERS.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    raw = library.syscall
    raw.argtypes, raw.restype = [ctypes.c_long, *arguments], ctypes.c_long
    return lambda *given: raw(number, *given)


def unsupported(error: OSError, folder: int, path: str) -> RefusedError | None:
    """The refusal, if a rename failed for want of RENAME_NOREPLACE; None for any other reason."""
    if error.errno not in _UNSUPPORTED:
        return None
    mount = mount_of_descriptor(folder)
    kind = mount.kind.decode("ascii", "replace") if isinstance(mount, Mount) else "unknown"
    return RefusedError(
        "rename_unsupported",
        system_text(error),
        path=path,
        detail=f"the file system there, of type {kind}, gave no name without the risk of replacing a file",
    )


def _temporary_name() -> str:
    return ".tmp" + "".join(secrets.choice(_LETTERS) for _ in range(6))


class Temporary:
    """A private file `.tmp??????` in an open folder, removed unless it is given its name; use as a context manager."""

    def __init__(self, folder: int, folder_path: str) -> None:
        self.folder = folder
        self.folder_path = folder_path
        self.name = ""
        self._descriptor = -1
        self._reserved = False

    def __enter__(self) -> Self:
        """Create it.

        Raises:
            OSError: as the system answers.
        """
        for _ in range(16):
            self.name = _temporary_name()
            with suppress(FileExistsError):
                self._descriptor = os.open(self.name, _CREATE, 0o600, dir_fd=self.folder)
                return self
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), self.folder_path)

    def __exit__(self, *_: object) -> None:
        if self.name:
            with suppress(OSError):
                os.unlink(self.name, dir_fd=self.folder)
        with suppress(OSError):
            os.close(self._descriptor)

    def reserve(self, size: int) -> None:
        """Take the room for `size` bytes now, so that a full device shows itself before anything else is done.

        Raises:
            OSError: as the system answers.
        """
        os.posix_fallocate(self._descriptor, 0, size)
        self._reserved = True
        os.fsync(self._descriptor)

    def prove(self) -> None:
        """Give the file another temporary name, which shows that this file system can give names safely.

        Raises:
            RefusedError: `rename_unsupported`.
            OSError: as the system answers.
        """
        other = _temporary_name()
        self._rename(other)
        self.name = other

    def fill(self, data: bytes) -> None:
        """Write the content and make it durable.

        Raises:
            OSError: as the system answers; the file must not be used then.
        """
        write_all(self._descriptor, data)
        if self._reserved:
            os.ftruncate(self._descriptor, len(data))
        os.fsync(self._descriptor)

    def publish(self, name: str) -> bool:
        """Give the file its name and make that durable; False where the folder cannot be synced at all.

        Raises:
            RefusedError: `rename_unsupported`.
            OSError: as the system answers; EEXIST for a taken name.
        """
        self._rename(name)
        self.name = ""
        return sync_folder(self.folder)

    def _rename(self, name: str) -> None:
        try:
            rename_no_replace(self.folder, self.name, self.folder, name)
        except OSError as error:
            refusal = unsupported(error, self.folder, f"{self.folder_path}/{name}")
            if refusal is not None:
                raise refusal from error
            raise


def publish(folder: int, folder_path: str, name: str, data: bytes) -> bool:
    """Make a new private file, durable before it has its name; errors and result as `Temporary.publish`."""
    with Temporary(folder, folder_path) as temporary:
        temporary.fill(data)
        return temporary.publish(name)
