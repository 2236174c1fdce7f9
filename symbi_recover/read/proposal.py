"""Says what a reconciliation or a recovery would do, from what can be read; nothing is locked or changed."""

from collections.abc import Sequence

from msgspec.structs import replace

from symbi_recover.core.claims import SCHEDULER_SCOPE, Inspection, PublicationState, Review, Status
from symbi_recover.core.errors import RecoverError
from symbi_recover.core.plan import Plan
from symbi_recover.core.report import RecoveryReport
from symbi_recover.core.words import counted, noun_for
from symbi_recover.read.evidence.locate import resolution_name
from symbi_recover.read.evidence.store import InvocationStore
from symbi_recover.read.publication import FileInspection
from symbi_recover.read.verify.publication import judge_publication
from symbi_recover.wire.review import broken_rule


def publication_warnings(recovery: RecoveryReport | None) -> tuple[str, ...]:
    """The publications that can still be finished and that a resolution would make impossible, in words.

    Args:
        recovery: of the journal, None for an empty one.
    """
    publications = () if recovery is None else recovery.publications
    return tuple(
        f"publication {intent.publication_id} of {intent.path} is ready to be finished; "
        "after a resolution it cannot be recovered any more"
        for intent in (publication.intent for publication in publications)
        if judge_publication(intent).runtime_state is PublicationState.READY
    )


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
    warnings = [*publication_warnings(inspection.recovery)]
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
    resolved: bool,
    held: Sequence[str] = (),
) -> Plan:
    """The plan for `invocation file-recover`.

    Args:
        store: open store of the project.
        inspection: of the publication.
        consent: the command line with the hash.
        resolved: whether a resolution receipt is there.
        held: what lies in the holding folder of an interrupted recovery.
    """
    evidence, intent = inspection.evidence, inspection.publication.intent
    target = f"{intent.parent_path}/{intent.target_name}"
    state = inspection.printed_state
    steps, missing = [], []
    if held:
        steps.append(f"put the candidate back from the holding folder of an interrupted recovery ({held[0]})")
    if state is PublicationState.READY or held:
        steps.append(f"give {intent.candidate_name} the name {target}, replacing nothing")
    elif state is PublicationState.PUBLISHED:
        steps.append(f"acknowledge that {target} is in place")
    else:
        missing.append(f"the state is {state}; only ready_to_publish and published can be recovered")
    if inspection.receipt is not None:
        steps = ["nothing: there is a receipt, which would be shown again"]
    elif steps:
        steps.append(f"sign and publish a receipt in {store.path}")
    if inspection.failure is not None:
        missing.append(inspection.failure.message)
    if evidence.status is Status.RECORDED and inspection.receipt is None:
        missing.append("the invocation has a recorded result")
    if resolved and inspection.receipt is None:
        missing.append("an operator has resolved the invocation")
    return Plan(
        command="invocation file-recover",
        subject={
            "project": store.project,
            "scope": evidence.snapshot.scope,
            "id": str(evidence.snapshot.id),
            "publication": str(intent.publication_id),
        },
        evidence=evidence.snapshot_hash,
        steps=tuple(steps),
        missing=tuple(missing),
        consent=None if missing else consent,
    )


def without_evidence(command: str, subject: dict[str, str], error: RecoverError, missing: str) -> Plan:
    """The plan where the evidence could not be examined."""
    return Plan(command=command, subject=subject, evidence=None, missing=(missing, error.message))
