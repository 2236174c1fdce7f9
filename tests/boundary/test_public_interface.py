"""The names that `symbi_recover` gives to other programs: they read only, and cost nothing until they are used."""

import subprocess
import sys
from pathlib import Path

import pytest

import symbi_recover
from symbi_recover.core.exits import Exit
from tests.support.sample_journals import KEY, RUN_ID, small

PUBLIC = {"ExpectedHead", "Inspection", "JournalReport", "KeyUsed", "Question", "inspect_journal"}


def loaded_by(statement: str) -> set[str]:
    """The modules that a fresh interpreter loads for a statement, besides its own."""
    script = f"import sys; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_every_public_name_is_there_and_belongs_to_a_reader() -> None:
    assert set(symbi_recover.__all__) == PUBLIC
    rooms = {getattr(symbi_recover, name).__module__.split(".")[1] for name in PUBLIC}
    assert rooms == {"core", "read"}


def test_a_journal_is_inspected_through_the_public_names_alone(tmp_path: Path) -> None:
    journal = tmp_path / "run.jsonl"
    journal.write_bytes(b"".join(small(12).lines))
    key = symbi_recover.KeyUsed(KEY, "given")
    answer = symbi_recover.inspect_journal(str(journal), symbi_recover.Question(run_id=RUN_ID), [key])
    assert isinstance(answer, symbi_recover.Inspection)
    assert isinstance(answer.report, symbi_recover.JournalReport)
    assert (answer.refusal, answer.report.run_id, answer.report.key) == (None, RUN_ID, key)
    assert answer.verdict in (Exit.OK, Exit.ATTENTION)


def test_the_package_by_itself_loads_nothing_else() -> None:
    assert loaded_by("import symbi_recover") == {"symbi_recover"}


def test_the_vocabulary_loads_no_other_room() -> None:
    rooms = {
        name.split(".")[1]
        for name in loaded_by("import symbi_recover.core.report")
        if "symbi_recover." in name
    }
    assert rooms == {"core"}


def test_the_public_names_load_nothing_that_writes() -> None:
    rooms = {
        name.split(".")[1] for name in loaded_by("from symbi_recover import *") if "symbi_recover." in name
    }
    assert rooms == {"core", "read", "wire"}


def test_another_name_is_refused_as_python_does() -> None:
    with pytest.raises(AttributeError, match="module 'symbi_recover' has no attribute 'write_journal'"):
        symbi_recover.write_journal  # noqa: B018
