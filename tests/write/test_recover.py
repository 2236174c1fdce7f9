"""File recoveries: exactly the promised file gets the name, nothing is ever replaced, and the receipt is the runtime's."""

import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from symbi_recover.core.errors import RecoverError
from symbi_recover.read import ledger
from symbi_recover.write import atomic, holding
from symbi_recover.write import effect as product
from tests.support.writer.claim import open_invocation
from tests.support.writer.events import terminated
from tests.support.writer.project import make_project, put
from tests.support.writer.publication import Publication, prepare_publication, publication_receipt
from tests.support.writer.text import SEED
from tests.write.test_reconcile import SPOILED, STRAYS, spoil_key
from tests.write.worlds import NOW, assess, finish, nothing_changes, operator_home, publishing, recorder

CONFLICT = "publication candidate is missing or conflicts; no file changed"


def out(publication: Publication) -> dict[str, bytes]:
    """Every file below the output folder."""
    return {
        str(p.relative_to(publication.parent)): p.read_bytes()
        for p in sorted(publication.parent.rglob("*"))
        if p.is_file() and not p.is_symlink()
    }


def test_the_candidate_becomes_the_target_and_the_receipt_is_that_of_another_writer(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    inode = publication.candidate.stat().st_ino
    expected = publication_receipt(
        SEED,
        publication.invocation.snapshot(),
        publication.intent,
        operator_uid=os.geteuid(),
        recorded_at=NOW,
    )
    done = finish(publication)
    assert done.how == "renamed"
    assert os.listdir(publication.parent) == ["report.txt"]
    assert (publication.target.stat().st_ino, publication.target.stat().st_nlink) == (inode, 1)
    assert publication.receipt_path.read_bytes() == expected
    assert publication.receipt_path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_has_its_name_is_acknowledged(tmp_path: Path) -> None:
    publication = publishing(tmp_path, publish=True)
    with nothing_changes(publication.parent):
        assert finish(publication).how == "acknowledged"
    assert publication.receipt_path.exists()


def test_a_repeat_gives_the_first_receipt(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    finish(publication)
    with nothing_changes(publication.invocation.project.root, publication.parent):
        done = finish(publication, at="2030-01-01T00:00:00Z")
    assert (done.how, done.payload.recorded_at) == ("repeated", NOW)


@pytest.mark.parametrize("content", [b"", b"x" * (1 << 20) + b"y"], ids=["empty", "large"])
def test_files_of_any_size_are_published(content: bytes, tmp_path: Path) -> None:
    publication = publishing(tmp_path, content=content)
    finish(publication)
    assert publication.target.read_bytes() == content


def test_another_hash_than_the_reviewed_one_touches_nothing(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    with (
        nothing_changes(publication.invocation.project.root, publication.parent),
        pytest.raises(RecoverError) as raised,
    ):
        finish(publication, "sha256:" + "0" * 64)
    assert raised.value.message == "invocation evidence changed since review"


TARGETS: dict[str, Callable[[Publication], Any]] = {
    "same content": lambda p: put(p.target, p.candidate.read_bytes()),
    "other content": lambda p: put(p.target, b"theirs"),
    "empty": lambda p: put(p.target, b""),
    "folder": lambda p: p.target.mkdir(),
    "dangling link": lambda p: p.target.symlink_to("nowhere"),
    "link to the candidate": lambda p: p.target.symlink_to(p.candidate.name),
    "second name of the candidate": lambda p: os.link(p.candidate, p.target),
}


@pytest.mark.parametrize("kind", TARGETS)
def test_f097_a_target_that_appeared_meanwhile_is_a_conflict(kind: str, tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    TARGETS[kind](publication)
    with (
        nothing_changes(publication.invocation.project.root, publication.parent),
        pytest.raises(RecoverError) as raised,
    ):
        finish(publication)
    expected = "Too many levels of symbolic links (os error 40)" if "link" in kind else CONFLICT
    assert raised.value.message == expected


CANDIDATES: dict[str, Callable[[Publication], Any]] = {
    "gone": lambda p: p.candidate.unlink(),
    "changed": lambda p: p.candidate.write_bytes(b"VERIFIED-OUTPUT"),
    "longer": lambda p: p.candidate.write_bytes(b"verified-output!"),
    "loose": lambda p: p.candidate.chmod(0o644),
    "another file": lambda p: (p.candidate.rename(p.parent / "aside"), put(p.candidate, b"verified-output")),
    "two names": lambda p: os.link(p.candidate, p.parent / "second"),
}


@pytest.mark.parametrize("kind", CANDIDATES)
def test_a_candidate_that_is_not_as_promised_is_a_conflict(kind: str, tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    CANDIDATES[kind](publication)
    with (
        nothing_changes(publication.invocation.project.root, publication.parent),
        pytest.raises(RecoverError) as raised,
    ):
        finish(publication)
    assert raised.value.message == CONFLICT


def test_a_folder_of_another_identity_is_refused_with_both_pairs(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    publication.parent.rename(tmp_path / "moved")
    shutil.copytree(tmp_path / "moved", publication.parent)
    with pytest.raises(RecoverError) as raised:
        finish(publication)
    assert raised.value.message == "publication parent identity changed"
    assert str(publication.intent["parent_identity"][1]) in str(raised.value.detail)


def test_f099_a_changed_device_number_is_not_published(tmp_path: Path) -> None:
    invocation = open_invocation(make_project(tmp_path / "p"))
    parent = tmp_path / "out"
    parent.mkdir()
    device = parent.stat().st_dev + 1
    publication = prepare_publication(invocation, parent, parent_identity=[device, parent.stat().st_ino])
    invocation.write()
    with nothing_changes(parent), pytest.raises(RecoverError) as raised:
        finish(publication)
    assert raised.value.message == "publication parent identity changed"


def test_a_result_or_a_resolution_closes_the_door(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    assess(publication.invocation)
    with nothing_changes(publication.parent), pytest.raises(RecoverError) as raised:
        finish(publication)
    assert raised.value.message.startswith("invocation already has an operator resolution")


def test_a_recorded_result_is_refused(tmp_path: Path) -> None:
    invocation = open_invocation(make_project(tmp_path / "p"))
    publication = prepare_publication(
        invocation, tmp_path / "out", publish=True, finished=True, dispatch_finished=True
    )
    invocation.journal.append(terminated())
    invocation.write(result={})
    with pytest.raises(RecoverError) as raised:
        finish(publication)
    assert raised.value.message == "invocation already has a recorded result"


def test_a_receipt_still_counts_after_a_resolution(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    finish(publication)
    assess(publication.invocation)
    assert finish(publication).how == "repeated"


def test_an_output_that_changed_after_its_receipt_is_said(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    finish(publication)
    publication.target.write_bytes(b"verified-outpux")
    with nothing_changes(publication.invocation.project.root), pytest.raises(RecoverError) as raised:
        finish(publication)
    assert raised.value.message == "previously recovered output changed; no file altered"


@pytest.mark.parametrize("kind", ["missing", "loose", "other"])
def test_an_unfit_key_touches_nothing(kind: str, tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    spoil_key(kind, publication.invocation)
    with (
        nothing_changes(publication.invocation.project.root, publication.parent),
        pytest.raises(RecoverError),
    ):
        finish(publication)


@pytest.mark.parametrize("kind", STRAYS)
def test_a_stray_entry_stops_the_command_before_the_file_is_touched(kind: str, tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    STRAYS[kind](publication.invocation.project.invocations)
    with (
        nothing_changes(publication.invocation.project.root, publication.parent),
        pytest.raises(RecoverError, match="unsafe invocation store entry"),
    ):
        finish(publication)


@pytest.mark.parametrize("kind", SPOILED)
def test_f092_a_spoiled_receipt_is_invalid_and_never_taken_for_absent(kind: str, tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    path = publication.write_receipt()
    put(path, SPOILED[kind](path.read_bytes()))
    with (
        nothing_changes(publication.invocation.project.root, publication.parent),
        pytest.raises(RecoverError),
    ):
        finish(publication)


def test_two_intents_with_one_id_are_refused(tmp_path: Path) -> None:
    invocation = open_invocation(make_project(tmp_path / "p"))
    prepare_publication(invocation, tmp_path / "out")
    from tests.support.writer.publication import begin_call

    other = begin_call(invocation.journal, "call_2", "again")
    publication = prepare_publication(invocation, tmp_path / "elsewhere", call=other)
    invocation.write()
    with pytest.raises(RecoverError) as raised:
        finish(publication)
    assert raised.value.code == "publication_repeated"


@pytest.mark.parametrize(
    "number",
    [errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM, errno.EXDEV],
)
@pytest.mark.parametrize("step", [0, 1])
def test_f094_a_file_system_without_safe_renames_leaves_candidate_and_target(
    number: int, step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publication = publishing(tmp_path)
    before = out(publication)
    real, calls = atomic.rename_no_replace, []

    def refuse(*arguments: Any) -> None:
        calls.append(1)
        if len(calls) == step + 1:
            raise OSError(number, os.strerror(number))
        real(*arguments)

    monkeypatch.setattr(holding, "rename_no_replace", refuse)
    with pytest.raises(RecoverError) as raised:
        finish(publication)
    assert raised.value.code == "rename_unsupported"
    assert raised.value.message.endswith(f"(os error {number})")
    assert out(publication) == before
    assert sorted(os.listdir(publication.parent)) == [publication.candidate.name]
    assert not publication.receipt_path.exists()


def test_the_candidate_gets_its_name_back_when_the_target_is_taken_at_the_last_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publication = publishing(tmp_path)
    real = product._check_content

    def compete(*arguments: Any) -> None:
        real(*arguments)
        put(publication.target, b"theirs")

    monkeypatch.setattr(product, "_check_content", compete)
    with pytest.raises(RecoverError) as raised:
        finish(publication)
    assert raised.value.message == "File exists (os error 17)"
    assert out(publication) == {publication.candidate.name: b"verified-output", "report.txt": b"theirs"}


def test_a_file_that_took_the_candidates_name_at_the_last_moment_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publication = publishing(tmp_path)
    real = product.check_parent

    def swap(*arguments: Any) -> None:
        real(*arguments)
        if publication.candidate.exists() and not (publication.parent / "aside").exists():
            publication.candidate.rename(publication.parent / "aside")
            put(publication.candidate, b"theirs")

    monkeypatch.setattr(product, "check_parent", swap)
    with pytest.raises(RecoverError) as raised:
        finish(publication)
    assert raised.value.message == "publication candidate identity changed"
    assert out(publication) == {publication.candidate.name: b"theirs", "aside": b"verified-output"}


def test_content_that_changes_at_the_last_moment_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publication = publishing(tmp_path)
    writer = publication.candidate.open("r+b", buffering=0)
    real = product._check_content

    def scribble(*arguments: Any) -> None:
        writer.write(b"V")
        real(*arguments)

    monkeypatch.setattr(product, "_check_content", scribble)
    with writer, pytest.raises(RecoverError) as raised:
        finish(publication)
    assert raised.value.message == "publication candidate content changed"
    assert not publication.target.exists()
    assert publication.candidate.read_bytes() == b"Verified-output"


def test_a_folder_that_is_exchanged_before_the_rename_stops_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publication = publishing(tmp_path)
    real = product._check_file

    def exchange(*arguments: Any) -> None:
        real(*arguments)
        publication.parent.rename(tmp_path / "moved")
        publication.parent.mkdir()

    monkeypatch.setattr(product, "_check_file", exchange)
    with pytest.raises(RecoverError) as raised:
        finish(publication)
    assert raised.value.message == "output parent pathname changed; publication requires reconciliation"
    assert os.listdir(tmp_path / "moved") == [publication.candidate.name]
    assert os.listdir(publication.parent) == []


def test_a_candidate_left_aside_by_a_killed_recovery_is_put_back_and_published(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    aside = publication.parent / f".symbi-recover-{publication.id}"
    aside.mkdir(mode=0o700)
    publication.candidate.rename(aside / "candidate")
    assert finish(publication).how == "renamed"
    assert os.listdir(publication.parent) == ["report.txt"]


def test_a_candidate_left_aside_stays_there_when_its_name_is_taken(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    aside = publication.parent / f".symbi-recover-{publication.id}"
    aside.mkdir(mode=0o700)
    publication.candidate.rename(aside / "candidate")
    put(publication.candidate, b"theirs")
    before = out(publication)
    with pytest.raises(RecoverError) as raised:
        finish(publication)
    assert raised.value.code == "publication_held"
    assert out(publication) == before


@pytest.mark.parametrize("kind", ["link", "loose", "file", "with another file"])
def test_a_foreign_thing_at_the_holding_folders_name_is_not_used(kind: str, tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    aside = publication.parent / f".symbi-recover-{publication.id}"
    if kind == "link":
        (tmp_path / "real").mkdir(mode=0o700)
        aside.symlink_to(tmp_path / "real")
    elif kind == "file":
        put(aside, b"")
    else:
        aside.mkdir(mode=0o700)
        aside.chmod(0o755 if kind == "loose" else 0o700)
        put(aside / "candidate", b"theirs")
    with (
        nothing_changes(publication.invocation.project.root, publication.parent),
        pytest.raises(RecoverError),
    ):
        finish(publication)


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS, errno.EBADF])
def test_f087_a_folder_that_fails_to_sync_after_the_rename_is_said(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publication = publishing(tmp_path)

    def fail(_: int) -> bool:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(product, "sync_folder", fail)
    with pytest.raises(RecoverError) as raised:
        finish(publication)
    assert raised.value.message == "output created but directory durability is uncertain"
    assert publication.target.exists()
    monkeypatch.undo()
    assert finish(publication).how == "acknowledged"


def test_f087_a_file_system_that_cannot_sync_folders_is_a_remark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publication = publishing(tmp_path)
    monkeypatch.setattr(product, "sync_folder", lambda _: False)
    assert finish(publication).confirmed is False


def test_the_room_for_the_receipt_is_taken_before_the_file_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publication = publishing(tmp_path)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with (
        nothing_changes(publication.invocation.project.root, publication.parent),
        pytest.raises(RecoverError) as raised,
    ):
        finish(publication)
    assert raised.value.message == "No space left on device (os error 28)"


def test_a_live_claim_is_never_touched(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    with publication.invocation.claim_path.open("rb") as owner:
        fcntl.flock(owner, fcntl.LOCK_EX)
        with (
            nothing_changes(publication.invocation.project.root, publication.parent),
            pytest.raises(RecoverError, match="still owned"),
        ):
            finish(publication)


def test_the_ledger_names_the_publication_and_its_receipt(tmp_path: Path) -> None:
    publication, home = publishing(tmp_path), operator_home(tmp_path)
    finish(publication, record=recorder(home))
    (act,) = ledger.judge((home / "ledger.jsonl").read_bytes(), "l", key=None).acts
    assert act.subject["publication"] == publication.id
    digest = hashlib.sha256(publication.receipt_path.read_bytes()).hexdigest()
    assert act.receipts == {str(publication.receipt_path): digest}
    assert act.outcome == "done"
