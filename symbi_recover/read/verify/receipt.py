"""Verifies resolution and publication receipts (invocation.md section 12.3, publication.md section 8). Pure.

1. the bytes are a receipt; 2. the signature holds over the payload as the runtime would write it, under the key of
the claim; 3. (resolution) the review keeps its rules; 4. version and hashes, or the intent, are those at hand.

What a good receipt does not prove: that its operator looked at anything, or that the clock was right.
"""

from symbi_recover.core.claims import (
    STORE_FILE_LIMIT,
    FileRecovery,
    PublicationReceipt,
    Resolution,
    ResolutionReceipt,
    Review,
)
from symbi_recover.core.errors import RefusedError
from symbi_recover.core.refusals import RUNTIME_TEXT
from symbi_recover.core.values import PublicationIntent
from symbi_recover.core.words import counted
from symbi_recover.wire import canonical, ed25519, hexadecimal
from symbi_recover.wire import receipt as wire
from symbi_recover.wire.review import broken_rule
from symbi_recover.wire.strictjson import JsonError

REVIEW_RULES = (
    "resolution requires stopped/settled effects, a bounded rationale and 1–32 evidence references "  # noqa: RUF001 -- the runtime's own dash
    "with SHA-256 digests"
)


def verify_resolution(data: bytes, public_key: bytes, snapshot_hash: str, path: str) -> ResolutionReceipt:
    """Verify a resolution receipt against the present evidence.

    Args:
        data: bytes of the file.
        public_key: of the claim, 32 bytes.
        snapshot_hash: of the present claim and journal.
        path: for messages.

    Raises:
        RefusedError: `receipt_malformed`, `receipt_signature`, `review_rules`, `receipt_stale`.
    """
    _check_size(data, path)
    try:
        receipt = wire.parse_resolution(data)
    except JsonError as error:
        raise _malformed(error, path) from None
    _check_signature(receipt, public_key, path)
    check_review(receipt.payload.review, path)
    payload = receipt.payload
    if (
        payload.version != 1
        or canonical.digest(payload.snapshot) != snapshot_hash
        or payload.review.snapshot_hash != snapshot_hash
    ):
        raise RefusedError(
            "receipt_stale",
            "reconciled evidence changed; original outcome requires renewed investigation",
            path=path,
            detail=_stale(payload, snapshot_hash),
        )
    return receipt


def verify_publication_receipt(
    data: bytes, public_key: bytes, snapshot_hash: str, intent: PublicationIntent, path: str
) -> PublicationReceipt:
    """Verify a publication receipt against the present evidence and the signed intent; arguments as above.

    Raises:
        RefusedError: `receipt_malformed`, `receipt_signature`, `publication_receipt_differs`.
    """
    _check_size(data, path)
    try:
        receipt = wire.parse_publication(data)
    except JsonError as error:
        raise _malformed(error, path) from None
    _check_signature(receipt, public_key, path)
    payload = receipt.payload
    if (
        payload.version != 1
        or canonical.digest(payload.snapshot) != snapshot_hash
        or payload.publication != intent
    ):
        raise RefusedError(
            "publication_receipt_differs",
            "file recovery receipt differs from original evidence",
            path=path,
            detail=_stale(payload, snapshot_hash),
        )
    return receipt


def check_review(review: Review, path: str | None = None) -> None:
    """Refuse a review that may not be signed.

    Raises:
        RefusedError: `review_rules`, with the broken rule as its hint.
    """
    broken = broken_rule(review)
    if broken is not None:
        raise RefusedError("review_rules", REVIEW_RULES, path=path, detail=broken)


def _check_size(data: bytes, path: str) -> None:
    if len(data) > STORE_FILE_LIMIT:
        raise RefusedError("receipt_malformed", "oversized file recovery receipt", path=path)


def _malformed(error: JsonError, path: str) -> RefusedError:
    return RefusedError(
        "receipt_malformed", f"{error.message} at byte {error.offset}", path=path, offset=error.offset
    )


def _check_signature(receipt: ResolutionReceipt | PublicationReceipt, public_key: bytes, path: str) -> None:
    try:
        signature = hexadecimal.decode(receipt.signature)
    except hexadecimal.HexError as error:
        raise RefusedError("receipt_signature", str(error), path=path) from None
    if not ed25519.is_point(public_key):
        raise RefusedError("receipt_signature", RUNTIME_TEXT["key_not_a_point"], path=path)
    if not ed25519.verify(public_key, wire.signed_text(receipt.payload), signature):
        raise RefusedError(
            "receipt_signature",
            RUNTIME_TEXT[ed25519.reason(signature)],
            path=path,
            detail=f"the signature has {counted(len(signature), 'byte')}; it must cover the line "
            f"{_context(receipt)!r} and the payload",
        )


def _context(receipt: ResolutionReceipt | PublicationReceipt) -> str:
    return wire.signed_text(receipt.payload).split(b"\n", 1)[0].decode()


def _stale(payload: Resolution | FileRecovery, snapshot_hash: str) -> str:
    return (
        f"the receipt is for snapshot {canonical.digest(payload.snapshot)}, "
        f"the evidence at hand has {snapshot_hash}"
    )
