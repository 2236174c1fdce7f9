"""Reads the operator's own files about leases: private files in folders below the operator's folder.

A file that is not private, too large, or not as this toolkit writes it counts for nothing and is reported; it is never
taken for absent.
"""

import os
from typing import TypeVar

from msgspec import Struct

from symbi_recover.core.errors import UnexaminedError
from symbi_recover.read.evidence.opener import FOLDER_FLAGS, OpenedFile
from symbi_recover.wire.retirement import LIMIT, FormError, decode, digest

T = TypeVar("T")
WITNESSES, FENCES, RECONCILIATIONS, RETIREMENTS = "witnesses", "fences", "reconciliations", "retirements"
SUFFIX = ".json"
_MOST_FILES = 10_000


class Own(Struct, frozen=True):
    """One file of the operator's own."""

    name: str
    path: str
    data: bytes | None
    """None if it cannot be used."""
    why: str | None = None


def read_own(home: str, kind: str, *, prefix: str = "") -> tuple[Own, ...]:
    """Read all files of one kind, by name; none if the folder is not there.

    Args:
        home: the operator's folder.
        kind: one of the folder names of this module.
        prefix: only files whose names begin so.
    """
    folder_path = f"{home}/{kind}"
    try:
        folder = os.open(folder_path, FOLDER_FLAGS)
    except OSError:
        return ()
    try:
        names = sorted(
            name for name in os.listdir(folder) if name.endswith(SUFFIX) and name.startswith(prefix)
        )[:_MOST_FILES]
        return tuple(_read(folder, folder_path, name) for name in names)
    except OSError:
        return ()
    finally:
        os.close(folder)


def _read(folder: int, folder_path: str, name: str) -> Own:
    path = f"{folder_path}/{name}"
    try:
        with OpenedFile.open(name, folder=folder) as file:
            if not file.facts.private or file.facts.size > LIMIT:
                return Own(
                    name,
                    path,
                    None,
                    f"a {file.facts.kind}, mode {file.facts.mode:04o}, {file.facts.size} bytes",
                )
            return Own(name, path, file.read(LIMIT))
    except UnexaminedError as error:
        return Own(name, path, None, error.message)


def decoded(own: Own, kind: type[T]) -> T | str:
    """What a plain file says, or why it counts for nothing."""
    if own.data is None:
        return own.why or "it cannot be read"
    try:
        return decode(own.data, kind)
    except FormError as error:
        return str(error)


def sha256(own: Own) -> str:
    """Of a file's bytes; empty if it could not be read."""
    return digest(own.data) if own.data is not None else ""
