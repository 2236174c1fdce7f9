"""Records of a journal for people and for programs."""

from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct

from symbi_recover.core.documents import ShownLine
from symbi_recover.core.shapes import Variant
from symbi_recover.render.colour import Painter
from symbi_recover.render.safe import safe

_VALUE = 160
_DEPTH = 12


def lines(shown: Any, paint: Painter, *, whole: bool) -> list[str]:
    """One record as lines of safe text; `whole` shows values uncut."""
    where = f"bytes {shown.start:,} to {shown.end:,}"
    if shown.record is None:
        head = f"{paint('bad', f'#{shown.line}')}  {safe(shown.problem)}  [{where}]"
        return [head, f"    {safe(_text(shown.payload), None if whole else 400)}"]
    record = shown.record
    title = paint("strong", f"#{shown.line}  {type(record.event).__name__}")
    if record.sequence != shown.line:
        title += paint("bad", f"  says sequence {record.sequence}")
    checks = _checks(shown, paint)
    head = f"{title}  {safe(record.timestamp)}  iteration {record.iteration}  [{where}]  {checks}"
    limit = None if whole else _VALUE
    return [head, *(f"    {name}: {safe(value, limit)}" for name, value in _flat(record.event, "", _DEPTH))]


def _checks(shown: Any, paint: Painter) -> str:
    signature = {None: "not checked", True: "signed", False: paint("bad", "SIGNATURE DOES NOT HOLD")}
    link = {None: "", True: "linked", False: paint("bad", "NOT LINKED")}
    parts = [signature[shown.signature_holds], link[shown.linked]]
    if not shown.record.canonical:
        parts.append("not the writer's spelling")
    return ", ".join(part for part in parts if part)


def document(shown: Any) -> ShownLine:
    """One record as data."""
    readable = shown.record is not None
    return ShownLine(
        line=shown.line,
        start=shown.start,
        end=shown.end,
        sha256=shown.sha256,
        complete=shown.complete,
        problem=shown.problem,
        signature_holds=shown.signature_holds,
        linked=shown.linked,
        event=type(shown.event).__name__ if readable else None,
        payload=Raw(shown.payload) if readable else None,
        text=None if readable else _text(shown.payload),
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _flat(value: Any, name: str, depth: int) -> list[tuple[str, Any]]:
    """Nested values as (dotted name, value) rows, no deeper than `depth`."""
    if isinstance(value, Variant):
        return _flat(value.value, f"{name}.{value.tag}" if name else value.tag, depth)
    if isinstance(value, Struct):
        members = [(f, getattr(value, f)) for f in value.__struct_fields__]
    elif isinstance(value, dict):
        members = list(value.items())
    elif isinstance(value, list | tuple):
        members = [(str(index), item) for index, item in enumerate(value)]
    else:
        return [(safe(name), value)]
    if depth == 0:
        return [(safe(name), msgspec.json.encode(value).decode())]
    rows = []
    for key, item in members:
        if item is not UNSET:
            rows += _flat(item, f"{name}.{key}" if name else key, depth - 1)
    return rows
