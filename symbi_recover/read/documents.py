"""The JSON of the invocation commands: the runtime's own byte for byte (invocation.md 10, publication.md 12), and ours."""

from typing import Any

from msgspec import Raw
from msgspec.structs import asdict

from symbi_recover.core.claims import FileRecovery, Inspection, InvocationList
from symbi_recover.core.documents import ShownLine
from symbi_recover.core.shown import ShownRecord
from symbi_recover.read.publication import FileInspection
from symbi_recover.wire import canonical


def inspection_document(inspection: Inspection) -> bytes:
    """What `invocation inspect` prints."""
    return canonical.pretty(
        {
            "status": inspection.status,
            "snapshot_hash": inspection.snapshot_hash,
            "snapshot": inspection.snapshot,
            "recovery": inspection.recovery,
            "resolution": inspection.resolution,
        }
    )


def file_document(inspection: FileInspection) -> bytes:
    """What `invocation file-inspect` prints; the state is the runtime's, or ours where the runtime fails."""
    return canonical.pretty(
        {
            "snapshot_hash": inspection.evidence.snapshot_hash,
            "snapshot": inspection.evidence.snapshot,
            "publication": inspection.publication.intent,
            "state": inspection.printed_state,
            "recovery": None if inspection.receipt is None else receipt_members(inspection.receipt),
        }
    )


def receipt_members(payload: FileRecovery) -> dict[str, Any]:
    """A publication receipt's payload in the order in which it is printed, free values included."""
    return asdict(payload)


def list_document(listed: InvocationList) -> bytes:
    """What `invocation list --format json` prints."""
    return canonical.pretty(listed)


def list_line(row: object) -> bytes:
    """One line of `invocation list --format jsonl`."""
    return canonical.compact(row) + b"\n"


def shown_line(shown: ShownRecord) -> ShownLine:
    """One line of a journal as `audit show` prints it."""
    event = shown.event
    return ShownLine(
        line=shown.line,
        start=shown.start,
        end=shown.end,
        sha256=shown.sha256,
        complete=shown.complete,
        problem=shown.problem,
        signature_holds=shown.signature_holds,
        linked=shown.linked,
        event=None if event is None else type(event).__name__,
        payload=None if event is None else Raw(shown.payload),
        text=shown.payload.decode("utf-8", "surrogateescape") if event is None else None,
    )
