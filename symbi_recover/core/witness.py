"""What was seen of a tombstone at one visit, kept for a later proof (leases.md section 18.4, "Witness file").

A witness shows "since the record's last write" without any clock: an unchanged record has had no new client since
the visit, because a helper never creates again for a lease that exists. Times are nanoseconds since 1970.
"""

from typing import Literal

from msgspec import Struct

from symbi_recover.core.shapes import Strict

FORMAT: Literal["symbi-recover/lease-witness.v1"] = "symbi-recover/lease-witness.v1"


class RecordIdentity(Strict, frozen=True, kw_only=True):
    """Which bytes lay under a record's name; equal means that no transition happened in between."""

    lease: str
    sha256: str
    size: int
    inode: int
    mtime_ns: int
    ctime_ns: int

    @property
    def last_write_ns(self) -> int:
        """The later of mtime and ctime."""
        return max(self.mtime_ns, self.ctime_ns)


class DirectoryIdentity(Strict, frozen=True, kw_only=True):
    """Which state directory; its device number may change across a reboot."""

    path: str
    device: int
    inode: int


class ListenerIdentity(Strict, frozen=True, kw_only=True):
    """Which socket listened at the endpoint, and for whom."""

    path: str
    """The endpoint's socket, as the record's environment names it."""
    inode: int
    """Of the listening socket, as `/proc/<pid>/fd` shows it."""
    owner_pid: int
    """The process that called `listen`."""
    activated: bool
    """The listener belongs to the init process, so it outlives the engine."""


class EngineIdentity(Strict, frozen=True, kw_only=True):
    """Which engine; the id alone does not tell, since two engines may share a key file."""

    pid: int
    start_ticks: int
    executable: str
    engine_id: str | None
    version: str
    data_root: str
    containers_inode: int | None = None
    """Of the `containers` folder below the data root."""
    containers_born_ns: int | None = None
    """When that folder was made; None where the file system does not tell."""

    @property
    def process(self) -> tuple[int, int]:
        """The process, exact within one boot."""
        return self.pid, self.start_ticks

    def same_storage(self, other: "EngineIdentity") -> bool:
        """Whether both engines keep their containers in one place."""
        return (self.data_root, self.containers_inode, self.containers_born_ns) == (
            other.data_root,
            other.containers_inode,
            other.containers_born_ns,
        )


class Hit(Strict, frozen=True, kw_only=True):
    """One process that may still send the request; nothing of its environment or arguments is kept."""

    pid: int
    program: str
    why: str


class Scan(Strict, frozen=True, kw_only=True):
    """What consecutive passes over all processes showed."""

    passes: int
    processes: int
    """Looked at in the last pass."""
    hits: tuple[Hit, ...] = ()
    unreliable: tuple[str, ...] = ()
    """Why the passes do not count, one sentence each."""
    unreadable: int = 0
    """Descriptors, programs or environments that could not be read; they decide nothing."""

    @property
    def clean(self) -> bool:
        """Two whole passes, and nobody found (K2)."""
        return self.passes >= 2 and not self.hits and not self.unreliable


class Witness(Strict, frozen=True, kw_only=True):
    """One visit."""

    format: Literal["symbi-recover/lease-witness.v1"] = FORMAT
    seen_ns: int
    locked: bool
    """`supervisor.lock` was held for the whole visit."""
    boot_id: str
    record: RecordIdentity
    directory: DirectoryIdentity
    endpoint: str | None
    """Path of the socket; None if it could not be resolved."""
    scan: Scan | None = None
    listener: ListenerIdentity | None = None
    engine: EngineIdentity | None = None
    remarks: tuple[str, ...] = ()
    """What could not be seen, and why."""


class Now(Struct, frozen=True, kw_only=True):
    """What a later visit compares with a witness."""

    boot_id: str | None
    record: RecordIdentity
    directory: DirectoryIdentity
    endpoint: str | None
    listener: ListenerIdentity | None
    engine: EngineIdentity | None


class WitnessFacts(Struct, frozen=True, kw_only=True):
    """One witness against what is seen now."""

    name: str
    """Of its file."""
    sha256: str
    unchanged: bool
    """Same bytes, inode and times of the record, same directory, same endpoint."""
    rebooted: bool
    """Seen on another boot (K1, and F1 for a local engine)."""
    replaced: bool
    """Engine process and listening socket are both others than then, on the same boot."""
    anchored: bool
    """That visit held the lock and its scan was clean (K2)."""
    own_listener: bool
    """The engine of then owned its listener, so that no queue outlives it."""
    same_storage: bool
    """Today's engine keeps its containers where the one of then did."""
    why: str | None = None
    """What makes it count for nothing."""


def compare(witness: Witness, now: Now, *, name: str, sha256: str) -> WitnessFacts:
    """Compare a witness with what is seen now. Pure.

    Args:
        witness: as read.
        now: of this visit.
        name: of the witness's file.
        sha256: of the witness's bytes.
    """
    differs = [
        word
        for word, then, today in (
            ("the record", witness.record, now.record),
            ("the directory", _place(witness.directory), _place(now.directory)),
            ("the endpoint", witness.endpoint, now.endpoint),
        )
        if then != today
    ]
    rebooted = now.boot_id is not None and witness.boot_id != now.boot_id
    engine, listener = witness.engine, witness.listener
    known = engine is not None and now.engine is not None
    replaced = (
        engine is not None
        and now.engine is not None
        and listener is not None
        and now.listener is not None
        and now.boot_id == witness.boot_id
        and engine.process != now.engine.process
        and listener.inode != now.listener.inode
    )
    return WitnessFacts(
        name=name,
        sha256=sha256,
        unchanged=not differs,
        rebooted=rebooted,
        replaced=replaced,
        anchored=witness.locked and witness.scan is not None and witness.scan.clean,
        own_listener=listener is not None and not listener.activated,
        same_storage=known
        and engine is not None
        and now.engine is not None
        and engine.same_storage(now.engine),
        why=f"{' and '.join(differs)} changed since" if differs else None,
    )


def _place(directory: DirectoryIdentity) -> tuple[str, int]:
    """Device numbers may change across a reboot."""
    return directory.path, directory.inode
