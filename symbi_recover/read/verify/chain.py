"""Verifies lines of a journal one after another (journal.md section 8, steps 3c to 3h).

For each line: cut the envelope, check the signature, type the payload, then the chain: version and run, run and
principal like the first record's, previous hash, sequence. The first fault raises. Only the events that matter to
a classifier come back; nothing else is kept but the state that the next line needs.

A chain may begin in the middle of a file (`adopt`); `join` then checks that two chains meet.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple
from uuid import UUID

from msgspec import Struct

from symbi_recover.core.events import Event, Record
from symbi_recover.core.refusals import JournalRefusedError, refuse
from symbi_recover.read.classify import MATTERS
from symbi_recover.wire import ed25519, timestamp
from symbi_recover.wire.journal import (
    FIRST_PREVIOUS_HASH,
    SignatureFormError,
    decode,
    envelope,
    exact_envelope,
)
from symbi_recover.wire.strictjson import JsonError

_GROUP = 100
"""Lines whose signatures are checked in one go: their bytes fit a processor's second cache."""
Depth = Literal["full", "anchored"]


class Batch(NamedTuple):
    """What some consecutive records say; places are sequences."""

    events: list[tuple[int, int, Event]]
    """Those in `MATTERS`, as (sequence, iteration, event)."""
    first_time: str
    last_time: str
    backwards: list[tuple[int, str, str]]
    """Records dated before their predecessor, as (sequence, time before, time)."""
    not_canonical: list[int]
    layout_odd: list[int]


class Stretch(Struct, frozen=True, array_like=True):
    """Where a verified chain begins and ends, which is all that another needs to go on from it."""

    agent: str | None
    run: str | None
    start: tuple[int, str, int]
    """As `Chain.start`; the rest is that of the place behind the last line."""
    count: int
    previous_hash: str
    offset: int
    last_time: str


class Chain:
    """The state between two lines.

    `full` checks every signature; `anchored` checks only the last one, through `check_head`: that signature covers
    the hash of the line before, and so on down to the first.
    """

    def __init__(self, public_key: bytes, run_id: UUID | None, depth: Depth = "full") -> None:
        self.public_key = public_key
        self.check_each = depth == "full"
        self.count = 0
        self.previous_hash = FIRST_PREVIOUS_HASH
        self.start = (0, FIRST_PREVIOUS_HASH, 0)
        """Sequence, previous hash and byte offset of the first record."""
        self.agent: str | None = None
        """The principal as text, as records carry it."""
        self.run_text = str(run_id) if run_id is not None else None
        self.offset = 0
        self.first_time = self.last_time = ""
        self.watched: int | None = None
        """A record whose line hash is wanted in `watched_hash`."""
        self.watched_hash: str | None = None
        self.head_checked = False
        self._adopting = False
        self._head: bytes | None = None
        self._canonical_time = False
        ed25519.self_test()

    @property
    def principal(self) -> UUID | None:
        """The agent that all records name; None before the first."""
        return UUID(self.agent) if self.agent else None

    @property
    def run(self) -> UUID | None:
        """The run that all records name; None before the first, and for version 1."""
        return UUID(self.run_text) if self.run_text else None

    def adopt(self, offset: int) -> None:
        """Begin at byte `offset` of the file with whatever the first line says of its place."""
        self.offset = offset
        self._adopting = True

    def take(self, lines: list[bytes]) -> Batch:
        """Verify complete lines.

        Raises:
            JournalRefusedError: at the first line that the runtime refuses, with record number and byte range.
        """
        batch = Batch([], "", "", [], [], [])
        first_time = ""
        for line, record, laid_out in self._authenticated(lines):
            if (
                record.previous_hash != self.previous_hash
                or record.sequence != self.count
                or record.agent_id != self.agent
                or record.run_id != self.run_text
                or record.version != 2
            ):
                self._settle(record, line)
            if not laid_out:
                batch.layout_odd.append(record.sequence)
            if not record.canonical:
                batch.not_canonical.append(record.sequence)
            time = record.timestamp
            first_time = first_time or time
            self.first_time = self.first_time or time
            canonical = record.canonical and self._canonical_time
            if self.last_time and timestamp.earlier(time, self.last_time, canonical=canonical):
                batch.backwards.append((record.sequence, self.last_time, time))
            self.last_time, self._canonical_time = time, record.canonical
            if type(record.event) in MATTERS:
                batch.events.append((record.sequence, record.iteration, record.event))
            self._head = line
            self.previous_hash = hashlib.sha256(line).hexdigest()
            if self.count == self.watched:
                self.watched_hash = self.previous_hash
            self.count += 1
            self.offset += len(line)
        return batch._replace(first_time=first_time, last_time=self.last_time)

    def _authenticated(self, lines: list[bytes]) -> Iterator[tuple[bytes, Record, bool]]:
        """Each line with what `_authentic` says of it, one after another."""
        for start in range(0, len(lines), _GROUP):
            group = lines[start : start + _GROUP]
            for line, cut in zip(group, self._cut(group), strict=True):
                yield line, *self._authentic(line, cut)

    def _cut(self, lines: list[bytes]) -> Sequence[tuple[bytes, bytes, bool] | None]:
        """The envelopes of lines whose signatures all hold; Nones if one does not, and then each line is judged.

        Signatures are checked in one loop and payloads typed in another, because either is faster on a cache that the
        other has not emptied.
        """
        try:
            cut = [envelope(line) for line in lines]
        except (JsonError, SignatureFormError):
            return [None] * len(lines)
        if self.check_each and not ed25519.all_hold(self.public_key, cut):
            return [None] * len(lines)
        return cut

    def _authentic(self, line: bytes, cut: tuple[bytes, bytes, bool] | None) -> tuple[Record, bool]:
        """The record of a line whose signature holds, and whether the line is laid out as the writer does."""
        try:
            if cut is not None:
                return decode(cut[0]), cut[2]
            payload, signature, laid_out = envelope(line)
            if self.check_each and not ed25519.verify(self.public_key, payload, signature):
                exact_envelope(line)
                raise self._refusal(ed25519.reason(signature), line)
            return decode(payload), laid_out
        except SignatureFormError as error:
            raise self._refusal("signature_length", line, message=str(error)) from None
        except JsonError as error:
            message = f"{error.message}, at byte {error.offset} of the line or its payload"
            raise self._refusal("record_malformed", line, message=message) from None

    def stretch(self) -> Stretch:
        """What was taken, for another chain to join."""
        return Stretch(
            self.agent,
            self.run_text,
            self.start,
            self.count,
            self.previous_hash,
            self.offset,
            self.last_time,
        )

    def join(self, following: Stretch) -> bool:
        """Go on behind a stretch that begins where this chain ends; False if they do not meet."""
        if self.agent is None:
            self.agent, self.run_text = following.agent, following.run
        if (following.agent, following.run) != (self.agent, self.run_text):
            return False
        if following.start != (self.count, self.previous_hash, self.offset):
            return False
        self.count, self.previous_hash = following.count, following.previous_hash
        self.offset, self.last_time = following.offset, following.last_time
        return True

    def check_head(self) -> None:
        """Check the signature of the last line taken, which `anchored` has not.

        Raises:
            JournalRefusedError: if it does not hold.
        """
        if self._head is None or self.check_each:
            return
        line = self._head
        payload, signature, _ = envelope(line)
        self.head_checked = ed25519.verify(self.public_key, payload, signature)
        if not self.head_checked:
            self.count -= 1
            self.offset -= len(line)
            raise self._refusal(ed25519.reason(signature), line)

    def _settle(self, record: Record, line: bytes) -> None:
        """Learn from a first record what all must share, or refuse one that differs."""
        if self.agent is None:
            self.agent = record.agent_id
            if self.run_text is None:
                self.run_text = record.run_id
            if self._adopting:
                self.count, self.previous_hash = record.sequence, record.previous_hash
                self.start = self.count, self.previous_hash, self.offset
        code, expected, actual = self._difference(record)
        if code:
            raise self._refusal(code, line, sequence=record.sequence, expected=expected, actual=actual)

    def _difference(self, record: Record) -> tuple[str, str, str]:
        if (record.version, record.run_id is None) not in ((1, True), (2, False)):
            return "record_version", "1 without run, or 2 with one", str(record.version)
        if record.run_id != self.run_text:
            return (
                ("record_version" if record.run_id is None else "record_run"),
                str(self.run_text),
                str(record.run_id),
            )
        if record.agent_id != self.agent:
            return "record_principal", str(self.agent), record.agent_id
        if record.sequence != self.count:
            code = "record_repeated" if record.sequence < self.count else "records_missing"
            return code, str(self.count), str(record.sequence)
        if record.previous_hash != self.previous_hash:
            return "link_mismatch", self.previous_hash, record.previous_hash
        return "", "", ""

    def _refusal(self, code: str, line: bytes, *, message: str = "", **where: object) -> JournalRefusedError:
        return refuse(
            code,
            message or _SENTENCES.get(code, ""),
            record=self.count,
            start=self.offset,
            end=self.offset + len(line),
            **where,
        )


_SENTENCES = {
    "signature_scalar": "the signature's scalar is not below the group order",
    "signature_invalid": "the signature does not hold for this payload under the given key",
    "record_version": "the version does not fit the run identity",
    "record_run": "the record belongs to another run",
    "record_principal": "the record belongs to another agent",
    "record_repeated": "the record's number was there before",
    "records_missing": "records are missing before this one",
    "link_mismatch": "the record does not name the hash of the line before it",
}
