"""`audit inspect` answers as the runtime 3.0.0 did: every recorded case and every real journal.

Equal means: the exit code always; stdout byte for byte when it is 0 or 2, and empty otherwise; the first line of
stderr where its wording is part of the contract, and its prefix everywhere else.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from symbi_recover.wire import journal
from tests.support import evidence
from tests.support.audit_cases import JOURNAL_PREFIX, AuditCase, audit_case, audit_cases, has_fixed_wording
from tests.support.cli import Ran, run, run_process

SHOWN = 5

Inspect = Callable[[AuditCase], Ran]


def inspect(journal: Path, run_id: str, public_key: str) -> Ran:
    return run("audit", "inspect", journal, f"--run-id={run_id}", f"--public-key={public_key}")


def difference(ran: Ran, rc: int, stdout: str, stderr: str) -> str | None:
    """How an answer differs from the runtime's, in one line; None if it does not."""
    if ran.rc != rc:
        return f"exit {ran.rc}, not {rc}; ours: {ran.first_error_line!r}; theirs: {stderr!r}"
    if ran.out != stdout.encode():
        return f"stdout {_first_difference(ran.out, stdout.encode())}"
    ours, theirs = ran.first_error_line, stderr.split("\n", 1)[0]
    if has_fixed_wording(theirs) and ours != theirs:
        return f"said {ours!r}, not {theirs!r}"
    if theirs.startswith(JOURNAL_PREFIX) and not ours.startswith(JOURNAL_PREFIX):
        return f"said {ours!r} without the prefix of {theirs!r}"
    return None


def _first_difference(ours: bytes, theirs: bytes) -> str:
    shorter = min(len(ours), len(theirs))
    at = next((at for at in range(shorter) if ours[at] != theirs[at]), shorter)
    return f"differs at byte {at}: {ours[at : at + 60]!r}, not {theirs[at : at + 60]!r}"


def summary(differences: list[tuple[str, str]], total: int) -> str:
    shown = "\n".join(f"  {name}: {text}" for name, text in differences[:SHOWN])
    return f"{len(differences)} of {total} differ from the runtime, first {SHOWN}:\n{shown}"


@pytest.mark.parametrize("family", sorted(audit_cases()))
def test_recorded_cases_are_answered_as_the_runtime_did(family: str, tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    cases = audit_cases()[family]
    differences = []
    for case in cases:
        journal.write_bytes(case.data)
        text = difference(inspect(journal, case.run_id, case.public_key), case.rc, case.stdout, case.stderr)
        if text:
            differences.append((case.id, text))
    assert not differences, summary(differences, len(cases))


def test_real_journals_are_answered_as_the_runtime_did(evidence_place: Path) -> None:
    checks = evidence.checks("audit inspect")
    assert len(checks) == 75
    differences = []
    for check in checks:
        ran = inspect(evidence_place / check.journal, check.run_id, check.public_key)
        text = difference(ran, check.rc, check.stdout, check.stderr)
        if text:
            differences.append((check.journal, text))
    assert not differences, summary(differences, len(checks))


@pytest.mark.parametrize("name", sorted(evidence.scenarios()))
def test_a_process_of_its_own_gives_the_same_answer(name: str, evidence_copy: Path) -> None:
    scenario = evidence.scenarios()[name]
    known = {check.journal: check for check in evidence.checks("audit inspect")}
    if scenario.journal not in known:
        pytest.fail(f"the runtime's answer for {scenario.journal} is not shipped")
    check = known[scenario.journal]
    ran = run_process(
        "audit",
        "inspect",
        evidence_copy / check.journal,
        "--run-id",
        check.run_id,
        "--public-key",
        check.public_key,
    )
    assert difference(ran, check.rc, check.stdout, check.stderr) is None


def test_every_kind_of_answer_is_among_the_cases() -> None:
    everything = [case for cases in audit_cases().values() for case in cases]
    assert len(everything) == 5764
    assert {case.rc for case in everything} == {0, 1, 2}
    literal = {case.stderr.strip() for case in everything if has_fixed_wording(case.stderr.strip())}
    assert len(literal) >= 25


def test_the_comparison_notices_each_kind_of_difference() -> None:
    refused = audit_case("argument/run x")
    same = Ran(1, b"", refused.stderr.encode())
    assert difference(same, refused.rc, refused.stdout, refused.stderr) is None
    assert difference(same._replace(rc=2), refused.rc, refused.stdout, refused.stderr)
    assert difference(same._replace(out=b"{}\n"), refused.rc, refused.stdout, refused.stderr)
    assert difference(same._replace(err=b"Audit failed\n"), refused.rc, refused.stdout, refused.stderr)
    library = JOURNAL_PREFIX + "expected value at line 1 column 1\n"
    assert difference(Ran(1, b"", JOURNAL_PREFIX.encode() + b"not JSON\n"), 1, "", library) is None
    assert difference(Ran(1, b"", b"not JSON\n"), 1, "", library)


def test_nothing_that_the_runtime_wrote_is_called_unlike_its_writer() -> None:
    journals = {scenario.journal: evidence.journal(scenario) for scenario in evidence.scenarios().values()}
    lines = [
        line for data in journals.values() for line in data.splitlines(keepends=True) if line[-1:] == b"\n"
    ]
    assert len(lines) == 97
    unlike = [line[:300] for line in lines if not journal.decode(journal.envelope(line)[0]).canonical]
    assert unlike == []
