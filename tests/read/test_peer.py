"""Peers and the census, with real children that listen, accept and hold connections."""

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbi_recover.read.daemon import peer
from symbi_recover.read.daemon.peer import Census, Peer
from symbi_recover.read.evidence import processes
from symbi_recover.read.evidence.kernel import CannotKnow, Gone, Why
from tests.read.live import Child, child, may_unshare

HOME = str(Path(peer.__file__).parents[3])
# An engine in small: it listens, accepts on command, and answers each command with a line.
ENGINE = """
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen(16)
other = socket.socket(socket.AF_UNIX)
other.bind(sys.argv[1] + ".other")
other.listen(16)
noise = [*socket.socketpair(), socket.socket(), socket.socket(type=socket.SOCK_DGRAM)]
if len(sys.argv) > 2:
    os.rename(sys.argv[1], sys.argv[2])
held = []
print(os.fstat(listener.fileno()).st_ino, flush=True)
for line in sys.stdin:
    command = line.strip()
    if command == "accept":
        held.append(listener.accept()[0])
    elif command == "accept other":
        noise.append(other.accept()[0])
    elif command == "duplicate":
        noise.append(held[-1].dup())
    elif command == "listen again":
        os.unlink(sys.argv[1])
        noise.append(socket.socket(socket.AF_UNIX))
        noise[-1].bind(sys.argv[1])
        noise[-1].listen(16)
    elif command == "shut":
        held[-1].shutdown(socket.SHUT_WR)
    elif command == "close":
        held.pop().close()
    print(len(held), held[-1].getblocking() if held else None, flush=True)
"""


@contextmanager
def engine(path: Path, *arguments: str) -> Iterator[tuple[Child, int, int]]:
    """Start one; gives the child, its start ticks, and its listener's inode."""
    with child(ENGINE, str(path), *arguments) as process:
        inode = int(process.answer())
        stat = processes.read_identity(process.pid)
        assert isinstance(stat, processes.ProcessStat)
        yield process, stat.start_ticks, inode


def client(stack: ExitStack, path: Path) -> socket.socket:
    made = stack.enter_context(socket.socket(socket.AF_UNIX))
    made.connect(str(path))
    return made


def count(process: Child, ticks: int, inode: int) -> int:
    answer = peer.count_connections(process.pid, ticks, inode)
    if isinstance(answer, CannotKnow) and answer.why in (Why.DENIED, Why.UNSUPPORTED):
        pytest.skip(f"this account or kernel cannot duplicate descriptors: {answer.detail}")
    assert isinstance(answer, Census), answer
    return answer.connections


def test_accepted_connections_are_counted_and_waiting_ones_are_not(tmp_path: Path):
    path = tmp_path / "s"
    with engine(path) as (process, ticks, inode), ExitStack() as stack:
        assert count(process, ticks, inode) == 0
        client(stack, path)
        client(stack, path)
        assert count(process, ticks, inode) == 0
        process.ask("accept")
        assert count(process, ticks, inode) == 1
        process.ask("accept")
        assert count(process, ticks, inode) == 2
        process.ask("close")
        assert count(process, ticks, inode) == 1


def test_a_connection_is_counted_until_the_engine_lets_go_of_it(tmp_path: Path):
    path = tmp_path / "s"
    with engine(path) as (process, ticks, inode), ExitStack() as stack:
        made = client(stack, path)
        process.ask("accept")
        made.shutdown(socket.SHUT_WR)
        assert count(process, ticks, inode) == 1
        process.ask("shut")
        assert count(process, ticks, inode) == 1
        made.close()
        assert count(process, ticks, inode) == 1
        process.ask("close")
        assert count(process, ticks, inode) == 0


def test_connections_of_another_listener_and_other_sockets_are_not_counted(tmp_path: Path):
    path = tmp_path / "s"
    with engine(path) as (process, ticks, inode), ExitStack() as stack:
        client(stack, tmp_path / "s.other")
        process.ask("accept other")
        assert count(process, ticks, inode) == 0


def test_a_second_listener_of_the_same_name_is_no_connection(tmp_path: Path):
    with engine(tmp_path / "s") as (process, ticks, inode):
        process.ask("listen again")
        assert count(process, ticks, inode) == 0


def test_two_descriptors_of_one_connection_are_one(tmp_path: Path):
    path = tmp_path / "s"
    with engine(path) as (process, ticks, inode), ExitStack() as stack:
        client(stack, path)
        process.ask("accept")
        process.ask("duplicate")
        assert count(process, ticks, inode) == 1
        process.ask("close")
        assert count(process, ticks, inode) == 1


def test_a_renamed_socket_file_does_not_hide_a_connection(tmp_path: Path):
    bound, moved, link = tmp_path / "bound", tmp_path / "moved", tmp_path / "link"
    link.symlink_to(moved)
    with engine(bound, str(moved)) as (process, ticks, inode), ExitStack() as stack:
        client(stack, link)
        process.ask("accept")
        assert count(process, ticks, inode) == 1
        answer = peer.count_connections(process.pid, ticks, inode)

    assert isinstance(answer, Census)
    assert answer.name == bytes(bound)


def test_the_census_leaves_the_engines_descriptors_as_they_are(tmp_path: Path):
    path = tmp_path / "s"
    with engine(path) as (process, ticks, inode), ExitStack() as stack:
        made = client(stack, path)
        process.ask("accept")
        before = processes.read_descriptors(process.pid)
        ours = processes.read_descriptors(os.getpid())
        assert count(process, ticks, inode) == 1
        assert processes.read_descriptors(process.pid) == before
        assert processes.read_descriptors(os.getpid()) == ours
        assert process.ask("look") == "1 True"
        # A shutdown would show as an end of data on the other side.
        made.setblocking(False)
        with pytest.raises(BlockingIOError):
            made.recv(1)


def test_a_default_timeout_is_refused_since_it_would_reach_the_engine(tmp_path: Path):
    with engine(tmp_path / "s") as (process, ticks, inode):
        socket.setdefaulttimeout(1)
        try:
            answer = peer.count_connections(process.pid, ticks, inode)
        finally:
            socket.setdefaulttimeout(None)

    assert isinstance(answer, CannotKnow)
    assert answer.why is Why.FAILED


def test_another_start_or_a_process_that_is_gone_is_not_the_engine(tmp_path: Path):
    with engine(tmp_path / "s") as (process, ticks, inode):
        answers = [peer.count_connections(process.pid, ticks + 1, inode)]
    answers.append(peer.count_connections(process.pid, ticks, inode))

    for answer in answers:
        assert isinstance(answer, CannotKnow)
        assert answer.why is Why.PROCESS_CHANGED


def test_an_ended_engine_that_nobody_reaped_does_not_count_as_quiet(tmp_path: Path):
    with engine(tmp_path / "s") as (process, ticks, inode):
        process.process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        answer = peer.count_connections(process.pid, ticks, inode)

    assert isinstance(answer, CannotKnow)
    assert answer.why is Why.PROCESS_CHANGED


def test_a_number_counted_while_the_engine_ended_is_thrown_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with engine(tmp_path / "s") as (process, ticks, inode):

        def count_then_end(*_arguments: object) -> Census:
            process.process.kill()
            process.process.wait()
            return Census(0, b"s", 1, 0)

        monkeypatch.setattr(peer, "_count", count_then_end)
        answer = peer.count_connections(process.pid, ticks, inode)

    assert isinstance(answer, CannotKnow)
    assert answer.why in (Why.PROCESS_CHANGED, Why.UNSUPPORTED)


def test_a_process_without_the_listener_gives_no_number(tmp_path: Path):
    with engine(tmp_path / "s") as (process, ticks, inode):
        answer = peer.count_connections(process.pid, ticks, inode + 1_000_000)

    assert isinstance(answer, CannotKnow)
    assert answer.why is Why.MISSING


def test_a_descriptor_that_is_no_listener_is_not_taken_for_one(tmp_path: Path):
    path = tmp_path / "s"
    with engine(path) as (process, ticks, _), ExitStack() as stack:
        client(stack, path)
        process.ask("accept")
        listed = processes.read_descriptors(process.pid)
        assert isinstance(listed, tuple)
        last = [d.target for d in listed if isinstance(d.target, bytes) and d.target.startswith(b"socket:[")][
            -1
        ]
        answer = peer.count_connections(process.pid, ticks, int(last[8:-1]))

    assert isinstance(answer, CannotKnow)
    assert answer.why in (Why.UNSTABLE, Why.DENIED, Why.UNSUPPORTED)


def test_a_descriptor_that_closes_between_listing_and_asking_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "s"
    with engine(path) as (process, ticks, inode), ExitStack() as stack:
        client(stack, path)
        process.ask("accept")
        assert count(process, ticks, inode) == 1

        def read_then_close(pid: int, proc: str) -> object:
            listed = processes.read_descriptors(pid, proc)
            process.ask("close")
            return listed

        monkeypatch.setattr(peer, "read_descriptors", read_then_close)
        answer = peer.count_connections(process.pid, ticks, inode)

    assert isinstance(answer, Census)
    assert (answer.connections, answer.closed_meanwhile) == (0, 1)


FOREIGN = """
import socket, sys
made = socket.socket(socket.AF_UNIX)
made.connect(sys.argv[1])
print("connected", flush=True)
sys.stdin.read()
"""


@pytest.mark.root
def test_a_client_from_another_network_namespace_is_counted(tmp_path: Path):
    if not may_unshare("-n"):
        pytest.skip("needs uid 0 and network namespaces")
    path = tmp_path / "s"
    with (
        engine(path) as (process, ticks, inode),
        child(FOREIGN, str(path), prefix=("unshare", "-n")) as foreign,
    ):
        assert foreign.answer() == "connected"
        process.ask("accept")
        assert count(process, ticks, inode) == 1


POWERLESS = """
import sys
sys.path.insert(0, sys.argv[4])
from symbi_recover.read.daemon import peer
print(peer.count_connections(*map(int, sys.argv[1:4])).why, peer.holds_socket(int(sys.argv[1]), 1).why)
"""


@pytest.mark.root
def test_root_without_the_capability_gets_denied_and_not_zero(tmp_path: Path):
    drop = ["setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace"]
    if os.geteuid() != 0 or subprocess.run([*drop, "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs uid 0 and setpriv")
    with engine(tmp_path / "s") as (process, ticks, inode):
        numbers = [str(number) for number in (process.pid, ticks, inode)]
        command = [*drop, sys.executable, "-c", POWERLESS, *numbers, HOME]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    assert result.stdout.strip() == "denied denied"


def test_the_holder_of_a_socket_is_told_from_others(tmp_path: Path):
    with engine(tmp_path / "s") as (process, _, inode):
        assert peer.holds_socket(process.pid, inode) is True
        assert peer.holds_socket(os.getpid(), inode) is False
    assert peer.holds_socket(process.pid, inode) == Gone(process.pid)


def test_the_peer_of_a_connection_is_the_one_that_listens(tmp_path: Path):
    path = tmp_path / "s"
    with engine(path) as (process, _, _), ExitStack() as stack:
        assert peer.peer_of(client(stack, path)) == Peer(process.pid, os.getuid(), os.getgid())


def test_a_socket_without_a_peer_or_of_another_family_is_no_answer():
    with socket.socket(socket.AF_UNIX) as lonely, socket.socket() as internet:
        for asked, why in ((lonely, Why.MISSING), (internet, Why.UNSUPPORTED)):
            answer = peer.peer_of(asked)
            assert isinstance(answer, CannotKnow)
            assert answer.why is why
    assert isinstance(peer.peer_of(lonely), CannotKnow)


def test_a_peer_without_a_number_is_in_another_namespace():
    answer = peer.parse_credentials(struct.pack("=iII", 0, 0, 0))

    assert isinstance(answer, CannotKnow)
    assert answer.why is Why.OTHER_PID_NAMESPACE


@given(st.binary(max_size=20))
def test_no_bytes_make_the_parser_raise(data: bytes):
    peer.parse_credentials(data)


def test_a_pidfd_is_held_or_the_reason_is_given():
    with peer.pidfd_of(os.getpid()) as held:
        assert isinstance(held, int)
        duplicated = peer.duplicate(held, 10_000_000)
    assert isinstance(duplicated, CannotKnow)
    assert duplicated.why in (Why.MISSING, Why.UNSUPPORTED)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(held)
    with peer.pidfd_of(1 << 23) as none:
        assert none == Gone(1 << 23)
    with peer.pidfd_of(-1) as impossible:
        assert isinstance(impossible, CannotKnow)
    with peer.pidfd_of(1 << 70) as beyond:
        assert isinstance(beyond, CannotKnow)
