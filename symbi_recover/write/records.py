"""Removes a lease record, last of all acts: the same file as examined, or none (leases.md sections 5 and 18.6)."""

import os

from symbi_recover.core.errors import RefusedError, StaleError, UnexaminedError
from symbi_recover.core.lease_records import RECORD_LIMIT
from symbi_recover.core.witness import RecordIdentity
from symbi_recover.read.evidence.opener import OpenedFile, is_there, system_text
from symbi_recover.wire.retirement import digest
from symbi_recover.write.atomic import changing, sync_folder
from symbi_recover.write.supervisor import HeldStore


def is_gone(held: HeldStore, lease: str) -> bool:
    """Whether there certainly is nothing under a record's name.

    Raises:
        UnexaminedError: that cannot be told.
    """
    return not is_there(f"{lease}.json", folder=held.folder, path=f"{held.path}/{lease}.json")


def need_writable(held: HeldStore) -> None:
    """Make sure that a record could be removed, as far as that can be known before anything is done.

    Raises:
        RefusedError: `write_failed`.
    """
    if not os.access(".", os.W_OK | os.X_OK, dir_fd=held.folder, effective_ids=True):
        message = "no record can be removed here: the directory is read-only, or the right is missing"
        raise RefusedError("write_failed", message, path=held.path)


def read_same(held: HeldStore, record: RecordIdentity) -> bytes:
    """The record's bytes, if it still is the file that was examined.

    Raises:
        StaleError: `record_changed`.
    """
    name = f"{record.lease}.json"
    try:
        with OpenedFile.open(name, folder=held.folder) as file:
            data = file.read(RECORD_LIMIT)
            facts = file.facts
            now = RecordIdentity(
                lease=record.lease,
                sha256=digest(data),
                size=facts.size,
                inode=facts.inode,
                mtime_ns=facts.mtime_ns,
                ctime_ns=facts.ctime_ns,
            )
            if now == record and facts.kind == "file" and facts.links == 1 and file.unchanged():
                return data
    except UnexaminedError as error:
        raise StaleError("record_changed", error.message, path=f"{held.path}/{name}") from error
    raise StaleError(
        "record_changed", "the record is not what it was at the first read", path=f"{held.path}/{name}"
    )


def unlink_record(held: HeldStore, record: RecordIdentity) -> bool:
    """Remove a record; False if the file system cannot confirm that this reached the disk.

    Raises:
        StaleError: `record_changed`, `lock_replaced`; nothing was done.
        RefusedError: `write_failed`, nothing was done; or `sync_failed`, the name is gone but perhaps not for good.
    """
    name = f"{record.lease}.json"
    held.check()
    read_same(held, record)
    with changing(f"{held.path}/{name}"):
        os.unlink(name, dir_fd=held.folder)
    try:
        return sync_folder(held.folder)
    except OSError as error:
        raise RefusedError("sync_failed", system_text(error), path=held.path) from error
