"""The shipped evidence, cases and vectors are the bytes that were taken over, all of them and nothing else."""

import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from tests.support.audit_cases import audit_cases, raw_cases
from tests.support.evidence import EXPECTED, FIXTURES, TARBALL, checks
from tests.support.vectors import VECTORS

FOLDERS = ("golden", "cases", "vectors")


def recorded() -> dict[str, str]:
    lines = (FIXTURES / "SHA256SUMS").read_text("utf-8").splitlines()
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


def present() -> dict[str, str]:
    files = (path for folder in FOLDERS for path in (FIXTURES / folder).rglob("*") if path.is_file())
    return {str(path.relative_to(FIXTURES)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_every_fixture_has_its_recorded_digest_and_none_is_extra() -> None:
    assert present() == recorded()


@pytest.mark.parametrize("folder", ["wycheproof", "ed25519-speccheck", "cctv-ed25519", "jsontestsuite"])
def test_vectors_carry_their_licence_and_where_they_come_from(folder: str) -> None:
    licence = (VECTORS / folder / "LICENSE").read_text("utf-8")
    assert "Copyright" in licence or "Apache License" in licence
    assert "Commit: " in (VECTORS / folder / "SOURCE.md").read_text("utf-8")


def test_counts_are_those_the_readme_states() -> None:
    readme = (FIXTURES / "README.md").read_text("utf-8")
    counts = {
        "audit": sum(len(members) for members in audit_cases().values()),
        **{name: len(raw_cases(name)) for name in ("invocation", "cron", "leases")},
    }
    assert counts == {"audit": 5764, "invocation": 219, "cron": 28, "leases": 1047}
    for name, count in counts.items():
        assert f"`{name}.jsonl.gz` | {count} |" in readme


def test_the_archive_holds_no_sockets_devices_or_paths_that_leave_it() -> None:
    with tarfile.open(TARBALL) as archive:
        for member in archive:
            assert member.isfile() or member.isdir() or member.issym(), member.name
            assert not Path(member.name).is_absolute(), member.name
            assert ".." not in Path(member.name).parts, member.name


def test_every_answer_is_one_json_line() -> None:
    lines = EXPECTED.read_bytes().splitlines()
    assert len([json.loads(line) for line in lines]) == len(checks())
