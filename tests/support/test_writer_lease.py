"""The writer re-creates the seven example records of the lease format (leases.md section 17) byte for byte.

The text wraps its examples for reading; lengths and digests here are those of the unwrapped lines.
"""

import hashlib
import json

import pytest

from tests.support.writer import lease
from tests.support.writer.text import compact

ORIGIN = lease.origin(
    agent_id="0d5f3f0a-4f7b-4c9e-8a55-9a1d5b0e7c21",
    run_id="77c3a2be-19b4-4d2a-b6a0-2c5de1f0a913",
    public_key="3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29",
    dispatch_id="c1b7e8f4-5a0d-4e3b-9f61-80d2c4a6b8e0",
    call_fingerprint="sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    tool_name="read_file",
    iteration=3,
)
PLAIN = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
HOST = "5d7f9b1c-3e50-4276-8498-badcfe102132"


def resources(mebibytes: int, cpu_nanos: int) -> dict[str, int]:
    return {"memory_bytes": mebibytes * 1024 * 1024, "cpu_nanos": cpu_nanos}


EXAMPLES = {
    "creating": (
        lease.record(
            docker_environment={**PLAIN, "HOME": "/home/agent"},
            staging=["d2a8f6d0-6a34-4c1e-9d0b-7f1c2b3a4d5e"],
            origin=ORIGIN,
        ),
        "f37fad67b4cf5f416c09e8b60314cbbe6457b48290ef62878d96f27779f843aa",
    ),
    "created": (
        lease.record(
            "b7d1a3c5-2e4f-4061-8a9b-c0d1e2f30415",
            lease.created("4f0d3c2b1a0918273645546372819aabbccddeeff00112233445566778899aab"),
            docker_environment={**PLAIN, "DOCKER_HOST": "unix:///var/run/docker.sock"},
            resources=resources(256, 500_000_000),
        ),
        "3a3fbb8b1d6ce68797c0ab99b334a1808dd9ccec95f951ed8e0f20b639d30891",
    ),
    "uncertain": (
        lease.record("2c9e7f10-8b6a-4d5c-b3e2-1f0a9d8c7b6e", lease.uncertain()),
        "3bb8d10f4fc307dcd5842c2f92a23a31ad8c6161814d5057298a41f6191b8b9d",
    ),
    "vm_creating": (
        lease.record(
            "e4a6b8c0-d2f4-4a16-9c38-5e7a9bbd1f23",
            lease.vm_creating(),
            resources=resources(384, 1_000_000_000),
            jail={"uid": 200_003, "cgroup_parent": "symbivmm.slice"},
        ),
        "ab70a77ff3d55221c3246a328b208d1eff274ddd7de0abdfc25e7f50e84ff7a4",
    ),
    "vm_created": (
        lease.record(
            "91f3d5b7-79bd-4df1-a357-1b3c5d7e9f02",
            lease.vm_created(),
            resources=resources(256, 2_000_000_000),
        ),
        "d9ead75133cd8560f1de1b0ec002833ad8950a997550b4d27aaea9e74dd72c55",
    ),
    "host_creating": (
        lease.record("38c0de42-6f1b-4b7a-9d5e-02f4a6c8e013", lease.host_creating()),
        "d76a1ea6c2c8c95f2ab306630628eb35295a1dec402659d462f78a83279231e8",
    ),
    "host_created": (
        lease.record(HOST, lease.host_created(HOST)),
        "a8c09e1dfb3ee4383371a694634e0554c1127e0a3bc3477bc92e5f0514f21ccc",
    ),
}


@pytest.mark.parametrize("phase", EXAMPLES)
def test_the_example_record_of_each_phase_is_recreated(phase):
    value, expected = EXAMPLES[phase]
    assert value["state"]["phase"] == phase
    assert hashlib.sha256(compact(value)).hexdigest() == expected


def test_the_examples_cover_every_phase():
    assert list(EXAMPLES) == list(lease.states())


def test_every_phase_has_a_record_and_the_record_its_own_file(tmp_path):
    records = [
        lease.record(lease.lease_uid(at), state)
        for at, state in enumerate(lease.states(lease.lease_uid(6)).values())
    ]
    path = lease.make_state(tmp_path / "s", *records)
    stored = {file.stem: json.loads(file.read_bytes()) for file in path.glob("*.json")}
    assert stored == {record["lease"]: record for record in records}
    modes = {file.name: file.stat().st_mode & 0o777 for file in path.iterdir()}
    assert set(modes.values()) == {0o600}
    assert {"supervisor.lock", "admission.conf"} < modes.keys()


def test_leftovers_do_not_look_like_records(tmp_path):
    path = lease.make_state(tmp_path / "s", admission=None)
    made = [lease.write_leftover(path, lease.record()), lease.write_environment(path)]
    assert [file.name.partition("-")[0] for file in made] == [".write", ".environment"]
    assert not list(path.glob("*.json"))


def test_a_staging_snapshot_has_the_name_that_its_reservation_says(tmp_path):
    folder = lease.stage(lease.make_state(tmp_path / "s"), lease.lease_uid(1), 512)
    assert json.loads((folder / "reservation").read_bytes()) == {"id": folder.name, "reserved_bytes": 512}
    assert (folder / "data").is_dir()
