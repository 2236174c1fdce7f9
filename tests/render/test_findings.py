"""One form of findings for every report (render/findings.py)."""

from symbi_recover.core.codes import CODES, finding
from symbi_recover.core.findings import NotChecked
from symbi_recover.render.colour import Painter
from symbi_recover.render.findings import findings, next_step, not_checked, remarks

PLAIN = Painter(colour=False)
STRAY = finding("publication_orphan", ".symbi-publish-1", path="/out/.symbi-publish-1")
CUT = finding("record_incomplete", "the last 11 bytes", path="/j.jsonl", record=10, start=7709, end=7720)
OTHER = finding("cron_store_foreign", "another project", path="/c.db", expected="/a", actual="/b\x1b[2J")


def test_the_gravest_comes_first_and_each_meaning_once() -> None:
    lines = findings([STRAY, OTHER, STRAY, CUT], PLAIN)
    assert lines == [
        "",
        "Found",
        f"  refused record_incomplete: {CODES['record_incomplete'].meaning}",
        "      /j.jsonl: the last 11 bytes [record 10, bytes 7,709 to 7,720]",
        f"  attention cron_store_foreign: {CODES['cron_store_foreign'].meaning}",
        "      /c.db: another project",
        "      expected /a, found /b\\x1b[2J",
        f"  remark publication_orphan (2): {CODES['publication_orphan'].meaning}",
        "      /out/.symbi-publish-1",
        "      /out/.symbi-publish-1",
    ]


def test_paths_are_shown_from_the_one_that_the_report_is_about() -> None:
    assert (
        findings([CUT], PLAIN, "/j.jsonl")[3] == "      the last 11 bytes [record 10, bytes 7,709 to 7,720]"
    )
    assert findings([STRAY], PLAIN, "/out")[3] == "      .symbi-publish-1"
    assert findings([STRAY], PLAIN, "/ou")[3] == "      /out/.symbi-publish-1"


def test_a_message_that_only_repeats_the_meaning_is_left_out() -> None:
    assert len(findings([finding("lock_missing", CODES["lock_missing"].meaning)], PLAIN)) == 3


def test_many_of_one_code_are_counted_and_the_first_shown() -> None:
    lines = findings([STRAY] * 1234, PLAIN)
    assert " publication_orphan (1,234): " in lines[2]
    assert lines[-1] == "      … and 1,204 more; `--format json` lists all"
    assert len(lines) == 34


def test_one_line_for_stderr_holds_place_and_difference() -> None:
    assert remarks([OTHER]) == [
        "attention cron_store_foreign: /c.db: another project; expected /a, found /b\\x1b[2J"
    ]


def test_nothing_found_and_nothing_left_out_take_no_line() -> None:
    assert findings([], PLAIN) == not_checked([], PLAIN) == []
    assert next_step([]) is None


def test_the_next_step_is_that_of_the_gravest() -> None:
    assert next_step([STRAY, CUT, OTHER]) == CODES["record_incomplete"].next


def test_what_was_not_checked_is_made_safe() -> None:
    assert not_checked([NotChecked("a\n", "b")], PLAIN)[2:] == ["  - a\\n: b"]
