"""Numbers are read by the runtime's own conversion, which is not correctly rounded (journal.md section 5.3)."""

import re
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbi_recover.wire.strictjson import JsonError, number_value, read_free
from tests.property.strategies import fast
from tests.support.runtime_numbers import read_number

TOKEN = re.compile(rb"-?(0|[1-9][0-9]*+)(?:\.([0-9]++))?(?:[eE]([+-]?)([0-9]++))?")
digits = st.text("0123456789", min_size=1, max_size=25)
tokens = st.builds(
    lambda minus, whole, fraction, exponent: f"{minus}{whole.lstrip('0') or '0'}{fraction}{exponent}",
    st.sampled_from(["", "-"]),
    digits,
    st.just("") | digits.map(lambda d: f".{d}"),
    st.just("")
    | st.builds(
        lambda e, sign, n: f"{e}{sign}{n}",
        st.sampled_from("eE"),
        st.sampled_from(["", "+", "-"]),
        st.integers(0, 400),
    ),
)


def same(one: float | None, other: float | None) -> bool:
    return type(one) is type(other) and repr(one) == repr(other)


@fast
@given(tokens)
def test_a_number_has_the_value_that_the_runtime_gives_it(token) -> None:
    match = TOKEN.fullmatch(token.encode())
    assert match is not None
    assert same(number_value(match), read_number(token)), token


@pytest.mark.parametrize(
    ("token", "value"),
    {
        "0": 0,
        "-0": -0.0,
        "18446744073709551615": 2**64 - 1,
        "18446744073709551616": 1.8446744073709552e19,
        "-9223372036854775808": -(2**63),
        "-9223372036854775809": -9.223372036854776e18,
        "1.0": 1.0,
        "1e0": 1.0,
        "1e400": None,
        "-1e400": None,
        "0e999999999999": 0.0,
        "-0e999999999999": -0.0,
        "1e-999999999999": 0.0,
        "1e999999999999": None,
        "1e308": 1e308,
        "5e-324": 5e-324,
        "1e-7": 1e-7,
        "0.1": 0.1,
        "1.5777777777770001": 1.577777777777,
    }.items(),
)
def test_boundary_numbers(token, value) -> None:
    match = TOKEN.fullmatch(token.encode())
    assert match is not None
    assert same(number_value(match), value)


@pytest.mark.parametrize(
    "token", ["NaN", "Infinity", "-Infinity", "1e400", "+1", "01", ".5", "1.", "0x1", "1e", "1_0", "\u0661"]
)
def test_words_and_numbers_that_json_does_not_have_are_refused(token) -> None:
    """F-038, and the other spellings that lenient readers take."""
    with pytest.raises(JsonError):
        read_free(f'{{"a":{token}}}'.encode())


@pytest.mark.parametrize(
    "token",
    [
        b"1" * 4300,
        b"1" * 4301,
        b"1" * 1_000_000,
        b"1e999999999",
        b"-1e-999999999",
        b"0." + b"0" * 1_000_000 + b"1",
    ],
    ids=["4300", "4301", "a million", "huge exponent", "tiny exponent", "a million zeros"],
)
def test_very_long_numbers_are_answered_at_once(token) -> None:
    """F-041: in well under a second, without asking the interpreter for a number of so many digits."""
    start = time.process_time()
    value = None
    with suppress(JsonError):
        value = read_free(token)
    assert value in (None, 0.0)
    assert time.process_time() - start < 1
