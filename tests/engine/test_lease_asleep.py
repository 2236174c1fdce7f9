"""F-132: a command that looks does not start an engine that waits behind a socket activator.

The listener belongs to this process, as it would to init. Asked about it, a command must neither start an engine nor
leave a connection in the queue, which would start one.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from symbi_recover.read.daemon.activation import ASLEEP
from symbi_recover.read.daemon.sockets import UnixSocket, ask_listener
from tests.engine.world import LABEL, Store, name_of
from tests.support.engine import PrivateEngine, listening
from tests.support.engine_host import EngineHost
from tests.support.mounts import without_root

pytestmark = [pytest.mark.engine, pytest.mark.root]
STARTER = "symbi_recover.read.verify.lease_check.RealHost"
FENCES = "symbi_recover.write.fences.RealHost"
RETIRING = "symbi_recover.cli.writing.lease_retire.the_host"


@pytest.fixture
def activated(engine_maker, tmp_path_factory, monkeypatch) -> Iterator[PrivateEngine]:
    """An engine that was never started; its listener is there, and this process is the host's starter of services."""
    with listening(tmp_path_factory.mktemp("l") / "s") as listener:
        made = engine_maker(listener=listener)
        host = EngineHost(lambda: made.pid if made.running else 0)
        host.init = os.getpid()
        monkeypatch.setattr(STARTER, lambda: host)
        monkeypatch.setattr(FENCES, lambda: host)
        monkeypatch.setattr(RETIRING, lambda: host)
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
    assert store.cli("reconcile", "--confirm", store.digest(lease)).rc == 3
    assert waiting(activated) == 0
    assert store.records() == [lease]


def test_fences_are_not_looked_for_at_an_engine_that_waits(activated, tmp_path):
    store = Store(tmp_path, activated.socket_path)
    store.add()
    document = store.json("fences", code=3)
    assert [one["code"] for one in document["report"]["findings"]] == ["engine_asleep"]
    assert waiting(activated) == 0


@pytest.mark.parametrize("lock", [(), ("--lock",)], ids=["without the lock", "with it"])
def test_a_witness_is_left_without_asking_an_engine_that_waits(activated, tmp_path, lock):
    """It says what was not seen, so that no later start of the engine is taken for one that came after it."""
    store = Store(tmp_path, activated.socket_path)
    lease = store.add()
    (witness,) = store.json("witness", *lock, code=0)["report"]["witnesses"]
    assert (witness["record"]["lease"], witness["engine"]) == (lease, None)
    assert any(ASLEEP in remark for remark in witness["remarks"])
    assert waiting(activated) == 0
    assert not activated.running


@pytest.mark.parametrize("consent", [False, True])
def test_a_retirement_neither_asks_nor_wakes_an_engine_that_waits(activated, tmp_path, consent):
    store = Store(tmp_path, activated.socket_path)
    lease = store.add()
    confirm = ("--confirm", store.digest(lease)) if consent else ()
    ran = store.cli("retire", lease, *confirm, "--accept-wall-clock", "--format", "json")
    assert ran.rc == 3
    assert ASLEEP.encode() in ran.out
    assert waiting(activated) == 0
    assert not activated.running
    assert store.records() == [lease]


COMMANDS = ("check", "reconcile", "fences", "witness", "retire")


@pytest.mark.parametrize("command", COMMANDS)
def test_without_root_s_sight_it_is_left_asleep_too(command, monkeypatch):
    """Whose listener it is cannot be seen then; no engine is seen to run, so a question could start one."""
    host = EngineHost(lambda: 0)
    host.init = os.getpid()
    for place in (STARTER, FENCES, RETIRING):
        monkeypatch.setattr(place, lambda: host)
    with TemporaryDirectory(prefix="as", dir="/tmp") as made, listening(f"{made}/s") as listener:
        root = Path(made, "w")
        root.mkdir()
        store = Store(root, f"{made}/s")
        lease = store.add()
        chosen = (lease,) if command == "retire" else ()
        Path(made).chmod(0o755)
        Path(made, "s").chmod(0o666)

        def look():
            listener.close()  # in this child, which would be seen to serve it
            with pytest.raises(PermissionError):
                os.listdir(f"/proc/{host.init}/fd")
            return store.cli(command, *chosen, "--format", "json")

        store.cli(command, *chosen)  # loads what a lesser account may not be able to read
        ran = without_root(root, look)
        assert ASLEEP.encode() in ran.out, ran
        assert ran.rc == (0 if command == "witness" else 3)
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


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
