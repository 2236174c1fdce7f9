"""Verifies one run journal (journal.md sections 2.3, 2.4 and 8) and classifies what it says.

1. The open file must be regular and at most 64 MiB.
2. Its lines are read once, bounded by the size at open, and verified in order (`chain.py`); large journals are
   spread over worker processes (`pieces.py`), which may only say yes: on any doubt the plain way decides.
3. Bytes after the last line feed are the tail: counted, hashed, never parsed. Strict mode refuses them.
4. The file must not have changed.
5. Events are classified (`read/classify.py`).

The order of these steps decides which fault is reported, so it is the runtime's. Hints about the writer
(`hints.py`) never change the verdict.
"""

import hashlib
import io
import os
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from symbi_recover.core.events import Started
from symbi_recover.core.findings import Finding
from symbi_recover.core.refusals import JournalRefusedError, refuse
from symbi_recover.core.report import Proven, RecoveryReport
from symbi_recover.core.words import counted, noun_for
from symbi_recover.read.classify import Classified, Classifier, effect_step
from symbi_recover.read.evidence.opener import OpenedFile, examining
from symbi_recover.read.verify import pieces
from symbi_recover.read.verify.chain import Batch, Chain, Depth
from symbi_recover.read.verify.hints import Hints
from symbi_recover.wire import ed25519
from symbi_recover.wire.journal import MAX_JOURNAL, MAX_RECORD

PARALLEL_FROM = 4 << 20
"""Journals of at least this many bytes are worth worker processes."""


class VerifiedJournal(Struct, frozen=True, kw_only=True):
    """A journal whose every complete line is authentic and in its place."""

    recovery: RecoveryReport
    started: Started | None
    """The first record's event, if it is a run start."""
    proven: Proven
    tail: bytes
    sha256: str | None
    hash_at: str | None
    """The line hash of the record that was asked for; None if there is no such record."""
    findings: tuple[Finding, ...]


def verify(
    file: OpenedFile,
    public_key: bytes,
    *,
    run_id: UUID | None,
    strict: bool = False,
    want_digest: bool = False,
    depth: Depth = "full",
    workers: int = 1,
    hash_at: int | None = None,
) -> VerifiedJournal:
    """Verify and classify an open journal.

    Args:
        file: the journal, opened by `read/evidence/opener.py`.
        public_key: 32 bytes.
        run_id: the run that is asked for; None takes the first record's, version 1 included.
        strict: refuse a tail.
        want_digest: also hash the whole file.
        depth: `anchored` checks one signature and all links.
        workers: processes to spread a large journal over.
        hash_at: a record whose line hash is wanted; the plain way is taken.

    Raises:
        JournalRefusedError: the first fault, in the runtime's order.
        UnexaminedError: the file cannot be read.
    """
    if not ed25519.is_point(public_key):
        raise refuse("key_not_a_point", "the public key is not a point on the curve")
    if ed25519.is_weak(public_key):
        raise refuse("key_weak", "the public key has small order: anybody can sign under it")
    if file.facts.kind != "file" or file.facts.size > MAX_JOURNAL:
        raise refuse(
            "journal_kind",
            f"it is a {file.facts.kind} of {counted(file.facts.size, 'byte')}",
            path=file.path,
        )
    run = None
    try:
        if workers > 1 and depth == "full" and hash_at is None and file.facts.size >= PARALLEL_FROM:
            run = _spread(file, Chain(public_key, run_id, depth), workers, want_digest=want_digest)
        if run is None:
            run = _Run(file, Chain(public_key, run_id, depth), want_digest=want_digest)
            run.chain.watched = hash_at
            run.read_through()
        return run.conclude(strict=strict)
    except JournalRefusedError as error:
        located = error.become(replace(error.finding, path=file.path))
        if run is not None and (proven := run.proven()) is not None:
            located.proven, located.run_id = proven, run.chain.run
        raise located from None


def _spread(file: OpenedFile, chain: Chain, workers: int, *, want_digest: bool) -> "_Run | None":
    """The parallel way; None if anything at all is in doubt."""
    run = _Run(file, chain, want_digest=want_digest)
    try:
        with pieces.working(file, chain, workers) as batches:
            if run.digest is not None:
                for block in file.blocks(0, file.facts.size):
                    run.digest.update(block)
            for batch in batches:
                run.absorb(batch)
    except pieces.Doubt:
        return None
    with examining(file.path):
        run.tail = os.pread(file.descriptor, MAX_RECORD + 1, chain.offset)
    if len(run.tail) > MAX_RECORD or b"\n" in run.tail:
        return None
    run.read = chain.offset + len(run.tail)
    return run


class _Run:
    """One pass over one journal."""

    def __init__(self, file: OpenedFile, chain: Chain, *, want_digest: bool) -> None:
        self.file = file
        self.chain = chain
        self.classifier = Classifier()
        self.hints = Hints(file.path)
        self.digest = hashlib.sha256() if want_digest else None
        self.tail = b""
        self.read = 0
        self.started: Started | None = None
        self.first_time = ""

    def read_through(self) -> None:
        """The plain way: one block after another."""
        rest = b""
        for block in self.file.blocks(0, self.file.facts.size):
            self.read += len(block)
            if self.digest is not None:
                self.digest.update(block)
            lines = io.BytesIO(rest + block).readlines()
            rest = b"" if lines[-1].endswith(b"\n") else lines.pop()
            long = next((index for index, line in enumerate(lines) if len(line) > MAX_RECORD), None)
            self.absorb(self.chain.take(lines[:long]))
            if long is not None or len(rest) > MAX_RECORD:
                raise self._oversized(rest if long is None else lines[long])
        self.tail = rest

    def absorb(self, batch: Batch) -> None:
        """Take over what some lines said."""
        self.first_time = self.first_time or batch.first_time
        self.hints.note(batch)
        principal = self.chain.principal
        if principal is None:
            return
        for sequence, iteration, event in batch.events:
            if sequence == 0 and isinstance(event, Started):
                self.started = event
            step = effect_step(event)
            self.classifier.take(sequence, iteration, principal, event, step)
            self.hints.take(sequence, iteration, event, step)

    def conclude(self, *, strict: bool) -> VerifiedJournal:
        """Steps 3 to 5, after all lines."""
        chain, tail = self.chain, len(self.tail)
        if tail and strict:
            raise refuse(
                "record_incomplete",
                f"the last {counted(tail, 'byte')} {noun_for(tail, 'is', 'are')} an incomplete record",
                record=chain.count,
                start=chain.offset,
                end=chain.offset + tail,
            )
        if chain.count == 0 or chain.principal is None:
            raise refuse("journal_empty", f"{counted(tail, 'byte')}, no complete record", start=0, end=tail)
        chain.check_head()
        if self.read != self.file.facts.size or not self.file.unchanged():
            raise refuse("journal_changed", "size or times differ from those at open")
        classified = self.classifier.finish(chain.count)
        proven = self.proven()
        assert proven is not None  # noqa: S101 -- there are records
        return VerifiedJournal(
            recovery=_report(chain, classified, tail),
            started=self.started,
            proven=proven,
            tail=self.tail,
            sha256=self.digest.hexdigest() if self.digest else None,
            hash_at=chain.watched_hash,
            findings=self.hints.findings(chain.principal, chain.run, self.tail),
        )

    def proven(self) -> Proven | None:
        """What holds so far; None if nothing does, or only with a head that is not yet checked."""
        chain = self.chain
        if not chain.count or not (chain.check_each or chain.head_checked):
            return None
        return Proven(
            first_sequence=0,
            last_sequence=chain.count - 1,
            bytes=chain.offset,
            head_hash=chain.previous_hash,
            depth="full" if chain.check_each else "anchored",
            first_time=self.first_time or chain.first_time,
            last_time=chain.last_time,
        )

    def _oversized(self, piece: bytes) -> Exception:
        return refuse(
            "record_oversized",
            f"a line longer than {MAX_RECORD} bytes",
            record=self.chain.count,
            start=self.chain.offset,
            end=self.chain.offset + len(piece),
        )


def _report(chain: Chain, classified: Classified, tail: int) -> RecoveryReport:
    """Section 14.1. `run_id` is nil for a version 1 journal, which has none."""
    complete = classified.complete(tail)
    unknown = any(effect.outcome == "unknown" for effect in classified.effects)
    assert chain.principal is not None  # noqa: S101 -- a chain with records has a principal
    return RecoveryReport(
        run_id=chain.run or UUID(int=0),
        agent_id=chain.principal,
        verified_records=chain.count,
        verified_bytes=chain.offset,
        unverified_tail_bytes=tail,
        journal_complete=complete,
        terminal_reason=classified.reason,
        requires_reconciliation=not complete or classified.untracked != 0 or unknown,
        untracked_tool_approvals=classified.untracked,
        effects=classified.effects,
        warnings=classified.warnings(tail),
        recovered_budget=classified.budget,
    )
