"""Inspects one journal and says everything about it in one Report: the public face of journal verification.

It opens the file, verifies and classifies it, and adds what an operator must know: unknown effects, an incomplete run,
what the end hangs on, and what was not checked. A refused journal gives a Report as well, with the refusal as its
finding; only a file that could not be examined raises.
"""

from uuid import UUID

from msgspec import Struct

from symbi_recover.core.codes import finding
from symbi_recover.core.errors import UnexaminedError
from symbi_recover.core.events import Started
from symbi_recover.core.exits import Exit
from symbi_recover.core.findings import Finding, NotChecked, Severity
from symbi_recover.core.refusals import JournalRefusedError, unexamined
from symbi_recover.core.report import (
    DelegationIdentity,
    FilePublicationIdentity,
    JournalReport,
    KeyUsed,
    RecoveryReport,
    SharedInferenceIdentity,
)
from symbi_recover.core.words import counted
from symbi_recover.read.evidence.opener import OpenedFile
from symbi_recover.read.verify.chain import Depth
from symbi_recover.read.verify.diagnosis import refine
from symbi_recover.read.verify.journal import VerifiedJournal, verify
from symbi_recover.wire import ed25519
from symbi_recover.wire.exact import parse_uuid
from symbi_recover.wire.journal import MAX_RECORD, SignatureFormError, envelope
from symbi_recover.wire.strictjson import JsonError
from symbi_recover.wire.timestamp import earlier


class ExpectedHead(Struct, frozen=True):
    """A record hash known from elsewhere."""

    sequence: int
    hash: str
    """64 lower-case hex digits."""


class Question(Struct, frozen=True, kw_only=True):
    """What is asked of a journal."""

    run_id: UUID | None = None
    strict: bool = False
    depth: Depth = "full"
    expected_head: ExpectedHead | None = None
    require_anchor: bool = False
    want_digest: bool = False
    workers: int = 1
    now: str | None = None
    """The present moment in the runtime's form, to compare signed times with."""


class Inspection(Struct, frozen=True):
    """A report, its verdict, and the refusal if there was one."""

    report: JournalReport
    verdict: Exit
    refusal: JournalRefusedError | None = None
    invocation: tuple[str, UUID] | None = None
    """Scope and id of the invocation that the signed start of the run names; None if it names none."""


def inspect(path: str, question: Question, keys: list[KeyUsed]) -> Inspection:
    """Inspect the journal at `path`; of several keys, the one that signed its first record decides.

    Raises:
        UnexaminedError: `not_verified`, without a key; the file is missing, a link, or unreadable; of a strict
            question also `journal_kind` and `journal_changed`, which the runtime refuses.
    """
    if not keys:
        raise UnexaminedError("not_verified", "no key was given, so nothing was verified", path=path)
    with OpenedFile.open(path) as file:
        key = keys[0] if len(keys) == 1 else _signer(file, keys)
        try:
            verified = verify(
                file,
                bytes.fromhex(key.public_key),
                run_id=question.run_id,
                strict=question.strict,
                want_digest=question.want_digest,
                depth=question.depth,
                workers=question.workers,
                hash_at=question.expected_head.sequence if question.expected_head else None,
            )
        except JournalRefusedError as error:
            if question.strict and error.code in ("journal_kind", "journal_changed"):
                raise unexamined(error) from error
            refined = refine(error, file)
            return Inspection(_refused(path, question, key, refined), Exit.REFUSED, refined)
    findings = (
        *_attention(path, verified),
        *_anchor(path, question, key, verified),
        *_times(path, question, verified),
    )
    report = JournalReport(
        journal=path,
        run_id=question.run_id or verified.recovery.run_id,
        key=key,
        proven=verified.proven,
        sha256=verified.sha256,
        recovery=verified.recovery,
        findings=(*findings, *verified.findings),
        not_checked=_not_checked(question, verified),
    )
    return Inspection(report, _verdict(question, report), invocation=_invocation(verified.started))


def _invocation(started: Started | None) -> tuple[str, UUID] | None:
    context = started.execution_context if started is not None else None
    named = context.get("invocation") if isinstance(context, dict) else None
    if not isinstance(named, dict):
        return None
    scope, text = named.get("scope"), named.get("id")
    if not isinstance(scope, str) or not isinstance(text, str):
        return None
    value = parse_uuid(text)
    return None if value is None else (scope, value)


def _signer(file: OpenedFile, keys: list[KeyUsed]) -> KeyUsed:
    first = b"".join(file.blocks(0, min(file.facts.size, MAX_RECORD)))
    try:
        payload, signature, _ = envelope(first[: first.find(b"\n") + 1])
    except (JsonError, SignatureFormError):
        return keys[0]
    signers = (key for key in keys if ed25519.verify(bytes.fromhex(key.public_key), payload, signature))
    return next(signers, keys[0])


def _refused(path: str, question: Question, key: KeyUsed, error: JournalRefusedError) -> JournalReport:
    return JournalReport(
        journal=path,
        run_id=question.run_id or error.run_id,
        key=key,
        proven=error.proven,
        findings=(error.finding,),
        not_checked=(_after(error.finding),),
    )


def _after(found: Finding) -> NotChecked:
    if found.record is None and found.start is None:
        return NotChecked("the journal", "it was refused before anything in it was read")
    return NotChecked("everything after the place named", "the first fault ends the verification")


def _verdict(question: Question, report: JournalReport) -> Exit:
    """Strict questions also refuse what the runtime's writer would not have laid out."""
    codes = {found.code for found in report.findings}
    if any(found.severity is Severity.REFUSED for found in report.findings):
        return Exit.REFUSED
    if question.strict and codes & {"layout_not_writers", "not_canonical"}:
        return Exit.REFUSED
    if report.recovery is None or report.recovery.requires_reconciliation:
        return Exit.ATTENTION
    if question.strict and "not_authenticated" in codes:
        return Exit.ATTENTION
    return Exit.OK


def _attention(path: str, verified: VerifiedJournal) -> list[Finding]:
    recovery = verified.recovery
    found = []
    if not recovery.journal_complete:
        found.append(finding("run_incomplete", "the run is not evidenced from start to end", path=path))
    if verified.tail:
        found.append(
            finding(
                "tail_unauthenticated",
                f"{counted(len(verified.tail), 'byte')} after the last complete record",
                path=path,
                start=recovery.verified_bytes,
                end=recovery.verified_bytes + len(verified.tail),
            )
        )
    unknown = recovery.unknown_effects
    if unknown:
        found.append(
            finding(
                "effects_unknown",
                f"{len(unknown):,} of {counted(len(recovery.effects), 'effect')}",
                path=path,
                record=unknown[0].start_sequence,
                sequence=unknown[0].start_sequence,
            )
        )
    if recovery.untracked_tool_approvals:
        found.append(
            finding("approvals_untracked", f"{recovery.untracked_tool_approvals:,} approvals", path=path)
        )
    return found


def _anchor(path: str, question: Question, key: KeyUsed, verified: VerifiedJournal) -> list[Finding]:
    found = []
    if key.source == "evidence":
        found.append(finding("not_authenticated", "the key was found beside the evidence", path=path))
    expected = question.expected_head
    if expected is None:
        code = "anchor_required" if question.require_anchor else "head_not_anchored"
        if question.require_anchor or question.strict:
            found.append(finding(code, f"it ends with record {verified.proven.last_sequence}", path=path))
    elif verified.hash_at != expected.hash:
        found.append(
            finding(
                "head_mismatch",
                f"record {expected.sequence} is {'missing' if verified.hash_at is None else 'another one'}",
                path=path,
                record=expected.sequence,
                sequence=expected.sequence,
                expected=expected.hash,
                actual=verified.hash_at or f"the journal ends with record {verified.proven.last_sequence}",
            )
        )
    return found


def _times(path: str, question: Question, verified: VerifiedJournal) -> list[Finding]:
    last = verified.proven.last_time
    if question.now is None or not earlier(question.now, last):
        return []
    return [
        finding(
            "time_in_future",
            "the last record is dated later than now",
            path=path,
            record=verified.proven.last_sequence,
            expected=f"not after {question.now}",
            actual=last,
        )
    ]


def _not_checked(question: Question, verified: VerifiedJournal) -> tuple[NotChecked, ...]:
    left_out = []
    if question.expected_head is None:
        left_out.append(
            NotChecked(
                "the end of the journal",
                "a journal cut at the end of a record verifies like one that was interrupted there; "
                "only a hash kept elsewhere shows it",
            )
        )
    left_out.append(NotChecked("who holds the signing key", "whoever holds it can write another history"))
    if _mentions_others(verified.recovery):
        left_out.append(
            NotChecked(
                "other journals and files that the records name", "paths found in evidence are not opened"
            )
        )
    if question.depth == "anchored":
        left_out.append(
            NotChecked("each record's own signature", "the last one covers them through the hash links")
        )
    return tuple(left_out)


def _mentions_others(recovery: RecoveryReport) -> bool:
    naming = DelegationIdentity, FilePublicationIdentity, SharedInferenceIdentity
    return any(isinstance(effect.identity, naming) for effect in recovery.effects)
