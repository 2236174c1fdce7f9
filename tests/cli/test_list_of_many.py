"""`invocation list` over many projects, and with bad claims: what could not be read is said, and what is wrong is explained."""

import errno
import fcntl
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from symbi_recover.cli.reading import invocations
from symbi_recover.core.codes import CODES
from tests.support.cli import Ran, run
from tests.support.writer.claim import Invocation, open_invocation
from tests.support.writer.events import terminated
from tests.support.writer.project import make_project, put
from tests.support.writer.text import SEED, public_key

OTHER = public_key(bytes(range(1, 33)))


def project(folder: Path, *, settled: bool = True) -> Invocation:
    folder.mkdir(parents=True)
    invocation = open_invocation(make_project(folder))
    if settled:
        invocation.journal.append(terminated())
        return invocation.write(result=1)
    return invocation.write()


def forbid(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    """Nobody may look into these folders; as modes would have it, for those whom modes bind."""

    def guarded(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any, *more: Any, **options: Any) -> Any:
            inside = isinstance(path, str) and [f for f in folders if path.startswith(f"{f}/")]
            if inside or (real is scandir and path in map(str, folders)):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
            return real(path, *more, **options)

        return call

    scandir = os.scandir
    for name in ("scandir", "lstat", "stat"):
        monkeypatch.setattr(os, name, guarded(getattr(os, name)))


def sweep(root: Path, form: str = "json", *more: str) -> Ran:
    return run("invocation", "list", "--project", root, "--recursive", "--format", form, *more)


@pytest.mark.parametrize("form", ["json", "jsonl", "csv", "text"])
def test_a_folder_that_cannot_be_looked_into_is_named(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        project(tmp_path / name)
    forbid(monkeypatch, tmp_path / "a", tmp_path / "c")
    ran = sweep(tmp_path, form)
    said = ran.text + ran.err.decode()
    assert ran.rc == 0, "what could be read has nothing to do"
    for name in ("a", "c"):
        assert f"the projects in {tmp_path / name}" in said
    if form == "text":
        assert ran.text.splitlines()[-1] == "Verdict 0, nothing to do in what could be read."
    if form == "json":
        document = json.loads(ran.out)
        assert len(document["projects"]) == 1
        assert {one["why"] for one in document["not_checked"]} == {"Permission denied (os error 13)"}


def test_where_nothing_could_be_looked_into_nothing_was_examined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path / "a")
    forbid(monkeypatch, tmp_path / "a")
    ran = sweep(tmp_path)
    failed = json.loads(ran.out)
    assert (ran.rc, failed["code"]) == (3, "projects_unread")
    assert str(tmp_path / "a") in failed["detail"]


def test_a_project_whose_evidence_may_not_be_looked_at_was_not_examined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path / "a")
    project(tmp_path / "b")
    forbid(monkeypatch, tmp_path / "a" / ".symbiont")
    ran = sweep(tmp_path)
    first, second = json.loads(ran.out)["projects"]
    assert ran.rc == 3
    assert first["findings"][0]["code"] == "file_unreadable"
    assert len(second["invocations"]) == 1


def test_a_folder_without_evidence_is_no_project_and_no_doubt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path / "a")
    (tmp_path / "b" / "c").mkdir(parents=True)
    assert json.loads(sweep(tmp_path).out)["not_checked"] == []


def test_the_folders_that_are_named_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(tmp_path / "a")
    closed = [tmp_path / f"closed-{number}" for number in range(9)]
    for folder in closed:
        folder.mkdir()
    forbid(monkeypatch, *closed)
    monkeypatch.setattr(invocations, "_MOST_UNREAD", 4)
    left_out = json.loads(sweep(tmp_path).out)["not_checked"]
    assert len(left_out) == 5
    assert "5 more folders" in left_out[-1]["what"]


def listed(root: Path, *more: str) -> Ran:
    return run("invocation", "list", "--project", root, "--format", "text", *more)


def test_a_refused_claim_is_explained_with_its_path_and_a_next_step(tmp_path: Path) -> None:
    invocation = project(tmp_path / "p", settled=False)
    ran = listed(tmp_path / "p", "--public-key", OTHER)
    assert ran.rc == 1
    assert CODES["claim_key_differs"].meaning in ran.text
    assert str(invocation.claim_path) in ran.text
    assert OTHER in ran.text
    assert ran.text.splitlines()[-1].endswith(f"Next: {CODES['claim_key_differs'].next}")


def state(root: Path, *more: str) -> str:
    (row,) = json.loads(run("invocation", "list", "--project", root, *more).out)["projects"][0]["invocations"]
    return str(row["state"])


def test_a_claim_that_was_read_is_not_called_unreadable(tmp_path: Path) -> None:
    invocation = project(tmp_path / "p", settled=False)
    assert state(tmp_path / "p", "--public-key", OTHER) == "refused"
    shutil.copytree(tmp_path / "p", tmp_path / "moved")
    assert state(tmp_path / "moved", "--public-key", public_key(SEED)) == "refused"
    put(invocation.receipt_path, b"{}")
    assert state(tmp_path / "p") == "refused"
    put(invocation.claim_path, b"")
    assert state(tmp_path / "p") == "unreadable"


def full(root: Path) -> str:
    big = make_project(root).invocations / f"{'9' * 64}.publication.json"
    put(big, b"")
    os.truncate(big, 63_000_000)
    return "store_capacity"


def stray(root: Path) -> str:
    (make_project(root).invocations / "folder").mkdir()
    return "store_entry_stray"


@pytest.mark.parametrize("happened", [full, stray])
def test_where_no_claim_is_unresolved_the_next_step_is_about_the_store(
    happened: Callable[[Path], str], tmp_path: Path
) -> None:
    code = happened(tmp_path / "p")
    last = listed(tmp_path / "p").text.splitlines()[-1]
    assert last.startswith("Verdict 2, ")
    assert "invocation inspect" not in last
    assert code in listed(tmp_path / "p").text
    assert "Next: " in last


def test_an_unresolved_claim_is_to_be_inspected(tmp_path: Path) -> None:
    project(tmp_path / "p", settled=False)
    assert "invocation inspect" in listed(tmp_path / "p").text.splitlines()[-1]


def test_a_run_that_is_under_way_is_explained_only_on_request(tmp_path: Path) -> None:
    invocation = project(tmp_path / "p", settled=False)
    with invocation.claim_path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert "Found" not in listed(tmp_path / "p").text
        assert CODES["claim_live"].meaning in listed(tmp_path / "p", "-v").text
