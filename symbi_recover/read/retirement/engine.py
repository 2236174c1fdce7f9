"""Which engine stands behind the endpoint, and whether the facts of leases.md section 18.2 hold for it (section 18.4).

0. A listener that waits for an engine to be started is left alone: looking starts nothing.
1. The engine answers `GET /version` and `GET /info`; only an engine of a version on which the facts were replayed, with
   no component that they do not know, counts.
2. The listener is found by the socket's file, its owner by the kernel, the one `dockerd` by its descriptors.
3. The data root is looked at through the engine's own root: when its `containers` folder was made.

Nothing is asked of the engine but GET. What cannot be told is a code, never a guess.
"""

import os

from msgspec import Struct

from symbi_recover.core.lease_records import LABEL
from symbi_recover.core.leases import LeaseView
from symbi_recover.core.witness import EngineIdentity, ListenerIdentity
from symbi_recover.read.daemon.activation import ASLEEP, waits_for_start
from symbi_recover.read.daemon.listener import Listener, find_engine
from symbi_recover.read.daemon.questions import DaemonError, Engine, EngineFacts
from symbi_recover.read.evidence.clock import BirthTime, StartTime
from symbi_recover.read.evidence.kernel import PROC, opened
from symbi_recover.read.evidence.processes import Executable, Observation, observe
from symbi_recover.read.retirement.host import Host
from symbi_recover.read.verify.container import Seen, judge_container

SUPPORTED = ("20.10.",)
"""Engine versions on which the facts were replayed."""
_COMPONENTS = frozenset({"Engine", "containerd", "runc", "docker-init"})
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


class EngineSight(Struct, frozen=True, kw_only=True):
    """What was seen of one engine; `codes` is empty exactly if it counts."""

    codes: tuple[str, ...] = ()
    details: dict[str, str] = {}
    engine: EngineIdentity | None = None
    listener: ListenerIdentity | None = None
    waiting: int | None = None
    started_ns: int | None = None
    """The earliest moment at which it can have started, by the clock."""


def why_not_asked(path: str, host: Host) -> str | None:
    """Why a question at a socket would start an engine; None if it would not, or that cannot be seen."""
    waits = waits_for_start(path, init=host.init, pids=lambda _: host.pids())
    return ASLEEP if waits is True else None


def look_at_engine(path: str, engine: Engine, host: Host, last_write_ns: int | None = None) -> EngineSight:
    """See which engine serves a socket.

    Args:
        path: of the socket.
        engine: connected there.
        host: whose processes may be it.
        last_write_ns: of the record; a link on the way that is younger may have led elsewhere then.
    """
    try:
        facts = engine.facts()
    except DaemonError as error:
        return EngineSight(
            codes=("engine_unavailable",), details={"engine_unavailable": f"{error.code}: {error.message}"}
        )
    found = find_engine(path, engine.listener_pid(), pids=lambda _: host.pids(), init=host.init)
    codes: dict[str, str] = {}
    unsupported = why_unsupported(facts)
    if unsupported is not None:
        codes["engine_unsupported"] = unsupported
    if last_write_ns is not None and found.led_elsewhere(last_write_ns):
        codes["endpoint_link"] = f"{path} leads to {found.real_path}"
    if found.code is not None:
        codes[found.code] = found.reason or ""
    sight = EngineSight(codes=tuple(codes), details=codes, waiting=found.waiting)
    if found.engine_pid is None or found.engine_start_ticks is None:
        return sight
    started = host.process_started(found.engine_start_ticks)
    return EngineSight(
        codes=sight.codes,
        details=codes,
        engine=_identity(facts, found.engine_pid, found.engine_start_ticks, host),
        listener=_listener(path, found),
        waiting=found.waiting,
        started_ns=started.earliest_ns if isinstance(started, StartTime) else None,
    )


def why_unsupported(facts: EngineFacts) -> str | None:
    """Why an engine is none on which the facts were replayed; None if it is one."""
    names = [component.rpartition(" ")[0] for component in facts.components]
    strange = sorted(set(names) - _COMPONENTS)
    if strange or "Engine" not in names:
        return f"its components are {', '.join(facts.components) or 'not named'}"
    if not facts.version.startswith(SUPPORTED):
        return f"its version is {facts.version}; the facts were replayed on {', '.join(SUPPORTED)}x"
    return None


def _listener(path: str, found: Listener) -> ListenerIdentity | None:
    if found.socket_inode is None or found.owner_pid is None:
        return None
    return ListenerIdentity(
        path=path, inode=found.socket_inode, owner_pid=found.owner_pid, activated=found.activated
    )


def _identity(facts: EngineFacts, pid: int, start_ticks: int, host: Host) -> EngineIdentity:
    seen = observe(pid)
    program = ""
    if isinstance(seen, Observation) and isinstance(seen.executable, Executable):
        program = seen.executable.path.decode("utf-8", "backslashreplace")
    inode, born = _storage(pid, facts.data_root, host)
    return EngineIdentity(
        pid=pid,
        start_ticks=start_ticks,
        executable=program,
        engine_id=facts.engine_id,
        version=facts.version,
        data_root=facts.data_root or "",
        containers_inode=inode,
        containers_born_ns=born,
    )


def _storage(pid: int, data_root: str | None, host: Host) -> tuple[int | None, int | None]:
    """Inode and birth of the `containers` folder, seen through the engine's own root."""
    if not data_root or not data_root.startswith("/"):
        return None, None
    try:
        with opened(f"{PROC}/{pid}/root{data_root}/containers", _FOLDER) as folder:
            born = host.born(folder)
            return os.fstat(folder).st_ino, born.unix_ns if isinstance(born, BirthTime) else None
    except (OSError, ValueError):
        return None, None


def absence_of(engine: Engine, view: LeaseView, where: str) -> tuple[str | None, str]:
    """None if neither name nor label of a lease is there, else the code that says what is; and a sentence.

    Args:
        engine: the recorded one.
        view: the record.
        where: its path.
    """
    try:
        seen = Seen(None, engine.inspect(view.record.name), engine.labelled(LABEL, view.lease))
    except DaemonError as error:
        return "engine_unavailable", f"{error.code}: {error.message}"
    code, found = judge_container(view, seen, where, supervised=False)
    text = found[0].message if found else ""
    return (None, text) if code == "container_absent" else (code, text)
