"""Logs of strace are read to the letter, and the checks of order hold for every way of publishing."""

import pytest

from tests.crash.calls import parse
from tests.crash.harness import Trace, assert_durable_order, assert_no_overwrite, assert_nothing_unsynced


def test_a_hostile_name_is_read_back_as_its_bytes() -> None:
    line = r'7 openat(3</t/a\74b\76>, "tm p<a>,\"q\"\1\303\251)", O_RDWR|O_CREAT, 0600) = 4</t/x> '
    (call,) = parse([line], "/cwd")
    assert call.args[2:] == ("O_RDWR|O_CREAT", "0600")
    assert call.paths == ('/t/a<b>/tm p<a>,"q"\x01é)',)
    assert call.value == 4


@pytest.mark.parametrize(
    ("line", "paths"),
    [
        ('7 rename("f", "/t/g") = 0', ("/cwd/f", "/t/g")),
        ('7 openat(AT_FDCWD</cwd>, "/t/../u", O_RDONLY) = 3</u>', ("/u",)),
        ('7 newfstatat(3</t/f>, "", {st_mode=S_IFREG|0644, st_size=1, ...}, AT_EMPTY_PATH) = 0', ("/t/f",)),
        ("7 utimensat(3</t/f>, NULL, NULL, 0) = 0", ("/t/f",)),
        ("7 fsync(5</t/#100>(deleted)) = 0", ("/t/#100",)),
        ('7 symlinkat("anything", 3</t>, "l") = 0', ("/t/l",)),
        ("7 exit_group(0) = ?", ()),
    ],
)
def test_paths_are_made_absolute(line: str, paths: tuple[str, ...]) -> None:
    assert parse([line], "/cwd")[0].paths == paths


def test_relative_names_follow_the_working_directory_of_their_process() -> None:
    log = ['1 chdir("/a") = 0', '2 unlink("x") = 0', '1 unlink("x") = 0']
    assert [call.paths for call in parse(log, "/cwd")] == [("/a",), ("/cwd/x",), ("/a/x",)]


def test_halves_of_an_interrupted_line_are_joined_where_the_call_began() -> None:
    log = [
        "1 read(3</t/f>,  <unfinished ...>",
        '2 write(1<pipe:[9]>, "x", 1) = 1',
        '1 <... read resumed>"abc", 4096) = 3',
    ]
    first, second = parse(log, "/")
    assert (first.name, first.args[1], first.value) == ("read", '"abc"', 3)
    assert (second.pid, second.name) == (2, "write")


def test_calls_are_counted_for_each_process_and_name() -> None:
    log = [
        "1 close(3) = 0",
        "2 close(3) = 0",
        "1 fsync(3) = -1 EBADF (Bad file descriptor)",
        "1 close(3) = 0",
    ]
    calls = parse(log, "/")
    assert [call.label for call in calls] == ["close#1", "close#1", "fsync#1", "close#2"]
    assert calls[2].error == "EBADF"


def test_a_call_that_a_kill_cut_off_has_no_value() -> None:
    (call,) = parse(['1 rename("a", "b") = ?'], "/")
    assert call.value is None


WRITE = '1 write(3</r/.tmp>, "x", 1) = 1'
SYNC = "1 fsync(3</r/.tmp>) = 0"
RENAME = '1 renameat2(4</r>, ".tmp", 4</r>, "final", RENAME_NOREPLACE) = 0'
SYNC_DIRECTORY = "1 fsync(4</r>) = 0"
SAY = '1 write(1<pipe:[9]>, "done", 4) = 4'
RIGHT = [WRITE, SYNC, RENAME, SYNC_DIRECTORY, SAY]


def _trace(lines: list[str], existed: frozenset[str] = frozenset()) -> Trace:
    calls = parse(lines, "/r")
    return Trace(calls, calls, 1, 0, b"done", b"", "/r", existed)


def test_the_right_order_passes() -> None:
    assert_durable_order(_trace(RIGHT), "final")
    assert_durable_order(_trace(RIGHT), "/r/final")
    assert_nothing_unsynced(_trace(RIGHT))


@pytest.mark.parametrize(
    "lines",
    [
        ['1 openat(4</r>, ".", O_RDWR|O_TMPFILE, 0600) = 3</r/#5>(deleted)',
         '1 write(3</r/#5>(deleted), "x", 1) = 1', "1 fdatasync(3</r/#5>(deleted)) = 0",
         '1 linkat(AT_FDCWD</r>, "/proc/self/fd/3", 4</r>, "final", AT_SYMLINK_FOLLOW) = 0', SYNC_DIRECTORY, SAY],
        [WRITE, SYNC, '1 linkat(4</r>, ".tmp", 4</r>, "final", 0) = 0', '1 unlinkat(4</r>, ".tmp", 0) = 0',
         SYNC_DIRECTORY, SAY],
    ],
    ids=["unnamed file", "link and unlink"],
)  # fmt: skip
def test_other_right_ways_of_publishing_pass(lines: list[str]) -> None:
    assert_durable_order(_trace(lines), "final")
    assert_nothing_unsynced(_trace(lines))
    assert_no_overwrite(_trace(lines))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([SYNC, WRITE, *RIGHT[2:]], "written after its last sync"),
        ([WRITE, SYNC.replace("= 0", "= -1 EIO (Input/output error)"), *RIGHT[2:]], "not synced before"),
        ([SYNC, *RIGHT[2:]], "nothing was written"),
        ([*RIGHT[:3], WRITE.replace(".tmp", "final"), *RIGHT[3:]], "written after it was published"),
        ([WRITE, SYNC, SYNC_DIRECTORY, RENAME, SAY], "directory /r is not synced after"),
        ([*RIGHT[:3], SAY, SYNC_DIRECTORY], "announced before"),
        (RIGHT[:4], "nothing was announced"),
        ([WRITE, SYNC, RENAME.replace("= 0", "= -1 EEXIST (File exists)"), *RIGHT[3:]], "no rename or link"),
    ],
)
def test_every_wrong_order_is_named(lines: list[str], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert_durable_order(_trace(lines), "final")


def test_a_name_that_is_only_published_needs_no_sync_of_its_bytes() -> None:
    assert_durable_order(_trace(RIGHT[2:]), "final", written=False)


def test_an_append_that_is_not_synced_is_named_unless_its_loss_is_harmless() -> None:
    lines = [
        '1 openat(4</r>, "log", O_WRONLY|O_CREAT, 0600) = 3</r/log>',
        '1 write(3</r/log>, "x", 1) = 1',
        SAY,
    ]
    with pytest.raises(AssertionError, match=r"(?s)/r: .*/r/log: "):
        assert_nothing_unsynced(_trace(lines))
    with pytest.raises(AssertionError, match="/r/log: "):
        assert_nothing_unsynced(_trace(lines, frozenset({"/r/log"})))
    assert_nothing_unsynced(_trace(lines), ignore=("log",))


@pytest.mark.parametrize(
    "line",
    [
        '1 rename("/r/.tmp", "/r/final") = 0',
        RENAME.replace("RENAME_NOREPLACE", "0"),
        '1 openat(4</r>, "final", O_WRONLY|O_CREAT, 0600) = 3</r/final>',
        '1 openat(4</r>, "final", O_WRONLY|O_TRUNC) = 3</r/final>',
        '1 truncate("/r/final", 0) = 0',
    ],
)
def test_every_way_to_overwrite_is_named(line: str) -> None:
    with pytest.raises(AssertionError, match="could overwrite"):
        assert_no_overwrite(_trace([line]))
