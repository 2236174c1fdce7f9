"""Documents that have a JSON Schema but no report of their own: the outer record of a journal, and small outputs.

Reports and evidence that other modules describe are not repeated here. Members are in the order of the document.
"""

from typing import Annotated, Any

from msgspec import Meta, Struct

from symbi_recover.core.claims import FileRecovery, PublicationState, Record, Resolution, Snapshot, Status
from symbi_recover.core.errors import Failure
from symbi_recover.core.events import Payload
from symbi_recover.core.findings import NotChecked, Severity
from symbi_recover.core.report import RecoveryReport
from symbi_recover.core.scalars import Json
from symbi_recover.core.shapes import Strict
from symbi_recover.core.values import PublicationIntent

SignatureText = Annotated[
    str,
    Meta(
        pattern="^[A-Za-z0-9+/]{85}[AQgw]==$",
        min_length=88,
        max_length=88,
        description="Canonical base64 of the 64 bytes of an Ed25519 signature over the payload's exact text",
    ),
]


class JournalRecord(Strict, frozen=True, kw_only=True):
    """One line of a run journal (journal.md section 4): what is signed, and the signature."""

    payload: Payload
    signature: SignatureText


class InspectedInvocation(Struct, frozen=True, kw_only=True):
    """What `invocation inspect` prints; the runtime's own answer."""

    status: Status
    snapshot_hash: str
    snapshot: Snapshot
    recovery: RecoveryReport | None
    resolution: Resolution | None


class InspectedPublication(Struct, frozen=True, kw_only=True):
    """What `invocation file-inspect` prints; the runtime's own answer."""

    snapshot_hash: str
    snapshot: Snapshot
    publication: PublicationIntent
    state: PublicationState
    recovery: FileRecovery | None


class ShownLine(Struct, frozen=True, kw_only=True):
    """One line of a journal as `audit show` prints it; `payload` is what the signed bytes say, all else is ours."""

    line: int
    start: int
    end: int
    sha256: str
    complete: bool
    problem: str | None
    signature_holds: bool | None
    linked: bool | None
    event: str | None
    payload: Json
    text: str | None


class ShownLines(Struct, frozen=True, kw_only=True):
    """The document of `audit show`."""

    schema: str = "symbi-recover/audit-show.v1"
    records: tuple[ShownLine, ...]


class SchemaEntry(Struct, frozen=True, kw_only=True):
    """One schema in the list."""

    name: str
    version: int
    kind: str
    """evidence or output."""
    description: str
    file: str
    """Name of the file within `schemas/`."""
    lines: bool
    """Each line of a file is one document."""


class SchemaList(Struct, frozen=True, kw_only=True):
    """The document of `schema list`."""

    schema: str = "symbi-recover/schema-list.v1"
    schemas: tuple[SchemaEntry, ...]


class RunbookEntry(Struct, frozen=True, kw_only=True):
    """One runbook in the list."""

    name: str
    title: str
    about: str
    """When to use it: its first paragraph, on one line."""


class RunbookList(Struct, frozen=True, kw_only=True):
    """The document of `runbook list`."""

    schema: str = "symbi-recover/runbook-list.v1"
    runbooks: tuple[RunbookEntry, ...]


class SchemaError(Struct, frozen=True, kw_only=True):
    """One place where a document is not as its schema says."""

    record: int | None
    """Line of the file, from 0; None if the file is one document."""
    pointer: str
    """JSON pointer (RFC 6901) into the document; empty for the whole."""
    message: str
    rule: str
    """Keywords that lead to the rule, references followed; empty if the document could not be read as JSON."""


class SchemaValidation(Struct, frozen=True, kw_only=True):
    """The document of `schema validate`: form alone, no signature and no link is checked."""

    schema: str = "symbi-recover/schema-validate.v1"
    ok: bool
    exit: int
    name: str
    path: str
    documents: int
    errors: tuple[SchemaError, ...]
    more_errors: int
    """Errors beyond those that are listed."""
    not_checked: tuple[NotChecked, ...]


class Explanation(Struct, frozen=True, kw_only=True):
    """One registered code, explained."""

    code: str
    severity: Severity
    meaning: str
    why: str
    next: str
    exits: tuple[int, ...]
    """Exit codes of commands that meet it; empty if it changes none."""


class Explanations(Struct, frozen=True, kw_only=True):
    """The document of `explain`."""

    schema: str = "symbi-recover/explain.v1"
    codes: tuple[Explanation, ...]


EVIDENCE: dict[str, Any] = {
    "journal-record": JournalRecord,
    "journal-payload": Payload,
    "claim-record": Annotated[
        Record, Meta(description="One line of a claim: the claim, its journal, or its result.")
    ],
}
"""Structures of evidence with a JSON Schema, besides the events and `SCHEMAS` of other modules."""

LINES = frozenset({"journal-record", "claim-record", "ledger-record"})
"""Those of which a file holds one in each line."""

OUTPUT: dict[str, Any] = {
    "recovery-report": RecoveryReport,
    "audit-show": ShownLines,
    "invocation-inspect": InspectedInvocation,
    "invocation-file-inspect": InspectedPublication,
    "failure": Failure,
    "schema-list": SchemaList,
    "schema-validate": SchemaValidation,
    "explain": Explanations,
}
"""Documents of commands with a JSON Schema, besides `SCHEMAS` of other modules."""
