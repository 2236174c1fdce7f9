"""The harness passes a correct writer and finds every planted fault, by the check that is meant for it."""

import sys
from pathlib import Path

import pytest

from tests.crash.harness import (
    Kind,
    Outcome,
    Point,
    Scenario,
    Workspace,
    assert_durable_order,
    assert_no_overwrite,
    assert_nothing_unsynced,
    check_faults,
    check_kills,
    check_points,
    fault_points,
    kill_points,
    missing_strace,
    record_scenario,
    run_with,
)
from tests.crash.matrix import main
from tests.crash.points import changes, sample_faults, sample_kills
from tests.crash.run import environment
from tests.crash.toys.scenarios import RECEIPT, Toy
from tests.crash.toys.writer import FAULTS


@pytest.fixture(autouse=True)
def strace() -> None:
    reason = missing_strace()
    if reason:
        pytest.skip(f"not run: {reason}")


# The correct writer


def test_a_correct_writer_survives_a_kill_at_every_call(tmp_path: Path) -> None:
    result = check_kills(Toy(), tmp_path)
    result.raise_if_failed()
    assert result.points == result.possible > 15


def test_a_correct_writer_survives_a_sample_of_faults(tmp_path: Path) -> None:
    result = check_faults(Toy(), tmp_path, sample=40)
    result.raise_if_failed()
    assert result.points <= 40 < result.possible


@pytest.mark.slow
def test_a_correct_writer_survives_every_fault(tmp_path: Path) -> None:
    check_faults(Toy(), tmp_path).raise_if_failed()


def test_a_correct_writer_is_durable_in_order_and_replaces_nothing(tmp_path: Path) -> None:
    trace = record_scenario(Toy(), tmp_path)
    assert_durable_order(trace, "receipt.txt")
    assert_nothing_unsynced(trace)
    assert_no_overwrite(trace)


def test_worlds_are_taken_away(tmp_path: Path) -> None:
    check_kills(Toy(), tmp_path, sample=3)
    assert [path.name for path in tmp_path.iterdir()] == ["byte-code"]


# The planted faults

BY_KILLS = {
    "fixed-temporary": "second-run",
    "evidence-touched": "evidence",
    "early-announcement": "false-success",
    "written-in-place": "between",
    "overwriting-rename": "final-state",
}
BY_FAULTS = {
    "fixed-temporary": "second-run",
    "evidence-touched": "evidence",
    "short-write-unchecked": "false-success",
    "disk-full-ignored": "false-success",
    "sync-error-ignored": "sync-ignored",
    "traceback": "traceback",
}
BY_ORDER = {
    "no-file-sync": "is not synced before it is published",
    "no-directory-sync": "directory .* is not synced after",
    "early-announcement": "announced before the directory was synced",
    "written-in-place": "no rename or link publishes",
}


def test_every_planted_fault_has_a_check_that_finds_it() -> None:
    assert {*BY_KILLS, *BY_FAULTS, *BY_ORDER} == {*FAULTS}


@pytest.mark.parametrize(("fault", "check"), BY_KILLS.items())
def test_kills_find_the_planted_fault(fault: str, check: str, tmp_path: Path) -> None:
    assert check in {failure.check for failure in check_kills(Toy(fault), tmp_path, sample=30).failures}


@pytest.mark.parametrize(("fault", "check"), BY_FAULTS.items())
def test_a_sample_of_faults_finds_the_planted_fault(fault: str, check: str, tmp_path: Path) -> None:
    assert check in {failure.check for failure in check_faults(Toy(fault), tmp_path, sample=25).failures}


@pytest.mark.parametrize(("fault", "message"), BY_ORDER.items())
def test_the_order_of_calls_shows_the_planted_fault(fault: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=message):
        assert_durable_order(record_scenario(Toy(fault), tmp_path), "receipt.txt")


@pytest.mark.parametrize("fault", ["no-file-sync", "no-directory-sync"])
def test_a_change_that_is_never_synced_is_named(fault: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="not durable when success was announced"):
        assert_nothing_unsynced(record_scenario(Toy(fault), tmp_path))


def test_a_rename_that_can_overwrite_is_named(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="could overwrite"):
        assert_no_overwrite(record_scenario(Toy("overwriting-rename"), tmp_path))


def test_a_temporary_file_left_by_a_command_that_could_clean_up_is_named(tmp_path: Path) -> None:
    failures = check_faults(Toy("fixed-temporary"), tmp_path, sample=25).failures
    assert "leftover" in {failure.check for failure in failures}


def test_a_standard_that_proves_nothing_is_a_failure(tmp_path: Path) -> None:
    class Idle(Toy):
        def command(self, workspace: Workspace) -> list[str]:
            return [sys.executable, "-c", f"import os; os.stat('{workspace.root}')"]

    class Refused(Toy):
        def command(self, workspace: Workspace) -> list[str]:
            return [*super().command(workspace)[:-1], str(workspace.root / "nowhere")]

    idle, refused = (
        check_kills(toy, tmp_path / toy.__class__.__name__, sample=1) for toy in (Idle(), Refused())
    )
    assert "leaves the state as it was" in str(idle)
    assert "ended with 1, not 0" in str(refused)


def test_a_failure_says_how_to_repeat_it_and_the_repeat_finds_it_again(tmp_path: Path) -> None:
    result = check_kills(Toy("fixed-temporary"), tmp_path / "all")
    point = next(failure.point for failure in result.failures if failure.check == "second-run")
    assert point is not None
    assert f"python -m tests.crash.matrix toy-fixed-temporary --only {point.id}" in str(result)
    again = check_points(Toy("fixed-temporary"), tmp_path / "again", [point.id])
    assert again.points == 1
    assert "second-run" in {failure.check for failure in again.failures}


# What an injection really does


@pytest.fixture
def world(tmp_path: Path) -> Workspace:
    return Toy().prepare(tmp_path)


@pytest.fixture
def points(tmp_path_factory: pytest.TempPathFactory) -> list[Point]:
    trace = record_scenario(Toy(), tmp_path_factory.mktemp("recorded"))
    return kill_points(trace) + fault_points(trace)


def _run(point: Point, world: Workspace, scenario: Scenario | None = None, timeout: float = 30.0) -> Outcome:
    return run_with(
        point, (scenario or Toy()).command(world), world.cwd, environment(world.env), timeout=timeout
    )


def _stored(world: Workspace) -> dict[str, bytes]:
    """The files in the store, the random part of a temporary name left out."""
    return {
        p.name[: 4 if p.name[0] == "." else None]: p.read_bytes() for p in (world.root / "store").iterdir()
    }


@pytest.mark.parametrize(
    ("kind", "name", "left"),
    [
        (Kind.KILL, "write", {".tmp": b""}),
        (Kind.TORN, "write", {".tmp": RECEIPT[: len(RECEIPT) // 2]}),
        (Kind.KILL, "fsync", {".tmp": RECEIPT}),
        (Kind.KILL, "renameat2", {".tmp": RECEIPT}),
        (Kind.KILL, "exit_group", {"receipt.txt": RECEIPT}),
    ],
)
def test_a_kill_comes_before_its_call_and_after_the_one_before(
    kind: Kind, name: str, left: dict[str, bytes], world: Workspace, points: list[Point]
) -> None:
    point = next(p for p in points if (p.kind, p.name) == (kind, name))
    outcome = _run(point, world)
    assert (outcome.injected, outcome.signal, outcome.exit_code) == (True, 9, None)
    assert _stored(world) == left


def test_a_call_that_is_made_to_fail_is_not_executed(world: Workspace, points: list[Point]) -> None:
    point = next(p for p in points if (p.name, p.errno) == ("renameat2", "EROFS"))
    outcome = _run(point, world)
    assert outcome.injected
    assert "EROFS (Read-only file system) (INJECTED)" in outcome.hit
    assert outcome.exit_code == 1
    assert _stored(world) == {}


def test_a_point_that_is_not_reached_is_reported_as_not_injected(world: Workspace) -> None:
    for point in (Point(Kind.KILL, "fsync", 99), Point(Kind.FAULT, "fsync", 99, "EIO")):
        assert not _run(point, world).injected


def test_a_command_that_hangs_is_ended_with_all_of_its_processes(world: Workspace) -> None:
    class Hanging(Toy):
        def command(self, workspace: Workspace) -> list[str]:
            return [
                sys.executable,
                "-c",
                "import os, signal; os.fork(); print('here', flush=True); signal.pause()",
            ]

    outcome = _run(Point(Kind.FAULT, "fsync", 1, "EIO"), world, Hanging(), timeout=1.0)
    assert outcome.timed_out
    # The end of the output is only seen once nobody holds the pipe any more: a survivor would hold this test.
    assert outcome.stdout == b"here\nhere\n"


# Recording, choosing, reporting


def test_start_up_is_left_out_and_two_recordings_agree(tmp_path: Path) -> None:
    one, other = (record_scenario(Toy(), tmp_path / name) for name in ("one", "two"))
    assert one.calls[0].paths[-1].endswith("/root/evidence.txt")
    assert len(one.calls) < len(one.all_calls)
    assert one.shape() == other.shape()


def test_a_command_that_differs_from_run_to_run_is_reported(tmp_path: Path) -> None:
    class Wavering(Toy):
        def command(self, workspace: Workspace) -> list[str]:
            looks = f"[os.path.exists(f'{workspace.root}/x') for _ in range(os.getpid() % 97)]"
            return [sys.executable, "-c", f"import os; {looks}; os.path.exists('{workspace.root}')"]

    result = check_kills(Wavering(), tmp_path, sample=1)
    assert "trace-differs" in {failure.check for failure in result.failures}


def test_a_scenario_that_stumbles_over_a_state_is_a_failure_and_stops_nothing(tmp_path: Path) -> None:
    class Stumbling(Toy):
        def allowed_between(self, workspace: Workspace) -> None:
            (workspace.root / "store" / "receipt.txt").read_bytes()

    result = check_kills(Stumbling(), tmp_path)
    assert {failure.check for failure in result.failures} == {"scenario-raised"}
    assert result.points == result.possible


def test_a_sample_is_bounded_and_the_same_each_time(tmp_path: Path) -> None:
    trace = record_scenario(Toy(), tmp_path)
    kills, faults = kill_points(trace), fault_points(trace)
    for limit in (1, 7, 30, 10_000):
        assert len(sample_kills(trace, kills, limit)) == min(limit, len(kills))
        assert len(sample_faults(faults, limit)) <= limit
        assert sample_faults(faults, limit) == sample_faults(faults, limit)
    assert sample_faults(faults, 30, seed=1) != sample_faults(faults, 30, seed=2)


def test_a_sample_of_kills_has_every_state_that_a_kill_can_leave(tmp_path: Path) -> None:
    trace = record_scenario(Toy(), tmp_path)
    changing = [call for call in trace.calls if changes(call)]
    chosen = sample_kills(trace, kill_points(trace), limit=len(changing))
    for call in changing:
        assert any(point.about.startswith(f"after {call.label}(") for point in chosen)


def test_a_sample_of_faults_has_the_first_and_last_call_of_each_name_and_each_errno(tmp_path: Path) -> None:
    points = fault_points(record_scenario(Toy(), tmp_path))
    chosen = sample_faults(points, limit=50)
    assert {point.errno for point in chosen} == {point.errno for point in points}
    for name in {point.name for point in points}:
        ordinals = {point.ordinal for point in points if point.name == name}
        assert {min(ordinals), max(ordinals)} <= {point.ordinal for point in chosen if point.name == name}


def test_an_interrupted_call_is_never_repeated_for_ever(tmp_path: Path) -> None:
    points = fault_points(record_scenario(Toy(), tmp_path))
    assert {point.for_ever for point in points if point.errno == "EINTR"} == {False}
    assert {point.for_ever for point in points if point.errno == "EIO"} == {False, True}


def test_the_matrix_command_tells_a_good_writer_from_a_bad_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["toy-none", "--kills", "--sample", "3"]) == 0
    assert main(["toy-fixed-temporary", "--only", "kill:write:1"]) == 1
    assert "kill:write:1" in capsys.readouterr().out
    assert main(["no-such-scenario"]) == 2
