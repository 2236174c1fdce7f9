"""What the journal commands share: the next step, the note about `-`, the number of processes."""

import os
from uuid import UUID

from symbi_recover.cli.env import Environment
from symbi_recover.cli.reading.trusting import key_words
from symbi_recover.core.exits import Exit
from symbi_recover.core.words import counted
from symbi_recover.read import inspection
from symbi_recover.read.evidence.locate import GOVERNED, SYMBIONT
from symbi_recover.render import failure
from symbi_recover.render.safe import safe
from symbi_recover.render.shell import option, quoted


def next_step(inspected: inspection.Inspection, key_text: str | None, trust_file: str | None) -> str:
    """The next step, for the last line, safe to print; the keys as they were given."""
    report, keys = inspected.report, key_words(key_text, trust_file)
    if inspected.refusal is not None:
        if (
            inspected.refusal.code == "record_incomplete"
            and report.proven is not None
            and report.key is not None
        ):
            return torn_step(report.journal, report.run_id, key_text or report.key.public_key)
        if inspected.refusal.code in ("record_incomplete", "journal_empty"):
            return empty_step(report.journal, keys)
        return safe(failure.next_step(inspected.refusal))
    if inspected.verdict is Exit.REFUSED:
        return "look at what was found above, and compare with another copy."
    if inspected.verdict is Exit.OK:
        return "nothing has to be decided about this run."
    recovery = report.recovery
    unknown = len(recovery.unknown_effects) if recovery else 0
    if unknown:
        return (
            f"settle the {counted(unknown, 'unknown effect')} above with the systems concerned, "
            f"then `{_inspect(inspected, keys)}`; do not repeat the work."
        )
    return f"find out whether the run is still active; if not, `{_inspect(inspected, keys)}`."


def torn_step(journal: str, run_id: UUID | str | None, key_text: str) -> str:
    """The next step for a journal with complete records and a fragment at its end."""
    if run_id is None:  # version 1, which `audit inspect` does not take
        return f"an interrupted writer leaves exactly such an end; `symbi-recover audit show {_word(journal)} --tail` shows it."
    return (
        f"an interrupted writer leaves exactly such an end; `symbi-recover audit inspect {_word(journal)} --run-id {run_id}"
        f"{key_words(key_text, None)}` says what the records before it prove."
    )


def empty_step(journal: str, keys: str) -> str:
    """The next step for a journal without any complete record."""
    where = option("--project", _project(journal) or "PROJECT")
    return (
        "a writer that was interrupted in its first record leaves exactly such a file, and nothing in it is evidence; "
        f"`symbi-recover invocation list {where}{keys}` shows the claim that names this journal."
    )


def verify_step(journal: str, key_text: str | None) -> str:
    """The next step after single records were shown."""
    keys = key_words(key_text or "KEY", None)
    return f"`symbi-recover audit verify {_word(journal)}{keys}` judges the whole journal."


def _word(journal: str) -> str:
    return quoted(f"./{journal}" if journal.startswith("-") else journal)


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


def warn_of_dash(environment: Environment, journals: tuple[str, ...]) -> None:
    """Say that `-` is no way to give evidence."""
    if "-" in journals:
        environment.remark("note: `-` is taken as a file name; evidence is not read from standard input")


def processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0))
