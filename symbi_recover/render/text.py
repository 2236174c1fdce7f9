"""A journal report for people: the verdict first, then what needs a decision, then the rest, last what to do next."""

from collections import Counter

from symbi_recover.core.exits import Exit
from symbi_recover.core.report import Effect, JournalReport, RecoveryReport
from symbi_recover.core.words import counted
from symbi_recover.render import words
from symbi_recover.render.colour import Painter
from symbi_recover.render.findings import findings, not_checked
from symbi_recover.render.safe import safe

_SHOWN_EFFECTS = 50
_TOLD_ABOVE = frozenset({"run_incomplete", "tail_unauthenticated", "effects_unknown", "approvals_untracked"})
_VERDICTS = {
    Exit.OK: ("good", "COMPLETE"),
    Exit.ATTENTION: ("attention", "NEEDS RECONCILIATION"),
    Exit.REFUSED: ("bad", "REFUSED"),
    Exit.UNEXAMINED: ("bad", "NOT EXAMINED"),
}


def journal(report: JournalReport, verdict: Exit, paint: Painter, next_step: str | None = None) -> list[str]:
    """All lines for one inspected journal, safe to print; without a next step it is one of several."""
    style, word = _VERDICTS[verdict]
    lines = [f"{paint(style, word)}  {safe(report.journal)}"]
    recovery = report.recovery
    if recovery is not None:
        lines += _summary(recovery)
        lines += _decisions(recovery, paint)
        lines += _recorded(recovery, paint)
        lines += _budget(recovery, paint)
    lines += _proof(report, paint)
    told = _TOLD_ABOVE if recovery is not None else frozenset()
    lines += findings((found for found in report.findings if found.code not in told), paint, report.journal)
    lines += not_checked(report.not_checked, paint)
    return [*lines, "", conclusion(verdict, next_step)] if next_step is not None else lines


def conclusion(verdict: Exit, next_step: str, journals: int = 1) -> str:
    """The last line of all: the verdict, which is the exit code, and what to do next."""
    over = f" over {journals:,} journals" if journals > 1 else ""
    return f"Verdict {int(verdict)}{over}, {_VERDICTS[verdict][1].lower()}. Next: {next_step}"


def _summary(recovery: RecoveryReport) -> list[str]:
    tail = recovery.unverified_tail_bytes
    fragment = f", then {counted(tail, 'byte')} of unauthenticated tail" if tail else ""
    return [
        f"  run {recovery.run_id} of agent {recovery.agent_id}",
        f"  {counted(recovery.verified_records, 'record')}, {counted(recovery.verified_bytes, 'byte')} verified{fragment}; "
        f"end: {words.reason(recovery.terminal_reason)}",
    ]


def _decisions(recovery: RecoveryReport, paint: Painter) -> list[str]:
    unknown = recovery.unknown_effects
    lines: list[str] = []
    if not recovery.requires_reconciliation:
        return lines
    lines += ["", paint("attention", "Needs a decision")]
    for number, effect in enumerate(unknown[:_SHOWN_EFFECTS], 1):
        lines.append(f"  {number:>3}. {paint('strong', words.effect_name(effect))}")
        lines.append(f"       {_history(effect)}. {words.unknown_meaning(effect)}")
        lines += [f"       {name}: {value}" for name, value in words.references(effect)]
    if len(unknown) > _SHOWN_EFFECTS:
        lines.append(f"       … and {len(unknown) - _SHOWN_EFFECTS:,} more; `--format json` lists all")
    if recovery.untracked_tool_approvals:
        calls = counted(recovery.untracked_tool_approvals, "approved tool call")
        they = "it was" if recovery.untracked_tool_approvals == 1 else "they were"
        lines.append(f"    - {calls} without a record that {they} started")
    return lines + [f"    - {safe(text)}" for text in recovery.warnings]


def _history(effect: Effect) -> str:
    if effect.finish_sequence is None:
        return f"Started in record {effect.start_sequence}, no signed result"
    return f"Started in record {effect.start_sequence}, came back in record {effect.finish_sequence}"


def _recorded(recovery: RecoveryReport, paint: Painter) -> list[str]:
    counts = Counter(words.kind_name(e) for e in recovery.effects if e.outcome == "result_recorded")
    if not counts:
        return []
    rows = [f"{count:,} x {kind}" for kind, count in counts.most_common()]
    return ["", f"{paint('strong', 'Results recorded')}  {', '.join(rows)}"]


def _budget(recovery: RecoveryReport, paint: Painter) -> list[str]:
    budget = recovery.recovered_budget
    if budget is None:
        return []
    lines = ["", f"{paint('strong', 'Shared budget')}  root {budget.root_id}"]
    return lines + [
        f"  scope {scope.scope}: {scope.available_tokens:,} of {counted(scope.limit, 'token')} left, "
        f"{scope.usage.total_tokens:,} used, {scope.uncertain_tokens:,} uncertain"
        f"{', EXCEEDED' if scope.exceeded else ''}"
        for scope in budget.scopes
    ]


def _proof(report: JournalReport, paint: Painter) -> list[str]:
    title = (
        "Proven" if report.recovery else "Authentic before the fault" if report.proven else "Nothing proven"
    )
    lines = ["", paint("strong", title)]
    if report.proven is not None:
        proven = report.proven
        lines += [
            f"  records {proven.first_sequence} to {proven.last_sequence}, "
            f"dated {safe(proven.first_time)} to {safe(proven.last_time)} by their signer",
            f"  head {proven.last_sequence}:{proven.head_hash}",
        ]
        if proven.depth == "anchored":
            lines.append("  by one signature over the last record and every hash link down to the first")
    if report.key is not None:
        lines.append(f"  key  {report.key.public_key} ({report.key.source})")
    if report.sha256 is not None:
        lines.append(f"  file sha256:{report.sha256}")
    return lines
