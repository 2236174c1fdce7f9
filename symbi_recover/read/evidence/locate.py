"""Where evidence lies: names of claims and receipts, paths walked without following links, projects below a root.

Implements the names of invocation.md section 4 and publication.md sections 5 and 8. A path is walked one
component at a time, each opened from the one before, so that a link anywhere in it shows itself.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from symbi_recover.core.scalars import UUID
from symbi_recover.wire import canonical

SYMBIONT = ".symbiont"
INVOCATIONS = "invocations"
GOVERNED = "governed"
STORE_LOCK = "store.lock"
CRON_DATABASE = "cron_jobs.db"
_STEP = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_SKIPPED = frozenset({"proc", "sys", "dev"})


def claim_stem(scope: str, invocation_id: UUID) -> str:
    """The 64 hex digits that a claim's file name begins with."""
    return canonical.digest([scope, str(invocation_id)]).removeprefix("sha256:")


def claim_name(scope: str, invocation_id: UUID) -> str:
    """The file name of a claim."""
    return f"{claim_stem(scope, invocation_id)}.jsonl"


def resolution_name(scope: str, invocation_id: UUID) -> str:
    """The file name of a resolution receipt."""
    return f"{claim_stem(scope, invocation_id)}.resolved.json"


def publication_name(scope: str, invocation_id: UUID, publication_id: UUID) -> str:
    """The file name of a publication receipt."""
    named = ["file-publication-v1", scope, str(invocation_id), str(publication_id)]
    return f"{canonical.digest(named).removeprefix('sha256:')}.publication.json"


def journal_name(agent_id: UUID, run_id: UUID) -> str:
    """The file name of a run journal."""
    return f"{agent_id}.{run_id}.jsonl"


def components(path: str) -> list[str]:
    """The parts of a path as the runtime compares them: empty and `.` parts do not count, `..` does."""
    return [part for part in path.split("/") if part not in ("", ".")]


class UpwardError(ValueError):
    """A path that must lead downwards holds `..`."""


@contextmanager
def walk(path: str, *, flags: int = _STEP) -> Iterator[int]:
    """Open a folder by its absolute path, one component after the other, following no link.

    Raises:
        OSError: as the system answers; a link is ENOTDIR.
        UpwardError: at a `..`, when it is reached.
    """
    current = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in components(path):
            if part == "..":
                raise UpwardError(path)
            following = os.open(part, flags, dir_fd=current)
            os.close(current)
            current = following
        yield current
    finally:
        os.close(current)


@contextmanager
def walk_searching(path: str) -> Iterator[int]:
    """As `walk`, but needs only the right to search the folders, not to read them; the descriptor is `O_PATH`."""
    with walk(path, flags=os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW) as descriptor:
        yield descriptor


def find_projects(root: str, unread: Callable[[str, OSError], None]) -> Iterator[str]:
    """The folders at and below `root` that hold an invocation store, as real paths, sorted within each folder.

    Links are not followed. A folder that holds a `.symbiont` into which nobody may look here counts as well: it is for
    the caller to find out that it cannot be examined.

    Args:
        root: where to begin.
        unread: told of each folder whose projects nobody can tell of, and why.
    """
    waiting = [os.path.realpath(root)]
    while waiting:
        folder = waiting.pop()
        try:
            names = _folders(folder)
        except OSError as error:
            # it may still be searched, without being read
            if _holds(folder, f"{SYMBIONT}/{INVOCATIONS}"):
                yield folder
            if error.errno != errno.ENOENT:
                unread(folder, error)
            continue
        if _holds(folder, f"{SYMBIONT}/{INVOCATIONS}", doubt=SYMBIONT in names):
            yield folder
        waiting.extend(
            f"{folder.rstrip('/')}/{name}"
            for name in reversed(names)
            if name != SYMBIONT and not (folder == "/" and name in _SKIPPED)
        )


def _holds(folder: str, path: str, *, doubt: bool = False) -> bool:
    """Whether something lies at a path below a folder, safe or not; `doubt` where it cannot be known."""
    try:
        os.lstat(f"{folder}/{path}")
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return doubt
    return True


def _folders(folder: str) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))


def lstat_at(name: str, folder: int) -> os.stat_result | None:
    """What lies under a name in an open folder, links not followed; None if nothing can be seen there."""
    try:
        return os.lstat(name) if folder < 0 else os.stat(name, dir_fd=folder, follow_symlinks=False)
    except (OSError, ValueError):
        return None


def is_folder(status: os.stat_result | None) -> bool:
    """Whether a status is that of a real folder."""
    return status is not None and stat.S_ISDIR(status.st_mode)


def readable(name: str) -> str:
    """A name from the system as text that any output can hold: bytes that are not UTF-8 become escapes."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
