"""An operator ledger for people: the acts, what is odd, and last what is proven."""

from symbi_recover.core.exits import Exit
from symbi_recover.core.ledger import Act, LedgerReport
from symbi_recover.core.words import counted
from symbi_recover.render.colour import Painter
from symbi_recover.render.findings import findings, next_step, not_checked
from symbi_recover.render.safe import safe

_TEXT = 200
_ENDINGS = {
    "done": ("good", "DONE"),
    "already_done": ("good", "WAS DONE"),
    "refused": ("attention", "REFUSED"),
    "failed": ("bad", "FAILED"),
    None: ("attention", "OPEN"),
}


def head(report: LedgerReport) -> list[str]:
    """Which ledger it is."""
    return [f"Ledger  {safe(report.path)}", ""]


def acts(report: LedgerReport, paint: Painter) -> list[str]:
    """Every act, oldest first."""
    lines: list[str] = []
    for act in report.acts:
        lines += _act(act, paint)
    return lines


def _act(act: Act, paint: Painter) -> list[str]:
    style, word = _ENDINGS[act.outcome]
    lines = [
        f"{paint(style, word)}  {safe(act.command, _TEXT)}  {act.id}",
        f"  intended {safe(act.intended_at)} by user {act.uid} on {safe(act.host, _TEXT)}",
        f"  evidence {safe(act.evidence, _TEXT)}",
        *(f"  {safe(name, 40)}: {safe(text, _TEXT)}" for name, text in sorted(act.subject.items())),
    ]
    if act.finished_at is not None:
        lines.append(f"  ended    {safe(act.finished_at)}")
    if act.message is not None:
        lines.append(f"  message  {safe(act.message, _TEXT)} ({safe(act.code)})")
    lines += [
        f"  receipt  {safe(path, _TEXT)} sha256:{safe(digest, 64)}" for path, digest in act.receipts.items()
    ]
    return [*lines, ""]


def verdict(report: LedgerReport, code: Exit, paint: Painter) -> list[str]:
    """What was found, what was not checked, and the verdict as the last line."""
    lines = findings(report.findings, paint, report.path) + not_checked(report.not_checked, paint)
    lines = lines[1:]  # what comes before ends with an empty line
    key = "no key" if report.key is None else f"key {report.key.public_key} ({report.key.source})"
    last = "" if report.head_hash is None else f", head {report.head_sequence}:{report.head_hash}"
    broken = code is Exit.REFUSED and report.tail_bytes
    records = counted(report.records, "record") + (" before the fault, the rest unread" if broken else "")
    words = {
        Exit.OK: ("good", "AUTHENTIC"),
        Exit.ATTENTION: ("attention", "ATTENTION"),
    }
    style, word = words.get(code, ("bad", "REFUSED"))
    step = next_step(report.findings)
    return [
        *lines,
        *([""] if lines else []),
        f"Verdict: {paint(style, word)}: {records}, {counted(len(report.acts), 'act')}, "
        f"{len(report.open_acts)} open; {key}{last}" + (f". Next: {step}" if step else ""),
    ]
