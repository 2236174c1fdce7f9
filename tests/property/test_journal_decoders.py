"""The fast way to read a record may only say yes where the exact reader says the same (wire/journal.py).

Honest payloads, payloads with a changed member, other spellings of them, and random damage to their text. Floats are
compared by their bits and numbers by their type, because 1, 1.0 and true, and 0.0 and -0.0, are equal in Python.
"""

from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbi_recover.core.events import Payload, Record, ToolEffect
from symbi_recover.read.classify import effect_step
from symbi_recover.wire import exact
from symbi_recover.wire.journal import SignatureFormError, decode, envelope, exact_envelope
from symbi_recover.wire.strictjson import JsonError
from tests.property.strategies import event, fast, free, spelled, text, times, u64
from tests.support.runtime_numbers import read_free
from tests.support.writer import effects, events
from tests.support.writer.journal import JournalWriter
from tests.support.writer.text import ABSENT, canonical, compact

TOKENS = [
    "null",
    "true",
    "false",
    "0",
    "-0",
    "1",
    "1.0",
    "1e0",
    "1E400",
    "-1",
    "18446744073709551615",
    "18446744073709551616",
    "9007199254740993",
    "0.1",
    "5e-324",
    "1.7976931348623157e308",
    "1e16",
    "1e+16",
    "0.00001",
    "1e-05",
    "12345678901234567890.5",
    "{}",
    "[]",
    '""',
    '"\\ud800"',
    '"\\ud83d\\ude00"',
    '"\\u0061"',
    '{"$serde_json::private::RawValue":"1"}',
    '{"a":1,"a":2}',
    "[[[]]]",
]


def read_exactly(payload: bytes) -> Payload | None:
    try:
        return exact.read(payload, Payload)
    except JsonError:
        return None


def _encoded(event: object) -> bytes:
    """Every member with its type; an `outbound` of null means the same as none.

    Only the floats of a network request reach a report, and only they must have the runtime's own rounding.
    """
    value = msgspec.to_builtins(event)
    if not isinstance(event, ToolEffect):
        value = _rounded(value)
    return msgspec.json.encode(value, order="sorted").replace(b'"outbound":null,', b"")


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return f"float {value:.12g}" if isinstance(value, float) else value


def facts(record: Record) -> tuple[object, ...]:
    run = None if record.run_id is None else UUID(str(record.run_id))
    return (
        record.version,
        run,
        record.previous_hash,
        record.sequence,
        record.timestamp,
        UUID(str(record.agent_id)),
        record.iteration,
        type(record.event),
        _encoded(record.event),
    )


def disagreement(payload: bytes) -> str | None:
    """How `decode` and the exact reader differ on a payload; None if they do not."""
    value = read_exactly(payload)
    try:
        record = decode(payload)
    except JsonError:
        return None if value is None else "refused what the exact reader takes"
    if value is None:
        return "read what the exact reader refuses"
    entry = value.entry
    run = value.run_id if isinstance(value.run_id, UUID) else None
    other = Record(
        value.version,
        run,  # type: ignore[arg-type]
        value.previous_hash,
        entry.sequence,
        entry.timestamp,
        entry.agent_id,  # type: ignore[arg-type]
        entry.iteration,
        entry.event,
        canonical=False,
    )
    return None if facts(record) == facts(other) else f"{record.event} is not {entry.event}"


@fast
@given(event, times, u64)
def test_honest_payloads_are_read_alike_and_called_canonical(value, time, iteration) -> None:
    payload = canonical(JournalWriter().payload(value, iteration % 2**32, timestamp=time))
    assert disagreement(payload) is None
    decoded = read_exactly(payload)
    assert decoded is not None


@fast
@given(event)
def test_what_the_runtime_writes_is_never_called_foreign(value) -> None:
    payload = canonical(JournalWriter().payload(value))
    assert decode(payload).canonical or b'"outbound":null' in payload


@settings(fast, max_examples=25)
@given(event, st.data())
def test_other_spellings_of_a_payload_are_read_alike(value, data) -> None:
    payload = JournalWriter().payload(value)
    written = data.draw(spelled(payload)).encode()
    assert disagreement(written) is None


@fast
@given(event, st.data())
def test_a_token_put_elsewhere_is_read_or_refused_alike(value, data) -> None:
    payload = canonical(JournalWriter().payload(value)).decode()
    places = [at for at, character in enumerate(payload) if character in ":,["]
    at = data.draw(st.sampled_from(places)) + 1
    end = max(payload.find(mark, at) for mark in ",}]")
    until = data.draw(st.sampled_from([at, min(end, at + 40), payload.find(",", at)])) if end > at else at
    token = data.draw(st.sampled_from(TOKENS))
    assert disagreement((payload[:at] + token + payload[max(at, until) :]).encode()) is None


@fast
@given(event, st.data())
def test_a_changed_member_is_read_or_refused_alike(value, data) -> None:
    payload = JournalWriter().payload(value)
    _change(payload, data)
    assert disagreement(canonical(payload)) is None
    assert disagreement(compact(payload)) is None


def _change(payload, data) -> None:
    """Replace, remove or add a member somewhere in a value."""
    place = payload
    for _ in range(data.draw(st.integers(0, 6))):
        inner = [
            item
            for item in (place.values() if isinstance(place, dict) else place)
            if isinstance(item, dict | list) and item
        ]
        if not inner:
            break
        place = data.draw(st.sampled_from(inner))
    if isinstance(place, list):
        place[data.draw(st.integers(0, len(place) - 1))] = data.draw(free)
        return
    name = data.draw(st.sampled_from(sorted(place)))
    action = data.draw(st.sampled_from(["replace", "remove", "add", "rename"]))
    if action == "replace":
        place[name] = data.draw(free)
    elif action == "add":
        place[data.draw(text)] = data.draw(free)
    else:
        kept = place.pop(name)
        if action == "rename":
            place[name.title()] = kept


@fast
@given(event, st.data())
def test_damaged_bytes_are_read_or_refused_alike(value, data) -> None:
    payload = bytearray(canonical(JournalWriter().payload(value)))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(payload) - 1))
        action = data.draw(st.sampled_from(["flip", "delete", "double", "put"]))
        if action == "flip":
            payload[at] ^= 1 << data.draw(st.integers(0, 7))
        elif action == "delete":
            del payload[at]
        elif action == "double":
            payload.insert(at, payload[at])
        else:
            payload[at] = data.draw(st.sampled_from(b'0123456789-+.eE"\\{}[]:, \n\x00\xff\xc0'))
    assert disagreement(bytes(payload)) is None


@fast
@given(free)
def test_outbound_values_reach_the_report_as_the_runtime_would_print_them(value) -> None:
    """Section 14.3: the free JSON of a network request keeps order, and numbers have the runtime's spelling."""
    sent = effects.tool_effect(effects.network_request_started(outbound=value))
    payload = canonical(JournalWriter().payload(sent))
    step = effect_step(decode(payload).event)
    assert bytes(step.details.outbound) == canonical(read_free(canonical(value)))


@fast
@given(st.data())
def test_an_envelope_is_cut_alike_by_both_ways(data) -> None:
    """The fast cut of a line gives the same payload and signature as the scanner, or the scanner refuses the line."""
    line = bytearray(JournalWriter().append(events.observations_collected()))
    for _ in range(data.draw(st.integers(0, 2))):
        at = data.draw(st.sampled_from([*range(14), *range(len(line) - 110, len(line))])) % len(line)
        line[at] = data.draw(st.sampled_from(b'{}",: ab=+/\\\n\t0'))
    try:
        payload, signature, _ = envelope(bytes(line))
    except (JsonError, SignatureFormError):
        return
    try:
        assert exact_envelope(bytes(line)) == (payload, signature)
    except JsonError:
        assert read_exactly(payload) is None


def test_a_member_that_is_left_out_or_null_is_read_alike() -> None:
    for outbound in (ABSENT, None, 0, -0.0, 1.0, 1e16, 0.1, [1e-7], {"a": 2**64 - 1}, {"b": -(2**63)}):
        sent = effects.tool_effect(effects.network_request_started(outbound=outbound))
        assert disagreement(canonical(JournalWriter().payload(sent))) is None, outbound


@pytest.mark.parametrize(
    "value", [1.5777777777770001, 1.2601262373022821e82, 0.1, 1e16, 1e-7, -0.0, 2**64 - 1]
)
def test_a_number_that_is_read_otherwise_than_written_is_still_the_writers(value) -> None:
    """F-042: what is signed is never parsed and written again to be checked."""
    sent = effects.tool_effect(effects.network_request_started(outbound=[value]))
    started = events.started(
        config=events.config(tool_definitions=[{"name": "n", "description": "", "parameters": value}])
    )
    for written in (sent, started):
        payload = canonical(JournalWriter().payload(written))
        assert decode(payload).canonical
        assert disagreement(payload) is None
