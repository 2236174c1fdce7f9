"""Writes the operator ledger: an intent before an act, an outcome after it (docs/ledger.md).

One append, under the lock of the ledger file:

1. read and verify the whole ledger; anything but a torn tail stops here, before the act;
2. if there is a torn tail, end it with `#torn` and account for its bytes in a record of its own;
3. append the record with one write, and sync the file.

The ledger's first record is published like a receipt, so a ledger is never without it. `Recorder` is what a command
holds: an intent that a stopped command left open is taken up again by its repeat, and a repeat that
finds its act completed, and nothing more to do, adds nothing.
"""

import hashlib
import os
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID, uuid4

from symbi_recover.core.errors import RecoverError, RefusedError
from symbi_recover.core.findings import Severity
from symbi_recover.core.ledger import (
    LEDGER_LIMIT,
    LEDGER_NAME,
    TORN_MARK,
    Continued,
    Ending,
    Finished,
    Intended,
    LedgerEntry,
    LedgerEvent,
    LedgerPayload,
    LedgerReport,
    Opened,
)
from symbi_recover.core.report import KeyUsed
from symbi_recover.read import ledger as reader
from symbi_recover.read.evidence.locate import readable
from symbi_recover.read.evidence.opener import OpenedFile, examining, is_there
from symbi_recover.read.evidence.store import shown
from symbi_recover.wire import ledger as wire
from symbi_recover.wire import timestamp
from symbi_recover.write import keys
from symbi_recover.write.atomic import changing, publish, write_all
from symbi_recover.write.lock import PATIENCE, HeldLock, busy_error, open_locked, refuse_network
from symbi_recover.write.sign import Signer

_OPEN = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_TEXT = 2000
Clock = Callable[[], int]


class Ledger:
    """The ledger in an operator's folder."""

    def __init__(self, home: str, signer: Signer, clock: Clock) -> None:
        self.home = home
        self.path = f"{home}/{LEDGER_NAME}"
        self.signer = signer
        self.clock = clock

    def append(self, decide: Callable[[LedgerReport], list[tuple[str, Any]]]) -> None:
        """Append the events that `decide` gives for the ledger as it is, each as (tag, structure); perhaps none.

        Raises:
            RefusedError: the ledger is unsafe, broken, busy or full, or could not be written.
        """
        with keys.open_home(self.home, create=False) as folder:
            refuse_network(folder, self.home)
            if not is_there(LEDGER_NAME, folder=folder, path=self.path):
                self._begin(folder)
            held = open_locked(
                lambda: self._open(folder),
                LEDGER_NAME,
                folder,
                patience=PATIENCE,
                busy=busy_error("ledger_busy", "the ledger is being written by another process"),
            )
            try:
                self._append_locked(held, decide)
            finally:
                held.release()

    def _append_locked(self, held: HeldLock, decide: Callable[[LedgerReport], list[tuple[str, Any]]]) -> None:
        data = held.file.read(LEDGER_LIMIT)
        report = reader.judge(data, self.path, key=KeyUsed(self.signer.public_key.hex(), "given"))
        broken = [found for found in report.findings if found.severity is Severity.REFUSED]
        if broken:
            raise RefusedError(
                broken[0].code,
                f"the ledger cannot go on: {broken[0].message}",
                path=self.path,
                record=broken[0].record,
                offset=broken[0].start,
            )
        events = decide(report)
        addition = self._encode(report, data[report.verified_bytes :], events) if events else b""
        if len(data) + len(addition) > LEDGER_LIMIT:
            raise RefusedError("ledger_unsafe", "the ledger is full", path=self.path)
        with changing(self.path):
            write_all(held.file.descriptor, addition)
            os.fsync(held.file.descriptor)  # also for no addition: what is relied on must be durable

    def _encode(self, report: LedgerReport, torn: bytes, events: list[tuple[str, Any]]) -> bytes:
        assert report.ledger_id is not None  # noqa: S101 -- a sound ledger has one
        assert report.head_hash is not None  # noqa: S101
        prefix = b""
        if torn:
            prefix = TORN_MARK
            gap = torn + TORN_MARK
            continued = Continued(torn_bytes=len(gap), torn_sha256=hashlib.sha256(gap).hexdigest())
            events = [("Continued", continued), *events]
        lines, previous = [], report.head_hash
        for number, (tag, event) in enumerate(events, report.records):
            lines.append(self._line(report.ledger_id, previous, number, tag, event))
            previous = wire.line_hash(lines[-1])
        return prefix + b"".join(lines)

    def _line(self, ledger_id: UUID, previous: str, number: int, tag: str, event: Any) -> bytes:
        payload = wire.payload_text(
            LedgerPayload(
                version=1,
                ledger_id=ledger_id,
                previous_hash=previous,
                entry=LedgerEntry(
                    sequence=number,
                    timestamp=timestamp.from_nanoseconds(self.clock()),
                    host=os.uname().nodename,
                    uid=os.geteuid(),
                    event=LedgerEvent.of(tag, event),
                ),
            )
        )
        return wire.line(payload, self.signer.sign(wire.signed_text(payload)))

    def _begin(self, folder: int) -> None:
        """Publish a ledger with its first record, unless somebody else just did."""
        opened = Opened(public_key=self.signer.public_key.hex())
        first = self._line(uuid4(), wire.FIRST_PREVIOUS_HASH, 0, "Opened", opened)
        with changing(self.path):
            try:
                publish(folder, self.home, LEDGER_NAME, first)
            except FileExistsError:
                return

    def _open(self, folder: int) -> OpenedFile:
        with examining(self.path):
            file = OpenedFile(self.path, os.open(LEDGER_NAME, _OPEN, dir_fd=folder))
        if not file.facts.private or file.facts.size > LEDGER_LIMIT:
            os.close(file.descriptor)
            raise RefusedError(
                "ledger_unsafe",
                "the ledger must be a private file of at most 64 MiB",
                path=self.path,
                detail=shown(file.facts),
            )
        return file


class Recorder:
    """Records one act of a command, or says why it does not."""

    def __init__(self, ledger: Ledger | None, reason: str = "") -> None:
        """Make a recorder.

        Args:
            ledger: where to; None records nothing.
            reason: why nothing is recorded.
        """
        self.ledger = ledger
        self._reason = reason
        self._act: UUID | None = None
        self._complete = False

    def begin(self, command: str, subject: Mapping[str, str], evidence: str, *, anew: bool = False) -> None:
        """Write the intent, or take up one that was left open.

        Args:
            command: its name.
            subject: what it acts upon.
            evidence: hash of what was reviewed.
            anew: there is something to do, so that an earlier act that was completed is another one.

        Raises:
            RefusedError: it could not be written, so the act must not begin.
        """
        if self.ledger is None:
            return
        named = {name: plain(text) for name, text in subject.items()}
        taken: list[tuple[UUID, bool]] = []

        def decide(report: LedgerReport) -> list[tuple[str, Any]]:
            for act in reversed(report.acts):
                if (act.command, act.subject, act.evidence) == (command, named, evidence):
                    if act.outcome is None or (act.successful and not anew):
                        taken.append((act.id, act.successful))
                        return []
                    break
            new = uuid4()
            taken.append((new, False))
            return [("Intended", Intended(act=new, command=command, subject=named, evidence=evidence))]

        self.ledger.append(decide)
        # Only now: an act whose intent could not be written has no outcome either.
        self._act, self._complete = taken[-1]

    def finish(
        self,
        outcome: Ending,
        *,
        error: RecoverError | None = None,
        receipts: Mapping[str, str] | None = None,
    ) -> None:
        """Write the outcome of the act that was begun; nothing for one that is complete in the ledger already.

        Raises:
            RefusedError: `ledger_outcome_unrecorded`.
        """
        if self.ledger is None or self._act is None or self._complete:
            return
        finished = Finished(
            act=self._act,
            outcome=outcome,
            code=None if error is None else error.code,
            message=None if error is None else plain(error.message),
            receipts={plain(path): digest for path, digest in (receipts or {}).items()},
        )
        try:
            self.ledger.append(lambda _: [("Finished", finished)])
        except RecoverError as problem:
            if error is not None:
                return  # the failure itself is what the operator must hear
            raise RefusedError(
                "ledger_outcome_unrecorded",
                f"the act was carried out, but its outcome is not in the ledger: {problem.message}",
                path=self.ledger.path,
            ) from problem

    @property
    def summary(self) -> str:
        """One sentence about what the ledger holds now."""
        if self.ledger is None:
            return f"not recorded in a ledger: {self._reason}"
        if self._act is None:
            return "nothing to record in the ledger"
        return f"recorded in {self.ledger.path} as act {self._act}"


def recorder(home: str, clock: Clock, *, wanted: bool) -> Recorder:
    """The recorder for a command.

    Args:
        home: the operator's folder.
        clock: nanoseconds since 1970.
        wanted: False for `--no-ledger`.

    Raises:
        RefusedError: the operator's folder or key is unsafe.
    """
    if not wanted:
        return Recorder(None, "--no-ledger was given")
    signer = keys.find(home)
    if signer is None:
        return Recorder(None, "the operator has no key; see `symbi-recover key init`")
    return Recorder(Ledger(home, signer, clock))


def plain(text: str) -> str:
    """Text that can be written as UTF-8, of bounded length."""
    return readable(text)[:_TEXT]
