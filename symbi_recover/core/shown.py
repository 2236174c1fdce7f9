"""The lines of a journal as `audit show` takes them one by one: where each lies, and what could be checked about it."""

from msgspec import Struct

from symbi_recover.core.events import Event, Record


class ShownRecord(Struct, frozen=True, kw_only=True):
    """One line: where it lies, what it says, and whether its signature holds."""

    line: int
    """From 0."""
    start: int
    """Bytes from the start of the file, `end` exclusive."""
    end: int
    sha256: str
    """Of the line; the next record has to name it."""
    complete: bool
    """False for the bytes after the last line feed."""
    record: Record | None = None
    payload: bytes = b""
    problem: str | None = None
    """Why it is no record."""
    signature_holds: bool | None = None
    """None where no key was given."""
    linked: bool | None = None
    """Whether it names the hash of the line before it; None where it cannot be known."""

    @property
    def event(self) -> Event | None:
        """The event, if it is a record."""
        return self.record.event if self.record else None

    @property
    def sound(self) -> bool:
        """A record, and nothing that was checked about it speaks against it."""
        return self.problem is None and self.signature_holds is not False and self.linked is not False
