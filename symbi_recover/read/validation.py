"""Checks the form of a file against a shipped schema, and says every place that differs.

1. open the file as evidence is opened, bounded, and see that it stays as it is;
2. cut it into documents: the whole file, or its complete lines if the schema says so (`x-lines`);
3. read each as strict JSON, as the runtime does free JSON (journal.md section 5);
4. validate, and name each difference by line, JSON pointer and rule.

Form is all: no signature, hash, order or clock is looked at.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from symbi_recover.core.documents import SchemaEntry, SchemaError, SchemaValidation
from symbi_recover.core.errors import UnexaminedError
from symbi_recover.core.exits import Exit
from symbi_recover.core.findings import NotChecked
from symbi_recover.core.ledger import TORN_MARK
from symbi_recover.core.words import counted
from symbi_recover.read import library
from symbi_recover.read.evidence.opener import OpenedFile
from symbi_recover.wire.journal import MAX_JOURNAL
from symbi_recover.wire.strictjson import JsonError, read_free

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError

MOST_ERRORS = 1000
"""Errors that are listed; the rest are counted."""
_MESSAGE = 400


def validate(entry: SchemaEntry, path: str) -> SchemaValidation:
    """Check the file at `path`.

    Raises:
        UnexaminedError: the file is missing, unreadable, no regular file, too large, or changed meanwhile.
    """
    checker = validator(entry)
    data = _content(path)
    documents, left_out = _documents(data, entry)
    errors: list[SchemaError] = []
    more = 0
    for record, text in documents:
        for error in _errors(checker, record if entry.lines else None, text):
            if len(errors) < MOST_ERRORS:
                errors.append(error)
            else:
                more += 1
    if not documents:
        errors.append(SchemaError(record=None, pointer="", message="there is no complete line", rule=""))
    return SchemaValidation(
        ok=not errors,
        exit=int(Exit.REFUSED if errors else Exit.OK),
        name=f"{entry.name}.v{entry.version}",
        path=path,
        documents=len(documents),
        errors=tuple(errors),
        more_errors=more,
        not_checked=(
            NotChecked("signatures, hashes, order and times", "a schema describes form alone"),
            *left_out,
        ),
    )


def validator(entry: SchemaEntry) -> "Draft202012Validator":
    """A compiled schema."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415 -- late: heavy, and only used here

    return Draft202012Validator(msgspec.json.decode(library.schema_text(entry)))


def _content(path: str) -> bytes:
    with OpenedFile.open(path) as file:
        if file.facts.kind != "file" or file.facts.size > MAX_JOURNAL:
            raise UnexaminedError(
                "file_kind", "not a regular file of at most 64 MiB", path=path, detail=f"a {file.facts.kind}"
            )
        data = file.read(MAX_JOURNAL)
        if not file.unchanged() or len(data) != file.facts.size:
            raise UnexaminedError("file_changed", "the file changed while it was read", path=path)
    return data


def _documents(data: bytes, entry: SchemaEntry) -> tuple[list[tuple[int, bytes]], list[NotChecked]]:
    """Numbered documents, and what belongs to none."""
    if not entry.lines:
        return [(0, data)], []
    *complete, tail = data.split(b"\n")
    documents, left_out = list(enumerate(complete)), []
    if entry.name == "ledger-record":
        documents = [(number, line) for number, line in documents if not line.endswith(TORN_MARK[:-1])]
        if len(documents) < len(complete):
            torn = counted(len(complete) - len(documents), "line")
            left_out.append(NotChecked(f"{torn} marked as torn", "a later record accounts for them"))
    if tail:
        what = f"{counted(len(tail), 'byte')} after the last line feed"
        left_out.append(NotChecked(what, "no complete line, so no document"))
    return documents, left_out


def _errors(checker: "Draft202012Validator", record: int | None, text: bytes) -> Iterator[SchemaError]:
    try:
        value = read_free(text)
    except JsonError as error:
        message = f"not JSON as the runtime reads it: {error.message} at byte {error.offset}"
        yield SchemaError(record=record, pointer="", message=_cut(message), rule="")
        return
    for found in checker.iter_errors(value):
        inner = _innermost(found)
        yield SchemaError(
            record=record,
            pointer=pointer(inner.absolute_path),
            message=_cut(inner.message),
            rule=pointer(inner.absolute_schema_path),
        )


def _innermost(error: "ValidationError") -> "ValidationError":
    """Of alternatives that all failed, the one that came furthest: it was most likely meant."""
    while error.context:
        error = max(error.context, key=lambda e: (len(e.absolute_path), e.validator != "type"))
    return error


def _cut(message: str) -> str:
    return message if len(message) <= _MESSAGE else f"{message[:_MESSAGE]}…"


def pointer(path: Any) -> str:
    """A JSON pointer (RFC 6901)."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)
