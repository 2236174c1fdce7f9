"""The writer re-creates the runtime's own evidence byte for byte.

Each journal, claim, receipt and lease record of the archive is parsed with `json`, and its facts are fed back
through the writer with the key beside it. What cannot be re-created is listed here, with the reason; the lists
are exact, so a line that starts or stops being re-creatable fails a test.
"""

import json
from pathlib import PurePosixPath
from typing import Any

import pytest

from tests.support import evidence
from tests.support.writer import lease
from tests.support.writer.claim import (
    audit_record,
    claim_name,
    claim_record,
    open_invocation,
    resolution_receipt,
    result_record,
    review,
    snapshot,
)
from tests.support.writer.journal import JournalWriter
from tests.support.writer.project import Project
from tests.support.writer.publication import intent, publication_receipt, receipt_name
from tests.support.writer.text import compact, digest

SUITE = "suites/symbi_runtime"
NOT_A_RECORD = "the suite wrote the line over the file; it is no record"
FOREIGN_JOURNALS = {
    f"{SUITE}/.tmpbTlfyl/.symbiont/governed/4d18bc1a-87ae-4221-8168-fe5ccea91c57"
    ".1ba4168f-c5c3-425e-a893-f79839fbc948.jsonl": NOT_A_RECORD,
}
FOREIGN_CLAIMS = {
    f"{SUITE}/{name}.jsonl": NOT_A_RECORD
    for name in (
        ".tmpFEZKWr/.symbiont/invocations/018621da7b5cfbec034b83ad30af508aee09df787239e2bc25358123d14a3582",
        ".tmpVaVQ7t/.symbiont/invocations/5de870520515400ec191199de04ba9548b004f834c9fc3c963b338ccf6b145ff",
        ".tmpVaVQ7t/.symbiont/invocations/a6a141572770901b97611f6331210272bafbcf18acdd0e19e2bf792459c997f0",
        ".tmpVaVQ7t/.symbiont/invocations/f3605d793720c3e20ef77eca6771ee69b1be4e659cc4acd2d0f47a054f35119e",
    )
}
MOVED_JOURNAL = (
    f"{SUITE}/.tmpvIskyl/.symbiont/governed/1ffc3eaf-057a-4818-b2e6-ca9c6d4d9bd2"
    ".548ddcbb-6191-4e33-8dae-b3e763e96c32.jsonl"
)
"""A journal of another principal that the suite put under this name; its lines are honest."""

FOREIGN_RECEIPTS = {
    "suites/file_publication_recovery/.tmpIBjDDY/.symbiont/invocations/"
    "6125357f42042c6faebc64e72a483429fcd81faefb5b9fc54a05ad085d90ee59.publication.json": (
        "the suite set the signature to zeros"
    ),
}


def files(suffix: str, folder: str = "") -> dict[str, bytes]:
    return {
        name: member.data
        for name, member in evidence.members().items()
        if member.kind == "file" and name.endswith(suffix) and folder in name
    }


def seed_of(name: str) -> bytes:
    """Return the signing seed of the project that a file belongs to."""
    for parent in PurePosixPath(name).parents:
        for folder in (parent, parent / "governed", parent / ".symbiont" / "governed"):
            key = evidence.members().get(str(folder / "audit-signing.key"))
            if key:
                return key.data
    raise LookupError(name)


JOURNALS = files(".jsonl", "/governed/") | files("journal-snapshot.jsonl")
CLAIMS = files(".jsonl", "/invocations/")
RECEIPTS = files(".resolved.json") | files(".publication.json")
LEASES = files(".json", "leases/")


def inspections() -> list[evidence.Check]:
    """Return the runtime's answers to `invocation inspect` that have a snapshot."""
    return [check for check in evidence.checks("invocation inspect") if check.stdout]


def rewritten_journal(name: str, data: bytes) -> bytes:
    """Return the journal made again from what its lines say; sequence and chain are the writer's own."""
    *lines, tail = data.split(b"\n")
    payloads = [json.loads(line)["payload"] for line in lines]
    journal = JournalWriter(seed_of(name))
    for payload in payloads:
        entry = payload["entry"]
        journal.agent_id, journal.run_id = entry["agent_id"], payload["run_id"]
        journal.append(entry["event"], entry["iteration"], timestamp=entry["timestamp"])
    journal.tail(tail)
    return journal.data()


def rewritten_claim(data: bytes) -> bytes:
    *lines, tail = data.split(b"\n")
    made = b""
    for value in map(json.loads, lines):
        kind = value.pop("kind")
        if kind == "claim":
            names = ("scope", "id", "request_hash", "agent_id", "run_id")
            given = [value.pop(name) for name in names]
            assert value.pop("version") == (2 if "admission" in value else 1)
            made += claim_record(*given, **value)
        else:
            made += audit_record(value["reference"]) if kind == "audit" else result_record(value["payload"])
    return made + tail


def rewritten_receipt(name: str, data: bytes) -> bytes:
    payload = json.loads(data)["payload"]
    seen = payload["snapshot"]
    common: dict[str, Any] = {
        "operator_uid": payload["operator_uid"],
        "recorded_at": payload["recorded_at"],
    }
    if "review" in payload:
        said = dict(payload["review"])
        again = review(said.pop("snapshot_hash"), said.pop("outcome"), **said)
        return resolution_receipt(seed_of(name), seen, again, **common)
    said = dict(payload["publication"])
    identities = [said.pop(key) for key in ("publication_id", "parent_path", "parent_identity")]
    again = intent(
        *identities, said.pop("candidate_identity"), path=said.pop("path"), content=b"verified-output"
    )
    assert {key: again[key] for key in said} == said
    return publication_receipt(seed_of(name), seen, again, order="stock", **common)


def differing(again: dict[str, bytes], original: dict[str, bytes]) -> set[str]:
    return {name for name, data in original.items() if again.get(name) != data}


def attempt(made: Any, *given: Any) -> bytes | None:
    try:
        return bytes(made(*given))
    except (json.JSONDecodeError, LookupError, TypeError):
        return None


def test_every_journal_of_the_runtime_is_recreated_or_listed():
    again = {name: attempt(rewritten_journal, name, data) for name, data in JOURNALS.items()}
    assert (len(JOURNALS), sum(data.count(b"\n") for data in JOURNALS.values())) == (84, 599)
    assert differing(again, JOURNALS) == set(FOREIGN_JOURNALS)
    assert {JOURNALS[name] for name in FOREIGN_JOURNALS} == {b"invalid\n"}


def test_every_claim_of_the_runtime_is_recreated_or_listed():
    again = {name: attempt(rewritten_claim, data) for name, data in CLAIMS.items()}
    assert len(CLAIMS) == 43
    assert differing(again, CLAIMS) == set(FOREIGN_CLAIMS)
    assert {CLAIMS[name] for name in FOREIGN_CLAIMS} == {b"{}\n", b"invalid claim\n"}


def test_every_receipt_of_the_runtime_is_recreated_or_listed():
    again = {name: attempt(rewritten_receipt, name, data) for name, data in RECEIPTS.items()}
    assert len(RECEIPTS) == 7
    assert differing(again, RECEIPTS) == set(FOREIGN_RECEIPTS)


def test_a_listed_receipt_differs_only_in_its_signature():
    for name in FOREIGN_RECEIPTS:
        data = RECEIPTS[name]
        assert rewritten_receipt(name, data)[:-130] == data[:-130]
        assert data[-130:] == b"0" * 128 + b'"}'


def test_the_names_of_the_runtime_are_recreated():
    for name, data in CLAIMS.items():
        if name not in FOREIGN_CLAIMS:
            claim = json.loads(data.split(b"\n")[0])
            assert PurePosixPath(name).stem == claim_name(claim["scope"], claim["id"])
    for name, data in JOURNALS.items():
        if data.count(b"\n") and "/governed/" in name and name not in FOREIGN_JOURNALS:
            payload = json.loads(data.split(b"\n")[0])["payload"]
            journal = JournalWriter(agent_id=payload["entry"]["agent_id"], run_id=payload["run_id"])
            assert (PurePosixPath(name).name == journal.name) is (name != MOVED_JOURNAL)
    for name, data in RECEIPTS.items():
        payload = json.loads(data)["payload"]
        if "publication" in payload:
            scope, invocation_id = payload["snapshot"]["scope"], payload["snapshot"]["id"]
            made = receipt_name(scope, invocation_id, payload["publication"]["publication_id"])
            assert PurePosixPath(name).name == made


def test_the_reviewed_hash_of_each_resolution_is_the_digest_of_its_snapshot():
    payloads = [json.loads(data)["payload"] for name, data in RECEIPTS.items() if ".resolved" in name]
    assert payloads
    for payload in payloads:
        assert payload["review"]["snapshot_hash"] == digest(payload["snapshot"])


@pytest.mark.parametrize("check", inspections(), ids=lambda check: f"{check.scope}-{check.id}")
def test_the_snapshot_that_the_runtime_printed_is_recreated(check):
    printed = json.loads(check.stdout)
    facts = printed["snapshot"]
    project = Project(evidence.PLACE / check.project, seed_of(f"{check.project}/.symbiont/governed/key"))
    invocation = open_invocation(
        project,
        check.scope,
        check.id,
        agent_id=facts["agent_id"],
        run_id=facts["audit"]["run_id"],
        request_hash=facts["request_hash"],
        start=False,
    )
    claim, journal = (
        evidence.members()[str(path.relative_to(evidence.PLACE))].data
        for path in (invocation.claim_path, invocation.journal_path)
    )
    made = snapshot(invocation, claim, journal)
    assert list(made.items()) == list(facts.items())
    assert digest(made) == printed["snapshot_hash"]


def rewritten_lease(data: bytes) -> bytes:
    value = json.loads(data)
    return compact(lease.record(value.pop("lease"), value.pop("state"), **value))


@pytest.mark.parametrize("name", LEASES)
def test_the_lease_records_of_the_supervisor_are_recreated(name):
    assert rewritten_lease(LEASES[name]) == LEASES[name]


def test_the_limits_of_the_supervisor_are_recreated():
    limits = files("admission.conf")
    assert limits
    assert set(limits.values()) == {compact(lease.ADMISSION)}
