"""Times as the runtime reads and writes them (journal.md section 6.2).

`is_canonical` knows the writer's form and is cheap; `parse` knows the whole relaxed grammar. Neither judges the
clock: a time in a record is a claim of its signer.
"""

import re
from functools import cache
from typing import NamedTuple

_WS = "[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*"
_CANONICAL = re.compile(
    r"[0-9]{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31|02-29)"
    r"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:(?:[0-5][0-9]|60)"
    r"(?:\.(?:[0-9]{3}|[0-9]{6}|[0-9]{9}))?Z"
)
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_YEARS = range(-262143, 262143)
_MINUTES_A_DAY = 1440


class Instant(NamedTuple):
    """A moment in UTC; compares in order. A leap second is second 60 of its minute."""

    day: int
    """Days since 0000-03-01, proleptic Gregorian."""
    minute: int
    second: int
    nanosecond: int


@cache
def _relaxed() -> re.Pattern[str]:
    """The whole grammar; made when first needed, for compiling it takes longer than a small inspection."""
    return re.compile(
        rf"{_WS}(?P<year>[0-9]{{1,4}}|[+-][0-9]+){_WS}-{_WS}(?P<month>[0-9]{{1,2}}){_WS}-{_WS}(?P<day>[0-9]{{1,2}})[Tt ]"
        rf"{_WS}(?P<hour>[0-9]{{1,2}}){_WS}:{_WS}(?P<minute>[0-9]{{1,2}}){_WS}:{_WS}(?P<second>[0-9]{{1,2}})"
        rf"(?:\.(?P<fraction>[0-9]+))?{_WS}(?P<zone>[Zz]|[Uu][Tt][Cc]|"
        rf"(?P<sign>[+\-\u2212])(?P<zone_hour>[0-9]{{2}})(?::|{_WS[:-1]})*(?P<zone_minute>[0-9]{{2}})){_WS}"
    )


def is_canonical(text: str) -> bool:
    """Whether `text` is a time in the form the runtime writes, for years 0 to 9999."""
    return _CANONICAL.fullmatch(text) is not None and (text[5:10] != "02-29" or _leap(int(text[:4])))


def parse(text: str) -> Instant | None:
    """The moment that `text` names, or None where the runtime refuses it."""
    match = _relaxed().fullmatch(text)
    if match is None:
        return None
    digits = match.group("year").lstrip("+-").lstrip("0")
    if len(digits) > 6:
        return None
    year = int(digits or "0") * (-1 if match.group("year").startswith("-") else 1)
    month, day, hour, minute, second = (
        int(match.group(name)) for name in ("month", "day", "hour", "minute", "second")
    )
    if year not in _YEARS or not 1 <= month <= 12 or not 1 <= day <= _days_in_month(year, month):
        return None
    if hour > 23 or minute > 59 or second > 60:
        return None
    offset = 0
    if match.group("sign"):
        zone_hour, zone_minute = int(match.group("zone_hour")), int(match.group("zone_minute"))
        offset = zone_hour * 60 + zone_minute
        if zone_minute > 59 or offset >= _MINUTES_A_DAY:
            return None
        offset *= 1 if match.group("sign") == "+" else -1
    moment = hour * 60 + minute - offset
    days = _day_number(year, month, day) + moment // _MINUTES_A_DAY
    if not _day_number(-262143, 1, 1) <= days <= _day_number(262142, 12, 31):
        return None
    fraction = (match.group("fraction") or "")[:9].ljust(9, "0")
    return Instant(days, moment % _MINUTES_A_DAY, second, int(fraction))


def earlier(one: str, other: str, *, canonical: bool = False) -> bool:
    """Whether `one` names a moment before `other`; False if either is no time.

    Args:
        one: a time as written.
        other: another.
        canonical: known to be in the writer's form both, so that their texts compare like the moments.
    """
    if canonical or (is_canonical(one) and is_canonical(other)):
        return one[:-1] < other[:-1]
    first, second = parse(one), parse(other)
    return first is not None and second is not None and first < second


def canonical(text: str) -> str | None:
    """`text` in the writer's form, or None where the runtime refuses it."""
    instant = parse(text)
    if instant is None:
        return None
    return _spelled(instant)


def _spelled(instant: Instant) -> str:
    year, month, day = _date(instant.day)
    fraction = f"{instant.nanosecond:09d}"
    while fraction.endswith("000"):
        fraction = fraction[:-3]
    shown = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+05d}"
    return (
        f"{shown}-{month:02d}-{day:02d}T{instant.minute // 60:02d}:{instant.minute % 60:02d}:{instant.second:02d}"
        f"{'.' + fraction if fraction else ''}Z"
    )


def _leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _days_in_month(year: int, month: int) -> int:
    return 29 if month == 2 and _leap(year) else _DAYS[month - 1]


def _day_number(year: int, month: int, day: int) -> int:
    shifted = year - (month <= 2)
    return (
        365 * shifted
        + shifted // 4
        - shifted // 100
        + shifted // 400
        + (153 * ((month + 9) % 12) + 2) // 5
        + day
        - 1
    )


def _date(number: int) -> tuple[int, int, int]:
    era, rest = divmod(number, 146097)
    year_of_era = (rest - rest // 1460 + rest // 36524 - rest // 146096) // 365
    day_of_year = rest - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_index = (5 * day_of_year + 2) // 153
    month = (month_index + 2) % 12 + 1
    year = era * 400 + year_of_era + (month <= 2)
    return year, month, day_of_year - (153 * month_index + 2) // 5 + 1


def from_nanoseconds(since_1970: int) -> str:
    """A moment, in nanoseconds since 1970, in the form the runtime writes."""
    seconds, nanosecond = divmod(since_1970, 10**9)
    day, second = divmod(seconds, 86_400)
    return _spelled(Instant(day + _day_number(1970, 1, 1), second // 60, second % 60, nanosecond))
