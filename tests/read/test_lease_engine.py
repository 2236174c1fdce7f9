"""Asking a daemon: GET only, one budget of time and bytes, and no fault that looks like absence (F-123, F-127)."""

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from symbi_recover.read.daemon.engine import DockerEngine
from symbi_recover.read.daemon.questions import DaemonError
from tests.support.daemon_behaviours import (
    Answer,
    Behaviour,
    Bytes,
    Dripping,
    HalfThenClose,
    HeadersOnly,
    Huge,
    Silent,
    WrongLength,
    failure,
)
from tests.support.daemon_double import DaemonDouble, daemon_double
from tests.support.daemon_world import World

LABEL = "ai.symbiont.lease"
NAME = "symbi-6b1f0c64-0f0e-4a53-8f52-3d1f2a7c9b10"
Make = Callable[..., DockerEngine]


@pytest.fixture
def socket_path() -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="sd", dir="/tmp")
    yield f"{folder}/d.sock"
    shutil.rmtree(folder)


@pytest.fixture
def daemon(socket_path: str) -> Iterator[DaemonDouble]:
    with daemon_double(socket_path) as double:
        yield double


@pytest.fixture
def make(socket_path: str) -> Iterator[Make]:
    made: list[DockerEngine] = []

    def connect(seconds: float = 5.0, path: str = socket_path) -> DockerEngine:
        made.append(DockerEngine(path, seconds=seconds))
        return made[-1]

    yield connect
    for engine in made:
        engine.close()


def test_questions_are_gets_on_connections_that_end(daemon: DaemonDouble, make: Make) -> None:
    container = daemon.world.add(NAME, {LABEL: "x"}, status="running", pid=7)
    engine = make()
    assert engine.facts().asked_api_version == "1.41"
    seen = engine.inspect(NAME)
    assert seen is not None
    assert (seen.id, seen.name, seen.state, seen.pid) == (container.id, NAME, "running", 7)
    assert [one.id for one in engine.labelled(LABEL, "x")] == [container.id]
    assert engine.listener_pid() == os.getpid()
    daemon.assert_only_gets()
    daemon.wait_until_idle()


def test_a_404_about_the_container_is_the_only_absence(daemon: DaemonDouble, make: Make) -> None:
    assert make().inspect("nobody") is None
    for status, message in ((404, "page not found"), (404, ""), (410, "No such container: nobody")):
        daemon.on("GET", "/containers/*/json", failure(status, message))
        with pytest.raises(DaemonError):
            make().inspect("nobody")


@pytest.mark.parametrize(
    ("behaviour", "code", "stage"),
    [
        (Silent(), "daemon_slow", "headers"),
        (HeadersOnly(), "daemon_slow", "body"),
        (Dripping(Answer({"Id": "x" * 50}), 0.02), "daemon_slow", "headers"),
        (HalfThenClose(Answer({"Id": "x" * 100})), "daemon_malformed", "body"),
        (WrongLength(Answer({"Id": "x"}), 5), "daemon_malformed", "body"),
        (WrongLength(Answer({"Id": "x"}), -2), "daemon_malformed", "answer"),
        (Huge(), "daemon_oversized", "body"),
        (Huge(None), "daemon_oversized", "body"),
        (Bytes(), "daemon_malformed", "headers"),
        (Bytes(b"SSH-2.0-x\r\n"), "daemon_malformed", "headers"),
        (Bytes(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200_000), "daemon_malformed", "headers"),
        (failure(503, "starting"), "daemon_failed", "answer"),
        (failure(500), "daemon_failed", "answer"),
        (failure(400, "client version 1.41 is too new"), "daemon_failed", "answer"),
        (failure(400, "Minimum supported API version is 1.44"), "daemon_version", "answer"),
        (Answer(b"<html>No such container</html>", 404), "daemon_failed", "answer"),
        (Answer(b"{"), "daemon_malformed", "answer"),
        (Answer({}), "daemon_malformed", "answer"),
        (Answer([]), "daemon_malformed", "answer"),
        (Answer(b'{"Id":"a","Id":"b"}'), "daemon_malformed", "answer"),
        (Answer(None, 301, headers={"Location": "http://127.0.0.1:1/x"}), "daemon_failed", "answer"),
        (Answer(b"x", headers={"Content-Encoding": "gzip"}), "daemon_malformed", "body"),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "play") else str(value),
)
def test_every_fault_ends_soon_and_says_where(
    daemon: DaemonDouble, make: Make, behaviour: Behaviour, code: str, stage: str
) -> None:
    daemon.on("GET", "/containers/*/json", behaviour)
    engine = make(0.4)
    begun = time.monotonic()
    with pytest.raises(DaemonError) as caught:
        engine.inspect(NAME)
    assert time.monotonic() - begun < 3
    assert (caught.value.code, caught.value.stage) == (code, stage)
    daemon.assert_only_gets()


def test_a_huge_answer_is_cut_off_early(daemon: DaemonDouble, make: Make) -> None:
    daemon.on("GET", "/containers/*/json", Huge())
    with pytest.raises(DaemonError):
        make().inspect(NAME)
    daemon.wait_until_idle()
    assert daemon.bytes_sent < 20 << 20


@pytest.mark.parametrize(
    ("api", "minimum", "asked"),
    [("1.24", "1.12", "1.24"), ("1.41", "1.12", "1.41"), ("1.44", "1.24", "1.44"), ("1.52", "1.44", "1.44")],
)
def test_a_version_that_both_know_is_used(
    make: Make, socket_path: str, api: str, minimum: str, asked: str
) -> None:
    with daemon_double(socket_path, World(api, minimum)) as double:
        double.world.add(NAME)
        engine = make()
        assert engine.inspect(NAME) is not None
        assert engine.facts().asked_api_version == asked


@pytest.mark.parametrize(("api", "minimum"), [("1.23", "1.12"), ("1.60", "1.45"), ("x", "1.12")])
def test_a_daemon_without_a_common_version_is_never_an_absent_container(
    make: Make, socket_path: str, api: str, minimum: str
) -> None:
    world = World()
    world.version |= {"ApiVersion": api, "MinAPIVersion": minimum}
    with daemon_double(socket_path, world), pytest.raises(DaemonError) as caught:
        make().inspect(NAME)
    assert caught.value.code in {"daemon_version", "daemon_malformed"}


def test_a_missing_socket_and_one_nobody_serves_are_away(make: Make, socket_path: str) -> None:
    with pytest.raises(DaemonError) as caught:
        make().facts()
    assert caught.value.code == "daemon_away"
    Path(socket_path).write_bytes(b"")
    with pytest.raises(DaemonError) as caught:
        make().facts()
    assert (caught.value.code, caught.value.stage) == ("daemon_away", "connect")


def test_nothing_of_the_operators_own_client_takes_part(
    daemon: DaemonDouble, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F-125: no header, proxy or address of the current environment."""
    daemon.world.add(NAME)
    config = tmp_path / "config.json"
    config.write_text(
        '{"HttpHeaders":{"X-Own":"1"},"proxies":{"default":{"httpProxy":"http://127.0.0.1:1"}}}'
    )
    for name, value in (
        ("DOCKER_CONFIG", str(tmp_path)),
        ("DOCKER_HOST", "tcp://127.0.0.1:1"),
        ("DOCKER_CONTEXT", "other"),
        ("HTTP_PROXY", "http://127.0.0.1:1"),
        ("ALL_PROXY", "http://127.0.0.1:1"),
    ):
        monkeypatch.setenv(name, value)
    assert make().inspect(NAME) is not None
    assert all("x-own" not in one.headers for one in daemon.requests)


def test_references_are_quoted_into_the_path(daemon: DaemonDouble, make: Make) -> None:
    with contextlib.suppress(DaemonError):
        make().inspect("../../info")
    assert any("%2F" in one.target for one in daemon.requests)
    assert not any("/containers/../" in one.target for one in daemon.requests)
