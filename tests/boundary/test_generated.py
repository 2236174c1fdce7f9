"""What is made from the code is as the code says: schemas, pages of findings, exit codes, command reference."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from symbi_recover.core.codes import CODES
from symbi_recover.core.exits import Exit
from symbi_recover.render import exits_of_codes, explanation

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def generate(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The script's names, a fresh copy for each test; what it learns about exit codes is forgotten afterwards."""
    monkeypatch.setattr(exits_of_codes, "EXITS_OF_CODES", dict(exits_of_codes.EXITS_OF_CODES))
    monkeypatch.setattr(explanation, "EXITS_OF_CODES", exits_of_codes.EXITS_OF_CODES)
    return runpy.run_path(str(PROJECT / "scripts" / "generate"))


@pytest.fixture
def elsewhere(generate: dict[str, Any], tmp_path: Path) -> tuple[dict[str, Any], Path]:
    """The script, working on a copy of what it makes."""
    for path, data in generate["made"]().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    generate["main"].__globals__["PROJECT"] = tmp_path
    return generate, tmp_path


def test_everything_generated_is_up_to_date(
    generate: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    code = generate["main"](["--check"])
    said = capsys.readouterr()
    assert said.err == "", "commands that the tables name and nobody has, or the next step"
    assert (code, said.out) == (0, "")


def test_a_difference_is_noticed_and_mended(elsewhere: tuple[dict[str, Any], Path]) -> None:
    script, root = elsewhere
    page = root / "docs" / "findings" / "tombstone.md"
    page.write_text(page.read_text().replace("tombstone", "headstone"))
    assert script["main"](["--check"]) == 1
    assert "headstone" in page.read_text(), "checking changes nothing"
    assert script["main"]([]) == 0
    assert "headstone" not in page.read_text()
    assert script["main"](["--check"]) == 0


def test_a_missing_file_is_noticed(elsewhere: tuple[dict[str, Any], Path]) -> None:
    script, root = elsewhere
    (root / "schemas" / "evidence" / "journal-record.v1.schema.json").unlink()
    assert script["main"](["--check"]) == 1


def test_what_is_no_longer_made_is_removed_but_an_older_schema_is_kept(
    elsewhere: tuple[dict[str, Any], Path],
) -> None:
    script, root = elsewhere
    old = root / "schemas" / "evidence" / "journal-record.v0.schema.json"
    gone = root / "docs" / "findings" / "no_longer_a_code.md"
    old.write_text("{}")
    gone.write_text("x")
    assert script["main"](["--check"]) == 1
    assert script["main"]([]) == 0
    assert old.exists()
    assert not gone.exists()


def test_odd_arguments_are_refused(generate: dict[str, Any]) -> None:
    assert generate["main"](["--chek"]) == 64


def test_there_is_a_page_for_each_code_and_a_row_for_each_exit_code() -> None:
    pages = {path.stem for path in (PROJECT / "docs" / "findings").glob("*.md")}
    assert pages == {"README", *CODES}
    rows = (PROJECT / "docs" / "exit-codes.md").read_text()
    for code in Exit:
        assert f"\n| {int(code)} | " in rows


def test_the_exit_code_of_every_error_is_derived_whatever_its_code_is_given_as(
    generate: dict[str, Any],
) -> None:
    generate["load_everything"]()
    makings = [
        (place, name, codes)
        for place, name, codes in generate["Source"](generate["PACKAGE"]).makings()
        if name not in generate["FOUND"]
    ]
    not_told = [place for place, _, codes in makings if codes is None]
    assert not not_told, "add the function to HANDED_ON in scripts/generate, with the codes that it hands on"
    assert generate["HANDED_ON"].keys() <= {place for place, _, _ in makings}
    wrong = [
        (place, code)
        for place, name, codes in makings
        for code in codes
        if generate["errors"]()[name].exit not in explanation.explanation(code).exits
    ]
    assert not wrong, "run scripts/generate"


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        (
            "def f():\n    code = 'daemon_slow' if x else 'daemon_away'\n    raise UnexaminedError(code, '')",
            2,
        ),
        ("def f():\n    code, m = 'daemon_slow', ''\n    raise UnexaminedError(code, m)", 1),
        ("def f(code):\n    raise UnexaminedError(code, '')\nf('daemon_slow')\nf(code='daemon_away')", 2),
        ("def f(code='daemon_slow'):\n    def g():\n        raise UnexaminedError(code, '')\nf()", 1),
        (
            "class C:\n    def f(self, code):\n        raise UnexaminedError(code, '')\nC().f('daemon_slow')",
            1,
        ),
        ("def f(error):\n    raise UnexaminedError(error.code, '')\nf(x)", None),
    ],
    ids=["choice", "pair", "parameter", "default", "method", "another's"],
)
def test_a_code_in_a_variable_is_followed(
    generate: dict[str, Any], tmp_path: Path, body: str, codes: int | None
) -> None:
    generate["load_everything"]()
    (tmp_path / "m.py").write_text(body)
    (found,) = [codes for _, _, codes in generate["Source"](tmp_path).makings()]
    assert (found if found is None else len(found)) == codes


@pytest.mark.parametrize("code", ["daemon_failed", "daemon_oversized"])
def test_a_daemon_that_gave_no_answer_is_not_examined(code: str) -> None:
    assert explanation.explanation(code).exits == (Exit.UNEXAMINED,)
