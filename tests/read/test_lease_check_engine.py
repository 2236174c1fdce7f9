"""`lease check` against a private real engine: what the double says is what an engine says."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from symbi_recover.core.leases import LeaseCheck
from symbi_recover.read.daemon.engine import DockerEngine
from symbi_recover.read.daemon.listener import find_engine
from symbi_recover.read.verify.lease_check import Checker, check_store
from symbi_recover.read.verify.lease_judge import judge
from symbi_recover.read.verify.lease_store import read_store
from tests.support.engine import STATES, PrivateEngine
from tests.support.writer import lease as made

pytestmark = pytest.mark.engine
LEASE = made.LEASE
NAME = f"symbi-{LEASE}"
OWN = {"ai.symbiont.lease": LEASE}


@pytest.fixture
def store() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="sc", dir="/tmp"))
    yield folder / "s"
    shutil.rmtree(folder)


def check(store: Path, engine: PrivateEngine, container: str | None = None) -> LeaseCheck:
    state = made.created(container) if container else made.uncertain()
    shutil.rmtree(store, ignore_errors=True)
    made.make_state(store, made.record(state=state, docker_environment=engine.environment()))
    report = judge(read_store(str(store), now_ns=2**62))
    checker = Checker(lambda path: DockerEngine(path, seconds=20), home=None)
    try:
        (one,) = check_store(report, checker).checks
    finally:
        checker.close()
    return one


def test_absent_present_renamed_and_foreign(store: Path, engine: PrivateEngine) -> None:
    assert check(store, engine).verdict == "container_absent"
    made_id = engine.create(NAME, OWN)
    neighbour = engine.create(f"{NAME}-old", {"ai.symbiont.lease": made.lease_uid(9)})
    assert check(store, engine).verdict == "container_present"
    assert check(store, engine, made_id).verdict == "container_present"
    engine.demand(204, "POST", f"/containers/{made_id}/rename", name="elsewhere")
    assert check(store, engine).verdict == "container_renamed"
    assert check(store, engine, made_id).verdict == "container_renamed"
    engine.create(NAME, {})
    assert check(store, engine).verdict == "name_foreign"
    assert sorted(engine.names()) == sorted([NAME, f"{NAME}-old", "elsewhere"]), "nothing was touched"
    assert engine.inspect(neighbour)


def test_an_id_used_as_a_name_is_another_container(store: Path, engine: PrivateEngine) -> None:
    gone = engine.create("first", OWN)
    engine.demand(204, "DELETE", f"/containers/{gone}", force=1)
    engine.create(gone, {})
    assert check(store, engine, gone).verdict == "container_mismatch"


@pytest.mark.parametrize("state", STATES)
def test_every_state_that_an_engine_shows(store: Path, engine: PrivateEngine, state: str) -> None:
    engine.put(state, NAME, OWN)
    seen = check(store, engine)
    assert seen.verdict == "container_present"
    assert seen.containers[0].state in {state, "restarting", "running"}
    assert "engine_contradiction" not in {found.code for found in seen.findings}


def test_a_half_done_create_is_absent_until_it_surfaces(store: Path, engine: PrivateEngine) -> None:
    with engine.slow_create(NAME, OWN) as gate:
        assert check(store, engine).verdict == "container_absent"
        gate.release()
        engine.wait_for(NAME)
        assert check(store, engine).verdict == "container_present"


def test_the_engine_behind_the_socket_is_known_or_why_not(store: Path, engine: PrivateEngine) -> None:
    seen = check(store, engine)
    assert seen.engine is not None
    assert seen.engine.listener_program is not None
    assert os.path.basename(seen.engine.listener_program) == "dockerd"
    assert seen.engine.data_root == str(engine.data_root)
    found = find_engine(engine.socket_path, seen.engine.listener_pid)
    # other engines may run on this host, which then is what has to be said
    assert found.code in {None, "engine_ambiguous"}
    assert found.code or found.engine_pid == seen.engine.listener_pid


def test_a_stopped_engine_is_slow_and_a_dead_one_away(store: Path, engine: PrivateEngine) -> None:
    made.make_state(store, made.record(state=made.uncertain(), docker_environment=engine.environment()))
    report = judge(read_store(str(store), now_ns=2**62))

    def verdict() -> str:
        checker = Checker(lambda path: DockerEngine(path, seconds=0.5), home=None)
        try:
            return check_store(report, checker).checks[0].verdict
        finally:
            checker.close()

    engine.freeze()
    try:
        assert verdict() == "daemon_slow"
    finally:
        engine.thaw()
    engine.kill()
    assert verdict() == "daemon_away"
