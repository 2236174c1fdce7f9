"""Times are read by the runtime's relaxed grammar and written in its one form (journal.md section 6.2)."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbi_recover.wire.timestamp import canonical, from_nanoseconds, is_canonical, parse
from tests.property.strategies import fast, times
from tests.support.writer.text import stamp

WS = [
    chr(c)
    for c in (
        *range(9, 14),
        0x20,
        0x85,
        0xA0,
        0x1680,
        *range(0x2000, 0x200B),
        0x2028,
        0x2029,
        0x202F,
        0x205F,
        0x3000,
    )
]
white = st.text(WS, max_size=2)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@fast
@given(times)
def test_what_a_writer_prints_is_canonical_and_stays_as_it_is(text) -> None:
    if re.search(r"\.\d(?!\d\d)", text):  # one digit, which no writer prints
        assert not is_canonical(text)
    else:
        assert is_canonical(text)
        assert canonical(text) == re.sub(r"\.?(000)+Z|Z", "Z", text) if "." not in text else canonical(text)
    assert parse(text) is not None


@fast
@given(st.integers(-(10**19), 10**20))
def test_a_moment_is_printed_in_the_shortest_exact_form(nanos) -> None:
    if -62167219200 * 10**9 <= nanos < 253402300800 * 10**9 and nanos >= -62135596800 * 10**9:
        text = from_nanoseconds(nanos)
        assert text == stamp(nanos)
        assert is_canonical(text)


@fast
@given(
    st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)),  # noqa: DTZ001 -- the zone is added as text
    st.integers(-1439, 1439),
    st.lists(white, min_size=14, max_size=14),
    st.sampled_from("Tt "),
    st.sampled_from("+-\u2212"),
    st.booleans(),
)
def test_an_offset_and_blanks_name_the_same_moment(moment, offset, w, separator, sign, colon) -> None:
    minutes = abs(offset)
    between = ":" if colon else ""
    text = (
        f"{w[0]}{moment.year}{w[1]}-{w[2]}{moment.month}{w[3]}-{w[4]}{moment.day}{separator}"
        f"{w[5]}{moment.hour}{w[6]}:{w[7]}{moment.minute}{w[8]}:{w[9]}{moment.second}.{moment.microsecond:06d}"
        f"{w[10]}{sign}{minutes // 60:02d}{between}{w[11]}{minutes % 60:02d}{w[12]}"
    )
    shifted = moment - timedelta(minutes=minutes if sign == "+" else -minutes)
    wanted = stamp(((shifted.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)) * 1000)
    read = canonical(text)
    assert read is not None
    assert read.lstrip("0") == wanted.lstrip("0")


GOOD = {
    "2026-03-04T05:06:07Z": "2026-03-04T05:06:07Z",
    "2026-3-4t5:6:7z": "2026-03-04T05:06:07Z",
    "2026-03-04 05:06:07utc": "2026-03-04T05:06:07Z",
    "2026-03-04T05:06:07.120Z": "2026-03-04T05:06:07.120Z",
    "2026-03-04T05:06:07.1Z": "2026-03-04T05:06:07.100Z",
    "2026-03-04T05:06:07.1234567899Z": "2026-03-04T05:06:07.123456789Z",
    "2026-03-04T05:06:07+00:00": "2026-03-04T05:06:07Z",
    "2026-03-04T05:06:07+0530": "2026-03-03T23:36:07Z",
    "2026-03-04T05:06:07\u22120130": "2026-03-04T06:36:07Z",
    "2016-12-31T23:59:60Z": "2016-12-31T23:59:60Z",
    "2016-12-31T23:59:60.5Z": "2016-12-31T23:59:60.500Z",
    "2026-11-29T11:31:60Z": "2026-11-29T11:31:60Z",
    "2024-02-29T00:00:00Z": "2024-02-29T00:00:00Z",
    "+10000-01-01T00:00:00Z": "+10000-01-01T00:00:00Z",
    "-1-01-01T00:00:00Z": "-0001-01-01T00:00:00Z",
    "+000002026-03-04T05:06:07Z": "2026-03-04T05:06:07Z",
    "262142-12-31T23:59:59Z": None,
    "+262142-12-31T23:59:59Z": "+262142-12-31T23:59:59Z",
    "-262143-01-01T00:00:00Z": "-262143-01-01T00:00:00Z",
}
BAD = (
    "",
    "2026-03-04",
    "2026-03-04T05:06:07",
    "2026-03-04T05:06Z",
    "20260304T050607Z",
    "2026-02-29T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-00-01T00:00:00Z",
    "2026-01-00T00:00:00Z",
    "2026-01-01T24:00:00Z",
    "2026-01-01T00:60:00Z",
    "2026-01-01T00:00:61Z",
    "2026-01-01T00:00:00 .5Z",
    "2026-01-01T00:00:00.Z",
    "2026-01-01  00:00:00ZZ",
    "2026-01-01\t00:00:00Z",
    "2026-01-01T00:00:00+24:00",
    "2026-01-01T00:00:00+00:60",
    "2026-01-01T00:00:00+1:00",
    "2026-01-01T00:00:00CET",
    "+262143-01-01T00:00:00Z",
    "-262144-12-31T23:59:59Z",
    "-262143-01-01T00:00:00+00:01",
    "2026-01-01T00:00:00Z\x1c",
    "\uff12026-01-01T00:00:00Z",
    "2026-01-01T00:00:0\u0661Z",
    "+99999999999999999999-01-01T00:00:00Z",
    "2026-01-01T00:00:00Z\x00",
)


@pytest.mark.parametrize(("text", "printed"), GOOD.items())
def test_accepted_spellings_and_how_they_are_printed(text, printed) -> None:
    assert canonical(text) == printed


@pytest.mark.parametrize("text", BAD)
def test_refused_spellings(text) -> None:
    assert parse(text) is None
    assert not is_canonical(text)


def test_second_60_sorts_between_59_and_the_next_minute() -> None:
    """F-053."""
    spellings = [
        "2016-12-31T23:59:59.9Z",
        "2016-12-31T23:59:60Z",
        "2016-12-31T23:59:60.5Z",
        "2017-01-01T00:00:00Z",
    ]
    moments = [parse(text) for text in spellings]
    assert None not in moments
    assert sorted(moments) == moments


@pytest.mark.parametrize("size", [100_000, 1_000_000])
def test_a_hostile_time_is_answered_at_once(size) -> None:
    import time

    start = time.process_time()
    for text in (
        " " * size,
        "2026" + " " * size,
        "2026-01-01T00:00:00." + "1" * size,
        "+" + "0" * size,
        "2026-01-01T00:00:00+00" + ": " * size,
    ):
        assert parse(text) is None
    assert time.process_time() - start < 2
