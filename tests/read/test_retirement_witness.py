"""What a witness shows later, and which files of the operator's own are believed."""

import os

import pytest
from msgspec.structs import replace

from symbi_recover.core.fences import FenceNote
from symbi_recover.core.retirement import RetirementReceipt
from symbi_recover.core.witness import (
    DirectoryIdentity,
    EngineIdentity,
    Hit,
    ListenerIdentity,
    Now,
    RecordIdentity,
    Scan,
    Witness,
    compare,
)
from symbi_recover.read.retirement.notes import WITNESSES, decoded, read_own
from symbi_recover.wire.retirement import FormError, decode, encode, envelope, open_envelope

LEASE = "6b1f0c64-0f0e-4a53-8f52-3d1f2a7c9b10"
RECORD = RecordIdentity(lease=LEASE, sha256="1" * 64, size=300, inode=7, mtime_ns=10, ctime_ns=11)
PLACE = DirectoryIdentity(path="/srv/store", device=1, inode=2)
LISTENER = ListenerIdentity(path="/run/docker.sock", inode=50, owner_pid=40, activated=False)
ENGINE = EngineIdentity(
    pid=40,
    start_ticks=400,
    executable="/usr/sbin/dockerd",
    engine_id="AAAA",
    version="20.10.24",
    data_root="/var/lib/docker",
    containers_inode=9,
    containers_born_ns=5,
)
WITNESS = Witness(
    seen_ns=100,
    locked=True,
    boot_id="b1",
    record=RECORD,
    directory=PLACE,
    endpoint="/run/docker.sock",
    scan=Scan(passes=2, processes=30),
    listener=LISTENER,
    engine=ENGINE,
)
NOW = Now(
    boot_id="b1",
    record=RECORD,
    directory=PLACE,
    endpoint="/run/docker.sock",
    listener=LISTENER,
    engine=ENGINE,
)
OTHER_ENGINE = replace(ENGINE, pid=41, start_ticks=900)
OTHER_LISTENER = replace(LISTENER, inode=51, owner_pid=41)


def facts(witness=WITNESS, **now):
    return compare(witness, replace(NOW, **now), name="w", sha256="0" * 64)


def test_an_unchanged_world_shows_that_nothing_happened():
    found = facts()
    assert (found.unchanged, found.rebooted, found.replaced, found.anchored) == (True, False, False, True)
    assert found.same_storage


@pytest.mark.parametrize("field", ["sha256", "size", "inode", "mtime_ns", "ctime_ns"])
def test_any_difference_of_the_record_makes_a_witness_worthless(field):
    other = replace(RECORD, **{field: "2" * 64 if field == "sha256" else 99})
    found = facts(record=other)
    assert not found.unchanged
    assert "the record" in found.why


def test_a_device_number_may_change_across_a_reboot_and_nothing_else_of_the_directory():
    assert facts(directory=replace(PLACE, device=99)).unchanged
    assert not facts(directory=replace(PLACE, inode=99)).unchanged
    assert not facts(directory=replace(PLACE, path="/srv/other")).unchanged
    assert not facts(endpoint="/run/other.sock").unchanged
    assert not facts(endpoint=None).unchanged


def test_another_boot_is_a_reboot_and_an_unknown_one_is_not():
    assert facts(boot_id="b2").rebooted
    assert not facts(boot_id=None).rebooted


def test_an_engine_is_replaced_only_if_process_and_listener_both_differ_on_one_boot():
    assert facts(engine=OTHER_ENGINE, listener=OTHER_LISTENER).replaced
    assert not facts(engine=OTHER_ENGINE).replaced
    assert not facts(listener=OTHER_LISTENER).replaced
    assert not facts(engine=OTHER_ENGINE, listener=OTHER_LISTENER, boot_id="b2").replaced
    assert not facts(engine=None, listener=OTHER_LISTENER).replaced
    assert not facts(replace(WITNESS, engine=None), engine=OTHER_ENGINE, listener=OTHER_LISTENER).replaced
    again = replace(ENGINE, start_ticks=900)
    assert facts(engine=again, listener=OTHER_LISTENER).replaced


def test_one_engine_id_does_not_make_one_storage():
    for changed in ({"data_root": "/other"}, {"containers_inode": 1}, {"containers_born_ns": 1}):
        assert not facts(engine=replace(ENGINE, **changed)).same_storage
    assert facts(engine=replace(ENGINE, engine_id="BBBB")).same_storage


@pytest.mark.parametrize(
    "changed",
    [
        {"locked": False},
        {"scan": None},
        {"scan": Scan(passes=1, processes=30)},
        {"scan": Scan(passes=2, processes=30, unreliable=("no root",))},
        {"scan": Scan(passes=2, processes=30, hits=(Hit(pid=1, program="p", why="w"),))},
    ],
)
def test_a_visit_without_lock_or_clean_scan_is_no_anchor(changed):
    assert not facts(replace(WITNESS, **changed)).anchored


def put(home, name, data, mode=0o600):
    folder = home / WITNESSES
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / name
    path.write_bytes(data)
    path.chmod(mode)
    return path


def test_a_witness_is_read_as_it_was_written_and_only_by_its_prefix(tmp_path):
    put(tmp_path, f"{LEASE}.1.json", encode(WITNESS))
    put(tmp_path, f"{LEASE}.notes", b"{}")
    (own,) = read_own(str(tmp_path), WITNESSES, prefix=LEASE)
    assert decoded(own, Witness) == WITNESS
    assert read_own(str(tmp_path), WITNESSES, prefix="7") == ()
    assert read_own(str(tmp_path / "none"), WITNESSES) == ()


@pytest.mark.parametrize(
    ("data", "mode"),
    [
        (encode(WITNESS), 0o644),
        (encode(WITNESS)[:-1], 0o600),
        (encode(WITNESS) + b"\n", 0o600),
        (b"", 0o600),
        (bytes(300), 0o600),
        (encode(WITNESS).replace(b'"locked":true', b'"locked":true,"locked":true'), 0o600),
        (encode(WITNESS).replace(b'"locked":true', b'"locked": true'), 0o600),
        (encode(WITNESS).replace(b'"locked":true', b'"locked":true,"zz":1'), 0o600),
        (encode(WITNESS).replace(b"witness.v1", b"witness.v2"), 0o600),
        (b"x" * (1 << 20) + b"y", 0o600),
    ],
)
def test_a_file_that_is_open_cut_or_reworded_counts_for_nothing_and_is_not_taken_for_absent(
    tmp_path, data, mode
):
    put(tmp_path, f"{LEASE}.1.json", data, mode)
    (own,) = read_own(str(tmp_path), WITNESSES)
    assert isinstance(decoded(own, Witness), str)


def test_links_and_fifos_count_for_nothing(tmp_path):
    path = put(tmp_path, f"{LEASE}.1.json", encode(WITNESS))
    os.link(path, tmp_path / "second")
    (tmp_path / WITNESSES / "a.json").symlink_to(path)
    os.mkfifo(tmp_path / WITNESSES / "b.json", 0o600)
    assert [isinstance(decoded(own, Witness), str) for own in read_own(str(tmp_path), WITNESSES)] == [
        True
    ] * 3


RECEIPT = RetirementReceipt(
    lease=LEASE,
    record_sha256="1" * 64,
    intent_sha256="2" * 64,
    outcome="retired",
    codes=("retired",),
    at_ns=1,
)


def test_a_signed_document_is_cut_as_it_was_joined_and_no_other_way():
    payload = encode(RECEIPT)[:-1]
    data = envelope(payload, "ab" * 32, bytes(range(64)))
    assert open_envelope(data, RetirementReceipt) == (RECEIPT, payload, "ab" * 32, bytes(range(64)))
    for number in range(0, len(data), 7):
        changed = bytes([*data[:number], data[number] ^ 0x40, *data[number + 1 :]])
        try:
            value, part, key, signature = open_envelope(changed, RetirementReceipt)
        except FormError:
            continue
        assert (part, key, signature) != (payload, "ab" * 32, bytes(range(64)))
        assert value is not None
    for number in range(len(data)):
        with pytest.raises(FormError):
            open_envelope(data[:number], RetirementReceipt)


def test_a_document_of_another_kind_is_refused():
    with pytest.raises(FormError):
        decode(encode(RECEIPT), FenceNote)
