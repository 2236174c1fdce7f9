"""Starts the program against a private engine and ends it with SIGKILL right before its N-th act.

    python -m tests.engine.killed COUNT_FILE N ENGINE_PID lease retire ...

Acts are what leaves a trace: calls that change the file system, each connection to a daemon, each request on it and the
first look at each answer. With N = 0 nothing is killed, and the number of acts goes into COUNT_FILE.
"""

import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from symbi_recover.cli import app
from symbi_recover.cli.writing import lease_retire
from symbi_recover.read.daemon import engine
from tests.support.engine_host import EngineHost

ACTS = ("mkdir", "write", "fsync", "link", "rename", "unlink", "rmdir", "fchmod")


class Countdown:
    """Ends this process before the N-th act."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.count = 0

    def __call__(self) -> None:
        self.count += 1
        if self.count == self.last:
            os.kill(os.getpid(), signal.SIGKILL)

    def before(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The call, counted."""

        def counted(*arguments: Any, **options: Any) -> Any:
            self()
            return call(*arguments, **options)

        return counted


def watch(countdown: Countdown) -> None:
    """Count every act from here on."""
    for name in ACTS:
        setattr(os, name, countdown.before(getattr(os, name)))

    class Watched(engine._BoundedSocket):
        looked = False

        def connect(self, address: Any) -> None:
            countdown()
            super().connect(address)

        def sendall(self, data: Any, flags: int = 0) -> None:
            countdown()
            super().sendall(data, flags)

        def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
            if not self.looked:
                self.looked = True
                countdown()
            return super().recv_into(buffer, nbytes, flags)

    engine._BoundedSocket = Watched  # type: ignore[misc]
    assert issubclass(Watched, socket.socket)


def main() -> int:
    """Run the command."""
    file, last, pid, *words = sys.argv[1:]
    countdown = Countdown(int(last))
    lease_retire.the_host = lambda: EngineHost(lambda: int(pid))
    watch(countdown)
    code = app.main(words)
    Path(file).write_text(str(countdown.count))
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
