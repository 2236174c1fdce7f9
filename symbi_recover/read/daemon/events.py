"""A daemon whose event log can be asked too: what it still remembers of a name (leases.md sections 18.2 and 18.5, T14).

The log holds 256 events and is empty after a restart, refused creates leave none in it, and a labelled impostor looks
alike: what it says is noted, and proves nothing.
"""

import json
import time

from msgspec import field

from symbi_recover.core.fences import FENCE_LABEL
from symbi_recover.core.shapes import Lenient
from symbi_recover.read.daemon.engine import DockerEngine
from symbi_recover.read.daemon.questions import DaemonError, Remembered
from symbi_recover.wire import exact
from symbi_recover.wire.strictjson import JsonError

_MOST_EVENTS = 1000
_SECOND = 1_000_000_000
_KINDS = frozenset({"create", "destroy"})


class _Actor(Lenient, frozen=True, kw_only=True):
    id: str = field(name="ID")
    attributes: dict[str, str] = field(default_factory=dict, name="Attributes")


class _Event(Lenient, frozen=True, kw_only=True):
    action: str = field(name="Action")
    actor: _Actor = field(name="Actor")


class RememberingEngine(DockerEngine):
    """A daemon that can be asked what it remembers."""

    def remembered(self, name: str) -> tuple[Remembered, ...]:
        """Creations and removals of containers with exactly this name, fences of ours left out.

        Args:
            name: of the container.

        Raises:
            DaemonError: it gave no usable answer.
        """
        self.facts()
        until_ns = time.time_ns()  # not in the future, or the daemon waits for what comes
        filters = json.dumps({"type": ["container"], "container": [name]}, separators=(",", ":"))
        answer = self._ask(
            "/events", since="1", until=f"{until_ns // _SECOND}.{until_ns % _SECOND:09}", filters=filters
        )
        found = []
        for line in answer.body.splitlines()[:_MOST_EVENTS]:
            try:
                event = exact.read(line, _Event)
            except JsonError as error:
                raise DaemonError(
                    "daemon_malformed", error.message, stage="answer", path=self.path
                ) from error
            attributes = event.actor.attributes
            if event.action in _KINDS and attributes.get("name") == name and FENCE_LABEL not in attributes:
                found.append(Remembered(event.action, event.actor.id))
        return tuple(found)
