"""Nested effects of a tool call: file publications and network requests (journal.md section 11).

Part of :mod:`tests.support.writer.events`, under the same rules: identifiers by position, any member by keyword,
ABSENT removes one. `tool_effect` wraps a nested effect into the event that a journal records.
"""

from typing import Any

from tests.support.writer.events import FINGERPRINT, RUN_KEY, Event, event_value
from tests.support.writer.text import ABSENT, plain_hash


def tool_effect(effect: Event, fingerprint: str = FINGERPRINT, **fields: Any) -> Event:
    """Return `ToolEffect` around a nested effect."""
    return event_value(
        "ToolEffect", {"run_key": RUN_KEY, "call_fingerprint": fingerprint, "effect": effect}, fields
    )


def file_publication_prepared(intent: dict[str, Any], **fields: Any) -> Event:
    """Return the nested `FilePublicationPrepared` of an intent."""
    return event_value("FilePublicationPrepared", {"intent": intent}, fields)


def file_publication_finished(
    publication_id: str, *, confirmed: bool = True, error: str | None = None, **fields: Any
) -> Event:
    """Return the nested `FilePublicationFinished`."""
    defaults = {"publication_id": publication_id, "confirmed": confirmed, "error": error}
    return event_value("FilePublicationFinished", defaults, fields)


def network_request_started(request_id: str = "http_call_1", outbound: Any = ABSENT, **fields: Any) -> Event:
    """Return the nested `NetworkRequestStarted`; `outbound` is left out unless given."""
    defaults = {
        "outbound": outbound,
        "request_id": request_id,
        "method": "POST",
        "url": "https://hooks.example/notify",
        "request_hash": plain_hash(request_id.encode()),
        "request_bytes": 812,
    }
    return event_value("NetworkRequestStarted", defaults, fields)


def network_request_finished(
    request_id: str = "http_call_1", status: int | None = 201, error: str | None = None, **fields: Any
) -> Event:
    """Return the nested `NetworkRequestFinished`; without a status the hashes are null as well."""
    answered = status is not None
    defaults = {
        "request_id": request_id,
        "status": status,
        "response_hash": plain_hash(b"response") if answered else None,
        "response_headers_hash": plain_hash(b"headers") if answered else None,
        "response_bytes": 64 if answered else 0,
        "error": error,
    }
    return event_value("NetworkRequestFinished", defaults, fields)
