"""Text is written as the runtime writes it (journal.md section 14.3)."""

import json
import os

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from symbi_recover.wire import canonical
from tests.property.strategies import fast, floats, free, text
from tests.support.runtime_numbers import print_number, read_number
from tests.support.writer import text as independent


@fast
@given(floats)
@example(1e16)
@example(1e15)
@example(9999999999999998.0)
@example(0.00001)
@example(0.000009999)
@example(1e-5)
@example(-0.0)
@example(5e-324)
@example(1.7976931348623157e308)
def test_a_float_has_the_runtimes_spelling_and_is_read_back_as_itself(value) -> None:
    """F-042: 1e+16 and not 1e16, 1e-7 and not 1e-07, 0.00001 and not 1e-05."""
    spelled = canonical.number(value)
    assert spelled == print_number(value)
    assert repr(float(spelled)) == repr(value)
    assert json.loads(spelled) == value


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        (1e16, "1e+16"),
        (1e-7, "1e-7"),
        (0.1, "0.1"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (0.00001, "0.00001"),
        (0.000012345, "0.000012345"),
        (-0.00002, "-0.00002"),
        (1000000000000000.0, "1000000000000000.0"),
        (1.5e-7, "1.5e-7"),
        (1.25e300, "1.25e+300"),
        (0.30000001192092896, "0.30000001192092896"),
    ],
)
def test_examples_of_the_format(value, spelled) -> None:
    assert canonical.number(value) == spelled


@fast
@given(free)
def test_the_three_forms_are_those_that_an_independent_writer_gives(value) -> None:
    assert canonical.compact(value) == independent.compact(value)
    assert canonical.canonical(value) == independent.canonical(value)
    assert canonical.digest(value) == independent.digest(value)
    read = json.loads(canonical.pretty(value))
    assert msgspec.json.encode(read) == msgspec.json.encode(json.loads(independent.compact(value)))


@fast
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | text,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
        max_leaves=10,
    )
)
def test_pretty_text_without_floats_is_that_of_pythons_own_writer(value) -> None:
    """Section 14.3 states this equality."""
    assert canonical.pretty(value) == (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def test_line_separators_inside_strings_do_not_end_a_line_of_ours() -> None:
    """F-044, F-045: a record is one line to a reader that splits at line feeds."""
    value = {"a": "\x85\u2028\u2029\r\n\x0b\x0c"}
    assert canonical.compact(value).count(b"\n") == 0
    assert json.loads(canonical.compact(value)) == value


def test_the_oracles_of_these_tests_agree_with_the_format_on_its_own_examples() -> None:
    assert read_number("0.30000001192092896") == 0.30000001192092896
    assert print_number(1e16) == "1e+16"
    assert print_number(0.0) == "0.0"


class Named(msgspec.Struct):
    name: str
    inner: object


@pytest.mark.parametrize(
    "spelled",
    [os.fsdecode(b"gr\xc3\xb6\xff"), b"gr\xc3\xb6\xff".decode("ascii", "surrogateescape")],
    ids=["UTF-8", "ASCII"],
)
def test_a_name_that_is_not_utf8_gives_the_same_json_in_any_locale(spelled) -> None:
    """F-066: the odd byte is shown, the rest is as it is; numbers and raw parts are untouched."""
    value = Named(spelled, [msgspec.Raw(b'{"a":1e+16}'), {spelled: 0.1}, (1, None)])
    shown = "gr\xf6\\xff"
    assert (
        canonical.compact(value)
        == json.dumps(
            {"name": shown, "inner": ["@", {shown: 0.1}, [1, None]]},
            ensure_ascii=False,
            separators=(",", ":"),
        )
        .replace('"@"', '{"a":1e+16}')
        .encode()
    )
