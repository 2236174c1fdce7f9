"""`invocation inspect`: grammar, keys, links, receipts, remarks, and that nothing is touched."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from tests.support.cli import Ran, run, run_process, run_terminal
from tests.support.evidence import fingerprint
from tests.support.writer.claim import Invocation, claim_name, open_invocation, review
from tests.support.writer.cron_store import cron_project
from tests.support.writer.events import terminated
from tests.support.writer.project import make_project, put
from tests.support.writer.text import SEED, public_key

PREFIX = "Invocation inspection/reconciliation failed: "
OTHER_SEED = bytes(range(1, 33))


@pytest.fixture
def unresolved(tmp_path: Path) -> Invocation:
    return open_invocation(make_project(tmp_path / "p")).write()


@pytest.fixture
def recorded(tmp_path: Path) -> Invocation:
    invocation = open_invocation(make_project(tmp_path / "p"))
    invocation.journal.append(terminated())
    return invocation.write(result={"output": "done"})


def arguments(invocation: Invocation, **changed: str) -> list[str]:
    given = {
        "project": str(invocation.project.root),
        "scope": invocation.scope,
        "id": invocation.id,
    } | changed
    return [
        "invocation",
        "inspect",
        *(part for name, value in given.items() for part in (f"--{name}", value)),
    ]


def ask(invocation: Invocation, *more: str, **changed: str) -> Ran:
    return run(*arguments(invocation, **changed), *more)


def test_the_worked_example_is_printed_byte_for_byte(tmp_path: Path) -> None:
    """The example's project is /srv/project, so only what does not hang on the path can be compared."""
    invocation = open_invocation(
        make_project(tmp_path / "p"),
        "fixture:v1",
        "11111111-2222-4333-8444-555555555555",
        agent_id="aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee",
        run_id="99999999-8888-4777-8666-555555555555",
        start=False,
    ).write()
    assert (
        invocation.claim_path.name == "ea912c0720838dec4ea5b58b8e9006662d1410a0c1b018696f3eb9f873334efe.jsonl"
    )
    ran = ask(invocation)
    assert ran.rc == 2
    expected = {
        "status": "unresolved",
        "snapshot_hash": invocation.snapshot_hash(),
        "snapshot": invocation.snapshot(),
        "recovery": None,
        "resolution": None,
    }
    assert ran.text == json.dumps(expected, indent=2, ensure_ascii=False) + "\n"


def test_each_status_has_its_exit_code(unresolved: Invocation) -> None:
    assert ask(unresolved).rc == 2
    unresolved.resolve()
    ran = ask(unresolved)
    assert (ran.rc, json.loads(ran.out)["status"]) == (0, "reconciled")


def test_a_torn_tail_changes_the_snapshot_and_keeps_the_answer(unresolved: Invocation) -> None:
    unresolved.write(torn=b'{"kind":"res')
    ran = ask(unresolved)
    assert ran.rc == 2
    snapshot = json.loads(ran.out)["snapshot"]
    assert snapshot["claim_sha256"] == hashlib.sha256(unresolved.claim_path.read_bytes()).hexdigest()
    assert b"claim_torn" in ran.err


def test_a_resolution_over_a_recorded_result_is_shown_and_remarked(recorded: Invocation) -> None:
    assert ask(recorded).rc == 0
    recorded.resolve()
    ran = ask(recorded)
    assert (ran.rc, json.loads(ran.out)["status"]) == (0, "reconciled")
    assert b"resolution_overrides" in ran.err


def test_a_receipt_of_another_key_or_context_is_refused(unresolved: Invocation) -> None:
    unresolved.project.seed = OTHER_SEED
    unresolved.resolve()
    ran = ask(unresolved)
    assert ran.rc == 1
    assert ran.first_error_line == PREFIX + "signature error: Verification equation was not satisfied"
    assert b"symbi-invocation-resolution:v1" in ran.err


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ("", "signature error"),
        ("ab", "signature error"),
        ("ab" * 63, "signature error"),
        ("ab" * 65, "signature error"),
        ("abc", "Odd number of digits"),
        ("xy" * 64, "Invalid character 'x' at position 0"),
        ("ff" * 64, "signature error: Cannot use scalar with high-bit set"),
    ],
)
def test_nothing_to_check_is_never_success(unresolved: Invocation, signature: str, message: str) -> None:
    path = unresolved.resolve()
    value = json.loads(path.read_bytes())
    value["signature"] = signature
    put(path, json.dumps(value).encode())
    ran = ask(unresolved)
    assert (ran.rc, ran.first_error_line) == (1, PREFIX + message)


@pytest.mark.parametrize("data", [b"", b"x", b"\0" * 1000])
def test_a_receipt_that_is_present_and_invalid_is_never_taken_for_absent(
    unresolved: Invocation, data: bytes
) -> None:
    put(unresolved.receipt_path, data)
    assert ask(unresolved).rc == 1
    assert unresolved.receipt_path.read_bytes() == data


def test_the_same_assessment_under_two_names_counts_once(unresolved: Invocation) -> None:
    path = unresolved.resolve()
    put(path.with_name(f"{'0' * 64}.resolved.json"), path.read_bytes())
    assert json.loads(ask(unresolved).out)["resolution"]["review"] == review(unresolved.snapshot_hash())


def test_a_second_journal_written_with_another_key_is_refused_when_a_key_is_given(
    unresolved: Invocation,
) -> None:
    good = public_key(SEED)
    assert ask(unresolved, "--public-key", good).rc == 2
    ran = ask(unresolved, "--public-key", public_key(OTHER_SEED))
    assert ran.rc == 1
    assert good in ran.first_error_line
    assert b"claim_key_differs" in ran.err


def test_without_a_key_the_claims_own_is_used_and_that_is_said(unresolved: Invocation) -> None:
    assert b"claim_key_from_evidence" in ask(unresolved).err
    assert b"claim_key_from_evidence" not in ask(unresolved, "--public-key", public_key(SEED)).err
    assert ask(unresolved, "-q").err == b""


def test_pinned_keys_decide_without_being_asked_for(unresolved: Invocation, tmp_path: Path) -> None:
    home = {"SYMBI_RECOVER_HOME": str(tmp_path / "home")}
    root = str(unresolved.project.root)
    assert run("trust", "add", public_key(OTHER_SEED), "--project", root, env=home).rc == 0
    assert run(*arguments(unresolved), env=home).rc == 1
    assert run("trust", "add", public_key(SEED), "--project", root, env=home).rc == 0
    ran = run(*arguments(unresolved), env=home)
    assert ran.rc == 2
    assert b"claim_key_from_evidence" not in ran.err


def test_a_trust_file_that_pins_nothing_verifies_nothing(unresolved: Invocation, tmp_path: Path) -> None:
    empty = put(tmp_path / "trust.jsonl", b"")
    ran = ask(unresolved, "--trust", str(empty))
    assert ran.rc == 1
    assert b"nothing was verified" in ran.err
    assert ask(unresolved, "--trust", str(tmp_path / "missing")).rc == 1


def test_low_order_keys_are_refused(tmp_path: Path) -> None:
    invocation = open_invocation(make_project(tmp_path / "p"))
    forged = invocation.records().replace(public_key(SEED).encode(), b"01" + b"00" * 31)
    invocation.write(claim=forged)
    assert ask(invocation).rc == 1


@pytest.mark.parametrize(
    "argv",
    [
        ["invocation", "inspect"],
        ["invocation", "inspect", "--scope", "s"],
        ["invocation", "inspect", "--scope", "s", "--id"],
        ["invocation", "inspect", "--scope", "s", "--id", "-x"],
        ["invocation", "inspect", "--scope", "s", "--id", "x", "--id", "y"],
        ["invocation", "inspect", "--scope", "s", "--id", "x", "extra"],
        ["invocation", "inspect", "--sco", "s", "--id", "x"],
        ["invocation", "file-inspect", "--scope", "s", "--id", "x"],
    ],
)
def test_usage_errors_end_with_2_as_in_the_runtime(argv: list[str]) -> None:
    ran = run(*argv)
    assert (ran.rc, ran.out) == (2, b"")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"project": "/nonexistent/p"}, "No such file or directory (os error 2)"),
        ({"id": "nope"}, "invocation ID must be a UUID"),
        ({"id": ""}, "invocation ID must be a UUID"),
        ({"scope": ""}, "invalid invocation scope"),
        ({"scope": "x" * 257}, "invalid invocation scope"),
        ({"scope": "é" * 129}, "invalid invocation scope"),
        ({"scope": "other"}, "No such file or directory (os error 2)"),
    ],
)
def test_early_refusals_have_the_runtimes_words(
    unresolved: Invocation, changed: dict[str, str], message: str
) -> None:
    ran = ask(unresolved, **changed)
    assert (ran.rc, ran.first_error_line) == (1, PREFIX + message)


def test_the_checks_come_in_the_runtimes_order(unresolved: Invocation) -> None:
    ran = ask(unresolved, project="/nonexistent", id="nope", scope="")
    assert ran.first_error_line == PREFIX + "No such file or directory (os error 2)"
    assert ask(unresolved, id="nope", scope="").first_error_line == PREFIX + "invocation ID must be a UUID"


@pytest.mark.parametrize("spelling", ["{%s}", "urn:uuid:%s"])
def test_an_id_is_compared_by_value_in_every_spelling_that_the_runtime_takes(
    unresolved: Invocation, spelling: str
) -> None:
    assert ask(unresolved, id=spelling % unresolved.id.upper()).rc == 2
    assert ask(unresolved, id=UUID(unresolved.id).hex).rc == 2


def linked(path: Path) -> None:
    moved = path.with_name(f"{path.name}-moved")
    path.rename(moved)
    path.symlink_to(moved)


def test_a_project_given_through_a_link_is_resolved_as_in_the_runtime(
    unresolved: Invocation, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(unresolved.project.root)
    assert ask(unresolved, project=str(tmp_path / "link")).rc == 2


def test_links_between_project_and_evidence_are_never_followed(unresolved: Invocation) -> None:
    linked(unresolved.project.invocations)
    assert ask(unresolved).first_error_line == PREFIX + "journal directory must be private and runtime-owned"
    unresolved.project.invocations.unlink()
    unresolved.project.invocations.with_name("invocations-moved").rename(unresolved.project.invocations)
    assert ask(unresolved).rc == 2
    for folder in (unresolved.project.governed, unresolved.project.state):
        linked(folder)
        ran = ask(unresolved)
        assert (ran.rc, ran.out) == (1, b"")
        assert b"store_behind_link" in ran.err


def test_a_dangling_link_at_the_store_is_an_absent_store(tmp_path: Path, unresolved: Invocation) -> None:
    project = make_project(tmp_path / "q")
    (project.invocations / "store.lock").unlink()
    project.invocations.rmdir()
    project.invocations.symlink_to("/nowhere")
    assert (
        ask(unresolved, project=str(project.root)).first_error_line
        == PREFIX + "invocation store does not exist"
    )


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_loose_mode_is_refused_and_shown_also_for_root(unresolved: Invocation, mode: int) -> None:
    for path, text in (
        (
            unresolved.claim_path,
            "invocation file must be private, runtime-owned, have one link and be bounded",
        ),
        (unresolved.journal_path, "invocation journal must be private, runtime-owned and singly linked"),
    ):
        path.chmod(mode)
        ran = ask(unresolved)
        assert ran.first_error_line == PREFIX + text
        assert f"mode 0{mode:o}".encode() in ran.err
        path.chmod(0o600)


def fifo(path: Path) -> None:
    os.mkfifo(path, 0o600)


def folder(path: Path) -> None:
    path.mkdir()


def to_zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


def to_itself(path: Path) -> None:
    path.symlink_to(path)


def huge(path: Path) -> None:
    put(path, b"")
    os.truncate(path, 1 << 40)


def one_over(path: Path) -> None:
    put(path, b"")
    os.truncate(path, 2_097_153)


@pytest.mark.parametrize(
    ("which", "make"),
    [
        *(("journal_path", make) for make in (fifo, folder, to_zero, to_itself, huge)),
        *(
            (which, make)
            for which in ("claim_path", "receipt_path")
            for make in (fifo, folder, to_zero, to_itself, huge, one_over)
        ),
    ],
)
def test_what_is_no_bounded_file_is_refused_at_once(
    unresolved: Invocation, which: str, make: Callable[[Path], None]
) -> None:
    path: Path = getattr(unresolved, which)
    path.unlink(missing_ok=True)
    make(path)
    ran = ask(unresolved)
    assert (ran.rc, ran.out) == (1, b"")
    assert len(ran.err) < 2000


def test_a_claim_of_zeros_and_a_claim_of_brackets_are_refused_quickly(unresolved: Invocation) -> None:
    for data in (b"\0" * 2_000_000 + b"\n", b"[" * 2_000_000 + b"\n", b'{"a":' * 400_000 + b"\n"):
        put(unresolved.claim_path, data)
        ran = ask(unresolved)
        assert ran.rc == 1
        assert b"invalid invocation evidence: " in ran.err


def test_a_claim_that_was_renamed_is_for_another_invocation(unresolved: Invocation) -> None:
    other = "0f0e0d0c-0b0a-4908-8706-050403020100"
    unresolved.claim_path.rename(
        unresolved.claim_path.with_name(f"{claim_name(unresolved.scope, other)}.jsonl")
    )
    ran = ask(unresolved, id=other)
    assert ran.first_error_line == PREFIX + "invalid invocation evidence identity or record order"
    assert unresolved.id.encode() in ran.err


def test_a_journal_that_is_gone_is_evidence_that_is_missing(unresolved: Invocation) -> None:
    unresolved.journal_path.unlink()
    assert ask(unresolved).first_error_line == PREFIX + "No such file or directory (os error 2)"


def test_recorded_text_cannot_speak_for_the_tool(tmp_path: Path) -> None:
    scope = "x\nVerdict 0, nothing to do.\x1b[2J\u202e"
    invocation = open_invocation(make_project(tmp_path / "p"), scope).write()
    shown = run(*arguments(invocation), "--format", "text")
    assert shown.rc == 2
    assert sum(line.startswith("Verdict") for line in shown.text.splitlines()) == 1
    assert shown.text.splitlines()[-1].startswith("Verdict 2")
    assert not {"\x1b", "\u202e"} & set(shown.text)


def test_on_a_terminal_the_readable_form_is_shown(unresolved: Invocation) -> None:
    ran = run_terminal(*arguments(unresolved))
    assert ran.rc == 2
    assert b"UNRESOLVED" in ran.out
    assert b"draft-review" in ran.out
    piped = run_process(*arguments(unresolved))
    assert piped.rc == 2
    assert json.loads(piped.out)["status"] == "unresolved"


@pytest.mark.parametrize("wal", [True, False])
def test_the_schedule_is_shown_beside_an_invocation_of_the_scheduler(tmp_path: Path, wal: bool) -> None:
    invocation = cron_project(make_project(tmp_path / "p"), wal=wal, leave_wal=wal)
    before = fingerprint(tmp_path)
    shown = run(*arguments(invocation), "--format", "text")
    assert shown.rc == 2
    assert "occurrence unresolved" in shown.text
    assert "DeadLetter" in shown.text
    assert run(*arguments(invocation)).rc == 2
    assert fingerprint(tmp_path) == before


def test_looking_changes_nothing_and_works_without_a_home(unresolved: Invocation, tmp_path: Path) -> None:
    unresolved.resolve()
    unresolved.project.store_lock.unlink()
    before = fingerprint(tmp_path)
    assert run(*arguments(unresolved), env={"HOME": "/nonexistent", "TMPDIR": "/nonexistent"}).rc == 0
    assert fingerprint(tmp_path) == before


def test_a_journal_cut_after_it_was_reviewed_contradicts_the_receipt(recorded: Invocation) -> None:
    recorded.resolve()
    lines = recorded.journal_path.read_bytes().splitlines(keepends=True)
    put(recorded.journal_path, lines[0])
    ran = ask(recorded)
    assert ran.rc == 1
    assert ran.first_error_line == PREFIX + (
        "reconciled evidence changed; original outcome requires renewed investigation"
    )
    assert b"the receipt is for snapshot" in ran.err


@pytest.mark.parametrize(
    "moment", ["2016-12-31T23:59:60Z", "2026-11-29T11:31:60Z", "2036-03-04T05:06:07Z", "1999-01-01T00:00:00Z"]
)
def test_nothing_is_refused_on_account_of_a_clock(unresolved: Invocation, moment: str) -> None:
    unresolved.resolve(recorded_at=moment)
    ran = ask(unresolved)
    assert (ran.rc, json.loads(ran.out)["resolution"]["recorded_at"]) == (0, moment)


def test_a_conflicting_second_assessment_beside_the_first_changes_nothing(unresolved: Invocation) -> None:
    first = unresolved.resolve().read_bytes()
    other = review(unresolved.snapshot_hash(), outcome="failed")
    put(unresolved.receipt_path.with_name(f"{'1' * 64}.resolved.json"), b"")
    unresolved.receipt_path.unlink()
    second = unresolved.resolve(other).read_bytes()
    put(unresolved.receipt_path.with_name(f"{'1' * 64}.resolved.json"), second)
    put(unresolved.receipt_path, first)
    assert json.loads(ask(unresolved).out)["resolution"]["review"]["outcome"] == "no_effects"


@pytest.mark.parametrize("drop", ["first", "claim"])
def test_evidence_with_a_front_cut_off_is_refused(recorded: Invocation, drop: str) -> None:
    path = recorded.journal_path if drop == "first" else recorded.claim_path
    put(path, path.read_bytes().split(b"\n", 1)[1])
    assert ask(recorded).rc == 1
