"""The shipped schema of a journal record and the typed decoder give one verdict on every recorded line.

Every line of every journal among the cases and the runtime's own evidence is judged twice: by the schema, on the line
read as strict JSON, and by `envelope` and `decode`. Where they differ, exactly one of the differences that
`docs/schemas.md` names must explain it, by what the bytes hold. Nothing is sampled; equal lines are judged once.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from symbi_recover.core.documents import SchemaEntry
from symbi_recover.read import library, validation
from symbi_recover.wire import journal, timestamp
from symbi_recover.wire.strictjson import MAX_DEPTH, JsonError, read_free
from tests.support import evidence
from tests.support.audit_cases import audit_cases

DOCUMENTED = Path(__file__).resolve().parents[2] / "docs" / "schemas.md"
ARRAYS = frozenset(
    [
        "actions",
        "ancestors",
        "tool_definitions",
        "delegation_chain",
        "approved_calls",
        "denied_calls",
        "observations",
        "alternatives",
        "parent_identity",
        "candidate_identity",
    ]
)
"""Members that are arrays by their nature."""
FREE = frozenset(
    [
        "execution_context",
        "outbound",
        "receipt",
        "communication",
        "parameters",
        "approved_calls",
        "denied_calls",
    ]
)
"""Members that hold free JSON, or elements of it."""


class Number(str):
    """A number as it is spelled."""

    __slots__ = ()


class Members(list[tuple[str, Any]]):
    """The members of an object, in order and with repetitions."""


def spelled(line: bytes) -> Any:
    """A line with its spelling kept: members as pairs, numbers as text."""
    return json.loads(
        line, object_pairs_hook=Members, parse_int=Number, parse_float=Number, parse_constant=Number
    )


def nodes(value: Any, name: str = "", *, free: bool = False) -> Iterator[tuple[str, Any, bool]]:
    """Every value below, with the name of its member and whether it is free or unknown; without recursion."""
    waiting = [(name, value, free)]
    while waiting:
        name, value, free = waiting.pop()
        yield name, value, free
        if isinstance(value, Members):
            waiting += [(n, v, free or n in FREE or n not in known_members()) for n, v in value]
        elif isinstance(value, list):
            waiting += [(f"{name}[]", v, free) for v in value]


def positional_form(line: bytes) -> bool:
    def stands_for_an_object(name: str, value: Any, free: bool) -> bool:
        array = isinstance(value, list) and not isinstance(value, Members)
        return array and not free and name not in ARRAYS

    return any(stands_for_an_object(*node) for node in nodes(spelled(line)))


def repeated_member(line: bytes) -> bool:
    names = [[n for n, _ in value] for _, value, _ in nodes(spelled(line)) if isinstance(value, Members)]
    return any(len(members) != len(set(members)) for members in names)


def number_spelling(line: bytes) -> bool:
    def odd(name: str, value: Any, free: bool) -> bool:
        if not isinstance(value, Number) or free or name == "temperature":
            return False
        return (value == "-0" or not value.lstrip("-").isdigit()) and float(value).is_integer()

    return any(odd(*node) for node in nodes(spelled(line)))


def calendar(line: bytes) -> bool:
    times = [value for name, value, free in nodes(spelled(line)) if name == "timestamp" and not free]
    return any(isinstance(value, str) and timestamp.parse(value) is None for value in times)


def duration_overflow(line: bytes) -> bool:
    def overflows(value: Any) -> bool:
        members = dict(value) if isinstance(value, Members) else {}
        secs, nanos = members.get("secs"), members.get("nanos")
        if not (isinstance(secs, Number) and isinstance(nanos, Number)):
            return False
        if not (secs.isdigit() and nanos.isdigit()):
            return False
        return int(secs) < 2**64 <= int(secs) + int(nanos) // 10**9

    return any(overflows(value) for _, value, _ in nodes(spelled(line)))


def nesting(line: bytes) -> bool:
    depth = deepest = 0
    inside = False
    for at, byte in enumerate(line):
        if byte == ord('"') and not escaped(line, at):
            inside = not inside
        elif not inside and byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif not inside and byte in b"]}":
            depth -= 1
    return deepest > MAX_DEPTH


def escaped(line: bytes, at: int) -> bool:
    before = line[:at]
    return (len(before) - len(before.rstrip(b"\\"))) % 2 == 1


def unpaired_surrogate(line: bytes) -> bool:
    def texts() -> Iterator[str]:
        for name, value, _ in nodes(spelled(line)):
            yield name
            if isinstance(value, str):
                yield value

    return any(0xD800 <= ord(character) <= 0xDFFF for text in texts() for character in text)


def number_range(line: bytes) -> bool:
    numbers = (value for _, value, _ in nodes(spelled(line)) if isinstance(value, Number))
    return any(math.isinf(float(value)) for value in numbers)


def embedded_text(line: bytes) -> bool:
    objects = (value for _, value, _ in nodes(spelled(line)) if isinstance(value, Members) and value)
    return any(value[0][0] == "$serde_json::private::RawValue" for value in objects)


DIFFERENCES: dict[Callable[[bytes], bool], int] = {
    positional_form: 29,
    repeated_member: 72,
    number_spelling: 34,
    calendar: 1,
    duration_overflow: 1,
    nesting: 1,
    unpaired_surrogate: 0,
    number_range: 0,
    embedded_text: 0,
}
"""What a JSON Schema cannot say, and how many distinct recorded lines fall under each."""

BEFORE, AFTER = (
    b'{"payload":{"version":2,"previous_hash":"0","entry":',
    b'},"signature":"' + b"A" * 86 + b'=="}\n',
)
ENTRY = (
    b'{"sequence":0,"timestamp":"2026-01-02T03:04:05Z","agent_id":"11111111-1111-4111-8111-111111111111",'
    b'"iteration":0,"event":{"ImprovementOutput":{"output":"o"}}}'
)
MADE_UP = {
    positional_form: ENTRY.replace(b'{"output":"o"}', b'["o"]'),
    repeated_member: ENTRY.replace(b'"sequence":0', b'"sequence":0,"sequence":0'),
    number_spelling: ENTRY.replace(b'"sequence":0', b'"sequence":0e0'),
    calendar: ENTRY.replace(b"01-02", b"02-30"),
    duration_overflow: ENTRY.replace(
        b'"ImprovementOutput":{"output":"o"}',
        b'"ToolsDispatched":{"iteration":0,"tool_count":0,"duration":{"secs":18446744073709551615,"nanos":1000000000}}',
    ),
    nesting: ENTRY.replace(b'"sequence":0', b'"sequence":0,"more":' + b"[" * 300 + b"]" * 300),
    unpaired_surrogate: ENTRY.replace(b'"sequence":0', b'"sequence":0,"more":"\\ud800"'),
    number_range: ENTRY.replace(b'"sequence":0', b'"sequence":0,"more":1e999'),
    embedded_text: ENTRY.replace(
        b'"sequence":0', b'"sequence":0,"more":{"$serde_json::private::RawValue":1}'
    ),
}
"""An entry for each difference."""


@cache
def checker() -> Any:
    return validation.validator(record_schema())


def record_schema() -> SchemaEntry:
    return library.schema("journal-record.v1")


@cache
def known_members() -> frozenset[str]:
    """Every member that the schema names."""
    found: set[str] = set()
    waiting = [checker().schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            found.update(value.get("properties", {}))
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return frozenset(found)


def schema_accepts(line: bytes) -> bool:
    try:
        return bool(checker().is_valid(read_free(line)))
    except JsonError:
        return False


def decoder_accepts(line: bytes) -> bool:
    try:
        payload, _, _ = journal.envelope(line)
        journal.decode(payload)
    except (JsonError, journal.SignatureFormError):
        return False
    return True


def explanations(line: bytes) -> list[Callable[[bytes], bool]]:
    return [holds for holds in DIFFERENCES if holds(line)]


def recorded_lines() -> dict[bytes, str]:
    """Every distinct complete line, and where it was first met."""
    journals = [(case.id, case.data) for cases in audit_cases().values() for case in cases]
    journals += [(check.journal, evidence.journal(check)) for check in evidence.checks("audit inspect")]
    lines: dict[bytes, str] = {}
    for name, data in journals:
        for line in data.split(b"\n")[:-1]:
            lines.setdefault(line + b"\n", name)
    return lines


def test_schema_and_decoder_agree_on_every_recorded_line() -> None:
    lines = recorded_lines()
    counted: Counter[Callable[[bytes], bool]] = Counter()
    unexplained = []
    accepted = 0
    for line, name in lines.items():
        decoded = decoder_accepts(line)
        accepted += decoded
        if schema_accepts(line) == decoded:
            continue
        found = explanations(line)
        counted.update(found)
        if len(found) != 1:
            unexplained.append(
                f"{name}: decoder {'accepts' if decoded else 'refuses'}, {[f.__name__ for f in found]}: {line[:300]!r}"
            )
    assert not unexplained, f"{len(unexplained)} lines, first 5:\n" + "\n".join(unexplained[:5])
    assert {holds.__name__: counted[holds] for holds in DIFFERENCES} == {
        holds.__name__: count for holds, count in DIFFERENCES.items()
    }
    assert accepted > 10_000
    assert len(lines) - accepted > 3_000


@pytest.mark.parametrize("holds", DIFFERENCES, ids=lambda holds: holds.__name__)
def test_each_named_difference_can_be_shown(holds: Callable[[bytes], bool]) -> None:
    line = BEFORE + MADE_UP[holds] + AFTER
    assert schema_accepts(line) != decoder_accepts(line)
    assert explanations(line) == [holds]


def test_the_entry_that_they_are_made_from_is_accepted_by_both() -> None:
    line = BEFORE + ENTRY + AFTER
    assert schema_accepts(line)
    assert decoder_accepts(line)
    assert explanations(line) == []


@pytest.mark.parametrize(
    "entry",
    [
        ENTRY.replace(b'"iteration":0', b'"iteration":4294967296'),
        ENTRY.replace(b'{"output":"o"}', b'{"output":null}'),
        ENTRY.replace(b'{"ImprovementOutput"', b'{"BudgetUpdated":{},"ImprovementOutput"'),
        ENTRY.replace(b"ImprovementOutput", b"StepLimitReached"),
        ENTRY.replace(b"11111111-1111-4111-8111-111111111111", b"{11111111111141118111111111111111}"),
        ENTRY.replace(b"03:04:05Z", b"24:00:00Z"),
        ENTRY.replace(b"05Z", b"05Z\\n\\u0000"),
    ],
)
def test_what_a_schema_can_say_is_no_difference(entry: bytes) -> None:
    line = BEFORE + entry + AFTER
    assert not schema_accepts(line)
    assert not decoder_accepts(line)


def test_the_document_names_the_same_differences_with_their_counts() -> None:
    rows = [row.split("|") for row in DOCUMENTED.read_text().splitlines() if row.startswith("| `")]
    named = {row[1].strip().strip("`"): row[2].strip() for row in rows}
    assert named == {holds.__name__: str(count) for holds, count in DIFFERENCES.items()}
