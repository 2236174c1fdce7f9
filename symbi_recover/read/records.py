"""Reads the records of a journal one by one, to show them: each with its place, and what could be checked about it.

Unlike `read/verify/journal.py` this goes on after a bad line, and needs no key. A line that is no record is given
with the reason. Nothing here is a verdict about the whole journal.
"""

import hashlib
import io
import re
from collections.abc import Iterator

from msgspec import Struct

from symbi_recover.core.errors import MisuseError, UnexaminedError
from symbi_recover.core.shown import ShownRecord
from symbi_recover.core.words import counted
from symbi_recover.read.evidence.opener import OpenedFile
from symbi_recover.wire import ed25519
from symbi_recover.wire.journal import (
    MAX_JOURNAL,
    MAX_RECORD,
    SignatureFormError,
    decode,
    envelope,
)
from symbi_recover.wire.strictjson import JsonError

_RANGE = re.compile(r"([0-9]{1,19})(?:(-)([0-9]{1,19})?)?")


class Selection(Struct, frozen=True):
    """Which lines to show: those whose number lies in one of the ranges; all, if there is none."""

    ranges: tuple[tuple[int, int | None], ...] = ()

    def has(self, line: int) -> bool:
        """Whether a line number is selected."""
        return not self.ranges or any(a <= line and (b is None or line <= b) for a, b in self.ranges)


def selection(texts: tuple[str, ...]) -> Selection:
    """Ranges from their spellings `7`, `7-9` and `7-`.

    Raises:
        MisuseError: `usage`, for another spelling.
    """
    ranges: list[tuple[int, int | None]] = []
    for text in texts:
        match = _RANGE.fullmatch(text)
        if match is None:
            raise MisuseError("usage", f"{text!r} is not a record number or a range like 7-9 or 7-")
        first, dash, last = match.groups()
        if last and int(last) < int(first):
            raise MisuseError("usage", f"the range {text} ends before it begins")
        ranges.append((int(first), int(last) if last else None if dash else int(first)))
    return Selection(tuple(ranges))


def records(file: OpenedFile, public_key: bytes | None) -> Iterator[ShownRecord]:
    """All lines in order, the tail last.

    Raises:
        UnexaminedError: `journal_kind`, for what cannot be a journal.
    """
    if file.facts.kind != "file" or file.facts.size > MAX_JOURNAL:
        raise UnexaminedError(
            "journal_kind", f"it is a {file.facts.kind} of {counted(file.facts.size, 'byte')}", path=file.path
        )
    previous: str | None = None
    start = 0
    rest = b""
    number = 0
    for block in file.blocks(0, file.facts.size):
        lines = io.BytesIO(rest + block).readlines()
        rest = b"" if lines[-1].endswith(b"\n") else lines.pop()
        for line in lines:
            shown = _shown(number, start, line, public_key, previous)
            yield shown
            previous, start, number = shown.sha256, shown.end, number + 1
    if rest:
        yield ShownRecord(
            line=number,
            start=start,
            end=start + len(rest),
            sha256=hashlib.sha256(rest).hexdigest(),
            complete=False,
            payload=rest,
            problem="incomplete: unauthenticated bytes after the last complete record",
        )


def _shown(number: int, start: int, line: bytes, key: bytes | None, previous: str | None) -> ShownRecord:
    digest = hashlib.sha256(line).hexdigest()
    record = None
    payload = line
    problem = holds = None
    try:
        payload, signature, _ = envelope(line)
        holds = None if key is None else ed25519.verify(key, payload, signature)
        record = decode(payload)
        if len(line) > MAX_RECORD:
            record, problem = None, f"longer than {MAX_RECORD:,} bytes"
    except SignatureFormError as error:
        problem = str(error)
    except JsonError as error:
        problem = f"{error.message}, at byte {error.offset}"
    expected = previous if number else "0" * 64
    return ShownRecord(
        line=number,
        start=start,
        end=start + len(line),
        sha256=digest,
        complete=True,
        record=record,
        payload=payload,
        problem=problem,
        signature_holds=holds,
        linked=None if record is None else record.previous_hash == expected,
    )
