"""Jobs, frozen occurrences and fingerprints of the scheduler (cron-store.md section 7).

`agent_config`, `job` and `occurrence` give the frozen values in the order of the format; `fingerprint` hashes
the request as the runtime does, with `cpu_cores` widened from 32 to 64 bits; `scheduled_invocation` gives the
claim of an occurrence. Defaults inside a `delivery_config` are not filled in: give it complete.
"""

from typing import Any

from tests.support.writer.claim import Invocation, open_invocation
from tests.support.writer.events import duration
from tests.support.writer.project import Project
from tests.support.writer.text import AGENT, RUN, digest, f32, merge

SCOPE = "scheduler:v1"
JOB = "cccccccc-1111-4222-8333-444444444444"
TRIGGER = "22222222-3333-4444-8555-666666666666"
DUE = "2026-03-04T05:00:00Z"


def agent_config(agent_id: str = AGENT, **fields: Any) -> dict[str, Any]:
    """Return an agent configuration."""
    defaults: dict[str, Any] = {
        "id": agent_id,
        "name": "reporter",
        "dsl_source": "agent reporter() {}",
        "execution_mode": "Ephemeral",
        "security_tier": "Tier1",
        "resource_limits": {
            "memory_mb": 512,
            "cpu_cores": 0.1,
            "disk_io_mbps": 100,
            "network_io_mbps": 100,
            "execution_timeout": duration(3600),
            "idle_timeout": duration(300),
        },
        "capabilities": [],
        "policies": [],
        "metadata": {},
        "priority": "Normal",
    }
    return merge(defaults, fields)


def job(job_id: str = JOB, agent: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """Return a job as an occurrence freezes it."""
    defaults: dict[str, Any] = {
        "job_id": job_id,
        "name": "hourly",
        "cron_expression": "0 0 * * * *",
        "timezone": "UTC",
        "agent_config": agent or agent_config(),
        "input": None,
        "policy_ids": [],
        "audit_level": "None",
        "status": "Active",
        "enabled": True,
        "one_shot": False,
        "created_at": "2026-03-04T04:00:00Z",
        "updated_at": "2026-03-04T04:00:00Z",
        "last_run": None,
        "next_run": DUE,
        "run_count": 0,
        "failure_count": 0,
        "max_retries": 3,
        "max_concurrent": 1,
        "delivery_config": None,
        "jitter_max_secs": 0,
        "session_mode": "EphemeralWithSummary",
        "agentpin_jwt": None,
    }
    return merge(defaults, fields)


def timer_identity(job_id: str = JOB, due: str = DUE) -> str:
    """Return the invocation id of a timer occurrence: 16 bytes of a hash, no version bits set."""
    digits = digest(["cron-occurrence:v1", job_id, due]).removeprefix("sha256:")
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:32]}"


def occurrence(
    frozen: dict[str, Any] | None = None,
    *,
    invocation_id: str | None = None,
    scheduled_for: str | None = None,
    created_at: str = "2026-03-04T05:00:00.125Z",
    **fields: Any,
) -> dict[str, Any]:
    """Return a frozen occurrence: of the timer when `scheduled_for` is given, else of a manual trigger.

    Args:
        frozen: the job; a default one if None.
        invocation_id: the identity; None derives the timer's, or takes the fixed manual one.
        scheduled_for: due time of a timer occurrence.
        created_at: when it was frozen.
        fields: members to replace.
    """
    frozen = job() if frozen is None else frozen
    timer = scheduled_for is not None
    derived = timer_identity(frozen["job_id"], scheduled_for) if scheduled_for is not None else TRIGGER
    context = {"caller": "cron.timer" if timer else "fixture"}
    defaults: dict[str, Any] = {
        "job": frozen,
        "identity": {"id": invocation_id or derived, "context": context},
        "scheduled_for": scheduled_for,
        "created_at": created_at,
    }
    return merge(defaults, fields)


def request(frozen: dict[str, Any]) -> dict[str, Any]:
    """Return the request value of an occurrence, whose digest is the fingerprint."""
    of, identity, due = frozen["job"], frozen["identity"], frozen["scheduled_for"]
    context = {
        "caller": identity["context"],
        "job_id": of["job_id"],
        "job_name": of["name"],
        "one_shot": of["one_shot"],
        "max_concurrent": of["max_concurrent"],
        "max_retries": of["max_retries"],
        "scheduled_for": due,
        "policy_ids": of["policy_ids"],
        "audit_level": of["audit_level"],
        "delivery": of.get("delivery_config"),
        "agentpin_credential": of.get("agentpin_jwt"),
        "jitter_max_secs": of.get("jitter_max_secs", 0),
    }
    return {"version": 1, "context": context, "target": _target(frozen), "input": of.get("input")}


def _target(frozen: dict[str, Any]) -> dict[str, Any]:
    of = frozen["job"]
    target = {name: of["agent_config"][name] for name in agent_config()}
    limits = dict(target["resource_limits"])
    limits["cpu_cores"] = f32(limits["cpu_cores"])
    mode = target["execution_mode"]
    if not (isinstance(mode, dict) and "External" in mode):
        mode = {"CronScheduled": {"cron_expression": of["cron_expression"], "timezone": of["timezone"]}}
    marks = {
        "trigger": "cron_manual" if frozen["scheduled_for"] is None else "cron",
        "cron_job_id": of["job_id"],
        "session_id": frozen["identity"]["id"],
        "session_mode": of.get("session_mode", "EphemeralWithSummary"),
    }
    return {
        **target,
        "execution_mode": mode,
        "resource_limits": limits,
        "metadata": {**target["metadata"], **marks},
    }


def fingerprint(frozen: dict[str, Any]) -> str:
    """Return the request hash of an occurrence, which is also its claim's."""
    return digest(request(frozen))


def completion(invocation: Invocation, **fields: Any) -> dict[str, Any]:
    """Return the saved completion of a run, as `execution_json` and claim results hold it."""
    reference = invocation.reference
    defaults = {
        "run_id": invocation.journal.run_id,
        "agent_id": invocation.journal.agent_id,
        "status": "Completed",
        "output": "sum is 10",
        "error": None,
        "duration": duration(0, 56_545_178),
        "audit": {"path": reference["path"], "public_key": reference["public_key"]},
        "total_usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        "budget": None,
    }
    return merge(defaults, fields)


def scheduled_invocation(project: Project, frozen: dict[str, Any], **options: Any) -> Invocation:
    """Return the invocation of an occurrence; options as for `open_invocation`."""
    options = {"agent_id": frozen["job"]["agent_config"]["id"], "run_id": RUN} | options
    return open_invocation(
        project, SCOPE, frozen["identity"]["id"], request_hash=fingerprint(frozen), **options
    )
