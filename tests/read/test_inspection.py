"""What an inspection says about a journal: proven range, findings, and what was not checked (read/inspection.py)."""

import base64
import os

import pytest
from nacl.signing import SigningKey

from symbi_recover.core.errors import UnexaminedError
from symbi_recover.core.exits import Exit
from symbi_recover.core.report import KeyUsed
from symbi_recover.read import inspection
from symbi_recover.read.inspection import ExpectedHead, Question
from symbi_recover.wire.journal import MAX_JOURNAL, MAX_RECORD
from tests.support.sample_journals import KEY, RUN_ID, codes, examine, memory, refusal, small
from tests.support.writer import events
from tests.support.writer.journal import JournalWriter
from tests.support.writer.text import SEED, canonical, plain_hash, sign

_L = 2**252 + 27742317777372353535851937790883648493
NOW = "2026-03-04T06:00:00Z"


def left_out(answer) -> str:
    return " ".join(f"{item.what}: {item.why}" for item in answer.report.not_checked)


def test_what_holds_before_a_fault_is_stated_with_both_ends() -> None:
    lines = small(12).lines
    answer = examine(b"".join([*lines[:5], lines[6]]))
    proven = answer.report.proven
    assert (proven.first_sequence, proven.last_sequence, proven.bytes) == (0, 4, sum(map(len, lines[:5])))
    assert proven.head_hash == plain_hash(lines[4])
    assert proven.first_time == "2026-03-04T05:06:07Z"
    assert proven.last_time == "2026-03-04T05:06:07.548Z"


def test_what_a_signature_does_not_show_is_stated() -> None:
    """F-010: a history that a key holder wrote anew verifies, and the report says that it can."""
    lines = small(12)
    again = JournalWriter()
    for line in lines.lines[:6]:
        again.append_raw(line)
    for number in range(3):
        again.append(events.observations_collected(number + 100))
    answer = examine(again.data())
    assert answer.verdict is Exit.ATTENTION
    assert "whoever holds it can write another history" in left_out(answer)
    receipt = ExpectedHead(8, plain_hash(lines.lines[8]))
    contradicted = examine(again.data(), expected_head=receipt)
    assert contradicted.verdict is Exit.REFUSED
    assert "head_mismatch" in codes(contradicted)


def test_a_head_known_from_elsewhere_shows_a_cut_end() -> None:
    """F-003: other evidence of a longer journal makes the cut one a contradiction."""
    journal = small(12)
    head = ExpectedHead(11, plain_hash(journal.lines[11]))
    assert examine(journal.data(), expected_head=head, strict=True).verdict is Exit.OK
    for kept in range(1, 12):
        answer = examine(b"".join(journal.lines[:kept]), expected_head=head)
        assert answer.verdict is Exit.REFUSED
        found = next(f for f in answer.report.findings if f.code == "head_mismatch")
        assert "missing" in found.message
        assert str(kept - 1) in found.actual


@pytest.mark.parametrize(
    "data", [b"", b"\n", b'{"payload":', b"\n\n"], ids=["0 bytes", "a newline", "a fragment", "newlines"]
)
def test_a_journal_without_records_is_never_valid(data) -> None:
    """F-004: nothing there, only a fragment, and an empty line are told apart, and none is right."""
    for strict in (False, True):
        answer = examine(data, strict=strict)
        assert answer.verdict is Exit.REFUSED
    says = answer.refusal.finding.message
    expected = {b"": "journal_empty", b'{"payload":': "record_incomplete"}.get(data, "record_malformed")
    assert refusal(answer) == expected
    assert says
    if data == b'{"payload":':
        assert refusal(examine(data)) == "journal_empty"
        assert "11 bytes, no complete record" in examine(data).refusal.finding.message


LOW_ORDER = [
    "00" * 32,
    "00" * 31 + "80",
    "01" + "00" * 31,
    "01" + "00" * 30 + "80",
    "ec" + "ff" * 30 + "7f",
    "ec" + "ff" * 31,
    "ed" + "ff" * 30 + "7f",
    "ed" + "ff" * 31,
    "ee" + "ff" * 30 + "7f",
    "ee" + "ff" * 31,
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
]


@pytest.mark.parametrize("key", LOW_ORDER)
def test_a_low_order_key_is_refused_before_any_record_is_read(key) -> None:
    """F-019: all 14 encodings, with signatures that satisfy the plain equation."""
    journal = JournalWriter()
    identity = bytes.fromhex("01" + "00" * 31) + bytes(32)
    journal.append_payload(canonical(journal.payload(events.started())), signature=identity)
    for data in (journal.data(), b"no journal at all\n"):
        answer = examine(data, key=key)
        assert refusal(answer) == "key_weak"
        assert answer.refusal.record is None


def test_a_scalar_with_the_group_order_added_is_refused_each_time() -> None:
    """F-020: S + L, and S + 2L where it fits, for 100 good records."""
    with memory() as file:
        for number in range(100):
            journal = JournalWriter()
            payload = canonical(journal.payload(events.observations_collected(number)))
            good = sign(SEED, payload)
            scalar = int.from_bytes(good[32:], "little")
            for times in (1, 2, 3, 8):
                if scalar + times * _L >= 2**256:
                    continue
                forged = good[:32] + (scalar + times * _L).to_bytes(32, "little")
                changed = JournalWriter()
                changed.append_payload(payload, signature=forged)
                assert refusal(file.examine(changed.data())) == "signature_scalar"


@pytest.mark.parametrize(
    ("length", "said"), [(1, "1 byte,"), *((n, f"{n} bytes,") for n in (0, 32, 63, 65, 128))]
)
def test_a_signature_of_another_length_is_refused_with_its_length(length, said) -> None:
    """F-031."""
    journal = JournalWriter()
    payload = canonical(journal.payload(events.started()))
    journal.append_payload(payload, signature=(sign(SEED, payload) * 2)[:length])
    answer = examine(journal.data())
    assert refusal(answer) == "signature_length"
    assert f"has {said}" in answer.refusal.finding.message


@pytest.mark.parametrize(("tail", "said"), [(1, "the last 1 byte is an"), (2, "the last 2 bytes are an")])
def test_an_incomplete_record_is_told_with_its_length(tail, said) -> None:
    answer = examine(small().data() + b"{" * tail, strict=True)
    assert said in answer.refusal.finding.message


@pytest.mark.parametrize("text", ["", "null", "absent"])
def test_a_record_without_a_signature_is_refused(text) -> None:
    """F-029: nothing to check never counts as success."""
    payload = canonical(JournalWriter().payload(events.started()))
    member = {"": b',"signature":""', "null": b',"signature":null', "absent": b""}[text]
    answer = examine(b'{"payload":' + payload + member + b"}\n")
    assert refusal(answer) == ("signature_length" if text == "" else "record_malformed")


def test_without_a_key_nothing_is_said_to_be_verified(tmp_path) -> None:
    """F-029: no key is an answer of its own, not a failed verification."""
    path = small(3).write(tmp_path / "j")
    with pytest.raises(UnexaminedError) as refused:
        inspection.inspect(str(path), Question(run_id=RUN_ID), [])
    assert refused.value.code == "not_verified"


def test_the_key_that_signed_decides_among_several_and_a_foreign_one_never_does() -> None:
    """F-023: the deciding key comes from the operator; a journal signed anew with another key is refused."""
    foreign = small(6, writer=JournalWriter(seed=bytes(reversed(range(32)))))
    answer = examine(foreign.data())
    assert refusal(answer) == "signature_invalid"
    assert answer.report.key == KeyUsed(KEY, "given")


@pytest.mark.parametrize("spoil", [" ", "\n", "\t", "*", "\0", "=", "A"])
def test_nothing_foreign_is_skipped_in_the_base64_of_a_signature(spoil) -> None:
    """F-048: at every position of the text, the end included."""
    payload = canonical(JournalWriter().payload(events.started()))
    text = base64.b64encode(sign(SEED, payload)).decode()
    with memory() as file:
        for at in range(len(text) + 1):
            escaped = f"\\u{ord(spoil):04x}"
            member = f',"signature":"{text[:at]}{escaped}{text[at:]}"}}\n'
            answer = file.examine(b'{"payload":' + payload + member.encode())
            assert answer.verdict is Exit.REFUSED, at


def line_of(size: int, journal: JournalWriter) -> bytes:
    """An honest record of exactly that many bytes, line feed included."""
    bare = len(journal.append(events.improvement_output("")))
    journal.lines.pop()
    journal.sequence -= 1
    journal.previous = plain_hash(journal.lines[-1]) if journal.lines else "0" * 64
    journal.clock.nanos -= journal.clock.step
    line = journal.append(events.improvement_output("x" * (size - bare)))
    assert len(line) == size
    return line


@pytest.mark.parametrize("place", ["first", "middle", "last"])
@pytest.mark.parametrize("size", [MAX_RECORD - 1, MAX_RECORD, MAX_RECORD + 1])
def test_a_record_may_be_exactly_one_mebibyte(size, place) -> None:
    """F-018: allowed up to and including the limit; beyond it the line and the limit are named."""
    journal = JournalWriter()
    at = {"first": 0, "middle": 2, "last": 4}[place]
    for number in range(5):
        if number == at:
            line_of(size, journal)
        else:
            journal.append(events.observations_collected(number))
    answer = examine(journal.data())
    if size > MAX_RECORD:
        assert refusal(answer) == "record_oversized"
        assert answer.refusal.record == at
        assert "1048576" in answer.refusal.finding.message.replace(",", "")
    else:
        assert answer.report.recovery.verified_records == 5


@pytest.mark.parametrize("size", [MAX_RECORD - 1, MAX_RECORD, MAX_RECORD + 1])
def test_a_tail_may_be_exactly_one_mebibyte(size) -> None:
    """F-018."""
    answer = examine(small(3).data() + b"x" * size)
    if size > MAX_RECORD:
        assert refusal(answer) == "record_oversized"
    else:
        assert answer.report.recovery.unverified_tail_bytes == size


@pytest.mark.parametrize("size", [MAX_JOURNAL - 1, MAX_JOURNAL, MAX_JOURNAL + 1])
def test_a_file_may_be_exactly_64_mebibytes(size, tmp_path) -> None:
    """F-018: the size is judged before reading; what is within it is read to the first fault."""
    path = small(3).write(tmp_path / "journal")
    os.truncate(path, size)
    answer = inspection.inspect(str(path), Question(run_id=RUN_ID), [KeyUsed(KEY, "given")])
    assert refusal(answer) == ("journal_kind" if size > MAX_JOURNAL else "record_oversized")


def dated(*times: str) -> JournalWriter:
    journal = JournalWriter()
    journal.append(events.started(), timestamp=times[0])
    for time in times[1:-1]:
        journal.append(events.observations_collected(), timestamp=time)
    journal.append(events.terminated(), timestamp=times[-1])
    return journal


@pytest.mark.parametrize("last", ["2026-03-04T06:00:10Z", "2026-03-05T06:00:00Z", "2036-03-04T06:00:00Z"])
def test_a_record_from_the_future_is_a_remark_and_no_more(last) -> None:
    """F-055: nothing is refused on account of a clock."""
    answer = examine(dated("2026-03-04T05:00:00Z", last).data(), now=NOW)
    assert answer.verdict is Exit.OK
    assert codes(answer) == {"time_in_future"}


def test_a_clock_that_went_back_is_one_remark() -> None:
    """F-055: an hour back at a clock change, with two records written in that hour."""
    times = ("2026-03-04T03:00:00Z", "2026-03-04T02:00:00Z", "2026-03-04T02:30:00Z", "2026-03-04T02:10:00Z")
    answer = examine(dated(*times).data(), now=NOW)
    assert answer.verdict is Exit.OK
    assert [found.code for found in answer.report.findings] == ["time_backwards"]
    assert answer.report.findings[0].actual == "2026-03-04T02:00:00Z"


@pytest.mark.parametrize(
    "times",
    [
        ("2016-12-31T23:59:59Z", "2016-12-31T23:59:60Z", "2016-12-31T23:59:60.500Z", "2017-01-01T00:00:00Z"),
        (
            "2026-03-04T05:06:07Z",
            "2026-03-04T05:06:07.000001Z",
            "2026-03-04T05:06:07.001Z",
            "2026-03-04T05:06:08Z",
        ),
        ("2026-03-04T05:06:07+02:00", "2026-03-04T04:06:07Z", "2026-03-04T05:00:00Z"),
        ("9999-12-31T23:59:59Z", "+10000-01-01T00:00:00Z"),
        ("-0001-12-31T23:59:59Z", "0000-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("-0002-12-31T23:59:59Z", "-0001-01-01T00:00:00Z"),
    ],
)
def test_times_are_compared_as_moments_and_not_as_text(times) -> None:
    """F-053: second 60 comes after 59; other zones and years are moments as well."""
    assert "time_backwards" not in codes(examine(dated(*times).data()))


@pytest.mark.parametrize(
    "last", ["2026-03-04T08:00:00+03:00", "2026-03-04T05:59:59.999999Z", "-0001-01-01T00:00:00Z"]
)
def test_a_moment_that_is_past_is_not_called_future(last) -> None:
    assert "time_in_future" not in codes(examine(dated("0000-01-01T00:00:00Z", last).data(), now=NOW))


@pytest.mark.parametrize(
    "last", ["2026-03-04T05:00:00-03:00", "+10000-01-01T00:00:00Z", "2026-03-04T06:00:00.001Z"]
)
def test_a_moment_that_is_future_is_told_whatever_its_spelling(last) -> None:
    assert "time_in_future" in codes(examine(dated("2026-01-01T00:00:00Z", last).data(), now=NOW))


def test_a_key_may_be_any_point_of_large_order() -> None:
    other = SigningKey(bytes(range(1, 33))).verify_key
    assert refusal(examine(small(3).data(), key=bytes(other).hex())) == "signature_invalid"


def test_a_key_that_is_no_point_is_refused_before_any_record_is_read() -> None:
    answer = examine(b"no journal\n", key="02" + "00" * 31)
    assert refusal(answer) == "key_not_a_point"
