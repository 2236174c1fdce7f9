"""Free JSON is read and refused exactly as the runtime reads and refuses it (journal.md section 5)."""

from pathlib import Path
from typing import Any

import pytest

from symbi_recover.wire.strictjson import JsonError, read_free
from tests.support import vectors

REFUSED = object()

TRANSFORMS: dict[str, Any] = {
    "number_-9223372036854775808": [-9223372036854775808],
    "number_-9223372036854775809": [-9223372036854775808.0],
    "number_1.0": [1.0],
    "number_1.000000000000000005": [1.0],
    "number_1000000000000000": [1000000000000000],
    "number_10000000000000000999": [10000000000000000999],
    "number_1e-999": [0.0],
    "number_1e6": [1000000.0],
    "number_9223372036854775807": [9223372036854775807],
    "number_9223372036854775808": [9223372036854775808],
    "object_key_nfc_nfd": {"\u00e9": "NFC", "e\u0301": "NFD"},
    "object_key_nfd_nfc": {"e\u0301": "NFD", "\u00e9": "NFC"},
    "object_same_key_different_values": {"a": 2},
    "object_same_key_same_value": {"a": 1},
    "object_same_key_unclear_values": {"a": -0.0},
    "string_1_escaped_invalid_codepoint": REFUSED,
    "string_1_invalid_codepoint": REFUSED,
    "string_2_escaped_invalid_codepoints": REFUSED,
    "string_2_invalid_codepoints": REFUSED,
    "string_3_escaped_invalid_codepoints": REFUSED,
    "string_3_invalid_codepoints": REFUSED,
    "string_with_escaped_NULL": ["A\0B"],
}
"""What sections 5.2 and 5.3 make of the files whose meaning is not the same everywhere."""


def outcome(data: bytes) -> Any:
    try:
        return read_free(data)
    except JsonError:
        return REFUSED


def exactly(value: Any) -> Any:
    """A form of `value` in which 1 and 1.0, and 0.0 and -0.0, and member orders differ."""
    if isinstance(value, dict):
        return ["object", [[name, exactly(member)] for name, member in value.items()]]
    if isinstance(value, list):
        return ["array", [exactly(item) for item in value]]
    return [type(value).__name__, repr(value)]


def test_all_318_parsing_files_are_read_or_refused_as_the_runtime_does() -> None:
    files = vectors.json_parsing()
    assert len(files) == 318
    assert sum(vectors.json_is_read(path) for path in files) == 95 + 5
    wrong = [
        path.name
        for path in files
        if (outcome(path.read_bytes()) is not REFUSED) is not vectors.json_is_read(path)
    ]
    assert wrong == []


def test_every_transform_file_has_its_row() -> None:
    names = {path.stem for path in (vectors.JSON_SUITE / "test_transform").iterdir()}
    assert names == set(TRANSFORMS)


@pytest.mark.parametrize("name", sorted(TRANSFORMS))
def test_files_with_more_than_one_meaning_get_the_runtimes(name: str) -> None:
    path = Path(vectors.JSON_SUITE / "test_transform" / f"{name}.json")
    assert exactly(outcome(path.read_bytes())) == exactly(TRANSFORMS[name])
