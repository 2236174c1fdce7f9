"""Resolution and publication receipts: bytes to values, and the text that their signatures cover.

Implements invocation.md section 12 and publication.md section 8. The runtime checks a signature over the payload
as it would write it again, not over the bytes of the file, so `signed_text` writes it: compact, fields in
declaration order, UUIDs and times in their written form, `created_files` in the order of the file.
"""

from typing import TypeVar

from msgspec.structs import asdict, replace

from symbi_recover.core.claims import (
    PUBLICATION_PREFIX,
    RESOLUTION_PREFIX,
    FileRecovery,
    PublicationReceipt,
    Resolution,
    ResolutionReceipt,
)
from symbi_recover.wire import canonical, exact, timestamp

Payload = TypeVar("Payload", Resolution, FileRecovery)


def parse_resolution(data: bytes) -> ResolutionReceipt:
    """Read a resolution receipt; its `recorded_at` comes in the written form.

    Raises:
        JsonError: where the runtime's reader refuses it.
    """
    receipt = exact.read(data, ResolutionReceipt)
    return ResolutionReceipt(payload=_normal(receipt.payload), signature=receipt.signature)


def parse_publication(data: bytes) -> PublicationReceipt:
    """Read a publication receipt; its `recorded_at` comes in the written form.

    Raises:
        JsonError: where the runtime's reader refuses it.
    """
    receipt = exact.read(data, PublicationReceipt)
    return PublicationReceipt(payload=_normal(receipt.payload), signature=receipt.signature)


def _normal(payload: Payload) -> Payload:
    return replace(payload, recorded_at=timestamp.canonical(payload.recorded_at))


def payload_text(payload: Resolution | FileRecovery) -> bytes:
    """The payload as compact JSON in the runtime's order."""
    return canonical.compact(asdict(payload))


def signed_text(payload: Resolution | FileRecovery) -> bytes:
    """The bytes that a receipt's signature covers."""
    prefix = RESOLUTION_PREFIX if isinstance(payload, Resolution) else PUBLICATION_PREFIX
    return prefix + payload_text(payload)


def receipt_text(payload: Resolution | FileRecovery, signature: bytes) -> bytes:
    """A receipt file as the runtime writes it."""
    return canonical.compact({"payload": asdict(payload), "signature": signature.hex()})


def stored_as_written(data: bytes, receipt: ResolutionReceipt | PublicationReceipt) -> bool:
    """Whether the file is spelled as the runtime writes it, so that the signature fixes all its bytes."""
    return data == canonical.compact({"payload": asdict(receipt.payload), "signature": receipt.signature})
