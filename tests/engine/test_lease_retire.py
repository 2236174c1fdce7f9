"""`lease retire` and `lease witness` against a real engine: the right row of the table, and the record there unless proven.

In every scenario a wrong-labelled neighbour survives, and no fence is left.
"""

import json
import shutil

import pytest

from tests.engine.world import LABEL, name_of, neighbour

pytestmark = [pytest.mark.engine, pytest.mark.root]


def codes(document):
    report = document["report"]
    return {one["code"] for one in (*report["decision"]["findings"], *report["findings"])}


def retire(store, lease, code, *options):
    return store.json("retire", lease, "--confirm", store.digest(lease), *options, code=code)


def assert_kept(engine, store, lease, document, *expected):
    assert set(expected) <= codes(document), codes(document)
    assert document["report"]["outcome"] == "refused"
    assert lease in store.records()
    assert engine.inventory()["images"] == [] or all("fence" not in one for one in engine.inventory()["images"])
    assert not any("symbi-recover.fence" in str(engine.inspect(one)) for one in engine.names())


def test_a_quiet_engine_retires_a_tombstone(engine, store, host):
    lease = store.add()
    other = neighbour(engine, lease)
    plan = store.json("retire", lease, code=2)
    assert plan["report"]["confirm"] == store.digest(lease)
    assert engine.names() == [f"{name_of(lease)}-old"]
    done = retire(store, lease, 0)
    assert done["report"]["decision"]["proofs"] == ["proof_engine_quiescent"]
    assert store.records() == []
    assert engine.inspect(other) is not None
    assert engine.names() == [f"{name_of(lease)}-old"]
