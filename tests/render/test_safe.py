"""Nothing recorded reaches a terminal as it is (render/safe.py; F-058, F-060, F-061)."""

import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbi_recover.render.safe import safe, safe_json
from tests.property.strategies import fast

ACTS = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Control, format, surrogate, line and paragraph separators: what a terminal or a reader may act on unseen."""


def test_every_character_that_acts_or_cannot_be_seen_is_shown_as_an_escape() -> None:
    raw = [
        chr(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in ACTS and safe(chr(code)) == chr(code)
    ]
    assert [f"U+{ord(character):04X}" for character in raw] == []


@fast
@given(st.text(max_size=30))
def test_a_text_becomes_one_line_from_which_it_can_be_read_back(text) -> None:
    shown = safe(text)
    assert len(shown.splitlines()) <= 1
    assert not any(unicodedata.category(character) in ACTS for character in shown)
    if all(ord(character) < 0xD800 or ord(character) > 0xDFFF for character in text):
        assert shown.encode("ascii", "backslashreplace").decode("unicode_escape") == text


@fast
@given(st.text(max_size=60), st.integers(1, 30))
def test_a_limit_is_kept_and_told(text, limit) -> None:
    shown = safe(text, limit)
    assert len(shown) <= limit
    assert shown == safe(text) or shown.endswith("…")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2K\r", "\\x1b[2K\\r"),
        ("\x9b2J", "\\x9b2J"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("abc\b\b\b", "abc\\x08\\x08\\x08"),
        ("\x7f", "\\x7f"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\u2028", "\\u2028"),
        ("\\x1b", "\\\\x1b"),
        ("a\u200bb", "a\\u200bb"),
        ("\udcff", "\\xff"),
        ("\U000e0041", "\\U000e0041"),
        ("Zürich 日本 🎉", "Zürich 日本 🎉"),
        (None, "None"),
    ],
)
def test_examples(text, shown) -> None:
    assert safe(text) == shown


@fast
@given(st.recursive(st.text(max_size=20), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_for_a_terminal_has_the_same_value_and_nothing_that_acts(value) -> None:
    document = json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8", "surrogatepass")
    try:
        document.decode()
    except UnicodeDecodeError:
        return  # no command prints a lone surrogate
    shown = safe_json(document)
    assert json.loads(shown) == value
    assert not any(unicodedata.category(one) in ACTS - {"Cs"} for one in shown.decode().replace("\n", ""))
