r"""System calls as values: a log of `strace -f -y` read into `Call` objects.

Steps: join the halves of calls that were interrupted by another process; split name, arguments and result;
number each call by (process, name) in the way strace counts for `when=N`; resolve every path to an absolute one
(descriptors are decorated with their path by `-y`, relative names are joined to their directory descriptor or to
the working directory, which is followed through chdir); say what the call is about.

Nothing is run here. Only the log format of strace is understood, not the calls' meaning.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

AT_FDCWD = "AT_FDCWD"


def names(text: str) -> tuple[str, ...]:
    """The names in a text that holds several, parted by spaces: long tables of calls stay readable."""
    return tuple(text.split())


# Where path names stand among the arguments: (index of the directory descriptor or None, index of the name).
_ONE_NAME = ((None, 0),)
_AT_NAME = ((0, 1),)
_TWO_NAMES = ((None, 0), (None, 1))
_NAMES: dict[str, tuple[tuple[int | None, int], ...]] = {
    **dict.fromkeys(
        names(
            "open creat stat lstat access readlink mkdir rmdir unlink chmod chown lchown truncate mknod utime utimes "
            "chdir chroot statfs execve getxattr lgetxattr listxattr llistxattr setxattr lsetxattr removexattr "
            "lremovexattr umount2"
        ),
        _ONE_NAME,
    ),
    **dict.fromkeys(
        names(
            "openat openat2 newfstatat statx faccessat faccessat2 readlinkat mkdirat mknodat unlinkat fchmodat "
            "fchmodat2 fchownat utimensat futimesat execveat name_to_handle_at"
        ),
        _AT_NAME,
    ),
    **dict.fromkeys(["rename", "link", "mount", "pivot_root"], _TWO_NAMES),
    **dict.fromkeys(["renameat", "renameat2", "linkat"], ((0, 1), (2, 3))),
    "symlink": ((None, 1),),
    "symlinkat": ((1, 2),),
    "inotify_add_watch": ((None, 1),),
}

_START = re.compile(r"(\d+)\s+(\w+)\((.*)", re.DOTALL)
_RESUMED = re.compile(r"(\d+)\s+<\.\.\. (\w+) resumed>(.*)", re.DOTALL)
_UNFINISHED = re.compile(r"(.*?) ?<unfinished \.\.\.>", re.DOTALL)
_DESCRIPTOR = re.compile(r"(\d+|AT_FDCWD)<(.*)>(?:\(deleted\))?", re.DOTALL)
_ESCAPE = re.compile(rb'\\([0-7]{1,3}|x[0-9a-fA-F]{2}|[abtnvfr"\\])')
_NAMED = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13, b'"': 34, b"\\": 92}
_OPEN, _CLOSE = "([{", ")]}"


class About(Enum):
    """What a call is about."""

    ROOT = "root"
    """The tree under test."""
    STANDARD = "standard stream"
    LIBRARY = "library"
    """The interpreter, its modules and the package itself."""
    OTHER = "other"
    """Any other path, and sockets."""
    NOTHING = "nothing"
    """No path and no descriptor: memory, processes, exit."""


class Call(Struct, frozen=True):
    """One system call.

    `ordinal` counts from 1 within (process, name) and from the start of the process, so that strace's `when=N`
    hits the same call. `value` is None for a call that never returned. `text` is the line of the log.
    """

    pid: int
    name: str
    ordinal: int
    args: tuple[str, ...]
    value: int | None
    error: str | None
    result: str
    paths: tuple[str, ...]
    text: str
    about: About = About.OTHER

    @property
    def descriptor(self) -> int | None:
        """The number of the descriptor that is the first argument, if it is one."""
        found = _DESCRIPTOR.fullmatch(self.args[0]) if self.args else None
        return int(found[1]) if found and found[1] != AT_FDCWD else None

    @property
    def label(self) -> str:
        """How a person names this call: `fsync#3`."""
        return f"{self.name}#{self.ordinal}"


def unescape(text: str) -> bytes:
    """The bytes that strace wrote with C escapes."""

    def one(found: re.Match[bytes]) -> bytes:
        body = found[1]
        if body in _NAMED:
            return bytes([_NAMED[body]])
        return bytes([int(body[1:], 16) if body[:1] == b"x" else int(body, 8) & 255])

    return _ESCAPE.sub(one, text.encode("utf-8", "surrogateescape"))


def string_argument(text: str) -> bytes | None:
    """The bytes of a string argument, or None when it is not a string, or was cut by the length limit."""
    if len(text) >= 2 and text[0] == '"' and text[-1] == '"':  # a cut string ends with `"...`
        return unescape(text[1:-1])
    return None


def descriptor_path(text: str) -> str | None:
    """The path behind a decorated descriptor such as `3</tmp/x>`."""
    found = _DESCRIPTOR.fullmatch(text)
    return os.fsdecode(unescape(found[2])) if found else None


def parse(lines: Iterable[str], cwd: str) -> tuple[Call, ...]:
    """Read a log written by `strace -f -y -o FILE`; signals and exits are left out."""
    counts: dict[tuple[int, str], int] = {}
    where: dict[int, str] = {}
    calls = []
    for line in _joined(lines):
        begun = _START.fullmatch(line)
        if not begun:
            continue
        pid, name = int(begun[1]), begun[2]
        args, rest = _split(begun[3])
        counts[pid, name] = ordinal = counts.get((pid, name), 0) + 1
        value, error, result = _result(rest)
        here = where.get(pid, cwd)
        paths = tuple(_paths(name, args, result, here))
        if name in ("chdir", "fchdir") and value == 0 and paths:
            where[pid] = paths[0]
        calls.append(Call(pid, name, ordinal, args, value, error, result, paths, line))
    return tuple(calls)


def classify(calls: Iterable[Call], root: Path, libraries: Iterable[Path] = ()) -> tuple[Call, ...]:
    """The same calls with `about` filled in, for the tree under test and the places of library code."""
    base = str(root)
    known = (sys.prefix, sys.base_prefix, str(PROJECT), "/usr/lib", "/usr/lib64", "/lib", "/lib64")
    code = [*known, "/etc/ld.so.cache", "/usr/share/locale", *map(str, libraries)]
    return tuple(replace(call, about=_about(call, base, code)) for call in calls)


PROJECT = Path(__file__).resolve().parents[2]


def inside(path: str, base: str) -> bool:
    """Whether a path is the base or below it."""
    return path == base or path.startswith(base.rstrip("/") + "/")


def _about(call: Call, base: str, code: list[str]) -> About:
    if any(inside(path, base) for path in call.paths):
        return About.ROOT
    if call.descriptor in (0, 1, 2):
        return About.STANDARD
    if not call.paths:
        return About.NOTHING
    if all(any(inside(path, place) for place in code) for path in call.paths):
        return About.LIBRARY
    return About.OTHER


def _joined(lines: Iterable[str]) -> Iterator[str]:
    """One line per call, at the place where the call began."""
    whole: list[str] = []
    open_at: dict[int, int] = {}
    for raw in lines:
        line = raw.rstrip("\n")
        resumed = _RESUMED.fullmatch(line)
        if resumed:
            place = open_at.pop(int(resumed[1]), None)
            if place is not None:
                whole[place] += resumed[3]
            continue
        begun = _UNFINISHED.fullmatch(line)
        if begun:
            open_at[int(line.split(maxsplit=1)[0])] = len(whole)
            line = begun[1]
        whole.append(line)
    yield from whole


def _split(text: str) -> tuple[tuple[str, ...], str]:
    """Split `a, "b", {c, d}) = 0` into its arguments and what follows the closing bracket."""
    args: list[str] = []
    depth, start, at = 0, 0, 0
    while at < len(text):
        char = text[at]
        if char == '"':
            at = _string_end(text, at)
        elif char == "<" and at and (text[at - 1].isdigit() or text[at - 1] == "D") and text[at + 1] != "<":
            at = text.find(">", at)  # strace escapes < and > inside of a decoration
            if at < 0:
                break
        elif char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            if depth == 0:
                return _with_last(args, text[start:at]), text[at + 1 :]
            depth -= 1
        elif char == "," and depth == 0:
            args.append(text[start:at].strip())
            start = at + 1
        at += 1
    return _with_last(args, text[start:]), ""  # killed inside the call: the log has no closing bracket


def _with_last(args: list[str], last: str) -> tuple[str, ...]:
    return (*args, last.strip()) if args or last.strip() else ()


def _string_end(text: str, at: int) -> int:
    at += 1
    while at < len(text) and text[at] != '"':
        at += 2 if text[at] == "\\" else 1
    return at


def _result(rest: str) -> tuple[int | None, str | None, str]:
    text = rest.partition("=")[2].strip()
    found = re.match(r"(-?\d+|0x[0-9a-f]+)(?: (E[A-Z0-9]+))?", text)
    if not found:
        return None, None, text
    return int(found[1], 0), found[2], text


def _paths(name: str, args: tuple[str, ...], result: str, cwd: str) -> Iterator[str]:
    """Every absolute path that the call names, by text or by descriptor."""
    places = _NAMES.get(name, ())
    used = {index for place in places for index in place if index is not None}
    for directory, index in places:
        if index >= len(args):
            continue
        base = descriptor_path(args[directory]) if directory is not None else None
        text = string_argument(args[index])
        yield os.path.normpath(os.path.join(base or cwd, os.fsdecode(text or b"")))
    for index, arg in enumerate(args):
        path = descriptor_path(arg) if index not in used else None
        if path is not None:
            yield path
    opened = descriptor_path(result)
    if opened is not None and not places:
        yield opened
