"""Small journals for tests of the reader, and a way to examine bytes without a file system.

`examine` puts the bytes into a memory file and inspects that through its descriptor, so that thousands of variants
can be tried. What it answers is what `audit inspect` and `audit verify` are made of.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock
from uuid import UUID

from symbi_recover.core.report import KeyUsed
from symbi_recover.read import inspection
from symbi_recover.read.evidence.opener import OpenedFile
from symbi_recover.read.inspection import Inspection, Question
from tests.support.writer import effects, events, inference
from tests.support.writer.journal import JournalWriter
from tests.support.writer.text import RUN, uid

KEY = JournalWriter().public_key
RUN_ID = UUID(RUN)
NAME = JournalWriter().name


def small(records: int = 20, *, end: bool = True, writer: JournalWriter | None = None) -> JournalWriter:
    """A run of that many small records, a few kinds of effect among them; without `end` it was interrupted."""
    journal = writer or JournalWriter()
    journal.append(events.started(agent_id=journal.agent_id))
    middle = records - 1 - end
    for number in range(middle):
        turn, step = divmod(number, len(_MIDDLE))
        # a turn that would not be whole is filled with events that start nothing
        make = _MIDDLE[step] if turn < middle // len(_MIDDLE) else events.observations_collected
        journal.append(make(turn), turn)
    if end:
        journal.append(events.terminated())
    return journal


_MIDDLE = (
    lambda turn: events.policy_evaluated(turn, [events.approval(None, f"f{turn}")]),
    lambda turn: events.tool_dispatch_started(uid(turn), f"call_{turn}", f"f{turn}"),
    lambda turn: effects.tool_effect(effects.network_request_started(f"r{turn}", {"to": "x"}), f"f{turn}"),
    lambda turn: effects.tool_effect(effects.network_request_finished(f"r{turn}"), f"f{turn}"),
    lambda turn: events.tool_dispatch_finished(uid(turn)),
    lambda turn: inference.inference_requested(f"q{turn}"),
    lambda turn: inference.inference_completed(f"q{turn}"),
    events.observations_collected,
)


class Memory:
    """A regular file in memory that can be examined again and again."""

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("journal")

    def examine(self, data: bytes, *, key: str = KEY, path: str = NAME, **asked: object) -> Inspection:
        """Inspect `data` as the journal at `path`; `asked` as in `Question`, the run being the usual one."""
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, data, 0)
        question = Question(**{"run_id": RUN_ID, **asked})  # type: ignore[arg-type]
        with mock.patch.object(OpenedFile, "open", self._open):
            return inspection.inspect(path, question, [KeyUsed(key, "given")])

    def _open(self, path: str) -> OpenedFile:
        return OpenedFile(path, os.dup(self.descriptor))


@contextmanager
def memory() -> Iterator[Memory]:
    """A memory file for the block."""
    made = Memory()
    try:
        yield made
    finally:
        os.close(made.descriptor)


def examine(data: bytes, **asked: object) -> Inspection:
    """Inspect some bytes once; see `Memory.examine`."""
    with memory() as file:
        return file.examine(data, **asked)  # type: ignore[arg-type]


def codes(inspected: Inspection) -> set[str]:
    """The codes of all findings."""
    return {found.code for found in inspected.report.findings}


def refusal(inspected: Inspection) -> str:
    """The code of the refusal; fails if there is none."""
    assert inspected.refusal is not None, inspected.report
    return inspected.refusal.code
