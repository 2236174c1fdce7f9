"""Hints about a journal's writer never change a verdict, and are given in time that grows with the journal alone."""

import time
from uuid import UUID

import pytest
from msgspec.structs import replace

from symbi_recover.core.exits import Exit
from symbi_recover.read.classify import effect_step
from symbi_recover.read.verify.hints import Hints
from symbi_recover.wire.journal import decode
from tests.support.sample_journals import codes, examine, small
from tests.support.writer import effects, events, inference
from tests.support.writer.journal import JournalWriter
from tests.support.writer.text import canonical, uid


def journal(*made: events.Event, end: bool = True) -> JournalWriter:
    j = JournalWriter()
    j.append(events.started())
    for event in made:
        j.append(event, 1)
    if end:
        j.append(events.terminated())
    return j


APPROVED = events.policy_evaluated(1, [events.approval()])
FAILED = effects.tool_effect(effects.network_request_finished(status=None, error="reset"))
SENT = effects.tool_effect(effects.network_request_started())
REFERENCES = (events.reference(), events.reference(path="/elsewhere"))

CASES = {
    "start_after_unconfirmed": journal(
        APPROVED,
        events.tool_dispatch_started(),
        events.tool_dispatch_finished(is_error=True),
        inference.inference_requested(),
    ),
    "dispatch_hides_unknown": journal(
        APPROVED, events.tool_dispatch_started(), SENT, FAILED, events.tool_dispatch_finished(), end=False
    ),
    "effect_outside_dispatch": journal(SENT, effects.tool_effect(effects.network_request_finished())),
    "dispatch_without_approval": journal(events.tool_dispatch_started(), events.tool_dispatch_finished()),
    "budget_opened_and_linked": journal(inference.budget_opened(), inference.budget_scope_linked()),
    "completed_after_unconfirmed": journal(
        APPROVED, events.tool_dispatch_started(), events.tool_dispatch_finished(is_error=True)
    ),
    "delegation_audit_differs": journal(
        events.delegation_started(audit=REFERENCES[0]), events.delegation_finished(audit=REFERENCES[1])
    ),
}


@pytest.mark.parametrize("code", CASES)
def test_what_an_honest_writer_would_not_have_done_is_a_remark(code) -> None:
    answer = examine(CASES[code].data())
    assert code in codes(answer)
    assert answer.verdict is (Exit.ATTENTION if answer.report.recovery.requires_reconciliation else Exit.OK)
    assert answer.refusal is None


def test_an_honest_run_gets_no_remark() -> None:
    assert codes(examine(small(40).data())) == set()


def test_a_name_that_the_records_do_not_fit_is_a_remark() -> None:
    assert codes(examine(small(3).data(), path="/tmp/other.jsonl")) == {"file_name_differs"}


@pytest.mark.parametrize("tail", [b'{"payload":', b"x", b'{"payload":{"entry":{"agent_id":"9', b"\x00" * 50])
def test_a_tail_that_is_no_torn_line_is_a_remark(tail) -> None:
    answer = examine(small(3).data() + tail)
    assert ("tail_not_a_prefix" in codes(answer)) is (tail != b'{"payload":')


@pytest.mark.parametrize("size", [1, 20, 60, 200])
def test_a_torn_honest_line_is_none(size) -> None:
    j = small(3, end=False)
    j.tail(size)
    assert "tail_not_a_prefix" not in codes(examine(j.data()))


def test_many_open_dispatches_cost_no_more_time_than_records() -> None:
    """A key holder can leave thousands open; each nested effect must not look at all of them."""
    j = JournalWriter()
    opened = decode(canonical(j.payload(events.tool_dispatch_started()))).event
    nested = decode(canonical(j.payload(SENT))).event
    count = 20_000
    hints = Hints("journal")
    start = time.process_time()
    for number in range(count):
        event = replace(opened, dispatch_id=UUID(int=number), call_fingerprint=f"f{number}")
        hints.take(number, 1, event, effect_step(event))
    for number in range(count):
        event = replace(nested, call_fingerprint=f"g{number}")
        hints.take(count + number, 1, event, effect_step(event))
    assert time.process_time() - start < 3
    (found,) = (f for f in hints.findings(UUID(int=1), None, b"") if f.code == "effect_outside_dispatch")
    assert found.message.startswith("20,000 records")


def test_two_open_calls_of_one_scope_are_counted_one_by_one() -> None:
    j = journal(
        events.policy_evaluated(1, [events.approval(), events.approval()]),
        events.tool_dispatch_started(uid(1)),
        events.tool_dispatch_started(uid(2)),
        events.tool_dispatch_finished(uid(1)),
        SENT,
        effects.tool_effect(effects.network_request_finished()),
        events.tool_dispatch_finished(uid(2)),
    )
    assert codes(examine(j.data())) == set()
