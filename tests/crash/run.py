"""Runs one command under strace: to record its system calls, or to disturb exactly one of them.

Every run gets the same small environment (fixed hash seed, no byte code written, private byte-code cache), so that
the n-th call of a name is the same call in every run. Nothing of the caller's environment is passed on.

How a disturbance is made (all of it found by experiment with strace 6.1, and held by the tests):

- `signal=KILL` arrives on entry, and the call is not executed. Together with `--seccomp-bpf` the signal is lost,
  so runs that kill go without it and are slower.
- `error=` and `retval=` replace the call, which is not executed; both work with `--seccomp-bpf`.
- `when=N` counts for each process on its own. Points are therefore taken from the first process only.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path

from msgspec import Struct

from tests.crash.calls import About, Call, classify, parse, string_argument

TIMEOUT = 30.0
"""Seconds that one run may take."""

_TRACED = "%file,%desc,%network,%process,umask,sync"
_LINE = 600  # characters of a log line that a report shows
_NOT_A_TOUCH = frozenset({"execve", "getcwd", "chdir", "fchdir"})


class Workspace(Struct, frozen=True):
    """One prepared world: the tree whose first touch ends start-up, and how to run the command in it.

    `cwd` should lie outside `root`, or the interpreter's search for modules already touches the tree. `env` is added
    to the fixed environment. `extra` is for the scenario's own use.
    """

    root: Path
    cwd: Path
    env: Mapping[str, str] = {}
    extra: object = None


class Kind(Enum):
    """What is done to the one call."""

    KILL = "kill"
    """SIGKILL before it."""
    TORN = "torn"
    """SIGKILL in the middle of a write: half of its bytes have reached the file."""
    FAULT = "fault"
    """It fails with an errno and does nothing."""
    SHORT = "short"
    """A write writes nothing and returns 0."""


class Point(Struct, frozen=True):
    """One disturbance of one call. `about` says in words where it lies."""

    kind: Kind
    name: str
    ordinal: int
    errno: str = ""
    for_ever: bool = False
    about: str = ""

    @property
    def id(self) -> str:
        """A short name, stable between runs, that the matrix command takes with `--only`."""
        extra = f":{self.errno}:{'ever' if self.for_ever else 'once'}" if self.errno else ""
        return f"{self.kind.value}:{self.name}:{self.ordinal}{extra}"

    @property
    def injection(self) -> str:
        """The expression for strace's `-e inject=`."""
        when = f"when={self.ordinal}{'+' if self.for_ever else ''}"
        if self.kind in (Kind.KILL, Kind.TORN):
            return f"{self.name}:signal=KILL:{when}"
        return f"{self.name}:{'retval=0' if self.kind is Kind.SHORT else 'error=' + self.errno}:{when}"


class Trace(Struct, frozen=True):
    """What one undisturbed run did.

    `calls` begin at the first call that touches the root, in every process; `all_calls` has start-up as well.
    `main` is the number of the first process, `root` the tree under test, `existed` every path in it before the run.
    """

    all_calls: tuple[Call, ...]
    calls: tuple[Call, ...]
    main: int
    exit_code: int | None
    stdout: bytes
    stderr: bytes
    root: str
    existed: frozenset[str]

    def shape(self) -> list[tuple[str, int, str, str | None]]:
        """What must be the same in every run: names, ordinals, places and errors of the first process.

        Plain memory is left out: when it is asked for depends on the length of what /proc says, and no point lies there.
        So is the mapping of libraries, whose ordinals count with it.
        """
        own = (c for c in self.calls if c.pid == self.main and c.about is not About.NOTHING)
        own = (c for c in own if (c.name, c.about) != ("mmap", About.LIBRARY))
        return [(c.name, c.ordinal, c.about.value, c.error) for c in own]


class Outcome(Struct, frozen=True):
    """The end of one disturbed run. `hit` is the log line of the disturbed call, "" when it was never reached."""

    exit_code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    hit: str
    timed_out: bool
    seconds: float

    @property
    def injected(self) -> bool:
        """Whether the disturbance really happened."""
        return bool(self.hit)


def missing_strace() -> str | None:
    """Why strace cannot be used here, or None."""
    program = shutil.which("strace")
    if program is None:
        return "strace is not installed"
    tried = subprocess.run(
        [program, "-f", "--seccomp-bpf", "-o", os.devnull, "-e", "trace=none", "true"],
        capture_output=True,
        check=False,
        timeout=TIMEOUT,
    )
    return None if tried.returncode == 0 else f"strace cannot trace here: {tried.stderr.decode().strip()}"


def environment(extra: Mapping[str, str], cache: Path | None = None) -> dict[str, str]:
    """The fixed environment of every run; `cache` holds byte code, so that no other process changes the trace."""
    fixed = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
    }
    if cache is not None:
        fixed["PYTHONPYCACHEPREFIX"] = str(cache)
    return {**fixed, **extra}


def run_plain(argv: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: bytes = b"") -> Outcome:
    """Run a command with no strace at all; `env` is the whole environment."""
    return _run(list(argv), cwd, env, stdin, TIMEOUT)


def record(
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    root: Path,
    *,
    stdin: bytes = b"",
    timeout: float = TIMEOUT,
) -> Trace:
    """Run a command undisturbed and return its system calls after start-up; `env` is the whole environment."""
    existed = frozenset(str(path) for path in root.rglob("*"))
    with tempfile.TemporaryDirectory(prefix="strace-") as folder:
        log = Path(folder, "log")
        # -a1: no padding before the result. -s: file content beyond this length is cut in the log.
        options = ["-a1", "-s", "64", "--seccomp-bpf", "-e", f"trace={_TRACED}"]
        ended = _run(_strace(log, options, argv), cwd, env, stdin, timeout)
        lines = log.read_text("utf-8", "surrogateescape").splitlines() if log.exists() else []
    libraries = [Path(env["PYTHONPYCACHEPREFIX"])] if "PYTHONPYCACHEPREFIX" in env else []
    every = classify(parse(lines, str(cwd)), root, libraries)
    touches = (
        i for i, call in enumerate(every) if call.about is About.ROOT and call.name not in _NOT_A_TOUCH
    )
    start = next(touches, len(every))
    main = every[0].pid if every else 0
    return Trace(every, every[start:], main, ended.exit_code, ended.stdout, ended.stderr, str(root), existed)


def differences(one: Trace, other: Trace) -> str | None:
    """Where two recordings of the same command part, in words; None when they agree."""
    for at, (left, right) in enumerate(zip(one.shape(), other.shape(), strict=False)):
        if left != right:
            return f"call {at} after start-up: {left} in one recording, {right} in the other"
    if len(one.shape()) != len(other.shape()):
        return f"{len(one.shape())} calls in one recording, {len(other.shape())} in the other"
    return None


def run_with(
    point: Point,
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    *,
    stdin: bytes = b"",
    timeout: float = TIMEOUT,
) -> Outcome:
    """Run a command with one disturbance; `env` is the whole environment.

    For a torn write the rest of the work is done here: the first half of the bytes is put where they were to go.
    """
    with tempfile.TemporaryDirectory(prefix="strace-") as folder:
        log = Path(folder, "log")
        kills = point.kind in (Kind.KILL, Kind.TORN)
        options = ["-a1", "-e", f"trace={point.name}", "-e", f"inject={point.injection}"]
        options += ["-s", "1048576"] if point.kind is Kind.TORN else ["-s", "64"]
        options += [] if kills else ["--seccomp-bpf"]
        ended = _run(_strace(log, options, argv), cwd, env, stdin, timeout)
        lines = log.read_text("utf-8", "surrogateescape").splitlines() if log.exists() else []
    calls = parse(lines, str(cwd))
    hit = _hit(point, calls, ended)
    if hit is not None and point.kind is Kind.TORN:
        tear(hit)
    text = hit.text if hit else ""
    text = text if len(text) <= _LINE else f"{text[: _LINE // 2]} ... {text[-_LINE // 2 :]}"
    return Outcome(
        ended.exit_code, ended.signal, ended.stdout, ended.stderr, text, ended.timed_out, ended.seconds
    )


def tear(call: Call) -> None:
    """Do the first half of a write that was never executed, at the end of its file or at its own offset."""
    data = string_argument(call.args[1])
    if data is None or not call.paths:
        return
    half = data[: len(data) // 2]
    try:
        target = os.open(call.paths[0], os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:  # a file without a name is gone with its process: there is nothing to tear
        return
    try:
        at = int(call.args[3]) if call.name == "pwrite64" else os.fstat(target).st_size
        os.pwrite(target, half, at)
    finally:
        os.close(target)


def _hit(point: Point, calls: Iterable[Call], ended: Outcome) -> Call | None:
    if point.kind in (Kind.KILL, Kind.TORN):
        of_name = [
            c for c in calls if c.name == point.name and c.ordinal == point.ordinal and c.value is None
        ]
        return of_name[0] if of_name and ended.signal == signal.SIGKILL else None
    return next((c for c in calls if "(INJECTED)" in c.result), None)


def _strace(log: Path, options: list[str], argv: Sequence[str]) -> list[str]:
    # -I2: strace itself may be ended by a signal; -qq: no messages about attaching or exits.
    return ["strace", "-f", "-y", "-qq", "-I2", "-o", str(log), *options, "--", *argv]


def _run(argv: list[str], cwd: Path, env: Mapping[str, str], stdin: bytes, timeout: float) -> Outcome:
    begun = time.monotonic()
    # A session of its own, so that a run that hangs can be ended as a whole, strace and command together.
    with subprocess.Popen(
        argv,
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as running:
        try:
            out, err = running.communicate(stdin, timeout)
            late = False
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            out, err = running.communicate()
            late = True
    code = running.returncode
    seconds = time.monotonic() - begun
    return Outcome(code if code >= 0 else None, -code if code < 0 else None, out, err, "", late, seconds)
