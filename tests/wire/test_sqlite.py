"""Bringing a database's bytes to its last committed state: the same rows as SQLite itself gives."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from symbi_recover.wire import sqlite

WRITER = """
import os, signal, sqlite3, sys
path, mode, where = sys.argv[1:]
database = sqlite3.connect(path, isolation_level=None)
database.execute("PRAGMA page_size=1024")
database.execute(f"PRAGMA journal_mode={mode}")
database.execute("PRAGMA wal_autocheckpoint=40")
database.execute("PRAGMA cache_size=3")
database.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
for number in range(200):
    database.execute("INSERT INTO t VALUES (?, ?)", (number, "kept" * 20))
database.execute("DELETE FROM t WHERE a % 3 = 0")
if where == "inside":
    database.execute("BEGIN IMMEDIATE")
    for number in range(1000, 1800):
        database.execute("INSERT INTO t VALUES (?, ?)", (number, "lost" * 20))
    database.execute("UPDATE t SET b = 'lost'")
os.kill(os.getpid(), signal.SIGKILL)
"""


def content(path: Path, suffix: str) -> bytes:
    beside = path.with_name(path.name + suffix)
    return beside.read_bytes() if beside.exists() else b""


def rows(image: bytes) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(":memory:")
    try:
        connection.deserialize(sqlite.in_memory(image))
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return connection.execute("SELECT a, b FROM t ORDER BY a").fetchall()
    finally:
        connection.close()


def killed_writer(path: Path, mode: str, where: str) -> None:
    done = subprocess.run([sys.executable, "-c", WRITER, path, mode, where], check=False, timeout=60)
    assert done.returncode == -9


def rows_by_sqlite(path: Path) -> list[tuple[object, ...]]:
    """What SQLite makes of it, rolling back on the way."""
    connection = sqlite3.connect(path)
    try:
        return connection.execute("SELECT a, b FROM t ORDER BY a").fetchall()
    finally:
        connection.close()


@pytest.mark.parametrize("where", ["after", "inside"])
@pytest.mark.parametrize("mode", ["wal", "delete", "truncate", "persist"])
def test_the_committed_state_is_what_sqlite_itself_recovers(tmp_path: Path, mode: str, where: str) -> None:
    path = tmp_path / "a.db"
    killed_writer(path, mode, where)
    image, frames = sqlite.with_log(path.read_bytes(), content(path, "-wal"))
    image, rolled_back = sqlite.before_transaction(image, content(path, "-journal"))
    assert rolled_back is (where == "inside" and mode != "wal")
    assert frames == 0 or mode == "wal"
    mine = rows(image)
    assert mine == rows_by_sqlite(path)
    assert len(mine) == 133
    assert all("lost" not in str(text) for _, text in mine)


def test_a_damaged_log_ends_at_its_last_good_commit(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    killed_writer(path, "wal", "after")
    log = bytearray(content(path, "-wal"))
    whole, frames = sqlite.with_log(path.read_bytes(), bytes(log))
    log[-10] ^= 1
    cut, fewer = sqlite.with_log(path.read_bytes(), bytes(log))
    assert fewer < frames
    assert cut != whole or fewer == frames
    rows(cut)


@pytest.mark.parametrize("log", [b"", b"\0" * 32, b"x" * 5000, bytes.fromhex("377f0682") + os.urandom(4096)])
def test_a_log_that_is_none_changes_nothing(log: bytes) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a, b)")
    image = connection.serialize()
    connection.close()
    assert sqlite.with_log(image, log) == (image, 0)
    assert sqlite.before_transaction(image, log) == (image, False)


@pytest.mark.parametrize(
    "image", [b"", b"SQLite format 3\0", b"\0" * 4096, b"SQLite format 3\0" + b"\0\3" + b"\0" * 200]
)
def test_what_is_no_database_is_refused(image: bytes) -> None:
    with pytest.raises(sqlite.ImageError):
        sqlite.in_memory(image)


def test_a_header_that_promises_a_huge_database_allocates_nothing() -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a, b)")
    image = connection.serialize()
    connection.close()
    size = sqlite.page_size(image)
    header = bytes.fromhex("d9d505f920a163d7") + b"".join(
        number.to_bytes(4, "big") for number in (0, 0, 0xFFFFFFFF, 512, size)
    )
    back, found = sqlite.before_transaction(image, header.ljust(512, b"\0"))
    assert found
    assert len(back) <= len(image)


def log_of(page: int, number: int) -> bytes:
    """A log of one committed frame, for a page of any size and number."""

    def words(*values: int) -> bytes:
        return b"".join(value.to_bytes(4, "big") for value in values)

    head = words(0x377F0683, 3007000, page, 0, 1, 2)
    running = sqlite._checksum(">", head, (0, 0))
    log = head + words(*running)
    content = b"\1" * page
    covered = words(number, number) + content
    running = sqlite._checksum(">", covered[: len(covered) // 8 * 8], running)
    return log + words(number, number, 1, 2, *running) + content


@pytest.mark.parametrize("page", [513, 516, 520, 1 << 17])
def test_a_log_of_a_page_size_that_no_database_has_is_none(page: int) -> None:
    assert sqlite.with_log(b"", log_of(page, 1)) == (b"", 0)


def test_a_log_that_promises_a_huge_database_is_refused() -> None:
    assert sqlite.with_log(b"", log_of(512, 1)) == (b"\1" * 512, 1)
    with pytest.raises(sqlite.ImageError, match="would have 2199023255040 bytes"):
        sqlite.with_log(b"", log_of(512, 0xFFFFFFFF))


@pytest.mark.parametrize("number", [0, 0xFFFFFFFF])
def test_a_journal_record_for_a_page_that_cannot_be_never_makes_the_database_grow(number: int) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a, b)")
    image = connection.serialize()
    connection.close()
    size = sqlite.page_size(image)
    content = b"\0" * size  # sums up to nothing, so its checksum is the nonce
    head = bytes.fromhex("d9d505f920a163d7") + b"".join(
        word.to_bytes(4, "big") for word in (1, 0, number or len(image) // size, 512, size)
    )
    journal = head.ljust(512, b"\0") + number.to_bytes(4, "big") + content + b"\0" * 4
    if number:
        with pytest.raises(sqlite.ImageError):
            sqlite.before_transaction(image, journal)
    else:
        assert sqlite.before_transaction(image, journal) == (image, True)
