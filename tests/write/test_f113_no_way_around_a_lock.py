"""F-113: there is no option, variable or file that makes a command go on against a held lock."""

import fcntl
import os
import re
from pathlib import Path

import click
import pytest

from symbi_recover.cli.app import COMMANDS, program
from symbi_recover.core.errors import RefusedError
from symbi_recover.write import lock
from tests.support.cli import run
from tests.support.evidence import fingerprint
from tests.support.writer.project import put
from tests.write.worlds import assess, interrupted, operator_home, reviewed

PACKAGE = Path(__file__).resolve().parents[2] / "symbi_recover"
FORCE = re.compile(r"(?i)force|unlock|ignore[-_]?lock|no[-_]?lock|break[-_]?lock|skip[-_]?lock|steal")
VARIABLE = re.compile(r"environ(?:\.get\(|\[)\s*\"([A-Z_]+)\"")


def options() -> dict[str, list[str]]:
    """Every option of every command."""
    tree = program()
    context = click.Context(tree)
    found: dict[str, list[str]] = {}
    for group, table in COMMANDS.items():
        commands = tree.get_command(context, group)
        assert isinstance(commands, click.Group)
        for name in table:
            command = commands.get_command(context, name)
            assert command is not None
            found[f"{group} {name}"] = [option for param in command.params for option in param.opts]
    return found


def test_no_option_goes_on_against_a_lock() -> None:
    found = {name: [o for o in given if FORCE.search(o)] for name, given in options().items()}
    assert not any(found.values()), found


def test_no_variable_of_the_environment_does() -> None:
    used = {name for path in PACKAGE.rglob("*.py") for name in VARIABLE.findall(path.read_text("utf-8"))}
    assert "SYMBI_RECOVER_HOME" in used, "the search finds what is there"
    assert not [name for name in used if FORCE.search(name)]


@pytest.mark.parametrize(
    "command", ["invocation reconcile", "invocation file-recover", "lease retire", "trust add"]
)
def test_an_option_that_would_is_unknown(command: str) -> None:
    for option in ("--force", "--no-lock", "--break-lock"):
        ran = run(*command.split(), option)
        assert ran.rc != 0
        assert f"No such option '{option}'".encode() in ran.err, ran


def test_no_file_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever the names say: beside the lock, in the operator's folder, or where configuration usually lies."""
    invocation, home = interrupted(tmp_path), operator_home(tmp_path)
    monkeypatch.setattr(lock, "PATIENCE", 0.05)
    for folder in (invocation.project.invocations, invocation.project.state, home, tmp_path):
        for name in (
            "force",
            "unlock",
            "no-lock",
            "store.lock.force",
            ".symbi-recover",
            "config.toml",
            "config.json",
        ):
            put(folder / name, b'{"force": true, "no_lock": true}\n')
    before = fingerprint(tmp_path)
    held = os.open(invocation.project.store_lock, os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        with pytest.raises(RefusedError) as raised:
            assess(invocation, reviewed(invocation))
    finally:
        os.close(held)
    assert raised.value.code == "store_busy"
    assert fingerprint(tmp_path) == before
