"""Receipts: the worked examples of the formats, and the text that signatures cover."""

import hashlib
import json
from typing import Any

import pytest

from symbi_recover.core.claims import PUBLICATION_PREFIX, RESOLUTION_PREFIX
from symbi_recover.wire import canonical, ed25519, receipt
from symbi_recover.wire.strictjson import JsonError
from tests.support.writer import claim as writer
from tests.support.writer import publication
from tests.support.writer.text import SEED, public_key

KEY = bytes.fromhex(public_key(SEED))
AUDIT = {
    "run_id": "99999999-8888-4777-8666-555555555555",
    "path": "/srv/project/.symbiont/governed/aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee.99999999-8888-4777-8666-555555555555.jsonl",
    "public_key": KEY.hex(),
}
SNAPSHOT: dict[str, Any] = {
    "scope": "fixture:v1",
    "id": "11111111-2222-4333-8444-555555555555",
    "request_hash": "sha256:a523fb6573a1c19cba0e9faffd2ee9e167a6bb65933bcc0f2b8f1ecf572208af",
    "agent_id": "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee",
    "claim_sha256": "4171f969883d66bbe4489a98223ba315841d5fb91c8364be71b1906a9e7db93f",
    "journal_sha256": hashlib.sha256().hexdigest(),
    "audit": AUDIT,
}
SNAPSHOT_HASH = "sha256:501a6ac40574575d43fea67689da83b8aa77bd4d592d8cb8f19fb23b8522b0b4"
INTENT = {
    "publication_id": "0f0e0d0c-0b0a-4908-8706-050403020100",
    "path": "out/report.txt",
    "parent_path": "/srv/project/data",
    "parent_identity": [2049, 131073],
    "candidate_name": ".symbi-publish-0f0e0d0c-0b0a-4908-8706-050403020100",
    "candidate_identity": [2049, 131074],
    "target_name": "report.txt",
    "bytes": 15,
    "sha256": "69188ece3b5874fdca30429af10e9c357002ac68e48883f29d825d51501664b0",
}


def resolution(**fields: Any) -> bytes:
    return writer.resolution_receipt(
        SEED,
        SNAPSHOT,
        writer.review(SNAPSHOT_HASH),
        operator_uid=1000,
        recorded_at="2026-10-28T09:30:00.250Z",
        **fields,
    )


def recovery(order: str) -> bytes:
    snapshot = SNAPSHOT | {
        "journal_sha256": "b9d5b9b5cc15953fafbe083f3a81e29f0bccc75fc28626c7da1ed2cb0ffff39a"
    }
    return publication.publication_receipt(
        SEED, snapshot, INTENT, order=order, operator_uid=1000, recorded_at="2026-10-28T09:31:00.000001Z"
    )


def test_the_worked_resolution_receipt_is_read_and_written_byte_for_byte() -> None:
    data = resolution()
    assert (
        hashlib.sha256(data).hexdigest() == "4297e65f889726b7fd670b0f137b83e749a6773fa878d5601610d1ffdc2c5951"
    )
    parsed = receipt.parse_resolution(data)
    signed = receipt.signed_text(parsed.payload)
    assert signed.startswith(RESOLUTION_PREFIX)
    assert (
        hashlib.sha256(signed).hexdigest()
        == "47b1882d2576633c1afaca39b4417d316d3ec1ce0a739f2eb0be5a3a4383af83"
    )
    assert canonical.digest(parsed.payload.snapshot) == SNAPSHOT_HASH
    assert receipt.receipt_text(parsed.payload, bytes.fromhex(parsed.signature)) == data
    assert receipt.stored_as_written(data, parsed)
    assert ed25519.verify(KEY, signed, bytes.fromhex(parsed.signature))


@pytest.mark.parametrize(
    ("order", "digest"),
    [
        ("sorted", "1a8fe66f6d2b7148a917b31504be6312d4926ecbccc88706d167afb471155e95"),
        ("stock", "4b6defa694d1aaf521bbd852416129c7021eeff1903242f8c36e5eff48b01b00"),
    ],
)
def test_the_worked_publication_receipts_verify_in_both_member_orders(order: str, digest: str) -> None:
    data = recovery(order)
    assert hashlib.sha256(data).hexdigest() == digest
    parsed = receipt.parse_publication(data)
    signed = receipt.signed_text(parsed.payload)
    assert signed.startswith(PUBLICATION_PREFIX)
    assert ed25519.verify(KEY, signed, bytes.fromhex(parsed.signature))
    assert receipt.receipt_text(parsed.payload, bytes.fromhex(parsed.signature)) == data


@pytest.mark.parametrize(
    "spelling",
    ["2026-10-28T09:30:00.250+00:00", "2026-10-28T09:30:00.250000Z", "2026-10-28 11:30:00.25+02:00"],
)
def test_a_time_in_another_spelling_still_verifies(spelling: str) -> None:
    data = resolution().replace(b"2026-10-28T09:30:00.250Z", spelling.encode())
    parsed = receipt.parse_resolution(data)
    assert ed25519.verify(KEY, receipt.signed_text(parsed.payload), bytes.fromhex(parsed.signature))
    assert parsed.payload.recorded_at == "2026-10-28T09:30:00.250Z"
    assert not receipt.stored_as_written(data, parsed)


def test_other_spacing_and_member_order_verify_and_are_noticed() -> None:
    value = json.loads(resolution())
    data = (
        json.dumps({"signature": value["signature"], "payload": value["payload"]}, indent=1).encode() + b"\n"
    )
    parsed = receipt.parse_resolution(data)
    assert ed25519.verify(KEY, receipt.signed_text(parsed.payload), bytes.fromhex(parsed.signature))
    assert not receipt.stored_as_written(data, parsed)


def test_floats_in_created_files_are_written_as_the_runtime_does() -> None:
    value = json.loads(recovery("sorted"))
    value["payload"]["created_files"] = [1e16, 1e-7, 0.00001, {"b": 1.5, "a": -0.0}]
    text = receipt.payload_text(receipt.parse_publication(json.dumps(value).encode()).payload)
    assert b'"created_files":[1e+16,1e-7,0.00001,{"b":1.5,"a":-0.0}]' in text


def test_unknown_members_are_refused_except_inside_the_audit_reference() -> None:
    value = json.loads(resolution())
    value["payload"]["snapshot"]["audit"]["more"] = 1
    receipt.parse_resolution(json.dumps(value).encode())
    for path in ([], ["payload"], ["payload", "snapshot"], ["payload", "review"]):
        changed = json.loads(resolution())
        place = changed
        for name in path:
            place = place[name]
        place["more"] = 1
        with pytest.raises(JsonError):
            receipt.parse_resolution(json.dumps(changed).encode())


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"\0" * 64, resolution()[:-1], resolution()[:-70], resolution() + b"x", b"[]", b"null"],
)
def test_an_empty_cut_or_zeroed_receipt_is_no_receipt(data: bytes) -> None:
    with pytest.raises(JsonError):
        receipt.parse_resolution(data)
