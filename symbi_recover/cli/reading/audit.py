"""`audit inspect`: the runtime's report of one run journal."""

import click

from symbi_recover.cli.env import Environment
from symbi_recover.cli.options import (
    PATH,
    RuntimeCommand,
    display_options,
    format_option,
    pass_environment,
    read_uuid,
)
from symbi_recover.cli.reading.journals import next_step, processors, warn_of_dash
from symbi_recover.core.errors import RecoverError, RefusedError
from symbi_recover.core.exits import Exit
from symbi_recover.core.report import KeyUsed
from symbi_recover.read import inspection
from symbi_recover.read.keys import public_key as read_public_key
from symbi_recover.render import text


class InspectCommand(RuntimeCommand):
    """The runtime's own command."""

    runtime_prefix = "Audit inspection failed: "


@click.command(
    cls=InspectCommand,
    help="Report what the journal of one run proves: its effects, which of them are unknown, its budget. The JSON "
    "is the runtime's own report, byte for byte.",
    epilog="Exit codes: 0 complete; 2 needs reconciliation (or usage, as in the runtime); 1 refused or failed.",
    examples="""
    symbi-recover audit inspect run.jsonl --run-id 22222222-2222-4222-8222-222222222222 --public-key 03a1…31b8
    symbi-recover audit inspect run.jsonl --run-id 2222…2222 --public-key @audit-key.pem --format text
    """,
)
@click.argument("journal", type=PATH)
@click.option("--run-id", required=True, metavar="UUID", help="The run that is asked for.")
@click.option(
    "--public-key",
    "key_text",
    required=True,
    metavar="KEY",
    help="64 hexadecimal digits, PEM, `ssh-ed25519 …`, or @FILE holding one of these.",
)
@click.option("--jobs", type=click.IntRange(1, 64), default=None, help="Processes for large journals.")
@format_option("text", "json")
@display_options
@pass_environment
def inspect_command(
    environment: Environment,
    journal: str,
    run_id: str,
    key_text: str,
    jobs: int | None,
    chosen_format: str | None,
) -> Exit:
    """Run `audit inspect`."""
    form = environment.format(chosen_format)
    key = read_public_key(key_text)
    run = read_uuid(run_id)
    if run is None:
        raise RefusedError("run_id_form", "run ID must be a UUID")
    warn_of_dash(environment, (journal,))
    question = inspection.Question(
        run_id=run,
        workers=jobs or processors(),
        now=environment.now,
        want_digest=form == "text",
    )
    try:
        inspected = inspection.inspect(journal, question, [KeyUsed(key.hex(), "given")])
        if inspected.refusal is not None:
            if inspected.refusal.code == "journal_empty":
                inspected.refusal.hint = next_step(inspected, key_text, None)
            raise inspected.refusal
    except RecoverError as error:
        if error.code not in ("key_form", "run_id_form"):
            error.message = f"Journal write failed: {error.message}"
        raise
    if form == "json":
        return environment.deliver_json(inspected.verdict, inspected.report.recovery)
    step = next_step(inspected, key_text, None)
    lines = text.journal(inspected.report, inspected.verdict, environment.paint, step)
    return environment.deliver(inspected.verdict, lines)
