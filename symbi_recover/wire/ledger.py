"""One line of the operator ledger: bytes to typed facts and back (docs/ledger.md).

The line has the form of a run journal's: `{"payload":P,"signature":"S"}` and a line feed, P canonical JSON, S padded
base64. Unlike a journal, which another program wrote, a ledger is written by this toolkit alone, so a line is read only
if every byte is as it would be written again. The signature covers `LEDGER_PREFIX` and P; it is checked elsewhere.
"""

import binascii
import hashlib

import msgspec

from symbi_recover.core.ledger import LEDGER_PREFIX, LINE_LIMIT, LedgerPayload
from symbi_recover.wire import canonical
from symbi_recover.wire.timestamp import is_canonical

FIRST_PREVIOUS_HASH = "0" * 64
_HEAD = b'{"payload":'
_MIDDLE = b',"signature":"'
_TAIL = b'"}\n'
_BASE64 = 88
_DECODER = msgspec.json.Decoder(LedgerPayload)


class LedgerFormError(ValueError):
    """The line is not one that the toolkit writes."""


def payload_text(payload: LedgerPayload) -> bytes:
    """The payload as canonical JSON."""
    return canonical.canonical(payload)


def signed_text(payload_bytes: bytes) -> bytes:
    """The bytes that a line's signature covers."""
    return LEDGER_PREFIX + payload_bytes


def line(payload_bytes: bytes, signature: bytes) -> bytes:
    """A whole line, line feed included."""
    return _HEAD + payload_bytes + _MIDDLE + binascii.b2a_base64(signature, newline=False) + _TAIL


def line_hash(data: bytes) -> str:
    """What the next line names as its previous hash."""
    return hashlib.sha256(data).hexdigest()


def read_line(data: bytes) -> tuple[LedgerPayload, bytes, bytes]:
    """Cut a line, line feed included, into its payload, that payload's bytes, and its signature.

    Raises:
        LedgerFormError: it is not as the toolkit would write it.
    """
    if len(data) > LINE_LIMIT:
        raise LedgerFormError(f"the line is longer than {LINE_LIMIT} bytes")
    end = len(data) - len(_TAIL) - _BASE64 - len(_MIDDLE)
    payload_bytes = data[len(_HEAD) : max(end, 0)]
    try:
        signature = binascii.a2b_base64(data[-(_BASE64 + len(_TAIL)) : -len(_TAIL)], strict_mode=True)
        payload = _DECODER.decode(payload_bytes)
        same = line(payload_text(payload), signature) == data
    except (ValueError, msgspec.MsgspecError, OverflowError, RecursionError) as error:
        raise LedgerFormError(f"the line is not a record: {error}") from error
    if not same or len(signature) != 64 or not is_canonical(payload.entry.timestamp):
        raise LedgerFormError("the line is not spelled as records are written")
    return payload, payload_bytes, signature
