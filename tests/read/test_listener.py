"""Which engine serves a socket, over a made-up /proc: the code of every answer of the kernel (section 18.4)."""

import os
from pathlib import Path

import pytest

from symbi_recover.core.codes import CODES
from symbi_recover.core.findings import Severity
from symbi_recover.read.daemon import listener
from symbi_recover.read.daemon.listener import Listener, find_engine
from symbi_recover.read.daemon.sockets import NoListener, UnixSocket
from symbi_recover.read.evidence.kernel import CannotKnow, Why

PATH = "/nonexistent/docker.sock"
ONE = UnixSocket(77, 1, 10, b"/run/docker.sock", 5, 6, 0)
ENGINE, OTHER_ENGINE, PROXY = (40, "dockerd"), (41, "dockerd"), (50, "socat")


@pytest.fixture
def proc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(listener, "ask_listener", lambda *_: ONE)
    monkeypatch.setattr(listener, "holds_socket", lambda *_: True)
    return tmp_path


def find(proc: Path, *processes: tuple[int, str], owner: int | None = ENGINE[0]) -> Listener:
    for pid, name in processes:
        (proc / str(pid)).mkdir()
        fields = ["S", "1", "1", "1", *["0"] * 15, "1", *["0"] * 30]
        (proc / str(pid) / "stat").write_text(f"{pid} ({name}) {' '.join(fields)}\n")
    return find_engine(PATH, owner, os.fspath(proc), pids=lambda _: tuple(pid for pid, _ in processes))


def test_the_one_engine_that_holds_its_own_listener_is_known(proc: Path) -> None:
    found = find(proc, ENGINE, PROXY)
    assert (found.code, found.engine_pid, found.socket_inode) == (None, ENGINE[0], 77)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (NoListener(), "engine_ambiguous"),
        (CannotKnow(Why.AMBIGUOUS, "2 sockets listen on the file"), "engine_ambiguous"),
        (CannotKnow(Why.UNSUPPORTED, "this kernel cannot list Unix sockets"), "census_unreadable"),
        (CannotKnow(Why.DENIED, "the sockets cannot be listed"), "engine_unseen"),
        (CannotKnow(Why.UNSTABLE, "the sockets changed while they were listed"), "engine_unseen"),
    ],
)
def test_without_exactly_one_listener_on_the_file_no_engine_is_known(
    proc: Path, monkeypatch: pytest.MonkeyPatch, answer: NoListener | CannotKnow, code: str
) -> None:
    """None or several are ambiguous; without the kernel's list the census could not be taken either."""
    monkeypatch.setattr(listener, "ask_listener", lambda *_: answer)
    found = find(proc, ENGINE)
    assert (found.code, found.engine_pid) == (code, None)
    assert CODES[code].severity in (Severity.ATTENTION, Severity.INFO)


def test_other_owners_and_other_engines_are_named(proc: Path) -> None:
    assert find(proc, ENGINE, PROXY, owner=PROXY[0]).code == "endpoint_proxied"
    assert find_engine(PATH, None, os.fspath(proc)).code == "engine_unseen"


def test_several_engines_are_ambiguous(proc: Path) -> None:
    assert find(proc, ENGINE, OTHER_ENGINE).code == "engine_ambiguous"


def test_an_engine_that_does_not_hold_the_listener_is_ambiguous(
    proc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "holds_socket", lambda *_: False)
    assert find(proc, ENGINE).code == "engine_ambiguous"
