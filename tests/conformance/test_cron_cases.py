"""The runtime's recorded reconciliations of scheduled invocations: the answer, and the database row by row."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import CRON_PLACE, cron_cases, held, lay
from tests.support.cli import Ran, run_process

CASES = cron_cases()
FREE = {"request-not-json"}
"""Cases whose message ends in the decoder's own words."""


def tables(path: Path) -> Any:
    """Every table, row by row, or the name of SQLite's error, as the cases were recorded."""
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            names = database.execute("SELECT name FROM sqlite_master WHERE type='table' ORDER BY name")
            return {
                name: [dict(row) for row in database.execute(f"SELECT * FROM {name} ORDER BY 1")]  # noqa: S608
                for (name,) in map(tuple, names.fetchall())
            }
    except sqlite3.Error as error:
        return type(error).__name__


def same(recorded: Any, found: Any, known: set[str], place: str) -> None:
    """Equal, but for a time of the call where the case says `<now>`; that must not be one known before."""
    if isinstance(recorded, dict):
        assert list(recorded) == list(found), place
        for name, value in recorded.items():
            same(value, found[name], known, f"{place}.{name}")
    elif isinstance(recorded, list):
        assert len(recorded) == len(found), place
        for number, value in enumerate(recorded):
            same(value, found[number], known, f"{place}[{number}]")
    elif isinstance(recorded, str) and "<now>" in recorded:
        before, after = recorded.split("<now>")
        assert isinstance(found, str), place
        assert found.startswith(before), place
        assert found.endswith(after), place
        assert found[len(before) : len(found) - len(after)] not in known, place
    else:
        assert recorded == found, place


def reconcile(case: dict[str, Any]) -> Ran:
    arguments = ["invocation", "reconcile", "--project", str(CRON_PLACE / "p"), "--scope", case["scope"]]
    arguments += ["--id", case["invocation"], "--review", str(CRON_PLACE / "review.json"), *case["args"]]
    return run_process(*arguments, cwd=CRON_PLACE)


@pytest.mark.parametrize("name", CASES)
def test_a_recorded_reconciliation_ends_as_the_runtimes_did(name: str) -> None:
    case = CASES[name]
    database = CRON_PLACE / "p" / ".symbiont" / "cron_jobs.db"
    with held(CRON_PLACE):
        lay(case["tree"], CRON_PLACE)
        if not database.is_symlink():
            same(case["db_before"], tables(database), set(), "before")
        ran = reconcile(case)
        same(case["db_after"], tables(database), set(case["known_times"]), "after")
        receipts = list((CRON_PLACE / "p" / ".symbiont" / "invocations").glob("*.resolved.json"))
    assert len(receipts) == 1, "the receipt is in force, whatever became of the history"
    assert ran.rc == case["rc"], ran.err.decode()
    if case["rc"] == 0:
        same(json.loads(case["stdout"]), json.loads(ran.out), set(case["known_times"]), "stdout")
        assert "not recorded in a ledger" in ran.err.decode()
    else:
        assert ran.out == b""
        expected = case["stderr"].strip()
        if name in FREE:
            expected = expected.split("missing field")[0]
        assert ran.first_error_line.startswith(expected)
        assert name in FREE or ran.first_error_line == expected


def test_all_cases_are_tried() -> None:
    assert len(CASES) == 28
