"""Verifies an operator ledger (docs/ledger.md), without a lock and without a trace.

For every line, in order:

1. it is a record, spelled as the toolkit writes it; 2. its signature holds under the key; 3. it is of this ledger, has
the next sequence number, and names the hash of the record before; 4. bytes between two records are fragments, each
ended by `#torn`, and the later record accounts for them; 5. an outcome belongs to an intent.

What follows the last record is a torn tail if it can come from an interrupted write, and a fault if it cannot. Nobody
but the holder of the key can add, change or reorder records. Whoever can write the file can still cut records off its
end: only a head that was noted elsewhere shows that.
"""

import hashlib

from msgspec.structs import replace

from symbi_recover.core.acts import LedgerDocument
from symbi_recover.core.codes import finding
from symbi_recover.core.errors import UnexaminedError
from symbi_recover.core.exits import Exit
from symbi_recover.core.findings import Finding, NotChecked, Severity
from symbi_recover.core.ledger import (
    LEDGER_LIMIT,
    TORN_MARK,
    Act,
    Continued,
    Finished,
    Intended,
    LedgerPayload,
    LedgerReport,
    Opened,
)
from symbi_recover.core.report import KeyUsed
from symbi_recover.core.scalars import UUID
from symbi_recover.core.words import counted
from symbi_recover.read.evidence.opener import OpenedFile
from symbi_recover.wire import canonical, ed25519
from symbi_recover.wire import ledger as wire


def load(path: str) -> bytes:
    """All bytes of a ledger.

    Raises:
        UnexaminedError: `ledger_missing`; `file_kind`; it cannot be opened.
    """
    try:
        opened = OpenedFile.open(path)
    except UnexaminedError as error:
        if error.code != "file_missing":
            raise
        raise UnexaminedError("ledger_missing", "there is no ledger here", path=path) from error
    with opened as file:
        if file.facts.kind != "file" or file.facts.size > LEDGER_LIMIT:
            what = f"it is a {file.facts.kind} of {counted(file.facts.size, 'byte')}"
            raise UnexaminedError("file_kind", f"this is no ledger: {what}", path=path)
        return file.read(LEDGER_LIMIT)


def judge(
    data: bytes, path: str, *, key: KeyUsed | None, expected_head: tuple[int, str] | None = None
) -> LedgerReport:
    """Verify the bytes of a ledger. Never raises for what they hold.

    Args:
        data: the whole file.
        path: for messages.
        key: the operator's; None takes the key that the ledger names.
        expected_head: sequence number and line hash of a record that must be there.
    """
    judge_of = _Judge(path, key)
    judge_of.read(data)
    return judge_of.report(data, expected_head)


def document(report: LedgerReport, verdict: Exit) -> bytes:
    """The report as the commands print it."""
    return canonical.pretty(LedgerDocument(ok=verdict is Exit.OK, exit=verdict, report=report))


class _Judge:
    """The state between two lines."""

    def __init__(self, path: str, key: KeyUsed | None) -> None:
        self.path = path
        self.key = key
        self.ledger_id: UUID | None = None
        self.findings: list[Finding] = []
        self.acts: dict[UUID, Act] = {}
        self.hashes: list[str] = []
        self.end = 0
        self.broken = False
        self.first_time: str | None = None
        self.last_time: str | None = None

    def read(self, data: bytes) -> None:
        position = 0
        while (stop := data.find(b"\n", position) + 1) > 0:
            if not self._line(data, position, stop):
                return
            position = stop
        tail = data[self.end :]
        if tail:
            self._note(
                "ledger_torn", f"{counted(len(tail), 'byte')} after the last record", self.end, len(data)
            )

    def _line(self, data: bytes, start: int, stop: int) -> bool:
        """Take one complete line; False ends the reading."""
        line = data[start:stop]
        if line.endswith(TORN_MARK) and self.hashes:
            return True
        try:
            payload, payload_bytes, signature = wire.read_line(line)
        except wire.LedgerFormError as error:
            return self._fail("ledger_line_invalid", str(error), start, stop)
        if not self.hashes and not self._open(payload, start, stop):
            return False
        assert self.key is not None  # noqa: S101 -- taken from the first record at the latest
        if not ed25519.verify(bytes.fromhex(self.key.public_key), wire.signed_text(payload_bytes), signature):
            return self._fail("ledger_signature", f"it is not signed with {self.key.public_key}", start, stop)
        problem = self._misfit(payload, data[self.end : start])
        if problem is not None:
            return self._fail("ledger_chain", problem, start, stop)
        self._take(payload, start)
        self.hashes.append(wire.line_hash(line))
        self.end = stop
        return True

    def _open(self, payload: LedgerPayload, start: int, stop: int) -> bool:
        event = payload.entry.event.value
        if not isinstance(event, Opened):
            return self._fail("ledger_chain", "the first record does not open a ledger", start, stop)
        try:
            named = bytes.fromhex(event.public_key)
        except ValueError:
            named = b""
        if len(named) != 32 or event.public_key != named.hex():
            return self._fail("ledger_line_invalid", "the ledger names no public key", start, stop)
        if self.key is None:
            self.key = KeyUsed(event.public_key, "evidence")
            self._note("ledger_key_from_ledger", f"the key is {event.public_key}", start, stop)
        self.ledger_id = payload.ledger_id
        self.first_time = payload.entry.timestamp
        return True

    def _misfit(self, payload: LedgerPayload, gap: bytes) -> str | None:
        """Why the record cannot stand here, in words."""
        entry, event = payload.entry, payload.entry.event.value
        wanted = self.hashes[-1] if self.hashes else wire.FIRST_PREVIOUS_HASH
        if payload.version != 1:
            return f"its version is {payload.version}"
        if payload.ledger_id != self.ledger_id:
            return f"it belongs to the ledger {payload.ledger_id}"
        if entry.sequence != len(self.hashes):
            return f"it has number {entry.sequence} where {len(self.hashes)} is expected"
        if payload.previous_hash != wanted:
            return "it does not name the record before it"
        if isinstance(event, Opened) and self.hashes:
            return "it opens a ledger a second time"
        if isinstance(event, Continued) != bool(gap):
            return "fragments and the record that accounts for them do not belong together"
        if isinstance(event, Continued) and (
            event.torn_bytes != len(gap) or event.torn_sha256 != hashlib.sha256(gap).hexdigest()
        ):
            return "it accounts for other bytes than those before it"
        if isinstance(event, Intended) and event.act in self.acts:
            return f"the act {event.act} is intended a second time"
        if isinstance(event, Finished) and event.act not in self.acts:
            return f"the act {event.act} was never intended"
        return None

    def _take(self, payload: LedgerPayload, start: int) -> None:
        entry = payload.entry
        self.last_time = entry.timestamp
        match entry.event.value:
            case Intended() as event:
                self.acts[event.act] = Act(
                    id=event.act,
                    command=event.command,
                    subject=event.subject,
                    evidence=event.evidence,
                    sequence=entry.sequence,
                    intended_at=entry.timestamp,
                    host=entry.host,
                    uid=entry.uid,
                )
            case Finished() as event:
                self.acts[event.act] = replace(
                    self.acts[event.act],
                    outcome=event.outcome,
                    finished_at=entry.timestamp,
                    code=event.code,
                    message=event.message,
                    receipts=event.receipts,
                )
            case Continued() as event:
                self._note(
                    "ledger_continued",
                    f"{counted(event.torn_bytes, 'byte')} of fragments before it",
                    self.end,
                    start,
                )

    def _note(self, code: str, message: str, start: int, stop: int) -> None:
        self.findings.append(
            finding(code, message, path=self.path, record=len(self.hashes), start=start, end=stop)
        )

    def _fail(self, code: str, message: str, start: int, stop: int) -> bool:
        self._note(code, message, start, stop)
        self.broken = True
        return False

    def report(self, data: bytes, expected: tuple[int, str] | None) -> LedgerReport:
        not_checked = []
        if self.broken:
            rest = counted(len(data) - self.end, "byte")
            not_checked.append(
                NotChecked(f"the last {rest}", "the first line that does not hold ends the verification")
            )
        if expected is None:
            not_checked.append(
                NotChecked("whether records were cut off at the end", "no head was given to compare with")
            )
        elif expected[0] >= len(self.hashes) or self.hashes[expected[0]] != expected[1]:
            self._note("ledger_head_differs", f"record {expected[0]} is not {expected[1]}", 0, self.end)
        if not self.hashes and not any(f.severity is Severity.REFUSED for f in self.findings):
            self._note("ledger_line_invalid", "it holds no record", 0, len(data))
        for act in self.acts.values():
            if act.outcome is None:
                where = {"path": self.path, "record": act.sequence, "sequence": act.sequence}
                self.findings.append(finding("ledger_act_open", f"{act.command} {act.id}", **where))
        return LedgerReport(
            path=self.path,
            ledger_id=self.ledger_id,
            key=self.key,
            records=len(self.hashes),
            verified_bytes=self.end,
            tail_bytes=len(data) - self.end,
            head_sequence=len(self.hashes) - 1 if self.hashes else None,
            head_hash=self.hashes[-1] if self.hashes else None,
            first_time=self.first_time,
            last_time=self.last_time,
            acts=tuple(self.acts.values()),
            findings=tuple(self.findings),
            not_checked=tuple(not_checked),
        )
