"""A stand-in for the sandbox helper: one process that holds the lock and answers on the socket.

What it does, in order (lease format, sections 3, 12 and 13):

1. the parent starts this file as a child process and hands it a configuration on standard input;
2. the child creates ``supervisor.lock`` if missing and takes it with ``flock``, exclusively; a lock held by
   another ends it with status 0 and no output, as the real helper ends;
3. it replaces ``supervisor.sock`` and serves protocol version 7, one request a connection;
4. every frame it reads is reported to the parent, so that a test can prove what was asked;
5. an orderly stop removes the socket; a kill leaves socket and lock file behind.

What it does not do: it reads no record and no configuration of the store, sweeps nothing, starts no client,
and applies none of the start-up rules of section 14. The capacity snapshot is the one the test gives.
"""

import base64
import contextlib
import enum
import fcntl
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PROTOCOL_VERSION = 7
FINGERPRINT = "f40bd693cee55cd94e745a7601178a65ed6b9d7f5d595abe1cc559c875cb6bf1"
"""Build fingerprint of the packaged release 2.0.1 (section 12)."""
OTHER_FINGERPRINT = "e5ce26e27bbd999dc66324592ef6f3f5411e4a25e24df1a501c2321a7f74a531"
FRAME_LIMIT = 1048576
PATIENCE_SECONDS = 20.0
"""Upper bound for every wait; a healthy child answers within milliseconds."""


class Manner(enum.StrEnum):
    """How the double treats a request it would otherwise answer."""

    PLAIN = "plain"
    CLOSE = "close"  # no byte of reply, as for a request the real helper refuses
    SILENT = "silent"  # keeps the connection, says nothing
    FAILED = "failed"  # {"status":"failed"}: busy reader permits, for example
    PARTIAL_LINE = "partial_line"  # half of the reply, then the end of the stream
    STALLED_LINE = "stalled_line"  # half of the reply, then silence
    ENDLESS_LINE = "endless_line"  # bytes without a newline until the peer goes
    OVERSIZED_LINE = "oversized_line"  # a valid reply of more than 1 MiB
    NOT_JSON = "not_json"
    TWO_LINES = "two_lines"  # the reply, and a second one nobody asked for


class HelperError(Exception):
    """The child did not come up; ``status`` is its exit status (0: somebody else holds the lock)."""

    def __init__(self, message: str, status: int | None) -> None:
        super().__init__(message)
        self.status = status


def capacity_snapshot(state_dir: str, **changed: Any) -> dict[str, Any]:
    """Give the snapshot of an idle helper with default limits; ``changed`` replaces members."""
    snapshot: dict[str, Any] = {
        "observed_at_unix_ms": 1795981143521,
        "state_dir": state_dir,
        "limits": {"max_workers": 16, "memory_bytes": 8589934592, "cpu_nanos": 8000000000},
        "reserved": {"workers": 0, "memory_bytes": 0, "cpu_nanos": 0},
        "available": {"workers": 16, "memory_bytes": 8589934592, "cpu_nanos": 8000000000},
        "unknown_resource_leases": 0,
        "admission_blocked": False,
        "workers": [],
        "staging": None,
        "staging_error": "staging is not initialized",
    }
    snapshot.update(changed)
    return snapshot


class HelperDouble:
    """The parent's view of the child: its pid, what it was asked, and ways to end it."""

    def __init__(self, state_dir: str, config: dict[str, Any]) -> None:
        self.state_dir = state_dir
        self.lock_path = f"{state_dir}/supervisor.lock"
        self.socket_path = f"{state_dir}/supervisor.sock"
        self._frames: list[bytes] = []
        self._events: list[str] = []
        self._changed = threading.Condition()
        self._child = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            close_fds=True,
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        with contextlib.suppress(BrokenPipeError):
            assert self._child.stdin is not None
            self._child.stdin.write(json.dumps(config).encode() + b"\n")
            self._child.stdin.flush()
        self._wait(lambda: bool(self._events))
        if self._events[0] != "ready":
            status = self._child.wait(PATIENCE_SECONDS)
            self.stop()
            raise HelperError(f"the helper double ended with status {status} before it was ready", status)

    @property
    def pid(self) -> int:
        """Process number of the holder of the lock."""
        return self._child.pid

    @property
    def running(self) -> bool:
        """Whether the child has not ended."""
        return self._child.poll() is None

    @property
    def frames(self) -> tuple[bytes, ...]:
        """Every first frame received, as bytes with its newline (without one: it was cut off)."""
        with self._changed:
            return tuple(self._frames)

    @property
    def requests(self) -> tuple[dict[str, Any], ...]:
        """The frames that were JSON objects, decoded."""
        decoded = []
        for frame in self.frames:
            with contextlib.suppress(ValueError):
                decoded.append(json.loads(frame))
        return tuple(one for one in decoded if isinstance(one, dict))

    def wait_for_requests(self, count: int) -> tuple[bytes, ...]:
        """Return once ``count`` frames have been received; AssertionError after a bounded wait."""
        self._wait(lambda: len(self._frames) >= count)
        return self.frames

    def wait_for_event(self, event: str) -> None:
        """Return once the child has reported ``event``: ``ready``, ``refused``, ``answered``, ``end``."""
        self._wait(lambda: event in self._events)

    def assert_only_questions(self) -> None:
        """Fail unless every frame was a ``ping``, or an ``inspect`` that names no lease."""
        assert len(self.requests) == len(self.frames), f"not a JSON object among {self.frames!r}"
        for request in self.requests:
            assert request.get("operation") in {"ping", "inspect"}, request
            assert request.get("lease") is None, request

    def freeze(self) -> None:
        """Stop the child with SIGSTOP; it keeps the lock and answers nothing."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def thaw(self) -> None:
        """Let a frozen child go on."""
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """End the child with SIGKILL: the lock falls free, socket and lock file stay behind."""
        self._child.kill()
        self._reap()

    def stop(self) -> None:
        """End the child in order, which removes the socket; a child that does not follow is killed."""
        if self.running:
            assert self._child.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self._child.stdin.close()
            with contextlib.suppress(ProcessLookupError):
                self.thaw()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(PATIENCE_SECONDS)
            self._child.kill()
        self._reap()

    def _reap(self) -> None:
        self._child.wait(PATIENCE_SECONDS)
        self._listener.join(PATIENCE_SECONDS)
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def _wait(self, reached: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(reached, PATIENCE_SECONDS), f"only {self._events} was reported"

    def _listen(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            report = json.loads(line)
            with self._changed:
                self._events.append(report["event"])
                if report["event"] == "request":
                    self._frames.append(base64.b64decode(report["frame"]))
                self._changed.notify_all()
        with self._changed:
            self._events.append("end")
            self._changed.notify_all()


@contextlib.contextmanager
def helper_double(
    state_dir: str | os.PathLike[str],
    *,
    snapshot: dict[str, Any] | None = None,
    manner: Manner = Manner.PLAIN,
    fingerprint: str = FINGERPRINT,
    said_fingerprint: str | None = None,
    said_version: int = PROTOCOL_VERSION,
    client_uid: int | None = None,
    run_as: int | None = None,
    serve: bool = True,
) -> Iterator[HelperDouble]:
    """Run a helper double over an existing directory and end it in every case.

    Args:
        state_dir: the lease store; must exist, and belong to ``run_as`` where that is given.
        snapshot: what ``inspect`` answers; by default the snapshot of an idle helper.
        manner: what to do instead of a plain answer.
        fingerprint: the build the double accepts; another one in a request closes the connection.
        said_fingerprint: the build it names in ``ready``, if that is to differ.
        said_version: the protocol version it names in ``ready``.
        client_uid: peers with another uid are dropped without a byte; by default its own uid.
        run_as: uid the child changes to before it touches anything (needs uid 0).
        serve: False for a helper that holds the lock and never binds its socket.

    Raises:
        HelperError: the child ended before it was ready, for example because the lock is held.
    """
    directory = str(Path(state_dir).absolute())
    double = HelperDouble(
        directory,
        {
            "state_dir": directory,
            "snapshot": capacity_snapshot(directory) if snapshot is None else snapshot,
            "manner": manner.value,
            "fingerprint": fingerprint,
            "said_fingerprint": said_fingerprint or fingerprint,
            "said_version": said_version,
            "client_uid": client_uid,
            "run_as": run_as,
            "serve": serve,
        },
    )
    try:
        yield double
    finally:
        double.stop()


# The child. It has the standard library only, and reports one JSON line an event on standard output.


class _Child:
    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.reporting = threading.Lock()

    def report(self, event: str, frame: bytes = b"") -> None:
        line = json.dumps({"event": event, "frame": base64.b64encode(frame).decode()})
        with self.reporting:
            print(line, flush=True)

    def run(self) -> int:
        if self.config["run_as"] is not None:
            os.setuid(self.config["run_as"])
        directory = Path(self.config["state_dir"])
        lock = os.open(directory / "supervisor.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return 0
        if not self.config["serve"]:
            self.report("ready")
            sys.stdin.read()
            return 0
        path = directory / "supervisor.sock"
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            path.chmod(0o600)
            listener.listen(32)
            self.report("ready")
            self.accept(listener)
        path.unlink()
        return 0

    def accept(self, listener: socket.socket) -> None:
        while True:
            ready, _, _ = select.select([listener, sys.stdin], [], [])
            if sys.stdin in ready:
                return
            connection, _ = listener.accept()
            threading.Thread(target=self.converse, args=(connection,), daemon=True).start()

    def converse(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            _, uid, _ = struct.unpack("3i", raw)
            expected = self.config["client_uid"]
            if uid != (os.geteuid() if expected is None else expected):
                self.report("refused")
                return
            connection.settimeout(5)
            frame = self.read_frame(connection)
            self.report("request", frame)
            reply = self.reply_to(frame)
            if reply is None:
                self.report("refused")
                return
            connection.settimeout(None)
            self.send(connection, reply)
            self.report("answered")

    def read_frame(self, connection: socket.socket) -> bytes:
        frame = bytearray()
        with contextlib.suppress(TimeoutError):
            while b"\n" not in frame and len(frame) < FRAME_LIMIT:
                more = connection.recv(65536)
                if not more:
                    break
                frame += more
        return bytes(frame)

    def reply_to(self, frame: bytes) -> dict[str, Any] | None:
        """Give the reply of an honest helper; None where it closes without one."""
        line, newline, rest = frame.partition(b"\n")
        request: Any = None
        with contextlib.suppress(ValueError):
            request = json.loads(line)
        if not newline or rest or not isinstance(request, dict) or not self.accepts(request):
            return None
        if request["operation"] == "ping":
            return {
                "status": "ready",
                "version": self.config["said_version"],
                "implementation": self.config["said_fingerprint"],
                "jailed_vms": False,
                "delegated_workers": False,
            }
        if request["operation"] != "inspect" or request.get("lease") is not None:
            return {"status": "failed", "message": "this double creates and measures nothing"}
        return {"status": "capacity", "snapshot": self.config["snapshot"]}

    def accepts(self, request: dict[str, Any]) -> bool:
        """Tell whether version, build, operation and member names are ones the real helper takes."""
        known = {"operation", "version", "implementation"}
        operation = request.get("operation")
        if operation == "inspect":
            known.add("lease")
        elif operation in {"create", "create_vm", "create_host"}:
            known.update(request)
        elif operation != "ping":
            return False
        build = request.get("implementation")
        return (
            request.get("version") == PROTOCOL_VERSION
            and build == self.config["fingerprint"]
            and set(request) <= known
        )

    def send(self, connection: socket.socket, reply: dict[str, Any]) -> None:
        line = json.dumps(reply, separators=(",", ":")).encode() + b"\n"
        manner = Manner(self.config["manner"])
        if manner is Manner.FAILED:
            line = b'{"status":"failed","message":"capacity inspection is busy"}\n'
        elif manner in {Manner.PARTIAL_LINE, Manner.STALLED_LINE}:
            line = line[: len(line) // 2]
        elif manner is Manner.OVERSIZED_LINE:
            line = line[:-2] + b',"padding":"' + b"p" * FRAME_LIMIT + b'"}\n'
        elif manner is Manner.NOT_JSON:
            line = b"ready\n"
        elif manner is Manner.TWO_LINES:
            line += line
        if manner is Manner.ENDLESS_LINE:
            while True:  # ends with the peer: send() then fails
                connection.sendall(b"a" * 65536)
        if manner not in {Manner.CLOSE, Manner.SILENT}:
            connection.sendall(line)
        if manner in {Manner.SILENT, Manner.STALLED_LINE}:
            connection.recv(1)  # returns when the peer has gone


if __name__ == "__main__":
    # No clean-up of threads that still talk to a peer: the process ends, and the kernel closes for them.
    os._exit(_Child(json.loads(sys.stdin.readline())).run())
