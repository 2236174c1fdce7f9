"""A refused journal is named by its kind of damage, never beyond what was seen (read/verify/diagnosis.py)."""

import time

import pytest

from tests.support.sample_journals import examine, memory, refusal, small
from tests.support.writer import events
from tests.support.writer.journal import JournalWriter


def numbered(records: int = 60) -> list[bytes]:
    return list(small(records).lines)


def test_a_double_write_a_gap_an_exchange_and_a_wrong_link_have_four_different_reasons() -> None:
    """F-006: number 44 written twice, 44 missing, 44 and 45 swapped, 44 with a wrong previous hash."""
    lines = numbered()
    forged = small(44, end=False)
    forged.append(events.observations_collected(), previous_hash="f" * 64)
    journals = {
        "record_repeated": [*lines[:45], lines[44], *lines[45:]],
        "records_missing": [*lines[:44], *lines[45:]],
        "records_out_of_order": [*lines[:44], lines[45], lines[44], *lines[46:]],
        "link_mismatch": [*forged.lines],
    }
    for code, changed in journals.items():
        answer = examine(b"".join(changed))
        assert refusal(answer) == code
        assert answer.verdict == 1
        assert "tamper" not in answer.refusal.finding.message


@pytest.mark.parametrize(
    ("first", "last", "says"),
    [
        (44, 44, "record 44 is missing"),
        (44, 46, "records 44 to 46 are missing"),
        (1, 57, "records 1 to 57 are missing"),
    ],
)
def test_missing_records_are_named_as_a_range(first, last, says) -> None:
    """F-006."""
    lines = numbered()
    answer = examine(b"".join([*lines[:first], *lines[last + 1 :]]))
    assert answer.refusal.finding.message.startswith(says)


@pytest.mark.parametrize("records", [2, 12])
def test_line_ends_changed_on_the_way_are_told_as_that(records) -> None:
    """F-057: refused with a hint what happened and what to ask for."""
    answer = examine(small(records).data().replace(b"\n", b"\r\n"))
    assert refusal(answer) == "link_mismatch"
    assert "CR LF" in answer.refusal.hint
    assert "binary" in answer.refusal.hint


def test_a_sound_journal_with_one_fault_is_not_said_to_have_changed_line_ends() -> None:
    lines = numbered(12)
    assert examine(b"".join([*lines[:4], *lines[5:]])).refusal.hint is None


def test_hostile_lines_after_the_fault_cost_no_time() -> None:
    """They are looked at unverified, so anybody can put them there."""
    lines = numbered(3)
    odd = b'{"payload":[' + b"1," * 400_000 + b"1]}\n"
    start = time.process_time()
    with memory() as file:
        answer = file.examine(lines[0] + lines[2] + odd * 20)
    assert refusal(answer) == "records_missing"
    assert time.process_time() - start < 3


def test_records_of_another_run_are_named_as_that() -> None:
    """F-008: pasted, replayed, joined; the file name never decides which run it is."""
    here = small(12)
    other = JournalWriter(run_id="99999999-9999-4999-8999-999999999999")
    small(12, writer=other)
    pasted = [*here.lines[:3], other.lines[3], *here.lines[4:]]
    replayed = [*here.lines, here.lines[2]]
    joined = [*here.lines, *other.lines]
    assert refusal(examine(b"".join(pasted))) == "record_run"
    assert refusal(examine(b"".join(replayed))) == "record_repeated"
    assert refusal(examine(b"".join(joined))) == "record_run"
    assert refusal(examine(other.data(), path=here.name)) == "record_run"


def test_records_of_another_agent_are_named_as_that() -> None:
    """F-008."""
    here = small(12)
    other = small(12, writer=JournalWriter(agent_id="99999999-9999-4999-8999-999999999999"))
    assert refusal(examine(b"".join([*here.lines[:3], other.lines[3]]))) == "record_principal"
