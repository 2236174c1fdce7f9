"""The review file: one JSON value with an operator's statement (invocation.md section 11), and its rules."""

import re

from symbi_recover.core.claims import (
    EVIDENCE_LIMIT,
    RATIONALE_LIMIT,
    REFERENCE_LIMIT,
    Review,
)
from symbi_recover.core.scalars import ANY_HEX_64
from symbi_recover.wire import exact

_BLANK = re.compile("[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*")


def parse_review(data: bytes) -> Review:
    """Read a review file; `broken_rule` says whether its content may be signed.

    Raises:
        JsonError: where the runtime's reader refuses it.
    """
    return exact.read(data, Review)


def broken_rule(review: Review) -> str | None:
    """The first rule that the review breaks, in words; None if it breaks none."""
    if not review.effects_stopped:
        return "effects_stopped is not true"
    if _BLANK.fullmatch(review.rationale):
        return "the rationale is blank"
    if len(review.rationale.encode()) > RATIONALE_LIMIT:
        return f"the rationale is longer than {RATIONALE_LIMIT} bytes"
    if not 1 <= len(review.evidence) <= EVIDENCE_LIMIT:
        return f"there are {len(review.evidence)} evidence references, not 1 to {EVIDENCE_LIMIT}"
    for number, item in enumerate(review.evidence, 1):
        if _BLANK.fullmatch(item.reference):
            return f"evidence reference {number} is blank"
        if len(item.reference.encode()) > REFERENCE_LIMIT:
            return f"evidence reference {number} is longer than {REFERENCE_LIMIT} bytes"
        if not ANY_HEX_64.fullmatch(item.sha256):
            return f"the SHA-256 of evidence reference {number} is not 64 hexadecimal digits"
    return None
