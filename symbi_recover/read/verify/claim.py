"""Judges the bytes of a claim, and what binds it to its journal (invocation.md sections 7 to 10). Pure.

In the runtime's order, which decides the fault that is reported:

1. every complete line is a record; the first is a claim and the second an audit reference;
2. the admission fits the version; scope, id, run and journal path fit what was asked for; at most one more record,
   a result;
3. the public key is 32 bytes;
4. (the journal is verified, elsewhere) its first record repeats the claim's identity, its principal is the claim's.

Nothing here opens a file. Every refusal is a `RefusedError` with the runtime's words.
"""

import hashlib

from msgspec import UNSET, Struct

from symbi_recover.core.claims import ADMISSION_LIMIT, SCOPE_LIMIT, STORE_FILE_LIMIT, ClaimRecord, Snapshot
from symbi_recover.core.errors import RefusedError
from symbi_recover.core.events import Started
from symbi_recover.core.scalars import UUID
from symbi_recover.core.values import AuditReference
from symbi_recover.core.words import counted
from symbi_recover.read.evidence.locate import GOVERNED, SYMBIONT, components, journal_name
from symbi_recover.wire import hexadecimal
from symbi_recover.wire.claim import ClaimSyntaxError, ClaimText, admission_size, equal, parse
from symbi_recover.wire.exact import parse_uuid

CLAIM_INCOMPLETE = "reconciliation requires a complete claim identity and audit reference"
EMPTY_SHA256 = hashlib.sha256().hexdigest()


class ClaimFacts(Struct, frozen=True):
    """A claim that is whole and for the invocation that was asked for."""

    claim: ClaimRecord
    reference: AuditReference
    has_result: bool
    torn: int
    """Bytes behind the last record."""
    sha256: str

    @property
    def journal(self) -> str:
        """The file name of its journal."""
        return journal_name(self.claim.agent_id, self.claim.run_id)

    @property
    def complete(self) -> bool:
        """A result is saved, and nothing follows it."""
        return self.has_result and not self.torn


def check_scope(scope: str) -> None:
    """Refuse a scope that no invocation can have."""
    if not 1 <= len(scope.encode("utf-8", "surrogateescape")) <= SCOPE_LIMIT:
        raise RefusedError("scope_invalid", "invalid invocation scope")


def read_id(text: str) -> UUID:
    """The invocation id that an operator typed, in any spelling that the runtime takes."""
    value = parse_uuid(text)
    if value is None:
        raise RefusedError("invocation_id_invalid", "invocation ID must be a UUID")
    return value


def read_claim(data: bytes, path: str) -> ClaimText:
    """Step 1, the lines alone: what the file holds, whatever it is about.

    Args:
        data: all bytes, or one more than the limit.
        path: for messages.

    Raises:
        RefusedError: `claim_too_large` or `claim_malformed`.
    """
    if len(data) > STORE_FILE_LIMIT:
        raise RefusedError("claim_too_large", "invocation claim exceeds its size limit", path=path)
    try:
        return parse(data)
    except ClaimSyntaxError as error:
        raise RefusedError(
            "claim_malformed",
            f"invalid invocation evidence: {error.message} at line {error.line + 1}, byte {error.offset}",
            path=path,
            record=error.line,
            offset=error.offset,
        ) from None


def judge_claim(data: bytes, path: str, *, project: str, scope: str, invocation_id: UUID) -> ClaimFacts:
    """Steps 1 and 2.

    Args:
        data: as for `read_claim`.
        path: of the claim, for messages.
        project: real path of the project.
        scope: that was asked for.
        invocation_id: that was asked for.

    Raises:
        RefusedError: the first fault.
    """
    text = read_claim(data, path)
    if text.claim is None or text.audit is None:
        raise RefusedError(
            "claim_incomplete",
            CLAIM_INCOMPLETE,
            path=path,
        )
    claim, reference = text.claim, text.audit.reference
    _check_admission(claim, path)
    asked = (claim.scope, claim.id) == (scope, invocation_id)
    if (
        not asked
        or reference.run_id != claim.run_id
        or not _is_own_journal(reference.path, project, claim)
        or len(text.records) > 3
        or (len(text.records) == 3 and text.result is None)
    ):
        raise RefusedError(
            "claim_identity",
            "invalid invocation evidence identity or record order",
            path=path,
            detail=_mismatch(text, claim, reference, project, asked=asked),
        )
    return ClaimFacts(claim, reference, text.result is not None, text.torn, hashlib.sha256(data).hexdigest())


def _check_admission(claim: ClaimRecord, path: str) -> None:
    fits = (claim.version == 1 and claim.admission is UNSET) or (
        claim.version == 2 and isinstance(claim.admission, dict) and admission_size(claim) <= ADMISSION_LIMIT
    )
    if not fits:
        raise RefusedError("claim_admission", "invalid invocation admission binding", path=path)


def _is_own_journal(path: str, project: str, claim: ClaimRecord) -> bool:
    own = [*components(project), SYMBIONT, GOVERNED, journal_name(claim.agent_id, claim.run_id)]
    return path.startswith("/") and components(path) == own


def _mismatch(
    text: ClaimText, claim: ClaimRecord, reference: AuditReference, project: str, *, asked: bool
) -> str:
    if not asked:
        return f"the claim is for scope {claim.scope!r} and id {claim.id}"
    if reference.run_id != claim.run_id:
        return f"the claim is for run {claim.run_id}, its journal reference for run {reference.run_id}"
    if not _is_own_journal(reference.path, project, claim):
        return f"the claim names the journal {reference.path!r}; was the project moved from there?"
    return f"the claim holds {counted(len(text.records), 'record')}, the third of which must be a result and the last"


def decode_key(reference: AuditReference, path: str) -> bytes:
    """Step 3: the 32 bytes of the public key that the claim names.

    Raises:
        RefusedError: `claim_key_invalid`.
    """
    try:
        key = hexadecimal.decode(reference.public_key)
    except hexadecimal.HexError as error:
        raise RefusedError("claim_key_invalid", str(error), path=path) from None
    if len(key) != 32:
        raise RefusedError("claim_key_invalid", "invalid invocation audit key", path=path)
    return key


def check_binding(claim: ClaimRecord, started: Started | None, path: str) -> None:
    """Step 4, the first record: `execution_context.invocation` repeats the claim, with exactly these members.

    Raises:
        RefusedError: `journal_unbound`.
    """
    expected = {"id": str(claim.id), "scope": claim.scope, "request_hash": claim.request_hash}
    if claim.admission is not UNSET:
        expected["admission"] = claim.admission
    context = started.execution_context if started is not None else None
    bound = context.get("invocation") if isinstance(context, dict) else None
    if not equal(bound, expected):
        raise RefusedError(
            "journal_unbound", "signed run does not bind the invocation claim", path=path, record=0
        )


def check_principal(claim: ClaimRecord, agent_id: UUID, path: str) -> None:
    """Step 4, the principal.

    Raises:
        RefusedError: `journal_principal`.
    """
    if claim.agent_id != agent_id:
        raise RefusedError("journal_principal", "invocation principal differs from its journal", path=path)


def make_snapshot(facts: ClaimFacts, journal_sha256: str) -> Snapshot:
    """The snapshot of a judged claim and the hash of all bytes of its journal."""
    return Snapshot(
        scope=facts.claim.scope,
        id=facts.claim.id,
        request_hash=facts.claim.request_hash,
        agent_id=facts.claim.agent_id,
        claim_sha256=facts.sha256,
        journal_sha256=journal_sha256,
        audit=facts.reference,
    )
