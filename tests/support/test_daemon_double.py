"""The daemon double answers like an engine, plays each fault, and records what it was asked."""

import http.client
import json
import tempfile
from pathlib import Path

import docker
import pytest

from tests.support.daemon_behaviours import (
    AS_USUAL,
    MEBIBYTE,
    Answer,
    Bytes,
    Dripping,
    HalfThenClose,
    HeadersOnly,
    Held,
    Huge,
    Silent,
    WrongLength,
    failure,
)
from tests.support.daemon_double import daemon_double
from tests.support.daemon_world import STATES, World
from tests.support.unix_http import (
    EventFollower,
    HalfRequest,
    UnixConnection,
    ask,
    connect,
    encode,
    leave_request,
    read_reply,
    target,
)

NAME = "symbi-6b1f0c64-0f0e-4a53-8f52-3d1f2a7c9b10"
LABEL = "ai.symbiont.lease"
LEASE = NAME.removeprefix("symbi-")
COMMAND = {"Image": "empty", "Cmd": ["none"]}


@pytest.fixture
def double():
    with tempfile.TemporaryDirectory(prefix="dd") as directory, daemon_double(f"{directory}/s") as running:
        yield running


def listing(double, **filters):
    reply = ask(double.socket_path, "GET", target("/containers/json", all=1, filters=filters))
    return [one["Names"][0] for one in reply.json()]


def until_silence(double, path="/version"):
    """Give what arrives before a quarter of a second passes without a byte, and whether the stream ended."""
    received = b""
    with connect(double.socket_path, 0.25) as client:
        client.sendall(encode("GET", path))
        try:
            while more := client.recv(65536):
                received += more
        except TimeoutError:
            return received, "open"
    return received, "closed"


def test_the_docker_package_works_with_it(double):
    double.world.add(NAME, {LABEL: LEASE})
    client = docker.DockerClient(base_url=double.base_url, version="auto", timeout=5)
    try:
        assert client.ping()
        assert client.version()["Components"][0]["Name"] == "Engine"
        assert client.info()["DockerRootDir"] == "/var/lib/docker"
        assert [one.name for one in client.containers.list(all=True, filters={"label": LABEL})] == [NAME]
        found = client.containers.get(NAME)
        assert (found.labels, found.status) == ({LABEL: LEASE}, "created")
        with pytest.raises(docker.errors.NotFound):
            client.containers.get("nobody")
    finally:
        client.close()
    double.assert_only_gets()


def test_the_docker_package_can_make_and_remove_a_fence_on_it(double):
    client = docker.DockerClient(base_url=double.base_url, version="auto", timeout=5)
    try:
        client.api.import_image_from_data(
            b"\0" * 1024, repository="fence", tag="t", changes=['LABEL "k"="v"']
        )
        made = client.containers.create("fence:t", ["none"], name=NAME, use_config_proxy=False)
        assert made.labels == {"k": "v"}
        with pytest.raises(docker.errors.APIError, match="image is being used by stopped container"):
            client.images.remove(made.attrs["Config"]["Image"])
        made.remove()
        client.images.remove("fence:t")
    finally:
        client.close()
    assert (double.world.containers, double.world.images) == ([], [])
    with pytest.raises(AssertionError, match="POST"):
        double.assert_only_gets()


def test_requests_are_recorded_whole(double):
    double.world.add_image("empty:latest")
    reply = ask(double.socket_path, "POST", target("/v1.41/containers/create", name=NAME), COMMAND)
    assert reply.status == 201
    (request,) = double.requests
    assert (request.method, request.path, request.version) == ("POST", "/containers/create", "1.41")
    assert request.query == {"name": (NAME,)}
    assert json.loads(request.body) == COMMAND
    assert double.asked("POST", "/containers/*") == (request,)
    assert double.asked("DELETE") == ()


def test_a_chunked_body_is_read(double):
    with connect(double.socket_path) as client:
        client.sendall(b"POST /images/create?repo=a&tag=t HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        client.sendall(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        assert read_reply(client).status == 200
    assert double.requests[0].body == b"abcde"


def test_a_connection_is_used_again(double):
    with connect(double.socket_path) as client:
        for _ in range(3):
            client.sendall(encode("GET", "/_ping"))
            assert read_reply(client).body == b"OK"
    assert (len(double.requests), double.connections) == (3, 1)
    double.wait_until_idle()


def test_a_half_request_is_answered_only_when_finished(double):
    double.world.add_image("empty:latest")
    with HalfRequest(double.socket_path, "POST", target("/containers/create", name=NAME), COMMAND) as half:
        assert ask(double.socket_path, "GET", f"/containers/{NAME}/json").status == 404
        assert half.finish().status == 201
    with HalfRequest(double.socket_path, "POST", target("/containers/create", name="other"), COMMAND):
        pass
    double.wait_until_idle()
    assert [one.name for one in double.world.containers] == [NAME]


def test_a_request_left_behind_is_carried_out(double):
    double.world.add_image("empty:latest")
    leave_request(double.socket_path, "POST", target("/containers/create", name=NAME), COMMAND)
    double.wait_for_requests(1)
    double.wait_until_idle()
    assert [one.name for one in double.world.containers] == [NAME]


def test_errors_have_the_words_of_the_engine(double):
    holder = double.world.add(NAME)
    missing = ask(double.socket_path, "POST", target("/containers/create", name=NAME), COMMAND)
    assert (missing.status, missing.message) == (404, "No such image: empty:latest")
    double.world.add_image("empty:latest")
    taken = ask(double.socket_path, "POST", target("/containers/create", name=NAME), COMMAND)
    assert taken.status == 409
    assert taken.message.startswith(
        f'Conflict. The container name "/{NAME}" is already in use by container "'
    )
    assert holder.id in taken.message
    no_command = ask(double.socket_path, "POST", "/containers/create", {"Image": "empty"})
    assert (no_command.status, no_command.message) == (400, "No command specified")
    assert ask(double.socket_path, "GET", "/nonsense").message == "page not found"


def test_a_reserved_name_is_taken_and_nobody_is_there(double):
    double.world.add_image("empty:latest")
    quoted = double.world.reserve(NAME)
    assert ask(double.socket_path, "GET", f"/containers/{NAME}/json").status == 404
    assert listing(double) == []
    create = ask(double.socket_path, "POST", target("/containers/create", name=NAME), COMMAND)
    assert create.status == 409
    assert quoted in create.message
    assert ask(double.socket_path, "GET", f"/containers/{quoted}/json").status == 404


@pytest.mark.parametrize("questions", [0, 1, 5])
def test_a_late_container_appears_after_so_many_questions(double, questions):
    late = double.world.add(NAME, {LABEL: LEASE}, status="running", hidden_for=questions + 1)
    for _ in range(questions):
        assert ask(double.socket_path, "GET", f"/containers/{NAME}/json").status == 404
    reply = ask(double.socket_path, "GET", f"/containers/{NAME}/json")
    assert (reply.status, reply.json()["Id"]) == (200, late.id)


def test_a_name_filter_matches_parts_of_names(double):
    for name in (NAME, f"{NAME}-old", f"x-{NAME}", "other"):
        double.world.add(name, {LABEL: name})
    assert sorted(listing(double, name=[NAME])) == sorted([f"/{NAME}", f"/{NAME}-old", f"/x-{NAME}"])
    assert listing(double, name=[f"^/{NAME}$"]) == [f"/{NAME}"]
    assert listing(double, label=[f"{LABEL}={NAME}"]) == [f"/{NAME}"]
    assert len(listing(double, label=[LABEL])) == 4
    assert listing(double, label=[f"{LABEL}=none"]) == []


def test_references_mean_id_then_name_then_prefix(double):
    full = double.world.add("one", id="ab" * 32)
    double.world.add("two", id="ac" * 32)
    shadow = double.world.add(full.id[:12])
    twin = double.world.add(full.id + "0", id="ad" * 32)

    def found(reference):
        reply = ask(double.socket_path, "GET", f"/containers/{reference}/json")
        return reply.json()["Id"] if reply.status == 200 else reply.status

    assert found(full.id) == full.id
    assert found(full.id[:12]) == shadow.id
    assert found(full.id[:13]) == full.id
    assert found(twin.name) == twin.id
    assert found("a") == 500


@pytest.mark.parametrize("status", [*STATES, "hibernating"])
def test_each_state_is_shown(double, status):
    container = double.world.add(NAME, status=status)
    state = ask(double.socket_path, "GET", f"/containers/{container.id}/json").json()["State"]
    assert state["Status"] == status
    assert state["Running"] is (status in {"running", "paused", "restarting"})
    assert state["Dead"] is (status == "dead")
    listed = ask(double.socket_path, "GET", target("/containers/json", all=1)).json()
    assert [one["State"] for one in listed] == [status]


def test_a_running_container_is_removed_only_by_force(double):
    container = double.world.add(NAME, status="running")
    assert ask(double.socket_path, "DELETE", f"/containers/{container.id}").status == 409
    assert ask(double.socket_path, "DELETE", f"/containers/{container.id}?force=1&v=1").status == 204
    assert ask(double.socket_path, "DELETE", f"/containers/{container.id}").status == 404


@pytest.mark.parametrize(
    ("api", "minimum", "asked", "message"),
    [
        ("1.24", "1.12", "1.41", "client version 1.41 is too new. Maximum supported API version is 1.24"),
        ("1.41", "1.12", "1.52", "client version 1.52 is too new. Maximum supported API version is 1.41"),
        ("1.52", "1.44", "1.41", "client version 1.41 is too old. Minimum supported API version is 1.44,"),
        ("1.41", "1.12", "1.11", "client version 1.11 is too old. Minimum supported API version is 1.12,"),
        ("1.52", "1.44", "1.44", ""),
    ],
)
def test_versions_outside_the_range_are_refused(tmp_path_factory, api, minimum, asked, message):
    path = tmp_path_factory.mktemp("d") / "s"
    with daemon_double(path, World(api, minimum)) as double:
        reply = ask(double.socket_path, "GET", f"/v{asked}/containers/{NAME}/json")
        assert reply.status == (400 if message else 404)
        assert reply.message.startswith(message or "No such container")
        assert ask(double.socket_path, "GET", "/version").json()["ApiVersion"] == api


def test_rules_give_their_behaviours_in_turn_and_keep_the_last(double):
    double.on("GET", "/version", failure(500), AS_USUAL, failure(503, "starting"))
    statuses = [ask(double.socket_path, "GET", "/v1.41/version").status for _ in range(4)]
    assert statuses == [500, 200, 503, 503]
    assert ask(double.socket_path, "GET", "/_ping").status == 200


def test_a_rule_may_look_at_the_request(double):
    double.on("*", "/containers/*", lambda request: Answer({"saw": request.method}, 418))
    assert ask(double.socket_path, "DELETE", "/containers/x").json() == {"saw": "DELETE"}


def test_silence_and_headers_only_keep_the_connection(double):
    double.on("GET", "/version", Silent(), HeadersOnly(length=77))
    assert until_silence(double) == (b"", "open")
    received, end = until_silence(double)
    assert (end, received[-4:]) == ("open", b"\r\n\r\n")
    assert b"Content-Length: 77\r\n" in received


def test_a_dripping_answer_is_whole_in_the_end_and_comes_in_bytes(double):
    double.on("GET", "/version", Dripping(Answer({"a": 1}), interval=0.001))
    with connect(double.socket_path) as client:
        client.sendall(encode("GET", "/version"))
        first = client.recv(65536)
        rest = b""
        while b'{"a":1}' not in rest:
            rest += client.recv(65536)
    assert len(first) < 20
    assert (first + rest).startswith(b"HTTP/1.1 200")


def test_a_slow_drip_ends_with_the_double(tmp_path_factory):
    with daemon_double(tmp_path_factory.mktemp("d") / "s") as double:
        double.on("GET", "/version", Dripping(Answer({}), interval=3600))
        client = connect(double.socket_path)
        with client:
            client.sendall(encode("GET", "/version"))
            assert client.recv(65536) == b"H"
            double.close()


def test_half_an_answer_ends_in_an_incomplete_read(double):
    double.on("GET", "/version", HalfThenClose(Answer({"a": "b" * 100})))
    with pytest.raises(http.client.IncompleteRead):
        ask(double.socket_path, "GET", "/version")


def test_malformed_json_arrives_as_it_is(double):
    double.on("GET", "/version", Answer(b'{"Id": '))
    reply = ask(double.socket_path, "GET", "/version")
    assert (reply.status, reply.body) == (200, b'{"Id": ')


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 200", b"\0\xff\r\n\r\n"])
def test_any_bytes_can_be_the_answer(double, data):
    double.on("GET", "/version", Bytes(data))
    assert until_silence(double) == (data, "closed")


def test_wrong_lengths_are_sent(double):
    double.on(
        "GET", "/version", WrongLength(Answer(b'{"a":1}'), by=10), WrongLength(Answer(b'{"a":1}'), by=-3)
    )
    with pytest.raises(http.client.IncompleteRead):
        ask(double.socket_path, "GET", "/version")
    assert ask(double.socket_path, "GET", "/version").body == b'{"a"'


def test_a_huge_answer_has_its_length(double):
    double.on("GET", "/version", Huge(8 * MEBIBYTE + 5))
    body = ask(double.socket_path, "GET", "/version").body
    assert len(body) == 8 * MEBIBYTE + 5
    assert json.loads(body).strip("a") == ""


def test_an_endless_answer_goes_on_until_the_client_goes(double):
    double.on("GET", "/version", Huge(None))
    connection = UnixConnection(double.socket_path)
    connection.request("GET", "/version")
    response = connection.getresponse()
    assert len(response.read(4 * MEBIBYTE)) == 4 * MEBIBYTE
    response.close()
    connection.close()
    double.wait_until_idle()
    assert double.bytes_sent >= 4 * MEBIBYTE


def test_a_held_answer_comes_when_the_test_says_so(double):
    held = Held()
    double.on("GET", "/version", held, AS_USUAL)
    with connect(double.socket_path) as client:
        client.sendall(encode("GET", "/version"))
        assert held.reached.wait(10)
        assert ask(double.socket_path, "GET", "/version").status == 200
        held.release()
        assert read_reply(client).status == 200


def test_events_can_be_scripted(double):
    line = json.dumps({"Type": "container", "Action": "create"}).encode() + b"\n"
    double.on("GET", "/events", Answer(line))
    with EventFollower(double.socket_path, type=["container"]) as events:
        assert events.next("create")["Type"] == "container"
    assert double.requests[0].filters() == {"type": ("container",)}


def test_closing_ends_threads_and_removes_the_socket_also_with_clients_there(tmp_path_factory):
    path = tmp_path_factory.mktemp("d") / "s"
    with daemon_double(path) as double:
        double.on("GET", "/version", Silent())
        client = connect(double.socket_path)
        client.sendall(encode("GET", "/version"))
        double.wait_for_requests(1)
        assert path.is_socket()
    with client:
        assert client.recv(1) == b""
    assert not Path(path).exists()
    assert not any(thread.is_alive() for thread in double._threads)
