"""Whatever lies under a journal's name, and however keys and ids are spelled: one clear sentence and the right code.

Every answer is checked for the shape of a failure: nothing on stdout, no traceback, one line per message.
"""

import os
import resource
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.support.cli import Ran, clean_environment, run, run_process
from tests.support.sample_journals import KEY, small
from tests.support.writer.text import RUN, SEED

PREFIX = "Audit inspection failed: "
WHO = ("--run-id", RUN, "--public-key", KEY)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return small(3).write(tmp_path / "journal.jsonl")


def assert_refused(ran: Ran, *says: str, rc: int = 1) -> None:
    """A failure as people and programs need it."""
    text = ran.err.decode()
    assert ran.rc == rc, text
    assert ran.out == b""
    assert "Traceback" not in text
    assert "defect" not in text
    for word in says:
        assert word in text
    assert not any(ord(c) < 32 and c != "\n" for c in text)


def both(path: Path | str) -> tuple[Ran, Ran, Ran]:
    """The three journal commands on one path."""
    return (
        run("audit", "inspect", path, *WHO),
        run("audit", "verify", path, "--public-key", KEY, "--format", "text"),
        run("audit", "show", path, "--format", "text"),
    )


def make_socket(path: Path) -> None:
    made = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        made.bind(path.name)
    finally:
        os.chdir(here)
        made.close()


def looped(path: Path) -> None:
    path.symlink_to(path.name)


KINDS = {
    "a missing file": (str, "No such file or directory (os error 2)", "file_missing", 3),
    "a folder": (Path.mkdir, "journal must be a regular file within its size limit", "journal_kind", 3),
    "a FIFO": (os.mkfifo, "journal must be a regular file within its size limit", "journal_kind", 3),
    "a socket": (make_socket, "(os error 6)", "file_unreadable", 3),
    "a live link": (lambda path: path.symlink_to("journal.jsonl"), "(os error 40)", "file_link", 3),
    "a dangling link": (lambda path: path.symlink_to("nothing"), "(os error 40)", "file_link", 3),
    "a link to itself": (looped, "(os error 40)", "file_link", 3),
    "a link to a device": (lambda path: path.symlink_to("/dev/zero"), "(os error 40)", "file_link", 3),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_refused_by_its_kind_at_once(kind, journal, tmp_path) -> None:
    """F-071: on the opened descriptor, without waiting for a writer of a FIFO."""
    make, says, code, fine = KINDS[kind]
    path = tmp_path / "it"
    make(path)
    start = time.monotonic()
    inspected, verified, shown = both(path)
    assert time.monotonic() - start < 5
    assert_refused(inspected, PREFIX + "Journal write failed: ", says, code)
    assert verified.rc == shown.rc == fine
    assert code in verified.text + verified.err.decode()
    assert_refused(shown, code, rc=fine)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/full", "/dev/tty", "/proc/self/mem"])
def test_devices_are_refused_at_once(device) -> None:
    """F-071."""
    start = time.monotonic()
    inspected, verified, shown = both(device)
    assert time.monotonic() - start < 5
    assert_refused(inspected, PREFIX)
    assert verified.rc in (1, 3)
    assert shown.rc in (1, 2, 3)


@pytest.mark.root
def test_a_block_device_is_refused_by_its_kind(tmp_path) -> None:
    """F-071."""
    path = tmp_path / "block"
    try:
        os.mknod(path, 0o060600, os.makedev(7, 0))
    except PermissionError:
        pytest.skip("not run: device nodes cannot be made here")
    assert_refused(run("audit", "inspect", path, *WHO), PREFIX)


@pytest.mark.parametrize("where", ["journal.jsonl/x", "no/such/folder", "x" * 300])
def test_paths_that_cannot_be_are_refused_in_the_systems_words(where, journal, tmp_path) -> None:
    ran = run("audit", "inspect", tmp_path / where, *WHO)
    assert_refused(ran, PREFIX + "Journal write failed: ", "(os error ")


@pytest.mark.parametrize("size", [(64 << 20) + 1, 65 << 20, 1 << 40, (1 << 43) - 1])
def test_a_file_that_is_too_large_is_refused_before_it_is_read(size, tmp_path) -> None:
    """F-075: by size, in under a second, with flat memory, sparse or not."""
    path = tmp_path / "sparse"
    path.touch()
    try:
        os.truncate(path, size)
    except OSError as error:
        pytest.skip(f"not run: this file system has no files of {size} bytes: {error.strerror}")
    start, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    inspected, verified, shown = both(path)
    assert time.process_time() - start < 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024
    assert_refused(inspected, "journal must be a regular file within its size limit")
    assert str(size) in inspected.err.decode().replace(",", "")
    assert verified.rc == shown.rc == 3


READ_AS_USER = """
import os, sys
from symbi_recover.cli.app import main
main(["audit", "verify", sys.argv[1], "--public-key", sys.argv[3]])
sys.stdout.flush()
os.setgroups([]), os.setresgid(65534, 65534, 65534), os.setresuid(65534, 65534, 65534)
sys.exit(main(["audit", "inspect", *sys.argv[1:]]))
"""


@pytest.mark.root
def test_a_file_that_may_not_be_read_is_said_to_be_unreadable(journal) -> None:
    if os.geteuid() != 0:
        pytest.skip("not run: another user's rights need root")
    ended = subprocess.run(
        [sys.executable, "-B", "-c", READ_AS_USER, str(journal), *WHO],
        env=clean_environment(),
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert b"Permission denied (os error 13)" in ended.stderr
    assert b"file_unreadable" in ended.stderr


def odd_name(tmp_path: Path, name: bytes) -> Path:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
    return small(3).write(path)


@pytest.mark.parametrize(
    "name",
    [
        b"with\nnewline",
        b"esc\x1b[2Jape",
        b"bell\x07",
        b"ret\rurn",
        b"\xff\xfe",
        b"gr\xc3\xb6\xc3\x9fe",
        b"--public-key",
        b"-",
        b"a b'\"c",
        b"\xe2\x80\xaegnp",
    ],
    ids=repr,
)
def test_an_odd_file_name_is_read_and_shown_escaped(name, tmp_path) -> None:
    """F-060, F-066: names are shown with nothing that a terminal acts on, on both streams, one message one line."""
    path = odd_name(tmp_path, name)
    for form in ("text", "json"):
        good = run("audit", "inspect", path, *WHO, "--format", form)
        assert good.rc == 0
        verified = run("audit", "verify", path, "--public-key", KEY, "--format", form)
        assert verified.rc == 0
        for ran in (good, verified):
            assert not any(
                (ord(c) < 32 and c != "\n") or c == "\u202e"
                for c in ran.text.replace("\\u202e", "")
                if form == "text"
            )
    missing = run("audit", "inspect", os.fsdecode(os.fsencode(path) + b"-not"), *WHO)
    assert_refused(missing, "No such file")
    assert len(missing.err.decode().splitlines()) == 4


def test_a_dash_is_a_file_name_and_says_so(tmp_path) -> None:
    ran = run_process("audit", "inspect", "-", *WHO, cwd=tmp_path, stdin=small(3).data())
    assert_refused(ran, "`-` is taken as a file name", "No such file or directory")
    small(3).write(tmp_path / "-")
    assert run_process("audit", "inspect", "-", *WHO, cwd=tmp_path).rc == 0


PUBLIC = ed25519.Ed25519PrivateKey.from_private_bytes(SEED).public_key()
PEM = PUBLIC.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
SSH = PUBLIC.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
FORMS = {
    "hex": KEY.encode(),
    "upper-case hex": KEY.upper().encode(),
    "PEM": PEM.rstrip(),
    "PEM with its line end": PEM,
    "PEM with CR LF": PEM.replace(b"\n", b"\r\n"),
    "OpenSSH": SSH,
    "OpenSSH with a comment": SSH + b" audit key of host",
}


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"], ids=["none", "LF", "CR LF"])
@pytest.mark.parametrize("form", FORMS)
def test_a_key_is_read_in_each_form_from_the_line_and_from_a_file(form, end, journal, tmp_path) -> None:
    """F-057: a key file may end in one line end of either kind."""
    (tmp_path / "key").write_bytes(FORMS[form].rstrip(b"\r\n") + end)
    assert run("audit", "inspect", journal, "--run-id", RUN, "--public-key", f"@{tmp_path / 'key'}").rc == 0
    if not end:
        given = f"--public-key={FORMS[form].decode()}"
        assert run("audit", "inspect", journal, "--run-id", RUN, given).rc == 0


OTHER_KIND = (
    ec.generate_private_key(ec.SECP256R1())
    .public_key()
    .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
)
WRONG_KEYS = {
    "empty": b"",
    "63 digits": KEY[:-1].encode(),
    "65 digits": KEY.encode() + b"0",
    "66 digits": KEY.encode() + b"00",
    "0x": b"0x" + KEY.encode(),
    "a blank before": b" " + KEY.encode(),
    "a blank behind": KEY.encode() + b" ",
    "a letter": b"g" + KEY[1:].encode(),
    "full-width digits": "\uff10".encode() + KEY[1:].encode(),
    "base64": b"A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBElUbg=",
    "PEM of another kind": OTHER_KIND,
    "PEM cut short": PEM[: len(PEM) // 2],
    "PEM with text behind": PEM + b"and more\n",
    "PEM with text before": b"and more\n" + PEM,
    "two PEMs": PEM + PEM,
    "OpenSSH of another kind": b"ssh-rsa AAAA",
    "OpenSSH cut short": SSH[: len(SSH) // 2],
    "two OpenSSH lines": SSH + b"\n" + SSH,
    "OpenSSH with options": b'from="x" ' + SSH,
    "two line ends": KEY.encode() + b"\n\n",
    "a lone CR": KEY.encode() + b"\r",
    "NUL": KEY.encode() + b"\0",
    "not text": b"\xff\xfe" + KEY.encode(),
    "a million digits": b"0" * 1_000_000,
}


@pytest.mark.parametrize("form", WRONG_KEYS)
def test_other_spellings_of_a_key_are_refused_before_the_journal_is_opened(form, tmp_path) -> None:
    """F-057: nothing else around a key is forgiven; the message is one sentence with the next step."""
    (tmp_path / "key").write_bytes(WRONG_KEYS[form])
    ran = run(
        "audit", "inspect", tmp_path / "missing", "--run-id", RUN, "--public-key", f"@{tmp_path / 'key'}"
    )
    assert_refused(ran, PREFIX, "key", "key_form", "next:")
    if (
        b"\0" not in WRONG_KEYS[form]
        and len(WRONG_KEYS[form]) < 100_000
        and not WRONG_KEYS[form].startswith(b"-")
    ):
        given = os.fsdecode(WRONG_KEYS[form])
        assert_refused(
            run("audit", "inspect", tmp_path / "missing", "--run-id", RUN, f"--public-key={given}"), PREFIX
        )


@pytest.mark.parametrize("kind", ["missing", "folder", "FIFO", "link", "device", "empty name"])
def test_a_key_file_that_is_none_is_refused_at_once(kind, journal, tmp_path) -> None:
    path = tmp_path / "key"
    {
        "folder": path.mkdir,
        "FIFO": lambda: os.mkfifo(path),
        "link": lambda: path.symlink_to("journal.jsonl"),
    }.get(kind, lambda: None)()
    name = {"device": "/dev/zero", "empty name": ""}.get(kind, str(path))
    ran = run("audit", "inspect", journal, "--run-id", RUN, "--public-key", f"@{name}")
    assert_refused(ran, PREFIX)


PLAIN = RUN.replace("-", "")
RUNTIME_FORMS = {
    "hyphenated": RUN,
    "upper case": RUN.upper(),
    "plain": PLAIN,
    "braced": f"{{{RUN}}}",
    "urn": f"urn:uuid:{RUN}",
}
WRONG_IDS = {
    "empty": "",
    "a digit short": RUN[:-1],
    "a digit more": RUN + "2",
    "hyphens elsewhere": "2-2222222222242228222222222222222",
    "doubly braced": f"{{{{{RUN}}}}}",
    "braced without hyphens": f"{{{PLAIN}}}",
    "urn without hyphens": f"urn:uuid:{PLAIN}",
    "URN": f"URN:UUID:{RUN}",
    "full-width digits": "\uff12" + RUN[1:],
    "a blank": f" {RUN}",
    "a line end": f"{RUN}\n",
    "a word": "x",
    "an escape": "\x1b[2J",
}


@pytest.mark.parametrize("form", RUNTIME_FORMS)
def test_a_run_id_is_taken_as_the_runtime_takes_it(form, journal) -> None:
    """F-051: here, and only here, the runtime's own spellings are taken."""
    ran = run("audit", "inspect", journal, "--run-id", RUNTIME_FORMS[form], "--public-key", KEY)
    assert ran.rc == 0
    assert f'"run_id": "{RUN}"' in ran.text


@pytest.mark.parametrize("form", WRONG_IDS)
def test_other_spellings_of_a_run_id_are_refused_with_one_sentence(form, journal) -> None:
    """F-051, F-052, F-060."""
    ran = run("audit", "inspect", journal, f"--run-id={WRONG_IDS[form]}", "--public-key", KEY)
    assert_refused(ran, PREFIX + "run ID must be a UUID", "run_id_form")
    verified = run(
        "audit", "verify", journal, f"--run-id={WRONG_IDS[form]}", "--public-key", KEY, "--format", "text"
    )
    assert_refused(verified, "run_id_form", rc=64)


@pytest.mark.parametrize(
    ("arguments", "rc"),
    [
        ((), 64),
        (("audit",), 64),
        (("nonsense",), 64),
        (("audit", "nonsense\x1b[2J"), 64),
        (("audit", "inspect"), 2),
        (("audit", "inspect", "j"), 2),
        (("audit", "inspect", "j", "--run-id", RUN), 2),
        (("audit", "inspect", "j", "k", *WHO), 2),
        (("audit", "inspect", "j", *WHO, "--run-id", RUN), 2),
        (("audit", "inspect", "j", *WHO, "--nonsense\x1b[31m"), 2),
        (("audit", "inspect", "j", "--run", RUN, "--public-key", KEY), 2),
        (("audit", "inspect", "j", "--run-id", "-x", "--public-key", KEY), 2),
        (("audit", "inspect", "j", *WHO, "--format", "yaml\n"), 2),
        (("audit", "inspect", "j", *WHO, "--jobs", "0"), 2),
        (("audit", "verify"), 64),
        (("audit", "verify", "j", "--expect-head", "1:zz"), 64),
        (("audit", "verify", "j", "k", "--expect-head", f"1:{'0' * 64}"), 64),
        (("audit", "verify", "j", "k", "--public-key", KEY[1:]), 64),
        (("audit", "show", "j", "--public-key", KEY[1:]), 64),
        (("audit", "show", "j", "9-x"), 64),
        (("audit", "show", "j", "5-2"), 64),
    ],
)
def test_a_misused_command_line_says_how_it_is_used(arguments, rc) -> None:
    """F-060: also when it holds escapes; stdout stays empty."""
    form = () if len(arguments) < 3 or arguments[1] == "inspect" else ("--format", "text")
    ran = run(*arguments, *form)
    assert_refused(ran, rc=rc)
    assert "--help" in ran.err.decode() or "error: " in ran.err.decode()
    assert "\\n" not in ran.err.decode().replace("yaml\\\\n", "").replace("yaml\\n", "")


def test_what_may_be_trusted_must_be_said(journal) -> None:
    """F-029: no key, and an empty list of keys, are not the same as a failed verification, and no success."""
    ran = run("audit", "verify", journal, "--format", "text")
    assert ran.rc == 3
    assert "not_verified" in ran.text
    assert ran.text.splitlines()[-1].startswith("Verdict 3, not examined. Next: ")
    trust = journal.with_name("trust.jsonl")
    trust.touch(0o600)
    empty = run("audit", "verify", journal, "--trust", trust, "--format", "text")
    assert empty.rc == 3
    assert "COMPLETE" not in empty.text
    assert "trust_no_key" in empty.text
    assert str(trust) in empty.text, "what is wrong is the list of keys, not the journal"
    anchored = run("audit", "verify", journal, "--public-key", KEY, "--require-anchor", "--format", "text")
    assert anchored.rc == 1
    assert "anchor_required" in anchored.text


@pytest.mark.parametrize("form", ["json", "jsonl", "text"])
def test_one_bad_journal_does_not_hide_the_others(form, journal, tmp_path) -> None:
    """The worst of several decides the exit code, and the last line says so (F-068)."""
    broken = tmp_path / "broken"
    broken.write_bytes(small(3).data()[:-3])
    ran = run("audit", "verify", tmp_path / "missing", broken, journal, "--public-key", KEY, "--format", form)
    assert ran.rc == 1
    if form == "text":
        assert ran.text.splitlines()[-1].startswith("Verdict 1 over 3 journals, refused. Next: ")
        assert sum(line.startswith("Verdict ") for line in ran.text.splitlines()) == 1
        assert "COMPLETE" in ran.text
    else:
        assert ran.text.count('"exit"') == (4 if form == "json" else 3)
