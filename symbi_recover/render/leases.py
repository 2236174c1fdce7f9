"""Lease reports for people: the verdict first, then what was found, last what to do next.

Text from records, daemons and the file system is made safe here; nothing else of a report is changed.
"""

from symbi_recover.core.exits import Exit
from symbi_recover.core.findings import Finding
from symbi_recover.core.leases import (
    Capacity,
    CapacityReport,
    CheckReport,
    EntryView,
    Helper,
    LeaseCheck,
    LeaseReport,
    LeaseRow,
    LeaseView,
    StoreReport,
    Verdict,
)
from symbi_recover.core.words import counted, noun_for, span
from symbi_recover.render.colour import Painter
from symbi_recover.render.findings import findings, next_step, not_checked
from symbi_recover.render.safe import safe

_WORDS: dict[Verdict, tuple[str, str]] = {
    "sound": ("good", "SOUND"),
    "attention": ("attention", "NEEDS ATTENTION"),
    "blocked": ("bad", "BLOCKED"),
    "contradicted": ("bad", "CONTRADICTED"),
    "unexamined": ("bad", "NOT EXAMINED"),
}


def store(report: StoreReport, verdict: Exit, paint: Painter) -> list[str]:
    """A judged store."""
    missing = any(found.code == "dir_missing" for found in report.findings)
    start = "there is nothing here; the helper would begin an empty store" if missing else None
    lines = [_head(report.verdict, report.state_dir, paint), f"  {start or _start(report.store_blocked)}"]
    lines += [f"  helper: {helper(report.helper)}", *_numbers(report)]
    lines += table([row(view) for view in report.records], paint)
    lines += findings(report.findings, paint, report.state_dir)
    lines += not_checked(report.not_checked, paint)
    return [*lines, "", _last(verdict, report.verdict, report.findings)]


def listing(rows: list[LeaseRow], report: StoreReport, verdict: Exit, paint: Painter) -> list[str]:
    """`lease list`."""
    lines = [_head(report.verdict, report.state_dir, paint), f"  helper: {helper(report.helper)}"]
    lines += table(rows, paint) or ["", "  no records"]
    return [*lines, "", _last(verdict, report.verdict, report.findings)]


def lease(report: LeaseReport, verdict: Exit, paint: Painter) -> list[str]:
    """`lease inspect`."""
    lines = [_head(report.verdict, f"{report.state_dir}/{report.lease}.json", paint)]
    lines += [f"  {_start(report.store_blocked)}", f"  helper: {helper(report.helper)}"]
    if report.view is not None:
        lines += _record(report.view)
    if report.entry is not None:
        lines.append(f"  bad record: {_entry(report.entry)}")
    lines += findings(report.findings, paint, report.state_dir)
    lines += not_checked(report.not_checked, paint)
    return [*lines, "", _last(verdict, report.verdict, report.findings)]


def check(report: CheckReport, verdict: Exit, paint: Painter) -> list[str]:
    """`lease check`."""
    lines = [_head(report.verdict, report.state_dir, paint), f"  helper: {helper(report.helper)}"]
    for one in report.checks:
        lines += ["", f"  {one.lease}  {one.phase}  {paint('strong', one.verdict)}", *_daemon(one)]
        lines += [
            f"    container {safe(c.id, 80)}  names {safe(', '.join(c.names) or 'none', 200)}  "
            f"label {safe(c.label, 80)}  state {safe(c.state, 40)}  found by {c.found_by}"
            for c in one.containers
        ]
    lines += findings(report.findings, paint, report.state_dir)
    lines += not_checked(report.not_checked, paint)
    return [*lines, "", _last(verdict, report.verdict, report.findings)]


def capacity(report: CapacityReport, verdict: Exit, paint: Painter) -> list[str]:
    """`lease capacity`."""
    lines = [_head(report.verdict, report.state_dir, paint), f"  helper: {helper(report.helper)}"]
    lines += ["", f"  {paint('strong', 'From the files')}", *_amounts(report.computed)]
    if report.answered is not None:
        lines += ["", f"  {paint('strong', 'From the helper')}", *_amounts(report.answered.capacity)]
        agree = {True: "they agree", False: "they differ", None: "not compared"}[report.agree]
        lines.append(f"  {agree}")
    lines += [f"  - {safe(point)}" for point in report.differences]
    lines += findings(report.findings, paint, report.state_dir)
    lines += not_checked(report.not_checked, paint)
    return [*lines, "", _last(verdict, report.verdict, report.findings)]


def row(view: LeaseView) -> LeaseRow:
    """A good record as one line of a list."""
    record, charge = view.record, view.record.resources
    return LeaseRow(
        lease=view.lease,
        phase=view.phase,
        backend=view.backend,
        age_seconds=view.age_seconds,
        tombstone=view.tombstone,
        unsupervised=view.unsupervised,
        memory_bytes=charge.memory_bytes if charge else None,
        cpu_nanos=charge.cpu_nanos if charge else None,
        staging=len(record.staging),
        run_id=record.origin.run_id if record.origin else None,
        tool_name=record.origin.tool_name if record.origin else None,
        codes=tuple(dict.fromkeys(found.code for found in view.findings)),
    )


def rows(report: StoreReport) -> list[LeaseRow]:
    """Every lease of a store, bad records with what is known of them, sorted."""
    bad = [
        LeaseRow(
            lease=entry.lease,
            phase=None,
            backend=None,
            age_seconds=None,
            tombstone=None,
            unsupervised=None,
            memory_bytes=None,
            cpu_nanos=None,
            staging=0,
            run_id=None,
            tool_name=None,
            codes=entry.codes,
        )
        for entry in report.entries
        if entry.lease is not None and entry.name == f"{entry.lease}.json"
    ]
    return sorted([*map(row, report.records), *bad], key=lambda one: one.lease)


def table(listed: list[LeaseRow], paint: Painter) -> list[str]:
    """The leases in columns; empty for none."""
    if not listed:
        return []
    cells = [["LEASE", "PHASE", "AGE", "CHARGE", "STANDING", "RUN", "TOOL"]]
    cells += [_cells(one) for one in listed]
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]) - 1)]
    lines = [
        "  " + "  ".join([cell.ljust(width) for cell, width in zip(line, widths, strict=False)] + [line[-1]])
        for line in cells
    ]
    return ["", paint("strong", lines[0].rstrip()), *(line.rstrip() for line in lines[1:])]


def _cells(one: LeaseRow) -> list[str]:
    charge = "unknown"
    if one.memory_bytes is not None and one.cpu_nanos is not None:
        charge = f"{_bytes(one.memory_bytes)}, {_cpus(one.cpu_nanos)}"
    standing = "bad record" if one.phase is None else ""
    if one.tombstone:
        standing = "tombstone"
    elif one.unsupervised:
        standing = "unsupervised"
    elif one.tombstone is None and one.phase is not None:
        standing = "not known"
    return [
        one.lease,
        one.phase or "-",
        "-" if one.phase is None else _age(one.age_seconds),
        charge,
        standing or "supervised",
        one.run_id[:8] if one.run_id else "-",
        safe(one.tool_name, 40) if one.tool_name else "-",
    ]


def helper(one: Helper) -> str:
    """Whether a helper runs, in words."""
    program = f" ({safe(one.program, 100)})" if one.program else ""
    match one.state:
        case "running":
            return f"running, process {one.pid}{program} holds the lock"
        case "probable":
            return f"probably running, process {one.pid}{program} holds a lock on this inode"
        case "ours":
            return "stopped; this command holds the lock"
        case "absent":
            return f"none runs{f' ({safe(one.why)})' if one.why else ''}"
        case _:
            return f"not known: {safe(one.why)}"


def _entry(entry: EntryView) -> str:
    if entry.links is None or entry.size is None:
        return "it cannot be examined"
    facts = f"{entry.kind} of uid {entry.uid}, mode {entry.mode}, {counted(entry.links, 'link')}"
    return f"{facts}, {counted(entry.size, 'byte')}, sha256 {entry.sha256 or 'not taken'}"


def _record(view: LeaseView) -> list[str]:
    record = view.record
    lines = [
        f"  phase {view.phase}, {view.backend}; last transition {_age(view.age_seconds)} ago",
        f"  tombstone: {_yes(view.tombstone)}; unsupervised: {_yes(view.unsupervised)}",
        f"  charge: {_cells(row(view))[3]}; staging: {', '.join(record.staging) or 'none'}",
        f"  {'client' if view.backend == 'container' else 'program'}: {safe(record.docker_binary, 200)}",
    ]
    lines += [
        f"    {safe(name)}={safe(value, 200)}" for name, value in sorted(record.docker_environment.items())
    ]
    container = getattr(record.state, "container_id", None)
    lines += [f"  container: {container}"] if container else []
    if view.worker is not None:
        lines.append(f"  worker: {view.worker.verdict}, {safe(view.worker.detail, 300)}")
    if record.origin is not None:
        origin = record.origin
        lines.append(
            f"  origin (claimed): run {origin.run_id}, dispatch {origin.dispatch_id}, tool {safe(origin.tool_name)}"
        )
    if view.origin is not None:
        said = view.origin
        lines.append(f"  origin (signed): {said.verdict}, {safe(said.detail, 300)}")
        lines += [f"    journal {safe(said.journal)}"] if said.journal else []
    return [*lines, f"  record sha256 {view.sha256}"]


def _daemon(one: LeaseCheck) -> list[str]:
    if one.endpoint is None:
        return []
    where = safe(one.endpoint.address or one.endpoint.reason, 200)
    lines = [f"    endpoint {where} (from {safe(one.endpoint.source, 80)})"]
    if one.endpoint.address and one.endpoint.reason:
        lines.append(f"      {safe(one.endpoint.reason, 300)}")
    if one.engine is not None:
        engine = one.engine
        listens = (
            f"process {engine.listener_pid} {safe(engine.listener_program, 80)}"
            if engine.listener_pid
            else "unseen"
        )
        lines.append(
            f"    engine {safe(engine.version, 40)}, API {safe(engine.asked_api_version)}, id {safe(engine.engine_id, 80)}, "
            f"data {safe(engine.data_root, 120)}, listener {listens}"
        )
    return lines


def _head(verdict: Verdict, what: str, paint: Painter) -> str:
    style, word = _WORDS[verdict]
    return f"{paint(style, word)}  {safe(what)}"


def _start(blocked: bool | None) -> str:
    return {
        True: "the helper would not start on this directory",
        False: "the helper would start on this directory",
        None: "whether the helper would start is not known",
    }[blocked]


def _numbers(report: StoreReport) -> list[str]:
    lines = [
        f"  records: {len(report.records)} good, {counted(len(report.tombstones), 'tombstone')}, "
        f"{len(report.unsupervised)} unsupervised"
    ]
    return lines + _amounts(report.capacity)


def _amounts(one: Capacity) -> list[str]:
    limits, used = one.limits, one.reserved
    most = limits.max_workers if limits else None
    lines = [
        f"  charged: {_of(used.workers, most, str)} {noun_for(most, 'worker')}, "
        f"{_of(used.memory_bytes, limits and limits.memory_bytes, _bytes)} memory, "
        f"{_of(used.cpu_nanos, limits and limits.cpu_nanos, _cpus)}"
        f"{'; admits nothing new' if one.admission_blocked else ''}"
    ]
    if one.staging is not None and (one.staging.initialized or one.staging.reservations):
        staging = one.staging
        lines.append(
            f"  staging: {staging.reserved.snapshots} of {counted(staging.limits.max_snapshots, 'snapshot')}, "
            f"{_bytes(staging.reserved.reserved_bytes)} of {_bytes(staging.limits.reserved_bytes)}"
        )
    elif one.staging_error is not None:
        lines.append(f"  staging: no totals ({safe(one.staging_error, 200)})")
    return lines


def _of(used: int | None, limit: object, shown: object) -> str:
    words = [("unknown" if value is None else shown(value)) for value in (used, limit)]  # type: ignore[operator]
    return f"{words[0]} of {words[1]}"


def _last(exit_code: Exit, verdict: Verdict, found: tuple[Finding, ...]) -> str:
    step = None if exit_code is Exit.OK else next_step(found)
    return (
        f"Verdict {int(exit_code)}, {_WORDS[verdict][1].lower()}. Next: {step or 'nothing has to be done.'}"
    )


def _yes(value: bool | None) -> str:
    return {True: "yes", False: "no", None: "not known"}[value]


def _age(seconds: int | None) -> str:
    return "in the future" if seconds is None else span(seconds)


def _bytes(count: int) -> str:
    for unit, size in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count} B"


def _cpus(nanos: int) -> str:
    return f"{nanos / 1e9:.4g} CPU"
