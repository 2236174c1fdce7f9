"""Every command of the tree explains itself: what it does, examples that parse, and how it ends.

Examples are run through the parser alone; nothing is executed. `…` in them stands for text that was left out.
"""

import re
import shlex
from functools import cache

import click
import pytest

from symbi_recover.cli.app import COMMANDS, GROUPS, TOP, program
from symbi_recover.cli.options import StrictCommand
from tests.support.cli import run, run_terminal

NAMES = [(name,) for name in TOP] + [(group, name) for group, table in COMMANDS.items() for name in table]
_EXITS = re.compile(r"Exit codes: \d+\b")


@cache
def tree() -> click.Group:
    return program()


def command(path: tuple[str, ...]) -> StrictCommand:
    """A command by its path; fails for one that the tables name and nobody has."""
    found: click.Command | None = tree()
    for name in path:
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), name)
    assert isinstance(found, StrictCommand), f"`{' '.join(path)}` is no StrictCommand"
    return found


def examples(path: tuple[str, ...]) -> list[str]:
    return [line.strip() for line in command(path).examples.strip().splitlines()]


@pytest.mark.parametrize("path", NAMES, ids=" ".join)
def test_help_says_what_it_does_shows_examples_and_how_it_ends(path: tuple[str, ...]) -> None:
    ran = run(*path, "--help")
    assert (ran.rc, ran.err) == (0, b"")
    assert command(path).help, "no help text"
    sections = [line.rstrip(":") for line in ran.text.splitlines() if line.endswith(":") and line[0] != " "]
    assert "Examples" in sections
    said = " ".join(ran.text.split())
    assert _EXITS.search(said), "no `Exit codes: 0 …` at the end"
    for option in command(path).params:
        if isinstance(option, click.Option):
            assert option.help, f"{option.name} has no help"
    assert run(*path, "-h").out == ran.out


@pytest.mark.parametrize("path", NAMES, ids=" ".join)
def test_examples_parse(path: tuple[str, ...]) -> None:
    shown = examples(path)
    assert len(shown) >= 1
    for line in shown:
        words = shlex.split(line.replace("…", "0"))
        words = words[: words.index(">")] if ">" in words else words
        words = words[: words.index("|")] if "|" in words else words
        assert words[0] in ("symbi-recover", "symbi"), line
        assert tuple(words[1 : 1 + len(path)]) == path, f"an example of another command: {line}"
        with command(path).make_context(" ".join(path), words[1 + len(path) :]) as context:
            assert context.params is not None


def test_an_example_that_does_not_parse_is_noticed() -> None:
    with pytest.raises(click.UsageError):
        command(("schema", "show")).make_context("show", ["a", "b"])
    with pytest.raises(click.UsageError):
        command(("audit", "inspect")).make_context("inspect", ["run.jsonl", "--run-id", "x", "--run-id", "y"])


@pytest.mark.parametrize("group", COMMANDS)
def test_the_help_of_a_group_lists_its_commands_without_loading_them(group: str) -> None:
    ran = run(group, "--help")
    assert ran.rc == 0
    said = " ".join(ran.text.split())
    assert GROUPS[group] in said
    for name, (_, text) in COMMANDS[group].items():
        assert text.endswith("."), f"{group} {name}: the line is a sentence"
        assert f"{name} {text}" in said


def test_the_help_of_the_program_lists_groups_and_exit_codes() -> None:
    said = " ".join(run("--help").text.split())
    assert _EXITS.search(said)
    for name in (*TOP, *COMMANDS):
        assert f" {name} " in said


def test_help_fits_a_narrow_terminal() -> None:
    ran = run_terminal("explain", "--help", columns=60)
    assert ran.rc == 0
    prose = [line for line in ran.text.splitlines() if "symbi-recover" not in line]
    assert max(map(len, prose)) <= 60


FAILING = (
    ("audit", "show", "/nonexistent/j"),
    ("audit", "inspect", "/nonexistent/j", "--run-id", "x", "--public-key", "x"),
    ("ledger", "verify", "/nonexistent/l"),
    ("trust", "list", "--file", "/nonexistent/t"),
    ("schema", "show", "nothing"),
    ("runbook", "show", "nothing"),
    ("explain", "nothing"),
)


@pytest.mark.parametrize("words", FAILING, ids=" ".join)
def test_quiet_leaves_the_sentence_of_a_failure_alone(words: tuple[str, ...]) -> None:
    loud, quiet = run(*words), run(*words, "-q")
    assert quiet.rc == loud.rc
    assert quiet.err.decode().splitlines() == loud.err.decode().splitlines()[:1]
    assert len(loud.err.decode().splitlines()) > 1


def test_only_commands_that_have_more_to_say_take_verbose() -> None:
    taking = {path for path in NAMES if any("-v" in one.opts for one in command(path).params)}
    assert taking == {
        ("audit", "show"),
        ("invocation", "inspect"),
        ("invocation", "file-inspect"),
        ("invocation", "list"),
        ("schema", "list"),
    }
    assert run("ledger", "verify", "-v").rc == 64
