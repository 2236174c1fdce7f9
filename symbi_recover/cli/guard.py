"""The runtime guard of every read command: Python's audit events, watched while the command runs.

It refuses to open for writing, to create, rename, remove or change anything, and to start programs. It does not see
FIFOs made by `mkfifo`, `flock`, calls through ctypes, or SQLite's own files; import contracts, a source check and
system-call traces cover those. An audit hook cannot be taken away again, so it looks at a flag.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from symbi_recover.core.errors import RecoverError

_WRITING_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_FORBIDDEN = frozenset(
    {
        "fcntl.flock",
        "fcntl.lockf",
        "os.chmod",
        "os.chown",
        "os.exec",
        "os.lchown",
        "os.link",
        "os.lockf",
        "os.mkdir",
        "os.posix_spawn",
        "os.remove",
        "os.removexattr",
        "os.rename",
        "os.rmdir",
        "os.setxattr",
        "os.spawn",
        "os.symlink",
        "os.system",
        "os.truncate",
        "os.utime",
        "shutil.chown",
        "shutil.copyfile",
        "shutil.copymode",
        "shutil.copystat",
        "shutil.copytree",
        "shutil.make_archive",
        "shutil.move",
        "shutil.rmtree",
        "shutil.unpack_archive",
        "subprocess.Popen",
        "tempfile.mkdtemp",
        "tempfile.mkstemp",
    }
)


class _State:
    installed = False
    watching = 0


@contextmanager
def read_only() -> Iterator[None]:
    """Refuse every change that an audit event announces, for as long as the block runs."""
    if not _State.installed:
        sys.addaudithook(_watch)
        _State.installed = True
    bytecode = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    _State.watching += 1
    try:
        yield
    finally:
        _State.watching -= 1
        sys.dont_write_bytecode = bytecode


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if not _State.watching:
        return
    if event == "open":
        if _writes(arguments) and arguments[0] != os.devnull:
            _refuse(event, arguments)
    elif event in _FORBIDDEN:
        _refuse(event, arguments)


def _writes(arguments: tuple[object, ...]) -> bool:
    mode, flags = arguments[1], arguments[2]
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & _WRITING_FLAGS)


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    what = arguments[0] if arguments and isinstance(arguments[0], str) else "something"
    raise RecoverError("guard", f"a read-only command tried {event} on {what}", path=str(what))
