"""No room but write/ and cli/writing/ mentions anything that could change the world.

Exceptions are listed one by one with their reason, and an exception that is no longer needed fails the test, so the
list cannot outlive its reasons.
"""

from pathlib import Path

import pytest

from tests.boundary.scan import effects, effects_of, imported, words

PACKAGE = Path(__file__).resolve().parents[2] / "symbi_recover"
WRITERS = ("write/", "cli/writing/")

ALLOWED: dict[tuple[str, str], str] = {
    (
        "cli/app.py",
        "importlib.import_module",
    ): "commands are loaded by name only when called; the one such place",
    ("cli/app.py", "signal"): "SIGTERM ends a command through the same door as an error",
    ("cli/guard.py", "os.O_APPEND"): "the guard names what it refuses",
    ("cli/guard.py", "os.O_CREAT"): "the guard names what it refuses",
    ("cli/guard.py", "os.O_RDWR"): "the guard names what it refuses",
    ("cli/guard.py", "os.O_TRUNC"): "the guard names what it refuses",
    ("cli/guard.py", "os.O_WRONLY"): "the guard names what it refuses",
    (
        "read/daemon/peer.py",
        "ctypes",
    ): "pidfd_getfd has no wrapper in Python; it copies a descriptor for looking at",
    (
        "read/daemon/network.py",
        "ctypes",
    ): "setns has no wrapper in Python 3.11; one thread enters, asks and ends",
    ("read/verify/pieces.py", "signal"): "workers are born with interrupts held; only the mask is touched",
    ("read/evidence/clock.py", "ctypes"): "statx and adjtimex have no wrapper in Python; both only ask",
    ("render/output.py", "os.O_WRONLY"): "after a closed pipe stdout is led to the null device",
    ("symbi.py", "os.execv"): "words that belong to the runtime are handed over to it",
}

PURE = ("core/", "wire/")
NO_IO = words(
    "os io pathlib socket select selectors sqlite3 subprocess shutil tempfile fcntl mmap threading multiprocessing "
    "concurrent asyncio docker click time datetime random secrets logging urllib http ssl"
)


def readers() -> list[str]:
    """Every module outside the writing rooms, as a path in the package."""
    names = (str(path.relative_to(PACKAGE)) for path in sorted(PACKAGE.rglob("*.py")))
    return [name for name in names if not name.startswith(WRITERS)]


def test_there_is_something_to_look_at() -> None:
    rooms = {name.split("/")[0] for name in readers()}
    assert {"core", "wire", "read", "render", "cli"} <= rooms


@pytest.mark.parametrize("name", readers())
def test_a_reading_module_mentions_nothing_that_changes_the_world(name: str) -> None:
    found = [effect for effect in effects_of(PACKAGE / name) if (name, effect.what) not in ALLOWED]
    assert not found, "\n".join(f"symbi_recover/{name}:{effect.line}: {effect.what}" for effect in found)


def test_every_exception_is_still_needed() -> None:
    mentioned = {(name, effect.what) for name in readers() for effect in effects_of(PACKAGE / name)}
    assert set(ALLOWED) <= mentioned


@pytest.mark.parametrize("name", [name for name in readers() if name.startswith(PURE)])
def test_vocabulary_and_translator_do_no_input_and_no_output(name: str) -> None:
    assert imported((PACKAGE / name).read_text("utf-8")) & NO_IO == set()


PLANTED = {
    "a call": "import os\nos.rename('a', 'b')",
    "an alias of a module": "import os as quiet\nquiet.unlink('a')",
    "an alias of a function": "from os import replace as swap\nswap('a', 'b')",
    "a mention without a call": "import os\nact = os.mkdir",
    "an import inside a function": "def f():\n    import os\n    os.chmod('a', 0)",
    "a write flag": "import os\nos.open('a', os.O_RDONLY | os.O_CREAT)",
    "a write flag by import": "from os import O_WRONLY",
    "flags as a number": "import os\nos.open('a', 577)",
    "flags that are worked out": "import os\nos.open('a', flags())",
    "open for writing": "open('a', 'w')",
    "open for appending": "open('a', mode='ab')",
    "open for reading and writing": "open('a', 'r+b')",
    "open with a mode from elsewhere": "def f(mode):\n    return open('a', mode)",
    "open as a method": "path.open('x')",
    "a compressed file": "import gzip\ngzip.open('a', 'wt')",
    "a descriptor": "import os\nos.fdopen(3, 'w')",
    "a raw file": "import io\nio.FileIO('a', 'w')",
    "a path method": "path.write_text('a')",
    "a path removed": "path.unlink(missing_ok=True)",
    "a path replaced": "path.replace(other)",
    "a folder made": "from pathlib import Path\nPath('a').mkdir()",
    "a bound path method": "act = path.rmdir",
    "a lock": "import fcntl\nfcntl.flock(3, fcntl.LOCK_SH)",
    "a record lock": "from fcntl import lockf",
    "a lock by command": "import fcntl\nfcntl.fcntl(3, fcntl.F_SETLK)",
    "a process": "import subprocess",
    "a process by import": "from subprocess import run",
    "a process by os": "import os\nos.posix_spawn('a', [], {})",
    "a program in our place": "import os\nos.execv('a', ['a'])",
    "a temporary file": "import tempfile",
    "a tree removed": "import shutil\nshutil.rmtree('a')",
    "a copy": "from shutil import copyfile",
    "a FIFO": "import os\nos.mkfifo('a')",
    "times": "import os\nos.utime('a')",
    "loading by name": "import importlib",
    "loading by name, late": "def f():\n    from importlib import import_module",
    "loading by name, built in": "__import__('os')",
    "text as code": "exec('x')",
    "an expression as code": "eval('x')",
    "a C library": "import ctypes",
    "a name worked out": "import os\ngetattr(os, 'un' + 'link')('a')",
    "everything of a module": "from os import *",
    "a database": "import sqlite3\nsqlite3.connect('a.db')",
    "a container": "import docker\ndocker.from_env().containers.get('a').remove()",
    "a container, client given": "from docker import DockerClient\ndef f(client):\n    client.containers.prune()",
}

HARMLESS = {
    "reading": "open('a')\nopen('a', 'rb')\nopen('a', mode='r')",
    "opening for reading": "import os\nF = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK\nos.open('a', F)",
    "a descriptor read": "import os\nos.fdopen(3, 'rb')\nos.fstat(3)\nos.close(3)",
    "text replaced": "'a'.replace('a', 'b')",
    "a copy of a struct": "import msgspec\nmsgspec.structs.replace(x, a=1)",
    "a list item removed": "items.remove(1)",
    "the width of the terminal": "import shutil\nshutil.get_terminal_size()",
    "an attribute": "getattr(self, name)",
    "a database read": "import sqlite3\nsqlite3.connect('file:a?mode=ro&immutable=1', uri=True)",
    "a database in memory": "import sqlite3\nsqlite3.connect(':memory:', isolation_level=None)",
    "a container looked at": "import docker\ndocker.from_env().containers.list(all=True)",
}


@pytest.mark.parametrize("kind", sorted(PLANTED))
def test_a_planted_change_is_found(kind: str) -> None:
    assert effects(PLANTED[kind]), PLANTED[kind]


@pytest.mark.parametrize("kind", sorted(HARMLESS))
def test_looking_is_not_taken_for_a_change(kind: str) -> None:
    assert effects(HARMLESS[kind]) == []


def test_planted_input_and_output_is_found() -> None:
    assert imported("def f():\n    from os.path import join\n    import time") & NO_IO == {"os", "time"}
