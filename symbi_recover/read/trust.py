"""The public keys that an operator trusts: given on the command line, or pinned in a trust file.

1. `read_key` takes a key as hex, PEM or OpenSSH text, or from a file that holds one of them;
2. `load` reads a trust file: one JSON object a line, private to its owner, each line exactly as written by us;
3. `pinned` picks the entries that are for a project and a host; `decide` makes of all that the keys to accept.

A key that lies beside the evidence is never one of them.
"""

import os
import re

import msgspec
from msgspec import Struct

from symbi_recover.core.errors import MisuseError, RefusedError, UnexaminedError
from symbi_recover.core.report import KeyUsed
from symbi_recover.read.evidence.opener import OpenedFile
from symbi_recover.wire.timestamp import is_canonical

FILE_NAME = "trust.jsonl"
_KEY_FILE_LIMIT = 65_536
_TRUST_FILE_LIMIT = 1_048_576
_HEX = re.compile("[0-9a-fA-F]{64}")
_FORMS = "64 hexadecimal digits, or an Ed25519 public key in PEM or OpenSSH form, or (@)FILE that holds one of them"


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


class Trusted(Struct, frozen=True):
    """The keys to accept."""

    keys: frozenset[bytes]
    source: str
    """`given` or `trust file`."""


_DECODER = msgspec.json.Decoder(TrustEntry)


def read_key(text: str) -> bytes:
    """The 32 bytes of a public key that an operator gave.

    Raises:
        MisuseError: `key_form`.
    """
    if _HEX.fullmatch(text):
        return bytes.fromhex(text)
    if text.startswith(("-----BEGIN", "ssh-")):
        return _decoded(text.encode(), "the key that was given")
    text = text.removeprefix("@")
    try:
        with OpenedFile.open(text) as file:
            if file.facts.kind != "file" or file.facts.size > _KEY_FILE_LIMIT:
                raise MisuseError("key_form", f"a key is {_FORMS}; this is a {file.facts.kind}", path=text)
            data = file.read(_KEY_FILE_LIMIT)
    except UnexaminedError as error:
        raise MisuseError("key_form", f"a key is {_FORMS}; {error.message}", path=text) from error
    return _decoded(data, text)


def _decoded(data: bytes, where: str) -> bytes:
    for end in (b"\r\n", b"\n"):
        if data.endswith(end):
            data = data[: -len(end)]
            break
    try:
        if _HEX.fullmatch(data.decode("ascii")):
            return bytes.fromhex(data.decode("ascii"))
    except UnicodeDecodeError:
        raise MisuseError("key_form", f"a key is {_FORMS}", path=where) from None
    # late: only for keys that are not plain hex
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
        load_pem_public_key,
        load_ssh_public_key,
    )

    read = load_ssh_public_key if data.startswith(b"ssh-") else load_pem_public_key
    try:
        key = read(data)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise MisuseError("key_form", f"a key is {_FORMS}", path=where) from error
    if not isinstance(key, Ed25519PublicKey):
        raise MisuseError("key_form", "the key is not of type Ed25519", path=where)
    return key.public_bytes_raw()


def load(path: str, *, required: bool) -> tuple[TrustEntry, ...]:
    """The entries of a trust file; none for a missing one that is not required.

    Raises:
        MisuseError: `trust_file_unusable`.
    """
    try:
        with OpenedFile.open(path) as file:
            facts = file.facts
            if facts.kind != "file" or facts.size > _TRUST_FILE_LIMIT:
                raise _unusable(f"it is a {facts.kind} of {facts.size} bytes", path)
            if facts.uid not in (0, os.geteuid()) or facts.mode & 0o022:
                raise _unusable(f"others may have changed it: owner {facts.uid}, mode {facts.mode:04o}", path)
            return parse(file.read(_TRUST_FILE_LIMIT), path)
    except UnexaminedError as error:
        if error.code == "file_missing" and not required:
            return ()
        raise _unusable(error.message, path) from error


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
        if (
            not sound
            or not re.fullmatch("[0-9a-f]{64}", entry.public_key)
            or not is_canonical(entry.added_at)
        ):
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
        MisuseError: a key or file cannot be read.
        RefusedError: `trust_no_key`.
    """
    if public_key is not None:
        return Trusted(frozenset((read_key(public_key),)), "given")
    entries = load(trust_file or default_file, required=trust_file is not None)
    keys = pinned(entries, project, os.uname().nodename)
    if not keys and trust_file is not None:
        raise RefusedError(
            "trust_no_key", "no key is pinned for this project, so nothing was verified", path=trust_file
        )
    return Trusted(keys, "trust file") if keys else None


def key_used(key: bytes, trusted: Trusted | None) -> KeyUsed:
    """How a key came to be believed, for a report."""
    if trusted is None:
        return KeyUsed(key.hex(), "evidence")
    return KeyUsed(key.hex(), "given" if trusted.source == "given" else "trust file")


def _unusable(what: str, path: str) -> MisuseError:
    return MisuseError("trust_file_unusable", f"the trust file cannot be used: {what}", path=path)
