"""Scalar types of the formats (journal.md sections 5.3 and 6), as annotated types, and how some are spelled.

The bounds serve the fast decoder, which works with 63 bits; `extra` tells the exact reader the true maximum.
"""

import re
from functools import lru_cache
from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta

U16 = Annotated[int, Meta(ge=0, le=2**16 - 1)]
U32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]
U64 = Annotated[
    int,
    Meta(ge=0, le=2**63 - 1, extra={"maximum": 2**64 - 1}, extra_json_schema={"maximum": 2**64 - 1}),
]
"""Unsigned 64-bit; the fast decoder leaves the upper half to the exact one."""

Timestamp = Annotated[
    str,
    Meta(
        extra={"kind": "time"},
        description="Relaxed RFC 3339 (journal.md section 6.2); writers print UTC with Z",
    ),
]
"""A time as written; its grammar is that of `wire/timestamp.py`."""

Json = Any
"""Free JSON: any value, fully read."""

OptionalJson = Annotated[Any, Meta(extra={"optional": True})]
"""Free JSON that may be absent, which means null."""

Pair = tuple[U64, U64]
"""Device and inode number."""

CANONICAL_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
"""Pattern of a UUID as every writer spells it, and as file names must."""

HYPHENATED_UUID = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
"""Pattern of the same in letters of either case."""

HEX_64 = re.compile("[0-9a-f]{64}")
"""32 bytes as every writer spells them: a SHA-256, a public key, the full id of a container."""

ANY_HEX_64 = re.compile("[0-9a-fA-F]{64}")
"""The same in letters of either case, which some readers take."""

_CANONICAL_UUID = re.compile(CANONICAL_UUID)


@lru_cache(maxsize=1024)
def is_canonical_uuid(text: str) -> bool:
    """Whether `text` is a UUID as every writer spells it."""
    return _CANONICAL_UUID.fullmatch(text) is not None


__all__ = [
    "ANY_HEX_64",
    "CANONICAL_UUID",
    "HEX_64",
    "HYPHENATED_UUID",
    "U16",
    "U32",
    "U64",
    "UUID",
    "Json",
    "OptionalJson",
    "Pair",
    "Timestamp",
    "is_canonical_uuid",
]
