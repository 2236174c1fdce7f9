"""The frozen occurrence of a schedule, and the fingerprint over it (cron-store.md section 7). Pure.

The fingerprint is the digest of a request that is made anew from the typed occurrence: defaults filled in, unknown
members dropped, `cpu_cores` widened from 32 to 64 bits.
"""

import struct
from typing import Any

from msgspec import UNSET
from msgspec.structs import asdict

from symbi_recover.core.schedules import (
    FROZEN_LIMIT,
    AgentConfig,
    FrozenJob,
    FrozenOccurrence,
    ModeWithFields,
    ResourceLimits,
)
from symbi_recover.core.values import Duration
from symbi_recover.wire import canonical, exact, timestamp
from symbi_recover.wire.strictjson import JsonError

_CHANNELS: dict[str, tuple[tuple[str, Any], ...]] = {
    "stdout": (),
    "log_file": (("path", ...),),
    "webhook": (
        ("url", ...),
        ("method", "POST"),
        ("headers", {}),
        ("retry_count", 3),
        ("timeout_secs", 30),
    ),
    "slack": (("webhook_url", ...), ("channel", None)),
    "email": (
        ("smtp_host", ...),
        ("smtp_port", ...),
        ("to", ...),
        ("from", ...),
        ("subject_template", None),
    ),
    "custom": (("handler_name", ...), ("config", {})),
    "channel_adapter": (("adapter_name", ...), ("channel_id", ...), ("thread_id", None)),
}
"""Members of each delivery channel in order, with what absence means; `...` where it is refused."""


def parse_occurrence(text: bytes) -> FrozenOccurrence:
    """Read a frozen occurrence.

    Raises:
        JsonError: it is too large, or the runtime's reader refuses it.
    """
    if len(text) > FROZEN_LIMIT:
        raise JsonError("oversized occurrence record", 0)
    frozen = exact.read(text, FrozenOccurrence)
    _delivery(frozen.job.delivery_config)
    return frozen


def fingerprint(frozen: FrozenOccurrence) -> str:
    """The request hash of an occurrence, which its claim has as well."""
    return canonical.digest(request(frozen))


def request(frozen: FrozenOccurrence) -> dict[str, Any]:
    """The request that the fingerprint is made over (section 7.3)."""
    job = frozen.job
    return {
        "version": 1,
        "context": {
            "caller": frozen.identity.context,
            "job_id": job.job_id,
            "job_name": job.name,
            "one_shot": job.one_shot,
            "max_concurrent": job.max_concurrent,
            "max_retries": job.max_retries,
            "scheduled_for": _time(frozen.scheduled_for),
            "policy_ids": job.policy_ids,
            "audit_level": job.audit_level,
            "delivery": _delivery(job.delivery_config),
            "agentpin_credential": job.agentpin_jwt,
            "jitter_max_secs": job.jitter_max_secs,
        },
        "target": _target(job, frozen),
        "input": job.input,
    }


def _target(job: FrozenJob, frozen: FrozenOccurrence) -> dict[str, Any]:
    agent: AgentConfig = job.agent_config
    mode: Any = agent.execution_mode
    if not (isinstance(mode, ModeWithFields) and mode.external is not UNSET):
        mode = {"CronScheduled": {"cron_expression": job.cron_expression, "timezone": job.timezone}}
    trigger = "cron_manual" if frozen.scheduled_for is None else "cron"
    return {
        **asdict(agent),
        "execution_mode": mode,
        "resource_limits": _limits(agent.resource_limits),
        "metadata": {
            **agent.metadata,
            "trigger": trigger,
            "cron_job_id": str(job.job_id),
            "session_id": str(frozen.identity.id),
            "session_mode": job.session_mode,
        },
    }


def _limits(limits: ResourceLimits) -> dict[str, Any]:
    return {
        **asdict(limits),
        "cpu_cores": _widened(limits.cpu_cores),
        "execution_timeout": _span(limits.execution_timeout),
        "idle_timeout": _span(limits.idle_timeout),
    }


def _widened(value: float) -> float:
    """A 64-bit number after it has gone through 32 bits."""
    try:
        widened: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return value
    return widened


def _span(span: Duration) -> dict[str, int]:
    return {"secs": span.secs + span.nanos // 10**9, "nanos": span.nanos % 10**9}


def _time(text: str | None) -> str | None:
    return None if text is None else timestamp.canonical(text)


def _delivery(value: Any) -> dict[str, Any] | None:
    """A delivery configuration in its written form, defaults filled in; JsonError if it is none."""
    if value is None:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("channels"), list):
        raise JsonError("not a delivery configuration", 0)
    fail_fast = value.get("fail_fast", False)
    if not isinstance(fail_fast, bool):
        raise JsonError("fail_fast of a delivery is not true or false", 0)
    return {"channels": [_channel(channel) for channel in value["channels"]], "fail_fast": fail_fast}


def _channel(value: Any) -> dict[str, Any]:
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in _CHANNELS:
        raise JsonError("not a delivery channel", 0)
    channel = {"type": kind}
    for name, default in _CHANNELS[kind]:
        if name not in value and default is ...:
            raise JsonError(f"delivery channel {kind!r} lacks {name!r}", 0)
        channel[name] = value.get(name, default)
    return channel
