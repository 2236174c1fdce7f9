"""The three ways to run the program see what it did, and leave the test process as it was."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from symbi_recover.cli import app
from tests.support.cli import Ran, run, run_process, run_terminal

PYTHON = (sys.executable, "-c")


def test_both_streams_and_the_exit_code_are_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def main(arguments: list[str]) -> int:
        print("out", *arguments)
        sys.stdout.buffer.write(b"\xff\n")
        print("err", file=sys.stderr)
        assert not sys.stdout.isatty()
        sys.stdout.close()
        return 2

    monkeypatch.setattr(app, "main", main)
    assert run("a", Path("b")) == Ran(2, b"out a b\n\xff\n", b"err\n")


def test_nothing_of_the_command_stays_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def main(arguments: list[str]) -> int:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.environ["LEFT"] = os.environ["GIVEN"]
        return 0

    before = signal.getsignal(signal.SIGTERM), sys.stdout, sys.stderr
    monkeypatch.setattr(app, "main", main)
    assert run(env={"GIVEN": "x"}).rc == 0
    assert (signal.getsignal(signal.SIGTERM), sys.stdout, sys.stderr) == before
    assert "LEFT" not in os.environ


def test_a_command_that_moves_elsewhere_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def main(arguments: list[str]) -> int:
        os.chdir(tmp_path)
        return 0

    before = Path.cwd()
    monkeypatch.setattr(app, "main", main)
    with pytest.raises(AssertionError, match="working folder"):
        run()
    assert Path.cwd() == before


def test_settings_of_the_person_testing_do_not_reach_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYMBI_RECOVER_HOME", "/elsewhere")
    shown = run_process("import os; print(os.environ.get('SYMBI_RECOVER_HOME'))", program=PYTHON)
    assert shown.out == b"None\n"


def test_a_process_gets_its_input_and_gives_its_bytes() -> None:
    text = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read()[::-1]); sys.exit(3)"
    assert run_process(text, program=PYTHON, stdin=b"abc") == Ran(3, b"cba", b"")


def test_a_terminal_is_one_and_changes_no_newlines() -> None:
    text = "import os, sys; print(sys.stdout.isatty(), os.get_terminal_size(1)); print('e', file=sys.stderr)"
    ran = run_terminal(text, program=PYTHON, columns=72)
    assert ran == Ran(0, b"True os.terminal_size(columns=72, lines=40)\n", b"e\n")


def test_much_output_on_a_terminal_is_all_received() -> None:
    ran = run_terminal("print(('y' * 99 + '\\n') * 5000)", program=PYTHON)
    assert ran.out.count(b"y" * 99 + b"\n") == 5000


@pytest.mark.parametrize("way", [run_process, run_terminal])
def test_a_command_that_hangs_is_ended(way) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        way("import signal; signal.pause()", program=PYTHON, seconds=0.5)
