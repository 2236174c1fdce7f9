"""Event values of a run journal with realistic defaults (journal.md sections 10 and 11).

One function per event, named as in the format but in snake case; nested effects are in `effects`, inference and
budgets in `inference`. Each takes the identifiers that tests vary by position, and any member by keyword: a
keyword replaces the default, adds an unknown member, or with ABSENT removes one. The values are plain JSON;
`JournalWriter.append` puts them into canonical text.
"""

from typing import Any

from tests.support.writer.text import ABSENT, AGENT, RUN, digest, f32, merge, plain_hash

Event = dict[str, Any]

ROOT_BUDGET = "44444444-4444-4444-8444-444444444444"
RESERVATION = "55555555-5555-4555-8555-555555555555"
DISPATCH = "33333333-3333-4333-8333-333333333333"
CHILD_AGENT = "66666666-6666-4666-8666-666666666666"
RUN_KEY = f"{AGENT}:2026-03-04T05:06:07+00:00"
FINGERPRINT = digest({"call": "call_1", "tool": "write_report"})
NO_USAGE = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


def event_value(name: str, defaults: dict[str, Any], fields: dict[str, Any]) -> Event:
    return {name: merge(defaults, fields)}


def usage(prompt: int = 600, completion: int = 150, total: int | None = None) -> dict[str, int]:
    """Return a usage structure; the total is the sum unless given."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion if total is None else total,
    }


def duration(secs: int = 1, nanos: int = 0) -> dict[str, int]:
    """Return a duration structure."""
    return {"secs": secs, "nanos": nanos}


def reference(run_id: str = RUN, path: str = "", key: str = "") -> dict[str, str]:
    """Return an audit reference; without a path an invented one."""
    invented = f"/srv/project/.symbiont/governed/{CHILD_AGENT}.{run_id}.jsonl"
    return {"run_id": run_id, "path": path or invented, "public_key": key or plain_hash(b"a public key")}


def config(**fields: Any) -> dict[str, Any]:
    """Return the loop configuration that a `Started` event carries."""
    defaults = {
        "max_iterations": 25,
        "max_total_tokens": 100_000,
        "timeout": duration(300),
        "default_recovery": {"Retry": {"max_attempts": 2, "base_delay": duration(0, 500_000_000)}},
        "tool_timeout": duration(30),
        "max_concurrent_tools": 5,
        "context_token_budget": 32_000,
        "temperature": f32(0.3),
        "max_output_tokens": 16_384,
        "max_delegation_depth": 3,
        "delegation_depth": 0,
        "delegation_chain": [],
    }
    return merge(defaults, fields)


def started(agent_id: str = AGENT, context: dict[str, Any] | None = None, **fields: Any) -> Event:
    """Return `Started`; a context becomes the `execution_context`, which is left out when None."""
    defaults = {"agent_id": agent_id, "config": config(), "execution_context": context or ABSENT}
    return event_value("Started", defaults, fields)


def terminated(reason: Any = "Completed", iterations: int = 1, **fields: Any) -> Event:
    """Return `Terminated`."""
    defaults = {
        "reason": reason,
        "iterations": iterations,
        "total_usage": usage(1200, 300),
        "duration": duration(2, 740_000_000),
    }
    return event_value("Terminated", defaults, fields)


def improvement_output(output: str = "Shorter prompts gave the same answers.", **fields: Any) -> Event:
    """Return `ImprovementOutput`."""
    return event_value("ImprovementOutput", {"output": output}, fields)


def tool_dispatch_started(
    dispatch_id: str = DISPATCH, call_id: str = "call_1", fingerprint: str = FINGERPRINT, **fields: Any
) -> Event:
    """Return `ToolDispatchStarted`."""
    defaults = {
        "dispatch_id": dispatch_id,
        "run_key": RUN_KEY,
        "call_id": call_id,
        "call_fingerprint": fingerprint,
        "tool_name": "write_report",
    }
    return event_value("ToolDispatchStarted", defaults, fields)


def tool_dispatch_finished(dispatch_id: str = DISPATCH, *, is_error: bool = False, **fields: Any) -> Event:
    """Return `ToolDispatchFinished`."""
    defaults = {"dispatch_id": dispatch_id, "observation_hash": digest([dispatch_id]), "is_error": is_error}
    return event_value("ToolDispatchFinished", defaults, fields)


def response_delivery_started(fingerprint: str = FINGERPRINT, **fields: Any) -> Event:
    """Return `ResponseDeliveryStarted`."""
    defaults = {"fingerprint": fingerprint, "request_hash": digest(["delivery"]), "request_bytes": 85}
    return event_value("ResponseDeliveryStarted", defaults, fields)


def response_delivery_finished(
    fingerprint: str = FINGERPRINT, *, confirmed: bool = True, **fields: Any
) -> Event:
    """Return `ResponseDeliveryFinished`."""
    defaults = {
        "fingerprint": fingerprint,
        "receipt": {"channel": "C1", "success": confirmed},
        "confirmed": confirmed,
        "error": None if confirmed else "response delivery was not confirmed",
    }
    return event_value("ResponseDeliveryFinished", defaults, fields)


def delegation_started(call_id: str = "call_1", audit: dict[str, Any] | None = None, **fields: Any) -> Event:
    """Return `DelegationStarted`."""
    defaults = {
        "run_key": RUN_KEY,
        "call_id": call_id,
        "call_fingerprint": FINGERPRINT,
        "target": "reader",
        "child_agent_id": CHILD_AGENT,
        "audit": audit or reference(),
        "system_prompt_hash": plain_hash(b"system prompt"),
        "message_hash": plain_hash(b"message"),
    }
    return event_value("DelegationStarted", defaults, fields)


def delegation_finished(
    call_id: str = "call_1", audit: dict[str, Any] | None = None, reason: Any = "Completed", **fields: Any
) -> Event:
    """Return `DelegationFinished`."""
    defaults = {
        "run_key": RUN_KEY,
        "call_id": call_id,
        "audit": audit or reference(),
        "reason": reason,
        "output_hash": plain_hash(b"output"),
    }
    return event_value("DelegationFinished", defaults, fields)


def reasoning_complete(iteration: int = 1, actions: list[Event] | None = None, **fields: Any) -> Event:
    """Return `ReasoningComplete`; without actions one tool call."""
    defaults = {"iteration": iteration, "actions": actions or [tool_call()], "usage": usage()}
    return event_value("ReasoningComplete", defaults, fields)


def tool_call(call_id: str = "call_1", name: str = "write_report", arguments: str = "{}") -> Event:
    """Return a `ToolCall` action."""
    return {"ToolCall": {"call_id": call_id, "name": name, "arguments": arguments}}


def approval(action: Event | None = None, fingerprint: str = FINGERPRINT, **fields: Any) -> dict[str, Any]:
    """Return one element of `approved_calls`."""
    chosen = action or tool_call()
    name = chosen.get("ToolCall", {}).get("name", "respond")
    defaults = {
        "action": chosen,
        "contract": {"digest": digest([name]), "tool": name},
        "fingerprint": fingerprint,
        "resolved": {"filesystem": "read_only"},
    }
    return merge(defaults, fields)


def policy_evaluated(
    iteration: int = 1,
    approved: list[Any] | None = None,
    denied: list[Any] | None = None,
    **fields: Any,
) -> Event:
    """Return `PolicyEvaluated`; the two counts follow from the lists."""
    allowed, refused = approved or [], denied or []
    defaults = {
        "iteration": iteration,
        "action_count": len(allowed) + len(refused),
        "denied_count": len(refused),
        "approved_calls": allowed,
        "denied_calls": refused,
    }
    return event_value("PolicyEvaluated", defaults, fields)


def tools_dispatched(iteration: int = 1, tool_count: int = 1, **fields: Any) -> Event:
    """Return `ToolsDispatched`."""
    defaults = {"iteration": iteration, "tool_count": tool_count, "duration": duration(0, 154_220)}
    return event_value("ToolsDispatched", defaults, fields)


def observation(content: str = "ok", call_id: Any = "call_1", **fields: Any) -> dict[str, Any]:
    """Return an observation."""
    defaults = {"source": "tool", "content": content, "is_error": False, "call_id": call_id, "metadata": {}}
    return merge(defaults, fields)


def tool_batch_completed(
    iteration: int = 1, observations: list[dict[str, Any]] | None = None, **fields: Any
) -> Event:
    """Return `ToolBatchCompleted`; without observations one that says ok."""
    seen = [observation()] if observations is None else observations
    return event_value(
        "ToolBatchCompleted", {"iteration": iteration, "observations": seen, "duration": duration()}, fields
    )


def observations_collected(iteration: int = 1, observation_count: int = 1, **fields: Any) -> Event:
    """Return `ObservationsCollected`."""
    defaults = {"iteration": iteration, "observation_count": observation_count}
    return event_value("ObservationsCollected", defaults, fields)


def recovery_triggered(iteration: int = 1, **fields: Any) -> Event:
    """Return `RecoveryTriggered`."""
    defaults = {
        "iteration": iteration,
        "tool_name": "write_report",
        "strategy": {"Retry": {"max_attempts": 2, "base_delay": duration(0, 500_000_000)}},
        "error": "the tool did not answer in time",
    }
    return event_value("RecoveryTriggered", defaults, fields)
