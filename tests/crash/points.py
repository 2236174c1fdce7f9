"""Where a recorded command can be disturbed, and a bounded, repeatable choice from all of these places.

Kill points: one before every call of the first process after start-up, the final exit included. As a process can only
change the world by a system call, "before call n+1" and "after call n" leave the same world; so one run does for both,
and each point says in words which two calls it lies between. Calls that only load library code are left out: they are
reads, so a kill there equals a kill at the next call that is about something else. Writes into the tree are also torn.

Fault points: every such call fails, once and from then on for ever, with each errno. EINTR comes once only, because
the interpreter rightly tries again for as long as it gets EINTR. Writes also return 0 once.
"""

import random
from collections.abc import Iterable, Sequence
from itertools import pairwise

from tests.crash.calls import About, Call, names
from tests.crash.run import Kind, Point, Trace

ERRNOS = names("EIO ENOSPC EDQUOT EROFS EACCES EINTR ENOMEM EMFILE EEXIST EINVAL EOPNOTSUPP ENOLCK")
"""The errors that every call is made to return."""

EXTRA_ERRNOS = {
    "renameat2": ("ENOSYS", "EPERM", "EXDEV"),
    "linkat": ("EPERM", "EXDEV", "EMLINK"),
    "link": ("EPERM", "EXDEV", "EMLINK"),
    "fsync": ("EBADF",),
    "write": ("EPIPE", "EFBIG"),
}
"""Errors that belong to one call (field cases F-087 and F-094)."""

_WRITES = frozenset({"write", "pwrite64", "writev", "pwritev", "pwritev2"})
_TEARABLE = frozenset({"write", "pwrite64"})
_NO_FAULT = frozenset(
    names(
        "exit exit_group execve mmap munmap clone clone3 fork vfork wait4 kill tgkill poll ppoll select pselect6"
    )
)
_TELLING = frozenset(
    {
        ("fsync", "EIO"),
        ("fdatasync", "EIO"),
        ("write", "ENOSPC"),
        ("pwrite64", "ENOSPC"),
        ("writev", "ENOSPC"),
    }
)
CHANGING = _WRITES | frozenset(
    names(
        "creat rename renameat renameat2 link linkat symlink symlinkat unlink unlinkat rmdir mkdir mkdirat mknod mknodat "
        "truncate ftruncate fallocate chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes utimensat "
        "futimesat setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr fsync fdatasync sendfile "
        "copy_file_range splice sendto sendmsg connect flock"
    )
)
"""Calls after which the world may differ from before."""


def changes(call: Call) -> bool:
    """Whether a call that succeeded may have changed the world."""
    if call.error is not None:
        return False
    if call.name in ("open", "openat", "openat2"):
        return any(flag in " ".join(call.args) for flag in ("O_CREAT", "O_TRUNC", "O_TMPFILE"))
    return call.name in CHANGING


def _own(trace: Trace) -> list[Call]:
    """The calls of the first process that are not about library code or plain memory."""
    dull = (About.LIBRARY, About.NOTHING)
    return [c for c in trace.calls if c.pid == trace.main and (c.about not in dull or c.name == "exit_group")]


def kill_points(trace: Trace) -> list[Point]:
    """A kill before every call, which is also the kill after the one before it; and a torn form of every write."""
    points = []
    before = "start-up"
    for call in _own(trace):
        where = f"after {before}, before {_short(call)}"
        points.append(Point(Kind.KILL, call.name, call.ordinal, about=where))
        if call.name in _TEARABLE and call.about is About.ROOT and (call.value or 0) > 1:
            points.append(Point(Kind.TORN, call.name, call.ordinal, about=f"in the middle of {_short(call)}"))
        before = _short(call)
    return points


def fault_points(trace: Trace, errnos: Sequence[str] = ERRNOS) -> list[Point]:
    """Every call with every errno, once and for ever; and every write that writes nothing."""
    points = []
    for call in _own(trace):
        if call.name in _NO_FAULT:
            continue
        where = f"at {_short(call)}"
        for errno in (*errnos, *EXTRA_ERRNOS.get(call.name, ())):
            points += [
                Point(Kind.FAULT, call.name, call.ordinal, errno, for_ever, where)
                for for_ever in ((False,) if errno == "EINTR" else (False, True))
            ]
        if call.name in _WRITES:
            points.append(Point(Kind.SHORT, call.name, call.ordinal, about=where))
    return points


def sample_kills(trace: Trace, points: Sequence[Point], limit: int, seed: int = 0) -> list[Point]:
    """At most `limit` kill points, chosen by what they can show.

    First those right after a change, then torn writes, then the first and last call of every name, then a spread. When all of the first group fit, every state that a kill can leave on disk is in the sample.
    """
    own = _own(trace)
    fresh = {(after.name, after.ordinal) for call, after in pairwise(own) if changes(call)}
    first = [p for p in points if p.kind is Kind.KILL and (p.name, p.ordinal) in fresh]
    torn = [p for p in points if p.kind is Kind.TORN]
    return _in_order(points, [*_every(first, limit, seed), *torn, *_ends(points), *points], limit, seed)


def sample_faults(points: Sequence[Point], limit: int, seed: int = 0) -> list[Point]:
    """At most `limit` fault points, chosen by what they can show.

    First the errors that are most often ignored (a sync with EIO, a write with ENOSPC, a write of nothing), then the
    first and last call of every name and every errno, each once, then a spread.
    """
    shuffled = list(points)
    random.Random(seed).shuffle(shuffled)  # noqa: S311 - a repeatable choice, no secret
    ends = {(p.name, p.ordinal) for p in _ends(points)}
    chosen: dict[tuple[str, int], Point] = {}
    errnos: dict[str, Point] = {}
    for point in shuffled:
        if (point.name, point.ordinal) in ends:
            chosen.setdefault((point.name, point.ordinal), point)
        errnos.setdefault(point.errno, point)
    telling = [
        p for p in points if p.kind is Kind.SHORT or (not p.for_ever and (p.name, p.errno) in _TELLING)
    ]
    first = _every(telling, limit, seed)
    return _in_order(points, [*first, *chosen.values(), *errnos.values(), *points], limit, seed)


def _ends(points: Iterable[Point]) -> list[Point]:
    """The first and the last point of every call name."""
    first: dict[str, Point] = {}
    last: dict[str, Point] = {}
    for point in points:
        first.setdefault(point.name, point)
        last[point.name] = point
    return [*first.values(), *last.values()]


def _in_order(points: Sequence[Point], wanted: Sequence[Point], limit: int, seed: int) -> list[Point]:
    """The first `limit` different points of `wanted`, whose tail `points` is thinned to every k-th; in trace order."""
    head = list(dict.fromkeys(wanted[: len(wanted) - len(points)]))[:limit]
    rest = [p for p in points if p not in set(head)]
    chosen = {*head, *_every(rest, limit - len(head), seed)}
    return [p for p in points if p in chosen]


def _every(points: Sequence[Point], room: int, seed: int) -> list[Point]:
    """Every k-th point, from a seeded start, so that at most `room` are taken."""
    if room <= 0 or not points:
        return []
    step = -(-len(points) // room)
    return list(points[seed % step :: step])


def _short(call: Call) -> str:
    name = call.paths[-1].rsplit("/", 1)[-1] if call.paths else ""
    return f"{call.label}({name})"
