"""Says what a reconciliation or a recovery would do, from what can be read; nothing is locked or changed."""

from collections.abc import Iterator

from msgspec.structs import replace

from symbi_recover.core.claims import (
    SCHEDULER_SCOPE,
    Inspection,
    PublicationEvidence,
    PublicationState,
    Review,
    Snapshot,
    Status,
)
from symbi_recover.core.errors import RecoverError
from symbi_recover.core.plan import Plan
from symbi_recover.core.report import RecoveryReport
from symbi_recover.core.words import counted, noun_for
from symbi_recover.read.evidence.locate import publication_name, resolution_name
from symbi_recover.read.evidence.store import InvocationStore
from symbi_recover.read.publication import FileInspection, is_at_stake
from symbi_recover.read.verify.publication import judge_publication
from symbi_recover.wire.review import broken_rule


def publication_warnings(
    store: InvocationStore, snapshot: Snapshot, recovery: RecoveryReport | None
) -> tuple[str, ...]:
    """The publications whose file may still be there, and which a resolution would give up for good, in words.

    Args:
        store: open store of the project.
        snapshot: of the invocation.
        recovery: of the journal, None for an empty one.
    """
    publications = () if recovery is None else recovery.publications
    open_ones = (
        publication.intent
        for publication in publications
        if not publication.finished
        and not store.has(publication_name(snapshot.scope, snapshot.id, publication.intent.publication_id))
    )
    return tuple(
        f"publication {judged.intent.publication_id} of {judged.intent.path} {_standing(judged)}; "
        "after a resolution it cannot be recovered any more"
        for judged in map(judge_publication, open_ones)
        if is_at_stake(judged)
    )


def _standing(judged: PublicationEvidence) -> str:
    if judged.runtime_state is PublicationState.READY:
        return "is ready to be finished"
    if judged.candidate is None and judged.target is None:
        why = "" if judged.failure is None else f" ({judged.failure.message})"
        return f"cannot be looked at{why}"
    state = judged.state or (judged.failure.message if judged.failure is not None else "unknown")
    return f"is not in place ({state}), but the promised file may still be there"


def reconciliation(store: InvocationStore, inspection: Inspection, review: Review, consent: str) -> Plan:
    """The plan for `invocation reconcile` with a review that is perhaps not complete."""
    snapshot = inspection.snapshot
    missing = []
    if not review.effects_stopped:
        missing.append("set effects_stopped to true by hand, once you have made sure that nothing goes on")
    broken = broken_rule(replace(review, effects_stopped=True))
    if broken is not None:
        missing.append(f"in the review: {broken}")
    if review.snapshot_hash != inspection.snapshot_hash:
        missing.append(
            f"the review is for {review.snapshot_hash}, the evidence is {inspection.snapshot_hash}"
        )
    if inspection.status is not Status.UNRESOLVED:
        missing.append(f"the invocation is {inspection.status}")
    unknown = 0 if inspection.recovery is None else len(inspection.recovery.unknown_effects)
    warnings = [*publication_warnings(store, snapshot, inspection.recovery)]
    if unknown:
        warnings.append(
            f"{counted(unknown, 'effect')} {noun_for(unknown, 'has', 'have')} no signed outcome; "
            "see `invocation inspect`"
        )
    return Plan(
        command="invocation reconcile",
        subject={"project": store.project, "scope": snapshot.scope, "id": str(snapshot.id)},
        evidence=inspection.snapshot_hash,
        steps=(
            f"sign the outcome {review.outcome!r} with the project's key",
            f"publish {store.path}/{resolution_name(snapshot.scope, snapshot.id)}",
            *(
                ("mark the occurrence reconciled in the schedule database, and pause its job",)
                if snapshot.scope == SCHEDULER_SCOPE
                else ()
            ),
        ),
        missing=tuple(missing),
        warnings=tuple(warnings),
        consent=consent,
    )


def recovery(
    store: InvocationStore,
    inspection: FileInspection,
    consent: str,
    *,
    held: str | None,
) -> Plan:
    """The plan for `invocation file-recover`.

    Args:
        store: open store of the project.
        inspection: of the publication.
        consent: the command line with the hash.
        held: where an interrupted recovery left the candidate, None if it is not there.
    """
    evidence, intent = inspection.evidence, inspection.publication.intent
    target = f"{intent.parent_path}/{intent.target_name}"
    steps = []
    missing = list(_missing(inspection, held))
    if inspection.receipt is not None:
        steps.append("nothing: there is a receipt, which would be shown again")
    else:
        if held is not None:
            steps.append(
                f"put the candidate back from the holding folder of an interrupted recovery ({held})"
            )
        if inspection.publication.runtime_state is PublicationState.PUBLISHED:
            steps.append(f"acknowledge that {target} is in place")
        else:
            steps.append(f"give {intent.candidate_name} the name {target}, replacing nothing")
        steps.append(f"sign and publish a receipt in {store.path}")
    return Plan(
        command="invocation file-recover",
        subject={
            "project": store.project,
            "scope": evidence.snapshot.scope,
            "id": str(evidence.snapshot.id),
            "publication": str(intent.publication_id),
        },
        evidence=evidence.snapshot_hash,
        steps=() if missing else tuple(steps),
        missing=tuple(missing),
        consent=None if missing else consent,
    )


def _missing(inspection: FileInspection, held: str | None) -> Iterator[str]:
    """What `invocation file-recover` would be refused for."""
    state = inspection.printed_state
    if inspection.failure is not None:
        yield inspection.failure.message
    elif inspection.receipt is not None:
        if state is not PublicationState.PUBLISHED:
            yield f"the file was recovered before, and its state is {state} now"
    elif state not in (PublicationState.READY, PublicationState.PUBLISHED) and held is None:
        yield f"the state is {state}; only ready_to_publish and published can be recovered"
    if inspection.receipt is None:
        if inspection.evidence.status is Status.RECORDED:
            yield "the invocation has a recorded result"
        if inspection.resolved:
            yield "an operator has resolved the invocation"


def without_evidence(command: str, subject: dict[str, str], error: RecoverError, missing: str) -> Plan:
    """The plan where the evidence could not be examined."""
    return Plan(command=command, subject=subject, evidence=None, missing=(missing, error.message))
