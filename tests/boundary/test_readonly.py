"""Commands that read change nothing: trees before and after, read-only media, other users, system calls (F-077).

The commands come from `tests/support/reading_commands.py`, what they read from `tests/support/reading_world.py`.
"""

import base64
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from symbi_recover.cli.app import COMMANDS, TOP
from tests.support.cli import PROGRAM, clean_environment, run, run_process
from tests.support.reading_commands import READING, ReadingCommand, without_row
from tests.support.reading_world import environment, make_world, served
from tests.support.readonly import assert_traced_read_only, hash_tree, read_only_mount
from tests.support.sample_journals import KEY, small
from tests.support.writer import events
from tests.support.writer.text import RUN

commands = pytest.mark.parametrize("command", READING, ids=[command.name for command in READING])
NOBODY = 65534
REFUSAL = re.compile(r"private|blocked\": true|BLOCKED|operator_home_unsafe")


@contextmanager
def folder() -> Iterator[Path]:
    """A folder that every user can reach, with a short path: there are sockets in it."""
    with tempfile.TemporaryDirectory(prefix="read-", dir="/tmp") as made:
        Path(made).chmod(0o755)
        yield Path(made).resolve()


@pytest.fixture(scope="module")
def world() -> Iterator[Path]:
    """A world of this module, for reading only."""
    with folder() as root, served(make_world(root)) as engine:
        yield root
        engine.assert_only_gets()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal that is spread over worker processes: a little over 4 MiB."""
    journal = small(3, end=False)
    for number in range(5):
        journal.append(events.improvement_output("x" * 900_000), number)
    journal.append(events.terminated())
    return journal.write(tmp_path_factory.mktemp("large") / "journal.jsonl")


def in_parallel(journal: Path) -> list[str]:
    return ["audit", "inspect", str(journal), "--run-id", RUN, "--public-key", KEY, "--jobs", "2"]


def test_the_table_has_every_reading_command() -> None:
    every: dict[tuple[str, ...], str] = {(name,): module for name, (module, _) in TOP.items()}
    for group, table in COMMANDS.items():
        every |= {(group, name): module for name, (module, _) in table.items()}
    assert not without_row(every), "add these to tests/support/reading_commands.py"


def test_a_reading_command_without_a_row_is_found() -> None:
    new = {
        ("lease", "forecast"): "symbi_recover.cli.reading.lease",
        ("invocation", "undo"): "symbi_recover.cli.writing.invocation",
        ("lease", "list"): "symbi_recover.cli.reading.lease",
        ("tell",): "symbi_recover.cli.reading.explain",
    }
    assert without_row(new) == ["lease forecast", "tell"]


@commands
def test_evidence_is_the_same_before_and_after(command: ReadingCommand, world: Path) -> None:
    before = hash_tree(world, ctime=True)
    ran = run(*command.arguments(world), env=environment(world))
    assert ran.rc in command.exits, ran.err
    assert hash_tree(world, ctime=True) == before


@commands
def test_no_system_call_could_change_anything(command: ReadingCommand, world: Path, tmp_path: Path) -> None:
    """F-077: no open for writing, create, rename, unlink, chmod or lock anywhere, start-up included."""
    assert_traced_read_only(
        [*PROGRAM, *command.arguments(world)],
        tmp_path,
        {"HOME": "/nonexistent", **environment(world)},
        sockets=[str(world / socket) for socket in command.sockets],
        exits=command.exits,
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name", ["lease verify, leases, json", "lease list, spoilt, json", "lease check, leases, json"]
)
def test_the_other_entry_point_changes_nothing_either(name: str, world: Path, tmp_path: Path) -> None:
    """F-077 for `symbi`, as its script starts it."""
    command = next(row for row in READING if row.name == name)
    script = "import sys; from symbi_recover.symbi import main; sys.exit(main())"
    traced = assert_traced_read_only(
        [sys.executable, "-c", script, *command.arguments(world)],
        tmp_path,
        {"HOME": "/nonexistent", **environment(world)},
        sockets=[str(world / socket) for socket in command.sockets],
        exits=command.exits,
    )
    assert traced.stdout
    assert not list(tmp_path.iterdir())


def test_worker_processes_change_nothing_either(large: Path, tmp_path: Path) -> None:
    before = hash_tree(large.parent, ctime=True)
    assert_traced_read_only([*PROGRAM, *in_parallel(large)], tmp_path, {"HOME": "/nonexistent"}, exits={0})
    assert hash_tree(large.parent, ctime=True) == before


@pytest.mark.root
def test_all_commands_work_on_a_read_only_mount(world: Path) -> None:
    """F-077."""
    with read_only_mount(world) as closed:
        for command in READING:
            ran = run(*command.arguments(closed), env=environment(closed))
            assert ran.rc in command.exits, (command.name, ran.err)


@pytest.mark.root
def test_workers_work_on_a_read_only_mount(large: Path) -> None:
    """F-077."""
    with read_only_mount(large.parent):
        assert run_process(*in_parallel(large)).rc == 0


def as_user(root: Path, user: int) -> dict[str, Any]:
    """How every command ended for us and then for another user, who cannot write to the world at `root`."""
    ended = subprocess.run(
        [sys.executable, "-B", "-m", "tests.support.other_user", str(root), str(user)],
        env=clean_environment(),
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode()
    answers: dict[str, Any] = json.loads(ended.stdout)
    return answers


def wrong_for_a_stranger(command: ReadingCommand, answers: dict[str, Any]) -> bool:
    """Whether somebody who owns nothing got neither our answer nor a refusal that says why."""
    mine, (rc, out, err) = answers["mine"][command.name], answers["theirs"][command.name]
    if command.others is None:
        return rc not in command.exits or [rc, out] != mine[:2]
    return rc not in command.others or not REFUSAL.search(err + base64.b64decode(out).decode())


@pytest.mark.root
def test_a_user_without_write_rights_gets_the_same_answer_or_a_clear_refusal() -> None:
    """F-077: may read everything, owns nothing; folders of mode 0555, no HOME or TMPDIR that can be written."""
    if os.geteuid() != 0:
        pytest.skip("not run: another user's rights need root")
    with folder() as root, served(make_world(root)):
        for path in [*root.rglob("*"), root]:
            if not path.is_symlink():
                path.chmod(0o555 if path.is_dir() else 0o444)
        before = hash_tree(root, ctime=True)
        answers = as_user(root, NOBODY)
        assert hash_tree(root, ctime=True) == before
    asked = [command for command in READING if command.name in answers["theirs"]]
    assert {command.name for command in READING if command not in asked} <= set(answers["left_out"])
    assert not {c.name: answers["theirs"][c.name] for c in asked if wrong_for_a_stranger(c, answers)}


@pytest.mark.root
def test_the_owner_without_other_rights_can_look_at_a_read_only_mount() -> None:
    """F-077: as the account that the runtime and its helper run under, which is not root."""
    if os.geteuid() != 0:
        pytest.skip("not run: another user's rights need root")
    with folder() as root:
        make_world(root)
        with served(root, owner=NOBODY), read_only_mount(root):
            answers = as_user(root, NOBODY)["theirs"]
    exits = {command.name: command.exits for command in READING}
    assert not {name: answer for name, answer in answers.items() if answer[0] not in exits[name]}
