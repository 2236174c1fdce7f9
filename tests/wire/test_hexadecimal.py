"""Hexadecimal text, and the runtime's words for what is wrong with it."""

import pytest

from symbi_recover.wire.hexadecimal import HexError, decode


def test_both_cases_are_read() -> None:
    assert decode("00fFAb") == b"\x00\xff\xab"
    assert decode("") == b""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("abc", "Odd number of digits"),
        ("z", "Odd number of digits"),
        ("zz", "Invalid character 'z' at position 0"),
        ("12345678-0", "Invalid character '-' at position 8"),
        ("a\n", "Invalid character '\\n' at position 1"),
        ("a'", "Invalid character '\\'' at position 1"),
        ("é", "Invalid character 'Ã' at position 0"),
        (" 0", "Invalid character ' ' at position 0"),
        ("0\0", "Invalid character '\\0' at position 1"),
    ],
)
def test_the_first_fault_is_named(text: str, message: str) -> None:
    with pytest.raises(HexError) as caught:
        decode(text)
    assert str(caught.value) == message
