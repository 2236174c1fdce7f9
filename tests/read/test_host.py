"""The tool's own view of the host."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from symbi_recover.read.evidence import host
from symbi_recover.read.evidence.kernel import CannotKnow, Why
from tests.read.live import may_unshare

HOME = str(Path(host.__file__).parents[3])
VIEW = """
import sys
sys.path.insert(0, sys.argv[1])
from symbi_recover.read.evidence import host
view = host.own_view()
print(view.initial_pid_namespace, view.initial_user_namespace, view.own_proc, host.sees_whole_host())
"""


def lay_out(
    folder: Path,
    *,
    capabilities: str = "0",
    inner: str | None = None,
    pid_namespace: int = 4026531836,
    options: str = "rw",
) -> str:
    me = folder / "self"
    (me / "ns").mkdir(parents=True)
    (me / "ns" / "pid").symlink_to(f"pid:[{pid_namespace}]")
    (me / "ns" / "user").symlink_to("user:[4026531837]")
    pid = os.getpid()
    (me / "status").write_text(
        f"Tgid:\t{pid}\nUid:\t0\t0\t0\t0\nNSpid:\t{inner or pid}\nCapEff:\t{capabilities}\n"
    )
    (me / "mountinfo").write_text(f"22 1 0:5 / {folder} rw - proc proc {options}\n")
    return str(folder)


@pytest.mark.parametrize(
    ("capabilities", "ptrace", "admin"),
    [("0", False, False), ("80000", True, False), ("200000", False, True), ("000001ffffffffff", True, True)],
)
def test_the_two_capabilities_are_told_apart(tmp_path: Path, capabilities: str, ptrace: bool, admin: bool):
    view = host.own_view(lay_out(tmp_path, capabilities=capabilities))
    assert (view.sys_ptrace, view.sys_admin) == (ptrace, admin)


def test_the_whole_host_is_seen_from_the_initial_namespace(tmp_path: Path):
    assert host.sees_whole_host(lay_out(tmp_path)) is True


def test_a_proc_that_hides_processes_shows_a_part_to_all_but_those_with_the_right(tmp_path: Path):
    proc = lay_out(tmp_path, options="rw,hidepid=invisible")
    answer = host.sees_whole_host(proc)
    assert isinstance(answer, CannotKnow)
    assert "hidepid" in answer.detail
    (tmp_path / "self" / "status").write_text(
        f"Tgid:\t{os.getpid()}\nUid:\t0\t0\t0\t0\nNSpid:\t{os.getpid()}\nCapEff:\t80000\n"
    )
    assert host.sees_whole_host(proc) is True


def test_another_namespace_sees_a_part(tmp_path: Path):
    assert host.sees_whole_host(lay_out(tmp_path, pid_namespace=4026532178)) is False


@pytest.mark.parametrize("inner", ["1", "7 1"])
def test_a_proc_of_another_namespace_is_not_ones_own(tmp_path: Path, inner: str):
    proc = lay_out(tmp_path, inner=inner)
    if inner == "1":
        (tmp_path / "self" / "status").write_text("Tgid:\t1\nUid:\t0\t0\t0\t0\nNSpid:\t1\nCapEff:\t0\n")
    assert host.sees_whole_host(proc) is False


def test_nothing_to_read_is_neither_yes_nor_no(tmp_path: Path):
    view = host.own_view(str(tmp_path))
    for answer in (
        view.initial_pid_namespace,
        view.own_proc,
        view.sys_ptrace,
        host.sees_whole_host(str(tmp_path)),
    ):
        assert isinstance(answer, CannotKnow)


def test_the_real_view_agrees_with_the_kernel():
    view = host.own_view()

    assert view.uid == os.geteuid()
    inode = Path("/proc/self/ns/pid").stat().st_ino
    assert host.own_namespace("pid") == inode
    assert view.initial_pid_namespace is (inode == host.INITIAL_PID_NAMESPACE)


@pytest.mark.root
@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("-p", "-f", "--mount-proc"), "False True True False"),
        (("-p", "-f"), "False True False False"),
        (("-U", "-r"), "True False True True"),
    ],
)
def test_a_view_from_inside_a_namespace_says_so(flags: tuple[str, ...], expected: str):
    if host.sees_whole_host() is not True or not may_unshare(*flags):
        pytest.skip("needs uid 0, the initial namespaces, and new ones of this kind")
    command = ["unshare", *flags, sys.executable, "-c", VIEW, HOME]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    assert result.stdout.strip() == expected


def test_the_boot_id_is_the_kernels_own_spelling():
    assert host.boot_id() == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@pytest.mark.parametrize("text", ["", "x" * 36, "12345", "A" * 36])
def test_a_boot_id_that_is_no_uuid_is_malformed(tmp_path: Path, text: str):
    folder = tmp_path / "sys" / "kernel" / "random"
    folder.mkdir(parents=True)
    (folder / "boot_id").write_text(text)

    answer = host.boot_id(str(tmp_path))
    assert isinstance(answer, CannotKnow)
    assert answer.why is Why.MALFORMED


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cpu 1\nbtime 1700000000\n", 1700000000),
        ("btime x\n", Why.MALFORMED),
        ("btime -1\n", Why.MALFORMED),
        ("cpu 1\n", Why.MISSING),
    ],
)
def test_the_boot_second_is_found_or_not(tmp_path: Path, text: str, expected: int | Why):
    (tmp_path / "stat").write_text(text)

    answer = host.boot_seconds(str(tmp_path))
    assert (answer.why if isinstance(answer, CannotKnow) else answer) == expected
