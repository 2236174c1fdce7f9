"""Every command that only reads, with arguments that work, for tests that show that it changes nothing.

A command stands here as a function of the place of the evidence, so that the same one can be run on a copy, on a
read-only mount, and as another user. Whoever adds a reading command adds it here; `exits` are the exit codes that
show that the command did its work rather than fail early.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.support.evidence import checks


class ReadingCommand(NamedTuple):
    """One command: its name, its arguments for evidence unpacked at a folder, and the exit codes that are right."""

    name: str
    arguments: Callable[[Path], list[str]]
    exits: frozenset[int]


def _audit(name: str, rc: int, *verb: str, run: bool = True, exits: tuple[int, ...] = ()) -> ReadingCommand:
    """A journal command on the first real journal that the runtime answered with `rc`."""
    check = next(check for check in checks("audit inspect") if check.rc == rc)

    def arguments(evidence: Path) -> list[str]:
        who = ["--run-id", check.run_id] if run else []
        return [
            "audit",
            verb[0],
            str(evidence / check.journal),
            *who,
            "--public-key",
            check.public_key,
            *verb[1:],
        ]

    return ReadingCommand(name, arguments, frozenset(exits or (rc,)))


READING: tuple[ReadingCommand, ...] = (
    _audit("audit inspect, complete", 0, "inspect", "--format", "json"),
    _audit("audit inspect, complete, text", 0, "inspect", "--format", "text"),
    _audit("audit inspect, interrupted", 2, "inspect", "--format", "json"),
    _audit("audit inspect, interrupted, text", 2, "inspect", "--format", "text"),
    _audit("audit inspect, refused", 1, "inspect", "--format", "json"),
    _audit("audit verify", 0, "verify", "--format", "json"),
    _audit("audit verify, text", 0, "verify", "--format", "text"),
    _audit("audit verify, lines", 0, "verify", "--format", "jsonl"),
    _audit("audit verify, refused, text", 1, "verify", "--format", "text"),
    _audit("audit show", 0, "show", "--format", "json", run=False),
    _audit("audit show, text", 2, "show", "0-2", "--format", "text", run=False, exits=(0,)),
)
"""The table. Each entry reads evidence that `tests.support.evidence.unpack` makes."""
