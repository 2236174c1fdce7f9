"""`lease witness` and `lease retire`: prove that a creation can no longer complete, and only then drop its record."""

import click

from symbi_recover.cli.env import Environment, operator_home
from symbi_recover.cli.options import (
    PATH,
    WritingCommand,
    display_options,
    format_option,
    ledger_option,
    pass_environment,
    timeout_option,
)
from symbi_recover.cli.reading.lease import Question, deliver, need_canonical, store_options, store_words
from symbi_recover.cli.writing.lease import CONFIRM, need_digest
from symbi_recover.core.errors import MisuseError
from symbi_recover.core.exits import Exit
from symbi_recover.core.retirement import RetireDocument, RetireReport, WitnessDocument, WitnessReport
from symbi_recover.core.scalars import HEX_64
from symbi_recover.read.daemon.endpoint import account_home
from symbi_recover.read.evidence.opener import OpenedFile
from symbi_recover.read.retirement.examine import Asker
from symbi_recover.read.retirement.host import Host, RealHost
from symbi_recover.render import lease_acts
from symbi_recover.render.shell import option

_MOST_REVIEWED = 1 << 20


def the_host() -> Host:
    """This host; tests put another one here, the command line cannot."""
    return RealHost()


@click.command(
    cls=WritingCommand,
    help="Keep, in the operator's folder, what is seen of tombstones now: record, boot, engine, listener. A later visit "
    "that finds the same record after a reboot, or with --lock after a restart of the engine, has its proof. The store is "
    "not changed, and no daemon is asked anything but GET.",
    epilog="Exit codes: 0 witnessed; 2 a lease is no tombstone, there is none, or the store is blocked; 1 not written; 3 could "
    "not examine; 4 a helper runs (--lock).",
    examples="""
    symbi-recover lease witness
    symbi-recover lease witness --lock 6b1f0c64-0f0e-4a53-8f52-3d1f2a7c9b10
    """,
)
@click.argument("chosen", nargs=-1, metavar="[LEASE]...")
@store_options
@click.option(
    "--lock",
    is_flag=True,
    help="Hold the store's lock for the visit, so that it can prove a replaced engine too. No helper can start meanwhile.",
)
@ledger_option
@format_option("text", "json")
@display_options
@pass_environment
def witness_command(
    environment: Environment,
    chosen: tuple[str, ...],
    state_dir: str | None,
    helper_uid: int | None,
    lock: bool,
    no_ledger: bool,
    chosen_format: str | None,
) -> Exit:
    """Run `lease witness`."""
    # late: the SDK takes longer to load than everything else together
    from symbi_recover.write import witness  # noqa: PLC0415
    from symbi_recover.write.ledger import recorder  # noqa: PLC0415

    form = environment.format(chosen_format)
    for lease in chosen:
        need_canonical(lease)
    question = Question(environment, state_dir, helper_uid)
    asking = _Asking(question, 10.0, frozenset())
    record = recorder(operator_home(), environment.clock, wanted=not no_ledger)
    request = witness.Request(
        path=question.directory,
        leases=chosen,
        lock=lock,
        helper_uid=helper_uid,
        asker=asking.asker,
        recorder=record,
        clock=environment.clock,
    )
    report = witness.witness(request)
    wrong = {found.code for found in report.findings} & {"phase_not_retirable", "store_blocked"}
    code = Exit.OK if report.witnesses and not wrong else Exit.ATTENTION
    ledger = record.summary if report.witnesses else None
    document = WitnessDocument(ok=code is Exit.OK, exit=int(code), report=report, ledger=ledger)
    step = _witness_next(report, store_words(report.state_dir, helper_uid), lock=lock)
    return deliver(
        environment, form, document, lease_acts.witnesses(report, code, environment.paint, step, ledger)
    )


@click.command(
    cls=WritingCommand,
    help="Retire one tombstone, if it is proven that its creation can no longer complete: by a reboot or a replaced engine "
    "that a witness shows, or by an engine that is quiet behind a fence while no client is alive. Absence, time and words "
    "prove nothing. Without --confirm only the plan is printed, and nothing is touched.",
    epilog="Exit codes: 0 retired, now or before; 2 plan printed; 4 refused, the record is kept; 3 could not examine; 1 failed.",
    examples="""
    symbi-recover lease retire 6b1f0c64-0f0e-4a53-8f52-3d1f2a7c9b10
    symbi-recover lease retire 6b1f0c64-0f0e-4a53-8f52-3d1f2a7c9b10 --confirm 2f7a…e1
    """,
)
@click.argument("lease")
@store_options
@click.option("--confirm", metavar="SHA256", help=f"{CONFIRM} That of the record.")
@click.option(
    "--acknowledge-staging",
    is_flag=True,
    help="The snapshots that the record protects may be deleted by the runtime once it is gone.",
)
@click.option(
    "--accept-wall-clock",
    is_flag=True,
    help="For phase `uncertain`: accept that host or engine started an hour or more after the record, by the clock alone.",
)
@click.option(
    "--reviewed-wrappers",
    metavar="FILE",
    type=PATH,
    help="SHA-256 of wrappers that were read, one a line; good for a witnessed reboot alone.",
)
@click.option("--note", metavar="TEXT", help="A statement for the receipt. It proves nothing.")
@timeout_option(10.0)
@ledger_option
@format_option("text", "json")
@display_options
@pass_environment
def retire_command(
    environment: Environment,
    lease: str,
    state_dir: str | None,
    helper_uid: int | None,
    confirm: str | None,
    acknowledge_staging: bool,
    accept_wall_clock: bool,
    reviewed_wrappers: str | None,
    note: str | None,
    timeout: float,
    no_ledger: bool,
    chosen_format: str | None,
) -> Exit:
    """Run `lease retire`."""
    # late: the SDK takes longer to load than everything else together
    from symbi_recover.write import retire  # noqa: PLC0415
    from symbi_recover.write.ledger import recorder  # noqa: PLC0415

    form = environment.format(chosen_format)
    need_canonical(lease)
    need_digest(confirm)
    question = Question(environment, state_dir, helper_uid)
    asking = _Asking(question, timeout, _reviewed(reviewed_wrappers))
    record = recorder(operator_home(), environment.clock, wanted=not no_ledger)
    request = retire.Request(
        path=question.directory,
        lease=lease,
        confirm=confirm,
        accept_wall_clock=accept_wall_clock,
        acknowledge_staging=acknowledge_staging,
        statement=note,
        helper_uid=helper_uid,
        home=operator_home(),
        asker=asking.asker,
        hands=asking.hand,
        recorder=record,
        clock=environment.clock,
    )
    report = retire.plan(request) if confirm is None else retire.retire(request)
    code = _retire_exit(report)
    ledger = record.summary if confirm is not None else None
    document = RetireDocument(ok=code is Exit.OK, exit=int(code), report=report, ledger=ledger)
    accepted = [option("--reviewed-wrappers", reviewed_wrappers)] if reviewed_wrappers is not None else []
    accepted += ["--acknowledge-staging"] if acknowledge_staging else []
    accepted += ["--accept-wall-clock"] if accept_wall_clock else []
    step = _retire_next(report, store_words(report.state_dir, helper_uid), accepted)
    return deliver(
        environment, form, document, lease_acts.retirement(report, code, environment.paint, step, ledger)
    )


def _witness_next(report: WitnessReport, where: str, *, lock: bool) -> str:
    if not report.witnesses:
        return f"symbi-recover lease list {where}, which shows whether a tombstone is there"
    # Only a visit under the lock proves a replaced engine.
    later = "reboot, or restart the engine in a quiet hour" if lock else "reboot"
    leases = [one.record.lease for one in report.witnesses]
    retire = f"`symbi-recover lease retire {where} {leases[0] if len(leases) == 1 else 'LEASE'}`"
    more = "" if lock else "; for a proof by a restart of the engine, witness with --lock"
    return f"{later}, then {retire}{more}; where the engine is ever quiet, retire without either"


class _Asking:
    """How a command's questions reach the daemon and the host."""

    def __init__(self, question: Question, seconds: float, reviewed: frozenset[str]) -> None:
        # late: the SDK takes longer to load than everything else together
        from symbi_recover.write.daemon import EngineHand  # noqa: PLC0415

        def hand(path: str) -> EngineHand:
            return EngineHand(path, seconds=seconds)

        def asker(uid: int) -> Asker:
            return Asker(
                host=the_host(),
                connect=hand,
                home=operator_home(),
                account_home=account_home(uid),
                given_path=question.directory,
                reviewed=reviewed,
            )

        self.hand = hand
        self.asker = asker


def _reviewed(path: str | None) -> frozenset[str]:
    """The operator's list of wrappers."""
    if path is None:
        return frozenset()
    with OpenedFile.open(path) as file:
        data = file.read(_MOST_REVIEWED)
    lines = data.decode("utf-8", "replace").splitlines()
    words = [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]
    if len(data) > _MOST_REVIEWED or not all(HEX_64.fullmatch(word) for word in words):
        raise MisuseError(
            "review_list_invalid", "a line does not begin with 64 hexadecimal digits", path=path
        )
    return frozenset(words)


def _retire_exit(report: RetireReport) -> Exit:
    if report.outcome in ("retired", "already_retired", "completed"):
        return Exit.OK
    codes = report.decision.codes if report.decision is not None else ()
    if "engine_unavailable" in codes:
        return Exit.UNEXAMINED
    return Exit.ATTENTION if report.outcome == "plan" else Exit.STALE


def _retire_next(report: RetireReport, where: str, accepted: list[str]) -> str:
    again = " ".join(["symbi-recover lease retire", where, report.lease, *accepted])
    if report.outcome == "plan" and report.confirm is not None:
        return f"{again} --confirm {report.confirm}"
    if report.outcome in ("plan", "refused"):
        codes = report.decision.codes if report.decision is not None else ()
        if "container_present" in codes:
            return f"symbi-recover lease reconcile {where} {report.lease}"
        if "receipt_unavailable" in codes:
            return f"symbi-recover key init, if there is no key yet; then {again}"
        if "staging_unacknowledged" in codes:
            return f"decide about the snapshots; then {again} --acknowledge-staging"
        return "see `symbi-recover explain CODE` for each code; as things stand the record is kept"
    return "start the helper again, if it was stopped"
