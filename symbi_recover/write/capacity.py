"""The limits of an invocation store, checked before a file is added (invocation.md section 14).

Run the check under the store's lock. Every entry besides the lock file must be a private regular file with one name: one that
is not stops every write to the store. The runtime does not say which; here all of them are named.
"""

import os
from collections.abc import Iterator

from symbi_recover.core.claims import STORE_BYTE_LIMIT, STORE_ENTRY_LIMIT
from symbi_recover.core.errors import RefusedError
from symbi_recover.read.evidence.locate import STORE_LOCK
from symbi_recover.read.evidence.opener import FileFacts, examining, facts_of
from symbi_recover.read.evidence.store import InvocationStore, shown

_SHOWN = 5
_TEMPORARY = ".tmp"


def check_capacity(store: InvocationStore, added_bytes: int) -> None:
    """Refuse to add one file of `added_bytes` bytes.

    Raises:
        RefusedError: `store_entry_stray` with every stray entry named, or `store_capacity`.
        UnexaminedError: the store cannot be listed.
    """
    entries, size, left = 0, 0, 0
    strays = []
    for name, facts in _entries(store):
        entries += 1
        size += facts.size
        left += name.startswith(_TEMPORARY)
        if not facts.private:
            strays.append(f"{name!r}: {shown(facts)}")
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
    """Temporary files in the store by their names alone, sorted; another writer's may vanish at any time.

    Raises:
        UnexaminedError: the store cannot be listed.
    """
    with examining(store.path):
        return tuple(sorted(name for name in os.listdir(store.folder) if name.startswith(_TEMPORARY)))


def _entries(store: InvocationStore) -> Iterator[tuple[str, FileFacts]]:
    with examining(store.path):
        for name in os.listdir(store.folder):
            if name != STORE_LOCK:
                yield name, facts_of(os.stat(name, dir_fd=store.folder, follow_symlinks=False))
