"""Structure-aware damage to evidence of every kind, from a seed: what each generator gives is the same on every machine.

Values inside a document change (replaced, removed, added, renamed), then its text (a token put in, a member doubled),
then its bytes; lines of a claim come and go. What carries a signature gets a new one half of the time, so that what
lies behind the signature is reached as well.
"""

import copy
import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from tests.property.test_journal_decoders import TOKENS
from tests.support.writer.text import AGENT, INVOCATION, RUN, compact, plain_hash

VALUES: list[Any] = [
    json.loads(token) for token in TOKENS if token not in ("-0", "1E400") and "ud800" not in token
]
STRINGS = [
    *(AGENT, INVOCATION, RUN, RUN.upper(), RUN.replace("-", "")),
    *("0" * 64, plain_hash(b"x"), "ab" * 32, "2016-12-31T23:59:60Z", "0000-00-00T00:00:00Z"),
    *(
        "/",
        "//",
        ".",
        "..",
        "../x",
        "/dev/null",
        "/dev/zero",
        "/proc/self/mem",
        "a\x00b",
        "\x1b[2J",
        "\u202e",
        "é",
    ),
    *("unix:///d.sock", "tcp://127.0.0.1:2375", "http://[", "x" * 5000, "docker", "true", "-1"),
]
JUNK = [
    b"\n",
    b"{}",
    b"{}\n",
    b"[]\n",
    b"null\n",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\x00" * 9,
    b" \n",
    b"[" * 5000,
    b'{"a":' * 900,
]


_TEXT = ["", "no_effects", "failed", "completed", *(text for text in STRINGS if len(text) < 100)]


def alike(source: random.Random, old: Any) -> Any:
    """Another value of the same type, so that the form still holds; any value where there is no other."""
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        return source.choice((0, 1, 2, max(0, old - 1), old + 1, 2**32 - 1, 2**64 - 1))
    if isinstance(old, str):
        return source.choice(_TEXT) if source.random() < 0.7 else old[::-1]
    return value(source)


def value(source: random.Random) -> Any:
    """Any value that may stand where another one was."""
    return copy.deepcopy(source.choice(VALUES)) if source.random() < 0.6 else source.choice(STRINGS)


def _places(inside: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Every container below a value, with each of its names or positions."""
    pairs = list(inside.items()) if isinstance(inside, dict) else list(enumerate(inside))
    for name, item in pairs:
        found.append((inside, name))
        if isinstance(item, dict | list):
            _places(item, found)
    return found


def bent(source: random.Random, document: Any) -> Any:
    """A copy of a JSON value in which one to three places are not what they were."""
    made = {"": copy.deepcopy(document)}
    for _ in range(source.choice((1, 1, 1, 2, 3))):
        inside, name = source.choice(_places(made, []))
        how = source.randrange(10)
        if how == 0 and inside is not made:
            del inside[name]
        elif how == 1 and isinstance(inside, dict) and inside is not made:
            inside[source.choice(["more", "", "version", "kind", "path"])] = value(source)
        elif how == 2 and isinstance(inside, dict) and inside is not made:
            inside[f"{name}{source.choice(['', ' ', 's'])}".upper()] = inside.pop(name)
        elif how == 3:
            inside[name] = [inside[name]] * source.choice((0, 1, 2, 300))
        elif how < 6:
            inside[name] = value(source)
        else:
            inside[name] = alike(source, inside[name])
    return made[""]


def _member_doubled(source: random.Random, text: bytes) -> bytes:
    at = source.choice([place for place, byte in enumerate(text) if byte in b"{,"] or [0]) + 1
    end = min((place for place in (text.find(mark, at) for mark in (b",", b"}")) if place >= 0), default=at)
    return text[:end] + b"," + text[at:end] + text[end:]


def _token_put_in(source: random.Random, text: bytes) -> bytes:
    at = source.choice([place for place, byte in enumerate(text) if byte in b":,[{"] or [0]) + 1
    end = at if source.random() < 0.5 else at + source.randrange(9)
    return text[:at] + source.choice(TOKENS).encode() + text[end:]


def _bytes_changed(source: random.Random, text: bytes) -> bytes:
    data = bytearray(text)
    for _ in range(source.randrange(1, 4)):
        at = source.randrange(len(data) + 1)
        data[at : at + source.randrange(3)] = source.randbytes(source.randrange(3))
    return bytes(data)


def _cut(source: random.Random, text: bytes) -> bytes:
    return text[: source.randrange(len(text) + 1)]


def _junk(source: random.Random, text: bytes) -> bytes:
    at = source.choice((0, len(text), source.randrange(len(text) + 1)))
    return text[:at] + source.choice(JUNK) + text[at:]


_SPOILERS: Sequence[Callable[[random.Random, bytes], bytes]] = (
    *(_member_doubled, _token_put_in, _token_put_in, _bytes_changed, _bytes_changed, _cut, _junk),
)


def spoiled(source: random.Random, text: bytes) -> bytes:
    """The text with one thing wrong that no JSON value expresses."""
    return source.choice(_SPOILERS)(source, text)


def document(source: random.Random, honest: Any) -> bytes:
    """A document of one JSON value, bent, spoiled or both."""
    text = compact(bent(source, honest) if source.random() < 0.75 else honest)
    return spoiled(source, text) if source.random() < 0.4 else text


def signed(source: random.Random, honest: Any, sign: Callable[[Any], bytes]) -> bytes:
    """A signed document: bent, and half of the time signed anew as it is, by `sign`."""
    if source.random() < 0.5:
        return document(source, {"payload": honest, "signature": source.choice(["ab" * 64, "", "AB" * 64])})
    made = sign(bent(source, honest))
    return spoiled(source, made) if source.random() < 0.3 else made


def lines(source: random.Random, honest: list[Any]) -> bytes:
    """A file of JSON lines: lines bent and spoiled, missing, twice, elsewhere, or without their end."""
    held = [compact(line) + b"\n" for line in honest]
    at = source.randrange(len(held))
    how = source.randrange(8)
    if how == 0:
        del held[at]
    elif how == 1:
        held.insert(at, source.choice(held))
    elif how == 2:
        source.shuffle(held)
    elif how == 3:
        held.append(source.choice(JUNK))
    else:
        held[at] = document(source, honest[at]) + b"\n"
    text = b"".join(held)
    return spoiled(source, text) if source.random() < 0.25 else text
