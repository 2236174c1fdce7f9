"""The rules of publication intents, in the runtime's order and words."""

from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from symbi_recover.core.values import PublicationIntent
from symbi_recover.wire.intent import IntentError, check

GOOD = PublicationIntent(
    publication_id=UUID("0f0e0d0c-0b0a-4908-8706-050403020100"),
    path="out/report.txt",
    parent_path="/srv/data",
    parent_identity=(1, 2),
    candidate_name=".symbi-publish-0f0e0d0c-0b0a-4908-8706-050403020100",
    candidate_identity=(1, 3),
    target_name="report.txt",
    bytes=15,
    sha256="ab" * 32,
)
INVALID = "invalid authenticated publication intent"
PATH = "filesystem grants require normalized relative file paths"


def test_a_written_intent_is_good() -> None:
    check(GOOD)
    check(replace(GOOD, bytes=16_777_216, sha256="AB" * 32))
    check(replace(GOOD, path="ein Bericht/größe.txt", target_name="größe.txt"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"bytes": 16_777_217}, INVALID),
        ({"candidate_name": "report.txt"}, INVALID),
        ({"candidate_name": GOOD.candidate_name.upper()}, INVALID),
        ({"sha256": "ab" * 31}, INVALID),
        ({"sha256": "é" * 64}, INVALID),
        ({"target_name": "other.txt"}, INVALID),
        ({"target_name": "other.txt", "parent_path": "srv"}, INVALID),
        *(({"parent_path": path}, "host grant root must be absolute") for path in ("", "srv/data", "./srv")),
        ({"path": "{name}", "target_name": "{name}"}, "missing filesystem argument name"),
        *(
            ({"path": path}, PATH)
            for path in (
                "", "/report.txt", "report.txt/", "a//report.txt", "./report.txt", "a/../report.txt",
                "a:report.txt", "a,report.txt", "a\\report.txt", "{a/report.txt", "a\nreport.txt", "a\rreport.txt",
                "a\0report.txt", "x" * 4097,
            )
        ),
    ],
)  # fmt: skip
def test_each_broken_rule_has_the_runtimes_words(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(IntentError) as caught:
        check(replace(GOOD, **fields))
    assert caught.value.message == message
