"""Assessments: the runtime's receipt, its repeats, and every refusal without a trace."""

import fcntl
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from symbi_recover.core.errors import RecoverError
from symbi_recover.read import ledger
from symbi_recover.read.verify.receipt import verify_resolution
from symbi_recover.write import assess as product
from tests.support.writer.claim import Invocation, resolution_receipt, review
from tests.support.writer.events import terminated
from tests.support.writer.project import make_project, put
from tests.support.writer.text import SEED, public_key
from tests.write.worlds import (
    NOW,
    assess,
    interrupted,
    nothing_changes,
    operator_home,
    publishing,
    recorder,
    reviewed,
)


def test_the_receipt_is_the_one_that_another_writer_would_make(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    expected = resolution_receipt(
        SEED,
        invocation.snapshot(),
        review(invocation.snapshot_hash()),
        operator_uid=os.geteuid(),
        recorded_at=NOW,
    )
    done = assess(invocation)
    assert invocation.receipt_path.read_bytes() == expected
    assert invocation.receipt_path.stat().st_mode & 0o777 == 0o600
    assert (done.repeated, done.resolution.recorded_at) == (False, NOW)


def test_claim_and_journal_stay_as_they_are(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    with nothing_changes(invocation.project.governed):
        before = invocation.claim_path.read_bytes(), invocation.claim_path.stat().st_mtime_ns
        assess(invocation)
        assert (invocation.claim_path.read_bytes(), invocation.claim_path.stat().st_mtime_ns) == before


def test_the_same_review_again_gives_the_first_receipt(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    assess(invocation)
    with nothing_changes(invocation.project.root):
        done = assess(invocation, at="2030-01-01T00:00:00Z")
    assert (done.repeated, done.resolution.recorded_at) == (True, NOW)


def test_another_review_is_refused_and_the_receipt_stays(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    assess(invocation)
    with nothing_changes(invocation.project.root), pytest.raises(RecoverError) as raised:
        assess(invocation, reviewed(invocation, outcome="failed"))
    assert raised.value.message == "invocation already has a different resolution"


def test_a_stale_review_is_refused(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    old = reviewed(invocation)
    invocation.write(torn=b"more")
    with nothing_changes(invocation.project.root), pytest.raises(RecoverError) as raised:
        assess(invocation, old)
    assert raised.value.message == "invocation evidence changed since review; inspect it again"


def test_a_saved_result_is_refused(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    invocation.journal.append(terminated())
    invocation.write(result={"ok": True})
    with nothing_changes(invocation.project.root), pytest.raises(RecoverError) as raised:
        assess(invocation)
    assert raised.value.message == "invocation already has a verified recorded result"


def test_a_result_beside_an_empty_journal_fails_with_the_journals_words(tmp_path: Path) -> None:
    from tests.support.writer.claim import open_invocation

    invocation = open_invocation(make_project(tmp_path / "p"), start=False).write(result={"ok": True})
    with pytest.raises(RecoverError) as raised:
        assess(invocation)
    assert raised.value.message == "Journal write failed: signed journal has no records"


def test_an_empty_journal_can_be_resolved(tmp_path: Path) -> None:
    from tests.support.writer.claim import open_invocation

    invocation = open_invocation(make_project(tmp_path / "p"), start=False).write()
    assert not assess(invocation).repeated


def spoil_key(kind: str, invocation: Invocation) -> None:
    key = invocation.project.key
    if kind == "missing":
        key.unlink()
    elif kind == "loose":
        key.chmod(0o640)
    elif kind == "short":
        key.write_bytes(SEED[:31])
    elif kind == "long":
        key.write_bytes(SEED + b"\0")
    elif kind == "other":
        key.write_bytes(b"\7" * 32)
    elif kind == "two names":
        os.link(key, key.with_suffix(".second"))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("missing", "original audit signing key is unavailable"),
        ("loose", "invalid protected journal signing key"),
        ("short", "invalid protected journal signing key"),
        ("long", "invalid protected journal signing key"),
        ("two names", "invalid protected journal signing key"),
        ("other", "current signing key differs from the original invocation key"),
    ],
)
def test_an_unfit_key_is_refused(kind: str, message: str, tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    spoil_key(kind, invocation)
    with nothing_changes(invocation.project.root), pytest.raises(RecoverError) as raised:
        assess(invocation)
    assert raised.value.message == message


def test_a_public_key_in_upper_case_is_compared_as_text(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    claim = invocation.claim_path.read_bytes()
    shouted = claim.replace(public_key(SEED).encode(), public_key(SEED).upper().encode())
    put(invocation.claim_path, shouted)
    from uuid import UUID

    from symbi_recover.read.evidence.store import InvocationStore
    from symbi_recover.read.invocation import inspect_invocation

    with InvocationStore(str(invocation.project.root)) as store:
        present = inspect_invocation(store, invocation.scope, UUID(invocation.id)).snapshot_hash
    from symbi_recover.wire.review import parse_review

    with pytest.raises(RecoverError) as raised:
        assess(invocation, parse_review(json.dumps(review(present)).encode()))
    assert raised.value.message == "current signing key differs from the original invocation key"


STRAYS: dict[str, Callable[[Path], Any]] = {
    "folder": lambda store: (store / "stray").mkdir(),
    "link": lambda store: (store / "stray").symlink_to("x"),
    "loose file": lambda store: put(store / "stray", b"", 0o644),
    "FIFO": lambda store: os.mkfifo(store / "stray", 0o600),
    "two names": lambda store: os.link(put(store / "stray", b""), store / "second"),
}


@pytest.mark.parametrize("kind", STRAYS)
def test_a_stray_entry_is_refused_by_name(kind: str, tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    STRAYS[kind](invocation.project.invocations)
    with nothing_changes(invocation.project.root), pytest.raises(RecoverError) as raised:
        assess(invocation)
    assert raised.value.message == "unsafe invocation store entry"
    assert "stray" in str(raised.value.detail)


def test_a_full_store_is_refused_and_one_place_is_enough(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    store = invocation.project.invocations
    for number in range(4095):
        put(store / f"{number:064x}.jsonl", b"")
    with pytest.raises(RecoverError) as raised:
        assess(invocation)
    assert raised.value.message.startswith("invocation store capacity exhausted")
    (store / f"{0:064x}.jsonl").unlink()
    assert not assess(invocation).repeated


def test_the_size_of_the_store_is_counted_to_the_byte(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    store = invocation.project.invocations
    data = resolution_receipt(
        SEED,
        invocation.snapshot(),
        review(invocation.snapshot_hash()),
        operator_uid=os.geteuid(),
        recorded_at=NOW,
    )
    room = 67_108_864 - len(invocation.claim_path.read_bytes()) - len(data)
    filler = put(store / f"{0:064x}.jsonl", b"")
    os.truncate(filler, room + 1)
    with pytest.raises(RecoverError, match="capacity"):
        assess(invocation)
    os.truncate(filler, room)
    assert not assess(invocation).repeated


def test_a_left_over_temporary_counts_and_stays(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    left = put(invocation.project.invocations / ".tmpAbCdEf", b"half")
    assess(invocation)
    assert left.read_bytes() == b"half"


SPOILED = {
    "empty": lambda data: data[:0],
    "one byte": lambda data: data[:1],
    "zeros": lambda data: bytes(len(data)),
    "cut in the signature": lambda data: data[:-40],
    "without its end": lambda data: data[:-1],
}


@pytest.mark.parametrize("kind", SPOILED)
def test_f092_a_spoiled_receipt_is_invalid_and_never_taken_for_absent(kind: str, tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    invocation.resolve()
    put(invocation.receipt_path, SPOILED[kind](invocation.receipt_path.read_bytes()))
    with nothing_changes(invocation.project.root), pytest.raises(RecoverError):
        assess(invocation)


@pytest.mark.parametrize("kind", ["folder", "link", "loose", "two names"])
def test_f092_whatever_lies_at_the_receipts_name_is_kept(kind: str, tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    path = invocation.receipt_path
    if kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to("nowhere")
    else:
        invocation.resolve()
        _ = path.chmod(0o644) if kind == "loose" else os.link(path, path.with_name(".tmpAAAAAA"))
    with nothing_changes(invocation.project.root), pytest.raises(RecoverError):
        assess(invocation)


def test_evidence_that_moves_before_the_receipt_is_published_stops_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    invocation = interrupted(tmp_path)
    real = product.audit_signer

    def grow(*arguments: Any, **options: Any) -> Any:
        with invocation.journal_path.open("ab") as journal:
            journal.write(b"tail")
        return real(*arguments, **options)

    monkeypatch.setattr(product, "audit_signer", grow)
    with pytest.raises(RecoverError) as raised:
        assess(invocation)
    assert raised.value.message == "invocation evidence changed during reconciliation"
    assert not invocation.receipt_path.exists()


def test_a_claim_that_is_exchanged_under_its_lock_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    invocation = interrupted(tmp_path)
    real = product.examine

    def swap(*arguments: Any, **options: Any) -> Any:
        data = invocation.claim_path.read_bytes()
        invocation.claim_path.rename(tmp_path / "locked")
        put(invocation.claim_path, data)
        return real(*arguments, **options)

    monkeypatch.setattr(product, "examine", swap)
    with pytest.raises(RecoverError) as raised:
        assess(invocation)
    assert raised.value.code == "claim_changing"
    assert not invocation.receipt_path.exists()


def test_the_receipt_verifies_by_the_rules_of_the_format(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    assess(invocation)
    data = invocation.receipt_path.read_bytes()
    receipt = verify_resolution(data, bytes.fromhex(public_key(SEED)), invocation.snapshot_hash(), "r")
    assert receipt.payload.review.snapshot_hash == invocation.snapshot_hash()


def test_the_ledger_holds_intent_outcome_and_the_hash_of_the_receipt(tmp_path: Path) -> None:
    invocation, home = interrupted(tmp_path), operator_home(tmp_path)
    assess(invocation, record=recorder(home))
    report = ledger.judge((home / "ledger.jsonl").read_bytes(), "l", key=None)
    (act,) = report.acts
    assert (act.command, act.outcome, act.evidence) == (
        "invocation reconcile",
        "done",
        invocation.snapshot_hash(),
    )
    assert act.subject == {
        "project": str(invocation.project.root),
        "scope": invocation.scope,
        "id": invocation.id,
    }
    digest = hashlib.sha256(invocation.receipt_path.read_bytes()).hexdigest()
    assert act.receipts == {str(invocation.receipt_path): digest}


def test_a_refusal_before_the_act_leaves_nothing_in_the_ledger(tmp_path: Path) -> None:
    invocation, home = interrupted(tmp_path), operator_home(tmp_path)
    spoil_key("missing", invocation)
    with pytest.raises(RecoverError):
        assess(invocation, record=recorder(home))
    assert not (home / "ledger.jsonl").exists()


def test_a_refusal_during_the_act_is_recorded_with_its_code(tmp_path: Path) -> None:
    invocation, home = interrupted(tmp_path), operator_home(tmp_path)
    STRAYS["folder"](invocation.project.invocations)
    with pytest.raises(RecoverError):
        assess(invocation, record=recorder(home))
    (act,) = ledger.judge((home / "ledger.jsonl").read_bytes(), "l", key=None).acts
    assert (act.outcome, act.code) == ("refused", "store_entry_stray")


def test_a_live_claim_is_never_touched(tmp_path: Path) -> None:
    invocation = interrupted(tmp_path)
    with invocation.claim_path.open("rb") as owner:
        fcntl.flock(owner, fcntl.LOCK_EX)
        with nothing_changes(invocation.project.root), pytest.raises(RecoverError) as raised:
            assess(invocation)
    assert raised.value.message == "invocation is still owned; reconciliation refused"


def test_what_a_resolution_makes_impossible_is_said(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    done = assess(publication.invocation)
    assert len(done.given_up) == 1
    assert publication.id in done.given_up[0]
    assert publication.candidate.exists()


def test_a_temporary_file_that_vanishes_never_fails_a_finished_act(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from symbi_recover.read.evidence.store import InvocationStore
    from symbi_recover.write.capacity import leftovers

    invocation = interrupted(tmp_path)
    with InvocationStore(str(invocation.project.root)) as store:
        put(Path(store.path) / ".tmpAbCdEf", b"another writer's")

        def vanished(*_: object, **__: object) -> None:
            raise FileNotFoundError(2, "gone")

        monkeypatch.setattr(os, "stat", vanished)
        left = leftovers(store)
        monkeypatch.undo()
    assert left == (".tmpAbCdEf",)
