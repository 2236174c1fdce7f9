"""Commands that read change nothing: trees before and after, read-only media, other users, system calls (F-077).

The commands come from `tests/support/reading_commands.py`.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import PROGRAM, clean_environment, run, run_process
from tests.support.evidence import unpack
from tests.support.reading_commands import READING, ReadingCommand
from tests.support.readonly import assert_traced_read_only, hash_tree, read_only_mount
from tests.support.sample_journals import KEY, small
from tests.support.writer import events
from tests.support.writer.text import RUN

commands = pytest.mark.parametrize("command", READING, ids=[command.name for command in READING])
NOBODY = 65534


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


@commands
def test_evidence_is_the_same_before_and_after(command: ReadingCommand, own_evidence: Path) -> None:
    before = hash_tree(own_evidence, ctime=True)
    assert run(*command.arguments(own_evidence)).rc in command.exits
    assert hash_tree(own_evidence, ctime=True) == before


@commands
def test_no_system_call_could_change_anything(
    command: ReadingCommand, evidence_copy: Path, tmp_path: Path
) -> None:
    """F-077: no open for writing, create, rename, unlink, chmod or lock anywhere, start-up included."""
    assert_traced_read_only(
        [*PROGRAM, *command.arguments(evidence_copy)], tmp_path, {"HOME": "/nonexistent"}, exits=command.exits
    )
    assert not list(tmp_path.iterdir())


def test_worker_processes_change_nothing_either(large: Path, tmp_path: Path) -> None:
    before = hash_tree(large.parent, ctime=True)
    assert_traced_read_only([*PROGRAM, *in_parallel(large)], tmp_path, {"HOME": "/nonexistent"}, exits={0})
    assert hash_tree(large.parent, ctime=True) == before


@pytest.mark.root
def test_all_commands_work_on_a_read_only_mount(own_evidence: Path, large: Path) -> None:
    """F-077."""
    shutil.copy(large, own_evidence / "large.jsonl")
    with read_only_mount(own_evidence) as closed:
        for command in READING:
            assert run(*command.arguments(closed)).rc in command.exits, command.name
        assert run(*in_parallel(closed / "large.jsonl")).rc == 0


AS_USER = """
import os, sys
from symbi_recover.cli.app import main

streams, null = (os.dup(1), os.dup(2)), os.open(os.devnull, os.O_WRONLY)
os.dup2(null, 1), os.dup2(null, 2)
main(sys.argv[2:])  # loads every module that the command needs: the user may not be able to read them
os.dup2(streams[0], 1), os.dup2(streams[1], 2)
os.setgroups([]), os.setresgid(*[{user}] * 3), os.setresuid(*[{user}] * 3)
try:
    open(sys.argv[1] + "/probe", "w")
except OSError:
    sys.exit(main(sys.argv[2:]))
sys.exit("this user can write to the evidence")
"""


def as_user(evidence: Path, arguments: list[str]) -> "subprocess.CompletedProcess[bytes]":
    """Run a command as a user without rights, with HOME and TMPDIR that it cannot write to."""
    environment = clean_environment({"HOME": str(evidence), "TMPDIR": str(evidence)})
    return subprocess.run(
        [sys.executable, "-B", "-c", AS_USER.format(user=NOBODY), str(evidence), *arguments],
        env=environment,
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.mark.root
@commands
def test_a_user_without_write_rights_gets_the_same_answer(
    command: ReadingCommand, open_evidence: Path
) -> None:
    """F-077: in a folder of mode 0555, without a HOME or TMPDIR that can be written."""
    arguments = command.arguments(open_evidence)
    before = hash_tree(open_evidence, ctime=True)
    mine, theirs = run_process(*arguments), as_user(open_evidence, arguments)
    assert theirs.returncode in command.exits, theirs.stderr
    assert theirs.stdout == mine.out
    assert hash_tree(open_evidence, ctime=True) == before


@pytest.fixture(scope="module")
def open_evidence() -> Iterator[Path]:
    """The evidence readable for every user and writable for none, in a place every user can reach."""
    if os.geteuid() != 0:
        pytest.skip("not run: another user's rights need root")
    with tempfile.TemporaryDirectory(prefix="open-evidence-") as folder:
        Path(folder).chmod(0o755)
        place = unpack(Path(folder) / "evidence")
        for path in [*place.rglob("*"), place]:
            if not path.is_symlink():
                path.chmod(0o555 if path.is_dir() else 0o444)
        yield place


def test_the_table_has_every_journal_command() -> None:
    names = {tuple(command.arguments(Path("/e"))[:2]) for command in READING}
    assert {("audit", "inspect"), ("audit", "verify"), ("audit", "show")} <= names
