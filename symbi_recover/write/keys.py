"""The operator's own key and the folder it lies in (docs/ledger.md).

1. the folder is private, no link, and neither is nor lies in a folder of claims, journals or leases;
2. `operator.key` is the 32-byte seed, private; it is made once and never replaced;
3. `operator.pub` beside it holds the public key in hexadecimal, so that readers need not touch the seed.

PEM and OpenSSH forms go through `cryptography`, which is loaded only for them.
"""

import base64
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from msgspec import Struct

from symbi_recover.core.errors import RefusedError, UnexaminedError
from symbi_recover.core.ledger import PUBLIC_NAME
from symbi_recover.read.evidence.locate import GOVERNED, INVOCATIONS, STORE_LOCK, SYMBIONT, lstat_at
from symbi_recover.read.evidence.opener import FILE_FLAGS, FOLDER_FLAGS, OpenedFile, examining, is_there
from symbi_recover.read.evidence.store import shown
from symbi_recover.write.atomic import changing, make_folders, publish, sync_folder
from symbi_recover.write.sign import AUDIT_KEY, SEED_BYTES, Signer, signer_in

KEY_NAME = "operator.key"
_MARKS = (STORE_LOCK, "supervisor.lock", AUDIT_KEY)
"""Names that only folders of evidence hold."""
_KEY_FILE_LIMIT = 65_536
_PASSPHRASE_LIMIT = 4096


class KeyState(Struct, frozen=True):
    """The operator's key after `init` or `import`."""

    public_key: bytes
    path: str
    created: bool
    """Whether it was put there now; False if it was there already."""


@contextmanager
def open_home(path: str, *, create: bool) -> Iterator[int]:
    """Open the operator's folder and give its descriptor.

    Raises:
        RefusedError: `operator_home_unsafe`, or `write_failed` when it cannot be made.
        UnexaminedError: it is not there, or cannot be opened.
    """
    _refuse_evidence(path)
    if create:
        with changing(path):
            make_folders(path)
    with examining(path):
        status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise RefusedError(
            "operator_home_unsafe",
            "the operator's folder must be a private folder of your own, mode 0700",
            path=path,
            detail=f"its owner is {status.st_uid}, its mode {stat.S_IMODE(status.st_mode):04o}",
        )
    with examining(path):
        descriptor = os.open(path, FOLDER_FLAGS)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _refuse_evidence(path: str) -> None:
    folder = evidence_above(path)
    if folder is not None:
        raise RefusedError(
            "operator_home_unsafe",
            "the operator's folder must not be, or lie in, a folder of claims, journals or leases",
            path=path,
            detail=f"{folder} is one",
        )


def evidence_above(path: str) -> str | None:
    """The folder of claims, journals or leases that a path is or lies in; None if it is in none."""
    folder = os.path.realpath(path)
    while True:
        parent, name = os.path.split(folder)
        inside = name in (INVOCATIONS, GOVERNED) and os.path.basename(parent) == SYMBIONT
        if inside or any(os.path.lexists(os.path.join(folder, mark)) for mark in _MARKS):
            return folder
        if parent == folder:
            return None
        folder = parent


def signer_of(folder: int, home: str) -> Signer | None:
    """The operator's signer in the open folder; None if there is no key.

    Raises:
        RefusedError: `operator_key_unsafe`.
        UnexaminedError: the key cannot be opened.
    """
    path = f"{home}/{KEY_NAME}"
    unsafe = RefusedError(
        "operator_key_unsafe", "the operator's key must be a private file of 32 bytes", path=path
    )
    return signer_in(folder, KEY_NAME, path, unsafe)


def load(home: str) -> Signer:
    """The operator's signer.

    Raises:
        RefusedError: `operator_key_missing`, `operator_key_unsafe`, `operator_home_unsafe`.
    """
    signer = find(home)
    if signer is None:
        raise RefusedError(
            "operator_key_missing", "the operator has no signing key", path=f"{home}/{KEY_NAME}"
        )
    return signer


def find(home: str) -> Signer | None:
    """The operator's signer, None if there is no folder or no key in it; errors as `load`."""
    if not is_there(home):
        return None
    with open_home(home, create=False) as folder:
        return signer_of(folder, home)


def install(home: str, seed: bytes | None = None) -> KeyState:
    """Put a key there, a new one if no seed is given; a key that is there already is kept.

    Raises:
        RefusedError: `operator_key_exists` for another key than the one given, `operator_public_differs` for the
            note of another public key, `operator_home_unsafe`, `operator_key_unsafe`, `write_failed`,
            `rename_unsupported`.
    """
    path = f"{home}/{KEY_NAME}"
    with open_home(home, create=True) as folder:
        signer = signer_of(folder, home)
        created = signer is None
        if signer is None:
            with changing(path), suppress(FileExistsError):
                publish(folder, home, KEY_NAME, os.urandom(SEED_BYTES) if seed is None else seed)
            signer = signer_of(folder, home)
        if signer is None or (seed is not None and Signer(seed).public_key != signer.public_key):
            raise RefusedError("operator_key_exists", "there is another key already", path=path)
        _note_public(folder, home, signer)
        with changing(home):
            sync_folder(folder)
    return KeyState(signer.public_key, path, created)


def _note_public(folder: int, home: str, signer: Signer) -> None:
    path = f"{home}/{PUBLIC_NAME}"
    text = f"{signer.public_key.hex()}\n".encode()
    with changing(path), suppress(FileExistsError):
        if lstat_at(PUBLIC_NAME, folder) is None:
            publish(folder, home, PUBLIC_NAME, text)
    with examining(path):
        file = OpenedFile(path, os.open(PUBLIC_NAME, FILE_FLAGS, dir_fd=folder))
    with file:
        if file.facts.kind != "file" or file.read(len(text)) != text:
            raise RefusedError(
                "operator_public_differs",
                "what lies here is not the public half of the operator's key",
                path=path,
                detail=f"the operator's public key is {signer.public_key.hex()}; {shown(file.facts)}",
            )


def read_passphrase(path: str) -> bytes:
    """The passphrase in a private file: all of it, but for one line end (LF or CR LF) at its end.

    Raises:
        RefusedError: `passphrase_unusable`; nothing is cut off.
        UnexaminedError: the file cannot be opened, is a link, or is no regular one.
    """
    with OpenedFile.open(path) as file:
        if file.facts.kind != "file":
            raise UnexaminedError("file_kind", f"it is a {file.facts.kind}", path=path)
        if not file.facts.private or file.facts.size > _PASSPHRASE_LIMIT:
            raise RefusedError(
                "passphrase_unusable",
                f"a passphrase must be in a private file of your own, of at most {_PASSPHRASE_LIMIT:,} bytes",
                path=path,
                detail=shown(file.facts),
            )
        data = file.read(_PASSPHRASE_LIMIT)
    return data.removesuffix(b"\r\n") if data.endswith(b"\r\n") else data.removesuffix(b"\n")


def read_private(path: str, passphrase: bytes | None) -> bytes:
    """The seed in a file that holds a private key in PEM or OpenSSH form.

    Raises:
        RefusedError: `key_import_unsafe`, `key_import_unreadable`.
        UnexaminedError: the file cannot be opened, is a link, or is no regular one.
    """
    with OpenedFile.open(path) as file:
        facts = file.facts
        if facts.kind != "file":
            raise UnexaminedError("file_kind", f"it is a {facts.kind}", path=path)
        if facts.uid not in (0, os.geteuid()) or facts.mode & 0o077:
            raise RefusedError(
                "key_import_unsafe",
                "a private key must be a private file of your own",
                path=path,
                detail=shown(facts),
            )
        if facts.size > _KEY_FILE_LIMIT:
            raise RefusedError(
                "key_import_unreadable", f"the file is longer than {_KEY_FILE_LIMIT:,} bytes", path=path
            )
        data = file.read(_KEY_FILE_LIMIT)
    return _seed(data, path, passphrase)


def _seed(data: bytes, path: str, passphrase: bytes | None) -> bytes:
    # late: cryptography is large, and few keys come in these forms
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
        load_pem_private_key,
        load_ssh_private_key,
    )

    load_any: Any = load_ssh_private_key if b"OPENSSH" in data[:64] else load_pem_private_key
    try:
        key = load_any(data, passphrase)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise RefusedError(
            "key_import_unreadable",
            "no private key can be read from the file",
            path=path,
            detail=_unreadable(data, str(error)),
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise RefusedError("key_import_unreadable", "the key is not of type Ed25519", path=path)
    return key.private_bytes_raw()


def _unreadable(data: bytes, words: str) -> str:
    """Why no private key was read; the library's words, unless they send the reader to its web site."""
    if data.startswith(b"ssh-") or b"PUBLIC KEY-----" in data[:64]:
        return "it holds a public key"
    return "it is not in PEM or OpenSSH form, or is damaged" if "://" in words else words


def public_text(public_key: bytes, form: str) -> str:
    """A public key as `hex`, `pem` or `openssh`, without a final line feed."""
    if form == "hex":
        return public_key.hex()
    # late: this library is large
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # noqa: PLC0415

    forms = {
        "pem": (Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        "openssh": (Encoding.OpenSSH, PublicFormat.OpenSSH),
    }
    return Ed25519PublicKey.from_public_bytes(public_key).public_bytes(*forms[form]).decode().rstrip("\n")


def fingerprint(public_key: bytes) -> str:
    """The fingerprint that OpenSSH shows for the key."""
    parts = (b"ssh-ed25519", public_key)
    blob = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
