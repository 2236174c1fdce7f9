"""Lease commands against the daemon double, in this process: a tombstone that a witnessed reboot proves dead.

The world is that of the crash scenarios; host and listener hold still, so that only the daemon's answers vary.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from symbi_recover.core.ledger import LEDGER_NAME, Act
from symbi_recover.core.report import KeyUsed
from symbi_recover.read import ledger
from tests.crash.drivers.lease import StillHost, found
from tests.crash.scenarios.lease import OWNED, LeaseScenario, Made, Reconcile, Retire
from tests.support.cli import Ran, run
from tests.support.writer.text import SEED, public_key


class Rig:
    """One world and the commands in it."""

    def __init__(self, scenario: LeaseScenario, made: Made) -> None:
        self.scenario = scenario
        self.made = made
        self.double = made.double
        self.played = made.double.world
        self.record = made.store / f"{OWNED}.json"

    def cli(self, command: str, *arguments: str, env: Mapping[str, str] | None = None) -> Ran:
        """Run a lease command on the store."""
        own = {"SYMBI_RECOVER_HOME": str(self.made.home), **(env or {})}
        return run("lease", command, "--state-dir", self.made.store, *arguments, env=own)

    def document(
        self, command: str, *arguments: str, code: int, env: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """The same, and its JSON document."""
        ran = self.cli(command, *arguments, "--format", "json", env=env)
        assert ran.rc == code, (ran.rc, ran.out, ran.err)
        return dict(json.loads(ran.out))

    def retire(self, code: int, *options: str, env: Mapping[str, str] | None = None) -> dict[str, Any]:
        """`lease retire` with the right consent."""
        return self.document("retire", OWNED, "--confirm", self.made.confirm, *options, code=code, env=env)

    def acts(self) -> tuple[Act, ...]:
        """What the operator's ledger tells."""
        path = self.made.home / LEDGER_NAME
        return ledger.judge(path.read_bytes(), str(path), key=KeyUsed(public_key(SEED), "given")).acts

    def left(self) -> dict[str, list[str]]:
        """Containers, images and notes that are there now."""
        return {
            "containers": self.scenario.containers(self.made),
            "images": [one.tag for one in self.played.images],
            "notes": [path.name for path in (self.made.home / "fences").glob("*.json")],
        }


@contextmanager
def rig(scenario: LeaseScenario, tmp: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    """A fresh world, ended in every case."""
    monkeypatch.setattr("symbi_recover.cli.writing.lease_retire.the_host", StillHost)
    monkeypatch.setattr("symbi_recover.read.retirement.engine.find_engine", found)
    monkeypatch.setattr("symbi_recover.read.verify.lease_check.find_engine", found)
    workspace = scenario.prepare(tmp)
    try:
        yield Rig(scenario, workspace.extra)
    finally:
        scenario.cleanup(workspace)


def codes(document: dict[str, Any]) -> set[str]:
    """All codes of a retirement's document."""
    report = document["report"]
    decided = report["decision"]["findings"] if report["decision"] else []
    return {one["code"] for one in (*decided, *report["findings"])}


__all__ = ["OWNED", "Reconcile", "Retire", "Rig", "codes", "rig"]
