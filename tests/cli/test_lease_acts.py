"""The four lease commands that act: their words, options, exit codes and documents; no daemon of the machine is asked."""

import json

import pytest

from symbi_recover.core import fences, reconciliation, retirement
from tests.crash.scenarios.lease import GONE
from tests.support.cli import run
from tests.support.daemon_behaviours import failure
from tests.support.writer import lease as writer
from tests.write.lease_rig import OWNED, Reconcile, Retire, rig

SCHEMAS = {**fences.SCHEMAS, **reconciliation.SCHEMAS, **retirement.SCHEMAS}
COMMANDS = ("reconcile", "witness", "retire", "fences")


@pytest.fixture
def tombstone(tmp_path, monkeypatch):
    with rig(Retire(), tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture
def owned(tmp_path, monkeypatch):
    with rig(Reconcile(), tmp_path, monkeypatch) as made:
        yield made


def lines(ran):
    return ran.text.splitlines()


@pytest.mark.parametrize("command", COMMANDS)
def test_help_says_what_the_command_does_and_how_it_ends(command):
    ran = run("lease", command, "--help")
    assert ran.rc == 0
    assert "Exit codes:" in ran.text
    assert "--state-dir" in ran.text


@pytest.mark.parametrize(
    "arguments",
    [
        ("retire",),
        ("retire", "not-a-lease"),
        ("retire", OWNED.upper()),
        ("retire", OWNED, "--confirm", "abc"),
        ("retire", OWNED, "--confirm", "A" * 64),
        ("retire", OWNED, "--confirm"),
        ("retire", OWNED, "--force"),
        ("reconcile", "--confirm", "x"),
        ("reconcile", "not-a-lease"),
        ("witness", "not-a-lease"),
        ("fences", "--confirm", "0"),
        ("fences", OWNED),
    ],
)
def test_a_misused_command_line_examines_nothing(tombstone, arguments):
    assert tombstone.cli(*arguments).rc == 64
    assert not tombstone.double.requests


@pytest.mark.parametrize("command", ["retire", "witness"])
def test_an_unknown_lease_cannot_be_examined(tombstone, command):
    other = OWNED.replace("a", "b")
    ran = tombstone.cli(command, other)
    assert ran.rc == 3
    assert b"lease_unknown" in ran.err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_missing_store_cannot_be_examined(tmp_path, command):
    arguments = (OWNED,) if command == "retire" else ()
    ran = run(
        "lease",
        command,
        "--state-dir",
        tmp_path / "none",
        *arguments,
        env={"SYMBI_RECOVER_HOME": str(tmp_path / "h")},
    )
    assert ran.rc in (1, 3)
    assert b"Traceback" not in ran.err


def test_a_plan_ends_with_the_command_that_carries_it_out(tombstone):
    ran = tombstone.cli("retire", OWNED, "--format", "text")
    assert ran.rc == 2
    last = lines(ran)[-1]
    assert last.startswith("Verdict 2. Next: symbi-recover lease retire --state-dir ")
    assert last.endswith(f"{OWNED} --confirm {tombstone.made.confirm}")
    assert "T1 proof_reboot_witnessed: holds" in ran.text
    assert tombstone.record.exists()


def test_a_plan_that_would_be_refused_offers_no_consent_and_says_what_to_do_first(tombstone):
    (tombstone.made.home / "operator.key").unlink()
    ran = tombstone.cli("retire", OWNED, "--format", "text")
    assert (
        "Next: symbi-recover key init, if there is no key yet; then symbi-recover lease retire " in ran.text
    )
    assert "--confirm" not in ran.text
    assert tombstone.document("retire", OWNED, code=2)["report"]["confirm"] is None


def test_a_container_that_is_there_sends_to_reconcile_and_a_strange_one_to_the_explanations(tombstone):
    tombstone.played.add(f"symbi-{OWNED}", {"ai.symbiont.lease": OWNED})
    ran = tombstone.cli("retire", OWNED, "--format", "text")
    assert f"Next: symbi-recover lease reconcile --state-dir {tombstone.made.store} {OWNED}" in ran.text
    tombstone.played.find(f"symbi-{OWNED}").labels.clear()
    ran = tombstone.cli("retire", OWNED, "--format", "text")
    assert "as things stand the record is kept" in ran.text


def test_what_was_done_is_said_with_what_was_not_established(tombstone):
    ran = tombstone.cli("retire", OWNED, "--confirm", tombstone.made.confirm, "--format", "text")
    assert ran.rc == 0
    assert lines(ran)[0].startswith("RETIRED  ")
    assert "Not established" in ran.text
    assert ".000001.receipt.json" in ran.text
    assert "recorded in" in ran.text


def test_without_the_ledger_it_is_said_and_without_a_key_nothing_is_retired(tombstone):
    (tombstone.made.home / "operator.key").unlink()
    refused = tombstone.retire(4)
    assert "receipt_unavailable" in str(refused["report"]["decision"]["findings"])
    assert tombstone.record.exists()


def test_no_ledger_is_an_option_and_is_said(tombstone):
    done = tombstone.retire(0, "--no-ledger")
    assert "--no-ledger" in done["ledger"]
    assert not (tombstone.made.home / "ledger.jsonl").exists()


def test_a_reconcile_plan_shows_each_record_and_ends_with_its_command(owned):
    ran = owned.cli("reconcile", "--format", "text")
    assert ran.rc == 2
    assert f"  {OWNED} uncertain: would remove container " in ran.text
    assert ran.text.rstrip().endswith(f"--confirm {owned.made.confirm}")


def test_a_wrong_hash_is_refused_with_the_right_one(owned):
    ran = owned.cli("reconcile", "--confirm", "0" * 64)
    assert ran.rc == 4
    assert owned.made.confirm.encode() in ran.err
    assert json.loads(ran.out)["code"] == "plan_changed"


def test_only_the_leases_that_are_named_are_planned(owned):
    plan = owned.document("reconcile", OWNED, code=2)
    assert [one["lease"] for one in plan["report"]["items"]] == [OWNED]
    assert plan["report"]["plan_hash"] != owned.made.confirm


@pytest.mark.parametrize("what", ["no tombstone", "no record", "blocked"])
def test_only_what_was_witnessed_is_called_so(owned, what):
    if what == "no tombstone":
        for path in owned.made.store.glob("*.json"):
            path.unlink()
        writer.write_record(owned.made.store, writer.record(GONE, writer.created("a" * 64)))
    elif what == "no record":
        for path in owned.made.store.glob("*.json"):
            path.unlink()
    else:
        (owned.made.store / "strange").write_bytes(b"")
        (owned.made.store / f"{writer.lease_uid(9)}.json").write_bytes(b"{")
        (owned.made.store / f"{writer.lease_uid(9)}.json").chmod(0o600)
    ran = owned.cli("witness", "--format", "text")
    assert ran.rc == 2
    assert lines(ran)[0].startswith("WITNESSED  " if what == "blocked" else "NOTHING WITNESSED  ")
    assert ("store_blocked" in ran.text) is (what == "blocked")
    assert ("lease list" in lines(ran)[-1]) is (what != "blocked")


def test_fences_that_could_not_be_looked_for_are_not_said_to_be_none(owned):
    owned.double.on("GET", "*", failure(500))
    ran = owned.cli("fences", "--format", "text")
    assert ran.rc == 3
    assert "no fences were seen" in ran.text
    assert not lines(ran)[-1].endswith("nothing")
    folder = owned.made.home / "fences"
    folder.mkdir(mode=0o700)
    (folder / "x.json").write_bytes(b"{")
    (folder / "x.json").chmod(0o600)
    owned.double._rules.clear()
    assert owned.cli("fences").rc == 3


def test_a_witness_is_private_and_a_lease_that_is_no_tombstone_has_none(owned):
    from tests.crash.scenarios.lease import GONE

    done = owned.document("witness", code=0)
    (path,) = done["report"]["written"]
    assert OWNED in path
    assert (owned.made.home / "witnesses").stat().st_mode & 0o777 == 0o700
    assert owned.document("witness", GONE, code=2)["report"]["written"] == []


def test_only_a_witness_under_the_lock_sends_people_to_restart_the_engine(owned):
    for options, restart in (((), False), (("--lock",), True)):
        last = owned.cli("witness", *options, "--format", "text").text.splitlines()[-1]
        assert ("restart the engine" in last) is restart
        assert "reboot" in last
        assert f"`symbi-recover lease retire --state-dir {owned.made.store} {OWNED}`" in last


def test_a_wrapper_list_that_is_no_list_is_refused(tombstone, tmp_path):
    listed = tmp_path / "reviewed"
    listed.write_text("# wrappers\nnot a digest\n")
    ran = tombstone.cli("retire", OWNED, "--reviewed-wrappers", str(listed))
    assert ran.rc == 64
    assert b"review_list_invalid" in ran.err


@pytest.mark.parametrize("command", COMMANDS)
def test_each_document_names_a_schema_that_it_satisfies(tombstone, command):
    jsonschema = pytest.importorskip("jsonschema")
    import msgspec

    arguments = (OWNED,) if command == "retire" else ()
    ran = tombstone.cli(command, *arguments, "--format", "json")
    document = json.loads(ran.out)
    name = document["schema"].removeprefix("symbi-recover/").removesuffix(".v1")
    assert document["exit"] == ran.rc
    jsonschema.validate(document, msgspec.json.schema(SCHEMAS[name]))


def test_hostile_text_of_a_record_and_a_daemon_reaches_no_terminal(tombstone):
    value = json.loads(tombstone.record.read_bytes())
    value["docker_binary"] = "/usr/bin/\x1b[31mdocker\u202e"
    tombstone.record.write_bytes(json.dumps(value).encode())
    tombstone.played.version["Version"] = "20.10.\x1b]0;x\x07"
    for command in ("retire", "witness"):
        ran = tombstone.cli(command, OWNED, "--format", "text")
        assert b"\x1b" not in ran.out + ran.err
        assert "\u202e" not in ran.text
