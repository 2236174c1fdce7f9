"""Lays out the trees of `fixtures/cases/invocation.jsonl.gz` and `cron.jsonl.gz` at the path they were made for.

Claims name their journal by absolute path, so a case works at one place only. `laid_out` takes a file lock beside
that place, so that test processes take turns, and removes the tree afterwards.
"""

import base64
import gzip
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.places import alone_at

CASES = Path(__file__).resolve().parents[2] / "fixtures" / "cases"
INVOCATION_PLACE = Path("/var/tmp/symbi-case")
CRON_PLACE = Path("/var/tmp/symbi-cron")


@cache
def invocation_cases() -> dict[str, dict[str, Any]]:
    """Every invocation case by its id."""
    return _read("invocation")


@cache
def cron_cases() -> dict[str, dict[str, Any]]:
    """Every cron case by its id."""
    return _read("cron")


def _read(name: str) -> dict[str, dict[str, Any]]:
    with gzip.open(CASES / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return {case["id"]: case for case in map(json.loads, lines)}


@contextmanager
def held(place: Path) -> Iterator[None]:
    """Keep other test processes away from a place, and leave nothing there."""
    with alone_at(place):
        if place.exists():
            shutil.rmtree(place)
        try:
            yield
        finally:
            if place.exists():
                shutil.rmtree(place)


def lay(tree: dict[str, dict[str, Any]], root: Path) -> None:
    """Make the members of a tree below `root`, which is made as well; modes are set last."""
    root.mkdir(mode=0o700, parents=True)
    for name, member in tree.items():
        path = root / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if "dir" in member:
            path.mkdir(mode=0o700, exist_ok=True)
        elif "link" in member:
            path.symlink_to(member["link"])
        elif "fifo" in member:
            os.mkfifo(path)
        elif "zeros" in member:
            path.write_bytes(bytes(member["zeros"]))
        elif "data" in member:
            path.write_bytes(base64.b64decode(member["data"]))
    for name, member in tree.items():
        if "hardlink" in member:
            os.link(root / member["hardlink"], root / name)
    for name, member in sorted(tree.items(), reverse=True):
        if "mode" in member and "link" not in member:
            (root / name).chmod(member["mode"])


@contextmanager
def laid_out(case: dict[str, Any]) -> Iterator[Path]:
    """Lay out an invocation case, alone on this machine; gives the project folder."""
    with held(INVOCATION_PLACE):
        lay(case["tree"], INVOCATION_PLACE / "p")
        for name, data in case["files"].items():
            (INVOCATION_PLACE / name).write_bytes(base64.b64decode(data))
        yield INVOCATION_PLACE / "p"
