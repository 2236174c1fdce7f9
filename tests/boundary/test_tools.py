"""Lint, format and types hold, and each of the three tools is seen to complain."""

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
SOURCES = ("symbi_recover", "tests", "benchmarks")


def tool(name: str, *arguments: str | Path, stdin: str = "") -> tuple[int, str]:
    done = subprocess.run(
        [Path(sys.executable).with_name(name), *arguments],
        cwd=PROJECT,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_ruff_finds_nothing() -> None:
    code, output = tool("ruff", "check", "--no-cache", *SOURCES)
    assert code == 0, output


def test_everything_is_formatted() -> None:
    code, output = tool("ruff", "format", "--check", "--no-cache", *SOURCES)
    assert code == 0, output


def test_types_hold_strictly() -> None:
    code, output = tool("mypy", "--strict")
    assert code == 0, output


def test_ruff_would_find_a_fault() -> None:
    faulty = '"""Planted."""\n\nimport os\n'
    code, output = tool(
        "ruff", "check", "--no-cache", "--stdin-filename", "symbi_recover/core/planted.py", "-", stdin=faulty
    )
    assert code == 1
    assert "F401" in output


def test_a_badly_formatted_file_would_be_found() -> None:
    name = "symbi_recover/core/planted.py"
    code, _ = tool(
        "ruff", "format", "--check", "--no-cache", "--stdin-filename", name, "-", stdin="x = [ 1 ]\n"
    )
    assert code == 1


def test_mypy_would_find_a_fault(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text(
        "from symbi_recover.core.exits import Exit\n\nname: str = Exit.OK\n\n\ndef f(x):\n    return x\n"
    )
    code, output = tool("mypy", "--strict", tmp_path / "planted.py")
    assert code == 1
    assert "[assignment]" in output
    assert "[no-untyped-def]" in output
