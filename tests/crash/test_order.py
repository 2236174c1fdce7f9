"""A file that must be durable before another one is removed: each missing or late step is found."""

import pytest

from tests.crash.calls import parse
from tests.crash.order import assert_durable_order
from tests.crash.run import Trace

WRITE = 'write(3</r/notes/.tmp1>, "note", 4) = 4'
SYNC = "fsync(3</r/notes/.tmp1>) = 0"
NAME = 'renameat2(4</r/notes>, ".tmp1", 4</r/notes>, "a.json", RENAME_NOREPLACE) = 0'
FOLDER = "fsync(4</r/notes>) = 0"
REMOVE = 'unlinkat(5</r/store>, "lease.json", 0) = 0'
SAY = 'write(1<pipe:[1]>, "done", 4) = 4'
RIGHT = (WRITE, SYNC, NAME, FOLDER, REMOVE, SAY)


def judge(*lines: str) -> None:
    calls = parse([f"7 {line}" for line in lines], "/")
    trace = Trace(calls, calls, 7, 0, b"", b"", "/r", frozenset())
    assert_durable_order(trace, "*/notes/*.json", before="lease.json")


def test_the_right_order_is_right() -> None:
    judge(*RIGHT)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ((WRITE, NAME, FOLDER, REMOVE, SAY), "is not synced before"),
        ((WRITE, SYNC, NAME, REMOVE, SAY), "directory /r/notes is not synced"),
        ((WRITE, SYNC, NAME, REMOVE, FOLDER, SAY), "announced before the directory was synced"),
        ((REMOVE, WRITE, SYNC, NAME, FOLDER, SAY), "announced before the directory was synced"),
        ((WRITE, SYNC, NAME, FOLDER, SAY), "lease.json was not removed"),
        ((WRITE, SYNC, NAME.replace("a.json", "a.txt"), FOLDER, REMOVE, SAY), "no rename or link"),
        (
            (WRITE, SYNC, NAME, FOLDER, REMOVE.replace("= 0", "= -1 EROFS (Read-only file system)"), SAY),
            "not removed",
        ),
    ],
)
def test_a_step_that_is_missing_or_late_is_found(lines: tuple[str, ...], said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        judge(*lines)
