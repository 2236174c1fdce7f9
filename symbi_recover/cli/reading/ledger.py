"""`ledger show`, `ledger verify`: what an operator did with this toolkit, and whether the record of it holds."""

import os
import re

import click

from symbi_recover.cli.env import Environment, operator_home
from symbi_recover.cli.options import StrictCommand, display_options, format_option, pass_environment
from symbi_recover.core.errors import MisuseError
from symbi_recover.core.exits import Exit
from symbi_recover.core.findings import Severity
from symbi_recover.core.ledger import LEDGER_NAME, PUBLIC_NAME, LedgerReport
from symbi_recover.core.report import KeyUsed
from symbi_recover.read import ledger
from symbi_recover.read.keys import public_key as read_key
from symbi_recover.render import ledger as render

_HEAD = re.compile(r"([0-9]{1,10}):([0-9a-f]{64})")


def ledger_options(function: click.decorators.FC) -> click.decorators.FC:
    """What both commands take."""
    function = click.option(
        "--expect-head", metavar="SEQUENCE:HASH", help="A record that must be there, noted earlier."
    )(function)
    function = click.option(
        "--public-key",
        metavar="KEY",
        help="The operator's public key: hex, PEM, OpenSSH, or a file with one.",
    )(function)
    return click.argument("file", metavar="[LEDGER]", required=False)(function)


@click.command(
    cls=StrictCommand,
    help="Show what was done: every act with its intent and its outcome.\n\n"
    "Without LEDGER, the operator's own is shown, verified with the public key beside it.",
    epilog="Exit codes: 0 all of it holds; 2 something is open or not authenticated; 1 it does not hold; 3 not examined.",
    examples="symbi-recover ledger show",
)
@ledger_options
@format_option("text", "json")
@display_options
@pass_environment
def show_command(
    environment: Environment,
    file: str | None,
    public_key: str | None,
    expect_head: str | None,
    chosen_format: str | None,
) -> Exit:
    """Run `ledger show`."""
    return _answer(environment, chosen_format, _report(file, public_key, expect_head), acts=True)


@click.command(
    cls=StrictCommand,
    help="Verify a ledger: signatures, chain, fragments, and that every act has an outcome.",
    epilog="Exit codes: 0 all of it holds; 2 something is open or not authenticated; 1 it does not hold; 3 not examined.",
    examples="symbi-recover ledger verify ./ledger.jsonl --public-key @operator.pub",
)
@ledger_options
@format_option("text", "json")
@display_options
@pass_environment
def verify_command(
    environment: Environment,
    file: str | None,
    public_key: str | None,
    expect_head: str | None,
    chosen_format: str | None,
) -> Exit:
    """Run `ledger verify`."""
    return _answer(environment, chosen_format, _report(file, public_key, expect_head), acts=False)


def _report(file: str | None, public_key: str | None, expect_head: str | None) -> LedgerReport:
    head = None
    if expect_head is not None:
        match = _HEAD.fullmatch(expect_head)
        if match is None:
            raise MisuseError("usage", "--expect-head takes a number, a colon and 64 hexadecimal digits")
        head = int(match[1]), match[2]
    path = file or os.path.join(operator_home(), LEDGER_NAME)
    key = None
    if public_key is not None:
        key = KeyUsed(read_key(public_key).hex(), "given")
    elif file is None and os.path.lexists(os.path.join(operator_home(), PUBLIC_NAME)):
        key = KeyUsed(read_key("@" + os.path.join(operator_home(), PUBLIC_NAME)).hex(), "operator.pub")
    return ledger.judge(ledger.load(path), path, key=key, expected_head=head)


def _verdict(report: LedgerReport) -> Exit:
    severities = {found.severity for found in report.findings}
    if Severity.REFUSED in severities:
        return Exit.REFUSED
    return Exit.ATTENTION if Severity.ATTENTION in severities else Exit.OK


def _answer(environment: Environment, chosen_format: str | None, report: LedgerReport, *, acts: bool) -> Exit:
    verdict = _verdict(report)
    if environment.format(chosen_format) == "json":
        return environment.deliver(verdict, ledger.document(report, verdict))
    lines = render.acts(report, environment.paint) if acts else []
    return environment.deliver(
        verdict, [*render.head(report), *lines, *render.verdict(report, verdict, environment.paint)]
    )
