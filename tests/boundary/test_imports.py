"""The arrows between the rooms hold, for direct and indirect imports, and each contract can fail."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]

PLANTED = {
    "rooms": ("core/planted_rooms.py", "from symbi_recover import read"),
    "render": ("render/planted_render.py", "from symbi_recover import wire"),
    "readers-never-write": ("cli/reading/planted_write.py", "from symbi_recover import write"),
    "readers-see-reports": ("cli/reading/planted_wire.py", "from symbi_recover import wire"),
    "click": ("read/planted_click.py", "import click"),
    "docker": ("read/daemon/planted_docker.py", "def late():\n    import docker.errors"),
    "nacl": ("read/verify/planted_nacl.py", "from nacl.signing import VerifyKey"),
    "cryptography": (
        "wire/planted_cryptography.py",
        "from cryptography.hazmat.primitives import serialization",
    ),
}
"""For each contract a file that breaks it, as (path in the package, text)."""

INDIRECT = {
    "core/planted_hop.py": "from symbi_recover.core import planted_rooms",
    "cli/reading/planted_hop.py": "from symbi_recover.cli import planted_between",
    "cli/planted_between.py": "from symbi_recover import write",
}


def contracts() -> dict[str, str]:
    """Name of each contract by its id."""
    document = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))
    return {entry["id"]: entry["name"] for entry in document["tool"]["importlinter"]["contracts"]}


def lint(root: Path) -> tuple[int, str]:
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [program, "--no-cache", "--no-logo", root / "pyproject.toml"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), "NO_COLOR": "1", "COLUMNS": "200", "TERM": "dumb"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def broken(output: str) -> set[str]:
    """The ids of the contracts that a run calls broken."""
    return {
        key
        for key, name in contracts().items()
        if re.search(rf"^{re.escape(name)} BROKEN", output, re.MULTILINE)
    }


def test_every_import_follows_the_arrows() -> None:
    code, output = lint(PROJECT)
    assert code == 0, output


def test_every_contract_has_a_planted_violation() -> None:
    assert set(PLANTED) == set(contracts())


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the contracts say about a copy of the package with every violation planted."""
    root = tmp_path_factory.mktemp("planted")
    shutil.copy(PROJECT / "pyproject.toml", root)
    shutil.copytree(
        PROJECT / "symbi_recover", root / "symbi_recover", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name, text in [*PLANTED.values(), *INDIRECT.items()]:
        (root / "symbi_recover" / name).write_text(f'"""Planted."""\n\n{text}\n')
    code, output = lint(root)
    assert code == 1, output
    return output


@pytest.mark.parametrize("contract", sorted(PLANTED))
def test_a_planted_violation_breaks_its_contract(contract: str, planted: str) -> None:
    assert contract in broken(planted), planted


def test_a_detour_is_found_as_well(planted: str) -> None:
    assert "planted_between -> symbi_recover.write" in planted
