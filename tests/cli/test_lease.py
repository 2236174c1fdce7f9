"""The lease commands as an operator runs them: exit codes, documents, words, and that nothing is touched."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from symbi_recover.core.codes import CODES
from symbi_recover.core.leases import (
    SCHEMAS,
    CapacityDocument,
    CheckDocument,
    InspectDocument,
    ListDocument,
    VerifyDocument,
)
from tests.support.cli import Ran, run, run_process, run_terminal
from tests.support.daemon_behaviours import failure
from tests.support.daemon_double import daemon_double
from tests.support.evidence import fingerprint
from tests.support.helper_double import capacity_snapshot, helper_double
from tests.support.mounts import without_root
from tests.support.writer import events
from tests.support.writer import lease as made
from tests.support.writer.journal import JournalWriter
from tests.support.writer.project import put
from tests.support.writer.text import SEED, compact, public_key

LEASE = made.LEASE
COMMANDS = ("verify", "list", "inspect", "check", "capacity")
DOCUMENTS: dict[str, Any] = {
    "verify": VerifyDocument,
    "list": ListDocument,
    "inspect": InspectDocument,
    "check": CheckDocument,
    "capacity": CapacityDocument,
}


@pytest.fixture
def folder() -> Iterator[Path]:
    made_here = Path(tempfile.mkdtemp(prefix="sl", dir="/tmp"))
    yield made_here
    for path in (made_here / "s", made_here / ".symbiont" / "sandbox-leases"):
        if path.exists():
            path.chmod(0o700)
    shutil.rmtree(made_here)


@pytest.fixture
def store(folder: Path) -> Path:
    """One tombstone, whose daemon is not there."""
    record = made.record(
        state=made.uncertain(),
        docker_environment={"DOCKER_HOST": f"unix://{folder}/d.sock"},
        origin=made.origin(),
    )
    return made.make_state(folder / "s", record)


def lease(command: str, store: Path, *more: str, form: str = "json", **options: Any) -> Ran:
    chosen = [LEASE] if command == "inspect" else []
    return run("lease", command, *chosen, "--state-dir", store, "--format", form, *more, **options)


@pytest.mark.parametrize("command", COMMANDS)
def test_text_begins_with_the_verdict_and_ends_with_the_next_step(store: Path, command: str) -> None:
    ran = lease(command, store, form="text")
    lines = ran.text.splitlines()
    assert lines[0].split("  ")[0] in {"SOUND", "NEEDS ATTENTION", "NOT EXAMINED"}
    assert lines[-1].startswith(f"Verdict {ran.rc}, ")
    assert "Next: " in lines[-1]
    assert sum(line.startswith("Verdict ") for line in lines) == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_documents_are_named_typed_and_agree_with_the_exit_code(store: Path, command: str) -> None:
    """F-068."""
    ran = lease(command, store)
    value = json.loads(ran.out)
    assert value["schema"] == f"symbi-recover/lease-{command}.v1"
    assert (value["exit"], value["ok"]) == (ran.rc, ran.rc == 0)
    decoded = msgspec.json.decode(ran.out, type=DOCUMENTS[command])
    assert json.loads(msgspec.json.encode(decoded)) == value
    assert SCHEMAS[f"lease-{command}"] is DOCUMENTS[command]


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_every_structure_gives_a_schema(name: str) -> None:
    assert msgspec.json.schema(SCHEMAS[name])["$defs"]


@pytest.mark.parametrize("command", COMMANDS)
def test_looking_changes_nothing(store: Path, command: str) -> None:
    before = fingerprint(store.parent)
    lease(command, store)
    assert fingerprint(store.parent) == before


@pytest.mark.parametrize("command", COMMANDS)
def test_a_store_that_cannot_be_written_is_read(store: Path, command: str) -> None:
    """F-077: mode 0500, no home; not as root, whom no mode keeps from writing."""
    expected = lease(command, store)
    store.chmod(0o500)

    def look() -> Ran:
        with pytest.raises(PermissionError):
            (store / "new").touch()
        return lease(command, store)

    ran = without_root(store.parent, look)
    assert (ran.rc, ran.err) == (expected.rc, expected.err)


def test_exit_codes_say_what_was_found(store: Path, folder: Path) -> None:
    assert lease("verify", store).rc == 2
    assert lease("list", store).rc == 2
    assert lease("inspect", store).rc == 2
    assert lease("capacity", store).rc == 0
    assert lease("check", store).rc == 3
    assert lease("verify", made.make_state(folder / "empty")).rc == 0
    put(store / "notes.json", b"")
    for command in COMMANDS:
        assert lease(command, store).rc == 1, command


@pytest.mark.parametrize("command", COMMANDS)
def test_a_blocked_store_is_never_told_without_its_reason(folder: Path, command: str) -> None:
    store = made.make_state(folder / "s", made.record(state=made.vm_creating()))
    put(store / "notes.json", b"")
    last = lease(command, store, form="text").text.splitlines()[-1]
    assert last == f"Verdict 1, blocked. Next: {CODES['entry_not_uuid'].next}"
    if command != "list":
        report = json.loads(lease(command, store).out)["report"]
        assert [one["code"] for one in report["findings"]].count("entry_not_uuid") == 1


@pytest.mark.parametrize("command", ["verify", "list", "check", "capacity"])
def test_a_missing_store_is_never_an_empty_one(folder: Path, command: str) -> None:
    ran = lease(command, folder / "none", form="text")
    assert ran.rc == 3
    assert ran.text.startswith("NOT EXAMINED")
    assert json.loads(lease(command, folder / "none").out)["exit"] == 3


def test_the_store_is_found_as_the_runtime_finds_it(folder: Path, store: Path) -> None:
    ran = run("lease", "verify", "--format", "json", env={"SYMBIONT_SANDBOX_STATE_DIR": str(store)})
    assert json.loads(ran.out)["report"]["state_dir"] == str(store)
    (folder / ".symbiont").mkdir()
    store.rename(folder / ".symbiont" / "sandbox-leases")
    ran = run("lease", "verify", "--format", "json", env={"HOME": str(folder)})
    assert ran.rc == 2


def test_a_lease_is_named_in_one_spelling(store: Path) -> None:
    """F-051."""
    for text in (LEASE.upper(), LEASE.replace("-", ""), f"{{{LEASE}}}", f"urn:uuid:{LEASE}", "x"):
        assert run("lease", "inspect", text, "--state-dir", store).rc == 64
    ran = run("lease", "inspect", made.lease_uid(9), "--state-dir", store, "--format", "json")
    assert ran.rc == 3
    assert json.loads(ran.out)["code"] == "lease_missing"


def test_hostile_text_is_shown_escaped_everywhere(folder: Path) -> None:
    """F-058, F-060, F-061."""
    nasty = "\x1b[2J\r\n\u202eVerdict 0, sound. Next: nothing"
    record = made.record(
        state=made.uncertain(),
        docker_binary=f"/bin/{nasty}",
        docker_environment={"DOCKER_HOST": "tcp://\x1b]0;x\x07", "HOME": "/\u2028x"},
        origin=made.origin(tool_name="\u202eabc"),
    )
    store = made.make_state(folder / "s", record)
    put(store / "a\x1b[31m\rb\nc", b"")
    for command in COMMANDS:
        ran = lease(command, store, form="text")
        assert ran.rc in {0, 2, 3}, ran
        assert not set(ran.text) & set("\x1b\r\u202e\u2028\x07"), command
        assert sum(line.startswith("Verdict ") for line in ran.text.splitlines()) == 1


VERDICT_ROW = "Verdict 0, sound. Next: nothing"
DAEMON_SAYS = f"no\x1b[2J\x1b]0;x\x07\r\n{VERDICT_ROW}\r{VERDICT_ROW}\x9b31m\u202e\u2028{VERDICT_ROW}"
QUESTIONS = {
    "check": ("lease", "check"),
    "reconcile": ("lease", "reconcile"),
    "retire": ("lease", "retire", LEASE),
    "witness": ("lease", "witness", LEASE),
    "fences": ("lease", "fences"),
}


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("command", QUESTIONS)
@pytest.mark.parametrize("path", ["*", "/containers/*"])
def test_what_a_daemon_says_is_shown_escaped_and_makes_no_row(
    store: Path, folder: Path, command: str, path: str, form: str
) -> None:
    """F-060, F-061: errors from the daemon with ESC, BEL, CR and LF, and with a copy of our own last row."""
    words = [*QUESTIONS[command], "--state-dir", str(store), "--format", form]
    with daemon_double(folder / "d.sock") as daemon:
        daemon.on("GET", path, failure(500, DAEMON_SAYS))
        ran = run(*words, env={"SYMBI_RECOVER_HOME": str(folder / "operator")})
        assert daemon.requests, "the daemon was asked"
    both = ran.text + ran.err.decode()
    assert not set(both) & set("\x1b\r\x07" if form == "json" else "\x1b\r\x07\x9b\u202e\u2028")
    assert VERDICT_ROW in both, "the daemon's words are shown"
    assert not [line for line in both.split("\n") if line.strip().startswith(VERDICT_ROW)]
    if form == "text":
        (last,) = [line for line in ran.text.splitlines() if line.startswith("Verdict ")]
        assert last == ran.text.splitlines()[-1]
        assert last.startswith(f"Verdict {ran.rc}")
    else:
        value = json.loads(ran.out)
        assert (value["exit"], value["ok"]) == (ran.rc, ran.rc == 0)


def test_names_that_are_not_text_do_not_break_a_format(store: Path) -> None:
    """F-066."""
    put(Path(os.fsdecode(os.fsencode(store) + b"/\xff\xfe")), b"")
    for form in ("json", "text"):
        assert b"\\xff\\xfe" in lease("verify", store, form=form).out.replace(b"\\\\", b"\\")


def test_a_plain_locale_gives_the_same_bytes(store: Path) -> None:
    """F-066."""
    usual = run_process("lease", "list", "--state-dir", store, "--format", "jsonl")
    plain = {"LC_ALL": "C", "LANG": "", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    other = run_process("lease", "list", "--state-dir", store, "--format", "jsonl", env=plain)
    drop = [json.loads(ran.out) | {"age_seconds": 0} for ran in (usual, other)]
    assert drop[0] == drop[1]
    assert (usual.rc, other.rc) == (2, 2)


def test_people_get_text_and_colour_carries_nothing_alone(store: Path) -> None:
    ran = run_terminal("lease", "list", "--state-dir", store)
    assert ran.rc == 2
    assert b"\x1b[33mNEEDS ATTENTION\x1b[0m" in ran.out
    plain = run_terminal("lease", "list", "--state-dir", store, env={"NO_COLOR": "1"})
    assert b"\x1b" not in plain.out
    assert b"NEEDS ATTENTION" in plain.out


def test_lists_show_bad_records_too(store: Path) -> None:
    bad = made.lease_uid(3)
    put(store / f"{bad}.json", b"{}")
    ran = lease("list", store, form="jsonl")
    rows = {row["lease"]: row for row in map(json.loads, ran.text.splitlines())}
    assert rows[bad]["phase"] is None
    assert rows[bad]["codes"] == ["record_schema"]
    assert rows[LEASE]["tombstone"] is True
    assert "bad record" in lease("list", store, form="text").text


def journal(folder: Path, seed: bytes = SEED) -> Path:
    writer = JournalWriter(seed)
    writer.append(events.started())
    call = made.origin()
    writer.append(
        events.tool_dispatch_started(
            call_fingerprint=call["call_fingerprint"],
            tool_name=call["tool_name"],
            dispatch_id=call["dispatch_id"],
        ),
        1,
    )
    governed = folder / "project" / ".symbiont" / "governed"
    governed.mkdir(parents=True)
    return writer.write(governed / writer.name)


def test_the_run_that_caused_a_lease_is_verified_with_a_key_of_the_operators(
    store: Path, folder: Path
) -> None:
    journal(folder)
    key = ("--public-key", public_key(SEED))
    for where in (("--project", str(folder / "project")), ("--root", str(folder))):
        ran = lease("inspect", store, *where, *key)
        origin = json.loads(ran.out)["report"]["view"]["origin"]
        assert (origin["verdict"], origin["outcome"]) == ("origin_verified", "unfinished")
        assert ran.rc == 2
    assert "origin (signed): origin_verified" in lease("inspect", store, *where, *key, form="text").text


def test_a_key_found_in_the_lease_is_never_enough(store: Path, folder: Path) -> None:
    """F-023: no key given, so nothing was verified; another key given, so they differ."""
    journal(folder)
    project = ("--project", str(folder / "project"))
    nothing_pinned = put(folder / "trust", b"")
    for more in ((), ("--trust", str(nothing_pinned))):
        ran = lease("verify", store, *project, *more)
        assert ran.rc == 2
        assert json.loads(ran.out)["report"]["records"][0]["origin"]["verdict"] == "origin_unverified"
    ran = lease("verify", store, *project, "--public-key", public_key(bytes(range(1, 33))))
    assert ran.rc == 1
    assert json.loads(ran.out)["report"]["verdict"] == "contradicted"
    assert json.loads(ran.out)["report"]["store_blocked"] is False


def test_a_key_without_a_place_to_look_is_misuse(store: Path) -> None:
    assert lease("verify", store, "--public-key", public_key(SEED)).rc == 64


def test_check_asks_the_recorded_daemon_get_only(store: Path, folder: Path) -> None:
    with daemon_double(folder / "d.sock") as daemon:
        daemon.world.add(f"symbi-{LEASE}", {"ai.symbiont.lease": LEASE}, status="exited")
        ran = lease("check", store)
        daemon.assert_only_gets()
    (check,) = json.loads(ran.out)["report"]["checks"]
    assert (ran.rc, check["verdict"], check["containers"][0]["state"]) == (2, "container_present", "exited")
    assert check["record_sha256"] == made_digest(store)


def made_digest(store: Path) -> str:
    import hashlib

    return hashlib.sha256((store / f"{LEASE}.json").read_bytes()).hexdigest()


def test_a_foreign_container_under_the_name_ends_in_1(store: Path, folder: Path) -> None:
    with daemon_double(folder / "d.sock") as daemon:
        daemon.world.add(f"symbi-{LEASE}")
        assert lease("check", store, LEASE).rc == 1
    assert run("lease", "check", made.lease_uid(1), "--state-dir", store).rc == 3


def test_capacity_compares_with_the_helper(store: Path) -> None:
    with helper_double(store, snapshot=capacity_snapshot(str(store))) as helper:
        ran = lease("capacity", store)
        helper.assert_only_questions()
    report = json.loads(ran.out)["report"]
    assert (ran.rc, report["agree"]) == (2, False)
    assert any(LEASE in point for point in report["differences"])
    assert lease("capacity", store, "--fingerprint", "x").rc == 64


def test_only_checking_loads_the_sdk(store: Path) -> None:
    script = (
        "import sys\nfrom symbi_recover.cli.app import main\n"
        f"main(['lease', 'verify', '--state-dir', {str(store)!r}])\n"
        "sys.exit(any(name in sys.modules for name in ('docker', 'requests', 'nacl.signing', 'subprocess')))"
    )
    import sys

    ran = run_process("-c", script, program=(sys.executable,))
    assert ran.rc == 0


def test_a_store_of_512_leases_is_judged_in_seconds(folder: Path) -> None:
    records = [made.record(made.lease_uid(n), made.uncertain(), origin=made.origin()) for n in range(512)]
    ran = lease("verify", made.make_state(folder / "s", *records), form="text")
    assert ran.rc == 2
    assert "tombstone (512)" in ran.text
    assert len(ran.text.splitlines()) < 700
    assert len(compact(records[0])) > 500
