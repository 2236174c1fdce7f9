"""The one error tree: "could not", as opposed to "found something wrong".

An error is one sentence, a stable code from `core/codes/`, where it happened, and what to do next. Bad evidence
is a `Finding`; only the runtime-compatible commands, whose contract is to stop at the first fault, turn a
finding into a failure.
"""

from typing import ClassVar, Literal

from msgspec import Struct

from symbi_recover.core.exits import Exit


class RecoverError(Exception):
    """Base of all errors that a user may see."""

    exit: ClassVar[Exit] = Exit.REFUSED

    def __init__(
        self,
        code: str,
        message: str,
        *,
        path: str | None = None,
        record: int | None = None,
        offset: int | None = None,
        detail: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Describe the failure.

        Args:
            code: registered in `core/codes/`.
            message: one sentence without final stop; may hold text from evidence, so renderers escape it.
            path: the file concerned.
            record: line number in it, from 0.
            offset: byte offset in it.
            detail: what is known besides the sentence, which may be a fixed one; escaped by renderers as well.
            hint: next step, where the registry's own is not the best one.
        """
        super().__init__(message)
        self.code = code
        self.message = message
        self.path = path
        self.record = record
        self.offset = offset
        self.detail = detail
        self.hint = hint


class RefusedError(RecoverError):
    """The evidence was examined and cannot be accepted, or a command failed."""


class UnexaminedError(RecoverError):
    """The evidence could not be examined."""

    exit = Exit.UNEXAMINED


class StaleError(RecoverError):
    """A write was refused because the world is not as it was reviewed."""

    exit = Exit.STALE


class MisuseError(RecoverError):
    """The command line or a file of the operator's own was not usable."""

    exit = Exit.USAGE


class DefectError(RecoverError):
    """This program did what it must not do; nothing is said about the evidence."""

    exit = Exit.DEFECT


class GuardError(BaseException):
    """The guard refused something. No handler of failed evidence may take it for one, so it is not an `Exception`."""

    def __init__(self, message: str, path: str) -> None:
        """Describe what was tried.

        Args:
            message: one sentence.
            path: what it was tried on.
        """
        super().__init__(message)
        self.failure = DefectError("guard", message, path=path)


class Failure(Struct, frozen=True, kw_only=True):
    """What a command prints instead of its document when it could not do its work and JSON was asked for."""

    schema: str = "symbi-recover/failure.v1"
    ok: Literal[False] = False
    code: str
    message: str
    path: str | None
    record: int | None
    offset: int | None
    detail: str | None
    next: str
