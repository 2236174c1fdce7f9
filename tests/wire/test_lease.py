"""Lease records: the seven phases, the spellings that are tolerated and named, the rules, and hostile text."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbi_recover.core.lease_records import RECORD_LIMIT, AdmissionLimits, phase_of
from symbi_recover.core.scalars import is_canonical_uuid
from symbi_recover.wire import lease
from symbi_recover.wire.lease_rules import canonical_uuid, folded
from tests.support.writer import lease as made
from tests.support.writer.text import compact

LEASE = made.LEASE

# One record for each phase, as in section 17 of the format.
EXAMPLES = r"""
{"lease":"6b1f0c64-0f0e-4a53-8f52-3d1f2a7c9b10","name":"symbi-6b1f0c64-0f0e-4a53-8f52-3d1f2a7c9b10","docker_binary":"/usr/bin/docker","docker_environment":{"PATH":"/usr/bin:/bin","LANG":"C.UTF-8","HOME":"/home/agent"},"state":{"phase":"creating"},"resources":{"memory_bytes":536870912,"cpu_nanos":1000000000},"jail":null,"staging":["d2a8f6d0-6a34-4c1e-9d0b-7f1c2b3a4d5e"],"origin":{"agent_id":"0d5f3f0a-4f7b-4c9e-8a55-9a1d5b0e7c21","run_id":"77c3a2be-19b4-4d2a-b6a0-2c5de1f0a913","public_key":"3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29","dispatch_id":"c1b7e8f4-5a0d-4e3b-9f61-80d2c4a6b8e0","call_fingerprint":"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","tool_name":"read_file","iteration":3}}
{"lease":"b7d1a3c5-2e4f-4061-8a9b-c0d1e2f30415","name":"symbi-b7d1a3c5-2e4f-4061-8a9b-c0d1e2f30415","docker_binary":"/usr/bin/docker","docker_environment":{"PATH":"/usr/bin:/bin","LANG":"C.UTF-8","DOCKER_HOST":"unix:///var/run/docker.sock"},"state":{"phase":"created","container_id":"4f0d3c2b1a0918273645546372819aabbccddeeff00112233445566778899aab"},"resources":{"memory_bytes":268435456,"cpu_nanos":500000000},"jail":null,"staging":[],"origin":null}
{"lease":"2c9e7f10-8b6a-4d5c-b3e2-1f0a9d8c7b6e","name":"symbi-2c9e7f10-8b6a-4d5c-b3e2-1f0a9d8c7b6e","docker_binary":"/usr/bin/docker","docker_environment":{"PATH":"/usr/bin:/bin","LANG":"C.UTF-8"},"state":{"phase":"uncertain"},"resources":{"memory_bytes":536870912,"cpu_nanos":1000000000},"jail":null,"staging":[],"origin":null}
{"lease":"e4a6b8c0-d2f4-4a16-9c38-5e7a9bbd1f23","name":"symbi-e4a6b8c0-d2f4-4a16-9c38-5e7a9bbd1f23","docker_binary":"/usr/local/bin/firecracker","docker_environment":{},"state":{"phase":"vm_creating"},"resources":{"memory_bytes":402653184,"cpu_nanos":1000000000},"jail":{"uid":200003,"cgroup_parent":"symbivmm.slice"},"staging":[],"origin":null}
{"lease":"91f3d5b7-79bd-4df1-a357-1b3c5d7e9f02","name":"symbi-91f3d5b7-79bd-4df1-a357-1b3c5d7e9f02","docker_binary":"/usr/local/bin/firecracker","docker_environment":{},"state":{"phase":"vm_created","pid":48213,"start_ticks":9128374,"boot_id":"5a3d1c7e-9b24-4f60-8e1d-6c0b2a4f7d93"},"resources":{"memory_bytes":268435456,"cpu_nanos":2000000000},"jail":null,"staging":[],"origin":null}
{"lease":"38c0de42-6f1b-4b7a-9d5e-02f4a6c8e013","name":"symbi-38c0de42-6f1b-4b7a-9d5e-02f4a6c8e013","docker_binary":"/usr/local/bin/symbi","docker_environment":{},"state":{"phase":"host_creating","parent":{"path":"/sys/fs/cgroup/user.slice/symbi-workers.service","boot_id":"5a3d1c7e-9b24-4f60-8e1d-6c0b2a4f7d93","device":30,"inode":7741}},"resources":{"memory_bytes":536870912,"cpu_nanos":1000000000},"jail":null,"staging":[],"origin":null}
{"lease":"5d7f9b1c-3e50-4276-8498-badcfe102132","name":"symbi-5d7f9b1c-3e50-4276-8498-badcfe102132","docker_binary":"/usr/local/bin/symbi","docker_environment":{},"state":{"phase":"host_created","parent":{"path":"/sys/fs/cgroup/user.slice/symbi-workers.service","boot_id":"5a3d1c7e-9b24-4f60-8e1d-6c0b2a4f7d93","device":30,"inode":7741},"cgroup":{"path":"/sys/fs/cgroup/user.slice/symbi-workers.service/worker-5d7f9b1c-3e50-4276-8498-badcfe102132","boot_id":"5a3d1c7e-9b24-4f60-8e1d-6c0b2a4f7d93","device":30,"inode":7805}},"resources":{"memory_bytes":536870912,"cpu_nanos":1000000000},"jail":null,"staging":[],"origin":null}
""".strip().splitlines()


def read(value: Any, stem: str = LEASE) -> lease.RecordReading:
    return lease.read_record(value if isinstance(value, bytes) else compact(value), stem)


def faults(value: Any, stem: str = LEASE) -> set[str]:
    return {fault.code for fault in read(value, stem).faults}


def deviations(value: Any, stem: str = LEASE) -> set[str]:
    reading = read(value, stem)
    assert reading.record is not None, reading.faults
    return {one.code for one in reading.deviations}


@pytest.mark.parametrize("line", EXAMPLES)
def test_every_published_example_is_a_good_record(line: str) -> None:
    value = json.loads(line)
    reading = read(line.encode(), value["lease"])
    assert reading.record is not None
    assert not reading.deviations
    assert phase_of(reading.record.state) == value["state"]["phase"]


@pytest.mark.parametrize("phase", sorted(made.states()))
def test_every_phase_of_the_writer_is_read(phase: str) -> None:
    reading = read(made.record(state=made.states()[phase]))
    assert reading.record is not None
    assert reading.record.phase == phase


@pytest.mark.parametrize(
    "text", [LEASE.upper(), LEASE.replace("-", ""), f"urn:uuid:{LEASE}", f"URN:UUID:{LEASE}", f"{{{LEASE}}}"]
)
def test_tolerated_spellings_of_a_lease_mean_the_same_value_and_are_named(text: str) -> None:
    reading = read(made.record(lease=text, name=f"symbi-{LEASE}"))
    assert reading.record is not None
    assert reading.record.lease == LEASE
    assert {one.code for one in reading.deviations} == {"noncanonical_spelling"}


@pytest.mark.parametrize(
    "text",
    [
        "7-2d6a833b8254b22b50c206337d77f7c",
        "{{72d6a833-b825-4b22-b50c-206337d77f7c",
        f"{{{LEASE.replace('-', '')}}}",
        f"urn:uuid:{LEASE.replace('-', '')}",
        "".join(chr(0xFF10 + int(c)) if c.isdigit() else c for c in LEASE),
        f" {LEASE}",
        f"{LEASE}\n",
        "",
    ],
)
def test_spellings_that_only_other_libraries_take_are_refused(text: str) -> None:
    assert canonical_uuid(text) is None
    assert faults(made.record(lease=text, name=f"symbi-{LEASE}")) == {"record_schema"}


def test_file_names_have_one_spelling() -> None:
    assert is_canonical_uuid(LEASE)
    assert not any(
        map(is_canonical_uuid, (LEASE.upper(), LEASE.replace("-", ""), f"{LEASE}\n", f"{{{LEASE}}}"))
    )


def test_each_tolerated_deviation_has_its_name() -> None:
    whole = made.record()
    nil = "00000000-0000-0000-0000-000000000000"
    assert deviations(made.record(state={"phase": "uncertain", "x": [1, {"x": 1, "y": None}]})) == {
        "state_extra_members"
    }
    assert deviations({**whole, "state": ["created", made.CONTAINER]}) == {"positional_form"}
    assert deviations({**whole, "state": ["creating"]}) == {"positional_form"}
    assert deviations(list(whole.values())) == {"positional_form"}
    assert deviations(list(whole.values())[:5]) == {"positional_form"}
    assert deviations(compact(whole).replace(b'{"PATH"', b'{"PATH":"/x","PATH"')) == {"duplicate_env_key"}
    assert deviations(made.record(lease=nil), nil) == {"nil_lease"}
    assert deviations(made.record(staging=[LEASE])) == set()


def test_the_last_of_two_equal_environment_names_counts() -> None:
    reading = read(compact(made.record()).replace(b'{"PATH"', b'{"PATH":"/x","PATH"'))
    assert reading.record is not None
    assert reading.record.docker_environment["PATH"] == "/usr/bin:/bin"


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"name": "symbi-other"}, "record_identity"),
        ({"lease": made.lease_uid(2), "name": f"symbi-{made.lease_uid(2)}"}, "record_identity"),
        ({"docker_binary": "docker"}, "record_rule"),
        ({"docker_environment": {"path": "/x"}}, "record_rule"),
        ({"docker_environment": {"PATH": "a\rb"}}, "record_rule"),
        ({"docker_environment": {"PATH": "x" * 65_531}}, "record_rule"),
        ({"docker_environment": []}, "record_schema"),
        ({"staging": None}, "record_schema"),
        ({"staging": [made.lease_uid(n) for n in range(33)]}, "record_rule"),
        ({"staging": [LEASE, LEASE.upper()]}, "record_rule"),
        ({"resources": {"memory_bytes": 0, "cpu_nanos": 1}}, "record_rule"),
        ({"resources": {"memory_bytes": True, "cpu_nanos": 1}}, "record_schema"),
        ({"resources": {"memory_bytes": 2**64, "cpu_nanos": 1}}, "record_schema"),
        ({"jail": {"uid": 70_000, "cgroup_parent": "symbi.slice"}}, "record_rule"),
        ({"state": {"phase": "Created"}}, "record_schema"),
        ({"state": {"phase": {"creating": None}}}, "record_schema"),
        ({"state": "creating"}, "record_schema"),
        ({"state": {"phase": "created", "container_id": "AB" * 32}}, "record_rule"),
        ({"state": {"phase": "vm_created", "pid": 1, "start_ticks": 1, "boot_id": made.BOOT}}, "record_rule"),
        ({"origin": made.origin(agent_id="00000000-0000-0000-0000-000000000000")}, "record_rule"),
        ({"origin": made.origin(tool_name="a\x85b")}, "record_rule"),
        ({"origin": made.origin(call_fingerprint="SHA256:" + "a" * 64)}, "record_rule"),
        ({"extra": 1}, "record_schema"),
    ],
)
def test_a_broken_rule_has_its_code(changed: dict[str, Any], code: str) -> None:
    assert code in faults({**made.record(), **changed})


def test_all_broken_rules_of_a_record_are_named() -> None:
    reading = read(made.record(docker_binary="x", name="y", resources={"memory_bytes": 0, "cpu_nanos": 0}))
    assert [fault.code for fault in reading.faults] == ["record_identity", "record_rule", "record_rule"]


def test_a_pid_that_cannot_be_a_vms_is_an_invalid_record() -> None:
    """F-108: pid 0, pid 1 and start time 0 are no process of a VM."""
    for state in (made.vm_created(pid=0), made.vm_created(pid=1), made.vm_created(start_ticks=0)):
        assert faults(made.record(state=state)) == {"record_rule"}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 64,
        b"\xef\xbb\xbf" + compact(made.record()),
        compact(made.record()).decode().encode("utf-16"),
        compact(made.record())[:-1],
        compact(made.record()) + b"x",
        compact(made.record()).replace(b"uncertain", b"unc\xedrtain") + b"\xed\xa0\x80",
        b"[" * 100_000,
        b'{"a":' * 20_000,
        b"NaN",
        b'{"lease":1e999999999}',
    ],
)
def test_what_is_no_json_is_refused_at_once(data: bytes) -> None:
    begun = time.monotonic()
    assert faults(data) == {"record_not_json"}
    assert time.monotonic() - begun < 1


def test_long_numbers_are_refused_without_computing_them() -> None:
    digits = b"9" * 100_000
    value = compact(made.record()).replace(b"536870912", digits)
    begun = time.monotonic()
    assert faults(value) <= {"record_schema", "record_not_json"}
    assert faults(value)
    assert time.monotonic() - begun < 1


def test_the_size_limit_is_exact() -> None:
    data = compact(made.record())
    assert read(data + b" " * (RECORD_LIMIT - len(data))).record is not None
    assert faults(data + b" " * (RECORD_LIMIT - len(data) + 1)) == {"record_too_large"}


def test_ignored_members_are_read_in_full() -> None:
    def with_extra(text: bytes) -> bytes:
        return compact(made.record()).replace(
            b'{"phase":"creating"}', b'{"phase":"creating","x":' + text + b"}"
        )

    assert read(with_extra(b'{"$serde_json::private::RawValue":1,"a":1,"a":2}')).record is not None
    for bad in (b'"\\ud800"', b"1e999", b"[" * 130 + b"]" * 130, b"NaN", b"01"):
        assert faults(with_extra(bad)) == {"record_not_json"}


def test_limits_are_read_in_both_forms() -> None:
    limits = AdmissionLimits(max_workers=4, memory_bytes=1, cpu_nanos=2)
    assert lease.read_admission(b"[4,1,2]\n").value == limits
    assert (
        lease.read_admission(compact({"max_workers": 4, "memory_bytes": 1, "cpu_nanos": 2})).value == limits
    )
    for bad in ({"max_workers": 513, "memory_bytes": 1, "cpu_nanos": 1}, {"max_workers": 1}, None, [0, 1, 1]):
        assert [fault.code for fault in lease.read_admission(compact(bad)).faults] == ["admission_invalid"]
    assert lease.read_admission(b" " * 4097).faults


def test_a_reservation_belongs_to_its_folder() -> None:
    data = compact({"id": LEASE, "reserved_bytes": 8})
    assert lease.read_reservation(data, LEASE).value is not None
    assert lease.read_reservation(data, made.lease_uid(3)).faults
    assert lease.read_reservation(compact({"id": LEASE, "reserved_bytes": 0}), LEASE).faults


def test_paths_are_compared_by_their_components() -> None:
    assert folded("/sys//fs/./cgroup/a/") == ["sys", "fs", "cgroup", "a"]
    leaf = made.host_created()
    leaf["cgroup"]["path"] = leaf["cgroup"]["path"].replace("/worker", "//./worker")
    assert read(made.record(state=leaf)).record is not None


@given(st.binary(max_size=300))
def test_any_bytes_give_a_reading(data: bytes) -> None:
    reading = lease.read_record(data, LEASE)
    assert (reading.record is None) is bool(reading.faults)


@given(st.integers(0, 900), st.binary(min_size=0, max_size=3))
def test_a_damaged_record_is_refused_or_read_never_an_exception(place: int, piece: bytes) -> None:
    data = compact(made.record(origin=made.origin(), staging=[made.lease_uid(1)]))
    reading = lease.read_record(data[:place] + piece + data[place + len(piece) :], LEASE)
    assert (reading.record is None) is bool(reading.faults)
