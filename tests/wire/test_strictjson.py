"""The scanner reads strict JSON and nothing else, in bounded time and depth (journal.md section 5)."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbi_recover.wire.strictjson import MAX_DEPTH, JsonError, Scanner, read_free
from tests.property.strategies import fast, free, spelled
from tests.support.runtime_numbers import read_free as expected_value


def skipped(data: bytes) -> bool:
    """Whether the syntax scan takes a document."""
    try:
        scanner = Scanner(data)
        scanner.skip()
        scanner.end()
    except JsonError:
        return False
    return True


def value_of(data: bytes):
    try:
        return read_free(data)
    except JsonError:
        return JsonError


def strictly(data: bytes) -> bool:
    """Whether Python's own reader takes a document, once its known leniencies are closed."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    try:
        json.loads(data.decode("utf-8"), parse_constant=refuse)
    except (ValueError, RecursionError):
        return False
    return not data.startswith(b"\xef\xbb\xbf")


@fast
@given(free, st.data())
def test_any_spelling_of_a_value_is_read_as_that_value(value, data) -> None:
    text = data.draw(spelled(value))
    assert skipped(text.encode())
    read = value_of(text.encode())
    assert json.dumps(read) == json.dumps(expected_value(text))


@fast
@given(free, st.data())
def test_a_damaged_document_is_refused_exactly_where_pythons_reader_refuses_it(value, data) -> None:
    text = bytearray(data.draw(spelled(value)).encode())
    for _ in range(data.draw(st.integers(1, 2))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 1))] = bytes(
            [data.draw(st.sampled_from(b'{}[],:"\\/-+.eE0123456789tfn \n\x0b\x1c\x7f\x80\xa0\xed'))]
        )
    damaged = bytes(text)
    assert skipped(damaged) is strictly(damaged)


@given(st.binary(max_size=40))
@fast
def test_arbitrary_bytes_never_raise_anything_but_a_json_error(data) -> None:
    assert value_of(data) is JsonError or strictly(data)


@pytest.mark.parametrize("opening", [b"[", b'{"a":'], ids=["arrays", "objects"])
def test_exactly_127_containers_are_read_and_128_are_not(opening) -> None:
    closing = b"]" if opening == b"[" else b"}"
    for depth, taken in ((MAX_DEPTH, True), (MAX_DEPTH + 1, False)):
        document = opening * depth + b"1" + closing * depth
        assert (value_of(document) is not JsonError) is taken
        assert skipped(document)


@pytest.mark.parametrize(
    "document",
    [
        b"[" * (1 << 20),
        b"[" * 500 + b"]" * 500,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 200_000,
        b'{"a":' * 200_000 + b"1" + b"}" * 200_000,
        b'[{"a":' * 80_000,
        b"-" * (1 << 20),
        b'"' + b"\\" * (1 << 20),
        b'"' + b"\\u0061" * 170_000,
        b" " * (1 << 20),
        b"1" + b"0" * (1 << 20),
        b"[" + b"1," * (1 << 17),
    ],
    ids=lambda document: repr(document[:8]),
)
def test_hostile_documents_are_answered_at_once(document) -> None:
    """F-039: no recursion on input that is skipped, and only as deep as the limit on input that is read."""
    start = time.process_time()
    value_of(document)
    skipped(document)
    assert time.process_time() - start < 2


@pytest.mark.parametrize("levels", [1, 2, 3, 8])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_embedded_texts_are_followed_to_a_fixed_depth(levels, opening) -> None:
    """Each embedded text has a depth budget of its own in the runtime; here the sum is bounded as well."""
    closing = "]" if opening == "[" else "}"
    text = "1"
    for _ in range(levels):
        text = opening * 90 + '{"$serde_json::private::RawValue":' + json.dumps(text) + "}" + closing * 90
    read = value_of(text.encode())
    assert (read is JsonError) is (levels > 2)


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (b"\xef\xbb\xbf{}", "byte order mark"),
        ("{}".encode("utf-16"), "UTF-16"),
        ('{"a":1}'.encode("utf-16-le"), "UTF-16"),
        ('{"a":1}'.encode("utf-16-be"), "UTF-16"),
        (b'{"a":"\xed\xa0\x80"}', "not UTF-8"),
        (b'{"a":"\xc0\xaf"}', "not UTF-8"),
        (b'"\xf5\x80\x80\x80"', "not UTF-8"),
    ],
    ids=["BOM", "UTF-16 with BOM", "UTF-16LE", "UTF-16BE", "surrogate", "overlong", "beyond Unicode"],
)
def test_another_encoding_is_refused_by_its_name(document, says) -> None:
    """F-037: nothing is guessed."""
    with pytest.raises(JsonError, match=says):
        read_free(document)


@pytest.mark.parametrize(
    "text",
    [
        '"\\ud800"',
        '"\\udc00"',
        '"\\ud800x"',
        '"\\ud800\\u0061"',
        '"\\udc00\\ud800"',
        '{"\\ud800":1}',
        '"\\uD8"',
    ],
)
def test_an_unpaired_surrogate_is_refused_when_read(text) -> None:
    assert value_of(text.encode()) is JsonError


def test_a_pair_of_surrogates_is_one_character() -> None:
    assert read_free(b'"\\ud83d\\uDE00"') == "\U0001f600"


def test_a_message_stays_short_however_long_the_names_are() -> None:
    scanner = Scanner(b"{}")
    with pytest.raises(JsonError) as refused:
        scanner.fail(f"unknown member {'x' * 1_000_000!r}")
    assert len(refused.value.message) <= 200


@pytest.mark.parametrize("white", ["\x0b", "\x0c", "\x1c", "\x85", "\xa0", "\u2028", "\ufeff"])
def test_only_the_four_blanks_of_json_are_white_space(white) -> None:
    assert value_of(f"[1,{white}2]".encode()) is JsonError
