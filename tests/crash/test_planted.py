"""Each command once with a planted fault, which the harness must find.

The product is not patched. A copy of the package is made, one passage of its source is replaced, and the scenario runs
that copy. A passage that is no longer there fails the test, so that no fault rots away unseen.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.crash.harness import (
    Scenario,
    assert_durable_order,
    assert_no_overwrite,
    assert_nothing_unsynced,
    check_kills,
    missing_strace,
    record_scenario,
)
from tests.crash.scenarios.operator import (
    REPOSITORY,
    DraftReview,
    FileAcknowledge,
    FileRecover,
    KeyInit,
    Reconcile,
    ReconcileSchedule,
)


class Fault(NamedTuple):
    """One passage of the source, what it becomes, and the rule that must notice."""

    scenario: type[Scenario]
    module: str
    passage: str
    replacement: str
    notice: Callable[[Scenario, Path], None]


def order(name: str) -> Callable[[Scenario, Path], None]:
    def notice(scenario: Scenario, tmp: Path) -> None:
        with pytest.raises(AssertionError, match="sync"):
            assert_durable_order(record_scenario(scenario, tmp), name, written="report" not in name)

    return notice


def unsynced(scenario: Scenario, tmp: Path) -> None:
    with pytest.raises(AssertionError, match="not durable"):
        assert_nothing_unsynced(record_scenario(scenario, tmp), scenario.may_be_lost)


def overwrite(scenario: Scenario, tmp: Path) -> None:
    with pytest.raises(AssertionError, match="overwrite"):
        assert_no_overwrite(record_scenario(scenario, tmp), scenario.may_exist)


def kills(check: str, sample: int) -> Callable[[Scenario, Path], None]:
    def notice(scenario: Scenario, tmp: Path) -> None:
        found = {failure.check for failure in check_kills(scenario, tmp, sample).failures}
        assert check in found, found

    return notice


FILL = """            os.ftruncate(self._descriptor, len(data))
        os.fsync(self._descriptor)
"""
FAULTS = {
    "the receipt is not synced before it has its name": Fault(
        Reconcile,
        "write/atomic.py",
        FILL,
        FILL.replace("os.fsync(self._descriptor)", "pass"),
        order(Reconcile.publishes[0]),
    ),
    "the ledger is not synced": Fault(
        Reconcile,
        "write/ledger.py",
        "os.fsync(held.file.descriptor)  # also",
        "pass  # also",
        unsynced,
    ),
    "a claim is locked and its evidence touched": Fault(
        Reconcile,
        "write/assess.py",
        "        check_unsettled(evidence)\n        self.given_up",
        "        check_unsettled(evidence)\n        os.write(self.held.file.descriptor, b'x')\n        self.given_up",
        kills("evidence", 4),
    ),
    "the rows of a schedule are committed one by one": Fault(
        ReconcileSchedule,
        "write/cron.py",
        "    with _transaction(database):\n        state =",
        "    if database:\n        state =",
        kills("between", 32),
    ),
    "the folder of the target is not synced": Fault(
        FileRecover,
        "write/effect.py",
        "        holding.remove()\n        return sync_folder(parent)",
        "        holding.remove()\n        return True",
        order("report.txt"),
    ),
    "what a killed recovery left aside is not put back": Fault(
        FileRecover, "write/effect.py", "        _put_back(intent, parent)\n", "", kills("final-state", 24)
    ),
    "the target is replaced": Fault(
        FileRecover, "write/atomic.py", "_NO_REPLACE = 1", "_NO_REPLACE = 0", overwrite
    ),
    "an acknowledged receipt is written in place": Fault(
        FileAcknowledge,
        "write/publish.py",
        "                    temporary.fill(data)\n",
        "                    open(self.path, 'wb').write(data)\n",
        overwrite,
    ),
    "a draft is written over what is there": Fault(
        DraftReview,
        "write/draft.py",
        "                publish(folder, parent, name, data)\n",
        "                open(path, 'wb').write(data)\n",
        overwrite,
    ),
    "a key is written in place": Fault(
        KeyInit,
        "write/keys.py",
        "publish(folder, home, KEY_NAME, os.urandom(SEED_BYTES) if seed is None else seed)",
        "os.write(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), os.urandom(SEED_BYTES))",
        kills("between", 12),
    ),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_planted_fault_in_a_command_is_found(kind: str, tmp_path: Path) -> None:
    reason = missing_strace()
    if reason:
        pytest.skip(f"not run: {reason}")
    fault = FAULTS[kind]
    shutil.copytree(
        REPOSITORY / "symbi_recover",
        tmp_path / "copy" / "symbi_recover",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    module = tmp_path / "copy" / "symbi_recover" / fault.module
    source = module.read_text("utf-8")
    assert source.count(fault.passage) == 1, "the passage that the fault replaces is not there any more"
    module.write_text(source.replace(fault.passage, fault.replacement), "utf-8")
    faulty = type("Faulty", (fault.scenario,), {"package": tmp_path / "copy"})()
    fault.notice(faulty, tmp_path / "worlds")
