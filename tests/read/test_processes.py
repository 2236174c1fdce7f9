"""Processes as /proc shows them: parsing, identity, ended ones, and ones that cannot be read."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbi_recover.read.evidence import processes
from symbi_recover.read.evidence.kernel import CannotKnow, Gone, Why
from symbi_recover.read.evidence.processes import Observation, ProcessStat, ProcessStatus
from tests.read.live import child, may_unshare

TAIL = b"S 1 10 10 0 -1 4194560 9 8 7 6 5 4 3 2 20 0 3 0 64737 3133440 382 18446744073709551615 0\n"
STATUS = b"Name:\tx\nTgid:\t7\nPid:\t7\nUid:\t1\t2\t3\t4\nNSpid:\t7\t1\nCapEff:\t000001fffeffffff\n"
WAIT = """
import sys
print("ready", flush=True)
sys.stdin.read()
"""
FIRST_THREAD_ENDS = """
import ctypes, os, sys, threading
def stay():
    with open(f"/proc/self/task/{os.getpid()}/stat", "rb") as stat:
        while True:
            stat.seek(0)
            if stat.read().rpartition(b") ")[2][:1] == b"Z":
                break
    os.write(1, b"ready\\n")
    os.read(0, 1)
    os._exit(0)
threading.Thread(target=stay).start()
ctypes.CDLL(None).syscall(ctypes.c_long(60), 0)
"""


def test_the_items_are_counted_after_the_last_bracket():
    stat = processes.parse_stat(b"123 (a) S 9 (b) c) " + TAIL)

    assert stat == ProcessStat(123, b"a) S 9 (b) c", "S", 1, 4194560, 3, 64737)


@pytest.mark.parametrize(
    ("letter", "ended"), [("Z", True), ("X", True), ("x", True), ("S", False), ("D", False)]
)
def test_three_letters_mean_ended(letter: str, ended: bool):
    stat = processes.parse_stat(b"1 (a) " + letter.encode() + TAIL[1:])

    assert isinstance(stat, ProcessStat)
    assert stat.ended is ended


def test_the_flag_of_a_kernel_thread_is_seen():
    stat = processes.parse_stat(b"2 (kthreadd) S 0 0 0 0 -1 2129984 " + b"0 " * 10 + b"1 0 30 0 0")

    assert isinstance(stat, ProcessStat)
    assert stat.kernel_thread


@pytest.mark.parametrize(
    "data",
    [b"", b"1 (a) S", b"x (a) " + TAIL, b"1 a " + TAIL, b"1 (a) SS" + TAIL[1:], b"1 (a) 5" + TAIL[1:], TAIL],
)
def test_a_damaged_stat_is_malformed(data: bytes):
    answer = processes.parse_stat(data)

    assert isinstance(answer, CannotKnow)
    assert answer.why is Why.MALFORMED


def test_a_status_is_parsed():
    assert processes.parse_status(STATUS) == ProcessStatus(7, (1, 2, 3, 4), (7, 1), 0x1FFFEFFFFFF)


def test_a_forged_later_line_of_a_status_does_not_count():
    assert processes.parse_status(STATUS + b"Uid:\t0\t0\t0\t0\n") == processes.parse_status(STATUS)


@pytest.mark.parametrize("name", [b"Tgid", b"Uid", b"CapEff"])
def test_a_status_without_a_needed_line_is_malformed(name: bytes):
    assert isinstance(processes.parse_status(STATUS.replace(name, b"Other")), CannotKnow)


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        (b"", ()),
        (b"a\0", (b"a",)),
        (b"a\0\0b\0", (b"a", b"", b"b")),
        (b"a\0b", (b"a", b"b")),
        (b"\0", (b"",)),
    ],
)
def test_arguments_are_split_at_nul(data: bytes, parts: tuple[bytes, ...]):
    assert processes.split_arguments(data) == parts


@given(st.binary(max_size=300))
def test_no_bytes_make_the_parsers_raise(data: bytes):
    processes.parse_stat(data)
    processes.parse_stat(b"1 (a) " + data)
    processes.parse_status(data)
    processes.split_arguments(data)


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=4))
def test_damaged_lines_never_make_the_parsers_raise(changes: list[tuple[int, int]]):
    for example, parse in ((b"1 (a) " + TAIL, processes.parse_stat), (STATUS, processes.parse_status)):
        data = bytearray(example)
        for place, value in changes:
            data[place % len(data)] = value
        parse(bytes(data))


def test_a_living_process_is_seen_with_all_its_parts(tmp_path: Path):
    with child(WAIT, "an argument", environment={"SEEN": "yes"}) as process:
        assert process.answer() == "ready"
        seen = processes.observe(process.pid, environment=True, descriptors=True)
        again = processes.read_identity(process.pid)

    assert isinstance(seen, Observation)
    assert isinstance(again, ProcessStat)
    assert seen.stat.pid == process.pid
    assert seen.stat.parent == os.getpid()
    assert seen.stat.start_ticks == again.start_ticks > 0
    assert isinstance(seen.arguments, bytes)
    assert processes.split_arguments(seen.arguments)[-1] == b"an argument"
    assert seen.environment == b"SEEN=yes\0"
    assert isinstance(seen.executable, processes.Executable)
    real = Path(sys.executable).resolve()
    assert (seen.executable.path, seen.executable.inode) == (bytes(real), real.stat().st_ino)
    assert not seen.executable.deleted
    assert seen.directory == os.fsencode(Path.cwd())
    assert isinstance(seen.descriptors, tuple)
    assert {0, 1, 2} <= {descriptor.number for descriptor in seen.descriptors}
    assert isinstance(seen.status, ProcessStatus)
    assert seen.status.uids == (os.getuid(),) * 4


def test_environment_and_descriptors_are_read_only_on_request():
    seen = processes.observe(os.getpid())

    assert isinstance(seen, Observation)
    assert seen.environment is None
    assert seen.descriptors is None


def test_a_deleted_executable_is_named_without_the_remark(tmp_path: Path):
    program = tmp_path / "docker"
    program.write_bytes(Path("/bin/sleep").read_bytes())
    program.chmod(0o755)
    with subprocess.Popen([program, "100"]) as process:
        try:
            program.unlink()
            seen = processes.observe(process.pid)
        finally:
            process.kill()

    assert isinstance(seen, Observation)
    assert isinstance(seen.executable, processes.Executable)
    assert (seen.executable.path, seen.executable.deleted) == (bytes(program), True)


def test_a_zombie_has_ended_and_has_no_command_line():
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        # WNOWAIT leaves it unreaped.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        seen = processes.observe(process.pid)
        states = processes.thread_states(process.pid)

    assert isinstance(seen, Observation)
    assert seen.stat.ended
    assert seen.arguments == b""
    assert states == ("Z",)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the number of the exit call is that of x86-64")
def test_a_process_whose_first_thread_has_ended_still_runs():
    with child(FIRST_THREAD_ENDS) as process:
        assert process.answer() == "ready"
        seen = processes.observe(process.pid)
        states = processes.thread_states(process.pid)

    assert isinstance(seen, Observation)
    assert seen.stat.ended
    assert seen.arguments == b""
    assert isinstance(states, tuple)
    assert sorted(state in processes.ENDED_STATES for state in states) == [False, True]


def test_a_reaped_process_is_gone():
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()

    for answer in (
        processes.read_identity(process.pid),
        processes.observe(process.pid, environment=True),
        processes.read_descriptors(process.pid),
        processes.thread_states(process.pid),
        processes.namespace_of(process.pid, "net"),
    ):
        assert answer == Gone(process.pid)


@pytest.mark.parametrize("pid", [0, -1, 1 << 22 | 1, 1 << 40])
def test_a_number_that_no_process_can_have_is_gone(pid: int):
    assert processes.read_identity(pid) == Gone(pid)


def test_the_number_of_a_thread_shows_its_process():
    numbers: list[int] = []
    started, stop = threading.Event(), threading.Event()

    def work() -> None:
        numbers.append(threading.get_native_id())
        started.set()
        stop.wait(60)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        started.wait(60)
        seen = processes.observe(numbers[0])
    finally:
        stop.set()
        thread.join()

    assert isinstance(seen, Observation)
    assert isinstance(seen.status, ProcessStatus)
    assert seen.status.thread_group == os.getpid() != numbers[0]


def test_a_process_that_stops_and_goes_on_is_the_same_one():
    with child(WAIT) as process:
        assert process.answer() == "ready"
        before = processes.read_identity(process.pid)
        process.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        stopped = processes.observe(process.pid)

    assert isinstance(before, ProcessStat)
    assert isinstance(stopped, Observation)
    assert stopped.stat.state == "T"
    assert stopped.stat.start_ticks == before.start_ticks


def test_kernel_threads_are_told_apart():
    answer = processes.read_identity(2)
    if not isinstance(answer, ProcessStat) or answer.command != b"kthreadd":
        pytest.skip("kernel threads are not visible here")
    assert answer.kernel_thread


def test_the_tool_finds_itself_in_the_list():
    listed = processes.list_pids()

    assert isinstance(listed, tuple)
    assert os.getpid() in listed
    assert list(listed) == sorted(listed)


def test_a_proc_that_is_not_there_is_an_answer(tmp_path: Path):
    assert isinstance(processes.list_pids(str(tmp_path / "none")), CannotKnow)


def test_a_process_that_proc_hides_is_not_gone(tmp_path: Path):
    answer = processes.read_identity(os.getpid(), str(tmp_path))

    assert isinstance(answer, CannotKnow)
    assert answer.why is Why.DENIED


def test_a_process_that_is_replaced_at_each_look_is_unstable(monkeypatch: pytest.MonkeyPatch):
    ticks = iter(range(1, 100))
    monkeypatch.setattr(
        processes, "_identity", lambda _directory: ProcessStat(1, b"x", "S", 0, 0, 1, next(ticks))
    )

    answer = processes.observe(os.getpid())
    assert isinstance(answer, CannotKnow)
    assert answer.why is Why.UNSTABLE


DENIED = """
import os, sys
sys.path.insert(0, sys.argv[2])
from symbi_recover.read.evidence import host, processes
os.setgroups([]); os.setgid(65534); os.setuid(65534)
seen = processes.observe(int(sys.argv[1]), environment=True, descriptors=True)
print(seen.executable.why, seen.environment.why, seen.descriptors.why, seen.arguments[-3:])
print(processes.namespace_of(int(sys.argv[1]), "net").why, host.own_view().sys_ptrace)
"""


@pytest.mark.root
def test_without_rights_each_part_says_denied_and_the_rest_is_read():
    if os.geteuid() != 0:
        pytest.skip("needs uid 0 to give rights up")
    home = str(Path(processes.__file__).parents[3])
    command = [sys.executable, "-c", DENIED]
    with child(WAIT, "x") as process:
        assert process.answer() == "ready"
        result = subprocess.run(
            [*command, str(process.pid), home], capture_output=True, text=True, timeout=60, check=True
        )

    assert result.stdout.splitlines() == [r"denied denied denied b'\x00x\x00'", "denied False"]


COVERED = """
import subprocess, sys
sys.path.insert(0, sys.argv[2])
from symbi_recover.read.evidence import mounts, processes
pid = int(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "t", f"/proc/{pid}"], check=True)
print(processes.read_identity(pid).why, mounts.judge_proc(mounts.read_mounts()).honest)
"""
HIDDEN = """
import os, subprocess, sys
sys.path.insert(0, sys.argv[2])
from symbi_recover.read.evidence import mounts, processes
pid = int(sys.argv[1])
subprocess.run(["mount", "-t", "proc", "-o", "hidepid=2", "proc", "/proc"], check=True)
judged = mounts.judge_proc(mounts.read_mounts()).honest
os.setgroups([]); os.setgid(65534); os.setuid(65534)
print(processes.read_identity(pid).why, judged)
"""


@pytest.mark.root
@pytest.mark.parametrize(("code", "expected"), [(COVERED, "covered False"), (HIDDEN, "denied False")])
def test_a_process_that_a_mount_hides_is_not_gone(code: str, expected: str):
    if not may_unshare("-m"):
        pytest.skip("needs uid 0 and mount namespaces")
    home = str(Path(processes.__file__).parents[3])
    with child(WAIT) as process:
        assert process.answer() == "ready"
        command = ["unshare", "-m", sys.executable, "-c", code, str(process.pid), home]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    assert result.stdout.strip() == expected


def test_a_namespace_is_a_number_and_a_child_shares_it():
    with child(WAIT) as process:
        assert process.answer() == "ready"
        theirs = processes.namespace_of(process.pid, "net")

    ours = processes.namespace_of(os.getpid(), "net")
    assert isinstance(ours, int)
    assert ours == theirs
    assert isinstance(processes.namespace_of(os.getpid(), "none"), CannotKnow)
