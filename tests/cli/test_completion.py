"""Shell completion: bash, zsh and fish get the names of commands and options, for commands not loaded yet as well."""

import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from symbi_recover.cli.app import COMMANDS, TOP, program
from tests.support.cli import clean_environment, run_process

SHELLS = ("bash", "zsh", "fish")
DOCUMENTED = Path(__file__).resolve().parents[2] / "docs" / "completion.md"
PROGRAM = Path(sys.executable).with_name("symbi-recover")


def completed(shell: str, line: str) -> list[str]:
    """The names offered at the end of a command line, asked for as the shell's own function does."""
    words = line.split(" ")
    here = words[-1] if shell == "fish" else str(len(words) - 1)
    env = {"_SYMBI_RECOVER_COMPLETE": f"{shell}_complete", "COMP_WORDS": line, "COMP_CWORD": here}
    ran = run_process(env=env, program=[str(PROGRAM)])
    assert (ran.rc, ran.err) == (0, b"")
    answer = ran.text.splitlines()
    if shell == "zsh":
        return answer[1::3]
    return [row.split(",", 1)[1].split("\t")[0] for row in answer]


@pytest.mark.parametrize("shell", SHELLS)
def test_groups_and_top_commands_are_offered(shell: str) -> None:
    assert completed(shell, "symbi-recover ") == [*TOP, *COMMANDS]


@pytest.mark.parametrize("shell", SHELLS)
def test_commands_that_are_not_loaded_yet_are_offered(shell: str) -> None:
    assert completed(shell, "symbi-recover schema va") == ["validate"]


@pytest.mark.parametrize("group", COMMANDS)
def test_every_group_offers_its_commands(group: str) -> None:
    context = click.Context(program(), info_name="symbi-recover")
    found = program().get_command(context, group)
    assert found is not None
    assert [item.value for item in found.shell_complete(context, "")] == list(COMMANDS[group])


@pytest.mark.parametrize("shell", SHELLS)
def test_options_and_their_choices_are_offered(shell: str) -> None:
    assert "--public-key" in completed(shell, "symbi-recover audit inspect run.jsonl --")
    assert completed(shell, "symbi-recover schema list --format ") == ["text", "json"]
    assert completed(shell, "symbi-recover audit verify a.jsonl --run-id x --format te") == ["text"]


@pytest.mark.parametrize("shell", SHELLS)
def test_an_unfinished_or_wrong_line_is_completed_without_a_word_on_stderr(shell: str) -> None:
    assert completed(shell, "symbi-recover no-such-command --") == ["--version", "--help"]
    assert completed(shell, "symbi-recover explain --no-such-option --format j") == ["json"]
    assert completed(shell, "symbi-recover audit inspect --run-id --public-key --format te") == ["text"]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_accepts_the_function(shell: str, tmp_path: Path) -> None:
    ran = run_process(env={"_SYMBI_RECOVER_COMPLETE": f"{shell}_source"}, program=[str(PROGRAM)])
    assert ran.rc == 0
    assert f"_SYMBI_RECOVER_COMPLETE={shell}_complete" in ran.text
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed, so its function was made but not tried")
    script = tmp_path / "completion"
    script.write_bytes(ran.out)
    subprocess.run([found, "-n", str(script)], check=True, capture_output=True, timeout=30)


def test_bash_completes_with_the_function() -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    line = (
        'eval "$(_SYMBI_RECOVER_COMPLETE=bash_source symbi-recover)"; COMP_WORDS=(symbi-recover schema va); COMP_CWORD=2; '
        "_symbi_recover_completion symbi-recover; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    env = clean_environment()
    env["PATH"] = f"{PROGRAM.parent}:{env['PATH']}"
    done = subprocess.run(
        [bash, "--norc", "-c", line], env=env, capture_output=True, check=True, timeout=60, text=True
    )
    assert done.stdout.split() == ["validate"]


def test_the_document_gives_a_line_for_each_shell() -> None:
    text = DOCUMENTED.read_text()
    for shell in SHELLS:
        assert f"_SYMBI_RECOVER_COMPLETE={shell}_source symbi-recover" in text
