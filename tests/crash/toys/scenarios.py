"""The toy writers as scenarios; also the pattern to copy for a real command."""

import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from tests.crash.harness import Scenario, Workspace, file_hashes
from tests.crash.toys.writer import FAULTS

EVIDENCE = b"what happened\n"
RECEIPT = b"receipt for " + EVIDENCE
_WRITER = Path(__file__).with_name("writer.py")


class Toy(Scenario):
    """One version of the writer: "none" is the correct one."""

    publishes = ("receipt.txt",)

    def __init__(self, fault: str = "none") -> None:
        self.fault = fault
        self.name = f"toy-{fault}"

    def prepare(self, tmp: Path) -> Workspace:
        root = tmp / "root"
        (root / "store").mkdir(parents=True)
        (root / "evidence.txt").write_bytes(EVIDENCE)
        return Workspace(root, cwd=tmp)

    def command(self, workspace: Workspace) -> Sequence[str]:
        return [sys.executable, str(_WRITER), self.fault, str(workspace.root)]

    def final_state(self, workspace: Workspace) -> object:
        """Receipts by name and content; a temporary file that a kill left is permitted and not compared."""
        store = workspace.root / "store"
        return {p.name: p.read_bytes() for p in sorted(store.iterdir()) if not p.name.startswith(".tmp")}

    def evidence(self, workspace: Workspace) -> Mapping[str, str]:
        return file_hashes([workspace.root / "evidence.txt"], workspace.root)

    def allowed_between(self, workspace: Workspace) -> None:
        """No receipt yet, or a whole one; and at most one temporary."""
        assert self.final_state(workspace) in ({}, {"receipt.txt": RECEIPT}), self.final_state(workspace)
        assert len(self.leftovers(workspace)) <= 1

    def leftovers(self, workspace: Workspace) -> Collection[str]:
        return [path.name for path in (workspace.root / "store").glob(".tmp*")]


SCENARIOS: tuple[Scenario, ...] = (Toy(), *map(Toy, FAULTS))
