"""Claims and journals that somebody is writing at this moment: the right answer every time, never a verdict of damage."""

import fcntl
import os
from collections import Counter
from pathlib import Path
from uuid import UUID

import pytest

from symbi_recover.core.errors import RecoverError
from symbi_recover.read.evidence.store import InvocationStore
from symbi_recover.read.invocation import inspect_invocation
from tests.read.live import Child, child
from tests.support.cli import run
from tests.support.writer.claim import Invocation, open_invocation
from tests.support.writer.events import terminated
from tests.support.writer.project import make_project
from tests.support.writer.publication import begin_call

PREFIX = "Invocation inspection/reconciliation failed: "

OWNER = """
import fcntl, os, sys, base64
claim, journal, lock = sys.argv[1:4]
records = [base64.b64decode(part) for part in sys.argv[4].split(",")]
lines = [base64.b64decode(part) for part in sys.argv[5].split(",")]
print("ready", flush=True)

def whole(file, data):
    half = len(data) // 2
    os.write(file, data[:half]); os.write(file, data[half:])

for order in sys.stdin:
    finish = order.strip() == "finish"
    store = os.open(lock, os.O_RDWR)
    fcntl.flock(store, fcntl.LOCK_EX)
    for name in (claim, journal):
        if os.path.exists(name):
            os.unlink(name)
    file = os.open(claim, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    whole(file, records[0])
    log = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    whole(file, records[1])
    fcntl.flock(store, fcntl.LOCK_UN)
    os.close(store)
    whole(log, lines[0])
    sys.stdin.readline()
    for line in lines[1:] if finish else lines[1:-1]:
        whole(log, line)
    if finish:
        whole(file, records[2])
    fcntl.flock(file, fcntl.LOCK_UN)
    os.close(file); os.close(log)
"""

APPENDER = """
import os, sys, base64
journal, lines = sys.argv[1], [base64.b64decode(part) for part in sys.argv[2].split(",")]
print("ready", flush=True)
for _ in sys.stdin:
    file = os.open(journal + ".new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(file, lines[0])
    os.rename(journal + ".new", journal)
    for line in lines[1:]:
        half = len(line) // 2
        os.write(file, line[:half]); os.write(file, line[half:])
    os.close(file)
"""


def encoded(parts: list[bytes]) -> str:
    import base64

    return ",".join(base64.b64encode(part).decode() for part in parts)


def finished_invocation(root: Path) -> Invocation:
    invocation = open_invocation(make_project(root))
    begin_call(invocation.journal).finish()
    invocation.journal.append(terminated())
    return invocation


LOOKS = [500, pytest.param(10_000, marks=pytest.mark.slow)]


@pytest.mark.parametrize("looks", LOOKS)
def test_many_looks_at_a_working_owner_are_never_a_verdict_of_damage(tmp_path: Path, looks: int) -> None:
    invocation = finished_invocation(tmp_path / "p")
    records = invocation.records(result={"output": "done"}).splitlines(keepends=True)
    lines = invocation.journal.data().splitlines(keepends=True)
    invocation.write()
    invocation.claim_path.unlink()
    seen: Counter[str] = Counter()
    arguments = [
        str(p) for p in (invocation.claim_path, invocation.journal_path, invocation.project.store_lock)
    ]
    with (
        child(OWNER, *arguments, encoded(records), encoded(lines)) as owner,
        InvocationStore(str(invocation.project.root)) as store,
    ):
        assert owner.answer() == "ready"
        store.watch_locks()
        cycle = 0
        while sum(seen.values()) < looks:
            finish = cycle % 2 == 0
            owner.tell("finish" if finish else "abandon")
            seen += watch(
                owner,
                store,
                invocation,
                "recorded" if finish else "unresolved",
                "unresolved" if finish else "recorded",
            )
            cycle += 1
    assert set(seen) <= {
        "claim_live",
        "file_missing",
        "recorded",
        "unresolved",
        "stale recorded",
        "stale unresolved",
    }
    assert seen["claim_live"] >= cycle
    assert seen["recorded"]
    assert seen["unresolved"]


def watch(
    owner: Child, store: InvocationStore, invocation: Invocation, end: str, before: str
) -> Counter[str]:
    """Look until the cycle has its end; until the first sign of it, the end of the cycle before may still be seen."""
    seen: Counter[str] = Counter()
    begun = False
    while True:
        try:
            found = inspect_invocation(store, invocation.scope, UUID(invocation.id)).status.value
        except RecoverError as error:
            if error.code == "claim_live" and not seen["claim_live"]:
                owner.tell("go on")
            begun = True
            seen[error.code] += 1
            if error.code not in ("claim_live", "file_missing"):
                raise AssertionError(f"{error.code}: {error.message}; {error.detail}") from error
            continue
        if found == before and not begun:
            seen[f"stale {found}"] += 1
            continue
        assert found == end
        seen[found] += 1
        return seen


@pytest.mark.parametrize("looks", LOOKS)
def test_a_journal_that_grows_is_a_stable_snapshot_or_a_reason_of_its_own(tmp_path: Path, looks: int) -> None:
    invocation = open_invocation(make_project(tmp_path / "p"))
    for number in range(4):
        begin_call(invocation.journal, f"call_{number}", "step").finish()
    invocation.write()
    lines = invocation.journal.data().splitlines(keepends=True)
    lengths = [sum(map(len, lines[: count + 1])) for count in range(len(lines))]
    seen: Counter[str] = Counter()
    with (
        child(APPENDER, str(invocation.journal_path), encoded(lines)) as appender,
        InvocationStore(str(invocation.project.root)) as store,
    ):
        assert appender.answer() == "ready"
        store.watch_locks()
        appender.tell("go")
        while sum(seen.values()) < looks:
            try:
                found = inspect_invocation(store, invocation.scope, UUID(invocation.id))
            except RecoverError as error:
                seen[error.code] += 1
                if error.code != "claim_changing":
                    raise AssertionError(f"{error.code}: {error.message}") from error
                continue
            seen[found.status.value] += 1
            assert found.recovery is not None
            assert found.recovery.verified_bytes == lengths[found.recovery.verified_records - 1]
            if found.recovery.verified_records == len(lines):
                appender.tell("go")
    assert seen["unresolved"] > looks / 2


@pytest.fixture
def invocation(tmp_path: Path) -> Invocation:
    return finished_invocation(tmp_path / "p").write(result=1)


def ask(invocation: Invocation, *more: str) -> tuple[int, str]:
    ran = run(
        "invocation", "inspect", "--project", invocation.project.root, "--scope", invocation.scope,
        "--id", invocation.id, *more,
    )  # fmt: skip
    return ran.rc, ran.err.decode()


def test_a_held_claim_is_refused_in_the_runtimes_words_and_the_holder_is_named(
    invocation: Invocation,
) -> None:
    with invocation.claim_path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        rc, err = ask(invocation)
    assert rc == 1
    assert err.split("\n")[0] == PREFIX + "invocation is still owned; reconciliation refused"
    assert f"process {os.getpid()}" in err
    assert ask(invocation)[0] == 0


def test_a_lock_file_without_a_holder_blocks_nothing_whatever_is_in_it(invocation: Invocation) -> None:
    for content in (b"", b"1\n", f"{os.getpid()}\n".encode()):
        invocation.project.store_lock.write_bytes(content)
        assert ask(invocation)[0] == 0


def test_a_store_that_stays_busy_is_refused_after_the_runtimes_patience(invocation: Invocation) -> None:
    with invocation.project.store_lock.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        with (
            InvocationStore(str(invocation.project.root), patience=0.05) as store,
            pytest.raises(RecoverError) as caught,
        ):
            inspect_invocation(store, invocation.scope, UUID(invocation.id))
    assert caught.value.message == "invocation store busy; retry with the same ID"


def test_no_option_goes_on_against_a_held_lock(invocation: Invocation) -> None:
    from symbi_recover.cli.reading.invocation import file_inspect_command, inspect_command

    names = {
        name for command in (inspect_command, file_inspect_command) for p in command.params for name in p.opts
    }
    assert not {name for name in names if "force" in name or "lock" in name}


def test_a_missing_lock_file_is_not_made(invocation: Invocation) -> None:
    invocation.project.store_lock.unlink()
    assert ask(invocation)[0] == 0
    assert not invocation.project.store_lock.exists()
