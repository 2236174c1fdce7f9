"""Every lease store that was put to the real supervisor: it starts exactly where we find nothing that blocks it."""

import base64
import gzip
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from symbi_recover.core.leases import StoreReport
from symbi_recover.read.verify.lease_judge import judge
from symbi_recover.read.verify.lease_store import read_store
from tests.support.cli import run
from tests.support.evidence import FIXTURES, members

CASES = FIXTURES / "cases" / "leases.jsonl.gz"
COUNT = 1047
FOREIGN_OWNER = 4242
GOLDEN = ("created", "creating", "idle", "late", "uncertain")


@cache
def cases() -> dict[str, list[dict[str, Any]]]:
    """All cases by the first part of their id."""
    groups: dict[str, list[dict[str, Any]]] = {}
    with gzip.open(CASES) as lines:
        for case in map(json.loads, lines):
            groups.setdefault(case["id"].split("/")[0], []).append(case)
    return groups


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder whose path is short enough for a helper's socket."""
    folder = Path(tempfile.mkdtemp(prefix="sl", dir="/tmp"))
    yield folder / "s"
    clear(folder / "s")
    folder.rmdir()


def clear(root: Path) -> None:
    if root.exists():
        root.chmod(0o700)
        shutil.rmtree(root)


def lay(tree: dict[str, dict[str, Any]], root: Path) -> None:
    root.mkdir(mode=0o700)
    for name, member in tree.items():
        path = root / name
        if "link" in member:
            path.symlink_to(member["link"])
        elif "hardlink" in member:
            path.hardlink_to(root / member["hardlink"])
        elif "fifo" in member:
            os.mkfifo(path)
        elif "dir" in member:
            path.mkdir(exist_ok=True)
        else:
            path.write_bytes(base64.b64decode(member["data"]))
    for name, member in sorted(tree.items(), reverse=True):
        if "owner" in member:
            os.chown(root / name, member["owner"], member["owner"])
        if "mode" in member and "link" not in member:
            (root / name).chmod(member["mode"])


def look(root: Path) -> StoreReport:
    return judge(read_store(str(root), now_ns=root.stat().st_mtime_ns))


def ends(root: Path) -> int:
    """The exit code of `lease verify`, which must agree with its own document."""
    ran = run("lease", "verify", "--state-dir", root, "--format", "json")
    document = json.loads(ran.out)
    assert (document["exit"], document["ok"], ran.err) == (ran.rc, ran.rc == 0, b"")
    return ran.rc


def needs_root(case: dict[str, Any]) -> bool:
    """Whether the answer is that of a root supervisor alone: foreign owners, or a folder only root can use or accept."""
    mode = case["tree"].get(".", {}).get("mode", 0o700)
    foreign = any("owner" in member for member in case["tree"].values())
    return foreign or mode & 0o700 != 0o700 or (mode & 0o077 != 0 and mode & 0o066 == 0)


def test_the_cases_are_all_there() -> None:
    assert sum(map(len, cases().values())) == COUNT


@pytest.mark.parametrize("group", sorted(cases()))
def test_the_store_blocks_exactly_where_the_supervisor_did_not_start(group: str, place: Path) -> None:
    left_out = []
    for case in cases()[group]:
        if needs_root(case) and os.geteuid() != 0:
            left_out.append(case["id"])
            continue
        lay(case["tree"], place)
        report = look(place)
        codes = [found.code for found in report.findings]
        code = ends(place)
        clear(place)
        assert report.store_blocked is not case["starts"], (case["id"], codes, case["stderr"])
        assert (report.verdict == "blocked") is not case["starts"], (case["id"], codes)
        assert code in ((0, 2) if case["starts"] else (1,)), (case["id"], code)
        assert all(found.code != "entry_unreadable" for found in report.findings), case["id"]
    if left_out:
        pytest.skip(f"not run: answered by a root supervisor, so they need root: {', '.join(left_out)}")


@pytest.mark.parametrize("group", sorted(cases()))
def test_what_the_supervisor_reads_is_written_again_as_it_writes(group: str, place: Path) -> None:
    """Our structure of a record loses nothing: encoded again it is read as the same record."""
    for case in cases()[group]:
        if not case["starts"] or case["tree"]["."]["mode"] & 0o700 != 0o700 or needs_root(case):
            continue
        lay(case["tree"], place)
        before = look(place)
        for view in before.records:
            path = place / f"{view.lease}.json"
            path.unlink()
            path.write_bytes(msgspec.json.encode(view.record))
            path.chmod(0o600)
        after = look(place)
        clear(place)
        assert [view.record for view in after.records] == [view.record for view in before.records]


@pytest.mark.parametrize("name", GOLDEN)
def test_the_runtimes_own_stores_do_not_block(name: str, place: Path) -> None:
    place.mkdir(mode=0o700)
    for member, content in members().items():
        folder, _, file = member.rpartition("/")
        if folder == f"leases/{name}" and content.kind == "file":
            (place / file).write_bytes(content.data)
            (place / file).chmod(0o600)
    report = look(place)
    assert report.store_blocked is False
    assert ends(place) == (2 if name in ("created", "creating", "uncertain") else 0)
    phases = {view.phase for view in report.records}
    assert phases == ({name} if name in ("created", "creating", "uncertain") else set())
    assert report.verdict == ("attention" if phases else "sound")
    assert all(view.tombstone is (name != "created") for view in report.records)
