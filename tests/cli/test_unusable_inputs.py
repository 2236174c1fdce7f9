"""What lies under a name and is no regular file could not be examined: exit 3 in every command of our own (F-071).

Only the form of the command line itself is misuse, exit 64.
"""

import os
from pathlib import Path

import pytest

from tests.support.cli import run
from tests.support.sample_journals import KEY, small

COMMANDS = {
    "audit verify": ("audit", "verify", "IT", "--public-key", KEY),
    "audit show": ("audit", "show", "IT"),
    "a key": ("audit", "verify", "GOOD", "--public-key", "@IT"),
    "a key to show with": ("audit", "show", "GOOD", "--public-key", "@IT"),
    "pinned keys": ("audit", "verify", "GOOD", "--trust", "IT"),
    "ledger verify": ("ledger", "verify", "IT"),
    "ledger show": ("ledger", "show", "IT"),
    "the key of a ledger": ("ledger", "verify", "GOOD", "--public-key", "@IT"),
    "schema validate": ("schema", "validate", "journal-record", "IT"),
    "trust list": ("trust", "list", "--file", "IT"),
    "trust add": ("trust", "add", "@IT", "--file", "NEW"),
    "key import": ("key", "import", "IT"),
}
KINDS = {
    "missing": lambda _: None,
    "folder": Path.mkdir,
    "FIFO": os.mkfifo,
    "link": lambda path: path.symlink_to("good"),
    "dangling link": lambda path: path.symlink_to("nowhere"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_readable_file_was_not_examined(command: str, kind: str, tmp_path: Path) -> None:
    small(3).write(tmp_path / "good")
    KINDS[kind](tmp_path / "it")
    names = {"IT": "it", "GOOD": "good", "NEW": "new"}
    words = [
        word.replace(name, str(tmp_path / names[name])) if (name := word.lstrip("@")) in names else word
        for word in COMMANDS[command]
    ]
    ran = run(*words, "--format", "text") if command not in ("trust add", "key import") else run(*words)
    told = ran.text + ran.err.decode()
    assert ran.rc == 3, told
    assert str(tmp_path / "it") in told
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("text", [KEY[1:], "", "0x" + KEY, "ssh-rsa AAAA"])
def test_what_is_no_key_is_a_misused_command_line(text: str, tmp_path: Path) -> None:
    small(3).write(tmp_path / "good")
    for words in (
        ("audit", "verify", tmp_path / "good"),
        ("audit", "show", tmp_path / "good"),
        ("ledger", "verify", tmp_path / "good"),
    ):
        assert run(*words, f"--public-key={text}").rc == 64
    assert run("trust", "add", "--file", tmp_path / "new", "--", text).rc == 64
