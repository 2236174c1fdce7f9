"""Claim lines: what the runtime's reader takes, and nothing else."""

import pytest

from symbi_recover.core.claims import AuditRecord, ClaimRecord, ResultRecord
from symbi_recover.wire import claim
from symbi_recover.wire.strictjson import JsonError
from tests.support.writer.claim import audit_record, claim_record, result_record
from tests.support.writer.text import AGENT, INVOCATION, RUN

REFERENCE = {"run_id": RUN, "path": "/p/j.jsonl", "public_key": "ab" * 32}
FIRST = claim_record("cli:orga", INVOCATION, "sha256:x", AGENT, RUN)
SECOND = audit_record(REFERENCE)


def test_a_written_claim_is_three_records_and_no_torn_bytes() -> None:
    text = claim.parse(FIRST + SECOND + result_record({"output": "done"}))
    assert text.claim is not None
    assert text.audit is not None
    assert text.result is not None
    assert (text.claim.scope, str(text.claim.id), text.torn) == ("cli:orga", INVOCATION, 0)
    assert text.audit.reference.path == "/p/j.jsonl"


@pytest.mark.parametrize("cut", range(len(FIRST + SECOND)))
def test_a_cut_claim_has_only_its_whole_lines(cut: int) -> None:
    text = claim.parse((FIRST + SECOND)[:cut])
    assert len(text.records) == (cut >= len(FIRST))
    assert text.torn == (cut - len(FIRST) if cut >= len(FIRST) else cut)
    assert text.audit is None


def test_torn_bytes_are_never_parsed() -> None:
    assert claim.parse(FIRST + b'\xff\x00{"kind"').torn == 9


@pytest.mark.parametrize(
    "line",
    [
        b'["claim",1,"s","%s","h","%s","%s"]' % (INVOCATION.encode(), AGENT.encode(), RUN.encode()),
        b'["claim",1,"s","%s","h","%s","%s",null]' % (INVOCATION.encode(), AGENT.encode(), RUN.encode()),
        b' {"id":"%s","run_id":"%s","agent_id":"{%s}","request_hash":"","scope":"","version":1,"kind":"claim"}\r'
        % (INVOCATION.upper().encode(), RUN.replace("-", "").encode(), AGENT.encode()),
    ],
    ids=["positional", "positional with admission", "other spellings"],
)
def test_spellings_that_the_runtime_takes_are_taken(line: bytes) -> None:
    record = claim.read_record(line)
    assert isinstance(record, ClaimRecord)
    assert (str(record.id), str(record.agent_id), str(record.run_id)) == (INVOCATION, AGENT, RUN)


def test_unknown_members_of_a_reference_are_ignored_but_read_in_full() -> None:
    good = b'{"kind":"audit","reference":{"run_id":"%s","path":"","public_key":"","more":%%s}}' % RUN.encode()
    assert isinstance(claim.read_record(good % b'{"a":[1,{}]}'), AuditRecord)
    for bad in (b'"\\ud800"', b"1e999", b"[" * 130 + b"]" * 130):
        with pytest.raises(JsonError):
            claim.read_record(good % bad)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"kind":"claim"}',
        b'{"kind":"other","payload":1}',
        b'{"kind":"result"}',
        b'{"kind":"result","payload":1,"payload":2}',
        b'{"kind":"result","kind":"result","payload":1}',
        b'{"kind":"result","payload":1,"more":2}',
        b'{"kind":"result","payload":1e999}',
        b'{"kind":"result","payload":NaN}',
        b'{"kind":"result","payload":"\\ud800"}',
        b'{"kind":{"result":null},"payload":1}',
        b'["result",1,2]',
        b'["result"]',
        b'{"kind":"result","payload":1} x',
        b'\xef\xbb\xbf{"kind":"result","payload":1}',
        b'{"kind":"result","payload":"\xff"}',
        b'{"kind":"result","payload":' + b"[" * 127 + b"]" * 127 + b"}",
        FIRST[:-2] + b',"more":1}',
        FIRST.replace(b'"version":1', b'"version":1.0'),
        FIRST.replace(b'"version":1', b'"version":4294967296'),
        FIRST.replace(b'"kind"', b'"Kind"'),
    ],
)
def test_what_the_runtime_refuses_is_refused(line: bytes) -> None:
    with pytest.raises(JsonError):
        claim.read_record(line)


def test_the_refused_line_is_named_with_its_place_in_the_file() -> None:
    with pytest.raises(claim.ClaimSyntaxError) as caught:
        claim.parse(FIRST + b'{"kind":"audit","reference":7}\n')
    assert caught.value.line == 1
    assert caught.value.offset == len(FIRST) + len(b'{"kind":"audit","reference":')


def test_duplicates_in_a_free_payload_keep_the_last_value_as_in_the_runtime() -> None:
    record = claim.read_record(b'{"kind":"result","payload":{"a":1,"b":2,"a":3}}')
    assert isinstance(record, ResultRecord)
    assert list(record.payload.items()) == [("a", 3), ("b", 2)]


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (1, 1, True),
        (1, 1.0, False),
        (1, True, False),
        (0.0, -0.0, True),
        ({"a": [1, None]}, {"a": [1, None]}, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ([1, 2], [2, 1], False),
        ({"a": 1}, {"a": 1, "b": None}, False),
        (None, {}, False),
    ],
)
def test_json_values_are_compared_strictly(left: object, right: object, same: bool) -> None:
    assert claim.equal(left, right) is same


def test_the_fast_path_only_ever_agrees_with_the_exact_reader() -> None:
    lines = [
        FIRST[:-1],
        SECOND[:-1],
        result_record({"a": [1, 2.5, "x", None, True]})[:-1],
        claim_record("s", INVOCATION, "h", AGENT, RUN, admission={"a": 1})[:-1],
    ]
    for line in lines:
        assert claim._read_fast(line) is not None
        assert claim._read_fast(line) == claim._read_exact(line)
    for doubtful in (
        claim_record("s", INVOCATION, "h", AGENT, RUN, admission=None)[:-1],
        claim_record("s", INVOCATION, "h", AGENT, RUN, admission={"a": 0.1})[:-1],
        FIRST[:-1] + b" ",
        b'{"kind":"result","payload":{"$serde_json::private::RawValue":"1"}}',
        b'{"kind":"result","payload":18446744073709551616}',
    ):
        assert claim._read_fast(doubtful) is None or claim._read_fast(doubtful) == claim._read_exact(doubtful)


def test_a_very_long_number_costs_no_time_and_is_no_traceback() -> None:
    line = b'{"kind":"claim","version":' + b"9" * 1_000_000 + b"}"
    with pytest.raises(JsonError):
        claim.read_record(line)
