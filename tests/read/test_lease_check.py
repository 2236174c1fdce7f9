"""`lease check` against a daemon double: exact comparison, honest states, and absence that proves nothing."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from symbi_recover.core.leases import CheckReport, LeaseCheck
from symbi_recover.read.daemon.engine import DockerEngine
from symbi_recover.read.daemon.listener import Listener
from symbi_recover.read.evidence import kernel
from symbi_recover.read.evidence.kernel import CannotKnow, Why
from symbi_recover.read.retirement.host import Host, RealHost
from symbi_recover.read.verify import container_processes, lease_check
from symbi_recover.read.verify.lease_check import Checker, check_store
from symbi_recover.read.verify.lease_judge import judge
from symbi_recover.read.verify.lease_store import read_store
from tests.support.daemon_behaviours import Silent, failure
from tests.support.daemon_double import DaemonDouble, daemon_double
from tests.support.daemon_world import STATES, World, identity
from tests.support.helper_double import helper_double
from tests.support.writer import lease as made
from tests.support.writer.project import put

LEASE = made.LEASE
NAME = f"symbi-{LEASE}"
LABEL = "ai.symbiont.lease"
OWN = {LABEL: LEASE}
OTHER = {LABEL: made.lease_uid(77)}


class Case:
    """A store with one lease, and the daemon its record names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "s"
        self.socket = str(folder / "d.sock")

    def lay(self, state: dict[str, Any] | None = None, **environment: str) -> None:
        given = {"PATH": "/usr/bin:/bin", "DOCKER_HOST": f"unix://{self.socket}", **environment}
        record = made.record(state=state or made.uncertain(), docker_environment=given)
        made.make_state(self.store, record)

    def check(
        self, *leases: str, seconds: float = 2.0, host: Host | None = None, default: str = "/nonexistent"
    ) -> CheckReport:
        report = judge(read_store(str(self.store), now_ns=2**62))
        checker = Checker(
            lambda path: DockerEngine(path, seconds=seconds), home="/nonexistent", host=host, default=default
        )
        try:
            return check_store(report, checker, leases)
        finally:
            checker.close()

    def one(self) -> LeaseCheck:
        (check,) = self.check().checks
        return check


@pytest.fixture
def case() -> Iterator[Case]:
    folder = Path(tempfile.mkdtemp(prefix="sc", dir="/tmp"))
    yield Case(folder)
    shutil.rmtree(folder)


@pytest.fixture
def daemon(case: Case) -> Iterator[DaemonDouble]:
    with daemon_double(case.socket) as double:
        yield double
        double.assert_only_gets()


def codes(report: CheckReport | LeaseCheck) -> set[str]:
    return {found.code for found in report.findings} - {"endpoint_proxied"}


def test_a_labelled_container_under_its_name_is_there(case: Case, daemon: DaemonDouble) -> None:
    case.lay()
    container = daemon.world.add(NAME, OWN)
    check = case.one()
    assert check.verdict == "container_present"
    assert [(one.id, one.label, one.state) for one in check.containers] == [(container.id, LEASE, "created")]
    assert check.engine is not None
    assert check.engine.data_root == "/var/lib/docker"


def test_the_double_is_named_as_what_it_is(case: Case, daemon: DaemonDouble) -> None:
    case.lay()
    report = case.check()
    (found,) = [one for one in report.findings if one.code == "endpoint_proxied"]
    assert str(os.getpid()) in found.message


def test_absence_is_reported_and_proves_nothing(case: Case, daemon: DaemonDouble) -> None:
    """F-117: ten thousand times absent is still no proof, and the next answer may differ."""
    case.lay()
    late = daemon.world.add(NAME, OWN)
    late.hidden_for = 12
    for _ in range(4):
        report = case.check()
        assert codes(report) == {"container_absent"}
        assert report.verdict == "attention"
        assert any("no longer complete" in one.why for one in report.not_checked)
    late.hidden_for = 0
    assert case.one().verdict == "container_present"


def test_a_reserved_name_is_absent_to_every_question(case: Case, daemon: DaemonDouble) -> None:
    """F-115: what only a create would learn is not asked here, so nothing more than absence is claimed."""
    case.lay()
    daemon.world.reserve(NAME)
    assert case.one().verdict == "container_absent"


def test_a_container_whose_name_is_a_piece_of_the_id_is_not_the_leases(
    case: Case, daemon: DaemonDouble
) -> None:
    """F-118."""
    recorded = identity("gone")
    case.lay(made.created(recorded))
    daemon.world.add(recorded[:12], OTHER)
    daemon.world.add("other", OTHER, id=recorded[:12] + identity("x")[12:])
    assert case.one().verdict == "container_gone"
    assert daemon.asked("GET", f"/containers/{recorded}/json")
    daemon.world.add(recorded, OTHER)
    check = case.one()
    assert check.verdict == "container_mismatch"
    assert recorded in check.findings[-1].message


def test_names_that_hold_the_name_do_not_count(case: Case, daemon: DaemonDouble) -> None:
    """F-120."""
    case.lay()
    for name in (f"{NAME}-old", f"x-{NAME}", f"symbi-{LEASE[:-1]}"):
        daemon.world.add(name, OTHER)
    assert case.one().verdict == "container_absent"


def test_a_daemon_that_lists_more_than_was_asked_for_is_compared_on_our_side(
    case: Case, daemon: DaemonDouble
) -> None:
    """F-120: another label in the answer to a label filter is not believed."""
    case.lay()
    strangers = [
        {"Id": identity(str(n)), "Names": ["/x"], "Labels": labels, "State": "running"}
        for n, labels in enumerate(({LABEL: f"{LEASE}-old"}, {}, {"x": LEASE}, None))
    ]
    from tests.support.daemon_behaviours import Answer

    daemon.on("GET", "/containers/json", Answer(strangers))
    check = case.one()
    assert check.verdict == "container_absent"
    assert check.containers == ()


@pytest.mark.parametrize("state", STATES)
def test_every_state_is_shown_as_it_is(case: Case, daemon: DaemonDouble, state: str) -> None:
    """F-121."""
    case.lay()
    daemon.world.add(NAME, OWN, status=state, pid=os.getpid() if state in {"running", "paused"} else 0)
    check = case.one()
    assert check.verdict == "container_present"
    assert check.containers[0].state == state
    assert codes(check) == {"container_present"}


def test_an_unknown_state_is_shown_and_named(case: Case, daemon: DaemonDouble) -> None:
    """F-121."""
    case.lay()
    daemon.world.add(NAME, OWN, status="hibernating\x1b[2J")
    check = case.one()
    assert codes(check) == {"container_present", "container_state_unknown"}
    assert check.containers[0].state == "hibernating\x1b[2J"


def test_a_recorded_id_must_fit_as_well(case: Case, daemon: DaemonDouble) -> None:
    """F-129: all right except the id."""
    case.lay(made.created())
    daemon.world.add(NAME, OWN)
    report = case.check()
    assert codes(report) == {"name_foreign"}
    assert report.verdict == "contradicted"


@pytest.mark.parametrize(
    ("name", "labels", "verdict"),
    [
        (NAME, {}, "name_foreign"),
        (NAME, OTHER, "name_foreign"),
        ("other", OWN, "container_renamed"),
        ("other", OTHER, "container_absent"),
    ],
)
def test_name_and_label_must_both_fit(
    case: Case, daemon: DaemonDouble, name: str, labels: dict[str, str], verdict: str
) -> None:
    """F-129."""
    case.lay()
    daemon.world.add(name, labels)
    assert case.one().verdict == verdict


def test_a_created_record_is_judged_by_its_id(case: Case, daemon: DaemonDouble) -> None:
    case.lay(made.created())
    container = daemon.world.add(NAME, OWN, id=made.CONTAINER)
    assert case.one().verdict == "container_present"
    container.name = "renamed"
    assert case.one().verdict == "container_renamed"
    container.labels = OTHER
    assert case.one().verdict == "container_mismatch"
    daemon.world.containers.clear()
    assert case.one().verdict == "container_gone"


def test_two_containers_with_one_label_are_a_contradiction(case: Case, daemon: DaemonDouble) -> None:
    case.lay()
    daemon.world.add(NAME, OWN)
    daemon.world.add("twin", OWN)
    report = case.check()
    assert codes(report) == {"container_several"}
    assert len(report.checks[0].containers) == 2


def test_with_a_helper_running_its_container_needs_nobody(case: Case, daemon: DaemonDouble) -> None:
    case.lay(made.created())
    daemon.world.add(NAME, OWN, id=made.CONTAINER)
    with helper_double(case.store):
        assert case.one().verdict == "container_supervised"


def test_a_process_that_lives_in_an_ended_container_is_a_contradiction(
    case: Case, daemon: DaemonDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F-124: "exited", and a process with that container's id in its cgroup."""
    case.lay()
    container = daemon.world.add(NAME, OWN, status="exited")
    real = kernel.read_proc

    def told(name: str, **options: Any) -> Any:
        if name == f"{os.getpid()}/cgroup":
            return f"0::/docker/{container.id}\n".encode()
        return real(name, **options)

    monkeypatch.setattr(container_processes, "read_proc", told)
    for whole in (True, False):
        monkeypatch.setattr(lease_check, "sees_whole_host", lambda *_, whole=whole: whole)
        report = case.check()
        assert codes(report) == {"container_present", "engine_contradiction"}
        assert report.verdict == "contradicted"


def known_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the double were the host's one engine, and all of the host were seen."""
    known = Listener(code=None, owner_pid=os.getpid(), engine_pid=os.getpid())
    monkeypatch.setattr(lease_check, "find_engine", lambda *_, **__: known)
    monkeypatch.setattr(lease_check, "sees_whole_host", lambda *_: True)


def ended_process() -> int:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


def test_a_running_container_without_its_process_is_a_contradiction(
    case: Case, daemon: DaemonDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F-124: "running" with a pid that is gone."""
    known_engine(monkeypatch)
    case.lay()
    container = daemon.world.add(NAME, OWN, status="running", pid=ended_process())
    assert "engine_contradiction" in codes(case.check())
    container.pid = os.getpid()
    assert codes(case.check()) == {"container_present"}
    assert not case.one().not_checked


def test_process_numbers_from_behind_a_proxy_contradict_nothing_and_that_is_said(
    case: Case, daemon: DaemonDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The double is no dockerd, as a forwarded socket is not; which host it counts on cannot be known."""
    monkeypatch.setattr(lease_check, "sees_whole_host", lambda *_: True)
    case.lay()
    container = daemon.world.add(NAME, OWN, status="running", pid=ended_process())
    check = case.one()
    assert codes(check) == {"container_present"}
    (remark,) = check.not_checked
    assert "process numbers" in remark.what
    assert "listens" in remark.why
    container.status, container.pid = "exited", 0
    assert not case.one().not_checked


def test_a_kernel_that_lists_no_sockets_hides_the_engine_and_harms_no_answer(
    case: Case, daemon: DaemonDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check takes no census, so it does not speak of one."""
    blind = Listener(code="census_unreadable", reason="this kernel cannot list Unix sockets")
    monkeypatch.setattr(lease_check, "find_engine", lambda *_, **__: blind)
    case.lay()
    daemon.world.add(NAME, OWN)
    assert codes(case.check()) == {"container_present", "engine_unseen"}


def test_process_numbers_of_another_pid_namespace_contradict_nothing(
    case: Case, daemon: DaemonDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    known_engine(monkeypatch)
    monkeypatch.setattr(container_processes, "namespace_of", lambda *_: 1)
    case.lay()
    daemon.world.add(NAME, OWN, status="running", pid=ended_process())
    check = case.one()
    assert codes(check) == {"container_present"}
    assert "another PID namespace" in check.not_checked[0].why


def test_the_recorded_daemon_is_asked_and_no_other(
    case: Case, daemon: DaemonDouble, monkeypatch: Any
) -> None:
    """F-125: the record names A, everything of the operator names B; A is down, and B's 404 means nothing."""
    case.lay(DOCKER_HOST=f"unix://{case.folder}/a.sock")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{case.socket}")
    report = case.check()
    assert codes(report) == {"daemon_away"}
    assert report.verdict == "unexamined"
    assert daemon.connections == 0


def test_a_socket_that_is_a_link_is_followed_and_named(case: Case, daemon: DaemonDouble) -> None:
    """F-125: A was replaced by a link to B."""
    case.lay(DOCKER_HOST=f"unix://{case.folder}/a.sock")
    (case.folder / "a.sock").symlink_to(case.socket)
    report = case.check()
    assert codes(report) == {"container_absent", "endpoint_link"}
    (found,) = [one for one in report.findings if one.code == "endpoint_link"]
    assert case.socket in found.message
    assert report.checks[0].engine is not None
    assert report.checks[0].engine.engine_id == daemon.world.info["ID"]


@pytest.mark.parametrize(
    ("host", "code"),
    [("tcp://127.0.0.1:1", "endpoint_remote"), ("ssh://x", "endpoint_remote"), ("", "endpoint_unresolved")],
)
def test_other_endpoints_are_named_and_not_contacted(case: Case, host: str, code: str) -> None:
    case.lay(DOCKER_HOST=host)
    report = case.check()
    assert codes(report) == {code}
    assert report.verdict == "unexamined"
    assert report.checks[0].engine is None


@pytest.mark.parametrize("version", ["1.99", "1.0", "v1", "newest"])
def test_a_recorded_version_that_the_daemon_refuses_is_named(
    case: Case, daemon: DaemonDouble, version: str
) -> None:
    """F-127: it explains the helper's failure, and is never an absent container."""
    case.lay(DOCKER_API_VERSION=version)
    daemon.world.add(NAME, OWN)
    assert codes(case.check()) == {"container_present", "recorded_version_refused"}


def test_a_daemon_without_a_common_version_leaves_the_question_open(case: Case) -> None:
    """F-127."""
    case.lay()
    with daemon_double(case.socket, World("1.60", "1.50")):
        report = case.check()
    assert codes(report) == {"daemon_version"}
    assert report.verdict == "unexamined"


def test_a_daemon_that_failed_is_not_tried_again_for_the_next_lease(case: Case, daemon: DaemonDouble) -> None:
    """F-123: the whole command is bounded, not only each question."""
    case.lay()
    for number in range(20):
        record = made.record(
            made.lease_uid(number),
            made.uncertain(),
            docker_environment={"DOCKER_HOST": f"unix://{case.socket}"},
        )
        made.write_record(case.store, record)
    daemon.on("GET", "/version", Silent())
    report = case.check(seconds=0.3)
    assert codes(report) == {"daemon_slow"}
    assert len(report.checks) == 21
    assert len(daemon.requests) == 1
    assert "headers" in report.findings[0].message


def test_a_store_that_names_many_silent_daemons_is_given_up_on(case: Case, daemon: DaemonDouble) -> None:
    """F-123: each question is bounded, and so are all of them together."""
    daemon.on("GET", "/version", Silent())
    case.lay()
    for number in range(1, 12):
        link = case.folder / f"{number}.sock"
        link.symlink_to(case.socket)
        given = {"DOCKER_HOST": f"unix://{link}"}
        made.write_record(case.store, made.record(made.lease_uid(number), docker_environment=given))
    report = case.check(seconds=0.1)
    slow = [found for found in report.findings if found.code == "daemon_slow"]
    assert len(slow) == 12
    assert len(daemon.requests) == 8
    assert sum("not asked, since 8 daemons" in found.message for found in slow) == 4


def test_an_error_is_never_absence(case: Case, daemon: DaemonDouble) -> None:
    """F-123: 503 during start."""
    case.lay()
    daemon.on("GET", "/containers/json", failure(503, "starting\x1b[31m"))
    report = case.check()
    assert codes(report) == {"daemon_failed"}
    assert report.verdict == "unexamined"


class SmallHost(RealHost):
    """This process alone, or a host whose processes nobody lists."""

    def __init__(self, *, init: int, known: bool = True) -> None:
        self.init = init
        self.known = known

    def pids(self) -> tuple[int, ...] | CannotKnow:
        return (os.getpid(),) if self.known else CannotKnow(Why.DENIED, "the processes cannot be listed")


def test_a_daemon_that_a_question_would_start_is_not_asked(case: Case, daemon: DaemonDouble) -> None:
    """F-132: the listener is held by the starter of services alone."""
    case.lay()
    report = case.check(host=SmallHost(init=os.getpid()))
    assert codes(report) == {"engine_asleep"}
    assert report.verdict == "unexamined"
    assert not daemon.requests


def test_where_it_cannot_be_known_the_daemon_is_asked_and_that_is_said(
    case: Case, daemon: DaemonDouble
) -> None:
    """F-132: without rights."""
    case.lay()
    report = case.check(host=SmallHost(init=1, known=False))
    assert codes(report) == {"container_absent"}
    (remark,) = [one for one in report.not_checked if "started the engine" in one.what]
    assert remark.why == "the processes cannot be listed"
    known = case.check(host=SmallHost(init=1))
    assert not [one for one in known.not_checked if "started the engine" in one.what]


def test_the_record_stays_as_it_was(case: Case, daemon: DaemonDouble) -> None:
    case.lay()
    path = case.store / f"{LEASE}.json"
    before = (path.read_bytes(), path.stat())
    daemon.on("GET", "*", Silent())
    case.check(seconds=0.2)
    assert (path.read_bytes(), path.stat()) == before


def test_workers_that_are_no_containers_are_left_to_the_kernel(case: Case) -> None:
    made.make_state(case.store, made.record(state=made.vm_creating()))
    report = case.check()
    assert codes(report) == {"check_not_asked"}
    assert report.verdict == "sound"


def test_only_chosen_leases_are_asked_about(case: Case, daemon: DaemonDouble) -> None:
    case.lay()
    other = made.lease_uid(5)
    made.write_record(case.store, made.record(other, docker_environment={"DOCKER_HOST": "tcp://x"}))
    assert [check.lease for check in case.check(LEASE).checks] == [LEASE]


def test_containers_of_bad_records_are_looked_for_by_label(case: Case, daemon: DaemonDouble) -> None:
    case.lay()
    bad = made.lease_uid(8)
    put(case.store / f"{bad}.json", b"{}")
    container = daemon.world.add("x", {LABEL: bad})
    report = case.check()
    assert report.verdict == "blocked"
    (found,) = [one for one in report.findings if one.code == "label_orphan"]
    assert container.id in found.message
    assert labels_asked(report) == f"looked for at {case.socket}, and nowhere else"


def labels_asked(report: CheckReport) -> str:
    (remark,) = [one.why for one in report.not_checked if one.what == "containers of bad records"]
    return remark


BAD = made.lease_uid(8)


@pytest.mark.parametrize("alone", [True, False], ids=["no good container record", "the bad lease alone"])
def test_without_another_daemon_the_default_one_is_asked_about_a_bad_record(
    case: Case, daemon: DaemonDouble, alone: bool
) -> None:
    """Section 14 (6): the label is the only clue to what a bad record left behind."""
    made.make_state(case.store, *([] if alone else [made.record()]))
    put(case.store / f"{BAD}.json", b"{}")
    container = daemon.world.add("x", {LABEL: BAD})
    report = case.check(*([] if alone else [BAD]), default=case.socket)
    (found,) = [one for one in report.findings if one.code == "label_orphan"]
    assert container.id in found.message
    assert found.path == f"{case.store}/{BAD}.json"
    assert labels_asked(report) == f"looked for at {case.socket}, and nowhere else"


def test_the_default_daemon_is_not_asked_beside_one_that_answers_or_without_a_bad_record(
    case: Case, daemon: DaemonDouble
) -> None:
    case.lay()
    with daemon_double(f"{case.folder}/e.sock") as other:
        assert codes(case.check(default=f"{case.folder}/e.sock")) == {"container_absent"}
        put(case.store / f"{BAD}.json", b"{}")
        assert case.socket in labels_asked(case.check(default=f"{case.folder}/e.sock"))
        assert not other.requests


def test_a_default_daemon_that_a_question_could_start_is_left_alone(
    case: Case, daemon: DaemonDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F-132: no record names it, so that it must be known to be awake."""
    monkeypatch.setattr(lease_check, "engine_runs", lambda **_: False)
    made.make_state(case.store)
    put(case.store / f"{BAD}.json", b"{}")
    for host in (SmallHost(init=os.getpid()), SmallHost(init=1, known=False)):
        report = case.check(host=host, default=case.socket)
        assert labels_asked(report) == f"no answer from {case.socket} (engine_asleep)"
    assert not daemon.requests
    assert labels_asked(case.check(default="/nonexistent")) == "no daemon was asked"
