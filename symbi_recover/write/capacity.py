"""The limits of an invocation store, checked before a file is added (invocation.md section 14).

Run it under the store's lock. Every entry besides the lock file must be a private regular file with one name: one that
is not stops every write to the store. The runtime does not say which; here all of them are named.
"""

import os
import stat
from collections.abc import Iterator

from symbi_recover.core.claims import STORE_BYTE_LIMIT, STORE_ENTRY_LIMIT
from symbi_recover.core.errors import RefusedError
from symbi_recover.read.evidence.locate import STORE_LOCK
from symbi_recover.read.evidence.opener import examining, facts_of
from symbi_recover.read.evidence.store import InvocationStore, shown

_SHOWN = 5


def check_capacity(store: InvocationStore, added_bytes: int) -> None:
    """Refuse to add one file of `added_bytes` bytes.

    Raises:
        RefusedError: `store_entry_stray` with every stray entry named, or `store_capacity`.
        UnexaminedError: the store cannot be listed.
    """
    entries, size, left = 0, 0, 0
    strays = []
    for name, status in _entries(store):
        entries += 1
        size += status.st_size
        left += name.startswith(".tmp")
        if not _is_sound(status):
            strays.append(f"{name!r}: {shown(facts_of(status))}")
    if strays:
        more = f", and {len(strays) - _SHOWN} more" if len(strays) > _SHOWN else ""
        raise RefusedError(
            "store_entry_stray",
            "unsafe invocation store entry",
            path=store.path,
            detail="; ".join(strays[:_SHOWN]) + more,
        )
    if entries + 1 > STORE_ENTRY_LIMIT or size + added_bytes > STORE_BYTE_LIMIT:
        raise RefusedError(
            "store_capacity",
            "invocation store capacity exhausted; retained identities must not be silently discarded",
            path=store.path,
            detail=f"{entries} of {STORE_ENTRY_LIMIT} entries and {size} of {STORE_BYTE_LIMIT} bytes are taken, "
            f"{left} of them by temporary files of interrupted writes",
        )


def leftovers(store: InvocationStore) -> tuple[str, ...]:
    """Temporary files that an interrupted write left in the store, sorted.

    Raises:
        UnexaminedError: the store cannot be listed.
    """
    return tuple(sorted(name for name, _ in _entries(store) if name.startswith(".tmp")))


def _entries(store: InvocationStore) -> Iterator[tuple[str, os.stat_result]]:
    with examining(store.path):
        for name in os.listdir(store.folder):
            if name != STORE_LOCK:
                yield name, os.stat(name, dir_fd=store.folder, follow_symlinks=False)


def _is_sound(status: os.stat_result) -> bool:
    return (
        stat.S_ISREG(status.st_mode)
        and status.st_nlink == 1
        and status.st_uid == os.geteuid()
        and not status.st_mode & 0o077
    )
