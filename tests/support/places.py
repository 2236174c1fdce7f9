"""Fixed places on the machine that tests have to share, and the file locks that let them take turns.

Some evidence names its own absolute path and is valid at that path alone. The lock of a place is the file
`PLACE.lock` beside it. Whoever leaves last removes it, so nothing is left behind and no other user is kept out; a
lock file is therefore believed only while it still has its name.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class PlaceTakenError(Exception):
    """The place belongs to somebody else."""


def lock_path(place: Path) -> Path:
    """The lock file of a place."""
    return place.with_name(place.name + ".lock")


def open_lock(path: Path) -> int:
    """Open a lock file, making it if need be.

    Raises:
        PlaceTakenError: another user made it.
    """
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except PermissionError:
        raise PlaceTakenError(
            f"{path} belongs to another user, who may be running these tests; wait, or have it removed.",
        ) from None


def is_current(path: Path, lock: int) -> bool:
    """Whether the open lock file still has its name."""
    try:
        named = path.lstat()
    except FileNotFoundError:
        return False
    return (named.st_dev, named.st_ino) == (os.fstat(lock).st_dev, os.fstat(lock).st_ino)


@contextmanager
def alone_at(place: Path) -> Iterator[None]:
    """Keep other test processes away from a place; its content is the caller's business.

    Raises:
        PlaceTakenError: another user is there.
    """
    path = lock_path(place)
    while True:
        lock = open_lock(path)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_current(path, lock):
            break
        os.close(lock)
    try:
        yield
    finally:
        path.unlink()
        os.close(lock)
