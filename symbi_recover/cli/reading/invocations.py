"""`invocation list`: every claim of a project, or of all projects below a folder, and what is odd in their stores."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from msgspec.structs import replace

from symbi_recover.cli.env import Environment
from symbi_recover.cli.options import (
    StrictCommand,
    display_options,
    format_option,
    pass_environment,
    verbose_option,
)
from symbi_recover.cli.reading.invocation import project_option, trust_options
from symbi_recover.cli.reading.trusting import key_words, trusted_keys
from symbi_recover.core.claims import (
    ClaimState,
    InvocationList,
    ListedInvocation,
    ListedProject,
)
from symbi_recover.core.codes import as_finding
from symbi_recover.core.errors import RecoverError, UnexaminedError
from symbi_recover.core.exits import Exit, worst
from symbi_recover.core.findings import Finding, NotChecked, Severity
from symbi_recover.core.schedules import Schedule
from symbi_recover.core.words import counted
from symbi_recover.read import documents
from symbi_recover.read.cron import schedule_of
from symbi_recover.read.evidence.locate import find_projects, readable
from symbi_recover.read.evidence.opener import system_text
from symbi_recover.read.evidence.store import InvocationStore, resolve_project
from symbi_recover.read.listing import StoreListing
from symbi_recover.render import failure
from symbi_recover.render import invocations as render
from symbi_recover.render import schedule as render_schedule
from symbi_recover.render.colour import Painter
from symbi_recover.render.findings import findings, gravest, next_step, not_checked
from symbi_recover.render.output import is_terminal
from symbi_recover.render.safe import safe
from symbi_recover.render.shell import option

_BATCH = 256
_MOST_UNREAD = 1000
"""Folders that are named when they cannot be looked into."""
_MOST_TOLD = 5
"""Of them, in one failure."""
_EXIT_OF_STATE = {
    ClaimState.UNRESOLVED: Exit.ATTENTION,
    ClaimState.REFUSED: Exit.REFUSED,
    ClaimState.UNREADABLE: Exit.REFUSED,
}
_EXIT_OF_SEVERITY = {Severity.ATTENTION: Exit.ATTENTION, Severity.REFUSED: Exit.REFUSED}


@click.command(
    cls=StrictCommand,
    help="List every claim of a project with its state, also torn, foreign and unreadable ones; and what no claim "
    "accounts for: journals, receipts, left-over files. Nothing is locked or changed.",
    epilog="Exit codes: 0 nothing to do, also where runs are under way; 2 a claim or a finding needs a decision; 1 a claim cannot be accepted; "
    "3 a store could not be examined, or with --recursive no folder.",
    examples="""
    symbi-recover invocation list --project /srv/project
    symbi-recover invocation list --project /srv --recursive --format jsonl
    """,
)
@project_option
@click.option("--recursive", is_flag=True, help="Find all projects at and below the folder.")
@trust_options
@format_option("text", "json", "jsonl", "csv")
@verbose_option("Tell also what casts no doubt.")
@display_options
@pass_environment
def list_command(
    environment: Environment,
    project: str,
    recursive: bool,
    public_key: str | None,
    trust: str | None,
    chosen_format: str | None,
) -> Exit:
    """Run `invocation list`."""
    chosen = environment.format(chosen_format)
    root = resolve_project(project)
    where = option("--project", "PROJECT" if recursive else root)
    which = f"{where} --scope SCOPE --id ID{key_words(public_key, trust)}"
    writer = _WRITERS[chosen](environment, root, which)
    lister = _Lister(environment, root, writer)
    for found in find_projects(root, lister.pass_over) if recursive else (root,):
        lister.list_project(found, recursive=recursive, public_key=public_key, trust=trust)
    return lister.conclude()


class _Lister:
    """Goes through projects, and hands each row on as soon as it is known."""

    def __init__(self, environment: Environment, root: str, writer: "_Writer") -> None:
        self.environment = environment
        self.root = root
        self.writer = writer
        self.exits: list[Exit] = []
        self.unread: list[NotChecked] = []
        self.unread_count = 0

    def pass_over(self, folder: str, error: OSError) -> None:
        """Take note of a folder that could not be looked into."""
        self.unread_count += 1
        if self.unread_count <= _MOST_UNREAD:
            self.unread.append(NotChecked(f"the projects in {readable(folder)}", system_text(error)))

    def list_project(
        self, project: str, *, recursive: bool, public_key: str | None, trust: str | None
    ) -> None:
        try:
            trusted = trusted_keys(public_key, trust, project)
            with InvocationStore(project) as store:
                listing = StoreListing(store, now_ns=self.environment.clock(), trusted=trusted)
                with _progress(self.environment, project, len(listing.entries.claims)) as advance:
                    for row in listing.rows(advance):
                        self.exits.append(_exit_of(row.findings, _EXIT_OF_STATE.get(row.state, Exit.OK)))
                        self.writer.row(row)
                summary = listing.summary()
                self.exits = [worst([*self.exits, _exit_of(summary.findings, Exit.OK)])]
                schedule, found = _schedule(project)
                self.exits.append(_exit_of(found, Exit.OK))
                self.writer.project(ListedProject(store=summary, schedule=schedule, findings=found))
        except RecoverError as error:
            if not recursive:
                raise _unexamined(error) from error
            self.exits.append(_unexamined(error).exit)
            self.environment.output.note("\n".join(failure.lines(error, f"{safe(project)}: ")))
            self.writer.project(ListedProject(store=None, findings=(as_finding(error),)))

    def conclude(self) -> Exit:
        if self.unread_count > _MOST_UNREAD:
            more = self.unread_count - _MOST_UNREAD
            self.unread.append(NotChecked(f"the projects in {counted(more, 'more folder')}", "as above"))
        if not self.exits and not self.writer.projects:
            raise self._none_found()
        verdict = worst(self.exits)
        self.environment.verdict = verdict
        self.writer.end(verdict, self.unread)
        return verdict

    def _none_found(self) -> UnexaminedError:
        if not self.unread:
            return UnexaminedError(
                "store_missing", "no project with an invocation store was found", path=self.root
            )
        return UnexaminedError(
            "projects_unread",
            f"no project with an invocation store was found; {counted(self.unread_count, 'folder')} "
            "could not be looked into",
            path=self.root,
            detail="; ".join(f"{one.what}: {one.why}" for one in self.unread[:_MOST_TOLD]),
        )


def _schedule(project: str) -> tuple[Schedule | None, tuple[Finding, ...]]:
    """The schedule of a project, if it has one; what is wrong with it never hides the claims."""
    try:
        schedule = schedule_of(project)
    except RecoverError as error:
        return None, (as_finding(error),)
    return schedule, () if schedule is None else schedule.findings


def _exit_of(found: tuple[Finding, ...], least: Exit) -> Exit:
    return worst([least, *(_EXIT_OF_SEVERITY.get(finding.severity, Exit.OK) for finding in found)])


def _unexamined(error: RecoverError) -> RecoverError:
    """A store that is missing was not examined; one that is unsafe was refused."""
    if error.code != "store_missing":
        return error
    return UnexaminedError(error.code, error.message, path=error.path)


@contextmanager
def _progress(environment: Environment, project: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on stderr, if that is a terminal and somebody wants to see it."""
    if environment.verbosity < 0 or not is_terminal(sys.stderr):
        yield lambda _: None
        return
    with click.progressbar(length=total, label=safe(project, 40), file=sys.stderr) as bar:
        yield bar.update


class _Writer:
    """Collects the rows of a project until they can be written."""

    def __init__(self, environment: Environment, root: str, which: str) -> None:
        self.environment = environment
        self.root = root
        self.which = which
        """What the command about one of the invocations is given; what differs among them in capitals."""
        self.projects = 0
        self.rows: list[ListedInvocation] = []
        self.worst: Finding | None = None
        """The gravest finding of all projects."""
        self.unresolved = False

    def row(self, row: ListedInvocation) -> None:
        self.rows.append(row)
        self.unresolved |= row.state is ClaimState.UNRESOLVED
        self._weigh(row.findings)

    def _weigh(self, found: tuple[Finding, ...]) -> None:
        known = found if self.worst is None else (self.worst, *found)
        self.worst = gravest(known)

    def project(self, listed: ListedProject) -> None:
        """Take what is to be said of a project after its rows."""
        self.projects += 1
        self._weigh(listed.found)
        self.write(listed)
        self.rows = []

    def write(self, listed: ListedProject) -> None:
        """Write the rows that are left, and what is to be said of the project."""
        raise NotImplementedError

    def end(self, verdict: Exit, unread: list[NotChecked]) -> None:
        """Write what comes after all projects."""
        raise NotImplementedError


class _JsonWriter(_Writer):
    def __init__(self, environment: Environment, root: str, which: str) -> None:
        super().__init__(environment, root, which)
        self.listed: list[ListedProject] = []

    def write(self, listed: ListedProject) -> None:
        self.listed.append(replace(listed, invocations=tuple(self.rows)))

    def end(self, verdict: Exit, unread: list[NotChecked]) -> None:
        listed = InvocationList(
            root=self.root, verdict=int(verdict), projects=tuple(self.listed), not_checked=tuple(unread)
        )
        self.environment.put_json(documents.list_document(listed))


class _StreamWriter(_Writer):
    """Writes in batches, so that memory stays flat."""

    def row(self, row: ListedInvocation) -> None:
        super().row(row)
        if len(self.rows) >= _BATCH:
            self.batch()
            self.rows = []

    def batch(self) -> None:
        """Write the collected rows."""
        raise NotImplementedError

    def write(self, listed: ListedProject) -> None:  # noqa: ARG002 -- as the base has it
        self.batch()


class _JsonLinesWriter(_StreamWriter):
    def batch(self) -> None:
        self.environment.put_json(
            b"".join(documents.list_line({"kind": "invocation", "invocation": row}) for row in self.rows)
        )

    def write(self, listed: ListedProject) -> None:
        super().write(listed)
        self.environment.put_json(documents.list_line({"kind": "project", "project": listed}))

    def end(self, verdict: Exit, unread: list[NotChecked]) -> None:
        for one in unread:
            self.environment.put_json(documents.list_line({"kind": "not_checked", "not_checked": one}))
        self.environment.put_json(documents.list_line({"kind": "end", "verdict": int(verdict)}))


class _CsvWriter(_StreamWriter):
    def __init__(self, environment: Environment, root: str, which: str) -> None:
        super().__init__(environment, root, which)
        self.header = True

    def batch(self) -> None:
        self.environment.output.document(render.csv_rows(self.rows, header=self.header))
        self.header = False

    def write(self, listed: ListedProject) -> None:
        super().write(listed)
        for line in findings(listed.found, Painter(colour=False)):
            self.environment.output.note(line)

    def end(self, verdict: Exit, unread: list[NotChecked]) -> None:  # noqa: ARG002 -- a spreadsheet has no last line
        for line in not_checked(unread, Painter(colour=False)):
            self.environment.output.note(line)


class _TableWriter(_Writer):
    def write(self, listed: ListedProject) -> None:
        paint = self.environment.paint
        lines = render.table(self.rows, paint) if self.rows else []
        lines += [] if listed.store is None else [render.summary(listed.store, paint)]
        lines += [] if listed.schedule is None else render_schedule.jobs(listed.schedule, paint)
        told = [found for row in self.rows for found in row.findings if self._is_told(found)]
        lines += findings((*told, *listed.found), paint)
        self.environment.output.text([*lines, ""])

    def _is_told(self, found: Finding) -> bool:
        return found.severity is not Severity.INFO or self.environment.verbosity > 0

    def end(self, verdict: Exit, unread: list[NotChecked]) -> None:
        left_out = not_checked(unread, self.environment.paint)
        self.environment.output.text([*left_out, *([""] if left_out else [])])
        each = f"look at each with `symbi-recover invocation inspect {self.which}`"
        step = next_step(() if self.worst is None else (self.worst,))
        words = {
            Exit.OK: "nothing to do in what could be read" if unread else "nothing to do",
            Exit.ATTENTION: f"someone must act; {each}" if self.unresolved else "someone must act",
            Exit.REFUSED: "a claim or store cannot be accepted; its findings say why",
        }
        said = words.get(verdict, "a store could not be examined")
        told = verdict is Exit.OK or step is None or (verdict is Exit.ATTENTION and self.unresolved)
        self.environment.output.text(
            [f"Verdict {int(verdict)}, {said}." + ("" if told else f" Next: {step}")]
        )


_WRITERS: dict[str, type[_Writer]] = {
    "text": _TableWriter,
    "json": _JsonWriter,
    "jsonl": _JsonLinesWriter,
    "csv": _CsvWriter,
}
