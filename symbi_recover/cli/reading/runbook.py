"""`runbook list` and `runbook show`: what to do in an incident, step by step, offline."""

import click

from symbi_recover.cli.env import Environment
from symbi_recover.cli.options import StrictCommand, display_options, format_option, pass_environment
from symbi_recover.core.documents import RunbookList
from symbi_recover.core.exits import Exit
from symbi_recover.core.words import counted
from symbi_recover.read import library


@click.command(
    cls=StrictCommand,
    help="List the runbooks that are shipped: one for each incident, with the commands to type, the exit codes and "
    "the lines to expect.",
    epilog="Exit codes: 0 listed; 64 usage.",
    examples="""
    symbi-recover runbook list
    symbi-recover runbook list --format json
    """,
)
@format_option("text", "json")
@display_options
@pass_environment
def list_command(environment: Environment, chosen_format: str | None) -> Exit:
    """Run `runbook list`."""
    form = environment.format(chosen_format)
    listed = library.runbooks()
    if form == "json":
        return environment.deliver_json(Exit.OK, RunbookList(runbooks=listed))
    lines: list[str] = []
    for entry in listed:
        lines += [f"{environment.paint('strong', entry.name)}  {entry.title}", f"  {entry.about}", ""]
    return environment.deliver(
        Exit.OK,
        [
            *lines,
            f"{counted(len(listed), 'runbook')}. Next: `symbi-recover runbook show NAME` for one of them.",
        ],
    )


@click.command(
    cls=StrictCommand,
    help="Print one runbook, in Markdown.",
    epilog="Exit codes: 0 printed; 64 usage, or no such runbook.",
    examples="""
    symbi-recover runbook show interrupted-run
    symbi-recover runbook show suspect-journal | less
    """,
)
@click.argument("name")
@display_options
@pass_environment
def show_command(environment: Environment, name: str) -> Exit:
    """Run `runbook show`."""
    return environment.deliver(Exit.OK, library.runbook_text(name).splitlines())
