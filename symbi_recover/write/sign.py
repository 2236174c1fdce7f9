"""Makes Ed25519 signatures; the one place that does. The other half, checking, is `wire/ed25519.py`.

A signer holds a seed in memory for as long as a command runs. `audit_signer` reads the project's own key, which signs
the runtime's receipts (invocation.md sections 5 and 13).
"""

import os

from nacl.bindings import crypto_sign, crypto_sign_BYTES, crypto_sign_seed_keypair

from symbi_recover.core.errors import RefusedError
from symbi_recover.read.evidence.locate import GOVERNED
from symbi_recover.read.evidence.opener import (
    FILE_FLAGS,
    FOLDER_FLAGS,
    OpenedFile,
    examining,
    facts_of,
    is_there,
)
from symbi_recover.read.evidence.store import FOLDER_RULE, InvocationStore, shown

SEED_BYTES = 32
AUDIT_KEY = "audit-signing.key"


class Signer:
    """An Ed25519 key that can sign."""

    def __init__(self, seed: bytes) -> None:
        """Derive the key from its 32-byte seed."""
        self.public_key, self._secret = crypto_sign_seed_keypair(seed)

    def sign(self, message: bytes) -> bytes:
        """The 64-byte signature of a message."""
        return crypto_sign(message, self._secret)[:crypto_sign_BYTES]


def signer_in(folder: int, name: str, path: str, refusal: RefusedError) -> Signer | None:
    """The signer whose seed lies in an open folder; None if nothing has its name.

    Args:
        folder: descriptor.
        name: of the file in it.
        path: of the file, for messages.
        refusal: raised, with what lies there as its detail, unless that is a private file of 32 bytes.

    Raises:
        RefusedError: `refusal`.
        UnexaminedError: the file cannot be opened.
    """
    if not is_there(name, folder=folder, path=path):
        return None
    with examining(path):
        file = OpenedFile(path, os.open(name, FILE_FLAGS, dir_fd=folder))
    with file:
        seed = file.read(SEED_BYTES)
        if not file.facts.private or file.facts.size != SEED_BYTES or len(seed) != SEED_BYTES:
            refusal.detail = shown(file.facts)
            raise refusal
    return Signer(seed)


def audit_signer(store: InvocationStore, public_key: str, *, absent: str) -> Signer:
    """The project's own signer, which must be the one that the claim names.

    Args:
        store: open store of the project.
        public_key: as the claim spells it; the runtime compares text.
        absent: the runtime's message for a missing key, which depends on the command.

    Raises:
        RefusedError: `store_not_private`, `audit_key_missing`, `audit_key_unsafe`, `audit_key_differs`.
        UnexaminedError: the key cannot be opened.
    """
    path = f"{store.governed_path}/{AUDIT_KEY}"
    with examining(store.governed_path):
        folder = os.open(GOVERNED, FOLDER_FLAGS, dir_fd=store.symbiont)
    try:
        _check_folder(folder, store.governed_path)
        unsafe = RefusedError("audit_key_unsafe", "invalid protected journal signing key", path=path)
        signer = signer_in(folder, AUDIT_KEY, path, unsafe)
    finally:
        os.close(folder)
    if signer is None:
        raise RefusedError("audit_key_missing", absent, path=path)
    if signer.public_key.hex() != public_key:
        raise RefusedError(
            "audit_key_differs",
            "current signing key differs from the original invocation key",
            path=path,
            detail=f"the key there is {signer.public_key.hex()}, the claim names {public_key}",
        )
    return signer


def _check_folder(descriptor: int, path: str) -> None:
    facts = facts_of(os.fstat(descriptor))
    if facts.kind != "folder" or facts.uid != os.geteuid() or facts.mode & 0o077:
        raise RefusedError("store_not_private", FOLDER_RULE, path=path, detail=shown(facts))
