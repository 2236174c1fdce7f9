"""F-132: a command that looks does not start an engine that waits behind a socket activator.

The listener belongs to this process, as it would to init. Asked about it, a command must neither start an engine nor
leave a connection in the queue, which would start one.
"""

import os
from collections.abc import Iterator

import pytest

from symbi_recover.read.daemon.sockets import UnixSocket, ask_listener
from tests.engine.world import LABEL, Store, name_of
from tests.support.engine import PrivateEngine, listening
from tests.support.engine_host import EngineHost

pytestmark = [pytest.mark.engine, pytest.mark.root]
STARTER = "symbi_recover.read.verify.lease_check.RealHost"
FENCES = "symbi_recover.write.fences.RealHost"


@pytest.fixture
def activated(engine_maker, tmp_path_factory, monkeypatch) -> Iterator[PrivateEngine]:
    """An engine that was never started; its listener is there, and this process is the host's starter of services."""
    with listening(tmp_path_factory.mktemp("l") / "s") as listener:
        made = engine_maker(listener=listener)
        host = EngineHost(lambda: made.pid if made.running else 0)
        host.init = os.getpid()
        monkeypatch.setattr(STARTER, lambda: host)
        monkeypatch.setattr(FENCES, lambda: host)
        yield made


def waiting(engine: PrivateEngine) -> int | None:
    """Connections in the listener's queue, whoever made them."""
    found = ask_listener(engine.socket_path)
    assert isinstance(found, UnixSocket)
    return found.waiting


@pytest.mark.parametrize("command", ["check", "reconcile"])
def test_an_engine_that_waits_to_be_started_is_left_asleep(activated, tmp_path, command):
    store = Store(tmp_path, activated.socket_path)
    lease = store.add()
    document = store.json(command, code=3)
    (one,) = document["report"]["checks" if command == "check" else "items"]
    assert (one["lease"], one["verdict" if command == "check" else "code"]) == (lease, "engine_asleep")
    assert one["engine"] is None
    assert waiting(activated) == 0
    assert not activated.running
    assert store.records() == [lease]


def test_the_text_says_how_to_go_on(activated, tmp_path):
    store = Store(tmp_path, activated.socket_path)
    store.add()
    ran = store.cli("check", "--format", "text")
    assert ran.rc == 3
    assert b"engine_asleep" in ran.out
    assert b"systemctl start docker" in ran.out
    assert waiting(activated) == 0


def test_consent_to_a_plan_wakes_no_engine_either(activated, tmp_path):
    store = Store(tmp_path, activated.socket_path)
    lease = store.add()
    assert store.cli("reconcile", "--confirm", store.digest(lease)).rc == 4
    assert waiting(activated) == 0
    assert store.records() == [lease]


def test_fences_are_not_looked_for_at_an_engine_that_waits(activated, tmp_path):
    store = Store(tmp_path, activated.socket_path)
    store.add()
    document = store.json("fences", code=3)
    assert [one["code"] for one in document["report"]["findings"]] == ["engine_asleep"]
    assert waiting(activated) == 0


def test_once_it_runs_it_is_asked(activated, tmp_path):
    store = Store(tmp_path, activated.socket_path)
    lease = store.add()
    activated.start()
    activated.create(name_of(lease), {LABEL: lease})
    document = store.json("check", code=2)
    assert document["report"]["checks"][0]["verdict"] == "container_present"
    activated.stop()
    assert store.json("check", code=3)["report"]["checks"][0]["verdict"] == "engine_asleep"
    activated.start()
