"""The runtime guard of every read command: Python's audit events, watched while the command runs.

It refuses to open for writing, to create, rename, remove, lock or change anything, to give a socket a name, to start
programs, and to give SQLite anything but memory. What trips it is a defect of ours: the command ends with exit 70,
also where its own handling of errors swallows the refusal.

It does not see FIFOs made by `mkfifo`, calls through ctypes, or what SQLite attaches; import contracts, a source check
and system-call traces cover those. An audit hook cannot be taken away again, so it looks at a flag.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from symbi_recover.core.errors import GuardError

_WRITING_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_MEMORY = ":memory:"
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
        "sqlite3.enable_load_extension",
        "sqlite3.load_extension",
        "subprocess.Popen",
        "tempfile.mkdtemp",
        "tempfile.mkstemp",
    }
)


class _State:
    installed = False
    watching = 0
    tripped: GuardError | None = None
    """The first refusal, which the end of the block raises again if it was swallowed."""


@contextmanager
def read_only() -> Iterator[None]:
    """Refuse every change that an audit event announces, for as long as the block runs.

    Raises:
        GuardError: something was refused, whatever else the block raised or caught.
    """
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
        tripped, _State.tripped = _State.tripped, None
        if tripped is not None:
            raise tripped


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if not _State.watching:
        return
    if event == "open":
        refused = _writes(arguments) and arguments[0] != os.devnull
    elif event == "socket.bind":
        # urllib3 asks on import for any port of ::1, to know whether there is IPv6; that leaves nothing behind
        refused = isinstance(arguments[1], str | bytes)
    elif event == "sqlite3.connect":
        refused = arguments[0] != _MEMORY
    else:
        refused = event in _FORBIDDEN
    if refused:
        _refuse(event, arguments)


def _writes(arguments: tuple[object, ...]) -> bool:
    mode, flags = arguments[1], arguments[2]
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & _WRITING_FLAGS)


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    names = (os.fsdecode(argument) for argument in arguments[:2] if isinstance(argument, str | bytes))
    what = next(names, "something")
    tripped = GuardError(f"a read-only command tried {event} on {what}", what)
    _State.tripped = _State.tripped or tripped
    raise tripped
