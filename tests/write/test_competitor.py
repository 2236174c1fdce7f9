"""A file system with neither a rename that replaces nothing nor links, and a competitor for the target's name (F-096).

The competitor acts between two calls into C, each run at another of them, from the first to the last of a recovery: no
moment lies between these at which the kernel could see another order.
"""

import ctypes
import errno
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from symbi_recover.core.errors import RecoverError
from symbi_recover.write import atomic, holding
from tests.support.writer.project import put
from tests.support.writer.publication import Publication
from tests.write.worlds import finish, picture, publishing

RUNS, ALL_RUNS = 200, 10_000
NUMBERS = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM)
KINDS: dict[str, Callable[[Path], object]] = {
    "other content": lambda path: put(path, b"their-own-bytes"),
    "the same content": lambda path: put(path, b"verified-output"),
    "empty": lambda path: put(path, b""),
    "a folder": lambda path: path.mkdir(),
    "a dangling link": lambda path: path.symlink_to("nowhere"),
}


@contextmanager
def at_moment(number: int, act: Callable[[], object]) -> Iterator[list[int]]:
    """Call `act` before the call into C with this number; the list has how many there were so far."""
    count = [0]

    def watch(_: object, event: str, __: object) -> None:
        if event == "c_call":
            if count[0] == number:
                act()
            count[0] += 1

    sys.setprofile(watch)
    try:
        yield count
    finally:
        sys.setprofile(None)


@pytest.fixture
def refusing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The output folder's file system refuses both calls, the rename for another reason each time.

    The store's does not: else a recovery ends before it looks at the output folder.
    """
    numbers, real = itertools.cycle(NUMBERS), atomic._renameat2()

    def rename(folder: int, *rest: Any) -> int:
        if not os.readlink(f"/proc/self/fd/{folder}").startswith(f"{tmp_path}/out"):
            return int(real(folder, *rest))
        ctypes.set_errno(next(numbers))
        return -1

    def link(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(atomic, "_renameat2", lambda: rename)
    monkeypatch.setattr(os, "link", link)


def theirs(path: Path) -> tuple[Any, ...]:
    """What a competitor would miss: kind, mode, inode, links, all times, and bytes."""
    status = path.lstat()
    content = (
        path.read_bytes() if path.is_file() else os.readlink(path) if path.is_symlink() else os.listdir(path)
    )
    return (
        *(status.st_mode, status.st_ino, status.st_nlink, status.st_size),
        *(status.st_mtime_ns, status.st_ctime_ns, content),
    )


def refused(publication: Publication, snapshot: str) -> str:
    """The code with which a recovery is refused; nothing but a refusal is right."""
    with pytest.raises(RecoverError) as raised:
        finish(publication, snapshot)
    return raised.value.code


def compete(folder: Path, runs: int) -> tuple[int, set[str]]:
    """Recover beside a competitor that often, each time at another moment; how many moments there are, and all codes.

    How many calls a recovery makes is not the same each time: it reads tables of the kernel until two readings agree.
    A moment that did not come is tried again as an earlier one.
    """
    publication = publishing(folder)
    snapshot = publication.invocation.snapshot_hash()
    before = picture(publication.parent)
    assert refused(publication, snapshot) == "rename_unsupported"
    with at_moment(-1, lambda: None) as count:
        refused(publication, snapshot)
    moments = count[0]
    codes = set()
    for number in range(runs):
        # all moments come up before the first does again; fewer runs than moments are spread over them
        turn, at = divmod(number, moments) if runs > moments else (number, number * moments // runs)
        make = list(KINDS.values())[(turn + at) % len(KINDS)]
        made: list[tuple[Any, ...]] = []

        def act(make: Callable[[Path], object] = make, made: list[tuple[Any, ...]] = made) -> None:
            make(publication.target)
            made.append(theirs(publication.target))

        while not made:
            with at_moment(at, act):
                code = refused(publication, snapshot)
            at = at * 9 // 10
        codes.add(code)
        assert [theirs(publication.target)] == made, f"run {number} of {runs}, {moments} moments"
        if publication.target.is_dir():
            publication.target.rmdir()
        else:
            publication.target.unlink()
        assert picture(publication.parent) == before, f"run {number} of {runs}, {moments} moments"
        assert not publication.receipt_path.exists()
    return moments, codes


@pytest.mark.usefixtures("refusing")
def test_f096_without_safe_renames_a_competitors_file_is_never_touched(tmp_path: Path) -> None:
    moments, codes = compete(tmp_path, RUNS)
    assert moments > RUNS
    assert codes >= {"rename_unsupported", "publication_conflicts"}, "it came before the look, and after"


@pytest.mark.slow
@pytest.mark.usefixtures("refusing")
def test_f096_it_never_is_in_ten_thousand_runs(tmp_path: Path) -> None:
    moments, _ = compete(tmp_path, ALL_RUNS)
    assert moments < ALL_RUNS


@pytest.mark.usefixtures("refusing")
def test_a_recovery_that_looks_before_it_takes_the_name_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: a name that was free a moment ago is taken to try it, and given back."""
    target = tmp_path / "out" / "report.txt"

    def careless(*_: object) -> None:
        if not target.exists():
            for _ in range(200):
                os.getppid()  # a wide moment, which a share of the runs meets
            target.touch()
            target.unlink()
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(holding, "rename_no_replace", careless)
    with pytest.raises(FileNotFoundError):
        compete(tmp_path, RUNS)
