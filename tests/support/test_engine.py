"""The private engine does what it says, and what the lease format says about engines is seen on it.

The facts named here are those of section 18.2 of the lease format.
"""

import os
import select
import shutil
import socket
import stat
import struct
import subprocess
import sys
from pathlib import Path

import docker
import pytest

from tests.support.daemon_double import daemon_double
from tests.support.engine import (
    EMPTY_IMAGE,
    STATES,
    docker_client_binary,
    listening,
    private_engine,
    write_wrapper,
)
from tests.support.engine_process import EngineError, why_not_here
from tests.support.unix_http import (
    EventFollower,
    HalfRequest,
    ask,
    connect,
    encode,
    leave_request,
    read_reply,
)

pytestmark = [pytest.mark.engine, pytest.mark.root]

NAME = "symbi-6b1f0c64-0f0e-4a53-8f52-3d1f2a7c9b10"
LABEL = "ai.symbiont.lease"
LEASE = NAME.removeprefix("symbi-")
MACHINE_KEY = Path("/etc/docker/key.json")


def peer_pid(path):
    with connect(path) as client:
        raw = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return struct.unpack("3i", raw)[0]


def conflict(engine, name=NAME):
    reply = ask(engine.socket_path, *engine.create_request(name))
    assert reply.status == 409, reply
    return reply.message


def test_it_is_a_process_of_its_own_with_its_own_socket_and_data(engine):
    assert Path(f"/proc/{engine.pid}/exe").resolve().name == "dockerd"
    assert peer_pid(engine.socket_path) == engine.pid
    assert stat.S_ISSOCK(Path(engine.socket_path).stat().st_mode)
    assert len(engine.socket_path) < 60
    info = engine.ask("GET", "/info").json()
    assert info["DockerRootDir"] == str(engine.data_root)
    assert (info["Driver"], info["Containers"]) == ("vfs", 0)
    assert engine.start_seconds > 0


def test_it_shares_nothing_with_the_engine_of_the_machine(engine):
    machine = Path("/var/run/docker.sock")
    assert not machine.exists() or not machine.samefile(engine.socket_path)
    assert Path(f"/proc/{engine.pid}/ns/mnt").readlink() != Path("/proc/self/ns/mnt").readlink()
    assert Path(f"/proc/{engine.pid}/ns/net").readlink() == Path("/proc/self/ns/net").readlink()
    assert Path(f"/proc/{engine.pid}/ns/pid").readlink() == Path("/proc/self/ns/pid").readlink()
    if MACHINE_KEY.exists():
        assert MACHINE_KEY.read_bytes() != engine.key_file.read_bytes()


def test_the_docker_package_and_the_client_work_with_it(engine):
    engine.create(NAME, {LABEL: LEASE})
    client = docker.DockerClient(base_url=engine.base_url, version="auto", timeout=20)
    try:
        assert [one.labels for one in client.containers.list(all=True)] == [{LABEL: LEASE}]
    finally:
        client.close()
    binary = docker_client_binary()
    if binary is None:
        pytest.skip("not run: no docker client is installed")
    shown = subprocess.run(
        [binary, "ps", "-a", "--format", "{{.Names}}"],
        env=engine.environment(),
        capture_output=True,
        check=True,
        text=True,
    )
    assert shown.stdout.split() == [NAME]


def test_a_wrapper_stands_in_for_create_alone(engine, tmp_path):
    if docker_client_binary() is None:
        pytest.skip("not run: no docker client is installed")
    engine.need_image(EMPTY_IMAGE)
    late = write_wrapper(tmp_path / "docker-late", '"$CLIENT" "$@" >/dev/null; exit 1')
    command = [late, "create", "--name", NAME, EMPTY_IMAGE, "none"]
    assert subprocess.run(command, env=engine.environment(), check=False).returncode == 1
    shown = subprocess.run(
        [late, "inspect", "--format", "{{.Name}}", NAME],
        env=engine.environment(),
        capture_output=True,
        check=True,
        text=True,
    )
    assert shown.stdout.strip() == f"/{NAME}"


def test_an_imported_image_is_empty_and_hands_its_labels_down(engine):
    image = engine.import_image("labelled:t", {LABEL: LEASE, "other": "a b"})
    found = engine.ask("GET", f"/images/{image}/json").json()
    assert (found["Size"], found["Config"]["Labels"]) == (0, {LABEL: LEASE, "other": "a b"})
    made = engine.create("stranger", {"own": "1"}, "labelled:t")
    assert engine.inspect(made)["Config"]["Labels"] == {LABEL: LEASE, "other": "a b", "own": "1"}


def test_assert_clean_sees_what_was_left_and_clear_removes_it(engine):
    engine.assert_clean()
    engine.create(NAME)
    with pytest.raises(AssertionError, match=NAME):
        engine.assert_clean()
    engine.clear()
    engine.import_image("left:t")
    with pytest.raises(AssertionError, match="left:t"):
        engine.assert_clean()
    engine.clear()
    engine.demand(201, "POST", "/volumes/create", {"Name": "left"})
    with pytest.raises(AssertionError, match="left"):
        engine.assert_clean()
    engine.clear()
    assert engine.inventory()["volumes"] == []


def test_a_graceful_restart_keeps_containers_and_changes_the_process(engine):
    made = engine.create(NAME)
    before = engine.pid
    inode = Path(engine.socket_path).stat().st_ino
    identity = engine.ask("GET", "/info").json()["ID"]
    engine.restart()
    assert engine.pid != before
    assert Path(engine.socket_path).stat().st_ino != inode
    assert engine.inspect(NAME)["Id"] == made
    assert engine.ask("GET", "/info").json()["ID"] == identity


def test_a_killed_engine_takes_its_containerd_along_and_can_be_started_again(engine):
    made = engine.create(NAME)
    before = engine.pid
    assert len(engine.processes()) == 2
    engine.kill()
    assert (engine.running, engine.processes()) == (False, [])
    engine.start()
    assert engine.pid != before
    assert engine.inspect(NAME)["Id"] == made


def test_a_killed_engine_can_leave_a_container_running(engine):
    engine.put("running", NAME)
    working = engine.inspect(NAME)["State"]["Pid"]
    engine.kill(spare_containers=True)
    assert working in engine.processes()
    engine.start()
    assert engine.state_of(NAME) == "exited"


def test_a_frozen_engine_answers_when_thawed_and_a_request_left_there_is_carried_out(engine):
    engine.need_image(EMPTY_IMAGE)
    engine.freeze()
    leave_request(engine.socket_path, *engine.create_request(NAME, {LABEL: LEASE}))  # fact 4
    with connect(engine.socket_path, 0.2) as client:
        client.sendall(encode("GET", "/_ping"))
        with pytest.raises(TimeoutError):
            read_reply(client)
    engine.thaw()
    assert engine.inspect(engine.wait_for(NAME))["Config"]["Labels"] == {LABEL: LEASE}


def test_a_request_at_a_killed_engine_is_lost(engine):
    engine.need_image(EMPTY_IMAGE)
    engine.freeze()
    leave_request(engine.socket_path, *engine.create_request(NAME))
    engine.kill()
    engine.start()  # fact 6
    assert engine.names() == []
    engine.create(NAME)


def test_a_client_stalled_in_mid_body_creates_after_the_fence_is_gone(engine):
    engine.need_image(EMPTY_IMAGE)
    with HalfRequest(engine.socket_path, *engine.create_request(NAME, {LABEL: LEASE})) as half:  # fact 8
        fence = engine.create(NAME)
        engine.demand(204, "DELETE", f"/containers/{fence}")
        assert engine.inspect(NAME) is None
        assert half.finish().status == 201
    assert engine.names() == [NAME]


def test_a_client_stalled_in_mid_body_is_refused_while_the_fence_stands_and_harmless_when_it_closes(engine):
    engine.need_image(EMPTY_IMAGE)
    with HalfRequest(engine.socket_path, *engine.create_request(NAME)) as half:
        fence = engine.create(NAME)
        assert half.finish().status == 409
    engine.demand(204, "DELETE", f"/containers/{fence}")
    with HalfRequest(engine.socket_path, *engine.create_request(NAME)):
        pass
    engine.create("other")
    assert engine.names() == ["other"]


def test_a_slow_create_has_its_name_reserved_and_cannot_be_seen(engine):
    with engine.slow_create(NAME, {LABEL: LEASE}) as gate:  # facts 2 and 3
        assert engine.inspect(NAME) is None
        assert engine.names() == []
        engine.need_image(EMPTY_IMAGE)
        quoted = conflict(engine).split('by container "')[1].split('"')[0]
        assert engine.inspect(quoted) is None
        gate.release()
        assert engine.wait_for(NAME) == quoted


def test_two_slow_creates_can_be_held_at_once_while_others_go_on(engine):
    with engine.slow_create("one") as first, engine.slow_create("two") as second:
        engine.create("quick")
        assert engine.names() == ["quick"]
        second.release()
        engine.wait_for("two")
        assert engine.inspect("one") is None
        first.release()
        engine.wait_for("one")


def test_a_gate_gives_way_at_the_end_of_its_block(engine):
    with engine.slow_create(NAME):
        pass
    engine.wait_for(NAME)


def test_an_engine_killed_during_a_slow_create_forgets_it(engine):
    with engine.slow_create(NAME):
        engine.kill()
        engine.start()  # fact 6
        assert engine.inspect(NAME) is None
        engine.create(NAME)


@pytest.mark.parametrize("state", STATES)
def test_a_container_can_be_put_into_each_state(engine, state):
    made = engine.put(state, NAME, {LABEL: LEASE})
    found = engine.inspect(made)
    assert found["Name"] == f"/{NAME}"
    assert found["Config"]["Labels"] == {LABEL: LEASE}
    if state in {"running", "paused"}:
        assert f"/{engine.cgroup}/{made}" in Path(f"/proc/{found['State']['Pid']}/cgroup").read_text()


def test_events_are_followed(engine):
    with EventFollower(engine.socket_path, type=["container"]) as events:
        made = engine.create(NAME, {LABEL: LEASE})
        event = events.next("create")
        assert (event["Actor"]["ID"], event["Actor"]["Attributes"][LABEL]) == (made, LEASE)
        engine.demand(204, "DELETE", f"/containers/{made}")
        assert events.next("destroy")["Actor"]["ID"] == made


def test_a_socket_activated_engine_carries_out_what_was_sent_before_it_started(
    engine_maker, tmp_path_factory
):
    with listening(tmp_path_factory.mktemp("l") / "s") as listener:  # fact 5
        engine = engine_maker(listener=listener)
        engine.start()
        engine.need_image(EMPTY_IMAGE)
        assert peer_pid(engine.socket_path) == os.getpid()
        inode = Path(engine.socket_path).stat().st_ino
        engine.stop()
        leave_request(engine.socket_path, *engine.create_request(NAME))
        engine.start()
        engine.wait_for(NAME)
        assert Path(engine.socket_path).stat().st_ino == inode


def test_two_engines_can_report_one_identity(engine, engine_maker):
    twin = engine_maker(key_file=engine.key_file)  # fact 11
    twin.start()
    assert twin.ask("GET", "/info").json()["ID"] == engine.ask("GET", "/info").json()["ID"]
    assert twin.data_root != engine.data_root


def assert_nothing_left(engine):
    assert not engine.running
    assert engine.leftovers() == []
    assert not engine.directory.exists()


def test_it_leaves_nothing_when_a_test_fails_with_a_running_container_and_a_frozen_engine():
    reason = why_not_here()
    if reason is not None:
        pytest.skip(reason)

    def failing():
        with private_engine() as engine:
            seen.append(engine)
            engine.start()
            engine.put("running", NAME)
            engine.put("dead", "dead")
            engine.freeze()
            pytest.fail("as planned")

    seen = []
    with pytest.raises(pytest.fail.Exception, match="as planned"):
        failing()
    assert_nothing_left(seen[0])


def test_it_leaves_nothing_when_it_was_killed_with_a_running_container(engine_maker):
    engine = engine_maker()
    engine.start()
    engine.put("running", NAME)
    assert len(engine.processes()) == 4
    engine.kill()
    engine.close()
    assert_nothing_left(engine)


def test_an_engine_that_cannot_start_says_why(engine_maker):
    engine = engine_maker()
    engine.data_root.write_text("a file where the data should be")
    with pytest.raises(EngineError, match="ended by itself"):
        engine.start()
    engine.close()
    assert_nothing_left(engine)


def test_an_engine_dies_with_the_process_that_started_it():
    reason = why_not_here()
    if reason is not None:
        pytest.skip(reason)
    script = (
        "import sys; from tests.support.engine import PrivateEngine; e = PrivateEngine(); e.start(); "
        "print(e.directory, e.pid, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script]
    starter = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )
    with starter:
        directory, pid = starter.stdout.readline().split()
        watch = os.pidfd_open(int(pid))
        try:
            starter.kill()
            poll = select.poll()
            poll.register(watch, select.POLLIN)
            assert poll.poll(20_000), "the engine outlives its starter"
        finally:
            os.close(watch)
            shutil.rmtree(directory, ignore_errors=True)


def test_the_double_answers_as_the_engine_does(engine, tmp_path_factory):
    with daemon_double(tmp_path_factory.mktemp("d") / "s") as double:
        for path in (engine.socket_path, double.socket_path):
            assert ask(path, "POST", "/images/create?fromSrc=-&repo=both&tag=t", bytes(1024)).status == 200
        requests = [
            ("GET", "/_ping", None),
            ("HEAD", "/_ping", None),
            ("GET", "/v1.52/version", None),
            ("GET", "/v1.11/version", None),
            ("GET", "/nonsense", None),
            ("GET", "/containers/json?all=1", None),
            ("GET", "/containers/one/json", None),
            ("POST", "/containers/create?name=one", {"Image": "none", "Cmd": ["none"]}),
            ("POST", "/containers/create?name=one", {"Image": "both:t"}),
            (
                "POST",
                "/containers/create?name=one",
                {"Image": "both:t", "Cmd": ["none"], "Labels": {"a": "b"}},
            ),
            ("POST", "/containers/create?name=one", {"Image": "both:t", "Cmd": ["none"]}),
            ("POST", "/containers/create?name=one-old", {"Image": "both:t", "Cmd": ["none"]}),
            ("GET", "/containers/one/json", None),
            ("GET", '/containers/json?all=1&filters={"name":["one"]}', None),
            ("GET", '/containers/json?all=1&filters={"label":["a=b"]}', None),
            ("GET", '/containers/json?all=1&filters={"unknown":["a"]}', None),
            ("GET", "/containers/json", None),
            ("GET", "/images/both:t/json", None),
            ("DELETE", "/containers/one?v=1", None),
            ("DELETE", "/containers/one", None),
            ("DELETE", "/containers/one-old", None),
            ("DELETE", "/images/both:t", None),
            ("DELETE", "/images/both:t", None),
        ]
        for request in requests:
            assert essence(double.socket_path, *request) == essence(engine.socket_path, *request), request


def essence(path, method, target, body):
    """Give what of an answer does not depend on ids, times and machine."""
    reply = ask(path, method, target, body)
    message = reply.message if reply.status >= 400 else ""
    message = " ".join("ID" if len(word.strip('".')) == 64 else word for word in message.split())
    shown = []
    if reply.status == 200 and target.startswith("/containers") and method == "GET":
        value = reply.json()
        if isinstance(value, list):
            shown = sorted((one["Names"], one["State"], one["Labels"]) for one in value)
        else:
            shown = [value["Name"], value["State"], value["Config"]["Labels"], value["Config"]["Cmd"]]
    return reply.status, reply.headers.get("content-type"), reply.headers.get("api-version"), message, shown


def test_what_is_missing_is_said(monkeypatch):
    from tests.support import engine_process

    monkeypatch.setattr(engine_process.os, "geteuid", lambda: 1000)
    assert why_not_here() == "not run: a private Docker Engine needs uid 0"
    monkeypatch.setattr(engine_process.os, "geteuid", lambda: 0)
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "CapEff:\t0000000000000000\n")
    assert why_not_here() == "not run: a private Docker Engine needs CAP_SYS_ADMIN"
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "CapEff:\t000001ffffffffff\n")
    monkeypatch.setattr(engine_process, "_which", lambda program: None if program == "dockerd" else "/bin/x")
    assert why_not_here() == "not run: dockerd is not installed (package docker.io)"
