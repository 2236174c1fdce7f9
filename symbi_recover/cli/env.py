"""What a command is given besides its options: streams, terminal, clock, home. Tests inject their own."""

import os
import sys
import time
from collections.abc import Callable, Iterable
from typing import Literal

from symbi_recover.core.exits import Exit
from symbi_recover.render.colour import Painter
from symbi_recover.render.output import Output, is_terminal
from symbi_recover.render.safe import safe_json
from symbi_recover.wire import canonical
from symbi_recover.wire.timestamp import from_nanoseconds

Verbosity = Literal[-1, 0, 1]


class Environment:
    """One invocation of the program."""

    def __init__(
        self,
        output: Output,
        *,
        terminal: bool,
        clock: Callable[[], int] = time.time_ns,
        verbosity: Verbosity = 0,
    ) -> None:
        self.output = output
        self.terminal = terminal
        """Whether standard output is a terminal, so that people are the readers."""
        self.clock = clock
        """Nanoseconds since 1970."""
        self.verbosity = verbosity
        self.wants_json = False
        """Set by a command as soon as it knows that its document is to be JSON, so that failures are too."""
        self.command: object = None
        """The command that runs."""
        self.verdict: Exit | None = None
        """What the command will end with, once it is known."""

    @classmethod
    def of_process(cls) -> "Environment":
        """The real one."""
        return cls(Output.of_process(), terminal=is_terminal(sys.stdout))

    @property
    def paint(self) -> Painter:
        """The painter for the document."""
        return Painter(colour=self.output.colour)

    def format(self, chosen: str | None) -> str:
        """The format to use: the chosen one, else text for people and JSON for programs."""
        chosen = chosen or ("text" if self.terminal else "json")
        self.wants_json = chosen in ("json", "jsonl")
        return chosen

    @property
    def now(self) -> str:
        """The present moment in the runtime's form."""
        return from_nanoseconds(self.clock())

    def remark(self, line: str) -> None:
        """Say a safe line on stderr that can be done without: not with `-q`."""
        if self.verbosity >= 0:
            self.output.note(line)

    def deliver_json(self, verdict: Exit, value: object) -> Exit:
        """Write `value` as the runtime's commands print JSON; raises as `Output.document` does."""
        return self.deliver(verdict, canonical.pretty(value))

    def deliver_json_lines(self, verdict: Exit, values: Iterable[object]) -> Exit:
        """Write one line of JSON for each value; raises as `Output.document` does."""
        document = b"".join(canonical.compact(value) + b"\n" for value in values)
        return self.deliver(verdict, document)

    def put_json(self, document: bytes) -> None:
        """Write JSON as it is to a program, and harmless to a terminal; raises as `Output.document` does."""
        self.output.document(safe_json(document) if self.terminal else document)

    def deliver(self, verdict: Exit, document: bytes | list[str]) -> Exit:
        """Write the document, JSON or safe lines, and give the verdict back; raises as `Output.document` does."""
        self.verdict = verdict
        if isinstance(document, bytes):
            self.put_json(document)
        else:
            self.output.text(document)
        return verdict


def operator_home() -> str:
    """The folder of the operator's own files: `SYMBI_RECOVER_HOME`, else `~/.symbiont/operator`."""
    return os.environ.get("SYMBI_RECOVER_HOME") or os.path.expanduser("~/.symbiont/operator")
