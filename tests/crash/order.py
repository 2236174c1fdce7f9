"""Judges the order of calls in a trace: nothing may be announced that a power cut could still undo.

`assert_durable_order` follows one published name (field case F-084): write all, sync the file, publish the name, sync
the directory, and only then write to stdout. `assert_nothing_unsynced` asks the same of every file and directory of the
tree, also of appended files such as a ledger. For both, calls that failed count as not done. `assert_no_overwrite` looks at how
names are made: nothing may replace a file that another process has just created. All read a trace only.
"""

import os
import re
from fnmatch import fnmatchcase

from tests.crash.calls import Call, inside, names
from tests.crash.run import Trace

_SYNCS = frozenset({"fsync", "fdatasync"})
_WRITES = frozenset(
    names("write pwrite64 writev pwritev pwritev2 ftruncate fallocate copy_file_range sendfile splice")
)
_RENAMES = frozenset({"rename", "renameat", "renameat2"})
_LINKS = frozenset({"link", "linkat"})
_ENTRIES = frozenset(names("unlink unlinkat rmdir mkdir mkdirat mknod mknodat symlink symlinkat creat"))
_OPENS = frozenset({"open", "openat", "openat2"})
_PROC_FD = re.compile(r"/proc/(?:self|\d+)/fd/(\d+)")


def assert_durable_order(
    trace: Trace, final_name: str, *, written: bool = True, before: str | None = None
) -> None:
    """Raise AssertionError unless the file `final_name` was published durably before it was announced.

    Args:
        trace: a recording of the successful command.
        final_name: the base name, or the full path, of the published file; or a pattern of it, as a shell has them.
        written: whether the command writes the file itself; False when it only publishes what is there already.
        before: base name of a file whose removal counts as the announcement; None for the first output.
    """
    calls = [call for call in trace.calls if call.error is None]
    publish = next((i for i, call in enumerate(calls) if _publishes(call, final_name)), None)
    if publish is None:
        raise AssertionError(f"no rename or link publishes {final_name}")
    source, target = _source(calls, publish), calls[publish].paths[-1]
    either = {source, target}
    writes = [i for i, call in enumerate(calls) if call.name in _WRITES and _writes_to(call) in either]
    syncs = [
        i
        for i, call in enumerate(calls)
        if call.name in _SYNCS and call.paths[:1] == (source,) and i < publish
    ]
    if written and not writes:
        raise AssertionError(f"nothing was written to {source} before it became {final_name}")
    if writes:
        if writes[-1] > publish:
            raise AssertionError(f"{final_name} is written after it was published: {calls[writes[-1]].text}")
        if not syncs:
            raise AssertionError(f"{source} is not synced before it is published: {calls[publish].text}")
        if syncs[-1] < writes[-1]:
            raise AssertionError(f"{source} is written after its last sync: {calls[writes[-1]].text}")
    directory = os.path.dirname(target)
    synced = [i for i, call in enumerate(calls) if call.name in _SYNCS and call.paths[:1] == (directory,)]
    after = next((i for i in synced if i > publish), None)
    if after is None:
        raise AssertionError(f"the directory {directory} is not synced after {calls[publish].text}")
    announced = _announcement(calls) if before is None else _removal(calls, before)
    if announced is None:
        raise AssertionError(
            "nothing was announced on stdout" if before is None else f"{before} was not removed"
        )
    if announced < after:
        raise AssertionError(f"announced before the directory was synced: {calls[announced].text}")


def assert_nothing_unsynced(trace: Trace, ignore: tuple[str, ...] = ()) -> None:
    """Raise AssertionError when a change below the root is not yet durable at the first write to stdout.

    A written file needs a sync of that file; a new, renamed, linked or removed name needs one of its directory.
    `ignore` holds base names whose loss is harmless, such as a lock file.
    """
    calls = [call for call in trace.calls if call.error is None]
    announced = _announcement(calls)
    loose: dict[str, Call] = {}
    for call in calls if announced is None else calls[:announced]:
        if call.name in _SYNCS and call.paths:
            loose.pop(call.paths[0], None)
            continue
        if call.name in ("sync", "syncfs"):
            loose.clear()
        for path in _touched(call, trace.existed):
            if inside(path, trace.root) and not any(name in ignore for name in _base_names(call)):
                loose[path] = call
    if loose:
        listed = "\n".join(f"  {path}: {call.text}" for path, call in loose.items())
        raise AssertionError(f"not durable when success was announced:\n{listed}")


def assert_no_overwrite(trace: Trace, ignore: tuple[str, ...] = ()) -> None:
    """Raise AssertionError when a call below the root could replace or cut a file that someone else has just made.

    A rename must say RENAME_NOREPLACE, a creation O_EXCL, and nothing may be truncated; also calls that failed count.
    `ignore` holds base names that may be opened for creation, such as a lock file.
    """
    for call in trace.calls:
        if not any(inside(path, trace.root) for path in call.paths) or any(
            n in ignore for n in _base_names(call)
        ):
            continue
        flags = " ".join(call.args)
        renames = call.name in _RENAMES and "RENAME_NOREPLACE" not in flags
        creates = call.name in _OPENS and "O_CREAT" in flags and "O_EXCL" not in flags
        cuts = call.name in ("truncate", "creat") or (call.name in _OPENS and "O_TRUNC" in flags)
        if renames or creates or cuts:
            raise AssertionError(f"could overwrite an existing file: {call.text}")


def _publishes(call: Call, final_name: str) -> bool:
    if call.name not in _RENAMES | _LINKS or not call.paths:
        return False
    target = call.paths[-1]
    return any(fnmatchcase(name, final_name) for name in (target, target.rsplit("/", 1)[-1]))


def _source(calls: list[Call], publish: int) -> str:
    """The path that was written: for a file without a name, the path its descriptor shows."""
    call = calls[publish]
    through = _PROC_FD.fullmatch(call.paths[0])
    if not through:
        return call.paths[0]
    number = int(through[1])
    seen = (c.paths[0] for c in reversed(calls[:publish]) if c.descriptor == number and c.paths)
    return next(seen, call.paths[0])


def _writes_to(call: Call) -> str | None:
    return call.paths[0] if call.paths else None


def _announcement(calls: list[Call]) -> int | None:
    return next((i for i, c in enumerate(calls) if c.name in ("write", "writev") and c.descriptor == 1), None)


def _removal(calls: list[Call], name: str) -> int | None:
    removals = (i for i, c in enumerate(calls) if c.name in ("unlink", "unlinkat") and name in _base_names(c))
    return next(removals, None)


def _touched(call: Call, existed: frozenset[str]) -> list[str]:
    """The files or directories that need a sync because of this call."""
    if call.name in _WRITES:
        target = call.paths[-1] if call.name in ("copy_file_range", "splice") else _writes_to(call)
        return [target] if target else []
    if call.name in _RENAMES | _LINKS:
        return [_parent(path) for path in (call.paths if call.name in _RENAMES else call.paths[-1:])]
    if call.name in _ENTRIES:
        return [_parent(call.paths[-1])]
    if call.name in _OPENS and "O_CREAT" in " ".join(call.args) and call.paths[-1] not in existed:
        return [_parent(call.paths[-1])]
    return []


def _parent(path: str) -> str:
    return path.rsplit("/", 1)[0] or "/"


def _base_names(call: Call) -> list[str]:
    return [path.rsplit("/", 1)[-1] for path in call.paths]
