"""The list of invocations: as a table for people, as CSV for spreadsheets."""

import csv
import io
from collections import Counter

from symbi_recover.core.claims import ClaimState, ListedInvocation, StoreSummary
from symbi_recover.core.findings import Finding
from symbi_recover.core.words import counted, span
from symbi_recover.render.colour import Painter
from symbi_recover.render.safe import safe

CSV_COLUMNS = (
    "project",
    "state",
    "scope",
    "id",
    "agent_id",
    "run_id",
    "unknown_effects",
    "publications",
    "receipts",
    "age_seconds",
    "file",
    "findings",
)
_STYLE = {
    ClaimState.RECORDED: "good",
    ClaimState.RECONCILED: "good",
    ClaimState.UNRESOLVED: "attention",
    ClaimState.LIVE: "strong",
    ClaimState.REFUSED: "bad",
    ClaimState.UNREADABLE: "bad",
}
_COLUMNS = ("STATE", "SCOPE", "ID", "AGE", "UNKNOWN", "PUBLICATIONS", "RECEIPTS", "FINDINGS")
_FORMULA = ("=", "+", "-", "@")


def csv_rows(rows: list[ListedInvocation], *, header: bool) -> bytes:
    """Rows as CSV (RFC 4180, but LF), text made safe; a cell that a spreadsheet would run begins with `'`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if header:
        writer.writerow(CSV_COLUMNS)
    for row in rows:
        cells = (
            row.project,
            row.state,
            row.scope,
            row.id,
            row.agent_id,
            row.run_id,
            row.unknown_effects,
            _publications(row),
            " ".join(row.receipts),
            row.age_seconds,
            row.file,
            " ".join(_codes(row.findings)),
        )
        writer.writerow(["" if cell is None else _cell(cell) for cell in cells])
    return text.getvalue().encode("utf-8", "backslashreplace")


def _cell(value: object) -> str:
    text = safe(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def table(rows: list[ListedInvocation], paint: Painter) -> list[str]:
    """Rows as an aligned table, safe to print."""
    cells = [_COLUMNS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_COLUMNS))]
    lines = []
    for number, line in enumerate(cells):
        padded = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        style = "faint" if number == 0 else _STYLE[rows[number - 1].state]
        lines.append("  ".join([paint(style, padded[0]), *padded[1:]]).rstrip())
    return lines


def _cells(row: ListedInvocation) -> tuple[str, ...]:
    return (
        row.state.value,
        safe(row.scope if row.scope is not None else "?", 40),
        str(row.id) if row.id is not None else f"file {row.file[:16]}…",
        "" if row.age_seconds is None else span(row.age_seconds),
        "" if row.unknown_effects is None else str(row.unknown_effects),
        _publications(row),
        " ".join(row.receipts),
        " ".join(_codes(row.findings)),
    )


def _publications(row: ListedInvocation) -> str:
    states = Counter(
        "refused" if publication.state is None else publication.state.value
        for publication in row.publications
    )
    return " ".join(f"{count}x{state}" if count > 1 else state for state, count in sorted(states.items()))


def _codes(findings: tuple[Finding, ...]) -> list[str]:
    return sorted({finding.code for finding in findings})


def summary(store: StoreSummary, paint: Painter) -> str:
    """The numbers of a whole store."""
    counts = ", ".join(f"{count:,} {state}" for state, count in store.counts.items() if count) or "no claims"
    size = f"{counted(store.entries, 'entry', 'entries')}, {counted(store.bytes, 'byte')}"
    return f"{paint('strong', safe(store.project))}: {counts}; {size}"
