"""Scalar types of the formats (journal.md sections 5.3 and 6), as annotated types.

The bounds serve the fast decoder, which works with 63 bits; `extra` tells the exact reader the true maximum.
"""

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

__all__ = ["U16", "U32", "U64", "UUID", "Json", "OptionalJson", "Pair", "Timestamp"]
