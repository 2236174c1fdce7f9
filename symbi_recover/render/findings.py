"""Findings for people: one form for every report, and one line for stderr."""

from collections.abc import Iterable

from symbi_recover.core.codes import CODES
from symbi_recover.core.findings import Finding, NotChecked
from symbi_recover.render.colour import STYLES, Painter
from symbi_recover.render.safe import safe

_SHOWN = 30
_MESSAGE, _VALUE = 400, 160
_ORDER = list(STYLES)


def findings(found: Iterable[Finding], paint: Painter, base: str = "") -> list[str]:
    """Findings by code, the gravest first, and what each code means once; empty for none.

    Args:
        found: of one report, in its order.
        paint: for the severities.
        base: the path that the report is about and has already named; paths are shown from there.
    """
    groups: dict[str, list[Finding]] = {}
    for one in sorted(found, key=lambda one: (_rank(one), one.code)):
        groups.setdefault(one.code, []).append(one)
    if not groups:
        return []
    lines = ["", paint("strong", "Found")]
    for code, several in groups.items():
        severity, meaning = several[0].severity, CODES[code].meaning
        count = f" ({len(several):,})" if len(several) > 1 else ""
        lines.append(f"  {paint(STYLES[severity], severity)} {code}{count}: {meaning}")
        for one in several[:_SHOWN]:
            said, differs = detail(one, base), difference(one)
            lines += [f"      {said}"] if said != meaning else []
            lines += [f"      {differs}"] if differs else []
        if len(several) > _SHOWN:
            lines.append(f"      … and {len(several) - _SHOWN:,} more; `--format json` lists all")
    return lines


def remarks(found: Iterable[Finding]) -> list[str]:
    """Findings as single lines for stderr, beside a document that has no place for them."""
    lines = []
    for one in found:
        differs = difference(one)
        lines.append(f"{one.severity} {one.code}: {detail(one)}" + (f"; {differs}" if differs else ""))
    return lines


def detail(finding: Finding, base: str = "") -> str:
    """Where it is, and what is said of it there; `base` as for `findings`."""
    place, message = safe(_below(finding.path or "", base)), safe(finding.message, _MESSAGE)
    if place and place.rpartition("/")[2] != message:
        place = f"{place}: {message}"
    spots = [] if finding.record is None else [f"record {finding.record}"]
    if finding.start is not None:
        start = f"{finding.start:,}"
        spots.append(f"byte {start}" if finding.end is None else f"bytes {start} to {finding.end:,}")
    return (place or message) + (f" [{', '.join(spots)}]" if spots else "")


def _below(path: str, base: str) -> str:
    """A path from `base`, whole where it lies elsewhere, empty where it is that."""
    if path == base:
        return ""
    return path.removeprefix(f"{base}/") if base else path


def difference(finding: Finding) -> str:
    """What should have been and what is; empty where neither is known."""
    values = (("expected", finding.expected), ("found", finding.actual))
    return ", ".join(f"{name} {safe(value, _VALUE)}" for name, value in values if value is not None)


def gravest(found: Iterable[Finding]) -> Finding | None:
    """The gravest, the first of several; None if nothing was found."""
    return min(found, key=_rank, default=None)


def next_step(found: Iterable[Finding]) -> str | None:
    """What to do about the gravest; None if nothing was found."""
    worst = gravest(found)
    return None if worst is None else CODES[worst.code].next


def not_checked(left_out: Iterable[NotChecked], paint: Painter) -> list[str]:
    """What was not checked, and why; empty for nothing."""
    points = [f"  - {safe(one.what)}: {safe(one.why)}" for one in left_out]
    return ["", paint("strong", "Not checked"), *points] if points else []


def _rank(finding: Finding) -> int:
    return _ORDER.index(finding.severity)
