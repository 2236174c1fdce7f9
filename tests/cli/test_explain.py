"""`explain`: every registered code has a page, offline; an unknown one is misuse."""

import json

import pytest

from symbi_recover.core.codes import CODES
from symbi_recover.core.exits import Exit
from symbi_recover.core.findings import Severity
from symbi_recover.render import explanation
from symbi_recover.render.colour import Painter
from symbi_recover.render.exits_of_codes import EXITS_OF_CODES
from tests.support.cli import run, run_terminal

PLAIN = Painter(colour=False)


def test_a_page_says_all_that_the_registry_says() -> None:
    ran = run("explain", "link_mismatch", "--format", "text")
    entry = CODES["link_mismatch"]
    assert (ran.rc, ran.err) == (0, b"")
    for text in (entry.meaning, entry.why, entry.next, "refused", "1 (refused or failed)"):
        assert text in ran.text
    assert ran.text.splitlines()[-1] == f"Next  {entry.next}"


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_a_whole_page(code: str) -> None:
    shown = explanation.explanation(code)
    lines = explanation.page(shown, PLAIN)
    assert lines[0].startswith(code)
    assert "\\" not in "".join(lines), "a registered sentence holds something that must be escaped"
    assert all(Exit(value) for value in shown.exits)
    if shown.severity in (Severity.ATTENTION, Severity.REFUSED):
        assert shown.exits
    elif code not in EXITS_OF_CODES:
        assert shown.exits == ()


def test_alone_it_lists_every_code() -> None:
    ran = run("explain", "--format", "text")
    listed = [line.split()[0] for line in ran.text.splitlines()[:-2]]
    assert ran.rc == 0
    assert listed == list(CODES)
    assert ran.text.splitlines()[-1].startswith(f"{len(CODES)} codes.")


def test_as_json_it_is_one_document() -> None:
    one = json.loads(run("explain", "tombstone", "--format", "json").out)
    assert one["schema"] == "symbi-recover/explain.v1"
    assert [page["code"] for page in one["codes"]] == ["tombstone"]
    everything = json.loads(run("explain").out)
    assert [page["code"] for page in everything["codes"]] == list(CODES)


def test_an_unknown_code_is_misuse_and_names_what_is_near() -> None:
    ran = run("explain", "link_mismtch", "--format", "text")
    assert (ran.rc, ran.out) == (64, b"")
    assert b"Did you mean link_mismatch" in ran.err
    assert b"Run `symbi-recover explain` to see all." in ran.err


@pytest.mark.parametrize("code", ["\x1b[31mred", "", "LINK_MISMATCH", "x" * 100_000, "a\nb", "\u202eedoc"])
def test_odd_codes_are_answered_in_safe_lines(code: str) -> None:
    ran = run("explain", code)
    assert ran.rc == 64
    assert json.loads(ran.out)["code"] == "unknown_code"
    text = ran.err.decode()
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "Traceback" not in text


def test_on_a_terminal_it_prints_the_page() -> None:
    ran = run_terminal("explain", "file_missing", env={"NO_COLOR": "1"})
    assert ran.rc == 0
    assert ran.text.startswith("file_missing  refused: ")
    assert "\x1b" not in ran.text


def test_a_code_that_keeps_from_examining_says_so_and_what_the_runtimes_commands_do() -> None:
    words = explanation.exit_words(explanation.explanation("file_missing"))
    assert words == "3 (could not examine); 1 in commands that the runtime has too"
    assert explanation.exit_words(explanation.explanation("not_canonical")) == "not changed by this alone"


@pytest.mark.parametrize(
    "code", ["claim_torn", "store_temporary_left", "sync_unconfirmed", "cron_log_pending"]
)
def test_what_an_interruption_leaves_is_not_laid_at_anybodys_door(code: str) -> None:
    page = run("explain", code, "--format", "text").text
    assert "remark: unusual: worth a look, and by itself no reason to refuse anything" in page
    assert "honest" not in page
