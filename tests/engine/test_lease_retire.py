"""`lease retire` and `lease witness` against a real engine: the right row, and the record there unless proven.

In every scenario a wrong-labelled neighbour survives, and no fence is left.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest

from symbi_recover.read.evidence.clock import BirthTime, StartTime
from symbi_recover.write import fence as fences
from tests.engine.world import LABEL, Store, name_of, neighbour
from tests.support.engine import EMPTY_IMAGE, listening
from tests.support.engine_host import EngineHost
from tests.support.helper_double import helper_double
from tests.support.unix_http import EventFollower, HalfRequest, connect, leave_request
from tests.support.writer import lease as writer

pytestmark = [pytest.mark.engine, pytest.mark.root]
HOUR = 3_600_000_000_000
FENCE = "symbi-recover.fence"


@pytest.fixture(autouse=True)
def plain_client():
    if shutil.which("docker") is None:
        pytest.skip("not run: no docker client is installed")


@pytest.fixture
def lease(engine, store):
    """A tombstone, with a neighbour that looks alike; afterwards the neighbour lives and no fence is left."""
    made = store.add()
    other = neighbour(engine, made)
    yield made
    engine.thaw()
    if not engine.running:
        engine.start()
    assert engine.inspect(other) is not None
    labels = [engine.inspect(name)["Config"]["Labels"] for name in engine.names()]
    assert not any(FENCE in one for one in labels)
    assert not any("fence" in tag for tag in engine.inventory()["images"])
    assert list((store.home / "fences").glob("*.json")) == []


def codes(document):
    report = document["report"]
    decided = report["decision"]["findings"] if report["decision"] else []
    return {one["code"] for one in (*decided, *report["findings"])}


def told(document):
    report = document["report"]
    decided = report["decision"]["findings"] if report["decision"] else []
    return [f"{one['code']}: {one['message']}" for one in (*decided, *report["findings"])]


def retire(store, lease, code, *options):
    return store.json("retire", lease, "--confirm", store.digest(lease), *options, code=code)


def assert_kept(store, lease, *expected, code=4, options=()):
    """Refused with these codes, the record is there with the same bytes, and the plan says as much."""
    before = store.digest(lease)
    document = retire(store, lease, code, *options)
    assert set(expected) <= codes(document), told(document)
    assert document["report"]["outcome"] == "refused"
    assert store.digest(lease) == before
    return document


def assert_retired(store, lease, *proofs, options=()):
    ran = store.cli("retire", lease, "--confirm", store.digest(lease), *options, "--format", "json")
    document = json.loads(ran.out)
    assert ran.rc == 0, told(document)
    assert tuple(document["report"]["decision"]["proofs"]) == proofs
    assert lease not in store.records()
    assert len(list((store.home / "retirements").glob("*.receipt.json"))) == 1
    return document


def while_fenced(monkeypatch, act):
    """Do something once, while the fence stands."""
    real = fences.FenceWork.make

    def make(self):
        made = real(self)
        act()
        return made

    monkeypatch.setattr(fences.FenceWork, "make", make)


def after_fence(monkeypatch, act):
    """Do something once, right after the fence was taken away."""
    real = fences.FenceWork.remove

    def remove(self):
        there = self._lock is not None
        why = real(self)
        if there:
            act()
        return why

    monkeypatch.setattr(fences.FenceWork, "remove", remove)


@pytest.mark.parametrize("phase", ["creating", "uncertain"])
def test_t3_a_quiet_engine_retires_a_tombstone(engine, store, host, lease, phase):
    store.add(phase=phase)
    plan = store.json("retire", lease, code=2)
    assert plan["report"]["confirm"] == store.digest(lease)
    assert (engine.names(), list(store.home.iterdir())) == (
        [f"{name_of(lease)}-old"],
        [store.home / "operator.key"],
    )
    assert_retired(store, lease, "proof_engine_quiescent")


def test_a_created_and_gone_record_is_for_the_helper(engine, store, host, lease):
    store.add(container="a" * 64)
    assert_kept(store, lease, "phase_not_retirable")


@pytest.mark.parametrize("state", ["created", "paused", "dead"])
def test_t16_a_container_of_the_lease_is_for_the_helper(engine, store, host, lease, state):
    made = engine.put(state, name_of(lease), {LABEL: lease})
    assert_kept(store, lease, "container_present")
    assert engine.inspect(made) is not None


def test_a_taken_name_and_a_renamed_container_are_refused(engine, store, host, lease):
    foreign = engine.create(name_of(lease), {LABEL: writer.lease_uid(77)})
    assert_kept(store, lease, "name_foreign")
    engine.demand(204, "DELETE", f"/containers/{foreign}")
    engine.create("renamed", {LABEL: lease})
    assert_kept(store, lease, "container_renamed")


def test_a_label_inherited_from_an_image_is_refused(engine, store, host, lease):
    engine.import_image("labelled:t", {LABEL: lease})
    engine.create("stranger", {}, "labelled:t")
    assert_kept(store, lease, "container_renamed")


def test_a_creation_past_its_name_reservation_is_seen_by_the_fence(engine, store, host, lease):
    with engine.slow_create(name_of(lease), {LABEL: lease}) as gate:
        assert_kept(store, lease, "creation_in_flight")
        gate.release()
        made = engine.wait_for(name_of(lease))
    assert_kept(store, lease, "container_present")
    store.json("reconcile", "--confirm", store.digest(lease), code=0)
    assert engine.inspect(made) is None


def test_t3_a_client_stalled_in_mid_body_is_seen_by_the_census(engine, store, host, lease):
    engine.need_image(EMPTY_IMAGE)
    request = engine.create_request(name_of(lease), {LABEL: lease})
    with HalfRequest(engine.socket_path, *request) as half:
        assert_kept(store, lease, "census_foreign_connection", "flush_missing")
        assert half.finish().status == 201
    assert_kept(store, lease, "container_present")


def test_t3_a_foreign_event_follower_keeps_the_engine_from_being_quiet(engine, store, host, lease):
    with EventFollower(engine.socket_path):
        document = assert_kept(store, lease, "census_foreign_connection")
    assert document["report"]["seen"]["quiescence"]["connections"] == 1
    assert_retired(store, lease, "proof_engine_quiescent")


def test_a_container_that_comes_after_the_fence_keeps_its_record(engine, store, host, lease, monkeypatch):
    with monkeypatch.context() as patch:
        after_fence(patch, lambda: engine.create(name_of(lease), {LABEL: lease}))
        assert_kept(store, lease, "late_container")
    receipts = list((store.home / "retirements").glob("*.receipt.json"))
    assert len(receipts) == 1
    assert b'"outcome":"late_container"' in receipts[0].read_bytes()
    store.json("reconcile", "--confirm", store.digest(lease), code=0)


def test_a_connection_that_comes_after_the_fence_keeps_the_record(engine, store, host, lease, monkeypatch):
    held = []
    with monkeypatch.context() as patch:
        after_fence(patch, lambda: held.append(connect(engine.socket_path)))
        try:
            assert_kept(store, lease, "census_foreign_connection")
        finally:
            held[0].close()


def test_an_engine_that_restarts_after_the_fence_is_another_one(engine, store, host, lease, monkeypatch):
    with monkeypatch.context() as patch:
        after_fence(patch, engine.restart)
        assert_kept(store, lease, "engine_changed")


def test_a_request_queued_at_a_stopped_engine_is_not_lost(engine, store, host, lease):
    engine.need_image(EMPTY_IMAGE)
    engine.freeze()
    leave_request(engine.socket_path, *engine.create_request(name_of(lease), {LABEL: lease}))
    assert_kept(store, lease, "engine_unavailable", code=3, options=("--timeout", "0.3"))
    engine.thaw()
    engine.wait_for(name_of(lease))
    assert_kept(store, lease, "container_present")


def test_an_engine_that_is_away_or_slow_retires_nothing(engine, store, host, lease):
    engine.freeze()
    document = assert_kept(store, lease, "engine_unavailable", code=3, options=("--timeout", "0.3"))
    assert "daemon_slow" in str(document["report"]["decision"])
    engine.kill()
    document = assert_kept(store, lease, "engine_unavailable", code=3)
    assert "daemon_away" in str(document["report"]["decision"])


def test_t2_a_restart_after_a_witness_under_the_lock_retires_a_busy_engine(engine, store, host, lease):
    store.json("witness", lease, "--lock", code=0)
    engine.restart()
    with EventFollower(engine.socket_path):
        document = assert_retired(store, lease, "proof_engine_replaced")
    assert document["report"]["seen"]["quiescence"] is None


def test_t2_a_witness_notes_the_engine_that_runs_after_its_scan(engine, store, host, lease, monkeypatch):
    """One noted before may have handed its place, and the last client's request, to another meanwhile."""
    wait, restarted = type(host).pause, []

    def pause(self, seconds):
        if not restarted:
            engine.restart()
            restarted.append(engine.pid)
        wait(self, seconds)

    monkeypatch.setattr(type(host), "pause", pause)
    document = store.json("witness", lease, "--lock", code=0)
    assert [one["engine"]["pid"] for one in document["report"]["witnesses"]] == restarted == [engine.pid]


def test_t2_a_restart_after_a_witness_without_the_lock_flushes_nothing(engine, store, host, lease):
    store.json("witness", lease, code=0)
    engine.restart()
    with EventFollower(engine.socket_path):
        assert_kept(store, lease, "flush_missing", "census_foreign_connection")


def test_t2_a_record_that_changed_since_its_witness_needs_another_proof(engine, store, host, lease):
    store.json("witness", lease, "--lock", code=0)
    store.record(lease).unlink()
    store.add()
    engine.restart()
    with EventFollower(engine.socket_path):
        assert_kept(store, lease, "flush_missing")


def test_t1_a_witnessed_reboot_retires_without_scan_and_census(engine, store, host, lease):
    store.json("witness", code=0)
    host.boot = "5a3d1c7e-9b24-4f60-8e1d-6c0b2a4f7d93"
    host.faults = ("not run as root",)
    with EventFollower(engine.socket_path):
        assert_retired(store, lease, "proof_reboot_witnessed")


def test_t1_an_engine_with_another_data_root_after_the_reboot_is_refused(engine, store, host, lease):
    host.birth = BirthTime(1)
    store.json("witness", code=0)
    host.boot = "5a3d1c7e-9b24-4f60-8e1d-6c0b2a4f7d93"
    host.faults = ("not run as root",)
    host.birth = BirthTime(2)
    assert_kept(store, lease, "client_scan_unreliable", "flush_missing")


@pytest.mark.parametrize("what", ["boot", "engine"])
def test_t4_and_t5_the_clock_counts_only_if_it_is_accepted(engine, store, host, lease, what):
    written = store.record(lease).stat().st_ctime_ns
    later = StartTime(written + HOUR, written + HOUR + 1)
    setattr(host, f"{what}_start", later)
    host.now = later.latest_ns + HOUR
    # The change time of a record cannot be set, so the host's clock runs ahead instead.
    with EventFollower(engine.socket_path):
        assert_kept(store, lease, "wall_clock_only")
        proof = "proof_reboot_by_clock" if what == "boot" else "proof_engine_replaced_by_clock"
        assert_retired(store, lease, proof, options=("--accept-wall-clock",))


def test_t6_a_socket_activated_engine_is_retired_by_census_and_not_by_restart(
    engine_maker, tmp_path, monkeypatch, tmp_path_factory
):
    with listening(tmp_path_factory.mktemp("l") / "s") as listener:
        engine = engine_maker(listener=listener)
        engine.start()
        host = EngineHost(lambda: engine.pid)
        host.init = os.getpid()
        monkeypatch.setattr("symbi_recover.cli.writing.lease_retire.the_host", lambda: host)
        store = Store(tmp_path, engine.socket_path)
        lease = store.add()
        store.json("witness", lease, "--lock", code=0)
        engine.restart()
        with EventFollower(engine.socket_path):
            assert_kept(store, lease, "flush_missing", "census_foreign_connection")
        host.engine_start = StartTime(store.record(lease).stat().st_ctime_ns + HOUR, 2**62)
        host.now = host.engine_start.earliest_ns + HOUR
        with EventFollower(engine.socket_path):
            assert_kept(store, lease, "engine_socket_activated", options=("--accept-wall-clock",))
        assert_retired(store, lease, "proof_engine_quiescent")
        engine.need_image(EMPTY_IMAGE)
        engine.stop()
        again = store.add(2)
        leave_request(engine.socket_path, *engine.create_request(name_of(again), {LABEL: again}))
        document = assert_kept(store, again, "engine_unavailable", code=3, options=("--timeout", "0.3"))
        assert "a question could start one" in str(document)
        engine.start()
        engine.wait_for(name_of(again))
        assert_kept(store, again, "container_present")


def test_an_engine_in_another_network_namespace_is_found_and_its_connections_counted(
    engine_maker, tmp_path, monkeypatch
):
    engine = engine_maker(own_network=True)
    engine.start()
    assert os.readlink(f"/proc/{engine.pid}/ns/net") != os.readlink("/proc/self/ns/net")
    host = EngineHost(lambda: engine.pid)
    monkeypatch.setattr("symbi_recover.cli.writing.lease_retire.the_host", lambda: host)
    store = Store(tmp_path, engine.socket_path)
    lease = store.add()
    engine.need_image(EMPTY_IMAGE)
    with HalfRequest(engine.socket_path, *engine.create_request(name_of(lease), {LABEL: lease})):
        assert_kept(store, lease, "census_foreign_connection")
    engine.freeze()
    leave_request(engine.socket_path, *engine.create_request(name_of(lease), {LABEL: lease}))
    assert_kept(store, lease, "engine_unavailable", code=3, options=("--timeout", "0.3"))
    engine.thaw()
    engine.wait_for(name_of(lease))
    assert_kept(store, lease, "container_present")
    engine.demand(204, "DELETE", f"/containers/{name_of(lease)}")
    assert_retired(store, lease, "proof_engine_quiescent")


def test_a_prune_while_the_fence_stands_breaks_it(engine, store, host, lease, monkeypatch):
    def prune():
        for name in engine.names():
            if name == name_of(lease):
                engine.demand(204, "DELETE", f"/containers/{name}")

    with monkeypatch.context() as patch:
        while_fenced(patch, prune)
        assert_kept(store, lease, "fence_broken")
    assert_retired(store, lease, "proof_engine_quiescent")


def test_an_engine_that_restarts_while_the_fence_stands_is_another_one(
    engine, store, host, lease, monkeypatch
):
    with monkeypatch.context() as patch:
        while_fenced(patch, engine.restart)
        assert_kept(store, lease, "engine_changed")
    assert_retired(store, lease, "proof_engine_quiescent")


def test_a_boot_that_changes_while_the_fence_stands_is_refused(engine, store, host, lease, monkeypatch):
    while_fenced(monkeypatch, lambda: setattr(host, "boot", "5a3d1c7e-9b24-4f60-8e1d-6c0b2a4f7d93"))
    assert_kept(store, lease, "boot_changed")


def test_an_engine_that_dies_while_the_fence_stands_leaves_a_fence_that_can_be_cleared(
    engine, store, host, lease, monkeypatch
):
    with monkeypatch.context() as patch:
        while_fenced(patch, engine.kill)
        assert_kept(store, lease, "engine_unavailable", "fence_left", code=3)
    engine.start()
    assert engine.inspect(name_of(lease))["Config"]["Labels"][FENCE] == lease
    plan = store.json("fences", code=2)["report"]
    assert {one["kind"] for one in plan["fences"]} == {"container", "image"}
    store.json("fences", "--confirm", plan["plan_hash"], code=0)
    store.json("fences", code=0)
    assert_retired(store, lease, "proof_engine_quiescent")


def test_a_living_client_is_found_by_its_command_line(engine, store, host, lease):
    command = [sys.executable, "-c", "import sys; sys.stdin.read()", "create", "--name", name_of(lease)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as client:
        try:
            document = assert_kept(store, lease, "client_alive")
        finally:
            client.kill()
    assert str(client.pid) in str(document["report"]["decision"])
    assert_retired(store, lease, "proof_engine_quiescent")


def test_a_client_that_comes_while_the_fence_stands_is_found_too(engine, store, host, lease, monkeypatch):
    command = [sys.executable, "-c", "import sys; sys.stdin.read()", name_of(lease)]
    started = []
    try:
        while_fenced(monkeypatch, lambda: started.append(subprocess.Popen(command, stdin=subprocess.PIPE)))
        assert_kept(store, lease, "client_alive")
    finally:
        for one in started:
            one.kill()
            one.communicate()


def test_t12_a_wrapper_is_refused_unless_reviewed_and_rebooted(engine, store, host, lease, tmp_path):
    wrapper = tmp_path / "docker"
    wrapper.write_text('#!/bin/sh\nexec /usr/bin/docker "$@"\n')
    wrapper.chmod(0o755)
    store.add(docker_binary=str(wrapper))
    document = assert_kept(store, lease, "client_is_wrapper")
    listed = tmp_path / "reviewed"
    listed.write_text(f"{document['report']['seen']['client']['sha256']}  read by two people\n")
    options = ("--reviewed-wrappers", str(listed))
    assert_kept(store, lease, "client_is_wrapper", options=options)
    store.json("witness", lease, code=0)
    host.boot = "5a3d1c7e-9b24-4f60-8e1d-6c0b2a4f7d93"
    assert_kept(store, lease, "client_is_wrapper")
    assert_retired(store, lease, "proof_reboot_witnessed", options=options)


def test_t14_and_t15_the_event_log_and_a_statement_are_noted_and_prove_nothing(engine, store, host, lease):
    made = engine.create(name_of(lease), {LABEL: lease})
    engine.demand(204, "DELETE", f"/containers/{made}")
    with EventFollower(engine.socket_path):
        assert_kept(store, lease, "events_only", "attestation_only", options=("--note", "ticket 17"))
    document = assert_retired(store, lease, "proof_engine_quiescent", options=("--note", "ticket 17"))
    assert "events_seen" in codes(document)
    (intent,) = (store.home / "retirements").glob("*.intent.json")
    assert b'"statement":"ticket 17"' in intent.read_bytes()


def test_a_second_engine_on_the_host_makes_the_listener_s_owner_ambiguous(
    engine, store, host, lease, engine_maker, monkeypatch
):
    twin = engine_maker(key_file=engine.key_file)
    twin.start()
    both = EngineHost(lambda: engine.pid)
    monkeypatch.setattr("tests.support.engine_host._is_engine", lambda _: False)
    monkeypatch.setattr("symbi_recover.cli.writing.lease_retire.the_host", lambda: both)
    assert_kept(store, lease, "engine_ambiguous")


def test_a_data_root_that_is_younger_than_the_record_is_refused(engine, store, host, lease):
    host.birth = BirthTime(2**62)
    assert_kept(store, lease, "engine_storage_new")


def test_an_endpoint_through_a_folder_link_is_the_same_engine(engine, store, host, lease, tmp_path):
    (tmp_path / "link").symlink_to(os.path.dirname(engine.socket_path))
    environment = {**store.environment, "DOCKER_HOST": f"unix://{tmp_path}/link/s"}
    store.add(docker_environment=environment)
    request = engine.create_request(name_of(lease), {LABEL: lease})
    engine.need_image(EMPTY_IMAGE)
    with HalfRequest(engine.socket_path, *request):
        assert_kept(store, lease, "census_foreign_connection")
    assert_retired(store, lease, "proof_engine_quiescent")


def test_an_endpoint_link_that_is_younger_than_the_record_may_have_led_elsewhere(
    engine, store, host, lease, tmp_path
):
    store.add(docker_environment={**store.environment, "DOCKER_HOST": f"unix://{tmp_path}/late"})
    (tmp_path / "late").symlink_to(engine.socket_path)
    assert_kept(store, lease, "endpoint_link")


def test_a_folder_of_the_endpoint_that_became_a_link_after_the_record_may_have_led_elsewhere(
    engine, store, host, lease, tmp_path
):
    store.add(docker_environment={**store.environment, "DOCKER_HOST": f"unix://{tmp_path}/late/s"})
    (tmp_path / "late").symlink_to(os.path.dirname(engine.socket_path))
    assert_kept(store, lease, "endpoint_link")


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("tcp://10.0.0.1:2375", "endpoint_remote"),
        ("ssh://host", "endpoint_remote"),
        ("", "endpoint_unresolved"),
    ],
)
def test_t13_what_is_not_a_local_socket_is_refused(engine, store, host, lease, address, code):
    store.add(docker_environment={**store.environment, "DOCKER_HOST": address})
    assert_kept(store, lease, code)


def test_a_running_helper_is_refused_with_all_other_codes(engine, store, host, lease):
    engine.create(name_of(lease), {LABEL: lease})
    with helper_double(store.path):
        assert_kept(store, lease, "supervisor_running", "container_present")
        assert store.json("retire", lease, code=2)["report"]["helper"]["state"] == "running"


def test_store_terms_and_consent_are_preconditions(engine, store, host, lease):
    snapshot = "d2a8f6d0-6a34-4c1e-9d0b-7f1c2b3a4d5e"
    writer.stage(store.path, snapshot)
    store.add(staging=[snapshot])
    assert_kept(store, lease, "staging_unacknowledged")
    document = store.json("retire", lease, "--confirm", "0" * 64, code=4)
    assert "record_changed" in codes(document)
    key = store.home / "operator.key"
    key.rename(store.home / "away")
    assert_kept(store, lease, "receipt_unavailable", options=("--acknowledge-staging",))
    (store.home / "away").rename(key)
    stray = store.path / "notes.json"
    stray.write_bytes(b"{}")
    assert_kept(store, lease, "store_blocked", options=("--acknowledge-staging",))
    stray.unlink()
    lock = store.path / "supervisor.lock"
    lock.unlink()
    assert_kept(store, lease, "lock_missing", options=("--acknowledge-staging",))
    lock.touch(0o600)
    assert_retired(store, lease, "proof_engine_quiescent", options=("--acknowledge-staging",))
    assert (store.path / "staging" / snapshot / "data").is_dir()


def test_a_repeat_says_that_it_was_done_and_a_record_that_is_back_needs_fresh_evidence(
    engine, store, host, lease
):
    digest, data = store.digest(lease), store.record(lease).read_bytes()
    assert_retired(store, lease, "proof_engine_quiescent")
    again = store.json("retire", lease, "--confirm", digest, code=0)
    assert again["report"]["outcome"] == "already_retired"
    assert store.cli("retire", lease, "--confirm", "0" * 64).rc == 3
    store.record(lease).write_bytes(data)
    store.record(lease).chmod(0o600)
    with EventFollower(engine.socket_path):
        assert_kept(store, lease, "flush_missing")
    done = retire(store, lease, 0)
    assert done["report"]["outcome"] == "retired"
    assert len(list((store.home / "retirements").glob("*.receipt.json"))) == 2


def test_a_run_that_stopped_after_the_record_was_gone_is_completed(engine, store, host, lease, monkeypatch):
    from symbi_recover.write import retire_run

    digest = store.digest(lease)

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(retire_run.Run, "_write_receipt", stop)
        assert store.cli("retire", lease, "--confirm", digest).rc == 130
    assert store.records() == []
    done = store.json("retire", lease, "--confirm", digest, code=0)
    assert done["report"]["outcome"] == "completed"
    (receipt,) = (store.home / "retirements").glob("*.receipt.json")
    assert b'"outcome":"absent_after_interruption"' in receipt.read_bytes()


def test_a_fence_of_an_interrupted_run_is_cleared_by_the_same_command(
    engine, store, host, lease, monkeypatch
):
    with monkeypatch.context() as patch:
        patch.setattr(fences.FenceWork, "remove", lambda self: self.release())
        while_fenced(patch, lambda: (_ for _ in ()).throw(KeyboardInterrupt()))
        assert store.cli("retire", lease, "--confirm", store.digest(lease)).rc == 130
    assert engine.inspect(name_of(lease)) is not None
    assert_retired(store, lease, "proof_engine_quiescent")


def test_fences_leaves_what_others_made_and_what_is_in_use(engine, store, host, lease, monkeypatch):
    stranger = engine.create("stranger", {FENCE: lease, "symbi-recover.nonce": "0" * 32})
    plan = store.json("fences", code=2)["report"]
    assert [(one["code"], one["outcome"]) for one in plan["fences"]] == [("fence_foreign", "left")]
    store.json("fences", "--confirm", plan["plan_hash"], code=2)
    assert engine.inspect(stranger) is not None

    def look():
        seen = store.json("fences", code=2)["report"]
        done = store.json("fences", "--confirm", seen["plan_hash"], code=2)["report"]
        assert {one["code"] for one in done["fences"]} == {"fence_in_use", "fence_foreign"}

    with monkeypatch.context() as patch:
        while_fenced(patch, look)
        assert_retired(store, lease, "proof_engine_quiescent")
    engine.demand(204, "DELETE", f"/containers/{stranger}")
