"""Whether a question would start an engine, over a made-up /proc: who holds the listener, and who might."""

import os
from pathlib import Path

import pytest

from symbi_recover.read.daemon import activation
from symbi_recover.read.daemon.activation import engine_runs, waits_for_start
from symbi_recover.read.daemon.sockets import NoListener, UnixSocket
from symbi_recover.read.evidence.kernel import CannotKnow, Gone, Why

INODE = 77
LISTENER = UnixSocket(INODE, 1, 10, b"/run/docker.sock", 5, 6, 0)
HIDDEN = CannotKnow(Why.DENIED, "its descriptors cannot be listed")
SYSTEMD, ENGINE, OTHER = (1, "systemd"), (40, "dockerd"), (50, "bash")


class Processes:
    """Some processes, by number: a name, and whether it holds the listener (or why that cannot be told)."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, proc: Path) -> None:
        self.proc = proc
        self.holds: dict[int, bool | Gone | CannotKnow] = {}
        self.whole: bool = True
        monkeypatch.setattr(activation, "ask_listener", lambda *_, **__: LISTENER)
        monkeypatch.setattr(activation, "holds_socket", lambda pid, *_: self.holds[pid])
        monkeypatch.setattr(activation, "sees_whole_host", lambda _: self.whole)

    def add(self, process: tuple[int, str], held: bool | Gone | CannotKnow) -> None:
        pid, name = process
        folder = self.proc / str(pid)
        folder.mkdir()
        fields = ["S", "1", "1", "1", *["0"] * 15, "1", *["0"] * 30]
        (folder / "stat").write_text(f"{pid} ({name}) {' '.join(fields)}\n")
        self.holds[pid] = held

    def waits(self, init: int = 1) -> bool | CannotKnow:
        return waits_for_start("/run/docker.sock", init=init, pids=self.pids, proc=os.fspath(self.proc))

    def pids(self, _: str) -> tuple[int, ...]:
        return tuple(self.holds)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Processes:
    return Processes(monkeypatch, tmp_path)


def test_a_listener_that_init_alone_holds_waits(seen: Processes) -> None:
    seen.add(SYSTEMD, held=True)
    seen.add(OTHER, held=False)
    assert seen.waits() is True


def test_a_listener_that_an_engine_holds_as_well_does_not(seen: Processes) -> None:
    seen.add(SYSTEMD, held=True)
    seen.add(ENGINE, held=True)
    assert seen.waits() is False


def test_another_engine_on_the_host_does_not_serve_it(seen: Processes) -> None:
    seen.add(SYSTEMD, held=True)
    seen.add(ENGINE, held=False)
    assert seen.waits() is True


def test_a_listener_that_no_starter_holds_is_somebody_s_own(seen: Processes) -> None:
    """A proxy, or a double: a question starts nothing by itself."""
    seen.add(SYSTEMD, held=False)
    seen.add(OTHER, held=True)
    assert seen.waits() is False


def test_the_starter_of_an_account_counts_as_well(seen: Processes) -> None:
    seen.add(SYSTEMD, held=False)
    seen.add((60, "systemd"), held=True)
    assert seen.waits() is True


@pytest.mark.parametrize(("engine", "answer"), [(False, True), (True, HIDDEN)])
def test_without_rights_an_engine_that_runs_leaves_it_open_and_none_is_taken_for_asleep(
    seen: Processes, engine: bool, answer: bool | CannotKnow
) -> None:
    seen.add(SYSTEMD, held=HIDDEN)
    seen.add(OTHER, held=HIDDEN)
    if engine:
        seen.add(ENGINE, held=HIDDEN)
    assert seen.waits() == answer


def test_without_rights_a_listener_of_ones_own_is_still_seen_to_serve(seen: Processes) -> None:
    seen.add(SYSTEMD, held=HIDDEN)
    seen.add(OTHER, held=True)
    assert seen.waits() is False


@pytest.mark.parametrize(("engine", "answer"), [(False, True), (True, HIDDEN)])
def test_one_process_that_hides_counts_only_beside_an_engine(
    seen: Processes, engine: bool, answer: bool | CannotKnow
) -> None:
    seen.add(SYSTEMD, held=True)
    seen.add(OTHER, held=HIDDEN)
    if engine:
        seen.add(ENGINE, held=False)
    assert seen.waits() == answer


def test_a_process_that_ended_meanwhile_holds_nothing(seen: Processes) -> None:
    seen.add(SYSTEMD, held=True)
    seen.add(OTHER, held=Gone(50))
    assert seen.waits() is True


@pytest.mark.parametrize("whole", [True, False])
def test_the_first_process_of_a_container_may_be_any_program(seen: Processes, whole: bool) -> None:
    seen.add((1, "haproxy"), held=True)
    seen.whole = whole
    assert seen.waits() is whole


@pytest.mark.parametrize("answer", [NoListener(), CannotKnow(Why.DENIED, "the sockets cannot be listed")])
def test_without_a_known_listener_there_is_no_answer(
    seen: Processes, monkeypatch: pytest.MonkeyPatch, answer: NoListener | CannotKnow
) -> None:
    seen.add(SYSTEMD, held=True)
    monkeypatch.setattr(activation, "ask_listener", lambda *_, **__: answer)
    assert isinstance(seen.waits(), CannotKnow)


def test_an_engine_is_seen_by_its_name_alone(seen: Processes) -> None:
    seen.add(OTHER, held=HIDDEN)
    assert not engine_runs(pids=seen.pids, proc=os.fspath(seen.proc))
    seen.add(ENGINE, held=HIDDEN)
    assert engine_runs(pids=seen.pids, proc=os.fspath(seen.proc))
