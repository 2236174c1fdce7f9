"""`trust add|list|remove`: the operator's list is changed whole, privately and durably, or not at all."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest

from symbi_recover.core.errors import MisuseError, RecoverError, RefusedError
from symbi_recover.read.trust import TrustEntry, dump, load
from symbi_recover.write import trust
from tests.support.cli import Ran, clean_environment, run
from tests.support.writer.project import put
from tests.support.writer.text import SEED, public_key

KEY = public_key(SEED)


def entry(number: int) -> TrustEntry:
    return TrustEntry(public_key=f"{number:064x}", added_at="2026-03-04T05:06:07Z")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home" / "operator"


def ask(home: Path, *words: str) -> Ran:
    return run("trust", *words, env={"SYMBI_RECOVER_HOME": str(home)})


def test_a_key_is_pinned_listed_and_removed(home: Path, tmp_path: Path) -> None:
    assert ask(home, "add", KEY, "--project", str(tmp_path), "--comment", "from ticket 17").rc == 0
    shown = ask(home, "list", "--format", "text").text
    assert f"{KEY}  {tmp_path}" in shown
    assert "from ticket 17" in shown
    (found,) = json.loads(ask(home, "list").out)["entries"]
    assert (found["public_key"], found["project"], found["host"]) == (KEY, str(tmp_path), None)
    assert ask(home, "remove", KEY).rc == 1, "that entry is for one project"
    assert ask(home, "remove", KEY, "--project", str(tmp_path)).rc == 0
    assert json.loads(ask(home, "list").out)["entries"] == []


WEAK = ["00" * 32, "01" + "00" * 31, "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"]
NO_POINT = ["02" + "00" * 31]


@pytest.mark.parametrize("key", [*WEAK, *NO_POINT])
def test_a_key_under_which_nothing_is_proven_is_not_pinned(key: str, home: Path) -> None:
    ran = ask(home, "add", key)
    code = "key_weak" if key in WEAK else "key_not_a_point"
    assert ran.rc == 1
    assert f"code:  {code}" in ran.err.decode()
    assert not home.exists()


def test_a_weak_key_that_was_pinned_before_can_be_removed(home: Path) -> None:
    home.mkdir(parents=True, mode=0o700)
    old = TrustEntry(public_key=WEAK[0], added_at="2026-03-04T05:06:07Z")
    put(home / "trust.jsonl", dump((old,)))
    assert ask(home, "remove", WEAK[0]).rc == 0


def test_file_and_folder_are_private_whatever_the_umask(home: Path) -> None:
    old = os.umask(0)
    try:
        ask(home, "add", KEY)
    finally:
        os.umask(old)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE(home.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE((home / "trust.jsonl").stat().st_mode) == 0o600
    assert os.listdir(home) == ["trust.jsonl"]


def test_adding_again_changes_nothing(home: Path) -> None:
    ask(home, "add", KEY, "--comment", "first")
    before = (home / "trust.jsonl").read_bytes()
    ran = ask(home, "add", KEY, "--comment", "second")
    assert (ran.rc, (home / "trust.jsonl").read_bytes()) == (0, before)
    assert "already" in ran.text


@pytest.mark.parametrize("key", ["", "ab", "zz" * 32, "ssh-rsa AAAA", "@/nonexistent"])
def test_what_is_no_key_is_not_pinned(home: Path, key: str) -> None:
    ran = ask(home, "add", key)
    assert ran.rc not in (0, 2)
    assert not home.exists()


def test_a_broken_file_is_left_as_it_is(home: Path) -> None:
    home.mkdir(parents=True, mode=0o700)
    broken = put(home / "trust.jsonl", b"nonsense\n")
    assert ask(home, "add", KEY).rc == 64
    assert broken.read_bytes() == b"nonsense\n"


def test_a_folder_that_others_may_write_to_is_refused(home: Path) -> None:
    home.mkdir(parents=True)
    home.chmod(0o777)
    assert ask(home, "add", KEY).rc == 64
    assert os.listdir(home) == []


@pytest.mark.parametrize("call", ["write", "fsync", "rename"])
def test_an_error_of_the_system_leaves_the_old_list_and_nothing_else(home: Path, call: str) -> None:
    path = str(home / "trust.jsonl")
    trust.add(path, entry(1))
    with (
        mock.patch(f"symbi_recover.write.trust.os.{call}", side_effect=OSError(28, "full")),
        pytest.raises(MisuseError),
    ):
        trust.add(path, entry(2))
    assert load(path, required=True) == (entry(1),)
    assert os.listdir(home) == ["trust.jsonl"]


def test_what_a_stopped_writer_left_behind_is_cleared(home: Path) -> None:
    path = str(home / "trust.jsonl")
    trust.add(path, entry(1))
    put(home / ".trust.jsonl.new", b"half")
    assert trust.add(path, entry(2))
    assert os.listdir(home) == ["trust.jsonl"]


def test_operators_at_once_lose_no_entry(home: Path) -> None:
    code = (
        "import sys; from symbi_recover.read.trust import TrustEntry; from symbi_recover.write import trust\n"
        "for n in range(20):\n"
        "    key = f'{int(sys.argv[2]) * 100 + n:064x}'\n"
        "    trust.add(sys.argv[1], TrustEntry(public_key=key, added_at='2026-03-04T05:06:07Z'))\n"
    )
    path = str(home / "trust.jsonl")
    started = [
        subprocess.Popen([sys.executable, "-c", code, path, str(number)], env=clean_environment())
        for number in range(3)
    ]
    assert [process.wait(timeout=60) for process in started] == [0, 0, 0]
    assert len(load(path, required=True)) == 60


@contextmanager
def held_by_another_process(folder: Path) -> Iterator[int]:
    """Another process, by its number, holds the lock of a folder."""
    code = (
        "import fcntl, os, sys; folder = os.open(sys.argv[1], os.O_RDONLY); fcntl.flock(folder, fcntl.LOCK_EX); "
        "print('held', flush=True); sys.stdin.read()"
    )
    words = [sys.executable, "-c", code, str(folder)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield holder.pid


@pytest.mark.usefixtures("quick")
def test_a_list_that_stays_locked_is_refused_with_its_holder_and_left_as_it_is(home: Path) -> None:
    path = str(home / "trust.jsonl")
    trust.add(path, entry(1))
    with held_by_another_process(home) as holder:
        for change in (
            lambda: trust.add(path, entry(2)),
            lambda: trust.remove(path, entry(1).place),
        ):
            with pytest.raises(RefusedError, match="another process is changing the pinned keys") as caught:
                change()
            assert caught.value.code == "trust_file_busy"
            assert f"process {holder}" in str(caught.value.detail)
    assert load(path, required=True) == (entry(1),)
    assert trust.add(path, entry(2))


def test_hostile_comments_are_shown_escaped(home: Path) -> None:
    ask(home, "add", KEY, "--comment", "x\n\x1b[2J")
    shown = ask(home, "list", "--format", "text").text
    assert "\x1b" not in shown
    assert len(shown.splitlines()) == 2


def test_removing_what_is_not_there_is_refused(home: Path) -> None:
    with pytest.raises(RecoverError) as caught:
        trust.remove(str(home / "trust.jsonl"), (KEY, None, None))
    assert caught.value.code == "trust_entry_missing"
