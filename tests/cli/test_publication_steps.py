"""What is said to do next about a publication leads on: to its end, to the assessment, never in a circle or to a refusal."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from symbi_recover.core.codes import CODES
from tests.cli.test_next_commands import typed
from tests.support.cli import Ran, run
from tests.support.writer.claim import Invocation
from tests.support.writer.events import terminated
from tests.support.writer.project import put
from tests.support.writer.publication import Publication
from tests.write.worlds import assess, command, finish, publishing

LOST = "cannot be recovered any more"


def target_taken(publication: Publication) -> None:
    put(publication.target, b"theirs")


def second_name(publication: Publication) -> None:
    publication.parent.joinpath("second").hardlink_to(publication.candidate)


def loosened(publication: Publication) -> None:
    publication.candidate.chmod(0o644)


def copied(publication: Publication) -> None:
    """The bytes are there, under another identity."""
    content = publication.candidate.read_bytes()
    kept = publication.candidate.rename(publication.candidate.with_name("kept"))
    put(publication.candidate, content)
    kept.unlink()


def altered(publication: Publication) -> None:
    put(publication.candidate, b"other content.!")


def gone(publication: Publication) -> None:
    publication.candidate.unlink()


def link_at_target(publication: Publication) -> None:
    publication.target.symlink_to("nowhere")


def unreachable(publication: Publication) -> None:
    publication.parent.rename(publication.parent.with_name("moved"))


INTACT: list[Callable[[Publication], None]] = [target_taken, second_name, loosened, copied]
LOST_FILES: list[Callable[[Publication], None]] = [altered, gone]


def shown(name: str, publication: Publication, *more: str) -> Ran:
    """A command about the publication, or about its invocation."""
    which = ("--publication", publication.id) if name.startswith("file-") else ()
    return command(name, publication.invocation, *which, *more, "--format", "text")


def following(ran: Ran) -> str:
    return ran.text.splitlines()[-1].partition("Next: ")[2]


@pytest.mark.parametrize("happened", INTACT)
def test_while_the_file_is_intact_the_next_step_settles_the_publication(
    happened: Callable[[Publication], None], tmp_path: Path
) -> None:
    publication = publishing(tmp_path)
    happened(publication)
    step = following(shown("file-inspect", publication))
    assert step.index("file-inspect") < step.index("draft-review")
    assert "gives the file up for good" in step


@pytest.mark.parametrize("happened", LOST_FILES)
def test_a_file_that_is_lost_leaves_the_assessment(
    happened: Callable[[Publication], None], tmp_path: Path
) -> None:
    publication = publishing(tmp_path)
    happened(publication)
    assert following(shown("file-inspect", publication)).startswith("symbi-recover invocation draft-review")


def test_a_settled_conflict_is_ready_again(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    target_taken(publication)
    shown("file-inspect", publication)
    publication.target.unlink()
    assert typed(shown("file-inspect", publication).text)[1] == "file-recover"


@pytest.mark.parametrize("happened", [*INTACT, link_at_target, unreachable])
def test_draft_plan_and_reconciliation_warn_while_the_file_may_still_be_there(
    happened: Callable[[Publication], None], tmp_path: Path
) -> None:
    publication = publishing(tmp_path)
    happened(publication)
    review = tmp_path / "review.json"
    drafted = shown("draft-review", publication, "--outcome", "failed", "--output", str(review))
    assert LOST in drafted.text
    plan = shown("reconcile", publication, "--review", str(review))
    assert LOST in plan.err.decode()
    assert any(LOST in text for text in assess(publication.invocation).given_up)


@pytest.mark.parametrize("happened", LOST_FILES)
def test_nothing_is_said_to_be_given_up_that_is_lost(
    happened: Callable[[Publication], None], tmp_path: Path
) -> None:
    publication = publishing(tmp_path)
    happened(publication)
    assert assess(publication.invocation).given_up == ()


def test_what_has_a_receipt_is_not_given_up_by_a_resolution(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    finish(publication)
    second = publication.parent / "second"
    second.hardlink_to(publication.target)
    assert assess(publication.invocation).given_up == ()


def test_no_text_about_a_conflict_leads_to_a_review_alone() -> None:
    for code in ("publication_conflict", "publication_identity_unconfirmed", "publication_conflicts"):
        assert "for good" in CODES[code].next, code


def test_after_a_recovery_the_next_steps_lead_to_the_assessment(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    words = typed(shown("inspect", publication).text)
    assert words[1] == "file-inspect"
    words = typed(run(*words, "--format", "text").text)
    assert words[1] == "file-recover"
    words = typed(run(*words, "--format", "text").text)
    assert words[1] == "inspect"
    words = typed(run(*words, "--format", "text").text)
    assert words[1] == "draft-review"


def test_a_published_file_with_a_receipt_leads_back_to_the_invocation(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    finish(publication)
    assert typed(shown("file-inspect", publication).text)[1] == "inspect"


def test_a_receipt_that_does_not_hold_settles_nothing(tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    put(publication.receipt_path, b"{}")
    assert typed(shown("inspect", publication).text)[1] == "file-inspect"


@pytest.mark.parametrize("recovered", [False, True])
@pytest.mark.parametrize("happened", [None, target_taken, gone])
def test_after_a_resolution_no_command_that_would_be_refused_is_printed(
    happened: Callable[[Publication], None] | None, recovered: bool, tmp_path: Path
) -> None:
    publication = publishing(tmp_path)
    if recovered:
        finish(publication)
    elif happened is not None:
        happened(publication)
    assess(publication.invocation)
    ran = shown("file-inspect", publication)
    step = following(ran)
    assert step.startswith("nothing; ")
    assert run(*typed(ran.text)).rc == 0


def test_a_recorded_result_leaves_nothing_to_do_about_a_file(tmp_path: Path) -> None:
    publication = publishing(tmp_path, publish=True)
    publication.sign_finished()
    publication.call.finish()
    publication.invocation.journal.append(terminated())
    publication.invocation.write(result=1)
    assert following(shown("file-inspect", publication)).startswith("nothing; ")


@pytest.mark.parametrize("kind", ["resolved", "conflict", "changed after its recovery"])
def test_a_plan_that_lacks_something_promises_no_step(kind: str, tmp_path: Path) -> None:
    publication = publishing(tmp_path)
    if kind == "resolved":
        assess(publication.invocation)
    elif kind == "conflict":
        target_taken(publication)
    else:
        finish(publication)
        publication.target.unlink()
    ran = command("file-recover", publication.invocation, "--publication", publication.id)
    plan = json.loads(ran.out)
    assert plan["missing"]
    assert (plan["steps"], plan["consent"]) == ([], None)
    consent = ("--publication", publication.id, "--snapshot-hash", publication.invocation.snapshot_hash())
    assert command("file-recover", publication.invocation, *consent).rc == 1


def sweep(invocation: Invocation) -> int:
    return run("invocation", "list", "--project", invocation.project.root).rc


@pytest.mark.parametrize("happened", [None, target_taken, gone])
def test_a_resolved_invocation_does_not_keep_the_list_from_zero(
    happened: Callable[[Publication], None] | None, tmp_path: Path
) -> None:
    publication = publishing(tmp_path)
    if happened is not None:
        happened(publication)
    assert sweep(publication.invocation) == 2
    assess(publication.invocation)
    assert sweep(publication.invocation) == 0
    assert command("inspect", publication.invocation).rc == 0
