"""Files that replace nothing: order, faults, and what is left behind."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from symbi_recover.core.errors import RefusedError
from symbi_recover.write import atomic


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


def fail(monkeypatch: pytest.MonkeyPatch, name: str, number: int, times: int = 1) -> list[int]:
    """Let a call of `os` fail a number of times; the list counts its calls."""
    real, calls = getattr(os, name), []

    def failing(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) <= times:
            raise OSError(number, os.strerror(number))
        return real(*arguments, **options)

    monkeypatch.setattr(os, name, failing)
    return calls


def test_a_published_file_is_private_whole_and_alone(folder: int, tmp_path: Path) -> None:
    assert atomic.publish(folder, str(tmp_path), "receipt", b"x" * 100_000)
    assert (tmp_path / "receipt").read_bytes() == b"x" * 100_000
    assert (tmp_path / "receipt").stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["receipt"]


def test_a_taken_name_is_never_replaced(folder: int, tmp_path: Path) -> None:
    (tmp_path / "receipt").write_bytes(b"theirs")
    before = (tmp_path / "receipt").stat()
    with pytest.raises(FileExistsError):
        atomic.publish(folder, str(tmp_path), "receipt", b"ours")
    after = (tmp_path / "receipt").stat()
    assert (tmp_path / "receipt").read_bytes() == b"theirs"
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert os.listdir(tmp_path) == ["receipt"]


@pytest.mark.parametrize("kind", ["file", "folder", "dangling link"])
def test_whatever_lies_at_the_name_stays(kind: str, folder: int, tmp_path: Path) -> None:
    place = tmp_path / "receipt"
    if kind == "folder":
        place.mkdir()
    elif kind == "file":
        place.write_bytes(b"")
    else:
        place.symlink_to("nowhere")
    with pytest.raises(FileExistsError):
        atomic.publish(folder, str(tmp_path), "receipt", b"ours")
    assert os.listdir(tmp_path) == ["receipt"]


def test_f086_a_failed_sync_of_the_file_ends_the_attempt(
    folder: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = fail(monkeypatch, "fsync", errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        atomic.publish(folder, str(tmp_path), "receipt", b"data")
    assert len(calls) == 1, "what could not be synced is not synced a second time"
    assert os.listdir(tmp_path) == []
    monkeypatch.undo()
    assert atomic.publish(folder, str(tmp_path), "receipt", b"data")


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_f087_a_folder_that_cannot_be_synced_at_all_is_a_remark(
    number: int, folder: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(monkeypatch, "fsync", number)
    assert atomic.sync_folder(folder) is False


@pytest.mark.parametrize("number", [errno.EBADF, errno.EROFS, errno.EIO, errno.ENOSPC])
def test_f087_any_other_failure_to_sync_a_folder_is_one(
    number: int, folder: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(monkeypatch, "fsync", number)
    with pytest.raises(OSError, match=os.strerror(number)) as raised:
        atomic.sync_folder(folder)
    assert raised.value.errno == number


@pytest.mark.parametrize("call", ["write", "fsync"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_f088_a_full_disk_leaves_neither_a_part_nor_a_temporary(
    call: str, number: int, folder: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "earlier").write_bytes(b"kept")
    fail(monkeypatch, call, number)
    with pytest.raises(OSError, match=os.strerror(number)) as raised:
        atomic.publish(folder, str(tmp_path), "receipt", b"data")
    assert raised.value.errno == number
    assert os.listdir(tmp_path) == ["earlier"]
    assert (tmp_path / "earlier").read_bytes() == b"kept"


def test_a_write_that_writes_nothing_is_a_full_disk(
    folder: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "write", lambda *_: 0)
    with pytest.raises(OSError, match="No space"):
        atomic.publish(folder, str(tmp_path), "receipt", b"data")
    assert os.listdir(tmp_path) == []


def test_short_writes_are_continued(folder: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, bytes(data[:3])))
    atomic.publish(folder, str(tmp_path), "receipt", b"0123456789")
    assert (tmp_path / "receipt").read_bytes() == b"0123456789"


@pytest.mark.parametrize(
    "number",
    [errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM, errno.EXDEV],
)
def test_f094_a_file_system_without_safe_renames_is_refused_by_name(
    number: int, folder: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(atomic, "rename_no_replace", refuse)
    with pytest.raises(RefusedError) as raised:
        atomic.publish(folder, str(tmp_path), "receipt", b"data")
    assert raised.value.code == "rename_unsupported"
    assert "of type" in str(raised.value.detail)
    assert os.listdir(tmp_path) == []


def test_reserved_room_is_given_back_with_the_content(folder: int, tmp_path: Path) -> None:
    with atomic.Temporary(folder, str(tmp_path)) as temporary:
        temporary.reserve(10_000)
        assert (tmp_path / temporary.name).stat().st_size == 10_000
        temporary.prove()
        temporary.fill(b"short")
        temporary.publish("receipt")
    assert (tmp_path / "receipt").read_bytes() == b"short"
    assert os.listdir(tmp_path) == ["receipt"]


def test_an_interrupted_rename_call_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [errno.EINTR, errno.EINTR, 0]

    def call(*_: object) -> int:
        number = answers.pop(0)
        atomic.ctypes.set_errno(number)
        return -1 if number else 0

    monkeypatch.setattr(atomic, "_renameat2", lambda: call)
    atomic.rename_no_replace(-1, "a", -1, "b")
    assert answers == []
