"""The operator's key: made once, kept, and refused where it is not safe."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_public_key,
    load_ssh_public_key,
)

from symbi_recover.core.errors import RecoverError, RefusedError
from symbi_recover.write import keys
from tests.support.writer.project import make_project, put
from tests.support.writer.text import SEED, public_key


def test_a_new_key_is_private_in_a_private_folder(tmp_path: Path) -> None:
    home = tmp_path / "a" / "b"
    state = keys.install(str(home))
    assert state.created
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    assert home.stat().st_mode & 0o777 == 0o700
    assert (home / "operator.key").stat().st_mode & 0o777 == 0o600
    assert public_key((home / "operator.key").read_bytes()) == state.public_key.hex()
    assert (home / "operator.pub").read_text() == f"{state.public_key.hex()}\n"


def test_a_key_that_is_there_is_kept(tmp_path: Path) -> None:
    first = keys.install(str(tmp_path / "h"))
    again = keys.install(str(tmp_path / "h"))
    assert (again.created, again.public_key) == (False, first.public_key)


def test_another_key_is_never_put_over_one(tmp_path: Path) -> None:
    keys.install(str(tmp_path / "h"))
    before = (tmp_path / "h" / "operator.key").read_bytes()
    with pytest.raises(RefusedError) as raised:
        keys.install(str(tmp_path / "h"), SEED)
    assert raised.value.code == "operator_key_exists"
    assert (tmp_path / "h" / "operator.key").read_bytes() == before


def test_the_same_key_can_be_brought_twice(tmp_path: Path) -> None:
    assert keys.install(str(tmp_path / "h"), SEED).created
    assert not keys.install(str(tmp_path / "h"), SEED).created


@pytest.mark.parametrize(
    "noted", [b"ab" * 32 + b"\n", b"", public_key(SEED).encode()], ids=["foreign", "empty", "no line feed"]
)
def test_the_note_of_another_public_key_is_told_apart_from_another_key(noted: bytes, tmp_path: Path) -> None:
    keys.install(str(tmp_path), SEED)
    note = tmp_path / "operator.pub"
    note.write_bytes(noted)
    with pytest.raises(RefusedError) as raised:
        keys.install(str(tmp_path))
    assert (raised.value.code, raised.value.path) == ("operator_public_differs", str(note))
    assert public_key(SEED) in str(raised.value.detail)
    assert note.read_bytes() == noted
    assert (tmp_path / "operator.key").read_bytes() == SEED
    note.unlink()
    assert keys.install(str(tmp_path)).public_key.hex() == public_key(SEED)
    assert note.read_text() == f"{public_key(SEED)}\n"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda key: key.chmod(0o640),
        lambda key: key.write_bytes(b"short"),
        lambda key: os.link(key, key.with_suffix(".copy")),
        lambda key: (key.rename(key.with_suffix(".real")), key.symlink_to(key.with_suffix(".real"))),
        lambda key: (key.unlink(), key.mkdir()),
        lambda key: (key.unlink(), os.mkfifo(key, 0o600)),
    ],
    ids=["loose", "short", "two names", "link", "folder", "FIFO"],
)
def test_an_unsafe_key_is_refused(spoil: Callable[[Path], Any], tmp_path: Path) -> None:
    keys.install(str(tmp_path))
    spoil(tmp_path / "operator.key")
    with pytest.raises(RecoverError):
        keys.load(str(tmp_path))
    with pytest.raises(RecoverError):
        keys.install(str(tmp_path))


def test_a_refused_key_is_described_in_whole_words(tmp_path: Path) -> None:
    put(tmp_path / "operator.key", b"k")
    with pytest.raises(RefusedError) as raised:
        keys.load(str(tmp_path))
    assert str(raised.value.detail).endswith("mode 0600, with 1 link and 1 byte")


def test_a_loose_folder_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "h"
    home.mkdir()
    home.chmod(0o750)
    with pytest.raises(RefusedError) as raised:
        keys.install(str(home))
    assert raised.value.code == "operator_home_unsafe"
    assert os.listdir(home) == []


def test_a_link_to_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "h").symlink_to("real")
    with pytest.raises(RefusedError) as raised:
        keys.install(str(tmp_path / "h"))
    assert raised.value.code == "operator_home_unsafe"


@pytest.mark.parametrize("inside", ["", "deeper/still"])
@pytest.mark.parametrize("place", ["claims", "journals", "leases"])
def test_a_folder_of_evidence_is_refused(place: str, inside: str, tmp_path: Path) -> None:
    project = make_project(tmp_path / "p")
    leases = tmp_path / "leases"
    leases.mkdir(mode=0o700)
    put(leases / "supervisor.lock", b"")
    folder = {"claims": project.invocations, "journals": project.governed, "leases": leases}[place]
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(RefusedError) as raised:
        keys.install(str(folder / inside))
    assert raised.value.code == "operator_home_unsafe"
    assert sorted(tmp_path.rglob("*")) == before


def test_the_usual_place_beside_a_project_is_allowed(tmp_path: Path) -> None:
    project = make_project(tmp_path / "p")
    assert keys.install(str(project.state / "operator")).created


FORMS = {
    "pem": (Encoding.PEM, PrivateFormat.PKCS8),
    "openssh": (Encoding.PEM, PrivateFormat.OpenSSH),
}


def written(path: Path, form: str, encryption: KeySerializationEncryption) -> Path:
    key = Ed25519PrivateKey.from_private_bytes(SEED)
    return put(path, key.private_bytes(*FORMS[form], encryption))


@pytest.mark.parametrize("form", FORMS)
def test_a_private_key_is_read_in_both_forms(form: str, tmp_path: Path) -> None:
    path = written(tmp_path / "key", form, NoEncryption())
    assert keys.read_private(str(path), None) == SEED


@pytest.mark.parametrize("form", ["pem"])
def test_an_encrypted_key_needs_its_passphrase(form: str, tmp_path: Path) -> None:
    path = written(tmp_path / "key", form, BestAvailableEncryption(b"secret"))
    assert keys.read_private(str(path), b"secret") == SEED
    for wrong in (None, b"other"):
        with pytest.raises(RefusedError) as raised:
            keys.read_private(str(path), wrong)
        assert raised.value.code == "key_import_unreadable"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_private_key_that_others_can_read_is_refused(mode: int, tmp_path: Path) -> None:
    path = written(tmp_path / "key", "pem", NoEncryption())
    path.chmod(mode)
    with pytest.raises(RefusedError) as raised:
        keys.read_private(str(path), None)
    assert raised.value.code == "key_import_unsafe"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (b"secret", b"secret"),
        (b"secret\n", b"secret"),
        (b"secret\r\n", b"secret"),
        (b"secret\n\n", b"secret\n"),
        (b"secret\r", b"secret\r"),
        (b" se\ncret ", b" se\ncret "),
        (b"", b""),
        (b"x" * 4096, b"x" * 4096),
    ],
)
def test_a_passphrase_is_its_file_without_one_line_end(text: bytes, meant: bytes, tmp_path: Path) -> None:
    assert keys.read_passphrase(str(put(tmp_path / "words", text))) == meant


def test_a_passphrase_that_only_its_owner_may_read_is_taken(tmp_path: Path) -> None:
    path = put(tmp_path / "words", b"secret")
    path.chmod(0o400)
    assert keys.read_passphrase(str(path)) == b"secret"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.chmod(0o640),
        lambda path: path.chmod(0o604),
        lambda path: os.link(path, path.with_suffix(".second")),
        lambda path: (path.rename(path.with_suffix(".real")), path.symlink_to(path.with_suffix(".real"))),
        lambda path: (path.unlink(), path.mkdir(0o700)),
        lambda path: (path.unlink(), os.mkfifo(path, 0o600)),
        lambda path: path.write_bytes(b"x" * 4097),
    ],
    ids=["group", "others", "two names", "link", "folder", "FIFO", "too long"],
)
def test_an_unsafe_or_long_passphrase_file_is_refused(spoil: Callable[[Path], Any], tmp_path: Path) -> None:
    path = put(tmp_path / "words", b"secret")
    spoil(path)
    with pytest.raises(RecoverError) as raised:
        keys.read_passphrase(str(path))
    assert raised.value.code in ("passphrase_unusable", "file_link", "file_kind")


def test_a_key_file_that_is_too_long_is_refused_and_not_cut(tmp_path: Path) -> None:
    path = written(tmp_path / "key", "pem", NoEncryption())
    with path.open("ab") as file:
        file.write(b"\n" * 65_536)
    with pytest.raises(RefusedError, match="longer than 65,536 bytes") as raised:
        keys.read_private(str(path), None)
    assert raised.value.code == "key_import_unreadable"


def test_a_key_of_another_type_is_refused(tmp_path: Path) -> None:
    key = X25519PrivateKey.generate().private_bytes(*FORMS["pem"], NoEncryption())
    path = put(tmp_path / "key", key)
    with pytest.raises(RefusedError, match="not of type Ed25519"):
        keys.read_private(str(path), None)


@pytest.mark.parametrize(
    "data", [b"", b"-----BEGIN PRIVATE KEY-----\n", b"\0" * 100], ids=["empty", "cut", "zeros"]
)
def test_what_is_no_key_is_refused(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(RefusedError) as raised:
        keys.read_private(str(put(tmp_path / "key", data)), None)
    assert raised.value.code == "key_import_unreadable"


def test_the_public_key_is_written_in_three_forms() -> None:
    raw = bytes.fromhex(public_key(SEED))
    assert keys.public_text(raw, "hex") == raw.hex()
    pem = load_pem_public_key(keys.public_text(raw, "pem").encode())
    ssh = load_ssh_public_key(keys.public_text(raw, "openssh").encode())
    assert pem.public_bytes_raw() == ssh.public_bytes_raw() == raw  # type: ignore[union-attr]


def test_the_fingerprint_is_that_of_openssh() -> None:
    assert keys.fingerprint(bytes.fromhex(public_key(SEED))) == "SHA256:" + _ssh_fingerprint()


def _ssh_fingerprint() -> str:
    import base64
    import hashlib

    blob = base64.b64decode(keys.public_text(bytes.fromhex(public_key(SEED)), "openssh").split()[1])
    return base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
