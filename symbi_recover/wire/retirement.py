"""The operator's own files about leases: witnesses, notes, intents and receipts; bytes to typed facts and back.

Each is one JSON document in canonical form, written by this toolkit alone, so one is read only if every byte is as it
would be written again. Intents and receipts are signed: `{"payload":P,"public_key":K,"signature":S}` and a line
feed, K in hex digits, S base64 of the Ed25519 signature over `PREFIX` and P.
"""

import binascii
import hashlib
from typing import TypeVar

import msgspec

from symbi_recover.core.retirement import RetirementIntent, RetirementReceipt
from symbi_recover.wire import canonical

PREFIX = b"symbi-recover-lease-retirement:v1\n"
"""Stands before every signed payload, so that no signature of one kind of file serves for another."""
LIMIT = 1 << 20
"""Most bytes of any of these files."""
T = TypeVar("T")
Signed = RetirementIntent | RetirementReceipt
_HEAD = b'{"payload":'
_MIDDLE = b',"public_key":"'
_SIGNATURE = b'","signature":"'
_TAIL = b'"}\n'


class FormError(ValueError):
    """The bytes are not what this toolkit writes."""


def encode(value: object) -> bytes:
    """A plain document, line feed included."""
    return canonical.canonical(value) + b"\n"


def decode(data: bytes, kind: type[T]) -> T:
    """Read a plain document.

    Raises:
        FormError: it is not as it would be written.
    """
    if len(data) > LIMIT:
        raise FormError(f"it is larger than {LIMIT} bytes")
    try:
        value = msgspec.json.decode(data, type=kind)
    except (ValueError, RecursionError) as error:
        raise FormError(str(error)) from error
    if encode(value) != data:
        raise FormError("it is not spelled as this toolkit writes it")
    return value


def signed_text(payload: bytes) -> bytes:
    """The bytes that a signature covers."""
    return PREFIX + payload


def envelope(payload: bytes, public_key: str, signature: bytes) -> bytes:
    """A signed document, line feed included.

    Args:
        payload: canonical JSON.
        public_key: 64 hex digits; a claim that a reader compares with a key it has from elsewhere.
        signature: 64 bytes.
    """
    encoded = binascii.b2a_base64(signature, newline=False)
    return _HEAD + payload + _MIDDLE + public_key.encode() + _SIGNATURE + encoded + _TAIL


def open_envelope(data: bytes, kind: type[T]) -> tuple[T, bytes, str, bytes]:
    """Cut a signed document into its value, the payload's bytes, the claimed key, and the signature.

    Raises:
        FormError: it is not as it would be written. The signature itself is not checked here.
    """
    if len(data) > LIMIT:
        raise FormError(f"it is larger than {LIMIT} bytes")
    end = len(data) - len(_TAIL) - 88 - len(_SIGNATURE) - 64 - len(_MIDDLE)
    payload = data[len(_HEAD) : max(end, 0)]
    key = data[end + len(_MIDDLE) : end + len(_MIDDLE) + 64]
    try:
        signature = binascii.a2b_base64(data[-(88 + len(_TAIL)) : -len(_TAIL)], strict_mode=True)
        text = key.decode("ascii")
        same = envelope(payload, text, signature) == data
    except ValueError as error:
        raise FormError(f"it is no signed document: {error}") from error
    if not same or len(signature) != 64:
        raise FormError("it is not spelled as this toolkit writes it")
    return decode(payload + b"\n", kind), payload, text, signature


def digest(data: bytes) -> str:
    """SHA-256 in hex digits."""
    return hashlib.sha256(data).hexdigest()
