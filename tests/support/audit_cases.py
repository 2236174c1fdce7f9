"""The recorded side-by-side cases of `fixtures/cases/`, and which messages have fixed wording.

Cases are read once per process. `SAYS_SO` decides, for a first line of stderr, whether its wording is part of the
runtime's contract (journal.md section 16): for those we must say the same; for others only the prefix counts.
"""

import base64
import gzip
import re
from functools import cache
from typing import Any

import msgspec

from tests.support.evidence import FIXTURES

CASES = FIXTURES / "cases"

PREFIX = "Audit inspection failed: "
JOURNAL_PREFIX = PREFIX + "Journal write failed: "

ARGUMENT_LITERALS = (
    "public key must be 64 hexadecimal characters",
    "public key must be 32 bytes",
    "run ID must be a UUID",
)
JOURNAL_LITERALS = (
    "signature error: Cannot decompress Edwards point",
    "journal must be a regular file within its size limit",
    "incomplete or oversized signed journal record",
    "incomplete signed journal record",
    "signature error",
    "signature error: Cannot use scalar with high-bit set",
    "signature error: Verification equation was not satisfied",
    "signed journal chain or principal mismatch",
    "signed journal has no records",
    "journal changed during verification; inspect a stable snapshot",
    "signed records follow run termination",
    "invalid run start record",
    "tool approval lacks fingerprint",
    "duplicate effect start or recovery effect limit exceeded",
    "effect finish has no matching start",
    "duplicate effect finish",
    "duplicate root budget initialization",
    "invalid or duplicate budget reservation identity",
    "reservation amount overflow",
    "invalid reservation allowance or ancestry",
    "budget ancestry is cyclic, oversized or disconnected",
    "child allowance exceeds its parent",
    "budget scope identity changed",
    "recorded reservation exceeds the shared allowance",
    "settlement belongs to a different budget",
    "settlement has no reservation",
    "duplicate budget settlement",
    "settlement accounting outcome is inconsistent",
)
_SYSTEM_ERROR = re.compile(re.escape(JOURNAL_PREFIX) + r"[A-Z][^\n]* \(os error \d+\)")
_FIXED = {PREFIX + text for text in ARGUMENT_LITERALS} | {JOURNAL_PREFIX + text for text in JOURNAL_LITERALS}


class AuditCase(msgspec.Struct, frozen=True):
    """One `audit inspect` of a made-up journal and what the runtime answered."""

    id: str
    group: str
    run_id: str
    public_key: str
    journal: str
    rc: int
    stdout: str
    stderr: str

    @property
    def data(self) -> bytes:
        """The bytes of the journal."""
        return base64.b64decode(self.journal)

    @property
    def family(self) -> str:
        """A handful of cases that belong together: the group, and within events the kind of event."""
        return "/".join(self.id.split("/")[:2]) if self.group == "event" else self.group


def has_fixed_wording(line: str) -> bool:
    """Whether the wording of this first line of stderr is part of the runtime's contract."""
    return line in _FIXED or _SYSTEM_ERROR.fullmatch(line) is not None


@cache
def audit_cases() -> dict[str, tuple[AuditCase, ...]]:
    """All audit cases by family, in file order."""
    decoder = msgspec.json.Decoder(AuditCase)
    families: dict[str, list[AuditCase]] = {}
    with gzip.open(CASES / "audit.jsonl.gz") as lines:
        for line in lines:
            case = decoder.decode(line)
            families.setdefault(case.family, []).append(case)
    return {family: tuple(members) for family, members in families.items()}


def audit_case(case_id: str) -> AuditCase:
    """One audit case by its id."""
    return next(case for members in audit_cases().values() for case in members if case.id == case_id)


@cache
def raw_cases(name: str) -> tuple[dict[str, Any], ...]:
    """The cases of `invocation`, `cron` or `leases` as plain objects; fixtures/README.md tells their members."""
    with gzip.open(CASES / f"{name}.jsonl.gz") as lines:
        return tuple(msgspec.json.decode(line) for line in lines)
