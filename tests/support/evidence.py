"""The runtime's own evidence, unpacked for tests.

Claims name their journal by absolute path, so some tests need the archive at `PLACE`. `hold_place` puts it there:

1. take a shared file lock beside the place (not in it: evidence is never locked or added to);
2. when nothing is there, take the lock alone, unpack into a fresh folder, rename that into place, and start again;
3. compare the place with the archive, member by member, and refuse to go on if anything differs;
4. keep the shared lock while tests run; the last one out removes the copy and the lock file.

Nothing at the place is trusted or deleted unless it equals the archive and belongs to the current user. Tests must
not change files there; those that do take a copy of their own with `unpack` (or the `evidence_copy` fixture for
reading only).
"""

import fcntl
import hashlib
import json
import os
import shutil
import stat
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.support.places import PlaceTakenError, is_current, lock_path, open_lock

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
GOLDEN = FIXTURES / "golden" / "runtime-3.0.0"
TARBALL = GOLDEN / "runtime-evidence.tar.gz"
EXPECTED = GOLDEN / "expected.jsonl"
PLACE = Path("/var/tmp/symbi-evidence")


class MisplacedEvidenceError(PlaceTakenError):
    """The place holds something other than the shipped evidence."""


class Member(NamedTuple):
    """One archive member: `kind` is "dir", "file" or "link"; `mode` 0 for links."""

    kind: str
    mode: int
    data: bytes
    target: str


class Check(NamedTuple):
    """One answer of the runtime; paths are relative to the evidence, and what a command lacks is empty."""

    command: str
    rc: int
    stdout: str
    stderr: str
    journal: str
    run_id: str
    public_key: str
    project: str
    scope: str
    id: str
    publication: str


class Scenario(NamedTuple):
    """One incident of `scenarios.json`; paths are relative to the evidence."""

    name: str
    agent: str
    scope: str
    id: str
    run_id: str
    public_key: str
    journal: str
    publication: str | None


@cache
def members() -> dict[str, Member]:
    """Every member of the archive by its relative path, parents first."""
    found: dict[str, Member] = {}
    with tarfile.open(TARBALL) as archive:
        for item in archive:
            opened = archive.extractfile(item) if item.isfile() else None
            data = opened.read() if opened else b""
            kind = "dir" if item.isdir() else "link" if item.issym() else "file"
            found[item.name.rstrip("/")] = Member(
                kind, 0 if kind == "link" else item.mode, data, item.linkname
            )
    for name in list(found):
        for parent in Path(name).parents:
            if str(parent) != ".":
                found.setdefault(str(parent), Member("dir", 0o755, b"", ""))
    return dict(sorted(found.items()))


def unpack(into: Path) -> Path:
    """Unpack the archive into the folder `into`, which must not exist; return it.

    Modes are as packed whatever the umask; owner is the current user. Links keep their absolute targets, which
    point into `PLACE`.
    """
    into.mkdir(mode=0o755)
    for name, member in members().items():
        path = into / name
        if member.kind == "dir":
            path.mkdir(mode=0o700)
        elif member.kind == "link":
            path.symlink_to(member.target)
        else:
            path.write_bytes(member.data)
            path.chmod(member.mode)
    for name, member in reversed(members().items()):
        if member.kind == "dir":
            (into / name).chmod(member.mode)
    into.chmod(0o755)
    return into


def difference(root: Path) -> str | None:
    """The first way in which the tree at `root` is not the archive as this user would unpack it; None if equal."""
    here = root.lstat()
    if not stat.S_ISDIR(here.st_mode) or here.st_uid != os.geteuid() or here.st_mode & 0o022:
        return f"{root} is not a folder that this user owns and no one else can write to"
    expected = members()
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if name not in expected:
            return f"{path} is not part of the archive"
    for name, member in expected.items():
        reason = _member_difference(root / name, member)
        if reason:
            return reason
    return None


def _member_difference(path: Path, member: Member) -> str | None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return f"{path} is missing"
    kinds = {"dir": stat.S_ISDIR, "file": stat.S_ISREG, "link": stat.S_ISLNK}
    if not kinds[member.kind](status.st_mode):
        return f"{path} is not a {member.kind}"
    if status.st_uid != os.geteuid():
        return f"{path} belongs to uid {status.st_uid}"
    if member.kind == "link":
        return None if str(path.readlink()) == member.target else f"{path} points elsewhere"
    if stat.S_IMODE(status.st_mode) != member.mode:
        return f"{path} has mode {stat.S_IMODE(status.st_mode):04o}, not {member.mode:04o}"
    if member.kind == "file" and (status.st_nlink != 1 or path.read_bytes() != member.data):
        return f"{path} has other bytes, or a second name"
    return None


@contextmanager
def hold_place(place: Path = PLACE) -> Iterator[Path]:
    """Have the evidence at `place` while the context lasts; see the module for how.

    Raises:
        MisplacedEvidenceError: something else is there already.
        PlaceTakenError: another user is using it.
    """
    path = lock_path(place)
    lock = _settle(place, path)
    try:
        yield place
    finally:
        _leave(place, path, lock)


def _settle(place: Path, path: Path) -> int:
    """Return the shared lock under which `place` was seen to hold the evidence."""
    while True:
        lock = open_lock(path)
        kept = False
        try:
            fcntl.flock(lock, fcntl.LOCK_SH)
            if is_current(path, lock) and os.path.lexists(place):
                reason = difference(place)
                kept = True
                if reason:
                    _leave(place, path, lock)
                    raise MisplacedEvidenceError(
                        f"{place} is not the shipped evidence: {reason}. Look at it, move it away, run again.",
                    )
                return lock
            # Upgrading lets go of the shared lock first, so two that arrive together cannot block each other.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if is_current(path, lock) and not os.path.lexists(place):
                staged = place.with_name(f"{place.name}.{os.getpid()}.part")
                shutil.rmtree(staged, ignore_errors=True)
                unpack(staged).rename(place)
        finally:
            if not kept:
                os.close(lock)


def _leave(place: Path, path: Path, lock: int) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return  # someone else still uses it and will clear up
    else:
        if is_current(path, lock):
            if os.path.lexists(place) and difference(place) is None:
                shutil.rmtree(place)
            path.unlink()
    finally:
        os.close(lock)


def checks(command: str | None = None) -> list[Check]:
    """The runtime's answers, in file order; only those to `command` (such as "audit inspect") if given."""
    lines = EXPECTED.read_text(encoding="utf-8").splitlines()
    everything = [
        Check(**{name: line.get(name, "") for name in Check._fields}) for line in map(json.loads, lines)
    ]
    return [check for check in everything if command in (None, check.command)]


@cache
def scenarios() -> dict[str, Scenario]:
    """The incidents by name."""
    entries = json.loads(members()["scenarios/scenarios.json"].data)
    return {
        entry["project"]: Scenario(
            name=entry["project"],
            agent=entry["agent"],
            scope=entry["scope"],
            id=entry["id"],
            run_id=entry["run_id"],
            public_key=entry["public_key"],
            journal=f"scenarios/{entry['journal']}",
            publication=entry["publication"],
        )
        for entry in entries
    }


def journal(check: Check | Scenario) -> bytes:
    """The journal that a check or scenario names, as packed."""
    return members()[check.journal].data


def fingerprint(root: Path) -> str:
    """A digest over names, kinds, modes, owners, sizes, link counts, times and bytes of everything below `root`.

    Equal before and after a command means that it changed nothing that can be seen (access times are left out).
    """
    digest = hashlib.sha256()
    for path in [root, *sorted(root.rglob("*"))]:
        status = path.lstat()
        facts = (
            str(path.relative_to(root)),
            status.st_mode,
            status.st_uid,
            status.st_gid,
            status.st_nlink,
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
            status.st_ino,
        )
        digest.update(repr(facts).encode("utf-8", "surrogateescape"))
        if stat.S_ISLNK(status.st_mode):
            digest.update(os.fsencode(path.readlink()))
        elif stat.S_ISREG(status.st_mode):
            digest.update(path.read_bytes())
    return digest.hexdigest()
