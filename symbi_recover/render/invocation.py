"""One invocation, and one publication, for people: verdict first, last what to do next."""

from symbi_recover.core.claims import (
    FileRecovery,
    Inspection,
    NameEvidence,
    PublicationEvidence,
    PublicationState,
    Resolution,
    Review,
    Status,
    Verdict,
)
from symbi_recover.core.codes import CODES
from symbi_recover.core.words import counted
from symbi_recover.render.colour import Painter
from symbi_recover.render.safe import safe

_TEXT = 400
_STATUS = {
    Status.RECORDED: ("good", "RECORDED", "the result is saved and the journal needs no decision"),
    Status.UNRESOLVED: ("attention", "UNRESOLVED", "what happened is not certain; someone must decide"),
    Status.RECONCILED: ("good", "RECONCILED", "an operator signed what happened"),
}
_STATES = {
    PublicationState.READY: ("attention", "READY TO PUBLISH"),
    PublicationState.PUBLISHED: ("good", "PUBLISHED"),
    PublicationState.MISSING: ("attention", "MISSING"),
    PublicationState.CONFLICT: ("attention", "CONFLICT"),
    PublicationState.IDENTITY_UNCONFIRMED: ("attention", "IDENTITY CANNOT BE CONFIRMED"),
}
_MEANING = {
    PublicationState.READY: CODES["publication_ready"].meaning,
    PublicationState.PUBLISHED: "The file has its final name, and identity and content are as promised.",
    PublicationState.MISSING: CODES["publication_missing"].meaning,
    PublicationState.CONFLICT: CODES["publication_conflict"].meaning,
    PublicationState.IDENTITY_UNCONFIRMED: CODES["publication_identity_unconfirmed"].meaning,
}


def header(inspection: Inspection, paint: Painter) -> list[str]:
    """The verdict on an invocation and what identifies it; the journal's own report follows it."""
    style, word, meaning = _STATUS[inspection.status]
    snapshot = inspection.snapshot
    lines = [
        f"{paint(style, word)}  {safe(snapshot.scope, _TEXT)} {snapshot.id}: {meaning}",
        f"  request {safe(snapshot.request_hash, 120)}",
        f"  claim   sha256:{snapshot.claim_sha256}, "
        + ("with a saved result" if inspection.claim_complete else "without a durably saved result"),
        f"  snapshot hash to review: {inspection.snapshot_hash}",
    ]
    if inspection.resolution is not None:
        lines += ["", *resolution(inspection.resolution, paint)]
    return lines


def resolution(payload: Resolution, paint: Painter) -> list[str]:
    """A verified resolution: who, when, what was attested, and what that does not prove."""
    return [
        paint("strong", "Operator's resolution, signature verified"),
        f"  by user {payload.operator_uid} at {safe(payload.recorded_at)} (as the signer claims)",
        *_review(payload.review),
        "  This is a person's statement. It does not prove that the evidence named was looked at, nor that the "
        "effects are as stated.",
    ]


def _review(review: Review) -> list[str]:
    stopped = "yes" if review.effects_stopped else "no"
    return [
        f"  outcome {review.outcome}; effects stopped, as attested: {stopped}",
        f"  rationale: {safe(review.rationale, _TEXT)}",
        *(f"  evidence: {safe(item.reference, 200)} sha256:{safe(item.sha256)}" for item in review.evidence),
    ]


def recovery_receipt(payload: FileRecovery, paint: Painter) -> list[str]:
    """A verified publication receipt."""
    return [
        paint("strong", "Publication receipt, signature verified"),
        f"  by user {payload.operator_uid} at {safe(payload.recorded_at)} (as the signer claims)",
        f"  {safe(payload.publication.path, 200)}, {counted(payload.publication.bytes, 'byte')}, "
        f"sha256:{safe(payload.publication.sha256)}",
        "  It says that the file was in place then. It does not prove that it still is, nor that the invocation "
        "is complete.",
    ]


def publication(
    evidence: PublicationEvidence,
    receipt: FileRecovery | None,
    next_step: str,
    paint: Painter,
) -> list[str]:
    """A publication that has a state."""
    state = evidence.state
    assert state is not None  # noqa: S101 -- without one there is only a failure to show
    style, word = _STATES[state]
    intent = evidence.intent
    lines = [
        f"{paint(style, word)}  {safe(intent.parent_path)}/{safe(intent.target_name)}",
        f"  {_MEANING[state]}",
        f"  publication {intent.publication_id}, promised {counted(intent.bytes, 'byte')}, sha256:{safe(intent.sha256)}",
        *names(evidence),
    ]
    if receipt is not None:
        lines += ["", *recovery_receipt(receipt, paint)]
    return [*lines, "", f"Verdict {word.lower()}. Next: {next_step}"]


def names(evidence: PublicationEvidence) -> list[str]:
    """What lies at the folder, the candidate's and the target's name, beside what was recorded."""
    intent = evidence.intent
    rows = (
        ("folder", evidence.parent, intent.parent_identity),
        ("candidate", evidence.candidate, intent.candidate_identity),
        ("target", evidence.target, intent.candidate_identity),
    )
    return [
        f"  {label + ':':10} {_name(name, identity)}" for label, name, identity in rows if name is not None
    ]


def _name(name: NameEvidence, identity: tuple[int, int]) -> str:
    if name.verdict is Verdict.ABSENT:
        return f"{safe(name.name, 200)} is not there"
    text = (
        f"{safe(name.name, 200)} is a {name.kind or 'file'}, device {name.device}, inode {name.inode} "
        f"(recorded {identity[0]}, {identity[1]})"
    )
    if name.verdict is Verdict.MATCH:
        return f"{text}, as promised"
    if name.error is not None:
        return f"{text}: {safe(name.error)}"
    content = "; its content is as promised" if name.content_equal else ""
    shown = (
        f"user {name.uid}, mode {name.mode:04o}, {counted(name.links or 0, 'link')}, {counted(name.bytes or 0, 'byte')}"
        if name.uid is not None and name.mode is not None
        else ""
    )
    return f"{text}; differs in {', '.join(name.differs)} ({shown}){content}"
