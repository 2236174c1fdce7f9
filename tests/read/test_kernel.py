"""Bounded reads of /proc and their typed failures."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbi_recover.read.evidence import kernel
from symbi_recover.read.evidence.kernel import CannotKnow, Why


def test_a_real_file_of_proc_is_read_whole():
    data = kernel.read_proc("self/stat")

    assert isinstance(data, bytes)
    assert data.startswith(str(os.getpid()).encode() + b" (")


def test_more_than_the_limit_is_not_cut_but_refused(tmp_path: Path):
    (tmp_path / "locks").write_bytes(b"x" * 11)

    assert kernel.read_proc("locks", limit=11, proc=str(tmp_path)) == b"x" * 11
    answer = kernel.read_proc("locks", limit=10, proc=str(tmp_path))
    assert isinstance(answer, CannotKnow)
    assert answer.why is Why.TOO_LARGE


def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path):
    (tmp_path / "real").write_bytes(b"x")
    (tmp_path / "locks").symlink_to("real")

    answer = kernel.read_proc("locks", proc=str(tmp_path))
    assert isinstance(answer, CannotKnow)
    assert answer.why is Why.FAILED


def test_a_fifo_in_place_of_the_file_does_not_block(tmp_path: Path):
    os.mkfifo(tmp_path / "locks")

    assert kernel.read_proc("locks", proc=str(tmp_path)) == b""


def test_a_file_of_another_file_system_is_covered():
    # The root directory stands in for proc: what is really proc below it is then the foreign file system.
    answer = kernel.read_proc("proc/locks", proc="/")

    assert isinstance(answer, CannotKnow)
    assert answer.why is Why.COVERED


def test_a_missing_file_and_a_missing_proc_are_answers(tmp_path: Path):
    for answer in (
        kernel.read_proc("no-such-file"),
        kernel.read_proc("locks", proc=str(tmp_path / "no-such-folder")),
    ):
        assert isinstance(answer, CannotKnow)
        assert answer.why is Why.MISSING


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (errno.EACCES, Why.DENIED),
        (errno.EPERM, Why.DENIED),
        (errno.ESRCH, Why.MISSING),
        (errno.ENOSYS, Why.UNSUPPORTED),
        (errno.EIO, Why.FAILED),
    ],
)
def test_the_reason_follows_the_error_number(number: int, why: Why):
    assert kernel.from_error(OSError(number, "x"), "it failed").why is why


def test_an_error_without_a_number_still_gives_a_sentence():
    assert kernel.from_error(OSError("odd"), "it failed").detail == "it failed: odd"


@pytest.mark.parametrize("text", [b"", b"-1", b"+1", b"1_0", b" 1", b"1 ", b"0x1", b"1" * 21, b"\xd9\xa1"])
def test_only_plain_digits_are_numbers(text: bytes):
    assert kernel.small_number(text) is None


@given(st.integers(min_value=0, max_value=(1 << 64) - 1))
def test_every_64_bit_number_is_read(value: int):
    assert kernel.small_number(b"%d" % value) == value
    assert kernel.small_number(b"%x" % value, base=16) == value


def test_a_number_above_the_bound_is_none():
    assert kernel.small_number(b"11", 10) is None
    assert kernel.small_number(b"10", 10) == 10
