"""The entries of an invocation store by their names, and what is wrong with the store as a whole (invocation.md 4, 14).

Nothing is opened: names, kinds, owners, modes, links and sizes are enough.
"""

import os
import re
import stat

from msgspec import Struct

from symbi_recover.core.claims import STORE_BYTE_LIMIT, STORE_ENTRY_LIMIT
from symbi_recover.core.codes import finding
from symbi_recover.core.findings import Finding
from symbi_recover.core.scalars import CANONICAL_UUID
from symbi_recover.core.words import counted
from symbi_recover.read.evidence.locate import GOVERNED, STORE_LOCK
from symbi_recover.read.evidence.opener import FOLDER_FLAGS, FileFacts, examining, facts_of
from symbi_recover.read.evidence.store import InvocationStore, shown
from symbi_recover.wire.intent import CANDIDATE_PREFIX

_NAMES = re.compile(
    r"(?P<claim>[0-9a-f]{64})\.jsonl|(?P<resolution>[0-9a-f]{64})\.resolved\.json|"
    r"(?P<publication>[0-9a-f]{64})\.publication\.json|(?P<temporary>\.tmp[A-Za-z0-9]{6})"
)
_JOURNAL = re.compile(rf"{CANONICAL_UUID}\.{CANONICAL_UUID}\.jsonl")
_NEARLY_FULL = 0.9


class Entries(Struct, frozen=True, kw_only=True):
    """What the names in a store say."""

    claims: tuple[str, ...]
    """File names, sorted; `resolutions` and `publications` are sets of file names."""
    resolutions: frozenset[str]
    publications: frozenset[str]
    count: int
    bytes: int
    findings: tuple[Finding, ...]


def read_entries(store: InvocationStore) -> Entries:
    """List the store once.

    Raises:
        UnexaminedError: the folder cannot be listed.
    """
    found: dict[str, set[str]] = {
        "claim": set(),
        "resolution": set(),
        "publication": set(),
        "temporary": set(),
    }
    inodes: dict[tuple[int, int], list[str]] = {}
    findings: list[Finding] = []
    count = size = 0
    with examining(store.path), os.scandir(store.folder) as entries:
        for entry in entries:
            if entry.name == STORE_LOCK:
                continue
            try:
                facts = facts_of(entry.stat(follow_symlinks=False))
            except FileNotFoundError:
                continue
            count += 1
            size += facts.size
            match = _NAMES.fullmatch(entry.name)
            if match is not None and match.lastgroup is not None:
                found[match.lastgroup].add(entry.name)
            if facts.links > 1 and facts.kind == "file":
                inodes.setdefault((facts.device, facts.inode), []).append(entry.name)
            findings += _entry_findings(f"{store.path}/{entry.name}", facts, match)
    findings += _linked_receipts(store.path, inodes)
    findings += _capacity(store.path, count, size)
    return Entries(
        claims=tuple(sorted(found["claim"])),
        resolutions=frozenset(found["resolution"]),
        publications=frozenset(found["publication"]),
        count=count,
        bytes=size,
        findings=tuple(sorted(findings, key=lambda item: (item.path or "", item.code))),
    )


def _entry_findings(path: str, facts: FileFacts, match: re.Match[str] | None) -> list[Finding]:
    findings = []
    if not facts.private:
        findings.append(finding("store_entry_stray", shown(facts), path=path))
    if match is None:
        findings.append(finding("store_entry_unknown", shown(facts), path=path))
    elif match.lastgroup == "temporary":
        findings.append(finding("store_temporary_left", counted(facts.size, "byte"), path=path))
    return findings


def _linked_receipts(path: str, inodes: dict[tuple[int, int], list[str]]) -> list[Finding]:
    return [
        finding("store_receipt_linked", " and ".join(sorted(names)), path=path)
        for names in inodes.values()
        if any(name.startswith(".tmp") for name in names) and any(name.endswith(".json") for name in names)
    ]


def _capacity(path: str, count: int, size: int) -> list[Finding]:
    if count < STORE_ENTRY_LIMIT * _NEARLY_FULL and size < STORE_BYTE_LIMIT * _NEARLY_FULL:
        return []
    used = f"{count} of {STORE_ENTRY_LIMIT} entries, {size} of {STORE_BYTE_LIMIT} bytes"
    return [finding("store_capacity", used, path=path)]


def list_journals(store: InvocationStore) -> frozenset[str]:
    """The names of run journals in the project; none where the folder cannot be listed or is no real folder."""
    try:
        folder = os.open(GOVERNED, FOLDER_FLAGS, dir_fd=store.symbiont)
    except OSError:
        return frozenset()
    try:
        return frozenset(name for name in os.listdir(folder) if _JOURNAL.fullmatch(name))
    except OSError:
        return frozenset()
    finally:
        os.close(folder)


def candidates_in(folder: str) -> frozenset[str]:
    """The names of candidate files in a folder that publications name; none where it cannot be listed."""
    try:
        status = os.lstat(folder)
        if not stat.S_ISDIR(status.st_mode):
            return frozenset()
        with os.scandir(folder) as entries:
            return frozenset(entry.name for entry in entries if entry.name.startswith(CANDIDATE_PREFIX))
    except (OSError, ValueError):
        return frozenset()
