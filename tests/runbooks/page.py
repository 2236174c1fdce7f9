"""Reads a runbook and follows it to the letter in a workspace.

The rule, which `runbooks/README.md` tells the operator too:

* In a `console` block a line `$ …` is a command. Its output is quoted below it, a few lines of it in their order, `…`
  standing for whatever is left out, white space not compared; then comes `# exit N`. Without that line the command
  has to end with 0.
* The words in capitals of the README's table are placeholders. A workspace knows most of them. One that it does not
  know takes its value from the first quoted line that has it.
* `<!-- workspace: NAME -->` goes to a workspace, made when first named; `<!-- by hand: NAME -->` does what a person
  does without any command.

`symbi-recover` runs as a process of its own, its stdout a terminal. A few plain commands of the shell run as well.
"""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.runbooks.workspaces import Workspace
from tests.support.cli import clean_environment, run_terminal

RUNBOOKS = Path(__file__).parents[2] / "runbooks"
SHELL = frozenset({"mkdir", "cp", "mv", "cmp", "find", "sha256sum"})
_COMMENT = re.compile(r"<!-- (workspace|by hand): ([a-z-]+) -->")
_ROW = re.compile(r"^\| `([A-Z_]+)` \|", re.MULTILINE)
PLACEHOLDERS = tuple(_ROW.findall((RUNBOOKS / "README.md").read_text()))
_PLACEHOLDER = re.compile(rf"\b({'|'.join(PLACEHOLDERS)})\b")
_CAPITALS = re.compile(r"\b[A-Z][A-Z_]+\b")


class Command(NamedTuple):
    """One command of a runbook and what it is said to do."""

    line: int
    text: str
    quoted: tuple[str, ...]
    exit: int


class Mark(NamedTuple):
    """A change of workspace, or an act by hand."""

    line: int
    kind: str
    name: str


def steps(text: str) -> Iterator[Command | Mark]:
    """Everything that is to be followed, in order."""
    console, pending, quoted = False, None, list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            if pending is not None:
                yield Command(*pending, tuple(quoted), 0)
            console, pending, quoted = line == "```console", None, []
        elif console and line.startswith("$ "):
            if pending is not None:
                yield Command(*pending, tuple(quoted), 0)
            pending, quoted = (number, line[2:]), []
        elif console and pending is not None and (ended := re.fullmatch(r"# exit (\d+)", line)):
            yield Command(*pending, tuple(quoted), int(ended[1]))
            pending, quoted = None, []
        elif console:
            assert pending is not None, f"line {number} quotes the output of no command"
            quoted.append(line)
        elif mark := _COMMENT.fullmatch(line):
            yield Mark(number, mark[1], mark[2])


def follow(command: Command, space: Workspace) -> None:
    """Run a command and compare what it does with what the runbook says."""
    where = f"line {command.line}: {command.text}"
    typed = _PLACEHOLDER.sub(lambda match: _known(space, match[0], where), command.text)
    left = set(_CAPITALS.findall(_PLACEHOLDER.sub("", command.text)))
    assert not left, f"{where}: {left} are no placeholders of runbooks/README.md"
    home = space.root.parent / "operator"
    env = {"NO_COLOR": "1", "SYMBI_RECOVER_HOME": str(home)}
    program, *arguments = shlex.split(typed)
    if program == "symbi-recover":
        ran = run_terminal(*arguments, cwd=space.root, env=env)
        code, output = ran.rc, (ran.out + ran.err).decode()
    else:
        assert program in SHELL, f"{where}: {program} is not among the commands that are tried"
        done = subprocess.run(
            ["bash", "-c", typed],
            cwd=space.root,
            env=clean_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=60,
        )
        code, output = done.returncode, done.stdout
    assert code == command.exit, f"{where}\nexit {code} instead of {command.exit}\n{output}"
    compare(command.quoted, output, space.values, where)


def compare(quoted: tuple[str, ...], output: str, values: dict[str, str], where: str) -> None:
    """Find each quoted line in the output, in order; placeholders without a value take it from there."""
    lines = iter(output.splitlines())
    for line in quoted:
        if line.strip() == "…":
            continue
        pattern = re.compile(_pattern(" ".join(line.split()), values))
        found = next((match for text in lines if (match := pattern.fullmatch(" ".join(text.split())))), None)
        assert found, f"{where}\nnot in the output, or not in this order: {line}\n{output}"
        values |= found.groupdict()


def _pattern(line: str, values: dict[str, str]) -> str:
    named: set[str] = set()

    def group(name: str) -> str:
        if name in values:
            return re.escape(values[name])
        if name in named:
            return f"(?P={name})"
        named.add(name)
        return rf"(?P<{name}>[^\s,;]+)"

    made, end = "", 0
    for match in re.finditer(rf"…|{_PLACEHOLDER.pattern}", line):
        made += re.escape(line[end : match.start()])
        made += ".*" if match[0] == "…" else group(match[0])
        end = match.end()
    return made + re.escape(line[end:])


def _known(space: Workspace, name: str, where: str) -> str:
    assert name in space.values, f"{where}: nothing before it says what {name} is"
    return space.values[name]
