"""What the operator's writing commands print; members in the order of the documents.

`ReconciledInvocation` and `RecoveredPublication` are the runtime's own (invocation.md 15, publication.md 12), the
others are ours and name their schema.
"""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from symbi_recover.core.claims import FileRecovery, Resolution
from symbi_recover.core.ledger import LedgerReport


class ReconciledInvocation(Struct, frozen=True, kw_only=True):
    """The document of `invocation reconcile`; the runtime's own."""

    status: Literal["reconciled"] = "reconciled"
    resolution: Resolution
    work_repeated: Literal[False] = False
    cron_history_updated: bool | UnsetType = UNSET
    """Only for invocations that a schedule opened: whether rows of its history changed now."""


class RecoveredPublication(Struct, frozen=True, kw_only=True):
    """The document of `invocation file-recover`; the runtime's own."""

    status: Literal["file_publication_recovered"] = "file_publication_recovered"
    recovery: FileRecovery
    tool_repeated: Literal[False] = False
    invocation_completed: Literal[False] = False


class OperatorKey(Struct, frozen=True, kw_only=True):
    """The document of `key init`, `key show` and `key import`."""

    schema: str = "symbi-recover/operator-key.v1"
    ok: Literal[True] = True
    public_key: str
    """64 lower-case hex digits."""
    fingerprint: str
    """As OpenSSH shows it."""
    path: str
    """Of the private key."""
    created: bool | None
    """Whether it was put there now; null where only shown."""


class ReviewDraft(Struct, frozen=True, kw_only=True):
    """The document of `invocation draft-review`."""

    schema: str = "symbi-recover/review-draft.v1"
    ok: Literal[True] = True
    review: str
    """Path of the draft."""
    effects: str | None
    """Path of the list of effects without a signed outcome; null if there are none."""
    created: bool
    """False if the very same draft was there already."""
    snapshot_hash: str
    missing: tuple[str, ...]
    """What has to be done by hand."""
    warnings: tuple[str, ...]
    next: str


class LedgerDocument(Struct, frozen=True, kw_only=True):
    """The document of `ledger show` and `ledger verify`."""

    schema: str = "symbi-recover/ledger.v1"
    ok: bool
    exit: int
    report: LedgerReport


SCHEMAS: dict[str, type] = {
    "invocation-reconcile": ReconciledInvocation,
    "invocation-file-recover": RecoveredPublication,
}
"""The runtime's own documents, which do not name their schema."""
