"""A lease store, an operator and a private engine together: what the engine tests of leases start from."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from tests.support.cli import Ran, run
from tests.support.engine import PrivateEngine
from tests.support.writer import lease as writer

LABEL = "ai.symbiont.lease"
SEED = bytes(range(32))


class Store:
    """One lease store whose records lead to one engine, and the operator's folder beside it."""

    def __init__(self, root: Path, socket_path: str) -> None:
        self.root = root
        self.path = writer.make_state(root / "store")
        self.home = root / "operator"
        self.home.mkdir(mode=0o700)
        key = self.home / "operator.key"
        key.write_bytes(SEED)
        key.chmod(0o600)
        self.environment = {
            "DOCKER_HOST": f"unix://{socket_path}",
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
        }

    def add(
        self, number: int = 1, phase: str = "uncertain", container: str | None = None, **fields: Any
    ) -> str:
        """Write a record and give its lease."""
        # Other tests run at the same time, and a scan of this host sees their clients.
        lease = writer.uid("lease", str(self.root), number)
        state = writer.created(container) if container is not None else {"phase": phase}
        fields.setdefault("docker_environment", self.environment)
        value = writer.record(lease, state)
        value.update(fields)
        writer.write_record(self.path, value)
        return lease

    def record(self, lease: str) -> Path:
        """The record's path."""
        return self.path / f"{lease}.json"

    def digest(self, lease: str) -> str:
        """What `--confirm` repeats."""
        return hashlib.sha256(self.record(lease).read_bytes()).hexdigest()

    def records(self) -> list[str]:
        """The leases that have a record."""
        return sorted(path.stem for path in self.path.glob("*.json"))

    def cli(self, command: str, *arguments: str) -> Ran:
        """Run a lease command on the store."""
        env = {"SYMBI_RECOVER_HOME": os.fspath(self.home)}
        return run("lease", command, "--state-dir", self.path, *arguments, env=env)

    def json(self, command: str, *arguments: str, code: int) -> dict[str, Any]:
        """The same, and its JSON document; the exit code must be `code`."""
        ran = self.cli(command, *arguments, "--format", "json")
        assert ran.rc == code, (ran.rc, ran.out, ran.err)
        return dict(json.loads(ran.out))


def name_of(lease: str) -> str:
    """The container's name."""
    return f"symbi-{lease}"


def neighbour(engine: PrivateEngine, lease: str) -> str:
    """Put a container there that looks alike and is another lease's; it must survive everything. Gives its id."""
    return engine.create(f"{name_of(lease)}-old", {LABEL: writer.lease_uid(999), "other": lease})
