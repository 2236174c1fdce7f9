"""What README, docs and runbooks name is there: links, files, commands, options, and codes.

A path counts as named when it stands in code between back-quotes and begins with a folder of the repository. A command
counts when it begins with `symbi-recover`, or, between back-quotes, with one of its groups; words in capitals, `…` and
values are not looked at.
"""

import re
import shlex
from functools import cache
from pathlib import Path

import click
import pytest

from symbi_recover.cli.app import COMMANDS, program
from symbi_recover.core.codes import CODES

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "runbooks").glob("*.md")),
]
FOLDERS = sorted(path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith("."))
ROOMS = sorted(path.name for path in (ROOT / "symbi_recover").iterdir() if (path / "__init__.py").exists())
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`\n]+)`")
_NAMED = re.compile(rf"(?:{'|'.join([*FOLDERS, *ROOMS])})/[\w./-]*")
_OWN = re.compile(r"symbi-recover +([a-z][a-z-]*(?: [^`|;&>]*)?)")
_EXPLAIN = re.compile(r"explain ([a-z_]+)\b")


def each(pattern: re.Pattern[str], text: str) -> list[str]:
    return [match[1] if match.re.groups else match[0] for match in pattern.finditer(text)]


def missing_links(page: Path, text: str) -> list[str]:
    links = [link.partition("#")[0] for link in each(_LINK, text) if "://" not in link]
    return [link for link in links if link and not (page.parent / link).exists()]


def missing_files(text: str) -> list[str]:
    named = [path for code in each(_CODE, text) if (path := code.strip()) and _NAMED.fullmatch(path)]
    return [
        path for path in named if not any((root / path).exists() for root in (ROOT, ROOT / "symbi_recover"))
    ]


@cache
def tree() -> click.Group:
    return program()


def wrong_word(line: str) -> str | None:
    """The first word of a command line that the command tree does not have, or None."""
    try:
        words = shlex.split(line.replace("…", " "))
    except ValueError:  # a quote that the sentence around it closes
        words = line.split()
    found: click.Command = tree()
    context = click.Context(found)
    while isinstance(found, click.Group) and words and re.fullmatch(r"[a-z][a-z-]*", words[0]):
        name = words.pop(0)
        inner = found.get_command(context, name)
        if inner is None:
            return name
        found = inner
    known = {option for parameter in found.params for option in parameter.opts} | {"--help", "-h"}
    given = [word.partition("=")[0] for word in words if re.fullmatch(r"--?[a-z][a-z-]*(=.*)?", word)]
    return next((option for option in given if option not in known), None)


def commands(text: str) -> list[str]:
    """Every command line that a page names, without the program's name."""
    joined = re.sub(r"`([^`]*)`", lambda match: f"`{' '.join(match[1].split())}`", prose(text))
    found = each(_OWN, joined) + [
        line
        for block in blocks(text)
        for line in each(re.compile(r"^\$ symbi-recover (.+)$", re.MULTILINE), block)
    ]
    # Words in small letters after the second are a sentence, such as a message that begins with a group's name.
    group = re.compile(rf"^(?:{'|'.join(COMMANDS)}) [a-z-]+(?: [^a-z].*)?$")
    return found + [code for code in each(_CODE, joined) if group.match(code)]


def blocks(text: str) -> list[str]:
    return re.findall(r"^```[a-z]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def prose(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def names(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_what_a_page_names_is_there(page: Path) -> None:
    text = page.read_text()
    assert missing_links(page, text) == [], "links that lead nowhere"
    assert missing_files(text) == [], "files that are not there"
    wrong = {line: word for line in commands(text) if (word := wrong_word(line))}
    assert wrong == {}, "commands or options that are not there"
    assert [code for code in each(_EXPLAIN, text) if code not in CODES] == [], "codes that nobody can explain"


def test_pages_name_commands_links_and_files_at_all() -> None:
    readme = (ROOT / "README.md").read_text()
    assert len(commands(readme)) >= 5
    assert len(each(_LINK, readme)) >= 5
    assert any(
        _NAMED.fullmatch(code) for code in each(_CODE, (ROOT / "docs" / "architecture.md").read_text())
    )


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("`symbi-recover audit inspekt`", "inspekt"),
        ("Type `symbi-recover audit\ninspekt JOURNAL`.", "inspekt"),
        ("`symbi-recover audit verify --expected-head SEQ:HASH`", "--expected-head"),
        ("`audit verify --expected-head SEQ:HASH`", "--expected-head"),
        ("`symbi-recover unlock`", "unlock"),
        ("```console\n$ symbi-recover invocation inspect --force\n```\n", "--force"),
    ],
)
def test_a_command_that_is_not_there_is_noticed(text: str, wrong: str) -> None:
    assert next(wrong_word(line) for line in commands(text)) == wrong


def test_links_and_files_that_are_not_there_are_noticed() -> None:
    page = ROOT / "docs" / "limits.md"
    assert missing_links(page, "[a](nowhere.md) [b](limits.md#x) [c](https://x.example/)") == ["nowhere.md"]
    assert missing_files("`docs/nowhere.md` `docs/limits.md` `wire/journal.py` `a/b`") == ["docs/nowhere.md"]
