"""The writer re-creates every worked example of the format texts byte for byte."""

import hashlib
from pathlib import Path
from typing import Any

from tests.support.writer import effects, events, inference
from tests.support.writer.claim import (
    RESOLUTION_PREFIX,
    claim_name,
    open_invocation,
    resolution_receipt,
    review,
    snapshot,
)
from tests.support.writer.journal import JournalWriter
from tests.support.writer.project import Project
from tests.support.writer.publication import RECOVERY_PREFIX, intent, publication_receipt, receipt_name
from tests.support.writer.text import PUBLICATION, SEED, compact, digest

PUBLIC_KEY = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"
EXAMPLE_AGENT = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"
EXAMPLE_RUN = "99999999-8888-4777-8666-555555555555"
CLAIM_HASH = "4171f969883d66bbe4489a98223ba315841d5fb91c8364be71b1906a9e7db93f"


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def started_journal() -> JournalWriter:
    journal = JournalWriter()
    journal.append(events.started(), timestamp="2026-01-02T03:04:05.000000006Z")
    return journal


def example_invocation(**fields: Any) -> Any:
    project = Project(Path("/srv/project"), SEED)
    return open_invocation(project, "fixture:v1", agent_id=EXAMPLE_AGENT, run_id=EXAMPLE_RUN, **fields)


def example_publication() -> Any:
    invocation = example_invocation(start=False)
    journal = invocation.journal
    config = {
        "context_token_budget": 32000,
        "default_recovery": "DeadLetter",
        "max_concurrent_tools": 5,
        "max_iterations": 25,
        "max_total_tokens": 100000,
        "timeout": {"nanos": 0, "secs": 300},
        "tool_timeout": {"nanos": 0, "secs": 30},
    }
    made = intent(
        PUBLICATION,
        "/srv/project/data",
        [2049, 131073],
        [2049, 131074],
        path="out/report.txt",
        content=b"verified-output",
    )
    dispatch = events.tool_dispatch_started(
        "12121212-3434-4565-8787-909090909090", "call", "fp", run_key="run"
    )
    prepared = effects.tool_effect(effects.file_publication_prepared(made), "fp", run_key="run")
    journal.append(invocation.started(config=config), timestamp="2026-10-28T09:00:00Z")
    journal.append(dispatch, timestamp="2026-10-28T09:00:01Z")
    journal.append(prepared, timestamp="2026-10-28T09:00:02Z")
    return invocation, made


def test_the_complete_run_of_two_records_is_recreated():
    journal = started_journal()
    end = events.terminated(total_usage=events.usage(12, 3), duration=events.duration(2))
    journal.append(end, 1, timestamp="2026-01-02T03:04:06.500Z")
    assert journal.public_key == PUBLIC_KEY
    assert [len(line) for line in journal.lines] == [863, 554]
    assert sha(journal.data()) == "ff7bad32ebc19e4f239de9406d825a68c6b52c7b84fec4ec47516e7673744719"


def test_the_interrupted_run_with_an_open_dispatch_and_a_tail_is_recreated():
    journal = started_journal()
    event = events.tool_dispatch_started(
        call_id="call-1", fingerprint="sha256:f", run_key="k", tool_name="write"
    )
    line = journal.append(event, timestamp="2026-01-02T03:04:06.500Z")
    journal.tail()
    assert sha(line) == "1c470904baaca451af3b033740a74472b1a6694606cd06d7720ebcf80178a9f1"
    assert sha(journal.data()) == "4cf5c02095371cfb3779190495eab4bba9208898aa2d77ae72dcb16bdc66b3eb"


def test_the_unsettled_reservation_is_recreated():
    journal = started_journal()
    journal.append(inference.budget_opened(limit=1000), timestamp="2026-01-02T03:04:06.500Z")
    reserved = inference.reservation(
        ancestors=[inference.scope(1, 0, 400), inference.scope(0, None, 1000)],
        provider="p",
        model="m",
        request_hash="sha256:r",
        request_bytes=10,
    )
    journal.append(inference.budget_reservation_started(reserved), 1, timestamp="2026-01-02T03:04:07Z")
    assert [sha(line) for line in journal.lines[1:]] == [
        "97b24d0ea8ea870f4306eb5be4f7e96ef8bbc0b8b36ea6554743afa0f86c6de0",
        "fbd1d0b390af39d7ce57c0b8323ea293b862247034febe5319c71f719194394e",
    ]
    assert sha(journal.data()) == "c9cb1cead571df7532e3674495a5e50cc35cf82473f65379959bd2892878f0a3"


def test_the_claim_of_an_empty_journal_is_recreated():
    invocation = example_invocation(start=False)
    claim = invocation.records()
    assert claim_name("fixture:v1", invocation.id) == (
        "ea912c0720838dec4ea5b58b8e9006662d1410a0c1b018696f3eb9f873334efe"
    )
    assert len(claim) == 561
    assert sha(claim) == CLAIM_HASH
    torn = snapshot(invocation, claim + b'{"kind":"res', b"")
    assert digest(torn) == "sha256:f93d4701f1e6ab537d31a41e680e927d50638e940d4845098362c8e9ff18ea7f"


def test_the_resolution_receipt_is_recreated():
    invocation = example_invocation(start=False)
    seen = snapshot(invocation, invocation.records(), b"")
    assert digest(seen) == "sha256:501a6ac40574575d43fea67689da83b8aa77bd4d592d8cb8f19fb23b8522b0b4"
    made = resolution_receipt(
        SEED, seen, review(digest(seen)), operator_uid=1000, recorded_at="2026-10-28T09:30:00.250Z"
    )
    assert len(made) == 1205
    assert sha(made) == "4297e65f889726b7fd670b0f137b83e749a6773fa878d5601610d1ffdc2c5951"
    message = RESOLUTION_PREFIX + made[len('{"payload":') : made.index(b',"signature"')]
    assert sha(message) == "47b1882d2576633c1afaca39b4417d316d3ec1ce0a739f2eb0be5a3a4383af83"


def test_the_journal_with_a_publication_is_recreated():
    invocation, _ = example_publication()
    journal = invocation.journal
    assert [len(line) for line in journal.lines] == [858, 553, 863]
    assert sha(journal.data()) == "b9d5b9b5cc15953fafbe083f3a81e29f0bccc75fc28626c7da1ed2cb0ffff39a"
    seen = snapshot(invocation, invocation.records(), journal.data())
    assert digest(seen) == "sha256:575f92ce616f77f912bb1d131d5fda4654518455a6fa83e10e3353a2c67c3060"


def test_both_publication_receipts_are_recreated():
    invocation, made = example_publication()
    seen = snapshot(invocation, invocation.records(), invocation.journal.data())
    common = {"operator_uid": 1000, "recorded_at": "2026-10-28T09:31:00.000001Z"}
    ordered = publication_receipt(SEED, seen, made, **common)
    stock = publication_receipt(SEED, seen, made, order="stock", **common)
    assert receipt_name("fixture:v1", invocation.id, PUBLICATION) == (
        "f0d9cc09e652ff926bb2a70ed99015accc3b9be8f164981ac1e1adb96bbdb38c.publication.json"
    )
    assert [len(ordered), len(stock)] == [1387, 1387]
    assert sha(ordered) == "1a8fe66f6d2b7148a917b31504be6312d4926ecbccc88706d167afb471155e95"
    assert sha(stock) == "4b6defa694d1aaf521bbd852416129c7021eeff1903242f8c36e5eff48b01b00"
    message = RECOVERY_PREFIX + stock[len('{"payload":') : stock.index(b',"signature"')]
    assert sha(message) == "8fb18a1e6182cb2c71d93a6c2e939b6c9f1e73d502104780a6dad379ad76b0c7"
    subject = {
        "snapshot": seen,
        "publication": made,
        "created_files": [{n: made[n] for n in ("path", "bytes", "sha256")}],
    }
    assert len(compact(subject)) == 1156
