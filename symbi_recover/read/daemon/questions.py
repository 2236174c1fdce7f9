"""What a daemon is asked about leases, whoever answers: the Protocol, its values, and its failures.

`read/daemon/engine.py` asks a real one. Every question is a GET. A container that is not there is None; everything
else that is no answer raises `DaemonError`, so that a fault never looks like absence.
"""

from typing import Literal, Protocol

from msgspec import Struct

from symbi_recover.core.errors import UnexaminedError

STATES = frozenset({"created", "running", "paused", "restarting", "removing", "exited", "dead"})
"""Every container state that is known by name."""

Stage = Literal["connect", "send", "headers", "body", "answer"]


class DaemonError(UnexaminedError):
    """The daemon gave no usable answer; `code` is one of `core/codes/daemon.py`."""

    def __init__(self, code: str, message: str, *, stage: Stage, path: str | None = None) -> None:
        super().__init__(code, message, path=path)
        self.stage = stage


class EngineFacts(Struct, frozen=True, kw_only=True):
    """What the daemon says of itself."""

    version: str
    api_version: str
    min_api_version: str | None
    asked_api_version: str
    components: tuple[str, ...]
    engine_id: str | None = None
    data_root: str | None = None


class Container(Struct, frozen=True, kw_only=True):
    """One container as inspected."""

    id: str
    name: str
    """Without the leading slash."""
    labels: dict[str, str]
    state: str
    pid: int
    created: str | None


class Listed(Struct, frozen=True, kw_only=True):
    """One container as listed."""

    id: str
    names: tuple[str, ...]
    """Its own names, without the leading slash; not those that other containers have for it."""
    labels: dict[str, str]
    state: str


class Remembered(Struct, frozen=True):
    """One event of a daemon's log."""

    action: str
    """`create` or `destroy`."""
    container_id: str


class Engine(Protocol):
    """A daemon that can be asked."""

    def facts(self) -> EngineFacts:
        """What the daemon is.

        Raises:
            DaemonError: it gave no usable answer.
        """

    def inspect(self, reference: str) -> Container | None:
        """The container that the daemon finds for a full id or a name; None if it says there is no such container.

        The answer may be about another container than was asked for: compare `id` and `name`.

        Raises:
            DaemonError: it gave no usable answer.
        """

    def labelled(self, label: str, value: str) -> tuple[Listed, ...]:
        """All containers, ended ones included, that carry exactly this label.

        Raises:
            DaemonError: it gave no usable answer.
        """

    def listener_pid(self) -> int | None:
        """The process that called `listen` on the socket, as the kernel named it at the last connection."""

    def close(self) -> None:
        """Close every connection."""
