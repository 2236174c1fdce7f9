"""Two operators at once, and a partner that exchanges files and folders while a recovery runs.

Operators are forked processes that start together; each run is a new world. An ordinary run does a share of the races,
`-m slow` all of them. The partner runs for as long as the recovery does, without pause.
"""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from symbi_recover.core.errors import RecoverError
from symbi_recover.read import ledger
from symbi_recover.read.evidence.opener import OpenedFile
from tests.support.writer.claim import Invocation
from tests.support.writer.project import put
from tests.support.writer.publication import Publication
from tests.write.worlds import assess, finish, interrupted, operator_home, publishing, recorder, reviewed

RACES, ALL_RACES = 20, 1000
SWAPS, ALL_SWAPS = 30, 1000
CLEAR = {
    "invocation is still owned; reconciliation refused",
    "invocation store busy; retry with the same ID",
    "invocation already has a different resolution",
    "invocation already has an operator resolution; no new file recovery permitted",
}
Act = Callable[[Path], str]


def together(*acts: Callable[[], str]) -> list[str]:
    """Run acts in processes that start at one signal; gives what each answered."""
    gate, opened = os.pipe()
    children = []
    for act in acts:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(opened)
            os.read(gate, 1)
            try:
                answer = act()
            except RecoverError as error:
                answer = f"refused: {error.message}"
            except BaseException as error:  # noqa: BLE001 -- the parent must hear of it
                answer = f"defect: {error!r}"
            os.write(write, answer.encode())
            os._exit(0)
        os.close(write)
        children.append((child, read))
    os.close(gate)
    os.close(opened)
    answers = []
    for child, read in children:
        with os.fdopen(read) as pipe:
            answers.append(pipe.read())
        os.waitpid(child, 0)
    return answers


def clear(answers: list[str]) -> None:
    """Nobody met a defect, and who was refused knows why."""
    for answer in answers:
        assert not answer.startswith("defect"), answer
        assert not answer.startswith("refused") or answer.removeprefix("refused: ") in CLEAR, answer


def resolve(invocation: Invocation, outcome: str, home: Path | None = None) -> Callable[[], str]:
    asked = reviewed(invocation, outcome=outcome)

    def act() -> str:
        record = None if home is None else recorder(home)
        return "repeated" if assess(invocation, asked, record=record).repeated else "published"

    return act


def publish(publication: Publication, home: Path | None = None) -> Callable[[], str]:
    snapshot = publication.invocation.snapshot_hash()
    return lambda: finish(publication, snapshot, record=None if home is None else recorder(home)).how


def receipts(invocation: Invocation, suffix: str) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in invocation.project.invocations.glob(f"*{suffix}")]


def no_temporaries(invocation: Invocation) -> None:
    assert not list(invocation.project.invocations.glob(".tmp*"))


def same_assessment(folder: Path) -> None:
    invocation, home = interrupted(folder), operator_home(folder)
    answers = together(resolve(invocation, "failed", home), resolve(invocation, "failed", home))
    clear(answers)
    assert answers.count("published") == 1, answers
    assert len(receipts(invocation, ".resolved.json")) == 1
    report = ledger.judge((home / "ledger.jsonl").read_bytes(), "l", key=None)
    assert [act.outcome for act in report.acts] in (["done"], ["already_done"]), report.acts
    no_temporaries(invocation)


def different_assessments(folder: Path) -> None:
    invocation = interrupted(folder)
    answers = together(resolve(invocation, "failed"), resolve(invocation, "completed"))
    clear(answers)
    assert answers.count("published") == 1, answers
    (receipt,) = receipts(invocation, ".resolved.json")
    winner = ("failed", "completed")[answers.index("published")]
    assert receipt["payload"]["review"]["outcome"] == winner
    no_temporaries(invocation)


def two_recoveries(folder: Path) -> None:
    publication = publishing(folder)
    answers = together(publish(publication), publish(publication))
    clear(answers)
    assert answers.count("renamed") == 1, answers
    assert os.listdir(publication.parent) == ["report.txt"]
    assert len(receipts(publication.invocation, ".publication.json")) == 1
    no_temporaries(publication.invocation)


def recovery_and_assessment(folder: Path) -> None:
    publication = publishing(folder)
    answers = together(publish(publication), resolve(publication.invocation, "failed"))
    clear(answers)
    recovered, resolved = answers
    assert recovered == "renamed" or resolved == "published", answers
    assert publication.target.exists() == (recovered == "renamed")
    assert publication.candidate.exists() != publication.target.exists()
    assert len(receipts(publication.invocation, ".publication.json")) == (recovered == "renamed")
    assert len(receipts(publication.invocation, ".resolved.json")) == (resolved == "published")
    no_temporaries(publication.invocation)


def two_invocations_one_target(folder: Path) -> None:
    """Two invocations that promise the same name: the rename settles it."""
    from tests.support.writer.claim import open_invocation
    from tests.support.writer.project import make_project
    from tests.support.writer.publication import prepare_publication
    from tests.support.writer.text import uid

    project = make_project(folder / "p")
    made = []
    for number, content in enumerate((b"one", b"two")):
        invocation = open_invocation(
            project, invocation_id=uid("i", number), agent_id=uid("a", number), run_id=uid("r", number)
        )
        made.append(
            prepare_publication(invocation, folder / "out", content=content, publication_id=uid("p", number))
        )
        invocation.write()
    answers = together(*map(publish, made))
    assert answers.count("renamed") == 1, answers
    winner = answers.index("renamed")
    assert made[0].target.read_bytes() == (b"one", b"two")[winner]
    assert made[1 - winner].candidate.exists()
    assert len(receipts(made[0].invocation, ".publication.json")) == 1


PAIRS = (
    same_assessment,
    different_assessments,
    two_recoveries,
    recovery_and_assessment,
    two_invocations_one_target,
)


@pytest.mark.parametrize("pair", PAIRS)
def test_f110_two_operators_at_once_leave_one_receipt_each(
    pair: Callable[[Path], None], tmp_path: Path
) -> None:
    race(pair, tmp_path, RACES)


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS)
def test_f110_two_operators_at_once_every_time(pair: Callable[[Path], None], tmp_path: Path) -> None:
    race(pair, tmp_path, ALL_RACES)


def race(pair: Callable[[Path], None], tmp_path: Path, times: int) -> None:
    for number in range(times):
        folder = tmp_path / f"{number:04}"
        folder.mkdir()
        pair(folder)


def restless(publication: Publication, what: str) -> int:
    """Fork a partner that exchanges one thing for a foreign one and back, without pause; gives its number."""
    child = os.fork()
    if child:
        return child
    path = {
        "candidate": publication.candidate,
        "target": publication.target,
        "parent": publication.parent,
    }[what]
    world = publication.parent.parent
    while True:
        _exchange(path, world / "foreign", world / "aside", what)


def _exchange(path: Path, foreign: Path, aside: Path, what: str) -> None:
    """The true thing goes aside, the foreign one takes its name for a moment, and all is put back."""
    from symbi_recover.write.atomic import rename_no_replace

    def move(old: Path, new: Path) -> bool:
        try:
            rename_no_replace(-100, str(old), -100, str(new))
        except OSError:
            return False
        return True

    if what == "target":
        if move(foreign, path):
            move(path, foreign)
    elif move(path, aside):
        if move(foreign, path):
            move(path, foreign)
        move(aside, path)


THEIRS = b"their-own-bytes"
"""As long as the promised content."""


def prepared(folder: Path, what: str) -> tuple[Publication, tuple[int, int]]:
    publication = publishing(folder)
    foreign = folder / "foreign"
    if what == "parent":
        foreign.mkdir(mode=0o700)
        put(foreign / publication.candidate.name, THEIRS)
        kept = foreign / publication.candidate.name
    else:
        kept = put(foreign, THEIRS)
    status = kept.stat()
    return publication, (status.st_ino, status.st_mtime_ns)


def everything(folder: Path) -> dict[int, bytes]:
    """Every file outside the project by inode."""
    return {
        path.stat().st_ino: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "/p/" not in str(path)
    }


def swap(folder: Path, what: str) -> bool:
    """One recovery beside a restless partner; whether it succeeded. Raises if anything foreign was published."""
    publication, (inode, changed) = prepared(folder, what)
    true_inode = publication.intent["candidate_identity"][1]
    snapshot = publication.invocation.snapshot_hash()
    partner = restless(publication, what)
    try:
        answer = together(publish(publication))[0] if snapshot else ""
    finally:
        os.kill(partner, signal.SIGKILL)
        os.waitpid(partner, 0)
    assert not answer.startswith("defect"), answer
    files = everything(folder)
    assert files[inode] == THEIRS, "the foreign file is whole, wherever it is"
    assert files[true_inode] == b"verified-output", "the true file is whole, wherever it is"
    assert len(files) == 2, files
    foreign = next(path for path in folder.rglob("*") if path.is_file() and path.stat().st_ino == inode)
    assert foreign.stat().st_mtime_ns == changed
    if what != "target":
        assert foreign.name != publication.target.name, "a foreign file has the final name"
    if answer == "renamed":
        true = next(path for path in folder.rglob("*") if path.is_file() and path.stat().st_ino == true_inode)
        assert true.name == publication.target.name
        assert publication.receipt_path.exists()
    return answer == "renamed"


@pytest.mark.parametrize("what", ["candidate", "target", "parent"])
def test_f097_a_restless_partner_never_gets_a_foreign_file_published(what: str, tmp_path: Path) -> None:
    swaps(what, tmp_path, SWAPS)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["candidate", "target", "parent"])
def test_f097_a_restless_partner_never_does_in_a_thousand_runs(what: str, tmp_path: Path) -> None:
    swaps(what, tmp_path, ALL_SWAPS)


def swaps(what: str, tmp_path: Path, times: int) -> None:
    for number in range(times):
        folder = tmp_path / f"{number:04}"
        folder.mkdir()
        swap(folder, what)


def test_a_rename_by_name_alone_is_caught_by_the_partner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: without taking the candidate aside first, a foreign file is published sooner or later."""
    from symbi_recover.core.values import PublicationIntent
    from symbi_recover.write import effect
    from symbi_recover.write.atomic import rename_no_replace
    from symbi_recover.write.holding import Holding

    class ByName(Holding):
        def take(self) -> None:
            """Leave it under its name."""

        def give(self) -> None:
            rename_no_replace(self.parent, self.intent.candidate_name, self.parent, self.intent.target_name)

        def put_back(self) -> None:
            """It never went."""

    def content_unseen(intent: PublicationIntent, file: OpenedFile) -> None:
        del intent, file

    monkeypatch.setattr(effect, "Holding", ByName)
    monkeypatch.setattr(effect, "_check_content", content_unseen)
    with pytest.raises(AssertionError, match=r"final name|defect"):
        swaps("candidate", tmp_path, 400)
