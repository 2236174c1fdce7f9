"""Strict JSON: a scanner over bytes that reads exactly what the runtime reads (journal.md section 5).

`Scanner` is a cursor. It either skips a value, checking syntax alone (5.1: any depth, any number, any
surrogate), or reads it fully (5.2: at most 127 open containers, paired surrogates, finite numbers). The typed
reader in `wire/exact.py` drives it; `read_free` reads a whole document as a free value.

It never recurses on skipped input, and on read input only as deep as the limit allows.
"""

import re
from collections.abc import Callable
from typing import Any, NoReturn

MAX_DEPTH = 127
MAX_EMBEDDED_DEPTH = 200
"""Open containers over all embedded texts; the runtime has no such limit, Python's stack does."""
_RAW_VALUE = "$serde_json::private::RawValue"
_U64_MAX = 2**64 - 1
_I64_MIN = -(2**63)
_I32_MAX = 2**31 - 1
_SHOWN = 200

_WS = re.compile(rb"[ \t\r\n]*+")
_STRING = re.compile(
    rb'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"',
)
_NUMBER = re.compile(rb"-?(0|[1-9][0-9]*+)(?:\.([0-9]++))?(?:[eE]([+-]?)([0-9]++))?")
_ESCAPE = re.compile(r"\\(?:u([dD][89abAB]..)\\u([dD][c-fC-F]..)|u(....)|(.))")
_SHORT = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS = {b"t": (b"true", True), b"f": (b"false", False), b"n": (b"null", None)}


class JsonError(ValueError):
    """The bytes are not what the runtime's reader takes; `offset` counts bytes from the start of the document."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


class Scanner:
    """A cursor over one JSON document of strict UTF-8.

    Raises:
        JsonError: from the constructor for invalid UTF-8, from every method for what its rules refuse.
    """

    def __init__(self, data: bytes) -> None:
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise JsonError(_encoding_hint(data), error.start) from None
        if data.startswith(b"\xef\xbb\xbf"):
            raise JsonError("begins with a byte order mark", 0)
        if b"\x00" in data[:2]:  # ASCII in UTF-16 is valid UTF-8
            raise JsonError(_encoding_hint(data), 0)
        self.data = data
        self.position = 0
        self.depth = 0
        self.outer = 0
        """Containers open around this text, if it is embedded in another."""

    def fail(self, message: str, offset: int | None = None) -> NoReturn:
        """Raise a JsonError at `offset`, or at the cursor; names from the document make no long message."""
        message = message if len(message) <= _SHOWN else f"{message[: _SHOWN - 1]}…"
        raise JsonError(message, self.position if offset is None else offset)

    def peek(self) -> bytes:
        """The next byte that is not white space, which stays unread; empty at the end."""
        match = _WS.match(self.data, self.position)
        self.position = match.end() if match else self.position
        return self.data[self.position : self.position + 1]

    def take(self, byte: bytes) -> bool:
        """Consume `byte` if it is next; say whether it was."""
        if self.peek() != byte:
            return False
        self.position += 1
        return True

    def expect(self, byte: bytes) -> None:
        """Consume `byte` or fail."""
        if not self.take(byte):
            self.fail(f"expected {byte.decode()!r}, found {self._shown()}")

    def end(self) -> None:
        """Fail unless only white space is left."""
        if self.peek():
            self.fail(f"expected the end, found {self._shown()}")

    def enter(self) -> None:
        """Open one container of a value that is read, within the limit of nesting."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"nested deeper than {MAX_DEPTH} containers")
        if self.outer + self.depth > MAX_EMBEDDED_DEPTH:
            self.fail(
                f"embedded JSON text nested deeper than the {MAX_EMBEDDED_DEPTH} containers followed here"
            )

    def leave(self) -> None:
        """Close the container opened last."""
        self.depth -= 1

    def string(self) -> str:
        """Read a string, escapes resolved and surrogates paired."""
        if self.peek() != b'"':
            self.fail(f"expected a string, found {self._shown()}")
        start = self.position
        raw = self._string_token()[1:-1]
        text = raw.decode("utf-8")
        if "\\" not in text:
            return text

        def resolve(match: re.Match[str]) -> str:
            high, low, single, short = match.groups()
            if high is not None:
                return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + (int(low, 16) - 0xDC00))
            if single is None:
                return _SHORT[short]
            if single[0] in "dD" and single[1] in "89abcdefABCDEF":
                self.fail("unpaired surrogate", start)
            return chr(int(single, 16))

        return _ESCAPE.sub(resolve, text)

    def number(self) -> re.Match[bytes]:
        """Read a number token; groups: integer digits, fraction digits, exponent sign, exponent digits."""
        self.peek()
        match = _NUMBER.match(self.data, self.position)
        if match is None:
            self.fail(f"expected a number, found {self._shown()}")
        self.position = match.end()
        return match

    def word(self) -> bool | None:
        """Read `true`, `false` or `null`."""
        text, value = _WORDS.get(self.peek(), (b"", None))
        if not text or not self.data.startswith(text, self.position):
            self.fail(f"expected a value, found {self._shown()}")
        self.position += len(text)
        return value

    def null(self) -> bool:
        """Consume `null` if it is next; say whether it was."""
        if self.peek() != b"n":
            return False
        self.word()
        return True

    def members(self, on_member: Callable[[str], None]) -> None:
        """Read an object, calling `on_member(name)` with the cursor before each value, which it must consume."""
        self.expect(b"{")
        self.enter()
        if not self.take(b"}"):
            while True:
                name = self.string()
                self.expect(b":")
                on_member(name)
                if self.take(b"}"):
                    break
                self.expect(b",")
        self.leave()

    def elements(self, on_element: Callable[[int], None]) -> int:
        """Read an array, calling `on_element(index)` before each value; give the number of elements."""
        self.expect(b"[")
        self.enter()
        count = 0
        if not self.take(b"]"):
            while True:
                on_element(count)
                count += 1
                if self.take(b"]"):
                    break
                self.expect(b",")
        self.leave()
        return count

    def skip(self) -> tuple[int, int]:
        """Skip one value, checking syntax alone; give its byte range, white space around it left out."""
        first = self.peek()
        start = self.position
        open_brackets = bytearray()
        while True:
            if self._skip_opening(first, open_brackets):
                first = self.peek()
                continue
            while open_brackets:
                if self.take(b","):
                    if open_brackets[-1:] == b"{":
                        self._skip_name()
                    break
                self.expect(b"}" if open_brackets.pop() == ord("{") else b"]")
            else:
                return start, self.position
            first = self.peek()

    def free(self) -> Any:
        """Read any value fully: dict, list, str, int, float, bool or None; a repeated key keeps its first place."""
        first = self.peek()
        if first == b"{":
            return self._free_object()
        if first == b"[":
            items: list[Any] = []
            self.elements(lambda _: items.append(self.free()))
            return items
        if first == b'"':
            return self.string()
        if first in b"-0123456789" and first:
            start = self.position
            value = number_value(self.number())
            return self.fail("number out of range", start) if value is None else value
        return self.word()

    def read_over(self) -> None:
        """Read any value fully and keep nothing: nesting, surrogates and number ranges count, repeated names do not."""
        first = self.peek()
        if first == b"{":
            self.members(lambda _: self.read_over())
        elif first == b"[":
            Scanner.elements(self, lambda _: self.read_over())  # a subclass may give arrays another meaning
        elif first == b'"':
            self.string()
        elif first and first in b"-0123456789":
            start = self.position
            if number_value(self.number()) is None:
                self.fail("number out of range", start)
        else:
            self.word()

    def _free_object(self) -> Any:
        value: dict[str, Any] = {}
        embedded: list[str] = []

        def member(name: str) -> None:
            if embedded:
                self.fail("embedded JSON text must be the only member")
            if name == _RAW_VALUE and not value:
                embedded.append(self.string())
            else:
                value[name] = self.free()

        start = self.position
        self.members(member)
        if not embedded:
            return value
        try:
            return read_free(embedded[0].encode(), self.outer + self.depth + 1)
        except JsonError as error:
            self.fail(f"embedded JSON text: {error.message}", start)

    def _skip_opening(self, first: bytes, open_brackets: bytearray) -> bool:
        """Skip a scalar, or open a container; true if a value must follow at once."""
        if first in (b"{", b"["):
            self.position += 1
            closing = b"}" if first == b"{" else b"]"
            if self.take(closing):
                return False
            open_brackets += first
            if first == b"{":
                self._skip_name()
            return True
        if first == b'"':
            self._string_token()
        elif first and first in b"-0123456789":
            self.number()
        else:
            self.word()
        return False

    def _skip_name(self) -> None:
        self.peek()
        self._string_token()
        self.expect(b":")

    def _string_token(self) -> bytes:
        match = _STRING.match(self.data, self.position)
        if match is None:
            self.fail("malformed string")
        self.position = match.end()
        return match.group()

    def _shown(self) -> str:
        rest = self.data[self.position : self.position + 1]
        return repr(rest.decode("latin-1")) if rest else "the end"


def read_free(data: bytes, outer: int = 0) -> Any:
    """Read one document as a free value; JsonError where the runtime's reader would refuse it.

    Args:
        data: the document.
        outer: containers open around it, if it is embedded in another.
    """
    scanner = Scanner(data)
    scanner.outer = outer
    value = scanner.free()
    scanner.end()
    return value


def number_value(token: re.Match[bytes]) -> int | float | None:
    """The value of a number token as the runtime computes it (5.3); None if it overflows.

    Integers stay integers from -2^63 to 2^64-1; all else becomes binary64 by the runtime's own conversion, which
    is not correctly rounded.
    """
    integer, fraction, sign, exponent = token.group(1, 2, 3, 4)
    negative = token.group().startswith(b"-")
    significand, dropped = _significand(0, integer)
    if fraction is None and exponent is None and not dropped:
        value = -significand if negative else significand
        if value >= _I64_MIN and not (negative and significand == 0):
            return value
    scale = len(dropped)
    if fraction:
        significand, rest = _significand(significand, fraction)
        scale -= len(fraction) - len(rest)
    if exponent is not None:
        digits = exponent.lstrip(b"0")
        if len(digits) > 10 or int(digits or b"0") > _I32_MAX:
            if sign != b"-" and significand:
                return None
            return -0.0 if negative else 0.0
        scale += int(digits or b"0") * (-1 if sign == b"-" else 1)
    value_f = _scaled(float(significand), scale)
    return None if value_f is None else -value_f if negative else value_f


def _significand(start: int, digits: bytes) -> tuple[int, bytes]:
    """Append digits while the number fits 64 bits; give it and the digits left over."""
    for index, digit in enumerate(digits):
        longer = start * 10 + digit - 48
        if longer > _U64_MAX:
            return start, digits[index:]
        start = longer
    return start, b""


def _scaled(value: float, exponent: int) -> float | None:
    while abs(exponent) > 308:
        if value == 0.0:
            return value
        if exponent > 0:
            return None
        value /= 1e308
        exponent += 308
    value = value * float(f"1e{exponent}") if exponent >= 0 else value / float(f"1e{-exponent}")
    return None if value == float("inf") else value


def _encoding_hint(data: bytes) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\x00" in data[:2]:
        return "not UTF-8: it looks like UTF-16"
    return "not UTF-8"
