"""`lease retire` where the daemon answers as no engine can be made to: the record stays, and what was made is accounted for."""

import hashlib
import json
import os
import socket
from pathlib import Path

import pytest

from symbi_recover.core.errors import RefusedError, UnexaminedError
from symbi_recover.core.fences import FenceNote
from symbi_recover.wire.retirement import encode
from symbi_recover.write import supervisor
from symbi_recover.write.receipts import Receipts
from tests.support.daemon_behaviours import (
    AS_USUAL,
    Answer,
    Bytes,
    Dripping,
    HalfThenClose,
    HeadersOnly,
    Huge,
    Silent,
    WrongLength,
    failure,
)
from tests.support.helper_double import helper_double
from tests.write.lease_rig import OWNED, Retire, codes, rig

NAME = f"symbi-{OWNED}"
FAULTS = {
    "500": failure(500),
    "503": failure(503, "starting"),
    "silent": Silent(),
    "headers only": HeadersOnly(),
    "half": HalfThenClose(Answer({"status": "x" * 200})),
    "wrong length": WrongLength(Answer({"Id": "1"}), 7),
    "no json": Answer(b"<html>"),
    "not an object": Answer([1]),
    "nothing": Bytes(b""),
    "endless": Huge(None),
    "dripping": Dripping(Answer({"Id": "1"}), 0.05),
    "no id": Answer({}),
}
QUICK = ("--timeout", "0.4")


@pytest.fixture
def world(tmp_path, monkeypatch):
    with rig(Retire(), tmp_path, monkeypatch) as made:
        yield made


def assert_kept(world, document, *expected):
    assert set(expected) <= codes(document), codes(document)
    assert document["report"]["outcome"] == "refused"
    assert world.record.exists()
    world.scenario.sound(world.made)


def assert_heals(world):
    """Without the fault the same command retires, and leaves nothing."""
    world.double._rules.clear()
    assert world.retire(0)["report"]["outcome"] == "retired"
    assert not world.record.exists()
    left = world.left()
    assert (left["images"], left["notes"]) == ([], [])
    assert not [name for name in left["containers"] if name == NAME]


def test_without_faults_the_record_is_retired_in_the_right_order(world):
    assert world.retire(0)["report"]["decision"]["proofs"] == ["proof_reboot_witnessed"]
    changing = [
        f"{one.method} {one.path.rpartition('/')[0]}" for one in world.double.requests if one.method != "GET"
    ]
    assert changing == ["POST /images", "POST /containers", "DELETE /containers", "DELETE /images"]
    made = next(one for one in world.double.requests if one.path == "/containers/create")
    assert json.loads(made.body)["HostConfig"]["NetworkMode"] == "none"
    deleted = next(one for one in world.double.requests if one.method == "DELETE")
    assert deleted.value("force") in ("False", "0", "false")
    assert world.left()["containers"] == [f"{NAME}-old"]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("step", ["/images/create", "/containers/create"])
def test_a_fence_that_cannot_be_made_for_certain_keeps_the_record(world, step, fault):
    world.double.on("POST", step, FAULTS[fault])
    document = world.retire(4, *QUICK)
    assert_kept(world, document, "fence_failed")
    notes = world.left()["notes"]
    # Where nobody knows whether the daemon acted, the note stays, so that a late fence can be found.
    assert bool(notes) == (fault not in ("500", "503"))
    assert ("fence_left" in codes(document)) == bool(notes)
    assert_heals(world)


def test_no_fence_is_made_under_a_note_that_another_command_holds(world, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("symbi_recover.write.fence.lock_note", lambda *_: None)
        assert_kept(world, world.retire(4), "fence_failed")
    assert not world.double.asked("POST")
    assert_heals(world)


def test_beside_a_helper_the_file_system_is_still_named(world, monkeypatch):
    kind = "its file system is of type nfs4"
    monkeypatch.setattr("symbi_recover.write.retire.why_not_local", lambda _: kind)
    with helper_double(world.made.store):
        document = world.retire(4)
    assert_kept(world, document, "supervisor_running", "state_dir_not_local")
    assert kind in {one["message"] for one in document["report"]["decision"]["findings"]}


def bind(path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


LOCKS = {
    "missing": (lambda _: None, "lock_missing"),
    "open to others": (lambda path: path.touch(0o644), "lock_unsafe"),
    "a link": (lambda path: path.symlink_to("/dev/null"), "lock_unsafe"),
    "a dangling link": (lambda path: path.symlink_to("nowhere"), "lock_unsafe"),
    "a FIFO": (os.mkfifo, "lock_unsafe"),
    "a socket": (bind, "lock_unsafe"),
    "a folder": (os.mkdir, "lock_unsafe"),
}


@pytest.mark.parametrize("kind", LOCKS)
def test_whatever_is_wrong_with_the_lock_all_other_evidence_is_told(world, monkeypatch, kind):
    """Section 18.5: all codes are reported, not the first; and paths are whole."""
    monkeypatch.setattr("symbi_recover.write.retire.why_not_local", lambda _: "its file system is nfs4")
    world.double.on("GET", "/version", FAULTS["503"])
    lay, code = LOCKS[kind]
    lock = world.made.store / "supervisor.lock"
    lock.unlink()
    lay(lock)
    document = world.retire(3)
    told = [code, "state_dir_not_local", "engine_unavailable"]
    assert {*told, *(["store_blocked"] if code == "lock_unsafe" else [])} <= codes(document)
    assert document["report"]["outcome"] == "refused"
    assert world.record.exists()
    messages = {one["code"]: one["message"] for one in document["report"]["decision"]["findings"]}
    assert messages[code].startswith(f"{lock}: ")
    if code == "lock_unsafe":
        assert messages["store_blocked"] == f"{lock}: lock_unsafe"


def test_a_lock_file_that_cannot_be_opened_hides_no_other_evidence(world, monkeypatch):
    real = supervisor.OpenedFile.open
    lock = f"{world.made.store}/supervisor.lock"

    def denied(path, **more):
        if path == "supervisor.lock":
            raise UnexaminedError("file_unreadable", "Permission denied", path=path)
        return real(path, **more)

    monkeypatch.setattr(supervisor.OpenedFile, "open", denied)
    document = world.retire(4)
    assert_kept(world, document, "lock_uncertain")
    (found,) = [one for one in document["report"]["decision"]["findings"] if one["code"] == "lock_uncertain"]
    assert found["message"] == f"{lock}: supervisor.lock cannot be opened: Permission denied"


def test_a_lock_that_is_refused_is_told_where_the_record_is_gone_as_well(world):
    world.record.unlink()
    (world.made.store / "supervisor.lock").unlink()
    ran = world.cli("retire", OWNED, "--confirm", world.made.confirm)
    assert ran.rc == 3
    assert b"lease_unknown" in ran.err
    assert b"lock_missing" in ran.err


@pytest.mark.parametrize("fault", ["500", "503", "silent", "half", "no json", "nothing"])
@pytest.mark.parametrize("path", [f"/containers/{NAME}/json", "/containers/json", "/version", "/info"])
def test_a_daemon_that_cannot_be_asked_is_unavailable(world, path, fault):
    world.double.on("GET", path, FAULTS[fault])
    document = world.retire(3, *QUICK)
    assert_kept(world, document, "engine_unavailable")
    assert not world.double.asked("POST")
    assert_heals(world)


def test_a_reserved_name_is_a_creation_in_flight_and_the_quoted_id_is_not_acted_on(world):
    quoted = world.played.reserve(NAME)
    document = world.retire(4)
    assert_kept(world, document, "creation_in_flight")
    assert quoted in str(document)
    assert not [one for one in world.double.requests if one.method == "DELETE" and quoted in one.path]
    del world.played.reserved[NAME]
    assert_heals(world)


def test_a_conflict_that_quotes_no_id_or_a_visible_one_is_refused(world):
    world.double.on("POST", "/containers/create", failure(409, "Conflict. Something else."))
    assert_kept(world, world.retire(4), "fence_failed")
    world.double._rules.clear()
    other = world.played.add("other")
    said = f'Conflict. The container name "/{NAME}" is already in use by container "{other.id}".'
    world.double.on("POST", "/containers/create", failure(409, said))
    assert_kept(world, world.retire(4), "name_foreign")
    assert_heals(world)


def test_a_container_hidden_as_during_a_slow_create_keeps_the_record(world):
    world.played.add(NAME, {"ai.symbiont.lease": OWNED}, hidden_for=1000)
    assert_kept(world, world.retire(4), "creation_in_flight")
    world.played.containers[-1].hidden_for = 0
    assert_kept(world, world.retire(4), "container_present")


@pytest.mark.parametrize("status", ["running", "exited", "removing", "strange"])
def test_a_container_in_whatever_state_is_present(world, status):
    world.played.add(NAME, {"ai.symbiont.lease": OWNED}, status=status)
    assert_kept(world, world.retire(4), "container_present")


def test_a_container_that_comes_when_the_fence_goes_keeps_the_record(world):
    def late(_):
        world.played.reserved.pop(NAME, None)
        world.played.add("elsewhere", {"ai.symbiont.lease": OWNED})
        return AS_USUAL

    world.double.on("DELETE", "/images/*", late, AS_USUAL)
    document = world.retire(4)
    assert_kept(world, document, "late_container")
    assert document["report"]["receipt"].endswith(".receipt.json")


def test_a_fence_that_cannot_be_removed_keeps_the_record_and_is_found_by_fences(world):
    world.double.on("DELETE", "/containers/*", failure(500, "device busy"))
    document = world.retire(4)
    assert_kept(world, document, "fence_left")
    assert document["report"]["receipt"].endswith(".receipt.json")
    assert NAME in world.left()["containers"]
    world.double._rules.clear()
    plan = world.document("fences", code=2)["report"]
    world.document("fences", "--confirm", plan["plan_hash"], code=0)
    assert_heals(world)


def test_a_fence_that_somebody_removed_after_the_intent_is_broken(world, monkeypatch):
    """Between the last look at the fence and its removal a request may have come through."""
    real = Receipts.write_intent

    def write_intent(self, intent):
        world.played.containers[:] = [one for one in world.played.containers if one.name != NAME]
        return real(self, intent)

    with monkeypatch.context() as patch:
        patch.setattr(Receipts, "write_intent", write_intent)
        document = world.retire(4)
    assert_kept(world, document, "fence_broken")
    assert json.loads(Path(document["report"]["receipt"]).read_bytes())["payload"]["outcome"] == "refused"
    assert_heals(world)


def test_a_fence_that_is_left_when_a_run_fails_is_told_with_the_failure(world, monkeypatch):
    def full(*_):
        raise RefusedError("write_failed", "No space left on device")

    world.double.on("DELETE", "*", failure(500, "device busy"))
    with monkeypatch.context() as patch:
        patch.setattr(Receipts, "write_intent", full)
        failed = world.document("retire", OWNED, "--confirm", world.made.confirm, code=1)
    assert failed["code"] == "write_failed"
    assert "a fence is left (daemon_failed: status 500: device busy)" in failed["detail"]
    assert NAME in world.left()["containers"]
    world.double._rules.clear()
    assert_heals(world)


def test_left_overs_are_cleared_only_after_the_ledger_knows(world):
    world.double.on("DELETE", "*", failure(500, "device busy"))
    world.retire(4)
    world.double._rules.clear()
    world.double.on("GET", "/version", Answer({"Version": "28.2.2", "ApiVersion": "1.41", "Components": []}))
    known = []

    def look(_):
        known.append(world.acts()[-1].outcome)
        return AS_USUAL

    world.double.on("DELETE", "*", look)
    document = world.retire(4)
    assert "engine_unsupported" in codes(document)
    assert known == [None, None]
    assert [(one.command, one.outcome) for one in world.acts()] == [("lease retire", "refused")] * 2
    assert NAME not in world.left()["containers"]


def test_a_record_that_came_back_is_another_act_of_the_ledger(world, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("symbi_recover.write.retire_run.unlink_record", lambda *_: True)
        world.retire(0)
    world.retire(0)
    assert [one.outcome for one in world.acts()] == ["done", "done"]
    assert world.retire(0)["report"]["outcome"] == "already_retired"
    assert len(world.acts()) == 2


def test_a_listing_that_does_not_hold_the_record_is_no_proof_of_its_absence(world, monkeypatch):
    """A store of very many entries is not listed whole."""
    monkeypatch.setattr("symbi_recover.write.retire_run.unlink_record", fail_unlinking)
    world.document("retire", OWNED, "--confirm", world.made.confirm, code=1)
    monkeypatch.setattr("symbi_recover.read.verify.lease_store.StoreSnapshot.entry", lambda *_: None)
    monkeypatch.setattr("symbi_recover.core.leases.StoreReport.lease", lambda *_: None)
    ran = world.document("retire", OWNED, "--confirm", world.made.confirm, code=3)
    assert ran["code"] == "lease_unknown"
    assert world.record.exists()


def fail_unlinking(*_):
    raise RefusedError("write_failed", "the device is gone")


@pytest.mark.root
def test_a_store_that_cannot_be_written_to_is_refused_before_anything_is_made(world, monkeypatch):
    monkeypatch.setattr("symbi_recover.write.records.os.access", lambda *_, **__: False)
    ran = world.document("retire", OWNED, "--confirm", world.made.confirm, code=1)
    assert ran["code"] == "write_failed"
    world.double.assert_only_gets()


def test_fences_that_an_interrupted_run_began_to_clear_are_cleared_by_the_same_command(world, monkeypatch):
    world.double.on("DELETE", "*", failure(500, "device busy"))
    world.retire(4)
    world.double._rules.clear()
    plan = world.document("fences", code=2)["report"]["plan_hash"]
    again = ("fences", "--confirm", plan)
    world.double.on("DELETE", "/images/*", failure(500, "device busy"))
    assert world.document(*again, code=1)["report"]["fences"][0]["outcome"] == "failed"
    world.double._rules.clear()
    assert NAME not in world.left()["containers"]
    world.document(*again, code=0)
    assert (world.left()["images"], world.left()["notes"]) == ([], [])
    assert [one.outcome for one in world.acts() if one.command == "lease fences"] == ["failed", "done"]
    assert world.document(*again, code=0)["report"]["fences"] == []
    assert len([one for one in world.acts() if one.command == "lease fences"]) == 2


def test_a_note_without_a_fence_is_left_until_its_creation_is_out_of_the_question(world, monkeypatch):
    monkeypatch.setattr("symbi_recover.write.fence.FenceWork.remove", lambda self: self.release())
    world.double.on("POST", "/containers/create", Silent())
    world.document("retire", OWNED, "--confirm", world.made.confirm, *QUICK, code=4)
    monkeypatch.undo()
    world.double._rules.clear()
    world.played.images.clear()
    (note,) = world.left()["notes"]
    young = world.document("fences", code=2)["report"]
    assert [(one["code"], one["outcome"]) for one in young["fences"]] == [("fence_note_stale", "left")]
    path = world.made.home / "fences" / note
    old = FenceNote(**{**json.loads(path.read_bytes()), "at_ns": 1})
    path.write_bytes(encode(old))
    plan = world.document("fences", code=2)["report"]
    done = world.document("fences", "--confirm", plan["plan_hash"], code=0)
    assert "recorded in" in done["ledger"]
    assert world.left()["notes"] == []


def test_a_daemon_that_answers_about_another_container_breaks_the_fence(world):
    stranger = world.played.add("stranger")
    answer = {
        "Id": stranger.id,
        "Name": f"/{NAME}",
        "Created": None,
        "Config": {"Labels": {}},
        "State": {"Status": "created"},
    }
    world.double.on("GET", f"/containers/{NAME}/json", AS_USUAL, Answer(answer))
    document = world.retire(4)
    assert_kept(world, document, "fence_broken")


@pytest.mark.parametrize(
    ("version", "components"),
    [
        ("19.03.15", None),
        ("28.2.2", None),
        ("20.10.24", [{"Name": "Podman Engine", "Version": "4.3.1"}]),
        ("20.10.24", []),
        ("20.10.24", [{"Name": "Engine", "Version": "20.10.24"}, {"Name": "proxy", "Version": "1"}]),
    ],
)
def test_an_engine_on_which_the_facts_were_not_replayed_is_unsupported(world, version, components):
    world.played.version["Version"] = version
    if components is not None:
        world.played.version["Components"] = components
    assert_kept(world, world.retire(4), "engine_unsupported")
    assert not world.double.asked("POST")


@pytest.mark.parametrize(
    ("api", "minimum"), [("1.24", "1.12"), ("1.41", "1.12"), ("1.52", "1.24"), ("1.52", "1.44")]
)
def test_daemons_of_a_stated_range_of_versions_are_spoken_to(world, api, minimum):
    world.played.api, world.played.minimum = api, minimum
    world.played.version.update(ApiVersion=api, MinAPIVersion=minimum)
    assert world.retire(0)["report"]["outcome"] == "retired"


def test_a_daemon_of_no_known_version_is_unavailable(world):
    world.played.api, world.played.minimum = "1.60", "1.50"
    world.played.version.update(ApiVersion="1.60", MinAPIVersion="1.50")
    assert_kept(world, world.retire(3), "engine_unavailable")


def test_a_plan_and_a_witness_ask_nothing_but_get(world):
    world.document("retire", OWNED, code=2)
    world.document("witness", code=0)
    world.double.assert_only_gets()
    assert sorted(path.name for path in world.made.home.iterdir()) == [
        "ledger.jsonl",
        "operator.key",
        "operator.pub",
        "witnesses",
    ]
    (act,) = world.acts()
    assert (act.command, act.outcome) == ("lease witness", "done")
    (path, digest), *others = act.receipts.items()
    assert hashlib.sha256(Path(path).read_bytes()).hexdigest() == digest
    assert not others


def test_nothing_of_the_operator_s_own_docker_configuration_enters_the_fence(world, tmp_path):
    folder = tmp_path / "home" / ".docker"
    folder.mkdir(parents=True)
    proxies = {"default": {"httpProxy": "http://secret.example:3128"}}
    (folder / "config.json").write_text(json.dumps({"proxies": proxies, "currentContext": "elsewhere"}))
    env = {"HOME": str(tmp_path / "home"), "DOCKER_HOST": "unix:///elsewhere", "http_proxy": "http://other:1"}
    world.retire(0, env=env)
    made = next(one for one in world.double.requests if one.path == "/containers/create")
    assert b"example" not in made.body
    assert not json.loads(made.body).get("Env")


def test_nothing_is_left_open_between_questions(world):
    world.retire(0)
    world.double.wait_until_idle()
