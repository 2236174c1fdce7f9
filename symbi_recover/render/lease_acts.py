"""The lease commands that act, for people: plan or summary first, then reasons, last the next command to type."""

from symbi_recover.core.exits import Exit
from symbi_recover.core.fences import FenceReport
from symbi_recover.core.reconciliation import ReconcileItem, ReconcileReport
from symbi_recover.core.retirement import RetireReport, Row, Seen, WitnessReport
from symbi_recover.core.witness import Scan
from symbi_recover.core.words import counted
from symbi_recover.render.colour import Painter
from symbi_recover.render.findings import detail, findings, not_checked
from symbi_recover.render.leases import helper
from symbi_recover.render.safe import safe

_ACTS = {
    "remove_container": (
        "would remove container {id}, then the record",
        "removed container {id}, then the record",
    ),
    "retire_record": ("would remove the record", "removed the record"),
}


def reconciliation(
    report: ReconcileReport, verdict: Exit, paint: Painter, next_step: str, ledger: str | None
) -> list[str]:
    """`lease reconcile`."""
    word = "DONE" if report.executed else "PLAN"
    lines = [f"{paint('strong', word)}  {safe(report.state_dir)}", f"  helper: {helper(report.helper)}"]
    lines += [line for item in report.items for line in _item(item, paint)] or ["  no records"]
    lines += findings(report.findings, paint, report.state_dir) + not_checked(report.not_checked, paint)
    lines += _ledger(ledger)
    return [*lines, "", f"Verdict {int(verdict)}. Next: {next_step}"]


def _item(item: ReconcileItem, paint: Painter) -> list[str]:
    shown = _ACTS.get(item.action)
    if shown is None or item.outcome == "left":
        said, style = f"left as it is: {item.code}", "attention"
    elif item.outcome == "failed":
        said, style = "failed; the record is kept", "bad"
    else:
        said, style = shown[item.outcome == "done"].format(id=item.container_id), "good"
    lines = [f"  {item.lease} {item.phase}: {paint(style, safe(said))}"]
    if item.action != "leave" and item.outcome == "planned":
        lines.append(f"      record sha256 {item.record_sha256}")
    if item.endpoint is not None and item.endpoint.address is not None:
        lines.append(f"      daemon {safe(item.endpoint.address)}, from {safe(item.endpoint.source)}")
    return lines + [f"      {found.code}: {detail(found)}" for found in item.findings]


def retirement(
    report: RetireReport, verdict: Exit, paint: Painter, next_step: str, ledger: str | None
) -> list[str]:
    """`lease retire`."""
    styles = {"plan": "strong", "refused": "bad"}
    head = paint(styles.get(report.outcome, "good"), report.outcome.upper().replace("_", " "))
    lines = [f"{head}  {safe(report.state_dir)}/{report.lease}.json", f"  helper: {helper(report.helper)}"]
    if report.record_sha256 is not None:
        lines.append(f"  record sha256 {report.record_sha256}")
    if report.seen is not None:
        lines += _seen(report.seen)
    if report.decision is not None:
        lines += _rows(report.decision.rows, paint)
    decided = () if report.decision is None else report.decision.findings
    lines += findings((*decided, *report.findings), paint, report.state_dir)
    if report.outcome in ("retired", "completed", "already_retired"):
        lines += ["", paint("strong", "Not established")]
        lines += [f"  - {safe(text)}" for text in report.not_established]
    lines += not_checked(report.not_checked, paint)
    if report.receipt is not None:
        lines += ["", f"  receipt {safe(report.receipt)}"]
    lines += _ledger(ledger)
    return [*lines, "", f"Verdict {int(verdict)}. Next: {next_step}"]


def _seen(seen: Seen) -> list[str]:
    endpoint = seen.endpoint
    lines = [
        f"  phase {seen.phase}, endpoint {safe(endpoint.address or 'none')} from {safe(endpoint.source)}",
        f"  client {safe(seen.client.path)}: {seen.client.kind}{_why(seen.client.why)}",
    ]
    if seen.client.sha256 is not None:
        lines.append(f"    sha256 {seen.client.sha256}")
    if seen.engine is not None:
        engine = seen.engine
        lines.append(
            f"  engine {safe(engine.version)}, process {engine.pid}, data root {safe(engine.data_root)}, id {safe(engine.engine_id)}"
        )
    lines += [_scan(scan) for scan in seen.scans]
    for one in seen.witnesses:
        said = "on another boot" if one.rebooted else "another engine since" if one.replaced else "same boot"
        lines.append(f"  witness {safe(one.name)}: {said}{_why(one.why)}")
    if seen.quiescence is not None:
        census = seen.quiescence
        lines.append(
            f"  census: {census.control} with ours, {census.connections} without, {census.waiting} waiting{_why(census.why)}"
        )
    if seen.staging:
        lines.append(f"  snapshots that lose their protection: {', '.join(map(safe, seen.staging))}")
    return lines


def _scan(scan: Scan) -> str:
    said = f"  client scan: {counted(scan.passes, 'pass', 'passes')}, {counted(scan.processes, 'process', 'processes')}"
    hits = [f"process {hit.pid} ({safe(hit.program)}): {safe(hit.why)}" for hit in scan.hits]
    return "; ".join([said, *hits, *map(safe, scan.unreliable)])


def _why(text: str | None) -> str:
    return f" ({safe(text)})" if text else ""


def _rows(rows: tuple[Row, ...], paint: Painter) -> list[str]:
    lines = ["", paint("strong", "Proofs")]
    for row in rows:
        said = paint("good", "holds") if row.holds else f"needs {safe('; '.join(row.missing))}"
        lines.append(f"  {row.row} {row.proof}: {said}")
    return lines


def _ledger(said: str | None) -> list[str]:
    return [] if said is None else ["", f"  {safe(said)}"]


def witnesses(
    report: WitnessReport, verdict: Exit, paint: Painter, next_step: str, ledger: str | None
) -> list[str]:
    """`lease witness`."""
    word = "WITNESSED" if report.witnesses else "NOTHING WITNESSED"
    lines = [
        f"{paint('strong', word)}  {safe(report.state_dir)}",
        f"  helper: {helper(report.helper)}",
    ]
    for path, witness in zip(report.written, report.witnesses, strict=True):
        lines.append(f"  {witness.record.lease}: {safe(path)}")
        if witness.scan is not None:
            lines.append(f"  {_scan(witness.scan)}")
        lines += [f"      {safe(remark)}" for remark in witness.remarks]
    lines += findings(report.findings, paint, report.state_dir)
    lines += _ledger(ledger)
    return [*lines, "", f"Verdict {int(verdict)}. Next: {next_step}"]


def fences(
    report: FenceReport, verdict: Exit, paint: Painter, next_step: str, ledger: str | None
) -> list[str]:
    """`lease fences`."""
    word = "DONE" if report.executed else "PLAN"
    lines = [f"{paint('strong', word)}  {', '.join(map(safe, report.endpoints)) or 'no endpoint'}"]
    for one in report.fences:
        said = {
            "planned": "would be removed",
            "done": "removed",
            "left": f"left: {one.code}",
            "failed": "could not be removed",
        }[one.outcome]
        lines.append(
            f"  {one.kind} {safe(one.id)} {safe(one.name)}, lease {safe(one.lease)}, {safe(one.state)}: {said}"
        )
    if not report.fences:
        lines.append("  no fences" if verdict is Exit.OK else "  no fences were seen")
    lines += findings(report.findings, paint)
    lines += _ledger(ledger)
    return [*lines, "", f"Verdict {int(verdict)}. Next: {next_step}"]
