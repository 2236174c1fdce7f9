"""Who could still send the request: the client scan over real processes, and what counts as a plain client."""

import hashlib
import os
import shutil
import stat
import sys

import pytest
from msgspec.structs import replace

from symbi_recover.core.lease_records import LeaseRecord, Uncertain
from symbi_recover.read.evidence.kernel import CannotKnow, Why
from symbi_recover.read.evidence.processes import read_identity
from symbi_recover.read.retirement import clients
from symbi_recover.read.retirement.clients import judge_client, scan_clients
from symbi_recover.read.retirement.host import RealHost
from tests.read.live import child
from tests.support.writer.lease import LEASE

NAME = f"symbi-{LEASE}"
READY = "import sys; print('ready', flush=True); sys.stdin.readline()"
RECORD = LeaseRecord(
    lease=LEASE,
    name=NAME,
    docker_binary="/usr/bin/docker",
    docker_environment={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
    state=Uncertain(),
)
root = pytest.mark.skipif(os.geteuid() != 0, reason="not run: other accounts' files cannot be made")


class FewHost(RealHost):
    """The real host, of which only some processes are looked at."""

    def __init__(self, *pids, faults=()):
        self.few = tuple(sorted({os.getpid(), *pids}))
        self.faults = faults
        self.pauses = []

    def pids(self):
        return self.few

    def scan_faults(self):
        return self.faults

    def pause(self, seconds):
        self.pauses.append(seconds)


def until_ended(pid):
    """Wait until the first thread of a process has ended."""
    while not read_identity(pid).ended:
        os.sched_yield()


def scan(*pids, record=RECORD, directories=("/nonexistent/store",)):
    return scan_clients(record, directories, FewHost(*pids))


def test_two_passes_a_second_apart_without_a_hit_are_clean():
    with child(READY) as other:
        other.answer()
        host = FewHost(other.pid)
        seen = scan_clients(RECORD, ("/nonexistent/store",), host)
    assert (seen.clean, seen.passes, seen.processes) == (True, 2, 1)
    assert max(host.pauses) >= 1.0


@pytest.mark.parametrize("arguments", [("create", "--name", NAME), (f"x-{NAME}-y",), (f"--label={NAME}",)])
def test_the_name_anywhere_in_a_command_line_is_a_hit(arguments):
    with child(READY, *arguments) as other:
        other.answer()
        seen = scan(other.pid)
    assert [(hit.pid, hit.why) for hit in seen.hits] == [
        (other.pid, "its command line names the lease's container")
    ]
    assert not seen.clean


def test_the_bare_lease_is_no_hit_and_the_tool_itself_is_passed_over(monkeypatch):
    with child(READY, LEASE, "symbi-") as other:
        other.answer()
        assert scan(other.pid).clean


def test_an_environment_file_of_the_store_named_or_held_open_is_a_hit(tmp_path):
    secret = tmp_path / ".environment-x0kw9W"
    secret.write_text("TOKEN=example\n")
    with child(READY, "--env-file", str(secret)) as other:
        other.answer()
        assert "names an environment file" in scan(other.pid, directories=(str(tmp_path),)).hits[0].why
        assert scan(other.pid).clean
    holding = (
        "import sys; f = open(sys.stdin.readline().strip()); print('ready', flush=True); sys.stdin.readline()"
    )
    with child(holding) as other:
        other.ask(str(secret))
        assert "holds an environment file" in scan(other.pid, directories=(str(tmp_path),)).hits[0].why
        assert scan(other.pid).clean


def test_the_recorded_client_with_exactly_the_recorded_environment_is_a_hit():
    environment = {"LANG": "C.UTF-8", "PATH": "/usr/bin:/bin", "DOCKER_HOST": "unix:///x"}
    binary = os.path.realpath(sys.executable)
    with child(READY, environment=environment) as other:
        other.answer()
        same = replace(RECORD, docker_binary=binary, docker_environment=dict(reversed(environment.items())))
        assert "recorded environment" in scan(other.pid, record=same).hits[0].why
        through_link = replace(same, docker_binary=sys.executable)
        assert scan(other.pid, record=through_link).hits
        less = replace(same, docker_environment={"PATH": "/usr/bin:/bin"})
        assert scan(other.pid, record=less).clean
        assert scan(other.pid, record=replace(same, docker_binary="/usr/bin/docker")).clean


def test_nothing_of_an_environment_is_kept():
    with child(READY, environment={"PATH": "/usr/bin:/bin", "SECRET": "hunter2"}) as other:
        other.answer()
        seen = scan(other.pid, record=replace(RECORD, docker_binary=os.path.realpath(sys.executable)))
    assert "hunter2" not in repr(seen)


def test_a_process_that_is_gone_is_no_fault():
    with child(READY) as other:
        other.answer()
    assert scan(other.pid).clean


def test_a_process_whose_first_thread_has_ended_while_others_run_makes_the_scan_unreliable():
    code = (
        "import ctypes, sys, threading\n"
        "def work():\n"
        "    print('ready', flush=True)\n"
        "    sys.stdin.readline()\n"
        "threading.Thread(target=work).start()\n"
        "ctypes.CDLL(None).syscall(60, 0)\n"
    )
    with child(code) as other:
        other.answer()
        until_ended(other.pid)
        seen = scan(other.pid)
    assert not seen.clean
    assert "command line is empty" in seen.unreliable[0]


def test_an_ended_process_that_nobody_reaped_is_no_fault():
    pid = os.posix_spawn("/bin/true", ["true"], {})
    try:
        until_ended(pid)
        assert scan(pid).clean
    finally:
        os.waitpid(pid, 0)


def test_an_unreadable_command_line_and_a_faulty_view_make_the_scan_unreliable(monkeypatch):
    with child(READY) as other:
        other.answer()
        real = clients.observe
        denied = CannotKnow(Why.DENIED, "cmdline cannot be opened: Permission denied")
        with monkeypatch.context() as patch:
            patch.setattr(clients, "observe", lambda pid, **how: replace(real(pid, **how), arguments=denied))
            assert "Permission denied" in scan(other.pid).unreliable[0]
        host = FewHost(other.pid, faults=("not run as root",))
        assert scan_clients(RECORD, ("/x",), host).unreliable == ("not run as root",)


def test_a_list_without_this_process_is_not_believed():
    class Elsewhere(FewHost):
        def pids(self):
            return ()

    assert not scan_clients(RECORD, ("/x",), Elsewhere()).clean


def test_a_process_that_comes_between_the_passes_is_found():
    with child(READY, NAME) as other:
        other.answer()

        class Growing(FewHost):
            def pause(self, seconds):
                if seconds >= 1:
                    self.few = tuple(sorted({*self.few, other.pid}))

        assert scan_clients(RECORD, ("/x",), Growing()).hits


def test_a_plain_client_is_a_root_owned_program_named_docker(tmp_path):
    if shutil.which("docker") is None:
        pytest.skip("not run: no docker client is installed")
    assert judge_client("/usr/bin/docker").kind == "plain"


@root
@pytest.mark.parametrize(
    ("name", "data", "mode", "owner", "why"),
    [
        ("docker", b"\x7fELF" + bytes(60), 0o755, 1234, "uid 1234"),
        ("docker", b"\x7fELF" + bytes(60), 0o775, 0, "mode 0775"),
        ("docker", b"\x7fELF" + bytes(60), 0o757, 0, "mode 0757"),
        ("podman", b"\x7fELF" + bytes(60), 0o755, 0, "named 'podman'"),
        ("docker", b"#!/bin/sh\n", 0o755, 0, "script"),
        ("docker", b"", 0o755, 0, "script"),
    ],
)
def test_anything_else_is_a_wrapper_until_its_digest_is_listed(tmp_path, name, data, mode, owner, why):
    path = tmp_path / name
    path.write_bytes(data)
    os.chown(path, owner, 0)
    path.chmod(mode)
    found = judge_client(str(path))
    assert (found.kind, found.sha256) == ("wrapper", hashlib.sha256(data).hexdigest())
    assert why in found.why
    assert judge_client(str(path), frozenset({found.sha256})).kind == "reviewed"


@root
def test_a_link_to_a_plain_client_is_plain_and_a_missing_or_odd_one_is_not(tmp_path):
    target = tmp_path / "docker"
    target.write_bytes(b"\x7fELF" + bytes(60))
    target.chmod(0o755)
    (tmp_path / "link").symlink_to(target)
    assert judge_client(str(tmp_path / "link")).kind == "plain"
    assert judge_client(str(tmp_path / "missing")).kind == "wrapper"
    os.mkfifo(tmp_path / "fifo")
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)
    assert judge_client(str(tmp_path / "fifo")).kind == "wrapper"


def test_a_name_that_no_system_can_hold_is_a_wrapper_that_cannot_be_examined():
    """Nothing but the leading slash is checked of a recorded client, so the record is good (section 4)."""
    found = judge_client("/usr/bin/do\0cker")
    assert found.kind == "wrapper"
    assert "cannot be examined" in found.why
    assert scan(record=replace(RECORD, docker_binary="/usr/bin/do\0cker")).clean
