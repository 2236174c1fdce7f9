"""One private Docker Engine as a process: start, stop, kill, freeze, and nothing left afterwards.

Steps of a start:

1. a directory of its own below the temporary directory holds data, state, socket, keys, configuration and log;
2. a launcher gives itself a mount namespace (with empty ``/run`` and ``/opt``) and, if asked, one for the
   network, asks to be killed when the starting thread dies, takes over a handed-down listener if there is one,
   and becomes ``dockerd``, so that the process number is known from the beginning;
3. the start is over when ``GET /_ping`` has been answered.

Its mounts live and die in that namespace. The machine's own engine shares nothing with it: other data root, other
containerd, other socket, other key, no network. Networks are limited to "none" and "host".

Start it in the main thread: the kernel ties the request to be killed to the starting thread.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.support.unix_http import ask

PATIENCE_SECONDS = 60.0
"""Upper bound for a start, a stop and every other wait; a start takes well under a second here."""
_CAP_SYS_ADMIN = 1 << 21
_IMMUTABLE = 0x10
_FS_IOC_GETFLAGS, _FS_IOC_SETFLAGS = 0x80086601, 0x40086602

_LAUNCHER = """
import ctypes, os, sys
listener, apart, hidden, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].split(":"), sys.argv[4:]
libc = ctypes.CDLL(None, use_errno=True)
def must(result, what):
    if result != 0:
        sys.exit(f"{what}: {os.strerror(ctypes.get_errno())}")
must(libc.prctl(1, 9, 0, 0, 0), "asking to be killed with the starter")
must(libc.unshare(0x20000 | (0x40000000 if apart else 0)), "namespaces of its own")
must(libc.mount(b"none", b"/", None, 0x4000 | 0x40000, None), "making mounts private")
for place in filter(None, hidden):
    must(libc.mount(b"tmpfs", place.encode(), b"tmpfs", 0, b"mode=755"), f"an empty {place}")
if listener >= 0:
    os.dup2(listener, 3)
    os.environ |= {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}
os.execv(command[0], command)
"""


class EngineError(Exception):
    """The engine did not do what was asked within the time; the message quotes the end of its log."""


def why_not_here() -> str | None:
    """Tell why no private engine can run here (text for pytest.skip), or None."""
    if os.geteuid() != 0:
        return "not run: a private Docker Engine needs uid 0"
    status = Path("/proc/self/status").read_text(encoding="ascii")
    effective = int(status.partition("CapEff:")[2].split()[0], 16)
    if not effective & _CAP_SYS_ADMIN:
        return "not run: a private Docker Engine needs CAP_SYS_ADMIN"
    for program in ("dockerd", "containerd", "runc"):
        if _which(program) is None:
            return f"not run: {program} is not installed (package docker.io)"
    return None


class EngineProcess:
    """A private ``dockerd`` with its directory; see `start` and `close`."""

    def __init__(
        self,
        listener: socket.socket | None = None,
        key_file: Path | None = None,
        *,
        own_network: bool = False,
    ) -> None:
        """Prepare the directory.

        Args:
            listener: a bound, listening Unix socket owned by the caller; the engine is then started as by
                socket activation (``-H fd://``). Without it the engine makes its own listener.
            key_file: key of another engine, to get one that reports the same engine ID.
            own_network: start it in a network namespace of its own.
        """
        self.directory = Path(tempfile.mkdtemp(prefix="rig-"))  # short: socket paths end at 103 bytes
        self.data_root = self.directory / "data"
        self.exec_root = self.directory / "exec"
        self.key_file = key_file or self.directory / "key.json"
        self.log = self.directory / "log"
        self.cgroup = f"symbi-{self.directory.name}"
        self._listener = listener
        self._own_network = own_network
        self.socket_path = str(self.directory / "s") if listener is None else str(listener.getsockname())
        self.start_seconds = 0.0
        self._pinned: set[Path] = set()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def base_url(self) -> str:
        """The endpoint as DOCKER_HOST names it."""
        return f"unix://{self.socket_path}"

    @property
    def pid(self) -> int:
        """Process number of the engine that runs, or ran last."""
        if self._process is None:
            raise EngineError("the engine was not started")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is there (it may be frozen)."""
        return self._process is not None and self._process.poll() is None

    def start(self, *, wait: bool = True) -> None:
        """Start the engine; a second start needs a stop or kill before it."""
        if self.running:
            raise EngineError("the engine runs already")
        config: dict[str, str] = {"deprecated-key-path": str(self.key_file)}
        (self.directory / "daemon.json").write_text(json.dumps(config), encoding="ascii")
        began = time.monotonic()
        descriptor = -1 if self._listener is None else self._listener.fileno()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", "-c", _LAUNCHER),
                    *(str(descriptor), str(int(self._own_network)), _hidden()),
                    *self._command(),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=() if self._listener is None else (descriptor,),
                env={"PATH": _PATH, "HOME": str(self.directory), "TMPDIR": str(self.directory)},
                start_new_session=True,
            )
        if wait:
            self.wait_until_answering()
            self.start_seconds = time.monotonic() - began

    def wait_until_answering(self) -> None:
        """Return once ``GET /_ping`` was answered with 200."""

        def answering() -> bool:
            if not self.running:
                raise EngineError(f"the engine ended by itself: {self.log_end()}")
            with contextlib.suppress(OSError):
                return ask(self.socket_path, "GET", "/_ping", timeout=PATIENCE_SECONDS).status == 200
            return False

        self.until(answering, "an answer to GET /_ping")

    def stop(self) -> None:
        """End the engine in order (SIGTERM); it is killed when it does not follow."""
        if not self.running or self._process is None:
            return
        self._process.terminate()
        self.thaw()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(PATIENCE_SECONDS)
            return
        self.kill()
        raise EngineError(f"the engine had to be killed: {self.log_end()}")

    def restart(self) -> None:
        """Stop in order, and start again on the same data."""
        self.stop()
        self.start()

    def kill(self, *, spare_containers: bool = False) -> None:
        """End the engine with SIGKILL, frozen or not, and its containerd with it.

        With ``spare_containers`` the containers' processes live on, as after a real crash.
        """
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE_SECONDS)
        self._end_processes(spare_containers=spare_containers)
        # The next engine would take a containerd that nobody has reaped yet for a living one.
        (self.exec_root / "containerd" / "containerd.pid").unlink(missing_ok=True)

    def freeze(self) -> None:
        """Stop the engine with SIGSTOP and wait until all its threads stand still.

        Its listener goes on taking connections, and nobody accepts them.
        """
        os.kill(self.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def thaw(self) -> None:
        """Let a frozen engine go on; no harm to one that is not frozen."""
        if self.running:
            os.kill(self.pid, signal.SIGCONT)

    def until(self, reached: Callable[[], bool], what: str) -> None:
        """Poll ``reached`` every few milliseconds; EngineError when ``what`` does not come about."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not reached():
            if time.monotonic() > end:
                raise EngineError(f"no {what} after {PATIENCE_SECONDS} s: {self.log_end()}")
            time.sleep(0.004)

    def log_end(self) -> str:
        """Give the last lines of the engine's log."""
        if not self.log.exists():
            return "no log"
        return " / ".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-3:])

    def pin(self, path: Path) -> None:
        """Set the immutable flag, so that the engine fails to remove what ``path`` lies in."""
        _set_immutable(path, on=True)
        self._pinned.add(path)

    def unpin(self) -> None:
        """Take back every `pin`."""
        while self._pinned:
            path = self._pinned.pop()
            if path.exists():
                _set_immutable(path, on=False)

    def close(self) -> None:
        """Kill the engine, whatever state it is in, and remove its processes, groups and directory.

        Raises:
            EngineError: something could not be removed; the message lists it.
        """
        try:
            self.kill()
            self.unpin()
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)
        self.until(self._groups_removed, "end of the engine's control groups")
        left = self.leftovers()
        if left:
            raise EngineError(f"the private engine left behind: {left}")

    def leftovers(self) -> list[str]:
        """List processes, mounts, control groups and files of this engine."""
        left = [f"process {pid}" for pid in self.processes()]
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
        left += [f"mount {line}" for line in mounts.splitlines() if str(self.directory) in line]
        left += [f"control group {path}" for path in self._groups()]
        return left + ([f"directory {self.directory}"] if self.directory.exists() else [])

    def processes(self) -> list[int]:
        """List the living processes that belong to this engine: itself, containerd, shims, containers."""
        return [pid for pid, _ in self._belonging()]

    def _command(self) -> list[str]:
        executable = _which("dockerd")
        if executable is None:
            raise EngineError("dockerd is not installed")
        return [
            executable,
            f"--config-file={self.directory}/daemon.json",
            f"--data-root={self.data_root}",
            f"--exec-root={self.exec_root}",
            f"--pidfile={self.directory}/pid",
            f"--host={self.base_url if self._listener is None else 'fd://'}",
            "--bridge=none",
            "--iptables=false",
            "--ip6tables=false",
            "--ip-forward=false",
            "--ip-masq=false",
            "--storage-driver=vfs",
            "--exec-opt=native.cgroupdriver=cgroupfs",
            f"--cgroup-parent=/{self.cgroup}",
            "--log-level=warn",
        ]

    def _belonging(self) -> Iterator[tuple[int, bool]]:
        """Find the processes; the flag tells those of containers, shims included."""
        mark, group = os.fsencode(self.directory) + b"/", f"/{self.cgroup}/"
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            with contextlib.suppress(OSError):
                state = (entry / "stat").read_bytes().rpartition(b")")[2].split()[0]
                command = (entry / "cmdline").read_bytes()
                grouped = group in (entry / "cgroup").read_text()
                if (grouped or mark in command) and state not in {b"Z", b"X"}:
                    yield int(entry.name), grouped or b"containerd-shim" in command.split(b"\0")[0]

    def _end_processes(self, *, spare_containers: bool) -> None:
        def gone() -> bool:
            left = [pid for pid, contained in self._belonging() if not (contained and spare_containers)]
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not left

        self.until(gone, "end of the engine's processes")

    def _groups(self) -> list[Path]:
        root = Path("/sys/fs/cgroup")
        return [found for pattern in (self.cgroup, f"*/{self.cgroup}") for found in root.glob(pattern)]

    def _groups_removed(self) -> bool:
        for top in self._groups():
            for path, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):
                    Path(path).rmdir()
        return not self._groups()


_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def _which(program: str) -> str | None:
    return shutil.which(program, path=_PATH)


def _hidden() -> str:
    """Name the directories that the engine finds empty, so that it leaves nothing in the machine's."""
    needed = [str(_which(program)) for program in ("dockerd", "containerd", "runc")] + [tempfile.gettempdir()]
    places = [place for place in ("/run", "/opt") if Path(place).is_dir()]
    return ":".join(place for place in places if not any(one.startswith(place + "/") for one in needed))


def _set_immutable(path: Path, *, on: bool) -> None:
    with path.open("rb") as file:
        flags = bytearray(8)
        fcntl.ioctl(file, _FS_IOC_GETFLAGS, flags)
        value = int.from_bytes(flags[:4], sys.byteorder)
        value = value | _IMMUTABLE if on else value & ~_IMMUTABLE
        fcntl.ioctl(file, _FS_IOC_SETFLAGS, value.to_bytes(4, sys.byteorder) + bytes(4))
