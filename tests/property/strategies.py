"""Hypothesis strategies for events, free JSON and odd spellings of it; and the profile that the tests share."""

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.support.writer import effects, events, inference
from tests.support.writer.text import ABSENT, spell_float

fast = settings(
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
"""The same examples on every run and machine."""

text = st.text(st.characters(codec="utf-8"), max_size=12)
u32 = st.sampled_from([0, 1, 2**31, 2**32 - 1]) | st.integers(0, 2**32 - 1)
u64 = st.sampled_from([0, 1, 2**53, 2**63 - 1, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1)
uuids = st.uuids().map(str)
floats = st.floats(allow_nan=False, allow_infinity=False)
numbers = st.integers(-(2**63), 2**64 - 1) | floats
free = st.recursive(
    st.none() | st.booleans() | numbers | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
usage = st.fixed_dictionaries({"prompt_tokens": u32, "completion_tokens": u32, "total_tokens": u32})
durations = st.fixed_dictionaries({"secs": u64.filter(lambda n: n < 2**64 - 5), "nanos": u32})
reasons = st.sampled_from(["Completed", "MaxIterations", "MaxTokens", "Timeout", "UnconfirmedEffects"]) | (
    text.map(lambda t: {"Error": {"message": t}}) | text.map(lambda t: {"PolicyDenial": {"reason": t}})
)
choices = st.sampled_from([ABSENT, None, {"type": "auto"}, {"type": "any"}, {"type": "tool", "name": "n"}])
definitions = st.lists(
    st.fixed_dictionaries({"name": text, "description": text, "parameters": free}), max_size=2
)

EVENTS: tuple[st.SearchStrategy[dict[str, Any]], ...] = (
    st.builds(
        lambda choice, tools, context, temperature: events.started(
            context=context,
            config=events.config(
                tool_choice=choice, tool_definitions=tools or ABSENT, temperature=temperature
            ),
        ),
        choices,
        definitions,
        st.dictionaries(text, free, max_size=2),
        st.floats(0, 2, width=32),
    ),
    st.builds(lambda d: events.terminated(duration=d), durations)
    | st.builds(lambda r, u: events.terminated(r, total_usage=u), reasons, usage),
    st.builds(events.tool_dispatch_started, uuids, text, text, tool_name=text),
    st.builds(lambda i, e: events.tool_dispatch_finished(i, is_error=e), uuids, st.booleans()),
    st.builds(lambda f, n: events.response_delivery_started(f, request_bytes=n), text, u64),
    st.builds(lambda r, c: events.response_delivery_finished(confirmed=c, receipt=r), free, st.booleans()),
    st.builds(events.delegation_started, text, target=text),
    st.builds(lambda r: events.delegation_finished(reason=r), reasons),
    st.builds(lambda a: events.policy_evaluated(1, a), st.lists(free, max_size=2)),
    st.builds(
        lambda i, o, u: effects.tool_effect(effects.network_request_started(i, o, url=u)),
        text,
        free | st.just(ABSENT),
        text,
    ),
    st.builds(
        lambda i, s: effects.tool_effect(effects.network_request_finished(i, s)),
        text,
        st.none() | st.integers(0, 65535),
    ),
    st.builds(
        lambda c, m: events.tool_batch_completed(1, [events.observation(c, metadata=m)]),
        text,
        st.dictionaries(text, text, max_size=2),
    ),
    st.builds(events.observations_collected, u32, u64),
    st.builds(lambda q, n: inference.direct_inference_requested(q, request_bytes=n), text, u64)
    | st.builds(lambda c: inference.direct_inference_requested(communication=c), free),
    st.builds(lambda r: inference.direct_inference_finished(reason=r), reasons),
    st.builds(lambda s: inference.inference_completed(status=s), st.integers(0, 65535)),
    st.builds(lambda u: inference.budget_reservation_finished(spent=u), usage),
    st.builds(inference.budget_updated, usage),
    st.builds(lambda e: events.recovery_triggered(error=e), text),
)
event = st.one_of(*EVENTS)
times = st.builds(
    lambda y, mo, d, h, mi, s, f: f"{y:04d}-{mo:02d}-{d:02d}T{h:02d}:{mi:02d}:{s:02d}{f}Z",
    st.integers(0, 9999),
    st.integers(1, 12),
    st.integers(1, 28),
    st.integers(0, 23),
    st.integers(0, 59),
    st.integers(0, 60),
    st.sampled_from(["", ".5", ".137", ".000001", ".123456789"]),
)

_SPACES = st.text(" \t\r\n", max_size=2)


@st.composite
def spelled(draw, value: Any) -> str:
    """One of the many JSON texts of a value: white space, escapes, other numbers."""
    if isinstance(value, dict):
        parts = [
            f"{draw(_SPACES)}{draw(spelled(k))}{draw(_SPACES)}:{draw(_SPACES)}{draw(spelled(v))}{draw(_SPACES)}"
            for k, v in value.items()
        ]
        return "{" + ",".join(parts) + "}"
    if isinstance(value, list):
        return "[" + ",".join(draw(_SPACES) + draw(spelled(item)) for item in value) + draw(_SPACES) + "]"
    if isinstance(value, str):
        return '"' + "".join(draw(_character(c)) for c in value) + '"'
    if isinstance(value, float):
        return draw(st.sampled_from([spell_float(value), repr(value)]))
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def _character(character: str) -> st.SearchStrategy[str]:
    units = character.encode("utf-16-be")
    escaped = "".join(f"\\u{units[at]:02x}{units[at + 1]:02X}" for at in range(0, len(units), 2))
    spellings = [escaped, escaped.lower()]
    if character >= " " and character not in '"\\':
        spellings.append(character)
    short = {
        "\n": "\\n",
        "\t": "\\t",
        '"': '\\"',
        "\\": "\\\\",
        "/": "\\/",
        "\b": "\\b",
        "\f": "\\f",
        "\r": "\\r",
    }
    if character in short:
        spellings.append(short[character])
    return st.sampled_from(spellings)
