"""Public keys as an operator gives them: hex, PEM, OpenSSH, or a file holding one of these.

Hex is exactly what the runtime takes (journal.md section 3), with its own messages. A key file may end in one line
end of either kind; nothing else around the key is forgiven. Nothing here trusts a key found in evidence.
"""

import os
import re

from symbi_recover.core.errors import MisuseError, RefusedError, UnexaminedError
from symbi_recover.read.evidence.opener import OpenedFile
from symbi_recover.wire import ed25519

_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")
_ALONE = re.compile(
    r"ssh-[^\r\n]+|-----BEGIN [A-Z ]+-----\r?\n(?:[A-Za-z0-9+/=]+\r?\n)+-----END [A-Z ]+-----(?:\r?\n)?"
)
"""One key in PEM or OpenSSH form, and nothing else."""
_MAX_KEY_FILE = 16_384


def public_key(text: str) -> bytes:
    """The 32 bytes of the key that `text` gives.

    Raises:
        MisuseError: `key_form`, in the runtime's words where the text looks like hex.
        UnexaminedError: the file after `@` is missing, unreadable, or no regular file.
    """
    if text.startswith("@"):
        return _in_words(_file_text(text[1:]), text[1:])
    return _in_words(text, None)


def check_sound(key: bytes) -> None:
    """Refuse a key that proves nothing, whoever signed with it.

    Raises:
        RefusedError: `key_not_a_point` or `key_weak`.
    """
    if not ed25519.is_point(key):
        raise RefusedError("key_not_a_point", "the public key is not a point on the curve")
    if ed25519.is_weak(key):
        raise RefusedError("key_weak", "the public key has small order: anybody can sign under it")


def _in_words(text: str, path: str | None) -> bytes:
    if text.startswith(("ssh-", "-----BEGIN")):
        return _encoded(text, path)
    if not _HEX.fullmatch(text):
        raise MisuseError("key_form", "public key must be 64 hexadecimal characters", path=path)
    if len(text) != 64:
        raise MisuseError("key_form", "public key must be 32 bytes", path=path)
    return bytes.fromhex(text)


def _file_text(path: str) -> str:
    with OpenedFile.open(path) as file:
        if file.facts.kind != "file":
            raise UnexaminedError("file_kind", f"the key file is a {file.facts.kind}", path=path)
        data = file.read(_MAX_KEY_FILE)
        if len(data) > _MAX_KEY_FILE:
            raise MisuseError("key_form", "the key file is too large", path=path)
    text = data.decode("ascii", "replace")
    return text.removesuffix("\r\n") if text.endswith("\r\n") else text.removesuffix("\n")


def _encoded(text: str, path: str | None) -> bytes:
    # late: few keys come in these forms
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

    if not _ALONE.fullmatch(text):
        raise MisuseError("key_form", "public key has other text around it or is cut short", path=path)
    data = os.fsencode(text)
    load = serialization.load_ssh_public_key if text.startswith("ssh-") else serialization.load_pem_public_key
    try:
        key = load(data)
    except (ValueError, UnsupportedAlgorithm):
        raise MisuseError(
            "key_form", "public key is neither valid PEM nor a valid OpenSSH line", path=path
        ) from None
    if not isinstance(key, Ed25519PublicKey):
        raise MisuseError("key_form", "public key is not an Ed25519 key", path=path)
    return key.public_bytes_raw()
