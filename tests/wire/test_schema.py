"""The generated schemas: well formed, complete, and true of what the runtime wrote and printed."""

import json
import re
from functools import cache
from typing import Annotated, Any, Literal

import pytest
from jsonschema import Draft202012Validator
from msgspec import UNSET, Struct, UnsetType, field

from symbi_recover.core.events import EVENTS
from symbi_recover.core.scalars import U64, UUID, OptionalJson, Timestamp
from symbi_recover.core.shapes import Lenient, Strict, Variant
from symbi_recover.read import library, validation
from symbi_recover.wire import claim, schema
from symbi_recover.wire.strictjson import JsonError, read_free
from tests.support import evidence
from tests.support.audit_cases import audit_cases, raw_cases

NAMES = [f"{entry.name}.v{entry.version}" for entry in library.schemas()]


class Inner(Strict, frozen=True, kw_only=True):
    """Inner (journal.md section 9)."""

    count: U64


class Chosen(Variant, frozen=True, kw_only=True):
    """Chosen."""

    inner: Inner | UnsetType = field(default=UNSET, name="Inner")
    other: Inner | UnsetType = field(default=UNSET, name="Other")


class Example(Lenient, frozen=True, kw_only=True):
    """An example (sections 1 and 2)."""

    id: UUID
    at: Timestamp
    needed: str
    optional: str | None
    free: OptionalJson
    left_out: str | UnsetType | None = UNSET
    defaulted: int = 3
    pair: tuple[U64, U64] = (1, 2)
    chosen: Literal["Bare", "Plain"] | Chosen
    kind: Literal["example"]


GOOD = {
    "id": "11111111-1111-4111-8111-111111111111",
    "at": "2026-01-02T03:04:05Z",
    "needed": "x",
    "chosen": "Bare",
    "kind": "example",
}


@cache
def checker(*, output: bool) -> Draft202012Validator:
    return Draft202012Validator(schema.document("example.v1", Example, output=output))


def with_members(**members: Any) -> dict[str, Any]:
    return GOOD | members


@pytest.mark.parametrize("name", NAMES)
def test_every_shipped_schema_is_a_schema_and_stands_alone(name: str) -> None:
    entry = library.schema(name)
    made = json.loads(library.schema_text(entry))
    Draft202012Validator.check_schema(made)
    assert made["$id"] == f"urn:symbi-recover:schema:{name}"
    assert made["$schema"] == schema.DIALECT
    assert re.fullmatch(r".*[.!]", made["description"]), "a description is a sentence"
    assert "section" not in json.dumps(made), "sections of texts that are not shipped"
    references = set(re.findall(r'"\$ref": ?"([^"]*)"', json.dumps(made)))
    assert references == {f"#/$defs/{defined}" for defined in made["$defs"]}


def test_every_event_has_a_schema() -> None:
    names = {entry.name for entry in library.schemas() if entry.name.startswith("event-")}
    assert len(names) == len(EVENTS) == 26
    assert names == set(schema.event_documents())


@pytest.mark.parametrize(
    "value",
    [
        GOOD,
        with_members(optional=None, free=None, left_out=None),
        with_members(optional="x", free={"a": [1]}, left_out="x", defaulted=4, pair=[0, 2**64 - 1]),
        with_members(chosen={"Bare": None}),
        with_members(chosen={"Inner": {"count": 2**64 - 1}}),
        with_members(unknown=1),
        with_members(id="11111111111141118111111111111111"),
        with_members(id="{11111111-1111-4111-8111-111111111111}"),
        with_members(id="urn:uuid:11111111-1111-4111-8111-11111111ABCD"),
        with_members(at=" +2026 - 1 -2t3 : 04:60.5 \u22120130 "),
        with_members(at="2026-01-02T03:04:05 uTc"),
    ],
)
def test_evidence_is_described_as_the_reader_takes_it(value: Any) -> None:
    assert list(checker(output=False).iter_errors(value)) == []


@pytest.mark.parametrize(
    "value",
    [
        [],
        with_members(needed=None),
        {name: value for name, value in GOOD.items() if name != "needed"},
        with_members(defaulted=None),
        with_members(pair=[1]),
        with_members(pair=[1, 2, 3]),
        with_members(pair=[1, 2**64]),
        with_members(pair=[-1, 2]),
        with_members(chosen="Inner"),
        with_members(chosen={"Bare": {}}),
        with_members(chosen={}),
        with_members(chosen={"Bare": None, "Inner": {"count": 1}}),
        with_members(chosen={"Inner": {"count": 1}, "Other": {"count": 1}}),
        with_members(chosen={"Inner": {"count": 1, "unknown": 1}}),
        with_members(chosen={"inner": {"count": 1}}),
        with_members(kind={"example": None}),
        with_members(id="{11111111111141118111111111111111}"),
        with_members(id="11111111-1111-4111-8111-111111111111\n"),
        with_members(id="11111111111141118111111111111111\n"),
        with_members(at="2026-01-02T03:04:05"),
        with_members(at="2026-13-02T03:04:05Z"),
        with_members(at="2026-01-02 \u2003 03:04:61Z"),
        with_members(at="2026-01-02T03:04:05+24:00"),
        with_members(at="2026-01-02T03:04:05+01:60"),
        with_members(at="12026-01-02T03:04:05Z"),
        with_members(at="٢٠٢٦-01-02T03:04:05Z"),
    ],
)
def test_evidence_that_the_reader_refuses_is_refused(value: Any) -> None:
    assert not checker(output=False).is_valid(value)


def test_output_has_all_its_members_and_no_others() -> None:
    printed = with_members(optional=None, free=None, defaulted=3, pair=[1, 2], chosen={"Inner": {"count": 1}})
    assert checker(output=True).is_valid(printed)
    assert checker(output=True).is_valid(printed | {"left_out": "x", "chosen": "Plain"})
    for name in ("optional", "free", "defaulted", "pair"):
        assert not checker(output=True).is_valid({n: v for n, v in printed.items() if n != name})
    assert not checker(output=True).is_valid(printed | {"unknown": 1})
    assert not checker(output=True).is_valid(printed | {"chosen": {"Bare": None}})
    assert not checker(output=True).is_valid(printed | {"id": printed["id"].replace("1111-4", "AAAA-4")})


def test_two_structures_of_one_name_are_never_mixed_up() -> None:
    class Inner(Struct):
        other: str

    with pytest.raises(ValueError, match="two structures are named Inner"):
        schema.document("x.v1", Annotated[Inner | Example, "both"])


def problems(name: str, documents: list[tuple[str, bytes]]) -> list[str]:
    check = validation.validator(library.schema(name))
    return [
        f"{label}: {validation.pointer(error.absolute_path)}: {error.message[:200]}"
        for label, data in documents
        for error in check.iter_errors(json.loads(data))
    ]


def of_members(ending: str) -> list[tuple[str, bytes]]:
    return [
        (name, member.data)
        for name, member in evidence.members().items()
        if member.kind == "file" and name.endswith(ending)
    ]


@pytest.mark.parametrize(
    ("name", "ending", "at_least"),
    [
        ("publication-receipt", ".publication.json", 3),
        ("resolution-receipt", ".resolved.json", 4),
        ("review", "/review.json", 1),
        ("lease-admission", "/admission.conf", 5),
    ],
)
def test_files_that_the_runtime_wrote_satisfy_their_schema(name: str, ending: str, at_least: int) -> None:
    found = of_members(ending)
    assert len(found) >= at_least
    assert problems(name, found) == []


def test_lease_records_and_claim_lines_are_judged_as_their_readers_do() -> None:
    leases = [
        (name, data) for name, data in of_members(".json") if re.match(r"leases/\w+/[0-9a-f-]{36}", name)
    ]
    assert len(leases) >= 5
    assert problems("lease-record", leases) == []
    claims = [(name, data) for name, data in of_members(".jsonl") if "/invocations/" in name]
    lines = [(name, line) for name, data in claims for line in data.split(b"\n")[:-1]]
    assert len(lines) >= 40
    refused = {name for name, line in lines if not decodes(line)}
    assert len(refused) == 4, "suites of the runtime had spoilt four claims"
    check = validation.validator(library.schema("claim-record"))
    for name, line in lines:
        assert accepted(check, line) == decodes(line), name


def decodes(line: bytes) -> bool:
    try:
        claim.read_record(line)
    except JsonError:
        return False
    return True


def accepted(check: Draft202012Validator, line: bytes) -> bool:
    try:
        return check.is_valid(read_free(line))
    except JsonError:
        return False


def test_reports_that_the_runtime_printed_satisfy_the_schema_of_ours() -> None:
    reports = [(c.id, c.stdout.encode()) for cases in audit_cases().values() for c in cases if c.rc in (0, 2)]
    distinct = {re.sub(rb"[0-9a-f-]{8,}|[0-9]+", b"", data): (name, data) for name, data in reports}
    assert len(distinct) > 100
    assert problems("recovery-report", list(distinct.values())) == []


def test_answers_about_invocations_satisfy_the_schema_of_ours() -> None:
    answers = [(check.id, check) for check in evidence.checks("invocation inspect")]
    printed = [(name, check.stdout.encode()) for name, check in answers if check.rc in (0, 2)]
    cases = [
        case for case in raw_cases("invocation") if case["command"] == "inspect" and case["rc"] in (0, 2)
    ]
    printed += [(case["id"], case["stdout"].encode()) for case in cases]
    assert len(printed) == 76
    assert problems("invocation-inspect", printed) == []
