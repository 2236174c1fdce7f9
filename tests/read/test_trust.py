"""Pinned keys: the file's form, who may have written it, and which entries count where."""

import os
from pathlib import Path

import pytest

from symbi_recover.core.errors import MisuseError, UnexaminedError
from symbi_recover.read.trust import TrustEntry, decide, dump, load, parse, pinned
from tests.support.writer.project import put

KEYS = [f"{number:02x}" * 32 for number in range(4)]
ENTRY = TrustEntry(
    public_key=KEYS[0], project="/srv/p", host="h", comment="x", added_at="2026-03-04T05:06:07Z"
)


def entry(key: int, project: str | None, host: str | None) -> TrustEntry:
    return TrustEntry(public_key=KEYS[key], project=project, host=host, added_at="2026-03-04T05:06:07Z")


def test_a_written_file_is_read_back(tmp_path: Path) -> None:
    entries = (ENTRY, entry(1, None, None))
    assert load(str(put(tmp_path / "t", dump(entries))), required=True) == entries


def test_one_final_line_end_of_either_kind_is_allowed_and_nothing_else() -> None:
    line = dump((ENTRY,)).rstrip(b"\n")
    for good in (line, line + b"\n", line + b"\r\n", b"", b"\n"):
        parse(good, "t")
    for bad in (
        line + b"\r\n" + line,
        b"\n" + line,
        line + b"\n\n",
        b" " + line,
        line + b" ",
        b"\xef\xbb\xbf" + line,
    ):
        with pytest.raises(MisuseError):
            parse(bad, "t")


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense",
        b"{}",
        b"[]",
        dump((ENTRY,)).replace(b'"host":"h"', b'"host":"h","more":1'),
        dump((ENTRY,)).replace(KEYS[0].encode(), b"AB" * 32),
        dump((ENTRY,)).replace(KEYS[0].encode(), b"ab" * 31),
        dump((ENTRY,)).replace(b"2026-03-04T05:06:07Z", b"yesterday"),
        dump((ENTRY,)).replace(b'"host":"h"', b'"host":"h","host":"i"'),
        dump((ENTRY,)).decode().encode("utf-16"),
    ],
)
def test_a_line_that_is_no_entry_makes_the_file_unusable(line: bytes) -> None:
    with pytest.raises(MisuseError):
        parse(line, "t")


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_to_is_not_believed(tmp_path: Path, mode: int) -> None:
    path = put(tmp_path / "t", dump((ENTRY,)), mode)
    with pytest.raises(MisuseError, match="others may have changed it"):
        load(str(path), required=True)


def test_a_link_a_fifo_and_a_huge_file_are_not_read(tmp_path: Path) -> None:
    link, fifo, huge = tmp_path / "link", tmp_path / "fifo", put(tmp_path / "huge", b"")
    link.symlink_to(put(tmp_path / "real", dump((ENTRY,))))
    os.mkfifo(fifo)
    os.truncate(huge, 1 << 40)
    for path in (link, fifo, huge, tmp_path):
        with pytest.raises(UnexaminedError):
            load(str(path), required=False)


def test_a_missing_file_is_empty_unless_it_was_asked_for(tmp_path: Path) -> None:
    assert load(str(tmp_path / "none"), required=False) == ()
    with pytest.raises(UnexaminedError):
        load(str(tmp_path / "none"), required=True)


def test_entries_count_for_their_project_and_host() -> None:
    entries = (entry(0, "/p", "h"), entry(1, "/p", None), entry(2, None, "h"), entry(3, None, None))
    wanted = [bytes.fromhex(key) for key in KEYS]
    assert pinned(entries, "/p", "h") == frozenset(wanted)
    assert pinned(entries, "/p", "other") == {wanted[1], wanted[3]}
    assert pinned(entries, "/q", "h") == {wanted[2], wanted[3]}
    assert pinned((entry(0, "/p", "h"),), "/q", "other") == frozenset()


def test_a_given_key_comes_before_pinned_ones_and_these_before_the_evidence(tmp_path: Path) -> None:
    pins = str(put(tmp_path / "t", dump((entry(1, "/p", None),))))
    none = str(tmp_path / "none")
    given = decide(public_key=KEYS[0], trust_file=pins, default_file=none, project="/p")
    assert given is not None
    assert (given.keys, given.source) == ({bytes.fromhex(KEYS[0])}, "given")
    by_file = decide(public_key=None, trust_file=pins, default_file=none, project="/p")
    by_default = decide(public_key=None, trust_file=None, default_file=pins, project="/p")
    assert by_file == by_default
    assert by_file is not None
    assert by_file.source == "trust file"
    assert decide(public_key=None, trust_file=None, default_file=pins, project="/q") is None
    with pytest.raises(UnexaminedError, match="nothing was verified"):
        decide(public_key=None, trust_file=pins, default_file=none, project="/q")
