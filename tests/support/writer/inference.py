"""Event values of inference and shared budgets (journal.md sections 10, 11 and 15).

The other half of :mod:`tests.support.writer.events`, under the same rules: identifiers by position, any member
by keyword, ABSENT removes one.
"""

from typing import Any

from tests.support.writer.events import NO_USAGE, RESERVATION, ROOT_BUDGET, Event, usage
from tests.support.writer.text import AGENT, digest, merge, plain_hash

CALL = "77777777-7777-4777-8777-777777777777"
ENDPOINT = "https://inference.internal/v1/messages"


def inference_requested(request_id: str = "req_1", **fields: Any) -> Event:
    """Return `InferenceRequested`."""
    defaults = {
        "request_id": request_id,
        "endpoint": ENDPOINT,
        "model": "claude-sonnet",
        "request_hash": plain_hash(request_id.encode()),
        "reserved_output_tokens": 4096,
    }
    return {"InferenceRequested": merge(defaults, fields)}


def inference_completed(request_id: str = "req_1", status: int = 200, **fields: Any) -> Event:
    """Return `InferenceCompleted`."""
    defaults = {
        "request_id": request_id,
        "status": status,
        "response_hash": plain_hash(b"response to " + request_id.encode()),
        "response_bytes": 2311,
    }
    return {"InferenceCompleted": merge(defaults, fields)}


def direct_inference_requested(call_id: str = CALL, **fields: Any) -> Event:
    """Return `DirectInferenceRequested`."""
    defaults = {
        "call_id": call_id,
        "operation": "reasoning",
        "provider": "fixture",
        "model": "claude-sonnet",
        "request_hash": digest([call_id]),
        "request_bytes": 468,
        "recipient": None,
        "recipient_definition_hash": None,
        "communication": None,
    }
    return {"DirectInferenceRequested": merge(defaults, fields)}


def direct_inference_response_received(call_id: str = CALL, **fields: Any) -> Event:
    """Return `DirectInferenceResponseReceived`."""
    defaults = {"call_id": call_id, "response_hash": digest([call_id, "response"]), "response_bytes": 160}
    return {"DirectInferenceResponseReceived": merge(defaults, fields)}


def direct_inference_finished(call_id: str = CALL, reason: Any = "Completed", **fields: Any) -> Event:
    """Return `DirectInferenceFinished`; without completion the response members are null."""
    done = reason == "Completed"
    defaults = {
        "call_id": call_id,
        "reason": reason,
        "response_hash": digest([call_id, "response"]) if done else None,
        "response_bytes": 160 if done else 0,
        "finish_reason": "stop" if done else None,
        "usage": usage(1, 1) if done else NO_USAGE,
    }
    return {"DirectInferenceFinished": merge(defaults, fields)}


def scope(number: int = 0, parent: int | None = None, limit: int = 100_000) -> dict[str, Any]:
    """Return a budget scope as a reservation lists it."""
    return {"scope": number, "parent": parent, "limit": limit}


def budget_opened(root_id: str = ROOT_BUDGET, limit: int = 100_000, **fields: Any) -> Event:
    """Return `BudgetOpened`."""
    return {"BudgetOpened": merge({"root_id": root_id, "limit": limit}, fields)}


def budget_scope_linked(root_id: str = ROOT_BUDGET, scope_number: int = 1, **fields: Any) -> Event:
    """Return `BudgetScopeLinked`."""
    return {
        "BudgetScopeLinked": merge({"root_id": root_id, "scope": scope_number, "root_audit": None}, fields)
    }


def reservation(
    reservation_id: str = RESERVATION, ancestors: list[dict[str, Any]] | None = None, **fields: Any
) -> dict[str, Any]:
    """Return a reservation; without ancestors it is one of the root scope."""
    defaults = {
        "id": reservation_id,
        "root_id": ROOT_BUDGET,
        "ancestors": [scope()] if ancestors is None else ancestors,
        "input_tokens": 100,
        "output_tokens": 200,
        "agent_id": AGENT,
        "audit": None,
        "iteration": 1,
        "provider": "fixture",
        "model": "claude-sonnet",
        "request_hash": digest([reservation_id]),
        "request_bytes": 681,
    }
    return merge(defaults, fields)


def budget_reservation_started(reserved: dict[str, Any] | None = None, **fields: Any) -> Event:
    """Return `BudgetReservationStarted`."""
    return {"BudgetReservationStarted": merge({"reservation": reserved or reservation()}, fields)}


def budget_reservation_finished(
    reservation_id: str = RESERVATION,
    spent: dict[str, int] | None = None,
    outcome: str | None = None,
    **fields: Any,
) -> Event:
    """Return `BudgetReservationFinished`; the outcome follows from the usage unless given."""
    used = NO_USAGE if spent is None else spent
    said = outcome or ("confirmed" if any(used.values()) else "unknown")
    defaults = {"root_id": ROOT_BUDGET, "reservation_id": reservation_id, "usage": used, "outcome": said}
    return {"BudgetReservationFinished": merge(defaults, fields)}


def budget_updated(spent: dict[str, int] | None = None, limit: int = 100_000, **fields: Any) -> Event:
    """Return `BudgetUpdated` for scope 0."""
    used = NO_USAGE if spent is None else spent
    defaults = {
        "root_id": ROOT_BUDGET,
        "scope": 0,
        "limit": limit,
        "usage": used,
        "reserved_tokens": 0,
        "uncertain_tokens": 0,
        "available_tokens": max(0, limit - used["total_tokens"]),
        "exceeded": False,
    }
    return {"BudgetUpdated": {"budget": merge(defaults, fields)}}
