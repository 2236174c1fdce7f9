"""Ties leases to the signed journals of the runs that caused them (leases.md section 16).

For each run that leases name, once:

1. look for `.symbiont/governed/<agent>.<run>.jsonl` in the projects given, and below the roots given; folders that
   cannot be searched are named where nothing was found;
2. pass over copies for which no key is trusted, if another has one; verify every complete record's signature and place with keys that did not come from the lease;
3. compare the verifying key with the one the lease names;
4. find exactly one start of the dispatch, compare every field, and attach its signed finish if there is one.

The origin is the runtime's own statement: that it fits grants nothing and settles nothing. A dispatch is signed before
its lease exists, so one that is missing is a contradiction, not early.
"""

import io
import os
from collections.abc import Callable, Iterable, Iterator
from uuid import UUID

from msgspec import Struct

from symbi_recover.core.errors import UnexaminedError
from symbi_recover.core.events import Terminated, ToolDispatchFinished, ToolDispatchStarted
from symbi_recover.core.lease_records import LeaseRecord, Origin
from symbi_recover.core.leases import OriginView
from symbi_recover.core.refusals import JournalRefusedError
from symbi_recover.core.words import counted
from symbi_recover.read.evidence.locate import GOVERNED, SYMBIONT, readable
from symbi_recover.read.evidence.opener import OpenedFile
from symbi_recover.read.verify.chain import Chain
from symbi_recover.wire import ed25519
from symbi_recover.wire.journal import MAX_JOURNAL, MAX_RECORD

Keys = Callable[[str], list[bytes]]
"""The trusted keys for a journal's path."""
_MOST_FOLDERS = 500_000
_MOST_SHOWN = 8
_SKIPPED = frozenset({"/proc", "/sys", "/dev"})


class _Start(Struct, frozen=True):
    sequence: int
    iteration: int
    event: ToolDispatchStarted


class _Run(Struct, frozen=True):
    """What one journal says of its dispatches."""

    path: str
    key: bytes
    agent: UUID
    starts: dict[UUID, list[_Start]]
    finishes: dict[UUID, ToolDispatchFinished]
    ended: Terminated | None


class _Refused(Struct, frozen=True):
    """Why a journal proves nothing."""

    path: str
    reason: str
    examined: bool
    """False if it could not be read."""


class OriginSearch:
    """Where journals are looked for, and whom to trust; verifies each journal once."""

    def __init__(self, projects: Iterable[str], roots: Iterable[str], keys: Keys) -> None:
        """Prepare.

        Args:
            projects: folders that hold `.symbiont`.
            roots: folders to search for such folders; links are not followed.
            keys: trusted keys; not those of a lease.
        """
        self.projects = list(dict.fromkeys(os.path.realpath(path) for path in projects))
        self.roots = list(dict.fromkeys(os.path.realpath(path) for path in roots))
        self.keys = keys
        self._folders: list[str] | None = None
        self._unsearched: list[str] = []
        self._runs: dict[str, _Run | _Refused] = {}

    def view(self, origin: Origin) -> OriginView:
        """Compare one origin with the journals that are found for it."""
        paths = self._find(f"{origin.agent_id}.{origin.run_id}.jsonl")
        if not paths:
            detail = f"no journal of run {origin.run_id} under the folders given{self._not_searched()}"
            return OriginView(verdict="origin_unverified", detail=detail)
        runs: list[_Run] = []
        refused: list[_Refused] = []
        for path in paths:
            keys = self.keys(path)
            if not keys:
                continue
            run = self._verify(path, UUID(origin.run_id), keys)
            (runs if isinstance(run, _Run) else refused).append(run)  # type: ignore[arg-type]
            if bytes.fromhex(origin.public_key) not in keys:
                detail = f"the lease names key {origin.public_key.lower()}, which is not trusted"
                if isinstance(run, _Refused):
                    detail += f"; the journal does not verify either: {run.reason}"
                return OriginView(verdict="origin_key_mismatch", detail=detail, journal=readable(path))
        if not runs and not refused:
            detail = f"a journal was found, and no key is trusted for it{self._not_searched()}"
            return OriginView(verdict="origin_unverified", detail=detail, journal=readable(paths[0]))
        if not runs:
            first = refused[0]
            code = "origin_journal_refused" if first.examined else "origin_unverified"
            return OriginView(verdict=code, detail=first.reason, journal=readable(first.path))
        views = [_compare(origin, run) for run in runs]
        return next((view for view in views if view.verdict == "origin_verified"), views[0])

    def _find(self, name: str) -> list[str]:
        if self._folders is None:
            own = [f"{project}/{SYMBIONT}/{GOVERNED}" for project in self.projects]
            below = [one for root in self.roots for one in _governed(root, self._unsearched)]
            self._folders = [one for one in dict.fromkeys([*own, *below]) if self._may_search(one)]
        paths = [f"{folder}/{name}" for folder in self._folders]
        return [path for path in paths if os.path.lexists(path)]

    def _may_search(self, folder: str) -> bool:
        """Whether names in a folder can be looked up; one that is not there holds none."""
        try:
            os.stat(f"{folder}/.")
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            self._unsearched.append(f"{readable(folder)} ({os.strerror(error.errno or 0)})")
            return False
        return True

    def _not_searched(self) -> str:
        """The end of a sentence, where the search was not whole."""
        if not self._unsearched:
            return ""
        shown, more = self._unsearched[:_MOST_SHOWN], len(self._unsearched) - _MOST_SHOWN
        return f"; not searched: {', '.join(shown)}{f' and {more} more' if more > 0 else ''}"

    def _verify(self, path: str, run_id: UUID, keys: list[bytes]) -> _Run | _Refused:
        if path not in self._runs:
            results = [_read(path, run_id, key) for key in keys]
            self._runs[path] = next((one for one in results if isinstance(one, _Run)), results[0])
        return self._runs[path]


def origins(records: Iterable[LeaseRecord], search: OriginSearch) -> dict[str, OriginView]:
    """What the journals say, by lease; leases without origin are left out."""
    return {one.lease: search.view(one.origin) for one in records if one.origin is not None}


def _governed(root: str, unsearched: list[str]) -> Iterator[str]:
    """Every `.symbiont/governed` at and below a root; what cannot be searched is added to a list, with the reason."""
    waiting, seen = [root], 0
    while waiting:
        if seen >= _MOST_FOLDERS:
            unsearched.append(
                f"{counted(len(waiting), 'folder')} below {readable(root)} and what they hold (too many)"
            )
            return
        folder = waiting.pop()
        seen += 1
        try:
            with os.scandir(folder) as entries:
                names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        except OSError as error:
            # A folder that has gone meanwhile holds nothing; a root that is not there was not searched.
            if folder == root or not isinstance(error, FileNotFoundError):
                unsearched.append(f"{readable(folder)} ({os.strerror(error.errno or 0)})")
            continue
        if SYMBIONT in names:
            yield f"{folder.rstrip('/')}/{SYMBIONT}/{GOVERNED}"
        below = [f"{folder.rstrip('/')}/{name}" for name in reversed(names) if name != SYMBIONT]
        waiting += [path for path in below if path not in _SKIPPED]


def _read(path: str, run_id: UUID, key: bytes) -> _Run | _Refused:
    """Verify a journal's complete records and collect its dispatches."""
    if not ed25519.is_point(key):
        return _Refused(path, "the trusted key is not a point on the curve", examined=True)
    chain = Chain(key, run_id)
    starts: dict[UUID, list[_Start]] = {}
    finishes: dict[UUID, ToolDispatchFinished] = {}
    ended: Terminated | None = None
    try:
        with OpenedFile.open(path) as file:
            if file.facts.kind != "file" or file.facts.size > MAX_JOURNAL:
                return _Refused(
                    path, f"a {file.facts.kind} of {counted(file.facts.size, 'byte')}", examined=True
                )
            for lines in _lines(file):
                for sequence, iteration, event in chain.take(lines).events:
                    if isinstance(event, ToolDispatchStarted):
                        starts.setdefault(event.dispatch_id, []).append(_Start(sequence, iteration, event))
                    elif isinstance(event, ToolDispatchFinished):
                        finishes.setdefault(event.dispatch_id, event)
                    elif isinstance(event, Terminated):
                        ended = event
            if not file.unchanged():
                return _Refused(path, "the journal changed while being read", examined=False)
    except JournalRefusedError as error:
        place = "" if error.record is None else f" (record {error.record})"
        return _Refused(path, f"{error.finding.message}{place}", examined=True)
    except UnexaminedError as error:
        return _Refused(path, error.message, examined=False)
    if chain.principal is None:
        return _Refused(path, "it has no complete record", examined=True)
    return _Run(path, key, chain.principal, starts, finishes, ended)


def _lines(file: OpenedFile) -> Iterator[list[bytes]]:
    """Complete lines, block by block; a longer piece than a record may be is handed on for the chain to refuse."""
    rest = b""
    for block in file.blocks(0, file.facts.size):
        lines = io.BytesIO(rest + block).readlines()
        rest = b"" if lines[-1].endswith(b"\n") else lines.pop()
        yield lines
        if len(rest) > MAX_RECORD:
            yield [rest]
            return


def _compare(origin: Origin, run: _Run) -> OriginView:
    if origin.public_key.lower() != run.key.hex():
        detail = f"the lease names key {origin.public_key.lower()}, the journal verifies with {run.key.hex()}"
        return OriginView(verdict="origin_key_mismatch", detail=detail, journal=readable(run.path))
    starts = run.starts.get(UUID(origin.dispatch_id), [])
    if not starts:
        detail = f"dispatch {origin.dispatch_id} is not among the signed records"
        return OriginView(verdict="origin_dispatch_missing", detail=detail, journal=readable(run.path))
    if len(starts) > 1:
        places = ", ".join(str(start.sequence) for start in starts)
        detail = f"dispatch {origin.dispatch_id} starts in records {places}"
        return OriginView(verdict="origin_dispatch_repeated", detail=detail, journal=readable(run.path))
    start = starts[0]
    wrong = [
        f"{name} is {ours!r} in the lease and {theirs!r} in the journal"
        for name, ours, theirs in (
            ("agent_id", origin.agent_id, str(run.agent)),
            ("call_fingerprint", _folded(origin.call_fingerprint), _folded(start.event.call_fingerprint)),
            ("tool_name", origin.tool_name, start.event.tool_name),
            ("iteration", origin.iteration, start.iteration),
        )
        if ours != theirs
    ]
    finish = run.finishes.get(UUID(origin.dispatch_id))
    outcome = "unfinished" if finish is None else "failed" if finish.is_error else "succeeded"
    reason = run.ended.reason if run.ended is not None else None
    return OriginView(
        verdict="origin_field_mismatch" if wrong else "origin_verified",
        detail="; ".join(wrong) or f"dispatch of {origin.tool_name!r}, {outcome}",
        journal=readable(run.path),
        start_sequence=start.sequence,
        outcome=outcome,  # type: ignore[arg-type]
        terminal_reason=None if reason is None else reason if isinstance(reason, str) else reason.tag,
    )


def _folded(fingerprint: str) -> str:
    """Hex digits by value; the prefix as it is."""
    prefix, colon, digits = fingerprint.partition(":")
    return f"{prefix}{colon}{digits.lower()}"
