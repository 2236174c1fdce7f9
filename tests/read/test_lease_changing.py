"""A lease store whose files are replaced, removed and swapped while it is read."""

import hashlib
import multiprocessing
import os
from ctypes import c_uint64
from pathlib import Path
from typing import Any

import pytest

from symbi_recover.read.verify.lease_judge import judge
from symbi_recover.read.verify.lease_store import read_store
from tests.read.lease_stores import LEASE, codes, look
from tests.support.writer import lease as made
from tests.support.writer.project import put
from tests.support.writer.text import compact

FORK = multiprocessing.get_context("fork")
LOOKS = 1000
TOLD = {
    *("creating", "uncertain", "tombstone", "origin_absent"),
    *("entry_is_link", "entry_not_regular", "entry_unreadable", "record_unstable"),
}
"""Phases and codes that are about one of two files, or say that none could be held still."""


def test_a_record_replaced_while_read_is_read_anew(place: Path) -> None:
    made.make_state(place, made.record())
    target = place / f"{LEASE}.json"
    real = os.pread
    replaced: list[bool] = []

    def replacing(descriptor: int, count: int, offset: int) -> bytes:
        data = real(descriptor, count, offset)
        if not replaced and os.readlink(f"/proc/self/fd/{descriptor}") == str(target):
            replaced.append(True)
            put(place / ".write-new", compact(made.record(state=made.uncertain())))
            (place / ".write-new").rename(target)
        return data

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "pread", replacing)
        (view,) = look(place).records
    assert replaced
    assert view.phase == "uncertain"


def test_a_record_that_never_stands_still_is_unstable_not_absent(place: Path) -> None:
    made.make_state(place, made.record())
    target = place / f"{LEASE}.json"
    real = os.pread

    def replacing(descriptor: int, count: int, offset: int) -> bytes:
        data = real(descriptor, count, offset)
        if os.readlink(f"/proc/self/fd/{descriptor}") == str(target):
            put(place / ".write-new", compact(made.record()))
            (place / ".write-new").rename(target)
        return data

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "pread", replacing)
        report = look(place)
    assert "record_unstable" in codes(report)
    assert (report.verdict, report.capacity.reserved.workers) == ("unexamined", None)


def test_a_record_removed_while_listed_is_skipped(place: Path) -> None:
    made.make_state(place, made.record())
    real = os.open

    def removing(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if path == f"{LEASE}.json":
            (place / path).unlink(missing_ok=True)
        return real(path, flags, *rest, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", removing)
        report = judge(read_store(str(place), now_ns=0))
    assert (report.records, report.verdict) == ((), "sound")


def swap(target: Path, spare: Path, swaps: c_uint64) -> None:
    """Give the record's name to the spare and back, without pause, until this process is ended."""
    held = spare.with_name("held")
    while True:
        target.rename(held)
        spare.rename(target)
        target.rename(spare)
        held.rename(target)
        swaps.value += 2


@pytest.mark.parametrize("kind", ["link", "other", "folder"])
def test_swapping_entries_never_mixes_two_files(place: Path, kind: str) -> None:
    """F-073: a thousand looks and many more swaps; hash, size and phase of each view are those of one file."""
    contents = {
        state["phase"]: compact(made.record(state=state)) for state in (made.creating(), made.uncertain())
    }
    facts = {phase: (len(data), hashlib.sha256(data).hexdigest()) for phase, data in contents.items()}
    made.make_state(place, made.record())
    target, spare = place / f"{LEASE}.json", place.parent / "spare"
    if kind == "link":
        spare.symlink_to("/dev/zero")
    elif kind == "folder":
        spare.mkdir()
    else:
        put(spare, contents["uncertain"])
    swaps = FORK.Value(c_uint64, lock=False)
    swapper = FORK.Process(target=swap, args=(target, spare, swaps))
    swapper.start()
    seen = set()
    try:
        for number in range(50_000):
            if number >= LOOKS and len(seen) > 1:
                break
            report = judge(read_store(str(place), now_ns=0))
            for view in report.records:
                assert (view.size, view.sha256) == facts[view.phase]
            seen.add((*(view.phase for view in report.records), *sorted(codes(report))))
        assert swapper.is_alive()
    finally:
        swapper.kill()
        swapper.join()
    assert len(seen) > 1, "the swaps were seen"
    assert swaps.value > LOOKS
    assert {word for outcome in seen for word in outcome} <= TOLD, seen
