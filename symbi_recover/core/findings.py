"""What can be found in evidence: the types, and the one registry of codes.

A finding is data, never an exception: a verifier returns all of them. Each code has one entry in
`core/codes/`, which carries its severity, its meaning, and the text that `explain` prints.
"""

from enum import StrEnum

from msgspec import Struct


class Severity(StrEnum):
    """How much a finding weighs."""

    INFO = "info"
    """Worth knowing, casts no doubt."""
    REMARK = "remark"
    """Unusual: worth a look, and by itself no reason to refuse anything; interruptions leave some of these."""
    ATTENTION = "attention"
    """Authentic, but someone must decide."""
    REFUSED = "refused"
    """The evidence cannot be accepted."""


class Code(Struct, frozen=True):
    """One registered kind of finding or failure."""

    severity: Severity
    meaning: str
    """One sentence: what it says."""
    why: str
    """How it comes about, and what it does not prove."""
    next: str
    """What the operator can do, as one sentence."""


def refused(meaning: str, why: str, step: str) -> Code:
    """A code of evidence that cannot be accepted, and of a failure; `step` is what to do next."""
    return Code(Severity.REFUSED, meaning, why, step)


def attention(meaning: str, why: str, step: str) -> Code:
    """A code of what somebody must decide."""
    return Code(Severity.ATTENTION, meaning, why, step)


def remark(meaning: str, why: str, step: str) -> Code:
    """A code of what is unusual, and refuses nothing."""
    return Code(Severity.REMARK, meaning, why, step)


def info(meaning: str, why: str, step: str) -> Code:
    """A code of what is worth knowing."""
    return Code(Severity.INFO, meaning, why, step)


class Finding(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing found, and where.

    Offsets are bytes from the start of `path`, `end` exclusive. `record` counts lines from 0. `expected` and
    `actual` are shown as they are, so a renderer must escape them.
    """

    code: str
    severity: Severity
    message: str
    path: str | None = None
    record: int | None = None
    sequence: int | None = None
    start: int | None = None
    end: int | None = None
    expected: str | None = None
    actual: str | None = None


class NotChecked(Struct, frozen=True):
    """Something that was left out, and why; part of every report."""

    what: str
    why: str
