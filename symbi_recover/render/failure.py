"""Renders a failure: one sentence, where, a stable code, the next step."""

from symbi_recover.core.codes import CODES
from symbi_recover.core.errors import Failure, RecoverError
from symbi_recover.core.refusals import JournalRefusedError
from symbi_recover.render.safe import safe


def place(error: RecoverError) -> str:
    """Where it happened, in words; empty if nowhere in particular."""
    parts = []
    if error.path is not None:
        parts.append(safe(error.path))
    if error.record is not None:
        parts.append(f"record {error.record}")
    if error.offset is not None:
        parts.append(f"byte {error.offset:,}")
    return ", ".join(parts)


def next_step(error: RecoverError) -> str:
    """What the operator can do: the error's own hint, or the registry's."""
    return error.hint or (CODES[error.code].next if error.code in CODES else "")


def lines(error: RecoverError, prefix: str = "") -> list[str]:
    """The failure for people; the first line is the sentence, after `prefix` of a runtime-compatible command."""
    shown = [prefix + safe(error.message)]
    if isinstance(error, JournalRefusedError):
        finding = error.finding
        detail = safe(finding.message)
        if finding.expected is not None:
            detail += f" (expected {safe(finding.expected)}, found {safe(finding.actual)})"
        if detail != safe(error.message):
            shown.append(f"  what:  {detail}")
    elif error.detail:
        shown.append(f"  what:  {safe(error.detail)}")
    rows = (("where", place(error)), ("code", f"{error.code} (symbi-recover explain {error.code})"))
    shown += [f"  {name + ':':6} {text}" for name, text in rows if text]
    shown.append(f"  next:  {safe(next_step(error))}")
    return shown


def document(error: RecoverError) -> Failure:
    """The failure as data, for commands that were asked for JSON."""
    return Failure(
        code=error.code,
        message=error.message,
        path=error.path,
        record=error.record,
        offset=error.offset,
        detail=error.detail,
        next=next_step(error),
    )
