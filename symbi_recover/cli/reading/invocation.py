"""`invocation inspect`, `invocation file-inspect`: the runtime's answers, without a lock and without a trace."""

import click
from msgspec import Struct

from symbi_recover.cli.env import Environment
from symbi_recover.cli.options import (
    RuntimeCommand,
    display_options,
    format_option,
    pass_environment,
    verbose_option,
)
from symbi_recover.cli.reading.trusting import key_words, trusted_keys
from symbi_recover.core.claims import SCHEDULER_SCOPE, Inspection, PublicationState, Status
from symbi_recover.core.codes import as_finding
from symbi_recover.core.errors import RecoverError
from symbi_recover.core.exits import Exit, runtime_exit
from symbi_recover.core.findings import Finding, Severity
from symbi_recover.core.report import JournalReport
from symbi_recover.core.scalars import UUID
from symbi_recover.core.schedules import Schedule
from symbi_recover.read import documents
from symbi_recover.read.evidence.store import InvocationStore, resolve_project
from symbi_recover.read.invocation import Evidence, conclude, examine
from symbi_recover.read.publication import (
    FileInspection,
    inspect_file,
    is_acknowledged,
    is_at_stake,
    read_publication_id,
)
from symbi_recover.read.trust import Trusted
from symbi_recover.read.verify.claim import check_scope, read_id
from symbi_recover.render import failure, text
from symbi_recover.render import invocation as render
from symbi_recover.render import schedule as render_schedule
from symbi_recover.render.colour import Painter
from symbi_recover.render.findings import findings, remarks
from symbi_recover.render.shell import option

PREFIX = "Invocation inspection/reconciliation failed: "


class InvocationCommand(RuntimeCommand):
    """A command of the runtime's `invocation` group."""

    runtime_prefix = PREFIX


class Target(Struct, frozen=True):
    """The invocation that a command is about, and whose keys it was told to trust; the next command is about the same."""

    project: str
    """Real path."""
    scope: str
    """As it was given, not checked."""
    invocation: UUID
    trusted: Trusted | None
    keys: str
    """From `key_words`."""

    @classmethod
    def of(
        cls, project: str, scope: str, invocation: str, public_key: str | None, trust: str | None
    ) -> "Target":
        """What the options of those names say.

        Raises:
            UnexaminedError: `project_missing`.
            RefusedError: `invocation_id_invalid`, or one of `trusted_keys`.
            MisuseError: the trust file cannot be used.
        """
        root = resolve_project(project)
        wanted = read_id(invocation)
        trusted = trusted_keys(public_key, trust, root)
        return cls(root, scope, wanted, trusted, key_words(public_key, trust))

    def command(self, name: str, *more: str) -> str:
        """A command line of the `invocation` group, ready to be typed, and harmless on a screen as it is."""
        where = f"{option('--project', self.project)} {option('--scope', self.scope)}"
        return " ".join([f"symbi-recover invocation {name} {where} --id {self.invocation}{self.keys}", *more])


def project_option(function: click.decorators.FC) -> click.decorators.FC:
    """`--project`, by default the working directory."""
    return click.option(
        "--project", default=".", metavar="DIRECTORY", help="The execution project. [default: .]"
    )(function)


def identity_options(function: click.decorators.FC) -> click.decorators.FC:
    """`--scope` and `--id`."""
    function = click.option("--id", "invocation", required=True, metavar="UUID", help="The invocation id.")(
        function
    )
    return click.option(
        "--scope", required=True, help="The entry point that opened it, such as cli:orga or scheduler:v1."
    )(function)


def trust_options(function: click.decorators.FC) -> click.decorators.FC:
    """`--public-key` and `--trust`."""
    function = click.option(
        "--trust", metavar="FILE", help="Accept only keys pinned in this file, see `trust add`."
    )(function)
    return click.option(
        "--public-key", metavar="KEY", help="Accept only this key: hex, PEM, OpenSSH, or a file with one."
    )(function)


@click.command(
    cls=InvocationCommand,
    help="Say what claim, journal and receipt of one invocation prove; the runtime's own answer.",
    epilog="Exit codes: 0 recorded or reconciled; 2 unresolved (or usage, as in the runtime); 1 refused or failed.",
    examples="symbi-recover invocation inspect --scope cli:orga --id 11111111-2222-4333-8444-555555555555",
)
@project_option
@identity_options
@trust_options
@format_option("text", "json")
@verbose_option("Beside the JSON, tell on stderr also what casts no doubt.")
@display_options
@pass_environment
def inspect_command(
    environment: Environment,
    project: str,
    scope: str,
    invocation: str,
    public_key: str | None,
    trust: str | None,
    chosen_format: str | None,
) -> Exit:
    """Run `invocation inspect`."""
    chosen = environment.format(chosen_format)
    target = Target.of(project, scope, invocation, public_key, trust)
    check_scope(scope)
    with InvocationStore(target.project) as store:
        evidence = examine(store, scope, target.invocation, trusted=target.trusted)
        inspection = conclude(store, evidence)
        waiting = _waiting(store, evidence) if inspection.status is Status.UNRESOLVED else None
    schedule, scheduled = _schedule(target.project, inspection)
    verdict = Exit.ATTENTION if inspection.status is Status.UNRESOLVED else Exit.OK
    if chosen == "json":
        note_remarks(environment, (*inspection.findings, *scheduled))
        return environment.deliver(verdict, documents.inspection_document(inspection))
    lines = render.header(inspection, environment.paint)
    if schedule is not None:
        lines += ["", *render_schedule.occurrence(schedule, inspection.snapshot.id, environment.paint)]
    lines += findings(scheduled, environment.paint)
    if inspection.status is Status.RECONCILED:
        lines += ["", environment.paint("strong", "The journal itself, which no assessment changes")]
    lines += ["", *text.journal(_report(evidence, inspection), _standing(inspection), environment.paint)]
    word = "needs reconciliation" if verdict is Exit.ATTENTION else inspection.status.value
    last = f"Verdict {int(verdict)}, {word}. Next: {_next(target, inspection, waiting)}"
    return environment.deliver(verdict, [*lines, "", last])


def _standing(inspection: Inspection) -> Exit:
    """What the journal says by itself, whatever an operator or a saved result says of the invocation."""
    recovery = inspection.recovery
    return Exit.ATTENTION if recovery is None or recovery.requires_reconciliation else Exit.OK


def _schedule(project: str, inspection: Inspection) -> tuple[Schedule | None, tuple[Finding, ...]]:
    """The schedule that an invocation of the scheduler comes from; whatever is wrong with it is only remarked."""
    if inspection.snapshot.scope != SCHEDULER_SCOPE:
        return None, ()
    # late: only the scheduler's invocations have one
    from symbi_recover.read import cron  # noqa: PLC0415

    try:
        schedule = cron.schedule_of(project)
    except RecoverError as error:
        return None, (as_finding(error),)
    if schedule is None:
        return None, ()
    return schedule, (*schedule.findings, *cron.link(schedule, inspection.snapshot))


def note_remarks(environment: Environment, found: tuple[Finding, ...]) -> None:
    """Say on stderr what the runtime's own document has no place for."""
    shown = [f for f in found if f.severity is not Severity.INFO or environment.verbosity > 0]
    for line in remarks(shown):
        environment.remark(line)


def _report(evidence: Evidence, inspection: Inspection) -> JournalReport:
    return JournalReport(
        journal=evidence.journal_path,
        run_id=evidence.facts.claim.run_id,
        key=evidence.key,
        proven=evidence.proven,
        sha256=inspection.snapshot.journal_sha256,
        recovery=inspection.recovery,
        findings=inspection.findings,
        not_checked=inspection.not_checked,
    )


def _waiting(store: InvocationStore, evidence: Evidence) -> UUID | None:
    """The first publication that neither the run nor a receipt says is settled."""
    for publication in () if evidence.recovery is None else evidence.recovery.publications:
        if not publication.finished and not is_acknowledged(store, evidence, publication.intent):
            return publication.intent.publication_id
    return None


def _next(target: Target, inspection: Inspection, waiting: UUID | None) -> str:
    if inspection.status is not Status.UNRESOLVED:
        return "nothing"
    if waiting is not None:
        return target.command("file-inspect", f"--publication {waiting}")
    return target.command("draft-review", "--outcome OUTCOME")


@click.command(
    cls=InvocationCommand,
    help="Say where one file publication of an invocation stands; the runtime's own answer.",
    epilog="Exit codes: 0 published; 2 any other state (or usage, as in the runtime); 1 refused or failed.",
    examples="symbi-recover invocation file-inspect --scope cli:orga --id UUID --publication UUID",
)
@project_option
@identity_options
@click.option("--publication", required=True, metavar="UUID", help="The publication id of the signed intent.")
@trust_options
@format_option("text", "json")
@verbose_option("Beside the JSON, tell on stderr also what casts no doubt.")
@display_options
@pass_environment
def file_inspect_command(
    environment: Environment,
    project: str,
    scope: str,
    invocation: str,
    publication: str,
    public_key: str | None,
    trust: str | None,
    chosen_format: str | None,
) -> Exit:
    """Run `invocation file-inspect`."""
    chosen = environment.format(chosen_format)
    target = Target.of(project, scope, invocation, public_key, trust)
    wanted_file = read_publication_id(publication)
    check_scope(scope)
    with InvocationStore(target.project) as store:
        inspection = inspect_file(store, scope, target.invocation, wanted_file, trusted=target.trusted)
    if inspection.failure is not None:
        return _failed(environment, inspection, inspection.failure)
    verdict = Exit.OK if inspection.printed_state is PublicationState.PUBLISHED else Exit.ATTENTION
    if chosen == "json":
        note_remarks(environment, (*inspection.evidence.findings, *inspection.findings))
        return environment.deliver(verdict, documents.file_document(inspection))
    lines = render.publication(
        inspection.publication, inspection.receipt, _file_next(target, inspection), environment.paint
    )
    found = (*inspection.evidence.findings, *inspection.findings)
    return environment.deliver(verdict, [*lines[:-2], *findings(found, environment.paint), *lines[-2:]])


def _failed(environment: Environment, inspection: FileInspection, error: RecoverError) -> Exit:
    """The runtime's failure, and behind its sentence what the runtime does not show."""
    lines = failure.lines(error, PREFIX)
    lines += render.names(inspection.publication)
    lines += remarks((*inspection.evidence.findings, *inspection.findings))
    if inspection.receipt is not None:
        lines += render.recovery_receipt(inspection.receipt, Painter(colour=False))
    environment.output.note("\n".join(lines if environment.verbosity >= 0 else lines[:1]))
    return runtime_exit(error.exit)


def _file_next(target: Target, inspection: FileInspection) -> str:
    if inspection.resolved:
        return f"nothing; an operator has resolved the invocation, see `{target.command('inspect')}`"
    if inspection.evidence.status is Status.RECORDED:
        return "nothing; the result of the invocation is recorded"
    state = inspection.publication.state
    settled = inspection.receipt is not None or inspection.finished
    if settled:
        return target.command("inspect")
    publication = f"--publication {inspection.publication.intent.publication_id}"
    if state in (PublicationState.READY, PublicationState.PUBLISHED) or _held(inspection):
        consent = f"--snapshot-hash {inspection.evidence.snapshot_hash}"
        return target.command("file-recover", publication, consent)
    give_up = target.command("draft-review", "--outcome OUTCOME")
    if not is_at_stake(inspection.publication):
        return give_up
    settle = (
        "see whether the file system can be given the numbers that were recorded"
        if state is PublicationState.IDENTITY_UNCONFIRMED
        else "settle what differs above with whoever it belongs to"
    )
    again = target.command("file-inspect", publication)
    return f"{settle}, then `{again}`; if that is impossible, `{give_up}` gives the file up for good"


def _held(inspection: FileInspection) -> bool:
    return any(found.code == "publication_held" for found in inspection.findings)
