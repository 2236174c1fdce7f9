"""`invocation reconcile`, `invocation file-recover`: the runtime's own commands, with a plan and a ledger.

stdout is the runtime's document. What was recorded in the operator's ledger, or that nothing was, is said on stderr,
with everything else that the runtime has no place for.
"""

from typing import Any

import click
from msgspec import UNSET
from msgspec.structs import asdict

from symbi_recover.cli.env import Environment, operator_home
from symbi_recover.cli.options import display_options, format_option, ledger_option, pass_environment
from symbi_recover.cli.reading.invocation import (
    PREFIX,
    InvocationCommand,
    Target,
    identity_options,
    project_option,
    trust_options,
)
from symbi_recover.core.acts import ReconciledInvocation, RecoveredPublication
from symbi_recover.core.claims import SCHEDULER_SCOPE, Review
from symbi_recover.core.errors import RecoverError
from symbi_recover.core.exits import Exit
from symbi_recover.core.plan import Plan
from symbi_recover.core.scalars import UUID
from symbi_recover.core.words import counted, noun_for
from symbi_recover.read import documents, proposal
from symbi_recover.read.evidence.store import InvocationStore
from symbi_recover.read.invocation import inspect_invocation
from symbi_recover.read.publication import inspect_file, read_publication_id
from symbi_recover.read.verify.claim import check_scope
from symbi_recover.read.verify.receipt import check_review
from symbi_recover.render import failure
from symbi_recover.render import invocation as render
from symbi_recover.render import plan as render_plan
from symbi_recover.render.safe import safe
from symbi_recover.render.shell import option
from symbi_recover.wire import canonical
from symbi_recover.write import consent
from symbi_recover.write.assess import Assessment, Reconciled, reconcile
from symbi_recover.write.capacity import leftovers
from symbi_recover.write.effect import held_candidate
from symbi_recover.write.ledger import Recorder, recorder
from symbi_recover.write.publish import Recovered, recover


class InvocationWriteCommand(InvocationCommand):
    """A command of the runtime's `invocation` group that writes."""

    writes = True


@click.command(
    cls=InvocationWriteCommand,
    help="Record a signed assessment of what an interrupted invocation did; the runtime's own receipt.\n\n"
    "The review file is the consent: it names the hash of the evidence, and effects_stopped must have been set "
    "to true by hand. Without that, what is missing is shown and nothing is touched.",
    epilog="Exit codes: 0 recorded, or recorded before by the same review; 1 refused or failed; 2 usage, as in the "
    "runtime.",
    examples="symbi-recover invocation reconcile --scope cli:orga --id UUID --review review.json",
)
@project_option
@identity_options
@click.option("--review", "review_path", required=True, metavar="JSON_FILE", help="The completed review.")
@click.option("--cron-store", metavar="DATABASE", help="The schedule database, if not at the usual place.")
@ledger_option
@trust_options
@format_option("text", "json")
@display_options
@pass_environment
def reconcile_command(
    environment: Environment,
    project: str,
    scope: str,
    invocation: str,
    review_path: str,
    cron_store: str | None,
    public_key: str | None,
    trust: str | None,
    no_ledger: bool,
    chosen_format: str | None,
) -> Exit:
    """Run `invocation reconcile`."""
    chosen = environment.format(chosen_format)
    target = Target.of(project, scope, invocation, public_key, trust)
    consent.check_cron_option(cron_store, scope, SCHEDULER_SCOPE)
    review = consent.read_review(review_path)
    try:
        check_review(review)
    except RecoverError as error:
        more = [option("--review", review_path)]
        more += [] if cron_store is None else [option("--cron-store", cron_store)]
        plan = _reconcile_plan(target, review, target.command("reconcile", *more))
        environment.output.note("\n".join([*failure.lines(error, PREFIX), *render_plan.lines(plan)]))
        return Exit.REFUSED
    check_scope(scope)
    record = recorder(operator_home(), environment.clock, wanted=not no_ledger)
    asked = Assessment(scope=scope, id=target.invocation, review=review, cron_store=cron_store)
    with InvocationStore(target.project) as store:
        done = reconcile(store, asked, clock=environment.clock, record=record, trusted=target.trusted)
        _note_reconciled(environment, store, done, record)
        for text in done.given_up:
            environment.output.note(f"warning: {safe(text)} (publication_would_be_lost)")
    if chosen == "json":
        return environment.deliver(Exit.OK, canonical.pretty(_reconciled_document(done, scope)))
    lines = render.resolution(done.resolution, environment.paint)
    lines += [
        "",
        "Verdict: reconciled" + (", by an earlier receipt of the same review" if done.repeated else ""),
    ]
    return environment.deliver(Exit.OK, lines)


def _reconciled_document(done: Reconciled, scope: str) -> ReconciledInvocation:
    updated = UNSET if scope != SCHEDULER_SCOPE else done.cron is not None and done.cron.updated
    return ReconciledInvocation(resolution=done.resolution, cron_history_updated=updated)


def _reconcile_plan(target: Target, review: Review, again: str) -> Plan:
    """What the review still lacks, and what it would do; read without a lock."""
    subject = {"project": target.project, "scope": target.scope, "id": str(target.invocation)}
    try:
        with InvocationStore(target.project) as store:
            inspection = inspect_invocation(store, target.scope, target.invocation, trusted=target.trusted)
            return proposal.reconciliation(store, inspection, review, again)
    except RecoverError as error:
        return proposal.without_evidence("invocation reconcile", subject, error, "the review is not complete")


def _note_reconciled(
    environment: Environment, store: InvocationStore, done: Reconciled, record: Recorder
) -> None:
    what = "the receipt was there already" if done.repeated else "the receipt was published"
    _note_summary(environment, store, what, record, confirmed=done.confirmed)
    if done.cron is not None and done.cron.bound:
        environment.remark("remark: the schedule database was bound to this project (cron_store_bound)")
    if done.cron is not None and not done.cron.updated:
        environment.remark(f"remark: schedule left as it is: {done.cron.why} (cron_history_untouched)")


def _note_summary(
    environment: Environment, store: InvocationStore, what: str, record: Recorder, *, confirmed: bool
) -> None:
    """The summary line, which always says whether the ledger has the act; and what else to know."""
    environment.output.note(f"{what}; {safe(record.summary)}")
    if not confirmed:
        environment.remark("remark: this file system cannot sync folders (sync_unconfirmed)")
    left = leftovers(store)
    if left:
        environment.remark(
            f"remark: {counted(len(left), 'temporary file')} of interrupted writes "
            f"{noun_for(len(left), 'lies', 'lie')} in {safe(store.path)}, such as {safe(left[0])} (store_temporary_left)"
        )


@click.command(
    cls=InvocationWriteCommand,
    help="Finish or acknowledge one file publication of an interrupted invocation; the runtime's own receipt.\n\n"
    "Repeating the snapshot hash is the consent. Without it the plan is shown and nothing is touched.",
    epilog="Exit codes: 0 the file is in place and there is a receipt; 2 plan shown (or usage, as in the runtime); "
    "1 refused or failed.",
    examples="symbi-recover invocation file-recover --scope cli:orga --id UUID --publication UUID "
    "--snapshot-hash sha256:HASH",
)
@project_option
@identity_options
@click.option("--publication", required=True, metavar="UUID", help="The publication id of the signed intent.")
@click.option("--snapshot-hash", metavar="SHA256", help="The hash of the evidence that was reviewed.")
@ledger_option
@trust_options
@format_option("text", "json")
@display_options
@pass_environment
def file_recover_command(
    environment: Environment,
    project: str,
    scope: str,
    invocation: str,
    publication: str,
    snapshot_hash: str | None,
    public_key: str | None,
    trust: str | None,
    no_ledger: bool,
    chosen_format: str | None,
) -> Exit:
    """Run `invocation file-recover`."""
    chosen = environment.format(chosen_format)
    target = Target.of(project, scope, invocation, public_key, trust)
    wanted_file = read_publication_id(publication)
    check_scope(scope)
    if snapshot_hash is None:
        plan = _recover_plan(target, wanted_file)
        shown = canonical.pretty(plan) if chosen == "json" else render_plan.lines(plan)
        return environment.deliver(Exit.ATTENTION, shown)
    record = recorder(operator_home(), environment.clock, wanted=not no_ledger)
    with InvocationStore(target.project) as store:
        done = recover(
            store,
            (scope, target.invocation, wanted_file),
            snapshot_hash,
            clock=environment.clock,
            record=record,
            trusted=target.trusted,
        )
        _note_summary(environment, store, _WORDS[done.how], record, confirmed=done.confirmed)
    if chosen == "json":
        return environment.deliver(Exit.OK, canonical.pretty(_recovered_document(done)))
    lines = render.recovery_receipt(done.payload, environment.paint)
    last = f"Verdict: {_WORDS[done.how]}. Next: {target.command('inspect')}"
    return environment.deliver(Exit.OK, [*lines, "", last])


_WORDS = {
    "renamed": "the file was given its final name and the receipt published",
    "acknowledged": "the file was in place already and the receipt was published",
    "repeated": "the receipt was there already",
}


def _recovered_document(done: Recovered) -> dict[str, Any]:
    """The runtime's document; the receipt as members, so that free numbers are written as the runtime does."""
    document = asdict(RecoveredPublication(recovery=done.payload))
    return document | {"recovery": documents.receipt_members(done.payload)}


def _recover_plan(target: Target, publication: UUID) -> Plan:
    with InvocationStore(target.project) as store:
        inspection = inspect_file(store, target.scope, target.invocation, publication, trusted=target.trusted)
        held = held_candidate(inspection.publication.intent)
        more = (f"--publication {publication}", f"--snapshot-hash {inspection.evidence.snapshot_hash}")
        return proposal.recovery(
            store,
            inspection,
            target.command("file-recover", *more),
            held=held,
        )
