"""`lease check` and `lease capacity`: what the recorded daemons and a running helper answer about a lease store."""

import click

from symbi_recover.cli.env import Environment
from symbi_recover.cli.options import (
    StrictCommand,
    display_options,
    format_option,
    pass_environment,
    timeout_option,
)
from symbi_recover.cli.reading.lease import (
    EPILOG,
    Question,
    deliver,
    exit_of,
    need_canonical,
    need_leases,
    store_options,
)
from symbi_recover.core.errors import MisuseError
from symbi_recover.core.exits import Exit
from symbi_recover.core.leases import CapacityDocument, CheckDocument
from symbi_recover.core.scalars import HEX_64
from symbi_recover.read.daemon import helper
from symbi_recover.read.daemon.endpoint import account_home
from symbi_recover.read.verify.lease_capacity import examine_capacity
from symbi_recover.read.verify.lease_store import resolve
from symbi_recover.render import leases


@click.command(
    cls=StrictCommand,
    help="Ask the daemon that each record names, never the one of this shell: is the container there, whose label has "
    "it, in which state? Containers of bad records are looked for by their label, at the default socket if no record names "
    "a daemon that answers. GET only, bounded in time. Absence is reported, and proves nothing.",
    epilog=EPILOG,
    examples="""
    symbi-recover lease check
    symbi-recover lease check 6b1f0c64-0f0e-4a53-8f52-3d1f2a7c9b10 --timeout 3
    """,
)
@click.argument("chosen", nargs=-1, metavar="[LEASE]...")
@store_options
@timeout_option(10.0)
@format_option("text", "json")
@display_options
@pass_environment
def check_command(
    environment: Environment,
    chosen: tuple[str, ...],
    state_dir: str | None,
    helper_uid: int | None,
    timeout: float,
    chosen_format: str | None,
) -> Exit:
    """Run `lease check`."""
    # late: the SDK takes longer to load than everything else together
    from symbi_recover.read.daemon.engine import DockerEngine  # noqa: PLC0415
    from symbi_recover.read.verify.lease_check import Checker, check_store  # noqa: PLC0415

    form = environment.format(chosen_format)
    for lease in chosen:
        need_canonical(lease)
    whole = Question(environment, state_dir, helper_uid).look()
    need_leases(chosen, whole)
    checker = Checker(lambda path: DockerEngine(path, seconds=timeout), home=account_home(whole.helper_uid))
    try:
        report = check_store(whole, checker, chosen)
    finally:
        checker.close()
    code = exit_of(report.verdict)
    document = CheckDocument(ok=code is Exit.OK, exit=int(code), report=report)
    return deliver(environment, form, document, leases.check(report, code, environment.paint))


@click.command(
    cls=StrictCommand,
    help="Say what is charged against admission: computed from the files and, where a helper runs, as the helper itself "
    "counts it; both agree, or each difference is named.",
    epilog="Exit codes: 0 room for new work; 2 full, or a difference; 1 the helper would not start; 3 not examined.",
    examples="""
    symbi-recover lease capacity
    symbi-recover lease capacity --state-dir /var/lib/symbivmm/state --format json
    """,
)
@store_options
@click.option(
    "--fingerprint",
    metavar="HEX",
    default=helper.FINGERPRINT,
    help="Build of the helper, 64 hex digits. [default: that of the packaged release 2.0.1]",
)
@format_option("text", "json")
@display_options
@pass_environment
def capacity_command(
    environment: Environment,
    state_dir: str | None,
    helper_uid: int | None,
    fingerprint: str,
    chosen_format: str | None,
) -> Exit:
    """Run `lease capacity`."""
    form = environment.format(chosen_format)
    if not HEX_64.fullmatch(fingerprint):
        raise MisuseError("usage", "--fingerprint takes 64 lower-case hexadecimal digits")
    question = Question(environment, state_dir, helper_uid)
    directory = resolve(question.directory)
    report = examine_capacity(
        question.look,
        lambda store: helper.ask_capacity(directory, uid=store.helper_uid, fingerprint=fingerprint),
    )
    code = exit_of(report.verdict)
    document = CapacityDocument(ok=code is Exit.OK, exit=int(code), report=report)
    return deliver(environment, form, document, leases.capacity(report, code, environment.paint))
