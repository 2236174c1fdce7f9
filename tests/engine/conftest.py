"""What the engine tests of leases share."""

import pytest

from tests.engine.world import Store
from tests.support.engine import PrivateEngine
from tests.support.engine_host import EngineHost


@pytest.fixture
def store(engine: PrivateEngine, tmp_path):
    """A store whose records lead to the private engine."""
    return Store(tmp_path, engine.socket_path)


@pytest.fixture
def host(engine: PrivateEngine, monkeypatch):
    """The host that the retirement commands see."""
    made = EngineHost(lambda: engine.pid)
    monkeypatch.setattr("symbi_recover.cli.writing.lease_retire.the_host", lambda: made)
    return made
