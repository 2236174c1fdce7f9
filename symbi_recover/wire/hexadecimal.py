"""Hexadecimal text as the runtime decodes it, with its words for what is wrong (invocation.md section 16, K1)."""

_DIGITS = frozenset(b"0123456789abcdefABCDEF")


class HexError(ValueError):
    """The text is not hexadecimal; the message is the runtime's."""


def decode(text: str) -> bytes:
    """The bytes that `text` spells.

    Raises:
        HexError: `Odd number of digits`, tested first, or the first invalid character.
    """
    raw = text.encode()
    if len(raw) % 2:
        raise HexError("Odd number of digits")
    for position, byte in enumerate(raw):
        if byte not in _DIGITS:
            raise HexError(f"Invalid character {_shown(byte)} at position {position}")
    return bytes.fromhex(text)


def _shown(byte: int) -> str:
    """One byte in single quotes, as the runtime escapes a character."""
    special = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r", 0x27: "\\'", 0x5C: "\\\\"}
    if byte in special:
        return f"'{special[byte]}'"
    if byte == 0:
        return "'\\0'"
    if byte < 0x20 or byte == 0x7F or 0x80 <= byte < 0xA0 or byte == 0xAD:
        return f"'\\u{{{byte:x}}}'"
    return f"'{chr(byte)}'"
