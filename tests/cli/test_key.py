"""`key init`, `show`, `import` and `export-public` from the outside."""

import json
import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from tests.support.cli import Ran, run, run_process, run_terminal
from tests.support.writer.project import make_project, put
from tests.support.writer.text import SEED, public_key
from tests.write.worlds import operator_home


def key(home: Path, *words: str | Path) -> Ran:
    return run("key", *words, env={"SYMBI_RECOVER_HOME": str(home)})


def test_init_makes_a_key_and_says_where(tmp_path: Path) -> None:
    ran = key(tmp_path / "h", "init")
    document = json.loads(ran.out)
    assert ran.rc == 0
    assert document["created"] is True
    assert document["path"] == str(tmp_path / "h" / "operator.key")
    assert document["public_key"] == public_key((tmp_path / "h" / "operator.key").read_bytes())


def test_init_keeps_a_key_that_is_there(tmp_path: Path) -> None:
    first = json.loads(key(tmp_path / "h", "init").out)
    again = key(tmp_path / "h", "init")
    assert again.rc == 0
    assert json.loads(again.out) == first | {"created": False}


def test_two_new_keys_differ(tmp_path: Path) -> None:
    keys = {json.loads(key(tmp_path / name, "init").out)["public_key"] for name in "ab"}
    assert len(keys) == 2


def test_the_folder_is_below_home_unless_named(tmp_path: Path) -> None:
    ran = run("key", "init", env={"HOME": str(tmp_path)})
    assert ran.rc == 0
    assert (tmp_path / ".symbiont" / "operator" / "operator.key").exists()


@pytest.mark.parametrize("words", [("show",), ("export-public",)])
def test_nothing_is_made_by_looking(words: tuple[str, ...], tmp_path: Path) -> None:
    ran = key(tmp_path / "h", *words)
    assert ran.rc == 1
    assert "operator_key_missing" in ran.err.decode()
    assert os.listdir(tmp_path) == []


def test_the_private_key_is_never_printed(tmp_path: Path) -> None:
    home = operator_home(tmp_path)
    for words in (("show",), ("show", "--format", "text"), ("export-public",), ("init",)):
        ran = key(home, *words)
        assert ran.rc == 0
        for secret in (SEED, SEED.hex().encode()):
            assert secret not in ran.out + ran.err


def test_import_takes_a_key_and_export_gives_its_public_half(tmp_path: Path) -> None:
    pem = Ed25519PrivateKey.from_private_bytes(SEED).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
    )
    file, words = put(tmp_path / "key.pem", pem), put(tmp_path / "words", b"secret\n")
    home = tmp_path / "h"
    assert key(home, "import", file).rc == 1
    assert not (home / "operator.key").exists()
    assert key(home, "import", file, "--passphrase-file", words).rc == 0
    assert key(home, "import", file, "--passphrase-file", words).rc == 0
    assert key(home, "export-public").text == f"{public_key(SEED)}\n"
    assert key(home, "export-public", "--form", "pem").text.startswith("-----BEGIN PUBLIC KEY-----\n")
    assert key(home, "export-public", "--form", "openssh").text.startswith("ssh-ed25519 ")
    assert (home / "operator.key").read_bytes() == SEED


@pytest.mark.parametrize("kind", ["noise", "PEM", "OpenSSH"])
def test_what_is_no_private_key_is_said_without_a_reference_to_a_web_site(kind: str, tmp_path: Path) -> None:
    public = Ed25519PrivateKey.from_private_bytes(SEED).public_key()
    data = {
        "noise": bytes(range(256)),
        "PEM": public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        "OpenSSH": public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH),
    }[kind]
    ran = key(tmp_path / "h", "import", put(tmp_path / "k", data))
    said = ran.err.decode()
    assert ran.rc == 1
    assert "http" not in said
    assert ("is damaged" if kind == "noise" else "it holds a public key") in said


def test_import_refuses_a_passphrase_that_others_could_read(tmp_path: Path) -> None:
    pem = Ed25519PrivateKey.from_private_bytes(SEED).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
    )
    file, words = put(tmp_path / "key.pem", pem), put(tmp_path / "words", b"secret\n")
    words.chmod(0o644)
    ran = key(tmp_path / "h", "import", file, "--passphrase-file", words)
    assert ran.rc == 1
    assert "passphrase_unusable" in ran.err.decode()
    assert not (tmp_path / "h").exists()


def test_import_never_replaces_another_key(tmp_path: Path) -> None:
    pem = Ed25519PrivateKey.from_private_bytes(SEED).private_bytes(
        Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()
    )
    home = tmp_path / "h"
    key(home, "init")
    before = (home / "operator.key").read_bytes()
    ran = key(home, "import", put(tmp_path / "key", pem))
    assert ran.rc == 1
    assert "operator_key_exists" in ran.err.decode()
    assert (home / "operator.key").read_bytes() == before


def test_a_folder_of_evidence_is_refused_with_a_next_step(tmp_path: Path) -> None:
    project = make_project(tmp_path / "p")
    ran = key(project.invocations, "init")
    assert ran.rc == 1
    assert "SYMBI_RECOVER_HOME" in ran.err.decode()
    assert os.listdir(project.invocations) == ["store.lock"]


def test_on_a_terminal_the_verdict_is_last(tmp_path: Path) -> None:
    ran = run_terminal("key", "init", env={"SYMBI_RECOVER_HOME": str(tmp_path / "h")})
    assert ran.rc == 0
    assert ran.text.splitlines()[-1].startswith("Verdict:")


def test_cryptography_is_loaded_for_foreign_forms_alone(tmp_path: Path) -> None:
    program = (
        "import sys; from symbi_recover.cli.app import main; code = main(sys.argv[1:]); "
        "assert 'cryptography' not in sys.modules; sys.exit(code)"
    )
    import sys

    env = {"SYMBI_RECOVER_HOME": str(tmp_path / "h")}
    for words in (("init",), ("show",), ("export-public",)):
        assert run_process("key", *words, env=env, program=(sys.executable, "-c", program)).rc == 0
