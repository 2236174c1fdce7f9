"""A lease store as it lies on disk, gathered once and judged later (leases.md sections 2, 3, 5, 13 and 15).

`read_store` takes no lock and creates nothing. In order:

1. resolve the folders above the state directory, and open the directory itself without following a link;
2. ask the kernel's list of locks whether a helper holds `supervisor.lock`;
3. look at every entry; open only regular files that the format knows, and never an environment file; one that the
   system says nothing about hides no other;
4. read records beside a running helper: one that was replaced is opened again, up to three times;
5. gather the snapshot pool, and what /proc and the cgroups say of VM and delegated workers.

What it gives is data alone: `lease_judge.py` turns it into a report, with or without the lock held.
"""

import hashlib
import os
from typing import Literal

from msgspec import Struct

from symbi_recover.core.errors import UnexaminedError
from symbi_recover.core.lease_records import (
    CGROUP_ROOT,
    MOST_RECORDS,
    RECORD_LIMIT,
    SMALL_LIMIT,
)
from symbi_recover.core.leases import Helper, WorkerView
from symbi_recover.core.scalars import is_canonical_uuid
from symbi_recover.read.evidence import host
from symbi_recover.read.evidence.clock import StartTime, process_time
from symbi_recover.read.evidence.kernel import PROC, CannotKnow
from symbi_recover.read.evidence.locate import lstat_at, readable
from symbi_recover.read.evidence.locks import LockAnswer, LockState, ask_lock
from symbi_recover.read.evidence.opener import (
    FOLDER_FLAGS,
    FileFacts,
    OpenedFile,
    examining,
    facts_of,
    system_text,
)
from symbi_recover.read.evidence.processes import Executable, Observation, namespace_of, observe
from symbi_recover.read.verify.lease import HostFacts, look_at_worker
from symbi_recover.read.verify.staging import Pool, list_names, read_staging
from symbi_recover.wire.lease import RecordReading, SmallReading, read_admission, read_record

LOCK = "supervisor.lock"
SOCKET = "supervisor.sock"
ADMISSION = "admission.conf"
WRITE_PREFIX = ".write-"
ENVIRONMENT_PREFIX = ".environment-"
SUFFIX = ".json"
STAGING_NAMES = frozenset({"staging.lock", "staging.conf", "staging"})
KNOWN = STAGING_NAMES | {LOCK, SOCKET, ADMISSION, "jails"}
_MOST_ENTRIES = 20_000
_MOST_READ = 2 * MOST_RECORDS
_TRIES = 3
MOST_HASHED = RECORD_LIMIT + 1
"""Bytes of a file that is given a digest; a larger one has none, rather than that of a part."""
_UNSEEN = FileFacts(
    kind="unknown", mode=0, uid=-1, gid=-1, links=0, size=0, device=0, inode=0, mtime_ns=0, ctime_ns=0
)


class Entry(Struct, frozen=True, kw_only=True):
    """One entry of the state directory."""

    name: str
    """As the system gives it; bytes that are no UTF-8 are surrogates."""
    facts: FileFacts
    """Of kind `unknown`, and without any meaning besides, where `unseen` is set."""
    unseen: str | None = None
    """Why the system does not say what lies there: for instance a mount whose server has died."""
    data: bytes | None = None
    """Content of records, left-overs of records and `admission.conf`; at most one byte above a record's limit."""
    sha256: str | None = None
    """Of the whole file; None for one that is too large, or was not read."""
    reading: RecordReading | None = None
    """Of a record whose name is canonical, or of a left-over whose content says its lease."""
    unread: str | None = None
    """Why a file that the helper reads could not be read here."""
    unstable: bool = False

    @property
    def decodable(self) -> bool:
        """The helper skips names that are not UTF-8."""
        return self.name.isascii() or not any("\udc80" <= letter <= "\udcff" for letter in self.name)

    @property
    def stem(self) -> str:
        """The name without `.json`."""
        return self.name.removesuffix(SUFFIX)


class StoreSnapshot(Struct, frozen=True, kw_only=True):
    """What lay in a state directory at one time."""

    path: str
    now_ns: int
    own_uid: int
    folder: FileFacts | None
    """None if there is no directory to look into; `fault` then says why."""
    fault: tuple[str, str] | None = None
    entries: tuple[Entry, ...] = ()
    truncated: bool = False
    admission: SmallReading | None = None
    helper: Helper = Helper(state="unknown")
    boot: str | None = None
    pool: Pool = Pool()
    workers: dict[str, WorkerView] = {}
    """By lease, for the phases that /proc can answer about."""
    vm_folders: tuple[str, ...] = ()
    """Leases of `vm-<lease>` entries."""
    jails: tuple[str, ...] = ()
    """Leases of folders below `jails/firecracker`."""

    def entry(self, name: str) -> Entry | None:
        """The entry of that name, or None."""
        return next((entry for entry in self.entries if entry.name == name), None)


def resolve(path: str) -> str:
    """The path as the helper sees it: absolute, links in the folders above followed, the last name kept."""
    folder, name = os.path.split(path.rstrip("/") or "/")
    if name in ("", ".", ".."):
        return os.path.realpath(path)
    return os.path.join(os.path.realpath(folder or "."), name)


def read_store(
    path: str,
    *,
    now_ns: int,
    ours: bool = False,
    proc: str = PROC,
    cgroup_root: str = CGROUP_ROOT,
) -> StoreSnapshot:
    """Gather a state directory.

    Args:
        path: the directory, in any spelling.
        now_ns: the clock, in nanoseconds since 1970.
        ours: this process holds `supervisor.lock` exclusively.
        proc: where proc is mounted.
        cgroup_root: where the cgroups are mounted.

    Raises:
        UnexaminedError: the directory is there and cannot be opened or listed.
    """
    real = resolve(path)
    try:
        descriptor = os.open(real, FOLDER_FLAGS)
    except FileNotFoundError:
        return _faulty(real, now_ns, "dir_missing", "there is nothing at this path")
    except (NotADirectoryError, OSError) as error:
        status = lstat_at(real, -1)
        kind = facts_of(status).kind if status is not None else "folder"
        if kind != "folder":
            return _faulty(real, now_ns, "dir_unsafe", f"a {kind} lies at this path")
        with examining(real):
            raise error from None
    try:
        with examining(real):
            return _gather(real, descriptor, now_ns, ours=ours, proc=proc, cgroup_root=cgroup_root)
    finally:
        os.close(descriptor)


def _faulty(path: str, now_ns: int, code: str, message: str) -> StoreSnapshot:
    return StoreSnapshot(
        path=path,
        now_ns=now_ns,
        own_uid=os.geteuid(),
        folder=None,
        fault=(code, message),
        helper=Helper(state="unknown", why="there is no state directory to look into"),
    )


def _gather(path: str, folder: int, now_ns: int, *, ours: bool, proc: str, cgroup_root: str) -> StoreSnapshot:
    # A directory may be listed and not searched: then nothing in it can be told from absence.
    os.stat(".", dir_fd=folder)
    helper = Helper(state="ours", pid=os.getpid()) if ours else _helper(folder, proc)
    names, truncated = list_names(folder, _MOST_ENTRIES)
    entries: list[Entry] = []
    records = 0
    for name in names:
        records += name.endswith(SUFFIX)
        entry = _entry(name, folder, read=records <= _MOST_READ)
        if entry is not None:
            entries.append(entry)
    boot = host.boot_id(proc)
    facts = HostFacts(
        boot=boot, same_pid_namespace=_same_namespace(helper, proc), proc=proc, cgroup_root=cgroup_root
    )
    admission = next((entry for entry in entries if entry.name == ADMISSION), None)
    return StoreSnapshot(
        path=path,
        now_ns=now_ns,
        own_uid=os.geteuid(),
        folder=facts_of(os.fstat(folder)),
        entries=tuple(entries),
        truncated=truncated,
        admission=read_admission(admission.data) if admission and admission.data is not None else None,
        helper=helper,
        boot=boot if isinstance(boot, str) else None,
        pool=read_staging(folder, proc),
        workers=_workers(entries, path, facts),
        vm_folders=tuple(
            name[3:] for name in names if name.startswith("vm-") and is_canonical_uuid(name[3:])
        ),
        jails=_jails(path),
    )


def _entry(name: str, folder: int, *, read: bool) -> Entry | None:
    """Look at one entry; None if it is gone by now."""
    try:
        facts = _facts(name, folder)
    except OSError as error:
        return Entry(name=name, facts=_UNSEEN, unseen=system_text(error))
    if facts is None:
        return None
    entry = Entry(name=name, facts=facts)
    if facts.kind != "file" or not entry.decodable or name.startswith(ENVIRONMENT_PREFIX):
        return entry
    record = name.endswith(SUFFIX) or name.startswith(WRITE_PREFIX)
    if not record and name not in (LOCK, SOCKET, ADMISSION):
        return entry
    if record and not read:
        return Entry(name=name, facts=facts, unread="there are too many records")
    return _content(name, folder, facts, RECORD_LIMIT if record else SMALL_LIMIT)


def _facts(name: str, folder: int) -> FileFacts | None:
    """What lies under a name; None for nothing.

    Raises:
        OSError: something lies there, and the system does not say what.
    """
    try:
        return facts_of(os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return None


def _content(name: str, folder: int, facts: FileFacts, limit: int) -> Entry | None:
    """Section 5, reading beside a running helper."""
    for _ in range(_TRIES):
        try:
            with OpenedFile.open(name, folder=folder) as file:
                facts = file.facts
                # Small enough for a digest of the whole, or else no more than shows that it is too large.
                most = RECORD_LIMIT if facts.size <= MOST_HASHED else limit
                data = file.read(most) if facts.kind == "file" and facts.links else b""
                if facts.kind == "file" and facts.links and file.unchanged() and _still_named(file):
                    return Entry(
                        name=name,
                        facts=facts,
                        data=data,
                        sha256=hashlib.sha256(data).hexdigest() if len(data) == facts.size else None,
                        reading=_reading(name, data),
                    )
        except UnexaminedError as error:
            if error.code == "file_missing":
                return None
            return Entry(name=name, facts=facts, unread=error.message)
    return Entry(name=name, facts=facts, unstable=True)


def _still_named(file: OpenedFile) -> bool:
    """The file was not replaced while it was read: a record is never overwritten in place."""
    return os.fstat(file.descriptor).st_nlink == file.facts.links


def _reading(name: str, data: bytes) -> RecordReading | None:
    if name.startswith(WRITE_PREFIX):
        return read_record(data, None)
    stem = name.removesuffix(SUFFIX)
    return read_record(data, stem) if name.endswith(SUFFIX) and is_canonical_uuid(stem) else None


def _workers(entries: list[Entry], path: str, facts: HostFacts) -> dict[str, WorkerView]:
    views = {}
    for entry in entries:
        if entry.reading is not None and entry.reading.record is not None and entry.name.endswith(SUFFIX):
            view = look_at_worker(entry.reading.record, path, facts)
            if view is not None:
                views[entry.stem] = view
    return views


def _helper(folder: int, proc: str) -> Helper:
    """Whether a helper holds the lock; the file is opened read-only and the lock never taken."""
    try:
        facts, socket = _facts(LOCK, folder), _facts(SOCKET, folder)
    except OSError as error:
        return Helper(state="unknown", why=f"the lock file or the socket: {system_text(error)}")
    if facts is None and socket is not None:
        return Helper(state="unknown", why="the lock file is missing, though a socket is there")
    if facts is None or facts.kind != "file":
        return Helper(state="absent", why="there is no lock file")
    try:
        with OpenedFile.open(LOCK, folder=folder) as file:
            return _holder(ask_lock(file.descriptor, proc), proc)
    except UnexaminedError as error:
        return Helper(state="unknown", why=f"the lock file cannot be opened: {error.message}")


def _holder(answer: LockAnswer, proc: str) -> Helper:
    if answer.state is LockState.FREE:
        return Helper(state="absent")
    if answer.state is LockState.UNKNOWN:
        return Helper(state="unknown", why=answer.because.detail if answer.because else None)
    if not answer.exclusive:
        return Helper(state="unknown", why="a process holds the lock in a way that a helper never does")
    pid = next((holder.pid for holder in answer.holders if holder.pid is not None), None)
    since = program = None
    seen = observe(pid, proc=proc) if pid is not None else None
    if isinstance(seen, Observation):
        started = process_time(seen.stat.start_ticks, proc)
        since = started.earliest_ns if isinstance(started, StartTime) else None
        if isinstance(seen.executable, Executable):
            program = readable(os.fsdecode(seen.executable.path))
    state: Literal["running", "probable"] = "running" if answer.state is LockState.HELD else "probable"
    return Helper(state=state, pid=pid, since_ns=since, program=program)


def _same_namespace(helper: Helper, proc: str) -> bool | CannotKnow:
    """Whether numbers in records mean processes as seen from here (section 15)."""
    whole = host.sees_whole_host(proc)
    if helper.pid is None or not helper.supervises:
        return whole
    theirs, own = namespace_of(helper.pid, "pid", proc), host.own_namespace("pid", proc)
    if isinstance(theirs, int) and isinstance(own, int):
        return theirs == own
    return whole


def _jails(path: str) -> tuple[str, ...]:
    try:
        folder = os.open(f"{path}/jails/firecracker", FOLDER_FLAGS)
    except OSError:
        return ()
    try:
        names, _ = list_names(folder, _MOST_ENTRIES)
    except OSError:
        return ()
    finally:
        os.close(folder)
    return tuple(name for name in names if is_canonical_uuid(name))
