"""What is wrong with single entries of a lease store (leases.md sections 2, 3 and 14). Pure.

`judge_entry` names the findings of one entry; the store's verdict is made in `lease_judge.py`.
"""

from symbi_recover.core.codes import finding
from symbi_recover.core.findings import Finding
from symbi_recover.core.leases import EntryView
from symbi_recover.core.scalars import is_canonical_uuid
from symbi_recover.core.words import counted
from symbi_recover.read.evidence.locate import readable
from symbi_recover.read.evidence.opener import FileFacts
from symbi_recover.read.verify.lease_store import (
    ADMISSION,
    ENVIRONMENT_PREFIX,
    KNOWN,
    LOCK,
    MOST_HASHED,
    SOCKET,
    STAGING_NAMES,
    SUFFIX,
    WRITE_PREFIX,
    Entry,
    StoreSnapshot,
)
from symbi_recover.wire.lease_rules import canonical_uuid

YOUNG_NS = 60_000_000_000
"""Beside a running helper, records younger than this may be work in progress (section 9)."""


def is_temporary(entry: Entry) -> bool:
    """A record or environment that was being written."""
    return entry.decodable and entry.name.startswith((WRITE_PREFIX, ENVIRONMENT_PREFIX))


def is_record(entry: Entry) -> bool:
    """Something that the helper takes for a record."""
    return entry.decodable and entry.name.endswith(SUFFIX) and not is_temporary(entry)


def described(facts: FileFacts) -> str:
    """Type, owner, mode and links as words."""
    return f"{facts.kind} of uid {facts.uid}, mode {facts.mode:04o}, links {facts.links}"


def judge_entry(entry: Entry, snapshot: StoreSnapshot, uid: int) -> list[Finding]:
    """The findings of one entry.

    Args:
        entry: of `snapshot`.
        snapshot: the store.
        uid: the helper's account.
    """
    where = readable(f"{snapshot.path}/{entry.name}")
    if entry.unseen is not None:
        return _unseen(entry, where)
    if is_record(entry):
        return _record(entry, where, uid)
    if is_temporary(entry):
        return _temporary(entry, where, uid, snapshot)
    if entry.name == ADMISSION:
        return _admission(entry, where, uid, snapshot)
    if entry.name == LOCK and not entry.facts.private_to(uid):
        return [finding("lock_unsafe", described(entry.facts), path=where)]
    if entry.name == SOCKET:
        return _socket(entry, where, uid, snapshot)
    if entry.name in KNOWN or (entry.name.startswith("vm-") and is_canonical_uuid(entry.name[3:])):
        return []
    return [finding("entry_unknown", described(entry.facts), path=where)]


def _unseen(entry: Entry, where: str) -> list[Finding]:
    """What the helper must open may keep it from starting; anything else it ignores, whatever it is (section 3)."""
    message = f"it cannot be examined: {entry.unseen}"
    if is_record(entry) or is_temporary(entry) or entry.name in (LOCK, SOCKET, ADMISSION):
        code = "entry_unreadable"
    else:
        code = "staging_bad_entry" if entry.name in STAGING_NAMES else "entry_unknown"
    return [finding(code, message, path=where)]


def _record(entry: Entry, where: str, uid: int) -> list[Finding]:
    found = []
    facts = entry.facts
    named = is_canonical_uuid(entry.stem)
    if not named:
        code = "entry_not_uuid" if canonical_uuid(entry.stem) is None else "entry_noncanonical_name"
        found.append(finding(code, f"the name is {entry.name!r}", path=where))
    if facts.kind == "symbolic link":
        found.append(finding("entry_is_link", "a symbolic link", path=where))
    elif facts.kind == "FIFO" and named:
        found.append(finding("entry_hangs_helper", "a FIFO under a record's name", path=where))
    elif facts.kind != "file":
        found.append(finding("entry_not_regular", f"a {facts.kind}", path=where))
    elif not facts.private_to(uid):
        message = f"{described(facts)}; it must belong to uid {uid} alone, mode 0600, with one link"
        found.append(finding("entry_not_private", message, path=where))
    if entry.unstable:
        found.append(
            finding("record_unstable", "replaced or changed three times while being read", path=where)
        )
    elif entry.unread is not None:
        found.append(finding("entry_unreadable", entry.unread, path=where))
    if entry.reading is not None:
        found += [finding(f.code, f.message, path=where, start=f.offset) for f in entry.reading.faults]
        if entry.reading.record is not None:
            found += [
                finding(d.code, d.message, path=where, start=d.offset) for d in entry.reading.deviations
            ]
    return found


def _temporary(entry: Entry, where: str, uid: int, snapshot: StoreSnapshot) -> list[Finding]:
    if not entry.facts.private_to(uid):
        return [finding("temp_unsafe", described(entry.facts), path=where)]
    helper = snapshot.helper
    fresh = snapshot.now_ns - entry.facts.mtime_ns <= YOUNG_NS
    if helper.supervises or (helper.state == "unknown" and fresh):
        return []
    if entry.name.startswith(ENVIRONMENT_PREFIX):
        return [finding("environment_leftover", counted(entry.facts.size, "byte"), path=where)]
    record = entry.reading.record if entry.reading else None
    said = f"a record of lease {record.lease} in phase {record.phase}" if record else "no complete record"
    return [finding("temp_leftover", f"it holds {said}", path=where)]


def _admission(entry: Entry, where: str, uid: int, snapshot: StoreSnapshot) -> list[Finding]:
    found = []
    if not entry.facts.private_to(uid):
        found.append(finding("admission_invalid", described(entry.facts), path=where))
    if entry.unread is not None or entry.unstable:
        found.append(finding("entry_unreadable", entry.unread or "it changed while being read", path=where))
    if snapshot.admission is not None:
        found += [finding(f.code, f.message, path=where, start=f.offset) for f in snapshot.admission.faults]
        found += [
            finding(d.code, d.message, path=where, start=d.offset) for d in snapshot.admission.deviations
        ]
    return found


def _socket(entry: Entry, where: str, uid: int, snapshot: StoreSnapshot) -> list[Finding]:
    # A managed host's profile may name another client account, which the directory does not record.
    if entry.facts.kind != "socket" or (uid and entry.facts.uid != uid):
        return [finding("socket_unexpected", described(entry.facts), path=where)]
    if snapshot.helper.state == "absent":
        return [finding("stale_socket", "no process holds the helper's lock", path=where)]
    return []


def view_of(entry: Entry, found: list[Finding]) -> EntryView:
    """An entry as the report shows it."""
    facts = entry.facts
    record = entry.reading.record if entry.reading else None
    lease = record.lease if record else entry.stem if is_canonical_uuid(entry.stem) else None
    codes = tuple(dict.fromkeys(one.code for one in found))
    if entry.unseen is not None:
        return EntryView(name=readable(entry.name), kind=facts.kind, lease=lease, codes=codes)
    return EntryView(
        name=readable(entry.name),
        kind=facts.kind,
        mode=f"{facts.mode:04o}",
        uid=facts.uid,
        links=facts.links,
        size=facts.size,
        mtime_ns=facts.mtime_ns,
        ctime_ns=facts.ctime_ns,
        sha256=entry.sha256,
        lease=lease,
        codes=codes,
    )


def why_no_digest(entry: Entry) -> str | None:
    """Why a regular file that must be described has no digest; None if it has one, or must not have one."""
    if entry.sha256 is not None or entry.facts.kind != "file" or entry.name.startswith(ENVIRONMENT_PREFIX):
        return None
    if entry.unread is not None or entry.unstable:
        return entry.unread or "changed while being read"
    return f"larger than {MOST_HASHED} bytes"
