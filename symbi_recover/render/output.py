"""The streams a command writes to, and what it knows about them.

stdout carries one document and nothing else; progress, hints and errors go to stderr. Everything is UTF-8 with LF,
whatever the locale. A full device is a failure; a reader that has gone is not, but never makes a verdict better.
"""

import os
import sys
from contextlib import suppress
from typing import BinaryIO, TextIO

from symbi_recover.core.errors import RecoverError


class Output:
    """Binary streams with the decisions that hang on them."""

    def __init__(self, stdout: BinaryIO | None, stderr: BinaryIO | None, *, colour: bool) -> None:
        self._stdout = stdout
        self._stderr = stderr
        self.colour = colour

    @classmethod
    def of_process(cls) -> "Output":
        """The process's own streams; in colour on a terminal that has it, unless NO_COLOR is set."""
        wanted = (
            is_terminal(sys.stdout) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        )
        return cls(getattr(sys.stdout, "buffer", None), getattr(sys.stderr, "buffer", None), colour=wanted)

    def document(self, data: bytes) -> None:
        """Write the document.

        Raises:
            RecoverError: `output_failed`, if it could not be written in full.
            BrokenPipeError: if the reader has gone.
        """
        if self._stdout is None:
            raise RecoverError(
                "output_failed", "standard output is closed, so the result could not be written"
            )
        try:
            self._stdout.write(data)
            self._stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            self.close()
            raise RecoverError(
                "output_failed", f"the result could not be written: {os.strerror(error.errno or 0)}"
            ) from error

    def text(self, lines: list[str]) -> None:
        """Write lines that are already safe as the document; raises as `document` does."""
        self.document("".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace"))

    def close(self) -> None:
        """Give up standard output, so that nothing is flushed to a reader that has gone."""
        self._stdout = None
        _silence(sys.stdout)
        sys.stdout = None

    def note(self, text: str) -> None:
        """Write lines that are already safe to stderr; silent if that fails, for there is nowhere to say so."""
        if self._stderr is None:
            return
        try:
            self._stderr.write(f"{text}\n".encode("utf-8", "backslashreplace"))
            self._stderr.flush()
        except OSError:
            self._stderr = None
            _silence(sys.stderr)
            sys.stderr = None


def _silence(stream: TextIO | None) -> None:
    """Lead a stream to the null device; its owner forgets it, so that the interpreter does not flush it at the end."""
    if stream is not None:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), stream.fileno())


def is_terminal(stream: object) -> bool:
    """Whether a text stream, perhaps None or closed, is a terminal."""
    try:
        return stream is not None and stream.isatty()  # type: ignore[attr-defined]
    except ValueError:
        return False
