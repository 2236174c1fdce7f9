"""`lease reconcile` and `lease fences`: end what is proven to be ours, and nothing else."""

import click
from msgspec.structs import replace

from symbi_recover.cli.env import Environment, operator_home
from symbi_recover.cli.options import (
    WritingCommand,
    display_options,
    format_option,
    ledger_option,
    pass_environment,
    timeout_option,
)
from symbi_recover.cli.reading.lease import (
    Question,
    deliver,
    need_canonical,
    need_leases,
    store_options,
    store_words,
)
from symbi_recover.core.codes.daemon import UNANSWERED
from symbi_recover.core.errors import MisuseError
from symbi_recover.core.exits import Exit, worst
from symbi_recover.core.fences import FenceDocument, FenceReport
from symbi_recover.core.findings import Severity
from symbi_recover.core.reconciliation import ReconcileDocument, ReconcileItem, ReconcileReport
from symbi_recover.core.scalars import HEX_64
from symbi_recover.read.daemon.endpoint import account_home, read_configuration, resolve
from symbi_recover.render import lease_acts

_NO_STORE = frozenset({"dir_missing", "dir_unsafe"})
_UNSEEN = frozenset({"dir_missing", "operator_file_unusable"})
"""What keeps fences from being looked for; a note that cannot be read may name some."""
CONFIRM = "Consent: repeat the SHA-256 that the plan prints."


@click.command(
    cls=WritingCommand,
    help="Remove the containers that a store's records own, and then the records, as the helper would: only where name or "
    "id and label are all right. `created` records whose container is gone go as well. Everything else is listed with its "
    "code and left. Without --confirm only the plan is printed, and nothing is touched, locks included.",
    epilog="Exit codes: 0 done, or nothing to do; 2 plan printed, or records were left; 1 the helper would not start; 3 a "
    "daemon did not answer; 4 refused: a helper runs, or the world is not as reviewed.",
    examples="""
    symbi-recover lease reconcile
    symbi-recover lease reconcile --confirm 2f7a…e1
    """,
)
@click.argument("chosen", nargs=-1, metavar="[LEASE]...")
@store_options
@click.option("--confirm", metavar="SHA256", help=f"{CONFIRM} That of one record, or of the whole plan.")
@timeout_option(15.0)
@ledger_option
@format_option("text", "json")
@display_options
@pass_environment
def reconcile_command(
    environment: Environment,
    chosen: tuple[str, ...],
    state_dir: str | None,
    helper_uid: int | None,
    confirm: str | None,
    timeout: float,
    no_ledger: bool,
    chosen_format: str | None,
) -> Exit:
    """Run `lease reconcile`."""
    # late: the SDK takes longer to load than everything else together
    from symbi_recover.read.verify.lease_check import Checker  # noqa: PLC0415
    from symbi_recover.write import reconcile  # noqa: PLC0415
    from symbi_recover.write.daemon import EngineHand  # noqa: PLC0415
    from symbi_recover.write.ledger import recorder  # noqa: PLC0415

    form = environment.format(chosen_format)
    for lease in chosen:
        need_canonical(lease)
    need_digest(confirm)
    question = Question(environment, state_dir, helper_uid)

    def hand(path: str) -> EngineHand:
        return EngineHand(path, seconds=timeout)

    def checker(uid: int) -> Checker:
        return Checker(hand, home=account_home(uid))

    record = recorder(operator_home(), environment.clock, wanted=confirm is not None and not no_ledger)
    request = reconcile.Request(
        path=question.directory,
        confirm=confirm or "",
        leases=chosen,
        helper_uid=helper_uid,
        home=operator_home(),
        clock=environment.clock,
        checker=checker,
        hand=hand,
        recorder=record,
    )
    if confirm is None:
        whole = question.look()
        need_leases(chosen, whole)
        report = reconcile.plan(whole, request)
    else:
        report = reconcile.reconcile(request)
    ledger = record.summary if confirm is not None else None
    code = _reconcile_exit(report)
    document = ReconcileDocument(ok=code is Exit.OK, exit=int(code), report=report, ledger=ledger)
    step = _reconcile_next(report, code, store_words(report.state_dir, helper_uid), chosen)
    return deliver(
        environment, form, document, lease_acts.reconciliation(report, code, environment.paint, step, ledger)
    )


def need_digest(text: str | None) -> None:
    """Refuse a consent in any other form than 64 lower-case hex digits.

    Raises:
        MisuseError: it is none.
    """
    if text is not None and not HEX_64.fullmatch(text):
        raise MisuseError("usage", "--confirm takes the 64 hexadecimal digits that the plan prints")


def _reconcile_exit(report: ReconcileReport) -> Exit:
    if report.store_blocked:
        return Exit.REFUSED
    return worst([_item_exit(item) for item in report.items])


def _item_exit(item: ReconcileItem) -> Exit:
    if item.outcome == "done":
        return Exit.OK
    if item.outcome == "failed":
        return Exit.STALE
    return Exit.UNEXAMINED if item.code in UNANSWERED else Exit.ATTENTION


def _reconcile_next(report: ReconcileReport, code: Exit, store: str, chosen: tuple[str, ...]) -> str:
    acts = [item for item in report.items if item.outcome == "planned"]
    if report.store_blocked:
        return f"symbi-recover lease verify {store}"
    if acts and report.helper.supervises:
        return "nothing: the running helper does this by itself; to do it here, stop the helper first"
    if acts:
        # The hash is over the chosen leases alone.
        return " ".join(["symbi-recover lease reconcile", store, *chosen, f"--confirm {report.plan_hash}"])
    if report.store_blocked is None:
        return f"symbi-recover lease verify {store}"
    if code is Exit.OK:
        return "start the helper again, if it was stopped" if report.executed else "nothing"
    return "see `symbi-recover explain CODE` for each code; `lease retire` for tombstones"


@click.command(
    cls=WritingCommand,
    help="List the fences that interrupted runs of `lease retire` left at the engines, containers and images, and with "
    "--confirm remove those that the operator's own notes know by their nonce. Everything else is left.",
    epilog="Exit codes: 0 none, or removed; 2 plan printed, or some were left; 3 a daemon did not answer, there is no "
    "store, or a note cannot be read; 4 the fences are not those that were reviewed; 1 failed.",
    examples="""
    symbi-recover lease fences
    symbi-recover lease fences --confirm 2f7a…e1
    """,
)
@store_options
@click.option("--confirm", metavar="SHA256", help=f"{CONFIRM} That of the whole plan.")
@ledger_option
@format_option("text", "json")
@display_options
@pass_environment
def fences_command(
    environment: Environment,
    state_dir: str | None,
    helper_uid: int | None,
    confirm: str | None,
    no_ledger: bool,
    chosen_format: str | None,
) -> Exit:
    """Run `lease fences`."""
    # late: the SDK takes longer to load than everything else together
    from symbi_recover.write import fences  # noqa: PLC0415
    from symbi_recover.write.daemon import EngineHand  # noqa: PLC0415
    from symbi_recover.write.ledger import recorder  # noqa: PLC0415

    form = environment.format(chosen_format)
    need_digest(confirm)
    whole = Question(environment, state_dir, helper_uid).look()
    home = account_home(whole.helper_uid)
    sockets = [
        resolve(view.record.docker_environment, home=home, read=read_configuration).socket
        for view in whole.records
        if view.backend == "container"
    ]
    endpoints = tuple(path for path in sockets if path is not None)
    ledger = None
    if confirm is None:
        report = fences.survey(operator_home(), endpoints, EngineHand, environment.clock())
    else:
        record = recorder(operator_home(), environment.clock, wanted=not no_ledger)
        report = fences.clear(
            operator_home(),
            endpoints,
            EngineHand,
            confirm=confirm,
            recorder=record,
            now_ns=environment.clock(),
        )
        ledger = record.summary
    unseen = [found for found in whole.findings if found.code in _NO_STORE]
    report = replace(report, findings=(*report.findings, *unseen))
    code = _fences_exit(report)
    document = FenceDocument(ok=code is Exit.OK, exit=int(code), report=report, ledger=ledger)
    step = _fences_next(report, code, store_words(whole.state_dir, helper_uid))
    lines = lease_acts.fences(report, code, environment.paint, step, ledger)
    return deliver(environment, form, document, lines)


def _fences_next(report: FenceReport, code: Exit, store: str) -> str:
    if any(one.outcome == "planned" for one in report.fences):
        return f"symbi-recover lease fences {store} --confirm {report.plan_hash}"
    if code is Exit.OK:
        return "nothing"
    if code is Exit.UNEXAMINED:
        return "ask again where everything can be seen; what is not listed here may be there all the same"
    return "see `symbi-recover explain CODE` for each code"


def _fences_exit(report: FenceReport) -> Exit:
    exits = [
        Exit.UNEXAMINED if found.code in UNANSWERED | _UNSEEN else Exit.ATTENTION
        for found in report.findings
        if found.severity is not Severity.INFO
    ]
    exits += [
        {"done": Exit.OK, "failed": Exit.REFUSED}.get(one.outcome, Exit.ATTENTION) for one in report.fences
    ]
    return worst(exits)
