"""No change to a journal goes unnoticed: every bit, every byte, every cut, every pair of lines.

What is allowed for a changed file, besides being refused: its end became an unauthenticated tail, or the payload and
signature texts are all as they were and the layout is reported as not the writer's. The ordinary run takes every
STEP-th place, with another offset for each kind of change; the slow run takes them all.
"""

import itertools
from collections.abc import Iterable, Iterator

import pytest

from symbi_recover.core.exits import Exit
from symbi_recover.read.inspection import Inspection
from tests.support.sample_journals import Memory, codes, memory, refusal, small
from tests.support.writer.journal import JournalWriter

STEP = 29
RECORDS = 20

Variants = Iterator[tuple[str, bytes]]


def journal() -> bytes:
    data = small(RECORDS).data()
    assert data.count(b"\n") == RECORDS
    return data


def flipped(data: bytes, places: Iterable[int]) -> Variants:
    for place in places:
        changed = bytearray(data)
        changed[place // 8] ^= 1 << place % 8
        yield f"bit {place % 8} of byte {place // 8}", bytes(changed)


def deleted(data: bytes, places: Iterable[int]) -> Variants:
    return ((f"byte {place} deleted", data[:place] + data[place + 1 :]) for place in places)


def doubled(data: bytes, places: Iterable[int]) -> Variants:
    return (
        (f"byte {place} doubled", data[:place] + data[place : place + 1] + data[place:]) for place in places
    )


def cut(data: bytes, places: Iterable[int]) -> Variants:
    return ((f"cut to {place} bytes", data[:place]) for place in places)


KINDS = {"flip": (flipped, 8), "delete": (deleted, 1), "double": (doubled, 1), "cut": (cut, 1)}


def signed_texts(data: bytes) -> list[tuple[bytes, bytes]]:
    """Payload and signature of each line by plain text search, knowing nothing of the product."""
    pairs = []
    for line in data.splitlines():
        start, end = line.find(b'{"entry"'), line.rfind(b'"signature"')
        payload = line[start:end].rstrip(b" \t\r,")
        pairs.append((payload, line[end + len(b'"signature"') :].strip(b' \t\r:"}')))
    return pairs


def fault(inspected: Inspection, original: bytes, changed: bytes) -> str | None:
    """What is wrong with an answer about a changed journal; None if nothing is."""
    if inspected.verdict is Exit.REFUSED:
        return None if inspected.refusal is not None else "refused without a reason"
    recovery = inspected.report.recovery
    if recovery is None:
        return "neither refused nor reported"
    held = recovery.verified_bytes
    if held + recovery.unverified_tail_bytes != len(changed):
        return "bytes are missing from the count"
    if changed[:held] == original[:held]:  # a prefix of the original: whatever follows is a tail or gone
        if recovery.journal_complete or inspected.verdict is not Exit.ATTENTION:
            return "a part is called complete"
        told = "tail_unauthenticated" in codes(inspected)
        return None if told is bool(recovery.unverified_tail_bytes) else "the tail is not told"
    if signed_texts(changed) != signed_texts(original):
        return "a changed payload or signature verifies"
    return None if "layout_not_writers" in codes(inspected) else "a changed layout is not remarked"


def assert_noticed(file: Memory, variants: Variants, original: bytes) -> int:
    tried = 0
    for name, changed in variants:
        tried += 1
        wrong = fault(file.examine(changed), original, changed)
        assert wrong is None, f"{name}: {wrong}"
    return tried


def test_the_unchanged_journal_is_complete_and_unremarked() -> None:
    with memory() as file:
        inspected = file.examine(journal())
    assert inspected.verdict is Exit.OK
    assert not inspected.report.findings


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_journal_is_never_complete_and_unremarked(kind) -> None:
    """F-012, F-015: a sample that meets every line, and every byte of the last, which no later line commits to."""
    data = journal()
    variants, per_byte = KINDS[kind]
    size = len(data) * per_byte
    last = (len(data) - len(small(RECORDS).lines[-1])) * per_byte
    places = sorted({*range(len(kind), size, STEP * per_byte + 1), *range(last, size, per_byte * 2 - 1)})
    with memory() as file:
        assert assert_noticed(file, variants(data, places), data) > 500


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_every_single_change_is_noticed(kind, part) -> None:
    """F-015: exhaustively."""
    data = journal()
    variants, per_byte = KINDS[kind]
    with memory() as file:
        assert_noticed(file, variants(data, range(part, len(data) * per_byte, 4)), data)


def test_every_pair_of_lines_swapped_is_refused() -> None:
    """F-015: whichever two records change places, the first of them is the first fault."""
    lines = small(RECORDS).lines
    with memory() as file:
        for one, other in itertools.combinations(range(RECORDS), 2):
            swapped = list(lines)
            swapped[one], swapped[other] = lines[other], lines[one]
            answer = file.examine(b"".join(swapped))
            assert refusal(answer) == "records_out_of_order", (one, other)
            assert answer.refusal.record == one


@pytest.mark.parametrize("place", ["first", "middle", "last"])
@pytest.mark.parametrize(
    "bend",
    {
        "a blank after the colon": lambda line: line.replace(b'{"payload":', b'{"payload": ', 1),
        "a leading blank": lambda line: b" " + line,
        "a trailing tab": lambda line: line[:-1] + b"\t\n",
        "CR before LF": lambda line: line[:-1] + b"\r\n",
        "members swapped": lambda line: (
            b'{"signature":'
            + line[line.rfind(b',"signature":') + 13 : -2]
            + b","
            + line[1 : line.rfind(b',"sig')]
            + b"}\n"
        ),
        "an escape in a name": lambda line: line.replace(b'"payload"', b'"\\u0070ayload"', 1),
        "an escape in the signature": lambda line: (
            line[:-5] + b"\\u003d" + line[-4:]
            if line[-5:-3] == b"=="
            else line.replace(b"==", b"\\u003d=", 1)
        ),
    }.items(),
    ids=lambda item: item[0],
)
def test_a_layout_that_is_not_the_writers_is_told(bend, place) -> None:
    """F-035: in the last line a remark, exit 1 when strict; in an earlier line the next link does not fit."""
    lines = small(RECORDS).lines
    at = {"first": 0, "middle": 9, "last": RECORDS - 1}[place]
    bent = [*lines[:at], bend[1](lines[at]), *lines[at + 1 :]]
    assert bent[at] != lines[at]
    with memory() as file:
        plain, strict = (file.examine(b"".join(bent), strict=strict) for strict in (False, True))
    if place == "last":
        assert plain.verdict is Exit.OK
        assert codes(plain) == {"layout_not_writers"}
        assert strict.verdict is Exit.REFUSED
        assert "layout_not_writers" in codes(strict)
    else:
        assert refusal(plain) == refusal(strict) == "link_mismatch"
        assert plain.refusal.record == at + 1


def test_a_three_record_journal_cut_anywhere_is_a_prefix_and_a_tail() -> None:
    """F-012: at record ends the shorter prefix, elsewhere a counted tail; strict mode refuses the tail."""
    data = small(3).data()
    ends = list(itertools.accumulate(map(len, small(3).lines)))
    with memory() as file:
        for size in range(len(data)):
            held = max((end for end in ends if end <= size), default=0)
            answer, strict = (file.examine(data[:size], strict=strict) for strict in (False, True))
            if held == 0:
                assert refusal(answer) == "journal_empty", size
                assert strict.verdict is Exit.REFUSED
                continue
            recovery = answer.report.recovery
            assert (recovery.verified_bytes, recovery.unverified_tail_bytes) == (held, size - held)
            assert answer.verdict is Exit.ATTENTION
            assert strict.verdict is (Exit.ATTENTION if size == held else Exit.REFUSED), size
            assert size == held or refusal(strict) == "record_incomplete"


def test_a_cut_at_a_record_end_is_never_complete() -> None:
    """F-003: each of the 11 earlier record ends of a complete run of 12; the report says what cannot be known."""
    lines = small(12).lines
    with memory() as file:
        for kept in range(1, 12):
            answer = file.examine(b"".join(lines[:kept]))
            assert answer.verdict is Exit.ATTENTION
            assert not answer.report.recovery.journal_complete
            assert "run_incomplete" in codes(answer)
            assert any("cut at the end of a record" in left.why for left in answer.report.not_checked)


def test_records_cut_off_the_front_are_refused_at_the_first_line() -> None:
    """F-005: the first record has number 0 and a previous hash of 64 zeros."""
    lines = small(12).lines
    with memory() as file:
        for dropped in range(1, 12):
            answer = file.examine(b"".join(lines[dropped:]))
            assert refusal(answer) == "records_missing"
            assert answer.refusal.record == 0
            last = dropped - 1
            wanted = "record 0 is" if last == 0 else f"records 0 to {last} are"
            assert answer.refusal.finding.message.startswith(wanted)
        renumbered = JournalWriter()
        renumbered.append(
            lines and {"ObservationsCollected": {"iteration": 1, "observation_count": 1}},
            previous_hash="1" * 64,
        )
        assert refusal(file.examine(renumbered.data())) == "link_mismatch"
