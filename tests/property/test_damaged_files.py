"""Damaged evidence of every kind, given to the program: exit 0, 1 or 2, in bounded time, without a traceback (F-017).

The program runs in this process: what leaves `main` as an exception is a failure here, a defect has an exit code of its
own, and a signal would end the test. A run is made again with its kind and its seed.
"""

import json
import os
import random
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.property import damage
from tests.property.test_journal_fuzz import made as damaged_journal
from tests.support.cli import Ran, run
from tests.support.evidence import fingerprint
from tests.support.sample_journals import KEY, NAME
from tests.support.writer import lease
from tests.support.writer.claim import RESOLUTION_PREFIX, Invocation, open_invocation, receipt, review
from tests.support.writer.project import make_project, put
from tests.support.writer.publication import RECOVERY_PREFIX, Publication, prepare_publication
from tests.support.writer.text import RUN, SEED, compact

SECONDS = 5
SAMPLE, PARTS = 400, 5
_CODE = re.compile(rb'\bcode"?: +"?(\w+)')


class Kind(NamedTuple):
    """One kind of evidence: where its damaged file lies, how it is made, and commands that read it."""

    path: Path
    make: Callable[[random.Random], bytes]
    commands: tuple[tuple[str | Path, ...], ...]
    writes: tuple[tuple[str | Path, ...], ...] = ()
    """Commands that write, with consent to something else, so that they are refused or find their work done."""


def _journals(folder: Path) -> Kind:
    path = put(folder / NAME, b"")
    told = ("--run-id", RUN, "--public-key", KEY)
    commands = (
        ("audit", "verify", path, *told),
        ("audit", "inspect", path, *told),
        ("audit", "verify", path, *told, "--format", "text"),
        ("audit", "show", path, "--format", "text"),
    )
    return Kind(path, lambda source: damaged_journal(source.getrandbits(64)), commands)


def _publishing(folder: Path) -> tuple[Invocation, Publication, tuple[str | Path, ...]]:
    invocation = open_invocation(make_project(folder / "p"), admission={"a": [1, 0.5]})
    publication = prepare_publication(invocation, folder / "out", publish=True)
    invocation.write()
    return invocation, publication, ("--project", invocation.project.root, "--scope", invocation.scope)


def _invocation_writes(
    folder: Path, invocation: Invocation, publication: Publication, where: tuple[str | Path, ...]
) -> tuple[tuple[str | Path, ...], ...]:
    other = put(folder / "review.json", compact(review(f"sha256:{'0' * 64}")))
    told = (*where, "--id", invocation.id)
    return (
        ("invocation", "reconcile", *told, "--review", other),
        (
            *("invocation", "file-recover", *told),
            *("--publication", publication.id, "--snapshot-hash", f"sha256:{'0' * 64}"),
        ),
    )


def _claims(folder: Path) -> Kind:
    invocation, publication, where = _publishing(folder)
    honest = [
        json.loads(line) for line in invocation.records(result={"output": [1, 0.5, "done"]}).splitlines()
    ]
    commands = (
        ("invocation", "inspect", *where, "--id", invocation.id),
        ("invocation", "list", "--project", invocation.project.root),
        ("invocation", "inspect", *where, "--id", invocation.id, "--format", "text"),
        ("invocation", "file-inspect", *where, "--id", invocation.id, "--publication", publication.id),
    )
    return Kind(
        invocation.claim_path,
        lambda source: damage.lines(source, honest[: source.randrange(1, 4)]),
        commands,
        _invocation_writes(folder, invocation, publication, where),
    )


def _resolutions(folder: Path) -> Kind:
    invocation, publication, where = _publishing(folder)
    honest = json.loads(invocation.resolve(review(invocation.snapshot_hash())).read_bytes())["payload"]
    commands = (
        ("invocation", "inspect", *where, "--id", invocation.id),
        ("invocation", "list", "--project", invocation.project.root, "--format", "text"),
    )

    def sign(payload: Any) -> bytes:
        return receipt(SEED, RESOLUTION_PREFIX, payload)

    return Kind(
        invocation.receipt_path,
        lambda source: damage.signed(source, honest, sign),
        commands,
        _invocation_writes(folder, invocation, publication, where),
    )


def _publications(folder: Path) -> Kind:
    invocation, publication, where = _publishing(folder)
    honest = json.loads(publication.write_receipt().read_bytes())["payload"]
    told = ("--id", invocation.id, "--publication", publication.id)
    commands = (
        ("invocation", "file-inspect", *where, *told),
        ("invocation", "file-inspect", *where, *told, "--format", "text"),
    )

    def sign(payload: Any) -> bytes:
        return receipt(SEED, RECOVERY_PREFIX, payload)

    return Kind(
        publication.receipt_path,
        lambda source: damage.signed(source, honest, sign),
        commands,
        _invocation_writes(folder, invocation, publication, where),
    )


def _leases(folder: Path) -> Kind:
    honest = [
        lease.record(state=state, origin=lease.origin(), jail=jail)
        for state in lease.states().values()
        for jail in (None, {"uid": 70_000, "cgroup_parent": "symbi.slice"})
    ]
    store = lease.make_state(folder / "s", lease.record(lease.lease_uid(1), lease.created()), lease.record())
    commands = (
        ("lease", "verify", "--state-dir", store, "--format", "json"),
        ("lease", "list", "--state-dir", store, "--format", "text"),
        ("lease", "inspect", lease.LEASE, "--state-dir", store, "--format", "text"),
    )
    return Kind(
        store / f"{lease.LEASE}.json",
        lambda source: damage.document(source, source.choice(honest)),
        commands,
        _lease_writes(store),
    )


def _lease_writes(store: Path) -> tuple[tuple[str | Path, ...], ...]:
    consent = ("--state-dir", store, "--confirm", "0" * 64)
    return (
        ("lease", "reconcile", *consent),
        ("lease", "retire", lease.LEASE, *consent),
        ("lease", "reconcile", lease.LEASE, *consent),
    )


def _limits(folder: Path) -> Kind:
    """The other file of a lease store that the helper parses."""
    store = lease.make_state(folder / "s", lease.record())
    return Kind(
        store / "admission.conf",
        lambda source: damage.document(source, lease.ADMISSION),
        (
            ("lease", "verify", "--state-dir", store, "--format", "json"),
            ("lease", "list", "--state-dir", store, "--format", "text"),
        ),
        _lease_writes(store)[::2],  # a retirement looks at every process first
    )


KINDS: dict[str, tuple[Callable[[Path], Kind], int]] = {
    "journal": (_journals, 500_000),
    "claim": (_claims, 150_000),
    "resolution receipt": (_resolutions, 75_000),
    "publication receipt": (_publications, 75_000),
    "lease record": (_leases, 150_000),
    "lease limits": (_limits, 50_000),
}
"""How each kind is made, and how many of the million are of it."""


class _LateError(BaseException):
    """The program gave no answer in time; no handler of its own takes this for a failure of the system."""


@contextmanager
def _time_limit() -> Iterator[None]:
    def late(*_: object) -> None:
        raise _LateError(f"no answer within {SECONDS} s")

    previous = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def _unsafe(text: str) -> bool:
    return any(character < " " and character != "\n" for character in text)


def _fault(ran: Ran, allowed: tuple[int, ...], *, readable: bool) -> str | None:
    """What is wrong with the way a command ended; None if nothing is."""
    if ran.rc not in allowed:
        return f"exit {ran.rc}"
    if b"Traceback" in ran.out + ran.err:
        return "a traceback"
    if _unsafe(ran.err.decode()) or (readable and _unsafe(ran.text)):
        return "a control character"
    if not readable and ran.out:
        json.loads(ran.out)
    return None


def _each(name: str, folder: Path, seeds: range, *, writes: bool = False) -> tuple[set[int], set[bytes]]:
    """Give the program one damaged file for each seed; all exit codes, and all codes of findings and failures.

    Everything in the folder must be the same before and after (F-139): bytes, names, owners, modes and times.
    """
    kind = KINDS[name][0](folder)
    commands = kind.writes if writes else kind.commands
    allowed = (1, 3, 4, 0) if writes else (0, 1, 2)
    exits, codes = set(), set()
    with kind.path.open("r+b" if kind.path.exists() else "w+b", buffering=0) as file:
        os.fchmod(file.fileno(), 0o600)
        for seed in seeds:
            source = random.Random(seed)  # noqa: S311 -- repeatable, not secret
            data = kind.make(source)
            file.truncate(0)
            os.pwrite(file.fileno(), data, 0)
            command = commands[seed % len(commands)]
            before = fingerprint(folder)
            try:
                with _time_limit():
                    ran = run(*command)
                fault = _fault(ran, allowed, readable="text" in command)
                assert fault is None, f"{fault}: {ran}"
                assert fingerprint(folder) == before, f"something changed: {ran}"
            except BaseException as error:
                error.add_note(f"{name}, seed {seed}, {command}: {data!r}")
                raise
            exits.add(ran.rc)
            codes.update(_CODE.findall(ran.out + ran.err))
    return exits, codes


@pytest.mark.parametrize("name", KINDS)
def test_whatever_is_damaged_the_program_ends_with_a_verdict(name: str, tmp_path: Path) -> None:
    """F-017: a sample, which ends in more than one way, for many reasons."""
    exits, codes = _each(name, tmp_path, range(SAMPLE))
    assert len(exits) > 1
    assert len(codes) > 2, codes


@pytest.mark.parametrize("name", [name for name in KINDS if name != "journal"])
def test_a_write_that_was_not_agreed_to_leaves_damaged_evidence_as_it_is(name: str, tmp_path: Path) -> None:
    """F-139: a sample of the write commands, with consent to something else; the operator has no folder yet."""
    exits, codes = _each(name, tmp_path, range(SAMPLE // 4), writes=True)
    assert exits & {1, 4}
    assert codes


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", KINDS)
def test_a_million_damaged_files_end_the_program_with_a_verdict(name: str, part: int, tmp_path: Path) -> None:
    """F-017."""
    share = KINDS[name][1] // PARTS
    _each(name, tmp_path, range(part * share, (part + 1) * share))
