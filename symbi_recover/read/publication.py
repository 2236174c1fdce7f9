"""Inspects one file publication of an invocation (publication.md sections 3, 7 and 8).

1. examine the invocation (`read/invocation.py`, steps 1, 2 and 4); 2. find the signed intent; 3. judge what lies on
disk; 4. read and verify the publication receipt, also where the runtime would have failed before it got there.
"""

from msgspec import Struct

from symbi_recover.core.claims import (
    STORE_FILE_LIMIT,
    FileRecovery,
    NameEvidence,
    PublicationEvidence,
    PublicationState,
)
from symbi_recover.core.codes import finding
from symbi_recover.core.errors import RecoverError, RefusedError
from symbi_recover.core.findings import Finding
from symbi_recover.core.report import RecoveryReport
from symbi_recover.core.scalars import UUID
from symbi_recover.core.values import PublicationIntent
from symbi_recover.core.words import counted
from symbi_recover.read.evidence.locate import publication_name, resolution_name
from symbi_recover.read.evidence.store import InvocationStore
from symbi_recover.read.invocation import Evidence, examine
from symbi_recover.read.trust import Trusted
from symbi_recover.read.verify.publication import judge_publication
from symbi_recover.read.verify.receipt import verify_publication_receipt
from symbi_recover.wire.exact import parse_uuid
from symbi_recover.wire.receipt import stored_as_written


class FileInspection(Struct, frozen=True, kw_only=True):
    """What is known of one publication."""

    evidence: Evidence
    publication: PublicationEvidence
    receipt: FileRecovery | None
    failure: RecoverError | None
    """What ends the runtime's command, and ours, unless we have a state of our own for it."""
    resolved: bool
    """A resolution receipt of the invocation is there, valid or not; nothing can be recovered beside it."""
    findings: tuple[Finding, ...]

    @property
    def finished(self) -> bool:
        """Whether the run itself signed that the file was published."""
        recovery, wanted = self.evidence.recovery, self.publication.intent.publication_id
        publications = () if recovery is None else recovery.publications
        return any(one.finished and one.intent.publication_id == wanted for one in publications)

    @property
    def printed_state(self) -> PublicationState | None:
        """The runtime's word where it has one, ours where its command fails."""
        return self.publication.runtime_state or self.publication.state


def read_publication_id(text: str) -> UUID:
    """The publication id that an operator typed, in any spelling that the runtime takes."""
    value = parse_uuid(text)
    if value is None:
        raise RefusedError("publication_id_invalid", "publication ID must be a UUID")
    return value


def find_intent(recovery: RecoveryReport | None, publication_id: UUID) -> PublicationIntent:
    """The first signed intent with this id, in the order of effects.

    Args:
        recovery: of the journal, None for an empty one.
        publication_id: asked for.

    Raises:
        RefusedError: `publication_no_effects` or `publication_unknown`.
    """
    if recovery is None:
        raise RefusedError("publication_no_effects", "invocation has no signed effects")
    intents = _intents(recovery, publication_id)
    if not intents:
        raise RefusedError("publication_unknown", "publication is not in the authenticated invocation")
    return intents[0]


def is_acknowledged(store: InvocationStore, evidence: Evidence, intent: PublicationIntent) -> bool:
    """Whether a publication receipt is there that holds."""
    try:
        return read_publication_receipt(store, evidence, intent)[0] is not None
    except RecoverError:
        return False


def is_at_stake(publication: PublicationEvidence) -> bool:
    """Whether the promised file is not in place, but may still be there to be published.

    True as well for one that an interrupted recovery holds aside, and where nothing can be looked at.
    """
    if publication.runtime_state is PublicationState.PUBLISHED:
        return False
    if any(found.code == "publication_held" for found in publication.findings):
        return True
    names = [name for name in (publication.candidate, publication.target) if name is not None]
    return not names or any(_may_be_it(name, publication.intent) for name in names)


def _may_be_it(name: NameEvidence, intent: PublicationIntent) -> bool:
    unread = name.sha256 is None and name.bytes == intent.bytes
    return name.content_equal or (unread and (name.device, name.inode) == intent.candidate_identity)


def _intents(recovery: RecoveryReport, publication_id: UUID) -> list[PublicationIntent]:
    intents = (publication.intent for publication in recovery.publications)
    return [intent for intent in intents if intent.publication_id == publication_id]


def read_publication_receipt(
    store: InvocationStore, evidence: Evidence, intent: PublicationIntent
) -> tuple[FileRecovery | None, tuple[Finding, ...]]:
    """The verified publication receipt, None if there is none; and what is odd about it.

    Raises:
        RecoverError: a receipt is there and does not hold.
    """
    name = publication_name(evidence.snapshot.scope, evidence.snapshot.id, intent.publication_id)
    if not store.has(name):
        return None, ()
    with store.open_entry(name) as file:
        data = file.read(STORE_FILE_LIMIT)
        receipt = verify_publication_receipt(
            data, evidence.public_key, evidence.snapshot_hash, intent, file.path
        )
    odd: tuple[Finding, ...] = ()
    if not stored_as_written(data, receipt):
        odd = (finding("receipt_respelled", "the file is spelled differently", path=file.path),)
    return receipt.payload, odd


def inspect_file(
    store: InvocationStore,
    scope: str,
    invocation_id: UUID,
    publication_id: UUID,
    *,
    owner_check: bool = True,
    trusted: Trusted | None = None,
) -> FileInspection:
    """Inspect a publication as the runtime's `invocation file-inspect` does; arguments as for `examine`.

    Raises:
        RecoverError: the invocation cannot be examined, or has no such publication.
    """
    evidence = examine(store, scope, invocation_id, owner_check=owner_check, trusted=trusted)
    intent = find_intent(evidence.recovery, publication_id)
    publication = judge_publication(intent)
    failure: RecoverError | None = None
    if publication.state is None and publication.failure is not None:
        failed = publication.failure
        failure = RefusedError(failed.code, failed.message, path=failed.path)
    receipt, findings = None, publication.findings
    if evidence.recovery is not None and len(_intents(evidence.recovery, publication_id)) > 1:
        findings = (*findings, finding("publication_repeated", f"the first of several {publication_id}"))
    try:
        receipt, odd = read_publication_receipt(store, evidence, intent)
        findings = (*findings, *odd)
        if receipt is not None and publication.failure is not None:
            findings = (*findings, _hidden(receipt))
    except RecoverError as error:
        failure = failure or error
    return FileInspection(
        evidence=evidence,
        publication=publication,
        receipt=receipt,
        failure=failure,
        resolved=store.has(resolution_name(scope, invocation_id)),
        findings=findings,
    )


def _hidden(receipt: FileRecovery) -> Finding:
    return finding(
        "receipt_hidden",
        f"recovered by user {receipt.operator_uid} at {receipt.recorded_at}, "
        f"{counted(receipt.publication.bytes, 'byte')} with SHA-256 {receipt.publication.sha256}",
    )
