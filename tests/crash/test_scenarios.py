"""Every scenario: killed and failed at a sample of its system calls, and durable in the order of its calls.

The full matrix is `python -m tests.crash.matrix NAME`, or the tests here that are marked slow.
"""

from pathlib import Path

import pytest

from tests.crash.harness import (
    Scenario,
    assert_durable_order,
    assert_no_overwrite,
    assert_nothing_unsynced,
    check_faults,
    check_kills,
    missing_strace,
    record_scenario,
)
from tests.crash.matrix import discover


@pytest.fixture(params=discover().values(), ids=lambda scenario: scenario.name)
def scenario(request: pytest.FixtureRequest) -> Scenario:
    reason = missing_strace()
    if reason:
        pytest.skip(f"not run: {reason}")
    found: Scenario = request.param
    return found


def test_killed_at_a_sample_of_calls_and_run_again_it_ends_the_same(
    scenario: Scenario, tmp_path: Path
) -> None:
    check_kills(scenario, tmp_path, scenario.kills).raise_if_failed()


def test_failing_at_a_sample_of_calls_it_says_so_and_can_be_run_again(
    scenario: Scenario, tmp_path: Path
) -> None:
    check_faults(scenario, tmp_path, scenario.faults).raise_if_failed()


def test_it_announces_only_what_is_durable_and_replaces_nothing(scenario: Scenario, tmp_path: Path) -> None:
    trace = record_scenario(scenario, tmp_path)
    for name in scenario.publishes:
        assert_durable_order(trace, name, written=name not in scenario.published_only)
    for name, removed in scenario.publishes_before:
        assert_durable_order(trace, name, before=removed)
    assert_nothing_unsynced(trace, scenario.may_be_lost)
    assert_no_overwrite(trace, scenario.may_exist)


@pytest.mark.slow
def test_killed_at_every_call_and_run_again_it_ends_the_same(scenario: Scenario, tmp_path: Path) -> None:
    check_kills(scenario, tmp_path).raise_if_failed()


@pytest.mark.slow
def test_failing_at_every_call_it_says_so_and_can_be_run_again(scenario: Scenario, tmp_path: Path) -> None:
    check_faults(scenario, tmp_path).raise_if_failed()
