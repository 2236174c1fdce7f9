"""Standard output that fails, a reader that goes away, plain locales, and interruption (F-064, F-066, F-069).

All of these need processes of their own: they are about descriptors, signals and the start of the interpreter.
"""

import contextlib
import fcntl
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.generate import generate
from tests.support.cli import PROGRAM, clean_environment, run_process
from tests.support.sample_journals import KEY, small
from tests.support.writer import events
from tests.support.writer.text import RUN

WHO = ("--run-id", RUN, "--public-key", KEY)
COMMANDS = {
    "inspect json": (("audit", "inspect"), ("--run-id", RUN, "--format", "json")),
    "inspect text": (("audit", "inspect"), ("--run-id", RUN, "--format", "text")),
    "verify json": (("audit", "verify"), ("--format", "json")),
    "verify text": (("audit", "verify"), ("--format", "text")),
    "show lines": (("audit", "show"), ("--format", "jsonl")),
    "show text": (("audit", "show"), ("--format", "text")),
}
commands = pytest.mark.parametrize("command", COMMANDS)


def arguments(command: str, journal: Path) -> list[str]:
    verb, rest = COMMANDS[command]
    return [*PROGRAM, *verb, str(journal), "--public-key", KEY, *rest]


@pytest.fixture(scope="module")
def wordy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run whose report is larger than a pipe holds."""
    journal = small(3, end=False)
    for number in range(400):
        journal.append(
            events.tool_dispatch_started(f"{number:08x}-0000-4000-8000-000000000000", f"call {number}")
        )
    return journal.write(tmp_path_factory.mktemp("wordy") / journal.name)


def assert_clear(err: bytes) -> None:
    assert b"Traceback" not in err
    assert b"Exception ignored" not in err
    assert b"defect" not in err


@commands
def test_a_full_device_is_a_failure_with_a_message(command, wordy) -> None:
    """F-064."""
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            arguments(command, wordy),
            stdout=full,
            stderr=subprocess.PIPE,
            env=clean_environment(),
            timeout=60,
            check=False,
        )
    assert ended.returncode == 1
    assert b"No space left on device" in ended.stderr
    assert_clear(ended.stderr)


@commands
def test_a_reader_that_has_gone_is_no_traceback_and_no_better_verdict(command, wordy) -> None:
    """F-064: the exit code is that of the verdict, or a failure; never 0 here."""
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run(
        arguments(command, wordy),
        stdout=write,
        stderr=subprocess.PIPE,
        env=clean_environment(),
        timeout=60,
        check=False,
    )
    os.close(write)
    assert ended.returncode in (1, 2)
    assert_clear(ended.stderr)


@commands
def test_a_reader_that_goes_in_the_middle_changes_nothing_about_that(command, wordy) -> None:
    """F-064: as with `| head -c 10`."""
    with subprocess.Popen(
        arguments(command, wordy), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment()
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert len(os.read(process.stdout.fileno(), 10)) == 10
        process.stdout.close()
        err = process.stderr.read()
        assert process.wait(timeout=60) in (1, 2)
    assert_clear(err)


@commands
@pytest.mark.parametrize("closed", ["1", "1 2", "0 1 2"])
def test_closed_streams_are_a_failure_and_are_never_mistaken_for_evidence(command, closed, wordy) -> None:
    """F-064: with standard output closed at the start, the first opened file gets its number."""
    before = wordy.read_bytes()
    closing = "".join(f"os.close({number});" for number in closed.split())
    starter = [sys.executable, "-c", f"import os, sys; {closing} os.execv(sys.argv[1], sys.argv[1:])"]
    ended = subprocess.run(
        [*starter, *arguments(command, wordy)],
        stderr=subprocess.PIPE,
        env=clean_environment(),
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert_clear(ended.stderr)
    assert ("2" in closed) or b"standard output is closed" in ended.stderr
    assert wordy.read_bytes() == before


LOCALES = {
    "UTF-8": {"LANG": "C.UTF-8"},
    "C": {"LC_ALL": "C", "LANG": ""},
    "POSIX": {"LC_ALL": "POSIX", "LANG": ""},
    "none": {"LANG": ""},
    "unknown": {"LC_ALL": "xx_YY.nonsense"},
    "plain ASCII": {
        "LC_ALL": "C",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONUTF8": "0",
        "PYTHONIOENCODING": "ascii",
    },
    "Latin-1 streams": {"PYTHONIOENCODING": "latin-1:strict"},
}


@pytest.mark.parametrize(
    "name", [b"plain", "größe-日本".encode(), b"odd\xff\xfe"], ids=["ASCII", "UTF-8", "neither"]
)
def test_plain_locales_change_neither_exit_code_nor_json(name, tmp_path) -> None:
    """F-066."""
    journal = small(3, end=False)
    journal.append(events.tool_dispatch_started(call_id="größe 日本"))
    path = journal.write(Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)))
    argv = ("audit", "verify", path, "--public-key", KEY)
    answers = [run_process(*argv, "--format", "json", env=env) for env in LOCALES.values()]
    texts = [run_process(*argv, "--format", "text", env=LOCALES[key]) for key in ("UTF-8", "plain ASCII")]
    texts += [
        run_process("audit", "inspect", path, *WHO, "--format", "text", env=LOCALES[key])
        for key in ("C", "plain ASCII", "Latin-1 streams")
    ]
    assert {ran.rc for ran in (*answers, *texts)} == {2}
    assert len({ran.out for ran in answers}) == 1
    for ran in texts:
        assert "größe 日本" in ran.text
        assert_clear(ran.err)


def test_a_missing_journal_with_an_odd_name_is_told_in_every_locale(tmp_path) -> None:
    """F-066, F-060."""
    path = os.fsdecode(os.fsencode(tmp_path) + b"/gr\xc3\xb6\xff")
    for name in ("UTF-8", "C", "plain ASCII"):
        ran = run_process("audit", "inspect", path, *WHO, env=LOCALES[name])
        assert ran.rc == 1
        assert b"\\xff" in ran.err
        assert_clear(ran.err)


@pytest.fixture(scope="module")
def long_work(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A journal that keeps one process busy for a while."""
    made = generate(tmp_path_factory.mktemp("long") / "long.jsonl", 24 << 20)
    return made.path, made.run_id


@contextlib.contextmanager
def busy(argv: list[str], children: int) -> Iterator["subprocess.Popen[bytes]"]:
    """The command, once it has read into the evidence or has its workers; in a process group of its own."""
    process = subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment(), process_group=0
    )
    try:
        deadline = time.monotonic() + 30
        while not _at_work(process.pid, argv, children):
            assert process.poll() is None, "it ended before it could be interrupted"
            assert time.monotonic() < deadline
            select.select([], [], [], 0.002)
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()


def _at_work(pid: int, argv: list[str], children: int) -> bool:
    try:
        if children:
            found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            return len(found) == children
        return any(str(link.readlink()) in argv for link in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"]
)
@pytest.mark.parametrize("whole_group", [False, True], ids=["the process", "its group"])
@pytest.mark.parametrize("form", ["json", "text"])
@pytest.mark.parametrize("verb", ["inspect", "verify"])
def test_an_interrupted_command_gives_no_verdict(verb, form, whole_group, number, code, long_work) -> None:
    """F-069: alone or, as with Ctrl-C, together with its workers."""
    journal, run_id = long_work
    jobs = 2 if whole_group else 1
    who = ["--run-id", run_id, "--public-key", KEY, "--format", form, "--jobs", str(jobs)]
    argv = [*PROGRAM, "audit", verb, str(journal), *who]
    with busy(argv, children=jobs if whole_group else 0) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        fcntl.fcntl(process.stdout, fcntl.F_GETFL)
        (os.killpg if whole_group else os.kill)(process.pid, number)
        out, err = process.communicate(timeout=30)
        assert process.returncode == code, err
        assert out == b""
        assert b"Verdict" not in err
        assert_clear(err)


@pytest.mark.slow
def test_an_interrupt_at_any_moment_of_the_start_is_no_traceback_of_ours(long_work) -> None:
    """F-069: once the program's own code runs; before that the interpreter speaks."""
    journal, run_id = long_work
    for delay in range(0, 120, 4):
        process = subprocess.Popen(
            [*PROGRAM, "audit", "inspect", str(journal), "--run-id", run_id, "--public-key", KEY],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=clean_environment(),
        )
        try:
            select.select([], [], [], delay / 1000)
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=30)
        finally:
            process.kill()
            process.wait()
        assert out == b""
        assert process.returncode in (130, 1, -signal.SIGINT)


HELPS = (
    ["--version"],
    ["--help"],
    ["audit", "--help"],
    ["audit", "show", "--help"],
    ["audit", "inspect", "-h"],
)


@pytest.mark.parametrize("words", HELPS, ids=" ".join)
@pytest.mark.parametrize("stream", ["full", "closed"])
def test_version_and_help_that_nobody_got_are_failures(words: list[str], stream: str) -> None:
    """F-064: as every document, with one sentence."""
    to = ">/dev/full" if stream == "full" else ">&-"
    ended = subprocess.run(
        ["sh", "-c", f'exec "$@" {to}', "sh", *PROGRAM, *words],
        stderr=subprocess.PIPE,
        env=clean_environment(),
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert b"output_failed" in ended.stderr
    assert_clear(ended.stderr)


@pytest.mark.parametrize("words", HELPS, ids=" ".join)
def test_version_and_help_are_written_once(words: list[str]) -> None:
    ran = run_process(*words)
    assert (ran.rc, ran.err) == (0, b"")
    assert ran.text.splitlines().count(ran.text.splitlines()[0]) == 1
    assert ran.out.endswith(b"\n")
    assert not ran.out.endswith(b"\n\n")
