"""The runtime's recorded reconciliations: the answers, what they leave on disk, and its receipts made anew.

The answers themselves are compared in `test_invocation_cases.py`; here it is that a refusal leaves no trace, and that
our writer gives the runtime's own receipts byte for byte, from nothing but their fields and the key.
"""

import hashlib
import json
from pathlib import Path

import pytest

from symbi_recover.core.claims import PUBLICATION_PREFIX, RESOLUTION_PREFIX
from symbi_recover.wire.receipt import parse_publication, parse_resolution, payload_text, receipt_text
from symbi_recover.write.sign import Signer
from tests.support import evidence
from tests.support.cases import INVOCATION_PLACE, invocation_cases, laid_out
from tests.support.cli import run
from tests.support.writer.text import SEED

CASES = {name: case for name, case in invocation_cases().items() if case["command"] == "reconcile"}


@pytest.mark.parametrize("name", CASES)
def test_a_recorded_reconciliation_changes_nothing_unless_it_publishes(name: str) -> None:
    case = CASES[name]
    with laid_out(case) as project:
        before = evidence.fingerprint(project)
        arguments = ["--project", project, "--scope", case["scope"], "--id", case["invocation"]]
        ran = run("invocation", "reconcile", *arguments, "--review", INVOCATION_PLACE / "review.json")
        assert ran.rc == case["rc"], ran.err.decode()
        assert evidence.fingerprint(project) == before


def test_all_cases_are_tried() -> None:
    assert len(CASES) == 21


def receipts(suffix: str) -> list[tuple[str, bytes]]:
    return [(name, m.data) for name, m in evidence.members().items() if name.endswith(suffix) and m.data]


def seed_beside(name: str) -> bytes | None:
    """The key of the project that a receipt lies in."""
    key = f"{Path(name).parents[1]}/governed/audit-signing.key"
    member = evidence.members().get(key)
    return None if member is None else member.data


@pytest.mark.parametrize("name", [name for name, _ in receipts(".resolved.json")])
def test_a_resolution_of_the_runtime_is_made_anew_byte_for_byte(name: str) -> None:
    data = evidence.members()[name].data
    seed = seed_beside(name)
    if seed is None:
        pytest.skip("not tried: the key of this project was not packed")
    payload = parse_resolution(data).payload
    if Signer(seed).public_key.hex() != payload.snapshot.audit.public_key:
        pytest.skip("not tried: this project's key was exchanged by the suite that left it")
    made = receipt_text(payload, Signer(seed).sign(RESOLUTION_PREFIX + payload_text(payload)))
    if json.loads(made)["signature"] != json.loads(data)["signature"]:
        pytest.skip("not tried: this receipt was tampered with by the suite that left it")
    assert made == data


@pytest.mark.parametrize("name", [name for name, _ in receipts(".publication.json")])
def test_a_publication_receipt_of_the_runtime_is_made_anew_byte_for_byte(name: str) -> None:
    data = evidence.members()[name].data
    seed = seed_beside(name)
    if seed is None:
        pytest.skip("not tried: the key of this project was not packed")
    payload = parse_publication(data).payload
    if Signer(seed).public_key.hex() != payload.snapshot.audit.public_key:
        pytest.skip("not tried: this project's key was exchanged by the suite that left it")
    made = receipt_text(payload, Signer(seed).sign(PUBLICATION_PREFIX + payload_text(payload)))
    if json.loads(made)["signature"] != json.loads(data)["signature"]:
        pytest.skip("not tried: this receipt was tampered with by the suite that left it")
    assert made == data


def test_most_of_the_runtimes_receipts_could_be_made_anew() -> None:
    made = {".resolved.json": 0, ".publication.json": 0}
    for suffix in made:
        for name, data in receipts(suffix):
            seed = seed_beside(name)
            parse = parse_resolution if suffix == ".resolved.json" else parse_publication
            prefix = RESOLUTION_PREFIX if suffix == ".resolved.json" else PUBLICATION_PREFIX
            payload = parse(data).payload
            if seed is not None:
                signature = Signer(seed).sign(prefix + payload_text(payload))
                made[suffix] += receipt_text(payload, signature) == data
    assert all(made.values()), made


EXAMPLE_A = (
    '{"payload":{"version":1,"snapshot":{"scope":"fixture:v1","id":"11111111-2222-4333-8444-555555555555",'
    '"request_hash":"sha256:a523fb6573a1c19cba0e9faffd2ee9e167a6bb65933bcc0f2b8f1ecf572208af",'
    '"agent_id":"aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee",'
    '"claim_sha256":"4171f969883d66bbe4489a98223ba315841d5fb91c8364be71b1906a9e7db93f",'
    '"journal_sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",'
    '"audit":{"run_id":"99999999-8888-4777-8666-555555555555","path":"/srv/project/.symbiont/governed/'
    'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee.99999999-8888-4777-8666-555555555555.jsonl",'
    '"public_key":"03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"}},'
    '"review":{"snapshot_hash":"sha256:501a6ac40574575d43fea67689da83b8aa77bd4d592d8cb8f19fb23b8522b0b4",'
    '"outcome":"no_effects","rationale":"Journal is empty and no worker was started.",'
    '"evidence":[{"reference":"case-17/worker-list.txt",'
    '"sha256":"abababababababababababababababababababababababababababababababab"}],"effects_stopped":true},'
    '"operator_uid":1000,"recorded_at":"2026-10-28T09:30:00.250Z"},"signature":"SIGNATURE"}'
)


def test_the_worked_example_of_the_format_comes_out_with_its_hash() -> None:
    payload = parse_resolution(EXAMPLE_A.encode()).payload
    made = receipt_text(payload, Signer(SEED).sign(RESOLUTION_PREFIX + payload_text(payload)))
    assert len(made) == 1205
    assert (
        hashlib.sha256(made).hexdigest() == "4297e65f889726b7fd670b0f137b83e749a6773fa878d5601610d1ffdc2c5951"
    )
