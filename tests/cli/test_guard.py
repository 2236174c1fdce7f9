"""The guard that every reading command runs under: what it refuses, and how a command that trips it ends."""

import contextlib
import fcntl
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from symbi_recover.cli.guard import read_only
from symbi_recover.core.codes import CODES
from symbi_recover.core.errors import GuardError
from symbi_recover.read import inspection
from symbi_recover.read.verify import journal as verification
from symbi_recover.read.verify import pieces
from tests.support.cli import Ran, run
from tests.support.readonly import hash_tree
from tests.support.sample_journals import KEY, small
from tests.support.writer.project import put
from tests.support.writer.text import RUN


def name_a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as unnamed:
        unnamed.bind(str(path))


ATTEMPTS: dict[str, Callable[[Path], object]] = {
    "open for writing": lambda p: (p / "file").open("wb"),
    "open for appending": lambda p: (p / "file").open("ab"),
    "open for both": lambda p: (p / "file").open("r+b"),
    "open a new name": lambda p: os.open(p / "new", os.O_CREAT | os.O_RDONLY),
    "open by descriptor flags": lambda p: os.open(p / "file", os.O_RDWR),
    "open with a name in bytes": lambda p: os.open(os.fsencode(p / "file"), os.O_WRONLY),
    "truncate": lambda p: os.truncate(p / "file", 0),
    "rename": lambda p: (p / "file").rename(p / "other"),
    "remove": lambda p: (p / "file").unlink(),
    "remove a folder": lambda p: (p / "folder").rmdir(),
    "make a folder": lambda p: (p / "new").mkdir(),
    "make a temporary file": lambda p: tempfile.mkstemp(dir=p),
    "link": lambda p: os.link(p / "file", p / "new"),
    "symbolic link": lambda p: (p / "new").symlink_to("file"),
    "mode": lambda p: (p / "file").chmod(0o644),
    "owner": lambda p: os.chown(p / "file", -1, -1),
    "times": lambda p: os.utime(p / "file"),
    "attribute": lambda p: os.setxattr(p / "file", "user.x", b""),
    "lock": lambda _: fcntl.flock(0, fcntl.LOCK_SH),
    "record lock": lambda _: fcntl.lockf(0, fcntl.LOCK_SH),
    "name a socket": lambda p: name_a_socket(p / "new"),
    "copy": lambda p: shutil.copyfile(p / "file", p / "new"),
    "start a program": lambda _: subprocess.run(["true"], check=False),
    "database": lambda p: sqlite3.connect(p / "file"),
    "database, by name": lambda p: sqlite3.connect(str(p / "new")),
    "database, for reading": lambda p: sqlite3.connect(f"file:{p / 'file'}?mode=ro", uri=True),
    "database of no name": lambda _: sqlite3.connect(""),
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    put(tmp_path / "file", b"evidence")
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # what was refused could not close what it had
@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_the_guard_refuses_before_anything_happens(attempt: str, place: Path) -> None:
    before = hash_tree(place, ctime=True)
    with pytest.raises(GuardError) as refused, read_only():
        ATTEMPTS[attempt](place)
    assert refused.value.failure.code == "guard"
    assert hash_tree(place, ctime=True) == before


def test_reading_is_not_refused(place: Path) -> None:
    with read_only():
        assert (place / "file").read_bytes() == b"evidence"
        os.close(os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK))
        with open(os.devnull, "wb"):
            pass
        with contextlib.closing(sqlite3.connect(":memory:")) as database:
            assert database.execute("SELECT 1").fetchone() == (1,)


def test_what_the_daemons_library_does_when_it_is_loaded_is_not_refused() -> None:
    script = "from symbi_recover.cli.guard import read_only\nwith read_only(): import symbi_recover.read.daemon.engine"
    ended = subprocess.run([sys.executable, "-B", "-c", script], capture_output=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_nothing_is_refused_outside_the_block(place: Path) -> None:
    with read_only():
        pass
    (place / "file").write_bytes(b"changed")


@read_only()
def swallow(place: Path) -> None:
    with contextlib.suppress(BaseException):
        (place / "file").unlink()
    with contextlib.suppress(BaseException):
        (place / "new").mkdir()


@read_only()
def misname(place: Path) -> None:
    try:
        (place / "file").unlink()
    except BaseException as error:
        raise OSError from error


@pytest.mark.parametrize("careless", [swallow, misname])
def test_a_refusal_is_raised_whatever_was_made_of_it(careless: Callable[[Path], None], place: Path) -> None:
    with pytest.raises(GuardError, match=r"tried os\.remove"):
        careless(place)
    with read_only():  # and is forgotten then
        pass


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return small().write(tmp_path / "journal.jsonl")


def careless(journal: Path) -> Callable[..., object]:
    """What a defect could do: leave something beside the evidence, and go on whatever happens."""

    def examine(*_: object, **__: object) -> object:
        with contextlib.suppress(Exception):
            journal.with_name("cache").write_bytes(b"")
        raise AssertionError("the refusal was taken for an ordinary failure")

    return examine


def assert_a_defect(ran: Ran, journal: Path) -> None:
    assert ran.rc == 70
    assert b"a read-only command tried open on " in ran.err
    assert b"guard" in ran.err
    assert CODES["guard"].next.encode() in ran.err
    assert b"Traceback" not in ran.err
    assert [path.name for path in journal.parent.iterdir()] == [journal.name]


def test_a_command_that_trips_the_guard_ends_as_a_defect(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "inspect", careless(journal))
    ran = run("audit", "verify", journal, "--public-key", KEY, "--format", "json")
    assert_a_defect(ran, journal)
    failed = json.loads(ran.out)
    assert (failed["ok"], failed["code"]) == (False, "guard")


def test_a_command_of_the_runtime_ends_as_a_defect_too(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own three exit codes have none for that."""
    monkeypatch.setattr(inspection, "inspect", careless(journal))
    ran = run("audit", "inspect", journal, "--run-id", RUN, "--public-key", KEY)
    assert_a_defect(ran, journal)
    assert ran.out == b""


COMMANDS = {
    "verify": ("audit", "verify", "--public-key", KEY, "--format", "json"),
    "verify, for people": ("audit", "verify", "--public-key", KEY, "--format", "text"),
    "inspect": ("audit", "inspect", "--public-key", KEY, "--run-id", RUN),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("worker", [0, 1])
def test_a_worker_that_trips_the_guard_ends_the_command_as_a_defect(
    worker: int,
    command: str,
    journal: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The defect is in one worker alone, which the plain way would never meet."""
    monkeypatch.setattr(verification, "PARALLEL_FROM", 1)
    monkeypatch.setattr(pieces, "PIECE", 1500)
    here, verify_piece = os.getpid(), pieces._verify_piece

    def faulty(file: object, chain: object, start: int) -> object:
        if os.getpid() != here and start // pieces.PIECE % 2 == worker:
            journal.with_name("cache").write_bytes(b"")
        return verify_piece(file, chain, start)

    monkeypatch.setattr(pieces, "_verify_piece", faulty)
    ran = run(*COMMANDS[command], "--jobs", "2", journal)
    assert_a_defect(ran, journal)
    assert (json.loads(ran.out)["code"] if command == "verify" else ran.out) in ("guard", b"")
    assert capfd.readouterr() == ("", ""), "the worker itself says nothing"
