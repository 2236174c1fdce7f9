"""What a write would do, and what it still lacks: printed instead of being done until consent is given."""

from typing import Literal

from msgspec import Struct


class Plan(Struct, frozen=True, kw_only=True):
    """One write command that was looked at and not carried out; also the document that is printed."""

    schema: str = "symbi-recover/plan.v1"
    ok: Literal[False] = False
    exit: int = 2
    command: str
    """Name of the command, for example `invocation file-recover`."""
    subject: dict[str, str]
    """What it is about, by name."""
    evidence: str | None
    """The hash whose repetition is the consent; None where the evidence could not be examined."""
    steps: tuple[str, ...] = ()
    """What would be done, in order."""
    missing: tuple[str, ...] = ()
    """What stands against it now."""
    warnings: tuple[str, ...] = ()
    """What to think of first."""
    consent: str | None = None
    """The command line that would carry it out."""
