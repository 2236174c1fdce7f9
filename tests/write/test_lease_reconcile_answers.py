"""`lease reconcile --confirm` where questions stay without a good answer, a removal takes its time, or the store is blocked.

Whatever the daemon does to a question that is asked again under the lock: the record stays as it was, and the document
says at which stage it ended.
"""

import errno
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from symbi_recover.write import reconcile
from tests.crash.scenarios.lease import GONE
from tests.support.daemon_behaviours import (
    AS_USUAL,
    Answer,
    Behaviour,
    Dripping,
    HalfThenClose,
    HeadersOnly,
    Huge,
    Silent,
    failure,
)
from tests.support.evidence import fingerprint
from tests.support.writer import lease as writer
from tests.support.writer.project import put
from tests.support.writer.text import compact
from tests.write.lease_rig import OWNED, Reconcile, Retire, Rig, rig

NAME = f"symbi-{OWNED}"
QUICK = ("--timeout", "0.4")
FAULTS: dict[str, tuple[Callable[[], Behaviour], str]] = {
    "silent": (Silent, "daemon_slow"),
    "headers only": (HeadersOnly, "daemon_slow"),
    "dripping": (lambda: Dripping(Answer({"Id": "1"}), 0.05), "daemon_slow"),
    "half": (lambda: HalfThenClose(Answer({"Id": "x" * 200})), "daemon_malformed"),
    "503 during start": (lambda: failure(503, "starting"), "daemon_failed"),
    "100 MiB": (Huge, "daemon_oversized"),
    "without end": (lambda: Huge(None), "daemon_oversized"),
}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setattr("symbi_recover.read.verify.lease_check.sees_whole_host", lambda _: False)
    monkeypatch.setattr(reconcile, "_GONE_SECONDS", 0.1)
    with rig(Reconcile(), tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture
def tombstone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    with rig(Retire(), tmp_path, monkeypatch) as made:
        yield made


def items(document: dict[str, Any]) -> dict[str, Any]:
    return {one["lease"]: one for one in document["report"]["items"]}


def records(world: Rig) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in world.made.store.glob("*.json")}


def record_hash(world: Rig) -> str:
    """The consent to the act on the owned record alone."""
    return hashlib.sha256(world.record.read_bytes()).hexdigest()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("path", ["/version", "/containers/json", f"/containers/{NAME}/json"])
def test_a_question_without_a_good_answer_ends_before_anything_is_removed(
    world: Rig, path: str, fault: str
) -> None:
    """F-123: the plan cannot be made again, so the consent is to nothing that is known; the daemon's failure is named."""
    make, code = FAULTS[fault]
    world.double.on("GET", path, make())
    before = records(world)
    ran = world.cli("reconcile", OWNED, "--confirm", record_hash(world), *QUICK)
    assert ran.rc == 3, ran
    assert json.loads(ran.out)["code"] == code
    assert b"cannot be compared" in ran.err
    assert records(world) == before
    world.double.assert_only_gets()
    plan = items(world.document("reconcile", OWNED, *QUICK, code=3))[OWNED]
    assert (plan["action"], plan["code"]) == ("leave", code), plan
    assert world.double.socket_path in str(plan["findings"])
    world.double._rules.clear()
    done = world.document("reconcile", OWNED, "--confirm", record_hash(world), code=0)
    assert items(done)[OWNED]["outcome"] == "done"


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("stage", ["before the removal", "after it"])
def test_a_question_about_the_container_itself_keeps_the_record(world: Rig, stage: str, fault: str) -> None:
    """F-123: asked by its full id, right before it is removed and until it is seen gone."""
    make, code = FAULTS[fault]
    container = world.played.find(NAME)
    known = f"/containers/{container.id}/json"
    world.double.on("GET", known, *([AS_USUAL] if stage == "after it" else []), make())
    before = records(world)[f"{OWNED}.json"]
    done = world.document("reconcile", "--confirm", world.made.confirm, *QUICK, code=4)
    item = items(done)[OWNED]
    assert item["outcome"] == "failed"
    (failed,) = [one for one in item["findings"] if one["code"] == "removal_failed"]
    assert failed["message"], failed
    assert records(world)[f"{OWNED}.json"] == before
    assert bool(world.double.asked("DELETE")) is (stage == "after it")
    assert items(done)[GONE]["outcome"] == "done", "one that fails does not stop the others"
    assert code
    world.double._rules.clear()
    world.document("reconcile", "--confirm", world.made.confirm, code=0)
    assert records(world) == {}


def test_a_removal_on_its_way_is_waited_for_and_not_asked_for_again(world: Rig) -> None:
    """F-121: `removing` is shown, nothing is sent, and the record goes once the container has gone."""
    container = world.played.find(NAME)
    container.status = "removing"
    seen: list[str] = []

    def look(_: object) -> Behaviour:
        seen.append(container.status)
        if len(seen) == 4:
            world.played.containers.remove(container)
        assert f"{OWNED}.json" in records(world)
        return AS_USUAL

    world.double.on("GET", f"/containers/{container.id}/json", look)
    done = world.document("reconcile", "--confirm", world.made.confirm, code=0)
    assert items(done)[OWNED]["outcome"] == "done"
    assert len(seen) >= 4
    assert not world.double.asked("DELETE")
    assert records(world) == {}


def test_a_removal_that_never_ends_is_not_taken_for_done(world: Rig) -> None:
    """F-121."""
    world.played.find(NAME).status = "removing"
    before = records(world)[f"{OWNED}.json"]
    done = world.document("reconcile", "--confirm", world.made.confirm, code=4)
    item = items(done)[OWNED]
    assert item["outcome"] == "failed"
    assert "removal_unconfirmed" in {one["code"] for one in item["findings"]}
    assert not world.double.asked("DELETE")
    assert records(world) == {f"{OWNED}.json": before}


STRANGE = writer.lease_uid(50)


def spoil(store: Path, how: str) -> None:
    """Put an entry into a store that the runtime refuses to start on."""
    record = compact(writer.record(STRANGE))
    path = store / f"{STRANGE}.json"
    if how == "loose":
        put(path, record, 0o644)
    elif how == "two links":
        os.link(put(path, record), store / "second")
    elif how == "link":
        path.symlink_to("/dev/zero")
    elif how == "spelling":
        put(store / f"{STRANGE.upper()}.json", record)
    elif how == "large":
        put(path, b" " * 200_000)
    elif how == "another's":
        put(path, compact(writer.record()))
    elif how == "FIFO":
        os.mkfifo(path, 0o600)
    elif how == "too many":
        for number in range(100, 612):
            writer.write_record(store, writer.record(writer.lease_uid(number), writer.uncertain()))
    else:
        put(path, record)


def files(folder: Path) -> dict[Path, bytes]:
    """Every file by its content; a folder of the operator's own may be made."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


SPOILT = ["loose", "two links", "link", "spelling", "large", "another's", "FIFO", "too many", "unreadable"]


@pytest.fixture(params=SPOILT)
def spoilt(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Spoils a store; what cannot be opened is so for root too."""

    def act(store: Path) -> None:
        spoil(store, request.param)
        if request.param == "unreadable":
            real = os.open

            def refusing(path: Any, flags: int, *rest: Any, **more: Any) -> int:
                if path == f"{STRANGE}.json":
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
                return real(path, flags, *rest, **more)

            monkeypatch.setattr(os, "open", refusing)

    return act


def test_nothing_is_reconciled_in_a_store_with_unexplained_entries(
    world: Rig, spoilt: Callable[[Path], None]
) -> None:
    """F-080: with the right consent, and for the one sound record as well as for all."""
    spoilt(world.made.store)
    before = fingerprint(world.made.store), fingerprint(world.made.home)
    for consent in (("--confirm", world.made.confirm), (OWNED, "--confirm", record_hash(world))):
        ran = world.cli("reconcile", *consent)
        assert ran.rc == 4, ran
        assert b"store_blocked" in ran.err
    world.double.assert_only_gets()
    assert (fingerprint(world.made.store), fingerprint(world.made.home)) == before


def test_nothing_is_retired_in_a_store_with_unexplained_entries(
    tombstone: Rig, spoilt: Callable[[Path], None]
) -> None:
    """F-080."""
    spoilt(tombstone.made.store)
    before = fingerprint(tombstone.made.store), files(tombstone.made.home)
    document = tombstone.retire(4)
    assert "store_blocked" in str(document)
    tombstone.double.assert_only_gets()
    assert (fingerprint(tombstone.made.store), files(tombstone.made.home)) == before


@pytest.mark.parametrize("lock", [(), ("--lock",)], ids=["without the lock", "with it"])
def test_a_sound_tombstone_beside_unexplained_entries_can_be_witnessed(
    tombstone: Rig, spoilt: Callable[[Path], None], lock: tuple[str, ...]
) -> None:
    """F-080: the one named record is sound; the witness lies in the operator's folder, and the store stays as it is."""
    spoilt(tombstone.made.store)
    before = fingerprint(tombstone.made.store)
    ran = tombstone.cli("witness", OWNED, *lock, "--format", "json")
    (witness,) = json.loads(ran.out)["report"]["witnesses"]
    assert witness["record"]["lease"] == OWNED
    tombstone.double.assert_only_gets()
    assert fingerprint(tombstone.made.store) == before
