"""Child processes for the tests that ask the real kernel: each says when it is ready, and is ended by its number."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


class Child:
    """A Python child that takes commands on standard input and answers a line to each."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.pid = process.pid

    def answer(self) -> str:
        """Wait for the next line; an end of output means that the child failed."""
        line = self.process.stdout.readline() if self.process.stdout else ""
        if not line:
            raise AssertionError("the child ended early")
        return line.strip()

    def tell(self, text: str) -> None:
        """Send one line."""
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def ask(self, text: str) -> str:
        """Send one line and wait for the answer."""
        self.tell(text)
        return self.answer()


@contextmanager
def child(
    code: str, *arguments: str, prefix: Sequence[str] = (), environment: dict[str, str] | None = None
) -> Iterator[Child]:
    """Run Python code in a child and end it, and nobody else, at the end of the block."""
    command = [*prefix, sys.executable, "-I", "-c", code, *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            yield Child(process)
        finally:
            process.kill()


def may_unshare(*flags: str) -> bool:
    """Say whether this account may make namespaces of these kinds."""
    if os.geteuid() != 0:
        return False
    command = ["unshare", *flags, "true"]
    try:
        return subprocess.run(command, check=False, capture_output=True, timeout=20).returncode == 0
    except OSError:
        return False
