"""Births, starts, and whether the clock is set."""

import ctypes
import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbi_recover.read.evidence import clock, processes
from symbi_recover.read.evidence.kernel import CannotKnow, Why


def statx(mask: int, seconds: int, nanoseconds: int) -> bytes:
    return struct.pack("=I76xqI", mask, seconds, nanoseconds).ljust(256, b"\0")


def test_a_birth_time_is_found_in_the_structure():
    assert clock.parse_birth(statx(0xFFF, 1700000000, 5)) == clock.BirthTime(1700000000_000000005)


@pytest.mark.parametrize(
    ("mask", "seconds", "nanoseconds"), [(0x7FF, 1, 0), (0xFFF, 0, 0), (0xFFF, -1, 0), (0xFFF, 1, 10**9)]
)
def test_an_absent_or_zero_birth_time_is_none(mask: int, seconds: int, nanoseconds: int):
    answer = clock.parse_birth(statx(mask, seconds, nanoseconds))

    assert isinstance(answer, CannotKnow)
    assert answer.why is Why.FILE_SYSTEM


@given(st.binary(max_size=300))
def test_no_bytes_make_the_parser_raise(data: bytes):
    clock.parse_birth(data)


def test_a_file_made_now_was_born_between_its_neighbours(tmp_path: Path):
    files = [tmp_path / str(number) for number in range(3)]
    births = []
    for path in files:
        path.write_bytes(b"")
        with path.open("rb") as stream:
            births.append(clock.birth_time(stream.fileno()))
    if any(isinstance(birth, CannotKnow) for birth in births):
        pytest.skip("the file system of the temporary folder keeps no birth time")

    known = [birth.unix_ns for birth in births if isinstance(birth, clock.BirthTime)]
    assert known == sorted(known)
    # Writing later moves mtime and ctime, not the birth.
    files[0].write_bytes(b"more")
    assert known[0] <= files[0].stat().st_mtime_ns
    with files[0].open("rb") as stream:
        assert clock.birth_time(stream.fileno()) == births[0]


def test_a_descriptor_opened_for_its_path_alone_will_do(tmp_path: Path):
    descriptor = os.open(tmp_path, os.O_PATH)
    try:
        answer = clock.birth_time(descriptor)
    finally:
        os.close(descriptor)
    assert isinstance(answer, clock.BirthTime) or answer.why is Why.FILE_SYSTEM


def test_a_closed_descriptor_is_an_answer(tmp_path: Path):
    descriptor = os.open(tmp_path, os.O_PATH)
    os.close(descriptor)

    answer = clock.birth_time(descriptor)
    assert isinstance(answer, CannotKnow)
    assert answer.why is Why.FAILED


def test_the_clocks_state_is_the_kernels_word():
    answer = clock.clock_state()

    assert isinstance(answer, clock.ClockState)
    assert answer.state in range(6)
    assert answer.synchronised is (answer.state != 5)


def test_asking_for_the_clocks_state_sets_nothing(monkeypatch: pytest.MonkeyPatch):
    given_modes: list[int] = []

    class Library:
        @staticmethod
        def adjtimex(buffer: "ctypes.Array[ctypes.c_char]") -> int:
            given_modes.append(int.from_bytes(buffer.raw[:4], "little"))
            return 0

    monkeypatch.setattr(clock, "_libc", lambda: (ctypes, Library))
    assert clock.clock_state() == clock.ClockState(synchronised=True, state=0)
    assert given_modes == [0]


def test_a_library_without_the_calls_is_unsupported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(clock, "_libc", lambda: (ctypes, object()))
    for answer in (clock.clock_state(), clock.birth_time(0)):
        assert isinstance(answer, CannotKnow)
        assert answer.why is Why.UNSUPPORTED


def test_a_start_is_an_interval_of_a_second_and_a_tick():
    start = clock.started_at(1000, 250, 100)
    assert start == clock.StartTime(1002_500000000, 1003_510000001)


@given(st.integers(0, 10**9 - 1), st.integers(10**9, 2 * 10**9), st.integers(0, 10**15), st.integers(1, 1000))
def test_the_true_start_lies_in_the_interval(part: int, boot: int, after_ns: int, per_second: int):
    true_start = boot * 10**9 + part + after_ns
    start = clock.started_at(boot, after_ns * per_second // 10**9, per_second)
    assert start.earliest_ns <= true_start < start.latest_ns


def test_this_process_started_after_the_boot():
    boot = clock.boot_time()
    me = processes.read_identity(os.getpid())
    assert isinstance(me, processes.ProcessStat)
    start = clock.process_time(me.start_ticks)
    assert isinstance(boot, clock.StartTime)
    assert isinstance(start, clock.StartTime)

    assert boot.earliest_ns < start.earliest_ns < start.latest_ns


def test_no_boot_second_is_no_start(tmp_path: Path):
    assert isinstance(clock.boot_time(str(tmp_path)), CannotKnow)
