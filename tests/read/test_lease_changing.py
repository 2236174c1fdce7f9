"""A lease store whose files are replaced, removed and swapped while it is read."""

import fcntl
import hashlib
import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from ctypes import c_uint64
from pathlib import Path
from typing import Any

import pytest

from symbi_recover.read.verify.lease_judge import judge
from symbi_recover.read.verify.lease_store import read_store
from symbi_recover.wire.lease import read_admission
from tests.read.lease_stores import LEASE, codes, look
from tests.support.writer import lease as made
from tests.support.writer.project import put
from tests.support.writer.text import compact

FORK = multiprocessing.get_context("fork")
LOOKS = 1000
some_looks = pytest.mark.parametrize("times", [100, pytest.param(LOOKS, marks=pytest.mark.slow)])
SNAPSHOT = made.lease_uid(77)
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
    """Give the target's name to the spare and back, without pause, until this process is ended."""
    held = spare.with_name("held")
    while True:
        target.rename(held)
        spare.rename(target)
        target.rename(spare)
        held.rename(target)
        swaps.value += 2


@contextmanager
def swapping(target: Path, spare: Path) -> Iterator[c_uint64]:
    """Swap two names for the block; gives the number of swaps so far."""
    swaps = FORK.Value(c_uint64, lock=False)
    swapper = FORK.Process(target=swap, args=(target, spare, swaps))
    swapper.start()
    try:
        yield swaps
        assert swapper.is_alive()
    finally:
        swapper.kill()
        swapper.join()


def looks(
    target: Path, spare: Path, look_once: Callable[[], tuple[str, ...]], times: int = LOOKS
) -> set[tuple[str, ...]]:
    """What so many looks beside more swaps than that saw, and more looks until two different things were seen."""
    seen: set[tuple[str, ...]] = set()
    with swapping(target, spare) as swaps:
        for number in range(50_000):
            if number >= times and len(seen) > 1:
                break
            seen.add(look_once())
        assert swaps.value > times
    assert len(seen) > 1, "the swaps were seen"
    return seen


def lay(spare: Path, kind: str, other: bytes, mode: int = 0o600) -> Path:
    """What takes the name in between: a link, a folder, or another file."""
    if kind == "link":
        spare.symlink_to("/dev/zero")
    elif kind == "folder":
        spare.mkdir()
    else:
        put(spare, other, mode)
    return spare


@pytest.mark.parametrize("kind", ["link", "other", "folder"])
def test_swapping_entries_never_mixes_two_files(place: Path, kind: str) -> None:
    """F-073: a thousand looks and many more swaps; hash, size and phase of each view are those of one file."""
    contents = {
        state["phase"]: compact(made.record(state=state)) for state in (made.creating(), made.uncertain())
    }
    facts = {phase: (len(data), hashlib.sha256(data).hexdigest()) for phase, data in contents.items()}
    made.make_state(place, made.record())

    def look_once() -> tuple[str, ...]:
        report = judge(read_store(str(place), now_ns=0))
        for view in report.records:
            assert (view.size, view.sha256) == facts[view.phase]
        return (*(view.phase for view in report.records), *sorted(codes(report)))

    spare = lay(place.parent / "spare", kind, contents["uncertain"])
    seen = looks(place / f"{LEASE}.json", spare, look_once)
    assert {word for outcome in seen for word in outcome} <= TOLD, seen


@some_looks
@pytest.mark.parametrize("kind", ["link", "other", "loose", "folder"])
def test_swapped_limits_are_those_of_one_file(place: Path, kind: str, times: int) -> None:
    """F-073 for `admission.conf`: a loose file's limits are never shown as those of the private one."""
    limits = {"max_workers": 3, "memory_bytes": 1 << 30, "cpu_nanos": 1_000_000_000}
    others = limits | {"max_workers": 40}
    made.make_state(place, made.record(), admission=limits)
    known = {compact(limits): 3, compact(others): 40}
    mode = 0o644 if kind == "loose" else 0o600

    def look_once() -> tuple[str, ...]:
        snapshot = read_store(str(place), now_ns=0)
        report = judge(snapshot)
        entry = snapshot.entry("admission.conf")
        if entry is not None and entry.data is not None:
            assert snapshot.admission == read_admission(entry.data)
            assert (entry.facts.size, entry.sha256) == (
                len(entry.data),
                hashlib.sha256(entry.data).hexdigest(),
            )
            assert entry.data in known
            loose = entry.facts.mode != 0o600
            assert loose is (kind == "loose" and known[entry.data] == 40)
            assert ("admission_invalid" in codes(report)) is loose
        return (*(() if entry is None else (entry.facts.kind,)), *sorted(codes(report)))

    spare = lay(place.parent / "spare", kind, compact(others), mode)
    if kind == "other":
        # both are right, so that only their bytes tell them apart
        spied = look_once

        def look_once() -> tuple[str, ...]:
            snapshot = read_store(str(place), now_ns=0)
            return (*spied(), str(snapshot.admission and snapshot.admission.value))

    looks(place / "admission.conf", spare, look_once, times)


@some_looks
@pytest.mark.parametrize("kind", ["link", "held", "folder"])
def test_a_swapped_lock_file_is_held_or_not_and_never_half(place: Path, kind: str, times: int) -> None:
    """F-073 for `supervisor.lock`: a holder is told of the file that is held, and what is no file has none."""
    made.make_state(place, made.record())
    spare = lay(place.parent / "spare", kind, b"")
    allowed = {"absent", "unknown", *(["running"] if kind == "held" else [])}

    def look_once() -> tuple[str, ...]:
        report = judge(read_store(str(place), now_ns=0))
        assert report.helper.state in allowed, report.helper
        assert (report.helper.pid == os.getpid()) is (report.helper.state == "running")
        assert [view.phase for view in report.records] == ["creating"]
        return (report.helper.state, *sorted(codes(report)))

    with ExitStack() as stack:
        if kind == "held":
            held = stack.enter_context(spare.open("rb"))
            fcntl.flock(held, fcntl.LOCK_EX)
        looks(place / "supervisor.lock", spare, look_once, times)


@some_looks
@pytest.mark.parametrize("kind", ["link", "other", "loose", "folder"])
def test_a_swapped_reservation_is_counted_from_one_file(place: Path, kind: str, times: int) -> None:
    """F-073 for a staging reservation: the size of a loose one is never counted under the rights of the private one."""
    made.make_state(place, made.record(staging=[SNAPSHOT]))
    folder = made.stage(place, SNAPSHOT, 4096)
    spare = folder / "data" / "spare"
    lay(spare, kind, compact({"id": SNAPSHOT, "reserved_bytes": 8192}), 0o644 if kind == "loose" else 0o600)

    def look_once() -> tuple[str, ...]:
        report = judge(read_store(str(place), now_ns=0))
        staging = report.capacity.staging
        if staging is None:
            return tuple(sorted(codes(report)))
        size = staging.reserved.reserved_bytes
        assert size == 4096 or (kind == "other" and size == 8192), (size, report.findings)
        return (str(size), *sorted(codes(report)))

    looks(folder / "reservation", spare, look_once, times)


@pytest.mark.parametrize("name", ["reservation", "staging.conf"])
def test_rights_and_content_are_those_of_the_opened_file(place: Path, name: str) -> None:
    """F-073: a file that takes the name after the first look at it, and is loose, is not judged by that look."""
    made.make_state(place, made.record(staging=[SNAPSHOT]))
    folder = made.stage(place, SNAPSHOT, 4096)
    target = folder / name if name == "reservation" else place / name
    real = os.open

    def replacing(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if path == name:
            put(place / ".write-new", target.read_bytes(), 0o644)
            (place / ".write-new").rename(target)
        return real(path, flags, *rest, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", replacing)
        report = look(place)
    assert report.capacity.staging is None, "a loose file was judged by the rights of another"
    assert "staging_bad_entry" in codes(report) or "staging_uncharged_data" in codes(report)
