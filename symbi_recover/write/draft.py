"""Writes a review file for an operator to complete (invocation.md section 11). It never goes over an existing file.

The draft holds the exact hash of the evidence and the hashes of the files that were named. `effects_stopped` is false,
and nothing here ever sets it: saying that nothing goes on any more is what the operator alone can do. A file that is
there already with the very same bytes is left as it is, so that an interrupted command can be repeated.
"""

import hashlib
import os

from symbi_recover.core.claims import (
    EVIDENCE_LIMIT,
    RATIONALE_LIMIT,
    REFERENCE_LIMIT,
    EvidenceItem,
    Inspection,
    Outcome,
    Review,
    Status,
)
from symbi_recover.core.errors import RefusedError, UnexaminedError
from symbi_recover.read.evidence.opener import OpenedFile, open_folder
from symbi_recover.wire import canonical
from symbi_recover.write.atomic import changing, publish, sync_folder
from symbi_recover.write.keys import evidence_above


def draft(inspection: Inspection, outcome: Outcome, rationale: str, files: tuple[str, ...]) -> Review:
    """The review as far as it can be prepared.

    Args:
        inspection: of the invocation, which must wait for a decision.
        outcome: what the operator believes.
        rationale: perhaps empty, to be written later.
        files: evidence that the operator names.

    Raises:
        RefusedError: `nothing_to_review`, `review_rules`, `review_evidence`.
        UnexaminedError: a file cannot be opened, is no regular one, or changed.
    """
    if inspection.status is not Status.UNRESOLVED:
        raise RefusedError(
            "nothing_to_review", f"the invocation is {inspection.status}; there is nothing to review"
        )
    if len(rationale.encode("utf-8", "surrogateescape")) > RATIONALE_LIMIT:
        raise RefusedError("review_rules", f"the rationale is longer than {RATIONALE_LIMIT} bytes")
    if len(files) > EVIDENCE_LIMIT:
        raise RefusedError(
            "review_rules", f"{len(files)} evidence files were named, at most {EVIDENCE_LIMIT} fit"
        )
    return Review(
        snapshot_hash=inspection.snapshot_hash,
        outcome=outcome,
        rationale=_utf8(rationale, "the rationale"),
        evidence=tuple(_item(path) for path in files),
        effects_stopped=False,
    )


def text(review: Review) -> bytes:
    """The review as it is written, for a person to edit."""
    return canonical.pretty(review)


def _item(path: str) -> EvidenceItem:
    reference = _utf8(os.path.abspath(path), f"the path {path!r}")
    if len(reference.encode()) > REFERENCE_LIMIT:
        raise RefusedError("review_evidence", f"the path is longer than {REFERENCE_LIMIT} bytes", path=path)
    with OpenedFile.open(path) as file:
        if file.facts.kind != "file":
            raise UnexaminedError("file_kind", f"it is a {file.facts.kind}", path=path)
        digest = hashlib.sha256()
        for block in file.blocks(0, file.facts.size):
            digest.update(block)
        if not file.unchanged():
            raise UnexaminedError("file_changed", "it changed while it was read", path=path)
    return EvidenceItem(reference=reference, sha256=digest.hexdigest())


def _utf8(value: str, what: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise RefusedError("review_evidence", f"{what} is not UTF-8") from None
    return value


def write_new(files: list[tuple[str, bytes]]) -> list[bool]:
    """Write new private files, in order; gives for each whether it was made now.

    Nothing is written if any of the names is taken by other bytes.

    Raises:
        RefusedError: `review_exists`, `review_among_evidence`, `write_failed`, `rename_unsupported`.
        UnexaminedError: a folder cannot be opened.
    """
    for path, data in files:
        folder = evidence_above(os.path.dirname(os.path.abspath(path)))
        if folder is not None:
            raise RefusedError(
                "review_among_evidence",
                "a review must not be written among evidence",
                path=path,
                detail=folder,
            )
        _is_there(path, data)
    return [_write_new(path, data) for path, data in files]


def _write_new(path: str, data: bytes) -> bool:
    parent, name = os.path.split(os.path.abspath(path))
    with open_folder(os.path.realpath(parent)) as folder, changing(path):
        made = False
        if not _is_there(path, data):
            try:
                publish(folder, parent, name, data)
                made = True
            except FileExistsError:
                _is_there(path, data)
        sync_folder(folder)
    return made


def _is_there(path: str, data: bytes) -> bool:
    """Whether the very same file is there already; any other one is refused."""
    if not os.path.lexists(path):
        return False
    try:
        with OpenedFile.open(path) as file:
            same = file.facts.kind == "file" and file.read(len(data)) == data
    except UnexaminedError:
        same = False
    if not same:
        raise RefusedError(
            "review_exists", "there is another file already, which is never replaced", path=path
        )
    return True
