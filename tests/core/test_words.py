"""Numbers with their nouns."""

import re
from pathlib import Path

import pytest

from symbi_recover.core.words import counted

PACKAGE = Path(__file__).resolve().parents[2] / "symbi_recover"
BARE = re.compile(
    r"\{(?!counted|noun_for|_of\()[^{}]*\} "
    r"(bytes|records|entries|jobs|acts|links|documents|schemas|runbooks|codes|workers|passes|processes|tokens)\b"
)


@pytest.mark.parametrize(
    ("number", "noun", "plural", "text"),
    [
        (0, "byte", "", "0 bytes"),
        (1, "byte", "", "1 byte"),
        (2, "byte", "", "2 bytes"),
        (4_000_000, "byte", "", "4,000,000 bytes"),
        (1, "entry", "entries", "1 entry"),
        (3, "entry", "entries", "3 entries"),
        (1, "approved tool call", "", "1 approved tool call"),
    ],
)
def test_a_noun_agrees_with_its_number(number: int, noun: str, plural: str, text: str) -> None:
    assert counted(number, noun, plural) == text


def test_what_people_read_counts_with_the_one_helper() -> None:
    """In the rooms that write sentences; "bytes 5 to 9" is no count."""
    places = [
        f"{path.relative_to(PACKAGE)}: {match[0]}"
        for room in ("render", "cli")
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for match in BARE.finditer(path.read_text("utf-8"))
    ]
    assert not places
