"""Ways to run the program: in this process (fast), as a process of its own, and on a terminal.

`run` calls `symbi_recover.cli.app.main` with stdout and stderr replaced by byte buffers. It is the one to use for
matrices. It sees what goes through `sys.stdout` and `sys.stderr`, not what is written to descriptors 1 and 2
directly, and both streams are no terminal. `run_process` and `run_terminal` start `python -m symbi_recover`.

All three give the program a clean environment: no settings of the person running the tests, HOME in a folder that
does not exist unless a test gives one.
"""

import io
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest import mock

PROGRAM = (sys.executable, "-m", "symbi_recover")
_KEPT = ("PATH", "TMPDIR", "VIRTUAL_ENV", "COVERAGE_PROCESS_START", "PYTHONPATH")


class Ran(NamedTuple):
    """How a command ended: exit code (negative: signal) and all bytes of both streams."""

    rc: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        """Stdout as text."""
        return self.out.decode()

    @property
    def first_error_line(self) -> str:
        """The first line of stderr, without its newline."""
        return self.err.decode().split("\n", 1)[0]


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment that commands under test get; `extra` is added last."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    fixed = {
        "HOME": "/nonexistent",
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "COLUMNS": "100",
        "TZ": "UTC",
    }
    return {**kept, **fixed, **(extra or {})}


class _Captured(io.TextIOWrapper):
    """A text stream over memory that keeps its bytes even when the program closes it."""

    def __init__(self) -> None:
        self.kept = io.BytesIO()
        super().__init__(self.kept, encoding="utf-8", errors="strict", newline="", write_through=True)

    def close(self) -> None:
        self.flush()


@contextmanager
def _streams() -> Iterator[tuple[_Captured, _Captured]]:
    out, err = _Captured(), _Captured()
    saved = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = io.TextIOWrapper(io.BytesIO()), out, err
    try:
        yield out, err
    finally:
        sys.stdin, sys.stdout, sys.stderr = saved


@contextmanager
def _restored_process() -> Iterator[None]:
    """Put signal handlers back, which a program may set, and fail when the working folder was changed."""
    watched = (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)
    folder, handlers = Path.cwd(), {number: signal.getsignal(number) for number in watched}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        left = Path.cwd()
        os.chdir(folder)
    assert left == folder, "the command left the working folder changed"


def run(*argv: str | os.PathLike[str], env: Mapping[str, str] | None = None) -> Ran:
    """Run a command in this process. An exception that leaves `main` is not caught: it is a defect."""
    from symbi_recover.cli.app import main

    arguments = [os.fspath(argument) for argument in argv]
    environment = mock.patch.dict(os.environ, clean_environment(env), clear=True)
    with environment, _restored_process(), _streams() as (out, err):
        rc = int(main(arguments))
        out.flush()
        err.flush()
        return Ran(rc, out.kept.getvalue(), err.kept.getvalue())


def run_process(
    *argv: str | os.PathLike[str],
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: bytes = b"",
    seconds: float = 60,
    program: Sequence[str] = PROGRAM,
) -> Ran:
    """Run a command as a process of its own, with pipes; raises subprocess.TimeoutExpired after `seconds`."""
    done = subprocess.run(
        [*program, *(os.fspath(argument) for argument in argv)],
        input=stdin,
        capture_output=True,
        env=clean_environment(env),
        cwd=cwd,
        timeout=seconds,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def run_terminal(
    *argv: str | os.PathLike[str],
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    columns: int = 100,
    seconds: float = 60,
    program: Sequence[str] = PROGRAM,
) -> Ran:
    """Run a command whose stdout is a terminal of `columns` by 40, and whose stderr is a pipe.

    `out` has what the terminal received, with its newlines as the program wrote them (no CR is added).
    """
    master, slave = pty.openpty()
    try:
        mode = termios.tcgetattr(slave)
        mode[1] &= ~termios.OPOST
        termios.tcsetattr(slave, termios.TCSANOW, mode)
        termios.tcsetwinsize(slave, (40, columns))
        process = subprocess.Popen(
            [*program, *(os.fspath(argument) for argument in argv)],
            stdin=subprocess.DEVNULL,
            stdout=slave,
            stderr=subprocess.PIPE,
            env=clean_environment({"COLUMNS": str(columns), **(env or {})}),
            cwd=cwd,
        )
    finally:
        os.close(slave)
    try:
        out, err = _drain(process, master, time.monotonic() + seconds)
        return Ran(process.wait(timeout=seconds), out, err)
    finally:
        os.close(master)
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stderr:
            process.stderr.close()


def _drain(process: subprocess.Popen[bytes], master: int, deadline: float) -> tuple[bytes, bytes]:
    """Read terminal and stderr side by side until both have ended."""
    assert process.stderr is not None
    ends = {master: bytearray(), process.stderr.fileno(): bytearray()}
    out, err = ends[master], ends[process.stderr.fileno()]
    while ends:
        ready, _, _ = select.select(list(ends), [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise subprocess.TimeoutExpired(process.args, 0, bytes(out), bytes(err))
        for end in ready:
            try:
                data = os.read(end, 65536)
            except OSError:  # a terminal without a writer gives EIO instead of an end of file
                data = b""
            if data:
                ends[end] += data
            else:
                del ends[end]
    return bytes(out), bytes(err)
