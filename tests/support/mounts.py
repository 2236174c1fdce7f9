"""Children for a block of code: with real mounts of their own, which end with them, or without the rights of root."""

import ctypes
import os
import pickle
import shutil
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")
NOBODY = 65534
_LIBC = ctypes.CDLL(None, use_errno=True)
_MNT_DETACH = 2
_CLONE_NEWNS = 0x20000
_MS_REC, _MS_PRIVATE = 0x4000, 0x40000


class NotHereError(Exception):
    """This machine cannot make what a test needs; the test is named as not run."""


def checked(what: str, answer: int) -> int:
    """Give the answer of a system call, or raise `NotHereError` with the system's word for the failure."""
    if answer < 0:
        raise NotHereError(f"{what}: {os.strerror(ctypes.get_errno())}")
    return answer


def mount(kind: str, point: Path, options: str = "", source: str = "none", flags: int = 0) -> None:
    """Mount a file system; raises `NotHereError` if this machine has none of the kind."""
    texts = (os.fsencode(text) for text in (source, str(point), kind))
    answer = _LIBC.mount(*texts, ctypes.c_ulong(flags), os.fsencode(options))
    checked(f"a mount of type {kind} with {options or 'no options'}", answer)


def unmount(point: Path) -> None:
    """Take a mount away, also while it is in use."""
    checked(f"taking the mount at {point} away", _LIBC.umount2(os.fsencode(point), _MNT_DETACH))


def fill(folder: Path) -> Callable[[], None]:
    """Use up every block and every inode; gives the way to free them again."""
    folder.mkdir()
    with suppress(OSError):
        for number in range(1000):
            (folder / str(number)).touch()
    with suppress(OSError), (folder / "0").open("wb", buffering=0) as file:
        while file.write(b"x" * 512):
            pass
    return lambda: shutil.rmtree(folder)


def in_child(act: Callable[[], T]) -> T:
    """Run `act` in a child of this process, and give what it returns (which must pickle).

    Skips the test where `act` raises `NotHereError`; fails it with the child's traceback.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        with os.fdopen(write, "wb") as pipe:
            pickle.dump(_answer(act), pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    assert answer, "the child ended without an answer"
    how, what = pickle.loads(answer)  # noqa: S301 -- of our own child
    if how == "not here":
        pytest.skip(f"not run: {what}")
    assert how == "returned", what
    return what  # type: ignore[no-any-return]


def in_private_mounts(act: Callable[[], T]) -> T:
    """Run `act` in a child whose mounts nobody else sees, and give what it returns (see `in_child`).

    Skips the test where the machine refuses the namespace or a mount.
    """
    if os.geteuid() != 0:
        pytest.skip("not run: mounting needs root")

    def apart() -> T:
        checked("a mount namespace", _LIBC.unshare(_CLONE_NEWNS))
        checked("private mounts", _LIBC.mount(None, b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None))
        return act()

    return in_child(apart)


def without_root(folder: Path, act: Callable[[], T]) -> T:
    """Run `act` as an account to which the modes of `folder` mean something, and which owns all in it.

    As root that is a child under another account, which must be able to reach `folder`, and which sees only those modules
    that are loaded already: call `act` once before. Otherwise it is this process.
    """
    if os.geteuid() != 0:
        return act()

    def lesser() -> T:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        return act()

    for path in [folder, *folder.rglob("*")]:
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    return in_child(lesser)


def _answer(act: Callable[[], T]) -> tuple[str, T | str]:
    try:
        return "returned", act()
    except NotHereError as error:
        return "not here", str(error)
    except BaseException:  # noqa: BLE001 -- the parent must hear of it
        return "failed", traceback.format_exc()
