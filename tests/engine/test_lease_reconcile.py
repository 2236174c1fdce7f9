"""`lease reconcile` against a real engine; in every scenario a wrong-labelled neighbour survives."""

import pytest

from tests.engine.world import LABEL, name_of, neighbour
from tests.support.engine_images import EMPTY
from tests.support.helper_double import helper_double

pytestmark = [pytest.mark.engine, pytest.mark.root]


def item(document, lease):
    return next(one for one in document["report"]["items"] if one["lease"] == lease)


def assert_left(store, lease, code, exit_code=2):
    """The record is left with this code, also when the operator consents to whatever there is."""
    before = store.digest(lease)
    plan = store.json("reconcile", code=exit_code)
    assert (item(plan, lease)["action"], item(plan, lease)["code"]) == ("leave", code)
    refused = store.cli("reconcile", "--confirm", plan["report"]["plan_hash"])
    assert refused.rc == 4
    assert store.cli("reconcile", "--confirm", before).rc == 4
    assert store.digest(lease) == before


@pytest.mark.parametrize("phase", ["created", "creating", "uncertain"])
def test_an_owned_container_is_removed_by_id_with_its_volumes_and_then_its_record(engine, store, phase):
    lease = store.add(2)
    made = engine.create(name_of(lease), {LABEL: lease}, Volumes={"/data": {}})
    store.add(2, phase, container=made if phase == "created" else None)
    other = neighbour(engine, lease)
    before = store.digest(lease)
    plan = store.json("reconcile", code=2)
    assert (item(plan, lease)["action"], item(plan, lease)["container_id"]) == ("remove_container", made)
    assert engine.inspect(made) is not None
    assert store.digest(lease) == before
    done = store.json("reconcile", "--confirm", plan["report"]["plan_hash"], code=0)
    assert item(done, lease)["outcome"] == "done"
    assert store.records() == []
    assert engine.names() == [f"{name_of(lease)}-old"]
    assert engine.inspect(other) is not None
    assert engine.inventory()["volumes"] == []


def test_one_record_is_agreed_to_by_its_own_digest_and_the_others_stay(engine, store):
    leases = [store.add(number) for number in (1, 2)]
    ids = [engine.create(name_of(lease), {LABEL: lease}) for lease in leases]
    done = store.json("reconcile", "--confirm", store.digest(leases[0]), code=2)
    assert [item(done, lease)["outcome"] for lease in leases] == ["done", "left"]
    assert store.records() == [leases[1]]
    assert [engine.inspect(one) is None for one in ids] == [True, False]


def test_a_created_record_whose_container_is_gone_is_retired(engine, store):
    lease = store.add(container="a" * 64)
    neighbour(engine, lease)
    plan = store.json("reconcile", code=2)
    assert item(plan, lease)["action"] == "retire_record"
    store.json("reconcile", "--confirm", plan["report"]["plan_hash"], code=0)
    assert store.records() == []
    assert engine.names() == [f"{name_of(lease)}-old"]


def test_a_tombstone_whose_container_is_absent_is_left(engine, store):
    lease = store.add()
    neighbour(engine, lease)
    assert_left(store, lease, "container_absent")
    assert len(engine.names()) == 1


def test_a_foreign_label_or_none_under_the_name_is_left(engine, store):
    lease, other = store.add(1), store.add(2)
    engine.create(name_of(lease), {LABEL: other})
    engine.create(name_of(other), {})
    plan = store.json("reconcile", code=2)
    assert {one["code"] for one in plan["report"]["items"]} <= {"name_foreign", "container_several"}
    assert store.cli("reconcile", "--confirm", plan["report"]["plan_hash"]).rc == 4
    assert len(engine.names()) == 2
    assert len(store.records()) == 2


def test_a_renamed_container_of_a_tombstone_is_left_and_one_with_the_recorded_id_is_not(engine, store):
    lease = store.add(1)
    made = engine.create("renamed", {LABEL: lease})
    assert_left(store, lease, "container_renamed")
    store.add(1, container=made)
    plan = store.json("reconcile", code=2)
    store.json("reconcile", "--confirm", plan["report"]["plan_hash"], code=0)
    assert (store.records(), engine.names()) == ([], [])


def test_a_container_that_inherits_the_label_from_its_image_is_left(engine, store):
    lease = store.add()
    engine.import_image("labelled:t", {LABEL: lease})
    engine.create("stranger", {}, "labelled:t")
    assert_left(store, lease, "container_renamed")
    assert engine.names() == ["stranger"]


def test_a_container_named_with_the_recorded_id_is_left(engine, store):
    recorded = "ab" * 32
    lease = store.add(container=recorded)
    engine.create(recorded, {LABEL: lease})
    assert_left(store, lease, "container_mismatch")
    assert engine.names() == [recorded]


@pytest.mark.parametrize("state", ["running", "paused", "exited"])
def test_a_container_in_any_known_state_is_removed(engine, store, state):
    lease = store.add()
    made = engine.put(state, name_of(lease), {LABEL: lease})
    other = neighbour(engine, lease)
    store.json("reconcile", "--confirm", store.digest(lease), code=0)
    assert (store.records(), engine.inspect(made) is None) == ([], True)
    assert engine.inspect(other) is not None


def test_a_container_that_cannot_be_removed_keeps_its_record(engine, store):
    lease = store.add()
    made = engine.put("dead", name_of(lease), {LABEL: lease})
    failed = store.json("reconcile", "--confirm", store.digest(lease), code=4)
    assert item(failed, lease)["outcome"] == "failed"
    assert store.records() == [lease]
    assert engine.inspect(made) is not None
    engine.unpin()
    store.json("reconcile", "--confirm", store.digest(lease), code=0)
    assert store.records() == []


def test_a_container_that_came_after_the_review_is_not_removed(engine, store):
    lease = store.add()
    made = engine.create(name_of(lease), {LABEL: lease})
    plan = store.json("reconcile", code=2)["report"]["plan_hash"]
    engine.demand(204, "DELETE", f"/containers/{made}")
    again = engine.create(name_of(lease), {LABEL: lease})
    assert store.cli("reconcile", "--confirm", plan).rc == 4
    assert engine.inspect(again) is not None
    assert store.records() == [lease]


def test_an_interrupted_run_is_ended_by_the_same_command(engine, store, monkeypatch):
    from symbi_recover.write import reconcile

    lease, other = store.add(1), store.add(2)
    made = engine.create(name_of(lease), {LABEL: lease})
    second = engine.create(name_of(other), {LABEL: other})
    plan = store.json("reconcile", code=2)["report"]["plan_hash"]

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(reconcile, "unlink_record", stop)
        assert store.cli("reconcile", "--confirm", plan).rc == 130
    assert engine.inspect(made) is None or engine.inspect(second) is None
    assert len(store.records()) == 2
    removed = [
        one for one, container in ((lease, made), (other, second)) if engine.inspect(container) is not None
    ]
    items = store.json("reconcile", "--confirm", plan, code=0)["report"]["items"]
    told = {one["lease"]: {found["code"] for found in one["findings"]} for one in items}
    assert [one for one in told if "container_removed" in told[one]] == removed
    assert all("record_retired" in codes for codes in told.values())
    assert (store.records(), engine.names()) == ([], [])
    store.json("reconcile", "--confirm", plan, code=0)


def test_a_running_helper_is_not_touched_and_how_to_stop_it_is_said(engine, store):
    lease = store.add()
    made = engine.create(name_of(lease), {LABEL: lease})
    with helper_double(store.path):
        plan = store.json("reconcile", code=2)
        assert [one["code"] for one in plan["report"]["findings"]] == ["supervisor_running"]
        refused = store.cli("reconcile", "--confirm", store.digest(lease))
        assert refused.rc == 4
        assert b"symbi-workers-" in refused.err
        assert store.records() == [lease]
        assert engine.inspect(made) is not None


def test_a_frozen_daemon_is_not_waited_for_without_end_and_a_missing_one_is_named(engine, store):
    lease = store.add()
    engine.freeze()
    slow = store.json("reconcile", "--timeout", "0.5", code=3)
    assert item(slow, lease)["code"] == "daemon_slow"
    engine.kill()
    away = store.json("reconcile", code=3)
    assert item(away, lease)["code"] == "daemon_away"
    assert store.records() == [lease]


def test_a_blocked_store_is_left_alone(engine, store):
    lease = store.add()
    made = engine.create(name_of(lease), {LABEL: lease})
    (store.path / "notes.json").write_bytes(EMPTY)
    assert store.cli("reconcile").rc == 1
    assert store.cli("reconcile", "--confirm", store.digest(lease)).rc == 4
    assert engine.inspect(made) is not None
    assert store.record(lease).exists()
