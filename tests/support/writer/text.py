"""JSON text, digests, times and fixed identities as the runtime spells them.

Implements invocation.md section 2 and journal.md section 17 from the writing side: compact text in member
order, canonical text with sorted members, ``sha256:`` digests, UTC times in the shortest form, 32-bit numbers
widened to 64 bits, and Ed25519 signatures. Nothing here comes from the product, so that a defect there cannot
hide behind the same defect here. Nothing reads a clock or a random source.
"""

import hashlib
import json
import struct
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from nacl.signing import SigningKey

SEED: Final = bytes(range(32))
"""The marked test seed: bytes 00 to 1f. It protects nothing."""

AGENT: Final = "11111111-1111-4111-8111-111111111111"
RUN: Final = "22222222-2222-4222-8222-222222222222"
INVOCATION: Final = "11111111-2222-4333-8444-555555555555"
PUBLICATION: Final = "0f0e0d0c-0b0a-4908-8706-050403020100"

ABSENT: Final[Any] = type("Absent", (), {"__repr__": lambda _self: "ABSENT"})()
"""A member value that removes that member from a default structure."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_BILLION: Final = 1_000_000_000


def spell_float(value: float) -> str:
    """Spell a finite float: positional from 1e-5 to below 1e16, else with an unpadded exponent."""
    mantissa, mark, exponent = repr(value).partition("e")
    if not mark:
        return mantissa
    if int(exponent) == -5:
        sign = "-" if mantissa.startswith("-") else ""
        return sign + "0.0000" + mantissa.removeprefix("-").replace(".", "")
    return f"{mantissa}e{'+' if int(exponent) > 0 else ''}{int(exponent)}"


def _encode(value: Any, *, ordered: bool) -> str:
    """Spell any JSON value; the slow path, taken only where ``repr`` of a float may differ."""
    if isinstance(value, dict):
        names = sorted(value) if ordered else list(value)
        members = (f"{_dump(name)}:{_encode(value[name], ordered=ordered)}" for name in names)
        return "{" + ",".join(members) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(_encode(item, ordered=ordered) for item in value) + "]"
    return spell_float(value) if isinstance(value, float) else _dump(value)


def _dump(value: Any, *, ordered: bool = False) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=ordered, allow_nan=False)


def _text(value: Any, *, ordered: bool) -> bytes:
    text = _dump(value, ordered=ordered)
    # Python pads small exponents with a zero; only such a text can differ from the runtime's.
    return (_encode(value, ordered=ordered) if "e-0" in text else text).encode()


def compact(value: Any) -> bytes:
    """Return the compact JSON text of a value, members in the order they have."""
    return _text(value, ordered=False)


def canonical(value: Any) -> bytes:
    """Return the compact JSON text of a value, the members of every object sorted."""
    return _text(value, ordered=True)


def plain_hash(data: bytes) -> str:
    """Return the SHA-256 of some bytes as 64 lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()


def digest(value: Any) -> str:
    """Return ``sha256:`` and the hash of the canonical text of a value."""
    return "sha256:" + plain_hash(canonical(value))


def uid(*parts: object) -> str:
    """Return a UUID (version 4 in looks) that depends on nothing but the parts."""
    raw = hashlib.sha256("\n".join(map(str, parts)).encode()).digest()[:16]
    return str(UUID(bytes=raw, version=4))


def f32(value: float) -> float:
    """Return a number rounded to 32 bits and widened again."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def merge(defaults: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults with fields replaced or added; a field that is ABSENT is removed."""
    merged = {**defaults, **fields}
    return {name: value for name, value in merged.items() if value is not ABSENT}


@lru_cache(maxsize=64)
def signing_key(seed: bytes) -> SigningKey:
    """Return the signing key of a 32-byte seed."""
    return SigningKey(seed)


def public_key(seed: bytes) -> str:
    """Return the public key of a seed as 64 lower-case hex digits."""
    return bytes(signing_key(seed).verify_key).hex()


def sign(seed: bytes, message: bytes) -> bytes:
    """Return the 64-byte Ed25519 signature of a message."""
    return signing_key(seed).sign(message).signature


def stamp(nanos: int, *, zone: str = "Z") -> str:
    """Spell a time in nanoseconds since 1970 with a fraction of 0, 3, 6 or 9 digits, the shortest exact."""
    seconds, rest = divmod(nanos, _BILLION)
    base = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    if rest == 0:
        return base + zone
    digits = f"{rest:09d}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f"{base}.{digits}{zone}"


def nanoseconds(text: str) -> int:
    """Read a time written by :func:`stamp` back into nanoseconds since 1970."""
    whole, _, fraction = text.removesuffix("Z").removesuffix("+00:00").partition(".")
    seconds = int((datetime.fromisoformat(whole).replace(tzinfo=UTC) - _EPOCH).total_seconds())
    return seconds * _BILLION + int(fraction.ljust(9, "0") or "0")


class Clock:
    """A clock that is told the time: each reading advances it by one step.

    Args:
        start: the first reading, as :func:`stamp` writes it.
        step_ms: milliseconds between two readings.
    """

    def __init__(self, start: str = "2026-03-04T05:06:07Z", step_ms: int = 137) -> None:
        self.nanos = nanoseconds(start)
        self.step = step_ms * 1_000_000

    def read(self) -> str:
        """Return the present reading and advance."""
        text = stamp(self.nanos)
        self.nanos += self.step
        return text
