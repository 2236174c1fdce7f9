"""Frozen occurrences and their fingerprints: the worked example, the defaults, and the writer of the tests."""

import json
from typing import Any

import pytest

from symbi_recover.wire import cron
from symbi_recover.wire.strictjson import JsonError
from tests.support.writer import cron as writer
from tests.support.writer.text import compact

MANUAL = "7bf3617687fc3e36e54ce78fa7b2db462e5555bf208b31148bcc3d8dae7e8419"
TIMER = "8f53b22534fea33b1b4fca799b85a7f17f9776647e83185d7c90e9bea27fe38e"
TIMES = {"created_at": "2026-10-28T08:00:00Z", "updated_at": "2026-10-28T08:00:00Z"}
DUE = "2026-10-28T09:00:00Z"
JOB = writer.job(agent=writer.agent_config("aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"), next_run=DUE, **TIMES)


def parsed(frozen: dict[str, Any]) -> Any:
    return cron.parse_occurrence(compact(frozen))


def test_the_worked_example_has_its_identity_and_fingerprint() -> None:
    frozen = parsed(writer.occurrence(JOB, scheduled_for=DUE, created_at="2026-10-28T09:00:00.125Z"))
    assert cron.fingerprint(frozen) == f"sha256:{TIMER}"
    assert str(frozen.identity.id) == "3fcbbb63-736b-5ac3-a8f6-f1dd20e68d40"
    manual = parsed(writer.occurrence(JOB, invocation_id="22222222-3333-4444-8555-666666666666"))
    assert cron.fingerprint(manual) == f"sha256:{MANUAL}"


@pytest.mark.parametrize(
    "agent",
    [
        {
            "execution_mode": {
                "External": {"endpoint": None, "agentpin_domain": "x", "heartbeat_interval_secs": 5}
            }
        },
        {"execution_mode": {"Scheduled": {"interval": {"secs": 1, "nanos": 0}}}},
        {"capabilities": ["Network", {"Custom": "paint"}], "metadata": {"z": "1", "a": "2"}},
        {
            "policies": ["99999999-8888-4777-8666-555555555555"],
            "security_tier": "Landlock",
            "priority": "Critical",
        },
    ],
)
def test_fingerprints_are_those_of_an_independent_writer(agent: dict[str, Any]) -> None:
    frozen = writer.occurrence(writer.job(agent=writer.agent_config(**agent)), scheduled_for=DUE)
    assert cron.fingerprint(parsed(frozen)) == writer.fingerprint(frozen)


def test_unknown_members_and_defaults_do_not_change_a_fingerprint() -> None:
    full = writer.occurrence(JOB, scheduled_for=DUE)
    bare = json.loads(json.dumps(full))
    for name in ("input", "delivery_config", "jitter_max_secs", "session_mode", "agentpin_jwt", "last_run"):
        del bare["job"][name]
    bare["job"]["more"] = bare["job"]["agent_config"]["more"] = {"x": [1]}
    assert cron.fingerprint(parsed(bare)) == cron.fingerprint(parsed(full))


def test_a_delivery_is_hashed_with_its_defaults() -> None:
    given = {"channels": [{"type": "webhook", "url": "https://x"}, {"type": "stdout", "more": 1}]}
    written = {
        "channels": [
            {
                "type": "webhook",
                "url": "https://x",
                "method": "POST",
                "headers": {},
                "retry_count": 3,
                "timeout_secs": 30,
            },
            {"type": "stdout"},
        ],
        "fail_fast": False,
    }
    first = parsed(writer.occurrence(writer.job(delivery_config=given)))
    second = writer.occurrence(writer.job(delivery_config=written))
    assert cron.fingerprint(first) == writer.fingerprint(second)


@pytest.mark.parametrize(
    "delivery",
    [
        [],
        {"channels": 1},
        {"channels": [{"type": "pigeon"}]},
        {"channels": [{"type": "slack"}]},
        {"channels": [], "fail_fast": 1},
    ],
)
def test_another_delivery_is_refused(delivery: Any) -> None:
    with pytest.raises(JsonError):
        parsed(writer.occurrence(writer.job(delivery_config=delivery)))


def test_an_unknown_member_of_the_occurrence_itself_is_refused() -> None:
    with pytest.raises(JsonError):
        parsed(writer.occurrence() | {"more": 1})


def test_an_oversized_occurrence_is_refused_in_the_runtimes_words() -> None:
    with pytest.raises(JsonError, match="oversized occurrence record"):
        cron.parse_occurrence(b" " * 1_048_577)
