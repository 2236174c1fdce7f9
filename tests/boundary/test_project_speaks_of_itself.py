"""No file tells of the machines, addresses or tools it was made with: the project reads the same everywhere.

Only what can never be right in this project is listed. Words with an honest use (a cron job's `session_mode`, an
agent, a test session) are not.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]

# The empty groups keep these patterns from matching themselves.
FORBIDDEN = {
    "a path of one machine": r"(?<![\w.~-])/wo(?:)rk/(?:main|shared|\.library)\b",
    "a folder beside the project": r"\.\./sh(?:)ared",
    "a package registry": r"\b(?:pypi|pythonhosted|crates|debian|golang)\.(?:org|io)\b",
    "how it was made": r"(?i)\b(?:co-auth(?:)ored-by|gener(?:)ated (?:by|with) (?:an? )?(?:ai|llm|claude|gpt)"
    r"|language mo(?:)del session|sandboxed wo(?:)rkplace)\b",
}
GIVEN = ("fixtures/golden/", "fixtures/cases/", "fixtures/vectors/", "LICENSE")
"""Files that were not written here."""


def files() -> list[str]:
    """The project's own text files, as paths in it."""
    git = shutil.which("git")
    if git and (PROJECT / ".git").exists():
        command = [
            git,
            "-c",
            f"safe.directory={PROJECT}",
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]
        listed = subprocess.run(command, cwd=PROJECT, capture_output=True, check=True).stdout.decode()
        names = [name for name in listed.split("\0") if name]
    else:
        hidden = re.compile(r"(?:^|/)(?:\.(?!ci|git)[^/]*|__pycache__)/")
        names = [str(path.relative_to(PROJECT)) for path in PROJECT.rglob("*") if path.is_file()]
        names = [name for name in names if not hidden.search(name)]
    return sorted(name for name in names if not name.startswith(GIVEN))


def mentions(text: str) -> list[str]:
    return [
        f"{kind}: {match.group()!r} in line {text.count(chr(10), 0, match.start()) + 1}"
        for kind, pattern in FORBIDDEN.items()
        for match in re.finditer(pattern, text)
    ]


def test_files_are_found() -> None:
    assert {"pyproject.toml", "fixtures/README.md", "symbi_recover/__init__.py"} <= set(files())


def test_no_file_tells_where_it_was_made() -> None:
    found = []
    for name in files():
        path = PROJECT / name
        if path.is_file() and not path.is_symlink():
            found += [f"{name}: {text}" for text in mentions(path.read_bytes().decode("utf-8", "replace"))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "see {}work/main".format("/"),
        "copied from {}shared/spec".format("../"),
        "https://{}.org/simple".format("pypi"),
        "Co-Authored{}: someone".format("-By"),
    ],
)
def test_a_planted_mention_is_found(text: str) -> None:
    assert mentions(text)


@pytest.mark.parametrize(
    "text",
    [
        "session_mode",
        "the test session",
        "an agent's work/main part",
        "/var/tmp/symbi-evidence",
        "a/root/b",
        "/workshop",
        "/root/.ssh",
        "/home/agent",
    ],
)
def test_honest_words_are_left_alone(text: str) -> None:
    assert mentions(text) == []
