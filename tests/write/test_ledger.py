"""The operator ledger: what is written, what a verifier sees, and how it goes on after an interrupted write."""

import errno
import fcntl
import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from nacl.signing import VerifyKey

from symbi_recover.core.errors import RefusedError
from symbi_recover.core.ledger import LedgerReport
from symbi_recover.core.report import KeyUsed
from symbi_recover.read import ledger as reader
from symbi_recover.write.ledger import Ledger, Recorder
from symbi_recover.write.sign import Signer
from tests.support.writer.text import SEED, public_key
from tests.write.worlds import clock, operator_home, recorder

KEY = KeyUsed(public_key(SEED), "given")
SUBJECT = {"project": "/srv/p", "id": "1"}


def act(
    home: Path, evidence: str = "sha256:00", outcome: Any = "done", at: str = "2026-03-04T07:08:09Z"
) -> Recorder:
    record = recorder(home, at)
    record.begin("invocation reconcile", SUBJECT, evidence)
    if outcome is not None:
        record.finish(outcome)
    return record


def path_of(home: Path) -> Path:
    return home / "ledger.jsonl"


def judged(home: Path, **options: Any) -> LedgerReport:
    return reader.judge(path_of(home).read_bytes(), "ledger", **{"key": KEY, **options})


def codes(report: LedgerReport) -> list[str]:
    return [found.code for found in report.findings]


def test_an_act_is_an_intent_and_an_outcome(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    act(home)
    report = judged(home)
    assert codes(report) == []
    assert [(a.command, a.subject, a.evidence, a.outcome) for a in report.acts] == [
        ("invocation reconcile", SUBJECT, "sha256:00", "done")
    ]
    assert report.records == 3
    assert path_of(home).stat().st_mode & 0o777 == 0o600


def test_anyone_with_the_public_key_can_verify_it_by_hand(tmp_path: Path) -> None:
    """Nothing of the product: the steps of docs/ledger.md."""
    import base64

    home = operator_home(tmp_path)
    act(home)
    previous = "0" * 64
    for number, line in enumerate(path_of(home).read_bytes().splitlines(keepends=True)):
        envelope = json.loads(line)
        payload = line[len(b'{"payload":') : line.index(b',"signature":"')]
        assert json.dumps(envelope["payload"], separators=(",", ":"), sort_keys=True).encode() == payload
        message = b"symbi-recover-operator-ledger:v1\n" + payload
        VerifyKey(bytes.fromhex(public_key(SEED))).verify(message, base64.b64decode(envelope["signature"]))
        assert envelope["payload"]["previous_hash"] == previous
        assert envelope["payload"]["entry"]["sequence"] == number
        previous = hashlib.sha256(line).hexdigest()


def test_a_signature_of_a_ledger_is_none_of_a_journal(tmp_path: Path) -> None:
    from symbi_recover.wire import ed25519
    from symbi_recover.wire.ledger import read_line

    home = operator_home(tmp_path)
    act(home)
    _, payload, signature = read_line(path_of(home).read_bytes().splitlines(keepends=True)[1])
    key = bytes.fromhex(public_key(SEED))
    assert not ed25519.verify(key, payload, signature)
    assert not ed25519.verify(key, b"symbi-invocation-resolution:v1\n" + payload, signature)
    assert ed25519.verify(key, b"symbi-recover-operator-ledger:v1\n" + payload, signature)


def test_times_are_those_of_the_given_clock(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    act(home, at="2031-01-02T03:04:05.000000006Z")
    report = judged(home)
    assert report.acts[0].intended_at == report.acts[0].finished_at == "2031-01-02T03:04:05.000000006Z"


def test_an_open_act_is_said_and_taken_up_by_its_repeat(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    act(home, outcome=None)
    assert codes(judged(home)) == ["ledger_act_open"]
    act(home, outcome="already_done")
    report = judged(home)
    assert codes(report) == []
    assert [a.outcome for a in report.acts] == ["already_done"]
    assert report.records == 3


def test_a_repeat_of_a_completed_act_adds_nothing(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    act(home)
    before = path_of(home).read_bytes()
    record = act(home, outcome="already_done")
    assert path_of(home).read_bytes() == before
    assert "as act" in record.summary


def test_another_attempt_after_a_failure_is_another_act(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    act(home, outcome="failed")
    act(home)
    assert [a.outcome for a in judged(home).acts] == ["failed", "done"]


def test_other_evidence_is_another_act(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    act(home)
    act(home, evidence="sha256:11")
    assert len(judged(home).acts) == 2


LINES = 3


def whole(home: Path) -> bytes:
    act(home)
    return path_of(home).read_bytes()


def test_a_write_cut_at_any_byte_is_kept_said_and_gone_on_after(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    act(home)
    start = len(path_of(home).read_bytes())
    act(home, evidence="sha256:11", outcome=None)
    data = path_of(home).read_bytes()
    for cut in range(start + 1, len(data), 7):
        torn = data[:cut]
        path_of(home).write_bytes(torn)
        report = judged(home)
        assert codes(report) == ["ledger_torn"], cut
        assert report.tail_bytes == cut - start
        act(home, evidence="sha256:11")
        after = path_of(home).read_bytes()
        assert after.startswith(torn), "not one byte of the fragment is lost"
        assert codes(judged(home)) == ["ledger_continued"], cut


def test_a_second_interruption_while_going_on_is_gone_on_after_too(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    start = len(whole(home))
    path_of(home).write_bytes(path_of(home).read_bytes() + b'{"payload":{"en')
    act(home, evidence="sha256:11", outcome=None)
    data = path_of(home).read_bytes()
    for cut in range(start + 16, len(data), 11):
        path_of(home).write_bytes(data[:cut])
        assert set(codes(judged(home))) <= {"ledger_torn", "ledger_continued"}, cut
        act(home, evidence="sha256:11")
        assert set(codes(judged(home))) == {"ledger_continued"}, cut
        assert path_of(home).read_bytes().startswith(data[:cut])


def test_a_record_that_lacks_only_its_line_end_is_a_fragment_for_ever(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    data = whole(home)
    path_of(home).write_bytes(data[:-1])
    act(home, outcome="done")
    report = judged(home)
    assert codes(report) == ["ledger_continued"]
    assert [a.outcome for a in report.acts] == ["done"]


def test_every_changed_byte_is_found(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    data = whole(home)
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1
        report = reader.judge(bytes(changed), "ledger", key=KEY)
        assert report.records < LINES, place
        assert codes(report), place


@pytest.mark.parametrize("gone", [0, 1])
def test_a_removed_record_is_found(gone: int, tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    lines = whole(home).splitlines(keepends=True)
    del lines[gone]
    report = reader.judge(b"".join(lines), "ledger", key=KEY)
    assert codes(report)[0] == "ledger_chain"


def test_repeated_and_exchanged_records_are_found(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    first, second, third = whole(home).splitlines(keepends=True)
    for order in ((first, second, second, third), (first, third, second), (second, first, third)):
        assert codes(reader.judge(b"".join(order), "ledger", key=KEY))[0] == "ledger_chain"


def test_records_of_another_ledger_of_the_same_key_are_found(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    ours, theirs = operator_home(tmp_path / "a"), operator_home(tmp_path / "b")
    mixed = whole(ours).splitlines(keepends=True)[:1] + whole(theirs).splitlines(keepends=True)[1:]
    assert codes(reader.judge(b"".join(mixed), "ledger", key=KEY))[0] == "ledger_chain"


def test_a_cut_end_is_found_only_with_a_noted_head(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    data = whole(home)
    head = 2, hashlib.sha256(data.splitlines(keepends=True)[2]).hexdigest()
    cut = b"".join(data.splitlines(keepends=True)[:2])
    assert "ledger_head_differs" not in codes(reader.judge(cut, "ledger", key=KEY))
    assert reader.judge(cut, "ledger", key=KEY).not_checked
    assert "ledger_head_differs" in codes(reader.judge(cut, "ledger", key=KEY, expected_head=head))
    assert codes(reader.judge(data, "ledger", key=KEY, expected_head=head)) == []


def test_another_key_does_not_verify(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    data = whole(home)
    other = KeyUsed(public_key(b"\1" * 32), "given")
    assert codes(reader.judge(data, "ledger", key=other)) == ["ledger_signature"]


def test_without_a_key_the_ledger_is_consistent_and_not_authenticated(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    report = reader.judge(whole(home), "ledger", key=None)
    assert codes(report) == ["ledger_key_from_ledger"]
    assert report.key is not None
    assert report.key.source == "evidence"


@pytest.mark.parametrize(
    "junk", [b"\n", b"{}\n", b"#torn\n", b"\0" * 10 + b"\n"], ids=["blank", "object", "mark", "zeros"]
)
def test_a_complete_line_that_is_no_record_is_a_fault_or_a_fragment_nobody_accounts_for(
    junk: bytes, tmp_path: Path
) -> None:
    home = operator_home(tmp_path)
    data = whole(home) + junk
    report = reader.judge(data, "ledger", key=KEY)
    assert codes(report) == (["ledger_torn"] if junk == b"#torn\n" else ["ledger_line_invalid"])
    assert report.records == LINES


def test_a_fragment_that_is_changed_afterwards_is_found(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    whole(home)
    path_of(home).write_bytes(path_of(home).read_bytes() + b"frag")
    act(home, evidence="sha256:11")
    data = path_of(home).read_bytes()
    assert codes(reader.judge(data.replace(b"frag#", b"brag#"), "ledger", key=KEY))[0] == "ledger_chain"
    assert codes(reader.judge(data.replace(b"frag#torn\n", b""), "ledger", key=KEY))[0] == "ledger_chain"


def test_a_broken_ledger_stops_the_act_before_it_begins(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    data = whole(home)
    path_of(home).write_bytes(data.replace(b"sha256:00", b"sha256:99"))
    before = path_of(home).read_bytes()
    with pytest.raises(RefusedError) as raised:
        act(home, evidence="sha256:22")
    assert raised.value.code == "ledger_signature"
    assert path_of(home).read_bytes() == before


def test_a_ledger_of_another_key_stops_the_act(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    whole(home)
    other = Recorder(Ledger(str(home), Signer(b"\2" * 32), clock()))
    with pytest.raises(RefusedError) as raised:
        other.begin("x", SUBJECT, "sha256:00")
    assert raised.value.code == "ledger_signature"


def test_a_ledger_that_is_being_written_is_waited_for_and_then_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = operator_home(tmp_path)
    whole(home)
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def nap(seconds: float) -> None:
        now[0] += 0.5

    monkeypatch.setattr(time, "sleep", nap)
    with path_of(home).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(RefusedError) as raised:
            act(home, evidence="sha256:11")
    assert raised.value.code == "ledger_busy"
    assert f"process {os.getpid()}" in str(raised.value.detail)
    assert now[0] == 2.0


def test_writers_side_by_side_leave_one_sound_chain(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    children = []
    for number in range(8):
        child = os.fork()
        if child == 0:
            try:
                act(home, evidence=f"sha256:{number:02}")
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    report = judged(home)
    assert codes(report) == []
    assert len(report.acts) == 8
    assert not list(home.glob(".tmp*"))


@pytest.mark.parametrize("spoil", ["loose", "link", "two names"])
def test_an_unsafe_ledger_stops_the_act(spoil: str, tmp_path: Path) -> None:
    from symbi_recover.core.errors import RecoverError

    home = operator_home(tmp_path)
    whole(home)
    path = path_of(home)
    if spoil == "loose":
        path.chmod(0o644)
    elif spoil == "link":
        path.rename(home / "real")
        path.symlink_to("real")
    else:
        os.link(path, home / "second")
    with pytest.raises(RecoverError):
        act(home, evidence="sha256:11")


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_an_outcome_that_cannot_be_written_is_said(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = operator_home(tmp_path)
    record = act(home, outcome=None)

    def fail(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(RefusedError) as raised:
        record.finish("done")
    assert raised.value.code == "ledger_outcome_unrecorded"
    monkeypatch.undo()
    act(home, outcome="already_done")
    assert [a.outcome in ("done", "already_done") for a in judged(home).acts] == [True]


def test_an_act_whose_intent_could_not_be_written_has_no_outcome_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = operator_home(tmp_path)
    act(home)
    record = recorder(home)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("symbi_recover.write.ledger.write_all", full)
        with pytest.raises(RefusedError, match="No space"):
            record.begin("lease retire", {"lease": "x"}, "0" * 64, anew=True)
    record.finish("failed")
    assert record.summary == "nothing to record in the ledger"
    report = judged(home)
    assert len(report.acts) == 1
    assert not [found for found in report.findings if found.severity == "refused"]


def test_hostile_text_is_recorded_as_text(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    record = recorder(home)
    record.begin("x", {"project": "/p/\udcff\x1b[2K\n"}, "sha256:00")
    record.finish("done")
    report = judged(home)
    assert codes(report) == []
    assert report.acts[0].subject["project"] == "/p/\\xff\x1b[2K\n"
