"""What the engine says of a container's state, held against this host's processes (leases.md section 18.4).

After a restart an engine may have lost track. Two things contradict it, each asked about twice:

1. a living process whose cgroup names the container's full id, while the engine calls it ended or does not know it: in
   any case, since an id is nobody else's;
2. no process of the number that a running container is said to have: only where the engine behind the socket is known
   and counts processes as this tool does. A number from behind a proxy means nothing here.
"""

from symbi_recover.core.lease_records import Created
from symbi_recover.core.leases import LeaseView
from symbi_recover.core.scalars import HEX_64
from symbi_recover.read.daemon.listener import Listener
from symbi_recover.read.daemon.questions import Container, Engine
from symbi_recover.read.evidence.host import own_namespace
from symbi_recover.read.evidence.kernel import CannotKnow, Gone, read_proc
from symbi_recover.read.evidence.processes import list_pids, namespace_of, read_identity
from symbi_recover.read.verify.container import Seen

_OVER = frozenset({"created", "exited", "dead"})
"""States in which no process of the container may live."""
_LIVE = frozenset({"running", "paused"})


def numbered(seen: Seen) -> bool:
    """Whether the engine names a process of some container that it says is at work."""
    return any(one.state in _LIVE and one.pid for one in (seen.by_id, seen.by_name) if one is not None)


def why_not_compared(listener: Listener | None, proc: str) -> str | None:
    """Why an engine's process numbers mean nothing here; None if they are this host's, as this tool counts."""
    if listener is None or listener.code is not None or listener.engine_pid is None:
        return (listener.reason if listener is not None else None) or "which engine answers is not known"
    theirs, ours = namespace_of(listener.engine_pid, "pid", proc), own_namespace("pid", proc)
    if isinstance(theirs, int) and isinstance(ours, int):
        return None if theirs == ours else "the engine counts processes in another PID namespace"
    unknown = next((one for one in (theirs, ours) if isinstance(one, CannotKnow)), None)
    return unknown.detail if unknown is not None else "the engine is gone by now"


class HostProcesses:
    """This host's processes, listed once for many leases and again before anything is said."""

    def __init__(self, proc: str) -> None:
        self.proc = proc
        self._groups: dict[int, bytes] | CannotKnow | None = None

    def contradictions(self, engine: Engine, view: LeaseView, seen: Seen, *, numbers: bool) -> list[str]:
        """Where the engine's word and this host's processes differ, also when asked again.

        Args:
            engine: answered.
            view: the record.
            seen: the answers.
            numbers: process numbers are compared too.

        Raises:
            DaemonError: it does not answer any more.
        """
        state = view.record.state
        texts = []
        if isinstance(state, Created) and seen.by_id is None and self._living(state.container_id):
            self._groups = None
            living = self._living(state.container_id)
            if living and engine.inspect(state.container_id) is None:
                texts.append(
                    f"container {state.container_id} is not known, and process {living[0]} lives in its cgroup"
                )
        for one in {c.id: c for c in (seen.by_id, seen.by_name) if c is not None}.values():
            if self._differs(one, numbers=numbers) is None:
                continue
            self._groups = None  # the container may have moved on between the two looks
            again = engine.inspect(one.id)
            text = self._differs(again, numbers=numbers) if again is not None and again.id == one.id else None
            texts += [text] if text else []
        return texts

    def _differs(self, one: Container, *, numbers: bool) -> str | None:
        if numbers and one.state in _LIVE and one.pid and isinstance(read_identity(one.pid, self.proc), Gone):
            return f"container {one.id} is {one.state} with process {one.pid}, which is not there"
        if one.state in _OVER and HEX_64.fullmatch(one.id):
            living = self._living(one.id)
            if living:
                return f"container {one.id} is {one.state}, and process {living[0]} lives in its cgroup"
        return None

    def _living(self, container_id: str) -> list[int]:
        if self._groups is None:
            pids = list_pids(self.proc)
            if isinstance(pids, CannotKnow):
                self._groups = pids
            else:
                texts = {pid: read_proc(f"{pid}/cgroup", proc=self.proc) for pid in pids}
                self._groups = {pid: text for pid, text in texts.items() if isinstance(text, bytes)}
        groups = {} if isinstance(self._groups, CannotKnow) else self._groups
        return [pid for pid, text in groups.items() if container_id.encode() in text]
