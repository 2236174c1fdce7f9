"""The `symbi` entry point answers what is this toolkit's, and hands every other word to the runtime, unchanged."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import Ran, clean_environment
from tests.support.sample_journals import KEY, small
from tests.support.writer.text import RUN

SCRIPT = f"#!{sys.executable}\nimport sys\nfrom symbi_recover.symbi import main\nsys.exit(main())\n"
ROOT = str(Path(__file__).resolve().parents[2])


def program(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "symbi"
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    return program(tmp_path / "ours", SCRIPT)


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    """Prints its arguments byte for byte and its standard input, and ends with 37."""
    text = (
        '#!/bin/sh\nprintf "runtime:"\nprintf "<%s>" "$@"\nprintf "|"\ncat\nprintf to-stderr >&2\nexit 37\n'
    )
    return program(tmp_path / "runtime", text)


def call(ours: Path, *arguments: str | bytes, path: list[Path], stdin: bytes = b"", **env: str) -> Ran:
    search = os.pathsep.join([*map(str, path), "/usr/bin", "/bin"])
    ended = subprocess.run(
        [str(ours), *arguments],
        input=stdin,
        capture_output=True,
        env=clean_environment({"PATH": search, "PYTHONPATH": ROOT, **env}),
        timeout=60,
        check=False,
    )
    return Ran(ended.returncode, ended.stdout, ended.stderr)


def test_a_journal_is_answered_here_and_not_by_the_runtime(ours, runtime, tmp_path) -> None:
    journal = small(3).write(tmp_path / "j")
    ran = call(
        ours,
        "audit",
        "inspect",
        str(journal),
        "--run-id",
        RUN,
        "--public-key",
        KEY,
        path=[ours.parent, runtime.parent],
    )
    assert ran.rc == 0
    assert f'"run_id": "{RUN}"' in ran.text


def test_its_usage_names_it_as_it_was_called(ours) -> None:
    ran = call(ours, "audit", "inspect", path=[ours.parent])
    assert ran.rc == 2
    assert "symbi audit inspect --help" in ran.err.decode()


@pytest.mark.parametrize("word", ["audit", "invocation", "lease"])
def test_the_passthrough_variable_hands_over_everything(word, ours, runtime) -> None:
    ran = call(ours, word, "x", path=[ours.parent, runtime.parent], SYMBI_RECOVER_PASSTHROUGH="1")
    assert (ran.rc, ran.out) == (37, f"runtime:<{word}><x>|".encode())


@pytest.mark.parametrize("value", ["", "0", "yes"])
def test_only_1_hands_over(value, ours, runtime) -> None:
    ran = call(ours, "audit", path=[ours.parent, runtime.parent], SYMBI_RECOVER_PASSTHROUGH=value)
    assert b"runtime" not in ran.out


def test_arguments_streams_and_exit_code_are_the_runtimes_own(ours, runtime) -> None:
    arguments = ["run", "--flag=a b", "", "\n", "\x1b[2J", b"\xff\xfe", "--", "-x"]
    ran = call(ours, *arguments, path=[ours.parent, runtime.parent], stdin=b"\x00input\xff")
    assert ran.rc == 37
    assert ran.out == b"runtime:<run><--flag=a b><><\n><\x1b[2J><\xff\xfe><--><-x>|\x00input\xff"
    assert ran.err == b"to-stderr"


def test_no_word_at_all_belongs_to_the_runtime(ours, runtime) -> None:
    assert call(ours, path=[ours.parent, runtime.parent]).out.startswith(b"runtime:")


def test_it_never_hands_over_to_itself_or_a_copy(ours, runtime, tmp_path) -> None:
    copy = program(tmp_path / "copy", SCRIPT)
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "symbi").symlink_to(ours)
    (tmp_path / "hard").mkdir()
    os.link(ours, tmp_path / "hard" / "symbi")
    own = [ours.parent, copy.parent, tmp_path / "link", tmp_path / "hard"]
    alone = call(ours, "run", path=own)
    assert alone.rc == 64
    assert b"no_runtime" in alone.err
    assert call(ours, "run", path=[*own, runtime.parent]).rc == 37


def test_what_cannot_be_run_is_passed_over(ours, runtime, tmp_path) -> None:
    (tmp_path / "folder" / "symbi").mkdir(parents=True)
    plain = program(tmp_path / "plain", "not executable")
    plain.chmod(0o644)
    (tmp_path / "dangling").mkdir()
    (tmp_path / "dangling" / "symbi").symlink_to("nothing")
    (tmp_path / "fifo").mkdir()
    os.mkfifo(tmp_path / "fifo" / "symbi", 0o755)
    before = [tmp_path / name for name in ("folder", "plain", "dangling", "fifo", "missing")]
    assert call(ours, "run", path=[ours.parent, *before, runtime.parent]).rc == 37


@pytest.mark.parametrize("word", ["run", "\x1b[2Jrun", "a\nb", b"\xff", ""])
def test_without_a_runtime_it_says_so_in_one_sentence(word, ours) -> None:
    """F-060: the word is shown escaped."""
    ran = call(ours, word, path=[ours.parent])
    assert ran.rc == 64
    assert ran.out == b""
    lines = ran.err.decode().splitlines()
    assert len(lines) == 3
    assert "no other `symbi` was found on PATH" in lines[0]
    assert lines[1].strip().startswith("code:  no_runtime")
    assert not any(ord(c) < 32 for line in lines for c in line)


@pytest.mark.parametrize(
    "text", ["\x7fELF garbage", "#!/no/such/interpreter\n"], ids=["no program", "no interpreter"]
)
def test_a_runtime_that_cannot_be_started_is_said_to_be_that(text, ours, tmp_path) -> None:
    broken = program(tmp_path / "broken", text)
    ran = call(ours, "run", path=[ours.parent, broken.parent])
    assert ran.rc == 64
    assert "could not be started" in ran.first_error_line
    assert b"Traceback" not in ran.err
