"""F-051: commands that the runtime does not have take ids in lower case with hyphens, and in no other spelling."""

from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from symbi_recover.cli.app import program
from symbi_recover.cli.options import RuntimeCommand
from symbi_recover.core.scalars import UUID
from tests.support.cli import run
from tests.support.evidence import fingerprint
from tests.support.sample_journals import KEY, small
from tests.support.writer import lease as leases
from tests.support.writer.text import RUN
from tests.write.worlds import interrupted

FORMS: dict[str, Callable[[str], str]] = {
    "upper case": str.upper,
    "one letter in upper case": lambda text: text[:-1] + "A",
    "plain": lambda text: text.replace("-", ""),
    "braced": lambda text: f"{{{text}}}",
    "urn": lambda text: f"urn:uuid:{text}",
}
NO_UUID = ("", "x", "2", "\uff12" * 36, "..", "\x1b[2J")
ID = "abcdefab-cdef-4bcd-8fab-cdefabcdefab"
COMMANDS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("audit", "verify"): ("{journal}", "--public-key", KEY, "--run-id={id}"),
    ("invocation", "draft-review"): (
        "--project={project}", "--scope", "cli:orga", "--outcome", "failed", "--output={new}", "--id={id}",
    ),
    ("lease", "inspect"): ("--state-dir={store}", "--", "{id}"),
    ("lease", "check"): ("--state-dir={store}", "--", "{id}"),
    ("lease", "reconcile"): ("--state-dir={store}", "--", "{id}"),
    ("lease", "witness"): ("--state-dir={store}", "--", "{id}"),
    ("lease", "retire"): ("--state-dir={store}", "--", "{id}"),
}  # fmt: skip


@pytest.fixture
def world(tmp_path: Path) -> dict[str, str]:
    journal = small()
    return {
        "journal": str(journal.write(tmp_path / journal.name)),
        "project": str(interrupted(tmp_path).project.root),
        "store": str(leases.make_state(tmp_path / "s", leases.record(ID))),
        "new": str(tmp_path / "review.json"),
    }


def words(command: tuple[str, ...], world: dict[str, str], text: str) -> list[str]:
    return [*command, *(word.format(id=text, **world) for word in COMMANDS[command])]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("form", FORMS)
def test_another_spelling_is_a_usage_error_that_gives_the_right_one(
    command: tuple[str, ...], form: str, world: dict[str, str], tmp_path: Path
) -> None:
    typed = FORMS[form](ID)
    before = fingerprint(tmp_path)
    ran = run(*words(command, world, typed), env={"SYMBI_RECOVER_HOME": str(tmp_path / "home")})
    assert ran.rc == 64
    assert b"lower case with hyphens" in ran.err
    meant = UUID(typed.removeprefix("urn:uuid:").strip("{}"))
    assert f"next:  Give it as {meant}." in ran.err.decode()
    assert fingerprint(tmp_path) == before


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("text", NO_UUID)
def test_what_is_no_uuid_is_a_usage_error_too(
    command: tuple[str, ...], text: str, world: dict[str, str], tmp_path: Path
) -> None:
    ran = run(*words(command, world, text), env={"SYMBI_RECOVER_HOME": str(tmp_path / "home")})
    assert ran.rc == 64
    assert b"\x1b" not in ran.err


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_one_spelling_is_taken(command: tuple[str, ...], world: dict[str, str], tmp_path: Path) -> None:
    """The id may name nothing here, which is another answer."""
    ran = run(*words(command, world, ID), env={"SYMBI_RECOVER_HOME": str(tmp_path / "home")})
    assert ran.rc != 64
    assert b"lower case" not in ran.err


def test_the_run_that_is_asked_for_is_compared(world: dict[str, str]) -> None:
    assert run(*words(("audit", "verify"), world, RUN)).rc == 0
    assert run(*words(("audit", "verify"), world, ID)).rc == 1


def every(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from every(below, (*path, name))
    else:
        yield path, command


def test_every_command_of_our_own_that_takes_an_id_is_looked_at_here() -> None:
    taking = {
        path
        for path, command in every(program())
        for one in command.params
        if (one.metavar or "") == "UUID" or "LEASE" in (one.metavar or str(one.name).upper())
        if not isinstance(command, RuntimeCommand)
    }
    assert taking == set(COMMANDS)
