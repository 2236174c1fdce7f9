"""A signature has one spelling: every other base64 text for the same or similar bytes is refused (section 6.5)."""

import base64
import string
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import evidence
from tests.support.audit_cases import JOURNAL_PREFIX
from tests.support.cli import Ran, run

ALPHABET = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
SCENARIO = evidence.scenarios()["clean-run"]
MARK = b'"signature":"'


def split() -> tuple[bytes, str, bytes]:
    """The real journal before, in and after the signature text of its last record, whose line nothing hashes."""
    data = evidence.journal(SCENARIO)
    start = data.rindex(MARK) + len(MARK)
    end = data.index(b'"', start)
    return data[:start], data[start:end].decode(), data[end:]


def judged(spelling: str, tmp_path: Path) -> Ran:
    before, _, after = split()
    path = tmp_path / "journal.jsonl"
    path.write_bytes(before + spelling.encode() + after)
    return run("audit", "inspect", path, "--run-id", SCENARIO.run_id, "--public-key", SCENARIO.public_key)


def lax(spelling: str) -> bytes:
    return base64.b64decode(spelling)


def test_the_runtimes_own_spelling_is_accepted(tmp_path: Path) -> None:
    assert judged(split()[1], tmp_path).rc == 0


@pytest.mark.parametrize("step", range(1, 16))
def test_each_of_the_15_spellings_with_unused_bits_set_is_refused(step: int, tmp_path: Path) -> None:
    honest = split()[1]
    last = ALPHABET.index(honest[85])
    assert honest.endswith("==")
    assert last % 16 == 0
    spelling = honest[:85] + ALPHABET[last + step] + "=="
    assert lax(spelling) == lax(honest)
    ran = judged(spelling, tmp_path)
    assert ran.rc == 1
    assert ran.out == b""
    assert ran.first_error_line.startswith(JOURNAL_PREFIX)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("no padding", lambda text: text.rstrip("=")),
        ("half the padding", lambda text: text[:-1]),
        ("more padding", lambda text: text + "="),
        ("a leading blank", lambda text: " " + text),
        ("a trailing blank", lambda text: text + " "),
        ("an escaped line break", lambda text: text[:44] + "\\n" + text[44:]),
        ("the alphabet for addresses", lambda text: text.replace("+", "-").replace("/", "_")),
        ("a character outside the alphabet", lambda text: text[:10] + "!" + text[10:]),
        ("a second base64 text", lambda text: text + text),
        ("hexadecimal", lambda text: lax(text).hex()),
        ("nothing", lambda text: text[:0]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_forms_of_the_same_signature_are_refused(
    name: str, change: Callable[[str], str], tmp_path: Path
) -> None:
    honest = split()[1]
    spelling = change(honest)
    assert spelling != honest
    ran = judged(spelling, tmp_path)
    assert ran.rc == 1
    assert ran.out == b""
    assert ran.first_error_line.startswith(JOURNAL_PREFIX)


def test_json_escapes_inside_the_text_are_the_same_spelling(tmp_path: Path) -> None:
    honest = split()[1]
    escaped = f"\\u{ord(honest[0]):04x}" + honest[1:].replace("/", "\\/")
    assert judged(escaped, tmp_path).rc == 0
