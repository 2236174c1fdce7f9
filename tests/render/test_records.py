"""How `audit show` spells values (render/records.py)."""

from symbi_recover.core.shown import ShownRecord
from symbi_recover.render.colour import Painter
from symbi_recover.render.records import lines
from symbi_recover.wire.journal import decode, envelope
from tests.support.writer import events
from tests.support.writer.journal import JournalWriter
from tests.support.writer.text import uid


def shown(event: object) -> list[str]:
    line = JournalWriter().append(event)
    payload, _, _ = envelope(line)
    one = ShownRecord(
        line=0, start=0, end=len(line), sha256="", complete=True, record=decode(payload), payload=payload
    )
    return lines(one, Painter(colour=False), whole=True)


def test_values_are_spelled_as_the_journal_spells_them() -> None:
    text = "\n".join(shown(events.tool_dispatch_finished(uid(1))))
    assert ": false" in text
    assert "False" not in text
    assert "None" not in text
    assert "UUID(" not in text


def test_an_empty_list_is_shown_as_one() -> None:
    assert any(line.endswith(": []") for line in shown(events.policy_evaluated(0, [])))
