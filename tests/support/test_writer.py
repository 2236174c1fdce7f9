"""The writer's own rules: text, records, events, projects and live publications."""

import ast
import base64
import hashlib
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from tests.support.writer import effects, events, inference
from tests.support.writer.claim import open_invocation
from tests.support.writer.journal import JournalWriter, envelope
from tests.support.writer.project import make_project
from tests.support.writer.publication import identity, prepare_publication
from tests.support.writer.text import (
    ABSENT,
    SEED,
    Clock,
    canonical,
    compact,
    digest,
    nanoseconds,
    public_key,
    stamp,
    uid,
)

ROOT = Path(__file__).resolve().parents[2]

MEMBERS = {
    "ImprovementOutput": "output",
    "ToolDispatchStarted": "dispatch_id run_key call_id call_fingerprint tool_name",
    "ToolDispatchFinished": "dispatch_id observation_hash is_error",
    "ResponseDeliveryStarted": "fingerprint request_hash request_bytes",
    "ResponseDeliveryFinished": "fingerprint receipt confirmed error",
    "DelegationStarted": "run_key call_id call_fingerprint target child_agent_id audit system_prompt_hash "
    "message_hash",
    "DelegationFinished": "run_key call_id audit reason output_hash",
    "ToolEffect": "run_key call_fingerprint effect",
    "Started": "agent_id config",
    "InferenceRequested": "request_id endpoint model request_hash reserved_output_tokens",
    "InferenceCompleted": "request_id status response_hash response_bytes",
    "DirectInferenceRequested": "call_id operation provider model request_hash request_bytes recipient "
    "recipient_definition_hash communication",
    "DirectInferenceFinished": "call_id reason response_hash response_bytes finish_reason usage",
    "DirectInferenceResponseReceived": "call_id response_hash response_bytes",
    "ReasoningComplete": "iteration actions usage",
    "PolicyEvaluated": "iteration action_count denied_count approved_calls denied_calls",
    "ToolsDispatched": "iteration tool_count duration",
    "ToolBatchCompleted": "iteration observations duration",
    "ObservationsCollected": "iteration observation_count",
    "BudgetUpdated": "budget",
    "BudgetOpened": "root_id limit",
    "BudgetScopeLinked": "root_id scope root_audit",
    "BudgetReservationStarted": "reservation",
    "BudgetReservationFinished": "root_id reservation_id usage outcome",
    "Terminated": "reason iterations total_usage duration",
    "RecoveryTriggered": "iteration tool_name strategy error",
    "FilePublicationPrepared": "intent",
    "FilePublicationFinished": "publication_id confirmed error",
    "NetworkRequestStarted": "request_id method url request_hash request_bytes",
    "NetworkRequestFinished": "request_id status response_hash response_headers_hash response_bytes error",
}
"""Members that an honest record of each event and nested effect always has (journal.md section 11)."""

GIVEN: dict[str, tuple[Any, ...]] = {
    "ToolEffect": (effects.network_request_started(),),
    "FilePublicationPrepared": ({"publication_id": "x"},),
    "FilePublicationFinished": ("x",),
}


def snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def helper(name: str) -> Any:
    return next(
        getattr(module, snake(name))
        for module in (events, effects, inference)
        if hasattr(module, snake(name))
    )


@pytest.mark.parametrize("name", MEMBERS)
def test_every_event_has_a_helper_with_the_members_of_the_format(name):
    made = helper(name)(*GIVEN.get(name, ()))
    assert list(made) == [name]
    assert set(made[name]) == set(MEMBERS[name].split())


DROPPED = {"BudgetUpdated": "exceeded", "ToolEffect": "run_key"}


@pytest.mark.parametrize("name", [name for name in MEMBERS if name != "FilePublicationPrepared"])
def test_every_helper_takes_unknown_members_and_drops_absent_ones(name):
    dropped = DROPPED.get(name, MEMBERS[name].split()[-1])
    made = helper(name)(*GIVEN.get(name, ()), unheard_of=1, **{dropped: ABSENT})
    body = made[name].get("budget", made[name])
    assert dropped not in body
    assert body["unheard_of"] == 1


def test_an_intent_can_be_left_out_of_its_record():
    assert effects.file_publication_prepared(ABSENT) == {"FilePublicationPrepared": {}}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e-5, "0.00001"),
        (1.25e-05, "0.0000125"),
        (-1.25e-05, "-0.0000125"),
        (1e-6, "1e-6"),
        (1.25e-7, "1.25e-7"),
        (1e16, "1e+16"),
        (1.5e300, "1.5e+300"),
        (1e-10, "1e-10"),
        (100.0, "100.0"),
        (-0.0, "-0.0"),
        (1e15, "1000000000000000.0"),
    ],
)
def test_floats_are_spelled_as_the_runtime_spells_them(value, text):
    assert compact({"e-0": [value]}).decode() == f'{{"e-0":[{text}]}}'


def test_a_value_without_a_json_spelling_is_refused():
    with pytest.raises(ValueError, match="JSON"):
        compact(float("nan"))


def test_text_escapes_only_what_must_be_escaped():
    assert compact('é\x7f/"\\\n\x01').decode() == '"é\x7f/\\"\\\\\\n\\u0001"'


def test_canonical_text_sorts_every_object_and_compact_text_none():
    value = {"b": {"z": 1, "a": 2}, "a": [1e-6]}
    assert canonical(value) == b'{"a":[1e-6],"b":{"a":2,"z":1}}'
    assert compact(value) == b'{"b":{"z":1,"a":2},"a":[1e-6]}'


@pytest.mark.parametrize("fraction", ["", ".500", ".000006", ".000000006"])
def test_times_have_the_shortest_exact_fraction(fraction):
    text = f"2026-03-04T05:06:07{fraction}Z"
    assert stamp(nanoseconds(text)) == text


def test_the_clock_advances_by_its_step_alone():
    clock = Clock("2026-03-04T05:06:59.900Z", 100)
    assert [clock.read(), clock.read()] == ["2026-03-04T05:06:59.900Z", "2026-03-04T05:07:00Z"]


def test_equal_parts_give_equal_ids_and_other_parts_others():
    assert uid("a", 1) == uid("a", 1) != uid("a", 2)


def check_chain(data: bytes, key: str) -> list[dict[str, Any]]:
    """Verify signatures, chain and sequence with means of this test's own; return the payloads."""
    previous, payloads = "0" * 64, []
    for at, line in enumerate(data.splitlines(keepends=True)):
        raw, _, signature = line.removeprefix(b'{"payload":').rpartition(b',"signature":"')
        VerifyKey(bytes.fromhex(key)).verify(raw, base64.b64decode(signature.removesuffix(b'"}\n')))
        payload = json.loads(raw)
        assert (payload["previous_hash"], payload["entry"]["sequence"]) == (previous, at)
        previous = hashlib.sha256(line).hexdigest()
        payloads.append(payload)
    return payloads


def test_honest_records_verify_and_chain():
    journal = JournalWriter()
    for event in (events.started(), events.reasoning_complete(), events.terminated()):
        journal.append(event)
    assert len(check_chain(journal.data(), public_key(SEED))) == 3


def test_a_legacy_journal_has_no_run_in_its_payloads_or_its_name():
    journal = JournalWriter(run_id=None)
    journal.append(events.started())
    (payload,) = check_chain(journal.data(), journal.public_key)
    assert (payload["version"], "run_id" in payload) == (1, False)
    assert journal.name == f"{journal.agent_id}.jsonl"


def test_members_of_payload_and_entry_can_be_replaced_or_left_out():
    journal = JournalWriter()
    payload = journal.payload(events.started(), version=7, entry={"sequence": 9, "iteration": ABSENT})
    assert payload["version"] == 7
    assert payload["entry"]["sequence"] == 9
    assert "iteration" not in payload["entry"]


def test_any_payload_text_is_signed_as_it_is():
    journal = JournalWriter()
    line = journal.append_payload(' [1, "é"]')
    assert line.startswith('{"payload": [1, "é"],"signature":"'.encode())
    VerifyKey(bytes.fromhex(journal.public_key)).verify(' [1, "é"]'.encode(), signature_of(line))


def signature_of(line: bytes) -> bytes:
    return base64.b64decode(json.loads(line)["signature"])


def test_another_seed_makes_a_signature_that_does_not_verify():
    journal = JournalWriter()
    line = journal.append_payload("{}", seed=bytes(32))
    with pytest.raises(BadSignatureError):
        VerifyKey(bytes.fromhex(journal.public_key)).verify(b"{}", signature_of(line))


def test_raw_lines_and_given_signatures_are_kept():
    journal = JournalWriter()
    journal.append_raw(b"nonsense\n")
    journal.append_payload("{}", signature=bytes(64))
    assert journal.data() == b"nonsense\n" + envelope(b"{}", bytes(64))
    assert journal.sequence == 2


def test_a_tail_of_a_given_length_is_the_start_of_an_honest_record():
    journal = JournalWriter()
    journal.append(events.started())
    tail = journal.tail(40)
    assert tail.startswith(b'{"payload":{"entry":{"agent_id":')
    assert len(tail) == 40
    assert journal.data() == journal.lines[0] + tail


def test_a_project_has_the_modes_that_the_runtime_demands(tmp_path):
    project = make_project(tmp_path / "p")
    invocation = open_invocation(project).write()
    invocation.resolve()
    found = {
        str(path.relative_to(project.root)): stat.S_IMODE(path.lstat().st_mode)
        for path in project.state.rglob("*")
    }
    assert set(found.values()) == {0o600, 0o700}
    assert {name for name, mode in found.items() if mode == 0o700} == {
        ".symbiont/governed",
        ".symbiont/invocations",
    }
    assert project.key.read_bytes() == SEED
    assert len(found) == 7


def test_the_journal_binds_its_claim_with_and_without_an_admission(tmp_path):
    project = make_project(tmp_path / "p")
    for admission, version in ((ABSENT, 1), ({"profile": "baseline"}, 2)):
        invocation = open_invocation(project, admission=admission).write(result={"output": "done"})
        claim, audit, result = map(json.loads, invocation.claim_path.read_bytes().splitlines())
        (payload,) = check_chain(invocation.journal_path.read_bytes(), project.public_key)
        bound = payload["entry"]["event"]["Started"]["execution_context"]["invocation"]
        assert claim["version"] == version
        assert bound == {
            name: claim[name] for name in ("id", "scope", "request_hash", "admission") if name in claim
        }
        assert audit["reference"]["path"] == str(invocation.journal_path)
        assert result == {"kind": "result", "payload": {"output": "done"}}


def test_the_snapshot_follows_the_files_on_disk(tmp_path):
    invocation = open_invocation(make_project(tmp_path / "p")).write()
    before = invocation.snapshot_hash()
    invocation.write(torn=b'{"kind":"res')
    assert invocation.snapshot_hash() != before
    assert invocation.snapshot_hash() == digest(invocation.snapshot())


@pytest.mark.parametrize(
    ("publish", "finished", "present"),
    [(False, None, "candidate"), (True, None, "target"), (True, True, "target"), (False, False, "candidate")],
)
def test_a_live_publication_names_the_inode_that_is_there(tmp_path, publish, finished, present):
    project = make_project(tmp_path / "p")
    invocation = open_invocation(project)
    made = prepare_publication(invocation, project.root / "out", publish=publish, finished=finished)
    invocation.write()
    here, gone = (made.target, made.candidate) if present == "target" else (made.candidate, made.target)
    assert not gone.exists()
    assert identity(here) == made.intent["candidate_identity"]
    assert identity(here.parent) == made.intent["parent_identity"]
    assert here.read_bytes() == b"verified-output"
    payloads = check_chain(invocation.journal_path.read_bytes(), project.public_key)
    names = [next(iter(payload["entry"]["event"])) for payload in payloads]
    assert names[:4] == ["Started", "PolicyEvaluated", "ToolDispatchStarted", "ToolEffect"]
    assert len(names) == (4 if finished is None else 5)
    assert made.write_receipt().stat().st_mode & 0o777 == 0o600


def test_the_writer_uses_nothing_of_the_product():
    sources = [*(ROOT / "tests/support/writer").glob("*.py"), ROOT / "benchmarks/generate.py"]
    imported = set()
    for source in sources:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module or "")
    assert len(sources) > 10
    assert not [name for name in imported if name.startswith("symbi_recover")]
