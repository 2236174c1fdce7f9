"""A journal that is being written is never called damaged (F-001), and one that is swapped is one file (F-073).

Verdicts are about the bytes up to the size at open. A writer that moves between open and the last read is told as
such; nothing partial is printed.
"""

import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from symbi_recover.cli import guard
from symbi_recover.core.errors import UnexaminedError
from symbi_recover.core.exits import Exit
from symbi_recover.core.report import KeyUsed
from symbi_recover.read import inspection
from symbi_recover.read.evidence.opener import OpenedFile
from symbi_recover.read.inspection import Inspection, Question
from symbi_recover.read.verify import journal, pieces
from tests.support.cli import run
from tests.support.sample_journals import KEY, RUN_ID, refusal, small
from tests.support.writer.text import RUN

LOOPS = 200
FORK = multiprocessing.get_context("fork")


def look(path: Path, **asked: object) -> Inspection:
    question = Question(**{"run_id": RUN_ID, **asked})  # type: ignore[arg-type]
    return inspection.inspect(str(path), question, [KeyUsed(KEY, "given")])


def write_slowly(path: Path, lines: list[bytes], stop: "multiprocessing.synchronize.Event") -> None:
    """Append line after line, torn in two writes and synced, round and round, until told to stop."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    while not stop.is_set():
        os.ftruncate(descriptor, len(lines[0]))
        for line in lines[1:]:
            os.write(descriptor, line[: len(line) // 2])
            if stop.wait(0.002):
                break
            os.write(descriptor, line[len(line) // 2 :])
            os.fdatasync(descriptor)


@contextmanager
def writer(path: Path, lines: list[bytes]) -> Iterator[None]:
    stop = FORK.Event()
    process = FORK.Process(target=write_slowly, args=(path, lines, stop))
    process.start()
    try:
        yield
    finally:
        stop.set()
        process.join(timeout=10)
        process.kill()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_journal_that_is_being_written_is_never_called_damaged(workers, tmp_path, monkeypatch) -> None:
    """F-001: 200 looks while a writer appends hundreds of records a second."""
    monkeypatch.setattr(journal, "PARALLEL_FROM", 1)
    monkeypatch.setattr(pieces, "PIECE", 4096)
    lines = small(40).lines
    path = tmp_path / "journal.jsonl"
    path.write_bytes(lines[0])
    seen = set()
    with writer(path, lines):
        for _ in range(LOOPS if workers == 1 else LOOPS // 5):
            answer = look(path, workers=workers)
            if answer.refusal is not None:
                seen.add(answer.refusal.code)
            else:
                assert answer.verdict in (Exit.ATTENTION, Exit.OK)
                seen.add("a stable snapshot")
    assert seen <= {"a stable snapshot", "journal_changed"}
    assert workers > 1 or "a stable snapshot" in seen


@contextmanager
def unguarded() -> Iterator[None]:
    """Let this process change files although a reading command runs in it: it plays the writer."""
    watching, guard._State.watching = guard._State.watching, 0
    try:
        yield
    finally:
        guard._State.watching = watching


def at_last_read(monkeypatch, act) -> None:
    """Do something after the last byte was read, and before the file is looked at again."""
    unchanged = OpenedFile.unchanged

    def acting(self: OpenedFile) -> bool:
        with unguarded():
            act()
        return unchanged(self)

    monkeypatch.setattr(OpenedFile, "unchanged", acting)


def between_open_and_read(monkeypatch, act) -> None:
    blocks = OpenedFile.blocks

    def acting(self: OpenedFile, start: int, end: int) -> Iterator[bytes]:
        with unguarded():
            act()
        return blocks(self, start, end)

    monkeypatch.setattr(OpenedFile, "blocks", acting)


@pytest.mark.parametrize("moment", [at_last_read, between_open_and_read])
@pytest.mark.parametrize(
    "kind", ["finishes", "grows by a part", "is cut", "is touched", "is rewritten in place"]
)
def test_a_writer_that_moves_during_the_look_is_told_as_such(kind, moment, tmp_path, monkeypatch) -> None:
    """F-001: a reason of its own, exit 1, no partial verdict."""
    lines = small(8).lines
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"".join(lines[:7]))
    done = []

    def act() -> None:
        if done:
            return
        done.append(kind)
        with path.open("r+b") as file:
            if kind == "finishes":
                file.seek(0, 2)
                file.write(lines[7])
            elif kind == "grows by a part":
                file.seek(0, 2)
                file.write(lines[7][:30])
            elif kind == "is cut":
                file.truncate(len(b"".join(lines[:6])))
            elif kind == "is rewritten in place":
                file.write(b"".join(lines[:7]))
        os.utime(path, ns=(1, 1) if kind == "is touched" else (2, 2))

    moment(monkeypatch, act)
    ran = run("audit", "inspect", path, "--run-id", RUN, "--public-key", KEY, "--format", "text")
    assert done == [kind]
    assert ran.rc == 1
    assert ran.out == b""
    assert "journal changed during verification; inspect a stable snapshot" in ran.first_error_line
    assert "Work on a copy" in ran.err.decode()


def test_show_does_not_mix_two_states_either(tmp_path, monkeypatch) -> None:
    path = small(5).write(tmp_path / "journal.jsonl")
    at_last_read(monkeypatch, lambda: os.utime(path, ns=(1, 1)))
    ran = run("audit", "show", path, "--format", "text")
    assert (ran.rc, ran.out) == (3, b"")
    assert b"file_changed" in ran.err


def swap(folder: Path, stop: "multiprocessing.synchronize.Event") -> None:
    """Give one name to two journals, a link, a folder and nothing, round and round."""
    name, following = folder / "name", folder / "next"
    while not stop.is_set():
        for source in ("good", "bad", "good"):
            os.link(folder / source, following)
            following.rename(name)
            os.sched_yield()
        name.unlink()
        name.symlink_to("good")
        name.unlink()
        name.mkdir()
        name.rmdir()


def test_every_verdict_is_about_one_opened_file_while_the_name_is_swapped(tmp_path) -> None:
    """F-073: thousands of times a second, while it is looked at a thousand times, or until it was seen to change."""
    small(6).write(tmp_path / "good")
    small(9, end=False).write(tmp_path / "bad")
    stop = FORK.Event()
    process = FORK.Process(target=swap, args=(tmp_path, stop))
    process.start()
    verdicts = set()
    try:
        for number in range(50_000):
            if number >= 1000 and len(verdicts) > 2:
                break
            try:
                answer = look(tmp_path / "name", want_digest=True)
            except UnexaminedError as error:
                verdicts.add(error.code)
                continue
            recovery = answer.report.recovery
            facts = recovery and (answer.verdict, recovery.verified_records, recovery.journal_complete)
            verdicts.add(facts or refusal(answer))
        assert process.is_alive()
    finally:
        stop.set()
        process.join(timeout=10)
        process.kill()
    allowed = {(Exit.OK, 6, True), (Exit.ATTENTION, 9, False)}
    # linking and renaming changes the change time of the opened file itself, so most looks are refused for that
    assert verdicts <= {*allowed, "file_missing", "file_link", "journal_kind", "journal_changed"}
    assert len(verdicts) > 2
