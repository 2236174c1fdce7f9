"""The runtime's own answers to `invocation …`: recorded cases, and its evidence. All must come out the same."""

import re
from pathlib import Path
from typing import Any

import pytest

from symbi_recover.cli.app import COMMANDS
from tests.support import evidence
from tests.support.cases import INVOCATION_PLACE, invocation_cases, laid_out
from tests.support.cli import Ran, run

PREFIX = "Invocation inspection/reconciliation failed: "
MALFORMED = "invalid invocation evidence: "
LITERALS = frozenset(
    {
        "invocation ID must be a UUID",
        "publication ID must be a UUID",
        "invalid invocation scope",
        "invocation store does not exist",
        "journal directory must be private and runtime-owned",
        "invocation file must be private, runtime-owned, have one link and be bounded",
        "reconciliation requires a complete claim identity and audit reference",
        "invalid invocation admission binding",
        "invalid invocation evidence identity or record order",
        "Odd number of digits",
        "invalid invocation audit key",
        "invocation journal must be private, runtime-owned and singly linked",
        "Journal write failed: signed journal has no records",
        "Journal write failed: signed journal chain or principal mismatch",
        "signed run does not bind the invocation claim",
        "invocation principal differs from its journal",
        "resolution requires stopped/settled effects, a bounded rationale and 1–32 evidence references "  # noqa: RUF001 -- the runtime's dash
        "with SHA-256 digests",
        "signature error",
        "signature error: Verification equation was not satisfied",
        "reconciled evidence changed; original outcome requires renewed investigation",
        "publication parent identity changed",
        "review must be a regular file",
        "review exceeds 128 KiB",
        "invocation already has a different resolution",
        "invocation evidence changed since review; inspect it again",
        "invocation already has a verified recorded result",
        "original audit signing key is unavailable",
        "invalid protected journal signing key",
        "current signing key differs from the original invocation key",
    }
)
PATTERNS = re.compile(r".*\(os error [0-9]+\)|Invalid character '.*' at position [0-9]+", re.DOTALL)


def same_answer(ran: Ran, case: dict[str, Any]) -> None:
    """Exit code; the document; and the message as far as its wording is fixed."""
    assert ran.rc == case["rc"], ran.err.decode()
    if case["rc"] in (0, 2):
        assert ran.out.decode() == case["stdout"]
        return
    assert ran.out == b""
    expected = case["stderr"].strip()
    message = expected.removeprefix(PREFIX)
    if message in LITERALS or PATTERNS.fullmatch(message):
        assert ran.first_error_line == expected
    elif message.startswith(MALFORMED):
        assert ran.first_error_line.startswith(PREFIX + MALFORMED)
    else:
        assert ran.first_error_line.startswith(PREFIX)
        assert ran.first_error_line.removeprefix(PREFIX) not in LITERALS


def ask(case: dict[str, Any], project: Path) -> Ran:
    arguments = ["invocation", case["command"], "--project", str(project)]
    arguments += ["--scope", case["scope"], "--id", case["invocation"]]
    if case["command"] == "reconcile":
        arguments += ["--review", str(INVOCATION_PLACE / "review.json")]
    return run(*arguments)


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in invocation_cases().items()])
def test_a_recorded_invocation_case_is_answered_as_the_runtime_did(case: dict[str, Any]) -> None:
    if case["command"] not in COMMANDS["invocation"]:
        pytest.skip(f"not run: there is no `invocation {case['command']}` in this version")
    with laid_out(case) as project:
        before = evidence.fingerprint(project)
        ran = ask(case, project)
        if case["command"] == "inspect":
            assert evidence.fingerprint(project) == before
    same_answer(ran, case)


CHECKS = [check for check in evidence.checks() if check.command.startswith("invocation ")]


@pytest.mark.parametrize(
    "check", CHECKS, ids=[f"{c.command}/{c.project}/{c.id}/{c.publication}" for c in CHECKS]
)
def test_the_runtimes_own_evidence_is_answered_as_the_runtime_did(
    check: evidence.Check, evidence_place: Path
) -> None:
    arguments = [*check.command.split(), "--project", str(evidence_place / check.project)]
    arguments += ["--scope", check.scope, "--id", check.id]
    if check.publication:
        arguments += ["--publication", check.publication]
    ran = run(*arguments)
    same_answer(ran, {"rc": check.rc, "stdout": check.stdout, "stderr": check.stderr})


def test_every_recorded_message_is_known_as_fixed_or_as_the_decoders_own() -> None:
    texts = {
        case["stderr"].strip().removeprefix(PREFIX) for case in invocation_cases().values() if case["rc"] == 1
    }
    fixed = {text for text in texts if text in LITERALS or PATTERNS.fullmatch(text)}
    free = {text for text in texts - fixed if not text.startswith(MALFORMED)}
    decoder = re.compile(r".* at line [0-9]+ column [0-9]+", re.DOTALL)
    assert all(decoder.fullmatch(text) for text in free), sorted(free)
    assert len(fixed) > 20
