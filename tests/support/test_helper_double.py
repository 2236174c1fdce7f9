"""The helper double does what it says: lock, socket, protocol, and each way to misbehave."""

import fcntl
import json
import os
import socket
import stat
import tempfile
from pathlib import Path

import pytest

from tests.support.helper_double import (
    FINGERPRINT,
    FRAME_LIMIT,
    OTHER_FINGERPRINT,
    HelperError,
    Manner,
    capacity_snapshot,
    helper_double,
)

PING = {"operation": "ping", "version": 7, "implementation": FINGERPRINT}
INSPECT = {"operation": "inspect", "version": 7, "implementation": FINGERPRINT, "lease": None}


@pytest.fixture
def store(tmp_path_factory):
    directory = tmp_path_factory.mktemp("h")  # short: a socket path must stay below 104 bytes
    directory.chmod(0o700)
    return directory


def converse(path, request, *, limit=4 * FRAME_LIMIT):
    """Send one frame and read until the end of the stream, ``limit`` bytes, or a second of silence."""
    frame = request if isinstance(request, bytes) else json.dumps(request).encode() + b"\n"
    received = bytearray()
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1)
        client.connect(path)
        try:
            client.sendall(frame)
            while len(received) < limit:
                more = client.recv(65536)
                if not more:
                    return bytes(received), "closed"
                received += more
        except (ConnectionResetError, BrokenPipeError):  # closed with our bytes unread
            return bytes(received), "closed"
        except TimeoutError:
            pass
    return bytes(received), "open"


def lock_is_free(path):
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def test_it_holds_the_lock_in_a_process_of_its_own_until_it_stops(store):
    with helper_double(store) as helper:
        assert helper.pid != os.getpid()
        assert not lock_is_free(helper.lock_path)
        suffix = f":{Path(helper.lock_path).stat().st_ino}"
        lines = [line.split() for line in Path("/proc/locks").read_text(encoding="ascii").splitlines()]
        held = [line for line in lines if line[5].endswith(suffix)]
        assert [(line[1], line[3], line[4]) for line in held] == [("FLOCK", "WRITE", str(helper.pid))]
    assert lock_is_free(helper.lock_path)
    assert not Path(helper.socket_path).exists()


def test_lock_and_socket_are_private(store):
    with helper_double(store) as helper:
        assert stat.S_IMODE(Path(helper.lock_path).stat().st_mode) == 0o600
        assert Path(helper.lock_path).stat().st_size == 0
        assert stat.S_ISSOCK(Path(helper.socket_path).stat().st_mode)
        assert stat.S_IMODE(Path(helper.socket_path).stat().st_mode) == 0o600


def test_a_second_helper_ends_with_status_0(store):
    with helper_double(store), pytest.raises(HelperError) as caught, helper_double(store):
        pass
    assert caught.value.status == 0


def test_ping_and_inspect_are_answered_and_recorded(store):
    snapshot = capacity_snapshot(str(store), unknown_resource_leases=3)
    with helper_double(store, snapshot=snapshot) as helper:
        ready, end = converse(helper.socket_path, PING)
        assert end == "closed"
        assert json.loads(ready) == {
            "status": "ready",
            "version": 7,
            "implementation": FINGERPRINT,
            "jailed_vms": False,
            "delegated_workers": False,
        }
        capacity, _ = converse(helper.socket_path, INSPECT)
        assert json.loads(capacity) == {"status": "capacity", "snapshot": snapshot}
        assert capacity.count(b"\n") == 1
        helper.wait_for_requests(2)
        assert helper.requests == (PING, INSPECT)
        helper.assert_only_questions()


@pytest.mark.parametrize(
    "request_",
    [
        PING | {"version": 6},
        PING | {"implementation": OTHER_FINGERPRINT},
        PING | {"surplus": 1},
        {"operation": "close"},
        b"ping\n",
        b"[]\n",
        json.dumps(PING).encode() + b"\n{}\n",
    ],
    ids=["version", "fingerprint", "unknown member", "close", "no json", "no object", "two frames"],
)
def test_a_request_the_helper_refuses_closes_without_a_byte(store, request_):
    with helper_double(store) as helper:
        assert converse(helper.socket_path, request_) == (b"", "closed")
        helper.wait_for_event("refused")


def test_a_creating_request_is_seen_by_the_test(store):
    with helper_double(store) as helper:
        converse(helper.socket_path, PING | {"operation": "create"})
        helper.wait_for_requests(1)
        with pytest.raises(AssertionError, match="create"):
            helper.assert_only_questions()


def test_a_measurement_request_is_seen_by_the_test(store):
    with helper_double(store) as helper:
        converse(helper.socket_path, INSPECT | {"lease": "6b1f0c64-0f0e-4a53-8f52-3d1f2a7c9b10"})
        helper.wait_for_requests(1)
        with pytest.raises(AssertionError):
            helper.assert_only_questions()


@pytest.mark.parametrize(
    ("manner", "received", "end"),
    [
        (Manner.CLOSE, lambda got: got == b"", "closed"),
        (Manner.SILENT, lambda got: got == b"", "open"),
        (Manner.FAILED, lambda got: json.loads(got)["status"] == "failed", "closed"),
        (Manner.PARTIAL_LINE, lambda got: got.startswith(b'{"status"') and b"\n" not in got, "closed"),
        (Manner.STALLED_LINE, lambda got: got.startswith(b'{"status"') and b"\n" not in got, "open"),
        (Manner.ENDLESS_LINE, lambda got: len(got) >= 4 * FRAME_LIMIT and b"\n" not in got, "open"),
        (Manner.OVERSIZED_LINE, lambda got: len(got) > FRAME_LIMIT and json.loads(got), "closed"),
        (Manner.NOT_JSON, lambda got: got == b"ready\n", "closed"),
        (Manner.TWO_LINES, lambda got: got.count(b"\n") == 2, "closed"),
    ],
)
def test_each_misbehaviour_reaches_the_client(store, manner, received, end):
    with helper_double(store, manner=manner) as helper:
        got, seen = converse(helper.socket_path, INSPECT)
        assert received(got)
        assert seen == end
        assert helper.running


def test_it_can_name_another_build_than_it_accepts(store):
    with helper_double(store, said_fingerprint=OTHER_FINGERPRINT, said_version=8) as helper:
        ready = json.loads(converse(helper.socket_path, PING)[0])
        assert (ready["implementation"], ready["version"]) == (OTHER_FINGERPRINT, 8)


def test_a_peer_of_another_uid_is_dropped_unheard(store):
    with helper_double(store, client_uid=os.getuid() + 1) as helper:
        assert converse(helper.socket_path, PING) == (b"", "closed")
        helper.wait_for_event("refused")
        assert helper.frames == ()


def test_a_killed_helper_leaves_its_socket_and_a_free_lock(store):
    with helper_double(store) as helper:
        helper.kill()
        assert not helper.running
        assert lock_is_free(helper.lock_path)
        with socket.socket(socket.AF_UNIX) as client, pytest.raises(ConnectionRefusedError):
            client.connect(helper.socket_path)
    with helper_double(store) as successor:
        assert converse(successor.socket_path, PING)[1] == "closed"


def test_a_frozen_helper_keeps_the_lock_and_answers_once_thawed(store):
    with helper_double(store) as helper:
        helper.freeze()
        assert converse(helper.socket_path, PING) == (b"", "open")
        assert not lock_is_free(helper.lock_path)
        helper.thaw()
        helper.wait_for_requests(1)


def test_a_helper_that_never_binds_holds_the_lock_alone(store):
    with helper_double(store, serve=False) as helper:
        assert not lock_is_free(helper.lock_path)
        assert not Path(helper.socket_path).exists()


@pytest.mark.root
def test_it_can_run_as_another_uid():
    if os.geteuid() != 0:
        pytest.skip("not run: changing the uid needs root")
    with tempfile.TemporaryDirectory() as directory:  # tmp_path lies below directories closed to others
        os.chown(directory, 65534, 65534)
        with helper_double(directory, run_as=65534, client_uid=0) as helper:
            assert Path(helper.socket_path).stat().st_uid == 65534
            assert json.loads(converse(helper.socket_path, PING)[0])["status"] == "ready"


def test_the_child_goes_with_a_failing_test(store):
    def failing():
        with helper_double(store) as helper:
            seen.append(helper)
            pytest.fail("as planned")

    seen = []
    with pytest.raises(pytest.fail.Exception):
        failing()
    assert not seen[0].running
    assert not Path(f"/proc/{seen[0].pid}").exists()
