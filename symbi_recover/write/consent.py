"""What an operator must have said before anything is written: the review file, or the hash that was reviewed.

The review file is read once, bounded, without following a link (invocation.md section 11). Its owner and mode are not
looked at, as in the runtime: it is the operator's own.
"""

import os
import re

from symbi_recover.core.claims import REVIEW_LIMIT, Review
from symbi_recover.core.errors import RefusedError
from symbi_recover.read.evidence.opener import OpenedFile
from symbi_recover.wire.review import parse_review
from symbi_recover.wire.strictjson import JsonError

_HASH = re.compile(r"sha256:[0-9a-f]{64}")
CHANGED = "invocation evidence changed since review"


def read_review(path: str) -> Review:
    """Read a review file; its rules are checked elsewhere.

    Raises:
        RefusedError: `review_kind`, `review_too_large`, `review_malformed`.
        UnexaminedError: it cannot be opened.
    """
    with OpenedFile.open(path) as file:
        if file.facts.kind != "file":
            raise RefusedError("review_kind", "review must be a regular file", path=path)
        data = file.read(REVIEW_LIMIT)
    if file.facts.size > REVIEW_LIMIT or len(data) > REVIEW_LIMIT:
        raise RefusedError("review_too_large", "review exceeds 128 KiB", path=path)
    try:
        return parse_review(data)
    except JsonError as error:
        raise RefusedError(
            "review_malformed",
            f"{error.message} at byte {error.offset}",
            path=path,
            offset=error.offset,
        ) from error


def check_hash(given: str, present: str, message: str = CHANGED) -> None:
    """Refuse consent that was given to other evidence.

    Raises:
        RefusedError: `review_stale`.
    """
    if given == present:
        return
    if not _HASH.fullmatch(given):
        what = f"{given!r} is not the hash of any evidence; the evidence at hand has {present}"
        hint = "Give the hash as `invocation inspect` shows it, in full."
        raise RefusedError("review_stale", message, detail=what, hint=hint)
    raise RefusedError(
        "review_stale", message, detail=f"reviewed was {given}, the evidence at hand has {present}"
    )


def check_cron_option(path: str | None, scope: str, scheduler: str) -> None:
    """The early checks of `--cron-store`.

    Raises:
        RefusedError: `cron_store_scope`, `cron_store_missing`.
    """
    if path is None:
        return
    if scope != scheduler:
        raise RefusedError("cron_store_scope", f"--cron-store requires {scheduler} scope")
    if not os.path.exists(path):
        raise RefusedError("cron_store_missing", "explicit cron store does not exist", path=path)
