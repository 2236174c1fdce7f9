"""A private Docker Engine for tests: what one can do with it, and the fixtures that give one.

`PrivateEngine` adds to the process (``engine_process.py``) raw API calls: import an image, create and inspect
containers, put one into a wanted state, make a create that is slow after its name is reserved, list and clear
everything. It knows nothing of leases; labels and names are the test's.

Fixtures (a plugin of ``tests/conftest.py``):

- ``engine``: the session's engine, one a test process, cleared before and after each test; a test may stop,
  kill, freeze or restart it, and the next test finds it running again;
- ``engine_maker``: makes further engines of one test's own, and closes them with the test.

Where no engine can run, they skip with a reason that begins with "not run:".
"""

import contextlib
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.engine_images import EMPTY, SLOW_FILE, FileGate, pause_program, tar_of
from tests.support.engine_process import EngineError, EngineProcess, why_not_here
from tests.support.unix_http import Reply, ask, leave_request, target

EMPTY_IMAGE = "rig-empty:t"
PAUSE_IMAGE = "rig-pause:t"
_OWN_IMAGES = frozenset({EMPTY_IMAGE, PAUSE_IMAGE})
STATES = ("created", "running", "paused", "exited", "restarting", "dead")
"""States of a container that `PrivateEngine.put` can bring about."""


class PrivateEngine(EngineProcess):
    """A private engine with the API calls that tests need; use `private_engine` or a fixture to get one."""

    _slow_images = 0

    def ask(self, method: str, path: str, body: Any = None, **query: Any) -> Reply:
        """Send one request on a connection of its own; ``path`` is without version."""
        return ask(self.socket_path, method, target(path, **query), body)

    def demand(self, status: int, method: str, path: str, body: Any = None, **query: Any) -> Reply:
        """Do the same and raise EngineError unless the answer has this status."""
        reply = self.ask(method, path, body, **query)
        if reply.status != status:
            raise EngineError(f"{method} {path}: {reply.status} {reply.message}")
        return reply

    def environment(self) -> dict[str, str]:
        """Give the environment that leads a Docker client here, as a lease record would hold it."""
        return {"DOCKER_HOST": self.base_url, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}

    def import_image(self, tag: str, labels: dict[str, str] | None = None, tar: bytes = EMPTY) -> str:
        """Import an image (by default an empty one, of 1024 zero bytes) as NAME:TAG and give its id."""
        repository, _, name = tag.partition(":")
        changes = "\n".join(f'LABEL "{key}"="{value}"' for key, value in (labels or {}).items())
        query = {"fromSrc": "-", "repo": repository, "tag": name or "latest"}
        if changes:
            query["changes"] = changes
        return str(self.demand(200, "POST", "/images/create", tar, **query).json()["status"])

    def create_request(
        self, name: str, labels: dict[str, str] | None = None, image: str = EMPTY_IMAGE, **config: Any
    ) -> tuple[str, str, dict[str, Any]]:
        """Give method, target and body of a create, for the raw client; ``config`` adds to the body."""
        host = {"NetworkMode": "none", **config.pop("HostConfig", {})}
        body = {"Image": image, "Cmd": ["none"], "Labels": labels or {}, "HostConfig": host, **config}
        return "POST", target("/containers/create", name=name), body

    def create(
        self, name: str, labels: dict[str, str] | None = None, image: str = EMPTY_IMAGE, **config: Any
    ) -> str:
        """Create a container and give its id; the empty image is imported when it is not there."""
        if image == EMPTY_IMAGE:
            self.need_image(EMPTY_IMAGE)
        reply = ask(self.socket_path, *self.create_request(name, labels, image, **config))
        if reply.status != 201:
            raise EngineError(f"create {name}: {reply.status} {reply.message}")
        return str(reply.json()["Id"])

    def need_image(self, tag: str) -> None:
        """Import `EMPTY_IMAGE` or `PAUSE_IMAGE` unless it is there."""
        if self.ask("GET", f"/images/{tag}/json").status == 404:
            self.import_image(
                tag, tar=EMPTY if tag == EMPTY_IMAGE else tar_of("pause", pause_program(), 0o755)
            )

    def put(self, state: str, name: str, labels: dict[str, str] | None = None) -> str:
        """Make a container in one of `STATES` and give its id; "dead" is one whose removal failed."""
        self.need_image(PAUSE_IMAGE)
        restart = {"RestartPolicy": {"Name": "always" if state == "restarting" else "no"}}
        command = ["/pause", "end"] if state in {"exited", "restarting"} else ["/pause"]
        config: dict[str, Any] = {"Cmd": command, "HostConfig": restart, "StopSignal": "SIGKILL"}
        made = self.create(name, labels, PAUSE_IMAGE, **config)
        if state == "dead":
            pin = self.data_root / "containers" / made / "pin"
            pin.touch()
            self.pin(pin)
            self.demand(500, "DELETE", f"/containers/{made}", force=1)
        elif state != "created":
            self.demand(204, "POST", f"/containers/{made}/start")
        if state == "paused":
            self.demand(204, "POST", f"/containers/{made}/pause")
        self.until(lambda: self.state_of(made) == state, f"container in state {state}")
        return made

    def inspect(self, reference: str) -> dict[str, Any] | None:
        """Inspect by id or name; None for 404."""
        reply = self.ask("GET", f"/containers/{reference}/json")
        return None if reply.status == 404 else dict(reply.json())

    def state_of(self, reference: str) -> str | None:
        """Give State.Status; None when nobody is there."""
        found = self.inspect(reference)
        return None if found is None else str(found["State"]["Status"])

    def names(self) -> list[str]:
        """List the names of all containers, without the slash, sorted."""
        listed = self.ask("GET", "/containers/json", all=1).json()
        return sorted(name.removeprefix("/") for one in listed for name in one["Names"])

    def inventory(self) -> dict[str, list[str]]:
        """List all that the engine holds: container names, image tags or ids, volumes, networks of tests."""
        images = self.ask("GET", "/images/json", all=1).json()
        volumes = self.ask("GET", "/volumes").json()["Volumes"] or []
        networks = self.ask("GET", "/networks").json()
        return {
            "containers": self.names(),
            "images": sorted(tag for one in images for tag in one["RepoTags"] or [one["Id"]]),
            "volumes": sorted(one["Name"] for one in volumes),
            "networks": sorted(
                one["Name"] for one in networks if one["Name"] not in {"none", "host", "bridge"}
            ),
        }

    def assert_clean(self) -> None:
        """Fail when the engine holds anything but the rig's own images."""
        held = self._foreign()
        assert not any(held.values()), f"left in the engine: {held}"

    def _foreign(self) -> dict[str, list[str]]:
        held = self.inventory()
        return held | {"images": [tag for tag in held["images"] if tag not in _OWN_IMAGES]}

    def clear(self) -> None:
        """Remove every container, image, volume and network; also what arrives while this is done."""
        self.unpin()
        self.until(self._swept, "empty engine")

    def _swept(self) -> bool:
        for one in self.ask("GET", "/containers/json", all=1).json():
            self.ask("DELETE", f"/containers/{one['Id']}", force=1, v=1)
        held = self.inventory()
        for tag in held["images"]:
            if tag not in _OWN_IMAGES:
                self.ask("DELETE", f"/images/{tag}", force=1)
        for kind in ("volumes", "networks"):
            for name in held[kind]:
                self.ask("DELETE", f"/{kind}/{name}")
        return not any(self._foreign().values())

    @contextlib.contextmanager
    def slow_create(self, name: str, labels: dict[str, str] | None = None) -> Iterator[FileGate]:
        """Bring a create past the reservation of its name and hold it there (stage D).

        The client has gone by then. Until ``gate.release()`` or the end of the block, inspect answers 404, the
        list does not show it, and a create of the name answers 409. The kernel gives up after
        ``/proc/sys/fs/lease-break-time`` (45 s by default), so that nothing can hang for ever.
        """
        self._slow_images += 1
        tag = f"rig-slow:{self._slow_images}"
        file_name = f"{SLOW_FILE}-{self._slow_images}"
        self.import_image(tag, tar=tar_of(file_name, os.urandom(16)))
        (layer_file,) = self.data_root.glob(f"vfs/dir/*/{file_name}")
        with FileGate(layer_file) as gate:
            leave_request(self.socket_path, *self.create_request(name, labels, tag))
            self.until(lambda: gate.reached, "create at the gate")
            yield gate

    def wait_for(self, name: str) -> str:
        """Wait until a container of that name can be inspected, and give its id."""
        self.until(lambda: self.inspect(name) is not None, f"container {name}")
        return str((self.inspect(name) or {})["Id"])

    def make_ready(self) -> None:
        """Bring the engine back to the state a test may expect: running, answering, empty."""
        self.thaw()
        if not self.running:
            self.start()
        self.wait_until_answering()
        self.clear()


@contextlib.contextmanager
def private_engine(
    listener: socket.socket | None = None, key_file: Path | None = None, *, own_network: bool = False
) -> Iterator[PrivateEngine]:
    """Give an engine that is not started yet, and close it in every case."""
    engine = PrivateEngine(listener, key_file, own_network=own_network)
    try:
        yield engine
    finally:
        with contextlib.suppress(OSError, EngineError, AssertionError):
            if engine.running:
                engine.thaw()
                engine.clear()
        engine.close()


@contextlib.contextmanager
def listening(path: str | os.PathLike[str]) -> Iterator[socket.socket]:
    """Give a listening Unix socket owned by this process, for an engine started by socket activation."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(path))
        listener.listen(128)
        try:
            yield listener
        finally:
            Path(path).unlink(missing_ok=True)


def docker_client_binary() -> str | None:
    """Give the absolute path of the ``docker`` client, or None."""
    found = shutil.which("docker")
    return None if found is None else str(Path(found).resolve())


def write_wrapper(path: Path, on_create: str, client: str | None = None) -> Path:
    """Write an executable shell script that stands in for the client.

    Args:
        path: the script to make.
        on_create: shell text for ``create``; any other command goes to the real client. Within it ``"$@"`` are
            the arguments and ``$CLIENT`` is the real client.
        client: the real client; by default the installed one.
    """
    real = client or docker_client_binary() or "/usr/bin/docker"
    script = f'#!/bin/sh\nCLIENT={real}\nif [ "$1" = create ]; then\n{on_create}\nfi\nexec "$CLIENT" "$@"\n'
    path.write_text(script, encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture(scope="session")
def session_engine() -> Iterator[PrivateEngine]:
    """The engine of this test process; use the ``engine`` fixture, which hands it over in order."""
    reason = why_not_here()
    if reason is not None:
        pytest.skip(reason)
    with private_engine() as engine:
        engine.start()
        yield engine


@pytest.fixture
def engine(session_engine: PrivateEngine) -> Iterator[PrivateEngine]:
    """An engine that runs, answers and is empty; the test may do to it what it likes."""
    session_engine.make_ready()
    yield session_engine
    session_engine.make_ready()


@pytest.fixture
def engine_maker() -> Iterator[Callable[..., PrivateEngine]]:
    """A function that makes further engines, not started yet; it takes what `private_engine` takes."""
    reason = why_not_here()
    if reason is not None:
        pytest.skip(reason)
    with contextlib.ExitStack() as stack:
        yield lambda **options: stack.enter_context(private_engine(**options))
