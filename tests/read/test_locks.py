"""Who holds a lock, read from the kernel's list and from a live holder."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbi_recover.read.evidence import locks, mounts
from symbi_recover.read.evidence.kernel import CannotKnow, Why
from symbi_recover.read.evidence.locks import LockMode, LockState
from symbi_recover.read.evidence.mounts import FileKey, Locality
from tests.read.live import child, may_unshare

DEVICE = os.makedev(0xFE, 0x10001)
WRITE = b"1: FLOCK  ADVISORY  WRITE 1419 fe:10001:753934 0 EOF\n"
KEY = FileKey(DEVICE, 753934, DEVICE, 753934, b"ext4", Locality.LOCAL)
HOLD = """
import fcntl, sys
mode, path = sys.argv[1:]
stream = open(path, "r+")
how = {"WRITE": fcntl.LOCK_EX, "READ": fcntl.LOCK_SH}
fcntl.lockf(stream, fcntl.LOCK_EX) if mode == "POSIX" else fcntl.flock(stream, how[mode])
print("held", flush=True)
for line in sys.stdin:
    stream.close()
    print("released", flush=True)
"""


def judge(data: bytes, key: FileKey = KEY) -> locks.LockAnswer:
    table = locks.parse_locks(data)
    assert table.malformed == 0
    return locks.judge_locks(table, key)


def test_a_row_is_parsed_with_hexadecimal_device_and_decimal_inode():
    (row,) = locks.parse_locks(WRITE).rows
    assert row == locks.LockRow("FLOCK", "WRITE", 1419, DEVICE, 753934, waiting=False)


def test_device_and_inode_of_stat_make_it_held():
    answer = judge(WRITE)

    assert answer.state is LockState.HELD
    assert answer.holders == (locks.LockHolder(1419, LockMode.WRITE, exact=True),)
    assert answer.exclusive


def test_shared_holders_are_all_named():
    answer = judge(
        b"1: FLOCK  ADVISORY  READ  5 fe:10001:753934 0 EOF\n2: FLOCK  ADVISORY  READ  6 fe:10001:753934 0 EOF\n"
    )

    assert [holder.pid for holder in answer.holders] == [5, 6]
    assert not answer.exclusive


@pytest.mark.parametrize("kind", [b"POSIX ", b"OFDLCK", b"LEASE "])
def test_other_kinds_exclude_nobody_and_are_counted(kind: bytes):
    answer = judge(WRITE.replace(b"FLOCK ", kind))

    assert answer.state is LockState.FREE
    assert answer.record_locks == 1


def test_a_waiting_request_holds_nothing():
    waiting = b"1: -> FLOCK  ADVISORY  WRITE 77 fe:10001:753934 0 EOF\n"

    assert judge(waiting) == locks.LockAnswer(LockState.FREE, (), 1, 0)
    answer = judge(WRITE + waiting)
    assert ([holder.pid for holder in answer.holders], answer.waiting) == ([1419], 1)


@pytest.mark.parametrize("pid", [b"0", b"-1"])
def test_a_holder_that_cannot_be_named_still_holds(pid: bytes):
    answer = judge(WRITE.replace(b"1419", pid))

    assert answer.state is LockState.HELD
    assert answer.holders[0].pid is None


def test_another_inode_is_another_file():
    assert judge(WRITE.replace(b"753934", b"753935")).state is LockState.FREE


def test_the_super_blocks_device_makes_it_probable():
    subvolume = FileKey(os.makedev(0, 50), 753934, DEVICE, 753934, b"btrfs", Locality.LOCAL)
    assert judge(WRITE, subvolume).state is LockState.PROBABLE


def test_an_inode_that_only_the_kernel_uses_makes_it_probable():
    overlay = FileKey(os.makedev(0, 50), 2, DEVICE, 753934, b"overlay", Locality.LOCAL)
    assert judge(WRITE, overlay).state is LockState.PROBABLE


def test_a_third_device_is_another_file_when_the_super_block_is_known():
    key = FileKey(os.makedev(0, 50), 753934, os.makedev(0, 51), 753934, b"btrfs", Locality.LOCAL)
    assert judge(WRITE, key).state is LockState.FREE


def test_without_the_super_block_the_inode_alone_makes_it_probable():
    key = FileKey(os.makedev(0, 50), 753934, None, None, None, Locality.OTHER)
    assert judge(WRITE, key).state is LockState.PROBABLE


def test_a_lock_without_a_file_matches_nothing():
    key = FileKey(0, 0, None, None, None, Locality.OTHER)
    assert judge(b"1: FLOCK  ADVISORY  WRITE 5 <none>:0 0 EOF\n", key).state is LockState.FREE


@pytest.mark.parametrize(
    "line",
    [
        b"1: FLOCK",
        WRITE.replace(b"1419", b"x"),
        WRITE.replace(b"fe:", b"zz:"),
        WRITE.replace(b":753934", b""),
        WRITE.replace(b"FLOCK", b"FL\xc3\xb6"),
        WRITE.replace(b"1:", b"x:"),
        WRITE.replace(b"753934", b"9" * 30),
        b"\x00",
    ],
)
def test_a_line_that_does_not_fit_is_counted(line: bytes):
    assert locks.parse_locks(line) == locks.LockTable((), 1)


@given(st.binary(max_size=300))
def test_no_bytes_make_the_parser_raise(data: bytes):
    locks.judge_locks(locks.parse_locks(data), KEY)


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 255)), max_size=4), st.integers(0, 100))
def test_damaged_rows_never_make_the_parser_raise(changes: list[tuple[int, int]], cut: int):
    line = bytearray(WRITE)
    for place, value in changes:
        line[place % len(line)] = value
    locks.judge_locks(locks.parse_locks(bytes(line)[: len(line) - cut % len(line)]), KEY)


def ask(path: Path) -> locks.LockAnswer:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return locks.ask_lock(descriptor)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("mode", ["WRITE", "READ"])
def test_a_live_holder_is_named_until_it_lets_go(tmp_path: Path, mode: str):
    path = tmp_path / "supervisor.lock"
    path.write_bytes(b"")
    with child(HOLD, mode, str(path)) as holder:
        assert holder.answer() == "held"
        answer = ask(path)
        assert answer.state is LockState.HELD
        assert [(found.pid, found.mode) for found in answer.holders] == [(holder.pid, LockMode(mode))]
        assert holder.ask("let go") == "released"
        assert ask(path).state in (LockState.FREE, LockState.UNKNOWN)
        assert not ask(path).holders


def test_a_live_record_lock_excludes_nobody(tmp_path: Path):
    path = tmp_path / "supervisor.lock"
    path.write_bytes(b"")
    with child(HOLD, "POSIX", str(path)) as holder:
        assert holder.answer() == "held"
        answer = ask(path)
        assert not answer.holders
        assert answer.record_locks == 1


def test_asking_takes_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "supervisor.lock"
    path.write_bytes(b"12345")

    def refuse(*arguments: object) -> None:
        raise AssertionError(arguments)

    monkeypatch.setattr(fcntl, "flock", refuse)
    monkeypatch.setattr(fcntl, "lockf", refuse)
    assert not ask(path).holders


def ask_fake(
    folder: Path, *, rows: bytes | None = b"", kind: bytes = b"ext4", namespace: int = 4026531836
) -> locks.LockAnswer:
    """Ask about this very file, with a proc that is laid out for the question."""
    me = folder / "self"
    (me / "ns").mkdir(parents=True)
    (me / "fdinfo").mkdir()
    proc = b"2 1 0:5 / %s rw - proc proc rw\n" % os.fsencode(folder)
    (me / "mountinfo").write_bytes(b"1 0 8:1 / / rw - %s a rw\n" % kind + proc)
    (me / "ns" / "pid").symlink_to(f"pid:[{namespace}]")
    (me / "ns" / "user").symlink_to("user:[4026531837]")
    pid = os.getpid()
    (me / "status").write_text(f"Tgid:\t{pid}\nUid:\t0\t0\t0\t0\nNSpid:\t{pid}\nCapEff:\t0\n")
    if rows is not None:
        (folder / "locks").write_bytes(rows)
    with Path(__file__).open("rb") as stream:
        (me / "fdinfo" / str(stream.fileno())).write_bytes(b"mnt_id:\t1\n")
        return locks.ask_lock(stream.fileno(), str(folder))


def test_free_is_said_where_the_list_is_whole(tmp_path: Path):
    assert ask_fake(tmp_path).state is LockState.FREE


@pytest.mark.parametrize(
    ("kind", "rows", "namespace", "why"),
    [
        (b"nfs4", b"", 4026531836, Why.FILE_SYSTEM),
        (b"fuse.sshfs", b"", 4026531836, Why.FILE_SYSTEM),
        (b"ext4", b"damaged\n", 4026531836, Why.MALFORMED),
        (b"ext4", b"", 4026532178, Why.OTHER_PID_NAMESPACE),
        (b"ext4", None, 4026531836, Why.MISSING),
    ],
)
def test_free_is_not_said_where_a_lock_could_be_unlisted(
    tmp_path: Path, kind: bytes, rows: bytes | None, namespace: int, why: Why
):
    answer = ask_fake(tmp_path, rows=rows, kind=kind, namespace=namespace)

    assert answer.state is LockState.UNKNOWN
    assert answer.because is not None
    assert answer.because.why is why


def test_a_listed_holder_counts_also_on_a_network_file_system(tmp_path: Path):
    rows = b"1: FLOCK  ADVISORY  WRITE 5 08:01:%d 0 EOF\n" % Path(__file__).stat().st_ino
    assert ask_fake(tmp_path, rows=rows, kind=b"nfs").holders


INSIDE = """
import os, sys
sys.path.insert(0, sys.argv[2])
from symbi_recover.read.evidence import locks
answer = locks.ask_lock(os.open(sys.argv[1], os.O_RDONLY))
print(answer.state, answer.because and answer.because.why, [holder.pid for holder in answer.holders])
"""


@pytest.mark.root
def test_inside_another_pid_namespace_a_lock_from_outside_is_never_free(tmp_path: Path):
    if not may_unshare("-p", "-f", "--mount-proc"):
        pytest.skip("needs uid 0 and PID namespaces")
    path = tmp_path / "supervisor.lock"
    path.write_bytes(b"")
    home = str(Path(mounts.__file__).parents[3])
    command = ["unshare", "-p", "-f", "--mount-proc", sys.executable, "-c", INSIDE, str(path), home]
    with child(HOLD, "WRITE", str(path)) as holder:
        assert holder.answer() == "held"
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    # Kernels either hide the row or print 0 for the holder.
    assert result.stdout.strip() in ("unknown other_pid_namespace []", "held None [None]")


def test_a_closed_descriptor_is_unknown(tmp_path: Path):
    descriptor = os.open(tmp_path, os.O_RDONLY)
    os.close(descriptor)

    answer = locks.ask_lock(descriptor)
    assert answer.state is LockState.UNKNOWN
    assert isinstance(answer.because, CannotKnow)
