"""One line of a journal: cut, typed, and whether it is spelled as the runtime's writer spells it (wire/journal.py)."""

import base64
import json

import pytest

from symbi_recover.wire.journal import SignatureFormError, decode, envelope
from symbi_recover.wire.strictjson import JsonError
from tests.support.writer import effects, events, inference
from tests.support.writer.journal import JournalWriter
from tests.support.writer.text import ABSENT, canonical, compact


def payload_of(event, **changes) -> bytes:
    return canonical(JournalWriter().payload(event, **changes))


HONEST = {
    "started": events.started(),
    "started with tools": events.started(
        config=events.config(
            tool_definitions=[{"name": "n", "description": "d", "parameters": {"minimum": 0.5, "big": 1e21}}],
            tool_choice={"type": "tool", "name": "n"},
        )
    ),
    "policy": events.policy_evaluated(1, [events.approval()]),
    "policy with long numbers": events.policy_evaluated(1, [{"n": 12345678901234567890}]),
    "network": effects.tool_effect(effects.network_request_started(outbound={"share": 0.25, "x": 1e-7})),
    "publication finished": effects.tool_effect(effects.file_publication_finished(events.DISPATCH)),
    "receipt null": events.response_delivery_finished(receipt=None),
    "largest size": events.response_delivery_started(request_bytes=2**64 - 1),
    "reason with text": events.terminated({"Error": {"message": "x"}}),
    "reservation": inference.budget_reservation_started(),
    "non-ASCII": events.improvement_output("Zürich \x7f \u2028 \U0001f600"),
    "controls": events.improvement_output('\x00\x1f\b\t\n\f\r"\\'),
}


@pytest.mark.parametrize("event", HONEST.values(), ids=HONEST)
def test_what_a_writer_writes_is_called_canonical(event) -> None:
    assert decode(payload_of(event)).canonical


FOREIGN = {
    "a blank": lambda p: p.replace(b'"version":2', b'"version": 2'),
    "another order": lambda p: compact(dict(reversed(json.loads(p).items()))),
    "an escape": lambda p: p.replace(b'"Started"', b'"St\\u0061rted"'),
    "a positional payload": lambda p: compact([2, JournalWriter().run_id, "0" * 64, json.loads(p)["entry"]]),
    "a positional duration": lambda p: p.replace(b'{"nanos":0,"secs":300}', b"[300,0]"),
    "an unknown member": lambda p: p.replace(b'"context_token_budget"', b'"a":1,"context_token_budget"'),
    "a default left out": lambda p: p.replace(b'"max_output_tokens":16384,', b""),
    "another time": lambda p: p.replace(b"05:06:07Z", b"05:06:07+00:00"),
    "another uuid": lambda p: p.replace(b'"run_id":"22222222-2222', b'"run_id":"{22222222-2222').replace(
        b'2222222222","version"', b'2222222222}","version"'
    ),
    "an upper case uuid": lambda p: p.replace(b'"run_id":"22222222-2222', b'"run_id":"ABCDEFAB-2222'),
    "another number": lambda p: p.replace(b"0.30000001192092896", b"0.300000011920928960"),
    "a null member": lambda p: p.replace(b'"temperature"', b'"shared_budget":null,"temperature"'),
}


@pytest.mark.parametrize("change", FOREIGN.values(), ids=FOREIGN)
def test_another_spelling_is_read_and_called_foreign(change) -> None:
    honest = payload_of(events.started())
    changed = change(honest)
    assert changed != honest
    assert decode(honest).canonical
    assert not decode(changed).canonical


def test_an_outbound_of_null_is_none_but_not_how_a_writer_says_it() -> None:
    left_out = decode(payload_of(effects.tool_effect(effects.network_request_started(outbound=ABSENT))))
    null = decode(payload_of(effects.tool_effect(effects.network_request_started(outbound=None))))
    assert left_out.canonical
    assert (left_out.sequence, left_out.agent_id) == (null.sequence, null.agent_id)


REFUSED = {
    "a null payload": '{"payload":null,"signature":"S"}',
    "a missing payload": '{"signature":"S"}',
    "a missing signature": '{"payload":{}}',
    "Payload": '{"Payload":{},"signature":"S"}',
    "PAYLOAD beside payload": '{"payload":{},"PAYLOAD":{},"signature":"S"}',
    "an extra key": '{"payload":{},"signature":"S","x":1}',
    "two payloads": '{"payload":{},"payload":{},"signature":"S"}',
    "two signatures": '{"payload":{},"signature":"S","signature":"S"}',
    "an escaped repetition": '{"payload":{},"\\u0070ayload":{},"signature":"S"}',
    "a third element": '[{},"S",1]',
    "one element": "[{}]",
    "a string": '"S"',
    "nothing": "",
    "blanks": " \t\r",
    "text behind": '{"payload":{},"signature":"S"}x',
    "a comment": '{"payload":{},/**/"signature":"S"}',
    "a trailing comma": '{"payload":{},"signature":"S",}',
    "single quotes": "{'payload':{},'signature':'S'}",
}
SIGNATURE = base64.b64encode(bytes(64)).decode()


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_envelopes_that_are_not_records_are_refused(text) -> None:
    """F-032, F-033: differently spelled, unknown, missing and repeated names, on the outer level."""
    line = (text.replace("S", SIGNATURE) + "\n").encode()
    with pytest.raises((JsonError, SignatureFormError)):
        decode(envelope(line)[0])


INSIDE = {
    "a repeated member of the payload": lambda p: p.replace(b'"version":2', b'"version":2,"version":2'),
    "a repeated member of the entry": lambda p: p.replace(b'"sequence":0', b'"sequence":0,"sequence":0'),
    "a repeated member of an event": lambda p: p.replace(b'"output":"x"', b'"output":"x","output":"x"'),
    "a differently spelled member": lambda p: p.replace(b'"version"', b'"Version"'),
    "an unknown member of the payload": lambda p: p.replace(b'"version":2', b'"version":2,"x":1'),
    "two events": lambda p: p.replace(b'{"Impr', b'{"A":{},"Impr'),
    "an unknown event": lambda p: p.replace(b"ImprovementOutput", b"ImprovementInput"),
    "NaN": lambda p: p.replace(b'"x"', b"NaN"),
    "a lone surrogate": lambda p: p.replace(b'"x"', b'"\\ud800"'),
    "an encoded surrogate": lambda p: p.replace(b'"x"', b'"\xed\xa0\x80"'),
    "a boolean number": lambda p: p.replace(b'"iteration":0', b'"iteration":true'),
    "a float number": lambda p: p.replace(b'"iteration":0', b'"iteration":0.0'),
    "a minus zero": lambda p: p.replace(b'"iteration":0', b'"iteration":-0'),
    "a number as text": lambda p: p.replace(b'"iteration":0', b'"iteration":"0"'),
    "a number too large": lambda p: p.replace(b'"iteration":0', b'"iteration":4294967296'),
}


@pytest.mark.parametrize("change", INSIDE.values(), ids=INSIDE)
def test_payloads_that_two_readers_could_read_otherwise_are_refused(change) -> None:
    """F-032, F-033, F-038: at every fixed level of the signed payload."""
    honest = payload_of(events.improvement_output("x"))
    changed = change(honest)
    assert changed != honest
    with pytest.raises(JsonError):
        decode(changed)


@pytest.mark.parametrize("depth", [1, 5])
def test_a_repeated_key_in_a_free_value_is_read_as_the_runtime_does_and_called_foreign(depth) -> None:
    """F-033: the last value counts; its writer never makes one."""
    nested = b'{"a":1,"a":2}'
    for _ in range(depth - 1):
        nested = b'{"b":' + nested + b"}"
    sent = effects.tool_effect(effects.network_request_started(outbound="@"))
    payload = payload_of(sent).replace(b'"@"', nested)
    record = decode(payload)
    assert not record.canonical
    value = record.event.effect.value.outbound
    for _ in range(depth - 1):
        value = value["b"]
    assert value == {"a": 2}


UUIDS = {
    "72d6a833-b825-4b22-b50c-206337d77f7c": True,
    "72D6A833-B825-4B22-B50C-206337D77F7C": True,
    "72d6a833b8254b22b50c206337d77f7c": True,
    "{72d6a833-b825-4b22-b50c-206337d77f7c}": True,
    "urn:uuid:72d6a833-b825-4b22-b50c-206337d77f7c": True,
    "URN:UUID:72d6a833-b825-4b22-b50c-206337d77f7c": False,
    "{72d6a833b8254b22b50c206337d77f7c}": False,
    "7-2d6a833b8254b22b50c206337d77f7c": False,
    "{{72d6a833-b825-4b22-b50c-206337d77f7c}}": False,
    "\uff17\uff12d6a833-b825-4b22-b50c-206337d77f7c": False,
    " 72d6a833-b825-4b22-b50c-206337d77f7c": False,
    "72d6a833-b825-4b22-b50c-206337d77f7c\n": False,
    "urn:uuid:72d6a833b8254b22b50c206337d77f7c": False,
    "": False,
}


@pytest.mark.parametrize(("text", "taken"), UUIDS.items())
def test_uuids_in_signed_fields_are_those_that_the_runtime_takes(text, taken) -> None:
    """F-051, F-052: compared as values, whatever the spelling; no others."""
    payload = payload_of(events.tool_dispatch_started(text))
    if taken:
        assert str(decode(payload).event.dispatch_id) == "72d6a833-b825-4b22-b50c-206337d77f7c"
    else:
        with pytest.raises(JsonError):
            decode(payload)
