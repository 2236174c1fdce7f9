"""From `audit show` on, each printed command about a journal runs and leads on, until there is a verdict or a claim."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.cli import Ran, run
from tests.support.sample_journals import KEY, small
from tests.support.writer.journal import JournalWriter
from tests.support.writer.text import RUN

FOREIGN = JournalWriter(seed=bytes(reversed(range(32)))).public_key


def last_line(ran: Ran) -> str:
    return (ran.text or ran.err.decode()).splitlines()[-1]


def following(ran: Ran) -> list[str]:
    """The words of the command in the last line as a shell reads them."""
    (printed,) = re.findall(r"`symbi-recover ([^`]*)`", last_line(ran))
    shell = subprocess.run(["bash", "-c", f"printf '%s\\0' {printed}"], capture_output=True, check=True)
    return shell.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]


def torn(folder: Path, *, cut: int = 20, name: str = "my torn.jsonl") -> Path:
    path = folder / name
    path.write_bytes(small(3).data()[:-cut])
    return path


@pytest.mark.parametrize("verb", ["show", "verify"])
def test_a_torn_end_is_explained_and_leads_to_an_inspection_that_runs(verb: str, tmp_path: Path) -> None:
    path = torn(tmp_path)
    ran = run("audit", verb, path, "--public-key", KEY, "--format", "text")
    assert "an interrupted writer leaves exactly such an end" in last_line(ran)
    words = following(ran)
    assert words == ["audit", "inspect", str(path), "--run-id", RUN, "--public-key", KEY]
    inspected = run(*words, "--format", "text")
    assert (inspected.rc, "unauthenticated tail" in inspected.text) == (2, True)
    assert following(inspected)[:2] == ["invocation", "inspect"]


def test_a_torn_journal_checked_with_a_pinned_key_leads_to_an_inspection_with_that_key(
    tmp_path: Path,
) -> None:
    path, file = torn(tmp_path), tmp_path / "trust"
    assert run("trust", "add", KEY, "--file", file).rc == 0
    words = following(run("audit", "verify", path, "--trust", file, "--format", "text"))
    assert words[-2:] == ["--public-key", KEY]
    assert run(*words).rc == 2


@pytest.mark.parametrize("data", [b"", small(3).data()[:50]], ids=["empty", "torn"])
@pytest.mark.parametrize("verb", ["show", "verify", "inspect"])
def test_a_journal_without_a_complete_record_leads_to_its_claim(
    verb: str, data: bytes, tmp_path: Path
) -> None:
    folder = tmp_path / "p" / ".symbiont" / "governed"
    folder.mkdir(parents=True)
    (folder / "j.jsonl").write_bytes(data)
    who = ["--run-id", RUN] if verb == "inspect" else []
    ran = run("audit", verb, folder / "j.jsonl", *who, "--public-key", KEY, "--format", "text")
    if verb == "show" and not data:
        assert following(ran)[:2] == ["audit", "verify"]
        return
    assert "interrupted in its first record" in last_line(ran)
    where = ["--project", str(tmp_path / "p"), "--public-key", KEY]
    assert following(ran) == ["invocation", "list", *where]


def test_a_refusal_that_no_interruption_explains_is_the_next_step_of_several(tmp_path: Path) -> None:
    altered = tmp_path / "altered"
    altered.write_bytes(small(3).data().replace(b'"observation_count":1', b'"observation_count":2'))
    ran = run("audit", "verify", torn(tmp_path), altered, "--public-key", KEY, "--format", "text")
    assert ran.rc == 1
    assert "interrupted" not in last_line(ran)


def test_a_name_that_begins_like_an_option_is_given_in_a_form_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torn(tmp_path, name="-j")
    monkeypatch.chdir(tmp_path)
    words = following(run("audit", "verify", "--public-key", KEY, "--format", "text", "--", "-j"))
    assert words[2] == "./-j"
    assert run(*words).rc == 2


def shown(path: Path, *words: str) -> str:
    return last_line(run("audit", "show", path, *words, "--format", "text"))


def test_the_last_line_counts_the_signatures_that_hold(tmp_path: Path) -> None:
    path = small(3).write(tmp_path / "j")
    assert "3 of 3 records shown; every signature holds under" in shown(path, "--public-key", KEY)
    assert "signatures hold under the given key for 0 of 3." in shown(path, "--public-key", FOREIGN)
    assert "1 of 3 records shown; signatures NOT checked" in shown(path, "1")


def test_a_selection_that_matches_nothing_says_which_records_there_are(tmp_path: Path) -> None:
    path = small(3).write(tmp_path / "j")
    assert shown(path, "90").startswith("0 of 3 records shown, numbers 0 to 2;")


def test_without_a_key_the_next_command_leaves_it_to_be_put_in(tmp_path: Path) -> None:
    path = small(3).write(tmp_path / "j")
    words = following(run("audit", "show", path, "--format", "text"))
    assert words == ["audit", "verify", str(path), "--public-key", "KEY"]


@pytest.mark.parametrize("verb", ["inspect", "verify", "show"])
def test_a_dash_is_said_to_be_a_file_name(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    who = ["--run-id", RUN] if verb == "inspect" else []
    ran = run("audit", verb, "-", *who, "--public-key", KEY)
    assert "`-` is taken as a file name" in ran.err.decode()
    assert "taken as" not in run("audit", verb, "-", *who, "--public-key", KEY, "-q").err.decode()


def test_a_faulty_key_is_told_once_and_before_anything_is_opened(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a", "b", "c")]
    ran = run("audit", "verify", *paths, "--public-key", KEY[1:], "--format", "text")
    assert (ran.rc, ran.out) == (64, b"")
    assert ran.err.count(b"error: ") == 1
