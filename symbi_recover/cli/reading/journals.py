"""What the journal commands share: the next step, the number of processes."""

import os

from symbi_recover.core.exits import Exit
from symbi_recover.core.words import counted
from symbi_recover.read import inspection
from symbi_recover.render import failure
from symbi_recover.render.safe import safe


def next_step(inspected: inspection.Inspection, keys: str) -> str:
    """The next step, for the last line, safe to print; `keys` from `key_words`."""
    if inspected.refusal is not None:
        return safe(failure.next_step(inspected.refusal))
    if inspected.verdict is Exit.REFUSED:
        return "look at what was found above, and compare with another copy."
    if inspected.verdict is Exit.OK:
        return "nothing has to be decided about this run."
    recovery = inspected.report.recovery
    unknown = len(recovery.unknown_effects) if recovery else 0
    if unknown:
        return (
            f"settle the {counted(unknown, 'unknown effect')} above with the systems concerned, "
            f"then `symbi-recover invocation inspect{keys}`; do not repeat the work."
        )
    return (
        "find out whether the run is still active; if not, "
        f"`symbi-recover invocation inspect{keys}` its invocation."
    )


def processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0))
