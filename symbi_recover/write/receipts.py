"""Signed intents and receipts of retirements, in the operator's folder (leases.md section 18.6, steps 6 and 10).

Each run has a number: `<lease>.<number>.intent.json` before the record may go, `<lease>.<number>.receipt.json` last. An
intent without a receipt is the trace of an interrupted run. Files are never replaced; what is not whole, or not signed
with the operator's key, counts for nothing and is never taken for absent.
"""

import re

from msgspec import Struct

from symbi_recover.core.codes import finding
from symbi_recover.core.findings import Finding
from symbi_recover.core.retirement import RetirementIntent, RetirementReceipt
from symbi_recover.read.retirement.notes import RETIREMENTS, Own, read_own
from symbi_recover.wire import canonical, ed25519
from symbi_recover.wire.retirement import FormError, digest, envelope, open_envelope, signed_text
from symbi_recover.write.notes import write_own
from symbi_recover.write.sign import Signer

_NAME = re.compile(r"[0-9a-f-]{36}\.([0-9]{6})\.(intent|receipt)\.json")


class Earlier(Struct, frozen=True, kw_only=True):
    """One earlier run of a lease."""

    number: int
    intent: RetirementIntent
    intent_sha256: str
    receipt: RetirementReceipt | None
    receipt_path: str | None
    receipt_sha256: str | None = None


class Receipts:
    """The intents and receipts of one lease."""

    def __init__(self, home: str, lease: str, signer: Signer) -> None:
        self.home = home
        self.lease = lease
        self.signer = signer
        self.findings: list[Finding] = []
        """What has to be said of the files: those that count for nothing, and what could not be made durable."""
        self.spoiled: dict[int, str] = {}
        """Receipts that are there and count for nothing, by number of their run."""
        self._last = 0
        self.runs = self._read()

    def _read(self) -> tuple[Earlier, ...]:
        intents: dict[int, tuple[RetirementIntent, str]] = {}
        receipts: dict[int, tuple[RetirementReceipt, str, str]] = {}
        for own in read_own(self.home, RETIREMENTS, prefix=f"{self.lease}."):
            match = _NAME.fullmatch(own.name)
            if match is None:
                continue
            number = int(match.group(1))
            self._last = max(self._last, number)
            kind = RetirementIntent if match.group(2) == "intent" else RetirementReceipt
            value = self._open(own, kind)
            if value is None and kind is RetirementReceipt:
                self.spoiled[number] = own.path
            if isinstance(value, RetirementIntent):
                intents[number] = value, digest(own.data or b"")
            elif isinstance(value, RetirementReceipt):
                receipts[number] = value, own.path, digest(own.data or b"")
        return tuple(
            self._paired(number, *intents[number], receipts.get(number)) for number in sorted(intents)
        )

    def _paired(
        self,
        number: int,
        intent: RetirementIntent,
        sha256: str,
        receipt: tuple[RetirementReceipt, str, str] | None,
    ) -> Earlier:
        fits = receipt is not None and receipt[0].intent_sha256 == sha256
        if receipt is not None and not fits:
            self.spoiled[number] = receipt[1]
            self.findings.append(
                finding("operator_file_unusable", "it belongs to another intent", path=receipt[1])
            )
        return Earlier(
            number=number,
            intent=intent,
            intent_sha256=sha256,
            receipt=receipt[0] if receipt is not None and fits else None,
            receipt_path=receipt[1] if receipt is not None and fits else None,
            receipt_sha256=receipt[2] if receipt is not None and fits else None,
        )

    def _open(self, own: Own, kind: type[RetirementIntent | RetirementReceipt]) -> object:
        if own.data is None:
            self.findings.append(
                finding("operator_file_unusable", own.why or "it cannot be read", path=own.path)
            )
            return None
        try:
            value, payload, key, signature = open_envelope(own.data, kind)
        except FormError as error:
            self.findings.append(finding("operator_file_unusable", str(error), path=own.path))
            return None
        genuine = key == self.signer.public_key.hex() and ed25519.verify(
            self.signer.public_key, signed_text(payload), signature
        )
        why = None if genuine else "not signed with the operator's key"
        if value.lease != self.lease:
            why = f"it is about lease {value.lease}"
        if why is not None:
            self.findings.append(finding("operator_file_unusable", why, path=own.path))
            return None
        return value

    def interrupted(self, record_sha256: str) -> Earlier | None:
        """The last run of this record that left an intent and no receipt."""
        return next(
            (r for r in reversed(self.runs) if r.intent.record_sha256 == record_sha256 and r.receipt is None),
            None,
        )

    def finished(self, record_sha256: str) -> Earlier | None:
        """The last run of this record whose receipt says that it is gone."""
        gone = ("retired", "absent_after_interruption")
        return next(
            (
                run
                for run in reversed(self.runs)
                if run.intent.record_sha256 == record_sha256
                and run.receipt is not None
                and run.receipt.outcome in gone
            ),
            None,
        )

    def write_intent(self, intent: RetirementIntent) -> Earlier:
        """Write the intent of a new run, durable.

        Raises:
            RefusedError: it could not be written.
        """
        number = self._last + 1
        name = f"{self.lease}.{number:06}.intent.json"
        written = write_own(self.home, RETIREMENTS, name, self._signed(intent))
        self.findings += written.remarks
        self._last = number
        return Earlier(
            number=number, intent=intent, intent_sha256=written.sha256, receipt=None, receipt_path=None
        )

    def write_receipt(self, run: Earlier, receipt: RetirementReceipt) -> tuple[str, str]:
        """Write the receipt of a run, durable; give its path and SHA-256.

        Raises:
            RefusedError: it could not be written.
        """
        name = f"{self.lease}.{run.number:06}.receipt.json"
        written = write_own(self.home, RETIREMENTS, name, self._signed(receipt))
        self.findings += written.remarks
        return written.path, written.sha256

    def _signed(self, value: RetirementIntent | RetirementReceipt) -> bytes:
        payload = canonical.canonical(value)
        return envelope(payload, self.signer.public_key.hex(), self.signer.sign(signed_text(payload)))
