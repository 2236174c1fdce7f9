"""`ledger show` and `ledger verify` from the outside."""

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest

from symbi_recover.core.acts import LedgerDocument
from symbi_recover.core.ledger import LedgerRecord
from tests.support.cli import Ran, run
from tests.support.writer.text import SEED, public_key
from tests.write.worlds import nothing_changes, operator_home, recorder


def ledger(home: Path, *words: str | Path) -> Ran:
    return run("ledger", *words, env={"SYMBI_RECOVER_HOME": str(home)})


def acted(home: Path, *, outcome: bool = True, subject: str = "/srv/p") -> Path:
    record = recorder(home)
    record.begin("invocation reconcile", {"project": subject}, "sha256:00")
    if outcome:
        record.finish("done", receipts={"/srv/r": "ab" * 32})
    return home / "ledger.jsonl"


def test_a_sound_ledger_is_authentic_with_the_key_beside_it(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    acted(home)
    with nothing_changes(home):
        ran = ledger(home, "verify")
    document = json.loads(ran.out)
    assert (ran.rc, document["ok"], document["report"]["records"]) == (0, True, 3)
    assert document["report"]["key"] == {"public_key": public_key(SEED), "source": "operator.pub"}
    jsonschema.validate(document, msgspec.json.schema(LedgerDocument))


def test_every_line_satisfies_the_schema(tmp_path: Path) -> None:
    schema = msgspec.json.schema(LedgerRecord)
    for line in acted(operator_home(tmp_path)).read_bytes().splitlines():
        jsonschema.validate(json.loads(line), schema)


def test_a_copy_elsewhere_needs_the_key_to_be_authentic(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(acted(home).read_bytes())
    nobody = tmp_path / "nobody"
    assert ledger(nobody, "verify", copy).rc == 2
    assert ledger(nobody, "verify", copy, "--public-key", public_key(SEED)).rc == 0
    assert ledger(nobody, "verify", copy, "--public-key", public_key(b"\1" * 32)).rc == 1
    assert not nobody.exists()


def test_open_acts_and_torn_ends_need_attention(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    path = acted(home, outcome=False)
    assert ledger(home, "verify").rc == 2
    acted(home)
    assert ledger(home, "verify").rc == 0
    path.write_bytes(path.read_bytes() + b'{"payl')
    ran = ledger(home, "verify", "--format", "text")
    assert ran.rc == 2
    assert "ledger_torn" in ran.text
    assert ran.text.splitlines()[-1].startswith("Verdict:")


def test_a_changed_ledger_is_refused(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    path = acted(home)
    path.write_bytes(path.read_bytes().replace(b"sha256:00", b"sha256:01"))
    for command in ("verify", "show"):
        ran = ledger(home, command)
        assert ran.rc == 1
        assert json.loads(ran.out)["ok"] is False


def test_a_noted_head_finds_a_cut_end(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    path = acted(home)
    report = json.loads(ledger(home, "verify").out)["report"]
    head = f"{report['head_sequence']}:{report['head_hash']}"
    assert ledger(home, "verify", "--expect-head", head).rc == 0
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    assert ledger(home, "verify", "--expect-head", head).rc == 1
    assert ledger(home, "verify", "--expect-head", "2").rc == 64


def test_what_was_done_is_shown_escaped(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    acted(home, subject="/srv/\x1b[2K\nVerdict: AUTHENTIC")
    ran = ledger(home, "show", "--format", "text")
    assert ran.rc == 0
    assert "\x1b" not in ran.text
    assert sum(line.startswith("Verdict:") for line in ran.text.splitlines()) == 1
    assert "/srv/r sha256:" + "ab" * 32 in ran.text


def test_no_ledger_is_said(tmp_path: Path) -> None:
    ran = ledger(operator_home(tmp_path), "verify")
    assert ran.rc == 3
    assert "ledger_missing" in ran.err.decode()


def test_a_link_or_a_folder_is_not_read(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    path = acted(home)
    link = tmp_path / "link"
    link.symlink_to(path)
    assert ledger(home, "verify", link).rc == 3
    assert ledger(home, "verify", tmp_path).rc == 3


@pytest.mark.parametrize("command", ["show", "verify"])
def test_people_are_told_first_which_ledger_it_is(tmp_path: Path, command: str) -> None:
    path = acted(operator_home(tmp_path))
    ran = ledger(path.parent, command, "--format", "text")
    assert ran.text.splitlines()[0] == f"Ledger  {path}"
    assert "(operator.pub)" in ran.text
    assert "\n\n\n" not in ran.text


def test_what_follows_a_bad_record_is_said_to_be_unread(tmp_path: Path) -> None:
    path = acted(operator_home(tmp_path))
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"sha256:00", b"sha256:01")
    path.write_bytes(b"".join(lines))
    ran = ledger(path.parent, "verify", "--format", "text")
    assert f"  - the last {len(lines[1]) + len(lines[2]):,} bytes: " in ran.text
    assert "1 record before the fault, the rest unread, 0 acts" in ran.text.splitlines()[-1]
