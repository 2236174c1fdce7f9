"""The operator ledger as typed values: what an operator did with this toolkit, signed and chained (docs/ledger.md).

The first part are the structures of its lines, which have the form of a run journal's. The second part are results:
what a verification of a ledger says. `SCHEMAS` names the structure that has a JSON Schema.
"""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType, field

from symbi_recover.core.findings import Finding, NotChecked
from symbi_recover.core.report import KeyUsed
from symbi_recover.core.scalars import U32, U64, UUID, Timestamp
from symbi_recover.core.shapes import Strict, Variant

LEDGER_PREFIX = b"symbi-recover-operator-ledger:v1\n"
"""Stands before every signed payload, so that no signature of a ledger is one of anything else."""
LEDGER_NAME = "ledger.jsonl"
PUBLIC_NAME = "operator.pub"
"""The file beside a ledger that holds the operator's public key."""
LEDGER_LIMIT = 1 << 26
LINE_LIMIT = 1 << 20
TORN_MARK = b"#torn\n"
"""Ends a torn fragment before a ledger goes on behind it; no line that ends so is a record."""

Ending = Literal["done", "already_done", "refused", "failed"]


class Opened(Strict, frozen=True, kw_only=True):
    """Record 0: whose ledger this is."""

    public_key: str


class Intended(Strict, frozen=True, kw_only=True):
    """An act is about to begin."""

    act: UUID
    command: str
    subject: dict[str, str]
    """What it is about, by name, for example project, scope and id."""
    evidence: str
    """Hash of the evidence that was reviewed."""


class Finished(Strict, frozen=True, kw_only=True):
    """An act came to an end. A repeat that found it open may finish it once more."""

    act: UUID
    outcome: Ending
    code: str | None
    """Of the failure."""
    message: str | None
    receipts: dict[str, str]
    """SHA-256 of the receipts that stand for it, by path."""


class Continued(Strict, frozen=True, kw_only=True):
    """The ledger goes on behind a fragment that was never completed."""

    torn_bytes: U64
    """Bytes between the record before and this one, marks included."""
    torn_sha256: str


class LedgerEvent(Variant, frozen=True, kw_only=True):
    """What a record says."""

    opened: Opened | UnsetType = field(default=UNSET, name="Opened")
    intended: Intended | UnsetType = field(default=UNSET, name="Intended")
    finished: Finished | UnsetType = field(default=UNSET, name="Finished")
    continued: Continued | UnsetType = field(default=UNSET, name="Continued")


class LedgerEntry(Strict, frozen=True, kw_only=True):
    """One record's content."""

    sequence: U64
    timestamp: Timestamp
    host: str
    uid: U32
    event: LedgerEvent


class LedgerPayload(Strict, frozen=True, kw_only=True):
    """The signed part of a line."""

    version: U32
    ledger_id: UUID
    previous_hash: str
    """SHA-256 of the whole line before, line feed included; 64 zeros for the first."""
    entry: LedgerEntry


class LedgerRecord(Strict, frozen=True, kw_only=True):
    """One line."""

    payload: LedgerPayload
    signature: str
    """Base64 of 64 bytes over the prefix and the payload's exact bytes."""


SCHEMAS: dict[str, type] = {"ledger-record": LedgerRecord}
"""The structure whose JSON Schema lies in `schemas/evidence/`, by name."""


class Act(Struct, frozen=True, kw_only=True):
    """One act, from its intent to its last outcome."""

    id: UUID
    command: str
    subject: dict[str, str]
    evidence: str
    sequence: int
    """Of its intent."""
    intended_at: str
    host: str
    uid: int
    outcome: Ending | None = None
    """None while it is open: nothing says how it ended."""
    finished_at: str | None = None
    code: str | None = None
    message: str | None = None
    receipts: dict[str, str] = {}

    @property
    def successful(self) -> bool:
        """It reached its end."""
        return self.outcome in ("done", "already_done")


class LedgerReport(Struct, frozen=True, kw_only=True):
    """What the bytes of one ledger prove."""

    path: str
    ledger_id: UUID | None
    key: KeyUsed | None
    records: int
    """Verified records."""
    verified_bytes: int
    """Up to the end of the last of them; fragments that it accounts for are included."""
    tail_bytes: int
    """Behind the last verified record."""
    head_sequence: int | None
    head_hash: str | None
    """SHA-256 of the last verified line."""
    first_time: str | None
    last_time: str | None
    acts: tuple[Act, ...] = ()
    findings: tuple[Finding, ...] = ()
    not_checked: tuple[NotChecked, ...] = ()

    @property
    def open_acts(self) -> tuple[Act, ...]:
        """Acts without an outcome."""
        return tuple(act for act in self.acts if act.outcome is None)
