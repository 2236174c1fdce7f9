"""Intents and receipts of retirements: what counts, what is reported, and what is never taken for absent."""

import errno
import os
import stat

import pytest

from tests.support.writer import lease as writer
from tests.write.lease_rig import OWNED, Retire, codes, rig


@pytest.fixture
def world(tmp_path, monkeypatch):
    with rig(Retire(), tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture
def retired(world, monkeypatch):
    """A world whose tombstone was retired, and its record came back, as a crash before the sync can make it."""
    with monkeypatch.context() as patch:
        patch.setattr("symbi_recover.write.retire_run.unlink_record", lambda *_: True)
        world.retire(0)
    assert world.record.exists()
    return world


def folder(world):
    return world.made.home / "retirements"


def files(world, what):
    return sorted(folder(world).glob(f"*.{what}.json"))


def unusable(document):
    return {one["path"]: one["message"] for one in document["report"]["findings"] if one["code"] == UNUSABLE}


UNUSABLE = "operator_file_unusable"


def forge(path, change):
    path.write_bytes(change(path.read_bytes()))


SPOILED = {
    "cut": lambda path: forge(path, lambda data: data[:-1]),
    "not signed so": lambda path: forge(path, lambda data: data.replace(b'"at_ns":', b'"at_ns":1', 1)),
    "another key": lambda path: forge(path, lambda data: data[:-160].replace(b"0", b"1") + data[-160:]),
    "spelled otherwise": lambda path: forge(path, lambda data: b" " + data),
    "readable by others": lambda path: path.chmod(0o644),
    "a second name": lambda path: os.link(path, path.with_suffix(".copy")),
    "a link": lambda path: (path.rename(path.with_suffix(".x")), path.symlink_to(path.with_suffix(".x"))),
}


@pytest.mark.parametrize("how", SPOILED)
def test_an_intent_that_cannot_be_trusted_is_reported_and_its_receipt_ends_nothing(world, how):
    world.retire(0)
    (intent,) = files(world, "intent")
    SPOILED[how](intent)
    ran = world.document("retire", OWNED, "--confirm", world.made.confirm, code=3)
    assert (ran["code"], str(intent) in ran["detail"]) == ("lease_unknown", True)


@pytest.mark.parametrize("how", SPOILED)
def test_beside_an_intent_that_cannot_be_trusted_a_new_run_has_a_number_of_its_own(retired, how):
    (intent,) = files(retired, "intent")
    SPOILED[how](intent)
    document = retired.retire(0)
    assert document["report"]["outcome"] == "retired"
    assert list(unusable(document)) == [str(intent)]
    assert [path.name.split(".")[1] for path in files(retired, "receipt")] == ["000001", "000002"]


def test_a_record_that_came_back_is_proven_anew(retired):
    document = retired.retire(0)
    assert document["report"]["outcome"] == "retired"
    assert len(files(retired, "intent")) == 2
    assert not retired.record.exists()


def test_a_file_under_the_name_of_another_lease_counts_for_nothing(retired):
    other = writer.lease_uid(77)
    (intent,) = files(retired, "intent")
    moved = intent.with_name(intent.name.replace(OWNED, other))
    intent.rename(moved)
    value = writer.record(other, writer.uncertain())
    value["docker_environment"] = {"DOCKER_HOST": retired.double.base_url, "PATH": "/usr/bin:/bin"}
    writer.write_record(retired.made.store, value)
    digest = retired.document("retire", other, code=2)["report"]["confirm"]
    document = retired.document("retire", other, "--confirm", digest, code=4)
    assert unusable(document) == {str(moved): f"it is about lease {OWNED}"}


@pytest.mark.parametrize("how", [*SPOILED, "empty", "one byte", "nulls"])
def test_a_receipt_that_is_there_and_not_valid_is_kept_and_never_taken_for_absent(world, how):
    world.retire(0)
    (receipt,) = files(world, "receipt")
    damage = {"empty": b"", "one byte": b"{", "nulls": bytes(500)}
    if how in damage:
        receipt.write_bytes(damage[how])
    else:
        SPOILED[how](receipt)
    before = receipt.read_bytes()
    ran = world.document("retire", OWNED, "--confirm", world.made.confirm, code=1)
    assert (ran["code"], ran["path"]) == (UNUSABLE, str(receipt))
    assert receipt.read_bytes() == before
    assert [path.name for path in files(world, "receipt")] == [receipt.name]


def no_folder_sync(monkeypatch, number):
    """Let every sync of a folder fail so."""
    real = os.fsync

    def sync(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", sync)


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_where_no_folder_can_be_synced_it_is_done_with_a_remark(world, monkeypatch, number):
    """F-087."""
    no_folder_sync(monkeypatch, number)
    witnessed = world.document("witness", code=0)
    assert "sync_unconfirmed" in {one["code"] for one in witnessed["report"]["findings"]}
    done = world.retire(0)
    remarked = [one.get("path") for one in done["report"]["findings"] if one["code"] == "sync_unconfirmed"]
    assert {str(files(world, "intent")[0]), str(files(world, "receipt")[0])} < {*remarked}
    assert len(remarked) == 4


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS, errno.EBADF])
def test_any_other_failure_of_a_folder_s_sync_ends_the_command(world, monkeypatch, number):
    """F-087."""
    no_folder_sync(monkeypatch, number)
    assert world.document("witness", code=1)["code"] == "write_failed"
    assert "receipt_unavailable" in codes(world.retire(4))
    assert world.record.exists()


@pytest.mark.parametrize("how", ["a file", "a link"])
def test_a_folder_that_cannot_be_read_is_not_taken_for_an_empty_one(retired, how):
    path = folder(retired)
    path.rename(path.with_name("aside"))
    if how == "a file":
        path.write_bytes(b"")
    else:
        path.symlink_to("aside")
    document = retired.document("retire", OWNED, "--confirm", retired.made.confirm, code=3)
    assert document["code"] == "file_unreadable"
    assert retired.record.exists()


def test_without_faults_nothing_is_reported(retired):
    assert UNUSABLE not in codes(retired.retire(0))
