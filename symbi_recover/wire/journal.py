"""One record of a run journal: bytes to typed facts (journal.md sections 4, 9 and 11).

1. `envelope` cuts a line into the payload's exact bytes and the signature's 64 bytes.
2. `decode` types the payload. An honest writer emits canonical JSON, so it is decoded freely, encoded again and
   compared: equal bytes mean no repeated name, no odd number, no white space. The fast way may only say yes;
   whatever it refuses, or whatever is not canonical, goes to `wire/exact.py`, which alone refuses.

Neither checks a signature or a link; `read/verify/chain.py` does.
"""

import binascii
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
from msgspec import UNSET, defstruct

from symbi_recover.core.events import EVENTS, Event, Payload, Record, ToolEffect
from symbi_recover.core.scalars import U32, U64, UUID, is_canonical_uuid
from symbi_recover.core.words import counted
from symbi_recover.wire import canonical, exact, timestamp
from symbi_recover.wire.strictjson import MAX_DEPTH, JsonError, Scanner

MAX_RECORD = 1 << 20
"""Bytes of one record, line feed included (section 2.1)."""
MAX_JOURNAL = 1 << 26
"""Bytes of one journal."""
FIRST_PREVIOUS_HASH = "0" * 64

_HEAD = b'{"payload":'
_MIDDLE = b',"signature":"'
_TAIL = b'"}\n'
_BASE64 = 88
_PAYLOAD_END = -(len(_MIDDLE) + _BASE64 + len(_TAIL))
_SIGNATURE = slice(-(_BASE64 + len(_TAIL)), -len(_TAIL))
_EVENT_NAME = len('{"entry":{"agent_id":"","event":{"') + 36
_FREE_JSON: dict[bytes, Callable[[Any], object]] = {
    b"Started": lambda event: (
        event.execution_context is not UNSET or event.config.tool_definitions is not UNSET
    ),
    b"PolicyEvaluated": lambda event: event.approved_calls or event.denied_calls,
    b"ToolEffect": lambda event: (
        event.effect.request_started is not UNSET and event.effect.request_started.outbound
    ),
    b"ResponseDeliveryFinished": lambda event: event.receipt is not None,
    b"DirectInferenceRequested": lambda event: event.communication is not None,
}
"""The events that may hold free JSON, and whether one does."""
_DIGITS_AS_ZERO = bytes(ord("0") if chr(byte) in "0123456789" else 0 for byte in range(256))
_LONG_NUMBER = b"0" * 19
"""A run of digits that might be an integer outside 64 bits."""
_EXACT_DIGITS = 16
"""Characters of a float whose digits, as an integer, and power of ten are both exact in binary64."""
_AFTER_ENTRY = -len(f'"previous_hash":"{"":64}","run_id":"{"":36}","version":2}}')
_ENCODE = msgspec.json.Encoder(order="sorted").encode


class SignatureFormError(ValueError):
    """The signature is base64, but not of 64 bytes."""


def envelope(line: bytes) -> tuple[bytes, bytes, bool]:
    """Cut a line, line feed included, into payload and signature; and whether it is laid out as the writer does.

    Raises:
        JsonError: not a record.
        SignatureFormError: a signature of another length than 64 bytes.
    """
    if line.startswith(_HEAD) and line.endswith(_TAIL) and line[_PAYLOAD_END:].startswith(_MIDDLE):
        signature = _base64(line[_SIGNATURE])
        payload = line[len(_HEAD) : _PAYLOAD_END]
        if signature is not None and len(signature) == 64 and payload.startswith(b'{"entry":{'):
            return payload, signature, True
    return (*exact_envelope(line), False)


def exact_envelope(line: bytes) -> tuple[bytes, bytes]:
    """Cut a line by the rules alone, syntax checked throughout; raises as `envelope` does.

    A line may pass `envelope` with a payload that is no JSON at all; before its signature is called bad, this tells
    whether the runtime would have refused its syntax first.
    """
    payload, text = _members(line)
    signature = _base64(text.encode())
    if signature is None:
        raise JsonError("the signature is not canonical base64", line.find(b'"signature"'))
    if len(signature) != 64:
        raise SignatureFormError(f"the signature has {counted(len(signature), 'byte')}, not 64")
    return payload, signature


def decode(payload: bytes) -> Record:
    """Type one payload.

    Raises:
        JsonError: where the runtime's reader would refuse it.
    """
    name = payload[_EVENT_NAME : payload.find(b'"', _EVENT_NAME)]
    kind = _canonical_decoder(name)
    same = False
    if kind is not None:
        try:
            fast = kind.decode(payload)
            same = _ENCODE(fast) == payload
        except (msgspec.DecodeError, OverflowError, RecursionError, UnicodeError):
            pass
    if same:
        entry = fast.entry
        time, agent_id, run_id, event = entry.timestamp, entry.agent_id, fast.run_id, entry.event.body
        if (
            timestamp.is_canonical(time)
            and is_canonical_uuid(agent_id)
            and is_canonical_uuid(run_id)
            and (name not in _FREE_JSON or _free_json_is_plain(payload, event, _FREE_JSON[name](event)))
        ):
            return Record(
                fast.version,
                run_id,
                fast.previous_hash,
                entry.sequence,
                time,
                agent_id,
                entry.iteration,
                event,
                True,
            )
    return _exact_record(payload)


def _exact_record(payload: bytes) -> Record:
    value = exact.read(payload, Payload)
    entry = value.entry
    return Record(
        value.version,
        str(value.run_id) if isinstance(value.run_id, UUID) else None,
        value.previous_hash,
        entry.sequence,
        entry.timestamp,
        str(entry.agent_id),
        entry.iteration,
        entry.event,
        _is_canonical(payload, value),
    )


def _is_canonical(payload: bytes, value: Payload) -> bool:
    """Whether a payload that the fast way left to the exact one is spelled as the writer would all the same.

    Its floats are taken as they were meant: the runtime's reader rounds some otherwise than its writer.
    """
    try:
        meant = msgspec.json.decode(payload)
        if canonical.canonical(meant) != payload:
            return False
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    typed = msgspec.to_builtins(value)
    typed["entry"]["event"] = {type(value.entry.event).__name__: typed["entry"]["event"]}
    return timestamp.is_canonical(value.entry.timestamp) and _alike(meant, typed)


def _alike(one: Any, other: Any) -> bool:
    """Whether two values are equal, floats aside."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    return type(one) is type(other) and (isinstance(one, float) or one == other)


def _members(line: bytes) -> tuple[bytes, str]:
    """Section 4: exactly two members in either order, or the positional form."""
    scanner = Scanner(line)
    found: dict[str, Any] = {}

    def read(name: str) -> None:
        if name in found:
            scanner.fail(f"member {name!r} is repeated")
        if name == "payload":
            start, end = scanner.skip()
            found[name] = line[start:end]
        elif name == "signature":
            found[name] = scanner.string()
        else:
            scanner.fail(f"unknown member {name!r}")

    def element(index: int) -> None:
        read(("payload", "signature")[index] if index < 2 else "third element")

    if scanner.peek() == b"[":
        scanner.elements(element)
    else:
        scanner.members(read)
    scanner.end()
    for name in ("payload", "signature"):
        if name not in found:
            scanner.fail(f"member {name!r} is missing")
    return found["payload"], found["signature"]


def _base64(text: bytes) -> bytes | None:
    """Strict base64 (section 6.5): standard alphabet, canonical padding, no unused bits set."""
    try:
        value = binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        return None
    return value if binascii.b2a_base64(value, newline=False) == text else None


def _free_json_is_plain(payload: bytes, event: Event, present: object) -> bool:
    """Whether free JSON cannot hold what the fast decoder takes and the runtime does not, or reads otherwise."""
    return not present or (
        payload.count(b"{") + payload.count(b"[") <= MAX_DEPTH
        and b"$serde_json" not in payload
        and _LONG_NUMBER not in payload[:_AFTER_ENTRY].translate(_DIGITS_AS_ZERO)
        and (type(event) is not ToolEffect or _numbers_are_plain(event.effect.value.outbound))
    )


def _numbers_are_plain(value: Any) -> bool:
    """Floats of few digits are read alike by the runtime's conversion and by a correctly rounded one."""
    if isinstance(value, dict):
        return all(_numbers_are_plain(item) for item in value.values())
    if isinstance(value, list):
        return all(_numbers_are_plain(item) for item in value)
    return not isinstance(value, float) or (len(text := repr(value)) <= _EXACT_DIGITS and "e" not in text)


@cache
def _canonical_decoder(name: bytes) -> msgspec.json.Decoder[Any] | None:
    """A decoder for canonical payloads whose event is `name`, made when the event is first met."""
    event = EVENTS.get(name.decode("latin-1"))
    if event is None:
        return None
    options: dict[str, Any] = {"frozen": True, "gc": False, "forbid_unknown_fields": True}
    wrapper = defstruct("Wrapper", [("body", event)], rename={"body": event.__name__}, **options)
    entry = defstruct(
        "Entry",
        [("sequence", U64), ("timestamp", str), ("agent_id", str), ("iteration", U32), ("event", wrapper)],
        **options,
    )
    payload = defstruct(
        "Payload",
        [("version", U32), ("run_id", str), ("previous_hash", str), ("entry", entry)],
        **options,
    )
    return msgspec.json.Decoder(payload)
