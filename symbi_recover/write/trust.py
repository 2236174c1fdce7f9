"""Changes the file of pinned keys: the whole file is written anew beside it, made durable, and renamed over it.

1. make the folder, private; 2. take a lock on it, waiting two seconds at most, so that two operators cannot lose each
other's entry; 3. read and check the present file; 4. write, sync, rename, sync the folder.

It lies in the operator's own folder and touches no evidence.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from symbi_recover.core.errors import MisuseError, RefusedError
from symbi_recover.read.evidence.opener import FOLDER_FLAGS, OpenedFile, system_text
from symbi_recover.read.trust import TrustEntry, dump, load
from symbi_recover.write.atomic import make_folders, sync_folder, write_all
from symbi_recover.write.lock import PATIENCE, busy_error, wait_for_lock

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BUSY = busy_error("trust_file_busy", "another process is changing the pinned keys")

Entries = tuple[TrustEntry, ...]


def add(path: str, entry: TrustEntry) -> bool:
    """Pin a key; False if an entry for the same key, project and host is there already.

    Raises:
        RefusedError: `trust_file_busy`, `lock_uncertain`.
        MisuseError: `trust_file_unusable`.
    """

    def change(entries: Entries) -> Entries:
        return entries if any(known.place == entry.place for known in entries) else (*entries, entry)

    return _change(path, change)


def remove(path: str, place: tuple[str, str | None, str | None]) -> None:
    """Remove the entry for a key, project and host.

    Raises:
        RefusedError: `trust_entry_missing`, `trust_file_busy`, `lock_uncertain`.
        MisuseError: `trust_file_unusable`.
    """

    def change(entries: Entries) -> Entries:
        return tuple(known for known in entries if known.place != place)

    if not _change(path, change):
        raise RefusedError("trust_entry_missing", "no pinned key is as described", path=path)


def _change(path: str, change: Callable[[Entries], Entries]) -> bool:
    """Apply a change under the lock; whether the entries became others."""
    folder_path, name = os.path.split(os.path.abspath(path))
    try:
        make_folders(folder_path)
        with _locked(folder_path) as folder:
            before = load(path, required=False)
            after = change(before)
            if after == before:
                return False
            _replace(folder, name, dump(after))
            return True
    except OSError as error:
        raise MisuseError(
            "trust_file_unusable", f"the trust file cannot be written: {system_text(error)}", path=path
        ) from error


@contextmanager
def _locked(path: str) -> Iterator[int]:
    with OpenedFile(path, os.open(path, FOLDER_FLAGS)) as folder:
        if folder.facts.uid != os.geteuid() or folder.facts.mode & 0o022:
            raise MisuseError(
                "trust_file_unusable", "others may write to the folder of the trust file", path=path
            )
        wait_for_lock(folder, time.monotonic() + PATIENCE, _BUSY)
        yield folder.descriptor


def _replace(folder: int, name: str, data: bytes) -> None:
    """Step 4: nothing is left behind on an error, and the old file stays whole until the new one is."""
    temporary = f".{name}.new"
    with suppress(FileNotFoundError):  # of a writer that was stopped: whoever holds the lock is alone
        os.unlink(temporary, dir_fd=folder)
    file = os.open(temporary, _CREATE, 0o600, dir_fd=folder)
    try:
        try:
            write_all(file, data)
            os.fsync(file)
        finally:
            os.close(file)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        os.unlink(temporary, dir_fd=folder)
        raise
    sync_folder(folder)
