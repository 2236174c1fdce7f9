"""A lease's origin against the signed journal: verified, contradicted, or not checked, each with its reason."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from symbi_recover.core.lease_records import Origin
from symbi_recover.core.leases import OriginView
from symbi_recover.read.verify.origin import OriginSearch
from symbi_recover.wire.lease import read_record
from tests.support.writer import events
from tests.support.writer import lease as made
from tests.support.writer.journal import JournalWriter
from tests.support.writer.text import SEED, compact, public_key

KEY = bytes.fromhex(public_key(SEED))
OTHER_SEED = bytes(range(1, 33))
CALL = {"call_fingerprint": made.origin()["call_fingerprint"], "tool_name": "write_report"}


def origin(**fields: Any) -> Origin:
    reading = read_record(compact(made.record(origin=made.origin(**fields))), made.LEASE)
    assert reading.record is not None, reading.faults
    assert reading.record.origin is not None
    return reading.record.origin


def journal(
    finish: bool | None = False, *, seed: bytes = SEED, end: bool = True, **call: Any
) -> JournalWriter:
    writer = JournalWriter(seed)
    writer.append(events.started())
    writer.append(events.tool_dispatch_started(**{**CALL, **call}), 1)
    if finish is not None:
        writer.append(events.tool_dispatch_finished(is_error=finish), 1)
    if end:
        writer.append(events.terminated(), 1)
    return writer


def lay(project: Path, writer: JournalWriter) -> Path:
    folder = project / ".symbiont" / "governed"
    folder.mkdir(parents=True, exist_ok=True)
    return writer.write(folder / writer.name)


def view(
    project: Path, *, keys: tuple[bytes, ...] = (KEY,), root: Path | None = None, **fields: Any
) -> OriginView:
    projects, roots = ([], [str(root)]) if root else ([str(project)], [])
    return OriginSearch(projects, roots, lambda _: list(keys)).view(origin(**fields))


@pytest.mark.parametrize(
    ("finish", "outcome"), [(False, "succeeded"), (True, "failed"), (None, "unfinished")]
)
def test_a_signed_dispatch_verifies_the_origin(tmp_path: Path, finish: bool | None, outcome: str) -> None:
    path = lay(tmp_path, journal(finish))
    seen = view(tmp_path)
    assert (seen.verdict, seen.outcome, seen.start_sequence) == ("origin_verified", outcome, 1)
    assert seen.journal == str(path)
    assert seen.terminal_reason == "Completed"


def test_an_unfinished_run_still_verifies_what_was_signed(tmp_path: Path) -> None:
    writer = journal(None, end=False)
    writer.tail(40)
    lay(tmp_path, writer)
    seen = view(tmp_path)
    assert (seen.verdict, seen.outcome, seen.terminal_reason) == ("origin_verified", "unfinished", None)


def test_hex_digits_are_compared_by_value(tmp_path: Path) -> None:
    lay(tmp_path, journal())
    shout = made.origin()["call_fingerprint"].upper().replace("SHA256", "sha256")
    seen = view(tmp_path, call_fingerprint=shout, public_key=public_key(SEED).upper())
    assert seen.verdict == "origin_verified"


@pytest.mark.parametrize(
    "fields", [{"tool_name": "read_file"}, {"iteration": 2}, {"call_fingerprint": "sha256:" + "0" * 64}]
)
def test_every_field_that_differs_is_named(tmp_path: Path, fields: dict[str, Any]) -> None:
    lay(tmp_path, journal())
    seen = view(tmp_path, **fields)
    assert seen.verdict == "origin_field_mismatch"
    assert next(iter(fields)) in seen.detail


def test_a_dispatch_that_was_never_signed_is_a_contradiction(tmp_path: Path) -> None:
    lay(tmp_path, journal())
    assert view(tmp_path, dispatch_id=made.lease_uid(4)).verdict == "origin_dispatch_missing"


def test_a_dispatch_that_starts_twice_is_named(tmp_path: Path) -> None:
    writer = journal(None, end=False)
    writer.append(events.tool_dispatch_started(**CALL), 1)
    lay(tmp_path, writer)
    assert view(tmp_path).verdict == "origin_dispatch_repeated"


def test_a_journal_signed_again_with_another_key_does_not_pass(tmp_path: Path) -> None:
    """F-023: key in journal and lease changed to match; the given key decides."""
    lay(tmp_path, journal(seed=OTHER_SEED))
    seen = view(tmp_path, public_key=public_key(OTHER_SEED))
    assert seen.verdict == "origin_key_mismatch"
    assert "does not verify" in seen.detail


def test_a_lease_that_names_another_key_is_a_mismatch_though_the_journal_verifies(tmp_path: Path) -> None:
    lay(tmp_path, journal())
    assert view(tmp_path, public_key=public_key(OTHER_SEED)).verdict == "origin_key_mismatch"
    both = (KEY, bytes.fromhex(public_key(OTHER_SEED)))
    assert view(tmp_path, keys=both, public_key=public_key(OTHER_SEED)).verdict == "origin_key_mismatch"


def test_a_damaged_journal_proves_nothing(tmp_path: Path) -> None:
    path = lay(tmp_path, journal())
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    seen = view(tmp_path)
    assert seen.verdict == "origin_journal_refused"
    assert "record" in seen.detail


def test_no_journal_and_no_key_are_not_checked(tmp_path: Path) -> None:
    assert view(tmp_path).verdict == "origin_unverified"
    lay(tmp_path, journal())
    assert view(tmp_path, keys=()).verdict == "origin_unverified"


def test_a_journal_of_another_run_under_the_name_is_refused(tmp_path: Path) -> None:
    writer = JournalWriter(run_id=made.lease_uid(6))
    writer.append(events.started())
    folder = tmp_path / ".symbiont" / "governed"
    folder.mkdir(parents=True)
    writer.write(folder / JournalWriter().name)
    assert view(tmp_path).verdict == "origin_journal_refused"


def test_projects_below_a_root_are_found_and_links_are_not_followed(tmp_path: Path) -> None:
    lay(tmp_path / "root" / "team" / "agent", journal())
    (tmp_path / "root" / "loop").symlink_to(tmp_path / "root")
    assert view(tmp_path, root=tmp_path / "root").verdict == "origin_verified"
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "link").symlink_to(tmp_path / "root")
    assert view(tmp_path, root=tmp_path / "empty").verdict == "origin_unverified"


def test_a_fifo_under_the_journals_name_does_not_hang(tmp_path: Path) -> None:
    import os

    folder = tmp_path / ".symbiont" / "governed"
    folder.mkdir(parents=True)
    os.mkfifo(folder / JournalWriter().name)
    assert view(tmp_path).verdict == "origin_journal_refused"


def test_of_two_copies_a_good_one_suffices(tmp_path: Path) -> None:
    lay(tmp_path / "a", journal(seed=OTHER_SEED))
    lay(tmp_path / "b", journal())
    assert view(tmp_path, root=tmp_path).verdict == "origin_verified"


def test_a_copy_without_a_trusted_key_does_not_end_the_search(tmp_path: Path) -> None:
    first = lay(tmp_path / "a", journal())
    second = lay(tmp_path / "b", journal())

    def seen(*trusted: Path) -> OriginView:
        projects = [str(tmp_path / "a"), str(tmp_path / "b")]
        return OriginSearch(projects, [], lambda path: [KEY] * (Path(path) in trusted)).view(origin())

    assert (seen(second).verdict, seen(second).journal) == ("origin_verified", str(second))
    assert (seen().verdict, seen().journal) == ("origin_unverified", str(first))
    assert "no key is trusted" in seen().detail


def denying(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the system answers to an account without rights to a folder."""
    real = {"scandir": os.scandir, "stat": os.stat}

    def denied(name: str) -> Any:
        def call(path: Any, *rest: Any, **more: Any) -> Any:
            if str(path).removesuffix("/.") == str(folder):
                raise PermissionError(errno.EACCES, "Permission denied")
            return real[name](path, *rest, **more)

        return call

    for name in real:
        monkeypatch.setattr(os, name, denied(name))


def test_what_could_not_be_searched_is_named_where_nothing_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "a" / "closed"
    closed.mkdir(parents=True)
    denying(closed, monkeypatch)
    seen = view(tmp_path, root=tmp_path)
    assert seen.verdict == "origin_unverified"
    assert f"not searched: {closed} (Permission denied)" in seen.detail
    lay(tmp_path / "b", journal())
    assert view(tmp_path, root=tmp_path).verdict == "origin_verified"


def test_journals_of_a_project_that_may_not_be_searched_are_not_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = lay(tmp_path, journal()).parent
    denying(folder, monkeypatch)
    assert f"not searched: {folder} (Permission denied)" in view(tmp_path).detail


def test_a_root_that_is_not_there_or_too_large_was_not_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = tmp_path / "missing"
    assert f"not searched: {missing} (No such file" in view(tmp_path, root=missing).detail
    for number in range(20):
        (tmp_path / f"{number}").mkdir()
    monkeypatch.setattr("symbi_recover.read.verify.origin._MOST_FOLDERS", 5)
    detail = view(tmp_path, root=tmp_path).detail
    assert f"not searched: 16 folders below {tmp_path}" in detail


def test_of_many_folders_that_could_not_be_searched_some_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = [str(tmp_path / f"{number}") for number in range(12)]
    detail = OriginSearch([], missing, lambda _: [KEY]).view(origin()).detail
    assert "and 4 more" in detail
