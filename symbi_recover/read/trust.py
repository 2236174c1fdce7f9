"""The public keys that an operator trusts: given on the command line, or pinned in a trust file.

1. `load` reads a trust file: one JSON object a line, private to its owner, each line exactly as written by us;
2. `pinned` picks the entries that are for a project and a host; `decide` makes of all that the keys to accept.

A key that lies beside the evidence is never one of them.
"""

import os
from typing import Literal

import msgspec
from msgspec import Struct

from symbi_recover.core.errors import MisuseError, UnexaminedError
from symbi_recover.core.report import KeyUsed
from symbi_recover.core.scalars import HEX_64
from symbi_recover.core.words import counted
from symbi_recover.read.evidence.opener import OpenedFile
from symbi_recover.read.keys import public_key as read_public_key
from symbi_recover.wire.timestamp import is_canonical

FILE_NAME = "trust.jsonl"
_TRUST_FILE_LIMIT = 1_048_576


class TrustEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One pinned key. An entry without project is for every project, one without host for every host."""

    public_key: str
    """64 lower-case hex digits."""
    project: str | None = None
    """Real path."""
    host: str | None = None
    comment: str = ""
    added_at: str
    """UTC."""

    @property
    def key(self) -> bytes:
        """The 32 bytes."""
        return bytes.fromhex(self.public_key)

    @property
    def place(self) -> tuple[str, str | None, str | None]:
        """What makes the entry one of its kind."""
        return self.public_key, self.project, self.host


class TrustList(Struct, frozen=True, kw_only=True):
    """The document of `trust list`."""

    schema: str = "symbi-recover/trust-list.v1"
    file: str
    entries: tuple[TrustEntry, ...]


class Trusted(Struct, frozen=True):
    """The keys to accept."""

    keys: frozenset[bytes]
    source: Literal["given", "trust file"]


_DECODER = msgspec.json.Decoder(TrustEntry)


def load(path: str, *, required: bool) -> tuple[TrustEntry, ...]:
    """The entries of a trust file; none for a missing one that is not required.

    Raises:
        MisuseError: `trust_file_unusable`.
        UnexaminedError: it is missing, a link, unreadable, no regular file, or too large.
    """
    try:
        opened = OpenedFile.open(path)
    except UnexaminedError as error:
        if error.code == "file_missing" and not required:
            return ()
        raise
    with opened as file:
        facts = file.facts
        if facts.kind != "file" or facts.size > _TRUST_FILE_LIMIT:
            what = f"it is a {facts.kind} of {counted(facts.size, 'byte')}"
            raise UnexaminedError("file_kind", f"the trust file cannot be used: {what}", path=path)
        if facts.uid not in (0, os.geteuid()) or facts.mode & 0o022:
            raise _unusable(
                f"others may have changed it: owner {facts.uid}, mode {facts.mode:04o}, links {facts.links}",
                path,
            )
        return parse(file.read(_TRUST_FILE_LIMIT), path)


def parse(data: bytes, path: str) -> tuple[TrustEntry, ...]:
    """The entries in the bytes of a trust file; errors as `load`."""
    lines = data.removesuffix(b"\n").removesuffix(b"\r").split(b"\n") if data.strip() else []
    entries = []
    for number, line in enumerate(lines):
        try:
            entry = _DECODER.decode(line)
            sound = msgspec.json.encode(entry) == line
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise _unusable(f"line {number + 1} is not an entry: {error}", path) from error
        if not sound or not HEX_64.fullmatch(entry.public_key) or not is_canonical(entry.added_at):
            raise _unusable(f"line {number + 1} is not spelled as an entry is written", path)
        entries.append(entry)
    return tuple(entries)


def dump(entries: tuple[TrustEntry, ...]) -> bytes:
    """The bytes of a trust file."""
    return b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries)


def pinned(entries: tuple[TrustEntry, ...], project: str, host: str) -> frozenset[bytes]:
    """The keys that are pinned for a project, by its real path, on a host."""
    return frozenset(
        entry.key for entry in entries if entry.project in (None, project) and entry.host in (None, host)
    )


def decide(
    *, public_key: str | None, trust_file: str | None, default_file: str, project: str
) -> Trusted | None:
    """The keys to accept for a project; None where none was given or pinned.

    Args:
        public_key: as given.
        trust_file: as given; it must then pin a key for the project.
        default_file: consulted if nothing was given.
        project: real path.

    Raises:
        MisuseError: a key or file is not as such are written.
        UnexaminedError: `trust_no_key`; a file cannot be read.
    """
    if public_key is not None:
        return Trusted(frozenset((read_public_key(public_key),)), "given")
    entries = load(trust_file or default_file, required=trust_file is not None)
    keys = pinned(entries, project, os.uname().nodename)
    if not keys and trust_file is not None:
        raise UnexaminedError(
            "trust_no_key", "no key is pinned for this project, so nothing was verified", path=trust_file
        )
    return Trusted(keys, "trust file") if keys else None


def key_used(key: bytes, trusted: Trusted | None) -> KeyUsed:
    """How a key came to be believed, for a report."""
    return KeyUsed(key.hex(), "evidence" if trusted is None else trusted.source)


def _unusable(what: str, path: str) -> MisuseError:
    return MisuseError("trust_file_unusable", f"the trust file cannot be used: {what}", path=path)
