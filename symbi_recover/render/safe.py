"""Makes recorded text harmless before a person sees it.

Evidence may hold anything: terminal escapes, carriage returns, bidirectional overrides, line separators, invisible
characters. All of them become visible escapes; backslashes are doubled, so that what is seen is unambiguous. Paths
that are not UTF-8 show their odd bytes. JSON for a program does not pass here: it keeps the runtime's own form. On a
terminal the same characters are spelled as JSON escapes, which change no value.
"""

import re

_UNSAFE = re.compile(
    r"[\\\x00-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000110bd"
    r"\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_NAMED = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def safe(text: object, limit: int | None = None) -> str:
    """`text` on one line, with nothing in it that a terminal acts on; cut after `limit` characters."""
    shown = _UNSAFE.sub(_visible, str(text))
    return shown if limit is None or len(shown) <= limit else shown[: max(0, limit - 1)] + "…"


def safe_json(document: bytes) -> bytes:
    """A JSON document of the same value, with nothing in it that a terminal acts on but its own line ends."""
    return _UNSAFE.sub(_spelled, document.decode()).encode()


def _spelled(match: re.Match[str]) -> str:
    character = match.group()
    if character in "\\\n":
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _visible(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    if character in _NAMED:
        return _NAMED[character]
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
