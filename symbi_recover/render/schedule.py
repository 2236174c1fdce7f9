"""Schedules for people: one occurrence, and the jobs of a store."""

from symbi_recover.core.scalars import UUID
from symbi_recover.core.schedules import JobRow, Schedule
from symbi_recover.core.words import counted
from symbi_recover.render.colour import Painter
from symbi_recover.render.safe import safe

_TEXT = 200


def occurrence(schedule: Schedule, invocation_id: UUID, paint: Painter) -> list[str]:
    """The occurrence that an invocation comes from, its history and its job."""
    row = schedule.occurrence(invocation_id)
    if row is None:
        return [f"{paint('strong', 'Schedule')}  {safe(schedule.path)}: no occurrence of this invocation"]
    lines = [
        f"{paint('strong', 'Schedule')}  {safe(schedule.path)}",
        f"  occurrence {safe(row.state, 40)}, made {safe(row.created_at, 40)}, "
        + (f"due {safe(row.scheduled_for, 40)}" if row.scheduled_for is not None else "triggered by hand"),
    ]
    history = schedule.history(invocation_id)
    if history is not None:
        error = "" if history.error is None else f", error: {safe(history.error, _TEXT)}"
        lines.append(f"  history {safe(history.status, 40)}{error}")
    job = schedule.job(row.job_id)
    lines.append("  its job was removed" if job is None else f"  {_job(job)}")
    return lines


def jobs(schedule: Schedule, paint: Painter) -> list[str]:
    """All jobs of a store, one line each."""
    head = f"  {paint('strong', 'schedule')} {safe(schedule.path)}: {counted(len(schedule.jobs), 'job')}"
    return [head, *(f"    {_job(job)}" for job in schedule.jobs)]


def _job(job: JobRow) -> str:
    state = "paused" if job.paused else f"{safe(job.status, 40)}, {'enabled' if job.enabled else 'disabled'}"
    text = f"job {safe(job.name, 80)} ({safe(job.job_id, 40)}): {state}"
    if job.next_run is not None:
        text += f", next run {safe(job.next_run, 40)}"
    if job.blocked_by:
        text += f", blocked by {', '.join(safe(one, 40) for one in job.blocked_by[:3])}"
        text += "" if len(job.blocked_by) <= 3 else f" and {len(job.blocked_by) - 3} more"
    return text
