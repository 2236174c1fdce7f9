"""Spreading a journal over worker processes answers as one process does, or not at all (read/verify/pieces.py)."""

import os
import signal

import pytest

from symbi_recover.read.verify import journal as plain
from symbi_recover.read.verify import pieces
from symbi_recover.wire.journal import MAX_RECORD
from tests.support.sample_journals import Memory, memory, refusal, small
from tests.support.writer import events
from tests.support.writer.journal import JournalWriter

PIECE = 2 << 20


@pytest.fixture
def spread(monkeypatch):
    """Cut at small multiples, and count the journals that the parallel way answered."""
    answered = []
    whole = plain._spread

    def counted(*given, **named):
        run = whole(*given, **named)
        answered.append(run is not None)
        return run

    monkeypatch.setattr(plain, "_spread", counted)
    monkeypatch.setattr(plain, "PARALLEL_FROM", 1)
    return answered


def both(file: Memory, data: bytes, **asked):
    """The answers of one process and of two."""
    alone, together = (file.examine(data, workers=workers, want_digest=True, **asked) for workers in (1, 2))
    return alone, together


def same(file: Memory, data: bytes, **asked) -> bool:
    alone, together = both(file, data, **asked)
    return alone.report == together.report and alone.verdict == together.verdict


@pytest.mark.parametrize("piece", [1000, 1500, 4096, 9000])
def test_a_sound_journal_is_answered_in_parallel_with_the_same_report(piece, monkeypatch, spread) -> None:
    monkeypatch.setattr(pieces, "PIECE", piece)
    for records in (2, 9, 30):
        with memory() as file:
            assert same(file, small(records).data())
    assert spread[-1] is True


@pytest.mark.parametrize("at", ["a line end", "one before", "one after"])
def test_a_cut_between_pieces_may_fall_on_a_line_end(at, monkeypatch, spread) -> None:
    journal = small(12)
    shift = {"a line end": 0, "one before": -1, "one after": 1}[at]
    monkeypatch.setattr(pieces, "PIECE", sum(map(len, journal.lines[:5])) + shift)
    with memory() as file:
        assert same(file, journal.data())
    assert spread == [True]


def test_bytes_put_in_between_two_records_are_never_stepped_over(monkeypatch, spread) -> None:
    """A line too long for the piece it begins in belongs to no worker; its neighbours would meet without it."""
    monkeypatch.setattr(pieces, "PIECE", PIECE)
    lines = small(30).lines
    foreign = b"g" * (PIECE + MAX_RECORD + 5) + b"\n"
    for at in (1, 10, 29):
        with memory() as file:
            data = b"".join([*lines[:at], foreign, *lines[at:]])
            alone, together = both(file, data)
            assert refusal(alone) == refusal(together) == "record_oversized"
            assert alone.report == together.report


@pytest.mark.parametrize("size", [1, MAX_RECORD - 1, MAX_RECORD, MAX_RECORD + 1, PIECE - 20_000, PIECE + 1])
@pytest.mark.parametrize("end", [b"", b"\n"], ids=["tail", "line"])
def test_a_long_end_is_judged_alike(size, end, monkeypatch, spread) -> None:
    monkeypatch.setattr(pieces, "PIECE", PIECE)
    with memory() as file:
        assert same(file, small(12).data() + b"x" * size + end)


def test_numbers_that_the_fast_decoder_leaves_out_do_not_change_the_answer(monkeypatch, spread) -> None:
    monkeypatch.setattr(pieces, "PIECE", 900)
    journal = JournalWriter()
    journal.append(events.started())
    journal.append(events.observations_collected(1, 2**64 - 1))
    journal.append(events.response_delivery_started(request_bytes=2**64 - 1))
    journal.append(events.terminated())
    with memory() as file:
        assert same(file, journal.data())


@pytest.mark.parametrize(
    "break_it",
    [
        lambda journal: journal.append(events.observations_collected(), entry={"sequence": 99}),
        lambda journal: journal.append(events.observations_collected(), previous_hash="f" * 64),
        lambda journal: journal.append(events.observations_collected(), run_id=events.DISPATCH),
        lambda journal: journal.append(events.observations_collected(), entry={"agent_id": events.DISPATCH}),
        lambda journal: journal.append(events.observations_collected(), version=1),
        lambda journal: journal.append_payload(b"{}"),
        lambda journal: journal.append_payload(b"{}", signature=b"0" * 64),
        lambda journal: journal.append_raw(b"\n"),
        lambda journal: journal.append(events.started()),
    ],
    ids=["sequence", "hash", "run", "agent", "version", "payload", "signature", "empty line", "second start"],
)
@pytest.mark.parametrize("place", [0, 1, 9, 17])
def test_a_fault_anywhere_is_the_same_fault(break_it, place, monkeypatch, spread) -> None:
    monkeypatch.setattr(pieces, "PIECE", 1500)
    journal = small(place, end=False) if place else JournalWriter()
    break_it(journal)
    for number in range(8):
        journal.append(events.observations_collected(number))
    with memory() as file:
        assert same(file, journal.data())
        assert same(file, journal.data(), run_id=None)


def test_a_worker_that_dies_leaves_the_answer_to_one_process(monkeypatch, spread) -> None:
    monkeypatch.setattr(pieces, "PIECE", 1500)
    here = os.getpid()
    verify_piece = pieces._verify_piece

    def dying(file, chain, start):
        if os.getpid() != here and start >= 3000:
            os.kill(os.getpid(), signal.SIGKILL)
        return verify_piece(file, chain, start)

    monkeypatch.setattr(pieces, "_verify_piece", dying)
    with memory() as file:
        assert same(file, small(20).data())
    assert spread == [False]


def test_a_defect_in_a_worker_is_not_told_by_a_traceback(monkeypatch, spread, capfd) -> None:
    monkeypatch.setattr(pieces, "PIECE", 1500)
    here = os.getpid()
    verify_piece = pieces._verify_piece

    def failing(file, chain, start):
        if os.getpid() != here:
            raise RecursionError
        return verify_piece(file, chain, start)

    monkeypatch.setattr(pieces, "_verify_piece", failing)
    with memory() as file:
        assert same(file, small(20).data())
    assert spread == [False]
    assert capfd.readouterr().err == ""


def test_a_clock_that_goes_back_between_two_pieces_is_told_as_by_one_process(monkeypatch, spread) -> None:
    journal = JournalWriter()
    journal.append(events.started())
    for hour in (9, 8, 7, 7, 6):
        journal.append(events.observations_collected(), timestamp=f"2026-03-04T{hour:02d}:00:00Z")
    ends = [sum(map(len, journal.lines[:count])) for count in range(2, 6)]
    for end in ends:
        monkeypatch.setattr(pieces, "PIECE", end)
        with memory() as file:
            alone, together = both(file, journal.data())
        assert alone.report == together.report
        assert "3 records" in next(f.message for f in alone.report.findings if f.code == "time_backwards")
    assert spread == [True] * len(ends)
