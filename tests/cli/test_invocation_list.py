"""`invocation list`: every claim has a row, every orphan a finding, and every format says the same."""

import csv
import fcntl
import io
import json
import os
import pty
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import PROGRAM, Ran, clean_environment, run, run_process, run_terminal
from tests.support.evidence import fingerprint
from tests.support.writer.claim import Invocation, claim_record, open_invocation
from tests.support.writer.cron_store import cron_project
from tests.support.writer.events import terminated
from tests.support.writer.project import Project, make_project, put
from tests.support.writer.publication import prepare_publication
from tests.support.writer.text import AGENT, uid


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "p")


def invocation(project: Project, name: str, **options: Any) -> Invocation:
    return open_invocation(project, invocation_id=uid("id", name), run_id=uid("run", name), **options)


def recorded(project: Project, name: str) -> Invocation:
    made = invocation(project, name)
    made.journal.append(terminated())
    return made.write(result=1)


def listed(project: Project, *more: str) -> tuple[int, dict[str, Any]]:
    ran = run("invocation", "list", "--project", project.root, *more)
    document = json.loads(ran.out)
    assert document["verdict"] == ran.rc
    return ran.rc, document["projects"][0]


def rows(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in found["invocations"]}


def codes(found: dict[str, Any]) -> set[str]:
    return {finding["code"] for finding in found["store"]["findings"]}


def test_an_empty_store_has_nothing_to_do(project: Project) -> None:
    rc, found = listed(project)
    assert (rc, found["invocations"], found["store"]["findings"]) == (0, [], [])


def test_each_state_has_a_row(project: Project) -> None:
    settled = recorded(project, "recorded")
    open_one = invocation(project, "unresolved").write()
    decided = invocation(project, "reconciled").write()
    decided.resolve()
    held = invocation(project, "live").write()
    torn = invocation(project, "torn")
    put(torn.claim_path, torn.records()[:40])
    with held.claim_path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        rc, found = listed(project)
    states = {key: row["state"] for key, row in rows(found).items()}
    assert states == {
        settled.id: "recorded", open_one.id: "unresolved", decided.id: "reconciled", held.id: "live", None: "unreadable",
    }  # fmt: skip
    assert rc == 1
    assert found["store"]["counts"] == dict.fromkeys(
        ("recorded", "unresolved", "reconciled", "live", "unreadable"), 1
    ) | {"refused": 0}
    assert rows(found)[decided.id]["receipts"] == ["resolution"]
    assert rows(found)[None]["findings"][0]["code"] == "claim_incomplete"


def test_exit_codes_say_the_worst(project: Project) -> None:
    recorded(project, "a")
    assert listed(project)[0] == 0
    invocation(project, "b").write()
    assert listed(project)[0] == 2
    put(project.invocations / f"{'a' * 64}.jsonl", b"nonsense\n")
    assert listed(project)[0] == 1


def test_one_bad_claim_never_hides_the_good_ones(project: Project) -> None:
    good = [recorded(project, f"good-{number}") for number in range(20)]
    loose = invocation(project, "loose").write()
    loose.claim_path.chmod(0o644)
    double = invocation(project, "double").write()
    os.link(double.claim_path, project.root / "second-name")
    (project.invocations / f"{'b' * 64}.jsonl").symlink_to("/etc/passwd")
    (project.invocations / f"{'c' * 64}.jsonl").mkdir()
    os.mkfifo(project.invocations / f"{'d' * 64}.jsonl", 0o600)
    put(project.invocations / f"{'e' * 64}.jsonl", b"\n" * 3_000_000)
    foreign = invocation(project, "foreign")
    put(project.invocations / f"{'f' * 64}.jsonl", foreign.records())
    rc, found = listed(project)
    assert rc == 1
    assert len(found["invocations"]) == 27
    assert {one.id for one in good} <= {key for key, row in rows(found).items() if row["state"] == "recorded"}
    bad = {
        row["file"][0]: row["findings"][0]["code"]
        for row in found["invocations"]
        if row["state"] in ("refused", "unreadable") and row["file"][:2] in ("bb", "cc", "dd", "ee", "ff")
    }
    assert bad == {
        "b": "file_link", "c": "file_kind", "d": "store_file_not_private", "e": "store_file_not_private", "f": "claim_misplaced",
    }  # fmt: skip
    assert rows(found)[loose.id]["scope"] == loose.scope, "who it is for can still be read"
    assert "store_entry_stray" in codes(found)


def test_a_claim_for_an_unknown_version_is_shown_with_its_identity(project: Project) -> None:
    made = invocation(project, "v3")
    first = claim_record(made.scope, made.id, made.request_hash, AGENT, str(made.journal.run_id), version=3)
    made.write(claim=first + made.records().split(b"\n", 1)[1])
    _, found = listed(project)
    assert rows(found)[made.id]["findings"][0]["code"] == "claim_admission"


def test_orphans_of_every_kind_are_named(project: Project) -> None:
    with_journal_gone = invocation(project, "gone").write()
    with_journal_gone.journal_path.unlink()
    resolved = invocation(project, "resolved").write()
    resolved.resolve()
    resolved.claim_path.unlink()
    put(project.invocations / ".tmpAbC123", b"half a receipt")
    put(project.invocations / "notes.txt", b"hello", 0o644)
    (project.invocations / "folder").mkdir()
    put(project.invocations / f"{'0' * 64}.publication.json", b"{}")
    rc, found = listed(project)
    assert rc == 1
    assert codes(found) == {
        "journal_without_claim", "receipt_without_claim", "store_temporary_left", "store_entry_unknown", "store_entry_stray",
    }  # fmt: skip
    assert [f["code"] for f in rows(found)[with_journal_gone.id]["findings"]] == ["claim_without_journal"]
    receipts = [f["path"] for f in found["store"]["findings"] if f["code"] == "receipt_without_claim"]
    assert len(receipts) == 2


def test_known_names_alone_are_no_findings(project: Project) -> None:
    recorded(project, "a").resolve()
    assert codes(listed(project)[1]) == set()


def test_a_receipt_with_two_names_is_told_apart_from_a_stray(project: Project) -> None:
    path = invocation(project, "a").write().resolve()
    os.link(path, project.invocations / ".tmpXyZ789")
    _, found = listed(project)
    assert "store_receipt_linked" in codes(found)


def test_capacity_is_counted_as_the_runtime_counts(project: Project) -> None:
    big = project.invocations / f"{'9' * 64}.jsonl"
    put(big, b"")
    os.truncate(big, 63_000_000)
    _, found = listed(project)
    assert found["store"]["bytes"] == 63_000_000
    assert found["store"]["entries"] == 1
    assert "store_capacity" in codes(found)


def test_publications_have_their_states_and_what_they_ask_for(project: Project, tmp_path: Path) -> None:
    made = invocation(project, "a")
    ready = prepare_publication(made, tmp_path / "one")
    published = prepare_publication(
        made, tmp_path / "two", publication_id=uid("publication", 2), publish=True
    )
    finished = prepare_publication(
        made, tmp_path / "three", publication_id=uid("publication", 3), publish=True, finished=True
    )
    finished.target.unlink()
    made.write()
    put(ready.parent / f".symbi-publish-{uid('publication', 4)}", b"never signed")
    rc, found = listed(project)
    assert rc == 2
    row = rows(found)[made.id]
    states = {p["publication_id"]: (p["state"], p["finished"]) for p in row["publications"]}
    assert states == {
        ready.id: ("ready_to_publish", False), published.id: ("published", False), finished.id: ("missing", True),
    }  # fmt: skip
    asked = [f["code"] for f in row["findings"]]
    assert "publication_ready" in asked
    assert "publication_unacknowledged" in asked
    assert "publication_missing" not in asked, "the run itself signed that the file was there"
    assert "publication_orphan" in codes(found)
    published.write_receipt()
    _, found = listed(project)
    assert "publication_unacknowledged" not in [f["code"] for f in rows(found)[made.id]["findings"]]
    assert rows(found)[made.id]["receipts"] == ["publication"]


def test_unknown_effects_are_counted(project: Project, tmp_path: Path) -> None:
    made = invocation(project, "a")
    prepare_publication(made, tmp_path / "out")
    made.write()
    assert rows(listed(project)[1])[made.id]["unknown_effects"] == 2


def test_the_schedule_of_a_project_is_listed_with_what_blocks_it(project: Project) -> None:
    made = cron_project(project)
    before = fingerprint(project.root)
    rc, found = listed(project)
    assert rc == 2
    (job,) = found["schedule"]["jobs"]
    assert job["blocked_by"] == [made.id]
    assert fingerprint(project.root) == before


def test_a_broken_schedule_hides_no_claim(project: Project) -> None:
    recorded(project, "a")
    put(project.state / "cron_jobs.db", b"no database")
    rc, found = listed(project)
    assert rc == 1
    assert len(found["invocations"]) == 1
    assert found["findings"][0]["code"] == "cron_store_unreadable"


def test_all_projects_below_a_folder_are_found_and_links_are_not_followed(tmp_path: Path) -> None:
    for name in ("a", "b/c", "b/d"):
        (tmp_path / name).mkdir(parents=True)
        recorded(make_project(tmp_path / name), "one")
    (tmp_path / "loop").symlink_to(tmp_path)
    ran = run("invocation", "list", "--project", tmp_path, "--recursive")
    found = [item["store"]["project"] for item in json.loads(ran.out)["projects"]]
    assert (ran.rc, found) == (0, [str(tmp_path / name) for name in ("a", "b/c", "b/d")])


def test_an_unsafe_store_does_not_stop_a_recursive_list(tmp_path: Path) -> None:
    unsafe = make_project(tmp_path / "a")
    recorded(make_project(tmp_path / "b"), "one")
    unsafe.invocations.chmod(0o755)
    ran = run("invocation", "list", "--project", tmp_path, "--recursive")
    first, second = json.loads(ran.out)["projects"]
    assert ran.rc == 1
    assert first["findings"][0]["code"] == "store_not_private"
    assert len(second["invocations"]) == 1


def test_no_store_at_all_was_not_examined(tmp_path: Path) -> None:
    for more in ((), ("--recursive",)):
        ran = run("invocation", "list", "--project", tmp_path, *more)
        assert ran.rc == 3
        assert json.loads(ran.out)["code"] == "store_missing"


def both(project: Project, form: str) -> Ran:
    return run("invocation", "list", "--project", project.root, "--format", form)


def test_every_format_has_the_same_rows_also_with_hostile_text(project: Project) -> None:
    hostile = 'a\u2028b\u0085c\u2029d\ne,"f"\x1b[2J'
    made = invocation(project, "a", scope=hostile).write()
    formula = invocation(project, "b", scope="=1+1").write()
    as_json = rows(json.loads(both(project, "json").out)["projects"][0])
    lines = [json.loads(line) for line in both(project, "jsonl").out.split(b"\n") if line]
    as_lines = {
        line["invocation"]["id"]: line["invocation"] for line in lines if line["kind"] == "invocation"
    }
    assert {key: row["state"] for key, row in as_lines.items()} == {
        key: row["state"] for key, row in as_json.items()
    }
    assert as_json[made.id]["scope"] == as_lines[made.id]["scope"] == hostile
    assert lines[-1] == {"kind": "end", "verdict": 2}
    text = both(project, "csv").out.decode()
    table = {row["id"]: row for row in csv.DictReader(io.StringIO(text, newline=""))}
    assert table.keys() == as_json.keys()
    assert table[formula.id]["scope"] == "'=1+1"
    assert not {"\x1b", "\u2028", "\u0085"} & set(text)
    shown = both(project, "text").out.decode()
    assert not {"\x1b", "\u2028", "\u0085"} & set(shown)
    assert sum(line.startswith("unresolved") for line in shown.split("\n")) == 2
    assert shown.rstrip("\n").split("\n")[-1].startswith("Verdict 2")


def test_a_terminal_gets_a_table_and_stdout_never_the_progress(project: Project) -> None:
    recorded(project, "a")
    ran = run_terminal("invocation", "list", "--project", project.root)
    assert ran.rc == 0
    assert b"STATE" in ran.out
    assert b"#" not in ran.out
    piped = run_process("invocation", "list", "--project", project.root)
    assert json.loads(piped.out)["verdict"] == 0
    assert piped.err == b""


def test_listing_changes_nothing(project: Project, tmp_path: Path) -> None:
    made = invocation(project, "a")
    prepare_publication(made, tmp_path / "out")
    made.write().resolve()
    before = fingerprint(tmp_path)
    for form in ("json", "jsonl", "csv", "text"):
        both(project, form)
    assert fingerprint(tmp_path) == before


def test_ages_come_from_the_claims_modification_time(project: Project) -> None:
    made = recorded(project, "a")
    os.utime(made.claim_path, (1_000_000_000, 1_000_000_000))
    age = rows(listed(project)[1])[made.id]["age_seconds"]
    assert age > 10 * 365 * 86_400


def test_a_terminal_on_stderr_sees_the_progress_and_stdout_stays_one_document(project: Project) -> None:
    for number in range(3):
        recorded(project, f"claim-{number}")
    master, slave = pty.openpty()
    try:
        done = subprocess.run(
            [*PROGRAM, "invocation", "list", "--project", project.root],
            stdout=subprocess.PIPE,
            stderr=slave,
            env=clean_environment(),
            check=False,
            timeout=60,
        )
        os.close(slave)
        slave = -1
        shown = b""
        with suppress(OSError):  # the end of a terminal
            while part := os.read(master, 4096):
                shown += part
    finally:
        os.close(master)
        if slave >= 0:
            os.close(slave)
    assert done.returncode == 0
    assert json.loads(done.stdout)["verdict"] == 0
    assert b"100%" in shown


def test_a_run_that_is_under_way_is_no_fault_of_a_nightly_sweep(project: Project) -> None:
    held = invocation(project, "live").write()
    with held.claim_path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        rc, found = listed(project)
    assert rc == 0
    assert [finding["severity"] for row in found["invocations"] for finding in row["findings"]] == ["info"]
