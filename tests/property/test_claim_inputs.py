"""Claims, receipts and reviews under random damage: the readers agree, and nothing ends in a traceback."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbi_recover.core.claims import SCHEMAS
from symbi_recover.wire import claim as claims
from symbi_recover.wire import exact, receipt
from symbi_recover.wire.review import broken_rule, parse_review
from symbi_recover.wire.strictjson import JsonError
from tests.property.strategies import fast, free, text, u32, u64, uuids
from tests.support.cli import run
from tests.support.writer import claim as writer
from tests.support.writer.claim import Invocation, open_invocation
from tests.support.writer.project import make_project, put
from tests.support.writer.text import compact

WITH_FREE_VALUES = ("claim", "result", "publication-receipt")
"""Numbers in free values have the runtime's own rounding, which the fast decoder does not know."""
SCHEMA_FOLDER = Path(__file__).resolve().parents[2] / "schemas" / "evidence"

references = st.fixed_dictionaries({"run_id": uuids, "path": text, "public_key": text})
snapshots = st.fixed_dictionaries(
    {
        "scope": text,
        "id": uuids,
        "request_hash": text,
        "agent_id": uuids,
        "claim_sha256": text,
        "journal_sha256": text,
        "audit": references,
    }
)
items = st.lists(st.fixed_dictionaries({"reference": text, "sha256": text}), max_size=3)
reviews = st.fixed_dictionaries(
    {
        "snapshot_hash": text,
        "outcome": st.sampled_from(["completed", "failed", "no_effects"]),
        "rationale": text,
        "evidence": items,
        "effects_stopped": st.booleans(),
    }
)
pairs = st.lists(u64, min_size=2, max_size=2)
intents = st.fixed_dictionaries(
    {
        "publication_id": uuids,
        "path": text,
        "parent_path": text,
        "parent_identity": pairs,
        "candidate_name": text,
        "candidate_identity": pairs,
        "target_name": text,
        "bytes": u64,
        "sha256": text,
    }
)
times = st.sampled_from(["2026-03-04T05:06:07Z", "2026-03-04T05:06:07.250Z", "2016-12-31T23:59:60Z"])
signed = {"operator_uid": u32, "recorded_at": times}
resolutions = st.fixed_dictionaries({"version": u32, "snapshot": snapshots, "review": reviews, **signed})
recoveries = st.fixed_dictionaries(
    {"version": u32, "snapshot": snapshots, "publication": intents, "created_files": free, **signed}
)
DOCUMENTS: dict[str, st.SearchStrategy[Any]] = {
    "claim": st.fixed_dictionaries(
        {
            "kind": st.just("claim"),
            "version": u32,
            "scope": text,
            "id": uuids,
            "request_hash": text,
            "agent_id": uuids,
            "run_id": uuids,
        },
        optional={"admission": free},
    ),
    "audit": st.fixed_dictionaries({"kind": st.just("audit"), "reference": references}),
    "audit-reference": references,
    "result": st.fixed_dictionaries({"kind": st.just("result"), "payload": free}),
    "review": reviews,
    "resolution-receipt": st.fixed_dictionaries({"payload": resolutions, "signature": text}),
    "publication-receipt": st.fixed_dictionaries({"payload": recoveries, "signature": text}),
    "publication-intent": intents,
}


def test_every_structure_with_a_schema_has_documents_here() -> None:
    assert DOCUMENTS.keys() == SCHEMAS.keys()


def read_exactly(data: bytes, kind: type) -> Any:
    try:
        return exact.read(data, kind)
    except JsonError:
        return None


def fast_decoded(data: bytes, kind: type) -> Any:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeError):
        return None


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
@fast
@given(data=st.data())
def test_what_the_fast_decoder_takes_the_exact_reader_takes_as_the_same(
    name: str, data: st.DataObject
) -> None:
    document = data.draw(DOCUMENTS[name])
    spelled = compact(document)
    value = read_exactly(spelled, SCHEMAS[name])
    assert value is not None, "an honest document is read"
    quick = fast_decoded(spelled, SCHEMAS[name])
    if quick is not None and name not in WITH_FREE_VALUES:
        assert msgspec.to_builtins(quick) == msgspec.to_builtins(value)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document."""
    found = [path]
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in inner:
        found += places(item, (*path, name))
    return found


def changed(document: Any, path: tuple[Any, ...], how: str, token: Any) -> Any:
    """A copy with one place replaced, removed or given a member more."""
    copy = json.loads(json.dumps(document))
    if not path:
        return token
    place = copy
    for name in path[:-1]:
        place = place[name]
    if how == "remove" and isinstance(place, dict):
        del place[path[-1]]
    elif how == "add" and isinstance(place, dict):
        place["more"] = token
    else:
        place[path[-1]] = token
    return copy


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
@fast
@given(data=st.data())
def test_schema_fast_decoder_and_exact_reader_agree_on_changed_documents(
    name: str, data: st.DataObject
) -> None:
    import jsonschema

    document = data.draw(DOCUMENTS[name])
    path = data.draw(st.sampled_from(places(document)))
    how = data.draw(st.sampled_from(["replace", "remove", "add"]))
    token = data.draw(st.sampled_from([None, True, 0, -1, 1.5, 2**64, "", "x", [], {}, [1, 2, 3]]))
    other = changed(document, path, how, token)
    spelled = compact(other)
    quick = fast_decoded(spelled, SCHEMAS[name])
    if quick is not None and b"created_files" not in spelled:
        value = read_exactly(spelled, SCHEMAS[name])
        assert value is not None or "recorded_at" in path or "payload" in path or "admission" in path
        schema = json.loads((SCHEMA_FOLDER / f"{name}.v1.schema.json").read_bytes())
        if isinstance(other, dict):
            jsonschema.Draft202012Validator(schema).validate(other)


mutations = st.lists(
    st.tuples(
        st.integers(0, 4000),
        st.sampled_from(["flip", "cut", "insert", "drop"]),
        st.binary(min_size=1, max_size=4),
    ),
    min_size=1,
    max_size=4,
)


def mutated(data: bytes, steps: list[tuple[int, str, bytes]]) -> bytes:
    for place, how, piece in steps:
        at = place % (len(data) + 1)
        if how == "cut":
            data = data[:at]
        elif how == "insert":
            data = data[:at] + piece + data[at:]
        elif how == "drop":
            data = data[:at] + data[at + len(piece) :]
        elif data:
            at %= len(data)
            data = data[:at] + bytes((data[at] ^ piece[0],)) + data[at + 1 :]
    return data


@pytest.fixture(scope="module")
def invocation(tmp_path_factory: pytest.TempPathFactory) -> Invocation:
    made = open_invocation(make_project(tmp_path_factory.mktemp("claims") / "p"), admission={"a": [1, 0.5]})
    made.write(result={"output": "done"})
    made.resolve()
    return made


@fast
@given(steps=mutations)
def test_a_damaged_claim_is_read_or_refused(steps: list[tuple[int, str, bytes]]) -> None:
    good = writer.claim_record("s", writer.INVOCATION, "h", writer.AGENT, writer.RUN, admission={"a": 1})
    try:
        text_of = claims.parse(mutated(good + writer.result_record([1]), steps))
    except JsonError:
        return
    assert all(type(record) in claims._KINDS.values() for record in text_of.records)


@fast
@given(steps=mutations)
def test_a_damaged_receipt_is_read_or_refused(
    steps: list[tuple[int, str, bytes]], invocation: Invocation
) -> None:
    data = mutated(invocation.receipt_path.read_bytes(), steps)
    try:
        parsed = receipt.parse_resolution(data)
    except JsonError:
        return
    receipt.signed_text(parsed.payload)
    broken_rule(parsed.payload.review)


@fast
@given(steps=mutations)
def test_a_damaged_review_is_read_or_refused(steps: list[tuple[int, str, bytes]]) -> None:
    try:
        broken_rule(parse_review(mutated(compact(writer.review("sha256:x")), steps)))
    except JsonError:
        return


@fast
@given(steps=mutations, which=st.sampled_from(["claim_path", "receipt_path", "journal_path"]))
def test_no_damage_to_any_file_is_a_traceback_or_a_better_verdict(
    steps: list[tuple[int, str, bytes]], which: str, invocation: Invocation
) -> None:
    path: Path = getattr(invocation, which)
    good = path.read_bytes()
    bad = mutated(good, steps)
    try:
        put(path, bad)
        ran = run(
            "invocation", "inspect", "--project", invocation.project.root, "--scope", invocation.scope,
            "--id", invocation.id,
        )  # fmt: skip
    finally:
        put(path, good)
    if ran.rc == 0:
        assert bad == good or which == "receipt_path", "a receipt may be spelled differently"
    else:
        assert ran.rc == 1, ran.err.decode()
