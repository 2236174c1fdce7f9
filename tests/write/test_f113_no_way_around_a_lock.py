"""F-113: there is no option, variable or file that makes a command go on against a held lock."""

import re
from pathlib import Path

import click

from symbi_recover.cli.app import COMMANDS, program
from tests.support.cli import run

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


def test_an_option_that_would_is_unknown() -> None:
    for option in ("--force", "--no-lock", "--break-lock"):
        assert run("invocation", "reconcile", option).rc != 0
