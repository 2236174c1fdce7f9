"""The readable form: verdict first, decisions next, and a last line that says what to do (design section 3).

Three real scenarios are compared in full with `tests/render/snapshots/`; to renew them after a wanted change, delete
the file and run the tests once, which fails, then look at the difference and commit it.
"""

import json
import re
from pathlib import Path

import pytest

from symbi_recover.cli.env import Environment
from tests.support.cli import Ran, run, run_process, run_terminal
from tests.support.evidence import checks, members
from tests.support.sample_journals import KEY, small
from tests.support.writer import effects, events, inference
from tests.support.writer.journal import JournalWriter
from tests.support.writer.publication import intent
from tests.support.writer.text import RUN, nanoseconds, uid

SNAPSHOTS = Path(__file__).resolve().parents[1] / "render" / "snapshots"
WHO = ("--run-id", RUN, "--public-key", KEY)
WORDS = {0: "complete", 2: "needs reconciliation", 1: "refused"}


@pytest.fixture(autouse=True)
def _fixed_clock(monkeypatch):
    """A day after the records, for commands in this process."""
    later = nanoseconds("2026-03-05T00:00:00Z")
    monkeypatch.setitem(Environment.__init__.__kwdefaults__, "clock", lambda: later)


def interrupted() -> JournalWriter:
    """One of each kind of effect without a result, an approval without a start, a budget, and a tail."""
    j = JournalWriter()
    j.append(events.started())
    j.append(inference.budget_opened())
    j.append(events.policy_evaluated(1, [events.approval(), events.approval(None, "never started")]), 1)
    j.append(events.tool_dispatch_started(), 1)
    j.append(effects.tool_effect(effects.network_request_started(outbound={"share": 0.25})), 1)
    meant = intent(uid("p"), "/srv/project/out", [2049, 7], [2049, 8], path="out/report.md", content=b"x")
    j.append(effects.tool_effect(effects.file_publication_prepared(meant)), 1)
    j.append(effects.tool_effect(effects.network_request_finished(status=None, error="reset")), 1)
    j.append(inference.inference_requested(), 1)
    j.append(inference.inference_completed(), 1)
    j.append(inference.budget_reservation_started(), 1)
    j.tail()
    return j


def refused() -> JournalWriter:
    j = small(12)
    j.lines[2] = j.lines[2].replace(b"call_0", b"call_9", 1)
    return j


JOURNALS = {"complete": (lambda: small(12), 0), "interrupted": (interrupted, 2), "refused": (refused, 1)}
scenarios = pytest.mark.parametrize("name", JOURNALS)


def written(name: str, tmp_path: Path) -> Path:
    made = JOURNALS[name][0]()
    return made.write(tmp_path / made.name)


def compared(name: str, ran: Ran, tmp_path: Path) -> None:
    text = (ran.text + ran.err.decode()).replace(f"{tmp_path}/", "")
    file = SNAPSHOTS / f"{name}.txt"
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
        pytest.fail(f"there was no {file}; it was written, look at it")
    assert text == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("verb", ["inspect", "verify"])
@scenarios
def test_the_readable_form_is_as_it_was_looked_at(name, verb, tmp_path) -> None:
    journal = written(name, tmp_path)
    who = WHO if verb == "inspect" else WHO[2:]
    ran = run("audit", verb, journal, *who, "--format", "text")
    compared(f"audit-{verb}-{name}", ran, tmp_path)


@scenarios
def test_exit_code_json_and_last_line_agree(name, tmp_path) -> None:
    """F-068, F-069: and there is exactly one verdict line, the last."""
    journal = written(name, tmp_path)
    answers = {
        form: run("audit", "verify", journal, "--public-key", KEY, "--format", form)
        for form in ("text", "json", "jsonl")
    }
    document = json.loads(answers["json"].text)
    (line,) = answers["jsonl"].text.splitlines()
    code = answers["text"].rc
    assert (
        {ran.rc for ran in answers.values()} == {code, document["exit"], json.loads(line)["exit"]} == {code}
    )
    assert document["ok"] is (code == 0)
    lines = answers["text"].text.splitlines()
    assert [at for at, shown in enumerate(lines) if re.match(r"Verdict \d", shown)] == [len(lines) - 1]
    assert lines[-1].startswith(f"Verdict {code}, {WORDS[code]}. Next: ")
    assert lines[0].startswith(WORDS[code].upper())


@pytest.mark.parametrize("name", ["complete", "interrupted"])
def test_inspection_says_the_same_to_people_and_to_programs(name, tmp_path) -> None:
    """F-068: for the runtime's own command."""
    journal = written(name, tmp_path)
    text, report = (run("audit", "inspect", journal, *WHO, "--format", form) for form in ("text", "json"))
    expected = JOURNALS[name][1]
    assert text.rc == report.rc == expected
    assert json.loads(report.text)["requires_reconciliation"] is (expected == 2)
    assert text.text.splitlines()[-1].startswith(f"Verdict {expected}, {WORDS[expected]}. Next: ")


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_refusal_ends_with_what_to_do_next_in_both_forms(form, tmp_path) -> None:
    journal = written("refused", tmp_path)
    ran = run("audit", "inspect", journal, *WHO, "--format", form)
    assert (ran.rc, ran.out) == (1, b"")
    lines = ran.err.decode().splitlines()
    assert lines[0].startswith("Audit inspection failed: ")
    assert lines[-1].startswith("  next:  ")
    assert "COMPLETE" not in ran.err.decode()


def test_every_real_journal_gets_the_same_exit_code_for_people(evidence_copy) -> None:
    for check in checks("audit inspect"):
        ran = run(
            "audit",
            "inspect",
            evidence_copy / check.journal,
            "--run-id",
            check.run_id,
            "--public-key",
            check.public_key,
            "--format",
            "text",
        )
        assert ran.rc == check.rc, check.journal
        if check.rc != 1:
            assert ran.text.splitlines()[-1].startswith(f"Verdict {check.rc}, "), check.journal
            assert ran.text.splitlines()[0].endswith(Path(check.journal).name)


def test_on_a_terminal_people_are_the_readers_and_colour_carries_no_meaning(tmp_path) -> None:
    journal = written("interrupted", tmp_path)
    ran = run_terminal("audit", "inspect", journal, *WHO)
    assert ran.rc == 2
    assert "\x1b[33mNEEDS RECONCILIATION\x1b[0m" in ran.text
    plain = run_process("audit", "inspect", journal, *WHO, "--format", "text")
    assert re.sub(r"\x1b\[\d+m", "", ran.text) == plain.text
    for quiet in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert run_terminal("audit", "inspect", journal, *WHO, env=quiet).text == plain.text


def test_a_pipe_gets_the_runtimes_own_report(tmp_path) -> None:
    journal = written("complete", tmp_path)
    assert (
        run("audit", "inspect", journal, *WHO).out
        == run("audit", "inspect", journal, *WHO, "--format", "json").out
    )


HOSTILE = {
    "erase line": "\x1b[2K\r",
    "clear": "\x1b[2J\x1b[H",
    "up": "\x1b[5A",
    "title": "\x1b]0;x\x07",
    "backspaces": "\b" * 9,
    "C1": "\x9b2J\x85",
    "bidi": "\u202e\u2066",
    "separators": "\u2028\u2029",
    "own verdict": "\nVerdict 0, complete. Next: nothing has to be decided about this run.\n",
    "own heading": "\r\nCOMPLETE  journal\r\n",
    "zero width": "\u200b\ufeff",
}
ACTING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def poisoned(text: str) -> JournalWriter:
    """Every recorded string of a run holds `text`."""
    j = JournalWriter()
    bad = f"a{text}b"
    reference = events.reference(path=bad, key=bad)
    j.append(events.started(context={bad: bad}))
    j.append(inference.budget_opened())
    j.append(events.tool_dispatch_started(call_id=bad, fingerprint=bad, tool_name=bad, run_key=bad))
    started = effects.network_request_started(bad, {bad: bad}, method=bad, url=bad, request_hash=bad)
    j.append(effects.tool_effect(started, bad, run_key=bad))
    meant = intent(uid("p"), bad, [1, 7], [1, 8], path=bad, content=b"x")
    meant.update(target_name=bad, candidate_name=bad, sha256=bad)
    j.append(effects.tool_effect(effects.file_publication_prepared(meant), bad, run_key=bad))
    j.append(
        events.delegation_started(
            bad,
            reference,
            run_key=bad,
            call_fingerprint=bad,
            target=bad,
            system_prompt_hash=bad,
            message_hash=bad,
        )
    )
    j.append(inference.inference_requested(bad, endpoint=bad, model=bad, request_hash=bad))
    j.append(
        inference.direct_inference_requested(bad, operation=bad, provider=bad, model=bad, request_hash=bad)
    )
    reserved = inference.reservation(provider=bad, model=bad, request_hash=bad, audit=reference)
    j.append(inference.budget_reservation_started(reserved))
    j.append(events.response_delivery_started(bad, request_hash=bad))
    j.append(events.improvement_output(bad))
    j.append(events.tool_batch_completed(1, [events.observation(bad, bad, source=bad, metadata={bad: bad})]))
    j.append(events.recovery_triggered(tool_name=bad, error=bad))
    j.append(events.terminated({"Error": {"message": bad}}))
    return j


@pytest.mark.parametrize("kind", HOSTILE)
def test_recorded_text_is_shown_escaped_and_cannot_imitate_a_verdict(kind, tmp_path) -> None:
    """F-058, F-061: in every recorded string, on a pipe; the stored bytes stay, JSON keeps the runtime's form."""
    made = poisoned(HOSTILE[kind])
    journal = made.write(tmp_path / made.name)
    before = journal.read_bytes()
    for arguments in (
        ("inspect", *WHO),
        ("verify", "--public-key", KEY),
        ("show", "--public-key", KEY),
        ("show", "--public-key", KEY, "-v"),
    ):
        ran = run("audit", arguments[0], journal, *arguments[1:], "--format", "text")
        assert ran.rc in (0, 2), ran.err
        assert not ACTING.search(ran.text + ran.err.decode()), arguments
        verdicts = [line for line in ran.text.splitlines() if line.startswith(("Verdict", "COMPLETE"))]
        assert verdicts == ([] if arguments[0] == "show" else [ran.text.splitlines()[-1]])
    report = run("audit", "inspect", journal, *WHO, "--format", "json")
    assert HOSTILE[kind] in json.loads(report.text)["effects"][0]["details"]["tool_name"]
    assert b"\x1b" not in report.out
    assert journal.read_bytes() == before


@pytest.mark.parametrize("kind", ["erase line", "clear", "title", "own verdict"])
def test_a_terminal_receives_nothing_that_it_would_act_on(kind, tmp_path) -> None:
    """F-058: what is recorded does not become a sequence, even where colour is used."""
    made = poisoned(HOSTILE[kind])
    ran = run_terminal("audit", "inspect", made.write(tmp_path / made.name), *WHO)
    assert ran.rc == 2
    assert not ACTING.search(re.sub(r"\x1b\[\d+m", "", ran.text))


@pytest.mark.parametrize("kind", HOSTILE)
def test_bad_records_are_described_without_their_text_acting(kind, tmp_path) -> None:
    """F-058, F-060: names of unknown members and events, hashes and run ids reach messages."""
    bad = HOSTILE[kind]
    makers = (
        lambda j: j.append({f"x{bad}": {}}),
        lambda j: j.append(events.terminated(), previous_hash=f"x{bad}"),
        lambda j: j.append(events.terminated(), **{f"x{bad}": 1}),
        lambda j: j.append(events.terminated(), run_id=f"x{bad}"),
        lambda j: j.append_raw(bad.replace("\n", "").encode() + b"\n"),
    )
    for make in makers:
        j = small(3, end=False)
        make(j)
        journal = j.write(tmp_path / "j")
        for verb in ("inspect", "verify", "show"):
            who = WHO if verb == "inspect" else WHO[2:]
            ran = run("audit", verb, journal, *who, "--format", "text")
            assert ran.rc == 1
            assert not ACTING.search(ran.text + ran.err.decode())


def test_json_lines_of_ours_are_as_many_for_every_reader(tmp_path) -> None:
    """F-045, F-044: separators inside strings end no line of ours, nor one of the journal."""
    made = poisoned("\x85\u2028\u2029\x0b\x0c\x1c")
    journal = made.write(tmp_path / made.name)
    ran = run("audit", "show", journal, "--public-key", KEY, "--format", "jsonl")
    rows = ran.out.split(b"\n")
    assert rows.pop() == b""
    assert len(rows) == len(made.lines) == ran.out.count(b"\n")
    assert [json.loads(row)["line"] for row in rows] == list(range(len(rows)))
    offsets = [(json.loads(row)["start"], json.loads(row)["end"]) for row in rows]
    assert offsets[-1][1] == journal.stat().st_size


def test_the_evidence_of_these_tests_is_there() -> None:
    assert {check.rc for check in checks("audit inspect")} == {0, 1, 2}
    assert len(members()) > 100
