"""Why a journal is refused: our codes, and the runtime's words for each (journal.md section 16).

The runtime has one text where we often know more; several of our codes then share it.
"""

from uuid import UUID

from symbi_recover.core.codes import finding
from symbi_recover.core.errors import RefusedError, UnexaminedError
from symbi_recover.core.findings import Finding
from symbi_recover.core.report import Proven

_CHAIN = "signed journal chain or principal mismatch"

RUNTIME_TEXT: dict[str, str] = {
    "journal_kind": "journal must be a regular file within its size limit",
    "record_oversized": "incomplete or oversized signed journal record",
    "record_incomplete": "incomplete signed journal record",
    "key_not_a_point": "signature error: Cannot decompress Edwards point",
    "key_weak": "signature error: Verification equation was not satisfied",
    "signature_length": "signature error",
    "signature_scalar": "signature error: Cannot use scalar with high-bit set",
    "signature_invalid": "signature error: Verification equation was not satisfied",
    "record_version": _CHAIN,
    "record_run": _CHAIN,
    "record_principal": _CHAIN,
    "record_repeated": _CHAIN,
    "records_missing": _CHAIN,
    "records_out_of_order": _CHAIN,
    "link_mismatch": _CHAIN,
    "journal_empty": "signed journal has no records",
    "journal_changed": "journal changed during verification; inspect a stable snapshot",
    "record_after_end": "signed records follow run termination",
    "start_invalid": "invalid run start record",
    "approval_without_fingerprint": "tool approval lacks fingerprint",
    "effect_repeated": "duplicate effect start or recovery effect limit exceeded",
    "finish_without_start": "effect finish has no matching start",
    "finish_repeated": "duplicate effect finish",
    "budget_root_repeated": "duplicate root budget initialization",
    "budget_reservation_identity": "invalid or duplicate budget reservation identity",
    "budget_amount_overflow": "reservation amount overflow",
    "budget_allowance_shape": "invalid reservation allowance or ancestry",
    "budget_ancestry": "budget ancestry is cyclic, oversized or disconnected",
    "budget_child_allowance": "child allowance exceeds its parent",
    "budget_scope_changed": "budget scope identity changed",
    "budget_overdrawn": "recorded reservation exceeds the shared allowance",
    "budget_settlement_root": "settlement belongs to a different budget",
    "budget_settlement_unknown": "settlement has no reservation",
    "budget_settlement_repeated": "duplicate budget settlement",
    "budget_settlement_outcome": "settlement accounting outcome is inconsistent",
}
"""Interface literals by our code. A `record_malformed` has none: its text is ours to word."""


class JournalRefusedError(RefusedError):
    """A journal that the runtime would refuse. `finding` says what and where; `message` is the runtime's text."""

    def __init__(self, found: Finding) -> None:
        super().__init__(
            found.code,
            RUNTIME_TEXT.get(found.code, found.message),
            path=found.path,
            record=found.record,
            offset=found.start,
        )
        self.finding = found
        self.proven: Proven | None = None
        """What holds before the fault, where that is known."""
        self.run_id: UUID | None = None
        """The run of the records that hold."""

    def become(self, found: Finding) -> "JournalRefusedError":
        """The same refusal, said with more detail."""
        error = JournalRefusedError(found)
        error.proven, error.run_id = self.proven, self.run_id
        return error


def unexamined(error: JournalRefusedError) -> UnexaminedError:
    """The same, where what the runtime refuses could in truth not be examined."""
    return UnexaminedError(error.code, error.message, path=error.path, detail=error.finding.message)


def refuse(code: str, message: str, **where: object) -> JournalRefusedError:
    """The error for `code`, to be raised; `where` as in `Finding`."""
    return JournalRefusedError(finding(code, message, **where))
