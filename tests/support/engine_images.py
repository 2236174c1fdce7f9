"""Images for the private engine, and the gate that makes a create slow at a known place.

- `EMPTY`: 1024 zero bytes, a valid and empty tar;
- `pause_program`: a static Linux executable of about 150 bytes that waits for ever, or ends at once when it is
  given an argument; it lets a container run without any distribution;
- `FileGate`: a kernel file lease. While it is held, every open of the file waits; the holder sees that somebody
  waits. The vfs storage driver copies an image's layer for each container, after the name is reserved and before
  the container is registered: a lease on a file of that layer stops the create exactly there.
"""

import contextlib
import fcntl
import io
import os
import platform
import signal
import struct
import tarfile
from pathlib import Path
from typing import Self

EMPTY = bytes(1024)
SLOW_FILE = "gate"
_F_SETSIG = 10
_X86_64 = bytes.fromhex("5948 83f901 7f07 6a22580f05ebf9 31ff6a3c580f05")
# pop rcx; cmp rcx,1; jg end; again: pause(); jmp again; end: exit(0)
_LOAD_ADDRESS = 0x400000


def pause_program() -> bytes:
    """Give the executable for this machine.

    Raises:
        NotImplementedError: the machine is not x86_64.
    """
    if platform.machine() != "x86_64":
        raise NotImplementedError(f"not run: no pause program for {platform.machine()}")
    size = 120 + len(_X86_64)
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header = struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, _LOAD_ADDRESS + 120, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _LOAD_ADDRESS, _LOAD_ADDRESS, size, size, 0x1000)
    return ident + header + segment + _X86_64


def tar_of(name: str, data: bytes, mode: int = 0o644) -> bytes:
    """Give a tar with one regular file."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = len(data), mode
        tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


class FileGate:
    """Holds a write lease on a file that nobody has open; opening it waits until `release`."""

    def __init__(self, path: Path) -> None:
        self._file: int | None = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            # The default signal of a lease would end the test process; this one is ignored by default.
            fcntl.fcntl(self._file, _F_SETSIG, signal.SIGURG)
            fcntl.fcntl(self._file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError:
            self.release()
            raise

    @property
    def reached(self) -> bool:
        """Whether somebody waits to open the file (or the kernel has ended the wait)."""
        return self._file is not None and fcntl.fcntl(self._file, fcntl.F_GETLEASE) != fcntl.F_WRLCK

    def release(self) -> None:
        """Let everybody through; no harm when done already."""
        if self._file is None:
            return
        with contextlib.suppress(OSError):
            fcntl.fcntl(self._file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        os.close(self._file)
        self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
