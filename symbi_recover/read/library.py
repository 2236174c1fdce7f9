"""What is shipped beside the code and read from there: JSON Schemas and runbooks.

A wheel has them in `symbi_recover/_shipped/`; an editable install uses the folders of the repository, from which the
wheel's are made. Nothing is looked for on the network. A schema is named `NAME.vN`; without version the newest one
is meant.
"""

import os
import re
from typing import Any, Literal

import msgspec

from symbi_recover.core.documents import RunbookEntry, SchemaEntry
from symbi_recover.core.errors import MisuseError, UnexaminedError
from symbi_recover.read.evidence.opener import OpenedFile

Collection = Literal["schemas", "runbooks"]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_FILE = re.compile(r"(?P<name>[a-z0-9-]+)\.v(?P<version>[1-9][0-9]*)\.schema\.json")
_VERSIONED = re.compile(r"(?P<name>[a-z0-9-]+)\.v(?P<version>[1-9][0-9]*)(?:\.schema\.json)?")
_RUNBOOK = re.compile(r"(?P<name>[a-z0-9-]+)\.md")
_FOR_TESTS = re.compile(r"^<!--[^\n]*-->\n{1,2}", re.MULTILINE)
_MOST_BYTES = 1 << 20


def folder(collection: Collection) -> str:
    """Where a collection lies.

    Raises:
        UnexaminedError: `file_missing`, if it was not installed.
    """
    for path in (
        os.path.join(_PACKAGE, "_shipped", collection),
        os.path.join(os.path.dirname(_PACKAGE), collection),
    ):
        if os.path.isdir(path):
            return path
    raise UnexaminedError(
        "file_missing",
        f"the {collection} that belong to this program are not installed",
        path=os.path.join(_PACKAGE, "_shipped", collection),
        hint="Install the program again from its wheel.",
    )


def schemas() -> tuple[SchemaEntry, ...]:
    """Every shipped schema, sorted by kind and name; raises as `folder` does."""
    root = folder("schemas")
    found = []
    for kind in ("evidence", "output"):
        for file in os.listdir(os.path.join(root, kind)):
            match = _FILE.fullmatch(file)
            if match:
                found.append(_entry(root, kind, match))
    return tuple(sorted(found, key=lambda entry: (entry.kind, entry.name, entry.version)))


def schema(name: str) -> SchemaEntry:
    """The schema called `name`, with or without version.

    Raises:
        MisuseError: `unknown_schema`, with the nearest names as next step.
        UnexaminedError: see `folder`.
    """
    match = _VERSIONED.fullmatch(name)
    wanted, version = (match["name"], int(match["version"])) if match else (name, None)
    everything = schemas()
    fitting = [e for e in everything if e.name == wanted and version in (None, e.version)]
    if fitting:
        return max(fitting, key=lambda entry: entry.version)
    raise MisuseError(
        "unknown_schema",
        f"there is no schema {name}",
        hint=nearest(wanted, [entry.name for entry in everything], "symbi-recover schema list"),
    )


def schema_text(entry: SchemaEntry) -> bytes:
    """The file of a schema."""
    with OpenedFile.open(os.path.join(folder("schemas"), entry.file)) as file:
        return file.read(_MOST_BYTES)


def runbooks() -> tuple[RunbookEntry, ...]:
    """Every shipped runbook, sorted by name; raises as `folder` does."""
    matches = (_RUNBOOK.fullmatch(file) for file in os.listdir(folder("runbooks")))
    return tuple(_runbook_entry(name) for name in sorted(match["name"] for match in matches if match))


def runbook_text(name: str) -> str:
    """A runbook as people read it: without the lines that are for its tests alone.

    Raises:
        MisuseError: `unknown_runbook`, with the nearest names as next step.
        UnexaminedError: see `folder`.
    """
    known = [entry.name for entry in runbooks()]
    if name not in known:
        hint = nearest(name, known, "symbi-recover runbook list")
        raise MisuseError("unknown_runbook", f"there is no runbook {name}", hint=hint)
    return _runbook(name)


def nearest(given: str, names: list[str], listing: str) -> str:
    """A next step for an unknown name: those that look like it, and the command that lists all."""
    from difflib import get_close_matches  # noqa: PLC0415 -- late: only after a slip of the pen

    alike = get_close_matches(given[:100], names, n=3, cutoff=0.5)
    meant = f"Did you mean {' or '.join(alike)}? " if alike else ""
    return f"{meant}Run `{listing}` to see all."


def _entry(root: str, kind: str, match: re.Match[str]) -> SchemaEntry:
    path = os.path.join(kind, match.string)
    with OpenedFile.open(os.path.join(root, path)) as file:
        head: dict[str, Any] = msgspec.json.decode(file.read(_MOST_BYTES))
    return SchemaEntry(
        name=match["name"],
        version=int(match["version"]),
        kind=kind,
        description=head.get("description", ""),
        file=path,
        lines=head.get("x-lines", False),
    )


def _runbook(name: str) -> str:
    with OpenedFile.open(os.path.join(folder("runbooks"), f"{name}.md")) as file:
        return _FOR_TESTS.sub("", file.read(_MOST_BYTES).decode())


def _runbook_entry(name: str) -> RunbookEntry:
    title, _, rest = _runbook(name).partition("\n")
    about = " ".join(rest.strip().partition("\n\n")[0].split())
    return RunbookEntry(name=name, title=title.removeprefix("# ").strip(), about=about)
