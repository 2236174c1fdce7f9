"""Verifies lines of a journal one after another (journal.md section 8, steps 3c to 3h).

For each line: cut the envelope, check the signature, type the payload, then the chain: version and run, run and
principal like the first record's, previous hash, sequence. The first fault raises. Whoever calls decides what to
do with the facts that come back; nothing is kept here but the state that the next line needs.

A chain may begin in the middle of a file (`adopt`): the caller then joins the seams.
"""

import hashlib
from collections.abc import Iterable
from typing import Literal
from uuid import UUID

from symbi_recover.core.refusals import JournalRefusedError, refuse
from symbi_recover.wire import ed25519
from symbi_recover.wire.journal import (
    FIRST_PREVIOUS_HASH,
    Record,
    SignatureFormError,
    decode,
    envelope,
)
from symbi_recover.wire.strictjson import JsonError

Depth = Literal["full", "anchored"]


class Chain:
    """The state between two lines.

    `full` checks every signature; `anchored` checks only the last one, through `check_head`: that signature covers
    the hash of the line before, and so on down to the first.
    """

    def __init__(self, public_key: bytes, run_id: UUID | None, depth: Depth = "full") -> None:
        self.public_key = public_key
        self.expected_run = run_id
        self.check_each = depth == "full"
        self.count = 0
        self.first_sequence = 0
        self.previous_hash = FIRST_PREVIOUS_HASH
        self.first_previous_hash = FIRST_PREVIOUS_HASH
        self.principal: UUID | None = None
        self.run: UUID | None = run_id
        self.offset = 0
        self.layout_odd: list[int] = []
        self.adopting = False
        self._head: tuple[bytes, bytes, bytes] | None = None
        ed25519.self_test()

    def adopt(self, offset: int) -> None:
        """Begin at byte `offset` of the file with whatever the first line says of its place."""
        self.offset = offset
        self.adopting = True

    def take(self, lines: Iterable[bytes]) -> list[Record]:
        """Verify complete lines.

        Raises:
            JournalRefusedError: at the first line that the runtime refuses, with record number and byte range.
        """
        records = []
        verify = ed25519.verify if self.check_each else None
        key = self.public_key
        for line in lines:
            try:
                payload, signature, laid_out = envelope(line)
                if verify is not None and not verify(key, payload, signature):
                    raise self._refusal(_SIGNATURE_CODES[ed25519.reason(signature)], line)
                record = decode(payload)
            except SignatureFormError:
                raise self._refusal("signature_length", line) from None
            except JsonError as error:
                raise self._malformed(error, line) from None
            if (
                record.previous_hash != self.previous_hash
                or record.sequence != self.count
                or record.agent_id != self.principal
                or record.run_id != self.run
                or (record.version != 2 if record.run_id is not None else record.version != 1)
            ):
                self._settle(record, line)
            if not laid_out:
                self.layout_odd.append(self.count)
            self.previous_hash = hashlib.sha256(line).hexdigest()
            self.count += 1
            self.offset += len(line)
            records.append(record)
        if records:
            self._head = line, payload, signature
        return records

    def check_head(self) -> None:
        """Check the signature of the last line taken, which `anchored` has not.

        Raises:
            JournalRefusedError: if it does not hold.
        """
        if self._head is None or self.check_each:
            return
        line, payload, signature = self._head
        if not ed25519.verify(self.public_key, payload, signature):
            self.count -= 1
            self.offset -= len(line)
            raise self._refusal(_SIGNATURE_CODES[ed25519.reason(signature)], line)

    def _settle(self, record: Record, line: bytes) -> None:
        """Learn from a first record what all must share, or refuse one that differs."""
        first = self.principal is None
        if first:
            self.principal = record.agent_id
            if self.expected_run is None:
                self.run = record.run_id
            if self.adopting:
                self.count = self.first_sequence = record.sequence
                self.previous_hash = self.first_previous_hash = record.previous_hash
        code, expected, actual = self._difference(record)
        if code:
            raise self._refusal(code, line, sequence=record.sequence, expected=expected, actual=actual)

    def _difference(self, record: Record) -> tuple[str, str, str]:
        if (record.version, record.run_id is None) not in ((1, True), (2, False)):
            return "record_version", "1 without run, or 2 with one", str(record.version)
        if record.run_id != self.run:
            return (
                ("record_version" if record.run_id is None else "record_run"),
                str(self.run),
                str(record.run_id),
            )
        if record.agent_id != self.principal:
            return "record_principal", str(self.principal), str(record.agent_id)
        if record.sequence != self.count:
            code = "record_repeated" if record.sequence < self.count else "records_missing"
            return code, str(self.count), str(record.sequence)
        if record.previous_hash != self.previous_hash:
            return "link_mismatch", self.previous_hash, record.previous_hash
        return "", "", ""

    def _malformed(self, error: JsonError, line: bytes) -> JournalRefusedError:
        found = self._refusal(
            "record_malformed", line, message=f"{error.message} at byte {error.offset} of the line"
        )
        return found

    def _refusal(self, code: str, line: bytes, *, message: str = "", **where: object) -> JournalRefusedError:
        return refuse(
            code,
            message or _SENTENCES.get(code, ""),
            record=self.count,
            start=self.offset,
            end=self.offset + len(line),
            **where,
        )


_SIGNATURE_CODES = {
    ed25519.WRONG_LENGTH: "signature_length",
    ed25519.SCALAR_TOO_LARGE: "signature_scalar",
    ed25519.EQUATION_FAILED: "signature_invalid",
}

_SENTENCES = {
    "signature_length": "the signature does not have 64 bytes",
    "signature_scalar": "the signature's scalar is not below the group order",
    "signature_invalid": "the signature does not hold for this payload under the given key",
    "record_version": "the version does not fit the run identity",
    "record_run": "the record belongs to another run",
    "record_principal": "the record belongs to another agent",
    "record_repeated": "the record's number was there before",
    "records_missing": "records are missing before this one",
    "link_mismatch": "the record does not name the hash of the line before it",
}
