"""What the journal commands share: the next step, the number of processes."""

import os

from symbi_recover.core.exits import Exit
from symbi_recover.core.words import counted
from symbi_recover.read import inspection
from symbi_recover.read.evidence.locate import GOVERNED, SYMBIONT
from symbi_recover.render import failure
from symbi_recover.render.safe import safe
from symbi_recover.render.shell import option


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
            f"then `{_inspect(inspected, keys)}`; do not repeat the work."
        )
    return f"find out whether the run is still active; if not, `{_inspect(inspected, keys)}`."


def _inspect(inspected: inspection.Inspection, keys: str) -> str:
    """The command about the run's invocation; what nobody can tell from here is left in capitals."""
    scope, invocation = inspected.invocation or ("SCOPE", "ID")
    project = option("--project", _project(inspected.report.journal) or "PROJECT")
    return f"symbi-recover invocation inspect {project} {option('--scope', scope)} --id {invocation}{keys}"


def _project(journal: str) -> str | None:
    """The project in whose folder of journals a journal lies; None for a copy elsewhere."""
    symbiont, governed = os.path.split(os.path.realpath(os.path.dirname(journal)))
    project, name = os.path.split(symbiont)
    return project if (name, governed) == (SYMBIONT, GOVERNED) else None


def processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0))
