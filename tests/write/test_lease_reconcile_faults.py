"""`lease reconcile` where the daemon answers as no engine can be made to; and the order of what is done."""

import pytest
from msgspec.structs import replace

from symbi_recover.core.errors import RefusedError, StaleError, UnexaminedError
from symbi_recover.read.verify.container_processes import HostProcesses
from symbi_recover.write import reconcile, supervisor
from symbi_recover.write.supervisor import supervisor_lock
from tests.crash.drivers.lease import found
from tests.crash.scenarios.lease import GONE
from tests.support.daemon_behaviours import AS_USUAL, Answer, HalfThenClose, Silent, failure
from tests.support.helper_double import helper_double
from tests.support.writer import lease as writer
from tests.write.lease_rig import OWNED, Reconcile, rig

NAME = f"symbi-{OWNED}"
QUICK = ("--timeout", "0.4")


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setattr("symbi_recover.read.verify.lease_check.sees_whole_host", lambda _: False)
    monkeypatch.setattr(reconcile, "_GONE_SECONDS", 0.1)
    with rig(Reconcile(), tmp_path, monkeypatch) as made:
        yield made


def go(world, code, *options):
    return world.document("reconcile", "--confirm", world.made.confirm, *options, code=code)


def items(document):
    return {one["lease"]: one for one in document["report"]["items"]}


def test_the_container_is_removed_by_its_full_id_with_volumes_and_the_record_goes_last(world):
    container = world.played.find(NAME)
    seen = []

    def look(_):
        seen.append(world.scenario.records(world.made))
        return AS_USUAL

    world.double.on("DELETE", "*", look)
    done = go(world, 0)
    assert {one["outcome"] for one in items(done).values()} == {"done"}
    (deleted,) = world.double.asked("DELETE")
    assert deleted.path == f"/containers/{container.id}"
    assert (deleted.value("v"), deleted.value("force")) == ("True", "True")
    assert OWNED in seen[0]
    assert world.scenario.records(world.made) == []


@pytest.mark.parametrize(
    "fault", [failure(500), failure(409, "in use"), Silent(), HalfThenClose(failure(500)), Answer(b"<")]
)
def test_a_removal_that_fails_keeps_its_record_and_does_not_stop_the_others(world, fault):
    world.double.on("DELETE", "*", fault)
    done = go(world, 4, *QUICK)
    assert items(done)[OWNED]["outcome"] == "failed"
    assert items(done)[GONE]["outcome"] == "done"
    assert world.scenario.records(world.made) == [OWNED]
    world.double._rules.clear()
    assert go(world, 0)
    assert world.scenario.records(world.made) == []


def test_a_removal_that_is_said_and_not_done_is_not_believed(world):
    world.double.on("DELETE", "*", Answer(None, 204))
    done = go(world, 4)
    assert "removal_unconfirmed" in {one["code"] for one in items(done)[OWNED]["findings"]}
    assert OWNED in world.scenario.records(world.made)


def test_a_daemon_that_answers_about_another_container_removes_nothing(world):
    stranger = world.played.add("stranger", {"ai.symbiont.lease": "x"})
    answer = {"Id": stranger.id, "Name": f"/{NAME}", "Config": {"Labels": {}}, "State": {"Status": "created"}}
    world.double.on("GET", "/containers/*/json", Answer(answer))
    plan = world.document("reconcile", code=2)
    assert {one["action"] for one in plan["report"]["items"]} == {"leave"}
    assert world.cli("reconcile", "--confirm", world.made.confirm).rc == 4
    assert not world.double.asked("DELETE")


@pytest.mark.parametrize("status", ["removing", "strange"])
def test_only_known_states_are_removed(world, status, monkeypatch):
    world.played.find(NAME).status = status
    plan = world.document("reconcile", code=2)
    action = "leave" if status == "strange" else "remove_container"
    assert items(plan)[OWNED]["action"] == action


def test_names_that_begin_alike_are_told_apart(world):
    world.played.containers.clear()
    for name in (f"{NAME}-old", f"x-{NAME}", NAME[:-1]):
        world.played.add(name, {"other": OWNED})
    plan = world.document("reconcile", code=2)
    assert items(plan)[OWNED]["code"] == "container_absent"


def test_an_engine_whose_word_contradicts_the_host_is_not_followed(world, monkeypatch):
    monkeypatch.setattr("symbi_recover.read.verify.lease_check.sees_whole_host", lambda _: True)
    container = world.played.find(NAME)
    container.status, container.pid = "running", 4_194_000
    plan = world.document("reconcile", code=2)
    assert items(plan)[OWNED]["code"] == "engine_contradiction"


@pytest.mark.parametrize("status", ["exited", None])
def test_work_that_lives_on_this_host_keeps_its_record_whatever_the_daemon_says(world, status, monkeypatch):
    """State lost over a restart of the daemon (F-124): `exited`, or not known at all."""
    monkeypatch.setattr("symbi_recover.read.verify.lease_check.sees_whole_host", lambda _: True)
    monkeypatch.setattr(HostProcesses, "_living", lambda _, wanted: [77] if wanted == container_id else [])
    container_id = "a" * 64
    lease = GONE
    if status is not None:
        container = world.played.find(NAME)
        container.status, container_id, lease = status, container.id, OWNED
    item = items(world.document("reconcile", code=2))[lease]
    assert (item["action"], item["code"]) == ("leave", "engine_contradiction")
    confirmed = world.cli("reconcile", lease, "--confirm", world.made.confirm)
    assert confirmed.rc == 4
    assert lease in world.scenario.records(world.made)


def test_a_404_of_something_that_is_no_engine_proves_nothing(world, monkeypatch):
    def proxied(path, owner_pid, *_, **__):
        return replace(
            found(path, owner_pid), code="endpoint_proxied", reason="process 9 listens, which is 'socat'"
        )

    monkeypatch.setattr("symbi_recover.read.verify.lease_check.find_engine", proxied)
    plan = items(world.document("reconcile", code=2))
    assert (plan[GONE]["action"], plan[GONE]["code"]) == ("leave", "endpoint_proxied")
    assert plan[OWNED]["action"] == "remove_container"


def test_a_folder_that_became_a_link_after_the_record_may_have_led_elsewhere(world):
    folder = world.made.socket_folder / "d"
    folder.mkdir()
    value = writer.record(GONE, writer.created("a" * 64))
    value["docker_environment"] = {"DOCKER_HOST": f"unix://{folder}/s"}
    writer.write_record(world.made.store, value)
    folder.rmdir()
    folder.symlink_to(world.made.socket_folder)
    item = items(world.document("reconcile", code=2))[GONE]
    assert (item["action"], item["code"]) == ("leave", "endpoint_link")
    folder.unlink()


def test_a_removal_that_was_begun_is_not_taken_for_done_at_another_data_root(world):
    world.double.on("DELETE", "*", failure(500))
    assert items(go(world, 4))[OWNED]["outcome"] == "failed"
    world.double._rules.clear()
    world.played.containers.clear()
    world.played.info["DockerRootDir"] = "/mnt/other"
    (item,) = [one for one in go(world, 4)["report"]["items"] if one["lease"] == OWNED]
    assert (item["code"], item["outcome"]) == ("container_absent", "failed")
    assert OWNED in world.scenario.records(world.made)


def test_a_store_that_cannot_be_written_to_loses_no_container(world, monkeypatch):
    monkeypatch.setattr("symbi_recover.write.records.os.access", lambda *_, **__: False)
    assert world.document("reconcile", "--confirm", world.made.confirm, code=1)["code"] == "write_failed"
    world.double.assert_only_gets()


def test_only_the_recorded_environment_decides_where_to_ask(world):
    plan = world.document(
        "reconcile",
        code=2,
        env={"DOCKER_HOST": "unix:///elsewhere", "DOCKER_CONTEXT": "x", "HOME": "/elsewhere"},
    )
    assert items(plan)[OWNED]["endpoint"]["address"] == world.double.socket_path


def test_a_container_that_is_gone_behind_a_young_link_proves_nothing(world, tmp_path):
    link = world.made.socket_folder / "l"
    link.symlink_to(world.double.socket_path)
    value = writer.record(GONE, writer.created("a" * 64))
    value["docker_environment"] = {"DOCKER_HOST": f"unix://{link}"}
    writer.write_record(world.made.store, value)
    plan = world.document("reconcile", code=2)
    assert (items(plan)[GONE]["action"], items(plan)[GONE]["code"]) == ("leave", "endpoint_link")


def test_a_removal_that_was_begun_is_not_taken_for_done_behind_a_link(world):
    """A link may lead to another engine by now, where the container was never seen."""
    link = world.made.socket_folder / "l"
    link.symlink_to(world.double.socket_path)
    environment = {"DOCKER_HOST": f"unix://{link}"}
    value = writer.record(OWNED, writer.uncertain(), docker_environment=environment)
    writer.write_record(world.made.store, value)
    confirm = world.document("reconcile", OWNED, code=2)["report"]["plan_hash"]
    again = ("reconcile", OWNED, "--confirm", confirm)
    world.double.on("DELETE", "*", failure(500))
    assert items(world.document(*again, code=4))[OWNED]["outcome"] == "failed"
    world.played.containers.clear()
    (item,) = world.document(*again, code=4)["report"]["items"]
    assert (item["code"], item["outcome"]) == ("container_absent", "failed")
    assert OWNED in world.scenario.records(world.made)


def test_the_lock_is_held_from_before_the_first_read_to_after_the_last_sync(world, monkeypatch):
    held = []
    real = reconcile.read_store

    def read(path, **how):
        with pytest.raises(StaleError, match="lock"), supervisor_lock(path):
            pass
        held.append(True)
        return real(path, **how)

    monkeypatch.setattr(reconcile, "read_store", read)
    go(world, 0)
    assert held
    with supervisor_lock(str(world.made.store)) as free:
        free.check()


def test_the_lock_is_refused_when_missing_replaced_open_or_held(world, monkeypatch):
    store, lock = world.made.store, world.made.store / "supervisor.lock"
    with helper_double(store), pytest.raises(StaleError) as running, supervisor_lock(str(store)):
        pass
    assert running.value.code == "supervisor_running"
    assert "symbi-workers-" in running.value.hint
    with supervisor_lock(str(store)) as held:
        lock.rename(store / "old")
        lock.touch(0o600)
        with pytest.raises(StaleError) as replaced:
            held.check()
        assert replaced.value.code == "lock_replaced"
    lock.chmod(0o644)
    with pytest.raises(StaleError) as unsafe, supervisor_lock(str(store)):
        pass
    assert (unsafe.value.code, unsafe.value.path) == ("lock_unsafe", str(lock))
    assert "mode 0644" in unsafe.value.message
    lock.unlink()
    lock.symlink_to("/dev/null")
    with pytest.raises(StaleError) as link, supervisor_lock(str(store)):
        pass
    assert (link.value.code, link.value.path) == ("lock_unsafe", str(lock))
    lock.unlink()
    with pytest.raises(StaleError) as missing, supervisor_lock(str(store)):
        pass
    assert missing.value.code == "lock_missing"
    assert not lock.exists()


def test_a_lock_file_that_cannot_be_opened_is_uncertain_and_named_in_full(world, monkeypatch):
    real = supervisor.os.open

    def denied(path, *rest, **more):
        if path == "supervisor.lock":
            raise PermissionError(13, "Permission denied")
        return real(path, *rest, **more)

    monkeypatch.setattr(supervisor.os, "open", denied)
    store = world.made.store
    with pytest.raises(UnexaminedError, match="Permission denied") as caught, supervisor_lock(str(store)):
        pass
    assert (caught.value.code, caught.value.path) == ("lock_uncertain", f"{store}/supervisor.lock")


def test_a_lock_that_the_file_system_cannot_give_is_uncertain(world, monkeypatch):
    def refuse(_, path):
        raise RefusedError("lock_uncertain", "No locks available (os error 37)", path=path)

    monkeypatch.setattr(supervisor, "try_lock", refuse)
    assert b"lock_uncertain" in world.cli("reconcile", "--confirm", world.made.confirm).err
    assert len(world.scenario.records(world.made)) == 2


def test_without_a_known_local_file_system_nothing_is_done(world, monkeypatch):
    monkeypatch.setattr(reconcile, "is_local", lambda _: "its file system is of type nfs4")
    ran = world.cli("reconcile", "--confirm", world.made.confirm)
    assert ran.rc == 4
    assert b"state_dir_not_local" in ran.err
    assert len(world.scenario.records(world.made)) == 2


def test_a_plan_asks_nothing_but_get_takes_no_lock_and_writes_nothing(world):
    before = sorted(path.name for path in world.made.home.rglob("*"))
    with helper_double(world.made.store):
        world.document("reconcile", code=2)
    world.double.assert_only_gets()
    assert sorted(path.name for path in world.made.home.rglob("*")) == before
