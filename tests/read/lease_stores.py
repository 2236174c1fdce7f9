"""Lease stores for tests, and the report about one."""

import os
from pathlib import Path
from typing import Any

import pytest

from symbi_recover.core.leases import StoreReport
from symbi_recover.read.verify.lease_judge import judge
from symbi_recover.read.verify.lease_store import StoreSnapshot, read_store
from tests.support.writer import lease as made

SECOND = 1_000_000_000
LEASE = made.LEASE
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="not run: changing owners needs root")


def snapshot_of(place: Path, now_ns: int | None = None) -> StoreSnapshot:
    newest = max(path.lstat().st_mtime_ns for path in [place, *place.iterdir()])
    return read_store(str(place), now_ns=newest if now_ns is None else now_ns)


def look(place: Path, now_ns: int | None = None, **options: Any) -> StoreReport:
    return judge(snapshot_of(place, now_ns), **options)


def codes(report: StoreReport) -> set[str]:
    return {found.code for found in report.findings}


def leases(count: int) -> list[dict[str, Any]]:
    return [made.record(made.lease_uid(number), made.uncertain()) for number in range(count)]
