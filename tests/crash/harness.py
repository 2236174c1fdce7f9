"""Disturbs a command at every system call and judges what is left: the one module that scenario files import.

A `Scenario` says how to prepare a world, which command to run in it, and how to compare. `check_kills` and
`check_faults` then do, for every point of the matrix or for a bounded sample of it, each time in a fresh world:

1. run the command with the one disturbance, and judge its exit code, its stderr and what it claims;
2. judge the state in between (`allowed_between`) and that no evidence byte has changed;
3. run the same command again, undisturbed; it must end as it does without any disturbance;
4. compare the final state and the evidence once more.

Before that, two undisturbed runs in one world set the standard, and two recordings must agree call by call.
All failures are collected, each with its point and the command that repeats it; nothing stops at the first.

It does not say whether the standard itself is right: that is for ordinary tests. It does not know the product.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct

from tests.crash.order import assert_durable_order, assert_no_overwrite, assert_nothing_unsynced
from tests.crash.points import ERRNOS, fault_points, kill_points, sample_faults, sample_kills
from tests.crash.run import (
    Kind,
    Outcome,
    Point,
    Trace,
    Workspace,
    differences,
    missing_strace,
    record,
    run_with,
)
from tests.crash.scenario import Failure, Result, Scenario, Worlds, file_hashes

__all__ = [
    "ERRNOS",
    "Failure",
    "Kind",
    "Outcome",
    "Point",
    "Result",
    "Scenario",
    "Trace",
    "Workspace",
    "assert_durable_order",
    "assert_no_overwrite",
    "assert_nothing_unsynced",
    "check_faults",
    "check_kills",
    "check_points",
    "fault_points",
    "file_hashes",
    "kill_points",
    "missing_strace",
    "record",
    "record_scenario",
    "run_with",
]

EXITS = frozenset({0, 1, 2, 3, 4, 64})
"""How a disturbed command may end. 70 is a defect, and 120 is the interpreter's word for a stdout it could not flush."""

_NO_TRACES = (b"Traceback (most recent call last)", b"Exception ignored in")
_TRIES = 3
_REMOVALS = frozenset({"unlink", "unlinkat", "rmdir"})
_LOST_WRITES = frozenset({"EIO", "ENOSPC", "EDQUOT"})


class _Standard(Struct, frozen=True):
    """What undisturbed runs do: the first, and the same command again."""

    state: object
    exits: frozenset[int | None]
    talks: bool


def check_kills(scenario: Scenario, tmp: Path, sample: int | None = None) -> Result:
    """Kill the command before and after every system call, or at `sample` chosen points; then run it again.

    Args:
        scenario: the command under test.
        tmp: an empty folder; worlds are made and removed below it.
        sample: the greatest number of points, or None for all.
    """

    def choose(trace: Trace) -> tuple[list[Point], int]:
        points = kill_points(trace)
        return (points if sample is None else sample_kills(trace, points, sample)), len(points)

    return _check(scenario, tmp, choose)


def check_faults(
    scenario: Scenario,
    tmp: Path,
    sample: int | None = None,
    errnos: Sequence[str] = ERRNOS,
) -> Result:
    """Make every system call fail, once and for ever, with each errno; or at `sample` chosen points; then run again."""

    def choose(trace: Trace) -> tuple[list[Point], int]:
        points = fault_points(trace, errnos)
        return (points if sample is None else sample_faults(points, sample)), len(points)

    return _check(scenario, tmp, choose)


def check_points(scenario: Scenario, tmp: Path, ids: Sequence[str]) -> Result:
    """Run only the points with these ids (`Point.id`), to repeat a failure."""

    def choose(trace: Trace) -> tuple[list[Point], int]:
        points = [*kill_points(trace), *fault_points(trace)]
        return [p for p in points if p.id in ids], len(points)

    return _check(scenario, tmp, choose)


def record_scenario(scenario: Scenario, tmp: Path) -> Trace:
    """Record the scenario's command once, in a fresh world, for the checks of order."""
    worlds = Worlds(scenario, tmp)
    with worlds.fresh() as world:
        worlds.plain(world)  # fills the byte-code cache, which the recording must find
    with worlds.fresh() as world:
        return worlds.record(world)


def _check(scenario: Scenario, tmp: Path, choose: Callable[[Trace], tuple[list[Point], int]]) -> Result:
    begun = time.monotonic()
    worlds = Worlds(scenario, tmp)
    standard, failures = _standard(worlds)
    trace, other = _recorded_alike(worlds)
    if other:
        failures.append(
            Failure("trace-differs", f"two recordings differ, so no call can be hit again: {other}")
        )
    points, possible = choose(trace)
    if not points:
        failures.append(
            Failure("no-points", f"nothing after start-up touches the tree; stderr: {trace.stderr!r}")
        )
    with ThreadPoolExecutor(scenario.workers) as pool:
        found = list(pool.map(lambda point: _try(worlds, standard, point), points))
    failures += [failure for some in found for failure in some]
    return Result(scenario.name, len(points), possible, time.monotonic() - begun, tuple(failures))


def _recorded_alike(worlds: Worlds) -> tuple[Trace, str | None]:
    """Record until two recordings in a row agree, and say how the last two differ if they never do.

    The kernel's own lists, of locks for one, change with whatever else runs on the host, and with them the number of
    reads.
    """
    with worlds.fresh() as world:
        trace = worlds.record(world)
    other: str | None = None
    for _ in range(_TRIES):
        with worlds.fresh() as world:
            following = worlds.record(world)
        other = differences(trace, following)
        trace = following
        if not other:
            break
    return trace, other


def _standard(worlds: Worlds) -> tuple[_Standard, list[Failure]]:
    """Run twice in one world.

    A first run that does not succeed or changes nothing would make every later comparison empty; a second one that
    changes anything is a failure already.
    """
    scenario = worlds.scenario
    failures = []
    with worlds.fresh() as world:
        before = dict(scenario.evidence(world))
        untouched = scenario.final_state(world)
        first = worlds.plain(world)
        state = scenario.final_state(world)
        second = worlds.plain(world)
        again = scenario.final_state(world)
        if dict(scenario.evidence(world)) != before:
            failures.append(
                Failure("evidence", "the undisturbed command changes evidence", output=_tail(first))
            )
    for number, outcome in (("first", first), ("second", second)):
        bad = _bad_end(outcome)
        if bad:
            failures.append(Failure(bad[0], f"the {number} undisturbed run {bad[1]}", output=_tail(outcome)))
    if first.exit_code != scenario.success:
        message = f"the undisturbed command ended with {first.exit_code}, not {scenario.success}"
        failures.append(Failure("standard", message, output=_tail(first)))
    if state == untouched:
        failures.append(Failure("standard", f"the undisturbed command leaves the state as it was: {state!r}"))
    if state != again:
        failures.append(Failure("final-state", f"a second undisturbed run changes {state!r} to {again!r}"))
    exits = frozenset({first.exit_code, second.exit_code})
    return _Standard(state, exits, bool(first.stdout)), failures


def _try(worlds: Worlds, standard: _Standard, point: Point) -> list[Failure]:
    """One point, again in a new world when the call was not reached: what else runs on the host may move a read."""
    failures: list[Failure] = []
    try:
        for _ in range(_TRIES):
            failures = _try_once(worlds, standard, point)
            if not any(failure.check == "not-injected" for failure in failures):
                break
    except Exception as problem:  # noqa: BLE001 - a scenario that stumbles over the state is one more finding
        return [Failure("scenario-raised", f"the scenario itself raised {problem!r}", point)]
    return failures


def _try_once(worlds: Worlds, standard: _Standard, point: Point) -> list[Failure]:
    scenario = worlds.scenario
    failures = []
    with worlds.fresh() as world:
        before = dict(scenario.evidence(world))
        outcome = worlds.disturbed(world, point)

        def fail(check: str, message: str, ended: Outcome = outcome) -> None:
            failures.append(Failure(check, message, point, outcome.hit, _tail(ended)))

        if not outcome.injected:
            fail("not-injected", f"the call was not reached (exit {outcome.exit_code})")
        for check, message in _judge_run(scenario, world, standard, point, outcome):
            fail(check, message)
        if dict(scenario.evidence(world)) != before:
            fail("evidence", f"evidence changed: {_changed(before, scenario.evidence(world))}")
        second = worlds.plain(world)
        bad = _bad_end(second)
        if bad or second.exit_code not in standard.exits:
            fail("second-run", f"the second run ended with {second.exit_code}, stderr below", second)
        state = scenario.final_state(world)
        if state != standard.state:
            fail(
                "final-state",
                f"after the second run: {state!r}; without disturbance: {standard.state!r}",
                second,
            )
        if dict(scenario.evidence(world)) != before:
            fail(
                "evidence",
                f"changed after the second run: {_changed(before, scenario.evidence(world))}",
                second,
            )
    return failures


def _judge_run(
    scenario: Scenario, world: Workspace, standard: _Standard, point: Point, outcome: Outcome
) -> Iterable[tuple[str, str]]:
    """The rules for the disturbed run itself and for the state it left."""
    killed = point.kind in (Kind.KILL, Kind.TORN)
    if not killed:
        bad = _bad_end(outcome)
        if bad:
            yield bad[0], f"the disturbed run {bad[1]}"
        if outcome.exit_code == scenario.success:
            if scenario.final_state(world) != standard.state:
                yield "false-success", f"success, but the state is {scenario.final_state(world)!r}"
            if standard.talks and not outcome.stdout:
                yield "false-success", "success, but nothing was announced on stdout"
            lost = point.name in ("fsync", "fdatasync") and point.errno in _LOST_WRITES
            if lost and not scenario.may_pass_over(outcome):
                yield "sync-ignored", "success, although data could not be made durable"
        left = scenario.leftovers(world)
        if left and not point.for_ever and point.name not in _REMOVALS:
            yield "leftover", f"the command lived on, and left {sorted(left)}"
    elif scenario.announces(outcome) and scenario.final_state(world) != standard.state:
        yield (
            "false-success",
            f"announced before it was killed, but the state is {scenario.final_state(world)!r}",
        )
    allowed = scenario.allowed_between if killed else scenario.allowed_after_fault
    try:
        allowed(world)
    except AssertionError as problem:
        yield "between", str(problem)
    try:
        scenario.judge(world, point, outcome)
    except AssertionError as problem:
        yield "judge", str(problem)


def _bad_end(outcome: Outcome) -> tuple[str, str] | None:
    if outcome.timed_out:
        return "timeout", f"did not end within {outcome.seconds:.0f} s"
    if any(trace in outcome.stderr for trace in _NO_TRACES):
        return "traceback", f"ended with {outcome.exit_code} and printed a traceback"
    if outcome.exit_code not in EXITS:
        return "exit-code", f"ended with exit code {outcome.exit_code}, signal {outcome.signal}"
    return None


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def _tail(outcome: Outcome) -> str:
    out, err = (
        stream.decode("utf-8", "backslashreplace")[-1500:] for stream in (outcome.stdout, outcome.stderr)
    )
    return f"stdout: {out.strip() or '(nothing)'}\nstderr: {err.strip() or '(nothing)'}"
