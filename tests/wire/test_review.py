"""Review files: the form, and the rules for what may be signed."""

import json
from typing import Any

import pytest

from symbi_recover.wire.review import broken_rule, parse_review
from symbi_recover.wire.strictjson import JsonError
from tests.support.writer.claim import review
from tests.support.writer.text import ABSENT


def parsed(**fields: Any) -> str | None:
    return broken_rule(parse_review(json.dumps(review("sha256:" + "0" * 64, **fields)).encode()))


def test_a_good_review_breaks_no_rule() -> None:
    assert parsed() is None
    assert (
        parsed(rationale="x" * 8192, evidence=[{"reference": "r" * 2048, "sha256": "AB" * 32}] * 32) is None
    )


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"effects_stopped": False}, "effects_stopped"),
        ({"rationale": ""}, "blank"),
        ({"rationale": " \t\n\u2028\u3000\u0085"}, "blank"),
        ({"rationale": "x" * 8193}, "longer"),
        ({"rationale": "é" * 4097}, "longer"),
        ({"evidence": []}, "0 evidence"),
        ({"evidence": [{"reference": "r", "sha256": "ab" * 32}] * 33}, "33 evidence"),
        ({"evidence": [{"reference": "\u00a0", "sha256": "ab" * 32}]}, "blank"),
        ({"evidence": [{"reference": "r" * 2049, "sha256": "ab" * 32}]}, "longer"),
        ({"evidence": [{"reference": "r", "sha256": "ab" * 31}]}, "64"),
        ({"evidence": [{"reference": "r", "sha256": "g" * 64}]}, "64"),
    ],
)
def test_each_rule_is_named_when_it_is_broken(fields: dict[str, Any], word: str) -> None:
    assert word in (parsed(**fields) or "")


def test_control_characters_that_python_calls_blank_are_not_blank_here() -> None:
    assert parsed(rationale="\x1c\x1f") is None


@pytest.mark.parametrize(
    "fields",
    [
        {"more": 1},
        {"outcome": "done"},
        {"effects_stopped": 1},
        {"effects_stopped": ABSENT},
        {"evidence": {}},
        {"evidence": [{"reference": "r"}]},
        {"evidence": [{"reference": "r", "sha256": "", "x": 1}]},
        {"rationale": None},
    ],
)
def test_another_form_is_no_review(fields: dict[str, Any]) -> None:
    with pytest.raises(JsonError):
        parsed(**fields)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: b"\xef\xbb\xbf" + d,
        lambda d: d.decode().encode("utf-16"),
        lambda d: d + b"{}",
        lambda _: b"",
    ],
)
def test_other_encodings_and_trailing_text_are_refused(spoil: Any) -> None:
    with pytest.raises(JsonError):
        parse_review(spoil(json.dumps(review("x")).encode()))


def test_line_ends_inside_a_review_do_no_harm() -> None:
    text = json.dumps(review("x"), indent=2).replace("\n", "\r\n").encode()
    assert broken_rule(parse_review(text)) is None
