"""Reads the operator's own files about leases: private files in folders below the operator's folder.

A file that is not private, too large, or not as this toolkit writes it counts for nothing and is reported; it is never
taken for absent.
"""

import os
from typing import TypeVar

from msgspec import Struct

from symbi_recover.core.errors import UnexaminedError
from symbi_recover.core.words import counted
from symbi_recover.read.evidence.opener import FOLDER_FLAGS, OpenedFile, examining
from symbi_recover.wire.retirement import LIMIT, FormError, decode, digest

T = TypeVar("T")
WITNESSES, FENCES, RECONCILIATIONS, RETIREMENTS = "witnesses", "fences", "reconciliations", "retirements"
CLEARINGS = "clearings"
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

    Raises:
        UnexaminedError: the folder is there and cannot be read, or holds too much: what it says is not known then.
    """
    folder_path = f"{home}/{kind}"
    try:
        with examining(folder_path):
            folder = os.open(folder_path, FOLDER_FLAGS)
    except UnexaminedError as error:
        if error.code == "file_missing":
            return ()
        raise
    try:
        with examining(folder_path):
            listed = os.listdir(folder)
        names = sorted(name for name in listed if name.endswith(SUFFIX) and name.startswith(prefix))
        if len(names) > _MOST_FILES:
            message = f"the folder holds more than {_MOST_FILES} files"
            raise UnexaminedError("file_unreadable", message, path=folder_path)
        found = [_read(folder, folder_path, name) for name in names]
    finally:
        os.close(folder)
    return tuple(own for own in found if own is not None)


def _read(folder: int, folder_path: str, name: str) -> Own | None:
    """One file; None for one that another command has just removed."""
    path = f"{folder_path}/{name}"
    try:
        with OpenedFile.open(name, folder=folder) as file:
            if not file.facts.private or file.facts.size > LIMIT:
                why = f"a {file.facts.kind}, mode {file.facts.mode:04o}, {counted(file.facts.size, 'byte')}"
                return Own(name, path, None, why)
            return Own(name, path, file.read(LIMIT))
    except UnexaminedError as error:
        return None if error.code == "file_missing" else Own(name, path, None, error.message)


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
