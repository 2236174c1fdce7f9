"""Records of a journal for people."""

from typing import Any
from uuid import UUID

import msgspec
from msgspec import UNSET, Struct

from symbi_recover.core.events import Record
from symbi_recover.core.shapes import Variant
from symbi_recover.core.shown import ShownRecord
from symbi_recover.render.colour import Painter
from symbi_recover.render.safe import safe

_VALUE = 160
_DEPTH = 12


def lines(shown: ShownRecord, paint: Painter, *, whole: bool) -> list[str]:
    """One record as lines of safe text; `whole` shows values uncut."""
    where = f"bytes {shown.start:,} to {shown.end:,}"
    if shown.record is None:
        head = f"{paint('bad', f'#{shown.line}')}  {safe(shown.problem)}  [{where}]"
        return [head, f"    {safe(_text(shown.payload), None if whole else 400)}"]
    record = shown.record
    title = paint("strong", f"#{shown.line}  {type(record.event).__name__}")
    if record.sequence != shown.line:
        title += paint("bad", f"  says sequence {record.sequence}")
    checks = _checks(shown, record, paint)
    head = f"{title}  {safe(record.timestamp)}  iteration {record.iteration}  [{where}]  {checks}"
    limit = None if whole else _VALUE
    return [head, *(f"    {name}: {safe(value, limit)}" for name, value in _flat(record.event, "", _DEPTH))]


def _checks(shown: ShownRecord, record: Record, paint: Painter) -> str:
    signature = {None: "not checked", True: "signed", False: paint("bad", "SIGNATURE DOES NOT HOLD")}
    link = {None: "", True: "linked", False: paint("bad", "NOT LINKED")}
    parts = [signature[shown.signature_holds], link[shown.linked]]
    if not record.canonical:
        parts.append("not the writer's spelling")
    return ", ".join(part for part in parts if part)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _flat(value: Any, name: str, depth: int) -> list[tuple[str, str]]:
    """Nested values as (dotted name, text) rows, no deeper than `depth`; all but texts as JSON spells them."""
    if isinstance(value, Variant):
        return _flat(value.value, f"{name}.{value.tag}" if name else value.tag, depth)
    if isinstance(value, Struct):
        members = [(f, getattr(value, f)) for f in value.__struct_fields__]
    elif isinstance(value, dict):
        members = list(value.items())
    elif isinstance(value, list | tuple):
        members = [(str(index), item) for index, item in enumerate(value)]
    else:
        return [(safe(name), _spelled(value))]
    if depth == 0 or (name and not members):
        return [(safe(name), _json(value))]
    rows: list[tuple[str, str]] = []
    for key, item in members:
        if item is not UNSET:
            rows += _flat(item, f"{name}.{key}" if name else key, depth - 1)
    return rows


def _spelled(value: object) -> str:
    return str(value) if isinstance(value, str | int | UUID) and not isinstance(value, bool) else _json(value)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode("utf-8", "surrogateescape")
