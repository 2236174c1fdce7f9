"""Which socket listens on a file: the kernel's dump, parsed and live."""

import errno
import os
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbi_recover.read.daemon import sockets
from symbi_recover.read.daemon.sockets import LISTENING, NoListener, UnixSocket
from symbi_recover.read.evidence.kernel import CannotKnow, Why
from symbi_recover.read.evidence.mounts import FileKey, Locality
from tests.read.live import may_unshare

DEVICE = os.makedev(0xFE, 0)
HOME = str(Path(sockets.__file__).parents[3])


def attribute(kind: int, value: bytes) -> bytes:
    data = struct.pack("=HH", 4 + len(value), kind) + value
    return data + b"\0" * (-len(data) % 4)


def message(kind: int, body: bytes, flags: int = 2) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body + b"\0" * (-len(body) % 4)


def row(*attributes: bytes, state: int = 10, inode: int = 77, family: int = 1) -> bytes:
    return message(20, struct.pack("=BBBxIII", family, 1, state, inode, 0, 0) + b"".join(attributes))


NAMED = row(
    attribute(0, b"/run/docker.sock\0"),
    attribute(1, struct.pack("=II", 5, 0xFE << 20)),
    attribute(4, struct.pack("=II", 3, 128)),
)
DONE = message(3, struct.pack("=i", 0))


def test_a_listener_is_parsed_with_name_file_and_queue():
    dump = sockets.parse_dump(NAMED + DONE)

    assert dump.done
    assert not dump.malformed
    assert dump.sockets == (UnixSocket(77, 1, 10, b"/run/docker.sock", 5, 0xFE << 20, 3),)


def test_an_abstract_name_keeps_its_first_nul_and_an_unnamed_socket_has_none():
    dump = sockets.parse_dump(row(attribute(0, b"\0abc")) + row())

    assert [one.name for one in dump.sockets] == [b"\0abc", None]
    assert [one.waiting for one in dump.sockets] == [None, None]


@pytest.mark.parametrize("kind", [2, 3])
def test_an_error_of_the_kernel_is_its_number(kind: int):
    assert sockets.parse_dump(message(kind, struct.pack("=i", -errno.ENOENT))).error == errno.ENOENT


def test_an_interrupted_dump_says_so():
    assert sockets.parse_dump(message(3, b"\0\0\0\0", flags=0x12)).interrupted


@pytest.mark.parametrize(
    "data",
    [NAMED[:-1], NAMED + b"x", row(family=2), message(20, b"short"), struct.pack("=IHHII", 3, 20, 0, 0, 0)],
)
def test_a_message_that_does_not_fit_is_counted(data: bytes):
    assert sockets.parse_dump(data).malformed == 1


@given(st.binary(max_size=200))
def test_no_bytes_make_the_parsers_raise(data: bytes):
    sockets.parse_dump(data)
    sockets.parse_dump(message(20, data))
    sockets.parse_dump(row(data))


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=4))
def test_damaged_messages_never_make_the_parser_raise(changes: list[tuple[int, int]]):
    data = bytearray(NAMED + DONE)
    for place, value in changes:
        data[place % len(data)] = value
    sockets.parse_dump(bytes(data))


def key(device: int = DEVICE, inode: int = 5, **kernel: int) -> FileKey:
    return FileKey(
        device, inode, kernel.get("kernel_device"), kernel.get("kernel_inode"), b"ext4", Locality.LOCAL
    )


LISTENER = UnixSocket(77, 1, LISTENING, b"/x", 5, 0xFE << 20, 0)


def test_the_listener_is_found_by_file_not_by_name():
    replaced = UnixSocket(76, 1, LISTENING, b"/x", 4, 0xFE << 20, 0)
    accepted = UnixSocket(78, 1, 1, b"/x", 5, 0xFE << 20, 0)

    assert sockets.find_listener((replaced, accepted, LISTENER), key()) == LISTENER


def test_the_same_inode_on_another_device_is_another_file():
    assert sockets.find_listener((LISTENER,), key(os.makedev(0xFE, 1))) == NoListener()


def test_the_kernels_own_numbers_count_too():
    subvolume = key(os.makedev(0, 50), 9, kernel_device=DEVICE, kernel_inode=5)
    assert sockets.find_listener((LISTENER,), subvolume) == LISTENER


def test_only_the_low_half_of_an_inode_is_compared():
    assert sockets.find_listener((LISTENER,), key(inode=5 + (1 << 32))) == LISTENER


def test_two_listeners_on_one_file_are_ambiguous():
    other = UnixSocket(79, 1, LISTENING, b"/x", 5, 0xFE << 20, 0)
    answer = sockets.find_listener((LISTENER, other), key())

    assert isinstance(answer, CannotKnow)
    assert answer.why is Why.AMBIGUOUS


@contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(8)
        yield listener


def ask(path: Path) -> UnixSocket:
    answer = sockets.ask_listener(str(path))
    if isinstance(answer, CannotKnow) and answer.why is Why.UNSUPPORTED:
        pytest.skip("this kernel cannot list Unix sockets")
    assert isinstance(answer, UnixSocket), answer
    return answer


def test_a_live_listener_is_found_and_its_queue_is_counted(tmp_path: Path):
    path = tmp_path / "s"
    with listening(path) as listener, ExitStack() as stack:
        found = ask(path)
        assert found.inode == os.fstat(listener.fileno()).st_ino
        assert found.name == bytes(path)
        assert found.waiting == 0
        for expected in (1, 2, 3):
            client = stack.enter_context(socket.socket(socket.AF_UNIX))
            client.connect(str(path))
            assert ask(path).waiting == expected
        # A client that is gone still waits: its request may be in the queue.
        client.close()
        assert ask(path).waiting == 3
        stack.enter_context(listener.accept()[0])
        assert ask(path).waiting == 2


def test_links_and_renamed_files_lead_to_the_listener_of_the_file(tmp_path: Path):
    path, moved, link = tmp_path / "s", tmp_path / "moved", tmp_path / "link"
    with listening(path) as listener:
        path.rename(moved)
        link.symlink_to(moved)
        number = os.fstat(listener.fileno()).st_ino
        assert ask(link).inode == ask(moved).inode == number
        assert ask(moved).name == bytes(path)
        # A new listener takes the old name: the file decides.
        with listening(path) as second:
            assert ask(path).inode == os.fstat(second.fileno()).st_ino
            assert ask(moved).inode == number


def test_a_socket_file_that_nobody_listens_on_has_no_listener(tmp_path: Path):
    path = tmp_path / "s"
    with listening(path):
        ask(path)

    assert sockets.ask_listener(str(path)) == NoListener()


def test_what_is_no_socket_has_no_listener_and_what_is_missing_no_answer(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"")

    assert sockets.ask_listener(str(tmp_path / "file")) == NoListener()
    answer = sockets.ask_listener(str(tmp_path / "none"))
    assert isinstance(answer, CannotKnow)
    assert answer.why is Why.MISSING


def test_accepted_connections_are_listed_when_asked_for(tmp_path: Path):
    path = tmp_path / "s"
    with listening(path) as listener, socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        with listener.accept()[0] as accepted:
            every = sockets.read_unix_sockets(0xFFFFFFFF)
            if isinstance(every, CannotKnow):
                pytest.skip("this kernel cannot list Unix sockets")
            assert isinstance(every, tuple)
            (found,) = [one for one in every if one.inode == os.fstat(accepted.fileno()).st_ino]
    assert (found.state, found.name) == (1, bytes(path))


def test_a_kernel_without_the_dump_is_unsupported(monkeypatch: pytest.MonkeyPatch):
    dump = sockets.parse_dump(message(2, struct.pack("=i", -errno.ENOENT)))
    monkeypatch.setattr(sockets, "_dump_once", lambda *_: dump)

    answer = sockets.read_unix_sockets()
    assert isinstance(answer, CannotKnow)
    assert answer.why is Why.UNSUPPORTED


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (message(2, struct.pack("=i", -errno.EPERM)), Why.DENIED),
        (NAMED[:-1] + DONE, Why.MALFORMED),
        (message(3, b"\0\0\0\0", flags=0x12), Why.UNSTABLE),
    ],
)
def test_a_dump_that_cannot_be_used_says_why(monkeypatch: pytest.MonkeyPatch, data: bytes, why: Why):
    monkeypatch.setattr(sockets, "_dump_once", lambda *_: sockets.parse_dump(data))

    answer = sockets.read_unix_sockets()
    assert isinstance(answer, CannotKnow)
    assert answer.why is why


def test_no_netlink_at_all_is_unsupported(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.EPROTONOSUPPORT, "")

    monkeypatch.setattr(sockets, "_dump_once", refuse)
    answer = sockets.read_unix_sockets()
    assert isinstance(answer, CannotKnow)
    assert answer.why is Why.UNSUPPORTED


INSIDE = """
import os, sys, threading
sys.path.insert(0, sys.argv[3])
from symbi_recover.read.daemon import sockets
before = os.readlink("/proc/self/ns/net")
found = sockets.ask_listener(sys.argv[1], int(sys.argv[2]))
alone = sockets.ask_listener(sys.argv[1])
print(found.inode, sockets.shares_network(int(sys.argv[2])), type(alone).__name__)
assert before == os.readlink("/proc/self/ns/net") == os.readlink("/proc/thread-self/ns/net")
assert threading.active_count() == 1
if len(sys.argv) > 4:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
    print(sockets.ask_listener(sys.argv[1], int(sys.argv[2])).why)
"""


@pytest.mark.root
def test_a_listener_in_another_network_namespace_is_found_beside_its_owner(tmp_path: Path):
    if not may_unshare("-n"):
        pytest.skip("needs uid 0 and network namespaces")
    path = tmp_path / "s"
    with listening(path) as listener:
        assert sockets.ask_listener(str(path), os.getpid()) == ask(path)
        command = ["unshare", "-n", sys.executable, "-c", INSIDE, str(path), str(os.getpid()), HOME]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        number = os.fstat(listener.fileno()).st_ino

    assert result.stdout.split() == [str(number), "False", "NoListener"]


@pytest.mark.root
def test_a_network_namespace_that_may_not_be_entered_is_said_to_be_denied():
    if not may_unshare("-n"):
        pytest.skip("needs uid 0 and network namespaces")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        path = Path(folder) / "s"
        with listening(path):
            ask(path)
            command = [
                "unshare",
                "-n",
                sys.executable,
                "-c",
                INSIDE,
                str(path),
                str(os.getpid()),
                HOME,
                "drop",
            ]
            result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    assert result.stdout.split()[-1] == "denied"


BOUND = """
import os, subprocess, sys
sys.path.insert(0, sys.argv[2])
from symbi_recover.read.daemon import sockets
open(sys.argv[1] + "/bound", "w").close()
subprocess.run(["mount", "--bind", sys.argv[1] + "/s", sys.argv[1] + "/bound"], check=True)
print(sockets.ask_listener(sys.argv[1] + "/bound").inode)
"""


@pytest.mark.root
def test_a_bind_mounted_socket_leads_to_its_listener(tmp_path: Path):
    if not may_unshare("-m"):
        pytest.skip("needs uid 0 and mount namespaces")
    with listening(tmp_path / "s") as listener:
        number = os.fstat(listener.fileno()).st_ino
        command = ["unshare", "-m", sys.executable, "-c", BOUND, str(tmp_path), HOME]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    assert int(result.stdout) == number


def test_a_name_with_a_line_break_is_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    forged = "s\n00: 00000002 00000000 00010000 0001 01 4242 x"
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(forged)
        listener.listen()
        dumped = ask(tmp_path / forged)

    assert dumped.name == forged.encode()
