"""The runbook about tombstones is followed to the letter, with a private engine behind the leases."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.engine.world import LABEL, name_of
from tests.runbooks import page
from tests.runbooks.page import RUNBOOKS, Command, Mark, follow, steps
from tests.runbooks.workspaces import Workspace
from tests.support.cli import Ran, run
from tests.support.engine import PrivateEngine
from tests.support.engine_host import EngineHost
from tests.support.writer import lease

pytestmark = [pytest.mark.engine, pytest.mark.root]
LEASE = lease.lease_uid(1)


def tombstone(space: Workspace, engine: PrivateEngine) -> None:
    """A record whose container is not there."""
    record = lease.record(LEASE, lease.uncertain(), docker_environment=engine.environment())
    lease.make_state(space.leases, record)


def late_container(space: Workspace, engine: PrivateEngine) -> None:
    """The same record, and the container came after all."""
    engine.create(name_of(LEASE), {LABEL: LEASE})
    tombstone(space, engine)


MAKERS: dict[str, Callable[[Workspace, PrivateEngine], None]] = {
    "tombstone": tombstone,
    "late-container": late_container,
}


def test_following_the_runbook_does_what_it_says(
    engine: PrivateEngine, host: EngineHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_this_process(*arguments: str, cwd: Path, env: dict[str, str]) -> Ran:
        # The process that a terminal would get sees the other engines of this machine.
        text = () if arguments[0] == "ledger" else ("--format", "text")
        return run(*arguments, *text, env=env)

    monkeypatch.setattr(page, "run_terminal", in_this_process)
    text = (RUNBOOKS / "tombstone.md").read_text()
    ran = 0
    with ExitStack() as cleanup:
        spaces: dict[str, Workspace] = {}
        space: Workspace | None = None
        for step in steps(text):
            if isinstance(step, Mark):
                if step.name in spaces:
                    space = spaces[step.name]
                    continue
                folder = tmp_path / step.name / "w"
                folder.mkdir(parents=True)
                space = spaces[step.name] = Workspace(folder, cleanup)
                MAKERS[step.name](space, engine)
            elif isinstance(step, Command):
                assert space is not None
                follow(step, space)
                ran += 1
    assert ran == text.count("\n$ ")
    assert engine.names() == []
