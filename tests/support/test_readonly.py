"""Each of the three ways of showing that a command only looks is able to fail."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.readonly import assert_traced_read_only, hash_tree, read_only_mount

_OPEN = "import os, socket, fcntl; d = os.open('file', os.O_RDONLY); "

LOOKS = {
    "reads": "print(os.read(d, 9), os.listdir('.'), os.stat('file'), flush=True)",
    "writes to both standard streams": "os.write(1, b'out'); os.write(2, b'err')",
    "uses /dev/null, a pipe and memory": (
        "os.write(os.open('/dev/null', os.O_RDWR), b'x'); r, w = os.pipe(); os.write(w, b'x'); "
        "m = os.memfd_create('m'); os.write(m, b'x'); os.ftruncate(m, 0)"
    ),
    "asks where a lock is without taking it": "fcntl.fcntl(d, fcntl.F_GETFL)",
    "ends what it has started": "import subprocess; p = subprocess.Popen(['cat']); p.kill(); p.wait()",
    "starts a reader": "import subprocess; subprocess.run(['cat', 'file'], check=True)",
}

CHANGES = {
    "opens for writing": "os.open('file', os.O_WRONLY)",
    "opens to append": "os.open('file', os.O_RDWR | os.O_APPEND)",
    "creates": "os.open('new', os.O_RDONLY | os.O_CREAT)",
    "fails to create": "os.open('no/such', os.O_RDONLY | os.O_CREAT)",
    "makes an unnamed file": "os.open('.', os.O_RDWR | os.O_TMPFILE)",
    "renames": "os.rename('file', 'other')",
    "links": "os.link('file', 'other')",
    "links symbolically": "os.symlink('file', 'other')",
    "unlinks": "os.unlink('file')",
    "makes a directory": "os.mkdir('other')",
    "removes a directory": "os.rmdir('folder')",
    "makes a pipe with a name": "os.mkfifo('other')",
    "changes a mode": "os.chmod('file', 0o600)",
    "changes a mode by descriptor": "os.fchmod(d, 0o600)",
    "changes an owner": "os.chown('file', -1, -1)",
    "changes times": "os.utime('file', (1, 1))",
    "changes times by descriptor": "os.utime(d, (1, 1))",
    "truncates": "os.truncate('file', 1)",
    "sets an attribute": "os.setxattr('file', 'user.x', b'1')",
    "locks by flock": "fcntl.flock(d, fcntl.LOCK_SH)",
    "locks by fcntl": "fcntl.lockf(d, fcntl.LOCK_SH)",
    "binds a socket": "socket.socket(socket.AF_UNIX).bind('here')",
    "connects to a socket": "socket.socket(socket.AF_UNIX).connect('listening')",
    "connects to an address": "s = socket.socket(); s.setblocking(False); s.connect_ex(('127.0.0.1', 9))",
    "signals a process": "os.kill(os.getppid(), 0)",
    "signals a group": "os.killpg(os.getpgid(os.getppid()), 0)",
    "signals a thread": "import signal, threading; signal.pthread_kill(threading.get_ident(), 0)",
    "signals by descriptor": "import signal; signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 0)",
    "sends a datagram": "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))",
    "lets a child do it": "import subprocess; subprocess.run(['rm', 'file'])",
    "lets a thread do it": "import threading; t = threading.Thread(target=os.remove, args=('file',)); t.start(); t.join()",
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "file").write_text("content")
    (tmp_path / "folder").mkdir()
    return tmp_path


def _python(code: str) -> list[str]:
    return [sys.executable, "-c", _OPEN + code]


@pytest.mark.parametrize("what", LOOKS)
def test_a_command_that_only_looks_passes(what: str, place: Path) -> None:
    before = hash_tree(place, ctime=True)
    assert_traced_read_only(_python(LOOKS[what]), place, {}, exits={0})
    assert hash_tree(place, ctime=True) == before


@pytest.mark.parametrize("what", CHANGES)
def test_a_command_that_changes_or_tries_to_is_found(what: str, place: Path) -> None:
    with pytest.raises(AssertionError, match="not read-only"):
        assert_traced_read_only(_python(CHANGES[what]), place, {})


def test_a_socket_that_is_allowed_may_be_connected_to_and_no_other(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place / "listening"))
        listening.listen()
        code = _python(CHANGES["connects to a socket"])
        assert_traced_read_only(code, place, {}, sockets=["listening"], exits={0})
        with pytest.raises(AssertionError, match="not allowed"):
            assert_traced_read_only(code, place, {}, sockets=["other"])


def test_an_exit_code_that_is_not_expected_is_found(place: Path) -> None:
    with pytest.raises(AssertionError, match="ended with 7"):
        assert_traced_read_only(_python("raise SystemExit(7)"), place, {}, exits={0, 1})


@pytest.mark.parametrize(
    "change",
    [
        lambda place: (place / "file").write_text("another"),
        lambda place: (place / "file").chmod(0o611),
        lambda place: os.utime(place / "file", ns=(1, 1)),
        lambda place: os.utime(place, ns=(1, 1)),
        lambda place: (place / "new").touch(),
        lambda place: (place / "folder").rmdir(),
        lambda place: os.link(place / "file", place / "second"),
        lambda place: ((place / "link").unlink(), (place / "link").symlink_to("elsewhere")),
    ],
    ids=[
        "bytes",
        "mode",
        "mtime",
        "mtime of the root",
        "new name",
        "name gone",
        "second link",
        "link target",
    ],
)
def test_every_change_of_a_tree_shows_in_its_hash(change, place: Path) -> None:
    (place / "link").symlink_to("file")
    os.mkfifo(place / "pipe")
    before = hash_tree(place)
    assert hash_tree(place) == before
    change(place)
    assert hash_tree(place) != before


def test_same_bytes_in_another_inode_are_a_change(place: Path) -> None:
    before = hash_tree(place)["file"]
    (place / "copy").write_text("content")
    os.utime(place / "copy", ns=(before.mtime_ns, before.mtime_ns))
    (place / "copy").rename(place / "file")
    after = hash_tree(place)["file"]
    assert after.content == before.content
    assert after != before


@pytest.mark.root
def test_a_read_only_mount_refuses_writing_and_is_taken_away(place: Path) -> None:
    with read_only_mount(place) as closed:
        with pytest.raises(OSError, match="Read-only file system"):
            (closed / "new").touch()
        assert (closed / "file").read_text() == "content"
        tried = subprocess.run(["rm", str(closed / "file")], capture_output=True, check=False)
        assert tried.returncode != 0
    (place / "new").touch()
    assert str(place) not in Path("/proc/self/mountinfo").read_text()


@pytest.mark.root
def test_a_read_only_mount_is_taken_away_after_an_error(place: Path) -> None:
    with pytest.raises(ValueError, match="inside"), read_only_mount(place):
        raise ValueError("inside")
    assert str(place) not in Path("/proc/self/mountinfo").read_text()
